/* Contractions over rows; op_einsum calls them where its rule has letters in brackets. */
#ifndef SP_OPS_EINSUM_ROWS_H
#define SP_OPS_EINSUM_ROWS_H
#include "ops/op.h"

/* out = contraction of the operands by c->rule, which lists letters; rows follow c->ids.
 * `dense` is the kernel for the same without brackets. */
void einsum_rows(const OpCall *c, void (*dense)(const OpCall *c));
/* Multiplications and additions: of rows that exist. */
double einsum_rows_flops(const OpCall *c);
/* The bound of the contraction `c`, of f64 operands, packed: of b->call, or of its adjoint. */
void einsum_rows_bound(const OpBound *b, const OpCall *c, void (*dense)(const OpCall *c));
#endif
