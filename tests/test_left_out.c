/* A line of a plan left out, and the rest taken at its word (`trust: declared`): of a block with
 * experts, a shared one and latent attention, each line in its turn, under both ways to cut
 * experts. Nobody then moves what the line would have moved, so such a plan is wrong, or right
 * without anybody's help; and it runs to its end, whatever fits no more. */
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char block[] =
    "model: {parts: [blocks], config: {model_type: deepseek_v3, hidden_size: 16, "
    "intermediate_size: "
    "12, moe_intermediate_size: 8, num_hidden_layers: 1, first_k_dense_replace: 0, "
    "num_attention_heads: 4, num_key_value_heads: 4, q_lora_rank: 6, kv_lora_rank: 5, "
    "qk_nope_head_dim: 4, qk_rope_head_dim: 2, v_head_dim: 3, vocab_size: 37, n_routed_experts: 6, "
    "num_experts_per_tok: 2, n_shared_experts: 1, n_group: 2, topk_group: 1, "
    "routed_scaling_factor: 1.5, norm_topk_prob: true}}\n"
    "data: {batch: 2, sequence: 8, dtype: f32, seed: 3}\nmesh: {tp: 2}\nnames: hf\n";
typedef struct {
    const char *module, *style;
    const char *wrong; /* the first wrong value without it; NULL: all are right, and no move is
                          made that nobody asks for */
} Line;
enum { MOST = 12 };
#define DENSE                                                                                      \
    {"self_attn.q_b_proj", "colwise", "layers.0.q_attn"},                                          \
        {"self_attn.kv_b_proj", "colwise", "layers.0.k_attn"},                                     \
        {"self_attn.o_proj", "rowwise", "model.layers.0.self_attn.o_proj.weight"},                 \
        {"mlp.shared_experts.gate_proj", "colwise", "layers.0.moe.shared.gate_act"},               \
        {"mlp.shared_experts.up_proj", "colwise", "layers.0.moe.shared.up"}, {                     \
        "mlp.shared_experts.down_proj", "rowwise",                                                 \
            "model.layers.0.mlp.shared_experts.down_proj.weight"                                   \
    }
static const Line plans[][MOST] = {
    {DENSE,
     {"mlp.experts", "moe_tp_experts", "layers.0.moe.routed"},
     {"mlp.experts.gate_up_proj", "packed_colwise", "layers.0.moe.act"},
     {"mlp.experts.down_proj", "rowwise", "model.layers.0.mlp.experts.down_proj"}},
    {DENSE,
     {"mlp.gate", "ep_router", NULL}, /* says only whose gradient it is */
     {"mlp.experts", "ep_dispatch_experts", "layers.0.moe.dispatched"},
     {"mlp.experts.gate_up_proj", "grouped_gemm", "layers.0.moe.act"},
     {"mlp.experts.down_proj", "grouped_gemm", "model.layers.0.mlp.experts.down_proj"}},
};
static const char *text_of(Arena *a, const Line *line, uint32_t out, const char *trust) {
    const char *text = arena_printf(a, "%strust: %s\nplan:\n", block, trust);
    for (int i = 0; i < MOST && line[i].module; i++)
        if (!(out >> i & 1))
            text =
                arena_printf(a, "%s  model.layers.*.%s: %s\n", text, line[i].module, line[i].style);
    return text;
}
static const char *first_wrong(const PlanRun *r) {
    return !run_is(r, "equivalent") ? r->t->first_wrong : NULL;
}
/* The line is told, by itself or as the parameter's layout. */
static bool names_line(const PlanRun *r, const char *module) {
    bool told = false;
    for (int i = 0; i < r->d->n; i++)
        told |= r->d->item[i].hint && strstr(r->d->item[i].hint, module);
    return told;
}
static void test_one(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++)
        for (int out = -1; out < 0 || (out < MOST && plans[k][out].module); out++) {
            Arena *a = arena_new();
            const Line *x = out < 0 ? NULL : &plans[k][out];
            uint32_t set = x ? 1u << out : 0;
            PlanRun r = plan_run(a, "out.yaml", text_of(a, plans[k], set, "declared"), true);
            assert_non_null(r.t);
            const char *at = first_wrong(&r), *want = x ? x->wrong : NULL;
            if (!at != !want || (at && strcmp(at, want) != 0))
                fail_msg("without %s: %s", x ? x->module : "nothing", at ? at : "all is right");
            assert_int_equal(r.t->n_unasked, 0);
            if (x && strstr(x->wrong ? x->wrong : "", ".mlp."))
                assert_true(names_line(&r, x->module));
            /* by the rules somebody makes the move, and that is told */
            r = plan_run(a, "out.yaml", text_of(a, plans[k], set, "rules"), true);
            run_must_be(&r, "equivalent");
            assert_int_equal(r.t->n_unasked > 0, want != NULL);
            arena_free(a);
        }
}
/* Any of the lines of experts left out, several at once. */
static void test_several(void **state) {
    (void)state;
    int wrong = 0, right = 0;
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
        int n = 0;
        while (n < MOST && plans[k][n].module) n++;
        for (uint32_t set = 0; set < 1u << (n - 6); set++) {
            Arena *a = arena_new();
            PlanRun r = plan_run(a, "out.yaml", text_of(a, plans[k], set << 6, "declared"), true);
            assert_non_null(r.t);
            assert_int_equal(r.t->n_unasked, 0);
            *(first_wrong(&r) ? &wrong : &right) += 1;
            arena_free(a);
        }
    }
    print_message("%d wrong, %d right without anybody's help\n", wrong, right);
    assert_true(wrong >= 12 && right >= 4);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one), cmocka_unit_test(test_several)};
    return cmocka_run_group_tests_name("a line left out", tests, NULL, NULL);
}
