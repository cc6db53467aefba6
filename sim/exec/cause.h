/* Why is a value wrong? Each hypothesis about a step says what a rank would hold if it were true;
 * the one that the numbers bear out is the cause. Nothing here looks at what was planted: only at
 * what the ranks hold. */
#ifndef SP_EXEC_CAUSE_H
#define SP_EXEC_CAUSE_H
#include "exec/exec.h"

/* An input or parameter as it should be: the whole of it in exec_dtype, packed, or, where that is
 * NULL, some of its elements into `out`, packed; false: they cannot be read. */
typedef struct CauseSource {
    const void *full;
    bool (*some)(void *arg, int tensor, Dtype t, const Region *of, void *out);
    void *arg;
} CauseSource;
/* Bytes that looking for the cause takes at most, beside what is there: of a step, of a source
 * (NULL). */
int64_t cause_need(const Exec *e, const Step *s, int out);
/* What went wrong in a move whose output differs on the ranks with wrong[rank] >= 0 (NULL: on all).
 * Its source is still alive. A sentence that lives in the arena; never NULL. */
const char *cause_of_move(Arena *arena, Exec *e, const Step *s, const double *wrong);
/* The same for an op or an adjoint, for the sum of two values, and for an input or parameter as it
 * lies at rest. */
const char *cause_of_op(Arena *arena, Exec *e, const Step *s, const double *wrong);
const char *cause_of_sum(Arena *arena, Exec *e, const Step *s, const double *wrong);
const char *cause_of_source(Arena *arena, Exec *e, int val, const CauseSource *source,
                            const double *wrong);
/* Of a move that should have made a sum: sets the terms of *k, its failed check, if they add up to
 * what was wanted. */
void cause_terms(Arena *arena, Exec *e, const Step *s, const double *wrong, TraceCheck *k);
#endif
