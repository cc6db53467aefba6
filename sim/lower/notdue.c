/* Sums of gradients that the plan declares and that are not due: by `data_parallel` over an axis
 * whose ranks have the same tokens, or by a style whose hook sums whatever there is on a parameter
 * that all ranks use alike. Neither looks at that: it adds up what the ranks hold, equal gradients
 * n times, or those of different shards. Refuses to make such a sum: lowering derives sums from
 * layouts, so the numbers of a run do not show it, and the note says so. */
#include "lower/program.h"

/* A bit per axis over which the layouts sum the gradient of a parameter. */
static uint32_t due_axes(const Program *p, int tensor) {
    uint32_t due = 0;
    for (int i = p->n_forward; i < p->ns; i++) {
        const Step *s = &p->step[i];
        bool sums = s->move.kind == MOVE_ALL_REDUCE || s->move.kind == MOVE_REDUCE_SCATTER;
        if (s->kind != ST_MOVE || !sums || p->val[s->out].tensor != tensor || !p->val[s->out].cot)
            continue;
        due |= mesh_axes_set(&s->move.axes);
    }
    return due;
}
/* Parameters whose gradients meet one axis wrongly, and the first of them. */
typedef struct {
    int n;
    const char *first;
} Met;
static const char *and_more(const Program *p, const Met *m) {
    return m->n > 1 ? arena_printf(p->arena, " and %d more", m->n - 1) : "";
}
static void note_axis(const Program *p, Diags *d, int axis) {
    const Plan *plan = p->assign->plan;
    Met copies = {0}, shards = {0};
    for (int t = 0; t < p->graph->nt; t++) {
        if (p->graph->t[t].kind != KIND_PARAM || p->grad[t] < 0) continue;
        bool cut = layout_where(&p->assign->compute[t], axis) >= 0;
        if (!cut && due_axes(p, t) >> axis & 1) continue;
        Met *m = cut ? &shards : &copies;
        if (!m->n++) m->first = program_value_name(p, &p->val[p->grad[t]], p->arena);
    }
    const char *name = p->mesh->axis[axis].name;
    Loc loc =
        plan->data_parallel.axis_loc.file ? plan->data_parallel.axis_loc : plan->data_parallel.loc;
    const char *hint = arena_printf(
        p->arena, "leave %s out: data parallelism is over the axes that cut the tokens", name);
    if (shards.n)
        diag_note(d, "N0012", loc, hint,
                  "data parallelism over %s adds up gradients of different shards: %s%s %s cut "
                  "over it. No such sum is made here",
                  name, shards.first, and_more(p, &shards), shards.n > 1 ? "are" : "is");
    if (copies.n)
        diag_note(d, "N0012", loc, hint,
                  "data parallelism over %s counts %s%s %lld times: its ranks hold them equal "
                  "already. No such sum is made here",
                  name, copies.first, and_more(p, &copies), (long long)p->mesh->axis[axis].size);
}
/* The axes over which the hook of a parameter's style adds up equal gradients. */
static AxisList hook_axes(const Program *p, int tensor) {
    const ModuleUse *u = &p->assign->use[p->graph->t[tensor].module];
    AxisList equal = {0};
    if (!u->style || !u->style->sums_blindly || p->grad[tensor] < 0) return equal;
    uint32_t due = due_axes(p, tensor);
    for (int i = 0; i < u->axes.n; i++) {
        int x = u->axes.a[i];
        if (p->mesh->axis[x].size > 1 && !(due >> x & 1) &&
            layout_where(&p->assign->compute[tensor], x) < 0)
            equal.a[equal.n++] = (uint8_t)x;
    }
    return equal;
}
/* One note for each line of the plan, at the first of its parameters. */
static void note_hooks(const Program *p, Diags *d) {
    const Assign *a = p->assign;
    for (int t = 0; t < p->graph->nt; t++) {
        if (p->graph->t[t].kind != KIND_PARAM || p->graph->t[t].module < 0) continue;
        AxisList axes = hook_axes(p, t);
        const ModuleUse *u = &a->use[p->graph->t[t].module];
        bool first = axes.n > 0;
        Met m = {0};
        for (int o = 0; o < p->graph->nt && first; o++) {
            int mod = p->graph->t[o].kind == KIND_PARAM ? p->graph->t[o].module : -1;
            if (mod < 0 || a->use[mod].line != u->line || !hook_axes(p, o).n) continue;
            first = o >= t;
            m.n++;
        }
        if (!first) continue;
        m.first = program_value_name(p, &p->val[p->grad[t]], p->arena);
        diag_note(d, "N0012", u->loc,
                  "leave the line out, or cut what the module works on over these axes",
                  "the hook of %s over %s counts %s%s %lld times: its ranks hold %s equal already. "
                  "No such sum is made here",
                  u->style->name, mesh_axes_text(p->mesh, p->arena, &axes, false), m.first,
                  and_more(p, &m), (long long)mesh_size(p->mesh, &axes), m.n > 1 ? "them" : "it");
    }
}
void not_due_notes(const Program *p, Diags *d) {
    const Assign *a = p->assign;
    if (p->ns > p->n_forward) note_hooks(p, d);
    for (int i = 0; i < a->data.n && p->ns > p->n_forward; i++) {
        int x = a->data.a[i];
        if (p->mesh->axis[x].size > 1 && !(a->tokens >> x & 1)) note_axis(p, d, x);
    }
}
