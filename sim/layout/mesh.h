/* The mesh: ranks as points of a grid of named axes, and named groups of axes.
 * Axes are listed outermost (slowest) first; rank = row-major index of its coordinates. An axis may
 * be split into sub-axes (`tp` -> `tp.0`, `tp.1`) so that a part of it can cut another dim. Refuses
 * to know about tensors. */
#ifndef SP_LAYOUT_MESH_H
#define SP_LAYOUT_MESH_H
#include "base/arena.h"

enum { MESH_MAX_AXES = 12, MESH_MAX_RANKS = 1 << 20 };

/* Two coordinates of an axis, the lower first; equal (0, 0): no pair. */
typedef struct {
    uint8_t low, high;
} AxisPair;
/* An ordered list of axes, by index into the mesh. Of `paired` (1 + the axis; 0: of none) only the
 * two coordinates of `pair` are in the group. */
typedef struct {
    int n;
    uint8_t a[MESH_MAX_AXES];
    uint8_t paired;
    AxisPair pair;
} AxisList;

typedef struct {
    const char *name; /* "tp", or "tp.0" for the outer part of a split axis */
    int64_t size;
    int64_t stride;     /* rank distance of neighbours on this axis */
    const char *parent; /* "tp" for "tp.0"; else NULL */
} MeshAxis;

typedef struct {
    const char *name;
    AxisList axes;
} MeshGroup;

typedef struct Mesh {
    int naxes;
    MeshAxis axis[MESH_MAX_AXES];
    int64_t nranks;
    int ngroups;
    MeshGroup group[32]; /* named groups, after the split of axes */
} Mesh;

/* Fills strides and nranks from names and sizes (each at least 1). False if the product of sizes
 * overflows int64. */
bool mesh_finish(Mesh *m);
/* Index of the axis of that name, or -1. */
int mesh_axis(const Mesh *m, const char *name);
/* The axes that a name stands for: an axis, a group, or a split axis (its sub-axes in order). False
 * if unknown. */
bool mesh_lookup(const Mesh *m, const char *name, AxisList *out);
/* The same of a product, "dp*cp": in that order, those that there are. False if none is. */
bool mesh_product(const Mesh *m, const char *text, AxisList *out);
/* Splits axis `name` into an outer part of size `outer` and the rest, in place; groups follow.
 * False, and nothing is changed, if there is no such axis, `outer` does not divide its size, it is
 * a part already, or there are MESH_MAX_AXES. */
bool mesh_split(Mesh *m, Arena *arena, const char *name, int64_t outer);
/* Coordinate of a rank on axis a. */
static inline int64_t mesh_coord(const Mesh *m, int64_t rank, int a) {
    return rank / m->axis[a].stride % m->axis[a].size;
}
/* The axes of a list as a set, bit a for axis a; and the listed axes of a set, outermost first. */
uint32_t mesh_axes_set(const AxisList *l);
AxisList mesh_set_axes(const Mesh *m, uint32_t set);
/* Ranks in a group over the listed axes: the product of their sizes, 1 for none. */
int64_t mesh_size(const Mesh *m, const AxisList *l);
/* Index of `rank` (0 to nranks - 1) inside its group over the listed axes, row-major in list order.
 * A rank that a pair leaves out is counted as if it were at the pair's lower coordinate. */
int64_t mesh_index_in(const Mesh *m, const AxisList *l, int64_t rank);
/* The rank that has index i, 0 to mesh_size - 1, in the group of `rank` over the listed axes. */
int64_t mesh_member(const Mesh *m, const AxisList *l, int64_t rank, int64_t i);
/* Is the rank in any group over the axes: at one of the pair's coordinates, if there is one? */
bool mesh_takes_part(const Mesh *m, const AxisList *l, int64_t rank);
/* The same axes in the same order, and the same pair? */
bool mesh_same_axes(const AxisList *a, const AxisList *b);
/* Adds entry k of another list, with its pair. */
static inline void mesh_add_axis(AxisList *l, const AxisList *of, int k) {
    l->a[l->n++] = of->a[k];
    if (of->paired == of->a[k] + 1) l->paired = of->paired, l->pair = of->pair;
}
/* How people write the axes: "tp", "dp*cp"; complete runs of sub-axes are written as their parent;
 * axes of size 1 are left out unless `keep_ones`; a named group that equals the list is NOT
 * substituted. */
const char *mesh_axes_text(const Mesh *m, Arena *arena, const AxisList *l, bool keep_ones);
#endif
