/* What a plan says of the order of the sequence (contiguous, zigzag, striped) is what reports,
 * causes and pictures say, for all orders that there are: none is told as another. */
#include "layout/layout.h"
#include "render/render.h"
#include "render/shards/shards.h"
#include "support/pictures.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* 24 tokens on cp: 2 x tp: 3 with sequence parallel: both cut them, four to a rank. */
static const char *plan_of(Arena *a, const char *order, const char *more) {
    return arena_printf(
        a,
        "model: {config: {hidden_size: 12, num_attention_heads: 6, num_key_value_heads: 3, "
        "head_dim: 4, intermediate_size: 12, vocab_size: 12, num_hidden_layers: 1}, parts: "
        "[embedding, blocks, norm, head, loss]}\n"
        "mesh: {cp: 2, tp: 3}\ngroups: {sp: tp}\nrecipe: torchtitan-llama3\n"
        "context_parallel: {mode: all_gather, order: %s}\n%s",
        order, more);
}
#define DATA "data: {batch: 2, sequence: 24, dtype: f64}\n"
#define LABELS "data: {batch: 2, sequence: 24, dtype: f64, order: {labels: %s}}\n"

static const char *cause_at_first(const Trace *t) {
    for (int i = 0; t && i < t->n_checks; i++)
        if (t->checks[i].level && t->checks[i].verdict[0] == 'F') return t->checks[i].cause;
    return "no check fails";
}
/* Positions of contiguous blocks under an order: the cause names that order. */
static void test_causes(void **state) {
    (void)state;
    static const char *const at[] = {"layers.0.q_rope", "grad.layers.0.k_rope"};
    for (int o = 1; o < N_CUTS; o++)
        for (int k = 0; k < 2; k++) {
            Arena *a = arena_new();
            const char *faults = arena_printf(
                a, "%spass: backward\nfaults: [{at: %s, do: contiguous}]\n", DATA, at[k]);
            PlanRun r = plan_run(a, "orders.yaml", plan_of(a, layout_orders[o], faults), true);
            assert_string_equal(
                cause_at_first(r.t),
                arena_printf(a,
                             "positions are those of contiguous blocks, and the data lie in "
                             "another order (%s)",
                             layout_orders[o]));
            arena_free(a);
        }
}
/* Labels that are cut in another order than the tokens: both orders are named, each in its place,
 * by a run and before it. */
static void test_labels(void **state) {
    (void)state;
    for (int tokens = 0; tokens < N_CUTS; tokens++)
        for (int labels = 0; labels < N_CUTS; labels++) {
            Arena *a = arena_new();
            const char *more = arena_printf(a, LABELS "trust: declared\n", layout_orders[labels]);
            PlanRun r = plan_run(a, "orders.yaml", plan_of(a, layout_orders[tokens], more), true);
            assert_non_null(r.t);
            const char *cause = cause_at_first(r.t);
            const char *taken = arena_printf(a, "blocks in %s order are taken for %s ones",
                                             layout_orders[labels], layout_orders[tokens]);
            const Diag *before = run_diag(&r, "W0401", taken);
            if (tokens == labels) {
                assert_string_equal(cause, "no check fails");
                assert_null(run_diag(&r, "W0401", ""));
            } else {
                assert_string_equal(cause, arena_printf(a, "the label is false: %s", taken));
                if (!before) fail_msg("nothing says before the run that %s", taken);
            }
            arena_free(a);
        }
}

/* An axis of one rank cuts nothing, in whatever order: nothing is wrong with any labels. */
static void test_labels_of_one_rank(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "orders.yaml",
                         "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, "
                         "blocks, norm, head, loss]}\nmesh: {cp: 1, dp: 2}\n"
                         "data: {batch: 2, sequence: 16, order: {labels: contiguous}}\n"
                         "context_parallel: {mode: all_gather, order: zigzag}\n"
                         "trust: declared\n",
                         true);
    run_must_be(&r, "equivalent");
    assert_null(run_diag(&r, "W0401", ""));
    arena_free(a);
}

/* ---- pictures ---- */
/* The rulers of a picture name the order, and no other. */
static void test_rulers(void **state) {
    (void)state;
    static const char *const words[N_CUTS] = {"S 24: cp", "S 24: cp zigzag", "S 24: cp striped"};
    for (int o = 0; o < N_CUTS; o++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(a, plan_of(a, layout_orders[o], DATA), false);
        RenderOptions options = {.view = "shards", .rank = -1, .layer = -1};
        size_t n;
        char *svg = render_text(r.t, r.d, &options, FORMAT_SVG, a, &n);
        assert_non_null(svg);
        const char *drawn = svg_words(a, svg);
        says(drawn, arena_printf(a, "%s\n", words[o]));
        for (int other = 0; other < N_CUTS; other++)
            if (other != o) says_not(drawn, arena_printf(a, "%s\n", words[other]));
        arena_free(a);
    }
}
/* Adds the indices of NumPy slices "0:8,56:64" or "1:24:2" to `at`. */
static int64_t indices_of(const char *slices, int64_t *at) {
    int64_t n = 0;
    for (const char *p = slices; *p;) {
        long long from, to, step = 1;
        int used = 0;
        assert_int_equal(sscanf(p, "%lld:%lld%n", &from, &to, &used), 2);
        p += used;
        if (*p == ':') assert_int_equal(sscanf(p, ":%lld%n", &step, &used), 1), p += used;
        for (long long i = from; i < to; i += step) at[n++] = i;
        if (*p == ',') p++;
    }
    return n;
}
/* The slices of a rank are the indices that the layout gives it, uneven cuts included. */
static void test_slices(void **state) {
    (void)state;
    Mesh m = {.naxes = 2, .axis = {{.name = "cp", .size = 2}, {.name = "tp", .size = 3}}};
    struct TraceAxis axes[] = {{.name = "cp", .size = 2}, {.name = "tp", .size = 3}};
    Trace t = {.ranks = 6, .n_axes = 2, .axes = axes};
    mesh_finish(&m);
    for (int o = 0; o < N_CUTS; o++)
        for (int64_t size = 6; size <= 32; size++) {
            Arena *a = arena_new();
            Layout l = layout_whole(&m, 1, TY_I);
            layout_cut(&l, 0, 0, (CutHow)o);
            layout_cut(&l, 0, 1, CUT_CHUNK);
            int64_t part[6], mine[32];
            static const PlaceCut how[N_CUTS] = {PLACE_SHARD, PLACE_ZIGZAG, PLACE_STRIPED};
            for (int64_t rank = 0; rank < 6; rank++)
                part[rank] = layout_index(&m, &l, 0, size, rank, a).n;
            DimCut c = {.n_axis = 2,
                        .axis = {0, 1},
                        .order = how[o],
                        .n = 6,
                        .size = size,
                        .part = part,
                        .blocks = 1};
            for (int64_t rank = 0; rank < 6 && !(o == CUT_ZIGZAG && size % 4); rank++) {
                IndexList have = layout_index(&m, &l, 0, size, rank, a);
                const char *said = shards_range(a, &t, &c, rank);
                int64_t n = strcmp(said, "none") ? indices_of(said, mine) : 0;
                if (n != have.n || (n && memcmp(mine, have.at, (size_t)n * sizeof *mine) != 0))
                    fail_msg("%s order of %d, rank %d: %s", layout_orders[o], (int)size, (int)rank,
                             said);
            }
            arena_free(a);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_causes), cmocka_unit_test(test_labels),
                                       cmocka_unit_test(test_labels_of_one_rank),
                                       cmocka_unit_test(test_rulers),
                                       cmocka_unit_test(test_slices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
