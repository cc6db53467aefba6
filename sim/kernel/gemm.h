/* Matrix product with a fixed order of summation .
 * C[i,j] = sum over k of A[i,k] * B[j,k], for any strides. The order of the sum over k depends on K
 * alone: k ascending in blocks of GEMM_KB, each block summed by fma from zero, blocks added in
 * order. So slicing M or N, transposing an operand, threads and the instruction set change no bit;
 * only a split of K does. */
#ifndef SP_KERNEL_GEMM_H
#define SP_KERNEL_GEMM_H
#include <stdint.h>
#include <stdbool.h>

enum { GEMM_KB = 384 };

/* Where element (i,k) lies: p[row[i] + col[k]]; a NULL table means i*rs, k*cs. Offsets in elements.
 */
typedef struct {
    const void *p;
    const int64_t *row, *col;
    int64_t rs, cs;
    bool floats; /* an operand of gemm_f64 whose elements are f32: widened when packed */
} GemmView;
/* Element (i,k) at p[i*rs + k*cs]. */
static inline GemmView gemm_strided(const void *p, int64_t rs, int64_t cs) {
    return (GemmView){.p = p, .rs = rs, .cs = cs};
}

/* C (written, not accumulated) of M x N from A of M x K and B of N x K; elements f32 or f64. M, N
 * or K may be 0: K = 0 gives zeros. C overlaps neither. Runs on the calling thread; scratch is the
 * thread's own. */
void gemm_f32(int64_t M, int64_t N, int64_t K, const GemmView *A, const GemmView *B,
              const GemmView *C);
void gemm_f64(int64_t M, int64_t N, int64_t K, const GemmView *A, const GemmView *B,
              const GemmView *C);

/* Bytes of scratch, at most, that a thread comes to hold for such a product (f64: of float64), or
 * for any part of it. */
int64_t gemm_scratch(int64_t M, int64_t N, int64_t K, bool f64);

/* Instruction set in use: "avx512", "avx2", "generic". */
const char *kernel_isa(void);
/* Chooses one by name ("auto", "avx512", "avx2", "generic"); false if the processor has not got it.
 * Call before any work. */
bool kernel_select(const char *isa);
#endif
