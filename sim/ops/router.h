/* Where a row of a call stands: what its index list says, as local positions. */
#ifndef SP_OPS_ROUTER_H
#define SP_OPS_ROUTER_H
#include "ops/op.h"

/* Local positions of a row's expert, sequence and position on this rank; -1: it does not hold that
 * index. */
typedef struct RowAt {
    int64_t e, b, t;
} RowAt;
RowAt row_at(const OpCall *c, int64_t row);
#endif
