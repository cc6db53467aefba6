/* Rows per rank and expert. Reads the lists that the step just run has made, so what is counted is
 * what the run did, mistakes included. Refuses to compute a routing: it counts. */
#include "exec/routed.h"
#include <string.h>

/* Positions in the product of the listed letters that share one index of expert `e`: how far apart
 * two experts lie, and how many experts there are; 0 if the list has no experts. */
static int64_t experts_of(const GTensor *t, int64_t *stride) {
    const char *at = memchr(t->letter, 'e', (size_t)t->listed);
    *stride = 1;
    if (!at) return 0;
    for (int i = (int)(at - t->letter) + 1; i < t->listed; i++) *stride *= t->size[i];
    return t->size[at - t->letter];
}

static void count(const Exec *e, const Step *s, TraceRouted *k, int64_t stride) {
    Arena *tmp = arena_new();
    for (int64_t r = 0; r < e->p->mesh->nranks; r++) {
        if (!exec_local(e, s->out, r)) continue;
        DimIndex rows = exec_rows(e, s->out, r, tmp);
        for (int64_t i = 0; i < rows.n; i++) {
            int64_t at = rows.range ? rows.lo + i : rows.list[i];
            k->rows[r * k->experts + at / stride % k->experts]++;
        }
    }
    arena_free(tmp);
}

void routed_step(Trace *t, const Exec *e, const Step *s) {
    if (s->out < 0) return;
    const GTensor *g = &e->p->graph->t[e->p->val[s->out].tensor];
    int64_t stride, experts = graph_is_list(g) ? experts_of(g, &stride) : 0;
    if (!experts || experts > ROUTED_MOST / e->p->mesh->nranks) return;
    for (int i = t->n_routed - 1; i >= 0; i--)
        if (t->routed[i].step == s->id) return; /* of an earlier instance */
    TraceRouted *k = ARENA_PUSH(t->arena, t->routed, t->n_routed, t->cap_routed);
    *k = (TraceRouted){.step = s->id, .value = graph_name(g), .experts = experts};
    k->n_rows = e->p->mesh->nranks * experts;
    k->rows = ARENA_ARRAY(t->arena, double, k->n_rows);
    count(e, s, k, stride);
}
