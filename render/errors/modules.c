#include "render/errors/modules.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A module, the part of the model that it is in, and its layer. */
typedef struct {
    const char *module, *part;
    int layer, order;
} Home;
static int by_module(const void *x, const void *y) {
    const Home *a = x, *b = y;
    int d = strcmp(a->module, b->module);
    return d ? d : a->order - b->order;
}
/* What makes each step, and where each module is. */
typedef struct {
    const Trace *t;
    int steps, n;
    const TraceCompute **compute;
    const TraceCollective **collective;
    const TraceLocalMove **move;
    Home *home; /* sorted */
} Places;

/* A norm belongs to what it stands before: the part of the next step forward that is none. */
static const char *part_at(const Trace *t, int i) {
    const char *own = t->computes[i].part;
    for (int k = i; k < t->n_computes && k < i + 64; k++) {
        const TraceCompute *c = &t->computes[k];
        bool there = c->layer == t->computes[i].layer || t->computes[i].layer < 0;
        if (there && c->part && words_phase(c) == PHASE_FORWARD && !part_term(c->part)->norm)
            return c->part;
    }
    return own;
}
static Places find_places(Arena *a, const ErrMap *m) {
    const Trace *t = m->t;
    Places p = {.t = t, .home = ARENA_ARRAY(a, Home, t->n_computes + 1)};
    for (int i = 0; i < m->n; i++)
        if (m->row[i].step >= p.steps) p.steps = m->row[i].step + 1;
    p.compute = ARENA_ARRAY(a, const TraceCompute *, p.steps + 1);
    p.collective = ARENA_ARRAY(a, const TraceCollective *, p.steps + 1);
    p.move = ARENA_ARRAY(a, const TraceLocalMove *, p.steps + 1);
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (c->step >= 0 && c->step < p.steps) p.compute[c->step] = c;
        if (c->module && c->part && words_phase(c) == PHASE_FORWARD)
            p.home[p.n++] = (Home){c->module, part_at(t, i), c->layer, i};
    }
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step >= 0 && t->collectives[i].step < p.steps)
            p.collective[t->collectives[i].step] = &t->collectives[i];
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].step >= 0 && t->moves[i].step < p.steps)
            p.move[t->moves[i].step] = &t->moves[i];
    qsort(p.home, (size_t)p.n, sizeof *p.home, by_module);
    return p;
}
static const Home *home_of(const Places *p, const char *module) {
    int lo = 0, hi = p->n;
    while (module && lo < hi) {
        int mid = (lo + hi) / 2;
        if (strcmp(p->home[mid].module, module) < 0) lo = mid + 1;
        else hi = mid;
    }
    return module && lo < p->n && !strcmp(p->home[lo].module, module) ? &p->home[lo] : NULL;
}
/* Of a parameter, of its gradient and of what an optimizer keeps for it ("W.exp_avg.next"). */
static const Home *home_of_param(Arena *a, const Places *p, const char *name) {
    char *of = arena_strdup(a, subject_of(name).of);
    const TraceParam *found = NULL;
    for (char *dot = NULL; !(found = trace_param(p->t, of)) && (dot = strrchr(of, '.'));) *dot = 0;
    return found ? home_of(p, found->module) : NULL;
}

/* What a row does: where it stands in the step, in the words before its part. */
typedef enum { DOES_FORWARD, DOES_BACKWARD, DOES_SUM, DOES_UPDATE, DOES_SPREAD } Does;
static const struct {
    const char *before, *alone; /* alone: what is of no part; NULL: as what is before it */
    const char *all;            /* of all parts */
} words[] = {[DOES_FORWARD] = {"", NULL, "forward"},
             [DOES_BACKWARD] = {"backward: ", NULL, "backward"},
             [DOES_SUM] = {"", "gradients, summed", "backward"},
             [DOES_UPDATE] = {"optimizer: ", "optimizer's step", "optimizer's step"},
             [DOES_SPREAD] = {"", "updated parameters", "optimizer's step"}};
static Does does(const Places *p, const ErrRow *r) {
    const TraceCompute *c = p->compute[r->step];
    const TraceCollective *x = p->collective[r->step];
    const TraceLocalMove *v = p->move[r->step];
    bool grad = subject_is_gradient(subject_of(r->name));
    /* what travels with another step has no record of its own */
    Phase pass = c ? c->pass : x ? x->pass : v ? v->pass : r->worst ? r->worst->pass : PHASE_NONE;
    switch (pass) {
    case PHASE_LOSS: return grad ? DOES_BACKWARD : DOES_FORWARD;
    case PHASE_BACKWARD: return DOES_BACKWARD;
    case PHASE_GRADIENTS: return c ? DOES_BACKWARD : DOES_SUM;
    case PHASE_OPTIMIZER: return c || v ? DOES_UPDATE : DOES_SPREAD;
    default: return DOES_FORWARD;
    }
}
static ErrRegion region_of(Arena *a, const Places *p, const ErrRow *r) {
    const TraceCompute *c = p->compute[r->step];
    const TraceCollective *x = p->collective[r->step];
    const TraceLocalMove *v = p->move[r->step];
    const Does d = does(p, r);
    const char *module = c ? c->module : x ? x->module : v ? v->module : NULL;
    const Home *home = d < DOES_UPDATE ? home_of(p, module) : home_of_param(a, p, r->name);
    if (d == DOES_SUM || (d == DOES_SPREAD && home)) return (ErrRegion){"", words[d].alone};
    const char *part = c && c->part && !part_term(c->part)->norm && d < DOES_UPDATE ? c->part
                       : home                                                       ? home->part
                       : x                                                          ? x->part
                                                                                    : NULL;
    int layer = home ? home->layer : c ? c->layer : x ? x->layer : -1;
    if (!part) return (ErrRegion){"", d < DOES_UPDATE ? NULL : words[DOES_UPDATE].alone};
    if (layer < 0) return (ErrRegion){words[d].before, part_term_word(part)};
    return (ErrRegion){words[d].before,
                       arena_printf(a, "layers.%d.%s", layer, part_term_word(part))};
}
/* Of a part's row that of its layer, or of all that is done there. */
static ErrRegion wider(Arena *a, ErrRegion r, ErrWidth w) {
    int layer;
    for (int d = 0; d <= DOES_SPREAD && w == ERR_PASSES; d++)
        if (*r.before ? !strcmp(r.before, words[d].before)
                      : words[d].alone && !strcmp(r.name, words[d].alone))
            return (ErrRegion){"", words[d].all};
    if (w == ERR_PASSES) return (ErrRegion){"", words[DOES_FORWARD].all};
    bool in = sscanf(r.name, "layers.%d.", &layer) == 1;
    return (ErrRegion){r.before, in ? arena_printf(a, "layers.%d", layer) : r.name};
}
bool errors_same_region(ErrRegion a, ErrRegion b) {
    return a.name && b.name && !strcmp(a.name, b.name) && !strcmp(a.before, b.before);
}
/* What an optimizer makes for no parameter that it names belongs to the step behind it (a gradient
 * before the parameter that it changes), any other value of no part to what is before it. */
static void find_others(const ErrMap *m, ErrRegion *of) {
    for (int i = 0; i + 1 < m->n; i++) {
        bool alone = of[i].name && text_same(of[i].name, words[DOES_UPDATE].alone);
        if (alone && !strcmp(of[i + 1].before, words[DOES_UPDATE].before)) of[i] = of[i + 1];
    }
    for (int i = 1; i < m->n; i++) {
        const ErrRow *r = &m->row[i];
        bool on = !r->before && !r[-1].sources && !strcmp(r[-1].name, r->name);
        if (!r->sources && r->step >= 0 && (on || !of[i].name) && of[i - 1].name) of[i] = of[i - 1];
    }
}
ErrRegion *errors_regions(Arena *a, const ErrMap *m, ErrWidth w) {
    ErrRegion *of = ARENA_ARRAY(a, ErrRegion, m->n + 1);
    const Places p = find_places(a, m);
    for (int i = 0; i < m->n; i++) {
        const ErrRow *r = &m->row[i];
        of[i] = (ErrRegion){"", NULL};
        if (r->step < 0 || r->sources) continue;
        of[i] = r->before ? (ErrRegion){r->before, r->name} : region_of(a, &p, r);
    }
    find_others(m, of);
    for (int i = 0; i < m->n && w != ERR_PARTS; i++)
        if (of[i].name) of[i] = wider(a, of[i], w);
    return of;
}
