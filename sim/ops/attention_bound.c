/* Row by row, with the row's own probabilities: p and dp = do v^T are computed once more in f64,
 * and every term that rounding can move is added up with how far it can move it. Refuses to bound
 * by the largest magnitudes of the whole value: that let a gradient of zero pass. */
#include "ops/attention_bound.h"
#include "kernel/attention.h"
#include "kernel/gemm.h"
#include "kernel/pool.h"
#include "kernel/vec.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

enum { B_, T_, K_, G_, X_ }; /* dims of q, do and dq */
enum { ROWS = 64 };          /* queries at once; decides no bit */

/* The errors of one row, relative to what they move (u: unit roundoff, gamma_n: n roundings):
 * of a probability, of a product of width d (scores) and of width dv (do v), of a sum over the
 * keys, of one over the queries. */
typedef struct {
    double p, dot, dot_v, keys, queries, u, bend; /* bend: of the slope of a cap, absolute */
} Rates;
typedef struct {
    const OpBound *b;
    int64_t T, S, d, dv, row; /* of the batch */
    double tiny;              /* a probability below it may have become zero */
    double *norm_k;           /* per key seen so far: the largest norm of k, of v: [S] */
    double *norm_v, *max;     /* norm of each v; the largest |element| of each k: [S] */
    double *p, *dp;           /* [ROWS][S] */
    double *hi, *lo;          /* dk, dv: of each key, [S] */
} Head;

static double norm(const double *x, int64_t n) {
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * x[i];
    return sqrt(s);
}
static double largest(const double *x, int64_t n) {
    double m = 0;
    for (int64_t i = 0; i < n; i++) m = fmax(m, fabs(x[i]));
    return m;
}
static const double *at(const Tensor *t, int64_t o) { return (const double *)t->p + o; }
static GemmView rows_of(const double *p, int64_t stride) { return gemm_strided(p, stride, 1); }

/* With scores of at most `score`: a score is off by delta, so a probability by a factor of
 * exp(2 delta); the sum that it is divided by has S terms. */
static Rates rates(const Head *h, double score, double (*gamma)(double n, double u)) {
    double u = h->b->u, T = (double)(h->T * h->b->call.in[0].n[G_]);
    Rates r = {.u = u};
    r.dot = gamma((double)h->d + 4, u);
    r.dot_v = gamma((double)h->dv + 4, u);
    r.keys = gamma((double)h->S + 6, u);
    r.queries = gamma(T + 8, u);
    double cap = h->b->call.at->cap, delta = 2 * r.dot * score + 2 * u * score + 4 * u;
    if (cap > 0) delta += 8 * u * fmin(score, cap);
    if (cap > 0) r.bend = 2 * delta / cap + 4 * u;
    /* no probability moves by more than 1 */
    r.p = fmin(fmax(2.1 * delta, expm1(2 * delta)), 1 / h->tiny) + r.keys + 2 * u;
    return r;
}
static double plain_gamma(double n, double u) { return gamma_n(n, u); }

/* Row t of query head g sees `lim` keys. Its part of dv_s is p_s do: moved by p_s |do| times the
 * errors of p and of the sum over queries. */
static void add_dv(const Head *h, const Rates *r, const double *p, int64_t lim, double top,
                   double *sum) {
    for (int64_t s = 0; s < lim; s++) sum[s] += (p[s] + h->tiny) * top * (r->p + r->queries);
}
/* What one query has over the `lim` keys that it sees. */
typedef struct {
    const double *p, *dp; /* [lim] */
    int64_t lim;
    double cot; /* the norm of its do */
} Row;
/* ds_s = scale p_s (dp_s - D), D = sum p dp, and what it is multiplied with has magnitude w_s (or
 * `top` for all): adds to each key, or returns the sum over the keys. */
typedef struct {
    double D, moved; /* D; how far it moves */
    double rate;     /* of the sum that ds goes into: over keys or queries */
} RowSum;
static RowSum row_sum(const Head *h, const Rates *r, const Row *row, double rate) {
    double D = 0, abs = 0, v = 0;
    for (int64_t s = 0; s < row->lim; s++) {
        D += row->p[s] * row->dp[s];
        abs += (row->p[s] + h->tiny) * fabs(row->dp[s]);
        v += (row->p[s] + h->tiny) * h->norm_v[s];
    }
    return (RowSum){D, (r->p + r->keys) * abs + r->dot_v * row->cot * v, rate};
}
static double moved_ds(const Head *h, const Rates *r, const Row *row, const RowSum *x, int64_t s) {
    double far = (r->p + 5 * r->u + x->rate + r->bend) * fabs(row->dp[s] - x->D) +
                 r->dot_v * row->cot * h->norm_v[s] + x->moved;
    return h->b->call.at->scale * (row->p[s] + h->tiny) * far;
}
static void add_dk(const Head *h, const Rates *r, const Row *row, double top, double *sum) {
    RowSum x = row_sum(h, r, row, r->queries);
    for (int64_t s = 0; s < row->lim; s++) sum[s] += moved_ds(h, r, row, &x, s) * top;
}
static double row_dq(const Head *h, const Rates *r, const Row *row) {
    RowSum x = row_sum(h, r, row, r->keys);
    double sum = 0;
    for (int64_t s = 0; s < row->lim; s++) sum += moved_ds(h, r, row, &x, s) * h->max[s];
    return sum;
}

/* The keys that query t of row b sees. */
static AttentionRun visible(const OpCall *c, int64_t b, int64_t t, int64_t S) {
    AttentionMask m = attention_mask(c, b, c->index['t' - 'a'], c->index['s' - 'a']);
    return attention_run(&m, t, S);
}
/* The same head from key `from` on. */
static Head from_key(const Head *h, int64_t from) {
    Head x = *h;
    x.norm_v += from;
    x.max += from;
    x.hi += from;
    x.lo += from;
    return x;
}
/* Query t of query head g, whose probabilities and dp are in row i. */
static void add_row(const Head *whole, int64_t i, int64_t t, int64_t oq, int64_t od, int64_t oo) {
    const OpCall *c = &whole->b->call;
    AttentionRun run = visible(c, whole->row, t, whole->S);
    Head seen = from_key(whole, run.from), *h = &seen;
    const double *q = at(&c->in[0], oq + t * c->in[0].s[T_]);
    const double *cot = at(&c->cot, od + t * c->cot.s[T_]);
    double *p = h->p + i * h->S + run.from, *dp = h->dp + i * h->S + run.from;
    int64_t lim = run.lim - run.from;
    double cap = c->at->cap;
    for (int64_t s = 0; s < lim && cap > 0; s++) p[s] = cap * tanh(p[s] * c->at->scale / cap);
    vec_softmax_f64(lim, p, cap > 0 ? 1 : c->at->scale);
    double score = lim ? norm(q, h->d) * h->norm_k[run.lim - 1] * fabs(c->at->scale) : 0;
    Rates hi = rates(h, score, plain_gamma), lo = rates(h, score, gamma_prob);
    double top = largest(q, h->d), cmax = largest(cot, h->dv);
    Row row = {p, dp, lim, norm(cot, h->dv)};
    if (h->b->operand == 2) {
        add_dv(h, &hi, p, lim, cmax, h->hi);
        add_dv(h, &lo, p, lim, cmax, h->lo);
    } else if (h->b->operand == 1) {
        add_dk(h, &hi, &row, top, h->hi);
        add_dk(h, &lo, &row, top, h->lo);
    } else {
        double up = row_dq(h, &hi, &row), low = row_dq(h, &lo, &row);
        for (int64_t x = 0; x < h->d; x++) { /* bounds are packed as the output is */
            h->b->bound[oo + t * c->out.s[T_] + x] = up + 0x1p-140;
            h->b->prob[oo + t * c->out.s[T_] + x] = low + 0x1p-140;
        }
    }
}
static void add_query_head(const Head *h, int64_t b, int64_t kk, int64_t g) {
    const OpCall *c = &h->b->call;
    const Tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2], *o = &c->cot;
    int64_t oq = b * q->s[B_] + kk * q->s[K_] + g * q->s[G_];
    int64_t od = b * o->s[B_] + kk * o->s[K_] + g * o->s[G_];
    int64_t oo = b * c->out.s[B_] + kk * c->out.s[K_] + g * c->out.s[G_];
    GemmView kv = rows_of(at(k, b * k->s[0] + kk * k->s[2]), k->s[1]);
    GemmView vv = rows_of(at(v, b * v->s[0] + kk * v->s[2]), v->s[1]);
    GemmView pv = rows_of(h->p, h->S), dv = rows_of(h->dp, h->S);
    for (int64_t t0 = 0; t0 < h->T; t0 += ROWS) {
        int64_t n = h->T - t0 < ROWS ? h->T - t0 : ROWS;
        GemmView qv = rows_of(at(q, oq + t0 * q->s[T_]), q->s[T_]);
        GemmView cv = rows_of(at(o, od + t0 * o->s[T_]), o->s[T_]);
        gemm_f64(n, h->S, h->d, &qv, &kv, &pv);
        if (h->b->operand != 2) gemm_f64(n, h->S, h->dv, &cv, &vv, &dv);
        for (int64_t i = 0; i < n; i++) add_row(h, i, t0 + i, oq, od, oo);
    }
}
static void measure_keys(Head *h, int64_t b, int64_t kk) {
    const Tensor *k = &h->b->call.in[1], *v = &h->b->call.in[2];
    for (int64_t s = 0; s < h->S; s++) {
        const double *row = at(k, b * k->s[0] + kk * k->s[2] + s * k->s[1]);
        h->norm_k[s] = fmax(norm(row, h->d), s ? h->norm_k[s - 1] : 0);
        h->max[s] = largest(row, h->d);
        h->norm_v[s] = norm(at(v, b * v->s[0] + kk * v->s[2] + s * v->s[1]), h->dv);
    }
}
/* Numbers of a head: five for each key, and two of each query of a block for each. */
static int64_t room_of(int64_t S) { return S * (5 + 2 * ROWS) + 1; }
void attention_bound_scratch(const OpBound *b, OpScratch *s) {
    s->passing = 8 * room_of(b->call.in[1].n[1]);
    s->packed = gemm_scratch(ROWS, b->call.in[1].n[1], b->call.in[0].n[X_], true);
}
static void bound_head(void *arg, int64_t i) { /* one (b, k) and its query heads */
    const OpBound *bound = arg;
    const OpCall *c = &bound->call;
    const Tensor *k = &c->in[1], *out = &c->out;
    Head h = {.b = bound, .T = c->in[0].n[T_], .S = k->n[1], .d = c->in[0].n[X_]};
    h.dv = c->in[2].n[3];
    int64_t kk = i % k->n[2], b = h.row = i / k->n[2], S = h.S;
    h.tiny = attention_tiny(bound->u);
    double *room = base_malloc(base_mul((size_t)room_of(S), 8));
    h.norm_k = room, h.norm_v = room + S, h.max = room + 2 * S;
    h.hi = room + 3 * S, h.lo = room + 4 * S, h.p = room + 5 * S, h.dp = h.p + ROWS * S;
    memset(h.hi, 0, (size_t)(2 * S) * 8);
    measure_keys(&h, b, kk);
    for (int64_t g = 0; g < c->in[0].n[G_]; g++) add_query_head(&h, b, kk, g);
    for (int64_t s = 0; s < S && bound->operand > 0; s++)
        for (int64_t x = 0; x < out->n[3]; x++) {
            int64_t o = b * out->s[0] + kk * out->s[2] + s * out->s[1] + x;
            bound->bound[o] = h.hi[s] + 0x1p-140;
            bound->prob[o] = h.lo[s] + 0x1p-140;
        }
    free(room);
}
void attention_bound_adjoint(const OpBound *b) {
    int64_t heads = b->call.in[1].n[0] * b->call.in[1].n[2];
    if (box_empty(&b->call.out)) return;
    if (b->call.pool) pool_run(b->call.pool, heads, bound_head, (void *)(uintptr_t)b);
    else
        for (int64_t i = 0; i < heads; i++) bound_head((void *)(uintptr_t)b, i);
}
