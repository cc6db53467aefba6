/* Which products a collective belongs to: those that read what it brings, or else those that make
 * what it sends; of a sum, the other way round. Norms, activations and slices in between are passed
 * by, within the layer and the pass, other collectives are not. */
#include "render/roofline/roofline.h"
#include <string.h>

struct RoofSteps {
    const Timeline *t;
    Arena *a;
    int n;         /* steps */
    int *maker;    /* per step: the kernel that makes its output, -1 */
    int *moved;    /* per step: the step whose output it shows another way, -1: it makes its own */
    int *first;    /* per step: its readers in reader[first[step] .. first[step + 1]) */
    int *reader;   /* events, in the order of time */
    int *seen, at; /* per event: of which collective it was last looked at */
    int *todo;
};
/* How far a search has come, for one collective. */
typedef struct {
    RoofSteps *s;
    const TraceCollective *c;
    bool makes;
    int n; /* events to look at */
} Search;

static int count_steps(const Timeline *t) {
    int n = 0;
    for (int i = 0; i < t->n_events; i++)
        if (t->event[i].rec->step >= n) n = t->event[i].rec->step + 1;
    for (int i = 0; i < t->trace->n_moves; i++)
        if (t->trace->moves[i].step >= n) n = t->trace->moves[i].step + 1;
    return n;
}
/* The step whose output is read, behind slices and relabelled copies. */
static int origin(const RoofSteps *s, int step) {
    for (int i = 0; step >= 0 && step < s->n && s->moved[step] >= 0 && i < s->n; i++)
        step = s->moved[step];
    return step < s->n ? step : -1;
}
static int n_reads(const TimeEvent *x) { return x->c && x->c->input_step ? x->c->n_inputs : 0; }
/* Counts, or with `fill` enters, who reads each step. */
static void index_readers(RoofSteps *s, bool fill) {
    for (int i = 0; i < s->t->n_events; i++)
        for (int k = 0; k < n_reads(&s->t->event[i]); k++) {
            const int step = origin(s, s->t->event[i].c->input_step[k]);
            if (step < 0) continue;
            if (fill) s->reader[s->first[step]++] = i;
            else s->first[step + 1]++;
        }
}
RoofSteps *roof_steps(const Timeline *t, Arena *a) {
    RoofSteps *s = ARENA_NEW(a, RoofSteps);
    *s = (RoofSteps){.t = t, .a = a, .n = count_steps(t)};
    s->maker = ARENA_ARRAY(a, int, s->n + 1);
    s->moved = ARENA_ARRAY(a, int, s->n + 1);
    s->first = ARENA_ARRAY(a, int, s->n + 2);
    s->seen = ARENA_ARRAY(a, int, t->n_events + 1);
    s->todo = ARENA_ARRAY(a, int, t->n_events + 1);
    for (int i = 0; i <= s->n; i++) s->maker[i] = s->moved[i] = -1;
    for (int i = 0; i < t->trace->n_moves; i++) {
        const TraceLocalMove *m = &t->trace->moves[i];
        if (m->step >= 0 && m->value_step < m->step) s->moved[m->step] = m->value_step;
    }
    for (int i = 0; i < t->n_events; i++)
        if (t->event[i].c && t->event[i].rec->step >= 0) s->maker[t->event[i].rec->step] = i;
    index_readers(s, false);
    for (int i = 0; i < s->n; i++) s->first[i + 1] += s->first[i];
    s->reader = ARENA_ARRAY(a, int, s->first[s->n] + 1);
    index_readers(s, true);
    for (int i = s->n; i > 0; i--) s->first[i] = s->first[i - 1];
    s->first[0] = 0;
    return s;
}

static void add_event(Search *q, int event) {
    if (event < 0 || q->s->seen[event] == q->s->at) return;
    q->s->seen[event] = q->s->at;
    q->s->todo[q->n++] = event;
}
/* The kernels next to a step: its readers, or its maker. */
static void add_step(Search *q, int step) {
    step = origin(q->s, step);
    if (step < 0) return;
    if (q->makes) add_event(q, q->s->maker[step]);
    for (int i = q->s->first[step]; !q->makes && i < q->s->first[step + 1]; i++)
        add_event(q, q->s->reader[i]);
}
/* What is no product passes on what it reads, or what reads it. */
static void look_at(Search *q, const TimeEvent *x) {
    if (!x->small || x->c->layer != q->c->layer) return;
    if (!q->makes) add_step(q, x->c->step);
    for (int i = 0; q->makes && i < n_reads(x); i++) add_step(q, x->c->input_step[i]);
}
/* A part of attention that the mask leaves nothing of is none. */
static bool is_product(const TimeEvent *x) { return !x->small && x->rec->work > 0; }
/* The product next to the collective: the first that reads, the last that makes. */
static const TimeEvent *nearest(const Search *q) {
    const TimeEvent *near = NULL;
    for (int i = 0; i < q->n; i++) {
        const TimeEvent *x = &q->s->t->event[q->s->todo[i]];
        const bool later = near && x->rec->step > near->rec->step;
        if (is_product(x) && (!near || later == q->makes)) near = x;
    }
    return near;
}
static void search(RoofSteps *s, RoofColl *k, bool makes) {
    const TraceCollective *c = k->x->coll;
    Search q = {.s = s, .c = c, .makes = makes};
    s->at++;
    k->makes = makes;
    add_step(&q, makes ? c->value_step : c->step);
    for (int i = 0; !makes && i < c->n_with; i++) add_step(&q, c->with[i]);
    for (int i = 0; makes && i < c->n_with_from; i++) add_step(&q, c->with_from[i]);
    for (int i = 0; i < q.n; i++) look_at(&q, &s->t->event[s->todo[i]]);
    const TimeEvent *near = nearest(&q);
    for (int i = 0; near && i < q.n; i++) { /* those of the other pass come at another time */
        const TimeEvent *x = &s->t->event[s->todo[i]];
        if (!is_product(x) || words_phase(x->c) != words_phase(near->c)) continue;
        k->products++;
        k->work += x->rec->work;
        k->math += x->rec->end - x->rec->start;
    }
}
void roof_products(RoofSteps *s, RoofColl *k) {
    const bool sum = k->x->coll->reduce != NULL;
    search(s, k, sum);
    if (!k->products) search(s, k, !sum);
}
