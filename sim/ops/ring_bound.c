/* How far rounding can move partial attention and its gradients: row by row, with the row's own
 * probabilities, each term of a sum with how far it can move it. In float64. */
#include "kernel/gemm.h"
#include "kernel/pool.h"
#include "ops/attention_bound.h"
#include "ops/ring.h"
#include <math.h>
#include <stdlib.h>

/* One head of a call: its rows, and matrices over queries x keys and of sums. */
typedef struct {
    const OpBound *b;
    RingRows m;
    RingPart r;
    double *p, *x;          /* [nt][ns]: probabilities; dp, then ds */
    double *hi, *lo;        /* [nt][ns]: how far p (forward, dv) or ds (dq, dk) moves */
    double *sum, *low, *ab; /* [rows][width] results; |operand| */
} Head;

static double norm(const double *x, int64_t n) {
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * x[i];
    return sqrt(s);
}
static double dot(const double *x, const double *y, int64_t n) {
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * y[i];
    return s;
}
static GemmView by_rows(const double *p, int64_t stride) { return gemm_strided(p, stride, 1); }
static GemmView by_columns(const double *p, int64_t stride) { return gemm_strided(p, 1, stride); }
static double plain_gamma(double n, double u) { return gamma_n(n, u); }
typedef double (*Gamma)(double n, double u);

/* What an exponent scale q.k - c is off by, of a score of at most `score` and that size of c. */
static double exponent(const Head *h, Gamma gamma, double score, double c) {
    double cap = h->b->call.at->cap, bent = cap > 0 ? 8 * h->b->u * fmin(score, cap) : 0;
    return gamma((double)h->m.d + 4, h->b->u) * score + h->b->u * (2 * score + fabs(c)) + bent;
}
/* Scores of query t, and the largest that |q||k| lets them be. */
static double score_row(Head *h, int64_t t, AttentionRun run, double *row) {
    double scale = h->b->call.at->scale, cap = h->b->call.at->cap, top = 0;
    double nq = norm((double *)h->m.q + t * h->m.d, h->m.d);
    for (int64_t s = run.from; s < run.lim; s++) {
        const double *k = (double *)h->m.k + s * h->m.d;
        row[s] = scale * dot((double *)h->m.q + t * h->m.d, k, h->m.d);
        if (cap > 0) row[s] = cap * tanh(row[s] / cap);
        top = fmax(top, nq * norm(k, h->m.d) * fabs(scale));
    }
    return top;
}

/* ---- forward: rows of the result, then the lse ---- */
static void forward_row(Head *h, int64_t t) {
    AttentionRun run = attention_run(&h->r.mask, t, h->r.ns);
    double *p = h->p + t * h->r.ns, u = h->b->u, max = -INFINITY, sum = 0, tiny = attention_tiny(u);
    int64_t n = run.lim - run.from, wide = h->m.p;
    double *hi = h->sum + t * wide, *lo = h->low + t * wide;
    for (int64_t x = 0; x < wide; x++) hi[x] = lo[x] = 0x1p-140;
    if (n <= 0) return;
    double score = score_row(h, t, run, p);
    for (int64_t s = run.from; s < run.lim; s++) max = fmax(max, p[s]);
    for (int64_t s = run.from; s < run.lim; s++) sum += p[s] = exp(p[s] - max);
    double dh = 2 * exponent(h, plain_gamma, score, max) + 4 * u,
           dl = 2 * exponent(h, gamma_prob, score, max) + 4 * u;
    /* no probability moves by more than 1 */
    double rh = fmin(expm1(dh), 1 / tiny) + gamma_n((double)n + 6, u),
           rl = fmin(expm1(dl), 1 / tiny) + gamma_prob((double)n + 6, u);
    for (int64_t s = run.from; s < run.lim; s++)
        for (int64_t x = 0; x < h->m.dv; x++) {
            double v = (p[s] / sum + tiny) * fabs(((double *)h->m.v)[s * h->m.dv + x]);
            hi[x] += v * (2 * rh + gamma_n((double)n + 4, u));
            lo[x] += v * (2 * rl + gamma_prob((double)n + 4, u));
        }
    double lse = fabs(max + log(sum));
    hi[wide - 1] += rh + 2 * u * (lse + 1);
    lo[wide - 1] += rl + 2 * u * (lse + 1);
}

/* ---- adjoint ---- */
/* How far a probability moves where its exponent moves by `off`: one that is nothing too. */
static double far_of(double exponent, double off) {
    return off < 1 ? exp(exponent) * expm1(off) : exp(exponent + off);
}
/* p and ds of query t, and how far they move: a row of hi and lo. In training that runs away p may
 * be too small for the type, and what it is multiplied with large. */
static void adjoint_row(Head *h, int64_t t) {
    AttentionRun run = attention_run(&h->r.mask, t, h->r.ns);
    int64_t ns = h->r.ns, dv = h->m.dv, T = h->r.nt * ring_groups(&h->b->call);
    double *p = h->p + t * ns, *x = h->x + t * ns, u = h->b->u, scale = h->b->call.at->scale;
    const double *cot = (double *)h->m.cot + t * h->m.p, *o = (double *)h->m.fout + t * h->m.p;
    for (int64_t s = 0; s < ns; s++) p[s] = x[s] = h->hi[t * ns + s] = h->lo[t * ns + s] = 0;
    if (run.lim <= run.from) return;
    double score = score_row(h, t, run, p), lse = o[dv], D = -cot[dv], size = fabs(cot[dv]);
    for (int64_t i = 0; i < dv; i++) D += cot[i] * o[i], size += fabs(cot[i] * o[i]);
    double n = h->b->operand == 0 ? (double)ns : (double)T, nc = norm(cot, dv),
           tiny = attention_tiny(u);
    static const Gamma gammas[] = {plain_gamma, gamma_prob};
    for (int k = 0; k < 2; k++) {
        double *row = (k ? h->lo : h->hi) + t * ns, g = gammas[k]((double)dv + 4, u);
        double off = exponent(h, gammas[k], score, lse), cap = h->b->call.at->cap;
        double rate = gammas[k](n + 8, u);
        if (cap > 0) rate += 2 * off / cap + 4 * u; /* the slope */
        for (int64_t s = run.from; s < run.lim; s++) {
            const double *v = (double *)h->m.v + s * dv;
            double prob = exp(p[s] - lse), dp = dot(cot, v, dv),
                   moved = far_of(p[s] - lse, 2 * off + 4 * u) + prob * rate + tiny;
            row[s] = h->b->operand == 2
                         ? moved
                         : fabs(scale) * ((moved + prob * 4 * u) * fabs(dp - D) +
                                          (prob + moved) * g * (nc * norm(v, dv) + size)) +
                               tiny;
        }
    }
}
/* Rows of an operand. */
typedef struct {
    const void *p;
    int64_t n, stride, width;
} Rows;
/* out [rows][width] += |a| [rows][n] |y| [n][width]. */
static void add_product(Head *h, const GemmView *a, int64_t rows, const Rows *y, double *out) {
    int64_t n = y->n, w = y->width;
    double *part = h->ab + n * w;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < w; k++)
            h->ab[k * n + i] = fabs(((const double *)y->p)[i * y->stride + k]);
    GemmView yv = by_rows(h->ab, n), to = by_rows(part, w);
    gemm_f64(rows, w, n, a, &yv, &to);
    for (int64_t i = 0; i < rows * w; i++) /* nothing is known of what was beyond float64 */
        out[i] += isnan(part[i]) ? INFINITY : part[i];
}
static void adjoint_sums(Head *h) {
    int64_t ns = h->r.ns, nt = h->r.nt;
    for (int64_t t = 0; t < nt; t++) adjoint_row(h, t);
    for (int k = 0; k < 2; k++) {
        const double *e = k ? h->lo : h->hi;
        double *to = k ? h->low : h->sum;
        GemmView rows = by_rows(e, ns), columns = by_columns(e, ns);
        const Rows of[] = {{h->m.k, ns, h->m.d, h->m.d},
                           {h->m.q, nt, h->m.d, h->m.d},
                           {h->m.cot, nt, h->m.p, h->m.dv}};
        if (h->b->operand == 0) add_product(h, &rows, nt, &of[0], to);
        else add_product(h, &columns, ns, &of[h->b->operand], to);
    }
}

/* ---- heads ---- */
/* The sums of this part to where the call's output has those rows; what is packed is a bound. */
static void put(Head *h, const RingHead *at, int64_t width) {
    OpCall c = h->b->call;
    double *const to[] = {h->b->bound, h->b->prob}, *const from[] = {h->sum, h->low};
    for (int k = 0; k < 2; k++) {
        c.out.p = to[k];
        if (h->b->operand <= 0) ring_put_queries(&c, at, &h->r, &h->m, from[k], width);
        else ring_put_keys(&c, at, &h->r, &h->m, from[k], width);
    }
}
static void clear(Head *h, int64_t n) {
    for (int64_t i = 0; i < n; i++) h->sum[i] = h->low[i] = 0x1p-140;
}
/* Numbers of a head: four for each pair of the block that meets most (where the call is of all
 * ranks together that is what one of them holds, and not the square of the sequence), and four as
 * wide as a row. */
static int64_t room_of(const OpCall *c, int64_t met) {
    int64_t T = c->in[0].n[1], S = c->in[1].n[1], d = c->in[1].n[3], p = c->in[2].n[3] + 1;
    return 4 * met + 4 * (T > S ? T : S) * (p > d ? p : d) + 1;
}
void ring_part_bound_scratch(const OpBound *b, OpScratch *s) {
    const OpCall *c = &b->call;
    RingMost m = ring_most(c);
    s->rows = ring_room_bytes(c);
    s->passing = 8 * room_of(c, m.pairs);
    s->packed = gemm_scratch(m.nt, m.ns, c->in[1].n[3], true);
}
static void bound_head(void *arg, int64_t i) { /* one (b, k) and its query heads */
    const OpBound *b = arg;
    const OpCall *c = &b->call;
    Head h = {.b = b};
    RingHead at = {.b = i / c->in[1].n[2], .k = i % c->in[1].n[2]};
    int64_t T = c->in[0].n[1], S = c->in[1].n[1], rows = T > S ? T : S, w = c->out.n[c->out.nd - 1];
    ring_room(c, &h.m);
    int64_t wide = h.m.p > h.m.d ? h.m.p : h.m.d, met = ring_most(c).pairs;
    double *room = base_malloc(base_mul((size_t)room_of(c, met), 8));
    h.p = room, h.x = h.p + met, h.hi = h.x + met, h.lo = h.hi + met;
    h.sum = h.lo + met, h.low = h.sum + rows * wide, h.ab = h.low + rows * wide;
    for (ring_open(c, at.b, &h.r); ring_next(c, &h.r);) {
        ring_take_keys(c, &at, &h.r, &h.m);
        clear(&h, rows * w);
        for (at.g = 0; at.g < ring_groups(c); at.g++) {
            ring_take_queries(c, &at, &h.r, &h.m);
            if (b->operand <= 0) clear(&h, rows * w);
            if (b->operand >= 0) adjoint_sums(&h);
            for (int64_t t = 0; b->operand < 0 && t < h.r.nt; t++) forward_row(&h, t);
            if (b->operand <= 0) put(&h, &at, w);
        }
        if (b->operand > 0) put(&h, &at, w);
    }
    ring_room_free(&h.m);
    free(room);
}
void ring_part_bound(const OpBound *b) {
    const OpCall *c = &b->call;
    op_bound_flat(b, 0x1p-140, 0x1p-140);
    if (box_empty(&c->out) || box_empty(&c->in[0]) || box_empty(&c->in[1])) return;
    if (c->pool) pool_run(c->pool, ring_heads(c), bound_head, (void *)(uintptr_t)b);
    else
        for (int64_t i = 0; i < ring_heads(c); i++) bound_head((void *)(uintptr_t)b, i);
}
