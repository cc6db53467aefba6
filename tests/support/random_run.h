/* One random plan through the whole program: it must be equivalent, and one mutation of it must be
 * caught and located. Counts go into a table that is plain data, so that runs can be stopped,
 * resumed and added up. */
#ifndef SP_TESTS_RANDOM_RUN_H
#define SP_TESTS_RANDOM_RUN_H
#include "coverage.h"
#include "random_plan.h"
#include "step_mutation.h"

/* Of moves, planted by the plan: drop: a reduction passes the local part on, a gather repeats the
 * own part; kind: another kind whose shapes agree; axis: another axis of equal size; dim: another
 * dim of equal size; offset: the block of the next rank; alone: one rank goes on with its own part,
 * or takes no part; counts: rows are told apart by counts of others. Of any step, made while it
 * runs: those of step_mutation.h, in its order. */
enum {
    M_DROP,
    M_KIND,
    M_AXIS,
    M_DIM,
    M_OFFSET,
    M_ALONE,
    M_COUNTS,
    M_STEP,
    M_COUNT = M_STEP + S_COUNT
};
typedef struct {
    long sites[M_COUNT];     /* steps at which the mutation can be planted, over all plans */
    long planted[M_COUNT];   /* one a plan, drawn among them */
    long no_change[M_COUNT]; /* planted, and no bit of the step's output changed: another was drawn
                              */
    long in_rounding[M_COUNT]; /* bits changed, by less than rounding does: a sum of terms that
                                  cancel, divided */
    long by_values[M_COUNT], by_verify[M_COUNT], due[M_COUNT],
        located[M_COUNT]; /* due: where verify's theory covers it */
    long plans, legal, form[RANDOM_FORMS], with_collective, alarms, none_possible, no_site;
    long sides;      /* right at the end once the unsharded model has the ranks' sides of bends */
    long diverged;   /* training that leaves the range of float32, unsharded too */
    long too_little; /* under trust: declared, with a sum that is due and not declared */
} RandomTable;

/* Runs plan number `seed`; what goes wrong is printed and returned as false. `c` may be NULL. */
bool random_run(uint64_t seed, RandomTable *t, Coverage *c);
/* A line of `faults` that plants a mutation of a move of this plan, whose trace is `t`; NULL if
 * none was found. */
const char *random_fault(Arena *a, Rng *r, const Trace *t);
void random_table_add(RandomTable *to, const RandomTable *from);
void random_table_print(const RandomTable *t, FILE *f);
/* Plans that are wrong: false alarms and mutations that were not caught, not located, or not seen
 * by verify. */
long random_table_bad(const RandomTable *t);

/* shrink.c: the smallest plan that still is wrong in the same way: deletes keys and list items,
 * makes numbers smaller, as long as `wrong(arg, text)` says so. The result lives in the arena. */
const char *shrink_plan(Arena *a, const char *text, bool (*wrong)(void *arg, const char *text),
                        void *arg);
#endif
