/* What the titles of views of a run count, held against the records: routing, errors and pipeline,
 * of every plan that is shipped. test_title_facts.c has the views that need no run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/furniture/words.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "support/fact.h"
#include "support/records.h"
#include "support/support.h"
#include "trace/trace_rows.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    int routing, right, wrong, pipeline;
} Held; /* how often each was looked at */

static Scene *page_of(Arena *a, const Trace *t, const char *view) {
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = view, .rank = -1, .layer = -1};
    return render_pages(t, diags_new(a), &o, a, page) ? page[0] : NULL;
}
static bool says_text(const Scene *s, const char *text) {
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; s->marks[i].kind == MARK_TEXT && k < s->marks[i].n_run; k++)
            if (strstr(s->marks[i].run[k].s, text)) return true;
    return false;
}

/* ---- routing: rows of the group of rank 0, as the exchange of the rows themselves counted them
 * (the picture counts the lists) ---- */
static const TraceCollective *rows_sent(const Trace *t) {
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!strcmp(c->op, "all_to_all") && c->row_bytes && !strstr(c->value, "list") &&
            !strstr(c->value, "weights") && trace_exchange(t, c->step))
            return c;
    }
    return NULL;
}
static int64_t experts_of(const Trace *t) {
    for (int i = 0; i < t->n_routed; i++) return t->routed[i].experts;
    return 0;
}
static void check_routing(Arena *a, const Trace *t, const char *path, Held *h) {
    const Scene *s = page_of(a, t, "routing");
    if (!s) return;
    const TraceCollective *c = rows_sent(t);
    if (!c) fail_msg("%s: '%s', and no rows are exchanged", path, picture_fact(s));
    const TraceExchange *x = trace_exchange(t, c->step);
    double rows = 0, sent = 0, peak = 0, received = 0;
    int64_t n = groups_size(&c->groups), busiest = -1;
    for (int64_t i = 0; i < n; i++) {
        int64_t q = groups_member(&c->groups, 0, i);
        rows += x->in[q];
        for (int64_t k = 0; k < n; k++) /* by who receives: a mistake may leave rows out */
            sent += k != i ? exchange_pair(x, c, 0, i, k).received : 0;
        received += x->out[q];
        if (x->out[q] > peak) peak = x->out[q], busiest = q;
    }
    const long long groups = (long long)groups_count(&c->groups);
    const char *title =
        groups > 1
            ? arena_printf(a, "MoE dispatch in one of %lld groups of %s: %.0f rows to %lld experts",
                           groups, words_axis_list(a, t, c->axis), rows, (long long)experts_of(t))
            : arena_printf(a, "MoE dispatch: %.0f rows to %lld experts on %lld ranks", rows,
                           (long long)experts_of(t), (long long)n);
    if (peak * (double)n > received)
        title = arena_printf(a, "%s, rank %lld gets %.2f × its share", title, (long long)busiest,
                             peak * (double)n / received);
    if (strcmp(picture_fact(s), title))
        fail_msg("%s: '%s', and it is '%s'", path, picture_fact(s), title);
    if (!says_text(s, arena_printf(a, "%.0f of %.0f rows", sent, rows)))
        fail_msg("%s: on the network are %.0f of %.0f", path, sent, rows);
    if (!says_text(s, arena_printf(a, "peak %.0f,", peak)))
        fail_msg("%s: the most that a rank receives are %.0f", path, peak);
    h->routing++;
}

/* ---- errors: how many values agree, which is the first wrong one, how many follow ---- */
static bool same_value(const TraceCheck *x, const TraceCheck *y) {
    return x->step == y->step && !strcmp(x->value, y->value);
}
static bool is_fail(const TraceCheck *k) { return !strcmp(k->verdict, "FAIL"); }
/* Values that were compared, each once, whatever the number of its classes of ranks; of these the
 * ones that a check fails. */
static void count(const Trace *t, int *all, int *failed) {
    *all = *failed = 0;
    for (int i = 0; i < t->n_checks; i++) {
        const TraceCheck *k = &t->checks[i];
        bool fails = false, seen = false;
        if (k->level == LEVEL_STRUCTURE) continue;
        for (int j = 0; j < t->n_checks; j++) {
            if (t->checks[j].level == LEVEL_STRUCTURE || !same_value(k, &t->checks[j])) continue;
            seen |= j < i;
            fails |= is_fail(&t->checks[j]);
        }
        if (seen) continue;
        ++*all, *failed += fails;
    }
}
static void check_errors(Arena *a, const Trace *t, const char *path, Held *h) {
    const Scene *s = page_of(a, t, "errors");
    int all, failed, n;
    if (!s) return;
    count(t, &all, &failed);
    if (!failed) {
        const char *title =
            arena_printf(a, "All right: %d values on %lld rank%s agree with the unsharded model",
                         all, (long long)t->ranks, t->ranks == 1 ? "" : "s");
        if (strcmp(picture_fact(s), title))
            fail_msg("%s: '%s', and it is '%s'", path, picture_fact(s), title);
        h->right++;
        return;
    }
    const TraceCheck *first = NULL;
    for (int i = 0; i < t->n_checks && !first; i++)
        if (is_fail(&t->checks[i]) && t->checks[i].level != LEVEL_STRUCTURE) first = &t->checks[i];
    const char *head = NULL; /* in a run of one layer its number is said beside it */
    for (int brief = 0; brief < 2 && !head; brief++) {
        const char *one = arena_printf(a, "The first wrong value %s, and ",
                                       words_wrong_value(a, t, first->value, brief));
        if (!strncmp(picture_fact(s), one, strlen(one))) head = one;
    }
    if (!head) fail_msg("%s: '%s', and the first is %s", path, picture_fact(s), first->value);
    const char *rest = picture_fact(s) + strlen(head);
    bool follow = strstr(rest, " later ") != NULL;
    if (!follow && sscanf(rest, "%d more", &n) == 1) {
        if (n != failed - 1)
            fail_msg("%s: '%s', and %d more fail", path, picture_fact(s), failed - 1);
    } else if (follow && sscanf(rest, "%d later", &n) == 1) {
        bool wrong = strstr(rest, "are wrong or follow") != NULL;
        if (wrong ? n < failed : failed != 1)
            fail_msg("%s: '%s', and %d fail", path, picture_fact(s), failed);
    } else if (failed != 1) {
        fail_msg("%s: '%s', and %d fail", path, picture_fact(s), failed);
    }
    h->wrong++;
}

/* ---- pipeline: ranks of its axis, micro-batches, idle time ---- */
static void check_pipeline(Arena *a, const Trace *t, const char *path, Held *h) {
    const Scene *s = page_of(a, t, "pipeline");
    double end = 0, busy = 0, said;
    int ranks = 1, parts = 0;
    if (!s) return;
    for (int i = 0; i < t->n_axes; i++)
        if (!strcmp(t->axes[i].name, t->schedule_axis)) ranks = (int)t->axes[i].size;
    for (int i = 0; i < t->n_actions; i++) {
        bool again = false;
        end = fmax(end, t->actions[i].end);
        for (int k = 0; k < i; k++) again |= t->actions[k].microbatch == t->actions[i].microbatch;
        parts += !again;
    }
    for (int i = 0; i < ranks; i++) busy += records_busy(t, i);
    const char *head =
        arena_printf(a, "%s: %d rank%s of %s, %d micro-batch%s, ", t->schedule, ranks,
                     ranks == 1 ? "" : "s", t->schedule_axis, parts, parts == 1 ? "" : "es");
    if (strncmp(picture_fact(s), head, strlen(head)))
        fail_msg("%s: '%s', and it is '%s'", path, picture_fact(s), head);
    assert_int_equal(sscanf(picture_fact(s) + strlen(head), "%lf %% of their time idle", &said), 1);
    double idle = 100 * (1 - busy / (end * ranks));
    if (fabs(said - idle) > 0.0501) fail_msg("%s: '%s', and it is %g", path, picture_fact(s), idle);
    h->pipeline++;
}

static void check_files(const char *pattern, bool execute, Held *h) {
    PipelineOptions o = {.execute = execute, .events = true, .threads = 1};
    for (PlanFiles f = plan_files(pattern, NULL); plan_files_next(&f);) {
        const Trace *t = plan_run_with(f.a, f.path, f.text, &o).t;
        if (t) {
            check_routing(f.a, t, f.path, h);
            check_errors(f.a, t, f.path, h);
            check_pipeline(f.a, t, f.path, h);
        }
    }
}
static void tell(Held h) {
    print_message("routing %d, errors %d right and %d wrong, pipeline %d\n", h.routing, h.right,
                  h.wrong, h.pipeline);
}
static void test_plans(void **state) {
    (void)state;
    Held h = {0};
    check_files("plans/*.yaml", true, &h);
    tell(h);
    assert_true(h.routing >= 6 && h.right >= 40 && h.pipeline >= 4);
}
static void test_bugs_and_models(void **state) {
    (void)state;
    Held h = {0};
    check_files("plans/bugs/*.yaml", true, &h);
    check_files("plans/models/*.yaml", true, &h);
    tell(h);
    assert_true(h.wrong >= 30);
}
static void test_too_large_to_execute(void **state) {
    (void)state;
    Held h = {0};
    check_files("plans/shape-only/*.yaml", false, &h);
    tell(h);
    assert_true(h.pipeline >= 1);
}

/* What the loss sends is not called forward alone, and a rank that is like no other says so. */
static void test_words(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t n;
    const char *path = "plans/20-llama3-8b-fsdp-tp.yaml",
               *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &n);
    PlanRun r = plan_run_with(a, path, text, &(PipelineOptions){.threads = 1});
    RenderOptions o = {.view = "overview", .rank = -1, .layer = -1};
    assert_non_null(
        strstr(render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n), "Sent per rank: forward and loss "));
    r = plan_run_with(a, "one.yaml",
                      "model: {kind: mlp, sizes: [4, 10, 4]}\ndata: {rows: 4}\nmesh: {tp: 4}\n"
                      "plan: {net1: colwise, net2: rowwise}\n",
                      &(PipelineOptions){.threads = 1});
    o = (RenderOptions){.view = "block", .rank = 3, .layer = -1};
    text = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
    if (!strstr(text, "the other 3 ranks differ")) fail_msg("%s", text);
    o.rank = 0;
    assert_non_null(
        strstr(render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n), "identical on 3 of 4 ranks"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans), cmocka_unit_test(test_bugs_and_models),
        cmocka_unit_test(test_too_large_to_execute), cmocka_unit_test(test_words)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
