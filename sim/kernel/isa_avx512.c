/* Kernels for x86-64 with AVX-512 (F, DQ, VL, BW): 12 x 32 (f32) and 12 x 16 (f64) register tiles.
 * Only isa.c may choose them, after asking the processor. */
#include "kernel/isa.h"

#if defined(__x86_64__)
#ifdef __clang__
#include <immintrin.h>
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,prefer-vector-width=512")
#include <immintrin.h>
#endif

#define ISA avx512

#define BITS 512
#define COLUMN_PART 8

#define IS_F64 1
#define V __m512d
#define VL 8
#define MR 12
#define NV 2
#define TYPE pd
#include "kernel/x86.inc"
#define V_LOADN(p, n) _mm512_maskz_loadu_pd((__mmask8)((1u << (n)) - 1), (p))
#define V_WIDEN(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define V_WIDENN(p, n) _mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)((1u << (n)) - 1), (p)))
#define V_SIGNSEL(x, plus, minus)                                                                  \
    _mm512_mask_blend_pd(_mm512_movepi64_mask(_mm512_castpd_si512(x)), (plus), (minus))
#define V_POW2(t) pow2_f64_avx512(t)
#define V_TRANSPOSE(v) transpose_f64_avx512(v)
static inline __m512d pow2_f64_avx512(__m512d t) {
    __m512i k = _mm512_add_epi64(_mm512_castpd_si512(t), _mm512_set1_epi64(1023));
    return _mm512_castsi512_pd(_mm512_slli_epi64(k, 52));
}
/* 8 x 8 in place: pairs, then 128-bit quarters twice. */
static inline __attribute__((always_inline)) void transpose_f64_avx512(__m512d v[8]) {
    __m512d a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm512_unpacklo_pd(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_pd(v[i], v[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        b[i] = _mm512_shuffle_f64x2(a[i], a[i + 2], 0x88);
        b[i + 2] = _mm512_shuffle_f64x2(a[i], a[i + 2], 0xdd);
        b[i + 4] = _mm512_shuffle_f64x2(a[i + 4], a[i + 6], 0x88);
        b[i + 6] = _mm512_shuffle_f64x2(a[i + 4], a[i + 6], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_f64x2(b[i], b[i + 4], 0x88);
        v[i + 4] = _mm512_shuffle_f64x2(b[i], b[i + 4], 0xdd);
    }
}
#include "kernel/ops.inc"
#undef TYPE

#define IS_F64 0
#define V __m512
#define VL 16
#define MR 12
#define NV 2
#define TYPE ps
#include "kernel/x86.inc"
#define V_LOADN(p, n) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), (p))
#define V_SIGNSEL(x, plus, minus)                                                                  \
    _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), (plus), (minus))
#define V_POW2(t) pow2_f32_avx512(t)
#define V_TRANSPOSE(v) transpose_f32_avx512(v)
static inline __m512 pow2_f32_avx512(__m512 t) {
    __m512i k = _mm512_add_epi32(_mm512_castps_si512(t), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(k, 23));
}
/* 16 x 16 in place: 4 x 4 inside each 128-bit quarter, then the quarters as a 4 x 4 of their own.
 */
static inline __attribute__((always_inline)) void transpose_f32_avx512(__m512 v[16]) {
    __m512 a[16], b[16];
    for (int i = 0; i < 16; i += 4) {
        __m512d lo0 = _mm512_castps_pd(_mm512_unpacklo_ps(v[i], v[i + 1]));
        __m512d hi0 = _mm512_castps_pd(_mm512_unpackhi_ps(v[i], v[i + 1]));
        __m512d lo1 = _mm512_castps_pd(_mm512_unpacklo_ps(v[i + 2], v[i + 3]));
        __m512d hi1 = _mm512_castps_pd(_mm512_unpackhi_ps(v[i + 2], v[i + 3]));
        a[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo0, lo1));
        a[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo0, lo1));
        a[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(hi0, hi1));
        a[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(hi0, hi1));
    }
    for (int i = 0; i < 4; i++) {
        b[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
        b[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
        b[i + 8] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        v[i] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0x88);
        v[i + 8] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0xdd);
    }
}
#include "kernel/ops.inc"
#undef TYPE

const KernelIsa kernel_isa_avx512 = {"avx512", &ops_f32_avx512, &ops_f64_avx512};
#ifdef __clang__
#pragma clang attribute pop
#endif
#else
typedef int kernel_no_avx512; /* a translation unit may not be empty */
#endif
