/* Strips that are too long for one page of fixed height, as several chains. Refuses to know what a
 * page is: it is told into how many. */
#include "render/graph/block_divide.h"
#include "render/graph/block_place.h"
#include "render/graph/block_read.h"
#include "render/graph/grads.h"
#include <string.h>

static bool is_box(const BlockGraph *g, const BlockStrip *s, int k) {
    return g->node[s->node[k]].kind != NODE_INPUT && s->node[k] != s->to;
}
int block_boxes(const BlockGraph *g, int strip) {
    const BlockStrip *s = &g->strip[strip];
    int n = 0;
    for (int k = 0; k < s->n; k++) n += is_box(g, s, k);
    return n;
}

static bool reads(const BlockNode *q, int i) {
    for (int j = 0; j < q->n_in; j++)
        if (q->in[j] == i) return true;
    return false;
}
int block_passing(const BlockGraph *g, int strip, int boxes) {
    const BlockStrip *s = &g->strip[strip];
    int n = 0, before = 0;
    for (int k = -1; k < s->n; k++) {
        const int i = k < 0 ? s->from : s->node[k];
        const bool box = k >= 0 && is_box(g, s, k);
        if (i < 0 || (box && before++ >= boxes)) continue;
        bool passes = false;
        for (int m = 0, at = 0; m < s->n; m++)
            if (!is_box(g, s, m) || at++ >= boxes) passes |= reads(&g->node[s->node[m]], i);
        n += passes;
    }
    return n;
}

/* Boxes [lo, hi) as a chain: what it reads is read anew; the last one gets the add of the stream.
 */
static BlockStrip piece(BlockGraph *g, const BlockStrip *s, int lo, int hi, int boxes) {
    BlockStrip p = {.from = -1,
                    .to = -1,
                    .part = s->part,
                    .whole = s->whole ? s->whole : s->title,
                    .last = -1,
                    .node = ARENA_ARRAY(g->arena, int, 2 * g->n + 8)};
    for (int k = 0, at = 0; k < s->n; k++) {
        if (!is_box(g, s, k) || at++ < lo || at > hi) continue;
        p.node[p.n++] = p.last = s->node[k];
    }
    for (int k = 0; k < p.n; k++)
        if (p.node[k] == s->last) p.last = s->last;
    if (hi == boxes && s->to >= 0) p.node[p.n++] = p.last = s->to;
    return p;
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

/* What a piece makes for another page and does not end in says what it is. */
static void name_open_ends(BlockGraph *g, const BlockStrip *s) {
    for (int k = 0; k < s->n; k++) {
        BlockNode *x = &g->node[s->node[k]];
        bool read = s->node[k] == s->last || x->kind == NODE_INPUT;
        for (int m = 0; m < s->n; m++) read |= reads(&g->node[s->node[m]], s->node[k]);
        const bool leaves =
            x->kind == NODE_OP && x->op[0].n_leave && x->op[0].leave[0].made == x->op[0].c;
        if (!read && !leaves && !x->role) x->role = block_value(g, x->name);
    }
}

BlockGraph *block_divide(const BlockGraph *of, int strip, int boxes) {
    const BlockStrip s = of->strip[strip];
    const int all = block_boxes(of, strip);
    BlockGraph *g = arena_memdup(of->arena, of, sizeof *of);
    if (boxes < 1 || boxes >= all || g->n_strips == BLOCK_MAX_STRIPS) return NULL;
    g->node = arena_memdup(g->arena, of->node, (size_t)of->n * sizeof *of->node);
    g->cap = g->n;
    memmove(&g->strip[strip + 2], &g->strip[strip + 1],
            (size_t)(g->n_strips - strip - 1) * sizeof *g->strip);
    g->n_strips++;
    g->strip[strip] = piece(g, &s, 0, boxes, all);
    g->strip[strip + 1] = piece(g, &s, boxes, all, all);
    number_pieces(g);
    block_renumber(g);
    for (int k = 0; k < 2; k++) block_close_strip(g, strip + k);
    for (int k = 0; k < 2; k++) block_place_again(g, strip + k);
    for (int k = 0; k < 2; k++) name_open_ends(g, &g->strip[strip + k]);
    return g;
}
