/* Stories: how a rank could have come to its block of a value. A story is an act in place of the
 * declared one, as faults plant them, and little more; whose blocks meet then, and where, its
 * pieces say, as in a run; story_tell says what the rank would hold then, story_tells whether that
 * is so on every wrong rank that is looked at. For sim/exec/cause*.c only. */
#ifndef SP_EXEC_STORY_H
#define SP_EXEC_STORY_H
#include "exec/pieces.h"

/* Wrong ranks looked at; largest group and farthest block that is tried. */
enum { STORY_LOOK = 8, STORY_GROUP = 64, STORY_SHIFT = 16 };
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
    const void *full;   /* of a source */
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
typedef struct StoryTold { /* what the story says that a rank holds */
    Tensor x, mag;
} StoryTold;

/* The case of a wrong value `out`: its tensor, its dtype, and the wrong ranks to look at, spread
 * over all with wrong[rank] >= 0 (NULL: all ranks). in, axes, from, to are the caller's to fill. */
StoryCase story_case(Arena *arena, Exec *e, const Step *s, int out, const double *wrong);
/* What is right: what is declared is done. */
Story story_truth(const StoryCase *c);
/* The pieces of the move as the story has it. */
Pieces story_pieces(const StoryCase *c, const Story *y);
/* What the story says that the rank holds, with the magnitudes that were added; in c->tmp. */
StoryTold story_tell(const StoryCase *c, const Story *y, int64_t rank);
/* got = factor * told, but for tol times the magnitude? NaN never fits. */
bool story_fits(const StoryCase *c, const Tensor *got, const StoryTold *told, double factor,
                double tol);
/* Does the story explain every wrong rank that is looked at? */
bool story_tells(StoryCase *c, const Story *y);
/* A layout with contiguous cuts in place of any other order. */
Layout story_plain(Layout l);

/* Tensors as doubles, packed, in c->tmp: any tensor (or its magnitudes), what a rank holds of a
 * value, a box full of v. */
Tensor story_wide(const StoryCase *c, const Tensor *t, Dtype dt, bool magnitude);
Tensor story_held(const StoryCase *c, int val, int64_t rank, bool magnitude);
Tensor story_filled(const StoryCase *c, const Region *b, double v);
bool story_same_shape(const Tensor *a, const Tensor *b);

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
