/* Launches of attention, whole and in parts. Which keys a query sees is worked out here: kernels
 * get a run of keys for each query, so they know no masks, chunks, windows or zigzag. */
#include "launch/launch.h"
#include "ops/ring.h"
#include "ops/util.h"
#include <stdlib.h>
#include <string.h>

enum { B_, T_, K_, G_, X_ }; /* dims of q */
enum {
    WIDEST = 1024,
    TILED = 128,
    TILE = 16
}; /* the widest rows that kernels take; queries and
      keys of a block of ops/attention_tiles.cu.h */
/* k[] of ops/attention.cu.h */
enum { KEYS, D, DV, KS, VS, PART, UNUSED, WHICH };

/* Strides of a tensor of queries over [b, k, g, t]; of keys, whose rows have a stride of their own.
 */
static GpuTensor of_queries(const OpCall *c, const Tensor *t) {
    bool group = c->rule->nl[0] > G_ + 1;
    return (GpuTensor){.p = t->p, .s = {t->s[B_], t->s[K_], group ? t->s[G_] : 0, t->s[T_]}};
}
static GpuTensor of_keys(const Tensor *t) {
    return (GpuTensor){.p = t->p, .s = {t->s[0], t->s[2], 0, t->s[1]}};
}
static GpuLaunch over_heads(const LaunchCall *x, int kernel, const RingPart *r,
                            const int64_t *table) {
    const OpCall *c = x->c;
    GpuLaunch l = {.kernel = kernel, .f64 = c->dtype == DT_F64, .threads = GPU_THREADS};
    GpuArgs *a = &l.args;
    int64_t n[] = {c->in[0].n[B_], c->in[0].n[K_], ring_groups(c), r->nt};
    a->nd = 4;
    memcpy(a->n, n, sizeof n);
    a->out = of_queries(c, &c->out);
    a->x[0] = of_queries(c, &c->in[0]);
    a->x[1] = of_keys(&c->in[1]);
    a->x[2] = of_keys(&c->in[2]);
    a->k[KEYS] = r->ns;
    a->k[D] = c->in[1].n[3];
    a->k[DV] = c->in[2].n[3];
    a->k[KS] = c->in[1].s[1];
    a->k[VS] = c->in[2].s[1];
    a->a[0] = c->at->scale;
    a->a[1] = c->at->cap;
    l.table = table;
    l.bytes = (size_t)(3 * r->nt + r->ns) * sizeof *table;
    return l;
}
static int64_t *table_of(const RingPart *r) {
    int64_t *t = base_malloc(base_mul((size_t)(3 * r->nt + r->ns) + 1, sizeof *t));
    for (int64_t i = 0; i < r->nt; i++) {
        AttentionRun run = attention_run(&r->mask, i, r->ns);
        t[i] = r->t[i];
        t[r->nt + i] = run.from;
        t[2 * r->nt + i] = run.lim;
    }
    memcpy(t + 3 * r->nt, r->s, (size_t)r->ns * sizeof *t);
    return t;
}
/* By products of matrices: numbers that bf16 holds, rows that fit. */
static bool tiled(const OpCall *c) {
    return c->narrow && c->dtype == DT_F32 && c->in[1].n[3] <= TILED && c->in[2].n[3] <= TILED;
}
static int64_t blocks(int64_t n) { return (n + TILE - 1) / TILE; }
static void adjoint(const LaunchCall *x, const RingPart *r, const int64_t *table, bool part) {
    const OpCall *c = x->c;
    int64_t rows = c->in[0].n[B_] * c->in[0].n[K_] * ring_groups(c) * r->nt;
    if (!rows) return; /* no queries: what is there is 0 */
    void *stats = x->to->scratch(x->to->arg, (2 * rows + 1) * 8);
    GpuLaunch l = over_heads(x, part ? GPU_attention_part_stats : GPU_attention_stats, r, table);
    l.args.out.p = stats;
    l.args.x[3] = of_queries(c, &c->cot);
    if (part) l.args.x[2] = of_queries(c, &c->fout);
    launch_rows(x, &l, rows);
    bool tiles = tiled(c);
    int64_t bk = c->in[0].n[B_] * c->in[0].n[K_];
    l = over_heads(x,
                   tiles        ? c->operand ? GPU_attention_tiles_kv : GPU_attention_tiles_q
                   : c->operand ? GPU_attention_kv
                                : GPU_attention_q,
                   r, table);
    if (c->operand) l.args.out = of_keys(&c->out);
    l.args.x[3] = of_queries(c, &c->cot);
    l.args.x[4].p = stats;
    l.args.k[WHICH] = c->operand;
    if (tiles) rows = bk * ring_groups(c) * blocks(r->nt);
    launch_rows(x, &l, c->operand ? bk * (tiles ? blocks(r->ns) : r->ns) : rows);
}
static bool side_by_side(const Tensor *t) {
    return !t->p || t->s[t->nd - 1] == 1 || t->n[t->nd - 1] < 2;
}
static bool attention(const LaunchCall *x, bool part) {
    const OpCall *c = x->c;
    RingPart r;
    const Tensor *t[] = {&c->in[0], &c->in[1], &c->in[2], &c->cot, &c->fout, &c->out};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        if (t[i]->nd && !side_by_side(t[i])) return false;
    if (c->in[1].n[3] > WIDEST || c->in[2].n[3] > WIDEST) return false;
    if (x->adjoint) launch_fill(x, &c->out, 0); /* queries or keys that no part has */
    for (ring_open(c, 0, &r); ring_next(c, &r);) {
        int64_t *table = table_of(&r);
        if (x->adjoint) adjoint(x, &r, table, part);
        else {
            bool tiles = tiled(c);
            GpuLaunch l = over_heads(x, tiles ? GPU_attention_tiles : GPU_attention, &r, table);
            l.args.k[PART] = part;
            launch_rows(x, &l,
                        l.args.n[0] * l.args.n[1] * l.args.n[2] * (tiles ? blocks(r.nt) : r.nt));
        }
        free(table);
    }
    return true;
}
LaunchFn launch_attention, launch_attention_part, launch_attention_merge, launch_attention_join,
    launch_attention_sink;
static bool whole(const LaunchCall *x) { return attention(x, false); }
static bool in_part(const LaunchCall *x) { return attention(x, true); }
bool launch_attention(const LaunchCall *x) { return launch_packings(x, whole); }
bool launch_attention_part(const LaunchCall *x) { return launch_packings(x, in_part); }
static bool merge(const LaunchCall *x, int kernel, int own) {
    const OpCall *c = x->c;
    GpuLaunch l = launch_over(x, kernel, &c->out, &c->out);
    launch_operand(&l, 0, &c->in[own], NULL, NULL);
    launch_operand(&l, 1, &c->in[1 - own], NULL, NULL);
    if (x->adjoint) launch_operand(&l, 2, &c->cot, NULL, NULL);
    launch_each(x, &l, tensor_count(&c->out));
    return true;
}
bool launch_attention_merge(const LaunchCall *x) {
    return x->adjoint ? merge(x, GPU_merge_part, x->c->operand) : merge(x, GPU_merge, 0);
}
bool launch_attention_join(const LaunchCall *x) {
    if (!x->adjoint) return merge(x, GPU_merge, 0);
    GpuLaunch l = launch_over(x, GPU_copy, &x->c->out, &x->c->out);
    launch_operand(&l, 0, &x->c->cot, NULL, NULL);
    launch_map(x, &l);
    return true;
}
/* The dims of a part with those of its sinks first. */
static Tensor heads_first(const OpCall *c, char *letters) {
    const Rule *r = c->rule;
    Tensor t = {.nd = c->in[0].nd, .p = c->in[0].p};
    int n = 0;
    for (int d = 0; d < r->nl[1]; d++) letters[n++] = r->in[1][d];
    for (int d = 0; d < t.nd; d++)
        if (!strchr(r->in[1], r->in[0][d])) letters[n++] = r->in[0][d];
    letters[n] = '\0';
    for (int d = 0; d < t.nd; d++) {
        int at = rule_find(r, 0, letters[d]);
        t.n[d] = c->in[0].n[at];
        t.s[d] = c->in[0].s[at];
    }
    return t;
}
bool launch_attention_sink(const LaunchCall *x) {
    const OpCall *c = x->c;
    const Rule *r = c->rule;
    char letters[LAYOUT_MAX_DIMS + 1];
    Tensor part = heads_first(c, letters);
    bool sum = x->adjoint && c->operand == 1;
    const Tensor *space = sum ? &part : &c->out;
    const char *of = sum ? letters : r->in[0];
    if (!side_by_side(&c->in[0])) return false;
    GpuLaunch l = launch_over(x,
                              sum          ? GPU_sink_sum
                              : x->adjoint ? GPU_sink_part
                                           : GPU_sink,
                              space, &c->out);
    /* a row of the part is one longer than its result: the last letter stands for both */
    launch_operand(&l, 0, &c->in[0], r->in[0], of);
    launch_operand(&l, 1, &c->in[1], r->in[1], of);
    if (x->adjoint) launch_operand(&l, 2, &c->cot, r->in[0], of);
    l.args.k[0] = r->nl[1];
    if (sum) launch_rows(x, &l, tensor_count(&c->out));
    else launch_each(x, &l, tensor_count(&c->out));
    return true;
}
