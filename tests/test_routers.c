/* Routers: Switch, GShard, Llama 4 (the score on what an expert gets, a shared expert) and
 * DeepSeek-V3 (sigmoid, selection bias, groups, scaling, shared experts; latent attention beside
 * it). Selection by groups by hand, models of other people forward and backward, and each router
 * under every way to lay out its experts, in the names of three systems. The kernels' adjoints are
 * held against differences in test_rows. */
#include "support/child.h"
#include "support/random_plan.h"
#include "support/support.h"
#include "base/file.h"
#include "ops/op.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- selection by groups ---- */
static void test_groups(void **state) {
    (void)state;
    const char *why;
    int at;
    Rule r;
    assert_true(rule_parse("bte!->[ebt]", &r, &why, &at));
    Attrs attrs = {.top = 3, .groups = 4, .top_groups = 2};
    /* groups of two, sums 5.5, 6, 5, 2: the best single expert stands in a group that goes. A token
     * of equal scores: the first. One with NaN: that group is below all. Ids are 3 e + t. */
    double z[] = {5, .5, 3, 3, 9,        -4,  1, 1, /**/ 1, 1, 1, 1,
                  1, 1,  1, 1, /**/ NAN, NAN, 0, 1, 0,      2, 0, 3};
    int64_t out[9];
    OpCall c = {.op = op_find("select"), .rule = &r, .at = &attrs, .dtype = DT_F64};
    for (int i = 0; i < 26; i++) c.local[i] = c.global[i] = 1;
    c.local['t' - 'a'] = c.global['t' - 'a'] = 3;
    c.local['e' - 'a'] = c.global['e' - 'a'] = 8;
    c.in[0] = (Tensor){.nd = 3, .n = {1, 3, 8}, .p = z};
    tensor_pack(&c.in[0]);
    assert_int_equal(c.op->rows(&c), 9);
    c.out = (Tensor){.nd = 1, .n = {9}, .s = {1}, .p = out};
    c.op->forward(&c);
    int64_t want[] = {0, 1, 4, 6, 7, 9, 14, 17, 23};
    assert_memory_equal(out, want, sizeof want);
}

/* ---- other people's models ---- */
typedef struct {
    const char *name, *mesh, *lines, *more;
    int tensors; /* parameters of experts that the file and the model both have */
} Golden;
#define EP(ff) "  model.layers.*." ff ".experts: {style: expert_parallel, axis: dp}\n"
#define SHARED(ff, sh)                                                                             \
    "  model.layers.*." ff "." sh ".[gu]*_proj: colwise\n"                                         \
    "  model.layers.*." ff "." sh ".down_proj: rowwise\n"
#define ETP(ff) "  model.layers.*." ff ".experts: {style: tensor_parallel, output: replicate}\n"
#define LLAMA_TP                                                                                   \
    "  model.layers.*.self_attn.[qkv]_proj: colwise\n  model.layers.*.self_attn.o_proj: rowwise\n"
#define LATENT_TP                                                                                  \
    "  model.layers.*.self_attn.*_b_proj: colwise\n  model.layers.*.self_attn.o_proj: rowwise\n"
#define DDP "data_parallel: {mode: ddp}\n"
#define FSDP "data_parallel: {mode: fsdp}\n"
static const Golden golden[] = {
    {"deepseek-v3-yarn", "{one: 1}", "", "", 36},
    {"deepseek-v3-yarn", "{dp: 2}", EP("mlp"), FSDP, 36},
    {"deepseek-v3-yarn", "{tp: 2}",
     "  model.layers.*.self_attn.q_proj: colwise\n" LATENT_TP SHARED("mlp", "shared_experts")
         ETP("mlp"),
     "", 36},
    {"llama4-interleaved", "{one: 1}", "", "", 4},
    {"llama4-interleaved", "{dp: 2}", EP("feed_forward"), DDP, 4},
    {"llama4-interleaved", "{tp: 2}",
     LLAMA_TP SHARED("feed_forward", "shared_expert") ETP("feed_forward"), "", 4},
    {"deepseek-v3", "{one: 1}", "", "", 96},
    {"deepseek-v3", "{dp: 2}", EP("mlp"), FSDP, 96},
    {"deepseek-v3", "{tp: 2}", LATENT_TP SHARED("mlp", "shared_experts") ETP("mlp"), "", 96},
    {"llama4-text", "{one: 1}", "", "", 8},
    {"llama4-text", "{dp: 2}", EP("feed_forward"), FSDP, 8},
    {"llama4-text", "{tp: 2}", LLAMA_TP SHARED("feed_forward", "shared_expert") ETP("feed_forward"),
     "", 8},
};
enum { N_GOLDEN = sizeof golden / sizeof *golden, N_OWN = 6 };
static void hold_golden(const Golden *g, const PlanRun *r) {
    int equal = 0, experts = 0;
    for (int k = 0; k < r->rep.n_against; k++) {
        const struct AgainstRow *x = &r->rep.against[k];
        if (x->missing_here || x->missing_there) continue;
        bool grad = !strncmp(x->name, "grad.", 5);
        if (!x->ok || !(x->max_rel <= (grad ? 1e-10 : 1e-11)))
            fail_msg("%s %s: %s differs by %.3g", g->name, g->mesh, x->name, x->max_rel);
        equal++;
        experts += grad && strstr(x->name, ".experts.") != NULL;
    }
    if (golden_complete()) assert_int_equal(experts, g->tensors);
    assert_true(experts > 0 && equal > experts + 20);
}
static void test_golden_models(void **state) {
    (void)state;
    for (size_t i = 0; i < N_GOLDEN; i++) {
        const Golden *g = &golden[i];
        if (i >= N_OWN && !golden_complete()) {
            printf("%s: only in the complete set of golden values, not compared\n", g->name);
            continue;
        }
        Arena *a = arena_new();
        const char *more = arena_printf(a, "%s%s%s", *g->lines ? "plan:\n" : "", g->lines, g->more);
        PlanRun r =
            golden_model(a, g->name, i % 2 ? "config_v4.json" : "config.json", g->mesh, more);
        hold_golden(g, &r);
        arena_free(a);
    }
}
/* A feature that is left out changes the values: the files can tell. */
static void test_features_matter(void **state) {
    (void)state;
    static const struct {
        const char *model, *without, *first;
    } rows[] = {
        {"deepseek-v3-yarn", "norm_topk_prob: false", "layers.1.moe.routed"},
        {"deepseek-v3-yarn", "routed_scaling_factor: 2.0", "layers.1.moe.routed"},
        {"deepseek-v3-yarn", "topk_group: 1", "layers.1.moe.routed"},
        {"deepseek-v3-yarn", "router: gshard, n_group: 1, topk_group: 1, routed_scaling_factor: 1",
         "layers.1.moe.routed"},
        {"llama4-interleaved", "router: switch", "layers.1.moe.routed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        const char *values = golden_path(a, "hf/%s/values.safetensors", rows[i].model);
        const char *text = arena_printf(
            a,
            "model: {hf_config: %s, weights: %s, config: {%s}, layers: [1, 2]}\n"
            "data: {dtype: f64, inputs: %s}\nnames: hf\nmesh: {tp: 1}\n",
            golden_path(a, "hf/%s/config.json", rows[i].model),
            golden_path(a, "hf/%s/model.safetensors", rows[i].model), rows[i].without, values);
        PipelineOptions o = {.execute = true, .threads = 1, .against = values};
        PlanRun r = plan_run_with(a, "golden.yaml", text, &o);
        bool told = false;
        for (int k = 0; r.t && k < r.rep.n_against; k++) {
            const struct AgainstRow *x = &r.rep.against[k];
            told |= !strcmp(x->name, rows[i].first) && !x->missing_here && !x->ok;
        }
        if (!told) run_print(&r);
        if (!told) fail_msg("%s %s changes nothing", rows[i].model, rows[i].without);
        arena_free(a);
    }
}

/* ---- plan families ---- */
static const struct {
    const char *name, *config;
    bool shared;
} models[] = {
    {"llama4",
     "model_type: llama4_text, intermediate_size: 12, intermediate_size_mlp: 20, "
     "num_hidden_layers: 2, num_key_value_heads: 2, head_dim: 4, num_local_experts: 4, moe_layers: "
     "[1], attention_chunk_size: 4, no_rope_layers: [1, 0], floor_scale: 3",
     true},
    {"deepseek",
     "model_type: deepseek_v3, intermediate_size: 20, moe_intermediate_size: 6, "
     "num_hidden_layers: 2, num_key_value_heads: 4, n_routed_experts: 8, num_experts_per_tok: 3, "
     "n_group: 4, topk_group: 2, n_shared_experts: 2, first_k_dense_replace: 1, q_lora_rank: 6, "
     "kv_lora_rank: 5, qk_nope_head_dim: 4, qk_rope_head_dim: 2, v_head_dim: 3",
     true},
    {"deepseek, plain scores, no groups, nothing shared",
     "model_type: deepseek_v3, intermediate_size: 20, moe_intermediate_size: 6, "
     "num_hidden_layers: 1, num_key_value_heads: 4, n_routed_experts: 5, num_experts_per_tok: 2, "
     "n_group: null, norm_topk_prob: false, n_shared_experts: 0, first_k_dense_replace: 0, "
     "q_lora_rank: null, kv_lora_rank: 5, qk_nope_head_dim: 4, qk_rope_head_dim: 2, v_head_dim: 3",
     false},
    {"switch",
     "model_type: mixtral, router: switch, intermediate_size: 12, num_hidden_layers: 1, "
     "num_key_value_heads: 2, head_dim: 4, num_local_experts: 4",
     false},
    {"gshard",
     "model_type: mixtral, router: gshard, intermediate_size: 12, num_hidden_layers: 1, "
     "num_key_value_heads: 2, head_dim: 4, num_local_experts: 4",
     false},
};
static const struct {
    const char *name, *mesh, *groups, *experts, *more;
} ways[] = {
    {"ep over dp", "{dp: 2}", "ep: dp", "expert_parallel", DDP},
    {"ep over dp x cp, zigzag, FSDP", "{dp: 2, cp: 2}", "ep: dp*cp", "expert_parallel",
     FSDP "context_parallel: {mode: all_gather, order: zigzag}\n"},
    {"masked", "{dp: 2, tp: 2}", "ep: tp", "{style: expert_parallel, output: replicate}", DDP},
    {"cut inside", "{tp: 2}", "ep: tp", "{style: tensor_parallel, output: replicate}", ""},
    {"ep and etp", "{dp: 2, tp: 2}", "ep: dp",
     "{axis: ep, weight: {ep: shard(e), tp: shard(w)}, output: {tp: replicate}}", DDP},
    {"copies of experts, FSDP", "{edp: 2, ep: 2}", "dp: edp*ep", "expert_parallel", FSDP},
};
static const struct {
    const char *scheme, *experts, *shared; /* shared: of gate and up, then down */
} schemes[] = {
    {"torchtitan", "layers.*.moe.experts",
     "  layers.*.moe.shared_experts.w[13]: colwise\n  layers.*.moe.shared_experts.w2: rowwise\n"},
    {"torchtune", "layers.*.mlp.experts",
     "  layers.*.mlp.shared_expert.w[13]: colwise\n  layers.*.mlp.shared_expert.w2: rowwise\n"},
    {"megatron", "decoder.layers.*.mlp.experts",
     "  decoder.layers.*.mlp.shared_experts.linear_fc1_*: colwise\n"
     "  decoder.layers.*.mlp.shared_experts.linear_fc2: rowwise\n"},
};
static void run_way(int m, int w, int s, const char *dtype) {
    Arena *a = arena_new();
    bool tp = strstr(ways[w].mesh, "tp:") != NULL;
    const char *text = arena_printf(
        a,
        "model: {config: {%s, hidden_size: 16, num_attention_heads: 4, vocab_size: 32}, layers: "
        "all}\ndata: {batch: 4, sequence: 8, dtype: %s}\nmesh: %s\ngroups: {%s}\nnames: %s\n"
        "plan:\n  %s: %s\n%spass: backward\n%s",
        models[m].config, dtype, ways[w].mesh, ways[w].groups, schemes[s].scheme,
        schemes[s].experts, ways[w].experts, tp && models[m].shared ? schemes[s].shared : "",
        ways[w].more);
    PlanRun r = plan_run(a, "router.yaml", text, true);
    bool good = run_is(&r, "equivalent") && !r.rep.exit && r.t->n_pass > 100;
    if (!good) printf("%s", text), run_print(&r);
    if (!good) fail_msg("%s, %s, %s: equivalent expected", models[m].name, ways[w].name, dtype);
    arena_free(a);
}
static void test_families(void **state) {
    (void)state;
    int n_models = sizeof models / sizeof *models, n_ways = sizeof ways / sizeof *ways;
    for (int m = 0; m < n_models; m++)
        for (int w = 0; w < n_ways; w++) {
            run_way(m, w, (m + w) % 3, "f64");
            run_way(m, w, (m + w + 1) % 3, "f32");
        }
}
/* ---- four ways to dispatch, one result (semantics.md 7.3) ---- */
#define MOE "  layers.*.moe"
static const struct {
    const char *name, *mesh, *lines;
} dispatchers[] = {
    {"all-to-all", "{dp: 4}", MOE ".experts: expert_parallel\n"},
    {"gathered", "{dp: 4}",
     MOE ": {style: prepare_module_input_output, input: [shard(0)], desired_input: [varying_use], "
         "use_local_input: true, output: partial, desired_output: shard(0), axis: ep}\n" MOE
         ".experts: {style: expert_parallel, output: partial}\n"},
    {"masked", "{tp: 4}", MOE ".experts: {style: expert_parallel, axis: tp, output: replicate}\n"},
    {"cut inside", "{tp: 4}",
     MOE ".experts: {style: tensor_parallel, axis: tp, output: replicate}\n"},
};
enum { N_DISPATCHERS = sizeof dispatchers / sizeof *dispatchers };
/* A value as the ranks hold it together: that of rank 0 where all have it, else side by side. */
static double *of_ranks(Arena *a, SafeTensors *st, const char *name, int64_t *n) {
    int64_t m;
    const double *first = tensor_numbers(a, st, arena_printf(a, "rank0/%s", name), &m);
    double *x = arena_alloc(a, (size_t)m * 4 * 8);
    memcpy(x, first, (size_t)m * 8);
    *n = m;
    for (int r = 1; r < 4; r++) {
        const double *one = tensor_numbers(a, st, arena_printf(a, "rank%d/%s", r, name), &m);
        if (!memcmp(one, first, (size_t)m * 8)) continue;
        memcpy(x + *n, one, (size_t)m * 8);
        *n += m;
    }
    return x;
}
static void compare_dispatchers(Arena *a, const char *config, uint64_t seed) {
    static const char *const values[] = {
        "layers.0.output", "grad.param.layers.0.moe.router.gate.weight",
        "grad.param.layers.0.ffn_norm.weight", "grad.param.layers.0.attention.wo.weight"};
    double *want[4] = {0};
    for (int k = 0; k < N_DISPATCHERS; k++) {
        const char *saved = temp_path(a, "dispatch.safetensors");
        const char *text = arena_printf(
            a,
            "model: {config: {%s}}\ndata: {batch: 4, sequence: %d, dtype: f64, seed: %d}\n"
            "mesh: %s\ngroups: {ep: %s}\nnames: torchtitan\npass: backward\n%splan:\n%s",
            config, 3 + (int)(seed % 5), (int)seed, dispatchers[k].mesh, k < 2 ? "dp" : "tp",
            k < 2 ? DDP : "", dispatchers[k].lines);
        PlanRun r =
            plan_run_with(a, "dispatch.yaml", text,
                          &(PipelineOptions){.execute = true, .threads = 1, .save_values = saved});
        if (!run_is(&r, "equivalent")) printf("%s", text), run_print(&r);
        assert_true(run_is(&r, "equivalent"));
        SafeTensors *st = golden_tensors(a, saved);
        for (int v = 0; v < 4; v++) {
            int64_t n;
            double *have = of_ranks(a, st, values[v], &n);
            for (int64_t i = 0; k && i < n; i++)
                if (!(fabs(have[i] - want[v][i]) <= 1e-11 * (1 + fabs(want[v][i]))))
                    fail_msg("%s: %s differs", dispatchers[k].name, values[v]);
            if (!k) want[v] = have;
        }
        st_close(st);
    }
}
static void test_dispatchers(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        Arena *a = arena_new();
        Rng g = {seed * 0x9e3779b97f4a7c15u};
        int E = 4 + rng_below(&g, 5), k = 1 + rng_below(&g, 3), kind = rng_below(&g, 4);
        static const char *const routers[] = {"mixtral", "switch", "llama4_text", "deepseek_v3"};
        const char *config = arena_printf(
            a,
            "model_type: mixtral, router: %s, hidden_size: %d, intermediate_size: %d, "
            "num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 2, head_dim: 4, "
            "vocab_size: 32, num_local_experts: %d, num_experts_per_tok: %d",
            routers[kind], 4 + rng_below(&g, 9), 4 + rng_below(&g, 9), kind == 3 ? 8 : E, k);
        compare_dispatchers(a, config, seed);
        arena_free(a);
    }
}
/* The shipped plans of whole families run, and hold. */
static void test_model_plans(void **state) {
    (void)state;
    PlanFiles f = plan_files("plans/models/*.yaml", NULL);
    assert_int_equal(f.all, 4);
    while (plan_files_next(&f)) {
        PlanRun r = plan_run(f.a, f.path, f.text, true);
        if (!r.t || r.rep.exit) run_print(&r);
        assert_true(!r.rep.exit && run_is(&r, "equivalent"));
    }
}
/* A buffer has no gradient, is no part of FSDP, and training goes on with it. */
static void test_selection_bias(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_good(
        a,
        arena_printf(a,
                     "model: {config: {%s, hidden_size: 16, num_attention_heads: 4, vocab_size: "
                     "32}, layers: all}\ndata: {batch: 4, sequence: 8, dtype: f64}\n"
                     "mesh: {dp: 2}\ngroups: {ep: dp}\nnames: torchtitan\nplan:\n"
                     "  layers.*.moe.experts: expert_parallel\npass: train\n" FSDP
                     "optimizer: {name: adamw, lr: 0.01, steps: 2}\n",
                     models[1].config),
        true);
    run_must_be(&r, "equivalent");
    int found = 0;
    for (int i = 0; i < r.t->n_params; i++) {
        if (!strstr(r.t->params[i].plan_name, "expert_bias")) continue;
        found++;
        assert_string_equal(r.t->params[i].rest.symbolic, "[E]");
    }
    assert_int_equal(found, 1);
    for (int i = 0; i < r.t->n_values; i++)
        assert_null(strstr(r.t->values[i].shape.name, "grad.param.layers.1.moe.expert_bias"));
    arena_free(a);
}
/* The selection bias is torchtitan's router's own, and a plain tensor: it is none of the gate,
 * whose style may make DTensors of what the gate has. */
static void test_plain_bias(void **state) {
    (void)state;
    Arena *a = arena_new();
    plan_good(a,
              arena_printf(a,
                           "model: {config: {%s, hidden_size: 16, num_attention_heads: 4, "
                           "vocab_size: 32}, layers: [1, 2]}\n"
                           "data: {batch: 2, sequence: 8, dtype: f64}\nmesh: {tp: 2}\n"
                           "names: torchtitan\npass: backward\nplan:\n"
                           "  layers.*.moe.router.gate: {style: no_parallel, use_local_output: "
                           "true}\n  layers.*.moe.experts: {style: tensor_parallel, output: "
                           "replicate}\n",
                           models[1].config),
              true);
    arena_free(a);
}
/* DeepSeek's router in front of another family's experts has its groups and its factor: each of
 * these is another model. */
static void test_groups_elsewhere(void **state) {
    (void)state;
    static const char *const keys[] = {
        "n_group: 1, topk_group: 1",
        "n_group: 4, topk_group: 1",
        "n_group: 4, topk_group: 2",
        "n_group: 2, topk_group: 1",
        "n_group: 4, topk_group: 2, routed_scaling_factor: 1.5",
        "n_group: 4, topk_group: 2, norm_topk_prob: false",
    };
    enum { N = sizeof keys / sizeof *keys };
    double loss[N];
    for (int i = 0; i < N; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a,
            arena_printf(a,
                         "model: {config: {model_type: mixtral, router: deepseek_v3, %s, "
                         "num_local_experts: 8, num_experts_per_tok: 2, intermediate_size: 8, "
                         "hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 4, "
                         "num_key_value_heads: 4, head_dim: 4, vocab_size: 16}, layers: all}\n"
                         "data: {batch: 4, sequence: 8, dtype: f64}\nmesh: {dp: 2}\n"
                         "groups: {ep: dp}\nnames: torchtitan\npass: backward\nplan:\n"
                         "  layers.*.moe.experts: expert_parallel\n",
                         keys[i]),
            true);
        loss[i] = r.rep.loss;
        assert_true(isfinite(loss[i]));
        for (int k = 0; k < i; k++)
            if (fabs(loss[i] - loss[k]) < 1e-9)
                fail_msg("%s and %s: %.17g", keys[i], keys[k], loss[i]);
        arena_free(a);
    }
}
/* Configs that cannot be: a diagnostic with its code. */
static void test_refused(void **state) {
    (void)state;
    static const struct {
        int model;
        const char *keys, *code;
    } rows[] = {
        {1, "num_experts_per_tok: 9", "E0307"},
        {1, "n_group: 3", "E0307"},
        {1, "topk_group: 5", "E0307"},
        {1, "topk_group: 0", "E0307"},
        {1, "topk_group: 1", "E0307"},
        {1, "scoring_func: softmax", "E0207"},
        {1, "topk_method: greedy", "E0207"},
        {3, "router: best", "E0206"},
        {3, "n_group: 2", "E0207"},
        {0, "norm_topk_prob: false", "E0207"},
        {0, "moe_intermediate_size: 8", "E0207"},
        {0, "num_experts_per_tok: 5", "E0307"},
        {0, "n_group: 2", "E0207"},
        {0, "topk_group: 2", "E0207"},
        {0, "routed_scaling_factor: 2", "E0207"},
        {0, "router: deepseek_v3, n_group: 3", "E0307"},
        {0, "router: deepseek_v3, n_group: 2, topk_group: 3", "E0307"},
        {1, "routed_scaling_factor: 0", "E0309"},
        {1, "routed_scaling_factor: -2.5", "E0309"},
        {1, "router: gshard", "E0207"}, /* its groups would be lost */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        const char *own = strchr(rows[i].keys, ':'), *config = models[rows[i].model].config,
                   *key = arena_strndup(a, rows[i].keys, (size_t)(own - rows[i].keys));
        const char *at = strstr(config, key); /* the key once, with another value */
        const char *end = at ? strchr(at, ',') : NULL;
        config = at ? arena_printf(a, "%.*s%s%s", (int)(at - config), config, rows[i].keys,
                                   end ? end : "")
                    : arena_printf(a, "%s, %s", config, rows[i].keys);
        PlanRun r = plan_run(
            a, "router.yaml",
            arena_printf(a,
                         "model: {config: {%s, hidden_size: 16, num_attention_heads: 4, "
                         "vocab_size: 32}, layers: all}\ndata: {batch: 4, sequence: 8, dtype: "
                         "f64}\nmesh: {dp: 2}\n",
                         config),
            false);
        if (run_has(&r, rows[i].code)) {
            arena_free(a);
            continue;
        }
        run_print(&r);
        fail_msg("%s: %s", config, rows[i].code);
        arena_free(a);
    }
}
/* A router that does not exist is told which do, and the man page has them all. */
static void test_routers_listed(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "router.yaml",
                         "model: {config: {model_type: mixtral, router: best, hidden_size: 16, "
                         "intermediate_size: 12, num_hidden_layers: 1, num_attention_heads: 4, "
                         "num_local_experts: 4, vocab_size: 32}}\nmesh: {dp: 2}\n",
                         false);
    size_t n;
    const char *page = child_read(a, "docs/shardproof.1", &n), *hint = NULL;
    for (int i = 0; i < r.d->n; i++)
        if (!strcmp(r.d->item[i].code, "E0206")) hint = r.d->item[i].hint;
    assert_non_null(hint);
    assert_non_null(strstr(hint, "olmoe"));
    for (char *save, *word = strtok_r(arena_strdup(a, hint), ", ", &save); word;
         word = strtok_r(NULL, ", ", &save)) {
        const char *from = strstr(page, ".BR router :"), *at = from ? strstr(from, word) : NULL;
        if (strcmp(word, "or") && (!at || at > strstr(from, ".TP"))) fail_msg("man page: %s", word);
    }
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),          cmocka_unit_test(test_golden_models),
        cmocka_unit_test(test_features_matter), cmocka_unit_test(test_families),
        cmocka_unit_test(test_dispatchers),     cmocka_unit_test(test_selection_bias),
        cmocka_unit_test(test_model_plans),     cmocka_unit_test(test_plain_bias),
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_groups_elsewhere),
        cmocka_unit_test(test_routers_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
