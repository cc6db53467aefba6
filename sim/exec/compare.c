/* Element by element, and the first, the largest and the worst of the differences. */
#include "exec/compare.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

double compare_at(const void *p, Dtype d, int64_t i) {
    return d == DT_F32 ? (double)((const float *)p)[i] : d == DT_F64 ? ((const double *)p)[i] : (double)((const int64_t *)p)[i];
}
Tensor compare_box_tensor(const Box *b) {
    Tensor t = {.nd = b->nd};
    for (int d = 0; d < b->nd; d++) t.n[d] = b->n[d];
    tensor_pack(&t);
    return t;
}
Dtype compare_dtype(const Exec *e, int v) { return exec_is_int(e, v) ? DT_I64 : e->dtype; }
double compare_factor_tolerance(const Exec *e) { return e->dtype == DT_F32 ? 1e-3 : 1e-9; }
bool compare_agrees(const Mesh *m, const AxisList *fixed, int64_t a, int64_t b) {
    for (int i = 0; i < fixed->n; i++)
        if (mesh_coord(m, a, fixed->a[i]) != mesh_coord(m, b, fixed->a[i])) return false;
    return true;
}

Compare compare_new(const Exec *e, Arena *arena, const Step *s, int val, int level) {
    const Program *p = e->p;
    Compare m;
    memset(&m, 0, sizeof m);
    const Val *v = &p->val[val];
    const GTensor *t = &p->graph->t[v->tensor];
    m.e = e;
    m.rec.step = s ? s->id : -1;
    m.rec.pass = s ? s->pass : "parameters";
    m.rec.value = v->cot ? arena_printf(arena, t->kind == KIND_PARAM ? "grad.param.%s" : "grad.%s", t->kind == KIND_PARAM && t->plan_name ? t->plan_name : t->name) : t->kind == KIND_PARAM && t->plan_name ? t->plan_name : t->name;
    m.rec.level = level;
    m.rec.verdict = "PASS";
    m.ratio_lo = INFINITY;
    m.ratio_hi = -INFINITY;
    return m;
}
void compare_ranks(Compare *m) {
    if (m->rank_error) return;
    int64_t n = m->e->p->mesh->nranks;
    m->rank_error = base_malloc(base_mul((size_t)n, sizeof *m->rank_error));
    for (int64_t r = 0; r < n; r++) m->rank_error[r] = -1;
}
void compare_wrong_shape(Compare *m, int64_t rank) {
    compare_ranks(m);
    m->rank_error[rank] = INFINITY;
    m->failed = true;
    m->rec.verdict = "FAIL";
    m->rec.max_abs = m->rec.used = INFINITY;
}
/* The stored global index of element i of a local block. */
static void stored_index(const GTensor *t, const Box *b, int64_t i, bool flat, TraceCheck *rec) {
    int64_t letter[LAYOUT_MAX_DIMS];
    for (int d = b->nd - 1; d >= 0; d--) {
        int64_t k = b->n[d] ? i % b->n[d] : 0;
        if (b->n[d]) i /= b->n[d];
        letter[d] = b->d[d].range ? b->d[d].lo + k : b->d[d].list[k];
    }
    rec->n_index = t->nstored;
    int at_letter = 0;
    for (int d = 0; d < t->nstored; d++) {
        int64_t x = 0;
        if (flat && d == 0) x = letter[at_letter++];
        else
            for (int k = 0; k < t->stored[d]; k++, at_letter++) {
                int lt = flat ? at_letter + t->stored[0] - 1 : at_letter;
                x = x * t->size[lt] + letter[at_letter];
            }
        rec->index[d] = x;
    }
}

/* ---- one rank's block ---- */
static void see(CompareSeen *s, const CompareBlock *b, int64_t i, double g, double w, double bound, double prob, bool equal) {
    double err = equal ? 0 : fabs(g - w);
    bool bad = !equal && (b->bits || !(err <= bound)), odd = !equal && !bad && !(err <= prob);
    if (!equal && (isnan(g) != isnan(w) || isnan(err))) err = INFINITY, bad = true;
    if (err > s->max_abs) s->max_abs = err;
    if (w != 0 && err / fabs(w) > s->max_rel) s->max_rel = err / fabs(w);
    double used = !bad && err == 0 ? 0 : bound > 0 ? err / bound : INFINITY;
    if (used > s->used || (used == s->used && bound > s->bound)) s->used = used, s->bound = bound;
    s->odd |= odd;
    if (!bad) return;
    if (err > s->worst) s->worst = err;
    double k = w != 0 ? g / w : g == 0 ? NAN : INFINITY;
    if (w == 0 || fabs(w) * b->tolerance >= 4 * bound) { /* rounding cannot hide a factor in these */
        if (k < s->ratio_lo) s->ratio_lo = k;
        if (k > s->ratio_hi) s->ratio_hi = k;
    }
    if (s->first >= 0) return;
    s->first = i;
    s->got = g;
    s->want = w;
}
/* Could any of these n elements, all within their bounds, change what has been seen? Written for the vectoriser: most rows of
 * most values say no. The two thresholds are a little lower than what see() compares, so rounding loses nothing. */
#define QUIET(NAME, T)                                                                                                 \
    static bool NAME(const CompareSeen *s, int64_t n, const T *g, const double *w, const double *bound, const double *prob) { \
        double top = s->max_abs, rel = s->max_rel * (1 - 0x1p-50), used = s->used * (1 - 0x1p-50);                     \
        double idle = s->used == 0 ? s->bound : INFINITY;                                                              \
        int64_t any = 0;                                                                                               \
        for (int64_t k = 0; k < n; k++) {                                                                              \
            double e = fabs((double)g[k] - w[k]), b = bound[k];                                                        \
            any |= !(e <= prob[k]) | !(e <= b) | (e > top) | ((e > 0) & ((e >= used * b) | (e > rel * fabs(w[k])))) | (b > idle); \
        }                                                                                                              \
        return !any;                                                                                                   \
    }
QUIET(quiet_f32, float)
QUIET(quiet_f64, double)
#undef QUIET
static bool quiet(const CompareSeen *s, const CompareBlock *b, int64_t n, const char *g, const double *w, const double *bound, const double *prob) {
    if (b->dt == DT_F32) return quiet_f32(s, n, (const float *)(const void *)g, w, bound, prob);
    return b->dt == DT_F64 && quiet_f64(s, n, (const double *)(const void *)g, w, bound, prob);
}
static void see_row(CompareSeen *s, const CompareBlock *b, int64_t at, const char *g, int64_t step, int64_t ow, int64_t wstep, int64_t n) {
    enum { PIECE = 256 };
    int64_t es = dtype_size(b->dt);
    const char *raw = (const char *)b->want.p + ow * es;
    if (b->bits && step == 1 && wstep == 1 && !memcmp(g, raw, (size_t)(n * es))) return;
    const double *want = b->want.p;
    for (int64_t k0 = 0; k0 < n; k0 += PIECE) {
        int64_t m = n - k0 < PIECE ? n - k0 : PIECE;
        if (!b->bits && b->bound && step == 1 && wstep == 1 && quiet(s, b, m, g + k0 * es, want + ow + k0, b->bound + ow + k0, b->prob + ow + k0)) continue;
        for (int64_t k = k0; k < k0 + m; k++) {
            int64_t o = ow + k * wstep;
            double x = compare_at(g, b->dt, k * step);
            if (b->bits) see(s, b, at + k, x, compare_at(b->want.p, b->dt, o), 0, 0, !memcmp(g + k * step * es, raw + k * wstep * es, (size_t)es));
            else see(s, b, at + k, x, want[o], b->bound ? b->bound[o] : 0, b->prob ? b->prob[o] : 0, x == want[o]);
        }
    }
}

/* ---- rows shared by the workers ---- */
typedef struct {
    const CompareBlock *b;
    int64_t rows, per_task;
    CompareSeen *seen; /* per task */
} RowJob;
static void row_task(void *arg, int64_t task) {
    const RowJob *j = arg;
    const CompareBlock *b = j->b;
    int nd = b->got.nd, outer = nd ? nd - 1 : 0;
    int64_t inner = nd ? b->got.n[nd - 1] : 1, step = nd ? b->got.s[nd - 1] : 1, wstep = nd ? b->want.s[nd - 1] : 1;
    int64_t first = task * j->per_task, last = first + j->per_task < j->rows ? first + j->per_task : j->rows;
    int64_t i[LAYOUT_MAX_DIMS] = {0}, k = first;
    for (int d = outer - 1; d >= 0; d--) {
        i[d] = k % b->got.n[d];
        k /= b->got.n[d];
    }
    for (int64_t r = first; r < last; r++) {
        const char *g = (const char *)b->got.p + box_offset(&b->got, outer, i) * dtype_size(b->dt);
        see_row(&j->seen[task], b, r * inner, g, step, box_offset(&b->want, outer, i), wstep, inner);
        if (outer) box_next(outer, b->got.n, i);
    }
}
static CompareSeen nothing_seen(void) { return (CompareSeen){.ratio_lo = INFINITY, .ratio_hi = -INFINITY, .first = -1}; }
CompareSeen compare_rows(const CompareBlock *b, Pool *pool) {
    enum { SMALL = 1 << 15, TASKS = 16 };
    CompareSeen part[TASKS], all = nothing_seen();
    int64_t n = tensor_count(&b->got), inner = b->got.nd ? b->got.n[b->got.nd - 1] : 1;
    RowJob j = {b, n ? n / inner : 0, n ? n / inner : 0, part};
    if (!n) return all;
    if (pool && n > SMALL) j.per_task = (j.rows + TASKS - 1) / TASKS;
    int64_t tasks = (j.rows + j.per_task - 1) / j.per_task;
    for (int64_t t = 0; t < tasks; t++) part[t] = nothing_seen();
    if (tasks > 1) pool_run(pool, tasks, row_task, &j);
    else row_task(&j, 0);
    for (int64_t t = 0; t < tasks; t++) {
        const CompareSeen *s = &part[t];
        all.max_abs = fmax(all.max_abs, s->max_abs);
        all.max_rel = fmax(all.max_rel, s->max_rel);
        if (s->used > all.used || (s->used == all.used && s->bound > all.bound)) all.used = s->used, all.bound = s->bound;
        all.worst = fmax(all.worst, s->worst);
        all.ratio_lo = s->ratio_lo < all.ratio_lo ? s->ratio_lo : all.ratio_lo;
        all.ratio_hi = s->ratio_hi > all.ratio_hi ? s->ratio_hi : all.ratio_hi;
        all.odd |= s->odd;
        if (all.first < 0 && s->first >= 0) all.first = s->first, all.got = s->got, all.want = s->want;
    }
    return all;
}

/* ---- blocks of the whole ---- */
static bool shape_is(const Tensor *t, const Box *b) {
    if (t->nd != b->nd) return false;
    for (int d = 0; d < b->nd; d++)
        if (t->n[d] != b->n[d]) return false;
    return true;
}
/* The part of a whole array that box lb names: a view where its indices are ranges, else a copy (*copy, the caller frees). */
static Tensor part_of(const Whole *w, const void *from, Dtype dt, const Box *lb, void **copy) {
    Tensor src = compare_box_tensor(w->box), out;
    src.p = (void *)(uintptr_t)from;
    *copy = NULL;
    if (region_view(lb, w->box, &src, dt, &out)) return out;
    out = compare_box_tensor(lb);
    int64_t n = tensor_count(&out);
    out.p = *copy = base_malloc(base_mul((size_t)(n ? n : 1), (size_t)dtype_size(dt)));
    region_copy(lb, &out, w->box, &src, dt, 0);
    return out;
}
static void compare_local(Compare *m, int val, const Layout *L, const Local *l, int64_t rank, const Whole *w) {
    const Program *p = m->e->p;
    const GTensor *t = &p->graph->t[p->val[val].tensor];
    Arena *tmp = arena_new();
    Box lb = region_box(p->mesh, t, L, rank, w->flat, tmp);
    Tensor got = l->t, wanted = compare_box_tensor(&lb);
    if (!shape_is(&got, &lb) && !(w->flat && tensor_count(&wanted) == tensor_count(&got))) {
        compare_wrong_shape(m, rank);
        arena_free(tmp);
        return;
    }
    if (!shape_is(&got, &lb)) { /* letters against a flattened dim: same elements, packed */
        wanted.p = got.p;
        got = wanted;
    }
    CompareBlock b = {.got = got, .dt = compare_dtype(m->e, val), .bits = w->raw.p != NULL, .tolerance = compare_factor_tolerance(m->e)};
    void *copy[3] = {0};
    b.want = part_of(w, b.bits ? w->raw.p : w->want, b.bits ? b.dt : DT_F64, &lb, &copy[0]);
    if (w->bound && !b.bits) {
        b.bound = part_of(w, w->bound, DT_F64, &lb, &copy[1]).p;
        b.prob = part_of(w, w->prob, DT_F64, &lb, &copy[2]).p;
    }
    CompareSeen s = compare_rows(&b, m->e->pool);
    for (int k = 0; k < 3; k++) free(copy[k]);
    m->rec.count += tensor_count(&got);
    m->rec.max_abs = fmax(m->rec.max_abs, s.max_abs);
    m->rec.max_rel = fmax(m->rec.max_rel, s.max_rel);
    if (s.used > m->rec.used || (s.used == m->rec.used && s.bound > m->rec.bound)) m->rec.used = s.used, m->rec.bound = s.bound;
    if (s.first >= 0) {
        compare_ranks(m);
        m->rank_error[rank] = fmax(m->rank_error[rank], s.worst);
        m->ratio_lo = s.ratio_lo < m->ratio_lo ? s.ratio_lo : m->ratio_lo;
        m->ratio_hi = s.ratio_hi > m->ratio_hi ? s.ratio_hi : m->ratio_hi;
        if (m->rec.verdict[0] != 'F') { /* of the first wrong rank */
            stored_index(t, &lb, s.first, w->flat, &m->rec);
            m->rec.got = s.got;
            m->rec.want = s.want;
        }
        m->failed = true;
        m->rec.verdict = "FAIL";
    } else if (s.odd && m->rec.verdict[0] == 'P')
        m->rec.verdict = "SUSPECT";
    arena_free(tmp);
}
void compare_all(Compare *m, int val, const Layout *L, const AxisList *fixed, int64_t rep, const Whole *w) {
    const Mesh *mesh = m->e->p->mesh;
    const Store *s = &m->e->store[val];
    unsigned char *state = base_malloc((size_t)(s->n ? s->n : 1)); /* 0 unseen, 1 right, 2 wrong */
    memset(state, 0, (size_t)s->n);
    for (int64_t r = 0; r < mesh->nranks; r++) {
        uint32_t k = s->which[r];
        if (!compare_agrees(mesh, fixed, r, rep)) continue;
        if (state[k]) {
            if (state[k] == 2) {
                double err = m->rank_error[s->l[k].rank];
                m->rank_error[r] = err < 0 ? m->rec.max_abs : err;
            }
            continue;
        }
        bool before = m->failed;
        m->failed = false;
        compare_local(m, val, L, &s->l[k], r, w);
        state[k] = m->failed ? 2 : 1;
        m->failed |= before;
    }
    free(state);
}
