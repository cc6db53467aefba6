/* See trace_way.h. Values are sorted by name, so that many layers cost no more than a sort. */
#include "trace/trace_way.h"
#include <stdlib.h>
#include <string.h>

/* What is made of both ways together, after the last micro-batch, is of neither. */
enum { WAY_FIRST, WAY_OTHER, WAY_BOTH, WAYS };
static int way_of(const TraceValue *v) { return v->once ? WAY_BOTH : v->way; }

typedef struct {
    const TraceValue *v;
    int at; /* in the trace */
} Named;
static int by_name(const void *a, const void *b) {
    const Named *x = a, *y = b;
    int c = strcmp(x->v->shape.name, y->v->shape.name);
    return c ? c : x->at - y->at;
}
static bool holds(const TraceValue *v, int64_t rank) {
    for (int i = 0; i < v->shape.n_local; i++)
        if (rankset_has(&v->shape.local[i].ranks, rank)) return true;
    return false;
}
/* The way in which the rank computes the layer; -1: it does not, or no layer is meant. */
static int way_of_layer(const Trace *t, int64_t rank, int layer) {
    for (int i = 0; layer >= 0 && i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        if (v->layer != layer || v->pass != PHASE_FORWARD || !holds(v, rank)) continue;
        for (int k = 0; k < t->n_computes; k++)
            if (t->computes[k].step == v->step && rankset_has(&t->computes[k].ranks, rank))
                return way_of(v);
    }
    return -1;
}
/* Marks what the rank has nothing to do with among n values of one name; `way` as above. */
static void mark_foreign(const Named *x, int n, int64_t rank, int way, bool *foreign) {
    bool own[WAYS] = {false};
    for (int i = 0; i < n; i++) own[way_of(x[i].v)] |= holds(x[i].v, rank);
    if (!own[WAY_FIRST] && !own[WAY_OTHER] && !own[WAY_BOTH]) return;
    if (way >= 0 && own[way]) own[WAY_FIRST] = way == WAY_FIRST, own[WAY_OTHER] = way == WAY_OTHER;
    for (int i = 0; i < n; i++) foreign[x[i].at] = !own[way_of(x[i].v)];
}
/* Leaves out of an array of records those whose step is dropped; the copy is in the arena. */
#define KEEP(T, items, n_items)                                                                    \
    do {                                                                                           \
        T *all = own->items;                                                                       \
        int count = own->n_items;                                                                  \
        own->items = ARENA_ARRAY(arena, T, count + 1);                                             \
        own->n_items = 0;                                                                          \
        for (int i = 0; i < count; i++) {                                                          \
            bool gone = all[i].step >= 0 && all[i].step < steps && dropped[all[i].step];           \
            if (!gone) own->items[own->n_items++] = all[i];                                        \
        }                                                                                          \
    } while (0)
const char *trace_way_one(bool both) {
    return both ? "one micro-batch each way" : "one micro-batch";
}
const Trace *trace_own_way(const Trace *t, int64_t rank, int layer, Arena *arena) {
    if (!trace_both_ways(t)) return t;
    Trace *own = arena_memdup(arena, t, sizeof *t);
    Named *x = ARENA_ARRAY(arena, Named, t->n_values);
    bool *foreign = ARENA_ARRAY(arena, bool, t->n_values);
    int steps = 0, way = way_of_layer(t, rank, layer);
    for (int i = 0; i < t->n_values; i++) {
        x[i] = (Named){&t->values[i], i};
        if (t->values[i].step >= steps) steps = t->values[i].step + 1;
    }
    qsort(x, (size_t)t->n_values, sizeof *x, by_name);
    for (int i = 0, n; i < t->n_values; i += n) {
        for (n = 1; i + n < t->n_values && !strcmp(x[i].v->shape.name, x[i + n].v->shape.name);)
            n++;
        mark_foreign(x + i, n, rank, way, foreign);
    }
    bool *dropped = ARENA_ARRAY(arena, bool, steps + 1);
    own->values = ARENA_ARRAY(arena, TraceValue, t->n_values);
    own->n_values = 0;
    for (int i = 0; i < t->n_values; i++) {
        if (!foreign[i]) own->values[own->n_values++] = t->values[i];
        else if (t->values[i].step >= 0) dropped[t->values[i].step] = true;
    }
    KEEP(TraceCompute, computes, n_computes);
    KEEP(TraceCollective, collectives, n_collectives);
    KEEP(TraceLocalMove, moves, n_moves);
    return own;
}
