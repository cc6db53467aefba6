/* Level 3 (--exact) through the backward pass: right plans are equal on integer data in every
 * value, micro-batch and sum; mistakes in gradients show there too, at the step at which they show
 * in real numbers. Random plans and their mutations are in test_random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "ops/op.h"
#include "schedule/schedule.h"
#include "support/child.h"
#include "support/support.h"
#include <string.h>

static PlanRun run_exact(Arena *a, const char *file, const char *text) {
    return plan_run_with(a, file, text,
                         &(PipelineOptions){.execute = true, .threads = 1, .exact = 1});
}
static bool is_gradient(const TraceCheck *c) { return !strncmp(c->value, "grad.", 5); }
/* The first failure among records of level 3, or of 1 and 2. */
static const TraceCheck *first_failure(const Trace *t, bool integers) {
    for (int i = 0; i < t->n_checks; i++) {
        const TraceCheck *c = &t->checks[i];
        bool of_it = integers ? c->level == 3 : c->level == 1 || c->level == 2;
        if (of_it && c->step >= 0 && c->pass != PHASE_OPTIMIZER && c->verdict[0] == 'F') return c;
    }
    return NULL;
}
/* Records of a step at that level. */
static int records(const Trace *t, int step, CheckLevel level) {
    int n = 0;
    for (int i = 0; i < t->n_checks; i++)
        n += t->checks[i].step == step && t->checks[i].level == level;
    return n;
}
static int gradients(const Trace *t, CheckLevel level) {
    int n = 0;
    for (int i = 0; i < t->n_checks; i++)
        n += t->checks[i].level == level && is_gradient(&t->checks[i]);
    return n;
}
static bool equal(const PlanRun *r, const char *what) {
    bool ok = run_is(r, "equivalent") && gradients(r->t, 3) > 0;
    if (!ok) print_error("%s\n", what), run_print(r);
    return ok;
}

/* What has a gradient has one in integers too, or level 3 would pass it over. */
static void test_every_adjoint(void **state) {
    (void)state;
    for (int i = 0; i < n_ops; i++) {
        if (op_list[i]->adjoint && !op_list[i]->exact_adjoint)
            fail_msg("%s has no integer adjoint", op_list[i]->name);
        assert_true(op_list[i]->adjoint || !op_list[i]->exact_adjoint);
    }
}

static const char llama[] =
    "model: {preset: llama3-8b, shrink: 64, layers: 4, vocab_multiple: 1, parts: [embedding, "
    "blocks, norm, head, loss]}\n";
static const char mixtral[] =
    "model: {preset: mixtral-8x7b, shrink: 64, layers: 1, vocab_multiple: 1, parts: [embedding, "
    "blocks, norm, head, loss]}\n";
/* Every value of the backward pass that levels 1 and 2 look at is looked at in every micro-batch,
 * and each sum over them once more. */
static void test_micro_batches(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *plan = arena_printf(
        a,
        "%smesh: {dp: 2}\ndata: {batch: 12, sequence: 7, microbatches: 3}\npass: backward\n"
        "data_parallel: fsdp\nrecompute: block\n",
        llama);
    PlanRun r = run_exact(a, "micro.yaml", plan);
    assert_true(equal(&r, plan));
    int three = 0, once = 0, seen = 0;
    for (int i = 0; i < r.t->n_checks; i++) {
        const TraceCheck *c = &r.t->checks[i];
        if (c->step < 0 || c->level == 3 || c->level < 1) continue;
        int n = records(r.t, c->step, 3);
        if (!n) print_error("%s (step %d) is not looked at\n", c->value, c->step);
        assert_true(n > 0);
        assert_true(n == 1 || n == 3 || n == 4); /* 4: with the sum */
        three += n == 3, once += n == 1, seen += n == 4;
    }
    assert_true(three > 0 && once > 0 && seen > 0);
    arena_free(a);
}
static void test_schedules(void **state) {
    (void)state;
    int n;
    const ScheduleKind *k = schedule_kinds(&n);
    for (int i = 0; i < n; i++) {
        Arena *a = arena_new();
        const char *plan =
            arena_printf(a,
                         "%smesh: {pp: 2, tp: 2}\ndata: {batch: 8, sequence: 8}\npass: backward\n"
                         "names: torchtitan\nrecipe: torchtitan-llama3\n"
                         "pipeline: {schedule: %s, microbatches: 4}\n",
                         llama, k[i].name);
        PlanRun r = run_exact(a, "schedule.yaml", plan);
        assert_true(equal(&r, plan));
        arena_free(a);
    }
}
static void test_ways_to_cut(void **state) {
    (void)state;
    static const char *const rows[] = {
        "mesh: {cp: 4}\ncontext_parallel: {mode: ring, order: zigzag}",
        "mesh: {cp: 2}\ncontext_parallel: {mode: ring, order: striped}",
        "mesh: {cp: 2}\ncontext_parallel: {mode: ulysses}",
        "mesh: {r: 2, u: 2}\ncontext_parallel: {mode: usp, ring: r, ulysses: u, order: zigzag}",
        "mesh: {dp: 2, tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3",
        ("mesh: {dp: 2}\ndata_parallel: {mode: zero1}\n"
         "optimizer: {name: adamw, lr: 0.001, steps: 2}")};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        bool trains = strstr(rows[i], "optimizer:");
        const char *plan = arena_printf(a, "%s%s\ndata: {batch: 4, sequence: 16}\npass: %s\n",
                                        llama, rows[i], trains ? "train" : "backward");
        PlanRun r = run_exact(a, "cut.yaml", plan);
        assert_true(equal(&r, plan));
        assert_true(trains == run_has(&r, "N0007"));
        arena_free(a);
    }
    Arena *a = arena_new(); /* rows at experts */
    const char *plan = arena_printf(
        a, "%smesh: {ep: 4}\nmoe: {axis: ep}\ndata: {batch: 4, sequence: 8}\npass: backward\n",
        mixtral);
    PlanRun r = run_exact(a, "experts.yaml", plan);
    assert_true(equal(&r, plan));
    arena_free(a);
}

/* Where the first wrong value of plans/bugs shows, it shows in integers. */
static void test_bugs(void **state) {
    (void)state;
    /* the same step of real numbers and of integers, but: */
    static const char *const other[] = {
        "21-", /* it cannot be run to its end */
        "22-", /* a pending maximum: integers show what reads it */
        "24-", /* wrong weights of tokens: integers have others */
        "72-", /* the second step reads what the optimizer made */
    };
    int caught = 0;
    PlanFiles f = plan_files("plans/bugs/[0-9]*.yaml", "plans of plans/bugs");
    while (plan_files_next(&f)) {
        const char *path = f.path;
        PlanRun r = run_exact(f.a, path, f.text);
        bool listed = false;
        for (size_t k = 0; k < sizeof other / sizeof other[0]; k++)
            listed |= !strncmp(strrchr(path, '/') + 1, other[k], strlen(other[k]));
        if (!r.t || listed || !gradients(r.t, 2) || !gradients(r.t, 3)) {
            if (r.t && gradients(r.t, 2) && !listed) print_message("no integers: %s\n", path);
            continue;
        }
        const TraceCheck *real = first_failure(r.t, false), *ints = first_failure(r.t, true);
        if (real && (!ints || ints->step != real->step))
            fail_msg("%s: %s is wrong, of integers %s", path, real->value,
                     ints ? ints->value : "nothing");
        caught += real != NULL;
    }
    print_message("%d of %d caught in integers\n", caught, f.take);
    assert_true(f.take < 60 || caught > 20);
}
/* Every shipped plan, in small. */
static void test_shipped(void **state) {
    (void)state;
    for (PlanFiles f = plan_files("plans/[0-9]*.yaml", "shipped plans"); plan_files_next(&f);) {
        PlanSet sets[] = {{"model.shrink", "64"}};
        PlanText plan = {f.path, f.text, strlen(f.text), sets, strstr(f.text, "shrink:") != NULL};
        PlanRun r = {.d = diags_new(f.a)};
        r.t = pipeline_run(f.a, r.d, plan,
                           &(PipelineOptions){.execute = true, .threads = 1, .exact = 1}, &r.rep);
        bool right = run_is(&r, "equivalent");
        if (!right) {
            run_print(&r);
            fail_msg("%s", f.path);
        }
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_adjoint), cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_schedules),     cmocka_unit_test(test_ways_to_cut),
        cmocka_unit_test(test_bugs),          cmocka_unit_test(test_shipped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
