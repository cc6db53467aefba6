/* Elements in a move. See volume.h. */
#include "exec/volume.h"
#include <math.h>
#include <string.h>

/* Largest local sizes over the ranks of the group of `rank`: what blocks are padded to. */
static void group_max(const Pieces *x, const Layout *l, int64_t rank, int64_t *out) {
    int64_t size = mesh_size(x->m, &x->act.axes);
    memset(out, 0, sizeof(int64_t) * LAYOUT_MAX_DIMS);
    for (int64_t i = 0; i < size; i++) {
        Tensor block = region_letters(x->m, x->t, l, mesh_member(x->m, &x->act.axes, rank, i));
        for (int d = 0; d < l->ndim; d++) out[d] = block.n[d] > out[d] ? block.n[d] : out[d];
        /* with chunks only, member 0 has the largest block of every dim */
        bool chunks = true;
        for (int d = 0; d < l->ndim; d++)
            for (int k = 0; k < l->n[d]; k++)
                chunks &= l->e[d][k].how == CUT_CHUNK && !l->e[d][k].ghost && !l->e[d][k].shift;
        if (chunks) break;
    }
}
static int64_t product(const int64_t *n, int nd) {
    int64_t c = 1;
    for (int d = 0; d < nd; d++) c *= n[d];
    return c;
}
/* A LIST cut divides the rows of its stored dim, by the chunk rule; whole rows are padded, as FSDP2
 * does. */
static int64_t block_max(const Pieces *x, const Layout *l, int64_t rank) {
    int64_t n[LAYOUT_MAX_DIMS];
    int first = 0, rows = x->t->nstored ? layout_list_letters(l, x->t->stored, &first) : 0;
    group_max(x, l, rank, n);
    int64_t c = product(n + first, rows);
    for (int i = 0; i < l->n[l->ndim]; i++) {
        int64_t s = x->m->axis[l->e[l->ndim][i].axis].size;
        c = (c + s - 1) / s;
    }
    return product(n, first) * c * product(n + first + rows, l->ndim - first - rows);
}
/* Elements of the largest piece between two members of an all-to-all. */
static int64_t exchanged(const Pieces *x, int64_t rank) {
    int64_t f[LAYOUT_MAX_DIMS], t[LAYOUT_MAX_DIMS], c = 1;
    group_max(x, &x->from, rank, f);
    group_max(x, &x->to, rank, t);
    for (int d = 0; d < x->from.ndim; d++) c *= f[d] < t[d] ? f[d] : t[d];
    return c;
}
bool volume_even(const Pieces *x) {
    const AxisList *a = &x->act.axes;
    for (int i = 0; i < a->n && move_sends(x->act.kind) == SENDS_PIECES; i++)
        for (int k = 0; k < a->n; k++)
            if (layout_where(&x->from, a->a[i]) == layout_where(&x->to, a->a[k])) return false;
    return true;
}
/* Every element has one owner before and one after: what does not stay leaves. */
static int64_t leaving(const Pieces *x, int64_t rank) {
    Arena *tmp = arena_new();
    Region all = pieces_from(x, &(Piece){rank, rank}, tmp);
    int64_t n = region_common(&all, &all);
    arena_free(tmp);
    return n - pieces_between(x, rank, rank);
}
static Volume of_blocks(const Pieces *x, int64_t rank) {
    int64_t n = mesh_size(x->m, &x->act.axes), f = block_max(x, &x->from, rank),
            t = block_max(x, &x->to, rank);
    Volume v = {f, t, 0};
    switch (move_sends(x->act.kind)) {
    case SENDS_BLOCK: v = (Volume){f, n * f, (n - 1) * f}; break;
    case SENDS_PART: v = (Volume){n * t, t, (n - 1) * t}; break;
    case SENDS_BOTH: /* scattered in n pieces and gathered */
        v.sent = 2 * (n - 1) * ((f + n - 1) / n);
        break;
    case SENDS_PIECES: {
        bool even = volume_even(x);
        int64_t c = even ? exchanged(x, rank) : 0;
        if (even) v = (Volume){n * c, n * c, (n - 1) * c};
        else v.sent = leaving(x, rank);
        break;
    }
    case SENDS_ONCE: {
        bool gives = layout_holds(x->m, &x->from, rank), gets = layout_holds(x->m, &x->to, rank);
        v = (Volume){gives ? f : 0, gets ? t : 0, gives ? f : 0};
        break;
    }
    case SENDS_ON: v = (Volume){t, t, t}; break; /* a place in the buffer is handed in by all */
    case SENDS_NOTHING:
    case MOVE_SENDS: break;
    }
    return v;
}
static int64_t elements(const Pieces *x, const Layout *l, int64_t rank) {
    return product(region_letters(x->m, x->t, l, rank).n, x->t->nd);
}
/* Of a buffer each rank has a range, all of one size: of one value in it some have more, which the
 * others make good. */
static Volume of_flat(const Pieces *x, int64_t rank) {
    int64_t n = mesh_size(x->m, &x->act.axes), f = elements(x, &x->from, rank),
            t = elements(x, &x->to, rank);
    Volume v = {f, t, 0};
    if (move_sends(x->act.kind) == SENDS_BLOCK) v.sent = (n - 1) * f;
    if (move_sends(x->act.kind) == SENDS_PART) v.sent = (n - 1) * t;
    if (move_sends(x->act.kind) == SENDS_BOTH) v.sent = (n - 1) * ((f + n - 1) / n) * 2;
    if (move_sends(x->act.kind) == SENDS_PIECES) v.sent = leaving(x, rank);
    return v;
}
/* An index list: of its letters those that count, how many rows for each expert. */
static Volume of_list(const Pieces *x, int64_t rank) {
    GTensor dense = *x->t;
    Pieces y = *x;
    y.t = &dense;
    dense.listed = 0;
    for (int d = 1; d < x->t->nd; d++) dense.size[d] = 1;
    return of_blocks(&y, rank);
}
/* Of the rows that a rank hands to an exchange those that leave it: the share of the combinations
 * of their letters that it has before and not after. */
static int64_t rows_leaving(const Pieces *x, int64_t rank) {
    GTensor dense = *x->t;
    Pieces y = *x;
    y.t = &dense;
    dense.listed = 0;
    int64_t n[LAYOUT_MAX_DIMS];
    layout_local(x->m, &x->from, x->t->size, rank, n);
    double all = 1, mine = (double)leaving(&y, rank);
    for (int d = 0; d < x->t->listed; d++) all *= (double)x->t->size[d];
    for (int d = x->t->listed; d < x->t->nd; d++) mine /= n[d] > 0 ? (double)n[d] : 1;
    return all > 0 ? (int64_t)ceil(mine / all * (double)x->t->rows - 1e-6) : 0;
}
/* Rows to expect. They are never padded: counts are exchanged before them, so that each rank hands
 * in and takes out its own, and blocks of different sizes travel. */
static Volume of_rows(const Pieces *x, int64_t rank) {
    int64_t shape[LAYOUT_MAX_DIMS];
    int64_t n = mesh_size(x->m, &x->act.axes), t = region_stored(x->m, x->t, &x->to, rank, shape),
            f = region_stored(x->m, x->t, &x->from, rank, shape),
            wide = shape[0] > 0 ? f / shape[0] : 0;
    Volume v = {f, t, 0};
    switch (move_sends(x->act.kind)) {
    case SENDS_PIECES: v.sent = wide * rows_leaving(x, rank); break;
    case SENDS_BLOCK: v.sent = (n - 1) * f; break;
    case SENDS_PART: v.sent = f > t ? f - t : 0; break;
    case SENDS_BOTH: v.sent = 2 * (n - 1) * wide * ((shape[0] + n - 1) / n); break;
    case SENDS_ONCE:
        v.in = v.sent = layout_holds(x->m, &x->from, rank) ? f : 0;
        v.out = layout_holds(x->m, &x->to, rank) ? t : 0;
        break;
    case SENDS_ON: v = (Volume){t, t, t}; break;
    case SENDS_NOTHING:
    case MOVE_SENDS: break;
    }
    return v;
}
Volume volume_of(const Pieces *x, int64_t rank) {
    bool flat = x->from.flat.total || x->to.flat.total;
    Volume v = flat                  ? of_flat(x, rank)
               : !x->t->listed       ? of_blocks(x, rank)
               : graph_is_list(x->t) ? of_list(x, rank)
                                     : of_rows(x, rank);
    if (!x->act.alone) v.sent *= x->act.times;
    return v;
}
