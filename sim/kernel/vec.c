/* The public element-wise and row-wise kernels: each passes its row to the chosen instruction set
 * (see vec.inc, where the order of operations is fixed). Nothing here allocates or fails. */
#include "kernel/vec.h"
#include "kernel/isa.h"

#define VEC_DEFINE(R, T)                                                                           \
    void vec_exp_##R(int64_t n, const T *x, T *y) { kernel_current()->R->exp(n, x, y); }           \
    T vec_sum_##R(int64_t n, const T *x) { return kernel_current()->R->sum(n, x); }                \
    T vec_dot_##R(int64_t n, const T *x, const T *y) { return kernel_current()->R->dot(n, x, y); } \
    T vec_max_##R(int64_t n, const T *x) { return kernel_current()->R->max(n, x); }                \
    void vec_silu_##R(int64_t n, const T *x, T *y) { kernel_current()->R->silu(n, x, y); }         \
    void vec_silu_mul_##R(int64_t n, const T *g, const T *u, T *y) {                               \
        kernel_current()->R->silu_mul(n, g, u, y);                                                 \
    }                                                                                              \
    void vec_sigmoid_##R(int64_t n, const T *x, T *y) { kernel_current()->R->sigmoid(n, x, y); }   \
    void vec_gelu_##R(int64_t n, const T *x, T *y) { kernel_current()->R->gelu(n, x, y); }         \
    void vec_rmsnorm_##R(int64_t n, const T *x, const T *w, T eps, T *y) {                         \
        kernel_current()->R->rmsnorm(n, x, w, eps, y);                                             \
    }                                                                                              \
    void vec_add_##R(int64_t n, const T *x, const T *z, T *y) {                                    \
        kernel_current()->R->add(n, x, z, y);                                                      \
    }                                                                                              \
    void vec_softmax_##R(int64_t n, T *x, T scale) {                                               \
        if (n <= 0) return;                                                                        \
        T l = kernel_current()->R->expsum(n, x, scale);                                            \
        kernel_current()->R->scale(n, x, 1 / l, x);                                                \
    }
VEC_DEFINE(f32, float)
VEC_DEFINE(f64, double)
