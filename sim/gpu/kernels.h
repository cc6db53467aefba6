/* The list of kernels: X(name, together). `together`: the threads of a block wait for each other.
 * A kernel's text stands beside its op (ops/NAME.cu.h) and is compiled for f32 and for f64. */
#ifndef SP_GPU_KERNELS_H
#define SP_GPU_KERNELS_H
#define GPU_DENSE_KERNELS(X)                                                                       \
    X(copy, 0)                                                                                     \
    X(fill, 0)                                                                                     \
    X(sum_into, 0)                                                                                 \
    X(max_into, 0)                                                                                 \
    X(bf16, 0)                                                                                     \
    X(bf16_pack, 0)                                                                                \
    X(copy_table, 0)                                                                               \
    X(add, 0)                                                                                      \
    X(times, 0)                                                                                    \
    X(temperature, 0)                                                                              \
    X(relu, 0)                                                                                     \
    X(relu_slope, 0)                                                                               \
    X(square, 0)                                                                                   \
    X(square_slope, 0)                                                                             \
    X(silu, 0)                                                                                     \
    X(silu_slope, 0)                                                                               \
    X(sigmoid, 0)                                                                                  \
    X(sigmoid_slope, 0)                                                                            \
    X(gelu, 0)                                                                                     \
    X(gelu_slope, 0)                                                                               \
    X(gelu_tanh, 0)                                                                                \
    X(gelu_tanh_slope, 0)                                                                          \
    X(tanh, 0)                                                                                     \
    X(tanh_slope, 0)                                                                               \
    X(softcap, 0)                                                                                  \
    X(softcap_slope, 0)                                                                            \
    X(clamp, 0)                                                                                    \
    X(clamp_slope, 0)                                                                              \
    X(xielu, 0)                                                                                    \
    X(xielu_slope, 0)                                                                              \
    X(xielu_scalar, 1)                                                                             \
    X(swiglu, 0)                                                                                   \
    X(swiglu_gate, 0)                                                                              \
    X(swiglu_up, 0)                                                                                \
    X(axpby, 0)                                                                                    \
    X(ema_square, 0)                                                                               \
    X(adamw, 0)                                                                                    \
    X(clip, 0)                                                                                     \
    X(contract, 0)                                                                                 \
    X(contract_block, 1)                                                                           \
    X(rmsnorm, 1)                                                                                  \
    X(rmsnorm_x, 1)                                                                                \
    X(rmsnorm_rate, 1)                                                                             \
    X(rmsnorm_w, 0)                                                                                \
    X(layernorm, 1)                                                                                \
    X(layernorm_x, 1)                                                                              \
    X(layernorm_rows, 1)                                                                           \
    X(layernorm_w, 0)                                                                              \
    X(rope, 0)                                                                                     \
    X(embed, 0)                                                                                    \
    X(embed_w, 0)                                                                                  \
    X(position, 0)                                                                                 \
    X(position_w, 0)                                                                               \
    X(rowmax, 1)                                                                                   \
    X(sumexp, 1)                                                                                   \
    X(sumexp_z, 0)                                                                                 \
    X(rowsum, 1)                                                                                   \
    X(limited, 0)                                                                                  \
    X(pick, 0)                                                                                     \
    X(pick_z, 0)                                                                                   \
    X(nll, 0)                                                                                      \
    X(nll_sum, 0)                                                                                  \
    X(nll_other, 0)                                                                                \
    X(softmax, 1)                                                                                  \
    X(softmax_z, 1)                                                                                \
    X(normalise, 1)                                                                                \
    X(normalise_x, 1)                                                                              \
    X(logsumexp, 1)                                                                                \
    X(logsumexp_z, 1)                                                                              \
    X(merge, 0)                                                                                    \
    X(merge_part, 0)                                                                               \
    X(sink, 0)                                                                                     \
    X(sink_part, 0)                                                                                \
    X(sink_sum, 1)                                                                                 \
    X(limit_above, 0)                                                                              \
    X(limit_above_slope, 0)                                                                        \
    X(swiglu_plus, 0)                                                                              \
    X(swiglu_plus_gate, 0)                                                                         \
    X(swiglu_plus_up, 0)                                                                           \
    X(attention, 1)                                                                                \
    X(attention_stats, 1)                                                                          \
    X(attention_part_stats, 1)                                                                     \
    X(attention_q, 1)                                                                              \
    X(attention_kv, 1)                                                                             \
    X(attention_tiles, 1)                                                                          \
    X(attention_tiles_q, 1)                                                                        \
    X(attention_tiles_kv, 1)
/* Of rows of experts, and of what chooses them. */
#define GPU_ROW_KERNELS(X)                                                                         \
    X(gather_rows, 0)                                                                              \
    X(scatter_rows, 0)                                                                             \
    X(gate, 0)                                                                                     \
    X(gate_z, 0)                                                                                   \
    X(gate_all, 0)                                                                                 \
    X(gate_all_z, 0)                                                                               \
    X(share, 0)                                                                                    \
    X(share_z, 0)                                                                                  \
    X(select, 0)                                                                                   \
    X(list_count, 0)                                                                               \
    X(list, 0)                                                                                     \
    X(capacity_first, 0)                                                                           \
    X(capacity, 0)                                                                                 \
    X(counts, 0)
#define GPU_KERNELS(X) GPU_DENSE_KERNELS(X) GPU_ROW_KERNELS(X)
#define GPU_NAME(name, together) GPU_##name,
enum { GPU_KERNELS(GPU_NAME) GPU_N_KERNELS };
#undef GPU_NAME
#endif
