/* Steps the program on all virtual ranks. Deterministic: who computes is decided by rank order,
 * never by threads. */
#include "exec/exec.h"
#include "exec/call.h"
#include "exec/narrow.h"
#include "exec/source.h"
#include "exec/store.h"
#include "exec/transfer.h"
#include "exec/wire.h"
#include "ops/op.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

Exec *exec_new(Arena *arena, const Program *p, Dtype dtype, Pool *pool) {
    Exec *e = ARENA_NEW(arena, Exec);
    *e = (Exec){.p = p, .numbers = dtype, .dtype = dtype_held(dtype), .pool = pool, .arena = arena};
    if (dtype == DT_BF16) e->narrow = narrow_values(p, arena);
    if (e->narrow) e->handed = narrow_handed(p, e->narrow, arena);
    e->once = ARENA_ARRAY(arena, Store, p->nv + 1);
    e->shared = ARENA_ARRAY(arena, bool, p->nv + 1);
    e->lives = lives_find(p, e->dtype, arena);
    e->dev = e->host = device_plain();
    e->wire = wire_virtual();
    for (int v = 0; v < p->nv; v++)
        e->shared[v] = p->val[v].step >= 0 ? lives_deferred(p, &p->step[p->val[v].step]) ||
                                                 lives_once(p, &p->val[v])
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
/* A parameter at rest that other ranks update: what does not arrive leaves it as it is. */
static bool waits_for_update(const Program *p, int v) {
    const Val *x = &p->val[v];
    const Assign *a = p->assign;
    return x->step < 0 && x->kind == KIND_PARAM && a && a->state && p->graph->nn_model &&
           !layout_eq(&a->state[x->tensor], &a->rest[x->tensor]);
}
static bool is_kept(const Exec *e, int v) {
    int t = e->p->val[v].tensor;
    bool kept = t == e->p->graph->output || t == e->p->graph->loss || e->p->graph->t[t].next_of;
    bool result = (e->p->env[t] == v || (e->p->other.env && e->p->other.env[t] == v)) && kept;
    bool list = e->p->val[v].list == v; /* what follows it is read by it */
    bool part = e->handed && e->handed[v] >= 0 && e->p->graph->t[t].next_of;
    return result || list || part || waits_for_update(e->p, v);
}
/* Where all is kept, sources too: what the next instance would read again, it does (and whoever
 * checks sees that). */
static void drop_read(Exec *e) {
    for (int v = 0; v < e->p->nv; v++) {
        int last = e->lives.last[v];
        bool source = e->p->val[v].step < 0 && last >= 0;
        if (source && !lives_deferred(e->p, &e->p->step[last]) && !is_kept(e, v))
            store_drop(e, &e->once[v]);
    }
}
void exec_begin(Exec *e, int64_t instance) {
    if (e->n_each) end_instance(e, e->now);
    if (e->keep_all) drop_read(e);
    exec_turn(e, instance);
}
void exec_end(Exec *e, int64_t instance) { end_instance(e, instance); }
void exec_turn(Exec *e, int64_t instance) {
    e->now = instance;
    if (instance < e->n_each && e->each[instance]) return;
    if (instance >= e->n_each) {
        int64_t n = instance + 1;
        e->each = base_realloc(e->each, base_mul((size_t)n, sizeof *e->each));
        memset(e->each + e->n_each, 0, sizeof *e->each * (size_t)(n - e->n_each));
        e->n_each = n;
    }
    size_t bytes = base_mul((size_t)e->p->nv + 1, sizeof(Store));
    e->each[instance] = memset(base_malloc(bytes), 0, bytes);
}
bool exec_once(const Exec *e, const Step *s) {
    return lives_once(e->p, &e->p->val[s->out]) && e->once[s->out].alive;
}
void exec_free(Exec *e) {
    for (int v = 0; v < e->p->nv; v++) store_drop(e, &e->once[v]);
    for (int64_t i = 0; i < e->n_each; i++) end_instance(e, i);
    free(e->each);
    narrow_free(e);
    accumulate_free(e);
}
void exec_release(Exec *e, const Step *s) {
    if (e->keep_all) return;
    for (int v = e->lives.go[s->id]; v >= 0; v = e->lives.next_go[v])
        if (!is_kept(e, v) && !lives_once(e->p, &e->p->val[v])) exec_drop(e, v);
}
void exec_release_value(Exec *e, int v) {
    if (!e->keep_all && !e->shared[v] && !is_kept(e, v)) exec_drop(e, v);
}

/* A step that one rank cannot do, none has done. */
static bool agreed(Exec *e, bool done) {
    return e->wire->agree ? e->wire->agree(e->wire, e, done) : done;
}
bool exec_load(Exec *e, int v) {
    if (!agreed(e, source_load(e, v))) return false;
    e->edited |= e->p->val[v].act != NULL; /* the check of sources says what it changed */
    return true;
}

/* A step on what ranks hold of its inputs. */
typedef struct {
    Exec *e;
    const Step *s;
    const Store *in[2];
} Inputs;
static void claim_key(void *arg, int64_t rank, int64_t *key) {
    const Inputs *x = arg;
    key[0] = x->in[0]->which[rank];
    key[1] = store_key(x->e->p->mesh, &x->s->move.to, rank);
}
/* A label is believed: the same data under another layout. Only possible if every rank holds as
 * many elements as it says. */
static bool claim_block(void *arg, int64_t rank, Local *l) {
    const Inputs *x = arg;
    Exec *e = x->e;
    const Layout *to = &x->s->move.to;
    Arena *tmp = arena_new();
    const GTensor *t = &e->p->graph->t[e->p->val[x->s->out].tensor];
    Region box =
        t->listed ? region_of(e, x->s->in[0], rank, tmp) : region_at(e->p->mesh, t, to, rank, tmp);
    Tensor as = region_packed(&box);
    arena_free(tmp);
    *l = x->in[0]->l[x->in[0]->which[rank]];
    if (tensor_count(&as) != tensor_count(&l->t)) {
        const Program *p = e->p;
        e->stuck = arena_printf(
            e->arena,
            "it lies as %s and is taken for %s: rank %lld holds %lld elements where the label says "
            "%lld, which cannot be computed any further",
            program_symbolic(p, &p->val[x->s->in[0]], e->arena),
            program_symbolic(p, &p->val[x->s->out], e->arena), (long long)rank,
            (long long)tensor_count(&l->t), (long long)tensor_count(&as));
        return false;
    }
    l->key = store_key(e->p->mesh, to, rank);
    l->rank = rank;
    l->buf->refs++;
    store_shape(e, l, &as, exec_dtype(e, x->s->out));
    return true;
}
static bool step_claim(Exec *e, const Step *s) {
    Inputs x = {e, s, {exec_store(e, s->in[0])}};
    WireBlocks w = {.width = 2, .key = claim_key, .make = claim_block, .arg = &x};
    return e->wire->share(e->wire, e, s->out, &w);
}
static void sum_key(void *arg, int64_t rank, int64_t *key) {
    const Inputs *x = arg;
    key[0] = x->in[0]->which[rank];
    key[1] = x->in[1]->which[rank];
}
static bool sum_block(void *arg, int64_t rank, Local *l) {
    const Inputs *x = arg;
    Exec *e = x->e;
    const Local *a = &x->in[0]->l[x->in[0]->which[rank]], *b = &x->in[1]->l[x->in[1]->which[rank]];
    l->key = a->key;
    l->t = a->t;
    tensor_pack(&l->t);
    l->buf = store_buf_new(e, tensor_count(&l->t) * dtype_size(e->dtype));
    l->t.p = l->buf->p;
    Region box = region_plain(&l->t);
    e->dev->copy(e->dev, (Block){&box, &l->t}, (Block){&box, &a->t}, e->dtype, COMBINE_COPY);
    e->dev->copy(e->dev, (Block){&box, &l->t}, (Block){&box, &b->t}, e->dtype, COMBINE_SUM);
    if (e->modulus > 0) device_residues(e->dev, &l->t, e->dtype, e->modulus);
    narrow_block(e, x->s->out, l->buf, &l->t);
    return true;
}
static void step_sum(Exec *e, const Step *s) {
    Inputs x = {e, s, {exec_store(e, s->in[0]), exec_store(e, s->in[1])}};
    WireBlocks w = {.width = 2, .key = sum_key, .make = sum_block, .arg = &x};
    e->wire->share(e->wire, e, s->out, &w);
}
static void seed_key(void *arg, int64_t rank, int64_t *key) {
    (void)arg, (void)rank;
    *key = 0;
}
static bool seed_block(void *arg, int64_t rank, Local *l) {
    Exec *e = arg;
    (void)rank;
    l->buf = store_buf_new(e, dtype_size(e->dtype));
    l->t.p = l->buf->p;
    e->dev->fill(e->dev, &l->t, e->dtype, 1);
    return true;
}
static void step_seed(Exec *e, const Step *s) {
    WireBlocks w = {.width = 1, .key = seed_key, .make = seed_block, .arg = e};
    e->wire->share(e->wire, e, s->out, &w);
}

/* One number for what every rank holds of a value: equal numbers, equal bits (a mutation that
 * changes nothing is none). */
static uint64_t store_hash(const Exec *e, int v) {
    uint64_t h = 1469598103934665603u;
    int64_t es = dtype_size(exec_dtype(e, v));
    for (int64_t r = 0; r < e->p->mesh->nranks; r++) {
        const Local *l = exec_local(e, v, r);
        if (!l) continue;
        Tensor host = e->dev->get(e->dev, &l->t, exec_dtype(e, v)), *t = &host;
        int64_t i[LAYOUT_MAX_DIMS] = {0};
        /* rank by rank, each with its sizes: some may have no numbers */
        for (int d = 0; d < t->nd; d++) h = (h ^ (uint64_t)t->n[d]) * 1099511628211u;
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
        e->dev->done(e->dev, &host);
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
    /* there are no bits to compare; or whoever has them does */
    if (e->dev->sizes_only || e->wire->told) return run_step(e, s);
    if (!run_step(e, &plain)) return false;
    e->flops = flops;
    uint64_t before = store_hash(e, s->out);
    if (!run_step(e, s)) return false;
    e->edited |= store_hash(e, s->out) != before;
    return true;
}
bool exec_step(Exec *e, const Step *s) {
    if (e->dev->step && !e->wire->told) e->dev->step(e->dev, s->id);
    narrow_enter(e, s);
    int r[RULE_MAX_IN + 2], n = step_reads(s, r);
    for (int k = 0; k < n; k++)
        if (!exec_store(e, r[k])->alive && e->p->val[r[k]].step < 0 && !exec_load(e, r[k]))
            return false;
    for (int k = 0; k < n; k++) assert(exec_store(e, r[k])->alive); /* in the program's order */
    const Store *part = e->wire->told ? NULL : narrow_part(e, s);   /* what is told is looked at */
    if (part) narrow_take_part(e, s, part);
    return agreed(e, part ? true : s->act ? run_edited(e, s) : run_step(e, s));
}

/* ---- micro-batches ---- */
void exec_next_iteration(Exec *e) {
    const Graph *g = e->p->graph;
    narrow_leave(e);
    for (int t = 0; t < g->nt; t++) {
        if (!g->t[t].next_of) continue;
        int to = e->p->first[g->t[t].next_of - 1], from = e->p->env[t];
        if (!exec_store(e, from)->alive)
            base_die(70, "the value of %s after the step is gone", g->t[t].name);
        exec_drop(e, to);
        *exec_store(e, to) = *exec_store(e, from);
        *exec_store(e, from) = (Store){0};
        narrow_keep(e, to);
    }
    narrow_keep_parts(e);
}
