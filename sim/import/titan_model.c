/* What torchtitan's registries and its parallelize_* functions say of each model, as data. The
 * lines are those of the recipe `torchtitan-llama4`; what other models do otherwise is a table
 * here. */
#include "import/titan_model.h"
#include "import/modules.h"
#include <string.h>
#include <strings.h>

enum { YARN_TOKENS = 4096 };

#define HEADS(d, h, k, hd, l, v)                                                                   \
    "hidden_size: " #d ", num_attention_heads: " #h ", num_key_value_heads: " #k                   \
    ", head_dim: " #hd ", num_hidden_layers: " #l ", vocab_size: " #v
#define LLAMA4(d, h, k, hd, l, v, fe, f, e, step)                                                  \
    "model_type: llama4_text, " HEADS(                                                             \
        d, h, k, hd, l,                                                                            \
        v) ", intermediate_size: " #fe ", intermediate_size_mlp: " #f ", num_local_experts: " #e   \
           ", num_experts_per_tok: 1"                                                              \
           ", interleave_moe_layer_step: " #step ", rms_norm_eps: 1.0e-5, rope_theta: 5.0e5"       \
           ", use_qk_norm: false, attn_temperature_tuning: false, attention_chunk_size: "
#define LLAMA4_ROPE                                                                                \
    ", rope_scaling: {rope_type: llama3, factor: 16.0, low_freq_factor: 1.0"                       \
    ", high_freq_factor: 1.0, original_max_position_embeddings: 8192}"
#define SCOUT LLAMA4(5120, 40, 8, 128, 48, 202048, 8192, 16384, 16, 1)
#define MAVERICK LLAMA4(5120, 40, 8, 128, 48, 202048, 8192, 16384, 128, 2)
#define SMALL4 LLAMA4(256, 16, 16, 16, 6, 2048, 512, 768, 8, 2)
#define OF_SCOUT                                                                                   \
    .layers = 48, .hidden = 5120, .head_dim = 128, .heads = 40, .kv_heads = 8, .experts = 16,      \
    .shared = true, .says_rotations = true
#define OF_MAVERICK                                                                                \
    .layers = 48, .hidden = 5120, .head_dim = 128, .heads = 40, .kv_heads = 8, .ffn = 16384,       \
    .experts = 128, .first_experts = 1, .shared = true, .says_rotations = true
#define OF_SMALL4                                                                                  \
    .layers = 6, .hidden = 256, .head_dim = 16, .heads = 16, .kv_heads = 16, .ffn = 768,           \
    .experts = 8, .first_experts = 1, .shared = true, .says_rotations = true
/* q_lora_rank 0: queries in one step. Softmax of all experts, the chosen not made to add up to 1.
 */
#define LATENT(d, h, l, v, f, fe, dense, e, k, shared)                                             \
    "model_type: deepseek_v3, hidden_size: " #d ", num_attention_heads: " #h                       \
    ", num_key_value_heads: " #h ", num_hidden_layers: " #l ", vocab_size: " #v                    \
    ", intermediate_size: " #f ", moe_intermediate_size: " #fe ", first_k_dense_replace: " #dense  \
    ", n_routed_experts: " #e ", num_experts_per_tok: " #k ", n_shared_experts: " #shared          \
    ", kv_lora_rank: 512, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128"            \
    ", rms_norm_eps: 1.0e-5, rope_theta: 1.0e4"
#define SOFTMAX ", q_lora_rank: null, router: qwen3_moe, norm_topk_prob: false"
#define SMALL_LATENT LATENT(256, 16, 6, 2048, 1024, 256, 1, 8, 3, 2) SOFTMAX
#define OF_SMALL_LATENT                                                                            \
    .layers = 6, .hidden = 256, .head_dim = 192, .heads = 16, .kv_heads = 16, .ffn = 1024,         \
    .experts = 8, .first_experts = 1, .shared = true, .yarn = 0.7, .attention = TITAN_LATENT
#define QWEN3                                                                                      \
    .more = ", rope: half", .no_pipeline = true, .ep_alone = true, .attention = TITAN_NORMED_HEADS
#define HALVES                                                                                     \
    "hidden_size: 256, intermediate_size: 3072, num_attention_heads: 16, num_key_value_heads: 8, " \
    "head_dim: 128, num_hidden_layers: 8, vocab_size: 2048, rms_norm_eps: 1.0e-6, "                \
    "rope_theta: 1.0e6, "
#define OF_HALVES .layers = 8, .hidden = 256, .head_dim = 128, .heads = 16, .kv_heads = 8

/* The Llama 3 of torchtitan is Llama 3.1. */
static const TitanFlavor flavors[] = {
    {"llama3", "8B", .preset = "llama3.1-8b"},
    {"llama3", "70B", .preset = "llama3.1-70b"},
    {"llama3", "405B", .preset = "llama3.1-405b"},
    {"llama3", "debugmodel", .more = ", rope: interleaved", .layers = 6,
     .config = "hidden_size: 256, intermediate_size: 768, num_attention_heads: 16, "
               "num_key_value_heads: 16, num_hidden_layers: 6, vocab_size: 2048, "
               "rms_norm_eps: 1.0e-5, rope_theta: 500000.0"},
    {"llama4", "17bx16e", .config = SCOUT "8192" LLAMA4_ROPE, OF_SCOUT},
    {"llama4", "17bx128e", .config = MAVERICK "8192", OF_MAVERICK},
    {"llama4", "debugmodel", .config = SMALL4 "8192" LLAMA4_ROPE, OF_SMALL4},
    {"llama4", "17bx16e_irope", .config = SCOUT "8192" LLAMA4_ROPE, OF_SCOUT, .unrotated_every = 4,
     .flex = true},
    {"llama4", "17bx128e_irope", .config = MAVERICK "8192", OF_MAVERICK, .unrotated_every = 4,
     .flex = true},
    {"llama4", "debugmodel_irope", .config = SMALL4 "256" LLAMA4_ROPE, OF_SMALL4,
     .unrotated_every = 4, .flex = true},
    {"deepseek_v3", "671B",
     .config = LATENT(7168, 128, 61, 129280, 18432, 2048, 3, 256, 8, 1) ", q_lora_rank: 1536",
     .layers = 61, .hidden = 7168, .head_dim = 192, .heads = 128, .kv_heads = 128, .ffn = 18432,
     .experts = 256, .first_experts = 3, .shared = true, .bias = true, .yarn = 1, .flex = true,
     .attention = TITAN_LATENT},
    {"deepseek_v3", "16B", .config = LATENT(2048, 16, 27, 102400, 10944, 1408, 1, 64, 6, 2) SOFTMAX,
     .layers = 27, .hidden = 2048, .head_dim = 192, .heads = 16, .kv_heads = 16, .ffn = 10944,
     .experts = 64, .first_experts = 1, .shared = true, .yarn = 0.7, .flex = true,
     .attention = TITAN_LATENT},
    {"deepseek_v3", "236B", .lacks = "its router takes groups of a softmax"},
    {"deepseek_v3", "debugmodel", .config = SMALL_LATENT, OF_SMALL_LATENT},
    {"deepseek_v3", "debugmodel_flex_attn", .config = SMALL_LATENT, OF_SMALL_LATENT, .flex = true},
    {"qwen3", "0.6B", .preset = "qwen3-0.6b", QWEN3},
    {"qwen3", "1.7B", .preset = "qwen3-1.7b", QWEN3},
    {"qwen3", "4B", .preset = "qwen3-4b", QWEN3},
    {"qwen3", "8B", .preset = "qwen3-8b", QWEN3},
    {"qwen3", "14B", .preset = "qwen3-14b", QWEN3},
    {"qwen3", "32B", .preset = "qwen3-32b", QWEN3},
    {"qwen3", "30B-A3B", .preset = "qwen3-30b-a3b", QWEN3, .experts = 128},
    {"qwen3", "235B-A22B", .preset = "qwen3-235b-a22b", QWEN3, .experts = 128},
    {"qwen3", "debugmodel", .config = HALVES "model_type: qwen3, tie_word_embeddings: true",
     OF_HALVES, .ffn = 3072, QWEN3},
    {"qwen3", "debugmodel_moe",
     .config = HALVES "model_type: qwen3_moe, num_experts: 64, num_experts_per_tok: 8, "
                      "moe_intermediate_size: 768, norm_topk_prob: true",
     OF_HALVES, QWEN3, .experts = 64},
};
enum { N_FLAVORS = sizeof flavors / sizeof *flavors };

const TitanFlavor *titan_flavor(Draft *x, const char *model, Loc model_loc, const char *flavor,
                                Loc flavor_loc) {
    const char *names[N_FLAVORS + 1] = {0}, *models[N_FLAVORS + 1] = {0};
    const TitanFlavor *any = NULL;
    Str known = str_new(x->a);
    int n = 0, m = 0;
    for (int i = 0; i < N_FLAVORS; i++) {
        if (!m || strcmp(models[m - 1], flavors[i].model) != 0) models[m++] = flavors[i].model;
        if (strcmp(flavors[i].model, model) != 0) continue;
        if (strcmp(flavors[i].flavor, flavor) == 0) return &flavors[i];
        str_addf(&known, "%s%s", n ? ", " : "", flavors[i].flavor);
        names[n++] = flavors[i].flavor;
        any = &flavors[i];
    }
    if (!any) {
        Str all = str_new(x->a);
        for (int i = 0; i < m; i++) str_addf(&all, "%s\"%s\"", i ? ", " : "name = ", models[i]);
        diag_error(x->d, "E0214", model_loc, all.s,
                   "torchtitan's plan of '%s': not supported by this version", model);
    } else if (!x->in->model && !x->in->config) {
        const char *near = diag_nearest(flavor, names);
        diag_error(x->d, "E0206", flavor_loc,
                   near ? near
                        : arena_printf(x->a, "%s; or --model PRESET, --config FILE", known.s),
                   "flavor '%s' of %s is not known here", flavor, model);
    }
    return any;
}

const TitanFlavor *titan_preset(const char *preset) {
    for (int i = 0; i < N_FLAVORS; i++)
        if (flavors[i].preset && strcmp(flavors[i].preset, preset) == 0) return &flavors[i];
    return NULL;
}

/* ---- schedules ---- */
static const TitanSchedule schedules[] = {
    {"1F1B", "1f1b", true},
    {"GPipe", "gpipe", true},
    {"Interleaved1F1B", "interleaved", false},
    {"LoopedBFS", "looped-bfs", false},
    {"InterleavedZeroBubble", "interleaved-zb", false},
    {"ZBVZeroBubble", "zb-v", false},
    {"DualPipeV", "dualpipe-v", false},
};
enum { N_SCHEDULES = sizeof schedules / sizeof *schedules };
const TitanSchedule *titan_schedule(Arena *a, const char *name, const char ***names) {
    *names = ARENA_ARRAY(a, const char *, N_SCHEDULES + 1);
    for (int i = 0; i < N_SCHEDULES; i++) {
        (*names)[i] = schedules[i].name;
        if (strcasecmp(schedules[i].name, name) == 0) return &schedules[i];
    }
    (*names)[N_SCHEDULES] = NULL;
    return NULL;
}
const TitanSchedule *titan_schedule_of(const char *schedule) {
    for (int i = 0; i < N_SCHEDULES; i++)
        if (strcmp(schedules[i].schedule, schedule) == 0) return &schedules[i];
    return NULL;
}

/* ---- its sizes ---- */
static const char *rotations(Draft *x, const TitanFlavor *f) {
    Str s = str_new(x->a);
    if (!f->says_rotations) return "";
    str_add(&s, ", no_rope_layers: [");
    for (int i = 0; i < f->layers; i++)
        str_addf(&s, "%s%d", i ? ", " : "", !f->unrotated_every || i % f->unrotated_every != 0);
    str_add(&s, "]");
    return s.s;
}
static const char *yarn(Draft *x, const TitanFlavor *f, int64_t sequence) {
    if (f->yarn == 0 || sequence <= YARN_TOKENS) return "";
    return arena_printf(x->a,
                        ", rope_scaling: {rope_type: yarn, factor: 40.0, beta_fast: 32, beta_slow: "
                        "1, mscale: %g, mscale_all_dim: %g, original_max_position_embeddings: %d}",
                        f->yarn, f->yarn, (int)YARN_TOKENS);
}
void titan_write_model(Draft *x, const TitanFlavor *f, int64_t sequence) {
    if (f->lacks) {
        diag_error(x->d, "E0214", x->model_loc, "--model PRESET, or --config FILE",
                   "flavor '%s' of %s: not supported by this version: %s", f->flavor, f->model,
                   f->lacks);
        return;
    }
    if (f->preset) {
        draft_preset(x, f->preset);
        x->model_keys = f->more;
    } else {
        x->n_layers = f->layers, x->hidden = f->hidden, x->head_dim = f->head_dim;
        x->heads = f->heads, x->kv_heads = f->kv_heads, x->ffn = f->ffn;
        x->model_keys = arena_printf(x->a, "config: {%s%s%s}%s", f->config, rotations(x, f),
                                     yarn(x, f, sequence), f->more ? f->more : "");
    }
    if (f->first_experts && !x->in->full) x->layers = f->first_experts + 1;
    if (f->experts && !f->bias)
        draft_remark(x, "the bias that torchtitan adds to scores when it chooses experts "
                        "(load_balance_coeff) begins at 0: it is left out");
}

/* ---- lines ---- */
typedef struct {
    const char *pattern, *style;
} Line;
/* Its input, and where queries and keys stay DTensors the frequencies beside it. */
#define FREQUENCIES                                                                                \
    {                                                                                              \
        "layers.*.attention", "{style: prepare_module_input, input: [shard(1), replicate], "       \
                              "desired_input: [replicate, replicate]}"                             \
    }
/* Queries, keys and values, by the kind of attention. */
static const Line
    heads[] = {{"layers.*.attention", "{style: prepare_module_input, input: [shard(1)], "
                                      "desired_input: [replicate]}"},
               {"layers.*.attention.w[qkv]", "colwise"},
               {NULL, NULL}},
    normed[] = {FREQUENCIES,
                {"layers.*.attention.w[qkv]", "{style: colwise, use_local_output: false}"},
                {"layers.*.attention.[qk]_norm",
                 "{style: sequence_parallel, input: shard(2), desired_input: "
                 "shard(2), output: shard(2)}"},
                {NULL, NULL}},
    latent[] = {FREQUENCIES,
                {"layers.*.attention.wkv_a", "{style: no_parallel, use_local_output: false}"},
                {"layers.*.attention.wkv_b", "{style: colwise, use_local_output: false}"},
                {"layers.*.attention.kv_norm", "{style: no_parallel, use_local_output: false}"},
                {NULL, NULL}},
    short_queries[] = {{"layers.*.attention.wq_a", "{style: no_parallel, use_local_output: false}"},
                       {"layers.*.attention.wq_b", "{style: colwise, use_local_output: false}"},
                       {"layers.*.attention.q_norm",
                        "{style: no_parallel, use_local_output: false}"},
                       {NULL, NULL}},
    whole_queries[] = {{"layers.*.attention.wq", "{style: colwise, use_local_output: false}"},
                       {NULL, NULL}};
/* g: what the model of the command line has; NULL: the flavor says it. */
static void add(Draft *x, const Graph *g, const char *pattern, Loc loc, const char *style) {
    if (!g || draft_has(g, pattern)) draft_line(x, pattern, loc, style, loc, NULL);
}
static void add_all(Draft *x, const Graph *g, const Line *l) {
    for (; l->pattern; l++) add(x, g, l->pattern, (Loc){0}, l->style);
}
static void attention(Draft *x, const Graph *g, const TitanFlavor *f) {
    add_all(x, g,
            f->attention == TITAN_LATENT         ? latent
            : f->attention == TITAN_NORMED_HEADS ? normed
                                                 : heads);
    if (f->attention != TITAN_LATENT) return;
    bool whole =
        g ? draft_has(g, whole_queries->pattern) : strstr(f->config, "q_lora_rank: null") != NULL;
    add_all(x, g, whole ? whole_queries : short_queries);
}
static bool begins(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }
/* Does the recipe's line stand in the plan of this model as it is? `all`: whatever it has. */
static bool as_recipe(const TitanFlavor *f, const char *pattern, bool all) {
    static const char *const own[] = {"layers.*.attention", "layers.*.attention.w[qkv]",
                                      "layers.*.moe.experts", "output", "loss"};
    for (int i = 0; i < 5; i++)
        if (strcmp(own[i], pattern) == 0) return false;
    if (all) return true;
    if (begins(pattern, "layers.*.feed_forward")) return !f->experts || f->first_experts > 0;
    if (begins(pattern, "layers.*.moe.shared_experts")) return f->shared;
    return !begins(pattern, "layers.*.moe") || f->experts > 0;
}
static void tensor_parallel(Draft *x, const Graph *g, const TitanFlavor *f, bool loss_parallel) {
    const Loc at = {0}; /* lines of torchtitan's code, not of the file */
    int n;
    const RecipeRow *all = plan_recipes(&n);
    const char *text = "";
    for (int i = 0; i < n; i++)
        if (strcmp(all[i].name, "torchtitan-llama4") == 0) text = all[i].lines;
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        size_t name = strcspn(p, ":"), whole = strcspn(p, "\n");
        const char *pattern = arena_strndup(x->a, p, name);
        if (as_recipe(f, pattern, g != NULL))
            add(x, g, pattern, at, arena_strndup(x->a, p + name + 2, whole - name - 2));
    }
    attention(x, g, f);
    add(x, NULL, "output", at,
        loss_parallel
            ? "{style: colwise, input: shard(1), output: shard(-1), use_local_output: false}"
            : "{style: colwise, input: shard(1), output: replicate}");
    if (loss_parallel) add(x, NULL, "loss", at, "loss_parallel");
}
void titan_write_lines(Draft *x, const TitanFlavor *f, const TitanDegrees *d) {
    const char *experts = "layers.*.moe.experts";
    bool given = x->in->model || x->in->config;
    const Graph *g = given ? draft_modules(x, NAMES_TORCHTITAN) : NULL;
    if (d->tp > 1) tensor_parallel(x, g, f, d->loss_parallel);
    if (!(g ? draft_has(g, experts) : f->experts > 0) || (d->tp == 1 && d->ep == 1)) return;
    if (d->ep > 1 && d->tp > 1 && d->etp == 1)
        add(x, g, "layers.*.moe.reorderer", d->ep_loc, "reorderer_sequence_parallel");
    add(x, g, experts, d->ep > 1 ? d->ep_loc : (Loc){0},
        d->ep == 1    ? "tensor_parallel"
        : d->etp == 1 ? "{style: expert_parallel, axis: ep, output: home}"
                      : "{style: expert_tensor_parallel, weight: {ep: shard(e), etp: shard(w)}}");
    /* what its labels say is done, and no more: a router's gradient that is labelled whole is taken
     * for whole where it is a part */
    if (d->tp > 1) draft_key(x, "trust", "declared", (Loc){0}, NULL);
}
