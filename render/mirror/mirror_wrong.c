/* Which wrong steps the mirrored picture shows: those of its rows, and those that bring a row its
 * weights. See mirror.h. */
#include "render/mirror/mirror.h"
#include <string.h>

static bool has_name(const char *const *list, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i], name)) return true;
    return false;
}

static bool row_shows(const MirrorRow *r, const Trace *t, int step) {
    bool is = false;
    for (int i = 0; i < r->n_op; i++) is |= r->op[i].f->step == step;
    for (int i = 0; i < r->n_back; i++) is |= r->back[i].f->step == step;
    for (int i = 0; i < r->n_coll; i++) is |= r->coll[i]->step == step;
    for (int i = 0; i < r->n_conj; i++) is |= r->conj[i]->step == step;
    for (int i = 0; i < r->n_move; i++) is |= r->move[i]->step == step;
    for (int i = 0; i < r->n_grad; i++) {
        is |= r->grad[i].made->step == step;
        for (int k = 0; k < r->grad[i].n_unit; k++) is |= r->grad[i].unit[k]->step == step;
        for (int k = 0; k < r->grad[i].n; k++) is |= r->grad[i].coll[k]->step == step;
    }
    for (int i = 0; i < t->n_moves && !is; i++) { /* claims about its weights and gradients */
        const TraceLocalMove *m = &t->moves[i];
        for (int k = 0; m->step == step && k < r->n_op; k++)
            is |= has_name(r->op[k].f->inputs, r->op[k].f->n_inputs, m->value) &&
                  trace_param(t, m->value);
        for (int k = 0; m->step == step && k < r->n_out; k++)
            is |= subject_is_gradient_of(m->subject, r->out[k]);
    }
    for (int i = 0; i < t->n_collectives && !is; i++) /* what brings its weights */
        for (int k = 0; t->collectives[i].step == step && k < r->n_op; k++)
            is |= has_name(r->op[k].f->inputs, r->op[k].f->n_inputs, t->collectives[i].value) &&
                  trace_param(t, t->collectives[i].value);
    return is;
}

typedef struct {
    const Mirror *m;
    int first, n;
} Range;
static bool strips_show(const Mirror *m, int first, int n, int step) {
    for (int i = first; i < first + n; i++)
        for (int k = 0; k < m->strip[i].n; k++)
            if (row_shows(&m->strip[i].row[k], m->g->t, step)) return true;
    return block_shows(m->g, first, n, step);
}
/* Is it a step of the drawn layer, or of none, for which no strip has a place? So are those that
 * are made again in the backward pass, and the optimizer's. */
static bool homeless(const Mirror *m, int step) {
    const Trace *t = m->g->t;
    int layer = -1;
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].step == step) layer = t->computes[i].layer;
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step == step) layer = t->collectives[i].layer;
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].step == step) layer = t->moves[i].layer;
    bool near = layer < 0 || m->g->layer < 0 || layer == m->g->layer;
    return near && m->g->whole && !strips_show(m, 0, m->n, step);
}
static bool in_range(const void *of, int step) {
    const Range *r = of;
    if (strips_show(r->m, r->first, r->n, step)) return true;
    return r->first == 0 && homeless(r->m, step);
}

const WrongList *mirror_wrong(const Mirror *m, int first, int n) {
    Range r = {m, first, n};
    return wrong_find(m->g->arena, m->g->t, in_range, &r);
}
