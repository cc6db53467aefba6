/* The stack of view `mesh` (its last page for pipelines with two more axes): what each cell, each
 * arrow and each plane says, recomputed from the records with coordinates of the test's own; every
 * page passes the lint. */
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
#include <stdlib.h>
#include <string.h>

static const char *const presets[] = {"wide", "slide", "column", "a4"};

static PlanRun load(Arena *a, const char *path, const char *from, const char *to) {
    size_t n;
    PipelineOptions o = {.threads = 1};
    char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &n);
    char *at = text && from ? strstr(text, from) : NULL;
    assert_true(text && (at || !from));
    if (from) text = arena_printf(a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    PlanRun r = plan_run_with(a, path, text, &o);
    assert_non_null(r.t);
    return r;
}
/* The last page of the mesh, linted. */
static Scene *stack(Arena *a, const Trace *t, const char *preset) {
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = "mesh", .preset = preset, .rank = -1, .layer = -1};
    int n = render_pages(t, diags_new(a), &o, a, page);
    assert_true(n > 1);
    const char *report = "";
    if (scene_lint(page[n - 1], a, &report)) fail_msg("%s, %s: %s", t->plan, preset, report);
    return page[n - 1];
}
static const char *tip_of(const Scene *s, const char *id) {
    for (int i = 0; i < s->n_groups; i++)
        if (!strcmp(s->groups[i].id, id)) return s->groups[i].tip;
    return NULL;
}
static const char *words_of(Arena *a, const Scene *s) {
    Str t = str_new(a);
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; s->marks[i].kind == MARK_TEXT && k < s->marks[i].n_run; k++)
            str_addf(&t, "%s%s", k ? "" : " ", s->marks[i].run[k].s);
    return t.s;
}
static void says(const char *words, const char *fact) {
    if (!words || !strstr(words, fact)) fail_msg("'%s' is not in\n%s", fact, words ? words : "");
}
/* Its parameters at rest, from their own records; the picture reads those of memory. */
static int64_t rest(const Trace *t, int64_t rank) {
    int64_t bytes = 0;
    for (int i = 0; i < t->n_params; i++) {
        const TraceShape *x = &t->params[i].rest;
        for (int k = 0; k < x->n_local; k++)
            if (rankset_has(&x->local[k].ranks, rank)) bytes += x->local[k].bytes;
    }
    assert_true(bytes > 0);
    return bytes;
}
static int64_t pp_stride(const Trace *t, int64_t *size) {
    int64_t stride = t->ranks;
    *size = 1;
    for (int i = 0; i < t->n_axes; i++) {
        stride /= *size = t->axes[i].size;
        if (!strcmp(t->axes[i].name, t->schedule_axis)) break;
    }
    return stride;
}
/* "2 Send, 8 KiB": what rank a sends to rank b in one micro-batch; NULL: nothing. */
static const char *sent(Arena *a, const Trace *t, int64_t from, int64_t to) {
    int n = 0;
    int64_t bytes = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (strcmp(c->op, "send") != 0) continue;
        for (int64_t g = 0; g < groups_count(&c->groups); g++) {
            int64_t x = groups_member(&c->groups, g, 0), y = groups_member(&c->groups, g, 1);
            if (!((x == from && y == to) || (x == to && y == from))) continue;
            n += collective_on(c, from).bytes_sent > 0;
            bytes += collective_on(c, from).bytes_sent;
        }
    }
    return n ? arena_printf(a, "%d Send, %s", n, bytes_text(bytes, a)) : NULL;
}
/* Ranks that a line joins are in one group of some collective that is no send. */
static void check_links(const Trace *t, const Scene *s) {
    int links = 0;
    for (int g = 0; g < s->n_groups; g++) {
        long long a, b;
        if (sscanf(s->groups[g].id, "stack-link-%lld-%lld", &a, &b) != 2) continue;
        bool together = false;
        for (int i = 0; i < t->n_collectives && !together; i++) {
            const RankGroups *x = &t->collectives[i].groups;
            if (!strcmp(t->collectives[i].op, "send") || groups_with(x, a) < 0) continue;
            together = groups_with(x, a) == groups_with(x, b);
        }
        if (!together) fail_msg("%lld and %lld are in no group", a, b);
        links++;
    }
    assert_true(links > 0);
}
/* How many cells it has. */
static int check(Arena *a, const Trace *t, const char *preset) {
    Scene *s = stack(a, t, preset);
    const char *words = words_of(a, s);
    int cells = 0;
    check_links(t, s);
    int64_t planes, stride = pp_stride(t, &planes);
    for (int64_t r = 0; r < t->ranks; r++) {
        const char *tip = tip_of(s, arena_printf(a, "stack-%lld", (long long)r));
        if (!tip) continue;
        says(tip, arena_printf(a, "rank %lld (", (long long)r));
        says(tip, arena_printf(a, ": %s of parameters", bytes_text(rest(t, r), a)));
        cells++;
    }
    for (int64_t p = 0; p + 1 < planes; p++) {
        const char *tip =
            tip_of(s, arena_printf(a, "send-%lld-%lld", (long long)p, (long long)p + 1));
        const char *down = sent(a, t, p * stride, (p + 1) * stride),
                   *up = sent(a, t, (p + 1) * stride, p * stride);
        if (!tip) continue;
        if (down) says(tip, arena_printf(a, "down: %s", down));
        if (up) says(tip, arena_printf(a, "up: %s", up));
        if (down) says(words, arena_printf(a, "down: %s", down));
    }
    const char *round = planes > 2 ? sent(a, t, (planes - 1) * stride, 0) : NULL;
    if (round)
        says(words, arena_printf(a, "%s%lld to %s0: %s", t->schedule_axis, (long long)planes - 1,
                                 t->schedule_axis, round));
    return cells;
}
static void test_cells(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"pp: 2, dp: 2, tp: 2", "schedule: 1f1b, microbatches: 4"},
        {"dp: 2, pp: 4, tp: 2", "schedule: dualpipe, microbatches: 8"},
        {"dp: 2, tp: 2, pp: 3", "schedule: interleaved, microbatches: 6, chunks: 2"},
        {"pp: 2, dp: 2, cp: 2, tp: 2", "schedule: zb-v, microbatches: 4"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 6, shrink: 64, parts: [embedding, blocks, norm, "
            "head, loss]}\ndata: {batch: 48, sequence: 16}\nnames: torchtitan\nrecipe: "
            "torchtitan-llama3\ndata_parallel: {mode: fsdp, unit: block}\npass: backward\nmesh: "
            "{%s}\npipeline: {%s}\n",
            rows[i][0], rows[i][1]);
        PipelineOptions o = {.threads = 1};
        PlanRun r = plan_run_with(a, "stack.yaml", text, &o);
        if (!r.t) run_print(&r);
        assert_non_null(r.t);
        for (size_t p = 0; p < sizeof presets / sizeof *presets; p++) {
            int cells = check(a, r.t, presets[p]);
            if (strcmp(presets[p], "slide")) assert_int_equal(cells, r.t->ranks);
            else assert_true(cells > 0);
        }
        arena_free(a);
    }
}
/* Of thousands of ranks some are drawn, and it says which planes are not. */
static void test_thousands(void **state) {
    (void)state;
    static const char *const rows[][4] = {
        {"plans/shape-only/llama3.1-405b-pp16.yaml", NULL, NULL, "pp15: layers 119-125, norm"},
        {"plans/shape-only/deepseek-v3-pp16-ep64.yaml", "edp: 2", "edp: 8", "pp1: layers 2-3, "}};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        PlanRun r = load(a, rows[i][0], rows[i][1], rows[i][2]);
        assert_int_equal(r.t->ranks, 8192);
        for (size_t p = 0; p < sizeof presets / sizeof *presets; p++) {
            const char *words = words_of(a, stack(a, r.t, presets[p]));
            says(words, "16 planes of ");
            says(words, "pp14, not drawn");
            says(words, "of one micro-batch of 32");
            if (i == 0 || strcmp(presets[p], "slide")) says(words, rows[i][3]);
            if (i == 0)
                says(words, arena_printf(a, "rank 120 has %s", bytes_text(rest(r.t, 120), a)));
        }
        arena_free(a);
    }
}
/* No stack where there are two axes, or no pipeline; experts are told of a rank's own stage. */
static void test_others(void **state) {
    (void)state;
    Arena *a = arena_new();
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = "mesh", .rank = -1, .layer = -1};
    PlanRun r = load(a, "plans/45-llama3-8b-pp4-1f1b.yaml", NULL, NULL);
    assert_int_equal(render_pages(r.t, diags_new(a), &o, a, page), 1);
    const char *flat = words_of(a, page[0]);
    says(flat, "cuts the layers");
    int own = 0; /* boxes that say what their rank has */
    for (int i = 0; i < page[0]->n_marks; i++) {
        const Mark *m = &page[0]->marks[i];
        own += m->kind == MARK_TEXT && m->n_run == 1 && !strcmp(m->run[0].s, "layer 1");
    }
    assert_int_equal(own, 1);
    says(flat, "class 0 rank 0 ×1 (embedding, layer 0) · class 1 rank 1 ×1 (layer 1)");
    assert_null(strstr(flat, "cuts nothing"));
    r = load(a, "plans/52-llama3-8b-pp4-dualpipe.yaml", NULL, NULL);
    assert_int_equal(render_pages(r.t, diags_new(a), &o, a, page), 1);
    says(words_of(a, page[0]), "(layer 3, norm, head, loss, embedding, layer 0)");
    r = load(a, "plans/09-llama3-8b-dp2-cp2-tp2.yaml", NULL, NULL);
    assert_int_equal(render_pages(r.t, diags_new(a), &o, a, page), 1);
    r = load(a, "plans/shape-only/deepseek-v3-pp16-ep64.yaml", NULL, NULL);
    assert_true(render_pages(r.t, diags_new(a), &o, a, page) > 0);
    const char *words = words_of(a, page[0]);
    says(words, "ep=64 · 2 copies of each, over edp");
    says(words, "rank 0 has E0-3");
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells),
                                       cmocka_unit_test(test_thousands),
                                       cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
