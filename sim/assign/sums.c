/* Who sums the gradient of a parameter, and over which axes: a style that owns the parameter, over
 * its axes; data parallelism, over its own; a line under `gradients`, over all. A parameter that
 * nothing of these names is a plain tensor, whose gradient nobody sums. Refuses to say where a sum
 * is due: that follows from the layouts (lower). */
#include "assign/sums.h"
#include <string.h>

/* ---- styles ---- */
/* The axes that a placement names, `{dp: shard(0)}`; a bare one speaks of the style's. */
static uint32_t named_axes(const Assign *a, const RawSpec *s) {
    uint32_t set = 0;
    for (int i = 0; s->mapping && i < s->n; i++) {
        AxisList l;
        if (s->on[i].axis && mesh_lookup(a->mesh, s->on[i].axis, &l)) set |= mesh_axes_set(&l);
    }
    return set;
}
/* Does a boundary of the style cut the sequence? Then its axes are those of `sp` too. */
static bool cuts_sequence(const RawList *l) {
    for (int i = 0; l->set && i < l->n; i++) {
        const RawSpec *s = &l->arg[i];
        if (s->set && !s->mapping && s->bare.kind == RP_SHARD &&
            (s->bare.letter ? s->bare.letter == 't' : s->bare.dim == 1))
            return true;
    }
    return false;
}
void sums_of_style(Assign *a, int tensor, const ModuleUse *u, const RawSpec *spec) {
    const Style *s = u->style;
    if (!s->sums) return;
    bool sequence = cuts_sequence(&s->input) || cuts_sequence(&s->desired_input) ||
                    cuts_sequence(&s->output) || cuts_sequence(&s->desired_output);
    a->summed[tensor] |= mesh_axes_set(&u->axes) | named_axes(a, spec);
    if (sequence) a->summed[tensor] |= mesh_axes_set(&u->seq_axes);
}

/* ---- gradients: ---- */
bool sums_names(const Graph *g, const GTensor *t, const char *pattern) {
    if (t->plan_name && plan_match(pattern, t->plan_name)) return true;
    if (plan_match(pattern, t->name)) return true;
    for (int m = t->module; m >= 0;
         m = g->module[m].parent) /* a module stands for its parameters */
        if (plan_match(pattern, g->module[m].path) ||
            (g->module[m].hf_path && plan_match(pattern, g->module[m].hf_path)))
            return true;
    return false;
}

/* ---- data parallelism ---- */
/* The axes behind a key's text, in its order; none for NULL. */
static AxisList key_axes(Assign *a, const char *text, Loc loc) {
    AxisList l = {0};
    if (text && !assign_axes(a->mesh, a->arena, a->d, text, loc, &l)) l.n = 0;
    return l;
}
/* Of the axes of a rest some, but not all: E0307. */
static void find_keep(Assign *a) {
    const Plan *p = a->plan;
    Loc loc = p->data_parallel.reshard_over_loc;
    a->keep = key_axes(a, p->data_parallel.reshard_over, loc);
    uint32_t rest = mesh_axes_set(&a->shard), keep = mesh_axes_set(&a->keep);
    if (!a->keep.n ||
        (!(keep & ~rest) && mesh_size(a->mesh, &a->keep) < mesh_size(a->mesh, &a->shard)))
        return;
    diag_error(a->d, "E0307", loc,
               "mesh: {out: 4, in: 2}, `axis: out*in` and `reshard_over: in`, or `reshard: true`",
               "parameters are cut by %s at rest: between the passes they can stay cut by some of "
               "these axes, and not by all",
               mesh_axes_text(a->mesh, a->arena, &a->shard, true));
    a->keep.n = 0;
}
void sums_of_data(Assign *a, const AxisList *batch, const AxisList *seq) {
    const Plan *p = a->plan;
    const DataMode *mode = plan_data_mode(p);
    AxisList axis = key_axes(a, p->data_parallel.axis, p->data_parallel.axis_loc);
    a->tokens = mesh_axes_set(batch) | mesh_axes_set(seq);
    a->data_default = !axis.n && !mode->copies;
    if (a->data_default) axis = mesh_set_axes(a->mesh, a->tokens);
    if (mode->copies) { /* the plan's parser holds it to both */
        AxisList copies = key_axes(a, p->data_parallel.replicate, p->data_parallel.loc);
        a->shard = key_axes(a, p->data_parallel.shard, p->data_parallel.loc);
        a->data = mesh_set_axes(a->mesh, mesh_axes_set(&axis) | mesh_axes_set(&copies) |
                                             mesh_axes_set(&a->shard));
    } else {
        a->data = axis;
        if (mode->cuts_params) a->shard = axis;
    }
    if (p->data_parallel.reshard_over) find_keep(a);
}
void sums_of_parameters(Assign *a) {
    const Graph *g = &a->model->g;
    for (int t = 0; t < g->nt; t++) {
        if (g->t[t].kind != KIND_PARAM) continue;
        a->summed[t] |= mesh_axes_set(&a->data);
        for (int i = 0; i < a->plan->n_gradients; i++)
            if (sums_names(g, &g->t[t], a->plan->gradients[i].key)) a->summed[t] = UINT32_MAX;
    }
}
