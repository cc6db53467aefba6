/* Memory against the batch, drawn: a bar for each batch, stacked by what lies there, under the line
 * of what the machine has. */
#ifndef SP_RENDER_SWEEP_BARS_H
#define SP_RENDER_SWEEP_BARS_H
#include "render/sweep/sweep.h"

/* How many of the smallest batches a panel so wide has no room for. */
int sweep_hidden(const Sweep *s, double w);
/* Has the plan's bar a scale of its own in a panel so wide? */
bool sweep_own_scale(const Sweep *s, double w);
/* The panel with its heading and its axes. */
void sweep_draw_batches(Scene *scene, const Sweep *s, Area at);
/* The key of the inks from x, y on, w wide; returns the y under it. */
double sweep_draw_key(Scene *s, const Sweep *w, Band at);
#endif
