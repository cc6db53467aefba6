/* Contractions over rows; op_einsum calls them where its rule has letters in brackets. */
#ifndef SP_OPS_EINSUM_ROWS_H
#define SP_OPS_EINSUM_ROWS_H
#include "ops/op.h"

/* Rows beside what they were gathered from or are added to: one dim of rows, then those of the
 * dense tensor that no list has. */
typedef struct RowMove {
    const OpCall *c;
    const char *letters; /* of the dense tensor, nl */
    int nl;
    const Tensor *dense, *rows; /* rows: packed */
} RowMove;
/* Offset in the dense tensor of a row's first element; -1: this rank has it not. */
int64_t row_move_offset(const RowMove *m, int64_t row);
/* Strides of the dense tensor along a row's own dims; how many. */
int row_move_strides(const RowMove *m, int64_t *s);

/* Who touches numbers: the host, or a GPU. */
typedef struct RowHands {
    void (*dense)(void *arg, const OpCall *c); /* a contraction without brackets */
    void *(*take)(void *arg, int64_t n);       /* n bytes, until they are given back */
    void (*give)(void *arg, void *p);          /* NULL is allowed */
    void (*fill)(void *arg, const Tensor *t, Dtype dt, double v); /* t is packed */
    void (*gather)(void *arg, const RowMove *m);                  /* 0 where the rank has none */
    void (*scatter)(void *arg, const RowMove *m); /* the sum over rows, in their order */
    void *arg;
} RowHands;
/* out = contraction of the operands by c->rule, which lists letters; rows follow c->ids, which the
 * host can read. */
void einsum_rows_by(const OpCall *c, const RowHands *by);
/* The same on the host; `dense` is the kernel for the same without brackets. */
void einsum_rows(const OpCall *c, void (*dense)(const OpCall *c));
/* Bytes that the host takes for what it gathers of such a call, and for rows that it will add up;
 * asks for sizes only. */
int64_t einsum_rows_room(const OpCall *c);
/* Multiplications and additions: of rows that exist. */
double einsum_rows_flops(const OpCall *c);
/* The most terms that one element of the output sums: rows that meet in it times the letters that
 * are summed within a row. At least 1. */
double einsum_rows_terms(const OpCall *c);
#endif
