/* What a run says of rows. See trace_rows.h. */
#include "trace/trace_rows.h"
#include <math.h>
#include <string.h>

const TraceExchange *trace_exchange(const Trace *t, int step) {
    for (int i = 0; i < t->n_exchanges; i++) {
        const TraceExchange *x = &t->exchanges[i];
        if (x->step != step) continue;
        bool whole = x->n_in == t->ranks && x->n_out == t->ranks && x->n_sent == t->ranks;
        return whole && x->size > 0 ? x : NULL;
    }
    return NULL;
}
int64_t trace_sent(const Trace *t, const TraceCollective *c, int64_t rank) {
    bool once = c->row_bytes > 0 && c->times < 2 && !c->skipped; /* no planted mistake repeats it */
    const TraceExchange *x = once ? trace_exchange(t, c->step) : NULL;
    return x ? llround(x->sent[rank] * (double)c->row_bytes) : collective_on(c, rank).bytes_sent;
}
const TraceRouted *trace_routed(const Trace *t, int step) {
    for (int i = 0; i < t->n_routed; i++) {
        const TraceRouted *k = &t->routed[i];
        if (k->step != step) continue;
        bool whole = k->experts > 0 && k->n_rows / k->experts == t->ranks;
        return whole && k->n_rows % k->experts == 0 ? k : NULL;
    }
    return NULL;
}
double routed_on(const TraceRouted *k, int64_t rank) {
    double n = 0;
    for (int64_t e = 0; e < k->experts; e++) n += k->rows[rank * k->experts + e];
    return n;
}
/* Tokens of a rank's rows lie behind those of the ranks before it. */
static int64_t first_token(const TraceRouted *k, int64_t rank) {
    double n = 0;
    for (int64_t i = 0; i < rank * k->experts && i < k->n_rows; i++) n += k->rows[i];
    return (int64_t)n;
}
bool routed_named(const TraceRouted *k) {
    if (!k || k->experts <= 0 || k->n_rows % k->experts) return false;
    for (int64_t i = 0; i < k->n_rows; i++)
        if (!(k->rows[i] >= 0 && k->rows[i] <= (double)k->n_tokens)) return false;
    return k->n_tokens > 0 && k->n_tokens == first_token(k, k->n_rows / k->experts);
}
RoutedWalk routed_walk(const TraceRouted *k, int64_t rank) {
    return (RoutedWalk){k, rank * k->experts - 1, 0, first_token(k, rank),
                        first_token(k, rank + 1)};
}
bool routed_next(RoutedWalk *w, RoutedRow *row) {
    if (w->at >= w->end) return false;
    while (!w->left) w->left = (int64_t)w->k->rows[++w->expert];
    w->left--;
    *row = (RoutedRow){.expert = w->expert % w->k->experts,
                       .token = (int64_t)w->k->tokens[w->at],
                       .weight = w->at < w->k->n_weights ? w->k->weights[w->at] : NAN};
    w->at++;
    return true;
}
TraceSpread trace_spread(const double *x, int64_t n) {
    TraceSpread s = {0};
    for (int64_t i = 0; i < n; i++) {
        s.sum += x[i];
        if (!i || x[i] < s.least) s.least = x[i];
        if (!i || x[i] > s.peak) s.peak = x[i], s.peak_at = i;
    }
    s.mean = n > 0 ? s.sum / (double)n : 0;
    return s;
}
TracePair exchange_pair(const TraceExchange *x, const TraceCollective *c, int64_t group,
                        int64_t from, int64_t to) {
    int64_t size = groups_size(&c->groups), a = groups_member(&c->groups, group, from),
            b = groups_member(&c->groups, group, to);
    bool known = size == x->size && a * size + to < x->n_to && b * size + from < x->n_from;
    if (!known || a < 0 || b < 0) return (TracePair){-1, -1};
    return (TracePair){x->to[a * size + to], x->from[b * size + from]};
}
int64_t exchange_round(int64_t n, int64_t from, int64_t to) {
    const int64_t m = n - 1; /* the rounds; of a round-robin the member that stands still */
    if (from == to) return 0;
    if ((n & m) == 0) return from ^ to;
    if (n % 2) return (to - from + n) % n;
    return (from == m ? 2 * to : to == m ? 2 * from : from + to) % m + 1;
}

/* ---- what became of a layer's rows ---- */
/* How many ranks have the same block of a value: those that differ along axes that do not cut it.
 */
static int64_t copies(const Trace *t, const TraceShape *s) {
    int64_t n = 1;
    for (int i = 0; i < s->n_places; i++) {
        bool cut = place_cut(s->place[i].place, NULL) != PLACE_WHOLE;
        for (int x = 0; !cut && x < t->n_axes; x++)
            if (!strcmp(t->axes[x].name, s->place[i].axis)) n *= t->axes[x].size;
    }
    return n;
}
static TraceDispatch *dispatch_of(Arena *arena, TraceDispatch **all, int *n, int *cap, int layer) {
    for (int i = *n - 1; i >= 0; i--)
        if ((*all)[i].layer == layer) return &(*all)[i];
    TraceDispatch *d = ARENA_PUSH(arena, *all, *n, *cap);
    *d = (TraceDispatch){.layer = layer};
    return d;
}
/* A list that an op made: the choice of the router first, then what a capacity leaves. */
static void made(const Trace *t, Arena *arena, TraceDispatch *d, const TraceValue *v,
                 const TraceRouted *k) {
    double same = (double)copies(t, &v->shape);
    d->experts = k->experts;
    d->by_expert = ARENA_ARRAY(arena, double, k->experts + 1);
    for (int64_t i = 0; i < k->n_rows; i++) d->by_expert[i % k->experts] += k->rows[i] / same;
    d->at_experts = trace_spread(d->by_expert, k->experts);
    d->kept = d->at_experts.sum;
    if (!d->value) d->asked = d->kept, d->wanted = d->by_expert;
    d->value = v->shape.name;
}
TraceDispatch *trace_dispatches(const Trace *t, Arena *arena, int *n) {
    TraceDispatch *all = NULL;
    int cap = 0;
    *n = 0;
    for (int i = 0; t->n_routed && i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        bool list = v->most > 0 && v->list == v->step && v->pass == PHASE_FORWARD;
        const TraceRouted *k = list ? trace_routed(t, v->step) : NULL;
        if (!k) continue;
        TraceDispatch *d = dispatch_of(arena, &all, n, &cap, v->layer);
        if (v->kind != VALUE_MOVED) made(t, arena, d, v, k);
        double *rows = ARENA_ARRAY(arena, double, t->ranks + 1);
        for (int64_t r = 0; r < t->ranks; r++) rows[r] = routed_on(k, r);
        if (v->shape.name && d->value && !strcmp(v->shape.name, d->value))
            d->at_ranks = trace_spread(rows, t->ranks);
    }
    return all;
}
