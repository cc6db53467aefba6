/* Looking things up in a trace by the names that people use, for explain, expect and the reports.
 * Reads traces only. */
#ifndef SP_CLI_FIND_H
#define SP_CLI_FIND_H
#include "trace/trace.h"

/* What one step is and makes. Several records of one step (rank classes) give the first. */
typedef struct {
    const TraceCompute *compute;
    const TraceCollective *collective;
    const TraceLocalMove *move;
    const TraceValue *value;
} FoundStep;
typedef struct {
    int n;
    FoundStep *step;
} StepIndex;
/* All steps of a trace, index i for step i; in the arena. */
StepIndex lookup_steps(const Trace *t, Arena *arena);

/* Is `module` (NULL: no) NAME or inside it? `n` is the length of NAME. */
bool lookup_inside(const char *module, const char *name, size_t n);
/* The first value of that name that is not a moved copy, else the first of that name. Known are:
 * the name of the value, "layers.N.input" for the output of the layer before, MODULE.input and
 * MODULE.output. NULL if there is none. */
const TraceValue *lookup_value(const Trace *t, const char *name);
/* The value that an operand is: of that name, made by that step, and the latest before `by` if step
 * is -1. */
const TraceValue *lookup_operand(const Trace *t, const char *name, int step);
/* A parameter by its name in the plan's scheme or in the checkpoint, with or without "model."; NULL
 * if there is none.
 */
const TraceParam *lookup_param(const Trace *t, const char *name);

/* The shape of the value or parameter of that name, or of the one whose name ends so (suffix.h);
 * NULL if there is none, and a *hint or NULL. */
const TraceShape *lookup_shape(Arena *a, const Trace *t, const char *name, const char **hint);

/* The axes behind a text such as "sp" or "dp*sp": groups resolved, in order; *n of them, at most
 * TRACE_MAX_AXES. Names that are neither axis nor group stand as they are. `drop_ones` leaves out
 * axes of size 1. */
void lookup_axes(const Trace *t, const char *text, bool drop_ones, const char *axes[TRACE_MAX_AXES],
                 int *n);
/* Do two such texts mean the same set of axes (sizes of 1 do not count)? */
bool lookup_same_axes(const Trace *t, const char *a, const char *b);

/* Bytes that a rank sends in a collective: none where a planted mistake skips it. rank -1: the most
 * that one sends. */
static inline int64_t lookup_sent(const TraceCollective *k, int64_t rank) {
    return k->skipped ? 0 : rank < 0 ? k->bytes_sent : collective_on(k, rank).bytes_sent;
}
/* The least and the most of bytes in words, as whole numbers where both would read alike. `exact`
 * adds those in any case. */
typedef struct {
    const char *least, *most;
} LookupRange;
LookupRange lookup_range(int64_t least, int64_t most, bool exact, Arena *a);
/* What ranks send in all collectives together, or in those that `counts` picks (how often each
 * counts; NULL: all, once): "64 KiB", or where ranks differ "16 KiB (ranks 2-3) to 32 KiB (ranks
 * 0-1)". `exact` adds the bytes as a number. */
typedef int (*LookupCounts)(const TraceCollective *k, const void *arg);
const char *lookup_sent_text(const Trace *t, LookupCounts counts, const void *arg, bool exact,
                             Arena *arena);
/* Counts a collective as often as the whole step does it. */
int lookup_of_step(const TraceCollective *k, const void *arg);
/* With micro-batches, "in the whole step, 8 micro-batches: 48 collectives, 64 KiB sent per rank".
 * rank -1: of all ranks, and what they send as lookup_sent_text says it. */
const char *lookup_step_text(const Trace *t, int64_t rank, Arena *a);
/* What the rank that sends most sends in all of them, in bytes. */
int64_t lookup_most_sent(const Trace *t, LookupCounts counts, const void *arg);
/* The peak of live bytes over all steps of the rank class that has the highest, of several the
 * first; what it has of one category then if `category` is not NULL: they add up to the peak. */
int64_t lookup_peak(const Trace *t, const char *category);
/* Distinct memory categories in order of appearance, NULL-terminated. */
const char *const *lookup_categories(const Trace *t, Arena *arena);
#endif
