/* The comparison of blocks: the quick pass over quiet rows may lose nothing that a plain loop would
 * see, whatever the number of workers, the strides and the place of the wrong element. */
#include "exec/compare.h"
#include "ops/util.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

enum { ROWS = 301, COLS = 777, N = ROWS * COLS };
typedef struct {
    float *got;
    double *want, *bound, *prob;
    CompareBlock b;
} Case;
static double uniform(uint64_t *s) {
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (double)(*s >> 11) * 0x1p-53 - 0.5;
}
static Case make(uint64_t seed, int64_t pad) {
    Case c = {.got = calloc((size_t)ROWS * (size_t)(COLS + pad), sizeof *c.got),
              .want = calloc(N, 8),
              .bound = calloc(N, 8),
              .prob = calloc(N, 8)};
    for (int64_t i = 0; i < N; i++) {
        c.want[i] = uniform(&seed) * exp(8 * uniform(&seed));
        c.got[i / COLS * (COLS + pad) + i % COLS] = (float)c.want[i];
        c.bound[i] = 0x1p-20 * fabs(c.want[i]) + 0x1p-60;
        c.prob[i] = c.bound[i] / 4;
    }
    c.b = (CompareBlock){.dt = DT_F32, .bound = c.bound, .prob = c.prob};
    c.b.want = (Tensor){.nd = 2, .n = {ROWS, COLS}, .s = {COLS, 1}, .p = c.want};
    c.b.got = (Tensor){.nd = 2, .n = {ROWS, COLS}, .s = {COLS + pad, 1}, .p = c.got};
    return c;
}
static void drop(Case *c) {
    free(c->got);
    free(c->want);
    free(c->bound);
    free(c->prob);
}
/* The plain loop. */
static CompareSeen plain(const Case *c) {
    CompareSeen s = {.first = -1};
    for (int64_t i = 0; i < N; i++) {
        double g = c->got[i / COLS * c->b.got.s[0] + i % COLS], w = c->want[i],
               e = g == w ? 0 : fabs(g - w), b = c->bound[i];
        if (isnan(e)) e = INFINITY;
        double used = e > 0 ? e / b : 0;
        s.max_abs = fmax(s.max_abs, e);
        if (w != 0) s.max_rel = fmax(s.max_rel, e / fabs(w));
        if (used > s.used || (used == s.used && b > s.bound)) s.used = used, s.bound = b;
        if (e > b) {
            s.worst = fmax(s.worst, e);
            if (s.first < 0) s.first = i, s.got = g, s.want = w;
        } else if (e > c->prob[i]) s.odd = true;
    }
    return s;
}
static void same(const CompareSeen *a, const CompareSeen *b) {
    assert_true(a->max_abs == b->max_abs);
    assert_true(a->max_rel == b->max_rel);
    assert_true(a->used == b->used);
    assert_true(a->bound == b->bound);
    assert_true(a->worst == b->worst);
    assert_int_equal(a->first, b->first);
    assert_int_equal(a->odd, b->odd);
    if (a->first >= 0)
        assert_true(a->want == b->want && (a->got == b->got || (isnan(a->got) && isnan(b->got))));
}
static void all_ways(const Case *c) {
    CompareSeen want = plain(c);
    for (int threads = 0; threads <= 3; threads++) {
        Pool *pool = threads ? pool_new(threads) : NULL;
        CompareSeen s = compare_rows(&c->b, pool);
        same(&s, &want);
        pool_free(pool);
    }
}
static void test_rounding_only(void **state) {
    (void)state;
    for (int64_t pad = 0; pad < 2; pad++) {
        Case c = make(7, 5 * pad);
        all_ways(&c);
        drop(&c);
    }
}
static void
test_all_equal(void **state) { /* the largest bound is reported even if no element differs */
    (void)state;
    Case c = make(8, 0);
    for (int64_t i = 0; i < N; i++) c.want[i] = (double)c.got[i];
    all_ways(&c);
    CompareSeen s = compare_rows(&c.b, NULL);
    assert_true(s.used == 0 && s.bound > 0);
    drop(&c);
}
/* One wrong element anywhere: at the ends of rows, of the pieces of a row and of the workers'
 * shares. */
static void test_one_wrong(void **state) {
    (void)state;
    static const int64_t at[] = {
        0, 1, 255, 256, 257, 511, 512, 776, 777, 19 * COLS, 19 * COLS - 1, 150 * COLS + 300, N - 1};
    Case c = make(9, 0);
    for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
        float old = c.got[at[k]];
        c.got[at[k]] = (float)(c.want[at[k]] * (1 + 0x1p-18)); /* four times its bound */
        CompareSeen s = compare_rows(&c.b, NULL);
        assert_int_equal(s.first, at[k]);
        all_ways(&c);
        c.got[at[k]] = (float)(c.want[at[k]] * (1 + 0x1p-21)); /* half of it: odd */
        s = compare_rows(&c.b, NULL);
        assert_int_equal(s.first, -1);
        assert_true(s.odd);
        c.got[at[k]] = NAN;
        all_ways(&c);
        c.got[at[k]] = old;
    }
    c.want[5] = INFINITY; /* the run overflowed where it should: equal */
    c.got[5] = INFINITY;
    CompareSeen s = compare_rows(&c.b, NULL);
    assert_int_equal(s.first, -1);
    drop(&c);
}
static void test_bits(void **state) { /* -0 and +0 are different bits, a NaN equals itself */
    (void)state;
    Case c = make(10, 3);
    float *want = calloc(N, sizeof *want);
    for (int64_t i = 0; i < N; i++) want[i] = c.got[i / COLS * (COLS + 3) + i % COLS];
    want[1000] = c.got[1000 / COLS * (COLS + 3) + 1000 % COLS] = NAN;
    c.b.bits = true;
    c.b.want.p = want;
    CompareSeen s = compare_rows(&c.b, NULL);
    assert_int_equal(s.first, -1);
    assert_true(s.max_abs == 0);
    want[2000] = 0;
    c.got[2000 / COLS * (COLS + 3) + 2000 % COLS] = -0.0f;
    Pool *pool = pool_new(2);
    s = compare_rows(&c.b, pool);
    pool_free(pool);
    assert_int_equal(s.first, 2000);
    assert_true(isinf(s.used));
    free(want);
    drop(&c);
}
/* Bounds as products of two magnitudes show what arrays of the same bounds show, bit by bit: rows
 * of the factors that are the block's, parts of them, and several of them. */
static void test_factors(void **state) {
    (void)state;
    static const int64_t cols[] = {COLS, 7, 111, 3 * COLS, 1};
    for (size_t k = 0; k < sizeof cols / sizeof *cols; k++) {
        Case c = make(11 + k, 4 * (int64_t)(k % 2));
        const int64_t rows = (N + cols[k] - 1) / cols[k];
        uint64_t seed = 5;
        ErrorFactors f = {.row = calloc((size_t)rows, 8),
                          .col = calloc((size_t)cols[k], 8),
                          .cols = cols[k],
                          .g = 0x1p-20,
                          .p = 0x1p-22,
                          .tiny = 0x1p-60};
        for (int64_t i = 0; i < rows; i++) f.row[i] = 1e-3 + fabs(uniform(&seed));
        for (int64_t i = 0; i < cols[k]; i++) f.col[i] = 1e-3 + fabs(uniform(&seed));
        for (int64_t i = 0; i < N; i++) {
            const double most = f.row[i / f.cols] * f.col[i % f.cols];
            c.bound[i] = most * f.g + f.tiny, c.prob[i] = most * f.p + f.tiny;
            /* near its bound, and beyond it now and then */
            c.want[i] = most, c.got[i / COLS * c.b.got.s[0] + i % COLS] =
                                  (float)(most * (1 + 0x1.01p-20 * (i % 5003 == 17 ? 1 : 0.01)));
        }
        const CompareSeen want = plain(&c);
        assert_true(want.first >= 0 && want.odd);
        all_ways(&c);
        c.b.factors = &f, c.b.bound = c.b.prob = NULL;
        for (int threads = 0; threads <= 3; threads++) {
            Pool *pool = threads ? pool_new(threads) : NULL;
            const CompareSeen s = compare_rows(&c.b, pool);
            same(&s, &want);
            pool_free(pool);
        }
        free(f.row);
        free(f.col);
        drop(&c);
    }
}
static void test_nothing(void **state) {
    (void)state;
    CompareBlock b = {.dt = DT_F32};
    b.got = b.want = (Tensor){.nd = 2, .n = {0, 4}, .s = {4, 1}};
    CompareSeen s = compare_rows(&b, NULL);
    assert_int_equal(s.first, -1);
    double one = 1, two = 2;
    b = (CompareBlock){.dt = DT_F64};
    b.got.p = &one;
    b.want.p = &two;
    s = compare_rows(&b, NULL);
    assert_int_equal(s.first, 0); /* a scalar */
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding_only), cmocka_unit_test(test_all_equal),
        cmocka_unit_test(test_one_wrong),     cmocka_unit_test(test_bits),
        cmocka_unit_test(test_factors),       cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
