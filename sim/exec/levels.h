/* A step's result held element by element: by bits against the unsharded kernel (level 1), and in
 * float64 within a bound that no order of summation can break (level 2). It records nothing. */
#ifndef SP_EXEC_LEVELS_H
#define SP_EXEC_LEVELS_H
#include "exec/joint.h"

/* What is seen: by bits, and in float64. */
typedef struct Levels {
    Compare bits, local;
    /* A quick check asks of an op in slices that is held by bits only some slices in float64 as
     * well, unless each is asked for; some: it did, and if anything was odd each has to be. */
    bool each, some;
} Levels;
Levels levels_new(const Check *c, const Step *s, bool each);
/* The level that what a step makes is held by: the one place that decides. A bound where ranks add
 * up terms in an order of their own: reductions, and f32 products whose sum the plan splits (in f64
 * their terms are exact enough to be held by bits); and where a device's kernels have orders of
 * their own. Everything else is held by bits; so are the copies of a reduced value among each
 * other. */
CheckLevel levels_of(const Check *c, const Step *s);
/* An op or its adjoint, and a sum of two values, at the coordinate of j. */
void levels_op(Check *c, const Step *s, const Joint *j, Levels *seen);
void levels_sum(Check *c, const Step *s, const Joint *j, Levels *seen);
/* Bounds of what the ranks hold of a value, from those of what is computed. */
void levels_round(const Check *c, int val, int64_t n, double *want, double *bound, double *prob);
#endif
