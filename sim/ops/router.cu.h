/* Kernels of router.c, over tokens [b, t]: a thread for one. Operand 0: scores; 1: the cotangent of
 * rows; 2: the op's own result, rows. The result has rows, or scores, packed. */
#include "gpu/lang.h"

#ifndef GPU_ROUTER
#define GPU_ROUTER
/* k[]: experts; strides of experts in the scores, of rows in operands and result. Table: where the
 * rows of each token begin and the last ends, the rows, the expert of each. */
enum { K_E, K_SCORE, K_COT, K_FOUT, K_OUT };
#define GPU_FIRST(i) a.table[i]
#define GPU_CHOSEN(k) a.table[gpu_count(&a, 0, 2) + 1 + (k)]
#define GPU_EXPERT(k) a.table[gpu_count(&a, 0, 2) + 1 + GPU_FIRST(gpu_count(&a, 0, 2)) + (k)]
#define GPU_EACH_OF(k, i) for (int64_t k = GPU_FIRST(i); k < GPU_FIRST((i) + 1); k++)
#define GPU_COT(k) GPU_X(1, GPU_CHOSEN(k) * a.k[K_COT])
#define GPU_FOUT(k) GPU_X(2, GPU_CHOSEN(k) * a.k[K_FOUT])
#define GPU_CHOSEN_Y(k) GPU_Y(GPU_CHOSEN(k) * a.k[K_OUT])
#endif
GPU_ON double GPU_FN(score_of)(const GpuArgs a, int64_t i, int64_t e) {
    return GPU_X(0, gpu_offset(&a, &a.x[0], 0, 2, i) + e * a.k[K_SCORE]);
}
GPU_ON void GPU_FN(clear)(const GpuArgs a, int64_t i) {
    for (int64_t e = 0; e < a.k[K_E]; e++) GPU_Y(i * a.k[K_E] + e) = 0;
}
/* Softmax over the selected. */
GPU_KERNEL(gate) {
    GPU_EACH(i, gpu_count(&a, 0, 2)) {
        double top = -INFINITY, sum = 0;
        GPU_EACH_OF(k, i) top = fmax(top, GPU_FN(score_of)(a, i, GPU_EXPERT(k)));
        GPU_EACH_OF(k, i) sum += exp(GPU_FN(score_of)(a, i, GPU_EXPERT(k)) - top);
        GPU_EACH_OF(k, i)
        GPU_CHOSEN_Y(k) = (GPU_REAL)(exp(GPU_FN(score_of)(a, i, GPU_EXPERT(k)) - top) / sum);
    }
}
GPU_KERNEL(gate_z) {
    GPU_EACH(i, gpu_count(&a, 0, 2)) {
        double mean = 0;
        GPU_FN(clear)(a, i);
        GPU_EACH_OF(k, i) mean += GPU_FOUT(k) * GPU_COT(k);
        GPU_EACH_OF(k, i)
        GPU_Y(i * a.k[K_E] + GPU_EXPERT(k)) = (GPU_REAL)(GPU_FOUT(k) * (GPU_COT(k) - mean));
    }
}
/* Softmax over all. */
typedef struct {
    double top, sum;
} GPU_FN(Softmax);
GPU_ON GPU_FN(Softmax) GPU_FN(softmax_of)(const GpuArgs a, int64_t i) {
    GPU_FN(Softmax) s = {-INFINITY, 0};
    for (int64_t e = 0; e < a.k[K_E]; e++) s.top = fmax(s.top, GPU_FN(score_of)(a, i, e));
    for (int64_t e = 0; e < a.k[K_E]; e++) s.sum += exp(GPU_FN(score_of)(a, i, e) - s.top);
    return s;
}
GPU_ON double GPU_FN(share_of)(const GpuArgs a, GPU_FN(Softmax) s, int64_t i, int64_t e) {
    return exp(GPU_FN(score_of)(a, i, e) - s.top) / s.sum;
}
GPU_KERNEL(gate_all) {
    GPU_EACH(i, gpu_count(&a, 0, 2)) {
        GPU_FN(Softmax) s = GPU_FN(softmax_of)(a, i);
        GPU_EACH_OF(k, i) GPU_CHOSEN_Y(k) = (GPU_REAL)GPU_FN(share_of)(a, s, i, GPU_EXPERT(k));
    }
}
GPU_KERNEL(gate_all_z) {
    GPU_EACH(i, gpu_count(&a, 0, 2)) {
        GPU_FN(Softmax) s = GPU_FN(softmax_of)(a, i);
        double mean = 0;
        GPU_EACH_OF(k, i) mean += GPU_FN(share_of)(a, s, i, GPU_EXPERT(k)) * GPU_COT(k);
        for (int64_t e = 0, k = GPU_FIRST(i); e < a.k[K_E]; e++) {
            double d = -mean;
            for (; k < GPU_FIRST(i + 1) && GPU_EXPERT(k) == e; k++) d += GPU_COT(k);
            GPU_Y(i * a.k[K_E] + e) = (GPU_REAL)(GPU_FN(share_of)(a, s, i, e) * d);
        }
    }
}
/* A chosen score times a[0], with a[1] divided by the sum of the chosen. */
GPU_ON double GPU_FN(chosen_sum)(const GpuArgs a, int64_t i) {
    double sum = a.a[1] == 0 ? 1 : 1e-20;
    if (a.a[1] != 0) GPU_EACH_OF(k, i) sum += GPU_FN(score_of)(a, i, GPU_EXPERT(k));
    return sum;
}
GPU_KERNEL(share) {
    GPU_EACH(i, gpu_count(&a, 0, 2)) {
        double sum = GPU_FN(chosen_sum)(a, i);
        GPU_EACH_OF(k, i)
        GPU_CHOSEN_Y(k) = (GPU_REAL)(a.a[0] * GPU_FN(score_of)(a, i, GPU_EXPERT(k)) / sum);
    }
}
GPU_KERNEL(share_z) {
    GPU_EACH(i, gpu_count(&a, 0, 2)) {
        double sum = GPU_FN(chosen_sum)(a, i), mean = 0;
        GPU_FN(clear)(a, i);
        GPU_EACH_OF(k, i)
        mean += a.a[1] * GPU_FN(score_of)(a, i, GPU_EXPERT(k)) / sum * GPU_COT(k);
        GPU_EACH_OF(k, i)
        GPU_Y(i * a.k[K_E] + GPU_EXPERT(k)) = (GPU_REAL)(a.a[0] / sum * (GPU_COT(k) - mean));
    }
}
