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
    if (!r.t || !r.t->verdict || strcmp(r.t->verdict, "equivalent")) {
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
static const char *const modes[] = {"all_gather", "ulysses"};
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
                    Arena *a = arena_new();
                    int cp = m + 1;
                    if (o == 1 && cp > 1 && sizes[s].S % (2 * cp)) continue;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_loops),
        cmocka_unit_test(test_records_of_ulysses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
