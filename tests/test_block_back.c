/* Tests of the backward pass as a picture of its own (`--view block --pass backward`) and of the
 * slides of single passes: what bars, boxes and numbers say is what the records say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/furniture/furniture.h"
#include "render/furniture/views.h"
#include "render/graph/block_read.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "support/ground.h"
#include "support/plan_lines.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Trace *plan_trace(Ground *g, const char *file) {
    return ground_trace(g, file, "", false);
}

static RenderOptions options(const char *pass, const char *preset) {
    return (RenderOptions){
        .view = "block", .rank = -1, .layer = -1, .pass = pass, .preset = preset};
}

static const char *text_of(Arena *a, const Mark *m) {
    Str s = str_new(a);
    str_add(&s, "");
    for (int i = 0; m->kind == MARK_TEXT && i < m->n_run; i++) str_add(&s, m->run[i].s);
    return s.s;
}
static bool in_group(const Scene *s, const Mark *m, const char *what) {
    for (int g = m->group; g >= 0; g = s->groups[g].parent)
        if (!strcmp(s->groups[g].what, what)) return true;
    return false;
}

/* ---- bars of bytes ---- */

/* Is a part of a bar hatched? */
static bool hatched(const Scene *s, const Mark *part) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *h = &s->marks[i];
        if (h->kind == MARK_HATCH && fabs(h->y - part->y) < 0.1 && h->x >= part->x - 0.1 &&
            h->x + h->w <= part->x + part->w + 0.1 && h->w > 0)
            return true;
    }
    return false;
}
/* Of the words at the height of a bar, in the first column or right of it: is a sum pending? Of
 * those from its bottom up, at any height, if `above`. */
static bool pends(Arena *a, const Scene *s, double y, double first, bool right, bool above) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_TEXT || !in_group(s, m, "edge") || !strstr(text_of(a, m), " pending"))
            continue;
        /* its column is that of the shape before it */
        const Mark *shape = m;
        for (int k = 0; k < s->n_marks; k++)
            if (s->marks[k].kind == MARK_TEXT && s->marks[k].group == m->group &&
                s->marks[k].x < shape->x)
                shape = &s->marks[k];
        const bool here = above ? m->y < y + 14 : fabs(m->y - y - 10) < 6;
        if (here && (shape->x > first + 3) == right) return true;
    }
    return false;
}
/* Each part of a bar is hatched where a value of its columns, and only where one, is a term of a
 * sum: of those that begin there the label says it, of those that come by one above. */
static int hold_bars(Arena *a, const char *what, const Scene *s) {
    double first = 1e9;
    int held = 0;
    for (int i = 0; i < s->n_marks; i++) /* the labels of the first column begin here */
        if (s->marks[i].kind == MARK_TEXT && s->marks[i].group >= 0 &&
            !strncmp(s->groups[s->marks[i].group].id, "value-", 6))
            first = fmin(first, s->marks[i].x);
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_RECT || !in_group(s, m, "bytes")) continue;
        const bool right = m->fill == ROLE_BYTES_2, is = hatched(s, m);
        if (!is && pends(a, s, m->y, first, right, false))
            fail_msg("%s: a sum is pending at %g, and the %s part is plain", what, m->y,
                     right ? "right" : "left");
        if (is && !pends(a, s, m->y, first, right, true))
            fail_msg("%s: the %s part at %g is hatched, and nothing is pending", what,
                     right ? "right" : "left", m->y);
        held += is;
    }
    return held;
}
/* Their legend ends within the margin. */
static void hold_legend(const char *what, const Scene *s) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind == MARK_TEXT && in_group(s, m, "legend") &&
            m->x + m->w > s->w - presets[PRESET_SLIDE].margin + 0.1)
            fail_msg("%s: the legend ends at %g of %g", what, m->x + m->w, s->w);
    }
}
static void bars_hatch_what_is_pending(void **state) {
    Ground *g = *state;
    static const char *const file[] = {
        "plans/34-llama4-scout-torchtitan.yaml", "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
        "plans/31-mixtral-8x7b-tp.yaml", "plans/56-gpt-oss-20b-tp2-ep2.yaml"};
    static const char *const pass[] = {"backward", "forward"};
    int held = 0;
    for (int i = 0; i < 8; i++) {
        const Trace *t = plan_trace(g, file[i / 2]);
        const RenderOptions o = options(pass[i % 2], "slide");
        Scene *page[VIEW_MAX_PAGES];
        for (int n = render_pages(t, g->d, &o, g->a, page); n > 0; n--) {
            const char *what = arena_printf(g->a, "%s %s %d", file[i / 2], pass[i % 2], n);
            held += hold_bars(g->a, what, page[n - 1]);
            hold_legend(what, page[n - 1]);
        }
    }
    assert_true(held > 10);
}

/* ---- steps round a ring ---- */

static bool has_value(const Scene *s, const char *name) {
    const char *id = arena_printf(s->arena, "value-%s-", name);
    for (int i = 0; i < s->n_groups; i++)
        if (!strncmp(s->groups[i].id, id, strlen(id))) return true;
    return false;
}
/* Is there a box of this step, or one that stands for it and others? */
static bool has_step(const Scene *s, int step) {
    for (int i = 0; i < s->n_groups; i++) {
        const Group *g = &s->groups[i];
        if (!strcmp(g->what, "compute") && g->tip &&
            strstr(g->tip, arena_printf(s->arena, "step %d: ", step)))
            return true;
    }
    return false;
}
/* What a ring has merged goes back through the merge, which makes a gradient of each part of it:
 * the first block's and the last's, which stand for all where hops are folded. What begins a slide
 * leaves another one under that name. */
static void merges_have_boxes(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *last;
    } ring[] = {{"plans/42-llama3-8b-usp.yaml", "grad.layers.0.attn_part.1"},
                {"plans/41-llama3-8b-ring4-zigzag.yaml", "grad.layers.0.attn_part.3"},
                {"plans/54-deepseek-v3-latent-ring4.yaml", "grad.layers.0.attn_part.3"}};
    for (int i = 0; i < 3; i++) {
        const Trace *t = plan_trace(g, ring[i].file);
        const char *const part[] = {"grad.layers.0.attn_part.0", ring[i].last};
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = options("backward", "wide");
        assert_int_equal(render_pages(t, g->d, &o, g->a, page), 1);
        for (int k = 0; k < 2; k++)
            if (!has_value(page[0], part[k])) fail_msg("%s: no %s", ring[i].file, part[k]);
        for (int k = 0; k < t->n_computes; k++) {
            const TraceCompute *c = &t->computes[k];
            if ((!strcmp(c->output, part[0]) || !strcmp(c->output, part[1])) &&
                !has_step(page[0], c->step))
                fail_msg("%s: step %d has no box", ring[i].file, c->step);
        }
        o.preset = "slide";
        const int n = render_pages(t, g->d, &o, g->a, page);
        for (int k = 0; k < n; k++)
            for (int j = 0; j < page[k]->n_groups; j++) {
                const char *id = page[k]->groups[j].id;
                if (strncmp(id, "input-", 6) || strncmp(id + 6, "grad.layers.0.attn_", 19))
                    continue;
                bool leaves = false;
                for (int m = 0; m < k; m++) leaves |= has_value(page[m], id + 6);
                if (!leaves) fail_msg("%s, slide %d: %s", ring[i].file, k + 1, id);
            }
    }
}

/* ---- how many collectives ---- */

/* For how many collectives hexagons stand: one, or "×3" at the end of the name. */
static int collectives(Arena *a, const Scene *s) {
    int n = 0, before = -1;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_TEXT || m->group < 0 || m->group == before ||
            strcmp(s->groups[m->group].what, "collective"))
            continue;
        before = m->group;
        const char *times = strstr(text_of(a, m), " ×");
        n += times ? atoi(times + strlen(" ×")) : 1;
    }
    return n;
}
/* The first number of a title that counts collectives. */
static int counted(const char *title) {
    const char *at = strstr(title, "needs ");
    if (at) return atoi(at + strlen("needs "));
    at = strstr(title, ": ");
    return at ? atoi(at + 2) : -1; /* "Attention, 1 of 2: 4 of the 11 collectives" */
}
/* A title counts what the hexagons under it stand for, those of folded hops for all. */
static void titles_count_hexagons(void **state) {
    Ground *g = *state;
    static const char *const file[] = {"plans/41-llama3-8b-ring4-zigzag.yaml",
                                       "plans/42-llama3-8b-usp.yaml",
                                       "plans/54-deepseek-v3-latent-ring4.yaml"};
    static const char *const preset[] = {"wide", "slide"}, *const pass[] = {"forward", "backward"};
    for (int i = 0; i < 12; i++) {
        const Trace *t = plan_trace(g, file[i / 4]);
        const RenderOptions o = options(pass[i % 2], preset[i / 2 % 2]);
        Scene *page[VIEW_MAX_PAGES];
        for (int n = render_pages(t, g->d, &o, g->a, page); n > 0; n--) {
            const int said = counted(page[n - 1]->title), drawn = collectives(g->a, page[n - 1]);
            if (said != drawn)
                fail_msg("%s, page %d: '%s', %d in hexagons", file[i / 4], n, page[n - 1]->title,
                         drawn);
        }
    }
}

/* Words in a hexagon keep off its slanted sides. */
static void words_stay_in_hexagons(void **state) {
    Ground *g = *state;
    static const char *const file[] = {
        "plans/42-llama3-8b-usp.yaml", "plans/40-llama3-8b-ulysses4.yaml",
        "plans/09-llama3-8b-dp2-cp2-tp2.yaml", "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
        "plans/54-deepseek-v3-latent-ring4.yaml"};
    static const char *const preset[] = {"wide", "slide"}, *const pass[] = {"forward", "backward"};
    enum { SIDE = 12 };
    for (int i = 0; i < 20; i++) {
        const Trace *t = plan_trace(g, file[i / 4]);
        const RenderOptions o = options(pass[i % 2], preset[i / 2 % 2]);
        Scene *page[VIEW_MAX_PAGES];
        Diags *d = diags_new(g->a); /* of some only the forward pass runs */
        for (int n = render_pages(t, d, &o, g->a, page); n > 0; n--) {
            const Scene *s = page[n - 1];
            for (int k = 0; k < s->n_marks; k++) {
                const Mark *m = &s->marks[k];
                const Group *h = m->group >= 0 ? &s->groups[m->group] : NULL;
                if (m->kind != MARK_TEXT || m->align != ALIGN_MIDDLE || !h || !h->framed ||
                    strcmp(h->what, "collective"))
                    continue;
                if (m->w + 2 * SIDE > h->w + 0.1)
                    fail_msg("%s %s, page %d: '%s' is %g wide in %g", file[i / 4], pass[i % 2], n,
                             text_of(g->a, m), m->w, h->w);
            }
        }
    }
}

/* ---- words ---- */

static bool says(const Scene *s, const char *words) {
    for (int i = 0; i < s->n_marks; i++)
        if (s->marks[i].kind == MARK_TEXT && in_group(s, &s->marks[i], "compute") &&
            !strcmp(s->marks[i].run[0].s, words))
            return true;
    return false;
}
/* The backward of an op is called as the mirrored picture calls it, and not as the op itself. */
static void adjoints_have_primes(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *op[5];
    } row[] = {
        {"plans/34-llama4-scout-torchtitan.yaml", {"multiply", "SiLU", "combine"}},
        {"plans/54-deepseek-v3-latent-ring4.yaml", {"split", "merge", "RMSNorm", "without lse"}}};
    for (int i = 0; i < 2; i++) {
        Scene *page[VIEW_MAX_PAGES];
        const Trace *t = plan_trace(g, row[i].file);
        const RenderOptions o = options("backward", "wide");
        assert_int_equal(render_pages(t, g->d, &o, g->a, page), 1);
        for (int k = 0; k < 5 && row[i].op[k]; k++) {
            assert_false(says(page[0], row[i].op[k]));
            assert_true(says(page[0], words_adjoint(g->a, row[i].op[k])));
        }
        /* two boxes of one op say which part of attention each is of */
        for (int part = 0; part < 4; part++)
            assert_int_equal(says(page[0], arena_printf(g->a, "part %d of attention′", part)),
                             i == 1 && part % 3 == 0);
        assert_true(says(page[0], "sum of uses")); /* is the backward of no op */
    }
}

/* Terms of a sum that come down side by side go into one box under all of them, round a ring too:
 * the last sum of attention's backward is as wide as its projections stand. */
static void sums_lie_under_their_terms(void **state) {
    Ground *g = *state;
    static const char *const file[] = {
        "plans/21-llama3-8b-recompute.yaml", "plans/41-llama3-8b-ring4-zigzag.yaml",
        "plans/42-llama3-8b-usp.yaml", "plans/54-deepseek-v3-latent-ring4.yaml"};
    for (int i = 0; i < 4; i++) {
        Scene *page[VIEW_MAX_PAGES];
        const Trace *t = plan_trace(g, file[i]);
        const RenderOptions o = options("backward", "wide");
        const Mark *last = NULL;
        assert_int_equal(render_pages(t, g->d, &o, g->a, page), 1);
        for (int k = 0; k < page[0]->n_marks; k++) {
            const Mark *m = &page[0]->marks[k];
            if (m->kind == MARK_TEXT && !strcmp(text_of(g->a, m), "sum of uses") &&
                (!last || m->y > last->y))
                last = m;
        }
        assert_non_null(last);
        const double w = page[0]->groups[last->group].w;
        if (w < 400) fail_msg("%s: the last sum is %.0f wide", file[i], w);
    }
}

/* All words of a page, each between bars. */
static const char *words_of(Arena *a, const Scene *s) {
    Str all = str_new(a);
    str_addf(&all, "%s|", s->title);
    for (int i = 0; i < s->n_marks; i++)
        if (s->marks[i].kind == MARK_TEXT) str_addf(&all, "|%s|", text_of(a, &s->marks[i]));
    return all.s;
}
static const char *page_words(Ground *g, const char *file, const char *preset) {
    Scene *page[VIEW_MAX_PAGES];
    const RenderOptions o = options("backward", preset);
    assert_true(render_pages(plan_trace(g, file), g->d, &o, g->a, page) > 0);
    return words_of(g->a, page[0]);
}
/* On the way back a weight's box says that it is read again, and by what a collective is there it
 * says of gradients where they go: the forward reason is that of the values. */
static void words_are_of_the_way_back(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *says[4], *not [4];
    } row[] = {
        {"plans/42-llama3-8b-usp.yaml",
         {"|dx via w2|", "gradients go back to the|", "gradients go to the|",
          "the gradient goes home"},
         {"|w2|", "results go back", "comes by", "|adjoint of AllToAll|"}},
        {"plans/33-qwen3-30b-a3b-ep.yaml",
         {"|dx via router gate|", "gradients go back to|"},
         {"tokens go to", "|router gate|", "|adjoint of AllToAll|"}},
        {"plans/45-llama3-8b-pp4-1f1b.yaml",
         {"receives 1 message and sends nothing", "stage 0 gets the", "gets 8 KiB"},
         {"sends 0 B", "goes on where"}},
        {"plans/20-llama3-8b-fsdp-tp.yaml",
         {"each rank's|", "their gradients add up|", "|dx via wk, wv|"},
         {"needs every token", "row parallel"}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *all = page_words(g, row[i].file, "wide");
        for (int k = 0; k < 4; k++) {
            if (row[i].says[k] && !strstr(all, row[i].says[k]))
                fail_msg("%s does not say '%s'\n%s", row[i].file, row[i].says[k], all);
            if (row[i].not [k] && strstr(all, row[i].not [k]))
                fail_msg("%s says '%s'", row[i].file, row[i].not [k]);
        }
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, ground_new, ground_gone)
static const struct CMUnitTest tests[] = {
    T(bars_hatch_what_is_pending), T(merges_have_boxes),    T(titles_count_hexagons),
    T(words_stay_in_hexagons),     T(adjoints_have_primes), T(sums_lie_under_their_terms),
    T(words_are_of_the_way_back)};
int main(void) {
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
