/* Lists of choices, kept and taken over. See routes.h. */
#include "exec/routes.h"
#include "exec/call.h"
#include "ops/op.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One list of a training step: ids over the whole batch, ascending when all parts are there. */
typedef struct {
    int tensor;
    int64_t iteration, parts; /* how many micro-batches are in it */
    int64_t n;
    int64_t *id;
} Route;
struct Routes {
    Arena *arena;
    int64_t parts;
    int n, cap;
    Route *route;
};

Routes *routes_new(Arena *arena, int64_t parts) {
    Routes *r = ARENA_NEW(arena, Routes);
    *r = (Routes){.arena = arena, .parts = parts};
    return r;
}
static bool chooses(const Program *p, const Step *s) {
    return s->kind == ST_OP && !s->recompute && p->graph->node[s->node].op->ties;
}
static Route *find(Routes *r, int tensor, int64_t iteration) {
    for (int i = r->n - 1; i >= 0; i--) /* the newest is asked for most */
        if (r->route[i].tensor == tensor && r->route[i].iteration == iteration) return &r->route[i];
    return NULL;
}
static int by_id(const void *p, const void *q) {
    const int64_t a = *(const int64_t *)p, b = *(const int64_t *)q;
    return (a > b) - (a < b);
}
int64_t routes_row(const GTensor *t, int64_t id, int64_t part, int64_t parts) {
    int64_t at = 0, stride = 1;
    for (int d = t->listed - 1; d >= 0; d--) {
        bool batch = t->role[d] == DIM_BATCH;
        int64_t i = id % t->size[d] + (batch ? part * t->size[d] : 0);
        at += i * stride;
        stride *= t->size[d] * (batch ? parts : 1);
        id /= t->size[d];
    }
    return at;
}
/* Appends what the ranks hold of a list, of one micro-batch. */
static void append(Routes *r, Route *x, const Exec *e, int val, int64_t part) {
    const GTensor *t = &e->p->graph->t[e->p->val[val].tensor];
    const Store *store = exec_store(e, val);
    Arena *tmp = arena_new();
    DimIndex *rows = ARENA_ARRAY(tmp, DimIndex, store->n + 1);
    int64_t more = 0;
    for (int k = 0; k < store->n; k++) {
        rows[k] = exec_rows(e, val, store->l[k].rank, tmp);
        more += rows[k].n;
    }
    int64_t *id = ARENA_ARRAY(r->arena, int64_t, x->n + more + 1);
    if (x->n) memcpy(id, x->id, (size_t)x->n * sizeof *id);
    x->id = id;
    for (int k = 0; k < store->n; k++)
        for (int64_t i = 0; i < rows[k].n; i++)
            id[x->n++] =
                routes_row(t, rows[k].range ? rows[k].lo + i : rows[k].list[i], part, r->parts);
    arena_free(tmp);
}
void routes_keep(Routes *r, const Exec *e, const Step *s, WalkInstance at) {
    if (e->dev->sizes_only || !chooses(e->p, s)) return;
    int tensor = e->p->val[s->out].tensor;
    Route *x = find(r, tensor, at.iteration);
    if (!x) {
        x = ARENA_PUSH(r->arena, r->route, r->n, r->cap);
        *x = (Route){.tensor = tensor, .iteration = at.iteration};
    }
    append(r, x, e, s->out, at.part);
    if (++x->parts < r->parts) return;
    qsort(x->id, (size_t)x->n, sizeof *x->id, by_id);
    int64_t n = 0; /* ranks may hold the same tokens */
    for (int64_t i = 0; i < x->n; i++)
        if (!n || x->id[n - 1] != x->id[i]) x->id[n++] = x->id[i];
    x->n = n;
}

/* ---- taken over ---- */
static double largest(const OpCall *c) {
    const Tensor *z = &c->in[c->rule->nin - 1];
    double top = 0;
    for (int64_t i = 0; i < tensor_count(z); i++) top = fmax(top, fabs(el_get(z, c->dtype, i)));
    return top;
}
static void record(const RoutesRule *rule, const GTensor *t, const Route *x, const ListTie *tie,
                   double bound) {
    if (!rule->t) return;
    TraceTie *k = ARENA_PUSH(rule->t->arena, rule->t->ties, rule->t->n_ties, rule->t->cap_ties);
    *k = (TraceTie){
        .value = graph_name(t), .iteration = x->iteration, .gap = tie->gap, .bound = bound};
    int64_t taken = tie->taken, left = tie->left;
    k->n_taken = k->n_left = t->listed;
    for (int d = t->listed - 1; d >= 0; d--) {
        k->taken[d] = taken % t->size[d], taken /= t->size[d];
        k->left[d] = left % t->size[d], left /= t->size[d];
    }
}
void routes_replay(Routes *r, Exec *one, const Step *s, int64_t iteration, const RoutesRule *rule) {
    if (one->dev->sizes_only || !chooses(one->p, s)) return;
    const GTensor *t = &one->p->graph->t[one->p->val[s->out].tensor];
    Route *x = find(r, t->id, iteration);
    Tensor list = exec_local(one, s->out, 0)->t;
    int64_t n = list.n[0], *own = list.p;
    if (!x || x->n != n || x->parts != r->parts || !memcmp(own, x->id, (size_t)n * sizeof *own))
        return;
    Arena *tmp = arena_new();
    OpCall c;
    bool made = call_make(one, s, 0, &c, tmp);
    c.out = list;
    ListTie *tie = ARENA_ARRAY(tmp, ListTie, n + 1);
    const GNode *node = &one->p->graph->node[s->node];
    int64_t ties = made ? c.op->ties(&c, x->id, n, tie) : 0;
    double bound = 2 * rule->share * (node->layer + 1) * (made ? largest(&c) : 0);
    const int64_t *was = arena_memdup(tmp, own, (size_t)n * sizeof *own);
    for (int64_t i = 0; i < ties; i++) {
        const int64_t *left = bsearch(&tie[i].left, was, (size_t)n, sizeof *was, by_id);
        if (!left || !(rule->always || tie[i].gap <= bound)) continue;
        own[left - was] = tie[i].taken;
        record(rule, t, x, &tie[i], bound);
    }
    qsort(own, (size_t)n, sizeof *own, by_id);
    memcpy(x->id, own, (size_t)n * sizeof *own);
    arena_free(tmp);
}
