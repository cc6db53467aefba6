/* Random numbers that are a function of (seed, name of the tensor, global index): how a tensor is
 * cut, or in which order its parts are made, cannot change them. Philox4x32-10 with the block
 * number and the name as counter, the seed as key. Values lie on a grid of 24-bit whole numbers
 * times a power of two: the float32 and the float64 are the same number. */
#include "weights/weights.h"
#include <assert.h>
#include <Random123/philox.h>
#if defined __x86_64__
#include <immintrin.h>
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, BLOCK = 4 }; /* blocks made at a time; numbers per block */

/* FNV-1a, then a finaliser: close names give unrelated streams. */
static uint64_t hash_name(const char *s) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

static void philox_block(const RandomStream *r, uint64_t block, uint32_t out[BLOCK]) {
    philox4x32_ctr_t c = {{(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)r->stream,
                           (uint32_t)(r->stream >> 32)}};
    philox4x32_key_t k = {{(uint32_t)r->seed, (uint32_t)(r->seed >> 32)}};
    c = philox4x32(c, k);
    for (int i = 0; i < BLOCK; i++) out[i] = c.v[i];
}

/* LANES consecutive blocks; out[i * BLOCK + j] is number j of block first + i. */
static void philox_lanes(const RandomStream *r, uint64_t first, uint32_t *out) {
    for (int i = 0; i < LANES; i++) philox_block(r, first + (uint64_t)i, out + i * BLOCK);
}

#if defined __x86_64__
/* The same with four blocks to a vector: 64-bit lanes that hold a word each in their lower half
 * (what is above it does not matter to the multiplication). Two vectors at a time, since one waits
 * for each of its multiplications. tests/test_weights.c holds it to Random123's own function. */
__attribute__((target("avx2"))) static void philox_eight(const RandomStream *r, uint64_t first,
                                                         uint32_t *out) {
    enum { V = 2 };
    const __m256i m0 = _mm256_set1_epi64x(PHILOX_M4x32_0), m1 = _mm256_set1_epi64x(PHILOX_M4x32_1);
    const __m256i w0 = _mm256_set1_epi64x(PHILOX_W32_0), w1 = _mm256_set1_epi64x(PHILOX_W32_1);
    const __m256i word = _mm256_set1_epi64x(UINT32_MAX);
    __m256i c0[V], c1[V], c2[V], c3[V], k0 = _mm256_set1_epi64x((uint32_t)r->seed),
                                        k1 = _mm256_set1_epi64x((int64_t)(r->seed >> 32));
    for (int v = 0; v < V; v++) {
        c0[v] = _mm256_add_epi64(_mm256_set1_epi64x((int64_t)first + 4 * v),
                                 _mm256_set_epi64x(3, 2, 1, 0));
        c1[v] = _mm256_srli_epi64(c0[v], 32);
        c2[v] = _mm256_set1_epi64x((int64_t)r->stream);
        c3[v] = _mm256_srli_epi64(c2[v], 32);
    }
    for (int round = 0; round < philox4x32_rounds; round++) {
        for (int v = 0; v < V; v++) {
            __m256i p0 = _mm256_mul_epu32(c0[v], m0), p1 = _mm256_mul_epu32(c2[v], m1);
            c0[v] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1[v]), k0);
            c2[v] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3[v]), k1);
            c1[v] = p1;
            c3[v] = p0;
        }
        k0 = _mm256_and_si256(_mm256_add_epi64(k0, w0), word);
        k1 = _mm256_and_si256(_mm256_add_epi64(k1, w1), word);
    }
    /* Words 0 and 1 of each block side by side, then 2 and 3; then block after block. */
    for (int v = 0; v < V; v++) {
        __m256i low = _mm256_blend_epi32(c0[v], _mm256_slli_epi64(c1[v], 32), 0xaa);
        __m256i high = _mm256_blend_epi32(c2[v], _mm256_slli_epi64(c3[v], 32), 0xaa);
        __m256i even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high);
        __m256i *to = (__m256i *)out + (ptrdiff_t)2 * v;
        _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
        _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
    }
}

__attribute__((target("avx2"))) static void philox_lanes_avx2(const RandomStream *r, uint64_t first,
                                                              uint32_t *out) {
    for (int i = 0; i < LANES; i += 8) philox_eight(r, first + (uint64_t)i, out + i * BLOCK);
}

#define WIDE __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw")))
/* Eight blocks to a vector, two vectors at a time. */
WIDE static void philox_lanes_avx512(const RandomStream *r, uint64_t first, uint32_t *out) {
    const __m512i m0 = _mm512_set1_epi64(PHILOX_M4x32_0), m1 = _mm512_set1_epi64(PHILOX_M4x32_1);
    __m512i c0[2], c1[2], c2[2], c3[2];
    for (int v = 0; v < 2; v++) {
        c0[v] = _mm512_add_epi64(_mm512_set1_epi64((int64_t)first + 8 * v),
                                 _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
        c1[v] = _mm512_srli_epi64(c0[v], 32);
        c2[v] = _mm512_set1_epi64((int64_t)r->stream);
        c3[v] = _mm512_srli_epi64(c2[v], 32);
    }
    uint32_t k0 = (uint32_t)r->seed, k1 = (uint32_t)(r->seed >> 32);
    for (int round = 0; round < philox4x32_rounds; round++) {
        for (int v = 0; v < 2; v++) {
            __m512i p0 = _mm512_mul_epu32(c0[v], m0), p1 = _mm512_mul_epu32(c2[v], m1);
            c0[v] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(p1, 32), c1[v]),
                                     _mm512_set1_epi64(k0));
            c2[v] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(p0, 32), c3[v]),
                                     _mm512_set1_epi64(k1));
            c1[v] = p1;
            c3[v] = p0;
        }
        k0 += PHILOX_W32_0;
        k1 += PHILOX_W32_1;
    }
    const __m512i near = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0),
                  far = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    for (int v = 0; v < 2; v++) {
        __m512i low = _mm512_mask_blend_epi32(0xaaaa, c0[v], _mm512_slli_epi64(c1[v], 32));
        __m512i high = _mm512_mask_blend_epi32(0xaaaa, c2[v], _mm512_slli_epi64(c3[v], 32));
        __m512i even = _mm512_unpacklo_epi64(low, high), odd = _mm512_unpackhi_epi64(low, high);
        _mm512_storeu_si512(out + 32 * v, _mm512_permutex2var_epi64(even, near, odd));
        _mm512_storeu_si512(out + 32 * v + 16, _mm512_permutex2var_epi64(even, far, odd));
    }
}
#endif

/* What turns 32 random bits into a value: (centre + bits * span / 2^32) * step, in whole numbers
 * but for the last. */
typedef struct {
    uint32_t span;  /* number of grid points */
    int32_t lowest; /* first of them */
    float step;     /* a power of two */
} Grid;

enum { LEAST_INTEGER = 1, INTEGERS = 4 }; /* no zeros, which would hide what is left out */

static Grid grid_of(const RandomStream *r) {
    int e;
    if (r->integers) return (Grid){INTEGERS, LEAST_INTEGER, 1};
    frexp(fabs(r->mean) + r->scale,
          &e); /* all values are below 2^e: 2^24 steps of 2^(e-24) either way */
    double step = ldexp(1, e - 24);
    int32_t half = (int32_t)lrint(r->scale / step), centre = (int32_t)lrint(r->mean / step);
    return (Grid){(uint32_t)half * 2 + 1, centre - half, (float)step};
}

static inline int32_t grid_point(Grid g, uint32_t bits) {
    return g.lowest + (int32_t)((uint64_t)bits * g.span >> 32);
}

/* n numbers from the bits; each product is exact in float32 and so the same in float64. */
static inline __attribute__((always_inline)) void
store(Grid g, const uint32_t *restrict bits, int64_t n, Dtype dtype, void *out, int64_t at) {
    if (dtype == DT_F32) {
        float *restrict y = (float *)out + at;
        for (int64_t i = 0; i < n; i++) y[i] = (float)grid_point(g, bits[i]) * g.step;
    } else {
        double *restrict y = (double *)out + at;
        for (int64_t i = 0; i < n; i++) y[i] = (double)grid_point(g, bits[i]) * (double)g.step;
    }
}

static void store_plain(Grid g, const uint32_t *bits, int64_t n, Dtype dtype, void *out,
                        int64_t at) {
    store(g, bits, n, dtype, out, at);
}
#if defined __x86_64__
/* Eight at a time: the products of even words, then of odd ones. */
__attribute__((target("avx2"))) static void store_avx2(Grid g, const uint32_t *bits, int64_t n,
                                                       Dtype dtype, void *out, int64_t at) {
    int64_t i = 0;
    if (dtype == DT_F32) {
        const __m256i span = _mm256_set1_epi64x(g.span), lowest = _mm256_set1_epi32(g.lowest);
        const __m256 step = _mm256_set1_ps(g.step);
        float *y = (float *)out + at;
        for (; i + 8 <= n; i += 8) {
            __m256i b = _mm256_loadu_si256((const __m256i *)(bits + i));
            __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(b, span), 32);
            __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(b, 32), span);
            __m256i point = _mm256_add_epi32(_mm256_blend_epi32(even, odd, 0xaa), lowest);
            _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_cvtepi32_ps(point), step));
        }
    }
    store(g, bits + i, n - i, dtype, out, at + i);
}
WIDE static void store_avx512(Grid g, const uint32_t *bits, int64_t n, Dtype dtype, void *out,
                              int64_t at) {
    store(g, bits, n, dtype, out, at);
}
#endif

/* The same numbers at the speed of this processor, where n fill its lanes. */
typedef struct {
    void (*lanes)(const RandomStream *r, uint64_t first, uint32_t *out);
    void (*store)(Grid g, const uint32_t *bits, int64_t n, Dtype dtype, void *out, int64_t at);
} Maker;
static Maker best_maker(int64_t n) {
    if (n < LANES * BLOCK) return (Maker){philox_lanes, store_plain};
#if defined __x86_64__
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    /* see kernel/isa.c: valgrind */
    if (wide && !getenv("SHARDPROOF_ISA")) return (Maker){philox_lanes_avx512, store_avx512};
    if (__builtin_cpu_supports("avx2")) return (Maker){philox_lanes_avx2, store_avx2};
#endif
    return (Maker){philox_lanes, store_plain};
}

/* The bits of elements from `at` on: as many as lie in one run of lanes, at most n. Returns how
 * many. */
static int64_t random_bits(const RandomStream *r, const Maker *maker, int64_t at, int64_t n,
                           uint32_t bits[LANES * BLOCK], const uint32_t **from) {
    int64_t skip = at % BLOCK, have;
    if (skip == 0 && n >= LANES * BLOCK) {
        maker->lanes(r, (uint64_t)(at / BLOCK), bits);
        have = LANES * BLOCK;
    } else {
        philox_block(r, (uint64_t)(at / BLOCK), bits);
        have = BLOCK - skip;
    }
    *from = bits + skip;
    return have < n ? have : n;
}

void random_fill(const RandomStream *r, int64_t first, int64_t n, Dtype dtype, void *out) {
    assert(dtype == DT_F32 || dtype == DT_F64);
    Grid g = grid_of(r);
    Maker maker = best_maker(n);
    uint32_t bits[LANES * BLOCK];
    for (int64_t i = 0; i < n;) {
        const uint32_t *from;
        int64_t k = random_bits(r, &maker, first + i, n - i, bits, &from);
        maker.store(g, from, k, dtype, out, i);
        i += k;
    }
}

/* 32 random bits: for bounds up to 2^32, which no vocabulary reaches, no value is favoured by more
 * than bound / 2^32. */
void random_ints(const RandomStream *r, int64_t first, int64_t n, int64_t bound, int64_t *out) {
    assert(first >= 0 && n >= 0);
    assert(bound > 0);
    uint64_t b = bound > UINT32_MAX ? UINT32_MAX : (uint64_t)bound;
    Maker maker = best_maker(n);
    uint32_t bits[LANES * BLOCK];
    for (int64_t i = 0; i < n;) {
        const uint32_t *from;
        int64_t k = random_bits(r, &maker, first + i, n - i, bits, &from);
        for (int64_t j = 0; j < k; j++) out[i + j] = (int64_t)(from[j] * b >> 32);
        i += k;
    }
}

/* ---- which numbers a tensor gets ---- */

/* Terms that are added up over this parameter where it is used: the letters that its uses contract.
 * A lookup contracts its letter by index and adds nothing up. */
static double fan_in(const Graph *g, int tensor) {
    double most = 1;
    for (int i = 0; i < g->nn; i++) {
        const GNode *n = &g->node[i];
        bool lookup = false;
        for (int k = 0; k < n->nin; k++) lookup |= g->t[n->in[k]].is_int;
        for (int k = 0; k < n->nin && !lookup; k++) {
            double terms = 1;
            if (n->in[k] != tensor) continue;
            for (int l = 0; l < n->rule.nl[k]; l++)
                if (rule_find_out(&n->rule, n->rule.in[k][l]) < 0)
                    terms *= (double)g->t[tensor].size[l];
            if (terms > most) most = terms;
        }
    }
    return most;
}

RandomStream random_stream(const Graph *g, int tensor, uint64_t seed) {
    const GTensor *t = &g->t[tensor];
    RandomStream r = {.seed = seed, .stream = hash_name(t->name)};
    /* A little off centre, differently for every tensor: exact symmetry hides mistakes. */
    double skew = 0.02 + 0.03 * (double)(r.stream >> 40) / 0x1p24;
    if (t->kind == KIND_INPUT) {
        r.scale = sqrt(3); /* unit variance */
        r.mean = skew;
    } else if (t->nd >= 1 && t->module >= 0 && g->module[t->module].bias == tensor) {
        r.scale = 0.1;
        r.mean = skew;
    } else if (t->nd == 1) { /* the weight of a norm */
        r.scale = 0.25;
        r.mean = 1 + skew;
    } else {
        r.scale = sqrt(3 / fan_in(g, tensor));
        r.mean = skew * r.scale;
    }
    return r;
}
