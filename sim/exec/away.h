/* Projections of blocks that are with other ranks (far.h): what rank 0 asks for, and what the rank
 * that has the block answers. Only sums travel. It judges nothing: project.c does. */
#ifndef SP_EXEC_AWAY_H
#define SP_EXEC_AWAY_H
#include "exec/far.h"
#include "exec/project.h"

/* Asks for what e's blocks are elsewhere; of those that are here it says so. */
ProjectAway away_asks(const Exec *e);
/* Has this rank answer, from its executor. */
void away_answers(Far *f, Exec *own);
#endif
