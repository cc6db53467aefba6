/* Where the hops of a ring stand: each below all work with the block before, and above that with
 * the block that it brings; of hops that do the same one stands for all. A hop is a collective that
 * is sent on while a kernel computes; what is done with which block is read off the order of the
 * steps. */
#include "render/graph/block_place.h"
#include "base/text.h"
#include "trace/collectives.h"

bool block_is_hop(const TraceCollective *c) {
    const CollWord *w = c ? coll_word(c->op) : NULL;
    return w && w->ahead;
}

/* A strip with the place in it of each node of the graph (-1: none), and with how many hops lie on
 * the way to each of its own, itself one of them. */
typedef struct {
    const BlockGraph *g;
    const BlockStrip *s;
    int *at, *hops, most;
} Ring;

static const BlockNode *node(const Ring *r, int k) { return &r->g->node[r->s->node[k]]; }
static bool is_hop(const Ring *r, int k, int number) {
    return r->hops[k] == number && block_is_hop(node(r, k)->coll);
}

static Ring ring_of(const BlockGraph *g, const BlockStrip *s) {
    Ring r = {g, s, ARENA_ARRAY(g->arena, int, g->n + 1), ARENA_ARRAY(g->arena, int, s->n + 1), 0};
    for (int i = 0; i < g->n; i++) r.at[i] = -1;
    for (int k = 0; k < s->n; k++) r.at[s->node[k]] = k;
    for (int k = 0; k < s->n; k++) {
        const BlockNode *x = node(&r, k);
        for (int j = 0; j < x->n_in; j++) {
            const int q = r.at[x->in[j]];
            if (q >= 0 && q < k && r.hops[q] > r.hops[k]) r.hops[k] = r.hops[q];
        }
        r.hops[k] += block_is_hop(x->coll);
        if (r.hops[k] > r.most) r.most = r.hops[k];
    }
    return r;
}

/* feeds[k]: do the hops of this number read, at once or through others, what node k makes? */
static bool *feeding(const Ring *r, int number) {
    bool *feeds = ARENA_ARRAY(r->g->arena, bool, r->s->n + 1);
    for (int k = r->s->n - 1; k >= 0; k--) {
        const BlockNode *x = node(r, k);
        for (int j = 0; (feeds[k] || is_hop(r, k, number)) && j < x->n_in; j++)
            if (r->at[x->in[j]] >= 0) feeds[r->at[x->in[j]]] = true;
    }
    return feeds;
}

static void add_above(BlockHops *h, const Ring *r, int above, int below) {
    BlockAbove pair = {r->s->node[above], r->s->node[below]};
    *ARENA_PUSH(r->g->arena, h->pair, h->n, h->cap) = pair;
}

/* What stands above and below the hops of this number, the first of which is step `first`. */
static void add_hops(BlockHops *h, const Ring *r, int number, int first) {
    const bool *feeds = feeding(r, number);
    for (int k = 0; k < r->s->n; k++)
        for (int m = 0; is_hop(r, k, number) && m < r->s->n; m++) {
            if (node(r, m)->kind == NODE_INPUT || is_hop(r, m, number)) continue;
            if (node(r, m)->step < first) add_above(h, r, m, k);
            else if (!feeds[m]) add_above(h, r, k, m);
        }
}

BlockHops block_hops(const BlockGraph *g, const BlockStrip *s) {
    BlockHops h = {0};
    const Ring r = ring_of(g, s);
    for (int number = 1, before = -1; number <= r.most; number++) {
        int first = -1, last = -1;
        for (int k = 0; k < s->n; k++) {
            if (!is_hop(&r, k, number)) continue;
            if (first < 0 || node(&r, k)->step < first) first = node(&r, k)->step;
            if (node(&r, k)->step > last) last = node(&r, k)->step;
        }
        if (first <= before) return (BlockHops){0}; /* in no order that says anything */
        before = last;
        add_hops(&h, &r, number, first);
    }
    return h;
}

/* ---- hops that do the same ---- */

/* Places in the strip of what is done with one block, in the order of the steps; of the last also
 * what follows it. */
typedef struct {
    int n, *at;
} Turn;

static Turn turn_of(const Ring *r, int number) {
    Turn t = {0, ARENA_ARRAY(r->g->arena, int, r->s->n + 1)};
    for (int k = 0; k < r->s->n; k++)
        if (r->hops[k] == number && node(r, k)->kind != NODE_INPUT) t.at[t.n++] = k;
    return t;
}
static bool same_step(const Ring *r, int k, int m) {
    const BlockNode *a = node(r, k), *b = node(r, m);
    if (a->kind != b->kind || a->n_op != b->n_op || !block_same_shape(r->g, a->out, b->out))
        return false;
    if (a->coll)
        return text_same(a->coll->op, b->coll->op) && a->coll->bytes_sent == b->coll->bytes_sent;
    return a->kind != NODE_OP || text_same(a->op[0].c->op, b->op[0].c->op);
}
/* Is the turn that of the first hop over again? */
static bool repeats(const Ring *r, const Turn *first, const Turn *t, bool last) {
    if (t->n < first->n || (!last && t->n > first->n)) return false;
    for (int i = 0; i < first->n; i++)
        if (!same_step(r, first->at[i], t->at[i])) return false;
    return true;
}
/* What reads node `from` reads node `to`. */
static void read_instead(BlockGraph *g, int from, int to) {
    for (int i = 0; i < g->n; i++)
        for (int j = 0; j < g->node[i].n_in; j++)
            if (g->node[i].in[j] == from) g->node[i].in[j] = to;
}

bool block_fold_hops(BlockGraph *g, int strip) {
    BlockStrip *s = &g->strip[strip];
    const Ring r = ring_of(g, s);
    if (r.most < 3 || g->pass != PHASE_FORWARD || g->wrong_step >= 0 || (g->wrong && g->wrong->n))
        return false;
    const Turn first = turn_of(&r, 1);
    for (int h = 2; h <= r.most; h++) {
        const Turn t = turn_of(&r, h);
        if (!repeats(&r, &first, &t, h == r.most)) return false;
    }
    bool *gone = ARENA_ARRAY(g->arena, bool, s->n + 1);
    for (int h = 2; h <= r.most; h++) {
        const Turn t = turn_of(&r, h);
        for (int i = 0; i < first.n; i++) {
            gone[t.at[i]] = true;
            if (h == r.most) read_instead(g, s->node[t.at[i]], s->node[first.at[i]]);
        }
    }
    for (int i = 0; i < first.n; i++)
        if (is_hop(&r, first.at[i], 1)) g->node[s->node[first.at[i]]].hops = r.most;
    int n = 0;
    for (int k = 0; k < s->n; k++)
        if (!gone[k]) s->node[n++] = s->node[k];
    s->n = n;
    return true;
}
