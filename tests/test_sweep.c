/* View `sweep`: its numbers against plans of their own, run with the same `--set`: what `memory`
 * and `timeline` say of each; which batches and meshes it tries; its sentences; its pages on every
 * preset; what is said where there is nothing to try. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/sweep.h"
#include "render/furniture/page_room.h"
#include "render/memory/inks.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "render/sweep/sweep.h"
#include "support/pictures.h"
#include "support/records.h"
#include "support/support.h"
#include "trace/trace_times.h"
#include <math.h>
#include <string.h>

/* A plan as `draw` has it. */
typedef struct {
    Arena *a;
    Cli cli;
    Loaded l;
    RenderOptions o;
    const char *name;
} Drawn;
static PlanText text_of(const Drawn *p, const PlanSet *sets, int n) {
    return (PlanText){p->name, p->l.text, p->l.n, sets, n};
}
static Trace *trace_with(Arena *a, const Drawn *p, const PlanSet *sets, int n) {
    PipelineReport rep = {0};
    PipelineOptions o = {.events = true, .threads = 1};
    return pipeline_run(a, diags_new(a), text_of(p, sets, n), &o, &rep);
}
static void drawn(Drawn *p, Arena *a, const char *name, const char *text) {
    PipelineOptions o = {.events = true, .threads = 1};
    *p = (Drawn){.a = a, .name = name};
    p->cli = (Cli){.arena = a};
    p->l = (Loaded){.path = name, .text = text, .n = strlen(text), .d = diags_new(a)};
    p->l.trace = pipeline_run(a, p->l.d, text_of(p, NULL, 0), &o, &p->l.report);
    p->o = (RenderOptions){.view = "sweep", .rank = -1, .layer = -1};
    p->o.others = sweep_others(&p->cli, &o, &p->l);
}
static bool read_it(Sweep *s, const Drawn *p) {
    ViewCall *c = ARENA_NEW(p->a, ViewCall);
    *c = (ViewCall){
        .t = p->l.trace, .all = p->l.trace, .d = diags_new(p->a), .o = &p->o, .arena = p->a};
    const bool any = sweep_read(s, c);
    sweep_end(p->o.others);
    return any;
}
static const char *view_text(Arena *a, const Trace *t, const char *view) {
    RenderOptions o = {.view = view, .rank = -1, .layer = -1};
    size_t n;
    const char *text = render_text(t, diags_new(a), &o, FORMAT_TEXT, a, &n);
    assert_non_null(text);
    return text;
}
static const char *one_line(Arena *a, const char *text) {
    char *s = arena_strdup(a, text);
    for (char *c = s; *c; c++)
        if (*c == '\n') *c = ' ';
    return s;
}
/* A Llama-3-8B of two layers, trained: bf16 on an H100. */
static const char small[] =
    "name: small\nmodel: {preset: llama3-8b, layers: 2, parts: [embedding, blocks, norm, head, "
    "loss]}\n"
    "data: {batch: 8, sequence: 8192, dtype: bf16}\nmesh: {dp: 2, tp: 4}\nnames: torchtitan\n"
    "recipe: torchtitan-llama3\npass: backward\nhardware: h100-sxm\n";

/* ---- batches ---- */
/* What view `memory` says of the plan with that batch. */
static void hold_batch(const Drawn *p, const Sweep *s, const SweepBatch *b) {
    Arena *a = arena_new();
    const char *value = arena_printf(a, "%lld", (long long)b->batch),
               *key = strcmp(sweep_what(s), "rows") ? "data.batch" : "data.rows";
    const Trace *t = trace_with(a, p, &(PlanSet){key, value}, 1);
    assert_non_null(t);
    const char *text = one_line(a, view_text(a, t, "memory"));
    says(text, arena_printf(a, "holds %s at the peak", bytes_text(b->total, a)));
    int64_t sum = 0, most = 0;
    for (int64_t r = 0; r < t->ranks; r++)
        most = records_peak(t, r) > most ? records_peak(t, r) : most;
    assert_int_equal(b->total, most);
    for (int k = 0; k < MEM_KINDS; k++) sum += b->bytes[k];
    assert_int_equal(sum, b->total);
    const bool over = strstr(text, "does not fit: +") != NULL;
    assert_int_equal(over, !sweep_fits(s, b->total));
    if (over)
        says(text, arena_printf(a, "does not fit: +%s", bytes_text(b->total - s->capacity, a)));
    arena_free(a);
}
/* Ascending, each twice the one before but for the plan's own; one that does not fit, and the
 * plan's own behind it. */
static void hold_series(const Drawn *p, const Sweep *s) {
    int own = 0;
    int64_t last = 0;
    for (int i = 0; i < s->n; i++) {
        const SweepBatch *b = &s->at[i];
        own += b->own;
        assert_int_equal(b->own, b->batch == p->o.others->batch);
        if (last && b->own && b->batch != 2 * last) continue;
        if (last) assert_int_equal(b->batch, 2 * last);
        last = b->batch;
        hold_batch(p, s, b);
    }
    assert_int_equal(own, 1);
    for (int i = 0; i < s->n; i++) assert_int_equal(i < s->fits, sweep_fits(s, s->at[i].total));
    if (s->capacity && !s->ended) assert_true(s->fits < s->n);
    for (int i = s->fits + 1; i < s->n; i++) assert_true(s->at[i].own);
}
static void batches_are_plans(void **state) {
    (void)state;
    Arena *a = arena_new();
    Drawn p;
    Sweep s;
    drawn(&p, a, "small.yaml", small);
    assert_true(read_it(&s, &p));
    hold_series(&p, &s);
    assert_int_equal(s.at[0].batch, 2); /* one for each of dp: with 1 a rank has nothing */
    assert_true(s.fits > 0 && s.fits < s.n);
    says(sweep_title(&s),
         arena_printf(a, "Fits at batch %lld, not at batch %lld;",
                      (long long)s.at[s.fits - 1].batch, (long long)s.at[s.fits].batch));
    arena_free(a);
}
/* Long numbers stand in groups of three: in the title and under the bars. */
static void long_numbers_are_grouped(void **state) {
    (void)state;
    Arena *a = arena_new();
    Drawn p;
    Sweep s;
    const char *at = strstr(small, "sequence: 8192"),
               *text = arena_printf(a, "%.*ssequence: 16%s", (int)(at - small), small, at + 14);
    drawn(&p, a, "long.yaml", text);
    assert_true(read_it(&s, &p));
    const int64_t fits = s.at[s.fits - 1].batch;
    assert_true(fits >= 10000 && fits < 1000000);
    const char *number =
        arena_printf(a, "%lld,%03lld", (long long)fits / 1000, (long long)fits % 1000);
    says(sweep_title(&s), arena_printf(a, "Fits at batch %s, not at batch ", number));
    assert_string_equal(sweep_number(a, fits), number);
    assert_string_equal(sweep_number(a, 8192), "8192");
    assert_string_equal(sweep_number(a, 4194304), "4,194,304");
    arena_free(a);
}
/* The smallest is one that is legal: two micro-batches on two ranks are four sequences. */
static void smallest_is_legal(void **state) {
    (void)state;
    Arena *a = arena_new();
    Drawn p;
    Sweep s;
    const char *at = strstr(small, "batch: 8"),
               *text = arena_printf(a, "%.*smicrobatches: 2, %s", (int)(at - small), small, at);
    drawn(&p, a, "parts.yaml", text);
    assert_true(read_it(&s, &p));
    hold_series(&p, &s);
    assert_int_equal(s.at[0].batch, 4);
    says(sweep_totals(&s, 0, 0), "Each is run in 2 micro-batches.");
    arena_free(a);
}
/* The plan's own batch stands among the others where it is no power of two times the smallest. */
static void own_batch_is_there(void **state) {
    (void)state;
    Arena *a = arena_new();
    Drawn p;
    Sweep s;
    const char *at = strstr(small, "batch: 8"),
               *text = arena_printf(a, "%.*sbatch: 12%s", (int)(at - small), small, at + 8);
    drawn(&p, a, "own.yaml", text);
    assert_true(read_it(&s, &p));
    hold_series(&p, &s);
    bool found = false;
    for (int i = 1; i < s.n; i++)
        found |= s.at[i].own && s.at[i].batch == 12 && s.at[i - 1].batch == 8;
    assert_true(found);
    arena_free(a);
}

/* Of a plan that says no batch it is the model's, and of one without sequences it is rows. */
static void batch_by_default(void **state) {
    (void)state;
    static const char *const text[] = {
        "name: none\nmodel: {preset: llama3-8b, layers: 1, parts: [blocks]}\ndata: {sequence: 512, "
        "dtype: bf16}\nmesh: {tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3\nhardware: "
        "h100-sxm\n",
        "name: rows\nmodel: {kind: mlp, sizes: [8, 16, 8]}\ndata: {rows: 6}\nmesh: {tp: "
        "2}\nplan:\n  net1: colwise\n  net2: rowwise\n"};
    Arena *a = arena_new();
    for (int i = 0; i < 2; i++) {
        Drawn p;
        Sweep s;
        drawn(&p, a, i ? "rows.yaml" : "none.yaml", text[i]);
        assert_non_null(p.o.others);
        assert_int_equal(p.o.others->batch, (int64_t)words_find_dim(p.l.trace, "B"));
        assert_int_equal(p.o.others->rows, i == 1);
        assert_true(read_it(&s, &p));
        assert_string_equal(sweep_what(&s), i ? "rows" : "batch");
        hold_series(&p, &s);
    }
    arena_free(a);
}
/* ---- ways ---- */
static void near(const char *what, double got, double want) {
    if (fabs(got - want) > 1e-9 * fabs(want)) fail_msg("%s: %.12g, not %.12g", what, got, want);
}
static void hold_way(const Drawn *p, const Sweep *s, const SweepWay *w) {
    Arena *a = arena_new();
    PlanSet set[SWEEP_AXES];
    int64_t ranks = 1;
    for (int i = 0; i < p->o.others->n_axes; i++) {
        set[i] = (PlanSet){arena_printf(a, "mesh.%s", p->o.others->axis[i]),
                           arena_printf(a, "%lld", (long long)w->size[i])};
        ranks *= w->size[i];
    }
    assert_int_equal(ranks, s->t->ranks);
    const Trace *t = trace_with(a, p, set, p->o.others->n_axes);
    assert_non_null(t);
    says(one_line(a, view_text(a, t, "memory")),
         arena_printf(a, "holds %s at the peak", bytes_text(w->total, a)));
    bool busiest;
    const RankSet *slowest = trace_slowest(t, &busiest);
    const RecordTime time = records_time(a, t, slowest ? rankset_first(slowest) : 0);
    if (!t->schedule) near("compute", w->compute, time.compute);
    if (!t->schedule) near("exposed", w->exposed, time.exposed);
    if (!t->schedule) near("span", w->span, time.span);
    const double sum = w->compute + w->exposed + w->waiting + w->idle;
    if (fabs(sum - w->span) > 1e-9 * w->span) fail_msg("%g is not %g", sum, w->span);
    arena_free(a);
}
static void ways_are_plans(void **state) {
    (void)state;
    Arena *a = arena_new();
    Drawn p;
    Sweep s;
    drawn(&p, a, "small.yaml", small);
    assert_true(read_it(&s, &p));
    assert_int_equal(s.ways, 4); /* 1·8, 2·4, 4·2, 8·1 */
    assert_int_equal(s.n_ways + s.illegal, s.ways);
    assert_true(s.n_ways >= 3);
    int own = 0;
    const SweepWay *best = NULL;
    for (int i = 0; i < s.n_ways; i++) {
        hold_way(&p, &s, &s.way[i]);
        own += s.way[i].own;
        assert_true(!i || s.way[i - 1].span <= s.way[i].span);
        if (!best && sweep_fits(&s, s.way[i].total)) best = &s.way[i];
    }
    assert_int_equal(own, 1);
    assert_non_null(best);
    says(sweep_title(&s), arena_printf(a, "; of %d ways to cut 8 ranks ", s.n_ways));
    if (!best->own) says(sweep_title(&s), sweep_way_name(&s, best));
    says(sweep_title(&s), time_text(best->span, a));
    arena_free(a);
}

/* ---- pages ---- */
static double preset_room(const char *preset) {
    PresetKind kind = PRESET_WIDE;
    furniture_preset(preset, &kind);
    return page_room(kind);
}
static int page_problems(Drawn *p, const char *preset, const char *theme) {
    Arena *a = arena_new();
    Scene *page[VIEW_MAX_PAGES];
    int found = 0;
    p->o.preset = preset, p->o.theme = theme;
    const int n = render_pages(p->l.trace, diags_new(a), &p->o, a, page);
    sweep_end(p->o.others);
    assert_int_equal(n, 1);
    for (int i = 0; i < n; i++) {
        const char *report;
        bool line = false; /* says what it is */
        for (int g = 0; g < page[i]->n_groups && !line; g++)
            line = !strcmp(page[i]->groups[g].what, "capacity") &&
                   !strcmp(page[i]->groups[g].tip, memory_capacity_words(a, p->l.trace));
        assert_int_equal(line, memory_capacity(p->l.trace) > 0);
        const int k = scene_lint(page[i], a, &report);
        if (k) print_error("%s, %s:\n%s", p->name, preset, report);
        found += k;
        if (page[i]->scale < 1 && strcmp(preset, "a4")) {
            print_error("%s, %s: shrunk to %g\n", p->name, preset, page[i]->scale);
            found++;
        }
        const double room = preset_room(preset); /* it is filled */
        if (room > 0 && (page[i]->h > room + 1 || page[i]->h < room - 4))
            fail_msg("%s, %s: %g of %g high", p->name, preset, page[i]->h, room);
        const char *d = page[i]->desc;
        assert_true(d && d[strlen(d) - 1] == '.');
    }
    arena_free(a);
    return found;
}
static void hold_text(Drawn *p) {
    size_t n;
    p->o.preset = p->o.theme = NULL;
    for (p->o.columns = 60; p->o.columns <= 80; p->o.columns += 20) {
        const char *text = render_text(p->l.trace, diags_new(p->a), &p->o, FORMAT_TEXT, p->a, &n);
        assert_non_null(text);
        for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
            const char *one = arena_strndup(p->a, line, strcspn(line, "\n"));
            if (words_columns(one) > p->o.columns) fail_msg("%s: %s", p->name, one);
        }
    }
    p->o.columns = 0;
    sweep_end(p->o.others);
}
/* What is drawn has a tooltip: each bar says its batch, each row its way. */
static void hold_tips(Drawn *p) {
    size_t n;
    p->o.preset = NULL;
    const char *svg = render_text(p->l.trace, diags_new(p->a), &p->o, FORMAT_SVG, p->a, &n);
    sweep_end(p->o.others);
    assert_non_null(svg);
    says(svg, ", the plan's own: ");
    says(svg, "parameters");
}
static void pages_are_clean(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    int found = 0, drawn_plans = 0;
    for (PlanFiles f = plan_files("plans/*.yaml", "plans"); plan_files_next(&f);) {
        Drawn p;
        drawn(&p, f.a, f.path, f.text);
        if (!p.l.trace || !p.o.others) continue;
        for (int k = 0; k < 4; k++) found += page_problems(&p, sizes[k], k % 2 ? "dark" : "print");
        hold_text(&p);
        hold_tips(&p);
        drawn_plans++;
    }
    assert_true(drawn_plans > 0);
    assert_int_equal(found, 0);
}

/* How high the boxes of a bar reach, of that group. */
static double bar_height(const Scene *s, const char *id) {
    double top = INFINITY, foot = -INFINITY;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_RECT || m->group < 0 || strcmp(s->groups[m->group].id, id)) continue;
        if (m->fill == ROLE_PAPER) continue; /* under words */
        top = fmin(top, m->y), foot = fmax(foot, m->y + m->h);
    }
    return foot - top;
}
/* The plan's own bar is seen, and what it is made of: where others are far larger it has a scale of
 * its own, and the page says so; else it has that of the others. */
static void own_bar_is_seen(void **state) {
    (void)state;
    static const struct {
        const char *plan;
        bool apart;
    } row[] = {{"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", true},
               {"plans/30-mixtral-8x7b-ep-dp-cp.yaml", true},
               {"plans/shape-only/llama3.1-405b-8192.yaml", false}};
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    for (int i = 0; i < 12; i++) {
        Arena *a = arena_new();
        Drawn p;
        Sweep s;
        Scene *page[VIEW_MAX_PAGES];
        size_t n;
        const char *path = row[i / 4].plan,
                   *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &n);
        const bool apart = row[i / 4].apart;
        drawn(&p, a, path, text);
        assert_true(read_it(&s, &p));
        int own = 0;
        while (!s.at[own].own) own++;
        p.o.preset = sizes[i % 4];
        assert_int_equal(render_pages(p.l.trace, diags_new(a), &p.o, a, page), 1);
        const char *last = arena_printf(a, "batch-%lld", (long long)s.at[s.n - 1].batch),
                   *id = arena_printf(a, "batch-%lld", (long long)s.at[own].batch);
        const double part = bar_height(page[0], id) / bar_height(page[0], last),
                     share = (double)s.at[own].total / (double)s.at[s.n - 1].total;
        if (apart ? part < 0.3 : fabs(part - share) > 0.03)
            fail_msg("%s, %s: %g of the highest, holds %g", path, sizes[i % 4], part, share);
        assert_int_equal(strstr(page[0]->desc, "The plan's bar has a scale of its own") != NULL,
                         apart);
        sweep_end(p.o.others);
        arena_free(a);
    }
}

/* ---- where there is nothing to try ---- */
static void a_trace_has_no_others(void **state) {
    (void)state;
    Arena *a = arena_new();
    Drawn p;
    size_t n;
    drawn(&p, a, "small.yaml", small);
    p.o.others = NULL;
    Diags *d = diags_new(a);
    assert_null(render_text(p.l.trace, d, &p.o, FORMAT_TEXT, a, &n));
    assert_int_equal(d->n, 1);
    assert_string_equal(d->item[0].code, "E0211");
    says(d->item[0].message, "of a plan that breaks no rule, not of a trace");
    const char *at = strstr(small, "recipe:"),
               *bad = arena_printf(a,
                                   "%.*splan: {layers.*.attention.wq: {style: colwise, output: "
                                   "shard(0)}, layers.*.attention.wo: {style: rowwise, input: "
                                   "replicate}}\npass: backward\nhardware: h100-sxm\n",
                                   (int)(at - small), small);
    drawn(&p, a, "bad.yaml", bad);
    assert_true(diags_errors(p.l.d) > 0);
    assert_null(p.o.others);
    arena_free(a);
}

/* Of widths that a plan shrinks no batch is the model's: the title begins with them. */
static void shrunk_widths_are_said(void **state) {
    (void)state;
    Arena *a = arena_new();
    Drawn p;
    Sweep s;
    const char *at = strstr(small, "preset: llama3-8b"), *end = at + strlen("preset: llama3-8b"),
               *text = arena_printf(a, "%.*s, shrink: 32%s", (int)(end - small), small, end);
    drawn(&p, a, "shrunk.yaml", text);
    assert_true(read_it(&s, &p));
    assert_true(!strncmp(sweep_title(&s), "With widths ÷32: ", strlen("With widths ÷32: ")));
    says(sweep_totals(&s, 0, 0), "At its own widths (--full) the model has other bytes and times.");
    drawn(&p, a, "small.yaml", small);
    assert_true(read_it(&s, &p));
    assert_null(strstr(sweep_title(&s), "÷"));
    assert_null(strstr(sweep_totals(&s, 0, 0), "t its own widths"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_plans),      cmocka_unit_test(smallest_is_legal),
        cmocka_unit_test(own_batch_is_there),     cmocka_unit_test(long_numbers_are_grouped),
        cmocka_unit_test(batch_by_default),       cmocka_unit_test(ways_are_plans),
        cmocka_unit_test(pages_are_clean),        cmocka_unit_test(own_bar_is_seen),
        cmocka_unit_test(shrunk_widths_are_said), cmocka_unit_test(a_trace_has_no_others)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
