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
static const Diag *find(const PlanRun *r, const char *code, const char *says) {
    for (int i = 0; i < r->d->n; i++) {
        const Diag *d = &r->d->item[i];
        if (!strcmp(d->code, code) &&
            (strstr(d->message, says) || (d->hint && strstr(d->hint, says))))
            return d;
    }
    return NULL;
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
            (uneven[i].says && !find(&r, "N0006", uneven[i].says))) {
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
/* PyTorch raises: the plan's own use_local_output makes a DTensor meet a plain tensor. */
static void test_mixed(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *says;
    } rows[] = {
        {BLOCK("16",
               "8") "mesh: {tp: 2}\nplan:\n  layers.*.attention.w[qkv]: colwise\n  "
                    "layers.*.attention.wo: {style: rowwise, use_local_output: false}\n"
                    "  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: rowwise\n",
         6, "takes a plain tensor beside it"},
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
        {WHOLE("16", "8") "mesh: {tp: 2}\nplan:\n  output: {style: colwise, output: replicate, "
                          "use_local_output: false}\n",
         5, "PyTorch's cross entropy raises"},
        {WHOLE("16",
               "8") "mesh: {tp: 2}\nplan:\n  output: {style: colwise, use_local_output: false}\n",
         5, "`loss: loss_parallel`"},
        {WHOLE("16", "8") "mesh: {tp: 2}\nplan:\n  output: {style: colwise, use_local_output: "
                          "true}\n  loss: loss_parallel\n",
         5, "loss_parallel does not see them"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "mixed.yaml", rows[i].text, false);
        const Diag *d = find(&r, "E0408", rows[i].says);
        if (!d || d->loc.line != rows[i].line || r.t || r.rep.exit != 1) {
            run_print(&r);
            fail_msg("row %zu: E0408 at line %d saying '%s'", i, rows[i].line, rows[i].says);
        }
        arena_free(a);
    }
}
/* loss_parallel does not see plain logits: noted where nothing is said, in DTensor's systems. */
static void test_plain_logits(void **state) {
    (void)state;
    static const struct {
        const char *lines;
        int n;
    } rows[] = {
        {"plan:\n  output: colwise\n  loss: loss_parallel\n", 1},
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
            a, arena_printf(a, WHOLE("16", "8") "mesh: {tp: 2}\n%s", rows[i].lines), true);
        if (count(&r, "N0011") != rows[i].n) run_print(&r);
        assert_int_equal(count(&r, "N0011"), rows[i].n);
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
        {BLOCK("16", "8") "pass: backward\nmesh: {tp: 2}\nplan:\n  layers.*.attention.w[qkv]: "
                          "colwise\n  layers.*.attention.wo: rowwise\n",
         BLOCK("16",
               "8") "pass: backward\nmesh: {tp: 2}\nplan:\n  layers.*.attention.w[qkv]: {style: "
                    "colwise, use_local_output: false}\n  layers.*.attention.wo: rowwise\n"},
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
/* A wrong label on a DTensor (08_hook_trap_dtensor): PyTorch does not believe it, so `trust:
 * declared` may not either. */
static void test_label_of_a_dtensor(void **state) {
    (void)state;
    for (int local = 0; local < 2; local++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(
            a, "hook.yaml",
            arena_printf(
                a,
                "model: {kind: mlp, sizes: [16, 24, 16, 24, 16], activation: none}\ndata: {rows: "
                "8, dtype: f64}\ntrust: declared\nmesh: {tp: 2}\nplan:\n  net1: colwise\n"
                "  net2: {style: rowwise, output: shard(0), use_local_output: %s}\n  net3: "
                "colwise\n  net4: rowwise\n",
                local ? "true" : "false"),
            true);
        const Diag *d = find(&r, "E0214", "PyTorch goes by how it lies");
        if (local == (d != NULL)) run_print(&r);
        assert_true(local == (d == NULL));
        if (d) assert_int_equal(d->loc.line, 8);
        arena_free(a);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uneven),       cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_no_effect),    cmocka_unit_test(test_local_inputs),
        cmocka_unit_test(test_whole_result), cmocka_unit_test(test_label_of_a_dtensor),
        cmocka_unit_test(test_plain_logits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
