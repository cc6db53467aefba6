/* The hyperbolic tangent, usable as `activation: tanh`. */
#include "ops/util.h"
#include <math.h>

static double hyperbolic(double x, const void *of) {
    (void)of;
    return tanh(x);
}
static void forward(const OpCall *c) { op_unary(c, hyperbolic, NULL); }
/* 1 - tanh(x)^2 */
static double slope(double x, const void *of) {
    (void)of;
    double y = tanh(x);
    return 1 - y * y;
}
static void adjoint(const OpCall *c) { op_unary_adjoint(c, slope, NULL); }
const Op op_tanh = {
    .name = "tanh",
    .typical = "btf->btf",
    .activation = "tanh",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = op_bound_activation,
    .bound_each = BOUND_EACH,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 4,
    .label = "tanh",
};
