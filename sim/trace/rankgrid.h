/* Sets of ranks as boxes of a mesh, and the cells that several of them cut it into: what is asked
 * of a million ranks is asked of a few cells. Refuses to know why ranks belong together. */
#ifndef SP_TRACE_RANKGRID_H
#define SP_TRACE_RANKGRID_H
#include "trace/trace.h"

/* The same ranks as disjoint boxes of the mesh (a box with all axes whole, n > 0); ranks that it
 * does not have are left out. A run that steps unevenly over an axis is one box for each rank. In
 * `arena`. */
RankSet rankset_as_boxes(Arena *arena, const RankBox *mesh, const RankSet *set);

/* Each axis is cut where any of the sets begins or ends: each set is whole cells. */
typedef struct RankGrid RankGrid;
/* A mesh of no axes stands for `ranks` ranks in a row. Lives in `arena`. */
RankGrid *grid_new(Arena *arena, const RankBox *mesh, int64_t ranks, const RankSet *const *set,
                   int n);
/* Cells of the whole mesh, each of ranks that all sets have or have not together. */
int64_t grid_cells(const RankGrid *g);
/* Calls `see` with each cell of one of the sets once. */
void grid_visit(const RankGrid *g, const RankSet *set, void (*see)(void *arg, int64_t cell),
                void *arg);
/* The ranks of ascending cells, which are numbered in the order of their first ranks. In `arena`.
 */
RankSet grid_set(const RankGrid *g, Arena *arena, const int64_t *cell, int64_t n);
#endif
