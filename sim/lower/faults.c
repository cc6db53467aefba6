/* Planted mistakes: rows {name, edit of one lowered step}. The declared layouts stay; only what the
 * step does changes. */
#include "lower/program.h"
#include "ops/op.h"
#include "assign/sums.h"
#include <stdlib.h>
#include <string.h>

static bool is_reduction(const Step *s) {
    return s->move.kind == MOVE_ALL_REDUCE || s->move.kind == MOVE_REDUCE_SCATTER;
}
static bool acts(const Program *p, const Step *s) {
    return s->kind == ST_MOVE && mesh_size(p->mesh, &s->move.axes) > 1 &&
           (move_communicates(s->move.kind) || s->move.kind == MOVE_SLICE);
}
/* Named faults of `--fault NAME`: the first step that the row fits. */
static const struct {
    const char *name, *what;
    MoveKind kind;
    int edit;
    double scale;
} rows[] = {
    {"drop-reduction", "the first all-reduce passes the local part on", MOVE_ALL_REDUCE, EDIT_DROP,
     0},
    {"drop-reduce-scatter", "the first reduce-scatter keeps the own part without adding",
     MOVE_REDUCE_SCATTER, EDIT_DROP, 0},
    {"drop-gather", "the first all-gather repeats the own part", MOVE_ALL_GATHER, EDIT_DROP, 0},
    {"average", "the first all-reduce divides by the number of ranks", MOVE_ALL_REDUCE, EDIT_AVG,
     0},
    {"max-for-sum", "the first all-reduce takes the maximum", MOVE_ALL_REDUCE, EDIT_MAX, 0},
    {"double-reduction", "the first all-reduce is done twice", MOVE_ALL_REDUCE, EDIT_DOUBLE, 0},
    {"wrong-block", "the first reduce-scatter delivers the block of the next rank",
     MOVE_REDUCE_SCATTER, EDIT_OFFSET, 0},
};
const char *const *fault_names(Arena *arena, const char *const **what) {
    int n = (int)(sizeof rows / sizeof rows[0]);
    const char **names = ARENA_ARRAY(arena, const char *, n + 1),
               **texts = ARENA_ARRAY(arena, const char *, n + 1);
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
        diag_error(d, "E0209", (Loc){0},
                   "`list faults` says what each needs, `comms` what this plan has",
                   "fault '%s' fits no step of this plan", name);
        return false;
    }
    const char *near = diag_nearest(name, fault_names(p->arena, NULL));
    diag_error(d, "E0212", (Loc){0}, near ? near : "see `shardproof list faults`",
               "unknown fault '%s'", name);
    return false;
}
/* What `faults:` can do, and to what: moves, ops and adjoints, inputs and parameters as they lie at
 * rest. */
enum { ON_MOVE = 1, ON_OP = 2, ON_SOURCE = 4 };
static const struct {
    const char *doing, *written;
    int edit;
    unsigned on;
    const char *what, *needs;
} doings[] = {
    {"drop", "do: drop", EDIT_DROP, ON_MOVE | ON_OP,
     "a move or op does nothing: the own part, or its first operand, goes on as it is",
     "'drop' needs a move, or an op whose first operand has the shape of its result"},
    {"double", "do: double", EDIT_DOUBLE, ON_MOVE, "a reduction is done twice",
     "'double' needs a reduction"},
    {"floor", "do: floor", EDIT_FLOOR, ON_MOVE,
     "sizes are divided without remainder: what is left over does not arrive",
     "'floor' needs a move of a dim that its axes cut"},
    {"local", "do: local", EDIT_LOCAL, ON_OP,
     "positions or ids count from 0 on every rank instead of globally",
     "'local' needs an op that asks for positions or ids (RoPE, attention, lookups)"},
    {"contiguous", "do: contiguous", EDIT_CONTIGUOUS, ON_OP,
     "positions are those of contiguous blocks, whatever the order of the data",
     "'contiguous' needs an op that asks for positions or ids (RoPE, attention, lookups)"},
    {"nest", "do: nest", EDIT_NEST, ON_SOURCE,
     "a parameter's shard is that of the other order of the axes that cut one dim",
     "'nest' needs a parameter or input of which two axes cut one dim"},
    {"reseed", "do: reseed", EDIT_RESEED, ON_SOURCE,
     "ranks that should read the same data read different data",
     "'reseed' needs an input or parameter that some axis does not cut"},
    {"kind", "kind: avg|max|slice", EDIT_MAX, ON_MOVE, "another kind of reduction",
     "'kind' needs a reduction, and another kind than its own"},
    {"axis", "axis: AXIS", EDIT_AXIS, ON_MOVE, "the group of another axis",
     "'axis' needs a move between ranks, and another axis than its own"},
    {"dim", "dim: D", EDIT_DIM, ON_MOVE, "another dim",
     "'dim' needs a move of a dim that its axes cut, and another dim of the same value"},
    {"offset", "offset: N", EDIT_OFFSET, ON_MOVE | ON_SOURCE, "the block of the rank N after",
     "'offset' needs a move, an input or a parameter that some axis cuts, and the block of another "
     "rank"},
    {"scale", "scale: X", EDIT_SCALE, ON_MOVE | ON_OP, "the result times X", NULL},
};
enum { N_DOINGS = sizeof doings / sizeof doings[0] };
const char *const *fault_edits(Arena *arena, const char *const **what) {
    const char **names = ARENA_ARRAY(arena, const char *, N_DOINGS + 1);
    const char **texts = ARENA_ARRAY(arena, const char *, N_DOINGS + 1);
    for (int i = 0; i < N_DOINGS; i++) names[i] = doings[i].written, texts[i] = doings[i].what;
    *what = texts;
    return names;
}

static bool is_op(const Step *s) { return s->kind == ST_OP || s->kind == ST_ADJOINT; }
/* The step that `at` names: "reduce_scatter of layers.0.o_proj", a step number, or a value: its
 * last move that acts, or the op that makes it. "recomputed ..." is the step as it is done again in
 * the backward pass. */
static Step *find_step(Program *p, const char *at, unsigned on) {
    static const char again[] = "recomputed ";
    bool recompute = !strncmp(at, again, sizeof again - 1);
    if (recompute) at += sizeof again - 1;
    Arena *tmp = arena_new();
    Step *found = NULL;
    char *end;
    long id = strtol(at, &end, 10);
    for (int k = 0; k < p->ns && !found && on & ON_MOVE; k++) {
        Step *s = &p->step[k];
        if (s->kind != ST_MOVE || s->recompute < recompute) continue;
        if ((!*end && id == k) || !strcmp(step_name(p, s, tmp), at)) found = s;
    }
    for (int k = 0; k < p->ns && !found && on & ON_MOVE; k++) {
        Step *s = &p->step[k];
        if (!acts(p, s) || s->recompute < recompute) continue;
        bool alias = !p->val[s->out].cot && p->val[s->out].tensor == graph_find(p->graph, at);
        if (alias || !strcmp(strstr(step_name(p, s, tmp), " of ") + 4, at)) found = s;
    }
    for (int k = 0; k < p->ns && !found && on & ON_OP; k++) {
        Step *s = &p->step[k];
        if (!is_op(s) || s->recompute < recompute) continue;
        if ((!*end && id == k) || !strcmp(step_name(p, s, tmp), at)) found = s;
    }
    arena_free(tmp);
    return found;
}
/* The input or parameter of that name, as it lies at rest; NULL: there is none. */
static Val *find_source(Program *p, const char *at) {
    int t = graph_find(p->graph, at);
    for (int i = 0; i < p->graph->nt && t < 0; i++)
        if (p->graph->t[i].plan_name && !strcmp(p->graph->t[i].plan_name, at)) t = i;
    return t >= 0 && p->first[t] >= 0 && p->val[p->first[t]].step < 0 ? &p->val[p->first[t]] : NULL;
}
/* Does any axis of more than one rank leave the value whole? */
static bool has_copies(const Program *p, const Val *v) {
    for (int a = 0; a < p->mesh->naxes; a++)
        if (p->mesh->axis[a].size > 1 && layout_where(&v->L, a) < 0) return true;
    return false;
}
static bool nested(const Val *v) {
    for (int d = 0; d <= v->L.ndim; d++)
        if (v->L.n[d] > 1) return true;
    return false;
}
static bool same_shape(const GTensor *a, const GTensor *b) {
    bool same = a->nd == b->nd;
    for (int d = 0; same && d < a->nd; d++) same = a->size[d] == b->size[d];
    return same;
}
static int kind_edit(const char *kind) {
    if (!strcmp(kind, "avg") || !strcmp(kind, "average")) return EDIT_AVG;
    return !strcmp(kind, "slice") ? EDIT_SLICE : EDIT_MAX;
}
/* The dim that the move's axes cut, before or after it; -1: none. */
static int moved_dim(const Step *s) {
    int a = s->move.axes.n ? s->move.axes.a[0] : -1;
    if (a < 0) return -1;
    int from = layout_where(&s->move.from, a);
    return from >= 0 ? from : layout_where(&s->move.to, a);
}
/* The dim that is planted; -1 is the last. */
static int64_t dim_of(const Step *s, const PlanFault *f) {
    return f->dim < 0 ? f->dim + s->move.from.ndim : f->dim;
}
/* Would the edit make the move another one? What leaves it as it is proves nothing. */
static bool fits_move(const Program *p, const Step *s, const PlanFault *f, int edit) {
    bool maximum = s->move.kind == MOVE_ALL_REDUCE_MAX;
    int64_t n = mesh_size(p->mesh, &s->move.axes), dim = dim_of(s, f);
    switch (edit) {
    case EDIT_DOUBLE: return is_reduction(s);
    case EDIT_FLOOR: return moved_dim(s) >= 0;
    case EDIT_MAX: return is_reduction(s) || (maximum && f->kind && kind_edit(f->kind) != EDIT_MAX);
    case EDIT_AXIS:
        return s->move.kind != MOVE_ID &&
               (s->move.axes.n != 1 || s->move.axes.a[0] != mesh_axis(p->mesh, f->axis));
    case EDIT_DIM:
        return moved_dim(s) >= 0 && dim >= 0 && dim != moved_dim(s) && dim < s->move.from.ndim;
    case EDIT_OFFSET: return moved_dim(s) >= 0 && f->offset % n != 0;
    case EDIT_DROP: return s->move.kind != MOVE_ID;
    default: return true;
    }
}
/* Can this be done to that step, or to that source? */
static bool fits_step(const Program *p, const Step *s, const PlanFault *f, int edit) {
    const GNode *n = is_op(s) ? &p->graph->node[s->node] : NULL;
    if (!n) return fits_move(p, s, f, edit);
    switch (edit) {
    case EDIT_LOCAL:
    case EDIT_CONTIGUOUS: return n->op->asks;
    case EDIT_DROP:
        return s->in[0] >= 0 && same_shape(&p->graph->t[p->val[s->in[0]].tensor],
                                           &p->graph->t[p->val[s->out].tensor]);
    default: return true;
    }
}
/* How many blocks a source is cut into. */
static int64_t source_blocks(const Program *p, const Val *v) {
    int64_t n = 1;
    for (int a = 0; a < p->mesh->naxes; a++)
        if (layout_where(&v->L, a) >= 0) n *= p->mesh->axis[a].size;
    return n;
}
static bool fits_source(const Program *p, const Val *v, const PlanFault *f, int edit) {
    if (edit == EDIT_OFFSET) return f->offset % source_blocks(p, v) != 0;
    return edit == EDIT_NEST ? nested(v) : has_copies(p, v);
}
/* An offset among n blocks, counted forwards: -1 is n - 1. */
static int forwards(int64_t offset, int64_t n) { return (int)((offset % n + n) % n); }
static void not_found(Diags *d, const PlanFault *f, unsigned on) {
    if (on == ON_SOURCE)
        diag_error(d, "E0209", f->loc, "see `shardproof params`, `shapes`",
                   "no input or parameter is called '%s'", f->step);
    else if (!(on & ON_MOVE))
        diag_error(d, "E0209", f->loc, "name the value that the op makes (see `shardproof shapes`)",
                   "no op makes '%s'", f->step);
    else
        diag_error(d, "E0209", f->loc,
                   "name a value that is moved, a step number, or 'all_reduce of VALUE' (see "
                   "`shardproof comms`)",
                   "no move is called '%s'", f->step);
}
/* "scale: 4": what is done, as records and pictures say it. */
static const char *written(Arena *a, const PlanFault *f, const char *doing) {
    if (!strcmp(doing, "kind")) return arena_printf(a, "kind: %s", f->kind);
    if (!strcmp(doing, "axis") && f->axis) return arena_printf(a, "axis: %s", f->axis);
    if (!strcmp(doing, "dim")) return arena_printf(a, "dim: %lld", (long long)f->dim);
    if (!strcmp(doing, "offset")) return arena_printf(a, "offset: %lld", (long long)f->offset);
    if (!strcmp(doing, "scale")) return arena_printf(a, "scale: %g", f->scale);
    return arena_strdup(a, doing);
}
static bool one_fault(Program *p, Diags *d, const PlanFault *f) {
    const char *doing = f->doing ? f->doing : f->kind ? "kind" : f->axis ? "axis" : "scale";
    int row = 0;
    while (row < N_DOINGS - 1 && strcmp(doings[row].doing, doing)) row++;
    Step *s = find_step(p, f->step, doings[row].on);
    Val *v = !s && doings[row].on & ON_SOURCE ? find_source(p, f->step) : NULL;
    if (!s && !v) {
        not_found(d, f, doings[row].on);
        return false;
    }
    if (f->axis && mesh_axis(p->mesh, f->axis) < 0) {
        diag_error(d, "E0204", f->loc, NULL, "unknown axis '%s'", f->axis);
        return false;
    }
    if (s ? !fits_step(p, s, f, doings[row].edit) : !fits_source(p, v, f, doings[row].edit)) {
        diag_error(d, "E0206", f->loc, NULL, "%s; %s is none", doings[row].needs, f->step);
        return false;
    }
    int64_t blocks = v ? source_blocks(p, v) : mesh_size(p->mesh, &s->move.axes);
    int offset = forwards(f->offset, blocks);
    if (v) {
        v->edit = doings[row].edit, v->edit_offset = offset;
        v->fault = written(p->arena, f, doing);
        return true;
    }
    s->edit = doings[row].edit == EDIT_MAX && f->kind ? kind_edit(f->kind) : doings[row].edit;
    s->fault = written(p->arena, f, doing);
    if (s->edit == EDIT_AXIS) s->edit_axis = mesh_axis(p->mesh, f->axis);
    s->edit_dim = (int)dim_of(s, f);
    s->edit_offset = offset;
    s->edit_scale = f->scale;
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
int fault_times(const Step *s) {
    return s->edit == EDIT_DROP || s->edit == EDIT_SLICE ? 0 : s->edit == EDIT_DOUBLE ? 2 : 1;
}

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
        if (p->val[g].L.type[x] == TY_I && !(due >> x & 1) && p->mesh->axis[x].size > 1)
            axes.a[axes.n++] = (uint8_t)x;
    if (!axes.n) return;
    Val copy = p->val[g];
    Val *w = ARENA_PUSH_LARGE(p->arena, p->val, p->nv, p->cap_v);
    *w = copy;
    w->id = p->nv - 1;
    Step *s = ARENA_PUSH_LARGE(p->arena, p->step, p->ns, p->cap_s);
    *s = (Step){.id = p->ns - 1,
                .kind = ST_MOVE,
                .pass = PHASE_GRADIENTS,
                .module = -1,
                .node = -1,
                .nin = 1,
                .in = {g},
                .out = w->id,
                .unit = -1};
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
        if (s->kind != ST_MOVE || !is_reduction(s) || p->val[s->out].tensor != tensor ||
            !p->val[s->out].cot || mesh_size(p->mesh, &s->move.axes) == 1)
            continue;
        s->edit = !strcmp(what, "mean") ? EDIT_AVG : EDIT_DROP;
        s->fault = !strcmp(what, "mean") ? "gradients: mean" : "gradients: none";
        s->loc = loc; /* the line that changes it, not the one that asks for it */
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
        diag_error(d, "E0205", plan->gradients[i].loc,
                   "patterns under `gradients` match parameters or modules",
                   "pattern '%s' matches no parameter", plan->gradients[i].key);
        ok = false;
    }
    if (plan->n_gradients && p->ns == p->n_forward) {
        diag_error(d, "E0206", plan->gradients[0].loc, "add `pass: backward`",
                   "`gradients` changes a backward pass, and there is none");
        ok = false;
    }
    return ok;
}
