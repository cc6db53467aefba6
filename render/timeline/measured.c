/* What was measured on one rank, as a timeline that stands beside the model's. Refuses to draw what
 * the model has no event for: slices and views that stay on the rank are gaps, as waiting is. */
#include "render/timeline/timeline.h"
#include <math.h>

static const TraceCompute *compute_of(const Trace *t, const TraceMeasured *m) {
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].step == m->step &&
            (!t->computes[i].ranks.n || rankset_has(&t->computes[i].ranks, m->rank)))
            return &t->computes[i];
    return NULL;
}
/* What one record stands for is one event. */
static void add(Trace *t, int *cap, const TraceMeasured *m, TraceEvent e) {
    TraceEvent *last = t->n_events ? &t->events[t->n_events - 1] : NULL;
    double wait = m->wait;
    if (last && last->step == e.step) {
        last->end = m->end;
        wait = 0; /* told with the first of a unit */
    } else {
        last = ARENA_PUSH(t->arena, t->events, t->n_events, *cap);
        *last = e;
        last->ranks = rankset_range(t->arena, m->rank, 1, 1);
        last->start = m->start;
        last->end = m->end;
    }
    double took = last->end - last->start;
    last->formula = wait > 0 ? arena_printf(t->arena, "measured: %s, %s of it in the engine",
                                            time_text(took, t->arena), time_text(wait, t->arena))
                             : arena_printf(t->arena, "measured: %s", time_text(took, t->arena));
}
/* Of a collective the time in which nothing is computed. */
static void expose(Trace *t) {
    for (int i = 0; i < t->n_events; i++) {
        TraceEvent *e = &t->events[i];
        if (trace_is_compute(e)) continue;
        e->exposed = e->end - e->start;
        for (int k = 0; k < t->n_events; k++) { /* of which none overlap */
            const TraceEvent *c = &t->events[k];
            double both = fmin(c->end, e->end) - fmax(c->start, e->start);
            if (trace_is_compute(c) && both > 0) e->exposed -= both;
        }
        if (e->exposed < 0) e->exposed = 0;
    }
}
Trace *timeline_measured(const Trace *t, Arena *arena, int64_t rank) {
    Trace *own = ARENA_NEW(arena, Trace);
    int cap = 0;
    *own = *t;
    own->arena = arena;
    own->n_events = 0;
    own->events = NULL;
    for (int i = 0; i < t->n_measured; i++) {
        const TraceMeasured *m = &t->measured[i];
        if (m->rank != rank) continue;
        const TraceCollective *c = trace_collective_of(t, m->step);
        const TraceCompute *k = c ? NULL : compute_of(t, m);
        if (c)
            add(own, &cap, m,
                (TraceEvent){.step = c->step,
                             .kind = "collective",
                             .stream = c->axes ? c->axes : c->axis,
                             .name = c->op});
        else if (k)
            add(own, &cap, m,
                (TraceEvent){
                    .step = k->step, .kind = "compute", .stream = "compute", .name = k->label});
    }
    expose(own);
    return own;
}
