/* What ranks hold, and what they would hold if a story about a step were true. It judges nothing:
 * which stories are tried, and in what order, is in cause.c and its neighbours. */
#include "exec/story.h"
#include "exec/compare.h"
#include "exec/counts.h"
#include "exec/transfer.h"
#include "kernel/bf16.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
/* What the rounding of a sum of n terms may come to, of its magnitude. */
double story_rounding(const StoryCase *c, int64_t n) {
    return c->dt == DT_I64 ? 0 : (double)(n + 8) * (c->dt == DT_F32 ? 0x1p-23 : 0x1p-52);
}

/* ---- what ranks hold, in double ---- */
/* A local tensor as doubles, packed. */
Tensor story_wide(const StoryCase *c, const Tensor *t, Dtype dt, bool magnitude) {
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
Tensor story_held(const StoryCase *c, int val, int64_t rank, bool magnitude) {
    Device *dev = c->e->dev;
    Dtype dt = exec_dtype(c->e, val);
    const Local *l = exec_local(c->e, val, rank);
    if (!l) return (Tensor){0}; /* it lives elsewhere */
    Tensor host = dev->get(dev, &l->t, dt);
    Tensor held = story_wide(c, &host, dt, magnitude);
    dev->done(dev, &host);
    return held;
}
Tensor story_filled(const StoryCase *c, const Region *b, double v) {
    Tensor t = region_packed(b);
    int64_t n = tensor_count(&t);
    double *x = t.p = arena_alloc(c->tmp, base_mul((size_t)(n ? n : 1), 8));
    for (int64_t i = 0; i < n; i++) x[i] = v;
    return t;
}
bool story_same_shape(const Tensor *a, const Tensor *b) {
    bool same = a->nd == b->nd;
    for (int d = 0; same && d < a->nd; d++) same = a->n[d] == b->n[d];
    return same;
}
/* ---- stories: how a rank could have come to its block ---- */

Layout story_plain(Layout l) {
    for (int d = 0; d <= l.ndim; d++)
        for (int k = 0; k < l.n[d]; k++) l.e[d][k].how = CUT_CHUNK;
    return l;
}
Pieces story_pieces(const StoryCase *c, const Story *y) {
    Pieces x = pieces_of_run(c->e, c->s, &y->act);
    if (y->plain) x.from = story_plain(x.from), x.to = story_plain(x.to);
    return x;
}
/* Piece i of the n that the block of `rank` is made from; behind them stands the rank's own. */
static Piece piece_told(const Pieces *x, const Story *y, int64_t rank, int64_t i, int64_t n) {
    if (i >= n) return (Piece){rank, rank};
    Piece one = pieces_at(x, rank, i);
    if (y->turn) one.rank = pieces_at(x, rank, (i - y->turn % n + n) % n).rank;
    return one;
}
static int compare_ids(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
/* An index list as a rank holds it: each row once, ascending, whatever arrived. */
static void tidy(Tensor *t) {
    double *id = t->p;
    int64_t n = t->n[0], kept = 0;
    qsort(id, (size_t)n, sizeof *id, compare_ids);
    for (int64_t i = 0; i < n; i++)
        if (!i || id[i] > id[i - 1]) id[kept++] = id[i];
    t->n[0] = kept;
}
StoryTold story_tell(const StoryCase *c, const Story *y, int64_t rank) {
    Pieces x = story_pieces(c, y);
    Region to = pieces_to(&x, rank, c->tmp);
    Combine how = pieces_combine(&x, rank);
    StoryTold told = {.x = story_filled(c, &to, how == COMBINE_MAX ? -INFINITY : 0),
                      .mag = story_filled(c, &to, 0)};
    int64_t n = pieces_count(&x, rank);
    for (int64_t i = 0; i < n + y->own_too; i++) {
        if (i == y->without) continue;
        Piece one = piece_told(&x, y, rank, i, n);
        if (!exec_local(c->e, c->in, one.rank)) continue; /* it has nothing to give */
        if (pieces_absent(&x, rank, &one)) continue;
        Region at = pieces_from(&x, &one, c->tmp);
        Tensor part = story_held(c, c->in, one.rank, false),
               mag = story_held(c, c->in, one.rank, true);
        if (y->act.dim >= 0) part = region_shaped(&at, &part), mag = region_shaped(&at, &mag);
        region_copy((Block){&to, &told.x}, (Block){&at, &part}, DT_F64, how);
        region_copy((Block){&to, &told.mag}, (Block){&at, &mag}, DT_F64,
                    how == COMBINE_COPY ? COMBINE_COPY : COMBINE_SUM);
    }
    if (y->act.counts) counts_misread(device_plain(), &x, rank, &to, &told.x, DT_F64);
    if (y->act.floor) transfer_drop_tail(device_plain(), &x, &to, &told.x, DT_F64);
    if (graph_is_list(c->t)) tidy(&told.x);
    return told;
}
/* Is the value held in bf16? */
static bool narrow(const StoryCase *c) { return c->e->narrow && c->e->narrow[c->out]; }
/* got = factor * told, within the rounding of sums? In bf16: is it what one rounding of that makes?
 */
bool story_fits(const StoryCase *c, const Tensor *got, const StoryTold *told, double factor,
                double tol) {
    const double *g = got->p, *x = told->x.p, *mag = told->mag.p;
    if (tensor_count(got) && (!g || !x || !mag)) return false; /* a rank that holds nothing */
    for (int64_t i = 0; i < tensor_count(got); i++) {
        double err = fabs(g[i] - factor * x[i]),
               room = tol * fabs(factor) * fmax(mag[i], fabs(x[i]));
        if (narrow(c) && g[i] >= bf16_of_double(factor * x[i] - room) &&
            g[i] <= bf16_of_double(factor * x[i] + room))
            continue;
        if (!(err <= room + (c->dt == DT_F32 ? 0x1p-140 : 0)) && !(isinf(x[i]) && g[i] == x[i]))
            return false; /* NaN never */
    }
    return true;
}
/* Does the story explain every wrong rank that is looked at? */
bool story_tells(StoryCase *c, const Story *y) {
    bool all = c->n_look > 0;
    for (int i = 0; i < c->n_look && all; i++) {
        c->tmp = arena_new();
        StoryTold told = story_tell(c, y, c->look[i]);
        Tensor got = story_held(c, c->out, c->look[i], false);
        all = y->act.dim >= 0 ? tensor_count(&got) == tensor_count(&told.x)
                              : story_same_shape(&got, &told.x);
        double factor = y->act.scale / (y->act.combine == COMBINE_AVG ? (double)c->n : 1);
        all = all && story_fits(c, &got, &told, factor, c->tol);
        arena_free(c->tmp);
    }
    return all;
}
Story story_truth(const StoryCase *c) {
    return (Story){.act = act_declared(&c->s->move), .without = -1};
}
const char *story_axes(const StoryCase *c, const AxisList *l) {
    return mesh_axes_text(c->m, c->arena, l, true);
}
static bool has(const AxisList *l, int a) {
    for (int i = 0; i < l->n; i++)
        if (l->a[i] == a) return true;
    return false;
}
/* The axes of one list that are not in the other. */
AxisList story_minus(const AxisList *a, const AxisList *b) {
    AxisList r = {0};
    for (int i = 0; i < a->n; i++)
        if (!has(b, a->a[i])) r.a[r.n++] = a->a[i];
    return r;
}
/* The i-th set of axes of more than one rank, in mesh order; false: there are no more. */
bool story_axis_set(const Mesh *m, int i, AxisList *out) {
    int many[MESH_MAX_AXES], n = 0;
    for (int a = 0; a < m->naxes && n < 6; a++)
        if (m->axis[a].size > 1) many[n++] = a;
    *out = (AxisList){0};
    for (int k = 0; k < n; k++)
        if ((i + 1) >> k & 1) out->a[out->n++] = (uint8_t)many[k];
    return (i + 1) >> n == 0;
}

/* Below this relative difference two factors are the same; ten of one rounding of bf16 at least. */
double story_factor_tolerance(const StoryCase *c) {
    return narrow(c) ? 5e-2 : c->dt == DT_F32 ? 1e-3 : 1e-9;
}

bool story_near(const StoryCase *c, double a, double b) {
    return fabs(a - b) <= story_factor_tolerance(c) * fabs(b);
}
void story_sets_add(StorySets *sets, const AxisList *l) {
    if (sets->n < STORY_SETS) sets->a[sets->n] = *l;
    sets->n++;
}
const char *story_sets_text(const StoryCase *c, const StorySets *sets, const char *between) {
    const char *text = sets->n ? story_axes(c, &sets->a[0]) : "";
    for (int i = 1; i < sets->n && i < STORY_SETS; i++)
        text = arena_printf(c->arena, "%s%s%s", text, between, story_axes(c, &sets->a[i]));
    return sets->n > STORY_SETS ? arena_printf(c->arena, "%s%sothers", text, between) : text;
}
/* A factor that is the size of some axes, or one over it. */
const char *story_size_factor(StoryCase *c, double k) {
    StorySets sets = {0};
    AxisList l;
    double n = k > 1 ? k : 1 / k;
    for (int i = 0; story_axis_set(c->m, i, &l); i++)
        if (story_near(c, n, (double)mesh_size(c->m, &l))) story_sets_add(&sets, &l);
    if (!sets.n) return NULL;
    n = round(n);
    const char *which = story_sets_text(c, &sets, " or "),
               *all = story_sets_text(c, &sets, " and "), *have = sets.n > 1 ? "have" : "has";
    if (k > 1)
        return arena_printf(c->arena,
                            "exactly %.0f times too large, and %s %s that size: it is counted "
                            "once for each rank of %s",
                            n, all, have, which);
    return arena_printf(
        c->arena, "exactly 1/%.0f of the right value, and %s %s that size: it is divided by %s", n,
        all, have, sets.n > 1 ? "one of them" : "it");
}
const char *story_dim_name(const StoryCase *c, int letter) { /* the stored dim of a letter */
    int at = 0;
    for (int d = 0; d < c->t->nstored; at += c->t->stored[d++])
        if (letter < at + c->t->stored[d]) return arena_printf(c->arena, "dim %d", d);
    return "another dim";
}
/* ---- the cases ---- */
/* The wrong ranks that are looked at: spread over all that are wrong. */
static void choose(StoryCase *c, const double *wrong) {
    int64_t bad = 0, k = 0, next = 0;
    for (int64_t r = 0; r < c->m->nranks; r++) bad += !wrong || wrong[r] >= 0;
    for (int64_t r = 0; r < c->m->nranks && c->n_look < STORY_LOOK; r++) {
        if (wrong && wrong[r] < 0) continue;
        if (bad <= STORY_LOOK || k == next) {
            c->look[c->n_look++] = r;
            next = bad * c->n_look / STORY_LOOK;
        }
        k++;
    }
}
StoryCase story_case(Arena *arena, Exec *e, const Step *s, int out, const double *wrong) {
    StoryCase c = {.e = e,
                   .m = e->p->mesh,
                   .s = s,
                   .t = &e->p->graph->t[e->p->val[out].tensor],
                   .arena = arena,
                   .in = -1,
                   .out = out,
                   .n = 1};
    c.dt = exec_dtype(e, out);
    if (!e->dev->sizes_only) choose(&c, wrong); /* sizes tell no story */
    return c;
}
