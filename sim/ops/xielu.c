/* xIELU (arXiv 2411.13010), an activation with two scalars of its own, p and n: with a =
 * softplus(p) and z = BETA + softplus(n), y = a x^2 + BETA x above 0, and z (expm1(min(x, EPS)) -
 * x) + BETA x else. The rule "btf,h!,h!->btf" says what sharding makes of it: where f or tokens are
 * cut, the scalars' gradients are pending sums. BETA and EPS are buffers of Apertus' checkpoints,
 * which no model trains. Numbers are made in double and rounded once. */
#include "ops/util.h"
#include <math.h>

static const double BETA = 0.5, EPS = -1e-6;

static double softplus(double x) { return x > 30 ? x : log1p(exp(x)); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double scalar(const OpCall *c, int operand) { return el_get(&c->in[operand], c->dtype, 0); }
static double high(const OpCall *c) { return softplus(scalar(c, 1)); }
static double low(const OpCall *c) { return BETA + softplus(scalar(c, 2)); }
/* What the scalars multiply, above 0 and else. */
static double part_high(double x) { return x > 0 ? x * x : 0; }
static double part_low(double x) { return x > 0 ? 0 : expm1(fmin(x, EPS)) - x; }
/* a and z of a call. */
typedef struct {
    double a, z;
} Scalars;
static Scalars scalars(const OpCall *c) { return (Scalars){high(c), low(c)}; }
static double value(double x, const void *of) {
    const Scalars *s = of;
    return s->a * part_high(x) + s->z * part_low(x) + BETA * x;
}
static double slope(double x, const void *of) {
    const Scalars *s = of;
    return x > 0 ? 2 * s->a * x + BETA : s->z * ((x < EPS ? exp(x) : 0) - 1) + BETA;
}
static void forward(const OpCall *c) {
    Scalars s = scalars(c);
    op_unary(c, value, &s);
}
static void towards_x(const OpCall *c) {
    Scalars s = scalars(c);
    op_unary_adjoint(c, slope, &s);
}
/* The gradient of a scalar, sum of g times what it multiplies times softplus'; with `size` the sum
 * of the terms' magnitudes, those of expm1(x) and x counted apart. */
static double of_scalar(const OpCall *c, bool size) {
    const Tensor *x = &c->in[0], *g = &c->cot;
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    double sum = 0, factor = sigmoid(scalar(c, c->operand));
    if (box_empty(x)) return 0;
    do {
        double v = el_get(x, c->dtype, box_offset(x, x->nd, i)),
               d = el_get(g, c->dtype, box_offset(g, g->nd, i));
        double part = c->operand == 1 ? part_high(v) : part_low(v);
        if (size && c->operand == 2 && v <= 0) part = fabs(expm1(fmin(v, EPS))) + fabs(v);
        sum += size ? fabs(d * part) : d * part;
    } while (box_next(x->nd, x->n, i));
    return sum * factor;
}
static void adjoint(const OpCall *c) {
    if (c->operand == 0) towards_x(c);
    else el_set(&c->out, c->dtype, 0, of_scalar(c, false));
}

/* Roundings of double in the terms, of the run or of the recomputation, and one of the run's type.
 */
static void bound(const OpBound *b) {
    const OpCall *c = &b->call;
    const double *y = c->out.p, *x = c->in[0].p, *g = c->cot.p, fine = 0x1p-53;
    double a = high(c), z = low(c);
    int64_t n = tensor_count(&c->out), terms = tensor_count(&c->in[0]);
    for (int64_t i = 0; i < n; i++) {
        double size = 0, rate = 40 * fine;
        if (b->operand > 0) size = of_scalar(c, true), rate = 2 * gamma_n((double)terms + 20, fine);
        else {
            double v = fabs(x[i]), wide = fabs(expm1(fmin(x[i], 0)));
            size = b->operand < 0 ? a * part_high(x[i]) + z * (wide + v) + BETA * v
                                  : fabs(g[i]) * (2 * a * v + 2 * z + BETA);
        }
        b->bound[i] = b->prob[i] = 2 * b->u * fabs(y[i]) + rate * size + 0x1p-140;
    }
}
/* Integers that depend on all three in every bit, and stay small. */
static void exact(const OpCall *c) {
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    if (box_empty(&c->out)) return;
    do {
        double x = el_get(&c->in[0], c->dtype, box_offset(&c->in[0], c->out.nd, i));
        el_set(&c->out, c->dtype, box_offset(&c->out, c->out.nd, i),
               fmod(3 * x + 7 * scalar(c, 1) + 11 * scalar(c, 2) + 5, 31));
    } while (box_next(c->out.nd, c->out.n, i));
}
const Op op_xielu = {
    .name = "xielu",
    .typical = "btf,h!,h!->btf",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .exact = exact,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 6,
    .label = "xIELU",
};
