/* What the pages of the block view share: words about the whole figure, and the slide form. */
#ifndef SP_RENDER_BLOCK_PAGE_H
#define SP_RENDER_BLOCK_PAGE_H
#include "render/block/block_draw.h"

BlockPen block_pen(const ViewCall *c, BlockGraph *g, Scene *s, const BlockLook *look);
/* Width of a strip, found by drawing it aside; its height to *height. */
double block_measure(const ViewCall *c, BlockGraph *g, const BlockLook *look,
                     const BlockFrame *frame, double *height);
/* Sentence about strips [first, first + n). */
const char *block_title(const BlockGraph *g, int first, int n);
/* Collectives of those strips; returns their number. `use` has room for g->n_used. */
int block_used(const BlockGraph *g, int first, int n, const TraceCollective **use);
void block_subtitle(const BlockGraph *g, const RenderOptions *o, const char **part);
/* "Sent per rank in one forward: sp 64 MiB in 4 collectives ..." */
const char *block_totals(const BlockGraph *g, const char *pass, int first, int n);
/* A frame per strip, with the names of the states it joins. */
BlockFrame *block_frames(BlockGraph *g);
const char *block_description(const BlockGraph *g, int first, int n);

/* One strip on a page of 16:9: symbolic shapes only, bytes as bars. `index` of `count` pages. */
Scene *block_slide(const ViewCall *c, BlockGraph *g, BlockFrame *frame, int index, int count);
/* One row of the text form: words of the step, symbolic shape, shape on the rank, bytes; what is
 * too wide moves to a line that starts with `rail`. */
void block_text_row(Str *out, const BlockGraph *g, const char *rail, const char *step,
                    const TraceValue *v);
/* The backward program as rows of text, in the order in which it runs; NULL if the trace has none
 * that mirrors g. The totals of both passes go to *totals. */
/* The wrong steps of both passes of what g draws. */
const WrongList *mirror_all_wrong(const BlockGraph *g);
const char *mirror_text(const BlockGraph *g, const char **totals);

/* Backward beside forward (mirror_page.c), or the page about the weights alone; returns the number
 * of pages, 0 if the trace has no such pair. */
int view_mirror(const ViewCall *c, const BlockGraph *g, PresetKind preset, bool weights,
                Scene **page);
#endif
