/* Kernels of attention.c and of ring.c's parts, without a matrix of scores. The space is [batch,
 * key head, query head of it, queries]; tensors' strides for queries stand in dim 3, those of rows
 * of keys and values in k. Which queries and keys there are is a table: the queries' local rows,
 * the first key that each sees and the one behind its last, the keys' local rows. Elements of a row
 * lie side by side. Operands q, k, v, the cotangent, and what _stats wrote. */
#include "gpu/lang.h"

#ifndef GPU_ATTENTION
#define GPU_ATTENTION
enum { GPU_WIDEST = 1024 }; /* elements of a row */
/* k[]: number of keys; widths of a key and a value; strides of rows of keys and values; does a
 * result have its lse behind it?; adjoints: stride of queries of the cotangent; of a key's: v, not
 * k */
enum { K_KEYS, K_D, K_DV, K_KS, K_VS, K_PART, K_DO, K_WHICH };
#endif
#define GPU_T a.n[3]
#define GPU_QUERY(t) a.table[t]
#define GPU_FROM(t) a.table[GPU_T + (t)]
#define GPU_LIM(t) a.table[2 * GPU_T + (t)]
#define GPU_KEY(s) a.table[3 * GPU_T + (s)]
/* Where row t of head h begins in a tensor of queries, row s in one of keys. */
GPU_ON int64_t GPU_FN(at_query)(const GpuArgs a, const GpuTensor x, int64_t h, int64_t t) {
    return gpu_offset(&a, &x, 0, 3, h) + GPU_QUERY(t) * x.s[3];
}
GPU_ON int64_t GPU_FN(at_key)(const GpuArgs a, int which, int64_t h, int64_t s) {
    return gpu_offset(&a, &a.x[which], 0, 3, h) + GPU_KEY(s) * a.k[which == 1 ? K_KS : K_VS];
}
/* A row of an operand: where it begins in it. */
typedef struct {
    const void *p;
    bool half;
} GPU_FN(Line);
GPU_ON GPU_FN(Line) GPU_FN(line_of)(const GpuTensor x, int64_t o) {
    return (GPU_FN(Line)){(const char *)x.p + o * (int64_t)(x.half ? 2 : sizeof(GPU_REAL)), x.half};
}
#define GPU_ROW_OF(i, o) (GPU_FN(line_of)(a.x[i], o))
#define GPU_IN_ROW(row, i) ((GPU_REAL)GPU_NUMBER(row, i))
/* Of a row in shared memory and one of an operand. */
GPU_ON double GPU_FN(dot)(const GPU_REAL *x, GPU_FN(Line) y, int64_t n) {
    GPU_REAL sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * GPU_IN_ROW(y, i);
    return (double)sum;
}
/* A row into shared memory, by all threads. */
GPU_ON void GPU_FN(take)(GPU_REAL *to, GPU_FN(Line) from, int64_t n) {
    for (int64_t i = GPU_THREAD; i < n; i += GPU_WIDTH) to[i] = GPU_IN_ROW(from, i);
    GPU_BARRIER();
}

/* What a product of a query and a key is as a score; a[0]: the scale, a[1]: the cap, 0: none. */
GPU_ON double GPU_FN(score)(const GpuArgs a, double dot) {
    double z = a.a[0] * dot;
    return a.a[1] > 0 ? a.a[1] * tanh(z / a.a[1]) : z;
}

/* ---- forward: a block for a query; a running maximum and sum over tiles of keys ---- */
GPU_KERNEL(attention) {
    GPU_SHARED(GPU_REAL, q, GPU_WIDEST);
    GPU_SHARED(GPU_REAL, o, GPU_WIDEST);
    GPU_SHARED(GPU_REAL, p, 1024);
    GPU_PARTS(part);
    GPU_EACH_ROW(r, gpu_count(&a, 0, 4)) {
        int64_t h = r / GPU_T, t = r % GPU_T, dv = a.k[K_DV];
        double top = -INFINITY, sum = 0;
        GPU_FN(take)(q, GPU_ROW_OF(0, GPU_FN(at_query)(a, a.x[0], h, t)), a.k[K_D]);
        for (int64_t i = GPU_THREAD; i < dv; i += GPU_WIDTH) o[i] = 0;
        for (int64_t s0 = GPU_FROM(t); s0 < GPU_LIM(t); s0 += GPU_WIDTH) {
            int64_t s = s0 + GPU_THREAD,
                    n = GPU_LIM(t) - s0 < GPU_WIDTH ? GPU_LIM(t) - s0 : GPU_WIDTH;
            double z =
                GPU_THREAD < n
                    ? GPU_FN(score)(
                          a, GPU_FN(dot)(q, GPU_ROW_OF(1, GPU_FN(at_key)(a, 1, h, s)), a.k[K_D]))
                    : -INFINITY;
            double most = gpu_join(top, gpu_all(z, true, part), true),
                   e = GPU_THREAD < n ? exp(z - most) : 0, less = sum > 0 ? exp(top - most) : 0;
            p[GPU_THREAD] = (GPU_REAL)e;
            sum = sum * less + gpu_all(e, false, part);
            top = most;
            for (int64_t i = GPU_THREAD; i < dv; i += GPU_WIDTH) {
                GPU_REAL v = (GPU_REAL)(o[i] * less);
                for (int64_t k = 0; k < n; k++)
                    v += p[k] * GPU_IN_ROW(GPU_ROW_OF(2, GPU_FN(at_key)(a, 2, h, s0 + k)), i);
                o[i] = v;
            }
            GPU_BARRIER();
        }
        GPU_REAL *y = (GPU_REAL *)a.out.p + GPU_FN(at_query)(a, a.out, h, t);
        for (int64_t i = GPU_THREAD; i < dv; i += GPU_WIDTH)
            y[i] = sum > 0 ? (GPU_REAL)(o[i] / sum) : 0;
        if (a.k[K_PART] && !GPU_THREAD)
            y[dv] = (GPU_REAL)(GPU_FROM(t) < GPU_LIM(t) ? top + log(sum) : -0x1p100);
        GPU_BARRIER();
    }
}

/* ---- adjoint: of each query the lse and D = do o, in double, [2][queries of all heads] ---- */
GPU_ON void GPU_FN(put_stats)(const GpuArgs a, int64_t r, double lse, double D) {
    double *stats = (double *)a.out.p;
    stats[r] = lse;
    stats[gpu_count(&a, 0, 4) + r] = D;
}
GPU_KERNEL(attention_stats) {
    GPU_SHARED(GPU_REAL, q, GPU_WIDEST);
    GPU_SHARED(GPU_REAL, d, GPU_WIDEST);
    GPU_PARTS(part);
    GPU_EACH_ROW(r, gpu_count(&a, 0, 4)) {
        int64_t h = r / GPU_T, t = r % GPU_T;
        double top = -INFINITY, sum = 0, D = 0;
        GPU_FN(take)(q, GPU_ROW_OF(0, GPU_FN(at_query)(a, a.x[0], h, t)), a.k[K_D]);
        GPU_FN(take)(d, GPU_ROW_OF(3, GPU_FN(at_query)(a, a.x[3], h, t)), a.k[K_DV]);
        for (int64_t s0 = GPU_FROM(t); s0 < GPU_LIM(t); s0 += GPU_WIDTH) {
            int64_t s = s0 + GPU_THREAD;
            bool in = s < GPU_LIM(t);
            double z =
                in ? GPU_FN(score)(
                         a, GPU_FN(dot)(q, GPU_ROW_OF(1, GPU_FN(at_key)(a, 1, h, s)), a.k[K_D]))
                   : -INFINITY;
            double dp =
                in ? GPU_FN(dot)(d, GPU_ROW_OF(2, GPU_FN(at_key)(a, 2, h, s)), a.k[K_DV]) : 0;
            double most = gpu_join(top, gpu_all(z, true, part), true), e = in ? exp(z - most) : 0,
                   less = sum > 0 ? exp(top - most) : 0;
            sum = sum * less + gpu_all(e, false, part);
            D = D * less + gpu_all(e * dp, false, part);
            top = most;
        }
        if (!GPU_THREAD) GPU_FN(put_stats)(a, r, top + log(sum), sum > 0 ? D / sum : 0);
        GPU_BARRIER();
    }
}
/* Of a part: the result that the cotangent belongs to, operand 2, has the lse behind it; the
 * cotangent of that one counts against D. */
GPU_KERNEL(attention_part_stats) {
    GPU_PARTS(part);
    GPU_EACH_ROW(r, gpu_count(&a, 0, 4)) {
        int64_t h = r / GPU_T, t = r % GPU_T, dv = a.k[K_DV];
        GPU_FN(Line)
        o = GPU_ROW_OF(2, GPU_FN(at_query)(a, a.x[2], h, t)),
        d = GPU_ROW_OF(3, GPU_FN(at_query)(a, a.x[3], h, t));
        double D = 0;
        for (int64_t i = GPU_THREAD; i < dv; i += GPU_WIDTH)
            D += GPU_NUMBER(o, i) * GPU_NUMBER(d, i);
        D = gpu_all(D, false, part) - GPU_NUMBER(d, dv);
        if (!GPU_THREAD) GPU_FN(put_stats)(a, r, GPU_NUMBER(o, dv), D);
    }
}
/* p and ds = p (dp - D) scale of query t and key s, whose product is given; of a capped score times
 * the slope of its tanh. */
typedef struct {
    double p, ds;
} GPU_FN(Pair);
GPU_ON GPU_FN(Pair)
    GPU_FN(pair)(const GpuArgs a, int64_t r, double dot, double dp, const double *stats) {
    double z = GPU_FN(score)(a, dot), p = exp(z - stats[r]), t = a.a[1] > 0 ? z / a.a[1] : 0;
    return (GPU_FN(Pair)){p, p * (dp - stats[gpu_count(&a, 0, 4) + r]) * a.a[0] * (1 - t * t)};
}
/* Towards q: a block for a query. */
GPU_KERNEL(attention_q) {
    GPU_SHARED(GPU_REAL, q, GPU_WIDEST);
    GPU_SHARED(GPU_REAL, d, GPU_WIDEST);
    GPU_SHARED(GPU_REAL, sum, GPU_WIDEST);
    GPU_SHARED(GPU_REAL, w, 1024);
    const double *stats = (const double *)a.x[4].p;
    GPU_EACH_ROW(r, gpu_count(&a, 0, 4)) {
        int64_t h = r / GPU_T, t = r % GPU_T, n_d = a.k[K_D];
        GPU_FN(take)(q, GPU_ROW_OF(0, GPU_FN(at_query)(a, a.x[0], h, t)), n_d);
        GPU_FN(take)(d, GPU_ROW_OF(3, GPU_FN(at_query)(a, a.x[3], h, t)), a.k[K_DV]);
        for (int64_t i = GPU_THREAD; i < n_d; i += GPU_WIDTH) sum[i] = 0;
        for (int64_t s0 = GPU_FROM(t); s0 < GPU_LIM(t); s0 += GPU_WIDTH) {
            int64_t s = s0 + GPU_THREAD,
                    n = GPU_LIM(t) - s0 < GPU_WIDTH ? GPU_LIM(t) - s0 : GPU_WIDTH;
            w[GPU_THREAD] = 0;
            if (GPU_THREAD < n)
                w[GPU_THREAD] =
                    (GPU_REAL)GPU_FN(pair)(
                        a, r, GPU_FN(dot)(q, GPU_ROW_OF(1, GPU_FN(at_key)(a, 1, h, s)), n_d),
                        GPU_FN(dot)(d, GPU_ROW_OF(2, GPU_FN(at_key)(a, 2, h, s)), a.k[K_DV]), stats)
                        .ds;
            GPU_BARRIER();
            for (int64_t i = GPU_THREAD; i < n_d; i += GPU_WIDTH)
                for (int64_t k = 0; k < n; k++)
                    sum[i] += w[k] * GPU_IN_ROW(GPU_ROW_OF(1, GPU_FN(at_key)(a, 1, h, s0 + k)), i);
            GPU_BARRIER();
        }
        GPU_REAL *y = (GPU_REAL *)a.out.p + GPU_FN(at_query)(a, a.out, h, t);
        for (int64_t i = GPU_THREAD; i < n_d; i += GPU_WIDTH) y[i] = sum[i];
        GPU_BARRIER();
    }
}
/* Towards k or v: a block for a key, over the queries of all its heads. */
GPU_KERNEL(attention_kv) {
    GPU_SHARED(GPU_REAL, key, GPU_WIDEST);
    GPU_SHARED(GPU_REAL, value, GPU_WIDEST);
    GPU_SHARED(GPU_REAL, sum, GPU_WIDEST);
    GPU_SHARED(GPU_REAL, w, 1024);
    const double *stats = (const double *)a.x[4].p;
    bool of_v = a.k[K_WHICH] == 2;
    int64_t groups = a.n[2], width = a.k[of_v ? K_DV : K_D];
    GPU_EACH_ROW(r, a.n[0] * a.n[1] * a.k[K_KEYS]) {
        int64_t bk = r / a.k[K_KEYS], s = r % a.k[K_KEYS];
        GPU_FN(take)(key, GPU_ROW_OF(1, GPU_FN(at_key)(a, 1, bk * groups, s)), a.k[K_D]);
        GPU_FN(take)(value, GPU_ROW_OF(2, GPU_FN(at_key)(a, 2, bk * groups, s)), a.k[K_DV]);
        for (int64_t i = GPU_THREAD; i < width; i += GPU_WIDTH) sum[i] = 0;
        for (int64_t q0 = 0; q0 < groups * GPU_T; q0 += GPU_WIDTH) {
            int64_t at = q0 + GPU_THREAD, h = bk * groups + at / GPU_T, t = at % GPU_T,
                    n = groups * GPU_T - q0 < GPU_WIDTH ? groups * GPU_T - q0 : GPU_WIDTH;
            w[GPU_THREAD] = 0;
            if (GPU_THREAD < n && s >= GPU_FROM(t) && s < GPU_LIM(t)) {
                GPU_FN(Pair)
                x = GPU_FN(pair)(
                    a, h * GPU_T + t,
                    GPU_FN(dot)(key, GPU_ROW_OF(0, GPU_FN(at_query)(a, a.x[0], h, t)), a.k[K_D]),
                    GPU_FN(dot)(value, GPU_ROW_OF(3, GPU_FN(at_query)(a, a.x[3], h, t)), a.k[K_DV]),
                    stats);
                w[GPU_THREAD] = (GPU_REAL)(of_v ? x.p : x.ds);
            }
            GPU_BARRIER();
            for (int64_t k = 0; k < n; k++) {
                int64_t hk = bk * groups + (q0 + k) / GPU_T, tk = (q0 + k) % GPU_T;
                GPU_FN(Line)
                row = of_v ? GPU_ROW_OF(3, GPU_FN(at_query)(a, a.x[3], hk, tk))
                           : GPU_ROW_OF(0, GPU_FN(at_query)(a, a.x[0], hk, tk));
                if (s >= GPU_FROM(tk) && s < GPU_LIM(tk))
                    for (int64_t i = GPU_THREAD; i < width; i += GPU_WIDTH)
                        sum[i] += w[k] * GPU_IN_ROW(row, i);
            }
            GPU_BARRIER();
        }
        GPU_REAL *y = (GPU_REAL *)a.out.p + gpu_offset(&a, &a.out, 0, 3, bk * groups) +
                      GPU_KEY(s) * a.out.s[3];
        for (int64_t i = GPU_THREAD; i < width; i += GPU_WIDTH) y[i] = sum[i];
        GPU_BARRIER();
    }
}
