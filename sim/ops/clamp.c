/* clamp: what lies outside -c .. c becomes the nearer end, with the node's factor c (OLMo's
 * clip_qkv). A gradient passes where nothing was cut off, as torch.clamp has it. */
#include "ops/util.h"
#include <math.h>

static double nearest(double x, const void *of) {
    double end = *(const double *)of;
    return x > end ? end : x < -end ? -end : x;
}
static void forward(const OpCall *c) { op_unary(c, nearest, &c->at->factor); }
static double slope(double x, const void *of) { return fabs(x) <= *(const double *)of || x != x; }
static void adjoint(const OpCall *c) { op_unary_adjoint(c, slope, &c->at->factor); }
static int bends(const Attrs *at, OpBend *to) {
    to[0] = (OpBend){-at->factor, true};
    to[1] = (OpBend){at->factor, false};
    return 2;
}
/* A copy, or the factor rounded to the run's type. */
static void bound(const OpBound *b) {
    if (b->operand >= 0) op_bound_copy(b);
    else op_bound_relative(b, b->call.out.p, b->u, b->u, 0);
}
const Op op_clamp = {
    .name = "clamp",
    .typical = "btkx->btkx",
    .lin = LIN_NONE,
    .bends = bends,
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 2,
    .label = "clamp",
};
