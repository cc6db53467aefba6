/* Auxiliary losses of routers: other people's numbers, losses and gradients; the exact form under
 * every way to lay out experts; the form that each rank makes of its own tokens, which is another
 * number; what plans may not say. The ops' adjoints are held against differences in test_ops. */
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- PyTorch's numbers ---- */
/* Models of tests/golden in float64 (PyTorch 2.x, autograd, make_golden.py's float64 modules), the
 * loss with 0.02 of the balance (with 1/k) and 0.003 of z of each layer. */
static const struct {
    const char *model, *config;
    double total;
    struct {
        int layer;
        double aux, z, squares, first[3]; /* terms; of the router's gradient */
    } layer[2];
    int layers;
    double embed; /* sum of squares of the embedding's gradient */
} pytorch[] = {
    {"mixtral",
     "config.json",
     5.964108454064117,
     {{0,
       0.05261957649451435,
       0.032691093452305114,
       0.39974540503812633,
       {0.06733539777613244, 0.05394628496683751, 4.107203186814212e-05}},
      {1,
       0.028481243014896008,
       0.026588684336323564,
       0.057059866344166627,
       {0.018343756455628333, 0.03253891544887309, -0.009962660054585157}}},
     2,
     0.12190311329495937},
    {"qwen3-moe-raw",
     "config.json",
     6.461716552665469,
     {{1,
       0.032383131750396255,
       0.029103331924252587,
       0.057244087647172884,
       {0.004202390657111213, 0.003701613252532372, 0.005301667785363346}}},
     1,
     0.11798877075295341},
    {"deepseek-v3-yarn",
     "config.json",
     5.835637913735757,
     {{1,
       0.02222383858658684,
       0.03323366144587891,
       0.01842276112780119,
       {-0.0006897775306377945, 0.00012935241457365026, -0.002240973416838456}}},
     1,
     0.38515789813112855},
};
enum { N_PYTORCH = sizeof pytorch / sizeof *pytorch };
static double squares(const double *x, int64_t n) {
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}
static void near(double have, double want, const char *what) {
    if (!(fabs(have - want) <= 1e-10 * fabs(want)))
        fail_msg("%s: %.17g, PyTorch has %.17g", what, have, want);
}
static const char *golden_plan(Arena *a, int m) {
    const char *name = pytorch[m].model;
    return arena_printf(
        a,
        "model: {hf_config: %s, weights: %s, layers: all, parts: [embedding, blocks, norm, head, "
        "loss]}\ndata: {dtype: f64, inputs: %s}\nnames: hf\nmesh: {dp: 2}\ngroups: {ep: dp}\n"
        "pass: backward\ndata_parallel: {mode: ddp}\n"
        "moe: {aux_loss: exact, aux_coef: 0.02, z_coef: 0.003}\n"
        "plan:\n  model.layers.*.mlp.experts: expert_parallel\n",
        golden_path(a, "hf/%s/%s", name, pytorch[m].config),
        golden_path(a, "hf/%s/model.safetensors", name),
        golden_path(a, "hf/%s/values.safetensors", name));
}
static void test_pytorch(void **state) {
    (void)state;
    for (int m = 0; m < N_PYTORCH; m++) {
        Arena *a = arena_new();
        const char *saved = temp_path(a, "balance.safetensors");
        PlanRun r =
            plan_run_with(a, "balance.yaml", golden_plan(a, m),
                          &(PipelineOptions){.execute = true, .threads = 1, .save_values = saved});
        if (!r.t || r.rep.exit) run_print(&r);
        assert_true(run_is(&r, "equivalent"));
        SafeTensors *st = golden_tensors(a, saved);
        int64_t n;
        near(*tensor_numbers(a, st, "loss_total", &n), pytorch[m].total, "loss_total");
        for (int k = 0; k < pytorch[m].layers; k++) {
            int l = pytorch[m].layer[k].layer;
            const char *aux = arena_printf(a, "layers.%d.moe.aux_term", l),
                       *z = arena_printf(a, "layers.%d.moe.z_term", l),
                       *g = arena_printf(a, "grad.param.model.layers.%d.mlp.gate.weight", l);
            near(*tensor_numbers(a, st, aux, &n), pytorch[m].layer[k].aux, aux);
            near(*tensor_numbers(a, st, z, &n), pytorch[m].layer[k].z, z);
            const double *x = tensor_numbers(a, st, g, &n);
            near(squares(x, n), pytorch[m].layer[k].squares, g);
            for (int i = 0; i < 3; i++) near(x[i], pytorch[m].layer[k].first[i], g);
        }
        const double *e = tensor_numbers(a, st, "grad.param.model.embed_tokens.weight", &n);
        near(squares(e, n), pytorch[m].embed, "embedding");
        st_close(st);
        arena_free(a);
    }
}
/* Hugging Face reports E sum_e f_e P_e of a layer: the files of its models have that number. */
static void test_reported(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *values = golden_path(a, "hf/mixtral/values.safetensors"), *text = golden_plan(a, 0),
               *pass = strstr(text, "pass: backward\n");
    text = arena_printf(a, "%.*s%s", (int)(pass - text), text, pass + strlen("pass: backward\n"));
    PlanRun r = plan_run_with(a, "balance.yaml", text,
                              &(PipelineOptions){.execute = true, .threads = 1, .against = values});
    assert_non_null(r.t);
    int found = 0;
    for (int k = 0; k < r.rep.n_against; k++) {
        const struct AgainstRow *x = &r.rep.against[k];
        if (!strstr(x->name, ".moe.aux_loss") || x->missing_here || x->missing_there) continue;
        found++;
        assert_true(x->ok && x->max_rel <= 1e-11);
    }
    assert_int_equal(found, 2);
    arena_free(a);
}

/* ---- the exact form, whatever the plan ---- */
static const struct {
    const char *name, *mesh, *groups, *lines, *more, *data;
    int sums; /* of counts, in each layer */
} ways[] = {
    {"ep over dp", "{dp: 2}", "ep: dp", "  layers.*.moe.experts: expert_parallel\n",
     "data_parallel: {mode: ddp}\n", "", 1},
    {"ep over dp x cp, zigzag, FSDP", "{dp: 2, cp: 2}", "ep: dp*cp",
     "  layers.*.moe.experts: expert_parallel\n",
     "data_parallel: {mode: fsdp}\ncontext_parallel: {mode: all_gather, order: zigzag}\n", "", 1},
    {"masked", "{dp: 2, tp: 2}", "ep: tp",
     "  layers.*.moe.experts: {style: expert_parallel, output: replicate}\n",
     "data_parallel: {mode: ddp}\n", "", 1},
    {"gathered", "{dp: 4}", "ep: dp",
     "  layers.*.moe: {style: prepare_module_input_output, input: [shard(0)], desired_input: "
     "[varying_use], use_local_input: true, output: partial, desired_output: shard(0), axis: ep}\n"
     "  layers.*.moe.experts: {style: expert_parallel, output: partial}\n",
     "data_parallel: {mode: ddp}\n", "", 0},
    {"tokens cut by tp", "{dp: 2, tp: 2}", "ep: tp, sp: tp",
     "  layers.*.attention_norm: sequence_parallel\n  layers.*.ffn_norm: sequence_parallel\n"
     "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "
     "[replicate]}\n  layers.*.attention.w[qkv]: colwise\n"
     "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
     "  layers.*.moe.router.gate: replicated_with_grad_allreduce\n"
     "  layers.*.moe.experts: expert_parallel\n",
     "data_parallel: {mode: ddp}\n", ", block_input: {tp: shard(1)}", 1},
    {"router cut", "{tp: 4}", "ep: tp",
     "  layers.*.moe.router.gate: {style: colwise, output: replicate}\n"
     "  layers.*.moe.experts: {style: expert_parallel, output: replicate}\n",
     "", "", 0},
};
enum { N_WAYS = sizeof ways / sizeof *ways };
static const char *const routers[] = {
    "model_type: mixtral, num_local_experts: 8, num_experts_per_tok: 2, intermediate_size: 8",
    "model_type: mixtral, router: switch, num_local_experts: 5, num_experts_per_tok: 1, "
    "intermediate_size: 8",
    "model_type: mixtral, router: llama4_text, num_local_experts: 6, num_experts_per_tok: 3, "
    "intermediate_size: 8",
};
enum { N_ROUTERS = sizeof routers / sizeof *routers };
static const char *plan_of(Arena *a, int way, int router, const char *data, const char *moe) {
    return arena_printf(
        a,
        "model: {config: {%s, hidden_size: 8, num_hidden_layers: 2, num_attention_heads: 4, "
        "num_key_value_heads: 4, head_dim: 4, vocab_size: 16}, layers: all}\n"
        "data: {batch: 4, sequence: 8, %s%s}\nmesh: %s\ngroups: {%s}\nnames: torchtitan\n"
        "pass: backward\nmoe: {%s}\n%splan:\n%s",
        routers[router], data, ways[way].data, ways[way].mesh, ways[way].groups, moe,
        ways[way].more, ways[way].lines);
}
static void test_ways(void **state) {
    (void)state;
    for (int w = 0; w < N_WAYS; w++)
        for (int k = 0; k < N_ROUTERS; k++)
            for (int f32 = 0; f32 < 2; f32++) {
                Arena *a = arena_new();
                const char *text = plan_of(a, w, k, f32 ? "dtype: f32" : "dtype: f64",
                                           "aux_loss: exact, aux_coef: 0.1, z_coef: 0.01");
                PlanRun r = plan_run(a, "ways.yaml", text, true);
                bool good = run_is(&r, "equivalent") && !r.t->n_unasked;
                if (!good) printf("%s\n%s", ways[w].name, text), run_print(&r);
                assert_true(good);
                int sums = 0;
                for (int i = 0; i < r.t->n_collectives; i++)
                    sums += !strcmp(r.t->collectives[i].op, "all_reduce") &&
                            strstr(r.t->collectives[i].value, ".moe.counts") != NULL;
                assert_int_equal(sums, 2 * ways[w].sums);
                arena_free(a);
            }
}
/* E sum_e f_e P_e of tokens [first, last), from the logits of a file: top-k by hand. */
static double balance(const double *z, int64_t first, int64_t last, int E, int k) {
    double f[16] = {0}, p[16] = {0}, n = (double)(last - first), all = 0;
    for (int64_t t = first; t < last; t++) {
        double sum = 0, row[16];
        for (int e = 0; e < E; e++) sum += row[e] = exp(z[t * E + e]);
        for (int e = 0; e < E; e++) {
            int above = 0;
            for (int o = 0; o < E; o++) above += z[t * E + o] > z[t * E + e];
            f[e] += above < k ? 1 / n : 0;
            p[e] += row[e] / sum / n;
        }
    }
    for (int e = 0; e < E; e++) all += E * f[e] * p[e];
    return all;
}
/* The balance of a batch is no sum over its micro-batches: each has its own, and the loss has their
 * mean. By hand from the logits of the same plan without micro-batches; under every way to lay out
 * experts, with rows dropped, in training and in a pipeline the ranks agree with the unsharded run.
 */
static void test_micro_balance(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *saved = temp_path(a, "micro.safetensors"), *moe = "aux_loss: exact, aux_coef: 0.5";
    PlanRun r =
        plan_run_with(a, "one.yaml", plan_of(a, 0, 0, "dtype: f64", moe),
                      &(PipelineOptions){.execute = true, .threads = 1, .save_values = saved});
    assert_true(run_is(&r, "equivalent"));
    SafeTensors *st = golden_tensors(a, saved);
    int64_t n;
    double loss = *tensor_numbers(a, st, "loss", &n), had = 0;
    for (int parts = 1; parts <= 2; parts++) { /* of 32 tokens */
        double want = loss;
        for (int l = 0; l < 2; l++) {
            const double *z =
                tensor_numbers(a, st, arena_printf(a, "layers.%d.moe.router_logits", l), &n);
            for (int m = 0; m < parts; m++)
                want += .5 / 2 / parts * balance(z, 32 / parts * m, 32 / parts * (m + 1), 8, 2);
        }
        r = plan_run(
            a, "micro.yaml",
            plan_of(a, 0, 0, parts > 1 ? "dtype: f64, microbatches: 2" : "dtype: f64", moe), true);
        assert_true(run_is(&r, "equivalent"));
        near(r.rep.loss, want, "loss of the ranks, by hand");
        near(r.rep.loss_unsharded, want, "unsharded loss, by hand");
        assert_true(fabs(want - had) > 1e-3);
        had = want;
    }
    st_close(st);
    for (int w = 0; w < N_WAYS; w++)
        for (int k = 0; k < N_ROUTERS; k++)
            plan_good(
                a,
                plan_of(a, w, k,
                        (w + k) % 2 ? "dtype: f32, microbatches: 2" : "dtype: f64, microbatches: 2",
                        "aux_loss: exact, aux_coef: 0.5, z_coef: 0.01, capacity_factor: 0.8"),
                true);
    arena_free(a);
}
/* z is a mean over tokens: micro-batches add up to it, and training goes on with it. */
static void test_micro_batches(void **state) {
    (void)state;
    Arena *a = arena_new();
    plan_good(a, plan_of(a, 0, 0, "dtype: f64, microbatches: 2", "z_coef: 0.3"), true);
    const char *text = plan_of(a, 1, 0, "dtype: f64", "aux_loss: exact, aux_coef: 0.1"),
               *at = strstr(text, "pass: backward");
    plan_good(a,
              arena_printf(a, "%.*spass: train\noptimizer: {name: sgd, lr: 0.1, steps: 2}%s",
                           (int)(at - text), text, at + strlen("pass: backward")),
              true);
    arena_free(a);
}

/* ---- each rank by itself ---- */
static void test_per_shard(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *saved = temp_path(a, "shard.safetensors");
    PlanRun r = plan_run_with(
        a, "shard.yaml",
        plan_of(a, 0, 0, "dtype: f64", "aux_loss: per_shard, aux_coef: 0.5, routing: computed"),
        &(PipelineOptions){.execute = true, .threads = 1, .save_values = saved});
    assert_true(run_is(&r, "different") && run_has(&r, "W0401"));
    assert_string_equal(r.t->first_wrong, "layers.0.moe.counts");
    const Diag *d = run_diag(&r, "E0501", "2 times its own part for the parts of all");
    assert_true(d && d->loc.line == 7);
    assert_false(run_has(&r, "N0001"));
    SafeTensors *st = golden_tensors(a, saved);
    int64_t n;
    double shards = 0, all = 0;
    for (int l = 0; l < 2; l++) {
        const double *z =
            tensor_numbers(a, st, arena_printf(a, "layers.%d.moe.router_logits", l), &n);
        assert_int_equal(n, 32 * 8);
        shards += .5 / 2 * (balance(z, 0, 16, 8, 2) + balance(z, 16, 32, 8, 2)) / 2;
        all += .5 / 2 * balance(z, 0, 32, 8, 2);
    }
    double loss = *tensor_numbers(a, st, "loss", &n),
           total = *tensor_numbers(a, st, "loss_total", &n);
    assert_true(fabs(total - loss - all) <= 1e-12 * fabs(total));
    assert_true(r.rep.loss_wrong && r.rep.loss_unsharded == total);
    assert_true(fabs(r.rep.loss - loss - shards) <= 1e-12 * fabs(total));
    assert_true(fabs(shards - all) > 1e-3);
    st_close(st);
    /* where no rank has tokens of its own it is the exact one, and a note says so */
    r = plan_run(a, "shard.yaml",
                 plan_of(a, N_WAYS - 1, 0, "dtype: f64", "aux_loss: per_shard, aux_coef: 0.5"),
                 true);
    assert_true(run_is(&r, "equivalent"));
    assert_non_null(run_diag(&r, "N0003", "no axis cuts the tokens"));
    arena_free(a);
}
static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *data, *moe, *code, *says;
    } rows[] = {
        {"dtype: f64", "aux_loss: exact", "E0208", "aux_coef"},
        {"dtype: f64", "aux_loss: exact, aux_coef: 0", "E0208", "aux_coef"},
        {"dtype: f64", "aux_coef: 0.1", "E0208", "aux_loss"},
        {"dtype: f64", "aux_loss: most, aux_coef: 0.1", "E0206", "per_shard"},
        {"dtype: f64", "aux_loss: exact, aux_coef: -1", "E0309", "aux_coef"},
        {"dtype: f64", "z_coef: .nan", "E0301", "z_coef"},
        {"dtype: f64", "z_coef: -0.1", "E0309", "z_coef"},
        {"dtype: f32", "z_coef: 1e300", "E0309", "z_coef"},
        {"dtype: f64, cut: {batch: dp}, batch: 3", "aux_loss: per_shard, aux_coef: 0.1", "E0307",
         "unequally many"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        const char *text = plan_of(a, 0, 0, rows[i].data, rows[i].moe);
        if (strstr(rows[i].data, "batch: 3")) { /* not twice */
            const char *at = strstr(text, "batch: 4, ");
            text = arena_printf(a, "%.*s%s", (int)(at - text), text, at + strlen("batch: 4, "));
        }
        PlanRun r = plan_run(a, "refused.yaml", text, true);
        if (!run_diag(&r, rows[i].code, rows[i].says)) {
            run_print(&r);
            fail_msg("%s, %s: %s", rows[i].data, rows[i].moe, rows[i].code);
        }
        arena_free(a);
    }
    Arena *a = arena_new();
    PlanRun r =
        plan_run(a, "refused.yaml", "model: llama3-8b\nmesh: {dp: 2}\nmoe: {z_coef: 0.1}\n", false);
    assert_non_null(run_diag(&r, "E0208", "has none"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pytorch),       cmocka_unit_test(test_reported),
        cmocka_unit_test(test_ways),          cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_per_shard),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_micro_balance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
