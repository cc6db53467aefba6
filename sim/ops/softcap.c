/* softcap: y = c tanh(x / c), element by element, with the node's factor c: logits that stay within
 * -c .. c (Gemma 2, arXiv 2408.00118). Scores of attention have it inside their kernel. */
#include "ops/util.h"
#include <math.h>

static void row(const OpCall *c, const int64_t *i, int64_t n) {
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), oy = box_offset(&c->out, last, i);
    for (int64_t k = 0; k < n; k++) {
        double x = el_get(&c->in[0], c->dtype, ox + k * c->in[0].s[last]);
        el_set(&c->out, c->dtype, oy + k, c->at->factor * tanh(x / c->at->factor));
    }
}
static void forward(const OpCall *c) { op_each_row(c, row); }
/* 1 - tanh(x / c)^2 */
static void adjoint_row(const OpCall *c, const int64_t *i, int64_t n) {
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), og = box_offset(&c->cot, last, i),
            oy = box_offset(&c->out, last, i);
    for (int64_t k = 0; k < n; k++) {
        double t = tanh(el_get(&c->in[0], c->dtype, ox + k * c->in[0].s[last]) / c->at->factor);
        double g = el_get(&c->cot, c->dtype, og + k * c->cot.s[last]);
        el_set(&c->out, c->dtype, oy + k, g * (1 - t * t));
    }
}
static void adjoint(const OpCall *c) { op_each_row(c, adjoint_row); }
const Op op_softcap = {
    .name = "softcap",
    .typical = "btv->btv",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = op_bound_activation,
    .exact = op_exact_activation,
    .flops_each = 5,
    .label = "soft cap",
};
