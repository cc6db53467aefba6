/* Integer adjoints of attention. For sim/ops only. */
#ifndef SP_OPS_EXACT_H
#define SP_OPS_EXACT_H
#include "ops/op.h"

/* Rows of a matrix whose elements are contiguous, `step` elements from one to the next. */
typedef struct ExactRows {
    void *p;
    int64_t step;
} ExactRows;
/* One head's queries [nt, d], keys [ns, d], values [ns, dv], all of them residues. */
typedef struct ExactAttention {
    Dtype dtype;
    int64_t nt, ns, d, dv;
    ExactRows q, k, v, cot; /* cotangents [nt, dv], in parts [nt, dv + 1]: the last is of the lse */
    ExactRows fout; /* in parts, as the cotangents: the result; p NULL: it is not in parts */
    ExactRows out;  /* of the operand: written, or with `more` added to */
    int operand;    /* 0: queries, 1: keys, 2: values */
    bool more;
    const AttentionMask *mask;
    double modulus;
} ExactAttention;
/* What softmax(q k) v hands back with (q k mod p) in place of the softmax's exp, in integers modulo
 * p; which query sees which key is as in attention. */
void exact_attention_adjoint(const ExactAttention *a);
#endif
