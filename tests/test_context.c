/* Context parallelism against arithmetic of its own and against records: attention by itself
 * (`kind: attention`), written as plain loops here, on ranks that cut the sequence in every mode,
 * order and number of KV heads, forward and backward; then golden/context (all-to-alls of gloo
 * processes): values and bytes. Sizes are uneven, and no two tokens are alike. */
#include "support/support.h"
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    int B, S, H, K, d;
    bool causal;
} Sizes;
/* q, cotangent, out, dq: [B, S, H, d]; k, v, dk, dv: [B, S, K, d]. */
typedef struct {
    Sizes n;
    double *q, *k, *v, *cot, *out, *dq, *dk, *dv;
} Attention;
static int64_t at(const Sizes *n, int heads, int b, int s, int h) {
    return (((int64_t)b * n->S + s) * heads + h) * n->d;
}
static double dot(const double *x, const double *y, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}
/* One query: softmax(q k / sqrt d) v over the keys that it sees, and its gradients. */
static void one_query(Attention *x, int b, int t, int h, double *p) {
    const Sizes *n = &x->n;
    int kk = h / (n->H / n->K), lim = n->causal ? t + 1 : n->S;
    int64_t q = at(n, n->H, b, t, h);
    double top = -INFINITY, sum = 0, mean = 0, scale = 1 / sqrt(n->d);
    for (int s = 0; s < lim; s++)
        top = fmax(top, p[s] = scale * dot(x->q + q, x->k + at(n, n->K, b, s, kk), n->d));
    for (int s = 0; s < lim; s++) sum += p[s] = exp(p[s] - top);
    for (int s = 0; s < lim; s++) {
        const double *v = x->v + at(n, n->K, b, s, kk);
        p[s] /= sum;
        for (int i = 0; i < n->d; i++) x->out[q + i] += p[s] * v[i];
        mean += p[s] * dot(x->cot + q, v, n->d);
    }
    for (int s = 0; s < lim; s++) {
        int64_t k = at(n, n->K, b, s, kk);
        double ds = p[s] * (dot(x->cot + q, x->v + k, n->d) - mean) * scale;
        for (int i = 0; i < n->d; i++) {
            x->dq[q + i] += ds * x->k[k + i];
            x->dk[k + i] += ds * x->q[q + i];
            x->dv[k + i] += p[s] * x->cot[q + i];
        }
    }
}
static Attention attention(Arena *a, Sizes n) {
    Attention x = {.n = n};
    int64_t wide = (int64_t)n.B * n.S * n.H * n.d, narrow = (int64_t)n.B * n.S * n.K * n.d;
    double **row[] = {&x.q, &x.cot, &x.out, &x.dq, &x.k, &x.v, &x.dk, &x.dv};
    for (int i = 0; i < 8; i++) *row[i] = ARENA_ARRAY(a, double, i < 4 ? wide : narrow);
    for (int64_t i = 0; i < wide; i++)
        x.q[i] = sin(1.7 * (double)i), x.cot[i] = cos(0.3 * (double)i);
    for (int64_t i = 0; i < narrow; i++)
        x.k[i] = 2 * sin(0.9 * (double)i + 1), x.v[i] = cos(2.1 * (double)i) + 0.3;
    double *p = ARENA_ARRAY(a, double, n.S);
    for (int b = 0; b < n.B; b++)
        for (int t = 0; t < n.S; t++)
            for (int h = 0; h < n.H; h++) one_query(&x, b, t, h, p);
    return x;
}
static const char *inputs_of(Arena *a, const Attention *x) {
    const Sizes *n = &x->n;
    const struct {
        const char *name;
        int heads;
        const double *x;
    } row[] = {
        {"q", n->H, x->q}, {"k", n->K, x->k}, {"v", n->K, x->v}, {"cotangent", n->H, x->cot}};
    NewTensor t[4];
    for (int i = 0; i < 4; i++)
        t[i] = (NewTensor){
            .name = row[i].name, .nd = 4, .shape = {n->B, n->S, row[i].heads, n->d}, .x = row[i].x};
    return write_tensors(a, "context.safetensors", t, 4);
}
/* The plan of attention by itself on a mesh; `context`: what `context_parallel` says. */
static const char *plan_of(Arena *a, const Sizes *n, const char *inputs, const char *mesh,
                           const char *context) {
    return arena_printf(
        a,
        "model: {kind: attention, heads: %d, kv_heads: %d, head_dim: %d, mask: %s}\n"
        "data: {dtype: f64, inputs: %s}\nmesh: {%s}\npass: backward\n"
        "context_parallel: {%s}\n",
        n->H, n->K, n->d, n->causal ? "causal" : "none", inputs, mesh, context);
}
/* Runs it, holds the result and the gradients to those that are expected. */
static PlanRun hold(Arena *a, const char *text, const double *const *want) {
    static const char *const names[] = {"attn_context", "grad.q", "grad.k", "grad.v"};
    const char *saved = temp_path(a, "context.out.safetensors");
    PlanRun r = plan_run_with(
        a, "context.yaml", text,
        &(PipelineOptions){.execute = true, .threads = 1, .numbers = true, .save_values = saved});
    if (!run_is(&r, "equivalent")) {
        fputs(text, stderr);
        run_print(&r);
        fail_msg("not equivalent");
    }
    SafeTensors *st = golden_tensors(a, saved);
    for (int i = 0; i < 4; i++) {
        int64_t n;
        const double *x = tensor_numbers(a, st, names[i], &n);
        double worst = 0;
        for (int64_t k = 0; k < n; k++) worst = fmax(worst, fabs(x[k] - want[i][k]));
        if (!(worst < 1e-12)) fail_msg("%s is off by %.3g\n%s", names[i], worst, text);
    }
    st_close(st);
    return r;
}

static const char *const meshes[] = {"cp: 1", "cp: 2", "cp: 3", "cp: 4"};
static const char *const orders[] = {"contiguous", "zigzag", "striped"};
static const char *const modes[] = {
    "all_gather",           "ulysses",        "ring", "ring, backward: chain",
    "ring, keep_kv: false", "ring, rfa: true"};
enum { N_MODES = sizeof modes / sizeof *modes };
static void test_against_loops(void **state) {
    (void)state;
    static const Sizes sizes[] = {{2, 24, 6, 3, 4, true},
                                  {1, 24, 4, 1, 3, true},
                                  {1, 24, 4, 4, 5, false},
                                  {1, 13, 12, 2, 2, true}};
    int runs = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int m = 0; m < 4; m++)
            for (int o = 0; o < 3; o++)
                for (int k = 0; k < N_MODES; k++) {
                    int cp = m + 1;
                    if (o == 1 && cp > 1 && sizes[s].S % (2 * cp)) continue;
                    Arena *a = arena_new();
                    Attention x = attention(a, sizes[s]);
                    const double *want[] = {x.out, x.dq, x.dk, x.dv};
                    hold(a,
                         plan_of(a, &sizes[s], inputs_of(a, &x), meshes[m],
                                 arena_printf(a, "mode: %s, order: %s", modes[k], orders[o])),
                         want);
                    runs++;
                    arena_free(a);
                }
    printf("%d runs of attention by itself\n", runs);
}

/* ---- golden/context ---- */
static int64_t whole_of(const Json *j, const char *key) {
    const Json *x = json_get(j, key);
    if (!x) fail_msg("the record has no %s", key);
    return x->i;
}
/* Bytes that a rank sends of one value in one pass, over all its collectives. */
static int64_t sent_by(const Trace *t, const char *value, Phase pass, int64_t rank) {
    int64_t sum = 0;
    for (int i = 0; i < t->n_collectives; i++)
        if (!strcmp(t->collectives[i].value, value) && t->collectives[i].pass == pass)
            sum += collective_on(&t->collectives[i], rank).bytes_sent;
    return sum;
}
/* What every rank sends of q, k, v and the result, and of their gradients, is what the record's
 * all-to-alls send to others: where all ranks have as many tokens and heads, and its lists of KV
 * heads are those that the layouts have. */
static void hold_bytes(Arena *a, const PlanRun *r, const Json *j) {
    static const char *const values[] = {"q",      "k",      "v",      "attn_context",
                                         "grad.q", "grad.k", "grad.v", "grad.attn_context"};
    static const char *const what[] = {
        "q", "k", "v", "out", "gradient of q", "gradient of k", "gradient of v", "gradient of out"};
    const Json *all = json_get(j, "collectives");
    for (int64_t rank = 0; rank < r->t->ranks; rank++) {
        const Json *list = json_get(all, arena_printf(a, "%lld", (long long)rank));
        assert_non_null(list);
        for (int i = 0; i < 8; i++) {
            int64_t want = -1;
            for (int k = 0; k < list->n; k++)
                if (!strcmp(json_get(list->item[k], "what")->s, what[i]))
                    want = whole_of(list->item[k], "bytes_to_others");
            int64_t have = sent_by(r->t, values[i], i < 4 ? PHASE_FORWARD : PHASE_BACKWARD, rank);
            if (have != want)
                fail_msg("rank %lld sends %lld bytes of %s, the record %lld", (long long)rank,
                         (long long)have, values[i], (long long)want);
        }
    }
}
static bool hold_record(Arena *a, const char *path) {
    Json *j = golden_json(a, path);
    const char *file =
        arena_printf(a, "%.*s.safetensors", (int)(strlen(path) - strlen(".json")), path);
    SafeTensors *st = golden_tensors(a, file);
    Attention x = {.n = {(int)whole_of(j, "B"), (int)whole_of(j, "S"), (int)whole_of(j, "H"),
                         (int)whole_of(j, "K"), (int)whole_of(j, "d"), json_get(j, "causal")->b}};
    int64_t count, ranks = whole_of(j, "ranks");
    const double *want[] = {
        tensor_numbers(a, st, "out", &count), tensor_numbers(a, st, "dq", &count),
        tensor_numbers(a, st, "dk", &count), tensor_numbers(a, st, "dv", &count)};
    double **in[] = {&x.q, &x.k, &x.v, &x.cot};
    static const char *const names[] = {"q", "k", "v", "d_out"};
    for (int i = 0; i < 4; i++) {
        const double *p = tensor_numbers(a, st, names[i], &count);
        *in[i] = arena_memdup(a, p, (size_t)count * sizeof *p);
    }
    PlanRun r = hold(a,
                     plan_of(a, &x.n, inputs_of(a, &x),
                             arena_printf(a, "cp: %lld", (long long)ranks), "mode: ulysses"),
                     want);
    bool aligned = x.n.K % ranks == 0 || ranks % x.n.K == 0, even = x.n.S % ranks == 0;
    if (aligned && even) hold_bytes(a, &r, j);
    st_close(st);
    return aligned && even;
}
/* KV heads travel as query heads do while there is one for each rank; with fewer, neighbours have
 * the same one. q travels alike each time. */
static void test_heads_of_ulysses(void **state) {
    (void)state;
    static const struct {
        int kv;
        const char *k, *how;
        int64_t sent; /* of k */
    } rows[] = {{8, "[B, S, K/cp, d]", "all_to_all", 384},
                {4, "[B, S, K/cp, d]", "all_to_all", 192},
                {2, "[B, S, K/cp.0, d]", "all_to_all", 64},
                {1, "[B, S, K, d]", "all_gather", 192}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r =
            plan_good(a,
                      arena_printf(a,
                                   "model: {kind: attention, heads: 8, kv_heads: %d, head_dim: 2}\n"
                                   "data: {batch: 1, sequence: 16, dtype: f64}\nmesh: {cp: 4}\n"
                                   "context_parallel: {mode: ulysses}\n",
                                   rows[i].kv),
                      true);
        assert_string_equal(find_value(r.t, "k", true)->symbolic, rows[i].k);
        const TraceCollective *q = &r.t->collectives[0], *k = &r.t->collectives[1];
        assert_string_equal(q->op, "all_to_all");
        assert_int_equal(q->bytes_sent, 384);
        assert_string_equal(k->op, rows[i].how);
        assert_int_equal(k->bytes_sent, rows[i].sent);
        arena_free(a);
    }
}
static void test_records_of_ulysses(void **state) {
    (void)state;
    Arena *a = arena_new();
    if (!golden_has(a, "context/README.md")) {
        printf("golden/context is not here: its records are not looked at\n");
        arena_free(a);
        skip();
    }
    glob_t g;
    assert_int_equal(glob(arena_printf(a, "%s/*.json", golden_path(a, "context")), 0, NULL, &g), 0);
    int bytes = 0;
    for (size_t i = 0; i < g.gl_pathc; i++) bytes += hold_record(a, g.gl_pathv[i]);
    printf("%d records: values; bytes of %d\n", (int)g.gl_pathc, bytes);
    assert_true(g.gl_pathc >= 12 && bytes >= 6);
    globfree(&g);
    arena_free(a);
}

/* ---- the ring: hops, bytes, work (semantics 6 and 11.3) ---- */
static const char core_of_16[] = "model: {kind: attention, heads: 6, kv_heads: 3, head_dim: 4}\n"
                                 "data: {batch: 2, sequence: 16, dtype: f64}\npass: backward\n"
                                 "mesh: {cp: 4}\n";
static PlanRun ring_of_16(Arena *a, const char *context) {
    return plan_good(a, arena_printf(a, "%scontext_parallel: {%s}\n", core_of_16, context), false);
}
static int64_t hops(const Trace *t, const char *pass) {
    return count_collectives(t, pass, "shift", "cp");
}
static void test_hops(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        int forward, kv, grad; /* of k and of v each */
    } rows[] = {{"mode: ring", 3, 0, 3},
                {"mode: ring, order: zigzag", 3, 0, 3},
                {"mode: ring, backward: chain", 3, 0, 3},
                {"mode: ring, keep_kv: false", 3, 2, 3},
                {"mode: ring, rfa: true", 3, 3, 4}};
    const int64_t block = 2 * 4 * 3 * 4 * 8; /* B s K d of f64: half of s kvb */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = ring_of_16(a, rows[i].mode);
        int64_t back = 0;
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *x = &r.t->collectives[k];
            if (strcmp(x->op, "shift")) continue;
            assert_int_equal(x->bytes_sent, block);
            assert_string_equal(x->axis, "cp");
            assert_false(x->inferred);
            back += x->pass != PHASE_FORWARD;
        }
        assert_int_equal(hops(r.t, "forward"), 2 * rows[i].forward);
        if (back != 2 * (rows[i].kv + rows[i].grad))
            fail_msg("%s: %d hops backward", rows[i].mode, (int)back);
        assert_int_equal(r.t->n_unasked, 0);
        arena_free(a);
    }
}
/* Pairs of query and key that a rank computes in each step. */
static void test_work_of_steps(void **state) {
    (void)state;
    static const struct {
        const char *order;
        int pairs[4][4]; /* [rank][step] */
    } rows[] = {
        {"zigzag", {{10, 8, 8, 8}, {10, 8, 8, 8}, {10, 8, 8, 8}, {10, 8, 8, 8}}},
        {"striped", {{10, 6, 6, 6}, {10, 10, 6, 6}, {10, 10, 10, 6}, {10, 10, 10, 10}}},
        {"contiguous", {{10, 0, 0, 0}, {10, 16, 0, 0}, {10, 16, 16, 0}, {10, 16, 16, 16}}},
    };
    const double each = 2 * (4 + 4) * 2 * 6; /* 2 (d + d) operations a pair, B times H heads */
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        PlanRun r = ring_of_16(a, arena_printf(a, "mode: ring, order: %s", rows[i].order));
        for (int64_t rank = 0; rank < 4; rank++)
            for (int j = 0; j < 4; j++) {
                double flops = -1;
                const char *name = arena_printf(a, "attn_part.%d", j);
                for (int k = 0; k < r.t->n_computes; k++) {
                    const TraceCompute *c = &r.t->computes[k];
                    if (c->makes.of && !strcmp(c->makes.of, name) && c->pass == PHASE_FORWARD &&
                        (!c->ranks.n || rankset_has(&c->ranks, rank)))
                        flops = c->flops;
                }
                if (flops != each * rows[i].pairs[rank][j])
                    fail_msg("%s: rank %d step %d: %g FLOP, %g wanted", rows[i].order, (int)rank, j,
                             flops, each * rows[i].pairs[rank][j]);
            }
        arena_free(a);
    }
}
/* When the event of a step begins on rank 0. */
static double begin_of(const Trace *t, int step) {
    for (int i = 0; i < t->n_events; i++)
        if (t->events[i].step == step && rankset_has(&t->events[i].ranks, 0))
            return t->events[i].start;
    return -1;
}
/* A block goes on when the part that reads it has begun, so a rank holds two of them at most. */
static void hops_keep_step(const Trace *t) {
    int held = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *x = &t->collectives[i];
        if (strcmp(x->op, "shift") || x->value_step < 0) continue;
        for (int k = 0; k < t->n_computes; k++)
            for (int j = 0; j < t->computes[k].n_inputs; j++) {
                const TraceCompute *c = &t->computes[k];
                if (c->step > x->step || c->input_step[j] != x->value_step) continue;
                held++;
                assert_true(begin_of(t, x->step) >= begin_of(t, c->step));
            }
    }
    assert_true(held >= 12); /* six of k and of v */
}
/* When the last rank has its result, modelled: in contiguous order the last rank has nearly twice
 * the mean work. */
static double end_of(Arena *a, const char *order) {
    const char *text =
        arena_printf(a,
                     "model: {kind: attention, heads: 32, kv_heads: 8, head_dim: 128}\n"
                     "data: {batch: 1, sequence: 131072, dtype: bf16}\nmesh: {cp: 8}\n"
                     "context_parallel: {mode: ring, order: %s}\nhardware: h100-sxm\n",
                     order);
    PlanRun r = plan_run_with(a, "ring.yaml", text, &(PipelineOptions){.events = true});
    assert_non_null(r.t);
    hops_keep_step(r.t);
    double end = 0, hop = 0, exposed = 0;
    for (int i = 0; i < r.t->n_events; i++) {
        const TraceEvent *e = &r.t->events[i];
        end = fmax(end, e->end);
        if (strcmp(e->kind, "collective")) continue;
        hop += e->end - e->start - e->wait;
        exposed += e->exposed;
    }
    if (!strcmp(order, "zigzag")) assert_true(exposed < hop / 2); /* hidden behind the parts */
    return end;
}
static void test_load(void **state) {
    (void)state;
    Arena *a = arena_new();
    double contiguous = end_of(a, "contiguous"), zigzag = end_of(a, "zigzag"),
           striped = end_of(a, "striped");
    printf("a ring of 8: contiguous %.3g s, striped %.3g s, zigzag %.3g s\n", contiguous, striped,
           zigzag);
    assert_true(zigzag <= 0.6 * contiguous && striped <= 0.6 * contiguous);
    arena_free(a);
}

/* ---- golden/torch/05: PyTorch's ring ---- */
/* [B, H, S, d] as [B, S, H, d]. */
static double *turned(Arena *a, const SafeTensors *st, const char *name, const Sizes *n) {
    int64_t count, k = 0;
    const double *x = tensor_numbers(a, st, name, &count);
    double *y = ARENA_ARRAY(a, double, count);
    for (int b = 0; b < n->B; b++)
        for (int s = 0; s < n->S; s++)
            for (int h = 0; h < n->H; h++)
                for (int i = 0; i < n->d; i++)
                    y[k++] = x[(((int64_t)b * n->H + h) * n->S + s) * n->d + i];
    return y;
}
/* Bytes and number of a record's all-to-alls in a pass: keys and values travel as one. */
static int64_t record_hops(const Json *record, const char *pass, int64_t *bytes) {
    const Json *list = json_get(json_get(record, "collectives"), pass);
    *bytes = 0;
    for (int i = 0; i < list->n; i++) {
        assert_string_equal(json_get(list->item[i], "op")->s, "all_to_all");
        *bytes += json_get(list->item[i], "in_bytes_per_rank")->item[0]->i;
    }
    return list->n;
}
static const Sizes recorded = {2, 16, 4, 4, 8, true};
/* The result and the gradients of a record, under the plan that `context` says. */
static PlanRun hold_values(Arena *a, const SafeTensors *st, int cp, const char *context) {
    Sizes n = recorded;
    Attention x = {.n = n, .q = turned(a, st, "q", &n), .k = turned(a, st, "k", &n)};
    x.v = turned(a, st, "v", &n), x.cot = turned(a, st, "gy", &n);
    const double *want[] = {turned(a, st, "out", &n), turned(a, st, "dq", &n),
                            turned(a, st, "dk", &n), turned(a, st, "dv", &n)};
    return hold(a, plan_of(a, &n, inputs_of(a, &x), arena_printf(a, "cp: %d", cp), context), want);
}
/* PyTorch's other way: keys and values gathered as one. Its backward gathers them again and sends
 * the gradients round by all-to-alls, where a gather's adjoint is a reduce-scatter: values only. */
static void hold_gather(Arena *a, int cp, const char *order) {
    const char *dir = arena_printf(a, "torch/05_cp%d_allgather_%s", cp, order);
    Json *list = json_get(
        json_get(golden_json(a, golden_path(a, "%s/record.json", dir)), "collectives"), "forward");
    SafeTensors *st = golden_tensors(a, golden_path(a, "%s/values.safetensors", dir));
    PlanRun r = hold_values(a, st, cp, arena_printf(a, "mode: all_gather, order: %s", order));
    int64_t in = 0, have = 0;
    for (int i = 0; i < r.t->n_collectives; i++) {
        const TraceCollective *c = &r.t->collectives[i];
        if (c->pass != PHASE_FORWARD) continue;
        assert_string_equal(c->op, "all_gather");
        have++;
        in += c->bytes_in;
    }
    assert_int_equal(list->n, 1);
    assert_int_equal(have, 2); /* k and v */
    assert_int_equal(in, json_get(list->item[0], "in_bytes_per_rank")->item[0]->i);
    st_close(st);
}
static void hold_ring(Arena *a, int cp, const char *order) {
    const char *dir = arena_printf(a, "torch/05_cp%d_alltoall_%s", cp, order);
    Json *record = golden_json(a, golden_path(a, "%s/record.json", dir));
    SafeTensors *st = golden_tensors(a, golden_path(a, "%s/values.safetensors", dir));
    Sizes n = recorded;
    PlanRun r = hold_values(a, st, cp, arena_printf(a, "mode: ring, rfa: true, order: %s", order));
    static const char *const passes[] = {"forward", "backward"};
    for (int p = 0; p < 2; p++) {
        int64_t bytes, count = record_hops(record, passes[p], &bytes), have = 0, sent = 0;
        for (int i = 0; i < r.t->n_collectives; i++) {
            const TraceCollective *c = &r.t->collectives[i];
            if (strcmp(c->op, "shift") || (c->pass == PHASE_FORWARD) != !p) continue;
            have++;
            sent += c->bytes_sent;
        }
        assert_int_equal(have, 2 * count); /* k and v */
        assert_int_equal(sent, bytes);
    }
    SafeTensors *saved = golden_tensors(a, temp_path(a, "context.out.safetensors"));
    for (int rank = 0; rank < cp; rank++) { /* the log of the softmax's sum, [B, H, s] */
        int64_t count, s = n.S / cp;
        const double *lse = tensor_numbers(a, st, arena_printf(a, "rank%d/lse", rank), &count);
        const double *y =
            tensor_numbers(a, saved, arena_printf(a, "rank%d/attn_merge.%d", rank, cp - 1), &count);
        for (int64_t i = 0; i < n.B * s * n.H; i++) {
            int64_t h = i % n.H, t = i / n.H % s, b = i / n.H / s;
            assert_true(fabs(y[i * (n.d + 1) + n.d] - lse[(b * n.H + h) * s + t]) < 1e-12);
        }
    }
    st_close(saved);
    st_close(st);
}
static void test_records_of_rings(void **state) {
    (void)state;
    Arena *a = arena_new();
    if (!golden_has(a, "torch/05_cp4_alltoall_zigzag/record.json")) {
        printf("golden/torch/05 is not here: its records are not looked at\n");
        arena_free(a);
        skip();
    }
    for (int cp = 2; cp <= 4; cp += 2)
        for (int o = 0; o < 2; o++) hold_ring(a, cp, orders[o]), hold_gather(a, cp, orders[o]);
    arena_free(a);
}

/* Rings with other axes around and inside, in whole blocks. */
static const char dense[] =
    "model: {config: {hidden_size: 12, num_attention_heads: 6, num_key_value_heads: 3, "
    "head_dim: 4, intermediate_size: 10, vocab_size: 11, num_hidden_layers: 2, qk_norm: true}, "
    "layers: 2, parts: [embedding, blocks, norm, head, loss]}\n"
    "data: {batch: 2, sequence: 24, dtype: f64}\npass: backward\n";
static const char latent[] =
    "model: {config: {model_type: deepseek_v3, hidden_size: 12, num_attention_heads: 4, "
    "num_key_value_heads: 4, q_lora_rank: 6, kv_lora_rank: 5, qk_nope_head_dim: 4, "
    "qk_rope_head_dim: 2, v_head_dim: 3, intermediate_size: 10, vocab_size: 11, "
    "num_hidden_layers: 1, first_k_dense_replace: 1, n_routed_experts: 4, "
    "num_experts_per_tok: 2, moe_intermediate_size: 4, n_shared_experts: 1, n_group: 1, "
    "topk_group: 1, norm_topk_prob: true, rope_interleave: true}, "
    "parts: [embedding, blocks, norm, head, loss]}\n"
    "data: {batch: 2, sequence: 24, dtype: f64}\npass: backward\n";
static const char chunks[] =
    "model: {layers: all, config: {model_type: llama4_text, hidden_size: 12, head_dim: 4, "
    "intermediate_size: 10, num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 11, "
    "num_hidden_layers: 2, no_rope_layer_interval: 2, attention_chunk_size: 5, moe_layers: [], "
    "floor_scale: 2}}\n"
    "data: {batch: 2, sequence: 24, dtype: f64}\npass: backward\nnames: hf\n";
static const char tp_lines[] = "recipe: torchtitan-llama3\n";
static void test_blocks(void **state) {
    (void)state;
    static const struct {
        const char *model, *rest, *lines;
    } rows[] = {
        {dense, "mesh: {cp: 4}\ncontext_parallel: {mode: ring, order: zigzag}\n", ""},
        {dense,
         "mesh: {dp: 2, cp: 2, tp: 3}\ncontext_parallel: {mode: ring, order: zigzag}\n"
         "data_parallel: fsdp\ngroups: {sp: tp}\n",
         tp_lines},
        {dense, "mesh: {cp: 3}\ncontext_parallel: {mode: ring, order: striped}\nrecompute: block\n",
         ""},
        {dense,
         "mesh: {r: 2, u: 3}\ncontext_parallel: {mode: usp, ring: r, ulysses: u, order: "
         "zigzag}\n",
         ""},
        {dense,
         "mesh: {u: 2, r: 3}\ncontext_parallel: {mode: usp, ring: r, ulysses: u, "
         "keep_kv: false}\n",
         ""},
        {dense,
         "mesh: {r: 2, u: 2, tp: 3}\ngroups: {sp: tp}\ncontext_parallel: {mode: usp, "
         "ring: r, ulysses: u, order: striped, rfa: true}\n",
         tp_lines},
        {latent, "mesh: {cp: 4}\ncontext_parallel: {mode: ring, order: zigzag}\n", ""},
        {latent, "mesh: {cp: 4}\ncontext_parallel: {mode: ulysses}\n", ""},
        {latent,
         "mesh: {dp: 2, cp: 2}\ngroups: {ep: dp*cp}\ndata_parallel: fsdp\n"
         "context_parallel: {mode: ring, order: zigzag}\n",
         ""},
        {chunks, "mesh: {cp: 3}\ncontext_parallel: {mode: ring, order: zigzag}\n", ""},
        {chunks, "mesh: {cp: 4}\ncontext_parallel: {mode: ring, order: contiguous}\n", ""},
        {dense,
         "mesh: {pp: 2, cp: 2}\npipeline: {schedule: 1f1b, microbatches: 2}\n"
         "context_parallel: {mode: ring, order: zigzag, keep_kv: false}\n",
         ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a, arena_printf(a, "%s%s%s", rows[i].model, rows[i].rest, rows[i].lines), true);
        assert_true(r.t->n_pass > 100);
        arena_free(a);
    }
}

/* A window in a ring: parts whose block nobody sees are computed (zeros that weigh nothing) and
 * count no operation; the hops are made all the same, and recorded. Pairs of a window of 6 on 24
 * tokens, four ranks of 6 in order: the own block, the one before, nothing beyond. */
static void test_windows(void **state) {
    (void)state;
    static const char windowed[] =
        "model: {layers: all, config: {model_type: ministral, hidden_size: 12, head_dim: 4, "
        "intermediate_size: 10, num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 11, "
        "num_hidden_layers: 2, sliding_window: 6}, parts: [embedding, blocks, norm, head, loss]}\n"
        "data: {batch: 2, sequence: 24, dtype: f64}\npass: backward\nmesh: {cp: 4}\n";
    static const int pairs[4][4] = {{21, 0, 0, 0}, {21, 15, 0, 0}, {21, 15, 0, 0}, {21, 15, 0, 0}};
    static const char *const ways[] = {"ring",
                                       "ring, order: zigzag",
                                       "ring, order: striped",
                                       "ring, backward: chain",
                                       "ring, keep_kv: false",
                                       "ring, order: zigzag, rfa: true"};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a, arena_printf(a, "%scontext_parallel: {mode: %s}\n", windowed, ways[w]), true);
        assert_int_equal(hops(r.t, "forward"), 2 * 2 * 3);
        for (int i = 0; !w && i < r.t->n_computes; i++) {
            const TraceCompute *c = &r.t->computes[i];
            int layer, j;
            if (c->pass != PHASE_FORWARD || !c->makes.of ||
                sscanf(c->makes.of, "layers.%d.attn_part.%d", &layer, &j) != 2)
                continue;
            for (int rank = 0; rank < 4; rank++)
                if (!c->ranks.n || rankset_has(&c->ranks, rank))
                    assert_true(c->flops == 2.0 * (4 + 4) * 2 * 4 * pairs[rank][j]);
        }
        arena_free(a);
    }
}
/* Latent attention gathers its latent where a line says so: one all-gather of c and the rotated
 * part (5 + 2 numbers a token) in place of those of keys and values (4 heads of 6 and of 3), and
 * one reduce-scatter back; each rank makes the keys and values of all tokens itself. */
static void test_latent_gathered(void **state) {
    (void)state;
    static const char *const modes_of[] = {"all_gather", "ulysses"};
    for (int i = 0; i < 2 * 3; i++) {
        Arena *a = arena_new();
        PlanRun r =
            plan_good(a,
                      arena_printf(a,
                                   "%smesh: {cp: 4}\ncontext_parallel: {mode: %s, order: %s}\n"
                                   "styles: {latent: {axis: cp, output: varying_use}}\n"
                                   "plan:\n  layers.*.attention.wkv_a: latent\n",
                                   latent, modes_of[i % 2], orders[i / 2]),
                      true);
        const int64_t sent = 2 * 24 / 4 * 3 * (5 + 2) * 8;
        int gathers = 0, scatters = 0;
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *c = &r.t->collectives[k];
            bool kv = !strcmp(c->value, "layers.0.kv_a_proj") ||
                      !strcmp(c->value, "grad.layers.0.kv_a_proj");
            if (kv) assert_int_equal(c->bytes_sent, sent);
            gathers += kv && !strcmp(c->op, "all_gather");
            scatters += kv && !strcmp(c->op, "reduce_scatter");
            assert_null(strstr(c->value, ".k_attn"));
            assert_null(strstr(c->value, ".v_attn"));
        }
        assert_int_equal(gathers, 1);
        assert_int_equal(scatters, 1);
        arena_free(a);
    }
}

/* Keys and values that only attention's queries make differ in use over `b`: the part of the own
 * block and the blocks that come by read one copy, so each gradient is summed over `b` once, and
 * reaches home in every way that a ring goes back. Without verify too: nothing aborts. */
static void hold_uses(const char *model, const char *mode, bool no_verify) {
    Arena *a = arena_new();
    const char *text = arena_printf(
        a,
        "%smesh: {a: 3, b: 2}\ncontext_parallel: {mode: %s, axis: a}\nstyles: {part: {axis: b}}\n"
        "plan:\n  layers.*.attention.q_norm: {style: part, output: {b: varying_use}}\n",
        model, mode);
    PipelineOptions o = {.execute = true, .threads = 1, .no_verify = no_verify};
    PlanRun r = plan_run_with(a, "uses.yaml", text, &o);
    if (!run_is(&r, "equivalent")) {
        run_print(&r);
        fail_msg("%s: not equivalent", mode);
    }
    static const char *const keys[] = {".k_rope", ".k_attn"}, *const values[] = {".v_proj",
                                                                                 ".v_attn"};
    int sums = 0, mla = model == latent; /* of k and of v in layer 0: from there on all differs */
    for (int i = 0; i < r.t->n_collectives; i++) {
        const TraceCollective *c = &r.t->collectives[i];
        bool kv = strstr(c->value, keys[mla]) || strstr(c->value, values[mla]);
        sums += kv && c->pass != PHASE_FORWARD && !strcmp(c->axes, "b");
    }
    if (sums != 2) fail_msg("%s: %d sums over b, 2 wanted", mode, sums);
    arena_free(a);
}
static void test_uses_in_a_ring(void **state) {
    (void)state;
    static const char *const ways[] = {"ring", "ring, backward: chain", "ring, keep_kv: false",
                                       "ring, rfa: true",
                                       "ring, order: striped, backward: chain, rfa: true"};
    for (size_t i = 0; i < 4 * sizeof ways / sizeof *ways; i++)
        hold_uses(i & 1 ? latent : dense, ways[i / 4], i >> 1 & 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_loops),      cmocka_unit_test(test_heads_of_ulysses),
        cmocka_unit_test(test_records_of_ulysses), cmocka_unit_test(test_hops),
        cmocka_unit_test(test_work_of_steps),      cmocka_unit_test(test_load),
        cmocka_unit_test(test_records_of_rings),   cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_uses_in_a_ring),     cmocka_unit_test(test_windows),
        cmocka_unit_test(test_latent_gathered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
