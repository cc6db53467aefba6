/* When values come and go. See lives.h. */
#include "exec/lives.h"
#include "exec/region.h"

static int64_t whole_bytes(const GTensor *t, Dtype dtype) {
    int64_t n = dtype_size(region_dtype(t, dtype));
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    return n;
}
static void find_late(const Program *p, Dtype dtype, Lives *l) {
    int64_t loaded = 0;
    for (int v = 0; v < p->nv; v++) {
        const Val *x = &p->val[v];
        if (x->step >= 0) continue;
        bool may_wait = x->kind == KIND_PARAM && !p->graph->nn_model && l->last[v] >= 0;
        l->late[v] = may_wait && loaded > LIVES_FIRST;
        if (!l->late[v]) loaded += whole_bytes(&p->graph->t[x->tensor], dtype);
    }
}
Lives lives_find(const Program *p, Dtype dtype, Arena *arena) {
    int *first = ARENA_ARRAY(arena, int, p->nv + 1);
    Lives l = {.last = ARENA_ARRAY(arena, int, p->nv + 1),
               .late = ARENA_ARRAY(arena, bool, p->nv + 1),
               .go = ARENA_ARRAY(arena, int, p->ns + 1),
               .next_go = ARENA_ARRAY(arena, int, p->nv + 1)};
    program_reads(p, false, first, l.last);
    for (int i = 0; i <= p->ns; i++) l.go[i] = -1;
    for (int v = 0; v < p->nv; v++) {
        if (l.last[v] < 0) continue;
        l.next_go[v] = l.go[l.last[v]];
        l.go[l.last[v]] = v;
    }
    find_late(p, dtype, &l);
    return l;
}

/* Does the value share the buffer of what it was made from? */
static bool shares_buffer(const Program *p, const Val *v) {
    return p->graph->t[v->tensor].next_of || (v->step >= 0 && step_renames(p, &p->step[v->step]));
}
/* The value in whose buffer the step leaves its result, or -1. A bucket of several gradients is
 * summed where it is, too. */
static int written_over(const Program *p, const Step *s, const int *last) {
    bool reduces = s->kind == ST_MOVE &&
                   (s->move.kind == MOVE_ALL_REDUCE || s->move.kind == MOVE_ALL_REDUCE_MAX);
    bool writes = s->kind == ST_OP && p->graph->node[s->node].in_place;
    if (!(reduces || writes)) return -1;
    const Val *in = &p->val[s->in[0]];
    bool free = last[s->in[0]] == s->id && in->step >= 0 && !shares_buffer(p, in);
    return free ? s->in[0] : -1;
}
/* What the value is a term of, at one coordinate of the pipeline, if only the step reads it; -1. */
static int lone_term(const Program *p, int v, const Step *reader, const int *last) {
    const Step *s = p->val[v].step < 0 ? NULL : &p->step[p->val[v].step];
    if (!s || s->kind != ST_MOVE || s->move.kind != MOVE_TERM || last[v] != reader->id) return -1;
    const Val *x = &p->val[s->in[0]];
    bool own = x->step >= 0 && !shares_buffer(p, x) && last[s->in[0]] == s->id;
    return own && x->L.type[p->assign->stages->axis] == TY_AT ? s->in[0] : -1;
}
bool lives_joins(const Program *p, const Step *s, const int *last, int term[2]) {
    if (s->kind != ST_SUM || !p->assign->stages) return false;
    int axis = p->assign->stages->axis;
    for (int k = 0; k < 2; k++)
        if ((term[k] = lone_term(p, s->in[k], s, last)) < 0) return false;
    return p->val[term[0]].L.at[axis] != p->val[term[1]].L.at[axis];
}
/* The term that the step adds to such a sum, each rank to what it has of it (a table that two
 * stages read, of each way); -1: it is no such step. */
static int joined_later(const Program *p, const Step *s, const int *last) {
    int term[2];
    if (s->kind != ST_SUM || last[s->in[0]] != s->id || p->val[s->in[0]].step < 0) return -1;
    const Step *sum = &p->step[p->val[s->in[0]].step];
    bool apart = lives_joins(p, sum, last, term) || joined_later(p, sum, last) >= 0;
    return apart ? lone_term(p, s->in[1], s, last) : -1;
}
bool lives_adds_up(const Program *p, const Step *s) {
    const Val *v = &p->val[s->out];
    return (s->kind == ST_ADJOINT || s->each) && !s->goes_on && v->cot &&
           p->graph->t[v->tensor].kind == KIND_PARAM;
}
bool lives_deferred(const Program *p, const Step *s) {
    const Val *v = &p->val[s->out];
    bool gradient = v->cot && p->graph->t[v->tensor].kind == KIND_PARAM;
    return s->pass == PHASE_OPTIMIZER || (gradient && s->kind != ST_ADJOINT && !s->each);
}
bool lives_both(const Program *p, const Step *s) {
    const Stages *st = p->assign->stages;
    const Val *v = &p->val[s->out];
    return st && st->ways == 2 && s->kind == ST_MOVE && v->kind == KIND_PARAM && !v->cot &&
           v->L.type[st->axis] == TY_R;
}
bool lives_once(const Program *p, const Val *v) {
    if (v->kind != KIND_PARAM || v->cot || v->step < 0) return false;
    const Step *s = &p->step[v->step];
    const Reshard *again = p->assign->reshard;
    bool kept = again->once || (p->assign->stages && !again->blocks && !again->rest);
    if (s->kind != ST_MOVE || lives_deferred(p, s))
        return false; /* of an update: each step's own */
    /* what two stages have is there before either reads its copy */
    return kept || move_relocates(s->move.kind) || lives_both(p, s);
}
const TraceHeld **lives_buffers(const Program *p, const TraceHeld *const *held, int64_t parts,
                                Arena *arena) {
    const TraceHeld **out = ARENA_ARRAY(arena, const TraceHeld *, p->nv + 1);
    TraceHeld *own = arena_alloc(arena, base_mul((size_t)p->nv + 1, sizeof *own));
    int *first = ARENA_ARRAY(arena, int, p->nv + 1), *last = ARENA_ARRAY(arena, int, p->nv + 1);
    int turns = p->ns - 1; /* the last step that every micro-batch does */
    while (turns > 0 && lives_deferred(p, &p->step[turns])) turns--;
    program_reads(p, true, first, last);
    for (int i = p->ns - 1; i >= 0; i--) { /* a view that nobody reads stays, and what it is of */
        const Step *s = &p->step[i];
        bool kept = step_renames(p, s) && (last[s->out] < 0 || last[s->out] == p->ns - 1);
        if (kept) last[s->in[0]] = p->ns - 1;
    }
    for (int v = 0; v < p->nv; v++) {
        const Val *x = &p->val[v];
        if ((x->kind == KIND_PARAM && x->step < 0) || shares_buffer(p, x)) continue;
        bool source = x->step < 0,
             sum = !source && parts > 1 && lives_adds_up(p, &p->step[x->step]);
        own[v].from = source || sum ? 0 : x->step;
        own[v].until = last[v] < 0 ? p->ns - 1 : last[v];
        out[v] = x->step >= 0 && held[x->step] ? held[x->step] : &own[v];
        if (!lives_once(p, x)) continue;
        own[v] = (TraceHeld){0, turns};
        out[v] = &own[v];
    }
    for (int i = 0; i < p->ns; i++) {
        int term[2], v = written_over(p, &p->step[i], last);
        for (int k = 0; k < 2 && lives_joins(p, &p->step[i], last, term); k++) {
            out[p->step[i].in[k]] = NULL;
            own[term[k]].until = i - 1;
        }
        int later = joined_later(p, &p->step[i], last);
        if (later >= 0) { /* added where the sum is */
            out[p->step[i].in[1]] = NULL;
            own[p->step[i].in[0]].until = i - 1;
            own[later].until = i;
        }
        bool added = parts > 1 && lives_adds_up(p, &p->step[i]); /* to what is there */
        if (v >= 0 && !added) own[v].until = i - 1;
    }
    return out;
}
