/* Which coordinates of the mesh's axes give the same local shapes, and the sets of ranks that
 * follow. A million ranks are a handful of parts per axis. */
#ifndef SP_EXEC_CLASSES_H
#define SP_EXEC_CLASSES_H
#include "lower/program.h"
#include "trace/trace.h"

typedef struct {
    int64_t first, part;
} PartRun;
/* For each listed axis a partition of its coordinates; parts are numbered in the order of their
 * first coordinates. */
typedef struct AxisParts {
    AxisList axes;
    int n[MESH_MAX_AXES];          /* parts, per place in `axes` */
    int n_runs[MESH_MAX_AXES];     /* coordinates next to each other are mostly of one part: */
    PartRun *run[MESH_MAX_AXES];   /* where each run of them begins, ascending, the first at 0 */
    int64_t *first[MESH_MAX_AXES]; /* the first coordinate of each part */
} AxisParts;

typedef struct RankSets RankSets; /* sets of ranks that were asked for before */
/* Sets of ranks of this mesh, made once each; in the arena. */
RankSets *classes_sets(Arena *arena, const Mesh *m);

/* Adds the axes over which the local sizes of this layout differ from rank to rank. */
void classes_uneven(const Mesh *m, const GTensor *t, const Layout *l, AxisList *out);
/* Coordinates of one part give the value the same local shape, whatever the other coordinates are.
 */
AxisParts classes_of_value(Arena *arena, const Mesh *m, const GTensor *t, const Layout *l);
/* One part for each listed axis. */
AxisParts classes_even(Arena *arena, const AxisList *axes);
/* Every coordinate of each listed axis is a part of its own. */
AxisParts classes_apart(Arena *arena, const Mesh *m, const AxisList *axes);
/* Cuts the parts of p further, so that those of q (whose axes p has) are unions of them. */
void classes_refine(Arena *arena, AxisParts *p, const AxisParts *q);
/* Combinations of parts, in row-major order, and the first rank of one. */
int64_t classes_count(const AxisParts *p);
int64_t classes_rank(const Mesh *m, const AxisParts *p, int64_t combination);
/* Values of equal sizes under the same layout lie alike: 126 layers ask once. A number for each
 * kind, from 0; its parts, as classes_of_value says; how many kinds were met. */
int classes_alike(RankSets *s, const GTensor *t, const Layout *l);
const AxisParts *classes_parts(const RankSets *s, int alike);
int classes_kinds(const RankSets *s);
/* The whole mesh as a box. */
RankBox classes_mesh(const Mesh *m);
/* The ranks whose combination of parts is marked in in[classes_count(p)], combinations in row-major
 * order: runs of rank numbers, or boxes of the mesh. Belongs to `s` and lives in its arena; the
 * same question has the same answer, made once. All ranks where no axis is listed. Never fails. */
RankSet classes_ranks(RankSets *s, const AxisParts *p, const bool *in);
#endif
