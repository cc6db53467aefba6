/* Tests of sim/kernel: products bit by bit against a naive fma loop, the same bits from every
 * instruction set, accuracy of the element-wise functions, attention against a naive double version
 * and under slicing, and the thread pool. It measures no speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "kernel/attention.h"
#include "kernel/columns.h"
#include "kernel/digest.h"
#include "kernel/gemm.h"
#include "kernel/isa.h"
#include "kernel/pool.h"
#include "kernel/vec.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const isas[] = {"generic", "avx2", "avx512"};
enum { N_ISAS = 3 };

static uint64_t rng_state = 1;
static uint64_t rng(void) {
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return rng_state >> 33;
}
static int64_t pick(int64_t n) { return (int64_t)(rng() % (uint64_t)n); }
static double real(void) { return (double)rng() / 1073741824.0 - 1; }

static int64_t bits_f32(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return x != x ? -1 : (int64_t)u;
}
static int64_t bits_f64(double x) {
    int64_t u;
    memcpy(&u, &x, sizeof u);
    return x != x ? -1 : u;
}
/* Bit equality; any NaN equals any NaN (which of two NaNs an fma returns is the processor's
 * business). */
#define SAME_BITS(R, n, a, b)                                                                      \
    for (int64_t i_ = 0; i_ < (int64_t)(n); i_++)                                                  \
        if (bits_##R((a)[i_]) != bits_##R((b)[i_])) {                                              \
            print_error("%s: element %lld: %a is not %a\n", kernel_isa(), (long long)i_,           \
                        (double)(a)[i_], (double)(b)[i_]);                                         \
            fail();                                                                                \
        }

/* Valgrind computes long double as double: too coarse a reference then, and everything is slow. */
static bool emulated(void) {
    volatile long double one = 1;
    return one + 1e-18L == one;
}

/* ---- matrix product ---- */

/* A matrix of rows x cols somewhere in a buffer, reached by strides or tables. */
typedef struct {
    int64_t rows, cols, size; /* size of the buffer in elements */
    int64_t *row, *col;       /* always filled: the reference uses them */
    GemmView view;
} Matrix;

static void shuffle(int64_t *t, int64_t n) {
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = pick(i + 1), x = t[i];
        t[i] = t[j];
        t[j] = x;
    }
}

/* kind 0 row major, 1 column major, 2 strided both ways, 3 shuffled tables, 4 rows backwards and
 * columns in runs of 24, by tables, 5 tables that are strides. */
static Matrix matrix(int64_t rows, int64_t cols, int kind) {
    int64_t pad = pick(3);
    Matrix m = {.rows = rows, .cols = cols};
    int64_t rs = kind == 1   ? 1
                 : kind == 2 ? 2 * cols + 3
                             : cols + pad,
            cs = kind == 1   ? rows + pad
                 : kind == 2 ? 2
                             : 1;
    m.size = rows * rs + cols * cs + 64 + 2 * cols;
    m.row = malloc((size_t)(rows + 1) * sizeof(int64_t));
    m.col = malloc((size_t)(cols + 1) * sizeof(int64_t));
    for (int64_t i = 0; i < rows; i++) m.row[i] = i * rs;
    for (int64_t i = 0; i < cols; i++) m.col[i] = i * cs;
    if (kind == 3) {
        shuffle(m.row, rows);
        shuffle(m.col, cols);
    }
    if (kind == 4) {
        for (int64_t i = 0; i < rows; i++) m.row[i] = (rows - 1 - i) * (2 * cols + 24);
        for (int64_t i = 0; i < cols; i++) m.col[i] = i + i / 24 % 2 * (cols + 1);
        m.size = (rows + 1) * (2 * cols + 24) + 2 * cols + 64;
    }
    bool tables = kind >= 3;
    m.view = gemm_strided(NULL, rs, cs);
    if (tables) m.view.row = m.row, m.view.col = m.col;
    return m;
}
static void matrix_free(Matrix *m) {
    free(m->row);
    free(m->col);
}

static int64_t some_size(int64_t most) {
    static const int64_t list[] = {0, 1, 2, 3, 5, 7, 16, 17, 31, 33, 64, 100, 383, 384, 385, 769};
    int64_t s = list[pick(16)];
    return s < most ? s : most;
}

#define GEMM_TEST(R, T, FMA)                                                                       \
    static T *buffer_##R(int64_t n, int special) {                                                 \
        static const T odd[] = {                                                                   \
            0, (T)-0.0, (T)INFINITY, (T)-INFINITY, (T)NAN, (T)1e-40, (T)-1e-44};                   \
        T *p = malloc((size_t)(n + 1) * sizeof(T));                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            p[i] = special && pick(20) == 0 ? odd[pick(7)] : (T)real();                            \
        return p;                                                                                  \
    }                                                                                              \
    static void naive_##R(const Matrix *a, const Matrix *b, const Matrix *c, const T *pa,          \
                          const T *pb, T *pc) {                                                    \
        for (int64_t i = 0; i < a->rows; i++)                                                      \
            for (int64_t j = 0; j < b->rows; j++) {                                                \
                T sum = 0;                                                                         \
                for (int64_t k0 = 0; k0 < a->cols; k0 += GEMM_KB) {                                \
                    T acc = 0;                                                                     \
                    for (int64_t k = k0; k < a->cols && k < k0 + GEMM_KB; k++)                     \
                        acc = FMA(pa[a->row[i] + a->col[k]], pb[b->row[j] + b->col[k]], acc);      \
                    sum = k0 == 0 ? acc : sum + acc;                                               \
                }                                                                                  \
                pc[c->row[i] + c->col[j]] = sum;                                                   \
            }                                                                                      \
    }                                                                                              \
    static void gemm_case_##R(int64_t M, int64_t N, int64_t K, int special) {                      \
        Matrix a = matrix(M, K, (int)pick(6)), b = matrix(N, K, (int)pick(6)),                     \
               c = matrix(M, N, (int)pick(6));                                                     \
        T *pa = buffer_##R(a.size, special), *pb = buffer_##R(b.size, special),                    \
          *want = buffer_##R(c.size, 0);                                                           \
        T *got = malloc((size_t)(c.size + 1) * sizeof(T)),                                         \
          *start = malloc((size_t)(c.size + 1) * sizeof(T));                                       \
        memcpy(start, want,                                                                        \
               (size_t)c.size * sizeof(T)); /* what lies between the elements of C must stay */    \
        naive_##R(&a, &b, &c, pa, pb, want);                                                       \
        a.view.p = pa, b.view.p = pb, c.view.p = got;                                              \
        for (int s = 0; s < N_ISAS; s++) {                                                         \
            if (!kernel_select(isas[s])) continue;                                                 \
            memcpy(got, start, (size_t)c.size * sizeof(T));                                        \
            gemm_##R(M, N, K, &a.view, &b.view, &c.view);                                          \
            SAME_BITS(R, c.size, got, want)                                                        \
        }                                                                                          \
        free(pa), free(pb), free(want), free(got), free(start);                                    \
        matrix_free(&a), matrix_free(&b), matrix_free(&c);                                         \
    }                                                                                              \
    static void test_gemm_##R(void **state) {                                                      \
        (void)state;                                                                               \
        for (int n = 0, cases = emulated() ? 60 : 600; n < cases; n++) {                           \
            int64_t M = some_size(769), N = some_size(M > 0 ? 60000 / M + 1 : 769);                \
            int64_t K = some_size(M * N > 0 ? 300000 / (M * N) + 2 : 769);                         \
            int64_t s[3] = {M, N, K};                                                              \
            shuffle(s, 3);                                                                         \
            gemm_case_##R(s[0], s[1], s[2], n % 10 == 9);                                          \
        }                                                                                          \
        gemm_case_##R(300, 40, 400, 0);                    /* several blocks of rows */            \
        gemm_case_##R(250, 1100, 3, 0);                    /* and of columns */                    \
        if (!emulated()) gemm_case_##R(290, 1030, 390, 0); /* of all three: A is kept */           \
        gemm_case_##R(1, 1, 1000, 0);                                                              \
        kernel_select("auto");                                                                     \
    }                                                                                              \
    static void test_gemm_slices_##R(void **state) {                                               \
        (void)state;                                                                               \
        enum { M = 70, N = 90, K = 500 };                                                          \
        T *a = buffer_##R(M * K, 0), *b = buffer_##R(N * K, 0);                                    \
        T *whole = buffer_##R(M * N, 0), *c = buffer_##R(M * N, 0);                                \
        GemmView va = gemm_strided(a, K, 1), vb = gemm_strided(b, K, 1),                           \
                 vw = gemm_strided(whole, N, 1);                                                   \
        gemm_##R(M, N, K, &va, &vb, &vw);                                                          \
        for (int n = 0; n < 30; n++) {                                                             \
            int64_t i = pick(M), m = 1 + pick(M - i), j = pick(N), w = 1 + pick(N - j);            \
            GemmView sa = gemm_strided(a + i * K, K, 1), sb = gemm_strided(b + j * K, K, 1);       \
            GemmView sc = gemm_strided(c, w, 1), st = gemm_strided(c, 1, m);                       \
            gemm_##R(m, w, K, &sa, &sb, n % 2 ? &sc : &st);                                        \
            for (int64_t r = 0; r < m; r++)                                                        \
                for (int64_t t = 0; t < w; t++) {                                                  \
                    T x = c[n % 2 ? r * w + t : t * m + r];                                        \
                    SAME_BITS(R, 1, &x, whole + (i + r) * N + j + t)                               \
                }                                                                                  \
        }                                                                                          \
        free(a), free(b), free(whole), free(c);                                                    \
    }
GEMM_TEST(f32, float, fmaf)
GEMM_TEST(f64, double, fma)
/* Operands of gemm_f64 that are float32 give the bits of their float64 copies. */
static void gemm_floats_case(int64_t M, int64_t N, int64_t K, int special, bool fa, bool fb) {
    Matrix a = matrix(M, K, (int)pick(6)), b = matrix(N, K, (int)pick(6)),
           c = matrix(M, N, (int)pick(6));
    float *xa = buffer_f32(a.size, special), *xb = buffer_f32(b.size, special);
    double *pa = malloc((size_t)(a.size + 1) * sizeof *pa),
           *pb = malloc((size_t)(b.size + 1) * sizeof *pb), *want = buffer_f64(c.size, 0),
           *got = malloc((size_t)(c.size + 1) * sizeof *got);
    memcpy(got, want, (size_t)c.size * sizeof *got);
    for (int64_t i = 0; i < a.size; i++) pa[i] = xa[i];
    for (int64_t i = 0; i < b.size; i++) pb[i] = xb[i];
    naive_f64(&a, &b, &c, pa, pb, want);
    a.view.p = fa ? (void *)xa : pa, b.view.p = fb ? (void *)xb : pb, c.view.p = got;
    a.view.floats = fa, b.view.floats = fb;
    for (int s = 0; s < N_ISAS; s++) {
        if (!kernel_select(isas[s])) continue;
        gemm_f64(M, N, K, &a.view, &b.view, &c.view);
        SAME_BITS(f64, c.size, got, want)
    }
    free(pa), free(pb), free(want), free(got), free(xa), free(xb);
    matrix_free(&a), matrix_free(&b), matrix_free(&c);
}
static void test_gemm_of_floats(void **state) {
    (void)state;
    for (int n = 0, cases = emulated() ? 60 : 300; n < cases; n++) {
        int64_t M = some_size(769), N = some_size(M > 0 ? 60000 / M + 1 : 769),
                K = some_size(M * N > 0 ? 300000 / (M * N) + 2 : 769);
        gemm_floats_case(M, N, K, n % 10 == 9, n % 3 != 1, n % 3 != 2);
    }
    gemm_floats_case(300, 40, 400, 0, true, true);
    gemm_floats_case(1, 1100, 385, 0, true, false);
    kernel_select("auto");
}

/* ---- element-wise and rows ---- */

static long double ref_exp(long double x) { return expl(x); }
static long double ref_sigmoid(long double x) { return 1 / (1 + expl(-x)); }
static long double ref_silu(long double x) { return x / (1 + expl(-x)); }
static long double ref_gelu(long double x) { return x * erfcl(-x / sqrtl(2)) / 2; }

typedef struct {
    const char *name;
    void (*f32)(int64_t, const float *, float *);
    void (*f64)(int64_t, const double *, double *);
    long double (*ref)(long double);
    double lo, hi, ulp32, ulp64;
} Function;
static const Function functions[] = {
    {"exp", vec_exp_f32, vec_exp_f64, ref_exp, -110, 95, 1.01, 1.5},
    {"exp near 0", vec_exp_f32, vec_exp_f64, ref_exp, -1, 1, 1.01, 1.5},
    {"exp wide", vec_exp_f32, vec_exp_f64, ref_exp, -760, 720, 1.01, 1.5},
    {"sigmoid", vec_sigmoid_f32, vec_sigmoid_f64, ref_sigmoid, -120, 40, 2.6, 3},
    {"silu", vec_silu_f32, vec_silu_f64, ref_silu, -87, 40, 3.1, 3.5},
    {"gelu", vec_gelu_f32, vec_gelu_f64, ref_gelu, -10, 10, 0.6, 8},
    {"gelu tail", vec_gelu_f32, vec_gelu_f64, ref_gelu, -36, -10, 0.6, 8},
};

/* Distance in units of the last place of the type with `digits` bits of mantissa and least exponent
 * `least`. */
static double ulps(long double got, long double want, int digits, int least) {
    int e;
    if (got == want) return 0;
    (void)frexpl(want, &e);
    int place = e - digits < least ? least : e - digits;
    return (double)(fabsl(got - want) / ldexpl(1, place));
}

static void test_vec_accuracy(void **state) {
    (void)state;
    enum { N = 20001 };
    static float x32[N], y32[N];
    static double x64[N], y64[N];
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        const Function *fn = &functions[f];
        double worst32 = 0, worst64 = 0;
        for (int i = 0; i < N; i++) {
            x64[i] = fn->lo + (fn->hi - fn->lo) * i / (N - 1) + real() * 1e-4;
            x32[i] = (float)x64[i];
        }
        fn->f32(N, x32, y32);
        fn->f64(N, x64, y64);
        for (int i = 0; i < N; i++) {
            long double want32 = fn->ref(x32[i]), want64 = fn->ref(x64[i]);
            if (isinf((float)want32)) assert_true(isinf(y32[i]));
            else worst32 = fmax(worst32, ulps(y32[i], want32, 24, -149));
            if (isinf((double)want64)) assert_true(isinf(y64[i]));
            else worst64 = fmax(worst64, ulps(y64[i], want64, 53, -1074));
        }
        if (worst32 > fn->ulp32 || (worst64 > fn->ulp64 && !emulated()) || getenv("KERNEL_VERBOSE"))
            print_message("%s: f32 %.3f ulp, f64 %.3f ulp\n", fn->name, worst32, worst64);
        assert_true(worst32 <= fn->ulp32);
        if (!emulated()) assert_true(worst64 <= fn->ulp64);
    }
}

static void test_vec_edges(void **state) {
    (void)state;
    const float x[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, 88.73f, -104, -1e30f, 1e30f, 88.72f};
    const double z[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 709.79, -745.2, -1e300, 1e300, 709.78};
    float y[10];
    double w[10];
    vec_exp_f32(10, x, y);
    assert_true(isnan(y[0]) && isinf(y[1]) && y[2] == 0 && y[3] == 1 && y[4] == 1 && isinf(y[5]));
    assert_true(y[6] == 0 && y[7] == 0 && isinf(y[8]) && !isinf(y[9]));
    vec_exp_f64(10, z, w);
    assert_true(isnan(w[0]) && isinf(w[1]) && w[2] == 0 && w[3] == 1 && w[4] == 1 && isinf(w[5]));
    assert_true(w[6] == 0 && w[7] == 0 && isinf(w[8]) && !isinf(w[9]));
    vec_silu_f32(10, x, y);
    assert_true(isnan(y[0]) && y[1] == INFINITY && y[3] == 0 && y[7] == 0 && y[8] == 1e30f);
    vec_silu_f64(10, z, w);
    assert_true(isnan(w[0]) && w[1] == INFINITY && w[3] == 0 && w[7] == 0 && w[8] == 1e300);
    vec_sigmoid_f32(10, x, y);
    assert_true(isnan(y[0]) && y[1] == 1 && y[2] == 0 && y[3] == 0.5f && y[7] == 0 && y[8] == 1);
    vec_gelu_f32(10, x, y);
    assert_true(isnan(y[0]) && y[1] == INFINITY && y[3] == 0 && y[7] == 0 && y[8] == 1e30f);
    vec_gelu_f64(10, z, w);
    assert_true(isnan(w[0]) && w[1] == INFINITY && w[3] == 0 && w[7] == 0 && w[8] == 1e300);
    assert_true(vec_max_f32(0, x) == -INFINITY && vec_sum_f32(0, x) == 0 &&
                vec_dot_f64(0, z, z) == 0);
    vec_softmax_f32(0, y, 1);
}

/* Every row function on n elements of x (and z), one after the other into out (14 n elements and
 * some). */
#define VEC_ALL(R, T)                                                                              \
    static int64_t all_##R(int64_t n, const T *x, const T *z, T *out) {                            \
        T *o = out;                                                                                \
        vec_exp_##R(n, x, o), o += n;                                                              \
        vec_silu_##R(n, x, o), o += n;                                                             \
        vec_silu_mul_##R(n, x, z, o), o += n;                                                      \
        vec_sigmoid_##R(n, x, o), o += n;                                                          \
        vec_gelu_##R(n, x, o), o += n;                                                             \
        vec_rmsnorm_##R(n, x, z, (T)1e-5, o), o += n;                                              \
        vec_add_##R(n, x, z, o), o += n;                                                           \
        memcpy(o, x, (size_t)n * sizeof(T)), vec_softmax_##R(n, o, (T)0.7), o += n;                \
        memcpy(o, x, (size_t)n * sizeof(T)), memcpy(o + n, z, (size_t)n * sizeof(T));              \
        kernel_current()->R->softgrad(n, o, o + n, (T)3, (T)0.3), o += 2 * n;                      \
        *o++ = vec_sum_##R(n, x), *o++ = vec_dot_##R(n, x, z), *o++ = vec_max_##R(n, x);           \
        return o - out;                                                                            \
    }                                                                                              \
    static void test_vec_isas_##R(void **state) {                                                  \
        (void)state;                                                                               \
        static T x[300], z[300], want[5000], got[5000];                                            \
        for (int64_t n = 0; n < 130; n++) {                                                        \
            T big = n % 3 == 0 ? 100 : 5;                                                          \
            for (int64_t i = 0; i < n; i++) x[i] = (T)real() * big, z[i] = (T)real();              \
            if (n % 7 == 6)                                                                        \
                x[pick(n)] = (T)NAN, x[pick(n)] = (T)INFINITY, z[pick(n)] = (T)-0.0,               \
                x[0] = (T)1e-42;                                                                   \
            kernel_select("generic");                                                              \
            int64_t count = all_##R(n, x, z, want);                                                \
            for (int s = 1; s < N_ISAS; s++) {                                                     \
                if (!kernel_select(isas[s])) continue;                                             \
                all_##R(n, x, z, got);                                                             \
                SAME_BITS(R, count, got, want)                                                     \
            }                                                                                      \
        }                                                                                          \
        kernel_select("auto");                                                                     \
    }                                                                                              \
    static void test_columns_##R(void **state) { /* columns.h: the same bits, lane by lane */      \
        (void)state;                                                                               \
        static T x[COLUMN_ROWS][100];                                                              \
        static double c[2][100], want[303], got[303];                                              \
        for (int64_t n = 0; n < 100; n++) {                                                        \
            double weight[2 * COLUMN_ROWS], lane[3][8] = {{0}};                                    \
            const int rows = 1 + (int)(n % COLUMN_ROWS);                                           \
            const T *row[COLUMN_ROWS];                                                             \
            memset(want, 0, sizeof want);                                                          \
            for (int64_t i = 0; i < n; i++) c[0][i] = real(), c[1][i] = real();                    \
            for (int r = 0; r < rows; r++) {                                                       \
                row[r] = x[r], weight[2 * r] = real(), weight[2 * r + 1] = real();                 \
                for (int64_t i = 0; i < n; i++) {                                                  \
                    double v = (double)(x[r][i] = (T)real());                                      \
                    want[i] += weight[2 * r] * v, want[101 + i] += weight[2 * r + 1] * v;          \
                    want[202 + i] += v * v;                                                        \
                }                                                                                  \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                      \
                double v = (double)x[0][i], of[3] = {c[0][i] * v, c[1][i] * v, v * v};             \
                for (int k = 0; k < 3; k++) lane[k][i % 8] += of[k];                               \
            }                                                                                      \
            for (int k = 0; k < 3; k++)                                                            \
                for (int h = 4; h > 0; h /= 2)                                                     \
                    for (int i = 0; i < h; i++) lane[k][i] += lane[k][i + h];                      \
            for (int s = 0; s < N_ISAS; s++) {                                                     \
                if (!kernel_select(isas[s])) continue;                                             \
                double out[3] = {0};                                                               \
                const double *const column[2] = {c[0], c[1]};                                      \
                columns_dot_##R(n, x[0], column, out);                                             \
                for (int k = 0; k < 3; k++) SAME_BITS(f64, 1, &out[k], &lane[k][0])                \
                memset(got, 0, sizeof got);                                                        \
                columns_add_##R(n, rows, row, weight, &(ColumnSums){{got, got + 101}, got + 202}); \
                SAME_BITS(f64, 303, got, want)                                                     \
            }                                                                                      \
        }                                                                                          \
        kernel_select("auto");                                                                     \
    }                                                                                              \
    static void test_vec_lanes_##R(void **state) { /* the order of sums that vec.h promises */     \
        (void)state;                                                                               \
        T x[100], lane[16];                                                                        \
        for (int64_t n = 0; n <= 100; n++) {                                                       \
            for (int i = 0; i < 16; i++) lane[i] = 0;                                              \
            for (int64_t i = 0; i < n; i++) x[i] = (T)real(), lane[i % 16] += x[i];                \
            for (int h = 8; h > 0; h /= 2)                                                         \
                for (int i = 0; i < h; i++) lane[i] += lane[i + h];                                \
            T got = vec_sum_##R(n, x);                                                             \
            SAME_BITS(R, 1, &got, lane)                                                            \
        }                                                                                          \
        T sum = 0, y[100];                                                                         \
        memcpy(y, x, sizeof x);                                                                    \
        vec_softmax_##R(100, y, 2);                                                                \
        for (int i = 0; i < 100; i++) sum += y[i];                                                 \
        double ratio = exp(2.0 * ((double)x[3] - (double)x[7]));                                   \
        assert_true(fabs((double)sum - 1) < 1e-5 &&                                                \
                    fabs((double)(y[3] / y[7]) - ratio) < 1e-4 * ratio);                           \
    }
VEC_ALL(f32, float)
VEC_ALL(f64, double)

/* ---- attention ---- */

/* A small attention problem in double; f32 runs use rounded copies. */
enum { AT_T = 150, AT_S = 900, AT_D = 20 };
typedef struct {
    int64_t nt, ns, d, w; /* w: width of values */
    int64_t chunk;        /* 0: none */
    double q[AT_S * AT_D], k[AT_S * AT_D], v[AT_S * AT_D], d_o[AT_S * AT_D];
    int64_t query_pos[AT_S];
    double scale;
} Problem;

static Problem *problem(int64_t nt, int64_t ns, int64_t d, int64_t w, int64_t chunk) {
    Problem *p = malloc(sizeof *p);
    p->nt = nt, p->ns = ns, p->d = d, p->w = w, p->chunk = chunk, p->scale = 1 / sqrt((double)d);
    for (int i = 0; i < AT_S * AT_D; i++) {
        p->q[i] = (float)(3 * real()), p->k[i] = (float)(3 * real());
        p->v[i] = (float)real(), p->d_o[i] = (float)real();
    }
    for (int64_t t = 0; t < nt; t++) p->query_pos[t] = pick(ns + 1) - 1; /* -1 sees nothing */
    return p;
}

/* Textbook forward and backward in double. P [ns] is one row. */
static void naive_attention(const Problem *p, double *o, double *dq, double *dk, double *dv) {
    static double P[AT_S], dP[AT_S];
    int64_t d = p->d, w = p->w;
    memset(o, 0, (size_t)(p->nt * w) * sizeof *o);
    memset(dq, 0, (size_t)(p->nt * d) * sizeof *dq);
    memset(dk, 0, (size_t)(p->ns * d) * sizeof *dk);
    memset(dv, 0, (size_t)(p->ns * w) * sizeof *dv);
    for (int64_t t = 0; t < p->nt; t++) {
        double most = -INFINITY, l = 0, D = 0;
        int64_t n = p->query_pos[t] + 1, first = p->chunk && n ? (n - 1) / p->chunk * p->chunk : 0;
        for (int64_t s = first; s < n; s++) {
            P[s] = dP[s] = 0;
            for (int64_t j = 0; j < d; j++) P[s] += p->q[t * d + j] * p->k[s * d + j] * p->scale;
            for (int64_t j = 0; j < w; j++) dP[s] += p->d_o[t * w + j] * p->v[s * w + j];
            most = fmax(most, P[s]);
        }
        for (int64_t s = first; s < n; s++) l += P[s] = exp(P[s] - most);
        for (int64_t s = first; s < n; s++) P[s] /= l, D += P[s] * dP[s];
        for (int64_t s = first; s < n; s++) {
            double ds = P[s] * (dP[s] - D) * p->scale;
            for (int64_t j = 0; j < d; j++) {
                dq[t * d + j] += ds * p->k[s * d + j];
                dk[s * d + j] += ds * p->q[t * d + j];
            }
            for (int64_t j = 0; j < w; j++) {
                o[t * w + j] += P[s] * p->v[s * w + j];
                dv[s * w + j] += P[s] * p->d_o[t * w + j];
            }
        }
    }
}

#define CLOSE(n, got, want, tol)                                                                   \
    for (int64_t i_ = 0; i_ < (n); i_++)                                                           \
        if (!(fabs((double)(got)[i_] - (want)[i_]) <= (tol) * (1 + fabs((want)[i_])))) {           \
            print_error("element %lld: %g, not %g\n", (long long)i_, (double)(got)[i_],            \
                        (want)[i_]);                                                               \
            fail();                                                                                \
        }

#define ATTN_TEST(R, T, TOL)                                                                       \
    typedef struct {                                                                               \
        T q[AT_S * AT_D], k[AT_S * AT_D], v[AT_S * AT_D], d_o[AT_S * AT_D];                        \
        T o[AT_S * AT_D], dq[AT_S * AT_D], dk[AT_S * AT_D], dv[AT_S * AT_D];                       \
    } Run_##R;                                                                                     \
    static Run_##R *run_new_##R(const Problem *p) {                                                \
        Run_##R *r = malloc(sizeof *r);                                                            \
        for (int i = 0; i < AT_S * AT_D; i++) {                                                    \
            r->q[i] = (T)p->q[i], r->k[i] = (T)p->k[i], r->v[i] = (T)p->v[i],                      \
            r->d_o[i] = (T)p->d_o[i];                                                              \
            r->o[i] = r->dq[i] = r->dk[i] = r->dv[i] = (T)NAN;                                     \
        }                                                                                          \
        return r;                                                                                  \
    }                                                                                              \
    static void run_##R(const Problem *p, Run_##R *r, int64_t t0, int64_t n, int accumulate) {     \
        int64_t d = p->d, w = p->w, at = t0 * d, to = t0 * w;                                      \
        AttentionMask m = {.query_pos = p->query_pos + t0, .chunk = p->chunk};                     \
        attention_##R(n, p->ns, d, w, r->q + at, d, r->k, d, r->v, w, r->o + to, w, &m, p->scale); \
        attention_bwd_##R(n, p->ns, d, w, r->q + at, d, r->k, d, r->v, w, r->d_o + to, w,          \
                          r->dq + at, d, r->dk, d, r->dv, w, &m, p->scale, accumulate);            \
    }                                                                                              \
    static void attention_case_##R(int64_t nt, int64_t ns, int64_t d, int64_t w, int64_t chunk) {  \
        static double o[AT_S * AT_D], dq[AT_S * AT_D], dk[AT_S * AT_D], dv[AT_S * AT_D];           \
        Problem *p = problem(nt, ns, d, w, chunk);                                                 \
        Run_##R *first = NULL;                                                                     \
        naive_attention(p, o, dq, dk, dv);                                                         \
        for (int s = 0; s < N_ISAS; s++) {                                                         \
            if (!kernel_select(isas[s])) continue;                                                 \
            Run_##R *r = run_new_##R(p);                                                           \
            run_##R(p, r, 0, nt, 0);                                                               \
            CLOSE(nt *w, r->o, o, TOL)                                                             \
            CLOSE(nt *d, r->dq, dq, TOL)                                                           \
            CLOSE(ns *d, r->dk, dk, 5 * TOL)                                                       \
            CLOSE(ns *w, r->dv, dv, 5 * TOL)                                                       \
            if (first) {                                                                           \
                SAME_BITS(R, nt *w, r->o, first->o)                                                \
                SAME_BITS(R, nt *d, r->dq, first->dq)                                              \
                SAME_BITS(R, ns *d, r->dk, first->dk)                                              \
                SAME_BITS(R, ns *w, r->dv, first->dv)                                              \
            }                                                                                      \
            if (!first) first = r;                                                                 \
            else free(r);                                                                          \
        }                                                                                          \
        kernel_select("auto");                                                                     \
        Run_##R *cut =                                                                             \
            run_new_##R(p); /* o and dq of any rows alone, in any order: the same bits */          \
        for (int64_t t = 0; t < nt;) {                                                             \
            int64_t n = 1 + pick(nt - t < 140 ? nt - t : 140);                                     \
            run_##R(p, cut, t, n, 0);                                                              \
            t += n;                                                                                \
        }                                                                                          \
        SAME_BITS(R, nt *w, cut->o, first->o)                                                      \
        SAME_BITS(R, nt *d, cut->dq, first->dq)                                                    \
        memcpy(cut->dk, first->dk, sizeof cut->dk), memcpy(cut->dv, first->dv, sizeof cut->dv);    \
        run_##R(p, cut, 0, nt, 1); /* accumulate: exactly twice the gradient */                    \
        for (int64_t i = 0; i < ns * d; i++) first->dk[i] *= 2;                                    \
        for (int64_t i = 0; i < ns * w; i++) first->dv[i] *= 2;                                    \
        SAME_BITS(R, ns *d, cut->dk, first->dk)                                                    \
        SAME_BITS(R, ns *w, cut->dv, first->dv)                                                    \
        free(cut), free(first), free(p);                                                           \
    }                                                                                              \
    static void test_attention_##R(void **state) {                                                 \
        (void)state;                                                                               \
        attention_case_##R(1, 1, 1, 1, 0);                                                         \
        attention_case_##R(5, 7, 3, 3, 0);                                                         \
        attention_case_##R(AT_T, AT_S, AT_D, AT_D, 0);                                             \
        attention_case_##R(500, 130, 8, 8, 0);                                                     \
        attention_case_##R(3, 450, 16, 16, 0);                                                     \
        attention_case_##R(9, 40, 6, 10, 0); /* values narrower or wider than keys */              \
        attention_case_##R(AT_T, AT_S, 12, 5, 0);                                                  \
        attention_case_##R(20, 33, 4, 4, 7); /* chunks: ragged, beyond a block of keys, of one */  \
        attention_case_##R(AT_T, AT_S, AT_D, 9, 300);                                              \
        attention_case_##R(AT_T, AT_S, 5, 5, 1);                                                   \
        attention_case_##R(11, 30, 5, 5, 64);                                                      \
        AttentionMask none = {0};                                                                  \
        T o[4] = {1, 1, 1, 1};                                                                     \
        attention_##R(2, 0, 2, 2, o, 2, NULL, 2, NULL, 2, o, 2, &none, 1);                         \
        for (int i = 0; i < 4; i++) assert_true(o[i] == 0);                                        \
    }
ATTN_TEST(f32, float, 2e-5)
ATTN_TEST(f64, double, 1e-13)

/* Any mask over keys at 0, 1, ...; the documents are `run`'s. */
static AttentionMask some_mask(int64_t nt, int64_t ns, int64_t *pos, AttentionRun *run,
                               AttentionDocuments *d) {
    AttentionMask m = {.query_pos = pos, .full = pick(4) == 0, .cap = pick(4) ? 0 : 3};
    for (int64_t t = 0; t < nt; t++) pos[t] = pick(ns + 1) - !pick(9);
    if (pick(2)) m.query_pos = NULL;
    if (!pick(3)) m.window = 1 + pick(ns);
    if (!pick(3)) m.chunk = 1 + pick(ns);
    *d = (AttentionDocuments){2, run};
    run[0] = (AttentionRun){0, 1 + pick(ns)}, run[1] = (AttentionRun){run[0].lim, INT64_MAX};
    if (!pick(3)) m.documents = d;
    return m;
}
/* What attention_part promises of each row: the order of its sums, by the kernels of rows. */
#define ROW_TEST(R, T)                                                                             \
    static void attention_row_##R(int64_t ns, int64_t d, int64_t dv, const T *q, const T *k,       \
                                  const T *v, const AttentionRun *run, double scale, double cap,   \
                                  T *o) {                                                          \
        T *p = calloc((size_t)ns, sizeof *p), *seen = p + run->from;                               \
        int64_t n = run->lim - run->from;                                                          \
        GemmView qv = {.p = q, .rs = d, .cs = 1}, kv = {.p = k + run->from * d, .rs = d, .cs = 1}, \
                 sv = {.p = seen, .rs = n, .cs = 1}, pv = {.p = p, .rs = ns, .cs = 1},             \
                 vv = {.p = v, .rs = 1, .cs = dv}, ov = {.p = o, .rs = dv, .cs = 1};               \
        gemm_##R(1, n, d, &qv, &kv, &sv);                                                          \
        for (int64_t s = 0; s < n; s++)                                                            \
            seen[s] = cap > 0 ? (T)(cap * tanh((double)seen[s] * (double)(T)scale / cap))          \
                              : seen[s] * (T)scale;                                                \
        T top = vec_max_##R(n, seen);                                                              \
        for (int64_t s = 0; s < n; s++) seen[s] -= top;                                            \
        vec_exp_##R(n, seen, seen);                                                                \
        T l = vec_sum_##R(n, seen);                                                                \
        gemm_##R(1, dv, ns, &pv, &vv, &ov);                                                        \
        for (int64_t j = 0; j < dv; j++) o[j] = (o[j] + 0) / l;                                    \
        o[dv] = (T)((double)top + log((double)l));                                                 \
        free(p);                                                                                   \
    }                                                                                              \
    static void test_attention_rows_##R(void **state) {                                            \
        (void)state;                                                                               \
        enum { N = 470, W = 20 };                                                                  \
        static T q[N * W], k[N * W], v[N * W], o[N * (W + 1)], want[W + 1];                        \
        for (int i = 0; i < N * W; i++) q[i] = (T)real(), k[i] = (T)real(), v[i] = (T)real();      \
        for (int round = 0; round < 60; round++) {                                                 \
            int64_t nt = 1 + pick(90), ns = 1 + pick(N), d = 1 + pick(W), dv = 1 + pick(W);        \
            int64_t pos[N];                                                                        \
            AttentionRun documents[2];                                                             \
            AttentionDocuments of;                                                                 \
            AttentionMask m = some_mask(nt, ns, pos, documents, &of);                              \
            attention_part_##R(nt, ns, d, dv, q, d, k, d, v, dv, o, dv + 1, &m, 0.7);              \
            for (int64_t t = 0; t < nt; t++) {                                                     \
                AttentionRun run = attention_run(&m, t, ns);                                       \
                memset(want, 0, sizeof want);                                                      \
                want[dv] = (T)ATTENTION_NONE;                                                      \
                if (run.lim > run.from)                                                            \
                    attention_row_##R(ns, d, dv, q + t * d, k, v, &run, 0.7, m.cap, want);         \
                SAME_BITS(R, dv + 1, o + t * (dv + 1), want)                                       \
            }                                                                                      \
        }                                                                                          \
    }
ROW_TEST(f32, float)
ROW_TEST(f64, double)

/* Keys with positions of their own (context parallel), strides wider than d, no query positions. */
static void test_attention_positions(void **state) {
    (void)state;
    enum { NT = 40, D = 8, W = 11 };
    float x[3][NT * W], o[NT * W], part[NT * W], dq[NT * W], dq2[NT * W];
    for (int i = 0; i < 3 * NT * W; i++) x[i / (NT * W)][i % (NT * W)] = (float)real();
    AttentionMask none = {0};
    attention_f32(NT, NT, D, D, x[0], W, x[1], W, x[2], W, o, W, &none, 0.5);
    attention_bwd_f32(NT, NT, D, D, x[0], W, x[1], W, x[2], W, o, W, dq, W, NULL, 0, NULL, 0, &none,
                      0.5, 0);
    /* The same keys at positions 10, 20, ...; query t sees keys 0..t: at 10 t + 10, where its own
     * key lies, or behind it. In zigzag order of the queries. */
    int64_t key_pos[NT], query_pos[NT];
    float zig[NT * W], d_o[NT * W];
    for (int t = 0; t < NT; t++) {
        int from = t % 2 ? NT - 1 - t / 2 : t / 2;
        key_pos[t] = 10 * t + 10;
        query_pos[t] = 10 * from + (from % 2 ? 10 : 19);
        memcpy(zig + t * W, x[0] + from * W, D * sizeof(float));
        memcpy(d_o + t * W, o + from * W, D * sizeof(float));
    }
    AttentionMask own = {.query_pos = query_pos, .key_pos = key_pos};
    attention_f32(NT, NT, D, D, zig, W, x[1], W, x[2], W, part, W, &own, 0.5);
    attention_bwd_f32(NT, NT, D, D, zig, W, x[1], W, x[2], W, d_o, W, dq2, W, NULL, 0, NULL, 0,
                      &own, 0.5, 0);
    for (int t = 0; t < NT; t++) {
        int from = t % 2 ? NT - 1 - t / 2 : t / 2;
        SAME_BITS(f32, D, part + t * W, o + from * W)
        SAME_BITS(f32, D, dq2 + t * W, dq + from * W)
    }
}

/* The gradient of sum(o * d_o) by central differences, at a few places. */
static void test_attention_differences(void **state) {
    (void)state;
    Problem *p = problem(12, 15, 4, 3, 5);
    Run_f64 *r = run_new_f64(p), *s = run_new_f64(p);
    run_f64(p, r, 0, p->nt, 0);
    for (int n = 0; n < 60; n++) {
        int64_t which = n % 3, i = pick((which == 0 ? p->nt : p->ns) * (which == 2 ? p->w : p->d));
        double *x = which == 0   ? s->q
                    : which == 1 ? s->k
                                 : s->v,
               keep = x[i], f[2] = {0, 0}, h = 1e-5;
        for (int side = 0; side < 2; side++) {
            x[i] = keep + (side ? h : -h);
            AttentionMask m = {.query_pos = p->query_pos, .chunk = p->chunk};
            attention_f64(p->nt, p->ns, p->d, p->w, s->q, p->d, s->k, p->d, s->v, p->w, s->o, p->w,
                          &m, p->scale);
            for (int64_t j = 0; j < p->nt * p->w; j++) f[side] += s->o[j] * s->d_o[j];
        }
        x[i] = keep;
        double want = (f[1] - f[0]) / (2 * h), got = which == 0   ? r->dq[i]
                                                     : which == 1 ? r->dk[i]
                                                                  : r->dv[i];
        assert_true(fabs(got - want) < 1e-7);
    }
    free(r), free(s), free(p);
}

/* ---- pool ---- */

typedef struct {
    Pool *pool;
    _Atomic int64_t sum, calls;
} Shared;
static void add_index(void *arg, int64_t i) {
    Shared *s = arg;
    atomic_fetch_add(&s->sum, i);
    atomic_fetch_add(&s->calls, 1);
}
static void nest(void *arg, int64_t i) {
    Shared *s = arg;
    (void)i;
    pool_run(s->pool, 10, add_index, s);
}
static void small_product(void *arg, int64_t i) { /* each task its own row of the product */
    float *m = arg;
    GemmView a = gemm_strided(m + i * 64, 64, 1), b = gemm_strided(m, 64, 1);
    GemmView c = gemm_strided(m + 4096 + i * 64, 64, 1);
    gemm_f32(1, 64, 64, &a, &b, &c);
}

static void test_pool(void **state) {
    (void)state;
    for (int threads = 0; threads <= 5; threads++) {
        Shared s = {.pool = pool_new(threads)};
        assert_true(pool_threads(s.pool) >= 1 && (threads == 0 || pool_threads(s.pool) <= threads));
        for (int64_t n = 0; n < 400; n++) {
            atomic_store(&s.sum, 0);
            atomic_store(&s.calls, 0);
            pool_run(s.pool, n, add_index, &s);
            assert_int_equal(atomic_load(&s.sum), n * (n - 1) / 2);
            assert_int_equal(atomic_load(&s.calls), n);
        }
        atomic_store(&s.calls, 0);
        pool_run(s.pool, 20, nest, &s);
        assert_int_equal(atomic_load(&s.calls), 200);
        static float m[8192], whole[4096];
        for (int i = 0; i < 4096; i++) m[i] = (float)real();
        pool_run(s.pool, 64, small_product, m);
        GemmView a = gemm_strided(m, 64, 1), c = gemm_strided(whole, 64, 1);
        gemm_f32(64, 64, 64, &a, &a, &c);
        SAME_BITS(f32, 4096, m + 4096, whole)
        pool_free(s.pool);
    }
    pool_free(NULL);
}

static void test_select(void **state) {
    (void)state;
    assert_false(kernel_select("sse9"));
    assert_true(kernel_select("generic"));
    assert_string_equal(kernel_isa(), "generic");
    assert_true(kernel_select("auto"));
    print_message("instruction set: %s\n", kernel_isa());
}

/* Every bit counts, and so do length and order. */
static void test_digest(void **s) {
    (void)s;
    enum { MOST = 300 };
    unsigned char x[MOST + 1] = {0};
    for (size_t n = 0; n <= MOST; n += n < 70 ? 1 : 23) {
        Digest d = digest_bytes(x, n);
        assert_true(digest_same(d, digest_bytes(x, n)));
        assert_false(digest_same(d, digest_bytes(x, n + 1))); /* of zeros too */
        for (size_t i = 0; i < 8 * n; i++) {
            x[i / 8] ^= (unsigned char)(1 << i % 8);
            Digest other = digest_bytes(x, n);
            assert_true(other.a != d.a && other.b != d.b);
            x[i / 8] ^= (unsigned char)(1 << i % 8);
        }
        for (size_t i = 0; i < n; i++) x[i] = (unsigned char)rng();
        for (size_t i = 8; i < n; i++) { /* two bytes change places */
            if (x[i] == x[i - 8]) continue;
            d = digest_bytes(x, n);
            unsigned char kept = x[i];
            x[i] = x[i - 8], x[i - 8] = kept;
            assert_false(digest_same(d, digest_bytes(x, n)));
        }
        memset(x, 0, sizeof x);
    }
    float f[1300] = {0};
    double g[1300] = {0};
    for (int i = 0; i < 1300; i += 7) {
        f[i] = i % 2 ? NAN : INFINITY, g[i] = i % 2 ? -INFINITY : NAN;
        int64_t a = digest_finite(f, DT_F32, 1300), b = digest_finite(g, DT_F64, 1300);
        assert_true(a <= i && b <= i && i - a < 512 && i - b < 512);
        f[i] = 0x1.fffffep127f, g[i] = -0x1.fffffffffffffp1023;
    }
    assert_int_equal(digest_finite(f, DT_F32, 1300), 1300);
    assert_int_equal(digest_finite(g, DT_F64, 1300), 1300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_gemm_f32),
        cmocka_unit_test(test_gemm_f64),
        cmocka_unit_test(test_gemm_of_floats),
        cmocka_unit_test(test_gemm_slices_f32),
        cmocka_unit_test(test_gemm_slices_f64),
        cmocka_unit_test(test_vec_accuracy),
        cmocka_unit_test(test_vec_edges),
        cmocka_unit_test(test_vec_isas_f32),
        cmocka_unit_test(test_vec_isas_f64),
        cmocka_unit_test(test_vec_lanes_f32),
        cmocka_unit_test(test_columns_f32),
        cmocka_unit_test(test_columns_f64),
        cmocka_unit_test(test_vec_lanes_f64),
        cmocka_unit_test(test_attention_f32),
        cmocka_unit_test(test_attention_f64),
        cmocka_unit_test(test_attention_rows_f32),
        cmocka_unit_test(test_attention_rows_f64),
        cmocka_unit_test(test_attention_positions),
        cmocka_unit_test(test_attention_differences),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_pool),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kernel_thread_cleanup();
    return failed;
}
