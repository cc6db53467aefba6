/* Ops that are checked in slices (exec/slices.h): whatever is wrong, and wherever, the records are
 * those of a check that looks at all of it at once, byte for byte; and what they take is less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "exec/check.h"
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

/* ---- in quick ---- */
/* The first record that is wrong; NULL: none. */
static const TraceCheck *first_wrong(const Trace *t) {
    for (int i = 0; i < t->n_checks; i++)
        if (t->checks[i].verdict[0] == 'F') return &t->checks[i];
    return NULL;
}
typedef struct {
    int spoiled, seen, some; /* some: ops of which only some numbers were asked in float64 */
} QuickCount;
static bool has_letters(const char *s) { return s && *s; }
/* Ops that bits hold and of which only some numbers were asked in float64. */
static int asked_in_part(const Trace *t) {
    int n = 0;
    for (int i = 0; i + 1 < t->n_checks; i++) {
        const TraceCheck *bits = &t->checks[i], *local = bits + 1;
        bool both = !strcmp(bits->value, local->value) && bits->level == LEVEL_BITS &&
                    local->level == LEVEL_BOUND && bits->step == local->step;
        n += both && local->count > 0 && local->count < bits->count;
    }
    return n;
}
/* Where an unsharded run is compared, whose bounds follow from what float64 says, all are asked. */
static void all_with_end_to_end(Arena *a, const char *text, int64_t piece) {
    PipelineOptions o = {.execute = true,
                         .threads = 1,
                         .end_to_end = true,
                         .check = CHECK_QUICK,
                         .check_piece = piece};
    PlanRun r = plan_run_with(a, "random.yaml", text, &o);
    if (r.t) assert_int_equal(asked_in_part(r.t), 0);
}
/* A quick check in slices says of what is wrong what the full check of all at once says, unless a
 * projection saw nothing in a product or a sum. */
static void same_in_quick(Arena *a, const char *text, int64_t piece, const Spoiler *like,
                          QuickCount *n) {
    Trace *t[2] = {0};
    bool acted = false;
    for (int k = 0; k < 2; k++) {
        Spoiler x = like ? *like : (Spoiler){0};
        PipelineOptions o = {.execute = true,
                             .threads = 1,
                             .no_end_to_end = true,
                             .check = k ? CHECK_QUICK : CHECK_FULL,
                             .check_piece = k ? piece : AT_ONCE};
        if (like) o.watch = spoil, o.watch_arg = &x;
        PlanRun r = plan_run_with(a, "random.yaml", text, &o);
        t[k] = r.t, acted = x.acted;
    }
    if (!t[0] || !t[1]) return;
    n->some += asked_in_part(t[1]);
    n->spoiled += acted;
    const TraceCheck *full = first_wrong(t[0]), *quick = first_wrong(t[1]);
    bool projected = false;
    for (int i = 0; i < t[1]->n_checks && full; i++)
        projected |= !strcmp(t[1]->checks[i].value, full->value) && t[1]->checks[i].projections;
    if (full && !quick && projected) return;
    if (!full != !quick)
        fail_msg("%s\n%s says wrong: %s", text, full ? "only the full check" : "only quick",
                 full ? full->value : quick->value);
    if (!full || (projected && strcmp(full->value, quick->value) != 0)) return;
    n->seen++;
    bool same_words = has_letters(full->cause) == has_letters(quick->cause) &&
                      (!full->cause || !strcmp(full->cause, quick->cause));
    if (strcmp(full->value, quick->value) != 0 || full->level != quick->level || !same_words ||
        full->got != quick->got || full->want != quick->want || full->count != quick->count ||
        memcmp(full->index, quick->index, sizeof *full->index * (size_t)full->n_index) != 0)
        fail_msg("%s\nfull: %s, %s\nquick: %s, %s", text, full->value,
                 full->cause ? full->cause : "", quick->value, quick->cause ? quick->cause : "");
}
static void test_quick(void **state) {
    (void)state;
    int plans = trials_of(60, "random plans");
    QuickCount n = {0};
    for (uint64_t seed = 192000; seed < 192000 + (uint64_t)plans; seed++) {
        Arena *a = arena_new();
        RandomPlan g;
        const char *text = random_plan(a, seed, &g);
        int64_t piece = rng_below(&g.r, 2) ? rng_between(&g.r, 1, 40) : rng_between(&g.r, 40, 900);
        same_in_quick(a, text, piece, NULL, &n);
        all_with_end_to_end(a, text, piece);
        for (int k = 0; k < 6; k++)
            same_in_quick(a, text, piece,
                          &(Spoiler){.turn = rng_below(&g.r, 40), .draw = rng_next(&g.r)}, &n);
        arena_free(a);
    }
    print_message("%d elements spoiled, %d told alike, %d ops asked in part\n", n.spoiled, n.seen,
                  n.some);
    assert_true(n.seen > plans && n.some > plans);
}

/* ---- sources ---- */
typedef struct {
    Rng *r;
    int sliced, wrong;
    bool done;
} Sources;
static TraceCheck ask_source(Arena *a, Exec *e, int val, int64_t piece, bool *sliced) {
    Trace *t = trace_new(a);
    Check *c = check_new(a, e, t);
    int64_t n = 1;
    for (int d = 0; d < e->p->graph->t[e->p->val[val].tensor].nd; d++)
        n *= e->p->graph->t[e->p->val[val].tensor].size[d];
    c->piece = piece;
    *sliced = n > piece;
    check_source(c, val);
    assert_int_equal(t->n_checks, 1);
    return t->checks[0];
}
static void same_source(const TraceCheck *x, const TraceCheck *y) {
    assert_string_equal(x->verdict, y->verdict);
    assert_true(x->count == y->count && x->n_index == y->n_index);
    assert_memory_equal(x->index, y->index, sizeof *x->index * (size_t)x->n_index);
    assert_true(x->got == y->got && x->want == y->want && x->max_abs == y->max_abs);
    assert_true(!x->cause == !y->cause && (!x->cause || !strcmp(x->cause, y->cause)));
    assert_int_equal(rankset_count(&x->ranks), rankset_count(&y->ranks));
    assert_int_equal(x->n_rank_error, y->n_rank_error);
}
/* Before the first step, each parameter: as it is, and with one element of one rank changed. */
static void spoil_sources(void *arg, Exec *e, const Step *s, bool checked) {
    Sources *x = arg;
    (void)s, (void)checked;
    for (int v = 0; v < e->p->nv && !x->done; v++) {
        const Val *val = &e->p->val[v];
        int64_t rank = rng_below(x->r, e->p->mesh->nranks), piece = rng_between(x->r, 1, 2000);
        bool parameter = val->step < 0 && val->kind == KIND_PARAM && exec_store(e, v)->alive;
        if (!parameter || !exec_local(e, v, rank)) continue;
        for (int wrong = 0; wrong < 2; wrong++) {
            Arena *a = arena_new();
            Spoil part = spoil_part(e, v, rank);
            if (wrong && part.n) {
                int64_t i = rng_below(x->r, part.n);
                spoil_set(&part, i, spoil_get(&part, i) * 1.5 + 1);
            }
            bool sliced, whole;
            TraceCheck one = ask_source(a, e, v, AT_ONCE, &whole),
                       many = ask_source(a, e, v, piece, &sliced);
            same_source(&one, &many);
            assert_int_equal(one.verdict[0] == 'F', wrong && part.n > 0);
            x->sliced += sliced;
            x->wrong += wrong && part.n > 0;
            spoil_undo(&part);
            arena_free(a);
        }
    }
    x->done = true;
}
static void test_sources(void **state) {
    (void)state;
    int plans = trials_of(40, "random plans"), sliced = 0, wrong = 0;
    for (uint64_t seed = 191000; seed < 191000 + (uint64_t)plans; seed++) {
        Arena *a = arena_new();
        RandomPlan g;
        const char *text = random_plan(a, seed, &g);
        Sources x = {.r = &g.r};
        PipelineOptions o = {
            .execute = true, .threads = 1, .watch = spoil_sources, .watch_arg = &x};
        plan_run_with(a, "random.yaml", text, &o);
        sliced += x.sliced, wrong += x.wrong;
        arena_free(a);
    }
    print_message("%d parameters read in slices, %d with a wrong element\n", sliced, wrong);
    assert_true(sliced > plans && wrong > plans);
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
        cmocka_unit_test(test_quick),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_takes_less),
    };
    return cmocka_run_group_tests_name("slices", tests, NULL, NULL);
}
