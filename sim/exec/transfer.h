/* The move of a step on all ranks. For sim/exec only. */
#ifndef SP_EXEC_TRANSFER_H
#define SP_EXEC_TRANSFER_H
#include "exec/exec.h"

/* ST_MOVE, with its planted mistake: what every rank holds under the target layout. Groups whose
 * members hold the same blocks share the result. */
void transfer_step(Exec *e, const Step *s);
#endif
