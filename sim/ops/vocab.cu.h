/* Kernels of vocab.c. table: the global ids of the rank's rows of the vocabulary, k[0] of them;
 * NULL: its own are 0 .. k[0]-1. Ids are operand 3. */
#include "gpu/lang.h"

/* ---- embedding. The space is [b, t, d]; k[1]: stride of the table's rows ---- */
GPU_KERNEL(embed) {
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        int64_t v = gpu_find(a.table, a.k[0], GPU_INT(3, gpu_offset(&a, &a.x[3], 0, a.nd, e)));
        double x = v < 0 ? 0 : GPU_X(0, v * a.k[1] + gpu_offset(&a, &a.x[0], 0, a.nd, e));
        GPU_Y(gpu_offset(&a, &a.out, 0, a.nd, e)) = (GPU_REAL)x;
    }
}
/* Towards the table: a block for a row of it, each thread its columns; tokens in their order. The
 * space is [b, t, d], the cotangent operand 0; k[1]: stride of the output's rows. */
GPU_KERNEL(embed_w) {
    int64_t d = a.n[2], tokens = a.n[0] * a.n[1];
    GPU_EACH_ROW(v, a.k[0]) {
        int64_t id = a.table ? a.table[v] : v;
        for (int64_t i = GPU_THREAD; i < d; i += GPU_WIDTH) GPU_Y(v * a.k[1] + i * a.out.s[2]) = 0;
        for (int64_t k = 0; k < tokens; k++) {
            if (GPU_INT(3, gpu_offset(&a, &a.x[3], 0, 2, k)) != id) continue;
            int64_t o = gpu_offset(&a, &a.x[0], 0, 2, k);
            for (int64_t i = GPU_THREAD; i < d; i += GPU_WIDTH)
                GPU_Y(v * a.k[1] + i * a.out.s[2]) += (GPU_REAL)GPU_X(0, o + i * a.x[0].s[2]);
        }
    }
}

/* ---- learned positions: as above, by the table of each token's row ---- */
GPU_KERNEL(position) {
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        int64_t v = ((const int64_t *)a.table)[e / a.n[2]];
        double x = v < 0 ? 0 : GPU_X(0, v * a.k[1] + gpu_offset(&a, &a.x[0], 0, a.nd, e));
        GPU_Y(gpu_offset(&a, &a.out, 0, a.nd, e)) = (GPU_REAL)x;
    }
}
GPU_KERNEL(position_w) {
    int64_t d = a.n[2], tokens = a.n[0] * a.n[1];
    GPU_EACH_ROW(v, a.k[0]) {
        for (int64_t i = GPU_THREAD; i < d; i += GPU_WIDTH) GPU_Y(v * a.k[1] + i * a.out.s[2]) = 0;
        for (int64_t k = 0; k < tokens; k++) {
            if (((const int64_t *)a.table)[k] != v) continue;
            int64_t o = gpu_offset(&a, &a.x[0], 0, 2, k);
            for (int64_t i = GPU_THREAD; i < d; i += GPU_WIDTH)
                GPU_Y(v * a.k[1] + i * a.out.s[2]) += (GPU_REAL)GPU_X(0, o + i * a.x[0].s[2]);
        }
    }
}

/* ---- rows of logits. The space is [b, t, v]; k[1]: entries that are no padding ---- */
GPU_ON double GPU_FN(row)(const GpuArgs a, int64_t r, int what, double *part) {
    int64_t o = gpu_offset(&a, &a.x[0], 0, 2, r);
    double m = what == 1 ? GPU_X(1, gpu_offset(&a, &a.x[1], 0, 2, r)) : 0, v = what ? 0 : -INFINITY;
    for (int64_t i = GPU_THREAD; i < a.k[1]; i += GPU_WIDTH) {
        double z = GPU_X(0, o + i * a.x[0].s[2]);
        v = gpu_join(v, what == 1 ? exp(z - m) : z, !what);
    }
    return gpu_all(v, !what, part);
}
#define GPU_ROW(name, what)                                                                        \
    GPU_KERNEL(name) {                                                                             \
        GPU_PARTS(part);                                                                           \
        GPU_EACH_ROW(r, a.n[0] * a.n[1]) {                                                         \
            double v = GPU_FN(row)(a, r, what, part);                                              \
            if (!GPU_THREAD) GPU_Y(gpu_offset(&a, &a.out, 0, 2, r)) = (GPU_REAL)v;                 \
        }                                                                                          \
    }
GPU_ROW(rowmax, 0)
GPU_ROW(sumexp, 1)
GPU_ROW(rowsum, 2)
/* Operands logits, maximum, cotangent. */
GPU_MAP(sumexp_z, e % a.n[2] < a.k[1] ? AT(2) * exp(AT(0) - AT(1)) : 0)
GPU_MAP(limited, e % a.n[2] < a.k[1] ? AT(0) : 0)

/* ---- the target's logit. The space is [b, t]; k[1]: stride of the logits' ids ---- */
GPU_KERNEL(pick) {
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        int64_t v = gpu_find(a.table, a.k[0], GPU_INT(3, gpu_offset(&a, &a.x[3], 0, a.nd, e)));
        double z = v < 0 ? 0 : GPU_X(0, v * a.k[1] + gpu_offset(&a, &a.x[0], 0, a.nd, e));
        GPU_Y(gpu_offset(&a, &a.out, 0, a.nd, e)) = (GPU_REAL)z;
    }
}
/* Towards the logits, [b, t, v]: the cotangent, operand 0, at the target. */
GPU_MAP(pick_z, (a.table ? a.table[e % a.n[2]] : e % a.n[2]) ==
                        GPU_INT(3, gpu_offset(&a, &a.x[3], 0, a.nd, e))
                    ? AT(0)
                    : 0)

/* ---- nll: sum, maximum, target; label. a[0]: the one that is ignored ---- */
#define GPU_COUNTS ((double)GPU_INT(3, gpu_offset(&a, &a.x[3], 0, a.nd, e)) != a.a[0])
GPU_MAP(nll, GPU_COUNTS ? log(AT(0)) + AT(1) - AT(2) : 0)
/* towards the sum: operands sum, cotangent; towards the target: the cotangent, operand 1 */
GPU_MAP(nll_sum, GPU_COUNTS ? AT(1) / AT(0) : 0)
GPU_MAP(nll_other, GPU_COUNTS ? -AT(1) : 0)
