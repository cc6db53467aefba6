/* Kernels of optimizer.c. a: of the weighted sums the two weights; of clip the largest norm; of
 * AdamW lr, decay, 1 - beta1^t, 1 - beta2^t, eps. */
#include "gpu/lang.h"

GPU_MAP(axpby, a.a[0] * AT(0) + a.a[1] * AT(1))
GPU_MAP(ema_square, a.a[0] * AT(0) + a.a[1] * AT(1) * AT(1))
GPU_MAP_X(adamw,
          x *(1 - a.a[0] * a.a[1]) - a.a[0] * (AT(1) / a.a[2]) / (sqrt(AT(2) / a.a[3]) + a.a[4]))
GPU_MAP_X(clip, a.a[0] / (sqrt(x) + 1e-6) < 1 ? a.a[0] / (sqrt(x) + 1e-6) : 1)
