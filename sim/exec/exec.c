/* Steps the program on all virtual ranks. Deterministic: who computes is decided by rank order,
 * never by threads. */
#include "exec/exec.h"
#include "exec/call.h"
#include "exec/store.h"
#include "exec/transfer.h"
#include "exec/tuplemap.h"
#include "ops/op.h"
#include <stdlib.h>
#include <string.h>

Exec *exec_new(Arena *arena, const Program *p, Dtype dtype, Pool *pool) {
    Exec *e = ARENA_NEW(arena, Exec);
    *e = (Exec){.p = p, .dtype = dtype, .pool = pool, .arena = arena};
    e->once = ARENA_ARRAY(arena, Store, p->nv + 1);
    e->shared = ARENA_ARRAY(arena, bool, p->nv + 1);
    e->last = ARENA_ARRAY(arena, int, p->nv + 1);
    e->bufs = ARENA_NEW(arena, struct BufPool);
    for (int v = 0; v < p->nv; v++) e->last[v] = -1;
    for (int i = 0; i < p->ns; i++) {
        int r[RULE_MAX_IN + 2], n = step_reads(&p->step[i], r);
        for (int k = 0; k < n; k++) e->last[r[k]] = i;
    }
    for (int v = 0; v < p->nv; v++)
        e->shared[v] = p->val[v].step >= 0 ? exec_deferred(e, &p->step[p->val[v].step])
                                           : p->val[v].kind != KIND_INPUT;
    exec_begin(e, 0);
    return e;
}
/* Drops the values of an instance and its table. */
static void end_instance(Exec *e, int64_t instance) {
    Store *of = instance < e->n_each ? e->each[instance] : NULL;
    for (int v = 0; of && v < e->p->nv; v++) store_drop(e, &of[v]);
    free(of);
    if (of) e->each[instance] = NULL;
}
void exec_begin(Exec *e, int64_t instance) {
    if (e->n_each) end_instance(e, e->now);
    if (instance >= e->n_each) {
        int64_t n = instance + 1;
        e->each = base_realloc(e->each, base_mul((size_t)n, sizeof *e->each));
        memset(e->each + e->n_each, 0, sizeof *e->each * (size_t)(n - e->n_each));
        e->n_each = n;
    }
    size_t bytes = base_mul((size_t)e->p->nv + 1, sizeof(Store));
    e->each[instance] = memset(base_malloc(bytes), 0, bytes);
    e->now = instance;
}
void exec_free(Exec *e) {
    for (int v = 0; v < e->p->nv; v++) store_drop(e, &e->once[v]);
    for (int64_t i = 0; i < e->n_each; i++) end_instance(e, i);
    free(e->each);
    store_buf_free_all(e);
    accumulate_free(e);
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

/* ---- inputs and parameters ---- */
/* The layout by which a rank cuts its block out of the source, and whose block that is. */
static Layout source_layout(const Val *x, const ReadAct *act) {
    Layout L = x->L;
    for (int d = 0; act->nest && d <= L.ndim; d++)
        for (int k = 0; k < L.n[d]; k++) L.e[d][k] = x->L.e[d][L.n[d] - 1 - k];
    return L;
}
static int64_t source_rank(const Mesh *m, const Val *x, const ReadAct *act, int64_t rank) {
    AxisList cut = {0};
    if (!act->shift) return rank;
    for (int a = 0; a < m->naxes; a++)
        if (layout_where(&x->L, a) >= 0) cut.a[cut.n++] = (uint8_t)a;
    int64_t n = mesh_size(m, &cut), i = mesh_index_in(m, &cut, rank) + act->shift;
    return mesh_member(m, &cut, rank, (i % n + n) % n);
}
/* Data of its own for each rank that should hold the same as others: the block turned round by the
 * rank's place among them. */
static void turn(const Mesh *m, const Val *x, int64_t rank, Tensor *t, Dtype dt) {
    AxisList same = {0};
    for (int a = 0; a < m->naxes; a++)
        if (layout_where(&x->L, a) < 0) same.a[same.n++] = (uint8_t)a;
    int64_t n = tensor_count(t), by = n ? mesh_index_in(m, &same, rank) % n : 0,
            es = dtype_size(dt);
    char *old = base_malloc(base_mul((size_t)(n ? n : 1), (size_t)es)), *p = t->p;
    memcpy(old, p, (size_t)(n * es));
    memcpy(p, old + by * es, (size_t)((n - by) * es));
    memcpy(p + (n - by) * es, old, (size_t)(by * es));
    free(old);
}
static bool load_source(Exec *e, int v) {
    const Program *p = e->p;
    const Val *x = &p->val[v];
    const GTensor *t = &p->graph->t[x->tensor];
    Dtype dt = exec_dtype(e, v);
    void *whole = e->full(e->full_arg, x->tensor, dt);
    if (!whole) return false;
    Region wb = region_whole(t);
    Tensor wt = region_packed(&wb);
    wt.p = whole;
    Buf *buf = store_buf_adopt(e, whole, tensor_count(&wt) * dtype_size(dt));
    Store *s = store_open(e, v);
    ReadAct act = x->act ? *x->act : (ReadAct){0};
    Layout lies = source_layout(x, &act);
    TupleMap map;
    tuplemap_open(&map, 1);
    for (int64_t r = 0; r < p->mesh->nranks; r++) {
        int64_t key = act.apart ? r : store_key(p->mesh, &x->L, r);
        bool fresh;
        int *at = tuplemap_find(&map, &key, &fresh);
        if (fresh) {
            Arena *part = arena_new(); /* lists of positions may be as long as the value */
            Region b = region_at(p->mesh, t, &lies, source_rank(p->mesh, x, &act, r), part);
            Local l = {.key = store_key(p->mesh, &x->L, r), .rank = r};
            if (!act.apart && region_view(&b, &wb, &wt, dt, &l.t)) {
                l.buf = buf;
                buf->refs++;
            } else {
                l.t = region_packed(&b);
                l.buf = store_buf_new(e, tensor_count(&l.t) * dtype_size(dt));
                l.t.p = l.buf->p;
                region_copy(&b, &l.t, &wb, &wt, dt, 0);
                if (act.apart) turn(p->mesh, x, r, &l.t, dt);
            }
            arena_free(part);
            *at = store_add(s, l);
        }
        s->which[r] = (uint32_t)*at;
    }
    tuplemap_close(&map);
    store_buf_drop(e, buf);
    return true;
}

bool exec_load(Exec *e, int v) {
    if (!load_source(e, v)) return false;
    e->edited |= e->p->val[v].act != NULL; /* the check of sources says what it changed */
    return true;
}

/* A label is believed: the same data under another layout. Only possible if every rank holds as
 * many elements as it says. */
static bool step_claim(Exec *e, const Step *s) {
    const Program *p = e->p;
    const GTensor *t = &p->graph->t[p->val[s->out].tensor];
    Store *a = exec_store(e, s->in[0]), *b = store_open(e, s->out);
    bool ok = true;
    TupleMap map;
    tuplemap_open(&map, 2);
    for (int64_t r = 0; r < p->mesh->nranks && ok; r++) {
        int64_t key[2] = {a->which[r], store_key(p->mesh, &s->move.to, r)};
        bool fresh;
        int *at = tuplemap_find(&map, key, &fresh);
        if (fresh) {
            Local l = a->l[a->which[r]];
            Arena *tmp = arena_new();
            Region box = region_at(p->mesh, t, &s->move.to, r, tmp);
            Tensor as = region_packed(&box);
            arena_free(tmp);
            bool dense = true; /* the same elements in the same order only if they lie packed */
            Tensor chk = l.t;
            tensor_pack(&chk);
            for (int d = 0; d < l.t.nd; d++) dense &= l.t.n[d] <= 1 || chk.s[d] == l.t.s[d];
            if (tensor_count(&as) != tensor_count(&l.t)) {
                e->stuck = arena_printf(e->arena,
                                        "rank %lld holds %lld elements where the label says %lld: "
                                        "the wrong label cannot be computed any further",
                                        (long long)r, (long long)tensor_count(&l.t),
                                        (long long)tensor_count(&as));
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
    tuplemap_close(&map);
    return ok;
}
static void step_sum(Exec *e, const Step *s) {
    Store *a = exec_store(e, s->in[0]), *b = exec_store(e, s->in[1]), *o = store_open(e, s->out);
    TupleMap map;
    tuplemap_open(&map, 2);
    for (int64_t r = 0; r < e->p->mesh->nranks; r++) {
        int64_t key[2] = {a->which[r], b->which[r]};
        bool fresh;
        int *at = tuplemap_find(&map, key, &fresh);
        if (fresh) {
            Local l = {.key = a->l[a->which[r]].key, .rank = r, .t = a->l[a->which[r]].t};
            tensor_pack(&l.t);
            int64_t n = tensor_count(&l.t);
            l.buf = store_buf_new(e, n * dtype_size(e->dtype));
            l.t.p = l.buf->p;
            Region box = region_plain(&l.t);
            region_copy(&box, &l.t, &box, &a->l[a->which[r]].t, e->dtype, 0);
            region_copy(&box, &l.t, &box, &b->l[b->which[r]].t, e->dtype, 1);
            *at = store_add(o, l);
        }
        o->which[r] = (uint32_t)*at;
    }
    tuplemap_close(&map);
}
static void step_seed(Exec *e, const Step *s) {
    Store *o = store_open(e, s->out);
    Local l = {.rank = 0, .buf = store_buf_new(e, dtype_size(e->dtype))};
    l.t.p = l.buf->p;
    transfer_fill(&l.t, e->dtype, 1);
    store_add(o, l);
    memset(o->which, 0, sizeof *o->which * (size_t)e->p->mesh->nranks);
}

/* One number for what every rank holds of a value: equal numbers, equal bits (a mutation that
 * changes nothing is none). */
static uint64_t store_hash(const Exec *e, int v) {
    uint64_t h = 1469598103934665603u;
    int64_t es = dtype_size(exec_dtype(e, v));
    for (int64_t r = 0; r < e->p->mesh->nranks; r++) {
        const Tensor *t = &exec_local(e, v, r)->t;
        int64_t i[LAYOUT_MAX_DIMS] = {0};
        for (int64_t k = tensor_count(t); k > 0; k--) {
            int64_t o = 0;
            for (int d = 0; d < t->nd; d++) o += i[d] * t->s[d];
            for (int64_t b = 0; b < es; b++)
                h = (h ^ ((const unsigned char *)t->p)[o * es + b]) * 1099511628211u;
            for (int d = t->nd - 1; d >= 0; d--) {
                if (++i[d] < t->n[d]) break;
                i[d] = 0;
            }
        }
        h ^= (uint64_t)r * 0x9e3779b97f4a7c15u;
    }
    return h;
}
static bool run_step(Exec *e, const Step *s) {
    switch (s->kind) {
    case ST_OP:
    case ST_ADJOINT: return call_step(e, s);
    case ST_MOVE: transfer_step(e, s); return true;
    case ST_CLAIM: return step_claim(e, s);
    case ST_SUM: step_sum(e, s); return true;
    case ST_SEED: step_seed(e, s); return true;
    }
    return true;
}
/* What is done and what is declared, one after the other: e->edited says whether any bit differs.
 */
static bool run_edited(Exec *e, const Step *s) {
    Step plain = *s;
    plain.act = NULL;
    double flops = e->flops;
    if (!run_step(e, &plain)) return false;
    e->flops = flops;
    uint64_t before = store_hash(e, s->out);
    if (!run_step(e, s)) return false;
    e->edited |= store_hash(e, s->out) != before;
    return true;
}
bool exec_step(Exec *e, const Step *s) {
    int r[RULE_MAX_IN + 2], n = step_reads(s, r);
    for (int k = 0; k < n; k++)
        if (!exec_store(e, r[k])->alive && e->p->val[r[k]].step < 0 && !exec_load(e, r[k]))
            return false;
    return s->act ? run_edited(e, s) : run_step(e, s);
}

/* ---- micro-batches ---- */
static bool of_parameter(const Exec *e, const Step *s) {
    const Val *v = &e->p->val[s->out];
    return v->cot && e->p->graph->t[v->tensor].kind == KIND_PARAM;
}
bool exec_deferred(const Exec *e, const Step *s) {
    return s->pass == PHASE_OPTIMIZER || (of_parameter(e, s) && s->kind != ST_ADJOINT);
}
void exec_next_iteration(Exec *e) {
    const Graph *g = e->p->graph;
    for (int t = 0; t < g->nt; t++) {
        if (!g->t[t].next_of) continue;
        int to = e->p->first[g->t[t].next_of - 1], from = e->p->env[t];
        if (!exec_store(e, from)->alive)
            base_die(70, "the value of %s after the step is gone", g->t[t].name);
        exec_drop(e, to);
        *exec_store(e, to) = *exec_store(e, from);
        *exec_store(e, from) = (Store){0};
    }
}
