/* Weights of all experts in one, [E, rows, columns], as the experts that they are: a matrix for
 * each, or a stack for those that lie together where they are many, part by part of the cut that
 * deals them out. One scale for all, their own. */
#ifndef SP_RENDER_SHARDS_EXPERTS_H
#define SP_RENDER_SHARDS_EXPERTS_H
#include "render/shards/shards_draw.h"

/* Has the pen's layer any? */
bool shards_experts(const ShardPen *p);
/* Draws them from the top; returns the y under them. */
double shards_draw_experts(ShardPen *p, double top);
#endif
