/* GELU, exact form: y = x Phi(x) = 0.5 x (1 + erf(x / sqrt 2)), usable as `activation: gelu`, and
 * its approximation by tanh (`gelu_pytorch_tanh`). */
#include "kernel/vec.h"
#include "ops/util.h"
#include <math.h>

static void row(const OpCall *c, const int64_t *i, int64_t n) {
    op_vec_row(c, i, n, vec_gelu_f32, vec_gelu_f64);
}
static void forward(const OpCall *c) { op_each_row(c, row); }
/* Phi(x) + x phi(x) */
static double slope(double x, const void *of) {
    (void)of;
    return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * exp(-x * x / 2) * 0.5 * M_2_SQRTPI * M_SQRT1_2;
}
static void adjoint(const OpCall *c) { op_unary_adjoint(c, slope, NULL); }

/* y = 0.5 x (1 + tanh z) = x / (1 + exp(-2 z)), z = sqrt(2/pi) (x + 0.044715 x^3): the second form
 * cancels nothing. */
static double z_of(double x) { return M_SQRT2 * M_2_SQRTPI / 2 * (x + 0.044715 * x * x * x); }
static double by_tanh(double x, const void *of) {
    (void)of;
    return x / (1 + exp(-2 * z_of(x)));
}
static void tanh_forward(const OpCall *c) { op_unary(c, by_tanh, NULL); }
/* s + x s (1 - s) 2 dz/dx, s = 1 / (1 + exp(-2 z)); 1 - s by its own exponential, which may be
 * infinite: then it is 0. */
static double tanh_slope(double x, const void *of) {
    (void)of;
    double z = z_of(x), s = 1 / (1 + exp(-2 * z)), rest = 1 / (1 + exp(2 * z));
    return s + x * s * rest * M_SQRT2 * M_2_SQRTPI * (1 + 3 * 0.044715 * x * x);
}
static void tanh_adjoint(const OpCall *c) { op_unary_adjoint(c, tanh_slope, NULL); }
/* An error of 4u in z moves s by 8u |z| of itself, and its slope by a few u |z| exp(-2|z|), at most
 * as much as the rest. */
static void tanh_bound(const OpBound *b) {
    const double *y = b->call.out.p, *x = b->call.in[0].p, *g = b->call.cot.p;
    int64_t n = tensor_count(&b->call.out);
    for (int64_t i = 0; i < n; i++)
        b->bound[i] = b->prob[i] =
            (b->operand < 0 ? (8 + 8 * fabs(z_of(x[i]))) * fabs(y[i]) : 24 * fabs(g[i])) * b->u +
            0x1p-140;
}
const Op op_gelu_tanh = {
    .name = "gelu_tanh",
    .typical = "btf->btf",
    .activation = "gelu_pytorch_tanh",
    .lin = LIN_NONE,
    .forward = tanh_forward,
    .adjoint = tanh_adjoint,
    .bound = tanh_bound,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 10,
    .label = "GELU (tanh)",
};
const Op op_gelu = {
    .name = "gelu",
    .typical = "btf->btf",
    .activation = "gelu",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = op_bound_activation,
    .bound_each = BOUND_EACH,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 8,
    .label = "GELU",
};
