/* Who holds which part of each weight, as a grid of ranks for the terminal. Refuses to show more
 * than four parts of a dim: of more the first three and the last. */
#ifndef SP_RENDER_SHARDS_GRID_H
#define SP_RENDER_SHARDS_GRID_H
#include "render/shards/shards.h"

/* The grids of the n parameters: those that lie alike share one, under their names. As seen from
 * `rank`, whose layout says which dims are cut; lines of at most w columns. In `a`. */
const char *shards_grid_text(Arena *a, const Trace *t, const TraceParam *const *p, int n,
                             int64_t rank, int w);
#endif
