/* GELU, exact form: y = x Phi(x) = 0.5 x (1 + erf(x / sqrt 2)), usable as `activation: gelu`. */
#include "kernel/vec.h"
#include "ops/util.h"
#include <math.h>

static void row(const OpCall *c, const int64_t *i, int64_t n) {
    op_vec_row(c, i, n, vec_gelu_f32, vec_gelu_f64);
}
static void forward(const OpCall *c) { op_each_row(c, row); }
/* Phi(x) + x phi(x) */
static double slope(double x) {
    return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * exp(-x * x / 2) * 0.5 * M_2_SQRTPI * M_SQRT1_2;
}
static void adjoint(const OpCall *c) { op_unary_adjoint(c, slope); }
const Op op_gelu = {
    .name = "gelu",
    .typical = "btf->btf",
    .activation = "gelu",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = op_bound_activation,
    .exact = op_exact_activation,
    .flops_each = 8,
    .label = "GELU",
};
