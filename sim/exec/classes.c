/* Ranks by their local shapes, without looking at ranks one by one: what a coordinate holds of a dim depends on the length
 * that the outer cuts left and on whether its piece is full, short or empty, so an axis of any size has few parts. Refuses to
 * know values: it sees sizes and layouts. */
#include "exec/classes.h"
#include <stdlib.h>
#include <string.h>

static bool has_axis(const AxisList *l, int axis) {
    for (int q = 0; q < l->n; q++)
        if (l->a[q] == axis) return true;
    return false;
}
void classes_uneven(const Mesh *m, const GTensor *t, const Layout *l, AxisList *out) {
    for (int d = 0; d <= t->nd; d++) {
        int64_t N = 1;
        bool rows_differ = false; /* LIST cuts rows: letters that are cut unevenly leave ranks different numbers of them */
        if (d < t->nd) N = t->size[d];
        else
            for (int k = 0; k < (t->nstored ? t->stored[0] : 0); k++) {
                N *= layout_dim_size(m, l, k, t->size[k], 0);
                for (int i = 0; i < l->n[k]; i++) rows_differ |= has_axis(out, l->e[k][i].axis);
            }
        for (int i = 0; i < l->n[d]; i++) {
            int64_t n = m->axis[l->e[d][i].axis].size;
            bool even = l->e[d][i].how == CUT_ZIGZAG ? N % (2 * n) == 0 : N % n == 0;
            if (!even || rows_differ) /* everything from here inwards depends on the coordinate */
                for (int k = 0; k < l->n[d]; k++)
                    if (!has_axis(out, l->e[d][k].axis)) out->a[out->n++] = l->e[d][k].axis;
            N = (N + n - 1) / n;
        }
    }
}

/* ---- the lengths that a dim can have ---- */
enum { MAX_LENGTHS = 64 };
typedef struct {
    int n; /* -1: too many to be listed */
    int64_t v[MAX_LENGTHS];
} Lengths;
static void add_length(Lengths *x, int64_t v) {
    for (int i = 0; i < x->n; i++)
        if (x->v[i] == v) return;
    if (x->n >= MAX_LENGTHS) x->n = -1;
    if (x->n >= 0) x->v[x->n++] = v;
}
/* Lengths after the first `entries` cuts of dim d, of any of the lengths in `from`. */
static Lengths lengths_after(const Mesh *m, const Layout *l, int d, int entries, Lengths from) {
    for (int i = 0; i < entries; i++) {
        const Entry *e = &l->e[d][i];
        Lengths next = {0};
        if (e->ghost) next.n = -1; /* pieces of several lengths are held together: not told apart here */
        for (int k = 0; k < from.n; k++)
            for (int64_t c = 0; c < m->axis[e->axis].size && next.n >= 0; c++) add_length(&next, layout_piece(m, e, from.v[k], c));
        if (from.n < 0) next.n = -1;
        from = next;
    }
    return from;
}
/* Lengths that cut number `entries` of dim d can find. */
static Lengths lengths_before(const Mesh *m, const GTensor *t, const Layout *l, int d, int entries) {
    if (d < t->nd) return lengths_after(m, l, d, entries, (Lengths){1, {t->size[d]}});
    Lengths all = {1, {1}}; /* LIST cuts the product of the letters of stored dim 0 */
    for (int k = 0; k < t->stored[0]; k++) {
        Lengths one = lengths_after(m, l, k, l->n[k], (Lengths){1, {t->size[k]}}), next = {0};
        if (one.n < 0) next.n = -1;
        for (int i = 0; i < all.n; i++)
            for (int j = 0; j < one.n && next.n >= 0; j++) add_length(&next, all.v[i] * one.v[j]);
        if (all.n < 0) next.n = -1;
        all = next;
    }
    return lengths_after(m, l, d, entries, all);
}

/* ---- parts ---- */
/* Numbers the coordinates of place k by their signatures; `same` compares a coordinate with the first of a part. */
static void number(Arena *arena, AxisParts *p, int k, int64_t size, bool (*same)(const void *arg, int64_t a, int64_t b), const void *arg) {
    int cap = 0;
    p->of[k] = ARENA_ARRAY(arena, int, size);
    p->n[k] = 0;
    p->first[k] = NULL;
    for (int64_t c = 0; c < size; c++) {
        int i = p->n[k] - 1; /* neighbours are mostly alike */
        while (i >= 0 && !same(arg, p->first[k][i], c)) i--;
        if (i < 0) {
            i = p->n[k];
            *ARENA_PUSH(arena, p->first[k], p->n[k], cap) = c;
        }
        p->of[k][c] = i;
    }
}
typedef struct {
    const Mesh *m;
    const Entry *e;
    const Lengths *in;
} Pieces;
static bool same_pieces(const void *arg, int64_t a, int64_t b) {
    const Pieces *x = arg;
    if (x->in->n < 0) return a == b;
    for (int i = 0; i < x->in->n; i++)
        if (layout_piece(x->m, x->e, x->in->v[i], a) != layout_piece(x->m, x->e, x->in->v[i], b)) return false;
    return true;
}
AxisParts classes_of_value(Arena *arena, const Mesh *m, const GTensor *t, const Layout *l) {
    AxisParts p = {0};
    classes_uneven(m, t, l, &p.axes);
    for (int k = 0; k < p.axes.n; k++) {
        int axis = p.axes.a[k], d = 0, i = 0;
        bool found = false;
        for (int x = 0; x <= t->nd && !found; x++)
            for (int y = 0; y < l->n[x] && !found; y++)
                if (l->e[x][y].axis == axis) d = x, i = y, found = !l->e[x][y].ghost;
        Lengths in = lengths_before(m, t, l, d, i);
        Pieces x = {m, &l->e[d][i], &in};
        for (int y = 0; y < l->n[d]; y++)
            if (l->e[d][y].ghost) in.n = -1;
        number(arena, &p, k, m->axis[axis].size, same_pieces, &x);
    }
    return p;
}
static bool always(const void *arg, int64_t a, int64_t b) {
    (void)arg, (void)a, (void)b;
    return true;
}
AxisParts classes_even(Arena *arena, const Mesh *m, const AxisList *axes) {
    AxisParts p = {.axes = *axes};
    for (int k = 0; k < axes->n; k++) number(arena, &p, k, m->axis[axes->a[k]].size, always, NULL);
    return p;
}
static bool never(const void *arg, int64_t a, int64_t b) {
    (void)arg, (void)a, (void)b;
    return false;
}
AxisParts classes_apart(Arena *arena, const Mesh *m, const AxisList *axes) {
    AxisParts p = {.axes = *axes};
    for (int k = 0; k < axes->n; k++) number(arena, &p, k, m->axis[axes->a[k]].size, never, NULL);
    return p;
}
typedef struct {
    const int *a, *b;
} Both;
static bool same_both(const void *arg, int64_t a, int64_t b) {
    const Both *x = arg;
    return x->a[a] == x->a[b] && x->b[a] == x->b[b];
}
void classes_refine(Arena *arena, const Mesh *m, AxisParts *p, const AxisParts *q) {
    for (int j = 0; j < q->axes.n; j++)
        for (int k = 0; k < p->axes.n; k++) {
            if (p->axes.a[k] != q->axes.a[j] || q->n[j] == 1) continue;
            Both x = {p->of[k], q->of[j]};
            AxisParts next = *p;
            number(arena, &next, k, m->axis[p->axes.a[k]].size, same_both, &x);
            if (next.n[k] > p->n[k]) *p = next;
        }
}
int64_t classes_count(const AxisParts *p) {
    int64_t n = 1;
    for (int k = 0; k < p->axes.n; k++) n *= p->n[k];
    return n;
}
int64_t classes_rank(const Mesh *m, const AxisParts *p, int64_t combination) {
    int64_t rank = 0;
    for (int k = p->axes.n - 1; k >= 0; k--) {
        rank += p->first[k][combination % p->n[k]] * m->axis[p->axes.a[k]].stride;
        combination /= p->n[k];
    }
    return rank;
}

/* ---- sets of ranks ---- */
typedef struct {
    AxisParts p;
    const bool *in;
    RankSet set;
} Known;
struct RankSets {
    Arena *arena;
    const Mesh *m;
    int n, cap;
    Known *known;
};
RankSets *classes_sets(Arena *arena, const Mesh *m) {
    RankSets *s = ARENA_NEW(arena, RankSets);
    *s = (RankSets){.arena = arena, .m = m};
    return s;
}
static bool same_set(const Mesh *m, const Known *x, const AxisParts *p, const bool *in) {
    if (memcmp(&x->p.axes, &p->axes, sizeof p->axes) || memcmp(x->p.n, p->n, sizeof p->n)) return false;
    if (memcmp(x->in, in, (size_t)classes_count(p) * sizeof *in)) return false;
    for (int k = 0; k < p->axes.n; k++)
        if (memcmp(x->p.of[k], p->of[k], (size_t)m->axis[p->axes.a[k]].size * sizeof(int))) return false;
    return true;
}
static RankSet make_set(const RankSets *s, const AxisParts *p, const bool *in) {
    const Mesh *m = s->m;
    int64_t *list = base_big(base_mul((size_t)m->nranks, sizeof *list)), n = 0;
    for (int64_t q = 0; q < m->nranks; q++) {
        int64_t i = 0;
        for (int k = 0; k < p->axes.n; k++) i = i * p->n[k] + p->of[k][mesh_coord(m, q, p->axes.a[k])];
        if (in[i]) list[n++] = q;
    }
    RankSet set = rankset_from(s->arena, list, n);
    free(list);
    return set;
}
RankSet classes_ranks(RankSets *s, const AxisParts *p, const bool *in) {
    if (!p->axes.n) return rankset_range(s->arena, 0, s->m->nranks, 1);
    for (int i = 0; i < s->n; i++)
        if (same_set(s->m, &s->known[i], p, in)) return s->known[i].set;
    Known *x = ARENA_PUSH(s->arena, s->known, s->n, s->cap);
    *x = (Known){*p, arena_memdup(s->arena, in, (size_t)classes_count(p) * sizeof *in), make_set(s, p, in)};
    return x->set;
}
