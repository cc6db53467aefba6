/* Small helpers for op files: elements as double, and loops over all but the last dims. */
#ifndef SP_OPS_UTIL_H
#define SP_OPS_UTIL_H
#include "ops/op.h"
#include <string.h>

/* The element at offset o, as double; f32 is widened, and rounded when it is set. */
static inline double el_get(const Tensor *t, Dtype d, int64_t o) {
    return d == DT_F32 ? (double)((const float *)t->p)[o] : ((const double *)t->p)[o];
}
static inline void el_set(const Tensor *t, Dtype d, int64_t o, double v) {
    if (d == DT_F32) ((float *)t->p)[o] = (float)v;
    else ((double *)t->p)[o] = v;
}

/* Counts through the sizes n[0..nd-1], row-major; false when done. Start with i = all zero and a
 * non-empty box. */
static inline bool box_next(int nd, const int64_t *n, int64_t *i) {
    for (int d = nd - 1; d >= 0; d--) {
        if (++i[d] < n[d]) return true;
        i[d] = 0;
    }
    return false;
}
/* The offset of position i[0..nd-1] in elements. */
static inline int64_t box_offset(const Tensor *t, int nd, const int64_t *i) {
    int64_t o = 0;
    for (int d = 0; d < nd; d++) o += i[d] * t->s[d];
    return o;
}
static inline bool box_empty(const Tensor *t) { return tensor_count(t) == 0; }
/* Global index of local position i of a letter. */
static inline int64_t global_index(const OpCall *c, char letter, int64_t i) {
    const int64_t *x = c->index[letter - 'a'];
    return x ? x[i] : i;
}
/* The documents of local row b of the batch; NULL: it is one. */
static inline const AttentionDocuments *op_documents(const OpCall *c, int64_t b) {
    const AttentionPacking *d = c->at->documents;
    return d ? &d->row[d->rows > 1 ? c->batch_from + global_index(c, 'b', b) : 0] : NULL;
}
/* The position in its document of local position t of local row b. */
static inline int64_t op_position_in(const OpCall *c, int64_t b, int64_t t) {
    int64_t pos = global_index(c, 't', t);
    const AttentionDocuments *d = op_documents(c, b);
    return d ? pos - attention_document(d, pos).from : pos;
}
/* Rows whose positions differ: as many as the call has, or one for all. */
static inline int64_t op_packings(const OpCall *c, int64_t rows) {
    return c->at->documents && c->at->documents->rows > 1 ? rows : 1;
}
/* The mask of local row b of a node of attention, with the positions of its queries and keys (NULL:
 * 0, 1, ...). */
static inline AttentionMask attention_mask(const OpCall *c, int64_t b, const int64_t *query_pos,
                                           const int64_t *key_pos) {
    const Attrs *at = c->at;
    return (AttentionMask){.query_pos = query_pos,
                           .key_pos = key_pos,
                           .chunk = at->chunk,
                           .full = at->full,
                           .window = at->window,
                           .documents = op_documents(c, b),
                           .cap = at->cap};
}
/* gamma_n = n u / (1 - n u), and the probabilistic min(gamma_n, 10 sqrt(n) u). */
static inline double gamma_n(double n, double u) { return n * u / (1 - n * u); }
/* (Higham, Accuracy and Stability of Numerical Algorithms, 3.1; Higham and Mary, A new approach to
 * probabilistic rounding error analysis, 2019.) n roundings of unit u. */
double gamma_prob(double n, double u);
/* What rounding may break where a result is too small for the relative unit u: the smallest number
 * of the dtype that has it, float32 or float64. */
static inline double least_of(double u) { return u > 1e-10 ? 0x1p-149 : 0x1p-1074; }
/* bound = g |y| + tiny and prob = p |y| + tiny for every element of the output; y is packed, as the
 * output. */
void op_bound_relative(const OpBound *b, const double *y, double g, double p, double tiny);
/* The same two for all of them. Workers write them, as these are the first to touch them. */
void op_bound_flat(const OpBound *b, double bound, double prob);
/* ---- for element-wise ops (pointwise.c) ---- */
/* Calls row(c, index of the leading dims, length of the last) for every row of the output; workers
 * share the rows. */
void op_each_row(const OpCall *c, void (*row)(const OpCall *c, const int64_t *i, int64_t n));
/* Such a row of a function of one operand, by the kernels of its two types. */
void op_vec_row(const OpCall *c, const int64_t *i, int64_t n,
                void (*f32)(int64_t n, const float *x, float *y),
                void (*f64)(int64_t n, const double *x, double *y));
/* A function of one number; `of`: constants of its call. */
typedef double OpUnary(double x, const void *of);
/* out = f(x), and out = cotangent times derivative(x), element by element, in double and rounded
 * once; workers share the rows. */
void op_unary(const OpCall *c, OpUnary *f, const void *of);
void op_unary_adjoint(const OpCall *c, OpUnary *derivative, const void *of);
/* Bound and integer map of an activation. */
void op_bound_activation(const OpBound *b);
void op_exact_activation(const OpCall *c);

/* Local position of global id `g` of a letter, or -1 if this rank does not hold it (index lists
 * ascend). */
int64_t op_local_position(const OpCall *c, char letter, int64_t g);
#endif
