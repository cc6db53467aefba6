/* GELU, exact form: y = x Phi(x) = 0.5 x (1 + erf(x / sqrt 2)), usable as `activation: gelu`. */
#include "kernel/vec.h"
#include "ops/util.h"
#include <math.h>

static void row(const OpCall *c, const int64_t *i, int64_t n) {
    int64_t ox = box_offset(&c->in[0], c->out.nd - 1, i),
            oy = box_offset(&c->out, c->out.nd - 1, i);
    if (c->dtype == DT_F32) vec_gelu_f32(n, (const float *)c->in[0].p + ox, (float *)c->out.p + oy);
    else vec_gelu_f64(n, (const double *)c->in[0].p + ox, (double *)c->out.p + oy);
}
static void forward(const OpCall *c) { op_each_row(c, row); }
/* Phi(x) + x phi(x) */
static double slope(double x) {
    return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * exp(-x * x / 2) * 0.5 * M_2_SQRTPI * M_SQRT1_2;
}
static void adjoint(const OpCall *c) { op_unary_adjoint(c, slope); }
static double flops(const OpCall *c) { return 8 * (double)tensor_count(&c->out); }
const Op op_gelu = {
    .name = "gelu",
    .typical = "btf->btf",
    .activation = "gelu",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = op_bound_activation,
    .exact = op_exact_activation,
    .flops = flops,
    .label = "GELU",
    .glyph = "box",
};
