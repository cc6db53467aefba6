/* The move of a step on all ranks. For sim/exec only. */
#ifndef SP_EXEC_TRANSFER_H
#define SP_EXEC_TRANSFER_H
#include "exec/wire.h"

/* ST_MOVE, with its planted mistake: what every rank holds under the target layout. Groups whose
 * members hold the same blocks share the result. */
void transfer_step(Exec *e, const Step *s);
/* What a rank that is here hands in as one piece of a move, and where its elements stand; packed
 * copies and lists live in `arena`. After a planted mistake a block may be shorter than its layout
 * says: then so is the region. */
Tensor transfer_piece(const WireMove *m, const Piece *one, Region *at, Arena *arena);
/* Repeats `own` until the block `out` is full: what a skipped gather leaves in the buffer. As many
 * dims; an empty block leaves zeros. */
void transfer_tile(Device *dev, Tensor *out, const Tensor *own, Dtype dt);
/* Sizes divided without remainder (`floor`): elements of the cut letter behind n equal blocks
 * become zero, rows of such experts too. `b`: where the elements of the packed block `t` stand. A
 * list stays: what it lacks is not in its region (pieces_to). */
void transfer_drop_tail(Device *dev, const Pieces *x, const Region *b, Tensor *t, Dtype dt);
#endif
