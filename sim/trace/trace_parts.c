/* The common refinement of all rank sets of a trace's records. See trace_parts.h. */
#include "trace/trace_parts.h"
#include <stdlib.h>
#include <string.h>

enum { MANY_RANKS = 1 << 24 }; /* more are not looked at one by one */

typedef struct {
    const RankSet **set; /* different ones, met so far */
    int n, cap;
} Sets;
static void add_set(Sets *s, Arena *tmp, const RankSet *x) {
    if (x->n == 0) return;
    for (int i = 0; i < s->n; i++)
        if (rankset_same(s->set[i], x)) return;
    *ARENA_PUSH(tmp, s->set, s->n, s->cap) = x;
}
static Sets all_sets(const Trace *t, Arena *tmp) {
    Sets s = {0};
    for (int i = 0; i < t->n_classes; i++) add_set(&s, tmp, &t->classes[i]);
    for (int i = 0; i < t->n_computes; i++) add_set(&s, tmp, &t->computes[i].ranks);
    for (int i = 0; i < t->n_collectives; i++)
        for (int k = 0; k < t->collectives[i].n_local; k++) add_set(&s, tmp, &t->collectives[i].local[k].ranks);
    return s;
}

typedef struct {
    int64_t ranks;
    int32_t *of;   /* part of each rank */
    int64_t *size; /* of each part */
    int n;
} Parts;
/* Visits the ranks of a set: counts them by part, or gives those of a cut part its new number. */
static void visit(Parts *p, const RankSet *s, int had, int64_t *inside, const int32_t *to) {
    int64_t rank;
    for (RankWalk w = {0}; rankset_next(s, &w, &rank);) {
        if (rank < 0 || rank >= p->ranks || p->of[rank] >= had) continue;
        if (to) p->of[rank] = to[p->of[rank]];
        else inside[p->of[rank]]++;
    }
}
static void count_sizes(Parts *p) {
    p->size = base_realloc(p->size, (size_t)p->n * sizeof *p->size);
    memset(p->size, 0, (size_t)p->n * sizeof *p->size);
    for (int64_t r = 0; r < p->ranks; r++) p->size[p->of[r]]++;
}
/* Cuts every part into what is in the set and what is not. */
static void split(Parts *p, const RankSet *s) {
    int64_t *inside = base_big((size_t)p->n * sizeof *inside);
    int32_t *to = base_big((size_t)p->n * sizeof *to);
    int had = p->n;
    memset(inside, 0, (size_t)had * sizeof *inside);
    visit(p, s, had, inside, NULL);
    for (int k = 0; k < had; k++) to[k] = inside[k] > 0 && inside[k] < p->size[k] ? p->n++ : k;
    if (p->n > had) {
        visit(p, s, had, NULL, to);
        count_sizes(p);
    }
    free(inside);
    free(to);
}
static int list_parts(const Parts *p, const RankBox *mesh, Arena *arena, RankSet **out) {
    int64_t *list = base_big((size_t)p->ranks * sizeof *list), *at = base_big((size_t)(p->n + 1) * sizeof *at), sum = 0;
    int n = 0;
    RankSet *set = ARENA_ARRAY(arena, RankSet, p->n);
    for (int k = 0; k < p->n; k++) {
        at[k] = sum;
        sum += p->size[k];
    }
    for (int64_t r = 0; r < p->ranks; r++) list[at[p->of[r]]++] = r;
    for (int64_t r = 0; r < p->ranks; r++) { /* in the order of their first ranks */
        int k = p->of[r];
        int64_t *first = list + at[k] - p->size[k];
        if (*first == r) set[n++] = rankset_on_mesh(arena, mesh, first, p->size[k]);
    }
    free(list);
    free(at);
    *out = set;
    return n;
}

int trace_parts(const Trace *t, Arena *arena, RankSet **out) {
    Arena *tmp = arena_new();
    Sets s = all_sets(t, tmp);
    int n = 1;
    if (s.n < 2 || t->ranks > MANY_RANKS) {
        n = t->n_classes > 1 ? t->n_classes : 1;
        *out = ARENA_ARRAY(arena, RankSet, n);
        for (int i = 0; i < n; i++) (*out)[i] = t->n_classes > 1 ? t->classes[i] : rankset_range(arena, 0, t->ranks, 1);
    } else {
        Parts p = {.ranks = t->ranks, .n = 1};
        p.of = base_big((size_t)t->ranks * sizeof *p.of);
        p.size = base_big(sizeof *p.size);
        memset(p.of, 0, (size_t)t->ranks * sizeof *p.of);
        p.size[0] = t->ranks;
        for (int i = 0; i < s.n; i++) split(&p, s.set[i]);
        RankBox mesh = trace_mesh_box(t);
        n = list_parts(&p, &mesh, arena, out);
        free(p.of);
        free(p.size);
    }
    arena_free(tmp);
    return n;
}
