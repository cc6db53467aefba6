/* Kernels that bring elements of one block to where they stand in another: see exec/device_gpu.c.
 * The same bits as on the host: a sum of two numbers in double, rounded, is their sum in float. */
#include "gpu/lang.h"

#define GPU_HERE (gpu_offset(&a, &a.out, 0, a.nd, e))
GPU_MAP(sum_into, GPU_Y(GPU_HERE) + AT(0))
GPU_MAP(max_into, GPU_Y(GPU_HERE) < AT(0) ? AT(0) : GPU_Y(GPU_HERE))
GPU_MAP(bf16, (double)gpu_wide(gpu_narrow((float)AT(0))))
/* The same into two bytes each, side by side. */
GPU_KERNEL(bf16_pack) {
    GPU_EACH(e, gpu_count(&a, 0, a.nd))((uint16_t *)a.out.p)[e] = gpu_narrow((float)AT(0));
}
/* By lists of offsets: for each dim of the space the output's, then the operand's. k[0]: put in
 * place, add, take the larger. */
GPU_KERNEL(copy_table) {
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        const int64_t *list = a.table;
        int64_t to = 0, from = 0;
        for (int d = 0; d < a.nd; d++) {
            int64_t i = gpu_index(&a, d, e);
            to += list[i];
            from += list[a.n[d] + i];
            list += 2 * a.n[d];
        }
        double x = GPU_X(0, from), y = GPU_Y(to);
        GPU_Y(to) = (GPU_REAL)(a.k[0] == 0 ? x : a.k[0] == 1 ? y + x : y < x ? x : y);
    }
}
