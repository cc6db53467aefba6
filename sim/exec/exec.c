/* Steps the program on all virtual ranks. Deterministic: who computes is decided by rank order, never by threads. */
#include "exec/exec.h"
#include "ops/op.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- buffers: reference counted; large ones are recycled, because first touch of memory is what costs ---- */
struct Buf {
    int refs;
    size_t bytes;
    void *p;
    Buf *next;
};
struct BufPool {
    Buf *free_list;
    size_t free_bytes;
};
static Buf *buf_new(Exec *e, int64_t bytes) {
    size_t n = bytes > 0 ? (size_t)bytes : 1;
    Buf **best = NULL;
    for (Buf **b = &e->bufs->free_list; *b; b = &(*b)->next)
        if ((*b)->bytes >= n && (*b)->bytes <= n + n / 4 + 4096 && (!best || (*b)->bytes < (*best)->bytes)) best = b;
    Buf *b;
    if (best) {
        b = *best;
        *best = b->next;
        e->bufs->free_bytes -= b->bytes;
    } else {
        b = base_malloc(sizeof *b);
        b->bytes = n;
        b->p = base_big(n);
    }
    b->refs = 1;
    b->next = NULL;
    e->live_bytes += (int64_t)b->bytes;
    if (e->live_bytes > e->peak_bytes) e->peak_bytes = e->live_bytes;
    return b;
}
static Buf *buf_adopt(Exec *e, void *p, int64_t bytes) {
    Buf *b = base_malloc(sizeof *b);
    *b = (Buf){1, bytes > 0 ? (size_t)bytes : 1, p, NULL};
    e->live_bytes += (int64_t)b->bytes;
    if (e->live_bytes > e->peak_bytes) e->peak_bytes = e->live_bytes;
    return b;
}
static void buf_drop(Exec *e, Buf *b) {
    if (--b->refs) return;
    e->live_bytes -= (int64_t)b->bytes;
    if (b->bytes >= 1 << 16 && e->bufs->free_bytes < (size_t)1 << 30) {
        b->next = e->bufs->free_list;
        e->bufs->free_list = b;
        e->bufs->free_bytes += b->bytes;
        return;
    }
    free(b->p);
    free(b);
}

Exec *exec_new(Arena *arena, const Program *p, Dtype dtype, Pool *pool) {
    Exec *e = ARENA_NEW(arena, Exec);
    *e = (Exec){.p = p, .dtype = dtype, .pool = pool, .arena = arena};
    e->store = ARENA_ARRAY(arena, Store, p->nv + 1);
    e->last = ARENA_ARRAY(arena, int, p->nv + 1);
    e->bufs = ARENA_NEW(arena, struct BufPool);
    for (int v = 0; v < p->nv; v++) e->last[v] = -1;
    for (int i = 0; i < p->ns; i++) {
        int r[RULE_MAX_IN + 2], n = step_reads(&p->step[i], r);
        for (int k = 0; k < n; k++) e->last[r[k]] = i;
    }
    return e;
}
void exec_drop(Exec *e, int v) {
    Store *s = &e->store[v];
    if (!s->alive) return;
    for (int i = 0; i < s->n; i++) buf_drop(e, s->l[i].buf);
    free(s->l);
    free(s->which);
    *s = (Store){0};
}
void exec_free(Exec *e) {
    for (int v = 0; v < e->p->nv; v++) exec_drop(e, v);
    for (Buf *b = e->bufs->free_list; b;) {
        Buf *next = b->next;
        free(b->p);
        free(b);
        b = next;
    }
    e->bufs->free_list = NULL;
}
void exec_release(Exec *e, const Step *s) {
    if (e->keep_all) return;
    int r[RULE_MAX_IN + 2], n = step_reads(s, r);
    for (int k = 0; k < n; k++) {
        int t = e->p->val[r[k]].tensor;
        bool kept = t == e->p->graph->output || t == e->p->graph->loss || e->p->graph->t[t].next_of;
        bool result = e->p->env[t] == r[k] && kept;
        if (e->last[r[k]] <= s->id && !result) exec_drop(e, r[k]);
    }
}
bool exec_is_int(const Exec *e, int v) { return e->p->graph->t[e->p->val[v].tensor].is_int; }
static Dtype val_dtype(const Exec *e, int v) { return exec_is_int(e, v) ? DT_I64 : e->dtype; }

/* ---- which ranks hold the same block ---- */
static int64_t class_key(const Mesh *m, const Layout *l, int64_t rank) {
    int64_t k = 0;
    for (int a = 0; a < m->naxes; a++)
        if (l->type[a] == TY_V) k += mesh_coord(m, rank, a) * m->axis[a].stride;
    return k;
}
static Store *store_open(Exec *e, int v) {
    Store *s = &e->store[v];
    exec_drop(e, v);
    s->which = base_malloc(base_mul((size_t)e->p->mesh->nranks, sizeof *s->which));
    s->alive = true;
    return s;
}
static int store_add(Store *s, Local l) {
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 4;
        s->l = base_realloc(s->l, base_mul((size_t)s->cap, sizeof *s->l));
    }
    s->l[s->n] = l;
    return s->n++;
}

/* Open-addressing map from a tuple of int64 to an int, for one step. */
typedef struct {
    int width, cap, n;
    int64_t *keys;
    int *vals;
} TupleMap;
static void map_open(TupleMap *m, int width) { *m = (TupleMap){.width = width}; }
static void map_close(TupleMap *m) {
    free(m->keys);
    free(m->vals);
}
static int *map_find(TupleMap *m, const int64_t *key, bool *fresh) {
    if (2 * (m->n + 1) > m->cap) {
        TupleMap old = *m;
        m->cap = old.cap ? 2 * old.cap : 64;
        m->keys = base_malloc(base_mul((size_t)m->cap * (size_t)m->width, sizeof *m->keys));
        m->vals = base_malloc(base_mul((size_t)m->cap, sizeof *m->vals));
        for (int i = 0; i < m->cap; i++) m->vals[i] = -1;
        m->n = 0;
        for (int i = 0; i < old.cap; i++)
            if (old.vals[i] >= 0) {
                bool f;
                *map_find(m, old.keys + (size_t)i * (size_t)m->width, &f) = old.vals[i];
            }
        map_close(&old);
    }
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < m->width; i++) h = (h ^ (uint64_t)key[i]) * 0xff51afd7ed558ccdu, h ^= h >> 32;
    for (;; h++) {
        size_t at = (size_t)(h & (uint64_t)(m->cap - 1));
        if (m->vals[at] < 0) {
            memcpy(m->keys + at * (size_t)m->width, key, (size_t)m->width * sizeof *key);
            m->n++;
            *fresh = true;
            return &m->vals[at];
        }
        if (!memcmp(m->keys + at * (size_t)m->width, key, (size_t)m->width * sizeof *key)) {
            *fresh = false;
            return &m->vals[at];
        }
    }
}

/* ---- inputs and parameters ---- */
static Tensor packed(const Box *b) {
    Tensor t = {.nd = b->nd};
    for (int d = 0; d < b->nd; d++) t.n[d] = b->n[d];
    tensor_pack(&t);
    return t;
}
bool exec_load(Exec *e, int v) {
    const Program *p = e->p;
    const Val *x = &p->val[v];
    const GTensor *t = &p->graph->t[x->tensor];
    Dtype dt = val_dtype(e, v);
    void *whole = e->full(e->full_arg, x->tensor, dt);
    if (!whole) return false;
    bool flat = region_is_flat(&x->L, NULL);
    Arena *tmp = arena_new();
    Layout none = layout_whole(p->mesh, t->nd, TY_I);
    Box wb = region_box(p->mesh, t, &none, 0, flat, tmp);
    if (flat) wb.d[0] = (DimIndex){true, 0, wb.n[0], NULL};
    Tensor wt = packed(&wb);
    wt.p = whole;
    Buf *buf = buf_adopt(e, whole, tensor_count(&wt) * dtype_size(dt));
    Store *s = store_open(e, v);
    TupleMap map;
    map_open(&map, 1);
    for (int64_t r = 0; r < p->mesh->nranks; r++) {
        int64_t key = class_key(p->mesh, &x->L, r);
        bool fresh;
        int *at = map_find(&map, &key, &fresh);
        if (fresh) {
            Box b = region_box(p->mesh, t, &x->L, r, flat, tmp);
            Local l = {.key = key, .rank = r};
            if (flat && b.n[0] && !b.d[0].range && b.d[0].list[b.n[0] - 1] - b.d[0].list[0] == b.n[0] - 1)
                b.d[0] = (DimIndex){true, b.d[0].list[0], b.n[0], NULL};
            if (region_view(&b, &wb, &wt, dt, &l.t)) {
                l.buf = buf;
                buf->refs++;
            } else {
                l.t = packed(&b);
                l.buf = buf_new(e, tensor_count(&l.t) * dtype_size(dt));
                l.t.p = l.buf->p;
                region_copy(&b, &l.t, &wb, &wt, dt, 0);
            }
            *at = store_add(s, l);
        }
        s->which[r] = (uint32_t)*at;
    }
    map_close(&map);
    arena_free(tmp);
    buf_drop(e, buf);
    return true;
}

/* ---- kernels ---- */
typedef struct {
    OpCall *call;
    bool adjoint;
    double modulus;
} KernelJob;
/* Level 3: the canonical residue of every element. Sums of residues are residues of sums, so it may be taken anywhere. */
static void residues(const Tensor *t, Dtype dt, double p) {
    int64_t n = tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        double x = dt == DT_F32 ? (double)((float *)t->p)[i] : ((double *)t->p)[i];
        x -= p * floor(x / p);
        if (dt == DT_F32) ((float *)t->p)[i] = (float)x;
        else ((double *)t->p)[i] = x;
    }
}
static void run_call(void *arg, int64_t i) {
    KernelJob *j = arg;
    OpCall *c = &j->call[i];
    if (j->modulus > 0) {
        c->op->exact(c);
        residues(&c->out, c->dtype, j->modulus);
    } else if (j->adjoint) c->op->adjoint(c);
    else c->op->forward(c);
}
static bool letter_size(Exec *e, const Step *s, OpCall *c, char ch, int64_t n) {
    int64_t *have = &c->local[ch - 'a'];
    if (*have >= 0 && *have != n) {
        e->stuck = arena_printf(e->arena, "its operands disagree about the local size of letter %c: %lld and %lld", ch, (long long)*have, (long long)n);
        e->stuck_step = s->id;
        return false;
    }
    *have = n;
    return true;
}
/* Index lists of the letters that the op asks for, as one value that has the letters lies on this rank. */
static void index_from(Exec *e, OpCall *c, const char *letters, int nl, int val, int64_t rank, Arena *tmp) {
    if (val < 0) return;
    const Val *v = &e->p->val[val];
    for (int d = 0; d < nl; d++) {
        char ch = letters[d];
        if (!(c->op->asks & RULE_BIT(ch)) || c->index[ch - 'a'] || !v->L.n[d]) continue;
        int64_t k;
        const int64_t *x = layout_index(e->p->mesh, &v->L, d, e->p->graph->t[v->tensor].size[d], rank, &k, tmp);
        if (k == c->local[ch - 'a']) c->index[ch - 'a'] = x; /* a false label may not fit: then positions are local */
    }
}
/* From the operands; in an adjoint from the cotangent and the result too, which have the letters of what is not read. */
static void set_index(Exec *e, OpCall *c, const Step *s, const GNode *n, const int *in, int64_t rank, Arena *tmp) {
    for (int i = 0; i < n->nin; i++) index_from(e, c, n->rule.in[i], n->rule.nl[i], in[i], rank, tmp);
    if (s->kind != ST_ADJOINT) return;
    index_from(e, c, n->rule.out, n->rule.nout, s->in[0], rank, tmp);
    index_from(e, c, n->rule.in[s->operand], n->rule.nl[s->operand], s->out, rank, tmp);
}
Tensor exec_letters(const Tensor *t, const GTensor *g) {
    Tensor r = {.nd = g->nd, .p = t->p};
    for (int d = 0; d < g->nd; d++) {
        bool inside = d > 0 && d < g->stored[0];
        int from = d == 0 ? 0 : d - g->stored[0] + 1;
        r.n[d] = inside ? 1 : t->n[from];
        r.s[d] = inside ? t->s[0] : t->s[from];
    }
    return r;
}
static bool has_list(const Val *v) { return v->L.n[v->L.ndim] > 0; }
static bool make_call(Exec *e, const Step *s, int64_t rank, OpCall *c, Arena *tmp) {
    const Program *p = e->p;
    const GNode *n = &p->graph->node[s->node];
    bool adj = s->kind == ST_ADJOINT;
    const int *ops = adj ? s->in + 1 : s->in;
    *c = (OpCall){.op = n->op, .rule = &n->rule, .at = &n->at, .dtype = e->dtype, .operand = s->operand, .pool = e->pool};
    for (int k = 0; k < 26; k++) c->local[k] = c->global[k] = -1;
    for (int i = 0; i < n->nin; i++) {
        const GTensor *t = &p->graph->t[n->in[i]];
        for (int d = 0; d < n->rule.nl[i]; d++) c->global[n->rule.in[i][d] - 'a'] = t->size[d];
        if (ops[i] < 0) continue;
        c->in[i] = exec_local(e, ops[i], rank)->t;
        if (has_list(&p->val[ops[i]])) c->in[i] = exec_letters(&c->in[i], t);
        c->in_int |= (uint32_t)exec_is_int(e, ops[i]) << i;
        for (int d = 0; d < n->rule.nl[i]; d++)
            if (!letter_size(e, s, c, n->rule.in[i][d], c->in[i].n[d])) return false;
    }
    if (adj) {
        c->cot = exec_local(e, s->in[0], rank)->t;
        for (int d = 0; d < n->rule.nout; d++)
            if (!letter_size(e, s, c, n->rule.out[d], c->cot.n[d])) return false;
        if (s->in[1 + n->nin] >= 0) c->fout = exec_local(e, s->in[1 + n->nin], rank)->t;
    }
    const char *letters = adj ? n->rule.in[s->operand] : n->rule.out;
    c->out.nd = adj ? n->rule.nl[s->operand] : n->rule.nout;
    const Val *o = &p->val[s->out];
    for (int d = 0; d < c->out.nd; d++) {
        int64_t have = c->local[letters[d] - 'a']; /* a letter that no operand has is as large as the layout says */
        c->out.n[d] = have >= 0 ? have : layout_dim_size(p->mesh, &o->L, d, p->graph->t[o->tensor].size[d], rank);
        c->local[letters[d] - 'a'] = c->out.n[d];
    }
    tensor_pack(&c->out);
    op_unread_sizes(c, n->nin);
    set_index(e, c, s, n, ops, rank, tmp);
    return true;
}
static bool step_kernel(Exec *e, const Step *s) {
    const Program *p = e->p;
    const Mesh *m = p->mesh;
    const GNode *n = &p->graph->node[s->node];
    int r[RULE_MAX_IN + 2], nr = step_reads(s, r);
    Arena *tmp = arena_new();
    Store *st = store_open(e, s->out);
    TupleMap map;
    map_open(&map, 2 * nr + 1);
    OpCall *calls = NULL;
    int nc = 0, cap = 0;
    bool ok = true;
    for (int64_t rank = 0; rank < m->nranks && ok; rank++) {
        int64_t key[2 * (RULE_MAX_IN + 2) + 1];
        for (int k = 0; k < nr; k++) {
            key[2 * k] = e->store[r[k]].which[rank];
            key[2 * k + 1] = n->op->asks ? class_key(m, &p->val[r[k]].L, rank) : 0;
        }
        key[2 * nr] = class_key(m, &p->val[s->out].L, rank);
        bool fresh;
        int *at = map_find(&map, key, &fresh);
        if (fresh) {
            OpCall *c = ARENA_PUSH(tmp, calls, nc, cap);
            ok = make_call(e, s, rank, c, tmp);
            if (!ok) break;
            Local l = {.key = key[2 * nr], .rank = rank, .t = c->out};
            l.buf = buf_new(e, tensor_count(&c->out) * dtype_size(e->dtype));
            l.t.p = c->out.p = l.buf->p;
            if (has_list(&p->val[s->out])) { /* stored as the flattened block that it is */
                Arena *box_arena = arena_new();
                Box b = region_box(m, &p->graph->t[p->val[s->out].tensor], &p->val[s->out].L, rank, true, box_arena);
                l.t = packed(&b);
                l.t.p = c->out.p;
                arena_free(box_arena);
            }
            if (s->kind == ST_OP) e->flops += n->op->flops(c);
            *at = store_add(st, l);
        }
        st->which[rank] = (uint32_t)*at;
    }
    if (ok) {
        KernelJob j = {calls, s->kind == ST_ADJOINT, e->modulus};
        if (nc >= pool_threads(e->pool)) pool_run(e->pool, nc, run_call, &j);
        else
            for (int i = 0; i < nc; i++) run_call(&j, i); /* few calls: each uses the workers inside */
    }
    map_close(&map);
    arena_free(tmp);
    return ok;
}

/* ---- moves ---- */
typedef struct {
    Exec *e;
    const Step *s;
    const GTensor *t;
    Layout from, to;
    Dtype dt;
    bool flat;
    AxisList axes;
    int64_t n; /* group size */
    Arena *tmp;
} MoveRun;

/* Takes a local tensor for one of another shape with as many elements (a planted wrong dim); needs packed data. */
static Tensor reshaped(const Tensor *t, const Box *b) {
    bool same = t->nd == b->nd;
    for (int d = 0; same && d < b->nd; d++) same = t->n[d] == b->n[d];
    if (same) return *t; /* may be a strided view */
    Tensor r = packed(b);
    r.p = t->p;
    return tensor_count(&r) == tensor_count(t) ? r : *t;
}
static void member_data(const MoveRun *r, int64_t rank, int64_t i, int64_t *owner, const Local **data) {
    const Mesh *m = r->e->p->mesh;
    int64_t from = i;
    if (r->s->edit == EDIT_OFFSET && r->from.type[r->axes.a[0]] == TY_V && r->to.type[r->axes.a[0]] != TY_V)
        from = ((i - r->s->edit_offset) % r->n + r->n) % r->n;
    *owner = mesh_member(m, &r->axes, rank, i); /* whose block it is meant to be */
    int64_t q = mesh_member(m, &r->axes, rank, from);
    if (r->s->edit == EDIT_AXIS) { /* the ranks along another axis take part instead */
        AxisList other = {1, {(uint8_t)r->s->edit_axis}};
        q = mesh_member(m, &other, rank, i);
    }
    *data = exec_local(r->e, r->s->in[0], q);
}
static void fill(Tensor *t, Dtype dt, double v) {
    int64_t n = tensor_count(t);
    if (dt == DT_F32) for (int64_t i = 0; i < n; i++) ((float *)t->p)[i] = (float)v;
    else if (dt == DT_F64) for (int64_t i = 0; i < n; i++) ((double *)t->p)[i] = v;
    else for (int64_t i = 0; i < n; i++) ((int64_t *)t->p)[i] = (int64_t)v;
}
static void scale(Tensor *t, Dtype dt, double v) {
    int64_t n = tensor_count(t);
    if (dt == DT_F32) for (int64_t i = 0; i < n; i++) ((float *)t->p)[i] *= (float)v;
    else if (dt == DT_F64) for (int64_t i = 0; i < n; i++) ((double *)t->p)[i] *= v;
}
/* Repeats what is there until the block is full: what a skipped gather leaves in the buffer. */
static void tile(Tensor *out, const Tensor *own, Dtype dt) {
    int64_t i[LAYOUT_MAX_DIMS] = {0}, es = dtype_size(dt);
    if (!tensor_count(out)) return;
    if (!tensor_count(own)) {
        fill(out, dt, 0);
        return;
    }
    for (int64_t k = 0; k < tensor_count(out); k++) {
        int64_t o = 0;
        for (int d = 0; d < out->nd; d++) o += i[d] % own->n[d] * own->s[d];
        memcpy((char *)out->p + k * es, (const char *)own->p + o * es, (size_t)es);
        for (int d = out->nd - 1; d >= 0; d--) {
            if (++i[d] < out->n[d]) break;
            i[d] = 0;
        }
    }
}
/* After a planted mistake a block may be shorter than its layout says: what it lacks is not there to be read. */
static void clamp_box(Box *b, const Tensor *t) {
    for (int d = 0; d < b->nd; d++)
        if (t->n[d] < b->d[d].n) b->d[d].n = b->n[d] = t->n[d];
}
/* The block of `rank` under the target layout, written into l (a view where nothing has to be copied). */
static void build_block(MoveRun *r, int64_t rank, Local *l) {
    Exec *e = r->e;
    const Mesh *m = e->p->mesh;
    const Step *s = r->s;
    int tf = r->from.type[r->axes.a[0]], tt = r->to.type[r->axes.a[0]];
    int64_t index = mesh_index_in(m, &r->axes, rank), as = rank;
    if (s->edit == EDIT_OFFSET && tt == TY_V) as = mesh_member(m, &r->axes, rank, (index + s->edit_offset) % r->n);
    Box tb = region_box(m, r->t, &r->to, as, r->flat, r->tmp);
    const Local *own = exec_local(e, s->in[0], rank);
    Box ob = region_box(m, r->t, &r->from, rank, r->flat, r->tmp);
    Tensor own_t = s->edit == EDIT_DIM || r->flat ? reshaped(&own->t, &ob) : own->t;
    clamp_box(&ob, &own_t);
    bool same = s->edit == EDIT_NONE || s->edit == EDIT_OFFSET;
    bool keep = (tf == TY_I || tf == TY_R) && tt == TY_P;
    if (same && ((tf == TY_I || tf == TY_R) && tt == TY_V) && !r->flat && region_view(&tb, &ob, &own->t, r->dt, &l->t)) {
        l->buf = own->buf;
        own->buf->refs++;
        return;
    }
    if ((keep && index == 0) || (s->edit == EDIT_DROP && (tf == TY_P || tf == TY_M) && tt != TY_V)) {
        l->t = own->t;
        l->buf = own->buf;
        own->buf->refs++;
        return;
    }
    l->t = packed(&tb);
    l->buf = buf_new(e, tensor_count(&l->t) * dtype_size(r->dt));
    l->t.p = l->buf->p;
    if (s->edit == EDIT_DROP && tf == TY_V) {
        tile(&l->t, &own->t, r->dt);
        return;
    }
    int op = tf == TY_P ? (s->edit == EDIT_MAX ? 2 : 1) : tf == TY_M ? 2 : 0;
    bool only_own = tf == TY_I || tf == TY_R || tt == TY_P || ((s->edit == EDIT_DROP || s->edit == EDIT_SLICE) && tf == TY_P);
    fill(&l->t, r->dt, tt == TY_P || keep ? 0 : op == 2 ? -INFINITY : 0);
    if (keep) return;
    if (only_own) {
        region_copy(&tb, &l->t, &ob, &own_t, r->dt, 0);
        if (s->edit == EDIT_SCALE) scale(&l->t, r->dt, s->edit_scale);
        return;
    }
    for (int64_t i = 0; i < r->n; i++) { /* in the order of the group: the order of the sum is declared */
        int64_t owner;
        const Local *data;
        member_data(r, rank, i, &owner, &data);
        Box sb = region_box(m, r->t, &r->from, owner, r->flat, r->tmp);
        Tensor src = reshaped(&data->t, &sb);
        if (tensor_count(&src) == 0) continue;
        if (s->edit != EDIT_DIM && !r->flat) src = data->t; /* flattened: packed letters are read as one dim */
        clamp_box(&sb, &src);
        region_copy(&tb, &l->t, &sb, &src, r->dt, op == 1 && i == 0 ? 0 : op);
    }
    if (e->modulus > 0 && op == 1) residues(&l->t, r->dt, e->modulus);
    if (s->edit == EDIT_AVG) scale(&l->t, r->dt, 1 / (double)r->n);
    if (s->edit == EDIT_DOUBLE) scale(&l->t, r->dt, (double)r->n);
    if (s->edit == EDIT_SCALE) scale(&l->t, r->dt, s->edit_scale);
}
/* Moves one axis' cut from its dim to another (a planted wrong dim). */
static void swap_dim(Layout *l, int axis, int dim) {
    int d = layout_where(l, axis);
    if (d < 0 || d == dim || dim >= l->ndim) return;
    layout_set_type(l, axis, TY_I);
    layout_cut(l, dim, axis, CUT_CHUNK);
}
/* One id per group: which blocks its members hold. */
static int64_t *group_ids(MoveRun *r) {
    const Mesh *m = r->e->p->mesh;
    const Store *src = &r->e->store[r->s->in[0]];
    int64_t *gid = base_malloc(base_mul((size_t)m->nranks, sizeof *gid)), *key = base_malloc(base_mul((size_t)r->n, sizeof *key));
    AxisList other = {1, {(uint8_t)r->s->edit_axis}};
    const AxisList *axes = r->s->edit == EDIT_AXIS ? &other : &r->axes;
    TupleMap map;
    map_open(&map, (int)r->n);
    int next = 0;
    for (int64_t rank = 0; rank < m->nranks; rank++) {
        if (mesh_index_in(m, axes, rank)) continue;
        for (int64_t i = 0; i < r->n; i++) key[i] = src->which[mesh_member(m, axes, rank, i)];
        bool fresh;
        int *at = map_find(&map, key, &fresh);
        if (fresh) *at = next++;
        for (int64_t i = 0; i < r->n; i++) gid[mesh_member(m, axes, rank, i)] = *at;
    }
    map_close(&map);
    free(key);
    return gid;
}
static bool needs_group(int tf, int tt) { return !((tf == TY_I || tf == TY_R)) && tt != TY_P; }
static void share_all(Exec *e, int from, int to) {
    Store *a = &e->store[from], *b = store_open(e, to);
    for (int i = 0; i < a->n; i++) {
        a->l[i].buf->refs++;
        store_add(b, a->l[i]);
    }
    memcpy(b->which, a->which, sizeof *b->which * (size_t)e->p->mesh->nranks);
}
static void step_move(Exec *e, const Step *s) {
    const Program *p = e->p;
    const Mesh *m = p->mesh;
    if (s->move.kind == MOVE_ID && s->edit == EDIT_NONE) {
        share_all(e, s->in[0], s->out);
        return;
    }
    MoveRun r = {.e = e, .s = s, .t = &p->graph->t[p->val[s->out].tensor], .from = s->move.from, .to = s->move.to, .dt = val_dtype(e, s->out), .axes = s->move.axes};
    if (s->edit == EDIT_DIM)
        for (int i = 0; i < r.axes.n; i++) {
            swap_dim(&r.from, r.axes.a[i], s->edit_dim);
            swap_dim(&r.to, r.axes.a[i], s->edit_dim);
        }
    r.n = mesh_size(m, &r.axes);
    r.flat = region_is_flat(&r.from, &r.to);
    r.tmp = arena_new();
    int tf = r.from.type[r.axes.a[0]], tt = r.to.type[r.axes.a[0]];
    int64_t *gid = needs_group(tf, tt) ? group_ids(&r) : NULL;
    bool own_matters = !gid || s->edit != EDIT_NONE;
    Store *st = store_open(e, s->out);
    const Store *src = &e->store[s->in[0]];
    TupleMap map;
    map_open(&map, 4);
    for (int64_t rank = 0; rank < m->nranks; rank++) {
        int64_t key[4] = {gid ? gid[rank] : 0, class_key(m, &r.to, rank), own_matters ? src->which[rank] : 0, 0};
        if (tt == TY_P || s->edit == EDIT_OFFSET) key[3] = mesh_index_in(m, &r.axes, rank);
        bool fresh;
        int *at = map_find(&map, key, &fresh);
        if (fresh) {
            Local l = {.key = class_key(m, &p->val[s->out].L, rank), .rank = rank};
            build_block(&r, rank, &l);
            if (r.flat && !r.to.n[r.to.ndim]) { /* gathered: the flat list is letters again */
                Box letters = region_box(m, r.t, &r.to, rank, false, r.tmp);
                l.t = reshaped(&l.t, &letters);
            }
            if (s->edit == EDIT_DIM) { /* what arrives is taken for the block that was asked for */
                Box want = region_box(m, r.t, &s->move.to, rank, r.flat, r.tmp);
                l.t = reshaped(&l.t, &want);
            }
            *at = store_add(st, l);
        }
        st->which[rank] = (uint32_t)*at;
    }
    map_close(&map);
    free(gid);
    arena_free(r.tmp);
}
/* A label is believed: the same data under another layout. Only possible if every rank holds as many elements as it says. */
static bool step_claim(Exec *e, const Step *s) {
    const Program *p = e->p;
    const GTensor *t = &p->graph->t[p->val[s->out].tensor];
    Store *a = &e->store[s->in[0]], *b = store_open(e, s->out);
    Arena *tmp = arena_new();
    bool ok = true;
    TupleMap map;
    map_open(&map, 2);
    for (int64_t r = 0; r < p->mesh->nranks && ok; r++) {
        int64_t key[2] = {a->which[r], class_key(p->mesh, &s->move.to, r)};
        bool fresh;
        int *at = map_find(&map, key, &fresh);
        if (fresh) {
            Local l = a->l[a->which[r]];
            Box box = region_box(p->mesh, t, &s->move.to, r, region_is_flat(&s->move.to, NULL), tmp);
            Tensor as = packed(&box);
            bool dense = true; /* the same elements in the same order only if they lie packed */
            Tensor chk = l.t;
            tensor_pack(&chk);
            for (int d = 0; d < l.t.nd; d++) dense &= l.t.n[d] <= 1 || chk.s[d] == l.t.s[d];
            if (tensor_count(&as) != tensor_count(&l.t)) {
                e->stuck = arena_printf(e->arena, "rank %lld holds %lld elements where the label says %lld: the wrong label cannot be computed any further", (long long)r, (long long)tensor_count(&l.t), (long long)tensor_count(&as));
                e->stuck_step = s->id;
                ok = false;
                break;
            }
            l.key = key[1];
            l.rank = r;
            if (dense) {
                as.p = l.t.p;
                l.t = as;
            }
            l.buf->refs++;
            *at = store_add(b, l);
        }
        b->which[r] = (uint32_t)*at;
    }
    map_close(&map);
    arena_free(tmp);
    return ok;
}
static void step_sum(Exec *e, const Step *s) {
    Store *a = &e->store[s->in[0]], *b = &e->store[s->in[1]], *o = store_open(e, s->out);
    TupleMap map;
    map_open(&map, 2);
    for (int64_t r = 0; r < e->p->mesh->nranks; r++) {
        int64_t key[2] = {a->which[r], b->which[r]};
        bool fresh;
        int *at = map_find(&map, key, &fresh);
        if (fresh) {
            Local l = {.key = a->l[a->which[r]].key, .rank = r, .t = a->l[a->which[r]].t};
            tensor_pack(&l.t);
            int64_t n = tensor_count(&l.t);
            l.buf = buf_new(e, n * dtype_size(e->dtype));
            l.t.p = l.buf->p;
            Box box = {.nd = l.t.nd};
            for (int d = 0; d < l.t.nd; d++) box.d[d] = (DimIndex){true, 0, l.t.n[d], NULL}, box.n[d] = l.t.n[d];
            region_copy(&box, &l.t, &box, &a->l[a->which[r]].t, e->dtype, 0);
            region_copy(&box, &l.t, &box, &b->l[b->which[r]].t, e->dtype, 1);
            *at = store_add(o, l);
        }
        o->which[r] = (uint32_t)*at;
    }
    map_close(&map);
}
static void step_seed(Exec *e, const Step *s) {
    Store *o = store_open(e, s->out);
    Local l = {.rank = 0, .buf = buf_new(e, dtype_size(e->dtype))};
    l.t.p = l.buf->p;
    fill(&l.t, e->dtype, 1);
    store_add(o, l);
    memset(o->which, 0, sizeof *o->which * (size_t)e->p->mesh->nranks);
}

/* One number for what every rank holds of a value: equal numbers, equal bits (a mutation that changes nothing is none). */
static uint64_t store_hash(const Exec *e, int v) {
    uint64_t h = 1469598103934665603u;
    int64_t es = dtype_size(val_dtype(e, v));
    for (int64_t r = 0; r < e->p->mesh->nranks; r++) {
        const Tensor *t = &exec_local(e, v, r)->t;
        int64_t i[LAYOUT_MAX_DIMS] = {0};
        for (int64_t k = tensor_count(t); k > 0; k--) {
            int64_t o = 0;
            for (int d = 0; d < t->nd; d++) o += i[d] * t->s[d];
            for (int64_t b = 0; b < es; b++) h = (h ^ ((const unsigned char *)t->p)[o * es + b]) * 1099511628211u;
            for (int d = t->nd - 1; d >= 0; d--) {
                if (++i[d] < t->n[d]) break;
                i[d] = 0;
            }
        }
        h ^= (uint64_t)r * 0x9e3779b97f4a7c15u;
    }
    return h;
}
static void step_edited(Exec *e, const Step *s) {
    Step plain = *s;
    plain.edit = EDIT_NONE;
    step_move(e, &plain);
    uint64_t before = store_hash(e, s->out);
    step_move(e, s);
    e->edited |= store_hash(e, s->out) != before;
}

bool exec_step(Exec *e, const Step *s) {
    int r[RULE_MAX_IN + 2], n = step_reads(s, r);
    for (int k = 0; k < n; k++)
        if (!e->store[r[k]].alive && e->p->val[r[k]].step < 0 && !exec_load(e, r[k])) return false;
    switch (s->kind) {
    case ST_OP:
    case ST_ADJOINT: return step_kernel(e, s);
    case ST_MOVE:
        if (s->edit != EDIT_NONE) step_edited(e, s);
        else step_move(e, s);
        return true;
    case ST_CLAIM: return step_claim(e, s);
    case ST_SUM: step_sum(e, s); return true;
    case ST_SEED: step_seed(e, s); return true;
    }
    return true;
}

/* ---- micro-batches ---- */
static bool of_parameter(const Exec *e, const Step *s) {
    const Val *v = &e->p->val[s->out];
    return v->cot && e->p->graph->t[v->tensor].kind == KIND_PARAM;
}
bool exec_deferred(const Exec *e, const Step *s) {
    return !strcmp(s->pass, "optimizer") || (of_parameter(e, s) && s->kind != ST_ADJOINT);
}
void exec_accumulate(Exec *e, const Step *s, int64_t part, int64_t parts) {
    if (parts < 2 || s->kind != ST_ADJOINT || !of_parameter(e, s)) return;
    Store *st = &e->store[s->out];
    int64_t n = 0;
    for (int k = 0; k < st->n; k++) n += tensor_count(&st->l[k].t);
    if (!e->acc) e->acc = ARENA_ARRAY(e->arena, double *, e->p->nv + 1);
    double **acc = &e->acc[s->out];
    if (!*acc) *acc = ARENA_ARRAY(e->arena, double, n);
    int64_t at = 0;
    for (int k = 0; k < st->n; k++) { /* what an adjoint makes is packed; sums run in micro-batch order, in the run's dtype */
        int64_t c = tensor_count(&st->l[k].t);
        for (int64_t i = 0; i < c; i++, at++) {
            if (e->dtype == DT_F32) {
                float *x = (float *)st->l[k].t.p + i, sum = part ? (float)(*acc)[at] + *x : *x;
                (*acc)[at] = (double)sum;
                if (part == parts - 1) *x = sum;
            } else {
                double *x = (double *)st->l[k].t.p + i, sum = part ? (*acc)[at] + *x : *x;
                (*acc)[at] = sum;
                if (part == parts - 1) *x = sum;
            }
        }
    }
}
void exec_drop_inputs(Exec *e) {
    for (int t = 0; t < e->p->graph->nt; t++)
        if (e->p->graph->t[t].kind == KIND_INPUT) exec_drop(e, e->p->first[t]);
}
void exec_next_iteration(Exec *e) {
    const Graph *g = e->p->graph;
    exec_drop_inputs(e);
    for (int t = 0; t < g->nt; t++) {
        if (!g->t[t].next_of) continue;
        int to = e->p->first[g->t[t].next_of - 1], from = e->p->env[t];
        if (!e->store[from].alive) base_die(70, "the value of %s after the step is gone", g->t[t].name);
        exec_drop(e, to);
        e->store[to] = e->store[from];
        e->store[from] = (Store){0};
    }
}

/* ---- assembling ---- */
Layout exec_joint_layout(const Exec *e, const Layout *l, const AxisList *fixed) {
    Layout r = *l;
    for (int d = 0; d <= r.ndim; d++) {
        for (int i = 0; i < r.n[d]; i++) {
            bool f = false;
            for (int k = 0; k < fixed->n; k++) f |= fixed->a[k] == r.e[d][i].axis;
            if (!f) r.e[d][i].ghost = 1;
        }
        while (r.n[d] && r.e[d][r.n[d] - 1].ghost) memset(&r.e[d][--r.n[d]], 0, sizeof(Entry));
    }
    for (int a = 0; a < e->p->mesh->naxes; a++)
        if (layout_where(&r, a) < 0 && r.type[a] == TY_V) r.type[a] = TY_I;
    return r;
}
typedef struct {
    const Exec *e;
    int v;
    bool flat;
    int64_t rank;
    const AxisList *over;
    const Box *box;
    Tensor *out;
    Dtype dt;
} AssembleJob;
/* The part of one rank: it overlaps no other's, so workers may copy side by side. */
static void assemble_part(void *arg, int64_t i) {
    const AssembleJob *j = arg;
    const Program *p = j->e->p;
    int64_t q = mesh_member(p->mesh, j->over, j->rank, i);
    Arena *tmp = arena_new();
    Box sb = region_box(p->mesh, &p->graph->t[p->val[j->v].tensor], &p->val[j->v].L, q, j->flat, tmp);
    const Local *l = exec_local(j->e, j->v, q);
    if (l->t.nd == sb.nd && !memcmp(l->t.n, sb.n, sizeof(int64_t) * (size_t)sb.nd)) region_copy(j->box, j->out, &sb, &l->t, j->dt, 0); /* else a false label: leave it */
    arena_free(tmp);
}
Tensor exec_assemble(const Exec *e, int v, const AxisList *fixed, int64_t rank) {
    const Program *p = e->p;
    const Val *x = &p->val[v];
    const GTensor *t = &p->graph->t[x->tensor];
    bool flat = region_is_flat(&x->L, NULL);
    Arena *tmp = arena_new();
    Layout joint = exec_joint_layout(e, &x->L, fixed);
    Box tb = region_box(p->mesh, t, &joint, rank, flat, tmp);
    Tensor out = packed(&tb);
    Dtype dt = val_dtype(e, v);
    int64_t bytes = tensor_count(&out) * dtype_size(dt);
    out.p = base_big((size_t)(bytes > 0 ? bytes : 1));
    AxisList over = {0}; /* the cutting axes that are not fixed: their ranks hold the parts */
    for (int a = 0; a < p->mesh->naxes; a++) {
        bool f = false;
        for (int k = 0; k < fixed->n; k++) f |= fixed->a[k] == a;
        if (!f && x->L.type[a] == TY_V) over.a[over.n++] = (uint8_t)a;
    }
    int64_t n = mesh_size(p->mesh, &over);
    AssembleJob j = {e, v, flat, rank, &over, &tb, &out, dt};
    if (e->pool && n > 1 && bytes > 1 << 20) pool_run(e->pool, n, assemble_part, &j);
    else
        for (int64_t i = 0; i < n; i++) assemble_part(&j, i);
    arena_free(tmp);
    return out;
}
