/* From a trace to the structure of a block picture. */
#ifndef SP_RENDER_BLOCK_READ_H
#define SP_RENDER_BLOCK_READ_H
#include "render/graph/block_graph.h"

/* Reads the pass that is asked for (all: forward) of one layer as the rank that is asked for sees
 * it, in the call's arena. NULL and a diagnostic (E0211) if there is nothing. */
BlockGraph *block_read_trace(const ViewCall *c);
/* The forward pass of the layer as block_state asks for it, to name values in another view. NULL:
 * the rank has none. */
const BlockGraph *block_read_names(const ViewCall *c, int layer);
/* Makes strip `strip` a graph of its own: what it reads from elsewhere enters as an input node at
 * its head. */
void block_close_strip(BlockGraph *g, int strip);
/* Tells the nodes the number of their strip. */
void block_renumber(BlockGraph *g);
#endif
