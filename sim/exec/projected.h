/* Products and sums over ranks held by random projections (project.h) of the blocks where they lie,
 * at the coordinates of a step's pending axes. It says "held" or "look closer", never "wrong". */
#ifndef SP_EXEC_PROJECTED_H
#define SP_EXEC_PROJECTED_H
#include "exec/joint.h"

/* Which random numbers a step is seen through: others in each micro-batch and training step, so
 * that a mistake which they hide in one shows in the next. */
uint64_t projected_of(const Check *c, const Step *s);
/* A product; *all is its record in the making. False: it cannot be, or something needs a closer
 * look. */
bool projected_product(Check *c, const Step *s, Compare *all);
/* In float64, an op that mixes rows of values, whose `call` on what is put together has its result
 * in the run's numbers; *m: its record in the making. False: as above. */
bool projected_mixed(const Check *c, const Step *s, const OpCall *call, Compare *m);
/* A sum over s->move.axes, at the coordinate of X that `rank` has; seen: per term, has it any
 * number but zeros? False: it cannot be, or something needs a closer look. */
bool projected_total(Check *c, const Step *s, Compare *m, const Joint *j, bool *seen);
#endif
