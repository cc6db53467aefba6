/* What the titles and captions of pictures count, held against the records: every plan that is
 * shipped (the planted bugs too), every pass and part. A number stands with the words that say what
 * was counted; the test computes it from collectives, values and times alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/overview/overview.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "support/fact.h"
#include "support/records.h"
#include "support/support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const passes[] = {NULL, "forward", "backward"};

static Trace *trace_of(Arena *a, const char *path, bool execute) {
    size_t n;
    Diags *d = diags_new(a);
    const char *text = file_read(a, d, path, 1 << 20, (Loc){0}, &n);
    assert_non_null(text);
    PipelineOptions o = {.execute = execute, .events = true, .numbers = execute, .threads = 1};
    return plan_run_with(a, path, text, &o).t;
}
/* The pages, 0 if the plan has nothing for the view. */
static int pages_of(Arena *a, const Trace *t, const RenderOptions *o, Scene **page) {
    return render_pages(t, diags_new(a), o, a, page);
}
static RenderOptions options(const char *view, const char *pass, int64_t rank) {
    return (RenderOptions){.view = view, .pass = pass, .rank = rank, .layer = -1};
}
static void says(const char *words, const char *what, const char *fact) {
    if (!strstr(words, fact)) fail_msg("%s: '%s' is not in\n%s", what, fact, words);
}

/* What the parts of an overview hold adds up to what `params` says of the rank, and within a layer
 * to that of the layer: in backward as in forward, though its steps read few of them. */
static void check_parts_hold_all(Arena *a, const Trace *t, const char *path,
                                 const RenderOptions *view) {
    Phase pass = !view->pass                     ? PHASE_NONE
                 : strcmp(view->pass, "forward") ? PHASE_BACKWARD
                                                 : PHASE_FORWARD;
    ViewCall c = {.t = t, .all = t, .d = diags_new(a), .o = view, .pass = pass, .arena = a};
    Overview o;
    if (!overview_read(&o, &c)) return;
    int64_t sum = 0, layer = 0;
    for (int k = 0; k < o.n; k++) {
        sum += o.unit[k].weights * o.unit[k].layers;
        layer += o.unit[k].layer == 0 ? o.unit[k].weights : 0;
    }
    int64_t all = records_weights(t, view->rank, -1, false),
            first = records_weights(t, view->rank, 0, false);
    if (sum != all || layer != first)
        fail_msg("%s %s, rank %lld: %lld of %lld bytes, of layer 0 %lld of %lld", path,
                 view->pass ? view->pass : "", (long long)view->rank, (long long)sum,
                 (long long)all, (long long)layer, (long long)first);
}

/* "A rank holds X of weights and sends Y in N collectives" (and messages, those that it sends): of
 * `comms --rank`, of all passes or of the pass that the title names. The parts of the footer add up
 * to it. */
static void check_overview(Arena *a, const Trace *t, const char *path) {
    int64_t ranks[2] = {0, t->ranks - 1};
    Scene *page[VIEW_MAX_PAGES];
    for (int r = 0; r < (t->ranks > 1 ? 2 : 1); r++)
        for (int p = 0; p < 3; p++) {
            RenderOptions o = options("overview", passes[p], ranks[r]);
            if (!pages_of(a, t, &o, page)) continue;
            check_parts_hold_all(a, t, path, &o);
            RecordSum s = records_sent(t, ranks[r], passes[p], -1);
            const char *in = passes[p] ? arena_printf(a, " in %s", passes[p]) : "",
                       *of = arena_printf(a, "holds %s of weights and sends ",
                                          bytes_text(records_weights(t, ranks[r], -1, false), a)),
                       *fact = s.count > s.received
                                   ? arena_printf(a, "%s%s in %s%s", of, bytes_text(s.bytes, a),
                                                  record_counted(a, s, true), in)
                                   : arena_printf(a, "%snothing%s", of, in);
            says(picture_fact(page[0]), path, fact);
            long long count = 0, more;
            for (const char *at = strstr(page_words(a, page[0], NULL), "Sent "); at && *at; at++)
                if ((!strncmp(at, " in ", 4) && sscanf(at, " in %lld", &more) == 1) ||
                    (!strncmp(at, " and ", 5) && sscanf(at, " and %lld message", &more) == 1))
                    count += more;
            assert_int_equal(count, s.count - s.received);
        }
}

/* "A Transformer block needs N collectives and sends X": those of its layer, whatever stands beside
 * it; "this model", those of all that is drawn. */
static void check_block(Arena *a, const Trace *t, const char *path, int *held) {
    Scene *page[VIEW_MAX_PAGES];
    for (int p = 1; p < 3; p++) {
        RenderOptions o = options("block", passes[p], 0);
        if (!pages_of(a, t, &o, page)) continue;
        const char *title = picture_fact(page[0]);
        if (strstr(title, "a Transformer block needs ") == NULL) continue;
        RecordSum s = records_sent(t, 0, passes[p], records_first_layer(t));
        says(title, path,
             s.count ? arena_printf(a, "a Transformer block needs %s and sends %s",
                                    record_counted(a, s, false), bytes_text(s.bytes, a))
                     : "a Transformer block needs no communication");
        assert_true(!!strstr(title, "the backward pass of ") == (p == 2));
        ++*held;
    }
}

/* "Rank 0 holds X of Y of weights": of the model, or of the layer that it names; then the subtitle
 * has those of the model. */
static void check_shards(Arena *a, const Trace *t, const char *path) {
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = options("shards", NULL, 0);
    if (!pages_of(a, t, &o, page)) return;
    const char *title = picture_fact(page[0]), *all = "", *one = "";
    all = arena_printf(a, "%s of %s of weights", bytes_text(records_weights(t, 0, -1, false), a),
                       bytes_text(records_weights(t, 0, -1, true), a));
    int layer0 = records_first_layer(t);
    one = arena_printf(a, "%s of %s of layer %d's weights",
                       bytes_text(records_weights(t, 0, layer0, false), a),
                       bytes_text(records_weights(t, 0, layer0, true), a), layer0);
    bool layer = strstr(title, arena_printf(a, "layer %d's", layer0)) != NULL;
    says(title, path, layer ? one : all);
    says(page_words(a, page[0], NULL), path, all);
}

static void titles_count_what_the_records_count(void **state) {
    (void)state;
    int held = 0;
    for (PlanFiles f = plan_files("plans/{,bugs/}*.yaml", NULL); plan_files_next(&f);) {
        const Trace *t = trace_of(f.a, f.path, false);
        if (t) {
            check_overview(f.a, t, f.path);
            check_block(f.a, t, f.path, &held);
            check_shards(f.a, t, f.path);
        }
    }
    assert_true(held >= 30);
}

/* Whoever sees a figure of a model of a sixteenth of the widths must read that, on every page; and
 * that B is of one micro-batch. */
static void subtitles_say_what_is_small(void **state) {
    (void)state;
    static const char *const plans[] = {
        "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "plans/bugs/27-hsdp-copies-not-summed.yaml",
        "plans/bugs/07-sequence-not-cut.yaml", "plans/20-llama3-8b-fsdp-tp.yaml"};
    static const char *const preset_names[] = {"wide", "column", "slide", "a4"};
    int n_views, held = 0;
    const RenderView *views = render_views(&n_views);
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        Arena *a = arena_new();
        const Trace *t = trace_of(a, plans[i], i < 2);
        for (int v = 0; v < n_views; v++)
            for (int p = 0; p < 4; p++) {
                RenderOptions o = options(views[v].name, NULL, 0);
                o.preset = preset_names[p];
                Scene *page[VIEW_MAX_PAGES];
                int n = pages_of(a, t, &o, page);
                for (int k = 0; k < n; k++, held++) {
                    const char *words = page_words(a, page[k], NULL),
                               *what = arena_printf(a, "%s %s %s", plans[i], o.view, o.preset);
                    says(words, what, "widths ÷");
                    bool data = strstr(words, "S=32") && i == 1;
                    if (data) says(words, what, "B=4 of 8, one of 2 micro-batches,");
                }
            }
        arena_free(a);
    }
    assert_true(held >= 80);
}

/* Where experts lie on the ranks by other axes than dense weights, the title of the mesh has both;
 * else it stays what it is. */
static void meshes_of_experts_are_told(void **state) {
    (void)state;
    static const char *const titles[][2] = {
        {"plans/30-mixtral-8x7b-ep-dp-cp.yaml",
         "8 ranks, two meshes: dp 2 · cp 2 · tp 2 for dense weights, ep 4 · tp 2 for experts"},
        {"plans/33-qwen3-30b-a3b-ep.yaml",
         "8 ranks, two meshes: dp 8 for dense weights, edp 2 · ep 4 for experts"},
        {"plans/37-qwen3-30b-a3b-ep-etp.yaml",
         "8 ranks, two meshes: dp 4 · tp 2 for dense weights, edp 2 · ep 2 · etp 2 for experts"},
        {"plans/shape-only/deepseek-v3-2048.yaml", /* in bars too */
         "2048 ranks, two meshes: dp 512 · tp 4 for dense weights, edp 8 · tp 4 · ep 64 for "
         "experts"},
        {"plans/43-llama4-maverick-six-diagrams.yaml",
         "8 ranks, two meshes: dp 2 · cp 2 · tp 2 for dense weights, ep 4 · tp 2 for experts"},
        {"plans/31-mixtral-8x7b-tp.yaml", "4 ranks, all in one group"},
        {"plans/20-llama3-8b-fsdp-tp.yaml", NULL}};
    int told = 0;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        Arena *a = arena_new();
        Scene *page[VIEW_MAX_PAGES];
        const Trace *t = trace_of(a, titles[i][0], false);
        RenderOptions o = options("mesh", NULL, 0);
        assert_true(pages_of(a, t, &o, page) >= 1);
        if (titles[i][1]) assert_string_equal(page[0]->title, titles[i][1]);
        else assert_null(strstr(page[0]->title, "two meshes"));
        /* what is over the ranks calls the axis inside an expert as the title does */
        const char *head = NULL, *in = NULL;
        for (int k = 0; k < page[0]->n_marks && !in; k++)
            if (page[0]->marks[k].kind == MARK_TEXT && page[0]->marks[k].n_run)
                head = page[0]->marks[k].run[0].s, in = strstr(head, " inside each expert");
        while (in && in > head && strncmp(in - 2, ": ", 2) && strncmp(in - 3, "· ", 3)) in--;
        if (in && strstr(page[0]->title, "two meshes")) {
            const size_t n = strcspn(in, "=");
            const char *own = arena_printf(a, "%.*s %c", (int)n, in, in[n + 1]);
            if (!strstr(page[0]->title, own)) fail_msg("%s: %s", titles[i][0], own);
            told++;
        }
        arena_free(a);
    }
    assert_int_equal(told, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(titles_count_what_the_records_count),
                                       cmocka_unit_test(subtitles_say_what_is_small),
                                       cmocka_unit_test(meshes_of_experts_are_told)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
