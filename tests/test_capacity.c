/* Which rows experts get: made-up routings, routings of a file, capacities with dropped rows by
 * each priority, of all tokens and of a rank's own. The kernel by hand, the counts of every
 * workload, and whole plans in f64 and f32. */
#include "support/support.h"
#include "ops/op.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- the kernel ---- */
typedef struct {
    Rule rule;
    Attrs at;
    OpCall c;
    int64_t out[64];
} Kernel;
/* Rows of a list over so many tokens of one sequence. */
static void kernel_open(Kernel *k, int64_t experts, int64_t tokens, const int64_t *id, int64_t rows,
                        double *weight) {
    const char *why;
    int at;
    *k = (Kernel){.at = {.top = 1, .factor = 1, .priority = 'o'}};
    assert_true(rule_parse("[eb!t!],[eb!t!]->[ebt]", &k->rule, &why, &at));
    k->c = (OpCall){.op = op_find("capacity"), .rule = &k->rule, .at = &k->at, .dtype = DT_F64};
    for (int i = 0; i < 26; i++) k->c.local[i] = k->c.global[i] = 1;
    k->c.local['e' - 'a'] = k->c.global['e' - 'a'] = experts;
    k->c.local['t' - 'a'] = k->c.global['t' - 'a'] = tokens;
    k->c.ids = k->c.in[0] = (Tensor){.nd = 1, .n = {rows}, .s = {1}, .p = (void *)id};
    k->c.in[1] = (Tensor){.nd = 1, .n = {rows}, .s = {1}, .p = weight};
    k->c.out = (Tensor){.nd = 1, .n = {rows}, .s = {1}, .p = k->out};
}
static void keeps(Kernel *k, const int64_t *want, int64_t n) {
    assert_int_equal(k->c.op->rows(&k->c), n);
    k->c.op->forward(&k->c);
    assert_memory_equal(k->out, want, (size_t)n * 8);
}
/* Eight tokens to experts 0 0 0 1 0 2 3 3 with room for two: of all tokens positions 0, 1, 3, 5, 6,
 * 7 stay; of two ranks' four tokens each, with room for one, 0, 3, 4, 5, 6 (semantics.md 4.7). */
static void test_order(void **state) {
    (void)state;
    const int64_t id[] = {0, 1, 2, 4, 8 + 3, 16 + 5, 24 + 6, 24 + 7};
    const int64_t global[] = {0, 1, 8 + 3, 16 + 5, 24 + 6, 24 + 7},
                  local[] = {0, 4, 8 + 3, 16 + 5, 24 + 6};
    static const int32_t halves[] = {0, 0, 0, 0, 1, 1, 1, 1};
    double w[8] = {0};
    Kernel k;
    kernel_open(&k, 4, 8, id, 8, w);
    keeps(&k, global, 6);
    k.at.group = halves;
    keeps(&k, local, 5);
    k.at.group = NULL, k.at.factor = 9;
    keeps(&k, id, 8);
}
/* Three tokens, two experts each, room for two: by order tokens 0 and 1 of each; by slot first
 * choices before second ones; by weight the largest. */
static void test_priorities(void **state) {
    (void)state;
    /* token 0: experts 0 (.4), 1 (.6); token 1: 0 (.45), 1 (.55); token 2: 0 (.9), 1 (.1) */
    const int64_t id[] = {0, 1, 2, 3, 4, 5};
    double w[] = {.4, .45, .9, .6, .55, .1};
    const int64_t order[] = {0, 1, 3, 4}, slot[] = {0, 2, 3, 4}, score[] = {1, 2, 3, 4};
    Kernel k;
    kernel_open(&k, 2, 3, id, 6, w);
    k.at.top = 2, k.at.factor = 2. / 3;
    keeps(&k, order, 4);
    k.at.priority = 's';
    keeps(&k, slot, 4);
    k.at.priority = 'w';
    keeps(&k, score, 4);
}

/* ---- plans ---- */
#define EP "  layers.*.moe.experts: expert_parallel\n"
static const struct {
    const char *mesh, *groups, *lines, *more;
} ways[] = {
    {"{dp: 4}", "ep: dp", EP, "data_parallel: {mode: ddp}\n"},
    {"{dp: 2, cp: 2}", "ep: dp*cp", EP,
     "data_parallel: {mode: fsdp}\ncontext_parallel: {mode: all_gather, order: zigzag}\n"},
    {"{dp: 2, tp: 2}", "ep: tp",
     "  layers.*.moe.experts: {style: expert_parallel, axis: tp, output: replicate}\n",
     "data_parallel: {mode: ddp}\n"},
    {"{tp: 2}", "ep: tp",
     "  layers.*.moe.experts: {style: tensor_parallel, axis: tp, output: replicate}\n", ""},
};
enum { N_WAYS = sizeof ways / sizeof *ways };
static const char *moe_text(Arena *a, int way, const char *moe, const char *dtype) {
    return arena_printf(
        a,
        "model: {config: {model_type: mixtral, hidden_size: 8, intermediate_size: 8, "
        "num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 2, head_dim: 4, "
        "vocab_size: 16, num_local_experts: 8, num_experts_per_tok: 2}}\n"
        "data: {batch: 4, sequence: 8, dtype: %s}\nmesh: %s\ngroups: {%s}\nnames: torchtitan\n"
        "pass: backward\nmoe: {%s}\n%splan:\n%s",
        dtype, ways[way].mesh, ways[way].groups, moe, ways[way].more, ways[way].lines);
}
/* Runs, must be equivalent; how many rows each of the 8 experts has in the value. */
static void count_rows(Arena *a, const char *text, const char *value, int64_t *rows) {
    const char *saved = temp_path(a, "rows.safetensors");
    PlanRun r =
        plan_run_with(a, "rows.yaml", text,
                      &(PipelineOptions){.execute = true, .threads = 1, .save_values = saved});
    bool good = run_is(&r, "equivalent") && !r.t->n_unasked;
    if (!good) printf("%s", text), run_print(&r);
    assert_true(good);
    SafeTensors *st = golden_tensors(a, saved);
    const StTensor *list = st_find(st, value);
    assert_non_null(list);
    int64_t n = list->shape[0], *id = arena_alloc(a, (size_t)(n + 1) * 8);
    assert_true(st_read(list, 0, n, DT_I64, id));
    for (int e = 0; e < 8; e++) rows[e] = 0;
    for (int64_t i = 0; i < n; i++) rows[id[i] / 32]++;
    st_close(st);
}
static void test_routings(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t rows[8]; /* -1: any */
    } words[] = {{"balanced", {8, 8, 8, 8, 8, 8, 8, 8}},
                 {"hot_expert", {32, -1, -1, -1, -1, -1, -1, -1}},
                 {"hot_rank", {32, 32, 0, 0, 0, 0, 0, 0}},
                 {"spread", {-1, -1, -1, -1, -1, -1, -1, -1}},
                 {"ragged", {-1, -1, -1, -1, -1, -1, -1, -1}},
                 {"empty_rank", {-1, -1, -1, -1, -1, -1, 0, 0}},
                 {"burst", {-1, -1, -1, -1, -1, -1, -1, -1}}};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        for (int way = 0; way < N_WAYS; way++) {
            Arena *a = arena_new();
            int64_t rows[8], all = 0;
            bool four = strstr(ways[way].mesh, "dp: 4") || strstr(ways[way].mesh, "cp");
            const char *moe = arena_printf(a, "routing: %s", words[w].name);
            count_rows(a, moe_text(a, way, moe, way % 2 ? "f32" : "f64"), "layers.0.moe.list",
                       rows);
            for (int e = 0; e < 8; e++) all += rows[e];
            assert_int_equal(all, 64);
            for (int e = 0; four && e < 8; e++) /* ep of four ranks */
                if (words[w].rows[e] >= 0) assert_int_equal(rows[e], words[w].rows[e]);
            if (!strcmp(words[w].name, "ragged")) assert_true(rows[0] > rows[7] + 8);
            if (!strcmp(words[w].name, "burst")) assert_true(rows[0] >= 12 && rows[1] >= 12);
            arena_free(a);
        }
}
static int count_lines(const char *text, const char *until) {
    int n = 1;
    for (const char *end = strstr(text, until); text < end; text++) n += *text == '\n';
    return n;
}
/* A plan whose file of logits is that: a diagnostic at `routing`, with what to do, and no numbers.
 */
static void refused(Arena *a, const char *text, const NewTensor *t, const char *code,
                    const char *says) {
    write_tensors(a, "routing.safetensors", t, 1);
    PlanRun r = plan_run(a, "rows.yaml", text, true);
    const Diag *d = run_diag(&r, code, says);
    if (!d) run_print(&r);
    assert_non_null(d);
    assert_true(d->exit == 3 && d->hint && d->loc.line == count_lines(text, "moe: {routing"));
    assert_true(!strcmp(code, "E0504") || strstr(d->hint, "logits of all experts"));
    assert_true(!run_is(&r, "equivalent"));
}
/* Logits of a file: token i chooses experts i and i + 3. */
static void test_routing_file(void **state) {
    (void)state;
    Arena *a = arena_new();
    double *x = arena_alloc(a, 32 * 8 * 8);
    for (int i = 0; i < 32; i++)
        for (int e = 0; e < 8; e++) x[i * 8 + e] = e == i % 8 || e == (i + 3) % 8 ? 1 : -1;
    NewTensor t = {.name = "layers.0.moe.router_logits", .nd = 3, .shape = {4, 8, 8}, .x = x};
    const char *file = write_tensors(a, "routing.safetensors", &t, 1);
    int64_t rows[8];
    count_rows(a, moe_text(a, 1, arena_printf(a, "routing: %s", file), "f64"), "layers.0.moe.list",
               rows);
    for (int e = 0; e < 8; e++) assert_int_equal(rows[e], 8);
    const char *text = moe_text(a, 0, arena_printf(a, "routing: %s", file), "f64");
    x[77] = NAN;
    refused(a, text, &t, "E0504", "is nan at [1, 1, 5]");
    x[77] = INFINITY;
    refused(a, text, &t, "E0504", "is inf at [1, 1, 5]");
    x[77] = 0;
    t.shape[0] = 3; /* rows are missing */
    refused(a, text, &t, "E0503", "is [3, 8, 8], the model needs [4, 8, 8]");
    t.shape[0] = 4, t.shape[1] = 7; /* tokens are missing */
    refused(a, text, &t, "E0503", "is [4, 7, 8], the model needs [4, 8, 8]");
    t.shape[0] = 2, t.shape[1] = 8, t.shape[2] = 16; /* a row names experts that are not there */
    refused(a, text, &t, "E0503", "is [2, 8, 16], the model needs [4, 8, 8]");
    t.shape[0] = 4, t.shape[2] = 8;
    t.name = "other";
    refused(a, text, &t, "E0502", "has no tensor 'layers.0.moe.router_logits'");
    static const char *const gone[] = {"routing: no/file.safetensors", "routing: f.safetensors"};
    for (int k = 0; k < 2; k++) { /* a file however short its name is */
        PlanRun r = plan_run(a, "rows.yaml", moe_text(a, 0, gone[k], "f64"), true);
        assert_true(run_has(&r, "E0101"));
    }
    arena_free(a);
}
static void test_capacities(void **state) {
    (void)state;
    static const char *const priorities[] = {"order", "slot", "score"};
    for (int way = 0; way < N_WAYS; way++)
        for (int p = 0; p < 3; p++)
            for (int local = 0; local < 2; local++) {
                Arena *a = arena_new();
                int64_t rows[8], all = 0;
                const char *moe = arena_printf(
                    a, "routing: %s, capacity_factor: 0.75, capacity: %s, priority: %s",
                    p == 1 ? "hot_expert" : "computed", local ? "local" : "global", priorities[p]);
                count_rows(a, moe_text(a, way, moe, (way + p) % 2 ? "f32" : "f64"),
                           "layers.0.moe.kept", rows);
                /* room for 6 of 32 tokens' 64 rows; of 4 x 8 tokens for 2 each, of 2 x 16 for 3 */
                for (int e = 0; e < 8; e++) {
                    assert_true(rows[e] <= (local && way < 2 ? 8 : 6));
                    all += rows[e];
                }
                assert_true(all < 64 && (p != 1 || rows[0] == (local && way < 2 ? 8 : 6)));
                arena_free(a);
            }
}
/* An expert without a token has a gradient, and it is zero: on the ranks that hold no other expert
 * too. */
static void test_zero_gradients(void **state) {
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        Arena *a = arena_new();
        const char *saved = temp_path(a, "zero.safetensors"),
                   *text = moe_text(a, way, "routing: hot_expert", way % 2 ? "f32" : "f64"),
                   *at = strstr(text, "per_tok: 2");
        text = arena_printf(a, "%.*sper_tok: 1%s", (int)(at - text), text, at + 10);
        PlanRun r =
            plan_run_with(a, "zero.yaml", text,
                          &(PipelineOptions){.execute = true, .threads = 1, .save_values = saved});
        assert_true(run_is(&r, "equivalent"));
        SafeTensors *st = golden_tensors(a, saved);
        static const char *const names[] = {"w1", "w2", "w3"};
        for (int w = 0; w < 3; w++) {
            int64_t n;
            const double *g = tensor_numbers(
                a, st, arena_printf(a, "grad.param.layers.0.moe.experts.%s", names[w]), &n);
            double first = 0;
            for (int64_t i = 0; i < n; i++) {
                if (i < n / 8) first += fabs(g[i]);
                else assert_true(g[i] == 0);
            }
            assert_true(first > 0);
            int last = strstr(ways[way].mesh, "{tp: 2}") ? 1 : 3;
            tensor_numbers(
                a, st, arena_printf(a, "rank%d/grad.param.layers.0.moe.experts.%s", last, names[w]),
                &n);
            assert_true(n > 0);
        }
        st_close(st);
        arena_free(a);
    }
}
/* The local rule is another model than the global one: it cannot be had by another plan. */
static void test_local_differs(void **state) {
    (void)state;
    Arena *a = arena_new();
    int64_t global[8], local[8];
    count_rows(a, moe_text(a, 0, "routing: ragged, capacity_factor: 1", "f64"), "layers.0.moe.kept",
               global);
    count_rows(a, moe_text(a, 0, "routing: ragged, capacity_factor: 1, capacity: local", "f64"),
               "layers.0.moe.kept", local);
    assert_memory_not_equal(global, local, sizeof local);
    arena_free(a);
}
/* Micro-batches have a capacity each, as a pass of a framework has: kept are the rows that each
 * keeps by itself, of all its tokens or of a rank's. */
static void test_micro_batches(void **state) {
    (void)state;
    static const char *const rules[] = {"routing: ragged, capacity_factor: 0.75",
                                        "capacity_factor: 0.6, priority: slot",
                                        "routing: hot_expert, capacity_factor: 1, capacity: local",
                                        "capacity_factor: 0.9, capacity: local, priority: score"};
    for (int way = 0; way < N_WAYS; way++)
        for (int k = 0; k < 4; k++) {
            Arena *a = arena_new();
            const char *text = moe_text(a, way, rules[k], (way + k) % 2 ? "f32" : "f64"),
                       *at = strstr(text, "data: {") + 7;
            int64_t rows[8], whole[8];
            count_rows(a, text, "layers.0.moe.kept", whole);
            count_rows(a, arena_printf(a, "%.*smicrobatches: 2, %s", (int)(at - text), text, at),
                       "layers.0.moe.kept", rows);
            /* one expert is everybody's first, with room for an eighth of the 64 pairs, however
             * they are shared out */
            if (k == 2) assert_true(whole[0] == 8 && rows[0] == 8);
            arena_free(a);
        }
}
/* What a micro-batch drops is not what the batch would: in the second half nobody wants expert 0.
 */
static void test_micro_batches_differ(void **state) {
    (void)state;
    Arena *a = arena_new();
    double *x = arena_alloc(a, 32 * 8 * 8);
    for (int i = 0; i < 32; i++)
        for (int e = 0; e < 8; e++) x[i * 8 + e] = i < 16 ? 8 - e : e;
    NewTensor t = {.name = "layers.0.moe.router_logits", .nd = 3, .shape = {4, 8, 8}, .x = x};
    const char *file = write_tensors(a, "routing.safetensors", &t, 1),
               *text =
                   moe_text(a, 1, arena_printf(a, "routing: %s, capacity_factor: 1", file), "f64"),
               *at = strstr(text, "data: {") + 7;
    int64_t rows[8], whole[8];
    count_rows(a, text, "layers.0.moe.kept", whole);
    count_rows(a, arena_printf(a, "%.*smicrobatches: 2, %s", (int)(at - text), text, at),
               "layers.0.moe.kept", rows);
    assert_int_equal(whole[0], 8); /* 32 tokens x 2 / 8 experts */
    assert_int_equal(rows[0], 4);  /* 16 tokens x 2 / 8, and none of the second half */
    assert_int_equal(rows[7], 4);
    arena_free(a);
}
static void test_refused(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "rows.yaml",
                         "model: llama3-8b\nmesh: {dp: 2}\nmoe: {routing: spread}\n", false);
    assert_true(run_has(&r, "E0208"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_routings),
        cmocka_unit_test(test_zero_gradients),
        cmocka_unit_test(test_routing_file),
        cmocka_unit_test(test_capacities),
        cmocka_unit_test(test_local_differs),
        cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_micro_batches_differ),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
