/* Causal attention of one (batch, kv head): a fixed order of summation over keys in absolute order,
 * so that tiles, zigzag order of the queries and the number of local heads change no bit. */
#ifndef SP_KERNEL_ATTENTION_H
#define SP_KERNEL_ATTENTION_H
#include <stdint.h>
/* q, o: T rows of d elements at q + t*q_t; k, v: S rows at k + s*k_s, v + s*v_s (d contiguous).
 * Query t may see key s iff key_pos[s] <= query_pos[t] (global positions; NULL: 0,1,...). Keys are
 * whole and ascending. scale is inside the softmax. A query that sees no key gives zeros. Runs on
 * the calling thread; scratch is malloc'ed inside. */
#define ATTN_DECL(R, T)                                                                            \
    void attention_##R(int64_t nt, int64_t ns, int64_t d, const T *q, int64_t q_t, const T *k,     \
                       int64_t k_s, const T *v, int64_t v_s, T *o, int64_t o_t,                    \
                       const int64_t *query_pos, const int64_t *key_pos, double scale)
ATTN_DECL(f32, float);
ATTN_DECL(f64, double);
/* Backward of the same: from do (rows at d_o + t*do_t) writes dq, dk, dv (any may be NULL); same
 * strides as q, k, v. `accumulate` adds to dk and dv instead of writing (several query heads share
 * one kv head). Probabilities are recomputed. */
#define ATTN_BWD_DECL(R, T)                                                                        \
    void attention_bwd_##R(int64_t nt, int64_t ns, int64_t d, const T *q, int64_t q_t, const T *k, \
                           int64_t k_s, const T *v, int64_t v_s, const T *d_o, int64_t do_t,       \
                           T *dq, int64_t dq_t, T *dk, int64_t dk_s, T *dv, int64_t dv_s,          \
                           const int64_t *query_pos, const int64_t *key_pos, double scale,         \
                           int accumulate)
ATTN_BWD_DECL(f32, float);
ATTN_BWD_DECL(f64, double);
#endif
