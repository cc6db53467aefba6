/* Where experts are: `moe: {axis, etp, dispatch, fsdp_dim}` and the styles that say the same. The
 * axes that hold different experts, and those that cut each inside, are any of those of the dense
 * part (folding), so the plans are drawn; what a declared way to dispatch moves is counted; what
 * contradicts the plan's lines, or how its tokens lie, is a diagnostic. */
#include "support/random_plan.h"
#include "support/support.h"
#include "base/file.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- folding ---- */
static const struct {
    const char *keys, *experts; /* the rest, and what the number of experts is called */
    bool shared;
} configs[] = {
    {"model_type: mixtral, intermediate_size: 12", "num_local_experts", false},
    {"model_type: mixtral, router: switch, intermediate_size: 7", "num_local_experts", false},
    {"model_type: llama4_text, intermediate_size: 12, intermediate_size_mlp: 20, moe_layers: [0], "
     "no_rope_layers: [1], floor_scale: 3, attention_chunk_size: 8",
     "num_local_experts", true},
    {"model_type: qwen3_moe, moe_intermediate_size: 6, intermediate_size: 12, norm_topk_prob: true",
     "num_experts", false}};
enum { DP, CP, TP, N_AXES };
static const char *const axis[N_AXES] = {"dp", "cp", "tp"};
/* What is drawn of a plan: bits of axes. */
typedef struct {
    Rng r;
    int size[N_AXES], ep, etp, config, E, k;
    bool sp;
} Fold;
static Fold draw(uint64_t seed) {
    Fold f = {.r = {seed * 0x9e3779b97f4a7c15u}};
    int ranks;
    do {
        ranks = 1;
        for (int i = 0; i < N_AXES; i++) ranks *= f.size[i] = rng_between(&f.r, 1, 3);
    } while (ranks > 12 || ranks == 1);
    f.ep = rng_between(&f.r, 1, 7);
    f.etp = rng_below(&f.r, 8) & ~f.ep;
    f.config = rng_below(&f.r, 4);
    f.E = rng_between(&f.r, 4, 7); /* no axis need divide it */
    f.k = rng_between(&f.r, 1, 3);
    f.sp = f.size[TP] > 1 && rng_chance(&f.r, 60);
    return f;
}
static const char *product(Arena *a, int set) {
    Str s = str_new(a);
    for (int i = 0; i < N_AXES; i++)
        if (set >> i & 1) str_addf(&s, "%s%s", s.n ? "*" : "", axis[i]);
    return s.s;
}
/* The ways to dispatch that these axes allow: tokens are cut over all of `ep`, or over none. */
static const char *dispatch_of(Fold *f) {
    bool cut = false, whole = false;
    for (int i = 0; i < N_AXES; i++) {
        if (!(f->ep >> i & 1) || f->size[i] == 1) continue;
        if (i == TP && !f->sp) whole = true;
        else cut = true;
    }
    if (cut == whole) return NULL;
    return whole ? "masked" : rng_chance(&f->r, 50) ? "all_gather" : "all_to_all";
}
#define SP_LINES                                                                                   \
    "  layers.*.attention_norm: sequence_parallel\n  layers.*.attention: {style: "                 \
    "prepare_module_input, input: [shard(1)], desired_input: [replicate]}\n"                       \
    "  layers.*.attention.w[qkv]: colwise\n"                                                       \
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"                                \
    "  layers.*.ffn_norm: sequence_parallel\n"                                                     \
    "  layers.*.moe.router.gate: sequence_parallel\n"
#define SHARED_LINES                                                                               \
    "  layers.*.moe.shared_experts: {style: prepare_module_input, input: [shard(1)], "             \
    "desired_input: [replicate]}\n  layers.*.moe.shared_experts.w[13]: colwise\n"                  \
    "  layers.*.moe.shared_experts.w2: {style: rowwise, output: shard(1)}\n"
#define TP_LINES "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n"
static const char *fold_text(Arena *a, Fold *f, const char *dtype) {
    static const char *const modes[] = {"ddp", "fsdp", "{mode: fsdp, unit: block}"};
    static const char *const dims[] = {"0", "1", "auto"};
    static const char *const orders[] = {"contiguous", "zigzag"};
    Str s = str_new(a);
    str_addf(&s, "model: {config: {");
    str_addf(&s, "%s, %s: %d, num_experts_per_tok: %d", configs[f->config].keys,
             configs[f->config].experts, f->E, f->k);
    str_addf(&s,
             ", hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 6, "
             "num_key_value_heads: 6, head_dim: 4, vocab_size: 32}}\n"
             "data: {batch: %d, sequence: %d, dtype: %s, seed: %d%s}\n"
             "mesh: {dp: %d, cp: %d, tp: %d}\nnames: torchtitan\npass: backward\n",
             rng_between(&f->r, 2, 4), 12 * rng_between(&f->r, 1, 2), dtype, rng_below(&f->r, 1000),
             f->sp ? ", block_input: shard(1)" : "", f->size[DP], f->size[CP], f->size[TP]);
    str_addf(&s, "context_parallel: {mode: all_gather, order: %s}\ndata_parallel: %s\n",
             orders[rng_below(&f->r, 2)], modes[rng_below(&f->r, 3)]);
    const char *way = dispatch_of(f);
    str_addf(&s, "moe: {axis: %s, fsdp_dim: %s", product(a, f->ep), dims[rng_below(&f->r, 3)]);
    if (f->etp) str_addf(&s, ", etp: %s", product(a, f->etp));
    if (way) str_addf(&s, ", dispatch: %s", way);
    str_addf(&s, "}\n%s%s", f->size[TP] > 1 ? "plan:\n" : "",
             f->sp             ? SP_LINES
             : f->size[TP] > 1 ? TP_LINES
                               : "");
    if (f->sp && configs[f->config].shared) str_addf(&s, SHARED_LINES);
    return s.s;
}
static void test_folding(void **state) {
    (void)state;
    int n = sample_of(240, "ways to fold experts into the mesh");
    for (int i = 0; i < n; i++) {
        Arena *a = arena_new();
        Fold f = draw((uint64_t)i + 1);
        const char *text = fold_text(a, &f, i % 3 ? "f64" : "f32");
        PlanRun r = plan_run(a, "fold.yaml", text, true);
        bool good = run_is(&r, "equivalent") && !r.rep.exit;
        if (!good) printf("%s", text), run_print(&r);
        if (!good) fail_msg("fold %d: equivalent expected", i + 1);
        arena_free(a);
    }
}

/* Five experts on two ranks: legal here; the systems whose names the plan has refuse it, and that
 * is said once, whoever put them there. A mesh that divides them hears nothing. */
static void test_uneven_told(void **state) {
    (void)state;
    static const struct {
        const char *plan, *says;
    } rows[] = {
        {"names: torchtitan\nplan:\n  layers.*.moe.experts: ExpertParallel\n", "torchtitan"},
        {"names: torchtitan\nmoe: {dispatch: all_gather}\n", "torchtitan"},
        {"recipe: megatron-moe\n", "Megatron core"},
        {"names: hf\nplan:\n  model.layers.*.mlp.experts.*: {style: grouped_gemm, axis: ep}\n  "
         "model.layers.*.mlp.experts: {style: ep_dispatch_experts, axis: ep}\n",
         "transformers"},
        {"names: torchtune\nplan:\n  layers.*.mlp.experts: expert_parallel\n", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int E = 4; E < 6; E++) {
            Arena *a = arena_new();
            PlanRun r = plan_good(
                a,
                arena_printf(a,
                             "model: {config: {model_type: mixtral, hidden_size: 16, "
                             "intermediate_size: 12, num_hidden_layers: 2, num_attention_heads: "
                             "4, num_key_value_heads: 4, vocab_size: 32, num_local_experts: %d}, "
                             "layers: all}\ndata: {batch: 4, sequence: 8, dtype: f64}\n"
                             "mesh: {ep: 2, tp: 1}\ngroups: {dp: ep}\n%s",
                             E, rows[i].plan),
                true);
            int told = 0;
            for (int k = 0; k < r.d->n; k++) told += !strcmp(r.d->item[k].code, "N0006");
            bool due = E == 5 && rows[i].says;
            if (told != due || (due && !run_diag(&r, "N0006", rows[i].says)))
                fail_msg("%s: told %d times", rows[i].plan, told);
            arena_free(a);
        }
}

/* ---- what a way to dispatch moves ---- */
#define MIXTRAL                                                                                    \
    "model: {config: {model_type: mixtral, hidden_size: 16, intermediate_size: 12, "               \
    "num_hidden_layers: 1, num_attention_heads: 4, num_key_value_heads: 4, vocab_size: 32, "       \
    "num_local_experts: 8, num_experts_per_tok: 2}}\n"                                             \
    "data: {batch: 4, sequence: 8, dtype: f64}\nnames: torchtitan\npass: backward\n"
static void test_ways(void **state) {
    (void)state;
    static const struct {
        const char *plan;
        int all_to_all, all_gather, reduce_scatter, all_reduce; /* forward, lists included */
    } rows[] = {
        {"mesh: {dp: 4}\nmoe: {dispatch: all_to_all, axis: dp}\n", 3, 0, 0, 0},
        {"mesh: {dp: 4}\nmoe: {dispatch: all_gather, axis: dp}\n", 0, 3, 1, 0},
        {"mesh: {tp: 4}\nmoe: {dispatch: masked, axis: tp}\n", 0, 0, 0, 1},
        {"mesh: {tp: 4}\nmoe: {etp: tp}\n", 0, 0, 0, 1},
        /* the defaults are what is called so */
        {"mesh: {ep: 4}\ngroups: {dp: ep}\nmoe: {dispatch: all_to_all}\n", 3, 0, 0, 0},
        {"mesh: {ep: 2, etp: 2}\ngroups: {dp: ep}\nmoe: {dispatch: all_to_all}\n", 3, 0, 0, 1},
        /* tokens that tp cuts too: rows are gathered and scattered over it, counts first */
        {"mesh: {dp: 2, tp: 2}\nmoe: {axis: dp, etp: tp}\nplan:\n  layers.*.ffn_norm: {style: "
         "sequence_parallel, input: replicate, desired_input: shard(1)}\n  "
         "layers.*.moe.router.gate: "
         "sequence_parallel\n",
         3, 2, 1, 0},
        /* the same of styles */
        {"mesh: {ep: 2, etp: 2}\ngroups: {dp: ep}\nplan:\n  layers.*.moe.experts: {style: "
         "expert_tensor_parallel, output: home}\n",
         3, 0, 0, 1},
        {"mesh: {ep: 2, etp: 2}\ngroups: {dp: ep}\nplan:\n  layers.*.moe.experts: {style: "
         "ExpertTensorParallel, output: {etp: replicate}}\n",
         3, 0, 0, 1},
        {"mesh: {dp: 2, tp: 2}\nplan:\n  layers.*.moe.experts: {style: expert_tensor_parallel, "
         "output: replicate}\n",
         0, 0, 0, 1},
        {"mesh: {a: 2, etp: 2}\ngroups: {dp: a}\nplan:\n  layers.*.moe.experts: {style: "
         "tensor_parallel, output: replicate}\n",
         0, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "way.yaml", arena_printf(a, MIXTRAL "%s", rows[i].plan), true);
        bool good =
            !r.rep.exit && run_is(&r, "equivalent") &&
            count_collectives(r.t, "forward", "all_to_all", NULL) == rows[i].all_to_all &&
            count_collectives(r.t, "forward", "all_gather", NULL) == rows[i].all_gather &&
            count_collectives(r.t, "forward", "all_reduce", NULL) == rows[i].all_reduce &&
            count_collectives(r.t, "forward", "reduce_scatter", NULL) == rows[i].reduce_scatter;
        if (!good) {
            run_print(&r);
            static const char *const ops[] = {"all_to_all", "all_gather", "reduce_scatter",
                                              "all_reduce"};
            for (int k = 0; r.t && k < 4; k++)
                printf("%s %d\n", ops[k], (int)count_collectives(r.t, "forward", ops[k], NULL));
            fail_msg("%s: other moves", rows[i].plan);
        }
        arena_free(a);
    }
}
/* A recipe's line for the experts gives way to the keys, its block's label stays: the sum over tp
 * is made once, at the end of the block. */
static void test_recipe_gives_way(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_good(
        a,
        "model: {preset: llama4-scout, layers: 1, shrink: 128}\n"
        "data: {batch: 2, sequence: 8, dtype: f64, block_input: shard(1)}\nmesh: {dp: 2, tp: 2}\n"
        "recipe: torchtitan-llama4\nmoe: {axis: dp, etp: tp, dispatch: all_to_all}\npass: "
        "backward\n",
        true);
    run_must_be(&r, "equivalent");
    assert_int_equal(count_collectives(r.t, "forward", "reduce_scatter", "tp"), 2);
    assert_int_equal(count_collectives(r.t, "forward", "all_reduce", NULL), 0);
    assert_string_equal(find_param(r.t, "layers.0.moe.experts.w2")->rest.symbolic,
                        "[E/ep, D, Fe/etp]");
    arena_free(a);
}

/* ---- FSDP over edp ---- */
static void test_rest(void **state) {
    (void)state;
    static const struct {
        const char *plan, *up, *down;
    } rows[] = {
        {"mesh: {edp: 2, ep: 2}\ngroups: {dp: edp*ep}\nmoe: {dispatch: all_to_all}\n",
         "[E/(ep*edp), F, D]", "[E/(ep*edp), D, F]"},
        {"mesh: {edp: 2, ep: 2}\ngroups: {dp: edp*ep}\nmoe: {dispatch: all_to_all, fsdp_dim: 1}\n",
         "[E/ep, F/edp, D]", "[E/ep, D/edp, F]"},
        {"mesh: {edp: 2, ep: 2}\ngroups: {dp: edp*ep}\nmoe: {dispatch: all_to_all, fsdp_dim: "
         "auto}\n",
         "[E/(ep*edp), F, D]", "[E/(ep*edp), D, F]"},
        {"mesh: {edp: 2, ep: 4}\ngroups: {dp: edp*ep}\nmoe: {dispatch: all_to_all, fsdp_dim: "
         "auto}\n",
         "[E/(ep*edp), F, D]", "[E/(ep*edp), D, F]"}, /* an expert for each rank */
        {"mesh: {edp: 4, ep: 4}\ngroups: {dp: edp*ep}\nmoe: {dispatch: all_to_all, fsdp_dim: "
         "auto}\n",
         "[E/ep, F/edp, D]", "[E/ep, D/edp, F]"},
        {"mesh: {edp: 2, ep: 2, etp: 2}\ngroups: {dp: edp*ep}\nmoe: {axis: ep, fsdp_dim: 1}\nplan: "
         "{layers.*.moe.experts: {style: expert_tensor_parallel, output: home}}\n",
         "[E/ep, F/(etp*edp), D]", "[E/ep, D/edp, F/etp]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a, arena_printf(a, MIXTRAL "data_parallel: {mode: fsdp}\n%s", rows[i].plan), true);
        run_must_be(&r, "equivalent");
        assert_string_equal(find_param(r.t, "layers.0.moe.experts.w1")->rest.symbolic, rows[i].up);
        assert_string_equal(find_param(r.t, "layers.0.moe.experts.w2")->rest.symbolic,
                            rows[i].down);
        assert_null(run_diag(&r, "N0006", "experts")); /* what ep cuts, FSDP does not cut again */
        arena_free(a);
    }
}

/* Gate and up behind one another in dim 1: at rest that dim is cut as one list, in each expert, and
 * gathered whole. Uneven, with experts that no axis divides, cut inside, in units, and with the
 * update of a training step on the parts. */
static void test_packed_rest(void **state) {
    (void)state;
    static const struct {
        const char *rest, *up;
    } rows[] = {
        {"mesh: {edp: 2, ep: 2}\ngroups: {dp: edp*ep}\nmoe: {dispatch: all_to_all, fsdp_dim: 1}\n",
         "[E/ep, (2*F)/edp, D]"},
        {"mesh: {edp: 4, ep: 2}\ngroups: {dp: edp*ep}\nmoe: {dispatch: all_gather, fsdp_dim: "
         "auto}\n",
         "[E/ep, (2*F)/edp, D]"},
        {"mesh: {edp: 3, ep: 1, etp: 2}\ngroups: {dp: edp*ep}\nmoe: {axis: ep, etp: etp, fsdp_dim: "
         "1}\n",
         "[E/ep, 2*F/(etp*edp), D]"},
        {"mesh: {rep: 2, edp: 2}\ngroups: {dp: rep*edp}\nmoe: {axis: rep, fsdp_dim: 1}\n",
         "[E/ep, (2*F)/edp, D]"},
    };
    static const char *const modes[] = {"fsdp", "{mode: fsdp, unit: block}",
                                        "{mode: fsdp, reshard: false}"},
                             *const passes[] = {
                                 "pass: backward\n",
                                 "pass: train\noptimizer: {name: adamw, lr: 0.01, steps: 2}\n"
                                 "data: {batch: 12, sequence: 4, dtype: f32, "
                                 "microbatches: 2}\n"};
    for (int i = 0; i < 4 * 3 * 2; i++) {
        Arena *a = arena_new();
        const char *data = i % 2 ? "" : "data: {batch: 12, sequence: 4, dtype: f64}\n";
        PlanRun r = plan_good(
            a,
            arena_printf(a,
                         "model: {layers: all, config: {model_type: mixtral, hidden_size: 12, "
                         "intermediate_size: 7, num_hidden_layers: 1, num_attention_heads: 4, "
                         "num_key_value_heads: 2, head_dim: 4, vocab_size: 29, "
                         "num_local_experts: 5, num_experts_per_tok: 2}}\nnames: hf\n%s%s%s"
                         "data_parallel: %s\n",
                         data, passes[i % 2], rows[i / 6].rest, modes[i / 2 % 3]),
            true);
        run_must_be(&r, "equivalent");
        const TraceParam *up = find_param(r.t, "model.layers.0.mlp.experts.gate_up_proj");
        assert_string_equal(up->rest.symbolic, rows[i / 6].up);
        arena_free(a);
    }
}

/* Taken for a cut inside gate and up while it goes through them: rank 0 has all gates. */
static void test_packed_as_one(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run(
        a, "one.yaml",
        "model: {preset: mixtral-8x7b, layers: 1, shrink: 128}\nmesh: {tp: 2}\nnames: hf\n"
        "trust: declared\ndata: {batch: 2, sequence: 8, dtype: f64}\nplan:\n"
        "  model.layers.*.mlp.experts: moe_tp_experts\n  model.layers.*.mlp.experts.gate_up_proj: "
        "{style: packed_colwise, weight: contiguous(1)}\n"
        "  model.layers.*.mlp.experts.down_proj: rowwise\n",
        true);
    assert_true(run_is(&r, "different"));
    assert_string_equal(r.t->first_wrong, "model.layers.0.mlp.experts.gate_up_proj");
    const Diag *said = run_diag(&r, "W0401", "lies as [E, (2*F)/tp, D] but is taken for");
    assert_non_null(said);
    assert_non_null(strstr(said->hint, "{weight: {tp: shard(1)}}")); /* stored dims, not letters */
    arena_free(a);
}

/* ---- what contradicts ---- */
static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *plan, *code, *says;
    } rows[] = {
        {"mesh: {dp: 2}\nmoe: {dispatch: masked, axis: dp}\n", "E0215", "different tokens"},
        {"mesh: {tp: 2}\nmoe: {dispatch: all_to_all, axis: tp}\n", "E0215", "2 times"},
        {"mesh: {tp: 2}\nmoe: {dispatch: all_gather, axis: tp}\n", "E0215", "2 times"},
        {"mesh: {dp: 2, tp: 3}\nmoe: {dispatch: all_to_all, axis: dp*tp}\n", "E0215", "3 times"},
        {"mesh: {dp: 2}\nmoe: {dispatch: all_gather, axis: dp}\nplan: {layers.*.moe.experts: "
         "expert_parallel}\n",
         "E0215", "different things"},
        {"mesh: {dp: 2, tp: 2}\nmoe: {axis: dp}\nplan: {layers.*.moe.experts: {axis: tp, weight: "
         "shard(0)}}\n",
         "E0215", "cut there over tp"},
        {"mesh: {dp: 2, tp: 2}\nmoe: {axis: dp, etp: tp}\nplan: {layers.*.moe.experts: "
         "expert_parallel}\n",
         "E0215", "over nothing"},
        {"mesh: {dp: 2, ep: 2}\nmoe: {axis: dp}\n", "E0215", "an axis"},
        {"mesh: {dp: 2, tp: 2}\ngroups: {ep: tp}\nmoe: {axis: dp}\n", "E0215", "which is tp"},
        {"mesh: {dp: 2, tp: 2}\nmoe: {axis: dp*tp, etp: tp}\n", "E0405", "axis 'tp'"},
        {"mesh: {dp: 2}\nmoe: {dispatch: all_to_all}\n", "E0208", "`ep`"},
        {"mesh: {dp: 2}\nmoe: {axis: pd}\n", "E0204", "'pd'"},
        {"mesh: {dp: 2}\nmoe: {axis: dp*dp}\n", "E0407", "twice"},
        {"mesh: {dp: 2}\nmoe: {axis: dp, dispatch: alltoall}\n", "E0206", "alltoall"},
        {"mesh: {dp: 2}\nmoe: {fsdp_dim: 2}\n", "E0206", "'2'"},
        {"mesh: {dp: 2}\nplan: {layers.*.moe.experts: expert_parallel}\n", "E0204", "'ep'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "bad.yaml", arena_printf(a, MIXTRAL "%s", rows[i].plan), false);
        if (!run_diag(&r, rows[i].code, rows[i].says)) {
            run_print(&r);
            fail_msg("%s: %s saying '%s'", rows[i].plan, rows[i].code, rows[i].says);
        }
        arena_free(a);
    }
    Arena *a = arena_new();
    static const char dense[] = "model: {preset: llama3-8b, shrink: 64}\nmesh: {dp: 2}\n"
                                "data: {batch: 2, sequence: 8}\nmoe: {axis: dp}\n";
    PlanRun r = plan_run(a, "dense.yaml", dense, false);
    assert_true(run_has(&r, "E0208"));
    arena_free(a);
}

/* ---- Hugging Face's styles ---- */
#define HF_MODEL                                                                                   \
    "model: {preset: %s, layers: 2, shrink: 128, parts: [embedding, blocks, norm, head, loss]}\n"  \
    "data: {batch: %d, sequence: 6, dtype: f64}\nmesh: {tp: 2}\nnames: hf\npass: backward\n"       \
    "trust: %s\nplan:\n  model.embed_tokens: embedding_rowwise\n  lm_head: "                       \
    "colwise_gather_output\n"                                                                      \
    "  model.layers.*.self_attn.[qkv]_proj: {style: colwise, boundary: per_module}\n"              \
    "  model.layers.*.self_attn.o_proj: rowwise\n%s"
#define HF_NORMS "  model.layers.*.self_attn.[qk]_norm: replicated_with_grad_allreduce\n"
#define HF_TP                                                                                      \
    "  model.layers.*.mlp.experts: moe_tp_experts\n"                                               \
    "  model.layers.*.mlp.experts.gate_up_proj: packed_colwise\n"                                  \
    "  model.layers.*.mlp.experts.down_proj: rowwise\n"
#define HF_EP                                                                                      \
    "  model.layers.*.mlp.experts: ep_dispatch_experts\n"                                          \
    "  model.layers.*.mlp.experts.gate_up_proj: grouped_gemm\n"                                    \
    "  model.layers.*.mlp.experts.down_proj: grouped_gemm\n"
#define HF_MASKED                                                                                  \
    "  model.layers.*.mlp.gate: ep_router\n  model.layers.*.mlp.experts: moe_tp_experts\n"         \
    "  model.layers.*.mlp.experts.*: grouped_gemm\n"
/* Collectives of transformers 5.23, per rank (../shared/golden/plans/runs: Mixtral.tp2, .tp2ep2 and
 * Qwen3Moe's): one all-to-all of counts, of rows there and back in each of two layers. The masked
 * form is that of the versions before. Each is complete under trust: declared too. */
static void test_hugging_face(void **state) {
    (void)state;
    enum { OPS = 3 };
    static const char *const ops[OPS] = {"all_reduce", "all_to_all", "all_gather"};
    static const struct {
        const char *name, *preset, *lines;
        int forward[OPS], backward[OPS];
    } rows[] = {
        {"Mixtral TP", "mixtral-8x7b", HF_TP, {5, 0, 1}, {11, 0, 0}},
        {"Mixtral EP", "mixtral-8x7b", HF_EP, {3, 6, 3}, {7, 4, 4}},
        {"Mixtral EP, masked", "mixtral-8x7b", HF_MASKED, {5, 0, 1}, {11, 0, 0}},
        {"Qwen3 EP", "qwen3-30b-a3b", HF_NORMS HF_EP, {3, 6, 3}, {7, 4, 4}},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(a, HF_MODEL, rows[i / 2].preset, i % 2 ? 1 : 2,
                                        i % 2 ? "declared" : "rules", rows[i / 2].lines);
        PlanRun r = plan_run(a, "hf.yaml", text, true);
        bool good = !r.rep.exit && run_is(&r, "equivalent");
        for (int k = 0; good && k < OPS; k++)
            good = count_collectives(r.t, "forward", ops[k], "tp") == rows[i / 2].forward[k] &&
                   count_collectives(r.t, "backward", ops[k], "tp") == rows[i / 2].backward[k];
        if (good) {
            arena_free(a);
            continue;
        }
        run_print(&r);
        for (int k = 0; r.t && k < OPS; k++)
            printf("%s %d %d\n", ops[k], (int)count_collectives(r.t, "forward", ops[k], "tp"),
                   (int)count_collectives(r.t, "backward", ops[k], "tp"));
        fail_msg("%s", rows[i / 2].name);
    }
}

/* ---- torchtitan's reorderer ---- */
#define TITAN                                                                                      \
    "model: {preset: llama4-scout, layers: 1, shrink: 128}\n"                                      \
    "data: {batch: %d, sequence: 8, dtype: f64, block_input: shard(1)}\nmesh: {dp: 2, tp: 2}\n"    \
    "recipe: torchtitan-llama4\nmoe: {axis: dp*tp, dispatch: all_to_all}\npass: backward\n"        \
    "trust: %s\nplan:\n  layers.*.moe.reorderer: %s\n%s"
#define SUMMED                                                                                     \
    "  layers.*.moe.router.gate: replicated_with_grad_allreduce\n"                                 \
    "  layers.*.moe: {style: prepare_module_input_output, input: [shard(1)], desired_input: "      \
    "[varying_use], use_local_input: true, output: partial, desired_output: shard(1)}\n"
/* The part of the tokens that a rank handles: whole sequences, or parts of one. As torchtitan 0.2.2
 * has it the forward pass is right and the router's gradient is labelled whole and is partial, and
 * that of the input with it (../shared/golden/moe/styles, tp2_ep4_etp1): under rules the two sums
 * are inferred and told with the lines that declare them. */
static void test_reorderer(void **state) {
    (void)state;
    static const char plain[] = "reorderer_sequence_parallel",
                      summed[] = "{style: ReordererSequenceParallel, desired_input: [null, "
                                 "varying_use]}";
    for (int batch = 2; batch <= 4; batch += 2) { /* of a rank: 1 and 2 */
        Arena *a = arena_new();
        PlanRun r = plan_good(a, arena_printf(a, TITAN, batch, "rules", plain, ""), true);
        run_must_be(&r, "equivalent");
        assert_int_equal(count_collectives(r.t, "forward", "all_to_all", NULL), 3);
        assert_non_null(run_diag(&r, "N0008", "[null, varying_use]"));
        assert_non_null(run_diag(&r, "N0008", "say varying_use"));
        r = plan_run(a, "r.yaml", arena_printf(a, TITAN, batch, "declared", plain, ""), true);
        assert_true(run_is(&r, "different"));
        assert_string_equal(r.t->first_wrong, "grad.layers.0.post_attn_norm");
        for (int i = 0; i < r.t->n_checks; i++) {
            const TraceCheck *c = &r.t->checks[i];
            bool ok = !strncmp(c->value, "grad.", 5) || c->verdict[0] != 'F';
            if (!ok) fail_msg("%s is wrong", c->value);
        }
        r = plan_good(a, arena_printf(a, TITAN, batch, "declared", summed, SUMMED), true);
        run_must_be(&r, "equivalent");
        assert_false(run_has(&r, "N0008"));
        arena_free(a);
    }
    Arena *a = arena_new(); /* three sequences in two parts: no cut of a dim */
    PlanRun r = plan_run(a, "r.yaml", arena_printf(a, TITAN, 6, "rules", plain, ""), false);
    assert_non_null(run_diag(&r, "E0214", "`shard(t)`"));
    plan_good(a, arena_printf(a, TITAN, 6, "rules", "{output: shard(t)}", ""), true);
    arena_free(a);
}

/* ---- recipes ---- */
static void test_recipes(void **state) {
    (void)state;
    static const char deepseek[] =
        "config: {model_type: deepseek_v3, hidden_size: 16, intermediate_size: 20, "
        "moe_intermediate_size: 6, num_hidden_layers: 2, num_attention_heads: 4, "
        "num_key_value_heads: 4, n_routed_experts: 8, num_experts_per_tok: 3, n_group: 4, "
        "topk_group: 2, n_shared_experts: 2, first_k_dense_replace: 1, q_lora_rank: null, "
        "kv_lora_rank: 5, qk_nope_head_dim: 4, qk_rope_head_dim: 2, v_head_dim: 3, vocab_size: 32}",
                      mixtral[] = "preset: mixtral-8x7b, shrink: 128, layers: 1",
                      qwen[] = "preset: qwen3-30b-a3b, shrink: 64, layers: 1";
    static const struct {
        const char *model, *recipe, *rest;
        int all_to_all; /* of rows, forward */
    } rows[] = {
        {mixtral, "megatron-moe", "mesh: {dp: 2, tp: 2}\nmoe: {axis: dp, etp: tp}\n", 2},
        {mixtral, "megatron-moe", "mesh: {dp: 2, tp: 2}\ngroups: {ep: dp}\n", 2},
        {mixtral, "megatron-moe", "mesh: {edp: 2, ep: 2, tp: 2}\ngroups: {dp: edp*ep}\n", 2},
        {mixtral, "megatron-moe", "mesh: {dp: 2, tp: 2}\nmoe: {axis: dp*tp}\n", 2},
        {qwen, "megatron-moe", "mesh: {dp: 2, cp: 2, tp: 2}\nmoe: {axis: cp*tp}\n", 2},
        {qwen, "hf-moe-ep", "mesh: {tp: 2}\n", 2},
        {mixtral, "hf-moe-ep", "mesh: {dp: 2, tp: 2}\n", 2},
        {mixtral, "hf-mixtral", "mesh: {dp: 2, tp: 2}\n", 0},
        {deepseek, "megatron-moe", "mesh: {dp: 2, tp: 2}\nmoe: {axis: dp, etp: tp}\n", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        bool parts = strncmp(rows[i].model, "config", 6) != 0;
        const char *text = arena_printf(
            a,
            "model: {%s%s, parts: [embedding, blocks, norm, head, loss]}\n"
            "data: {batch: 4, sequence: 8, dtype: f64}\nrecipe: %s\npass: backward\n%s",
            rows[i].model, parts ? "" : ", layers: all", rows[i].recipe, rows[i].rest);
        PlanRun r = plan_run(a, "recipe.yaml", text, true);
        bool good = !r.rep.exit && run_is(&r, "equivalent");
        int rows_sent = 0;
        for (int k = 0; good && k < r.t->n_collectives; k++)
            rows_sent += r.t->collectives[k].pass == PHASE_FORWARD &&
                         !strcmp(r.t->collectives[k].op, "all_to_all") &&
                         !strstr(r.t->collectives[k].value, ".moe.list");
        if (!good || rows_sent != rows[i].all_to_all) {
            run_print(&r);
            fail_msg("%s with %s: %d exchanges of rows", rows[i].recipe, rows[i].rest, rows_sent);
        }
        arena_free(a);
    }
}

/* Experts cut inside by half: where the line of the first weights or that of the second is missing,
 * rows of another width meet the weights. A plan that needs somebody to cut them is not simply
 * right, and taken at its word it is wrong. */
static void test_half_cut(void **state) {
    (void)state;
    static const char *const trust[] = {"rules", "declared"};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(
            a, "half.yaml",
            arena_printf(
                a,
                "model: {parts: [blocks], config: {model_type: mixtral, hidden_size: 12, "
                "intermediate_size: 24, num_hidden_layers: 1, num_attention_heads: 4, "
                "num_key_value_heads: 2, head_dim: 6, vocab_size: 37, num_local_experts: 6, "
                "num_experts_per_tok: 2}}\ndata: {batch: 2, sequence: 8, dtype: f32}\n"
                "mesh: {tp: 2}\nnames: hf\ntrust: %s\nplan:\n"
                "  model.layers.*.mlp.experts: moe_tp_experts\n"
                "  model.layers.*.mlp.experts.down_proj: rowwise\n",
                trust[i]),
            true);
        assert_non_null(r.t);
        run_must_be(&r, i ? "different" : "equivalent");
        if (i) assert_string_equal(r.t->first_wrong, "layers.0.moe.act");
        else assert_int_equal(r.t->n_unasked, 1);
        arena_free(a);
    }
}
/* How often the list travels under that mesh. */
static int list_moves(const char *mesh, const char *moe) {
    Arena *a = arena_new();
    int n = 0;
    PlanRun r = plan_good(
        a,
        arena_printf(a,
                     "model: {layers: all, config: {model_type: mixtral, hidden_size: 8, "
                     "intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 4, "
                     "num_key_value_heads: 4, head_dim: 4, vocab_size: 16, num_local_experts: 8, "
                     "num_experts_per_tok: 2}}\ndata: {batch: 8, sequence: 16, dtype: f64}\n"
                     "mesh: %s\nnames: torchtitan\npass: backward\nmoe: {%s}\n"
                     "data_parallel: {mode: ddp}\n",
                     mesh, moe),
        false);
    for (int c = 0; c < r.t->n_collectives; c++) {
        const char *value = r.t->collectives[c].value;
        n += strstr(value, ".moe.list") || strstr(value, ".moe.kept");
    }
    arena_free(a);
    return n;
}
/* Axes of one rank say where things lie, and nothing moves for them: the index list travels as
 * often as in the plan that does not have them. */
static void test_axes_of_one(void **state) {
    (void)state;
    static const struct {
        const char *with, *moe, *without, *moe_without;
    } rows[] = {
        {"{dp: 2, cp: 1}", "axis: dp, etp: cp", "{dp: 2}", "axis: dp"},
        {"{cp: 1, dp: 2}", "axis: dp*cp", "{dp: 2}", "axis: dp"},
        {"{dp: 2, cp: 1, tp: 1}", "axis: dp, etp: tp", "{dp: 2}", "axis: dp"},
        {"{tp: 1, cp: 1, dp: 2}", "axis: tp*dp, etp: cp", "{dp: 2}", "axis: dp"},
        {"{tp: 2, dp: 2, cp: 1}", "axis: tp*dp, etp: cp", "{tp: 2, dp: 2}", "axis: tp*dp"},
        {"{tp: 1, dp: 2, cp: 2}", "axis: dp*cp, etp: tp", "{dp: 2, cp: 2}", "axis: dp*cp"},
        {"{tp: 1, dp: 2, cp: 2}", "axis: dp, etp: tp, capacity_factor: 0.7", "{dp: 2, cp: 2}",
         "axis: dp, capacity_factor: 0.7"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int with = list_moves(rows[i].with, rows[i].moe),
            without = list_moves(rows[i].without, rows[i].moe_without);
        assert_true(without > 0);
        if (with != without)
            fail_msg("%s, %s: %d, without axes of one rank %d", rows[i].with, rows[i].moe, with,
                     without);
    }
}
/* torchtune's training plan for Llama 4 leaves the shared expert out: as many times too much as tp
 * has ranks, and every other line of the report looks right. */
static void test_shared_counted(void **state) {
    (void)state;
    for (int tp = 2; tp <= 4; tp += 2) {
        Arena *a = arena_new();
        size_t n;
        const char *file = "plans/bugs/46-shared-expert-counted-on-every-rank.yaml",
                   *text = file_read(a, diags_new(a), file, 1 << 20, (Loc){0}, &n),
                   *at = text ? strstr(text, "mesh: {tp: 4}") : NULL;
        assert_non_null(at);
        text = arena_printf(a, "%.*smesh: {tp: %d}%s", (int)(at - text), text, tp, at + 13);
        PlanRun r = plan_run(a, file, text, true);
        assert_true(run_is(&r, "different"));
        assert_int_equal(count_collectives(r.t, "forward", "all_gather", "tp"), 2);
        assert_int_equal(count_collectives(r.t, "forward", "reduce_scatter", "tp"), 2);
        assert_string_equal(r.t->first_wrong, "layers.0.moe.shared.down");
        const char *cause = NULL;
        for (int i = 0; i < r.t->n_checks && !cause; i++)
            if (r.t->checks[i].level && r.t->checks[i].verdict[0] == 'F')
                cause = r.t->checks[i].cause;
        assert_non_null(cause);
        assert_non_null(strstr(cause, arena_printf(a, "counts it %d times", tp)));
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folding),          cmocka_unit_test(test_ways),
        cmocka_unit_test(test_recipe_gives_way), cmocka_unit_test(test_rest),
        cmocka_unit_test(test_refused),          cmocka_unit_test(test_hugging_face),
        cmocka_unit_test(test_reorderer),        cmocka_unit_test(test_shared_counted),
        cmocka_unit_test(test_recipes),          cmocka_unit_test(test_half_cut),
        cmocka_unit_test(test_axes_of_one),      cmocka_unit_test(test_packed_rest),
        cmocka_unit_test(test_packed_as_one),    cmocka_unit_test(test_uneven_told),
    };
    return cmocka_run_group_tests_name("experts", tests, NULL, NULL);
}
