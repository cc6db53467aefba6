/* How many rows an expert takes; see capacity.c. */
#ifndef SP_OPS_CAPACITY_H
#define SP_OPS_CAPACITY_H
#include "ops/op.h"

/* Of each group of tokens, by number, the rows that an expert takes of it; malloc'ed. *groups: how
 * many there are. A rank has all tokens of its own groups. */
int64_t *capacity_rooms(const OpCall *c, int64_t *groups);
#endif
