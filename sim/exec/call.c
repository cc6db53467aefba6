/* Runs the op of a step, or its adjoint, once per distinct combination of inputs. Ranks that hold
 * the same buffers share the result; who computes is decided by rank order, never by threads. */
#include "exec/call.h"
#include "exec/opcall.h"
#include "exec/store.h"
#include "exec/transfer.h"
#include "exec/tuplemap.h"
#include "ops/op.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    OpCall *call;
    bool adjoint;
    double modulus;
} KernelJob;
static void run_call(void *arg, int64_t i) {
    KernelJob *j = arg;
    OpCall *c = &j->call[i];
    if (j->modulus > 0) {
        c->op->exact(c);
        transfer_residues(&c->out, c->dtype, j->modulus);
    } else if (j->adjoint) c->op->adjoint(c);
    else c->op->forward(c);
}
Tensor call_letters(const Tensor *t, const GTensor *g) {
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
static Tensor rank_value(const OpcallSource *f, int val) {
    const Exec *e = f->of;
    Tensor t = exec_local(e, val, f->rank)->t;
    const Val *v = &e->p->val[val];
    return has_list(v) ? call_letters(&t, &e->p->graph->t[v->tensor]) : t;
}
static Layout rank_layout(const OpcallSource *f, int val) { return f->p->val[val].L; }
bool call_make(Exec *e, const Step *s, int64_t rank, OpCall *c, Arena *tmp) {
    OpcallSource f = {.p = e->p,
                      .dtype = e->dtype,
                      .pool = e->pool,
                      .rank = rank,
                      .value = rank_value,
                      .lies = rank_layout,
                      .of = e};
    OpcallClash clash;
    if (!opcall_build(&f, s, c, &clash)) {
        e->stuck = arena_printf(
            e->arena, "its operands disagree about the local size of letter %c: %lld and %lld",
            clash.letter, (long long)clash.one, (long long)clash.other);
        e->stuck_step = s->id;
        return false;
    }
    opcall_positions(&f, s, c, tmp);
    return true;
}
/* ---- positions, and what is done in place of the kernel ---- */
static void contiguous(const Exec *e, const Step *s, int64_t rank, OpCall *c, Arena *tmp) {
    const GNode *n = &e->p->graph->node[s->node];
    bool adj = s->kind == ST_ADJOINT;
    for (int i = -adj; i < n->nin; i++) { /* -1: the cotangent */
        int val = s->in[adj + i], nl = i < 0 ? n->rule.nout : n->rule.nl[i];
        const char *letters = i < 0 ? n->rule.out : n->rule.in[i];
        if (val < 0) continue;
        Layout L = e->p->val[val].L;
        const GTensor *t = &e->p->graph->t[e->p->val[val].tensor];
        for (int d = 0; d < nl; d++) {
            for (int k = 0; k < L.n[d]; k++) L.e[d][k].how = CUT_CHUNK;
            if (!(c->op->asks & RULE_BIT(letters[d])) || !L.n[d]) continue;
            int64_t k;
            const int64_t *x = layout_index(e->p->mesh, &L, d, t->size[d], rank, &k, tmp);
            if (k == c->local[letters[d] - 'a']) c->index[letters[d] - 'a'] = x;
        }
    }
}
void call_positions(const Exec *e, const Step *s, Positions how, int64_t rank, OpCall *c,
                    Arena *tmp) {
    for (int k = 0; how == AT_LOCAL && k < 26; k++) c->index[k] = NULL;
    if (how == AT_CONTIGUOUS) contiguous(e, s, rank, c, tmp);
}
/* After the kernel: the first operand (of an adjoint: the cotangent) in place of a result that is
 * not to be computed, and the factor. */
static void finish_result(const Step *s, const Act *act, OpCall *c) {
    const Tensor *x = s->kind == ST_ADJOINT ? &c->cot : &c->in[0];
    if (!act->times && tensor_count(x) == tensor_count(&c->out)) {
        Region b = region_plain(x);
        region_copy(&b, &c->out, &b, x, c->dtype, 0);
    }
    if (act->scale != 1) transfer_scale(&c->out, c->dtype, act->scale);
}
bool call_step(Exec *e, const Step *s) {
    const Program *p = e->p;
    const Mesh *m = p->mesh;
    const GNode *n = &p->graph->node[s->node];
    Act act = act_of(s);
    int r[RULE_MAX_IN + 2], nr = step_reads(s, r);
    Arena *tmp = arena_new();
    Store *st = store_open(e, s->out);
    TupleMap map;
    tuplemap_open(&map, 2 * nr + 1);
    OpCall *calls = NULL;
    int nc = 0, cap = 0;
    bool ok = true;
    for (int64_t rank = 0; rank < m->nranks && ok; rank++) {
        int64_t key[2 * (RULE_MAX_IN + 2) + 1];
        for (int k = 0; k < nr; k++) {
            key[2 * k] = exec_store(e, r[k])->which[rank];
            key[2 * k + 1] = n->op->asks ? store_key(m, &p->val[r[k]].L, rank) : 0;
        }
        key[2 * nr] = store_key(m, &p->val[s->out].L, rank);
        bool fresh;
        int *at = tuplemap_find(&map, key, &fresh);
        if (fresh) {
            OpCall *c = ARENA_PUSH(tmp, calls, nc, cap);
            ok = call_make(e, s, rank, c, tmp);
            if (!ok) break;
            call_positions(e, s, act.positions, rank, c, tmp);
            Local l = {.key = key[2 * nr], .rank = rank, .t = c->out};
            l.buf = store_buf_new(e, tensor_count(&c->out) * dtype_size(e->dtype));
            l.t.p = c->out.p = l.buf->p;
            if (has_list(&p->val[s->out])) { /* stored as the flattened block that it is */
                Arena *box_arena = arena_new();
                Region b = region_of(e, s->out, rank, box_arena);
                l.t = region_packed(&b);
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
            for (int i = 0; i < nc; i++)
                run_call(&j, i); /* few calls: each uses the workers inside */
        for (int i = 0; i < nc; i++) finish_result(s, &act, &calls[i]);
    }
    tuplemap_close(&map);
    arena_free(tmp);
    return ok;
}
