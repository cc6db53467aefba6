/* The views memory, errors, storyboard and shards on traces of real runs: what a picture says is
 * what the records say. The SVG's texts are read back and compared with the trace. */
#include "cli/find.h"
#include "base/file.h"
#include "cost/cost.h"
#include "layout/redistribute.h"
#include "render/errors/errors.h"
#include "render/furniture/wrong.h"
#include "render/memory/bands.h"
#include "render/memory/memory.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "render/shards/shards.h"
#include "support/pictures.h"
#include "support/records.h"
#include "support/support.h"
#include "trace/trace_rows.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static RenderOptions options(const char *view) {
    return (RenderOptions){.view = view, .rank = -1, .layer = -1};
}

static const char *picture(Arena *a, const Trace *t, const RenderOptions *o, RenderFormat f) {
    Diags *d = diags_new(a);
    size_t n;
    const char *s = render_text(t, d, o, f, a, &n);
    if (!s) diags_print(d, stderr, false);
    assert_non_null(s);
    return f == FORMAT_SVG ? svg_words(a, s) : s;
}
static PlanRun run_file(Arena *a, const char *path, const PipelineOptions *o) {
    size_t n;
    Diags *d = diags_new(a);
    const char *text = file_read(a, d, path, 1 << 20, (Loc){0}, &n);
    assert_non_null(text);
    return plan_run_with(a, path, text, o);
}

/* ---- memory ---- */

/* What the ZeRO paper's figure 1 says for 7.5e9 parameters, 12 bytes of state beside 2 + 2, and 64
 * ranks: 120.0 GB a rank under DDP and 1.9 GB fully sharded. In f32 the 16 bytes are 4 + 4 + 8, so
 * the totals are the same. */
static void zero_paper(void **state) {
    (void)state;
    static const struct { const char *mode, *gb; } row[] = {{"ddp", "120.0"}, {"fsdp", "1.9"}};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "name: psi\nmodel: {kind: mlp, sizes: [123500, 40000, 64000], bias: false, activation: "
            "none}\n"
            "data: {rows: 64, dtype: f32}\nmesh: {dp: 64}\npass: train\n"
            "optimizer: {name: adamw, lr: 1e-3}\ndata_parallel: {mode: %s, axis: dp}\n",
            row[i].mode);
        PlanRun r = plan_run_with(a, "psi.yaml", text, &(PipelineOptions){.events = true});
        assert_non_null(r.t);
        MemClass *cls;
        MemCourse c;
        assert_int_equal(memory_classes(a, r.t, &cls), 1);
        assert_true(memory_course(a, r.t, 0, &c));
        assert_true(c.exact);
        /* the gradients that the optimizer reads first: no activation and no whole gradient lives
         * any more */
        int first = -1;
        for (int k = 0; k < r.t->n_values && first < 0; k++)
            if (r.t->values[k].kind == VALUE_UPDATED) first = r.t->values[k].step;
        assert_true(first > 0);
        int64_t held = cls->bytes[MEM_PARAMS] + cls->bytes[MEM_OPTIMIZER] + c.grad[first];
        assert_string_equal(arena_printf(a, "%.1f", (double)held / 1e9), row[i].gb);
        assert_int_equal(held, (int64_t)16 * 7500000000 / (i ? 64 : 1));
        RenderOptions o = options("memory");
        const char *words = picture(a, r.t, &o, FORMAT_SVG);
        if (i == 0) says(words, "(4 + 8 + 4) B × 7,500,000,000");
        if (i == 0)
            says(words, arena_printf(a, "+%s over", bytes_text(cls->total - 80000000000, a)));
        says(words, "apacity of h100-sxm: 80 GB = 74.5 GiB");
        arena_free(a);
    }
}

/* Bands of every level follow each other without a gap, and a step stands in the one of its pass,
 * layer and part. */
static void check_bands(Arena *a, const Trace *t, int steps, const char *path) {
    for (BandLevel level = BAND_PARTS; level < BAND_LEVELS; level++) {
        MemBand *b;
        int n = memory_bands(a, t, steps, level, &b);
        assert_true(n > 0);
        assert_int_equal(b[0].from, 0);
        assert_int_equal(b[n - 1].to, steps);
        for (int i = 1; i < n; i++) assert_int_equal(b[i].from, b[i - 1].to);
        for (int i = 0; i < t->n_computes; i++) {
            const TraceCompute *c = &t->computes[i];
            int k = 0;
            while (b[k].to <= c->step) k++;
            bool norm = c->part && !strcmp(c->part, "norm"), in = b[k].pass == words_phase(c);
            if (level < BAND_PASSES && c->part)
                in &= b[k].first_layer <= c->layer && c->layer <= b[k].last_layer;
            if (level == BAND_PARTS && c->part && !norm) in &= !strcmp(b[k].part, c->part);
            if (!in)
                fail_msg("%s: step %d (%s) stands in steps %d to %d", path, c->step, c->output,
                         b[k].from, b[k].to);
        }
    }
}
static void bands_of_memory(void **state) {
    (void)state;
    static const char *const plans[] = {
        "plans/01-column-row-mlp.yaml", "plans/20-llama3-8b-fsdp-tp.yaml",
        "plans/38-llama4-scout-reorderer.yaml", "plans/47-llama3-8b-pp2-dp2-tp2.yaml",
        "plans/52-llama3-8b-pp4-dualpipe.yaml"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, plans[i], &(PipelineOptions){.events = true});
        MemCourse c;
        assert_true(memory_course(a, r.t, 0, &c));
        check_bands(a, r.t, c.n_steps, plans[i]);
        arena_free(a);
    }
}
/* The names of the bands are read in the picture, each once in a pass, and a band says in its
 * tooltip what is most alive in it; layers that are alike look alike however many there are. */
static void bands_are_drawn(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = run_file(a, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                         &(PipelineOptions){.events = true});
    RenderOptions o = options("memory");
    MemCourse c;
    size_t n;
    const char *svg = render_text(r.t, diags_new(a), &o, FORMAT_SVG, a, &n),
               *words = svg_words(a, svg);
    says(words, "attention"), says(words, "MLP"), says(words, "backward");
    assert_true(memory_course(a, r.t, 0, &c));
    says(svg, arena_printf(a, "most alive on rank 0: %s, after step %d", bytes_text(c.at_peak, a),
                           c.peak));
    r = run_file(a, "plans/shape-only/llama3.1-405b-8192.yaml", &(PipelineOptions){.events = true});
    /* many layers that hold the same: one of them, step by step, with the peak and its parts */
    words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "by step of layer 0; the other 125 hold the same");
    says(words, "\nlayer 0, attention\n"), says(words, "\nlayer 0, MLP\n");
    assert_true(memory_course(a, r.t, 0, &c));
    says(words, arena_printf(a, "\npeak %s at step %d\n", bytes_text(c.at_peak, a), c.peak));
    says_not(words, "layers 0 to");
    arena_free(a);
}
/* What the title says of live values: the bytes of all that have the name it says, and of their
 * gradients where it says so. It names them as the list below does, by what the modules of other
 * figures are called, and so does the list as text. */
static void check_named(Arena *a, const Trace *t, const char *name, bool grads) {
    RenderOptions o = options("memory");
    const char *words = picture(a, t, &o, FORMAT_TEXT), *svg = picture(a, t, &o, FORMAT_SVG);
    MemCourse c;
    const MemLife **l;
    int64_t bytes = 0;
    int of_grads = 0;
    assert_true(memory_course(a, t, 0, &c));
    int alive = memory_alive(a, &c, c.peak, &l);
    for (int i = 0; i < alive; i++) {
        const char *value = l[i]->v->shape.name,
                   *own = words_value(a, t, l[i]->v->subject.of ? l[i]->v->subject.of : value);
        bool mine = !l[i]->grad && !l[i]->copy && !strcmp(own, name);
        of_grads += mine && l[i]->v->subject.role == OF_GRADIENT;
        bytes += mine ? l[i]->bytes : 0;
        const char *path, *before = words_value_path(a, t, value, &path);
        says(words, arena_printf(a, "  %s%s", before, path));
    }
    assert_true((of_grads > 0) == grads);
    bool after = !strncmp(name, "after ", 6);
    const char *said = arena_printf(a, "at the peak, %s of it %s%s%s%s", bytes_text(bytes, a),
                                    after ? "values " : "", name,
                                    !grads  ? ""
                                    : after ? " and their gradient"
                                            : " and its gradient",
                                    of_grads > 1 ? "s" : "");
    says(svg, said);
    assert_null(strstr(svg, "grad."));
    assert_null(strstr(words, "grad."));
}
static void title_names_the_values(void **state) {
    (void)state;
    Arena *a = arena_new();
    PipelineOptions o = {.events = true};
    check_named(a, run_file(a, "plans/02-toymodel-2.yaml", &o).t, "after net1", false);
    check_named(a,
                plan_run_with(a, "wide.yaml",
                              "model: {kind: mlp, sizes: [4, 6, 64, 4]}\ndata: {rows: 800}\n"
                              "mesh: {dp: 2}\npass: backward\n"
                              "data_parallel: {mode: ddp, axis: dp}\n",
                              &o)
                    .t,
                "act2", true);
    PlanSet set[] = {{"model.shrink", "1"}, {"data.sequence", "8192"}, {"data.dtype", "bf16"}};
    const char *path = "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml";
    size_t n;
    Diags *d = diags_new(a);
    PipelineReport rep;
    const char *text = file_read(a, d, path, 1 << 20, (Loc){0}, &n);
    check_named(a, pipeline_run(a, d, (PlanText){path, text, n, set, 3}, &o, &rep), "after output",
                true);
    arena_free(a);
}

/* Of a pipeline the records have what other micro-batches keep, too: it is told apart, and the
 * gradients are still gradients. The last stage of 1F1B has none but its own in flight, and what it
 * has received of the next: less than GPipe keeps. */
static void memory_of_a_pipeline(void **state) {
    (void)state;
    static const char *const schedule[] = {"1f1b", "gpipe"};
    int64_t flight[2][2];
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        PlanRun r =
            plan_run_with(a, "pp.yaml",
                          arena_printf(a,
                                       "model: {kind: mlp, sizes: [4, 6, 6, 4]}\ndata: {rows: 8}\n"
                                       "mesh: {pp: 2}\npass: backward\n"
                                       "pipeline: {schedule: %s, microbatches: 4}\n",
                                       schedule[i]),
                          &(PipelineOptions){.events = true});
        assert_non_null(r.t);
        for (int rank = 0; rank < 2; rank++) {
            MemCourse c;
            assert_true(memory_course(a, r.t, rank, &c));
            assert_true(c.exact);
            assert_true(c.grad[c.peak] > 0);
            flight[i][rank] = c.flight;
        }
        RenderOptions o = options("memory");
        says(picture(a, r.t, &o, FORMAT_SVG), "other micro-batches in flight");
        says(picture(a, r.t, &o, FORMAT_TEXT), "other micro-batches in flight");
        arena_free(a);
    }
    for (int rank = 0; rank < 2; rank++) assert_true(flight[0][rank] < flight[1][rank]);
    assert_true(flight[0][0] > flight[0][1]);
}
/* Several schedules on one axis of time: who ends last fills it, the others end where their time
 * says; the table has what each figure by itself says, on every page. */
static void schedules_beside(void **state) {
    (void)state;
    static const char *const order[] = {"gpipe", "zb-h1", "dualpipe", "zb-v"};
    static const char *const preset[] = {"wide", "column", "slide", "a4"};
    Arena *a = arena_new();
    const Trace *t[4];
    for (int i = 0; i < 4; i++) {
        PipelineOptions o = {.events = true};
        t[i] =
            plan_run_with(a, "beside.yaml",
                          arena_printf(a,
                                       "model: {preset: llama3-8b, shrink: 64, layers: 8, parts: "
                                       "[embedding, blocks, norm, head, loss]}\nmesh: {pp: 4}\n"
                                       "data: {batch: 16, sequence: 64}\npass: backward\n"
                                       "pipeline: {schedule: %s, microbatches: 8}\n",
                                       order[i]),
                          &o)
                .t;
        assert_true(t[i] && t[i]->n_actions);
    }
    for (int p = 0; p < 4; p++) {
        RenderOptions o = {.view = "pipeline",
                           .preset = preset[p],
                           .rank = -1,
                           .layer = -1,
                           .n_several = 3,
                           .several = {t[1], t[2], t[3]}};
        Scene *page[VIEW_MAX_PAGES];
        const char *svg = "";
        size_t n;
        int pages = render_pages(t[0], diags_new(a), &o, a, page);
        for (o.page = 1; o.page <= pages; o.page++)
            svg = arena_printf(a, "%s%s", svg,
                               render_text(t[0], diags_new(a), &o, FORMAT_SVG, a, &n));
        o.page = 0;
        for (int i = 0; i < 4; i++) {
            double end = 0;
            for (int k = 0; k < t[i]->n_actions; k++)
                end = t[i]->actions[k].end > end ? t[i]->actions[k].end : end;
            const char *at = strstr(svg, arena_printf(a, ">%s</text>\n<text", order[i])),
                       *said = arena_printf(a, ">%s, ", time_text(end, a)),
                       *found = at ? strstr(at, said) : NULL;
            if (!found || found > strstr(at + 1, "<g"))
                fail_msg("%s: no '%s' behind %s", preset[p], said + 1, order[i]);
            const char *own = i ? arena_printf(a, "s%d-row-3", i) : "row-3";
            if (!strstr(svg, own)) fail_msg("%s: no %s", preset[p], own);
        }
        assert_non_null(strstr(svg, "4 schedules of 8 micro-batches"));
        assert_non_null(strstr(svg, "dualpipe ends first"));
        assert_non_null(strstr(svg, ">weights<"));
        o.several[2] = t[2]; /* who ends at the same time does not end before the other */
        says(picture(a, t[0], &o, FORMAT_SVG), "dualpipe (3) and dualpipe (4) end first");
        o.n_several = 1, o.several[0] = t[0];
        says(picture(a, t[0], &o, FORMAT_SVG), "all end together");
    }
    arena_free(a);
}

/* Plans with two ways through a pipeline, or two stages that read one table. */
static const struct {
    const char *preset, *mesh, *more;
    int sequence; /* short: micro-batches hold less than what is added up after them */
} both_ways[] = {
    {"llama3-8b", "pp: 4", "pass: backward\npipeline: {schedule: dualpipe, microbatches: 8}", 8},
    {"llama3-8b", "pp: 2", "pass: backward\npipeline: {schedule: dualpipe, microbatches: 8}", 8},
    {"llama3.2-1b", "pp: 4",
     "pass: backward\npipeline: {schedule: dualpipe, microbatches: 8, tied: pair}", 8},
    {"llama3.2-1b", "pp: 4, dp: 2",
     "data_parallel: {mode: zero2, form: megatron}\npass: train\n"
     "optimizer: {name: sgd, lr: 0.1}\n"
     "pipeline: {schedule: dualpipe, microbatches: 8, tied: pair}",
     1},
    {"llama3-8b", "pp: 4, dp: 2",
     "data_parallel: {mode: fsdp}\npass: train\noptimizer: {name: adamw, lr: 0.1}\n"
     "pipeline: {schedule: dualpipe, microbatches: 8}",
     8},
    {"llama3.2-1b", "pp: 4",
     "pass: backward\npipeline: {schedule: 1f1b, microbatches: 4, tied: pair}", 8},
};

/* DualPipe: the table beside the peak has what one micro-batch of one way holds, and what all add
 * to; all-reduces are between the two ranks that have a stage, and so say mesh and timeline. */
static void both_ways_of_a_pipeline(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof both_ways / sizeof *both_ways; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run_with(
            a, "both.yaml",
            arena_printf(a,
                         "model: {preset: %s, layers: 4, shrink: 64, parts: [embedding, blocks, "
                         "norm, head, loss]}\ndata: {batch: 16, sequence: %d, dtype: f32}\n"
                         "mesh: {%s}\nhardware: h100-sxm\n%s\n",
                         both_ways[i].preset, both_ways[i].sequence, both_ways[i].mesh,
                         both_ways[i].more),
            &(PipelineOptions){.events = true});
        assert_non_null(r.t);
        RenderOptions o = options("memory");
        for (int rank = 0; rank < r.t->ranks; rank++) {
            MemCourse c;
            const MemLife **l;
            assert_true(memory_course(a, r.t, rank, &c));
            assert_true(c.exact);
            int64_t sum = c.flight;
            int n = memory_alive(a, &c, c.peak, &l);
            for (int k = 0; k < n; k++) {
                sum += l[k]->bytes;
                assert_true(l[k]->shared || (l[k]->v->way > 0) == (c.turn[c.peak] == MEM_OTHER));
            }
            assert_int_equal(sum, c.at_peak);
        }
        if (both_ways[i].sequence == 1)
            says(picture(a, r.t, &o, FORMAT_TEXT), "left by the micro-batches");
        if (i == 0) {
            o = options("mesh");
            says(picture(a, r.t, &o, FORMAT_TEXT), "part of pp    1 × 2               0:4:3");
            says(picture(a, r.t, &o, FORMAT_TEXT), "cuts the layers; 2 Send, 2 Receive");
            o.rank = 1;
            says(picture(a, r.t, &o, FORMAT_TEXT), "part of pp    1 × 2               1:3");
            o = options("timeline");
            says(picture(a, r.t, &o, FORMAT_CHROME), "pp {0,1} {0,3}");
            says(picture(a, r.t, &o, FORMAT_SVG), "two of 8 micro-batches, one each way,");
        }
        arena_free(a);
    }
}

/* The loss is a pass with both ways in it: its kernels are called by theirs. Where all
 * communication of a line is exposed nothing is hidden, not the rounding of sums. */
static void timeline_of_the_loss(void **state) {
    (void)state;
    static const char plan[] =
        "model: {preset: llama3-8b, layers: 1, parts: [embedding, blocks, norm, head, loss]}\n"
        "data: {batch: 2, sequence: 8192, dtype: bf16}\n"
        "mesh: {dp: 2, cp: 2, tp: 2}\n"
        "pass: backward\n"
        "names: torchtitan\n"
        "context_parallel: {mode: all_gather, order: zigzag}\n"
        "recipe: torchtitan-llama3\n";
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "loss.yaml", plan, false);
    if (!r.t) run_print(&r);
    assert_non_null(r.t);
    cost_simulate(r.t, hardware_find(a, r.d, "h100-sxm", NULL, (Loc){0}));
    RenderOptions o = options("timeline");
    assert_null(strstr(picture(a, r.t, &o, FORMAT_SVG), "\n0.00 ns\n"));
    const char *text = picture(a, r.t, &o, FORMAT_TEXT), *back = strstr(text, "\nBackward, loss");
    says(text, "\nsum of exp over V  ");
    assert_non_null(back);
    says(back, "\nsum of exp over V′  ");
    assert_null(strstr(back, "\nsum of exp over V  "));
    arena_free(a);
}

/* Shared experts' matrices are not called as those of the experts beside them, in no form of a
 * name: above narrow kernels too, where words give way. */
static void timeline_of_shared_experts(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = run_file(a, "plans/34-llama4-scout-torchtitan.yaml", &(PipelineOptions){0});
    assert_non_null(r.t);
    cost_simulate(r.t, hardware_find(a, r.d, "h100-sxm", NULL, (Loc){0}));
    RenderOptions o = options("timeline");
    const char *words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "\nshared w1, w3\n");
    says(words, "\ndx, dw: shared w3, w1\n");
    says(words, "\ndx, dw: router gate\n");
    says(words, "\ndx, dw: shared w2\n");
    says(words, "\ndx w2, dw2\n");
    assert_null(strstr(words, "dexperts")); /* the three of the experts were one word */
    says(picture(a, r.t, &o, FORMAT_TEXT), "\ndw2 ");
    words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "all asked for as often");
    assert_null(strstr(words, "at worst 1 times")); /* every rank has all experts */
    arena_free(a);
}

/* One is folded, two are. */
static void timeline_says_how_many_are_folded(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = run_file(a, "plans/56-gpt-oss-20b-tp2-ep2.yaml", &(PipelineOptions){0});
    assert_non_null(r.t);
    cost_simulate(r.t, hardware_find(a, r.d, "h100-sxm", NULL, (Loc){0}));
    RenderOptions o = options("timeline");
    says(picture(a, r.t, &o, FORMAT_SVG), "1 more like it is folded");
    arena_free(a);
}

/* Of a pipeline as well: what the loss makes of gradients stands in lines of backward, on the rank
 * whose last stage is the model's first as on the one whose first stage is. */
static void loss_of_a_pipeline(void **state) {
    (void)state;
    static const char *const plans[] = {"plans/45-llama3-8b-pp4-1f1b.yaml",
                                        "plans/46-llama3-8b-pp2-zb-v.yaml",
                                        "plans/52-llama3-8b-pp4-dualpipe.yaml"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, plans[i], &(PipelineOptions){.events = true});
        cost_simulate(r.t, hardware_find(a, r.d, "h100-sxm", NULL, (Loc){0}));
        RenderOptions o = options("timeline");
        bool forward = false;
        int losses = 0;
        char *text = arena_strdup(a, picture(a, r.t, &o, FORMAT_TEXT));
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            if (!strncmp(line, "Forward, ", 9)) forward = true;
            if (!strncmp(line, "Backward, ", 10)) forward = false;
            losses += !strncmp(line, "Backward, loss and head: ", 25);
            if (forward && (!strncmp(line, "dx ", 3) || strstr(line, "′")))
                fail_msg("%s: forward has %s", plans[i], line);
        }
        assert_int_equal(losses, 1); /* on every rank that has the loss the same line */
        arena_free(a);
    }
}

/* The category of the records of memory that each part of a bar is of. */
static const char *const categories[MEM_KINDS] = {[MEM_PARAMS] = "parameters",
                                                  [MEM_OPTIMIZER] = "optimizer",
                                                  [MEM_GRADS] = "gradients",
                                                  [MEM_ACTS] = "activations",
                                                  [MEM_GATHERED] = "gathered"};
/* Part by part a class holds at its peak what records say, and that is the largest sum of records
 * of one step; what JSON and `diff` say of the first class is the same. */
static void parts_are_the_records(const Trace *t, const MemClass *m, bool first) {
    int64_t now[MEM_KINDS] = {0}, top = 0, sum = 0;
    for (int j = 0; j < t->n_memory; j++) {
        const TraceMemory *x = &t->memory[j];
        if (!rankset_has(&x->ranks, m->rank)) continue;
        int64_t all = 0;
        for (int q = 0; q < MEM_KINDS; q++) {
            if (!strcmp(x->category, categories[q])) now[q] = x->bytes;
            all += now[q];
        }
        bool last = true; /* of those of the rank in this step */
        for (int k = j + 1; k < t->n_memory && t->memory[k].step == x->step && last; k++)
            last = !rankset_has(&t->memory[k].ranks, m->rank);
        if (last && all > top) top = all;
        for (int q = 0; q < MEM_KINDS && last && x->step <= m->step && all == m->total; q++)
            assert_int_equal(now[q], m->bytes[q]);
    }
    for (int q = 0; q < MEM_KINDS; q++) {
        sum += m->bytes[q];
        if (first) assert_int_equal(m->bytes[q], lookup_peak(t, categories[q]));
    }
    assert_int_equal(sum, m->total);
    assert_int_equal(m->total, top);
}
/* On every plan: the parts are the records', and who reads what explains every record. */
static void memory_is_the_records(void **state) {
    (void)state;
    PlanFiles f = plan_files("plans/*.yaml", "plans");
    while (plan_files_next(&f)) {
        Arena *a = f.a;
        const char *path = f.path;
        PlanRun r = run_file(a, path, &(PipelineOptions){.events = true});
        assert_non_null(r.t);
        MemClass *cls;
        MemCourse c;
        int n = memory_classes(a, r.t, &cls);
        assert_true(n > 0);
        for (int k = 0; k < n; k++) {
            parts_are_the_records(r.t, &cls[k], k == 0);
            assert_true(memory_course(a, r.t, cls[k].rank, &c));
            if (!c.exact) print_message("%s\n", path);
            assert_true(c.exact);
            const MemLife **l;
            int64_t alive = c.flight;
            for (int q = memory_alive(a, &c, c.peak, &l); q > 0; q--) alive += l[q - 1]->bytes;
            assert_int_equal(alive, c.at_peak);
        }
        assert_true(
            memory_course(a, r.t, memory_rank(-1, cls, n), &c)); /* the rank that a figure shows */
        RenderOptions o = options("memory");
        const char *words = picture(a, r.t, &o, FORMAT_SVG),
                   *text = picture(a, r.t, &o, FORMAT_TEXT);
        says(words, bytes_text(cls[0].total, a));
        MemTime m; /* of a pipeline the picture has the course over time */
        if (memory_time(a, r.t, &c, &m))
            says(words, arena_printf(a, "peak %s %s", bytes_text(m.at_peak, a),
                                     m.peak < 0 ? "after the last" : "in "));
        else says(words, arena_printf(a, "peak %s at step %d", bytes_text(c.at_peak, a), c.peak));
        for (int q = 0; q < MEM_KINDS; q++)
            if (cls[0].bytes[q]) says(text, bytes_text(cls[0].bytes[q], a));
        says(words, "apacity"); /* the machine's, drawn or told; words break anywhere */
    }
}

/* ---- storyboard ---- */

static const char mlp_plan[] =
    "name: small\n"
    "model: {kind: mlp, sizes: [6, 8, 4], bias: false, activation: relu, layer_names: [up, down]}\n"
    "data: {rows: 8, dtype: f32, seed: 3}\nmesh: {tp: 4}\nplan:\n  up: colwise\n";

/* The numbers of a sample against those of the value that the trace keeps whole: the element at the
 * sample's index. */
static void holds_the_value(const Trace *t, const TraceSample *k) {
    const TraceValue *v = NULL;
    for (int i = 0; i < t->n_values; i++)
        if (t->values[i].step == k->step) v = &t->values[i];
    assert_non_null(v);
    assert_true(v->n_numbers > 0);
    for (int c = 0; c < k->n_chunks; c++) {
        int64_t at = 0;
        const char *p = k->at[c] + 1;
        for (int d = 0; d < v->shape.nd; d++) {
            char *end;
            at = at * v->shape.global_shape[d] + strtoll(p, &end, 10);
            p = end + 1;
        }
        assert_true(at < v->n_numbers);
        assert_true(k->after[c] == v->numbers[at]);
    }
}

/* Four chunks of four ranks: sums add up, and picture and text print every number. */
static void holds_the_sums(Arena *a, const TraceSample *k, const char *op, const char *words,
                           const char *text) {
    bool gather = !strcmp(op, "all_gather"), swap = !strcmp(op, "all_to_all");
    /* terms have to be seen to add up; what is only moved needs to be told apart */
    const bool few = (gather || swap) && !strstr(words, arena_printf(a, "%.3f", fabs(*k->before)));
    const int digits = few ? 2 : 3;
    for (int c = 0; c < 4; c++) {
        double sum = 0;
        for (int m = 0; m < (gather ? 1 : 4); m++) {
            double v = k->before[gather ? c : 4 * c + m];
            assert_true(isfinite(v));
            sum += v;
            says(words, arena_printf(a, "%.*f", digits, fabs(v)));
            says(text, arena_printf(a, "%.*f", digits, fabs(v)));
        }
        if (swap) assert_true(k->after[c] == k->before[4 * c + (c + 1) % 4]);
        else assert_true(fabs(sum - k->after[c]) <= 1e-6 * (1 + fabs(sum)));
        says(words, arena_printf(a, "%.*f", digits, fabs(k->after[c])));
    }
}

/* A reduction that is done twice: the frames are of one time, and M is the same in all of them as
 * in the words behind. */
static void one_size_of_what_is_sent(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = run_file(a, "plans/bugs/06-reduced-twice.yaml", &(PipelineOptions){.events = true});
    assert_non_null(r.t);
    RenderOptions o = options("storyboard");
    const char *text = picture(a, r.t, &o, FORMAT_TEXT);
    says(text, "sent 1/2 of M = 16 KiB");
    says(text, "sent M = 32 KiB");
    says(text, "Step 2 of 4: done once");
    says(text, "over tp, M = 32 KiB");
    says(text, "64 KiB sent per rank");
    assert_null(strstr(text, "M = 64 KiB"));
    arena_free(a);
}

/* What is said without being asked: no sum of one number, which has no chunks, where tensors are
 * summed too; nor that padded chunks are a part of M. A sentence of a subtitle has one stop. */
static void a_story_worth_telling(void **state) {
    (void)state;
    Arena *a = arena_new();
    PipelineOptions events = {.events = true};
    RenderOptions o = options("storyboard");
    PlanRun zero = run_file(a, "plans/50-llama3-8b-zero1.yaml", &events);
    const char *text = picture(a, zero.t, &o, FORMAT_TEXT);
    says_not(text, "loss_mean");
    says(text, "of the gradient of ");
    says_not(picture(a, zero.t, &o, FORMAT_SVG), ". ·");
    PlanRun twice = run_file(a, "plans/bugs/40-loss-times-cp.yaml", &events);
    text = picture(a, twice.t, &o, FORMAT_TEXT);
    says(text, "sent 4 B");
    says_not(text, "sent 1/2 of M");
    arena_free(a);
}

/* Every kind on small plans: the numbers before and after are the run's, sums add up, and the
 * picture prints them. */
static void storyboard_is_the_run(void **state) {
    (void)state;
    static const struct {
        const char *op, *down;
    } row[] = {{"all_gather",
                "  down: {style: prepare_module_input, input: [shard(-1)], desired_input: "
                "[replicate], use_local_output: true}\n"},
               {"all_reduce", "  down: rowwise\n"},
               {"reduce_scatter", "  down: {style: rowwise, output: shard(0)}\n"},
               {"all_to_all", "  down: {style: prepare_module_input, input: [shard(-1)], "
                              "desired_input: [shard(0)], use_local_output: true}\n"}};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run_with(
            a, "small.yaml", arena_printf(a, "%s%s", mlp_plan, row[i].down),
            &(PipelineOptions){.execute = true, .numbers = true, .events = true, .threads = 1});
        if (!r.t || !r.t->executed) run_print(&r);
        assert_true(r.t && r.t->executed);
        const TraceSample *k = NULL;
        const TraceCollective *coll = NULL;
        for (int j = 0; j < r.t->n_collectives; j++)
            if (!strcmp(r.t->collectives[j].op, row[i].op)) coll = &r.t->collectives[j];
        assert_non_null(coll);
        for (int j = 0; j < r.t->n_samples; j++)
            if (r.t->samples[j].step == coll->step) k = &r.t->samples[j];
        assert_non_null(k);
        assert_int_equal(k->n_chunks, 4);
        holds_the_value(r.t, k);
        RenderOptions o = options("storyboard");
        o.part = row[i].op;
        const char *words = picture(a, r.t, &o, FORMAT_SVG),
                   *text = picture(a, r.t, &o, FORMAT_TEXT);
        holds_the_sums(a, k, row[i].op, words, text);
        says(words, "executed on 4 virtual ranks");
        says(words, "Numbers: of the run");
        if (i == 1 || i == 2) says(words, "the sums are those of the run");
        says(words, arena_printf(a, "%s sent per rank", bytes_text(coll->bytes_sent, a)));
        /* a saved trace gives the same picture */
        size_t n;
        char *saved = trace_text(r.t, a, true, &n);
        Trace *again = trace_read(a, r.d, "saved", saved, n);
        assert_non_null(again);
        assert_string_equal(picture(a, again, &o, FORMAT_SVG), words);
        /* another result is noticed */
        TraceSample *first = &again->samples[0]; /* small chunks are shown element by element */
        if (i == 1) *(first->n_made ? first->made : first->after) += 1;
        if (i == 1) says(picture(a, again, &o, FORMAT_SVG), "results differ from these sums");
        /* and without a run there are no numbers */
        again->n_samples = 0;
        says(picture(a, again, &o, FORMAT_SVG), "No numbers:");
        arena_free(a);
    }
}

static bool relocates(const char *op) {
    for (int k = 0; k < MOVE_KINDS; k++)
        if (!strcmp(move_name((MoveKind)k), op)) return move_relocates((MoveKind)k);
    return false;
}
/* On every plan: each collective of at most 64 ranks has a sample of the asked rank's group, and it
 * is right. */
static void every_collective_is_sampled(void **state) {
    (void)state;
    PlanFiles f = plan_files("plans/*.yaml", "plans");
    while (plan_files_next(&f)) {
        Arena *a = f.a;
        const char *path = f.path;
        PlanRun r = run_file(
            a, path, &(PipelineOptions){.execute = true, .numbers = true, .rank = 1, .threads = 1});
        assert_true(r.t && r.t->executed);
        for (int j = 0; j < r.t->n_collectives; j++) {
            const TraceCollective *c = &r.t->collectives[j];
            const TraceSample *k = NULL;
            for (int q = 0; q < r.t->n_samples; q++)
                if (r.t->samples[q].step == c->step) k = &r.t->samples[q];
            int64_t shape = 0;
            for (int q = 0; q < r.t->n_values; q++)
                if (r.t->values[q].step == c->step) shape = r.t->values[q].shape.nd;
            bool asked = false; /* rank 1 takes part: in a pipeline it does not in every stage */
            for (int64_t grp = 0; grp < groups_count(&c->groups); grp++)
                for (int64_t q = 0; q < groups_size(&c->groups); q++)
                    asked |= groups_member(&c->groups, grp, q) == 1;
            assert_true(asked || r.t->schedule);
            /* a single number has no chunks; what lies on one rank alone goes round no ring */
            if (shape == 0 || !asked || relocates(c->op)) continue;
            if (trace_routed(r.t, c->step)) { /* an index list has no numbers, but names of rows */
                assert_null(k);
                continue;
            }
            assert_non_null(k);
            int64_t n = groups_size(&c->groups);
            assert_int_equal(k->size, n);
            bool member = false;
            for (int64_t q = 0; q < n; q++)
                for (int64_t grp = 0; grp < groups_count(&c->groups); grp++)
                    member |= groups_member(&c->groups, grp, 0) == k->first &&
                              groups_member(&c->groups, grp, q) == 1;
            assert_true(member);
            for (int q = 0; c->reduce && !strcmp(c->reduce, "sum") && q < k->n_chunks; q++) {
                double sum = 0, most = 0;
                for (int64_t m = 0; m < n; m++)
                    sum += k->before[q * n + m], most = fmax(most, fabs(k->before[q * n + m]));
                if (isnan(sum)) continue; /* fewer elements than ranks */
                assert_true(fabs(sum - k->after[q]) <= 1e-5 * (most + fabs(sum)));
            }
        }
    }
}

/* ---- errors ---- */

/* The row's check before or behind this one; NULL: it has no more. Micro-batches and training steps
 * have a row each. */
static const TraceCheck *next_check(const Trace *t, const TraceCheck *from, int way) {
    int i = (int)(from - t->checks) + way;
    while (i >= 0 && i < t->n_checks && !t->checks[i].level) i += way;
    const TraceCheck *c = i >= 0 && i < t->n_checks ? &t->checks[i] : NULL;
    return c && c->step == from->step && !strcmp(c->value, from->value) ? c : NULL;
}
static void hold_check(const ErrMap *m, const ErrRow *row, const TraceCheck *c) {
    bool fail = !strcmp(c->verdict, "FAIL");
    for (int64_t rank = 0; fail && rank < m->t->ranks; rank++)
        if (rankset_has(&c->ranks, rank)) assert_true(row->state[m->column[rank]] >= ERR_FIRST);
    for (int q = 0; fail && q < c->n_rank_error; q++)
        if (m->per_column == 1 && isfinite(c->rank_error[q].error) && row->worst == c)
            assert_true(row->error[c->rank_error[q].rank] >= c->rank_error[q].error);
}
/* States and errors of a row are those of the check records of its step and value in one round. */
static void hold_rows(const ErrMap *m, const Trace *t) {
    for (int k = 0; k < m->n; k++) {
        const ErrRow *row = &m->row[k];
        if (row->values > 1 || !row->worst) continue;
        double top = 0;
        const TraceCheck *c = row->worst;
        for (const TraceCheck *x = c; x; x = next_check(t, x, -1)) c = x;
        for (; c; c = next_check(t, c, 1)) {
            hold_check(m, row, c);
            top = fmax(top, c->max_abs);
        }
        if (isfinite(top) && isfinite(row->max)) assert_true(row->max == top);
    }
}
/* Rows of a wrong step; one in all of its micro-batches or training steps is one. */
static int wrong_steps(const ErrMap *m) {
    int n = 0, same = 0;
    for (int i = 0; i < m->n; i++) {
        const ErrRow *r = &m->row[i];
        if (r->worst_state != ERR_FIRST && r->worst_state != ERR_ALSO) continue;
        n++;
        same += r->step == m->first->step && !strcmp(r->name, m->first->name);
    }
    const bool rounds = m->row[m->n - 1].round < m->parts || m->parts == 1;
    return n > 1 && same == n && rounds ? 1 : n;
}
/* The run without what the plan plants stands beside it, and is right. Is the first wrong value in
 * it too? A sum that is not due is not. */
static bool hold_beside(Arena *a, const char *path, PlanRun *r, RenderOptions *o) {
    ErrMap left, right;
    PlanRun sound =
        run_file(a, path, &(PipelineOptions){.execute = true, .threads = 1, .sound = true});
    int over = -1;
    assert_true(errors_pair(a, r->t, sound.t, &left, &right, &over));
    run_must_be(&sound, "equivalent");
    assert_true(over >= 0);
    const ErrRow *twin = left.first->beside; /* a sum that is not due has none */
    if (twin) assert_string_equal(twin->name, left.first->name);
    if (twin && left.first->how) assert_string_equal(twin->how, left.first->how);
    if (twin) assert_true(twin->worst_state < ERR_SUSPECT);
    o->beside = sound.t;
    o->beside_planted = true;
    const char *words = picture(a, r->t, o, FORMAT_SVG);
    says(words, "all right");
    says(words, "Without the mistake");
    const int dark = wrong_steps(&left);
    says(words, arena_printf(a, "%d wrong step%s", dark, dark == 1 ? "" : "s"));
    if (r->rep.plan->n_faults && !left.first->planted_at)
        fail_msg("%s: nobody says where it is planted", path);
    bool near = false, inf = false; /* what has an ink or a word of its own has a key */
    for (int i = 0; i < left.n; i++) {
        near |= errors_far(&left, &left.row[i]) == ERR_AFTER;
        inf |= left.row[i].far && isinf(left.row[i].far->max_abs);
    }
    if (near) says(words, "made from wrong values, within its bound");
    if (left.check->max_abs > 1e30 && isfinite(left.check->max_abs)) says(words, "sees no key");
    if (inf) says(words, "inf: blocks of other sizes, no number");
    says(picture(a, r->t, o, FORMAT_TEXT), "where every value is right");
    static const char *const preset[] = {"wide", "column", "slide", "a4"};
    for (int q = 0; q < 4; q++) {
        const char *report;
        o->preset = preset[q];
        int n = render_lint(r->t, r->d, o, a, &report);
        if (n) print_message("%s %s\n%s", path, o->preset, report);
        assert_int_equal(n, 0);
    }
    return twin != NULL;
}

/* On every plan of plans/bugs that runs: rows, numbers and states are the check records, and the
 * run without what was planted stands beside it. */
static void errors_are_the_checks(void **state) {
    (void)state;
    int wrong = 0, planted = 0, with_twin = 0;
    PlanFiles f = plan_files("plans/bugs/*.yaml", "plans");
    while (plan_files_next(&f)) {
        Arena *a = f.a;
        const char *path = f.path;
        PlanRun r = run_file(a, path, &(PipelineOptions){.execute = true, .threads = 1});
        ErrMap m;
        if (!r.t || !r.t->executed || !r.t->n_fail) continue;
        wrong++;
        assert_true(errors_map(a, r.t, &m));
        if (!m.first) fail_msg("%s: no first wrong row", path);
        assert_string_equal(m.first->name, r.t->first_wrong);
        hold_rows(&m, r.t);
        RenderOptions o = options("errors");
        const char *words = picture(a, r.t, &o, FORMAT_SVG);
        says(words, arena_printf(a, "%lld fail.", (long long)r.t->n_fail));
        for (int q = 0; q < m.check->n_rank_error && q < 8 && m.per_column == 1; q++)
            if (isfinite(m.check->rank_error[q].error))
                says(words, errors_number(a, m.check->rank_error[q].error));
        if (m.check->n_index) says(words, arena_printf(a, "%.6g", m.check->got));
        if (m.check->n_index) says(words, arena_printf(a, "%.6g", m.check->want));
        if (plan_asks_wrong(r.rep.plan)) {
            says(words, arena_printf(a, "First wrong value · the plan's %s", m.first->planted));
            says(words, arena_printf(a, "Say `%s`", wrong_right_key(m.first->planted)));
        }
        if (r.rep.plan->n_faults || r.rep.plan->n_gradients || plan_asks_wrong(r.rep.plan)) {
            planted++;
            if (r.rep.plan->n_faults) /* a fault spoils the very step or source that it names */
                says(words, arena_printf(a, "First wrong value · planted: %s",
                                         m.first->planted ? m.first->planted : "?"));
            with_twin += hold_beside(a, path, &r, &o);
        }
    }
    assert_true(f.take < f.all || (wrong > 10 && planted > 5));
    assert_true(with_twin >= planted - 2);
}

/* The state of a rank in the first row of that name made by `how` (NULL: computed). */
static ErrState state_in(const ErrMap *m, const char *name, const char *how, int rank) {
    for (int i = 0; i < m->n; i++) {
        const ErrRow *r = &m->row[i];
        bool same = how ? r->how && !strcmp(r->how, how) : !r->how;
        if (same && !strcmp(r->name, name)) return r->state[m->column[rank]];
    }
    fail_msg("no row of %s", name);
    return ERR_NONE;
}
/* An update that never came: the next training step reads it, and the mistake is made again. */
static void the_next_step_reads_it(void **state) {
    (void)state;
    Arena *a = arena_new();
    ErrMap m;
    int n = 0;
    PlanRun r = run_file(a, "plans/bugs/72-an-update-not-broadcast.yaml",
                         &(PipelineOptions){.execute = true, .threads = 1});
    assert_true(errors_map(a, r.t, &m));
    for (int i = 0; i < m.n; i++) {
        const ErrRow *row = &m.row[i];
        n += row->planted && row->worst_state == (row->round ? ERR_ALSO : ERR_FIRST);
        if (!row->planted && (row->worst_state == ERR_ALSO || row->worst_state == ERR_FIRST))
            fail_msg("%s of training step %d is called a wrong step", row->name, (int)row->round);
        if (row->round && row->step == 27) { /* rank 0's is the stale one */
            assert_int_equal(row->state[m.column[0]], ERR_AFTER);
            assert_int_equal(row->state[m.column[1]], ERR_LATER);
        }
    }
    assert_int_equal(n, 2);
    arena_free(a);
}
/* After a wrong value right steps go on with it: they are not shown as right, on the ranks that it
 * reaches and on no others. */
static void wrong_values_are_followed(void **state) {
    (void)state;
    Arena *a = arena_new();
    PipelineOptions run = {.execute = true, .threads = 1};
    ErrMap m;
    /* the last tokens are lost on rank 3: the others learn of it in the next all-gather */
    PlanRun r = run_file(a, "plans/bugs/37-last-tokens-dropped.yaml", &run);
    assert_true(errors_map(a, r.t, &m));
    for (int rank = 0; rank < 4; rank++) {
        ErrState reached = rank == 3 ? ERR_AFTER : ERR_ROUNDED;
        assert_int_equal(state_in(&m, "layers.0.resid_attn", NULL, rank), reached);
        assert_int_equal(state_in(&m, "layers.0.post_attn_norm", NULL, rank), reached);
        assert_int_equal(state_in(&m, "layers.0.post_attn_norm", "AllGather", rank), ERR_AFTER);
        assert_int_equal(state_in(&m, "layers.0.output", NULL, rank), ERR_AFTER);
        assert_int_equal(state_in(&m, "layers.0.q_proj", NULL, rank), ERR_ROUNDED);
    }
    RenderOptions o = options("errors");
    const char *words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "The first wrong value comes after wo, and 10 later ones follow from it");
    says(words, "a right step on wrong inputs");
    /* what a cell says is in the legend; a row of the only layer says its name in full */
    says(words, "layer 0");
    says_not(words, "\nlayers.0.attention.wo · ");
    r = run_file(a, "plans/bugs/01-output-left-partial.yaml", &run);
    words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "after");
    says(words, "the same, beside a wrong rank");
    r = run_file(a, "plans/bugs/04-wrong-block.yaml", &run);
    words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "wo");
    says_not(words, "ReduceScat…");
    says(words, "layers.0.attention.wo"); /* as plan and block call what gives it */
    /* rank 0 is what the others are compared with, and as wrong as they are */
    r = run_file(a, "plans/bugs/33-norm-over-own-columns.yaml", &run);
    assert_true(errors_map(a, r.t, &m));
    assert_int_equal(state_in(&m, "layers.0.q_proj", NULL, 0), ERR_AFTER);
    assert_int_equal(state_in(&m, "layers.0.q_proj", NULL, 1), ERR_LATER);
    /* an input that no check of a step shows */
    r = run_file(a, "plans/bugs/44-ranks-fed-different-data.yaml", &run);
    assert_true(errors_map(a, r.t, &m));
    assert_int_equal(state_in(&m, "embed", NULL, 0), ERR_EQUAL);
    assert_int_equal(state_in(&m, "embed", NULL, 1), ERR_AFTER);
    assert_int_equal(state_in(&m, "embed", "ReduceScatter", 0), ERR_AFTER);
    /* a gradient that nothing reads; a run that cannot go on; a second training step */
    r = run_file(a, "plans/bugs/28-hsdp-divisor-ignores-the-copies.yaml", &run);
    says(picture(a, r.t, &o, FORMAT_SVG), "nothing is computed from it");
    r = run_file(a, "plans/bugs/31-twice-f-divides-f-does-not.yaml", &run);
    says(picture(a, r.t, &o, FORMAT_SVG), "the run ends there");
    r = run_file(a, "plans/bugs/43-clip-not-applied.yaml", &run);
    assert_true(errors_map(a, r.t, &m));
    int n = 0, reached = 0;
    for (int i = 0; i < m.n; i++) {
        if (strcmp(m.row[i].name, "logits")) continue;
        reached += m.row[i].worst_state == ERR_AFTER;
        assert_int_equal(m.row[i].worst_state == ERR_AFTER, n++ > 0);
    }
    assert_int_equal(reached, 1);
    arena_free(a);
}

/* Too many rows fold by modules, from the last on until they are few enough, so that the values
 * that come first keep their rows: each stands for its values and says the worst of them; what is
 * first wrong, or planted, keeps its row, and nothing is lost. */
static void rows_fold_by_modules(void **state) {
    (void)state;
    static const char *const plans[] = {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                                        "plans/bugs/13-gradient-not-summed-over-dp.yaml"};
    for (int k = 0; k < 2; k++) {
        Arena *a = arena_new();
        ErrMap all, m;
        PlanRun r = run_file(a, plans[k], &(PipelineOptions){.execute = true, .threads = 1});
        assert_true(errors_map(a, r.t, &all) && errors_map(a, r.t, &m));
        int rows = 40, before = 0, after = 0, modules = 0, wrong = 0, first = -1, forward = 0;
        assert_true(all.n > rows);
        errors_fold(a, &m, rows);
        assert_true(m.n <= rows);
        double worst = 0, kept = 0;
        for (int i = 0; i < all.n; i++)
            before += all.row[i].values, worst = fmax(worst, all.row[i].max);
        for (int i = 0; i < m.n; i++) {
            const ErrRow *x = &m.row[i];
            bool folded = x->how && *x->how == '+';
            after += x->values, kept = fmax(kept, x->max);
            wrong += x->worst_state >= ERR_FIRST;
            if (folded) assert_int_equal(atoi(x->how), x->values - 1);
            if (folded && !x->sources && first < 0) first = i;
            forward += first < 0 && !strcmp(x->name, "layers.0.attn_context");
            if (folded) assert_true(!x->planted && x->worst_state != ERR_FIRST);
            /* backward; where what is wrong parts them more than one */
            modules += folded && !strcmp(x->name, "layers.0.attention") && x->before;
            assert_true(!folded || x->before || x->sources);
        }
        assert_int_equal(before, after);
        assert_true(worst == kept);
        assert_int_equal(modules, 1);
        assert_int_equal(forward, 1);
        assert_true(m.n > rows * 3 / 4);
        assert_int_equal(wrong, all.wrong);
        assert_int_equal(m.first != NULL, all.first != NULL);
        if (m.first) assert_string_equal(m.first->name, r.t->first_wrong);
        arena_free(a);
    }
}

/* What a row of the picture is called: the first words of its group, all runs of them. */
static const char *called(Arena *a, const Scene *s, const Group *g) {
    for (int i = g->first; i < g->last; i++) {
        const Mark *m = &s->marks[i];
        Str name = str_new(a);
        for (int k = 0; m->kind == MARK_TEXT && k < m->n_run; k++) str_add(&name, m->run[k].s);
        if (m->kind == MARK_TEXT) return name.s;
    }
    return "";
}
/* No two rows of one value read alike: each says which use of a value, which pass, which hop or
 * which copy it is of. Rows of parts ("MoE +1") have a count. */
static void rows_are_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *plan, *says[3];
    } row[] = {{"plans/bugs/02-bias-on-every-rank.yaml", {"net2 · linear", "net2 · bias"}},
               {"plans/bugs/24-mean-of-means.yaml",
                {"gradient after output · via target logit",
                 "gradient after output · via sum of exp", "gradient after output · sum of 2"}},
               {"plans/bugs/30-recompute-skips-a-collective.yaml",
                {"wq · again", "wo · ReduceScatter, for backward"}},
               {"plans/bugs/57-token-range-of-another-group.yaml", {"moe.list · AllToAll"}},
               {"plans/bugs/60-a-hop-left-out.yaml", {"wv · Shift, 2 of 3", "wv · Shift, 3 of 3"}},
               {"plans/bugs/81-last-experts-on-no-rank.yaml",
                {"gradient of moe.dispatched · via w3", "gradient of moe.dispatched · via w1",
                 "gradient of moe.dispatched · sum of 2"}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, row[i].plan, &(PipelineOptions){.execute = true, .threads = 1});
        run_must_be(&r, "different");
        RenderOptions o = options("errors");
        Scene *page[32];
        assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
        const Scene *s = page[0];
        const char **name = ARENA_ARRAY(a, const char *, s->n_groups + 1);
        bool seen[3] = {false};
        int n = 0;
        for (int g = 0; g < s->n_groups; g++) {
            if (strcmp(s->groups[g].what, "row")) continue;
            name[n] = called(a, s, &s->groups[g]);
            if (strstr(name[n], " +")) continue;
            for (int k = 0; k < n; k++)
                if (!strcmp(name[k], name[n])) fail_msg("%s: '%s' twice", row[i].plan, name[n]);
            for (int k = 0; k < 3 && row[i].says[k]; k++)
                seen[k] |= !strcmp(name[n], row[i].says[k]);
            n++;
        }
        for (int k = 0; k < 3 && row[i].says[k]; k++)
            if (!seen[k]) fail_msg("%s: no row '%s'", row[i].plan, row[i].says[k]);
        arena_free(a);
    }
}
/* A rank that has nothing of a wrong value is not told to be right. */
static void who_has_none_is_not_right(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = run_file(a, "plans/bugs/70-a-send-left-out.yaml",
                         &(PipelineOptions){.execute = true, .threads = 1});
    ErrMap m;
    assert_true(errors_map(a, r.t, &m));
    assert_int_equal(m.first->state[1], ERR_FIRST);
    assert_int_equal(m.first->state[0], ERR_NONE); /* it sends */
    arena_free(a);
}
/* The panel says which line of the plan is to blame, of mistakes in what ranks read and of labels
 * that belong to no module, too; a value without its layer has all of its name. */
static void the_line_to_blame(void **state) {
    (void)state;
    static const char *const plan[][2] = {{"01-output-left-partial.yaml", "13"},
                                          {"22-loss-without-its-sums.yaml", "22"},
                                          {"24-mean-of-means.yaml", "10"},
                                          {"51-routed-experts-not-summed.yaml", "14"}};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, arena_printf(a, "plans/bugs/%s", plan[i][0]),
                             &(PipelineOptions){.execute = true, .threads = 1});
        RenderOptions o = options("errors");
        const char *w = picture(a, r.t, &o, FORMAT_SVG);
        says(w, arena_printf(a, "Plan line %s:%s\n", plan[i][0], plan[i][1]));
        says_not(w, "The key");
        if (i == 3) says(w, "The first wrong value is moe.routed,");
        arena_free(a);
    }
}

/* 1024 ranks: those of which every check says the same are one column, and no wrong rank hides in a
 * right column. */
static void ranks_fold_into_classes(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = trace_new(a);
    t->ranks = 1024;
    t->plan = "many", t->hash = "0", t->version = "0";
    t->executed = true, t->verdict = "different", t->n_fail = 1, t->first_wrong = "y";
    RankSet all = rankset_range(a, 0, 1024, 1), some = rankset_range(a, 5, 3, 256);
    *ARENA_PUSH(a, t->checks, t->n_checks, t->cap_checks) = (TraceCheck){.step = 0,
                                                                         .value = "x",
                                                                         .pass = PHASE_FORWARD,
                                                                         .level = 1,
                                                                         .ranks = all,
                                                                         .verdict = "PASS"};
    TraceCheck bad = {.step = 1,
                      .value = "y",
                      .pass = PHASE_FORWARD,
                      .level = 2,
                      .ranks = some,
                      .verdict = "FAIL",
                      .max_abs = 3};
    bad.n_rank_error = 3;
    bad.rank_error = arena_alloc(a, 3 * sizeof *bad.rank_error);
    for (int i = 0; i < 3; i++)
        bad.rank_error[i].rank = 5 + 256 * i, bad.rank_error[i].error = i ? 2 : 3;
    *ARENA_PUSH(a, t->checks, t->n_checks, t->cap_checks) = bad;
    ErrMap m;
    assert_true(errors_map(a, t, &m));
    assert_int_equal(m.n_columns, 3); /* right; wrong by 3; wrong by 2 */
    assert_string_equal(rankset_text(&m.members[m.column[5]], a), "5");
    assert_string_equal(rankset_text(&m.members[m.column[261]], a), "261,517");
    assert_int_equal(m.row[1].state[m.column[0]], ERR_RIGHT);
    assert_int_equal(m.row[1].state[m.column[517]], ERR_FIRST);
    assert_true(m.row[1].error[m.column[5]] == 3 && m.row[1].error[m.column[517]] == 2);
    RenderOptions o = options("errors");
    const char *words = picture(a, t, &o, FORMAT_SVG);
    says(words, "1021 ranks");
    says(words, "261,517");
    arena_free(a);
}

/* ---- long names, parts of unequal size ---- */

/* Four axes with names as large systems write them, and ranks without a token: no picture lets
 * words run into each other, or makes different axes look the same. */
static void long_names_fit(void **state) {
    (void)state;
    static const char plan[] =
        "model: {preset: llama3-8b, layers: 1, shrink: 32}\n"
        "data: {batch: 3, sequence: 31, dtype: f32, seed: 0}\n"
        "mesh: {dp_replicate: 2, dp_shard: 2, context: 2, tensor: 2}\n"
        "pass: backward\n"
        "groups: {dp: dp_replicate*dp_shard, cp: context, tp: tensor}\n"
        "data_parallel: {mode: hsdp, replicate: dp_replicate, shard: dp_shard*context}\n"
        "context_parallel: {mode: all_gather, order: contiguous, axis: context}\n"
        "recipe: torchtitan-llama3\n";
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "long.yaml", plan, true);
    if (!r.t) run_print(&r);
    assert_non_null(r.t);
    cost_simulate(r.t, hardware_find(a, r.d, "h100-sxm", NULL, (Loc){0}));
    static const char *const views[] = {"block",    "mesh",   "shards", "timeline",
                                        "overview", "memory", "errors", "storyboard"};
    static const char *const preset[] = {"wide", "column", "slide", "a4"};
    int bad = 0;
    for (int v = 0; v < 8; v++)
        for (int p = 0; p < 4; p++) {
            const char *report;
            RenderOptions o = options(views[v]);
            o.preset = preset[p];
            render_lint(r.t, r.d, &o, a, &report);
            for (const char *line = report; line && *line; line = strchr(line, '\n')) {
                line += *line == '\n';
                int n = (int)strcspn(line, "\n");
                const char *text = arena_strndup(a, line, (size_t)n);
                /* what does not fit on a slide or a page is scaled down */
                if (!n || (p >= 2 && strstr(text, "text smaller than"))) continue;
                print_message("%s %s: %s\n", views[v], preset[p], text);
                bad++;
            }
        }
    assert_int_equal(bad, 0);
    RenderOptions o = options("mesh");
    says(picture(a, r.t, &o, FORMAT_SVG), "1,1,0,1");
    o = options("timeline"); /* each stream is told from the others */
    const char *words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "dp_replicate·dp_shard·context·tensor");
    says(words, "dp_replicate·tensor {0,1,8,9}");
    assert_int_equal(theme_axis("tensor"), AXIS_TP);
    assert_int_equal(theme_axis("context"), AXIS_CP);
    assert_int_equal(theme_axis("dp_replicate"), AXIS_DP);
    assert_int_equal(theme_axis("tensors"), AXIS_USER);
    /* several axes are told from each of them by colour; parts of one are no product */
    assert_int_equal(theme_axis("dp*cp"), AXIS_PRODUCT);
    assert_int_equal(theme_axis("dp*cp*tp"), AXIS_PRODUCT);
    assert_int_equal(theme_axis("mine*other"), AXIS_PRODUCT);
    assert_int_equal(theme_axis("tp.0*tp.1"), AXIS_TP);
    assert_int_equal(theme_axis("mine.0*mine.1"), AXIS_USER);
    assert_int_equal(theme_axis("dp_replicate*dp_shard"), AXIS_DP);
    assert_string_equal(words_color_axis(a, r.t, NULL, "dp_shard*context"), "dp_shard*context");
    arena_free(a);
}

/* ---- shards ---- */

/* Marks what the slices say; returns their length. */
static int64_t mark(const char *range, int64_t size, char *has) {
    int64_t n = 0;
    if (!strcmp(range, ":")) memset(has, 1, (size_t)size);
    if (!strcmp(range, ":")) return size;
    if (!strcmp(range, "none")) return 0;
    for (const char *p = range; *p;) {
        char *end;
        int64_t a = strtoll(p, &end, 10), b = strtoll(end + 1, &end, 10);
        assert_true(a < b && b <= size);
        memset(has + a, 1, (size_t)(b - a));
        n += b - a;
        p = *end == ',' ? end + 1 : end;
    }
    return n;
}
static int ranges_agree(Arena *a, const Trace *t, const TraceShape *s, const TraceParam *param) {
    int cut = 0;
    for (int d = 0; d < s->nd; d++) {
        char *all = arena_alloc(a, (size_t)s->global_shape[d] + 1);
        bool rows = false;
        memset(all, 0, (size_t)s->global_shape[d] + 1);
        for (int64_t r = 0; r < t->ranks; r++) {
            DimCut c =
                param ? shards_param_cut(a, t, param, d, r) : shards_value_cut(a, t, s, d, r);
            const char *range = shards_range(a, t, &c, r);
            const TraceLocal *l = words_find_local(s, r);
            cut += c.n > 1;
            rows |= c.rows;
            if (c.rows && c.n > 1) assert_null(range); /* a router says which */
            if (!range) continue;
            if (mark(range, s->global_shape[d], all) != (l ? l->shape[d] : 0))
                print_message("%s dim %d rank %lld: %s\n", s->name, d, (long long)r, range);
            assert_int_equal(mark(range, s->global_shape[d], all), l ? l->shape[d] : 0);
        }
        if (rows || (s->pending && *s->pending)) continue;
        for (int64_t i = 0; i < s->global_shape[d]; i++) assert_true(all[i]);
    }
    return cut;
}
/* On every plan, of every weight at rest and every value: what the ranks hold is as long as their
 * local shape and covers the whole; a weight cut as the list it is in memory counts as cut. */
static void ranges_cover(void **state) {
    (void)state;
    int cuts = 0;
    PlanFiles f = plan_files("plans/*.yaml", "plans");
    while (plan_files_next(&f)) {
        Arena *a = f.a;
        const char *path = f.path;
        PlanRun r = run_file(a, path, &(PipelineOptions){.threads = 1});
        for (int k = 0; k < r.t->n_params; k++)
            cuts += ranges_agree(a, r.t, &r.t->params[k].rest, &r.t->params[k]);
        for (int k = 0; k < r.t->n_values; k++)
            cuts += ranges_agree(a, r.t, &r.t->values[k].shape, NULL);
    }
    assert_true(f.take < f.all ? cuts > 0 : cuts > 1000);
}
static void shards_print_ranges(void **state) {
    (void)state;
    static const struct {
        const char *plan, *what[5];
        int rank;
    } row[] = {{"plans/19-llama3-8b-fsdp4.yaml",
                {"holds [64:128, :]", "dim 0 cut by dp into 4 parts: 64 ×4", NULL},
                1},
               {"plans/23-llama3-8b-packed.yaml", {"holds [448:896,1344:1792, :]", NULL}, 1},
               {"plans/01-column-row-mlp.yaml",
                {"holds [1024:1536, :]", "holds [:, 1024:1536]", NULL},
                2}};
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, row[i].plan, &(PipelineOptions){.threads = 1});
        RenderOptions o = options("shards");
        o.rank = row[i].rank;
        const char *text = picture(a, r.t, &o, FORMAT_TEXT),
                   *words = picture(a, r.t, &o, FORMAT_SVG);
        for (int k = 0; row[i].what[k]; k++) {
            says(text, row[i].what[k]);
            if (!strncmp(row[i].what[k], "holds ", 6)) says(words, row[i].what[k] + 6);
        }
        if (i == 0) says(words, "Gradients of parameters");
        arena_free(a);
    }
}

/* The grid of ranks on a terminal: weights that lie alike share one, a long dim has a gap but not
 * one of eight parts, which a node has, and every rank of a cell has that part of the weight. */
static void shards_show_ranks(void **state) {
    (void)state;
    static const struct {
        const char *plan, *what[4];
    } row[] = {{"plans/09-llama3-8b-dp2-cp2-tp2.yaml",
                {"attention_norm, ffn_norm: whole on every rank\n",
                 "wq, wk, wv, w1, w3: down dim 0 in 2 parts by tp\n  ┌─────────┐\n  │ 0,2,4,6 │\n"
                 "  ├─────────┤\n  │ 1,3,5,7 │\n  └─────────┘\n",
                 "wo, w2: across dim 1 in 2 parts by tp\n  ┌─────────┬─────────┐\n"
                 "  │ 0,2,4,6 │ 1,3,5,7 │\n  └─────────┴─────────┘\n"}},
               {"plans/20-llama3-8b-fsdp-tp.yaml",
                {"down dim 0 in 8 parts by tp·dp·cp\n  ┌───┐\n  │ 0 │\n  ├───┤\n  │ 2 │\n  ├───┤\n "
                 " │ 4 │\n  ├───┤\n  │ 6 │\n  ├───┤\n  │ 1 │\n  ├───┤\n  │ 3 │\n  ├───┤\n"
                 "  │ 5 │\n  ├───┤\n  │ 7 │\n  └───┘\n",
                 "wo, w2: down dim 0 in 4 parts by dp·cp, across dim 1 in 2 parts by tp\n",
                 "  ├───┼───┤\n  │ 2 │ 3 │\n"}},
               {"plans/30-mixtral-8x7b-ep-dp-cp.yaml",
                {"w1, w3: down dim 0 in 4 parts by dp·cp, across dim 1 in 2 parts by tp\n",
                 "w2: down dim 0 in 4 parts by dp·cp, across dim 2 in 2 parts by tp\n"}},
               {"plans/shape-only/llama3.1-405b-8192.yaml",
                {"  │ tp 0 │ tp 1 │ tp 2 │ tp 3 │ tp 4 │ tp 5 │ tp 6 │ tp 7 │\n"}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, row[i].plan, &(PipelineOptions){.threads = 1});
        RenderOptions o = options("shards");
        const char *text = picture(a, r.t, &o, FORMAT_TEXT);
        for (int k = 0; k < 4 && row[i].what[k]; k++) says(text, row[i].what[k]);
        arena_free(a);
    }
}

/* A part has one colour, wherever its pieces lie, and up to four parts have one each. Rows of
 * experts have no positions, so no order either; what zigzag is the footer says. */
static void parts_of_rulers(void **state) {
    (void)state;
    static const char *const plan[] = {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                                       "plans/30-mixtral-8x7b-ep-dp-cp.yaml"};
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, plan[i], &(PipelineOptions){.threads = 1});
        RenderOptions o = options("shards");
        Scene *page[VIEW_MAX_PAGES];
        assert_int_equal(render_pages(r.t, diags_new(a), &o, a, page), 1);
        const Scene *s = page[0];
        int zigzag = 0;
        for (int g = 0; g < s->n_groups; g++) {
            if (strcmp(s->groups[g].what, "ruler")) continue;
            int text[8] = {0}, at[8], n = 0; /* by number: the tone of its text, 0 unknown */
            for (int j = s->groups[g].first; j < s->groups[g].last; j++) {
                const Mark *m = &s->marks[j];
                if (m->kind != MARK_TEXT) continue;
                const char *word = m->run[0].s;
                int number = atoi(word), tone = 0;
                if (strstr(word, "zigzag")) assert_null(strstr(word, "rows")), zigzag++;
                if (strspn(word, "0123456789") != strlen(word) || number > 7) continue;
                for (int k = s->groups[g].first; k < j; k++) {
                    const Mark *b = &s->marks[k];
                    if (b->kind == MARK_RECT && b->fill >= ROLE_SHARD && b->fill <= ROLE_SHARD_3 &&
                        b->x < m->x && m->x < b->x + b->w)
                        tone = b->fill;
                }
                if (text[number]) assert_int_equal(text[number], tone);
                text[number] = tone, at[n < 8 ? n++ : 7] = number;
            }
            for (int k = 0; k < n && n <= 4; k++)
                for (int l = 0; l < k; l++)
                    if (at[l] != at[k]) assert_int_not_equal(text[at[k]], text[at[l]]);
        }
        assert_true(zigzag > 0);
        char *words = arena_strdup(a, picture(a, r.t, &o, FORMAT_SVG));
        for (char *c = words; *c; c++)
            if (*c == '\n') *c = ' ';
        says(words, "Zigzag: of 4 pieces cp i has those numbered i and 3 − i; tp cuts the two as "
                    "one list.");
        arena_free(a);
    }
}

/* Biases of experts [E, F] are no matrices of theirs but lie with what belongs to all experts; a
 * bias and what is no weight of a module are called so. */
static void biases_are_called_so(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = run_file(a, "plans/56-gpt-oss-20b-tp2-ep2.yaml", &(PipelineOptions){.threads = 1});
    RenderOptions o = options("shards");
    Scene *page[VIEW_MAX_PAGES];
    assert_int_equal(render_pages(r.t, diags_new(a), &o, a, page), 1);
    for (int g = 0; g < page[0]->n_groups; g++)
        if (!strcmp(page[0]->groups[g].what, "weight"))
            assert_null(strstr(page[0]->groups[g].id, "experts"));
    const char *words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "q_proj bias [H·d/tp]");
    says(words, "sinks [H/tp]");
    says(words, "\ngate_up_proj_bias\n");
    says_not(words, "\nbias\n");
    arena_free(a);
}

/* Which of the model's layers are counted is said where bytes are. */
static void layers_are_said(void **state) {
    (void)state;
    static const char *const view[] = {"shards", "memory", "overview", "mesh"};
    static const struct {
        const char *plan, *says;
    } row[] = {{"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "1 of 32 layers"},
               {"plans/56-gpt-oss-20b-tp2-ep2.yaml", "2 of 24 layers"},
               {"plans/47-llama3-8b-pp2-dp2-tp2.yaml", " of 32 layers"},
               {"plans/shape-only/llama3.1-405b-8192.yaml", NULL}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, row[i].plan, &(PipelineOptions){.threads = 1});
        for (int k = 0; k < 4; k++) {
            RenderOptions o = options(view[k]);
            Scene *page[VIEW_MAX_PAGES];
            const char *svg = picture(a, r.t, &o, FORMAT_SVG);
            if (row[i].says) says(svg, row[i].says);
            else says_not(svg, " of 126 layers");
            for (int n = render_pages(r.t, diags_new(a), &o, a, page); row[i].says && n--;)
                says(page_words(a, page[n], NULL), row[i].says);
        }
        arena_free(a);
    }
}

/* Where lines of a timeline are drawn wider than the scale that they share, the subtitle says by
 * how much at most, and does not call it one scale. */
static void subtitles_say_the_scales(void **state) {
    (void)state;
    static const char *const plans[] = {
        "plans/54-deepseek-v3-latent-ring4.yaml", "plans/34-llama4-scout-torchtitan.yaml",
        "plans/46-llama3-8b-pp2-zb-v.yaml", "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml"};
    int wide = 0;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, plans[i], &(PipelineOptions){.threads = 1, .events = true});
        RenderOptions o = options("timeline");
        const char *words = picture(a, r.t, &o, FORMAT_SVG);
        int most = 1, n;
        for (const char *x = strstr(words, "· drawn "); x; x = strstr(x + 1, "· drawn "))
            if (sscanf(x, "· drawn %d× as wide", &n) == 1 && n > most) most = n;
        wide += most > 1;
        if (most > 1) says(words, arena_printf(a, "to %d× as wide, as each says", most));
        if (most > 1) says_not(words, "at one scale");
        else says(words, " lines at one scale");
        arena_free(a);
    }
    assert_int_equal(wide, 1); /* nor is a kernel alone drawn wider than its name */
}
/* A line is drawn once for ranks that nobody can tell apart in it, is of the layer of its kernels,
 * whatever a sum behind them is of, and ends with the norms behind them. */
static void lines_are_what_they_say(void **state) {
    (void)state;
    static const struct {
        const char *plan, *has, *has_not;
    } row[] = {
        {"plans/51-llama3-8b-zero2-megatron.yaml", "285 µs · rank 0, as long on 1",
         "285 µs · rank 1"},
        {"plans/51-llama3-8b-zero2-megatron.yaml", "285 µs · rank 2, as long on 3",
         "285 µs · rank 3"},
        {"plans/51-llama3-8b-zero2-megatron.yaml", "Backward, layer 1, attention", "layers 0 to 1"},
        {"plans/56-gpt-oss-20b-tp2-ep2.yaml", "Backward, layer 0, attention",
         "Backward, layer 0, norm"},
        {"plans/34-llama4-scout-torchtitan.yaml", "Backward, loss and MoE", /* one kernel */
         "Backward, loss\n"},
        {"plans/54-deepseek-v3-latent-ring4.yaml", "Backward, norm", /* much is sent behind */
         "at one scale"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, row[i].plan, &(PipelineOptions){.threads = 1, .events = true});
        RenderOptions o = options("timeline");
        const char *words = picture(a, r.t, &o, FORMAT_SVG);
        says(words, row[i].has);
        says_not(words, row[i].has_not);
        arena_free(a);
    }
}
/* Ranks that hold the same to the last digit that is printed are one line; it says how far they are
 * apart. What the lines of DDP and ZeRO count, the figure says. */
static void memory_says_each_line_once(void **state) {
    (void)state;
    static const struct {
        const char *plan, *says[3];
    } row[] = {{"plans/shape-only/deepseek-v3-pp16-ep64.yaml",
                {"1664 ranks\n384-2047\n", "+ 148 GiB more, to within 6 MiB", ""}},
               {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                {"of live values", "; nothing is gathered for use",
                 "Under DDP and ZeRO gradients are there all the time"}},
               {"plans/21-llama3-8b-recompute.yaml", {"", "", ""}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, row[i].plan, &(PipelineOptions){.threads = 1});
        RenderOptions o = options("memory");
        Scene *page[VIEW_MAX_PAGES];
        const char *line[64], *words = picture(a, r.t, &o, FORMAT_SVG);
        int lines = 0;
        for (int k = 0; k < 3; k++) says(words, row[i].says[k]);
        assert_int_equal(render_pages(r.t, diags_new(a), &o, a, page), 1);
        const Scene *s = page[0];
        for (int g = 0; g < s->n_groups && lines < 64; g++) {
            if (strncmp(s->groups[g].id ? s->groups[g].id : "", "memory-", 7)) continue;
            Str t = str_new(a);
            for (int j = s->groups[g].first, n = 0; j < s->groups[g].last; j++)
                if (s->marks[j].kind == MARK_TEXT && n++ > 1) /* behind who they are */
                    for (int k = 0; k < s->marks[j].n_run; k++)
                        str_addf(&t, "%s|", s->marks[j].run[k].s);
            for (int k = 0; k < lines; k++) assert_string_not_equal(line[k], t.s);
            line[lines++] = t.s;
        }
        assert_true(lines > 0);
        arena_free(a);
    }
}

/* The title names all ranks that hold as much as is printed; values that one module makes with
 * several weights are told apart. */
static void memory_names_who_and_what(void **state) {
    (void)state;
    static const struct {
        const char *plan, *says[3];
    } row[] = {{"plans/shape-only/deepseek-v3-pp16-ep64.yaml",
                {"Each of the 1664 fullest ranks (384-2047) holds 151 GiB", "experts.down_proj\n",
                 "experts.gate_up_proj\n"}},
               {"plans/shape-only/llama3.1-405b-pp16.yaml",
                {"Each of the 512 fullest ranks holds 141 GiB", "", ""}},
               /* as large as each other, as printed */
               {"plans/30-mixtral-8x7b-ep-dp-cp.yaml",
                {"its largest parts parameters and gradients of parameters", "", ""}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, row[i].plan, &(PipelineOptions){.threads = 1});
        RenderOptions o = options("memory");
        const char *words = picture(a, r.t, &o, FORMAT_SVG);
        for (int k = 0; k < 3; k++) says(words, row[i].says[k]);
        says_not(words, "mlp.experts\n");
        arena_free(a);
    }
}

/* A peak without gradients, of sizes as they are, says so: the lines of DDP beside it have them. */
static void a_peak_before_gradients(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run_with(
        a, "peak.yaml",
        "model: {preset: llama3-8b, layers: 1, parts: [embedding, blocks, norm, head, loss]}\n"
        "data: {batch: 2, sequence: 8192, dtype: bf16}\nmesh: {dp: 2}\npass: backward\n"
        "data_parallel: {mode: ddp}\n",
        &(PipelineOptions){.threads = 1});
    RenderOptions o = options("memory");
    assert_non_null(r.t);
    says(picture(a, r.t, &o, FORMAT_SVG), ", before the first gradient of a parameter");
    arena_free(a);
}

/* Where the weights stand: at most two lines, the last with no matrix alone, and no part too thin
 * to be seen if the page has room for more; parts have all their owners or none. */
static void weights_use_their_page(void **state) {
    (void)state;
    static const struct {
        const char *plan;
        double thin;
        int named; /* matrices whose parts say who holds them */
    } row[] = {{"plans/20-llama3-8b-fsdp-tp.yaml", 5, 4},
               {"plans/11-llama3-70b-tp16.yaml", 3, 2},
               {"plans/03-llama3-8b-tp2.yaml", 8, 5},
               {"plans/13-qwen3-0.6b-tp4.yaml", 8, 7},
               {"plans/shape-only/llama3.1-405b-8192.yaml", 0, 2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = run_file(a, row[i].plan, &(PipelineOptions){.threads = 1});
        RenderOptions o = options("shards");
        Diags *d = diags_new(a);
        Scene *page[VIEW_MAX_PAGES];
        assert_int_equal(render_pages(r.t, d, &o, a, page), 1);
        const Scene *s = page[0];
        double line[8], thin = 1e9;
        int on[8] = {0}, lines = 0, named = 0;
        for (int g = 0; g < s->n_groups; g++) {
            if (strcmp(s->groups[g].what, "weight") || strncmp(s->groups[g].id, "weight-", 7))
                continue;
            int parts = 0, owners = 0, k = 0;
            double y = s->marks[s->groups[g].first].y;
            for (int j = s->groups[g].first; j < s->groups[g].last; j++) {
                const Mark *m = &s->marks[j];
                if (m->kind == MARK_RECT && m->fill >= ROLE_SHARD && m->fill <= ROLE_SHARD_3)
                    parts++, thin = fmin(thin, fmin(m->w, m->h));
                if (m->kind == MARK_TEXT && m->run[0].role >= ROLE_SHARD_TEXT &&
                    m->run[0].role <= ROLE_SHARD_TEXT_3)
                    owners++;
            }
            assert_true(owners == 0 || owners == parts);
            named += owners > 0;
            while (k < lines && line[k] != y) k++;
            if (k == lines) line[lines++] = y;
            on[k]++;
        }
        assert_true(lines == 1 || (lines == 2 && on[1] > 1));
        if (thin < row[i].thin || named < row[i].named)
            fail_msg("%s: parts of %.1f px, %d matrices named", row[i].plan, thin, named);
        arena_free(a);
    }
}

/* What a rank has of the experts stands in its box, below its place: nobody has to match two
 * panels. A rank has one box then, whose tooltip says both. */
static void experts_stand_in_the_box(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        run_file(a, "plans/30-mixtral-8x7b-ep-dp-cp.yaml", &(PipelineOptions){.events = true});
    static const char *const preset[] = {"wide", "slide", "a4", "column"};
    for (int i = 0; i < 4; i++) {
        RenderOptions o = options("mesh");
        o.preset = preset[i];
        const char *report = "";
        if (render_lint(r.t, diags_new(a), &o, a, &report)) fail_msg("%s", report);
        size_t n;
        const char *svg = render_text(r.t, diags_new(a), &o, FORMAT_SVG, a, &n);
        assert_null(strstr(svg, "expert-node-0"));
        says(svg, "rank 5 (dp1 cp0 tp1)\nexperts: E4-5, part 1");
        says(svg_words(a, svg), "E4-5, part 1");
    }
    arena_free(a);
}
/* A rate stays on the line of its number, too. */
static void numbers_keep_their_units(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        run_file(a, "plans/30-mixtral-8x7b-ep-dp-cp.yaml", &(PipelineOptions){.events = true});
    RenderOptions o = options("mesh");
    const char *words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "370 GB/s");
    says_not(words, "\nGB/s");
    arena_free(a);
}
/* Digits do not touch: those of a cell its border (4 px), an arrow the digits that it passes. */
static void arrows_pass_over_the_digits(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = run_file(
        a, "plans/01-column-row-mlp.yaml",
        &(PipelineOptions){.execute = true, .numbers = true, .threads = 1, .events = true});
    RenderOptions o = options("storyboard");
    Scene *page[VIEW_MAX_PAGES];
    assert_int_equal(render_pages(r.t, diags_new(a), &o, a, page), 1);
    const Scene *s = page[0];
    int digits = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *text = &s->marks[i];
        if (text->kind != MARK_TEXT || strcmp(s->groups[text->group].what, "cell") ||
            !strpbrk(text->run[0].s, "."))
            continue;
        digits++;
        Box at = scene_box(text);
        assert_true(at.x1 - at.x0 < 50);
        for (int k = 0; k < s->n_marks; k++) {
            const Mark *arrow = &s->marks[k];
            if (arrow->kind != MARK_LINE || arrow->stroke != ROLE_COLL_LINE) continue;
            for (int q = 0; q < arrow->n; q++)
                assert_false(arrow->pt[q].x > at.x0 && arrow->pt[q].x < at.x1 &&
                             arrow->pt[q].y + 2 > at.y0 && arrow->pt[q].y < at.y1);
        }
    }
    assert_true(digits > 50);
    arena_free(a);
}
/* Weights that backward gathers again stand apart from those of forward, and a box without weights
 * says so in every size. */
static void overview_gathers_again(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide"};
    for (int i = 0; i < 6; i++) {
        Arena *a = arena_new();
        const bool fsdp = i < 3;
        PlanRun r = run_file(
            a, fsdp ? "plans/20-llama3-8b-fsdp-tp.yaml" : "plans/52-llama3-8b-pp4-dualpipe.yaml",
            &(PipelineOptions){0});
        RenderOptions o = options("overview");
        o.preset = sizes[i % 3];
        const char *words = picture(a, r.t, &o, FORMAT_SVG), *code = i == 2 ? "AG" : "AllGather";
        if (fsdp) says(words, i == 2 ? "AG again, 373 KiB" : "AllGather layer again, 373 KiB");
        if (fsdp) says(words, arena_printf(a, "%s layer, 373 KiB", code));
        if (!fsdp) says_not(words, " again");
        says(words, "no weights");
        says_not(words, " ops");
        arena_free(a);
    }
}
/* How to read a rank, where the page has room for it; headings of small meshes have room for all
 * their words in one weight, and a number stands with what it counts. */
static void mesh_says_how_to_read(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        run_file(a, "plans/37-qwen3-30b-a3b-ep-etp.yaml", &(PipelineOptions){.events = true});
    RenderOptions o = options("mesh");
    Scene *page[VIEW_MAX_PAGES];
    const char *words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "How to read rank 0");
    says(words, "edp0 ep0 tp0\nits place on each axis\nE0-63, part 0\nthe experts that it has");
    says(words, "5 AllReduce, sends ");
    assert_int_equal(render_pages(r.t, diags_new(a), &o, a, page), 1);
    int headings = 0;
    for (int i = 0; i < page[0]->n_marks; i++) {
        const Mark *m = &page[0]->marks[i];
        if (m->kind != MARK_TEXT || !strstr(m->run[0].s, " × ")) continue;
        assert_int_equal(m->run[0].weight, SEMIBOLD);
        headings++;
    }
    assert_int_equal(headings, 5);
    o.preset = "slide";
    says_not(picture(a, r.t, &o, FORMAT_SVG), "How to read");
    arena_free(a);
}
/* What a causal mask makes of a cut of the sequence: the shares are those of the recorded work, the
 * busiest rank is told where the others wait for it, and in a ring the work is that of all hops; a
 * plan whose work is not that of the mask (documents in a row) or whose sequence is whole has no
 * such picture. What a reduce-scatter leaves stands apart from what ops make in its layout, behind
 * the sum that was pending. */
static void causal_load_of_shards(void **state) {
    (void)state;
    static const struct {
        const char *plan, *order, *verdict;
        int stride; /* of the ranks of a group */
    } row[] = {
        {"plans/07-llama3-8b-cp4.yaml", "contiguous over cp",
         "slowest 43.5 %, mean 25.0 %: idle 42.5 %", 1},
        {"plans/08-llama3-8b-cp4-zigzag.yaml", "zigzag over cp", "each 25.0 %: nobody waits", 1},
        {"plans/41-llama3-8b-ring4-zigzag.yaml", "zigzag over cp", "each 25.0 %: nobody waits", 1},
        {"plans/54-deepseek-v3-latent-ring4.yaml", "zigzag over cp", "each 25.0 %: nobody waits",
         1},
        {"plans/42-llama3-8b-usp.yaml", "zigzag over cp", "each 50.0 %: nobody waits", 2},
        {"plans/44-llama3-8b-packed-documents.yaml", NULL, NULL, 1},
        {"plans/03-llama3-8b-tp2.yaml", NULL, NULL, 1}};
    static const RenderFormat format[] = {FORMAT_SVG, FORMAT_TEXT};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int f = 0; f < 2; f++) {
            Arena *a = arena_new();
            PlanRun r = run_file(a, row[i].plan, &(PipelineOptions){.events = true});
            RenderOptions o = options("shards");
            const char *words = picture(a, r.t, &o, format[f]);
            double all = 0, of[8] = {0}; /* of rank 0's group */
            if (!row[i].order) says_not(words, "Causal attention");
            else says(words, arena_printf(a, "Causal attention, %s", row[i].order));
            if (row[i].order) says(words, row[i].verdict);
            for (int k = 0; row[i].order && k < r.t->n_computes; k++) {
                const TraceCompute *c = &r.t->computes[k];
                if (!c->attends || c->layer || phase_or_forward(c->pass) != PHASE_FORWARD ||
                    !c->label || !strstr(c->label, "attention"))
                    continue;
                for (int rank = 0; rank < 4; rank += row[i].stride)
                    if (rankset_has(&c->ranks, rank)) of[rank] += c->flops, all += c->flops;
            }
            for (int rank = 0; row[i].order && rank < 4; rank += row[i].stride)
                says(words, arena_printf(a, "%.1f %%", 100 * of[rank] / all));
            arena_free(a);
        }
    Arena *a = arena_new();
    PlanRun r = run_file(a, "plans/05-llama3-8b-tp4-sp.yaml", &(PipelineOptions){.events = true});
    RenderOptions o = options("shards");
    const char *words = picture(a, r.t, &o, FORMAT_SVG), *at = strstr(words, "tp pending");
    assert_non_null(at);
    at = strstr(at, "after wo, after w2\n");
    assert_non_null(at);
    assert_non_null(strstr(at, "ReduceScatter\nover tp"));
    /* more ranks than heads: the halves of the axis are explained */
    r = run_file(a, "plans/11-llama3-70b-tp16.yaml", &(PipelineOptions){.events = true});
    says(picture(a, r.t, &o, FORMAT_SVG), "tp.0 and tp.1: the axis tp as 8 times 2 ranks");
    arena_free(a);
}

/* The kinds of memory differ in every theme, as printed in grey too. */
static void memory_kinds_differ(void **state) {
    (void)state;
    static const Role kind[] = {ROLE_SHARD, ROLE_SHARD_1, ROLE_SHARD_2, ROLE_SHARD_3, ROLE_LIVE};
    for (int th = 0; th < THEME_COUNT; th++)
        for (int i = 0; i < 5; i++)
            for (int k = 0; k < i; k++) {
                uint32_t x = theme_color((Theme)th, kind[i]), y = theme_color((Theme)th, kind[k]);
                assert_int_not_equal(x, y);
                if (th == THEME_PRINT) assert_true(theme_contrast(x, y) > 1.3);
            }
}

/* A whole gradient before its reduce-scatter is no number of bytes for each parameter at rest, even
 * where that divides it. */
static void memory_formula_is_no_chance(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run_with(
        a, "chance.yaml",
        "model: {config: {hidden_size: 12, intermediate_size: 11, num_attention_heads: 8, "
        "num_key_value_heads: 2, head_dim: 4, vocab_size: 17, num_hidden_layers: 1, "
        "tie_word_embeddings: true}, parts: [embedding, blocks, norm, head, loss]}\n"
        "mesh: {dp: 2, cp: 3, tp: 4}\ndata: {batch: 4, sequence: 17, microbatches: 2}\n"
        "pass: train\nrecipe: megatron-sp\noptimizer: {name: adamw, clip: 0.5}\n"
        "recompute: block\ncontext_parallel: {order: striped}\n"
        "data_parallel: {mode: fsdp, unit: block}\n",
        &(PipelineOptions){.events = true});
    assert_non_null(r.t);
    RenderOptions o = options("memory");
    const char *words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "(4 + 8) B × 88 parameters");
    assert_null(strstr(words, "(4 + 8 + "));
    arena_free(a);
}

/* The two figures of every introduction: input [10, 512], weights [2048, 512] and [2048, 2048],
 * four ranks. */
static void column_then_row(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = run_file(a, "plans/01-column-row-mlp.yaml", &(PipelineOptions){.threads = 1});
    RenderOptions o = options("shards");
    o.rank = 2;
    static const char *const facts[] = {
        "up: Column parallel",
        "Rank 2 computes [10, 512] · [512, 512] → [10, 512]",
        "5.24 MFLOP, then nothing is sent",
        "down: Row parallel",
        "Rank 2 computes [10, 512] · [512, 2048] → [10, 2048]",
        "4 × [10, 2048]",
        "Σ tp pending",
        "21.0 MFLOP, then AllReduce over tp: sends 120 KiB and has [10, 2048]",
        "on every rank"};
    const char *words = picture(a, r.t, &o, FORMAT_SVG);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) says(words, facts[i]);
    o.part = "down"; /* one of them, and none of what the plan has not */
    words = picture(a, r.t, &o, FORMAT_SVG);
    says(words, "down: Row parallel");
    says(words, "\non every rank\n"); /* what the sum leaves; its terms and operands are cut */
    assert_null(strstr(words, "up: Column parallel"));
    o.part = "sideways";
    Diags *d = diags_new(a);
    size_t n;
    assert_null(render_text(r.t, d, &o, FORMAT_SVG, a, &n));
    assert_string_equal(d->item[0].code, "E0212");
    says(d->item[0].hint, "up, down");
    arena_free(a);
}

/* Nothing for a storyboard: the view pipeline shows who sends to whom. */
static bool only_sends(const Trace *t) {
    for (int i = 0; i < t->n_collectives; i++)
        if (strcmp(t->collectives[i].op, "send") != 0) return false;
    return t->n_collectives > 0;
}
/* On real runs the layout of the four views is clean in every preset, and text keeps to 80 columns.
 */
static void views_are_clean(void **state) {
    (void)state;
    static const char *const view[] = {"memory", "storyboard", "shards", "errors"};
    static const char *const preset[] = {"wide", "column", "slide", "a4"}, *const theme[] = {
                                                                               "light", "dark",
                                                                               "print"};
    int found = 0;
    PlanFiles f = plan_files("plans/*.yaml", "plans");
    while (plan_files_next(&f)) {
        Arena *a = f.a;
        const char *path = f.path;
        PlanRun r = run_file(
            a, path,
            &(PipelineOptions){.execute = true, .numbers = true, .events = true, .threads = 1});
        for (int v = 0; v < 4; v++) {
            RenderOptions o = options(view[v]);
            if (only_sends(r.t) && !strcmp(view[v], "storyboard")) continue;
            for (int p = 0; p < 4; p++) {
                const char *report;
                o.preset = preset[p];
                o.theme = theme[((size_t)f.at + (size_t)v + (size_t)p) % 3];
                int n = render_lint(r.t, r.d, &o, a, &report);
                if (n) print_message("%s %s %s\n%.2000s", path, o.view, o.preset, report);
                found += n;
            }
            for (const char *line = picture(a, r.t, &o, FORMAT_TEXT); *line;) {
                size_t n = strcspn(line, "\n"), columns = 0;
                for (size_t k = 0; k < n; k++) columns += ((unsigned char)line[k] & 0xC0) != 0x80;
                if (columns > 80) print_message("%s %s: %.*s\n", path, o.view, (int)n, line);
                found += columns > 80;
                line += n + (line[n] == '\n');
            }
        }
    }
    assert_int_equal(found, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_paper),
        cmocka_unit_test(bands_of_memory),
        cmocka_unit_test(bands_are_drawn),
        cmocka_unit_test(title_names_the_values),
        cmocka_unit_test(timeline_of_the_loss),
        cmocka_unit_test(timeline_of_shared_experts),
        cmocka_unit_test(timeline_says_how_many_are_folded),
        cmocka_unit_test(loss_of_a_pipeline),
        cmocka_unit_test(memory_is_the_records),
        cmocka_unit_test(memory_of_a_pipeline),
        cmocka_unit_test(both_ways_of_a_pipeline),
        cmocka_unit_test(schedules_beside),
        cmocka_unit_test(storyboard_is_the_run),
        cmocka_unit_test(one_size_of_what_is_sent),
        cmocka_unit_test(a_story_worth_telling),
        cmocka_unit_test(every_collective_is_sampled),
        cmocka_unit_test(errors_are_the_checks),
        cmocka_unit_test(wrong_values_are_followed),
        cmocka_unit_test(the_next_step_reads_it),
        cmocka_unit_test(rows_fold_by_modules),
        cmocka_unit_test(ranks_fold_into_classes),
        cmocka_unit_test(rows_are_told_apart),
        cmocka_unit_test(who_has_none_is_not_right),
        cmocka_unit_test(the_line_to_blame),
        cmocka_unit_test(long_names_fit),
        cmocka_unit_test(ranges_cover),
        cmocka_unit_test(shards_print_ranges),
        cmocka_unit_test(shards_show_ranks),
        cmocka_unit_test(parts_of_rulers),
        cmocka_unit_test(biases_are_called_so),
        cmocka_unit_test(layers_are_said),
        cmocka_unit_test(subtitles_say_the_scales),
        cmocka_unit_test(lines_are_what_they_say),
        cmocka_unit_test(memory_says_each_line_once),
        cmocka_unit_test(memory_names_who_and_what),
        cmocka_unit_test(a_peak_before_gradients),
        cmocka_unit_test(weights_use_their_page),
        cmocka_unit_test(causal_load_of_shards),
        cmocka_unit_test(arrows_pass_over_the_digits),
        cmocka_unit_test(numbers_keep_their_units),
        cmocka_unit_test(experts_stand_in_the_box),
        cmocka_unit_test(memory_kinds_differ),
        cmocka_unit_test(memory_formula_is_no_chance),
        cmocka_unit_test(overview_gathers_again),
        cmocka_unit_test(mesh_says_how_to_read),
        cmocka_unit_test(column_then_row),
        cmocka_unit_test(views_are_clean),
    };
    int failed = cmocka_run_group_tests_name("views", tests, NULL, NULL);
    render_cleanup();
    return failed;
}
