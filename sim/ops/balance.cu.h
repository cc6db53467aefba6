/* Kernels of balance.c, over [b, t, e]: a block for a token. Operand 0: scores, or of the softmax's
 * adjoint its result; operand 2: the cotangent. */
#include "gpu/lang.h"

typedef enum { GPU_FN(SUM), GPU_FN(DOT), GPU_FN(TOP), GPU_FN(EXPS) } GPU_FN(What);
/* Of a token's scores: their sum, that of their products with the cotangent, the largest, the sum
 * of exp(z - top). */
GPU_ON double GPU_FN(over)(const GpuArgs a, int64_t r, int what, double top, double *part) {
    int64_t o = gpu_offset(&a, &a.x[0], 0, 2, r), og = gpu_offset(&a, &a.x[2], 0, 2, r);
    bool max = what == GPU_FN(TOP);
    double v = max ? -INFINITY : 0;
    for (int64_t i = GPU_THREAD; i < a.n[2]; i += GPU_WIDTH) {
        double z = GPU_X(0, o + i * a.x[0].s[2]);
        if (what == GPU_FN(DOT)) z *= GPU_X(2, og + i * a.x[2].s[2]);
        if (what == GPU_FN(EXPS)) z = exp(z - top);
        v = gpu_join(v, z, max);
    }
    return gpu_all(v, max, part);
}
/* y(i) for each expert i of each token; z: its score, g: its cotangent. */
#define GPU_TOKEN(name, before, y)                                                                 \
    GPU_KERNEL(name) {                                                                             \
        GPU_PARTS(part);                                                                           \
        GPU_EACH_ROW(r, a.n[0] * a.n[1]) {                                                         \
            int64_t o = gpu_offset(&a, &a.x[0], 0, 2, r), oy = gpu_offset(&a, &a.out, 0, 2, r);    \
            int64_t og = gpu_offset(&a, &a.x[2], 0, 2, r);                                         \
            before;                                                                                \
            for (int64_t i = GPU_THREAD; i < a.n[2]; i += GPU_WIDTH) {                             \
                double z = GPU_X(0, o + i * a.x[0].s[2]);                                          \
                GPU_Y(oy + i * a.out.s[2]) = (GPU_REAL)(y);                                        \
            }                                                                                      \
            (void)og;                                                                              \
        }                                                                                          \
    }
#define GPU_G GPU_X(2, og + i * a.x[2].s[2])
#define GPU_SOFT                                                                                   \
    double top = GPU_FN(over)(a, r, GPU_FN(TOP), 0, part),                                         \
           sum = GPU_FN(over)(a, r, GPU_FN(EXPS), top, part)
GPU_TOKEN(softmax, GPU_SOFT, exp(z - top) / sum)
GPU_TOKEN(softmax_z, double mean = GPU_FN(over)(a, r, GPU_FN(DOT), 0, part), z *(GPU_G - mean))
GPU_TOKEN(normalise, double sum = GPU_FN(over)(a, r, GPU_FN(SUM), 0, part), z / sum)
GPU_TOKEN(normalise_x, double sum = GPU_FN(over)(a, r, GPU_FN(SUM), 0, part);
          double mean = GPU_FN(over)(a, r, GPU_FN(DOT), 0, part) / sum,
          (GPU_G - mean) / sum + 0 * z)
GPU_TOKEN(logsumexp_z, GPU_SOFT, GPU_X(2, og) * exp(z - top) / sum)
GPU_KERNEL(logsumexp) {
    GPU_PARTS(part);
    GPU_EACH_ROW(r, a.n[0] * a.n[1]) {
        GPU_SOFT;
        if (!GPU_THREAD) GPU_Y(gpu_offset(&a, &a.out, 0, 2, r)) = (GPU_REAL)(top + log(sum));
    }
}
