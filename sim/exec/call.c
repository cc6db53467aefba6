/* Runs the op of a step, or its adjoint, once per distinct combination of inputs. Ranks that hold
 * the same buffers share the result; who computes is decided by rank order, never by threads. */
#include "exec/call.h"
#include "exec/narrow.h"
#include "exec/opcall.h"
#include "exec/store.h"
#include "exec/transfer.h"
#include "exec/wire.h"
#include "ops/op.h"
#include <stdlib.h>
#include <string.h>

Tensor call_letters(const Tensor *t, const GTensor *g) {
    Tensor r = {.nd = g->nd, .p = t->p};
    int list = g->nd - t->nd + 1; /* letters that are one list */
    for (int d = 0; d < g->nd; d++) {
        bool inside = d > 0 && d < list;
        int from = d == 0 ? 0 : d - list + 1;
        r.n[d] = inside ? 1 : t->n[from];
        r.s[d] = inside ? t->s[0] : t->s[from];
    }
    return r;
}
/* Is stored dim 0 one list: cut as such, or rows? */
static bool has_list(const Val *v) { return v->L.n[v->L.ndim] > 0 || v->list >= 0; }
/* The way back: rows, then the other letters. */
static Tensor rows_packed(const Tensor *t, const GTensor *g) {
    Tensor r = {.nd = g->nd - g->listed + 1, .p = t->p};
    r.n[0] = t->n[0];
    for (int d = 1; d < r.nd; d++) r.n[d] = t->n[d + g->listed - 1];
    tensor_pack(&r);
    return r;
}
static Tensor rank_value(const OpcallSource *f, int val) {
    const Exec *e = f->of;
    Tensor t = exec_local(e, val, f->rank)->t;
    const Val *v = &e->p->val[val];
    return has_list(v) ? call_letters(&t, &e->p->graph->t[v->tensor]) : t;
}
static Layout rank_layout(const OpcallSource *f, int val) { return f->p->val[val].L; }
/* Does every real operand, and the cotangent, hold bf16 numbers? */
static bool reads_narrow(const Exec *e, const Step *s, const OpCall *c) {
    const int *in = opcall_operands(s);
    bool all = e->narrow != NULL;
    for (int i = 0; i < c->rule->nin && all; i++)
        all = in[i] < 0 || c->in_int >> i & 1 || e->narrow[in[i]];
    return all && (s->kind != ST_ADJOINT || e->narrow[s->in[0]]);
}
bool call_make(Exec *e, const Step *s, int64_t rank, OpCall *c, Arena *tmp) {
    OpcallSource f = {.p = e->p,
                      .dtype = e->dtype,
                      .pool = e->pool,
                      .rank = rank,
                      .part = e->now,
                      .sizes_only = e->dev->sizes_only,
                      .dev = e->dev,
                      .value = rank_value,
                      .lies = rank_layout,
                      .of = e};
    OpcallClash clash;
    if (!opcall_build(&f, s, c, &clash)) {
        e->stuck = arena_printf(
            e->arena, "its operands disagree about the local size of letter %c: %lld and %lld",
            clash.letter, (long long)clash.one, (long long)clash.other);
        return false;
    }
    c->narrow = reads_narrow(e, s, c);
    c->modulus = e->modulus;
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
            if (!(op_asks(c->op, c->rule, c->at) & RULE_BIT(letters[d])) || !L.n[d]) continue;
            IndexList x = layout_index(e->p->mesh, &L, d, t->size[d], rank, tmp);
            if (x.n == c->local[letters[d] - 'a']) c->index[letters[d] - 'a'] = x.at;
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
static void finish_result(Device *dev, const Step *s, const Act *act, OpCall *c) {
    const Tensor *x = s->kind == ST_ADJOINT ? &c->cot : &c->in[0];
    if (!act->times && tensor_count(x) == tensor_count(&c->out)) {
        Region b = region_plain(x);
        dev->copy(dev, (Block){&b, &c->out}, (Block){&b, x}, c->dtype, COMBINE_COPY);
    }
    if (act->scale != 1) dev->scale(dev, &c->out, c->dtype, act->scale);
}
/* made: the blocks that the calls make. */
static void run_calls(Exec *e, const Step *s, OpCall *calls, const Local *made, int n) {
    Device *dev = e->dev;
    bool exact = e->modulus > 0;
    bool back = s->kind == ST_ADJOINT;
    DeviceKernel what = exact && back ? DEVICE_EXACT_ADJOINT
                        : exact       ? DEVICE_EXACT
                        : back        ? DEVICE_ADJOINT
                                      : DEVICE_FORWARD;
    dev->call(dev, calls, n, what, e->pool);
    for (int i = 0; i < n && exact && !exec_is_int(e, s->out); i++)
        device_residues(dev, &calls[i].out, calls[i].dtype, e->modulus);
    Act act = act_of(s);
    for (int i = 0; i < n && !exec_is_int(e, s->out); i++) {
        finish_result(dev, s, &act, &calls[i]);
        narrow_block(e, s->out, made[i].buf, &calls[i].out);
    }
}
/* The calls of a step, run some at a time: with many small ranks they are larger than their data.
 */
typedef struct {
    Exec *e;
    const Step *s;
    int r[RULE_MAX_IN + 2], nr; /* values that it reads */
    int list;                   /* that its rows follow; -1: none, or it makes it */
    OpCall *call;
    int n, done; /* calls that wait; that were made, each for the next block of the store */
    Arena *tmp;  /* of their index lists */
} Calls;
enum { CALLS_AT_ONCE = 256 };
static void flush(Calls *x) {
    Store *made = exec_store(x->e, x->s->out);
    /* a process says what its steps took itself, and does not wait for its GPU here */
    bool timed = x->e->dev->busy && x->e->wire->self < 0;
    if (timed) device_busy(x->e->dev); /* what others asked of it */
    if (!timed) run_calls(x->e, x->s, x->call, made->l + x->done, x->n);
    for (int i = 0; timed && i < x->n; i++) {
        run_calls(x->e, x->s, &x->call[i], &made->l[x->done + i], 1);
        made->l[x->done + i].seconds = device_busy(x->e->dev);
    }
    x->done += x->n;
    x->n = 0;
    arena_free(x->tmp);
    x->tmp = arena_new();
}
static void flush_calls(void *arg) { flush(arg); }
/* Equal inputs at equal places, and the same place of the output. */
static void call_key(void *arg, int64_t rank, int64_t *key) {
    const Calls *x = arg;
    const Program *p = x->e->p;
    const GNode *n = &p->graph->node[x->s->node];
    bool asks = op_asks(n->op, &n->rule, &n->at);
    for (int k = 0; k < x->nr; k++) {
        *key++ = exec_store(x->e, x->r[k])->which[rank];
        *key++ = asks ? store_key(p->mesh, &p->val[x->r[k]].L, rank) : 0;
    }
    *key++ = store_key(p->mesh, &p->val[x->s->out].L, rank);
    *key = x->list < 0 ? 0 : exec_store(x->e, x->list)->which[rank];
}
static bool call_block(void *arg, int64_t rank, Local *l) {
    Calls *x = arg;
    Exec *e = x->e;
    const Step *s = x->s;
    const Val *v = &e->p->val[s->out];
    if (x->n == CALLS_AT_ONCE) flush(x);
    OpCall *c = &x->call[x->n];
    if (!call_make(e, s, rank, c, x->tmp)) return false;
    call_positions(e, s, act_of(s).positions, rank, c, x->tmp);
    if (act_of(s).unweighted) c->op = c->op->unweighted;
    l->key = store_key(e->p->mesh, &v->L, rank);
    l->t = c->out;
    l->buf = store_buf_new(e, tensor_count(&c->out) * dtype_size(exec_dtype(e, s->out)));
    l->t.p = c->out.p = l->buf->p;
    if (v->list >= 0) l->t = rows_packed(&c->out, &e->p->graph->t[v->tensor]);
    else if (has_list(v)) {
        Arena *tmp = arena_new();
        Region b = region_of(e, s->out, rank, tmp);
        Tensor block = region_packed(&b);
        block.p = l->t.p;
        /* stored as the flattened block that it is; of inputs that a planted mistake made too
         * large or too small it is none, and the check says so */
        if (tensor_count(&block) == tensor_count(&l->t)) l->t = block;
        arena_free(tmp);
    }
    if (s->kind == ST_OP) e->flops += op_flops(c);
    x->n++;
    return true;
}
bool call_step(Exec *e, const Step *s) {
    Calls x = {.e = e, .s = s, .tmp = arena_new()};
    x.nr = step_reads(s, x.r);
    x.list = program_list(e->p, s);
    if (x.list == s->out) x.list = -1;
    x.call = base_malloc(CALLS_AT_ONCE * sizeof *x.call);
    WireBlocks w = {.width = 2 * x.nr + 2,
                    .key = call_key,
                    .make = call_block,
                    .ready = flush_calls,
                    .arg = &x};
    bool ok = e->wire->share(e->wire, e, s->out, &w);
    if (ok) flush(&x);
    free(x.call);
    arena_free(x.tmp);
    return ok;
}
