/* Launches over the vocabulary, and over a router's scores. */
#include "launch/launch.h"
#include "ops/util.h"
#include <stdlib.h>

/* The rank's ids of the vocabulary: the table and k[0]. */
static void ids_of(const OpCall *c, GpuLaunch *l) {
    l->args.k[0] = c->local['v' - 'a'];
    l->table = c->index['v' - 'a'];
    l->bytes = l->table ? (size_t)l->args.k[0] * sizeof(int64_t) : 0;
}
/* How many of the rank's entries of a row are no padding (index lists ascend). */
static int64_t unpadded(const OpCall *c) {
    int64_t n = c->local['v' - 'a'];
    while (c->at->factor > 0 && n > 0 && (double)global_index(c, 'v', n - 1) >= c->at->factor) n--;
    return n;
}
LaunchFn launch_embed, launch_rowmax, launch_sumexp, launch_rowsum, launch_pick, launch_nll;
bool launch_embed(const LaunchCall *x) {
    const OpCall *c = x->c;
    GpuLaunch l = launch_over(x, x->adjoint ? GPU_embed_w : GPU_embed,
                              x->adjoint ? &c->cot : &c->out, &c->out);
    ids_of(c, &l);
    launch_operand(&l, 3, &c->in[1], "bt", "btd");
    if (x->adjoint) {
        for (int d = 0; d < 3; d++) l.args.out.s[d] = d == 2 ? c->out.s[1] : 0;
        l.args.k[1] = c->out.s[0];
        launch_operand(&l, 0, &c->cot, NULL, NULL);
        launch_rows(x, &l, l.args.k[0]);
        return true;
    }
    l.args.x[0] = (GpuTensor){.p = c->in[0].p, .s = {0, 0, c->in[0].s[1]}};
    l.args.k[1] = c->in[0].s[0];
    launch_each(x, &l, tensor_count(&c->out));
    return true;
}
LaunchFn launch_position;
/* The table: for each token the local row of its position, or -1. */
bool launch_position(const LaunchCall *x) {
    const OpCall *c = x->c;
    const Tensor *tokens = x->adjoint ? &c->cot : &c->out;
    int64_t n = tokens->n[0] * tokens->n[1], T = tokens->n[1],
            *table = base_malloc(base_mul((size_t)n + 1, sizeof *table));
    for (int64_t k = 0; k < n; k++)
        table[k] = op_local_position(c, 'p', op_position_in(c, k / T, k % T));
    GpuLaunch l = launch_over(x, x->adjoint ? GPU_position_w : GPU_position, tokens, &c->out);
    l.table = table;
    l.bytes = (size_t)n * sizeof *table;
    if (x->adjoint) {
        for (int d = 0; d < 3; d++) l.args.out.s[d] = d == 2 ? c->out.s[1] : 0;
        l.args.k[0] = c->out.n[0];
        l.args.k[1] = c->out.s[0];
        launch_operand(&l, 0, &c->cot, NULL, NULL);
        launch_rows(x, &l, l.args.k[0]);
    } else {
        l.args.x[0] = (GpuTensor){.p = c->in[0].p, .s = {0, 0, c->in[0].s[1]}};
        l.args.k[1] = c->in[0].s[0];
        launch_each(x, &l, n * tokens->n[2]);
    }
    free(table);
    return true;
}
static bool row(const LaunchCall *x, int kernel) {
    const OpCall *c = x->c;
    GpuLaunch l = launch_over(x, kernel, &c->in[0], &c->out);
    launch_operand(&l, 0, &c->in[0], NULL, NULL);
    if (c->rule->nin > 1) launch_operand(&l, 1, &c->in[1], NULL, NULL);
    l.args.k[1] = unpadded(c);
    launch_rows(x, &l, c->in[0].n[0] * c->in[0].n[1]);
    return true;
}
/* Over the logits' gradient; operand k: [b, t]. */
static GpuLaunch towards_logits(const LaunchCall *x, int kernel, int cot) {
    const OpCall *c = x->c;
    GpuLaunch l = launch_over(x, kernel, &c->out, &c->out);
    launch_operand(&l, cot, &c->cot, NULL, NULL);
    l.args.k[1] = unpadded(c);
    return l;
}
bool launch_rowmax(const LaunchCall *x) { return row(x, GPU_rowmax); }
bool launch_sumexp(const LaunchCall *x) {
    if (!x->adjoint) return row(x, GPU_sumexp);
    GpuLaunch l = towards_logits(x, GPU_sumexp_z, 2);
    launch_operand(&l, 0, &x->c->in[0], NULL, NULL);
    launch_operand(&l, 1, &x->c->in[1], NULL, NULL);
    launch_each(x, &l, tensor_count(&x->c->out));
    return true;
}
bool launch_rowsum(const LaunchCall *x) {
    if (!x->adjoint) return row(x, GPU_rowsum);
    GpuLaunch l = towards_logits(x, GPU_limited, 0);
    launch_each(x, &l, tensor_count(&x->c->out));
    return true;
}
bool launch_pick(const LaunchCall *x) {
    const OpCall *c = x->c;
    GpuLaunch l =
        x->adjoint ? towards_logits(x, GPU_pick_z, 0) : launch_over(x, GPU_pick, &c->out, &c->out);
    ids_of(c, &l);
    launch_operand(&l, 3, &c->in[1], NULL, NULL);
    if (!x->adjoint) {
        l.args.x[0] = (GpuTensor){.p = c->in[0].p, .s = {c->in[0].s[0], c->in[0].s[1]}};
        l.args.k[1] = c->in[0].s[2];
    }
    launch_each(x, &l, tensor_count(&c->out));
    return true;
}
bool launch_nll(const LaunchCall *x) {
    const OpCall *c = x->c;
    int kernel = !x->adjoint ? GPU_nll : c->operand ? GPU_nll_other : GPU_nll_sum;
    GpuLaunch l = launch_over(x, kernel, &c->out, &c->out);
    for (int k = 0; k < (x->adjoint ? 1 : 3); k++)
        if (c->in[k].p) launch_operand(&l, k, &c->in[k], NULL, NULL);
    if (x->adjoint) launch_operand(&l, 1, &c->cot, NULL, NULL);
    launch_operand(&l, 3, &c->in[3], NULL, NULL);
    l.args.a[0] = c->at->ignore;
    launch_map(x, &l);
    return true;
}

/* ---- a token's scores ---- */
LaunchFn launch_softmax, launch_normalise, launch_logsumexp;
static bool scores(const LaunchCall *x, int kernel, const Tensor *of) {
    const OpCall *c = x->c;
    GpuLaunch l = launch_over(x, kernel, of, &c->out);
    launch_operand(&l, 0, of, NULL, NULL);
    if (x->adjoint) launch_operand(&l, 2, &c->cot, NULL, NULL);
    launch_rows(x, &l, of->n[0] * of->n[1]);
    return true;
}
bool launch_softmax(const LaunchCall *x) {
    return x->adjoint ? scores(x, GPU_softmax_z, &x->c->fout)
                      : scores(x, GPU_softmax, &x->c->in[0]);
}
bool launch_normalise(const LaunchCall *x) {
    return scores(x, x->adjoint ? GPU_normalise_x : GPU_normalise, &x->c->in[0]);
}
bool launch_logsumexp(const LaunchCall *x) {
    return scores(x, x->adjoint ? GPU_logsumexp_z : GPU_logsumexp, &x->c->in[0]);
}
