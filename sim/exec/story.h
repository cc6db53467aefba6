/* Stories: how a rank could have come to its block of a value. A story is an act in place of the
 * declared one, as faults plant them, and little more; whose blocks meet then, and where, its
 * pieces say, as in a run; story_tell says what the rank would hold then, story_tells whether that
 * is so on every wrong rank that is looked at. For sim/exec/cause*.c only. */
#ifndef SP_EXEC_STORY_H
#define SP_EXEC_STORY_H
#include "exec/cause.h"
#include "exec/pieces.h"

/* Wrong ranks looked at; largest group and farthest block that is tried. */
enum { STORY_LOOK = 8, STORY_GROUP = 64, STORY_SHIFT = 16 };
/* Elements of a block that are told at a time, or as many as make so many slices of it, for each of
 * which lists of positions are gone through: a wrong run must not take much more memory than a
 * right one, whose size was said beforehand. */
enum { STORY_SLICE = 1 << 16, STORY_SLICES = 64 };
/* Sets of axes that are named side by side where the numbers cannot tell them apart. */
enum { STORY_SETS = 4 };
typedef struct StorySets {
    int n; /* found; the first STORY_SETS of them are kept */
    AxisList a[STORY_SETS];
} StorySets;

/* One wrong value of one step. */
typedef struct StoryCase {
    Exec *e;
    const Mesh *m;
    const Step *s; /* NULL: a source */
    const GTensor *t;
    Arena *arena, *tmp; /* of the sentence; of one question */
    int in, out;        /* values; in: -1 for a source */
    const CauseSource *source;
    int64_t look[STORY_LOOK];
    int n_look;
    AxisList axes; /* of the move, or those that cut a source */
    int64_t n;
    const char *name; /* of the axes */
    Layout from, to;
    bool sums, max, from_cut, to_cut, one; /* one: a single number */
    Dtype dt;
    double tol; /* of a sum's magnitude */
} StoryCase;

typedef struct Story {
    Act act;      /* what is done in place of what is declared */
    int turn;     /* each block comes from the member so many places before */
    int without;  /* member of the group whose term is left out; -1: none */
    bool plain;   /* contiguous cuts where the layout has another order */
    bool own_too; /* and the own term once more */
} Story;
/* A block for the host to read, number by number, in its order (row-major). */
typedef struct StoryBlock {
    bool there; /* false: the rank has none */
    Tensor t, packed;
    Dtype dt;
    bool strided;
    int64_t n; /* elements */
} StoryBlock;
/* A slice of what the story says that a rank holds, with the magnitudes that were added. */
typedef struct StoryTold {
    int64_t from, n; /* elements of the block */
    double *x, *mag;
} StoryTold;
typedef struct StoryTelling {
    Pieces x;
    Story y;
    int64_t rank;
    Region to, part; /* all of the block; of the slice */
    Combine how;
    Tensor shape; /* of the block, as the story has it; p NULL. Of an index list it is known once
                     the slice is there */
    int64_t n;    /* its elements */
    bool begun;
    StoryTold told;
    Arena *tmp; /* of the slice */
} StoryTelling;
/* got = factor * told, but for tol times the magnitude. */
typedef struct StoryFit {
    double factor, tol;
} StoryFit;

/* The case of a wrong value `out`: its tensor, its dtype, and the wrong ranks to look at, spread
 * over all with wrong[rank] >= 0 (NULL: all ranks). in, axes, from, to are the caller's to fill. */
StoryCase story_case(Arena *arena, Exec *e, const Step *s, int out, const double *wrong);
/* What is right: what is declared is done. */
Story story_truth(const StoryCase *c);
/* The pieces of the move as the story has it. */
Pieces story_pieces(const StoryCase *c, const Story *y);
/* What the story says that the rank holds, slice by slice (w->told), at least one; lists of its
 * positions live in c->tmp. Ends with story_end. */
StoryTelling story_begin(const StoryCase *c, const Story *y, int64_t rank);
bool story_next(const StoryCase *c, StoryTelling *w);
void story_end(StoryTelling *w);
/* Is `got` what is told, of that magnitude? In bf16: is it what one rounding of that makes? NaN
 * never fits. */
bool story_fits(const StoryCase *c, double got, double told, double mag, StoryFit how);
/* Does the story explain what that rank holds? */
bool story_tells_at(StoryCase *c, const Story *y, int64_t rank, StoryFit how);
/* Does the story explain every wrong rank that is looked at? */
bool story_tells(StoryCase *c, const Story *y);
/* A layout with contiguous cuts in place of any other order. */
Layout story_plain(Layout l);

/* What a rank holds of a value (nothing where it lives elsewhere), or any tensor of the device; to
 * be closed. */
StoryBlock story_open(const StoryCase *c, int val, int64_t rank);
StoryBlock story_open_tensor(const StoryCase *c, const Tensor *t, Dtype dt);
void story_close(const StoryCase *c, StoryBlock *b);
/* Element i, as it is in double. */
double story_read(const StoryBlock *b, int64_t i);
/* The same bits; those of all elements, and as many. */
bool story_same_number(double x, double y);
bool story_same(const StoryBlock *a, const StoryBlock *b);
bool story_same_shape(const Tensor *a, const Tensor *b);
/* How many elements a slice of a block of n has at most; the slice of a region from number `from`
 * on, elements that lie side by side in it: `from` is where one ended. */
int64_t story_slice_size(int64_t n);
Region story_slice(const Region *r, int64_t from);

/* What the rounding of a sum of n terms may come to, as a part of the sum of their magnitudes:
 * (n + 8) units in the last place of c->dt, twice the bound (n - 1) u of recursive summation
 * (Higham, Accuracy and Stability of Numerical Algorithms, 4.2), as both sides round; 0 for
 * integers. */
double story_rounding(const StoryCase *c, int64_t n);
/* Two factors whose relative difference is below this are one, "exactly 4 times": a quotient of two
 * numbers that were rounded often has lost half its digits, no more (1e-3 in f32, 1e-9 in f64). */
double story_factor_tolerance(const StoryCase *c);
bool story_near(const StoryCase *c, double a, double b);
/* "exactly 4 times too large, and tp has that size: ..." if the factor k is the size of some axes
 * or one over it, with all that have it; else NULL. */
const char *story_size_factor(StoryCase *c, double k);
/* "dp*tp"; "dp or tp", `between` them " or "; "dim 1", the stored dim of a letter. */
const char *story_axes(const StoryCase *c, const AxisList *l);
const char *story_sets_text(const StoryCase *c, const StorySets *sets, const char *between);
/* One more set that explains the numbers as well. */
void story_sets_add(StorySets *sets, const AxisList *l);
const char *story_dim_name(const StoryCase *c, int letter);
/* The axes of a that are not in b; the i-th set of axes of more than one rank, false: there are no
 * more. */
AxisList story_minus(const AxisList *a, const AxisList *b);
bool story_axis_set(const Mesh *m, int i, AxisList *out);
#endif
