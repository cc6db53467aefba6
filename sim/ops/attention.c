/* Causal attention with grouped queries: "btkgx!,bs!kx!,bs!kx!->btkgx". The letter g may be missing
 * (a key head of its own for each query head), values may be of another width than keys
 * ("btkx!,bs!kx!,bs!kw!->btkw"), and a node's chunk keeps queries to the keys of their own chunk of
 * positions, its window to so many before them, its documents to their own. Positions come from the
 * global indices of t and s, so zigzag orders need nothing more. Keys are whole and in global
 * order. */
#include "kernel/attention.h"
#include "kernel/pool.h"
#include "ops/attention_bound.h"
#include "ops/exact.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

enum { B_, T_, K_, G_, X_ }; /* dims of q and the output */

#define AT(T, t, o) ((T *)(t).p + (o))
static int64_t at4(const Tensor *t, int64_t b, int64_t k, int64_t g) {
    return b * t->s[B_] + k * t->s[K_] + g * t->s[G_];
}
static int64_t at3(const Tensor *t, int64_t b, int64_t k) { return b * t->s[0] + k * t->s[2]; }

/* A value [.., k, x] as [.., k, 1, x]. */
static Tensor with_group(const Tensor *t) {
    Tensor x = *t;
    x.nd = X_ + 1;
    x.n[X_] = t->n[G_];
    x.s[X_] = t->s[G_];
    x.n[G_] = 1;
    x.s[G_] = 0;
    return x;
}
/* The call with queries in groups, of one where the rule has none. `queries`: the result is like
 * them. */
static OpCall grouped(const OpCall *c, bool queries) {
    OpCall g = *c;
    if (c->rule->nl[0] > G_ + 1) return g;
    g.in[0] = with_group(&c->in[0]);
    g.cot = with_group(&c->cot);
    if (queries) g.out = with_group(&c->out);
    return g;
}
static AttentionMask mask_of(const OpCall *c, int64_t b) {
    return attention_mask(c, b, c->index['t' - 'a'], c->index['s' - 'a']);
}

static void head(void *arg, int64_t i) { /* one (b, k, g) */
    const OpCall *c = arg;
    const Tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2], *o = &c->out;
    int64_t g = i % q->n[G_], kk = i / q->n[G_] % q->n[K_], b = i / (q->n[G_] * q->n[K_]);
    int64_t oq = at4(q, b, kk, g), ok = at3(k, b, kk), ov = at3(v, b, kk), oo = at4(o, b, kk, g);
    AttentionMask m = mask_of(c, b);
    if (c->dtype == DT_F32)
        attention_f32(q->n[T_], k->n[1], q->n[X_], v->n[3], AT(const float, *q, oq), q->s[T_],
                      AT(const float, *k, ok), k->s[1], AT(const float, *v, ov), v->s[1],
                      AT(float, *o, oo), o->s[T_], &m, c->at->scale);
    else
        attention_f64(q->n[T_], k->n[1], q->n[X_], v->n[3], AT(const double, *q, oq), q->s[T_],
                      AT(const double, *k, ok), k->s[1], AT(const double, *v, ov), v->s[1],
                      AT(double, *o, oo), o->s[T_], &m, c->at->scale);
}
static void forward(const OpCall *plain) {
    OpCall g = grouped(plain, true), *c = &g;
    if (box_empty(&c->out)) return;
    int64_t heads = c->in[0].n[B_] * c->in[0].n[K_] * c->in[0].n[G_];
    if (c->pool) pool_run(c->pool, heads, head, c);
    else
        for (int64_t i = 0; i < heads; i++) head(c, i);
}

static ExactRows rows_at(const Tensor *t, Dtype dtype, int64_t o, int64_t step) {
    return (ExactRows){t->p ? (char *)t->p + o * dtype_size(dtype) : NULL, step};
}
/* Integers: query head g of (b, k). */
static void head_exact(const OpCall *c, const AttentionMask *m, int64_t i, int64_t g) {
    const Tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2], *o = &c->out;
    int64_t kk = i % q->n[K_], b = i / q->n[K_];
    Dtype dt = c->dtype;
    int64_t to = c->operand == 0 ? at4(o, b, kk, g) : at3(o, b, kk);
    exact_attention_adjoint(
        &(ExactAttention){.dtype = dt,
                          .nt = q->n[T_],
                          .ns = k->n[1],
                          .d = q->n[X_],
                          .dv = v->n[3],
                          .q = rows_at(q, dt, at4(q, b, kk, g), q->s[T_]),
                          .k = rows_at(k, dt, at3(k, b, kk), k->s[1]),
                          .v = rows_at(v, dt, at3(v, b, kk), v->s[1]),
                          .cot = rows_at(&c->cot, dt, at4(&c->cot, b, kk, g), c->cot.s[T_]),
                          .out = rows_at(o, dt, to, o->s[1]),
                          .operand = c->operand,
                          .more = c->operand && g > 0,
                          .mask = m,
                          .modulus = c->modulus});
}
static void head_adjoint(void *arg, int64_t i) { /* one (b, k): its query heads in order */
    const OpCall *c = arg;
    const Tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2], *o = &c->out, *d = &c->cot;
    int64_t kk = i % q->n[K_], b = i / q->n[K_], ok = at3(k, b, kk), ov = at3(v, b, kk);
    AttentionMask m = mask_of(c, b);
    for (int64_t g = 0; g < q->n[G_]; g++) {
        int64_t oq = at4(q, b, kk, g), od = at4(d, b, kk, g),
                to = c->operand == 0 ? at4(o, b, kk, g) : at3(o, b, kk);
#define BWD(T, R)                                                                                  \
    attention_bwd_##R(q->n[T_], k->n[1], q->n[X_], v->n[3], AT(const T, *q, oq), q->s[T_],         \
                      AT(const T, *k, ok), k->s[1], AT(const T, *v, ov), v->s[1],                  \
                      AT(const T, *d, od), d->s[T_], c->operand == 0 ? AT(T, *o, to) : NULL,       \
                      o->s[1], c->operand == 1 ? AT(T, *o, to) : NULL, o->s[1],                    \
                      c->operand == 2 ? AT(T, *o, to) : NULL, o->s[1], &m, c->at->scale, g > 0)
        if (c->modulus > 0) head_exact(c, &m, i, g);
        else if (c->dtype == DT_F32) BWD(float, f32);
        else BWD(double, f64);
    }
}
static void adjoint(const OpCall *plain) {
    OpCall g = grouped(plain, plain->operand == 0), *c = &g;
    if (box_empty(&c->out)) return;
    if (box_empty(&c->in[0])) { /* no query here: no gradient */
        int64_t n = tensor_count(&c->out);
        memset(c->out.p, 0, (size_t)(n * dtype_size(c->dtype)));
        return;
    }
    int64_t heads = c->in[0].n[B_] * c->in[0].n[K_];
    if (c->pool) pool_run(c->pool, heads, head_adjoint, c);
    else
        for (int64_t i = 0; i < heads; i++) head_adjoint(c, i);
}

static double row_length(const double *x, int64_t n) {
    double s = 0;
    for (int64_t k = 0; k < n; k++) s += x[k] * x[k];
    return sqrt(s);
}
/* The error of a softmax-weighted sum, with the score's absolute sum bounded by norms and sum p|v|
 * by the largest |v|; of the queries, keys and values of one (b, k): what other heads have moves
 * nothing here. */
static void bound_heads(void *arg, int64_t i) {
    const OpBound *b = arg;
    const OpCall *c = &b->call;
    const Tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2], *o = &c->out;
    int64_t kk = i % q->n[K_], row = i / q->n[K_], d = q->n[X_], S = k->n[1];
    double qm = 0, km = 0, vm = 0;
    for (int64_t g = 0; g < q->n[G_]; g++)
        for (int64_t t = 0; t < q->n[T_]; t++)
            qm = fmax(qm, row_length(AT(const double, *q, at4(q, row, kk, g) + t * q->s[T_]), d));
    for (int64_t s = 0; s < S; s++) {
        const double *value = AT(const double, *v, at3(v, row, kk) + s * v->s[1]);
        km = fmax(km, row_length(AT(const double, *k, at3(k, row, kk) + s * k->s[1]), d));
        for (int64_t x = 0; x < v->n[3]; x++) vm = fmax(vm, fabs(value[x]));
    }
    double score = qm * km * c->at->scale;
    double bent = c->at->cap > 0 ? 8 * b->u * fmin(score, c->at->cap) : 0; /* by the cap's tanh */
    double delta = 2 * gamma_n((double)d + 4, b->u) * score + 2 * b->u * score + 4 * b->u + bent;
    double dp = 2 * gamma_prob((double)d + 4, b->u) * score + 2 * b->u * score + 4 * b->u + bent;
    double hi = vm * (2.1 * delta + gamma_n(2 * (double)S + 6, b->u)),
           lo = vm * (2.1 * dp + gamma_prob(2 * (double)S + 6, b->u)),
           least = (double)(S + 1) * least_of(b->u); /* of the products, and of what divides them */
    for (int64_t g = 0; g < o->n[G_]; g++)
        for (int64_t t = 0; t < o->n[T_]; t++) {
            int64_t at = at4(o, row, kk, g) + t * o->s[T_];
            for (int64_t x = 0; x < o->n[X_]; x++)
                b->bound[at + x] = hi + least, b->prob[at + x] = lo + least;
        }
}
static void bound(const OpBound *b) {
    OpBound g = *b;
    g.call = grouped(&b->call, b->operand <= 0);
    const OpCall *c = &g.call;
    if (b->operand >= 0) {
        attention_bound_adjoint(&g);
        return;
    }
    if (box_empty(&c->out)) return;
    int64_t heads = c->in[0].n[B_] * c->in[0].n[K_];
    if (c->pool) pool_run(c->pool, heads, bound_heads, &g);
    else
        for (int64_t i = 0; i < heads; i++) bound_heads(&g, i);
}
static void exact(const OpCall *plain) { /* sum over visible keys of (q.k mod 31) v, mod 31 */
    OpCall g = grouped(plain, true), *c = &g;
    const Tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    if (box_empty(&c->out)) return;
    do {
        double sum = 0;
        int64_t oq = at4(q, i[B_], i[K_], i[G_]) + i[T_] * q->s[T_];
        AttentionMask m = mask_of(c, i[B_]);
        AttentionRun run = attention_run(&m, i[T_], k->n[1]);
        for (int64_t s = run.from; s < run.lim; s++) {
            double dot = floor(c->at->scale * 1000) + floor(c->at->cap * 8);
            for (int64_t x = 0; x < q->n[X_]; x++)
                dot += el_get(q, c->dtype, oq + x * q->s[X_]) *
                       el_get(k, c->dtype, at3(k, i[B_], i[K_]) + s * k->s[1] + x * k->s[3]);
            sum += fmod(dot, 31) *
                   el_get(v, c->dtype, at3(v, i[B_], i[K_]) + s * v->s[1] + i[X_] * v->s[3]);
        }
        el_set(&c->out, c->dtype, box_offset(&c->out, 5, i), fmod(sum, 31));
    } while (box_next(5, c->out.n, i));
}
/* The softmax's output, [B, H, S, S], for comparison with others only: the kernel never holds it.
 */
static double *probabilities(const OpCall *plain, int64_t *n) {
    OpCall g = grouped(plain, true), *c = &g;
    const Tensor *q = &c->in[0], *k = &c->in[1];
    int64_t S = k->n[1], T = q->n[T_], i[LAYOUT_MAX_DIMS] = {0},
            heads[4] = {q->n[B_], q->n[K_], q->n[G_], T};
    *n = heads[0] * heads[1] * heads[2] * T * S;
    double *p = base_malloc(base_mul((size_t)(*n ? *n : 1), 8));
    if (!*n) return p;
    for (double *row = p;; row += S) {
        int64_t oq = at4(q, i[0], i[1], i[2]) + i[3] * q->s[T_];
        double top = -INFINITY, sum = 0;
        AttentionMask m = attention_mask(c, i[0], NULL, NULL);
        AttentionRun run = attention_run(&m, i[3], S);
        for (int64_t s = 0; s < S; s++) {
            double dot = 0;
            for (int64_t x = 0; x < q->n[X_]; x++)
                dot += el_get(q, DT_F64, oq + x) *
                       el_get(k, DT_F64, at3(k, i[0], i[1]) + s * k->s[1] + x);
            row[s] = s >= run.from && s < run.lim ? dot * c->at->scale : -INFINITY;
            if (c->at->cap > 0 && row[s] > -INFINITY)
                row[s] = c->at->cap * tanh(row[s] / c->at->cap);
            top = fmax(top, row[s]);
        }
        for (int64_t s = 0; s < S; s++) sum += row[s] = exp(row[s] - top);
        for (int64_t s = 0; s < S; s++) row[s] /= sum;
        if (!box_next(4, heads, i)) return p;
    }
}
/* Pairs of query and key that see each other in local row b. */
static double pairs_of(const OpCall *c, int64_t b) {
    AttentionMask m = attention_mask(c, b, c->index['t' - 'a'], NULL);
    return attention_pairs(&m, c->in[0].n[T_], c->in[1].n[1]);
}
/* 2 d for the score and 2 w for the value of each visible pair; pairs from positions where they are
 * known, else as if the queries stood first. */
static double flops(const OpCall *plain) {
    OpCall g = grouped(plain, true), *c = &g;
    const Tensor *q = &c->in[0];
    int64_t rows = op_packings(c, q->n[B_]);
    double pairs = 0;
    for (int64_t b = 0; b < rows; b++) pairs += pairs_of(c, b) / (double)rows;
    double width = (double)(q->n[X_] + c->in[2].n[3]);
    return 2 * (double)(q->n[B_] * q->n[K_] * q->n[G_]) * width * pairs;
}
static void scratch(const OpCall *c, int64_t n, bool backward, OpScratch *s) {
    (void)n;
    const int64_t d = c->in[1].n[3], dv = c->in[2].n[3];
    s->attention = attention_scratch(c->in[0].n[T_], c->in[1].n[1], d > dv ? d : dv, backward,
                                     dtype_size(c->dtype));
}
static void bound_scratch(const OpBound *b, OpScratch *s) {
    if (b->operand >= 0) attention_bound_scratch(b, s);
}
extern const Op op_attention_part, op_attention_merge, op_attention_join; /* ring.c */
const Op op_attention = {
    .name = "attention",
    .rule = "btkgx!,bs!kx!,bs!kx!->btkgx",
    .lin = LIN_NONE,
    .mixed = 1 + 2,
    .asks = RULE_BIT('t') | RULE_BIT('s'),
    .forward = forward,
    .adjoint = adjoint,
    .scratch = scratch,
    .bound = bound,
    .bound_scratch = bound_scratch,
    .bound_each = BOUND_EACH,
    .exact = exact,
    .exact_adjoint = op_exact_adjoint_same,
    .flops = flops,
    .probe = "attn_probs",
    .probe_run = probabilities,
    .mixes = true,
    .part = &op_attention_part,
    .merge = &op_attention_merge,
    .join = &op_attention_join,
    .label = "causal attention",
};
