/* Ranks by their local shapes, without looking at ranks one by one: what a coordinate holds of a
 * dim depends on the length that the outer cuts left and on whether its piece is full, short or
 * empty, so an axis of any size has few parts. Refuses to know values: it sees sizes and layouts.
 */
#include "exec/classes.h"
#include <string.h>

static bool has_axis(const AxisList *l, int axis) {
    for (int q = 0; q < l->n; q++)
        if (l->a[q] == axis) return true;
    return false;
}
void classes_uneven(const Mesh *m, const GTensor *t, const Layout *l, AxisList *out) {
    for (int a = 0; a < m->naxes; a++) /* here or not */
        if ((l->type[a] == TY_AT || layout_paired(l, a)) && !has_axis(out, a))
            out->a[out->n++] = (uint8_t)a;
    for (int i = 0; i < l->n[t->nd] && l->flat.total; i++)
        if (!has_axis(out, l->e[t->nd][i].axis)) out->a[out->n++] = l->e[t->nd][i].axis;
    for (int d = 0; d <= t->nd - (l->flat.total > 0); d++) {
        int64_t N = 1;
        bool rows_differ = false; /* LIST cuts rows: letters that are cut unevenly leave ranks
                                     different numbers of them */
        int first = 0, rows = t->nstored ? layout_list_letters(l, t->stored, &first) : 0;
        if (d < t->nd) N = t->size[d];
        else
            for (int k = first; k < first + rows; k++) {
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
/* Contiguous and striped pieces of one's own never grow with the coordinate: where two are equal,
 * all between them are. */
static bool falling(const Entry *e) { return e->how != CUT_ZIGZAG && !e->shift; }
/* The first coordinate after c whose piece of N has another length, or the size of the axis. */
static int64_t next_length(const Mesh *m, const Entry *e, int64_t N, int64_t c) {
    int64_t size = m->axis[e->axis].size, same = c, other = size, here = layout_piece(m, e, N, c);
    if (!falling(e)) return c + 1;
    while (same + 1 < other) {
        int64_t mid = same + (other - same) / 2;
        if (layout_piece(m, e, N, mid) == here) same = mid;
        else other = mid;
    }
    return other;
}
/* Lengths after the first `entries` cuts of dim d, of any of the lengths in `from`. */
static Lengths lengths_after(const Mesh *m, const Layout *l, int d, int entries, Lengths from) {
    for (int i = 0; i < entries; i++) {
        const Entry *e = &l->e[d][i];
        Lengths next = {0};
        /* pieces of several lengths are held together: not told apart here */
        if (e->ghost) next.n = -1;
        for (int k = 0; k < from.n; k++)
            for (int64_t c = 0; c < m->axis[e->axis].size && next.n >= 0;
                 c = next_length(m, e, from.v[k], c))
                add_length(&next, layout_piece(m, e, from.v[k], c));
        if (from.n < 0) next.n = -1;
        from = next;
    }
    return from;
}
/* Lengths that cut number `entries` of dim d can find. */
static Lengths lengths_before(const Mesh *m, const GTensor *t, const Layout *l, int d,
                              int entries) {
    if (d < t->nd) return lengths_after(m, l, d, entries, (Lengths){1, {t->size[d]}});
    Lengths all = {1, {1}}; /* LIST cuts the product of the letters of its stored dim */
    int first, rows = layout_list_letters(l, t->stored, &first);
    for (int k = first; k < first + rows; k++) {
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
static void add_run(Arena *arena, AxisParts *p, int k, int *cap, int64_t first, int part) {
    if (p->n_runs[k] && p->run[k][p->n_runs[k] - 1].part == part) return;
    *ARENA_PUSH(arena, p->run[k], p->n_runs[k], *cap) = (PartRun){first, part};
}
/* What cut number `entry` of a dim makes of the lengths that it can find. */
typedef struct {
    const Mesh *m;
    const Entry *e;
    const Lengths *in; /* n -1: nothing is known, every coordinate stands for itself */
} Pieces;
static bool same_pieces(const Pieces *x, int64_t a, int64_t b) {
    for (int i = 0; i < x->in->n; i++)
        if (layout_piece(x->m, x->e, x->in->v[i], a) != layout_piece(x->m, x->e, x->in->v[i], b))
            return false;
    return true;
}
static int64_t next_pieces(const Pieces *x, int64_t c) {
    int64_t next = x->in->n < 0 ? c + 1 : x->m->axis[x->e->axis].size;
    for (int i = 0; i < x->in->n; i++) {
        int64_t one = next_length(x->m, x->e, x->in->v[i], c);
        if (one < next) next = one;
    }
    return next;
}
/* Numbers the coordinates of place k by their pieces, in the order of their first ones. */
static void number(Arena *arena, AxisParts *p, int k, const Pieces *x) {
    int cap = 0, cap_runs = 0;
    int64_t size = x->m->axis[p->axes.a[k]].size;
    for (int64_t c = 0; c < size; c = next_pieces(x, c)) {
        int i = x->in->n < 0 ? -1 : p->n[k] - 1; /* neighbours are mostly alike */
        while (i >= 0 && !same_pieces(x, p->first[k][i], c)) i--;
        if (i < 0) {
            i = p->n[k];
            *ARENA_PUSH(arena, p->first[k], p->n[k], cap) = c;
        }
        add_run(arena, p, k, &cap_runs, c, i);
    }
}
/* Here, or not: the one or two coordinates where the value is, and all others. */
static void place_parts(Arena *arena, AxisParts *p, int k, int64_t size, const Layout *l) {
    int cap = 0, cap_runs = 0, axis = p->axes.a[k];
    bool two = layout_paired(l, axis);
    int64_t at = two ? l->pair[axis].low : l->at[axis], last = two ? l->pair[axis].high : at;
    const int64_t begins[] = {0, at, at + 1, last, last + 1};
    int part[2] = {-1, -1}; /* of those elsewhere, of those here */
    p->n[k] = 0;
    for (int i = 0; i < 5; i++) {
        int64_t c = begins[i];
        if (c >= size || (i && c < begins[i - 1])) continue;
        bool here = c == at || c == last;
        if (part[here] < 0) {
            part[here] = p->n[k];
            *ARENA_PUSH(arena, p->first[k], p->n[k], cap) = c;
        }
        add_run(arena, p, k, &cap_runs, c, part[here]);
    }
}
static void one_by_one(Arena *arena, AxisParts *p, int k, int64_t n);
/* Ranges of a buffer: those before a value, those with its ends, those inside, those behind. Where
 * more than one axis matters each coordinate stands for itself. */
static void flat_parts(Arena *arena, AxisParts *p, int k, const Mesh *m, const GTensor *t,
                       const Layout *l) {
    int64_t size = m->axis[p->axes.a[k]].size, N = 1, local[LAYOUT_MAX_DIMS];
    layout_local(m, l, t->size, layout_first(m, l), local);
    for (int d = 0; d < t->nd; d++) N *= local[d];
    if (l->n[t->nd] != 1 || p->axes.n != 1 || N < 1) {
        one_by_one(arena, p, k, size);
        return;
    }
    int64_t each = l->flat.total / size, a = l->flat.first / each,
            b = (l->flat.first + N - 1) / each;
    const int64_t from[] = {0, a, a + 1, b, b + 1};
    int cap = 0, cap_runs = 0;
    p->n[k] = 0;
    for (int i = 0; i < 5; i++) {
        bool again = false;
        for (int j = 0; j < i; j++) again |= from[j] == from[i];
        if (from[i] >= size || again) continue;
        *ARENA_PUSH(arena, p->first[k], p->n[k], cap) = from[i];
        add_run(arena, p, k, &cap_runs, from[i], p->n[k] - 1);
    }
}
AxisParts classes_of_value(Arena *arena, const Mesh *m, const GTensor *t, const Layout *l) {
    AxisParts p = {0};
    classes_uneven(m, t, l, &p.axes);
    for (int k = 0; k < p.axes.n; k++) {
        int axis = p.axes.a[k], d = 0, i = 0;
        bool found = false;
        if (l->type[axis] == TY_AT || layout_paired(l, axis)) {
            place_parts(arena, &p, k, m->axis[axis].size, l);
            continue;
        }
        for (int x = 0; x <= t->nd && !found; x++)
            for (int y = 0; y < l->n[x] && !found; y++)
                if (l->e[x][y].axis == axis) d = x, i = y, found = !l->e[x][y].ghost;
        if (d == t->nd && l->flat.total) {
            flat_parts(arena, &p, k, m, t, l);
            continue;
        }
        Lengths in = lengths_before(m, t, l, d, i);
        Pieces x = {m, &l->e[d][i], &in};
        for (int y = 0; y < l->n[d]; y++)
            if (l->e[d][y].ghost) in.n = -1;
        number(arena, &p, k, &x);
    }
    return p;
}
/* Parts of place k from the coordinates at which a run begins. */
static void one_by_one(Arena *arena, AxisParts *p, int k, int64_t n) {
    p->n[k] = p->n_runs[k] = (int)n;
    p->run[k] = arena_alloc(arena, base_mul((size_t)n, sizeof **p->run));
    p->first[k] = ARENA_ARRAY(arena, int64_t, n);
    for (int64_t c = 0; c < n; c++) {
        p->run[k][c] = (PartRun){c, (int)c};
        p->first[k][c] = c;
    }
}
AxisParts classes_even(Arena *arena, const AxisList *axes) {
    AxisParts p = {.axes = *axes};
    for (int k = 0; k < axes->n; k++) one_by_one(arena, &p, k, 1);
    return p;
}
AxisParts classes_apart(Arena *arena, const Mesh *m, const AxisList *axes) {
    AxisParts p = {.axes = *axes};
    for (int k = 0; k < axes->n; k++) one_by_one(arena, &p, k, m->axis[axes->a[k]].size);
    return p;
}
/* Place k of p cut further by place j of q: parts are pairs of parts. */
static void refine_axis(Arena *arena, AxisParts *p, int k, const AxisParts *q, int j) {
    AxisParts next = *p;
    int cap = 0, cap_runs = 0, a = 0, b = 0, cap_pairs = 0, n_pairs = 0, (*pair)[2] = NULL;
    next.n[k] = next.n_runs[k] = 0;
    next.run[k] = NULL;
    next.first[k] = NULL;
    for (int64_t c = 0; a < p->n_runs[k] && b < q->n_runs[j];) {
        int pa = p->run[k][a].part, qb = q->run[j][b].part, i = n_pairs - 1;
        while (i >= 0 && (pair[i][0] != pa || pair[i][1] != qb)) i--;
        if (i < 0) {
            i = n_pairs;
            int(*new)[2] = ARENA_PUSH(arena, pair, n_pairs, cap_pairs);
            (*new)[0] = pa;
            (*new)[1] = qb;
            *ARENA_PUSH(arena, next.first[k], next.n[k], cap) = c;
        }
        add_run(arena, &next, k, &cap_runs, c, i);
        int64_t end_a = a + 1 < p->n_runs[k] ? p->run[k][a + 1].first : INT64_MAX;
        int64_t end_b = b + 1 < q->n_runs[j] ? q->run[j][b + 1].first : INT64_MAX;
        c = end_a < end_b ? end_a : end_b;
        a += end_a == c;
        b += end_b == c;
    }
    *p = next;
}
void classes_refine(Arena *arena, AxisParts *p, const AxisParts *q) {
    for (int j = 0; j < q->axes.n; j++)
        for (int k = 0; k < p->axes.n; k++) {
            bool same = p->n_runs[k] == q->n_runs[j] &&
                        (p->run[k] == q->run[j] ||
                         !memcmp(p->run[k], q->run[j], (size_t)q->n_runs[j] * sizeof **q->run));
            if (p->axes.a[k] == q->axes.a[j] && q->n[j] > 1 && !same)
                refine_axis(arena, p, k, q, j);
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

/* ---- values that lie alike ---- */
typedef struct {
    const GTensor *t;
    Layout L;
    AxisParts parts;
    int next; /* in the chain of its slot; -1: the last */
} Alike;
typedef struct {
    AxisParts p;
    const bool *in;
    RankSet set;
} Known;
enum { SLOTS = 1024 };
struct RankSets {
    Arena *arena;
    const Mesh *m;
    int n, cap;
    Known *known;
    int n_alike, cap_alike, slot[SLOTS]; /* 1 + index of the first of a chain; 0: empty */
    Alike *alike;
};
RankSets *classes_sets(Arena *arena, const Mesh *m) {
    RankSets *s = ARENA_NEW(arena, RankSets);
    *s = (RankSets){.arena = arena, .m = m};
    return s;
}
static bool same_sizes(const GTensor *a, const GTensor *b) {
    return a->nd == b->nd && a->nstored == b->nstored &&
           !memcmp(a->size, b->size, sizeof *a->size * (size_t)a->nd) &&
           !memcmp(a->stored, b->stored, sizeof *a->stored * (size_t)a->nstored);
}
int classes_alike(RankSets *s, const GTensor *t, const Layout *l) {
    uint64_t h = layout_hash(l);
    for (int d = 0; d < t->nd; d++) h = (h ^ (uint64_t)t->size[d]) * 0x9fb21c651e98df25u;
    for (int d = 0; d < t->nstored; d++) h = (h ^ t->stored[d]) * 0x9fb21c651e98df25u;
    int *slot = &s->slot[(h ^ h >> 32) % SLOTS];
    for (int i = *slot - 1; i >= 0; i = s->alike[i].next)
        if (!memcmp(&s->alike[i].L, l, sizeof *l) && same_sizes(s->alike[i].t, t)) return i;
    Alike *x = ARENA_PUSH(s->arena, s->alike, s->n_alike, s->cap_alike);
    *x = (Alike){.t = t, .next = *slot - 1};
    memcpy(&x->L, l, sizeof *l); /* compared as bytes */
    x->parts = classes_of_value(s->arena, s->m, t, l);
    *slot = s->n_alike;
    return s->n_alike - 1;
}
const AxisParts *classes_parts(const RankSets *s, int alike) { return &s->alike[alike].parts; }
int classes_kinds(const RankSets *s) { return s->n_alike; }

/* ---- sets of ranks ---- */
static bool same_set(const Known *x, const AxisParts *p, const bool *in) {
    if (memcmp(&x->p.axes, &p->axes, sizeof p->axes) || memcmp(x->p.n, p->n, sizeof p->n))
        return false;
    if (memcmp(x->p.n_runs, p->n_runs, sizeof p->n_runs)) return false;
    if (memcmp(x->in, in, (size_t)classes_count(p) * sizeof *in)) return false;
    for (int k = 0; k < p->axes.n; k++)
        if (x->p.run[k] != p->run[k] &&
            memcmp(x->p.run[k], p->run[k], (size_t)p->n_runs[k] * sizeof **p->run))
            return false;
    return true;
}
/* Boxes of the marked combinations, axis by axis from the outermost of the mesh inwards. */
typedef struct {
    Arena *arena;
    const Mesh *m;
    const AxisParts *p;
    int place[MESH_MAX_AXES];    /* of each axis of the mesh in p->axes; -1: whole */
    int64_t step[MESH_MAX_AXES]; /* between the combinations of neighbouring parts, per place */
    RankBox box;
} Boxing;
typedef struct {
    RankBox *box;
    int n, cap;
} Boxes;
static bool same_inner(const Boxes *a, const Boxes *b, int from) {
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        for (int k = from; k < a->box[i].n; k++)
            if (a->box[i].side[k].first != b->box[i].side[k].first ||
                a->box[i].side[k].count != b->box[i].side[k].count)
                return false;
    return true;
}
/* The boxes that are left of axes a and further in, where `base` is the combination of the parts
 * chosen outside. Coordinates next to each other whose inner boxes are the same are one range. */
static Boxes box_axes(Boxing *b, int a, int64_t base, const bool *in) {
    Boxes all = {0};
    if (a == b->m->naxes) {
        if (in[base]) *ARENA_PUSH(b->arena, all.box, all.n, all.cap) = b->box;
        return all;
    }
    int k = b->place[a];
    if (k < 0) return box_axes(b, a + 1, base, in);
    Boxes *inner = ARENA_ARRAY(b->arena, Boxes, b->p->n[k]);
    int *first =
        ARENA_ARRAY(b->arena, int, b->p->n[k]); /* the first part with the same inner boxes */
    for (int j = 0; j < b->p->n[k]; j++) {
        inner[j] = box_axes(b, a + 1, base + j * b->step[k], in);
        first[j] = 0;
        while (!same_inner(&inner[first[j]], &inner[j], a + 1)) first[j]++;
    }
    const PartRun *run = b->p->run[k];
    for (int i = 0, n = b->p->n_runs[k]; i < n;) {
        int to = i + 1;
        const Boxes *one = &inner[first[run[i].part]];
        while (to < n && first[run[to].part] == first[run[i].part]) to++;
        for (int q = 0; q < one->n; q++) {
            RankBox *x = ARENA_PUSH(b->arena, all.box, all.n, all.cap);
            *x = one->box[q];
            x->side[a].first = run[i].first;
            x->side[a].count = (to < n ? run[to].first : b->m->axis[a].size) - run[i].first;
        }
        i = to;
    }
    return all;
}
RankBox classes_mesh(const Mesh *m) {
    RankBox b = {.n = m->naxes};
    for (int a = 0; a < m->naxes; a++)
        b.side[a] =
            (RankSide){m->axis[a].name, m->axis[a].size, m->axis[a].stride, 0, m->axis[a].size};
    return b;
}
static RankSet make_set(const RankSets *s, const AxisParts *p, const bool *in) {
    const Mesh *m = s->m;
    Boxing b = {.arena = arena_new(), .m = m, .p = p, .box = classes_mesh(m)};
    for (int a = 0; a < m->naxes; a++) b.place[a] = -1;
    int64_t step = 1;
    for (int k = p->axes.n - 1; k >= 0; k--) {
        b.place[p->axes.a[k]] = k;
        b.step[k] = step;
        step *= p->n[k];
    }
    Boxes all = box_axes(&b, 0, 0, in);
    RankSet set = rankset_boxes(s->arena, all.box, all.n);
    arena_free(b.arena);
    return set;
}
RankSet classes_ranks(RankSets *s, const AxisParts *p, const bool *in) {
    if (!p->axes.n) return rankset_range(s->arena, 0, s->m->nranks, 1);
    for (int i = 0; i < s->n; i++)
        if (same_set(&s->known[i], p, in)) return s->known[i].set;
    AxisParts keep = *p; /* the caller's may live shorter */
    for (int k = 0; k < p->axes.n; k++)
        keep.run[k] = arena_memdup(s->arena, p->run[k], (size_t)p->n_runs[k] * sizeof **p->run);
    Known *x = ARENA_PUSH(s->arena, s->known, s->n, s->cap);
    *x = (Known){keep, arena_memdup(s->arena, in, (size_t)classes_count(p) * sizeof *in),
                 make_set(s, p, in)};
    return x->set;
}
