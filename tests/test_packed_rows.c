/* Documents that differ from row to row of a batch (`documents: [[..], [..]]`): each row computes
 * what it computes alone, in a batch of one with its own list, forward and backward, in every mode
 * and order of context parallelism, with rows on different ranks and on one, whatever attends. The
 * work of a rank is that of its own rows; what does not fit is told. */
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { S = 24, B = 2, V = 11 };
#define ROWS "documents: [[5, 3, 9, 7], [10, 14]]"
static const char *const own[] = {"documents: [5, 3, 9, 7]", "documents: [10, 14]"};
static const char *const modes[] = {"all_gather", "ulysses", "ring", "ring, keep_kv: false",
                                    "ring, backward: chain, rfa: true"};
static const char *const orders[] = {"contiguous", "zigzag", "striped"};
enum { N_MODES = sizeof modes / sizeof *modes };

/* Row b of a value of the whole run is `scale` times that of the row's own run. */
static void hold_row(Arena *a, const SafeTensors *whole, const SafeTensors *alone, const char *name,
                     int b, double scale) {
    int64_t all, n;
    const double *x = tensor_numbers(a, whole, name, &all), *y = tensor_numbers(a, alone, name, &n);
    assert_int_equal(all, B * n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[b * n + i] - scale * y[i]) < 1e-11 * (1 + fabs(scale * y[i]))))
            fail_msg("row %d of %s: %.17g, alone %.17g", b, name, x[b * n + i], scale * y[i]);
}

typedef struct {
    const char *model;
    const char *held[6]; /* values with their gradients */
} Model;
#define SIZES                                                                                      \
    "hidden_size: 12, intermediate_size: 10, vocab_size: 11, num_hidden_layers: 2, "               \
    "num_attention_heads: 4, num_key_value_heads: 2, head_dim: 4"
#define WHOLE ", layers: all, parts: [embedding, blocks, norm, head, loss]}\n"
static const Model models[] = {
    {"model: {config: {" SIZES ", qk_norm: true}" WHOLE,
     {"embed", "layers.0.q_proj", "layers.0.k_proj", "layers.1.v_proj"}},
    {"model: {config: {model_type: llama4_text, " SIZES ", no_rope_layer_interval: 2, "
     "attention_chunk_size: 4, moe_layers: [], floor_scale: 2}" WHOLE,
     {"embed", "layers.0.k_proj", "layers.1.q_proj", "layers.1.k_proj"}},
    {"model: {config: {model_type: deepseek_v3, hidden_size: 12, num_attention_heads: 4, "
     "num_key_value_heads: 4, q_lora_rank: 6, kv_lora_rank: 5, qk_nope_head_dim: 4, "
     "qk_rope_head_dim: 2, v_head_dim: 3, intermediate_size: 10, vocab_size: 11, "
     "num_hidden_layers: 2, first_k_dense_replace: 2, rope_interleave: true}" WHOLE,
     {"embed", "layers.0.o_proj", "layers.1.kv_a_proj"}},
};
/* Ids and labels of rows [b, b + n), which depend on the row. */
static const char *tokens_of(Arena *a, int b, int n) {
    int64_t *ids = ARENA_ARRAY(a, int64_t, 2 * n * S), *labels = ids + (ptrdiff_t)n * S;
    for (int64_t i = 0; i < n * S; i++) {
        int64_t at = (int64_t)b * S + i;
        ids[i] = at * at % V;
        labels[i] = (3 * at + 1) % V;
    }
    const NewTensor t[] = {{.name = "input_ids", .nd = 2, .shape = {n, S}, .ids = ids},
                           {.name = "labels", .nd = 2, .shape = {n, S}, .ids = labels}};
    return write_tensors(a, arena_printf(a, "rows.%d.%d.safetensors", b, n), t, 2);
}
static void hold_model(Arena *a, const Model *m, SafeTensors *const *alone, const char *rest) {
    SafeTensors *whole = plan_values(
        a,
        arena_printf(a, "%sdata: {inputs: %s, " ROWS ", dtype: f64}\npass: backward\n%s", m->model,
                     tokens_of(a, 0, B), rest),
        "rows.safetensors");
    for (int b = 0; b < B; b++)
        for (int i = 0; m->held[i]; i++) {
            hold_row(a, whole, alone[b], m->held[i], b, 1);
            hold_row(a, whole, alone[b], arena_printf(a, "grad.%s", m->held[i]), b, 1.0 / B);
        }
    st_close(whole);
}
static void test_models(void **state) {
    (void)state;
    static const char *const more[] = {
        "mesh: {one: 1}\n", "mesh: {dp: 2}\n",
        "mesh: {r: 2, u: 2}\ncontext_parallel: {mode: usp, ring: r, ulysses: u, order: zigzag}\n",
        ("mesh: {dp: 2, cp: 3}\ncontext_parallel: {mode: ring, order: striped}\n"
         "data_parallel: fsdp\nrecompute: block\n")};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        Arena *a = arena_new();
        SafeTensors *alone[B];
        for (int b = 0; b < B; b++)
            alone[b] = plan_values(
                a,
                arena_printf(
                    a, "%sdata: {inputs: %s, %s, dtype: f64}\nmesh: {one: 1}\npass: backward\n",
                    models[i].model, tokens_of(a, b, 1), own[b]),
                arena_printf(a, "alone.%d.safetensors", b));
        for (size_t k = 0; k < sizeof more / sizeof *more; k++)
            hold_model(a, &models[i], alone, more[k]);
        for (int k = 0; k < 3 * N_MODES; k++) {
            Arena *tmp = arena_new();
            hold_model(
                tmp, &models[i], alone,
                arena_printf(tmp, "mesh: {cp: %d%s}\ncontext_parallel: {mode: %s, order: %s}\n",
                             k % 2 ? 2 : 4, k % 3 ? "" : ", dp: 2", modes[k / 3], orders[k % 3]));
            arena_free(tmp);
        }
        for (int b = 0; b < B; b++) st_close(alone[b]);
        arena_free(a);
    }
}

/* ---- micro-batches: each has rows of its own ---- */
#define FOUR "documents: [[5, 3, 9, 7], [10, 14], [24], [1, 1, 22]]"
static void hold_gradient(Arena *a, const SafeTensors *one, const SafeTensors *parts,
                          const char *name) {
    int64_t n, m;
    const double *x = tensor_numbers(a, one, name, &n), *y = tensor_numbers(a, parts, name, &m);
    assert_int_equal(n, m);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) < 1e-11 * (1 + fabs(x[i]))))
            fail_msg("%s: %.17g, in micro-batches %.17g", name, x[i], y[i]);
}
/* The gradients are those of the whole batch at once, however the batch goes through. */
static void test_microbatches(void **state) {
    (void)state;
    static const char *const more[] = {
        "mesh: {one: 1}\n",
        "mesh: {dp: 2}\n",
        "mesh: {cp: 2}\ncontext_parallel: {mode: ring, order: zigzag}\n",
        "mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 4}\n",
        "mesh: {pp: 2, cp: 2}\npipeline: {schedule: zb-h1, microbatches: 4, recompute: stage}\n",
        "mesh: {pp: 2}\npipeline: {schedule: dualpipe, microbatches: 4}\n"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        Arena *a = arena_new();
        SafeTensors *one = plan_values(a,
                                       arena_printf(a,
                                                    "%sdata: {inputs: %s, " FOUR ", dtype: f64}\n"
                                                    "mesh: {one: 1}\npass: backward\n",
                                                    models[i].model, tokens_of(a, 0, 4)),
                                       "one.safetensors");
        for (int k = 0; k < 6; k++) {
            int parts = k == 1 ? 2 : 4; /* of two rows, or one */
            SafeTensors *x = plan_values(
                a,
                arena_printf(a,
                             "%sdata: {inputs: %s, " FOUR ", microbatches: %d, dtype: f64}\n"
                             "pass: backward\n%s",
                             models[i].model, tokens_of(a, 0, 4), parts, more[k]),
                "parts.safetensors");
            int held = 0;
            for (int t = 0; t < one->n; t++) {
                if (strncmp(one->t[t].name, "grad.param.", 11) != 0) continue;
                hold_gradient(a, one, x, one->t[t].name);
                held++;
            }
            assert_true(held > 20);
            st_close(x);
        }
        st_close(one);
        arena_free(a);
    }
}

/* ---- work: pairs of query and key of a rank's own rows ---- */
static double pairs_on(const Trace *t, int64_t rank) {
    double flops = 0;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        const char *of = c->makes.of ? c->makes.of : "";
        if (strcmp(of, "attn_context") != 0 && strncmp(of, "attn_part.", 10) != 0) continue;
        if (c->pass == PHASE_FORWARD && strcmp(c->op, "split") &&
            (!c->ranks.n || rankset_has(&c->ranks, rank)))
            flops += c->flops;
    }
    return flops / (2.0 * (3 + 3) * 4);
}
static void test_work(void **state) {
    (void)state;
    static const int rows[B][4] = {{5, 3, 9, 7}, {10, 14}};
    static const char *const masks[] = {"causal", "none"};
    for (int i = 0; i < 2 * 2 * 2; i++) {
        Arena *a = arena_new();
        bool ring = i & 1, dp = i >> 1 & 1, full = i >> 2 & 1;
        PlanRun r = plan_good(
            a,
            arena_printf(a,
                         "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 3, mask: %s}\n"
                         "data: {" ROWS ", dtype: f64}\nmesh: {%scp: 4}\n"
                         "context_parallel: {mode: %s, order: contiguous}\n",
                         masks[full], dp ? "dp: 2, " : "", ring ? "ring" : "all_gather"),
            false);
        double want[B][4] = {{0}};
        for (int b = 0; b < B; b++)
            for (int k = 0, from = 0; k < 4; from += rows[b][k++])
                for (int t = from; t < from + rows[b][k]; t++)
                    want[b][t / 6] += full ? rows[b][k] : t - from + 1;
        for (int rank = 0; rank < (dp ? 8 : 4); rank++) {
            double due = dp ? want[rank / 4][rank % 4] : want[0][rank] + want[1][rank];
            if (fabs(pairs_on(r.t, rank) - due) > 1e-9)
                fail_msg("%d: rank %d computes %g pairs, %g wanted", i, rank, pairs_on(r.t, rank),
                         due);
        }
        arena_free(a);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *data, *code;
    } rows[] = {{"batch: 3, documents: [[4, 4], [8]]", "E0307"},
                {"batch: 2, documents: [[8]]", "E0307"},
                {"documents: [[4, 4], [7]]", "E0307"},
                {"sequence: 9, documents: [[4, 4], [9]]", "E0307"},
                {"documents: [[4, 4], []]", "E0301"},
                {"documents: [[4, 4], 8]", "E0301"},
                {"documents: [8, [4, 4]]", "E0301"},
                {"documents: [[4, [4]], [8]]", "E0301"},
                {"documents: '4,4'", "E0301"},
                {"documents: [[4, 0, 4], [8]]", "E0302"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a, "model: {config: {" SIZES "}}\npass: backward\ndata: {%s}\nmesh: {cp: 2}\n",
            rows[i].data);
        PlanRun r = plan_run(a, "rows.yaml", text, false);
        if (!run_has(&r, rows[i].code)) {
            run_print(&r);
            fail_msg("%s: no %s", text, rows[i].code);
        }
        arena_free(a);
    }
    Arena *a = arena_new(); /* rows that are the same are one list: micro-batches have no quarrel */
    PlanRun r = plan_good(a,
                          "model: {config: {" SIZES "}}\npass: backward\nmesh: {cp: 2}\n"
                          "data: {microbatches: 2, documents: [[4, 4], [4, 4]]}\n",
                          true);
    assert_int_equal(r.t->n_unasked, 0);
    arena_free(a);
}
/* The records show one micro-batch: its work is the mean of them all. */
static void test_work_of_microbatches(void **state) {
    (void)state;
    Arena *a = arena_new();
    for (int i = 0; i < 2; i++) {
        PlanRun r =
            plan_good(a,
                      arena_printf(a,
                                   "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 3}\n"
                                   "data: {" ROWS ", dtype: f64, microbatches: 2}\nmesh: {%s}\n"
                                   "pass: backward\n",
                                   i ? "cp: 2" : "one: 1"),
                      false);
        double one = 0, both = 0; /* queries see what is before them in their document */
        for (int k = 0; k < 4; k++) one += (double[]){15, 6, 45, 28}[k];
        both = (one + 55 + 105) / 2;
        double all = 0;
        for (int rank = 0; rank <= i; rank++) all += pairs_on(r.t, rank);
        assert_float_equal(all, both, 1e-9);
    }
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models), cmocka_unit_test(test_microbatches),
        cmocka_unit_test(test_work), cmocka_unit_test(test_work_of_microbatches),
        cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
