/* FSDP units: the parameters of one layer are gathered, and their gradients reduce-scattered, in one collective. What is
 * outside the layers is the root's unit. Refuses to move or merge data: it only marks which steps belong together. */
#include "lower/program.h"
#include <string.h>

/* The layer whose nodes use the parameter, or -1. */
static int layer_of(const Graph *g, int tensor) {
    for (int n = 0; n < g->nn; n++)
        for (int i = 0; i < g->node[n].nin; i++)
            if (g->node[n].in[i] == tensor) return g->node[n].layer;
    return -1;
}
static bool same_axes(const AxisList *a, const AxisList *b) { return a->n == b->n && !memcmp(a->a, b->a, (size_t)a->n); }
static bool is_parameter_collective(const Program *p, const Step *s) {
    return s->kind == ST_MOVE && p->val[s->out].kind != KIND_INPUT && p->graph->t[p->val[s->out].tensor].kind == KIND_PARAM &&
           (s->move.kind == MOVE_ALL_GATHER || s->move.kind == MOVE_REDUCE_SCATTER) && mesh_size(p->mesh, &s->move.axes) > 1;
}
void mark_units(Program *p) {
    for (int i = 0; i < p->ns; i++) {
        Step *s = &p->step[i];
        if (!is_parameter_collective(p, s)) continue;
        int layer = layer_of(p->graph, p->val[s->out].tensor);
        s->unit = i;
        for (int k = 0; k < i; k++) { /* does an earlier one lead this unit? */
            const Step *t = &p->step[k];
            if (t->unit != k || t->move.kind != s->move.kind || t->recompute != s->recompute || strcmp(t->pass, s->pass)) continue;
            if (layer_of(p->graph, p->val[t->out].tensor) == layer && same_axes(&t->move.axes, &s->move.axes)) {
                s->unit = k;
                break;
            }
        }
    }
}
