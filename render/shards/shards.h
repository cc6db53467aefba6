/* How a dim of a tensor is cut: parts, their sizes and owners, read from a trace's layouts. */
#ifndef SP_RENDER_SHARDS_H
#define SP_RENDER_SHARDS_H
#include "render/furniture/furniture.h"

enum { SHARDS_MAX_CUT = 6, SHARDS_MAX_PARTS = 4096 };

/* The cut of one dim: part i of n belongs to the ranks whose coordinates on `axis` (outermost
 * first) make the number i.
 */
typedef struct {
    int n_axis;
    int axis[SHARDS_MAX_CUT]; /* in t->axes */
    PlaceCut order;           /* of the outermost cut; in zigzag rank r has the pieces r and 2n-1-r,
                                 striped r, r+n, r+2n, ... */
    int64_t shift;            /* planted: ranks hold the part that many further; else 0 */
    int64_t n;                /* parts; 1: whole */
    int64_t size, *part;      /* whole, and of each part; NULL: not contiguous, or too many */
    bool uneven;
    bool rows;      /* rows of experts: which of them a rank holds follows from what is routed */
    int64_t blocks; /* packed blocks of the dim ("2*F"), each of which is cut like this; 1: none */
    const TraceShape
        *home; /* the ranks of one stage hold it: those with a local shape; NULL: all */
} DimCut;

/* From the text of TraceParam.cuts ("k:tp:chunk/d:fsdp:chunk"), or from the symbol at rest where
 * that names more axes (a dim of several letters that is cut as the list it is in memory). */
DimCut shards_param_cut(Arena *a, const Trace *t, const TraceParam *p, int dim, int64_t rank);
/* From a value's symbol "S/(cp*sp)" and its placements. */
DimCut shards_value_cut(Arena *a, const Trace *t, const TraceShape *s, int dim, int64_t rank);
/* Number of the rank's part. */
int64_t shards_part_of(const Trace *t, const DimCut *c, int64_t rank);
/* Whether the rank holds any of the tensor whose dim this is. */
bool shards_holds(const DimCut *c, int64_t rank);
/* How many ranks hold the same part of a tensor cut by r and k. */
int64_t shards_copies(const Trace *t, const DimCut *r, const DimCut *k);
/* Ranks that hold part i of the first and part j of the second cut (NULL: one cut only), as text:
 * "0,1", or, where they are no short list, the place on the mesh that they share, "tp 3". */
const char *shards_owners(Arena *a, const Trace *t, const DimCut *c, int64_t i, const DimCut *d,
                          int64_t j);
/* "tp", "cp, tp" of the axes that cut; "" if none. */
const char *shards_axes(Arena *a, const Trace *t, const DimCut *c);
/* The kind of axes, whose colour the cut has. */
AxisKind shards_axis_kind(Arena *a, const Trace *t, const DimCut *c);
/* What the rank holds of the dim as NumPy slices of the global index: "0:64", "0:8,56:64" (zigzag,
 * packed blocks), "1:64:4" (striped), ":" if whole, "none" if nothing; NULL if it is not known, or
 * another stage's. */
const char *shards_range(Arena *a, const Trace *t, const DimCut *c, int64_t rank);
/* "3 3 3 1" */
const char *shards_sizes(Arena *a, const DimCut *c);
#endif
