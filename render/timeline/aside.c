/* What of a pipeline's events is part of each micro-batch, and what that comes to in a whole step
 * by the actions of the schedule: as often as that has micro-batches; what is done once a step is
 * apart. */
#include "render/furniture/wrong.h"
#include "render/timeline/timeline.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool timeline_staged(const ViewCall *c) {
    const Trace *t = c->t;
    double end = 0;
    for (int i = 0; i < t->n_actions; i++) end = fmax(end, t->actions[i].end);
    return !c->o->measured && !t->n_stuck && end > 0 && trace_pipe_coord(t, 0) >= 0 &&
           !wrong_find(c->arena, t, NULL, NULL)->n;
}
bool timeline_is_message(const TimeEvent *x) { return x->coll && !strcmp(x->coll->op, "send"); }
static bool is_once(const Trace *t, const TimeEvent *x) {
    if (x->coll) return trace_microbatches(t) > 1 && !x->coll->per_step;
    const TraceValue *v = x->c ? trace_value(t, x->c->output, x->c->step) : NULL;
    return (v && v->once) || (x->c && x->c->pass == PHASE_OPTIMIZER);
}
/* ---- the clock ---- */

typedef struct {
    double a, b, before; /* before: how much of all is before it */
} Part;
static int by_a(const void *x, const void *y) {
    double d = ((const Part *)x)->a - ((const Part *)y)->a;
    return (d > 0) - (d < 0);
}
/* When what is not aside computes, or compute stands still for it; disjoint and in order. */
static Part *parts_of(const Timeline *t, Arena *a, int *n) {
    Part *p = ARENA_ARRAY(a, Part, 2 * t->n_events + 1);
    int m = 0, kept = 0;
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *e = t->event[i].rec;
        double sends = e->start + e->wait;
        if (t->event[i].aside) continue;
        if (trace_is_compute(e)) p[m++] = (Part){e->start, e->end, 0};
        else if (e->exposed > 0) p[m++] = (Part){e->end - e->exposed, e->end, 0};
        if (e->wait_exposed > 0) p[m++] = (Part){sends - e->wait_exposed, sends, 0};
    }
    if (m) qsort(p, (size_t)m, sizeof *p, by_a);
    for (int i = 0; i < m; i++) {
        Part *last = kept ? &p[kept - 1] : NULL;
        if (last && p[i].a <= last->b) {
            last->b = fmax(last->b, p[i].b);
            continue;
        }
        p[kept] = p[i];
        p[kept].before = last ? last->before + last->b - last->a : 0;
        kept++;
    }
    *n = kept;
    return p;
}
static double clock_at(const Part *p, int n, double when) {
    int low = 0, high = n; /* the parts before `low` begin before that */
    while (low < high) {
        int mid = (low + high) / 2;
        if (p[mid].a < when) low = mid + 1;
        else high = mid;
    }
    const Part *x = low ? &p[low - 1] : NULL;
    return x ? x->before + fmin(when, x->b) - x->a : 0;
}
void timeline_take_aside(Timeline *t, Arena *a) {
    int n;
    for (int i = 0; i < t->n_events; i++)
        t->event[i].aside = timeline_is_message(&t->event[i]) || is_once(t->trace, &t->event[i]);
    const Part *p = parts_of(t, a, &n);
    TraceEvent *e = ARENA_ARRAY(a, TraceEvent, t->n_events + 1);
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *rec = t->event[i].rec;
        e[i] = *rec;
        e[i].start = clock_at(p, n, rec->start);
        e[i].end = clock_at(p, n, rec->end);
        e[i].wait = clock_at(p, n, rec->start + rec->wait) - e[i].start;
        t->event[i].e = &e[i];
    }
}

/* ---- sums ---- */

/* What is done once a step is hidden behind all that the rank computes. */
static double hidden_once(const Timeline *t, const TraceEvent *const *e, int n, Arena *a) {
    const TraceEvent **all = ARENA_ARRAY(a, const TraceEvent *, t->n_events + 1);
    for (int i = 0; i < t->n_events; i++) all[i] = t->event[i].rec;
    return trace_overlap(e, n, all, t->n_events);
}
/* The times of those events that are aside, less messages, or of those that are not. */
static TraceTimes times_of(const Timeline *t, Arena *a, bool aside) {
    const TraceEvent **e = ARENA_ARRAY(a, const TraceEvent *, t->n_events + 1);
    int n = 0;
    double end = 0;
    for (int i = 0; i < t->n_events; i++) {
        const TimeEvent *x = &t->event[i];
        end = fmax(end, x->rec->end);
        if (x->aside == aside && !timeline_is_message(x)) e[n++] = x->rec;
    }
    TraceTimes s = trace_times(e, n, 0, end);
    s.waiting = 0; /* the rest of the time is not these events' */
    if (aside) s.hidden = hidden_once(t, e, n, a);
    for (int i = 0; i < n; i++) s.waiting += e[i]->wait_exposed;
    return s;
}
const TimeStep *timeline_step(const Timeline *t, Arena *a, int64_t rank) {
    const Trace *tr = t->trace;
    TimeStep *s = ARENA_NEW(a, TimeStep);
    int n = 0;
    bool *seen = ARENA_ARRAY(a, bool, tr->stages + 1);
    s->coord = trace_pipe_coord(tr, rank);
    for (int i = 0; i < tr->n_actions; i++) {
        const TraceAction *x = &tr->actions[i];
        s->span = fmax(s->span, x->end);
        if (x->rank != s->coord || *x->kind != 'F') continue;
        n++;
        if (x->stage < 0 || x->stage >= tr->stages || seen[x->stage]) continue;
        seen[x->stage] = true;
        s->stages++;
    }
    s->times = s->stages ? n / s->stages : n;
    TraceTimes each = times_of(t, a, false), once = times_of(t, a, true);
    s->compute = s->times * each.compute;
    s->exposed = s->times * each.exposed;
    s->waiting = s->times * each.waiting;
    s->comm = s->times * each.comm;
    s->hidden = s->times * each.hidden;
    s->beside = s->times * each.beside;
    s->idle = s->span - s->compute - s->exposed - s->waiting;
    if (s->idle < 1e-9 * s->span) s->idle = 0; /* differences of the same sums */
    s->once_compute = once.compute;
    s->once_comm = once.comm;
    s->once_exposed = once.exposed;
    s->once_hidden = once.hidden;
    return s;
}
