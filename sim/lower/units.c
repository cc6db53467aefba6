/* FSDP units: the parameters of one layer are gathered, and their gradients reduced, in one
 * collective each; what is outside the layers is the root's unit. With HSDP the sums over the
 * copies travel together too. Gradients of a unit wait for its last one, as PyTorch's post-backward
 * does. Refuses to merge data: steps stay steps, they are ordered and marked. */
#include "lower/program.h"
#include <string.h>

int *unit_layers(const Program *p) {
    const Graph *g = p->graph;
    int *layer = ARENA_ARRAY(p->arena, int, g->nt + 1);
    for (int t = 0; t < g->nt; t++) layer[t] = -1;
    for (int n = g->nn - 1; n >= 0; n--) /* the first that reads it comes last */
        for (int i = 0; i < g->node[n].nin; i++) layer[g->node[n].in[i]] = g->node[n].layer;
    return layer;
}
bool unit_same_axes(const AxisList *a, const AxisList *b) {
    return a->n == b->n && !memcmp(a->a, b->a, (size_t)a->n);
}
static bool has_axis(const AxisList *l, int axis) {
    for (int i = 0; i < l->n; i++)
        if (l->a[i] == axis) return true;
    return false;
}
static const GTensor *tensor_of(const Program *p, const Step *s) {
    return &p->graph->t[p->val[s->out].tensor];
}
static bool is_gradient_move(const Program *p, const Step *s) {
    return s->kind == ST_MOVE && s->pass == PHASE_GRADIENTS && p->val[s->out].cot &&
           tensor_of(p, s)->kind == KIND_PARAM;
}
/* Axes over which HSDP keeps copies; none in other modes. */
static AxisList copy_axes(const Program *p) {
    const Plan *plan = p->assign->plan;
    AxisList l = {0};
    bool hsdp = plan->data_parallel.mode && !strcmp(plan->data_parallel.mode, "hsdp") &&
                plan->data_parallel.replicate;
    if (!hsdp || !mesh_lookup(p->mesh, plan->data_parallel.replicate, &l)) l.n = 0;
    return l;
}

/* ---- order ---- */
typedef struct {
    Program *p;
    const Step *old;
    int n_old;
    int *layer; /* per old step: layer of the gradient that it moves; -2: it moves none */
    int *wait;  /* per layer + 1: the old step that makes the last gradient of the unit; -1: they do
                   not wait */
    int *id;    /* new id of each old step */
    AxisList copies;
} Order;
/* A sum over copies and other axes at once is two: the unit's travels over the copies alone. */
static void emit(Order *o, const Step *s) {
    Program *p = o->p;
    AxisList others = {0}, copies = {0};
    for (int i = 0; s->kind == ST_MOVE && i < s->move.axes.n; i++) {
        AxisList *l = has_axis(&o->copies, s->move.axes.a[i]) ? &copies : &others;
        l->a[l->n++] = s->move.axes.a[i];
    }
    Step last = *s;
    if (is_gradient_move(p, s) && s->move.kind == MOVE_ALL_REDUCE && copies.n && others.n) {
        Val *v = program_add_val(p, &p->val[s->out]);
        v->L = s->move.from;
        for (int i = 0; i < others.n; i++) v->L.type[others.a[i]] = s->move.to.type[others.a[i]];
        Step *first = program_add_step(p, s, v->id);
        first->move.to = last.move.from = v->L;
        first->move.axes = others;
        first->group = NULL;
        last.in[0] = v->id;
        last.move.axes = copies;
        last.group = NULL;
    }
    o->id[s->id] = program_add_step(p, &last, last.out)->id;
}
static void find_waits(Order *o) {
    const Program *p = o->p;
    const int *layers = unit_layers(p);
    for (int i = 0; i < o->n_old; i++) {
        const Step *s = &o->old[i];
        o->layer[i] =
            is_gradient_move(p, s) && p->n_forward <= i ? layers[p->val[s->out].tensor] : -2;
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
void order_units(Program *p) {
    Order o = {.p = p, .old = p->step, .n_old = p->ns, .copies = copy_axes(p)};
    int layers = 0;
    for (int n = 0; n < p->graph->nn; n++)
        layers = p->graph->node[n].layer >= layers ? p->graph->node[n].layer + 1 : layers;
    o.layer = ARENA_ARRAY(p->arena, int, o.n_old + 1);
    o.id = ARENA_ARRAY(p->arena, int, o.n_old + 1);
    o.wait = ARENA_ARRAY(p->arena, int, layers + 1);
    for (int l = 0; l <= layers; l++) o.wait[l] = -1;
    find_waits(&o);
    p->step = NULL;
    p->ns = p->cap_s = 0;
    for (int i = 0; i < o.n_old; i++) {
        int wait = o.layer[i] > -2 ? o.wait[o.layer[i] + 1] : -1;
        if (wait < i) emit(&o, &o.old[i]);
        /* the unit's last gradient: now all that waited, in their order */
        for (int l = 0; l <= layers; l++)
            for (int k = 0; o.wait[l] == i && k < i; k++)
                if (o.layer[k] == l - 1) emit(&o, &o.old[k]);
    }
}

/* ---- marks ---- */
static bool travels(const Program *p, const Step *s, const AxisList *copies) {
    if (s->kind != ST_MOVE || s->act || p->val[s->out].kind == KIND_INPUT ||
        tensor_of(p, s)->kind != KIND_PARAM)
        return false;
    if (mesh_size(p->mesh, &s->move.axes) == 1) return false;
    if (s->move.kind == MOVE_ALL_GATHER || s->move.kind == MOVE_REDUCE_SCATTER) return true;
    bool over_copies = s->move.kind == MOVE_ALL_REDUCE && is_gradient_move(p, s);
    for (int i = 0; i < s->move.axes.n; i++) over_copies &= has_axis(copies, s->move.axes.a[i]);
    return over_copies;
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
        layer[i] = layers[p->val[s->out].tensor];
        for (int k = n - 1; k >= 0 && s->unit == i; k--) { /* does an earlier one lead this unit? */
            const Step *t = &p->step[lead[k]];
            bool same =
                t->move.kind == s->move.kind && t->recompute == s->recompute && t->pass == s->pass;
            if (same && layer[t->id] == layer[i] && unit_same_axes(&t->move.axes, &s->move.axes))
                s->unit = t->id;
        }
        if (s->unit == i) lead[n++] = i;
    }
}
