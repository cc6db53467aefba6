/* Places the nodes of one strip: ops that abut, twins drawn as one, levels from top to bottom,
 * columns from left to right. */
#ifndef SP_RENDER_BLOCK_PLACE_H
#define SP_RENDER_BLOCK_PLACE_H
#include "render/graph/block_graph.h"
/* Fills level, column and twin of the nodes of strip `strip`. */
void block_place(BlockGraph *g, int strip);
/* The same of nodes that were placed in another strip: those that abut, and twins, stay one. */
void block_place_again(BlockGraph *g, int strip);

/* Node `above` stands on a higher level than node `below`. */
typedef struct {
    int above, below;
} BlockAbove;
typedef struct {
    int n, cap;
    BlockAbove *pair;
} BlockHops;
/* Is it a hop of a ring? */
bool block_is_hop(const TraceCollective *c);
/* What stands above and below each hop of the strip, so that work with one block stands together
 * (block_hops.c). */
BlockHops block_hops(const BlockGraph *g, const BlockStrip *s);
/* Leaves of three or more hops of a ring the first, if the work with each block is the same and no
 * step is wrong: what comes after the last reads of it. True: it did, place the strip again. */
bool block_fold_hops(BlockGraph *g, int strip);
#endif
