/* Where rows of a call stand: what its index list says, as local positions. */
#ifndef SP_OPS_ROUTER_H
#define SP_OPS_ROUTER_H
#include "ops/op.h"

/* Local positions of a row's expert, sequence and position on this rank; -1: it does not hold that
 * index. */
typedef struct RowAt {
    int64_t e, b, t;
} RowAt;
RowAt row_at(const OpCall *c, int64_t row);

/* The rows of each of this rank's tokens, b * its positions + t, as a chain in ascending order of
 * experts. row_chains reads c->ids and allocates; row_chains_free frees. */
typedef struct RowChains {
    int64_t n, *first, *next; /* tokens; -1 ends a chain */
    int64_t *e;               /* of each row: the expert's local position; -1: not on this rank */
} RowChains;
RowChains row_chains(const OpCall *c);
void row_chains_free(RowChains *x);
#endif
