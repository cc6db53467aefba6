/* Kernels of einsum_rows.c. */
#include "gpu/lang.h"

/* Row r of the result is what begins at table[r] of operand 0, or zeros (-1). The space is [rows,
 * the row's dims]. */
GPU_KERNEL(gather_rows) {
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        int64_t each = gpu_count(&a, 1, a.nd), from = a.table[e / each];
        GPU_Y(gpu_offset(&a, &a.out, 0, a.nd, e)) =
            from < 0 ? 0 : (GPU_REAL)GPU_X(0, from + gpu_offset(&a, &a.x[0], 1, a.nd, e % each));
    }
}
/* What begins at table[p], of a dense result, is the sum of the rows that are listed for place p,
 * in their order. The space is [places, the row's dims]; table: the places, where the list of each
 * begins and the last ends, the lists. */
GPU_KERNEL(scatter_rows) {
    const int64_t *first = a.table + a.n[0], *row = first + a.n[0] + 1;
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        int64_t each = gpu_count(&a, 1, a.nd), p = e / each;
        GPU_REAL sum = 0;
        for (int64_t k = first[p]; k < first[p + 1]; k++)
            sum += (GPU_REAL)GPU_X(0, row[k] * a.x[0].s[0] +
                                          gpu_offset(&a, &a.x[0], 1, a.nd, e % each));
        GPU_Y(a.table[p] + gpu_offset(&a, &a.out, 1, a.nd, e % each)) = sum;
    }
}
