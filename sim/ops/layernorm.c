/* LayerNorm over the last letter of operand 0: y = w (x - m) / sqrt(var + eps), m and var the mean
 * and the variance of the row. Without the operand w ("btd!->btd") every weight is 1 (OLMo);
 * layernorm_plus multiplies by 1 + w (Nemotron). A bias is an addition of its own. Numbers are made
 * in double and rounded once. */
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

extern const Op op_layernorm_plus;
static double weight_at(const OpCall *c, int64_t k) {
    if (c->rule->nin < 2) return 1;
    return el_get(&c->in[1], c->dtype, k * c->in[1].s[0]) + (c->op == &op_layernorm_plus);
}
/* A row of x: its mean, 1 / sqrt(var + eps), and the mean of |x|. */
typedef struct {
    double mean, r, size;
} Row;
static double at(const OpCall *c, const Tensor *x, int64_t o, int64_t k) {
    return el_get(x, c->dtype, o + k * x->s[x->nd - 1]);
}
static Row measure(const OpCall *c, int64_t o) {
    const Tensor *x = &c->in[0];
    int64_t n = x->n[x->nd - 1];
    Row row = {0};
    double var = 0;
    for (int64_t k = 0; k < n; k++) {
        row.mean += at(c, x, o, k) / (double)n;
        row.size += fabs(at(c, x, o, k)) / (double)n;
    }
    for (int64_t k = 0; k < n; k++) var += pow(at(c, x, o, k) - row.mean, 2) / (double)n;
    row.r = 1 / sqrt(var + c->at->eps);
    return row;
}
static double normed(const OpCall *c, int64_t o, const Row *row, int64_t k) {
    return (at(c, &c->in[0], o, k) - row->mean) * row->r;
}

static void forward_row(const OpCall *c, const int64_t *i, int64_t n) {
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), oy = box_offset(&c->out, last, i);
    Row row = measure(c, ox);
    for (int64_t k = 0; k < n; k++)
        el_set(&c->out, c->dtype, oy + k, normed(c, ox, &row, k) * weight_at(c, k));
}
static void forward(const OpCall *c) { op_each_row(c, forward_row); }

/* With g = dy w: the mean of g and of g xh, and of their magnitudes. */
typedef struct {
    double g, gx, size_g, size_gx;
} Means;
static Means means_of(const OpCall *c, int64_t ox, int64_t og, const Row *row, int64_t n) {
    Means m = {0};
    for (int64_t k = 0; k < n; k++) {
        double g = at(c, &c->cot, og, k) * weight_at(c, k) / (double)n, xh = normed(c, ox, row, k);
        m.g += g;
        m.gx += g * xh;
        m.size_g += fabs(g);
        m.size_gx += fabs(g * xh);
    }
    return m;
}
/* dx = r (g - mean(g) - xh mean(g xh)) */
static void adjoint_row(const OpCall *c, const int64_t *i, int64_t n) {
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), og = box_offset(&c->cot, last, i),
            oy = box_offset(&c->out, last, i);
    Row row = measure(c, ox);
    Means m = means_of(c, ox, og, &row, n);
    for (int64_t k = 0; k < n; k++) {
        double g = at(c, &c->cot, og, k) * weight_at(c, k);
        el_set(&c->out, c->dtype, oy + k, row.r * (g - m.g - normed(c, ox, &row, k) * m.gx));
    }
}
/* How far a normed element may be off, relative to 1 + its magnitude, and r relative to itself:
 * the difference to the mean, and the sums. */
static double off(const Row *row, double x, int64_t n) {
    return 2 * gamma_n((double)n + 8, 0x1p-53) * ((fabs(x) + row->size) * row->r + 1);
}
/* dw = sum over rows of dy xh, rows in order, to sum[n]; the same of magnitudes and of how far they
 * may be off, to `wide` unless it is NULL. */
static void sum_rows(const OpCall *c, double *sum, double *wide) {
    const Tensor *x = &c->in[0];
    int nd = x->nd - 1;
    int64_t n = x->n[nd], i[LAYOUT_MAX_DIMS] = {0};
    for (int64_t k = 0; k < n; k++) sum[k] = 0;
    for (int64_t k = 0; k < n && wide; k++) wide[k] = 0;
    if (box_empty(x)) return;
    double rate = gamma_n((double)(tensor_count(x) / n) + 8, 0x1p-53);
    do {
        int64_t ox = box_offset(x, nd, i), og = box_offset(&c->cot, nd, i);
        Row row = measure(c, ox);
        for (int64_t k = 0; k < n; k++) {
            double g = at(c, &c->cot, og, k), xh = normed(c, ox, &row, k);
            sum[k] += g * xh;
            if (wide)
                wide[k] += fabs(g) * (rate * fabs(xh) + off(&row, at(c, x, ox, k), n)) +
                           fabs(g * xh) * off(&row, 0, n);
        }
    } while (box_next(nd, x->n, i));
}
static void adjoint(const OpCall *c) {
    if (c->operand == 0) {
        op_each_row(c, adjoint_row);
        return;
    }
    int64_t n = c->out.n[0];
    double *sum = base_malloc((size_t)(n ? n : 1) * sizeof *sum);
    sum_rows(c, sum, NULL);
    for (int64_t k = 0; k < n; k++) el_set(&c->out, c->dtype, k * c->out.s[0], sum[k]);
    free(sum);
}

/* ---- bound: roundings of double, of the run and of the recomputation; one of the run's type ----
 */
static void bound_row(const OpBound *b, const int64_t *i, int64_t n) {
    const OpCall *c = &b->call;
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), oy = box_offset(&c->out, last, i), og = 0;
    Row row = measure(c, ox);
    Means m = {0};
    if (b->operand == 0) {
        og = box_offset(&c->cot, last, i);
        m = means_of(c, ox, og, &row, n);
    }
    for (int64_t k = 0; k < n; k++) {
        double xh = fabs(normed(c, ox, &row, k)), far = off(&row, at(c, &c->in[0], ox, k), n),
               near = off(&row, row.size, n), w = fabs(weight_at(c, k)), size;
        if (b->operand < 0) size = w * (far + xh * near);
        else {
            double g = fabs(at(c, &c->cot, og, k)) * w;
            size = row.r * ((g + m.size_g + xh * m.size_gx) * 2 * near + far * m.size_gx +
                            xh * near * (m.size_g + m.size_gx));
        }
        double y = fabs(((const double *)c->out.p)[oy + k]);
        b->bound[oy + k] = b->prob[oy + k] = 2 * b->u * y + 2 * size + 0x1p-140;
    }
}
static void bound(const OpBound *b) {
    const OpCall *c = &b->call;
    int64_t i[LAYOUT_MAX_DIMS] = {0}, n = c->out.n[c->out.nd - 1];
    if (box_empty(&c->out)) return;
    if (b->operand < 1) {
        do bound_row(b, i, n);
        while (box_next(c->out.nd - 1, c->out.n, i));
        return;
    }
    double *sum = base_malloc((size_t)n * 2 * sizeof *sum), *wide = sum + n;
    sum_rows(c, sum, wide);
    for (int64_t k = 0; k < n; k++)
        b->bound[k] = b->prob[k] = 2 * b->u * fabs(sum[k]) + 2 * wide[k] + 0x1p-140;
    free(sum);
}
/* Integers: w (x + three times the sum of the row + eps), linear in w like the op. */
static void exact_row(const OpCall *c, const int64_t *i, int64_t n) {
    int last = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], last, i), oy = box_offset(&c->out, last, i);
    double sum = floor(c->at->eps * 1e7);
    for (int64_t k = 0; k < n; k++) sum += 3 * at(c, &c->in[0], ox, k);
    sum = fmod(sum, 29);
    for (int64_t k = 0; k < n; k++)
        el_set(&c->out, c->dtype, oy + k, (at(c, &c->in[0], ox, k) + sum) * weight_at(c, k));
}
static void exact(const OpCall *c) { op_each_row(c, exact_row); }
const Op op_layernorm = {
    .name = "layernorm",
    .rule = "btd!,d->btd",
    .lin = LIN_SET,
    .lin_set = 1u << 1,
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .bound_each = BOUND_EACH,
    .exact = exact,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 6,
    .label = "LayerNorm",
};
const Op op_layernorm_plus = {
    .name = "layernorm_plus",
    .rule = "btd!,d->btd",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .bound_each = BOUND_EACH,
    .exact = exact,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 7,
    .label = "LayerNorm (1 + w)",
};
