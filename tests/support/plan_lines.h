/* Lines of plans that many tests write: torchtitan's for a block with sequence parallelism. The
 * tests choose the model, the mesh and what is around. */
#ifndef SP_TESTS_PLAN_LINES_H
#define SP_TESTS_PLAN_LINES_H
#define TITAN_BLOCK_NORMS                                                                          \
    "  layers.*.attention_norm: sequence_parallel\n  layers.*.ffn_norm: sequence_parallel\n"
#define TITAN_ATTENTION                                                                            \
    "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "       \
    "[replicate]}\n"                                                                               \
    "  layers.*.attention.w[qkv]: colwise\n"                                                       \
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
#define TITAN_FFN                                                                                  \
    "  layers.*.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: "    \
    "[replicate]}\n"                                                                               \
    "  layers.*.feed_forward.w[13]: colwise\n"                                                     \
    "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n"
#endif
