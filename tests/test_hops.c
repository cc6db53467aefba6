/* The storyboard of a ring (`--view storyboard --part ring`): the work that it tells is the count
 * of pairs of the order, for every order and several lengths; other masks are told as such; each
 * page stands the lint; and where there is no ring it says so. */
#include "render/render.h"
#include "render/scene/scene.h"
#include "render/storyboard/hops.h"
#include "support/pictures.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
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
        assert_true(h.known);
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
/* Wherever lines are broken. */
static const char *one_line(Arena *a, const char *words) {
    char *line = arena_strdup(a, words);
    for (char *p = line; *p; p++) *p = *p == '\n' ? ' ' : *p;
    return line;
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
        words = one_line(a, words);
        says(words, arena_printf(a, "%d ranks, %d hop", n, n - 1));
        says(words, arena_printf(a, "%s order", orders[i % 3]));
        (i / 12 == 1 ? says : says_not)(words, "There is no mask");
        (i / 12 == 2 ? says : says_not)(words, "The row packs 2 documents");
        arena_free(a);
    }
}
/* Documents: masks are those of the rows that the trace names and a rank of the ring holds, if the
 * work is theirs: each that differs once, with its share of the work. */
typedef struct {
    const char *data;
    int n, times[2], documents[2]; /* masks, the rows that have them, of so many documents */
} RowsCase;
static const struct {
    int n, from[4]; /* where documents begin, and the end */
} packed_row[] = {{3, {0, 5, 21, 32}}, {2, {0, 20, 32}}, {1, {0, 32}}};
static double pairs_of_row(int documents, int order, int queries, int keys) {
    int k = 3 - documents, pairs = 0;
    for (int d = 0; d < packed_row[k].n; d++)
        for (int t = packed_row[k].from[d]; t < packed_row[k].from[d + 1]; t++)
            for (int s = packed_row[k].from[d]; s <= t; s++)
                pairs += place_of(order, 4, t) == queries && place_of(order, 4, s) == keys;
    return pairs;
}
static void hold_rows(const RowsCase *x, int order) {
    Arena *a = arena_new();
    Diags *d;
    Trace *t = ring(a, 4, orders[order], arena_printf(a, "}\ndata: {%s, dtype: f64}", x->data), &d);
    RenderOptions o = asked(NULL);
    ViewCall c = {.t = t, .d = d, .o = &o, .arena = a};
    Hops h;
    assert_true(hops_prepare(&c, &h));
    assert_true(h.known);
    assert_int_equal(h.n_rows, x->n);
    double all = 0, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < x->n; r++) {
            assert_int_equal(h.row[r].n_documents, x->documents[r]);
            assert_int_equal(h.row[r].times, x->times[r]);
            for (int j = 0; j < 4; j++)
                for (int k = 0; k < 4; k++) {
                    double pairs =
                        x->times[r] * pairs_of_row(x->documents[r], order, k, hops_keys(&h, j, k));
                    if (!pass) all += pairs;
                    else assert_true(fabs(h.row[r].share[j][k] - pairs / all) < 1e-12);
                    if (pass) sum += h.row[r].share[j][k];
                }
        }
    assert_true(fabs(sum - 1) < 1e-12);
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    for (int k = 0; k < 4; k++) {
        RenderOptions page = asked(sizes[k]);
        const char *report = "";
        if (render_lint(t, d, &page, a, &report)) fail_msg("%s, %s: %s", x->data, sizes[k], report);
    }
    size_t n;
    const char *words = svg_words(a, render_text(t, d, &o, FORMAT_SVG, a, &n));
    (x->n > 1 ? says : says_not)(words, "documents of 5, 16 and 11 tokens");
    says(words, "What each rank computes");
    arena_free(a);
}
static void test_documents(void **state) {
    (void)state;
    static const RowsCase cases[] = {
        /* of two ranks of dp: a row each, and two */
        {"batch: 2, documents: [5, 16, 11]", 1, {1}, {3}},
        {"documents: [[5, 16, 11], [20, 12]]", 1, {1}, {3}},
        {"documents: [[5, 16, 11], [32]]", 1, {1}, {3}},
        {"batch: 4, documents: [5, 16, 11]", 1, {1}, {3}},
        {"documents: [[5, 16, 11], [20, 12], [5, 16, 11], [20, 12]]", 2, {1, 1}, {3, 2}},
        {"documents: [[5, 16, 11], [32], [20, 12], [32]]", 2, {1, 1}, {3, 1}},
        {"documents: [[20, 12], [5, 16, 11], [5, 16, 11], [20, 12], [32], [32]]",
         2,
         {1, 2},
         {2, 3}}};
    for (int i = 0; i < 3 * (int)(sizeof cases / sizeof *cases); i++)
        hold_rows(&cases[i / 3], i % 3);
}
/* Of every piece and mask: the band has the pairs that the mask has, position by position. */
static void hold_bands(const Hops *h) {
    int n = h->order == PLACE_ZIGZAG ? 2 : 1, rows = (int)h->S / h->n / n;
    for (int q = 0; q < h->S; q++)
        for (int k = 0; k < h->S; k++) {
            bool due = (h->full || k <= q) && (!h->window || k > q - h->window), got = false;
            int found = 0;
            for (int a = 0; a < h->n * n; a++)
                for (int b = 0; b < h->n * n; b++) {
                    HopsDocument y = hops_rows(h, a / n, a % n, q, q + 1),
                                 x = hops_rows(h, b / n, b % n, k, k + 1);
                    if (y.from == y.lim || x.from == x.lim) continue;
                    HopsBand band = hops_band(h, a / n, a % n, b / n, b % n);
                    assert_true(y.from < rows && x.from < rows);
                    got = x.from >= y.from + band.low && x.from <= y.from + band.high, found++;
                }
            assert_int_equal(found, 1);
            if (got != due) fail_msg("order %d: query %d, key %d: %d", h->order, q, k, got);
        }
}
static void test_bands(void **state) {
    (void)state;
    static const PlaceCut cut[] = {PLACE_SHARD, PLACE_ZIGZAG, PLACE_STRIPED};
    for (int i = 0; i < 3; i++)
        for (int window = 0; window < 30; window += 1 + window / 4)
            for (int full = 0; full < 2; full++)
                hold_bands(&(Hops){
                    .n = 4, .S = 24, .order = cut[i], .window = full ? 0 : window, .full = full});
}
/* Masks of windows, of chunks, and none: the work is theirs, and what is drawn has the area of the
 * pairs. */
static const struct {
    const char *config, *says;
    int window, chunk;
} masked[] = {{"model_type: ministral, sliding_window: 6", "sees 6 positions up to its own", 6, 0},
              {"model_type: llama4_text, attention_chunk_size: 8, num_local_experts: 2, "
               "num_experts_per_tok: 1, intermediate_size_mlp: 10, interleave_moe_layer_step: 2, "
               "no_rope_layers: [1, 1]",
               "Chunks of 8 positions", 0, 8}};
static double area_of(const Mark *m) {
    if (m->kind != MARK_POLY) return m->w * m->h;
    double sum = 0;
    for (int k = 0; k < m->n; k++) {
        const Pt *a = &m->pt[k], *b = &m->pt[(k + 1) % m->n];
        sum += (a->x * b->y - b->x * a->y) / 2;
    }
    return fabs(sum);
}
static void test_masks(void **state) {
    (void)state;
    for (size_t i = 0; i < 3 * sizeof masked / sizeof *masked; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a,
            arena_printf(a,
                         "model: {layers: 1, config: {hidden_size: 12, head_dim: 4, "
                         "intermediate_size: 10, num_attention_heads: 4, num_key_value_heads: 2, "
                         "vocab_size: 11, num_hidden_layers: 2, %s}}\n"
                         "data: {batch: 2, sequence: 24, dtype: f64}\nmesh: {cp: 4}\n"
                         "context_parallel: {mode: ring, order: %s}\n",
                         masked[i / 3].config, orders[i % 3]),
            false);
        RenderOptions o = asked(NULL);
        ViewCall c = {.t = r.t, .d = r.d, .o = &o, .arena = a};
        Hops h;
        assert_true(hops_prepare(&c, &h));
        assert_true(h.known && h.window == masked[i / 3].window && h.chunk == masked[i / 3].chunk);
        size_t n;
        says(one_line(a, svg_words(a, render_text(r.t, r.d, &o, FORMAT_SVG, a, &n))),
             masked[i / 3].says);
        Scene *page[VIEW_MAX_PAGES];
        assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
        double drawn = 0, pairs = 0, tile = 44. * 44 / (6 * 6);
        for (int k = 0; k < page[0]->n_marks; k++) {
            const Mark *m = &page[0]->marks[k];
            if (page[0]->marks[k].group < 0 || !m->ground || m->fill != ROLE_SHARD) continue;
            if (!strcmp(page[0]->groups[m->group].what, "frame")) drawn += area_of(m) / tile;
        }
        for (int q = 0; q < 24; q++)
            for (int k = 0; k <= q; k++)
                pairs += (!h.window || k > q - h.window) && (!h.chunk || k / 8 == q / 8);
        if (fabs(drawn - pairs) > (i % 3 == 2 ? 48 : 13)) /* half a pair at each edge */
            fail_msg("%g drawn, %g pairs", drawn, pairs);
        const char *report = "";
        if (render_lint(r.t, r.d, &o, a, &report)) fail_msg("%s", report);
        arena_free(a);
    }
}
/* Of several rings one is drawn: which, how many do the same, and what the other axes have. */
static void test_other_rings(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        plan_good(a,
                  "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 3}\n"
                  "data: {batch: 2, sequence: 32, dtype: f64}\nmesh: {dp: 2, cp: 2, up: 2}\n"
                  "context_parallel: {mode: usp, ring: cp, ulysses: up}\n",
                  false);
    RenderOptions o = asked(NULL);
    o.rank = 5;
    ViewCall c = {.t = r.t, .d = r.d, .o = &o, .arena = a};
    Hops h;
    assert_true(hops_prepare(&c, &h));
    assert_string_equal(h.others,
                        "This is the ring of ranks 5,7, one of 4 with the same work; along dp "
                        "other rows of the batch; along up other heads, brought by all-to-alls "
                        "before and after the ring");
    r = plan_good(a,
                  "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 3}\n"
                  "data: {documents: [[16, 16], [32]], dtype: f64}\nmesh: {dp: 2, cp: 2}\n"
                  "context_parallel: {mode: ring}\n",
                  false);
    o.rank = -1;
    c.t = r.t;
    assert_true(hops_prepare(&c, &h));
    assert_string_equal(h.others, "This is the ring of ranks 0,1, one of 2; --rank shows the "
                                  "others; along dp other rows of the batch");
    arena_free(a);
}
/* The tokens of a rank as they are told, the ranks that share the most work, and the tiles of an
 * order that takes turns: those whose keys come from a later rank lack their diagonal. */
static void hold_tokens(const Hops *h, int order, int place) {
    const char *at = hops_tokens(h, place);
    char *end;
    bool told[32] = {false};
    for (int last = -1; *at; at = end) {
        int from = (int)strtol(at, &end, 10), to = from;
        assert_ptr_not_equal(at, end);
        if (*end == '-') to = (int)strtol(end + 1, &end, 10);
        for (int t = from; t <= to; t++) told[t] = true;
        if (!strncmp(end, ", …", 5)) {
            int next = (int)strtol(end + 5, &end, 10), step = from - last;
            for (int t = from; t <= next; t += step) told[t] = true;
        }
        last = from;
        end += strspn(end, ", ");
    }
    for (int t = 0; t < 32; t++) assert_int_equal(told[t], place_of(order, h->n, t) == place);
}
static void hold_diagonals(const ViewCall *c, const Hops *h) {
    Scene *page[VIEW_MAX_PAGES];
    int whole = 0, less = 0, want = 0, all = 0, rows = 32 / h->n;
    assert_int_equal(render_pages(c->t, c->d, c->o, c->arena, page), 1);
    double widest = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < page[0]->n_marks; i++) {
            const Mark *m = &page[0]->marks[i];
            double low = INFINITY, high = -INFINITY;
            if (m->kind != MARK_POLY) continue;
            for (int k = 0; k < m->n; k++)
                low = fmin(low, m->pt[k].x), high = fmax(high, m->pt[k].x);
            if (!pass) widest = fmax(widest, high - low);
            whole += pass && fabs(high - low - widest) < 1e-6;
            less += pass && fabs(high - low - widest * (rows - 1) / rows) < 1e-6;
        }
    for (int j = 0; j < h->n; j++)
        for (int i = 0; i <= j; i++)
            for (int k = 0; k < h->n; k++) want += hops_keys(h, i, k) > k, all++;
    assert_int_equal(less, want);
    assert_int_equal(whole, all - want);
}
/* What a step's ranks compute is said whole under its frame, on every kind of page. */
static void hold_captions(ViewCall c, int n) {
    static const char *const preset[] = {"wide", "slide", "column", "a4"};
    for (int k = 0; k < 4; k++) {
        RenderOptions o = asked(preset[k]);
        Scene *page[VIEW_MAX_PAGES];
        int pages = render_pages(c.t, c.d, &o, c.arena, page), told = 0;
        for (int j = 0; j < pages; j++)
            for (int i = 0; i < page[j]->n_marks; i++) {
                const Mark *m = &page[j]->marks[i];
                const char *w = m->kind == MARK_TEXT && m->n_run ? m->run[0].s : "";
                if (strncmp(w, "most: ", 6) && strncmp(w, "each rank: ", 11)) continue;
                told++;
                assert_non_null(strstr(w, " % of all"));
            }
        assert_int_equal(told, n);
    }
}
static void test_tokens(void **state) {
    (void)state;
    for (int i = 0; i < 3 * 3; i++) {
        Arena *a = arena_new();
        Diags *d;
        int order = i % 3, n = 2 << i / 3, place;
        Trace *t = ring(a, n, orders[order], CAUSAL, &d);
        RenderOptions o = asked(NULL);
        ViewCall c = {.t = t, .d = d, .o = &o, .arena = a};
        Hops h;
        assert_true(hops_prepare(&c, &h));
        for (int k = 0; k < n; k++) hold_tokens(&h, order, k);
        hold_captions(c, n);
        if (order == 2) hold_diagonals(&c, &h);
        static const char *const most[] = {"ranks 1-3", "ranks 0-3", "ranks 1-3"};
        if (n == 4) assert_string_equal(hops_most(&h, h.row, 1, &place), most[order]);
        size_t len;
        const char *words = svg_words(a, render_text(t, d, &o, FORMAT_SVG, a, &len));
        says(words, "its tokens");
        (order == 1 ? says_not : says)(words, "waits for the busiest of the step");
        arena_free(a);
    }
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
/* The timeline calls a part by its number, forward and backward: under it is the hop of the next.
 */
static void test_timeline(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run_with(a, "ring.yaml",
                              "model: {kind: attention, heads: 8, kv_heads: 8, head_dim: 128}\n"
                              "data: {batch: 1, sequence: 65536, dtype: bf16}\nmesh: {cp: 4}\n"
                              "pass: backward\ncontext_parallel: {mode: ring, order: zigzag}\n"
                              "hardware: h100-sxm\n",
                              &(PipelineOptions){.events = true});
    assert_non_null(r.t);
    RenderOptions o = {.view = "timeline", .rank = -1, .layer = -1};
    size_t n;
    const char *words = svg_words(a, render_text(r.t, r.d, &o, FORMAT_SVG, a, &n));
    for (int j = 0; j < 4; j++) says(words, arena_printf(a, "part %d", j));
    says(words, "dk");
    /* backward a hop of keys and one of their gradients are two things */
    const char *rows = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
    static const char *const hops[] = {"Shift k ", "Shift v ", "Shift dk ", "Shift dv "};
    for (int k = 0; k < 4; k++) says(rows, hops[k]);
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    for (int k = 0; k < 4; k++) {
        o.preset = sizes[k];
        const char *report = "";
        if (render_lint(r.t, r.d, &o, a, &report)) fail_msg("%s: %s", sizes[k], report);
    }
    arena_free(a);
}
/* A plan with a mistake looks it: which, in red, and that the frames do not follow it. */
static void test_wrong_plan(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"},
                             *const fault[] = {"", "\nfaults: [{at: shift 2 of k, do: drop}]"};
    for (int wrong = 0; wrong < 2; wrong++) {
        Arena *a = arena_new();
        PlanRun r =
            plan_run(a, "ring.yaml",
                     arena_printf(a,
                                  "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 3}\n"
                                  "data: {batch: 2, sequence: 32, dtype: f64}\nmesh: {cp: 4}\n"
                                  "context_parallel: {mode: ring}%s\n",
                                  fault[wrong]),
                     true);
        RenderOptions o = asked(NULL);
        size_t n;
        const char *svg = svg_words(a, render_text(r.t, r.d, &o, FORMAT_SVG, a, &n)),
                   *text = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
        run_must_be(&r, wrong ? "different" : "equivalent");
        (wrong ? says : says_not)(one_line(a, svg), "is missing (planted: drop)");
        (wrong ? says : says_not)(one_line(a, svg), "without the mistake");
        (wrong ? says : says_not)(one_line(a, text), "is missing (planted: drop)");
        for (int k = 0; k < 4; k++) {
            o.preset = sizes[k];
            const char *report = "";
            if (render_lint(r.t, r.d, &o, a, &report)) fail_msg("%s: %s", sizes[k], report);
        }
        /* Without being asked: the ring where it is right, else the hop that is missing. */
        o.part = o.preset = NULL;
        svg = one_line(a, svg_words(a, render_text(r.t, r.d, &o, FORMAT_SVG, a, &n)));
        text = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
        says(svg, wrong ? ": left out" : "Ring attention over cp: 4 ranks");
        (wrong ? says_not : says)(text, "Queries stay on their rank");
        o.part = "shift";
        says(render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n), "Ring Shift of");
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
        cmocka_unit_test(test_work),        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_bands),       cmocka_unit_test(test_masks),
        cmocka_unit_test(test_other_rings), cmocka_unit_test(test_latent),
        cmocka_unit_test(test_tokens),      cmocka_unit_test(test_documents),
        cmocka_unit_test(test_timeline),    cmocka_unit_test(test_no_ring),
        cmocka_unit_test(test_wrong_plan)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return failed;
}
