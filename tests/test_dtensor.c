/* Plans as PyTorch's DTensor takes them: dims that do not divide (N0006), and what
 * `use_local_output` changes, or makes it raise. Facts: semantics.md 1.2, 1.5, 2.1, 2.6; records
 * 06_* and 08_*. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "support/plan_lines.h"
#include "support/support.h"
#include <string.h>

static int count(const PlanRun *r, const char *code) {
    int n = 0;
    for (int i = 0; i < r->d->n; i++) n += !strcmp(r->d->item[i].code, code);
    return n;
}

/* ---- dims that do not divide ---- */
#define SIZES(f, v)                                                                                \
    "hidden_size: 16, intermediate_size: " f ", num_hidden_layers: 1, vocab_size: " v              \
    ", head_dim: 4, num_attention_heads: 4"
#define BLOCK(f, seq)                                                                              \
    "model: {config: {" SIZES(f, "16") "}}\ndata: {sequence: " seq ", dtype: f64}\n"
#define WHOLE(v, seq)                                                                              \
    "model: {config: {" SIZES(                                                                     \
        "16", v) "}, parts: [embedding, blocks, norm, head, loss]}\ndata: {sequence: " seq         \
                 ", dtype: f64}\n"
#define MLP(sizes)                                                                                 \
    "model: {kind: mlp, sizes: [" sizes "]}\ndata: {rows: 7, dtype: f64}\nmesh: {tp: 4}\nplan:\n"
#define SP TITAN_BLOCK_NORMS TITAN_ATTENTION TITAN_FFN
#define FFN "plan:\n  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: rowwise\n"
static const struct {
    const char *what, *text;
    int n; /* notes */
    const char *says;
} uneven[] = {
    {"record 06_wrong_uneven_local", MLP("6, 10, 6") "  net1: colwise\n  net2: rowwise\n", 1,
     "the input of net2 comes as plain local tensors, F of 10 cut unevenly over tp of 4"},
    {"its cure",
     MLP("6, 10, 6") "  net1: {style: colwise, use_local_output: false}\n  net2: rowwise\n", 0,
     NULL},
    {"the cure is named", MLP("6, 10, 6") "  net1: colwise\n  net2: rowwise\n", 1,
     "`use_local_output: false` on net1"},
    {"even", MLP("6, 12, 6") "  net1: colwise\n  net2: rowwise\n", 0, NULL},
    {"gathered between",
     MLP("6, 10, 6") "  net1: {style: colwise, output: replicate}\n  net2: rowwise_rep\n", 0, NULL},
    {"record 06_uneven_col", MLP("16, 10") "  net1: {style: colwise, output: replicate}\n", 0,
     NULL},
    {"an empty last shard computes", MLP("16, 9") "  net1: {style: colwise, output: replicate}\n",
     0, NULL},
    {"record 06_small_col",
     MLP("16, 3") "  net1: {style: colwise, output: replicate, use_local_output: false}\n", 1,
     "of 3 is shorter than tp of 4: DTensor does not compute on its shards, it gathers weight and "
     "input"},
    {"record 06_small_row", MLP("3, 6") "  net1: {style: rowwise_rep, use_local_output: false}\n",
     1, "of 3 is shorter than tp of 4"},
    {"feed-forward", BLOCK("10", "6") "mesh: {tp: 4}\n" FFN, 1,
     "the input of layers.0.feed_forward.w2"},
    {"feed-forward with DTensors",
     BLOCK("10", "6") "mesh: {tp: 4}\nplan:\n  layers.*.feed_forward.w[13]: {style: colwise, "
                      "use_local_output: false}\n"
                      "  layers.*.feed_forward.w2: rowwise\n",
     0, NULL},
    {"torchtune",
     BLOCK("10", "6") "mesh: {tp: 4}\nnames: torchtune\nplan:\n  layers.*.mlp.w[13]: colwise\n  "
                      "layers.*.mlp.w2: rowwise\n",
     1, "layers.0.mlp.w2"},
    {"Hugging Face",
     BLOCK("10",
           "6") "mesh: {tp: 4}\nnames: hf\nplan:\n  model.layers.*.mlp.gate_proj: colwise\n  "
                "model.layers.*.mlp.up_proj: colwise\n  model.layers.*.mlp.down_proj: rowwise\n",
     0, NULL},
    {"Megatron", BLOCK("3", "3") "mesh: {tp: 4}\nrecipe: megatron-sp\n", 0, NULL},
    {"own styles",
     BLOCK("10",
           "6") "mesh: {tp: 4}\nstyles:\n  up: {weight: shard(0), input: replicate, desired_input: "
                "replicate}\n  down: {input: shard(-1), weight: shard(1), output: replicate}\n"
                "plan:\n  layers.*.feed_forward.w[13]: up\n  layers.*.feed_forward.w2: down\n",
     0, NULL},
    {"the user's own name for a style of PyTorch's",
     BLOCK("10", "6") "mesh: {tp: 4}\nstyles:\n  down: rowwise\nplan:\n  "
                      "layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: down\n",
     1, "w2"},
    {"record 06_uneven_seq3: the two norms, and what follows plain sums",
     BLOCK("16", "3") "mesh: {tp: 4}\nplan:\n" SP, 3,
     "layers.0.attention_norm: S of 3 is shorter than tp of 4: DTensor does not compute on its "
     "shards, it gathers the input"},
    {"sequence after a plain sum", BLOCK("16", "5") "mesh: {tp: 4}\nplan:\n" SP, 1,
     "the input of layers.0.ffn_norm comes as plain local tensors, S of 5"},
    {"sequence of a context parallel part", BLOCK("16", "12") "mesh: {cp: 2, tp: 4}\nplan:\n" SP, 1,
     "S of 6 cut unevenly over tp of 4"},
    {"even", BLOCK("16", "8") "mesh: {cp: 2, tp: 4}\nplan:\n" SP, 0, NULL},
    {"data, context and FSDP axes are not the styles'",
     "model: {config: {" SIZES("16", "16") "}}\ndata: {batch: 3, sequence: 7, dtype: f64}\nmesh: "
                                           "{dp: 2, cp: 2, tp: 2}\npass: backward\n"
                                           "data_parallel: {mode: fsdp}\n" FFN,
     0, NULL},
    {"vocabulary, uneven",
     WHOLE("15", "8") "mesh: {tp: 4}\nplan:\n  tok_embeddings: rowwise\n  output: {style: colwise, "
                      "use_local_output: false}\n  loss: loss_parallel\n",
     0, NULL},
    {"vocabulary, a rank without a class",
     WHOLE("9", "8") "mesh: {tp: 4}\nplan:\n  output: {style: colwise, use_local_output: false}\n  "
                     "loss: loss_parallel\n",
     1, "V of 9 over tp of 4 leaves ranks without a class"},
    {"vocabulary shorter than the axis",
     WHOLE("3", "8") "mesh: {tp: 4}\nplan:\n  tok_embeddings: rowwise\n", 1,
     "tok_embeddings: V of 3 is shorter than tp of 4"},
    {"a label on the result of a plain module",
     MLP("6, 10, 6") "  net1: colwise\n  act1: {style: prepare_module_output, output: shard(-1), "
                     "desired_output: replicate}\n  net2: rowwise_rep\n",
     1, "the output of act1 comes as plain local tensors, F of 10"},
    {"an axis of size 1", BLOCK("10", "5") "mesh: {tp: 1}\nplan:\n" SP, 0, NULL},
};
static void test_uneven(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof uneven / sizeof uneven[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(a, uneven[i].text, true); /* here it is legal, and right */
        if (count(&r, "N0006") != uneven[i].n ||
            (uneven[i].says && !run_diag(&r, "N0006", uneven[i].says))) {
            run_print(&r);
            print_error("%s: %d notes, wanted %d saying '%s'\n", uneven[i].what, count(&r, "N0006"),
                        uneven[i].n, uneven[i].says ? uneven[i].says : "");
            bad++;
        }
        arena_free(a);
    }
    assert_int_equal(bad, 0);
}

/* ---- use_local_output ---- */
static const struct {
    const char *text;
    int line;
    const char *says;
} mixed[] = {
    {BLOCK("16",
           "8") "mesh: {tp: 2}\nplan:\n  layers.*.attention.w[qkv]: colwise\n  "
                "layers.*.attention.wo: {style: rowwise, use_local_output: false}\n"
                "  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: rowwise\n",
     6, "has layers.0.ffn_norm.weight, which no line names, as a plain tensor"},
    {BLOCK("16", "8") "mesh: {tp: 2}\nplan:\n  layers.*.attention.wv: {style: colwise, "
                      "use_local_output: false}\n  layers.*.attention.w[qk]: colwise\n  "
                      "layers.*.attention.wo: rowwise\n",
     5, "the causal attention that makes layers.0.attn_context"},
    {BLOCK("16", "8") "mesh: {tp: 2}\nplan:\n  layers.*.feed_forward.w1: {style: colwise, "
                      "use_local_output: false}\n  layers.*.feed_forward.w3: colwise\n  "
                      "layers.*.feed_forward.w2: rowwise\n",
     5, "that makes layers.0.mlp.act"},
    {BLOCK("16", "8") "mesh: {tp: 2}\nplan:\n  layers.*.feed_forward.w1: {style: colwise, "
                      "use_local_output: false}\n",
     5, "layers.0.feed_forward.w1 is a DTensor"}, /* w3 is a plain layer */
    {"model: {kind: mlp, sizes: [4, 8, 8, 4]}\nmesh: {tp: 2}\nplan:\n  net1: {style: colwise, "
     "output: replicate, use_local_output: false}\n",
     4, "the linear that makes net2"},
    /* the frequencies are an argument of attention: plain unless labelled, or the only DTensor */
    {BLOCK("16", "8") "mesh: {tp: 2}\nplan:\n  layers.*.attention.w[qkv]: {style: colwise, "
                      "use_local_output: false}\n  layers.*.attention.wo: rowwise\n",
     5, "the RoPE that makes layers.0.q_rope has its cosines and sines as a plain tensor"},
    {BLOCK("16", "8") "mesh: {tp: 2}\nplan:\n  layers.*.attention: {style: prepare_module_input, "
                      "input: [replicate, null], desired_input: [replicate, null]}\n"
                      "  layers.*.attention.wq: {style: colwise, use_local_output: false}\n",
     6, "at layers.0.attention"},
    {BLOCK("16", "8") "mesh: {tp: 2}\nplan:\n  layers.*.attention: {style: prepare_module_input, "
                      "input: [replicate, replicate], desired_input: [replicate, replicate]}\n"
                      "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n",
     5, "the RoPE that makes layers.0.q_rope takes a plain tensor beside it"},
    /* layers that no line names, behind what hands out DTensors by itself */
    {BLOCK("16", "8") "mesh: {tp: 2}\nplan:\n  layers.*.feed_forward: {style: "
                      "prepare_module_input, input: [replicate], desired_input: [replicate]}\n",
     5,
     "prepare_module_input makes the input of layers.0.feed_forward a DTensor, and the "
     "linear that makes layers.0.mlp.gate has layers.0.feed_forward.w1.weight, which no"},
    {WHOLE("16", "8") "mesh: {tp: 2}\nplan:\n  norm: sequence_parallel\n", 5,
     "give output a line of its own (`colwise`, `rowwise`), or `use_local_output: true` to "
     "norm"},
    {BLOCK("16", "8") "mesh: {tp: 2}\nplan:\n  layers.*.attention_norm: {style: "
                      "prepare_module_input, input: [shard(1)], desired_input: [replicate]}\n",
     5, "layers.0.attention_norm a line of its own (`sequence_parallel`)"},
    {"model: {preset: mixtral-8x7b, layers: 1, shrink: 512}\nmesh: {tp: 2}\nplan:\n  "
     "layers.*.ffn_norm: sequence_parallel\n  layers.*.moe.router.gate: sequence_parallel\n",
     4, "layers.0.moe.experts a line of its own (`expert_parallel`)"},
    {"model: {preset: mixtral-8x7b, layers: 1, shrink: 512}\nmesh: {tp: 2}\nplan:\n  "
     "layers.*.ffn_norm: sequence_parallel\n",
     4, "layers.0.moe.router.gate a line of its own (`sequence_parallel`, or `replicate`"},
    {BLOCK("16", "8") "mesh: {tp: 2}\nplan:\n  layers.*.attention: {style: "
                      "prepare_module_output, output: replicate, desired_output: replicate, "
                      "use_local_output: false}\n",
     5, "the result of layers.0.attention is a DTensor"},
    {WHOLE("16", "8") "mesh: {tp: 2}\nplan:\n  output: colwise\n  loss: loss_parallel\n", 5,
     "each rank takes its part of the vocabulary for all of it"},
    {WHOLE("16", "8") "mesh: {tp: 2}\nplan:\n  output: {style: colwise, output: replicate, "
                      "use_local_output: false}\n",
     5, "PyTorch's cross entropy raises"},
    {WHOLE("16", "8") "mesh: {tp: 2}\nplan:\n  output: {style: colwise, use_local_output: false}\n",
     5, "`loss: loss_parallel`"},
    {WHOLE("16", "8") "mesh: {tp: 2}\nplan:\n  output: {style: colwise, use_local_output: "
                      "true}\n  loss: loss_parallel\n",
     5, "loss_parallel does not see them"},
};
/* PyTorch raises: the plan's own use_local_output makes a DTensor meet a plain tensor. */
static void test_mixed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "mixed.yaml", mixed[i].text, false);
        const Diag *d = run_diag(&r, "E0408", mixed[i].says);
        if (!d || d->loc.line != mixed[i].line || r.t || r.rep.exit != 1) {
            run_print(&r);
            fail_msg("row %zu: E0408 at line %d saying '%s'", i, mixed[i].line, mixed[i].says);
        }
        arena_free(a);
    }
}
/* loss_parallel does not see plain logits: of whole ones it does nothing, in DTensor's systems. */
static void test_plain_logits(void **state) {
    (void)state;
    static const struct {
        const char *lines;
        int n;
    } rows[] = {
        {"plan:\n  output: {style: colwise, output: replicate}\n  loss: loss_parallel\n", 1},
        {"plan:\n  output: {style: colwise, output: replicate, use_local_output: true}\n"
         "  loss: loss_parallel\n",
         1},
        {"plan:\n  loss: loss_parallel\n", 1},
        {"trust: declared\nplan:\n  loss: loss_parallel\n", 1},
        {"trust: declared\nplan:\n  output: {style: rowwise, input: replicate, desired_input: "
         "shard(-1)}\n  loss: loss_parallel\n",
         1},
        {"plan:\n  output: {style: colwise, use_local_output: false}\n  loss: loss_parallel\n", 0},
        {"plan:\n  output: {style: colwise, output: replicate}\n", 0},
        {"recipe: torchtitan-llama3\n", 0},
        {"recipe: torchtune-llama3\n", 0},
        {"recipe: megatron\n", 0},
        {"names: hf\nplan:\n  lm_head: colwise\n  loss: loss_parallel\n", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a, arena_printf(a, WHOLE("16", "8") "pass: backward\nmesh: {tp: 2}\n%s", rows[i].lines),
            true);
        if (count(&r, "N0011") != rows[i].n || !run_is(&r, "equivalent")) run_print(&r);
        assert_int_equal(count(&r, "N0011"), rows[i].n);
        run_must_be(&r, "equivalent");
        arena_free(a);
    }
}
static const char *collectives(Arena *a, const Trace *t) {
    Str s = str_new(a);
    for (int i = 0; i < t->n_collectives; i++)
        str_addf(&s, "%s %s %s\n", phase_text(t->collectives[i].pass), t->collectives[i].op,
                 t->collectives[i].value);
    return s.n ? s.s : "";
}
/* Where all that meet are DTensors nothing else is sent: each row is a plan without the flag and
 * with it. */
static void test_no_effect(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {BLOCK("16",
               "8") "pass: backward\nmesh: {tp: 2}\nplan:\n  layers.*.attention: {style: "
                    "prepare_module_input, input: [replicate], desired_input: [replicate]}\n"
                    "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n",
         BLOCK("16", "8") "pass: backward\nmesh: {tp: 2}\nplan:\n  layers.*.attention: {style: "
                          "prepare_module_input, input: [replicate, replicate], desired_input: "
                          "[replicate, replicate]}\n  layers.*.attention.w[qkv]: {style: colwise, "
                          "use_local_output: false}\n  layers.*.attention.wo: rowwise\n"},
        {"model: {kind: mlp, sizes: [4, 8, 6, 4]}\npass: backward\nmesh: {tp: 2}\nplan:\n  net1: "
         "colwise\n  net2: rowwise\n  net3: colwise\n",
         "model: {kind: mlp, sizes: [4, 8, 6, 4]}\npass: backward\nmesh: {tp: 2}\nplan:\n  net1: "
         "{style: colwise, use_local_output: false}\n"
         "  net2: {style: rowwise, use_local_output: false}\n  net3: {style: colwise, "
         "use_local_output: false}\n"},
        {BLOCK("16", "8") "pass: backward\nmesh: {tp: 2}\nplan:\n" SP,
         BLOCK("16", "8") "pass: backward\nmesh: {tp: 2}\nplan:\n" SP
                          "  layers.0.attention_norm: {style: sequence_parallel, use_local_output: "
                          "true}\n"},
        {BLOCK("16", "8") "pass: backward\nmesh: {tp: 2}\nplan:\n" SP,
         BLOCK("16", "8") "pass: backward\nmesh: {tp: 2}\nplan:\n" SP
                          "  layers.0.attention.wo: {style: rowwise, output: shard(1), "
                          "use_local_output: false}\n  layers.0.feed_forward.w2: {style: rowwise, "
                          "output: shard(1), use_local_output: false}\n"},
        {BLOCK("16", "8") "pass: backward\nmesh: {tp: 2}\nplan:\n" SP,
         BLOCK("16", "8") "pass: backward\nmesh: {tp: 2}\nplan:\n" SP
                          "  layers.0.attention: {style: prepare_module_input, input: [shard(1)], "
                          "desired_input: [replicate], use_local_output: false}\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        PlanRun one = plan_good(a, rows[i][0], true), two = plan_good(a, rows[i][1], true);
        if (strcmp(collectives(a, one.t), collectives(a, two.t)))
            fail_msg("row %zu:\n%s\n%s", i, collectives(a, one.t), collectives(a, two.t));
        arena_free(a);
    }
}
/* Prepared inputs that are plain again inside: three all-reduces and a slice where the DTensor has
 * one reduce-scatter. */
static void test_local_inputs(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text =
        BLOCK("16", "8") "pass: backward\nmesh: {tp: 2}\nplan:\n" SP
                         "  layers.0.attention: {style: prepare_module_input, input: [shard(1)], "
                         "desired_input: [replicate], use_local_output: %s}\n";
    PlanRun dt = plan_good(a, arena_printf(a, text, "false"), true),
            plain = plan_good(a, arena_printf(a, text, "true"), true);
    assert_int_equal(count_collectives(dt.t, "backward", "reduce_scatter", NULL), 2);
    assert_int_equal(count_collectives(dt.t, "backward", "all_reduce", NULL), 0);
    assert_int_equal(count_collectives(plain.t, "backward", "reduce_scatter", NULL), 1);
    assert_int_equal(count_collectives(plain.t, "backward", "all_reduce", NULL), 3);
    assert_int_equal(count_collectives(plain.t, "forward", "all_gather", NULL),
                     count_collectives(dt.t, "forward", "all_gather", NULL));
    arena_free(a);
}
/* Redistributions that find a DTensor as they want it, or cut what each op gathers: how many
 * collectives PyTorch 2.15 makes in the backward pass. */
#define PREPARED                                                                                   \
    SP "  layers.0.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "    \
       "[replicate]}\n"
#define SHARD_1(w) "  layers.0.attention." w ": {style: colwise, input: shard(1)}\n"
static void test_redistributed_back(void **state) {
    (void)state;
    static const struct {
        const char *plan;
        int gathers, all_reduces, scatters;
    } rows[] = {
        {PREPARED, 2, 0, 2},
        {PREPARED SHARD_1("wk"), 2, 1, 2},
        {PREPARED SHARD_1("wk") SHARD_1("wq"), 2, 2, 2},
        {PREPARED SHARD_1("wk") SHARD_1("wq") SHARD_1("wv"), 2, 3, 1},
        {"  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n"
         "  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: rowwise\n"
         "  layers.0.attention: {style: prepare_module_input, input: [replicate], desired_input: "
         "[shard(1)]}\n",
         3, 2, 0},
    };
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        PlanRun r = plan_good(
            a,
            arena_printf(a,
                         BLOCK("16", "8") "trust: declared\npass: backward\nmesh: {tp: 2}\n"
                                          "plan:\n%s",
                         rows[i].plan),
            true);
        int got[] = {count_collectives(r.t, "backward", "all_gather", NULL),
                     count_collectives(r.t, "backward", "all_reduce", NULL),
                     count_collectives(r.t, "backward", "reduce_scatter", NULL)};
        if (got[0] != rows[i].gathers || got[1] != rows[i].all_reduces ||
            got[2] != rows[i].scatters)
            fail_msg("row %zu: %d, %d, %d", i, got[0], got[1], got[2]);
    }
    arena_free(a);
}
/* A gathered result that stays a DTensor: its gradient is reduced and cut in one, where a plain one
 * is reduced and then sliced. */
static void test_whole_result(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text =
        "model: {kind: mlp, sizes: [4, 8, 6], activation: %s}\ndata: {dtype: f64}\npass: "
        "backward\nmesh: {tp: 2}\nplan:\n"
        "  net1: {style: colwise, output: replicate, use_local_output: %s}\n  net2: colwise\n";
    static const struct {
        const char *activation, *local, *op;
    } rows[] = {{"none", "true", "all_reduce"},
                {"none", "false", "reduce_scatter"},
                {"relu", "false", "all_reduce"}}; /* relu's gradient is no sum: reduced before it */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        PlanRun r = plan_good(a, arena_printf(a, text, rows[i].activation, rows[i].local), true);
        int n = 0;
        for (int k = 0; k < r.t->n_collectives; k++)
            if (r.t->collectives[k].pass == PHASE_BACKWARD &&
                !strstr(r.t->collectives[k].value, "grad.input")) {
                assert_string_equal(r.t->collectives[k].op, rows[i].op);
                n++;
            }
        assert_int_equal(n, 1);
    }
    arena_free(a);
}
/* A wrong label on a DTensor: PyTorch does not look at it, under either trust; of a plain tensor it
 * is an error, or believed. Each row is a plan in which a value is handed on as a DTensor, and how
 * the same label is told where it is plain. */
#define DT_BLOCK BLOCK("16", "8") "pass: backward\nmesh: {tp: 2}\nplan:\n"
static const struct {
    const char *text; /* %s: use_local_output of the module that hands it on, as DTensors */
    const char *local, *says;
    int line;         /* of the label */
    const char *also; /* a label further in, which is not true either: nothing moved before it */
} labels[] = {
    /* record 08_hook_trap_dtensor: right numbers, where 08_wrong_hook_trap_local has wrong ones */
    {"model: {kind: mlp, sizes: [16, 24, 16, 24, 16], activation: none}\ndata: {rows: 8, dtype: "
     "f64}\npass: backward\nmesh: {tp: 2}\nplan:\n  net1: colwise\n"
     "  net2: {style: rowwise, output: shard(0), use_local_output: %s}\n  net3: colwise\n"
     "  net4: rowwise\n",
     "true", "goes by how it lies, and its op moves it", 8, NULL},
    /* a norm hands it on by default: the prepared input of its consumer is left out */
    {DT_BLOCK TITAN_BLOCK_NORMS TITAN_ATTENTION
     "  layers.*.feed_forward.w[13]: colwise\n"
     "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n"
     "  layers.0.ffn_norm: {style: sequence_parallel, use_local_output: %s}\n",
     "true", "the input of layers.0.feed_forward.w1, w3 is said to lie as [B, S, D]", 11, NULL},
    /* a label that is what is wanted moves nothing, and is not true */
    {DT_BLOCK TITAN_BLOCK_NORMS TITAN_ATTENTION TITAN_FFN
     "  layers.0.feed_forward: {style: prepare_module_input, input: [replicate], desired_input: "
     "[replicate]}\n  layers.0.ffn_norm: {style: sequence_parallel, use_local_output: %s}\n",
     "true", "goes by how it lies, and moves nothing here", 14,
     "the input of layers.0.feed_forward.w1, w3 is said to lie as [B, S, D]"},
    /* a prepared input, under the label of what it was before */
    {DT_BLOCK TITAN_BLOCK_NORMS TITAN_ATTENTION TITAN_FFN
     "  layers.0.feed_forward.w1: {style: colwise, input: shard(1)}\n"
     "  layers.0.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: "
     "[replicate], use_local_output: %s}\n",
     "true",
     "as layers.0.feed_forward (line 15) hands it in: PyTorch goes by how it "
     "lies, and moves it",
     14, NULL},
};
static void test_label_of_a_dtensor(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        for (int k = 0; k < 4; k++) {
            bool plain = k / 2, declared = k % 2;
            Arena *a = arena_new();
            const char *text = arena_printf(a, labels[i].text, plain ? labels[i].local : "false");
            PlanRun r =
                plan_run(a, "hook.yaml",
                         arena_printf(a, "%s%s", text, declared ? "trust: declared\n" : ""), true);
            const Diag *d = run_diag(&r, "N0013", plain ? "" : labels[i].says);
            const char *verdict = r.t ? r.t->verdict : "refused";
            bool ok = plain
                          ? !d && strcmp(verdict, "equivalent") != 0
                          : d && d->loc.line == labels[i].line && !strcmp(verdict, "equivalent") &&
                                !count(&r, "N0001") && !count(&r, "N0008");
            ok &= plain || !labels[i].also || run_diag(&r, "N0013", labels[i].also);
            if (!ok) run_print(&r);
            if (!ok) fail_msg("row %zu, %s, %s", i, plain ? "plain" : "DTensors", verdict);
            arena_free(a);
        }
}
/* sequence_parallel moves a DTensor from wherever it lies: it says nothing of it. */
static void test_relayed(void **state) {
    (void)state;
    Arena *a = arena_new();
    for (int declared = 0; declared < 2; declared++) {
        PlanRun r = plan_good(
            a,
            arena_printf(
                a,
                WHOLE("16",
                      "8") "pass: backward\nmesh: {tp: 2}\n%splan:\n"
                           "  tok_embeddings: {style: rowwise, use_local_output: false}\n"
                           "  layers.0.attention.wo: {style: rowwise, use_local_output: false}\n"
                           "  layers.0.feed_forward.w2: {style: rowwise, use_local_output: false}\n"
                           "  layers.0.attention_norm: sequence_parallel\n"
                           "  layers.0.ffn_norm: sequence_parallel\n  norm: sequence_parallel\n"
                           "  layers.0.attention: {style: prepare_module_input, input: [shard(1)], "
                           "desired_input: [replicate]}\n"
                           "  layers.0.attention.w[qkv]: colwise\n"
                           "  layers.0.feed_forward: {style: prepare_module_input, input: "
                           "[shard(1)], desired_input: [replicate]}\n"
                           "  layers.0.feed_forward.w[13]: colwise\n"
                           "  output: {style: colwise, input: shard(1), output: replicate}\n",
                declared ? "trust: declared\n" : ""),
            true);
        if (r.d->n) run_print(&r);
        assert_int_equal(r.d->n, 0);
        run_must_be(&r, "equivalent");
    }
    arena_free(a);
}
/* What is made a DTensor by a label and plain again, without a move between: the label changes
 * nothing. Believed it would be something else. */
static void test_idle_label(void **state) {
    (void)state;
    static const char *const lines[] = {
        "  layers.0.attention: {style: prepare_module_output, output: shard(1), desired_output: "
        "shard(1)}\n",
        "  layers.0.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: "
        "[shard(1)], use_local_output: true}\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            DT_BLOCK "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n"
                     "  layers.*.feed_forward.w[13]: colwise\n"
                     "  layers.*.feed_forward.w2: rowwise\n%s",
            lines[i]);
        PlanRun r = plan_run(a, "idle.yaml", text, false);
        assert_non_null(run_diag(&r, "E0402", ""));
        r = plan_good(a, arena_printf(a, "%strust: declared\n", text), true);
        run_must_be(&r, "equivalent");
        arena_free(a);
    }
}
/* prepare_* with a goal and no label: PyTorch leaves that argument alone. */
static void test_pairs(void **state) {
    (void)state;
    static const struct {
        const char *style;
        bool refused;
    } rows[] = {{"prepare_module_input, desired_input: [replicate]", true},
                {"prepare_module_input, input: [replicate]", false},
                {"prepare_module_input, input: [null], desired_input: [replicate]", true},
                {"prepare_module_output, desired_output: replicate", true},
                {"prepare_module_input_output, input: [replicate], desired_input: [replicate], "
                 "desired_output: replicate",
                 true},
                {"prepare_module_input, input: [replicate], desired_input: [null]", false},
                {"prepare_module_input, input: [null], desired_input: [null]", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "pairs.yaml",
                             arena_printf(a,
                                          DT_BLOCK "  layers.*.feed_forward: {style: %s}\n"
                                                   "  layers.*.feed_forward.w[13]: colwise\n"
                                                   "  layers.*.feed_forward.w2: rowwise\n",
                                          rows[i].style),
                             true);
        if ((count(&r, "E0208") > 0) != rows[i].refused) run_print(&r);
        assert_int_equal(count(&r, "E0208") > 0, rows[i].refused);
        arena_free(a);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_uneven),
                                       cmocka_unit_test(test_mixed),
                                       cmocka_unit_test(test_no_effect),
                                       cmocka_unit_test(test_local_inputs),
                                       cmocka_unit_test(test_whole_result),
                                       cmocka_unit_test(test_redistributed_back),
                                       cmocka_unit_test(test_label_of_a_dtensor),
                                       cmocka_unit_test(test_plain_logits),
                                       cmocka_unit_test(test_relayed),
                                       cmocka_unit_test(test_idle_label),
                                       cmocka_unit_test(test_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
