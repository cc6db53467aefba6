/* What the matrix of many ranks is too fine to show: how many of them receive how much, and which
 * pairs send most. */
#ifndef SP_RENDER_SPREAD_H
#define SP_RENDER_SPREAD_H
#include "render/routing/routing.h"

/* A bar for each band of rows received, as long as its ranks are many, from the rank that receives
 * least to the one that receives most. From `at` on, `w` wide; returns its lower end. */
double spread_draw(const Routing *r, Scene *s, Pt at, double w);
/* The five pairs of ranks that send most as ribbons, as wide as their rows are many, from rank to
 * rank; nothing where no row crosses. Returns its lower end. */
double spread_pairs(const Routing *r, Scene *s, Pt at, double w);
#endif
