/* Places the nodes of one strip: ops that abut, twins drawn as one, levels from top to bottom,
 * columns from left to right. */
#ifndef SP_RENDER_BLOCK_PLACE_H
#define SP_RENDER_BLOCK_PLACE_H
#include "render/graph/block_graph.h"
/* Fills level, column and twin of the nodes of strip `strip`. */
void block_place(BlockGraph *g, int strip);
/* The same of nodes that were placed in another strip: those that abut, and twins, stay one. */
void block_place_again(BlockGraph *g, int strip);
#endif
