/* Kernels of select.c, capacity.c and counts.c: what makes index lists and counts their rows.
 * Flags, one double for each candidate in the order of rows, become a list in two steps: how many
 * stand in each run of candidates, then each run lists its own behind those before it. */
#include "gpu/lang.h"

#ifndef GPU_SELECT
#define GPU_SELECT
GPU_ON bool gpu_above(double x, double y) { return x > y || (isnan(y) && !isnan(x)); }
/* Marks the k largest of n; of equal ones those of the lowest number. NaN is below all. Strides. */
GPU_ON void gpu_mark_top(const double *x, int64_t n, int64_t k, double *taken, int64_t stride) {
    for (int64_t j = 0; j < k; j++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (!taken[i * stride] && (best < 0 || gpu_above(x[i], x[best]))) best = i;
        if (best >= 0) taken[best * stride] = 1;
    }
}
/* k[] of select: experts; how many are chosen; groups, how many stay; stride of experts. */
enum { K_EXPERTS, K_TOP, K_GROUPS, K_STAY, K_STRIDE };
/* k[] of what lists: candidates; how many make a run; are they rows of a list, operand 2? else
 * local sizes of b and t, and the whole ones. Table then: the ids of e, b, t. */
enum { K_CANDIDATES, K_RUN, K_OF_LIST, K_B, K_T, K_ALL_B, K_ALL_T, K_ALL_E };
#endif
/* Flags [e, b, t] of the chosen; the space is [b, t], a thread for a token. Operand 0: scores; 1:
 * three doubles for each token and expert to work in. */
GPU_KERNEL(select) {
    int64_t tokens = gpu_count(&a, 0, 2), ne = a.k[K_EXPERTS], groups = a.k[K_GROUPS];
    GPU_EACH(i, tokens) {
        double *score = (double *)a.x[1].p + 3 * ne * i, *group = score + ne, *open = group + ne;
        double *taken = (double *)a.out.p + i;
        for (int64_t e = 0; e < ne; e++) {
            score[e] = GPU_X(0, gpu_offset(&a, &a.x[0], 0, 2, i) + e * a.k[K_STRIDE]);
            taken[e * tokens] = 0;
        }
        for (int64_t g = 0; g < groups && groups > 1; g++) {
            double best = NAN, second = NAN;
            for (int64_t e = g * (ne / groups); e < (g + 1) * (ne / groups); e++) {
                if (gpu_above(score[e], best)) second = best, best = score[e];
                else if (gpu_above(score[e], second)) second = score[e];
            }
            group[g] = ne / groups > 1 ? best + second : best;
            open[g] = 0;
        }
        if (groups > 1) {
            gpu_mark_top(group, groups, a.k[K_STAY], open, 1);
            for (int64_t e = 0; e < ne; e++)
                if (!open[e / (ne / groups)]) score[e] = -INFINITY;
        }
        gpu_mark_top(score, ne, a.k[K_TOP], taken, tokens);
    }
}
/* The space is [runs]. Operand 0: flags. */
GPU_KERNEL(list_count) {
    GPU_EACH(r, a.n[0]) {
        int64_t n = 0, lo = r * a.k[K_RUN], hi = lo + a.k[K_RUN];
        for (int64_t i = lo; i < hi && i < a.k[K_CANDIDATES]; i++)
            n += ((const double *)a.x[0].p)[i] != 0;
        ((int64_t *)a.out.p)[r] = n;
    }
}
/* Operand 1: the counts. */
GPU_KERNEL(list) {
    GPU_EACH(r, a.n[0]) {
        int64_t at = 0, lo = r * a.k[K_RUN], hi = lo + a.k[K_RUN];
        for (int64_t k = 0; k < r; k++) at += GPU_INT(1, k);
        for (int64_t i = lo; i < hi && i < a.k[K_CANDIDATES]; i++) {
            if (((const double *)a.x[0].p)[i] == 0) continue;
            int64_t e = i / (a.k[K_B] * a.k[K_T]), b = i / a.k[K_T] % a.k[K_B], t = i % a.k[K_T];
            ((int64_t *)a.out.p)[at++] =
                a.k[K_OF_LIST]
                    ? GPU_INT(2, i)
                    : (a.table[e] * a.k[K_ALL_B] + a.table[a.k[K_ALL_E] + b]) * a.k[K_ALL_T] +
                          a.table[a.k[K_ALL_E] + a.k[K_B] + t];
        }
    }
}

/* ---- capacity: the space is [rows]; operand 0: the list, 1: the weights, 2: who goes first ----
 */
/* k[]: tokens of the whole; is there a group for each token?; 's', 'w' or 'o'; groups. Table: of
 * each group the room, of each token the group. */
#ifndef GPU_CAPACITY
#define GPU_CAPACITY
enum { K_TOKENS, K_GROUPED, K_PRIORITY, K_N_GROUPS };
#endif
GPU_KERNEL(capacity_first) {
    GPU_EACH(r, a.n[0]) {
        double w = GPU_X(1, r * a.x[1].s[0]), first = a.k[K_PRIORITY] == 'o' ? 0 : -w;
        if (a.k[K_PRIORITY] == 's') {
            int64_t token = GPU_INT(0, r) % a.k[K_TOKENS];
            first = 0; /* the slot: how many of its token's go before it */
            for (int64_t q = 0; q < a.n[0]; q++) {
                double other = GPU_X(1, q * a.x[1].s[0]);
                if (q != r && GPU_INT(0, q) % a.k[K_TOKENS] == token &&
                    (other > w || (other == w && q < r)))
                    first++;
            }
        }
        ((double *)a.out.p)[r] = first;
    }
}
GPU_ON int64_t GPU_FN(group_of)(const GpuArgs a, int64_t row) {
    return a.k[K_GROUPED] ? a.table[a.k[K_N_GROUPS] + GPU_INT(0, row) % a.k[K_TOKENS]] : 0;
}
/* A flag: rows of its expert and group that go before it are fewer than there is room for. */
GPU_KERNEL(capacity) {
    const double *first = (const double *)a.x[2].p;
    GPU_EACH(r, a.n[0]) {
        int64_t expert = GPU_INT(0, r) / a.k[K_TOKENS], group = GPU_FN(group_of)(a, r), before = 0;
        int64_t lo = r, hi = r;
        while (lo > 0 && GPU_INT(0, lo - 1) / a.k[K_TOKENS] == expert) lo--;
        while (hi < a.n[0] && GPU_INT(0, hi) / a.k[K_TOKENS] == expert) hi++;
        for (int64_t q = lo; q < hi; q++)
            before += GPU_FN(group_of)(a, q) == group &&
                      (first[q] < first[r] || (first[q] == first[r] && q < r));
        ((double *)a.out.p)[r] = before < a.table[group];
    }
}

/* ---- counts: the space is [b, e]; k[]: rows, parts. Table: of each row its part and its expert
 * ---- */
GPU_KERNEL(counts) {
    GPU_EACH(i, gpu_count(&a, 0, 2)) {
        int64_t n = 0, part = i / a.n[1] * a.k[1] / a.n[0], e = i % a.n[1];
        for (int64_t r = 0; r < a.k[0]; r++) n += a.table[2 * r] == part && a.table[2 * r + 1] == e;
        GPU_Y(gpu_offset(&a, &a.out, 0, 2, i)) = (GPU_REAL)n;
    }
}
