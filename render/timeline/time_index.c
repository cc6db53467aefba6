/* Records by step and by the value that they make. A trace from a file may hold them in any order.
 * Refuses to say anything about them. */
#include "render/timeline/time_index.h"
#include <stdlib.h>
#include <string.h>

static int by_key(const void *a, const void *b) {
    const TimeAt *x = a, *y = b;
    const int order =
        x->key && y->key ? strcmp(x->key, y->key) : (x->step > y->step) - (x->step < y->step);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}
static const TimeAt *sorted(TimeAt *at, int n) {
    bool in_order = true;
    for (int i = 1; i < n && in_order; i++) in_order = by_key(&at[i - 1], &at[i]) < 0;
    if (!in_order) qsort(at, (size_t)n, sizeof *at, by_key);
    return at;
}
/* The first of n that is not before the key, or n. */
static int first_at(const TimeAt *at, int n, TimeAt key) {
    int from = 0;
    key.at = -1;
    while (from < n) {
        const int half = from + (n - from) / 2;
        if (by_key(&at[half], &key) < 0) from = half + 1;
        else n = half;
    }
    return from;
}

TimeIndex time_index(const Trace *t, Arena *arena) {
    TimeAt *compute = ARENA_ARRAY(arena, TimeAt, t->n_computes + 1),
           *coll = ARENA_ARRAY(arena, TimeAt, t->n_collectives + 1),
           *maker = ARENA_ARRAY(arena, TimeAt, t->n_computes + 1);
    int n = 0;
    for (int i = 0; i < t->n_computes; i++) {
        const Subject *makes = &t->computes[i].makes;
        compute[i] = (TimeAt){NULL, t->computes[i].step, i};
        if (makes->role == OF_ITSELF && makes->of) maker[n++] = (TimeAt){makes->of, 0, i};
    }
    for (int i = 0; i < t->n_collectives; i++) coll[i] = (TimeAt){NULL, t->collectives[i].step, i};
    return (TimeIndex){.t = t,
                       .compute = sorted(compute, t->n_computes),
                       .coll = sorted(coll, t->n_collectives),
                       .maker = sorted(maker, n),
                       .n_makers = n};
}
const TraceCompute *time_compute(const TimeIndex *x, const TraceEvent *e) {
    const Trace *t = x->t;
    const TraceCompute *any = NULL;
    int i = first_at(x->compute, t->n_computes, (TimeAt){.step = e->step});
    for (; i < t->n_computes && x->compute[i].step == e->step; i++) {
        any = &t->computes[x->compute[i].at];
        if (!e->ranks.n || rankset_has(&any->ranks, rankset_first(&e->ranks))) return any;
    }
    return any;
}
const TraceCollective *time_collective(const TimeIndex *x, const TraceEvent *e) {
    const Trace *t = x->t;
    const int i = first_at(x->coll, t->n_collectives, (TimeAt){.step = e->step});
    const bool there = i < t->n_collectives && x->coll[i].step == e->step;
    return there ? &t->collectives[x->coll[i].at] : NULL;
}
const TraceCompute *time_maker(const TimeIndex *x, const char *value) {
    const int i = value ? first_at(x->maker, x->n_makers, (TimeAt){.key = value}) : x->n_makers;
    const bool there = i < x->n_makers && !strcmp(x->maker[i].key, value);
    return there ? &x->t->computes[x->maker[i].at] : NULL;
}
