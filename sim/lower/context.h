/* Context parallelism around attention: what its operands are brought to before the strategies
 * look. For sim/lower only. */
#ifndef SP_LOWER_CONTEXT_H
#define SP_LOWER_CONTEXT_H
#include "lower/moves.h"

/* Brings the operands in[] of a node that mixes positions to a cut of heads in place of the
 * sequence, over the axes of `context_parallel: ulysses`. Other nodes: nothing. */
void context_enter(Lower *l, const GNode *n, int *in);
/* `context_parallel: latent`: brings what keys and values are made of to the node that makes them:
 * round the ring to the block that it is of, over the other axes of the sequence whole. Other
 * nodes: nothing. */
void context_latent(Lower *l, const GNode *n, int *in);
/* The result of the module whose attention that was goes back to the ranks of its tokens. */
void context_leave(Lower *l, const GNode *n, Phase pass);
#endif
