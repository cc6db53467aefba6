/* Level 3 (--exact): integers in place of all real numbers, forward and backward, so that whatever
 * the order of summation each value of the ranks is that of the unsharded program by bits. It
 * refuses to run the optimizer. */
#ifndef SP_EXEC_EXACT_H
#define SP_EXEC_EXACT_H
#include "exec/reference.h"

/* Integer data through the program of c's ranks, all micro-batches in the order of the schedule,
 * for `seeds` seeds. Each step's output is compared with that of the unsharded program, which runs
 * every micro-batch by itself; a gradient that is added up with the sum of theirs. Adds a check
 * record a step and micro-batch, and one for each sum. `m` is the model of a micro-batch. */
void exact_check(Check *c, const Plan *p, const Model *m, const FullSource *like, int seeds);
#endif
