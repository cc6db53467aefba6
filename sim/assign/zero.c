/* Which ranks update a parameter, and have its optimizer state, where data parallelism divides that
 * and not the parameters themselves (ZeRO-1 and 2). Whole tensors go to one rank each, as
 * PyTorch's ZeroRedundancyOptimizer hands them out, or all of a unit lie in one flat buffer of
 * which each rank has a range, as in DeepSpeed and Megatron. Refuses to move anything: how a
 * gradient comes to its owner, and the parameter back, follows from the layouts (lower). */
#include "assign/zero.h"
#include <string.h>

/* The axes over which the work on parameter t is divided: those of data parallelism that do not cut
 * it, as the axes of `ep` cut experts. */
static AxisList owner_axes(const Assign *a, int t) {
    AxisList l = {0};
    for (int i = 0; i < a->data.n; i++)
        if (layout_where(&a->rest[t], a->data.a[i]) < 0) l.a[l.n++] = a->data.a[i];
    return l;
}
static bool is_updated(const Assign *a, int t) {
    const GTensor *x = &a->model->g.t[t];
    return x->kind == KIND_PARAM && x->diff && !x->state_of && !a->claimed[t];
}
/* Elements of what one rank has of parameter t in compute. */
static int64_t local_elements(const Assign *a, int t) {
    const GTensor *x = &a->model->g.t[t];
    int64_t n[LAYOUT_MAX_DIMS], all = 1;
    layout_local(a->mesh, &a->compute[t], x->size, layout_first(a->mesh, &a->compute[t]), n);
    for (int d = 0; d < x->nd; d++) all *= n[d];
    return all;
}

/* ---- whole tensors ---- */
/* What the ranks that share the work on some parameters have so far. */
typedef struct {
    AxisList axes;
    int64_t stage; /* of a pipeline, where all of them are */
    int64_t n, *load;
} Owners;
typedef struct {
    const Assign *a;
    Owners *o;
    int n, cap;
} Handing;
static int64_t stage_of(const Assign *a, int t) {
    if (!a->stages) return 0;
    const Layout *l = &a->rest[t];
    return layout_paired(l, a->stages->axis) ? l->pair[a->stages->axis].low
                                             : l->at[a->stages->axis];
}
static Owners *owners_of(Handing *h, const AxisList *axes, int64_t stage) {
    for (int i = 0; i < h->n; i++)
        if (h->o[i].stage == stage && mesh_axes_set(&h->o[i].axes) == mesh_axes_set(axes))
            return &h->o[i];
    Owners *o = ARENA_PUSH(h->a->arena, h->o, h->n, h->cap);
    *o = (Owners){*axes, stage, mesh_size(h->a->mesh, axes), NULL};
    o->load = ARENA_ARRAY(h->a->arena, int64_t, o->n);
    return o;
}
/* The first of the ranks that have least. */
static int64_t idlest(const Owners *o) {
    int64_t least = 0;
    for (int64_t i = 1; i < o->n; i++)
        if (o->load[i] < o->load[least]) least = i;
    return least;
}
static void hand_out(Handing *h, int t, int64_t elements) {
    const Assign *a = h->a;
    AxisList axes = owner_axes(a, t);
    Owners *o = owners_of(h, &axes, stage_of(a, t));
    int64_t owner = idlest(o);
    o->load[owner] += elements;
    for (int i = axes.n - 1; i >= 0; i--) {
        int64_t size = a->mesh->axis[axes.a[i]].size;
        if (size > 1) layout_place(&a->state[t], axes.a[i], owner % size);
        owner /= size;
    }
}
/* The largest first, equal ones in the model's order, each to the rank that has least: the rule of
 * ZeroRedundancyOptimizer. Where tensor parallelism leaves ranks uneven parts, the first rank's
 * count for all. */
static void hand_out_whole(Assign *a) {
    int nt = a->model->g.nt;
    Handing h = {.a = a};
    bool *done = ARENA_ARRAY(a->arena, bool, nt + 1);
    int64_t *size = ARENA_ARRAY(a->arena, int64_t, nt + 1);
    for (int t = 0; t < nt; t++) size[t] = is_updated(a, t) ? local_elements(a, t) : -1;
    for (;;) {
        int next = -1;
        for (int t = 0; t < nt; t++)
            if (!done[t] && size[t] >= 0 && (next < 0 || size[t] > size[next])) next = t;
        if (next < 0) return;
        done[next] = true;
        hand_out(&h, next, size[next]);
    }
}

/* ---- ranges of a buffer ---- */
static int64_t multiple(int64_t n, int64_t of) { return (n + of - 1) / of * of; }
static int64_t common_multiple(int64_t a, int64_t b) {
    int64_t n = a;
    while (n % b) n += a;
    return n;
}
/* Room for what any rank has of parameter t: where they have unlike parts, the largest one's on
 * each, so that what lies behind it begins at the same place on all. */
static int64_t room(const Assign *a, int t) {
    const GTensor *x = &a->model->g.t[t];
    const Layout *l = &a->compute[t];
    int64_t all = 1;
    for (int d = 0; d < x->nd; d++) {
        int64_t n = x->size[d];
        for (int i = 0; i < l->n[d]; i++) {
            int64_t ranks = a->mesh->axis[l->e[d][i].axis].size,
                    pieces = l->e[d][i].how == CUT_ZIGZAG ? 2 : 1;
            n = pieces * ((n + pieces * ranks - 1) / (pieces * ranks));
        }
        all *= n;
    }
    return all;
}
/* The parameters of one unit that are divided over the same ranks, in one buffer. */
typedef struct {
    AxisList axes;
    int64_t stage;
    int unit, n, cap, *t;
} Buffer;
typedef struct {
    Buffer *b;
    int n, cap;
} Buffers;
static Buffer *buffer_of(const Assign *a, Buffers *all, int t, int unit) {
    AxisList axes = owner_axes(a, t);
    int64_t stage = stage_of(a, t);
    for (int i = 0; i < all->n; i++)
        if (all->b[i].unit == unit && all->b[i].stage == stage &&
            mesh_axes_set(&all->b[i].axes) == mesh_axes_set(&axes))
            return &all->b[i];
    Buffer *b = ARENA_PUSH(a->arena, all->b, all->n, all->cap);
    *b = (Buffer){.axes = axes, .stage = stage, .unit = unit};
    return b;
}
static void lay_buffer(Assign *a, const Buffer *b, const DataForm *form) {
    int64_t *first = ARENA_ARRAY(a->arena, int64_t, b->n), at = 0,
            ranks = mesh_size(a->mesh, &b->axes);
    if (ranks == 1) return;
    for (int i = 0; i < b->n; i++) {
        first[i] = at = multiple(at, form->align);
        at += room(a, b->t[i]);
    }
    int64_t total = multiple(at, common_multiple(form->each * ranks, form->whole_of));
    for (int i = 0; i < b->n; i++)
        for (int k = 0; k < b->axes.n; k++)
            layout_cut_flat(&a->state[b->t[i]], b->axes.a[k], &(Flat){first[i], total});
}
static void hand_out_ranges(Assign *a, const DataForm *form) {
    const Graph *g = &a->model->g;
    Buffers all = {0};
    const int *unit = graph_units(g, plan_data_unit(a->plan) == UNIT_MODEL, a->arena);
    for (int i = 0; i < g->nt; i++) {
        int t = form->last_first ? g->nt - 1 - i : i;
        if (!is_updated(a, t)) continue;
        if (a->rest[t].n[g->t[t].nd]) {
            diag_error(a->d, "E0307", a->plan->data_parallel.form_loc,
                       "a cut of one of its dims, or form: pytorch",
                       "%s is cut as the list that it is in memory, and has no range of a buffer",
                       graph_name(&g->t[t]));
            return;
        }
        Buffer *b = buffer_of(a, &all, t, unit[t]);
        *ARENA_PUSH(a->arena, b->t, b->n, b->cap) = t;
    }
    for (int i = 0; i < all.n; i++) lay_buffer(a, &all.b[i], form);
}

/* Over how many ranks is anything divided? */
static int64_t divided(const Assign *a) { return mesh_size(a->mesh, &a->data); }
void zero_lay(Assign *a) {
    const DataMode *mode = plan_data_mode(a->plan);
    const DataForm *form = plan_data_form(a->plan);
    int nt = a->model->g.nt;
    a->state = arena_memdup(a->arena, a->rest, sizeof *a->rest * ((size_t)nt + 1));
    if (!mode->cuts_state || mode->cuts_params) return;
    if (!a->data.n || divided(a) == 1) {
        diag_error(a->d, "E0208", a->plan->data_parallel.mode_loc,
                   "mesh: {dp: 2}, or `axis` with the axes over which it is divided",
                   "%s divides the optimizer's work over axes of data parallelism, and the mesh "
                   "has none of more than one rank",
                   mode->name);
        return;
    }
    if (form->whole) hand_out_whole(a);
    else hand_out_ranges(a, form);
}
