/* Kernels of ring.c and attention_sink.c: two parts of attention become one, or meet a sink. The
 * space is [.., n], the last of a row's n is its lse. Operands the own part, the other one, the
 * cotangent. */
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

/* ---- sinks: operands a part, the sinks, the cotangent, which has no lse ---- */
/* What a row keeps of its result. */
GPU_ON double GPU_FN(keeps)(double lse, double sink) { return 1 / (1 + exp(sink - lse)); }
GPU_KERNEL(sink) {
    int last = a.nd - 1;
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        int64_t n = a.n[last];
        double w = GPU_FN(keeps)(GPU_ROW_AT(0, n), AT(1));
        GPU_Y(gpu_offset(&a, &a.out, 0, a.nd, e)) = (GPU_REAL)(w * GPU_ROW_AT(0, e % n));
    }
}
/* d o = w do, d lse = w (1 - w) sum do o. */
GPU_KERNEL(sink_part) {
    int last = a.nd - 1;
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        int64_t n = a.n[last], i = e % n;
        double lse = GPU_ROW_AT(0, n - 1), s = AT(1), w = GPU_FN(keeps)(lse, s), v = 0;
        if (i < n - 1) v = GPU_ROW_AT(2, i);
        for (int64_t k = 0; i == n - 1 && k < n - 1; k++) v += GPU_ROW_AT(2, k) * GPU_ROW_AT(0, k);
        if (i == n - 1) v *= GPU_FN(keeps)(s, lse);
        GPU_Y(gpu_offset(&a, &a.out, 0, a.nd, e)) = (GPU_REAL)(w * v);
    }
}
/* The gradient of a head's sink: a block for each. The space is [heads.., rows.., n]; k[0]: how
 * many dims are of heads. */
GPU_KERNEL(sink_sum) {
    GPU_PARTS(part);
    int last = a.nd - 1, heads = (int)a.k[0];
    int64_t n = a.n[last], rows = gpu_count(&a, heads, last);
    GPU_EACH_ROW(r, gpu_count(&a, 0, heads)) {
        double sum = 0;
        for (int64_t k = GPU_THREAD; k < rows; k += GPU_WIDTH) {
            int64_t e = (r * rows + k) * n;
            double lse = GPU_ROW_AT(0, n - 1), s = AT(1), v = 0;
            for (int64_t i = 0; i < n - 1; i++) v += GPU_ROW_AT(2, i) * GPU_ROW_AT(0, i);
            sum -= GPU_FN(keeps)(lse, s) * GPU_FN(keeps)(s, lse) * v;
        }
        sum = gpu_all(sum, false, part);
        if (!GPU_THREAD) GPU_Y(gpu_offset(&a, &a.out, 0, heads, r)) = (GPU_REAL)sum;
        GPU_BARRIER();
    }
}
