/* The ways to cut the ranks, drawn: a bar of time for each, and whether it fits. */
#ifndef SP_RENDER_SWEEP_ROWS_H
#define SP_RENDER_SWEEP_ROWS_H
#include "render/sweep/sweep.h"

/* How many of the slower ways a panel so high has no room for; the plan's own is always there. */
int sweep_ways_left(const Sweep *s, double h);
/* The height of a panel with all of them, or as many as look well on a page without an end. */
double sweep_rows_height(const Sweep *s);
/* The panel with its heading and its key. */
void sweep_draw_ways(Scene *scene, const Sweep *s, Area at);
#endif
