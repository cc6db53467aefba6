/* ZeRO on flat buffers: the sum of a gradient over the ranks that each update a range of the buffer
 * is a reduce-scatter to these ranges, in place of an all-reduce. Refuses to do it where a gradient
 * is no such sum: then the optimizer slices what is there. */
#include "lower/program.h"
#include <string.h>

/* The value's layout with the buffer's axes cut as the state is. */
static Layout ranged(const Layout *l, const Layout *state) {
    Layout r = *l;
    for (int i = 0; i < state->n[state->ndim]; i++)
        layout_cut_flat(&r, state->e[state->ndim][i].axis, &state->flat);
    return r;
}
static bool all_of_type(const Layout *l, const AxisList *axes, AxisType type) {
    bool all = true;
    for (int i = 0; i < axes->n; i++) all &= l->type[axes->a[i]] == type;
    return all;
}
/* Is value v a sum over just these axes, or made of such sums alone? What a claim says of other
 * axes (trust: declared, a sum over them is not made) changes nothing here. */
static bool is_sum(const Program *p, int v, const AxisList *axes) {
    const Step *s = p->val[v].step >= 0 ? &p->step[p->val[v].step] : NULL;
    if (!s || !all_of_type(&p->val[v].L, axes, TY_I)) return false;
    if (s->kind == ST_SUM) return is_sum(p, s->in[0], axes) && is_sum(p, s->in[1], axes);
    if (s->kind != ST_MOVE && s->kind != ST_CLAIM) return false;
    if (all_of_type(&s->move.from, axes, TY_I)) return is_sum(p, s->in[0], axes);
    return s->kind == ST_MOVE && s->move.kind == MOVE_ALL_REDUCE &&
           all_of_type(&s->move.from, axes, TY_P) &&
           mesh_axes_set(&s->move.axes) == mesh_axes_set(axes);
}
static void cut(Program *p, int v, const AxisList *axes, const Layout *state) {
    Step *s = &p->step[p->val[v].step];
    if (p->val[v].L.flat.total) return; /* of two uses of one copy */
    p->val[v].L = ranged(&p->val[v].L, state);
    for (int i = 0; s->kind == ST_SUM && i < 2; i++) cut(p, s->in[i], axes, state);
    if (s->kind != ST_MOVE && s->kind != ST_CLAIM) return;
    s->move.to = p->val[v].L;
    if (all_of_type(&s->move.from, axes, TY_I)) {
        cut(p, s->in[0], axes, state);
        s->move.from = p->val[s->in[0]].L;
        return;
    }
    s->move.kind = MOVE_REDUCE_SCATTER;
    s->move.axes = *axes;
}
void cut_gradients(Program *p) {
    const Layout *state = p->assign->state;
    for (int t = 0; t < p->graph->nt && state; t++) {
        if (!state[t].flat.total || p->grad[t] < 0) continue;
        AxisList axes = layout_dim_axes(&state[t], state[t].ndim);
        if (is_sum(p, p->grad[t], &axes)) cut(p, p->grad[t], &axes, &state[t]);
    }
}
