/* Kernels of rmsnorm.c. The space is [rows.., n]: a block for a row. Operands x, w, cotangent;
 * k[0]: there is a w; a[0]: eps, a[1]: what is added to w (Gemma). */
#include "gpu/lang.h"

/* 1 / sqrt(mean(x^2) + eps) of the row that begins at ox. */
GPU_ON double GPU_FN(rate)(const GpuArgs a, int64_t ox, double *part) {
    int last = a.nd - 1;
    double sum = 0;
    for (int64_t i = GPU_THREAD; i < a.n[last]; i += GPU_WIDTH) {
        double x = GPU_X(0, ox + i * a.x[0].s[last]);
        sum += x * x;
    }
    return 1 / sqrt(gpu_all(sum, false, part) / (double)a.n[last] + a.a[0]);
}
GPU_ON double GPU_FN(weight)(const GpuArgs a, int64_t i) {
    return a.k[0] ? GPU_X(1, i * a.x[1].s[a.nd - 1]) + a.a[1] : 1;
}
GPU_KERNEL(rmsnorm) {
    int last = a.nd - 1;
    GPU_PARTS(part);
    GPU_EACH_ROW(r, gpu_count(&a, 0, last)) {
        int64_t ox = gpu_offset(&a, &a.x[0], 0, last, r), oy = gpu_offset(&a, &a.out, 0, last, r);
        double rate = GPU_FN(rate)(a, ox, part);
        for (int64_t i = GPU_THREAD; i < a.n[last]; i += GPU_WIDTH)
            GPU_Y(oy + i * a.out.s[last]) =
                (GPU_REAL)(GPU_FN(weight)(a, i) * (GPU_X(0, ox + i * a.x[0].s[last]) * rate));
    }
}
/* Towards x: r (g - xh mean(g xh)) with g = dy w, xh = x r. */
GPU_KERNEL(rmsnorm_x) {
    int last = a.nd - 1;
    GPU_PARTS(part);
    GPU_EACH_ROW(r, gpu_count(&a, 0, last)) {
        int64_t ox = gpu_offset(&a, &a.x[0], 0, last, r), oy = gpu_offset(&a, &a.out, 0, last, r),
                og = gpu_offset(&a, &a.x[2], 0, last, r), n = a.n[last];
        double rate = GPU_FN(rate)(a, ox, part), dot = 0;
        for (int64_t i = GPU_THREAD; i < n; i += GPU_WIDTH)
            dot += GPU_X(2, og + i * a.x[2].s[last]) * GPU_FN(weight)(a, i) *
                   GPU_X(0, ox + i * a.x[0].s[last]) * rate;
        dot = gpu_all(dot, false, part) / (double)n;
        for (int64_t i = GPU_THREAD; i < n; i += GPU_WIDTH) {
            double g = GPU_X(2, og + i * a.x[2].s[last]) * GPU_FN(weight)(a, i),
                   xh = GPU_X(0, ox + i * a.x[0].s[last]) * rate;
            GPU_Y(oy + i * a.out.s[last]) = (GPU_REAL)(rate * (g - xh * dot));
        }
    }
}
/* Towards w, first the rate of each row, in double, */
GPU_KERNEL(rmsnorm_rate) {
    GPU_PARTS(part);
    GPU_EACH_ROW(r, gpu_count(&a, 0, a.nd - 1)) {
        double rate = GPU_FN(rate)(a, gpu_offset(&a, &a.x[0], 0, a.nd - 1, r), part);
        if (!GPU_THREAD) ((double *)a.out.p)[r] = rate;
    }
}
/* then for each i the sum of dy x rate over rows, in their order. Operand 3: the rates. */
GPU_KERNEL(rmsnorm_w) {
    int last = a.nd - 1;
    GPU_EACH(i, a.n[last]) {
        double sum = 0;
        for (int64_t r = 0, n = gpu_count(&a, 0, last); r < n; r++)
            sum += GPU_X(2, gpu_offset(&a, &a.x[2], 0, last, r) + i * a.x[2].s[last]) *
                   (GPU_X(0, gpu_offset(&a, &a.x[0], 0, last, r) + i * a.x[0].s[last]) *
                    ((const double *)a.x[3].p)[r]);
        GPU_Y(i * a.out.s[last]) = (GPU_REAL)sum;
    }
}
