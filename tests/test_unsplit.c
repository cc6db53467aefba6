/* Bit equality: where a plan splits no sum on the way to a value, the ranks hold, put together, the
 * very bits that one device has. Asserted for every value of every plan with experts: those that
 * the tests write (test_rows has their families) and the shipped ones. What "on the way" means
 * is found in support/run_values.c. */
#include "support/run_values.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"

#include <cmocka.h>

/* How many gradients of experts have the bits of one device. */
static int hold(const char *file, const char *text) {
    Arena *a = arena_new();
    RunValues many = {.a = a}, one = {.a = a};
    int experts = 0, equal = 0;
    run_values(&many, file, text, false);
    run_values(&one, file, text, true);
    for (int i = 0; i < many.n; i++) {
        const RunValue *have = &many.v[i], *want = run_value(&one, have->name);
        if (have->split) continue;
        if (!want || want->n != have->n || want->dtype != have->dtype)
            fail_msg("%s: no %s on one device", file, have->name);
        if (memcmp(have->x, want->x, (size_t)(have->n * dtype_size(have->dtype))))
            fail_msg("%s: %s has other bits than one device", file, have->name);
        equal++;
        experts += strstr(have->name, "grad.param") && strstr(have->name, "experts");
    }
    printf("%s: %d of %d values split no sum, %d gradients of experts among them\n", file, equal,
           one.n, experts);
    assert_true(equal > 5);
    arena_free(a);
    return experts;
}

/* ---- plans ---- */
#define EP "  layers.*.moe.experts: expert_parallel\n"
#define DDP "data_parallel: {mode: ddp}\n"
#define FSDP "data_parallel: {mode: fsdp}\n"
#define MIXTRAL "model_type: mixtral, num_local_experts: 8, num_experts_per_tok: 2"
#define DEEPSEEK                                                                                   \
    "model_type: deepseek_v3, n_routed_experts: 8, num_experts_per_tok: 3, n_group: 4, "           \
    "topk_group: 2, n_shared_experts: 1, moe_intermediate_size: 6, first_k_dense_replace: 0, "     \
    "q_lora_rank: null, kv_lora_rank: 5, qk_nope_head_dim: 4, qk_rope_head_dim: 2, v_head_dim: 3"
static const struct {
    const char *name, *config, *mesh, *groups, *lines, *more;
    int gradients; /* of experts that have the bits of one device: three weights, or none */
} rows[] = {
    {"ep over dp", MIXTRAL, "{dp: 2}", "ep: dp", EP, DDP, 3},
    {"ep over dp x cp, zigzag, FSDP", MIXTRAL, "{dp: 2, cp: 2}", "ep: dp*cp", EP,
     FSDP "context_parallel: {mode: all_gather, order: zigzag}\n", 3},
    {"weights of all experts' softmax",
     "model_type: qwen3_moe, num_experts: 8, "
     "num_experts_per_tok: 3, moe_intermediate_size: 6, norm_topk_prob: false",
     "{dp: 4}", "ep: dp", EP, FSDP, 3},
    {"scores first, a shared expert",
     "model_type: llama4_text, num_local_experts: 8, moe_layers: [0]", "{dp: 2, cp: 2}",
     "ep: dp*cp", EP, DDP, 3},
    {"groups, latent attention", DEEPSEEK, "{dp: 2, cp: 2}", "ep: dp*cp", EP, FSDP, 3},
    {"5 experts on 4 ranks", "model_type: mixtral, num_local_experts: 5", "{dp: 4}", "ep: dp", EP,
     DDP, 3},
    {"all experts", "model_type: mixtral, num_local_experts: 3, num_experts_per_tok: 3", "{dp: 4}",
     "ep: dp", EP, DDP, 3},
    {"one expert has all tokens, others none",
     "model_type: mixtral, num_local_experts: 8, num_experts_per_tok: 1", "{dp: 4}", "ep: dp", EP,
     DDP "moe: {routing: hot_expert}\n", 3},
    {"room for some", MIXTRAL, "{dp: 2, cp: 2}", "ep: dp*cp", EP,
     DDP "moe: {capacity_factor: 0.7, priority: score}\n", 3},
    /* gradients come from more uses, or sums over copies, tokens or widths are made by ranks */
    {"masked", MIXTRAL, "{dp: 2, tp: 2}", "ep: tp",
     "  layers.*.moe.experts: {style: expert_parallel, output: replicate}\n", DDP, 0},
    {"copies of experts", MIXTRAL, "{edp: 2, ep: 2}", "dp: edp*ep", EP, FSDP, 0},
    {"masked, one rank of tokens", MIXTRAL, "{tp: 4}", "ep: tp",
     "  layers.*.moe.experts: {style: expert_parallel, output: replicate}\n", "", 3},
    {"experts cut inside", MIXTRAL, "{tp: 2}", "ep: tp",
     "  layers.*.moe.experts: {style: tensor_parallel, output: replicate}\n", "", 3},
};
static void test_unsplit(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int f32 = 0; f32 < 2; f32++) {
            Arena *a = arena_new();
            const char *text = arena_printf(
                a,
                "model: {config: {%s, hidden_size: 16, intermediate_size: 12, num_hidden_layers: "
                "1, "
                "num_attention_heads: 4, num_key_value_heads: 4, vocab_size: 32%s}}\n"
                "data: {batch: 4, sequence: 8, dtype: %s}\nmesh: %s\ngroups: {%s}\n"
                "names: torchtitan\npass: backward\n%splan:\n%s",
                rows[i].config, strstr(rows[i].config, "deepseek") ? "" : ", head_dim: 4",
                f32 ? "f32" : "f64", rows[i].mesh, rows[i].groups, rows[i].more, rows[i].lines);
            assert_int_equal(hold(rows[i].name, text), rows[i].gradients);
            arena_free(a);
        }
}
static void hold_shipped(const char *pattern) {
    for (PlanFiles f = plan_files(pattern, NULL); plan_files_next(&f);)
        if (strstr(f.text, ".experts")) hold(f.path, f.text);
}
static void test_shipped(void **state) {
    (void)state;
    hold_shipped("plans/3*.yaml");
    hold_shipped("plans/models/*.yaml");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unsplit),
                                       cmocka_unit_test(test_shipped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
