/* What is legal YAML and no legal plan: each mistake has its code, says what is wrong, points at
 * the line, and stops the run with its exit status; and what is only noted. The placements, axes,
 * lines, faults and gradients of a plan against the model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "support/support.h"
#include <stdlib.h>
#include <string.h>

#define HEAD "model: {preset: llama3-8b, shrink: 512}\n"
#define ROWS(n) "model: {kind: mlp, sizes: [8, 5, 8]}\ndata: {rows: " n "}\n"
#define SP2 HEAD "mesh: {tp: 2}\nrecipe: torchtitan-llama3\n"
#define TP2 HEAD "mesh: {tp: 2}\nplan:\n"
#define RING HEAD "mesh: {cp: 3}\ncontext_parallel: {mode: ring}\nfaults: [{at: "
#define PP2                                                                                        \
    "model: {preset: llama3-8b, layers: 2, shrink: 512}\nmesh: {pp: 2, tp: 2}\n"                   \
    "pipeline: {schedule: 1f1b, microbatches: 2}\npass: backward\nplan:\n"                         \
    "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\nfaults: [{at: "
static const struct {
    const char *text, *code;
    int line;         /* where it points; 0: nowhere in the plan */
    const char *says; /* part of the message or the hint */
    int exit;
} rows[] = {
    /* placements */
    {TP2 "  layers.*.attention.wq: {weight: shard(q)}\n", "E0401", 4, "has no dim 'q'", 3},
    {TP2 "  layers.*.attention.wq: {weight: shard(2)}\n", "E0401", 4, "dim 2 is out of range", 3},
    {TP2 "  layers.*.feed_forward.w1: {weight: contiguous(-3)}\n", "E0401", 4,
     "dim -3 is out of range", 3},
    {TP2 "  layers.*.attention.wo: {weight: contiguous(1)}\n", "E0406", 4,
     "a contiguous cut of dim 1 over tp goes", 1},
    {TP2 "  layers.*.attention.wq: {weight: contiguous(0)}\n", "E0406", 4,
     "goes through its packed blocks or heads", 1},
    {"model: {preset: qwen2-0.5b, shrink: 64, config: {o_bias: true}}\nmesh: {tp: 2}\nplan:\n  "
     "layers.*.attention.wo: {style: rowwise, bias: local}\n",
     "E0403", 4,
     "would be added in full on every rank of tp, before the sum over tp, and count 2 times", 1},
    {"model: {preset: qwen2-0.5b, shrink: 64, config: {o_bias: true}}\nmesh: {dp: 3, tp: "
     "2}\nplan:\n  layers.*.attention.wo: {style: rowwise, bias: local}\n",
     "E0403", 4, "every rank of tp, before the sum over tp, and count 2 times", 1},
    {TP2 "  layers.*.attention.wq: {weight: contiguous(0)}\n", "E0406", 4,
     "a contiguous cut of dim 0 over tp goes", 1},
    {HEAD "mesh: {a: 3, b: 2}\ngroups: {tp: a*b}\nplan:\n  layers.*.attention.w[qkv]: colwise\n",
     "E0303", 5, "32 heads cannot be cut over a*b of size 6", 1},
    {TP2 "  layers.*.attention_norm: rowwise\n", "E0401", 4, "dim 1 is out of range",
     3}, /* the style's own placement: at its line */
    /* a label that is wrong, in a line that says itself where the value goes */
    {ROWS("8") "mesh: {tp: 2}\nplan:\n  net1: {style: colwise, input: [shard(0)], desired_input: "
               "[replicate]}\n",
     "E0402", 5, "say how it lies: `input: replicate`; where it goes stands in `desired_input`", 1},
    /* in one of a style alone: the whole line, but where what makes the input may lack one */
    {HEAD "data: {block_input: replicate}\nmesh: {tp: 2}\nplan:\n  layers.*.attention_norm: "
          "sequence_parallel\n  layers.*.attention: {style: prepare_module_input, input: "
          "[shard(1)], desired_input: [replicate]}\n  layers.*.attention.w[qkv]: colwise\n  "
          "layers.*.attention.wo: rowwise\n",
     "E0402", 5,
     "write `layers.*.attention_norm: {style: sequence_parallel, input: replicate, desired_input: "
     "shard(1)}`",
     1},
    /* how many, in words that fit */
    {"model: {kind: mlp, sizes: [4]}\nmesh: {tp: 2}\n", "E0301", 1, "not a list of 1", 3},
    {HEAD "mesh: {dp: 2,\n  tp: 3000000,\n  cp: 1}\n", "E0703", 3, "the mesh has 6000000 ranks", 5},
    /* names of parts that the plan leaves out */
    {TP2 "  tok_embeddings: rowwise\n", "E0205", 4,
     "is left out of this model: `model: {parts: [embedding, blocks]}` has it", 3},
    {TP2 "  ouput.weight: colwise\n", "E0205", 4,
     "'output' is left out of this model: `model: {parts: [blocks, head]}` has it", 3},
    {TP2 "  tok_embeddings: rowwise\n  output: colwise\n", "E0205", 4,
     "is left out of this model: `model: {parts: [embedding, blocks, head]}` has it", 3},
    /* keys and recipes among the lines of a plan */
    {TP2 "  recipe: rowwise\n", "E0205", 4, "`recipe` is a key of its own, beside `plan`", 3},
    {TP2 "  batch: rowwise\n", "E0205", 4,
     "`batch` is a key of `data`, which stands beside `plan`: data: {batch: ...}", 3},
    {TP2 "  layers.*.attention.wq: megatron\n", "E0203", 4,
     "that is a recipe: `recipe: megatron`, beside `plan`", 3},
    {HEAD "mesh: {tp: 2}\nplan: hf-llama\n", "E0301", 3,
     "that is a recipe: `recipe: hf-llama`, beside `plan`", 3},
    /* names of another scheme */
    {HEAD "mesh: {tp: 2}\nnames: hf\nplan:\n  layers.*.attention.w[qkv]: colwise\n", "E0205", 5,
     "that is a name of `names: torchtitan`, and this plan's are those of `names: hf`", 3},
    {TP2 "  model.layers.*.self_attn.qq_proj: colwise\n", "E0205", 4,
     "did you mean 'layers.*.attention.wq'? ('model.layers.*.self_attn.q_proj' in `names: hf`)", 3},
    {TP2 "  layers.*.attention.o_proj: rowwise\n", "E0205", 4,
     "did you mean 'layers.*.attention.wo'? ('model.layers.*.self_attn.o_proj' in `names: hf`)", 3},
    {TP2 "  layers.*.attention.o_proj.weight: rowwise\n", "E0205", 4,
     "did you mean 'layers.*.attention.wo.weight'?", 3},
    {TP2 "  layers.0.self_attention.linear_proj: rowwise\n", "E0205", 4,
     "did you mean 'layers.0.attention.wo'? ('decoder.layers.0.self_attention.linear_proj' in", 3},
    {HEAD "mesh: {tp: 2}\nnames: torchtune\nplan:\n  layers.*.sa_norm.weight: {weight: null}\n",
     "E0205", 5, "'layers.*.sa_norm' has scale (`names: torchtune`)", 3},
    {TP2 "  layers.*.mlp.w2: rowwise\n", "E0205", 4, ": here it is 'layers.*.feed_forward.w2'", 3},
    {TP2 "  layers.*.self_attn.q_prj: colwise\n", "E0205", 4, "('layers.*.self_attn.q_proj' in", 3},
    {TP2 "  layers.*.attention.zzzzz: colwise\n", "E0205", 4,
     "in 'layers.*.attention' there are wq, wk, wv, core, wo (`names: torchtitan`)", 3},
    {TP2 "  layers.*.foo: colwise\n", "E0205", 4,
     "in 'layers.*' there are attention, feed_forward, attention_norm, ffn_norm", 3},
    {"model: {kind: mlp, sizes: [4, 8, 4]}\nmesh: {tp: 2}\nplan: {fc1: colwise}\n", "E0205", 3,
     "the modules are net1, act1, net2", 3},
    {"model: {preset: mixtral-8x7b, shrink: 512}\nmesh: {dp: 2}\nplan:\n  layers.*.moe.router: "
     "replicate\n",
     "E0205", 4, "a line names one of those in it: gate", 3},
    {"model: {preset: mixtral-8x7b, shrink: 512, config: {num_experts_per_tok: 9}}\nmesh: {dp: "
     "2}\n",
     "E0307", 1, "a token goes to as many experts as there are, at most", 3},
    /* a line that is wrong hides no other line's mistake */
    {TP2 "  layers.*.attention.wq: colwize\n  layers.*.attention.wqq: colwise\n", "E0205", 5,
     "did you mean 'layers.*.attention.wq'?", 3},
    {TP2 "  layers.*.attention.wqq: colwise\n  layers.*.attention.wo: {style: rowwise, outptu: "
         "local}\n",
     "E0205", 4, "did you mean 'layers.*.attention.wq'?", 3},
    /* axes */
    {HEAD "mesh: {a: 2, b: 2}\nplan:\n  layers.*.attention.wq: colwise\n", "E0204", 4,
     "the mesh has no `tp`", 3},
    {"model: {kind: mlp, sizes: [8, 16, 8]}\ndata: {rows: 4}\nmesh: {a: 2, b: 2}\nplan: {net1: "
     "{input: replicate}}\n",
     "E0204", 4, "the line 'net1' acts on no axis: the mesh has no `tp`", 3},
    /* ep is no slip of dp */
    {HEAD "mesh: {dp: 2}\nmoe: {axis: ep}\n", "E0204", 3,
     "known here: dp; another name for some of them: `groups: {ep: dp}`", 3},
    /* a size is no name */
    {HEAD "mesh: {dp: 2}\ngroups: {ep: 4}\n", "E0204", 3,
     "known here: dp; a group is as large as its axes together: `ep: dp*cp`", 3},
    {HEAD "mesh: {dp: 2}\nplan: {layers.*.attention.wq: {weight: {ep: shard(0)}}}\n", "E0204", 3,
     "another name for some of them: `groups: {ep: dp}`", 3},
    {HEAD "mesh: {cp: 4, x: 2}\ndata: {cut: {sequence: x}}\ncontext_parallel: {mode: ring}\n",
     "E0215", 4, "the ring goes round cp, which does not cut the sequence", 3},
    {HEAD "mesh: {a: 2, b: 2}\ngroups: {cp: a*b}\ncontext_parallel: {mode: ring}\n", "E0214", 4,
     "a ring goes round one axis, and 'cp' is 2", 3},
    {HEAD "mesh: {a: 2, b: 2}\ncontext_parallel: {mode: ring, axis: a*b}\n", "E0214", 3,
     "a ring goes round one axis, and 'a*b' is 2", 3},
    {HEAD "mesh: {a: 2, b: 2, u: 2}\ncontext_parallel: {mode: usp, ring: a*b, ulysses: u}\n",
     "E0214", 3, "a ring goes round one axis, and 'a*b' is 2", 3},
    {HEAD "mesh: {a: 2, b: 2}\ncontext_parallel: {mode: usp, ring: a, ulysses: a}\n", "E0405", 3,
     "axis 'a' cuts the heads, and the ring goes round it", 1},
    {HEAD "mesh: {a: 2, b: 2}\ncontext_parallel: {mode: usp, ring: a, ulysses: b, axis: b*a}\n",
     "E0215", 3, "mode usp cuts the sequence by a*b, not by b*a", 3},
    {HEAD "mesh: {cp: 2}\ncontext_parallel: {mode: ring, rfa: true, keep_kv: true}\n", "E0307", 3,
     "`keep_kv` keeps what came by", 3},
    {HEAD "mesh: {dp: 2}\ncontext_parallel: {mode: ring}\n", "E0208", 3, "mesh: {cp: 2}, or", 3},
    {HEAD "mesh: {cp: 2}\ncontext_parallel: {mode: usp}\n", "E0208", 3,
     "usp needs `ring` and `ulysses`", 3},
    {HEAD "mesh: {cp: 2, u: 2}\ncontext_parallel: {mode: ring, ulysses: u}\n", "E0215", 3,
     "`ulysses` is a key of usp, not of mode ring", 3},
    {HEAD "mesh: {cp: 2}\ncontext_parallel: {mode: ulysses, rfa: true}\n", "E0215", 3,
     "`rfa` is a key of a ring, and mode ulysses has none", 3},
    {HEAD "mesh: {cp: 4}\ndata: {sequence: 20}\ncontext_parallel: {mode: ring, order: zigzag}\n",
     "E0304", 4, "zigzag order needs a sequence that 2 x cp divides", 1},
    {HEAD "mesh: {cp: 256}\ndata: {sequence: 512}\ncontext_parallel: {mode: ring}\n", "E0701", 4,
     "a ring of 256 ranks; the limit is 255", 5},
    {"model: {kind: attention, heads: 4}\nmesh: {cp: 2}\n", "E0208", 1,
     "`kind: attention` needs `heads` and `head_dim`", 3},
    {"model: {kind: attention, heads: 4, kv_heads: 3, head_dim: 2}\nmesh: {cp: 2}\n", "E0307", 1,
     "4 query heads cannot be shared out to 3 key/value heads", 3},
    {HEAD "mesh: {cp: 64}\ncontext_parallel: {mode: ulysses}\n", "E0303", 3,
     "32 heads cannot be cut over cp of size 64", 1},
    {HEAD "mesh: {dp: 2}\ncontext_parallel: {axis: dp}\n", "E0405", 2,
     "would cut both the batch and the sequence", 1},
    {"model: {config: {hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, "
     "num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 8, head_dim: 4}}\nmesh: {a: 1, "
     "b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, tp: 4}\nplan:\n  "
     "layers.*.attention.w[qkv]: colwise\n",
     "E0703", 4, "cannot be split: too many axes", 5},
    {HEAD "mesh: {tp: 3}\nplan:\n  layers.*.attention.w[qkv]: colwise\n", "E0303", 4,
     "32 heads cannot be cut over tp of size 3", 1},
    {HEAD "mesh: {tp: 3}\nplan:\n  layers.*.attention.w[qkv]: colwise\n", "E0303", 4,
     "is a multiple of them: 1, 2, 4, 8, 16 or 32", 1},
    {HEAD "mesh: {tp: 3}\nplan:\n  layers.*.attention.wq: colwise\n", "E0303", 4,
     "is a multiple of them: 1, 2, 4, 8, 16 or 32", 1},
    {HEAD "mesh: {tp: 12}\nkv_replicate: never\nplan:\n  layers.*.attention.w[qkv]: colwise\n",
     "E0303", 5, "divides the heads: 1, 2, 4 or 8", 1},
    {HEAD "mesh: {tp: 16}\nkv_replicate: never\nplan:\n  layers.*.attention.w[qkv]: colwise\n",
     "E0305", 5, "8 KV heads cannot be cut", 1},
    {HEAD "mesh: {tp: 16}\nkv_replicate: never\nplan:\n  layers.*.attention.w[qkv]: colwise\n",
     "E0305", 5, "divides the KV heads: 1, 2, 4 or 8, or remove `kv_replicate: never`", 1},
    {"model: {config: {hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, "
     "num_attention_heads: 12, num_key_value_heads: 6, vocab_size: 8, head_dim: 4}}\nmesh: {tp: "
     "4}\n"
     "plan:\n  layers.*.attention.w[qkv]: colwise\n",
     "E0305", 4, "and the KV heads or is a multiple of them: 1, 2, 3, 6 or 12", 1},
    {HEAD "mesh: {dp: 2}\ncontext_parallel: {axis: cpp}\n", "E0204", 3,
     "unknown axis or group 'cpp'", 3},
    /* lines */
    {TP2 "  attention.wqq: colwise\n", "E0205", 4,
     "did you mean 'layers.*.attention.wq'? A line names the whole path", 3},
    {TP2 "  feed_forward.w2.weight: {weight: shard(1)}\n", "E0205", 4,
     "did you mean 'layers.*.feed_forward.w2.weight'? A line names the whole path", 3},
    {TP2 "  mlp.up_proj: colwise\n", "E0205", 4,
     "did you mean 'layers.*.feed_forward.w3'? A line names the whole path", 3},
    {TP2 "  layers.*.attention.wqq: colwise\n", "E0205", 4, "did you mean 'layers.*.attention.wq'?",
     3},
    {TP2 "  zzzzzzzzzzzzzzzzzzzzzzzzzz: colwise\n", "E0205", 4,
     "names are those of `names: torchtitan`", 3},
    {"model: {kind: mlp, sizes: [4, 8, 4], layer_names: ['up[x]', down]}\nmesh: {tp: 2}\nplan:\n"
     "  'up[x]': colwise\n", /* no match, and no help to be told the same again */
     "E0205", 4, "the modules are up[x], act1, down", 3},
    /* a sum that is left pending where an op is not linear */
    {TP2 "  layers.*.feed_forward.w1: {style: rowwise, input: replicate, desired_input: shard(-1), "
         "output: partial}\n",
     "E0403", 4, "is left as a partial sum over tp", 1},
    /* planted mistakes */
    {TP2 "  layers.*.feed_forward.w2: rowwise_rep\nfaults: [{at: layers.0.nothing, do: drop}]\n",
     "E0209", 5, "no move is called 'layers.0.nothing'", 3},
    {HEAD "mesh: {tp: 2}\nfaults: [{at: layers.0.mlp.down, do: drop}]\n", "E0206", 3,
     "'drop' needs a move, or an op", 3},
    {HEAD "mesh: {tp: 2}\nfaults: [{at: layers.0.mlp.act, do: local}]\n", "E0206", 3,
     "'local' needs an op that asks for positions", 3},
    {TP2 "  layers.*.feed_forward.w2: rowwise_rep\nfaults: [{at: layers.0.mlp.dwon, do: drop}]\n",
     "E0209", 5, "did you mean 'layers.0.mlp.down'?", 3},
    {TP2 "  layers.*.feed_forward.w2: rowwise_rep\nfaults: [{at: all_reduce of layers.0.mlp.don, "
         "do: drop}]\n",
     "E0209", 5, "did you mean 'all_reduce of layers.0.mlp.down'?", 3},
    {HEAD "mesh: {tp: 2}\nfaults: [{at: layers.0.atn_context, do: local}]\n", "E0209", 3,
     "did you mean 'layers.0.attn_context'?", 3},
    {HEAD "mesh: {tp: 2}\nfaults: [{at: layers.0.attention.wqq.weight, do: reseed}]\n", "E0209", 3,
     "did you mean 'layers.0.attention.wq.weight'?", 3},
    {RING "shift of layers.0.v_proj, do: drop}]\n", "E0209", 4, "'shift 1 of layers.0.v_proj'", 3},
    {PP2 "self_attn.o_proj, do: drop}]\n", "E0209", 8,
     "'self_attn.o_proj' is more than one name's end", 3},
    {PP2 "all_reduce of layers.1.o_proj, do: skip, rank: 1}]\n", "E0206", 8,
     "rank 1 has no part in all_reduce of layers.1.o_proj: it has another stage", 3},
    {HEAD "mesh: {tp: 2}\nfaults: [{at: layers.0.nothing, do: contiguous}]\n", "E0209", 3,
     "no op makes 'layers.0.nothing'", 3},
    {HEAD "mesh: {tp: 2}\nfaults: [{at: layers.0.nothing, do: reseed}]\n", "E0209", 3,
     "no input or parameter is called", 3},
    {HEAD "mesh: {tp: 2}\nfaults: [{at: layers.0.attention_norm.weight, do: nest}]\n", "E0206", 3,
     "'nest' needs a parameter or input", 3},
    {HEAD "mesh: {tp: 2}\nfaults: [{at: layers.0.attention_norm.weight, offset: 1}]\n", "E0206", 3,
     "'offset' needs a move, an input or a parameter", 3},
    {HEAD "mesh: {tp: 2, cp: 2}\nfaults: [{at: layers.0.q_proj, do: drop}]\n", "E0206", 3,
     "'drop' needs a move, or an op", 3},
    {HEAD "mesh: {tp: 2, cp: 2}\nfaults: [{at: layers.0.k_rope, do: double}]\n", "E0206", 3,
     "'double' needs a reduction", 3},
    /* of two edits of one thing one would be lost in silence */
    {SP2 "faults: [{at: layers.0.o_proj, do: drop}, {at: layers.0.o_proj, scale: 2}]\n", "E0215", 4,
     "'drop' and 'scale' are both planted in layers.0.o_proj", 3},
    {SP2 "faults: [{at: layers.0.o_proj, scale: 2}, {at: layers.0.o_proj, do: drop}]\n", "E0215", 4,
     "'scale: 2' and 'drop' are both planted", 3},
    {SP2 "faults: [{at: layers.0.o_proj, scale: 2}, {at: layers.0.o_proj, kind: slice}]\n", "E0215",
     4, "'scale: 2' and 'kind' are both planted", 3},
    {SP2 "faults: [{at: layers.0.o_proj, kind: avg}, {at: layers.0.o_proj, kind: max}]\n", "E0215",
     4, "'kind: avg' and 'kind' are both planted", 3},
    {SP2 "faults: [{at: layers.0.o_proj, offset: 1}, {at: layers.0.o_proj, offset: 1}]\n", "E0215",
     4, "'offset: 1' and 'offset' are both planted", 3},
    {HEAD "mesh: {cp: 2}\nfaults: [{at: layers.0.q_rope, do: local}, {at: layers.0.q_rope, do: "
          "contiguous}]\n",
     "E0215", 3, "'local' and 'contiguous' are both planted", 3},
    {SP2 "faults: [{at: layers.0.attention.wq.weight, offset: 1}, "
         "{at: layers.0.attention.wq.weight, offset: 1}]\n",
     "E0215", 4, "'offset: 1' and 'offset' are both planted", 3},
    /* edits that leave the move as it is would prove nothing */
    {SP2 "faults: [{at: layers.0.input_norm, kind: slice}]\n", "E0206", 4,
     "'kind' needs a reduction", 3},
    {SP2 "faults: [{at: layers.0.input_norm, kind: max}]\n", "E0206", 4, "'kind' needs a reduction",
     3},
    {SP2 "faults: [{at: layers.0.input_norm, do: floor}]\n", "E0206", 4,
     "'floor' needs a move of a dim whose size", 3},
    {"model: {preset: llama3-8b, layers: 1, scores: parts}\nmesh: {tp: 2}\n", "E0215", 1,
     "`scores` says how latent attention", 3},
    {"model: {kind: mlp, sizes: [4, 6, 4], scores: joint}\nmesh: {tp: 2}\n", "E0215", 1,
     "`scores` says how latent attention", 3},
    {SP2 "faults: [{at: layers.0.o_proj, do: floor}]\n", "E0206", 4,
     "'floor' needs a move of a dim whose size", 3},
    {HEAD "mesh: {dp: 3}\ndata_parallel: {mode: fsdp, axis: dp}\n"
          "faults: [{at: all_gather of layers.0.attention.wq.weight, do: floor}]\n",
     "E0206", 4, "'floor' needs a move of a dim whose size", 3},
    {SP2 "faults: [{at: layers.0.input_norm, axis: tp}]\n", "E0206", 4,
     "'axis' needs a move between ranks", 3},
    {SP2 "faults: [{at: layers.0.input_norm, dim: 1}]\n", "E0206", 4, "'dim' needs a move of a dim",
     3},
    {SP2 "faults: [{at: layers.0.input_norm, dim: -1000000}]\n", "E0206", 4,
     "'dim' needs a move of a dim", 3},
    {SP2 "faults: [{at: layers.0.o_proj, kind: mox}]\n", "E0206", 4, "max", 3},
    {SP2 "faults: [{at: layers.0.input_norm, dim: 7}]\n", "E0206", 4, "'dim' needs a move of a dim",
     3},
    {SP2 "faults: [{at: layers.0.input_norm, offset: 4}]\n", "E0206", 4, "'offset' needs a move",
     3},
    {SP2 "faults: [{at: layers.0.input_norm, offset: 0}]\n", "E0206", 4, "'offset' needs a move",
     3},
    /* a number of ranks that would do, if keys and values were cut too */
    {HEAD "mesh: {tp: 16}\nplan:\n  layers.*.attention.wo: rowwise\n", "E0303", 4,
     "the axis is split by the lines of keys and values", 1},
    /* a row layer alone: the lines of what feeds it */
    {TP2 "  layers.*.attention.wo: rowwise\n", "E0402", 4,
     "write `layers.*.attention.w[qkv]: colwise`", 1},
    {TP2 "  layers.*.feed_forward.w1: colwise\n  layers.*.attention.wo: rowwise\n", "E0402", 5,
     "write `layers.*.attention.w[qkv]: colwise`", 1},
    {HEAD "names: hf\nmesh: {tp: 2}\nplan:\n  model.layers.*.self_attn.o_proj: rowwise\n  "
          "model.layers.*.mlp.down_proj: rowwise\n",
     "E0402", 6,
     "write `model.layers.*.mlp.gate_proj: colwise` and `model.layers.*.mlp.up_proj: colwise`", 1},
    {ROWS("8") "mesh: {tp: 2}\nplan:\n  net2: rowwise\n", "E0402", 5, "write `net1: colwise`", 1},
    {HEAD "mesh: {tp: 2}\nrecipe: hf-llama\n"
          "faults: [{at: layers.0.o_proj, offset: 1}]\n",
     "E0206", 4, "'offset' needs a move", 3},
    {HEAD "mesh: {tp: 2}\npass: backward\ngradients: {layers.*.nothing: sum}\n", "E0205", 4,
     "matches no parameter", 3},
    {HEAD "mesh: {tp: 2}\npass: backward\ngradients: {'**': sum}\n", "E0205", 4,
     "a wildcard is one component", 3},
    {HEAD "mesh: {tp: 2}\npass: backward\ngradients: {layers.**.wq: sum}\n", "E0205", 4,
     "write a line for each depth", 3},
    {HEAD "mesh: {tp: 2}\npass: backward\ngradients: {layers.*.attention_nrm: sum}\n", "E0205", 4,
     "did you mean 'layers.*.attention_norm'?", 3},
    {HEAD "mesh: {tp: 2}\npass: backward\ngradients: {layers.0.attention.wq.weigth: sum}\n",
     "E0205", 4, "did you mean 'layers.0.attention.wq.weight'?", 3},
    {HEAD "mesh: {tp: 2}\ngradients: {layers.*.attention_norm: none}\n", "E0206", 3,
     "there is none", 3},
    /* names that are not known */
    {TP2 "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\nfaults: [{at: "
         "all_reduce of wp, do: drop}]\n",
     "E0209", 6, "did you mean 'all_reduce of wo'", 3},
    {TP2 "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\nfaults: [{at: "
         "w4, do: drop}]\n",
     "E0209", 6, "'wo'", 3},
    {TP2 "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\nfaults: [{at: "
         "nothing of it, do: drop}]\n",
     "E0209", 6, "there are ", 3},
    {HEAD "mesh: {tp: 2}\ndata: {batchsize: 4}\n", "E0201", 3, "batch", 3},
    {HEAD "mesh: {tp: 2}\ndata: {seqLen: 4}\n", "E0201", 3, "sequence", 3},
    {HEAD "mesh: {tp: 2}\nbatch_size: 4\n", "E0201", 3,
     "it belongs one level deeper: data: {batch: ...}", 3},
    {HEAD "mesh: {data: 2, model: 2}\ncontext_parallel: {axis: tp}\n", "E0204", 3, "model", 3},
    {HEAD "mesh: {data: 2, tp: 2}\nplan:\n  layers.*.attention.wq: {style: colwise, axis: model}\n",
     "E0204", 4, "tp", 3},
    {HEAD "mesh: {a: 2, b: 2}\ngroups: {tp: \"a,b\"}\n", "E0204", 3,
     "known here: a b; a product of axes is written with stars: `ep: dp*cp`", 3},
    /* names of a family that the model is not of: no scheme of the plan's helps */
    {HEAD "mesh: {tp: 2}\nplan:\n  transformer.h.*.attn.c_attn: colwise\n  "
          "transformer.h.*.mlp.c_fc: colwise\n",
     "E0205", 4, "what does that here is 'layers.*.attention.wq', ", 3},
    {HEAD "names: hf\nmesh: {tp: 2}\nplan:\n  transformer.h.*.attn.c_attn: colwise\n", "E0205", 5,
     "'model.layers.*.self_attn.v_proj' (`names: hf`)", 3},
    {HEAD "mesh: {tp: 2}\nplan:\n  layers.*.attention.c_proj: rowwise\n", "E0205", 4,
     "is a name of GPT-2; what does that here is 'layers.*.attention.wo' (", 3},
    {HEAD "mesh: {tp: 2}\nplan:\n  c_proj: rowwise\n", "E0205", 4,
     "'layers.*.attention.wo', 'layers.*.feed_forward.w2' (", 3},
    {HEAD "mesh: {tp: 2}\nplan:\n  layers.*.mlp.dense_4h_to_h.weight: rowwise\n", "E0205", 4,
     "GPT-NeoX; what does that here is 'layers.*.feed_forward.w2.weight' (", 3},
    {HEAD "names: megatron\nmesh: {tp: 2}\nplan:\n  "
          "decoder.layers.*.self_attention.linear_qkv: colwise\n",
     "E0205", 5, "'decoder.layers.*.self_attention.linear_v'", 3},
    {HEAD "names: hf\nmesh: {tp: 2}\nplan:\n  model.layers.*.mlp.gate_up_proj: colwise\n", "E0205",
     5, "is apart in this model: 'model.layers.*.mlp.gate_proj', 'model.layers.*.mlp.up_proj'", 3},
    /* kinds of values */
    {HEAD "mesh: 8\n", "E0301", 2, "`mesh: {tp: 8}`", 3},
    {HEAD "mesh: [2, 4]\n", "E0301", 2, "`mesh: {dp: 2, tp: 4}`", 3},
    {TP2 "  - layers.*.attention.wq: colwise\n", "E0301", 4, "leave out the `-`", 3},
    {TP2 "  layers.*.attention.wq: [rowwise]\n", "E0301", 4, "`layers.*.attention.wq: rowwise`", 3},
    {HEAD "mesh: {tp: 2}\nplan: colwise\n", "E0301", 3, "`layers.*.attention.wq: colwise`", 3},
    {"parallelize_plan = {\n    \"attention.wq\": ColwiseParallel(),\n}\n", "E0104", 2,
     "`shardproof import` (torch", 3},
    /* sizes and numbers */
    {HEAD "mesh: {dp: 2}\ndata: {batch: 3, microbatches: 2}\npass: backward\n", "E0307", 3,
     "a batch of 3 cannot be cut in 2", 3},
    {HEAD "mesh: {tp: 2}\ndata: {microbatches: 2}\n", "E0214", 0, "microbatches of a forward pass",
     3},
    {"model: meta-llama/Llama-3.1-8B-Instruct\nmesh: {tp: 2}\n", "E0202", 1,
     "did you mean 'llama3.1-8b'?", 3},
    {"model: meta-llama/Meta-Llama-3-8B\nmesh: {tp: 2}\n", "E0202", 1, "mean 'llama3-8b'?", 3},
    {"model: meta-llama/Llama-2-7b-hf\nmesh: {tp: 2}\n", "E0202", 1, "mean 'llama2-7b'?", 3},
    {"model: mistralai/Mistral-7B-Instruct-v0.3\nmesh: {tp: 2}\n", "E0202", 1,
     "mean 'mistral-7b-v0.3'?", 3},
    {"model: Qwen/Qwen3-30B-A3B-Instruct-2507\nmesh: {tp: 2}\n", "E0202", 1,
     "mean 'qwen3-30b-a3b'?", 3},
    {"model: meta-llama/Llama-4-Scout-17B-16E\nmesh: {tp: 2}\n", "E0202", 1, "mean 'llama4-scout'?",
     3},
    {"model: openai-community/gpt2\nmesh: {tp: 2}\n", "E0202", 1, "its config.json is understood",
     3},
    {HEAD "mesh: {tp: 2}\ndata: {dtype: f32, sequence: 8}\npass: train\nloss: sum\noptimizer: "
          "{name: sgd, lr: 1.0e+30, steps: 3}\n",
     "E0504", 0, "first appears here", 3},
    {"model: {preset: llama3-8b}\nmesh: {tp: 2}\n", "E0701", 1, "use `shrink`", 5},
};
static const Diag *find(const PlanRun *r, const char *code, int line, const char *says) {
    for (int i = 0; i < r->d->n; i++) {
        const Diag *d = &r->d->item[i];
        if (!strcmp(d->code, code) && (!line || d->loc.line == line) &&
            (strstr(d->message, says) || (d->hint && strstr(d->hint, says))))
            return d;
    }
    return NULL;
}
static void test_refusals(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run_with(
            a, "refused.yaml", rows[i].text,
            &(PipelineOptions){.execute = true, .threads = 1, .memory_limit = (int64_t)1 << 28});
        int helpless = 0;
        for (int k = 0; k < r.d->n; k++)
            helpless += r.d->item[k].severity == DIAG_ERROR && !r.d->item[k].hint;
        if (!find(&r, rows[i].code, rows[i].line, rows[i].says) || r.rep.exit != rows[i].exit ||
            helpless) {
            run_print(&r);
            print_error("row %zu: %s at line %d saying '%s', exit %d; it was %d\n%s\n", i,
                        rows[i].code, rows[i].line, rows[i].says, rows[i].exit, r.rep.exit,
                        rows[i].text);
            bad++;
        }
        arena_free(a);
    }
    assert_int_equal(bad, 0);
}
/* An unknown axis is one mistake, and no key is missing. */
static void test_one_mistake(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        plan_run(a, "refused.yaml", HEAD "mesh: {dp: 2}\ncontext_parallel: {axis: cpp}\n", false);
    assert_int_equal(diags_errors(r.d), 1);
    r = plan_run(a, "refused.yaml", HEAD "mesh: {dp: 2}\ncontext_parallel: {order: zigzag}\n",
                 false);
    assert_non_null(find(&r, "E0208", 3, "needs `axis`"));
    arena_free(a);
}
/* A mesh with the names of another framework is one, however many lines act on its axes. */
static void test_other_axes(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        plan_run(a, "refused.yaml",
                 HEAD "mesh: {data: 2, model: 2}\nplan:\n  layers.*.attention.w[qkv]: colwise\n  "
                      "layers.*.attention.wo: rowwise\n  layers.*.feed_forward.w2: rowwise\n",
                 false);
    assert_int_equal(diags_errors(r.d), 1);
    assert_non_null(find(&r, "E0204", 2, "`mesh: {dp: 2, tp: 2}`"));
    r = plan_run(a, "refused.yaml", HEAD "mesh: {tp: 2, data: 2}\n", false);
    assert_non_null(find(&r, "N0003", 2, "'data' is `dp`"));
    arena_free(a);
}
/* That the ranks do not divide the heads is told with the other mistakes, also of a line with a
 * style or a module that is misspelt. */
static void test_heads_at_once(void **state) {
    (void)state;
    static const struct {
        const char *lines, *other;
        bool told;
    } t[] = {
        {"  layers.*.attention.w[qkv]: colwsie\n", "E0203", true},
        {"  layers.*.attention.wo: rowwise\n  layers.*.feed_forward.w2: rowise\n", "E0203", true},
        {"  layers.*.attn.wq: colwise\n", "E0205", true},
        {"  layers.*.attention.wo: rowwise\n  layers.*.nothing.w9: rowwise\n", "E0205", true},
        {"  layers.*.attention.o_proj: rowwise\n", "E0205", true},
        {"  layers.*.feed_forward.w2: rowise\n", "E0203", false},
        /* over which ranks is not known */
        {"  layers.*.attention.w[qkv]: {style: colwise, axis: tp*dp}\n", "E0301", false},
        {"  layers.*.attention.w[qkv]: {style: colwise, axis: tpp}\n", "E0204", false},
        {"  layers.*.attention.w[qkv]: mine\nstyles: {mine: {style: colwise, axis: tp*dp}}\n",
         "E0301", false},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "heads.yaml",
                             arena_printf(a, HEAD "mesh: {tp: 3}\nplan:\n%s", t[i].lines), false);
        bool told = find(&r, "E0303", 4, "1, 2, 4, 8, 16 or 32") != NULL;
        if (told != t[i].told || !run_has(&r, t[i].other)) {
            run_print(&r);
            fail_msg("%s", t[i].lines);
        }
        arena_free(a);
    }
}
/* A word that is not understood is one mistake: no key is missing because of it, none is one too
 * many. What stands in another section, or is wrong by itself, is told besides. */
static void test_consequences(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int errors;
    } t[] = {
        {"context_parallel: {mode: ringg, rfa: true}\n", 1},
        {"context_parallel: {mode: uspp, ring: cp, ulysses: u}\n", 1},
        {"context_parallel: {mode: ringg, ulysses: u}\n", 1},
        {"context_parallel: {mode: usp, ring: cp, ulyses: u}\n", 1},
        {"context_parallel: {mode: usp, ring: cp, ulysses: uu}\n", 1},
        {"pipeline: {axs: cp, schedule: 1f1b, microbatches: 2}\npass: train\n", 1},
        {"pipeline: {axis: cp, schedul: 1f1b, microbatches: 2}\npass: train\n", 1},
        {"data_parallel: {mode: zero11, axis: cp, form: megatron}\n", 1},
        {"data_parallel: {mode: hsdp, replicat: cp, shard: u}\n", 1},
        {"context_parallel: {mode: ringg, order: zigzagg}\n", 2},
        {"context_parallel: {mode: all_gather, rfa: true}\npass: trian\n", 2},
        {"context_parallel: {mode: usp}\npipeline: {axs: cp}\n", 2},
        {"data: {documents: [[9223372036854775807, 5], [4, 5]]}\n", 1},
        {"data: {documents: [[4, 5], [9223372036854775807, 5], [4, 4]]}\n", 2},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "follows.yaml",
                             arena_printf(a, HEAD "mesh: {cp: 4, u: 2}\n%s", t[i].text), false);
        if (diags_errors(r.d) != t[i].errors) run_print(&r);
        assert_int_equal(diags_errors(r.d), t[i].errors);
        arena_free(a);
    }
}
/* Numbers that leave the range of float32 or bf16 are told where they do; what follows from them is
 * no second mistake, and no proof either. */
static void test_too_large(void **state) {
    (void)state;
    static const char *const dtype[] = {"f32", "bf16"}, *const mesh[] = {"{}", "{tp: 2}"};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {kind: mlp, sizes: [4, 2, 10, 8, 1], activation: relu2, layer_names: [l0, "
            "l1, l2, l3]}\ndata: {dtype: %s}\nmesh: %s\npass: train\noptimizer: {name: sgd, lr: "
            "0.08, steps: 3}\n",
            dtype[i / 2], mesh[i % 2]);
        PlanRun r =
            plan_run_with(a, "large.yaml", text, &(PipelineOptions){.execute = true, .threads = 1});
        if (diags_errors(r.d) != 1) run_print(&r);
        assert_int_equal(diags_errors(r.d), 1);
        assert_non_null(find(&r, "E0504", 0, "infinity first appears here"));
        run_must_be(&r, "different");
        assert_int_equal(r.t->n_fail, 0);
        arena_free(a);
    }
}
/* Where steps and ranks are too many for a `shrink` to be looked for, fewer layers are, and the
 * numbers that were tried are said. */
static void test_fewer_layers(void **state) {
    (void)state;
    static const char text[] = "model: {preset: llama3-70b, layers: all}\nmesh: {dp: 64, tp: "
                               "8}\ndata: {batch: 64, sequence: 64}\nrecipe: torchtitan-llama3\n";
    Arena *a = arena_new();
    const PipelineOptions o = {.execute = true, .threads = 1, .memory_limit = (int64_t)1 << 31};
    PlanRun r = plan_run_with(a, "many.yaml", text, &o);
    const Diag *d = find(&r, "E0701", 1, "use fewer `layers`");
    if (!d) run_print(&r);
    assert_non_null(d);
    const char *layers = strstr(d->hint, "model.layers="),
               *shrink = strstr(d->hint, "model.shrink=");
    assert_true(layers && shrink);
    assert_int_equal(strtol(layers + 13, NULL, 10), 1);
    assert_true(strtol(shrink + 13, NULL, 10) > 1);
    arena_free(a);
}
/* Notes: the plan runs, and is told about. */
static void test_notes(void **state) {
    (void)state;
    static const struct {
        const char *text, *code;
        int line;
        const char *says;
    } notes[] = {
        {TP2 "  layers.*.attention.wq: colwise\n  layers.0.attention.wq: colwise\n", "N0005", 4,
         "is shadowed"},
        {HEAD "mesh: {tp: 2, idle: 2}\n", "N0003", 2, "axis 'idle' of size 2 cuts nothing"},
        {TP2 "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n", "N0002", 2,
         "5 parameters no plan line lays out"},
        {HEAD "mesh: {tp: 16}\nplan:\n  layers.*.attention.w[qkv]: colwise\n", "N0004", 4,
         "tp.0 of 8, which cuts the KV heads, and tp.1 of 2"},
        /* ranks of which nothing comes */
        {ROWS("2") "mesh: {dp: 3}\n", "N0003", 3, "B of 2 over dp of 3 leaves"},
        {ROWS("5") "mesh: {dp: 4}\n", "N0003", 3, "B of 5 over dp of 4 leaves"},
        {ROWS("3") "mesh: {a: 2, b: 2}\ngroups: {dp: a*b}\n", "N0003", 3, "B of 3 over a*b of 4"},
        {ROWS("4") "mesh: {tp: 4}\nplan:\n  net1: colwise\n  net2: rowwise\n", "N0003", 3,
         "F of 5 over tp of 4 leaves ranks with nothing of net1.weight"},
        {"model: {preset: llama3-8b, layers: 1, shrink: 512}\ndata: {batch: 1, sequence: 4}\n"
         "mesh: {cp: 8}\n",
         "N0003", 3, "S of 4 over cp of 8 leaves"},
    };
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "noted.yaml", notes[i].text, false);
        if (!find(&r, notes[i].code, notes[i].line, notes[i].says) || diags_errors(r.d)) {
            run_print(&r);
            fail_msg("%s at line %d saying '%s'", notes[i].code, notes[i].line, notes[i].says);
        }
        arena_free(a);
    }
    Arena *a = arena_new(); /* uneven, and every rank has some */
    PlanRun r = plan_run(a, "fed.yaml", ROWS("7") "mesh: {dp: 4}\n", false);
    assert_false(run_has(&r, "N0003"));
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_one_mistake),
        cmocka_unit_test(test_other_axes),   cmocka_unit_test(test_heads_at_once),
        cmocka_unit_test(test_consequences), cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_fewer_layers), cmocka_unit_test(test_notes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
