/* How far a value of another implementation in bf16 may be from this one's: by what bf16 makes of
 * it, measured on the unsharded model. Its run in bf16 is as far from the float64 one as rounding
 * takes it, value by value, and another implementation, which rounds at other places, is about as
 * far. Held to transformers' Llama in bf16, 8 to 256 wide and 1 to 6 layers deep (docs/proof.md).
 * Refuses later training steps, whose activations follow from parameters that differ, and what a
 * rank holds a share of. */
#ifndef SP_DRIVE_ROUNDED_H
#define SP_DRIVE_ROUNDED_H
#include "drive/values.h"

/* Of one value: the largest difference of a number, the root of the sum of their squares, and the
 * part of it along the value itself, which is what a factor makes: roundings do not line up. */
typedef struct Rounded {
    double most, norm, along;
    bool apart;   /* the rounding of the value itself comes on top */
    double *each; /* what each number may be off beyond the tolerance of its dtype, and nothing else
                     is said; NULL: there is no such list */
} Rounded;
/* `s` has the unsharded runs in float64 and in bf16 (`narrow`). False: nothing is known of this
 * value. */
bool rounded_allows(const ValueSet *s, const ValueKey *k, Rounded *out);
/* Of a parameter after steps of an optimizer with two moments, which divides each gradient by its
 * own size: where rounding decides the sign the element goes the other way, by twice the learning
 * rate a step. An eighth of the n elements may (seen: a twentieth), or as many as bf16 is off by
 * more than their gradient is. False: `k` is no such value. */
bool rounded_steps(const ValueSet *s, const Program *p, const ValueKey *k, int64_t n, Rounded *out);
/* Of a parameter's gradient, or of what the one step of such an optimizer makes of it, in a file of
 * another type: of each number, how far it is from ours where rounding moves its gradient as far
 * as it can. Of a step that is all of twice the learning rate where nothing else is left of the
 * gradient. `each` is malloc'ed for the caller. False: `k` is no such value, or there is no
 * gradient here that lies as it does. */
bool rounded_each(const ValueSet *s, const Program *p, const ValueKey *k, Dtype dtype,
                  Rounded *out);
/* Is it such a gradient, or made of one? */
bool rounded_of_gradient(const Program *p, const ValueKey *k);
/* Raises it to what two roundings of the n numbers that are wanted can do, or adds that. */
void rounded_own(Rounded *r, const double *want, int64_t n);
/* Of numbers, the root of the sum of their squares; what of x is along y, 0 where y is. */
double rounded_norm(const double *x, int64_t n);
double rounded_along(const double *x, const double *y, int64_t n);
#endif
