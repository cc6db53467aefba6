/* Tests of "backward beside forward" against the trace records: what an arrow brings a box is read
 * by it, and a label speaks of what its edge carries, each value in its own shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/graph/block_read.h"
#include "render/mirror/mirror.h"
#include "render/mirror/mirror_draw.h"
#include "render/render.h"
#include "support/support.h"
#include <stdio.h>
#include <string.h>

typedef struct {
    Arena *a;
    Diags *d;
} Ground;

static int setup(void **state) {
    Arena *a = arena_new();
    Ground *g = ARENA_NEW(a, Ground);
    *g = (Ground){a, diags_new(a)};
    *state = g;
    return 0;
}
static int teardown(void **state) {
    Ground *g = *state;
    arena_free(g->a);
    return 0;
}

static const Trace *plan_trace(Ground *g, const char *file, const char *more) {
    size_t n;
    char *text = file_read(g->a, g->d, file, 1 << 20, (Loc){0}, &n);
    assert_non_null(text);
    PlanRun r = plan_run_with(g->a, file, arena_printf(g->a, "%.*s\n%s", (int)n, text, more),
                              &(PipelineOptions){0});
    if (!r.t) run_print(&r);
    assert_non_null(r.t);
    return r.t;
}
static const Mirror *mirror_of(Ground *g, const Trace *t) {
    RenderOptions *o = ARENA_NEW(g->a, RenderOptions);
    *o = (RenderOptions){.view = "block", .rank = -1, .layer = -1};
    ViewCall *call = ARENA_NEW(g->a, ViewCall);
    *call = (ViewCall){.t = t, .d = g->d, .o = o, .arena = g->a};
    const Mirror *m = mirror_new(block_read_trace(call));
    assert_non_null(m);
    return m;
}

static const char *const file[] = {
    "plans/18-llama3-8b-backward.yaml",       "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
    "plans/30-mixtral-8x7b-ep-dp-cp.yaml",    "plans/34-llama4-scout-torchtitan.yaml",
    "plans/41-llama3-8b-ring4-zigzag.yaml",   "plans/42-llama3-8b-usp.yaml",
    "plans/54-deepseek-v3-latent-ring4.yaml", "plans/56-gpt-oss-20b-tp2-ep2.yaml",
    "plans/38-llama4-scout-reorderer.yaml",   "plans/33-qwen3-30b-a3b-ep.yaml"};
enum { N_FILES = sizeof file / sizeof *file };

/* Does row r bring up that gradient of a lower row: makes it, or, no box, hands it on? */
static bool brings(const MirrorStrip *s, int r, const char *grad, int step) {
    const char *of = subject_of(grad).of;
    bool on = false;
    for (int k = 0; k < s->row[r].n_out; k++) on |= of && !strcmp(s->row[r].out[k], of);
    for (int q = r; q < s->n && (q == r || (on && s->row[r].kind != ROW_OPS)); q++)
        if (mirror_makes_grad(&s->row[q], grad, step)) return true;
    return false;
}
/* Does a step of the box, no sum behind it, read what row `from` brings? */
static bool box_reads(const MirrorStrip *s, int r, int from) {
    const MirrorRow *row = &s->row[r];
    for (int i = 0; i < row->n_back + row->n_grad; i++) {
        const TraceCompute *c = i < row->n_back ? row->back[i].f : row->grad[i - row->n_back].made;
        bool sum = true;
        for (int k = 0; k < c->n_inputs; k++) sum &= !strcmp(c->inputs[k], c->output);
        for (int k = 0; k < c->n_inputs && !sum && c->input_step; k++)
            if (brings(s, from, c->inputs[k], c->input_step[k])) return true;
    }
    return false;
}
/* A straight arrow leads into a box that reads what it brings: what is only added to what the box
 * makes comes to a sum above it. */
static void terms_are_added_behind(void **state) {
    Ground *g = *state;
    int held = 0, sums = 0;
    for (int i = 0; i < N_FILES; i++) {
        const Mirror *m = mirror_of(g, plan_trace(g, file[i], ""));
        for (int k = 0; k < m->n; k++) {
            const MirrorStrip *s = &m->strip[k];
            for (int r = 0; r + 1 < s->n && !s->plain; r++) {
                const MirrorRow *row = &s->row[r];
                sums += mirror_sums(s, r);
                if (row->kind != ROW_OPS || row->fed[1] == FED_UNKNOWN || row->fed[1] == FED_NOT)
                    continue;
                int next = r + 1;
                while (next < s->n && !s->row[next].acts) next++;
                held++;
                if (next < s->n && !box_reads(s, r, next))
                    fail_msg("%s: nothing that comes to row %d of %s is read by its box", file[i],
                             r, s->strip->title);
            }
        }
    }
    assert_true(held > 50 && sums > 5);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest tests[] = {T(terms_are_added_behind)};
int main(void) {
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
