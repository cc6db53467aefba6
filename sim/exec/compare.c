/* Element by element, and the first, the largest and the worst of the differences. */
#include "exec/compare.h"
#include "exec/far.h"
#include "kernel/errors.h"
#include "ops/util.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double compare_at(const void *p, Dtype d, int64_t i) {
    return d == DT_F32   ? (double)((const float *)p)[i]
           : d == DT_F64 ? ((const double *)p)[i]
                         : (double)((const int64_t *)p)[i];
}
bool compare_agrees(const Mesh *m, const AxisList *fixed, int64_t a, int64_t b) {
    for (int i = 0; i < fixed->n; i++)
        if (mesh_coord(m, a, fixed->a[i]) != mesh_coord(m, b, fixed->a[i])) return false;
    return true;
}

Compare compare_new(const Exec *e, Arena *arena, const Step *s, int val, CheckLevel level) {
    const Program *p = e->p;
    Compare m;
    memset(&m, 0, sizeof m);
    const Val *v = &p->val[val];
    m.e = e;
    m.rec.step = s ? s->id : -1;
    m.rec.pass = s ? s->pass : PHASE_PARAMETERS;
    m.rec.value = program_value_name(p, v, arena);
    m.rec.level = level;
    m.rec.verdict = "PASS";
    return m;
}
void compare_ranks(Compare *m) {
    if (m->rank_error) return;
    int64_t n = m->e->p->mesh->nranks;
    m->rank_error = base_malloc(base_mul((size_t)n, sizeof *m->rank_error));
    for (int64_t r = 0; r < n; r++) m->rank_error[r] = -1;
}
void compare_no_numbers(Compare *m, int64_t rank) {
    compare_ranks(m);
    m->rank_error[rank] = INFINITY;
    m->failed = true;
    m->rec.verdict = "FAIL";
    m->rec.max_abs = m->rec.used = INFINITY;
}
/* The stored global index of element i of a local block. */
static void stored_index(const GTensor *t, const Region *b, int64_t i, TraceCheck *rec) {
    int64_t letter[LAYOUT_MAX_DIMS], at[LAYOUT_MAX_DIMS];
    for (int d = b->nd - 1; d >= 0; d--) {
        int64_t k = b->n[d] ? i % b->n[d] : 0;
        if (b->n[d]) i /= b->n[d];
        at[d] = k;
        letter[d] = b->d[d].range ? b->d[d].lo + k : b->d[d].list[k];
    }
    rec->n_index = t->nstored;
    if (t->listed) { /* expert, sequence, position, and the place in the row */
        rec->n_index = t->nd;
        for (int d = b->nd - 1; d > 0; d--) rec->index[d + t->listed - 1] = letter[d];
        for (int d = t->listed - 1; d >= 0; d--) {
            rec->index[d] = letter[0] % t->size[d];
            letter[0] /= t->size[d];
        }
        return;
    }
    /* an outer list may hold the letters of several stored dims */
    for (int d = 0, l = 0; d < t->nstored; d++) {
        rec->index[d] = 0;
        for (int n = t->stored[d]; n > 0; n--, l++)
            rec->index[d] = rec->index[d] * t->size[l] + region_letter(b, l, at[region_dim(b, l)]);
    }
}

/* ---- one rank's block ---- */
/* No number in both is the same, and beyond the range infinity is what the dtype has: where either
 * first comes from is told of the run (E0504), and what follows from it is no second mistake. */
static bool is_same(double x, double want, Dtype dt) {
    if (isnan(want)) return isnan(x);
    return x == want || (isinf(x) && dt == DT_F32 && (double)(float)want == x);
}
/* One element: what is there, what must be, how far apart they may be. */
typedef struct {
    double got, want, bound, prob;
    bool equal;
} Pair;
static void see(CompareSeen *s, const CompareBlock *b, int64_t i, Pair x) {
    const double g = x.got, w = x.want, bound = x.bound, prob = x.prob;
    const bool equal = x.equal;
    /* nothing is known where rounding could have made any number; none at all is told (E0504) */
    double err = equal || isinf(bound) ? 0 : fabs(g - w);
    bool bad = !equal && (b->bits || !(err <= bound)), odd = !equal && !bad && !(err <= prob);
    if (isnan(err)) err = INFINITY, bad = true;
    if (err > s->max_abs) s->max_abs = err;
    if (w != 0 && err / fabs(w) > s->max_rel) s->max_rel = err / fabs(w);
    double used = !bad && err == 0 ? 0 : bound > 0 ? err / bound : INFINITY;
    if (used > s->used || (used == s->used && bound > s->bound)) s->used = used, s->bound = bound;
    s->odd |= odd;
    if (!bad) return;
    if (err > s->worst) s->worst = err;
    if (s->first >= 0) return;
    s->first = i;
    s->got = g;
    s->want = w;
}
/* n elements from element `at` of the block on, g against those from `from` on, that all lie within
 * their bounds, seen at once by the vector units; false, and nothing seen, if one does not. */
static bool see_many(CompareSeen *s, const CompareBlock *b, int64_t n, const char *g, int64_t from,
                     int64_t at) {
    const double *w = (const double *)b->want.p + from;
    const float *g32 = (const float *)(const void *)g;
    const double *g64 = (const double *)(const void *)g;
    const ErrorFactors *f = b->factors;
    ErrorTop top = {s->max_abs, s->max_rel, s->used, s->bound};
    bool within = false;
    if (b->dt == DT_F32)
        within = f ? errors_factored_f32(n, g32, w, at, f, &top)
                   : errors_within_f32(n, g32, w, b->bound + from, b->prob + from, &top);
    if (b->dt == DT_F64)
        within = f ? errors_factored_f64(n, g64, w, at, f, &top)
                   : errors_within_f64(n, g64, w, b->bound + from, b->prob + from, &top);
    if (within)
        s->max_abs = top.abs, s->max_rel = top.rel, s->used = top.used, s->bound = top.bound;
    return within;
}
/* What element `at` of the block, wanted at offset o, may err by. */
static double bound_of(const CompareBlock *b, int64_t at, int64_t o) {
    return b->factors ? errors_bound(b->factors, at) : b->bound ? b->bound[o] : 0;
}
static double prob_of(const CompareBlock *b, int64_t at, int64_t o) {
    return b->factors ? errors_prob(b->factors, at) : b->prob ? b->prob[o] : 0;
}
/* n elements from element `at` of the block on: there, and where they must be the same, each with
 * the distance from one to the next. */
typedef struct {
    int64_t at, n;
    const char *got;
    int64_t step, want, want_step; /* want: offset in elements */
} Row;
static void see_row(CompareSeen *s, const CompareBlock *b, const Row *row) {
    enum { PIECE = 1024 };
    const int64_t at = row->at, n = row->n, step = row->step, ow = row->want,
                  wstep = row->want_step;
    const char *g = row->got;
    int64_t es = dtype_size(b->dt);
    const char *raw = (const char *)b->want.p + ow * es;
    if (b->bits && step == 1 && wstep == 1 && !memcmp(g, raw, (size_t)(n * es))) return;
    const double *want = b->want.p;
    for (int64_t k0 = 0; k0 < n; k0 += PIECE) {
        int64_t m = n - k0 < PIECE ? n - k0 : PIECE;
        if (!b->bits && (b->bound || b->factors) && step == 1 && wstep == 1 &&
            see_many(s, b, m, g + k0 * es, ow + k0, at + k0))
            continue;
        for (int64_t k = k0; k < k0 + m; k++) {
            int64_t o = ow + k * wstep;
            double x = compare_at(g, b->dt, k * step);
            if (b->bits)
                see(s, b, at + k,
                    (Pair){x, compare_at(b->want.p, b->dt, o), 0, 0,
                           !memcmp(g + k * step * es, raw + k * wstep * es, (size_t)es)});
            else
                see(s, b, at + k,
                    (Pair){x, want[o], bound_of(b, at + k, o), prob_of(b, at + k, o),
                           is_same(x, want[o], b->dt)});
        }
    }
}

/* ---- rows shared by the workers ---- */
enum { ROWS_SMALL = 1 << 15, ROWS_TASKS = 16 };
typedef struct {
    const CompareBlock *b;
    int nd; /* dims of both tensors, neighbours joined where they lie side by side in both; the last
               one is a row */
    int64_t n[LAYOUT_MAX_DIMS + 1], got[LAYOUT_MAX_DIMS + 1], want[LAYOUT_MAX_DIMS + 1];
    int64_t rows, per_task;
    CompareSeen *seen; /* per task */
} RowJob;
static RowJob rows_of(const CompareBlock *b, CompareSeen *seen) {
    RowJob j = {.b = b, .nd = 0, .rows = 1, .seen = seen};
    const Tensor *g = &b->got, *w = &b->want;
    for (int d = 0; d < g->nd; d++) {
        if (g->n[d] == 1) continue;
        bool join =
            j.nd && j.got[j.nd - 1] == g->n[d] * g->s[d] && j.want[j.nd - 1] == g->n[d] * w->s[d];
        if (!join) j.n[j.nd++] = 1;
        j.n[j.nd - 1] *= g->n[d];
        j.got[j.nd - 1] = g->s[d];
        j.want[j.nd - 1] = w->s[d];
    }
    if (!j.nd) j.n[0] = j.got[0] = j.want[0] = 1, j.nd = 1;
    if (j.nd == 1 && j.n[0] > ROWS_SMALL && j.n[0] % ROWS_TASKS == 0) { /* a row for each task */
        j.n[1] = j.n[0] / ROWS_TASKS, j.got[1] = j.got[0], j.want[1] = j.want[0];
        j.n[0] = ROWS_TASKS, j.got[0] *= j.n[1], j.want[0] *= j.n[1];
        j.nd = 2;
    }
    for (int d = 0; d < j.nd - 1; d++) j.rows *= j.n[d];
    return j;
}
static void row_task(void *arg, int64_t task) {
    const RowJob *j = arg;
    const CompareBlock *b = j->b;
    int outer = j->nd - 1;
    int64_t first = task * j->per_task,
            last = first + j->per_task < j->rows ? first + j->per_task : j->rows;
    int64_t i[LAYOUT_MAX_DIMS + 1] = {0}, k = first;
    for (int d = outer - 1; d >= 0; d--) {
        i[d] = k % j->n[d];
        k /= j->n[d];
    }
    for (int64_t r = first; r < last; r++) {
        int64_t og = 0, ow = 0;
        for (int d = 0; d < outer; d++) og += i[d] * j->got[d], ow += i[d] * j->want[d];
        Row row = {.at = r * j->n[outer],
                   .n = j->n[outer],
                   .got = (const char *)b->got.p + og * dtype_size(b->dt),
                   .step = j->got[outer],
                   .want = ow,
                   .want_step = j->want[outer]};
        see_row(&j->seen[task], b, &row);
        box_next(outer, j->n, i);
    }
}
static CompareSeen nothing_seen(void) { return (CompareSeen){.first = -1}; }
/* What two looks at different elements of a block saw together. */
static void seen_join(CompareSeen *all, const CompareSeen *s) {
    all->max_abs = fmax(all->max_abs, s->max_abs);
    all->max_rel = fmax(all->max_rel, s->max_rel);
    if (s->used > all->used || (s->used == all->used && s->bound > all->bound))
        all->used = s->used, all->bound = s->bound;
    all->worst = fmax(all->worst, s->worst);
    all->odd |= s->odd;
    if (s->first >= 0 && (all->first < 0 || s->first < all->first))
        all->first = s->first, all->got = s->got, all->want = s->want;
    if (!s->nd_shape) return;
    all->nd_shape = s->nd_shape, all->nd_due = s->nd_due;
    memcpy(all->shape, s->shape, sizeof s->shape);
    memcpy(all->due, s->due, sizeof s->due);
}
CompareSeen compare_rows(const CompareBlock *b, Pool *pool) {
    CompareSeen part[ROWS_TASKS], all = nothing_seen();
    int64_t n = tensor_count(&b->got);
    if (!n) return all;
    RowJob j = rows_of(b, part);
    j.per_task = j.rows;
    if (pool && n > ROWS_SMALL) j.per_task = (j.rows + ROWS_TASKS - 1) / ROWS_TASKS;
    int64_t tasks = (j.rows + j.per_task - 1) / j.per_task;
    for (int64_t t = 0; t < tasks; t++) part[t] = nothing_seen();
    if (tasks > 1) pool_run(pool, tasks, row_task, &j);
    else row_task(&j, 0);
    for (int64_t t = 0; t < tasks; t++) seen_join(&all, &part[t]);
    return all;
}

/* ---- blocks of the whole ---- */
static bool shape_is(const Tensor *t, const Region *b) {
    if (t->nd != b->nd) return false;
    for (int d = 0; d < b->nd; d++)
        if (t->n[d] != b->n[d]) return false;
    return true;
}
/* The part of a whole array that box lb names: a view where its indices are ranges, else a copy
 * (*copy, the caller frees). */
static Tensor part_of(const Whole *w, const void *from, Dtype dt, const Region *lb, void **copy) {
    Tensor src = region_packed(w->box), out;
    src.p = (void *)(uintptr_t)from;
    *copy = NULL;
    if (region_view(lb, w->box, &src, dt, &out)) return out;
    out = region_packed(lb);
    int64_t n = tensor_count(&out);
    out.p = *copy = base_malloc(base_mul((size_t)(n ? n : 1), (size_t)dtype_size(dt)));
    region_copy((Block){lb, &out}, (Block){w->box, &src}, dt, COMBINE_COPY);
    return out;
}
/* The dims from `first` to `end` of a region. */
static Region dims_of(const Region *r, int first, int end) {
    Region x = {.nd = end - first};
    for (int d = first; d < end; d++) x.d[d - first] = r->d[d], x.n[d - first] = r->n[d];
    return x;
}
/* The magnitudes of those positions that lb has; in `arena`. */
static double *magnitudes_of(const double *from, const Region *box, const Region *lb,
                             Arena *arena) {
    Tensor src = region_packed(box), out = region_packed(lb);
    src.p = (void *)(uintptr_t)from;
    out.p = arena_alloc(arena, base_mul((size_t)tensor_count(&out) + 1, sizeof *from));
    region_copy((Block){lb, &out}, (Block){box, &src}, DT_F64, COMBINE_COPY);
    return out.p;
}
/* The bounds of the part of the whole that box lb names. */
static const ErrorFactors *factors_of(const Whole *w, const Region *lb, Arena *arena) {
    const int k = w->outer, nd = w->box->nd;
    assert(!lb->outer && !w->box->outer && lb->nd == nd && k > 0 && k < nd);
    const Region rows = dims_of(w->box, 0, k), cols = dims_of(w->box, k, nd),
                 own_rows = dims_of(lb, 0, k), own_cols = dims_of(lb, k, nd);
    ErrorFactors *f = arena_memdup(arena, &w->factors, sizeof w->factors);
    f->row = magnitudes_of(f->row, &rows, &own_rows, arena);
    f->col = magnitudes_of(f->col, &cols, &own_cols, arena);
    f->cols = 1;
    for (int d = 0; d < own_cols.nd; d++) f->cols *= own_cols.n[d];
    return f;
}
Region compare_due(const Compare *m, int val, const Layout *L, int64_t rank, const Region *box,
                   Arena *arena) {
    const Program *p = m->e->p;
    const GTensor *t = &p->graph->t[p->val[val].tensor];
    if (!t->listed) return region_at(p->mesh, t, L, rank, arena);
    DimIndex rows = region_inside(p->mesh, t, L, rank, &box->d[0], arena);
    return region_rows(p->mesh, t, L, rank, rows, arena);
}
/* What was seen of one local, whoever looked. */
typedef struct CompareLook {
    CompareSeen seen;
    int64_t count; /* elements; -1: its shape is not that of its layout */
} Look;
/* Of a block those elements that lie in the part of the whole; false: none does. */
static bool cut_to(const Whole *w, Dtype dt, Tensor *got, Region *lb) {
    int d = w->part - 1;
    const DimIndex *box = &w->box->d[d];
    assert(lb->d[d].range && box->range);
    int64_t lo = lb->d[d].lo > box->lo ? lb->d[d].lo : box->lo,
            hi = lb->d[d].lo + lb->n[d] < box->lo + box->n ? lb->d[d].lo + lb->n[d]
                                                           : box->lo + box->n;
    if (hi <= lo) return false;
    got->p = (char *)got->p + (lo - lb->d[d].lo) * got->s[d] * dtype_size(dt);
    got->n[d] = lb->n[d] = lb->d[d].n = hi - lo;
    lb->d[d].lo = lo;
    return true;
}
/* The place in the block of element i of its part `cut`. */
static int64_t place_in(const Region *lb, const Region *cut, int64_t i) {
    int64_t at = 0, n = 1;
    for (int d = lb->nd - 1; d >= 0; d--) {
        int64_t k = i % cut->n[d];
        if (lb->d[d].range) k += cut->d[d].lo - lb->d[d].lo;
        at += k * n;
        i /= cut->n[d];
        n *= lb->n[d];
    }
    return at;
}
/* Has a block that is elsewhere the bits of its part of the whole? */
static bool same_far(const Compare *m, int val, const Tensor *got, const Region *lb,
                     const Whole *w) {
    if (!w->raw.p || far_rank(m->e, got) < 0) return false;
    Tensor whole = region_packed(w->box), due = region_packed(lb);
    Dtype dt = exec_dtype(m->e, val);
    whole.p = w->raw.p;
    due.p = base_malloc(base_mul((size_t)tensor_count(&due) + 1, (size_t)dtype_size(dt)));
    region_copy((Block){lb, &due}, (Block){w->box, &whole}, dt, COMBINE_COPY);
    bool same = far_same(m->e, got, &due, dt);
    free(due.p);
    return same;
}
/* Another shape than is due: both. */
static Look of_another_shape(const Tensor *got, const Region *due) {
    Look x = {nothing_seen(), -1};
    x.seen.nd_shape = got->nd, x.seen.nd_due = due->nd;
    for (int d = 0; d < got->nd; d++) x.seen.shape[d] = got->n[d];
    for (int d = 0; d < due->nd; d++) x.seen.due[d] = due->n[d];
    return x;
}
static Look look_at(const Compare *m, int val, const Layout *L, int64_t rank, const Whole *w) {
    Arena *tmp = arena_new();
    Region all = compare_due(m, val, L, rank, w->box, tmp), lb = all;
    Tensor got = exec_local(m->e, val, rank)->t;
    Dtype dt = exec_dtype(m->e, val);
    Look x = shape_is(&got, &all) ? (Look){nothing_seen(), 0} : of_another_shape(&got, &all);
    if (!x.count && same_far(m, val, &got, &lb, w)) x.count = tensor_count(&got);
    else if (!x.count && (!w->part || cut_to(w, dt, &got, &lb))) {
        Tensor host = m->e->dev->get(m->e->dev, &got, dt);
        CompareBlock b = {.got = host, .dt = dt, .bits = w->raw.p != NULL};
        void *copy[3] = {0};
        b.want = part_of(w, b.bits ? w->raw.p : w->want, b.bits ? b.dt : DT_F64, &lb, &copy[0]);
        if (w->factors.row && !b.bits) b.factors = factors_of(w, &lb, tmp);
        else if (w->bound && !b.bits) {
            b.bound = part_of(w, w->bound, DT_F64, &lb, &copy[1]).p;
            b.prob = part_of(w, w->prob, DT_F64, &lb, &copy[2]).p;
        }
        x = (Look){compare_rows(&b, m->e->pool), tensor_count(&got)};
        if (w->part && x.seen.first >= 0) x.seen.first = place_in(&all, &lb, x.seen.first);
        for (int k = 0; k < 3; k++) free(copy[k]);
        m->e->dev->done(m->e->dev, &host);
    }
    arena_free(tmp);
    return x;
}
bool compare_note(Compare *m, int val, const Layout *L, int64_t rank, const CompareSeen *s,
                  int64_t count) {
    if (count < 0) {
        if (!m->rec.n_shape) { /* of the first wrong rank */
            m->rec.n_shape = s->nd_shape, m->rec.n_due = s->nd_due;
            memcpy(m->rec.shape, s->shape, sizeof *s->shape * (size_t)s->nd_shape);
            memcpy(m->rec.due, s->due, sizeof *s->due * (size_t)s->nd_due);
        }
        compare_no_numbers(m, rank);
        return false;
    }
    m->rec.count += count;
    m->rec.max_abs = fmax(m->rec.max_abs, s->max_abs);
    m->rec.max_rel = fmax(m->rec.max_rel, s->max_rel);
    if (s->used > m->rec.used || (s->used == m->rec.used && s->bound > m->rec.bound))
        m->rec.used = s->used, m->rec.bound = s->bound;
    if (s->first < 0) {
        if (s->odd && m->rec.verdict[0] == 'P') m->rec.verdict = "SUSPECT";
        return true;
    }
    compare_ranks(m);
    m->rank_error[rank] = fmax(m->rank_error[rank], s->worst);
    if (m->rec.verdict[0] != 'F') { /* of the first wrong rank */
        const Program *p = m->e->p;
        const GTensor *t = &p->graph->t[p->val[val].tensor];
        Arena *tmp = arena_new();
        Region lb =
            t->listed ? region_of(m->e, val, rank, tmp) : region_at(p->mesh, t, L, rank, tmp);
        stored_index(t, &lb, s->first, &m->rec);
        arena_free(tmp);
        m->rec.got = s->got;
        m->rec.want = s->want;
    }
    m->failed = true;
    m->rec.verdict = "FAIL";
    return false;
}

/* ---- all ranks ---- */
typedef struct {
    const CompareLooks *l;
    const Whole *w;
    int64_t per_task;
} LookJob;
static void look_task(void *arg, int64_t task) {
    const LookJob *j = arg;
    const CompareLooks *l = j->l;
    int64_t last = (task + 1) * j->per_task < l->n ? (task + 1) * j->per_task : l->n;
    for (int64_t i = task * j->per_task; i < last; i++) {
        Look x = look_at(l->m, l->val, l->L, l->rank[i], j->w), *to = &l->look[i];
        seen_join(&to->seen, &x.seen);
        to->count = to->count < 0 || x.count < 0 ? -1 : to->count + x.count;
    }
}
/* Workers share the locals of a value, or, where those are few or seen in part, the rows of each.
 */
void compare_look(CompareLooks *l, const Whole *w) {
    enum { TASK = 1 << 15 }; /* elements */
    if (!l->n) return;
    Pool *pool = l->m->e->pool;
    int64_t each = 1 + tensor_count(&exec_local(l->m->e, l->val, l->rank[0])->t);
    LookJob j = {l, w, each < TASK ? TASK / each : 1};
    int64_t tasks = (l->n + j.per_task - 1) / j.per_task;
    bool small = each - 1 <= ROWS_SMALL; /* its rows have one worker */
    if (pool && !l->m->e->far && (!w->part || small) && l->n >= 2 * pool_threads(pool))
        pool_run(pool, tasks, look_task, &j);
    else
        for (int64_t i = 0; i < tasks; i++) look_task(&j, i);
}
CompareLooks compare_begin(Compare *m, int val, const Layout *L, const AxisList *fixed,
                           int64_t rep) {
    const Mesh *mesh = m->e->p->mesh;
    const Store *s = exec_store(m->e, val);
    CompareLooks l = {.m = m, .val = val, .L = L, .fixed = fixed, .rep = rep};
    if (m->e->dev->sizes_only) return l;
    size_t locals = (size_t)(s->n ? s->n : 1);
    l.at = base_malloc(base_mul(locals, sizeof *l.at));
    l.rank = base_malloc(base_mul(locals, sizeof *l.rank));
    l.look = base_malloc(base_mul(locals, sizeof *l.look));
    for (int k = 0; k < s->n; k++) l.at[k] = -1;
    for (int64_t r = 0; r < mesh->nranks; r++)
        if (s->which[r] != EXEC_NOTHING && l.at[s->which[r]] < 0 &&
            compare_agrees(mesh, fixed, r, rep)) {
            l.at[s->which[r]] = l.n;
            l.look[l.n] = (Look){nothing_seen(), 0};
            l.rank[l.n++] = r;
        }
    return l;
}
void compare_end(CompareLooks *l) {
    const Mesh *mesh = l->m->e->p->mesh;
    const Store *s = exec_store(l->m->e, l->val);
    bool wrong = false;
    for (int64_t i = 0; i < l->n; i++) { /* in the order of ranks, whoever looked */
        bool right =
            compare_note(l->m, l->val, l->L, l->rank[i], &l->look[i].seen, l->look[i].count);
        wrong |= !right;
        /* who shares it is as wrong as its first rank */
        if (!right) l->at[s->which[l->rank[i]]] = -2 - l->rank[i];
    }
    for (int64_t r = 0; wrong && r < mesh->nranks; r++) {
        int64_t k = s->which[r] == EXEC_NOTHING ? -1 : l->at[s->which[r]];
        if (k < -1 && compare_agrees(mesh, l->fixed, r, l->rep))
            l->m->rank_error[r] = l->m->rank_error[-2 - k];
    }
    free(l->at);
    free(l->rank);
    free(l->look);
}
void compare_all(Compare *m, int val, const Layout *L, const AxisList *fixed, int64_t rep,
                 const Whole *w) {
    CompareLooks l = compare_begin(m, val, L, fixed, rep);
    compare_look(&l, w);
    compare_end(&l);
}
