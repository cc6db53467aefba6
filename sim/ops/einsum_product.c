/* From sorted letters to calls of the order-fixed GEMM: strides or tables of offsets, the cut among
 * workers, and products that read one operand in common as one. It knows no rules and no ops. */
#include "ops/einsum_product.h"
#include "kernel/gemm.h"
#include "kernel/pool.h"
#include "ops/util.h"
#include <assert.h>
#include <stdlib.h>

typedef EinsumGroup Group;

int64_t einsum_count(const Group *g) {
    int64_t c = 1;
    for (int i = 0; i < g->n; i++) c *= g->size[i];
    return c;
}
void einsum_add(Group *g, int64_t size, int64_t sa, int64_t sb, int64_t sc) {
    g->size[g->n] = size;
    g->s[0][g->n] = sa;
    g->s[1][g->n] = sb;
    g->s[2][g->n++] = sc;
}

/* One offset per combination of the group's letters, for view v. */
static void offsets(const Group *g, int v, int64_t count, int64_t *o) {
    int64_t i[EINSUM_GROUP_MAX] = {0};
    for (int64_t k = 0; k < count; k++) {
        o[k] = 0;
        for (int d = 0; d < g->n; d++) o[k] += i[d] * g->s[v][d];
        box_next(g->n, g->size, i);
    }
}
/* Can the group be walked with one stride in view v? */
static bool collapse(const Group *g, int v, int64_t *stride) {
    bool first = true;
    int64_t want = 0;
    *stride = 0;
    for (int d = g->n - 1; d >= 0; d--) {
        if (g->size[d] == 1) continue;
        if (first) *stride = g->s[v][d];
        else if (g->s[v][d] != want) return false;
        want = g->s[v][d] * g->size[d];
        first = false;
    }
    return true;
}

typedef struct {
    Dtype dtype;
    GemmView v[3];
    const int64_t *ob[3]; /* batch offsets per view */
    int64_t batches, M, N, K, m_step, n_step, m_tasks, n_tasks;
    int64_t *free_me[9];
    int n_free;
} GemmJob;
static int64_t *table(GemmJob *j, int64_t count) {
    int64_t *o = base_malloc(base_mul((size_t)(count ? count : 1), sizeof *o));
    j->free_me[j->n_free++] = o;
    return o;
}
static void one_table(GemmJob *j, const Group *g, int v, int64_t count, const int64_t **to,
                      int64_t *stride) {
    *to = NULL;
    if (collapse(g, v, stride)) return;
    int64_t *o = table(j, count);
    offsets(g, v, count, o);
    *to = o;
}
static int64_t element(const EinsumSorted *p, int v) {
    return v < 2 && p->floats >> v & 1 ? (int64_t)sizeof(float) : dtype_size(p->dtype);
}
static uintptr_t address(const EinsumSorted *p, int v) {
    return (uintptr_t)(v == 0 ? p->a : v == 1 ? p->b : p->c);
}
/* The columns of n products side by side, as offsets from where those of the first lie. */
static const int64_t *joined(GemmJob *j, const EinsumSorted *p, int64_t n, int v) {
    int64_t *o = table(j, j->N), *at = o;
    for (int64_t i = 0; i < n; i++) {
        int64_t count = einsum_count(&p[i].n),
                away = (int64_t)(address(&p[i], v) - address(p, v)) / element(p, v);
        offsets(&p[i].n, v, count, at);
        for (int64_t k = 0; k < count; k++) at[k] += away;
        at += count;
    }
    return o;
}

static GemmView shifted(GemmView v, int64_t size, int64_t base, int64_t row, int64_t col) {
    v.p = (const char *)v.p + base * size;
    if (v.row) v.row += row;
    else v.p = (const char *)v.p + row * v.rs * size;
    if (v.col) v.col += col;
    else v.p = (const char *)v.p + col * v.cs * size;
    return v;
}
static void gemm_task(void *arg, int64_t i) {
    const GemmJob *j = arg;
    int64_t per = j->m_tasks * j->n_tasks, b = i / per, m0 = i % per / j->n_tasks * j->m_step,
            n0 = i % j->n_tasks * j->n_step;
    int64_t M = j->M - m0 < j->m_step ? j->M - m0 : j->m_step,
            N = j->N - n0 < j->n_step ? j->N - n0 : j->n_step;
    if (M <= 0 || N <= 0) return;
    int64_t es = dtype_size(j->dtype), fs = sizeof(float);
    GemmView A = shifted(j->v[0], j->v[0].floats ? fs : es, j->ob[0][b], m0, 0),
             B = shifted(j->v[1], j->v[1].floats ? fs : es, j->ob[1][b], n0, 0),
             C = shifted(j->v[2], es, j->ob[2][b], m0, n0);
    (j->dtype == DT_F32 ? gemm_f32 : gemm_f64)(M, N, j->K, &A, &B, &C);
}
/* Cuts the larger of M and N so that every worker has something to do; the cut changes no bit. Into
 * more pieces than workers, who then wait less for the last, where a piece still is as long as the
 * other dim: shorter ones would pack that one's rows too often. */
static void divide(GemmJob *j, int threads) {
    enum { MOST_EACH = 4 };
    j->m_step = j->M;
    j->n_step = j->N;
    j->m_tasks = j->n_tasks = 1;
    if (threads < 2 || j->batches >= threads ||
        2.0 * (double)j->M * (double)j->N * (double)j->K < 4e6)
        return;
    const bool rows = j->M >= j->N;
    int64_t *step = rows ? &j->m_step : &j->n_step, *tasks = rows ? &j->m_tasks : &j->n_tasks;
    int64_t len = *step, each = len / (rows ? j->N : j->M) / threads;
    int64_t pieces = threads * (each < 1 ? 1 : each > MOST_EACH ? MOST_EACH : each);
    *step = ((len + pieces - 1) / pieces + 31) / 32 * 32;
    *tasks = (len + *step - 1) / *step;
}
/* n products whose A, batches, rows and sums are those of the first. */
static void product(const EinsumSorted *p, int64_t n, Pool *pool) {
    GemmJob j = {.dtype = p->dtype,
                 .v = {{.p = p->a, .floats = p->floats & 1},
                       {.p = p->b, .floats = p->floats >> 1 & 1},
                       {.p = p->c}},
                 .batches = einsum_count(&p->batch),
                 .M = einsum_count(&p->m),
                 .K = einsum_count(&p->k)};
    for (int64_t i = 0; i < n; i++) j.N += einsum_count(&p[i].n);
    one_table(&j, &p->m, 0, j.M, &j.v[0].row, &j.v[0].rs);
    one_table(&j, &p->k, 0, j.K, &j.v[0].col, &j.v[0].cs);
    one_table(&j, &p->k, 1, j.K, &j.v[1].col, &j.v[1].cs);
    one_table(&j, &p->m, 2, j.M, &j.v[2].row, &j.v[2].rs);
    if (n > 1) {
        j.v[1].row = joined(&j, p, n, 1);
        j.v[2].col = joined(&j, p, n, 2);
    } else {
        one_table(&j, &p->n, 1, j.N, &j.v[1].row, &j.v[1].rs);
        one_table(&j, &p->n, 2, j.N, &j.v[2].col, &j.v[2].cs);
    }
    for (int v = 0; v < 3; v++) {
        int64_t *o = table(&j, j.batches);
        offsets(&p->batch, v, j.batches, o);
        j.ob[v] = o;
    }
    divide(&j, pool ? pool_threads(pool) : 1);
    int64_t tasks = j.batches * j.m_tasks * j.n_tasks;
    if (pool && tasks > 1) pool_run(pool, tasks, gemm_task, &j);
    else
        for (int64_t i = 0; i < tasks; i++) gemm_task(&j, i);
    for (int i = 0; i < j.n_free; i++) free(j.free_me[i]);
}
void einsum_product(const EinsumSorted *p, Pool *pool) { product(p, 1, pool); }

/* ---- several ---- */
/* C'[n,m] = sum over k of B[n,k] A[m,k]. */
static void swap_group(Group *g) {
    for (int d = 0; d < g->n; d++) {
        int64_t s = g->s[0][d];
        g->s[0][d] = g->s[1][d], g->s[1][d] = s;
    }
}
static void swap(EinsumSorted *p) {
    const void *a = p->a;
    p->a = p->b, p->b = a;
    Group m = p->m;
    p->m = p->n, p->n = m;
    p->floats = (p->floats & 1) << 1 | p->floats >> 1;
    swap_group(&p->m), swap_group(&p->n), swap_group(&p->k), swap_group(&p->batch);
}
static bool same(const Group *g, const Group *h, int u, int v) {
    if (g->n != h->n) return false;
    for (int d = 0; d < g->n; d++)
        if (g->size[d] != h->size[d] || g->s[u][d] != h->s[u][d] || g->s[v][d] != h->s[v][d])
            return false;
    return true;
}
static bool alike(const EinsumSorted *p, const EinsumSorted *q) {
    return p->a == q->a && p->dtype == q->dtype && p->floats == q->floats &&
           einsum_count(&p->batch) == 1 && einsum_count(&q->batch) == 1 &&
           same(&p->m, &q->m, 0, 2) && same(&p->k, &q->k, 0, 1) &&
           (address(q, 1) - address(p, 1)) % (uintptr_t)element(p, 1) == 0;
}
static int by_a(const void *x, const void *y) {
    const EinsumSorted *p = x, *q = y;
    if (p->a != q->a) return (uintptr_t)p->a < (uintptr_t)q->a ? -1 : 1;
    return (uintptr_t)p->c < (uintptr_t)q->c ? -1 : (uintptr_t)p->c > (uintptr_t)q->c;
}
typedef struct {
    const EinsumSorted *p;
    const int64_t *first; /* [groups + 1] */
    Pool *pool;
} Together;
static void group_task(void *arg, int64_t i) {
    const Together *t = arg;
    product(t->p + t->first[i], t->first[i + 1] - t->first[i], t->pool);
}
/* Elements of A that are not packed again if those who share it are together. */
static double saved(EinsumSorted *p, int64_t n) {
    double sum = 0;
    qsort(p, (size_t)n, sizeof *p, by_a);
    for (int64_t i = 1; i < n; i++)
        if (alike(&p[i - 1], &p[i]))
            sum += (double)einsum_count(&p->m) * (double)einsum_count(&p->k);
    return sum;
}
bool einsum_products(EinsumSorted *p, int64_t n, Pool *pool) {
    double of_a = saved(p, n);
    for (int64_t i = 0; i < n; i++) swap(&p[i]);
    double of_b = saved(p, n);
    if (of_a == 0 && of_b == 0) return false;
    if (of_a >= of_b) {
        for (int64_t i = 0; i < n; i++) swap(&p[i]);
        qsort(p, (size_t)n, sizeof *p, by_a);
    }
    int64_t *first = base_malloc(base_mul((size_t)n + 1, sizeof *first)), groups = 0;
    for (int64_t i = 0; i < n; i++)
        if (!i || !alike(&p[i - 1], &p[i])) first[groups++] = i;
    first[groups] = n;
    Together t = {p, first, NULL};
    /* whole rounds, a group for each worker; in what is left each group is shared out, for a round
     * of few would leave the others idle as long as a whole one takes */
    int64_t rounds = pool ? groups / pool_threads(pool) * pool_threads(pool) : 0;
    if (rounds) pool_run(pool, rounds, group_task, &t);
    t.pool = pool;
    for (int64_t i = rounds; i < groups; i++) group_task(&t, i);
    free(first);
    return true;
}
