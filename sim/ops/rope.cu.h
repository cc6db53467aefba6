/* The kernel of rope.c, both ways. The space is [.., pairs]; k: how far the other element of a pair
 * is in operand and output, and the dim of positions; table: [positions][2][pairs], cos and sin. */
#include "gpu/lang.h"

GPU_KERNEL(rope) {
    int64_t pairs = a.n[a.nd - 1];
    GPU_EACH(e, gpu_count(&a, 0, a.nd)) {
        const double *turn = (const double *)a.table + 2 * gpu_index(&a, (int)a.k[2], e) * pairs;
        int64_t ox = gpu_offset(&a, &a.x[0], 0, a.nd, e), oy = gpu_offset(&a, &a.out, 0, a.nd, e);
        double x = GPU_X(0, ox), y = GPU_X(0, ox + a.k[0]), c = turn[e % pairs],
               s = turn[pairs + e % pairs];
        GPU_Y(oy) = (GPU_REAL)(x * c - y * s);
        GPU_Y(oy + a.k[1]) = (GPU_REAL)(y * c + x * s);
    }
}
