/* Plans of what no shipped plan has, for tests of ranks that are processes: when gradients are
 * summed and parameters gathered (micro-batch by micro-batch, once a step, by block, over some of
 * the axes), a ring that sends the latent, documents by row, bf16, experts that drop rows. */
#ifndef SP_TESTS_WIRE_PLANS_H
#define SP_TESTS_WIRE_PLANS_H
#define WIRE_LLAMA                                                                                 \
    "model: {preset: llama3-8b, layers: 2, shrink: 64, parts: [embedding, blocks, norm, head, "    \
    "loss]}\n"
#define WIRE_STEPS                                                                                 \
    WIRE_LLAMA "data: {batch: 8, sequence: 6, microbatches: 2}\npass: train\n"                     \
               "optimizer: {name: adamw, steps: 2}\n"
#define WIRE_LATENT                                                                                \
    "model: {config: {model_type: deepseek_v3, hidden_size: 12, num_attention_heads: 4, "          \
    "num_key_value_heads: 4, q_lora_rank: 6, kv_lora_rank: 5, qk_nope_head_dim: 4, "               \
    "qk_rope_head_dim: 2, v_head_dim: 3, intermediate_size: 10, vocab_size: 11, "                  \
    "num_hidden_layers: 2, first_k_dense_replace: 2, rope_interleave: true}, layers: all, "        \
    "parts: [embedding, blocks, norm, head, loss]}\n"                                              \
    "data: {batch: 2, sequence: 24}\npass: backward\nnames: hf\n"
static const struct {
    int ranks;
    const char *text;
} wire_plans[] = {
    {2, WIRE_STEPS "mesh: {dp: 2}\ndata_parallel: {mode: fsdp, unit: block, grad_sync: "
                   "microbatch}\n"},
    {2, WIRE_STEPS "mesh: {dp: 2}\ndata_parallel: {mode: fsdp, unit: block, reshard: step}\n"},
    {2, WIRE_STEPS "mesh: {dp: 2}\ndata_parallel: {mode: fsdp, unit: block, reshard: blocks}\n"},
    {2, WIRE_STEPS "mesh: {dp: 2}\ndata_parallel: {mode: ddp, grad_sync: microbatch}\n"},
    {3, WIRE_LLAMA "data: {batch: 3, sequence: 5}\npass: backward\nmesh: {dp: 3}\n"
                   "data_parallel: {mode: fsdp, unit: block, reshard: false}\n"},
    {4, WIRE_STEPS "mesh: {r: 2, s: 2}\ndata_parallel: {mode: fsdp, axis: r*s, unit: block, "
                   "reshard_over: s}\n"},
    {4, WIRE_STEPS "mesh: {r: 2, s: 2}\ndata_parallel: {mode: hsdp, replicate: r, shard: s, unit: "
                   "block, grad_sync: scatter, reshard: step}\n"},
    {4, WIRE_STEPS "mesh: {pp: 2, dp: 2}\npipeline: {schedule: 1f1b, microbatches: 2}\n"
                   "data_parallel: {mode: fsdp, unit: block, grad_sync: microbatch}\n"},
    {4, WIRE_LATENT "mesh: {cp: 4}\ncontext_parallel: {mode: ring, latent: true, order: zigzag}\n"},
    {4, WIRE_LATENT "mesh: {cp: 2, dp: 2}\ncontext_parallel: {mode: ring, latent: true, order: "
                    "striped, keep_kv: false}\ndata_parallel: fsdp\n"},
    {3, WIRE_LATENT "mesh: {cp: 3}\ncontext_parallel: {mode: ring, latent: true, rfa: true}\n"},
    {4, "model: {preset: llama3-8b, layers: 1, shrink: 64}\n"
        "data: {documents: [[5, 2, 9], [16]]}\npass: backward\nmesh: {dp: 2, cp: 2}\n"
        "context_parallel: {mode: ring}\n"},
    {4, WIRE_LLAMA "data: {batch: 4, sequence: 6, dtype: bf16}\nnames: torchtitan\n"
                   "recipe: torchtitan-llama3\nmesh: {dp: 2, tp: 2}\npass: backward\n"
                   "data_parallel: {mode: fsdp, axis: dp, unit: block}\n"},
    {4, "model: {preset: mixtral-8x7b, layers: 1, shrink: 64}\ndata: {batch: 4, sequence: 7}\n"
        "mesh: {dp: 4}\ngroups: {ep: dp}\nnames: torchtitan\npass: backward\nmoe: {routing: burst, "
        "capacity_factor: 1.0, "
        "capacity: local}\ndata_parallel: {mode: ddp}\nplan:\n  layers.*.moe.experts: "
        "expert_parallel\n"},
};
#endif
