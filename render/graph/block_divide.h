/* Strips that are too long for one page of fixed height, as several chains. */
#ifndef SP_RENDER_BLOCK_DIVIDE_H
#define SP_RENDER_BLOCK_DIVIDE_H
#include "render/graph/block_graph.h"
/* A copy of the graph, in its arena, with `parts` strips in the place of strip `strip` ("MoE, 1 of
 * 2"): cut where few values pass, and placed anew. What passes a cut ends one chain and enters the
 * next as an input; the add of a piece of the residual stream becomes the last box. NULL if the
 * strip has too few levels or the graph no room. */
BlockGraph *block_divide(const BlockGraph *g, int strip, int parts);
#endif
