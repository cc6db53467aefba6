/* Plans that random plans found to be treated wrongly once, cut down to what matters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "support/plan_lines.h"
#include "support/support.h"
#include <math.h>
#include <string.h>

#define SMALL                                                                                      \
    "hidden_size: 6, intermediate_size: 6, num_hidden_layers: 1, vocab_size: 7, head_dim: 4"
#define SP_LINES "plan:\n" TITAN_BLOCK_NORMS TITAN_ATTENTION TITAN_FFN
#define SP_PLAN(more)                                                                              \
    "model: {config: {" SMALL                                                                      \
    ", num_attention_heads: 2}}\ndata: {sequence: 8, dtype: f64}\nmesh: {tp: 2}\n" more SP_LINES

static const struct {
    const char *what, *text;
} equivalent[] = {
    /* what enters the first block lies as what leaves the last one, whatever sums the loss or the
       optimizer make after it */
    {"block input, loss var", SP_PLAN("loss: var\n")},
    {"block input, clipped gradients", SP_PLAN("pass: train\noptimizer: {name: sgd, clip: 0.5}\n")},
    /* the loss's own data are cut as the values lie: nobody could label them */
    {"trust: declared and the loss's cotangent", SP_PLAN("pass: backward\ntrust: declared\n")},
    /* shard(2) counts heads on [B, S, H, d] as on [B, S, H*d], and KV heads are replicated alike */
    {"heads of a 4-dim value",
     "model: {config: {" SMALL ", num_attention_heads: 6, num_key_value_heads: 3}}\ndata: {dtype: "
     "f64, sequence: 6}\nmesh: {a: 3, b: 2}\n"
     "groups: {tp: a*b}\nplan:\n  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: "
     "rowwise\n"
     "  layers.*.attention.core: {style: prepare_module_input, input: [shard(2), shard(2), "
     "shard(2)]}\n"},
    /* what a stage sends was gathered, and gathered values are not kept: the one it was sent to has
       it (a crash, once) */
    {"a gathered value that goes to another stage",
     "model: {kind: mlp, sizes: [8, 5, 6], scale: true}\ndata: {rows: 4, dtype: f64}\nmesh: {tp: "
     "2, "
     "pp: 2}\npipeline: {schedule: gpipe, microbatches: 2}\npass: backward\nsave_gathered: "
     "false\nplan:\n  net2: colwise_gather_output\n"},
    /* in bf16 the loss hands its cotangent on by a gather: rounded where it is made, not on the way
     */
    {"a cotangent of the loss that is gathered, in bf16",
     "model: {config: {model_type: mixtral, " SMALL ", num_attention_heads: 2, "
     "num_local_experts: 2}}\ndata: {batch: 2, sequence: 4, dtype: bf16, cut: {batch: b}}\nmesh: "
     "{b: 2}\npass: backward\nplan:\n  layers.*.moe.experts: {style: moe_tp_experts, axis: b}\n"},
    /* rows at their experts are cut by an axis that cuts no tokens, and go home without it */
    {"a reorderer over one rank, and a room for each expert",
     "model: {config: {model_type: llama4_text, " SMALL ", num_attention_heads: 2, "
     "num_local_experts: 4, num_experts_per_tok: 2}}\ndata: {batch: 2, sequence: 6, dtype: f64, "
     "cut: {batch: b}}\nmesh: {a: 1, b: 1}\ngroups: {tp: a}\nnames: hf\npass: backward\nmoe: "
     "{capacity_factor: 0.9}\nplan:\n  model.layers.*.feed_forward.reorderer: "
     "reorderer_sequence_parallel\n"},
    /* what is one all-to-all to the rows is an all-to-all and a slice to their index list */
    {"rows and their list go different ways",
     "model: {config: {model_type: mixtral, " SMALL ", num_attention_heads: 2, num_local_experts: "
     "3, num_experts_per_tok: 2}}\ndata: {batch: 4, sequence: 6, dtype: f64, block_input: {a: "
     "shard(b)}}\nmesh: {a: 2, b: 2}\npass: backward\nstyles:\n  wild: {axis: a}\nplan:\n"
     "  layers.*.ffn_norm: {style: wild, weight: {b: shard(d)}, output: {b: shard(d)}}\n"
     "  layers.*.moe.experts.w1: {style: wild, weight: {a: shard(e)}}\n"
     "  layers.*.moe.experts.w3: {style: wild, weight: {a: shard(e), b: shard(e)}}\n"},
    /* a saturated softmax makes rounding grow beyond 1e-9 of the largest number */
    {"rounding that the model makes grow",
     "model: {config: {hidden_size: 5, intermediate_size: 6, num_hidden_layers: 1, "
     "num_attention_heads: 3, vocab_size: 1, num_key_value_heads: 1, head_dim: 8, v_bias: true, "
     "o_bias: true, gate_bias: true}}\n"
     "data: {sequence: 16, dtype: f64, seed: 59, microbatches: 2}\nmesh: {tp: 2}\nloss: sum\npass: "
     "train\n"
     "optimizer: {name: sgd, lr: 0.04, momentum: 0.2, steps: 3}\nplan:\n  layers.*.attention.wv: "
     "{weight: {tp: shard(d)}}\n"
     "  layers.*.attention.wo: {params: {weight: {tp: shard(x)}}}\n  layers.*.feed_forward.w1: "
     "{weight: {tp: shard(d)}}\n"},
};
static void test_equivalent(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof equivalent / sizeof equivalent[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "found.yaml", equivalent[i].text, true);
        bool good = !diags_errors(r.d) && run_is(&r, "equivalent");
        if (!good) {
            run_print(&r);
            fail_msg("%s", equivalent[i].what);
        }
        arena_free(a);
    }
}

/* ... and the allowance for rounding hides no mistake: the same plan with a gradient left unsummed.
 */
static void test_allowance_hides_nothing(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *good = equivalent[sizeof equivalent / sizeof equivalent[0] - 1].text;
    PlanRun r = plan_run(
        a, "found.yaml",
        arena_printf(a, "%sfaults: [{at: all_reduce of layers.0.o_proj.product, kind: avg}]\n",
                     good),
        true);
    assert_non_null(r.t);
    run_must_be(&r, "different");
    assert_string_equal(r.t->first_wrong, "layers.0.o_proj.product");
    arena_free(a);
}

static void test_only_a_loss(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "found.yaml",
                         "model: {preset: llama3-8b, parts: [loss]}\nmesh: {tp: 2}\n", true);
    assert_null(r.t);
    assert_true(run_has(&r, "E0208"));
    arena_free(a);
}

/* Micro-batches with as many labels each: the mean of their means is the mean. With fewer in one it
 * is not. */
static void test_local_mean_of_micro_batches(void **state) {
    (void)state;
    for (int uneven = 0; uneven < 2; uneven++) {
        Arena *a = arena_new();
        int64_t ids[32], labels[32];
        for (int i = 0; i < 32; i++) ids[i] = i % 7, labels[i] = (i * 3) % 7;
        if (uneven) labels[0] = -100;
        NewTensor t[] = {{.name = "input_ids", .nd = 2, .shape = {4, 8}, .ids = ids},
                         {.name = "labels", .nd = 2, .shape = {4, 8}, .ids = labels}};
        const char *text = arena_printf(
            a,
            "model: {config: {" SMALL
            ", num_attention_heads: 2}, parts: [embedding, blocks, norm, head, loss]}\n"
            "data: {inputs: %s, dtype: f64, microbatches: 2}\nmesh: {dp: 2}\npass: backward\n"
            "loss: {kind: cross_entropy, normalise: local_mean}\n",
            write_tensors(a, "means.safetensors", t, 2));
        PlanRun r = plan_run(a, "found.yaml", text, true);
        if (!run_is(&r, uneven ? "different" : "equivalent")) run_print(&r);
        assert_non_null(r.t);
        run_must_be(&r, uneven ? "different" : "equivalent");
        if (uneven) assert_string_equal(r.t->first_wrong, "loss_weights");
        arena_free(a);
    }
}

/* The order of the labels is what the plan says, whatever that of the tokens. */
static void test_order_of_labels(void **state) {
    (void)state;
    static const struct {
        const char *tokens, *labels, *places;
    } rows[] = {{"contiguous", "zigzag", "zigzag(1)"},
                {"zigzag", "striped", "striped(1)"},
                {"striped", "contiguous", "shard(1)"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {config: {" SMALL
            ", num_attention_heads: 2}, parts: [embedding, blocks, norm, head, loss]}\n"
            "data: {sequence: 8, dtype: f64, order: {labels: %s}}\nmesh: {cp: "
            "2}\ncontext_parallel: {order: %s}\n",
            rows[i].labels, rows[i].tokens);
        PlanRun r = plan_good(a, text, true);
        assert_string_equal(find_value(r.t, "labels", false)->place[0].place, rows[i].places);
        arena_free(a);
    }
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "found.yaml",
                         "model: {preset: llama3-8b, shrink: 512}\ndata: {sequence: 6, order: "
                         "{labels: zigzag}}\nmesh: {cp: 2}\n",
                         false);
    assert_true(run_has(&r, "E0304"));
    arena_free(a);
}

/* What the plan language knows and nothing acts on is refused, not ignored. */
static void test_refused(void **state) {
    (void)state;
    static const char *const rows[] = {"data_parallel: {mode: fsdp, axis: tp, reduce: avg}\n",
                                       "plan:\n  layers.*.attention: {style: prepare_module_input, "
                                       "kwargs: {x: {input: replicate}}}\n"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(
            a, "found.yaml",
            arena_printf(a, "model: {preset: llama3-8b, shrink: 512}\nmesh: {tp: 2}\n%s", rows[i]),
            false);
        assert_null(r.t);
        assert_true(run_has(&r, "E0214"));
        assert_int_equal(r.rep.exit, 3);
        arena_free(a);
    }
}
/* Label smoothing as PyTorch defines it, from the logits: (1 - a) of the label's -log p and a of
 * their mean over all ids. What the ranks compute is only held against a reference of the same
 * graph. */
static void test_smoothed_loss(void **state) {
    (void)state;
    enum { TOKENS = 16, IDS = 7 };
    Arena *a = arena_new();
    int64_t ids[TOKENS], labels[TOKENS];
    for (int i = 0; i < TOKENS; i++) ids[i] = i * 5 % IDS, labels[i] = i == 3 ? -100 : i * 3 % IDS;
    NewTensor t[] = {{.name = "input_ids", .nd = 2, .shape = {2, 8}, .ids = ids},
                     {.name = "labels", .nd = 2, .shape = {2, 8}, .ids = labels}};
    const char *save = temp_path(a, "smoothed-values.safetensors");
    const char *text =
        arena_printf(a,
                     "model: {config: {hidden_size: 8, intermediate_size: 12, num_hidden_layers: "
                     "1, head_dim: 4, vocab_size: 7,\n"
                     "  num_attention_heads: 2}, parts: [embedding, blocks, norm, head, loss]}\n"
                     "data: {inputs: %s, dtype: f64}\nmesh: {dp: 2}\nloss: {kind: cross_entropy, "
                     "label_smoothing: 0.3}\n",
                     write_tensors(a, "smoothed.safetensors", t, 2));
    PipelineOptions o = {.execute = true, .threads = 1, .save_values = save};
    PlanRun r = plan_run_with(a, "found.yaml", text, &o);
    run_must_be(&r, "equivalent");
    SafeTensors *st = golden_tensors(a, save);
    int64_t n;
    const double *z = tensor_numbers(a, st, "logits", &n),
                 *loss = tensor_numbers(a, st, "loss_mean", &n);
    double sum = 0;
    for (int i = 0; i < TOKENS; i++) {
        double all = 0, mean = 0;
        for (int v = 0; v < IDS; v++) all += exp(z[i * IDS + v]), mean += z[i * IDS + v] / IDS;
        if (labels[i] >= 0) sum += log(all) - 0.7 * z[i * IDS + labels[i]] - 0.3 * mean;
    }
    assert_true(fabs(sum / (TOKENS - 1) - *loss) < 1e-12);
    st_close(st);
    arena_free(a);
}
/* A recipe is written for a whole model. Blocks alone are trained on a stand-in for the loss, which
 * reads no logits: the recipe's line for the loss does not speak of it. A line of the plan's own
 * does. */
static void test_recipes_of_blocks_alone(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"torchtitan", "torchtitan-llama3"},
                                          {"torchtune", "torchtune-llama3"},
                                          {"hf", "hf-llama"},
                                          {"megatron", "megatron"},
                                          {"megatron", "megatron-sp"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a,
                         "model: {preset: llama3-8b, shrink: 64, layers: 1}\nmesh: {dp: 2, tp: 2}\n"
                         "pass: backward\nnames: %s\nrecipe: %s\n",
                         rows[i][0], rows[i][1]);
        PlanRun r = plan_run(a, "found.yaml", text, true);
        assert_non_null(r.t);
        run_must_be(&r, "equivalent");
        r = plan_run(a, "found.yaml", arena_printf(a, "%splan: {loss: loss_parallel}\n", text),
                     false);
        assert_true(run_has(&r, "E0402"));
        arena_free(a);
    }
}
/* Nor does a norm or a head alone: its input lies as the first line says. An mlp's does not. */
static void test_recipes_of_heads_alone(void **state) {
    (void)state;
    static const char *const recipes[] = {"torchtitan-llama3", "torchtune-llama3", "hf-llama",
                                          "megatron", "megatron-sp"};
    static const char *const parts[] = {"[head]", "[norm]", "[norm, head, loss]"};
    for (int i = 0; i < 5 * 3; i++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a,
                         "model: {preset: llama3-8b, shrink: 64, parts: %s}\nmesh: {dp: 2, cp: 2, "
                         "tp: 2}\npass: backward\nrecipe: %s\n",
                         parts[i / 5], recipes[i % 5]);
        PlanRun r = plan_run(a, "found.yaml", text, true);
        assert_non_null(r.t);
        if (!run_is(&r, "equivalent")) run_print(&r);
        run_must_be(&r, "equivalent");
        arena_free(a);
    }
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "found.yaml",
                         "model: {kind: mlp, sizes: [4, 8, 4]}\nmesh: {tp: 2}\nplan:\n  net1: "
                         "{style: colwise, input: shard(-1), desired_input: replicate}\n",
                         false);
    assert_true(run_has(&r, "E0402"));
    arena_free(a);
}
/* Ids enter no layer: no layer's line is named as what cuts them, and the help, obeyed, mends it.
 */
static void test_mislabeled_ids(void **state) {
    (void)state;
    const char *head = "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, "
                       "blocks]}\ndata: {batch: 2, sequence: 16}\nmesh: {dp: 2}\nnames: "
                       "torchtitan\nplan:\n"
                       "  tok_embeddings: {style: rowwise, axis: dp, output: shard(0)%s}\n";
    const char *how = "input: shard(0), desired_input: replicate";
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "found.yaml", arena_printf(a, head, ""), false);
    const Diag *g = NULL;
    for (int k = 0; k < r.d->n; k++)
        if (!strcmp(r.d->item[k].code, "E0402")) g = &r.d->item[k];
    assert_non_null(g);
    assert_null(strstr(g->message, "w2"));
    assert_null(strstr(g->hint, "w2"));
    assert_non_null(strstr(g->hint, how));
    r = plan_run(a, "found.yaml", arena_printf(a, head, arena_printf(a, ", %s", how)), true);
    run_must_be(&r, "equivalent");
    arena_free(a);
}
/* One missing idea mislabels many modules: one finding, with who leaves the value so, and a help
 * that mends it when it is followed. Expectations about an invalid plan's shapes are no findings.
 */
#define NORMS                                                                                      \
    "  layers.*.attention_norm: sequence_parallel\n  layers.*.ffn_norm: sequence_parallel\n"
#define LOCAL_NORMS                                                                                \
    "  layers.*.attention_norm: {style: sequence_parallel, use_local_output: true}\n"              \
    "  layers.*.ffn_norm: {style: sequence_parallel, use_local_output: true}\n"
#define ROWS_CUT                                                                                   \
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"                                \
    "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n"
#define PREPARED                                                                                   \
    "  layers.*.attention: {style: prepare_module_input, input: shard(1), desired_input: "         \
    "replicate}\n  layers.*.feed_forward: {style: prepare_module_input, input: shard(1), "         \
    "desired_input: replicate}\n  layers.*.attention.w[qkv]: colwise\n"                            \
    "  layers.*.feed_forward.w[13]: colwise\n"
static void test_mislabels(void **state) {
    (void)state;
    static const struct {
        const char *wrong;
        int findings;
        const char *says, *help, *cured;
    } rows[] = {{NORMS PREPARED "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
                                "  layers.*.feed_forward.w2: rowwise\n",
                 1, "as in the last layer layers.1.feed_forward.w2 (line 13) leaves it",
                 "write `layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}`",
                 NORMS PREPARED ROWS_CUT},
                /* not the tensor that enters, but one that is made of it */
                {"  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n"
                 "  layers.*.feed_forward.w[13]: colwise\n"
                 "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n",
                 1, "as in the last layer layers.1.feed_forward.w2 (line 9) leaves it",
                 "write `layers.*.feed_forward.w2: {style: rowwise, output: replicate}`",
                 "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n"
                 "  layers.*.feed_forward.w[13]: colwise\n"
                 "  layers.*.feed_forward.w2: {style: rowwise, output: replicate}\n"},
                {LOCAL_NORMS
                 "  layers.*.attention.w[qkv]: {style: colwise, input: replicate}\n"
                 "  layers.*.feed_forward.w[13]: {style: colwise, input: replicate}\n" ROWS_CUT,
                 2, "input of layers.0.attention.wq, wk, wv and 3 more is said",
                 "`input: shard(1), desired_input: replicate`",
                 LOCAL_NORMS
                 "  layers.*.attention.w[qkv]: {style: colwise, input: shard(1), desired_input: "
                 "replicate}\n  layers.*.feed_forward.w[13]: {style: colwise, input: shard(1), "
                 "desired_input: replicate}\n" ROWS_CUT}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        const char *head =
            "model: {preset: llama3-8b, layers: 2, shrink: 64}\n"
            "data: {batch: 2, sequence: 16}\nmesh: {tp: 2}\nnames: torchtitan\nplan:\n";
        const char *expect =
            "expect: {equivalent: true, collectives: {forward: {all_reduce: 9}}}\n";
        PlanRun r = plan_run(a, "found.yaml",
                             arena_printf(a, "%s%s%s", head, rows[i].wrong, expect), false);
        int n = 0;
        for (int k = 0; k < r.d->n; k++) {
            const Diag *g = &r.d->item[k];
            assert_string_not_equal(g->code, "E0505");
            if (strcmp(g->code, "E0402") != 0) continue;
            bool first = n++ == 0;
            if (first && rows[i].says && !strstr(g->message, rows[i].says))
                fail_msg("%s", g->message);
            if (first && rows[i].help && !strstr(g->hint, rows[i].help)) fail_msg("%s", g->hint);
        }
        assert_int_equal(n, rows[i].findings);
        r = plan_run(a, "found.yaml", arena_printf(a, "%s%s", head, rows[i].cured), true);
        if (!run_is(&r, "equivalent")) run_print(&r);
        run_must_be(&r, "equivalent");
        arena_free(a);
    }
}

/* A group planted over the stages of a pipeline: ranks of other stages hold no list of rows, and
 * have no rows to give (a crash, once). */
static void test_rows_over_stages(void **state) {
    (void)state;
    static const char *const at[] = {"list", "dispatched", "down"};
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {config: {model_type: mixtral, hidden_size: 8, intermediate_size: 6, "
            "num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 2, vocab_size: 7, "
            "num_local_experts: 4, num_experts_per_tok: 2}, layers: 2}\n"
            "data: {batch: 4, sequence: 6, dtype: f64}\nmesh: {pp: 2, dp: 2}\ngroups: {ep: dp}\n"
            "pipeline: {schedule: gpipe, microbatches: 2}\nnames: torchtitan\npass: backward\n"
            "plan:\n  layers.*.moe.experts: expert_parallel\n"
            "faults: [{at: all_to_all of layers.0.moe.%s, axis: pp}]\n",
            at[i]);
        PlanRun r = plan_run(a, "found.yaml", text, true);
        run_must_be(&r, "different");
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equivalent),
                                       cmocka_unit_test(test_allowance_hides_nothing),
                                       cmocka_unit_test(test_only_a_loss),
                                       cmocka_unit_test(test_local_mean_of_micro_batches),
                                       cmocka_unit_test(test_order_of_labels),
                                       cmocka_unit_test(test_smoothed_loss),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_recipes_of_blocks_alone),
                                       cmocka_unit_test(test_recipes_of_heads_alone),
                                       cmocka_unit_test(test_mislabels),
                                       cmocka_unit_test(test_mislabeled_ids),
                                       cmocka_unit_test(test_rows_over_stages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
