/* torchtune's own Llama 4 block under its own plans (golden/torch/09_*_moe_*): the inference plan
 * and the cured training plan are right, value for value and in what they send; the training plan
 * counts the shared expert tp times, and each rank holds here what it held there. PyTorch's router
 * takes its sigmoid in float32, so values agree to float32. */
#include "support/moe_block.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { D = 32, F = 48, E = 4, B = 2, S = 16 };
static const double eps = 1e-5, tolerance = 2e-6;

#define SHARED                                                                                     \
    "  layers.*.mlp.shared_expert.w[13]: colwise\n"                                                \
    "  layers.*.mlp.shared_expert.w2: {style: rowwise, output: partial}\n"
#define TRAINING                                                                                   \
    "  layers.*.sa_norm: sequence_parallel\n  layers.*.attn: {style: prepare_module_input, "       \
    "input: [shard(1)], desired_input: [replicate], use_local_output: true}\n"                     \
    "  layers.*.attn.output_proj: {output: shard(1)}\n  layers.*.mlp_norm: sequence_parallel\n"    \
    "  layers.*.mlp: {style: prepare_module_input_output, input: [shard(1)], desired_input: "      \
    "[replicate], use_local_input: true, output: partial, desired_output: shard(1)}\n"
typedef struct {
    const char *name;
    int tp;
    bool cut;          /* tokens over tp, before the block and behind it */
    const char *lines; /* of the block, but for router and experts */
    bool right;
} Case;
static const Case cases[] = {
    {"inference_tp2", 2, false,
     "  layers.*.mlp: {style: prepare_module_output, output: partial, desired_output: "
     "replicate}\n" SHARED,
     true},
    {"inference_tp4", 4, false,
     "  layers.*.mlp: {style: prepare_module_output, output: partial, desired_output: "
     "replicate}\n" SHARED,
     true},
    {"training_cured_tp2", 2, true, TRAINING SHARED, true},
    {"training_cured_tp4", 4, true, TRAINING SHARED, true},
    {"training_tp2", 2, true, TRAINING, false},
    {"training_tp4", 4, true, TRAINING, false},
};
enum { N_CASES = sizeof cases / sizeof *cases };
/* Weights as torchtune stores them, input dim first. */
static const struct {
    const char *ours, *theirs;
    Pad pad;
} weights[] = {
    {"layers.0.mlp.router.gate.weight", "mlp.router.gate.weight", {1, E, D, E, D + 1}},
    {"layers.0.mlp.experts.gate_proj", "mlp.experts.gate_proj", {E, D, F, D + 1, F}},
    {"layers.0.mlp.experts.up_proj", "mlp.experts.up_proj", {E, D, F, D + 1, F}},
    {"layers.0.mlp.experts.down_proj", "mlp.experts.down_proj", {E, F, D, F, D + 1}},
    {"layers.0.mlp.shared_expert.w1.weight", "mlp.shared_expert.w1.weight", {1, F, D, F, D + 1}},
    {"layers.0.mlp.shared_expert.w3.weight", "mlp.shared_expert.w3.weight", {1, F, D, F, D + 1}},
    {"layers.0.mlp.shared_expert.w2.weight", "mlp.shared_expert.w2.weight", {1, D, F, D + 1, F}},
};
enum { N_WEIGHTS = sizeof weights / sizeof *weights };

static const char *plan_of(Arena *a, const Case *c, const char *weight, const char *inputs) {
    return arena_printf(
        a,
        "model: {config: {model_type: llama4_text, hidden_size: %d, intermediate_size: %d, "
        "num_hidden_layers: 1, num_attention_heads: 1, num_key_value_heads: 1, head_dim: 4, "
        "vocab_size: 16, num_local_experts: %d, moe_layers: [0], rms_norm_eps: %g}%s%s}\n"
        "data: {batch: %d, sequence: %d, dtype: f64%s%s%s}\nmesh: {tp: %d}\nnames: torchtune\n"
        "pass: backward\n%splan:\n%s"
        "  layers.*.mlp.router.gate: {style: no_parallel, use_local_output: true}\n"
        "  layers.*.mlp.experts: expert_tensor_parallel\n",
        D + 1, F, E, eps, weight ? ", weights: " : "", weight ? weight : "", B, S,
        c->cut ? ", block_input: {tp: shard(1)}" : "", inputs ? ", inputs: " : "",
        inputs ? inputs : "", c->tp, c->right ? "" : "trust: declared\n", c->lines);
}
static void same(const Case *c, const char *what, const double *have, const double *want,
                 int64_t n) {
    double top = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(have[i] - want[i]) <= tolerance * top))
            fail_msg("%s: %s [%lld] is %.12g, recorded %.12g", c->name, what, (long long)i, have[i],
                     want[i]);
}
/* The block's own collectives of a pass with the bytes that go in and out, of tokens of D numbers:
 * "all_gather 4096 8192, ". */
static const char *sent(Arena *a, const Trace *t, Phase pass) {
    Str s = str_new(a);
    str_add(&s, "");
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        bool own = strstr(c->value, ".moe.") || strstr(c->value, "post_attn_norm");
        if (c->pass == pass && own && !c->skipped)
            str_addf(&s, "%s %.0f %.0f, ", c->op, (double)c->bytes_in / (D + 1) * D,
                     (double)c->bytes_out / (D + 1) * D);
    }
    return s.s;
}
/* The forward collectives of rank 0 of the record, the same way. */
static const char *recorded(Arena *a, const Json *record) {
    Str s = str_new(a);
    str_add(&s, "");
    const Json *all = json_get(json_get(record, "collectives"), "forward");
    for (int i = 0; i < all->n; i++)
        str_addf(&s, "%s %lld %lld, ", json_get(all->item[i], "op")->s,
                 (long long)json_get(all->item[i], "in_bytes_per_rank")->item[0]->i,
                 (long long)json_get(all->item[i], "out_bytes_per_rank")->item[0]->i);
    return s.s;
}
static void hold_whole(const Case *c, Arena *a, const SafeTensors *st, const SafeTensors *rec) {
    int64_t n;
    const char *what = c->right ? "framework" : "reference"; /* the right one, of both */
    same(c, "output",
         first_columns(a, tensor_numbers(a, st, "layers.0.moe.output", &n), B * S, D + 1, D),
         tensor_numbers(a, rec, arena_printf(a, "%s_output", what), &n), B * S * D);
    same(c, "input gradient",
         first_columns(a, tensor_numbers(a, st, "grad.layers.0.post_attn_norm", &n), B * S, D + 1,
                       D),
         tensor_numbers(a, rec, arena_printf(a, "%s_dx", what), &n), B * S * D);
    for (int i = 0; i < N_WEIGHTS; i++) {
        Pad p = weights[i].pad;
        const char *theirs = arena_printf(a, "%s_grads/%s", what, weights[i].theirs);
        if (!st_find(rec, theirs)) fail_msg("%s: no %s", c->name, theirs);
        const double *have = tensor_numbers(a, st,
                                            arena_printf(a, "grad.param.%s", weights[i].ours), &n),
                     *want = tensor_numbers(a, rec, theirs, &n);
        have = first_columns(a, have, p.blocks, (int)(p.rows1 * p.cols1), (int)(p.rows * p.cols1));
        have = first_columns(a, have, p.blocks * p.rows, (int)p.cols1, (int)p.cols);
        same(c, theirs, have, want, p.blocks * p.rows * p.cols);
    }
}
/* What each rank has of the block's result: the mistake too. */
static void hold_ranks(const Case *c, Arena *a, const SafeTensors *st, const SafeTensors *rec) {
    int64_t n, m;
    for (int r = 0; r < c->tp; r++) {
        const double *want = tensor_numbers(a, rec, arena_printf(a, "rank%d/output", r), &n),
                     *have = tensor_numbers(a, st, arena_printf(a, "rank%d/layers.0.moe.output", r),
                                            &m);
        assert_int_equal(n / D, m / (D + 1));
        same(c, "a rank's output", first_columns(a, have, n / D, D + 1, D), want, n);
    }
}
static void hold_case(const Case *c) {
    Arena *a = arena_new();
    const char *folder = arena_printf(a, "torch/09_torchtune_llama4_moe_%s", c->name);
    SafeTensors *rec = golden_tensors(a, golden_path(a, "%s/values.safetensors", folder));
    Json *json = golden_json(a, golden_path(a, "%s/record.json", folder));
    BlockWeight w[N_WEIGHTS];
    int64_t n;
    MoeBlock b = {.a = a,
                  .B = B,
                  .S = S,
                  .D = D,
                  .eps = eps,
                  .norm = "layers.0.mlp_norm.scale",
                  .weight = w,
                  .n = N_WEIGHTS};
    b.x = tensor_numbers(a, rec, "x", &n);
    b.dy = tensor_numbers(a, rec, "gy", &n);
    for (int i = 0; i < N_WEIGHTS; i++)
        w[i] = (BlockWeight){
            weights[i].ours,
            tensor_numbers(a, rec, arena_printf(a, "weights/%s", weights[i].theirs), &n),
            weights[i].pad};
    const char *saved = temp_path(a, "torchtune.safetensors"),
               *file = moe_block_weights(&b, plan_of(a, c, NULL, NULL)),
               *text = plan_of(a, c, file, moe_block_inputs(&b));
    PlanRun r =
        plan_run_with(a, "torchtune.yaml", text,
                      &(PipelineOptions){.execute = true, .threads = 1, .save_values = saved});
    const char *verdict = c->right ? "equivalent" : "different";
    if (!run_is(&r, verdict)) printf("%s", text), run_print(&r);
    assert_true(r.t && r.t->verdict);
    run_must_be(&r, verdict);
    if (!c->right) assert_string_equal(r.t->first_wrong, "layers.0.moe.shared.down");
    assert_string_equal(sent(a, r.t, PHASE_FORWARD), recorded(a, json));
    SafeTensors *st = golden_tensors(a, saved);
    hold_whole(c, a, st, rec);
    hold_ranks(c, a, st, rec);
    st_close(st);
    st_close(rec);
    arena_free(a);
}
static void test_torchtune(void **state) {
    (void)state;
    Arena *a = arena_new();
    if (!golden_has(a, "torch/09_torchtune_llama4_moe_training_tp2/record.json")) {
        printf("golden/torch/09_* is not there: nothing compared\n");
        arena_free(a);
        skip();
    }
    arena_free(a);
    for (int i = 0; i < N_CASES; i++) hold_case(&cases[i]);
    printf("backward collectives are not compared: PyTorch sums the input's gradient at each "
           "module and slices it, here one reduce-scatter undoes the all-gather\n");
    printf("3 records of the whole decoder are not compared: its logits are float32 and its loss "
           "is the mistake's\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_torchtune)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
