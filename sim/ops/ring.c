/* Attention in parts: over the keys of one block at a time, each part with the log of its softmax's
 * sum (lse), and merged. part "btkgx!,bs~t!kx!,bs~t!kx!->btkgp" (p is a result's x and its lse)
 * sees the keys whose block lies `hop` before the query's; on a rank of a ring that holds that
 * block it sees all that is there. merge is differentiated as it stands; join hands the cotangent
 * on, because parts that read the final result have the whole's gradient (semantics 6.1;
 * FlashAttention-2, arXiv 2307.08691). Refuses to know ranks: blocks are a map of positions. */
#include "kernel/attention.h"
#include "kernel/pool.h"
#include "ops/exact.h"
#include "ops/ring.h"
#include <math.h>
#include <stdlib.h>

enum { B_, T_, K_ }; /* dims of q */

/* ---- part ---- */
static void part_head(void *arg, int64_t i) { /* one (b, k) and its query heads */
    const OpCall *c = arg;
    RingHead h = {.b = i / c->in[1].n[2], .k = i % c->in[1].n[2]};
    RingPart r;
    RingRows m;
    ring_room(c, &m);
    for (ring_open(c, h.b, &r); ring_next(c, &r);) {
        ring_take_keys(c, &h, &r, &m);
        for (h.g = 0; h.g < ring_groups(c); h.g++) {
            ring_take_queries(c, &h, &r, &m);
            if (c->dtype == DT_F32)
                attention_part_f32(r.nt, r.ns, m.d, m.dv, m.q, m.d, m.k, m.d, m.v, m.dv, m.o, m.p,
                                   &r.mask, c->at->scale);
            else
                attention_part_f64(r.nt, r.ns, m.d, m.dv, m.q, m.d, m.k, m.d, m.v, m.dv, m.o, m.p,
                                   &r.mask, c->at->scale);
            ring_put_queries(c, &h, &r, &m, m.o, m.p);
        }
    }
    ring_room_free(&m);
}
static void each_head(const OpCall *c, void (*head)(void *arg, int64_t i)) {
    if (c->pool) pool_run(c->pool, ring_heads(c), head, (void *)(uintptr_t)c);
    else
        for (int64_t i = 0; i < ring_heads(c); i++) head((void *)(uintptr_t)c, i);
}
static void part_forward(const OpCall *c) {
    if (!box_empty(&c->out)) each_head(c, part_head);
}
/* Integers: what `m` has taken. */
static void part_exact_adjoint(const OpCall *c, const RingPart *r, const RingRows *m, bool more) {
    void *const to[] = {m->dq, m->dk, m->dv_};
    exact_attention_adjoint(
        &(ExactAttention){.dtype = c->dtype,
                          .nt = r->nt,
                          .ns = r->ns,
                          .d = m->d,
                          .dv = m->dv,
                          .q = {m->q, m->d},
                          .k = {m->k, m->d},
                          .v = {m->v, m->dv},
                          .cot = {m->cot, m->p},
                          .fout = {m->fout, m->p},
                          .out = {to[c->operand], c->operand == 2 ? m->dv : m->d},
                          .operand = c->operand,
                          .more = c->operand && more,
                          .mask = &r->mask,
                          .modulus = c->modulus});
}
static void part_head_adjoint(void *arg, int64_t i) {
    const OpCall *c = arg;
    RingHead h = {.b = i / c->in[1].n[2], .k = i % c->in[1].n[2]};
    RingPart r;
    RingRows m;
    ring_room(c, &m);
    for (ring_open(c, h.b, &r); ring_next(c, &r);) {
        ring_take_keys(c, &h, &r, &m);
        for (h.g = 0; h.g < ring_groups(c); h.g++) {
            ring_take_queries(c, &h, &r, &m);
            void *dq = c->operand == 0 ? m.dq : NULL, *dk = c->operand == 1 ? m.dk : NULL,
                 *dv = c->operand == 2 ? m.dv_ : NULL;
            if (c->modulus > 0) part_exact_adjoint(c, &r, &m, h.g > 0);
            else if (c->dtype == DT_F32)
                attention_part_bwd_f32(r.nt, r.ns, m.d, m.dv, m.q, m.d, m.k, m.d, m.v, m.dv, m.cot,
                                       m.p, m.fout, m.p, dq, m.d, dk, m.d, dv, m.dv, &r.mask,
                                       c->at->scale, h.g > 0);
            else
                attention_part_bwd_f64(r.nt, r.ns, m.d, m.dv, m.q, m.d, m.k, m.d, m.v, m.dv, m.cot,
                                       m.p, m.fout, m.p, dq, m.d, dk, m.d, dv, m.dv, &r.mask,
                                       c->at->scale, h.g > 0);
            if (dq) ring_put_queries(c, &h, &r, &m, dq, m.d);
        }
        if (c->operand == 1) ring_put_keys(c, &h, &r, &m, m.dk, m.d);
        if (c->operand == 2) ring_put_keys(c, &h, &r, &m, m.dv_, m.dv);
    }
    ring_room_free(&m);
}
static void part_adjoint(const OpCall *c) {
    if (box_empty(&c->out)) return;
    memset(c->out.p, 0, (size_t)(tensor_count(&c->out) * dtype_size(c->dtype)));
    if (!box_empty(&c->in[0]) && !box_empty(&c->in[1])) each_head(c, part_head_adjoint);
}
static void part_scratch(const OpCall *c, int64_t n, bool backward, OpScratch *s) {
    (void)n;
    const RingMost m = ring_most(c);
    const int64_t d = c->in[1].n[3], p = c->in[2].n[3] + 1;
    s->attention = attention_scratch(m.nt, m.ns, d > p ? d : p, backward, dtype_size(c->dtype));
    s->rows = ring_room_bytes(c);
}
/* Pairs of query and key that see each other in local row b. What is whole and no ring's needs no
 * list of its positions. */
static double pairs_of(const OpCall *c, int64_t b) {
    RingPart r;
    double pairs = 0;
    if (!c->at->block && !c->at->hop && !c->index['t' - 'a'] && !c->index['s' - 'a']) {
        r.mask = attention_mask(c, b, NULL, NULL);
        return attention_pairs(&r.mask, c->in[0].n[T_], c->in[1].n[1]);
    }
    for (ring_open(c, b, &r); ring_next(c, &r);) pairs += attention_pairs(&r.mask, r.nt, r.ns);
    return pairs;
}
/* 2 d for the score and 2 w for the value of each pair that is seen; where positions are not known,
 * as if blocks followed one another. */
static double part_flops(const OpCall *c) {
    double T = (double)c->in[0].n[T_], S = (double)c->in[1].n[1];
    double pairs = c->at->hop || c->at->full ? T * S : T * (S + 1) / 2;
    bool whole = c->in[0].n[T_] == c->global['t' - 'a'];
    if (c->index['t' - 'a'] || whole) {
        int64_t rows = op_packings(c, c->in[0].n[B_]);
        pairs = 0;
        for (int64_t b = 0; b < rows; b++) pairs += pairs_of(c, b) / (double)rows;
    }
    double width = (double)(c->in[1].n[3] + c->in[2].n[3]);
    return 2 * (double)(c->in[0].n[B_] * c->in[0].n[K_] * ring_groups(c)) * width * pairs;
}
/* Sum over the keys of a block that a query sees of (q.k mod 31) v, and their number, mod 31. */
static void exact_query(const OpCall *c, const RingHead *h, const RingPart *r, int64_t t) {
    const Tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    int64_t dv = v->n[3], oq = ring_query_row(c, q, h, r->t[t]),
            oo = ring_query_row(c, &c->out, h, r->t[t]);
    AttentionRun run = attention_run(&r->mask, t, r->ns);
    for (int64_t x = 0; x <= dv; x++) {
        double sum = 0;
        for (int64_t s = run.from; s < run.lim; s++) {
            double dot = floor(c->at->scale * 1000) + floor(c->at->cap * 8);
            for (int64_t y = 0; y < q->n[q->nd - 1]; y++)
                dot += el_get(q, c->dtype, oq + y) *
                       el_get(k, c->dtype, ring_key_row(k, h, r->s[s]) + y);
            sum +=
                x < dv ? fmod(dot, 31) * el_get(v, c->dtype, ring_key_row(v, h, r->s[s]) + x) : 1;
        }
        el_set(&c->out, c->dtype, oo + x, fmod(sum, 31));
    }
}
static void part_exact(const OpCall *c) {
    RingPart r;
    if (box_empty(&c->out)) return;
    for (int64_t i = 0; i < ring_heads(c) * ring_groups(c); i++) {
        int64_t kv = i / ring_groups(c), K = c->in[1].n[2];
        RingHead h = {.b = kv / K, .k = kv % K, .g = i % ring_groups(c)};
        for (ring_open(c, h.b, &r); ring_next(c, &r);)
            for (int64_t t = 0; t < r.nt; t++) exact_query(c, &h, &r, t);
    }
}

/* ---- merge ---- */
/* What two parts weigh in their sum, and its lse. A part that saw no key weighs nothing. */
typedef struct {
    double a, b, lse;
} Weights;
static Weights weights_of(double la, double lb) {
    double top = fmax(la, lb), ea = exp(la - top), eb = exp(lb - top), sum = ea + eb;
    return (Weights){ea / sum, eb / sum, top <= ATTENTION_NONE ? top : top + log(sum)};
}
/* y = w.a a + w.b b over n elements, made in double. */
static void mix(Dtype t, int64_t n, Weights w, const void *a, const void *b, void *y) {
    if (t == DT_F32) {
        const float *p = a, *q = b;
        float *to = y;
        for (int64_t x = 0; x < n; x++) to[x] = (float)(w.a * (double)p[x] + w.b * (double)q[x]);
    } else {
        const double *p = a, *q = b;
        double *to = y;
        for (int64_t x = 0; x < n; x++) to[x] = w.a * p[x] + w.b * q[x];
    }
}
static void merge_row(const OpCall *c, const int64_t *i, int64_t n) {
    const Tensor *a = &c->in[0], *b = &c->in[1], *y = &c->out;
    int64_t oa = box_offset(a, a->nd - 1, i), ob = box_offset(b, b->nd - 1, i),
            oy = box_offset(y, y->nd - 1, i);
    Weights w = weights_of(el_get(a, c->dtype, oa + n - 1), el_get(b, c->dtype, ob + n - 1));
    int64_t size = dtype_size(c->dtype);
    mix(c->dtype, n - 1, w, (const char *)a->p + oa * size, (const char *)b->p + ob * size,
        (char *)y->p + oy * size);
    el_set(y, c->dtype, oy + n - 1, w.lse);
}
static void merge_forward(const OpCall *c) { op_each_row(c, merge_row); }
/* With o = wa oa + wb ob and l = log(exp la + exp lb): d oa = wa do, d la = wa (dl + do (oa - o)).
 */
static void merge_adjoint_row(const OpCall *c, const int64_t *i, int64_t n) {
    int own = c->operand, other = 1 - own;
    const Tensor *a = &c->in[own], *b = &c->in[other], *g = &c->cot, *y = &c->out;
    int64_t oa = box_offset(a, a->nd - 1, i), ob = box_offset(b, b->nd - 1, i),
            og = box_offset(g, g->nd - 1, i), oy = box_offset(y, y->nd - 1, i);
    Weights w = weights_of(el_get(a, c->dtype, oa + n - 1), el_get(b, c->dtype, ob + n - 1));
    double sum = el_get(g, c->dtype, og + n - 1);
    for (int64_t x = 0; x + 1 < n; x++) {
        double d = el_get(g, c->dtype, og + x);
        sum += d * w.b * (el_get(a, c->dtype, oa + x) - el_get(b, c->dtype, ob + x));
        el_set(y, c->dtype, oy + x, w.a * d);
    }
    el_set(y, c->dtype, oy + n - 1, w.a * sum);
}
static void merge_adjoint(const OpCall *c) { op_each_row(c, merge_adjoint_row); }
static void join_adjoint(const OpCall *c) {
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    if (box_empty(&c->out)) return;
    do
        el_set(&c->out, c->dtype, box_offset(&c->out, c->out.nd, i),
               el_get(&c->cot, c->dtype, box_offset(&c->cot, c->cot.nd, i)));
    while (box_next(c->out.nd, c->out.n, i));
}
static void merge_exact_row(const OpCall *c, const int64_t *i, int64_t n) {
    const Tensor *a = &c->in[0], *b = &c->in[1], *y = &c->out;
    for (int64_t x = 0; x < n; x++)
        el_set(y, c->dtype, box_offset(y, y->nd - 1, i) + x,
               fmod(el_get(a, c->dtype, box_offset(a, a->nd - 1, i) + x) +
                        el_get(b, c->dtype, box_offset(b, b->nd - 1, i) + x),
                    31));
}
static void merge_exact(const OpCall *c) { op_each_row(c, merge_exact_row); }
/* The mistake of a merge that forgets to rescale: the results are added, their lse is right. */
static void added_row(const OpCall *c, const int64_t *i, int64_t n) {
    const Tensor *a = &c->in[0], *b = &c->in[1], *y = &c->out;
    int64_t oa = box_offset(a, a->nd - 1, i), ob = box_offset(b, b->nd - 1, i),
            oy = box_offset(y, y->nd - 1, i);
    merge_row(c, i, n);
    for (int64_t x = 0; x + 1 < n; x++)
        el_set(y, c->dtype, oy + x, el_get(a, c->dtype, oa + x) + el_get(b, c->dtype, ob + x));
}
static void added_forward(const OpCall *c) { op_each_row(c, added_row); }
static void added_exact_row(const OpCall *c, const int64_t *i, int64_t n) {
    const Tensor *a = &c->in[0], *b = &c->in[1], *y = &c->out;
    for (int64_t x = 0; x < n; x++)
        el_set(y, c->dtype, box_offset(y, y->nd - 1, i) + x,
               fmod(2 * el_get(a, c->dtype, box_offset(a, a->nd - 1, i) + x) +
                        el_get(b, c->dtype, box_offset(b, b->nd - 1, i) + x),
                    31));
}
static void added_exact(const OpCall *c) { op_each_row(c, added_exact_row); }
/* A weight is off by what the difference of the two lse is, and by roundings of exp and of the
 * quotient; each element is one rounding of an exact sum of two products. */
static void merge_bound_row(const OpCall *c, const int64_t *i, int64_t n, const OpBound *b) {
    const Tensor *x[] = {&c->in[0], &c->in[1], &c->cot};
    int64_t o[3], oy = box_offset(&c->out, c->out.nd - 1, i);
    for (int k = 0; k < 3; k++) o[k] = x[k]->p ? box_offset(x[k], x[k]->nd - 1, i) : 0;
    double la = el_get(x[0], DT_F64, o[0] + n - 1), lb = el_get(x[1], DT_F64, o[1] + n - 1);
    Weights w = weights_of(la, lb);
    double rate = 3 * b->u + 16 * 0x1p-53; /* one rounding, of what float64 makes */
    double near = fmin(fabs(la - lb), 800), own = b->operand == 1 ? w.b : w.a, sum = 0;
    rate += near * 0x1p-52;
    for (int64_t k = 0; k + 1 < n; k++) {
        double va = fabs(el_get(x[0], DT_F64, o[0] + k)), vb = fabs(el_get(x[1], DT_F64, o[1] + k));
        double d = b->operand >= 0 ? fabs(el_get(x[2], DT_F64, o[2] + k)) : 0;
        sum += d * (va + vb);
        b->bound[oy + k] = b->operand >= 0 ? rate * own * d : rate * (w.a * va + w.b * vb);
    }
    if (b->operand >= 0) sum += fabs(el_get(x[2], DT_F64, o[2] + n - 1));
    b->bound[oy + n - 1] = b->operand >= 0           ? (rate + (double)n * 0x1p-52) * own * sum
                           : w.lse <= ATTENTION_NONE ? 0
                                                     : rate * (fabs(w.lse) + 1);
    for (int64_t k = 0; k < n; k++) {
        b->bound[oy + k] += 0x1p-140;
        b->prob[oy + k] = b->bound[oy + k];
    }
}
static void merge_bound(const OpBound *b) {
    const OpCall *c = &b->call;
    int64_t i[LAYOUT_MAX_DIMS] = {0}, nd = c->out.nd - 1;
    if (box_empty(&c->out)) return;
    do merge_bound_row(c, i, c->out.n[nd], b);
    while (box_next((int)nd, c->out.n, i));
}
static void join_bound(const OpBound *b) {
    if (b->operand >= 0) op_bound_copy(b);
    else merge_bound(b);
}

const Op op_attention_part = {
    .name = "attention_part",
    .rule = "btkgx!,bs~t!kx!,bs~t!kx!->btkgp",
    .lin = LIN_NONE,
    .asks = RULE_BIT('t') | RULE_BIT('s'),
    .adj_reads_output = true,
    .forward = part_forward,
    .adjoint = part_adjoint,
    .scratch = part_scratch,
    .bound = ring_part_bound,
    .bound_scratch = ring_part_bound_scratch,
    .exact = part_exact,
    .exact_adjoint = op_exact_adjoint_same,
    .flops = part_flops,
    .mixes = true,
    .label = "partial attention",
};
static const Op added = {.name = "attention_added",
                         .rule = "btkgp!,btkgp!->btkgp",
                         .lin = LIN_NONE,
                         .forward = added_forward,
                         .exact = added_exact,
                         .bound = merge_bound,
                         .flops_each = 1};
const Op op_attention_merge = {
    .name = "attention_merge",
    .rule = "btkgp!,btkgp!->btkgp",
    .lin = LIN_NONE,
    .forward = merge_forward,
    .adjoint = merge_adjoint,
    .bound = merge_bound,
    .exact = merge_exact,
    .exact_adjoint = op_exact_adjoint,
    .unweighted = &added,
    .flops_each = 4,
    .label = "merge",
};
const Op op_attention_join = {
    .name = "attention_join",
    .rule = "btkgp!,btkgp!->btkgp",
    .lin = LIN_NONE,
    .adj_hands_on = true,
    .forward = merge_forward,
    .adjoint = join_adjoint,
    .bound = join_bound,
    .exact = merge_exact,
    .exact_adjoint = op_exact_adjoint_same,
    .unweighted = &added,
    .flops_each = 4,
    .label = "merge",
};
