/* Strips that are too long for one page of fixed height, as several chains. Refuses to know what a
 * page is: it is told into how many. */
#include "render/graph/block_divide.h"
#include "render/graph/block_place.h"
#include "render/graph/block_read.h"
#include <string.h>

/* How many values pass from levels < at to the levels from there on. */
static int passing(const BlockGraph *g, const BlockStrip *s, int at) {
    int n = 0;
    for (int k = -1; k < s->n; k++) {
        int i = k < 0 ? s->from : s->node[k];
        bool read = false;
        if (i < 0 || (k >= 0 && g->node[i].level >= at)) continue;
        for (int m = 0; m < s->n; m++) {
            const BlockNode *q = &g->node[s->node[m]];
            for (int j = 0; j < q->n_in; j++) read |= q->level >= at && q->in[j] == i;
        }
        n += read;
    }
    return n;
}

/* The first level of part k of n: near its share, where the fewest values pass. */
static int cut_level(const BlockGraph *g, const BlockStrip *s, int k, int n) {
    int share = s->levels * k / n, reach = s->levels / (2 * n), best = share, score = 1 << 20;
    for (int at = share - reach; at <= share + reach; at++) {
        int away = at < share ? share - at : at - share;
        int cost = 2 * passing(g, s, at) + 3 * away;
        if (at > 0 && at < s->levels && cost < score) best = at, score = cost;
    }
    return best;
}

/* Nodes of levels [lo, hi) as a chain; the last one gets the add of the stream. */
static BlockStrip piece(BlockGraph *g, const BlockStrip *s, int lo, int hi) {
    BlockStrip p = {.from = -1,
                    .to = -1,
                    .part = s->part,
                    .last = -1,
                    .node = ARENA_ARRAY(g->arena, int, 2 * g->n + 8)};
    for (int k = 0; k < s->n; k++) {
        const BlockNode *x = &g->node[s->node[k]];
        bool here = x->level >= lo && x->level < hi;
        if (x->kind == NODE_INPUT) here = x->level + 1 >= lo && x->level + 1 < hi; /* its reader */
        if (!here) continue;
        p.node[p.n++] = s->node[k];
        if (x->kind != NODE_INPUT && (p.last < 0 || x->level >= g->node[p.last].level))
            p.last = s->node[k];
    }
    if (hi < s->levels) return p;
    p.last = s->last;
    if (s->to >= 0) p.node[p.n++] = p.last = s->to;
    return p;
}

/* Boxes [lo, hi) of a strip of one level, counted from the left, as a chain; the last one gets the
 * add of the stream. */
static BlockStrip side_piece(BlockGraph *g, const BlockStrip *s, int lo, int hi, int boxes) {
    BlockStrip p = {.from = -1,
                    .to = -1,
                    .part = s->part,
                    .last = -1,
                    .node = ARENA_ARRAY(g->arena, int, 2 * g->n + 8)};
    for (int k = 0; k < s->n; k++) {
        const BlockNode *x = &g->node[s->node[k]];
        int left = 0;                                               /* boxes left of it */
        if (x->kind == NODE_INPUT || s->node[k] == s->to) continue; /* what is read is read anew */
        for (int i = 0; i < s->n; i++) {
            const BlockNode *y = &g->node[s->node[i]];
            if (y->kind == NODE_INPUT || s->node[i] == s->to) continue;
            left += y->col < x->col || (y->col == x->col && i < k);
        }
        if (left >= lo && left < hi) p.node[p.n++] = p.last = s->node[k];
    }
    for (int k = 0; k < p.n; k++)
        if (p.node[k] == s->last) p.last = s->last;
    if (hi == boxes && s->to >= 0) p.node[p.n++] = p.last = s->to;
    return p;
}
static int count_boxes(const BlockGraph *g, const BlockStrip *s) {
    int n = 0;
    for (int k = 0; k < s->n; k++)
        n += g->node[s->node[k]].kind != NODE_INPUT && s->node[k] != s->to;
    return n;
}

/* "Attention, 2 of 5", of all pieces of a strip. */
static void number_pieces(BlockGraph *g) {
    for (int i = 0, n; i < g->n_strips; i += n) {
        const char *whole = g->strip[i].whole;
        for (n = 1; whole && i + n < g->n_strips && g->strip[i + n].whole == whole;) n++;
        for (int k = 0; k < n && whole; k++)
            g->strip[i + k].title = arena_printf(g->arena, "%s, %d of %d", whole, k + 1, n);
    }
}

BlockGraph *block_divide(const BlockGraph *of, int strip, int parts) {
    const BlockStrip s = of->strip[strip];
    BlockGraph *g = arena_memdup(of->arena, of, sizeof *of);
    int cut[BLOCK_MAX_STRIPS + 1] = {0};
    const int boxes = s.levels == 1 ? count_boxes(of, &s) : 0;
    if (parts < 2 || (s.levels < parts && boxes < parts) ||
        g->n_strips + parts - 1 > BLOCK_MAX_STRIPS)
        return NULL;
    g->node = arena_memdup(g->arena, of->node, (size_t)of->n * sizeof *of->node);
    g->cap = g->n;
    for (int k = 1; k < parts && !boxes; k++) {
        cut[k] = cut_level(g, &s, k, parts);
        if (cut[k] <= cut[k - 1]) return NULL;
    }
    cut[parts] = s.levels;
    memmove(&g->strip[strip + parts], &g->strip[strip + 1],
            (size_t)(g->n_strips - strip - 1) * sizeof *g->strip);
    g->n_strips += parts - 1;
    for (int k = 0; k < parts; k++) {
        g->strip[strip + k] =
            boxes ? side_piece(g, &s, boxes * k / parts, boxes * (k + 1) / parts, boxes)
                  : piece(g, &s, cut[k], cut[k + 1]);
        g->strip[strip + k].whole = s.whole ? s.whole : s.title;
    }
    number_pieces(g);
    block_renumber(g);
    for (int k = 0; k < parts; k++) block_close_strip(g, strip + k);
    for (int k = 0; k < parts; k++) block_place_again(g, strip + k);
    return g;
}
