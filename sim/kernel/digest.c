/* Digests of blocks. See digest.h. */
#include "kernel/digest.h"
#include <math.h>
#include <string.h>

enum { LANES = 8, WORD = 8 };
static const uint64_t ODD = 0x9E3779B97F4A7C15u; /* splitmix64's */

/* Each step is a bijection of the lane and of the word, so what differs once stays apart. */
static void take(uint64_t lane[LANES], const uint64_t word[LANES]) {
    for (int i = 0; i < LANES; i++) {
        uint64_t x = (lane[i] ^ word[i]) * ODD;
        lane[i] = x ^ x >> 29;
    }
}
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}
Digest digest_bytes(const void *p, size_t n) {
    uint64_t lane[LANES], word[LANES];
    size_t i = 0;
    for (int k = 0; k < LANES; k++) lane[k] = ODD * (uint64_t)(k + 1);
    for (; i + sizeof word <= n; i += sizeof word) {
        memcpy(word, (const char *)p + i, sizeof word);
        take(lane, word);
    }
    memset(word, 0, sizeof word);
    if (n > i) memcpy(word, (const char *)p + i, n - i);
    take(lane, word);
    Digest d = {n, ~n};
    for (int k = 0; k < LANES; k++) {
        d.a = mix(d.a ^ lane[k]);
        d.b = mix(d.b * ODD + lane[k]);
    }
    return d;
}
int64_t digest_finite(const void *p, Dtype dt, int64_t n) {
    enum { BLOCK = 512 }; /* by one test of their exponents */
    int64_t i = 0;
    for (; i < n; i += BLOCK) {
        int m = n - i < BLOCK ? (int)(n - i) : BLOCK;
        uint32_t odd32 = 0;
        uint64_t odd64 = 0;
        if (dt == DT_F32) {
            const float *x = (const float *)p + i;
            for (int k = 0; k < m; k++) odd32 |= !(fabsf(x[k]) <= 0x1.fffffep127f);
        } else {
            const double *x = (const double *)p + i;
            for (int k = 0; k < m; k++) odd64 |= !(fabs(x[k]) <= 0x1.fffffffffffffp1023);
        }
        if (odd32 || odd64) return i;
    }
    return n;
}
