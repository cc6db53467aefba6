/* The move of a step on all ranks. For sim/exec only. */
#ifndef SP_EXEC_TRANSFER_H
#define SP_EXEC_TRANSFER_H
#include "exec/exec.h"

/* ST_MOVE, with its planted mistake: what every rank holds under the target layout. Groups whose
 * members hold the same blocks share the result. */
void transfer_step(Exec *e, const Step *s);
/* Every element of a packed tensor becomes v. */
void transfer_fill(Tensor *t, Dtype dt, double v);
/* Every element of a packed tensor times v. */
void transfer_scale(Tensor *t, Dtype dt, double v);
/* Level 3: every element becomes its residue in 0..p-1. Sums of residues are residues of sums, so
 * they may be taken anywhere. */
void transfer_residues(const Tensor *t, Dtype dt, double p);
#endif
