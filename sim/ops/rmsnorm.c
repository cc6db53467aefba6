/* RMSNorm over the last letter of operand 0: y = w x / sqrt(mean(x^2) + eps). Per head it is the
 * q/k norm. Without the operand w ("btkx!->btkx") every weight is 1. rmsnorm_plus multiplies by 1 +
 * w (Gemma). */
#include "kernel/pool.h"
#include "kernel/vec.h"
#include "ops/util.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

extern const Op op_rmsnorm_plus;
static double plus_of(const OpCall *c) { return c->op == &op_rmsnorm_plus; }
static bool weighed(const OpCall *c) { return c->rule->nin > 1; }
static double weight_at(const OpCall *c, int64_t k) {
    return weighed(c) ? el_get(&c->in[1], c->dtype, k * c->in[1].s[0]) + plus_of(c) : 1;
}
/* What a row is multiplied by, where that is not the operand itself; malloc'ed. */
static void *weights(const OpCall *c, int64_t n) {
    void *p = base_malloc((size_t)(n * dtype_size(c->dtype)));
    Tensor x = {.p = p};
    for (int64_t k = 0; k < n; k++) el_set(&x, c->dtype, k, weight_at(c, k));
    return p;
}

static void row(const OpCall *c, const int64_t *i, int64_t n) {
    int nd = c->out.nd - 1;
    int64_t ox = box_offset(&c->in[0], nd, i), oy = box_offset(&c->out, nd, i);
    if (c->dtype == DT_F32)
        vec_rmsnorm_f32(n, (const float *)c->in[0].p + ox, c->in[1].p, (float)c->at->eps,
                        (float *)c->out.p + oy);
    else
        vec_rmsnorm_f64(n, (const double *)c->in[0].p + ox, c->in[1].p, c->at->eps,
                        (double *)c->out.p + oy);
}
static void forward(const OpCall *plain) {
    if (box_empty(&plain->out)) return;
    OpCall c = *plain;
    bool as_it_is = weighed(&c) && plus_of(&c) == 0;
    void *own = as_it_is ? NULL : weights(plain, c.out.n[c.out.nd - 1]);
    if (own) c.in[1].p = own;
    op_each_row(&c, row);
    free(own);
}

/* dx = r (g - xh mean(g xh)) with g = dy w, xh = x r; dw = sum over rows of dy xh, rows in order.
 */
static void adjoint(const OpCall *c) {
    const Tensor *x = &c->in[0], *dy = &c->cot;
    int nd = x->nd - 1;
    int64_t n = x->n[nd], i[LAYOUT_MAX_DIMS] = {0};
    Dtype t = c->dtype;
    double *acc = base_malloc((size_t)(n ? n : 1) * sizeof *acc);
    for (int64_t k = 0; k < n; k++) acc[k] = 0;
    for (int64_t rows = tensor_count(x) ? tensor_count(x) / n : 0; rows > 0; rows--) {
        int64_t ox = box_offset(x, nd, i), og = box_offset(dy, nd, i);
        double ss = 0, dot = 0;
        for (int64_t k = 0; k < n; k++) ss += pow(el_get(x, t, ox + k * x->s[nd]), 2);
        double r = 1 / sqrt(ss / (double)n + c->at->eps);
        for (int64_t k = 0; k < n; k++) {
            double xh = el_get(x, t, ox + k * x->s[nd]) * r, g = el_get(dy, t, og + k * dy->s[nd]);
            acc[k] += c->operand == 1 ? g * xh : 0;
            /* towards w, w itself is not read */
            if (c->operand == 0) dot += g * weight_at(c, k) * xh;
        }
        if (c->operand == 0) {
            int64_t oo = box_offset(&c->out, nd, i);
            for (int64_t k = 0; k < n; k++) {
                double xh = el_get(x, t, ox + k * x->s[nd]) * r;
                double g = el_get(dy, t, og + k * dy->s[nd]) * weight_at(c, k);
                el_set(&c->out, t, oo + k * c->out.s[nd], r * (g - xh * dot / (double)n));
            }
        }
        box_next(nd, x->n, i);
    }
    if (c->operand == 1)
        for (int64_t k = 0; k < n; k++) el_set(&c->out, t, k * c->out.s[0], acc[k]);
    free(acc);
}
/* Rows whose squares add up to more than the run's dtype has: their numbers may be divided by
 * infinity, so that nothing is known of what comes out. */
static void rows_beyond(void *arg, int64_t lo, int64_t hi) { /* those that begin in lo to hi */
    const OpBound *b = arg;
    const Tensor *t = &b->call.in[0];
    const double most = b->u > 0x1p-30 ? (double)FLT_MAX : DBL_MAX, *x = t->p;
    int64_t width = t->n[t->nd - 1];
    for (int64_t at = (lo + width - 1) / width * width; at < hi; at += width) {
        double sum = 0;
        for (int64_t k = at; k < at + width; k++) sum += x[k] * x[k];
        if (sum * (1 + gamma_n((double)width + 8, b->u)) <= most) continue;
        for (int64_t k = at; k < at + width; k++) b->bound[k] = b->prob[k] = INFINITY;
    }
}
/* Forward: |y| gamma_{n/2+8}. Adjoint: norms of the row, generous. */
static void bound(const OpBound *b) {
    const OpCall *c = &b->call;
    int64_t width = c->in[0].n[c->in[0].nd - 1], m = tensor_count(&c->in[0]);
    if (b->operand < 0) {
        const double *y = c->out.p;
        double g = gamma_n((double)width / 2 + 8, b->u),
               p = gamma_prob((double)width / 2 + 8, b->u);
        op_bound_relative(b, y, g, p, 0x1p-140);
        if (width) pool_pieces(c->pool, m, rows_beyond, (void *)(uintptr_t)b);
        return;
    }
    const double *x = c->in[0].p, *g = c->cot.p;
    double gm = 0, rm = 0, wm = weighed(c) ? 0 : 1;
    for (int64_t i = 0; c->in[1].p && weighed(c) && i < c->in[1].n[0]; i++)
        wm = fmax(wm, fabs(((const double *)c->in[1].p)[i] + plus_of(c)));
    for (int64_t i = 0; i < m; i++) gm = fmax(gm, fabs(g[i]));
    for (int64_t r = 0; width && r < m / width; r++) {
        double ss = 0;
        for (int64_t k = 0; k < width; k++) ss += x[r * width + k] * x[r * width + k];
        rm = fmax(rm, 1 / sqrt(ss / (double)width + c->at->eps));
    }
    double terms = b->operand == 1 ? (double)m / (double)(width ? width : 1) : (double)width;
    double scale =
        b->operand == 1 ? gm * sqrt((double)width) * terms : 2 * rm * gm * wm * sqrt((double)width);
    double flat = gamma_n(terms + 16, b->u) * scale + (terms + 4) * least_of(b->u);
    op_bound_flat(b, flat, flat);
}
static void
exact(const OpCall *c) { /* integers: w (x + sum of the row + eps), linear in w like the op */
    int nd = c->out.nd - 1;
    int64_t i[LAYOUT_MAX_DIMS] = {0}, n = c->out.n[nd];
    if (box_empty(&c->out)) return;
    do {
        double sum = floor(c->at->eps * 1e7);
        int64_t ox = box_offset(&c->in[0], nd, i), oy = box_offset(&c->out, nd, i);
        for (int64_t k = 0; k < n; k++) sum += el_get(&c->in[0], c->dtype, ox + k * c->in[0].s[nd]);
        sum = fmod(sum, 31);
        for (int64_t k = 0; k < n; k++)
            el_set(&c->out, c->dtype, oy + k,
                   (el_get(&c->in[0], c->dtype, ox + k * c->in[0].s[nd]) + sum) * weight_at(c, k));
    } while (box_next(nd, c->out.n, i));
}
const Op op_rmsnorm = {
    .name = "rmsnorm",
    .rule = "btd!,d->btd",
    .lin = LIN_SET,
    .lin_set = 1u << 1,
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .bound_each = BOUND_EACH_FORWARD, /* an adjoint's is of the largest row */
    .exact = exact,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 4,
    .label = "RMSNorm",
};
const Op op_rmsnorm_plus = {
    .name = "rmsnorm_plus",
    .rule = "btd!,d->btd",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .bound_each = BOUND_EACH_FORWARD, /* an adjoint's is of the largest row */
    .exact = exact,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 5,
    .label = "RMSNorm (1 + w)",
};
