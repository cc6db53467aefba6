/* Recipes: whole tables of known systems, as plan lines in that system's own names.
 * They are read like a plan; lines under `plan` beat them. Their patterns may match nothing (a
 * model without embedding). */
#include "plan/plan.h"
#include <string.h>

/* What torchtitan does alike in all its models: embedding and blocks, and what comes behind. */
#define TITAN_BLOCK                                                                                \
    "tok_embeddings: {style: rowwise, input: replicate, output: shard(1)}\n"                       \
    "layers.*.attention_norm: sequence_parallel\n"                                                 \
    "layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "         \
    "[replicate]}\n"                                                                               \
    "layers.*.attention.w[qkv]: colwise\n"                                                         \
    "layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"                                  \
    "layers.*.ffn_norm: sequence_parallel\n"                                                       \
    "layers.*.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: "      \
    "[replicate]}\n"                                                                               \
    "layers.*.feed_forward.w[13]: colwise\n"                                                       \
    "layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n"
#define TITAN_HEAD                                                                                 \
    "norm: sequence_parallel\n"                                                                    \
    "output: {style: colwise, input: shard(1), desired_input: replicate, output: shard(-1), "      \
    "use_local_output: false}\n"                                                                   \
    "loss: loss_parallel\n"

/* torchtitan v0.2.2, Llama 3 with loss parallel. */
static const char torchtitan_llama3[] = TITAN_BLOCK TITAN_HEAD;

/* torchtitan v0.2.2, Llama 4: routed and shared experts are partial sums together. Experts cut
 * inside; a line of the plan puts them on other ranks. */
static const char torchtitan_llama4[] = TITAN_BLOCK
    "layers.*.moe: {style: prepare_module_input_output, input: [shard(1)], desired_input: "
    "[replicate], use_local_input: true, output: partial, desired_output: shard(1)}\n"
    "layers.*.moe.router.gate: no_parallel\n"
    "layers.*.moe.shared_experts.w[13]: colwise\n"
    "layers.*.moe.shared_experts.w2: {style: rowwise, output: partial}\n"
    "layers.*.moe.experts: tensor_parallel\n" TITAN_HEAD;

/* torchtune's Llama 4 plan for inference. Its training plan counts the shared expert tp times
 * (plans/bugs/46). */
static const char torchtune_llama4[] =
    "layers.*.attn.[qkv]_proj: colwise\n"
    "layers.*.attn.output_proj: rowwise\n"
    "layers.*.mlp.w[13]: colwise\n"
    "layers.*.mlp.w2: {style: rowwise, output: partial}\n"
    "layers.*.mlp: {style: prepare_module_output, output: partial, desired_output: replicate}\n"
    "layers.*.mlp.router.gate: no_parallel\n"
    "layers.*.mlp.shared_expert.w[13]: colwise\n"
    "layers.*.mlp.shared_expert.w2: {style: rowwise, output: partial}\n"
    "layers.*.mlp.experts: tensor_parallel\n"
    "output: {style: colwise, output: replicate}\n";

/* Hugging Face's base_model_tp_plan for Mixtral: every expert cut inside. */
static const char hf_mixtral[] =
    "model.embed_tokens: embedding_rowwise\n"
    "model.layers.*.self_attn.[qkv]_proj: {style: colwise, boundary: per_module}\n"
    "model.layers.*.self_attn.o_proj: rowwise\n"
    "model.layers.*.mlp: {style: prepare_module_input, input: [replicate], desired_input: "
    "[replicate]}\n"
    "model.layers.*.mlp.gate: replicated_with_grad_allreduce\n"
    "model.layers.*.mlp.experts: {style: tensor_parallel, output: replicate}\n"
    "lm_head: colwise_gather_output\n";

/* torchtune's Llama 3 plan: as above under its own names, logits gathered. */
static const char torchtune_llama3[] =
    "tok_embeddings: {style: rowwise, input: replicate, output: shard(1)}\n"
    "layers.*.sa_norm: sequence_parallel\n"
    "layers.*.attn: {style: prepare_module_input, input: [shard(1)], desired_input: [replicate]}\n"
    "layers.*.attn.[qkv]_proj: colwise\n"
    "layers.*.attn.output_proj: {style: rowwise, output: shard(1)}\n"
    "layers.*.mlp_norm: sequence_parallel\n"
    "layers.*.mlp: {style: prepare_module_input, input: [shard(1)], desired_input: [replicate]}\n"
    "layers.*.mlp.w[13]: colwise\n"
    "layers.*.mlp.w2: {style: rowwise, output: shard(1)}\n"
    "norm: sequence_parallel\n"
    "output: {style: colwise, input: shard(1), desired_input: replicate, output: replicate}\n";

/* Hugging Face's base_model_tp_plan for Llama, Qwen2, Qwen3; a model with one gets the embedding's
 * line by itself. Plain tensors between the modules: each has an input move of its own. */
static const char hf_llama[] =
    "model.embed_tokens: embedding_rowwise\n"
    "model.layers.*.self_attn.[qkv]_proj: {style: colwise, boundary: per_module}\n"
    "model.layers.*.self_attn.[qk]_norm: replicated_with_grad_allreduce\n"
    "model.layers.*.self_attn.o_proj: rowwise\n"
    "model.layers.*.mlp.gate_proj: {style: colwise, boundary: per_module}\n"
    "model.layers.*.mlp.up_proj: {style: colwise, boundary: per_module}\n"
    "model.layers.*.mlp.down_proj: rowwise\n"
    "lm_head: colwise_gather_output\n";

/* Megatron core, tensor parallel, vocabulary parallel at both ends. */
static const char megatron[] =
    "embedding.word_embeddings: embedding_rowwise\n"
    "decoder.layers.*.self_attention.linear_[qkv]*: colwise\n"
    "decoder.layers.*.self_attention.[qk]_layernorm: replicated_with_grad_allreduce\n"
    "decoder.layers.*.self_attention.linear_proj: rowwise\n"
    "decoder.layers.*.mlp.linear_fc1*: colwise\n"
    "decoder.layers.*.mlp.linear_fc2: rowwise\n"
    "output_layer: colwise\n"
    "loss: loss_parallel\n";

/* The same with sequence parallelism. */
static const char megatron_sp[] =
    "embedding.word_embeddings: {style: embedding_rowwise, output: shard(1)}\n"
    "decoder.layers.*.input_layernorm: sequence_parallel\n"
    "decoder.layers.*.self_attention: {style: prepare_module_input, input: [shard(1)], "
    "desired_input: [replicate]}\n"
    "decoder.layers.*.self_attention.linear_[qkv]*: colwise\n"
    "decoder.layers.*.self_attention.[qk]_layernorm: replicated_with_grad_allreduce\n"
    "decoder.layers.*.self_attention.linear_proj: {style: rowwise, output: shard(1)}\n"
    "decoder.layers.*.pre_mlp_layernorm: sequence_parallel\n"
    "decoder.layers.*.mlp: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "decoder.layers.*.mlp.linear_fc1*: colwise\n"
    "decoder.layers.*.mlp.linear_fc2: {style: rowwise, output: shard(1)}\n"
    "decoder.final_layernorm: sequence_parallel\n"
    "output_layer: {style: colwise, input: shard(1), desired_input: replicate}\n"
    "loss: loss_parallel\n";

/* The same with experts: tokens stay cut by tp around them, so the router sees its part, and no
 * block gathers its input; each column layer does. Which ranks have which experts is the groups
 * `ep` and `etp`, or `moe: {axis, etp}`. */
static const char megatron_moe[] =
    "embedding.word_embeddings: {style: embedding_rowwise, output: shard(1)}\n"
    "decoder.layers.*.input_layernorm: sequence_parallel\n"
    "decoder.layers.*.self_attention: {style: prepare_module_input, input: [shard(1)], "
    "desired_input: [replicate]}\n"
    "decoder.layers.*.self_attention.linear_[qkv]*: colwise\n"
    "decoder.layers.*.self_attention.[qk]_layernorm: replicated_with_grad_allreduce\n"
    "decoder.layers.*.self_attention.linear_proj: {style: rowwise, output: shard(1)}\n"
    "decoder.layers.*.pre_mlp_layernorm: sequence_parallel\n"
    "decoder.layers.*.mlp.linear_fc1*: {style: colwise, input: shard(1), desired_input: "
    "replicate}\n"
    "decoder.layers.*.mlp.linear_fc2: {style: rowwise, output: shard(1)}\n"
    "decoder.layers.*.mlp.router: sequence_parallel\n"
    "decoder.layers.*.mlp.experts: {style: expert_tensor_parallel, output: home}\n"
    "decoder.layers.*.mlp.shared_experts.linear_fc1*: {style: colwise, input: shard(1), "
    "desired_input: replicate}\n"
    "decoder.layers.*.mlp.shared_experts.linear_fc2: {style: rowwise, output: shard(1)}\n"
    "decoder.final_layernorm: sequence_parallel\n"
    "output_layer: {style: colwise, input: shard(1), desired_input: replicate}\n"
    "loss: loss_parallel\n";

/* Hugging Face's base_model_ep_plan of Mixtral and Qwen3-MoE (transformers 5.23): tokens are whole,
 * each rank sends its part of them. */
static const char hf_moe_ep[] =
    "model.embed_tokens: embedding_rowwise\n"
    "model.layers.*.self_attn.[qkv]_proj: {style: colwise, boundary: per_module}\n"
    "model.layers.*.self_attn.[qk]_norm: replicated_with_grad_allreduce\n"
    "model.layers.*.self_attn.o_proj: rowwise\n"
    "model.layers.*.mlp.experts: ep_dispatch_experts\n"
    "model.layers.*.mlp.experts.*: grouped_gemm\n"
    "lm_head: colwise_gather_output\n";

static const RecipeRow recipes[] = {
    {"megatron", "Megatron core: TP, vocabulary parallel embedding, head and loss", NAMES_MEGATRON,
     megatron},
    {"megatron-sp", "Megatron core: the same with sequence parallelism", NAMES_MEGATRON,
     megatron_sp},
    {"megatron-moe", "Megatron core: with sequence parallelism and experts over ep and etp",
     NAMES_MEGATRON, megatron_moe},
    {"torchtitan-llama3", "torchtitan Llama 3: TP + SP, loss parallel", NAMES_TORCHTITAN,
     torchtitan_llama3},
    {"torchtune-llama3", "torchtune Llama 3: TP + SP, logits gathered", NAMES_TORCHTUNE,
     torchtune_llama3},
    {"torchtune-llama4", "torchtune Llama 4 at inference: TP, experts cut inside", NAMES_TORCHTUNE,
     torchtune_llama4},
    {"torchtitan-llama4", "torchtitan Llama 4: TP + SP, experts cut inside, loss parallel",
     NAMES_TORCHTITAN, torchtitan_llama4},
    {"hf-llama", "Hugging Face tp_plan of Llama, Qwen2, Qwen3", NAMES_HF, hf_llama},
    {"hf-mixtral", "Hugging Face tp_plan of Mixtral: experts cut inside", NAMES_HF, hf_mixtral},
    {"hf-moe-ep", "Hugging Face ep_plan of Mixtral, Qwen3-MoE: experts on different ranks",
     NAMES_HF, hf_moe_ep},
};

enum { N_RECIPES = sizeof recipes / sizeof recipes[0] };
const RecipeRow *plan_recipes(int *n) {
    *n = N_RECIPES;
    return recipes;
}
const char *recipe_instead(Arena *a, const char *name) {
    for (int i = 0; i < N_RECIPES; i++)
        if (!strcmp(recipes[i].name, name))
            return arena_printf(a, "that is a recipe: `recipe: %s`, beside `plan`", name);
    return NULL;
}
