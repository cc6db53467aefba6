/* Titles of the block view, page by page, against the collectives that the page draws: what a title
 * says travels is there to be seen, and where it says that nothing does, nothing is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "render/furniture/words.h"
#include "render/render.h"
#include "support/fact.h"
#include "support/support.h"
#include <stdlib.h>
#include <string.h>

/* What a page draws. */
typedef struct {
    const char *op; /* of a collective, NULL: of any */
    bool gradients; /* it finishes the gradient of a parameter */
    bool beside;    /* of a layer: what stands outside may be there, and messages of its stage */
} Drawn;
typedef struct {
    const char *says;
    int n; /* kinds that are there; 0: no collective is */
    Drawn kind[2];
} Claim;
static const Claim claims[] = {
    {": every AllGather faces a ReduceScatter",
     2,
     {{.op = "all_gather"}, {.op = "reduce_scatter"}}},
    {": every hop of the ring faces a hop back", 1, {{.op = "shift"}}},
    {": every AllToAll faces one that brings", 1, {{.op = "all_to_all"}}},
    {": every AllReduce", 1, {{.op = "all_reduce"}}},
    {"only gradients of weights travel", 1, {{.gradients = true}}},
    {"weights and their gradients travel", 1, {{.gradients = true}}},
    {": in the layer gradients of weights travel", 1, {{.gradients = true}}},
    {": activations and their gradients stay on the rank", 0, {{0}}},
    {"in the layer activations and their gradients stay", 0, {{.beside = true}}},
    {": nothing is sent", 0, {{0}}},
    {"in the layer nothing is sent", 0, {{.beside = true}}},
    {"needs no communication", 0, {{0}}},
    {"gathered before use", 1, {{.op = "all_gather"}}},
    {"lines have a gradient that ranks add up", 1, {{.gradients = true}}},
    {"every gradient is summed over the ranks", 1, {{.gradients = true}}},
    {"every gradient is whole where it is made", 0, {{0}}},
    {"one AllReduce adds the partial sums", 1, {{.op = "all_reduce"}}},
    {"tokens are gathered for the matmuls, then scattered",
     2,
     {{.op = "all_gather"}, {.op = "reduce_scatter"}}},
};
enum { CLAIMS = sizeof claims / sizeof *claims };

static int n_false, n_pieces, said[CLAIMS];

/* The collective that a group of a page draws; NULL: it draws none. */
static const TraceCollective *drawn_by(const Trace *t, const Group *g) {
    if (strcmp(g->what, "collective") || strncmp(g->id, "step-", 5)) return NULL;
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step == atoi(g->id + 5)) return &t->collectives[i];
    return NULL;
}
static bool is_kind(const TraceCollective *c, const Drawn *d) {
    if (d->gradients && c->pass != PHASE_GRADIENTS) return false;
    return !d->op || !strcmp(c->op, d->op);
}
static bool draws(const Trace *t, const Scene *s, const Drawn *d) {
    for (int i = 0; i < s->n_groups; i++) {
        const TraceCollective *c = drawn_by(t, &s->groups[i]);
        if (c && is_kind(c, d)) return true;
    }
    return false;
}
/* Does it draw a collective, other than what may stand beside a layer? */
static bool draws_any(const Trace *t, const Scene *s, bool beside) {
    for (int i = 0; i < s->n_groups; i++) {
        const TraceCollective *c = drawn_by(t, &s->groups[i]);
        if (c && !(beside && (c->layer < 0 || !strcmp(c->op, "send")))) return true;
    }
    return false;
}
/* "Attention, 1 of 3: 4 of the 14 collectives of its backward pass": at least one for each that is
 * drawn (some stand for two), and none where none is. */
static void hold_piece(const Trace *t, const Scene *s, const char *what) {
    const char *of = strstr(picture_fact(s), " of the ");
    int drawn = 0;
    if (!of || !strstr(of, " of its ") || !strstr(of, "collective")) return;
    for (int i = 0; i < s->n_groups; i++) drawn += drawn_by(t, &s->groups[i]) != NULL;
    const char *from = of;
    while (from > picture_fact(s) && from[-1] != ' ') from--;
    const int here = atoi(from), all = atoi(of + strlen(" of the "));
    n_pieces++;
    if ((drawn > 0) == (here > 0) && here >= drawn && here <= all) return;
    n_false++;
    print_message("%s: '%s', and %d are drawn\n", what, picture_fact(s), drawn);
}
/* A careful reader finds nothing on it, either. */
static void hold_lint(Scene *s, const char *what) {
    const char *report;
    if (!scene_lint(s, s->arena, &report)) return;
    n_false++;
    print_message("%s: %s\n", what, report);
}
static void hold(const Trace *t, const Scene *s, const char *what) {
    hold_piece(t, s, what);
    for (int k = 0; k < CLAIMS; k++) {
        const Claim *c = &claims[k];
        if (!strstr(picture_fact(s), c->says)) continue;
        said[k]++;
        bool is = c->n || !draws_any(t, s, c->kind[0].beside);
        for (int i = 0; i < c->n; i++) is &= draws(t, s, &c->kind[i]);
        if (is) continue;
        n_false++;
        print_message("%s: '%s'\n", what, picture_fact(s));
    }
}
static void hold_plan(Arena *a, const char *path, const char *text) {
    static const char *const preset[] = {"slide", "wide", "column", "a4"}, *const pass[] = {
                                                                               NULL, "forward",
                                                                               "backward"};
    const Trace *t = plan_run_with(a, path, text, &(PipelineOptions){.threads = 1}).t;
    for (int k = 0; t && k < 4 * 3; k++) {
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = {.view = "block", .preset = preset[k % 4], .rank = -1, .layer = -1};
        o.pass = pass[k / 4];
        int n = render_pages(t, diags_new(a), &o, a, page);
        for (int i = 0; i < n; i++) {
            const char *what = arena_printf(a, "%s, %s, %s, page %d", path, o.preset,
                                            o.pass ? o.pass : "both", i + 1);
            hold(t, page[i], what);
            hold_lint(page[i], what);
        }
    }
}
static void titles_speak_of_their_page(void **state) {
    (void)state;
    for (PlanFiles f = plan_files("plans/*.yaml", NULL); plan_files_next(&f);)
        hold_plan(f.a, f.path, f.text);
    for (int k = 0; k < CLAIMS; k++)
        if (!said[k]) print_message("no title says '%s'\n", claims[k].says);
    assert_int_equal(n_false, 0);
    assert_true(n_pieces >= 10);
    for (int k = 0; k < CLAIMS; k++) assert_true(said[k] > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(titles_speak_of_their_page)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
