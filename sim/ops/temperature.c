/* temperature: queries times 1 + b log(floor((pos + 1) / chunk) + 1) by their global positions, as
 * Llama 4 does in layers without rotation (so that attention over long texts stays sharp). Linear;
 * a pending sum passes through it. */
#include "ops/util.h"
#include <math.h>

static double factor_at(const OpCall *c, int64_t pos) {
    return 1 + c->at->b * log((double)((pos + 1) / c->at->chunk) + 1);
}
/* Whole numbers that differ between the steps. */
static double exact_factor_at(const OpCall *c, int64_t pos) {
    return (double)(1 + (pos + 1) / c->at->chunk % 12);
}
static void times(const OpCall *c, const Tensor *x, double (*factor)(const OpCall *, int64_t)) {
    const Tensor *y = &c->out;
    int last = y->nd - 1, t_at = rule_find_out(c->rule, 't');
    int64_t i[LAYOUT_MAX_DIMS] = {0}, n = y->n[last];
    if (box_empty(y)) return;
    do {
        double f = factor(c, op_position_in(c, i[0], i[t_at]));
        int64_t ox = box_offset(x, last, i), oy = box_offset(y, last, i);
        for (int64_t k = 0; k < n; k++)
            el_set(y, c->dtype, oy + k * y->s[last], f * el_get(x, c->dtype, ox + k * x->s[last]));
    } while (box_next(last, y->n, i));
}
static void forward(const OpCall *c) { times(c, &c->in[0], factor_at); }
static void adjoint(const OpCall *c) { times(c, &c->cot, factor_at); }
static void exact(const OpCall *c) { times(c, &c->in[0], exact_factor_at); }
static void exact_adjoint(const OpCall *c) { times(c, &c->cot, exact_factor_at); }
/* Two roundings (the product in double, then the run's type), and that of the factor. */
static void bound(const OpBound *b) {
    op_bound_relative(b, b->call.out.p, 4 * b->u, 4 * b->u, least_of(b->u));
}
const Op op_temperature = {
    .name = "temperature",
    .typical = "btkgx->btkgx",
    .lin = LIN_SET,
    .lin_set = 1,
    .asks = RULE_BIT('t'),
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .exact = exact,
    .exact_adjoint = exact_adjoint,
    .flops_each = 1,
    .label = "temperature",
    .glyph = "times",
};
