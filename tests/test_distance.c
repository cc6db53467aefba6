/* How far every value is from the unsharded model, beside the check of each step by itself: the
 * record `distance` and the column "end to end" of the errors view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "base/file.h"
#include "render/render.h"
#include "support/pictures.h"
#include "support/support.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

static PlanRun run(Arena *a, const char *path, int64_t limit) {
    size_t size;
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &size);
    assert_non_null(text);
    return plan_run_with(
        a, path, text,
        &(PipelineOptions){
            .execute = true, .distances = true, .threads = 1, .memory_limit = limit});
}
static const TraceDistance *last_of(const Trace *t, const char *value) {
    const TraceDistance *d = NULL;
    for (int i = 0; i < t->n_distances; i++)
        if (!strcmp(t->distances[i].value, value)) d = &t->distances[i];
    return d;
}
static int64_t off(const TraceDistance *d) { return rankset_count(&d->ranks); }

/* A right run is nowhere off by more than is trusted with rounding, and has a distance for (almost)
 * every step: tensor, sequence, context and data parallel, experts, rings, pipelines, training. */
static void right_plans_are_near(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const struct {
        const char *plan;
        int least; /* distances, of 100 steps */
    } row[] = {{"02-toymodel-4", 100},
               {"05-llama3-8b-tp4-sp", 100},
               {"09-llama3-8b-dp2-cp2-tp2", 100},
               {"20-llama3-8b-fsdp-tp", 90},
               {"21-llama3-8b-recompute", 90},
               {"23-llama3-8b-packed", 100},
               {"37-qwen3-30b-a3b-ep-etp", 80},
               {"models/llama4-maverick-ep", 90}, /* 128 experts: rows are few of what could be */
               {"41-llama3-8b-ring4-zigzag", 80},
               {"45-llama3-8b-pp4-1f1b", 40},
               {"50-llama3-8b-zero1", 30}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = run(a, arena_printf(a, "plans/%s.yaml", row[i].plan), 0);
        run_must_be(&r, "equivalent");
        int made = 0, steps = 0;
        for (int k = 0; k < r.t->n_distances; k++) {
            const TraceDistance *d = &r.t->distances[k];
            made += d->step >= 0;
            if (off(d) || !(d->max_abs <= d->bound))
                fail_msg("%s: %s of step %d is off by %g of %g", row[i].plan, d->value, d->step,
                         d->max_abs, d->top);
        }
        bool *seen = ARENA_ARRAY(a, bool, 1 << 16);
        for (int k = 0; k < r.t->n_checks; k++) {
            int s = r.t->checks[k].step;
            if (s < 0 || seen[s]) continue;
            seen[s] = true, steps++;
        }
        print_message("%s: %d of %d steps\n", row[i].plan, made, steps);
        assert_true(made * 100 >= steps * row[i].least);
        arena_free(a);
    }
}

/* After one wrong step all that is computed from it is off, though each later step is right by
 * itself; what comes before is not. The end is as far as the comparison of ends says. */
static void what_follows_is_off(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const char *const bug[] = {"04-wrong-block", "06-reduced-twice",
                                      "01-output-left-partial"};
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        PlanRun r = run(a, arena_printf(a, "plans/bugs/%s.yaml", bug[i]), 0);
        const Trace *t = r.t;
        int first = -1, after = 0;
        for (int k = 0; k < t->n_checks && first < 0; k++)
            if (!strcmp(t->checks[k].verdict, "FAIL") && t->checks[k].level != LEVEL_STRUCTURE)
                first = t->checks[k].step;
        assert_true(first > 0);
        for (int k = 0; k < t->n_distances; k++) {
            const TraceDistance *d = &t->distances[k];
            bool weight = strstr(d->value, "weight") != NULL;
            assert_true(off(d) == (d->step >= first && !weight ? t->ranks : 0));
            after += d->step > first && !weight;
        }
        assert_true(after >= 9);
        const TraceDistance *end = last_of(t, t->end_to_end);
        assert_true(fabs(end->max_abs / end->top - t->end_to_end_off) < 1e-12);
        arena_free(a);
    }
}

/* A rank that takes no part in a sum: it and the others of its group are off, and nobody else. */
static void distances_know_ranks(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const char plan[] = "model: {kind: mlp, sizes: [8, 12, 8], layer_names: [up, down]}\n"
                               "data: {batch: 2, sequence: 4}\nmesh: {dp: 2, tp: 2}\n"
                               "plan:\n  up: colwise\n  down: rowwise\n"
                               "faults:\n  - {at: down.product, do: skip, rank: 3}\n";
    PlanRun r = plan_run_with(a, "one.yaml", plan,
                              &(PipelineOptions){.execute = true, .distances = true, .threads = 1});
    assert_true(r.t && r.t->n_distances > 0);
    int some = 0;
    for (int k = 0; k < r.t->n_distances; k++) {
        const TraceDistance *d = &r.t->distances[k];
        if (!off(d)) continue;
        some++; /* the other rows of the batch are right */
        assert_false(rankset_has(&d->ranks, 0) || rankset_has(&d->ranks, 1));
        assert_true(rankset_has(&d->ranks, 2) && rankset_has(&d->ranks, 3));
    }
    assert_true(some > 0);
    arena_free(a);
}

/* Several steps that are wrong by themselves: none is said to be so because of another. */
static void each_wrong_step_is_its_own(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    PlanRun r = run(a, "plans/bugs/13-gradient-not-summed-over-dp.yaml", 0);
    RenderOptions o = {.view = "errors", .rank = -1, .layer = -1};
    size_t size;
    const char *w = svg_words(a, render_text(r.t, diags_new(a), &o, FORMAT_SVG, a, &size));
    says(w, "2 more are wrong as well");
    says_not(w, "because of it");
    arena_free(a);
}

/* They come back from a file, and the picture and the text say them: beside the error of the step.
 */
static void the_view_has_both(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    PlanRun r = run(a, "plans/bugs/04-wrong-block.yaml", 0);
    size_t size;
    const char *saved = trace_text(r.t, a, false, &size);
    Trace *back = trace_read(a, diags_new(a), "04.trace.jsonl", saved, size);
    assert_non_null(back);
    assert_int_equal(back->n_distances, r.t->n_distances);
    assert_true(back->distances[20].max_abs == r.t->distances[20].max_abs);
    RenderOptions o = {.view = "errors", .rank = -1, .layer = -1};
    static const char *const presets[] = {"wide", "slide", "column", "a4"};
    for (int i = 0; i < 4; i++) {
        o.preset = presets[i];
        const char *s = render_text(back, diags_new(a), &o, FORMAT_SVG, a, &size),
                   *w = svg_words(a, s), *report;
        says(w, "end to end");
        says(w, "the wrong step");
        says(w, "wrong because of it");
        says(w, "and 10 later");
        says(w, "4.5"); /* the output, whose own step is off by 2e-07 */
        if (render_lint(back, diags_new(a), &o, a, &report)) fail_msg("%s", report);
    }
    const char *text = render_text(back, diags_new(a), &o, FORMAT_TEXT, a, &size);
    says(text, "2e-07   4.5 ~~~~");
    arena_free(a);
}

/* Where keeping every value takes more than there is, the run goes on without. */
static void room_decides(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    const char *plan = "plans/18-llama3-8b-backward.yaml";
    PlanRun with = run(a, plan, 0), without, text;
    assert_true(with.t->n_distances > 0);
    size_t size;
    const char *s = file_read(a, diags_new(a), plan, 1 << 20, (Loc){0}, &size);
    text = plan_run_with(a, plan, s, &(PipelineOptions){.execute = true, .threads = 1});
    assert_int_equal(text.t->n_distances, 0);
    assert_true(text.rep.predicted_bytes < with.rep.predicted_bytes);
    int64_t between = (text.rep.predicted_bytes + with.rep.predicted_bytes) / 2 * 16 / 15;
    without = run(a, plan, between);
    assert_int_equal(without.t->n_distances, 0);
    run_must_be(&without, "equivalent");
    assert_true(without.rep.predicted_bytes == text.rep.predicted_bytes);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_plans_are_near), cmocka_unit_test(what_follows_is_off),
        cmocka_unit_test(distances_know_ranks), cmocka_unit_test(each_wrong_step_is_its_own),
        cmocka_unit_test(the_view_has_both),    cmocka_unit_test(room_decides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
