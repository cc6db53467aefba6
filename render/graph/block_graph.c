/* What can be asked of a block's structure once it is read: who stands for whom, which values lie
 * alike, what a step changed. */
#include "render/graph/block_graph.h"
#include "base/text.h"
#include "render/graph/grads.h"
#include <string.h>

bool block_is_open(const BlockStrip *s) { return s->from >= 0 && s->to < 0; }

int block_real(const BlockGraph *g, int i) {
    while (g->node[i].alias != i) i = g->node[i].alias;
    return i;
}

bool block_same_shape(const BlockGraph *g, const TraceValue *a, const TraceValue *b) {
    if (!a || !b || !text_same(a->shape.pending, b->shape.pending)) return false;
    const TraceLocal *x = words_find_local(&a->shape, g->rank),
                     *y = words_find_local(&b->shape, g->rank);
    if (!x || !y || x->bytes != y->bytes) return false;
    int64_t nx = 1, ny = 1;
    for (int i = 0; i < a->shape.nd; i++) nx *= x->shape[i];
    for (int i = 0; i < b->shape.nd; i++) ny *= y->shape[i];
    return nx == ny;
}

static int64_t bytes_here(const BlockGraph *g, const TraceValue *v) {
    const TraceLocal *l = v ? words_find_local(&v->shape, g->rank) : NULL;
    return l ? l->bytes : 0;
}
int64_t block_bytes(const BlockGraph *g, const BlockNode *n) {
    return bytes_here(g, n->out) + (n->twin >= 0 ? bytes_here(g, g->node[n->twin].out) : 0) +
           (n->with ? bytes_here(g, trace_value(g->t, n->with->value, n->with->step)) : 0) +
           (n->with_move ? bytes_here(g, trace_value(g->t, n->with_move->value, n->with_move->step))
                         : 0);
}

int64_t block_pending_bytes(const BlockGraph *g, const BlockNode *n) {
    const TraceValue *of[] = {n->out, n->twin >= 0 ? g->node[n->twin].out : NULL};
    int64_t all = 0;
    bool max;
    for (int i = 0; i < 2; i++)
        if (of[i] && words_pending(&of[i]->shape, &max)) all += bytes_here(g, of[i]);
    return all;
}

int block_twin_dim(const BlockGraph *g, const BlockNode *n) {
    const TraceValue *y = n->twin >= 0 ? g->node[n->twin].out : NULL;
    int dim = -1;
    if (!n->out || !y || n->out->shape.nd != y->shape.nd) return -1;
    for (int i = 0; i < y->shape.nd; i++) {
        if (text_same(n->out->shape.dim_symbol[i], y->shape.dim_symbol[i])) continue;
        if (dim >= 0) return -1;
        dim = i;
    }
    return dim;
}

bool block_on_rank(const BlockGraph *g, const TraceCompute *c) {
    bool here = c->ranks.n == 0 || rankset_has(&c->ranks, g->rank);
    return here && c->iteration <= 0 && c->microbatch <= 0 && !c->recompute;
}

bool block_draws(const BlockNode *n, const TraceCollective *c) {
    bool is = n->coll == c || n->with == c;
    for (int i = 0; i < n->n_op; i++) {
        is |= n->op[i].fetch == c;
        for (int k = 0; k < n->op[i].n_leave; k++)
            for (int j = 0; j < n->op[i].leave[k].n; j++) is |= n->op[i].leave[k].coll[j] == c;
    }
    return is;
}

static bool leaves_by(const BlockOp *op, int step) {
    bool is = false;
    for (int k = 0; k < op->n_leave; k++) {
        is |= op->leave[k].made->step == step;
        for (int j = 0; j < op->leave[k].n; j++) is |= op->leave[k].coll[j]->step == step;
    }
    return is;
}

static bool node_shows(const BlockNode *n, int step) {
    if (n->with && n->with->step == step) return true;
    if (n->with_move && n->with_move->step == step) return true;
    if (n->coll || n->move) return n->step == step;
    bool is = false;
    for (int i = 0; i < n->n_op; i++)
        is |= n->op[i].c->step == step || n->op[i].claim == step ||
              (n->op[i].fetch && n->op[i].fetch->step == step) || leaves_by(&n->op[i], step);
    return is;
}

bool block_shows(const BlockGraph *g, int first, int n, int step) {
    for (int i = 0; i < g->n; i++) {
        int s = g->node[i].strip;
        if (s >= first && s < first + n && node_shows(&g->node[i], step)) return true;
    }
    return false;
}

typedef struct {
    const BlockGraph *g;
    int first, n;
} Range;
static bool in_range(const void *of, int step) {
    const Range *r = of;
    return block_shows(r->g, r->first, r->n, step);
}

const WrongList *block_wrong(const BlockGraph *g, int first, int n) {
    Range r = {g, first, n};
    return wrong_find(g->arena, g->t, in_range, &r);
}

/* The longest common beginning and end taken away: "wk" and "wv" differ in "k" and "v". */
const char *block_differs(Arena *a, const char *one, const char *other) {
    size_t n = strlen(one), m = strlen(other), lo = 0, hi = 0;
    while (lo < n && lo < m && one[lo] == other[lo]) lo++;
    while (hi < n - lo && hi < m - lo && one[n - 1 - hi] == other[m - 1 - hi]) hi++;
    return n - lo - hi > 0 && n - lo - hi <= 8 ? arena_strndup(a, one + lo, n - lo - hi) : one;
}

unsigned block_changed(const TraceValue *from, const TraceValue *to) {
    if (!from || !to) return 0;
    const TraceShape *x = &from->shape, *y = &to->shape;
    unsigned mask = 0;
    int lo = 0, hi = 0;
    while (lo < x->nd && lo < y->nd && text_same(x->dim_symbol[lo], y->dim_symbol[lo])) lo++;
    if (x->nd != y->nd) {
        while (hi < x->nd - lo && hi < y->nd - lo &&
               text_same(x->dim_symbol[x->nd - 1 - hi], y->dim_symbol[y->nd - 1 - hi]))
            hi++;
        for (int i = lo; i < y->nd - hi; i++) mask |= 1u << i;
        return mask;
    }
    for (int i = lo; i < y->nd; i++)
        if (!text_same(x->dim_symbol[i], y->dim_symbol[i])) mask |= 1u << i;
    return mask;
}

/* Does the dim of a weight stand in that of an output: as itself, or among the letters of its rows,
 * each of which meets one expert's matrix? */
static bool stands_in(Arena *a, const char *dim, const char *out) {
    const char *letter = words_base(a, dim), *at = out ? out : "";
    const size_t n = strlen(letter);
    if (!strcmp(letter, words_base(a, out))) return true;
    if (strncmp(at, "rows(", 5)) return false;
    for (at += 5; *at; at += strcspn(at, ",)"), at += strspn(at, ",) "))
        if (!strncmp(at, letter, n) && strchr(",)/", at[n])) return true;
    return false;
}

unsigned block_contracted(Arena *a, const TraceParam *p, const TraceValue *out) {
    const TraceShape *w = &p->compute;
    unsigned mask = 0;
    if (w->nd < 2 || !out) return 0;
    for (int i = 0; i < w->nd; i++) {
        bool kept = false;
        for (int k = 0; k < out->shape.nd; k++)
            kept |= stands_in(a, w->dim_symbol[i], out->shape.dim_symbol[k]);
        if (!kept) mask |= 1u << i;
    }
    /* all or none: symbols do not tell (D to D); weights are stored [out, in] */
    return mask && mask != (1u << w->nd) - 1 ? mask : 1u << (w->nd - 1);
}
