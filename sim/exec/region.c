/* Blocks of a value as boxes of global indices, and copies between them. The one place where
 * positions are matched. */
#include "exec/exec.h"
#include <string.h>

bool region_is_flat(const Layout *a, const Layout *b) {
    return a->n[a->ndim] || (b && b->n[b->ndim]);
}

/* Chunks without ghosts are a range, computed without lists. */
static bool dim_range(const Mesh *m, const Layout *l, int d, int64_t N, int64_t rank,
                      DimIndex *out) {
    int64_t lo = 0, n = N;
    for (int i = 0; i < l->n[d]; i++) {
        const Entry *e = &l->e[d][i];
        if (e->ghost || e->how != CUT_CHUNK || e->shift) return false;
        int64_t size = m->axis[e->axis].size, c = mesh_coord(m, rank, e->axis),
                k = (n + size - 1) / size;
        int64_t a = c * k < n ? c * k : n, b = (c + 1) * k < n ? (c + 1) * k : n;
        lo += a;
        n = b - a;
    }
    *out = (DimIndex){true, lo, n, NULL};
    return true;
}
static DimIndex dim_index(const Mesh *m, const Layout *l, int d, int64_t N, int64_t rank,
                          Arena *arena) {
    DimIndex x;
    if (dim_range(m, l, d, N, rank, &x)) return x;
    x = (DimIndex){false, 0, 0, NULL};
    bool all_ghosts = true; /* nothing but ghosts: the whole dim */
    for (int i = 0; i < l->n[d]; i++) all_ghosts &= l->e[d][i].ghost;
    if (all_ghosts) return (DimIndex){true, 0, N, NULL};
    x.list = layout_index(m, l, d, N, rank, &x.n, arena);
    return x;
}
static int64_t index_at(const DimIndex *x, int64_t i) { return x->range ? x->lo + i : x->list[i]; }

/* Stored dim 0 as one list: the product of its letters' indices, then the LIST cuts. */
static DimIndex flat_index(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank,
                           Arena *arena) {
    DimIndex part[LAYOUT_MAX_DIMS];
    int g = t->stored[0];
    int64_t total = 1;
    for (int d = 0; d < g; d++) {
        part[d] = dim_index(m, l, d, t->size[d], rank, arena);
        total *= part[d].n;
    }
    int64_t *all = ARENA_ARRAY(arena, int64_t, total), i[LAYOUT_MAX_DIMS] = {0};
    for (int64_t k = 0; k < total; k++) {
        int64_t x = 0;
        for (int d = 0; d < g; d++) x = x * t->size[d] + index_at(&part[d], i[d]);
        all[k] = x;
        for (int d = g - 1; d >= 0; d--) {
            if (++i[d] < part[d].n) break;
            i[d] = 0;
        }
    }
    Layout cut = *l; /* positions in the list that this rank holds */
    int64_t n;
    const int64_t *pos = layout_index(m, &cut, l->ndim, total, rank, &n, arena);
    int64_t *out = ARENA_ARRAY(arena, int64_t, n);
    for (int64_t k = 0; k < n; k++) out[k] = all[pos[k]];
    return (DimIndex){false, 0, n, out};
}
Box region_box(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank, bool flat,
               Arena *arena) {
    Box b = {0};
    int d = 0;
    if (flat && t->nd) {
        b.d[b.nd++] = flat_index(m, t, l, rank, arena);
        d = t->stored[0];
    }
    for (; d < t->nd; d++) b.d[b.nd++] = dim_index(m, l, d, t->size[d], rank, arena);
    for (int k = 0; k < b.nd; k++) b.n[k] = b.d[k].n;
    return b;
}

/* ---- runs of matching positions ---- */
typedef struct {
    int64_t src, dst, n;
} Match;
typedef struct {
    int n, cap;
    Match *m;
    Match one;
} Matches;
static void add_match(Matches *x, int64_t src, int64_t dst, int64_t n, Arena *tmp) {
    if (x->n) {
        Match *p = &x->m[x->n - 1];
        if (p->src + p->n == src && p->dst + p->n == dst) {
            p->n += n;
            return;
        }
    }
    if (x->n == x->cap) x->m = arena_grow(tmp, x->m, sizeof *x->m, (size_t)x->n, &x->cap);
    x->m[x->n++] = (Match){src, dst, n};
}
static bool ascending(const DimIndex *x) {
    for (int64_t i = 1; !x->range && i < x->n; i++)
        if (x->list[i] <= x->list[i - 1]) return false;
    return true;
}
static void match_dim(const DimIndex *d, const DimIndex *s, Matches *x, Arena *tmp) {
    *x = (Matches){0};
    if (d->range && s->range) {
        int64_t lo = d->lo > s->lo ? d->lo : s->lo, hd = d->lo + d->n, hs = s->lo + s->n,
                hi = hd < hs ? hd : hs;
        x->m = &x->one;
        if (lo < hi) x->one = (Match){lo - s->lo, lo - d->lo, hi - lo}, x->n = 1;
        return;
    }
    if (ascending(d) && ascending(s)) {
        for (int64_t i = 0, j = 0; i < d->n && j < s->n;) {
            int64_t a = index_at(d, i), b = index_at(s, j);
            if (a == b) add_match(x, j++, i++, 1, tmp);
            else if (a < b) i++;
            else j++;
        }
        return;
    }
    for (int64_t i = 0; i < d->n; i++) /* a list that does not ascend: rare and short */
        for (int64_t j = 0; j < s->n; j++)
            if (index_at(d, i) == index_at(s, j)) add_match(x, j, i, 1, tmp);
}

static void copy_line(void *d, int64_t ds, const void *s, int64_t ss, int64_t n, Dtype dt, int op) {
    if (op == 0 && ds == 1 && ss == 1) {
        memcpy(d, s, (size_t)(n * dtype_size(dt)));
        return;
    }
#define LINE(T)                                                                                    \
    {                                                                                              \
        T *a = d;                                                                                  \
        const T *b = s;                                                                            \
        if (op == 0)                                                                               \
            for (int64_t i = 0; i < n; i++) a[i * ds] = b[i * ss];                                 \
        else if (op == 1 && ds == 1 && ss == 1)                                                    \
            for (int64_t i = 0; i < n; i++) a[i] += b[i];                                          \
        else if (op == 1)                                                                          \
            for (int64_t i = 0; i < n; i++) a[i * ds] += b[i * ss];                                \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i * ds] = a[i * ds] < b[i * ss] ? b[i * ss] : a[i * ds];                         \
    }
    if (dt == DT_F32) LINE(float) else if (dt == DT_F64) LINE(double) else LINE(int64_t)
#undef LINE
}
static void copy_block(Tensor *dst, const Tensor *src, int d, int nd, Matches *const *x, int64_t od,
                       int64_t os, Dtype dt, int op) {
    char *dp = dst->p;
    const char *sp = src->p;
    if (d == nd) {
        copy_line(dp + od * dtype_size(dt), 1, sp + os * dtype_size(dt), 1, 1, dt, op);
        return;
    }
    for (int k = 0; k < x[d]->n; k++) {
        const Match *m = &x[d]->m[k];
        if (d == nd - 1)
            copy_line(dp + (od + m->dst * dst->s[d]) * dtype_size(dt), dst->s[d],
                      sp + (os + m->src * src->s[d]) * dtype_size(dt), src->s[d], m->n, dt, op);
        else
            for (int64_t i = 0; i < m->n; i++)
                copy_block(dst, src, d + 1, nd, x, od + (m->dst + i) * dst->s[d],
                           os + (m->src + i) * src->s[d], dt, op);
    }
}
int64_t region_common(const Box *a, const Box *b) {
    Arena *tmp = arena_new();
    int64_t count = 1;
    for (int d = 0; d < a->nd; d++) {
        Matches x;
        match_dim(&a->d[d], &b->d[d], &x, tmp);
        int64_t n = 0;
        for (int k = 0; k < x.n; k++) n += x.m[k].n;
        count *= n;
    }
    arena_free(tmp);
    return count;
}
int64_t region_copy(const Box *db, Tensor *dst, const Box *sb, const Tensor *src, Dtype dt,
                    int op) {
    Arena *tmp = arena_new();
    Matches x[LAYOUT_MAX_DIMS], *px[LAYOUT_MAX_DIMS];
    int64_t count = 1;
    for (int d = 0; d < db->nd; d++) {
        DimIndex to = db->d[d], from = sb->d[d]; /* after a planted mistake a block may be shorter
                                                    than its layout says */
        if (dst->n[d] < to.n) to.n = dst->n[d];
        if (src->n[d] < from.n) from.n = src->n[d];
        match_dim(&to, &from, &x[d], tmp);
        px[d] = &x[d];
        int64_t n = 0;
        for (int k = 0; k < x[d].n; k++) n += x[d].m[k].n;
        count *= n;
    }
    if (count) copy_block(dst, src, 0, db->nd, px, 0, 0, dt, op);
    arena_free(tmp);
    return count;
}
bool region_view(const Box *db, const Box *sb, const Tensor *src, Dtype dt, Tensor *out) {
    *out = *src;
    int64_t o = 0;
    for (int d = 0; d < db->nd; d++) {
        if (!db->d[d].range || !sb->d[d].range || db->d[d].lo < sb->d[d].lo ||
            db->d[d].lo + db->d[d].n > sb->d[d].lo + sb->d[d].n) {
            if (db->d[d].range && db->d[d].n == 0) return false;
            return false;
        }
        o += (db->d[d].lo - sb->d[d].lo) * src->s[d];
        out->n[d] = db->d[d].n;
    }
    out->p = (char *)src->p + o * dtype_size(dt);
    return true;
}
Tensor region_packed(const Box *b) {
    Tensor t = {.nd = b->nd};
    for (int d = 0; d < b->nd; d++) t.n[d] = b->n[d];
    tensor_pack(&t);
    return t;
}
