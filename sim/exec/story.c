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
static StoryBlock block_of(const Tensor *t, Dtype dt) {
    StoryBlock b = {.there = true, .t = *t, .packed = *t, .dt = dt, .n = tensor_count(t)};
    tensor_pack(&b.packed);
    for (int d = 0; d < t->nd; d++) b.strided |= t->n[d] > 1 && t->s[d] != b.packed.s[d];
    return b;
}
StoryBlock story_open(const StoryCase *c, int val, int64_t rank) {
    const Local *l = exec_local(c->e, val, rank);
    if (!l) return (StoryBlock){0}; /* it lives elsewhere */
    return story_open_tensor(c, &l->t, exec_dtype(c->e, val));
}
StoryBlock story_open_tensor(const StoryCase *c, const Tensor *t, Dtype dt) {
    Tensor host = c->e->dev->get(c->e->dev, t, dt);
    return block_of(&host, dt);
}
void story_close(const StoryCase *c, StoryBlock *b) {
    if (b->there) c->e->dev->done(c->e->dev, &b->t);
    b->there = false;
}
double story_read(const StoryBlock *b, int64_t i) {
    if (!b->strided) return compare_at(b->t.p, b->dt, i);
    int64_t o = 0;
    for (int d = 0; d < b->t.nd; d++) o += i / b->packed.s[d] % b->t.n[d] * b->t.s[d];
    return compare_at(b->t.p, b->dt, o);
}
bool story_same_number(double x, double y) { return !memcmp(&x, &y, sizeof x); }
bool story_same(const StoryBlock *a, const StoryBlock *b) {
    bool same = a->there && b->there && a->n == b->n;
    for (int64_t i = 0; i < a->n && same; i++)
        same = story_same_number(story_read(a, i), story_read(b, i));
    return same;
}
bool story_same_shape(const Tensor *a, const Tensor *b) {
    bool same = a->nd == b->nd;
    for (int d = 0; same && d < a->nd; d++) same = a->n[d] == b->n[d];
    return same;
}
/* ---- a block in slices ---- */
/* Of dim d only n positions from i on. */
static void narrow_dim(Region *r, int d, int64_t i, int64_t n) {
    if (r->d[d].range) r->d[d].lo += i;
    else r->d[d].list += i;
    r->d[d].n = r->n[d] = n;
}
int64_t story_slice_size(int64_t n) {
    return n / STORY_SLICES > STORY_SLICE ? n / STORY_SLICES : STORY_SLICE;
}
Region story_slice(const Region *r, int64_t from) {
    Region part = *r;
    int64_t inner = 1;
    for (int d = 0; d < r->nd; d++) inner *= r->n[d];
    const int64_t most = story_slice_size(inner);
    for (int d = 0; d < r->nd && inner > most; d++) {
        inner /= r->n[d];
        const int64_t i = from / inner % r->n[d], rows = inner > most ? 1 : most / inner;
        narrow_dim(&part, d, i, r->n[d] - i < rows ? r->n[d] - i : rows);
    }
    return part;
}
static double *filled(const StoryCase *c, int64_t n, double v) {
    double *x = arena_alloc(c->tmp, base_mul((size_t)(n ? n : 1), 8));
    for (int64_t i = 0; i < n && v != 0; i++) x[i] = v; /* else zeros they are */
    return x;
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
static int64_t tidy(double *id, int64_t n) {
    int64_t kept = 0;
    qsort(id, (size_t)n, sizeof *id, compare_ids);
    for (int64_t i = 0; i < n; i++)
        if (!i || id[i] > id[i - 1]) id[kept++] = id[i];
    return kept;
}
/* What a piece gives of a slice of the block, added to what is there. */
static void tell_piece(const StoryCase *c, const StoryTelling *w, const Piece *one) {
    if (!exec_local(c->e, c->in, one->rank)) return; /* it has nothing to give */
    Arena *tmp = arena_new();
    StoryBlock held = story_open(c, c->in, one->rank);
    Region at = pieces_from(&w->x, one, tmp);
    Tensor part = w->y.act.dim >= 0 ? region_shaped(&at, &held.t) : held.t;
    /* another rank's block may be shorter than the one that it is taken for */
    if (part.nd == at.nd) region_clamp(&at, part.n);
    const Region meet = region_meet(&w->part, &at, tmp);
    Tensor near = region_packed(&meet), wide = near, to = region_packed(&w->part), mag = to;
    const int64_t n = tensor_count(&near);
    near.p = arena_alloc(tmp, base_mul((size_t)(n ? n : 1), (size_t)dtype_size(held.dt)));
    double *x = wide.p = arena_alloc(tmp, base_mul((size_t)(n ? n : 1), 8));
    to.p = w->told.x, mag.p = w->told.mag;
    region_copy((Block){&meet, &near}, (Block){&at, &part}, held.dt, COMBINE_COPY);
    for (int64_t i = 0; i < n; i++) x[i] = compare_at(near.p, held.dt, i);
    region_copy((Block){&w->part, &to}, (Block){&meet, &wide}, DT_F64, w->how);
    for (int64_t i = 0; i < n; i++) x[i] = fabs(x[i]);
    region_copy((Block){&w->part, &mag}, (Block){&meet, &wide}, DT_F64,
                w->how == COMBINE_COPY ? COMBINE_COPY : COMBINE_SUM);
    story_close(c, &held);
    arena_free(tmp);
}
StoryTelling story_begin(const StoryCase *c, const Story *y, int64_t rank) {
    StoryTelling w = {.x = story_pieces(c, y), .y = *y, .rank = rank};
    w.to = pieces_to(&w.x, rank, c->tmp);
    w.how = pieces_combine(&w.x, rank);
    w.shape = region_packed(&w.to);
    w.n = tensor_count(&w.shape);
    return w;
}
bool story_next(const StoryCase *c, StoryTelling *w) {
    /* what is read in another order, or sorted, is read as a whole */
    const bool whole = w->y.act.counts || graph_is_list(c->t);
    const int64_t from = w->told.from + w->told.n;
    if (w->begun && (whole || from >= w->n)) return false;
    w->begun = true;
    arena_free(w->tmp);
    StoryCase one = *c;
    one.tmp = w->tmp = arena_new();
    w->part = whole ? w->to : story_slice(&w->to, from);
    Tensor x = region_packed(&w->part);
    const int64_t size = tensor_count(&x), n = pieces_count(&w->x, w->rank);
    w->told = (StoryTold){.from = from, .n = size};
    w->told.x = filled(&one, size, w->how == COMBINE_MAX ? -INFINITY : 0);
    w->told.mag = filled(&one, size, 0);
    for (int64_t i = 0; i < n + w->y.own_too; i++) {
        if (i == w->y.without) continue;
        Piece piece = piece_told(&w->x, &w->y, w->rank, i, n);
        if (!pieces_absent(&w->x, w->rank, &piece)) tell_piece(&one, w, &piece);
    }
    x.p = w->told.x;
    if (w->y.act.counts) counts_misread(device_plain(), &w->x, w->rank, &w->part, &x, DT_F64);
    if (w->y.act.floor) transfer_drop_tail(device_plain(), &w->x, &w->part, &x, DT_F64);
    if (graph_is_list(c->t)) w->told.n = w->n = w->shape.n[0] = tidy(x.p, size);
    return true;
}
void story_end(StoryTelling *w) {
    arena_free(w->tmp);
    w->tmp = NULL;
}
/* Is the value held in bf16? */
static bool narrow(const StoryCase *c) { return c->e->narrow && c->e->narrow[c->out]; }
bool story_fits(const StoryCase *c, double got, double told, double mag, StoryFit how) {
    const double room = how.tol * fabs(how.factor) * fmax(mag, fabs(told)), due = how.factor * told;
    if (narrow(c) && got >= bf16_of_double(due - room) && got <= bf16_of_double(due + room))
        return true;
    return fabs(got - due) <= room + (c->dt == DT_F32 ? 0x1p-140 : 0) ||
           (isinf(told) && got == told);
}
bool story_tells_at(StoryCase *c, const Story *y, int64_t rank, StoryFit how) {
    c->tmp = arena_new();
    StoryTelling w = story_begin(c, y, rank);
    StoryBlock got = story_open(c, c->out, rank);
    bool all = got.there;
    while (all && story_next(c, &w)) {
        all = y->act.dim >= 0 ? got.n == w.n : story_same_shape(&got.t, &w.shape);
        for (int64_t i = 0; i < w.told.n && all; i++)
            all = story_fits(c, story_read(&got, w.told.from + i), w.told.x[i], w.told.mag[i], how);
    }
    story_close(c, &got);
    story_end(&w);
    arena_free(c->tmp);
    return all;
}
/* Does the story explain every wrong rank that is looked at? */
bool story_tells(StoryCase *c, const Story *y) {
    bool all = c->n_look > 0;
    StoryFit how = {y->act.scale / (y->act.combine == COMBINE_AVG ? (double)c->n : 1), c->tol};
    for (int i = 0; i < c->n_look && all; i++) all = story_tells_at(c, y, c->look[i], how);
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
/* Positions of what is in rows, of both sides and of what they share, and slices of numbers. */
int64_t cause_need(const Exec *e, const Step *s, int out) {
    enum { EACH = 48, COPIES = 3 };
    const GTensor *t = &e->p->graph->t[e->p->val[out].tensor];
    const Store *store = exec_store(e, out);
    int64_t block = 0, bytes;
    for (int k = 0; k < store->n; k++) {
        const int64_t n = tensor_count(&store->l[k].t);
        if (n > block) block = n;
    }
    bytes = story_slice_size(block) * EACH;
    if (t->listed) bytes += block * EACH;
    if (s && (s->kind == ST_OP || s->kind == ST_ADJOINT))
        bytes += block * dtype_size(exec_dtype(e, out)); /* the op is run again */
    if (e->dev != e->host) bytes += block * dtype_size(exec_dtype(e, out)) * COPIES;
    return bytes;
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
