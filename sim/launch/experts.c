/* Launches of what works on rows of experts: contractions over an index list, and the weights that
 * a router gives the chosen. The list comes to the host, which says with tables where rows stand,
 * so that kernels know no lists. */
#include "launch/launch.h"
#include "ops/einsum_rows.h"
#include "ops/router.h"
#include <stdlib.h>
#include <string.h>

OpCall launch_with_ids(const LaunchCall *x) {
    OpCall c = *x->c;
    int64_t rows = c.ids.nd ? c.ids.n[0] : 0;
    if (rows) c.ids.p = (void *)(uintptr_t)x->to->read(x->to->arg, c.ids.p, rows * 8);
    return c;
}

/* ---- contractions over rows ---- */
typedef struct {
    const LaunchCall *x;
    LaunchProduct *product;
    bool done; /* every product had a kernel */
} Hands;
static void dense(void *arg, const OpCall *c) {
    Hands *h = arg;
    if (tensor_count(&c->out) && !h->product(h->x, c)) h->done = false;
}
static void *take(void *arg, int64_t n) {
    const Hands *h = arg;
    return h->x->to->scratch(h->x->to->arg, n);
}
static void give(void *arg, void *p) { /* it is gone when the call is done */
    (void)arg;
    (void)p;
}
static void fill(void *arg, const Tensor *t, Dtype dt, double v) {
    const Hands *h = arg;
    (void)dt;
    launch_fill(h->x, t, v);
}
static void with_table(const LaunchCall *x, GpuLaunch *l, const int64_t *table, int64_t n,
                       int64_t elements) {
    l->table = table;
    l->bytes = (size_t)n * sizeof *table;
    launch_each(x, l, elements);
}
/* Strides of the dense tensor in place of the rows' own, behind dim 0. */
static void dense_strides(const RowMove *m, GpuTensor *t) {
    int64_t s[LAYOUT_MAX_DIMS];
    int nd = row_move_strides(m, s);
    t->p = m->dense->p;
    t->s[0] = 0;
    for (int d = 0; d < nd; d++) t->s[d + 1] = s[d];
}
static void gather(void *arg, const RowMove *m) {
    const Hands *h = arg;
    int64_t n = m->rows->n[0], *table = base_malloc(base_mul((size_t)n + 1, sizeof *table));
    for (int64_t r = 0; r < n; r++) table[r] = row_move_offset(m, r);
    GpuLaunch l = launch_over(h->x, GPU_gather_rows, m->rows, m->rows);
    dense_strides(m, &l.args.x[0]);
    with_table(h->x, &l, table, n, tensor_count(m->rows));
    free(table);
}
Tensor launch_gathered(const LaunchCall *x, int k) {
    OpCall c = launch_with_ids(x);
    Tensor rows = c.out, move = {.nd = 1, .n = {c.out.n[0]}};
    tensor_pack(&rows);
    rows.p = x->to->scratch(x->to->arg, (tensor_count(&rows) + 1) * dtype_size(c.dtype));
    for (int d = 0; d < c.out.nd; d++) /* a row's own dims behind the rows */
        if (!(c.rule->listed[RULE_MAX_IN] & RULE_BIT(c.rule->out[d])))
            move.n[move.nd++] = c.out.n[d];
    tensor_pack(&move);
    move.p = rows.p;
    Hands h = {x, NULL, true};
    gather(&h, &(RowMove){&c, c.rule->in[k], c.rule->nl[k], &c.in[k], &move});
    return rows;
}
/* A row and where it goes. */
typedef struct {
    int64_t to, row;
} Going;
static int by_place(const void *p, const void *q) {
    const Going *a = p, *b = q;
    if (a->to != b->to) return a->to < b->to ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}
/* The rows of this rank by their places, each place's in their order; how many. */
static int64_t sort_rows(const RowMove *m, Going *g) {
    int64_t n = 0;
    for (int64_t r = 0; r < m->c->rows; r++) {
        int64_t to = row_move_offset(m, r);
        if (to >= 0) g[n++] = (Going){to, r};
    }
    if (n) qsort(g, (size_t)n, sizeof *g, by_place);
    return n;
}
static void scatter(void *arg, const RowMove *m) {
    const Hands *h = arg;
    Going *g = base_malloc(base_mul((size_t)m->c->rows + 1, sizeof *g));
    int64_t n = sort_rows(m, g), places = 0, at = 0;
    for (int64_t i = 0; i < n; i++) places += !i || g[i].to != g[i - 1].to;
    int64_t *table = base_malloc(base_mul((size_t)(2 * places + n) + 1, sizeof *table));
    for (int64_t i = 0; i < n; i++) {
        table[2 * places + 1 + i] = g[i].row;
        if (i && g[i].to == g[i - 1].to) continue;
        table[at] = g[i].to;
        table[places + at++] = i;
    }
    table[2 * places] = n;
    launch_fill(h->x, m->dense, 0);
    Tensor space = *m->rows;
    space.n[0] = places;
    GpuLaunch l = launch_over(h->x, GPU_scatter_rows, &space, m->rows);
    l.args.x[0] = l.args.out;
    dense_strides(m, &l.args.out);
    with_table(h->x, &l, table, 2 * places + 1 + n, tensor_count(&space));
    free(table);
    free(g);
}
bool launch_einsum_rows(const LaunchCall *x, const OpCall *c, LaunchProduct *product) {
    Hands h = {x, product, true};
    LaunchCall call = *x;
    call.c = c;
    OpCall here = launch_with_ids(&call);
    einsum_rows_by(&here, &(RowHands){dense, take, give, fill, gather, scatter, &h});
    return h.done;
}

/* ---- weights of the chosen ---- */
enum { EXPERTS, SCORE, COT, FOUT, OUT }; /* k[] of ops/router.cu.h */
/* Where the rows of each token begin and the last ends, the rows, the expert of each; *n numbers.
 */
static int64_t *rows_by_token(const OpCall *c, int64_t *n) {
    RowChains x = row_chains(c);
    int64_t here = 0;
    for (int64_t r = 0; r < c->rows; r++) here += x.e[r] >= 0;
    *n = x.n + 1 + 2 * here;
    int64_t *table = base_malloc(base_mul((size_t)*n + 1, sizeof *table)), *row = table + x.n + 1,
            at = 0;
    for (int64_t i = 0; i < x.n; i++) {
        table[i] = at;
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r]) {
            row[at] = r;
            row[here + at++] = x.e[r];
        }
    }
    table[x.n] = at;
    row_chains_free(&x);
    return table;
}
static bool weights(const LaunchCall *x, int kernel, int towards) {
    OpCall c = launch_with_ids(x);
    const Tensor *z = &c.in[0];
    int64_t n, *table = rows_by_token(&c, &n);
    GpuLaunch l = launch_over(x, x->adjoint ? towards : kernel, z, &c.out);
    int64_t k[] = {z->n[2], z->s[2], c.cot.s[0], c.fout.s[0], c.out.s[0]};
    memcpy(l.args.k, k, sizeof k);
    l.args.nd = 2;
    launch_operand(&l, 0, z, NULL, NULL);
    l.args.x[1].p = c.cot.p;
    l.args.x[2].p = c.fout.p;
    l.args.a[0] = c.at->factor;
    l.args.a[1] = c.at->a;
    if (!x->adjoint) launch_fill(x, &c.out, 0); /* rows that are not this rank's */
    with_table(x, &l, table, n, z->n[0] * z->n[1]);
    free(table);
    return true;
}
LaunchFn launch_gate, launch_gate_all, launch_share;
bool launch_gate(const LaunchCall *x) { return weights(x, GPU_gate, GPU_gate_z); }
bool launch_gate_all(const LaunchCall *x) { return weights(x, GPU_gate_all, GPU_gate_all_z); }
bool launch_share(const LaunchCall *x) { return weights(x, GPU_share, GPU_share_z); }
