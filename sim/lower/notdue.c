/* Sums of gradients that `data_parallel` declares and that are not due: over an axis whose ranks
 * have the same tokens. Data parallelism does not look at that: it adds up what the ranks hold,
 * equal gradients n times, or those of different shards. Refuses to make such a sum: lowering
 * derives sums from layouts, so the numbers of a run do not show it, and the note says so. */
#include "lower/program.h"

/* A bit per axis over which the layouts sum the gradient of a parameter. */
static uint32_t due_axes(const Program *p, int tensor) {
    uint32_t due = 0;
    for (int i = p->n_forward; i < p->ns; i++) {
        const Step *s = &p->step[i];
        bool sums = s->move.kind == MOVE_ALL_REDUCE || s->move.kind == MOVE_REDUCE_SCATTER;
        if (s->kind != ST_MOVE || !sums || p->val[s->out].tensor != tensor || !p->val[s->out].cot)
            continue;
        for (int k = 0; k < s->move.axes.n; k++) due |= 1u << s->move.axes.a[k];
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
void not_due_notes(const Program *p, Diags *d) {
    const Assign *a = p->assign;
    for (int i = 0; i < a->data.n && p->ns > p->n_forward; i++) {
        int x = a->data.a[i];
        if (p->mesh->axis[x].size > 1 && !(a->tokens >> x & 1)) note_axis(p, d, x);
    }
}
