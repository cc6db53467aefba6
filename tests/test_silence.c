/* What no line of a plan asks for and a framework therefore does not do is never passed over in
 * silence: keys gathered over an axis that a style has cut the sequence by, slices of whole values,
 * and data parallelism over axes whose ranks have the same tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "support/plan_lines.h"
#include "support/support.h"
#include <string.h>

#define MODEL(pass, mesh, data)                                                                    \
    "model: {layers: 1, parts: [embedding, blocks, norm, head, loss], config: {hidden_size: 24, "  \
    "num_attention_heads: 4, num_key_value_heads: 4, head_dim: 6, intermediate_size: 20, "         \
    "vocab_size: 28, num_hidden_layers: 1}}\n"                                                     \
    "data: {batch: 4, sequence: 16, dtype: f64, seed: 3" data "}\nmesh: {" mesh "}\npass: " pass   \
    "\nnames: torchtitan\n"
#define NORMS                                                                                      \
    "  layers.*.attention_norm: " PLAIN_NORM "  layers.*.ffn_norm: sequence_parallel\n"            \
    "  norm: " PLAIN_NORM
#define PLAIN_NORM "{style: sequence_parallel, use_local_output: true}\n"
#define REST                                                                                       \
    BLOCKS "  output: {style: colwise, input: shard(1), use_local_output: false}\n"                \
           "  loss: loss_parallel\n"
#define BLOCKS "  tok_embeddings: {style: rowwise, output: shard(1)}\n" TITAN_FFN
#define OWNED "  layers.*.attention.w[qkvo]: replicated_with_grad_allreduce\n"
#define FFN(tail) "plan:\n  layers.*.feed_forward.w1: colwise\n" tail
#define TP                                                                                         \
    "plan:\n  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n"              \
    "  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: rowwise\n"

#define MLP(mesh, loss)                                                                            \
    "model: {kind: mlp, sizes: [4, 6, 5], bias: true}\ndata: {rows: 4, dtype: f64}\nmesh: {" mesh  \
    "}\npass: backward\nloss: " loss "\nplan:\n  net1: colwise\n"

static const Diag *find(const PlanRun *r, const char *code, const char *says) {
    for (int i = 0; i < r->d->n; i++)
        if (!strcmp(r->d->item[i].code, code) && strstr(r->d->item[i].message, says))
            return &r->d->item[i];
    return NULL;
}
static int count(const PlanRun *r, const char *code) {
    int n = 0;
    for (int i = 0; i < r->d->n; i++) n += !strcmp(r->d->item[i].code, code);
    return n;
}

/* ---- moves of the forward pass ---- */
static const struct {
    const char *what, *text;
    const char *note;  /* of N0001 under rules; NULL: none */
    const char *first; /* the first wrong value under trust: declared; NULL: equivalent */
} moves[] = {
    {"a sequence that a style cut, into plain attention",
     MODEL("forward", "tp: 2", "") "plan:\n" REST NORMS,
     "the all_gather of layers.0.k_rope over tp is made", "layers.0.k_rope"},
    {"the same with gradients that somebody sums",
     MODEL("backward", "tp: 2", "") "plan:\n" REST NORMS OWNED, "all_gather of layers.0.k_rope",
     "layers.0.k_rope"},
    {"only the embedding cuts it",
     MODEL("forward", "tp: 2", "") "plan:\n  tok_embeddings: {style: rowwise, output: shard(1)}\n",
     "all_gather of layers.0.k_rope", "layers.0.k_rope"},
    {"gathered by its line", MODEL("backward", "tp: 2", "") "plan:\n" REST NORMS TITAN_ATTENTION,
     NULL, NULL},
    {"context parallelism is what a cut of the data means", MODEL("backward", "cp: 2", ""), NULL,
     NULL},
    {"the same by `cut`", MODEL("forward", "x: 2", ", cut: {sequence: x}"), NULL, NULL},
    {"context parallelism beside sequence parallelism",
     MODEL("backward", "cp: 2, tp: 2", "") "plan:\n" REST NORMS TITAN_ATTENTION, NULL, NULL},
    {"both, into plain attention: one gather over both, half of it asked for",
     MODEL("forward", "cp: 2, tp: 2", "") "plan:\n" REST NORMS,
     "all_gather of layers.0.k_rope over cp*tp", "layers.0.k_rope"},
    {"a whole factor beside a cut one",
     MODEL("forward", "tp: 2", "") FFN("  layers.*.feed_forward.w2: rowwise\n"),
     "the slice of layers.0.mlp.up over tp is made", "layers.0.mlp.up"},
    {"whole keys beside cut queries",
     MODEL("forward", "tp: 2", "") "plan:\n  layers.*.attention.wq: colwise\n"
                                   "  layers.*.attention.wo: rowwise\n",
     "the slice of layers.0.k_rope over tp is made", "layers.0.k_rope"},
    {"a whole residual beside a part of the sequence",
     MODEL("forward", "tp: 2", "") "plan:\n  layers.*.attention.w[qkv]: colwise\n"
                                   "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n",
     "the slice of embed over tp is made", "embed"},
    {"labels in another order than the tokens",
     MODEL("forward", "cp: 2",
           ", order: {labels: contiguous}") "context_parallel: {order: zigzag}\n",
     "the all_to_all of labels over cp is made", "labels"},
    {"labels beside logits of a sequence that a style cut",
     MODEL("forward", "tp: 2", "") "plan:\n" BLOCKS TITAN_ATTENTION NORMS,
     "the slice of labels over tp is made", "labels"},
    {"a sum that a bias needs and no style asks for",
     "model: {kind: mlp, sizes: [4, 6, 5], bias: true}\ndata: {rows: 4, dtype: f64}\nmesh: {tp: "
     "2}\n"
     "plan:\n  net1: colwise\n  net2: {weight: shard(1)}\n",
     "the all_reduce of net2.product over tp is made", "net2.product"},
    {"values gathered by their line beside cut queries and keys",
     MODEL("backward", "tp: 2", "") "plan:\n  layers.*.attention.w[qk]: colwise\n"
                                    "  layers.*.attention.wv: {style: colwise, output: replicate}\n"
                                    "  layers.*.attention.wo: rowwise\n",
     "the slice of layers.0.v_proj over tp is made", "layers.0.v_proj"},
    {"a factor gathered by its line beside a cut one",
     MODEL("forward", "tp: 2", "")
         FFN("  layers.*.feed_forward.w3: {style: colwise, output: replicate}\n"
             "  layers.*.feed_forward.w2: rowwise\n"),
     "the slice of layers.0.mlp.up over tp is made", "layers.0.mlp.up"},
    {"a model's output left pending, into a loss that takes a part for the whole",
     MLP("tp: 2", "sum") "  net2: {style: rowwise, output: partial}\n",
     "the all_reduce of loss over tp is made", "loss"},
    {"the same with a loss that is given a cotangent",
     MLP("tp: 2", "dot") "  net2: {style: rowwise, output: partial}\n",
     "the all_reduce of loss over tp is made", "loss"},
    {"beside ranks with other rows, whose losses are added up",
     MLP("dp: 2, tp: 2", "sum") "  net2: {style: rowwise, output: partial}\n",
     "the all_reduce of loss over tp is made", "loss"},
    {"plain tensors", MLP("tp: 2", "sum") "  net2: {weight: shard(1), bias: replicate}\n",
     "the all_reduce of net2.product over tp is made", "net2.product"},
    {"a loss over a cut output",
     MLP("dp: 2, tp: 2",
         "sum") "  net2: {style: colwise, input: shard(1), desired_input: replicate}\n",
     NULL, NULL},
    {"a slice that a style asks for",
     MODEL("forward", "tp: 2", "") "plan:\n  layers.*.feed_forward.w2: rowwise_split_input\n", NULL,
     NULL},
};
static void test_moves(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(a, moves[i].text, true);
        bool told = moves[i].note ? find(&r, "N0001", moves[i].note) != NULL : !count(&r, "N0001");
        if (!told) run_print(&r);
        if (!told) fail_msg("%s: %d notes", moves[i].what, count(&r, "N0001"));
        PlanRun own =
            plan_run(a, "plan.yaml", arena_printf(a, "%strust: declared\n", moves[i].text), true);
        const char *want = moves[i].first ? "different" : "equivalent";
        if (!run_is(&own, want)) run_print(&own);
        run_must_be(&own, want);
        if (moves[i].first) assert_string_equal(own.t->first_wrong, moves[i].first);
        arena_free(a);
    }
}

/* ---- data parallelism over axes that cut no tokens ---- */
static const struct {
    const char *what, *text;
    int n; /* notes */
    const char *says, *also;
} sums[] = {
    {"ddp over equal ranks",
     MODEL("backward", "dp: 2, x: 3", "") "data_parallel: {mode: ddp, axis: dp*x}\n", 1,
     "over x counts grad.param.tok_embeddings.weight and 11 more 3 times", NULL},
    {"fsdp", MODEL("backward", "dp: 2, x: 2", "") "data_parallel: {mode: fsdp, axis: dp*x}\n", 1,
     "over x counts grad.param.tok_embeddings.weight and 11 more 2 times", NULL},
    {"hsdp's copies",
     MODEL("backward", "dp: 2, x: 2", "") "data_parallel: {mode: hsdp, replicate: x, shard: dp}\n",
     1, "over x counts", NULL},
    {"hsdp's shards",
     MODEL("backward", "dp: 2, x: 2", "") "data_parallel: {mode: hsdp, replicate: dp, shard: x}\n",
     1, "over x counts", NULL},
    {"ddp over a tensor parallel axis",
     MODEL("backward", "dp: 2, tp: 2", "") "data_parallel: {mode: ddp, axis: dp*tp}\n" TP, 2,
     "over tp adds up gradients of different shards: grad.param.layers.0.attention.wq.weight and 6 "
     "more are cut",
     "over tp counts grad.param.tok_embeddings.weight and 4 more 2 times"},
    {"fsdp over it", MODEL("backward", "tp: 2", "") "data_parallel: {mode: fsdp, axis: tp}\n" TP, 2,
     "over tp adds up gradients of different shards", "over tp counts"},
    {"its norms are sums over it, with sequence parallelism",
     MODEL("backward", "dp: 2, tp: 2",
           "") "data_parallel: {mode: ddp, axis: dp*tp}\nplan:\n" REST TITAN_ATTENTION,
     1, "over tp adds up gradients of different shards: grad.param.tok_embeddings.weight", NULL},
    {"in training",
     MODEL("train", "dp: 2, x: 2", "") "optimizer: {name: sgd, lr: 0.1, steps: 1}\n"
                                       "data_parallel: {mode: ddp, axis: dp*x}\n",
     1, "over x counts", NULL},
    {"over the axes of the tokens",
     MODEL("backward", "dp: 2, cp: 2, tp: 2", "") "data_parallel: {mode: fsdp, axis: dp*cp}\n" TP,
     0, NULL, NULL},
    {"by default", MODEL("backward", "dp: 2, tp: 2", "") "data_parallel: ddp\n" TP, 0, NULL, NULL},
    {"axes of size 1",
     MODEL("backward", "dp: 2, x: 1, tp: 2", "") "data_parallel: {mode: ddp, axis: dp*x}\n" TP, 0,
     NULL, NULL},
    {"a hook on norms that all ranks use alike",
     MODEL("backward", "dp: 3, tp: 2", "") TP "  layers.*.*_norm: replicated_with_grad_allreduce\n",
     1,
     "the hook of replicated_with_grad_allreduce over tp counts "
     "grad.param.layers.0.attention_norm.weight and 1 more 2 times",
     NULL},
    {"a hook on weights that each rank uses for its own tokens",
     MODEL("backward", "tp: 2", "") "plan:\n" REST NORMS OWNED, 0, NULL, NULL},
    {"no gradients", MODEL("forward", "dp: 2, x: 2", "") "data_parallel: {mode: ddp, axis: dp*x}\n",
     0, NULL, NULL},
};
static void test_sums(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(a, sums[i].text, true);
        bool told = count(&r, "N0012") == sums[i].n;
        if (sums[i].says) told &= find(&r, "N0012", sums[i].says) != NULL;
        if (sums[i].also) told &= find(&r, "N0012", sums[i].also) != NULL;
        if (!told) run_print(&r);
        if (!told) fail_msg("%s: %d notes, not %d", sums[i].what, count(&r, "N0012"), sums[i].n);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
