/* Where the hops of a ring stand: each below all work with the block before, and above that with
 * the block that it brings; of hops that do the same one stands for all. A hop is a collective that
 * is sent on while a kernel computes; what is done with which block is read off the order of the
 * steps. */
#include "render/graph/block_place.h"
#include "base/text.h"
#include "trace/collectives.h"
#include <string.h>

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

/* Do both make a gradient of one op from the same value? Then one box makes both. */
static bool one_box(const BlockNode *x, const BlockNode *y) {
    return x != y && x->kind == NODE_OP && y->kind == NODE_OP && x->n_in == 1 && y->n_in == 1 &&
           x->in[0] == y->in[0] && !x->op[0].n_param && !y->op[0].n_param &&
           text_same(x->op[0].c->op, y->op[0].c->op) &&
           text_same(x->op[0].c->module, y->op[0].c->module);
}
/* Does a box make what node m makes that has made another value before step `first`? */
static bool made_with(const Ring *r, int m, int first) {
    for (int k = 0; k < r->s->n; k++)
        if (node(r, k)->step < first && one_box(node(r, k), node(r, m))) return true;
    return false;
}
/* What stands above and below the hops of this number, the first of which is step `first`. */
static void add_hops(BlockHops *h, const Ring *r, int number, int first) {
    const bool *feeds = feeding(r, number);
    for (int k = 0; k < r->s->n; k++)
        for (int m = 0; is_hop(r, k, number) && m < r->s->n; m++) {
            if (node(r, m)->kind == NODE_INPUT || is_hop(r, m, number)) continue;
            if (node(r, m)->step < first) add_above(h, r, m, k);
            else if (!feeds[m] && !made_with(r, m, first)) add_above(h, r, k, m);
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

/* Forgets nodes of the strip, and says of the first hops that they stand for all. */
static void leave_first(BlockGraph *g, const Ring *r, BlockStrip *s, const bool *gone) {
    int n = 0;
    for (int k = 0; k < s->n; k++)
        if (is_hop(r, k, 1)) g->node[s->node[k]].hops = r->most;
    for (int k = 0; k < s->n; k++)
        if (!gone[k]) s->node[n++] = s->node[k];
    s->n = n;
}
static bool fold_forward(BlockGraph *g, const Ring *r, BlockStrip *s) {
    const Turn first = turn_of(r, 1);
    bool *gone = ARENA_ARRAY(g->arena, bool, s->n + 1);
    for (int h = 2; h <= r->most; h++) {
        const Turn t = turn_of(r, h);
        if (!repeats(r, &first, &t, h == r->most)) return false;
    }
    for (int h = 2; h <= r->most; h++) {
        const Turn t = turn_of(r, h);
        for (int i = 0; i < first.n; i++) {
            gone[t.at[i]] = true;
            if (h == r->most) read_instead(g, s->node[t.at[i]], s->node[first.at[i]]);
        }
    }
    leave_first(g, r, s, gone);
    return true;
}

/* Are both steps the backward of one op, which makes several gradients of what it has read? */
static bool of_one_op(const BlockNode *a, const BlockNode *b) {
    if (a->kind != NODE_OP || b->kind != NODE_OP) return false;
    const TraceCompute *x = a->op[0].c, *y = b->op[0].c;
    bool same = text_same(x->op, y->op) && text_same(x->module, y->module) &&
                x->n_inputs == y->n_inputs && x->input_step && y->input_step;
    for (int i = 0; same && i < x->n_inputs; i++)
        same = text_same(x->inputs[i], y->inputs[i]) && x->input_step[i] == y->input_step[i];
    return same;
}
/* Backward, what the hops of this number bring home is made of what came by the hops before and of
 * steps that only these read: they and the hops, and what else the same ops make that those before
 * do not read. */
static Turn way_home(const Ring *r, int number) {
    const bool *feeds = feeding(r, number), *before = feeding(r, number - 1);
    bool *own = ARENA_ARRAY(r->g->arena, bool, r->s->n + 1);
    Turn t = {0, ARENA_ARRAY(r->g->arena, int, r->s->n + 1)};
    for (int k = 0; k < r->s->n; k++)
        own[k] = (feeds[k] || is_hop(r, k, number)) && !before[k] && !is_hop(r, k, number - 1);
    for (int k = 0; k < r->s->n; k++) {
        bool is = own[k];
        for (int m = 0; m < r->s->n && !is; m++)
            is = own[m] && k != m && !before[k] && of_one_op(node(r, k), node(r, m));
        if (is) t.at[t.n++] = k;
    }
    return t;
}
/* The first hop of the value that hop k takes home; -1: none. */
static int first_hop(const Ring *r, int k) {
    for (int m = 0; m < r->s->n; m++)
        if (is_hop(r, m, 1) && !strcmp(node(r, m)->name, node(r, k)->name) && same_step(r, m, k))
            return m;
    return -1;
}
/* What the last of the ops that are passed from block to block, as the merge of their results,
 * makes for what is left of the ring stays: a step that is read there, and of a sum no term. */
static void keep_read(const Ring *r, bool *gone) {
    const size_t size = (size_t)r->s->n * sizeof *gone;
    const bool *was = arena_memdup(r->g->arena, gone, size);
    for (int m = 0; m < r->s->n; m++) {
        const BlockNode *x = node(r, m);
        const int k = x->n_in == 1 ? r->at[x->in[0]] : -1;
        if (k >= 0 && !was[m] && !block_is_hop(node(r, k)->coll)) gone[k] = false;
    }
}
/* The first node on the way to node i that is not gone: it is read instead of all behind it. */
static int origin(const BlockGraph *g, const Ring *r, const bool *gone, int i) {
    while (r->at[i] >= 0 && gone[r->at[i]] && g->node[i].n_in) i = g->node[i].in[0];
    return i;
}
/* What is left of the ring reads of the first hops what it read of the last, and of no step that is
 * gone. */
static void read_first(BlockGraph *g, const Ring *r, const bool *gone) {
    for (int k = 0; k < r->s->n; k++) {
        BlockNode *x = &g->node[r->s->node[k]];
        int n = 0;
        if (!gone[k] && x->kind == NODE_OP && x->n_in == 1 && !block_is_hop(g->node[x->in[0]].coll))
            x->in[0] = origin(g, r, gone, x->in[0]);
        for (int j = 0; j < x->n_in && !gone[k]; j++) {
            const int q = r->at[x->in[j]];
            if (q < 0 || !gone[q]) x->in[n++] = x->in[j];
            else if (is_hop(r, q, r->most)) x->in[n++] = r->s->node[first_hop(r, q)];
        }
        if (!gone[k]) x->n_in = n;
    }
}
/* What one op makes stands together: a step that has come to read what another reads, behind it. */
static void stand_together(BlockGraph *g, BlockStrip *s) {
    for (int k = 1; k < s->n; k++) {
        const int i = s->node[k];
        int m = 0;
        while (m < k && !one_box(&g->node[s->node[m]], &g->node[i])) m++;
        while (m + 1 < k && one_box(&g->node[s->node[m + 1]], &g->node[i])) m++;
        if (m + 1 >= k) continue;
        memmove(&s->node[m + 2], &s->node[m + 1], (size_t)(k - m - 1) * sizeof *s->node);
        s->node[m + 1] = i;
    }
}
static bool fold_backward(BlockGraph *g, const Ring *r, BlockStrip *s) {
    const Turn second = way_home(r, 2);
    bool *gone = ARENA_ARRAY(g->arena, bool, s->n + 1);
    for (int h = 2; h <= r->most; h++) {
        const Turn t = way_home(r, h);
        if (t.n != second.n) return false;
        for (int i = 0; i < t.n; i++) {
            const int k = t.at[i];
            if (!same_step(r, second.at[i], k) || s->node[k] == s->last ||
                (is_hop(r, k, h) && first_hop(r, k) < 0))
                return false;
            gone[k] = true;
        }
    }
    keep_read(r, gone);
    read_first(g, r, gone);
    leave_first(g, r, s, gone);
    stand_together(g, s);
    return true;
}

bool block_fold_hops(BlockGraph *g, int strip) {
    BlockStrip *s = &g->strip[strip];
    const Ring r = ring_of(g, s);
    if (r.most < 3 || g->wrong_step >= 0 || (g->wrong && g->wrong->n)) return false;
    return g->pass == PHASE_FORWARD ? fold_forward(g, &r, s) : fold_backward(g, &r, s);
}
