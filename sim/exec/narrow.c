/* bf16 as roundings of a float32 run. See narrow.h. */
#include "exec/narrow.h"
#include "exec/store.h"
#include "exec/widths.h"
#include "kernel/bf16.h"
#include "ops/op.h"
#include <math.h>
#include <string.h>

/* ---- which values ---- */
/* Partial results carry the logarithm of a sum, which has no digits to lose. */
static bool is_partial(const Op *op) {
    for (int i = 0; i < n_ops; i++)
        if (op_list[i]->part == op || op_list[i]->merge == op) return true;
    return false;
}
/* Plan words: is what they speak of held in bf16? Where nothing is said it is like all values. */
static bool in_bf16(int dtype) { return dtype < 0 || dtype == DT_BF16; }
/* Per Val: who reads it? Bit 0: a step of the loss, bit 1: another. A cotangent that the loss only
 * moves is read by those who read what it becomes: it is rounded where it is made, then sent. */
static uint8_t *readers(const Program *p, Arena *arena) {
    uint8_t *by = ARENA_ARRAY(arena, uint8_t, p->nv + 1);
    for (int i = 0; i < p->ns; i++) {
        int r[RULE_MAX_IN + 2], n = step_reads(&p->step[i], r);
        for (int k = 0; k < n; k++) by[r[k]] |= p->step[i].pass == PHASE_LOSS ? 1 : 2;
    }
    for (int i = p->ns - 1; i >= 0; i--) {
        const Step *s = &p->step[i];
        if (s->kind == ST_MOVE && s->pass == PHASE_LOSS && p->val[s->out].cot)
            by[s->in[0]] |= by[s->out];
    }
    return by;
}
static const GTensor *tensor_of(const Program *p, int val) {
    return &p->graph->t[p->val[val].tensor];
}
/* What an optimizer makes, or starts from. */
static bool of_optimizer(const Program *p, const GTensor *t) {
    const Plan *plan = p->assign->plan;
    const GTensor *made = t->next_of ? &p->graph->t[t->next_of - 1] : t;
    return in_bf16(made->state_of ? plan->moments : plan->master);
}
/* Does the move hand on what the optimizer made of a parameter? */
static bool hands_on(const Program *p, const Step *s) {
    const GTensor *t = tensor_of(p, s->out);
    return s->kind == ST_MOVE && s->pass == PHASE_OPTIMIZER && t->next_of &&
           !p->graph->t[t->next_of - 1].state_of;
}
/* The value, made by a move from parameter t at rest, that the optimizer updates; -1: it reads the
 * parameter itself. */
static int part_of(const Program *p, int t) {
    for (int i = p->ns - 1; i >= 0; i--) {
        const Step *s = &p->step[i];
        if (s->kind != ST_OP || s->pass != PHASE_OPTIMIZER) continue;
        for (int k = 0; k < s->nin; k++) {
            const Val *x = &p->val[s->in[k]];
            if (x->tensor == t && !x->cot) return x->step < 0 ? -1 : x->id;
        }
    }
    return -1;
}
static bool is_narrow(const Program *p, int v, const uint8_t *by) {
    const Val *x = &p->val[v];
    const GTensor *t = tensor_of(p, v);
    bool made = x->step >= 0, inside = made && p->step[x->step].pass == PHASE_LOSS;
    /* whole numbers, scalars, the loss, `data: {gradients: f32}` */
    if (widths_of(p, x, DT_BF16) != DT_BF16) return false;
    if (t->grad_of) return in_bf16(p->assign->plan->gradients_in);
    if (made && hands_on(p, &p->step[x->step]) && part_of(p, t->next_of - 1) >= 0) {
        const Step *s = &p->step[x->step];
        return s->move.kind != MOVE_ID || is_narrow(p, s->in[0], by);
    }
    if (t->state_of || t->next_of || (made && p->step[x->step].pass == PHASE_OPTIMIZER))
        return of_optimizer(p, t);
    if (t->producer >= 0 && is_partial(p->graph->node[t->producer].op)) return false;
    /* what the loss makes or is given for itself; its cotangent of the logits is for others */
    if (inside || (!made && t->kind == KIND_INPUT)) return by[v] & 2;
    return true;
}
bool *narrow_values(const Program *p, Arena *arena) {
    bool *narrow = ARENA_ARRAY(arena, bool, p->nv + 1);
    Arena *tmp = arena_new();
    const uint8_t *by = readers(p, tmp);
    for (int v = 0; v < p->nv; v++) narrow[v] = is_narrow(p, v, by);
    arena_free(tmp);
    return narrow;
}
const bool *narrow_sources(const Exec *e, Arena *arena) {
    if (!e->narrow) return NULL;
    bool *source = ARENA_ARRAY(arena, bool, e->p->graph->nt + 1);
    for (int v = 0; v < e->p->nv; v++) {
        const Val *x = &e->p->val[v];
        if (x->step < 0 && !x->cot) source[x->tensor] = e->narrow[v];
    }
    return source;
}

/* ---- rounding ---- */
void narrow_round(const Exec *e, Device *dev, int val, const Tensor *t) {
    if (e->narrow && e->narrow[val]) dev->round(dev, t);
}
void narrow_block(Exec *e, int val, Buf *b, const Tensor *t) {
    narrow_round(e, e->dev, val, t);
    size_t wide = (size_t)tensor_count(t) * sizeof(float);
    if (e->narrow && e->narrow[val] && e->dev->halves && wide && b->bytes == wide)
        store_buf_halve(e, b);
}
/* The rounding of what lies within `off` of x; a little more, for x - off is rounded too. */
typedef struct {
    double lo, hi;
} Ends;
static Ends ends_of(double x, double off) {
    off += fabs(off) * 0x1p-48 + fabs(x) * (off > 0 ? 0x1p-52 : 0);
    return (Ends){bf16_of_double(x - off), bf16_of_double(x + off)};
}
void narrow_bounds(int64_t n, double *want, double *bound, double *prob) {
    for (int64_t i = 0; i < n; i++) {
        Ends all = ends_of(want[i], bound[i]), likely = ends_of(want[i], prob ? prob[i] : bound[i]);
        if (isnan(want[i]) || isnan(bound[i])) continue;
        if (all.lo == all.hi) { /* infinite ones too */
            want[i] = all.lo;
            bound[i] = 0;
            if (prob) prob[i] = 0;
            continue;
        }
        bool whole = isfinite(all.lo) && isfinite(all.hi);
        double middle = whole ? all.lo + (all.hi - all.lo) / 2 : want[i];
        want[i] = middle;
        bound[i] = whole ? all.hi - middle : INFINITY;
        if (prob) prob[i] = whole ? fmax(middle - likely.lo, likely.hi - middle) : INFINITY;
    }
}

/* ---- parameters in float32 ---- */
static bool has_master(const Exec *e, int val) {
    const Val *x = &e->p->val[val];
    const GTensor *t = tensor_of(e->p, val);
    return e->narrow && x->kind == KIND_PARAM && !x->cot && !t->state_of && t->diff &&
           !in_bf16(e->p->assign->plan->master);
}
static void swap(Exec *e) {
    for (int v = 0; v < e->p->nv; v++) {
        if (!e->master[v].alive || e->p->val[v].step >= 0) continue;
        Store s = e->master[v];
        e->master[v] = e->once[v];
        e->once[v] = s;
    }
    e->at_master = !e->at_master;
}
void narrow_enter(Exec *e, const Step *s) {
    if (e->master && !e->at_master && s->pass == PHASE_OPTIMIZER) swap(e);
}
void narrow_leave(Exec *e) {
    if (e->at_master) swap(e);
}
/* The same blocks for the same ranks, as value `val` is held. */
static Store copied(Exec *e, int val, const Store *of) {
    Store s = *of;
    size_t bytes = base_mul((size_t)e->p->mesh->nranks, sizeof *s.which);
    s.which = memcpy(base_malloc(bytes), of->which, bytes);
    s.n = s.cap = 0;
    s.l = NULL;
    for (int i = 0; i < of->n; i++) {
        Local l = of->l[i];
        tensor_pack(&l.t);
        l.buf = store_buf_new(e, tensor_count(&l.t) * dtype_size(DT_F32));
        l.t.p = l.buf->p;
        Region box = region_plain(&l.t);
        e->dev->copy(e->dev, (Block){&box, &l.t}, (Block){&box, &of->l[i].t}, DT_F32, COMBINE_COPY);
        narrow_block(e, val, l.buf, &l.t);
        store_add(&s, l);
    }
    return s;
}
void narrow_keep(Exec *e, int to) {
    int next = -1;
    for (int t = 0; t < e->p->graph->nt; t++)
        if (e->p->graph->t[t].next_of == e->p->val[to].tensor + 1) next = e->p->env[t];
    if (!has_master(e, to) || (next >= 0 && e->narrow[next])) return;
    if (!e->master) e->master = ARENA_ARRAY(e->arena, Store, e->p->nv + 1);
    store_drop(e, &e->master[to]);
    e->master[to] = e->once[to];
    e->once[to] = copied(e, to, &e->master[to]);
}
/* ---- parts of ZeRO ---- */
int *narrow_handed(const Program *p, const bool *narrow, Arena *arena) {
    int *of = arena_alloc(arena, base_mul((size_t)p->nv + 1, sizeof *of));
    for (int v = 0; v < p->nv; v++) of[v] = -1;
    for (int t = 0; t < p->graph->nt; t++) {
        int made = p->first[t], to = p->env[t], of_param = p->graph->t[t].next_of - 1;
        if (of_param < 0 || made < 0 || made == to || narrow[made] || !narrow[to]) continue;
        int part = part_of(p, of_param);
        if (part >= 0) of[made] = part, of[part] = made;
    }
    return of;
}
void narrow_keep_parts(Exec *e) {
    for (int v = 0; e->handed && v < e->p->nv; v++) {
        int part = tensor_of(e->p, v)->next_of ? e->handed[v] : -1;
        if (part < 0 || !e->once[v].alive) continue;
        if (!e->master) e->master = ARENA_ARRAY(e->arena, Store, e->p->nv + 1);
        store_drop(e, &e->master[part]);
        e->master[part] = e->once[v];
        e->once[v] = (Store){0};
    }
}
const Store *narrow_part(const Exec *e, const Step *s) {
    bool kept = e->master && e->handed && e->handed[s->out] >= 0 && !s->act &&
                e->p->val[s->out].step == s->id && e->master[s->out].alive;
    return kept ? &e->master[s->out] : NULL;
}
void narrow_take_part(Exec *e, const Step *s, const Store *part) {
    store_drop(e, exec_store(e, s->out));
    *exec_store(e, s->out) = copied(e, s->out, part);
}
bool narrow_rounds(const Exec *e, const Step *s) {
    return s->kind == ST_MOVE && e->narrow && e->narrow[s->out] && !e->narrow[s->in[0]];
}
void narrow_free(Exec *e) {
    for (int v = 0; e->master && v < e->p->nv; v++) store_drop(e, &e->master[v]);
}
