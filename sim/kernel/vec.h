/* Element-wise and row-wise kernels with a fixed order of operations: the same bits on every
 * instruction set, whatever the row's neighbours. Sums over a row use 16 lanes (lane = index mod
 * 16) folded pairwise; exp is our own (f32: within 2 ulp, exact 0 below -104, +inf above 88.73; NaN
 * passes). `x` and `y` are contiguous rows of n >= 0 elements. Sums of nothing are 0.
 */
#ifndef SP_KERNEL_VEC_H
#define SP_KERNEL_VEC_H
#include <stdint.h>
#define VEC_DECL(R, T)                                                                             \
    void vec_exp_##R(int64_t n, const T *x, T *y); /* y = exp(x) */                                \
    T vec_sum_##R(int64_t n, const T *x);                                                          \
    T vec_dot_##R(int64_t n, const T *x, const T *y);                                              \
    T vec_max_##R(int64_t n, const T *x);                           /* -inf for n = 0 */           \
    void vec_silu_##R(int64_t n, const T *x, T *y);                 /* x * sigmoid(x) */           \
    void vec_silu_mul_##R(int64_t n, const T *g, const T *u, T *y); /* silu(g) * u */              \
    void vec_sigmoid_##R(int64_t n, const T *x, T *y);                                             \
    void vec_gelu_##R(int64_t n, const T *x, T *y); /* exact gelu, 0.5 x (1 + erf(x/sqrt 2)) */    \
    void vec_rmsnorm_##R(int64_t n, const T *x, const T *w, T eps,                                 \
                         T *y);                                /* w x / sqrt(mean(x^2) + eps) */   \
    void vec_add_##R(int64_t n, const T *x, const T *z, T *y); /* y = x + z */                     \
    void vec_softmax_##R(int64_t n, T *x,                                                          \
                         T scale) /* in place: softmax(scale * x); n = 0 does nothing */
VEC_DECL(f32, float);
VEC_DECL(f64, double);
#endif
