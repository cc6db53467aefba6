/* Launches of RMSNorm, LayerNorm and RoPE. */
#include "launch/launch.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

LaunchFn launch_rmsnorm, launch_rmsnorm_plus, launch_layernorm, launch_layernorm_plus, launch_rope;
/* Over [rows.., n]: x, w along the last dim, the cotangent. */
static GpuLaunch norm(const LaunchCall *x, int kernel, const Tensor *out, double plus) {
    const OpCall *c = x->c;
    const Tensor *in = &c->in[0];
    int last = in->nd - 1;
    GpuLaunch l = launch_over(x, kernel, in, out);
    launch_operand(&l, 0, in, NULL, NULL);
    l.args.k[0] = c->rule->nin > 1;
    if (c->rule->nin > 1 && c->in[1].p) {
        l.args.x[1].p = c->in[1].p;
        l.args.x[1].s[last] = c->in[1].s[0];
    }
    if (x->adjoint) launch_operand(&l, 2, &c->cot, NULL, NULL);
    l.args.a[0] = c->at->eps;
    l.args.a[1] = plus;
    return l;
}
/* The kernels of a norm: the op, towards x, what a row is measured as, and towards w with those. */
typedef struct {
    int forward, x, rows, w, each; /* each: doubles that a row is measured as */
} Norm;
static bool normed(const LaunchCall *x, const Norm *k, double plus) {
    const OpCall *c = x->c;
    const Tensor *in = &c->in[0];
    int64_t n = in->n[in->nd - 1], rows = n ? tensor_count(in) / n : 0;
    if (!x->adjoint || c->operand == 0) {
        GpuLaunch l = norm(x, x->adjoint ? k->x : k->forward, &c->out, plus);
        launch_rows(x, &l, rows);
        return true;
    }
    Tensor measures = {.p = x->to->scratch(x->to->arg, (rows * k->each + 1) * 8)};
    GpuLaunch l = norm(x, k->rows, &measures, plus);
    launch_rows(x, &l, rows);
    l = norm(x, k->w, &c->out, plus);
    for (int d = 0; d < in->nd; d++) l.args.out.s[d] = 0;
    l.args.out.s[in->nd - 1] = c->out.s[0];
    l.args.x[3].p = measures.p;
    launch_each(x, &l, n);
    return true;
}
static const Norm rms = {GPU_rmsnorm, GPU_rmsnorm_x, GPU_rmsnorm_rate, GPU_rmsnorm_w, 1},
                  layer = {GPU_layernorm, GPU_layernorm_x, GPU_layernorm_rows, GPU_layernorm_w, 2};
bool launch_rmsnorm(const LaunchCall *x) { return normed(x, &rms, 0); }
bool launch_rmsnorm_plus(const LaunchCall *x) { return normed(x, &rms, 1); }
bool launch_layernorm(const LaunchCall *x) { return normed(x, &layer, 0); }
bool launch_layernorm_plus(const LaunchCall *x) { return normed(x, &layer, 1); }

/* Elements k * step and k * step + mate turn together; see rope.c. */
static bool neighbours(RopeOrder order, bool written) {
    return order == ROPE_NEIGHBOURS || (order == ROPE_NEIGHBOURS_TO_HALVES && !written);
}
static bool rope(const LaunchCall *x) {
    const OpCall *c = x->c;
    const Tensor *in = x->adjoint ? &c->cot : &c->in[0];
    int last = in->nd - 1, t_at = rule_find_out(c->rule, 't');
    int64_t h = c->at->n_freq, T = in->n[t_at], size = 2 * T * h;
    bool from = neighbours(c->at->order, x->adjoint), to = neighbours(c->at->order, !x->adjoint);
    Tensor space = *in, rest = *in, to_rest = c->out; /* what does not turn */
    rest.n[last] = to_rest.n[last] = in->n[last] - 2 * h;
    rest.p = (char *)in->p + 2 * h * in->s[last] * dtype_size(c->dtype);
    to_rest.p = (char *)c->out.p + 2 * h * c->out.s[last] * dtype_size(c->dtype);
    if (rest.n[last] > 0) {
        GpuLaunch copy = launch_over(x, GPU_copy, &to_rest, &to_rest);
        launch_operand(&copy, 0, &rest, NULL, NULL);
        launch_map(x, &copy);
    }
    space.n[last] = h;
    GpuLaunch l = launch_over(x, GPU_rope, &space, &c->out);
    launch_operand(&l, 0, in, NULL, NULL);
    l.args.k[0] = in->s[last] * (from ? 1 : h);
    l.args.k[1] = c->out.s[last] * (to ? 1 : h);
    l.args.k[2] = t_at;
    l.args.x[0].s[last] *= from ? 2 : 1;
    l.args.out.s[last] *= to ? 2 : 1;
    double *table = base_malloc(base_mul((size_t)size + 1, sizeof *table));
    for (int64_t t = 0; t < T; t++)
        for (int64_t k = 0; k < h; k++) {
            double angle = (double)op_position_in(c, 0, t) * c->at->inv_freq[k];
            table[2 * t * h + k] = c->at->turn * cos(angle);
            table[(2 * t + 1) * h + k] = (x->adjoint ? -c->at->turn : c->at->turn) * sin(angle);
        }
    l.table = table;
    l.bytes = (size_t)size * sizeof *table;
    launch_each(x, &l, tensor_count(&space));
    free(table);
    return true;
}
bool launch_rope(const LaunchCall *x) { return launch_packings(x, rope); }
