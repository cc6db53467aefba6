/* What the titles of a block picture count, and the words that name it: a block, a part of it, or
 * the model. */
#ifndef SP_RENDER_BLOCK_COUNTS_H
#define SP_RENDER_BLOCK_COUNTS_H
#include "render/graph/block_graph.h"

typedef struct {
    const char *subject; /* "a Transformer block", "the MLP", "this model" */
    int64_t count, sent; /* collectives of the pass that the rank is in, and bytes it sends */
    int64_t messages;    /* those of the collectives that are messages to or from it */
    bool travels;        /* its gradients travel in another's collective, which is not counted */
} BlockCount;
/* "the MLP" of "mlp". */
const char *block_part_words(const char *part);
/* Of strips [first, first + n). A block is counted from the records of its layer, whether drawn or
 * not; so are gradients of weights and what is made again, where the pass is backward. */
BlockCount block_count(const BlockGraph *g, int first, int n);
/* Collectives of the pass that belong to the subject and are not drawn: " Not drawn: ..."; "" if
 * none. */
const char *block_not_drawn(const BlockGraph *g, int first, int n);
/* Collectives of strips [first, first + n); returns their number. `use` has room for g->n_used. */
int block_used(const BlockGraph *g, int first, int n, const TraceCollective **use);
#endif
