/* What one plan's block has and the other's has not, where two stand side by side (`diff A B`):
 * asked of every box, collective and shape that is drawn. Knows no places: what is there, wherever
 * it stands, is no difference. All say false where a figure stands alone. */
#ifndef SP_RENDER_UNLIKE_H
#define SP_RENDER_UNLIKE_H
#include "render/graph/block_graph.h"

/* Does the other plan do no such step: this op for this result, with weights of this layout? */
bool unlike_compute(const ViewCall *c, int64_t rank, const TraceCompute *x);
/* No such collective of this value: kind, axes, size of a group and bytes that the rank sends? */
bool unlike_collective(const ViewCall *c, int64_t rank, const TraceCollective *x);
bool unlike_move(const ViewCall *c, const TraceLocalMove *x);
/* Does this value nowhere lie so on the other plan's rank: its layout, its sizes, what is pending?
 * False of all where most do not (g->unlike): what stands everywhere tells nothing apart. */
bool unlike_value(const ViewCall *c, const BlockGraph *g, const TraceValue *v);
/* Do most values of what g draws lie otherwise than in the other plan? */
bool unlike_throughout(const ViewCall *c, const BlockGraph *g);
/* Adds what the marks mean to the parts of a subtitle, NULL-terminated, of a page that has no
 * legend. */
void unlike_key(const ViewCall *c, const char **part);
/* " Most shapes are not as in the other plan and are not marked." of such a graph; else "". */
const char *unlike_words(const BlockGraph *g);
#endif
