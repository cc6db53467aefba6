/* Values of the shards picture: a row for what lies alike, a ruler per dim, which works for any
 * number of dims. On a wide page two rows stand beside each other: what a collective takes and what
 * it leaves, with the collective between them (what one leaves and another takes stands in both
 * lines); what no collective moves fills the lines in pairs.
 * Gradients and states of one cut are one row, whatever their sizes: each lies as its weight. */
#ifndef SP_RENDER_SHARDS_VALUES_H
#define SP_RENDER_SHARDS_VALUES_H
#include "render/shards/shards_draw.h"

/* Lines of rows that the layer's values take on the pen's page. */
int shards_values(ShardPen *p);
/* How many of them, from line `from` on, make a page of at most `most`: sections stay together
 * where they can, and one that needs several pages has as many lines on each. */
int shards_values_page(ShardPen *p, int from, int most);
/* Draws lines [from, from + count) from y on; returns the y under them. */
double shards_draw_values(ShardPen *p, int from, int count, double y);
/* What a page of those lines is called: their headings, "A · B", of a section that goes on on
 * another page with the values that it begins and ends with, "A: x to y"; "" if there are none. */
const char *shards_values_title(ShardPen *p, int from, int count);
/* Adds sentences on what those lines show and no word in them says: hatches, the order of a zigzag,
 * rows of experts. */
void shards_values_words(ShardPen *p, int from, int count, Str *s);
#endif
