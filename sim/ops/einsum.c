/* Every matrix product, sum over letters and outer product: one contraction by its rule, on the order-fixed GEMM.
 * Letters of the output that both operands have are batches; those of the first (or of none) are rows, those of the second
 * columns; letters that the output lacks are summed, in the order in which the first operand lists them. */
#include "kernel/gemm.h"
#include "kernel/pool.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
    int n;
    int64_t size[LAYOUT_MAX_DIMS];
    int64_t s[3][LAYOUT_MAX_DIMS]; /* strides in A, B, C; 0 where the operand lacks the letter */
} Group;

typedef struct {
    Group batch, m, n, k;
    Tensor a, b, c;
    Dtype dtype;
} Plan2;

static int64_t group_count(const Group *g) {
    int64_t c = 1;
    for (int i = 0; i < g->n; i++) c *= g->size[i];
    return c;
}
static void group_add(Group *g, int64_t size, int64_t sa, int64_t sb, int64_t sc) {
    g->size[g->n] = size;
    g->s[0][g->n] = sa;
    g->s[1][g->n] = sb;
    g->s[2][g->n++] = sc;
}

/* Sorts the letters of the rule into groups. Operand 1 may be absent (a sum): then B is a single one. */
static Plan2 classify(const OpCall *c, const double *one64, const float *one32) {
    const Rule *r = c->rule;
    Plan2 p = {.a = c->in[0], .c = c->out, .dtype = c->dtype};
    bool two = r->nin == 2;
    p.b.p = two ? c->in[1].p : c->dtype == DT_F32 ? (void *)(uintptr_t)one32 : (void *)(uintptr_t)one64;
    for (int i = 0; i < r->nout; i++) {
        int ia = rule_find(r, 0, r->out[i]), ib = two ? rule_find(r, 1, r->out[i]) : -1;
        Group *g = ia >= 0 && ib >= 0 ? &p.batch : ib >= 0 ? &p.n : &p.m;
        group_add(g, c->out.n[i], ia >= 0 ? c->in[0].s[ia] : 0, ib >= 0 ? c->in[1].s[ib] : 0, c->out.s[i]);
    }
    for (int op = 0; op < (two ? 2 : 1); op++)
        for (int i = 0; i < r->nl[op]; i++) {
            char ch = r->in[op][i];
            if (rule_find_out(r, ch) >= 0 || (op == 1 && rule_find(r, 0, ch) >= 0)) continue;
            int ib = two ? rule_find(r, 1, ch) : -1;
            group_add(&p.k, c->in[op].n[i], op == 0 ? c->in[0].s[i] : 0, ib >= 0 ? c->in[1].s[ib] : 0, 0);
        }
    return p;
}

/* One offset per combination of the group's letters, for view v. */
static int64_t *offsets(const Group *g, int v, int64_t count) {
    int64_t *o = base_malloc((size_t)(count ? count : 1) * sizeof *o), i[LAYOUT_MAX_DIMS] = {0};
    for (int64_t k = 0; k < count; k++) {
        o[k] = 0;
        for (int d = 0; d < g->n; d++) o[k] += i[d] * g->s[v][d];
        box_next(g->n, g->size, i);
    }
    return o;
}
/* Can the group be walked with one stride in view v? */
static bool collapse(const Group *g, int v, int64_t *stride) {
    bool first = true;
    int64_t want = 0;
    *stride = 0;
    for (int d = g->n - 1; d >= 0; d--) {
        if (g->size[d] == 1) continue;
        if (first)
            *stride = g->s[v][d];
        else if (g->s[v][d] != want)
            return false;
        want = g->s[v][d] * g->size[d];
        first = false;
    }
    return true;
}

typedef struct {
    GemmView v[3];
    int64_t *free_me[6];
    int n_free;
} Views;
static void one_table(Views *w, const Group *g, int v, int64_t count, const int64_t **table, int64_t *stride) {
    if (collapse(g, v, stride)) {
        *table = NULL;
        return;
    }
    int64_t *o = offsets(g, v, count);
    w->free_me[w->n_free++] = o;
    *table = o;
}

typedef struct {
    const Plan2 *p;
    const Views *w;
    const int64_t *ob[3]; /* batch offsets per view */
    int64_t M, N, K, m_step, n_step, m_tasks, n_tasks;
} GemmJob;

static GemmView shifted(GemmView v, Dtype t, int64_t base, int64_t row, int64_t col) {
    v.p = (const char *)v.p + base * dtype_size(t);
    if (v.row) v.row += row;
    else v.p = (const char *)v.p + row * v.rs * dtype_size(t);
    if (v.col) v.col += col;
    else v.p = (const char *)v.p + col * v.cs * dtype_size(t);
    return v;
}
static void gemm_task(void *arg, int64_t i) {
    const GemmJob *j = arg;
    int64_t per = j->m_tasks * j->n_tasks, b = i / per, m0 = i % per / j->n_tasks * j->m_step, n0 = i % j->n_tasks * j->n_step;
    int64_t M = j->M - m0 < j->m_step ? j->M - m0 : j->m_step, N = j->N - n0 < j->n_step ? j->N - n0 : j->n_step;
    if (M <= 0 || N <= 0) return;
    Dtype t = j->p->dtype;
    GemmView A = shifted(j->w->v[0], t, j->ob[0][b], m0, 0), B = shifted(j->w->v[1], t, j->ob[1][b], n0, 0),
             C = shifted(j->w->v[2], t, j->ob[2][b], m0, n0);
    (t == DT_F32 ? gemm_f32 : gemm_f64)(M, N, j->K, &A, &B, &C);
}

/* No letter is summed: an outer or element-wise product, one multiplication per output element. */
static void multiply(const OpCall *c, const Plan2 *p) {
    Group all = {0};
    const Group *g[3] = {&p->batch, &p->m, &p->n};
    for (int k = 0; k < 3; k++)
        for (int d = 0; d < g[k]->n; d++) group_add(&all, g[k]->size[d], g[k]->s[0][d], g[k]->s[1][d], g[k]->s[2][d]);
    if (!all.n) group_add(&all, 1, 0, 0, 0);
    /* the innermost loop runs over the letter that is contiguous in the output */
    int in = 0;
    for (int d = 0; d < all.n; d++)
        if (all.s[2][d] == 1 && all.size[d] > 1) in = d;
    int64_t n = all.size[in], sa = all.s[0][in], sb = all.s[1][in], sc = all.s[2][in], i[LAYOUT_MAX_DIMS] = {0};
    all.size[in] = 1;
    if (group_count(&all) == 0 || n == 0) return;
    do {
        int64_t oa = 0, ob = 0, oc = 0;
        for (int d = 0; d < all.n; d++) oa += i[d] * all.s[0][d], ob += i[d] * all.s[1][d], oc += i[d] * all.s[2][d];
        if (c->dtype == DT_F32) {
            const float *a = (const float *)p->a.p + oa, *b = (const float *)p->b.p + ob;
            float *o = (float *)p->c.p + oc;
            if (sa == 1 && sb == 1 && sc == 1)
                for (int64_t k = 0; k < n; k++) o[k] = a[k] * b[k];
            else
                for (int64_t k = 0; k < n; k++) o[k * sc] = a[k * sa] * b[k * sb];
        } else {
            const double *a = (const double *)p->a.p + oa, *b = (const double *)p->b.p + ob;
            double *o = (double *)p->c.p + oc;
            for (int64_t k = 0; k < n; k++) o[k * sc] = a[k * sa] * b[k * sb];
        }
    } while (box_next(all.n, all.size, i));
}

/* Cuts the larger of M and N so that every worker has something to do; the cut changes no bit. */
static void divide(GemmJob *j, int64_t batches, const OpCall *c) {
    int threads = c->pool ? pool_threads(c->pool) : 1;
    j->m_step = j->M;
    j->n_step = j->N;
    j->m_tasks = j->n_tasks = 1;
    if (threads < 2 || batches >= threads || 2.0 * (double)j->M * (double)j->N * (double)j->K < 4e6) return;
    int64_t *step = j->M >= j->N ? &j->m_step : &j->n_step, *tasks = j->M >= j->N ? &j->m_tasks : &j->n_tasks;
    int64_t len = j->M >= j->N ? j->M : j->N;
    *step = ((len + threads - 1) / threads + 31) / 32 * 32;
    *tasks = (len + *step - 1) / *step;
}

void op_einsum(const OpCall *c) {
    static const double one64 = 1;
    static const float one32 = 1;
    Plan2 p = classify(c, &one64, &one32);
    if (box_empty(&c->out)) return;
    if (!p.k.n) {
        multiply(c, &p);
        return;
    }
    int64_t nb = group_count(&p.batch);
    GemmJob j = {.p = &p, .M = group_count(&p.m), .N = group_count(&p.n), .K = group_count(&p.k)};
    Views w = {.n_free = 0};
    w.v[0].p = p.a.p, w.v[1].p = p.b.p, w.v[2].p = p.c.p;
    one_table(&w, &p.m, 0, j.M, &w.v[0].row, &w.v[0].rs);
    one_table(&w, &p.k, 0, j.K, &w.v[0].col, &w.v[0].cs);
    one_table(&w, &p.n, 1, j.N, &w.v[1].row, &w.v[1].rs);
    one_table(&w, &p.k, 1, j.K, &w.v[1].col, &w.v[1].cs);
    one_table(&w, &p.m, 2, j.M, &w.v[2].row, &w.v[2].rs);
    one_table(&w, &p.n, 2, j.N, &w.v[2].col, &w.v[2].cs);
    int64_t *ob[3];
    for (int v = 0; v < 3; v++) j.ob[v] = ob[v] = offsets(&p.batch, v, nb);
    j.w = &w;
    divide(&j, nb, c);
    int64_t tasks = nb * j.m_tasks * j.n_tasks;
    if (c->pool && tasks > 1)
        pool_run(c->pool, tasks, gemm_task, &j);
    else
        for (int64_t i = 0; i < tasks; i++) gemm_task(&j, i);
    for (int v = 0; v < 3; v++) free(ob[v]);
    for (int i = 0; i < w.n_free; i++) free(w.free_me[i]);
}

void op_einsum_adjoint(const OpCall *c) {
    int i = c->operand, nin = c->rule->nin;
    Rule r = rule_adjoint(c->rule, i, op_saved(c->op, nin, i));
    OpCall a = *c;
    a.rule = &r;
    a.in[0] = c->cot;
    for (int j = 0, k = 1; j < nin; j++)
        if (j != i) a.in[k++] = c->in[j];
    op_einsum(&a);
}

double op_einsum_flops(const OpCall *c) {
    double n = (double)tensor_count(&c->out), k = 1;
    bool sums = false;
    for (int op = 0; op < c->rule->nin; op++)
        for (int i = 0; i < c->rule->nl[op]; i++) {
            char ch = c->rule->in[op][i];
            if (rule_find_out(c->rule, ch) >= 0 || (op == 1 && rule_find(c->rule, 0, ch) >= 0)) continue;
            k *= (double)c->in[op].n[i];
            sums = true;
        }
    return sums && c->rule->nin == 2 ? 2 * n * k : n * k;
}

double gamma_prob(double n, double u) {
    double g = gamma_n(n, u), p = 10 * sqrt(n) * u;
    return g < p ? g : p;
}

/* sqrt of the sum of squares over the summed letters, for operand op; letters in *letters. */
static Tensor norms(const OpCall *c, int op, char *letters) {
    Rule r = {.nin = 1, .text = "norms"};
    Tensor sq = c->in[op], out = {0};
    int64_t n = tensor_count(&c->in[op]);
    r.nl[0] = c->rule->nl[op];
    memcpy(r.in[0], c->rule->in[op], sizeof r.in[0]);
    double *d = base_malloc((size_t)(n ? n : 1) * sizeof *d);
    const double *x = c->in[op].p; /* whole and packed */
    for (int64_t i = 0; i < n; i++) d[i] = x[i] * x[i];
    sq.p = d;
    for (int i = 0; i < c->rule->nl[op]; i++)
        if (rule_find_out(c->rule, c->rule->in[op][i]) >= 0) {
            out.n[out.nd++] = c->in[op].n[i];
            r.out[r.nout++] = c->rule->in[op][i];
        }
    tensor_pack(&out);
    int64_t m = tensor_count(&out);
    double *o = out.p = base_malloc((size_t)(m ? m : 1) * sizeof *o);
    OpCall call = {.rule = &r, .dtype = DT_F64, .out = out, .pool = c->pool};
    call.in[0] = sq;
    op_einsum(&call);
    for (int64_t i = 0; i < m; i++) o[i] = sqrt(o[i]);
    free(d);
    memcpy(letters, r.out, sizeof r.out);
    return out;
}

/* gamma of the number of terms times the product of the operands' norms, which bounds the sum of absolute products. */
void op_bound_contraction(const OpBound *b) {
    const OpCall *c = &b->call;
    OpCall adj = *c;
    Rule ra;
    if (b->operand >= 0) { /* the adjoint is a contraction of the cotangent with the other operand */
        ra = rule_adjoint(c->rule, b->operand, op_saved(c->op, c->rule->nin, b->operand));
        adj.rule = &ra;
        adj.in[0] = c->cot;
        for (int j = 0, k = 1; j < c->rule->nin; j++)
            if (j != b->operand) adj.in[k++] = c->in[j];
        c = &adj;
    }
    double k = 1;
    for (int op = 0; op < c->rule->nin; op++)
        for (int i = 0; i < c->rule->nl[op]; i++) {
            char ch = c->rule->in[op][i];
            if (rule_find_out(c->rule, ch) < 0 && !(op == 1 && rule_find(c->rule, 0, ch) >= 0)) k *= (double)c->in[op].n[i];
        }
    Rule r = {.nin = c->rule->nin, .text = "bound"};
    OpCall call = {.rule = &r, .dtype = DT_F64, .out = c->out, .pool = c->pool};
    call.out.p = b->bound;
    tensor_pack(&call.out);
    for (int op = 0; op < r.nin; op++) {
        call.in[op] = norms(c, op, r.in[op]);
        r.nl[op] = call.in[op].nd;
    }
    memcpy(r.out, c->rule->out, sizeof r.out);
    r.nout = c->rule->nout;
    op_einsum(&call);
    for (int op = 0; op < r.nin; op++) free(call.in[op].p);
    double ones = r.nin == 1 ? sqrt(k) : 1, g = gamma_n(k + 1, b->u) * ones, p = gamma_prob(k + 1, b->u) * ones;
    double tiny = (k + 1) * (b->u > 1e-10 ? 0x1p-149 : 0x1p-1074);
    int64_t n = tensor_count(&c->out);
    for (int64_t i = 0; i < n; i++) {
        b->prob[i] = b->bound[i] * p + tiny;
        b->bound[i] = b->bound[i] * g + tiny;
    }
}

void op_exact_same(const OpCall *c) { c->op->forward(c); }

const Op op_contract = {
    .name = "einsum", /* models name it so; records show the node's label, "linear" */
    .lin = LIN_BILINEAR,
    .forward = op_einsum,
    .adjoint = op_einsum_adjoint,
    .bound = op_bound_contraction,
    .exact = op_exact_same,
    .flops = op_einsum_flops,
    .label = "linear",
    .glyph = "box",
};
