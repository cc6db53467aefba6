/* Kernels of layernorm.c. The space is [rows.., n]: a block for a row. Operands x, w, cotangent;
 * k[0]: there is a w; a[0]: eps, a[1]: what is added to w. */
#include "gpu/lang.h"

/* A row's mean and 1 / sqrt(var + eps). */
typedef struct {
    double mean, r;
} GPU_FN(Row);
GPU_ON GPU_FN(Row) GPU_FN(measure)(const GpuArgs a, int64_t ox, double *part) {
    int last = a.nd - 1;
    double n = (double)a.n[last], sum = 0, var = 0;
    for (int64_t i = GPU_THREAD; i < a.n[last]; i += GPU_WIDTH)
        sum += GPU_X(0, ox + i * a.x[0].s[last]) / n;
    double mean = gpu_all(sum, false, part);
    for (int64_t i = GPU_THREAD; i < a.n[last]; i += GPU_WIDTH) {
        double d = GPU_X(0, ox + i * a.x[0].s[last]) - mean;
        var += d * d / n;
    }
    return (GPU_FN(Row)){mean, 1 / sqrt(gpu_all(var, false, part) + a.a[0])};
}
GPU_KERNEL(layernorm) {
    int last = a.nd - 1;
    GPU_PARTS(part);
    GPU_EACH_ROW(r, gpu_count(&a, 0, last)) {
        int64_t ox = gpu_offset(&a, &a.x[0], 0, last, r), oy = gpu_offset(&a, &a.out, 0, last, r);
        GPU_FN(Row) row = GPU_FN(measure)(a, ox, part);
        for (int64_t i = GPU_THREAD; i < a.n[last]; i += GPU_WIDTH)
            GPU_Y(oy + i * a.out.s[last]) =
                (GPU_REAL)((GPU_X(0, ox + i * a.x[0].s[last]) - row.mean) * row.r *
                           GPU_FN(weight)(a, i));
    }
}
/* Towards x: r (g - mean(g) - xh mean(g xh)) with g = dy w, xh = (x - m) r. */
GPU_KERNEL(layernorm_x) {
    int last = a.nd - 1;
    GPU_PARTS(part);
    GPU_EACH_ROW(r, gpu_count(&a, 0, last)) {
        int64_t ox = gpu_offset(&a, &a.x[0], 0, last, r), oy = gpu_offset(&a, &a.out, 0, last, r),
                og = gpu_offset(&a, &a.x[2], 0, last, r), n = a.n[last];
        GPU_FN(Row) row = GPU_FN(measure)(a, ox, part);
        double mean = 0, dot = 0;
        for (int64_t i = GPU_THREAD; i < n; i += GPU_WIDTH) {
            double g = GPU_X(2, og + i * a.x[2].s[last]) * GPU_FN(weight)(a, i) / (double)n;
            mean += g;
            dot += g * (GPU_X(0, ox + i * a.x[0].s[last]) - row.mean) * row.r;
        }
        mean = gpu_all(mean, false, part);
        dot = gpu_all(dot, false, part);
        for (int64_t i = GPU_THREAD; i < n; i += GPU_WIDTH) {
            double g = GPU_X(2, og + i * a.x[2].s[last]) * GPU_FN(weight)(a, i),
                   xh = (GPU_X(0, ox + i * a.x[0].s[last]) - row.mean) * row.r;
            GPU_Y(oy + i * a.out.s[last]) = (GPU_REAL)(row.r * (g - mean - xh * dot));
        }
    }
}
/* Towards w, first mean and rate of each row, in double, */
GPU_KERNEL(layernorm_rows) {
    GPU_PARTS(part);
    GPU_EACH_ROW(r, gpu_count(&a, 0, a.nd - 1)) {
        GPU_FN(Row) row = GPU_FN(measure)(a, gpu_offset(&a, &a.x[0], 0, a.nd - 1, r), part);
        if (GPU_THREAD) continue;
        ((double *)a.out.p)[2 * r] = row.mean;
        ((double *)a.out.p)[2 * r + 1] = row.r;
    }
}
/* then for each i the sum of dy xh over rows, in their order. Operand 3: means and rates. */
GPU_KERNEL(layernorm_w) {
    int last = a.nd - 1;
    const double *row = (const double *)a.x[3].p;
    GPU_EACH(i, a.n[last]) {
        double sum = 0;
        for (int64_t r = 0, n = gpu_count(&a, 0, last); r < n; r++)
            sum +=
                GPU_X(2, gpu_offset(&a, &a.x[2], 0, last, r) + i * a.x[2].s[last]) *
                (GPU_X(0, gpu_offset(&a, &a.x[0], 0, last, r) + i * a.x[0].s[last]) - row[2 * r]) *
                row[2 * r + 1];
        GPU_Y(i * a.out.s[last]) = (GPU_REAL)sum;
    }
}
