/* Causal attention of one (batch, kv head): a fixed order of summation over keys in absolute order,
 * so that tiles, zigzag order of the queries and the number of local heads change no bit. */
#ifndef SP_KERNEL_ATTENTION_H
#define SP_KERNEL_ATTENTION_H
#include <stdbool.h>
#include <stdint.h>
/* A run [from, lim) of positions or keys. */
typedef struct {
    int64_t from, lim;
} AttentionRun;
/* Documents that a row packs, one behind the other from position 0 on. */
typedef struct {
    int n;
    const AttentionRun *run;
} AttentionDocuments;
/* Those of each row of a batch: of every row the same (rows 1), or of row b row[b]. */
typedef struct {
    int rows;
    const AttentionDocuments *row;
} AttentionPacking;
/* The positions of the document in which `pos` lies (beyond the last: of the last). */
AttentionRun attention_document(const AttentionDocuments *d, int64_t pos);
/* Which keys a query sees: key s iff key_pos[s] <= query_pos[t] (global positions; NULL: 0,1,...)
 * and, with documents, both lie in the same one, with a chunk, both lie in the same chunk of that
 * many positions (0: no chunks) counted from the row's or the document's first, with a window, it
 * is one of that many positions up to the query's own (0: of all). Keys ascend, so a query sees a
 * run of them. A score x, times the scale, is cap tanh(x / cap) where there is a cap (Gemma 2,
 * arXiv 2408.00118). */
typedef struct {
    const int64_t *query_pos, *key_pos;
    int64_t chunk;
    bool full; /* every query sees every key of its document */
    int64_t window;
    const AttentionDocuments *documents; /* NULL: the row is one */
    double cap;                          /* 0: scores as they are */
} AttentionMask;
/* The run of keys of ns that query t sees. */
AttentionRun attention_run(const AttentionMask *m, int64_t t, int64_t ns);
/* Pairs of query and key of T queries and S keys that see each other. Nothing is walked where both
 * stand at 0, 1, ..: a sequence may be longer than anything that could be run. */
double attention_pairs(const AttentionMask *m, int64_t T, int64_t S);
/* Bytes that a thread holds for such a call, at most, of elements of `size` bytes; `wide` is the
 * larger of d and dv. They stay until the thread ends (kernel_scratch). */
int64_t attention_scratch(int64_t nt, int64_t ns, int64_t wide, bool backward, int64_t size);
/* q: nt rows of d elements at q + t*q_t; k: ns rows of d at k + s*k_s; v, o: rows of dv elements
 * (the elements of a row are contiguous). scale is inside the softmax. A query that sees no key
 * gives zeros. Runs on the calling thread; scratch is malloc'ed inside. */
#define ATTN_DECL(R, T)                                                                            \
    void attention_##R(int64_t nt, int64_t ns, int64_t d, int64_t dv, const T *q, int64_t q_t,     \
                       const T *k, int64_t k_s, const T *v, int64_t v_s, T *o, int64_t o_t,        \
                       const AttentionMask *mask, double scale)
ATTN_DECL(f32, float);
ATTN_DECL(f64, double);
/* Backward of the same: from do (rows at d_o + t*do_t) writes gq, gk, gv (any may be NULL); same
 * strides as q, k, v. `accumulate` adds to gk and gv instead of writing (several query heads share
 * one kv head). Probabilities are recomputed. */
#define ATTN_BWD_DECL(R, T)                                                                        \
    void attention_bwd_##R(int64_t nt, int64_t ns, int64_t d, int64_t dv, const T *q, int64_t q_t, \
                           const T *k, int64_t k_s, const T *v, int64_t v_s, const T *d_o,         \
                           int64_t do_t, T *gq, int64_t gq_t, T *gk, int64_t gk_s, T *gv,          \
                           int64_t gv_s, const AttentionMask *mask, double scale, int accumulate)
ATTN_BWD_DECL(f32, float);
ATTN_BWD_DECL(f64, double);
/* Attention over some of the keys, to be merged with that over others (lse: the log of the sum of
 * exp(scale q.k)). Rows of `o` have dv + 1 elements: the result normalised over these keys, and
 * their lse; of a query that sees none of them zeros and ATTENTION_NONE, which is no infinity and
 * weighs nothing. Otherwise as attention_. */
#define ATTENTION_NONE (-0x1p100) /* the same in both types */
#define ATTN_PART_DECL(R, T)                                                                       \
    void attention_part_##R(int64_t nt, int64_t ns, int64_t d, int64_t dv, const T *q,             \
                            int64_t q_t, const T *k, int64_t k_s, const T *v, int64_t v_s, T *o,   \
                            int64_t o_t, const AttentionMask *mask, double scale)
ATTN_PART_DECL(f32, float);
ATTN_PART_DECL(f64, double);
/* Its backward: rows of d_o, and of `o` (at o + t*o_t: a result and its lse, of these keys or of
 * all), have dv + 1 elements. Probabilities are exp(scale q.k - lse): with the result over all keys
 * that is the whole's gradient through these keys (FlashAttention's backward, arXiv 2205.14135).
 * Otherwise as attention_bwd_. */
#define ATTN_PART_BWD_DECL(R, T)                                                                   \
    void attention_part_bwd_##R(int64_t nt, int64_t ns, int64_t d, int64_t dv, const T *q,         \
                                int64_t q_t, const T *k, int64_t k_s, const T *v, int64_t v_s,     \
                                const T *d_o, int64_t do_t, const T *o, int64_t o_t, T *gq,        \
                                int64_t gq_t, T *gk, int64_t gk_s, T *gv, int64_t gv_s,            \
                                const AttentionMask *mask, double scale, int accumulate)
ATTN_PART_BWD_DECL(f32, float);
ATTN_PART_BWD_DECL(f64, double);
#endif
