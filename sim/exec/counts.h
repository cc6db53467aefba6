/* What becomes of rows that arrive where a rank tells them apart by counts that are not its own. */
#ifndef SP_EXEC_COUNTS_H
#define SP_EXEC_COUNTS_H
#include "exec/device.h"
#include "exec/pieces.h"

/* A message of rows is cut into the parts of its senders by how many rows each sends; here by how
 * many each sends to the next rank of the group. `t` [rows, ...] holds the rows `to` of `rank` as
 * they should be, packed, and afterwards what it reads: from each sender as many as it expects, one
 * sender behind the other, and where more are due nothing. Without lists, or with equal counts,
 * nothing changes. */
void counts_misread(Device *dev, const Pieces *x, int64_t rank, const Region *to, Tensor *t,
                    Dtype dt);
#endif
