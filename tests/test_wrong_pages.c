/* Every page of every view of a plan that is wrong: one that shows the mistake at its place has it
 * as its title, in red, and names the tensor; the others say where it is. Pages of right plans have
 * neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/errors/errors.h"
#include "render/furniture/wrong.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "support/pictures.h"
#include "support/support.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sizes[] = {"wide", "slide", "column", "a4"};

static const Trace *trace_of(Arena *a, Diags *d, const char *file, bool execute) {
    size_t n;
    const char *text = file_read(a, d, file, 1 << 20, (Loc){0}, &n);
    assert_non_null(text);
    return plan_run_with(
               a, file, text,
               &(PipelineOptions){
                   .execute = execute, .distances = execute, .threads = 1, .events = true})
        .t;
}

/* Has the page a flag, which is not the sentences under its title? */
static bool is_flag(const Group *g) {
    return !strcmp(g->what, "wrong") && g->id && strcmp(g->id, "wrong-notes") != 0;
}
static bool flagged(const Scene *s) {
    for (int i = 0; i < s->n_groups; i++)
        if (is_flag(&s->groups[i])) return true;
    return false;
}
static bool has_text(const Scene *s, const char *what, Role ink) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        for (int k = 0; m->kind == MARK_TEXT && k < m->n_run; k++)
            if (m->run[k].role == ink && strstr(m->run[k].s, what)) return true;
    }
    return false;
}
/* Is the first line of the title red? */
static bool red_title(const Scene *s) {
    for (int i = 0; i < s->n_marks; i++)
        if (s->marks[i].kind == MARK_TEXT && !strcmp(s->groups[s->marks[i].group].what, "title"))
            return s->marks[i].run->role == ROLE_FAIL;
    return false;
}
/* The last word of a name: "w2" of "grad.param.layers.0.feed_forward.w2.weight". */
static const char *leaf(Arena *a, const char *name) {
    static const char weight[] = ".weight";
    const char *end = strstr(name, weight), after = end ? end[sizeof weight - 1] : 'x';
    if (after == 0 || after == '.') name = arena_strndup(a, name, (size_t)(end - name));
    const char *dot = strrchr(name, '.');
    if (dot && dot[1] >= '0' && dot[1] <= '9') /* attn_part.1 */
        for (dot--; dot > name && *dot != '.';) dot--;
    return dot && *dot == '.' ? dot + 1 : name;
}
/* Does the text name that value, as figures do ("after ffn_norm") or as records do? */
static bool names_value(Arena *a, const Trace *t, const char *text, const char *name) {
    static const char after[] = "after ", gradient[] = "gradient after ";
    const char *own = words_value(a, t, name);
    if (!strncmp(own, after, sizeof after - 1)) own += sizeof after - 1;
    if (!strncmp(own, gradient, sizeof gradient - 1) &&
        strstr(text, arena_printf(a, "dy %s", own + sizeof gradient - 1)))
        return true;
    return strstr(text, leaf(a, name)) || strstr(text, own);
}
/* Does the text name a tensor that the records call wrong? */
static bool names_one(Arena *a, const Trace *t, const char *text) {
    for (int i = 0; i < t->n_collectives; i++)
        if ((t->collectives[i].wrong || t->collectives[i].planted) &&
            names_value(a, t, text, t->collectives[i].value))
            return true;
    for (int i = 0; i < t->n_moves; i++)
        if ((t->moves[i].wrong || t->moves[i].planted) &&
            (names_value(a, t, text, t->moves[i].value) || strstr(text, "attention_norm")))
            return true;
    for (int i = 0; i < t->n_computes; i++)
        if ((t->computes[i].wrong || t->computes[i].planted) &&
            names_value(a, t, text, t->computes[i].output))
            return true;
    for (int i = 0; i < t->n_params; i++)
        if (t->params[i].planted && strstr(text, leaf(a, t->params[i].compute.name))) return true;
    for (int i = 0; i < t->n_values; i++)
        if (t->values[i].planted && strstr(text, leaf(a, t->values[i].shape.name))) return true;
    return false;
}

/* Asks the pages of a figure of a wrong plan; returns how many of them do not say it. */
static int ask_pages(Arena *a, const Trace *t, const RenderOptions *o, const char *file) {
    Scene *page[VIEW_MAX_PAGES];
    Diags *d = diags_new(a);
    int n = render_pages(t, d, o, a, page), bad = 0;
    for (int i = 0; i < n; i++) {
        const Scene *s = page[i];
        const char *report;
        bool at_its_place = flagged(s);
        bool told = at_its_place ? red_title(s) && names_one(a, t, s->title)
                                 : has_text(s, "the mistake", ROLE_FAIL) ||
                                       has_text(s, "mistakes", ROLE_FAIL);
        if (scene_lint(s, a, &report)) {
            print_message("%s %s %s page %d: %s", file, o->view, o->preset, i + 1, report);
            bad++;
        }
        if (getenv("SHOW"))
            print_message("%s|%s|%s|%d|%s|%s\n", file, o->view, o->preset, i + 1,
                          at_its_place ? "flag" : "-", s->title);
        if (told) continue;
        print_message("%s %s %s page %d%s: '%s' does not say it\n", file, o->view, o->preset, i + 1,
                      at_its_place ? " (flagged)" : "", s->title);
        bad++;
    }
    return bad;
}

static const char *const views[] = {"block",  "overview", "timeline", "shards", "storyboard",
                                    "memory", "mesh",     "pipeline", "errors"};
enum { N_VIEWS = sizeof views / sizeof *views, N_SIZES = sizeof sizes / sizeof *sizes };

static bool any_wrong(Arena *a, const Trace *t) { return wrong_find(a, t, NULL, NULL)->n > 0; }

/* What is wrong with a plan is known of its records alone, before any number is seen: of all those
 * that are lowered. */
static void each_bug_is_marked(void **state) {
    glob_t g;
    int bad = 0, asked = 0;
    (void)state;
    assert_int_equal(glob("plans/bugs/*.yaml", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        Arena *a = arena_new();
        const Trace *t = trace_of(a, diags_new(a), g.gl_pathv[i], false);
        asked += t != NULL;
        if (t && !any_wrong(a, t)) print_message("no record marks %s\n", g.gl_pathv[i]), bad++;
        arena_free(a);
    }
    globfree(&g);
    assert_true(asked > 60);
    assert_int_equal(bad, 0);
}

static void wrong_plans_look_it(void **state) {
    glob_t g;
    int bad = 0, asked = 0;
    (void)state;
    assert_int_equal(glob("plans/bugs/*.yaml", 0, NULL, &g), 0);
    assert_int_equal(glob("examples/ci/broken.yaml", GLOB_APPEND, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        Arena *a = arena_new();
        const Trace *t[2];
        for (int k = 0; k < 2; k++) t[k] = trace_of(a, diags_new(a), g.gl_pathv[i], k);
        for (int v = 0; t[0] && any_wrong(a, t[0]) && v < N_VIEWS; v++)
            for (int k = 0; k < N_SIZES; k++) {
                bool run = !strcmp(views[v], "errors");
                RenderOptions o = {.view = views[v], .preset = sizes[k], .rank = -1, .layer = -1};
                bad += ask_pages(a, t[run], &o, g.gl_pathv[i]);
                asked++;
            }
        arena_free(a);
    }
    globfree(&g);
    assert_true(asked > 1000);
    assert_int_equal(bad, 0);
}

/* The words of the errors view of a plan that is run. */
static const char *errors_of(Arena *a, const char *file) {
    Diags *d = diags_new(a);
    size_t n;
    RenderOptions o = {.view = "errors", .rank = -1, .layer = -1};
    const Trace *t = trace_of(a, d, file, true);
    const char *svg = render_text(t, d, &o, FORMAT_SVG, a, &n);
    assert_non_null(svg);
    return svg_words(a, svg);
}
/* Names of rows and the panel's first wrong value stand in full where they can: a row of several
 * values is called by its first, and what is planted is told in the panel. */
static void errors_cut_no_name(void **state) {
    (void)state;
    static const struct {
        const char *file, *says;
    } row[] = {{"plans/bugs/72-an-update-not-broadcast.yaml", "\nnorm.weight.next"},
               {"plans/bugs/19-fsdp-gathers-too-little.yaml", "\nfeed_forward.w1.weight"},
               {"plans/bugs/10-gradient-summed-where-not-due.yaml", "\nlayers.0.attention_norm."},
               {"plans/bugs/35-shards-in-the-other-order.yaml", "\nfeed_forward.w1.weight"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        const char *w = errors_of(a, row[i].file);
        for (const char *at = w; (at = strstr(at, "…")); at++)
            if (at[3] != '\n' && at[3] != ' ') fail_msg("%s: %.40s", row[i].file, at);
        says(w, row[i].says);
        arena_free(a);
    }
}
/* Micro-batches that a schedule has under way side by side stand one after the other, and what
 * follows in each from something wrong is not called right. */
static void errors_stand_by_micro_batch(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *w = errors_of(a, "plans/bugs/70-a-send-left-out.yaml");
    const char *at = w;
    char *line = arena_strdup(a, w);
    for (char *p = line; *p; p++)
        if (*p == '\n') *p = ' ';
    says(line, "The first wrong value is layers.0.output, in 4 of 4 micro-batches, and 101");
    says(line,
         "End to end has the values of the last micro-batch."); /* the others' cells are empty */
    for (int i = 0; i < 4; i++) { /* counted as in schedules, causes and records */
        const char *next = strstr(at, arena_printf(a, "micro-batch %d\n", i));
        if (!next) fail_msg("micro-batch %d does not stand in its turn in %s", i, w);
        at = next + 1;
    }
    const Trace *t = trace_of(a, diags_new(a), "plans/bugs/70-a-send-left-out.yaml", true);
    ErrMap m;
    int after = 0;
    assert_true(errors_map(a, t, &m));
    for (int i = 0; i < m.n; i++) {
        const ErrRow *r = &m.row[i];
        bool wrong_before = false;
        for (int k = 0; k < i; k++)
            wrong_before |= m.row[k].round == r->round && m.row[k].worst_state >= ERR_FIRST;
        if (!wrong_before || strncmp(r->name, "loss", 4)) continue;
        after += r->worst_state == ERR_AFTER;
        if (r->worst_state < ERR_AFTER && !r->sources && strcmp(r->name, "loss_weights") != 0)
            fail_msg("%s of micro-batch %d is called right", r->name, (int)r->round);
    }
    assert_true(after >= 4);
    enum { MOST = 1 << 24 }; /* that a file may say */
    TraceCheck *k = &t->checks[t->n_checks - 1];
    k->iteration = k->microbatch = MOST;
    assert_true(errors_map(a, t, &m));
    assert_true(m.row[m.n - 1].round == (int64_t)MOST * (MOST + 1) + MOST);
    arena_free(a);
}
/* Where sizes differ there is no number, and none is given; all failures say what to do. */
static void sizes_are_no_numbers(void **state) {
    static const char *const plan[] = {
        "plans/bugs/31-twice-f-divides-f-does-not.yaml",
        "plans/bugs/54-the-same-tokens-dispatched-by-every-rank.yaml",
        "plans/bugs/55-router-on-a-part-dispatch-of-all.yaml"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        const char *w = errors_of(a, plan[i]);
        says_not(w, "inf\n");
        says(w, "\nsize\n");
        says(w, "No number can be compared: the sizes differ.");
        says(w, "What to do");
        arena_free(a);
    }
    Arena *a = arena_new(); /* both sizes face each other */
    const char *w = errors_of(a, "plans/bugs/81-last-experts-on-no-rank.yaml");
    says(w, "\nrank 2 has\n");
    says(w, "\n[99]\n");
    says(w, "\nit should have\n");
    says(w, "\n[114]\n");
    arena_free(a);
}
/* A value that is made from a wrong one and is within its bound end to end says what that allows;
 * where no distances are kept the column says so. */
static void pale_distances_say_why(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *w = errors_of(a, "plans/bugs/24-mean-of-means.yaml");
    says(w, "loss_mean is off by 0.0046, allowed are 0.087.");
    says_not(w, "not kept");
    says(errors_of(a, "plans/bugs/70-a-send-left-out.yaml"), "not kept");
    arena_free(a);
}

static const Trace *planted(Arena *a, int layers, const char *faults) {
    const char *plan =
        arena_printf(a,
                     "name: planted\nmodel: {preset: llama3-8b, layers: %d, shrink: 32}\n"
                     "data: {batch: 1, sequence: 16, dtype: f32, seed: 0}\nmesh: {tp: 2}\n"
                     "names: torchtitan\nplan:\n  layers.*.attention.w[qkv]: colwise\n"
                     "  layers.*.attention.wo: rowwise\n  layers.*.feed_forward.w[13]: colwise\n"
                     "  layers.*.feed_forward.w2: rowwise\nfaults:\n%s",
                     layers, faults);
    PipelineOptions o = {.threads = 1, .events = true};
    const Trace *t = plan_run_with(a, "planted.yaml", plan, &o).t;
    assert_non_null(t);
    return t;
}
/* Of several mistakes each page tells where they are, not where one is; all are counted, and all
 * have their flags. */
static void several_are_all_told(void **state) {
    (void)state;
    Arena *a = arena_new();
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = "timeline", .preset = "slide", .rank = -1, .layer = -1};
    const Trace *two = planted(a, 4,
                               "  - {at: layers.0.mlp.down, do: drop}\n"
                               "  - {at: layers.3.o_proj, do: double}\npass: backward\n");
    int n = render_pages(two, diags_new(a), &o, a, page), told = 0;
    for (int i = 0; i < n; i++)
        told += has_text(page[i], "mistakes are on pages 1 and 2", ROLE_FAIL);
    assert_true(n > 2);
    assert_int_equal(told, n - 2);
    o.view = "memory";
    assert_true(render_pages(two, diags_new(a), &o, a, page) > 0);
    assert_true(has_text(page[0], "2 mistakes, first step ", ROLE_FAIL));
    Str each = str_new(a);
    for (int i = 0; i < 32; i++)
        str_addf(&each, "  - {at: layers.%d.%s, scale: 1.%02d}\n", i / 2,
                 i % 2 ? "mlp.down" : "o_proj", i + 1);
    const Trace *many = planted(a, 16, each.s);
    for (int v = 0; v < N_VIEWS; v++) { /* and near the top of a text, before what the view shows */
        size_t size;
        int line = 0;
        o.view = views[v];
        const char *text = render_text(two, diags_new(a), &o, FORMAT_TEXT, a, &size),
                   *sign = text ? strstr(text, "✗ ") : NULL;
        for (const char *at = text; sign && at < sign; at++) line += *at == '\n';
        if (text && (!sign || line > 6)) fail_msg("%s does not begin with it: %s", o.view, text);
    }
    const WrongList *l = wrong_find(a, many, NULL, NULL);
    assert_int_equal(l->n, 32);
    assert_non_null(strstr(wrong_title(l), "and 31 more mistakes"));
    for (int i = 0; i < many->n_collectives; i++)
        assert_true(!many->collectives[i].planted || wrong_number(l, many->collectives[i].step));
    Str s = str_new(a);
    const char *report = "";
    wrong_text(&s, l, 80);
    assert_non_null(strstr(s.s, "and 8 more\n"));
    o.view = "overview"; /* all sentences, and numbers of two digits */
    o.preset = "wide";
    assert_int_equal(render_pages(many, diags_new(a), &o, a, page), 1);
    if (scene_lint(page[0], a, &report)) fail_msg("%s", report);
    arena_free(a);
}

/* Layers that carry different mistakes are not folded into one; those that carry the same are. */
static void layers_with_their_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *faults, *folded;
        int flags;
    } row[] = {
        {"  - {at: layers.0.o_proj, scale: 2}\n  - {at: layers.1.o_proj, scale: 4}\n", NULL, 2},
        {"  - {at: layers.0.o_proj, scale: 2}\n  - {at: layers.1.o_proj, scale: 2}\n", "× 2", 1},
        {"  - {at: layers.0.o_proj, scale: 2}\n  - {at: layers.1.o_proj, scale: 2}\n"
         "  - {at: all_reduce of layers.1.o_proj, do: double}\n",
         NULL, 2}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        Arena *a = arena_new();
        const Trace *t = planted(a, 2, row[k].faults);
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = {.view = "overview", .rank = -1, .layer = -1};
        int flags = 0;
        assert_int_equal(render_pages(t, diags_new(a), &o, a, page), 1);
        for (int i = 0; i < page[0]->n_groups; i++) flags += is_flag(&page[0]->groups[i]);
        if (flags != row[k].flags) fail_msg("row %zu has %d flags", k, flags);
        assert_int_equal(has_text(page[0], "× 2", ROLE_INK), row[k].folded != NULL);
        arena_free(a);
    }
}

static void right_plans_do_not(void **state) {
    static const char *const plan[] = {"plans/06-llama3-8b-dp2-tp2-sp.yaml",
                                       "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                                       "plans/30-mixtral-8x7b-ep-dp-cp.yaml",
                                       "plans/45-llama3-8b-pp4-1f1b.yaml", "examples/ci/plan.yaml"};
    (void)state;
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
        Arena *a = arena_new();
        const Trace *t = trace_of(a, diags_new(a), plan[i], true);
        assert_non_null(t);
        for (int v = 0; v < N_VIEWS; v++) {
            Scene *page[VIEW_MAX_PAGES];
            RenderOptions o = {.view = views[v], .rank = -1, .layer = -1};
            int n = render_pages(t, diags_new(a), &o, a, page);
            for (int p = 0; p < n; p++)
                if (red_title(page[p]) || flagged(page[p]) ||
                    has_text(page[p], "mistake", ROLE_FAIL))
                    fail_msg("%s %s: '%s' speaks of a mistake", plan[i], views[v], page[p]->title);
        }
        arena_free(a);
    }
}

/* The legend explains the red of a box as it does that of a hexagon, and what is done twice is
 * called that wherever it has a box. */
static void the_red_is_told(void **state) {
    (void)state;
    static const struct {
        const char *file, *view, *says;
    } row[] = {
        {"plans/bugs/01-output-left-partial.yaml", "overview", "wrong step or first wrong value"},
        {"plans/bugs/25-packed-cut-as-one.yaml", "overview", "wrong step or first wrong value"},
        {"plans/bugs/06-reduced-twice.yaml", "overview", "AllReduce, twice"},
        {"plans/bugs/06-reduced-twice.yaml", "block", "AllReduce, twice"},
        {"plans/bugs/06-reduced-twice.yaml", "shards", "over tp, twice"},
        {"plans/bugs/25-packed-cut-as-one.yaml", "shards", "224 KiB\nis taken for\n[2·F/tp, D]"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        Diags *d = diags_new(a);
        size_t n;
        RenderOptions o = {.view = row[i].view, .rank = -1, .layer = -1};
        const Trace *t = trace_of(a, d, row[i].file, false);
        says(svg_words(a, render_text(t, d, &o, FORMAT_SVG, a, &n)), row[i].says);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bug_is_marked),   cmocka_unit_test(wrong_plans_look_it),
        cmocka_unit_test(errors_cut_no_name),   cmocka_unit_test(errors_stand_by_micro_batch),
        cmocka_unit_test(sizes_are_no_numbers), cmocka_unit_test(pale_distances_say_why),
        cmocka_unit_test(several_are_all_told), cmocka_unit_test(layers_with_their_mistakes),
        cmocka_unit_test(the_red_is_told),      cmocka_unit_test(right_plans_do_not)};
    int failed = cmocka_run_group_tests_name("wrong pages", tests, NULL, NULL);
    render_cleanup();
    return failed;
}
