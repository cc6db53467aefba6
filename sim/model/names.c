/* Module trees of the five naming schemes, as one table: a row per module of a Llama-type model.
 * The first column of names is Hugging Face's, the project's canonical one; `*` stands for the
 * layer's number. Refuses to know which modules a given model has. */
#include "model/model.h"
#include <assert.h>
#include <string.h>

/* Order of the columns: that of the enum Names: torchtitan, torchtune, hf, megatron, gguf. */
static const NamesRow rows[] = {
    {"embedding",
     {"tok_embeddings", "tok_embeddings", "model.embed_tokens", "embedding.word_embeddings",
      "token_embd"}},
    {"layer", {"layers.*", "layers.*", "model.layers.*", "decoder.layers.*", "blk.*"}},
    {"attention norm",
     {"layers.*.attention_norm", "layers.*.sa_norm", "model.layers.*.input_layernorm",
      "decoder.layers.*.input_layernorm", "blk.*.attn_norm"}},
    {"attention",
     {"layers.*.attention", "layers.*.attn", "model.layers.*.self_attn",
      "decoder.layers.*.self_attention", "blk.*.attn"}},
    {"query",
     {"layers.*.attention.wq", "layers.*.attn.q_proj", "model.layers.*.self_attn.q_proj",
      "decoder.layers.*.self_attention.linear_q", "blk.*.attn_q"}},
    {"key",
     {"layers.*.attention.wk", "layers.*.attn.k_proj", "model.layers.*.self_attn.k_proj",
      "decoder.layers.*.self_attention.linear_k", "blk.*.attn_k"}},
    {"value",
     {"layers.*.attention.wv", "layers.*.attn.v_proj", "model.layers.*.self_attn.v_proj",
      "decoder.layers.*.self_attention.linear_v", "blk.*.attn_v"}},
    {"query, key and value",
     {"layers.*.attention.wqkv", "layers.*.attn.qkv_proj", "model.layers.*.self_attn.qkv_proj",
      "decoder.layers.*.self_attention.linear_qkv", "blk.*.attn_qkv"}},
    {"query norm",
     {"layers.*.attention.q_norm", "layers.*.attn.q_norm", "model.layers.*.self_attn.q_norm",
      "decoder.layers.*.self_attention.q_layernorm", "blk.*.attn_q_norm"}},
    {"key norm",
     {"layers.*.attention.k_norm", "layers.*.attn.k_norm", "model.layers.*.self_attn.k_norm",
      "decoder.layers.*.self_attention.k_layernorm", "blk.*.attn_k_norm"}},
    {"query down",
     {"layers.*.attention.wq_a", "layers.*.attn.q_a_proj", "model.layers.*.self_attn.q_a_proj",
      "decoder.layers.*.self_attention.linear_q_down_proj", "blk.*.attn_q_a"}},
    {"query latent norm",
     {"layers.*.attention.q_norm", "layers.*.attn.q_a_norm",
      "model.layers.*.self_attn.q_a_layernorm", "decoder.layers.*.self_attention.q_layernorm",
      "blk.*.attn_q_a_norm"}},
    {"query up",
     {"layers.*.attention.wq_b", "layers.*.attn.q_b_proj", "model.layers.*.self_attn.q_b_proj",
      "decoder.layers.*.self_attention.linear_q_up_proj", "blk.*.attn_q_b"}},
    {"key and value down",
     {"layers.*.attention.wkv_a", "layers.*.attn.kv_a_proj",
      "model.layers.*.self_attn.kv_a_proj_with_mqa",
      "decoder.layers.*.self_attention.linear_kv_down_proj", "blk.*.attn_kv_a_mqa"}},
    {"key and value latent norm",
     {"layers.*.attention.kv_norm", "layers.*.attn.kv_a_norm",
      "model.layers.*.self_attn.kv_a_layernorm", "decoder.layers.*.self_attention.kv_layernorm",
      "blk.*.attn_kv_a_norm"}},
    {"key and value up",
     {"layers.*.attention.wkv_b", "layers.*.attn.kv_b_proj", "model.layers.*.self_attn.kv_b_proj",
      "decoder.layers.*.self_attention.linear_kv_up_proj", "blk.*.attn_kv_b"}},
    /* a name of ours, as `core` is: what is done to k before attention is no module of theirs */
    {"key of both parts",
     {"layers.*.attention.k_cat", "layers.*.attn.k_cat", "model.layers.*.self_attn.k_cat",
      "decoder.layers.*.self_attention.k_cat", "blk.*.attn_k_cat"}},
    {"core attention",
     {"layers.*.attention.core", "layers.*.attn.core", "model.layers.*.self_attn.core",
      "decoder.layers.*.self_attention.core_attention", "blk.*.attn_core"}},
    {"attention output",
     {"layers.*.attention.wo", "layers.*.attn.output_proj", "model.layers.*.self_attn.o_proj",
      "decoder.layers.*.self_attention.linear_proj", "blk.*.attn_output"}},
    {"feed-forward norm",
     {"layers.*.ffn_norm", "layers.*.mlp_norm", "model.layers.*.post_attention_layernorm",
      "decoder.layers.*.pre_mlp_layernorm", "blk.*.ffn_norm"}},
    {"feed-forward",
     {"layers.*.feed_forward", "layers.*.mlp", "model.layers.*.mlp", "decoder.layers.*.mlp",
      "blk.*.ffn"}},
    {"gate",
     {"layers.*.feed_forward.w1", "layers.*.mlp.w1", "model.layers.*.mlp.gate_proj",
      "decoder.layers.*.mlp.linear_fc1_gate", "blk.*.ffn_gate"}},
    {"up",
     {"layers.*.feed_forward.w3", "layers.*.mlp.w3", "model.layers.*.mlp.up_proj",
      "decoder.layers.*.mlp.linear_fc1_up", "blk.*.ffn_up"}},
    {"gate and up",
     {"layers.*.feed_forward.w13", "layers.*.mlp.w13", "model.layers.*.mlp.gate_up_proj",
      "decoder.layers.*.mlp.linear_fc1", "blk.*.ffn_gate_up"}},
    {"activation",
     {"layers.*.feed_forward.act", "layers.*.mlp.activation", "model.layers.*.mlp.act_fn",
      "decoder.layers.*.mlp.activation_func", "blk.*.ffn_act"}},
    {"down",
     {"layers.*.feed_forward.w2", "layers.*.mlp.w2", "model.layers.*.mlp.down_proj",
      "decoder.layers.*.mlp.linear_fc2", "blk.*.ffn_down"}},
    {"experts and router",
     {"layers.*.moe", "layers.*.mlp", "model.layers.*.mlp", "decoder.layers.*.mlp", "blk.*.ffn"}},
    {"router",
     {"layers.*.moe.router.gate", "layers.*.mlp.router.gate", "model.layers.*.mlp.gate",
      "decoder.layers.*.mlp.router", "blk.*.ffn_gate_inp"}},
    {"router's list",
     {"layers.*.moe.reorderer", "layers.*.mlp.router.reorderer", "model.layers.*.mlp.reorderer",
      "decoder.layers.*.mlp.token_dispatcher", "blk.*.ffn_reorderer"}},
    {"experts",
     {"layers.*.moe.experts", "layers.*.mlp.experts", "model.layers.*.mlp.experts",
      "decoder.layers.*.mlp.experts", "blk.*.ffn_exps"}},
    {"experts' gates",
     {"layers.*.moe.experts.w1", "layers.*.mlp.experts.gate_proj",
      "model.layers.*.mlp.experts.gate_proj", "decoder.layers.*.mlp.experts.linear_fc1_gate",
      "blk.*.ffn_gate_exps"}},
    {"experts' ups",
     {"layers.*.moe.experts.w3", "layers.*.mlp.experts.up_proj",
      "model.layers.*.mlp.experts.up_proj", "decoder.layers.*.mlp.experts.linear_fc1_up",
      "blk.*.ffn_up_exps"}},
    {"experts' gates and ups",
     {"layers.*.moe.experts.w13", "layers.*.mlp.experts.gate_up_proj",
      "model.layers.*.mlp.experts.gate_up_proj", "decoder.layers.*.mlp.experts.linear_fc1",
      "blk.*.ffn_gate_up_exps"}},
    {"experts' activation",
     {"layers.*.moe.experts.act", "layers.*.mlp.experts.act_fn",
      "model.layers.*.mlp.experts.act_fn", "decoder.layers.*.mlp.experts.activation_func",
      "blk.*.ffn_act_exps"}},
    {"experts' downs",
     {"layers.*.moe.experts.w2", "layers.*.mlp.experts.down_proj",
      "model.layers.*.mlp.experts.down_proj", "decoder.layers.*.mlp.experts.linear_fc2",
      "blk.*.ffn_down_exps"}},
    {"router's selection bias",
     {"layers.*.moe.expert_bias", "layers.*.mlp.router.expert_bias",
      "model.layers.*.mlp.gate.e_score_correction_bias", "decoder.layers.*.mlp.router.expert_bias",
      "blk.*.exp_probs_b"}},
    {"experts' gates' and ups' biases",
     {"layers.*.moe.experts.w13_bias", "layers.*.mlp.experts.gate_up_proj_bias",
      "model.layers.*.mlp.experts.gate_up_proj_bias",
      "decoder.layers.*.mlp.experts.linear_fc1_bias", "blk.*.ffn_gate_up_exps_bias"}},
    {"experts' downs' biases",
     {"layers.*.moe.experts.w2_bias", "layers.*.mlp.experts.down_proj_bias",
      "model.layers.*.mlp.experts.down_proj_bias", "decoder.layers.*.mlp.experts.linear_fc2_bias",
      "blk.*.ffn_down_exps_bias"}},
    {"sinks of attention",
     {"layers.*.attention.sinks", "layers.*.attn.sinks", "model.layers.*.self_attn.sinks",
      "decoder.layers.*.self_attention.sinks", "blk.*.attn_sinks"}},
    {"router's selection bias (Hunyuan)",
     {"layers.*.moe.expert_bias", "layers.*.mlp.router.expert_bias",
      "model.layers.*.mlp.e_score_correction_bias", "decoder.layers.*.mlp.router.expert_bias",
      "blk.*.exp_probs_b"}},
    {"router (GPT-OSS, Aria)",
     {"layers.*.moe.router.gate", "layers.*.mlp.router.gate", "model.layers.*.mlp.router",
      "decoder.layers.*.mlp.router", "blk.*.ffn_gate_inp"}},
    {"shared expert",
     {"layers.*.moe.shared_experts", "layers.*.mlp.shared_expert",
      "model.layers.*.mlp.shared_experts", "decoder.layers.*.mlp.shared_experts",
      "blk.*.ffn_shexp"}},
    {"shared expert's gate",
     {"layers.*.moe.shared_experts.w1", "layers.*.mlp.shared_expert.w1",
      "model.layers.*.mlp.shared_experts.gate_proj",
      "decoder.layers.*.mlp.shared_experts.linear_fc1_gate", "blk.*.ffn_gate_shexp"}},
    {"shared expert's up",
     {"layers.*.moe.shared_experts.w3", "layers.*.mlp.shared_expert.w3",
      "model.layers.*.mlp.shared_experts.up_proj",
      "decoder.layers.*.mlp.shared_experts.linear_fc1_up", "blk.*.ffn_up_shexp"}},
    {"shared expert's activation",
     {"layers.*.moe.shared_experts.act", "layers.*.mlp.shared_expert.activation",
      "model.layers.*.mlp.shared_experts.act_fn",
      "decoder.layers.*.mlp.shared_experts.activation_func", "blk.*.ffn_act_shexp"}},
    {"shared expert's down",
     {"layers.*.moe.shared_experts.w2", "layers.*.mlp.shared_expert.w2",
      "model.layers.*.mlp.shared_experts.down_proj",
      "decoder.layers.*.mlp.shared_experts.linear_fc2", "blk.*.ffn_down_shexp"}},
    {"feed-forward (Llama 4)",
     {"layers.*.feed_forward", "layers.*.mlp", "model.layers.*.feed_forward",
      "decoder.layers.*.mlp", "blk.*.ffn"}},
    {"gate (Llama 4)",
     {"layers.*.feed_forward.w1", "layers.*.mlp.w1", "model.layers.*.feed_forward.gate_proj",
      "decoder.layers.*.mlp.linear_fc1_gate", "blk.*.ffn_gate"}},
    {"up (Llama 4)",
     {"layers.*.feed_forward.w3", "layers.*.mlp.w3", "model.layers.*.feed_forward.up_proj",
      "decoder.layers.*.mlp.linear_fc1_up", "blk.*.ffn_up"}},
    {"gate and up (Llama 4)",
     {"layers.*.feed_forward.w13", "layers.*.mlp.w13", "model.layers.*.feed_forward.gate_up_proj",
      "decoder.layers.*.mlp.linear_fc1", "blk.*.ffn_gate_up"}},
    {"activation (Llama 4)",
     {"layers.*.feed_forward.act", "layers.*.mlp.activation", "model.layers.*.feed_forward.act_fn",
      "decoder.layers.*.mlp.activation_func", "blk.*.ffn_act"}},
    {"down (Llama 4)",
     {"layers.*.feed_forward.w2", "layers.*.mlp.w2", "model.layers.*.feed_forward.down_proj",
      "decoder.layers.*.mlp.linear_fc2", "blk.*.ffn_down"}},
    {"experts and router (Llama 4)",
     {"layers.*.moe", "layers.*.mlp", "model.layers.*.feed_forward", "decoder.layers.*.mlp",
      "blk.*.ffn"}},
    {"router (Llama 4)",
     {"layers.*.moe.router.gate", "layers.*.mlp.router.gate", "model.layers.*.feed_forward.router",
      "decoder.layers.*.mlp.router", "blk.*.ffn_gate_inp"}},
    {"router's list (Llama 4)",
     {"layers.*.moe.reorderer", "layers.*.mlp.router.reorderer",
      "model.layers.*.feed_forward.reorderer", "decoder.layers.*.mlp.token_dispatcher",
      "blk.*.ffn_reorderer"}},
    {"experts (Llama 4)",
     {"layers.*.moe.experts", "layers.*.mlp.experts", "model.layers.*.feed_forward.experts",
      "decoder.layers.*.mlp.experts", "blk.*.ffn_exps"}},
    {"experts' gates (Llama 4)",
     {"layers.*.moe.experts.w1", "layers.*.mlp.experts.gate_proj",
      "model.layers.*.feed_forward.experts.gate_proj",
      "decoder.layers.*.mlp.experts.linear_fc1_gate", "blk.*.ffn_gate_exps"}},
    {"experts' ups (Llama 4)",
     {"layers.*.moe.experts.w3", "layers.*.mlp.experts.up_proj",
      "model.layers.*.feed_forward.experts.up_proj", "decoder.layers.*.mlp.experts.linear_fc1_up",
      "blk.*.ffn_up_exps"}},
    {"experts' gates and ups (Llama 4)",
     {"layers.*.moe.experts.w13", "layers.*.mlp.experts.gate_up_proj",
      "model.layers.*.feed_forward.experts.gate_up_proj", "decoder.layers.*.mlp.experts.linear_fc1",
      "blk.*.ffn_gate_up_exps"}},
    {"experts' activation (Llama 4)",
     {"layers.*.moe.experts.act", "layers.*.mlp.experts.act_fn",
      "model.layers.*.feed_forward.experts.act_fn", "decoder.layers.*.mlp.experts.activation_func",
      "blk.*.ffn_act_exps"}},
    {"experts' downs (Llama 4)",
     {"layers.*.moe.experts.w2", "layers.*.mlp.experts.down_proj",
      "model.layers.*.feed_forward.experts.down_proj", "decoder.layers.*.mlp.experts.linear_fc2",
      "blk.*.ffn_down_exps"}},
    {"shared expert (Llama 4)",
     {"layers.*.moe.shared_experts", "layers.*.mlp.shared_expert",
      "model.layers.*.feed_forward.shared_expert", "decoder.layers.*.mlp.shared_experts",
      "blk.*.ffn_shexp"}},
    {"shared expert's gate (Llama 4)",
     {"layers.*.moe.shared_experts.w1", "layers.*.mlp.shared_expert.w1",
      "model.layers.*.feed_forward.shared_expert.gate_proj",
      "decoder.layers.*.mlp.shared_experts.linear_fc1_gate", "blk.*.ffn_gate_shexp"}},
    {"shared expert's up (Llama 4)",
     {"layers.*.moe.shared_experts.w3", "layers.*.mlp.shared_expert.w3",
      "model.layers.*.feed_forward.shared_expert.up_proj",
      "decoder.layers.*.mlp.shared_experts.linear_fc1_up", "blk.*.ffn_up_shexp"}},
    {"shared expert's activation (Llama 4)",
     {"layers.*.moe.shared_experts.act", "layers.*.mlp.shared_expert.activation",
      "model.layers.*.feed_forward.shared_expert.act_fn",
      "decoder.layers.*.mlp.shared_experts.activation_func", "blk.*.ffn_act_shexp"}},
    {"shared expert's down (Llama 4)",
     {"layers.*.moe.shared_experts.w2", "layers.*.mlp.shared_expert.w2",
      "model.layers.*.feed_forward.shared_expert.down_proj",
      "decoder.layers.*.mlp.shared_experts.linear_fc2", "blk.*.ffn_down_shexp"}},
    {"shared expert (Flint)",
     {"layers.*.moe.shared_experts", "layers.*.mlp.shared_expert",
      "model.layers.*.mlp.shared_expert", "decoder.layers.*.mlp.shared_experts",
      "blk.*.ffn_shexp"}},
    {"shared expert's gate (Flint)",
     {"layers.*.moe.shared_experts.w1", "layers.*.mlp.shared_expert.w1",
      "model.layers.*.mlp.shared_expert.gate_proj",
      "decoder.layers.*.mlp.shared_experts.linear_fc1_gate", "blk.*.ffn_gate_shexp"}},
    {"shared expert's up (Flint)",
     {"layers.*.moe.shared_experts.w3", "layers.*.mlp.shared_expert.w3",
      "model.layers.*.mlp.shared_expert.up_proj",
      "decoder.layers.*.mlp.shared_experts.linear_fc1_up", "blk.*.ffn_up_shexp"}},
    {"shared expert's activation (Flint)",
     {"layers.*.moe.shared_experts.act", "layers.*.mlp.shared_expert.activation",
      "model.layers.*.mlp.shared_expert.act_fn",
      "decoder.layers.*.mlp.shared_experts.activation_func", "blk.*.ffn_act_shexp"}},
    {"shared expert's down (Flint)",
     {"layers.*.moe.shared_experts.w2", "layers.*.mlp.shared_expert.w2",
      "model.layers.*.mlp.shared_expert.down_proj",
      "decoder.layers.*.mlp.shared_experts.linear_fc2", "blk.*.ffn_down_shexp"}},
    /* of what a branch adds; the first is called in Hugging Face as the feed-forward norm is */
    {"norm after attention",
     {"layers.*.post_attention_norm", "layers.*.sa_scale",
      "model.layers.*.post_attention_layernorm", "decoder.layers.*.post_self_attn_layernorm",
      "blk.*.post_attention_norm"}},
    {"norm after feed-forward",
     {"layers.*.post_ffn_norm", "layers.*.mlp_scale", "model.layers.*.post_feedforward_layernorm",
      "decoder.layers.*.post_mlp_layernorm", "blk.*.post_ffw_norm"}},
    /* where each branch has a norm before and one after it, names go another way round */
    {"feed-forward norm (Gemma)",
     {"layers.*.ffn_norm", "layers.*.mlp_norm", "model.layers.*.pre_feedforward_layernorm",
      "decoder.layers.*.pre_mlp_layernorm", "blk.*.ffn_norm"}},
    {"post-attention norm (GLM-4)",
     {"layers.*.post_attention_norm", "layers.*.sa_scale",
      "model.layers.*.post_self_attn_layernorm", "decoder.layers.*.post_self_attn_layernorm",
      "blk.*.post_attention_norm"}},
    {"post-feed-forward norm (GLM-4)",
     {"layers.*.post_ffn_norm", "layers.*.mlp_scale", "model.layers.*.post_mlp_layernorm",
      "decoder.layers.*.post_mlp_layernorm", "blk.*.post_ffw_norm"}},
    {"attention norm (Apertus)",
     {"layers.*.attention_norm", "layers.*.sa_norm", "model.layers.*.attention_layernorm",
      "decoder.layers.*.input_layernorm", "blk.*.attn_norm"}},
    {"feed-forward norm (Apertus)",
     {"layers.*.ffn_norm", "layers.*.mlp_norm", "model.layers.*.feedforward_layernorm",
      "decoder.layers.*.pre_mlp_layernorm", "blk.*.ffn_norm"}},
    /* another root, and other words in it */
    {"embedding (GPT-NeoX)",
     {"tok_embeddings", "tok_embeddings", "gpt_neox.embed_in", "embedding.word_embeddings",
      "token_embd"}},
    {"layer (GPT-NeoX)",
     {"layers.*", "layers.*", "gpt_neox.layers.*", "decoder.layers.*", "blk.*"}},
    {"attention norm (GPT-NeoX)",
     {"layers.*.attention_norm", "layers.*.sa_norm", "gpt_neox.layers.*.input_layernorm",
      "decoder.layers.*.input_layernorm", "blk.*.attn_norm"}},
    {"attention (GPT-NeoX)",
     {"layers.*.attention", "layers.*.attn", "gpt_neox.layers.*.attention",
      "decoder.layers.*.self_attention", "blk.*.attn"}},
    {"query, key and value (GPT-NeoX)",
     {"layers.*.attention.wqkv", "layers.*.attn.qkv_proj",
      "gpt_neox.layers.*.attention.query_key_value", "decoder.layers.*.self_attention.linear_qkv",
      "blk.*.attn_qkv"}},
    {"core attention (GPT-NeoX)",
     {"layers.*.attention.core", "layers.*.attn.core", "gpt_neox.layers.*.attention.core",
      "decoder.layers.*.self_attention.core_attention", "blk.*.attn_core"}},
    {"attention output (GPT-NeoX)",
     {"layers.*.attention.wo", "layers.*.attn.output_proj", "gpt_neox.layers.*.attention.dense",
      "decoder.layers.*.self_attention.linear_proj", "blk.*.attn_output"}},
    {"feed-forward norm (GPT-NeoX)",
     {"layers.*.ffn_norm", "layers.*.mlp_norm", "gpt_neox.layers.*.post_attention_layernorm",
      "decoder.layers.*.pre_mlp_layernorm", "blk.*.ffn_norm"}},
    {"feed-forward (GPT-NeoX)",
     {"layers.*.feed_forward", "layers.*.mlp", "gpt_neox.layers.*.mlp", "decoder.layers.*.mlp",
      "blk.*.ffn"}},
    {"up (GPT-NeoX)",
     {"layers.*.feed_forward.w3", "layers.*.mlp.w3", "gpt_neox.layers.*.mlp.dense_h_to_4h",
      "decoder.layers.*.mlp.linear_fc1_up", "blk.*.ffn_up"}},
    {"activation (GPT-NeoX)",
     {"layers.*.feed_forward.act", "layers.*.mlp.activation", "gpt_neox.layers.*.mlp.act_fn",
      "decoder.layers.*.mlp.activation_func", "blk.*.ffn_act"}},
    {"down (GPT-NeoX)",
     {"layers.*.feed_forward.w2", "layers.*.mlp.w2", "gpt_neox.layers.*.mlp.dense_4h_to_h",
      "decoder.layers.*.mlp.linear_fc2", "blk.*.ffn_down"}},
    {"final norm (GPT-NeoX)",
     {"norm", "norm", "gpt_neox.final_layer_norm", "decoder.final_layernorm", "output_norm"}},
    {"embedding (GPT-2)",
     {"tok_embeddings", "tok_embeddings", "transformer.wte", "embedding.word_embeddings",
      "token_embd"}},
    {"layer (GPT-2)", {"layers.*", "layers.*", "transformer.h.*", "decoder.layers.*", "blk.*"}},
    {"attention norm (GPT-2)",
     {"layers.*.attention_norm", "layers.*.sa_norm", "transformer.h.*.ln_1",
      "decoder.layers.*.input_layernorm", "blk.*.attn_norm"}},
    {"attention (GPT-2)",
     {"layers.*.attention", "layers.*.attn", "transformer.h.*.attn",
      "decoder.layers.*.self_attention", "blk.*.attn"}},
    {"query, key and value (GPT-2)",
     {"layers.*.attention.wqkv", "layers.*.attn.qkv_proj", "transformer.h.*.attn.c_attn",
      "decoder.layers.*.self_attention.linear_qkv", "blk.*.attn_qkv"}},
    {"core attention (GPT-2)",
     {"layers.*.attention.core", "layers.*.attn.core", "transformer.h.*.attn.core",
      "decoder.layers.*.self_attention.core_attention", "blk.*.attn_core"}},
    {"attention output (GPT-2)",
     {"layers.*.attention.wo", "layers.*.attn.output_proj", "transformer.h.*.attn.c_proj",
      "decoder.layers.*.self_attention.linear_proj", "blk.*.attn_output"}},
    {"feed-forward norm (GPT-2)",
     {"layers.*.ffn_norm", "layers.*.mlp_norm", "transformer.h.*.ln_2",
      "decoder.layers.*.pre_mlp_layernorm", "blk.*.ffn_norm"}},
    {"feed-forward (GPT-2)",
     {"layers.*.feed_forward", "layers.*.mlp", "transformer.h.*.mlp", "decoder.layers.*.mlp",
      "blk.*.ffn"}},
    {"up (GPT-2)",
     {"layers.*.feed_forward.w3", "layers.*.mlp.w3", "transformer.h.*.mlp.c_fc",
      "decoder.layers.*.mlp.linear_fc1_up", "blk.*.ffn_up"}},
    {"activation (GPT-2)",
     {"layers.*.feed_forward.act", "layers.*.mlp.activation", "transformer.h.*.mlp.act_fn",
      "decoder.layers.*.mlp.activation_func", "blk.*.ffn_act"}},
    {"down (GPT-2)",
     {"layers.*.feed_forward.w2", "layers.*.mlp.w2", "transformer.h.*.mlp.c_proj",
      "decoder.layers.*.mlp.linear_fc2", "blk.*.ffn_down"}},
    {"final norm (GPT-2)",
     {"norm", "norm", "transformer.ln_f", "decoder.final_layernorm", "output_norm"}},
    {"positions (GPT-2)",
     {"pos_embeddings", "pos_embeddings", "transformer.wpe", "embedding.position_embeddings",
      "position_embd"}},
    {"final norm", {"norm", "norm", "model.norm", "decoder.final_layernorm", "output_norm"}},
    {"head", {"output", "output", "lm_head", "output_layer", "output"}},
    {"loss", {"loss", "loss", "loss", "loss", "loss"}},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* Rows that only a name of the graph's own leads to. */
typedef enum { OF_ALL, OF_EXPERTS, OF_NORMS_AFTER, OF_ANY } Kind;
/* In the graph, what Hugging Face's name does not tell apart has a name of its own: "mlp" in layers
 * with experts and without, "post_attention_layernorm" before the feed-forward part and after
 * attention. */
static const struct {
    const char *own, *theirs;
    Kind kind;
} own_parts[] = {{".moe", ".mlp", OF_EXPERTS},
                 {".moe_ff", ".feed_forward", OF_EXPERTS},
                 {".attn_out_norm", ".post_attention_layernorm", OF_NORMS_AFTER},
                 {".mlp_out_norm", ".post_feedforward_layernorm", OF_NORMS_AFTER}};
static Kind kind_of(const NamesRow *r) {
    static const struct {
        const char *start;
        Kind kind;
    } starts[] = {{"expert", OF_EXPERTS},
                  {"router", OF_EXPERTS},
                  {"shared expert", OF_EXPERTS},
                  {"norm after", OF_NORMS_AFTER}};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(r->what, starts[i].start, strlen(starts[i].start))) return starts[i].kind;
    return OF_ALL;
}

uint32_t names_part(const NamesRow *row) {
    static const struct {
        const char *name; /* as torchtitan has it */
        uint32_t part;
    } parts[] = {{"tok_embeddings", PART_EMBEDDING},
                 {"pos_embeddings", PART_EMBEDDING},
                 {"norm", PART_NORM},
                 {"output", PART_HEAD}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(row->name[0], parts[i].name) == 0) return parts[i].part;
    return 0;
}
const NamesRow *names_table(int *n) {
    *n = N_ROWS;
    return rows;
}

/* Is it what belongs to the parameter `owned` (".weight"), or the parameter itself? */
static bool is_of(const char *rest, const char *owned) {
    size_t n = strlen(owned);
    return !strncmp(rest, owned, n) && (!rest[n] || rest[n] == '.');
}
/* What may follow a module's path: its parameters (and what belongs to them: ".weight.exp_avg"),
 * its boundaries. */
static bool is_rest(const char *rest) {
    static const char *const owned[] = {".weight", ".bias", ".scale"};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        if (is_of(rest, owned[i])) return true;
    return !*rest || !strcmp(rest, ".input") || !strcmp(rest, ".output");
}
/* What follows the path of that row's module, in another scheme: the weight of a norm is its
 * `scale` in torchtune (a name to translate may say either; a line of a plan says `scale`).
 * NULL: no other module has a scale. */
static const char *rest_in(Arena *arena, Names from, Names to, const NamesRow *r,
                           const char *rest) {
    const bool norm = strstr(r->what, "norm") != NULL;
    const char *weight = is_of(rest, ".weight")  ? rest + strlen(".weight")
                         : is_of(rest, ".scale") ? rest + strlen(".scale")
                                                 : NULL;
    if (is_of(rest, ".scale") && !(norm && from == NAMES_TORCHTUNE)) return NULL;
    if (!weight || !norm) return rest;
    return arena_printf(arena, "%s%s", to == NAMES_TORCHTUNE ? ".scale" : ".weight", weight);
}
/* Does `path` match `pattern`, in which `*` is a run of digits, up to its end or up to what is_rest
 * knows? The digits are returned in number, nnumber, the rest in *rest. */
static bool names_match(const char *pattern, const char *path, const char **number, int *nnumber,
                        const char **rest) {
    *number = "";
    *nnumber = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            if (*path++ != *pattern) return false;
            continue;
        }
        *number = path;
        while (*path >= '0' && *path <= '9') path++;
        *nnumber = (int)(path - *number);
        if (!*nnumber) return false;
    }
    *rest = path;
    return is_rest(path);
}

/* The name of a row with the layer's number, and what follows it. */
static const char *numbered(Arena *arena, const char *name, const char *number, int n,
                            const char *rest) {
    const char *star = strchr(name, '*');
    if (!star) return arena_printf(arena, "%s%s", name, rest);
    return arena_printf(arena, "%.*s%.*s%s%s", (int)(star - name), name, n, number, star + 1, rest);
}
/* Of rows of this kind, or of any. By the row that matches after `reading`
 * others have. */
static const char *names_translate(Arena *arena, Names from, Names to, const char *path, Kind kind,
                                   int reading) {
    for (int i = 0; i < N_ROWS; i++) {
        const char *number, *rest;
        int n;
        if (!names_match(rows[i].name[from], path, &number, &n, &rest)) continue;
        if ((kind != OF_ANY && kind_of(&rows[i]) != kind) || reading-- > 0) continue;
        const char *name = rows[i].name[to];
        rest = rest_in(arena, from, to, &rows[i], rest);
        if (!name || !rest) return NULL;
        return numbered(arena, name, number, n, rest);
    }
    return NULL;
}

bool names_turn_experts(Names n) { return n == NAMES_HF || n == NAMES_TORCHTUNE; }
const char *names_to_scheme(Arena *arena, Names n, const char *hf_path) {
    assert(n < NAMES_COUNT && hf_path);
    return names_translate(arena, NAMES_HF, n, hf_path, OF_ANY, 0);
}

const char *names_of_own(Arena *arena, Names n, const char *path) {
    for (size_t i = 0; i < sizeof own_parts / sizeof *own_parts; i++) {
        const char *at = strstr(path, own_parts[i].own);
        size_t len = strlen(own_parts[i].own);
        if (!at || (at[len] && at[len] != '.')) continue;
        path =
            arena_printf(arena, "%.*s%s%s", (int)(at - path), path, own_parts[i].theirs, at + len);
        return names_translate(arena, NAMES_HF, n, path, own_parts[i].kind, 0);
    }
    return names_translate(arena, NAMES_HF, n, path, OF_ALL, 0);
}

const char *names_from_scheme(Arena *arena, Names n, const char *path, int reading) {
    assert(n < NAMES_COUNT && path && reading >= 0);
    return names_translate(arena, n, NAMES_HF, path, OF_ANY, reading);
}

/* Modules that are one in some models and several in others. */
static const struct {
    const char *one, *part[3];
} together[] = {{"query, key and value", {"query", "key", "value"}},
                {"gate and up", {"gate", "up"}},
                {"experts' gates and ups", {"experts' gates", "experts' ups"}}};
/* Is it what that row is, of whatever family: "gate (Llama 4)"? */
static bool row_is(const NamesRow *r, const char *what) {
    size_t n = strlen(what);
    return !strncmp(r->what, what, n) && (!r->what[n] || !strncmp(r->what + n, " (", 2));
}
static const char *whole_of(const NamesRow *r) {
    for (size_t i = 0; i < sizeof together / sizeof *together; i++)
        for (int k = 0; k < 3 && together[i].part[k]; k++)
            if (row_is(r, together[i].part[k])) return together[i].one;
    return NULL;
}
const char *names_together(Arena *arena, Names n, const char *hf_path) {
    assert(n < NAMES_COUNT && hf_path);
    for (int i = 0; i < N_ROWS; i++) {
        const char *number, *rest;
        int digits;
        if (!names_match(rows[i].name[NAMES_HF], hf_path, &number, &digits, &rest) || *rest)
            continue;
        const char *one = whole_of(&rows[i]);
        for (int k = 0; one && k < N_ROWS; k++)
            if (row_is(&rows[k], one) && rows[k].name[n])
                return numbered(arena, rows[k].name[n], number, digits, "");
    }
    return NULL;
}

/* Is it a name of the scheme, and one that tells the schemes apart ("norm" is in all of them)? */
static bool names_tells(Names scheme, const char *name) {
    for (int r = 0; r < N_ROWS; r++) {
        const char *number, *rest, *pattern = rows[r].name[scheme];
        int digits;
        if (strchr(pattern, '*') && names_match(pattern, name, &number, &digits, &rest) && *rest)
            return true;
    }
    return false;
}

int names_recognise(const char *const *names, int n) {
    int best = -1, most = 0;
    /* Hugging Face first: where two schemes explain a file equally well, it is the likelier one. */
    static const Names order[] = {NAMES_HF, NAMES_TORCHTITAN, NAMES_TORCHTUNE, NAMES_MEGATRON,
                                  NAMES_GGUF};
    static_assert(sizeof order / sizeof *order == NAMES_COUNT, "every scheme");
    for (int s = 0; s < NAMES_COUNT; s++) {
        int found = 0;
        for (int i = 0; i < n; i++) found += names_tells(order[s], names[i]);
        if (found > most) {
            most = found;
            best = (int)order[s];
        }
    }
    return best;
}
