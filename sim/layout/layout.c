/* Layouts as index maps: local sizes, global indices, duals. Refuses to know what is stored: it
 * sees sizes only. */
#include "layout/layout.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

Layout layout_whole(const Mesh *m, int ndim, AxisType t) {
    assert(ndim >= 0 && ndim <= LAYOUT_MAX_DIMS);
    Layout l;
    memset(&l, 0, sizeof l);
    l.ndim = (uint8_t)ndim;
    for (int a = 0; a < m->naxes; a++) l.type[a] = (uint8_t)t;
    return l;
}

int layout_where(const Layout *l, int axis) {
    for (int d = 0; d <= l->ndim; d++)
        for (int i = 0; i < l->n[d]; i++)
            if (l->e[d][i].axis == axis && !l->e[d][i].ghost) return d;
    return -1;
}

/* Trailing ghosts hold everything: nothing is cut. Unused entries are zero so that layouts compare
 * as bytes. */
static void strip(Layout *l) {
    for (int d = 0; d <= l->ndim; d++) {
        while (l->n[d] && l->e[d][l->n[d] - 1].ghost) l->n[d]--;
        memset(&l->e[d][l->n[d]], 0, sizeof(Entry) * (size_t)(LAYOUT_MAX_ENTRIES - l->n[d]));
    }
    if (!l->n[l->ndim]) l->flat = (Flat){0}, l->list = 0;
}

void layout_cut(Layout *l, int dim, int axis, CutHow how) {
    assert(dim >= 0 && dim <= l->ndim && axis >= 0 && axis < MESH_MAX_AXES);
    assert(layout_where(l, axis) < 0 && "an axis cuts at most one dim");
    if (l->n[dim] == LAYOUT_MAX_ENTRIES)
        base_die(70, "a dim is cut by more than %d axes", LAYOUT_MAX_ENTRIES);
    l->e[dim][l->n[dim]++] = (Entry){.axis = (uint8_t)axis, .how = (uint8_t)how};
    l->type[axis] = TY_V;
}

void layout_cut_list(Layout *l, int axis, int stored) {
    assert(stored >= 0 && (!l->n[l->ndim] || (l->list == stored && !l->flat.total)));
    layout_cut(l, l->ndim, axis, CUT_CHUNK);
    l->list = (uint16_t)stored;
}
void layout_cut_flat(Layout *l, int axis, const Flat *flat) {
    assert(flat->total > 0 && flat->first >= 0);
    layout_cut(l, l->ndim, axis, CUT_CHUNK);
    l->flat = *flat;
}
int64_t layout_flat_range(const Mesh *m, const Layout *l, int64_t N, int64_t rank, int64_t *lo) {
    int64_t from = 0, n = l->flat.total;
    for (int i = 0; i < l->n[l->ndim]; i++) {
        int64_t size = m->axis[l->e[l->ndim][i].axis].size;
        assert(n % size == 0);
        n /= size;
        from += mesh_coord(m, rank, l->e[l->ndim][i].axis) * n;
    }
    int64_t a = from - l->flat.first, b = a + n;
    a = a < 0 ? 0 : a > N ? N : a;
    b = b < 0 ? 0 : b > N ? N : b;
    *lo = a;
    return b - a;
}

void layout_set_type(Layout *l, int axis, AxisType t) {
    assert(axis >= 0 && axis < MESH_MAX_AXES && t != TY_V);
    int d = layout_where(l, axis);
    if (d >= 0) {
        int i = 0;
        while (l->e[d][i].axis != axis || l->e[d][i].ghost) i++;
        memmove(&l->e[d][i], &l->e[d][i + 1], sizeof(Entry) * (size_t)(l->n[d] - i - 1));
        l->n[d]--;
        strip(l);
    }
    l->type[axis] = (uint8_t)t;
    l->at[axis] = 0;
    l->pair[axis] = (AxisPair){0};
}

void layout_place(Layout *l, int axis, int64_t coordinate) {
    assert(coordinate >= 0 && coordinate <= UINT16_MAX);
    layout_set_type(l, axis, TY_AT);
    l->at[axis] = (uint16_t)coordinate;
}
void layout_pair(Layout *l, int axis, int64_t a, int64_t b, AxisType t) {
    assert(a >= 0 && b >= 0 && a != b && a <= UINT8_MAX && b <= UINT8_MAX);
    layout_set_type(l, axis, t);
    l->pair[axis] = (AxisPair){(uint8_t)(a < b ? a : b), (uint8_t)(a < b ? b : a)};
}
bool layout_holds(const Mesh *m, const Layout *l, int64_t rank) {
    for (int a = 0; a < m->naxes; a++) {
        if (l->type[a] != TY_AT && !layout_paired(l, a)) continue;
        int64_t c = mesh_coord(m, rank, a);
        if (l->type[a] == TY_AT ? c != l->at[a] : c != l->pair[a].low && c != l->pair[a].high)
            return false;
    }
    return true;
}
int64_t layout_first(const Mesh *m, const Layout *l) {
    int64_t rank = 0;
    for (int a = 0; a < m->naxes; a++)
        rank += (l->type[a] == TY_AT ? l->at[a] : l->pair[a].low) * m->axis[a].stride;
    return rank;
}

void layout_recut(Layout *l, int axis, int dim) {
    int d = layout_where(l, axis);
    if (d < 0 || d == dim || dim >= l->ndim) return;
    layout_set_type(l, axis, TY_I);
    layout_cut(l, dim, axis, CUT_CHUNK);
}

bool layout_eq(const Layout *a, const Layout *b) { return !memcmp(a, b, sizeof *a); }

uint64_t layout_hash(const Layout *l) {
    uint64_t h = 1469598103934665603u, word = 0;
    const unsigned char *p = (const void *)l;
    size_t i = 0;
    for (; i + sizeof word <= sizeof *l; i += sizeof word) {
        memcpy(&word, p + i, sizeof word);
        h = (h ^ word) * 0x9fb21c651e98df25u;
        h ^= h >> 32;
    }
    for (; i < sizeof *l; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

Layout layout_dual(const Layout *l) {
    static const uint8_t dual[] = {
        [TY_V] = TY_V, [TY_I] = TY_I, [TY_R] = TY_P, [TY_P] = TY_R, [TY_M] = TY_M, [TY_AT] = TY_AT};
    Layout r = *l;
    for (int a = 0; a < MESH_MAX_AXES; a++) r.type[a] = dual[r.type[a]];
    return r;
}

/* ---- index maps: a set is a list of runs in order; a cut picks positions of the concatenated list
 * ---- */
typedef struct {
    int64_t first, count, stride;
} Run;
typedef struct {
    Run *r;
    int n, cap;
} Runs;

static void runs_add(Runs *s, int64_t first, int64_t count, int64_t stride) {
    if (count <= 0) return;
    if (s->n) { /* join neighbours so that lists stay short */
        Run *p = &s->r[s->n - 1];
        if (p->stride == stride && p->first + p->count * p->stride == first) {
            p->count += count;
            return;
        }
    }
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 4;
        s->r = base_realloc(s->r, (size_t)s->cap * sizeof(Run));
    }
    s->r[s->n++] = (Run){first, count, stride};
}
static int64_t runs_count(const Runs *s) {
    int64_t c = 0;
    for (int i = 0; i < s->n; i++) c += s->r[i].count;
    return c;
}
/* Positions lo, lo+step, ... below hi of the list `s`, appended to `out`. */
static void runs_pick(const Runs *s, int64_t lo, int64_t hi, int64_t step, Runs *out) {
    int64_t base = 0;
    for (int i = 0; i < s->n; i++) {
        const Run *r = &s->r[i];
        int64_t a = lo > base ? lo - base : 0;
        if (step > 1 && base > lo) { /* first position >= base that is lo modulo step */
            a = (lo - base) % step;
            if (a < 0) a += step;
        }
        int64_t b = hi - base < r->count ? hi - base : r->count;
        if (a < b)
            runs_add(out, r->first + a * r->stride, (b - a + step - 1) / step, r->stride * step);
        base += r->count;
    }
}
/* One cut: what coordinate c of n holds of the list. The chunk rule is torch.chunk's. */
static Runs runs_cut(const Runs *s, int64_t n, int64_t c, int how) {
    assert(n > 0 && c >= 0 && c < n);
    Runs out = {0};
    int64_t N = runs_count(s);
    if (how == CUT_ZIGZAG) {
        int64_t k = (N + 2 * n - 1) / (2 * n), lo2 = (2 * n - 1 - c) * k;
        runs_pick(s, c * k, (c + 1) * k < N ? (c + 1) * k : N, 1, &out);
        runs_pick(s, lo2, lo2 + k < N ? lo2 + k : N, 1, &out);
    } else if (how == CUT_STRIPED) {
        runs_pick(s, c, N, n, &out);
    } else {
        int64_t k = (N + n - 1) / n;
        runs_pick(s, c * k, (c + 1) * k < N ? (c + 1) * k : N, 1, &out);
    }
    return out;
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Where a rank's part of a dim lies: pieces (one, unless a ghost joins several) of runs; their
 * number in *n. The caller frees them (pieces_free). */
static Runs *pieces_cut(const Mesh *m, const Layout *l, int dim, int64_t N, int64_t rank, int *n) {
    Runs *piece = base_malloc(sizeof *piece);
    int np = 1;
    piece[0] = (Runs){0};
    runs_add(&piece[0], 0, N, 1);
    for (int i = 0; i < l->n[dim]; i++) {
        const Entry *e = &l->e[dim][i];
        int64_t size = m->axis[e->axis].size, k = e->ghost ? size : 1;
        int64_t own = layout_owner(m, e, mesh_coord(m, rank, e->axis));
        Runs *next = base_malloc(base_mul((size_t)(np * k), sizeof *next));
        for (int p = 0; p < np; p++) {
            for (int64_t c = 0; c < k; c++)
                next[p * k + c] = runs_cut(&piece[p], size, e->ghost ? c : own, e->how);
            free(piece[p].r);
        }
        free(piece);
        piece = next;
        np *= (int)k;
    }
    *n = np;
    return piece;
}
/* Frees the pieces; returns how many elements they had. */
static int64_t pieces_free(Runs *piece, int n) {
    int64_t total = 0;
    for (int p = 0; p < n; p++) {
        total += runs_count(&piece[p]);
        free(piece[p].r);
    }
    free(piece);
    return total;
}

IndexList layout_index(const Mesh *m, const Layout *l, int dim, int64_t N, int64_t rank,
                       Arena *arena) {
    assert(dim >= 0 && dim <= l->ndim && rank >= 0 && rank < m->nranks);
    int np, ghosts = 0;
    Runs *piece = pieces_cut(m, l, dim, N, rank, &np);
    int64_t total = 0, at = 0;
    for (int p = 0; p < np; p++) total += runs_count(&piece[p]);
    int64_t *out = ARENA_ARRAY(arena, int64_t, total);
    for (int p = 0; p < np; p++)
        for (int i = 0; i < piece[p].n; i++)
            for (int64_t k = 0; k < piece[p].r[i].count; k++)
                out[at++] = piece[p].r[i].first + k * piece[p].r[i].stride;
    pieces_free(piece, np);
    for (int i = 0; i < l->n[dim]; i++) ghosts += l->e[dim][i].ghost;
    if (ghosts) qsort(out, (size_t)total, sizeof *out, by_value);
    return (IndexList){total, out};
}

/* Length of what coordinate c of n holds of a list of N: the same rule as runs_cut, without the
 * list. */
static int64_t cut_length(int64_t N, int64_t n, int64_t c, int how) {
    int64_t k, a, b;
    if (how == CUT_STRIPED) return c < N ? (N - c + n - 1) / n : 0;
    k = how == CUT_ZIGZAG ? (N + 2 * n - 1) / (2 * n) : (N + n - 1) / n;
    a = N - c * k;
    a = a < 0 ? 0 : a > k ? k : a;
    if (how != CUT_ZIGZAG) return a;
    b = N - (2 * n - 1 - c) * k;
    return a + (b < 0 ? 0 : b > k ? k : b);
}

int64_t layout_piece(const Mesh *m, const Entry *e, int64_t N, int64_t c) {
    return cut_length(N, m->axis[e->axis].size, layout_owner(m, e, c), e->how);
}

int64_t layout_dim_size(const Mesh *m, const Layout *l, int dim, int64_t N, int64_t rank) {
    assert(dim >= 0 && dim <= l->ndim && rank >= 0 && rank < m->nranks);
    int64_t lo;
    if (dim == l->ndim && l->flat.total) return layout_flat_range(m, l, N, rank, &lo);
    bool ghost = false;
    for (int i = 0; i < l->n[dim]; i++) ghost |= l->e[dim][i].ghost;
    if (ghost) { /* rare: count the pieces */
        int np;
        Runs *piece = pieces_cut(m, l, dim, N, rank, &np);
        return pieces_free(piece, np);
    }
    for (int i = 0; i < l->n[dim]; i++) {
        const Entry *e = &l->e[dim][i];
        N = layout_piece(m, e, N, mesh_coord(m, rank, e->axis));
    }
    return N;
}

void layout_local(const Mesh *m, const Layout *l, const int64_t *N, int64_t rank, int64_t *out) {
    for (int d = 0; d < l->ndim; d++) out[d] = layout_dim_size(m, l, d, N[d], rank);
}

AxisList layout_dim_axes(const Layout *l, int dim) {
    assert(dim >= 0 && dim <= l->ndim);
    AxisList r = {0};
    for (int i = 0; i < l->n[dim]; i++)
        if (!l->e[dim][i].ghost) r.a[r.n++] = l->e[dim][i].axis;
    return r;
}
const char *const layout_orders[N_CUTS] = {"contiguous", "zigzag", "striped"};
const char *layout_order(const Layout *l) {
    int how = CUT_CHUNK;
    for (int d = 0; d <= l->ndim; d++)
        for (int k = 0; k < l->n[d] && how == CUT_CHUNK; k++)
            if (!l->e[d][k].ghost) how = l->e[d][k].how;
    return layout_orders[how];
}

const char *layout_text(const Mesh *m, const Layout *l, const char *letters, Arena *arena) {
    static const char *how[] = {"", "~z", "~s", "~b"}, *type[] = {"V", "I", "R", "P", "M", "at"};
    Str s = str_new(arena);
    str_add(&s, "[");
    for (int d = 0; d <= l->ndim; d++) {
        if (d == l->ndim && !l->n[d]) break;
        if (d) str_add(&s, ",");
        if (d == l->ndim) str_add(&s, l->flat.total ? "flat:" : "list:");
        else if (letters) str_addf(&s, "%c%s", letters[d], l->n[d] ? ":" : "");
        else if (!l->n[d]) str_add(&s, ".");
        for (int i = 0; i < l->n[d]; i++) {
            const Entry *e = &l->e[d][i];
            str_addf(&s, "%s%s%s%s", i ? "/" : "", e->ghost ? "^" : "", m->axis[e->axis].name,
                     how[e->how]);
            if (e->shift) str_addf(&s, "+%d", e->shift);
        }
    }
    str_add(&s, "]");
    for (int a = 0; a < m->naxes; a++)
        if (l->type[a] == TY_AT) str_addf(&s, " %s@%d", m->axis[a].name, l->at[a]);
        else if (layout_paired(l, a))
            str_addf(&s, " %s:%s{%d,%d}", m->axis[a].name, type[l->type[a]], l->pair[a].low,
                     l->pair[a].high);
        else if (l->type[a] != TY_V) str_addf(&s, " %s:%s", m->axis[a].name, type[l->type[a]]);
    return s.s;
}
