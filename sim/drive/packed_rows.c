/* The rows that a rank would hold of a packed weight that is cut as one list. */
#include "drive/packed_rows.h"
#include <stdlib.h>
#include <string.h>

/* The stored dim of several letters whose last one is cut, and by nothing else is the value. */
static int packed_dim(const GTensor *t, const Layout *l, int *letter) {
    int found = -1;
    for (int s = 0, d = 0; s < t->nstored; d += t->stored[s++]) {
        int last = d + t->stored[s] - 1;
        for (int i = d; i <= last; i++) {
            if (!l->n[i]) continue;
            if (i < last || t->stored[s] == 1 || found >= 0) return -1;
            found = s, *letter = last;
        }
    }
    return l->n[l->ndim] ? -1 : found;
}
/* Does the module that owns it hand out what is whole over all of these axes? */
static bool is_gathered(const Program *p, const GTensor *t, const AxisList *axes) {
    const GTensor *param = t->state_of ? &p->graph->t[t->state_of - 1] : t;
    int out = param->module >= 0 ? p->graph->module[param->module].output : -1;
    if (out < 0 || p->env[out] < 0) return false;
    for (int i = 0; i < axes->n; i++)
        if (layout_where(&p->val[p->env[out]].L, axes->a[i]) >= 0) return false;
    return true;
}
/* Where a rank's numbers stand: `before` times `blocks` times F times `behind` of them; its rows
 * are those from `first` on of the `all` in each block. */
typedef struct {
    int64_t before, blocks, F, behind, first, all;
} Grid;
static Grid grid_of(const ValueShape *o, const GTensor *t, int dim, int letter) {
    Grid g = {1, 1, o->size[letter], 1, 0, t->size[letter]};
    for (int d = 0; d < o->nd; d++)
        *(d > letter                    ? &g.behind
          : d > letter - t->stored[dim] ? &g.blocks
                                        : &g.before) *= d == letter ? 1 : o->size[d];
    return g;
}
/* Of what one rank holds of each block, those numbers that stand in the list's rows from lo on. */
static void take(const double *from, const Grid *g, int64_t lo, int64_t rows, double *to) {
    for (int64_t a = 0; a < g->before; a++)
        for (int64_t b = 0; b < g->blocks; b++)
            for (int64_t f = 0; f < g->F; f++) {
                int64_t row = b * g->all + g->first + f - lo;
                if (row < 0 || row >= rows) continue;
                memcpy(to + (a * rows + row) * g->behind,
                       from + ((a * g->blocks + b) * g->F + f) * g->behind,
                       (size_t)g->behind * sizeof *to);
            }
}
/* What a rank holds, in float64; malloc'ed. */
static double *numbers(const ValueSet *s, const ValueKey *k, const ValueShape *o) {
    void *x = value_read(s, k, o);
    if (!x || o->dtype == DT_F64) return x;
    int64_t n = value_count(o);
    double *wide = base_malloc(base_mul((size_t)n + 1, sizeof *wide));
    for (int64_t i = 0; i < n; i++) wide[i] = (double)((float *)x)[i];
    free(x);
    return wide;
}
bool packed_rows(const ValueSet *s, const Program *p, const ValueKey *k, int64_t n,
                 PackedRows *out) {
    if (k->rank < 0 || k->tensor < 0 || k->part) return false;
    const GTensor *t = &p->graph->t[k->tensor];
    if (t->kind != KIND_PARAM || p->first[k->tensor] < 0) return false;
    int letter = 0, dim = packed_dim(t, &p->val[p->first[k->tensor]].L, &letter);
    if (dim < 0) return false;
    AxisList axes = layout_dim_axes(&p->val[p->first[k->tensor]].L, letter);
    int64_t parts = mesh_size(p->mesh, &axes), first = 0, F = t->size[letter], blocks = 1;
    for (int d = letter - t->stored[dim] + 1; d < letter; d++) blocks *= t->size[d];
    int64_t rows = blocks * F / parts, lo = rows * mesh_index_in(p->mesh, &axes, k->rank);
    double *x = base_malloc(base_mul((size_t)n + 1, sizeof *x));
    bool all = rows * parts == blocks * F;
    for (int64_t q = 0; q < parts && all; q++) {
        ValueKey one = *k;
        ValueShape o;
        one.rank = mesh_member(p->mesh, &axes, k->rank, q);
        all = value_shape(s, &one, &o);
        Grid g = all ? grid_of(&o, t, dim, letter) : (Grid){0};
        all &= g.before * rows * g.behind == n;
        double *held = all ? numbers(s, &one, &o) : NULL;
        all = held != NULL;
        g.first = first;
        if (all) take(held, &g, lo, rows, x);
        first += g.F;
        free(held);
    }
    *out =
        (PackedRows){all ? x : NULL,
                     arena_printf(s->arena, "rows %lld to %lld of %lld as one list", (long long)lo,
                                  (long long)(lo + rows - 1), (long long)(blocks * F)),
                     is_gathered(p, t, &axes)};
    if (!all) free(x);
    return all;
}
