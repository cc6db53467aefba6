/* What outside eyes missed in pictures: an arrow without words, a box without a name, a sentence
 * cut short. Each test draws a plan and reads the words of the SVG back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "render/render.h"
#include "support/child.h"
#include "support/support.h"
#include <stdlib.h>
#include <string.h>

static const char train[] =
    "model: {preset: llama3-8b, layers: 2, shrink: 64, parts: [embedding, blocks, norm, head, "
    "loss]}\n"
    "data: {batch: 4, sequence: 16, dtype: f64}\nmesh: {dp: 2, cp: 2, tp: 2}\ngroups: {sp: tp}\n"
    "names: torchtitan\nrecipe: torchtitan-llama3\n"
    "data_parallel: {mode: fsdp, axis: dp*cp}\npass: train\n"
    "optimizer: {name: adamw, lr: 0.01, weight_decay: 0.1, clip: 0.5, steps: 5}\n";

/* The words of the texts of an SVG, one text per line. */
static const char *svg_words(Arena *a, const char *s) {
    Str out = str_new(a);
    for (const char *t = strstr(s, "<text"); t; t = strstr(t + 5, "<text")) {
        const char *end = strstr(t, "</text>");
        for (const char *p = t; p < end;) {
            if (*p == '<') p = strchr(p, '>') + 1;
            else str_addn(&out, p++, 1);
        }
        str_add(&out, "\n");
    }
    return out.s;
}
static const char *words_of(Arena *a, const Trace *t, RenderOptions o) {
    Diags *d = diags_new(a);
    size_t n;
    const char *s = render_text(t, d, &o, FORMAT_SVG, a, &n);
    if (!s) diags_print(d, stderr, false);
    assert_non_null(s);
    return svg_words(a, s);
}
static void says(const char *words, const char *what) {
    if (!strstr(words, what)) print_message("missing: %s\nin: %s\n", what, words);
    assert_non_null(strstr(words, what));
}
static void says_not(const char *words, const char *what) {
    if (strstr(words, what)) print_message("has: %s\nin: %s\n", what, words);
    assert_null(strstr(words, what));
}
static RenderOptions view(const char *name) {
    return (RenderOptions){.view = name, .rank = -1, .layer = -1};
}

/* The optimizer stands behind the pass: it reads gradients and makes weights, and the loss ends
 * before it. */
static void the_optimizer_has_words(void **state) {
    (void)state;
    static const char *const presets[] = {"wide", "column", "slide", "a4"};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run_with(a, "train.yaml", train, &(PipelineOptions){0});
        RenderOptions o = view("overview");
        o.preset = presets[i];
        const char *report, *w = words_of(a, r.t, o);
        says(w, "gradients of the weights");
        says(w, "weights for the next step");
        /* eight boxes with two axes each do not fit on a slide at 24 px: it is scaled */
        if (strcmp(presets[i], "slide") && render_lint(r.t, r.d, &o, a, &report))
            fail_msg("%s: %s", presets[i], report);
        arena_free(a);
    }
}

/* The backward pass opens with the gradient that its first step reads, under the part whose it is.
 */
static void backward_units_have_names(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run_with(a, "train.yaml", train, &(PipelineOptions){0});
    RenderOptions o = view("overview");
    o.pass = "backward";
    const char *w = words_of(a, r.t, o);
    says_not(w, "Steps");
    says_not(w, "forward and backward");
    says_not(w, "[B/dp, S/cp]\n");
    says(w, "Embedding");
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_optimizer_has_words),
                                       cmocka_unit_test(backward_units_have_names)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
