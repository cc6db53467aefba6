/* Contractions over rows; op_einsum calls them where its rule has letters in brackets. */
#ifndef SP_OPS_EINSUM_ROWS_H
#define SP_OPS_EINSUM_ROWS_H
#include "ops/op.h"

/* out = contraction of the operands by c->rule, which lists letters; rows follow c->ids.
 * `dense` is the kernel for the same without brackets. */
void einsum_rows(const OpCall *c, void (*dense)(const OpCall *c));
/* Multiplications and additions: of rows that exist. */
double einsum_rows_flops(const OpCall *c);
/* The most terms that one element of the output sums: rows that meet in it times the letters that
 * are summed within a row. At least 1. */
double einsum_rows_terms(const OpCall *c);
#endif
