/* Which elements of a tensor a block has: per dim the global indices of its positions. Blocks are
 * copied into each other where they have the same index; nothing else matches positions.
 * A region owns an outer list: some leading letters as one dim, each position of which is one
 * combination of them, as their row-major index. A cut of a flattened stored dim (the LIST of a
 * layout) makes one from the product of its letters and those before them. Rows that an index list
 * names are such a list too, ragged as they may be: nothing here asks where a list comes from, and
 * no size is computed from a layout once a region is made. */
#ifndef SP_EXEC_REGION_H
#define SP_EXEC_REGION_H
#include "kernel/tensor.h"
#include "lower/program.h"

/* Global indices along one dim. */
typedef struct DimIndex {
    bool range;
    int64_t lo, n;
    const int64_t *list; /* if not a range */
} DimIndex;

typedef struct Region {
    const GTensor *t; /* whose letters the dims are; NULL: of no tensor, and no outer list */
    int outer;        /* leading letters that d[0] lists; 0: none, each letter is a dim */
    int nd;
    DimIndex d[LAYOUT_MAX_DIMS];
    int64_t n[LAYOUT_MAX_DIMS]; /* sizes of the dims */
} Region;

/* What a tensor's elements are where real numbers are `real`. */
static inline Dtype region_dtype(const GTensor *t, Dtype real) { return t->is_int ? DT_I64 : real; }
/* The block of `rank` under a layout; its lists live in `arena`. */
Region region_at(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank, Arena *arena);
/* How large it is, without its positions: a size for each letter, as they are before an outer list
 * is cut (packed, p NULL); */
Tensor region_letters(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank);
/* a size for each stored dim in shape[], with an outer list the first is its length. Returns the
 * number of elements: that of region_at. */
int64_t region_stored(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank,
                      int64_t *shape);
/* The same of a value in rows: these rows of it; the other dims as the layout says. */
Region region_rows(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank, DimIndex rows,
                   Arena *arena);
/* Of ascending rows those whose listed letters a rank holds under a layout. */
DimIndex region_inside(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank,
                       const DimIndex *rows, Arena *arena);
/* Ascending rows that stand in any of n ascending lists, each once. */
DimIndex region_joined(const DimIndex *lists, int64_t n, Arena *arena);
/* The dim that lists a letter, and the letter's index at position i of that dim. */
int region_dim(const Region *r, int letter);
int64_t region_letter(const Region *r, int letter, int64_t i);
/* Of ascending rows those whose letter `d`, a listed one of t, is below `end`. */
DimIndex region_below(const GTensor *t, const DimIndex *rows, int d, int64_t end, Arena *arena);
/* Do both name the same positions in the same order? */
bool region_same(const DimIndex *a, const DimIndex *b);
/* All of a tensor. */
Region region_whole(const GTensor *t);
/* A block of these sizes that is copied as it is. */
Region region_plain(const Tensor *t);
/* The same elements with the first `outer` letters as one list. */
Region region_listed(const Region *r, int outer, Arena *arena);
/* A tensor of the region's sizes, row-major, p NULL. */
Tensor region_packed(const Region *r);
/* The data of t with the region's sizes, if they are as many: letters after a list, or the other
 * way round. Else t as it is. Needs packed data, unless the sizes are the same. */
Tensor region_shaped(const Region *r, const Tensor *t);

/* After a planted mistake a block may be shorter than its layout says: what it lacks, by its sizes
 * n, is not there to be read. */
void region_clamp(Region *r, const int64_t *n);

/* A tensor and which elements it has. */
typedef struct {
    const Region *has;
    const Tensor *t;
} Block;
/* Brings the elements that both have from `src` to where they stand in `dst`: in place of what is
 * there, added to it, or the larger of the two (COMBINE_AVG is no way: of how many terms a mean is
 * does not stand here). Where only one of them has an outer list the other is read as one; `dst`
 * must be packed then. Returns how many elements were touched. */
int64_t region_copy(Block dst, Block src, Dtype dt, Combine how);
/* The same as offsets, for who copies himself: positions of dst's dims, and those of src that they
 * are made from; element (i, j, ..) stands at the sum of to[d][i_d] and comes from that of from[d].
 * Lists live in `arena`; data are not touched. False where the two do not fit without a copy of
 * src. */
typedef struct RegionPairs {
    int nd;
    int64_t n[LAYOUT_MAX_DIMS];
    int64_t *to[LAYOUT_MAX_DIMS], *from[LAYOUT_MAX_DIMS]; /* in elements */
} RegionPairs;
bool region_pairs(Block dst, Block src, Arena *arena, RegionPairs *out);
/* The elements that both have, in the order of a; lists live in `arena`. With an outer list if one
 * of them has one. */
Region region_meet(const Region *a, const Region *b, Arena *arena);
/* Calls fn for each run of elements that lie side by side in the whole tensor: the linear index of
 * the first, their number, and where they stand in the packed block. Ends with false when fn does.
 */
bool region_runs(const Region *r, bool (*fn)(void *arg, int64_t first, int64_t n, int64_t at),
                 void *arg);
/* How many elements both have. */
int64_t region_common(const Region *a, const Region *b);
/* A view of src restricted to db if that needs no copy: contiguous ranges in every dim. */
bool region_view(const Region *db, const Region *sb, const Tensor *src, Dtype dt, Tensor *out);
#endif
