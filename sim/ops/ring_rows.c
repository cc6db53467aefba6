/* Rows of queries and keys of partial attention side by side, by the blocks that they lie in. See
 * ring.h. Refuses to compute. */
#include "ops/ring.h"
#include "kernel/isa.h"
#include <stdlib.h>

enum { B_, T_, K_, G_, X_ }; /* dims of q and the output, where there is a group */

static bool has_group(const OpCall *c) { return c->rule->nl[0] > G_ + 1; }
/* Offset of row (b, t, k, g) of q, the output or the cotangent. */
int64_t ring_query_row(const OpCall *c, const Tensor *x, const RingHead *h, int64_t t) {
    int64_t o = h->b * x->s[B_] + t * x->s[T_] + h->k * x->s[K_];
    return has_group(c) ? o + h->g * x->s[G_] : o;
}
int64_t ring_key_row(const Tensor *x, const RingHead *h, int64_t s) {
    return h->b * x->s[0] + s * x->s[1] + h->k * x->s[2];
}
int64_t ring_groups(const OpCall *c) { return has_group(c) ? c->in[0].n[G_] : 1; }
int64_t ring_heads(const OpCall *c) { return c->in[1].n[0] * c->in[1].n[2]; }

/* ---- which queries and keys belong together ---- */
static int block_of(const OpCall *c, int64_t pos) { return c->at->block ? c->at->block[pos] : 0; }
static int64_t pick(const OpCall *c, char letter, int64_t n, int block, int64_t *at, int64_t *pos) {
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t p = global_index(c, letter, i);
        if (block_of(c, p) != block) continue;
        at[k] = i;
        pos[k++] = p;
    }
    return k;
}
void ring_open(const OpCall *c, int64_t b, RingPart *r) {
    int64_t T = c->in[0].n[T_], S = c->in[1].n[1];
    r->t = base_malloc(base_mul((size_t)(2 * (T + S) + 1), sizeof *r->t));
    r->s = r->t + T;
    r->query_pos = r->s + S;
    r->key_pos = r->query_pos + T;
    r->b = b;
    r->next = 0;
}
bool ring_next(const OpCall *c, RingPart *r) {
    int n = c->at->block ? c->at->blocks : 1;
    for (; r->next < n; r->next++) {
        int keys = n > 1 ? ((r->next - c->at->hop) % n + n) % n : 0;
        r->nt = pick(c, 't', c->in[0].n[T_], r->next, r->t, r->query_pos);
        if (!r->nt) continue;
        r->ns = c->at->hop && n == 1 ? 0 : pick(c, 's', c->in[1].n[1], keys, r->s, r->key_pos);
        r->mask = attention_mask(c, r->b, r->query_pos, r->key_pos);
        r->next++;
        return true;
    }
    free(r->t);
    return false;
}
/* Rows of n elements between a value and a packed block. */
static void take_rows(Dtype t, const Tensor *x, const int64_t *at, int64_t rows, int64_t n,
                      void *to) {
    int64_t size = dtype_size(t);
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)to + i * n * size, (const char *)x->p + at[i] * size, (size_t)(n * size));
}
static void put_rows(Dtype t, const void *from, int64_t rows, int64_t n, const int64_t *at,
                     const Tensor *x) {
    int64_t size = dtype_size(t);
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)x->p + at[i] * size, (const char *)from + i * n * size, (size_t)(n * size));
}
static const int64_t *query_rows(const OpCall *c, const Tensor *x, const RingHead *h,
                                 const RingPart *r, int64_t *at) {
    for (int64_t i = 0; i < r->nt; i++) at[i] = ring_query_row(c, x, h, r->t[i]);
    return at;
}
static const int64_t *key_rows(const Tensor *x, const RingHead *h, const RingPart *r, int64_t *at) {
    for (int64_t i = 0; i < r->ns; i++) at[i] = ring_key_row(x, h, r->s[i]);
    return at;
}

RingMost ring_most(const OpCall *c) {
    RingMost m = {c->in[0].n[T_], c->in[1].n[1], c->in[0].n[T_] * c->in[1].n[1]};
    RingPart r;
    if (!c->at->block || m.nt < c->global['t' - 'a']) return m;
    m = (RingMost){0};
    for (ring_open(c, 0, &r); ring_next(c, &r);) {
        if (r.nt > m.nt) m.nt = r.nt;
        if (r.ns > m.ns) m.ns = r.ns;
        if (r.nt * r.ns > m.pairs) m.pairs = r.nt * r.ns;
    }
    return m;
}

/* ---- the room of one head ---- */
static int64_t room_of(const OpCall *c) {
    int64_t d = c->in[1].n[3], dv = c->in[2].n[3];
    return c->in[0].n[T_] * (2 * d + 3 * (dv + 1)) + 2 * c->in[1].n[1] * (d + dv) + 1;
}
int64_t ring_room_bytes(const OpCall *c) {
    return (int64_t)kernel_scratch_size(base_mul((size_t)room_of(c), (size_t)dtype_size(c->dtype)));
}
void ring_room(const OpCall *c, RingRows *m) {
    int64_t T = c->in[0].n[T_], S = c->in[1].n[1], size = dtype_size(c->dtype);
    m->d = c->in[1].n[3];
    m->dv = c->in[2].n[3];
    m->p = m->dv + 1;
    m->at = base_malloc(base_mul((size_t)(T + S + 1), sizeof *m->at));
    char *p = kernel_scratch(SCRATCH_ROWS, base_mul((size_t)room_of(c), (size_t)size));
    void **row[] = {&m->q, &m->dq, &m->o, &m->cot, &m->fout, &m->k, &m->dk, &m->v, &m->dv_};
    int64_t n[] = {T * m->d, T * m->d, T * m->p,  T * m->p, T * m->p,
                   S * m->d, S * m->d, S * m->dv, S * m->dv};
    for (int i = 0; i < 9; i++) *row[i] = p, p += n[i] * size;
}
void ring_room_free(RingRows *m) { free(m->at); }
void ring_take_keys(const OpCall *c, const RingHead *h, const RingPart *r, RingRows *m) {
    take_rows(c->dtype, &c->in[1], key_rows(&c->in[1], h, r, m->at), r->ns, m->d, m->k);
    take_rows(c->dtype, &c->in[2], key_rows(&c->in[2], h, r, m->at), r->ns, m->dv, m->v);
}
void ring_take_queries(const OpCall *c, const RingHead *h, const RingPart *r, RingRows *m) {
    take_rows(c->dtype, &c->in[0], query_rows(c, &c->in[0], h, r, m->at), r->nt, m->d, m->q);
    if (!c->cot.p) return;
    take_rows(c->dtype, &c->cot, query_rows(c, &c->cot, h, r, m->at), r->nt, m->p, m->cot);
    take_rows(c->dtype, &c->fout, query_rows(c, &c->fout, h, r, m->at), r->nt, m->p, m->fout);
}
void ring_put_queries(const OpCall *c, const RingHead *h, const RingPart *r, RingRows *m,
                      const void *from, int64_t n) {
    put_rows(c->dtype, from, r->nt, n, query_rows(c, &c->out, h, r, m->at), &c->out);
}
void ring_put_keys(const OpCall *c, const RingHead *h, const RingPart *r, RingRows *m,
                   const void *from, int64_t n) {
    put_rows(c->dtype, from, r->ns, n, key_rows(&c->out, h, r, m->at), &c->out);
}
