/* What the pages of the block view share: words about the whole figure, and the slide form. */
#ifndef SP_RENDER_BLOCK_PAGE_H
#define SP_RENDER_BLOCK_PAGE_H
#include "render/block/block_draw.h"

/* A pen for the graph on scene s, with a scene group to come for every node. */
BlockPen block_pen(const ViewCall *c, BlockGraph *g, Scene *s, const BlockLook *look);
/* Width of a strip, found by drawing it aside; its height to *height. */
double block_measure(const ViewCall *c, BlockGraph *g, const BlockLook *look,
                     const BlockFrame *frame, double *height);
/* Sentence about strips [first, first + n). */
const char *block_title(const BlockGraph *g, int first, int n);
/* "Sent per rank in one forward: sp 64 MiB in 4 collectives ..." */
const char *block_totals(const BlockGraph *g, int first, int n);
/* A frame per strip, with the names of the states it joins. */
BlockFrame *block_frames(BlockGraph *g);
/* Strips [first, first + n) in sentences, for readers who see no picture. */
const char *block_description(const BlockGraph *g, int first, int n);

/* One strip on a page of 16:9: symbolic shapes only, bytes as bars. */
Scene *block_slide(const ViewCall *c, BlockGraph *g, BlockFrame *frame);
#endif
