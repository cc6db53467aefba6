/* Rows of experts in the model of time. See rows.h. */
#include "cost/rows.h"
#include "trace/trace_rows.h"

CostRows cost_rows(const Trace *t, int n, Arena *arena) {
    CostRows c = {.t = t, .n = n, .made = ARENA_ARRAY(arena, const TraceValue *, n + 1), .most = 1};
    for (int i = 0; i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        if (v->most <= 0 || v->step < 0 || v->step >= n) continue;
        c.made[v->step] = v;
        c.any = true;
        c.run |= trace_routed(t, v->list) != NULL;
        for (int k = 0; k < v->shape.n_local; k++) {
            double expected = (double)v->shape.local[k].shape[0];
            if (expected > 0 && (double)v->most / expected > c.most)
                c.most = (double)v->most / expected;
        }
    }
    return c;
}
/* Adds a value in rows: the most that any rank of the class has. */
static void add(const CostRows *c, int step, const RankSet *ranks, RowLoad *out) {
    const TraceValue *v = step >= 0 && step < c->n ? c->made[step] : NULL;
    int64_t first = rankset_first(ranks), rank;
    for (int i = 0; v && i < v->shape.n_local; i++) {
        const TraceLocal *l = &v->shape.local[i];
        if (!rankset_has(&l->ranks, first)) continue;
        out->bytes += l->bytes;
        if ((double)l->shape[0] <= out->expected) continue;
        const TraceRouted *k = trace_routed(c->t, v->list);
        out->expected = (double)l->shape[0];
        out->rows = k ? 0 : out->expected;
        for (RankWalk w = {0}; k && rankset_next(ranks, &w, &rank);) {
            double n = rank < c->t->ranks ? routed_on(k, rank) : 0;
            out->rows = n > out->rows ? n : out->rows;
        }
    }
}
bool cost_rows_of(const CostRows *c, const TraceCompute *k, const RankSet *ranks, RowLoad *out) {
    *out = (RowLoad){0};
    if (!c->any) return false;
    add(c, k->step, ranks, out);
    for (int i = 0; k->input_step && i < k->n_inputs; i++) add(c, k->input_step[i], ranks, out);
    return out->expected > 0;
}
int64_t cost_rows_sent(const CostRows *c, const TraceCollective *k) {
    const TraceExchange *x = k->row_bytes > 0 ? trace_exchange(c->t, k->step) : NULL;
    int64_t n = groups_size(&k->groups), groups = groups_count(&k->groups);
    double most = 0;
    if (!x || x->size != n || !x->n_to) return -1;
    Arena *own = arena_new();
    for (int64_t g = 0; g < groups; g++) {
        double sum = 0, *largest = ARENA_ARRAY(own, double, n); /* of a round */
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t round = exchange_round(n, i, j);
                const double rows = round ? exchange_pair(x, k, g, i, j).sent : 0;
                largest[round] = rows > largest[round] ? rows : largest[round];
            }
        for (int64_t i = 1; i < n; i++) sum += largest[i];
        most = sum > most ? sum : most;
    }
    arena_free(own);
    return (int64_t)most * k->row_bytes;
}
const char *cost_rows_line(const CostRows *c, Arena *arena) {
    if (!c->any) return "";
    if (c->run) return "; rows of experts: the run's, by the rank that has most";
    static const char even[] = "; rows of experts: all asked for as often";
    return c->most > 1 ? arena_printf(arena, "%s, at worst %.3g times as many", even, c->most)
                       : even; /* on each rank all of them */
}
