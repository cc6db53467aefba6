/* Kernels of pointwise.c, scale.c, temperature.c, swiglu.c, gelu.c, tanh.c, softcap.c, clamp.c,
 * xielu.c, swiglu_limited.c and split.c: an element of the result from one of each operand.
 * Arithmetic in double, one rounding. A slope is times the cotangent, operand 1. */
#include "gpu/lang.h"

GPU_MAP(copy, AT(0))
GPU_MAP(fill, a.a[0])
GPU_MAP(add, AT(0) + AT(1))
GPU_MAP(times, a.a[0] * AT(0))
/* Times a factor for each position. k[0]: the dim of positions; table: the factors. */
GPU_MAP(temperature, ((const double *)a.table)[gpu_index(&a, (int)a.k[0], e)] * AT(0))

GPU_ON double GPU_FN(sigmoid_of)(double x) { return 1 / (1 + exp(-x)); }
GPU_MAP_X(relu, x > 0 || x != x ? x : 0)
GPU_MAP_X(relu_slope, x > 0 ? AT(1) : 0 * AT(1))
GPU_MAP_X(square, x > 0 ? x * x : x != x ? x : 0)
GPU_MAP_X(square_slope, x > 0 ? AT(1) * 2 * x : 0 * AT(1))
GPU_MAP_X(silu, x *GPU_FN(sigmoid_of)(x))
GPU_MAP_X(silu_slope, AT(1) * GPU_FN(sigmoid_of)(x) * (1 + x * (1 - GPU_FN(sigmoid_of)(x))))
GPU_MAP_X(sigmoid, GPU_FN(sigmoid_of)(x))
GPU_MAP_X(sigmoid_slope, AT(1) * GPU_FN(sigmoid_of)(fabs(x)) * (1 - GPU_FN(sigmoid_of)(fabs(x))))
GPU_MAP_X(tanh, tanh(x))
GPU_MAP_X(tanh_slope, AT(1) * (1 - tanh(x) * tanh(x)))

/* a[0]: the cap, the end. */
GPU_MAP_X(softcap, a.a[0] * tanh(x / a.a[0]))
GPU_MAP_X(softcap_slope, AT(1) * (1 - tanh(x / a.a[0]) * tanh(x / a.a[0])))
GPU_MAP_X(clamp, x > a.a[0] ? a.a[0] : x < -a.a[0] ? -a.a[0] : x)
GPU_MAP_X(clamp_slope, fabs(x) <= a.a[0] || x != x ? AT(1) : 0 * AT(1))

/* ---- GELU ---- */
#define GPU_ROOT_HALF 0.70710678118654752440
#define GPU_ROOT_2_PI 0.79788456080286535588 /* sqrt(2 / pi) */
GPU_MAP_X(gelu, 0.5 * x * erfc(-x * GPU_ROOT_HALF))
GPU_MAP_X(gelu_slope,
          AT(1) * (0.5 * erfc(-x * GPU_ROOT_HALF) + x * exp(-x * x / 2) * 0.5 * GPU_ROOT_2_PI))
GPU_ON double GPU_FN(gelu_z)(double x) { return GPU_ROOT_2_PI * (x + 0.044715 * x * x * x); }
GPU_MAP_X(gelu_tanh, x / (1 + exp(-2 * GPU_FN(gelu_z)(x))))
GPU_ON double GPU_FN(gelu_tanh_at)(double x) {
    double z = GPU_FN(gelu_z)(x), s = 1 / (1 + exp(-2 * z)), rest = 1 / (1 + exp(2 * z));
    return s + x * s * rest * 2 * GPU_ROOT_2_PI * (1 + 3 * 0.044715 * x * x);
}
GPU_MAP_X(gelu_tanh_slope, AT(1) * GPU_FN(gelu_tanh_at)(x))

/* ---- SwiGLU: operands gate, up; of the adjoint gate, up, cotangent ---- */
GPU_MAP_X(swiglu, x *GPU_FN(sigmoid_of)(x) * AT(1))
GPU_MAP_X(swiglu_gate,
          AT(2) * AT(1) * GPU_FN(sigmoid_of)(x) * (1 + x * (1 - GPU_FN(sigmoid_of)(x))))
GPU_MAP_X(swiglu_up, AT(2) * x * GPU_FN(sigmoid_of)(x))
/* Of swiglu_limited.c; a[0]: the limit, alpha. */
GPU_MAP_X(limit_above, x > a.a[0] ? a.a[0] : x)
GPU_MAP_X(limit_above_slope, x > a.a[0] ? 0 * AT(1) : AT(1))
GPU_MAP_X(swiglu_plus, (AT(1) + 1) * x * GPU_FN(sigmoid_of)(a.a[0] * x))
GPU_MAP_X(swiglu_plus_gate, AT(2) * (AT(1) + 1) * GPU_FN(sigmoid_of)(a.a[0] * x) *
                                (1 + a.a[0] * x * GPU_FN(sigmoid_of)(-a.a[0] * x)))
GPU_MAP_X(swiglu_plus_up, AT(2) * x * GPU_FN(sigmoid_of)(a.a[0] * x))
