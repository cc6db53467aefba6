/* Regions: which elements a block has, with and without an outer list, and copies between them.
 * Every expectation is plain arithmetic on indices; no layout code is asked twice. */
#include "exec/region.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { K = 3, G = 2, X = 5, D = 4, ROWS = K * G * X };
/* [(k g x), d]: three letters are the rows of the stored array. */
static GTensor heads(void) {
    return (GTensor){.nd = 4, .size = {K, G, X, D}, .nstored = 2, .stored = {3, 1}};
}
static Mesh mesh_of(int64_t tp, int64_t dp) {
    Mesh m = {.naxes = 2, .axis = {{.name = "tp", .size = tp}, {.name = "dp", .size = dp}}};
    assert_true(mesh_finish(&m));
    return m;
}
static int64_t at(const DimIndex *x, int64_t i) { return x->range ? x->lo + i : x->list[i]; }
static int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* FSDP on top of a cut letter: the rows that a rank has of k, as one list, are cut once more. */
static void test_list(void **state) {
    (void)state;
    Mesh m = mesh_of(2, 4);
    GTensor t = heads();
    for (int letter = 0; letter < 3;
         letter++) { /* cutting k leaves one run of rows, g and x do not */
        Layout l = layout_whole(&m, 4, TY_I);
        layout_cut(&l, letter, 0, CUT_CHUNK);
        layout_cut(&l, 4, 1, CUT_CHUNK);
        for (int64_t rank = 0; rank < m.nranks; rank++) {
            Arena *a = arena_new();
            Region r = region_at(&m, &t, &l, rank, a);
            int64_t mine[ROWS], n = 0, tp = mesh_coord(&m, rank, 0), dp = mesh_coord(&m, rank, 1);
            for (int64_t row = 0; row < ROWS; row++) {
                int64_t index[3] = {row / (G * X), row / X % G, row % X};
                if (index[letter] / ceil_of(t.size[letter], 2) == tp) mine[n++] = row;
            }
            int64_t each = ceil_of(n, 4), lo = dp * each < n ? dp * each : n,
                    hi = lo + each < n ? lo + each : n;
            assert_int_equal(r.outer, 3);
            assert_int_equal(r.nd, 2);
            assert_int_equal(r.n[0], hi - lo);
            assert_int_equal(r.n[1], D);
            for (int64_t i = lo; i < hi; i++) assert_int_equal(at(&r.d[0], i - lo), mine[i]);
            assert_true(r.d[0].range || letter > 0 || r.n[0] == 0);
            arena_free(a);
        }
    }
}
/* The same of a stored dim behind another: of [E, (g x), D], e cut by tp and the list of g and x by
 * dp, a rank has the same places of that list in each of its experts. */
static void test_list_behind(void **state) {
    (void)state;
    Mesh m = mesh_of(2, 4);
    GTensor t = {.nd = 4, .nstored = 3, .stored = {1, 2, 1}, .size = {5, 2, 7, 3}};
    for (int inside = 0; inside < 2; inside++) { /* e cut by tp, or x */
        Layout l = layout_whole(&m, 4, TY_I);
        layout_cut(&l, inside ? 2 : 0, 0, CUT_CHUNK);
        layout_cut_list(&l, 1, 1);
        for (int64_t rank = 0; rank < m.nranks; rank++) {
            Arena *a = arena_new();
            Region r = region_at(&m, &t, &l, rank, a);
            int64_t tp = mesh_coord(&m, rank, 0), dp = mesh_coord(&m, rank, 1), n = 0, shape[8];
            for (int64_t e = 0; e < 5; e++) {
                int64_t mine = 0, all = inside ? 2 * (tp ? 3 : 4) : 14, each = ceil_of(all, 4);
                if (!inside && e / 3 != tp) continue;
                for (int64_t k = 0; k < 14; k++) {
                    if (inside && k % 7 / 4 != tp) continue;
                    if (mine++ / each == dp) assert_int_equal(at(&r.d[0], n++), e * 14 + k);
                }
            }
            assert_int_equal(r.outer, 3);
            assert_int_equal(r.n[0], n);
            assert_int_equal(region_stored(&m, &t, &l, rank, shape), n * 3);
            assert_int_equal(shape[0] * shape[1], n);
            arena_free(a);
        }
    }
}
/* Letters and lists meet: what lies at rest becomes letters again, and the other way round, also
 * from a view that is not packed. */
static void test_letters_meet_lists(void **state) {
    (void)state;
    Arena *a = arena_new();
    Mesh m = mesh_of(2, 4);
    GTensor t = heads();
    Layout rest = layout_whole(&m, 4, TY_I), use = rest;
    layout_cut(&rest, 1, 0, CUT_CHUNK);
    layout_cut(&use, 1, 0, CUT_CHUNK);
    layout_cut(&rest, 4, 1, CUT_CHUNK);
    double whole[ROWS * D], back[ROWS * D];
    for (int i = 0; i < ROWS * D; i++) whole[i] = i + 1, back[i] = 0;
    Region all = region_whole(&t);
    Tensor w = region_packed(&all), b = w;
    w.p = whole;
    b.p = back;
    for (int64_t rank = 0; rank < m.nranks; rank++) {
        Region u = region_at(&m, &t, &use, rank, a), r = region_at(&m, &t, &rest, rank, a);
        Tensor view, own = region_packed(&r);
        own.p = arena_alloc(a, ROWS * D * sizeof(double));
        assert_true(region_view(&u, &all, &w, DT_F64, &view)); /* strided: g is cut inside */
        assert_int_equal(region_copy((Block){&r, &own}, (Block){&u, &view}, DT_F64, COMBINE_COPY),
                         tensor_count(&own));
        assert_int_equal(region_common(&r, &u), tensor_count(&own));
        for (int64_t i = 0; i < r.n[0]; i++)
            for (int64_t d = 0; d < D; d++)
                assert_true(((double *)own.p)[i * D + d] == (double)(at(&r.d[0], i) * D + d + 1));
        region_copy((Block){&all, &b}, (Block){&r, &own}, DT_F64, COMBINE_SUM);
    }
    assert_memory_equal(whole, back, sizeof whole);
    arena_free(a);
}

/* ---- rows that an index list names ---- */
enum { E = 5, T = 11, RANKS = 4 };
/* Which tokens go to which experts; expert 3 gets none, token 2 goes nowhere. */
static bool routed(int64_t e, int64_t t) { return e != 3 && t != 2 && (e * 7 + t * 3) % 5 < 2; }
/* The rows [e, t] of one rank, in the order of (e, t): of its tokens, or of its experts. The third
 * rank has no tokens, the blocks of experts are 2, 2, 1 and 0. */
static int64_t token_home(int64_t t) { return t < 6 ? 0 : t < 7 ? 1 : 3; }
static int64_t expert_home(int64_t e) { return e / 2; }
static Region rows_of(const GTensor *x, int64_t rank, bool by_expert, Arena *a) {
    Region r = {.t = x, .outer = 2, .nd = 2};
    int64_t *list = ARENA_ARRAY(a, int64_t, E * T), n = 0;
    for (int64_t e = 0; e < E; e++)
        for (int64_t t = 0; t < T; t++)
            if (routed(e, t) && (by_expert ? expert_home(e) : token_home(t)) == rank)
                list[n++] = e * T + t;
    r.d[0] = (DimIndex){false, 0, n, list};
    r.d[1] = (DimIndex){true, 0, D, NULL};
    r.n[0] = n;
    r.n[1] = D;
    return r;
}
/* Dispatch: ragged rows go from the ranks of their tokens to those of their experts. */
static void test_rows(void **state) {
    (void)state;
    Arena *a = arena_new();
    GTensor x = {.nd = 3, .size = {E, T, D}, .nstored = 3, .stored = {1, 1, 1}};
    int64_t total = 0, none = 0;
    for (int64_t to = 0; to < RANKS; to++) {
        Region want = rows_of(&x, to, true, a);
        Tensor got = region_packed(&want);
        got.p = arena_alloc(a, sizeof(double) * (size_t)(E * T * D));
        int64_t touched = 0;
        for (int64_t from = 0; from < RANKS; from++) {
            Region has = rows_of(&x, from, false, a);
            Tensor src = region_packed(&has);
            double *p = src.p = arena_alloc(a, sizeof(double) * (size_t)(E * T * D));
            for (int64_t i = 0; i < has.n[0] * D; i++)
                p[i] = (double)(at(&has.d[0], i / D) * D + i % D);
            int64_t listed = 0;
            for (int64_t e = 0; e < E; e++)
                for (int64_t t = 0; t < T; t++)
                    listed += routed(e, t) && token_home(t) == from && expert_home(e) == to;
            assert_int_equal(region_common(&want, &has), listed * D);
            assert_int_equal(
                region_copy((Block){&want, &got}, (Block){&has, &src}, DT_F64, COMBINE_COPY),
                listed * D);
            touched += listed * D;
            none += has.n[0] == 0;
        }
        assert_int_equal(touched, tensor_count(&got)); /* every row arrived once */
        for (int64_t i = 0; i < touched; i++)
            assert_true(((double *)got.p)[i] == (double)(at(&want.d[0], i / D) * D + i % D));
        total += want.n[0];
    }
    assert_true(none == RANKS && total > 10);
    arena_free(a);
}
/* Combine: rows are added into a dense tensor of the same letters. */
static void test_rows_into_dense(void **state) {
    (void)state;
    Arena *a = arena_new();
    GTensor x = {.nd = 3, .size = {E, T, D}, .nstored = 3, .stored = {1, 1, 1}};
    double dense[E * T * D] = {0};
    Region all = region_whole(&x);
    Tensor out = region_packed(&all);
    out.p = dense;
    for (int64_t rank = 0; rank < RANKS; rank++) {
        Region has = rows_of(&x, rank, true, a);
        Tensor src = region_packed(&has);
        double *p = src.p = arena_alloc(a, sizeof(double) * (size_t)(E * T * D));
        for (int64_t i = 0; i < has.n[0] * D; i++) p[i] = 1;
        region_copy((Block){&all, &out}, (Block){&has, &src}, DT_F64, COMBINE_SUM);
    }
    for (int64_t i = 0; i < E * T * D; i++)
        assert_true(dense[i] == (double)routed(i / D / T, i / D % T));
    arena_free(a);
}
/* What two blocks both have, and the runs of a block in the whole: for every cut of letters and of
 * the list, held against the indices one by one. */
typedef struct {
    int64_t
        at[K * G * X * D]; /* per element of the whole: where it stands in the block; -1: nowhere */
    int64_t n;
} Seen;
static bool see_run(void *arg, int64_t first, int64_t n, int64_t pos) {
    Seen *s = arg;
    assert_int_equal(pos, s->n);
    for (int64_t i = 0; i < n; i++) s->at[first + i] = s->n++;
    return true;
}
static void see(Seen *s, const Region *r) {
    Tensor t = region_packed(r);
    s->n = 0;
    for (int i = 0; i < ROWS * D; i++) s->at[i] = -1;
    assert_true(region_runs(r, see_run, s) && s->n == tensor_count(&t));
}
static void test_meet_and_runs(void **state) {
    (void)state;
    Mesh m = mesh_of(2, 4);
    GTensor t = heads();
    for (int one = 0; one < 5; one++)
        for (int two = 0; two < 5; two++) {
            Layout l[2] = {layout_whole(&m, 4, TY_I), layout_whole(&m, 4, TY_I)};
            layout_cut(&l[0], one, 0, CUT_CHUNK);
            layout_cut(&l[1], two, 1, two == 3 ? CUT_STRIPED : CUT_CHUNK);
            for (int64_t rank = 0; rank < m.nranks; rank++) {
                Arena *a = arena_new();
                Region x = region_at(&m, &t, &l[0], rank, a), y = region_at(&m, &t, &l[1], rank, a),
                       both = region_meet(&x, &y, a);
                Seen of_x, of_y, of_both;
                see(&of_x, &x);
                see(&of_y, &y);
                see(&of_both, &both);
                assert_int_equal(of_both.n, region_common(&x, &y));
                int64_t last = -1;
                for (int64_t i = 0; i < ROWS * D; i++) {
                    assert_int_equal(of_both.at[i] >= 0, of_x.at[i] >= 0 && of_y.at[i] >= 0);
                    if (of_both.at[i] < 0) continue;
                    assert_true(of_x.at[i] > last); /* in the order of x */
                    last = of_x.at[i];
                }
                arena_free(a);
            }
        }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_meet_and_runs),
                                       cmocka_unit_test(test_list),
                                       cmocka_unit_test(test_letters_meet_lists),
                                       cmocka_unit_test(test_list_behind),
                                       cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_rows_into_dense)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
