/* A layout is an index map with a type.
 * For each dim of a value: the ordered list of mesh axes that cut it, outermost first, and how. For
 * each axis that cuts no dim: the type of the copies over it: I (equal, equal uses), R (equal, uses
 * differ), P (pending sum), M (pending max); or AT one coordinate of it: only there the value is,
 * the other ranks hold nothing (stages of a pipeline). Copies and terms may be at two coordinates
 * of an axis alone (a pair: what two stages share). "Varying" is derived (the axis cuts a dim)
 * and never stored. Dims are atomic letters; a last pseudo-dim LIST cuts the flattened product of
 * the letters that make up one stored dim (FSDP on a composite dim), or, with `flat`, all of the
 * value as it lies in a buffer behind others (ZeRO). */
#ifndef SP_LAYOUT_LAYOUT_H
#define SP_LAYOUT_LAYOUT_H
#include "layout/mesh.h"

enum { LAYOUT_MAX_DIMS = 8, LAYOUT_MAX_ENTRIES = 8 };

typedef enum { CUT_CHUNK, CUT_ZIGZAG, CUT_STRIPED, N_CUTS } CutHow;
typedef struct {
    uint8_t axis : 4;
    uint8_t how : 3;   /* CutHow */
    uint8_t ghost : 1; /* the dim is cut here, but this rank holds all the pieces */
    uint8_t shift; /* the rank holds the piece of the one so many places before (a ring's hops) */
} Entry;

typedef enum { TY_V = 0, TY_I, TY_R, TY_P, TY_M, TY_AT, TY_KINDS } AxisType;

/* A buffer in which values lie one behind the other, and whose ranges ranks hold. */
typedef struct Flat {
    int64_t first, total; /* where the value's elements begin, and those of the buffer; total 0:
                             there is none */
} Flat;
typedef struct Layout {
    Flat flat;                      /* of what LIST cuts, where that is a buffer */
    uint8_t ndim;                   /* letters, without LIST */
    uint8_t n[LAYOUT_MAX_DIMS + 1]; /* entries per dim; index ndim is LIST */
    Entry e[LAYOUT_MAX_DIMS + 1][LAYOUT_MAX_ENTRIES];
    uint8_t type[MESH_MAX_AXES];  /* AxisType of each axis; TY_V for those that cut a dim */
    uint16_t at[MESH_MAX_AXES];   /* the coordinate of axes of type TY_AT; else 0 */
    AxisPair pair[MESH_MAX_AXES]; /* of types I, R, P: the only two coordinates that hold the value;
                                     none: all do */
    uint16_t list;                /* the stored dim that LIST cuts; 0 where it cuts none */
} Layout;

/* A layout with `ndim` dims (0 to LAYOUT_MAX_DIMS) that cuts nothing; every axis of the mesh has
 * type `t`. */
Layout layout_whole(const Mesh *m, int ndim, AxisType t);
/* Dim that `axis` cuts (ghosts do not count; ndim means LIST), or -1. */
int layout_where(const Layout *l, int axis);
/* Adds a cut of `dim` by `axis` innermost. The axis must not cut another dim. Ends the run (exit
 * 70) where the dim has LAYOUT_MAX_ENTRIES cuts. */
void layout_cut(Layout *l, int dim, int axis, CutHow how);
/* Adds a cut by `axis` of a stored dim as the one list that its letters make; innermost. */
void layout_cut_list(Layout *l, int axis, int stored);
/* Adds a cut by `axis` of the buffer in which the value lies; innermost. */
void layout_cut_flat(Layout *l, int axis, const Flat *flat);
/* The range of a value's N elements that `rank` holds of a buffer: how many, and the first to *lo.
 * The buffer's total must be a multiple of the ranks that cut it. */
int64_t layout_flat_range(const Mesh *m, const Layout *l, int64_t N, int64_t rank, int64_t *lo);
/* The letters that LIST stands for, of a value with stored[] letters in its stored dims: how many,
 * and the first to *first. */
static inline int layout_list_letters(const Layout *l, const uint8_t *stored, int *first) {
    *first = 0;
    for (int d = 0; d < l->list; d++) *first += stored[d];
    return l->flat.total ? l->ndim : stored[l->list];
}
/* Takes the axis out of whatever it cuts and gives it type t. Trailing ghosts are dropped. */
void layout_set_type(Layout *l, int axis, AxisType t);
/* The value is at one coordinate of the axis (below 65,536), which cuts none of its dims. */
void layout_place(Layout *l, int axis, int64_t coordinate);
/* The value has copies at two coordinates of the axis (below 256, unlike), of type t: I, R or P. */
void layout_pair(Layout *l, int axis, int64_t a, int64_t b, AxisType t);
static inline bool layout_paired(const Layout *l, int axis) { return l->pair[axis].high > 0; }
/* Adds an axis to a group: of it the pair where there is one. */
static inline void layout_add_axis(const Layout *l, int axis, AxisList *out) {
    out->a[out->n++] = (uint8_t)axis;
    if (layout_paired(l, axis)) out->paired = (uint8_t)(axis + 1), out->pair = l->pair[axis];
}
/* Does the rank hold any of it? False of those that are elsewhere on an axis of type AT, or not in
 * its pair. */
bool layout_holds(const Mesh *m, const Layout *l, int64_t rank);
/* The first rank that does. */
int64_t layout_first(const Mesh *m, const Layout *l);
/* Moves the axis' cut to another dim, innermost and contiguous; nothing where it cuts none, cuts
 * that one already, or there is no such letter. */
void layout_recut(Layout *l, int axis, int dim);
/* Equal as index maps with types, and a hash of the same: unused entries are zero. */
bool layout_eq(const Layout *a, const Layout *b);
uint64_t layout_hash(const Layout *l);
/* Layout of the cotangent: cuts and places stay, I<->I, R<->P; its own inverse. A pending max has
 * no dual: its adjoint is the op's business. */
Layout layout_dual(const Layout *l);

/* Whose piece coordinate c of the entry's axis holds: its own, or that of a place before. */
static inline int64_t layout_owner(const Mesh *m, const Entry *e, int64_t c) {
    int64_t n = m->axis[e->axis].size;
    return e->shift ? (c + n - e->shift % n) % n : c;
}
/* Length of what coordinate c of the entry's axis holds of a list of N (ghosts apart). */
int64_t layout_piece(const Mesh *m, const Entry *e, int64_t N, int64_t c);
/* Local size of a dim of global size N on `rank` (for LIST: N = the local flattened size). */
int64_t layout_dim_size(const Mesh *m, const Layout *l, int dim, int64_t N, int64_t rank);
/* Local sizes of all letters of a value with global sizes N[ndim] on `rank`, into out[ndim]. A size
 * may be 0. */
void layout_local(const Mesh *m, const Layout *l, const int64_t *N, int64_t rank, int64_t *out);
/* Global indices along one dim. */
typedef struct {
    int64_t n;
    const int64_t *at; /* [n] */
} IndexList;
/* Those of `dim` (of global size N) that `rank` holds, ascending unless zigzag says otherwise; in
 * `arena`. With ghosts the list is sorted. */
IndexList layout_index(const Mesh *m, const Layout *l, int dim, int64_t N, int64_t rank,
                       Arena *arena);
/* The axes that cut a dim (ndim: LIST), without ghosts, outermost first. */
AxisList layout_dim_axes(const Layout *l, int dim);

/* The words of CutHow: "contiguous", "zigzag", "striped". */
extern const char *const layout_orders[N_CUTS];
/* The order in which the dims of a value are cut: that which is not contiguous, if one is. */
const char *layout_order(const Layout *l);

/* A short text for messages and tests: "[b:dp,t:cp~z/tp,.] tp:P". letters may be NULL. */
const char *layout_text(const Mesh *m, const Layout *l, const char *letters, Arena *arena);
#endif
