/* Every matrix product, sum over letters and outer product: one contraction by its rule, on the
 * order-fixed GEMM. Letters of the output that both operands have are batches; those of the first
 * (or of none) are rows, those of the second columns; letters that the output lacks are summed, in
 * the order in which the first operand lists them. */
#include "ops/einsum_product.h"
#include "ops/einsum_rows.h"
#include "kernel/gemm.h"
#include "kernel/pool.h"
#include "ops/util.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Sorts the letters of the rule into groups. Operand 1 may be absent (a sum): then B is a single
 * one. */
static EinsumSorted classify(const OpCall *c, const double *one64, const float *one32) {
    const Rule *r = c->rule;
    EinsumSorted p = {.a = c->in[0].p, .c = c->out.p, .dtype = c->dtype, .floats = c->floats};
    bool two = r->nin == 2;
    p.b = two                  ? c->in[1].p
          : c->dtype == DT_F32 ? (void *)(uintptr_t)one32
                               : (void *)(uintptr_t)one64;
    for (int i = 0; i < r->nout; i++) {
        int ia = rule_find(r, 0, r->out[i]), ib = two ? rule_find(r, 1, r->out[i]) : -1;
        EinsumGroup *g = ia >= 0 && ib >= 0 ? &p.batch : ib >= 0 ? &p.n : &p.m;
        einsum_add(g, c->out.n[i], ia >= 0 ? c->in[0].s[ia] : 0, ib >= 0 ? c->in[1].s[ib] : 0,
                   c->out.s[i]);
    }
    for (int op = 0; op < (two ? 2 : 1); op++)
        for (int i = 0; i < r->nl[op]; i++) {
            char ch = r->in[op][i];
            if (rule_find_out(r, ch) >= 0 || (op == 1 && rule_find(r, 0, ch) >= 0)) continue;
            int ib = two ? rule_find(r, 1, ch) : -1;
            einsum_add(&p.k, c->in[op].n[i], op == 0 ? c->in[0].s[i] : 0,
                       ib >= 0 ? c->in[1].s[ib] : 0, 0);
        }
    return p;
}

/* From magnitudes to the two bounds of an error, elementwise. */
typedef struct {
    double *bound, *prob, g, p, tiny;
    const double *of; /* whose magnitudes; NULL: those that are in bound */
} ScaleJob;
static void scale_bounds(void *arg, int64_t lo, int64_t hi) {
    const ScaleJob *j = arg;
    for (int64_t i = lo; i < hi; i++) {
        double most = j->of ? fabs(j->of[i]) : j->bound[i];
        j->prob[i] = most * j->p + j->tiny;
        j->bound[i] = most * j->g + j->tiny;
    }
}

/* No letter is summed: an outer or element-wise product, one multiplication per output element. */
typedef struct {
    const EinsumSorted *p;
    EinsumGroup all;
    int in, cut; /* the innermost loop; the one that workers share, -1: none */
    int64_t step;
    ScaleJob *bounds; /* of which the products are the magnitudes; NULL: they are none */
} MultiplyJob;
static void scaled_row(int64_t n, double *o, double x, const double *b) {
    for (int64_t k = 0; k < n; k++) o[k] = x * b[k];
}
static void multiply_task(void *arg, int64_t task) {
    const MultiplyJob *j = arg;
    EinsumGroup all = j->all;
    const EinsumSorted *p = j->p;
    int in = j->in;
    int64_t n = all.size[in], sa = all.s[0][in], sb = all.s[1][in], sc = all.s[2][in],
            i[LAYOUT_MAX_DIMS] = {0}, first = 0;
    all.size[in] = 1;
    if (j->cut >= 0) {
        first = task * j->step;
        int64_t left = all.size[j->cut] - first;
        all.size[j->cut] = left < j->step ? left : j->step;
    }
    do {
        int64_t oa = 0, ob = 0, oc = 0;
        for (int d = 0; d < all.n; d++) {
            int64_t at = i[d] + (d == j->cut ? first : 0);
            oa += at * all.s[0][d], ob += at * all.s[1][d], oc += at * all.s[2][d];
        }
        if (p->dtype == DT_F32) {
            const float *a = (const float *)p->a + oa, *b = (const float *)p->b + ob;
            float *o = (float *)p->c + oc;
            if (sa == 1 && sb == 1 && sc == 1)
                for (int64_t k = 0; k < n; k++) o[k] = a[k] * b[k];
            else
                for (int64_t k = 0; k < n; k++) o[k * sc] = a[k * sa] * b[k * sb];
        } else {
            const double *a = (const double *)p->a + oa, *b = (const double *)p->b + ob;
            double *o = (double *)p->c + oc;
            if (sc == 1 && !sa && sb == 1) scaled_row(n, o, *a, b); /* products of norms */
            else
                for (int64_t k = 0; k < n; k++) o[k * sc] = a[k * sa] * b[k * sb];
            if (j->bounds) scale_bounds(j->bounds, oc, oc + n); /* while the row is near */
        }
    } while (box_next(all.n, all.size, i));
}
static void multiply(const OpCall *c, const EinsumSorted *p, ScaleJob *bounds) {
    MultiplyJob j = {.p = p, .cut = -1, .bounds = bounds};
    const EinsumGroup *g[3] = {&p->batch, &p->m, &p->n};
    for (int k = 0; k < 3; k++)
        for (int d = 0; d < g[k]->n; d++)
            einsum_add(&j.all, g[k]->size[d], g[k]->s[0][d], g[k]->s[1][d], g[k]->s[2][d]);
    if (!j.all.n) einsum_add(&j.all, 1, 0, 0, 0);
    if (einsum_count(&j.all) == 0) return;
    /* the innermost loop runs over the letter that is contiguous in the output */
    for (int d = 0; d < j.all.n; d++)
        if (j.all.s[2][d] == 1 && j.all.size[d] > 1) j.in = d;
    if (c->pool && einsum_count(&j.all) > 1 << 16)
        for (int d = 0; d < j.all.n; d++)
            if (d != j.in && j.all.size[d] > 1 && (j.cut < 0 || j.all.size[d] > j.all.size[j.cut]))
                j.cut = d;
    if (j.cut < 0) {
        multiply_task(&j, 0);
        return;
    }
    int64_t tasks = 8 * pool_threads(c->pool);
    j.step = (j.all.size[j.cut] + tasks - 1) / tasks;
    pool_run(c->pool, (j.all.size[j.cut] + j.step - 1) / j.step, multiply_task, &j);
}

void op_einsum(const OpCall *c) {
    assert(c->rule->nin >= 1 && c->rule->nin <= 2);
    static const double one64 = 1;
    static const float one32 = 1;
    if (rule_listed(c->rule)) {
        einsum_rows(c, op_einsum);
        return;
    }
    EinsumSorted p = classify(c, &one64, &one32);
    assert(!c->floats || (p.k.n && c->rule->nin == 2));
    if (box_empty(&c->out)) return;
    if (!p.k.n) {
        multiply(c, &p, NULL);
        return;
    }
    einsum_product(&p, c->pool);
}

OpCall op_einsum_towards(const OpCall *c, int operand, Rule *rule) {
    OpCall a = *c;
    *rule = rule_adjoint(c->rule, operand, op_saved(c->op, c->rule->nin, operand));
    a.rule = rule;
    a.in[0] = c->cot;
    a.in_int = 0;
    a.floats = c->floats >> c->rule->nin & 1;
    for (int j = 0, k = 1; j < c->rule->nin; j++)
        if (j != operand) {
            a.in_int |= (c->in_int >> j & 1) << k;
            a.floats |= (c->floats >> j & 1) << k;
            a.in[k++] = c->in[j];
        }
    return a;
}
void op_einsum_adjoint(const OpCall *c) {
    Rule r;
    OpCall a = op_einsum_towards(c, c->operand, &r);
    op_einsum(&a);
}

void op_einsum_scratch(const OpCall *c, int64_t n, bool adjoint, OpScratch *s) {
    Rule r;
    OpCall a = adjoint ? op_einsum_towards(c, c->operand, &r) : *c;
    /* rows, columns, terms; letters that both factors and the result have are batches, none */
    int64_t m[3] = {1, 1, 1};
    for (int i = 0; i < 26; i++) {
        char ch = (char)('a' + i);
        bool first = rule_find(a.rule, 0, ch) >= 0, out = rule_find_out(a.rule, ch) >= 0,
             second = a.rule->nin == 2 && rule_find(a.rule, 1, ch) >= 0;
        if ((!first && !second) || (first && second && out)) continue;
        m[!out ? 2 : second] = base_mul((size_t)m[!out ? 2 : second], (size_t)c->local[i]);
    }
    s->packed = gemm_scratch(m[0], m[1] * n, m[2], c->dtype == DT_F64);
    if (rule_listed(a.rule)) s->call = einsum_rows_room(&a);
}
bool op_einsum_together(const OpCall *c, int64_t n, bool adjoint, Pool *pool) {
    bool may = n > 1;
    EinsumSorted *p = base_malloc(base_mul((size_t)n, sizeof *p));
    for (int64_t i = 0; i < n && may; i++) {
        Rule r;
        OpCall a = adjoint ? op_einsum_towards(&c[i], c[i].operand, &r) : c[i];
        may = !rule_listed(a.rule) && a.rule->nin == 2 && !box_empty(&a.out);
        if (may) p[i] = classify(&a, NULL, NULL);
        may = may && p[i].k.n;
    }
    bool done = may && einsum_products(p, n, pool);
    free(p);
    return done;
}

double op_einsum_flops(const OpCall *c) {
    double n = (double)tensor_count(&c->out), k = 1;
    bool sums = false;
    if (rule_listed(c->rule)) return einsum_rows_flops(c);
    for (int op = 0; op < c->rule->nin; op++)
        for (int i = 0; i < c->rule->nl[op]; i++) {
            char ch = c->rule->in[op][i];
            if (rule_find_out(c->rule, ch) >= 0 || (op == 1 && rule_find(c->rule, 0, ch) >= 0))
                continue;
            k *= (double)c->in[op].n[i];
            sums = true;
        }
    return sums && c->rule->nin == 2 ? 2 * n * k : n * k;
}

/* sqrt of the sum of squares over the summed letters, for operand op (whole and packed); letters in
 * *letters. Workers share the operand's first dim if the norms keep it. */
typedef struct {
    const Tensor *x;
    bool floats;
    const int64_t *to; /* stride in the norms per dim of x; 0: summed */
    double *sum;
    int dim; /* that is shared out: all before it have one element */
} NormJob;
/* The sum of n squares in eight lanes; the same bits for a number in either type. */
#define SUM_SQUARES(name, T)                                                                       \
    static void name(int64_t n, const T *v, double *sum) {                                         \
        double lane[8] = {0};                                                                      \
        int64_t k = 0;                                                                             \
        for (; k + 8 <= n; k += 8)                                                                 \
            for (int l = 0; l < 8; l++) lane[l] += (double)v[k + l] * (double)v[k + l];            \
        for (; k < n; k++) lane[0] += (double)v[k] * (double)v[k];                                 \
        for (int l = 0; l < 8; l++) *sum += lane[l];                                               \
    }                                                                                              \
    static void name##_each(int64_t n, const T *v, int64_t step, double *sum) {                    \
        for (int64_t k = 0; k < n; k++) sum[k * step] += (double)v[k] * (double)v[k];              \
    }
SUM_SQUARES(squares, double)
SUM_SQUARES(squares_of_floats, float)
static void norm_rows(void *arg, int64_t first) {
    const NormJob *j = arg;
    const Tensor *x = j->x;
    int outer = x->nd - 1;
    int64_t n = x->n[outer], to = j->to[outer], i[LAYOUT_MAX_DIMS] = {0}, size[LAYOUT_MAX_DIMS];
    memcpy(size, x->n, sizeof size);
    if (outer) size[j->dim] = 1;
    do {
        int64_t ox = first * x->s[j->dim], oy = first * j->to[j->dim];
        for (int d = 0; d < outer; d++) ox += i[d] * x->s[d], oy += i[d] * j->to[d];
        const double *v = (const double *)x->p + ox;
        const float *f = (const float *)x->p + ox;
        double *sum = j->sum + oy;
        if (j->floats) to ? squares_of_floats_each(n, f, to, sum) : squares_of_floats(n, f, sum);
        else to ? squares_each(n, v, to, sum) : squares(n, v, sum);
    } while (box_next(outer, size, i));
}
static Tensor norms(const OpCall *c, int op, char *letters) {
    const Tensor *x = &c->in[op];
    Tensor out = {0};
    int64_t to[LAYOUT_MAX_DIMS] = {0};
    for (int d = 0; d < c->rule->nl[op]; d++)
        if (rule_find_out(c->rule, c->rule->in[op][d]) >= 0) {
            letters[out.nd] = c->rule->in[op][d];
            out.n[out.nd++] = x->n[d];
        }
    tensor_pack(&out);
    for (int d = 0, k = 0; d < c->rule->nl[op]; d++)
        if (rule_find_out(c->rule, c->rule->in[op][d]) >= 0) to[d] = out.s[k++];
    int64_t m = tensor_count(&out);
    double *o = out.p = base_malloc(base_mul((size_t)(m ? m : 1), sizeof *o));
    memset(o, 0, (size_t)m * sizeof *o);
    NormJob j = {x, c->floats >> op & 1, to, o, 0};
    if (!x->nd) j.floats ? squares_of_floats(1, x->p, o) : squares(1, x->p, o);
    else if (!box_empty(x)) {
        while (j.dim < x->nd - 2 && x->n[j.dim] == 1) j.dim++;
        int64_t rows = x->nd > 1 ? x->n[j.dim] : 1;
        if (c->pool && rows > 1 && to[j.dim] && tensor_count(x) > 1 << 16)
            pool_run(c->pool, rows, norm_rows, &j);
        else
            for (int64_t r = 0; r < rows; r++) norm_rows(&j, r);
    }
    for (int64_t i = 0; i < m; i++) o[i] = sqrt(o[i]);
    return out;
}
static double largest(const Tensor *x) {
    double most = 0;
    const double *v = x->p;
    for (int64_t i = 0, n = tensor_count(x); i < n; i++) most = v[i] > most ? v[i] : most;
    return most;
}
/* out = the product of the operands' norms; where there is a job, both bounds of it at once.
 * Returns a number that no product exceeds. */
static double norm_products(const OpCall *c, ScaleJob *bounds) {
    Rule r = {.nin = c->rule->nin, .nout = c->rule->nout, .text = "bound"};
    OpCall call = {.rule = &r, .dtype = DT_F64, .out = c->out, .pool = c->pool};
    for (int op = 0; op < r.nin; op++) {
        call.in[op] = norms(c, op, r.in[op]);
        r.nl[op] = call.in[op].nd;
    }
    memcpy(r.out, c->rule->out, sizeof r.out);
    static const double one64 = 1;
    EinsumSorted p = classify(&call, &one64, NULL);
    if (!box_empty(&call.out)) multiply(&call, &p, bounds);
    double most = 1;
    for (int op = 0; op < r.nin; op++) {
        most *= largest(&call.in[op]);
        free(call.in[op].p);
    }
    return most;
}
/* Do two operands meet in every letter that is summed? Then the product of their norms bounds the
 * sum of absolute products (Cauchy and Schwarz). */
static bool meet(const Rule *r) {
    if (r->nin != 2) return false;
    for (int op = 0; op < 2; op++)
        for (int i = 0; i < r->nl[op]; i++) {
            char ch = r->in[op][i];
            if (rule_find_out(r, ch) < 0 && rule_find(r, !op, ch) < 0) return false;
        }
    return true;
}
/* out >= the contraction of the operands' magnitudes, of float64 and packed: by their norms where
 * that holds, which costs no product; else that contraction. */
static void absolute_products(const OpCall *c) {
    if (meet(c->rule)) {
        norm_products(c, NULL);
        return;
    }
    OpCall call = *c;
    for (int op = 0; op < c->rule->nin; op++) {
        int64_t n = tensor_count(&c->in[op]);
        double *x = base_malloc(base_mul((size_t)n + 1, sizeof *x));
        for (int64_t k = 0; k < n; k++) x[k] = fabs(((const double *)c->in[op].p)[k]);
        call.in[op].p = x;
    }
    op_einsum(&call);
    for (int op = 0; op < c->rule->nin; op++) free(call.in[op].p);
}
/* The most terms that one element of the output sums. */
static double terms(const OpCall *c) {
    double k = 1;
    if (rule_listed(c->rule)) return einsum_rows_terms(c);
    for (int op = 0; op < c->rule->nin; op++)
        for (int i = 0; i < c->rule->nl[op]; i++) {
            char ch = c->rule->in[op][i];
            if (rule_find_out(c->rule, ch) < 0 && !(op == 1 && rule_find(c->rule, 0, ch) >= 0))
                k *= (double)c->in[op].n[i];
        }
    return k;
}
/* Is there a letter that the output lacks? */
static bool sums(const Rule *r) {
    for (int op = 0; op < r->nin; op++)
        for (int i = 0; i < r->nl[op]; i++)
            if (rule_find_out(r, r->in[op][i]) < 0) return true;
    return false;
}
/* Is each row of the result made of the operands' rows alone, none of which is looked for? */
static bool row_by_row(const Rule *r) {
    bool all = r->listed[RULE_MAX_IN] != 0;
    for (int op = 0; op < r->nin; op++) all &= r->listed[op] != 0;
    return all;
}
/* Do the outer letters of the result come from one operand alone, and the inner ones from the
 * other, each in its order? Then *outer is that operand, and the first *split letters are outer. */
static bool apart(const Rule *r, int *outer, int *split) {
    if (r->nin != 2 || !r->nout) return false;
    *outer = rule_find(r, 0, r->out[0]) >= 0 ? 0 : 1;
    *split = 0;
    while (*split < r->nout && rule_find(r, *outer, r->out[*split]) >= 0) (*split)++;
    for (int i = 0, last = -1; i < r->nout; i++) {
        const int of = i < *split ? *outer : !*outer, at = rule_find(r, of, r->out[i]);
        if (i == *split) last = -1;
        if (at <= last || rule_find(r, !of, r->out[i]) >= 0) return false;
        last = at;
    }
    return *split < r->nout;
}
bool op_factored_contraction(const OpCall *c, int operand, int *split) {
    Rule adjoint;
    const Rule *r = c->rule;
    int outer;
    if (operand >= 0) {
        adjoint = rule_adjoint(r, operand, op_saved(c->op, r->nin, operand));
        r = &adjoint;
    }
    return !rule_listed(r) && sums(r) && apart(r, &outer, split);
}
bool op_widening_contraction(const OpCall *c, int operand) {
    Rule adjoint;
    const Rule *r = c->rule;
    if (operand >= 0) {
        adjoint = rule_adjoint(r, operand, op_saved(c->op, r->nin, operand));
        r = &adjoint;
    }
    return !rule_listed(r) && r->nin == 2 && sums(r);
}
/* Both bounds by the norms of the two operands. Returns a number that no product exceeds. */
static double norm_factors(const OpCall *c, ErrorFactors *f) {
    int outer = 0, split;
    char letters[2][LAYOUT_MAX_DIMS + 1];
    apart(c->rule, &outer, &split);
    const Tensor row = norms(c, outer, letters[0]), col = norms(c, !outer, letters[1]);
    f->row = row.p, f->col = col.p, f->cols = tensor_count(&col);
    return largest(&row) * largest(&col);
}
/* gamma of the number of terms times the product of the operands' norms, which bounds the sum of
 * absolute products; of rows that for each part of the contraction, summed. */
void op_bound_contraction(const OpBound *b) {
    const OpCall *c = &b->call;
    OpCall adj;
    Rule ra;
    /* the adjoint is a contraction of the cotangent with the other operand */
    if (b->operand >= 0) adj = op_einsum_towards(c, b->operand, &ra), c = &adj;
    bool rows = rule_listed(c->rule) != 0;
    double k = terms(c);
    double tiny = (k + 1) * least_of(b->u);
    if ((!rows || row_by_row(c->rule)) && !sums(c->rule)) {
        /* the result has its one term's magnitude itself; norms would be as large as operands */
        ScaleJob j = {b->bound, b->prob,      gamma_n(2, b->u), gamma_prob(2, b->u),
                      tiny,     b->call.out.p};
        pool_pieces(c->pool, tensor_count(&c->out), scale_bounds, &j);
        return;
    }
    OpCall call = *c;
    call.out.p = b->bound;
    tensor_pack(&call.out);
    double ones = c->rule->nin == 1 && !rows ? sqrt(k) : 1, g = gamma_n(k + 1, b->u) * ones,
           p = gamma_prob(k + 1, b->u) * ones;
    ScaleJob j = {b->bound, b->prob, g, p, tiny, NULL};
    if (rows) {
        einsum_rows(&call, absolute_products);
        pool_pieces(c->pool, tensor_count(&c->out), scale_bounds, &j);
        return;
    }
    if (b->factors) *b->factors = (ErrorFactors){.g = g, .p = p, .tiny = tiny};
    double most = (b->factors ? norm_factors(c, b->factors) : norm_products(&call, &j)) * g + tiny;
    if (b->finite) *b->finite = isfinite(most); /* rounding keeps the order */
}

/* Norms of the operands for each place of the result, or where those do not hold magnitudes. */
void op_einsum_bound_scratch(const OpBound *b, OpScratch *s) {
    const OpCall *c = &b->call;
    OpCall adj;
    Rule ra;
    if (b->operand >= 0) adj = op_einsum_towards(c, b->operand, &ra), c = &adj;
    const bool rows = rule_listed(c->rule) != 0;
    if ((!rows || row_by_row(c->rule)) && !sums(c->rule)) return;
    const bool norms_do = !rows || meet(c->rule);
    if (rows) s->call = einsum_rows_room(c);
    for (int op = 0; op < c->rule->nin; op++) {
        int64_t n = rows && c->rule->listed[op] ? c->rows : 1;
        for (int d = 0; d < c->rule->nl[op]; d++) {
            const char ch = c->rule->in[op][d];
            if (rule_listed(c->rule) & RULE_BIT(ch) && c->rule->listed[op]) continue;
            if (!norms_do || rule_find_out(c->rule, ch) >= 0) n *= c->local[ch - 'a'];
        }
        s->call += 8 * n;
    }
}

const Op op_contract = {
    .name = "einsum", /* models name it so; records show the node's label, "linear" */
    .typical = "btd,fd->btf",
    .lin = LIN_BILINEAR,
    .forward = op_einsum,
    .adjoint = op_einsum_adjoint,
    .together = op_einsum_together,
    .scratch = op_einsum_scratch,
    .bound = op_bound_contraction,
    .bound_scratch = op_einsum_bound_scratch,
    .factored = op_factored_contraction,
    .widens = op_widening_contraction,
    .bound_each = BOUND_EACH,
    .exact = op_exact_same,
    .exact_adjoint = op_exact_adjoint_same,
    .flops = op_einsum_flops,
    .label = "linear",
};
