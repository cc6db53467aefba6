/* Contractions that are no plain GEMM: operands 0 and (with k[1]) 1 along the output's dims, the
 * first k[0] of the space, and those that are summed behind them. */
#include "gpu/lang.h"

/* Every so many-th term of output e, from the first. */
GPU_ON double GPU_FN(terms)(const GpuArgs a, int64_t e, int64_t first, int64_t step) {
    int out = (int)a.k[0];
    int64_t n = gpu_count(&a, out, a.nd), oa = gpu_offset(&a, &a.x[0], 0, out, e),
            ob = gpu_offset(&a, &a.x[1], 0, out, e);
    double sum = 0;
    for (int64_t i = first; i < n; i += step) {
        double x = GPU_X(0, oa + gpu_offset(&a, &a.x[0], out, a.nd, i));
        sum += a.k[1] ? x * GPU_X(1, ob + gpu_offset(&a, &a.x[1], out, a.nd, i)) : x;
    }
    return sum;
}
/* One thread for each element of the output, */
GPU_KERNEL(contract) {
    GPU_EACH(e, gpu_count(&a, 0, (int)a.k[0]))
    GPU_Y(gpu_offset(&a, &a.out, 0, (int)a.k[0], e)) = (GPU_REAL)GPU_FN(terms)(a, e, 0, 1);
}
/* or one block, where there are few of them and many terms. */
GPU_KERNEL(contract_block) {
    GPU_PARTS(part);
    GPU_EACH_ROW(e, gpu_count(&a, 0, (int)a.k[0])) {
        double sum = gpu_all(GPU_FN(terms)(a, e, GPU_THREAD, GPU_WIDTH), false, part);
        if (!GPU_THREAD) GPU_Y(gpu_offset(&a, &a.out, 0, (int)a.k[0], e)) = (GPU_REAL)sum;
    }
}
