/* What a causal mask makes of a cut of the sequence: which pairs of query and key each rank
 * computes, as a triangle and as bars. Read from the cut of the queries and the recorded work of
 * the ranks. Refuses to draw a mask that this work is not that of. */
#ifndef SP_RENDER_SHARDS_LOAD_H
#define SP_RENDER_SHARDS_LOAD_H
#include "render/shards/shards_draw.h"

/* Is there attention of whole keys by queries that one axis cuts, with the work of a causal mask?
 */
bool shards_load(ShardPen *p);
/* Draws it from the top; returns the y under it. */
double shards_draw_load(ShardPen *p, double top);
/* The same as text; "" if there is none. */
const char *shards_load_text(ShardPen *p);
#endif
