/* Planted mistakes: rows {name, edit of one lowered step}. The declared layouts stay; only what the step does changes. */
#include "lower/program.h"
#include "plan/sums.h"
#include <stdlib.h>
#include <string.h>

static bool is_reduction(const Step *s) { return s->move.kind == MOVE_ALL_REDUCE || s->move.kind == MOVE_REDUCE_SCATTER; }
static bool acts(const Program *p, const Step *s) {
    return s->kind == ST_MOVE && mesh_size(p->mesh, &s->move.axes) > 1 && (move_communicates(s->move.kind) || s->move.kind == MOVE_SLICE);
}
/* Named faults of `--fault NAME`: the first step that the row fits. */
static const struct {
    const char *name, *what;
    MoveKind kind;
    int edit;
    double scale;
} rows[] = {
    {"drop-reduction", "the first all-reduce passes the local part on", MOVE_ALL_REDUCE, EDIT_DROP, 0},
    {"drop-reduce-scatter", "the first reduce-scatter keeps the own part without adding", MOVE_REDUCE_SCATTER, EDIT_DROP, 0},
    {"drop-gather", "the first all-gather repeats the own part", MOVE_ALL_GATHER, EDIT_DROP, 0},
    {"average", "the first all-reduce divides by the number of ranks", MOVE_ALL_REDUCE, EDIT_AVG, 0},
    {"max-for-sum", "the first all-reduce takes the maximum", MOVE_ALL_REDUCE, EDIT_MAX, 0},
    {"double-reduction", "the first all-reduce is done twice", MOVE_ALL_REDUCE, EDIT_DOUBLE, 0},
    {"wrong-block", "the first reduce-scatter delivers the block of the next rank", MOVE_REDUCE_SCATTER, EDIT_OFFSET, 0},
};
const char *const *fault_names(Arena *arena, const char *const **what) {
    int n = (int)(sizeof rows / sizeof rows[0]);
    const char **names = ARENA_ARRAY(arena, const char *, n + 1), **texts = ARENA_ARRAY(arena, const char *, n + 1);
    for (int i = 0; i < n; i++) {
        names[i] = rows[i].name;
        texts[i] = rows[i].what;
    }
    if (what) *what = texts;
    return names;
}
static bool by_name(Program *p, Diags *d, const char *name) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name)) continue;
        for (int k = 0; k < p->ns; k++) {
            Step *s = &p->step[k];
            if (!acts(p, s) || s->move.kind != rows[i].kind) continue;
            s->edit = rows[i].edit;
            s->edit_offset = 1;
            s->fault = rows[i].name;
            return true;
        }
        diag_error(d, "E0209", (Loc){0}, "`list faults` says what each needs, `comms` what this plan has", "fault '%s' fits no step of this plan", name);
        return false;
    }
    const char *near = diag_nearest(name, fault_names(p->arena, NULL));
    diag_error(d, "E0212", (Loc){0}, near ? near : "see `shardproof list faults`", "unknown fault '%s'", name);
    return false;
}
/* The move that `at` names: "reduce_scatter of layers.0.o_proj", a step number, or a value (its last move that acts). */
static Step *find_step(Program *p, const char *at) {
    Arena *tmp = arena_new();
    Step *found = NULL;
    char *end;
    long id = strtol(at, &end, 10);
    for (int k = 0; k < p->ns && !found; k++)
        if (p->step[k].kind == ST_MOVE && ((!*end && id == k) || !strcmp(step_name(p, &p->step[k], tmp), at))) found = &p->step[k];
    int t = graph_find(p->graph, at);
    for (int k = 0; k < p->ns && !found && t >= 0; k++)
        if (acts(p, &p->step[k]) && p->val[p->step[k].out].tensor == t) found = &p->step[k];
    arena_free(tmp);
    return found;
}
static const struct {
    const char *doing;
    int edit;
} doings[] = {{"drop", EDIT_DROP}, {"double", EDIT_DOUBLE}, {"kind", EDIT_MAX}, {"axis", EDIT_AXIS}, {"dim", EDIT_DIM}, {"offset", EDIT_OFFSET}, {"scale", EDIT_SCALE}};
static bool one_fault(Program *p, Diags *d, const PlanFault *f) {
    Step *s = find_step(p, f->step);
    if (!s) {
        diag_error(d, "E0209", f->loc, "name a value that is moved, a step number, or 'all_reduce of VALUE' (see `shardproof comms`)", "no move is called '%s'", f->step);
        return false;
    }
    const char *doing = f->doing ? f->doing : f->kind ? "kind" : f->axis ? "axis" : "scale";
    s->edit = EDIT_NONE;
    for (size_t i = 0; i < sizeof doings / sizeof doings[0]; i++)
        if (!strcmp(doings[i].doing, doing)) s->edit = doings[i].edit;
    s->fault = arena_strdup(p->arena, doing);
    if (s->edit == EDIT_MAX && f->kind)
        s->edit = !strcmp(f->kind, "avg") || !strcmp(f->kind, "average") ? EDIT_AVG : !strcmp(f->kind, "slice") ? EDIT_SLICE : EDIT_MAX;
    if (s->edit == EDIT_AXIS) {
        s->edit_axis = f->axis ? mesh_axis(p->mesh, f->axis) : -1;
        if (s->edit_axis < 0) {
            diag_error(d, "E0204", f->loc, NULL, "unknown axis '%s'", f->axis ? f->axis : "");
            return false;
        }
    }
    s->edit_dim = (int)f->dim;
    s->edit_offset = f->offset ? (int)f->offset : 1;
    s->edit_scale = f->scale;
    if (s->edit == EDIT_DOUBLE && !is_reduction(s)) {
        diag_error(d, "E0206", f->loc, NULL, "'double' needs a reduction; %s is none", f->step);
        return false;
    }
    return true;
}
bool apply_faults(Program *p, const Plan *plan, Diags *d, const char *fault) {
    bool ok = true;
    for (int i = 0; i < plan->n_faults; i++) ok &= one_fault(p, d, &plan->faults[i]);
    if (fault) ok &= by_name(p, d, fault);
    return ok;
}

/* ---- what is left of a move ---- */
/* Moves one axis' cut from its dim to another. */
static void swap_dim(Layout *l, int axis, int dim) {
    int d = layout_where(l, axis);
    if (d < 0 || d == dim || dim >= l->ndim) return;
    layout_set_type(l, axis, TY_I);
    layout_cut(l, dim, axis, CUT_CHUNK);
}
Move fault_move(const Step *s) {
    Move v = s->move;
    if (s->edit == EDIT_AXIS) v.axes = (AxisList){1, {(uint8_t)s->edit_axis}};
    for (int i = 0; s->edit == EDIT_DIM && i < v.axes.n; i++) {
        swap_dim(&v.from, v.axes.a[i], s->edit_dim);
        swap_dim(&v.to, v.axes.a[i], s->edit_dim);
    }
    return v;
}
int fault_times(const Step *s) { return s->edit == EDIT_DROP || s->edit == EDIT_SLICE ? 0 : s->edit == EDIT_DOUBLE ? 2 : 1; }

/* ---- gradients: ---- */
/* One more sum over every axis on which the gradient is whole and nothing was due: n equal values.
 */
static void sum_again(Program *p, int tensor, Loc loc) {
    int g = p->grad[tensor];
    if (g < 0) return;
    AxisList axes = {0};
    uint32_t due = 0;
    for (int i = p->n_forward; i < p->ns; i++) {
        const Step *s = &p->step[i];
        if (s->kind != ST_MOVE || !is_reduction(s) || p->val[s->out].tensor != tensor) continue;
        for (int k = 0; k < s->move.axes.n; k++) due |= 1u << s->move.axes.a[k];
    }
    for (int x = 0; x < p->mesh->naxes; x++)
        if (p->val[g].L.type[x] == TY_I && !(due >> x & 1) && p->mesh->axis[x].size > 1) axes.a[axes.n++] = (uint8_t)x;
    if (!axes.n) return;
    Val copy = p->val[g];
    Val *w = ARENA_PUSH(p->arena, p->val, p->nv, p->cap_v);
    *w = copy;
    w->id = p->nv - 1;
    Step *s = ARENA_PUSH(p->arena, p->step, p->ns, p->cap_s);
    *s = (Step){.id = p->ns - 1, .kind = ST_MOVE, .pass = "gradients", .module = -1, .node = -1, .nin = 1, .in = {g}, .out = w->id, .unit = -1};
    s->move = (Move){.from = copy.L, .to = copy.L, .kind = MOVE_ALL_REDUCE, .axes = axes};
    s->why = "the plan's `gradients: sum`: a sum that is not due";
    s->edit = EDIT_SCALE;
    s->edit_scale = (double)mesh_size(p->mesh, &axes);
    s->fault = "gradients: sum";
    s->loc = loc;
    w->step = s->id;
    p->grad[tensor] = w->id;
}
static void change_gradient(Program *p, int tensor, const char *what, Loc loc) {
    if (!strcmp(what, "sum")) {
        sum_again(p, tensor, loc);
        return;
    }
    for (int i = p->n_forward; i < p->ns; i++) {
        Step *s = &p->step[i];
        if (s->kind != ST_MOVE || !is_reduction(s) || p->val[s->out].tensor != tensor || !p->val[s->out].cot || mesh_size(p->mesh, &s->move.axes) == 1) continue;
        s->edit = !strcmp(what, "mean") ? EDIT_AVG : EDIT_DROP;
        s->fault = !strcmp(what, "mean") ? "gradients: mean" : "gradients: none";
        if (!s->loc.line) s->loc = loc; /* no line asks for the step: the one that changes it */
    }
}
bool apply_gradients(Program *p, const Plan *plan, Diags *d) {
    bool ok = true;
    for (int i = 0; i < plan->n_gradients; i++) {
        int hit = 0;
        for (int t = 0; t < p->graph->nt; t++) {
            if (p->graph->t[t].kind != KIND_PARAM ||
                !sums_names(p->graph, &p->graph->t[t], plan->gradients[i].key))
                continue;
            hit++;
            change_gradient(p, t, plan->gradients[i].text, plan->gradients[i].loc);
        }
        if (hit) continue;
        diag_error(d, "E0205", plan->gradients[i].loc, "patterns under `gradients` match parameters or modules", "pattern '%s' matches no parameter", plan->gradients[i].key);
        ok = false;
    }
    if (plan->n_gradients && p->ns == p->n_forward) {
        diag_error(d, "E0206", plan->gradients[0].loc, "add `pass: backward`", "`gradients` changes a backward pass, and there is none");
        ok = false;
    }
    return ok;
}
