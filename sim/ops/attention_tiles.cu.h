/* Attention over blocks of queries and keys, by products of matrices (gpu_mma): operands are
 * numbers that bf16 holds. What a block of scores makes, probabilities and their slopes, is float32
 * and goes into a product as three bf16 numbers that add up to it: no rounding but those of
 * float32. Spaces, tables and k are those of attention.cu.h; rows of at most GPU_TILED elements. */
#include "gpu/lang.h"

#ifndef GPU_ATTENTION_TILES
#define GPU_ATTENTION_TILES
/* elements of a row; queries and keys of a block; rows of elements, scores, parts in shared memory
 */
enum { GPU_TILED = 128, GPU_TILE = 16, LD_ROW = 136, LD_SUM = 132, LD_SCORE = 20, LD_PART = 24 };
enum { PARTS = 3, PART_SIZE = GPU_TILE * LD_PART };
/* x as a sum of bf16 numbers, at element i of each part. */
GPU_ON void gpu_split(uint16_t *parts, int i, float x) {
    for (int k = 0; k < PARTS; k++) {
        parts[k * PART_SIZE + i] = gpu_narrow(x);
        x -= gpu_wide(parts[k * PART_SIZE + i]);
    }
}
GPU_ON int gpu_padded(int64_t n) { return ((int)n + GPU_MMA - 1) / GPU_MMA * GPU_MMA; }
/* sum [GPU_TILE][width] += w rows, of which w [GPU_TILE][GPU_TILE] is in parts; each warp takes
 * every so many-th block of columns. */
GPU_ON void gpu_add_rows(float *sum, const uint16_t *parts, bool across, const uint16_t *rows,
                         int width) {
    for (int j = GPU_THREAD / GPU_WARP * GPU_MMA; j < width; j += GPU_WIDTH / GPU_WARP * GPU_MMA)
        for (int k = 0; k < PARTS; k++) {
            GpuTile w = {parts + k * PART_SIZE, LD_PART, across}, x = {rows + j, LD_ROW, false};
            gpu_mma(sum + j, LD_SUM, w, x, GPU_TILE);
        }
}
/* score [GPU_TILE][GPU_TILE] = q k', by the first warp. */
GPU_ON void gpu_scores(float *score, const uint16_t *q, const uint16_t *k, int depth) {
    GpuTile x = {q, LD_ROW, false}, y = {k, LD_ROW, true};
    if (GPU_THREAD < GPU_WARP) gpu_mma(score, LD_SCORE, x, y, depth);
}
GPU_ON void gpu_zero(float *x, int n) {
    for (int i = GPU_THREAD; i < n; i += GPU_WIDTH) x[i] = 0;
}
#endif
GPU_ON uint16_t GPU_FN(narrow_in)(GPU_FN(Line) row, int64_t i) {
    return row.half ? ((const uint16_t *)row.p)[i] : gpu_narrow((float)GPU_IN_ROW(row, i));
}
/* Rows t0 .. of head h of a tensor of queries, s0 .. of one of keys, as bf16; beyond the end, and
 * beyond a row, zeros. */
GPU_ON void GPU_FN(tile_queries)(const GpuArgs a, int which, int64_t h, int64_t t0, uint16_t *to) {
    int n = (int)a.k[which == 0 ? K_D : K_DV], all = gpu_padded(n);
    for (int i = GPU_THREAD; i < GPU_TILE * all; i += GPU_WIDTH) {
        int64_t t = t0 + i / all;
        bool in = t < GPU_T && i % all < n;
        to[i / all * LD_ROW + i % all] =
            in ? GPU_FN(narrow_in)(GPU_ROW_OF(which, GPU_FN(at_query)(a, a.x[which], h, t)),
                                   i % all)
               : 0;
    }
}
GPU_ON void GPU_FN(tile_keys)(const GpuArgs a, int which, int64_t h, int64_t s0, uint16_t *to) {
    int n = (int)a.k[which == 1 ? K_D : K_DV], all = gpu_padded(n);
    for (int i = GPU_THREAD; i < GPU_TILE * all; i += GPU_WIDTH) {
        int64_t s = s0 + i / all;
        bool in = s < a.k[K_KEYS] && i % all < n;
        to[i / all * LD_ROW + i % all] =
            in ? GPU_FN(narrow_in)(GPU_ROW_OF(which, GPU_FN(at_key)(a, which, h, s)), i % all) : 0;
    }
}
/* Does query t see key s? */
GPU_ON bool GPU_FN(sees)(const GpuArgs a, int64_t t, int64_t s) {
    return t < GPU_T && s < a.k[K_KEYS] && s >= GPU_FROM(t) && s < GPU_LIM(t);
}
/* The first key that any query of the block at t0 sees, and the one behind the last. */
typedef struct {
    int64_t from, lim;
} GPU_FN(Keys);
GPU_ON GPU_FN(Keys) GPU_FN(keys_of)(const GpuArgs a, int64_t t0) {
    GPU_FN(Keys) k = {a.k[K_KEYS], 0};
    for (int64_t t = t0; t < t0 + GPU_TILE && t < GPU_T; t++) {
        if (GPU_FROM(t) >= GPU_LIM(t)) continue;
        k.from = GPU_FROM(t) < k.from ? GPU_FROM(t) : k.from;
        k.lim = GPU_LIM(t) > k.lim ? GPU_LIM(t) : k.lim;
    }
    return k;
}
#define GPU_TILES(n) (((n) + GPU_TILE - 1) / GPU_TILE)

/* ---- forward: a block for GPU_TILE queries ---- */
/* Row i of the block: its scores become probabilities beside its largest so far, in parts, and what
 * there was is scaled to that. */
GPU_ON void GPU_FN(tile_softmax)(const GpuArgs a, int i, int64_t t, int64_t s0, float *score,
                                 uint16_t *parts, float *sum, double *state) {
    double top = state[i], most = top, all = 0;
    for (int j = 0; j < GPU_TILE; j++)
        if (GPU_FN(sees)(a, t, s0 + j)) {
            double z = GPU_FN(score)(a, (double)score[i * LD_SCORE + j]);
            most = gpu_join(most, z, true);
        }
    double less = top > -INFINITY ? exp(top - most) : 0;
    for (int j = 0; j < GPU_TILE; j++) {
        float e = 0;
        if (GPU_FN(sees)(a, t, s0 + j)) {
            double p = exp(GPU_FN(score)(a, (double)score[i * LD_SCORE + j]) - most);
            e = (float)p;
            all += p;
        }
        gpu_split(parts, i * LD_PART + j, e);
    }
    for (int j = 0; j < gpu_padded(a.k[K_DV]); j++)
        sum[i * LD_SUM + j] = (float)(sum[i * LD_SUM + j] * less);
    state[i] = most;
    state[GPU_TILE + i] = state[GPU_TILE + i] * less + all;
}
GPU_ON void GPU_FN(tile_out)(const GpuArgs a, int64_t h, int64_t t0, const float *sum,
                             const double *state) {
    int64_t dv = a.k[K_DV];
    for (int i = GPU_THREAD; i < GPU_TILE * dv; i += GPU_WIDTH) {
        int64_t t = t0 + i / dv, e = i % dv;
        double all = state[GPU_TILE + i / dv];
        if (t >= GPU_T) continue;
        GPU_REAL *y = (GPU_REAL *)a.out.p + GPU_FN(at_query)(a, a.out, h, t);
        y[e] = all > 0 ? (GPU_REAL)((double)sum[i / dv * LD_SUM + e] / all) : 0;
        if (a.k[K_PART] && !e) y[dv] = (GPU_REAL)(all > 0 ? state[i / dv] + log(all) : -0x1p100);
    }
}
GPU_KERNEL(attention_tiles) {
    GPU_SHARED(uint16_t, q, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, key, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, value, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, parts, PARTS * PART_SIZE);
    GPU_SHARED(float, score, GPU_TILE *LD_SCORE);
    GPU_SHARED(float, sum, GPU_TILE *LD_SUM);
    GPU_SHARED(double, state, 2 * GPU_TILE);
    int64_t tiles = GPU_TILES(GPU_T);
    GPU_EACH_ROW(r, gpu_count(&a, 0, 3) * tiles) {
        int64_t h = r / tiles, t0 = r % tiles * GPU_TILE;
        GPU_FN(Keys) k = GPU_FN(keys_of)(a, t0);
        GPU_FN(tile_queries)(a, 0, h, t0, q);
        gpu_zero(sum, GPU_TILE * LD_SUM);
        for (int i = GPU_THREAD; i < 2 * GPU_TILE; i += GPU_WIDTH)
            state[i] = i < GPU_TILE ? -INFINITY : 0;
        for (int64_t s0 = k.from; s0 < k.lim; s0 += GPU_TILE) {
            GPU_FN(tile_keys)(a, 1, h, s0, key);
            GPU_FN(tile_keys)(a, 2, h, s0, value);
            gpu_zero(score, GPU_TILE * LD_SCORE);
            GPU_BARRIER();
            gpu_scores(score, q, key, gpu_padded(a.k[K_D]));
            GPU_BARRIER();
            for (int i = GPU_THREAD; i < GPU_TILE; i += GPU_WIDTH)
                GPU_FN(tile_softmax)(a, i, t0 + i, s0, score, parts, sum, state);
            GPU_BARRIER();
            gpu_add_rows(sum, parts, false, value, gpu_padded(a.k[K_DV]));
            GPU_BARRIER();
        }
        GPU_BARRIER();
        GPU_FN(tile_out)(a, h, t0, sum, state);
        GPU_BARRIER();
    }
}

/* ---- adjoint ---- */
/* Of queries t0 .. and keys s0 .., whose products with each other and of cotangents with values are
 * there: probabilities or slopes, in parts. */
GPU_ON void GPU_FN(tile_pairs)(const GpuArgs a, int64_t h, int64_t t0, int64_t s0,
                               const float *score, const float *dp, uint16_t *parts, bool slopes) {
    const double *stats = (const double *)a.x[4].p;
    for (int e = GPU_THREAD; e < GPU_TILE * GPU_TILE; e += GPU_WIDTH) {
        int i = e / GPU_TILE, j = e % GPU_TILE;
        float w = 0;
        if (GPU_FN(sees)(a, t0 + i, s0 + j)) {
            GPU_FN(Pair)
            x = GPU_FN(pair)(a, h * GPU_T + t0 + i, (double)score[i * LD_SCORE + j],
                             (double)dp[i * LD_SCORE + j], stats);
            w = (float)(slopes ? x.ds : x.p);
        }
        gpu_split(parts, i * LD_PART + j, w);
    }
}
/* Towards q: a block for GPU_TILE queries. */
GPU_KERNEL(attention_tiles_q) {
    GPU_SHARED(uint16_t, q, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, d, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, key, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, value, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, parts, PARTS * PART_SIZE);
    GPU_SHARED(float, score, GPU_TILE *LD_SCORE);
    GPU_SHARED(float, dp, GPU_TILE *LD_SCORE);
    GPU_SHARED(float, sum, GPU_TILE *LD_SUM);
    int64_t tiles = GPU_TILES(GPU_T), n = a.k[K_D];
    GPU_EACH_ROW(r, gpu_count(&a, 0, 3) * tiles) {
        int64_t h = r / tiles, t0 = r % tiles * GPU_TILE;
        GPU_FN(Keys) k = GPU_FN(keys_of)(a, t0);
        GPU_FN(tile_queries)(a, 0, h, t0, q);
        GPU_FN(tile_queries)(a, 3, h, t0, d);
        gpu_zero(sum, GPU_TILE * LD_SUM);
        for (int64_t s0 = k.from; s0 < k.lim; s0 += GPU_TILE) {
            GPU_FN(tile_keys)(a, 1, h, s0, key);
            GPU_FN(tile_keys)(a, 2, h, s0, value);
            gpu_zero(score, GPU_TILE * LD_SCORE);
            gpu_zero(dp, GPU_TILE * LD_SCORE);
            GPU_BARRIER();
            gpu_scores(score, q, key, gpu_padded(n));
            gpu_scores(dp, d, value, gpu_padded(a.k[K_DV]));
            GPU_BARRIER();
            GPU_FN(tile_pairs)(a, h, t0, s0, score, dp, parts, true);
            GPU_BARRIER();
            gpu_add_rows(sum, parts, false, key, gpu_padded(n));
            GPU_BARRIER();
        }
        GPU_BARRIER();
        for (int i = GPU_THREAD; i < GPU_TILE * n; i += GPU_WIDTH)
            if (t0 + i / n < GPU_T)
                ((GPU_REAL *)a.out.p)[GPU_FN(at_query)(a, a.out, h, t0 + i / n) + i % n] =
                    (GPU_REAL)sum[i / n * LD_SUM + i % n];
        GPU_BARRIER();
    }
}
/* Towards k or v: a block for GPU_TILE keys, over the queries of all their heads. */
GPU_KERNEL(attention_tiles_kv) {
    GPU_SHARED(uint16_t, q, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, d, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, key, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, value, GPU_TILE * LD_ROW);
    GPU_SHARED(uint16_t, parts, PARTS * PART_SIZE);
    GPU_SHARED(float, score, GPU_TILE *LD_SCORE);
    GPU_SHARED(float, dp, GPU_TILE *LD_SCORE);
    GPU_SHARED(float, sum, GPU_TILE *LD_SUM);
    bool of_v = a.k[K_WHICH] == 2;
    int64_t groups = a.n[2], n = a.k[of_v ? K_DV : K_D], tiles = GPU_TILES(a.k[K_KEYS]);
    GPU_EACH_ROW(r, a.n[0] * a.n[1] * tiles) {
        int64_t bk = r / tiles, s0 = r % tiles * GPU_TILE, blocks = GPU_TILES(GPU_T);
        GPU_FN(tile_keys)(a, 1, bk * groups, s0, key);
        GPU_FN(tile_keys)(a, 2, bk * groups, s0, value);
        gpu_zero(sum, GPU_TILE * LD_SUM);
        for (int64_t b = 0; b < groups * blocks; b++) {
            int64_t h = bk * groups + b / blocks, t0 = b % blocks * GPU_TILE;
            GPU_FN(Keys) k = GPU_FN(keys_of)(a, t0);
            if (k.lim <= s0 || k.from >= s0 + GPU_TILE) continue;
            GPU_FN(tile_queries)(a, 0, h, t0, q);
            GPU_FN(tile_queries)(a, 3, h, t0, d);
            gpu_zero(score, GPU_TILE * LD_SCORE);
            gpu_zero(dp, GPU_TILE * LD_SCORE);
            GPU_BARRIER();
            gpu_scores(score, q, key, gpu_padded(a.k[K_D]));
            gpu_scores(dp, d, value, gpu_padded(a.k[K_DV]));
            GPU_BARRIER();
            GPU_FN(tile_pairs)(a, h, t0, s0, score, dp, parts, !of_v);
            GPU_BARRIER();
            gpu_add_rows(sum, parts, true, of_v ? d : q, gpu_padded(n));
            GPU_BARRIER();
        }
        GPU_BARRIER();
        for (int i = GPU_THREAD; i < GPU_TILE * n; i += GPU_WIDTH)
            if (s0 + i / n < a.k[K_KEYS])
                ((GPU_REAL *)a.out.p)[gpu_offset(&a, &a.out, 0, 3, bk * groups) +
                                      GPU_KEY(s0 + i / n) * a.out.s[3] + i % n] =
                    (GPU_REAL)sum[i / n * LD_SUM + i % n];
        GPU_BARRIER();
    }
}
