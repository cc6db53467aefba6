/* A local tensor as kernels see it: sizes, strides (in elements), data. It owns nothing. */
#ifndef SP_KERNEL_TENSOR_H
#define SP_KERNEL_TENSOR_H
#include "layout/layout.h"

typedef enum { DT_F32, DT_F64, DT_I64, DT_BF16, DT_F16 } Dtype;

typedef struct Tensor {
    int nd;
    int64_t n[LAYOUT_MAX_DIMS]; /* sizes; a size of 0 is legal everywhere */
    int64_t s[LAYOUT_MAX_DIMS]; /* strides in elements */
    void *p;
} Tensor;

/* Those that a plan may ask for, by their words. */
#define PLAN_DTYPES(X) X(f64, F64) X(f32, F32) X(bf16, BF16)
#define DTYPE_TEXT(word, name) [DT_##name] = #word,
/* The word that plans and records have for it. */
static inline const char *dtype_text(Dtype t) {
    static const char *const text[] = {PLAN_DTYPES(DTYPE_TEXT)[DT_I64] = "i64", [DT_F16] = "f16"};
    return text[t];
}
/* Bytes of an element. */
static inline int64_t dtype_size(Dtype t) {
    static const int64_t size[] = {4, 8, 8, 2, 2};
    return size[t];
}
/* The dtype in which a run holds numbers of this one: bf16 lies in float32 (kernel/bf16.h). */
static inline Dtype dtype_held(Dtype t) { return t == DT_BF16 ? DT_F32 : t; }
/* Elements: the product of the sizes, 1 of a scalar. */
static inline int64_t tensor_count(const Tensor *t) {
    int64_t c = 1;
    for (int i = 0; i < t->nd; i++) c *= t->n[i];
    return c;
}
/* Sets row-major contiguous strides, in elements, for the sizes already set. */
static inline void tensor_pack(Tensor *t) {
    int64_t s = 1;
    for (int i = t->nd - 1; i >= 0; i--) {
        t->s[i] = s;
        s *= t->n[i];
    }
}
/* Do its elements lie row-major and contiguous? A dim of size 1 may have any stride. */
static inline bool tensor_is_packed(const Tensor *t) {
    int64_t s = 1;
    for (int i = t->nd - 1; i >= 0; i--) {
        if (t->n[i] > 1 && t->s[i] != s) return false;
        s *= t->n[i];
    }
    return true;
}
#endif
