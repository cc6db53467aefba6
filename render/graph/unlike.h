/* What one plan's block has and the other's has not, where two stand side by side (`diff A B`):
 * asked of every box, collective and shape that is drawn. Knows no places: what is there, wherever
 * it stands, is no difference. All are ALIKE where a figure stands alone. */
#ifndef SP_RENDER_UNLIKE_H
#define SP_RENDER_UNLIKE_H
#include "render/graph/block_graph.h"

/* This op for this result, with weights of this layout. */
Likeness unlike_compute(const ViewCall *c, int64_t rank, const TraceCompute *x);
/* A collective of this kind and value: its axes, size of a group and bytes that the rank sends. */
Likeness unlike_collective(const ViewCall *c, int64_t rank, const TraceCollective *x);
Likeness unlike_move(const ViewCall *c, const TraceLocalMove *x);
/* How this value lies on the other plan's rank: its layout, its sizes, what is pending. ALIKE of
 * all where most do not (g->unlike): what stands everywhere tells nothing apart. */
Likeness unlike_value(const ViewCall *c, const BlockGraph *g, const TraceValue *v);
/* Do most values of what g draws lie otherwise than in the other plan? */
bool unlike_throughout(const ViewCall *c, const BlockGraph *g);
/* Adds what the marks mean to the parts of a subtitle, NULL-terminated, of a page that has no
 * legend. */
void unlike_key(const ViewCall *c, const char **part);
/* " Its backward pass is not drawn: the other plan has none." and " Most shapes are not as in the
 * other plan and are not marked." of such graphs; else "". */
const char *unlike_words(const BlockGraph *g);
#endif
