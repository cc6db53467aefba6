/* How far rounding can move attention's gradients: from what each of their sums really adds. */
#ifndef SP_OPS_ATTENTION_BOUND_H
#define SP_OPS_ATTENTION_BOUND_H
#include "ops/op.h"

/* A probability below it may have become zero, in the type whose unit roundoff is u. */
static inline double attention_tiny(double u) { return u > 0x1p-30 ? 0x1p-120 : 0x1p-1000; }
/* Fills b->bound and b->prob for the adjoint towards b->operand (0: q, 1: k, 2: v). Keys are whole
 * and ascend; queries may lie in any order, by their positions. */
void attention_bound_adjoint(const OpBound *b);
/* What that takes. */
void attention_bound_scratch(const OpBound *b, OpScratch *s);
#endif
