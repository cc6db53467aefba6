/* What tells rows of one name apart. See twins.h. */
#include "render/errors/twins.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

/* A row on its way into the group of those that read alike. */
typedef struct {
    const char *label, *how;
    int64_t round;
    int at; /* in the map */
} Alike;
static int by_words(const void *x, const void *y) {
    const Alike *a = x, *b = y;
    if (a->round != b->round) return a->round < b->round ? -1 : 1;
    const int label = strcmp(a->label, b->label);
    return label ? label : strcmp(a->how, b->how);
}
static int in_order(const void *x, const void *y) {
    const int d = by_words(x, y);
    return d ? d : ((const Alike *)x)->at - ((const Alike *)y)->at;
}

/* The record of a step; NULL: it has none of the kind. */
typedef struct {
    const Trace *t;
    int steps, backward; /* backward: the first step of that pass */
    const TraceCompute **compute;
    const TraceCollective **collective;
    const TraceLocalMove **move;
} Made;
static Made find_made(Arena *a, const ErrMap *m) {
    const Trace *t = m->t;
    Made k = {.t = t, .backward = words_backward(t)};
    for (int i = 0; i < m->n; i++)
        if (m->row[i].step >= k.steps) k.steps = m->row[i].step + 1;
    k.compute = ARENA_ARRAY(a, const TraceCompute *, k.steps + 1);
    k.collective = ARENA_ARRAY(a, const TraceCollective *, k.steps + 1);
    k.move = ARENA_ARRAY(a, const TraceLocalMove *, k.steps + 1);
    for (int i = t->n_computes - 1; i >= 0; i--) {
        const int s = t->computes[i].step;
        if (s >= 0 && s < k.steps) k.compute[s] = &t->computes[i];
    }
    for (int i = 0; i < t->n_collectives; i++) {
        const int s = t->collectives[i].step;
        if (s >= 0 && s < k.steps) k.collective[s] = &t->collectives[i];
    }
    for (int i = 0; i < t->n_moves; i++) {
        const int s = t->moves[i].step;
        if (s >= 0 && s < k.steps) k.move[s] = &t->moves[i];
    }
    return k;
}

static bool adds_uses(const TraceCompute *c) { return c && trace_adds_uses(c); }
/* "w1", "ffn_norm", "part 2" of attention, "sum of exp" of what has no weight: what a step is
 * called in a row of another. */
static const char *step_word(Arena *a, const Trace *t, const TraceCompute *c) {
    if (c->makes.role == OF_PARAM_GRADIENT && c->module && *words_leaf(c->module))
        return words_leaf(c->module);
    for (int i = 0; i < c->n_inputs; i++) {
        const TraceParam *p = trace_param(t, c->inputs[i]);
        if (p && c->module && *words_leaf(c->module)) return words_weight(a, c->module, p);
    }
    for (int i = -1; i < c->n_inputs; i++) {
        const int part = words_attention_part(i < 0 ? c->makes.of : c->inputs[i]);
        if (part >= 0) return arena_printf(a, "part %d", part);
    }
    const char *label = c->label && *c->label ? c->label : c->op, *over = strstr(label, " over ");
    return over ? arena_strndup(a, label, (size_t)(over - label)) : label;
}
/* The step that first reads what step `s` makes; NULL: none does. */
static const TraceCompute *reader_of(const Trace *t, int s) {
    for (int i = 0; i < t->n_computes; i++)
        for (int k = 0; k < t->computes[i].n_inputs; k++)
            if (t->computes[i].input_step[k] == s) return &t->computes[i];
    return NULL;
}
/* A group of n rows that read alike. */
typedef struct {
    const Made *made;
    ErrMap *m;
    const Alike *row;
    int n;
} Twins;
static ErrRow *row_at(const Twins *g, int i) { return &g->m->row[g->row[i].at]; }
/* Does more than one step of the group compute such a value: a gradient of one use, or forward? */
static bool several(const Twins *g, bool gradient) {
    int n = 0;
    for (int i = 0; i < g->n; i++) {
        const TraceCompute *c = g->made->compute[row_at(g, i)->step];
        n += c && !c->recompute && !adds_uses(c) && subject_is_gradient(c->makes) == gradient;
    }
    return n > 1;
}
/* What the collectives of the group differ in, if they do: the mesh axes, the pass. */
static const char *collective_word(Arena *a, const Twins *g, const TraceCollective *x) {
    bool axes = false, pass = false;
    for (int i = 0; i < g->n; i++) {
        const TraceCollective *k = g->made->collective[row_at(g, i)->step];
        if (!k) continue;
        axes |= !text_same(k->axis, x->axis);
        pass |= words_pass_of(k, g->made->backward) != words_pass_of(x, g->made->backward);
    }
    if (axes) return arena_printf(a, "over %s", words_axis_list(a, g->made->t, x->axis));
    if (!pass) return NULL;
    const Phase of = words_pass_of(x, g->made->backward);
    return of == PHASE_BACKWARD ? "for backward" : phase_text(of);
}
/* sums: how many rows of the group up to this one add up what more uses give, one after another. */
static const char *word_of(Arena *a, const Twins *g, int i, int sums) {
    const int step = row_at(g, i)->step;
    const Trace *t = g->made->t;
    const TraceCompute *c = g->made->compute[step];
    const TraceCollective *x = g->made->collective[step];
    const bool gradient = c && subject_is_gradient(c->makes);
    if (adds_uses(c)) return arena_printf(a, "sum of %d", sums + 1);
    if (c && c->recompute) return "again";
    if (c && !several(g, gradient)) return NULL;
    if (gradient) return arena_printf(a, "via %s", step_word(a, t, c));
    if (c) return c->label && *c->label ? c->label : c->op;
    if (x) return collective_word(a, g, x);
    const TraceCompute *reader = g->made->move[step] ? reader_of(t, step) : NULL;
    return reader ? arena_printf(a, "for %s", step_word(a, t, reader)) : NULL;
}
static bool same_word(const ErrRow *a, const ErrRow *b) { return text_same(a->by, b->by); }
/* Words for a group; where two of them are still the same, which of these it is. */
static void name_group(Arena *a, const Twins *g) {
    int sums = 0;
    for (int i = 0; i < g->n; i++) {
        ErrRow *r = row_at(g, i);
        sums += r->step >= 0 && adds_uses(g->made->compute[r->step]);
        r->by = r->step < 0 ? NULL : word_of(a, g, i, sums);
    }
    int *of = ARENA_ARRAY(a, int, g->n), *nth = ARENA_ARRAY(a, int, g->n);
    for (int i = 0; i < g->n; i++)
        for (int k = 0; k < g->n; k++)
            if (same_word(row_at(g, i), row_at(g, k))) of[i]++, nth[i] += k <= i;
    for (int i = 0; i < g->n; i++) {
        ErrRow *r = row_at(g, i);
        if (of[i] > 1)
            r->by = arena_printf(a, "%s%s%d of %d", r->by ? r->by : "", r->by ? ", " : "", nth[i],
                                 of[i]);
    }
}
void errors_tell_apart(Arena *a, ErrMap *m, const char *const *label) {
    enum { MANY = 64 }; /* rows of one name that are told apart */
    const Made made = find_made(a, m);
    Alike *all = ARENA_ARRAY(a, Alike, m->n + 1);
    for (int i = 0; i < m->n; i++)
        all[i] = (Alike){label[i], m->row[i].how ? m->row[i].how : "", m->row[i].round, i};
    qsort(all, (size_t)m->n, sizeof *all, in_order);
    for (int i = 0, k; i < m->n; i = k) {
        for (k = i + 1; k < m->n && !by_words(&all[i], &all[k]);) k++;
        const Twins g = {&made, m, &all[i], k - i};
        if (g.n > 1 && g.n <= MANY) name_group(a, &g);
    }
}
