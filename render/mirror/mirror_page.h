/* Backward beside forward: what the view `block` shows of a trace that has both passes. */
#ifndef SP_RENDER_MIRROR_PAGE_H
#define SP_RENDER_MIRROR_PAGE_H
#include "render/furniture/furniture.h"
#include "render/graph/block_graph.h"

/* Pages of both passes side by side (mirror_page.c), or the page about the weights alone; returns
 * their number, 0 if the trace has no such pair. `page` has room for VIEW_MAX_PAGES. */
int view_mirror(const ViewCall *c, const BlockGraph *g, PresetKind preset, bool weights,
                Scene **page);
/* The backward program as rows of text, in the order in which it runs; NULL if the trace has none
 * that mirrors g. The totals of both passes go to *totals. */
const char *mirror_text(const BlockGraph *g, int w, const char **totals);
/* The wrong steps of both passes of what g draws. */
const WrongList *mirror_all_wrong(const BlockGraph *g);
#endif
