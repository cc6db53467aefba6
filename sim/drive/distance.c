/* See distance.h. */
#include "drive/distance.h"
#include "exec/region.h"
#include <stdlib.h>

/* Has the value one of its own in the unsharded model? */
static bool has_distance(const EndToEnd *e, int v) {
    const Exec *x = e->check->e;
    const Program *p = x->p;
    const Val *val = &p->val[v];
    const GTensor *t = &p->graph->t[val->tensor];
    bool grad, result = endtoend_result(p, v, &grad);
    if (t->is_int || !exec_store(x, v)->alive) return false;
    /* a source, or a copy of what an update makes or has replaced */
    bool updated = val->step < 0 || t->kind == KIND_PARAM || t->next_of || t->state_of;
    if (p->graph->nn_model && updated && !val->cot) return false;
    bool rows = t->nd && t->role[0] == DIM_BATCH && !t->listed;
    return e->parts == 1 || rows || (result && grad);
}
static void add(const EndToEnd *e, int v, const double *far, double top) {
    Check *c = e->check;
    Trace *t = c->t;
    const Program *p = c->e->p;
    const Val *val = &p->val[v];
    int64_t n = 0, *off = base_malloc(base_mul((size_t)t->ranks, sizeof *off));
    TraceDistance d = {.step = val->step,
                       .value = program_value_name(p, val, c->arena),
                       .top = top,
                       .bound = endtoend_share(p, c->e->numbers) * top};
    for (int64_t r = 0; r < t->ranks; r++) {
        if (far[r] > d.max_abs) d.max_abs = far[r];
        if (far[r] > d.bound) off[n++] = r;
    }
    d.ranks = rankset_from(t->arena, off, n);
    *ARENA_PUSH(t->arena, t->distances, t->n_distances, t->cap_distances) = d;
    free(off);
}
void distance_record(const EndToEnd *e) {
    const Exec *x = e->check->e;
    const Program *p = x->p;
    Device *dev = e->ref->exec->dev;
    double *far = base_malloc(base_mul((size_t)p->mesh->nranks, sizeof *far)), top;
    for (int v = 0; v < p->nv; v++) {
        if (!has_distance(e, v)) continue;
        const Val *val = &p->val[v];
        const GTensor *t = &p->graph->t[val->tensor];
        double *sum = val->cot ? reference_cotangent(e->ref, val) : NULL;
        const double *want =
            endtoend_last_rows(e, t, val->cot ? sum : reference_value(e->ref, val->tensor));
        Arena *tmp = arena_new();
        Region box = t->listed && want
                         ? region_of(e->ref->exec, e->ref->program->first[val->tensor], 0, tmp)
                         : region_whole(t);
        /* the numbers are only read */
        if (want && check_distance(e->check, v, (double *)(uintptr_t)want, &box, far, &top) &&
            !x->dev->sizes_only)
            add(e, v, far, top);
        arena_free(tmp);
        dev->release(dev, sum);
    }
    free(far);
}
