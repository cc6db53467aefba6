/* Which layout a plan's lines give: tied tables, the axis that each line speaks of, and what a line
 * means in the system that it is written for. Every row runs, and is looked at in the trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "support/support.h"
#include <string.h>

#define SIZES                                                                                      \
    "hidden_size: 8, intermediate_size: 12, num_hidden_layers: 1, vocab_size: 12, head_dim: 4, "   \
    "num_attention_heads: 2"
#define MODEL(more)                                                                                \
    "model: {config: {model_type: llama, " SIZES more                                              \
    "}, parts: [embedding, blocks, norm, head, loss]}\n"
#define TIED                                                                                       \
    MODEL(", tie_word_embeddings: true") "data: {sequence: 6, dtype: f64}\npass: backward\n"

/* ---- tied tables ---- */
/* A line on either module, or one on each that agree, lays the one table. */
static void test_tied_table(void **state) {
    (void)state;
    static const struct {
        const char *lines, *place;
    } rows[] = {
        {"  tok_embeddings: rowwise\n", "shard(0)"},
        {"  output: colwise\n", "shard(0)"},
        {"  tok_embeddings: rowwise\n  output: colwise\n", "shard(0)"},
        {"  output: {style: colwise, output: replicate}\n", "shard(0)"},
        {"  tok_embeddings: colwise\n", "shard(1)"},
        {"  output: {style: rowwise, input: replicate, desired_input: shard(-1)}\n", "shard(1)"},
        {"  tok_embeddings: colwise\n  output: {style: rowwise, input: replicate, desired_input: "
         "shard(-1)}\n",
         "shard(1)"},
        {"  output.weight: {weight: shard(0)}\n", "shard(0)"},
        {"  lm_head.weight: {weight: shard(1)}\n", "shard(1)"},
        {"  tok_embeddings.weight: {weight: shard(1)}\n", "shard(1)"},
        {"  tok_embeddings: {input: [replicate]}\n  output: colwise\n",
         "shard(0)"}, /* a line that places no weight */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        PlanRun r =
            plan_good(a, arena_printf(a, TIED "mesh: {tp: 2}\nplan:\n%s", rows[i].lines), true);
        const TraceParam *p = find_param(r.t, "tok_embeddings.weight");
        if (strcmp(p->rest.place[0].place, rows[i].place))
            fail_msg("row %zu: %s, not %s", i, p->rest.place[0].place, rows[i].place);
        arena_free(a);
    }
}
/* Two lines that disagree: one of them would be silently lost. */
static void test_tied_twice(void **state) {
    (void)state;
    static const struct {
        const char *mesh, *lines;
        int line;
        const char *says;
    } rows[] = {
        {"{tp: 2}", "  tok_embeddings: colwise\n  output: colwise\n", 6,
         "line 'tok_embeddings' lays it out as [V, D/tp], line 'output' as [V/tp, D]"},
        {"{tp: 2}", "  output: colwise\n  tok_embeddings: colwise\n", 5,
         "as [V, D/tp], line 'output' as [V/tp, D]"},
        {"{tp: 2}", "  tok_embeddings: replicate\n  output: colwise\n", 6,
         "as [V, D], line 'output' as [V/tp, D]"},
        {"{tp: 2, x: 2}", "  tok_embeddings: {style: rowwise, axis: x}\n  output: colwise\n", 6,
         "as [V/x, D], line 'output' as [V/tp, D]"},
        {"{tp: 2, x: 2}\ngroups: {a: x*tp, b: tp*x}",
         "  tok_embeddings: {style: rowwise, axis: a}\n  output: {style: colwise, axis: b}\n", 7,
         "as [V/(x*tp), D]"},
        {"{tp: 2}", "  tok_embeddings.weight: {weight: shard(1)}\n  output: colwise\n", 6,
         "line 'tok_embeddings.weight'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(
            a, "tied.yaml",
            arena_printf(a, TIED "mesh: %s\nplan:\n%s", rows[i].mesh, rows[i].lines), false);
        const Diag *d = run_diag(&r, "E0210", rows[i].says);
        if (!d || d->loc.line != rows[i].line + 1 || r.t || r.rep.exit != 1) {
            run_print(&r);
            fail_msg("row %zu: E0210 at line %d saying '%s'", i, rows[i].line + 1, rows[i].says);
        }
        arena_free(a);
    }
    Arena *a = arena_new(); /* the head is a table of its own: no conflict */
    plan_good(a,
              MODEL("") "mesh: {tp: 2}\nplan:\n  tok_embeddings: {style: colwise, output: "
                        "replicate}\n  output: colwise\n",
              false);
    PlanRun r = plan_run(
        a, "tied.yaml",
        MODEL(", tie_word_embeddings: true") "mesh: {tp: 2}\nnames: hf\nrecipe: hf-llama\nplan:\n  "
                                             "model.embed_tokens: embedding_colwise\n",
        false);
    const Diag *d =
        run_diag(&r, "E0210",
                 "line 'lm_head' as [V/tp, D]"); /* a recipe's line is shown by the plan's own */
    assert_true(d && d->loc.line == 6);
    arena_free(a);
}
/* Hugging Face gives a model with a plan the embedding's line by itself; with a tied head both cut
 * the vocabulary. */
static void test_recipe_of_hugging_face(void **state) {
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a,
            arena_printf(a, "%smesh: {tp: 2}\ndata: {sequence: 6, dtype: f64}\nrecipe: hf-llama\n",
                         tied ? MODEL(", tie_word_embeddings: true") : MODEL("")),
            true);
        assert_string_equal(find_param(r.t, "model.embed_tokens.weight")->rest.place[0].place,
                            "shard(0)");
        assert_string_equal(find_collective(r.t, "all_reduce", "embed")->axis, "tp");
        arena_free(a);
    }
}

/* ---- axes ---- */
/* Embedding, head and loss speak of `vp` where there is one. */
static void test_vocabulary_axis(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        plan_good(a,
                  MODEL("") "data: {sequence: 6, dtype: f64}\npass: backward\nmesh: {vp: 2, tp: "
                            "2}\nplan:\n  tok_embeddings: rowwise\n"
                            "  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: "
                            "rowwise\n  output: {style: colwise, use_local_output: false}\n  loss: "
                            "loss_parallel\n",
                  true);
    const char *const two[] = {"tok_embeddings.weight", "output.weight"};
    for (int i = 0; i < 2; i++) {
        const TraceParam *p = find_param(r.t, two[i]);
        assert_string_equal(p->rest.place[0].place, "shard(0)");
        assert_string_equal(p->rest.place[0].axis, "vp");
        assert_string_equal(p->rest.place[1].place, "replicate");
    }
    assert_string_equal(find_param(r.t, "layers.0.feed_forward.w1.weight")->rest.place[1].place,
                        "shard(0)");
    assert_int_equal(count_collectives(r.t, "loss", "all_reduce", "vp"), 3);
    assert_int_equal(count_collectives(r.t, "loss", NULL, "tp"), 0);
    arena_free(a);
}

/* ---- systems ---- */
/* `rowwise` with a bias: DTensor adds it by shares before the sum, so that its gradient needs no
 * all-reduce where the result is cut; the others add it after the reduce-scatter, to each rank's
 * part. A line that places the bias has the last word. */
static void test_row_bias(void **state) {
    (void)state;
    static const struct {
        const char *names, *line;
        int reduced; /* all-reduces of the bias' gradient */
    } rows[] = {
        {"torchtitan", "  layers.*.feed_forward.w2: {style: rowwise_rep, output: shard(1)}\n", 0},
        {"torchtune", "  layers.*.mlp.w2: {style: rowwise_rep, output: shard(1)}\n", 0},
        {"hf", "  model.layers.*.mlp.down_proj: {style: rowwise_rep, output: shard(1)}\n", 1},
        {"gguf", "  blk.*.ffn_down: {style: rowwise_rep, output: shard(1)}\n", 1},
        {"megatron", "  decoder.layers.*.mlp.linear_fc2: {style: rowwise_rep, output: shard(1)}\n",
         1},
        {"megatron",
         "  decoder.layers.*.mlp.linear_fc2: {style: rowwise_rep, output: shard(1), bias: "
         "partial}\n",
         0},
        {"torchtitan",
         "  layers.*.feed_forward.w2: {style: rowwise_rep, output: shard(1), bias: replicate}\n",
         1},
        {"torchtitan", "  layers.*.feed_forward.w2: {style: rowwise_rep, output: {tp: shard(1)}}\n",
         0},
        {"torchtitan", "  layers.*.feed_forward.w2: {style: rowwise_rep, output: shard(-1)}\n", 0},
        {"torchtitan", "  layers.*.feed_forward.w2: rowwise_rep\n", 0},
        {"torchtitan", "  layers.*.feed_forward.w2: rowwise_split_input\n", 0},
        {"hf", "  model.layers.*.mlp.down_proj: rowwise_split_input\n", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a,
            arena_printf(
                a,
                "model: {config: {" SIZES
                ", mlp_bias: true}}\ndata: {sequence: 6, dtype: f64, block_input: replicate}\n"
                "pass: backward\nmesh: {tp: 2}\nnames: %s\nplan:\n%s",
                rows[i].names, rows[i].line),
            true);
        int n = 0;
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *c = &r.t->collectives[k];
            n += c->pass == PHASE_GRADIENTS &&
                 (strstr(c->value, "w2.bias") || strstr(c->value, "down_proj.bias") ||
                  strstr(c->value, "ffn_down.bias") || strstr(c->value, "fc2.bias"));
        }
        if (n != rows[i].reduced) fail_msg("row %zu: %d collectives of the bias' gradient", i, n);
        arena_free(a);
    }
}
/* A toy of PyTorch's own is DTensor's under any names; a sum that is left pending takes the bias in
 * shares too. */
static void test_row_bias_of_an_mlp(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_good(a,
                          "model: {kind: mlp, sizes: [6, 10, 7, 5]}\ndata: {rows: 4, dtype: "
                          "f64}\nnames: megatron\npass: backward\nmesh: {tp: 2}\n"
                          "plan:\n  net1: colwise\n  net2: {style: rowwise, output: shard(-1)}\n  "
                          "net3: {style: rowwise, output: shard(0)}\n",
                          true);
    assert_int_equal(count_collectives(r.t, "gradients", NULL, NULL), 0);
    assert_int_equal(count_collectives(r.t, "forward", "reduce_scatter", "tp"), 2);
    const TraceCollective *c = find_collective(r.t, "reduce_scatter", "net2");
    assert_non_null(strstr(c->why, "the sum over "));
    assert_null(strstr(c->why, "its terms"));
    arena_free(a);
}

/* ---- planted gradients ---- */
/* A collective that `gradients:` changes shows that line, whichever style asked for it. */
static void test_planted_gradient(void **state) {
    (void)state;
#define CUT_NORM                                                                                   \
    "  layers.*.ffn_norm: sequence_parallel\n  layers.*.feed_forward.w[13]: {style: colwise, "     \
    "input: shard(1)}\n  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n"
    static const char *const lines[] = {
        CUT_NORM "gradients: {layers.*.ffn_norm: none}\n",
        CUT_NORM "gradients: {layers.*.ffn_norm: mean}\n",
        ("  layers.*.feed_forward.w1: colwise\n  layers.*.feed_forward.w3: colwise\n"
         "  layers.*.feed_forward.w2: rowwise\ngradients: {layers.*.ffn_norm: sum}\n")};
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(
            a, "planted.yaml",
            arena_printf(
                a,
                "model: {config: {" SIZES
                "}}\ndata: {sequence: 6, dtype: f64}\npass: backward\nmesh: {tp: 2}\nplan:\n%s",
                lines[i]),
            true);
        assert_non_null(r.t);
        int n = 0;
        for (int k = 0; k < r.t->n_collectives; k++)
            if (r.t->collectives[k].planted) {
                assert_int_equal(r.t->collectives[k].line, 9);
                n++;
            }
        if (!n) run_print(&r);
        assert_true(n > 0);
        arena_free(a);
    }
}
#undef CUT_NORM

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tied_table),
                                       cmocka_unit_test(test_tied_twice),
                                       cmocka_unit_test(test_recipe_of_hugging_face),
                                       cmocka_unit_test(test_vocabulary_axis),
                                       cmocka_unit_test(test_row_bias),
                                       cmocka_unit_test(test_row_bias_of_an_mlp),
                                       cmocka_unit_test(test_planted_gradient)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
