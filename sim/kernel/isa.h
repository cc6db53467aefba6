/* Private to sim/kernel: the table of routines that one instruction set provides, and scratch
 * memory per thread. Everything in such a table gives the same bits as its namesakes in the others;
 * only speed differs. */
#ifndef SP_KERNEL_ISA_H
#define SP_KERNEL_ISA_H
#include "kernel/attention.h"
#include "kernel/columns.h"
#include "kernel/errors.h"
#include <stddef.h>
#include <stdint.h>

/* pack: out[k*stride + i] = p[row[i] + col[k]] for i < r, k < kc; entries r <= i < stride are any
 * number. `col_seq` says that col[k] = col[0] + k. May write up to KERNEL_SLACK elements past the
 * end of out, so pack panels in ascending order. pack_floats: the same from float32. tile: c[i][j]
 * = sum over k of a[k*m + i] * b[k*nr
 * + j], i < m <= mr, j < nr: one fma chain from zero; with `add` that sum is added to c. */
#define KERNEL_OPS_DECL(R, T)                                                                      \
    typedef struct {                                                                               \
        int mr, nr;                                                                                \
        void (*pack)(int64_t r, int64_t stride, int64_t kc, const T *p, const int64_t *row,        \
                     const int64_t *col, int col_seq, T *out);                                     \
        void (*pack_floats)(int64_t r, int64_t stride, int64_t kc, const float *p,                 \
                            const int64_t *row, const int64_t *col, int col_seq, T *out);          \
        void (*tile)(int m, int64_t kc, const T *a, const T *b, T *const *c, int add);             \
        void (*exp)(int64_t n, const T *x, T *y);                                                  \
        T (*sum)(int64_t n, const T *x);                                                           \
        T (*dot)(int64_t n, const T *x, const T *y);                                               \
        T (*max)(int64_t n, const T *x);                                                           \
        void (*silu)(int64_t n, const T *x, T *y);                                                 \
        void (*silu_mul)(int64_t n, const T *g, const T *u, T *y);                                 \
        void (*sigmoid)(int64_t n, const T *x, T *y);                                              \
        void (*gelu)(int64_t n, const T *x, T *y);                                                 \
        void (*rmsnorm)(int64_t n, const T *x, const T *w, T eps, T *y);                           \
        void (*add)(int64_t n, const T *x, const T *z, T *y);                                      \
        void (*scale)(int64_t n, const T *x, T s, T *y); /* y = x * s */                           \
        /* x = exp(scale * x - max(scale * x)); returns the sum over 16 lanes. */                  \
        T (*expsum)(int64_t n, T *x, T scale);                                                     \
        /* The same of nr columns: x[n][nr], column i between the rows run[i], zero outside. Sums  \
         * over the lanes row mod 16 to l, of no rows 1; the largest scale * x to top. */          \
        void (*expcols)(int64_t n, T *x, const AttentionRun *run, T scale, T *l, T *top);          \
        /* p = p / l; dp = p * (dp - dot(p, dp)) * scale: one row of the softmax's gradient. */    \
        void (*softgrad)(int64_t n, T *p, T *dp, T l, T scale);                                    \
        /* see errors.h */                                                                         \
        bool (*within)(int64_t n, const T *got, const double *want, const double *bound,           \
                       const double *prob, ErrorTop *top);                                         \
        bool (*factored)(int64_t n, const T *got, const double *want, int64_t at,                  \
                         const ErrorFactors *f, ErrorTop *top);                                    \
        /* see columns.h */                                                                        \
        void (*columns_add)(int64_t n, int rows, const T *const *x, const double *weight,          \
                            const ColumnSums *to);                                                 \
        void (*columns_dot)(int64_t n, const T *x, const double *const column[2], double out[3]);  \
    } KernelOps_##R
KERNEL_OPS_DECL(f32, float);
KERNEL_OPS_DECL(f64, double);

enum { KERNEL_SLACK = 64, KERNEL_MAX_MR = 16, KERNEL_MAX_NR = 64 };

typedef struct {
    const char *name;
    const KernelOps_f32 *f32;
    const KernelOps_f64 *f64;
} KernelIsa;

extern const KernelIsa kernel_isa_generic;
#if defined(__x86_64__)
extern const KernelIsa kernel_isa_avx2, kernel_isa_avx512;
#endif

/* The chosen table (the first call chooses, see kernel_select). */
const KernelIsa *kernel_current(void);

/* At least n bytes, aligned to 64, not zeroed, kept by this thread for its next call with the same
 * slot. Never NULL. */
typedef enum { SCRATCH_GEMM, SCRATCH_ATTENTION, SCRATCH_ROWS, SCRATCH_SLOTS } ScratchSlot;
void *kernel_scratch(ScratchSlot slot, size_t n);
/* What a slot takes for n bytes. */
size_t kernel_scratch_size(size_t n);
/* Frees this thread's scratch; a thread that ran kernels calls it before it ends (pool threads and
 * pool_free do). */
void kernel_thread_cleanup(void);
#endif
