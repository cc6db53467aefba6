/* How long each part of a run takes beside the others, estimated from sizes before it begins: for
 * an honest percentage. Ratios mean something; seconds only tell what ends from what does not. */
#ifndef SP_EXEC_WORK_H
#define SP_EXEC_WORK_H
#include "exec/exec.h"

typedef struct {
    double *load, *load_check; /* per value: an input or parameter read, and held against its
                                  source; 0: made by a step */
    double *step, *check;      /* per step */
    double run;                /* all of these, as often as they are done */
    double plain;              /* `run` without checks */
    double reference;          /* the unsharded run in f64 */
    double exact;              /* the program once on integer data */
    double compare;            /* an element of a result, held against the unsharded run */
} Work;
/* Distinct floating-point operations of the steps of a program, each run once. */
double work_flops(const Program *p);
/* Of `e`'s program, run for `iterations` training steps of `parts` micro-batches each. Arrays live
 * in `a`. */
Work work_of(Arena *a, const Exec *e, int64_t iterations, int64_t parts);
/* About how long the whole run takes, in seconds of the machine that the rates were measured on;
 * `more`: work that is no part of `run` and `reference`. Good to a factor of a few: enough to tell
 * an hour from a year. */
double work_seconds(const Exec *e, const Work *w, int64_t iterations, int64_t parts, double more);
#endif
