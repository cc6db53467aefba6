/* Which collectives finish the gradient of a parameter, and what it is called. See grads.h. */
#include "render/graph/grads.h"
#include "base/text.h"
#include <string.h>

const TraceParam *grads_param(const Trace *t, Subject s) {
    return s.role == OF_PARAM_GRADIENT ? trace_param(t, s.of) : NULL;
}

/* Collectives in which the gradient travels with another: its unit may be a layer or the model. */
static void add_units(const BlockGraph *g, ParamGrad *w) {
    const Trace *t = g->t;
    for (int k = 0; k < t->n_values; k++) {
        const TraceValue *v = &t->values[k];
        if (strcmp(v->shape.name, w->made->output)) continue;
        for (int i = 0; i < t->n_collectives && w->n_unit < GRADS_UNITS; i++) {
            const TraceCollective *c = &t->collectives[i];
            bool with = false;
            for (int j = 0; j < c->n_with; j++) with |= c->with[j] == v->step;
            if (with && c->pass == PHASE_GRADIENTS && words_group_of(&c->groups, g->rank) >= 0)
                w->unit[w->n_unit++] = c;
        }
    }
}

bool grads_sums(const TraceCompute *b, const char *name, int step) {
    bool found = false;
    for (int k = 0; k < b->n_inputs; k++) {
        if (strcmp(b->inputs[k], name) || strcmp(b->output, name)) return false;
        found |= b->input_step && b->input_step[k] == step;
    }
    return found;
}
/* Is what b makes added to what a later use of the same weight makes? */
static bool is_term(const BlockGraph *g, const TraceCompute *b) {
    const Trace *t = g->t;
    bool summed = false, later = false;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (c->step <= b->step || strcmp(c->output, b->output) || !block_on_rank(g, c)) continue;
        if (grads_sums(c, b->output, b->step)) summed = true;
        else later |= !c->n_inputs || strcmp(c->inputs[0], b->output);
    }
    return summed && later;
}
ParamGrad grads_read(const BlockGraph *g, const TraceCompute *b) {
    const Trace *t = g->t;
    ParamGrad w = {.param = grads_param(t, b->makes), .made = b, .term = is_term(g, b)};
    if (w.term) return w;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (words_group_of(&c->groups, g->rank) < 0 || c->step < b->step) continue;
        if (!strcmp(c->value, b->output) && w.n < GRADS_CHAIN) w.coll[w.n++] = c;
    }
    add_units(g, &w);
    return w;
}

const TraceValue *grads_end_value(const Trace *t, const ParamGrad *w) {
    const TraceValue *best = NULL;
    for (int i = 0; i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        if (v->pass == PHASE_OPTIMIZER) continue; /* what the rank that updates it takes of it */
        if (!strcmp(v->shape.name, w->made->output) && (!best || v->step > best->step)) best = v;
    }
    return best;
}

/* "wq" of "layers.0.attention.wq.weight" and of its bias. */
const char *grads_weight(Arena *a, const char *path) {
    size_t w = text_before(path, ".weight"), n = w ? w : text_before(path, ".bias");
    return words_leaf(n ? arena_strndup(a, path, n) : path);
}
const char *grads_path(const TraceParam *p) {
    return p->plan_name ? p->plan_name : p->compute.name;
}

const char *grads_note(Arena *a, const TraceParam *list, const char *label) {
    const char *name = words_leaf(grads_weight(a, grads_path(list)));
    return label && strncmp(name, label, strlen(label)) ? name : "";
}

/* "dwq dwk", but "d q_proj k_proj". */
const char *grads_words(Arena *a, const char *names, bool bias) {
    const char *out = "", *more = bias ? " + bias" : "";
    for (const char *q = names; *q; q += strspn(q, " ")) {
        size_t n = strcspn(q, " ");
        if (n > 3) return arena_printf(a, "d %s%s", names, more);
        out = arena_printf(a, "%s%sd%.*s", out, *out ? " " : "", (int)n, q);
        q += n;
    }
    return arena_printf(a, "%s%s", out, more);
}

bool grads_same_end(const ParamGrad *x, const ParamGrad *y) {
    if (x->n != y->n || x->n_unit != y->n_unit || x->term != y->term) return false;
    for (int i = 0; i < x->n; i++)
        if (!text_same(x->coll[i]->op, y->coll[i]->op) ||
            !text_same(x->coll[i]->axis, y->coll[i]->axis) ||
            !text_same(x->coll[i]->wrong, y->coll[i]->wrong))
            return false;
    return true;
}

const char *grads_leaf_next(Arena *a, const ParamGrad *w, const char **group) {
    return w->param && w->param->module ? words_weight_next(a, w->param->module, w->param, group)
                                        : grads_weight(a, w->made->output);
}
const char *grads_leaf(Arena *a, const ParamGrad *w) {
    const char *group = "";
    return grads_leaf_next(a, w, &group);
}

bool grads_is_bias(const ParamGrad *w) { return text_before(w->made->output, ".bias"); }
