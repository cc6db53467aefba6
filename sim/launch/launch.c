/* What the launches of all ops share. See launch.h. */
#include "launch/launch.h"
#include "ops/util.h"
#include <string.h>

enum { MOST_BLOCKS = 1 << 20 };

GpuLaunch launch_over(const LaunchCall *x, int kernel, const Tensor *space, const Tensor *out) {
    GpuLaunch l = {.kernel = kernel, .f64 = x->c->dtype == DT_F64, .threads = GPU_THREADS};
    l.args.nd = space->nd;
    l.args.out.p = out->p;
    for (int d = 0; d < space->nd; d++) {
        l.args.n[d] = space->n[d];
        l.args.out.s[d] = d < out->nd ? out->s[d] : 0;
    }
    return l;
}
void launch_operand(GpuLaunch *l, int k, const Tensor *t, const char *letters, const char *space) {
    GpuTensor *o = &l->args.x[k];
    *o = (GpuTensor){.p = t->p};
    for (int d = 0; d < t->nd; d++) {
        const char *at = letters ? memchr(space, letters[d], (size_t)l->args.nd) : NULL;
        int to = !letters ? d : at ? (int)(at - space) : -1;
        if (to >= 0) o->s[to] = t->s[d];
    }
}
/* Two dims that lie in one run in every tensor are one. */
static bool one_run(const GpuArgs *a, int d) {
    const GpuTensor *t[GPU_IN + 1] = {&a->out};
    for (int k = 0; k < GPU_IN; k++) t[k + 1] = &a->x[k];
    for (int k = 0; k <= GPU_IN; k++)
        if (t[k]->s[d] != t[k]->s[d + 1] * a->n[d + 1]) return false;
    return true;
}
static void drop_dim(GpuArgs *a, int d) { /* it is one with the next */
    a->n[d + 1] *= a->n[d];
    for (int i = d; i + 1 < a->nd; i++) {
        a->n[i] = a->n[i + 1];
        a->out.s[i] = a->out.s[i + 1];
        for (int k = 0; k < GPU_IN; k++) a->x[k].s[i] = a->x[k].s[i + 1];
    }
    a->nd--;
}
static int64_t elements_of(const GpuArgs *a) {
    int64_t n = 1;
    for (int d = 0; d < a->nd; d++) n *= a->n[d];
    return n;
}
void launch_blocks(GpuLaunch *l, int64_t elements) {
    int64_t blocks = (elements + l->threads - 1) / l->threads;
    l->blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
}
void launch_each(const LaunchCall *x, GpuLaunch *l, int64_t elements) {
    launch_blocks(l, elements);
    if (elements > 0) x->to->run(x->to->arg, l);
}
void launch_map(const LaunchCall *x, GpuLaunch *l) {
    for (int d = l->args.nd - 2; d >= 0; d--)
        if (one_run(&l->args, d)) drop_dim(&l->args, d);
    launch_each(x, l, elements_of(&l->args));
}
void launch_rows(const LaunchCall *x, GpuLaunch *l, int64_t rows) {
    l->blocks = rows < MOST_BLOCKS ? rows : MOST_BLOCKS;
    if (rows > 0) x->to->run(x->to->arg, l);
}
void launch_fill(const LaunchCall *x, const Tensor *t, double v) {
    GpuLaunch l = launch_over(x, GPU_fill, t, t);
    l.args.a[0] = v;
    launch_map(x, &l);
}
/* Row b of a tensor of these letters. */
static void take_row(Tensor *t, const char *letters, int nl, Dtype dt, int64_t b) {
    const char *at = memchr(letters, 'b', (size_t)nl);
    if (!t->nd || !at) return;
    int d = (int)(at - letters);
    if (t->p) t->p = (char *)t->p + b * t->s[d] * dtype_size(dt);
    t->n[d] = 1;
}
bool launch_packings(const LaunchCall *x, LaunchFn *one) {
    const OpCall *c = x->c;
    if (op_packings(c, 2) == 1) return one(x);
    const Rule *r = c->rule;
    bool done = true;
    for (int64_t b = 0, n = c->local['b' - 'a']; b < n && done; b++) {
        OpCall row = *c;
        int64_t index = global_index(c, 'b', b);
        row.local['b' - 'a'] = 1;
        row.index['b' - 'a'] = &index;
        for (int i = 0; i < r->nin; i++) take_row(&row.in[i], r->in[i], r->nl[i], c->dtype, b);
        take_row(&row.cot, r->out, r->nout, c->dtype, b);
        take_row(&row.fout, r->out, r->nout, c->dtype, b);
        int of = c->operand;
        if (x->adjoint) take_row(&row.out, r->in[of], r->nl[of], c->dtype, b);
        else take_row(&row.out, r->out, r->nout, c->dtype, b);
        LaunchCall call = *x;
        call.c = &row;
        done = one(&call);
    }
    return done;
}
