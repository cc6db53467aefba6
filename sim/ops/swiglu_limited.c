/* SwiGLU as GPT-OSS has it: of a packed product x[.., f, u] with gate (u = 0) and up (u = 1) side
 * by side, limit_pairs keeps gate at most at L and up within -L .. L, and swiglu_up_plus makes
 * (up + 1) gate sigmoid(alpha gate) of them. Two ops: a clamp's slope jumps, and what jumps goes
 * element by element (exec/sides.h). Numbers are made in double and rounded once. */
#include "ops/util.h"
#include <math.h>

/* ---- limit_pairs: factor is L ---- */
static double limited(double x, bool up, double most) {
    if (x > most) return most;
    return up && x < -most ? -most : x;
}
static double passes(double x, bool up, double most) { return !(x > most || (up && x < -most)); }
/* A row is a pair, so i tells which: 0 gate, 1 up. */
static void limit_row(const OpCall *c, const int64_t *i, int64_t n) {
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), oy = box_offset(&c->out, last, i);
    for (int64_t u = 0; u < n; u++)
        el_set(&c->out, c->dtype, oy + u * c->out.s[last],
               limited(el_get(&c->in[0], c->dtype, ox + u * c->in[0].s[last]), u, c->at->factor));
}
static void limit_forward(const OpCall *c) { op_each_row(c, limit_row); }
static void limit_slope_row(const OpCall *c, const int64_t *i, int64_t n) {
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), oy = box_offset(&c->out, last, i),
            og = box_offset(&c->cot, last, i);
    for (int64_t u = 0; u < n; u++)
        el_set(
            &c->out, c->dtype, oy + u * c->out.s[last],
            el_get(&c->cot, c->dtype, og + u * c->cot.s[last]) *
                passes(el_get(&c->in[0], c->dtype, ox + u * c->in[0].s[last]), u, c->at->factor));
}
static void limit_adjoint(const OpCall *c) { op_each_row(c, limit_slope_row); }
static int bends(const Attrs *at, OpBend *to) {
    to[0] = (OpBend){-at->factor, true};
    to[1] = (OpBend){at->factor, false};
    return 2;
}
/* A copy, or the limit rounded to the run's type. */
static void limit_bound(const OpBound *b) {
    if (b->operand >= 0) op_bound_copy(b);
    else op_bound_relative(b, b->call.out.p, b->u, b->u, 0);
}
const Op op_limit_pairs = {
    .name = "limit_pairs",
    .typical = "btfu!->btfu",
    .lin = LIN_NONE,
    .bends = bends,
    .forward = limit_forward,
    .adjoint = limit_adjoint,
    .bound = limit_bound,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 2,
    .label = "clamp",
};

/* ---- swiglu_up_plus: a is alpha ---- */
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
/* Element u of pair i[.., f]; of a tensor of pairs. */
static int64_t pair_offset(const Tensor *x, const int64_t *i, int u) {
    return box_offset(x, x->nd - 1, i) + u * x->s[x->nd - 1];
}
/* A row of results, each by the map of its pair. */
static void each_pair(const OpCall *c, const int64_t *lead, int64_t n,
                      double (*map)(const OpCall *c, double g, double up)) {
    int nd = c->out.nd;
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    memcpy(i, lead, sizeof *i * (size_t)(nd - 1));
    for (int64_t k = 0; k < n; k++) {
        i[nd - 1] = k;
        double g = el_get(&c->in[0], c->dtype, pair_offset(&c->in[0], i, 0)),
               up = el_get(&c->in[0], c->dtype, pair_offset(&c->in[0], i, 1));
        el_set(&c->out, c->dtype, box_offset(&c->out, nd, i), map(c, g, up));
    }
}
static double gated(const OpCall *c, double g, double up) {
    return (up + 1) * g * sigmoid(c->at->a * g);
}
static void row(const OpCall *c, const int64_t *lead, int64_t n) { each_pair(c, lead, n, gated); }
static void forward(const OpCall *c) { op_each_row(c, row); }
/* towards x: [cot (up + 1) s (1 + alpha g (1 - s)), cot g s] with s = sigmoid(alpha g) */
static void adjoint_row(const OpCall *c, const int64_t *i, int64_t n) {
    double g = el_get(&c->in[0], c->dtype, pair_offset(&c->in[0], i, 0)),
           up = el_get(&c->in[0], c->dtype, pair_offset(&c->in[0], i, 1)), z = c->at->a * g,
           s = sigmoid(z), rest = sigmoid(-z),
           cot = el_get(&c->cot, c->dtype, box_offset(&c->cot, c->cot.nd, i));
    const double d[] = {cot * (up + 1) * s * (1 + z * rest), cot * g * s};
    for (int64_t u = 0; u < n; u++)
        el_set(&c->out, c->dtype, pair_offset(&c->out, i, (int)u), d[u]);
}
static void adjoint(const OpCall *c) { op_each_row(c, adjoint_row); }
/* What an element of the result is made of: up + 1 loses digits where up is near -1, the slope
 * where it is near 0 (it is at most 1.1), sigmoid by the roundings of alpha g. */
static void bound(const OpBound *b) {
    const OpCall *c = &b->call;
    const Tensor *pairs = &c->in[0], *over = b->operand < 0 ? &c->out : &c->cot;
    const double *x = pairs->p, *y = c->out.p, fine = 0x1p-53;
    int64_t i[LAYOUT_MAX_DIMS] = {0}, n = b->operand < 0 ? 1 : 2;
    if (box_empty(&c->out)) return;
    do {
        double g = x[pair_offset(pairs, i, 0)], up = x[pair_offset(pairs, i, 1)], z = c->at->a * g,
               s = sigmoid(z), wide = fabs(up) + 1,
               cot = b->operand < 0 ? 1 : fabs(((double *)over->p)[box_offset(over, over->nd, i)]);
        const double size[] = {b->operand < 0 ? wide * fabs(g) * s
                                              : cot * wide * s * (1 + fabs(z) * sigmoid(-z)),
                               cot * fabs(g) * s};
        for (int64_t u = 0; u < n; u++) {
            int64_t at = b->operand < 0 ? box_offset(&c->out, c->out.nd, i)
                                        : pair_offset(&c->out, i, (int)u);
            b->bound[at] = 2 * b->u * fabs(y[at]) + (24 + 4 * fabs(z)) * fine * size[u] + 0x1p-140;
            b->prob[at] = b->bound[at];
        }
    } while (box_next(over->nd, over->n, i));
}
/* The integer map of --exact: depends on both values in every bit and stays small. */
static double mixed(const OpCall *c, double g, double up) {
    (void)c;
    return fmod(3 * g + 7 * up + 5, 31);
}
static void exact_row(const OpCall *c, const int64_t *lead, int64_t n) {
    each_pair(c, lead, n, mixed);
}
static void exact(const OpCall *c) { op_each_row(c, exact_row); }
const Op op_swiglu_up_plus = {
    .name = "swiglu_up_plus",
    .typical = "btfu!->btf",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .exact = exact,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 7,
    .label = "SwiGLU, up + 1",
};
