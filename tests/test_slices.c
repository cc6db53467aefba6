/* Ops that are checked in slices (exec/slices.h): whatever is wrong, and wherever, the records are
 * those of a check that looks at all of it at once, byte for byte; and what they take is less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "lower/program.h"
#include "support/random_run.h"
#include "support/spoil.h"
#include "support/support.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = INT32_MAX };
/* One element on one rank, off by a factor between a step that computes and its check; the steps
 * after it go on with it. */
typedef struct {
    int64_t turn, at; /* which of these steps; the next */
    uint64_t draw;
    bool acted;
} Spoiler;
static void spoil(void *arg, Exec *e, const Step *s, bool checked) {
    Spoiler *x = arg;
    bool computes = s->kind == ST_OP || s->kind == ST_ADJOINT;
    if (checked || !computes || x->at++ != x->turn || exec_is_int(e, s->out)) return;
    int64_t rank = (int64_t)(x->draw % (uint64_t)e->p->mesh->nranks);
    if (!exec_local(e, s->out, rank)) return;
    Spoil part = spoil_part(e, s->out, rank);
    x->acted = part.n > 0;
    if (!x->acted) return;
    int64_t i = (int64_t)(x->draw >> 8) % part.n;
    spoil_set(&part, i, spoil_get(&part, i) * (x->draw & 1 ? 1.5 : 1 + 0x1p-20));
}
/* The trace of a run whose check takes so many elements at a time. */
static const char *trace_of(Arena *a, const char *text, int64_t piece, const Spoiler *like,
                            bool *acted) {
    Spoiler x = like ? *like : (Spoiler){0};
    PipelineOptions o = {.execute = true, .threads = 1, .check_piece = piece};
    if (like) o.watch = spoil, o.watch_arg = &x;
    PlanRun r = plan_run_with(a, "random.yaml", text, &o);
    size_t n;
    if (acted) *acted = x.acted;
    return r.t ? trace_text(r.t, a, true, &n) : "";
}
static bool same(Arena *a, const char *text, int64_t piece, const Spoiler *like) {
    bool acted[2] = {0};
    const char *once = trace_of(a, text, AT_ONCE, like, &acted[0]),
               *sliced = trace_of(a, text, piece, like, &acted[1]);
    if (strcmp(once, sliced) != 0) {
        size_t k = 0;
        while (once[k] == sliced[k]) k++;
        while (k && once[k - 1] != '\n') k--;
        printf("%s\nat once   %.600s\nin slices %.600s\n", text, once + k, sliced + k);
    }
    assert_false(strcmp(once, sliced));
    assert_int_equal(acted[0], acted[1]);
    return acted[0];
}
static void test_random_plans(void **state) {
    (void)state;
    int plans = trials_of(60, "random plans"), faults = 0, spoiled = 0;
    for (uint64_t seed = 190000; seed < 190000 + (uint64_t)plans; seed++) {
        Arena *a = arena_new();
        RandomPlan g;
        const char *text = random_plan(a, seed, &g);
        PlanRun r = plan_run(a, "random.yaml", text, true);
        int64_t piece = rng_below(&g.r, 2) ? rng_between(&g.r, 1, 40) : rng_between(&g.r, 40, 900);
        same(a, text, piece, NULL);
        const char *f = r.t ? random_fault(a, &g.r, r.t) : NULL;
        if (f) same(a, arena_printf(a, "%s%s", g.s.s, f), piece, NULL), faults++;
        for (int k = 0; k < 4; k++)
            spoiled += same(a, text, piece,
                            &(Spoiler){.turn = rng_below(&g.r, 40), .draw = rng_next(&g.r)});
        arena_free(a);
    }
    print_message("%d plans, %d mistakes planted, %d elements spoiled\n", plans, faults, spoiled);
    assert_true(faults > plans / 3 && spoiled > plans);
}

/* What the check puts together is a part of the whole at a time: the run says beforehand, and
 * takes, less. */
static void test_takes_less(void **state) {
    (void)state;
    static const char text[] =
        "model: {kind: mlp, sizes: [256, 8192, 256], activation: silu, layer_names: [up, down]}\n"
        "data: {rows: 256, dtype: f32}\nmesh: {tp: 2}\n"
        "plan:\n  up: colwise\n  down: rowwise\n";
    int64_t bytes[2];
    for (int k = 0; k < 2; k++) {
        Arena *a = arena_new();
        PipelineOptions o = {.execute = true, .threads = 1, .check_piece = k ? 1 << 16 : AT_ONCE};
        PlanRun r = plan_run_with(a, "plan.yaml", text, &o);
        assert_int_equal(r.rep.exit, 0);
        bytes[k] = r.rep.predicted_bytes;
        arena_free(a);
    }
    print_message("%.1f MiB at once, %.1f in slices\n", (double)bytes[0] / 1048576,
                  (double)bytes[1] / 1048576);
    assert_true(bytes[1] < bytes[0] * 3 / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_plans),
        cmocka_unit_test(test_takes_less),
    };
    return cmocka_run_group_tests_name("slices", tests, NULL, NULL);
}
