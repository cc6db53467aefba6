/* What outside eyes missed in pictures: an arrow without words, a box without a name, a sentence
 * cut short. Each test draws a plan and reads the words of the SVG back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "base/file.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "support/support.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The collective of a product is drawn in the state that its record tells, and the state is said.
 */
static void sums_of_products_have_states(void **state) {
    (void)state;
    static const char plan[] =
        "model: {kind: mlp, sizes: [10, 64, 32, 8], bias: false, layer_names: [up, down, "
        "out]}\n"
        "data: {rows: 10}\nmesh: {tp: 4}\nplan: {up: colwise, down: %s, out: replicate}\n%s";
    static const struct {
        const char *down, *fault, *says;
    } row[] = {{"rowwise", "", NULL},
               {"local_rowwise", "", "No line of the plan asks for this"},
               {"rowwise", "faults: [{at: down, do: drop}]\n", "is missing (planted: drop)"}};
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(a, plan, row[i].down, row[i].fault), *report;
        PlanRun r = plan_run_with(a, "mlp.yaml", text, &(PipelineOptions){0});
        assert_non_null(r.t);
        RenderOptions o = view("shards");
        const char *w = words_of(a, r.t, o);
        bool all = strstr(w, "No line of the plan asks for this") || strstr(w, "is missing");
        if (row[i].says) says(w, row[i].says);
        else assert_false(all);
        if (i == 2) says(w, "nothing is sent: the AllReduce over tp is left out");
        if (render_lint(r.t, r.d, &o, a, &report)) fail_msg("%s: %s", row[i].down, report);
        arena_free(a);
    }
}

/* On a part of a tensor the hatch of a pending sum has the ink of that part's own text: seen on the
 * light and the dark parts of every theme. */
static void hatches_are_seen(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    Scene *page[32];
    size_t size;
    const char *path = "plans/09-llama3-8b-dp2-cp2-tp2.yaml";
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &size);
    PlanRun r = plan_run_with(a, path, text, &(PipelineOptions){0});
    RenderOptions o = view("shards");
    int n = render_pages(r.t, r.d, &o, a, false, page), held = 0;
    assert_true(n > 0);
    for (int i = 0; i < page[0]->n_marks; i++) {
        const Mark *h = &page[0]->marks[i], *under = NULL;
        if (h->kind != MARK_HATCH) continue;
        for (int k = 0; k < i; k++) {
            const Mark *m = &page[0]->marks[k];
            if (m->kind == MARK_RECT && m->fill >= ROLE_SHARD && m->fill <= ROLE_SHARD_3 &&
                fabs(m->x - h->x) < 0.5 && fabs(m->y - h->y) < 0.5)
                under = m;
        }
        if (!under) continue;
        assert_int_equal(h->stroke - ROLE_SHARD_TEXT, under->fill - ROLE_SHARD);
        held++;
    }
    assert_true(held > 0);
    arena_free(a);
}

/* The number of the comparison with the unsharded model is in the record, comes back from a file,
 * and the picture of errors says it. */
static void errors_say_end_to_end(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    size_t size;
    const char *path = "plans/bugs/04-wrong-block.yaml";
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &size);
    PlanRun r = plan_run_with(a, path, text,
                              &(PipelineOptions){.execute = true, .numbers = true, .threads = 1});
    assert_string_equal(r.t->end_to_end, r.rep.end_to_end_worst);
    assert_true(r.t->end_to_end_off == r.rep.end_to_end_rel && r.t->end_to_end_off > 0);
    const char *saved = trace_text(r.t, a, false, &size);
    Trace *back = trace_read(a, diags_new(a), "04.trace.jsonl", saved, size);
    assert_non_null(back);
    assert_string_equal(back->end_to_end, r.t->end_to_end);
    assert_true(back->end_to_end_off == r.t->end_to_end_off);
    assert_true(back->end_to_end_bound == r.t->end_to_end_bound);
    RenderOptions o = view("errors");
    const char *s = render_text(back, diags_new(a), &o, FORMAT_SVG, a, &size);
    assert_non_null(s);
    /* on the page the sentence is broken into lines: its description has it in one */
    says(words_of(a, back, o), "End to end:");
    says(words_of(a, back, o), arena_printf(a, "%.2g", r.t->end_to_end_off));
    arena_free(a);
}

/* A mistake in the optimizer is told in words that people have for it, not by the name of a value.
 */
static void mistakes_of_the_optimizer_have_words(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const char *const row[][2] = {
        {"plans/bugs/42-norm-counts-copies.yaml", "sum of squares of d norm is not"},
        {"plans/bugs/43-clip-not-applied.yaml", "clip of d norm is not"}};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        size_t size;
        const char *text = file_read(a, diags_new(a), row[i][0], 1 << 20, (Loc){0}, &size);
        PlanRun r = plan_run_with(a, row[i][0], text, &(PipelineOptions){0});
        const char *w = words_of(a, r.t, view("block"));
        says(w, row[i][1]);
        says_not(w, ".weight.");
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_of_products_have_states),
                                       cmocka_unit_test(hatches_are_seen),
                                       cmocka_unit_test(errors_say_end_to_end),
                                       cmocka_unit_test(mistakes_of_the_optimizer_have_words),
                                       cmocka_unit_test(the_optimizer_has_words),
                                       cmocka_unit_test(backward_units_have_names)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
