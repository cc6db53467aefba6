/* Boxes and cells of ranks. See rankgrid.h. */
#include "trace/rankgrid.h"
#include <stdlib.h>
#include <string.h>

/* ---- runs as boxes ---- */
typedef struct {
    Arena *arena;
    RankBox box; /* the sides outside are set */
    RankBox *out;
    int n, cap;
} Boxing;
/* The ranks first, first + stride, ... of the part of the mesh inside axis k - 1. Coordinates whose
 * ranks lie alike are one range. */
static void run_boxes(Boxing *b, int k, int64_t first, int64_t count, int64_t stride) {
    if (k == b->box.n) {
        *ARENA_PUSH(b->arena, b->out, b->n, b->cap) = b->box;
        return;
    }
    RankSide *s = &b->box.side[k];
    for (int64_t i = 0; i < count;) {
        int64_t rank = first + i * stride, at = rank / s->stride, inside = rank % s->stride;
        int64_t here = (s->stride - 1 - inside) / stride + 1, same = 1;
        if (here > count - i) here = count - i;
        if (here * stride == s->stride) same = (count - i) / here; /* the next ones begin alike */
        s->first = at;
        s->count = same;
        run_boxes(b, k + 1, inside, here, stride);
        i += here * same;
    }
}
static void add_run(Boxing *b, const RankBox *mesh, RankRun r) {
    int64_t ranks = mesh->side[0].size * mesh->side[0].stride;
    int64_t stride = r.stride > 0 ? r.stride : 1;
    if (r.first < 0 || r.first >= ranks || r.count <= 0) return;
    int64_t most = (ranks - 1 - r.first) / stride + 1;
    b->box = *mesh;
    run_boxes(b, 0, r.first, r.count < most ? r.count : most, stride);
}
RankSet rankset_as_boxes(Arena *arena, const RankBox *mesh, const RankSet *set) {
    if (!set->run && set->n) return *set;
    Boxing b = {.arena = arena};
    for (int i = 0; i < set->n; i++) add_run(&b, mesh, set->run[i]);
    return (RankSet){.n = b.n, .box = b.out};
}

/* ---- cells ---- */
struct RankGrid {
    RankBox mesh, cells; /* cells: an axis is as long as it has ranges */
    bool row;            /* the mesh is only a row of ranks */
    int n[TRACE_MAX_AXES], cap[TRACE_MAX_AXES];
    int64_t *cut[TRACE_MAX_AXES]; /* where the ranges of an axis begin */
};
static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}
static void add_cut(RankGrid *g, Arena *arena, int k, int64_t at) {
    if (at > 0 && at < g->mesh.side[k].size) *ARENA_PUSH(arena, g->cut[k], g->n[k], g->cap[k]) = at;
}
static void sort_cuts(RankGrid *g, int k) {
    int n = 0;
    qsort(g->cut[k], (size_t)g->n[k], sizeof **g->cut, by_value);
    for (int i = 0; i < g->n[k]; i++)
        if (!n || g->cut[k][n - 1] != g->cut[k][i]) g->cut[k][n++] = g->cut[k][i];
    g->n[k] = n;
}
RankGrid *grid_new(Arena *arena, const RankBox *mesh, int64_t ranks, const RankSet *const *set,
                   int n) {
    RankGrid *g = ARENA_NEW(arena, RankGrid);
    g->mesh = *mesh;
    g->row = mesh->n == 0;
    if (g->row) g->mesh = (RankBox){1, {{"rank", ranks, 1, 0, ranks}}};
    for (int k = 0; k < g->mesh.n; k++) *ARENA_PUSH(arena, g->cut[k], g->n[k], g->cap[k]) = 0;
    for (int i = 0; i < n; i++) {
        Arena *tmp = arena_new();
        RankSet boxes = rankset_as_boxes(tmp, &g->mesh, set[i]);
        for (int j = 0; j < boxes.n; j++)
            for (int k = 0; k < g->mesh.n; k++) {
                const RankSide *s = &boxes.box[j].side[k];
                add_cut(g, arena, k, s->first);
                add_cut(g, arena, k, s->first + s->count);
            }
        arena_free(tmp);
        for (int k = 0; k < g->mesh.n; k++) sort_cuts(g, k);
    }
    g->cells = g->mesh;
    int64_t stride = 1;
    for (int k = g->mesh.n - 1; k >= 0; k--) {
        g->cells.side[k] = (RankSide){g->mesh.side[k].axis, g->n[k], stride, 0, g->n[k]};
        stride *= g->n[k];
    }
    return g;
}
int64_t grid_cells(const RankGrid *g) { return g->cells.side[0].size * g->cells.side[0].stride; }
/* The range of axis k that begins at a coordinate, or the first behind it. */
static int64_t range_at(const RankGrid *g, int k, int64_t at) {
    int64_t lo = 0, hi = g->n[k];
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (g->cut[k][mid] < at) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}
void grid_visit(const RankGrid *g, const RankSet *set, void (*see)(void *arg, int64_t cell),
                void *arg) {
    Arena *tmp = arena_new();
    RankSet boxes = rankset_as_boxes(tmp, &g->mesh, set);
    for (int i = 0; i < boxes.n; i++) {
        RankBox b = g->cells;
        for (int k = 0; k < b.n; k++) {
            const RankSide *s = &boxes.box[i].side[k];
            b.side[k].first = range_at(g, k, s->first);
            b.side[k].count = range_at(g, k, s->first + s->count) - b.side[k].first;
        }
        RankSet cells = {.n = 1, .box = &b};
        int64_t cell;
        for (RankWalk w = {0}; rankset_next(&cells, &w, &cell);) see(arg, cell);
    }
    arena_free(tmp);
}
RankSet grid_set(const RankGrid *g, Arena *arena, const int64_t *cell, int64_t n) {
    Arena *tmp = arena_new();
    int n_boxes;
    RankBox *box = rankset_cut(tmp, &g->cells, cell, n, &n_boxes);
    for (int i = 0; i < n_boxes; i++)
        for (int k = 0; k < g->mesh.n; k++) {
            RankSide *s = &box[i].side[k];
            int64_t first = s->first, end = s->first + s->count;
            *s = g->mesh.side[k];
            s->first = g->cut[k][first];
            s->count = (end < g->n[k] ? g->cut[k][end] : s->size) - s->first;
        }
    RankSet set = rankset_boxes(g->row ? tmp : arena, box, n_boxes);
    if (g->row) { /* no axis that a text could name: runs, however many */
        int64_t count = rankset_count(&set), *list = ARENA_ARRAY(tmp, int64_t, count + 1), at = 0;
        for (RankWalk w = {0}; at < count && rankset_next(&set, &w, &list[at]);) at++;
        qsort(list, (size_t)count, sizeof *list, by_value);
        set = rankset_from(arena, list, count);
    }
    arena_free(tmp);
    return set;
}
