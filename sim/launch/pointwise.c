/* Launches of ops that go element by element, and of what copies. */
#include "launch/launch.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

static void map1(const LaunchCall *x, int kernel, const Tensor *in, double a) {
    GpuLaunch l = launch_over(x, kernel, &x->c->out, &x->c->out);
    launch_operand(&l, 0, in, NULL, NULL);
    l.args.a[0] = a;
    launch_map(x, &l);
}
/* Operands lie like the output: x, and of the adjoint the cotangent. */
static bool activation(const LaunchCall *x, int kernel, int slope) {
    const OpCall *c = x->c;
    GpuLaunch l = launch_over(x, x->adjoint ? slope : kernel, &c->out, &c->out);
    launch_operand(&l, 0, &c->in[0], NULL, NULL);
    if (x->adjoint) launch_operand(&l, 1, &c->cot, NULL, NULL);
    l.args.a[0] = c->at->factor;
    launch_map(x, &l);
    return true;
}
#define ACTIVATION(op, kernel)                                                                     \
    LaunchFn launch_##op;                                                                          \
    bool launch_##op(const LaunchCall *x) {                                                        \
        return activation(x, GPU_##kernel, GPU_##kernel##_slope);                                  \
    }
ACTIVATION(relu, relu)
ACTIVATION(relu_squared, square)
ACTIVATION(silu, silu)
ACTIVATION(sigmoid, sigmoid)
ACTIVATION(gelu, gelu)
ACTIVATION(gelu_tanh, gelu_tanh)
ACTIVATION(tanh, tanh)
ACTIVATION(softcap, softcap)
ACTIVATION(clamp, clamp)

LaunchFn launch_add, launch_scale, launch_temperature, launch_swiglu, launch_split, launch_concat,
    launch_xielu, launch_limit_pairs, launch_swiglu_up_plus;
bool launch_xielu(const LaunchCall *x) {
    const OpCall *c = x->c;
    bool scalar = x->adjoint && c->operand > 0;
    int kernel = scalar ? GPU_xielu_scalar : x->adjoint ? GPU_xielu_slope : GPU_xielu;
    GpuLaunch l = launch_over(x, kernel, &c->in[0], &c->out);
    launch_operand(&l, 0, &c->in[0], NULL, NULL);
    for (int k = 1; k < 3; k++) l.args.x[k].p = c->in[k].p;
    if (x->adjoint) launch_operand(&l, 3, &c->cot, NULL, NULL);
    l.args.k[0] = c->operand;
    if (scalar) launch_rows(x, &l, 1);
    else launch_map(x, &l);
    return true;
}
bool launch_add(const LaunchCall *x) {
    const OpCall *c = x->c;
    if (x->adjoint) { /* the cotangent, with the letters that the operand lacks contracted */
        Rule r = rule_adjoint(c->rule, c->operand, 0);
        OpCall a = *c;
        a.rule = &r;
        a.in[0] = c->cot;
        return launch_einsum(x, &a);
    }
    GpuLaunch l = launch_over(x, GPU_add, &c->out, &c->out);
    for (int k = 0; k < 2; k++) {
        if (rule_listed(c->rule) && !c->rule->listed[k]) {
            Tensor rows = launch_gathered(x, k);
            launch_operand(&l, k, &rows, NULL, NULL);
        } else launch_operand(&l, k, &c->in[k], c->rule->in[k], c->rule->out);
    }
    launch_map(x, &l);
    return true;
}
bool launch_scale(const LaunchCall *x) {
    map1(x, GPU_times, x->adjoint ? &x->c->cot : &x->c->in[0], x->c->at->factor);
    return true;
}
static bool temperature(const LaunchCall *x) {
    const OpCall *c = x->c;
    int t_at = rule_find_out(c->rule, 't');
    int64_t T = c->out.n[t_at];
    GpuLaunch l = launch_over(x, GPU_temperature, &c->out, &c->out);
    double *table = base_malloc(base_mul((size_t)T + 1, sizeof *table));
    for (int64_t t = 0; t < T; t++) {
        int64_t pos = op_position_in(c, 0, t);
        table[t] = 1 + c->at->b * log((double)((pos + 1) / c->at->chunk) + 1);
    }
    launch_operand(&l, 0, x->adjoint ? &c->cot : &c->in[0], NULL, NULL);
    l.args.k[0] = t_at;
    l.table = table;
    l.bytes = (size_t)T * sizeof *table;
    launch_each(x, &l, tensor_count(&c->out));
    free(table);
    return true;
}
bool launch_temperature(const LaunchCall *x) { return launch_packings(x, temperature); }
/* [.., u, f] as [.., f] of one u. */
static Tensor one_of_pair(const Tensor *t, int64_t u, Dtype dt) {
    Tensor x = *t;
    int last = t->nd - 1;
    x.p = (char *)t->p + u * t->s[last - 1] * dtype_size(dt);
    x.n[last - 1] = t->n[last];
    x.s[last - 1] = t->s[last];
    x.nd = last;
    return x;
}
bool launch_swiglu(const LaunchCall *x) {
    const OpCall *c = x->c;
    Tensor gate = one_of_pair(&c->in[0], 0, c->dtype), up = one_of_pair(&c->in[0], 1, c->dtype);
    for (int k = 0, n = x->adjoint ? 2 : 1; k < n; k++) {
        Tensor out = x->adjoint ? one_of_pair(&c->out, k, c->dtype) : c->out;
        int kernel = !x->adjoint ? GPU_swiglu : k ? GPU_swiglu_up : GPU_swiglu_gate;
        GpuLaunch l = launch_over(x, kernel, &out, &out);
        launch_operand(&l, 0, &gate, NULL, NULL);
        launch_operand(&l, 1, &up, NULL, NULL);
        if (x->adjoint) launch_operand(&l, 2, &c->cot, NULL, NULL);
        launch_map(x, &l);
    }
    return true;
}
/* [.., f, u] as [.., f] of one u. */
static Tensor one_of_two(const Tensor *t, int64_t u, Dtype dt) {
    Tensor x = *t;
    x.p = (char *)t->p + u * t->s[--x.nd] * dtype_size(dt);
    return x;
}
bool launch_limit_pairs(const LaunchCall *x) {
    const OpCall *c = x->c;
    static const int kernel[2][2] = {{GPU_limit_above, GPU_clamp},
                                     {GPU_limit_above_slope, GPU_clamp_slope}};
    for (int u = 0; u < 2; u++) {
        Tensor in = one_of_two(&c->in[0], u, c->dtype), out = one_of_two(&c->out, u, c->dtype),
               cot = x->adjoint ? one_of_two(&c->cot, u, c->dtype) : in;
        GpuLaunch l = launch_over(x, kernel[x->adjoint][u], &out, &out);
        launch_operand(&l, 0, &in, NULL, NULL);
        if (x->adjoint) launch_operand(&l, 1, &cot, NULL, NULL);
        l.args.a[0] = c->at->factor;
        launch_map(x, &l);
    }
    return true;
}
bool launch_swiglu_up_plus(const LaunchCall *x) {
    const OpCall *c = x->c;
    Tensor gate = one_of_two(&c->in[0], 0, c->dtype), up = one_of_two(&c->in[0], 1, c->dtype);
    for (int u = 0, n = x->adjoint ? 2 : 1; u < n; u++) {
        Tensor out = x->adjoint ? one_of_two(&c->out, u, c->dtype) : c->out;
        int kernel = !x->adjoint ? GPU_swiglu_plus : u ? GPU_swiglu_plus_up : GPU_swiglu_plus_gate;
        GpuLaunch l = launch_over(x, kernel, &out, &out);
        launch_operand(&l, 0, &gate, NULL, NULL);
        launch_operand(&l, 1, &up, NULL, NULL);
        if (x->adjoint) launch_operand(&l, 2, &c->cot, NULL, NULL);
        l.args.a[0] = c->at->a;
        launch_map(x, &l);
    }
    return true;
}

/* ---- blocks of the last dim ---- */
/* From `at` on, n of them. */
static Tensor block(const Tensor *t, int64_t at, int64_t n, Dtype dt) {
    Tensor x = *t;
    x.p = (char *)t->p + at * t->s[t->nd - 1] * dtype_size(dt);
    x.n[t->nd - 1] = n;
    return x;
}
static void copy(const LaunchCall *x, const Tensor *to, const Tensor *from) {
    GpuLaunch l = launch_over(x, GPU_copy, to, to);
    launch_operand(&l, 0, from, NULL, NULL);
    launch_map(x, &l);
}
/* Of what was split, t, the elements that the block has, with the block's dims: its letters that
 * are no row's follow one another along the last dim. */
static Tensor split_view(const OpCall *c, const Tensor *t) {
    const Rule *r = c->rule;
    Tensor v = {.nd = r->nout,
                .p = (char *)t->p + c->at->offset * t->s[t->nd - 1] * dtype_size(c->dtype)};
    int64_t stride = t->s[t->nd - 1];
    for (int d = r->nout - 1; d >= 0; d--) {
        const char *row = memchr(r->in[0], r->out[d], (size_t)r->nl[0]);
        v.n[d] = c->local[r->out[d] - 'a'];
        v.s[d] = row ? t->s[row - r->in[0]] : stride;
        if (!row) stride *= v.n[d];
    }
    return v;
}
bool launch_split(const LaunchCall *x) {
    const OpCall *c = x->c;
    if (!x->adjoint) {
        Tensor from = split_view(c, &c->in[0]);
        copy(x, &c->out, &from);
        return true;
    }
    launch_fill(x, &c->out, 0);
    Tensor to = split_view(c, &c->out);
    copy(x, &to, &c->cot);
    return true;
}
/* Where operand k begins in the whole: behind those before it, whose last letters are whole. */
static int64_t begin_of(const OpCall *c, int k) {
    int64_t at = 0;
    for (int i = 0; i < k; i++) at += c->global[c->rule->in[i][c->rule->nl[i] - 1] - 'a'];
    return at;
}
bool launch_concat(const LaunchCall *x) {
    const OpCall *c = x->c;
    const Rule *r = c->rule;
    if (x->adjoint) {
        Rule ra = rule_adjoint(r, c->operand, 0);
        OpCall a = *c;
        ra.in[0][c->cot.nd - 1] = ra.out[ra.nout - 1];
        a.in[0] = block(&c->cot, begin_of(c, c->operand), c->out.n[c->out.nd - 1], c->dtype);
        a.rule = &ra;
        return launch_einsum(x, &a);
    }
    for (int k = 0; k < r->nin; k++) {
        const Tensor *in = &c->in[k];
        Tensor to = block(&c->out, begin_of(c, k), in->n[in->nd - 1], c->dtype);
        char letters[LAYOUT_MAX_DIMS + 1];
        memcpy(letters, r->out, sizeof letters);
        letters[to.nd - 1] = r->in[k][in->nd - 1];
        GpuLaunch l = launch_over(x, GPU_copy, &to, &to);
        launch_operand(&l, 0, in, r->in[k], letters);
        launch_map(x, &l);
    }
    return true;
}

/* ---- the optimizer ---- */
LaunchFn launch_axpby, launch_ema_square, launch_adamw, launch_clip, launch_sumsq;
static bool update(const LaunchCall *x, int kernel, const double *a, int n) {
    const OpCall *c = x->c;
    GpuLaunch l = launch_over(x, kernel, &c->out, &c->out);
    for (int k = 0; k < c->rule->nin; k++) launch_operand(&l, k, &c->in[k], NULL, NULL);
    for (int k = 0; k < n; k++) l.args.a[k] = a[k];
    launch_map(x, &l);
    return true;
}
bool launch_axpby(const LaunchCall *x) {
    return update(x, GPU_axpby, (double[]){x->c->at->a, x->c->at->b}, 2);
}
bool launch_ema_square(const LaunchCall *x) {
    return update(x, GPU_ema_square, (double[]){x->c->at->a, x->c->at->b}, 2);
}
bool launch_adamw(const LaunchCall *x) {
    const Attrs *at = x->c->at;
    double t = (double)at->step;
    return update(
        x, GPU_adamw,
        (double[]){at->lr, at->decay, 1 - pow(at->beta1, t), 1 - pow(at->beta2, t), at->eps}, 5);
}
bool launch_clip(const LaunchCall *x) { return update(x, GPU_clip, &x->c->at->a, 1); }
/* The contraction of the operand with itself. */
bool launch_sumsq(const LaunchCall *x) {
    const OpCall *c = x->c;
    Rule r = *c->rule;
    OpCall both = *c;
    r.nin = 2;
    r.nl[1] = r.nl[0];
    memcpy(r.in[1], r.in[0], sizeof r.in[1]);
    both.rule = &r;
    both.in[1] = c->in[0];
    return launch_einsum(x, &both);
}
