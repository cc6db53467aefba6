/* Kernels for x86-64 with AVX2 and FMA: 6 x 16 (f32) and 6 x 8 (f64) register tiles. Only isa.c may
 * choose them, after asking the processor. */
#include "kernel/isa.h"

#if defined(__x86_64__)
#ifdef __clang__
#include <immintrin.h>
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#include <immintrin.h>
#endif

#define ISA avx2
static const int32_t first_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

#define BITS 256

#define IS_F64 1
#define V __m256d
#define VL 4
#define MR 6
#define NV 2
#define TYPE pd
#include "kernel/x86.inc"
#define V_LOADN(p, n)                                                                              \
    _mm256_maskload_pd((p), _mm256_loadu_si256((const __m256i_u *)(first_lanes + 8 - 2 * (n))))
#define V_WIDEN(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define V_WIDENN(p, n)                                                                             \
    _mm256_cvtps_pd(                                                                               \
        _mm_maskload_ps((p), _mm_loadu_si128((const __m128i_u *)(first_lanes + 8 - (n)))))
#define V_SIGNSEL(x, plus, minus) _mm256_blendv_pd((plus), (minus), (x))
#define V_POW2(t) pow2_f64_avx2(t)
#define V_TRANSPOSE(v) transpose_f64_avx2(v)
static inline __m256d pow2_f64_avx2(__m256d t) {
    __m256i k = _mm256_add_epi64(_mm256_castpd_si256(t), _mm256_set1_epi64x(1023));
    return _mm256_castsi256_pd(_mm256_slli_epi64(k, 52));
}
static inline __attribute__((always_inline)) void transpose_f64_avx2(__m256d v[4]) {
    __m256d a0 = _mm256_unpacklo_pd(v[0], v[1]), a1 = _mm256_unpackhi_pd(v[0], v[1]);
    __m256d a2 = _mm256_unpacklo_pd(v[2], v[3]), a3 = _mm256_unpackhi_pd(v[2], v[3]);
    v[0] = _mm256_permute2f128_pd(a0, a2, 0x20);
    v[1] = _mm256_permute2f128_pd(a1, a3, 0x20);
    v[2] = _mm256_permute2f128_pd(a0, a2, 0x31);
    v[3] = _mm256_permute2f128_pd(a1, a3, 0x31);
}
#include "kernel/ops.inc"
#undef TYPE

#define IS_F64 0
#define V __m256
#define VL 8
#define MR 6
#define NV 2
#define TYPE ps
#include "kernel/x86.inc"
#define V_LOADN(p, n)                                                                              \
    _mm256_maskload_ps((p), _mm256_loadu_si256((const __m256i_u *)(first_lanes + 8 - (n))))
#define V_SIGNSEL(x, plus, minus) _mm256_blendv_ps((plus), (minus), (x))
#define V_POW2(t) pow2_f32_avx2(t)
#define V_TRANSPOSE(v) transpose_f32_avx2(v)
static inline __m256 pow2_f32_avx2(__m256 t) {
    __m256i k = _mm256_add_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(k, 23));
}
/* 8 x 8 in place: 4 x 4 inside each half, then the halves. */
static inline __attribute__((always_inline)) void transpose_f32_avx2(__m256 v[8]) {
    __m256 a[8];
    for (int i = 0; i < 8; i += 4) {
        __m256d lo0 = _mm256_castps_pd(_mm256_unpacklo_ps(v[i], v[i + 1]));
        __m256d hi0 = _mm256_castps_pd(_mm256_unpackhi_ps(v[i], v[i + 1]));
        __m256d lo1 = _mm256_castps_pd(_mm256_unpacklo_ps(v[i + 2], v[i + 3]));
        __m256d hi1 = _mm256_castps_pd(_mm256_unpackhi_ps(v[i + 2], v[i + 3]));
        a[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(lo0, lo1));
        a[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(lo0, lo1));
        a[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(hi0, hi1));
        a[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(hi0, hi1));
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(a[i], a[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(a[i], a[i + 4], 0x31);
    }
}
#include "kernel/ops.inc"
#undef TYPE

const KernelIsa kernel_isa_avx2 = {"avx2", &ops_f32_avx2, &ops_f64_avx2};
#ifdef __clang__
#pragma clang attribute pop
#endif
#else
typedef int kernel_no_avx2; /* a translation unit may not be empty */
#endif
