/* Four ways to bring tokens to experts, one result (semantics.md 7.3): a random model with experts
 * on a random mesh is run with rows sent to the ranks of their experts, so too with a room for each
 * expert that nothing is too much for, with tokens gathered by all ranks of experts, and with
 * tokens that all ranks of experts have. What the ranks hold together of every value and of every
 * gradient is the same: by bits where neither run has split a sum on the way, else but for
 * rounding. */
#include "support/random_plan.h"
#include "support/run_values.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { DP, CP, TP, N_AXES };
static const char *const axis[N_AXES] = {"dp", "cp", "tp"};
enum { LATENT_CONFIG = 4 };
static const struct {
    const char *keys, *experts;
    bool shared;
} configs[] = {
    {"model_type: mixtral, intermediate_size: 10", "num_local_experts", false},
    {"model_type: mixtral, router: switch, intermediate_size: 7", "num_local_experts", false},
    {"model_type: llama4_text, intermediate_size: 12, intermediate_size_mlp: 20, moe_layers: [0], "
     "no_rope_layers: [1], floor_scale: 3, attention_chunk_size: 8",
     "num_local_experts", true},
    {"model_type: qwen3_moe, moe_intermediate_size: 6, intermediate_size: 12, norm_topk_prob: "
     "false",
     "num_experts", false},
    {"model_type: deepseek_v3, moe_intermediate_size: 6, intermediate_size: 12, n_group: 2, "
     "topk_group: 2, n_shared_experts: 1, first_k_dense_replace: 0, routed_scaling_factor: 2.5, "
     "q_lora_rank: 7, kv_lora_rank: 5, qk_nope_head_dim: 4, qk_rope_head_dim: 2, v_head_dim: 3",
     "n_routed_experts", true},
};
typedef struct {
    int size[N_AXES], config, E, k, B, S, seed;
    const char *order, *routing, *aux;
} Draw;
/* Routings that say the same whatever ranks there are. */
static const char *const routings[] = {"computed", "computed", "balanced", "hot_expert",
                                       "spread",   "ragged",   "burst"};
static Draw draw(Rng *r, int seed) {
    static const char *const orders[] = {"contiguous", "zigzag"};
    static const char *const losses[] = {"", ", aux_loss: exact, aux_coef: 0.3", ", z_coef: 0.05"};
    enum { N_ROUTINGS = sizeof routings / sizeof *routings, N_CONFIGS = 5 };
    Draw d = {.seed = seed, .config = rng_below(r, N_CONFIGS)};
    do {
        d.size[DP] = rng_between(r, 1, 3), d.size[CP] = rng_between(r, 1, 2);
        d.size[TP] = rng_between(r, 2, 3);
    } while (d.size[DP] * d.size[CP] * d.size[TP] > 12);
    d.E = d.config == LATENT_CONFIG ? 2 * rng_between(r, 2, 4) : rng_between(r, 3, 7);
    d.k = rng_between(r, 1, 3);
    d.B = rng_between(r, 2, 4), d.S = 12 * rng_between(r, 1, 2);
    d.order = orders[rng_below(r, 2)];
    d.routing = routings[rng_below(r, N_ROUTINGS)];
    d.aux = losses[rng_below(r, 3)];
    return d;
}

/* ---- the ways ---- */
typedef struct {
    const char *name, *dispatch;
    bool distinct; /* ranks of experts have different tokens; else the same */
    bool room;     /* for all tokens of an expert */
} Way;
static const Way ways[] = {{"all-to-all", "all_to_all", true, false},
                           {"capacity", "all_to_all", true, true},
                           {"gathered", "all_gather", true, false},
                           {"masked", "masked", false, false}};
enum { N_WAYS = sizeof ways / sizeof *ways };
#define SP_CUT                                                                                     \
    "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "       \
    "[replicate]}\n  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
#define SP_WHOLE /* attention is computed by every rank of tp, and no sum is split */              \
    "  layers.*.attention: {style: prepare_module_input_output, input: [shard(1)], "               \
    "desired_input: [replicate], output: [replicate], desired_output: [shard(1)]}\n  "             \
    "layers.*.attention.w*: replicate\n"
#define SP_LINES                                                                                   \
    "  layers.*.attention_norm: sequence_parallel\n  layers.*.ffn_norm: sequence_parallel\n"       \
    "  layers.*.moe.router.gate: {style: sequence_parallel, use_local_output: true}\n"
#define SHARED_SP                                                                                  \
    "  layers.*.moe.shared_experts: {style: prepare_module_input, input: [shard(1)], "             \
    "desired_input: [replicate]}\n  layers.*.moe.shared_experts.w2: {style: rowwise, output: "     \
    "shard(1)}\n"
#define SHARED "  layers.*.moe.shared_experts.w[13]: colwise\n"
#define HEADS "  layers.*.attention.w[qkv]: colwise\n"
#define LATENT "  layers.*.attention.w*_b: colwise\n"
#define LATENT_SP                                                                                  \
    "  layers.*.attention.w*_a: replicated_with_grad_allreduce\n"                                  \
    "  layers.*.attention.*_norm: replicated_with_grad_allreduce\n"
/* Axes whose ranks have different experts: any whose ranks have what the way asks for. */
static int experts_on(Rng *r, const Way *w, bool sp) {
    if (!w->distinct) return 1 << TP;
    return rng_between(r, 1, sp ? 7 : 3);
}
static const char *plan_of(Arena *a, Rng *r, const Draw *d, const Way *w) {
    static const char *const modes[] = {"ddp", "fsdp", "{mode: fsdp, unit: block}"};
    bool sp = w->distinct && rng_chance(r, 70), latent = d->config == LATENT_CONFIG;
    bool cut = rng_chance(r, 50);
    int on = experts_on(r, w, sp);
    Str s = str_new(a);
    str_addf(&s, "model: {config: {%s, %s: %d, num_experts_per_tok: %d", configs[d->config].keys,
             configs[d->config].experts, d->E, d->k);
    str_addf(&s,
             ", hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 6, "
             "num_key_value_heads: 6, vocab_size: 32%s}}\ndata: {batch: %d, sequence: %d, dtype: "
             "f64, seed: %d%s}\n",
             latent ? "" : ", head_dim: 4", d->B, d->S, d->seed,
             sp ? ", block_input: shard(1)" : "");
    str_addf(&s, "mesh: {dp: %d, cp: %d, tp: %d}\n", d->size[DP], d->size[CP], d->size[TP]);
    str_addf(&s,
             "names: torchtitan\npass: backward\ncontext_parallel: {mode: all_gather, order: %s}\n"
             "data_parallel: %s\n",
             d->order, modes[rng_below(r, 3)]);
    str_addf(&s, "moe: {routing: %s%s, dispatch: %s, axis: ", d->routing, d->aux, w->dispatch);
    for (int i = 0, n = 0; i < N_AXES; i++)
        if (on >> i & 1) str_addf(&s, "%s%s", n++ ? "*" : "", axis[i]);
    if (w->room) str_addf(&s, ", capacity_factor: %d", d->E);
    str_addf(&s, "}\n%s", sp || cut || configs[d->config].shared ? "plan:\n" : "");
    if (cut) str_addf(&s, "%s", latent ? LATENT : HEADS);
    if (cut && !sp) str_add(&s, "  layers.*.attention.wo: rowwise\n");
    if (sp) str_addf(&s, SP_LINES "%s", cut ? SP_CUT : SP_WHOLE);
    if (latent && sp && cut) str_add(&s, LATENT_SP);
    if (configs[d->config].shared)
        str_addf(&s, SHARED "%s", sp ? SHARED_SP : "  layers.*.moe.shared_experts.w2: rowwise\n");
    return s.s;
}

/* ---- one result ---- */
/* Of a value's largest magnitude: what sums in another order may make of a layer in float64. */
static const double NEAR = 1e-12;
/* The least that counts as the magnitude of a gradient: where a router's one weight is divided by
 * itself, its gradient is nothing but rounding of terms as large as other gradients are. */
static double least(const RunValues *k) {
    double top = 0;
    for (int i = 0; i < k->n; i++)
        for (int64_t j = 0; k->v[i].gradient && j < k->v[i].n; j++)
            top = fmax(top, fabs(run_value_at(&k->v[i], j)));
    return 1e-3 * top;
}
typedef struct {
    int values, gradients, bits, gradient_bits, experts_bits;
    double worst; /* of a value's largest magnitude */
} Tally;
static void hold_value(const RunValue *x, const RunValue *y, double top, const char *where,
                       Tally *t) {
    if (x->n != y->n || x->dtype != y->dtype) fail_msg("%s: %s has another size", where, x->name);
    t->values += !x->gradient, t->gradients += x->gradient;
    bool same = !memcmp(x->x, y->x, (size_t)(x->n * dtype_size(x->dtype)));
    if ((!x->split && !y->split) || x->dtype == DT_I64) { /* integers are never near */
        if (!same) fail_msg("%s: %s has other bits", where, x->name);
        t->bits++, t->gradient_bits += x->gradient;
        t->experts_bits += x->gradient && strstr(x->name, ".moe.experts.");
        return;
    }
    double off = 0;
    for (int64_t i = 0; i < x->n; i++) {
        double p = run_value_at(x, i), q = run_value_at(y, i);
        top = fmax(top, fabs(p));
        off = fmax(off, p == q ? 0 : isfinite(p - q) ? fabs(p - q) : INFINITY);
    }
    if (!(off <= NEAR * top)) {
        printf("%s\n", where);
        fail_msg("%s differs by %.3g of %.3g", x->name, off, top);
    }
    if (top > 0) t->worst = fmax(t->worst, off / top);
}
static void hold_plan(uint64_t seed, Tally *t) {
    Arena *a = arena_new();
    Rng r = {seed * 0x9e3779b97f4a7c15u + 12};
    Draw d = draw(&r, (int)seed);
    RunValues run[N_WAYS];
    const char *text[N_WAYS];
    for (int w = 0; w < N_WAYS; w++) {
        run[w] = (RunValues){.a = a};
        text[w] = plan_of(a, &r, &d, &ways[w]);
        run_values(&run[w], ways[w].name, text[w], false);
        if (!w) continue;
        const char *where =
            arena_printf(a, "seed %d\n%s\nand %s\n%s", (int)seed, text[0], ways[w].name, text[w]);
        int outputs = 0, gradients = 0, all = 0;
        double small = least(&run[0]);
        for (int i = 0; i < run[0].n; i++) {
            const RunValue *x = &run[0].v[i], *y = run_value(&run[w], x->name);
            all += x->gradient;
            if (!y) continue; /* pending there, as a layer's or a branch's partial sums are */
            hold_value(x, y, x->gradient ? small : 0, where, t);
            outputs += !strcmp(x->name, "layers.0.output");
            gradients += x->gradient;
        }
        if (outputs != 1 || gradients != all || gradients < 10)
            fail_msg("%s: %d outputs, %d of %d gradients", where, outputs, gradients, all);
    }
    arena_free(a);
}
static void test_one_result(void **state) {
    (void)state;
    int n = trials_of(100, "random models with experts, each in four ways");
    Tally t = {0};
    for (int i = 0; i < n; i++) hold_plan((uint64_t)i + 1, &t);
    printf("%d models in four ways: %d values and %d gradients, by bits %d and %d (%d of experts), "
           "the others within %.2g of their largest\n",
           n, t.values, t.gradients, t.bits - t.gradient_bits, t.gradient_bits, t.experts_bits,
           t.worst);
    if (n >= 100) assert_true(t.experts_bits > 30 && t.bits > 1000);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_result)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
