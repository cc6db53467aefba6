/* Hypotheses as a table: each row predicts what a rank holds from what the ranks held before, and
 * says so in one sentence if the prediction comes true on every wrong rank that is looked at. Rows
 * stand in the order of evidence: a row that explains more with less comes first. What no row
 * explains gets a sentence that claims nothing. */
#include "exec/cause.h"
#include "exec/call.h"
#include "exec/compare.h"
#include "ops/op.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK = 8,
    GROUP = 64,
    SHIFT = 16
}; /* wrong ranks looked at; largest group and farthest block that is tried */

typedef struct Case {
    Exec *e;
    const Mesh *m;
    const Step *s; /* NULL: a source */
    const GTensor *t;
    Arena *arena, *tmp; /* of the sentence; of one question */
    int in, out;        /* values; in: -1 for a source */
    const void *full;   /* of a source */
    int64_t look[LOOK];
    int n_look;
    AxisList axes; /* of the move, or those that cut a source */
    int64_t n;
    const char *name; /* of the axes */
    Layout from, to;
    bool flat, sums, max, from_cut, to_cut, one; /* one: a single number */
    Dtype dt;
    double tol; /* of a sum's magnitude */
} Case;

/* What the rounding of a sum of n terms may come to, of its magnitude. */
static double rounding_of(const Case *c, int64_t n) {
    return c->dt == DT_I64 ? 0 : (double)(n + 8) * (c->dt == DT_F32 ? 0x1p-23 : 0x1p-52);
}

/* ---- what ranks hold, in double ---- */
/* A local tensor as doubles, packed. */
static Tensor wide(const Case *c, const Tensor *t, Dtype dt, bool magnitude) {
    Tensor w = *t;
    int64_t i[LAYOUT_MAX_DIMS] = {0}, n = tensor_count(t);
    tensor_pack(&w);
    double *x = arena_alloc(c->tmp, base_mul((size_t)(n ? n : 1), 8));
    for (int64_t k = 0; k < n; k++) {
        int64_t o = 0;
        for (int d = 0; d < t->nd; d++) o += i[d] * t->s[d];
        x[k] = compare_at(t->p, dt, o);
        if (magnitude) x[k] = fabs(x[k]);
        for (int d = t->nd - 1; d >= 0; d--) {
            if (++i[d] < t->n[d]) break;
            i[d] = 0;
        }
    }
    w.p = x;
    return w;
}
static Tensor held(const Case *c, int val, int64_t rank, bool magnitude) {
    return wide(c, &exec_local(c->e, val, rank)->t, exec_dtype(c->e, val), magnitude);
}
static Tensor filled(const Case *c, const Box *b, double v) {
    Tensor t = region_packed(b);
    int64_t n = tensor_count(&t);
    double *x = t.p = arena_alloc(c->tmp, base_mul((size_t)(n ? n : 1), 8));
    for (int64_t i = 0; i < n; i++) x[i] = v;
    return t;
}
static bool same_shape(const Tensor *a, const Tensor *b) {
    bool same = a->nd == b->nd;
    for (int d = 0; same && d < a->nd; d++) same = a->n[d] == b->n[d];
    return same;
}
static Tensor as_box(const Tensor *t, const Box *b) {
    Tensor r = region_packed(b);
    r.p = t->p;
    return tensor_count(&r) == tensor_count(t) ? r : *t;
}

/* ---- stories: how a rank could have come to its block ---- */
typedef enum { COPY, SUM, MAX } How;
typedef struct Story {
    AxisList over;  /* the group whose blocks meet; n = 0: the rank's own alone */
    AxisList place; /* whose coordinates say which part is cut; n = 0: the move's axes */
    How how;
    int64_t in, out; /* blocks come from the rank so many places before; the block of the rank so
                        many places after is delivered */
    int dim;         /* the dim that is cut instead; -1: as declared */
    int without;     /* member of the group whose term is left out; -1: none */
    bool plain;      /* contiguous cuts where the layout has another order */
    bool own_too;    /* and the own term once more */
    bool mean;       /* what comes out is divided by the number of terms */
} Story;
typedef struct Told { /* what the story says that a rank holds */
    Tensor x, mag;
} Told;

static void swap_dim(Layout *l, int axis, int dim) {
    int d = layout_where(l, axis);
    if (d < 0 || d == dim || dim >= l->ndim) return;
    layout_set_type(l, axis, TY_I);
    layout_cut(l, dim, axis, CUT_CHUNK);
}
static Layout changed(const Case *c, Layout l, const Story *y) {
    for (int i = 0; y->dim >= 0 && i < c->axes.n; i++) swap_dim(&l, c->axes.a[i], y->dim);
    for (int d = 0; y->plain && d <= l.ndim; d++)
        for (int k = 0; k < l.n[d]; k++) l.e[d][k].how = CUT_CHUNK;
    return l;
}
static int64_t modulo(int64_t a, int64_t n) { return (a % n + n) % n; }
static Told tell(const Case *c, const Story *y, int64_t rank) {
    Layout from = changed(c, c->from, y), to = changed(c, c->to, y);
    int64_t n = c->n, index = mesh_index_in(c->m, y->place.n ? &y->place : &c->axes, rank);
    Box tb =
        region_box(c->m, c->t, &to, mesh_member(c->m, &c->axes, rank, modulo(index + y->out, n)),
                   c->flat, c->tmp);
    Told told = {.x = filled(c, &tb, y->how == MAX ? -INFINITY : 0), .mag = filled(c, &tb, 0)};
    int64_t size = y->over.n ? mesh_size(c->m, &y->over) : 1,
            times = c->sums || !y->over.n ? size : n;
    for (int64_t i = 0; i < times + y->own_too; i++) {
        bool own = i == times || !y->over.n;
        if (i == y->without) continue;
        int64_t q = own ? rank : mesh_member(c->m, &y->over, rank, modulo(i - y->in, size));
        int64_t owner =
            own || c->sums ? rank
                           : mesh_member(c->m, &c->axes, rank, i); /* whose block it is taken for */
        Box sb = region_box(c->m, c->t, &from, owner, c->flat, c->tmp);
        Tensor x = held(c, c->in, q, false), mag = held(c, c->in, q, true);
        if (c->flat || y->dim >= 0) x = as_box(&x, &sb), mag = as_box(&mag, &sb);
        region_copy(&tb, &told.x, &sb, &x, DT_F64, y->how);
        region_copy(&tb, &told.mag, &sb, &mag, DT_F64, y->how == COPY ? 0 : 1);
    }
    return told;
}
/* got = factor * told, within the rounding of sums? */
static bool fits(const Case *c, const Tensor *got, const Told *told, double factor, double tol) {
    const double *g = got->p, *x = told->x.p, *mag = told->mag.p;
    for (int64_t i = 0; i < tensor_count(got); i++) {
        double err = fabs(g[i] - factor * x[i]),
               room = tol * fabs(factor) * fmax(mag[i], fabs(x[i]));
        if (!(err <= room + (c->dt == DT_F32 ? 0x1p-140 : 0)) && !(isinf(x[i]) && g[i] == x[i]))
            return false; /* NaN never */
    }
    return true;
}
/* Does the story explain every wrong rank that is looked at? */
static bool tells(Case *c, const Story *y) {
    bool all = c->n_look > 0;
    for (int i = 0; i < c->n_look && all; i++) {
        c->tmp = arena_new();
        Told told = tell(c, y, c->look[i]);
        Tensor got = held(c, c->out, c->look[i], false);
        all = y->dim >= 0 || c->flat ? tensor_count(&got) == tensor_count(&told.x)
                                     : same_shape(&got, &told.x);
        all = all && fits(c, &got, &told, y->mean ? 1 / (double)c->n : 1, c->tol);
        arena_free(c->tmp);
    }
    return all;
}
static Story truth(const Case *c) {
    Story y = {.dim = -1, .without = -1, .how = c->max ? MAX : c->sums ? SUM : COPY};
    if (c->sums || c->from_cut) y.over = c->axes;
    return y;
}
static const char *axes_text(const Case *c, const AxisList *l) {
    return mesh_axes_text(c->m, c->arena, l, true);
}
static bool has(const AxisList *l, int a) {
    for (int i = 0; i < l->n; i++)
        if (l->a[i] == a) return true;
    return false;
}
/* The axes of one list that are not in the other. */
static AxisList minus(const AxisList *a, const AxisList *b) {
    AxisList r = {0};
    for (int i = 0; i < a->n; i++)
        if (!has(b, a->a[i])) r.a[r.n++] = a->a[i];
    return r;
}
/* The i-th set of axes of more than one rank, in mesh order; false: there are no more. */
static bool axis_set(const Mesh *m, int i, AxisList *out) {
    int many[MESH_MAX_AXES], n = 0;
    for (int a = 0; a < m->naxes && n < 6; a++)
        if (m->axis[a].size > 1) many[n++] = a;
    *out = (AxisList){0};
    for (int k = 0; k < n; k++)
        if ((i + 1) >> k & 1) out->a[out->n++] = (uint8_t)many[k];
    return (i + 1) >> n == 0;
}

/* Below this relative difference two factors are the same. */
static double factor_tolerance(const Case *c) { return c->dt == DT_F32 ? 1e-3 : 1e-9; }

/* ---- hypotheses about moves ---- */
static const char *rounding(Case *c) {
    Story y = truth(c);
    double tol = c->tol;
    c->tol *= 16;
    bool fit = tells(c, &y);
    c->tol = tol;
    if (!fit) return NULL;
    return c->sums ? "it differs by no more than another rounding or another order of the sum "
                     "gives, and beyond its bound"
                   : "it differs in the last bits only: what only copies has changed the numbers";
}
static const char *nothing_summed(Case *c) {
    Story y = truth(c);
    y.over.n = 0;
    if (!c->sums || !tells(c, &y)) return NULL;
    if (c->max)
        return arena_printf(
            c->arena, "the maximum over %s is missing: each rank holds only that of its own part",
            c->name);
    if (c->to_cut)
        return arena_printf(c->arena,
                            "the sum over %s is missing: each rank keeps its slice of its own part "
                            "(a slice instead of a reduce-scatter)",
                            c->name);
    return arena_printf(c->arena,
                        "the sum over %s is missing: each rank passes on its own part, and the "
                        "parts add up to the right value",
                        c->name);
}
/* got = factor * right value, on all elements of all ranks that are looked at. */
static bool constant_factor(Case *c, double *factor) {
    Story y = truth(c);
    double k = NAN, top = 0, tol = factor_tolerance(c) / 10;
    int64_t most = 0;
    bool all = c->n_look > 0;
    for (int pass = 0; pass < 2 && all; pass++) {
        for (int i = 0; i < c->n_look && all; i++) {
            c->tmp = arena_new();
            Told told = tell(c, &y, c->look[i]);
            Tensor got = held(c, c->out, c->look[i], false);
            const double *w = told.x.p, *g = got.p;
            all = c->flat ? tensor_count(&got) == tensor_count(&told.x) : same_shape(&got, &told.x);
            for (int64_t j = 0; pass == 0 && all && j < tensor_count(&got); j++)
                if (fabs(w[j]) > top && isfinite(w[j])) top = fabs(w[j]), k = g[j] / w[j];
            if (pass && all)
                all = isfinite(k) &&
                      (k != 0 ? fits(c, &got, &told, k, tol) : fits(c, &got, &told, 0, 0));
            if (tensor_count(&got) > most) most = tensor_count(&got);
            arena_free(c->tmp);
        }
    }
    c->one = most <= 1;
    *factor = k;
    return all;
}
static bool near(const Case *c, double a, double b) {
    return fabs(a - b) <= factor_tolerance(c) * fabs(b);
}
/* A factor that is the size of some axes, or one over it. */
static const char *size_factor(Case *c, double k, const AxisList *l) {
    double n = (double)mesh_size(c->m, l);
    const char *which = axes_text(c, l);
    if (near(c, k, n))
        return arena_printf(c->arena,
                            "exactly %.0f times too large, and %s has that size: it is counted "
                            "once for each rank of %s",
                            n, which, which);
    if (near(c, k, 1 / n))
        return arena_printf(
            c->arena,
            "exactly 1/%.0f of the right value, and %s has that size: it is divided by it", n,
            which);
    return NULL;
}
static const char *a_factor(Case *c) {
    double k;
    AxisList l;
    const char *text = NULL;
    if (!constant_factor(c, &k)) return NULL;
    if (k == 0) return c->one ? "it is zero" : "it is zero everywhere: nothing arrives";
    if (near(c, k, (double)c->n) && c->n > 1 && c->sums && !c->max)
        return arena_printf(
            c->arena, "exactly %lld times too large: the sum over %s is counted on every rank",
            (long long)c->n, c->name);
    if (near(c, k, 1 / (double)c->n) && c->n > 1 && c->sums && !c->max)
        return arena_printf(c->arena,
                            "exactly 1/%lld of the right value: averaged over %s instead of summed",
                            (long long)c->n, c->name);
    for (int i = 0; !text && axis_set(c->m, i, &l); i++) text = size_factor(c, k, &l);
    if (text) return text;
    if (near(c, k, -1)) return "of the wrong sign";
    return c->one ? NULL : arena_printf(c->arena, "off by a constant factor of %.6g", k);
}
static const char *
one_number(Case *c) { /* the last resort for a scalar: a ratio of two numbers is little evidence */
    double k;
    return constant_factor(c, &k) && c->one ? arena_printf(c->arena, "off by a factor of %.6g", k)
                                            : NULL;
}
static const char *other_sum(Case *c, const AxisList *l) {
    AxisList lacks = minus(&c->axes, l), more = minus(l, &c->axes);
    const char *over = axes_text(c, l), *done = c->max ? "the maximum is taken" : "summed";
    if (!more.n)
        return arena_printf(c->arena, "%s over %s only: that over %s is missing", done, over,
                            axes_text(c, &lacks));
    if (!lacks.n)
        return arena_printf(c->arena,
                            "%s over %s, where only %s is due: the values of %s are added too",
                            done, over, c->name, axes_text(c, &more));
    return arena_printf(c->arena, "%s over %s instead of %s", done, over, c->name);
}
/* Another group: first a part of the right one, then groups of other axes. */
static const char *another_group(Case *c) {
    if (!c->sums) return NULL;
    for (int pass = 0; pass < 2; pass++) {
        AxisList l;
        for (int i = 0; axis_set(c->m, i, &l); i++) {
            AxisList lacks = minus(&c->axes, &l), more = minus(&l, &c->axes);
            if ((!lacks.n && !more.n) || (more.n > 0) != pass || mesh_size(c->m, &l) > GROUP)
                continue;
            Story y = truth(c);
            y.over = l;
            if (tells(c, &y)) return other_sum(c, &l);
        }
    }
    return NULL;
}
static const char *largest_term(Case *c) {
    Story y = truth(c);
    y.how = MAX;
    return c->sums && !c->max && tells(c, &y)
               ? arena_printf(c->arena,
                              "the largest of the parts of %s instead of their sum: a maximum",
                              c->name)
               : NULL;
}
static const char *added_for_max(Case *c) {
    Story y = truth(c);
    if (!c->max) return NULL;
    y.how = SUM;
    c->tol = rounding_of(c, c->n);
    const char *text = tells(c, &y) ? "the parts of %s are added where their maximum is due" : NULL;
    y.mean = true;
    if (!text && tells(c, &y))
        text = "the mean of the parts of %s is taken where their maximum is due";
    c->tol = 0;
    return text ? arena_printf(c->arena, text, c->name) : NULL;
}
static const char *own_part_twice(Case *c) {
    Story y = truth(c);
    y.own_too = true;
    return c->sums && !c->max && tells(c, &y)
               ? arena_printf(c->arena, "each rank's own part is counted twice in the sum over %s",
                              c->name)
               : NULL;
}
static const char *a_part_missing(Case *c) {
    Story y = truth(c);
    for (y.without = 0; c->sums && y.without < c->n && y.without < GROUP; y.without++)
        if (tells(c, &y))
            return arena_printf(c->arena,
                                "the part of one rank, number %d of %s, is not in the sum",
                                y.without, c->name);
    return NULL;
}
static const char *shifted_text(const Case *c, int64_t by, bool out) {
    if (!out)
        return arena_printf(c->arena,
                            "the blocks of %s stand in the wrong order: each where that of the "
                            "rank %lld after belongs",
                            c->name, (long long)by);
    if (by == 1)
        return arena_printf(c->arena, "it is the block of the next rank of %s, not the own",
                            c->name);
    return arena_printf(c->arena, "it is the block of the rank %lld after in %s, not the own",
                        (long long)by, c->name);
}
static const char *neighbours_block(Case *c) {
    for (int64_t k = 1; k < c->n && k <= SHIFT; k++)
        for (int out = c->from_cut ? 0 : 1; out <= c->to_cut; out++) {
            Story y = truth(c);
            y.out = out ? k : 0;
            y.in = out ? 0 : k;
            if (tells(c, &y)) return shifted_text(c, k, out);
            y.in = k; /* both: an exchange that reads and delivers one place off */
            if (out && c->from_cut && tells(c, &y)) return shifted_text(c, k, true);
        }
    return NULL;
}
static const char *gathers_elsewhere(Case *c) {
    AxisList l;
    for (int i = 0; c->from_cut && axis_set(c->m, i, &l); i++) {
        Story y = truth(c);
        y.over = l;
        if (mesh_size(c->m, &l) <= GROUP && minus(&l, &c->axes).n && tells(c, &y))
            return arena_printf(c->arena, "the blocks come from the ranks of %s instead of %s",
                                axes_text(c, &l), c->name);
    }
    return NULL;
}
static const char *cut_by_another(Case *c) {
    AxisList l;
    for (int i = 0; c->to_cut && !c->from_cut && axis_set(c->m, i, &l); i++) {
        Story y = truth(c);
        y.place = l;
        if (minus(&l, &c->axes).n && tells(c, &y))
            return arena_printf(
                c->arena, "each rank takes the part that its place in %s says, not that in %s",
                axes_text(c, &l), c->name);
    }
    return NULL;
}
static const char *dim_name(const Case *c, int letter) { /* the stored dim of a letter */
    int at = 0;
    for (int d = 0; d < c->t->nstored; at += c->t->stored[d++])
        if (letter < at + c->t->stored[d]) return arena_printf(c->arena, "dim %d", d);
    return "another dim";
}
static const char *another_dim(Case *c) {
    const Layout *cut = c->to_cut ? &c->to : &c->from;
    int right = c->axes.n ? layout_where(cut, c->axes.a[0]) : -1;
    for (int d = 0; !c->flat && right >= 0 && right < c->t->nd && d < c->t->nd; d++) {
        Story y = truth(c);
        y.dim = d;
        if (d == right || !tells(c, &y)) continue;
        if (c->to_cut)
            return arena_printf(c->arena, "%s is cut over %s, not %s: the block of another dim",
                                dim_name(c, d), c->name, dim_name(c, right));
        return arena_printf(c->arena, "the blocks are put together along %s, not %s",
                            dim_name(c, d), dim_name(c, right));
    }
    return NULL;
}
static const char *plain_order(Case *c) {
    Story y = truth(c);
    y.plain = true;
    return tells(c, &y) ? "its blocks lie in contiguous order where the layout has another (zigzag)"
                        : NULL;
}
static bool holds_tiles(Case *c,
                        int64_t rank) { /* the own block repeated until the shape is full */
    c->tmp = arena_new();
    Tensor own = held(c, c->in, rank, false), got = held(c, c->out, rank, false);
    const double *x = own.p, *g = got.p;
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    bool same = own.nd == got.nd && tensor_count(&own) > 0;
    for (int64_t k = 0; same && k < tensor_count(&got); k++) {
        int64_t o = 0;
        for (int d = 0; d < got.nd; d++) o += i[d] % own.n[d] * own.s[d];
        same = fabs(g[k] - x[o]) <= 0;
        for (int d = got.nd - 1; d >= 0; d--) {
            if (++i[d] < got.n[d]) break;
            i[d] = 0;
        }
    }
    arena_free(c->tmp);
    return same;
}
static const char *nothing_gathered(Case *c) {
    bool all = c->from_cut;
    for (int i = 0; i < c->n_look && all; i++) all = holds_tiles(c, c->look[i]);
    return all ? arena_printf(
                     c->arena,
                     "nothing is gathered over %s: each rank goes on with its own block, repeated",
                     c->name)
               : NULL;
}
static const char *nothing_cut(Case *c) { /* still all of what it was to be a part of */
    bool all = c->to_cut && !c->sums;
    for (int i = 0; i < c->n_look && all; i++) {
        c->tmp = arena_new();
        Tensor a = held(c, c->in, c->look[i], false), b = held(c, c->out, c->look[i], false);
        all =
            tensor_count(&a) == tensor_count(&b) && !memcmp(a.p, b.p, (size_t)tensor_count(&a) * 8);
        arena_free(c->tmp);
    }
    return all ? arena_printf(c->arena,
                              "nothing is cut over %s: each rank goes on with all that it had",
                              c->name)
               : NULL;
}
/* Sizes divided with the remainder thrown away: what lies behind n equal blocks is missing, and all
 * else is right. */
static const char *tail_dropped(Case *c) {
    const Layout *cut = c->to_cut ? &c->to : &c->from;
    int d = c->axes.n ? layout_where(cut, c->axes.a[0]) : -1;
    if (c->flat || d < 0 || d >= c->t->nd) return NULL;
    AxisList cutters = layout_dim_axes(cut, d);
    int64_t n = mesh_size(c->m, &cutters), whole = c->t->size[d] / n * n;
    bool all = whole < c->t->size[d];
    for (int i = 0; i < c->n_look && all; i++) {
        c->tmp = arena_new();
        Story y = truth(c);
        Told told = tell(c, &y, c->look[i]);
        int64_t k = 0, inner = 1;
        const int64_t *index = layout_index(c->m, &c->to, d, c->t->size[d], c->look[i], &k, c->tmp);
        for (int j = d + 1; j < c->t->nd; j++)
            inner *= layout_dim_size(c->m, &c->to, j, c->t->size[j], c->look[i]);
        double *x = told.x.p;
        for (int64_t j = 0; k && j < tensor_count(&told.x); j++)
            if (index[j / inner % k] >= whole) x[j] = 0;
        Tensor got = held(c, c->out, c->look[i], false);
        all = same_shape(&got, &told.x) && fits(c, &got, &told, 1, c->tol);
        arena_free(c->tmp);
    }
    return all ? arena_printf(c->arena,
                              "the last %lld of %lld are missing: %lld does not divide them, and "
                              "the rest was dropped",
                              (long long)(c->t->size[d] - whole), (long long)c->t->size[d],
                              (long long)n)
               : NULL;
}
static const char *unknown(const Case *c) {
    if (c->max)
        return arena_printf(
            c->arena, "the parts of %s have the right maximum, what arrives is another", c->name);
    if (c->sums)
        return arena_printf(c->arena,
                            "the parts of %s add up to the right value, what arrives is another",
                            c->name);
    return arena_printf(c->arena, "what arrives is not the block that the layout claims over %s",
                        c->name);
}

/* In the order of evidence. */
static const char *(*const of_moves[])(Case *) = {
    rounding,          nothing_summed, nothing_gathered, nothing_cut,    a_factor,    another_group,
    largest_term,      added_for_max,  neighbours_block, tail_dropped,   plain_order, another_dim,
    gathers_elsewhere, cut_by_another, own_part_twice,   a_part_missing, one_number,
};

/* ---- the cases ---- */
/* The wrong ranks that are looked at: spread over all that are wrong. */
static void choose(Case *c, const double *wrong) {
    int64_t bad = 0, k = 0, next = 0;
    for (int64_t r = 0; r < c->m->nranks; r++) bad += !wrong || wrong[r] >= 0;
    for (int64_t r = 0; r < c->m->nranks && c->n_look < LOOK; r++) {
        if (wrong && wrong[r] < 0) continue;
        if (bad <= LOOK || k == next) {
            c->look[c->n_look++] = r;
            next = bad * c->n_look / LOOK;
        }
        k++;
    }
}
static Case new_case(Arena *arena, Exec *e, const Step *s, int out, const double *wrong) {
    Case c = {.e = e,
              .m = e->p->mesh,
              .s = s,
              .t = &e->p->graph->t[e->p->val[out].tensor],
              .arena = arena,
              .in = -1,
              .out = out,
              .n = 1};
    c.dt = exec_dtype(e, out);
    choose(&c, wrong);
    return c;
}
static const char *cause_of_claim(Arena *arena, const Program *p, const Step *s, const char *axes,
                                  int64_t n) {
    int tf = s->move.axes.n ? s->move.from.type[s->move.axes.a[0]] : TY_I;
    if (tf == TY_M)
        return arena_printf(
            arena, "the maximum over %s is missing: each rank holds only that of its own part",
            axes);
    if (tf == TY_P)
        return arena_printf(arena, "the sum over %s is missing: each rank holds only its own part",
                            axes);
    if (s->move.axes.n && s->move.to.type[s->move.axes.a[0]] == TY_P)
        return arena_printf(
            arena,
            "it is whole on every rank and taken for a share: the sum over %s counts it %lld times",
            axes, (long long)n);
    const char *lies = program_symbolic(p, &p->val[s->in[0]], arena),
               *said = program_symbolic(p, &p->val[s->out], arena);
    if (strcmp(lies, said))
        return arena_printf(arena, "the label is false: it lies as %s and is taken for %s", lies,
                            said);
    return "the label is false: blocks in contiguous order are taken for zigzag ones, or the other "
           "way round";
}
/* Into a pending sum: the shares must add up to the value. */
static const char *cause_of_spread(Case *c) {
    Story y = truth(c);
    y.over.n = 0;
    if (tells(c, &y))
        return arena_printf(
            c->arena,
            "it is whole on every rank instead of on one: the sum over %s counts it %lld times",
            c->name, (long long)c->n);
    return arena_printf(c->arena, "the shares of %s do not add up to the value", c->name);
}
const char *cause_of_move(Arena *arena, Exec *e, const Step *s, const double *wrong) {
    Case c = new_case(arena, e, s, s->out, wrong);
    int a0 = s->move.axes.n ? s->move.axes.a[0] : 0, tf = s->move.from.type[a0],
        tt = s->move.to.type[a0];
    c.in = s->in[0];
    c.axes = s->move.axes;
    c.n = mesh_size(c.m, &c.axes);
    c.name = program_axes_name(e->p, s, arena);
    if (s->kind == ST_CLAIM) return cause_of_claim(arena, e->p, s, c.name, c.n);
    c.from = s->move.from, c.to = s->move.to;
    c.flat = region_is_flat(&c.from, &c.to);
    c.sums = tf == TY_P || tf == TY_M, c.max = tf == TY_M;
    c.from_cut = tf == TY_V, c.to_cut = tt == TY_V;
    c.tol = c.sums && !c.max ? rounding_of(&c, c.n) : 0;
    if (tt == TY_P) return cause_of_spread(&c);
    for (size_t i = 0; i < sizeof of_moves / sizeof *of_moves; i++) {
        const char *text = of_moves[i](&c);
        if (text) return text;
    }
    return unknown(&c);
}

/* ---- ops: the kernel again, on the rank's own inputs ---- */
typedef enum { AS_PLANNED, LOCAL, CONTIGUOUS } Positions;
static const struct {
    char letter;
    const char *what;
} counted[] = {{'t', "positions are"},
               {'s', "positions are"},
               {'u', "positions are"},
               {'v', "ids of the vocabulary are"}};
static const char *what_is_counted(const OpCall *call) {
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (call->op->asks & RULE_BIT(counted[i].letter)) return counted[i].what;
    return "indices are";
}
static void set_positions(const Case *c, OpCall *call, Positions how, int64_t rank) {
    for (int k = 0; how == LOCAL && k < 26; k++) call->index[k] = NULL;
    if (how == CONTIGUOUS) call_contiguous(c->e, c->s, rank, call, c->tmp);
}
/* What the op gives on the rank's own inputs; x.p NULL if it cannot run. Its rounding is what two
 * orders of one sum differ by. */
static Told computes(const Case *c, Positions how, int64_t rank, OpCall *call) {
    Told told = {0};
    if (!call_make(c->e, c->s, rank, call, c->tmp)) return told;
    set_positions(c, call, how, rank);
    call->out.p = arena_alloc(c->tmp, base_mul((size_t)tensor_count(&call->out) + 1, 8));
    if (c->s->kind == ST_ADJOINT)
        call->op->adjoint(call);
    else
        call->op->forward(call);
    told.x = wide(c, &call->out, c->e->dtype, false);
    told.mag = wide(c, &call->out, c->e->dtype, true);
    return told;
}
static bool computed(Case *c, Positions how, double factor, double tol) {
    bool all = c->n_look > 0;
    for (int i = 0; i < c->n_look && all; i++) {
        OpCall call;
        c->tmp = arena_new();
        Told told = computes(c, how, c->look[i], &call);
        Tensor got = held(c, c->out, c->look[i], false);
        all = told.x.p && tensor_count(&got) == tensor_count(&told.x) &&
              fits(c, &got, &told, factor, tol);
        arena_free(c->tmp);
    }
    return all;
}
static const char *from_its_inputs(Case *c) {
    return computed(c, AS_PLANNED, 1, 0) ? "it is what the op gives on the rank's own inputs, but "
                                           "ranks that should hold the same inputs do not"
                                         : NULL;
}
static const char *op_rounding(Case *c) {
    return computed(c, AS_PLANNED, 1, c->tol * 16)
               ? "it differs by no more than rounding from what the op gives, on some ranks only: "
                 "another kernel or order"
               : NULL;
}
static const char *counted_here(Case *c) {
    const Op *op = c->e->p->graph->node[c->s->node].op;
    OpCall asks = {.op = op};
    if (!op->asks) return NULL;
    if (computed(c, LOCAL, 1, c->tol * 16))
        return arena_printf(c->arena,
                            "%s counted from 0 on each rank: local where global ones are due",
                            what_is_counted(&asks));
    if (computed(c, CONTIGUOUS, 1, c->tol * 16))
        return arena_printf(
            c->arena, "%s those of contiguous blocks, and the data lie in another order (zigzag)",
            what_is_counted(&asks));
    return NULL;
}
static bool op_factor(Case *c, double *k) {
    double top = 0;
    int64_t most = 0;
    *k = NAN;
    for (int i = 0; i < c->n_look; i++) {
        OpCall call;
        c->tmp = arena_new();
        Told told = computes(c, AS_PLANNED, c->look[i], &call);
        Tensor got = held(c, c->out, c->look[i], false);
        const double *w = told.x.p, *g = got.p;
        for (int64_t j = 0;
             w && j < tensor_count(&got) && tensor_count(&got) == tensor_count(&told.x); j++)
            if (fabs(w[j]) > top) top = fabs(w[j]), *k = g[j] / w[j];
        if (tensor_count(&got) > most) most = tensor_count(&got);
        arena_free(c->tmp);
    }
    c->one = most <= 1;
    return isfinite(*k) && computed(c, AS_PLANNED, *k, *k != 0 ? factor_tolerance(c) / 10 : 0);
}
static const char *op_is_scaled(Case *c) {
    double k;
    AxisList l;
    const char *text = NULL;
    if (!op_factor(c, &k)) return NULL;
    if (k == 0) return "it is zero everywhere: nothing arrives";
    for (int i = 0; !text && axis_set(c->m, i, &l); i++) text = size_factor(c, k, &l);
    if (text) return text;
    return near(c, k, -1)
               ? "of the wrong sign"
               : arena_printf(
                     c->arena,
                     c->one ? "off by a factor of %.6g" : "off by a constant factor of %.6g", k);
}
static const char *not_applied(Case *c) { /* an operand goes through as it is */
    int r[RULE_MAX_IN + 2], n = step_reads(c->s, r);
    for (int k = 0; k < n; k++) {
        bool all = c->n_look > 0;
        for (int i = 0; i < c->n_look && all; i++) {
            c->tmp = arena_new();
            Tensor a = held(c, r[k], c->look[i], false), b = held(c, c->out, c->look[i], false);
            all = tensor_count(&a) == tensor_count(&b) &&
                  !memcmp(a.p, b.p, (size_t)tensor_count(&a) * 8);
            arena_free(c->tmp);
        }
        const char *label = c->e->p->graph->node[c->s->node].label;
        if (all)
            return arena_printf(c->arena,
                                "its input goes through unchanged: the op (%s) is not applied",
                                label ? label : "?");
    }
    return NULL;
}
static const char *(*const of_ops[])(Case *) = {from_its_inputs, op_rounding, counted_here,
                                                not_applied, op_is_scaled};
const char *cause_of_op(Arena *arena, Exec *e, const Step *s, const double *wrong) {
    Case c = new_case(arena, e, s, s->out, wrong);
    c.tol = rounding_of(&c, 0);
    for (size_t i = 0; i < sizeof of_ops / sizeof *of_ops; i++) {
        const char *text = of_ops[i](&c);
        if (text) return text;
    }
    return "a rank's part is not what the op gives on the ranks' own inputs: positions, order or "
           "the kernel";
}

/* ---- a sum of two values ---- */
static bool is_sum(Case *c, double a, double b) {
    bool all = c->n_look > 0;
    for (int i = 0; i < c->n_look && all; i++) {
        c->tmp = arena_new();
        Told told = {held(c, c->s->in[0], c->look[i], false),
                     held(c, c->s->in[0], c->look[i], true)};
        Tensor y = held(c, c->s->in[1], c->look[i], false),
               got = held(c, c->out, c->look[i], false);
        double *x = told.x.p, *mag = told.mag.p;
        all = tensor_count(&told.x) == tensor_count(&y) && tensor_count(&got) == tensor_count(&y);
        for (int64_t k = 0; all && k < tensor_count(&y); k++) {
            mag[k] = fabs(a) * mag[k] + fabs(b * ((double *)y.p)[k]);
            x[k] = a * x[k] + b * ((double *)y.p)[k];
        }
        all = all && fits(c, &got, &told, 1, c->tol);
        arena_free(c->tmp);
    }
    return all;
}
const char *cause_of_sum(Arena *arena, Exec *e, const Step *s, const double *wrong) {
    static const struct {
        double a, b;
        const char *text;
    } rows[] = {
        {1, 1,
         "it is the sum of the rank's own terms, but ranks that should hold the same terms do not"},
        {1, 0, "the second of its two terms is missing"},
        {0, 1, "the first of its two terms is missing"},
        {2, 1, "the first of its two terms is counted twice"},
        {1, 2, "the second of its two terms is counted twice"},
        {1, -1, "one of its two terms has the wrong sign"},
        {0.5, 0.5, "the mean of its two terms instead of their sum"}};
    Case c = new_case(arena, e, s, s->out, wrong);
    c.tol = rounding_of(&c, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_sum(&c, rows[i].a, rows[i].b)) return rows[i].text;
    return "the terms do not add up";
}

/* ---- inputs and parameters at rest ---- */
/* The part of the source that another layout, or another rank, would have. */
static bool is_part(Case *c, const Layout *L, int64_t by) {
    bool all = c->n_look > 0, flat = region_is_flat(L, NULL);
    Layout none = layout_whole(c->m, c->t->nd, TY_I);
    for (int i = 0; i < c->n_look && all; i++) {
        c->tmp = arena_new();
        Box wb = region_box(c->m, c->t, &none, 0, flat, c->tmp);
        if (flat) wb.d[0] = (DimIndex){true, 0, wb.n[0], NULL};
        int64_t rank = c->look[i], place = modulo(mesh_index_in(c->m, &c->axes, rank) + by, c->n);
        Box lb = region_box(c->m, c->t, L, mesh_member(c->m, &c->axes, rank, place), flat, c->tmp);
        Tensor src = region_packed(&wb), x = filled(c, &lb, 0), got = held(c, c->out, rank, false);
        src.p = (void *)(uintptr_t)c->full;
        src = wide(c, &src, c->dt, false);
        region_copy(&lb, &x, &wb, &src, DT_F64, 0);
        all = tensor_count(&x) == tensor_count(&got) &&
              !memcmp(x.p, got.p, (size_t)tensor_count(&x) * 8);
        arena_free(c->tmp);
    }
    return all;
}
static AxisList cutting_axes(const Mesh *m, const Layout *l) {
    AxisList r = {0};
    for (int a = 0; a < m->naxes; a++)
        if (layout_where(l, a) >= 0 && m->axis[a].size > 1) r.a[r.n++] = (uint8_t)a;
    return r;
}
/* Ranks whose layout says that they hold one block, and who hold different ones: over which axes?
 */
static const char *copies_differ(Case *c) {
    AxisList over = {0};
    const Layout *L = &c->e->p->val[c->out].L;
    for (int a = 0; a < c->m->naxes; a++) {
        bool differ = false;
        if (layout_where(L, a) >= 0 || c->m->axis[a].size == 1) continue;
        for (int i = 0; i < c->n_look && !differ; i++) {
            AxisList one = {1, {(uint8_t)a}};
            c->tmp = arena_new();
            for (int64_t k = 0; k < c->m->axis[a].size && k < GROUP && !differ; k++) {
                Tensor x = held(c, c->out, c->look[i], false),
                       y = held(c, c->out, mesh_member(c->m, &one, c->look[i], k), false);
                differ = tensor_count(&x) != tensor_count(&y) ||
                         memcmp(x.p, y.p, (size_t)tensor_count(&x) * 8) != 0;
            }
            arena_free(c->tmp);
        }
        if (differ) over.a[over.n++] = (uint8_t)a;
    }
    return over.n ? arena_printf(c->arena,
                                 "the ranks of %s should hold the same and hold different data",
                                 axes_text(c, &over))
                  : NULL;
}
static const char *other_rank(Case *c) {
    for (int64_t k = 1; k < c->n && k < GROUP; k++)
        if (is_part(c, &c->from, k))
            return arena_printf(c->arena,
                                k == 1 ? "each rank holds the block of the next rank of %s"
                                       : "each rank holds the block of another rank of %s",
                                c->name);
    return NULL;
}
static const char *
other_nesting(Case *c) { /* a dim cut by several axes, cut by them in another order */
    Layout L = c->from;
    const char *axes = NULL;
    for (int d = 0; d <= L.ndim; d++)
        for (int k = 0; k < L.n[d] / 2; k++) {
            AxisList l = layout_dim_axes(&c->from, d);
            Entry x = L.e[d][k];
            axes = axes_text(c, &l);
            L.e[d][k] = L.e[d][L.n[d] - 1 - k];
            L.e[d][L.n[d] - 1 - k] = x;
        }
    return axes && is_part(c, &L, 0) ? arena_printf(c->arena,
                                                    "its rows are those of another order of the "
                                                    "axes than %s: cut by the inner one first",
                                                    axes)
                                     : NULL;
}
static const char *other_order(Case *c) {
    Story plain = {.dim = -1, .plain = true};
    Layout L = changed(c, c->from, &plain);
    return is_part(c, &L, 0)
               ? "it is cut into contiguous blocks where the layout has another order (zigzag)"
               : NULL;
}
static const char *other_dim(Case *c) {
    int right = c->axes.n == 1 ? layout_where(&c->from, c->axes.a[0]) : -1;
    for (int d = 0; right >= 0 && right < c->t->nd && d < c->t->nd; d++) {
        Layout L = c->from;
        swap_dim(&L, c->axes.a[0], d);
        if (d != right && is_part(c, &L, 0))
            return arena_printf(c->arena, "%s is cut over %s, not %s: the block of another dim",
                                dim_name(c, d), c->name, dim_name(c, right));
    }
    return NULL;
}
static const char *(*const of_sources[])(Case *) = {other_nesting, other_rank, other_order,
                                                    other_dim, copies_differ};
const char *cause_of_source(Arena *arena, Exec *e, int val, const void *full, const double *wrong) {
    Case c = new_case(arena, e, NULL, val, wrong);
    c.from = c.to = e->p->val[val].L;
    c.axes = cutting_axes(c.m, &c.from);
    c.n = mesh_size(c.m, &c.axes);
    c.name = mesh_axes_text(c.m, arena, &c.axes, true);
    c.full = full;
    for (size_t i = 0; i < sizeof of_sources / sizeof *of_sources; i++) {
        const char *text = of_sources[i](&c);
        if (text) return text;
    }
    return "the shard is not the part of the source that its layout claims";
}
