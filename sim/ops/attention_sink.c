/* Attention sinks (GPT-OSS; arXiv 2309.17453): one more logit per head in the softmax's
 * denominator, of a key without a value. "btkgp!,kg->btkgx": p is a result of partial attention, o
 * and the log of its softmax's sum, so y = o sigmoid(lse - sink), and neither a matrix of scores
 * nor an attention of its own is needed: parts of a ring are merged before. Numbers are made in
 * double and rounded once. */
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

/* What a row keeps of its result, and what the sink takes: of both the small one is precise. */
typedef struct {
    double keeps, takes, apart; /* apart: |lse - sink|, at most where exp has an end */
} Weights;
static Weights weights_of(double lse, double sink) {
    double d = lse - sink;
    return (Weights){1 / (1 + exp(-d)), 1 / (1 + exp(d)), fmin(fabs(d), 800)};
}
/* Offset of the sink of a row's head: the letters of operand 1 in those of operand 0. */
static int64_t sink_offset(const OpCall *c, const int64_t *i) {
    int64_t o = 0;
    for (int d = 0; d < c->rule->nl[1]; d++)
        o += i[rule_find(c->rule, 0, c->rule->in[1][d])] * c->in[1].s[d];
    return o;
}
/* Row i of the heads' results: n elements of o, then the lse. */
typedef struct {
    Weights w;
    int64_t o, cot, n;
} Row;
static Row row_of(const OpCall *c, const int64_t *i) {
    const Tensor *x = &c->in[0];
    Row r = {.o = box_offset(x, x->nd - 1, i), .n = x->n[x->nd - 1] - 1};
    if (c->cot.p) r.cot = box_offset(&c->cot, x->nd - 1, i);
    r.w = weights_of(el_get(x, c->dtype, r.o + r.n * x->s[x->nd - 1]),
                     el_get(&c->in[1], c->dtype, sink_offset(c, i)));
    return r;
}
/* The sum over the row of cot o, or of its terms' magnitudes. */
static double product(const OpCall *c, const Row *r, bool size) {
    const Tensor *x = &c->in[0], *g = &c->cot;
    double sum = 0;
    for (int64_t k = 0; k < r->n; k++) {
        double t = el_get(x, c->dtype, r->o + k * x->s[x->nd - 1]) *
                   el_get(g, c->dtype, r->cot + k * g->s[g->nd - 1]);
        sum += size ? fabs(t) : t;
    }
    return sum;
}
static void forward_row(const OpCall *c, const int64_t *i, int64_t n) {
    Row r = row_of(c, i);
    int64_t at = box_offset(&c->out, c->out.nd - 1, i);
    for (int64_t k = 0; k < n; k++)
        el_set(&c->out, c->dtype, at + k * c->out.s[c->out.nd - 1],
               r.w.keeps * el_get(&c->in[0], c->dtype, r.o + k * c->in[0].s[c->in[0].nd - 1]));
}
static void forward(const OpCall *c) { op_each_row(c, forward_row); }

/* d o = w do, d lse = w (1 - w) sum do o. */
static void towards_row(const OpCall *c, const int64_t *i, int64_t n) {
    Row r = row_of(c, i);
    int last = c->out.nd - 1;
    int64_t at = box_offset(&c->out, last, i);
    for (int64_t k = 0; k + 1 < n; k++)
        el_set(&c->out, c->dtype, at + k * c->out.s[last],
               r.w.keeps * el_get(&c->cot, c->dtype, r.cot + k * c->cot.s[last]));
    el_set(&c->out, c->dtype, at + (n - 1) * c->out.s[last],
           r.w.keeps * r.w.takes * product(c, &r, false));
}
/* Adds term(row) of every row to its head's sum. */
static void each_head(const OpCall *c, double *sum, double (*term)(const OpCall *c, const Row *r)) {
    const Tensor *x = &c->in[0];
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    if (box_empty(x)) return;
    do {
        int64_t at = 0;
        Row r = row_of(c, i);
        for (int d = 0; d < c->rule->nl[1]; d++)
            at = at * c->out.n[d] + i[rule_find(c->rule, 0, c->rule->in[1][d])];
        sum[at] += term(c, &r);
    } while (box_next(x->nd - 1, x->n, i));
}
static double gradient(const OpCall *c, const Row *r) {
    return -r->w.keeps * r->w.takes * product(c, r, false);
}
/* d sink = - sum over the rows of its head of w (1 - w) do o. */
static void towards_sinks(const OpCall *c) {
    int64_t heads = tensor_count(&c->out), i[LAYOUT_MAX_DIMS] = {0}, at = 0;
    double *sum = base_malloc(base_mul((size_t)heads + 1, sizeof *sum));
    memset(sum, 0, (size_t)heads * sizeof *sum);
    each_head(c, sum, gradient);
    if (heads) do
            el_set(&c->out, c->dtype, box_offset(&c->out, c->out.nd, i), sum[at++]);
        while (box_next(c->out.nd, c->out.n, i));
    free(sum);
}
static void adjoint(const OpCall *c) {
    if (c->operand == 0) op_each_row(c, towards_row);
    else towards_sinks(c);
}

/* A weight is off by the roundings of exp and of the quotient, and by what the difference that exp
 * is taken of is; each result is one rounding of what double makes. */
static double rate_of(const OpBound *b, const Row *r) {
    return 3 * b->u + (20 + 2 * r->w.apart) * 0x1p-53;
}
static void bound_rows(const OpBound *b) {
    const OpCall *c = &b->call;
    int last = c->out.nd - 1;
    int64_t i[LAYOUT_MAX_DIMS] = {0}, n = c->out.n[last];
    const double *y = c->out.p;
    do {
        Row r = row_of(c, i);
        int64_t at = box_offset(&c->out, last, i);
        double rate = rate_of(b, &r);
        for (int64_t k = 0; k < n; k++) b->bound[at + k] = rate * fabs(y[at + k]) + 0x1p-140;
        if (b->operand == 0)
            b->bound[at + n - 1] +=
                (2 * rate + (double)n * 0x1p-52) * r.w.keeps * r.w.takes * product(c, &r, true);
        for (int64_t k = 0; k < n; k++) b->prob[at + k] = b->bound[at + k];
    } while (box_next(last, c->out.n, i));
}
static double magnitude(const OpCall *c, const Row *r) {
    return r->w.keeps * r->w.takes * product(c, r, true) * (1 + r->w.apart / 16);
}
static void bound_sinks(const OpBound *b) {
    const OpCall *c = &b->call;
    int64_t heads = tensor_count(&c->out), rows = tensor_count(&c->in[0]);
    const double *y = c->out.p;
    for (int64_t k = 0; k < heads; k++) b->bound[k] = 0;
    each_head(c, b->bound, magnitude);
    for (int64_t k = 0; k < heads; k++) {
        b->bound[k] = 2 * b->u * fabs(y[k]) + 2 * gamma_n((double)rows + 40, 0x1p-53) * b->bound[k];
        b->bound[k] += 0x1p-140;
        b->prob[k] = b->bound[k];
    }
}
static void bound(const OpBound *b) {
    if (box_empty(&b->call.out)) return;
    if (b->operand == 1) bound_sinks(b);
    else bound_rows(b);
}
/* Integers that depend on all three in every bit, and stay small. */
static void exact_row(const OpCall *c, const int64_t *i, int64_t n) {
    const Tensor *x = &c->in[0];
    int last = c->out.nd - 1;
    Row r = row_of(c, i);
    int64_t at = box_offset(&c->out, last, i);
    double lse = el_get(x, c->dtype, r.o + r.n * x->s[last]),
           sink = el_get(&c->in[1], c->dtype, sink_offset(c, i));
    for (int64_t k = 0; k < n; k++)
        el_set(&c->out, c->dtype, at + k * c->out.s[last],
               fmod(el_get(x, c->dtype, r.o + k * x->s[last]) + 7 * lse + 3 * sink + 5, 31));
}
static void exact(const OpCall *c) { op_each_row(c, exact_row); }
const Op op_attention_sink = {
    .name = "attention_sink",
    .rule = "btkgp!,kg->btkgx",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .exact = exact,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 5,
    .label = "sink",
};
