/* The six diagrams of "Simplicity buried in Abstractions", from one plan: overview, embedding,
 * attention, MLP, experts and loss. Each is drawn on every page, is clean, and shows exactly the
 * collectives that the article's text names, over the axes that it names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "support/support.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char plan[] = "plans/43-llama4-maverick-six-diagrams.yaml";

typedef struct {
    const char *view, *part;
    const char *collectives; /* "op over axis", in the order of steps */
    const char *words[5];    /* local shapes and names that stand there; NULL: no more */
} Diagram;

static const Diagram diagrams[] = {
    {"overview", NULL, "", {"Embedding", "MLP", "MoE", "Loss", "[B/dp, S/(cp·sp), D]"}},
    {"block",
     "embedding",
     "reduce_scatter over sp\n",
     {"[V/vp, D]", "[B/dp, S/cp, D]", "[B/dp, S/(cp·sp), D]", "Σ tp pending"}},
    {"block",
     "attention",
     "all_gather over sp\nall_gather over cp\nreduce_scatter over sp\n",
     {"[H·d/tp, D]", "[B/dp, S, K/tp, d]", "AllGather k, v", "[B/dp, S/cp, H·d/tp]"}},
    {"block",
     "mlp",
     "all_gather over sp\nreduce_scatter over sp\n",
     {"[F/tp, D]", "[D, F/tp]", "[B/dp, S/cp, F/tp]", "Σ tp pending"}},
    {"block",
     "moe",
     "all_gather over sp\nall_to_all over ep\nall_to_all over ep\nall_to_all over ep\n"
     "reduce_scatter over sp\n",
     {"[E/ep, Fe/tp, D]", "[rows(B, S, E/ep), D]", "dispatch", "combine", "shared w2"}},
    {"block",
     "loss",
     "all_reduce over tp\nall_reduce over tp\nall_reduce over tp\nall_reduce over dp*cp\n",
     {"[B/dp, S/cp, V/vp]", "AllReduce max", "sum of exp over V", "target logit", "one number"}}};

static PlanRun load(Arena *a) {
    size_t n;
    const char *text = file_read(a, diags_new(a), plan, 1 << 20, (Loc){0}, &n);
    assert_non_null(text);
    PlanRun r = plan_run_with(a, plan, text, &(PipelineOptions){.execute = true, .events = true});
    if (!r.t) run_print(&r);
    assert_non_null(r.t);
    return r;
}

/* All texts of a page; pieces of one line are one. */
static void add_words(Str *out, const Scene *s) {
    for (int i = 0; i < s->n_marks; i++) {
        if (s->marks[i].kind != MARK_TEXT) continue;
        for (int k = 0; k < s->marks[i].n_run; k++) str_add(out, s->marks[i].run[k].s);
        str_add(out, "|");
    }
}
/* The collectives of a page by the tooltips of their hexagons: "step 5: all_gather of x over sp".
 */
static void add_collectives(Str *out, const Scene *s) {
    for (int i = 0; i < s->n_groups; i++) {
        char op[32], value[128], axis[32];
        if (strcmp(s->groups[i].what, "collective") || !s->groups[i].tip) continue;
        for (const char *at = s->groups[i].tip; at; at = strstr(at + 1, "step ")) /* all in a box */
            if (sscanf(at, "step %*d: %31[a-z_] of %127s over %31[^ \n]", op, value, axis) == 3)
                str_addf(out, "%s over %s\n", op, axis);
    }
}

static void six_diagrams_of_one_plan(void **state) {
    (void)state;
    static const char *const presets[] = {"wide", "column", "slide", "a4"};
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    PlanRun r = load(a);
    for (size_t d = 0; d < sizeof diagrams / sizeof *diagrams; d++)
        for (int q = 0; q < 4; q++) {
            const Diagram *want = &diagrams[d];
            Scene *page[VIEW_MAX_PAGES];
            RenderOptions o = {.view = want->view,
                               .part = want->part,
                               .preset = presets[q],
                               .rank = -1,
                               .layer = -1};
            Str words = str_new(a), sent = str_new(a);
            int n = render_pages(r.t, r.d, &o, a, page);
            assert_true(n >= 1);
            for (int i = 0; i < n; i++) {
                const char *report;
                if (scene_lint(page[i], a, &report)) fail_msg("%s", report);
                add_words(&words, page[i]);
                add_collectives(&sent, page[i]);
            }
            assert_string_equal(sent.s, want->collectives);
            bool bars = !strcmp(presets[q], "slide"); /* has bars for numbers, no weights' shapes */
            for (int k = 0; k < 5 && want->words[k] && !bars; k++)
                if (!strstr(words.s, want->words[k]))
                    fail_msg("%s %s: no '%s' in %s", want->part ? want->part : want->view,
                             presets[q], want->words[k], words.s);
        }
    arena_free(a);
}

/* Embedding and loss are of no layer, the experts of the first that has some: the subtitle says so
 * without being asked for a layer. */
static void layers_are_found(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    PlanRun r = load(a);
    static const char *const says[] = {NULL,           "", "layer 0 of 2", "layer 0 of 2",
                                       "layer 1 of 2", ""};
    for (int d = 1; d < 6; d++) {
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = {.view = "block", .part = diagrams[d].part, .rank = -1, .layer = -1};
        Str words = str_new(a);
        assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
        add_words(&words, page[0]);
        if (*says[d]) assert_non_null(strstr(words.s, says[d]));
        else assert_null(strstr(words.s, "(--layer)"));
    }
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(six_diagrams_of_one_plan),
                                       cmocka_unit_test(layers_are_found)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
