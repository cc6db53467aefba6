/* Kernels of GPUs, run here: each against its op on the host, over sizes that nothing divides; that
 * planted mistakes of barriers and indices are seen; plain products by their descriptors. */
#include "base/arena.h"
#include "launch/launch.h"
#include "support/emulate.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define GPU_REAL double
#define GPU_SUFFIX _planted
#include "gpu/lang.h"

/* ---- the emulation itself ---- */
GPU_DECLARE(turned);
GPU_DECLARE(turned_early);
GPU_DECLARE(half_waits);
GPU_DECLARE(one_too_far);
/* Each thread writes one element and reads that of another. */
GPU_DECLARE(turned) {
    GPU_SHARED(double, x, 64);
    x[GPU_THREAD] = GPU_X(0, GPU_THREAD);
    GPU_BARRIER();
    GPU_Y(GPU_BLOCK * 64 + GPU_THREAD) = x[GPU_WIDTH - 1 - GPU_THREAD];
}
GPU_DECLARE(turned_early) { /* the barrier is missing */
    GPU_SHARED(double, x, 64);
    x[GPU_THREAD] = GPU_X(0, GPU_THREAD);
    GPU_Y(GPU_BLOCK * 64 + GPU_THREAD) = x[GPU_WIDTH - 1 - GPU_THREAD];
}
GPU_DECLARE(half_waits) {
    if (GPU_THREAD < 40) GPU_BARRIER();
    GPU_Y(GPU_THREAD) = GPU_X(0, GPU_THREAD);
}
GPU_DECLARE(one_too_far) { GPU_EACH(e, a.n[0] + 1) GPU_Y(e) = GPU_X(0, 0); }
static void test_planted_mistakes(void **state) {
    (void)state;
    double in[64], out[128];
    for (int i = 0; i < 64; i++) in[i] = i;
    GpuArgs a = {.nd = 1, .n = {64}, .out = {.p = out}, .x = {{.p = in}}};
    assert_null(emulated_run(turned, &a, 2, 64, true));
    for (int i = 0; i < 128; i++) assert_true(out[i] == 63 - i % 64);
    assert_null(emulated_run(turned_early, &a, 2, 64, true));
    int wrong[2] = {0};
    for (int i = 0; i < 128; i++) wrong[i / 64] += !(out[i] == 63 - i % 64);
    assert_true(wrong[0] == 32 &&
                wrong[1] == 32); /* whichever comes first reads what is not there */
    assert_non_null(emulated_run(half_waits, &a, 1, 64, true));
    out[64] = -1;
    a.k[0] = 0;
    assert_null(emulated_run(one_too_far, &a, 1, 32, false));
    assert_true(out[64] == 0); /* what fence_give finds behind a block */
}
static void warp_sum(const GpuArgs a) {
    GPU_PARTS(part);
    double all = gpu_all(GPU_X(0, GPU_THREAD), a.k[0], part);
    GPU_Y(GPU_THREAD) = all;
}
static void test_shuffles(void **state) {
    (void)state;
    double in[96], out[96];
    for (int i = 0; i < 96; i++) in[i] = (i * 37) % 96;
    for (int max = 0; max < 2; max++)
        for (int threads = 32; threads <= 96; threads += 32) {
            double want = 0;
            GpuArgs a = {.out = {.p = out}, .x = {{.p = in}}, .k = {max}};
            for (int i = 0; i < threads; i++) want = max ? fmax(want, in[i]) : want + in[i];
            assert_null(emulated_run(warp_sum, &a, 1, threads, true));
            for (int i = 0; i < threads; i++) assert_true(out[i] == want);
        }
}

/* ---- products of matrices by a warp ---- */
enum { ROWS = 16, DEPTH = 32, LD_IN = 40, LD_OUT = 20 };
/* Operand 0 [ROWS][DEPTH] and 1 [DEPTH][ROWS] as bf16 tiles, in rows or across, by two warps that
 * both make the whole; k[2]: the second barrier is missing, k[3]: half a warp stays away. */
static void tiles(const GpuArgs a) {
    GPU_SHARED(uint16_t, x, DEPTH * LD_IN);
    GPU_SHARED(uint16_t, y, DEPTH * LD_IN);
    GPU_SHARED(float, c, 2 * ROWS * LD_OUT);
    for (int e = GPU_THREAD; e < ROWS * DEPTH; e += GPU_WIDTH) {
        int i = e / DEPTH, k = e % DEPTH;
        x[a.k[0] ? k * LD_IN + i : i * LD_IN + k] = gpu_narrow((float)GPU_X(0, i * DEPTH + k));
        y[a.k[1] ? i * LD_IN + k : k * LD_IN + i] = gpu_narrow((float)GPU_X(1, k * ROWS + i));
    }
    for (int e = GPU_THREAD; e < 2 * ROWS * LD_OUT; e += GPU_WIDTH) c[e] = (float)e;
    GPU_BARRIER();
    GpuTile p = {x, LD_IN, a.k[0] != 0}, q = {y, LD_IN, a.k[1] != 0};
    float *own = c + GPU_THREAD / GPU_WARP * ROWS * LD_OUT;
    if (!a.k[3] || GPU_THREAD % GPU_WARP < 16) gpu_mma(own, LD_OUT, p, q, DEPTH);
    if (!a.k[2]) GPU_BARRIER();
    for (int e = GPU_THREAD; e < 2 * ROWS * LD_OUT; e += GPU_WIDTH) GPU_Y(e) = (double)c[e];
}
static double wrong_tiles(const int64_t *k, const char **stuck) {
    static double x[ROWS * DEPTH], y[DEPTH * ROWS], out[2 * ROWS * LD_OUT];
    double off = 0;
    for (int e = 0; e < ROWS * DEPTH; e++) x[e] = (e * 37) % 61 - 30, y[e] = (e * 53) % 47 - 20;
    GpuArgs a = {.out = {.p = out}, .x = {{.p = x}, {.p = y}}};
    memcpy(a.k, k, 4 * sizeof *k);
    *stuck = emulated_run(tiles, &a, 1, 64, true);
    for (int e = 0; e < 2 * ROWS * LD_OUT; e++) {
        int i = e / LD_OUT % ROWS, j = e % LD_OUT;
        double want = e;
        for (int d = 0; d < DEPTH && j < ROWS; d++) want += x[i * DEPTH + d] * y[d * ROWS + j];
        off = fmax(off, fabs(out[e] - want)); /* whole numbers: exact */
    }
    return off;
}
static void test_tiles(void **state) {
    (void)state;
    const char *stuck;
    for (int64_t i = 0; i < 4; i++) {
        assert_true(wrong_tiles((const int64_t[]){i & 1, i >> 1, 0, 0}, &stuck) == 0);
        assert_null(stuck);
        assert_true(wrong_tiles((const int64_t[]){i & 1, i >> 1, 1, 0}, &stuck) > 0);
        wrong_tiles((const int64_t[]){i & 1, i >> 1, 0, 1}, &stuck);
        assert_non_null(stuck);
    }
}

/* ---- products ---- */
static Rule rule_of(const char *text) {
    Rule r;
    const char *error;
    int at;
    assert_true(rule_parse(text, &r, &error, &at));
    return r;
}
static int64_t size_of(char ch) {
    static const int64_t prime[] = {2, 3, 5, 7, 11, 13};
    return ch == 'b' ? 3 : ch == 't' ? 7 : ch == 'd' ? 5 : ch == 'f' ? 11 : prime[ch % 6];
}
static Tensor tensor_of(const char *letters, int n) {
    Tensor t = {.nd = n};
    for (int d = 0; d < n; d++) t.n[d] = size_of(letters[d]);
    tensor_pack(&t);
    return t;
}
/* Which contractions are one plain product, and which are not. */
static void test_products(void **state) {
    (void)state;
    static const struct {
        const char *rule;
        bool plain;
        int64_t m, n, k, batch;
    } rows[] = {{"btd,fd->btf", true, 3 * 7, 11, 5, 1}, {"btf,btd->fd", true, 11, 5, 21, 1},
                {"btf,fd->btd", true, 21, 5, 11, 1},    {"btf,btf->btf", false, 0, 0, 0, 0},
                {"btd->", false, 0, 0, 0, 0},           {"btd,btd->", false, 0, 0, 0, 0},
                {"bted,efd->btef", true, 21, 11, 5, 13}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Rule r = rule_of(rows[i].rule);
        OpCall c = {.rule = &r, .dtype = DT_F64, .out = tensor_of(r.out, r.nout)};
        for (int k = 0; k < r.nin; k++) c.in[k] = tensor_of(r.in[k], r.nl[k]);
        GpuGemm g;
        bool plain = launch_gemm_of(&c, &g);
        if (plain != rows[i].plain) fail_msg("%s", rows[i].rule);
        if (!plain) continue;
        assert_int_equal(g.m * g.n, rows[i].m * rows[i].n);
        assert_int_equal(g.k, rows[i].k);
        assert_int_equal(g.batch, rows[i].batch);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_mistakes), cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_tiles), cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
