/* Everything that context parallelism can be asked for, each with each: modes, ways of a ring,
 * orders, kinds of attention, documents of a row. None of these is refused (what is, and why:
 * test_refusals); each is equivalent, makes no move that nobody asks for, and has the result and
 * the gradients of one rank that has all tokens. */
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LAYERS ", hidden_size: 12, intermediate_size: 10, vocab_size: 11, num_hidden_layers: 2"
#define LATENT                                                                                     \
    "config: {model_type: deepseek_v3, num_attention_heads: 4, num_key_value_heads: 4, "           \
    "q_lora_rank: 6, kv_lora_rank: 5, qk_nope_head_dim: 4, qk_rope_head_dim: 2, v_head_dim: 3, "   \
    "first_k_dense_replace: 2, rope_interleave: true" LAYERS "}"
/* Four ranks: KV heads that are copied, that are cut unevenly, that are one for all; masks other
 * than the causal one; the latent forms, of which keys and values or the latent are sent. */
static const struct {
    const char *what, *model, *context;
} kinds[] = {
    {"KV heads copied",
     "config: {num_attention_heads: 4, num_key_value_heads: 2, head_dim: 4, qk_norm: true" LAYERS
     "}",
     ""},
    {"uneven KV heads",
     "config: {num_attention_heads: 6, num_key_value_heads: 3, head_dim: 4" LAYERS "}", ""},
    {"one KV head",
     "config: {num_attention_heads: 8, num_key_value_heads: 1, head_dim: 2" LAYERS "}", ""},
    {"chunks",
     "config: {model_type: llama4_text, num_attention_heads: 4, num_key_value_heads: 2, head_dim: "
     "4, no_rope_layer_interval: 2, attention_chunk_size: 5, moe_layers: [], floor_scale: 2" LAYERS
     "}",
     ""},
    {"windows",
     "config: {model_type: ministral, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 4, "
     "sliding_window: 6" LAYERS "}",
     ""},
    {"latent", LATENT, ""},
    {"latent, scores in two parts", LATENT ", scores: parts", ""},
    {"latent sent", LATENT, ", latent: true"},
    {"latent sent, scores in two parts", LATENT ", scores: parts", ", latent: true"},
};
static const char *const documents[] = {"sequence: 24", "documents: [5, 3, 9, 7]",
                                        "documents: [[5, 3, 9, 7], [10, 14]]"};
static const char *const orders[] = {"contiguous", "zigzag", "striped"};
/* The modes; the last ones are rings, which go their ways. */
static const struct {
    const char *mesh, *mode;
} modes[] = {{"{cp: 4}", "all_gather"},
             {"{cp: 4}", "ulysses"},
             {"{a: 2, b: 2}\ngroups: {cp: a*b}", "all_gather"},
             {"{a: 2, b: 2}\ngroups: {cp: a*b}", "ulysses"},
             {"{cp: 4}", "ring"},
             {"{r: 2, u: 2}", "usp, ring: r, ulysses: u"},
             {"{u: 2, r: 2}", "usp, ring: r, ulysses: u"}};
enum {
    KINDS = sizeof kinds / sizeof *kinds,
    DOCUMENTS = sizeof documents / sizeof *documents,
    ORDERS = sizeof orders / sizeof *orders,
    MODES = sizeof modes / sizeof *modes,
    RINGS = 4, /* the first of them */
    WAYS = 8,  /* final or chain; keys and values kept or not; the hops of the usual form or not */
    ASKED = RINGS + (MODES - RINGS) * WAYS
};

static const char *plan_of(Arena *a, int kind, int document, const char *rest) {
    return arena_printf(a,
                        "model: {%s, layers: all, parts: [embedding, blocks, norm, head, loss]}\n"
                        "data: {batch: 2, %s, dtype: f64}\npass: backward\n%s",
                        kinds[kind].model, documents[document], rest);
}
/* The k-th mode with its way, in an order. */
static const char *context_of(Arena *a, int k, int order, int kind) {
    int m = k < RINGS ? k : RINGS + (k - RINGS) / WAYS, way = k < RINGS ? 0 : (k - RINGS) % WAYS;
    return arena_printf(a, "mesh: %s\ncontext_parallel: {mode: %s, order: %s%s%s%s%s}\n",
                        modes[m].mesh, modes[m].mode, orders[order], kinds[kind].context,
                        way & 1 ? ", backward: chain" : "", way & 2 ? ", keep_kv: false" : "",
                        way & 4 ? ", rfa: true" : "");
}
typedef struct {
    int64_t n[2];
    double *x[2]; /* the output of the last layer, the gradient of what enters the first */
} Held;
static Held held_by(Arena *a, const char *text) {
    static const char *const names[] = {"layers.1.output", "grad.embed"};
    const char *saved = temp_path(a, "all.out.safetensors");
    PlanRun r = plan_run_with(
        a, "all.yaml", text,
        &(PipelineOptions){.execute = true, .threads = 1, .numbers = true, .save_values = saved});
    if (!run_is(&r, "equivalent") || r.t->n_unasked) {
        fputs(text, stderr);
        run_print(&r);
        fail_msg("not equivalent, or moves that nobody asks for");
    }
    SafeTensors *st = golden_tensors(a, saved);
    Held h;
    for (int i = 0; i < 2; i++) {
        const double *x = tensor_numbers(a, st, names[i], &h.n[i]);
        h.x[i] = arena_memdup(a, x, (size_t)h.n[i] * sizeof *x);
    }
    st_close(st);
    return h;
}
static void hold(const Held *want, const char *text) {
    Arena *a = arena_new();
    Held h = held_by(a, text);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(h.n[i], want->n[i]);
        for (int64_t k = 0; k < h.n[i]; k++)
            if (!(fabs(h.x[i][k] - want->x[i][k]) < 1e-12 * (1 + fabs(want->x[i][k]))))
                fail_msg("%s[%d] is %.17g, on one rank %.17g\n%s", i ? "gradient" : "output",
                         (int)k, h.x[i][k], want->x[i][k], text);
    }
    arena_free(a);
}
/* A mode with its way meets each of the documents in one of the orders, an order in one of the
 * ways: all three together are three times as many. */
static void test_each_with_each(void **state) {
    (void)state;
    int all = ORDERS * ASKED, runs = sample_of(all, "modes and orders of each kind");
    for (int kind = 0; kind < KINDS; kind++) {
        Arena *a = arena_new();
        Held want[DOCUMENTS];
        for (int d = 0; d < DOCUMENTS; d++)
            want[d] = held_by(a, plan_of(a, kind, d, "mesh: {one: 1}\n"));
        for (int i = 0; i < runs; i++) {
            int at = sample_at(i, runs, all), k = at / ORDERS, order = at % ORDERS,
                d = (k + order + kind) % DOCUMENTS;
            hold(&want[d], plan_of(a, kind, d, context_of(a, k, order, kind)));
        }
        arena_free(a);
    }
    printf("%d plans\n", KINDS * runs);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_with_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
