/* Single tokens of a routing. See tokens.h. */
#include "render/routing/tokens.h"
#include "trace/collectives.h"
#include "trace/trace_rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- putting lists side by side ---- */
typedef struct {
    const Routing *r;
    Tokens *t;
    int cap;
} Build;
static TokenRow *find(const Tokens *t, int64_t n, int64_t token, int64_t expert) {
    for (int64_t i = 0; i < n; i++)
        if (t->row[i].token == token && t->row[i].expert == expert) return &t->row[i];
    return NULL;
}
static void add(Build *b, TokenRow row) {
    int n = (int)b->t->n;
    *ARENA_PUSH(b->r->a, b->t->row, n, b->cap) = row;
    b->t->n = n;
}
/* What the members send. */
static void add_kept(Build *b, const TraceRouted *k) {
    RoutedRow row;
    for (int64_t i = 0; i < b->r->n; i++)
        for (RoutedWalk w = routed_walk(k, b->r->rank[i]); routed_next(&w, &row);)
            add(b, (TokenRow){row.token, row.expert, i, -1, true, row.weight});
}
static int64_t owner(const Tokens *t, int64_t n, int64_t token, int64_t otherwise) {
    for (int64_t i = 0; i < n; i++)
        if (t->row[i].token == token) return t->row[i].from;
    return otherwise;
}
/* What they asked for besides, before a capacity had its say. */
static void add_dropped(Build *b, const TraceRouted *k) {
    RoutedRow row;
    int64_t sent = b->t->n;
    for (int64_t i = 0; i < b->r->n; i++)
        for (RoutedWalk w = routed_walk(k, b->r->rank[i]); routed_next(&w, &row);) {
            if (find(b->t, b->t->n, row.token, row.expert)) continue;
            int64_t from = owner(b->t, sent, row.token, i);
            add(b, (TokenRow){row.token, row.expert, from, -1, false, row.weight});
        }
}
static void find_arrived(Build *b, const TraceRouted *k) {
    RoutedRow row;
    for (int64_t i = 0; i < b->r->n; i++)
        for (RoutedWalk w = routed_walk(k, b->r->rank[i]); routed_next(&w, &row);) {
            TokenRow *sent = find(b->t, b->t->n, row.token, row.expert);
            if (sent && sent->kept && sent->to < 0) sent->to = i;
        }
}
static int in_order(const void *x, const void *y) {
    const TokenRow *a = x, *b = y;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    if (a->expert != b->expert) return a->expert < b->expert ? -1 : 1;
    return (a->token > b->token) - (a->token < b->token);
}
static int by_number(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}
static bool find_own(Build *b) {
    Tokens *t = b->t;
    t->own = ARENA_ARRAY(b->r->a, int64_t *, b->r->n + 1);
    t->n_own = ARENA_ARRAY(b->r->a, int64_t, b->r->n + 1);
    for (int64_t i = 0; i < b->r->n; i++) {
        int64_t *own = t->own[i] = ARENA_ARRAY(b->r->a, int64_t, t->n + 1), n = 0;
        for (int64_t k = 0; k < t->n; k++)
            if (t->row[k].from == i) own[n++] = t->row[k].token;
        qsort(own, (size_t)n, sizeof *own, by_number);
        for (int64_t k = 0; k < n; k++)
            if (!k || own[k] != own[k - 1]) own[t->n_own[i]++] = own[k];
        if (t->n_own[i] > TOKENS_EACH) return false;
    }
    return true;
}

/* ---- what else the records say ---- */
static bool of_layer(const Routing *r, const char *value) {
    const char *dot = strrchr(r->coll->value, '.');
    size_t head = dot ? (size_t)(dot - r->coll->value) + 1 : 0;
    return value && !strncmp(value, r->coll->value, head);
}
/* The list that was chosen from scores, before anything was left out or moved. */
static const TraceRouted *chosen(const Routing *r) {
    const Trace *t = r->c->t;
    for (int i = 0; i < t->n_routed; i++)
        if (of_layer(r, t->routed[i].value) && t->routed[i].step < r->coll->step)
            return routed_named(&t->routed[i]) && t->routed[i].experts == r->experts ? &t->routed[i]
                                                                                     : NULL;
    return NULL;
}
/* The exchange that brings results back: the last one of the layer's forward pass; NULL: none comes
 * behind that of the rows. */
static const TraceCollective *last_exchange(const Routing *r) {
    const Trace *t = r->c->t;
    for (int i = t->n_collectives - 1; i >= 0; i--) {
        const TraceCollective *c = &t->collectives[i];
        if (coll_is_pairs(c->op) && c->pass == PHASE_FORWARD && of_layer(r, c->value))
            return c->step > r->coll->step ? c : NULL;
    }
    return NULL;
}
/* Collectives between the exchange of the rows and the way back, on a group of their own. */
static const char *inside(const Routing *r) {
    const Trace *t = r->c->t;
    const TraceCollective *back = last_exchange(r);
    Str s = str_new(r->a);
    for (int i = 0; back && i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        bool between = c->step > r->coll->step && c->step < back->step && c->pass == PHASE_FORWARD;
        if (!between || !c->row_bytes || coll_is_pairs(c->op)) continue;
        str_addf(&s, "%s%s over %s of %s", s.n ? ", " : "", coll_word(c->op)->name,
                 words_axis_list(r->a, t, c->axis), words_leaf(c->value));
    }
    return s.n ? s.s : NULL;
}

const Tokens *routing_tokens(const Routing *r) {
    const Trace *t = r->c->t;
    const TraceRouted *to = trace_routed(t, r->coll->step), *from = NULL, *all = chosen(r);
    for (int i = 0; i < t->n_routed; i++) {
        const TraceRouted *k = &t->routed[i];
        if (k->value && !strcmp(k->value, r->coll->value) && k->step < r->coll->step) from = k;
    }
    if (r->n > TOKENS_RANKS || !routed_named(from) || !routed_named(to)) return NULL;
    Build b = {.r = r, .t = ARENA_NEW(r->a, Tokens)};
    add_kept(&b, from);
    if (all) add_dropped(&b, all);
    find_arrived(&b, to);
    qsort(b.t->row, (size_t)b.t->n, sizeof *b.t->row, in_order);
    if (!b.t->n || !find_own(&b)) return NULL;
    b.t->room = to->room;
    b.t->inside = inside(r);
    double length = words_find_dim(t, "S");
    b.t->length = length > 0 ? (int64_t)length : 0;
    if (all && all->n_scores) b.t->scores = all->scores, b.t->n_scores = all->n_scores;
    for (int64_t i = 0; i < b.t->n; i++) {
        int64_t asked = tokens_sum(b.t, b.t->row[i].token).asked;
        if (asked > b.t->top) b.t->top = asked;
    }
    return b.t;
}

TokenSum tokens_sum(const Tokens *k, int64_t token) {
    TokenSum s = {0};
    for (int64_t i = 0; i < k->n; i++) {
        if (k->row[i].token != token) continue;
        s.asked++;
        if (k->row[i].kept) s.kept++, s.sum += k->row[i].weight;
    }
    return s;
}
const char *tokens_name(const Routing *r, const Tokens *k, int64_t token) {
    if (!k->length) return arena_printf(r->a, "token %lld", (long long)token);
    return arena_printf(r->a, "token %lld: sequence %lld, position %lld", (long long)token,
                        (long long)(token / k->length), (long long)(token % k->length));
}

const char *tokens_stamp(const Routing *r, const Tokens *k, bool *right) {
    const TraceCollective *c = last_exchange(r);
    const TraceExchange *x = c ? trace_exchange(r->c->t, c->step) : NULL;
    int64_t kept = 0, missing = 0, odd = 0;
    for (int64_t i = 0; i < k->n; i++)
        kept += k->row[i].kept, missing += k->row[i].kept && k->row[i].to < 0;
    for (int64_t i = 0; x && i < r->n; i++)
        for (int64_t j = 0; j < r->n; j++) {
            int64_t g = words_group_of(&c->groups, r->rank[i]);
            TracePair p = exchange_pair(x, c, g < 0 ? 0 : g, i, j);
            odd += p.received >= 0 && p.received != r->sent[j * r->n + i];
        }
    *right = !missing && !odd;
    if (missing)
        return arena_printf(r->a, "%lld of %s that %s sent did not arrive", (long long)missing,
                            routing_rows(r->a, (double)kept), kept == 1 ? "was" : "were");
    if (odd)
        return arena_printf(r->a, "%lld pair%s of ranks get%s another number of rows back",
                            (long long)odd, odd == 1 ? "" : "s", odd == 1 ? "s" : "");
    return arena_printf(r->a, "%s%s that %s sent arrived%s", kept == 1 ? "the " : "all ",
                        routing_rows(r->a, (double)kept), kept == 1 ? "was" : "were",
                        x ? ", and as many came back from each rank" : "");
}
