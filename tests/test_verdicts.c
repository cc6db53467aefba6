/* What decides a verdict beside the check of each step: sources in every micro-batch and training
 * step, and the end of the run against the unsharded model. Each case here once came out
 * `equivalent`. Run from the project's root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/file.h"
#include "ops/op.h"
#include "render/furniture/words.h"
#include "support/child.h"
#include "support/spoil.h"
#include "support/support.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL                                                                                      \
    "hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 2, "         \
    "vocab_size: 7, head_dim: 4"
#define LLAMA "model: {config: {" SMALL "}, parts: [embedding, blocks, norm, head, loss]}\n"

static const char *const dtypes[] = {"f32", "f64"};

/* The message of the first diagnostic of a code, or NULL. */
static const char *message_of(const PlanRun *r, const char *code) {
    for (int i = 0; i < r->d->n; i++)
        if (!strcmp(r->d->item[i].code, code)) return r->d->item[i].message;
    return NULL;
}
/* The run must come out `different`, its first wrong value `value`, with `words` in the message. */
static void must_differ(const PlanRun *r, const char *value, const char *words) {
    const char *text = message_of(r, "E0501");
    bool good = run_is(r, "different") && text;
    if (!good || !strstr(text, words) || (value && strcmp(r->t->first_wrong, value) != 0)) {
        run_print(r);
        fail_msg("not different, or not in %s with '%s': %s", value, words,
                 text ? text : "no E0501");
    }
}
static void must_equal(const PlanRun *r) {
    bool good = run_is(r, "equivalent");
    if (good) return;
    run_print(r);
    fail_msg("not equivalent");
}

/* ---- sources ---- */
/* Labels [steps, 4, 8] (no leading dim for one step) of which those in `ignored` do not count. */
static const char *label_file(Arena *a, int steps, bool (*ignored)(int step, int row, int token)) {
    int64_t *ids = ARENA_ARRAY(a, int64_t, 32 * steps),
            *labels = ARENA_ARRAY(a, int64_t, 32 * steps);
    for (int i = 0; i < 32 * steps; i++) {
        ids[i] = (i * 5 + i / 7) % 7;
        labels[i] = ignored(i / 32, i / 8 % 4, i % 8) ? -100 : (i * 3 + i / 5) % 7;
    }
    NewTensor t[] = {{.name = "input_ids", .nd = 2, .shape = {4, 8}, .ids = ids},
                     {.name = "labels", .nd = 2, .shape = {4, 8}, .ids = labels}};
    for (int k = 0; k < 2 && steps > 1; k++) {
        t[k].nd = 3;
        t[k].shape[0] = steps, t[k].shape[1] = 4, t[k].shape[2] = 8;
    }
    return write_tensors(a, "labels.safetensors", t, 2);
}
static bool first_half(int step, int row, int token) {
    (void)step, (void)token;
    return row < 2;
}
static bool ragged_later(int step, int row, int token) {
    return step == 1 && row == 3 && token > 2;
}

static PlanRun local_means(Arena *a, const char *dtype, const char *labels, const char *more) {
    const char *text =
        arena_printf(a,
                     LLAMA "data: {inputs: %s, dtype: %s, microbatches: 2}\nmesh: {dp: 2}\n"
                           "loss: {kind: cross_entropy, normalise: local_mean}\n%s",
                     labels, dtype, more);
    return plan_run(a, "verdicts.yaml", text, true);
}
/* No label counts in micro-batch 0, all do in micro-batch 1: the weights of 0 are right, those of 1
 * half of it. */
static void test_sources_of_every_micro_batch(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        Arena *a = arena_new();
        PlanRun r = local_means(a, dtypes[k], label_file(a, 1, first_half),
                                "pass: train\noptimizer: {name: sgd, lr: 0.1, steps: 1}\n");
        must_differ(&r, "loss_weights", "normalise: local_mean");
        assert_non_null(strstr(message_of(&r, "E0501"), "in micro-batch 1"));
        arena_free(a);
    }
}
static void test_sources_of_every_step(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        Arena *a = arena_new();
        PlanRun r = local_means(a, dtypes[k], label_file(a, 2, ragged_later),
                                "pass: train\noptimizer: {name: sgd, lr: 0.1, steps: 2}\n");
        must_differ(&r, "loss_weights", "normalise: local_mean");
        assert_non_null(strstr(message_of(&r, "E0501"), "(in training step 1)"));
        arena_free(a);
    }
}
/* A step of a pipeline reads the data of that step for its last micro-batch too, also where ranks
 * keep all that they held. */
static bool none_ignored(int step, int row, int token) {
    (void)step, (void)row, (void)token;
    return false;
}
static void test_a_pipeline_reads_every_step(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        static const char *const schedule[] = {"gpipe", "1f1b", "zb-h1", "dualpipe"};
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {config: {hidden_size: 8, intermediate_size: 8, num_hidden_layers: 2, "
            "num_attention_heads: 2, vocab_size: 7, head_dim: 4}, layers: 2, parts: [embedding, "
            "blocks, norm, "
            "head, loss]}\ndata: {inputs: %s, dtype: %s}\nmesh: {pp: 2}\n"
            "pipeline: {schedule: %s, microbatches: 4}\nloss: {kind: cross_entropy}\n"
            "pass: train\noptimizer: {name: sgd, lr: 0.1, steps: 3}\n",
            label_file(a, 3, none_ignored), dtypes[k % 2], schedule[k]);
        PipelineOptions o = {.execute = true};
        PlanRun some = plan_run_with(a, "verdicts.yaml", text, &o);
        o.distances = true;
        PlanRun all = plan_run_with(a, "verdicts.yaml", text, &o);
        must_equal(&some);
        must_equal(&all);
        assert_int_equal(some.t->n_pass, all.t->n_pass);
        arena_free(a);
    }
}

/* ---- the end of the run ---- */
/* Each micro-batch's variance would be right, and their sum not that of the batch, which no single
 * step shows: it is refused. */
static void test_reference_is_the_whole_batch(void **state) {
    (void)state;
    static const char *const passes[] = {"backward",
                                         "train\noptimizer: {name: sgd, lr: 0.1, steps: 2}"};
    for (int k = 0; k < 4; k++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a,
                         "model: {kind: mlp, sizes: [6, 10, 4], bias: true}\n"
                         "data: {rows: 8, dtype: %s, microbatches: %d}\nmesh: {tp: 2}\nloss: var\n"
                         "plan: {net1: colwise, net2: rowwise}\npass: %s\n",
                         dtypes[k % 2], 2, passes[k / 2]);
        PlanRun r = plan_run(a, "verdicts.yaml", text, true);
        assert_null(r.t);
        assert_non_null(strstr(message_of(&r, "E0214"), "no sum over its micro-batches"));
        arena_free(a);
    }
}
/* Where the loss is a sum over tokens they do, whatever the shapes, the labels that count, and what
 * is cut by what. */
static bool ragged(int step, int row, int token) {
    return token > 7 - (row + step) % 3 * 2 || row == 2;
}
static void test_micro_batches_are_the_batch(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int parts;
    } meshes[] = {
        {"mesh: {dp: 1}\n", 4},
        {"mesh: {dp: 2, tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3\n", 2},
        {"mesh: {cp: 2}\ncontext_parallel: {order: zigzag}\n", 4},
        {"mesh: {dp: 2, cp: 2}\ndata_parallel: {mode: fsdp, axis: dp*cp}\n", 2},
    };
    static const char *const passes[] = {
        "pass: backward\n",
        "pass: train\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9, steps: 2}\n",
        "pass: train\noptimizer: {name: adamw, lr: 0.01, clip: 0.5, steps: 2}\n",
    };
    static const char *const losses[] = {"", "loss: sum\n", "loss: dot\n",
                                         "loss: {kind: cross_entropy, label_smoothing: 0.1}\n"};
    for (int k = 0; k < 48; k++) {
        Arena *a = arena_new();
        bool train = k % 3 > 0;
        const char *text = arena_printf(
            a, LLAMA "data: {inputs: %s, dtype: %s, microbatches: %d}\n%s%s%s",
            label_file(a, train ? 2 : 1, ragged), dtypes[k / 12 % 2], meshes[k / 3 % 4].parts,
            meshes[k / 3 % 4].text, passes[k % 3], losses[(k + k / 12) % 4]);
        PlanRun r = plan_run(a, "verdicts.yaml", text, true);
        must_equal(&r);
        assert_true(r.rep.end_to_end_rel <= r.rep.end_to_end_bound);
        arena_free(a);
    }
}
/* What belongs to one micro-batch is compared with its rows of the batch: the output, and the
 * gradient of the input. */
static void test_rows_of_the_last_micro_batch(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {config: {" SMALL "}}\nloss: %s\nmesh: {dp: 2}\npass: backward\n"
            "data: {batch: 6, sequence: 5, dtype: %s, microbatches: 3, input_gradient: true}\n",
            k < 2 ? "sum" : "dot", dtypes[k % 2]);
        PlanRun r = plan_run(a, "verdicts.yaml", text, true);
        must_equal(&r);
        arena_free(a);
    }
}
/* A gradient that is zero but for rounding has no magnitude: without rotation the bias of the keys
 * moves all scores of a query alike. Adam keeps its square, and divides by that. */
static void test_a_key_bias_without_rotation(void **state) {
    (void)state;
    static const char *const optimizers[] = {"{name: adamw, lr: 0.01, steps: 1}",
                                             "{name: adamw, lr: 0.3, steps: 3, clip: 0.1}",
                                             "{name: adamw, lr: 0.1, steps: 8, weight_decay: 0.1}",
                                             "{name: sgd, lr: 0.3, momentum: 0.9, steps: 3}"};
    for (int k = 0; k < 32; k++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {layers: all, config: {model_type: llama4_text, hidden_size: 12, head_dim: 4, "
            "intermediate_size: 10, num_attention_heads: 4, num_key_value_heads: 2, vocab_size: "
            "11, num_hidden_layers: 2, no_rope_layers: [0, 0], moe_layers: [], attention_bias: "
            "true, use_qk_norm: false, attn_temperature_tuning: false}, parts: [embedding, blocks, "
            "norm, head, loss]}\ndata: {batch: 4, sequence: 8, dtype: %s, seed: %d%s}\nmesh: {dp: "
            "2, tp: 2}\nnames: hf\npass: train\nplan:\n"
            "  model.layers.*.self_attn.[qkv]_proj: colwise\n"
            "  model.layers.*.self_attn.o_proj: rowwise\n"
            "  model.layers.*.feed_forward.[gu]*_proj: colwise\n"
            "  model.layers.*.feed_forward.down_proj: rowwise\noptimizer: %s\n",
            dtypes[k / 4 % 2], 100 + k, k & 8 ? ", microbatches: 2" : "", optimizers[k % 4]);
        PlanRun r = plan_run(a, "verdicts.yaml", text, true);
        must_equal(&r);
        arena_free(a);
    }
}
/* The same with a rotation: small, and not zero. */
static void test_a_value_that_is_zero(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {config: {" SMALL
            ", k_bias: true}, parts: [embedding, blocks, norm, head, loss]}\n"
            "data: {sequence: 12, dtype: %s}\nmesh: {tp: 2}\npass: %s\nnames: torchtitan\n"
            "plan:\n  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n",
            dtypes[k % 2],
            k < 2 ? "backward" : "train\noptimizer: {name: adamw, lr: 0.01, steps: 3}");
        PlanRun r = plan_run(a, "verdicts.yaml", text, true);
        must_equal(&r);
        arena_free(a);
    }
}
/* Weights so small that numbers on the way are among the smallest of a dtype, where they get no
 * closer, or below them: one device is off by as much, also where later weights make them large
 * again. Each layer's weights are about 10 to the power that stands here. */
static const char *small_weights(Arena *a, const int power[4]) {
    static const int64_t size = 8;
    NewTensor t[4];
    for (int k = 0; k < 4; k++) {
        double *x = ARENA_ARRAY(a, double, size *size);
        for (int64_t i = 0; i < size * size; i++)
            x[i] = ((double)((i * 37 + k * 11) % 101) - 50) / 25 * pow(10, power[k]);
        t[k] = (NewTensor){.name = arena_printf(a, "net%d.weight", k + 1), .nd = 2, .x = x};
        t[k].shape[0] = t[k].shape[1] = size;
    }
    return write_tensors(a, "small.safetensors", t, 4);
}
static void test_smallest_numbers(void **state) {
    (void)state;
    static const char *const passes[] = {
        "forward", "backward",
        "train\noptimizer: {name: adamw, lr: 1.0e-20, eps: 1.0e-30, steps: 3}",
        "train\noptimizer: {name: sgd, lr: 1.0e-20, momentum: 0.9, steps: 3}"};
    static const struct {
        const char *dtype;
        int power[4];
    } rows[] = {
        {"f32", {-44, 0, 0, 0}},      {"f32", {-30, -30, 0, 0}}, {"f32", {0, -44, 8, 8}},
        {"f32", {-30, -30, 12, 15}},  {"f64", {-322, 0, 0, 0}},  {"f64", {0, -322, 20, 20}},
        {"f64", {-200, -200, 0, 90}}, {"bf16", {-40, 0, 0, 0}},  {"bf16", {-30, -30, 12, 15}}};
    for (size_t i = 0; i < 8 * sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {kind: mlp, sizes: [8, 8, 8, 8, 8], bias: false, weights: %s}\n"
            "data: {rows: 6, dtype: %s}\nmesh: {tp: 4}\n"
            "plan: {net1: colwise, net2: rowwise, net3: colwise, net4: rowwise}\npass: %s\n",
            small_weights(a, rows[i / 8].power), rows[i / 8].dtype, passes[i % 4]);
        PipelineOptions o = {.execute = true, .threads = 1, .sensitivity = i % 8 > 3};
        PlanRun r = plan_run_with(a, "verdicts.yaml", text, &o);
        must_equal(&r);
        arena_free(a);
    }
}
/* Attention adds up values, each times a probability: of such values every product is off by up to
 * a unit, whatever the share that rounding takes. */
static void test_smallest_values(void **state) {
    (void)state;
    enum { N = 24 * 2 * 4 };
    static const char *const names[] = {"q", "k", "v"}, *const modes[] = {"all_gather", "ring"};
    for (int i = 0; i < 8; i++) {
        Arena *a = arena_new();
        NewTensor t[3];
        for (int k = 0; k < 3; k++) {
            double *x = ARENA_ARRAY(a, double, N), size = k < 2 ? 1 : i % 2 ? 1e-322 : 1e-44;
            for (int n = 0; n < N; n++)
                x[n] = ((n * 37 + k * 11) % 101 - 50) / 25.0 * (i / 4 ? 100 : 1) * size;
            t[k] = (NewTensor){.name = names[k], .nd = 4, .shape = {1, 24, 2, 4}, .x = x};
        }
        const char *text = arena_printf(
            a,
            "model: {kind: attention, heads: 2, kv_heads: 2, head_dim: 4}\n"
            "data: {dtype: %s, inputs: %s}\nmesh: {cp: 4}\n"
            "pass: backward\ncontext_parallel: {mode: %s}\n",
            dtypes[i % 2], write_tensors(a, "values.safetensors", t, 3), modes[i / 2 % 2]);
        PlanRun r = plan_run(a, "verdicts.yaml", text, true);
        must_equal(&r);
        arena_free(a);
    }
}
/* Dozens of narrow layers trained by Adam, which divides a gradient by its own size: in f32 the
 * first steps of some numbers have no digit left, and that is no mistake. */
static void test_no_digit_left(void **state) {
    (void)state;
    static const char *const seeds[] = {"2", "5", "103", "119", "429"}; /* were called wrong */
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a,
                         "model: {preset: qwen2-0.5b, shrink: 512, layers: all, parts: [blocks]}\n"
                         "data: {batch: 3, sequence: 10, dtype: f32, seed: %s}\nmesh: {dp: 1}\n"
                         "pass: train\noptimizer: {name: adamw, lr: 0.07, clip: 0.25, steps: %d}\n",
                         seeds[i], i % 2 ? 3 : 1);
        PlanRun r = plan_run(a, "verdicts.yaml", text, true);
        must_equal(&r);
        arena_free(a);
    }
}
static const char *runs_away(Arena *a, const char *seed, const char *lr) {
    return arena_printf(
        a,
        "model: {layers: 2, config: {model_type: deepseek_v3, hidden_size: 1, "
        "intermediate_size: 1, num_hidden_layers: 2, num_attention_heads: 1, vocab_size: 1, "
        "first_k_dense_replace: 0, n_routed_experts: 4, num_experts_per_tok: 1, "
        "moe_intermediate_size: 4, norm_topk_prob: false, n_group: 2, topk_group: 1, "
        "q_lora_rank: 2, kv_lora_rank: 2, qk_nope_head_dim: 2, qk_rope_head_dim: 2, "
        "v_head_dim: 1}}\ndata: {dtype: bf16, seed: %s}\nmesh: {}\npass: train\n"
        "optimizer: {name: sgd, lr: %s, steps: 3}\n",
        seed, lr);
}
/* Steps so long that training leaves what it started from: bf16 decides where to, by factors of
 * hundreds from one device to the next, and that is no mistake; nor is a norm of numbers whose
 * squares float32 lacks (N0020), or a softmax of scores that are off by more than a probability can
 * be. In steps that are none of these a
 * value is held as ever. */
static void test_training_that_runs_away(void **state) {
    (void)state;
    static const struct {
        const char *seed, *lr;
        bool away, beyond; /* a norm's squares are larger than float32 has */
    } rows[] = {{"4", "1.0e-3", true, false},  {"37", "1.0e-3", true, false},
                {"4", "1.0e-5", false, false}, {"3", "1.0e-3", true, true},
                {"6", "1.0e-3", true, true},   {"8", "1.0e-3", true, true},
                {"32", "1.0e-3", true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        const char *text = runs_away(a, rows[i].seed, rows[i].lr);
        PipelineOptions o = {.execute = true, .threads = 1, .sensitivity = true};
        PlanRun plain = plan_run(a, "verdicts.yaml", text, true),
                r = plan_run_with(a, "verdicts.yaml", text, &o);
        must_equal(&plain);
        must_equal(&r);
        double off = fabs(r.rep.loss - r.rep.loss_unsharded);
        assert_int_equal(
            run_diag(&r, "N0020", "the first in layers.1.input_norm (in training step 2)") != NULL,
            rows[i].beyond);
        assert_true(rows[i].away ? off > fabs(r.rep.loss_unsharded)
                                 : plain.rep.end_to_end_bound < 0.1);
        arena_free(a);
    }
}
/* What was made before the first of these numbers is held all the same: the first loss changes
 * after its check. The second is one that rounding decides. */
typedef struct {
    int64_t in, begun; /* the training step whose loss is changed; that which runs, from 1 */
} Changed;
static void change_loss(void *arg, Exec *e, const Step *s, bool checked) {
    Changed *x = arg;
    if (s->out != e->p->loss || !checked) return;
    if (++x->begun == x->in) spoil_all(e, s->out, 16); /* in bf16 rounding makes some of it */
}
static void test_before_numbers_run_away(void **state) {
    (void)state;
    for (int in = 0; in <= 2; in++) {
        Arena *a = arena_new();
        Changed x = {.in = in};
        PipelineOptions o = {.execute = true, .threads = 1, .watch = change_loss, .watch_arg = &x};
        PlanRun r = plan_run_with(a, "verdicts.yaml", runs_away(a, "3", "1.0e-3"), &o);
        assert_non_null(run_diag(&r, "N0020", "(in training step 2)"));
        assert_int_equal(x.begun, 3);
        if (in != 1) must_equal(&r);
        else assert_true(r.t->first_wrong && !strcmp(r.t->first_wrong, "loss"));
        arena_free(a);
    }
}
/* The same around a ring, whose backward makes probabilities of the whole's lse: where scores are
 * so large that their exponent has no digit left, a probability may be anything, be below the
 * smallest number that float32 has, or stand beside a difference of two numbers that are the same.
 */
static void test_rings_that_run_away(void **state) {
    (void)state;
    static const struct {
        const char *dtype, *seed, *lr, *mode;
    } rows[] = {{"f32", "1", "0.04", "ring"},
                {"f32", "2", "0.04", "ring, order: zigzag"},
                {"f32", "3", "0.08", "ring"},
                {"bf16", "2", "0.08", "ring, backward: chain"},
                {"bf16", "3", "0.3", "ring, backward: chain"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(
            a, "verdicts.yaml",
            arena_printf(a,
                         "model: {layers: all, config: {hidden_size: 3, intermediate_size: 1, "
                         "num_hidden_layers: 2, num_attention_heads: 2, vocab_size: 1, head_dim: "
                         "2}}\ndata: {dtype: %s, seed: %s}\nmesh: {cp: 2}\n"
                         "context_parallel: {mode: %s}\npass: train\n"
                         "optimizer: {name: sgd, lr: %s, steps: 4}\n",
                         rows[i].dtype, rows[i].seed, rows[i].mode, rows[i].lr),
            true);
        must_equal(&r);
        arena_free(a);
    }
}
/* --sensitivity measures a bound for every value, far below the fixed one, and no rounding passes
 * it. */
static void test_sensitivity(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a,
                         LLAMA "data: {batch: 4, sequence: 12, dtype: %s}\nmesh: {dp: 2, tp: 2}\n"
                               "names: torchtitan\nrecipe: torchtitan-llama3\npass: %s\n",
                         dtypes[k % 2], k < 2 ? "forward" : "backward");
        PlanRun fixed = plan_run(a, "verdicts.yaml", text, true);
        PipelineOptions o = {.execute = true, .threads = 1, .sensitivity = true};
        PlanRun r = plan_run_with(a, "verdicts.yaml", text, &o);
        must_equal(&r);
        must_equal(&fixed);
        assert_true(fixed.rep.end_to_end_bound == (k % 2 ? 1e-9 : 1e-2));
        assert_true(r.rep.end_to_end_rel > 0 && r.rep.end_to_end_rel <= r.rep.end_to_end_bound);
        assert_true(r.rep.end_to_end_bound <= fixed.rep.end_to_end_bound / 20);
        arena_free(a);
    }
}
/* ---- the bound of attention's gradients ---- */
typedef struct {
    int operand; /* of attention whose cotangent is multiplied on all ranks, before its check */
    double factor;
    int done;
} Wrong;
static void multiply(void *arg, Exec *e, const Step *s, bool checked) {
    Wrong *w = arg;
    if (checked || s->kind != ST_ADJOINT || s->operand != w->operand) return;
    if (strcmp(e->p->graph->node[s->node].op->name, "attention") != 0) return;
    spoil_all(e, s->out, w->factor);
    w->done++;
}
static PlanRun run_wrong(Arena *a, const char *file, const PlanSet *sets, int n_sets, Wrong *w) {
    PlanRun r = {.d = diags_new(a)};
    size_t n;
    const char *text = child_read(a, file, &n);
    PipelineOptions o = {.execute = true, .threads = 1, .watch = multiply, .watch_arg = w};
    assert_non_null(text);
    r.t = pipeline_run(a, r.d, (PlanText){file, text, n, sets, n_sets}, &o, &r.rep);
    assert_true(w->done > 0);
    return r;
}
/* On all ranks alike no replica shows it: the bound of what is really summed does. */
static void test_attention_gradients(void **state) {
    (void)state;
    static const PlanSet longer[] = {{"data.sequence", "256"}, {"model.shrink", "16"}};
    static const char *const names[] = {"q_rope", "k_rope", "v_proj"};
    for (int operand = 0; operand < 3; operand++)
        for (int k = 0; k < 2; k++) {
            Arena *a = arena_new();
            Wrong gone = {.operand = operand}, more = {.operand = operand, .factor = 1.1};
            const char *file = "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", *name;
            PlanRun r = run_wrong(a, file, longer, k ? 0 : 2, k ? &more : &gone);
            name = arena_printf(a, "grad.layers.0.%s", names[operand]);
            must_differ(&r, name, "");
            arena_free(a);
        }
}
/* ... and it holds: f32 against f64, with scores from flat to saturated and queries in zigzag
 * order. */
enum { AT_B = 2, AT_T = 48, AT_S = 96, AT_K = 2, AT_G = 3, AT_X = 8 };
static Tensor random_tensor(Arena *a, uint64_t *seed, double size, int nd, const int64_t *n,
                            float **narrow) {
    Tensor t = {.nd = nd};
    memcpy(t.n, n, sizeof *n * (size_t)nd);
    tensor_pack(&t);
    int64_t count = tensor_count(&t);
    double *x = ARENA_ARRAY(a, double, count);
    *narrow = ARENA_ARRAY(a, float, count);
    for (int64_t i = 0; i < count; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        (*narrow)[i] = (float)(size * ((double)(*seed >> 33) * 0x1p-30 - 1));
        x[i] = (double)(*narrow)[i];
    }
    t.p = x;
    return t;
}
static void hold_attention(int operand, double size, int64_t *odd) {
    static const int64_t query[] = {AT_B, AT_T, AT_K, AT_G, AT_X}, key[] = {AT_B, AT_S, AT_K, AT_X};
    Arena *a = arena_new();
    uint64_t seed = (uint64_t)(operand + 1) * 1000 + (uint64_t)size;
    const Op *op = op_find("attention");
    Attrs at = {.scale = 1 / sqrt(AT_X)};
    Rule rule;
    const char *error;
    int pos;
    rule_parse(op->rule, &rule, &error, &pos);
    float *f[4];
    OpCall wide = {.op = op, .rule = &rule, .at = &at, .dtype = DT_F64, .operand = operand};
    wide.in[0] = random_tensor(a, &seed, size, 5, query, &f[0]);
    wide.in[1] = random_tensor(a, &seed, size, 4, key, &f[1]);
    wide.in[2] = random_tensor(a, &seed, 1, 4, key, &f[2]);
    wide.cot = random_tensor(a, &seed, 1, 5, query, &f[3]);
    wide.out = operand ? wide.in[1] : wide.in[0];
    int64_t n = tensor_count(&wide.out), positions[AT_T];
    for (int i = 0; i < AT_T; i++)
        positions[i] = i < AT_T / 2 ? i : AT_S - AT_T + i; /* first and last block */
    wide.index['t' - 'a'] = positions;
    OpCall call = wide;
    call.dtype = DT_F32;
    for (int i = 0; i < 3; i++) call.in[i].p = f[i];
    call.cot.p = f[3];
    float *got = call.out.p = ARENA_ARRAY(a, float, n);
    double *want = wide.out.p = ARENA_ARRAY(a, double, n);
    op->adjoint(&call);
    op->adjoint(&wide);
    OpBound b = {.call = wide, .operand = operand, .u = 0x1p-24};
    b.bound = ARENA_ARRAY(a, double, n), b.prob = ARENA_ARRAY(a, double, n);
    op->bound(&b);
    double used = 0;
    for (int64_t i = 0; i < n; i++) {
        used = fmax(used, fabs((double)got[i] - want[i]) / b.bound[i]);
        *odd += fabs((double)got[i] - want[i]) > b.prob[i];
    }
    if (!(used < 1 && used > 1e-4))
        fail_msg("operand %d, size %g: used %g of the bound", operand, size, used);
    arena_free(a);
}
static void test_attention_bound_holds(void **state) {
    (void)state;
    static const double sizes[] = {0.01, 0.3, 1, 3, 10, 30, 100};
    int64_t odd = 0;
    for (int operand = 0; operand < 3; operand++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            hold_attention(operand, sizes[k], &odd);
    assert_int_equal(odd, 0);
}

/* A product in float64 of operands that are float32 still, and its bounds, have the bits of those
 * of float64 copies; where an op says that it cannot, no rule asks it to. */
static void hold_widening(const char *text, int operand) {
    static const int64_t letter[26] = {
        ['b' - 'a'] = 2, ['t' - 'a'] = 19, ['d' - 'a'] = 21, ['f' - 'a'] = 37, ['e' - 'a'] = 3};
    Arena *a = arena_new();
    uint64_t seed = 7;
    const Op *op = op_find("einsum");
    Rule rule;
    const char *error;
    int pos, nd[3];
    int64_t n[3][LAYOUT_MAX_DIMS];
    assert_true(rule_parse(text, &rule, &error, &pos));
    for (int k = 0; k < 3; k++) {
        const char *of = k < rule.nin ? rule.in[k] : rule.out;
        nd[k] = k < rule.nin ? rule.nl[k] : k < 2 ? 0 : rule.nout;
        for (int d = 0; d < nd[k]; d++) n[k][d] = letter[of[d] - 'a'];
    }
    float *f[3];
    OpCall wide = {.op = op, .rule = &rule, .dtype = DT_F64, .operand = operand};
    for (int k = 0; k < rule.nin; k++) wide.in[k] = random_tensor(a, &seed, 1, nd[k], n[k], &f[k]);
    wide.cot = random_tensor(a, &seed, 1, nd[2], n[2], &f[2]);
    wide.out = operand < 0 ? wide.cot : wide.in[operand];
    bool adjoint = operand >= 0;
    bool two = rule.nin == 2, summed = strcmp(text, "bt,bd->btd") || adjoint;
    assert_int_equal(op->widens(&wide, operand), two && summed);
    /* bit k: operand k, the last: the cotangent */
    const uint32_t subsets = op->widens(&wide, operand) ? 8 : 0;
    const int64_t count = tensor_count(&wide.out);
    double *out[8], *bound[8], *prob[8];
    for (uint32_t floats = 0; floats < subsets; floats++) {
        OpCall call = wide;
        call.floats = floats;
        for (int k = 0; k < 2; k++)
            if (floats >> k & 1) call.in[k].p = f[k];
        if (floats >> 2) call.cot.p = f[2];
        call.out.p = out[floats] = ARENA_ARRAY(a, double, count);
        OpBound b = {.call = call, .operand = operand, .u = 0x1p-24};
        b.bound = bound[floats] = ARENA_ARRAY(a, double, count);
        b.prob = prob[floats] = ARENA_ARRAY(a, double, count);
        adjoint ? op->adjoint(&call) : op->forward(&call);
        op->bound(&b);
        assert_memory_equal(out[0], out[floats], (size_t)count * sizeof(double));
        assert_memory_equal(bound[0], bound[floats], (size_t)count * sizeof(double));
        assert_memory_equal(prob[0], prob[floats], (size_t)count * sizeof(double));
        assert_true(out[floats][count - 1] != 0 && bound[floats][count - 1] > 0);
    }
    arena_free(a);
}
static void test_products_widen(void **state) {
    (void)state;
    static const char *const rules[] = {"btd,fd->btf",  "btf,df->btd", "btd,btf->df", "btd,ed->bte",
                                        "ebd,efd->ebf", "bt,bd->btd",  "btd->d"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) hold_widening(rules[i], -1);
    for (size_t i = 0; i < 6; i++)
        for (int operand = 0; operand < 2; operand++) hold_widening(rules[i], operand);
}

/* ---- level 0 ---- */
static int level0_records(const Trace *t, const char *verdict, int *step) {
    int n = 0;
    for (int i = 0; i < t->n_checks; i++)
        if (t->checks[i].level == 0 && !strcmp(t->checks[i].verdict, verdict)) {
            n++;
            *step = t->checks[i].step;
        }
    return n;
}
/* It says what verify found, where; nothing if verify did not run; and decides no verdict. */
static void test_level0(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int pass, fail;
        bool no_verify;
    } rows[] = {
        {"plans/03-llama3-8b-tp2.yaml", 1, 0, false},
        {"plans/03-llama3-8b-tp2.yaml", 0, 0, true},
        {"plans/bugs/01-output-left-partial.yaml", 0, 1, false},
        {"plans/bugs/03-missing-reduction.yaml", 0, 1, false},
        {"plans/bugs/03-missing-reduction.yaml", 0, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        size_t n;
        const char *text = child_read(a, rows[i].file, &n);
        assert_non_null(text);
        PipelineOptions o = {.execute = true, .threads = 1, .no_verify = rows[i].no_verify};
        PlanRun r = plan_run_with(a, rows[i].file, text, &o);
        assert_non_null(r.t);
        int step = -2, numbers = 0;
        assert_int_equal(level0_records(r.t, "PASS", &step), rows[i].pass);
        assert_true(step == (rows[i].pass ? -1 : -2));
        assert_true(level0_records(r.t, "FAIL", &step) >= rows[i].fail);
        assert_true(rows[i].fail || step < 0);
        for (int k = 0; k < r.t->n_checks; k++) {
            const TraceCheck *c = &r.t->checks[k];
            if (rows[i].fail && c->level == 0) assert_true(c->step >= 0 && c->cause && c->value);
            numbers += c->level > 0 && !strcmp(c->verdict, "FAIL");
        }
        assert_int_equal(r.t->n_fail, numbers);
        run_must_be(&r, numbers ? "different" : "equivalent");
        arena_free(a);
    }
}
/* A structure that is wrong and does no harm to these numbers: the other rank's share of the sum is
 * zero. */
static void test_lucky(void **state) {
    (void)state;
    Arena *a = arena_new();
    double zero[32] = {0}, one[32];
    for (int i = 0; i < 32; i++) one[i] = i < 16 ? i + 1 : 0;
    NewTensor t[] = {{.name = "net1.weight", .nd = 2, .shape = {4, 4}, .x = one},
                     {.name = "net2.weight", .nd = 2, .shape = {4, 4}, .x = zero}};
    const char *text = arena_printf(
        a,
        "model: {kind: mlp, sizes: [4, 4, 4], bias: false, weights: {file: %s}}\n"
        "data: {rows: 2, dtype: f64}\nmesh: {tp: 2}\nplan: {net1: colwise, net2: rowwise}\n"
        "faults: [{at: all_reduce of net2, do: drop}]\n",
        write_tensors(a, "lucky.safetensors", t, 2));
    PlanRun r = plan_run(a, "verdicts.yaml", text, true);
    must_equal(&r);
    int step = -1;
    assert_int_equal(level0_records(r.t, "FAIL", &step), 1);
    assert_int_equal(r.t->n_fail, 0);
    bool said = false;
    for (int i = 0; i < r.d->n; i++)
        said |= strstr(r.d->item[i].message, "no number of this run shows it") != NULL;
    assert_true(said);
    arena_free(a);
}
/* A planted mistake that changes no number is told, so that nobody takes it for one that the check
 * does not see. */
static void test_idle(void **state) {
    (void)state;
    static const char *const faults[] = {"{at: reduce_scatter of net2, scale: 1}",
                                         "{at: keep_first of net2.bias, scale: 1}"};
    for (int k = 0; k < 2; k++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {kind: mlp, sizes: [4, 4, 4], bias: true}\ndata: {rows: 2, dtype: f64}\n"
            "mesh: {tp: 2}\nplan: {net1: colwise, net2: {style: rowwise, output: shard(0)}}\n"
            "faults: [%s]\n",
            faults[k]);
        PlanRun r = plan_run(a, "verdicts.yaml", text, true);
        must_equal(&r);
        int said = 0;
        for (int i = 0; i < r.d->n; i++)
            said += !strcmp(r.d->item[i].code, "W0001") && r.d->item[i].loc.line == 5;
        assert_int_equal(said, 1);
        r = plan_run(a, "verdicts.yaml", text, false); /* shapes alone show it too */
        assert_non_null(run_diag(&r, "W0001", "it does what is due"));
        arena_free(a);
    }
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "verdicts.yaml",
                         "model: {kind: mlp, sizes: [4, 4, 4], bias: false}\n"
                         "data: {rows: 2, dtype: f64}\nmesh: {tp: 1, dp: 2}\n"
                         "plan: {net1: colwise, net2: rowwise}\n"
                         "faults: [{at: all_reduce of net2, do: drop}]\n",
                         false);
    assert_non_null(run_diag(&r, "W0001", "one rank"));
    r = plan_run(a, "verdicts.yaml", /* what does change something is not called idle */
                 "model: {kind: attention, heads: 2, head_dim: 4}\n"
                 "data: {batch: 1, sequence: 8}\nmesh: {cp: 2}\n"
                 "context_parallel: {mode: ring, axis: cp}\n"
                 "faults: [{at: attn_merge.1, do: unweighted}]\n",
                 false);
    assert_non_null(r.t);
    assert_false(run_has(&r, "W0001"));
    arena_free(a);
}
/* What is planted is told where it is planted, and says whose line makes the step; what --fault
 * plants has no line but the step's. */
static void test_told_where_it_is_planted(void **state) {
    (void)state;
    static const struct {
        const char *file, *line, *hint; /* the line of the plan that the error shows */
    } row[] = {{"plans/bugs/03-missing-reduction.yaml", "faults:", "in a step of line 13;"},
               {"plans/bugs/40-loss-times-cp.yaml", "faults:", "planted here; `explain"},
               {"plans/bugs/44-ranks-fed-different-data.yaml", "faults:", NULL},
               {"plans/bugs/72-an-update-not-broadcast.yaml", "faults:", "in a step of line 10;"},
               {"plans/bugs/09-norm-gradient-averaged.yaml", "gradients:", NULL},
               {"plans/bugs/24-mean-of-means.yaml", "loss:", NULL}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        Arena *a = arena_new();
        size_t n;
        const char *text = file_read(a, diags_new(a), row[k].file, 1 << 20, (Loc){0}, &n);
        PlanRun r = plan_run(a, row[k].file, text, true);
        const Diag *told = NULL;
        for (int i = 0; i < r.d->n; i++)
            if (!strcmp(r.d->item[i].code, "E0501")) told = &r.d->item[i];
        assert_non_null(told);
        for (int line = 1; line < told->loc.line; line++) text = strchr(text, '\n') + 1;
        if (strncmp(text, row[k].line, strlen(row[k].line)))
            fail_msg("%s: line %d", row[k].file, told->loc.line);
        if (row[k].hint && (!told->hint || !strstr(told->hint, row[k].hint)))
            fail_msg("%s: %s", row[k].file, told->hint);
        arena_free(a);
    }
}
/* The same where the step's line has the number of the planted one, in a recipe, and where both are
 * one line. */
static void test_told_where_lines_have_one_number(void **state) {
    (void)state;
    static const struct {
        const char *text, *hint;
        int line;
    } row[] = {{"model: {preset: llama3-8b, layers: 1, shrink: 16}\n"
                "data: {batch: 2, sequence: 64, dtype: f32, seed: 0}\nmesh: {tp: 4}\n"
                "groups: {sp: tp}\nnames: megatron\nfaults: [{at: layers.0.o_proj, offset: 1}]\n"
                "recipe: megatron-sp\n",
                "planted here, in a step of recipe megatron-sp:6;", 6},
               {"model: {preset: llama3-8b, layers: 1, shrink: 16}\n"
                "data: {batch: 2, sequence: 64, dtype: f32, seed: 0}\nmesh: {tp: 4}\n"
                "groups: {sp: tp}\nnames: megatron\nrecipe: megatron-sp\n"
                "faults: [{at: layers.0.o_proj, offset: 1}]\n",
                "planted here, in a step of recipe megatron-sp:6;", 7},
               {"{model: {preset: llama3-8b, layers: 1, shrink: 16}, mesh: {tp: 2}, data: {batch: "
                "1, sequence: 32, dtype: f32, seed: 0}, names: torchtitan, plan: "
                "{\"layers.*.feed_forward.w[13]\": colwise, layers.*.feed_forward.w2: rowwise}, "
                "faults: [{at: layers.0.mlp.down, do: drop}]}\n",
                "planted here; `explain", 1}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "planted.yaml", row[k].text, true);
        const Diag *told = NULL;
        for (int i = 0; i < r.d->n; i++)
            if (!strcmp(r.d->item[i].code, "E0501")) told = &r.d->item[i];
        assert_non_null(told);
        assert_string_equal(told->loc.file, "planted.yaml");
        assert_int_equal(told->loc.line, row[k].line);
        const char *at = row[k].text;
        for (int line = 1; line < told->loc.line; line++) at = strchr(at, '\n') + 1;
        assert_memory_equal(at + told->loc.col - 1, "layers.0.", strlen("layers.0."));
        if (!told->hint || !strstr(told->hint, row[k].hint)) fail_msg("%zu: %s", k, told->hint);
        arena_free(a);
    }
}
/* A loss that is off by a thousandth is told in both checks, of every sum that leads to it: what
 * bounds it is the rounding of a few terms, three orders of magnitude below. */
static void test_a_loss_off_by_a_thousandth(void **state) {
    (void)state;
    static const struct {
        const char *file, *at;
    } row[] = {{"plans/18-llama3-8b-backward.yaml", "loss"},
               {"plans/18-llama3-8b-backward.yaml", "loss.sumexp"},
               {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "loss_mean"},
               {"plans/41-llama3-8b-ring4-zigzag.yaml", "loss"},
               {"plans/44-llama3-8b-packed-documents.yaml", "loss"},
               {"plans/54-deepseek-v3-latent-ring4.yaml", "loss"}};
    for (size_t k = 0; k < 2 * sizeof row / sizeof *row; k++) {
        Arena *a = arena_new();
        size_t n;
        const char *text = file_read(a, diags_new(a), row[k / 2].file, 1 << 20, (Loc){0}, &n);
        const char *end = strstr(text, "\nexpect:");
        text = arena_printf(a, "%.*s\nfaults: [{at: %s, scale: 1.001}]\n",
                            (int)(end ? (size_t)(end - text) : n), text, row[k / 2].at);
        PipelineOptions o = {.execute = true, .check = k % 2 ? CHECK_QUICK : CHECK_FULL};
        PlanRun r = plan_run_with(a, row[k / 2].file, text, &o);
        double most = 0; /* of its bound */
        for (int i = 0; r.t && i < r.t->n_checks; i++) {
            const TraceCheck *c = &r.t->checks[i];
            if (!strncmp(c->value, "loss", 4) && !strcmp(c->verdict, "FAIL") && c->bound > 0)
                most = fmax(most, c->max_abs / c->bound);
        }
        if (run_has(&r, "W0001") || most < 100)
            fail_msg("%s, %s, %s check: %g times its bound", row[k / 2].file, row[k / 2].at,
                     k % 2 ? "quick" : "full", most);
        arena_free(a);
    }
}
/* A factor on a list of rows would change nothing: it is refused. */
static void test_indices_have_no_factor(void **state) {
    (void)state;
    static const char *const at[] = {"layers.0.moe.list", "all_gather of layers.0.moe.list"};
    Arena *a = arena_new();
    size_t len;
    const char *path = "plans/30-mixtral-8x7b-ep-dp-cp.yaml";
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &len);
    assert_non_null(text);
    for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
        PlanRun r = plan_run(
            a, path, arena_printf(a, "%sfaults: [{at: %s, scale: 2}]\n", text, at[k]), false);
        assert_non_null(run_diag(&r, "E0206", "indices are not"));
    }
    arena_free(a);
}
/* Of several entries each idle one is pointed to, at its own place. */
static void test_idle_places(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        plan_run(a, "verdicts.yaml",
                 "model: {kind: mlp, sizes: [4, 4, 4], bias: false}\n"
                 "data: {rows: 2, dtype: f64}\nmesh: {tp: 2}\n"
                 "plan: {net1: colwise, net2: {style: rowwise, output: shard(0)}}\nfaults:\n"
                 "- {at: reduce_scatter of net2, scale: 1}\n"
                 "- {at: act1, scale: 1}\n",
                 true);
    must_equal(&r);
    uint32_t lines = 0;
    for (int i = 0; i < r.d->n; i++)
        if (!strcmp(r.d->item[i].code, "W0001")) lines |= 1u << r.d->item[i].loc.line;
    assert_int_equal(lines, 1u << 6 | 1u << 7);
    arena_free(a);
}
/* One who holds the value for the group holds it as planted. */
static void test_scaled_share(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "verdicts.yaml",
                         "model: {kind: mlp, sizes: [4, 4, 4], bias: true}\n"
                         "data: {rows: 2, dtype: f64}\nmesh: {tp: 2}\n"
                         "plan: {net1: colwise, net2: {style: rowwise, output: shard(0)}}\n"
                         "faults: [{at: keep_first of net2.bias, scale: 1.5}]\n",
                         true);
    assert_non_null(r.t);
    run_must_be(&r, "different");
    arena_free(a);
}

/* A plan of bf16 is checked in f32 where it says so: the numbers are those of an f32 plan, bytes
 * are of bf16, and every report says it. */
static void numbers_of_another_dtype(void **state) {
    (void)state;
    static const char plan[] =
        "model: {preset: llama3-8b, layers: 1, shrink: 64}\nmesh: {tp: 2}\nrecipe: hf-llama\n"
        "pass: backward\ndata: {batch: 2, sequence: 6, seed: 3, dtype: %s%s}\n";
    static const char *const dtype[] = {"f32", "bf16", "bf16", "f32"}, *const more[] = {
                                                                           "", ", execute: f32",
                                                                           ", execute: f64",
                                                                           ", execute: f64"};
    Arena *a = arena_new();
    const Trace *t[4];
    for (int i = 0; i < 4; i++) {
        PlanRun r = plan_run_with(a, "p.yaml", arena_printf(a, plan, dtype[i], more[i]),
                                  &(PipelineOptions){.execute = true, .threads = 1});
        t[i] = r.t;
        assert_non_null(t[i]);
        assert_string_equal(t[i]->verdict, "equivalent");
        bool noted = false;
        for (int k = 0; k < r.d->n; k++) noted |= !strcmp(r.d->item[k].code, "N0016");
        assert_int_equal(noted, i > 0);
        assert_string_equal(t[i]->dtype, dtype[i]);
        assert_string_equal(t[i]->executed_in ? t[i]->executed_in : "", i == 0   ? ""
                                                                        : i == 1 ? "f32"
                                                                                 : "f64");
    }
    int64_t bytes[4] = {0};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < t[i]->n_collectives; k++) bytes[i] += t[i]->collectives[k].bytes_sent;
    assert_true(bytes[0] > 0 && bytes[0] == 2 * bytes[1] && bytes[1] == bytes[2]);
    assert_true(bytes[3] == bytes[0]);
    /* the same numbers as in f32: every check finds the same largest difference */
    assert_int_equal(t[0]->n_checks, t[1]->n_checks);
    for (int k = 0; k < t[0]->n_checks; k++)
        assert_memory_equal(&t[0]->checks[k].max_abs, &t[1]->checks[k].max_abs, sizeof(double));
    Role role;
    assert_non_null(strstr(words_stamp(a, t[1], &role), "executed in f32 on 2 virtual ranks"));
    assert_null(strstr(words_stamp(a, t[0], &role), "in f32"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_another_dtype),
        cmocka_unit_test(test_sources_of_every_micro_batch),
        cmocka_unit_test(test_sources_of_every_step),
        cmocka_unit_test(test_a_pipeline_reads_every_step),
        cmocka_unit_test(test_reference_is_the_whole_batch),
        cmocka_unit_test(test_micro_batches_are_the_batch),
        cmocka_unit_test(test_rows_of_the_last_micro_batch),
        cmocka_unit_test(test_a_value_that_is_zero),
        cmocka_unit_test(test_smallest_numbers),
        cmocka_unit_test(test_smallest_values),
        cmocka_unit_test(test_no_digit_left),
        cmocka_unit_test(test_training_that_runs_away),
        cmocka_unit_test(test_before_numbers_run_away),
        cmocka_unit_test(test_rings_that_run_away),
        cmocka_unit_test(test_a_key_bias_without_rotation),
        cmocka_unit_test(test_sensitivity),
        cmocka_unit_test(test_attention_gradients),
        cmocka_unit_test(test_attention_bound_holds),
        cmocka_unit_test(test_products_widen),
        cmocka_unit_test(test_level0),
        cmocka_unit_test(test_lucky),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_a_loss_off_by_a_thousandth),
        cmocka_unit_test(test_told_where_it_is_planted),
        cmocka_unit_test(test_told_where_lines_have_one_number),
        cmocka_unit_test(test_indices_have_no_factor),
        cmocka_unit_test(test_idle_places),
        cmocka_unit_test(test_scaled_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
