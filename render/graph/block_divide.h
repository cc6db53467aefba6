/* Strips that are too long for one page of fixed height, as several chains. */
#ifndef SP_RENDER_BLOCK_DIVIDE_H
#define SP_RENDER_BLOCK_DIVIDE_H
#include "render/graph/block_graph.h"
/* How many boxes the strip has that can be on one piece or another. */
int block_boxes(const BlockGraph *g, int strip);
/* A copy of the graph, in its arena, with two strips in the place of strip `strip` ("MoE, 1 of 2"):
 * its first `boxes` boxes in the order of the program, and the rest, both placed anew. What passes
 * the cut ends one chain and enters the next as an input; the add of a piece of the residual stream
 * becomes the last box. NULL if there are no boxes on one side or the graph has no room. */
BlockGraph *block_divide(const BlockGraph *g, int strip, int boxes);
/* How many values of the first `boxes` boxes, and of what the strip begins with, the rest reads. */
int block_passing(const BlockGraph *g, int strip, int boxes);
#endif
