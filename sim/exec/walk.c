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
    from = clock_seconds() - from;
    w->seconds_run += from;
    w->seconds_loaded += from;
    OBSERVE(w, loaded, val);
    return true;
}
static bool is_missing(const Exec *e, int val) {
    return e->p->val[val].step < 0 && !exec_store(e, val)->alive;
}
/* Is the value, an input, of micro-batches that enter at the other end of a pipeline? */
static bool other_way(const Walk *w, int val, int64_t part) {
    const Program *p = w->e->p;
    const Stages *s = p->assign ? p->assign->stages : NULL;
    return w->tasks && p->val[val].kind == KIND_INPUT &&
           stages_way(s, part) != stages_way_of(s, p->val[val].stage);
}
static bool load_sources(Walk *w, int64_t part) {
    const Program *p = w->e->p;
    for (int v = 0; v < p->nv; v++)
        if (!other_way(w, v, part) && is_missing(w->e, v) && !w->e->lives.late[v] && !load(w, v))
            return false;
    return true;
}
static bool load_reads(Walk *w, const Step *s) {
    int v[RULE_MAX_IN + 2], n = step_reads(s, v);
    for (int k = 0; k < n; k++)
        if (is_missing(w->e, v[k]) && !load(w, v[k])) return false;
    return true;
}
/* The executors in which values come and go. */
enum { MOST_EXECS = 2 };
static int execs_of(const Walk *w, Exec **out) {
    out[0] = w->e;
    out[1] = w->beside;
    return w->beside ? 2 : 1;
}
static void turn_to(Walk *w, int64_t instance, void turn(Exec *, int64_t)) {
    Exec *e[MOST_EXECS];
    for (int i = 0, n = execs_of(w, e); i < n; i++) turn(e[i], instance);
}
/* Gives back what nobody reads any more. */
static void release(Walk *w, const Step *s, int64_t part) {
    Exec *e[MOST_EXECS];
    bool in_order = !w->tasks || lives_deferred(w->e->p, s);
    int v[RULE_MAX_IN + 3], n = in_order ? 0 : tasks_read(w->tasks, s, part, v);
    for (int i = 0, ne = execs_of(w, e); i < ne; i++) {
        if (in_order) exec_release(e[i], s);
        for (int k = 0; k < n; k++) exec_release_value(e[i], v[k]);
    }
}
/* Adds up gradients over the micro-batches; is this one the last? */
static bool accumulate(Walk *w, const Step *s, int64_t part) {
    Exec *e[MOST_EXECS];
    bool all = false;
    for (int i = 0, n = execs_of(w, e); i < n; i++) all = exec_accumulate(e[i], s, part, w->parts);
    return all;
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
    if (accumulate(w, s, part)) OBSERVE(w, summed, s);
    OBSERVE(w, settled, s);
    release(w, s, part);
    return w->stop && *w->stop ? WALK_STOPPED : WALK_DONE;
}
/* What all micro-batches shared is given back. */
static void drop_shared(Walk *w) {
    Exec *e[MOST_EXECS];
    for (int i = 0, n = execs_of(w, e); i < n; i++)
        for (int v = 0; v < e[i]->p->nv; v++)
            if (lives_once(e[i]->p, &e[i]->p->val[v])) exec_drop(e[i], v);
}
/* The last step that every micro-batch does. */
static int last_turn(const Program *p) {
    int i = p->ns - 1;
    while (i > 0 && lives_deferred(p, &p->step[i])) i--;
    return i;
}
static WalkEnd run_instance(Walk *w, WalkInstance at) {
    const Program *p = w->e->p;
    int turns = last_turn(p);
    bool last = at.part + 1 == w->parts;
    turn_to(w, at.part, exec_begin);
    OBSERVE(w, begun, at);
    if (w->load_first && !load_sources(w, at.part)) return WALK_FAILED;
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        if (!last && lives_deferred(p, s)) continue;
        WalkEnd end = WALK_DONE;
        if (exec_once(w->e, s)) release(w, s, at.part); /* the first micro-batch has done it */
        else end = run_step(w, s, at.part);
        if (end != WALK_DONE) return end;
        if (last && i == turns) drop_shared(w);
    }
    OBSERVE(w, ended, at);
    return WALK_DONE;
}

/* ---- the order of a schedule ---- */
static WalkEnd run_task(Walk *w, const Action *a, WalkInstance at, bool *begun) {
    const TaskSteps *t = tasks_of(w->tasks, a);
    turn_to(w, at.part, exec_turn);
    OBSERVE(w, begun, at);
    if (!begun[at.part] && w->load_first && !load_sources(w, at.part)) return WALK_FAILED;
    begun[at.part] = true;
    for (int i = 0; i < t->n; i++) {
        if (exec_once(w->e, t->step[i])) { /* the first micro-batch has done it for all */
            release(w, t->step[i], at.part);
            continue;
        }
        WalkEnd end = run_step(w, t->step[i], at.part);
        if (end != WALK_DONE) return end;
    }
    return WALK_DONE;
}
/* What is done once, in the instance of the last micro-batch. */
static WalkEnd run_deferred(Walk *w, WalkInstance at) {
    const Program *p = w->e->p;
    turn_to(w, at.part, exec_turn);
    OBSERVE(w, begun, at);
    for (int i = 0; i < p->ns; i++) {
        WalkEnd end =
            lives_deferred(p, &p->step[i]) ? run_step(w, &p->step[i], at.part) : WALK_DONE;
        if (end != WALK_DONE) return end;
    }
    OBSERVE(w, ended, at);
    return WALK_DONE;
}
/* What one way of the pipeline has added up goes on to where the other's is. */
static void carry(Walk *w, int64_t part) {
    const Stages *s = w->e->p->assign->stages;
    Exec *e[MOST_EXECS];
    if (s->ways < 2 || stages_way(s, part) == stages_way(s, part + 1)) return;
    for (int i = 0, n = execs_of(w, e); i < n; i++) exec_carry(e[i], part, w->parts - 1);
}
static WalkEnd run_schedule(Walk *w, int64_t iteration) {
    const Play *p = w->tasks->play;
    WalkEnd end = WALK_DONE;
    bool *begun = ARENA_ARRAY(w->e->arena, bool, w->parts);
    tasks_begin(w->tasks);
    if (iteration) turn_to(w, w->parts - 1, exec_end); /* what the step before was left in */
    for (int i = 0; i < p->n_steps && end == WALK_DONE; i++) {
        const Action *a = &p->s->rank[p->step[i].rank].a[p->step[i].at];
        if (action_computes(a->kind))
            end = run_task(w, a, (WalkInstance){iteration, a->part}, begun);
    }
    for (int64_t k = 0; k + 1 < w->parts && end == WALK_DONE; k++) {
        WalkInstance at = {iteration, k};
        turn_to(w, k, exec_turn);
        OBSERVE(w, begun, at);
        OBSERVE(w, ended, at);
        carry(w, k);
        turn_to(w, k, exec_end);
    }
    drop_shared(w);
    return end == WALK_DONE ? run_deferred(w, (WalkInstance){iteration, w->parts - 1}) : end;
}
WalkEnd walk_run(Walk *w) {
    assert(w->e && w->parts >= 1 && w->iterations >= 0 && (!w->from || !w->tasks));
    for (int64_t it = 0; it < w->iterations; it++) {
        WalkEnd all = w->tasks ? run_schedule(w, it) : WALK_DONE;
        if (all != WALK_DONE) return all;
        for (int64_t part = w->from; part < w->parts && !w->tasks; part++) {
            WalkEnd end = run_instance(w, (WalkInstance){it, part});
            if (end != WALK_DONE) return end;
        }
        if (!w->e->p->graph->nn_model) continue;
        Exec *e[MOST_EXECS];
        for (int i = 0, n = execs_of(w, e); i < n; i++) exec_next_iteration(e[i]);
        OBSERVE(w, iterated, it);
    }
    return WALK_DONE;
}
