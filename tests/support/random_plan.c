/* Random legal plans, first part: mesh, model, data, pass and everything else that is not a line of
 * `plan`. Sizes are small, with primes among them; every axis on its own cuts the batch, the
 * sequence, or is free for the plan's lines. */
#include "random_plan.h"
#include "model/model.h"
#include "schedule/schedule.h"
#include <string.h>

uint64_t rng_next(Rng *r) {
    uint64_t z = (r->s += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
int rng_below(Rng *r, int n) { return (int)(rng_next(r) % (uint64_t)n); }
int rng_between(Rng *r, int lo, int hi) { return lo + rng_below(r, hi - lo + 1); }
bool rng_chance(Rng *r, int percent) { return rng_below(r, 100) < percent; }

#define CHANCE(percent) rng_chance(&g->r, percent)
#define ONE_OF(list) (list)[rng_below(&g->r, (int)(sizeof(list) / sizeof(list)[0]))]
#define ADD(...) str_addf(&g->s, __VA_ARGS__)

/* ---- mesh ---- */
static int count_role(const RandomPlan *g, AxisRole role) {
    int n = 0;
    for (int i = 0; i < g->n_axes; i++) n += g->role[i] == role;
    return n;
}
int random_free_axes(const RandomPlan *g, int *out) {
    int n = 0;
    for (int i = 0; i < g->n_axes; i++)
        if (g->role[i] == AXIS_FREE) out[n++] = i;
    return n;
}
static int64_t role_size(const RandomPlan *g, AxisRole role) {
    int64_t n = 1;
    for (int i = 0; i < g->n_axes; i++)
        if (g->role[i] == role) n *= g->size[i];
    return n;
}
static void draw_mesh(RandomPlan *g) {
    int ranks;
    do {
        g->n_axes = rng_between(&g->r, 1, RANDOM_MAX_AXES);
        ranks = 1;
        for (int i = 0; i < g->n_axes; i++) ranks *= g->size[i] = rng_between(&g->r, 1, 4);
    } while (ranks > 16);
    for (int i = 0; i < g->n_axes; i++) {
        static const char *const plain[] = {"a", "b", "c"};
        int x = rng_below(&g->r, 100);
        g->role[i] = x < 25                            ? AXIS_BATCH
                     : x < 45 && g->form != RANDOM_MLP ? AXIS_SEQUENCE
                                                       : AXIS_FREE;
        g->axis[i] = plain[i];
    }
    /* names that say by themselves what an axis cuts: dp, dp_*, cp; and tp, the default of the
     * styles */
    g->conventional = CHANCE(35) && count_role(g, AXIS_SEQUENCE) <= 1;
    static const char *const dp[] = {"dp", "dp_in", "dp_out"};
    for (int i = 0, n = 0; g->conventional && i < g->n_axes; i++) {
        if (g->role[i] == AXIS_BATCH) g->axis[i] = dp[n++];
        if (g->role[i] == AXIS_SEQUENCE) g->axis[i] = "cp";
        if (g->role[i] == AXIS_FREE && count_role(g, AXIS_FREE) == 1) g->axis[i] = "tp";
    }
    int f[RANDOM_MAX_AXES], n = random_free_axes(g, f);
    g->tp = n ? "tp" : NULL;
}
/* A product of the axes of a role, "a*c" or [a, c]. */
static void product(RandomPlan *g, const int *axes, int n) {
    bool list = n > 1 && CHANCE(30);
    if (list) ADD("[");
    for (int i = 0; i < n; i++) ADD("%s%s", i ? list ? ", " : "*" : "", g->axis[axes[i]]);
    if (list) ADD("]");
}
static int axes_of(const RandomPlan *g, AxisRole role, int *out) {
    int n = 0;
    for (int i = 0; i < g->n_axes; i++)
        if (g->role[i] == role) out[n++] = i;
    return n;
}
/* How attention sees the cut sequence, and over which axes; from draws of its own. */
static void context_mode(RandomPlan *g, uint64_t seed, const int *s, int ns) {
    Rng own = {seed * 0x9e3779b97f4a7c15u + 17};
    static const char *const ways[] = {"",
                                       ", backward: chain",
                                       ", backward: final",
                                       ", keep_kv: false",
                                       ", keep_kv: true",
                                       ", rfa: true",
                                       ", rfa: false",
                                       ", backward: chain, rfa: true"};
    const char *way = ways[rng_below(&own, 8)];
    int64_t heads = g->K * g->G; /* fewer than ranks would be refused */
    int x = rng_below(&own, 100);
    if (g->attention == RANDOM_LATENT && rng_chance(&own, 40))
        ADD("latent: %s, ", rng_chance(&own, 75) ? "true" : "false");
    if (x < 30 || g->declared) {
        ADD("mode: all_gather");
    } else if (x < 50 && heads >= role_size(g, AXIS_SEQUENCE)) {
        ADD("mode: ulysses");
    } else if (ns == 2 && heads >= g->size[s[1]]) {
        ADD("mode: usp, ring: %s, ulysses: %s%s", g->axis[s[0]], g->axis[s[1]], way);
        return;
    } else if (ns == 1) {
        ADD("mode: ring%s", way);
    } else ADD("mode: all_gather");
    if (!g->conventional) ADD(", axis: ctx");
}
/* Stages on an axis of their own, where there are layers enough; from draws of its own. */
static void draw_stages(RandomPlan *g, uint64_t seed) {
    Rng own = {seed * 0x9e3779b97f4a7c15u + 23};
    int layers = g->form == RANDOM_MLP ? g->n_sizes - 1 : g->layers, ranks = 1, n;
    bool blocks = g->form == RANDOM_MLP || (g->parts & RANDOM_BLOCKS);
    const ScheduleKind *k = schedule_kinds(&n);
    if (!blocks || g->form == RANDOM_CORE || g->plain || !rng_chance(&own, 40)) return;
    for (int i = 0; i < g->n_axes; i++) ranks *= g->size[i];
    bool said = g->micro > 0; /* `data` says how many already */
    if (!said) g->micro = g->B % 2 ? g->B : 2;
    for (int i = 0; i < 20 && !g->schedule; i++) {
        ScheduleAsk ask = {k[rng_below(&own, n)].name, rng_between(&own, 1, 3),
                           rng_between(&own, 1, 2), g->micro};
        const char *fix;
        if (!strcmp(ask.name, "dualpipe")) { /* both ways: many micro-batches for few ranks */
            ask.ranks = g->B % 8 ? 2 : 4;
            if (!said) ask.parts = g->B % 4 ? g->B : 2 * ask.ranks;
        }
        bool fits = ask.ranks * ask.chunks <= layers && ranks * ask.ranks <= 24;
        if (!fits || schedule_refused(&ask, g->s.a, &fix)) continue;
        g->schedule = ask.name, g->pp = ask.ranks, g->chunks = ask.chunks, g->micro = ask.parts;
    }
}
/* One word, or one for each stage. */
static void add_recompute(RandomPlan *g, Rng *own) {
    static const char *const words[] = {"none", "block", "stage"};
    int n = rng_chance(own, 50) ? 0 : g->pp * g->chunks;
    g->by_stage = rng_chance(own, 40);
    if (!g->by_stage) return;
    ADD(", recompute: ");
    if (!n) ADD("%s", words[rng_below(own, 3)]);
    for (int i = 0; i < n; i++) ADD("%s%s", i ? ", " : "[", words[rng_below(own, 3)]);
    if (n) ADD("]");
}
static void add_stages(RandomPlan *g, uint64_t seed) {
    Rng own = {seed * 0x9e3779b97f4a7c15u + 29};
    if (!g->schedule) return;
    ADD("pipeline: {schedule: %s, microbatches: %d, chunks: %d", g->schedule, g->micro, g->chunks);
    if (rng_chance(&own, 30)) ADD(", axis: pp");
    if (rng_chance(&own, 20)) ADD(", p2p_buffers: %d", rng_between(&own, 2, 4));
    if (rng_chance(&own, 30)) ADD(", tied: %s", rng_chance(&own, 70) ? "pair" : "send");
    if (rng_chance(&own, 30) && g->layers == 2 && g->form != RANDOM_MLP)
        ADD(", stages: %s", g->pp * g->chunks == 2 ? "[[0], [1]]" : "[[0, 1]]");
    add_recompute(g, &own);
    ADD("}\n");
}
static void add_mesh(RandomPlan *g, uint64_t seed) {
    int f[RANDOM_MAX_AXES], s[RANDOM_MAX_AXES], nf = axes_of(g, AXIS_FREE, f),
                                                ns = axes_of(g, AXIS_SEQUENCE, s);
    ADD("mesh: {");
    if (g->schedule && seed % 2) ADD("pp: %d, ", g->pp);
    for (int i = 0; i < g->n_axes; i++) ADD("%s%s: %d", i ? ", " : "", g->axis[i], g->size[i]);
    if (g->schedule && seed % 2 == 0) ADD(", pp: %d", g->pp);
    ADD("}\ngroups: {");
    bool tp_group = nf && strcmp(g->axis[f[0]], "tp") != 0, ctx = ns && !g->conventional;
    if (ctx) ADD("ctx: "), product(g, s, ns), ADD(", ");
    if (tp_group) ADD("tp: "), product(g, f, nf), ADD(", ");
    if (nf && CHANCE(30)) ADD("sp: tp, ");
    if (nf && CHANCE(20)) ADD("vp: tp, ");
    ADD("}\n");
    if (!ns) return;
    static const char *const orders[] = {"contiguous", "zigzag", "zigzag", "striped"};
    const char *order = ONE_OF(orders);
    /* would be refused */
    if (!strcmp(order, "zigzag") && g->S % (2 * role_size(g, AXIS_SEQUENCE))) order = "contiguous";
    if (g->conventional && CHANCE(20)) return;
    if (g->conventional && CHANCE(30)) ADD("context_parallel: all_gather\n");
    else {
        ADD("context_parallel: {order: %s, ", order);
        context_mode(g, seed, s, ns);
        ADD("}\n");
    }
}

/* ---- model ---- */
static void add_parts(RandomPlan *g) {
    static const char *const names[] = {"embedding", "blocks", "norm", "head", "loss"};
    if (g->parts == RANDOM_BLOCKS && CHANCE(70)) return;
    ADD(", parts: [");
    for (int i = 0, n = 0; i < 5; i++)
        if (g->parts >> i & 1) ADD("%s%s", n++ ? ", " : "", names[i]);
    ADD("]");
}
static void draw_parts(RandomPlan *g) {
    int x = rng_below(&g->r, 100);
    g->parts = x < 60 ? RANDOM_BLOCKS : x < 85 ? 31 : (unsigned)rng_between(&g->r, 1, 31);
    if (g->parts == RANDOM_LOSS) g->parts |= RANDOM_BLOCKS; /* nothing to take the loss of */
    if (g->form == RANDOM_STYLED && g->sp && !(g->parts & (RANDOM_EMBEDDING | RANDOM_BLOCKS)))
        g->parts |= RANDOM_BLOCKS;
    if (g->form != RANDOM_RECIPE) return;
    if (!(g->parts & (RANDOM_EMBEDDING | RANDOM_BLOCKS))) g->parts |= RANDOM_BLOCKS;
    /* their loss is on logits that are cut */
    if (g->pass || g->parts & RANDOM_LOSS) g->parts |= RANDOM_HEAD;
}
static void add_experts_config(RandomPlan *g) {
    bool qwen = CHANCE(50);
    g->bias = g->packed = false, g->qk_norm = qwen;
    ADD("config: {model_type: %s, hidden_size: %d, intermediate_size: %d, num_hidden_layers: "
        "2, num_attention_heads: %d, num_key_value_heads: %d, vocab_size: %d, head_dim: %d, "
        "tie_word_embeddings: %s, %s: %d, num_experts_per_tok: %d",
        qwen ? "qwen3_moe" : "mixtral", g->D, g->F, g->K * g->G, g->K, g->V, g->d,
        g->tied ? "true" : "false", qwen ? "num_experts" : "num_local_experts", g->E, g->k);
    if (qwen) ADD(", moe_intermediate_size: %d", rng_between(&g->r, 3, 8));
    if (qwen && CHANCE(60)) ADD(", norm_topk_prob: %s", CHANCE(50) ? "true" : "false");
    if (CHANCE(20)) ADD(", router: %s", CHANCE(50) ? "switch" : "gshard");
    ADD("}");
}
/* DeepSeek-V3's experts: groups only where they can be made. */
static void add_deepseek_experts(RandomPlan *g) {
    int half = g->E % 2 ? 0 : g->E / 2;
    ADD(", first_k_dense_replace: 0, n_routed_experts: %d, num_experts_per_tok: %d, "
        "moe_intermediate_size: %d, n_shared_experts: %d, norm_topk_prob: %s",
        g->E, g->k, rng_between(&g->r, 3, 6), g->shared, CHANCE(70) ? "true" : "false");
    if (CHANCE(30)) ADD(", routed_scaling_factor: 1.5");
    if (half && CHANCE(70)) ADD(", n_group: 2, topk_group: %d", g->k <= half ? 1 : 2);
    else ADD(", n_group: null");
}
/* Keys of DeepSeek-V3 and Llama 4. */
static void add_family(RandomPlan *g) {
    const char *yes[] = {"false", "true"};
    bool latent = g->attention == RANDOM_LATENT;
    ADD("config: {model_type: %s, hidden_size: %d, intermediate_size: %d, num_hidden_layers: 2, "
        "num_attention_heads: %d, num_key_value_heads: %d, vocab_size: %d, "
        "tie_word_embeddings: %s, attention_bias: %s",
        latent ? "deepseek_v3" : "llama4_text", g->D, g->F, g->K * g->G, g->K, g->V, yes[g->tied],
        yes[g->bias]);
    if (g->packed) ADD(", packed_mlp: true");
    if (!latent) {
        if (g->E)
            ADD(", moe_layers: [0, 1], num_local_experts: %d, num_experts_per_tok: %d, "
                "intermediate_size_mlp: %d",
                g->E, g->k, rng_between(&g->r, 5, 8));
        else ADD(", moe_layers: []");
        ADD(", head_dim: %d, attention_chunk_size: %d, no_rope_layer_interval: 2, "
            "floor_scale: %d, use_qk_norm: %s",
            g->d, rng_between(&g->r, 2, 7), rng_between(&g->r, 1, 5), yes[CHANCE(70)]);
        if (CHANCE(30)) ADD(", attn_temperature_tuning: %s", yes[CHANCE(50)]);
        ADD("}");
        return;
    }
    if (g->E) add_deepseek_experts(g);
    else ADD(", first_k_dense_replace: 2");
    ADD(", q_lora_rank: ");
    if (g->q_rank) ADD("%d", g->q_rank);
    else ADD("null");
    ADD(", kv_lora_rank: %d, qk_nope_head_dim: %d, qk_rope_head_dim: %d, v_head_dim: %d",
        rng_between(&g->r, 3, 7), rng_between(&g->r, 2, 5), g->d, rng_between(&g->r, 2, 6));
    if (CHANCE(30)) ADD(", rope_interleave: %s", yes[CHANCE(50)]);
    if (CHANCE(50))
        ADD(", rope_scaling: {rope_type: yarn, factor: 4.0, original_max_position_embeddings: 8, "
            "beta_fast: 4, beta_slow: 1, mscale: 1.0, mscale_all_dim: 0.7}");
    ADD("}%s", g->apart ? ", scores: parts" : CHANCE(20) ? ", scores: joint" : "");
}
/* Keys that only this family has. */
static void add_own_keys(RandomPlan *g, const char *type, bool windowed) {
    if (!strcmp(type, "granite") && CHANCE(70))
        ADD(", embedding_multiplier: 2.5, residual_multiplier: 0.7, logits_scaling: 1.5, "
            "attention_multiplier: 0.4");
    if (!strcmp(type, "smollm3") && CHANCE(50)) ADD(", no_rope_layer_interval: 2");
    if (g->norms_after && CHANCE(70)) ADD(", sliding_window_pattern: %d", rng_between(&g->r, 1, 3));
    if (windowed && CHANCE(70)) ADD(", sliding_window: %d", rng_between(&g->r, 1, 9));
    else if (CHANCE(30)) ADD(", use_sliding_window: false, sliding_window: 8");
}
static void add_config(RandomPlan *g) {
    static const char *const types[] = {"llama",   "llama",     "llama",  "mistral",
                                        "qwen2",   "qwen3",     "gemma",  "granite",
                                        "smollm3", "ministral", "helium", "exaone4"};
    static const char *const acts[] = {
        "silu", "silu", "silu", "gelu", "relu", "relu2", "gelu_pytorch_tanh"};
    if (g->attention != RANDOM_HEADS) {
        add_family(g);
        return;
    }
    if (g->E) {
        add_experts_config(g);
        return;
    }
    /* gate and up as one weight are there for SiLU */
    const char *type = types[rng_below(&g->r, g->packed ? 6 : sizeof types / sizeof *types)],
               *act = g->packed ? "silu" : ONE_OF(acts);
    g->norms_after = !strcmp(type, "exaone4");
    const char *yes[] = {"false", "true"};
    ADD("config: {model_type: %s, hidden_size: %d, intermediate_size: %d, num_hidden_layers: 2, "
        "num_attention_heads: %d, vocab_size: %d",
        type, g->D, g->F, g->K * g->G, g->V);
    if (g->G > 1 || CHANCE(50)) ADD(", num_key_value_heads: %d", g->K);
    ADD(", head_dim: %d, tie_word_embeddings: %s, qk_norm: %s", g->d, yes[g->tied],
        yes[g->qk_norm]);
    if (CHANCE(60)) ADD(", hidden_act: %s", act);
    if (CHANCE(50)) ADD(", rms_norm_eps: 0.00001");
    if (g->packed) ADD(", packed_mlp: true");
    bool qwen2 = !strcmp(type, "qwen2"), mlp_bias = !strcmp(type, "llama") && g->bias,
         windowed = !strcmp(type, "ministral") || !strcmp(type, "mistral") || g->norms_after;
    if (!qwen2 && !windowed) ADD(", attention_bias: %s", yes[g->bias]);
    if (!strcmp(type, "llama")) ADD(", mlp_bias: %s", yes[mlp_bias]);
    if (CHANCE(20)) { /* one by one; packed gate and up have one together */
        static const char *const own[] = {"q_bias",    "k_bias",  "v_bias",   "o_bias",
                                          "gate_bias", "up_bias", "down_bias"};
        for (int i = 0; i < 7; i++)
            if (!g->packed || (i != 4 && i != 5)) ADD(", %s: %s", own[i], yes[CHANCE(50)]);
        g->bias = true; /* perhaps */
    }
    g->bias |= qwen2;
    add_own_keys(g, type, windowed);
    if (CHANCE(15)) ADD(", layer_types: [full_attention, full_attention]");
    if (CHANCE(15)) ADD(", max_position_embeddings: 64");
    switch (rng_below(&g->r, 6)) {
    case 0: ADD(", rope_theta: 10000.0"); break;
    case 1:
        ADD(", rope_parameters: {rope_type: default, rope_theta: 500000.0, partial_rotary_factor: "
            "1.0}");
        break;
    case 2: ADD(", rope_theta: 10000.0, rope_scaling: {type: linear, factor: 2.0}"); break;
    case 3:
        ADD(", rope_scaling: {rope_type: llama3, factor: 8.0, low_freq_factor: 1.0, "
            "high_freq_factor: 4.0, original_max_position_embeddings: 8}");
        break;
    case 4: ADD(", partial_rotary_factor: 1"); break;
    default: break;
    }
    if (CHANCE(10)) ADD(", novel_key: 3}, ignore_config: [novel_key]");
    else ADD("}");
}
static void add_layers(RandomPlan *g, int of) {
    switch (rng_below(&g->r, of > 1 ? 6 : 3)) {
    case 0: break; /* the default: the first */
    case 1: ADD(", layers: 1"); break;
    case 2: ADD(", layers: [%d, %d]", of - 1, of); break;
    case 3: ADD(", layers: all"), g->layers = of; break;
    default: ADD(", layers: 2"), g->layers = 2; break;
    }
}
/* A preset or a config from a file: their sizes are their own. */
static void add_known_model(RandomPlan *g) {
    static const char *const presets[] = {"llama3-8b", "llama3.2-1b", "qwen2-0.5b", "qwen3-0.6b",
                                          "mistral-7b-v0.3"};
    static const char *const folders[] = {"llama-gqa", "llama-odd",  "qwen2",
                                          "qwen3",     "llama-bias", "llama31-rope"};
    g->plain = true;
    g->bias = g->tied = g->packed = g->qk_norm =
        true; /* perhaps: the lines then keep to what fits every model */
    if (CHANCE(50)) {
        ADD("preset: %s, shrink: %d", ONE_OF(presets), 512 << rng_below(&g->r, 2));
        if (CHANCE(30)) add_layers(g, 12);
        return;
    }
    const char *folder = ONE_OF(folders);
    ADD("hf_config: tests/golden/hf/%s/config.json", folder);
    static const char *const weights[] = {"", ", weights: %s", ", weights: %s, weights_names: hf"};
    const char *file = arena_printf(g->s.a, "tests/golden/hf/%s/model.safetensors", folder),
               *form = ONE_OF(weights);
    const char *percent = strstr(form, "%s");
    if (percent) ADD("%.*s%s%s", (int)(percent - form), form, file, percent + 2);
    if (!strcmp(folder, "llama-odd") && CHANCE(60))
        g->inputs = "tests/golden/hf/llama-odd/values.safetensors", g->B = 2, g->S = 20;
    if (CHANCE(30)) ADD(", layers: 1");
}
/* Attention by itself. */
static void add_core(RandomPlan *g) {
    ADD("model: {kind: attention, heads: %d, head_dim: %d", g->K * g->G, g->d);
    if (g->G > 1 || CHANCE(50)) ADD(", kv_heads: %d", g->K);
    if (CHANCE(70)) ADD(", mask: %s", CHANCE(60) ? "causal" : "none");
    ADD("}\n");
}
static void add_model(RandomPlan *g) {
    if (g->form == RANDOM_CORE) {
        add_core(g);
        return;
    }
    ADD("model: {");
    if (g->form == RANDOM_MLP && CHANCE(12)) { /* weights of a file that holds more than them */
        ADD("kind: mlp, sizes: [10, 32, 5], weights: {file: "
            "tests/golden/toy/sgd-sum/values.safetensors, prefix: initial.}}\n");
        g->n_sizes = 3, g->bias = true;
        return;
    }
    if (g->form == RANDOM_MLP) {
        static const char *const acts[] = {
            "relu", "gelu", "silu", "none", "tanh", "relu2", "gelu_pytorch_tanh"};
        g->n_sizes = rng_between(&g->r, 2, 5);
        ADD("kind: mlp, sizes: [");
        for (int i = 0; i < g->n_sizes; i++)
            ADD("%s%d", i ? ", " : "", g->sizes[i] = rng_between(&g->r, 3, 10));
        ADD("]");
        if (CHANCE(70)) ADD(", bias: %s", (g->bias = CHANCE(70)) ? "true" : "false");
        else g->bias = true;
        if (CHANCE(70)) ADD(", activation: %s", ONE_OF(acts));
        if (CHANCE(35)) ADD(", scale: %s", CHANCE(60) ? "true" : "false");
        g->named_layers = CHANCE(25);
        if (g->named_layers) {
            ADD(", layer_names: [");
            for (int i = 0; i + 1 < g->n_sizes; i++) ADD("%sl%d", i ? ", " : "", i);
            ADD("]");
        }
        ADD("}\n");
        return;
    }
    if (!g->E && g->attention == RANDOM_HEADS && CHANCE(6)) add_known_model(g);
    else {
        add_config(g);
        add_layers(g, 2);
        if (CHANCE(15)) ADD(", vocab_multiple: %d", rng_between(&g->r, 2, 4));
    }
    if (CHANCE(60)) ADD(", rope: %s", CHANCE(50) ? "half" : "interleaved");
    add_parts(g);
    ADD("}\n");
}

/* ---- data, loss, pass, optimizer ---- */
static void add_row(RandomPlan *g, Rng *own) {
    ADD("[");
    for (int left = g->S; left > 0;) {
        int n = rng_between(own, 1, left);
        ADD("%d%s", n, n < left ? ", " : "]");
        left -= n;
    }
}
/* Rows that pack documents, the same or each its own; from draws of its own. */
static void add_documents(RandomPlan *g) {
    Rng own = {g->r.s * 0x9e3779b97f4a7c15u + 37};
    if (!rng_chance(&own, 15)) return;
    bool by_row = rng_chance(&own, 40);
    ADD(", documents: %s", by_row ? "[" : "");
    for (int b = 0; b < (by_row ? g->B : 1); b++) ADD("%s", b ? ", " : ""), add_row(g, &own);
    if (by_row) ADD("]");
}
static void add_data(RandomPlan *g) {
    int b[RANDOM_MAX_AXES], s[RANDOM_MAX_AXES], nb = axes_of(g, AXIS_BATCH, b),
                                                ns = axes_of(g, AXIS_SEQUENCE, s);
    bool mlp = g->form == RANDOM_MLP;
    if (g->inputs) ADD("data: {inputs: %s", g->inputs); /* the sizes are the file's */
    else ADD("data: {%s: %d", mlp ? "rows" : "batch", g->B);
    if (!mlp && !g->inputs) ADD(", sequence: %d", g->S), add_documents(g);
    bool f32 = CHANCE(30), bf16 = f32 && g->r.s % 5 < 2; /* draws nothing: other plans stay */
    const char *dtype = bf16 ? "bf16" : f32 ? "f32" : "f64";
    ADD(", dtype: %s, seed: %d", dtype, rng_below(&g->r, 1000));
    if (bf16 && g->r.s % 3) ADD(", master: f32");
    if (bf16 && g->r.s % 7 < 3) ADD(", moments: f32");
    if (bf16 && g->r.s % 11 < 4) ADD(", gradients: f32");
    if (g->pass && CHANCE(25)) {
        g->micro = g->B % 2 ? g->B : 2;
        ADD(", microbatches: %d", g->micro);
    }
    if (g->pass && CHANCE(30)) ADD(", input_gradient: %s", CHANCE(70) ? "true" : "false");
    if (!g->conventional && (nb || ns)) {
        ADD(", cut: {");
        if (nb) ADD("batch: "), product(g, b, nb);
        if (ns) ADD("%ssequence: ", nb ? ", " : ""), product(g, s, ns);
        ADD("}");
    }
    if (ns && CHANCE(30) && !g->declared) { /* believed, it would be wrong */
        static const char *const orders[] = {"contiguous", "zigzag", "striped"};
        const char *order = ONE_OF(orders);
        if (strcmp(order, "zigzag") != 0 || g->S % (2 * role_size(g, AXIS_SEQUENCE)) == 0)
            ADD(", order: {labels: %s}", order);
    }
    if (g->form != RANDOM_CORE) random_block_input(g);
    ADD("}\n");
}
static void add_loss(RandomPlan *g) {
    /* var needs a sum that no style asks for: not under trust: declared; that of a batch is no sum
     * over micro-batches */
    static const char *const plain[] = {"dot", "sum", "mse", "var"};
    bool head = (g->parts & RANDOM_HEAD) && g->form != RANDOM_MLP;
    if (CHANCE(50) || (g->form == RANDOM_RECIPE && !head)) return;
    if (!head || CHANCE(30)) {
        const char *kind = plain[rng_below(&g->r, g->declared ? 2 : g->micro > 1 ? 3 : 4)];
        ADD(CHANCE(50) ? "loss: %s\n" : "loss: {kind: %s}\n", kind);
        g->parts |= RANDOM_LOSS;
        return;
    }
    ADD("loss: {kind: cross_entropy");
    g->parts |= RANDOM_LOSS;
    if (CHANCE(40)) ADD(", ignore_index: %d", g->inputs || CHANCE(50) ? -100 : 3);
    if (CHANCE(50)) ADD(", label_smoothing: 0.%d", rng_below(&g->r, 3));
    bool alone = !g->micro && role_size(g, AXIS_BATCH) * role_size(g, AXIS_SEQUENCE) ==
                                  1; /* else a mean of means: wrong on purpose */
    if (CHANCE(30)) ADD(", normalise: %s", alone && CHANCE(60) ? "local_mean" : "global");
    ADD("}\n");
}
static void add_pass(RandomPlan *g) {
    static const char *const words[] = {"forward", "backward", "train"};
    if (g->pass || CHANCE(30)) ADD("pass: %s\n", words[g->pass]);
    const char *again = CHANCE(25) ? CHANCE(80) ? "block" : "none" : NULL;
    if (again && !g->by_stage) ADD("recompute: %s\n", again); /* else said for each stage */
    if (CHANCE(25)) ADD("save_gathered: %s\n", CHANCE(80) ? "false" : "true");
    if (g->pass < 2) return;
    if (CHANCE(15)) {
        ADD("optimizer: %s\n", CHANCE(50) ? "sgd" : "adamw");
        return;
    }
    bool sgd = CHANCE(50);
    ADD("optimizer: {name: %s", sgd ? "sgd" : "adamw");
    if (CHANCE(60)) ADD(", lr: 0.0%d", rng_between(&g->r, 1, 9));
    if (CHANCE(50)) ADD(", weight_decay: 0.%d", rng_below(&g->r, 3));
    if (sgd && CHANCE(60)) ADD(", momentum: 0.%d", rng_below(&g->r, 10));
    if (!sgd && CHANCE(50))
        ADD(", betas: [0.%d, 0.9%d]", rng_between(&g->r, 5, 9), rng_below(&g->r, 10));
    if (!sgd && CHANCE(50)) ADD(", eps: 0.000001");
    if (CHANCE(50)) {
        const char *clip = CHANCE(50) ? "0.25" : "1000";
        ADD(", clip: %s", clip);
    }
    if (CHANCE(70)) ADD(", steps: %d", rng_between(&g->r, 1, 3));
    ADD("}\n");
}

/* ---- how parameters lie at rest ---- */
/* The optimizer's work divided over these axes; over one rank there is nothing to divide. */
static bool random_zero(RandomPlan *g, const int *axes, int n, bool wanted) {
    int64_t ranks = 1;
    for (int i = 0; i < n; i++) ranks *= g->size[axes[i]];
    if (!wanted || ranks < 2 || CHANCE(40)) return false;
    static const char *const flat[] = {"deepspeed", "megatron"};
    bool ranges = CHANCE(60);
    ADD("data_parallel: {mode: %s, axis: ", ranges && CHANCE(50) ? "zero2" : "zero1");
    product(g, axes, n);
    if (ranges) ADD(", form: %s", ONE_OF(flat));
    else if (CHANCE(50)) ADD(", form: pytorch");
    if (CHANCE(60))
        ADD(", unit: %s", CHANCE(40) ? "model" : ranges || CHANCE(50) ? "block" : "parameter");
    ADD("}\n");
    return true;
}
static void add_data_parallel(RandomPlan *g) {
    int all[RANDOM_MAX_AXES], n = 0, x = rng_below(&g->r, 100);
    if (x < 35) return;
    /* the default is every axis that cuts the tokens: of others some gradient would not be summed
     */
    if (x < 40 || (g->declared && g->pass)) {
        ADD("data_parallel: %s\n", CHANCE(50) ? "fsdp" : "ddp");
        return;
    }
    for (int i = 0; i < g->n_axes; i++)
        if (CHANCE(50)) all[n++] = i;
    if (!n) all[n++] = rng_below(&g->r, g->n_axes);
    if (random_zero(g, all, n, x < 60)) return;
    int from = 0; /* the first of the axes that cut parameters at rest */
    if (x < 50) ADD("data_parallel: {mode: ddp, axis: "), product(g, all, n);
    else if (n < 2 || x < 80) ADD("data_parallel: {mode: fsdp, axis: "), product(g, all, n);
    else {
        int cut = rng_between(&g->r, 1, n - 1);
        ADD("data_parallel: {mode: hsdp, replicate: "), product(g, all, cut);
        ADD(", shard: "), product(g, all + cut, n - cut);
        from = cut;
    }
    static const char *const reshards[] = {"true", "false", "blocks", "step"}, *const syncs[] = {
                                                                                   "step",
                                                                                   "microbatch",
                                                                                   "scatter"};
    Rng own = {(uint64_t)g->r.s * 0x9e3779b97f4a7c15u + 18};
    if (CHANCE(40)) {
        const char *again = reshards[rng_below(&own, 2) + (CHANCE(50) ? 0 : 2)];
        if (x >= 50) ADD(", reshard: %s", again); /* ddp gathers nothing */
    } else if (x >= 50 && n - from > 1 && g->size[all[from]] > 1 && rng_chance(&own, 50)) {
        ADD(", reshard_over: "), product(g, all + from + 1, n - from - 1); /* but the first axis */
    }
    if (rng_chance(&own, 50)) ADD(", grad_sync: %s", syncs[rng_below(&own, 3)]);
    if (CHANCE(40)) ADD(", unit: %s", CHANCE(60) ? "block" : CHANCE(50) ? "parameter" : "model");
    if (CHANCE(30)) ADD(", grad_order: %s", CHANCE(60) ? "tp_first" : "shard_first");
    if (CHANCE(20)) ADD(", reduce: sum");
    if (x >= 50 && rng_chance(&own, 30)) { /* which dim is cut at rest */
        ADD(", dims: {\"*\": %s", rng_chance(&own, 50) ? "whole" : "0");
        if (g->form != RANDOM_MLP && g->form != RANDOM_CORE && g->parts & RANDOM_BLOCKS)
            ADD(", \"model.layers.*.self_attn.o_proj.weight\": %d", rng_below(&own, 2));
        ADD("}");
    }
    ADD("}\n");
}

/* Who goes to which expert, and how many are taken; from draws of its own. */
static void add_moe(RandomPlan *g, uint64_t seed) {
    static const char *const routings[] = {"computed",   "balanced", "hot_expert",
                                           "replayed",   "hot_rank", "spread",
                                           "empty_rank", "ragged",   "burst"};
    static const char *const priorities[] = {"order", "slot", "score"};
    Rng own = {seed * 0x9e3779b97f4a7c15u + 11};
    bool room = rng_chance(&own, 50);
    if (!g->E || !(g->parts & RANDOM_BLOCKS) || rng_chance(&own, 40)) return;
    ADD("moe: {routing: %s", routings[rng_below(&own, 9)]);
    if (room) ADD(", capacity_factor: 0.%d", rng_between(&own, 4, 9));
    if (room && rng_chance(&own, 70))
        ADD(", capacity: %s, priority: %s", rng_chance(&own, 50) ? "local" : "global",
            priorities[rng_below(&own, 3)]);
    if (rng_chance(&own, 30)) ADD(", z_coef: 0.0%d", rng_between(&own, 1, 9));
    if (rng_chance(&own, 40)) ADD(", aux_loss: exact, aux_coef: 0.%d", rng_between(&own, 1, 9));
    else if (rng_chance(&own, 20)) ADD(", aux_loss: none");
    ADD("}\n");
}
/* From draws of its own: plans with ordinary attention stay what they are. What a latent plan has
 * to declare is not what `half` says, so such plans are not believed. */
static void draw_attention(RandomPlan *g, uint64_t seed) {
    Rng own = {seed * 0x9e3779b97f4a7c15u + 5};
    bool lines = g->form == RANDOM_STYLED || g->form == RANDOM_WILD;
    int x = rng_below(&own, 100);
    int latent = g->E ? 28 : 12, both = g->E ? 50 : 22;
    if (!lines || g->declared || x >= both) return;
    g->attention = x < latent ? RANDOM_LATENT : RANDOM_LLAMA4;
    g->qk_norm = false;
    if (g->E) g->bias = g->packed = false, g->shared = x < latent ? rng_below(&own, 3) : 1;
    /* Without rotation the gradient of a bias of k is zero by an identity: nothing but rounding, of
     * f64 in one run and of f32 in the other. */
    if (g->attention == RANDOM_LLAMA4) {
        g->bias = false;
        return;
    }
    g->q_rank = rng_chance(&own, 60) ? rng_between(&own, 3, 7) : 0;
    g->apart = rng_chance(&own, 40);
    g->K *= g->G;
    g->G = 1;
}

const char *random_plan(Arena *a, uint64_t seed, RandomPlan *g) {
    memset(g, 0, sizeof *g);
    g->r.s = seed * 0x2545f4914f6cdd1du + 77;
    g->s = str_new(a);
    int x = rng_below(&g->r, 100);
    g->form = x < 42 ? RANDOM_STYLED : x < 48 ? RANDOM_RECIPE : x < 90 ? RANDOM_WILD : RANDOM_MLP;
    g->B = rng_between(&g->r, 2, 4), g->S = rng_between(&g->r, 6, 16),
    g->D = rng_between(&g->r, 5, 8), g->K = rng_between(&g->r, 1, 3);
    g->G = rng_between(&g->r, 1, 3), g->d = CHANCE(50) ? 4 : 8, g->F = rng_between(&g->r, 5, 8),
    g->V = rng_between(&g->r, 7, 13);
    /* equal dims: a wrong dim is then possible */
    if (CHANCE(35)) g->S = g->D = rng_between(&g->r, 6, 8);
    g->bias = CHANCE(50), g->qk_norm = CHANCE(40), g->packed = CHANCE(25), g->tied = CHANCE(40);
    g->layers = 1;
    if (g->form == RANDOM_WILD && seed % 4 == 3) {
        g->E = rng_between(&g->r, 1, 6);
        g->k = rng_between(&g->r, 1, g->E < 3 ? g->E : 3);
    }
    if (g->form == RANDOM_WILD && seed % 16 == 5) g->form = RANDOM_CORE;
    draw_mesh(g);
    g->sp = CHANCE(50), g->per_module = CHANCE(30);
    g->declared = g->form == RANDOM_STYLED && g->tp &&
                  CHANCE(12); /* then what is left local is believed to be whole */
    draw_attention(g, seed);
    x = rng_below(&g->r, 100);
    g->pass = x < 55 ? 0 : x < 85 ? 1 : 2;
    g->scheme = CHANCE(50) ? NAMES_TORCHTITAN : rng_below(&g->r, NAMES_COUNT);
    draw_parts(g);
    if (g->form == RANDOM_CORE) { /* it has nothing to train, and no other parts */
        g->parts = RANDOM_BLOCKS;
        if (g->pass == 2) g->pass = 1;
    }
    if (CHANCE(20)) ADD("name: random\n");
    add_model(g);
    add_data(g);
    draw_stages(g, seed);
    add_mesh(g, seed);
    add_stages(g, seed);
    add_loss(g);
    add_pass(g);
    add_data_parallel(g);
    add_moe(g, seed);
    static const char *const hardware[] = {"h100-sxm", "a100-80g", "cpu"};
    if (CHANCE(10)) ADD("hardware: %s\n", ONE_OF(hardware));
    if (CHANCE(15)) ADD("kv_replicate: %s\n", CHANCE(50) ? "never" : "auto");
    random_lines(g);
    return g->s.s;
}
