/* The matrix product C[i,j] = sum over k of A[i,k] * B[j,k] with the order of summation that gemm.h
 * promises. It refuses to let blocking, threads or the instruction set into that order: only K and
 * GEMM_KB decide. It runs on one thread. */
#include "kernel/gemm.h"
#include "kernel/isa.h"
#include <string.h>

/* A table that is an arithmetic progression becomes a stride: the fast paths then apply. */
static int64_t simplify(const int64_t **table, int64_t *stride, int64_t n) {
    const int64_t *t = *table;
    if (!t || n < 1) return 0;
    int64_t s = n > 1 ? t[1] - t[0] : 0;
    for (int64_t i = 2; i < n; i++)
        if (t[i] - t[i - 1] != s) return 0;
    *table = NULL;
    *stride = s;
    return t[0];
}

static int64_t offset_of(const int64_t *table, int64_t stride, int64_t i) {
    return table ? table[i] : i * stride;
}

/* Offsets of entries first..first+n-1; true if they are consecutive. */
static int offsets(const int64_t *table, int64_t stride, int64_t first, int64_t n, int64_t *out) {
    for (int64_t i = 0; i < n; i++) out[i] = offset_of(table, stride, first + i);
    int seq = 1;
    for (int64_t i = 1; i < n; i++) seq &= out[i] == out[0] + i;
    return seq;
}

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

#define BOTH "kernel/gemm.inc"
#include "kernel/both.inc"
int64_t gemm_scratch(int64_t M, int64_t N, int64_t K, bool f64) {
    if (M <= 0 || N <= 0 || K <= 0) return 0;
    int64_t (*packed)(int64_t M, int64_t N, int64_t K) = f64 ? packed_f64 : packed_f32;
    int64_t n = packed(M, N, K), swapped = packed(N, M, K);
    return (int64_t)kernel_scratch_size((size_t)(n > swapped ? n : swapped));
}
