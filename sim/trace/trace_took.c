/* Steps with their times. See trace_took.h. */
#include "trace/trace_took.h"
#include <stdlib.h>
#include <string.h>

/* Per step: the longest of the ranks that are asked for; below 0: none. */
typedef struct {
    int n;
    double *modelled, *measured, *wait;
} Times;
static int steps_of(const Trace *t) {
    int n = 0;
#define UP_TO(array, count)                                                                        \
    for (int i = 0; i < t->count; i++)                                                             \
        if (t->array[i].step >= n) n = t->array[i].step + 1;
    UP_TO(computes, n_computes)
    UP_TO(collectives, n_collectives)
    UP_TO(events, n_events)
    UP_TO(measured, n_measured)
#undef UP_TO
    return n;
}
static double *unknown(Arena *a, int n) {
    double *x = ARENA_ARRAY(a, double, n + 1);
    for (int i = 0; i < n; i++) x[i] = -1;
    return x;
}
static Times times_of(const Trace *t, int64_t rank, Arena *a) {
    int n = steps_of(t);
    Times x = {n, unknown(a, n), unknown(a, n), ARENA_ARRAY(a, double, n + 1)};
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *e = &t->events[i];
        bool asked = rank < 0 || !e->ranks.n || rankset_has(&e->ranks, rank);
        if (e->step < 0 || !asked) continue;
        double took = e->end - e->start - e->wait; /* the slowest waits for nobody */
        if (took > x.modelled[e->step]) x.modelled[e->step] = took;
    }
    for (int i = 0; i < t->n_measured; i++) {
        const TraceMeasured *m = &t->measured[i];
        if (m->step < 0 || (rank >= 0 && m->rank != rank)) continue;
        if (m->end - m->start <= x.measured[m->step]) continue;
        x.measured[m->step] = m->end - m->start;
        x.wait[m->step] = m->wait;
    }
    return x;
}
/* What was measured of a step is added; nothing, where nothing was. */
static void add_measured(TraceTook *k, const Times *x, int step) {
    if (step < 0 || step >= x->n || x->measured[step] < 0) return;
    k->measured = (k->measured < 0 ? 0 : k->measured) + x->measured[step];
    k->wait += x->wait[step];
}
static TraceTook of_compute(const TraceCompute *c, const Times *x) {
    TraceTook k = {.step = c->step,
                   .pass = c->pass,
                   .op = c->label ? c->label : c->op,
                   .value = c->output,
                   .size = 1,
                   .layer = c->layer,
                   .modelled = x->modelled[c->step],
                   .measured = -1,
                   .flops = c->flops,
                   .bytes = (double)c->bytes};
    add_measured(&k, x, c->step);
    return k;
}
static TraceTook of_collective(const TraceCollective *c, const Times *x, int64_t rank) {
    TraceTook k = {.step = c->step,
                   .moves = true,
                   .pass = c->pass,
                   .op = c->op,
                   .value = c->value,
                   .axis = c->axis ? c->axis : c->axes,
                   .size = groups_size(&c->groups),
                   .layer = c->layer,
                   .modelled = x->modelled[c->step],
                   .measured = -1,
                   .bytes = (double)collective_on(c, rank).bytes_sent};
    add_measured(&k, x, c->step);
    for (int w = 0; w < c->n_with; w++) add_measured(&k, x, c->with[w]);
    return k;
}
static int by_step(const void *a, const void *b) {
    const TraceTook *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->flops < y->flops) - (x->flops > y->flops);
}
TraceTook *trace_took(const Trace *t, int64_t rank, Arena *a, int *n) {
    Arena *tmp = arena_new();
    Times x = times_of(t, rank, tmp);
    TraceTook *k = ARENA_ARRAY(a, TraceTook, t->n_computes + t->n_collectives + 1);
    int all = 0;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        bool asked = rank < 0 || !c->ranks.n || rankset_has(&c->ranks, rank);
        if (c->step >= 0 && asked) k[all++] = of_compute(c, &x);
    }
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->step >= 0 && (rank < 0 || groups_with(&c->groups, rank) >= 0))
            k[all++] = of_collective(c, &x, rank);
    }
    arena_free(tmp);
    if (all) qsort(k, (size_t)all, sizeof *k, by_step);
    *n = 0; /* classes of ranks have records of their own: the first of a step has most to do */
    for (int i = 0; i < all; i++)
        if (!*n || k[*n - 1].step != k[i].step) k[(*n)++] = k[i];
    return k;
}
bool trace_took_in_turns(const Trace *t) { return t->backend && !strcmp(t->backend, "nccl-share"); }
bool trace_took_in_memory(const Trace *t) { return t->backend && !strcmp(t->backend, "cuda"); }

/* What a rank sends of a collective's size, of n ranks. */
static double sent_of_size(const char *op, int64_t n) {
    static const struct {
        const char *op;
        double rings;
    } of[] = {{"all_reduce", 2}, {"all_gather", 1}, {"reduce_scatter", 1}, {"all_to_all", 1}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (!strcmp(of[i].op, op)) return of[i].rings * (double)(n - 1) / (double)n;
    return 1;
}
double trace_took_size(const TraceTook *k) {
    double f = k->moves ? sent_of_size(k->op, k->size) : 0;
    return f > 0 ? k->bytes / f : 0;
}
