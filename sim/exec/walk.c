/* Steps and instances, one after the other. See walk.h. */
#include "exec/walk.h"
#include "base/clock.h"
#include <assert.h>

/* Calls one function of every observer that has it. */
#define OBSERVE(w, event, ...)                                                                     \
    do {                                                                                           \
        double observed_from = clock_seconds();                                                    \
        for (int o = 0; o < (w)->n; o++)                                                           \
            if ((w)->observers[o]->event)                                                          \
                (w)->observers[o]->event((w)->observers[o]->arg, __VA_ARGS__);                     \
        (w)->seconds_observed += clock_seconds() - observed_from;                                  \
    } while (0)

static bool load(Walk *w, int val) {
    double from = clock_seconds();
    if (!exec_load(w->e, val)) return false;
    w->seconds_run += clock_seconds() - from;
    OBSERVE(w, loaded, val);
    return true;
}
static bool is_missing(const Exec *e, int val) {
    return e->p->val[val].step < 0 && !exec_store(e, val)->alive;
}
static bool load_sources(Walk *w) {
    const Program *p = w->e->p;
    for (int v = 0; v < p->nv; v++)
        if (is_missing(w->e, v) && !w->e->lives.late[v] && !load(w, v)) return false;
    return true;
}
static bool load_reads(Walk *w, const Step *s) {
    int v[RULE_MAX_IN + 2], n = step_reads(s, v);
    for (int k = 0; k < n; k++)
        if (is_missing(w->e, v[k]) && !load(w, v[k])) return false;
    return true;
}
static WalkEnd run_step(Walk *w, const Step *s, int64_t part) {
    if (!load_reads(w, s)) return WALK_FAILED;
    double from = clock_seconds();
    if (!exec_step(w->e, s)) {
        OBSERVE(w, stuck, s);
        return WALK_STUCK;
    }
    w->seconds_run += clock_seconds() - from;
    OBSERVE(w, stepped, s);
    exec_accumulate(w->e, s, part, w->parts);
    OBSERVE(w, settled, s);
    exec_release(w->e, s);
    return w->stop && *w->stop ? WALK_STOPPED : WALK_DONE;
}
static WalkEnd run_instance(Walk *w, WalkInstance at) {
    const Program *p = w->e->p;
    exec_begin(w->e, at.part);
    OBSERVE(w, begun, at);
    if (w->load_first && !load_sources(w)) return WALK_FAILED;
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        if (at.part + 1 < w->parts && exec_deferred(w->e, s)) continue;
        WalkEnd end = run_step(w, s, at.part);
        if (end != WALK_DONE) return end;
    }
    OBSERVE(w, ended, at);
    return WALK_DONE;
}
WalkEnd walk_run(Walk *w) {
    assert(w->e && w->parts >= 1 && w->iterations >= 0);
    for (int64_t it = 0; it < w->iterations; it++) {
        for (int64_t part = 0; part < w->parts; part++) {
            WalkEnd end = run_instance(w, (WalkInstance){it, part});
            if (end != WALK_DONE) return end;
        }
        if (!w->e->p->graph->nn_model) continue;
        exec_next_iteration(w->e);
        OBSERVE(w, iterated, it);
    }
    return WALK_DONE;
}
