/* Blocks as sets of global indices, and copies between them. See region.h. */
#include "exec/region.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Chunks without ghosts are a range, computed without lists. */
static bool dim_range(const Mesh *m, const Layout *l, int d, int64_t N, int64_t rank,
                      DimIndex *out) {
    int64_t lo = 0, n = N;
    if (d == l->ndim && l->flat.total) {
        n = layout_flat_range(m, l, N, rank, &lo);
        *out = (DimIndex){true, lo, n, NULL};
        return true;
    }
    for (int i = 0; i < l->n[d]; i++) {
        const Entry *e = &l->e[d][i];
        if (e->ghost || e->how != CUT_CHUNK) return false;
        int64_t size = m->axis[e->axis].size, c = layout_owner(m, e, mesh_coord(m, rank, e->axis)),
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
    bool all_ghosts = true; /* nothing but ghosts: the whole dim */
    for (int i = 0; i < l->n[d]; i++) all_ghosts &= l->e[d][i].ghost;
    if (all_ghosts) return (DimIndex){true, 0, N, NULL};
    IndexList all = layout_index(m, l, d, N, rank, arena);
    return (DimIndex){false, 0, all.n, all.at};
}
static int64_t index_at(const DimIndex *x, int64_t i) { return x->range ? x->lo + i : x->list[i]; }

/* ---- outer lists ---- */
/* The combinations of the first k dims, each as one index. A range where they are one run. */
static DimIndex combined(const GTensor *t, const DimIndex *part, int k, Arena *arena) {
    int64_t total = 1, inner = 1, i[LAYOUT_MAX_DIMS] = {0};
    bool run = part[0].range;
    for (int d = 0; d < k; d++) total *= part[d].n;
    for (int d = 1; d < k; d++) {
        run &= part[d].range && part[d].n == t->size[d];
        inner *= t->size[d];
    }
    if (run) return (DimIndex){true, part[0].lo * inner, total, NULL};
    int64_t *all = ARENA_ARRAY(arena, int64_t, total);
    for (int64_t c = 0; c < total; c++) {
        int64_t x = 0;
        for (int d = 0; d < k; d++) x = x * t->size[d] + index_at(&part[d], i[d]);
        all[c] = x;
        for (int d = k - 1; d >= 0; d--) {
            if (++i[d] < part[d].n) break;
            i[d] = 0;
        }
    }
    return (DimIndex){false, 0, total, all};
}
/* The same positions in each of `times` lists of N that lie one behind the other. */
static DimIndex in_each(const DimIndex *at, int64_t times, int64_t N, Arena *arena) {
    if (times == 1) return *at;
    int64_t *out = arena_alloc(arena, base_mul((size_t)(times * at->n) + 1, sizeof *out)), n = 0;
    for (int64_t i = 0; i < times; i++)
        for (int64_t k = 0; k < at->n; k++) out[n++] = i * N + index_at(at, k);
    return (DimIndex){false, 0, n, out};
}
/* Those at some positions of a list. */
static DimIndex chosen(const DimIndex *all, const DimIndex *at, Arena *arena) {
    if (all->range && at->range) return (DimIndex){true, all->lo + at->lo, at->n, NULL};
    int64_t *out = ARENA_ARRAY(arena, int64_t, at->n);
    for (int64_t k = 0; k < at->n; k++) out[k] = index_at(all, index_at(at, k));
    return (DimIndex){false, 0, at->n, out};
}
Region region_listed(const Region *r, int outer, Arena *arena) {
    if (r->outer == outer || !outer) return *r;
    assert(!r->outer && r->t && outer <= r->nd); /* lists over other letters never meet */
    Region x = {.t = r->t, .outer = outer, .nd = r->nd - outer + 1};
    x.d[0] = combined(r->t, r->d, outer, arena);
    for (int k = 1; k < x.nd; k++) x.d[k] = r->d[k + outer - 1];
    for (int k = 0; k < x.nd; k++) x.n[k] = x.d[k].n;
    return x;
}

/* ---- regions ---- */
Region region_at(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank, Arena *arena) {
    assert(l->ndim == t->nd && rank >= 0 && rank < m->nranks);
    Region r = {.t = t, .nd = t->nd};
    for (int d = 0; d < t->nd; d++) {
        r.d[d] = dim_index(m, l, d, t->size[d], rank, arena);
        r.n[d] = r.d[d].n;
    }
    if (!l->n[l->ndim] || !t->nd) return r;
    int first, letters = layout_list_letters(l, t->stored, &first);
    int64_t before = 1, N = 1;
    for (int d = 0; d < first + letters; d++) *(d < first ? &before : &N) *= r.n[d];
    r = region_listed(&r, first + letters, arena);
    DimIndex at = dim_index(m, l, l->ndim, N, rank, arena);
    if (first) at = in_each(&at, before, N, arena);
    r.d[0] = chosen(&r.d[0], &at, arena);
    r.n[0] = r.d[0].n;
    return r;
}
Tensor region_letters(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank) {
    Tensor x = {.nd = t->nd};
    layout_local(m, l, t->size, rank, x.n);
    if (l->flat.total) { /* a run of elements, whatever their letters */
        int64_t lo, all = 1;
        for (int d = 0; d < t->nd; d++) all *= x.n[d], x.n[d] = 1;
        x.n[0] = layout_flat_range(m, l, all, rank, &lo);
    }
    if (t->listed) { /* as many rows as may be expected */
        x.n[0] = graph_rows(t, x.n);
        for (int d = 1; d < t->listed; d++) x.n[d] = 1;
    }
    tensor_pack(&x);
    return x;
}
int64_t region_stored(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank,
                      int64_t *shape) {
    int64_t n[LAYOUT_MAX_DIMS], all = 1;
    int letter = 0;
    assert(l->ndim == t->nd && rank >= 0 && rank < m->nranks);
    layout_local(m, l, t->size, rank, n);
    if (l->flat.total) {
        for (int d = 0; d < t->nstored; d++) shape[d] = 1;
        return shape[0] = region_letters(m, t, l, rank).n[0];
    }
    for (int d = 0; d < t->nstored; d++) {
        shape[d] = 1;
        for (int k = 0; k < t->stored[d]; k++) shape[d] *= n[letter++];
        if (d == 0 && t->listed) shape[0] = graph_rows(t, n);
        if (d == l->list && l->n[l->ndim])
            shape[d] = layout_dim_size(m, l, l->ndim, shape[d], rank);
        all *= shape[d];
    }
    return all;
}
Region region_rows(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank, DimIndex rows,
                   Arena *arena) {
    assert(t->listed > 0 && l->ndim == t->nd && rank >= 0 && rank < m->nranks);
    Region r = {.t = t, .outer = t->listed, .nd = t->nd - t->listed + 1};
    r.d[0] = rows;
    for (int k = 1; k < r.nd; k++)
        r.d[k] = dim_index(m, l, k + t->listed - 1, t->size[k + t->listed - 1], rank, arena);
    for (int k = 0; k < r.nd; k++) r.n[k] = r.d[k].n;
    return r;
}
/* Does a list, ascending, have the index? */
static bool has_index(const DimIndex *x, int64_t i) {
    if (x->range) return i >= x->lo && i < x->lo + x->n;
    int64_t lo = 0, hi = x->n;
    while (lo < hi) {
        int64_t mid = (lo + hi) / 2;
        if (x->list[mid] < i) lo = mid + 1;
        else hi = mid;
    }
    return lo < x->n && x->list[lo] == i;
}
/* Do the listed dims' lists have a row, all but the last dim? `id`: the row's number without it. */
static bool outer_inside(const GTensor *t, const DimIndex *have, int64_t id) {
    bool in = true;
    for (int d = t->listed - 2; d >= 0; d--) {
        in &= has_index(&have[d], id % t->size[d]);
        id /= t->size[d];
    }
    return in;
}
DimIndex region_inside(const Mesh *m, const GTensor *t, const Layout *l, int64_t rank,
                       const DimIndex *rows, Arena *arena) {
    DimIndex have[LAYOUT_MAX_DIMS];
    bool cut = false;
    for (int d = 0; d < t->listed; d++) {
        have[d] = dim_index(m, l, d, t->size[d], rank, arena);
        cut |= !have[d].range || have[d].n < t->size[d];
    }
    if (!cut) return *rows;
    int64_t *out = arena_alloc(arena, base_mul((size_t)rows->n + 1, sizeof *out)), n = 0;
    /* neighbours share all but the last index: the others are looked at where they change */
    const int last = t->listed - 1;
    int64_t from = 0, size = 0;
    bool in = false;
    for (int64_t i = 0; i < rows->n; i++) {
        int64_t id = index_at(rows, i);
        if (id < from || id >= from + size) {
            size = t->size[last];
            from = id / size * size;
            in = outer_inside(t, have, id / size);
        }
        if (in && has_index(&have[last], id - from)) out[n++] = id;
    }
    return (DimIndex){false, 0, n, out};
}
static int by_index(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}
DimIndex region_joined(const DimIndex *lists, int64_t n, Arena *arena) {
    int64_t all = 0, k = 0, once = 0;
    for (int64_t i = 0; i < n; i++) all += lists[i].n;
    if (n == 1) return lists[0];
    int64_t *out = arena_alloc(arena, base_mul((size_t)all + 1, sizeof *out));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < lists[i].n; j++) out[k++] = index_at(&lists[i], j);
    bool sorted = true;
    for (int64_t i = 1; i < all && sorted; i++) sorted = out[i - 1] <= out[i];
    if (!sorted) qsort(out, (size_t)all, sizeof *out, by_index);
    for (int64_t i = 0; i < all; i++)
        if (!i || out[i] != out[i - 1]) out[once++] = out[i];
    return (DimIndex){false, 0, once, out};
}
int region_dim(const Region *r, int letter) {
    return !r->outer ? letter : letter < r->outer ? 0 : letter - r->outer + 1;
}
/* The letter in the number of a combination of the first `outer` ones. */
static int64_t letter_of(const GTensor *t, int outer, int letter, int64_t id) {
    for (int k = outer - 1; k > letter; k--) id /= t->size[k];
    return id % t->size[letter];
}
int64_t region_letter(const Region *r, int letter, int64_t i) {
    int64_t id = index_at(&r->d[region_dim(r, letter)], i);
    return letter < r->outer ? letter_of(r->t, r->outer, letter, id) : id;
}
DimIndex region_below(const GTensor *t, const DimIndex *rows, int d, int64_t end, Arena *arena) {
    assert(d < t->listed);
    int64_t *out = arena_alloc(arena, base_mul((size_t)rows->n + 1, sizeof *out)), n = 0;
    for (int64_t i = 0; i < rows->n; i++)
        if (letter_of(t, t->listed, d, index_at(rows, i)) < end) out[n++] = index_at(rows, i);
    return (DimIndex){false, 0, n, out};
}
bool region_same(const DimIndex *a, const DimIndex *b) {
    bool same = a->n == b->n;
    for (int64_t i = 0; i < a->n && same; i++) same = index_at(a, i) == index_at(b, i);
    return same;
}
Region region_whole(const GTensor *t) {
    Region r = {.t = t, .nd = t->nd};
    for (int d = 0; d < t->nd; d++) r.d[d] = (DimIndex){true, 0, r.n[d] = t->size[d], NULL};
    return r;
}
Region region_plain(const Tensor *t) {
    Region r = {.nd = t->nd};
    for (int d = 0; d < t->nd; d++) r.d[d] = (DimIndex){true, 0, r.n[d] = t->n[d], NULL};
    return r;
}
void region_clamp(Region *r, const int64_t *n) {
    for (int d = 0; d < r->nd; d++)
        if (n[d] < r->d[d].n) r->d[d].n = r->n[d] = n[d];
}
Tensor region_packed(const Region *r) {
    Tensor t = {.nd = r->nd};
    for (int d = 0; d < r->nd; d++) t.n[d] = r->n[d];
    tensor_pack(&t);
    return t;
}
static bool has_sizes(const Tensor *t, const Region *r) {
    bool same = t->nd == r->nd;
    for (int d = 0; same && d < r->nd; d++) same = t->n[d] == r->n[d];
    return same;
}
Tensor region_shaped(const Region *r, const Tensor *t) {
    if (has_sizes(t, r)) return *t; /* may be a strided view */
    Tensor as = region_packed(r);
    as.p = t->p;
    return tensor_count(&as) == tensor_count(t) ? as : *t;
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

/* What is done with the matching positions of two tensors of nd dims. */
typedef struct {
    const Tensor *dst, *src;
    int nd;
    Matches x[LAYOUT_MAX_DIMS];
    Dtype dt;
    Combine how;
} CopyJob;

/* n elements, ds and ss apart. */
static void copy_line(const CopyJob *j, void *d, int64_t ds, const void *s, int64_t ss, int64_t n) {
    const Combine how = j->how;
    if (how == COMBINE_COPY && ds == 1 && ss == 1) {
        memcpy(d, s, (size_t)(n * dtype_size(j->dt)));
        return;
    }
#define LINE(T)                                                                                    \
    {                                                                                              \
        T *a = d;                                                                                  \
        const T *b = s;                                                                            \
        if (how == COMBINE_COPY)                                                                   \
            for (int64_t i = 0; i < n; i++) a[i * ds] = b[i * ss];                                 \
        else if (how == COMBINE_SUM && ds == 1 && ss == 1)                                         \
            for (int64_t i = 0; i < n; i++) a[i] += b[i];                                          \
        else if (how == COMBINE_SUM)                                                               \
            for (int64_t i = 0; i < n; i++) a[i * ds] += b[i * ss];                                \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i * ds] = a[i * ds] < b[i * ss] ? b[i * ss] : a[i * ds];                         \
    }
    if (j->dt == DT_F32) LINE(float) else if (j->dt == DT_F64) LINE(double) else LINE(int64_t)
#undef LINE
}
/* The dims from d on, at the offsets od and os that those before it give. */
static void copy_block(const CopyJob *j, int d, int64_t od, int64_t os) {
    const int64_t es = dtype_size(j->dt);
    const int nd = j->nd;
    char *dp = j->dst->p;
    const char *sp = j->src->p;
    if (d == nd) {
        copy_line(j, dp + od * es, 1, sp + os * es, 1, 1);
        return;
    }
    const int64_t ds = j->dst->s[d], ss = j->src->s[d];
    for (int k = 0; k < j->x[d].n; k++) {
        const Match *m = &j->x[d].m[k];
        if (d == nd - 1)
            copy_line(j, dp + (od + m->dst * ds) * es, ds, sp + (os + m->src * ss) * es, ss, m->n);
        else
            for (int64_t i = 0; i < m->n; i++)
                copy_block(j, d + 1, od + (m->dst + i) * ds, os + (m->src + i) * ss);
    }
}
/* A region and its data. */
typedef struct {
    Region r;
    Tensor t;
} Held;
/* A packed copy; what is shorter than the region says is not there to be read. */
static void pack(Held *h, Dtype dt, Arena *tmp) {
    Region *r = &h->r;
    region_clamp(r, h->t.n);
    Tensor part = h->t, out = region_packed(r);
    for (int d = 0; d < r->nd; d++) part.n[d] = r->n[d];
    Region all = region_plain(&out);
    out.p = arena_alloc(tmp, base_mul((size_t)tensor_count(&out) + 1, (size_t)dtype_size(dt)));
    region_copy((Block){&all, &out}, (Block){&all, &part}, dt, COMBINE_COPY);
    h->t = out;
}
/* With the outer list that the other has; `copy`: what is no packed block may be copied. False if
 * the data are not those of the region. */
static bool as_listed(Held *h, int outer, Dtype dt, bool copy, Arena *tmp) {
    if (h->r.outer == outer) return true;
    if (h->t.nd != h->r.nd) return false;
    if (copy && (!tensor_is_packed(&h->t) || !has_sizes(&h->t, &h->r))) pack(h, dt, tmp);
    if (!tensor_is_packed(&h->t)) return false;
    h->r = region_listed(&h->r, outer, tmp);
    h->t = region_shaped(&h->r, &h->t);
    return has_sizes(&h->t, &h->r);
}
static int joint_outer(const Region *a, const Region *b) { return a->outer ? a->outer : b->outer; }
int64_t region_common(const Region *a, const Region *b) {
    Arena *tmp = arena_new();
    int64_t count = 1;
    Region x = region_listed(a, joint_outer(a, b), tmp), y = region_listed(b, x.outer, tmp);
    for (int d = 0; d < x.nd; d++) {
        Matches k;
        match_dim(&x.d[d], &y.d[d], &k, tmp);
        int64_t n = 0;
        for (int i = 0; i < k.n; i++) n += k.m[i].n;
        count *= n;
    }
    arena_free(tmp);
    return count;
}
/* Both of one list, or none. */
static int64_t copy_matches(Held *dst, const Held *src, Dtype dt, Combine how, Arena *tmp) {
    CopyJob j = {.dst = &dst->t, .src = &src->t, .nd = dst->r.nd, .dt = dt, .how = how};
    int64_t count = 1;
    for (int d = 0; d < dst->r.nd; d++) {
        DimIndex to = dst->r.d[d], from = src->r.d[d]; /* after a planted mistake a block may be
                                                          shorter than its layout says */
        if (dst->t.n[d] < to.n) to.n = dst->t.n[d];
        if (src->t.n[d] < from.n) from.n = src->t.n[d];
        match_dim(&to, &from, &j.x[d], tmp);
        int64_t n = 0;
        for (int k = 0; k < j.x[d].n; k++) n += j.x[d].m[k].n;
        count *= n;
    }
    if (count) copy_block(&j, 0, 0, 0);
    return count;
}
int64_t region_copy(Block dst, Block src, Dtype dt, Combine how) {
    assert(dst.has && dst.t && src.has && src.t && how != COMBINE_AVG);
    Arena *tmp = arena_new();
    int outer = joint_outer(dst.has, src.has);
    Held to = {*dst.has, *dst.t}, from = {*src.has, *src.t};
    bool fit = as_listed(&to, outer, dt, false, tmp) && as_listed(&from, outer, dt, true, tmp);
    int64_t count = fit ? copy_matches(&to, &from, dt, how, tmp) : 0;
    arena_free(tmp);
    return count;
}
bool region_pairs(Block dst, Block src, Arena *arena, RegionPairs *out) {
    int outer = joint_outer(dst.has, src.has);
    Held to = {*dst.has, *dst.t}, from = {*src.has, *src.t};
    if (!as_listed(&to, outer, DT_F64, false, arena) ||
        !as_listed(&from, outer, DT_F64, false, arena))
        return false;
    *out = (RegionPairs){.nd = to.r.nd};
    for (int d = 0; d < to.r.nd; d++) {
        DimIndex a = to.r.d[d], b = from.r.d[d];
        Matches x;
        if (to.t.n[d] < a.n) a.n = to.t.n[d];
        if (from.t.n[d] < b.n) b.n = from.t.n[d];
        match_dim(&a, &b, &x, arena);
        for (int k = 0; k < x.n; k++) out->n[d] += x.m[k].n;
        out->to[d] = ARENA_ARRAY(arena, int64_t, 2 * out->n[d] + 1);
        out->from[d] = out->to[d] + out->n[d];
        for (int64_t k = 0, at = 0; k < x.n; k++)
            for (int64_t i = 0; i < x.m[k].n; i++, at++) {
                out->to[d][at] = (x.m[k].dst + i) * to.t.s[d];
                out->from[d][at] = (x.m[k].src + i) * from.t.s[d];
            }
    }
    return true;
}
/* Those of x that y has. */
static DimIndex dim_meet(const DimIndex *x, const DimIndex *y, Arena *arena) {
    Matches k;
    match_dim(x, y, &k, arena);
    if (x->range && y->range) return (DimIndex){true, x->lo + k.one.dst, k.n ? k.one.n : 0, NULL};
    int64_t n = 0, *list;
    for (int i = 0; i < k.n; i++) n += k.m[i].n;
    list = ARENA_ARRAY(arena, int64_t, n + 1);
    DimIndex out = {false, 0, n, list};
    for (int i = 0; i < k.n; i++)
        for (int64_t j = 0; j < k.m[i].n; j++) *list++ = index_at(x, k.m[i].dst + j);
    return out;
}
Region region_meet(const Region *a, const Region *b, Arena *arena) {
    int outer = joint_outer(a, b);
    Region x = region_listed(a, outer, arena), y = region_listed(b, outer, arena);
    for (int d = 0; d < x.nd; d++) {
        x.d[d] = dim_meet(&x.d[d], &y.d[d], arena);
        x.n[d] = x.d[d].n;
    }
    return x;
}
/* Sizes of the whole, dim by dim of the region. */
static void whole_sizes(const Region *r, int64_t *size) {
    for (int d = 0; d < r->nd; d++) size[d] = r->t->size[r->outer ? d + r->outer - 1 : d];
    for (int k = 0; r->outer && k < r->outer - 1; k++) size[0] *= r->t->size[k];
}
typedef struct {
    const Region *r;
    int along;     /* the dim that runs go along: those behind it are whole */
    int64_t inner; /* elements behind it */
    int64_t size[LAYOUT_MAX_DIMS], at;
    bool (*fn)(void *arg, int64_t first, int64_t n, int64_t at);
    void *arg;
} Runs;
static bool runs_along(Runs *x, int64_t base) {
    const DimIndex *k = &x->r->d[x->along];
    for (int64_t i = 0, n; i < k->n; i += n) {
        for (n = k->range ? k->n : 1; i + n < k->n && k->list[i + n] == k->list[i] + n;) n++;
        if (!x->fn(x->arg, (base + index_at(k, i)) * x->inner, n * x->inner, x->at)) return false;
        x->at += n * x->inner;
    }
    return true;
}
static bool runs_in(Runs *x, int d, int64_t base) {
    if (d == x->along) return runs_along(x, base);
    for (int64_t i = 0; i < x->r->n[d]; i++) {
        int64_t next = (base + index_at(&x->r->d[d], i)) * x->size[d + 1];
        if (!runs_in(x, d + 1, next)) return false;
    }
    return true;
}
bool region_runs(const Region *r, bool (*fn)(void *arg, int64_t first, int64_t n, int64_t at),
                 void *arg) {
    Runs x = {.r = r, .along = r->nd - 1, .inner = 1, .fn = fn, .arg = arg};
    if (!r->nd) return fn(arg, 0, 1, 0);
    whole_sizes(r, x.size);
    while (x.along > 0 && r->d[x.along].range && r->n[x.along] == x.size[x.along])
        x.inner *= x.size[x.along--];
    return runs_in(&x, 0, 0);
}
static bool view_of(const Region *db, const Region *sb, const Tensor *src, Dtype dt, Tensor *out) {
    *out = *src;
    int64_t o = 0;
    for (int d = 0; d < db->nd; d++) {
        if (!db->d[d].range || !sb->d[d].range || db->d[d].lo < sb->d[d].lo ||
            db->d[d].lo + db->d[d].n > sb->d[d].lo + sb->d[d].n)
            return false;
        o += (db->d[d].lo - sb->d[d].lo) * src->s[d];
        out->n[d] = db->d[d].n;
    }
    out->p = (char *)src->p + o * dtype_size(dt);
    return true;
}
bool region_view(const Region *db, const Region *sb, const Tensor *src, Dtype dt, Tensor *out) {
    if (sb->outer && !db->outer) return false;
    Arena *tmp = arena_new();
    Held h = {*sb, *src};
    bool fit = as_listed(&h, db->outer, dt, false, tmp) && view_of(db, &h.r, &h.t, dt, out);
    arena_free(tmp);
    return fit;
}
