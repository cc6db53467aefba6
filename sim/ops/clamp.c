/* clamp: what lies outside -c .. c becomes the nearer end, with the node's factor c (OLMo's
 * clip_qkv). A gradient passes where nothing was cut off, as torch.clamp has it. */
#include "ops/util.h"
#include <math.h>

static void row(const OpCall *c, const int64_t *i, int64_t n) {
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), oy = box_offset(&c->out, last, i);
    double end = c->at->factor;
    for (int64_t k = 0; k < n; k++) {
        double x = el_get(&c->in[0], c->dtype, ox + k * c->in[0].s[last]);
        el_set(&c->out, c->dtype, oy + k, x > end ? end : x < -end ? -end : x);
    }
}
static void forward(const OpCall *c) { op_each_row(c, row); }
static void adjoint_row(const OpCall *c, const int64_t *i, int64_t n) {
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), og = box_offset(&c->cot, last, i),
            oy = box_offset(&c->out, last, i);
    for (int64_t k = 0; k < n; k++) {
        double x = el_get(&c->in[0], c->dtype, ox + k * c->in[0].s[last]);
        double g = el_get(&c->cot, c->dtype, og + k * c->cot.s[last]);
        el_set(&c->out, c->dtype, oy + k, fabs(x) <= c->at->factor || x != x ? g : 0);
    }
}
static void adjoint(const OpCall *c) { op_each_row(c, adjoint_row); }
/* A copy, or the factor rounded to the run's type. */
static void bound(const OpBound *b) {
    if (b->operand >= 0) op_bound_copy(b);
    else op_bound_relative(b, b->call.out.p, b->u, b->u, 0);
}
const Op op_clamp = {
    .name = "clamp",
    .typical = "btkx->btkx",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .exact = op_exact_activation,
    .flops_each = 2,
    .label = "clamp",
};
