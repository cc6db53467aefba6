/* FSDP units: the parameters of one layer are gathered, and their gradients reduced, in one
 * collective each; what is outside the layers is the root's unit. With HSDP the sums over the
 * copies travel together too. Gradients of a unit wait for its last one, as PyTorch's post-backward
 * does. Refuses to merge data: steps stay steps, they are ordered and marked. */
#include "lower/program.h"
#include <string.h>

int *unit_layers(const Program *p) {
    return graph_units(p->graph, plan_data_unit(p->assign->plan) == UNIT_MODEL, p->arena);
}
static bool has_axis(const AxisList *l, int axis) {
    for (int i = 0; i < l->n; i++)
        if (l->a[i] == axis) return true;
    return false;
}
/* The tensor of what a step moves; of an updated parameter the parameter. */
static int tensor_of(const Program *p, const Step *s) {
    int t = p->val[s->out].tensor, old = p->graph->t[t].next_of;
    return old ? old - 1 : t;
}
static bool of_parameter(const Program *p, const Step *s) {
    return p->graph->t[tensor_of(p, s)].kind == KIND_PARAM;
}
/* A claim too: what is said of a reduced gradient waits for its unit. */
static bool is_gradient_move(const Program *p, const Step *s) {
    return (s->kind == ST_MOVE || s->kind == ST_CLAIM) && s->pass == PHASE_GRADIENTS &&
           p->val[s->out].cot && of_parameter(p, s);
}
/* Axes over which there are copies whose gradients travel in units: those of HSDP, or all where
 * whole gradients are summed. */
static AxisList copy_axes(const Program *p) {
    const Plan *plan = p->assign->plan;
    const DataMode *mode = plan_data_mode(plan);
    AxisList l = {0};
    if (mode->buckets) return p->assign->data;
    if (!mode->copies || !mesh_lookup(p->mesh, plan->data_parallel.replicate, &l)) l.n = 0;
    return l;
}

/* ---- what travels ---- */
static bool travels(const Program *p, const Step *s, const AxisList *copies) {
    if (s->kind != ST_MOVE || s->act || p->val[s->out].kind == KIND_INPUT || !of_parameter(p, s))
        return false;
    if (mesh_size(p->mesh, &s->move.axes) == 1) return false;
    if (s->move.kind == MOVE_ALL_GATHER || s->move.kind == MOVE_REDUCE_SCATTER) return true;
    bool over_copies = s->move.kind == MOVE_ALL_REDUCE && is_gradient_move(p, s);
    for (int i = 0; i < s->move.axes.n; i++) over_copies &= has_axis(copies, s->move.axes.a[i]);
    return over_copies;
}
/* ---- order ---- */
/* Moves of a unit's gradients are done in turns, each for all of them, so that nothing leaves with
 * the unit before it is there: what comes before the unit's reduction (0), that (1), what lies
 * between (2), the sum over copies (3), what comes behind (4). What travels has odd turns. */
enum { TURN_REDUCED = 1, TURN_COPIES = 3 };
typedef struct {
    Program *p;
    const Step *old;
    int n_old;
    int *layer; /* per old step: layer of the gradient that it moves; -2: it moves none */
    int *wait;  /* per layer + 1: the old step that makes the last gradient of the unit; -1: they do
                   not wait */
    int *turn, *first; /* per old step that moves a gradient: when; of two parts the first one */
    Step *rest;        /* per old step: what is to be done of it */
    AxisList copies;
} Order;
/* The move's axes that are copies, and the others. */
static AxisList part_axes(const Order *o, const Step *s, bool copies) {
    AxisList l = {0};
    for (int i = 0; i < s->move.axes.n; i++)
        if (has_axis(&o->copies, s->move.axes.a[i]) == copies) l.a[l.n++] = s->move.axes.a[i];
    return l;
}
/* A sum over copies and other axes at once is two: the unit's travels over the copies alone. */
static bool is_two(const Order *o, const Step *s) {
    return is_gradient_move(o->p, s) && s->move.kind == MOVE_ALL_REDUCE &&
           part_axes(o, s, true).n && part_axes(o, s, false).n;
}
/* The first part of such a sum; then the step reads what that makes. */
static Step first_of_two(Order *o, const Step *s) {
    Program *p = o->p;
    AxisList others = part_axes(o, s, false);
    Val *v = program_add_val(p, &p->val[s->out]);
    v->L = s->move.from;
    for (int i = 0; i < others.n; i++) v->L.type[others.a[i]] = s->move.to.type[others.a[i]];
    Step *first = program_add_step(p, s, v->id), last = *s;
    first->move.to = last.move.from = v->L;
    first->move.axes = others;
    first->group = last.group = NULL;
    last.in[0] = v->id;
    last.move.axes = part_axes(o, s, true);
    return last;
}
/* What is done of a step in that turn. */
static void emit(Order *o, int i, int turn) {
    if (is_two(o, &o->old[i]) && o->first[i] == turn) o->rest[i] = first_of_two(o, &o->old[i]);
    if (o->turn[i] == turn) program_add_step(o->p, &o->rest[i], o->rest[i].out);
}
static int next_turn(const Step *s, int before, bool travels) {
    if (!travels) return before + before % 2;
    int least = s->move.kind == MOVE_ALL_REDUCE ? TURN_COPIES : TURN_REDUCED,
        next = before + 1 + before % 2;
    return next < least ? least : next;
}
/* Returns how many turns there are. */
static int find_turns(Order *o) {
    const Program *p = o->p;
    int turns = 1;
    for (int i = 0; i < o->n_old; i++) {
        const Step *s = &o->old[i];
        o->rest[i] = *s;
        o->turn[i] = o->first[i] = 0;
        if (o->layer[i] == -2) continue;
        int by = p->val[s->in[0]].step, before = by >= 0 && o->layer[by] > -2 ? o->turn[by] : 0;
        Step last = *s;
        o->first[i] = next_turn(s, before, false);
        if (is_two(o, s)) last.move.axes = part_axes(o, s, true), before = o->first[i];
        o->turn[i] = next_turn(s, before, travels(p, &last, &o->copies));
        if (o->turn[i] >= turns) turns = o->turn[i] + 1;
    }
    return turns;
}
static void find_waits(Order *o) {
    const Program *p = o->p;
    const int *layers = unit_layers(p);
    for (int i = 0; i < o->n_old; i++) {
        const Step *s = &o->old[i];
        o->layer[i] = is_gradient_move(p, s) && p->n_forward <= i ? layers[tensor_of(p, s)] : -2;
        int made = o->layer[i] > -2 ? p->val[s->in[0]].step : -1;
        if (made >= 0 && o->layer[made] == -2 && made > o->wait[o->layer[i] + 1])
            o->wait[o->layer[i] + 1] = made;
    }
    /* what reads a reduced gradient before the unit's last one is made cannot wait */
    for (int i = 0; i < o->n_old; i++) {
        int r[RULE_MAX_IN + 2], n = o->layer[i] == -2 ? step_reads(&o->old[i], r) : 0;
        for (int k = 0; k < n; k++) {
            int by = p->val[r[k]].step, layer = by >= 0 ? o->layer[by] : -2;
            if (layer > -2 && i <= o->wait[layer + 1]) o->wait[layer + 1] = -1;
        }
    }
}
/* Its last gradient is there: now all that waited for it. */
static void emit_unit(Order *o, int layer, int turns) {
    for (int turn = 0; turn < turns; turn++)
        for (int k = 0; k < o->n_old; k++)
            if (o->layer[k] == layer) emit(o, k, turn);
}
void order_units(Program *p) {
    Order o = {.p = p, .old = p->step, .n_old = p->ns, .copies = copy_axes(p)};
    const int *unit = unit_layers(p);
    int layers = 0;
    for (int t = 0; t < p->graph->nt; t++) layers = unit[t] >= layers ? unit[t] + 1 : layers;
    o.layer = ARENA_ARRAY(p->arena, int, o.n_old + 1);
    o.turn = ARENA_ARRAY(p->arena, int, o.n_old + 1);
    o.first = ARENA_ARRAY(p->arena, int, o.n_old + 1);
    o.rest = ARENA_ARRAY(p->arena, Step, o.n_old + 1);
    o.wait = ARENA_ARRAY(p->arena, int, layers + 1);
    for (int l = 0; l <= layers; l++) o.wait[l] = -1;
    find_waits(&o);
    int turns = find_turns(&o);
    p->step = NULL;
    p->ns = p->cap_s = 0;
    for (int i = 0; i < o.n_old; i++) {
        int wait = o.layer[i] > -2 ? o.wait[o.layer[i] + 1] : -1;
        for (int turn = 0; turn < turns && wait < 0; turn++) emit(&o, i, turn);
        for (int l = 0; l <= layers; l++)
            if (o.wait[l] == i) emit_unit(&o, l - 1, turns);
    }
}

/* ---- marks ---- */
/* Do two values lie on the same ranks of a pipeline? */
static bool same_home(const Mesh *m, const Layout *x, const Layout *y) {
    for (int a = 0; a < m->naxes; a++) {
        bool at = x->type[a] == TY_AT;
        if (at != (y->type[a] == TY_AT) || (at && x->at[a] != y->at[a])) return false;
        if (x->pair[a].low != y->pair[a].low || x->pair[a].high != y->pair[a].high) return false;
    }
    return true;
}
/* A unit is one stage's, but for a buffer: that has all that a rank holds, of each of its stages.
 */
static bool same_place(const Program *p, const Step *s, const Step *t) {
    bool flat = s->move.from.flat.total || s->move.to.flat.total;
    return (flat || s->stage == t->stage) && same_home(p->mesh, &s->move.from, &t->move.from);
}
void mark_units(Program *p) {
    AxisList copies = copy_axes(p);
    const int *layers = unit_layers(p);
    int *lead = ARENA_ARRAY(p->arena, int, p->ns + 1),
        *layer = ARENA_ARRAY(p->arena, int, p->ns + 1), n = 0;
    for (int i = 0; i < p->ns; i++) {
        Step *s = &p->step[i];
        if (!travels(p, s, &copies)) continue;
        s->unit = i;
        layer[i] = layers[tensor_of(p, s)];
        for (int k = n - 1; k >= 0 && s->unit == i; k--) { /* does an earlier one lead this unit? */
            const Step *t = &p->step[lead[k]];
            bool same = t->move.kind == s->move.kind && t->recompute == s->recompute &&
                        t->pass == s->pass && same_place(p, s, t);
            if (same && layer[t->id] == layer[i] && mesh_same_axes(&t->move.axes, &s->move.axes))
                s->unit = t->id;
        }
        if (s->unit == i) lead[n++] = i;
    }
}
