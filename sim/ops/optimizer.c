/* Element-wise updates of an optimizer and the sum of squares behind gradient clipping (semantics
 * of torch.optim's SGD and AdamW). Any cut of parameter, gradient and state that is the same cut is
 * exact. No gradient passes through them. */
#include "ops/util.h"
#include <math.h>

/* Calls f on the elements of up to three operands that lie like the output. */
static void each(const OpCall *c, double (*f)(const Attrs *at, const double *x)) {
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    int nd = c->out.nd;
    if (box_empty(&c->out)) return;
    do {
        double x[3] = {0};
        for (int k = 0; k < c->rule->nin; k++)
            x[k] = el_get(&c->in[k], c->dtype, box_offset(&c->in[k], nd, i));
        el_set(&c->out, c->dtype, box_offset(&c->out, nd, i), f(c->at, x));
    } while (box_next(nd, c->out.n, i));
}
static void bound_sum(const OpBound *b) { /* a few roundings of the magnitudes that are added */
    const OpCall *c = &b->call;
    int64_t n = tensor_count(&c->out);
    for (int64_t i = 0; i < n; i++) {
        double m = fabs(((const double *)c->out.p)[i]);
        for (int k = 0; k < c->rule->nin; k++) m += fabs(((const double *)c->in[k].p)[i]);
        b->bound[i] = b->prob[i] = 16 * b->u * m + 0x1p-140;
    }
}

static double axpby(const Attrs *at, const double *x) { return at->a * x[0] + at->b * x[1]; }
static void axpby_forward(const OpCall *c) { each(c, axpby); }
const Op op_axpby = {
    .name = "axpby",
    .typical = "fd,fd->fd",
    .lin = LIN_NONE,
    .nodiff = 3,
    .forward = axpby_forward,
    .bound = bound_sum,
    .exact = op_exact_same,
    .flops_each = 3,
    .label = "weighted sum",
};

static double ema_square(const Attrs *at, const double *x) {
    return at->a * x[0] + at->b * x[1] * x[1];
}
static void ema_square_forward(const OpCall *c) { each(c, ema_square); }
static void ema_square_bound(const OpBound *b) {
    const OpCall *c = &b->call;
    int64_t n = tensor_count(&c->out);
    for (int64_t i = 0; i < n; i++) {
        double v = ((const double *)c->in[0].p)[i], g = ((const double *)c->in[1].p)[i];
        b->bound[i] = b->prob[i] = 16 * b->u * (fabs(v) + g * g) + 0x1p-140;
    }
}
const Op op_ema_square = {
    .name = "ema_square",
    .typical = "fd,fd->fd",
    .lin = LIN_NONE,
    .nodiff = 3,
    .forward = ema_square_forward,
    .bound = ema_square_bound,
    .exact = op_exact_same,
    .flops_each = 3,
    .label = "second moment",
};

/* p (1 - lr wd) - lr m^ / (sqrt(v^) + eps), with m^ = m / (1 - beta1^t) and v^ = v / (1 - beta2^t);
 * x = p, m, v. */
static double adamw(const Attrs *at, const double *x) {
    double t = (double)at->step, mh = x[1] / (1 - pow(at->beta1, t)),
           vh = x[2] / (1 - pow(at->beta2, t));
    return x[0] * (1 - at->lr * at->decay) - at->lr * mh / (sqrt(vh) + at->eps);
}
static void adamw_forward(const OpCall *c) { each(c, adamw); }
static void adamw_bound(const OpBound *b) {
    const OpCall *c = &b->call;
    int64_t n = tensor_count(&c->out);
    for (int64_t i = 0; i < n; i++) {
        double p = ((const double *)c->in[0].p)[i], step = ((const double *)c->out.p)[i] - p;
        b->bound[i] = b->prob[i] = 32 * b->u * (fabs(p) + fabs(step)) + 0x1p-140;
    }
}
const Op op_adamw = {
    .name = "adamw",
    .typical = "fd,fd,fd->fd",
    .lin = LIN_NONE,
    .nodiff = 7,
    .forward = adamw_forward,
    .bound = adamw_bound,
    .exact = op_exact_same,
    .flops_each = 8,
    .label = "AdamW",
};

/* Sum of squares of all elements: each distinct element once, because a cut letter is contracted
 * and a whole one is equal. */
static void sumsq_forward(const OpCall *c) {
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    double s = 0;
    if (!box_empty(&c->in[0])) do {
            double x = el_get(&c->in[0], c->dtype, box_offset(&c->in[0], c->in[0].nd, i));
            s += x * x;
        } while (box_next(c->in[0].nd, c->in[0].n, i));
    el_set(&c->out, c->dtype, 0, s);
}
static void sumsq_bound(const OpBound *b) {
    double n = (double)tensor_count(&b->call.in[0]);
    b->bound[0] = b->prob[0] =
        gamma_n(n + 2, b->u) * fabs(((const double *)b->call.out.p)[0]) + 0x1p-140;
}
static double sumsq_flops(const OpCall *c) { return 2 * (double)tensor_count(&c->in[0]); }
const Op op_sumsq = {
    .name = "sumsq",
    .typical = "fd->",
    .lin = LIN_NONE,
    .nodiff = 1,
    .forward = sumsq_forward,
    .bound = sumsq_bound,
    .exact = op_exact_same,
    .flops = sumsq_flops,
    .label = "sum of squares",
};

/* min(1, max_norm / (norm + 1e-6)) from the squared norm: torch's clip_grad_norm_. */
static double clip(const Attrs *at, const double *x) {
    double k = at->a / (sqrt(x[0]) + 1e-6);
    return k < 1 ? k : 1;
}
static void clip_forward(const OpCall *c) { each(c, clip); }
const Op op_clip = {
    .name = "clip",
    .typical = "->",
    .lin = LIN_NONE,
    .nodiff = 1,
    .forward = clip_forward,
    .bound = op_bound_pointwise,
    .exact = op_exact_same,
    .flops_each = 3,
    .label = "clip factor",
};
