/* The words that kernels are written in, so that one text is CUDA C++ for nvcc and C for the host's
 * compiler. On the host the threads of a block are coroutines of one thread; who includes this
 * there defines how (host_thread and the functions below, tests/support/emulate.c). A kernel's name
 * gets the type's suffix: GPU_REAL and GPU_SUFFIX are set for each of the two passes
 * (ops/both.cu.h). Kernels know the arguments of gpu.h and nothing else of the program. */
#ifndef SP_GPU_LANG_H
#define SP_GPU_LANG_H
#include "gpu/gpu.h"
#include <string.h>

/* A matrix of bf16 numbers in shared memory, at 32 bytes: rows of ld numbers, or, `across`, columns
 * of them; ld a multiple of 8. */
typedef struct GpuTile {
    const uint16_t *p;
    int ld;
    bool across;
} GpuTile;
enum { GPU_MMA = 16 };

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <math.h>
#include <mma.h>
#define GPU_ON static __device__ inline
#define GPU_DECLARE(name) extern "C" __global__ void name(const GpuArgs a)
#define GPU_THREAD ((int)threadIdx.x)
#define GPU_BLOCK ((int64_t)blockIdx.x)
#define GPU_WIDTH ((int)blockDim.x)
#define GPU_BLOCKS ((int64_t)gridDim.x)
#define GPU_BARRIER() __syncthreads()
#define GPU_SHARED(type, name, n) __shared__ __align__(32) type name[n]
#define GPU_SHUFFLE(v, mask) __shfl_xor_sync(0xffffffffu, v, mask)
/* c += a b, of a warp, whose threads all call it: c is GPU_MMA x GPU_MMA in rows of ldc (a multiple
 * of 4), a has `depth` columns (a multiple of GPU_MMA). Tensor cores; sums are in float32. What
 * other threads wrote and will read needs a barrier before and behind it. */
template <class A, class B>
static __device__ inline void gpu_mma_as(float *c, int ldc, GpuTile a, GpuTile b, int depth) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __nv_bfloat16, A> x;
    fragment<matrix_b, 16, 16, 16, __nv_bfloat16, B> y;
    fragment<accumulator, 16, 16, 16, float> sum;
    load_matrix_sync(sum, c, ldc, mem_row_major);
    for (int k = 0; k < depth; k += GPU_MMA) {
        load_matrix_sync(x, (const __nv_bfloat16 *)a.p + (a.across ? k * a.ld : k), a.ld);
        load_matrix_sync(y, (const __nv_bfloat16 *)b.p + (b.across ? k : k * b.ld), b.ld);
        mma_sync(sum, x, y, sum);
    }
    store_matrix_sync(c, sum, ldc, mem_row_major);
}
static __device__ inline void gpu_mma(float *c, int ldc, GpuTile a, GpuTile b, int depth) {
    using namespace nvcuda::wmma;
    if (a.across && b.across) gpu_mma_as<col_major, col_major>(c, ldc, a, b, depth);
    else if (a.across) gpu_mma_as<col_major, row_major>(c, ldc, a, b, depth);
    else if (b.across) gpu_mma_as<row_major, col_major>(c, ldc, a, b, depth);
    else gpu_mma_as<row_major, row_major>(c, ldc, a, b, depth);
}
#else
#include <math.h>
#ifdef __cplusplus
extern "C" {
#endif
/* The same; the threads of a warp share the elements. */
void gpu_mma(float *c, int ldc, GpuTile a, GpuTile b, int depth);
/* The thread, its block, how many there are of each. */
int gpu_thread(void);
int64_t gpu_block(void);
int gpu_width(void);
int64_t gpu_blocks(void);
/* Waits for all threads of the block. */
void gpu_barrier(void);
/* The block's memory for the n-th array that the kernel asks for; holds NaN when a block begins. */
void *gpu_shared(size_t bytes);
/* What the thread of the warp whose number differs by `mask` gives; all of the warp call it. */
double gpu_shuffle(double v, int mask);
#ifdef __cplusplus
}
#endif
#define GPU_ON static inline
#define GPU_DECLARE(name) void name(const GpuArgs a)
#define GPU_THREAD gpu_thread()
#define GPU_BLOCK gpu_block()
#define GPU_WIDTH gpu_width()
#define GPU_BLOCKS gpu_blocks()
#define GPU_BARRIER() gpu_barrier()
#define GPU_SHARED(type, name, n) type *name = (type *)gpu_shared(sizeof(type) * (n))
#define GPU_SHUFFLE(v, mask) gpu_shuffle(v, mask)
#endif
#define GPU_JOIN_(a, b) a##b
#define GPU_JOIN(a, b) GPU_JOIN_(a, b)
/* A kernel, and a function of kernels, for the type of this pass. */
#define GPU_KERNEL(name) GPU_DECLARE(GPU_JOIN(gpu_##name, GPU_SUFFIX))
#define GPU_FN(name) GPU_JOIN(gpu_##name, GPU_SUFFIX)

/* ---- bf16 ---- */
/* The nearest, ties to even, as kernel/bf16.h; and back. */
GPU_ON uint16_t gpu_narrow(float x) {
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    b = (b & 0x7fffffff) > 0x7f800000 ? b | 0x400000 : b + 0x7fff + (b >> 16 & 1);
    return (uint16_t)(b >> 16);
}
GPU_ON float gpu_wide(uint16_t x) {
    uint32_t b = (uint32_t)x << 16;
    float f;
    memcpy(&f, &b, sizeof f);
    return f;
}

/* ---- where things stand ---- */
/* The offset of position e of the dims lo .. hi-1 of the space, row-major. */
GPU_ON int64_t gpu_offset(const GpuArgs *a, const GpuTensor *t, int lo, int hi, int64_t e) {
    int64_t o = 0;
    for (int d = hi - 1; d >= lo; d--) {
        o += e % a->n[d] * t->s[d];
        e /= a->n[d];
    }
    return o;
}
/* The index along dim d of position e of the whole space. */
GPU_ON int64_t gpu_index(const GpuArgs *a, int d, int64_t e) {
    for (int k = a->nd - 1; k > d; k--) e /= a->n[k];
    return e % a->n[d];
}
/* Positions of the dims lo .. hi-1. */
GPU_ON int64_t gpu_count(const GpuArgs *a, int lo, int hi) {
    int64_t c = 1;
    for (int d = lo; d < hi; d++) c *= a->n[d];
    return c;
}
/* The position of id in n ascending indices; without them its own; -1: it is none of 0 .. n-1. */
GPU_ON int64_t gpu_find(const int64_t *index, int64_t n, int64_t id) {
    int64_t lo = 0, hi = n - 1;
    if (!index) return id >= 0 && id < n ? id : -1;
    while (lo <= hi) {
        int64_t mid = (lo + hi) / 2;
        if (index[mid] == id) return mid;
        if (index[mid] < id) lo = mid + 1;
        else hi = mid - 1;
    }
    return -1;
}
/* Each thread takes every so many-th position of the space. */
#define GPU_EACH(e, total)                                                                         \
    for (int64_t e = GPU_BLOCK * GPU_WIDTH + GPU_THREAD, e##_n = (total); e < e##_n;               \
         e += GPU_BLOCKS * GPU_WIDTH)
/* Each block takes every so many-th row. */
#define GPU_EACH_ROW(r, total)                                                                     \
    for (int64_t r = GPU_BLOCK, r##_n = (total); r < r##_n; r += GPU_BLOCKS)
/* Element o of operand i, of the output, widened; of an operand of integers. */
#define GPU_NUMBER(x, o)                                                                           \
    ((x).half ? (double)gpu_wide(((const uint16_t *)(x).p)[o])                                     \
              : (double)((const GPU_REAL *)(x).p)[o])
#define GPU_X(i, o) GPU_NUMBER(a.x[i], o)
#define GPU_Y(o) (((GPU_REAL *)a.out.p)[o])
#define GPU_INT(i, o) (((const int64_t *)a.x[i].p)[o])
/* A kernel of one element of the output from one of each operand: AT(i) is that of operand i. */
#define AT(i) GPU_X(i, gpu_offset(&a, &a.x[i], 0, a.nd, e))
#define GPU_MAP(name, value)                                                                       \
    GPU_KERNEL(name) {                                                                             \
        GPU_EACH(e, gpu_count(&a, 0, a.nd))                                                        \
        GPU_Y(gpu_offset(&a, &a.out, 0, a.nd, e)) = (GPU_REAL)(value);                             \
    }
/* The same with x, the operand, at hand. */
#define GPU_MAP_X(name, value)                                                                     \
    GPU_KERNEL(name) {                                                                             \
        GPU_EACH(e, gpu_count(&a, 0, a.nd)) {                                                      \
            double x = AT(0);                                                                      \
            GPU_Y(gpu_offset(&a, &a.out, 0, a.nd, e)) = (GPU_REAL)(value);                         \
        }                                                                                          \
    }

/* ---- one number of all threads of a block ---- */
GPU_ON double gpu_join(double x, double y, bool max) {
    return max ? (x > y || x != x ? x : y) : x + y;
}
/* The sum of v over the block's threads, or the largest; `part` is shared, one for each warp. */
GPU_ON double gpu_all(double v, bool max, double *part) {
    for (int m = GPU_WARP / 2; m; m /= 2) v = gpu_join(v, GPU_SHUFFLE(v, m), max);
    if (GPU_THREAD % GPU_WARP == 0) part[GPU_THREAD / GPU_WARP] = v;
    GPU_BARRIER();
    v = part[0];
    for (int w = 1; w < GPU_WIDTH / GPU_WARP; w++) v = gpu_join(v, part[w], max);
    GPU_BARRIER();
    return v;
}
#define GPU_PARTS(name) GPU_SHARED(double, name, 32)
#endif
