/* Latent attention (DeepSeek-V3) and Llama 4's attention: values and gradients against Hugging Face
 * transformers in float64, every plan family on those weights forward and backward in f64 and f32,
 * what each way to write the plan costs in collectives, and the rotations with YaRN. */
#include "model/model.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- against the framework ---- */

/* A recorded model; `from`, `to`: its layers that are dense. */
typedef struct {
    const char *name;
    int from, to;
    bool whole;             /* embedding, final norm, head and loss too, and gradients */
    bool shared_set;        /* only in the complete set of golden values */
    const char *values[24]; /* of each of those layers: must be in the file and equal */
} Case;
#define LATENT                                                                                     \
    "kv_a_proj", "kv_a_norm", "kv_b_proj", "q_rope", "k_rope", "v_attn", "attn_context", "o_proj", \
        "mlp.act", "output"
#define HEADS "v_proj", "q_rope", "k_rope", "attn_context", "o_proj", "mlp.act", "output"
static const Case cases[] = {
    {"deepseek-dense", 0, 2, true, false, {"q_a_proj", "q_a_norm", "q_b_proj", LATENT}},
    {"deepseek-dense-yarn", 0, 2, true, false, {LATENT}},
    {"llama4-dense", 0, 3, true, false, {HEADS, "q_norm", "k_norm"}},
    {"deepseek-v3", 0, 1, false, true, {"q_a_proj", "q_a_norm", "q_b_proj", "q_attn", LATENT}},
    {"deepseek-v3-yarn", 0, 1, false, true, {"q_proj", "q_attn", "k_attn", LATENT}},
    {"llama4-interleaved", 0, 1, false, true, {HEADS, "q_proj", "k_proj", "attn_probs"}},
    {"llama4-interleaved", 2, 3, false, true, {HEADS, "q_proj", "k_proj", "attn_probs"}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* How scores are made: left out, or in two parts. */
static const char JOINT[] = "", APART[] = ", scores: parts";
static const char *model_text(Arena *a, const Case *c, const char *config, const char *dtype,
                              const char *scores) {
    return arena_printf(a,
                        "model: {hf_config: %s, weights: %s, layers: [%d, %d], parts: [%s]%s}\n"
                        "data: {dtype: %s, inputs: %s}\nnames: hf\n",
                        golden_path(a, "hf/%s/%s", c->name, config),
                        golden_path(a, "hf/%s/model.safetensors", c->name), c->from,
                        c->whole && !strcmp(c->name, "llama4-dense") ? 4 : c->to,
                        c->whole ? "embedding, blocks, norm, head, loss" : "blocks", scores, dtype,
                        golden_path(a, "hf/%s/values.safetensors", c->name));
}
static const struct AgainstRow *row_of(const PlanRun *r, const char *name) {
    for (int i = 0; i < r->rep.n_against; i++)
        if (!strcmp(r->rep.against[i].name, name) && !r->rep.against[i].missing_there)
            return &r->rep.against[i];
    return NULL;
}
/* Every row of the file that the model has is equal: values to 1e-11, gradients to 1e-10. */
static void hold_rows(const PlanRun *r, const Case *c, int *values, int *gradients) {
    for (int i = 0; i < r->rep.n_against; i++) {
        const struct AgainstRow *x = &r->rep.against[i];
        if (x->missing_there || x->missing_here) continue;
        bool grad = !strncmp(x->name, "grad.", 5);
        if (!x->ok || !(x->max_rel <= (grad ? 1e-10 : 1e-11)))
            fail_msg("%s: %s differs (%.3g)", c->name, x->name, x->max_rel);
        *(grad ? gradients : values) += 1;
    }
}
static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), k = strlen(end);
    return n >= k && !strcmp(name + n - k, end);
}
static void hold_case(const Case *c, const char *config, const char *scores) {
    Arena *a = arena_new();
    const char *file = golden_path(a, "hf/%s/values.safetensors", c->name);
    const char *text =
        arena_printf(a, "%smesh: {tp: 1}\n%s", model_text(a, c, config, "f64", scores),
                     c->whole ? "pass: backward\n" : "");
    PipelineOptions o = {.execute = true, .threads = 1, .against = file};
    PlanRun r = plan_run_with(a, "latent.yaml", text, &o);
    if (!r.t || r.rep.exit) run_print(&r);
    assert_true(!r.rep.exit && run_is(&r, "equivalent"));
    int values = 0, gradients = 0;
    hold_rows(&r, c, &values, &gradients);
    for (int l = c->from; l < c->to; l++)
        for (int k = 0; k < 24 && c->values[k]; k++) {
            const char *name = arena_printf(a, "layers.%d.%s", l, c->values[k]);
            if (scores == APART && (ends_in(name, ".q_attn") || ends_in(name, ".k_attn"))) continue;
            if (!row_of(&r, name)) fail_msg("%s: %s is not in the file", c->name, name);
        }
    if (c->whole) {
        assert_true(row_of(&r, "loss_mean")->ok && row_of(&r, "final_norm")->ok);
        assert_int_equal(gradients, r.t->n_params);
    }
    printf("%-20s %-15s layers %d..%d: %d values, %d gradients equal\n", c->name, config, c->from,
           c->to - 1, values, gradients);
    arena_free(a);
}
static void test_framework(void **state) {
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        if (cases[c].shared_set && !golden_complete()) {
            printf("%s: only in the complete set of golden values, not compared\n", cases[c].name);
            continue;
        }
        hold_case(&cases[c], "config.json", JOINT);
        hold_case(&cases[c], "config_v4.json", JOINT);
        if (!strncmp(cases[c].name, "deepseek", 8)) hold_case(&cases[c], "config.json", APART);
    }
}
/* YaRN's ramp between pairs: transformers 5 (modeling_rope_utils) gives these for heads of 64, base
 * 10,000, 4,096 positions, factor 40, beta 32 and 1; with the ends of the ramp as whole pairs, and
 * as they are. */
static void test_ramp(void **state) {
    (void)state;
    static const struct {
        int pair;
        double whole, as_is;
    } rows[] = {{9, 0.0749894157, 0.0749894157},     {10, 0.0562341288, 0.0562341288},
                {11, 0.0390069261, 0.0403675847},    {16, 0.00550000044, 0.00552406255},
                {22, 0.00017782794, 0.000118387645}, {23, 3.3338034e-05, 3.3338034e-05}};
    Arena *a = arena_new();
    for (int truncate = 0; truncate < 2; truncate++) {
        ModelDims m = {.turned = 64,
                       .rope_type = "yarn",
                       .rope_base = 10000,
                       .rope_factor = 40,
                       .rope_old_ctx = 4096,
                       .yarn = {.fast = 32, .slow = 1, .truncate = truncate}};
        const double *f = model_inv_freq(a, &m);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            double want = truncate ? rows[i].whole : rows[i].as_is;
            assert_true(fabs(f[rows[i].pair] - want) < 1e-6 * want);
        }
    }
    arena_free(a);
}
/* Layer 3 of the Llama 4 model: no rotation, queries scaled by their position. Which layers these
 * are says a list, or where that is empty every so many-th. */
static void hold_temperature(const char *config) {
    Arena *a = arena_new();
    const char *file = golden_path(a, "hf/llama4-dense/values.safetensors");
    const char *text =
        arena_printf(a, "model: {config: {%s}, %smesh: {tp: 1}\n", config,
                     model_text(a, &cases[2], "config.json", "f64", JOINT) + strlen("model: {"));
    PipelineOptions o = {.execute = true, .threads = 1, .against = file};
    PlanRun r = plan_run_with(a, "latent.yaml", text, &o);
    static const char *const values[] = {"q_attn", "attn_context", "output"};
    for (int k = 0; k < 3; k++) {
        const struct AgainstRow *x = row_of(&r, arena_printf(a, "layers.3.%s", values[k]));
        assert_true(x && x->ok && !x->missing_here);
    }
    for (int i = 0; i < r.t->n_values; i++)
        assert_string_not_equal(r.t->values[i].shape.name, "layers.3.q_rope");
    arena_free(a);
}
static void test_temperature(void **state) {
    (void)state;
    hold_temperature("no_rope_layers: [1, 1, 1, 0]");
    hold_temperature("no_rope_layers: [], no_rope_layer_interval: 4");
}
/* Each feature matters: a config that lacks it does not give the recorded values. */
static void test_features_matter(void **state) {
    (void)state;
    static const struct {
        int model;
        const char *without, *first; /* keys over those of the config; a value that must differ */
    } features[] = {
        {2, "use_qk_norm: false", "layers.0.attn_context"},
        {2, "attention_chunk_size: null", "layers.0.attn_context"},
        {2, "attn_temperature_tuning: false", "layers.3.attn_context"},
        {2, "floor_scale: 9", "layers.3.attn_context"},
        {2, "no_rope_layers: [1, 1, 0, 1]", "layers.2.attn_context"},
        {0, "rope_interleave: false", "layers.0.attn_context"},
        {1, "rope_scaling: {mscale: 0.9}", "layers.0.q_rope"},
        {1, "rope_scaling: {mscale_all_dim: 0.8}", "layers.0.q_rope"},
        {1, "rope_scaling: {beta_slow: 0.1}", "layers.0.q_rope"},
        {1, "rope_scaling: {factor: 5}", "layers.0.q_rope"},
    };
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        Arena *a = arena_new();
        const Case *c = &cases[features[i].model];
        const char *text = model_text(a, c, "config.json", "f64", JOINT);
        text = arena_printf(a, "model: {config: {%s}, %s\nmesh: {tp: 1}\n", features[i].without,
                            text + strlen("model: {"));
        PipelineOptions o = {.execute = true,
                             .threads = 1,
                             .against = golden_path(a, "hf/%s/values.safetensors", c->name)};
        PlanRun r = plan_run_with(a, "latent.yaml", text, &o);
        const struct AgainstRow *x = row_of(&r, features[i].first);
        if (!x || x->ok) run_print(&r);
        if (!x || x->ok) fail_msg("%s changes nothing", features[i].without);
        arena_free(a);
    }
}

/* ---- plan families, forward and backward ---- */
#define FFN(name, out)                                                                             \
    "  model.layers.*." name ".gate_proj: colwise\n  model.layers.*." name ".up_proj: colwise\n"   \
    "  model.layers.*." name ".down_proj: {style: rowwise" out "}\n"
#define SP_NORMS(name)                                                                             \
    "  model.layers.*.input_layernorm: sequence_parallel\n"                                        \
    "  model.layers.*.post_attention_layernorm: sequence_parallel\n"                               \
    "  model.layers.*." name ": {style: prepare_module_input, input: [shard(1)], desired_input: "  \
    "[replicate]}\n"
#define SHARDED ", output: shard(1)"
#define INPUT(label, wanted)                                                                       \
    "  model.layers.*.self_attn: {style: prepare_module_input, input: [" label                     \
    "], desired_input: [" wanted "]}\n"
#define UP "  model.layers.*.self_attn.*_b_proj: colwise\n"
#define OUT(out) "  model.layers.*.self_attn.o_proj: {style: rowwise" out "}\n"
#define DOWN "  model.layers.*.self_attn.[qk]*_a_*: replicated_with_grad_allreduce\n"
#define KEY                                                                                        \
    "  model.layers.*.self_attn.k_cat: {style: prepare_module_input, input: [null, replicate], "   \
    "desired_input: [null, "                                                                       \
    "varying_use]}\n"
/* the same where scores have two parts: the fourth operand of attention */
#define KEY_APART                                                                                  \
    "  model.layers.*.self_attn.core: {style: prepare_module_input, input: [null, null, null, "    \
    "replicate], desired_input: [null, null, null, varying_use]}\n"
static const char latent_tp[] = UP KEY OUT("") FFN("mlp", "");
static const char latent_sp[] = UP OUT(SHARDED)
DOWN INPUT("shard(1)", "replicate") FFN("mlp", SHARDED) SP_NORMS("mlp");
static const char yarn_tp[] =
    "  model.layers.*.self_attn.q_proj: colwise\n" UP KEY OUT("") FFN("mlp", "");
static const char yarn_sp[] = "  model.layers.*.self_attn.q_proj: colwise\n" UP OUT(SHARDED)
DOWN INPUT("shard(1)", "replicate") FFN("mlp", SHARDED) SP_NORMS("mlp");
static const char llama4_tp[] =
    "  model.layers.*.self_attn.[qkv]_proj: colwise\n" OUT("") FFN("feed_forward", "");
static const char llama4_sp[] = "  model.layers.*.self_attn.[qkv]_proj: colwise\n" OUT(SHARDED)
    INPUT("shard(1)", "replicate") FFN("feed_forward", SHARDED) SP_NORMS("feed_forward");
static const char apart_tp[] = UP KEY_APART OUT("") FFN("mlp", "");
static const char yarn_apart_tp[] =
    "  model.layers.*.self_attn.q_proj: colwise\n" UP KEY_APART OUT("") FFN("mlp", "");
/* The models whose plans stand here, and how their scores are made. */
static const struct {
    int model;
    const char *scores, *style[2]; /* of a plan without and with sequence parallelism */
} own[] = {{0, JOINT, {latent_tp, latent_sp}},
           {1, JOINT, {yarn_tp, yarn_sp}},
           {2, JOINT, {llama4_tp, llama4_sp}},
           {0, APART, {apart_tp, latent_sp}},
           {1, APART, {yarn_apart_tp, yarn_sp}}};
enum { N_OWN = sizeof own / sizeof *own };
static const char *const ends[2] = {
    "  model.embed_tokens: rowwise\n  lm_head: colwise\n  loss: loss_parallel\n",
    "  model.embed_tokens: {style: rowwise, output: shard(1)}\n  model.norm: sequence_parallel\n"
    "  lm_head: {style: colwise, input: shard(1)}\n  loss: loss_parallel\n"};

static const struct {
    const char *name, *mesh, *extra;
    int style; /* -1 none, 0 TP, 1 TP + SP */
} families[] = {
    {"TP", "{tp: 2}", "", 0},
    {"TP 4", "{tp: 4}", "", 0},
    {"TP + SP", "{tp: 2}", "", 1},
    {"cp2 zigzag", "{cp: 2, tp: 2}", "context_parallel: {mode: all_gather, order: zigzag}\n", 0},
    {"dp2 cp2 zigzag TP + SP", "{dp: 2, cp: 2, tp: 2}",
     "context_parallel: {mode: all_gather, order: zigzag}\n", 1},
    {"FSDP", "{dp: 2}", "data_parallel: {mode: fsdp, axis: dp}\n", -1},
    {"FSDP dp2 cp2 TP + SP", "{dp: 2, cp: 2, tp: 2}", "data_parallel: {mode: fsdp, axis: dp*cp}\n",
     1},
    {"FSDP TP, recompute", "{dp: 2, tp: 2}",
     "data_parallel: {mode: fsdp, axis: dp}\nrecompute: block\n", 0},
};
static void run_family(int which, size_t f, const char *dtype) {
    Arena *a = arena_new();
    int c = own[which].model;
    int style = families[f].style;
    bool llama4_tp4 = c == 2 && !strcmp(families[f].name, "TP 4"); /* 10 heads */
    const char *text =
        arena_printf(a, "%smesh: %s\n%spass: backward\n%s%s%s",
                     model_text(a, &cases[c], "config.json", dtype, own[which].scores),
                     families[f].mesh, families[f].extra, style < 0 ? "" : "plan:\n",
                     style < 0 ? "" : own[which].style[style], style < 0 ? "" : ends[style]);
    bool f64 = !strcmp(dtype, "f64");
    PipelineOptions o = {.execute = true,
                         .threads = 1,
                         .against = f64 ? golden_path(a, "hf/%s/values.safetensors", cases[c].name)
                                        : NULL};
    PlanRun r = plan_run_with(a, "latent.yaml", text, &o);
    if (llama4_tp4) {
        assert_true(run_has(&r, "E0303"));
        arena_free(a);
        return;
    }
    if (!r.t || r.rep.exit) printf("%s\n", text), run_print(&r);
    assert_true(!r.rep.exit && run_is(&r, "equivalent") && !r.t->n_fail);
    int values = 0, gradients = 0;
    hold_rows(&r, &cases[c], &values, &gradients);
    assert_true(!f64 || gradients == r.t->n_params);
    assert_true(!f64 || r.rep.end_to_end_rel < 1e-9);
    arena_free(a);
}
static void test_families(void **state) {
    (void)state;
    int n = sample_of((int)(sizeof families / sizeof *families), "families");
    for (int c = 0; c < N_OWN; c++)
        for (int f = 0; f < n; f++) {
            run_family(c, (size_t)f, "f64");
            run_family(c, (size_t)f, "f32");
        }
}

/* ---- what it costs ---- */
#define PLAN_OF(scores, lines)                                                                     \
    "model: {preset: deepseek-v3, layers: 1" scores                                                \
    "}\ndata: {batch: 2, sequence: 64, dtype: f32}\n"                                              \
    "names: hf\nmesh: {tp: 4}\ngroups: {sp: tp}\npass: backward\nplan:\n" lines
#define PLAN(lines) PLAN_OF("", lines)
#define PLAN_APART(lines) PLAN_OF(", scores: parts", lines)
/* Collectives over tp of one layer: those of the dense MLP (one all-reduce each way, or a gather
 * and a scatter) are counted with it. `sent`: what the attention's backward reductions take in,
 * elements per token. `undeclared`: notes of sums that no line makes. */
static const struct {
    const char *what, *text;
    int forward_ar, forward_ag, forward_rs, backward_ar, backward_ag, backward_rs, gradients_ar;
    int64_t reduced;
    int undeclared;
} costs[] = {
    {"nothing declared on the input", PLAN(UP OUT("") FFN("mlp", "")), 2, 0, 0, 4, 0, 0, 0,
     1536 + 512 + 64, 1},
    {"the sum of the shared key's gradient declared where heads read it",
     PLAN(UP KEY OUT("") FFN("mlp", "")), 2, 0, 0, 4, 0, 0, 0, 1536 + 512 + 64, 0},
    {"the low-rank key and value's sum declared where they are made",
     PLAN(UP OUT("")
              FFN("mlp", "") "  model.layers.*.self_attn.kv_a_proj_with_mqa: {style: replicate, "
                             "output: varying_use}\n  model.layers.*.self_attn.kv_a_layernorm: "
                             "replicated_with_grad_allreduce\n"),
     2, 0, 0, 3, 0, 0, 1, 1536 + 576, 0},
    {"input with uses that differ",
     PLAN(UP OUT("") DOWN INPUT("replicate", "replicate") FFN("mlp", "")), 2, 0, 0, 2, 0, 0, 4,
     7168, 0},
    {"two-part scores, nothing declared on the input", PLAN_APART(UP OUT("") FFN("mlp", "")), 2, 0,
     0, 4, 0, 0, 0, 1536 + 512 + 64, 1},
    {"two-part scores, the sum of the shared key's gradient declared where scores are made",
     PLAN_APART(UP KEY_APART OUT("") FFN("mlp", "")), 2, 0, 0, 4, 0, 0, 0, 1536 + 512 + 64, 0},
    {"two-part scores, input with uses that differ",
     PLAN_APART(UP OUT("") DOWN INPUT("replicate", "replicate") FFN("mlp", "")), 2, 0, 0, 2, 0, 0,
     4, 7168, 0},
    {"two-part scores, SP, input gathered for uses that differ",
     PLAN_APART(UP OUT(SHARDED) DOWN INPUT("shard(1)", "replicate") FFN("mlp", SHARDED)
                    SP_NORMS("mlp")),
     0, 2, 2, 0, 2, 2, 6, 7168, 0},
    {"SP, nothing declared",
     PLAN("  model.layers.*.self_attn.*_b_proj: {style: colwise, input: shard(1), desired_input: "
          "replicate}\n" OUT(SHARDED) DOWN FFN("mlp", SHARDED) SP_NORMS("mlp")),
     0, 4, 2, 0, 2, 4, 6, 1536 + 512 + 64, 0},
    {"SP, input gathered for uses that differ",
     PLAN(UP OUT(SHARDED) DOWN INPUT("shard(1)", "replicate") FFN("mlp", SHARDED) SP_NORMS("mlp")),
     0, 2, 2, 0, 2, 2, 6, 7168, 0},
    {"SP, input gathered for equal uses",
     PLAN(UP OUT(SHARDED) INPUT("shard(1)", "invariant") FFN("mlp", SHARDED) SP_NORMS("mlp")), 0, 2,
     2, 3, 2, 1, 2, 1536 + 512 + 64, 1},
};
/* Elements per token that the backward reductions of the attention's values take in. */
static int64_t reduced_elements(const Trace *t) {
    int64_t bytes = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        bool reduces = !strcmp(c->op, "all_reduce") || !strcmp(c->op, "reduce_scatter");
        if (c->pass == PHASE_BACKWARD && reduces && !strstr(c->value, "post_attn_norm"))
            bytes += c->bytes_in;
    }
    return bytes / (2 * 64 * 4);
}
static void test_costs(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "latent.yaml", costs[i].text, false);
        if (!r.t || diags_errors(r.d)) run_print(&r);
        assert_true(r.t && !diags_errors(r.d));
        const Trace *t = r.t;
#define COUNT(pass, op) (int)count_collectives(t, pass, op, NULL)
        int have[] = {COUNT("forward", "all_reduce"),     COUNT("forward", "all_gather"),
                      COUNT("forward", "reduce_scatter"), COUNT("backward", "all_reduce"),
                      COUNT("backward", "all_gather"),    COUNT("backward", "reduce_scatter"),
                      COUNT("gradients", "all_reduce")};
        const int want[] = {costs[i].forward_ar,  costs[i].forward_ag,  costs[i].forward_rs,
                            costs[i].backward_ar, costs[i].backward_ag, costs[i].backward_rs,
                            costs[i].gradients_ar};
        for (int k = 0; k < 7; k++)
            if (have[k] != want[k])
                fail_msg("%s: count %d is %d, not %d", costs[i].what, k, have[k], want[k]);
        assert_int_equal(reduced_elements(t), costs[i].reduced);
        assert_int_equal(run_has(&r, "N0008"), costs[i].undeclared > 0);
        arena_free(a);
    }
}
/* What context parallelism gathers: joined keys and values, or keys in their parts. The forward
 * gathers over cp, and what they bring together of keys and values, per token. */
static void test_gathers(void **state) {
    (void)state;
    static const struct {
        const char *scores, *gathered[4]; /* in no order; NULL: no more */
    } rows[] = {{JOINT, {"layers.0.k_attn", "layers.0.v_attn"}},
                {APART, {"layers.0.k_nope", "layers.0.k_rope", "layers.0.v_attn"}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(
            a, "latent.yaml",
            arena_printf(a,
                         "model: {preset: deepseek-v3, layers: 1, shrink: 64%s}\ndata: {batch: 2, "
                         "sequence: 16, dtype: f64}\nnames: hf\nmesh: {cp: 2, tp: 2}\npass: "
                         "backward\ncontext_parallel: {mode: all_gather, order: zigzag}\nplan:\n%s",
                         rows[i].scores, UP OUT("") FFN("mlp", "")),
            true);
        if (!run_is(&r, "equivalent")) run_print(&r);
        assert_true(run_is(&r, "equivalent"));
        int found = 0, all = 0;
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *c = &r.t->collectives[k];
            if (c->pass != PHASE_FORWARD || strcmp(c->op, "all_gather")) continue;
            all++;
            for (int g = 0; g < 4 && rows[i].gathered[g]; g++)
                found += !strcmp(c->value, rows[i].gathered[g]);
        }
        assert_int_equal(all, i ? 3 : 2);
        assert_int_equal(found, all);
        arena_free(a);
    }
}
/* The gradient of the key that heads share is a sum over tp; left out, it is found there. */
static void test_shared_key(void **state) {
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        Arena *a = arena_new();
        const char *model = model_text(a, &cases[0], "config.json", "f64", apart ? APART : JOINT);
        const char *text = arena_printf(a,
                                        "%smesh: {tp: 2}\npass: backward\nfaults: [{at: all_reduce "
                                        "of grad.layers.1.k_rope, do: drop}]\nplan:\n%s%s",
                                        model, apart ? apart_tp : latent_tp, ends[0]);
        PlanRun r = plan_run(a, "latent.yaml", text, true);
        assert_non_null(r.t);
        run_must_be(&r, "different");
        assert_string_equal(r.t->first_wrong, "grad.layers.1.k_rope");
        arena_free(a);
    }
}
/* Dense layers, layers with experts and both together. */
static void test_presets(void **state) {
    (void)state;
    static const char *const models[] = {"{preset: deepseek-v3, layers: 3}",
                                         "{preset: deepseek-v3, layers: 4}",
                                         "{preset: deepseek-v3, layers: [3, 4]}",
                                         "llama4-maverick",
                                         "{preset: llama4-maverick, layers: [2, 3]}",
                                         "{preset: llama4-maverick, layers: 2}",
                                         "llama4-scout"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "latent.yaml",
                             arena_printf(a, "model: %s\nmesh: {tp: 1}\n", models[i]), false);
        assert_true(r.t && !diags_errors(r.d));
        arena_free(a);
    }
    /* semantics: 187,107,328 parameters of a layer's attention */
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "latent.yaml", "model: deepseek-v3\nmesh: {tp: 1}\n", false);
    int64_t n = 0;
    for (int i = 0; i < r.t->n_params; i++) {
        if (!strstr(r.t->params[i].compute.name, "attention.")) continue;
        int64_t k = 1;
        for (int d = 0; d < r.t->params[i].compute.nd; d++)
            k *= r.t->params[i].compute.global_shape[d];
        n += k;
    }
    assert_int_equal(n, 187107328);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_framework),   cmocka_unit_test(test_ramp),
        cmocka_unit_test(test_temperature), cmocka_unit_test(test_features_matter),
        cmocka_unit_test(test_families),    cmocka_unit_test(test_costs),
        cmocka_unit_test(test_gathers),     cmocka_unit_test(test_shared_key),
        cmocka_unit_test(test_presets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
