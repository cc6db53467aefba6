/* Runs the op of a step, or its adjoint, once per distinct combination of inputs. Ranks that hold
 * the same buffers share the result; who computes is decided by rank order, never by threads. */
#include "exec/call.h"
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
/* sums of residues are residues of sums, so they may be taken anywhere */
void call_residues(const Tensor *t, Dtype dt, double p) {
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
        call_residues(&c->out, c->dtype, j->modulus);
    } else if (j->adjoint) c->op->adjoint(c);
    else c->op->forward(c);
}
static bool letter_size(Exec *e, const Step *s, OpCall *c, char ch, int64_t n) {
    int64_t *have = &c->local[ch - 'a'];
    if (*have >= 0 && *have != n) {
        e->stuck = arena_printf(
            e->arena, "its operands disagree about the local size of letter %c: %lld and %lld", ch,
            (long long)*have, (long long)n);
        e->stuck_step = s->id;
        return false;
    }
    *have = n;
    return true;
}
/* Index lists of the letters that the op asks for, as one value that has the letters lies on this
 * rank. */
static void index_from(Exec *e, OpCall *c, const char *letters, int nl, int val, int64_t rank,
                       Arena *tmp) {
    if (val < 0) return;
    const Val *v = &e->p->val[val];
    for (int d = 0; d < nl; d++) {
        char ch = letters[d];
        if (!(c->op->asks & RULE_BIT(ch)) || c->index[ch - 'a'] || !v->L.n[d]) continue;
        int64_t k;
        const int64_t *x =
            layout_index(e->p->mesh, &v->L, d, e->p->graph->t[v->tensor].size[d], rank, &k, tmp);
        /* a false label may not fit: then positions are local */
        if (k == c->local[ch - 'a']) c->index[ch - 'a'] = x;
    }
}
/* From the operands; in an adjoint from the cotangent and the result too, which have the letters of
 * what is not read. */
static void set_index(Exec *e, OpCall *c, const Step *s, const GNode *n, const int *in,
                      int64_t rank, Arena *tmp) {
    for (int i = 0; i < n->nin; i++)
        index_from(e, c, n->rule.in[i], n->rule.nl[i], in[i], rank, tmp);
    if (s->kind != ST_ADJOINT) return;
    index_from(e, c, n->rule.out, n->rule.nout, s->in[0], rank, tmp);
    index_from(e, c, n->rule.in[s->operand], n->rule.nl[s->operand], s->out, rank, tmp);
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
bool call_make(Exec *e, const Step *s, int64_t rank, OpCall *c, Arena *tmp) {
    const Program *p = e->p;
    const GNode *n = &p->graph->node[s->node];
    bool adj = s->kind == ST_ADJOINT;
    const int *ops = adj ? s->in + 1 : s->in;
    *c = (OpCall){.op = n->op,
                  .rule = &n->rule,
                  .at = &n->at,
                  .dtype = e->dtype,
                  .operand = s->operand,
                  .pool = e->pool};
    for (int k = 0; k < 26; k++) c->local[k] = c->global[k] = -1;
    for (int i = 0; i < n->nin; i++) {
        const GTensor *t = &p->graph->t[n->in[i]];
        for (int d = 0; d < n->rule.nl[i]; d++) c->global[n->rule.in[i][d] - 'a'] = t->size[d];
        if (ops[i] < 0) continue;
        c->in[i] = exec_local(e, ops[i], rank)->t;
        if (has_list(&p->val[ops[i]])) c->in[i] = call_letters(&c->in[i], t);
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
        int64_t have =
            c->local[letters[d] -
                     'a']; /* a letter that no operand has is as large as the layout says */
        c->out.n[d] =
            have >= 0 ? have
                      : layout_dim_size(p->mesh, &o->L, d, p->graph->t[o->tensor].size[d], rank);
        c->local[letters[d] - 'a'] = c->out.n[d];
    }
    tensor_pack(&c->out);
    op_unread_sizes(c, n->nin);
    set_index(e, c, s, n, ops, rank, tmp);
    return true;
}
/* ---- planted mistakes ---- */
void call_contiguous(const Exec *e, const Step *s, int64_t rank, OpCall *c, Arena *tmp) {
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
static void edit_positions(const Exec *e, const Step *s, int64_t rank, OpCall *c, Arena *tmp) {
    for (int k = 0; s->edit == EDIT_LOCAL && k < 26; k++) c->index[k] = NULL;
    if (s->edit == EDIT_CONTIGUOUS) call_contiguous(e, s, rank, c, tmp);
}
/* After the kernels: the output scaled, or the first operand (of an adjoint: the cotangent) in its
 * place. */
static void edit_result(const Step *s, OpCall *c) {
    const Tensor *x = s->kind == ST_ADJOINT ? &c->cot : &c->in[0];
    if (s->edit == EDIT_SCALE) transfer_scale(&c->out, c->dtype, s->edit_scale);
    if (s->edit != EDIT_DROP || tensor_count(x) != tensor_count(&c->out)) return;
    Box b = {.nd = x->nd};
    for (int d = 0; d < b.nd; d++) b.d[d] = (DimIndex){true, 0, x->n[d], NULL}, b.n[d] = x->n[d];
    region_copy(&b, &c->out, &b, x, c->dtype, 0);
}
bool call_step(Exec *e, const Step *s) {
    const Program *p = e->p;
    const Mesh *m = p->mesh;
    const GNode *n = &p->graph->node[s->node];
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
            key[2 * k] = e->store[r[k]].which[rank];
            key[2 * k + 1] = n->op->asks ? store_key(m, &p->val[r[k]].L, rank) : 0;
        }
        key[2 * nr] = store_key(m, &p->val[s->out].L, rank);
        bool fresh;
        int *at = tuplemap_find(&map, key, &fresh);
        if (fresh) {
            OpCall *c = ARENA_PUSH(tmp, calls, nc, cap);
            ok = call_make(e, s, rank, c, tmp);
            if (!ok) break;
            if (s->edit != EDIT_NONE) edit_positions(e, s, rank, c, tmp);
            Local l = {.key = key[2 * nr], .rank = rank, .t = c->out};
            l.buf = store_buf_new(e, tensor_count(&c->out) * dtype_size(e->dtype));
            l.t.p = c->out.p = l.buf->p;
            if (has_list(&p->val[s->out])) { /* stored as the flattened block that it is */
                Arena *box_arena = arena_new();
                Box b = region_box(m, &p->graph->t[p->val[s->out].tensor], &p->val[s->out].L, rank,
                                   true, box_arena);
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
        for (int i = 0; i < nc && s->edit != EDIT_NONE; i++) edit_result(s, &calls[i]);
    }
    tuplemap_close(&map);
    arena_free(tmp);
    return ok;
}
