/* How little is noticed? Every op, every adjoint and every sum of a set of plans is spoiled on one
 * rank, in one element, between the step and its check: by one ulp, to the last number within its
 * level-2 bound, and to the first beyond. What must come out is worked out here, without check.c: a
 * changed bit fails where the plan splits no sum or where another rank holds the same block;
 * elsewhere a number fails beyond its bound, and only there. The failure names the step and the
 * rank. Two more things that a check alone cannot see are held here: that a bound is no wider than
 * its theory says, and that a value which changes after its check is noticed end to end. An op of
 * ops/list.h, an adjoint or a kind of move that is never spoiled fails. */
#include "exec/check.h"
#include "ops/op.h"
#include "ops/util.h"
#include "support/spoil.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- the plans ---- */
#define PARTS "parts: [embedding, blocks, norm, head, loss]"
#define TITAN "names: torchtitan\nrecipe: torchtitan-llama3\n"
#define TWO_PARTS(mode)                                                                            \
    "model: {preset: deepseek-v3, layers: 1, scores: parts, " PARTS                                \
    ", config: {hidden_size: 12, vocab_size: 11,\n"                                                \
    "  intermediate_size: 10, num_attention_heads: 4, num_key_value_heads: 4, q_lora_rank: 7,\n"   \
    "  kv_lora_rank: 6, qk_nope_head_dim: 3, qk_rope_head_dim: 4, v_head_dim: 5}}\n"               \
    "data: {batch: 2, sequence: 8, dtype: %s}\nmesh: {cp: 2, tp: 2}\nnames: hf\n"                  \
    "pass: backward\ncontext_parallel: {" mode ", order: zigzag}\nplan:\n"                         \
    "  model.layers.*.self_attn.*_b_proj: colwise\n  model.layers.*.self_attn.o_proj: rowwise\n"   \
    "  model.layers.*.mlp.[gu]*_proj: colwise\n  model.layers.*.mlp.down_proj: rowwise\n"
static const struct {
    const char *name, *text; /* %s: the dtype */
} plans[] = {
    {"sequence and tensor parallel, smoothed, clipped",
     "model: {preset: qwen3-0.6b, layers: 1, " PARTS ", config: {hidden_size: 12, head_dim: 4,\n"
     "  intermediate_size: 10, num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 13,\n"
     "  attention_bias: true}}\n"
     "data: {batch: 2, sequence: 8, dtype: %s}\nmesh: {dp: 2, tp: 2}\ngroups: {sp: tp}\n" TITAN
     "loss: {kind: cross_entropy, label_smoothing: 0.1}\npass: train\n"
     "optimizer: {name: adamw, lr: 0.01, weight_decay: 0.1, clip: 0.5, steps: 2}\n"},
    {"packed, tied, FSDP, micro-batches",
     "model: {config: {hidden_size: 12, intermediate_size: 10, num_hidden_layers: 1,\n"
     "  num_attention_heads: 3, vocab_size: 11, head_dim: 4, packed_mlp: true,\n"
     "  tie_word_embeddings: true}, " PARTS "}\n"
     "data: {batch: 6, sequence: 5, dtype: %s, microbatches: 2}\nmesh: {dp: 3}\nnames: hf\n"
     "pass: train\ndata_parallel: {mode: fsdp, axis: dp}\n"
     "optimizer: {name: sgd, lr: 0.1, momentum: 0.9, steps: 2}\n"},
    {"context parallel, zigzag",
     "model: {config: {hidden_size: 16, intermediate_size: 24, num_hidden_layers: 1,\n"
     "  num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 12, head_dim: 4}, " PARTS "}\n"
     "data: {batch: 2, sequence: 16, dtype: %s}\nmesh: {cp: 2, tp: 2}\n" TITAN
     "pass: backward\ncontext_parallel: {mode: all_gather, order: zigzag}\n"},
    {"a ring whose parts read the final result",
     "model: {config: {hidden_size: 16, intermediate_size: 24, num_hidden_layers: 1,\n"
     "  num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 12, head_dim: 4}, " PARTS "}\n"
     "data: {batch: 2, sequence: 16, dtype: %s}\nmesh: {cp: 2, tp: 2}\n" TITAN
     "pass: backward\ncontext_parallel: {mode: ring, order: zigzag}\n"},
    {"a ring whose parts read their own",
     "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 4}\n"
     "data: {batch: 2, sequence: 12, dtype: %s}\nmesh: {cp: 3}\n"
     "pass: backward\ncontext_parallel: {mode: ring, backward: chain, keep_kv: false}\n"},
    {"latent attention, q of low rank",
     "model: {preset: deepseek-v3, layers: 1, " PARTS
     ", config: {hidden_size: 12, vocab_size: 11,\n"
     "  intermediate_size: 10, num_attention_heads: 4, num_key_value_heads: 4, q_lora_rank: 7,\n"
     "  kv_lora_rank: 6, qk_nope_head_dim: 3, qk_rope_head_dim: 4, v_head_dim: 5}}\n"
     "data: {batch: 2, sequence: 8, dtype: %s}\nmesh: {cp: 2, tp: 2}\nnames: hf\n"
     "pass: backward\ncontext_parallel: {mode: all_gather, order: zigzag}\nplan:\n"
     "  model.layers.*.self_attn.*_b_proj: colwise\n  model.layers.*.self_attn.o_proj: rowwise\n"
     "  model.layers.*.mlp.[gu]*_proj: colwise\n  model.layers.*.mlp.down_proj: rowwise\n"},
    {"chunks, a layer without rotation, temperature",
     "model: {layers: all, config: {model_type: llama4_text, hidden_size: 12, head_dim: 4,\n"
     "  intermediate_size: 10, num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 11,\n"
     "  num_hidden_layers: 2, no_rope_layer_interval: 2, attention_chunk_size: 3, moe_layers: [],\n"
     "  floor_scale: 2}, " PARTS "}\n"
     "data: {batch: 2, sequence: 8, dtype: %s}\nmesh: {cp: 2, tp: 2}\nnames: hf\n"
     "pass: backward\ncontext_parallel: {mode: all_gather, order: zigzag}\nplan:\n"
     "  model.layers.*.self_attn.[qkv]_proj: colwise\n"
     "  model.layers.*.self_attn.o_proj: rowwise\n"
     "  model.layers.*.feed_forward.[gu]*_proj: colwise\n"
     "  model.layers.*.feed_forward.down_proj: rowwise\n"},
    {"norms of 1 + w, a scaled embedding",
     "model: {layers: all, config: {model_type: gemma, hidden_size: 12, head_dim: 2,\n"
     "  intermediate_size: 10, num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 11,\n"
     "  num_hidden_layers: 2, hidden_act: gelu}, " PARTS "}\n"
     "data: {batch: 2, sequence: 8, dtype: %s}\nmesh: {dp: 2, tp: 2}\nnames: hf\n"
     "pass: backward\nrecipe: hf-llama\n"},
    {"column and row, relu",
     "model: {kind: mlp, sizes: [10, 32, 5], bias: true, activation: relu}\n"
     "data: {rows: 20, dtype: %s}\nmesh: {dp: 2, tp: 2}\npass: train\nloss: sum\n"
     "plan:\n  net1: colwise\n  net2: rowwise\noptimizer: {name: sgd, lr: 0.01, steps: 1}\n"},
    {"column and row, gelu",
     "model: {kind: mlp, sizes: [7, 12, 5], bias: true, activation: gelu}\n"
     "data: {rows: 6, dtype: %s}\nmesh: {tp: 3}\npass: train\nloss: var\n"
     "plan:\n  net1: colwise\n  net2: rowwise\noptimizer: {name: adamw, lr: 0.01, steps: 1}\n"},
    {"column and row, tanh, a scale behind",
     "model: {kind: mlp, sizes: [7, 12, 5], bias: true, activation: tanh, scale: true}\n"
     "data: {rows: 6, dtype: %s}\nmesh: {dp: 2, tp: 3}\npass: train\nloss: mse\n"
     "plan:\n  net1: colwise\n  net2: rowwise\noptimizer: {name: adamw, lr: 0.01, steps: 1}\n"},
    {"owners of whole tensors, and what they send back",
     "model: {kind: mlp, sizes: [7, 12, 5], bias: true}\n"
     "data: {rows: 6, dtype: %s}\nmesh: {dp: 3}\npass: train\nloss: sum\n"
     "data_parallel: {mode: zero1, axis: dp}\n"
     "optimizer: {name: adamw, lr: 0.01, steps: 1}\n"},
    {"flat buffers", "model: {kind: mlp, sizes: [7, 12, 5], bias: true}\n"
                     "data: {rows: 6, dtype: %s}\nmesh: {dp: 3}\npass: train\nloss: sum\n"
                     "data_parallel: {mode: zero2, form: megatron, axis: dp}\n"
                     "optimizer: {name: adamw, lr: 0.01, steps: 1}\n"},
    {"a long sum: rounding may be lucky",
     "model: {kind: mlp, sizes: [6, 2048, 5], bias: true, activation: silu}\n"
     "data: {rows: 4, dtype: %s}\nmesh: {tp: 2}\npass: backward\nloss: sum\n"
     "plan:\n  net1: colwise\n  net2: rowwise\n"},
    {"one dim, then another; blocks as shares of a sum",
     "model: {kind: mlp, sizes: [8, 12, 8], bias: true, activation: relu}\n"
     "data: {rows: 8, dtype: %s}\nmesh: {a: 2, b: 2}\npass: backward\nloss: sum\nplan:\n"
     "  net1: {axis: a, desired_input: shard(0), output: shard(1)}\n"
     "  net2: {axis: b, desired_input: shard(0), output: partial}\n"},
    {"stages of a pipeline",
     "model: {kind: mlp, sizes: [6, 9, 7, 5], bias: true, activation: relu}\n"
     "data: {rows: 8, dtype: %s}\nmesh: {pp: 3, dp: 2}\npass: train\n"
     "optimizer: {name: sgd, clip: 0.5}\npipeline: {schedule: zb-h1, microbatches: 4}\n"},
    {"experts on ranks of tokens",
     "model: {config: {model_type: mixtral, hidden_size: 12, intermediate_size: 10,\n"
     "  num_hidden_layers: 1, num_attention_heads: 3, head_dim: 4, vocab_size: 11,\n"
     "  num_local_experts: 4, num_experts_per_tok: 2}, layers: all}\n"
     "data: {batch: 4, sequence: 5, dtype: %s}\nmesh: {dp: 2, tp: 2}\nnames: hf\n"
     "pass: backward\ndata_parallel: {mode: ddp}\nplan:\n"
     "  layers.*.mlp.experts: {axis: dp, weight: {dp: shard(e), tp: shard(w)}, output: {tp: "
     "replicate}}\n"},
    {"a given routing, room for some",
     "model: {config: {model_type: mixtral, hidden_size: 12, intermediate_size: 10,\n"
     "  num_hidden_layers: 1, num_attention_heads: 3, head_dim: 4, vocab_size: 11,\n"
     "  num_local_experts: 4, num_experts_per_tok: 2}, layers: all}\n"
     "data: {batch: 4, sequence: 5, dtype: %s}\nmesh: {dp: 2}\nnames: hf\n"
     "moe: {routing: ragged, capacity_factor: 0.8, priority: score}\n"
     "pass: backward\ndata_parallel: {mode: ddp}\nplan:\n"
     "  layers.*.mlp.experts: {style: expert_parallel, axis: dp}\n"},
    {"sigmoids, groups, a shared expert",
     "model: {config: {model_type: deepseek_v3, hidden_size: 12, intermediate_size: 10,\n"
     "  moe_intermediate_size: 7, num_hidden_layers: 1, num_attention_heads: 2,\n"
     "  num_key_value_heads: 2, vocab_size: 11, q_lora_rank: null, kv_lora_rank: 5,\n"
     "  qk_nope_head_dim: 3, qk_rope_head_dim: 4, v_head_dim: 5, n_routed_experts: 4,\n"
     "  num_experts_per_tok: 2, n_group: 2, topk_group: 1, first_k_dense_replace: 0}, layers: "
     "all}\n"
     "data: {batch: 4, sequence: 5, dtype: %s}\nmesh: {dp: 2}\nnames: hf\n"
     "moe: {aux_loss: exact, aux_coef: 0.2}\n"
     "pass: backward\ndata_parallel: {mode: ddp}\nplan:\n"
     "  layers.*.mlp.experts: {style: expert_parallel, axis: dp}\n"},
    {"weights of all experts' softmax, a dense layer",
     "model: {config: {model_type: qwen3_moe, hidden_size: 12, intermediate_size: 10,\n"
     "  moe_intermediate_size: 7, num_hidden_layers: 2, num_attention_heads: 3, head_dim: 4,\n"
     "  vocab_size: 11, num_experts: 4, num_experts_per_tok: 2, norm_topk_prob: false,\n"
     "  mlp_only_layers: [0]}, layers: all}\n"
     "data: {batch: 4, sequence: 5, dtype: %s}\nmesh: {dp: 2}\nnames: hf\n"
     "moe: {aux_loss: exact, aux_coef: 0.2, z_coef: 0.1}\n"
     "pass: backward\ndata_parallel: {mode: ddp}\nplan:\n"
     "  layers.*.mlp.experts: {style: expert_parallel, axis: dp}\n"},
    {"soft caps, norms around branches",
     "model: {config: {model_type: gemma2, hidden_size: 12, intermediate_size: 10,\n"
     "  num_hidden_layers: 2, num_attention_heads: 4, head_dim: 4, vocab_size: 12,\n"
     "  sliding_window: 3, query_pre_attn_scalar: 2000, attn_logit_softcapping: 0.4}, layers: all, "
     "parts: [embedding, blocks, norm, head, loss]}\n"
     "data: {batch: 2, sequence: 5, dtype: %s}\nmesh: {tp: 2}\nnames: hf\npass: backward\n"
     "plan:\n  layers.*.self_attn.[qkv]_proj: colwise\n  layers.*.self_attn.o_proj: rowwise\n"
     "  lm_head: colwise\n"},
    {"LayerNorm, a weight less 1 and a bias",
     "model: {config: {model_type: nemotron, hidden_size: 12, intermediate_size: 10,\n"
     "  num_hidden_layers: 1, num_attention_heads: 3, head_dim: 4, vocab_size: 11}, layers: all}\n"
     "data: {batch: 2, sequence: 6, dtype: %s}\nmesh: {tp: 2}\nnames: hf\npass: backward\n"
     "plan:\n  layers.*.input_layernorm: {style: sequence_parallel, input: replicate,\n"
     "    desired_input: shard(1)}\n"},
    {"LayerNorm without weights, clipped queries",
     "model: {config: {model_type: olmo, hidden_size: 12, intermediate_size: 10,\n"
     "  num_hidden_layers: 1, num_attention_heads: 4, head_dim: 4, vocab_size: 11,\n"
     "  clip_qkv: 0.4}, layers: all}\n"
     "data: {batch: 2, sequence: 5, dtype: %s}\nmesh: {tp: 2}\nnames: hf\npass: backward\n"
     "plan:\n  layers.*.self_attn.[qkv]_proj: colwise\n"},
    {"an activation with scalars of its own",
     "model: {config: {model_type: apertus, hidden_size: 12, intermediate_size: 10,\n"
     "  num_hidden_layers: 1, num_attention_heads: 3, head_dim: 4, vocab_size: 11}, layers: all}\n"
     "data: {batch: 2, sequence: 5, dtype: %s}\nmesh: {tp: 2}\nnames: hf\npass: backward\n"
     "plan:\n  layers.*.mlp.up_proj: colwise\n  layers.*.mlp.down_proj: rowwise\n"},
    {"sinks, experts with biases",
     "model: {config: {model_type: gpt_oss, hidden_size: 12, intermediate_size: 6,\n"
     "  num_hidden_layers: 1, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 4,\n"
     "  num_local_experts: 4, num_experts_per_tok: 2, swiglu_limit: 0.5, vocab_size: 11},\n"
     "  layers: all}\n"
     "data: {batch: 2, sequence: 5, dtype: %s}\nmesh: {tp: 2}\nnames: hf\npass: backward\n"
     "plan:\n  layers.*.self_attn.[qkv]_proj: colwise\n  layers.*.self_attn.o_proj: rowwise\n"
     "  layers.*.mlp.experts.down_proj: rowwise\n"},
    {"learned positions, weights stored input dim first",
     "model: {config: {model_type: gpt2, n_embd: 12, n_inner: 10, n_layer: 1, n_head: 3,\n"
     "  n_positions: 7, vocab_size: 12, tie_word_embeddings: true}, layers: all,\n"
     "  parts: [embedding, blocks, norm, head, loss]}\n"
     "data: {batch: 2, sequence: 5, dtype: %s}\nmesh: {tp: 2}\nnames: hf\npass: backward\n"
     "plan:\n  transformer.wpe: rowwise\n  transformer.h.*.mlp.c_fc: colwise\n"
     "  transformer.h.*.mlp.c_proj: rowwise\n"},
    {"a whole value as shares of a sum",
     "model: {kind: mlp, sizes: [8, 6], bias: true}\ndata: {rows: 5, dtype: %s}\n"
     "mesh: {a: 2, b: 2}\npass: backward\nloss: sum\nplan:\n  net1: {axis: b, output: partial}\n"},
    {"latent attention, scores in two parts", TWO_PARTS("mode: all_gather")},
    {"the same in a ring", TWO_PARTS("mode: ring")},
    {"the same with its latent going round", TWO_PARTS("mode: ring, latent: true")},
};
enum { N_PLANS = sizeof plans / sizeof plans[0] };

/* ---- what is known of a step ---- */
typedef struct {
    Arena *a;
    const char *plan;
    Dtype dt;
    int64_t turn; /* draws ranks and elements */
    long steps, spoiled, odd, wrong, replicas;
    uint32_t forward[64];                            /* per op of the list: bit dtype */
    uint32_t adjoint[64][RULE_MAX_IN], operands[64]; /* operands: those that may have a gradient */
    uint32_t moved[MOVE_KINDS], summed, summed_parameter, source;
    double bound[64][RULE_MAX_IN + 1]; /* per op and operand (last: forward): the tightest, in u of
                                          the largest value */
    double bound_of[MOVE_KINDS];
} Strength;
static int op_number(const Op *op) {
    for (int i = 0; i < n_ops; i++)
        if (op_list[i] == op) return i;
    return -1;
}
/* Does the plan split what the step sums over? It makes a pending sum of what was none. */
static bool splits(const Exec *e, const Step *s) {
    const Program *p = e->p;
    int r[RULE_MAX_IN + 3], n = step_reads(s, r);
    for (int a = 0; a < p->mesh->naxes; a++) {
        bool new = p->val[s->out].L.type[a] == TY_P && p->mesh->axis[a].size > 1;
        for (int k = 0; k < n; k++) new &= p->val[r[k]].L.type[a] != TY_P;
        if (new) return true;
    }
    return false;
}
static bool reduces(const Step *s) {
    return s->kind == ST_MOVE &&
           (s->move.kind == MOVE_ALL_REDUCE || s->move.kind == MOVE_REDUCE_SCATTER ||
            s->move.kind == MOVE_ALL_REDUCE_MAX);
}
/* A value becomes shares of a sum: that a share is wrong shows in the sum. */
static bool spreads(const Step *s) {
    return s->kind == ST_MOVE &&
           (s->move.kind == MOVE_KEEP || s->move.kind == MOVE_PAD || s->move.kind == MOVE_TERM);
}
/* Is every bit of the output known? */
static bool by_bits(const Exec *e, const Step *s) {
    if (s->kind == ST_OP || s->kind == ST_ADJOINT) return e->dtype == DT_F64 || !splits(e, s);
    return !reduces(s) || s->move.kind == MOVE_ALL_REDUCE_MAX;
}
/* Does another rank hold the same block of the value, and the same share of its pending sums? */
static bool has_replica(const Exec *e, int val, int64_t rank) {
    const Mesh *m = e->p->mesh;
    const Layout *l = &e->p->val[val].L;
    for (int64_t q = 0; q < m->nranks; q++) {
        bool same = q != rank;
        for (int a = 0; a < m->naxes; a++)
            same &= mesh_coord(m, q, a) == mesh_coord(m, rank, a) || l->type[a] == TY_I ||
                    l->type[a] == TY_R;
        if (same) return true;
    }
    return false;
}
/* The largest magnitude that any rank holds of the value, the one that is being spoiled apart. */
static double largest(const Exec *e, int val) {
    double top = 0;
    const Store *st = exec_store(e, val);
    for (int k = 0; k < st->n; k++) {
        Spoil x = spoil_part((Exec *)(uintptr_t)e, val, st->l[k].rank);
        for (int64_t i = 0; i < x.n; i++) top = fmax(top, fabs(spoil_get(&x, i)));
        spoil_undo(&x);
    }
    return top;
}

/* ---- asking the check ---- */
typedef struct {
    bool failed, here, alone,
        odd; /* here: the first record that fails names the step, and this rank; alone: no other */
    bool by_bound, bound_failed; /* there is a record of level 2 */
    double bound, want, error;
} Answer;
static Answer ask(const Exec *e, const Step *s, int val, int64_t rank) {
    Arena *tmp = arena_new();
    Trace *t = trace_new(tmp);
    Check *c = check_new(tmp, (Exec *)(uintptr_t)e, t);
    Answer r = {0};
    if (s) check_step(c, s);
    else check_source(c, val);
    for (int i = 0; i < t->n_checks; i++) {
        const TraceCheck *k = &t->checks[i];
        bool bad = k->verdict[0] == 'F';
        if (bad && !r.failed) r.alone = rankset_count(&k->ranks) == 1;
        if (bad && !r.failed) r.here = k->step == (s ? s->id : -1) && rankset_has(&k->ranks, rank);
        r.failed |= bad;
        r.odd |= k->verdict[0] == 'S';
        if (k->level != 2) continue;
        r.by_bound = true;
        r.bound_failed |= bad;
        r.bound = k->bound;
        r.want = k->want;
        r.error = k->max_abs;
    }
    arena_free(tmp);
    return r;
}
static void complain(Strength *x, const Exec *e, const Step *s, int64_t rank, const char *how,
                     const Answer *r, bool expected) {
    x->wrong++;
    print_error(
        "%s, %s: step %d %s of %s (%s), rank %lld, %s: %s%s, expected %s; bound %g, error %g\n",
        x->plan, e->dtype == DT_F32 ? "f32" : "f64", s ? s->id : -1,
        s ? phase_text(s->pass) : "source", s ? step_name(e->p, s, x->a) : "",
        s ? (s->kind == ST_OP        ? "op"
             : s->kind == ST_ADJOINT ? "adjoint"
             : s->kind == ST_SUM     ? "sum"
             : s->kind == ST_MOVE    ? move_name(s->move.kind)
                                     : "other")
          : "",
        (long long)rank, how, r->failed ? "FAIL" : "PASS",
        r->failed && !r->here ? " elsewhere" : "", expected ? "FAIL" : "PASS", r->bound, r->error);
}
/* The part's element i is x: does the check say what it must? `bound`, `want`: of level 2 where
 * there is one. */
static void hold(Strength *x, const Exec *e, const Step *s, Spoil *part, int64_t i, double value,
                 bool bits, double bound, double want, const char *how) {
    double was = spoil_get(part, i);
    spoil_set(part, i, value);
    value = spoil_get(part, i);
    bool changed = value != was || signbit(value) != signbit(was);
    bool beyond = !(fabs(value - want) <= bound), due = (bits && changed) || (!bits && beyond);
    Answer r = ask(e, s, part->val, part->rank);
    x->spoiled++;
    x->odd += r.odd;
    bool known = !s || (by_bits(e, s) &&
                        !spreads(s)); /* what the rank must hold, not only that two differ */
    if (r.failed != due || (due && !r.here) || (due && known && !r.alone) ||
        (r.by_bound && !bits && r.bound_failed != beyond))
        complain(x, e, s, part->rank, how, &r, due);
    spoil_set(part, i, was);
}
static void note_bound(Strength *x, const Exec *e, const Step *s, double bound, double top) {
    double *b = &x->bound_of[s->move.kind],
           u = x->dt == DT_F32 ? 0x1p-24 : 0x1p-52; /* twice in f64 */
    const GNode *n = &e->p->graph->node[s->node];
    if (s->kind == ST_OP) b = &x->bound[op_number(n->op)][RULE_MAX_IN];
    if (s->kind == ST_ADJOINT) b = &x->bound[op_number(n->op)][s->operand];
    if (top > 1e-6) *b = fmax(*b, bound / (u * top));
}
/* The last number of the dtype on that side of `want` whose distance is within the bound. */
static double last_within(Dtype dt, double want, double bound, double side) {
    double v = want + side * bound;
    if (dt == DT_F32) v = (double)(float)v;
    while (!(fabs(v - want) <= bound)) v = spoil_next(dt, v, want);
    for (double n = spoil_next(dt, v, side * INFINITY); fabs(n - want) <= bound;
         n = spoil_next(dt, v, side * INFINITY))
        v = n;
    return v;
}
static void spoil_element(Strength *x, const Exec *e, const Step *s, int val, int64_t rank) {
    while (!exec_local(e, val, rank)) rank = (rank + 1) % e->p->mesh->nranks;
    Spoil part = spoil_part((Exec *)(uintptr_t)e, val, rank);
    int64_t i = part.n ? (x->turn * 31 + 7) % part.n : 0;
    double was = part.n ? spoil_get(&part, i) : 0, side = x->turn & 1 ? 1 : -1;
    bool replica = has_replica(e, val, rank), bits = !s || by_bits(e, s) || replica;
    if (part.n && isfinite(was)) {
        spoil_set(&part, i, was + side * (1e6 + 1e6 * fabs(was))); /* asks for the bound */
        Answer r = ask(e, s, val, rank);
        if (!r.failed || !r.here || (s && reduces(s) && !r.by_bound))
            complain(x, e, s, rank, "by a million", &r, true);
        spoil_set(&part, i, was);
        x->replicas += replica && s && !by_bits(e, s);
        double ulp = spoil_next(exec_dtype(e, val), was, side * INFINITY),
               within = r.by_bound ? last_within(x->dt, r.want, r.bound, side) : was;
        hold(x, e, s, &part, i, ulp, bits, r.bound, r.want, "by an ulp");
        if (r.by_bound) {
            hold(x, e, s, &part, i, within, bits, r.bound, r.want, "to the bound");
            hold(x, e, s, &part, i, spoil_next(x->dt, within, side * INFINITY), bits, r.bound,
                 r.want, "beyond the bound");
            if (s) note_bound(x, e, s, r.bound, largest(e, val));
        }
    }
    spoil_undo(&part);
}

/* ---- the watch ---- */
static void count(Strength *x, const Exec *e, const Step *s) {
    uint32_t bit = x->dt == DT_F32 ? 1 : 2;
    const Val *v = &e->p->val[s->out];
    if (s->kind == ST_OP) {
        const GNode *n = &e->p->graph->node[s->node];
        int op = op_number(n->op);
        x->forward[op] |= bit;
        for (int k = 0; k < n->nin; k++)
            if (!(n->op->nodiff >> k & 1) && !exec_is_int(e, s->in[k])) x->operands[op] |= 1u << k;
    }
    if (s->kind == ST_ADJOINT)
        x->adjoint[op_number(e->p->graph->node[s->node].op)][s->operand] |= bit;
    if (s->kind == ST_MOVE) x->moved[s->move.kind] |= bit;
    if (s->kind == ST_SUM)
        *(e->p->graph->t[v->tensor].kind == KIND_PARAM ? &x->summed_parameter : &x->summed) |= bit;
    x->steps++;
}
static void sources(Strength *x, Exec *e) {
    for (int v = 0; v < e->p->nv; v++) {
        if (e->p->val[v].step >= 0 || !exec_store(e, v)->alive) continue;
        spoil_element(x, e, NULL, v, ++x->turn % e->p->mesh->nranks);
        x->source |= x->dt == DT_F32 ? 1 : 2;
    }
}
static void watch(void *arg, Exec *e, const Step *s, bool checked) {
    Strength *x = arg;
    if (checked) return;
    if (s->id == 0 && !x->steps) sources(x, e);
    if (s->kind == ST_SEED) { /* what is drawn for others does not depend on it */
        spoil_element(x, e, s, s->out, s->id % e->p->mesh->nranks);
        return;
    }
    count(x, e, s);
    for (int k = 0; k < 2; k++) {
        int64_t rank = (s->id * 5 + x->turn++) % e->p->mesh->nranks;
        spoil_element(x, e, s, s->out, rank);
    }
}
/* `text` has %s where the dtype stands. */
static void spoil_plan(Strength *x, const char *name, const char *plan, Dtype dt) {
    x->a = arena_new();
    x->plan = name;
    x->dt = dt;
    x->steps = x->turn = 0; /* what is drawn does not depend on the plans before */
    const char *d = dt == DT_F32 ? "f32" : "f64", *text = arena_printf(x->a, plan, d);
    PipelineOptions o = {.execute = true, .threads = 1, .watch = watch, .watch_arg = x};
    PlanRun r = plan_run_with(x->a, "strength.yaml", text, &o);
    if (!run_is(&r, "equivalent")) run_print(&r);
    assert_non_null(r.t);
    run_must_be(&r, "equivalent");
    printf("%s, %s: %ld steps\n", x->plan, d, x->steps);
    arena_free(x->a);
}
/* Every activation of the list in a plan of its own. */
static void spoil_activations(Strength *x) {
    Arena *a = arena_new();
    for (int i = 0; i < n_ops; i++) {
        const char *name = op_list[i]->activation;
        if (!name) continue;
        const char *plan =
            arena_printf(a,
                         "model: {kind: mlp, sizes: [7, 12, 5], bias: true, activation: %s}\n"
                         "data: {rows: 6, dtype: %%s}\nmesh: {tp: 3}\npass: backward\nloss: var\n"
                         "plan:\n  net1: colwise\n  net2: rowwise\n",
                         name);
        spoil_plan(x, name, plan, DT_F64);
        spoil_plan(x, name, plan, DT_F32);
    }
    arena_free(a);
}
static int never(uint32_t seen, const char *what, const char *name, int operand) {
    if (seen == 3) return 0;
    print_error("never spoiled%s: %s %s %d\n",
                seen == 1   ? " in f64"
                : seen == 2 ? " in f32"
                            : "",
                what, name, operand);
    return 1;
}
/* No rank calls it: it is what the unsharded model, which has all micro-batches, counts with
 * (test_balance holds the two against each other, and both to plain loops). */
static bool of_no_rank(const Op *op) { return !strcmp(op->name, "counts"); }
static int missing(const Strength *x) {
    int n = 0;
    for (int i = 0; i < n_ops; i++) {
        const Op *op = op_list[i];
        if (of_no_rank(op)) continue;
        n += never(x->forward[i], "op", op->name, -1);
        for (int k = 0; op->adjoint && k < RULE_MAX_IN; k++)
            if (x->operands[i] >> k & 1) n += never(x->adjoint[i][k], "adjoint of", op->name, k);
    }
    for (int k = 0; k < MOVE_KINDS; k++)
        n += never(x->moved[k], "move", move_name((MoveKind)k), -1);
    n += never(x->summed, "sum of", "activations", -1) +
         never(x->summed_parameter, "sum of", "a parameter's gradients", -1);
    return n + never(x->source, "source", "", -1);
}
/* The widest bound of each op that is not exact, in u of the largest value of its result, on these
 * plans: what theory gives today, with room for another draw of elements. A bound that grows beyond
 * says that the check became weaker, and must be argued for. (Attention towards q: norms of 1 + w
 * with weights about 1 make scores about four times as large, and their errors with them.) */
static const struct {
    const char *name;
    int operand; /* -1: forward */
    double most;
    /* clang-format off */
} widest[] = {
    {"einsum", 0, 1.6e+02},  {"einsum", 1, 1.2e+02},  {"einsum", -1, 3.6e+04},
    {"add", 0, 9},           {"add", 1, 45},          {"add", -1, 9},
    {"rmsnorm", 0, 3.3e+03}, {"rmsnorm", 1, 3.6e+03}, {"rmsnorm", -1, 54},
    {"rope", 0, 13},         {"rope", -1, 22},        {"attention", 0, 2600},
    {"attention", 1, 2000},  {"attention", 2, 740},   {"attention", -1, 1400},
    {"silu", 0, 60},         {"silu", -1, 36},        {"embed", 0, 2.3e+03},
    {"sumexp", 0, 1.1e+02},  {"sumexp", -1, 1.3e+02}, {"nll", 0, 16},
    {"nll", 2, 16},          {"nll", -1, 30},         {"gelu", 0, 48},
    {"gelu", -1, 45}, {"tanh", 0, 48}, {"tanh", -1, 45},        {"gelu_tanh", 0, 60},    {"gelu_tanh", -1, 200},
    {"relu_squared", 0, 20}, {"relu_squared", -1, 20}, {"rmsnorm_plus", 0, 3.3e+03},
    {"rmsnorm_plus", 1, 3.6e+03}, {"rmsnorm_plus", -1, 54},
        {"axpby", -1, 5.1e+03},  {"ema_square", -1, 6.6e+04},
    {"adamw", -1, 1.3e+02},  {"sumsq", -1, 4e+02},    {"clip", -1, 66},
    {"scale", 0, 8.1},       {"scale", -1, 8.1},      {"rowsum", -1, 42},
    {"swiglu", 0, 39},       {"swiglu", -1, 51},      {"reduce_scatter", -1, 21},
    {"all_reduce", -1, 69},  {"gate", 0, 60},         {"gate", -1, 30},
    {"gate_all", 0, 200},    {"gate_all", -1, 200},   {"concat", 1, 6},
    {"temperature", 0, 6},   {"temperature", -1, 6},  {"share", 0, 200},
    {"share", -1, 60},       {"sigmoid", 0, 200},     {"sigmoid", -1, 40},
    {"softmax", 0, 1.2e+03},     {"softmax", -1, 16},     {"normalise", 0, 60},
    {"normalise", -1, 12},   {"logsumexp", 0, 8},     {"logsumexp", -1, 12},
    {"attention_part", 0, 120},    {"attention_part", 1, 400},   {"attention_part", 2, 180},
    {"attention_part", -1, 90},   {"attention_merge", 0, 3600}, {"attention_merge", 1, 3600},
    {"attention_two_parts", 0, 2600}, {"attention_two_parts", 1, 2600},
    {"attention_two_parts", 2, 2000}, {"attention_two_parts", 3, 2000},
    {"attention_two_parts", 4, 740}, {"attention_two_parts", -1, 1400},
    {"attention_two_parts_part", 0, 100}, {"attention_two_parts_part", 1, 130},
    {"attention_two_parts_part", 2, 60}, {"attention_two_parts_part", 3, 200},
    {"attention_two_parts_part", 4, 160}, {"attention_two_parts_part", -1, 180},
    {"attention_merge", -1, 1200}, {"attention_join", -1, 420},
    {"position", 0, 400},    {"layernorm", 1, 500},
    {"layernorm", 0, 460},   {"layernorm", -1, 200},  {"layernorm_plus", 0, 1.2e+03},
    {"layernorm_plus", 1, 400}, {"layernorm_plus", -1, 240}, {"softcap", 0, 20},
    {"softcap", -1, 20},     {"clamp", -1, 2},        {"xielu", 0, 50},
    {"xielu", 1, 400},       {"xielu", 2, 700},       {"xielu", -1, 40},
    {"attention_sink", 0, 24}, {"attention_sink", 1, 1.4e+03}, {"attention_sink", -1, 6},
    {"limit_pairs", -1, 2}, {"swiglu_up_plus", 0, 18}, {"swiglu_up_plus", -1, 42},
};
/* clang-format on */
static double known_bound(const char *name, int operand) {
    for (size_t i = 0; i < sizeof widest / sizeof *widest; i++)
        if (!strcmp(widest[i].name, name) && widest[i].operand == operand) return widest[i].most;
    return 0;
}
static int wide(double bound, const char *name, int operand) {
    double most = known_bound(name, operand);
    if (bound <= most && (bound > 0 || most == 0)) return 0;
    print_error("%s, %s %d: a bound of %.3g u of the largest value, expected up to %.3g\n", name,
                operand < 0 ? "forward" : "adjoint", operand, bound, most);
    return 1;
}
static int too_wide(const Strength *x) {
    int n = 0;
    for (int i = 0; i < n_ops; i++)
        for (int k = 0; k <= RULE_MAX_IN; k++)
            n += wide(x->bound[i][k], op_list[i]->name, k == RULE_MAX_IN ? -1 : k);
    for (int k = MOVE_ALL_GATHER; k < MOVE_ALL_REDUCE_MAX; k++)
        n += wide(x->bound_of[k], move_name((MoveKind)k), -1);
    return n;
}
static void test_every_step_spoiled(void **state) {
    (void)state;
    Strength x = {0};
    for (int i = 0; i < N_PLANS; i++) {
        spoil_plan(&x, plans[i].name, plans[i].text, DT_F64);
        spoil_plan(&x, plans[i].name, plans[i].text, DT_F32);
    }
    spoil_activations(&x);
    printf("%ld spoiled, %ld wrong, %ld SUSPECT, %ld replicas of sums\n", x.spoiled, x.wrong, x.odd,
           x.replicas);
    assert_int_equal(too_wide(&x), 0);
    assert_true(x.odd > 0 && x.replicas > 0);
    assert_int_equal(missing(&x), 0);
    assert_int_equal(x.wrong, 0);
}

/* ---- what no step's check can see ---- */
typedef struct {
    int step; /* whose value changes on all ranks after it was checked; -1: none */
    double factor;
    int steps;
    bool done, invisible; /* no output, loss or gradient depends on it */
} Late;
static bool is_shift(const Exec *e, int val) { /* the logits' maximum, taken away and added again */
    return !strcmp(e->p->graph->t[e->p->val[val].tensor].name, "loss.max");
}
static void change_late(void *arg, Exec *e, const Step *s, bool checked) {
    Late *l = arg;
    l->steps = e->p->ns;
    if (!checked || s->id != l->step || exec_is_int(e, s->out)) return;
    l->invisible = is_shift(e, s->out) || !exec_store(e, s->out)->alive;
    if (l->invisible) return;
    spoil_all(e, s->out, l->factor);
    l->done = true;
}
typedef void Change(void *late, Exec *e, const Step *s, bool checked);
static bool noticed(const char *text, const char *dtype, Change *change, Late *l, bool expected) {
    Arena *a = arena_new();
    PipelineOptions o = {.execute = true, .threads = 1, .watch = change, .watch_arg = l};
    PlanRun r = plan_run_with(a, "late.yaml", arena_printf(a, text, dtype), &o);
    assert_true(r.t && r.t->verdict);
    bool wrong = !run_is(&r, "equivalent"),
         at_end = wrong && strstr(r.t->checks[r.t->n_checks - 1].cause, "end to end");
    bool good = l->step < 0 || !l->done ? !wrong : wrong == expected && (!wrong || at_end);
    if (!good)
        print_error("%s: step %d times %.17g: %s, end to end %.3g\n", dtype, l->step, l->factor,
                    r.t->verdict, r.rep.end_to_end_rel);
    arena_free(a);
    return good;
}
/* Each value of a run in turn is off on all ranks alike, after its check: every
 * later step follows from its inputs, and the end differs. Off by less than rounding it does not.
 */
static void test_end_to_end(void **state) {
    (void)state;
    static const struct {
        const char *dtype;
        double much, little;
    } rows[] = {{"f64", 1 + 1e-6, 1 + 0x1p-52}, {"f32", 1.5, 1 + 0x1p-23}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Late l = {.step = -1};
        int bad = !noticed(plans[2].text, rows[i].dtype, change_late, &l, false), n = 0,
            last = l.steps;
        for (int k = 0; k < last; k++) {
            l = (Late){.step = k, .factor = rows[i].much};
            bad += !noticed(plans[2].text, rows[i].dtype, change_late, &l, true);
            n += l.done;
            l = (Late){.step = k, .factor = rows[i].little};
            bad += !noticed(plans[2].text, rows[i].dtype, change_late, &l, false);
        }
        printf("%s: %d of %d values changed after their check\n", rows[i].dtype, n, last);
        assert_int_equal(bad, 0);
        assert_true(n > last / 2);
    }
}

/* Gradients that are added up over micro-batches: what was kept of the first is off. */
static const char micro[] =
    "model: {config: {hidden_size: 12, intermediate_size: 10, num_hidden_layers: 1,\n"
    "  num_attention_heads: 3, vocab_size: 11, head_dim: 4, tie_word_embeddings: true}, " PARTS
    "}\n"
    "data: {batch: 6, sequence: 5, dtype: %s, microbatches: 3}\nmesh: {dp: 2}\nnames: hf\n"
    "pass: backward\ndata_parallel: {mode: fsdp, axis: dp}\n";
static void change_sum(void *arg, Exec *e, const Step *s, bool checked) {
    Late *l = arg;
    l->steps = e->p->ns;
    bool summed = s->kind == ST_ADJOINT && e->acc && e->acc[s->out].x;
    if (!checked || l->done || s->id != l->step || !summed) return;
    l->done = true;
    int64_t n = 0;
    for (int k = 0; k < exec_store(e, s->out)->n; k++)
        n += tensor_count(&exec_store(e, s->out)->l[k].t);
    for (int64_t i = 0; i < n; i++) e->acc[s->out].x[i] *= l->factor;
}
static void test_accumulated_gradients(void **state) {
    (void)state;
    static const struct {
        const char *dtype;
        double much;
    } rows[] = {{"f64", 1 + 1e-6}, {"f32", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Late l = {.step = -1};
        int bad = !noticed(micro, rows[i].dtype, change_sum, &l, false), n = 0, last = l.steps;
        for (int k = 0; k < last; k++) {
            l = (Late){.step = k, .factor = rows[i].much};
            bad += !noticed(micro, rows[i].dtype, change_sum, &l, true);
            n += l.done;
        }
        printf("%s: %d sums over micro-batches changed\n", rows[i].dtype, n);
        assert_int_equal(bad, 0);
        assert_true(n >= 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_step_spoiled),
                                       cmocka_unit_test(test_end_to_end),
                                       cmocka_unit_test(test_accumulated_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
