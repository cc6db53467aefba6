/* Kernels for any processor: vectors of one element, fma from the C library where the hardware has
 * none. Slow and right. */
#include "kernel/isa.h"

#define ISA generic

#define IS_F64 1
#define V double
#define VL 1
#define MR 4
#define NV 4
#define V_LOAD(p) (*(p))
#define V_LOADN(p, n) ((void)(n), *(p))
#define V_STORE(p, v) (*(p) = (v))
#define V_SET1(s) ((double)(s))
#define V_FMA(a, b, c) __builtin_fma((a), (b), (c))
#define V_MIN(a, b) min_f64_generic((a), (b))
#define V_MAX(a, b) max_lane_f64_generic((a), (b))
#define V_NEGABS(x) (-__builtin_fabs(x))
#define V_SIGNSEL(x, plus, minus) (__builtin_signbit(x) ? (minus) : (plus))
#define V_POW2(t) pow2_f64_generic(t)
#define V_TRANSPOSE(v) ((void)(v))
/* As the x86 instructions: the second operand if either is NaN. */
static inline double min_f64_generic(double a, double b) { return a < b ? a : b; }
static inline double max_lane_f64_generic(double a, double b) { return a > b ? a : b; }
static inline double pow2_f64_generic(double t) {
    union {
        double f;
        uint64_t u;
    } b = {t};
    b.u = (b.u + 1023) << 52;
    return b.f;
}
#include "kernel/ops.inc"

#define IS_F64 0
#define V float
#define VL 1
#define MR 4
#define NV 4
#define V_LOAD(p) (*(p))
#define V_LOADN(p, n) ((void)(n), *(p))
#define V_STORE(p, v) (*(p) = (v))
#define V_SET1(s) ((float)(s))
#define V_FMA(a, b, c) __builtin_fmaf((a), (b), (c))
#define V_MIN(a, b) min_f32_generic((a), (b))
#define V_MAX(a, b) max_lane_f32_generic((a), (b))
#define V_NEGABS(x) (-__builtin_fabsf(x))
#define V_SIGNSEL(x, plus, minus) (__builtin_signbit(x) ? (minus) : (plus))
#define V_POW2(t) pow2_f32_generic(t)
#define V_TRANSPOSE(v) ((void)(v))
static inline float min_f32_generic(float a, float b) { return a < b ? a : b; }
static inline float max_lane_f32_generic(float a, float b) { return a > b ? a : b; }
static inline float pow2_f32_generic(float t) {
    union {
        float f;
        uint32_t u;
    } b = {t};
    b.u = (b.u + 127) << 23;
    return b.f;
}
#include "kernel/ops.inc"

const KernelIsa kernel_isa_generic = {"generic", &ops_f32_generic, &ops_f64_generic};
