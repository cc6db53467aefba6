/* SwiGLU of a packed projection: y = silu(x_0) x_1, where x[.., u, f] holds gate (u = 0) and up (u
 * = 1) of one product, as in models that store both weights as one. The rule "btu!f->btf" says the
 * whole story: f may be cut, the pair may not, so that a cut which puts gates on one rank and ups
 * on another is undone first, or refused. */
#include "ops/util.h"
#include <math.h>

/* Offset of x[.., u, f] for the output index i[.., f]. */
static int64_t pair_offset(const Tensor *x, const int64_t *i, int nd, int u) {
    int64_t o = u * x->s[nd - 1] + i[nd - 1] * x->s[nd];
    for (int d = 0; d + 1 < nd; d++) o += i[d] * x->s[d];
    return o;
}
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static void row(const OpCall *c, const int64_t *lead, int64_t n) {
    int nd = c->out.nd;
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    memcpy(i, lead, sizeof *i * (size_t)(nd - 1));
    int64_t gate = pair_offset(&c->in[0], i, nd, 0), up = pair_offset(&c->in[0], i, nd, 1),
            step = c->in[0].s[nd];
    int64_t y = box_offset(&c->out, nd - 1, i), out = c->out.s[nd - 1];
    for (int64_t k = 0; k < n; k++) {
        double g = el_get(&c->in[0], c->dtype, gate + k * step);
        el_set(&c->out, c->dtype, y + k * out,
               g * sigmoid(g) * el_get(&c->in[0], c->dtype, up + k * step));
    }
}
static void forward(const OpCall *c) { op_each_row(c, row); }
/* towards x: [cot x_1 silu'(x_0), cot silu(x_0)] */
static void adjoint(const OpCall *c) {
    int nd = c->cot.nd;
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    if (box_empty(&c->out)) return;
    do {
        double g = el_get(&c->in[0], c->dtype, pair_offset(&c->in[0], i, nd, 0)), s = sigmoid(g);
        double up = el_get(&c->in[0], c->dtype, pair_offset(&c->in[0], i, nd, 1));
        double cot = el_get(&c->cot, c->dtype, box_offset(&c->cot, nd, i));
        el_set(&c->out, c->dtype, pair_offset(&c->out, i, nd, 0), cot * up * s * (1 + g * (1 - s)));
        el_set(&c->out, c->dtype, pair_offset(&c->out, i, nd, 1), cot * g * s);
    } while (box_next(nd, c->cot.n, i));
}
/* Forward a few u of |y|; the adjoint of |cot x_1| (silu' is at most about 1.1) and of |result|. */
static void bound(const OpBound *b) {
    if (b->operand < 0) {
        op_bound_pointwise(b);
        return;
    }
    int nd = b->call.cot.nd;
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    const double *x = b->call.in[0].p, *cot = b->call.cot.p, *out = b->call.out.p;
    if (box_empty(&b->call.out)) return;
    do {
        double up = x[pair_offset(&b->call.in[0], i, nd, 1)],
               g = cot[box_offset(&b->call.cot, nd, i)];
        int64_t at = pair_offset(&b->call.out, i, nd, 0),
                other = pair_offset(&b->call.out, i, nd, 1);
        b->bound[at] = b->prob[at] = 16 * b->u * fabs(g * up) + 0x1p-140;
        b->bound[other] = b->prob[other] = 16 * b->u * fabs(out[other]) + 0x1p-140;
    } while (box_next(nd, b->call.cot.n, i));
}
/* The integer map of --exact: depends on both values in every bit and stays small. */
static void exact(const OpCall *c) {
    int nd = c->out.nd;
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    if (box_empty(&c->out)) return;
    do {
        double g = el_get(&c->in[0], c->dtype, pair_offset(&c->in[0], i, nd, 0));
        double up = el_get(&c->in[0], c->dtype, pair_offset(&c->in[0], i, nd, 1));
        el_set(&c->out, c->dtype, box_offset(&c->out, nd, i), fmod(3 * g + 7 * up + 5, 31));
    } while (box_next(nd, c->out.n, i));
}
const Op op_swiglu = {
    .name = "swiglu",
    .typical = "btu!f->btf",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .exact = exact,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 5,
    .label = "SwiGLU",
};
