/* What goes round a ring: whose block of keys and values (or of what they are made of) each rank
 * has at which turn, as a table that the same tones fill along its diagonals. Read from the records
 * of the hops. Refuses a ring that a mistake of the plan breaks, and more ranks than a page has
 * rows for. */
#ifndef SP_RENDER_SHARDS_RING_H
#define SP_RENDER_SHARDS_RING_H
#include "render/shards/shards_draw.h"

/* Do values of the pen's layer go round a ring? */
bool shards_ring(ShardPen *p);
/* Draws it from the top; returns the y under it. */
double shards_draw_ring(ShardPen *p, double top);
/* The same as text; "" if there is none. */
const char *shards_ring_text(ShardPen *p);
#endif
