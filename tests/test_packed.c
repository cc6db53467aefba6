/* Documents packed in one row (`data.documents`): what each computes is what it computes alone, in
 * a row of its own on one rank, in every mode and order of context parallelism, forward and
 * backward, whatever attends (grouped heads, latent heads, chunks, windows) and with positions that
 * count from a document's first token. And the work of a rank follows the documents. */
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const int documents[] = {5, 3, 9, 7};
enum { N_DOCUMENTS = 4, S = 24, B = 2, V = 11 };
#define PACKED "documents: [5, 3, 9, 7]"

static const char *const modes[] = {
    "all_gather",           "ulysses",        "ring", "ring, backward: chain",
    "ring, keep_kv: false", "ring, rfa: true"};
static const char *const orders[] = {"contiguous", "zigzag", "striped"};
enum { N_MODES = sizeof modes / sizeof *modes };

/* Rows [from, from + n) of the sequence of one value of the packed run, [B, S, ...], are `scale`
 * times those of the document's own run, [B, n, ...]. */
static void hold_value(Arena *a, const SafeTensors *packed, const SafeTensors *alone,
                       const char *name, int64_t from, int64_t n, double scale) {
    int64_t all, own;
    const double *x = tensor_numbers(a, packed, name, &all),
                 *y = tensor_numbers(a, alone, name, &own);
    int64_t row = own / (B * n);
    assert_int_equal(all, B * S * row);
    for (int64_t i = 0; i < own; i++) {
        double have = x[i / (n * row) * S * row + from * row + i % (n * row)];
        if (!(fabs(have - scale * y[i]) < 1e-11 * (1 + fabs(have))))
            fail_msg("%s of the document at %d: %.17g, alone %.17g", name, (int)from, have,
                     scale * y[i]);
    }
}

/* ---- whole models ---- */
typedef struct {
    const char *name, *model;
    const char *held[8]; /* values with their gradients */
} Model;
#define SIZES                                                                                      \
    "hidden_size: 12, intermediate_size: 10, vocab_size: 11, num_hidden_layers: 2, "               \
    "num_attention_heads: 4, num_key_value_heads: 2, head_dim: 4"
#define WHOLE ", layers: all, parts: [embedding, blocks, norm, head, loss]}\n"
static const Model models[] = {
    {"grouped heads",
     "model: {config: {" SIZES ", qk_norm: true}" WHOLE,
     {"embed", "layers.0.q_proj", "layers.0.k_proj", "layers.1.v_proj"}},
    {"chunks, temperature",
     "model: {config: {model_type: llama4_text, " SIZES ", no_rope_layer_interval: 2, "
     "attention_chunk_size: 4, moe_layers: [], floor_scale: 2}" WHOLE,
     {"embed", "layers.0.k_proj", "layers.1.q_proj", "layers.1.k_proj"}},
    {"a window",
     "model: {config: {model_type: ministral, " SIZES ", sliding_window: 4}" WHOLE,
     {"embed", "layers.0.k_proj", "layers.1.q_proj", "layers.1.v_proj"}},
    {"latent heads",
     "model: {config: {model_type: deepseek_v3, hidden_size: 12, num_attention_heads: 4, "
     "num_key_value_heads: 4, q_lora_rank: 6, kv_lora_rank: 5, qk_nope_head_dim: 4, "
     "qk_rope_head_dim: 2, v_head_dim: 3, intermediate_size: 10, vocab_size: 11, "
     "num_hidden_layers: 2, first_k_dense_replace: 2, rope_interleave: true}" WHOLE,
     {"embed", "layers.0.o_proj", "layers.1.o_proj"}},
};
/* The ids and labels of tokens [from, from + n) of each row, as a file. */
static const char *tokens_of(Arena *a, int from, int n) {
    int64_t *ids = ARENA_ARRAY(a, int64_t, 2 * B * n), *labels = ids + B * n;
    for (int b = 0; b < B; b++)
        for (int t = 0; t < n; t++) {
            int64_t at = b * S + from + t;
            ids[b * n + t] = at * at % V;
            labels[b * n + t] = (3 * at + 1) % V;
        }
    const NewTensor t[] = {{.name = "input_ids", .nd = 2, .shape = {B, n}, .ids = ids},
                           {.name = "labels", .nd = 2, .shape = {B, n}, .ids = labels}};
    return write_tensors(a, "tokens.safetensors", t, 2);
}
static SafeTensors *alone_of(Arena *a, const Model *m, int k, int from) {
    return plan_values(
        a,
        arena_printf(a, "%sdata: {inputs: %s, dtype: f64}\nmesh: {one: 1}\npass: backward\n",
                     m->model, tokens_of(a, from, documents[k])),
        arena_printf(a, "alone.%d.safetensors", k));
}
static void hold_model(Arena *a, const Model *m, SafeTensors *const *alone, const char *rest) {
    SafeTensors *packed = plan_values(
        a,
        arena_printf(a, "%sdata: {inputs: %s, " PACKED ", dtype: f64}\npass: backward\n%s",
                     m->model, tokens_of(a, 0, S), rest),
        "packed.safetensors");
    for (int k = 0, from = 0; k < N_DOCUMENTS; from += documents[k++])
        for (int i = 0; m->held[i]; i++) {
            hold_value(a, packed, alone[k], m->held[i], from, documents[k], 1);
            hold_value(a, packed, alone[k], arena_printf(a, "grad.%s", m->held[i]), from,
                       documents[k], (double)documents[k] / S); /* the loss is a mean */
        }
    st_close(packed);
}
static void test_models(void **state) {
    (void)state;
    static const char *const more[] = {
        "mesh: {one: 1}\n",
        "mesh: {r: 2, u: 2}\ncontext_parallel: {mode: usp, ring: r, ulysses: u, order: zigzag}\n",
        "mesh: {dp: 2, cp: 3}\ncontext_parallel: {mode: ring, order: striped}\ndata_parallel: "
        "fsdp\n",
        "mesh: {cp: 2, pp: 2}\npipeline: {schedule: 1f1b, microbatches: 2}\n"
        "context_parallel: {mode: ring, order: zigzag}\n"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        Arena *a = arena_new();
        SafeTensors *alone[N_DOCUMENTS];
        for (int k = 0, from = 0; k < N_DOCUMENTS; from += documents[k++])
            alone[k] = alone_of(a, &models[i], k, from);
        for (size_t k = 0; k < sizeof more / sizeof *more; k++)
            hold_model(a, &models[i], alone, more[k]);
        for (int k = 0; k < 3 * N_MODES; k++) {
            Arena *tmp = arena_new();
            hold_model(tmp, &models[i], alone,
                       arena_printf(tmp,
                                    "mesh: {cp: %d}\ncontext_parallel: {mode: %s, order: %s}\n",
                                    k % 2 ? 2 : 4, modes[k / 3], orders[k % 3]));
            arena_free(tmp);
        }
        for (int k = 0; k < N_DOCUMENTS; k++) st_close(alone[k]);
        arena_free(a);
    }
}

/* ---- attention by itself: queries that see every key of their document ---- */
static const char *core_inputs(Arena *a, int from, int n) {
    static const char *const names[] = {"q", "k", "v", "cotangent"};
    NewTensor t[4];
    for (int i = 0; i < 4; i++) {
        int heads = i == 1 || i == 2 ? 2 : 4, d = 3;
        double *x = ARENA_ARRAY(a, double, B *n *heads *d);
        for (int64_t e = 0; e < B * n * heads * d; e++) {
            int64_t row = e / (heads * d), at = row / n * S + from + row % n;
            x[e] = sin((1 + 0.3 * i) * (double)(at * heads * d + e % (heads * d)) + i);
        }
        t[i] = (NewTensor){.name = names[i], .nd = 4, .shape = {B, n, heads, d}, .x = x};
    }
    return write_tensors(a, "core.safetensors", t, 4);
}
static SafeTensors *core_run(Arena *a, const char *mask, const char *inputs, const char *rest,
                             const char *file) {
    return plan_values(a,
                       arena_printf(a,
                                    "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 3, "
                                    "mask: %s}\npass: backward\ndata: {dtype: f64, inputs: %s%s",
                                    mask, inputs, rest),
                       file);
}
static void test_core(void **state) {
    (void)state;
    static const char *const masks[] = {"none", "causal"}, *const held[] = {"attn_context",
                                                                            "grad.q", "grad.k",
                                                                            "grad.v"};
    for (int i = 0; i < 2 * 3 * N_MODES; i++) {
        Arena *a = arena_new();
        const char *mask = masks[i % 2];
        const char *rest = arena_printf(
            a, ", " PACKED "}\nmesh: {cp: %d}\ncontext_parallel: {mode: %s, order: %s}\n",
            i % 3 ? 4 : 3, modes[i / 6], orders[i / 2 % 3]);
        SafeTensors *packed = core_run(a, mask, core_inputs(a, 0, S), rest, "core.out.safetensors");
        for (int k = 0, from = 0; k < N_DOCUMENTS; from += documents[k++]) {
            SafeTensors *alone = core_run(a, mask, core_inputs(a, from, documents[k]),
                                          "}\nmesh: {one: 1}\n", "own.out.safetensors");
            for (int v = 0; v < 4; v++)
                hold_value(a, packed, alone, held[v], from, documents[k], 1);
            st_close(alone);
        }
        st_close(packed);
        arena_free(a);
    }
}

/* ---- work ---- */
static int document_of(int t) {
    int k = 0;
    for (int end = documents[0]; t >= end; end += documents[++k]) {
    }
    return k;
}
/* The rank of four that holds token t. */
static int rank_of(int order, int t) {
    int piece = t / (S / 8);
    return order == 0 ? t / (S / 4) : order == 2 ? t % 4 : piece < 4 ? piece : 7 - piece;
}
/* Pairs of query and key that a rank computes, of all its parts. */
static double pairs_on(const Trace *t, int64_t rank) {
    double flops = 0;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        const char *of = c->makes.of ? c->makes.of : "";
        if (strcmp(of, "attn_context") != 0 && strncmp(of, "attn_part.", 10) != 0) continue;
        if (strcmp(c->op, "split") && (!c->ranks.n || rankset_has(&c->ranks, rank)))
            flops += c->flops;
    }
    return flops / (2.0 * (3 + 3) * B * 4);
}
static void test_work(void **state) {
    (void)state;
    for (int i = 0; i < 3 * N_MODES; i++) {
        int order = i % 3;
        if (!strcmp(modes[i / 3], "ulysses")) continue; /* each rank has all tokens */
        Arena *a = arena_new();
        double want[4] = {0};
        for (int t = 0; t < S; t++)
            for (int s = 0; s <= t; s++)
                want[rank_of(order, t)] += document_of(t) == document_of(s);
        PlanRun r =
            plan_good(a,
                      arena_printf(a,
                                   "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 3}\n"
                                   "data: {batch: 2, " PACKED ", dtype: f64}\nmesh: {cp: 4}\n"
                                   "context_parallel: {mode: %s, order: %s}\n",
                                   modes[i / 3], orders[order]),
                      false);
        for (int rank = 0; rank < 4; rank++)
            if (fabs(pairs_on(r.t, rank) - want[rank]) > 1e-9)
                fail_msg("%s, %s: rank %d computes %g pairs, %g wanted", modes[i / 3],
                         orders[order], rank, pairs_on(r.t, rank), want[rank]);
        arena_free(a);
    }
}
/* Layers of one plan with other masks have other loads: chunks of what a rank holds are equal work,
 * all keys before it are not. */
static void test_loads_of_layers(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_good(a,
                          "model: {layers: all, config: {model_type: llama4_text, " SIZES
                          ", no_rope_layer_interval: 2, attention_chunk_size: 6, moe_layers: []}}\n"
                          "data: {batch: 2, sequence: 24, dtype: f64}\nmesh: {cp: 4}\n"
                          "context_parallel: {mode: all_gather, order: contiguous}\n",
                          false);
    for (int rank = 0; rank < 4; rank++)
        for (int i = 0; i < r.t->n_computes; i++) {
            const TraceCompute *c = &r.t->computes[i];
            if (!c->makes.of || (c->ranks.n && !rankset_has(&c->ranks, rank))) continue;
            double pairs = c->flops / (2.0 * (4 + 4) * B * 4);
            if (!strcmp(c->makes.of, "layers.0.attn_context")) assert_true(pairs == 21);
            if (!strcmp(c->makes.of, "layers.1.attn_context")) assert_true(pairs == 36 * rank + 21);
        }
    arena_free(a);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *data, *code;
    } rows[] = {{"sequence: 10, documents: [5, 3]", "E0307"},
                {"sequence: 10, documents: [5, 6]", "E0307"},
                {"documents: []", "E0301"},
                {"documents: [5, 0]", "E0302"},
                {"documents: [5, -3, 8]", "E0302"},
                {"documents: {a: 1}", "E0301"},
                {"documents: [9223372036854775807, 2]", "E0302"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a, "model: {config: {" SIZES "}}\ndata: {%s}\nmesh: {cp: 2}\n", rows[i].data);
        PlanRun r = plan_run(a, "packed.yaml", text, false);
        if (run_has(&r, rows[i].code)) {
            arena_free(a);
            continue;
        }
        run_print(&r);
        fail_msg("%s: no %s", text, rows[i].code);
    }
    Arena *a = arena_new();
    PlanRun r = plan_run(
        a, "packed.yaml",
        "model: {kind: mlp, sizes: [4, 4]}\ndata: {documents: [1]}\nmesh: {a: 1}\n", false);
    assert_true(run_has(&r, "E0215"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),  cmocka_unit_test(test_core),
        cmocka_unit_test(test_work),    cmocka_unit_test(test_loads_of_layers),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
