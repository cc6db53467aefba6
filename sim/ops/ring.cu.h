/* Kernels of ring.c: two parts of attention become one. The space is [.., n], the last of a row's n
 * is its lse. Operands the own part, the other one, the cotangent. */
#include "gpu/lang.h"

#define GPU_NONE (-0x1p100) /* ATTENTION_NONE: a row that saw no key */
GPU_ON double GPU_FN(lse)(double x, double y) {
    double top = x > y ? x : y;
    return top <= GPU_NONE ? top : top + log(exp(x - top) + exp(y - top));
}
/* What the part of lse x weighs beside that of lse y. */
GPU_ON double GPU_FN(weighs)(double x, double y) {
    double top = x > y ? x : y, ex = exp(x - top);
    return ex / (ex + exp(y - top));
}
/* Operand k's element i of the row that e lies in. */
#define GPU_ROW_AT(k, i)                                                                           \
    GPU_X(k, gpu_offset(&a, &a.x[k], 0, last, e / a.n[last]) + (i)*a.x[k].s[last])
GPU_KERNEL(merge) {
    int last = a.nd - 1;
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        int64_t n = a.n[last], i = e % n;
        double x = GPU_ROW_AT(0, n - 1), y = GPU_ROW_AT(1, n - 1);
        double v = i == n - 1 ? GPU_FN(lse)(x, y)
                              : GPU_FN(weighs)(x, y) * GPU_ROW_AT(0, i) +
                                    GPU_FN(weighs)(y, x) * GPU_ROW_AT(1, i);
        GPU_Y(gpu_offset(&a, &a.out, 0, a.nd, e)) = (GPU_REAL)v;
    }
}
/* d o = w do, d l = w (dl + do (o - merged)): the element of the lse sums over the row. */
GPU_KERNEL(merge_part) {
    int last = a.nd - 1;
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        int64_t n = a.n[last], i = e % n;
        double x = GPU_ROW_AT(0, n - 1), y = GPU_ROW_AT(1, n - 1), w = GPU_FN(weighs)(x, y),
               v = GPU_ROW_AT(2, i);
        for (int64_t k = 0; i == n - 1 && k < n - 1; k++)
            v += GPU_ROW_AT(2, k) * GPU_FN(weighs)(y, x) * (GPU_ROW_AT(0, k) - GPU_ROW_AT(1, k));
        GPU_Y(gpu_offset(&a, &a.out, 0, a.nd, e)) = (GPU_REAL)(w * v);
    }
}
