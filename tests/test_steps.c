/* Figures for the classroom: those that build up step by step, and those with blanks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "render/furniture/quiz.h"
#include "render/furniture/views.h"
#include "render/render.h"
#include "render/scene/build.h"
#include "support/pictures.h"
#include "support/support.h"
#include "trace/collectives.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char both[] =
    "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, blocks, norm, head, "
    "loss]}\n"
    "data: {batch: 4, sequence: 16, dtype: f64}\nmesh: {dp: 2, cp: 2, tp: 2}\ngroups: {sp: tp}\n"
    "names: torchtitan\nrecipe: torchtitan-llama3\n"
    "data_parallel: {mode: fsdp, axis: dp*cp}\npass: backward\n";
static const char forward[] =
    "model: {preset: llama3-8b, layers: 1, shrink: 64}\n"
    "data: {batch: 2, sequence: 24, dtype: f64}\nmesh: {tp: 4}\ngroups: {sp: tp}\n"
    "names: torchtitan\nrecipe: torchtitan-llama3\npass: forward\n";

/* Four ranks send their tokens to each other's experts, in two groups. */
static const char experts[] =
    "model: {preset: mixtral-8x7b, layers: 1, shrink: 64}\n"
    "data: {batch: 2, sequence: 32, dtype: f32}\nmesh: {dp: 2, cp: 2, tp: 2}\n"
    "groups: {ep: dp*cp}\nnames: torchtitan\npass: forward\ndata_parallel: {mode: ddp}\n"
    "context_parallel: {mode: all_gather, order: zigzag}\n"
    "plan:\n  layers.*.moe.experts: {axis: ep, weight: {ep: shard(e)}}\n";

static Trace *planned(Arena *a, const char *plan) {
    PlanRun r = plan_run_with(
        a, "p.yaml", plan,
        &(PipelineOptions){.execute = true, .numbers = true, .events = true, .threads = 1});
    if (!r.t) diags_print(r.d, stderr, false);
    assert_non_null(r.t);
    return r.t;
}
static RenderOptions view(const char *name) {
    return (RenderOptions){.view = name, .rank = -1, .layer = -1};
}
static const char *drawn(Arena *a, const Trace *t, const RenderOptions *o, RenderFormat f,
                         size_t *n) {
    Diags *d = diags_new(a);
    char *s = render_text(t, d, o, f, a, n);
    if (!s) diags_print(d, stderr, false);
    assert_non_null(s);
    return s;
}
static int count(const char *text, size_t n, const char *what) {
    int k = 0;
    for (size_t i = 0; i + strlen(what) <= n; i++) k += !memcmp(text + i, what, strlen(what));
    return k;
}

static int pdf_pages(const char *pdf, size_t n) {
    return count(pdf, n, "/Type /Page") - count(pdf, n, "/Type /Pages");
}

/* ---- one step after the other ---- */

static bool same_mark(const Mark *a, const Mark *b) {
    Box x = scene_box(a), y = scene_box(b);
    return a->kind == b->kind && a->group == b->group && fabs(x.x0 - y.x0) < 1e-9 &&
           fabs(x.y0 - y.y0) < 1e-9 && fabs(x.x1 - y.x1) < 1e-9 && fabs(x.y1 - y.y1) < 1e-9;
}
/* Every page holds what the page before holds, at the same places, and more; the last holds all. */
static void check_steps(const Scene *s, const char *what) {
    const int *step;
    int n = build_steps(s, &step), before = 0;
    if (n < 2) fail_msg("%s: %d steps", what, n);
    Scene *old = build_until(s, 0);
    assert_true(old->n_marks > 0); /* the title is there from the start */
    for (int k = 0; k < n; k++) {
        Scene *now = build_until(s, step[k]);
        assert_true(step[k] > before && now->n_marks > old->n_marks);
        assert_true(now->page_w == s->page_w && now->page_h == s->page_h);
        int at = 0;
        for (int i = 0; i < old->n_marks; i++, at++) {
            while (at < now->n_marks && !same_mark(&old->marks[i], &now->marks[at])) at++;
            assert_true(at < now->n_marks);
        }
        old = now;
        before = step[k];
    }
    assert_int_equal(old->n_marks, s->n_marks);
}
/* A box appears with the step of the trace that it stands for; 0: it stands for none. */
static int step_of(const Scene *s, int g) {
    return g >= 0 && !strncmp(s->groups[g].id, "step-", 5) ? atoi(s->groups[g].id + 5) + 1 : 0;
}
static int boxes_of(const Scene *s, const char *what) {
    int boxes = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        int step = m->kind == MARK_RECT || m->kind == MARK_POLY ? step_of(s, m->group) : 0;
        if (!step) continue;
        boxes++;
        if (m->step < 1 || m->step > step)
            fail_msg("%s: %s appears at %d", what, s->groups[m->group].id, m->step);
    }
    return boxes;
}
static void figures_build_up(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    static const char *const views[] = {"block", "overview", "storyboard"};
    Arena *a = arena_new();
    const Trace *t[] = {planned(a, forward), planned(a, both)};
    for (int i = 0; i < 2; i++)
        for (int v = 0; v < 3; v++)
            for (int p = 0; p < 4; p++) {
                Scene *page[VIEW_MAX_PAGES];
                RenderOptions o = view(views[v]);
                o.preset = sizes[p];
                o.build = true;
                const char *what = arena_printf(a, "%d %s %s", i, views[v], sizes[p]);
                assert_true(render_pages(t[i], diags_new(a), &o, a, page) > 0);
                check_steps(page[0], what);
                if (v == 0) assert_true(boxes_of(page[0], what) > 3);
            }
    arena_free(a);
}
/* On each page of a routing rank after rank sends its rows; what all of them come to is last. */
static void rank_after_rank(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    enum { RANKS = 4, FRAMES = 7 };
    Arena *a = arena_new();
    const Trace *t = planned(a, experts);
    for (int p = 0; p < 4; p++) {
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = view("routing");
        o.preset = sizes[p];
        o.build = true;
        const int n = render_pages(t, diags_new(a), &o, a, page);
        assert_int_equal(n, 1 + FRAMES);
        for (int i = 0; i < n; i++) {
            const int *step;
            check_steps(page[i], sizes[p]);
            assert_int_equal(build_steps(page[i], &step), i ? RANKS : RANKS + 1);
            for (int k = 0; k < page[i]->n_marks; k++) {
                const Mark *m = &page[i]->marks[k];
                const char *id = m->group < 0 ? "" : page[i]->groups[m->group].id;
                if (!strncmp(id, "ribbon-", 7)) assert_int_equal(m->step, atoi(id + 7) + 1);
            }
        }
    }
    arena_free(a);
}
/* In the mirror, the backward half begins when the forward half is there. */
static void backward_follows_forward(void **state) {
    (void)state;
    Arena *a = arena_new();
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = view("block");
    const Trace *t = planned(a, both);
    assert_true(render_pages(t, diags_new(a), &o, a, page) > 0);
    int first_back = t->n_computes, early = 0, late = 0;
    for (int i = t->n_computes - 1; i >= 0; i--)
        if (subject_is_gradient(t->computes[i].makes)) first_back = t->computes[i].step;
    double forward_x = 0, backward_x = 0; /* the middles of the columns */
    for (int i = 0; i < page[0]->n_marks; i++) {
        const Mark *m = &page[0]->marks[i];
        if (m->kind == MARK_TEXT && !strcmp(m->run[0].s, "forward, downwards")) forward_x = m->x;
        if (m->kind == MARK_TEXT && !strcmp(m->run[0].s, "backward, upwards")) backward_x = m->x;
    }
    assert_true(backward_x > forward_x);
    Scene *half = build_until(page[0], first_back);
    for (int i = 0; i < half->n_marks; i++)
        if (half->marks[i].group >= 0 && half->marks[i].kind == MARK_RECT &&
            step_of(half, half->marks[i].group)) {
            Box b = scene_box(&half->marks[i]);
            early += fabs(b.x0 + b.x1 - 2 * forward_x) < 1;
            late += fabs(b.x0 + b.x1 - 2 * backward_x) < 1;
        }
    assert_true(early > 8);
    assert_int_equal(late, 0);
    arena_free(a);
}
static void a_pdf_has_a_page_per_step(void **state) {
    (void)state;
    Arena *a = arena_new();
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = view("block");
    o.preset = "slide";
    const Trace *t = planned(a, forward);
    int pages = render_pages(t, diags_new(a), &o, a, page), all = 0;
    const int *step;
    for (int i = 0; i < pages; i++) all += build_steps(page[i], &step) + 1;
    size_t n;
    const char *plain = drawn(a, t, &o, FORMAT_PDF, &n);
    assert_int_equal(pdf_pages(plain, n), pages);
    o.build = true;
    const char *built = drawn(a, t, &o, FORMAT_PDF, &n);
    assert_int_equal(pdf_pages(built, n), all);
    o.page = 2;
    built = drawn(a, t, &o, FORMAT_PDF, &n);
    assert_int_equal(pdf_pages(built, n), build_steps(page[1], &step) + 1);
    arena_free(a);
}

/* Seconds until the last step is there. */
static double length_of(const char *svg) {
    double longest = 0;
    for (const char *p = strstr(svg, " dur=\""); p; p = strstr(p + 1, " dur=\""))
        longest = fmax(longest, atof(p + 6));
    return longest;
}
/* Few steps play at once and are over in five seconds, many wait for a click; all marks are in the
 * file whether they play or not, and paper shows them. */
static void an_svg_plays(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = planned(a, forward);
    RenderOptions o = view("block");
    size_t n;
    const char *still = drawn(a, t, &o, FORMAT_SVG, &n);
    assert_null(strstr(still, "<set "));
    o.build = true;
    const char *many = drawn(a, t, &o, FORMAT_SVG, &n);
    assert_string_equal(svg_words(a, many), svg_words(a, still));
    assert_non_null(strstr(many, "<set attributeName=\"visibility\" to=\"hidden\" begin=\"block_"));
    assert_null(strstr(many, "begin=\"0s"));
    assert_non_null(strstr(many, ". A click plays it</title>"));
    assert_null(strstr(still, "A click plays it"));
    assert_non_null(strstr(many, "{cursor:pointer}"));
    assert_non_null(strstr(many, "@media print{"));
    assert_non_null(strstr(many, "visibility:visible!important"));
    o.part = "mlp";
    const char *few = drawn(a, t, &o, FORMAT_SVG, &n);
    assert_int_equal(count(few, n, "<set "), count(few, n, " begin=\"0s;block_"));
    assert_true(length_of(few) > 2 && length_of(few) < 5);
    arena_free(a);
}
static void what_has_no_steps_says_so(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = planned(a, forward);
    size_t n;
    RenderOptions o = view("timeline");
    o.build = true;
    Diags *d = diags_new(a);
    assert_null(render_text(t, d, &o, FORMAT_SVG, a, &n));
    assert_string_equal(d->item[0].code, "E0212");
    says(d->item[0].hint, "block, overview, storyboard, routing");
    o = view("block");
    o.build = true;
    d = diags_new(a);
    assert_null(render_text(t, d, &o, FORMAT_PNG, a, &n));
    says(d->item[0].hint, "FILE.pdf");
    arena_free(a);
}

/* ---- blanks ---- */

/* Does a text still say something of the kind? */
static bool tells(const char *kind, const char *words) {
    if (!strcmp(kind, "shapes")) return strstr(words, "[") != NULL;
    for (const char *p = words; !strcmp(kind, "bytes") && (p = strstr(p, "iB")); p++)
        if (p - words < 4 || strncmp(p - 4, "\n0 ", 3) != 0) return true; /* an axis has its unit */
    if (!strcmp(kind, "bytes")) return false;
    for (const CollWord *w = coll_table(); w->op; w++) /* "AG AllGather" explains a short form */
        for (const char *p = words; (p = strstr(p, w->name)); p++)
            if (p - words < 3 || strncmp(p - 3, w->code, 2) || p[-1] != ' ') return true;
    return false;
}
static const char *words_on(Arena *a, const Scene *s) {
    Str t = str_new(a);
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; k < s->marks[i].n_run; k++)
            str_addf(&t, "%s%s", s->marks[i].run[k].s, k + 1 == s->marks[i].n_run ? "\n" : "");
    return t.s;
}
/* How many blanks are numbered: rectangles with a number of their own size of letters. */
static int numbered(const Scene *s) {
    int n = 0;
    for (int i = 0; i + 1 < s->n_marks; i++) {
        const Mark *box = &s->marks[i], *m = &s->marks[i + 1];
        n += box->kind == MARK_RECT && box->fill == ROLE_PAPER && box->stroke == ROLE_SECOND &&
             m->kind == MARK_TEXT && m->run[0].s[strspn(m->run[0].s, "0123456789")] == 0;
    }
    return n;
}
/* Answers on the key, in the order of their numbers, which go on without a gap. */
static int answers(const Scene *key, int next) {
    int expected = next;
    for (int i = 0; i + 1 < key->n_marks; i++) {
        const Mark *m = &key->marks[i];
        if (m->kind != MARK_TEXT || m->group < 0 || strcmp(key->groups[m->group].what, "key"))
            continue;
        assert_int_equal(atoi(m->run[0].s), expected++);
        i++;
    }
    return expected;
}
static void check_quiz(Arena *a, const Trace *t, RenderOptions o, const char *kind) {
    Scene *page[VIEW_MAX_PAGES], *plain[VIEW_MAX_PAGES];
    Diags *d = diags_new(a);
    int before = render_pages(t, d, &o, a, plain), asked = 0, next = 1;
    o.quiz = kind;
    int n = render_pages(t, d, &o, a, page);
    const char *what = arena_printf(a, "%s %s %s", o.view, o.preset, kind);
    if (!n) {
        if (!strcmp(o.view, "block")) fail_msg("%s: nothing is asked", what);
        assert_string_equal(d->item[0].code, "E0212");
        return;
    }
    if (n <= before) fail_msg("%s: no key", what);
    for (int i = 0; i < n; i++) {
        const char *report;
        if (i < before && tells(kind, words_on(a, page[i])))
            fail_msg("%s: page %d still says\n%s", what, i + 1, words_on(a, page[i]));
        for (int k = 0; i < before && k < page[i]->n_groups; k++)
            assert_null(page[i]->groups[k].tip);
        if (i < before) asked += numbered(page[i]);
        else next = answers(page[i], next);
        if (i >= before && scene_lint(page[i], a, &report)) fail_msg("%s: key: %s", what, report);
    }
    assert_int_equal(asked, next - 1);
    assert_true(asked > 0);
}
static void blanks_have_a_key(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    Arena *a = arena_new();
    const Trace *t[] = {planned(a, forward), planned(a, both)};
    int n_views;
    const RenderView *v = render_views(&n_views);
    for (int i = 0; i < 2; i++)
        for (int k = 0; quiz_names()[k]; k++)
            for (int w = 0; w < n_views; w++)
                for (int p = 0; p < 4; p++) {
                    RenderOptions o = view(v[w].name);
                    o.preset = sizes[p];
                    Scene *page[VIEW_MAX_PAGES];
                    if (render_pages(t[i], diags_new(a), &o, a, page) > 0)
                        check_quiz(a, t[i], o, quiz_names()[k]);
                }
    arena_free(a);
}
/* The key says what stood there. */
static void the_key_is_true(void **state) {
    (void)state;
    Arena *a = arena_new();
    RenderOptions o = view("block");
    o.part = "mlp";
    o.quiz = "collectives";
    Scene *page[VIEW_MAX_PAGES];
    const Trace *t = planned(a, forward);
    assert_int_equal(render_pages(t, diags_new(a), &o, a, page), 2);
    const char *key = words_on(a, page[1]);
    says(key, "1\nAllGather\n2\nReduceScatter\n");
    says(words_on(a, page[0]), "sends ");
    /* columns one after the other: attention, then MLP */
    o.part = NULL;
    int pages = render_pages(t, diags_new(a), &o, a, page);
    says(words_on(a, page[pages - 1]),
         "1\nAllGather\n2\nReduceScatter\n3\nAllGather\n4\nReduceScatter\n");
    o.part = "mlp";
    render_pages(t, diags_new(a), &o, a, page);
    double wide = 0; /* of a blank in a hexagon: it does not tell which collective it is */
    for (int i = 0; i + 1 < page[0]->n_marks; i++) {
        const Mark *box = &page[0]->marks[i], *m = box + 1;
        if (box->kind != MARK_RECT || box->stroke != ROLE_SECOND || m->kind != MARK_TEXT ||
            m->size != 13 || !strchr("12", m->run[0].s[0]))
            continue;
        assert_true(wide == 0 || fabs(box->w - wide) < 0.01);
        wide = box->w;
    }
    assert_true(wide > 0);
    o = view("timeline");
    o.quiz = "collectives";
    assert_int_equal(render_pages(t, diags_new(a), &o, a, page), 2);
    says(words_on(a, page[1]), "AG AllGather");
    says(words_on(a, page[0]), "AG AllGather, RS ReduceScatter"); /* as words, not as answers */
    o = view("memory");
    o.quiz = "bytes";
    assert_int_equal(render_pages(t, diags_new(a), &o, a, page), 2);
    says(words_on(a, page[0]), "\n0 KiB\n"); /* the unit of an axis is none either */
    o = view("block");
    o.part = "mlp";
    o.quiz = "shapes";
    assert_int_equal(render_pages(t, diags_new(a), &o, a, page), 2);
    says(words_on(a, page[1]), "1\n[B, S/sp, D]\n2\n[2, 6, 64]\n");
    size_t n;
    o.page = 2;
    says(drawn(a, t, &o, FORMAT_SVG, &n), "Key: shapes of");
    Diags *d = diags_new(a);
    o.quiz = "colors";
    assert_null(render_text(t, d, &o, FORMAT_SVG, a, &n));
    says(d->item[0].message, "unknown quiz 'colors'");
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures_build_up),
                                       cmocka_unit_test(rank_after_rank),
                                       cmocka_unit_test(backward_follows_forward),
                                       cmocka_unit_test(a_pdf_has_a_page_per_step),
                                       cmocka_unit_test(an_svg_plays),
                                       cmocka_unit_test(what_has_no_steps_says_so),
                                       cmocka_unit_test(blanks_have_a_key),
                                       cmocka_unit_test(the_key_is_true)};
    int rc = cmocka_run_group_tests_name("steps", tests, NULL, NULL);
    render_cleanup();
    return rc;
}
