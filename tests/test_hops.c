/* The storyboard of a ring (`--view storyboard --part ring`): the work that it tells is the count
 * of pairs of the order, for every order and several lengths; other masks are told as such; each
 * page stands the lint; and where there is no ring it says so. */
#include "render/render.h"
#include "render/storyboard/hops.h"
#include "support/pictures.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const orders[] = {"contiguous", "zigzag", "striped"};
static Trace *ring(Arena *a, int n, const char *order, const char *more, Diags **d) {
    PlanRun r =
        plan_good(a,
                  arena_printf(a,
                               "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 3%s\n"
                               "mesh: {dp: 2, cp: %d}\ncontext_parallel: {mode: ring, order: %s}\n",
                               more, n, order),
                  false);
    *d = r.d;
    return r.t;
}
#define CAUSAL "}\ndata: {batch: 2, sequence: 32, dtype: f64}"
static RenderOptions asked(const char *preset) {
    return (RenderOptions){
        .view = "storyboard", .preset = preset, .rank = -1, .layer = -1, .part = "ring"};
}
/* The place of n that has token t of 32. */
static int place_of(int order, int n, int t) {
    int piece = t / (32 / (2 * n));
    return order == 0 ? t / (32 / n) : order == 2 ? t % n : piece < n ? piece : 2 * n - 1 - piece;
}
static void test_work(void **state) {
    (void)state;
    for (int i = 0; i < 3 * 4; i++) {
        Arena *a = arena_new();
        Diags *d;
        int order = i % 3, n = 2 << i / 3;
        Trace *t = ring(a, n, orders[order], CAUSAL, &d);
        RenderOptions o = asked(NULL);
        ViewCall c = {.t = t, .d = d, .o = &o, .arena = a};
        Hops h;
        assert_true(hops_prepare(&c, &h));
        assert_int_equal(h.n, n);
        assert_true(h.causal);
        double pairs[HOPS_MAX][HOPS_MAX] = {{0}}, slow = 0;
        for (int q = 0; q < 32; q++)
            for (int k = 0; k <= q; k++) pairs[place_of(order, n, q)][place_of(order, n, k)]++;
        for (int j = 0; j < n; j++) {
            double most = 0;
            for (int k = 0; k < n; k++) {
                double want = pairs[k][((k - j) % n + n) % n];
                assert_true(fabs(h.work[j][k] / h.total - want / 528) < 1e-12);
                most = fmax(most, want);
            }
            slow += most;
        }
        assert_true(fabs(hops_slowdown(&h) - slow * n / 528) < 1e-9);
        assert_int_equal(h.sent, 2 * (n - 1) * (32 / n) * 2 * 3 * 8); /* k and v of one row */
        arena_free(a);
    }
}
static void test_pages(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"},
                             *const masks[] = {CAUSAL, ", mask: none" CAUSAL,
                                               "}\ndata: {batch: 2, documents: [5, 27], dtype: "
                                               "f64}"};
    for (int i = 0; i < 3 * 4 * 3; i++) {
        Arena *a = arena_new();
        Diags *d;
        int n = 2 << i / 3 % 4;
        Trace *t = ring(a, n, orders[i % 3], masks[i / 12], &d);
        for (int k = 0; k < 4; k++) {
            RenderOptions o = asked(sizes[k]);
            const char *report = "";
            if (render_lint(t, d, &o, a, &report))
                fail_msg("%d ranks, %s, %s: %s", n, orders[i % 3], sizes[k], report);
        }
        RenderOptions o = asked(NULL);
        size_t len;
        const char *words = svg_words(a, render_text(t, d, &o, FORMAT_SVG, a, &len));
        char *line = arena_strdup(a, words); /* wherever lines are broken */
        for (char *p = line; *p; p++) *p = *p == '\n' ? ' ' : *p;
        words = line;
        says(words, arena_printf(a, "%d ranks, %d hop", n, n - 1));
        says(words, arena_printf(a, "%s order", orders[i % 3]));
        (i / 12 == 1 ? says : says_not)(words, "not the causal one");
        (i / 12 == 2 ? says : says_not)(words, "The row packs 2 documents");
        arena_free(a);
    }
}
/* Documents: the mask is that of a row that the trace names if the work is; where a rank's rows
 * differ it is none of them, and bars tell the work. */
static void test_documents(void **state) {
    (void)state;
    static const char *const rows[] = {/* of two ranks of dp: a row each, and two */
                                       "batch: 2, documents: [5, 16, 11]",
                                       "documents: [[5, 16, 11], [20, 12]]",
                                       "documents: [[5, 16, 11], [32]]",
                                       "batch: 4, documents: [5, 16, 11]",
                                       "documents: [[5, 16, 11], [20, 12], [5, 16, 11], [20, 12]]",
                                       "documents: [[5, 16, 11], [32], [5, 16, 11], [32]]"};
    for (int i = 0; i < 3 * 3 * 2; i++) {
        Arena *a = arena_new();
        Diags *d;
        Trace *t = ring(a, 4, orders[i % 3],
                        arena_printf(a, "}\ndata: {%s, dtype: f64}", rows[i / 3]), &d);
        RenderOptions o = asked(NULL);
        ViewCall c = {.t = t, .d = d, .o = &o, .arena = a};
        Hops h;
        assert_true(hops_prepare(&c, &h));
        assert_int_equal(h.causal, i / 3 < 4);
        if (h.causal) assert_int_equal(h.n_documents, 3);
        double pairs[HOPS_MAX][HOPS_MAX] = {{0}}, all = 5 * 6 / 2 + 16 * 17 / 2 + 11 * 12 / 2;
        for (int q = 0; q < 32; q++)
            for (int k = q < 5 ? 0 : q < 21 ? 5 : 21; k <= q; k++)
                pairs[place_of(i % 3, 4, q)][place_of(i % 3, 4, k)]++;
        for (int j = 0; h.causal && j < 4; j++)
            for (int k = 0; k < 4; k++)
                assert_true(fabs(h.work[j][k] / h.total - pairs[k][hops_keys(&h, j, k)] / all) <
                            1e-12);
        const char *report = "";
        if (render_lint(t, d, &o, a, &report)) fail_msg("%d: %s", i, report);
        arena_free(a);
    }
}
/* Which pieces of a tile are full, a triangle, or empty. */
static void test_pieces(void **state) {
    (void)state;
    Hops z = {.n = 4, .order = PLACE_ZIGZAG}, c = {.n = 4, .order = PLACE_SHARD};
    assert_int_equal(hops_piece(&c, 2, 0, 1, 0), 2);
    assert_int_equal(hops_piece(&c, 2, 0, 2, 0), 1);
    assert_int_equal(hops_piece(&c, 2, 0, 3, 0), 0);
    assert_int_equal(hops_piece(&z, 0, 1, 3, 0), 2); /* piece 7 sees piece 3 */
    assert_int_equal(hops_piece(&z, 0, 1, 3, 1), 2); /* and piece 4 */
    assert_int_equal(hops_piece(&z, 3, 1, 0, 1), 0); /* piece 4 does not see piece 7 */
    assert_int_equal(hops_piece(&z, 1, 1, 1, 1), 1);
}
/* What goes round is the latent where the plan says so: its bytes, its words. */
static void test_latent(void **state) {
    (void)state;
    for (int latent = 0; latent < 2; latent++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a,
            arena_printf(a,
                         "model: {config: {model_type: deepseek_v3, hidden_size: 12, "
                         "num_attention_heads: 4, num_key_value_heads: 4, q_lora_rank: 6, "
                         "kv_lora_rank: 5, qk_nope_head_dim: 4, qk_rope_head_dim: 2, v_head_dim: "
                         "3, intermediate_size: 10, vocab_size: 11, num_hidden_layers: 1, "
                         "first_k_dense_replace: 1, rope_interleave: true}}\n"
                         "data: {batch: 2, sequence: 24, dtype: f64}\nmesh: {cp: 4}\n"
                         "context_parallel: {mode: ring, latent: %s}\n",
                         latent ? "true" : "false"),
            false);
        RenderOptions o = asked(NULL);
        ViewCall c = {.t = r.t, .d = r.d, .o = &o, .arena = a};
        Hops h;
        assert_true(hops_prepare(&c, &h));
        assert_int_equal(h.latent, latent);
        assert_int_equal(h.sent, 3 * 2 * 6 * (latent ? 5 + 2 : 4 * (6 + 3)) * 8);
        size_t n;
        const char *words = svg_words(a, render_text(r.t, r.d, &o, FORMAT_SVG, a, &n));
        (latent ? says : says_not)(words, "of the latent");
        const char *report = "";
        if (render_lint(r.t, r.d, &o, a, &report)) fail_msg("%s", report);
        arena_free(a);
    }
}
static void test_no_ring(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_good(a,
                          "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 3" CAUSAL
                          "\nmesh: {cp: 2}\ncontext_parallel: {mode: all_gather}\n",
                          false);
    RenderOptions o = asked(NULL);
    size_t n;
    assert_null(render_text(r.t, r.d, &o, FORMAT_SVG, a, &n));
    assert_true(run_has(&r, "E0211"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work),      cmocka_unit_test(test_pages),
        cmocka_unit_test(test_pieces),    cmocka_unit_test(test_latent),
        cmocka_unit_test(test_documents), cmocka_unit_test(test_no_ring)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return failed;
}
