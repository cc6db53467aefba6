/* Contractions: a plain product where the rule is one, else the general kernel. */
#include "launch/launch.h"
#include <string.h>

enum { FEW = 4096, MANY = 256 }; /* outputs, and terms of each, from which a block makes one */

/* Letters of one kind, as one index: its size and its strides in both operands and the result. */
typedef struct {
    int64_t n, s[3];
    bool one; /* they can be walked with one stride */
} Index;
static void join(Index *g, int64_t n, const int64_t *s) { /* a letter behind those that are there */
    if (n == 1) return;
    for (int v = 0; v < 3; v++) {
        if (g->n > 1 && g->s[v] != s[v] * n) g->one = false;
        g->s[v] = s[v];
    }
    g->n *= n;
}
static int64_t stride_in(const OpCall *c, int operand, char ch) {
    int at = operand < c->rule->nin ? rule_find(c->rule, operand, ch) : -1;
    return at < 0 ? 0 : c->in[operand].s[at];
}
enum { BATCH, M, N, K, KINDS };
static void sort_letters(const OpCall *c, Index *g) {
    const Rule *r = c->rule;
    for (int k = 0; k < KINDS; k++) g[k] = (Index){.n = 1, .one = true};
    for (int i = 0; i < r->nout; i++) {
        int64_t s[3] = {stride_in(c, 0, r->out[i]), stride_in(c, 1, r->out[i]), c->out.s[i]};
        bool in0 = rule_find(r, 0, r->out[i]) >= 0,
             in1 = r->nin > 1 && rule_find(r, 1, r->out[i]) >= 0;
        join(&g[in0 && in1 ? BATCH : in1 ? N : M], c->out.n[i], s);
    }
    for (int i = 0; i < r->nl[0]; i++) {
        if (rule_find_out(r, r->in[0][i]) >= 0) continue;
        int64_t s[3] = {c->in[0].s[i], stride_in(c, 1, r->in[0][i]), 0};
        join(&g[K], c->in[0].n[i], s);
    }
}
/* Does every letter that is summed stand in both operands, and no letter in the result alone? */
static bool two_meet(const Rule *r) {
    if (r->nin != 2) return false;
    for (int op = 0; op < 2; op++)
        for (int i = 0; i < r->nl[op]; i++)
            if (rule_find_out(r, r->in[op][i]) < 0 && rule_find(r, !op, r->in[op][i]) < 0)
                return false;
    for (int i = 0; i < r->nout; i++)
        if (rule_find(r, 0, r->out[i]) < 0 && rule_find(r, 1, r->out[i]) < 0) return false;
    return true;
}
static bool unit(const GpuMatrix *m, int64_t rows, int64_t cols) {
    return (m->col == 1 && (rows == 1 || m->row >= cols)) ||
           (m->row == 1 && (cols == 1 || m->col >= rows));
}
bool launch_gemm_of(const OpCall *c, GpuGemm *g) {
    Index x[KINDS];
    if (!two_meet(c->rule)) return false;
    sort_letters(c, x);
    for (int k = 0; k < KINDS; k++)
        if (!x[k].one || x[k].n < 1) return false;
    if (x[K].n < 2 || x[M].n < 2 || x[N].n < 2) return false; /* outer products, dots, sums */
    *g = (GpuGemm){.f64 = c->dtype == DT_F64,
                   .bf16 = c->narrow && c->dtype == DT_F32,
                   .m = x[M].n,
                   .n = x[N].n,
                   .k = x[K].n,
                   .batch = x[BATCH].n,
                   .a = {c->in[0].p, x[M].s[0], x[K].s[0], x[BATCH].s[0]},
                   .b = {c->in[1].p, x[K].s[1], x[N].s[1], x[BATCH].s[1]},
                   .c = {c->out.p, x[M].s[2], x[N].s[2], x[BATCH].s[2]}};
    if (g->c.col != 1 && g->c.row == 1) { /* the transposed product: C' = B' A' */
        GpuMatrix a = g->a;
        g->a = (GpuMatrix){g->b.p, g->b.col, g->b.row, g->b.next};
        g->b = (GpuMatrix){a.p, a.col, a.row, a.next};
        g->c = (GpuMatrix){g->c.p, g->c.col, g->c.row, g->c.next};
        g->m = x[N].n;
        g->n = x[M].n;
    }
    return unit(&g->a, g->m, g->k) && unit(&g->b, g->k, g->n) && g->c.col == 1 && g->c.row >= g->n;
}
bool launch_einsum(const LaunchCall *x, const OpCall *c) {
    const Rule *r = c->rule;
    GpuGemm g;
    if (rule_listed(r)) return launch_einsum_rows(x, c, launch_einsum);
    if (c->in_int) return false;
    if (launch_gemm_of(c, &g)) {
        x->to->gemm(x->to->arg, &g);
        return true;
    }
    Tensor space = c->out;
    char letters[2 * GPU_DIMS];
    memcpy(letters, r->out, (size_t)r->nout);
    int64_t n[GPU_DIMS], outputs = tensor_count(&c->out), terms = 1;
    int nd = r->nout;
    for (int d = 0; d < nd; d++) n[d] = space.n[d];
    for (int op = 0; op < r->nin; op++)
        for (int i = 0; i < r->nl[op]; i++) {
            if (memchr(letters, r->in[op][i], (size_t)nd)) continue;
            if (nd == GPU_DIMS) return false;
            letters[nd] = r->in[op][i];
            terms *= n[nd++] = c->in[op].n[i];
        }
    bool block = outputs < FEW && terms >= MANY;
    GpuLaunch l = launch_over(x, block ? GPU_contract_block : GPU_contract, &space, &c->out);
    l.args.nd = nd;
    memcpy(l.args.n, n, sizeof n);
    for (int k = 0; k < r->nin; k++) launch_operand(&l, k, &c->in[k], r->in[k], letters);
    l.args.k[0] = r->nout;
    l.args.k[1] = r->nin > 1;
    if (block) launch_rows(x, &l, outputs);
    else launch_each(x, &l, outputs);
    return true;
}
LaunchFn launch_contract;
bool launch_contract(const LaunchCall *x) {
    const OpCall *c = x->c;
    Rule r;
    if (!x->adjoint) return launch_einsum(x, c);
    OpCall a = op_einsum_towards(c, c->operand, &r);
    return launch_einsum(x, &a);
}
