/* counts: of each sequence and expert the rows of the sequence's micro-batch, of an index list.
 * What an einsum of the list counts in a micro-batch by itself, this counts in a batch that has
 * them all; whoever sums over sequences with it has each micro-batch's own product. Refuses to know
 * how a batch is cut otherwise than in equal parts, one after the other. No gradient. */
#include "ops/router.h"
#include "ops/util.h"

static void counts_forward(const OpCall *c) {
    int64_t nb = c->out.n[0], ne = c->out.n[1], parts = c->at->parts > 1 ? c->at->parts : 1;
    for (int64_t b = 0; b < nb; b++)
        for (int64_t e = 0; e < ne; e++)
            el_set(&c->out, c->dtype, b * c->out.s[0] + e * c->out.s[1], 0);
    for (int64_t r = 0; r < c->ids.n[0]; r++) {
        RowAt row = row_at(c, r);
        int64_t part = row.b * parts / nb;
        for (int64_t b = 0; b < nb; b++) {
            int64_t at = b * c->out.s[0] + row.e * c->out.s[1];
            if (b * parts / nb == part)
                el_set(&c->out, c->dtype, at, el_get(&c->out, c->dtype, at) + 1);
        }
    }
}
const Op op_counts = {
    .name = "counts",
    .rule = "[eb!t!]->be",
    .lin = LIN_NONE,
    .nodiff = 1,
    .forward = counts_forward,
    .bound = op_bound_copy,
    .exact = op_exact_same,
    .label = "rows per expert",
};
