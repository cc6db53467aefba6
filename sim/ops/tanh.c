/* The hyperbolic tangent, usable as `activation: tanh`. */
#include "ops/util.h"
#include <math.h>

static void row(const OpCall *c, const int64_t *i, int64_t n) {
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), oy = box_offset(&c->out, last, i);
    for (int64_t k = 0; k < n; k++)
        el_set(&c->out, c->dtype, oy + k,
               tanh(el_get(&c->in[0], c->dtype, ox + k * c->in[0].s[last])));
}
static void forward(const OpCall *c) { op_each_row(c, row); }
/* 1 - tanh(x)^2 */
static double slope(double x) {
    double y = tanh(x);
    return 1 - y * y;
}
static void adjoint(const OpCall *c) { op_unary_adjoint(c, slope); }
const Op op_tanh = {
    .name = "tanh",
    .typical = "btf->btf",
    .activation = "tanh",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = op_bound_activation,
    .exact = op_exact_activation,
    .flops_each = 4,
    .label = "tanh",
};
