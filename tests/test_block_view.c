/* Tests of the block view on shipped plans: what stands on the edges of the mirrored picture is
 * what the trace records say, nothing of the model is left out, wrong steps are shown, and every
 * page of every part is clean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/furniture/views.h"
#include "render/graph/block_read.h"
#include "render/mirror/mirror.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "support/ground.h"
#include "support/plan_lines.h"
#include "trace/collectives.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Trace *plan_trace(Ground *g, const char *file, const char *more) {
    return ground_trace(g, file, more, false);
}

static RenderOptions options(const char *view) {
    return (RenderOptions){.view = view, .rank = -1, .layer = -1};
}

static char *draw(Ground *g, const Trace *t, const RenderOptions *o, RenderFormat f) {
    size_t n;
    char *p = render_text(t, g->d, o, f, g->a, &n);
    if (!p) diags_print(g->d, stderr, false);
    assert_non_null(p);
    return p;
}

/* The characters of a piece of SVG without its tags, texts separated by '|'. */
static const char *words(Arena *a, const char *from, const char *end) {
    Str out = str_new(a);
    for (const char *t = strstr(from, "<text"); t && t < end; t = strstr(t + 5, "<text")) {
        for (const char *p = t; strncmp(p, "</text>", 7);)
            if (*p == '<') p = strchr(p, '>') + 1;
            else str_addn(&out, p++, 1);
        str_add(&out, "|");
    }
    return out.s;
}

static const char *all_words(Arena *a, const char *svg) { return words(a, svg, svg + strlen(svg)); }
static int times_said(const char *text, const char *word) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)); p += strlen(word)) n++;
    return n;
}

/* "*" as pictures write it. */
static const char *dots(Arena *a, const char *s) {
    Str out = str_new(a);
    for (; *s; s++)
        if (*s == '*') str_add(&out, "·");
        else str_addn(&out, s, 1);
    return out.s;
}

static const TraceValue *value_at(const Trace *t, const char *name, int step) {
    for (int i = 0; i < t->n_values; i++)
        if (!strcmp(t->values[i].shape.name, name) && t->values[i].step == step)
            return &t->values[i];
    return NULL;
}

static const TraceLocal *local_of(const TraceShape *s, int64_t rank) {
    for (int i = 0; i < s->n_local; i++)
        if (rankset_has(&s->local[i].ranks, rank)) return &s->local[i];
    return NULL;
}

static const char *shape_words(Arena *a, const TraceShape *s, const TraceLocal *l) {
    Str out = str_new(a);
    for (int i = 0; i < s->nd; i++)
        str_addf(&out, "%s%lld", i ? ", " : "[", (long long)l->shape[i]);
    return arena_printf(a, "%s]", out.s);
}

/* One label and the values its tooltip names: each must lie as the label says. Marks them in
 * seen[]. */
static int check_label(Ground *g, const Trace *t, const char *at, int64_t rank, bool *seen) {
    const char *title = strstr(at, "<title>") + 7, *end = strstr(title, "</title>"),
               *close = strstr(end, "</g>");
    const char *text = words(g->a, end, close);
    int n = 0;
    for (const char *line = title; line < end; n++) {
        char name[200];
        int step;
        assert_int_equal(sscanf(line, "%199[^,], step %d", name, &step), 2);
        const TraceValue *v = value_at(t, name, step);
        if (!v) fail_msg("no record of %s at step %d", name, step);
        const TraceLocal *l = local_of(&v->shape, rank);
        assert_non_null(l);
        seen[v - t->values] = true;
        /* twins ([.., H*d] and [.., H, d]) share the words of the first: so many numbers lie there
         */
        if (v->shape.nd) {
            bool first = line == title;
            if (first && !strstr(text, dots(g->a, v->shape.symbolic)))
                fail_msg("%s: %s is not in '%s'", name, v->shape.symbolic, text);
            if (first && !strstr(text, shape_words(g->a, &v->shape, l)))
                fail_msg("%s: numbers are not in '%s'", name, text);
        }
        if (!strstr(text, bytes_text(l->bytes, g->a)))
            fail_msg("%s: %s is not in '%s'", name, bytes_text(l->bytes, g->a), text);
        line = memchr(line, '\n', (size_t)(end - line));
        line = line ? line + 1 : end;
    }
    return n;
}

static const struct {
    const char *file, *more;
} mirrored[] = {{"plans/18-llama3-8b-backward.yaml", ""},
                {"plans/19-llama3-8b-fsdp4.yaml", ""},
                {"plans/20-llama3-8b-fsdp-tp.yaml", ""},
                {"plans/21-llama3-8b-recompute.yaml", ""},
                {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", ""},
                {"plans/23-llama3-8b-packed.yaml", ""},
                {"plans/01-column-row-mlp.yaml", "pass: backward"},
                {"plans/02-toymodel-4.yaml", "pass: backward"},
                {"plans/12-qwen3-8b-tp16.yaml", "pass: backward"},
                {"plans/14-qwen2-bias-tp2.yaml", "pass: backward"},
                {"plans/shape-only/llama3.1-405b-8192.yaml", "pass: backward"}};
enum { N_MIRRORED = sizeof mirrored / sizeof *mirrored };

/* Does a picture of the first layer show the step? */
static bool in_picture(Phase pass, int layer) {
    return layer <= 0 && (pass == PHASE_FORWARD || pass == PHASE_BACKWARD || pass == PHASE_LOSS);
}

/* Every label is a record of the trace, symbols, numbers and bytes; and what goes into and comes
 * out of every collective of activations and their gradients stands on an edge. */
static void edges_are_records(void **state) {
    Ground *g = *state;
    int n_held = sample_of(N_MIRRORED, "plans");
    for (int held = 0; held < n_held; held++) {
        int i = sample_at(held, n_held, N_MIRRORED);
        const Trace *t = plan_trace(g, mirrored[i].file, mirrored[i].more);
        int64_t rank = t->ranks - 1;
        RenderOptions o = options("block");
        o.rank = rank;
        const char *svg = draw(g, t, &o, FORMAT_SVG);
        bool *seen = ARENA_ARRAY(g->a, bool, t->n_values + 1);
        int labels = 0;
        for (const char *p = strstr(svg, "class=\"label\""); p;
             p = strstr(p + 5, "class=\"label\""))
            labels += check_label(g, t, p, rank, seen);
        assert_true(labels > 6);
        for (int k = 0; k < t->n_collectives; k++) {
            const TraceCollective *c = &t->collectives[k];
            if (!in_picture(c->pass, c->layer) || !strncmp(c->value, "grad.param.", 11)) continue;
            /* made again */
            if (c->pass == PHASE_BACKWARD && strncmp(c->value, "grad.", 5)) continue;
            /* the seed of a plan without a loss: a sum of products */
            if (!strcmp(c->value, "loss")) continue;
            const TraceValue *out = value_at(t, c->value, c->step);
            assert_non_null(out);
            if (!seen[out - t->values])
                fail_msg("%s: %s of %s (step %d) has no label", mirrored[i].file, c->op, c->value,
                         c->step);
        }
    }
}

/* Every weight, every op with a weight and every part of the model is in the picture. */
static void nothing_is_left_out(void **state) {
    Ground *g = *state;
    int n_held = sample_of(N_MIRRORED, "plans");
    for (int held = 0; held < n_held; held++) {
        int i = sample_at(held, n_held, N_MIRRORED);
        const Trace *t = plan_trace(g, mirrored[i].file, mirrored[i].more);
        RenderOptions o = options("block");
        const char *svg = draw(g, t, &o, FORMAT_SVG);
        for (int k = 0; k < t->n_computes; k++) {
            const TraceCompute *c = &t->computes[k];
            bool first = c->layer <= 0 || c->layer == t->computes[0].layer ||
                         strstr(mirrored[i].more, "mlp");
            if (!first || c->recompute || !rankset_has(&c->ranks, 0) || !strcmp(c->op, "add") ||
                !strcmp(c->op, "add_backward"))
                continue;
            if (t->computes[0].layer < 0 && c->layer > 0) continue;
            if (!in_picture(c->pass, c->layer > 0 ? 0 : c->layer) || !strcmp(c->output, "loss") ||
                !strcmp(c->output, "grad.loss"))
                continue;
            /* a seed instead of a loss */
            if (c->pass == PHASE_LOSS && !strstr(svg, "part-loss")) continue;
            if (!strstr(svg, arena_printf(g->a, "step %d: ", c->step)))
                fail_msg("%s: step %d (%s makes %s) is not drawn", mirrored[i].file, c->step, c->op,
                         c->output);
        }
        const char *text = all_words(g->a, svg);
        for (int k = 0; k < t->n_computes; k++)
            if (t->computes[k].part && !strcmp(t->computes[k].part, "head"))
                assert_non_null(strstr(text, "Head|"));
    }
}

/* The rows of the mirrored page, the weights and the single passes: no finding of the lint, in any
 * preset. */
static void every_part_is_clean(void **state) {
    Ground *g = *state;
    static const char *const part[] = {NULL,   "embedding", "attention", "mlp",
                                       "head", "loss",      "weights"};
    static const char *const preset[] = {"wide", "slide", "column", "a4"}, *const theme[] = {
                                                                               "light", "dark",
                                                                               "print"};
    static const char *const pass[] = {NULL, "forward", "backward"};
    int found = 0, drawn = 0;
    int n_held = sample_of(N_MIRRORED, "plans");
    for (int held = 0; held < n_held; held++) {
        int i = sample_at(held, n_held, N_MIRRORED);
        const Trace *t = plan_trace(g, mirrored[i].file, mirrored[i].more);
        for (int k = 0; k < 7 * 3; k++) {
            Diags *d = diags_new(g->a);
            const char *report = "";
            RenderOptions o = options("block");
            o.part = part[k % 7];
            o.pass = pass[k / 7];
            o.preset = k < 7 ? preset[1 + (i + k) % 2]
                             : preset[(i + k) % 4]; /* the mirrored slides and columns are narrow */
            o.theme = theme[k % 3];
            int n = render_lint(t, d, &o, g->a, &report);
            if (diags_errors(d)) continue; /* this plan has no such part */
            /* backward alone is up to four columns wide: fitted on a page its letters may be a
             * little small */
            bool wide = o.pass && !strcmp(o.pass, "backward") &&
                        (!strcmp(o.preset, "a4") || !strcmp(o.preset, "slide"));
            if (wide && !strstr(report, "closer") && !strstr(report, "mark") &&
                !strstr(report, "line through"))
                continue;
            drawn++;
            if (n)
                print_message("%s --part %s --pass %s --preset %s\n%s", mirrored[i].file,
                              o.part ? o.part : "all", o.pass ? o.pass : "both", o.preset, report);
            found += n;
        }
    }
    assert_int_equal(found, 0);
    assert_true(n_held < N_MIRRORED ? drawn > 5 : drawn > 120);
    const Trace *t =
        plan_trace(g, mirrored[2].file, ""); /* a deck: a slide per part, and the weights */
    RenderOptions o = options("block");
    o.preset = "slide";
    assert_non_null(strstr(all_words(g->a, draw(g, t, &o, FORMAT_SVG)), "page 1 of 6"));
    o.part = "weights";
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "at rest|"));
    assert_non_null(strstr(text, "in compute, then freed|"));
    assert_non_null(strstr(text, "ReduceScatter|dp·cp|"));
}

/* What brings a weight is a collective, and drawn as one: a page has as many hexagons as its title
 * counts, with one for the key, and a slide has them with their code. */
static int hexagons(const Scene *s) {
    int n = 0;
    for (int i = 0; i < s->n_marks; i++) n += s->marks[i].fill == ROLE_COLL;
    return n;
}
static void weights_come_in_hexagons(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/33-qwen3-30b-a3b-ep.yaml", "");
    RenderOptions o = options("block");
    assert_non_null(strstr(all_words(g->a, draw(g, t, &o, FORMAT_SVG)),
                           "every AllToAll faces one that brings gradients back"));
    Scene *page[32];
    o.pass = "backward";
    assert_int_equal(render_pages(t, g->d, &o, g->a, page), 1);
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "needs 25 collectives"));
    assert_int_equal(hexagons(page[0]), 25 + 1);
    o.pass = "forward", o.preset = "slide", o.part = "attention";
    assert_true(render_pages(t, g->d, &o, g->a, page) >= 1);
    assert_true(hexagons(page[0]) >= 4);
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "AG: AllGather of the weight first"));
}

/* A sheet of A4 has as many parts as it holds in letters of 7 pt: five of plan 50 stand on three.
 * What leaves room grows into it, upright where it would leave much of a sheet's width. */
static void sheets_are_filled(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/50-llama3-8b-zero1.yaml", "");
    RenderOptions o = options("block");
    Scene *page[VIEW_MAX_PAGES];
    const char *report;
    o.preset = "a4";
    assert_int_equal(render_pages(t, g->d, &o, g->a, page), 3);
    for (int i = 0; i < 3; i++) assert_true(page[i]->scale * 12 >= 7);
    assert_non_null(strstr(page[0]->title, "Embedding, attention: "));
    if (render_lint(t, g->d, &o, g->a, &report)) fail_msg("%s", report);
    static const char *const file[] = {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                                       "plans/54-deepseek-v3-latent-ring4.yaml"};
    for (int k = 0; k < 2; k++) {
        t = plan_trace(g, file[k], "");
        assert_int_equal(render_pages(t, g->d, &o, g->a, page), 3);
        if (render_lint(t, g->d, &o, g->a, &report)) fail_msg("%s", report);
        for (int i = 0; i < 3; i++) {
            const Scene *s = page[i];
            const double w = s->w * s->scale / (s->page_w - 2 * s->off_y),
                         h = s->h * s->scale / (s->page_h - 2 * s->off_y);
            assert_true(s->page_w < s->page_h || (k == 1 && i == 2));
            if (w * h < 0.8) fail_msg("%s, page %d: %g x %g", file[k], i + 1, w, h);
        }
    }
}

/* Hops of a ring that do what the first does stand as one band, which has their steps in its
 * tooltip; a pass alone has the first, slides too; a mistake in one has them all. */
static void hops_fold(void **state) {
    Ground *g = *state;
    static const char band[] = "hops 2 and 3: the same steps, with the next block";
    static const char *const plan[] = {"plans/54-deepseek-v3-latent-ring4.yaml",
                                       "plans/41-llama3-8b-ring4-zigzag.yaml"},
                             *const preset[] = {"wide", "column", "a4"};
    for (int i = 0; i < 2; i++) {
        const Trace *t = plan_trace(g, plan[i], "");
        RenderOptions o = options("block");
        const char *report;
        for (int k = 0; k < 3; k++) {
            o.preset = preset[k];
            if (render_lint(t, g->d, &o, g->a, &report)) fail_msg("%s: %s", plan[i], report);
        }
        o.preset = NULL;
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        assert_int_equal(times_said(text, band), 1);
        assert_int_equal(times_said(text, " of attention|"), 2); /* its own, and hop 1 */
        o.pass = "forward";
        for (int k = 0; k < 3; k++) {
            o.preset = preset[k];
            if (render_lint(t, g->d, &o, g->a, &report)) fail_msg("%s: %s", plan[i], report);
        }
        o.preset = NULL;
        text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        assert_int_equal(times_said(text, i ? "|Shift k, v ×6|" : "|Shift kv_a_norm, k_rope ×6|"),
                         1);
        assert_int_equal(times_said(text, "|Shift"), 1);
        assert_int_equal(times_said(text, "|ring: hop 1 of 3, the|"), 1);
        assert_non_null(strstr(text, "needs 6 collectives"));
        assert_non_null(strstr(text, "KiB in 6 collectives (bytes leaving the GPU)"));
        o.pass = "backward";
        for (int k = 0; k < 4; k++) {
            o.preset = k < 3 ? preset[k] : "slide";
            if (render_lint(t, g->d, &o, g->a, &report)) fail_msg("%s: %s", plan[i], report);
        }
        o.preset = NULL;
        text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        assert_int_equal(times_said(text, "|Shift"), i ? 1 : 2);
        assert_int_equal(times_said(text, i ? "|Shift dk, dv ×6|" : "|Shift d k_rope ×3|"), 1);
        assert_int_equal(times_said(text, "|Shift d kv_a_norm ×3|"), i ? 0 : 1);
        assert_int_equal(times_said(text, " of attention′|"), 2);
        assert_int_equal(times_said(text, "|ring: hop 1 of 3, the"), i ? 1 : 2);
        assert_non_null(strstr(text, i ? "needs 15 collectives" : "needs 18 collectives"));
        assert_non_null(strstr(text, i ? "in 15 collectives (" : "in 18 collectives ("));
    }
    const Trace *t = plan_trace(g, "plans/bugs/60-a-hop-left-out.yaml", "");
    RenderOptions o = options("block");
    assert_null(strstr(draw(g, t, &o, FORMAT_SVG), "the same steps, with the next block"));
    o.pass = "forward";
    assert_null(strstr(draw(g, t, &o, FORMAT_SVG), "the others do"));
}

/* The reductions of a weight stand in the order in which they run, and those of a unit of hybrid
 * sharding carry all its rows. */
static void reductions_stand_in_order(void **state) {
    Ground *g = *state;
#define UNITS                                                                                      \
    "model: {preset: llama3-8b, layers: 2, shrink: 32}\nnames: torchtitan\npass: backward\n"
#define MLP "  layers.*.ffn_norm: sequence_parallel\n" TITAN_FFN
#define FSDP                                                                                       \
    "data: {batch: 4, sequence: 32, cut: {batch: dp}}\nmesh: {dp: 2, tp: 2}\n"                     \
    "data_parallel: {mode: fsdp, unit: block}\nplan:\n"
    static const struct {
        const char *plan, *order;
        int scatters;
    } cases[] = {
        {UNITS "data: {batch: 8, sequence: 32, cut: {batch: rep*dp}}\nmesh: {rep: 2, dp: 2}\n"
               "data_parallel: {mode: hsdp, replicate: rep, shard: dp, unit: block}\n",
         "ReduceScatter|over dp|496 KiB|AllReduce|over rep|496 KiB|", 1},
        {UNITS FSDP "  layers.*.attention_norm: {style: replicate, input: shard(1), output: "
                    "shard(1)}\n" TITAN_ATTENTION MLP,
         "ReduceScatter|over dp|248 KiB|AllReduce|over tp|", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PlanRun r = plan_run(g->a, "units.yaml", cases[i].plan, false);
        assert_non_null(r.t);
        RenderOptions o = options("block");
        o.part = "weights";
        const char *text = all_words(g->a, draw(g, r.t, &o, FORMAT_SVG));
        int n = 0;
        for (const char *p = strstr(text, "ReduceScatter|"); p; p = strstr(p + 1, "ReduceScatter|"))
            n++;
        if (n != cases[i].scatters || !strstr(text, cases[i].order))
            fail_msg("%s: %d\n%s", cases[i].order, n, text);
        o.part = NULL; /* the entry of a weight names every collective of its unit */
        if (!i)
            assert_non_null(
                strstr(all_words(g->a, draw(g, r.t, &o, FORMAT_SVG)), "with dw2, dp, rep|"));
    }
}

/* The mark of a text on a page, the nth of those; NULL: it is not there. */
static const Mark *text_mark(const Scene *s, const char *text, int nth) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind == MARK_TEXT && m->n_run && !strcmp(m->run->s, text) && !nth--) return m;
    }
    return NULL;
}
/* Two strips of a block stand side by side where one above the other would be a tower with nothing
 * beside it; a short one is not torn to the length of a chain, and the gradients that leave one box
 * take no room for boxes of their own. */
static void towers_lie_down(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *first;
    } cases[] = {{"plans/30-mixtral-8x7b-ep-dp-cp.yaml", "MoE"},
                 {"plans/34-llama4-scout-torchtitan.yaml", "MoE"},
                 {"plans/42-llama3-8b-usp.yaml", "MLP"},
                 {"plans/54-deepseek-v3-latent-ring4.yaml", "MLP"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Trace *t = plan_trace(g, cases[i].file, "");
        RenderOptions o = options("block");
        Scene *page[VIEW_MAX_PAGES];
        o.pass = "backward";
        assert_int_equal(render_pages(t, g->d, &o, g->a, page), 1);
        const Mark *left = text_mark(page[0], cases[i].first, 0),
                   *right = text_mark(page[0], "Attention", 0);
        assert_true(left && right);
        if (left->y != right->y || page[0]->w < page[0]->h)
            fail_msg("%s: %s at %g, Attention at %g, %g by %g", cases[i].file, cases[i].first,
                     left->y, right->y, page[0]->w, page[0]->h);
        const double letters = 11.0; /* pixels of the smallest in a PNG */
        assert_true(11.5 * page[0]->px_width / page[0]->w > letters - 0.01);
        const Mark *last = text_mark(page[0],
                                     "gradient of the hidden state, also what comes to "
                                     "attention",
                                     0),
                   *sum = text_mark(page[0], "sum of uses", 0);
        if (!strcmp(cases[i].first, "MLP")) assert_true(last && sum && last->y - sum->y < 200);
        if (!strstr(cases[i].file, "usp")) continue;
        const Mark *part = text_mark(page[0], "part 0 of attention′", 0);
        const Group *box = &page[0]->groups[part->group];
        assert_true(box->w > 100 && box->w < 440); /* from under wo on */
    }
}

/* Where one collective carries the gradients of all layers, each weight says that its own travel in
 * it, no title says that nothing else is sent, and parameters that travel after the step are told.
 */
static void units_of_a_model_are_told(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *with, *after;
    } cases[] = {
        {"plans/50-llama3-8b-zero1.yaml", "with d output, dp|",
         "all parameters after the step dp 4.88 MiB in 12"},
        {"plans/51-llama3-8b-zero2-megatron.yaml", "with dw2, dp|",
         "all parameters after the step dp 4.39 MiB in 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Trace *t = plan_trace(g, cases[i].file, "");
        RenderOptions o = options("block");
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG)), *lines = text;
        if (strstr(text, "nothing to add")) fail_msg("%s: %s", cases[i].file, text);
        assert_non_null(strstr(text, cases[i].with));
        if (strstr(text, "only gradients") || !strstr(lines, cases[i].after))
            fail_msg("%s: '%s' is not said\n%s", cases[i].file, cases[i].after, text);
        o.part = "weights";
        text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        if (strstr(text, "nothing to add")) fail_msg("%s: %s", cases[i].file, text);
        o = (RenderOptions){.view = "block", .rank = -1, .layer = -1, .preset = "slide"};
        for (o.page = 1; o.page <= 2; o.page++) { /* a slide per strip */
            text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
            if (strstr(text, "nothing is sent") || strstr(text, "Nothing is sent"))
                fail_msg("%s, slide %lld: %s", cases[i].file, (long long)o.page, text);
        }
    }
}

/* The text form says the sentence, whatever lines it is broken into. */
static void told_in_text(Ground *g, const Trace *t, RenderOptions o, const char *sentence) {
    o.preset = NULL;
    char *text = draw(g, t, &o, FORMAT_TEXT);
    for (char *p = text; *p; p++) *p = *p == '\n' ? ' ' : *p;
    if (!strstr(text, sentence)) fail_msg("%s: '%s' is not said in\n%s", o.view, sentence, text);
}

/* Without being asked the storyboard tells the collective that a mistake changed; one that is left
 * out has one frame, and no arrow. */
static void stories_of_mistakes(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *title;
        bool still;
    } bug[] = {
        {"plans/bugs/03-missing-reduction.yaml",
         "AllReduce after layers.0.feed_forward.w2, 2 ranks: left out", true},
        {"plans/bugs/12-gradient-over-the-wrong-group.yaml",
         "Ring AllReduce of the gradient of layers.0.feed_forward.w1.weight", false},
        {"plans/bugs/20-sum-of-exp-counted-twice.yaml", "Ring AllReduce of loss.sumexp", false}};
    for (int i = 0; i < 3; i++) {
        const Trace *t = plan_trace(g, bug[i].file, "");
        RenderOptions o = options("storyboard");
        const char *text = draw(g, t, &o, FORMAT_TEXT);
        assert_int_equal(strncmp(text, bug[i].title, strlen(bug[i].title)), 0);
        assert_int_equal(!strstr(text, "After step"), bug[i].still);
        assert_int_equal(!strstr(text, "sent in the next step"), bug[i].still);
        assert_int_equal(!strstr(all_words(g->a, draw(g, t, &o, FORMAT_SVG)), "sent next"),
                         bug[i].still);
    }
    const Trace *t = plan_trace(g, "plans/bugs/03-missing-reduction.yaml", "");
    RenderOptions o = options("storyboard");
    o.part = "layers.0.o_proj"; /* a right one: the mistake is told where it is */
    const char *text = draw(g, t, &o, FORMAT_TEXT);
    assert_non_null(strstr(text, "Ring AllReduce after layers.0.attention.wo, "));
    assert_non_null(strstr(text, "AllReduce over tp after w2 is missing"));
    t = plan_trace(g, "plans/18-llama3-8b-backward.yaml",
                   ""); /* a whole model: not its embedding */
    o.part = NULL;
    assert_non_null(
        strstr(draw(g, t, &o, FORMAT_TEXT), "Ring AllGather after layers.0.attention_norm, "));
    o.part = "o_proj"; /* the last word of a name is enough */
    assert_non_null(
        strstr(draw(g, t, &o, FORMAT_TEXT), "Ring ReduceScatter after layers.0.attention.wo, "));
}

static const struct {
    const char *file, *sentence;
} mistakes[] = {
    {"plans/bugs/01-output-left-partial.yaml", "a sum over tp is pending, and the value is taken"},
    {"plans/bugs/03-missing-reduction.yaml", "is missing (planted: drop)"},
    {"plans/bugs/04-wrong-block.yaml", "planted: offset"},
    {"plans/bugs/06-reduced-twice.yaml", "the reduction is done twice"},
    {"plans/bugs/08-norm-gradient-not-summed.yaml", "is missing (planted: gradients: none)"},
    {"plans/bugs/10-gradient-summed-where-not-due.yaml", "do not follow from the layouts"},
    {"plans/bugs/11-input-gradient-not-reduced.yaml", "is missing (planted: drop)"},
    {"plans/bugs/12-gradient-over-the-wrong-group.yaml", "the group is that of tp"},
    {"plans/bugs/13-gradient-not-summed-over-dp.yaml", "is missing (planted: gradients: none)"},
    {"plans/bugs/17-row-gradient-not-gathered.yaml", "every rank goes on with its own part"},
    {"plans/bugs/19-fsdp-gathers-too-little.yaml", "is missing (planted: drop)"},
    {"plans/bugs/22-loss-without-its-sums.yaml", "taken for complete"},
    {"plans/bugs/23-labels-in-another-order.yaml",
     "blocks in contiguous order are taken for zigzag ones"},
    {"plans/bugs/25-packed-cut-as-one.yaml", "is taken for"},
    {"plans/bugs/26-gradient-label-of-a-partial.yaml", "(planted: scale: 4)"},
    {"plans/bugs/29-loss-sum-without-gradient.yaml", "(planted: scale: 0)"},
    {"plans/bugs/34-global-ids-in-a-local-table.yaml", "(planted: local)"},
    {"plans/bugs/35-shards-in-the-other-order.yaml", "Shard of w1 is not what it should be"},
    {"plans/bugs/36-every-rank-the-next-shard.yaml", "(planted: offset: 1)"},
    {"plans/bugs/38-positions-from-zero.yaml", "(planted: local)"},
    {"plans/bugs/39-positions-not-zigzag.yaml", "(planted: contiguous)"},
    {"plans/bugs/44-ranks-fed-different-data.yaml", "Data of input_ids is not"}};
/* How many heads a rank has is told of the op that works on them, not of what puts their parts
 * together. */
static void heads_are_those_of_attention(void **state) {
    Ground *g = *state;
    RenderOptions o = options("block");
    const Trace *t = plan_trace(g, "plans/shape-only/deepseek-v3-2048.yaml", "");
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "concatenate"));
    assert_null(strstr(text, "concatenate, "));
    assert_non_null(strstr(text, "causal attention, 32 of 128 heads"));
}
/* Under a title that is the rule itself the red line says where it is broken, and not the rule once
 * more. */
static void rule_is_said_once(void **state) {
    Ground *g = *state;
    RenderOptions o = options("block");
    const Trace *t = plan_trace(g, "plans/bugs/01-output-left-partial.yaml", "");
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(
        strstr(text, "Declaration after wo, step 9, line 13 of 01-output-left-partial.yaml"));
    assert_null(strstr(text, "does not hold"));
}
/* A planted or illegal step has a red border, a flag and a sentence; what does not happen is not
 * counted as sent. */
static void wrong_steps_are_shown(void **state) {
    Ground *g = *state;
    static const char *const preset[] = {"wide", "column", "a4", "slide"};
    int n_bugs = sizeof mistakes / sizeof *mistakes, n_held = sample_of(n_bugs, "planted mistakes");
    for (int held = 0; held < n_held; held++) {
        int i = sample_at(held, n_held, n_bugs);
        const Trace *t = plan_trace(g, mistakes[i].file, "");
        RenderOptions o = options("block");
        const char *svg = draw(g, t, &o, FORMAT_SVG), *text = all_words(g->a, svg);
        if (!strstr(text, mistakes[i].sentence))
            fail_msg("%s: '%s' is not said in\n%s", mistakes[i].file, mistakes[i].sentence, text);
        assert_non_null(strstr(svg, "-wrong-")); /* the flag */
        if (!strstr(svg, "stroke=\"#B00020\" stroke-width=\"3\""))
            fail_msg("%s: no red border", mistakes[i].file);
        char *plain = draw(g, t, &o, FORMAT_TEXT);
        assert_non_null(strstr(plain, "✗ "));
        for (int p = 0; p < 12; p++) {
            static const char *const views[] = {"block", "storyboard", "memory"};
            const char *report;
            o.view = views[p / 4], o.preset = preset[p % 4];
            int n = render_lint(t, g->d, &o, g->a, &report);
            if (n) print_message("%s %s %s\n%s", mistakes[i].file, o.view, o.preset, report);
            assert_int_equal(n, 0);
            if (p % 4 == 0) told_in_text(g, t, o, mistakes[i].sentence);
        }
    }
    const Trace *t = plan_trace(g, "plans/bugs/03-missing-reduction.yaml", "");
    RenderOptions o = options("block");
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "AllReduce missing|nothing is sent|"));
    assert_non_null(strstr(text, "in 1 collective"));
    t = plan_trace(g, "plans/bugs/28-hsdp-divisor-ignores-the-copies.yaml", "");
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG)); /* counted as the log counts it */
    assert_non_null(strstr(text, "AllReduce, twice|"));
    assert_non_null(strstr(text, "rep 608 KiB in 10;"));
}

/* Counts of experts' rows are those to expect, and the pictures say so: forward and mirrored, in
 * the text too. Of a dense model nothing is expected. */
static void rows_are_expected(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file;
        bool rows;
    } plan[] = {{"plans/30-mixtral-8x7b-ep-dp-cp.yaml", true},
                {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", false}};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) {
            RenderOptions o = options("block");
            const Trace *t = plan_trace(g, plan[i].file, "");
            o.pass = k ? k > 1 ? "backward" : "forward" : NULL;
            char *text = arena_strdup(g->a, all_words(g->a, draw(g, t, &o, FORMAT_SVG)));
            for (char *c = text; *c; c++) /* a sentence that was wrapped is one again */
                if (*c == '|') *c = ' ';
            if (!strstr(text, "of experts: as many as") == plan[i].rows)
                fail_msg("%s, %d: %s", plan[i].file, k, text);
        }
}

/* Timeline, shards and overview of a wrong plan: the broken rule is the title, what the title would
 * count stands under it, and the flag stands at the step or the weight, on every size. */
static void every_view_is_red_at_the_place(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *title, *view[3];
    } bug[] = {{"plans/bugs/12-gradient-over-the-wrong-group.yaml",
                "AllReduce over tp of dw1: the group is that of tp, the layouts ask for another",
                {"timeline", "shards", "overview"}},
               {"plans/bugs/03-missing-reduction.yaml",
                "AllReduce over tp after w2 is missing",
                {"timeline", "overview", "shards"}},
               {"plans/bugs/36-every-rank-the-next-shard.yaml",
                "Shard of wo is not what it should be (planted: offset: 1)",
                {"timeline", "shards"}},
               {"plans/bugs/25-packed-cut-as-one.yaml",
                "gate_up_proj lies as [(2·F)/tp, D] but is taken for [2·F/tp, D]",
                {"shards", "timeline"}}};
    static const char *const sizes[] = {"wide", "slide", "column", "a4"};
    for (size_t i = 0; i < sizeof bug / sizeof *bug; i++)
        for (int k = 0; k < 3 * 4; k++) {
            Scene *page[VIEW_MAX_PAGES];
            if (!bug[i].view[k / 4]) continue;
            RenderOptions o = options(bug[i].view[k / 4]);
            const Trace *t = ground_trace(g, bug[i].file, "", true);
            o.preset = sizes[k % 4];
            int n = render_pages(t, g->d, &o, g->a, page), flags = 0;
            assert_true(n > 0);
            for (int p = 0; p < n; p++) {
                const char *report;
                assert_string_equal(page[p]->title, bug[i].title);
                assert_non_null(page[p]->fact);
                if (scene_lint(page[p], g->a, &report))
                    fail_msg("%s %s %s: %s", bug[i].file, o.view, o.preset, report);
                for (int m = 0; m < page[p]->n_groups; m++) {
                    const Group *q = &page[p]->groups[m];
                    flags +=
                        !strcmp(q->what, "wrong") && q->id && strcmp(q->id, "wrong-notes") != 0;
                }
            }
            if (!flags) fail_msg("%s %s %s: no flag", bug[i].file, o.view, o.preset);
        }
    RenderOptions o = options("shards"); /* rank 0 holds what is drawn as its part */
    const Trace *t = plan_trace(g, bug[2].file, "");
    assert_non_null(strstr(all_words(g->a, draw(g, t, &o, FORMAT_SVG)), "|[:, 64:128]|"));
}

/* One thing that is wrong is the title, and a weight lies as it does, not as the plan claims. */
static void the_broken_rule_is_the_title(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *title, *box;
    } bug[] = {{"plans/bugs/07-sequence-not-cut.yaml",
                "The plan says that the input of attention_norm lies as [B, S/tp, D], it lies as "
                "[B, S, D]|",
                "declared, not done"},
               {"plans/bugs/25-packed-cut-as-one.yaml",
                "gate_up_proj lies as [(2·F)/tp, D] but is taken for [2·F/tp, D]|",
                "|packed_colwise|[(2·F)/tp, D]"},
               {"plans/bugs/01-output-left-partial.yaml",
                "After wo: a sum over tp is pending, and the value is taken for complete|",
                "|declared, not done|"},
               {"plans/bugs/03-missing-reduction.yaml", "AllReduce over tp after w2 is missing|",
                "AllReduce missing"}};
    RenderOptions o = options("block");
    for (int i = 0; i < 4; i++) {
        const char *text = all_words(g->a, draw(g, plan_trace(g, bug[i].file, ""), &o, FORMAT_SVG));
        if (strncmp(text, bug[i].title, strlen(bug[i].title)) != 0 || !strstr(text, bug[i].box))
            fail_msg("%s: not titled '%s', or no '%s', in\n%s", bug[i].file, bug[i].title,
                     bug[i].box, text);
    }
}

/* A label that lies is no step, what leaves the value so is red too, on a page of its own as well,
 * and it is not said that blocks stack; a value that goes on into a strip has one name there. */
static void a_label_is_no_step(void **state) {
    Ground *g = *state;
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = options("block");
    const Trace *t = plan_trace(g, "examples/ci/broken.yaml", "");
    const char *svg = draw(g, t, &o, FORMAT_SVG), *text = all_words(g->a, svg);
    static const char title[] =
        "The plan says that the input of attention_norm lies as [B/dp, S/sp, D], it lies as "
        "[B/dp, S, D], as w2 leaves it|";
    assert_int_equal(strncmp(text, title, sizeof title - 1), 0);
    assert_non_null(strstr(text, "|Declaration of input, step 0, line 10 of broken.yaml; w2 is in "
                                 "line 17|"));
    assert_non_null(strstr(text, "|declared, not done|"));
    assert_non_null(strstr(text, "output of the block: not laid out as x really is"));
    assert_null(strstr(text, "blocks stack"));
    assert_non_null(strstr(text, "|into Attention|"));
    const char *x = strstr(text, "|x|"), *state_x = x ? strstr(x + 1, "|x|") : NULL;
    assert_true(state_x && !strstr(state_x + 1, "|x|")); /* the pill and the stream's circle */
    assert_non_null(strstr(svg, "-wrong-0\""));          /* the label */
    assert_non_null(strstr(svg, "-wrong-27\""));         /* w2 */
    o.preset = "slide";
    int n = render_pages(t, g->d, &o, g->a, page), red = 0;
    for (int i = 0; i < n; i++) red += page[i]->wrong;
    assert_int_equal(red, 2); /* of three pages those of the label and of w2 */
}

/* What the input of the MLP's norm needs is the MLP's, though attention made it: parts count each
 * collective once, and what one draws is no other's. */
static void parts_count_once(void **state) {
    Ground *g = *state;
    static const struct {
        const char *part, *says;
    } of[] = {{"attention", "in one forward: tp 12 KiB in 1 collective (bytes leaving the GPU).|"},
              {"mlp", "in one forward: tp 24 KiB in 2 collectives (bytes leaving the GPU).|"}};
    const Trace *t = plan_trace(g, "plans/bugs/33-norm-over-own-columns.yaml", "");
    for (int i = 0; i < 2; i++) {
        RenderOptions o = options("block");
        o.part = of[i].part;
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        if (!strstr(text, of[i].says) || strstr(text, "Not drawn"))
            fail_msg("%s: '%s' is not said in\n%s", of[i].part, of[i].says, text);
    }
}

/* Steps that the mirrored picture has no place for are told all the same, and of several layers the
 * one with the mistake is drawn. */
static void wrong_steps_without_a_place(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *sentence;
    } bug[] = {
        {"plans/bugs/30-recompute-skips-a-collective.yaml",
         "Again in backward: AllGather over tp after attention_norm is missing (planted: drop)"},
        {"plans/bugs/42-norm-counts-copies.yaml",
         "In the optimizer: sum of squares of d norm is not what"},
        {"plans/bugs/43-clip-not-applied.yaml", "In the optimizer: clip of d norm is not"}};
    RenderOptions o = options("block");
    for (int i = 0; i < 3; i++) {
        const Trace *t = plan_trace(g, bug[i].file, "");
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        if (!strstr(text, bug[i].sentence))
            fail_msg("%s: '%s' is not said in\n%s", bug[i].file, bug[i].sentence, text);
        /* the rule is the title, and the line under it says more of what is missing, or the step */
        const char *title = arena_strndup(g->a, bug[i].sentence, strcspn(bug[i].sentence, "(") - 1);
        assert_true(strstr(strstr(text, title) + 1, title) || strstr(text, "|Step "));
        o.part = "attention"; /* a part speaks of itself */
        text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        assert_null(strstr(text, bug[i].sentence));
        o.part = NULL;
    }
    PlanRun r = plan_run(g->a, "three.yaml",
                         "model: {preset: llama3-8b, layers: 3, shrink: 32}\n"
                         "mesh: {tp: 2}\n"
                         "names: torchtitan\n"
                         "recipe: torchtitan-llama3\n"
                         "faults: [{at: reduce_scatter of layers.2.o_proj, do: drop}]\n",
                         false);
    if (!r.t) run_print(&r);
    const Trace *t = r.t;
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "layer 2 of 3"));
    assert_non_null(strstr(text, "ReduceScatter missing|nothing is sent|"));
    o.layer = 0;
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_null(strstr(text, "missing"));
}

/* The text form of every shipped plan fits 80 columns, and has both passes where there are both. */
static void text_fits(void **state) {
    Ground *g = *state;
    int n_held = sample_of(N_MIRRORED, "plans");
    for (int held = 0; held < n_held; held++)
        for (int k = 0; k < 2; k++) {
            int i = sample_at(held, n_held, N_MIRRORED);
            const Trace *t = plan_trace(g, mirrored[i].file, k ? "" : mirrored[i].more);
            RenderOptions o = options(k ? "overview" : "block");
            const char *text = draw(g, t, &o, FORMAT_TEXT);
            int columns = 0;
            for (const char *p = text; *p; p++) {
                columns = *p == '\n' ? 0 : columns + ((*p & 0xC0) != 0x80);
                if (columns > 80)
                    fail_msg("%s: a line of more than 80 columns before '%.60s'", mirrored[i].file,
                             p);
            }
            if (k) continue;
            assert_non_null(strstr(text, ", backward\n"));
            for (int c = 0; c < t->n_computes; c++) { /* every weight's gradient */
                const char *out = t->computes[c].output;
                if (strncmp(out, "grad.param.", 11) || t->computes[c].layer > 0) continue;
                char leaf[64];
                const char *end = strrchr(out, '.'), *dot = end;
                while (dot > out && dot[-1] != '.') dot--;
                snprintf(leaf, sizeof leaf, "%.*s", (int)(end - dot), dot);
                if (!strcmp(end, ".weight") && !strstr(text, leaf))
                    fail_msg("%s: no gradient of %s", mirrored[i].file, leaf);
            }
        }
}

/* How many collectives the lines of an overview's text name: "tp AllGather ×2, 8 KiB; ..." of a
 * unit that stands for so many layers. */
static int64_t named_on_ways(const char *text) {
    int64_t sum = 0, layers = 1;
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const char *times = strstr(line, " × ");
        if (strncmp(line, "      ", 6))
            layers = times && times < end ? strtoll(times + strlen(" × "), NULL, 10) : 1;
        else
            for (const char *p = line; p < end; p++)
                for (const CollWord *w = coll_table(); w->op; w++) {
                    size_t n = strlen(w->name);
                    if (strncmp(p, w->name, n) || p[-1] != ' ') continue;
                    const char *more = p + n + strspn(p + n, " \n");
                    if (!strncmp(more, "again ", 6)) more += 6; /* by the backward pass */
                    bool several = !strncmp(more, "×", strlen("×"));
                    sum += layers * (several ? strtoll(more + strlen("×"), NULL, 10) : 1);
                }
    }
    return sum;
}

/* The overview counts every collective of the rank once: its footer has the sums of the trace, kind
 * by kind. */
static void overview_counts_everything(void **state) {
    Ground *g = *state;
    static const char *const preset[] = {"wide", "slide", "column", "a4"}, *const kind[] = {
                                                                               "forward",
                                                                               "backward",
                                                                               "weight gradients",
                                                                               "weights"};
    int n_held = sample_of(N_MIRRORED, "plans");
    for (int held = 0; held < n_held; held++) {
        int i = sample_at(held, n_held, N_MIRRORED);
        const Trace *t = plan_trace(g, mirrored[i].file, mirrored[i].more);
        RenderOptions o = options("overview");
        for (int p = 0; p < 4; p++) {
            const char *report;
            o.preset = preset[p];
            o.theme = p % 2 ? "print" : "dark";
            int n = render_lint(t, g->d, &o, g->a, &report);
            if (n) print_message("%s %s\n%s", mirrored[i].file, preset[p], report);
            assert_int_equal(n, 0);
        }
        o.preset = NULL;
        char *text = draw(g, t, &o, FORMAT_TEXT);
        int64_t named = named_on_ways(text), all = 0;
        for (char *p = text; *p; p++)
            if (*p == '\n') *p = ' '; /* paragraphs are broken anywhere */
        bool loss = strstr(text, "Loss") != NULL;
        for (int k = 0; k < 4; k++) {
            int64_t bytes = 0, count = 0;
            const char *axis = NULL;
            bool one = true, of_loss = false; /* words are easy to foretell with a single axis */
            for (int c = 0; c < t->n_collectives; c++) {
                const TraceCollective *x = &t->collectives[c];
                bool param = !strncmp(x->value, "grad.param.", 11),
                     grad = !strncmp(x->value, "grad.", 5), weight = false;
                for (int q = 0; q < t->n_params; q++)
                    weight |= !strcmp(t->params[q].compute.name, x->value);
                int mine = param ? 2 : weight ? 3 : grad || x->pass == PHASE_BACKWARD ? 1 : 0;
                if (mine != k || (!loss && x->pass == PHASE_LOSS)) continue;
                all++;
                of_loss |= x->pass == PHASE_LOSS;
                one &= !axis || !strcmp(axis, x->axis);
                axis = x->axis;
                bytes += x->bytes_sent;
                count++;
            }
            if (!axis || !one || strchr(axis, '*')) continue;
            const char *want = arena_printf(g->a, "%s%s %s %s in %lld", kind[k],
                                            k == 0 && of_loss ? " and loss" : "", axis,
                                            bytes_text(bytes, g->a), (long long)count);
            if (!strstr(text, want))
                fail_msg("%s: '%s' is not in\n%s", mirrored[i].file, want, text);
        }
        if (named != all) /* each stands on the way of a unit or in a column, with its kind */
            fail_msg("%s: %lld of %lld collectives are named in\n%s", mirrored[i].file,
                     (long long)named, (long long)all, text);
    }
}

/* Forward of the loss beside its backward: a maximum is pending as such, the sums that are made
 * together stand together, and what feeds a row stands at it. */
static void loss_faces_its_backward(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "");
    RenderOptions o = options("block");
    o.part = "loss";
    const char *svg = draw(g, t, &o, FORMAT_SVG);
    static const char *const words[] = {"max tp pending", "Σ tp pending",
                                        "sum of exp over V, target logit", "AllReduce ×2",
                                        "d sumexp, d target [B/dp, S/cp]"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(svg, words[i])) fail_msg("'%s' is not in the loss", words[i]);
    assert_null(strstr(strstr(svg, "Σ tp pending") + 1, "Σ tp pending"));
    const char *side = strstr(svg, ">logits  [1, 16, 2004]<"); /* past the maximum */
    if (!side) fail_msg("no logits at the sum of exp");
}

/* A click on a step leads to its mirror image, a click there leads back. */
static void steps_are_linked(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "");
    RenderOptions o = options("block");
    const char *svg = draw(g, t, &o, FORMAT_SVG);
    static const char open[] = "<a xlink:href=\"#", group[] = "\">\n<g id=\"";
    int n = 0;
    for (const char *at = strstr(svg, open); at; at = strstr(at + 1, open), n++) {
        const char *to = at + sizeof open - 1, *end = strchr(to, '"'),
                   *from = end + sizeof group - 1, *stop = strchr(from, '"');
        assert_int_equal(strncmp(end, group, sizeof group - 1), 0);
        const char *back = arena_printf(g->a, "%s%.*s%s%.*s\"", open, (int)(stop - from), from,
                                        group, (int)(end - to), to);
        if (!strstr(svg, back))
            fail_msg("no link from %.*s back to %.*s", (int)(end - to), to, (int)(stop - from),
                     from);
    }
    assert_true(n >= 20 && n % 2 == 0);
}

/* Height at which a text stands where it is drawn first. */
static double height_of(const char *svg, const char *text) {
    const char *at = strstr(svg, text), *y = at;
    if (!at) fail_msg("'%s' is not drawn", text);
    while (y > svg && strncmp(y, " y=\"", 4)) y--;
    return strtod(y + 4, NULL);
}

/* Of a plan that breaks a rule, the timeline says which. */
static void no_times_where_a_rule_is_broken(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/bugs/07-sequence-not-cut.yaml", "");
    RenderOptions o = options("timeline");
    struct Scene *page[32];
    assert_int_equal(render_pages(t, g->d, &o, g->a, page), 0);
    assert_int_equal(g->d->n, 1);
    if (!strstr(g->d->item[0].message, "attention_norm")) fail_msg("%s", g->d->item[0].message);
}

/* Layers that do not begin with the first are told by their numbers. */
static void layers_have_their_numbers(void **state) {
    Ground *g = *state;
    RenderOptions o = options("block");
    const char *svg =
        draw(g, plan_trace(g, "plans/models/deepseek-v3-ep.yaml", ""), &o, FORMAT_SVG);
    assert_non_null(strstr(svg, "layer 2 of 2 to 3, the other is folded"));
}

/* Router, dispatch, experts, combine and shared expert are one strip, and the list of rows travels
 * with the rows: no strip of its own, no box that only says "gate". */
static void experts_are_one_strip(void **state) {
    Ground *g = *state;
    static const char *const passes[] = {NULL, "forward"};
    for (int i = 0; i < 4; i++) {
        const Trace *t = plan_trace(g,
                                    i < 2 ? "plans/30-mixtral-8x7b-ep-dp-cp.yaml"
                                          : "plans/models/llama4-maverick-ep.yaml",
                                    "");
        RenderOptions o = options("block");
        o.pass = passes[i % 2];
        o.layer = i < 2 ? 0 : 1;
        const char *svg = draw(g, t, &o, FORMAT_SVG);
        static const char *const stray[] = {">Router<", ">Experts<", ">MLP<", ">Input<", ">Moe<"};
        for (size_t k = 0; k < sizeof stray / sizeof *stray; k++)
            if (strstr(svg, stray[k])) fail_msg("%s in figure %d", stray[k], i);
        const char *moe = strstr(svg, ">MoE<");
        assert_non_null(moe);
        assert_null(strstr(moe + 1, ">MoE<"));
        static const char *const at[] = {"gate weights, dispatch<", ">dispatch<",
                                         ">share of the chosen, dispatch", ">dispatch<"};
        double router = height_of(svg, ">router gate"), send = height_of(svg, at[i]),
               back = height_of(svg, ">combine<");
        assert_true(router < send && send < back);
        if (i >= 2) assert_non_null(strstr(svg, "shared w1"));
        if (i == 0) assert_non_null(strstr(svg, "AllToAll rows, list ×2<"));
        if (i == 0) assert_null(strstr(all_words(g->a, svg), "|list|"));
        if (i != 1) continue;
        /* forward: the list goes with its rows, and no arrow of it ends in nothing */
        const char *text = all_words(g->a, svg);
        assert_non_null(strstr(text, "AllToAll dispatched, list ×2|"));
        assert_non_null(strstr(text, "sends 3.05 KiB|"));
        assert_non_null(strstr(text, "AllGather dispatched, list ×2|"));
        assert_non_null(strstr(text, "4 KiB + 128 B|"));
        assert_non_null(strstr(text, "needs 10 collectives"));
        assert_null(strstr(text, "the index list goes"));
    }
}

/* A wrong collective of rows stands alone, and so does that of their list, which is no list of its
 * own rows. */
static void wrong_rows_stand_alone(void **state) {
    Ground *g = *state;
    static const char *const plan[] = {"plans/bugs/50-rows-of-another-rank.yaml",
                                       "plans/bugs/81-last-experts-on-no-rank.yaml"};
    for (int i = 0; i < 2; i++) {
        RenderOptions o = options("block");
        o.pass = "forward";
        const char *text = all_words(g->a, draw(g, plan_trace(g, plan[i], ""), &o, FORMAT_SVG));
        assert_int_equal(times_said(text, "|AllToAll|"), 3);
        assert_null(strstr(text, "list ×2"));
    }
    RenderOptions o = options("block"); /* a right one that is cut in place goes with them */
    o.pass = "forward";
    const Trace *t = plan_trace(g, "plans/35-mixtral-8x7b-all-gather.yaml", "");
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_int_equal(times_said(text, "|slice dispatched, list ×2|"), 1);
    assert_int_equal(times_said(text, "|slice|"), 1);
}

/* Pages that show pieces of the layer of experts all speak of all of it. */
static void titles_agree(const char *title, const char **of_experts) {
    if (!strstr(title, "of the MoE layer")) return;
    if (*of_experts) assert_string_equal(title, *of_experts);
    *of_experts = title;
}
/* One pass alone on pages of fixed height: a ring, whose parts and hops stand many in a row, and
 * experts are divided until each page can be read, piece by piece, and no collective is lost. A
 * page takes what fits of the program: experts' backward took nine slides where five do. */
static void passes_on_pages(void **state) {
    Ground *g = *state;
    static const char *const plans[] = {
        "plans/41-llama3-8b-ring4-zigzag.yaml", "plans/42-llama3-8b-usp.yaml",
        "plans/36-mixtral-8x7b-capacity.yaml", "plans/34-llama4-scout-torchtitan.yaml"};
    static const char *const passes[] = {"forward", "backward"}, *const sizes[] = {"wide", "slide",
                                                                                   "a4"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        for (int k = 0; k < 2; k++) {
            const Trace *t = plan_trace(g, plans[i], "");
            int boxes = 0; /* and what stands in them, on the page of free height */
            for (int q = 0; q < 3; q++) {
                RenderOptions o = options("block");
                Scene *page[VIEW_MAX_PAGES];
                const char *moe = NULL;
                o.pass = passes[k], o.preset = sizes[q];
                int n = render_pages(t, g->d, &o, g->a, page), here = 0;
                assert_true(n >= 1 && (i < 3 || n <= 6));
                for (int p = 0; p < n; p++) {
                    const char *report;
                    if (scene_lint(page[p], g->a, &report)) fail_msg("%s %s", plans[i], report);
                    if (k == 1 && q == 1) titles_agree(page[p]->title, &moe);
                    for (int m = 0; m < page[p]->n_groups; m++)
                        if (!strcmp(page[p]->groups[m].what, "collective"))
                            here += times_said(page[p]->groups[m].tip, "step ");
                }
                if (q == 0) boxes = here;
                if (!boxes || here != boxes)
                    fail_msg("%s %s %s: %d of %d", plans[i], passes[k], sizes[q], here, boxes);
            }
        }
}

/* A value that stands alone is told by a word: a gradient as such, a part of a ring as one. */
static void values_have_words(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/41-llama3-8b-ring4-zigzag.yaml", "");
    static const char *const passes[] = {"forward", "backward"}, *const sizes[] = {"wide", "a4"};
    int parts = 0;
    for (int k = 0; k < 4; k++) {
        RenderOptions o = options("block");
        Scene *page[VIEW_MAX_PAGES];
        o.pass = passes[k % 2], o.preset = sizes[k / 2];
        int n = render_pages(t, g->d, &o, g->a, page), gradients = 0;
        for (int p = 0; p < n; p++)
            for (int m = 0; m < page[p]->n_marks; m++) {
                const Mark *mark = &page[p]->marks[m];
                if (mark->kind != MARK_TEXT || mark->n_run != 1) continue;
                const char *text = mark->run[0].s;
                if (!text[strspn(text, "0123456789")]) fail_msg("a name is \"%s\"", text);
                parts += strstr(text, "attn_part.") || strstr(text, "attn_merge.");
                gradients += !strncmp(text, "gradient of ", 12);
                if (k % 2) assert_string_not_equal(text, "output");
            }
        assert_int_equal(gradients > 0, k % 2);
    }
    assert_true(parts > 0);
}

/* Two lines of a pass alone that cross: one runs over the other, and where both cross near a sum
 * (of a ring's backward, into which later blocks add) there is room to see it. */
static void crossings_have_bridges(void **state) {
    Ground *g = *state;
    static const struct {
        const char *plan, *pass;
        int least;
    } pic[] = {{"plans/41-llama3-8b-ring4-zigzag.yaml", "backward", 3},
               {"plans/54-deepseek-v3-latent-ring4.yaml", "backward", 6},
               {"plans/56-gpt-oss-20b-tp2-ep2.yaml", "forward", 2}};
    for (size_t i = 0; i < sizeof pic / sizeof *pic; i++) {
        const Trace *t = plan_trace(g, pic[i].plan, "");
        RenderOptions o = options("block");
        Scene *page[VIEW_MAX_PAGES];
        o.pass = pic[i].pass;
        int n = 0;
        assert_int_equal(render_pages(t, g->d, &o, g->a, page), 1);
        for (int k = 0; k < page[0]->n_groups; k++)
            n += !strncmp(page[0]->groups[k].id, "bridge", 6);
        if (n < pic[i].least) fail_msg("%s: %d bridges", pic[i].plan, n);
    }
}

/* A line round a box of its own column keeps close to it, on this side of the next column. */
static void lines_keep_close(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/56-gpt-oss-20b-tp2-ep2.yaml", "");
    static const char *const sizes[] = {"wide", "slide"};
    for (int k = 0; k < 2; k++) {
        RenderOptions o = options("block");
        Scene *page[VIEW_MAX_PAGES];
        double lo = 1e9, hi = 0;
        o.pass = "forward", o.preset = sizes[k];
        assert_true(render_pages(t, g->d, &o, g->a, page) > k);
        for (int m = 0; m < page[k]->n_marks; m++) {
            const Mark *line = &page[k]->marks[m];
            if (line->kind != MARK_LINE || line->group < 0 ||
                !strstr(page[k]->groups[line->group].id, "router_logits"))
                continue;
            for (int q = 0; q < line->n; q++)
                lo = fmin(lo, line->pt[q].x), hi = fmax(hi, line->pt[q].x);
        }
        assert_true(hi > lo);
        if (hi - lo > 150) fail_msg("%s: a way of %g", sizes[k], hi - lo);
    }
}

/* One vocabulary in the mirror: what is kept is called by the modules and circles of the figure, a
 * gradient of a longer name is told apart from a word ("dup"), and no name is cut. */
static void mirror_has_one_vocabulary(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/38-llama4-scout-reorderer.yaml", "");
    RenderOptions o = options("block");
    const char *svg = draw(g, t, &o, FORMAT_SVG);
    static const char *const said[] = {">after attention_norm  10 KiB<",
                                       ">after ffn_norm  10 KiB<",
                                       ">x  5 KiB<",
                                       ">h  5 KiB<",
                                       ">q, k, v  28 KiB<",
                                       ">d shared w1 w3<",
                                       ">d dispatched [rows(B/(dp·tp), S, E), D]<"},
                             *const not_said[] = {"…", ">dup", ">ddispatched", ">input_norm  "};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (!strstr(svg, said[i])) fail_msg("not said: %s", said[i]);
    for (size_t i = 0; i < sizeof not_said / sizeof *not_said; i++)
        if (strstr(svg, not_said[i])) fail_msg("said: %s", not_said[i]);
    /* the head's norm keeps the end of the stream, and `output` is a weight's box */
    t = plan_trace(g, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "");
    svg = draw(g, t, &o, FORMAT_SVG);
    assert_non_null(strstr(svg, ">y  "));
    assert_null(strstr(svg, ">output  "));
}

/* The losses of a router are no second layer of experts: both pictures say what they are. */
static void router_losses_are_told(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/30-mixtral-8x7b-ep-dp-cp.yaml",
                                "moe: {aux_loss: exact, aux_coef: 0.1, z_coef: 0.01}\n");
    static const char *const passes[] = {NULL, "forward"};
    for (int i = 0; i < 2; i++) {
        RenderOptions o = options("block");
        o.pass = passes[i];
        const char *svg = draw(g, t, &o, FORMAT_SVG), *moe = strstr(svg, ">MoE<");
        assert_non_null(moe);
        assert_null(strstr(moe + 1, ">MoE<"));
        assert_non_null(strstr(svg, ">MoE: terms of the loss<"));
    }
}

/* The reason of a reduction names the letters that are cut, not those of the last op that adds:
 * what the experts of a rank lack is their own width, or the experts of others. */
static void sums_say_over_what(void **state) {
    Ground *g = *state;
    static const struct {
        const char *plan, *value, *letter;
    } row[] = {
        {"plans/43-llama4-maverick-six-diagrams.yaml", "layers.1.moe.output", "over Fe is pending"},
        {"plans/31-mixtral-8x7b-tp.yaml", "layers.0.moe.routed", "over F is pending"},
        {"plans/32-mixtral-8x7b-ep-masked.yaml", "layers.0.moe.routed", "over E is pending"},
        {"plans/04-llama3-8b-tp4.yaml", "layers.0.o_proj", "over H*d is pending"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const Trace *t = plan_trace(g, row[i].plan, "");
        int found = 0;
        for (int k = 0; k < t->n_collectives; k++)
            if (!strcmp(t->collectives[k].value, row[i].value) && t->collectives[k].reduce)
                found += strstr(t->collectives[k].why, row[i].letter) != NULL;
        if (found != 1) fail_msg("%s: no sum %s", row[i].plan, row[i].letter);
    }
}

/* Beside its routed experts a shared one has rows of its own: no box holds both, the value with
 * which it begins stands at both ends, and the sum reads what the routed ones gave. */
static void shared_experts_have_rows(void **state) {
    Ground *g = *state;
    static const struct {
        const char *plan, *down, *norm;
    } row[] = {{"plans/34-llama4-scout-torchtitan.yaml", "|shared w2|", "ffn_norm"},
               {"plans/38-llama4-scout-reorderer.yaml", "|shared w2|", "ffn_norm"},
               {"plans/models/llama4-hf.yaml", "|down_proj|", "post_attention_layernorm"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const Trace *t = plan_trace(g, row[i].plan, "");
        RenderOptions o = options("block");
        o.part = "moe";
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        assert_non_null(strstr(text, "|share of the chosen, dispatch|"));
        assert_non_null(strstr(text, "|sigmoid, top-k|"));
        assert_non_null(strstr(text, arena_printf(g->a, "|after %s|", row[i].norm)));
        assert_non_null(strstr(text, arena_printf(g->a, "|gradient after %s|", row[i].norm)));
        assert_null(strstr(text, "post_attn_norm"));
        assert_non_null(strstr(text, "|routed ["));
        assert_non_null(strstr(text, "|d routed ["));
        assert_null(strstr(text, "router gate shared w1"));
        const char *svg =
            draw(g, t, &o, FORMAT_SVG); /* lines lead there and away, in both passes */
        assert_int_equal(times_said(svg, "-rail"), 4);
        assert_non_null(strstr(text, row[i].down));
    }
}

/* On slides a part of a part says which it is, where its values come from and what becomes of them:
 * no arrow ends without a name, none of another value. */
static void parts_of_parts_on_slides(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/34-llama4-scout-torchtitan.yaml", "");
    RenderOptions o = options("block");
    o.preset = "slide";
    o.page = 3;
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "MoE, 2 of 3: the backward pass beside the forward pass|"));
    assert_non_null(strstr(text, "|routed|"));
    assert_non_null(strstr(text, "|d routed|"));
    assert_null(strstr(text, "|down|"));
    o.page = 4;
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "|+ h gives y|"));
    assert_non_null(strstr(text, "|the same as dy|"));
    o.pass = "backward";
    o.page = 1;
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "MoE, 1 of 3: "));
    assert_int_equal(times_said(text, "|gradient after ffn_norm|"), 2);
    o.page = 4; /* attention fits, and nothing flows out of its norm */
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "|AllReduce d attention_norm|"));
    assert_null(strstr(text, "|320 B|"));
}

/* A stage of a pipeline shows its own layers: what comes from another is said where it goes on, and
 * no layer that the rank does not have stands there for the sake of a message. */
static void overview_of_a_stage(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/46-llama3-8b-pp2-zb-v.yaml", "");
    RenderOptions o = options("overview");
    for (int rank = 0; rank < 2; rank++) {
        o.rank = rank;
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        assert_non_null(strstr(text, "2 of 32 layers|"));
        assert_non_null(strstr(text, "|forward|backward|")); /* each column has its head */
        assert_null(strstr(text, "0 ops"));
        /* layers 1 and 2 follow on one rank, with no message in between */
        assert_non_null(strstr(text, rank ? "|layers 1 to 2|" : "|layer 0|"));
        assert_non_null(strstr(text, rank ? "|× 2|" : "|layer 3|"));
        assert_null(strstr(text, rank ? "|layer 3|" : "|layer 2|"));
        static const char *const messages[2][2] = {{"|To rank 1, 8 KiB|", "|From rank 1|"},
                                                   {"|From rank 0|", "|To rank 0, 8 KiB|"}};
        const char *first = strstr(text, messages[rank][0]);
        assert_non_null(first);
        assert_non_null(strstr(first, messages[rank][1]));
    }
}

/* Of several collectives that travel together the one that is missing is named. */
static void one_of_two_is_missing(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/bugs/60-a-hop-left-out.yaml", "");
    RenderOptions o = options("block");
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_int_equal(times_said(text, "|Shift, k missing|"), 1);
    assert_null(strstr(text, "×2 missing"));
}

/* So does the block: what comes from another stage and what goes there, with the side of the rank,
 * also where the message is of the layer before; nothing of it is called a part of the model. */
static void block_of_a_stage(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/45-llama3-8b-pp4-1f1b.yaml", "");
    RenderOptions o = options("block");
    for (o.rank = 0; o.rank < 4; o.rank++) {
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        bool from = o.rank > 0, to = o.rank < 3;
        assert_non_null(strstr(text, ": in the layer nothing is sent|"));
        assert_null(strstr(text, "another stage")); /* whom with is known, as in the overview */
        assert_int_equal(
            times_said(text, arena_printf(g->a, "|From rank %lld|", (long long)o.rank - 1)), from);
        assert_int_equal(
            times_said(text, arena_printf(g->a, "|To rank %lld|", (long long)o.rank + 1)), to);
        assert_int_equal(times_said(text, "|Send|"), from + to); /* of a value, and of a gradient */
        assert_int_equal(times_said(text, "|Receive|"), from + to);
        /* each message has its shape at the rank's side, the gradient that comes as well */
        assert_int_equal(times_said(text, "[1, 16, 128]   8 KiB|"), to ? 16 : 18);
        assert_non_null(strstr(
            text, arena_printf(g->a, "|Sent by rank %lld: forward %s; backward ", (long long)o.rank,
                               to ? "pp 8 KiB in 1 message" : "nothing over pp")));
        assert_non_null(strstr(text, !from ? "; backward nothing over pp."
                                     : to  ? "; backward pp 8 KiB in 1."
                                           : "; backward pp 8 KiB in 1 message."));
    }
    o.rank = 1; /* a message stands on the slide of what it comes before, or behind */
    o.preset = "slide";
    const char *slide = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(slide, "Attention, from rank 0: in the layer nothing is sent|"));
    assert_int_equal(times_said(slide, "|Receive|") + times_said(slide, "|Send|"), 2);
    assert_non_null(strstr(slide, "|Sent by rank 1: forward nothing, backward 8 KiB.|"));
    o.page = 2;
    assert_non_null(strstr(all_words(g->a, draw(g, t, &o, FORMAT_SVG)),
                           "MLP, to rank 2: in the layer nothing is sent|"));
    o.page = 0;
    o.preset = NULL;
    o.pass = "backward"; /* of its own layer, with the sum of what it sends back */
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG)),
               *norm = strstr(text, "|with saved x|");
    assert_non_null(strstr(text, "needs 2 messages and sends 8 KiB|"));
    assert_non_null(norm);
    assert_non_null(strstr(norm, "|dx|gradient of the block's input|"));
    assert_non_null(strstr(norm, "|Send|"));
    assert_null(strstr(norm, "|MLP|"));
}

/* Into a hop of a ring go keys and values, past the partial attention that only reads them, and not
 * its output alone; back their gradients. */
static void hops_carry_keys(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/41-llama3-8b-ring4-zigzag.yaml", "");
    RenderOptions o = options("block");
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    /* round the steps on the block before; what is merged with the next passes the hop */
    assert_int_equal(times_said(text, "|k, v|"), 1); /* hops 2 and 3 are a band */
    assert_int_equal(times_said(text, "|attn_part.0|"), 1);
    assert_int_equal(times_said(text, "|d attn_merge.1|"), 1);
    assert_int_equal(times_said(text, "|dk, dv [B, S/cp, K, d]|"), 4);
}

/* Round a ring the work with one block stands together, in both passes: between two hops there are
 * the steps that read what the first brings, a gap has few shapes, and hops of one value stand in
 * one column, however many there are. */
static void a_ring_reads_from_block_to_block(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *pass, *between;
        int hops;
        double w;
    } row[] = {{"plans/41-llama3-8b-ring4-zigzag.yaml", NULL,
                "Shift k, v ×2|part 1 of attention|merge|without lse|", 2, 1e9},
               {"plans/54-deepseek-v3-latent-ring4.yaml", NULL,
                "Shift ×2|wkv_b|split|part 1 of attention|merge|without lse|", 2, 1e9},
               {"plans/41-llama3-8b-ring4-zigzag.yaml", "forward", NULL, 1, 1640},
               {"plans/54-deepseek-v3-latent-ring4.yaml", "forward", NULL, 1, 1673},
               {"plans/41-llama3-8b-ring4-zigzag.yaml", "backward", NULL, 1, 1850},
               {"plans/54-deepseek-v3-latent-ring4.yaml", "backward", NULL, 2, 2480}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const Trace *t = plan_trace(g, row[i].file, "");
        RenderOptions o = options("block");
        Scene *page[VIEW_MAX_PAGES];
        Str boxes = str_new(g->a);
        double x[32];
        int places = 0, hops = 0;
        o.pass = row[i].pass;
        assert_int_equal(render_pages(t, g->d, &o, g->a, page), 1);
        for (int m = 0; m < page[0]->n_marks; m++) {
            const Mark *mark = &page[0]->marks[m];
            if (mark->kind != MARK_TEXT || mark->group < 0) continue;
            const char *what = page[0]->groups[mark->group].what;
            if (strcmp(what, "compute") && strcmp(what, "collective")) continue;
            if (mark->x < page[0]->w / 3) str_addf(&boxes, "%s|", mark->run[0].s);
            if (strncmp(mark->run[0].s, "Shift", 5)) continue;
            int k = 0;
            for (hops++; k < places && x[k] != mark->x; k++) continue;
            if (k == places && places < 32) x[places++] = mark->x;
        }
        if (row[i].between && !strstr(boxes.s, row[i].between))
            fail_msg("%s: '%s' is not in %s", row[i].file, row[i].between, boxes.s);
        assert_int_equal(places, row[i].pass ? row[i].hops : 2);
        assert_int_equal(hops, row[i].hops);
        if (page[0]->w >= row[i].w) fail_msg("%s is %g wide", row[i].file, page[0]->w);
    }
}

/* Pages of a divided part hand on what passes between them in both passes: what one reads of
 * another comes in at the left, and its gradient leaves at the right. */
static void pages_hand_gradients_on(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/34-llama4-scout-torchtitan.yaml", "");
    RenderOptions o = options("block");
    Scene *page[VIEW_MAX_PAGES];
    o.preset = "slide";
    int n = render_pages(t, g->d, &o, g->a, page), in = 0, out = 0;
    for (int p = 0; p < n; p++)
        for (int m = 0; m < page[p]->n_marks; m++) {
            const Mark *mark = &page[p]->marks[m];
            if (mark->kind != MARK_TEXT) continue;
            in += !strcmp(mark->run[0].s, "weights  [16]");
            out += !strcmp(mark->run[0].s, "d weights  [16]");
        }
    assert_int_equal(in, 1);
    assert_int_equal(out, 1);
}

/* What the page of weights says of its marks is said where they are: of boxes across rows. */
static void keys_speak_of_what_is_there(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file;
        bool across;
    } plan[] = {{"plans/19-llama3-8b-fsdp4.yaml", false},
                {"plans/20-llama3-8b-fsdp-tp.yaml", true},
                {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", false}};
    for (int i = 0; i < 3; i++) {
        const Trace *t = plan_trace(g, plan[i].file, "");
        RenderOptions o = options("block");
        o.part = "weights";
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        if (!strstr(text, "A box across several rows") == plan[i].across)
            fail_msg("%s: %s", plan[i].file, text);
    }
}

/* The head has one word for what comes out of it, and another for its weight. */
static void the_head_makes_logits(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "");
    static const char *const passes[] = {NULL, "forward", "backward"};
    for (int i = 0; i < 3; i++) {
        RenderOptions o = options("block");
        o.part = "head", o.pass = passes[i];
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        assert_int_equal(times_said(text, "|logits|"), i < 2);
        assert_int_equal(times_said(text, "|d logits|"), i != 1);
        assert_int_equal(times_said(text, "|d output|") + times_said(text, "AllReduce d output|"),
                         i != 1);
        assert_null(strstr(text, "after output"));
    }
    RenderOptions o = options("block"); /* begins within the loss: no part of it alone */
    o.part = "loss", o.pass = "backward";
    size_t n;
    assert_null(render_text(t, g->d, &o, FORMAT_SVG, g->a, &n));
    const Diag *d = &g->d->item[g->d->n - 1];
    assert_string_equal(d->code, "E0212");
    assert_string_equal(d->message, "the backward pass has no part 'loss'");
    assert_non_null(strstr(d->hint, "parts: embedding, attention, mlp, head"));
    assert_null(strstr(d->hint, "head, loss"));
}

/* A bias, of experts too, passes the gradient on and multiplies nothing; a parameter that is
 * neither weight nor bias is called by its own name. Weights of shared experts say so once in a
 * list. */
static void a_bias_passes_the_gradient_on(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/56-gpt-oss-20b-tp2-ep2.yaml", "");
    RenderOptions o = options("block");
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_int_equal(times_said(text, "|dx = dy|"), 3);
    assert_null(strstr(text, "via gate_up_proj_bias"));
    assert_non_null(strstr(text, "|d gate_up_proj_bias|"));
    assert_non_null(strstr(text, "|d sinks|"));
    t = plan_trace(g, "plans/34-llama4-scout-torchtitan.yaml", "");
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "|shared w1 w3|"));
    assert_non_null(strstr(text, "|dx via shared w1 w3|"));
    assert_non_null(strstr(text, "|d shared w1 w3|"));
}

/* The backward pass alone: the stream of gradients runs through its parts, and the gradient of each
 * parameter leaves at the box that makes it, with every collective that ends it, once: those of two
 * that stand in one box, of keys and values, in one hexagon that says so. */
static void gradients_leave_the_stream(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *stream[3];
    } plan[] = {
        {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
         {"|dy|MLP|", "|ReduceScatter dk, dv ×2|", "|AllReduce dwk dwv ×2|dp·cp · sends 48 KiB|"}},
        {"plans/20-llama3-8b-fsdp-tp.yaml",
         {"|dy|MLP|", "|dh|Attention|", "|ReduceScatter dw2 and 8 more|dp·cp · sends "}},
        {"plans/14-qwen2-bias-tp2.yaml",
         {"|dy|MLP|", "|dh|gradient of the hidden state, also what comes to attention|",
          " bias|nothing to add|"}},
        {"plans/38-llama4-scout-reorderer.yaml",
         {"|dy|MoE|", "|AllReduce d router gate|dp · sends ", "|dw1|nothing to add|"}}};
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
        RenderOptions o = options("block");
        Scene *page[VIEW_MAX_PAGES];
        const Trace *t = plan_trace(g, plan[i].file, i == 2 ? "pass: backward\n" : "");
        o.pass = "backward";
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        for (int k = 0; k < 3; k++)
            if (!strstr(text, plan[i].stream[k])) fail_msg("%s: %s", plan[i].stream[k], text);
        assert_int_equal(render_pages(t, g->d, &o, g->a, page), 1);
        int drawn = 0;
        for (int c = 0; c < t->n_collectives; c++) {
            const TraceCollective *x = &t->collectives[c];
            int times = 0;
            if (x->pass != PHASE_GRADIENTS || x->layer != 0 || groups_with(&x->groups, 0) < 0)
                continue;
            for (int m = 0; m < page[0]->n_groups; m++)
                times += !strcmp(page[0]->groups[m].what, "collective") &&
                         strstr(arena_printf(g->a, "\n%s", page[0]->groups[m].tip),
                                arena_printf(g->a, "\nstep %d: ", x->step));
            assert_int_equal(times, 1);
            drawn++;
        }
        assert_true(i == 2 || drawn > 2);
    }
}

/* Shared experts stand on the stream of their part, beside the routed ones, up to the sum of uses,
 * whatever collective lies between; where the layer's input has no gradient the stream ends, and is
 * drawn up to there. Of twins in one box the gradients of both leave. */
/* What a row makes for two readers, one of which only adds it to the gradients of other uses, goes
 * round the box of the other to a sum of its own: the experts' rows round the router. */
static void a_term_goes_round_to_its_sum(void **state) {
    Ground *g = *state;
    static const char *const file[] = {"plans/30-mixtral-8x7b-ep-dp-cp.yaml",
                                       "plans/33-qwen3-30b-a3b-ep.yaml",
                                       "plans/56-gpt-oss-20b-tp2-ep2.yaml"};
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        RenderOptions o = options("block");
        const char *svg = draw(g, plan_trace(g, file[i], ""), &o, FORMAT_SVG);
        int sums = 0;
        for (const char *p = strstr(svg, "-plus"); p; p = strstr(p + 1, "-plus")) {
            const char *end = strstr(p, "</title>"),
                       *tip = strstr(p, "<title>grad.layers.0.post_attn_norm");
            sums += tip && end && tip < end;
        }
        if (!sums) fail_msg("%s: no sum of the gradient of post_attn_norm", file[i]);
    }
}
static void shared_experts_join_the_stream(void **state) {
    Ground *g = *state;
    static const char *const file[] = {"plans/33-qwen3-30b-a3b-ep.yaml",
                                       "plans/34-llama4-scout-torchtitan.yaml",
                                       "plans/38-llama4-scout-reorderer.yaml"};
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        RenderOptions o = options("block");
        o.pass = "backward";
        const Trace *t = plan_trace(g, file[i], "");
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        assert_int_equal(times_said(text, "|MoE|"), 1);
        assert_non_null(strstr(text, "|dy|MoE|"));
        assert_non_null(strstr(text, "also what comes to attention|"));
        assert_non_null(strstr(text, "|dh|Attention|"));
        assert_non_null(strstr(text, "|what comes in has no gradient: the stream ends here|"));
        assert_int_equal(times_said(text, "|gradient of post_attn_norm|"), 0);
        assert_int_equal(times_said(text, "|gradient of resid_attn|"), 0);
        assert_int_equal(times_said(text, "|multiply′|"), i ? 2 : 1); /* one box per product */
        if (i == 1) assert_non_null(strstr(text, "|dwk dwv|nothing to add|"));
    }
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}
/* What stands between any of `ends`, in the order of the alphabet, each digit as '#'. */
static const char *masked(Arena *a, const char *text, const char *ends) {
    char *copy = arena_strdup(a, text), **part = NULL;
    int n = 0, cap = 0;
    for (char *p = copy; *p; p++)
        if (*p >= '0' && *p <= '9') *p = '#';
    for (char *save, *p = strtok_r(copy, ends, &save); p; p = strtok_r(NULL, ends, &save))
        *ARENA_PUSH(a, part, n, cap) = p;
    qsort(part, (size_t)n, sizeof *part, by_text);
    Str s = str_new(a);
    for (int i = 0; i < n; i++) str_addf(&s, "%s\n", part[i]);
    return s.s;
}
/* DualPipe has every value twice under one name, on mirrored ranks. Both ranks' figures of a layer
 * say the same: none looks at the other way's records, of which a rank has nothing. */
static void both_ways_say_the_same(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/52-llama3-8b-pp4-dualpipe.yaml", "");
    static const struct {
        const char *view, *pass;
    } row[] = {{"block", NULL},  {"block", "forward"}, {"block", "backward"},
               {"shards", NULL}, {"overview", NULL},   {"overview", "backward"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int k = 0; k < 4; k++) {
            RenderOptions o = options(row[i].view);
            o.pass = row[i].pass;
            const char *text[2];
            for (int end = 0; end < 2; end++) {
                o.rank = end ? 3 - k / 2 : k / 2;
                const char *all = draw(g, t, &o, k % 2 ? FORMAT_TEXT : FORMAT_SVG);
                if (k % 2 == 0) all = all_words(g->a, all);
                assert_null(strstr(all, "loss_weights  0 B"));              /* it is there */
                if (i == 2) assert_null(strstr(all, "gradient of weight")); /* no steps of it */
                text[end] = masked(g->a, all, k % 2 ? "\n" : "|");
            }
            if (strcmp(text[0], text[1]) != 0)
                fail_msg("%s %s of rank %d\n%s\nof rank %d\n%s", row[i].view,
                         row[i].pass ? row[i].pass : "", k / 2, text[0], 3 - k / 2, text[1]);
        }
}

/* Of blocks without a head the loss reads what the stream ends in: a way leads into its box, and
 * one number out of it. */
static void stream_comes_to_the_loss(void **state) {
    Ground *g = *state;
    RenderOptions o = options("overview");
    Scene *page[VIEW_MAX_PAGES];
    const Trace *t = plan_trace(g, "plans/21-llama3-8b-recompute.yaml", "");
    assert_non_null(strstr(all_words(g->a, draw(g, t, &o, FORMAT_SVG)), "|one number|4 B|"));
    assert_int_equal(render_pages(t, g->d, &o, g->a, page), 1);
    int box = -1, into = 0;
    for (int i = 0; i < page[0]->n_groups; i++)
        if (!strcmp(page[0]->groups[i].id, "part-Loss--1")) box = i;
    assert_true(box >= 0);
    for (int i = 0; i < page[0]->n_arrows; i++) into += page[0]->arrows[i].to == box;
    assert_int_equal(into, 1);
}

/* A norm with a bias is one norm, though product and bias are two steps. */
static void overview_counts_a_norm_once(void **state) {
    Ground *g = *state;
    PlanRun r = plan_run_with(
        g->a, "gpt2.yaml",
        "model: {config: {model_type: gpt2, n_embd: 12, n_inner: 48, n_layer: 1, n_head: 2,\n"
        "  vocab_size: 32, n_positions: 16}}\n"
        "data: {batch: 2, sequence: 8, dtype: f32}\nmesh: {tp: 2}\nplan: {}\n",
        &(PipelineOptions){.events = true});
    assert_non_null(r.t);
    RenderOptions o = options("overview");
    const char *text = all_words(g->a, draw(g, r.t, &o, FORMAT_SVG));
    assert_int_equal(times_said(text, "|norm|"), 2); /* before attention and before the MLP */
}

/* The backward pass of wrong plans: flags of collectives of weight gradients touch no label, words
 * beside a collective no pill; and a page of more columns than any block has stands. */
static void wrong_passes_are_clean(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *pass;
        int least; /* flags */
    } row[] = {{"plans/bugs/08-norm-gradient-not-summed.yaml", "backward", 1},
               {"plans/bugs/10-gradient-summed-where-not-due.yaml", "backward", 1},
               {"plans/bugs/13-gradient-not-summed-over-dp.yaml", "backward", 1},
               {"plans/bugs/14-divided-by-the-ranks-again.yaml", "backward", 1},
               {"plans/bugs/65-ulysses-heads-of-another-rank.yaml", "backward", 0},
               {"plans/bugs/42-norm-counts-copies.yaml", "optimizer", 1}};
    for (size_t i = 0; i < 4 * sizeof row / sizeof *row; i++) {
        const bool wide = !strcmp(row[i / 4].pass, "optimizer");
        const Trace *t = ground_trace(g, row[i / 4].file, "", true);
        RenderOptions o = options("block");
        o.preset = presets[i % 4].name, o.pass = row[i / 4].pass;
        Scene *page[VIEW_MAX_PAGES];
        int n = render_pages(t, g->d, &o, g->a, page), flags = 0;
        const char *report;
        assert_true(n > 0);
        for (int k = 0; k < page[0]->n_marks; k++)
            flags += page[0]->marks[k].kind == MARK_CIRCLE && page[0]->marks[k].fill == ROLE_FAIL;
        if (i % 4 < 2) assert_true(flags >= row[i / 4].least);
        if (!wide && render_lint(t, g->d, &o, g->a, &report))
            fail_msg("%s, %s: %s", row[i / 4].file, o.preset, report);
    }
}
/* A slide has the boxes of norms, or says that it has none. */
static void slides_tell_of_norms(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file;
        int boxes;
    } row[] = {{"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", 2},
               {"plans/34-llama4-scout-torchtitan.yaml", 2},
               {"plans/20-llama3-8b-fsdp-tp.yaml", 0},
               {"plans/33-qwen3-30b-a3b-ep.yaml", 2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const Trace *t = ground_trace(g, row[i].file, "", true);
        RenderOptions o = options("overview");
        o.preset = "slide";
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG)), *report;
        assert_int_equal(times_said(text, "|norm|"), row[i].boxes);
        assert_true((strstr(text, "norms are not drawn") != NULL) == !row[i].boxes);
        if (render_lint(t, g->d, &o, g->a, &report)) fail_msg("%s: %s", row[i].file, report);
    }
}

/* ---- sums of several uses: every gradient leaves the row that made it as that row left it ---- */

/* Does the backward of the row make the gradient `name` at that step (-1: at any)? */
static bool made_by(const MirrorRow *r, const char *name, int step) {
    bool made = false;
    for (int k = 0; k < r->n_back; k++)
        made |= (step < 0 || r->back[k].f->step == step) && !strcmp(r->back[k].f->output, name);
    for (int k = 0; k < r->n_conj; k++)
        made |= (step < 0 || r->conj[k]->step == step) && !strcmp(r->conj[k]->value, name);
    for (int k = 0; k < r->n_back_move; k++)
        made |=
            (step < 0 || r->back_move[k]->step == step) && !strcmp(r->back_move[k]->value, name);
    return made;
}
/* Row `r` changes, without computing, what another step made: that step's row is the next one below
 * that makes the gradient at all. */
static void stands_by_maker(const char *file, const MirrorStrip *s, int r, const char *name,
                            int step, int from) {
    if (made_by(&s->row[r], name, from)) return;
    for (int k = r + 1; k < s->n; k++)
        if (made_by(&s->row[k], name, -1)) {
            if (!made_by(&s->row[k], name, from))
                fail_msg("%s: step %d (%s) does not stand above what made step %d", file, step,
                         name, from);
            return;
        }
    if (strcmp(name + strlen("grad."), s->branch))
        fail_msg("%s: step %d (%s) stands above nothing that makes it", file, step, name);
}
/* What rises from row r + 1 was made there. Returns the number of partial sums among it. */
static int rises_as_made(const char *file, const Mirror *m, const MirrorStrip *s, int r) {
    const TraceValue *v[MIRROR_FLOW];
    int n = mirror_flow(m, s, r, true, v, MIRROR_FLOW), partial = 0;
    for (int i = 0; i < n && r + 1 < s->n; i++) {
        const char *name = v[i]->shape.name;
        if (s->row[r + 1].kind == ROW_FROM || !made_by(&s->row[r + 1], name, -1)) continue;
        if (!made_by(&s->row[r + 1], name, v[i]->step))
            fail_msg("%s: %s of step %d rises from a row that does not make it", file, name,
                     v[i]->step);
        partial += v[i]->shape.pending && *v[i]->shape.pending;
    }
    return partial;
}
static int times_drawn(const Mirror *m, const TraceCollective *c) {
    int n = 0;
    for (int i = 0; i < m->n; i++)
        for (int r = 0; r < m->strip[i].n; r++)
            for (int k = 0; k < m->strip[i].row[r].n_conj; k++)
                n += m->strip[i].row[r].conj[k] == c;
    return n;
}
static int made_in(const Mirror *m, const char *name, int step) {
    int n = 0;
    for (int i = 0; i < m->n; i++)
        for (int r = 0; r < m->strip[i].n; r++) n += made_by(&m->strip[i].row[r], name, step);
    return n;
}
static int hold_mirror(const char *file, const Mirror *m) {
    const Trace *t = m->g->t;
    int partial = 0;
    for (int i = 0; i < m->n; i++)
        for (int r = 0; r < m->strip[i].n; r++) {
            const MirrorStrip *s = &m->strip[i];
            partial += rises_as_made(file, m, s, r - 1);
            for (int k = 0; k < s->row[r].n_conj; k++)
                stands_by_maker(file, s, r, s->row[r].conj[k]->value, s->row[r].conj[k]->step,
                                s->row[r].conj[k]->value_step);
            for (int k = 0; k < s->row[r].n_back_move; k++)
                stands_by_maker(file, s, r, s->row[r].back_move[k]->value,
                                s->row[r].back_move[k]->step, s->row[r].back_move[k]->value_step);
        }
    for (int k = 0; k < t->n_collectives; k++) {
        const TraceCollective *c = &t->collectives[k];
        bool grad = c->pass == PHASE_BACKWARD && c->subject.role == OF_GRADIENT;
        int due = grad ? made_in(m, c->value, c->value_step) : 0, is = times_drawn(m, c);
        if (due && is != 1)
            fail_msg("%s: %s of %s (step %d) stands %d times", file, c->op, c->value, c->step, is);
    }
    return partial;
}
/* An op stands below those whose results it reads: experts' products above their biases. */
static void hold_order(const char *file, const Mirror *m) {
    for (int i = 0; i < m->n; i++)
        for (int r = 0; r < m->strip[i].n; r++)
            for (int k = r + 1; k < m->strip[i].n; k++) {
                const MirrorRow *up = &m->strip[i].row[r], *low = &m->strip[i].row[k];
                for (int x = 0; x < up->n_op; x++)
                    for (int y = 0; y < low->n_op; y++)
                        for (int q = 0; q < up->op[x].f->n_inputs; q++)
                            if (!strcmp(up->op[x].f->inputs[q], low->op[y].f->output))
                                fail_msg("%s: %s stands above what it reads, %s", file,
                                         up->op[x].f->output, low->op[y].f->output);
            }
}
static void partial_sums_leave_their_row(void **state) {
    Ground *g = *state;
    static const char *const file[] = {
        "plans/32-mixtral-8x7b-ep-masked.yaml", "plans/34-llama4-scout-torchtitan.yaml",
        "plans/30-mixtral-8x7b-ep-dp-cp.yaml",  "plans/31-mixtral-8x7b-tp.yaml",
        "plans/33-qwen3-30b-a3b-ep.yaml",       "plans/35-mixtral-8x7b-all-gather.yaml",
        "plans/36-mixtral-8x7b-capacity.yaml",  "plans/37-qwen3-30b-a3b-ep-etp.yaml",
        "plans/38-llama4-scout-reorderer.yaml", "plans/39-mixtral-8x7b-hf-ep.yaml",
        "plans/56-gpt-oss-20b-tp2-ep2.yaml",    "plans/18-llama3-8b-backward.yaml",
        "plans/20-llama3-8b-fsdp-tp.yaml",      "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
        "plans/42-llama3-8b-usp.yaml",          "plans/models/llama4-hf.yaml"};
    int partial = 0;
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        const Trace *t = plan_trace(g, file[i], "");
        RenderOptions o = options("block");
        for (int part = 0; part < 2; part++) {
            o.part = part ? "attention" : i < 11 ? "moe" : NULL;
            ViewCall call = {.t = t, .d = g->d, .o = &o, .arena = g->a};
            const Mirror *m = mirror_new(block_read_trace(&call));
            assert_non_null(m);
            partial += hold_mirror(file[i], m);
            hold_order(file[i], m);
            for (int most = 4; most < 10; most++) {
                MirrorCut cut[BLOCK_MAX_STRIPS];
                for (int k = 0; k < m->n; k++) cut[k] = (MirrorCut){most, most % 2 == 0};
                const Mirror *d = mirror_divide(g->a, m, cut);
                for (int k = 0; k < d->n; k++)
                    for (int r = -1; r + 1 < d->strip[k].n; r++)
                        rises_as_made(file[i], d, &d->strip[k], r);
            }
        }
    }
    assert_true(partial > 10);
}

/* A piece of a divided part ends with what one of its rows makes: what only passes it (the block of
 * keys that a ring's first hop sends on) is made on another page. */
static void pieces_end_with_what_they_make(void **state) {
    Ground *g = *state;
    static const char *const file[] = {
        "plans/54-deepseek-v3-latent-ring4.yaml", "plans/41-llama3-8b-ring4-zigzag.yaml",
        "plans/34-llama4-scout-torchtitan.yaml", "plans/33-qwen3-30b-a3b-ep.yaml"};
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        const Trace *t = plan_trace(g, file[i], "");
        RenderOptions o = options("block");
        ViewCall call = {.t = t, .d = g->d, .o = &o, .arena = g->a};
        const Mirror *m = mirror_new(block_read_trace(&call));
        for (int most = 4; most < 20; most++) {
            MirrorCut cut[BLOCK_MAX_STRIPS];
            for (int k = 0; k < m->n; k++) cut[k] = (MirrorCut){most / 2, most % 2 == 0};
            const Mirror *d = mirror_divide(g->a, m, cut);
            for (int k = 0; k < d->n; k++) {
                const MirrorStrip *s = &d->strip[k];
                bool made = !s->piece || s->sum;
                for (int r = 0; r < s->n; r++)
                    for (int q = 0; q < s->row[r].n_out; q++)
                        made |= !strcmp(s->row[r].out[q], s->branch);
                if (!made) fail_msg("%s: %s ends with %s", file[i], s->strip->title, s->branch);
            }
        }
    }
}
/* A slide that only names what comes from other pages names it once: both parts of the queries of
 * latent attention have their own names. */
static void sides_are_named_once(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/54-deepseek-v3-latent-ring4.yaml", "");
    RenderOptions o = options("block");
    o.preset = "slide";
    int said = 0;
    for (o.page = 1; o.page < 5; o.page++) {
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        if (strstr(text, "|q, q|")) fail_msg("page %d: q, q", (int)o.page);
        said += times_said(text, "|q_nope, q_rope|");
    }
    assert_true(said >= 1);
}

/* "of 2 ranks before": whose block a hop brings, of the reason that it gives. */
static const char *block_of(Arena *a, const char *why) {
    const char *of = strstr(why, " of "), *end = of ? strstr(of, " before") : NULL;
    if (!end) fail_msg("no block in '%s'", why);
    return arena_strndup(a, of, (size_t)(end - of));
}
/* Each hop of a ring faces the hop that brings home what became of its block, as the reasons of
 * both say; each reduction of the log stands once, however often a weight is used. */
static void hold_ring(const char *what, const Mirror *m) {
    const Trace *t = m->g->t;
    int hops = 0, *seen = ARENA_ARRAY(m->g->arena, int, t->n_collectives + 1);
    for (int i = 0; i < m->n; i++)
        for (int r = 0; r < m->strip[i].n; r++) {
            const MirrorRow *row = &m->strip[i].row[r];
            bool hop = row->n_coll && !strcmp(row->coll[0]->op, "shift");
            for (int k = 0; hop && k < row->n_coll; k++, hops++) {
                bool home = false;
                for (int q = 0; q < row->n_conj; q++)
                    home |= strstr(row->conj[q]->why, block_of(m->g->arena, row->coll[k]->why)) &&
                            strstr(row->conj[q]->value, row->coll[k]->value);
                if (!home)
                    fail_msg("%s: what undoes step %d is elsewhere", what, row->coll[k]->step);
            }
            if (row->kind == ROW_BACK) fail_msg("%s: row %d faces nothing", what, r);
            for (int k = 0; k < row->n_grad; k++)
                for (int q = 0; q < row->grad[k].n; q++)
                    seen[row->grad[k].coll[q] - t->collectives]++;
        }
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].pass == PHASE_GRADIENTS && seen[i] != 1)
            fail_msg("%s: step %d stands %d times", what, t->collectives[i].step, seen[i]);
    assert_true(hops >= 4);
}
static void hops_face_their_own(void **state) {
    Ground *g = *state;
    static const char *const file[] = {"plans/41-llama3-8b-ring4-zigzag.yaml",
                                       "plans/54-deepseek-v3-latent-ring4.yaml"};
    for (int i = 0; i < 2; i++) {
        const Trace *t = plan_trace(g, file[i], "");
        RenderOptions o = options("block");
        ViewCall call = {.t = t, .d = g->d, .o = &o, .arena = g->a};
        const Mirror *m = mirror_new(block_read_trace(&call));
        assert_non_null(m);
        hold_ring(file[i], m);
        o.preset = "slide"; /* a page of one part speaks of that part */
        Scene *page[VIEW_MAX_PAGES];
        int pages = render_pages(t, g->d, &o, g->a, page);
        assert_true(pages >= 4);
        int hops = 0;
        for (int k = 0; k < pages; k++)
            hops += strstr(page[k]->title, "every hop of the ring faces a hop back") != NULL;
        assert_true(hops > 0);
        for (int k = 0; k < pages; k++)
            if (strstr(page[k]->title, "only gradients of weights travel"))
                assert_true(strncmp(page[k]->title, "The backward pass", 17) != 0);
        const char *report = "";
        o.preset = "a4"; /* letters stay large enough, on pages of fewer rows */
        if (render_lint(t, g->d, &o, g->a, &report)) fail_msg("%s: %s", file[i], report);
    }
}

/* Of experts' weights the sheets say which are here, the line under a letter what the product sums
 * over (never E, by which a row finds its expert; of a bias nothing), and the legend knows both. */
static void experts_and_sums_have_keys(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *sums;
        bool experts;
    } cases[] = {
        {"plans/09-llama3-8b-dp2-cp2-tp2.yaml", ">H·d/tp<", false},
        {"plans/30-mixtral-8x7b-ep-dp-cp.yaml", ">F/tp<", true},
        {"plans/34-llama4-scout-torchtitan.yaml", ">Fe/tp<", true},
        {"plans/56-gpt-oss-20b-tp2-ep2.yaml", ">F<", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RenderOptions o = options("block");
        o.pass = "forward";
        const char *svg = draw(g, plan_trace(g, cases[i].file, ""), &o, FORMAT_SVG),
                   *text = all_words(g->a, svg);
        static const char line[] = "text-decoration=\"underline\"";
        bool sums = false;
        for (const char *p = svg; (p = strstr(p, line)); p++) {
            const char *letter = p + strlen(line);
            if (!strncmp(letter, ">E", 2)) fail_msg("%s: a sum over E", cases[i].file);
            sums |= !strncmp(letter, cases[i].sums, strlen(cases[i].sums));
        }
        assert_true(sums);
        assert_non_null(strstr(text, "the matmul sums over it|"));
        assert_int_equal(strstr(text, "experts one behind another, those here filled|") != NULL,
                         cases[i].experts);
    }
}
/* The weights of a unit stand together, the root's too, though they lie at both ends of the model;
 * what is given up in between is gathered once more for backward, and only that. */
static void units_are_gathered_twice(void **state) {
    Ground *g = *state;
    RenderOptions o = options("block");
    o.part = "weights";
    const Trace *t = plan_trace(g, "plans/20-llama3-8b-fsdp-tp.yaml", "");
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_int_equal(times_said(text, "|AllGather|"), 4); /* the root and a block, twice */
    assert_int_equal(times_said(text, "|ReduceScatter|"), 2);
    assert_non_null(strstr(text, "|in compute, then freed|for backward|"));
    const char *first = strstr(text, "|tok_embeddings|"), *norm = strstr(text, "|norm|"),
               *head = strstr(text, "|output|"),
               *block = strstr(text, "|attention_norm,|ffn_norm|");
    assert_true(first && first < norm && norm < head && head < block);
    o.preset = "slide"; /* has no room for the second */
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_int_equal(times_said(text, "|AllGather|"), 2);
    assert_non_null(strstr(text, "gathered once more"));
    o.preset = NULL;
    t = plan_trace(g, "plans/19-llama3-8b-fsdp4.yaml", ""); /* backward reads no embedding */
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_int_equal(times_said(text, "|AllGather|") + 2 * times_said(text, "|AllGather ×2|") +
                         3 * times_said(text, "|AllGather ×3|"),
                     12 + 11);
    assert_null(strstr(text, "kept|"));
    t = plan_trace(g, "plans/34-llama4-scout-torchtitan.yaml", ""); /* as the block calls them */
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "|shared w1, w3|"));
    assert_non_null(strstr(text, "|router gate|"));
    assert_int_equal(times_said(text, "|w1, w3|"), 1);
}

/* A slide says at its foot how the gradients of its weights lie, and in a gap what leaves for other
 * pages, as it leaves. */
static void slides_say_shapes(void **state) {
    Ground *g = *state;
    RenderOptions o = options("block");
    o.preset = "slide";
    o.page = 3;
    const Trace *t = plan_trace(g, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "");
    const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(
        strstr(text, "|Weight gradients: ffn_norm [D], w1, w3 [F/tp, D], w2 [D, F/tp].|"));
    t = plan_trace(g, "plans/56-gpt-oss-20b-tp2-ep2.yaml", "");
    o.page = 2;
    text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
    assert_non_null(strstr(text, "|after the norm [B/tp, S, D]  [1, 32, 90]|"));
    assert_non_null(strstr(text, "|list [rows(B/tp, S, E)]  [128]|"));
}

/* ---- what passes rows ---- */

static bool between(double x, double a, double b) {
    return x > (a < b ? a : b) + 1 && x < (a < b ? b : a) - 1;
}
/* No line of a value runs over or behind a box: its segments touch borders at most. */
static void lines_keep_off(const char *file, const Scene *s) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *line = &s->marks[i];
        const char *what = line->group >= 0 ? s->groups[line->group].what : "";
        if (strcmp(what, "edge") || line->ground || line->kind != MARK_LINE) continue;
        for (int k = 0; k < s->n_groups; k++) {
            const Group *b = &s->groups[k];
            if (!strncmp(b->id, "plus", 4)) continue; /* stands on its line */
            if (strcmp(b->what, "compute") && strcmp(b->what, "collective") &&
                strcmp(b->what, "move"))
                continue;
            for (int q = 1; b->framed && q < line->n; q++) {
                const Pt p = line->pt[q - 1], r = line->pt[q];
                const double x1 = b->x + b->w, y1 = b->y + b->h;
                const bool down = p.x == r.x && between(p.x, b->x, x1) &&
                                  fmax(fmin(p.y, r.y), b->y) + 1 < fmin(fmax(p.y, r.y), y1),
                           across = p.y == r.y && between(p.y, b->y, y1) &&
                                    fmax(fmin(p.x, r.x), b->x) + 1 < fmin(fmax(p.x, r.x), x1);
                if (down || across)
                    fail_msg("%s: %s runs through %s", file, s->groups[line->group].id, b->id);
            }
        }
    }
}
/* A straight line stands between rows of which one reads what the other makes, and every value that
 * a row further on reads has a line round those between. */
static void lines_join_makers_and_readers(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file, *value; /* passes a row forward: */
        int lines[2];             /* so many versions of values pass rows, forward and backward */
    } row[] = {{"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "layers.0.q_rope", {1, 1}},
               {"plans/56-gpt-oss-20b-tp2-ep2.yaml", "layers.0.moe.weights", {2, 2}},
               {"plans/models/llama4-hf.yaml", "layers.0.post_attn_norm", {4, 3}},
               {"plans/18-llama3-8b-backward.yaml", NULL, {0, 0}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const Trace *t = plan_trace(g, row[i].file, "");
        RenderOptions o = options("block");
        Scene *page[VIEW_MAX_PAGES];
        assert_int_equal(render_pages(t, g->d, &o, g->a, page), 1);
        lines_keep_off(row[i].file, page[0]);
        o.preset = "slide";
        for (int k = render_pages(t, g->d, &o, g->a, page); k > 0; k--)
            lines_keep_off(row[i].file, page[k - 1]);
        ViewCall call = {.t = t, .d = g->d, .o = &o, .arena = g->a};
        const Mirror *m = mirror_new(block_read_trace(&call));
        assert_non_null(m);
        int lines[2] = {0, 0};
        bool found = !row[i].value;
        for (int k = 0; k < m->n; k++)
            for (int back = 0; back < 2; back++) {
                const MirrorStrip *s = &m->strip[k];
                lines[back] += s->n_past[back];
                for (int q = 0; q < s->n_past[back]; q++) {
                    const MirrorRead *r = &s->past[back][q];
                    if (!back) found |= !strcmp(r->v->shape.name, row[i].value);
                    const int far = back ? r->from - r->to : r->to - r->from;
                    assert_true(far > 1 || (back && far > 0));
                }
            }
        assert_true(found);
        assert_int_equal(lines[0], row[i].lines[0]);
        assert_int_equal(lines[1], row[i].lines[1]);
    }
}

/* Beside a column stand two lines at most: what goes farthest is named where it is made and where
 * it is read, forward at the left, backward at the right or at a sum. */
static void few_lines_stand_beside(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file;
        int far[2]; /* so many reads are named */
        const char *said[5];
    } row[] = {{"plans/54-deepseek-v3-latent-ring4.yaml",
                {7, 8},
                {"|q_nope [B, S/cp, H, dn]|", "|q_nope, q_rope|", "|d q_rope, d q_nope|",
                 "|attn_part.0|", "|d attn_part.0|"}},
               {"plans/56-gpt-oss-20b-tp2-ep2.yaml",
                {2, 0},
                {"|list [rows(B, S, E)]|", "|after the norm, list|"}}};
    static const char *const preset[] = {"wide", "column", "slide", "a4"};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const Trace *t = plan_trace(g, row[i].file, "");
        RenderOptions o = options("block");
        Scene *page[VIEW_MAX_PAGES];
        ViewCall call = {.t = t, .d = g->d, .o = &o, .arena = g->a};
        const Mirror *m = mirror_new(block_read_trace(&call));
        for (int back = 0; back < 2; back++) {
            int far = 0;
            for (int k = 0; k < m->n; k++) {
                assert_true(m->strip[k].lanes[back] <= 2);
                far += m->strip[k].far[back].n;
            }
            assert_int_equal(far, row[i].far[back]);
        }
        const char *text = all_words(g->a, draw(g, t, &o, FORMAT_SVG));
        for (int k = 0; k < 5 && row[i].said[k]; k++)
            if (!strstr(text, row[i].said[k])) fail_msg("not said: %s", row[i].said[k]);
        for (int k = 0; k < 4; k++) {
            const char *report;
            o.preset = preset[k];
            for (int n = render_pages(t, g->d, &o, g->a, page); n > 0; n--) {
                lines_keep_off(row[i].file, page[n - 1]);
                if (scene_lint(page[n - 1], g->a, &report)) fail_msg("%s", report);
            }
        }
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, ground_new, ground_gone)
static const struct CMUnitTest tests[] = {T(edges_are_records),
                                          T(nothing_is_left_out),
                                          T(experts_and_sums_have_keys),
                                          T(every_part_is_clean),
                                          T(stories_of_mistakes),
                                          T(wrong_steps_are_shown),
                                          T(heads_are_those_of_attention),
                                          T(rule_is_said_once),
                                          T(a_label_is_no_step),
                                          T(parts_count_once),
                                          T(the_broken_rule_is_the_title),
                                          T(rows_are_expected),
                                          T(wrong_steps_without_a_place),
                                          T(weights_come_in_hexagons),
                                          T(hops_fold),
                                          T(sheets_are_filled),
                                          T(reductions_stand_in_order),
                                          T(text_fits),
                                          T(overview_counts_everything),
                                          T(loss_faces_its_backward),
                                          T(every_view_is_red_at_the_place),
                                          T(gradients_leave_the_stream),
                                          T(shared_experts_join_the_stream),
                                          T(a_term_goes_round_to_its_sum),
                                          T(hops_carry_keys),
                                          T(a_ring_reads_from_block_to_block),
                                          T(pages_hand_gradients_on),
                                          T(keys_speak_of_what_is_there),
                                          T(the_head_makes_logits),
                                          T(a_bias_passes_the_gradient_on),
                                          T(steps_are_linked),
                                          T(no_times_where_a_rule_is_broken),
                                          T(layers_have_their_numbers),
                                          T(experts_are_one_strip),
                                          T(wrong_rows_stand_alone),
                                          T(shared_experts_have_rows),
                                          T(parts_of_parts_on_slides),
                                          T(overview_of_a_stage),
                                          T(block_of_a_stage),
                                          T(both_ways_say_the_same),
                                          T(one_of_two_is_missing),
                                          T(stream_comes_to_the_loss),
                                          T(overview_counts_a_norm_once),
                                          T(wrong_passes_are_clean),
                                          T(slides_tell_of_norms),
                                          T(values_have_words),
                                          T(crossings_have_bridges),
                                          T(lines_keep_close),
                                          T(mirror_has_one_vocabulary),
                                          T(router_losses_are_told),
                                          T(sums_say_over_what),
                                          T(passes_on_pages),
                                          T(towers_lie_down),
                                          T(units_of_a_model_are_told),
                                          T(partial_sums_leave_their_row),
                                          T(pieces_end_with_what_they_make),
                                          T(sides_are_named_once),
                                          T(hops_face_their_own),
                                          T(lines_join_makers_and_readers),
                                          T(few_lines_stand_beside),
                                          T(units_are_gathered_twice),
                                          T(slides_say_shapes)};
int main(void) {
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
