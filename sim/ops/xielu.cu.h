/* Kernels of xielu.c. Operands x, p, n (one element each), cotangent. The two constants are those
 * of xielu.c. */
#include "gpu/lang.h"

#ifndef GPU_XIELU
#define GPU_XIELU
#define GPU_XIELU_BETA 0.5
#define GPU_XIELU_EPS (-1e-6)
GPU_ON double gpu_softplus(double x) { return x > 30 ? x : log1p(exp(x)); }
/* What the scalars multiply, above 0 and else. */
GPU_ON double gpu_xielu_high(double x) { return x > 0 ? x * x : 0; }
GPU_ON double gpu_xielu_low(double x) { return x > 0 ? 0 : expm1(fmin(x, GPU_XIELU_EPS)) - x; }
#endif
#define GPU_XIELU_A gpu_softplus(AT(1))
#define GPU_XIELU_Z (GPU_XIELU_BETA + gpu_softplus(AT(2)))
GPU_MAP_X(xielu,
          GPU_XIELU_A *gpu_xielu_high(x) + GPU_XIELU_Z * gpu_xielu_low(x) + GPU_XIELU_BETA * x)
GPU_MAP_X(xielu_slope,
          AT(3) * (x > 0 ? 2 * GPU_XIELU_A * x + GPU_XIELU_BETA
                         : GPU_XIELU_Z * ((x < GPU_XIELU_EPS ? exp(x) : 0) - 1) + GPU_XIELU_BETA))
/* The gradient of a scalar, operand k[0]: one block. */
GPU_KERNEL(xielu_scalar) {
    GPU_PARTS(part);
    double sum = 0, scalar = GPU_X(a.k[0], 0);
    for (int64_t e = GPU_THREAD, n = gpu_count(&a, 0, a.nd); e < n; e += GPU_WIDTH) {
        double x = AT(0);
        sum += AT(3) * (a.k[0] == 1 ? gpu_xielu_high(x) : gpu_xielu_low(x));
    }
    sum = gpu_all(sum, false, part);
    if (!GPU_THREAD) GPU_Y(0) = (GPU_REAL)(sum / (1 + exp(-scalar)));
}
