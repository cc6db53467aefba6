/* scale: a value times a constant of its node (means, signs, shares). Linear, so a pending sum
 * passes through it. */
#include "ops/util.h"
#include <math.h>

static void times(const OpCall *c, const Tensor *x, double factor) {
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    int nd = c->out.nd;
    if (box_empty(&c->out)) return;
    do
        el_set(&c->out, c->dtype, box_offset(&c->out, nd, i),
               factor * el_get(x, c->dtype, box_offset(x, nd, i)));
    while (box_next(nd, c->out.n, i));
}
static void scale_forward(const OpCall *c) { times(c, &c->in[0], c->at->factor); }
static void scale_adjoint(const OpCall *c) { times(c, &c->cot, c->at->factor); }
/* Two roundings at most (the product in double, then the run's type), of the run or of the
 * recomputation. */
static void scale_bound(const OpBound *b) {
    const double *y = b->call.out.p;
    int64_t n = tensor_count(&b->call.out);
    for (int64_t i = 0; i < n; i++)
        b->bound[i] = b->prob[i] = 2 * b->u * fabs(y[i]) + least_of(b->u);
}
/* A whole number from 1 to 12 that depends on the factor: no residue is lost modulo 13 or 31. */
static double exact_factor(const OpCall *c) {
    int e;
    return 1 + fmod(floor(frexp(fabs(c->at->factor), &e) * 1000) + (c->at->factor < 0), 12);
}
static void scale_exact(const OpCall *c) { times(c, &c->in[0], exact_factor(c)); }
static void scale_exact_adjoint(const OpCall *c) { times(c, &c->cot, exact_factor(c)); }
const Op op_scale = {
    .name = "scale",
    .typical = "bt->bt",
    .lin = LIN_SET,
    .lin_set = 1,
    .forward = scale_forward,
    .adjoint = scale_adjoint,
    .bound = scale_bound,
    .exact = scale_exact,
    .exact_adjoint = scale_exact_adjoint,
    .flops_each = 1,
    .label = "scale",
    .glyph = "times",
};
