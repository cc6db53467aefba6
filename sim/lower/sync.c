/* When the sums of gradients over ranks are made where a step has micro-batches: once, of what all
 * of them have added up, or in each of them (`grad_sync`). Refuses to add anything up: it marks
 * steps, the executor adds what the last marked step of a gradient makes. */
#include "lower/program.h"

static bool of_gradient(const Program *p, int val) {
    const Val *v = &p->val[val];
    return v->step >= 0 && v->cot && p->graph->t[v->tensor].kind == KIND_PARAM;
}
static bool is_sync(const Program *p, const GradSync *g, const Step *s) {
    if (s->kind != ST_MOVE || !move_communicates(s->move.kind)) return false;
    if (mesh_size(p->mesh, &s->move.axes) == 1) return false;
    const Stages *stages = p->assign->stages; /* what two stages have of it is summed once */
    if (stages && mesh_axes_set(&s->move.axes) >> stages->axis & 1) return false;
    return move_cuts(s->move.kind) ? g->scatters : g->sums;
}
void mark_sync(Program *p) {
    const GradSync *g = plan_grad_sync(p->assign->plan);
    for (int i = p->ns - 1; i >= 0; i--) { /* the last first: what leads to a sync goes with it */
        Step *s = &p->step[i];
        if (!of_gradient(p, s->out) || s->kind == ST_ADJOINT) continue;
        s->each = s->goes_on || is_sync(p, g, s);
        for (int k = 0; k < s->nin && s->each; k++)
            if (s->in[k] >= 0 && of_gradient(p, s->in[k]))
                p->step[p->val[s->in[k]].step].goes_on = true;
    }
}
