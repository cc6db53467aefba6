/* The common refinement of all rank sets of a trace's records. See trace_parts.h. */
#include "trace/trace_parts.h"
#include "trace/rankgrid.h"
#include "trace/ranksets.h"
#include <string.h>

enum { MANY_RANKS = 1 << 24 }; /* a file may say any number; and their runs may be cut in any way */

static void add_set(RankSets *s, const RankSet *x) {
    if (x->n) ranksets_number(s, x);
}
static RankSets all_sets(const Trace *t, Arena *tmp) {
    RankSets s = ranksets_new(tmp);
    for (int i = 0; i < t->n_classes; i++) add_set(&s, &t->classes[i]);
    for (int i = 0; i < t->n_computes; i++) add_set(&s, &t->computes[i].ranks);
    for (int i = 0; i < t->n_collectives; i++)
        for (int k = 0; k < t->collectives[i].n_local; k++)
            add_set(&s, &t->collectives[i].local[k].ranks);
    return s;
}

/* Cells in parts. */
typedef struct {
    const RankGrid *grid;
    int64_t cells;
    int32_t *of;     /* part of each cell */
    int64_t *size;   /* cells of each part */
    int n, had;      /* parts; and before the set that cuts them */
    int64_t *inside; /* of the set, by part */
    int32_t *to;     /* the part that what is inside becomes */
} Parts;
static void count_inside(void *arg, int64_t cell) {
    Parts *p = arg;
    p->inside[p->of[cell]]++;
}
static void renumber(void *arg, int64_t cell) {
    Parts *p = arg;
    if (p->of[cell] < p->had) p->of[cell] = p->to[p->of[cell]];
}
/* Cuts every part into what is in the set and what is not. */
static void split(Parts *p, const RankSet *s) {
    p->had = p->n;
    memset(p->inside, 0, (size_t)p->n * sizeof *p->inside);
    grid_visit(p->grid, s, count_inside, p);
    for (int k = 0; k < p->had; k++)
        p->to[k] = p->inside[k] > 0 && p->inside[k] < p->size[k] ? p->n++ : k;
    if (p->n == p->had) return;
    grid_visit(p->grid, s, renumber, p);
    memset(p->size, 0, (size_t)p->n * sizeof *p->size);
    for (int64_t c = 0; c < p->cells; c++) p->size[p->of[c]]++;
}
static int list_parts(const Parts *p, Arena *tmp, Arena *arena, RankSet **out) {
    int64_t *list = ARENA_ARRAY(tmp, int64_t, p->cells), *at = ARENA_ARRAY(tmp, int64_t, p->n);
    int64_t sum = 0;
    int n = 0;
    *out = ARENA_ARRAY(arena, RankSet, p->n);
    for (int k = 0; k < p->n; k++) {
        at[k] = sum;
        sum += p->size[k];
    }
    for (int64_t c = 0; c < p->cells; c++) list[at[p->of[c]]++] = c;
    for (int64_t c = 0; c < p->cells; c++) { /* in the order of their first ranks */
        int k = p->of[c];
        const int64_t *first = list + at[k] - p->size[k];
        if (*first == c) (*out)[n++] = grid_set(p->grid, arena, first, p->size[k]);
    }
    return n;
}

int trace_parts(const Trace *t, Arena *arena, RankSet **out) {
    Arena *tmp = arena_new();
    RankSets s = all_sets(t, tmp);
    RankBox mesh = trace_mesh_box(t);
    int n = 1;
    if (!s.n || t->ranks > MANY_RANKS) {
        bool classes = t->n_classes > 1;
        n = classes ? t->n_classes : 1;
        *out = ARENA_ARRAY(arena, RankSet, n);
        if (!classes) **out = rankset_range(arena, 0, t->ranks, 1);
        for (int i = 0; i < n && classes; i++) (*out)[i] = t->classes[i];
    } else {
        Parts p = {.grid = grid_new(tmp, &mesh, t->ranks, s.set, s.n), .n = 1};
        p.cells = grid_cells(p.grid);
        p.of = ARENA_ARRAY(tmp, int32_t, p.cells);
        p.size = ARENA_ARRAY(tmp, int64_t, p.cells); /* no more parts than cells */
        p.inside = ARENA_ARRAY(tmp, int64_t, p.cells);
        p.to = ARENA_ARRAY(tmp, int32_t, p.cells);
        p.size[0] = p.cells;
        for (int i = 0; i < s.n; i++) split(&p, s.set[i]);
        n = list_parts(&p, tmp, arena, out);
    }
    arena_free(tmp);
    return n;
}
