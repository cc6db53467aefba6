/* Ops that work element by element: add (bias, residual) and the activations relu and silu. */
#include "kernel/pool.h"
#include "kernel/vec.h"
#include "ops/einsum_rows.h"
#include "ops/util.h"
#include <math.h>

/* ---- bounds shared by op files ---- */
typedef struct {
    const double *y;
    double *bound, *prob, g, p, tiny;
} RelativeJob;
static void relative(void *arg, int64_t lo, int64_t hi) {
    const RelativeJob *j = arg;
    for (int64_t i = lo; i < hi; i++) {
        double y = fabs(j->y[i]);
        j->bound[i] = j->g * y + j->tiny;
        j->prob[i] = j->p * y + j->tiny;
    }
}
void op_bound_relative(const OpBound *b, const double *y, double g, double p, double tiny) {
    RelativeJob j = {y, b->bound, b->prob, g, p, tiny};
    pool_pieces(b->call.pool, tensor_count(&b->call.out), relative, &j);
}
void op_bound_pointwise(const OpBound *b) {
    op_bound_relative(b, b->call.out.p, 16 * b->u, 16 * b->u, 0x1p-140);
}
typedef struct {
    const OpBound *b;
    double bound, prob;
} FlatJob;
static void flat(void *arg, int64_t lo, int64_t hi) {
    const FlatJob *j = arg;
    for (int64_t i = lo; i < hi; i++) j->b->bound[i] = j->bound, j->b->prob[i] = j->prob;
}
void op_bound_flat(const OpBound *b, double bound, double prob) {
    FlatJob j = {b, bound, prob};
    pool_pieces(b->call.pool, tensor_count(&b->call.out), flat, &j);
}
void op_bound_copy(const OpBound *b) { op_bound_flat(b, 0, 0); }

/* ---- rows: the last dim in one go, the others counted; workers share the rows ---- */
typedef struct {
    const OpCall *c;
    void (*row)(const OpCall *c, const int64_t *i, int64_t n);
    int64_t rows, per_task;
} RowJob;
static void row_task(void *arg, int64_t task) {
    const RowJob *j = arg;
    const Tensor *o = &j->c->out;
    int64_t first = task * j->per_task,
            last = first + j->per_task < j->rows ? first + j->per_task : j->rows;
    int64_t i[LAYOUT_MAX_DIMS] = {0}, k = first;
    for (int d = o->nd - 2; d >= 0; d--) {
        i[d] = k % o->n[d];
        k /= o->n[d];
    }
    for (int64_t r = first; r < last; r++) {
        j->row(j->c, i, o->nd ? o->n[o->nd - 1] : 1);
        if (o->nd > 1) box_next(o->nd - 1, o->n, i);
    }
}
void op_each_row(const OpCall *c, void (*row)(const OpCall *, const int64_t *, int64_t)) {
    if (box_empty(&c->out)) return;
    RowJob j = {c, row, 1, 1};
    for (int d = 0; d + 1 < c->out.nd; d++) j.rows *= c->out.n[d];
    int threads = c->pool ? pool_threads(c->pool) : 1;
    j.per_task =
        tensor_count(&c->out) > 1 << 16 ? (j.rows + 4 * threads - 1) / (4 * threads) : j.rows;
    int64_t tasks = (j.rows + j.per_task - 1) / j.per_task;
    if (c->pool && tasks > 1) pool_run(c->pool, tasks, row_task, &j);
    else
        for (int64_t t = 0; t < tasks; t++) row_task(&j, t);
}

/* ---- add: operands may lack letters of the output (a bias) ---- */
static int64_t operand_offset(const OpCall *c, int op, const int64_t *i, int64_t *inner) {
    int64_t o = 0;
    *inner = 0;
    for (int d = 0; d < c->rule->nl[op]; d++) {
        int at = rule_find_out(c->rule, c->rule->in[op][d]);
        if (at == c->rule->nout - 1) *inner = c->in[op].s[d];
        else if (at >= 0) o += i[at] * c->in[op].s[d];
    }
    return o;
}
static void add_row(const OpCall *c, const int64_t *i, int64_t n) {
    int64_t sa, sb, oa = operand_offset(c, 0, i, &sa), ob = operand_offset(c, 1, i, &sb);
    int64_t oc = box_offset(&c->out, c->out.nd - 1, i);
    if (c->dtype == DT_F32) {
        const float *a = (const float *)c->in[0].p + oa, *b = (const float *)c->in[1].p + ob;
        float *y = (float *)c->out.p + oc;
        if (sa == 1 && sb == 1)
            for (int64_t k = 0; k < n; k++) y[k] = a[k] + b[k];
        else
            for (int64_t k = 0; k < n; k++) y[k] = a[k * sa] + b[k * sb];
    } else {
        const double *a = (const double *)c->in[0].p + oa, *b = (const double *)c->in[1].p + ob;
        double *y = (double *)c->out.p + oc;
        for (int64_t k = 0; k < n; k++) y[k] = a[k * sa] + b[k * sb];
    }
}
/* A row and what its expert has; an expert of another rank has nothing. */
static void add_listed_row(const OpCall *c, const int64_t *i, int64_t n) {
    int64_t sa, o[2], inner[2] = {0}, oc = box_offset(&c->out, c->out.nd - 1, i);
    for (int k = 0; k < 2; k++) {
        if (c->rule->listed[k]) {
            o[k] = operand_offset(c, k, i, &inner[k]);
            continue;
        }
        RowMove m = {c, c->rule->in[k], c->rule->nl[k], &c->in[k], &c->out};
        int64_t place[LAYOUT_MAX_DIMS];
        memcpy(place, i, sizeof *place * (size_t)(c->out.nd - 1));
        for (int d = 0; d < c->out.nd; d++)
            if (c->rule->listed[RULE_MAX_IN] & RULE_BIT(c->rule->out[d])) place[d] = 0;
        o[k] = row_move_offset(&m, i[0]);
        sa = operand_offset(c, k, place, &inner[k]);
        if (o[k] >= 0) o[k] += sa;
    }
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        for (int j = 0; j < 2; j++)
            if (o[j] >= 0) sum += el_get(&c->in[j], c->dtype, o[j] + k * inner[j]);
        el_set(&c->out, c->dtype, oc + k * c->out.s[c->out.nd - 1], sum);
    }
}
static void add_forward(const OpCall *c) {
    if (c->out.nd == 0) { /* two scalars */
        el_set(&c->out, c->dtype, 0,
               el_get(&c->in[0], c->dtype, 0) + el_get(&c->in[1], c->dtype, 0));
        return;
    }
    op_each_row(c, rule_listed(c->rule) ? add_listed_row : add_row);
}
/* Derived: the cotangent, with the letters that the operand lacks contracted. */
static void add_adjoint(const OpCall *c) {
    Rule r = rule_adjoint(c->rule, c->operand, 0);
    OpCall a = *c;
    a.rule = &r;
    a.in[0] = c->cot;
    op_einsum(&a);
}
static void add_bound(const OpBound *b) {
    if (b->operand >= 0) {
        op_bound_contraction(b);
        return;
    }
    /* the run's own operands, one rounding, u, and as much for the double result */
    op_bound_relative(b, b->call.out.p, 2 * b->u, 2 * b->u, 0);
}
const Op op_add = {
    .name = "add",
    .typical = "btd,btd->btd",
    .lin = LIN_ADD,
    .forward = add_forward,
    .adjoint = add_adjoint,
    .bound = add_bound,
    .bound_each = BOUND_EACH,
    .exact = op_exact_same,
    .exact_adjoint = op_exact_adjoint_same,
    .flops_each = 1,
    .label = "add",
    .glyph = "plus",
};

/* ---- activations: a function of one number and its derivative each ---- */
typedef struct {
    OpCall call; /* first: rows are given a call */
    OpUnary *f;
    const void *of;
    bool adjoint;
} Unary;
static void unary_row(const OpCall *c, const int64_t *i, int64_t n) {
    const Unary *u = (const Unary *)c;
    const Tensor *x = &c->in[0], *g = &c->cot;
    int last = c->out.nd - 1;
    int64_t ox = box_offset(x, last, i), oy = box_offset(&c->out, last, i),
            og = u->adjoint ? box_offset(g, last, i) : 0;
    for (int64_t k = 0; k < n; k++) {
        double y = u->f(el_get(x, c->dtype, k ? ox + k * x->s[last] : ox), u->of);
        if (u->adjoint) y *= el_get(g, c->dtype, k ? og + k * g->s[last] : og);
        el_set(&c->out, c->dtype, oy + k, y);
    }
}
void op_unary(const OpCall *c, OpUnary *f, const void *of) {
    Unary u = {*c, f, of, false};
    op_each_row(&u.call, unary_row);
}
void op_unary_adjoint(const OpCall *c, OpUnary *derivative, const void *of) {
    Unary u = {*c, derivative, of, true};
    op_each_row(&u.call, unary_row);
}
static double relu(double x, const void *of) {
    (void)of;
    return x > 0 || x != x ? x : 0;
}
static void relu_forward(const OpCall *c) { op_unary(c, relu, NULL); }
static double relu_slope(double x, const void *of) {
    (void)of;
    return x > 0;
}
static void relu_adjoint(const OpCall *c) { op_unary_adjoint(c, relu_slope, NULL); }
static int relu_bends(const Attrs *at, OpBend *to) {
    (void)at;
    to[0] = (OpBend){0, false};
    return 1;
}
const Op op_relu = {
    .name = "relu",
    .typical = "btf->btf",
    .activation = "relu",
    .lin = LIN_NONE,
    .bends = relu_bends,
    .forward = relu_forward,
    .adjoint = relu_adjoint,
    .bound = op_bound_copy,
    .exact = op_exact_same,
    .exact_adjoint = op_exact_adjoint_same,
    .flops_each = 1,
    .label = "ReLU",
};

/* relu(x)^2 (Primer, arXiv 2109.08668). */
static double square(double x, const void *of) {
    (void)of;
    return x > 0 ? x * x : x != x ? x : 0;
}
static void square_forward(const OpCall *c) { op_unary(c, square, NULL); }
static double square_slope(double x, const void *of) {
    (void)of;
    return x > 0 ? 2 * x : 0;
}
static void square_adjoint(const OpCall *c) { op_unary_adjoint(c, square_slope, NULL); }
const Op op_relu_squared = {
    .name = "relu_squared",
    .typical = "btf->btf",
    .activation = "relu2",
    .lin = LIN_NONE,
    .forward = square_forward,
    .adjoint = square_adjoint,
    .bound = op_bound_pointwise,
    .bound_each = BOUND_EACH,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 2,
    .label = "ReLU^2",
};

void op_vec_row(const OpCall *c, const int64_t *i, int64_t n,
                void (*f32)(int64_t n, const float *x, float *y),
                void (*f64)(int64_t n, const double *x, double *y)) {
    int64_t ox = box_offset(&c->in[0], c->out.nd - 1, i),
            oy = box_offset(&c->out, c->out.nd - 1, i);
    if (c->dtype == DT_F32) f32(n, (const float *)c->in[0].p + ox, (float *)c->out.p + oy);
    else f64(n, (const double *)c->in[0].p + ox, (double *)c->out.p + oy);
}
static void silu_row(const OpCall *c, const int64_t *i, int64_t n) {
    op_vec_row(c, i, n, vec_silu_f32, vec_silu_f64);
}
static void silu_forward(const OpCall *c) { op_each_row(c, silu_row); }
static double silu_slope(double x, const void *of) {
    (void)of;
    double s = 1 / (1 + exp(-x));
    return s * (1 + x * (1 - s));
}
static void silu_adjoint(const OpCall *c) { op_unary_adjoint(c, silu_slope, NULL); }
/* The integer map of --exact: depends on the value in every bit and stays small. */
void op_exact_activation(const OpCall *c) {
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    if (box_empty(&c->out)) return;
    do {
        double x = el_get(&c->in[0], c->dtype, box_offset(&c->in[0], c->out.nd, i));
        el_set(&c->out, c->dtype, box_offset(&c->out, c->out.nd, i), fmod(3 * x + 5, 31));
    } while (box_next(c->out.nd, c->out.n, i));
}
/* Activations whose slope is at most about 1: forward a few u of |y|, adjoint of |cotangent|. */
void op_bound_activation(const OpBound *b) {
    op_bound_relative(b, b->operand < 0 ? b->call.out.p : b->call.cot.p, 16 * b->u, 16 * b->u,
                      0x1p-140);
}
const Op op_silu = {
    .name = "silu",
    .typical = "btf->btf",
    .activation = "silu",
    .lin = LIN_NONE,
    .forward = silu_forward,
    .adjoint = silu_adjoint,
    .bound = op_bound_activation,
    .bound_each = BOUND_EACH,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 4,
    .label = "SiLU",
};

/* ---- sigmoid: scores of a router ---- */
static double sigmoid(double x, const void *of) {
    (void)of;
    return 1 / (1 + exp(-x));
}
static void sigmoid_forward(const OpCall *c) { op_unary(c, sigmoid, NULL); }
static double sigmoid_slope(double x, const void *of) {
    (void)of;
    double s = 1 / (1 + exp(-fabs(x)));
    return s * (1 - s);
}
static void sigmoid_adjoint(const OpCall *c) { op_unary_adjoint(c, sigmoid_slope, NULL); }
const Op op_sigmoid = {
    .name = "sigmoid",
    .typical = "bte->bte",
    .lin = LIN_NONE,
    .forward = sigmoid_forward,
    .adjoint = sigmoid_adjoint,
    .bound = op_bound_activation,
    .bound_each = BOUND_EACH,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 4,
    .label = "sigmoid",
};
