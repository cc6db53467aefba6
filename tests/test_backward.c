/* The backward program from outside: the backward and gradient counts of lowering.md 6 and the
 * bytes of semantics.md 10.4, every dense row of the table of semantics.md 5.2 (which parameter's
 * gradient is summed over which axes), and difference quotients of the whole loss, which know
 * nothing of adjoints. Golden gradients are in test_golden. */
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- plans ---- */
enum { LAYERS = 2, B = 4, S = 24, D = 40, K = 4, HEAD = 6 };
#define MODEL_OF(names, extra, parts, kv)                                                          \
    "model: {layers: 2, parts: [" parts "], config: {hidden_size: 40, num_attention_heads: 8, "    \
    "num_key_value_heads: " kv                                                                     \
    ", head_dim: 6, intermediate_size: 48, vocab_size: 56, num_hidden_layers: 2" extra "}}\n"      \
    "data: {batch: 4, sequence: 24, dtype: f64, seed: 5}\nnames: " names "\npass: backward\n"
#define MODEL_KV(extra, parts, kv) MODEL_OF("torchtitan", extra, parts, kv)
#define MODEL(extra, parts) MODEL_KV(extra, parts, "4")
#define BLOCKS MODEL("", "blocks")
#define EVERYTHING MODEL("", WHOLE)
#define WHOLE "embedding, blocks, norm, head, loss"
#define BIASES ", attention_bias: true, mlp_bias: true"
#define QK_NORM ", qk_norm: true"
#define TIED ", tie_word_embeddings: true"
#define COLUMNS                                                                                    \
    "plan:\n  layers.*.attention.w[qkv]: colwise\n  layers.*.feed_forward.w[13]: colwise\n"
#define TP COLUMNS "  layers.*.attention.wo: rowwise\n  layers.*.feed_forward.w2: rowwise\n"
#define SP_NORMS                                                                                   \
    "  layers.*.attention_norm: sequence_parallel\n  layers.*.ffn_norm: sequence_parallel\n"
#define SP_INPUTS                                                                                  \
    "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "       \
    "[replicate]}\n"                                                                               \
    "  layers.*.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: "    \
    "[replicate]}\n"
#define SP_ROWS                                                                                    \
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"                                \
    "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n"
#define SP COLUMNS SP_NORMS SP_INPUTS SP_ROWS
#define SP_PER_MODULE                                                                              \
    "boundary: per_module\nplan:\n"                                                                \
    "  layers.*.attention.w[qkv]: {style: colwise, input: shard(1), desired_input: replicate}\n"   \
    "  layers.*.feed_forward.w[13]: {style: colwise, input: shard(1), desired_input: "             \
    "replicate}\n" SP_NORMS SP_ROWS
#define QK_LINE "  layers.*.attention.[qk]_norm: replicated_with_grad_allreduce\n"
/* around the blocks: torchtitan's lines, without and with sequence parallelism */
#define TP_ENDS                                                                                    \
    "  tok_embeddings: rowwise\n  output: {style: colwise, use_local_output: false}\n  loss: "     \
    "loss_parallel\n"
#define SP_ENDS                                                                                    \
    "  tok_embeddings: {style: rowwise, output: shard(1)}\n  norm: sequence_parallel\n"            \
    "  output: {style: colwise, input: shard(1), use_local_output: false}\n  loss: "               \
    "loss_parallel\n"
#define FSDP(axis, reshard) "data_parallel: {mode: fsdp, axis: " axis ", reshard: " reshard "}\n"

/* ---- counts ---- */
/* So many of one collective: per layer, and once around them. A plan has exactly the rows below and
 * nothing else. */
typedef struct {
    const char *pass, *op, *axes;
    int layer, once;
} Count;
/* Bytes that a rank sends over tp in the backward pass, per layer, in units of A/t with A = b s
 * D 8. 0: not asked. */
typedef struct {
    const char *what, *text;
    int units;
    Count count[16];
} CountCase;
#define FWD_TP                                                                                     \
    { "forward", "all_reduce", "tp", 2, 0 }
#define FWD_SP                                                                                     \
    {"forward", "all_gather", "tp", 2, 0}, { "forward", "reduce_scatter", "tp", 2, 0 }
#define BWD_SP                                                                                     \
    {"backward", "all_gather", "tp", 2, 0}, { "backward", "reduce_scatter", "tp", 2, 0 }
#define CP_KV                                                                                      \
    {"forward", "all_gather", "cp", 2, 0}, { "backward", "reduce_scatter", "cp", 2, 0 }
/* embedding, head and loss with sequence parallelism and a vocabulary-parallel loss */
#define FWD_ENDS                                                                                   \
    {"forward", "all_gather", "tp", 2, 1}, { "forward", "reduce_scatter", "tp", 2, 1 }
#define BWD_ENDS                                                                                   \
    {"backward", "all_gather", "tp", 2, 1}, { "backward", "reduce_scatter", "tp", 2, 1 }
#define LOSS3                                                                                      \
    { "loss", "all_reduce", "tp", 0, 3 }
/* the dot loss of plans without a head is one sum over the axes that cut the blocks' output */
#define DOT(axes)                                                                                  \
    { "loss", "all_reduce", axes, 0, 1 }
static const CountCase counts[] = {
    {"TP", BLOCKS "mesh: {tp: 4}\n" TP, 4 * 3, {FWD_TP, {"backward", "all_reduce", "tp", 2, 0}}},
    {"TP, q/k norm, biases",
     MODEL(BIASES QK_NORM, "blocks") "mesh: {tp: 4}\n" TP QK_LINE,
     4 * 3,
     {FWD_TP, {"backward", "all_reduce", "tp", 2, 0}, {"gradients", "all_reduce", "tp", 2, 0}}},
    {"TP + SP",
     BLOCKS "mesh: {tp: 4}\n" SP,
     4 * 3,
     {FWD_SP, DOT("tp"), BWD_SP, {"gradients", "all_reduce", "tp", 2, 0}}},
    {"TP + SP, biases, q/k norm, Megatron", /* a row bias is added to each part of the sequence
                                               after the sum */
     MODEL_OF("megatron", BIASES QK_NORM, "blocks",
              "4") "mesh: {tp: 4}\nrecipe: megatron-sp\nplan:\n  loss: prepare_module_input\n",
     4 * 3,
     {FWD_SP, DOT("tp"), BWD_SP, {"gradients", "all_reduce", "tp", 6, 0}}},
    {"TP + SP, biases, q/k norm, DTensor", /* ... by shares before it */
     MODEL(BIASES QK_NORM, "blocks") "mesh: {tp: 4}\n" SP QK_LINE,
     4 * 3,
     {FWD_SP, DOT("tp"), BWD_SP, {"gradients", "all_reduce", "tp", 4, 0}}},
    {"per_module, no SP",
     BLOCKS "mesh: {tp: 4}\nboundary: per_module\n" TP,
     10 * 3,
     {FWD_TP, {"backward", "all_reduce", "tp", 5, 0}}},
    {"per_module, SP",
     BLOCKS "mesh: {tp: 4}\n" SP_PER_MODULE,
     7 * 3,
     {{"forward", "all_gather", "tp", 5, 0},
      {"forward", "reduce_scatter", "tp", 2, 0},
      DOT("tp"),
      {"backward", "all_gather", "tp", 2, 0},
      {"backward", "reduce_scatter", "tp", 5, 0},
      {"gradients", "all_reduce", "tp", 2, 0}}},
    {"gathered input not kept",
     BLOCKS "mesh: {tp: 4}\nsave_gathered: false\n" SP,
     6 * 3,
     {FWD_SP,
      DOT("tp"),
      {"backward", "all_gather", "tp", 4, 0},
      {"backward", "reduce_scatter", "tp", 2, 0},
      {"gradients", "all_reduce", "tp", 2, 0}}},
    /* The forward collectives of a layer again, but for its last one: what it makes leaves the
       layer and is kept. */
    {"recompute, TP",
     BLOCKS "mesh: {tp: 4}\nrecompute: block\n" TP,
     6 * 3,
     {FWD_TP, {"backward", "all_reduce", "tp", 2 + 1, 0}}},
    {"recompute, TP + SP",
     BLOCKS "mesh: {tp: 4}\nrecompute: block\n" SP,
     7 * 3,
     {FWD_SP,
      DOT("tp"),
      {"backward", "all_gather", "tp", 2 + 2, 0},
      {"backward", "reduce_scatter", "tp", 2 + 1, 0},
      {"gradients", "all_reduce", "tp", 2, 0}}},
    {"embedding, head, loss, SP",
     EVERYTHING "mesh: {tp: 4}\n" SP SP_ENDS,
     0,
     {FWD_ENDS, LOSS3, BWD_ENDS, {"gradients", "all_reduce", "tp", 2, 1}}},
    {"embedding, head, loss, no SP",
     EVERYTHING "mesh: {tp: 4}\n" TP TP_ENDS,
     0,
     {{"forward", "all_reduce", "tp", 2, 1}, LOSS3, {"backward", "all_reduce", "tp", 2, 1}}},
    {"gathered logits: a slice backward",
     EVERYTHING "mesh: {tp: 4}\n" SP
                "  tok_embeddings: {style: rowwise, output: shard(1)}\n  norm: sequence_parallel\n"
                "  output: {style: colwise, input: shard(1), output: replicate}\n",
     0,
     {{"forward", "all_gather", "tp", 2, 2},
      {"forward", "reduce_scatter", "tp", 2, 1},
      BWD_ENDS,
      {"gradients", "all_reduce", "tp", 2, 1}}},
    {"tied embedding, SP",
     MODEL(TIED, WHOLE) "mesh: {tp: 4}\n" SP SP_ENDS,
     0,
     {FWD_ENDS, LOSS3, BWD_ENDS, {"gradients", "all_reduce", "tp", 2, 1}}},
    {"cp all-gather, zigzag",
     BLOCKS "mesh: {cp: 4}\ncontext_parallel: {mode: all_gather, order: zigzag}\n",
     0,
     {CP_KV, DOT("cp"), {"gradients", "all_reduce", "cp", 9, 0}}},
    {"cp all-gather, contiguous, TP",
     BLOCKS "mesh: {cp: 2, tp: 2}\ncontext_parallel: {mode: all_gather, order: contiguous}\n" TP,
     4,
     {FWD_TP,
      CP_KV,
      DOT("cp"),
      {"backward", "all_reduce", "tp", 2, 0},
      {"gradients", "all_reduce", "cp", 9, 0}}},
    {"dp2 cp2 tp2 SP, DDP",
     BLOCKS "mesh: {dp: 2, cp: 2, tp: 2}\n" SP,
     4,
     {FWD_SP,
      CP_KV,
      DOT("dp*cp*tp"),
      BWD_SP,
      {"gradients", "all_reduce", "dp*cp", 7, 0},
      {"gradients", "all_reduce", "dp*cp*tp", 2, 0}}},
    {"dp2 cp2 tp2 SP, DDP, whole model",
     EVERYTHING "mesh: {dp: 2, cp: 2, tp: 2}\ncontext_parallel: {order: zigzag}\n" SP SP_ENDS,
     0,
     {FWD_ENDS,
      CP_KV,
      LOSS3,
      {"loss", "all_reduce", "dp*cp", 0, 1},
      BWD_ENDS,
      {"gradients", "all_reduce", "dp*cp", 7, 2},
      {"gradients", "all_reduce", "dp*cp*tp", 2, 1}}},
    {"FSDP over dp*cp, resharding",
     EVERYTHING "mesh: {dp: 2, cp: 2, tp: 2}\n" FSDP("dp*cp", "true") SP SP_ENDS,
     0,
     {FWD_ENDS,
      CP_KV,
      LOSS3,
      {"loss", "all_reduce", "dp*cp", 0, 1},
      BWD_ENDS,
      {"parameters", "all_gather", "dp*cp", 2 * 9,
       3 + 2}, /* the embedding's table is not read backward */
      {"gradients", "reduce_scatter", "dp*cp", 9, 3},
      {"gradients", "all_reduce", "tp", 2, 1}}},
    {"FSDP over dp*cp, kept",
     EVERYTHING "mesh: {dp: 2, cp: 2, tp: 2}\n" FSDP("dp*cp", "false") SP SP_ENDS,
     0,
     {FWD_ENDS,
      CP_KV,
      LOSS3,
      {"loss", "all_reduce", "dp*cp", 0, 1},
      BWD_ENDS,
      {"parameters", "all_gather", "dp*cp", 9, 3},
      {"gradients", "reduce_scatter", "dp*cp", 9, 3},
      {"gradients", "all_reduce", "tp", 2, 1}}},
    {"FSDP alone, recompute",
     EVERYTHING "mesh: {dp: 4}\nrecompute: block\n" FSDP("dp", "true"),
     0,
     {{"loss", "all_reduce", "dp", 0, 1},
      {"parameters", "all_gather", "dp", 2 * 9,
       3 + 2}, /* gathered once for the second forward and the backward pass */
      {"gradients", "reduce_scatter", "dp", 9, 3}}},
    {"KV replicated, K 2 on tp 4",
     MODEL_KV(BIASES, "blocks", "2") "mesh: {tp: 4}\n" TP,
     4 * 3,
     {FWD_TP, {"backward", "all_reduce", "tp", 2, 0}, {"gradients", "all_reduce", "tp.1", 4, 0}}},
    {"KV replicated, SP",
     MODEL_KV("", "blocks", "2") "mesh: {tp: 4}\n" SP,
     4 * 3,
     {FWD_SP,
      DOT("tp"),
      BWD_SP,
      {"gradients", "all_reduce", "tp.1", 2, 0},
      {"gradients", "all_reduce", "tp", 2, 0}}},
};
static int64_t axis_size(const Trace *t, const char *name) {
    int64_t n = 1;
    for (int i = 0; i < t->n_axes; i++) {
        const char *a = t->axes[i].name;
        if (!strncmp(a, name, strlen(name)) && (!a[strlen(name)] || a[strlen(name)] == '.'))
            n *= t->axes[i].size;
    }
    return n;
}
static void hold_counts(const CountCase *c, const Trace *t) {
    int all = 0;
    for (const Count *k = c->count; k->pass; k++) {
        int64_t got = count_collectives(t, k->pass, k->op, k->axes),
                want = LAYERS * k->layer + k->once;
        if (got != want)
            fail_msg("%s: %s %s(%s) is %lld, not %lld", c->what, k->pass, k->op, k->axes,
                     (long long)got, (long long)want);
        all += (int)want;
    }
    if (all != t->n_collectives)
        fail_msg("%s: %d collectives, not %d", c->what, t->n_collectives, all);
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].inferred)
            fail_msg("%s: %s of %s is inferred", c->what, t->collectives[i].op,
                     t->collectives[i].value);
}
static void test_counts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int execute = 0; execute < 2; execute++) {
            Arena *a = arena_new();
            PlanRun r = plan_good(a, counts[i].text, execute);
            hold_counts(&counts[i], r.t);
            int64_t sent = 0, tp = axis_size(r.t, "tp"),
                    A = B / axis_size(r.t, "dp") * (S / axis_size(r.t, "cp")) * D * 8;
            for (int k = 0; k < r.t->n_collectives; k++) {
                const TraceCollective *c = &r.t->collectives[k];
                if (c->pass == PHASE_BACKWARD && !strcmp(c->axes, "tp")) sent += c->bytes_sent;
            }
            if (counts[i].units && sent != LAYERS * counts[i].units * A / tp)
                fail_msg("%s: %lld bytes sent backward", counts[i].what, (long long)sent);
            if (execute) printf("%-33s %3d collectives\n", counts[i].what, r.t->n_collectives);
            arena_free(a);
        }
}

/* ---- bytes of data parallelism (semantics.md 5.5, 10.4): R ranks, P_b the parameter bytes of a
 * rank's tp part ---- */
static int64_t sent_of(const Trace *t, const char *pass, const char *op, const char *axes) {
    int64_t n = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!strcmp(phase_text(c->pass), pass) && !strcmp(c->op, op) && !strcmp(c->axes, axes))
            n += c->bytes_sent;
    }
    return n;
}
static void test_data_parallel_bytes(void **state) {
    (void)state;
    Arena *a = arena_new();
    int64_t layer = 8 * (2 * D * 8 * HEAD + 2 * D * K * HEAD + 3 * D * 48) / 2,
            norms = 8 * 2 * D; /* at tp 2 */
    int64_t table = 8 * 56 * D / 2, all = LAYERS * (layer + norms) + 2 * table + 8 * D;
    static const char *const text[] = {
        EVERYTHING "mesh: {dp: 2, cp: 2, tp: 2}\n" SP SP_ENDS,
        EVERYTHING "mesh: {dp: 2, cp: 2, tp: 2}\n" FSDP("dp*cp", "true") SP SP_ENDS,
        EVERYTHING "mesh: {dp: 2, cp: 2, tp: 2}\n" FSDP("dp*cp", "false") SP SP_ENDS,
    };
    /* DDP: 2 (R-1)/R P_b, the norms in one all-reduce over all eight ranks */
    PlanRun r = plan_good(a, text[0], false);
    int64_t whole = LAYERS * norms + 8 * D;
    assert_int_equal(sent_of(r.t, "gradients", "all_reduce", "dp*cp"), 2 * (all - whole) * 3 / 4);
    assert_int_equal(sent_of(r.t, "gradients", "all_reduce", "dp*cp*tp"), 2 * whole * 7 / 8);
    /* FSDP: forward (R-1)/R P_b, backward twice that or, kept, once */
    for (int keep = 0; keep < 2; keep++) {
        r = plan_good(a, text[1 + keep], false);
        assert_int_equal(sent_of(r.t, "parameters", "all_gather", "dp*cp"),
                         (keep ? all : 2 * all - table) * 3 / 4);
        assert_int_equal(sent_of(r.t, "gradients", "reduce_scatter", "dp*cp"), all * 3 / 4);
        assert_int_equal(sent_of(r.t, "gradients", "all_reduce", "tp"),
                         2 * (whole / 4) / 2); /* on the shard */
    }
    arena_free(a);
}

/* ---- the table of semantics.md 5.2 ---- */
/* A plan, a parameter, and every collective that its gradient goes through, in order. */
typedef struct {
    const char *row, *text, *param, *want;
} GradRow;
#define M2 "mesh: {tp: 4}\n"
#define M8 "mesh: {dp: 2, cp: 2, tp: 2}\n"
#define FULL(mesh, lines) MODEL(BIASES QK_NORM, WHOLE) mesh lines QK_LINE
#define MEGATRON(mesh) MODEL_OF("megatron", BIASES QK_NORM, WHOLE, "4") mesh "recipe: megatron-sp\n"
#define L0 "layers.0."
#define BIAS_SHARES                                                                                \
    COLUMNS SP_NORMS SP_INPUTS                                                                     \
        "  layers.*.attention.wo: {style: rowwise, output: shard(1), bias: partial}\n"             \
        "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1), bias: partial}\n"
/* the embedding's table whole on every rank, its result cut to the sequence part */
#define TABLE_WHOLE(placement)                                                                     \
    "styles:\n  table: {axis: tp, weight: " placement ", output: shard(1)}\n" SP                   \
    "  tok_embeddings: table\n  norm: sequence_parallel\n  output: {style: colwise, input: "       \
    "shard(1), use_local_output: false}\n"                                                         \
    "  loss: loss_parallel\n"
/* the head's table whole on every rank, the loss of each sequence part where it is */
#define HEAD_WHOLE                                                                                 \
    SP "  tok_embeddings: {style: rowwise, output: shard(1)}\n  norm: {style: "                    \
       "sequence_parallel, use_local_output: true}\n"
#define KV_WHOLE TP "  layers.*.attention.w[kv]: {style: colwise, desired_input: invariant}\n"
static const GradRow rows[] = {
    {"norm, no SP", FULL(M2, TP TP_ENDS), L0 "attention_norm.weight", ""},
    {"norm, no SP", FULL(M2, TP TP_ENDS), L0 "ffn_norm.weight", ""},
    {"norm, no SP", FULL(M2, TP TP_ENDS), "norm.weight", ""},
    {"norm, SP", FULL(M2, SP SP_ENDS), L0 "attention_norm.weight", "all_reduce(tp)"},
    {"norm, SP", FULL(M2, SP SP_ENDS), L0 "ffn_norm.weight", "all_reduce(tp)"},
    {"norm, SP", FULL(M2, SP SP_ENDS), "norm.weight", "all_reduce(tp)"},
    {"norm, dp and cp, no SP", FULL(M8, TP TP_ENDS), L0 "ffn_norm.weight", "all_reduce(dp*cp)"},
    {"norm, dp and cp, SP", FULL(M8, SP SP_ENDS), L0 "ffn_norm.weight", "all_reduce(dp*cp*tp)"},
    {"column weight", FULL(M2, TP TP_ENDS), L0 "attention.wq.weight", ""},
    {"column weight", FULL(M2, SP SP_ENDS), L0 "attention.wk.weight", ""},
    {"column weight", FULL(M2, SP SP_ENDS), L0 "attention.wv.weight", ""},
    {"column weight", FULL(M2, SP SP_ENDS), L0 "feed_forward.w1.weight", ""},
    {"column weight", FULL(M8, SP SP_ENDS), L0 "feed_forward.w3.weight", "all_reduce(dp*cp)"},
    {"column bias", FULL(M2, TP TP_ENDS), L0 "attention.wq.bias", ""},
    {"column bias", FULL(M2, SP SP_ENDS), L0 "feed_forward.w1.bias", ""},
    {"column bias", FULL(M8, SP SP_ENDS), L0 "attention.wk.bias", "all_reduce(dp*cp)"},
    {"row weight", FULL(M2, TP TP_ENDS), L0 "attention.wo.weight", ""},
    {"row weight", FULL(M2, SP SP_ENDS), L0 "feed_forward.w2.weight", ""},
    {"row weight", FULL(M8, SP SP_ENDS), L0 "attention.wo.weight", "all_reduce(dp*cp)"},
    {"row bias after the sum, no SP", FULL(M2, TP TP_ENDS), L0 "attention.wo.bias", ""},
    {"row bias after the sum, SP", MEGATRON(M2), "decoder.layers.0.self_attention.linear_proj.bias",
     "all_reduce(tp)"},
    {"row bias after the sum, SP", MEGATRON(M8), "decoder.layers.0.mlp.linear_fc2.bias",
     "all_reduce(dp*cp*tp)"},
    {"row bias as DTensor adds it, SP", FULL(M2, SP SP_ENDS), L0 "attention.wo.bias", ""},
    {"row bias as DTensor adds it, SP", FULL(M8, SP SP_ENDS), L0 "feed_forward.w2.bias",
     "all_reduce(dp*cp)"},
    {"row bias by shares, SP", FULL(M2, BIAS_SHARES SP_ENDS), L0 "attention.wo.bias", ""},
    {"row bias by shares, SP", FULL(M8, BIAS_SHARES SP_ENDS), L0 "feed_forward.w2.bias",
     "all_reduce(dp*cp)"},
    {"q norm, no SP", FULL(M2, TP TP_ENDS), L0 "attention.q_norm.weight", "all_reduce(tp)"},
    {"k norm, no SP", FULL(M2, TP TP_ENDS), L0 "attention.k_norm.weight", "all_reduce(tp)"},
    {"q norm, SP", FULL(M2, SP SP_ENDS), L0 "attention.q_norm.weight", "all_reduce(tp)"},
    {"k norm, dp, cp", FULL(M8, SP SP_ENDS), L0 "attention.k_norm.weight", "all_reduce(dp*cp*tp)"},
    {"KV replicated, x with uses that differ", MODEL_KV("", "blocks", "2") M2 TP,
     L0 "attention.wk.weight", "all_reduce(tp.1)"},
    {"KV replicated, x with uses that differ", MODEL_KV("", "blocks", "2") M2 TP,
     L0 "attention.wv.weight", "all_reduce(tp.1)"},
    {"KV replicated, dk and dv reduced", MODEL_KV("", "blocks", "2") M2 KV_WHOLE,
     L0 "attention.wk.weight", ""},
    {"KV replicated, dk and dv reduced", MODEL_KV("", "blocks", "2") M2 KV_WHOLE,
     L0 "attention.wv.weight", ""},
    {"embedding, vocabulary cut", FULL(M2, SP SP_ENDS), "tok_embeddings.weight", ""},
    {"embedding, vocabulary cut", FULL(M8, SP SP_ENDS), "tok_embeddings.weight",
     "all_reduce(dp*cp)"},
    {"embedding whole, no SP", EVERYTHING M2 TP, "tok_embeddings.weight", ""},
    {"embedding whole, its result sliced", EVERYTHING M2 TABLE_WHOLE("replicate"),
     "tok_embeddings.weight", ""},
    {"embedding whole, each rank its tokens", EVERYTHING M2 TABLE_WHOLE("varying_use"),
     "tok_embeddings.weight", "all_reduce(tp)"},
    {"head, vocabulary cut", FULL(M2, SP SP_ENDS), "output.weight", ""},
    {"head, vocabulary cut", FULL(M8, SP SP_ENDS), "output.weight", "all_reduce(dp*cp)"},
    {"head whole, no SP", EVERYTHING M2 TP, "output.weight", ""},
    {"head whole, loss on sequence parts", EVERYTHING M2 HEAD_WHOLE, "output.weight",
     "all_reduce(tp)"},
    {"tied table, both uses summed once", MODEL(TIED, WHOLE) M8 SP SP_ENDS, "tok_embeddings.weight",
     "all_reduce(dp*cp)"},
    {"FSDP: weight", EVERYTHING M8 FSDP("dp*cp", "true") SP SP_ENDS, L0 "attention.wq.weight",
     "reduce_scatter(dp*cp)"},
    {"FSDP: norm, then tp on the shard", EVERYTHING M8 FSDP("dp*cp", "true") SP SP_ENDS,
     L0 "ffn_norm.weight", "reduce_scatter(dp*cp) all_reduce(tp)"},
    {"FSDP over dp only, cp by all-reduce", EVERYTHING M8 FSDP("dp", "true") SP SP_ENDS,
     L0 "attention.wo.weight", "reduce_scatter(dp) all_reduce(cp)"},
};
static const char *reductions(Arena *a, const Trace *t, const char *param) {
    const char *value = arena_printf(a, "grad.param.%s", param);
    Str s = str_new(a);
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (strcmp(c->value, value)) continue;
        assert_int_equal(c->pass, PHASE_GRADIENTS);
        assert_string_equal(c->reduce, "sum");
        assert_true(c->why && *c->why);
        str_addf(&s, "%s%s(%s)", s.n ? " " : "", c->op, c->axes);
    }
    return s.n ? s.s : "";
}
static void test_gradient_table(void **state) {
    (void)state;
    Arena *a = NULL;
    PlanRun r = {0};
    int plans = 0, n_rows = sample_of(sizeof rows / sizeof *rows, "rows");
    for (int i = 0; i < n_rows; i++) {
        if (!i || strcmp(rows[i].text, rows[i - 1].text)) {
            if (a) arena_free(a);
            a = arena_new();
            r = plan_good(a, rows[i].text, true);
            plans++;
        }
        find_param(r.t, rows[i].param);
        const char *got = reductions(a, r.t, rows[i].param);
        if (strcmp(got, rows[i].want))
            fail_msg("%s: the gradient of %s goes through '%s', not '%s'", rows[i].row,
                     rows[i].param, got, rows[i].want);
    }
    arena_free(a);
    printf("%d rows of semantics.md 5.2 on %d plans, each equivalent\n", n_rows, plans);
}
/* What `gradients` plants is what it says: a sum left out, a mean. */
static void test_planted_gradients(void **state) {
    (void)state;
    static const struct {
        const char *word, *cause;
    } words[] = {{"none", "missing"}, {"mean", "averaged"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a, BLOCKS M2 SP "gradients: {layers.1.ffn_norm: %s}\n", words[i].word);
        PlanRun r = plan_run(a, "planted.yaml", text, true);
        run_must_be(&r, "different");
        const char *cause = NULL;
        for (int k = 0; k < r.t->n_checks && !cause; k++)
            if (r.t->checks[k].level && r.t->checks[k].verdict[0] == 'F')
                cause = r.t->checks[k].cause; /* level 0 says what verify found */
        if (!cause || !strstr(cause, words[i].cause))
            fail_msg("%s: %s", words[i].word, cause ? cause : "no cause");
        arena_free(a);
    }
}
/* The gradient at a block's boundary: equal with equal uses without sequence parallelism, a part of
 * the sequence with it. */
static const char *place_of(const TraceShape *s, const char *axis) {
    for (int i = 0; i < s->n_places; i++)
        if (!strcmp(s->place[i].axis, axis)) return s->place[i].place;
    return "";
}
static void test_boundary(void **state) {
    (void)state;
    static const struct {
        const char *text, *place;
    } plans[] = {
        {BLOCKS M2 TP, "replicate"}, {BLOCKS M2 SP, "shard(1)"}, {BLOCKS M8 SP, "shard(1)"}};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(a, plans[i].text, true);
        assert_string_equal(place_of(find_value(r.t, "grad.layers.0.output", true), "tp"),
                            plans[i].place);
        assert_string_equal(place_of(find_value(r.t, "grad.layers.1.resid_attn", true), "tp"),
                            plans[i].place);
        arena_free(a);
    }
}

/* ---- difference quotients ---- */
/* The whole loss of a tiny model at weights of our own, and its gradient; then single weights
 * moved. */
typedef struct {
    Arena *a;
    const char *text;
    NewTensor *w;
    int n;
} Tiny;
static double *loss_at(const Tiny *m, const char *pass, SafeTensors **saved) {
    const char *weights = write_tensors(m->a, "tiny.safetensors", m->w, m->n),
               *out = temp_path(m->a, "tiny.out.safetensors");
    int64_t n;
    PlanRun r =
        plan_run_with(m->a, "tiny.yaml", arena_printf(m->a, m->text, weights, pass),
                      &(PipelineOptions){.execute = true, .threads = 1, .save_values = out});
    if (!r.t || diags_errors(r.d)) run_print(&r);
    assert_true(run_is(&r, "equivalent"));
    SafeTensors *st = golden_tensors(m->a, out);
    double *loss = arena_memdup(m->a, tensor_numbers(m->a, st, "loss_mean", &n), sizeof *loss);
    if (saved) *saved = st;
    else st_close(st);
    return loss;
}
static void hold_quotients(const char *extra, const char *loss, int *held, double *worst) {
    Arena *a = arena_new();
    const char *model = arena_printf(
        a,
        "model: {parts: [" WHOLE
        "], config: {hidden_size: 8, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 4, "
        "intermediate_size: 10, vocab_size: 11, num_hidden_layers: 1%s}, weights: %%s}\n"
        "data: {batch: 2, sequence: 6, dtype: f64, seed: 3}\nnames: hf\nmesh: {tp: 1}\n%spass: "
        "%%s\n",
        extra, loss);
    const char *bare =
        arena_printf(a, "%.*s}\n%s", (int)(strstr(model, ", weights") - model), model,
                     "data: {batch: 2, sequence: 6, dtype: f64}\nnames: hf\nmesh: {tp: 1}\n");
    const Trace *t = plan_good(a, bare, false).t;
    Tiny m = {.a = a, .text = model, .w = ARENA_ARRAY(a, NewTensor, t->n_params), .n = t->n_params};
    uint64_t seed = 12;
    int64_t *count = ARENA_ARRAY(a, int64_t, m.n);
    for (int i = 0; i < m.n; i++) {
        const TraceShape *s = &t->params[i].compute;
        count[i] = 1;
        m.w[i] = (NewTensor){.name = s->name, .nd = s->nd};
        for (int d = 0; d < s->nd; d++) count[i] *= m.w[i].shape[d] = s->global_shape[d];
        double *x = ARENA_ARRAY(a, double, count[i]);
        for (int64_t k = 0; k < count[i]; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            x[k] = (double)(int64_t)(seed >> 33) / (1 << 30) - 1; /* -1 .. 1 */
            if (strstr(s->name, "norm")) x[k] = 1 + x[k] / 4;
        }
        m.w[i].x = x;
    }
    SafeTensors *st;
    loss_at(&m, "backward", &st);
    for (int i = 0; i < m.n; i++) {
        int64_t n;
        const double *g =
            tensor_numbers(a, st, arena_printf(a, "rank0/grad.param.%s", m.w[i].name), &n);
        assert_int_equal(n, count[i]);
        double *x = (double *)(uintptr_t)m.w[i].x, h = 0x1p-13;
        for (int64_t at = count[i] / 3; at < count[i]; at += count[i] / 2 + 1) {
            double keep = x[at], f[4];
            for (int k = 0; k < 4; k++) { /* -2h -h h 2h: the error is of order h^4 */
                x[at] = keep + (k < 2 ? k - 2 : k - 1) * h;
                f[k] = *loss_at(&m, "forward", NULL);
            }
            x[at] = keep;
            double q = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h), off = fabs(q - g[at]);
            if (!(off <= 1e-10 * (1 + fabs(q))))
                fail_msg("d loss / d %s[%lld]: quotient %.12g, gradient %.12g", m.w[i].name,
                         (long long)at, q, g[at]);
            *worst = fmax(*worst, off);
            ++*held;
        }
    }
    st_close(st);
    arena_free(a);
}
static void test_quotients(void **state) {
    (void)state;
    static const char *const models[] = {"", BIASES QK_NORM, TIED BIASES};
    static const char *const losses[] = {"", "",
                                         "loss: {kind: cross_entropy, label_smoothing: 0.1}\n"};
    int held = 0, n = sample_of(3, "models");
    double worst = 0;
    for (int i = 0; i < n; i++) hold_quotients(models[i], losses[i], &held, &worst);
    printf("%d difference quotients, worst difference %.2g\n", held, worst);
    assert_true(held > 20 * n);
}

/* What names speak of is the same in a file as in the run that wrote it. */
static void same_subject(Subject have, Subject want, const char *name) {
    if (have.role != want.role || strcmp(have.of, want.of)) fail_msg("%s: %s", name, have.of);
}
static void test_subjects_in_a_file(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_good(a, counts[0].text, false);
    size_t n;
    int gradients = 0, of_params = 0;
    char *text = trace_text(r.t, a, true, &n);
    const Trace *t = r.t, *u = trace_read(a, r.d, "x", text, n);
    assert_non_null(u);
    for (int i = 0; i < t->n_values; i++)
        same_subject(u->values[i].subject, t->values[i].subject, t->values[i].shape.name);
    for (int i = 0; i < t->n_collectives; i++)
        same_subject(u->collectives[i].subject, t->collectives[i].subject, t->collectives[i].value);
    for (int i = 0; i < t->n_moves; i++)
        same_subject(u->moves[i].subject, t->moves[i].subject, t->moves[i].value);
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        same_subject(u->computes[i].makes, c->makes, c->output);
        for (int k = 0; k < c->n_inputs; k++)
            same_subject(u->computes[i].reads[k], c->reads[k], c->inputs[k]);
        gradients += c->makes.role == OF_GRADIENT;
        of_params += c->makes.role == OF_PARAM_GRADIENT;
    }
    assert_true(gradients > 10 && of_params > 5);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_data_parallel_bytes),
        cmocka_unit_test(test_gradient_table),
        cmocka_unit_test(test_boundary),
        cmocka_unit_test(test_planted_gradients),
        cmocka_unit_test(test_quotients),
        cmocka_unit_test(test_subjects_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
