/* What the view `pipeline` draws, held against the schedule: kinds of actions and stages of a rank
 * can be told apart, and cells of a kind on a stage have all their numbers or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/furniture/actions.h"
#include "render/memory/memory.h"
#include "render/pipeline/fold.h"
#include "render/render.h"
#include "render/scene/build.h"
#include "render/scene/scene.h"
#include "schedule/schedule.h"
#include "support/support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const preset[] = {"wide", "column", "slide", "a4"};
enum { PRESETS = sizeof preset / sizeof *preset, MOST_STAGES = 16 };

/* Neither by its grey nor, among themselves, by less than an eye sees; and what stands on them can
 * be read. */
static void test_kinds_differ(void **state) {
    (void)state;
    for (int t = 0; t < THEME_COUNT; t++)
        for (int i = 0; i < ACTION_LOOKS; i++) {
            uint32_t fill = theme_color((Theme)t, action_looks[i].fill);
            assert_true(theme_contrast(fill, theme_color((Theme)t, action_looks[i].text)) >= 4.5);
            for (int k = 0; k < i; k++)
                if (theme_contrast(fill, theme_color((Theme)t, action_looks[k].fill)) < 1.1)
                    fail_msg("theme %d: %c looks like %c", t, action_looks[i].kind,
                             action_looks[k].kind);
        }
}

static const Trace *planned_on(Arena *a, int ranks, const char *schedule, int layers, int parts) {
    return plan_run_with(a, "view.yaml",
                         arena_printf(a,
                                      "model: {preset: llama3-8b, shrink: 64, layers: %d, parts: "
                                      "[embedding, blocks, norm, head, loss]}\nmesh: {pp: %d}\n"
                                      "data: {batch: %d, sequence: 64}\npass: backward\n"
                                      "pipeline: {schedule: %s, microbatches: %d}\n",
                                      layers, ranks, parts, schedule, parts),
                         &(PipelineOptions){.events = true})
        .t;
}
static const Trace *planned(Arena *a, const char *schedule, int layers, int parts) {
    return planned_on(a, 4, schedule, layers, parts);
}
static int rank_stages(const Trace *t, int rank, int stage, int *before) {
    bool seen[MOST_STAGES] = {false};
    int n = 0;
    *before = 0;
    for (int i = 0; i < t->n_actions; i++)
        if (t->actions[i].rank == rank) seen[t->actions[i].stage] = true;
    for (int g = 0; g < MOST_STAGES; g++) n += seen[g], *before += seen[g] && g < stage;
    return n;
}
static int group_of(const Scene *s, const char *id) {
    for (int i = 0; i < s->n_groups; i++)
        if (s->groups[i].id && !strcmp(s->groups[i].id, id)) return i;
    return -1;
}
/* The cell of action i of the trace, its bar and its number. */
typedef struct {
    const Mark *cell, *bar, *number;
} Cell;
static Cell cell_of(Arena *a, const Scene *s, const Trace *t, int i, const char *tag) {
    Cell c = {0};
    int first = i;
    while (first > 0 && t->actions[first - 1].rank == t->actions[i].rank) first--;
    int g = group_of(s, arena_printf(a, "%saction-%d-%d", tag, t->actions[i].rank, i - first));
    for (int k = 0; k < s->n_marks && g >= 0; k++) {
        const Mark *m = &s->marks[k];
        if (m->group != g) continue;
        if (m->kind == MARK_TEXT) c.number = m;
        else if (!c.cell) c.cell = m;
        else c.bar = m;
    }
    return c;
}
static double took(const TraceAction *x) { return x->end - x->start; }
/* Points for a second: of the cell that a break leaves whole. */
static double scale_of(Arena *a, const Scene *s, const Trace *t, const char *tag) {
    double scale = 0;
    for (int i = 0; i < t->n_actions; i++) {
        const Mark *m = cell_of(a, s, t, i, tag).cell;
        if (m && m->w / took(&t->actions[i]) > scale) scale = m->w / took(&t->actions[i]);
    }
    return scale;
}
/* All cells of a page; returns how many have numbers. *whole: how many could have: those that no
 * break cuts or hides, which only a page with breaks has. */
/* Is some cell so narrow that no cell has a bar? */
static bool bare(Arena *a, const Scene *s, const Trace *t, const char *tag) {
    double least = INFINITY;
    for (int i = 0; i < t->n_actions; i++) least = fmin(least, took(&t->actions[i]));
    return scale_of(a, s, t, tag) * least < 2;
}
static int check_cells(Arena *a, const Scene *s, const Trace *t, const char *tag, int *whole) {
    bool broken = group_of(s, arena_printf(a, "%sbreak-0", tag)) >= 0;
    bool lines = group_of(s, arena_printf(a, "%sline-1", tag)) >= 0; /* test_lines says what of */
    double scale = scale_of(a, s, t, tag);
    *whole = 0;
    int with[MOST_STAGES][ACTION_LOOKS] = {{0}}, all[MOST_STAGES][ACTION_LOOKS] = {{0}}, n = 0;
    for (int i = 0; i < t->n_actions; i++) {
        const TraceAction *x = &t->actions[i];
        Cell c = cell_of(a, s, t, i, tag);
        int before, stages = rank_stages(t, x->rank, x->stage, &before), k = action_look(x);
        if (broken && (!c.cell || c.cell->w < 0.99 * scale * took(x))) {
            assert_null(c.number); /* test_fold says which may be missing */
            continue;
        }
        assert_non_null(c.cell);
        if (lines && c.cell->w < 0.99 * scale * took(x)) continue;
        assert_float_equal(c.cell->w, scale * took(x), 0.01 * scale * took(x));
        ++*whole;
        assert_int_equal(c.cell->fill, action_looks[k].fill);
        all[x->stage][k]++, with[x->stage][k] += c.number != NULL;
        if (stages == 1 || bare(a, s, t, tag)) assert_null(c.bar);
        if (stages == 1 || c.cell->w <= 2 * stages || bare(a, s, t, tag)) continue;
        assert_non_null(c.bar); /* within the share of the cell that is the stage's */
        double share = c.cell->w / stages, from = c.cell->x + share * before;
        assert_true(c.bar->x > from - share / 4 && c.bar->x + c.bar->w < from + share * 1.25);
    }
    for (int g = 0; g < MOST_STAGES; g++)
        for (int k = 0; k < ACTION_LOOKS; k++) {
            if (with[g][k] && with[g][k] != all[g][k])
                fail_msg("%s: %d of %d cells of %c on stage %d have numbers", t->schedule,
                         with[g][k], all[g][k], action_looks[k].kind, g);
            n += with[g][k];
        }
    return n;
}
static bool says(const Scene *s, const char *text) {
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; s->marks[i].kind == MARK_TEXT && k < s->marks[i].n_run; k++)
            if (strstr(s->marks[i].run[k].s, text)) return true;
    return false;
}
static void test_cells(void **state) {
    (void)state;
    static const char *const schedule[] = {"1f1b", "interleaved", "zb-v", "dualpipe", "dualpipe-v"};
    int seen[3] = {0};
    for (size_t i = 0; i < sizeof schedule / sizeof *schedule; i++)
        for (int many = 0; many < 2; many++) {
            Arena *a = arena_new();
            const Trace *t = planned(a, schedule[i], 8, many ? 24 : 8);
            assert_non_null(t);
            for (int p = 0; p < PRESETS; p++) {
                Scene *page[VIEW_MAX_PAGES];
                RenderOptions o = {
                    .view = "pipeline", .preset = preset[p], .rank = -1, .layer = -1};
                assert_true(render_pages(t, diags_new(a), &o, a, page));
                int whole, n = check_cells(a, page[0], t, "", &whole);
                bool none = says(page[0], "too small for the numbers"),
                     some = says(page[0], "all or none");
                assert_int_equal(none, n == 0);
                assert_int_equal(some, n > 0 && n < whole);
                seen[none ? 0 : some ? 1 : 2]++;
                bool bars = strcmp(schedule[i], "1f1b") != 0 && !bare(a, page[0], t, "");
                assert_int_equal(says(page[0], "which of the rank's stages"), bars);
            }
            arena_free(a);
        }
    print_message("pages without numbers %d, with some %d, with all %d\n", seen[0], seen[1],
                  seen[2]);
    assert_true(seen[0] && seen[1] && seen[2]);
}

/* ---- lines ---- */
/* What has too little room goes on in more lines of one scale: there all cells have numbers, and
 * what a line's end cuts goes on at the beginning of the next. Several schedules beside each other
 * stay on one axis. */
static void test_lines(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = planned_on(a, 2, "zb-v", 4, 8);
    assert_non_null(t);
    double all = 0;
    for (int i = 0; i < t->n_actions; i++) all += took(&t->actions[i]);
    for (int p = 0; p < PRESETS; p++) {
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = {.view = "pipeline", .preset = preset[p], .rank = -1, .layer = -1};
        assert_true(render_pages(t, diags_new(a), &o, a, page));
        const Scene *s = page[0];
        assert_true(group_of(s, "line-1") >= 0 && says(s, "lines of one scale"));
        assert_true(group_of(s, "axis-0") >= 0 && group_of(s, "axis-1") >= 0);
        assert_true(says(s, "number in a cell = micro-batch") && !says(s, "all or none"));
        double wide = 0;
        int numbers = 0;
        for (int k = 0; k < s->n_marks; k++) {
            const Mark *m = &s->marks[k];
            const char *id = m->group >= 0 ? s->groups[m->group].id : "";
            if (strncmp(id, "action-", 7)) continue;
            if (m->kind == MARK_TEXT) numbers++;
            else if (m->fill != ROLE_INK) wide += m->w;
        }
        assert_true(numbers >= t->n_actions);
        assert_float_equal(wide, scale_of(a, s, t, "") * all, 0.01 * wide);
    }
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = "pipeline", .rank = -1, .layer = -1, .n_several = 1, .several = {t}};
    assert_true(render_pages(t, diags_new(a), &o, a, page));
    assert_true(group_of(page[0], "line-1") < 0);
    arena_free(a);
}

/* The axis of time: its words stand where that time is, on one scale with the cells; each line of a
 * schedule has its own, several schedules have one. */
static void test_axis(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = planned(a, "1f1b", 4, 8);
    assert_non_null(t);
    for (int beside = 0; beside < 2; beside++)
        for (int p = 0; p < PRESETS; p++) {
            Scene *page[VIEW_MAX_PAGES];
            RenderOptions o = {.view = "pipeline", .preset = preset[p], .rank = -1, .layer = -1};
            o.n_several = beside, o.several[0] = t;
            assert_true(render_pages(t, diags_new(a), &o, a, page));
            const Scene *s = page[0];
            const double scale = scale_of(a, s, t, "");
            double zero = NAN;
            int words = 0;
            for (int k = 0; k < s->n_marks; k++) {
                const Mark *m = &s->marks[k];
                const char *id = m->group >= 0 ? s->groups[m->group].id : "", *axis;
                if (m->kind != MARK_TEXT || !(axis = strstr(id, "axis-"))) continue;
                if (strcmp(axis, "axis-0") != 0) continue; /* a narrow page has more lines */
                char *unit;
                const double v = strtod(m->run[0].s, &unit);
                if (v == 0) zero = m->x;
                assert_true(v == 0 || !strcmp(unit, " ms") || !strcmp(unit, " µs"));
                const double seconds = v * (strcmp(unit, " ms") ? 1e-6 : 1e-3);
                assert_float_equal(m->x, zero + seconds * scale, 1);
                words++;
            }
            assert_true(words >= 3);
        }
    arena_free(a);
}

/* ---- what is left out ---- */
/* An action like it, so much later on its rank. */
static bool comes_again(const PipeRow *r, const TraceAction *x, double later) {
    for (int i = 0; i < r->n; i++)
        if (r->a[i].stage == x->stage && !strcmp(r->a[i].kind, x->kind) &&
            fabs(r->a[i].start - x->start - later) < 1e-4 * later &&
            fabs(r->a[i].end - x->end - later) < 1e-4 * later)
            return true;
    return false;
}
/* Each cut is so many periods, before it and behind it stands one, and every action in them comes
 * again. Returns how many actions nobody sees. */
static int check_cuts(const PipeFold *f, const PipeRow *const *row, int n) {
    int hidden = 0;
    double sum = 0;
    for (int i = 0; i < f->n; i++) {
        const PipeCut *c = &f->cut[i];
        double period = (c->to - c->from) / c->periods;
        assert_true(c->periods >= 4 && c->from - period >= (i ? c[-1].to : 0) - 1e-3 * period);
        sum += c->to - c->from;
        for (int r = 0; r < n; r++)
            for (int k = 0; k < row[r]->n; k++) {
                const TraceAction *x = &row[r]->a[k];
                double slack = 1e-3 * period;
                if (x->start < c->from - period - slack || x->start > c->to - slack) continue;
                if (!comes_again(row[r], x, period))
                    fail_msg("%s%d of stage %d does not come again after %g", x->kind,
                             x->microbatch, x->stage, period);
            }
    }
    for (int r = 0; r < n; r++)
        for (int k = 0; k < row[r]->n; k++) hidden += !pipe_in_sight(f, &row[r]->a[k]);
    assert_float_equal(sum, f->hidden, 1e-9 * (1 + sum));
    return hidden;
}
static int fold_of(Arena *a, const Trace *t, PipeFold *f) {
    RenderOptions o = {.view = "pipeline", .rank = -1, .layer = -1};
    Pipe p;
    assert_true(pipe_read(&p, &(ViewCall){.t = t, .o = &o, .d = diags_new(a), .arena = a}));
    const PipeRow **row = ARENA_ARRAY(a, const PipeRow *, p.n);
    for (int k = 0; k < p.n; k++) row[k] = &p.row[k];
    *f = pipe_fold(a, row, p.n);
    return check_cuts(f, row, p.n);
}
/* What repeats is left out in every order; an action in the middle that takes longer is not. */
static void test_fold(void **state) {
    (void)state;
    int n;
    const ScheduleKind *kind = schedule_kinds(&n);
    for (int i = 0; i < n; i++) {
        Arena *a = arena_new();
        const Trace *t = planned(a, kind[i].name, 8, 96);
        assert_non_null(t);
        PipeFold f;
        int hidden = fold_of(a, t, &f);
        if (!f.n || hidden < t->n_actions / 3) /* stages differ: gpipe has one phase that repeats */
            fail_msg("%s: %d of %d actions left out", kind[i].name, hidden, t->n_actions);
        TraceAction *odd = NULL;
        double mid = (f.cut[0].from + f.cut[0].to) / 2;
        for (int k = 0; k < t->n_actions && !odd; k++)
            if (t->actions[k].start > mid && !pipe_in_sight(&f, &t->actions[k]))
                odd = &t->actions[k];
        assert_non_null(odd);
        odd->end -= 0.25 * took(odd);
        assert_true(fold_of(a, t, &f) < hidden);
        assert_true(pipe_in_sight(&f, odd));
        arena_free(a);
    }
}
/* Long schedules of many ranks: cells are wide enough, breaks say how many periods they are, and
 * the numbers of the title are those of all. */
static void test_long_schedules(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = planned_on(a, 16, "1f1b", 16, 128);
    assert_non_null(t);
    RenderOptions o = {.view = "pipeline", .rank = -1, .layer = -1};
    Pipe p;
    assert_true(pipe_read(&p, &(ViewCall){.t = t, .o = &o, .d = diags_new(a), .arena = a}));
    for (int k = 0; k < PRESETS; k++) {
        Scene *page[VIEW_MAX_PAGES];
        o.preset = preset[k];
        assert_true(render_pages(t, diags_new(a), &o, a, page));
        int breaks = 0, whole;
        while (group_of(page[0], arena_printf(a, "break-%d", breaks)) >= 0) breaks++;
        assert_true(breaks > 0);
        assert_true(says(page[0], "so many periods"));
        assert_true(says(page[0], arena_printf(a, "%.1f %%", 100 * p.idle)));
        check_cells(a, page[0], t, "", &whole);
        assert_true(whole > 60 && whole < t->n_actions / 4);
        double least = 1;
        for (int i = 0; i < t->n_actions; i++) least = fmin(least, took(&t->actions[i]));
        double wide = scale_of(a, page[0], t, "") * least;
        if (wide < (k == 1 ? 2 : 5.5)) fail_msg("%s: a cell is %g wide", preset[k], wide);
        bool ends = group_of(page[0], "rows") >= 0;
        assert_int_equal(says(page[0], "pp 2 to 13") || says(page[0], "pp 4 to 11"), ends);
        assert_int_equal(group_of(page[0], "row-7") < 0, ends);
        assert_true(group_of(page[0], "row-0") >= 0 && group_of(page[0], "row-15") >= 0);
    }
    arena_free(a);
}
/* Lines that are not the last go on to the edge of the page, beside whose words nothing stands. */
static void test_lines_to_the_edge(void **state) {
    (void)state;
    static const char plan[] = "plans/46-llama3-8b-pp2-zb-v.yaml";
    Arena *a = arena_new();
    size_t size;
    const char *text = file_read(a, diags_new(a), plan, 1 << 20, (Loc){0}, &size);
    assert_non_null(text);
    const Trace *t = plan_run_with(a, plan, text, &(PipelineOptions){.events = true}).t;
    RenderOptions o = {.view = "pipeline", .rank = -1, .layer = -1, .preset = "column"};
    Scene *page[VIEW_MAX_PAGES];
    assert_true(render_pages(t, diags_new(a), &o, a, page));
    assert_true(group_of(page[0], "line-3") >= 0);
    assert_true(group_of(page[0], "line-4") < 0);
    double cells = 0, words = 0;
    for (int i = 0; i < page[0]->n_marks; i++) {
        const Mark *m = &page[0]->marks[i];
        const char *what = m->group < 0 ? "" : page[0]->groups[m->group].what;
        if (m->kind == MARK_RECT && !strcmp(what, "compute")) cells = fmax(cells, m->x + m->w);
        if (m->kind == MARK_TEXT && strstr(m->run[0].s, "idle 0")) words = m->x;
    }
    assert_true(words > 0 && cells > words + 20);
    const char *report = "";
    if (render_lint(t, diags_new(a), &o, a, &report)) fail_msg("%s", report);
    arena_free(a);
}
/* Where cells are too narrow for lines a frame says where a rank is busy, all of the time that it
 * is; such cells have no bars at their edges, and the legend none. */
static void test_narrow_cells(void **state) {
    (void)state;
    static const char plan[] = "plans/shape-only/deepseek-v3-pp16-ep64.yaml";
    Arena *a = arena_new();
    size_t size;
    const char *text = file_read(a, diags_new(a), plan, 1 << 20, (Loc){0}, &size);
    assert_non_null(text);
    const Trace *t = plan_run_with(a, plan, text, &(PipelineOptions){.events = true}).t;
    RenderOptions o = {.view = "pipeline", .rank = -1, .layer = -1, .theme = "print"};
    Scene *page[VIEW_MAX_PAGES];
    assert_true(render_pages(t, diags_new(a), &o, a, page));
    const Scene *s = page[0];
    int frames = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_RECT || m->group < 0) continue;
        const char *what = s->groups[m->group].what;
        frames += !strcmp(what, "busy");
        if (!strcmp(what, "compute")) assert_true(m->fill != ROLE_INK);
    }
    assert_true(bare(a, s, t, ""));
    assert_true(frames >= 16);
    for (int k = 0; k < 16; k++) assert_true(group_of(s, arena_printf(a, "busy-%d", k)) >= 0);
    assert_false(says(s, "bar at an edge"));
    arena_free(a);
}
/* Built up, cells appear in the order of time, and what is counted of all of it with the last. */
static void test_build(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = planned(a, "zb-h1", 8, 6);
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = "pipeline", .rank = -1, .layer = -1, .build = true};
    assert_non_null(t);
    assert_true(render_pages(t, diags_new(a), &o, a, page));
    const int *step;
    const int n = build_steps(page[0], &step);
    assert_true(n > 10 && n < 80);
    for (int i = 0; i < t->n_actions; i++) {
        const Mark *m = cell_of(a, page[0], t, i, "").cell;
        assert_non_null(m);
        assert_true(m->step > 0 && m->step < step[n - 1]);
        for (int k = 0; k < t->n_actions; k++)
            if (t->actions[k].start < t->actions[i].start)
                assert_true(cell_of(a, page[0], t, k, "").cell->step <= m->step);
    }
    for (int k = 0; k < page[0]->n_marks; k++) {
        const Mark *m = &page[0]->marks[k];
        if (m->kind == MARK_TEXT && !strncmp(m->run[0].s, "idle ", 5) &&
            !strcmp(page[0]->groups[m->group].what, "rank"))
            assert_int_equal(m->step, step[n - 1]);
    }
    o.n_several = 1, o.several[0] = planned(a, "gpipe", 8, 6);
    for (int with = 0; with < 2; with++) { /* alone, and with another, a table and headings */
        static const char *const counted[] = {" the first forward", "% idle", "idles: the mean"};
        o.n_several = with;
        assert_true(render_pages(t, diags_new(a), &o, a, page));
        const int last = build_steps(page[0], &step);
        int late = 0, stamps = 0;
        for (int k = 0; k < page[0]->n_marks; k++) {
            const Mark *m = &page[0]->marks[k];
            if (m->kind != MARK_TEXT) continue;
            if (strstr(m->run[0].s, "shapes checked")) assert_int_equal(m->step, 0), stamps++;
            for (size_t c = 0; c < sizeof counted / sizeof *counted; c++)
                if (strstr(m->run[0].s, counted[c]) && strcmp(page[0]->title, m->run[0].s) != 0)
                    assert_int_equal(m->step, step[last - 1]), late++;
        }
        assert_int_equal(stamps, 1);
        assert_true(with ? late >= 3 : late == 1);
    }
    arena_free(a);
}
/* What stands before the names of the right half's groups. */
static const char *right_tag(Arena *a, const Scene *s) {
    static const char first[] = "action-0-0";
    for (int g = 0; g < s->n_groups; g++) {
        const char *at = strstr(s->groups[g].id, first);
        if (at && at > s->groups[g].id && !at[sizeof first - 1])
            return arena_strndup(a, s->groups[g].id, (size_t)(at - s->groups[g].id));
    }
    return "";
}
/* Schedules of two plans beside each other have one scale, in as many lines each; one that is many
 * times as long leaves the other its own, and both say so. */
static void test_two_plans_at_one_scale(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        int parts;
        bool apart;
    } far[] = {{"dualpipe", 8, false}, {"gpipe", 12, false}, {"1f1b", 80, true}};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        Arena *a = arena_new();
        const Trace *t = planned(a, "1f1b", 8, 8),
                    *u = planned(a, far[i].schedule, 8, far[i].parts);
        RenderOptions o = {.view = "pipeline", .rank = -1, .layer = -1, .with = u};
        Scene *page[VIEW_MAX_PAGES];
        o.preset = "column";
        assert_true(t && u);
        assert_int_equal(render_pages(t, diags_new(a), &o, a, page), 1);
        const double left = scale_of(a, page[0], t, ""),
                     right = scale_of(a, page[0], u, right_tag(a, page[0]));
        assert_true(left > 0 && right > 0);
        assert_int_equal(says(page[0], "at a scale of its own"), far[i].apart);
        if ((fabs(left / right - 1) < 1e-6) == far[i].apart)
            fail_msg("%s: %g and %g px a second", far[i].schedule, left, right);
        const char *report = "";
        if (scene_lint(page[0], a, &report)) fail_msg("%s: %s", far[i].schedule, report);
        arena_free(a);
    }
}
/* Ranks of other axes share a row: it says how many they are. */
static void test_rows_of_many(void **state) {
    (void)state;
    static const struct {
        const char *mesh, *says;
    } row[] = {{"pp: 2", NULL},
               {"pp: 2, dp: 3", "a row = the 3 ranks at one place of pp"},
               {"dp: 2, tp: 2, pp: 2", "a row = the 4 ranks at one place of pp"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run_with(
            a, "rows.yaml",
            arena_printf(a,
                         "model: {preset: llama3-8b, layers: 2, shrink: 32}\ndata: {batch: 12, "
                         "sequence: 8, dtype: f32}\nmesh: {%s}\npass: backward\npipeline: "
                         "{schedule: 1f1b, microbatches: 2}\n",
                         row[i].mesh),
            &(PipelineOptions){.events = true});
        assert_non_null(r.t);
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = {.view = "pipeline", .rank = -1, .layer = -1};
        assert_true(render_pages(r.t, diags_new(a), &o, a, page));
        assert_int_equal(says(page[0], row[i].says ? row[i].says : "a row = the"), !!row[i].says);
        arena_free(a);
    }
}
/* Three schedules of four ranks are not too many for numbers on a slide. */
static void test_beside_on_a_slide(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = planned(a, "1f1b", 4, 8), *u = planned(a, "gpipe", 4, 8),
                *v = planned(a, "zb-h1", 4, 8);
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = "pipeline",
                       .preset = "slide",
                       .rank = -1,
                       .layer = -1,
                       .n_several = 2,
                       .several = {u, v}};
    assert_true(render_pages(t, diags_new(a), &o, a, page));
    int whole;
    assert_int_equal(check_cells(a, page[0], t, "", &whole), t->n_actions);
    assert_int_equal(check_cells(a, page[0], u, "s1-", &whole), u->n_actions);
    assert_true(check_cells(a, page[0], v, "s2-", &whole) > 0);
    arena_free(a);
}
/* Two of one name are told apart, and whose work is not that of the first is told: in the figure,
 * as text, in the title's micro-batches. */
static void test_other_work_beside(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *one = planned(a, "1f1b", 4, 4), *same = planned(a, "1f1b", 4, 4),
                *more = planned(a, "1f1b", 4, 8);
    Trace named = *one;
    named.plan = "other";
    const struct {
        const Trace *t;
        const char *title, *say; /* say: NULL where it is the same work */
    } row[] = {
        {same, "2 schedules of 4 micro-batches on one axis of time; all end together", NULL},
        {more, "2 schedules of 4 to 8 micro-batches on one axis of time; 1f1b (1) ends first",
         "1f1b (2) is of other work: B="},
        {&named, "2 schedules of 4 micro-batches on one axis of time; all end together", NULL},
        {planned(a, "gpipe", 8, 4), "2 schedules of 4 micro-batches on one axis",
         "gpipe is of other work: 8 layers"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        RenderOptions o = {.view = "pipeline",
                           .preset = "wide",
                           .rank = -1,
                           .layer = -1,
                           .n_several = 1,
                           .several = {row[i].t}};
        Scene *page[VIEW_MAX_PAGES];
        assert_int_equal(render_pages(one, diags_new(a), &o, a, page), 1);
        if (!strstr(page[0]->title, row[i].title)) fail_msg("%s", page[0]->title);
        assert_int_equal(says(page[0], "is of other work"), row[i].say != NULL);
        if (row[i].say && !says(page[0], row[i].say)) fail_msg("not said: %s", row[i].say);
        assert_int_equal(says(page[0], "1f1b of other"), row[i].t == &named);
        assert_int_equal(says(page[0], "1f1b (1)"), row[i].t == same || row[i].t == more);
    }
    arena_free(a);
}
/* Many are on several pages, in their size: the rows of each once, on one axis of time, and then
 * one table of all. */
static void test_many_beside(void **state) {
    (void)state;
    static const char *const name[] = {"1f1b",           "gpipe", "zb-h1", "interleaved",
                                       "interleaved-zb", "zb-v",  "1f1b",  "dualpipe-v"};
    enum { MANY = sizeof name / sizeof *name };
    static const struct {
        const char *preset;
        int ranks, n, pages;
    } figure[] = {{"slide", 4, 2, 1}, {"slide", 4, 4, 3}, {"slide", 4, MANY, 4}, {"slide", 8, 3, 3},
                  {"a4", 4, 4, 1},    {"a4", 4, MANY, 3}, {"wide", 4, MANY, 1}};
    for (size_t i = 0; i < sizeof figure / sizeof *figure; i++) {
        Arena *a = arena_new();
        const Trace *t[MANY];
        RenderOptions o = {.view = "pipeline",
                           .preset = figure[i].preset,
                           .rank = -1,
                           .layer = -1,
                           .n_several = figure[i].n - 1};
        for (int k = 0; k < figure[i].n; k++) {
            t[k] = planned_on(a, figure[i].ranks, name[k], 8, 8);
            if (k) o.several[k - 1] = t[k];
        }
        Scene *page[VIEW_MAX_PAGES];
        int n = render_pages(t[0], diags_new(a), &o, a, page), tables = 0;
        if (n != figure[i].pages) fail_msg("%s of %d: %d pages", o.preset, figure[i].n, n);
        double scale = 0;
        for (int p = 0; p < n; p++) {
            if (!strcmp(o.preset, "slide")) assert_true(page[p]->scale >= 1);
            tables += says(page[p], "held at most");
            for (int m = 0; m < page[p]->n_marks; m++) { /* which page it is has a line */
                const Mark *x = &page[p]->marks[m];
                bool number = x->group >= 0 && !strcmp(page[p]->groups[x->group].what, "page");
                assert_true(!number || x->y >= 18);
            }
        }
        assert_int_equal(tables, 1);
        assert_true(says(page[n - 1], "held at most"));
        for (int k = 0; k < figure[i].n; k++) {
            const char *tag = k ? arena_printf(a, "s%d-", k) : "";
            int on = 0;
            for (int p = 0; p < n; p++) {
                if (group_of(page[p], arena_printf(a, "%srow-0", tag)) < 0) continue;
                double here = scale_of(a, page[p], t[k], tag);
                if (on++ || (scale > 0 && fabs(here / scale - 1) > 1e-6))
                    fail_msg("%s of %d: %s", o.preset, figure[i].n, name[k]);
                scale = here;
            }
            assert_int_equal(on, 1);
        }
        const char *report = "";
        if (render_lint(t[0], diags_new(a), &o, a, &report)) fail_msg("%s", report);
        arena_free(a);
    }
}

/* Memory over time: the peak is that of the records and so of the title, in every order; moments
 * follow each other from the beginning to the end of the schedule; what is in flight is the
 * pipeline's; and the JSON has the same. Is the fullest after the last micro-batch? */
static bool check_time(Arena *a, const Trace *t, int64_t rank) {
    MemCourse c;
    MemTime m;
    assert_true(memory_course(a, t, rank, &c));
    assert_true(memory_time(a, t, &c, &m));
    int64_t peak = 0;
    int flight = 0, most = 0, actions = 0;
    for (int i = 0; i < m.n; i++) {
        const MemMoment *x = &m.at[i];
        if (i) assert_true(x->from == x[-1].to);
        assert_true(x->all >= m.grads && x->gathered >= 0 && x->gathered <= x->all - m.grads);
        actions += (x->a != NULL) + (x->b != NULL);
        most = x->flight > most ? x->flight : most;
        peak = x->all > peak ? x->all : peak;
    }
    assert_true(m.at[0].from == 0 && m.at[m.n - 1].to == m.end);
    peak = m.after > peak ? m.after : peak;
    int64_t copies = c.all[c.peak] - c.live[c.peak]; /* records have the most of each for itself */
    if (peak > c.at_peak || peak < c.at_peak - copies || peak != m.at_peak)
        fail_msg("%s, rank %lld: %lld over time, %lld recorded", t->schedule, (long long)rank,
                 (long long)peak, (long long)c.at_peak);
    int live = 0, have = 0;
    for (int i = 0; i < t->n_actions; i++) {
        if (t->actions[i].rank != m.coord) continue;
        live = action_flight(&t->actions[i], live), have++;
        flight = live > flight ? live : flight;
    }
    assert_int_equal(most, flight);
    assert_int_equal(actions, have);
    return m.peak < 0;
}
static void test_memory_over_time(void **state) {
    (void)state;
    static const char *const rest[] = {
        "mesh: {pp: 2}\npass: backward\n",
        "mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, unit: block}\npass: backward\n",
        ("mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, unit: block, reshard: false}\n"
         "pass: train\noptimizer: {name: adamw, lr: 0.1}\n"),
        /* whose buffers make the time after the last micro-batch the fullest */
        ("mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: zero1, form: megatron}\npass: train\n"
         "optimizer: {name: adamw, lr: 0.1}\n")};
    int n, after = 0;
    const ScheduleKind *kind = schedule_kinds(&n);
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof rest / sizeof *rest; k++) {
            Arena *a = arena_new();
            const Trace *t =
                plan_run_with(a, "time.yaml",
                              arena_printf(a,
                                           "model: {preset: llama3-8b, shrink: 64, layers: 4, "
                                           "parts: [embedding, blocks, norm, head, loss]}\n"
                                           "data: {batch: 16, sequence: 8}\n%s"
                                           "pipeline: {schedule: %s, microbatches: 8}\n",
                                           rest[k], kind[i].name),
                              &(PipelineOptions){.events = true})
                    .t;
            assert_non_null(t);
            for (int64_t r = 0; r < t->ranks; r++) after += check_time(a, t, r);
            arena_free(a);
        }
    assert_true(after > 0);
}
/* Parts that are as large as each other are both named. */
static void test_equal_parts(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = plan_run_with(a, "equal.yaml",
                                   "model: {preset: llama3.2-1b, shrink: 32, layers: 4, parts: "
                                   "[embedding, blocks, norm, head, loss]}\nmesh: {pp: 4}\n"
                                   "data: {batch: 8, sequence: 8}\npass: backward\n"
                                   "pipeline: {schedule: 1f1b, tied: pair, microbatches: 8}\n",
                                   &(PipelineOptions){.events = true})
                         .t;
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = "memory", .rank = -1, .layer = -1};
    assert_true(render_pages(t, diags_new(a), &o, a, page) > 0);
    assert_non_null(strstr(page[0]->title, "its largest parts parameters and gradients"));
    arena_free(a);
}

/* The action before which a rank stands is a red frame with its name. */
static void stands_in_red(const Scene *s, const char *id, const char *action) {
    int g = group_of(s, id), red = 0;
    assert_true(g >= 0);
    for (int m = 0; m < s->n_marks; m++) {
        const Mark *x = &s->marks[m];
        if (x->group == g && x->kind == MARK_TEXT) assert_string_equal(x->run[0].s, action);
        red += x->group == g && x->kind == MARK_RECT && x->stroke == ROLE_FAIL;
    }
    assert_int_equal(red, 1);
}
/* A plan of two ranks whose order is that of a file. */
static const char *of_file(Arena *a, const char *path, const char *rows) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(rows, f);
    fclose(f);
    return arena_printf(
        a,
        "model: {preset: llama3-8b, shrink: 64, layers: 2}\nmesh: {pp: 2}\ndata: {batch: 2, "
        "sequence: 8}\npass: backward\npipeline: {file: %s, stage_to_rank: [0, 1], "
        "microbatches: 2}\n",
        path);
}
/* A schedule that comes to no end is drawn as far as it goes: what is done, and in red where each
 * rank stands; no time is told, for there is none. */
static void test_deadlock(void **state) {
    (void)state;
    static const struct {
        const char *rows, *done[4], *stuck[2], *says;
        int actions;
    } row[] = {
        {"0F0,0F1,0B0,0B1\n1B0,1F0,1F1,1B1\n",
         {"action-0-0", "action-0-1"},
         {"0B0", "1B0"},
         "rank 1 stands before 1B0 and waits for 1F0 on rank 1",
         2},
        {"0F0,0F1,0B0,0B1\n1F0,1B1,1F1,1B0\n",
         {"action-0-0", "action-0-1", "action-1-0"},
         {"0B0", "1B1"},
         "rank 1 stands before 1B1 and waits for 1F1 on rank 1",
         3},
    };
    Arena *a = arena_new();
    const char *path = temp_path(a, "order.csv");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *text = of_file(a, path, row[i].rows);
        PlanRun r = plan_run_with(a, "dead.yaml", text, &(PipelineOptions){.events = true});
        assert_null(r.t); /* who wants more than the picture has no trace */
        r = plan_run_with(a, "dead.yaml", text, &(PipelineOptions){.events = true, .stuck = true});
        assert_non_null(r.t);
        assert_non_null(run_diag(&r, "E0311", row[i].says));
        assert_int_equal(r.t->n_actions, row[i].actions);
        run_must_be(&r, "invalid");
        for (int p = 0; p < PRESETS; p++) {
            RenderOptions o = {.view = "pipeline", .rank = -1, .layer = -1, .preset = preset[p]};
            Scene *page[VIEW_MAX_PAGES];
            const char *report;
            assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
            if (scene_lint(page[0], a, &report)) fail_msg("%s: %s", preset[p], report);
            for (int k = 0; k < 4 && row[i].done[k]; k++)
                assert_true(group_of(page[0], row[i].done[k]) >= 0);
            for (int k = 0; k < 2; k++)
                stands_in_red(page[0], arena_printf(a, "stuck-%d", k), row[i].stuck[k]);
        }
        size_t n;
        RenderOptions o = {.view = "pipeline", .rank = -1, .layer = -1};
        const char *words = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
        assert_int_equal(strncmp(words, "order.csv comes to no end: 2 of 2 ranks", 39), 0);
        assert_null(strstr(words, " ms"));
        assert_null(strstr(words, " s "));
    }
    remove(path);
    arena_free(a);
}
/* What page[0] of n says of the schedule that comes to no end; returns how wide a forward is. */
static double stands_among(Arena *a, Scene *const *page, int n, const char *tag) {
    const Scene *s = page[0];
    assert_true(says(s, " comes to no end: 2 of 2 ranks stand still"));
    assert_true(says(page[n - 1], "no end"));
    assert_non_null(strstr(s->desc, "rank 1 stands before 1B1 and waits for 1F1"));
    for (int r = 0; r < 2; r++)
        assert_true(group_of(s, arena_printf(a, "%sstuck-%d", tag, r)) >= 0);
    int first = group_of(s, arena_printf(a, "%saction-0-0", tag));
    for (int m = 0; m < s->n_marks; m++)
        if (s->marks[m].group == first && s->marks[m].kind == MARK_RECT) return s->marks[m].w;
    fail_msg("'%saction-0-0' is not there", tag);
    return 0;
}
static double mean_forward(const Trace *t) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < t->n_actions; i++)
        if (*t->actions[i].kind == 'F') sum += took(&t->actions[i]), n++;
    return sum / n;
}
/* Beside others it says so in its rows, its line of the table and the title; those that come to an
 * end are drawn as ever. It has no times: a forward is as long as the others' on the mean. */
static void test_deadlock_beside(void **state) {
    (void)state;
    static const struct {
        const char *of; /* d: the one that stands still */
        const char *ends;
    } row[] = {{"1dg", "1f1b and gpipe end together, order.csv comes to no end"},
               {"d1g", "1f1b and gpipe end together, order.csv comes to no end"},
               {"d1", "1f1b ends, order.csv comes to no end"},
               {"dd1", "1f1b ends, order.csv (1) and order.csv (2) come to no end"},
               {"dd", "none comes to an end"}};
    Arena *a = arena_new();
    const char *path = temp_path(a, "order.csv");
    PlanRun dead =
        plan_run_with(a, "dead.yaml", of_file(a, path, "0F0,0F1,0B0,0B1\n1F0,1B1,1F1,1B0\n"),
                      &(PipelineOptions){.events = true, .stuck = true});
    assert_true(dead.t && dead.t->n_stuck == 2);
    const Trace *one = planned_on(a, 2, "1f1b", 2, 2), *all = planned_on(a, 2, "gpipe", 2, 2);
    for (size_t i = 0; i < PRESETS * sizeof row / sizeof *row; i++) {
        const char *of = row[i / PRESETS].of, *report;
        const Trace *t[3] = {0};
        for (int k = 0; of[k]; k++) t[k] = of[k] == 'd' ? dead.t : of[k] == '1' ? one : all;
        RenderOptions o = {.view = "pipeline",
                           .rank = -1,
                           .layer = -1,
                           .preset = preset[i % PRESETS],
                           .n_several = (int)strlen(of) - 1,
                           .several = {t[1], t[2]}};
        Scene *page[VIEW_MAX_PAGES];
        int n = render_pages(t[0], dead.d, &o, a, page);
        assert_true(n > 0);
        for (int k = 0; k < n; k++)
            if (scene_lint(page[k], a, &report)) fail_msg("%s: %s", o.preset, report);
        assert_non_null(strstr(page[0]->title, row[i / PRESETS].ends));
        double unit = 0, scale = 0;
        for (int k = 0, whole; of[k]; k++) {
            const char *tag = k ? arena_printf(a, "s%d-", k) : "";
            if (of[k] == 'd') unit = stands_among(a, page, n, tag);
            else
                check_cells(a, page[0], t[k], tag, &whole), scale = scale_of(a, page[0], t[k], tag);
        }
        if (scale > 0 && fabs(unit / (mean_forward(one) * scale) - 1) > 1e-6)
            fail_msg("%s: %g wide, %g due", o.preset, unit, mean_forward(one) * scale);
    }
    remove(path);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_differ),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_axis),
        cmocka_unit_test(test_build),
        cmocka_unit_test(test_two_plans_at_one_scale),
        cmocka_unit_test(test_rows_of_many),
        cmocka_unit_test(test_beside_on_a_slide),
        cmocka_unit_test(test_other_work_beside),
        cmocka_unit_test(test_many_beside),
        cmocka_unit_test(test_memory_over_time),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_long_schedules),
        cmocka_unit_test(test_narrow_cells),
        cmocka_unit_test(test_lines_to_the_edge),
        cmocka_unit_test(test_deadlock),
        cmocka_unit_test(test_deadlock_beside),
        cmocka_unit_test(test_equal_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
