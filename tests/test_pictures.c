/* What outside eyes missed in pictures: an arrow without words, a box without a name, a sentence
 * cut short. Each test draws a plan and reads the words of the SVG back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "base/file.h"
#include "formats/json.h"
#include "render/furniture/facing.h"
#include "render/furniture/words.h"
#include "render/memory/compare.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "support/pictures.h"
#include "trace/trace_times.h"
#include "support/support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <ctype.h>
#include <string.h>
#include <unistd.h>

static const char train[] =
    "model: {preset: llama3-8b, layers: 2, shrink: 64, parts: [embedding, blocks, norm, head, "
    "loss]}\n"
    "data: {batch: 4, sequence: 16, dtype: f64}\nmesh: {dp: 2, cp: 2, tp: 2}\ngroups: {sp: tp}\n"
    "names: torchtitan\nrecipe: torchtitan-llama3\n"
    "data_parallel: {mode: fsdp, axis: dp*cp}\npass: train\n"
    "optimizer: {name: adamw, lr: 0.01, weight_decay: 0.1, clip: 0.5, steps: 5}\n";

static const char *words_of(Arena *a, const Trace *t, RenderOptions o) {
    Diags *d = diags_new(a);
    size_t n;
    const char *s = render_text(t, d, &o, FORMAT_SVG, a, &n);
    if (!s) diags_print(d, stderr, false);
    assert_non_null(s);
    return svg_words(a, s);
}
static RenderOptions view(const char *name) {
    return (RenderOptions){.view = name, .rank = -1, .layer = -1};
}

/* The optimizer stands behind the pass: it reads gradients and makes weights, and the loss ends
 * before it. */
static void the_optimizer_has_words(void **state) {
    (void)state;
    static const char *const presets[] = {"wide", "column", "slide", "a4"};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run_with(a, "train.yaml", train, &(PipelineOptions){0});
        RenderOptions o = view("overview");
        o.preset = presets[i];
        const char *report, *w = words_of(a, r.t, o);
        says(w, "gradients of the weights");
        says(w, "weights for the next step");
        /* eight boxes with two axes each do not fit on a slide at 24 px: it is scaled */
        if (strcmp(presets[i], "slide") && render_lint(r.t, r.d, &o, a, &report))
            fail_msg("%s: %s", presets[i], report);
        arena_free(a);
    }
}

/* The backward pass opens with the gradient that its first step reads, under the part whose it is.
 */
static void backward_units_have_names(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run_with(a, "train.yaml", train, &(PipelineOptions){0});
    RenderOptions o = view("overview");
    o.pass = "backward";
    const char *w = words_of(a, r.t, o);
    says_not(w, "Steps");
    says_not(w, "forward and backward");
    says_not(w, "[B/dp, S/cp]\n");
    says(w, "Embedding");
    arena_free(a);
}

/* The collective of a product is drawn in the state that its record tells, and the state is said.
 */
static void sums_of_products_have_states(void **state) {
    (void)state;
    static const char plan[] =
        "model: {kind: mlp, sizes: [10, 64, 32, 8], bias: false, layer_names: [up, down, "
        "out]}\n"
        "data: {rows: 10}\nmesh: {tp: 4}\nplan: {up: colwise, down: %s, out: replicate}\n%s";
    static const struct {
        const char *down, *fault, *says;
    } row[] = {{"rowwise", "", NULL},
               {"local_rowwise", "", "No line of the plan asks for this"},
               {"rowwise", "faults: [{at: down, do: drop}]\n", "is missing (planted: drop)"}};
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(a, plan, row[i].down, row[i].fault), *report;
        PlanRun r = plan_run_with(a, "mlp.yaml", text, &(PipelineOptions){0});
        assert_non_null(r.t);
        RenderOptions o = view("shards");
        const char *w = words_of(a, r.t, o);
        bool all = strstr(w, "No line of the plan asks for this") || strstr(w, "is missing");
        if (row[i].says) says(w, row[i].says);
        else assert_false(all);
        if (i == 2) says(w, "nothing is sent: the AllReduce over tp is left out");
        if (render_lint(r.t, r.d, &o, a, &report)) fail_msg("%s: %s", row[i].down, report);
        arena_free(a);
    }
}

/* On a part of a tensor the hatch of a pending sum has the ink of that part's own text: seen on the
 * light and the dark parts of every theme. */
static void hatches_are_seen(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    Scene *page[32];
    size_t size;
    const char *path = "plans/09-llama3-8b-dp2-cp2-tp2.yaml";
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &size);
    PlanRun r = plan_run_with(a, path, text, &(PipelineOptions){0});
    RenderOptions o = view("shards");
    int n = render_pages(r.t, r.d, &o, a, page), held = 0;
    assert_true(n > 0);
    for (int i = 0; i < page[0]->n_marks; i++) {
        const Mark *h = &page[0]->marks[i], *under = NULL;
        if (h->kind != MARK_HATCH) continue;
        for (int k = 0; k < i; k++) {
            const Mark *m = &page[0]->marks[k];
            if (m->kind == MARK_RECT && m->fill >= ROLE_SHARD && m->fill <= ROLE_SHARD_3 &&
                fabs(m->x - h->x) < 0.5 && fabs(m->y - h->y) < 0.5)
                under = m;
        }
        if (!under) continue;
        assert_int_equal(h->stroke - ROLE_SHARD_TEXT, under->fill - ROLE_SHARD);
        held++;
    }
    assert_true(held > 0);
    arena_free(a);
}

/* The number of the comparison with the unsharded model is in the record, comes back from a file,
 * and the picture of errors says it. */
static void errors_say_end_to_end(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    size_t size;
    const char *path = "plans/bugs/04-wrong-block.yaml";
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &size);
    PlanRun r = plan_run_with(a, path, text,
                              &(PipelineOptions){.execute = true, .numbers = true, .threads = 1});
    assert_string_equal(r.t->end_to_end, r.rep.end_to_end_worst);
    assert_true(r.t->end_to_end_off == r.rep.end_to_end_rel && r.t->end_to_end_off > 0);
    const char *saved = trace_text(r.t, a, false, &size);
    Trace *back = trace_read(a, diags_new(a), "04.trace.jsonl", saved, size);
    assert_non_null(back);
    assert_string_equal(back->end_to_end, r.t->end_to_end);
    assert_true(back->end_to_end_off == r.t->end_to_end_off);
    assert_true(back->end_to_end_bound == r.t->end_to_end_bound);
    RenderOptions o = view("errors");
    const char *s = render_text(back, diags_new(a), &o, FORMAT_SVG, a, &size);
    assert_non_null(s);
    /* on the page the sentence is broken into lines: its description has it in one */
    says(words_of(a, back, o), "End to end:");
    says(words_of(a, back, o), arena_printf(a, "%.2g", r.t->end_to_end_off));
    arena_free(a);
}

/* Ranks stand in the nodes of the machine, and each group says over which links it sends: by the
 * profile that the plan names. */
static void ranks_stand_in_nodes(void **state) {
    (void)state;
    static const char mesh[] = "model: {kind: mlp, sizes: [32, 64, 32], layer_names: [up, down]}\n"
                               "data: {batch: 4, sequence: 2}\nmesh: {dp: %d, tp: 4}\n"
                               "plan:\n  up: colwise\n  down: rowwise\n";
    static const struct {
        int dp;
        const char *has[4], *lacks;
    } row[] = {{1, {"one node", "inside a node, 370 GB/s", "1 group", "tp0"}, "across"},
               {4, {"node 0", "node 1", "across nodes, 48 GB/s", "inside a node, 370"}, "one node"},
               {8, {"across nodes, 48 GB/s", "inside a node, 370 GB/s", "tp0", "dp"}, "one node"}};
    static const char *const presets[] = {"wide", "slide", "column", "a4"};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            Arena *a = arena_new();
            PlanRun r = plan_run_with(a, "mesh.yaml", arena_printf(a, mesh, row[i].dp),
                                      &(PipelineOptions){.events = true});
            size_t n;
            const char *saved = trace_text(r.t, a, true, &n), *report, *said = "";
            Trace *back = trace_read(a, diags_new(a), "mesh.trace.jsonl", saved, n);
            assert_int_equal(back->node_ranks, 8);
            RenderOptions o = view("mesh");
            o.preset = presets[k];
            Diags *d = diags_new(a);
            struct Scene *page[64];
            int pages = render_pages(back, d, &o, a, page);
            for (o.page = 1; o.page <= pages; o.page++)
                said = arena_printf(a, "%s\n%s", said, words_of(a, back, o));
            o.page = 0;
            for (int h = 0; h < 4; h++) says(said, row[i].has[h]);
            says_not(said, row[i].lacks);
            if (render_lint(back, d, &o, a, &report)) fail_msg("%s", report);
            arena_free(a);
        }
}

/* A mistake in the optimizer is told in words that people have for it, not by the name of a value.
 */
static void mistakes_of_the_optimizer_have_words(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const char *const row[][2] = {
        {"plans/bugs/42-norm-counts-copies.yaml", "sum of squares of d norm is not"},
        {"plans/bugs/43-clip-not-applied.yaml", "clip of d norm is not"}};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        size_t size;
        const char *text = file_read(a, diags_new(a), row[i][0], 1 << 20, (Loc){0}, &size);
        PlanRun r = plan_run_with(a, row[i][0], text, &(PipelineOptions){0});
        const char *w = words_of(a, r.t, view("block"));
        says(w, row[i][1]);
        says_not(w, ".weight.");
        arena_free(a);
    }
}
static PlanRun shipped(Arena *a, const char *path, const PipelineOptions *o) {
    size_t size;
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &size);
    assert_non_null(text);
    return plan_run_with(a, path, text, o);
}

/* No sentence, list or name in a block ends in an ellipsis: what does not fit is said shorter. */
static void no_sentence_is_cut(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const char *const plans[] = {
        "plans/15-megatron-tp-sp.yaml", "plans/20-llama3-8b-fsdp-tp.yaml",
        "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "plans/23-llama3-8b-packed.yaml",
        "plans/31-mixtral-8x7b-tp.yaml"};
    static const char *const presets[] = {"wide", "column", "slide", "a4"};
    int reasons = 0;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        Arena *a = arena_new();
        PlanRun r = shipped(a, plans[i], &(PipelineOptions){0});
        for (int k = 0; k < 8; k++) {
            RenderOptions o = view("block");
            Scene *page[32];
            o.preset = presets[k / 2], o.pass = k % 2 ? "backward" : NULL;
            int n = render_pages(r.t, r.d, &o, a, page);
            for (int p = 0; p < n; p++)
                for (int m = 0; m < page[p]->n_marks; m++) {
                    const Mark *t = &page[p]->marks[m];
                    for (int x = 0; t->kind == MARK_TEXT && x < t->n_run; x++) {
                        const char *end = strstr(t->run[x].s, "…");
                        if (end && !end[strlen("…")])
                            fail_msg("%s %s: %s", plans[i], o.preset, t->run[x].s);
                        reasons += strstr(t->run[x].s, "adjoint of") != NULL;
                    }
                }
        }
        arena_free(a);
    }
    assert_true(reasons > 20);
}

/* A verdict that has no room beside a slide's words says that the plan is different, and no half of
 * a name. */
static void no_verdict_is_cut(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    PlanRun r = shipped(a, "plans/bugs/27-hsdp-copies-not-summed.yaml",
                        &(PipelineOptions){.execute = true});
    RenderOptions o = view("block");
    Scene *page[32];
    o.preset = "slide", o.part = "weights";
    int verdicts = 0;
    for (int n = render_pages(r.t, r.d, &o, a, page), p = 0; p < n; p++)
        for (int m = 0; m < page[p]->n_marks; m++) {
            const Mark *t = &page[p]->marks[m];
            for (int x = 0; t->kind == MARK_TEXT && x < t->n_run; x++) {
                const bool verdict = strstr(t->run[x].s, "✗ different") != NULL;
                if (verdict && strstr(t->run[x].s, "…")) fail_msg("%s", t->run[x].s);
                verdicts += verdict;
            }
        }
    assert_true(verdicts > 0);
    arena_free(a);
}

static const char silent[] =
    "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, blocks, norm, head, "
    "loss]}\n"
    "data: {batch: 4, sequence: 16, dtype: f64}\nmesh: {dp: 2, tp: 2}\nnames: torchtitan\n"
    "pass: backward\nhardware: h100-sxm\nplan:\n"
    "  tok_embeddings: {style: rowwise, output: shard(1)}\n"
    "  layers.*.attention_norm: {style: sequence_parallel, use_local_output: true}\n"
    "  layers.*.attention: {input: shard(1), desired_input: replicate}\n"
    "  layers.*.attention.w[qkv]: colwise\n"
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
    "  layers.*.ffn_norm: {style: sequence_parallel, use_local_output: true}\n"
    "  layers.*.feed_forward: {input: shard(1), desired_input: replicate}\n"
    "  layers.*.feed_forward.w[13]: colwise\n"
    "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n"
    "  output: {style: colwise, input: shard(1), use_local_output: false}\n"
    "  loss: loss_parallel\n";

/* "Equivalent" stands nowhere without what it rests on. */
static void silence_is_in_the_stamp(void **state) {
    (void)state;
    static const char *const presets[] = {"wide", "column", "slide", "a4"};
    Arena *a = arena_new();
    PlanRun r = plan_run_with(a, "silent.yaml", silent,
                              &(PipelineOptions){.execute = true, .numbers = true, .threads = 1});
    assert_non_null(r.t);
    assert_int_equal(r.t->n_undeclared, 1);
    int n, lies = 0;
    const RenderView *all = render_views(&n);
    for (int i = 0; i < n * 4; i++) {
        RenderOptions o = view(all[i / 4].name);
        o.preset = presets[i % 4];
        if (!strcmp(o.view, "timeline") || !strcmp(o.view, "roofline"))
            continue;                              /* nobody asked for times */
        if (!strcmp(o.view, "sweep")) continue;    /* of a plan, not of a trace */
        if (!strcmp(o.view, "routing")) continue;  /* no experts */
        if (!strcmp(o.view, "pipeline")) continue; /* no stages */
        says(words_of(a, r.t, o), "if somebody sums 1 gradient");
        lies++;
    }
    if (lies < 28) fail_msg("%d pictures", lies);
    RenderOptions o = view("overview");
    says(words_of(a, r.t, o), "1 of them no line");
    o = view("storyboard"), o.part = "grad.param.norm.weight";
    for (int i = 0; i < r.t->n_collectives; i++) /* of its two sums the one over tp */
        if (r.t->collectives[i].inferred) o.part = arena_printf(a, "%d", r.t->collectives[i].step);
    size_t size;
    says(render_text(r.t, r.d, &o, FORMAT_TEXT, a, &size), "tp, which no line of");
    arena_free(a);
}

/* Columns say what kinds of collectives they count, as the hexagons on the ways do, where there is
 * room. */
static void columns_name_collectives(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const char *const presets[] = {"wide", "column", "slide", "a4"};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        PlanRun r =
            shipped(a, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", &(PipelineOptions){0});
        RenderOptions o = view("overview");
        o.preset = presets[i];
        const char *w = words_of(a, r.t, o);
        says(w, "AllReduce ×4, 240 KiB");
        says(w, "ReduceScatter ×2, 4 KiB");
        says_not(w, "8 KiB in 2\n");
        arena_free(a);
    }
}

/* A slide with three columns has no room for the names of collectives: it has their codes, in each
 * line, and the footer says what they stand for. */
static void narrow_columns_have_codes(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const char *const paths[] = {"plans/20-llama3-8b-fsdp-tp.yaml",
                                        "plans/37-qwen3-30b-a3b-ep-etp.yaml"};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        PlanRun r = shipped(a, paths[i], &(PipelineOptions){0});
        RenderOptions o = view("overview");
        o.preset = "slide";
        const char *report, *w = words_of(a, r.t, o);
        says(w, "AG AllGather, RS ReduceScatter");
        says(w, i ? "RS×7, 54.2 KiB" : "RS ×2, 4 KiB");
        says(w, i ? "A2A×3, 16.5 KiB" : "AR ×3, 192 B");
        says_not(w, "KiB in 2\n");
        if (render_lint(r.t, r.d, &o, a, &report)) fail_msg("%s: %s", paths[i], report);
        arena_free(a);
    }
}

/* The legend has what the figure has: a group over several axes in their colour, and what is sent
 * from stage to stage is no collective. */
static void the_legend_tells_groups_and_messages(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const struct {
        const char *plan, *view, *has, *lacks;
    } rows[] = {
        {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "overview", "one group over several axes",
         "message"},
        {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "block", "one group over several axes",
         "message between"},
        {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "timeline", "one group over several axes",
         "message"},
        {"plans/18-llama3-8b-backward.yaml", "overview", "\ncollective\n", "several axes"},
        {"plans/45-llama3-8b-pp4-1f1b.yaml", "overview", "\nmessage between stages\n",
         "\ncollective\n"},
        {"plans/45-llama3-8b-pp4-1f1b.yaml", "block", "\nmessage between stages\n",
         "\ncollective\n"},
        {"plans/47-llama3-8b-pp2-dp2-tp2.yaml", "overview",
         "\ncollective, or message between stages\n", "\ncollective\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = shipped(a, rows[i].plan, &(PipelineOptions){.events = true});
        const char *w = words_of(a, r.t, view(rows[i].view));
        says(w, rows[i].has);
        says_not(w, rows[i].lacks);
        arena_free(a);
    }
}

/* A wrong sum has its evidence: what each rank of a group has at the first wrong element, which
 * adds up to the right value. Record, file, picture and text have the same; the panel names the
 * module, of a claim too. */
static void wrong_sums_show_their_terms(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const struct {
        const char *plan, *module, *got;
        int terms;
    } rows[] = {{"plans/bugs/01-output-left-partial.yaml", "layers.0.attention.wo", "0.0759874", 2},
                {"plans/bugs/04-wrong-block.yaml", "layers.0.attention.wo", "-0.378471", 4},
                {"plans/bugs/08-norm-gradient-not-summed.yaml", "layers.0.ffn_norm", "2.26908", 4},
                {"plans/bugs/20-sum-of-exp-counted-twice.yaml", NULL, "414.354", 4},
                {"plans/bugs/30-recompute-skips-a-collective.yaml", NULL, NULL, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PipelineOptions o = {.execute = true, .numbers = true, .threads = 1};
        PlanRun r = shipped(a, rows[i].plan, &o);
        size_t n;
        const char *saved = trace_text(r.t, a, false, &n);
        Trace *back = trace_read(a, diags_new(a), "t.jsonl", saved, n);
        assert_non_null(back);
        const TraceCheck *k = NULL;
        for (int j = 0; j < back->n_checks && !k; j++)
            if (!strcmp(back->checks[j].verdict, "FAIL") &&
                back->checks[j].level != LEVEL_STRUCTURE)
                k = &back->checks[j];
        assert_non_null(k);
        assert_int_equal(k->n_terms, rows[i].terms);
        assert_int_equal(k->n_term_ranks, rows[i].terms);
        double sum = 0;
        for (int j = 0; j < rows[i].terms; j++) {
            sum += k->terms[j];
            for (int q = 0; q < j; q++) assert_true(k->term_ranks[q] < k->term_ranks[j]);
        }
        if (rows[i].terms) assert_true(fabs(sum - k->want) <= 1e-5 * fabs(k->want));
        const char *w = words_of(a, back, view("errors"));
        RenderOptions text = view("errors");
        (rows[i].terms ? says : says_not)(w, "Evidence: the terms add up");
        if (rows[i].got) says(w, rows[i].got);
        if (rows[i].module) says(w, rows[i].module);
        const char *t = render_text(back, diags_new(a), &text, FORMAT_TEXT, a, &n);
        (rows[i].terms ? says : says_not)(t, "terms ");
        if (rows[i].module) says(t, arena_printf(a, "%s\n", rows[i].module));
        arena_free(a);
    }
}

/* What a weight makes is called by the weight's module in every view, as the block and the timeline
 * call the module: "after wo", not by the program's own name of the value. */
static void values_are_called_by_modules(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    PlanRun r = shipped(a, "plans/18-llama3-8b-backward.yaml", &(PipelineOptions){0});
    RenderOptions o = view("shards");
    o.part = "wo";
    const char *w = words_of(a, r.t, o);
    says(w, "after wo");
    says(w, "after attention_norm");
    says(w, "after w1, after w3");
    says_not(w, "o_proj");
    says_not(w, "post_attn_norm");
    assert_string_equal(words_value(a, r.t, "grad.layers.0.post_attn_norm"),
                        "gradient after ffn_norm");
    assert_string_equal(words_value(a, r.t, "layers.0.resid_attn"), "resid_attn");
    assert_string_equal(words_value(a, r.t, "grad.layers.0.output"), "gradient of output");
    const char *path;
    assert_string_equal(words_value_path(a, r.t, "grad.layers.0.mlp.down", &path),
                        "gradient after ");
    assert_string_equal(path, "layers.0.feed_forward.w2");
    assert_string_equal(words_value_path(a, r.t, "grad.param.output.weight", &path),
                        "gradient of ");
    assert_string_equal(path, "output.weight");
    arena_free(a);
}

/* What is alive at the peak has its name in full in a tooltip, however little room there is. */
static void values_alive_have_tooltips(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    PlanRun r = shipped(a, "plans/20-llama3-8b-fsdp-tp.yaml", &(PipelineOptions){0});
    static const char *const presets[] = {"wide", "column", "slide", "a4"};
    for (int i = 0; i < 4; i++) {
        RenderOptions o = view("memory");
        Scene *page[32];
        o.preset = presets[i];
        int n = render_pages(r.t, r.d, &o, a, page), rows = 0;
        for (int p = 0; p < n; p++)
            for (int g = 0; g < page[p]->n_groups; g++)
                if (!strcmp(page[p]->groups[g].what, "value")) {
                    rows++;
                    assert_non_null(strstr(page[p]->groups[g].tip, "\nmade at step: "));
                }
        if (rows < 4) fail_msg("%s: %d values with a tooltip", presets[i], rows);
    }
    arena_free(a);
}

/* Every symbol of a collective has it in its tooltip where no line of the plan asks for it; so has
 * the box of a weight that is gathered first. */
static void tooltips_say_inferred(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const char *const row[][2] = {
        {"block", NULL}, {"block", "weights"}, {"block", "forward"}, {"shards", NULL}};
    int held = 0;
    Arena *a = arena_new();
    PlanRun r = shipped(a, "plans/20-llama3-8b-fsdp-tp.yaml", &(PipelineOptions){0});
    for (int i = 0; i < r.t->n_collectives; i++) r.t->collectives[i].inferred = true;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        RenderOptions o = view(row[i][0]);
        Scene *page[32];
        if (row[i][1] && !strcmp(row[i][1], "forward")) o.pass = row[i][1];
        else o.part = row[i][1];
        int n = render_pages(r.t, r.d, &o, a, page);
        for (int p = 0; p < n; p++)
            for (int g = 0; g < page[p]->n_groups; g++) {
                const Group *of = &page[p]->groups[g];
                bool first = of->tip && strstr(of->tip, " first, sends");
                if (strcmp(of->what, "collective") && !first) continue;
                if (!of->tip || !strstr(of->tip, "inferred")) fail_msg("%s: %s", o.view, of->tip);
                held++;
            }
    }
    if (held < 30) fail_msg("%d tooltips", held);
    arena_free(a);
}

static const char full[] =
    "model: {preset: llama3-8b, layers: 1, parts: [embedding, blocks, norm, head, loss]}\n"
    "data: {batch: 2, sequence: 8192, dtype: bf16}\nmesh: {dp: 2, cp: 2, tp: 2}\ngroups: {sp: tp}\n"
    "names: torchtitan\nrecipe: torchtitan-llama3\npass: backward\n";

/* What colour says the theme without colours says in words; cells of the loss are no letters. */
static void print_needs_no_colour(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    PlanRun r = shipped(a, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", &(PipelineOptions){0});
    RenderOptions o = view("shards");
    says_not(words_of(a, r.t, o), "colour"); /* words are the same in all themes */
    says(words_of(a, r.t, o), "the shape names their axes");
    r = plan_run_with(a, "full.yaml", full,
                      &(PipelineOptions){.events = true, .hardware = "h100-sxm"});
    o = view("timeline");
    says_not(words_of(a, r.t, o), "\nV\n");
    arena_free(a);
}

/* A label that lies is red where it shows, with both layouts: the input of a norm, the result of a
 * projection. */
static void labels_that_lie_are_red(void **state) {
    (void)state;
    static const char *const line[] = {
        "  layers.*.attention_norm: sequence_parallel\n",
        "  layers.*.attention.wo: {style: rowwise, input: replicate}\n"};
    static const char *const both[] = {
        "The plan says that the input of attention_norm lies as [B, S/tp, D], it lies as [B, S, D]",
        "The plan says that the input of wo lies as [B, S, H·d], it lies as [B, S, H·d/tp]"};
    static const char *const where[] = {
        "\nDeclaration of input, step 0, line 7 of lies.yaml\n", /* the title has said the rule */
        "\nLinear of wo, step "};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 1, shrink: 32}\ndata: {batch: 1, sequence: 32}\n"
            "mesh: {tp: 4}\nnames: torchtitan\nplan:\n  layers.*.attention.w[qkv]: colwise\n%s",
            line[i]);
        PlanRun r = plan_run_with(a, "lies.yaml", text, &(PipelineOptions){0});
        assert_non_null(r.t);
        assert_int_equal(diags_exit(r.d), 1);
        const char *report, *w = words_of(a, r.t, view("block"));
        RenderOptions o = view("block");
        says(w, where[i]);
        says(w, both[i]);
        assert_int_equal(render_lint(r.t, r.d, &o, a, &report), 0);
        arena_free(a);
    }
}

/* A picture that has no place of its own for the step that is wrong says of what plan it is. */
static void a_wrong_plan_is_called_so(void **state) {
    (void)state;
    static const char *const views[] = {"pipeline", "timeline", "mesh",
                                        "memory",   "overview", "shards"};
    static const char plan[] =
        "model: {preset: llama3-8b, layers: 2, shrink: 32}\ndata: {batch: 4, sequence: 16, dtype: "
        "f32}\nmesh: {pp: 2}\npass: backward\npipeline: {schedule: 1f1b, microbatches: 4}\n";
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        for (int wrong = 0; wrong < 2; wrong++) {
            Arena *a = arena_new();
            const char *text =
                arena_printf(a, "%s%s", plan,
                             wrong ? "faults: [{at: send of layers.0.output, do: drop}]\n" : "");
            PlanRun r = plan_run_with(a, "send.yaml", text, &(PipelineOptions){.events = true});
            const char *missing = "Send over pp of output is missing (planted: drop), so the rank "
                                  "it was for goes on with an empty buffer",
                       *report, *w = words_of(a, r.t, view(views[i]));
            if (wrong) says(w, missing);
            else assert_null(strstr(w, "is missing"));
            for (const char *const *p = (const char *const[]){"wide", "slide", "column", NULL}; *p;
                 p++) {
                RenderOptions o = view(views[i]);
                o.preset = *p;
                assert_int_equal(render_lint(r.t, r.d, &o, a, &report), 0);
            }
            arena_free(a);
        }
}

/* Two plans' timelines face each other: what both have stands at one height, and of a pipeline no
 * stage's kernels are called another's for being on another rank. */
static void timelines_face_each_other(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int least;   /* lines that both have */
        bool unlike; /* is anything not so in the other? */
    } row[] = {{"plans/18-llama3-8b-backward.yaml", "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                6, true},
               {"plans/41-llama3-8b-ring4-zigzag.yaml", "plans/42-llama3-8b-usp.yaml", 4, true},
               {"plans/07-llama3-8b-cp4.yaml", "plans/08-llama3-8b-cp4-zigzag.yaml", 2, false},
               {"plans/45-llama3-8b-pp4-1f1b.yaml", "plans/46-llama3-8b-pp2-zb-v.yaml", 8, false}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        const PipelineOptions events = {.events = true};
        PlanRun x = shipped(a, row[i].a, &events), y = shipped(a, row[i].b, &events);
        RenderOptions o = view("timeline");
        o.preset = "column", o.with = y.t;
        Scene *page[VIEW_MAX_PAGES];
        assert_int_equal(render_pages(x.t, x.d, &o, a, page), 1);
        const Scene *s = page[0];
        int facing = 0;
        bool unlike = false;
        for (int g = 0; g < s->n_groups; g++)
            for (int h = 0; h < s->n_groups && !strcmp(s->groups[g].what, "line"); h++) {
                const char *id = s->groups[h].id;
                if (strncmp(id, "second-", 7) || strcmp(id + 7, s->groups[g].id)) continue;
                assert_true(fabs(s->marks[s->groups[g].first].y - s->marks[s->groups[h].first].y) <
                            0.01);
                facing++;
            }
        for (int k = 0; k < s->n_marks; k++)
            unlike |= s->marks[k].kind == MARK_TEXT && s->marks[k].n_run &&
                      !strcmp(s->marks[k].run[0].s, "not so in the other plan");
        double from[2] = {INFINITY, INFINITY}, to[2] = {0}; /* of the schedules' cells */
        for (int k = 0; k < s->n_marks && x.t->n_actions && y.t->n_actions; k++) {
            const Mark *m = &s->marks[k];
            const Group *g = m->group >= 0 ? &s->groups[m->group] : NULL;
            const int of = g && g->id && !strncmp(g->id, "second-", 7);
            if (!g || !g->id || m->kind != MARK_RECT || strncmp(g->id + 7 * of, "action-", 7))
                continue;
            from[of] = fmin(from[of], m->x), to[of] = fmax(to[of], m->x + m->w);
        }
        if (to[0] > 0) {
            double end[2] = {0};
            for (int k = 0; k < x.t->n_actions; k++) end[0] = fmax(end[0], x.t->actions[k].end);
            for (int k = 0; k < y.t->n_actions; k++) end[1] = fmax(end[1], y.t->actions[k].end);
            if (fabs((to[0] - from[0]) / end[0] / ((to[1] - from[1]) / end[1]) - 1) > 0.01)
                fail_msg("%s: schedules of two scales", row[i].a);
        } else if (x.t->n_actions && y.t->n_actions) fail_msg("%s: no cells", row[i].a);
        if (facing < row[i].least || unlike != row[i].unlike)
            fail_msg("%s: %d lines face each other, unlike %d", row[i].a, facing, unlike);
        arena_free(a);
    }
}

/* What is made a second time, for it was not kept, is called as in the forward pass, and "again" in
 * its own title and in that of its line; what is made once is not. */
static void lines_say_again(void **state) {
    (void)state;
    static const struct {
        const char *file;
        bool again;
    } row[] = {{"plans/21-llama3-8b-recompute.yaml", true},
               {"plans/55-llama3-8b-pp2-tp2-recompute-stage.yaml", true},
               {"plans/18-llama3-8b-backward.yaml", false}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = shipped(a, row[i].file, &(PipelineOptions){.events = true});
        RenderOptions o = view("timeline");
        Scene *page[32];
        assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
        int again = 0, lines = 0;
        for (int k = 0; k < r.t->n_computes; k++) {
            const TraceCompute *c = &r.t->computes[k];
            const bool twice = c->pass == PHASE_BACKWARD && c->makes.role == OF_ITSELF;
            const char *head = arena_printf(a, "step %d: ", c->step), *tip = NULL;
            for (int g = 0; g < page[0]->n_groups && !tip; g++) {
                const char *own = page[0]->groups[g].tip;
                if (own && !strncmp(own, head, strlen(head))) tip = own;
            }
            if (!tip) continue; /* of a rank or layer that is folded */
            const char *name = arena_strndup(a, tip, strcspn(tip, "\n"));
            again += twice;
            if ((strstr(name, ", again,") != NULL) != twice) fail_msg("%s: %s", row[i].file, name);
            if (twice && (strstr(name, ": d") || strstr(name, "′"))) fail_msg("%s", name);
        }
        for (int k = 0; k < page[0]->n_marks; k++) {
            const Mark *m = &page[0]->marks[k];
            lines += m->kind == MARK_TEXT && m->n_run && strstr(m->run[0].s, "Backward") &&
                     strstr(m->run[0].s, " again");
        }
        if ((again > 0) != row[i].again || (lines > 0) != row[i].again)
            fail_msg("%s: %d kernels and %d lines again", row[i].file, again, lines);
        arena_free(a);
    }
}
/* Where no communication is hidden what is exposed is all of it: one number, read in one way in the
 * sum and behind it. */
static void one_number_is_rounded_once(void **state) {
    (void)state;
    static const char *const plan[] = {
        "plans/01-column-row-mlp.yaml", "plans/03-llama3-8b-tp2.yaml",
        "plans/05-llama3-8b-tp4-sp.yaml", "plans/10-llama3-70b-tp8.yaml"};
    int seen = 0;
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        PlanRun r = shipped(a, plan[i], &(PipelineOptions){.events = true});
        TraceTimes s = trace_times_of(r.t, 0);
        const char *w = words_of(a, r.t, view("timeline"));
        if (s.comm > s.exposed) continue;
        seen++;
        const char *part[3];
        time_sum_text((double[]){s.compute, s.exposed, s.waiting}, 3, part, a);
        says(w, arena_printf(a, " + exposed %s", part[1]));
        says(w, arena_printf(a, "Communication %s (overlaps counted once), of which 0 %% is hidden",
                             part[1]));
        arena_free(a);
    }
    assert_true(seen > 1);
}
/* A value has one name before and after a collective: the row of what was moved says by what; rows
 * of many values count the others in words, and their tooltip names all. */
static void rows_tell_before_from_after(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t n;
    const char *path = "plans/09-llama3-8b-dp2-cp2-tp2.yaml";
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &n);
    PlanRun r = plan_run(a, path, text, false);
    const char *w = words_of(a, r.t, view("shards"));
    says(w, "[B/dp, S/cp, K/tp, d]   4 KiB");
    says(w, "[B/dp, S, K/tp, d]   8 KiB\n");
    says(w, "after attention_norm, after ffn_norm");
    assert_null(strstr(w, " +"));
    r = plan_run(a, path, "model: {preset: llama3-8b, shrink: 512}\nmesh: {dp: 2}\n", false);
    says(words_of(a, r.t, view("shards")), " more");
    arena_free(a);
}

/* Of the groups of this kind the first one's tooltip; NULL: there is none. */
static const char *tip_of(const Scene *s, const char *what) {
    for (int g = 0; g < s->n_groups; g++)
        if (!strcmp(s->groups[g].what, what)) return s->groups[g].tip;
    return NULL;
}
/* A band says how long compute waits there, a bracket which layers it folds; and a slide that is
 * the only one has one scale. */
static void bands_and_brackets_have_tooltips(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *plan = "model: {preset: llama3-8b, layers: 3, shrink: 16}\nmesh: {tp: 2}\n"
                       "names: torchtitan\nrecipe: torchtitan-llama3\nhardware: h100-sxm\n"
                       "pass: forward\n";
    PlanRun r = plan_run_with(a, "p.yaml", plan, &(PipelineOptions){.events = true});
    assert_non_null(r.t);
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = view("timeline");
    o.preset = "slide";
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
    assert_int_equal(strncmp(tip_of(page[0], "wait"), "compute waits ", 14), 0);
    const char *words = words_of(a, r.t, o);
    says(words, "lines at one scale");
    assert_null(strstr(words, "each page"));
    o = view("overview");
    assert_true(render_pages(r.t, r.d, &o, a, page) > 0);
    assert_string_equal(tip_of(page[0], "layers"), "layers 0 to 2 do the same: one of 3 is drawn");
    arena_free(a);
}
/* The states of the residual stream are called as in view block, and their records in the tooltip.
 */
static void shards_call_values_as_block_does(void **state) {
    (void)state;
    static const struct {
        const char *plan, *tip;
    } row[] = {{"plans/05-llama3-8b-tp4-sp.yaml",
                "x (layers.0.input), h (layers.0.resid_attn), y (layers.0.output)"},
               {"plans/18-llama3-8b-backward.yaml", "h (layers.0.resid_attn), y (layers.0.output)"},
               {"plans/20-llama3-8b-fsdp-tp.yaml", "h (layers.0.resid_attn), y (layers.0.output)"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        size_t n;
        const char *text = file_read(a, diags_new(a), row[i].plan, 1 << 20, (Loc){0}, &n);
        PlanRun r = plan_run(a, row[i].plan, text, false);
        RenderOptions o = view("shards");
        Scene *page[32];
        assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
        int held = 0;
        for (int g = 0; g < page[0]->n_groups; g++) {
            const Group *m = &page[0]->groups[g];
            held += !strcmp(m->what, "values") && !strcmp(m->tip, row[i].tip);
        }
        if (held != 1) fail_msg("%s: no row %s", row[i].plan, row[i].tip);
        const char *words = words_of(a, r.t, o);
        assert_null(strstr(words, "resid_attn"));
        arena_free(a);
    }
}
/* "x, h" of a row's tooltip "x (layers.0.input), h (layers.0.resid_attn)". */
static const char *names_of(Arena *a, const char *tip) {
    Str s = str_new(a);
    for (int deep = 0; *tip; tip++) {
        if (!strncmp(tip, " (", 2)) deep++;
        if (!deep) str_addf(&s, "%c", *tip);
        if (*tip == ')') deep--;
    }
    return s.n ? s.s : "";
}
/* On a wide page what a collective takes and what it leaves stand beside each other, the collective
 * between them, of a unit's gradients too, that have no record of their own; those of one cut are
 * one row. What is moved stands nowhere above that which it is made from. Narrow pages say it. */
static void before_and_after_are_a_line(void **state) {
    (void)state;
    static const struct {
        const char *plan, *left, *between, *right;
    } row[] = {
        {"plans/09-llama3-8b-dp2-cp2-tp2.yaml", "after wo, after w2", "ReduceScatter over sp",
         "after wo, after w2"},
        {"plans/20-llama3-8b-fsdp-tp.yaml", "w3, w1, wv, wk, wq", "ReduceScatter over dp·cp",
         "w3, w1, wv, wk, wq"},
        {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "max", "AllReduce over tp", "max"},
        {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "sumexp, target", "AllReduce over tp",
         "sumexp, target"},
        {"plans/30-mixtral-8x7b-ep-dp-cp.yaml", "dispatched", "AllToAll over ep", "dispatched"},
        {"plans/30-mixtral-8x7b-ep-dp-cp.yaml", "cotangent", "slice", "cotangent"},
        /* what is left out or wrong stands behind its own value, not behind all that lie alike */
        {"plans/bugs/03-missing-reduction.yaml", "after w2", "AllReduce over tp", "after w2"},
        {"plans/bugs/12-gradient-over-the-wrong-group.yaml", "w1", "AllReduce over tp", "w1"},
        {"plans/bugs/01-output-left-partial.yaml", "after wo", "the declaration", "after wo"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        size_t n;
        const char *text = file_read(a, diags_new(a), row[i].plan, 1 << 20, (Loc){0}, &n);
        PlanRun r = plan_run(a, row[i].plan, text, false);
        RenderOptions o = view("shards");
        Scene *page[32];
        assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
        const Scene *s = page[0];
        int held = 0;
        for (int g = 0; g < s->n_groups; g++) {
            const Group *m = &s->groups[g], *beside[2] = {NULL};
            if (strcmp(m->what, "moved") || strncmp(m->tip, row[i].between, strlen(row[i].between)))
                continue;
            const Box box = scene_box(&s->marks[m->first]);
            const double y = (box.y0 + box.y1) / 2 - 16; /* of the heads of its rows */
            for (int k = 0; k < s->n_groups; k++) {
                const Mark *head = &s->marks[s->groups[k].first];
                if (strcmp(s->groups[k].what, "values") || fabs(head->y - y) > 2) continue;
                beside[head->x > box.x0] = &s->groups[k];
            }
            assert_non_null(beside[0]);
            assert_non_null(beside[1]);
            held += !strcmp(names_of(a, beside[0]->tip), row[i].left) &&
                    !strcmp(names_of(a, beside[1]->tip), row[i].right);
        }
        if (!held) fail_msg("%s: %s stands not between", row[i].plan, row[i].between);
        o.preset = "column";
        const bool left_out = strstr(row[i].plan, "missing") != NULL;
        const char *word = arena_strndup(a, row[i].between, strcspn(row[i].between, " "));
        if (strcmp(word, "the") != 0)
            says(words_of(a, r.t, o),
                 arena_printf(a, "%s %s", left_out ? "without" : "after", word));
        arena_free(a);
    }
}

/* The title of the `back`-th group of rows before `at` in an SVG of shards. */
static const char *names_before(Arena *a, const char *svg, const char *at, int back) {
    static const char head[] = "class=\"values\"><title>";
    const char *found = NULL;
    for (; back >= 0; back--)
        for (found = at--; found > svg && strncmp(found, head, sizeof head - 1); at = found)
            found--;
    found += sizeof head - 1;
    return arena_strndup(a, found, strcspn(found, "<"));
}
/* What stands at the left of a collective is what it moves, and nothing that merely lies like it.
 */
static void both_sides_are_what_is_moved(void **state) {
    (void)state;
    static const char *const plan[] = {
        "plans/05-llama3-8b-tp4-sp.yaml", "plans/09-llama3-8b-dp2-cp2-tp2.yaml",
        "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "plans/30-mixtral-8x7b-ep-dp-cp.yaml",
        "plans/54-deepseek-v3-latent-ring4.yaml"};
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
        Arena *a = arena_new();
        size_t n;
        const char *text = file_read(a, diags_new(a), plan[i], 1 << 20, (Loc){0}, &n);
        PlanRun r = plan_run_with(a, plan[i], text, &(PipelineOptions){0});
        RenderOptions o = view("shards");
        const char *svg = render_text(r.t, diags_new(a), &o, FORMAT_SVG, a, &n);
        int held = 0;
        for (const char *at = svg; (at = strstr(at, "class=\"moved\"")); at++, held++) {
            const char *left = names_before(a, svg, at, 1), *right = names_before(a, svg, at, 0);
            if (strcmp(left, right) != 0) fail_msg("%s: '%s' to '%s'", plan[i], left, right);
        }
        assert_true(held > 0);
        arena_free(a);
    }
}

/* A page of shards can be taken in: two layers on a screen, a block with its gradients on two. */
static void shards_can_be_taken_in(void **state) {
    (void)state;
    static const struct {
        const char *plan;
        double most; /* units; a screen of 16:10 has 700 to the 1120 of a page's width */
    } row[] = {{"plans/01-column-row-mlp.yaml", 880},
               {"plans/02-toymodel-4.yaml", 880},
               {"plans/09-llama3-8b-dp2-cp2-tp2.yaml", 1250},
               {"plans/20-llama3-8b-fsdp-tp.yaml", 1680},
               {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", 1610},
               {"plans/shape-only/llama3.1-405b-8192.yaml", 1460}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        size_t n;
        const char *text = file_read(a, diags_new(a), row[i].plan, 1 << 20, (Loc){0}, &n);
        PlanRun r = plan_run_with(a, row[i].plan, text, &(PipelineOptions){0});
        RenderOptions o = view("shards");
        Scene *page[32];
        assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
        if (page[0]->h > row[i].most) fail_msg("%s is %.0f high", row[i].plan, page[0]->h);
        arena_free(a);
    }
}

/* Small matrices stand in the storyboard whole, in integers where the plan asks: what every rank
 * holds of each chunk adds up to the unsharded product. Larger ones keep one element of each chunk.
 */
static void whole_matrices_of_integers(void **state) {
    (void)state;
    static const char *const how[] = {"rowwise", "{style: rowwise, output: shard(0)}"};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        bool small = i < 2;
        const char *text = arena_printf(
            a,
            "model: {kind: mlp, sizes: [3, 8, %d], bias: false, activation: none, layer_names: "
            "[up, down]}\ndata: {rows: 6, dtype: f32, integers: true}\nmesh: {tp: 2}\nplan:\n"
            "  up: colwise\n  down: %s\n",
            small ? 4 : 10, how[i % 2]);
        PlanRun r =
            plan_run_with(a, "small.yaml", text,
                          &(PipelineOptions){.execute = true, .numbers = true, .threads = 1});
        assert_int_equal(diags_exit(r.d), 0);
        const TraceSample *k = &r.t->samples[0];
        assert_int_equal(r.t->n_samples, 1);
        assert_int_equal(k->n_whole, small ? 2 * 2 * 12 : 0);
        const char *report, *w = words_of(a, r.t, view("storyboard"));
        char *lines = arena_strdup(a, w);
        for (char *c = lines; *c; c++) *c = *c == '\n' ? ' ' : *c;
        says(lines, small ? "whole chunks (c0 from [0, 0]); the sums are those of the run"
                          : "one element per chunk (c0: [0, 0]); the sums are those of the run");
        const TraceValue *v = NULL; /* what the unsharded model has */
        for (int n = 0; n < r.t->n_values; n++)
            if (!strcmp(r.t->values[n].shape.name, "down")) v = &r.t->values[n];
        assert_non_null(v);
        for (int e = 0; small && e < 24; e++) {
            double sum = k->whole[e / 12 * 24 + e % 12] + k->whole[e / 12 * 24 + 12 + e % 12];
            assert_true(sum == v->numbers[e] && sum == k->made[e] && sum == floor(sum));
            assert_true(sum >= 24 && sum <= 8 * 4 * 3 * 16);
            says(w, arena_printf(a, "\n%.0f\n", sum));
        }
        for (const char *const *p = (const char *const[]){"wide", "slide", "column", "a4", NULL};
             *p; p++) {
            RenderOptions o = view("storyboard");
            o.preset = *p;
            assert_int_equal(render_lint(r.t, r.d, &o, a, &report), 0);
        }
        arena_free(a);
    }
}

/* What a rank holds beyond its memory is the title. */
static void what_does_not_fit_is_the_title(void **state) {
    (void)state;
    static const char *const size[] = {"64", "4096"};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(a,
                                        "model: {preset: llama3-8b}\ndata: {batch: %s, sequence: "
                                        "8192, dtype: bf16}\nmesh: {tp: 2}\nrecipe: hf-llama\n",
                                        size[i]);
        PlanRun r = plan_run_with(a, "full.yaml", text, &(PipelineOptions){.events = true});
        assert_non_null(r.t);
        const char *w = words_of(a, r.t, view("memory"));
        if (i) says(w, "at the peak and does not fit: +");
        else says_not(w, "does not fit");
        assert_non_null(strstr(w, "Each of 2 ranks holds "));
        arena_free(a);
    }
}

/* Of the first numbers of a scale in the half of a figure from x0 to x1: px for one of its units,
 * to the right (or upwards). 0: there are no two. */
static double per_unit(const Scene *s, double x0, double x1, bool up) {
    const Mark *first = NULL;
    double value = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_TEXT || m->n_run != 1 || m->x < x0 || m->x >= x1) continue;
        if (m->align != (up ? ALIGN_RIGHT : ALIGN_MIDDLE) || m->run->role != ROLE_TICK) continue;
        char *end;
        double v = strtod(m->run->s, &end);
        if (*end || v <= 0) continue;
        if (first && fabs(up ? m->x - first->x : m->y - first->y) < 0.01)
            return (up ? first->y - m->y : m->x - first->x) / (v - value);
        first = m, value = v;
    }
    return 0;
}
/* Two plans side by side are measured with one scale: what is twice as long or as high is twice as
 * much. The second has eight times the tokens of the first. */
static void two_plans_have_one_scale(void **state) {
    (void)state;
    static const struct {
        const char *view;
        bool up;
    } row[] = {{"timeline", false}, {"memory", false}, {"memory", true}};
    for (int i = 0; i < 6; i++) {
        Arena *a = arena_new();
        PlanRun r[2];
        for (int k = 0; k < 2; k++) {
            const char *text = arena_printf(
                a,
                "model: {preset: llama3-8b, shrink: 16}\ndata: {batch: 1, sequence: %d}\n"
                "mesh: {tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3\n",
                k == i % 2 ? 512 : 4096);
            r[k] = plan_run_with(a, "two.yaml", text, &(PipelineOptions){.events = true});
            assert_non_null(r[k].t);
        }
        RenderOptions o = view(row[i / 2].view);
        o.preset = "column";
        o.with = r[1].t;
        Scene *page[32];
        assert_int_equal(render_pages(r[0].t, r[0].d, &o, a, page), 1);
        double mid = page[0]->w / 2, left = per_unit(page[0], 0, mid, row[i / 2].up),
               right = per_unit(page[0], mid, page[0]->w, row[i / 2].up);
        assert_true(left > 0);
        if (fabs(left - right) > 1e-6 * left)
            fail_msg("%s: %g and %g px for a unit", row[i / 2].view, left, right);
        arena_free(a);
    }
}

/* Does the mark say that the other half has it otherwise, or not at all? */
static bool line_unlike(const Mark *m) {
    return m->kind == MARK_RECT && m->fill == ROLE_INK && (m->h == 2.5 || m->h == 1.1);
}
/* Groups of that kind in a half of a page that have the line of what the other half has not; of
 * all: how many there are. */
static int unlike_groups(const Scene *s, const char *what, bool right, int *all) {
    int n = 0;
    *all = 0;
    for (int g = 0; g < s->n_groups; g++) {
        const Group *x = &s->groups[g];
        bool line = false, here = false;
        if (strcmp(x->what, what)) continue;
        for (int i = x->first; i < x->last; i++) {
            const Mark *m = &s->marks[i];
            line |= line_unlike(m);
            here |= (m->kind == MARK_TEXT || m->kind == MARK_RECT) && (m->x > s->w / 2) == right;
        }
        *all += here;
        n += here && line;
    }
    return n;
}
/* In a figure of two plans what the other has not is marked: collectives and kernels, weights and
 * values; of two that are the same nothing is. */
static void two_plans_show_their_difference(void **state) {
    (void)state;
    static const struct {
        bool sp; /* the other plan cuts the sequence */
        const char *view, *what;
        int marked, all; /* on the left */
    } row[] = {{true, "timeline", "collective", 2, 2},  {true, "timeline", "compute", 4, 16},
               {true, "shards", "weight", 0, 5},        {true, "shards", "values", 2, 8},
               {false, "timeline", "collective", 0, 2}, {false, "shards", "values", 0, 8},
               {true, "memory", "memory", 1, 1},        {true, "memory", "value", 1, 4},
               {false, "memory", "memory", 0, 1},       {false, "memory", "value", 0, 4},
               {true, "block", "collective", 2, 2},     {true, "block", "compute", 0, 13},
               {true, "block", "edge", 4, 14},          {false, "block", "collective", 0, 2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r[2];
        for (int k = 0; k < 2; k++) {
            const char *text = arena_printf(
                a,
                "model: {preset: llama3-8b, shrink: 16}\ndata: {batch: 2, sequence: 64}\n"
                "mesh: {tp: 4}\nnames: torchtitan\n%s",
                !k || !row[i].sp
                    ? "plan:\n"
                      "  layers.*.attention.wq: colwise\n  layers.*.attention.wk: colwise\n"
                      "  layers.*.attention.wv: colwise\n  layers.*.attention.wo: rowwise\n"
                      "  layers.*.feed_forward.w1: colwise\n  layers.*.feed_forward.w3: colwise\n"
                      "  layers.*.feed_forward.w2: rowwise\n"
                    : "recipe: torchtitan-llama3\n");
            r[k] = plan_run_with(a, "two.yaml", text, &(PipelineOptions){.events = true});
            if (!r[k].t) diags_print(r[k].d, stderr, false);
            assert_non_null(r[k].t);
        }
        RenderOptions o = view(row[i].view);
        o.preset = "column";
        o.with = r[1].t;
        Scene *page[32];
        assert_true(render_pages(r[0].t, r[0].d, &o, a, page) > 0);
        int all, marked = unlike_groups(page[0], row[i].what, false, &all);
        const char *w = words_of(a, r[0].t, o);
        const bool key = strstr(w, "not so in the other plan") || strstr(w, "only in this plan");
        if (!strcmp(row[i].view, "memory") && row[i].sp) /* by how much, each seen from its side */
            says(w, "\nCompared with the other plan: activations +"),
                says(w, "\nCompared with the other plan: activations −");
        if (marked != row[i].marked || all != row[i].all || key != row[i].sp)
            fail_msg("%s: %d of %d %ss are marked, key %d", row[i].view, marked, all, row[i].what,
                     key);
        arena_free(a);
    }
}
/* Blocks that are very unlike: parts face each other, an MLP a layer of experts; what the other
 * plan has otherwise is told from what it has not at all; and beside a plan without a backward pass
 * the forward pass of both is shown, unless a pass is asked for. */
static void unlike_blocks_face_each_other(void **state) {
    (void)state;
    static const char less[] = "backward pass is not drawn";
    static const char *const other[] = {"plans/03-llama3-8b-tp2.yaml",
                                        "plans/33-qwen3-30b-a3b-ep.yaml",
                                        "plans/41-llama3-8b-ring4-zigzag.yaml"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        Arena *a = arena_new();
        PlanRun x = shipped(a, "plans/05-llama3-8b-tp4-sp.yaml", &(PipelineOptions){0}),
                y = shipped(a, other[i], &(PipelineOptions){0});
        RenderOptions o = view("block");
        o.preset = "column", o.with = y.t;
        Scene *page[32];
        const char *report;
        int lines[2] = {0};
        assert_int_equal(render_pages(x.t, x.d, &o, a, page), 1);
        assert_int_equal(render_lint(x.t, x.d, &o, a, &report), 0);
        const Scene *s = page[0];
        for (int k = 0; k < s->n_marks; k++)
            if (line_unlike(&s->marks[k])) lines[s->marks[k].h == 1.1]++;
        if (lines[0] < 2 || lines[1] < 2)
            fail_msg("%s: %d heavy lines, %d double", other[i], lines[0], lines[1]);
        double at[2][2] = {{0}};
        for (int k = 0; k < s->n_marks; k++) {
            const Mark *m = &s->marks[k];
            if (m->kind != MARK_TEXT || !m->n_run || m->size != 15) continue;
            const char *w = m->run[0].s;
            const int part = !strcmp(w, "MLP") || !strcmp(w, "MoE") ? 1
                             : !strcmp(w, "Attention")              ? 0
                                                                    : -1;
            if (part >= 0) at[part][m->x > s->w / 3] = m->y;
        }
        for (int part = 0; part < 2; part++)
            if (at[part][0] <= 0 || fabs(at[part][0] - at[part][1]) > 0.01)
                fail_msg("%s: part %d at %g and %g", other[i], part, at[part][0], at[part][1]);
        const char *w = words_of(a, x.t, o);
        assert_int_equal(strstr(w, less) != NULL, i > 0);
        o.pass = "both";
        if (i) assert_null(strstr(words_of(a, x.t, o), less));
        arena_free(a);
    }
}
/* The frames of a gradient's ring without numbers: arrows point to the rank that has the chunk
 * next, words keep clear of the edge of what fills a cell; and more than two lines of frames get a
 * wider page, so that it is no tower. */
static void frames_of_a_ring(void **state) {
    (void)state;
    Arena *a = arena_new();
    RenderOptions o = view("storyboard");
    Scene *page[32];
    PlanRun r = shipped(a, "plans/bugs/18-fsdp-wrong-shard.yaml", &(PipelineOptions){0});
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
    int arrows = 0, through = 0, fills = 0;
    const Scene *s = page[0];
    for (int i = 0; i < s->n_arrows; i++) {
        const Mark *m = &s->marks[s->arrows[i].mark];
        arrows++;
        if (m->pt[0].x > s->arrows[i].tip.x) fail_msg("an arrow to the rank before");
    }
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *fill = &s->marks[i];
        if (fill->kind != MARK_RECT || fill->fill != ROLE_PART_SUM || fill->group < 0) continue;
        if (strcmp(s->groups[fill->group].what, "cell")) continue;
        fills++;
        for (int k = 0; k < s->n_marks; k++) {
            const Mark *m = &s->marks[k];
            if (m->kind != MARK_TEXT || m->group != fill->group) continue;
            through += m->y > fill->y + 1 && m->y - 0.6 * m->size < fill->y - 1;
        }
    }
    assert_true(arrows >= 12 && fills >= 8);
    assert_int_equal(through, 0);
    r = shipped(a, "plans/10-llama3-70b-tp8.yaml", &(PipelineOptions){0});
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
    assert_true(page[0]->w > page[0]->h);
    arena_free(a);
}
/* Where in a scene the text begins, from the left or (down) from above; -1: nowhere. */
static double text_at(const Scene *s, const char *text, bool down) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind == MARK_TEXT && m->n_run == 1 && !strcmp(m->run->s, text))
            return down ? m->y : m->x;
    }
    return -1;
}
/* Each half of a figure of two plans says at its top which plan it is of; two of one name by what
 * tells them apart. */
static void two_plans_are_named(void **state) {
    (void)state;
    static const char *const views[] = {"block", "timeline", "memory", "shards", "overview"},
                             *const presets[] = {"wide", "column", "slide"};
    for (int i = 0; i < 5 * 2; i++) {
        Arena *a = arena_new();
        PlanRun r[2];
        for (int k = 0; k < 2; k++) {
            const char *text =
                arena_printf(a,
                             "name: %s\nmodel: {preset: llama3-8b, layers: 1, shrink: 16}\n"
                             "data: {batch: %d, sequence: 64}\nmesh: {tp: 2}\nnames: "
                             "megatron\nrecipe: megatron\n",
                             i % 2 && k ? "other" : "own", k + 1);
            r[k] = plan_run_with(a, "two.yaml", text, &(PipelineOptions){.events = true});
            assert_non_null(r[k].t);
        }
        const char *own =
                       i % 2 ? "A: plan own" : arena_printf(a, "A: plan own · %.8s", r[0].t->hash),
                   *other = i % 2 ? "B: plan other"
                                  : arena_printf(a, "B: plan own · %.8s", r[1].t->hash);
        RenderOptions o = view(views[i / 2]);
        o.with = r[1].t;
        for (int k = 0; k < 3; k++) {
            Scene *page[32];
            o.preset = presets[k];
            assert_true(render_pages(r[0].t, r[0].d, &o, a, page) > 0);
            const bool down = k == 2; /* slides stand under each other */
            double mid = (down ? page[0]->h : page[0]->w) / 2, left = text_at(page[0], own, down),
                   right = text_at(page[0], other, down);
            if (!(left >= 0 && left < mid && right > mid))
                fail_msg("%s, %s: '%s' at %g, '%s' at %g", o.view, o.preset, own, left, other,
                         right);
        }
        arena_free(a);
    }
}

/* Height of the n-th text that begins so, in one half of a page; 0: there is none. */
static double height_of(Arena *a, const Scene *s, const char *words, bool right, int n) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_TEXT || !m->n_run || (m->x > s->w / 2) != right) continue;
        const char *text = arena_strdup(a, m->run[0].s);
        if (!strncmp(text, words, strlen(words)) && !n--) return m->y;
    }
    return 0;
}
/* The shards of two plans: what both have faces itself, matrix by matrix and row by row, and where
 * one has no such row there is a gap. */
static void shards_of_two_plans_face(void **state) {
    (void)state;
    Arena *a = arena_new();
    const PlanRun x = shipped(a, "plans/18-llama3-8b-backward.yaml", &(PipelineOptions){0}),
                  y = shipped(a, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                              &(PipelineOptions){0});
    static const char *const both[] = {"wq",
                                       "w2",
                                       "Vectors",
                                       "q_rope",
                                       "after output",
                                       "sumexp",
                                       "Gradients of parameters",
                                       "norm, ffn_norm"};
    RenderOptions o = view("shards");
    o.preset = "column";
    for (int turn = 0; turn < 2; turn++) { /* whichever is first */
        Scene *page[32];
        o.with = turn ? x.t : y.t;
        assert_int_equal(render_pages(turn ? y.t : x.t, x.d, &o, a, page), 1);
        for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
            const double l = height_of(a, page[0], both[i], false, 0),
                         r = height_of(a, page[0], both[i], true, 0);
            if (l <= 0 || fabs(l - r) > 0.5) fail_msg("'%s' at %g and %g", both[i], l, r);
        }
        /* only one gathers keys; what follows stands lower in the other, too */
        assert_true(height_of(a, page[0], "k_rope", turn == 0, 1) > 0);
        assert_true(height_of(a, page[0], "k_rope", turn == 1, 1) == 0);
    }
    arena_free(a);
}
/* Where one of two heads is longer, the figures under them begin at one height all the same. */
static void bodies_of_two_plans_are_level(void **state) {
    (void)state;
    Arena *a = arena_new();
    const PlanRun x = shipped(a, "plans/41-llama3-8b-ring4-zigzag.yaml", &(PipelineOptions){0}),
                  y = shipped(a, "plans/42-llama3-8b-usp.yaml", &(PipelineOptions){0});
    RenderOptions o = view("block");
    o.preset = "column";
    for (int turn = 0; turn < 2; turn++) { /* whichever is first */
        Scene *page[32];
        o.with = turn ? x.t : y.t;
        assert_int_equal(render_pages(turn ? y.t : x.t, x.d, &o, a, page), 1);
        const double l = height_of(a, page[0], "Attention", false, 0),
                     r = height_of(a, page[0], "Attention", true, 0);
        if (l <= 0 || fabs(l - r) > 0.5) fail_msg("Attention at %g and %g", l, r);
    }
    arena_free(a);
}
/* The blocks and the lines of time of two plans that share little: an MLP alone faces the MLP, and
 * lines that only one has take the place of the other's, not a place under all of them. */
static void parts_of_unlike_plans_face(void **state) {
    (void)state;
    static const struct {
        const char *view, *a, *b, *left, *right;
    } row[] = {
        {"block", "plans/03-llama3-8b-tp2.yaml", "plans/01-column-row-mlp.yaml", "MLP", "MLP"},
        {"block", "plans/05-llama3-8b-tp4-sp.yaml", "plans/30-mixtral-8x7b-ep-dp-cp.yaml", "MLP",
         "MoE"},
        {"block", "plans/18-llama3-8b-backward.yaml",
         "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "Attention", "Attention"},
        {"block", "plans/18-llama3-8b-backward.yaml",
         "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "MLP", "MLP"},
        {"block", "plans/18-llama3-8b-backward.yaml",
         "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "Head", "Head"},
        {"block", "plans/18-llama3-8b-backward.yaml",
         "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "Loss", "Loss"},
        {"timeline", "plans/05-llama3-8b-tp4-sp.yaml", "plans/18-llama3-8b-backward.yaml",
         "Forward, attention", "Forward, embedding and attention"},
        {"timeline", "plans/05-llama3-8b-tp4-sp.yaml", "plans/18-llama3-8b-backward.yaml",
         "Forward, MLP", "Forward, MLP and head"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int turn = 0; turn < 2; turn++) { /* whichever is first */
            Arena *a = arena_new();
            const PipelineOptions events = {.events = true};
            const PlanRun x = shipped(a, row[i].a, &events), y = shipped(a, row[i].b, &events);
            RenderOptions o = view(row[i].view);
            Scene *page[32];
            o.preset = "column";
            o.with = turn ? x.t : y.t;
            assert_int_equal(render_pages(turn ? y.t : x.t, x.d, &o, a, page), 1);
            const double l = height_of(a, page[0], row[i].left, turn, 0);
            double r = height_of(a, page[0], row[i].right, !turn, 0);
            if (r <= 0) r = height_of(a, page[0], row[i].right, turn, 0); /* a broad half */
            if (l <= 0 || fabs(l - r) > 0.5)
                fail_msg("%s: %s at %g, %s at %g", row[i].view, row[i].left, l, row[i].right, r);
            arena_free(a);
        }
}
/* How many collectives the boxes of a page stand for that are of a phase: "AllReduce ×2" for two.
 */
static int boxed(Arena *a, const Scene *s, const Trace *t, Phase pass) {
    int n = 0;
    for (int q = 0; q < t->n_collectives; q++) {
        const char *id = arena_printf(a, "step-%d-", t->collectives[q].step);
        for (int g = 0; t->collectives[q].pass == pass && g < s->n_groups; g++) {
            if (strncmp(s->groups[g].id, id, strlen(id)) != 0) continue;
            int times = 1;
            for (int i = s->groups[g].first; i < s->groups[g].last; i++)
                if (s->marks[i].kind == MARK_TEXT && strstr(s->marks[i].run[0].s, "×"))
                    times = atoi(strstr(s->marks[i].run[0].s, "×") + strlen("×"));
            n += times;
        }
    }
    return n;
}
/* Where ranks update weights for each other, the page about the weights has whatever sends them to
 * all, and who updates what. */
static void updated_weights_are_sent(void **state) {
    (void)state;
    static const struct {
        const char *plan;
        int most, other; /* collectives; rows that other ranks update */
    } row[] = {{"plans/50-llama3-8b-zero1.yaml", 12, 8},
               {"plans/51-llama3-8b-zero2-megatron.yaml", 3, 8},
               {"plans/18-llama3-8b-backward.yaml", 0, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        const PlanRun x = shipped(a, row[i].plan, &(PipelineOptions){0});
        RenderOptions o = view("block");
        Scene *page[32];
        o.part = "weights";
        assert_int_equal(render_pages(x.t, x.d, &o, a, page), 1);
        int other = 0;
        while (height_of(a, page[0], "on rank ", true, other) > 0) other++;
        for (int k = 0; height_of(a, page[0], "on other ranks", true, k) > 0; k++) other++;
        const int sent = boxed(a, page[0], x.t, PHASE_OPTIMIZER);
        if (sent != row[i].most || other != row[i].other)
            fail_msg("%s: %d are sent, %d by others", row[i].plan, sent, other);
        arena_free(a);
    }
}
/* On a slide an arrow leads from the gradient to what this rank updates of the weight. */
static void update_has_its_arrow_on_a_slide(void **state) {
    (void)state;
    static const char *const plan[] = {"plans/50-llama3-8b-zero1.yaml",
                                       "plans/51-llama3-8b-zero2-megatron.yaml"};
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
        Arena *a = arena_new();
        const PlanRun x = shipped(a, plan[i], &(PipelineOptions){0});
        RenderOptions o = view("block");
        Scene *page[32];
        o.part = "weights", o.preset = "slide";
        const int n = render_pages(x.t, x.d, &o, a, page);
        int rows = 0, arrows = 0;
        for (int q = 0; q < n; q++)
            for (int m = 0; m < page[q]->n_marks; m++) {
                const Mark *k = &page[q]->marks[m];
                if (k->kind != MARK_TEXT || !k->n_run || strcmp(k->run[0].s, "on this rank") != 0 ||
                    !strcmp(page[q]->groups[k->group].what, "heads"))
                    continue;
                rows++;
                for (int w = 0; w < page[q]->n_arrows; w++)
                    arrows += fabs(page[q]->arrows[w].tip.x - k->x) < 4 &&
                              fabs(page[q]->arrows[w].tip.y - k->y) < 14;
            }
        if (!rows || arrows != rows) fail_msg("%s: %d arrows to %d", plan[i], arrows, rows);
        arena_free(a);
    }
}
/* Weights of which a row would say the same share one, with its count and their names; what differs
 * in a gather, in who updates it or in the unit that it goes with stands apart. No collective is
 * lost. */
static void equal_weights_share_a_row(void **state) {
    (void)state;
    static const struct {
        const char *plan, *name[8];
        int gathers, sums;
    } row[] = {
        {"plans/33-qwen3-30b-a3b-ep.yaml",
         {"attention_norm", "ffn_norm", "q_norm, k_norm", "wk, wv", "w1, w3", "w2"},
         23,
         12},
        {"plans/37-qwen3-30b-a3b-ep-etp.yaml",
         {"attention_norm", "ffn_norm", "q_norm, k_norm", "wk, wv", "w1, w3", "w2"},
         23,
         17},
        {"plans/30-mixtral-8x7b-ep-dp-cp.yaml",
         {"attention_norm,", "ffn_norm", "wk, wv", "router gate", "w1, w3"},
         0,
         7},
        {"plans/54-deepseek-v3-latent-ring4.yaml", {"q_norm", "kv_norm", "w1, w3"}, 0, 12},
        {"plans/20-llama3-8b-fsdp-tp.yaml",
         {"norm", "attention_norm,", "ffn_norm", "output"},
         4,
         5},
        {"plans/50-llama3-8b-zero1.yaml", {"tok_embeddings", "wk, wv", "w1", "w3", "output"}, 0, 1},
        {"plans/51-llama3-8b-zero2-megatron.yaml",
         {"attention_norm", "ffn_norm", "norm", "wk, wv", "w1", "w3"},
         0,
         3}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        const PlanRun x = shipped(a, row[i].plan, &(PipelineOptions){0});
        RenderOptions o = view("block");
        Scene *page[32];
        o.part = "weights";
        assert_int_equal(render_pages(x.t, x.d, &o, a, page), 1);
        for (int k = 0; k < 8 && row[i].name[k]; k++) {
            int n = 0;
            for (int m = 0; m < page[0]->n_marks; m++)
                n += page[0]->marks[m].kind == MARK_TEXT && page[0]->marks[m].n_run &&
                     !strcmp(page[0]->marks[m].run[0].s, row[i].name[k]);
            if (n != 1) fail_msg("%s: '%s' stands %d times", row[i].plan, row[i].name[k], n);
        }
        for (int m = 0; m < 2; m++) { /* a slide holds it without shrinking */
            Scene *slide[32];
            RenderOptions q = o;
            q.preset = "slide";
            if (render_pages(x.t, x.d, &q, a, slide) > m && slide[m]->scale < 1)
                fail_msg("%s: slide %d at %.3f", row[i].plan, m + 1, slide[m]->scale);
        }
        const int gathers = boxed(a, page[0], x.t, PHASE_PARAMETERS),
                  sums = boxed(a, page[0], x.t, PHASE_GRADIENTS);
        if (gathers != row[i].gathers || sums != row[i].sums)
            fail_msg("%s: %d gathers, %d sums", row[i].plan, gathers, sums);
        arena_free(a);
    }
}
/* Over an axis of one rank nothing is moved: no row says that something was, `comms` has no such
 * collective. */
static void one_rank_moves_nothing(void **state) {
    (void)state;
    for (int narrow = 0; narrow < 2; narrow++) {
        Arena *a = arena_new();
        const PlanRun x = shipped(a, "plans/06-llama3-8b-dp2-tp2-sp.yaml", &(PipelineOptions){0});
        RenderOptions o = view("shards");
        o.preset = narrow ? "column" : NULL;
        const char *said = words_of(a, x.t, o);
        assert_null(strstr(said, "of 1 rank"));
        says(said, "after wk, after wv");
        arena_free(a);
    }
}
/* The heading over the bars of a mask begins behind the strip of keys over the mask. */
static void bars_stand_behind_the_keys(void **state) {
    (void)state;
    static const char *const plan[] = {"plans/08-llama3-8b-cp4-zigzag.yaml",
                                       "plans/54-deepseek-v3-latent-ring4.yaml"};
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
        Arena *a = arena_new();
        const PlanRun x = shipped(a, plan[i], &(PipelineOptions){0});
        RenderOptions o = view("shards");
        Scene *page[32];
        assert_int_equal(render_pages(x.t, x.d, &o, a, page), 1);
        const Scene *s = page[0];
        int strips = 0;
        for (int k = 0; k < s->n_marks; k++) {
            const Mark *h = &s->marks[k];
            if (h->kind != MARK_TEXT || !h->n_run || strcmp(h->run[0].s, "zigzag: this plan"))
                continue;
            for (int q = 0; q < s->n_marks; q++) {
                const Mark *m = &s->marks[q];
                if (m->kind != MARK_RECT || m->y < h->y || m->y > h->y + 8 || m->x > h->x) continue;
                if (m->x + m->w > h->x - 8) fail_msg("%s: keys reach the heading", plan[i]);
                strips++;
            }
        }
        assert_int_equal(strips, 8);
        arena_free(a);
    }
}
/* As text both are one: a line of both once, what differs one under the other. */
static void texts_of_two_plans_face(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char
        *x = "weight    bytes\nwq    1 KiB\n    holds [0:1]\nwk    2 KiB\n\nend\n",
        *y = "weight    bytes\nwq    3 KiB\n    holds [0:2]\nwv    2 KiB\nwk    2 KiB\n\nend\n";
    assert_string_equal(facing_text(a, x, y),
                        "  weight    bytes\nA wq    1 KiB\nB wq    3 KiB\nA     holds [0:1]\n"
                        "B     holds [0:2]\nB wv    2 KiB\n  wk    2 KiB\n\n  end\n");
    assert_string_equal(facing_text(a, "a | \n", "a | \n"), "  a | \n");
    assert_string_equal(facing_text(a, "", "only\n"), "B only\n");
    /* a rank faces the same rank, not the next that the other has */
    assert_string_equal(
        facing_text(a, "ring\n    rank 1   9\n    rank 2   8\n", "ring\n    rank 2   7\n"),
        "  ring\nA     rank 1   9\nA     rank 2   8\nB     rank 2   7\n");
    /* a box stays whole: once where both have it, else one under the other */
    const char *box = "up\n┌───┐\n│ 0 │\n├───┤\n│ 1 │\n└───┘\n",
               *wide = "up\n┌───┬───┐\n│ 0 │ 1 │\n└───┴───┘\n";
    assert_string_equal(facing_text(a, box, box),
                        "  up\n  ┌───┐\n  │ 0 │\n  ├───┤\n  │ 1 │\n  └───┘\n");
    assert_string_equal(facing_text(a, box, wide),
                        "  up\nA ┌───┐\nA │ 0 │\nA ├───┤\nA │ 1 │\nA └───┘\n"
                        "B ┌───┬───┐\nB │ 0 │ 1 │\nB └───┴───┘\n");
    arena_free(a);
}
/* The shards of a ring say whose block each rank has at each turn, as the hops move it. */
static void shards_show_the_ring(void **state) {
    (void)state;
    Arena *a = arena_new();
    const PlanRun r = shipped(a, "plans/54-deepseek-v3-latent-ring4.yaml", &(PipelineOptions){0});
    RenderOptions o = view("shards");
    Scene *page[32];
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
    const Scene *s = page[0];
    int seen = 0, heads = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        int turn, place, block = -1;
        heads +=
            m->kind == MARK_POLY && m->group >= 0 && !strncmp(s->groups[m->group].id, "hop-", 4);
        if (m->kind != MARK_TEXT || m->group < 0 || strcmp(s->groups[m->group].what, "ring"))
            continue;
        assert_int_equal(sscanf(s->groups[m->group].id, "ring-%d-%d", &turn, &place), 2);
        block = atoi(m->run[0].s);
        assert_int_equal((block + turn) % 4, place); /* a hop brings it to the next rank */
        seen++;
    }
    assert_int_equal(seen, 16);
    assert_int_equal(heads, 3 * (4 + 1)); /* the last's goes out below, and comes in above */
    arena_free(a);
}
/* Experts stand one by one with the ranks that hold a part of each: of a plan of dp=2, cp=2, tp=2
 * and ep=dp·cp, rank r has a half of experts 2·(r/2) and the next. Those of many lie in stacks. */
static void experts_stand_one_by_one(void **state) {
    (void)state;
    Arena *a = arena_new();
    const PlanRun r = shipped(a, "plans/30-mixtral-8x7b-ep-dp-cp.yaml", &(PipelineOptions){0});
    RenderOptions o = view("shards");
    Scene *page[32];
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
    const Scene *s = page[0];
    int parts = 0, own = 0, numbers = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->group < 0 || strcmp(s->groups[m->group].what, "experts")) continue;
        const int part = atoi(strrchr(s->groups[m->group].id, '-') + 1);
        own += m->kind == MARK_RECT && m->fill == ROLE_NONE; /* the outline */
        if (m->kind != MARK_TEXT) continue;
        if (*m->run[0].s == 'E') {
            assert_int_equal(atoi(m->run[0].s + 1) / 2, part);
            numbers++;
        } else if (isdigit((unsigned char)*m->run[0].s) && !strchr(m->run[0].s, ',')) {
            assert_int_equal(atoi(m->run[0].s) / 2, part);
            parts++;
        }
    }
    assert_int_equal(numbers, 2 * 8); /* w1 and w3 are one picture */
    assert_int_equal(parts, 2 * 8 * 2);
    assert_int_equal(own, 2 * 2);
    const PlanRun many = shipped(a, "plans/33-qwen3-30b-a3b-ep.yaml", &(PipelineOptions){0});
    says(words_of(a, many.t, o), "E112-127");
    says(words_of(a, many.t, o), "16 of 128 experts");
    arena_free(a);
}
/* The mask of a ring says of each block after how many hops its keys are there: as many blocks and
 * halves of blocks of a hop as that hop's recorded work has pairs. */
static void mask_of_a_ring_counts_hops(void **state) {
    (void)state;
    enum { LEN = 64 / 8 }; /* of 64 tokens in 8 pieces */
    Arena *a = arena_new();
    const PlanRun r = shipped(a, "plans/41-llama3-8b-ring4-zigzag.yaml", &(PipelineOptions){0});
    RenderOptions o = view("shards");
    Scene *page[32];
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
    const Scene *s = page[0];
    int blocks[4] = {0}, hop = 0, last = -1;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_TEXT || m->group < 0 || strcmp(s->groups[m->group].id, "load-mask") ||
            !isdigit((unsigned char)*m->run[0].s))
            continue;
        blocks[atoi(m->run[0].s)]++;
    }
    for (int i = 0; i < r.t->n_computes; i++) {
        const TraceCompute *c = &r.t->computes[i];
        if (c->step == last || !c->attends || c->layer || strcmp(c->label, "partial attention") ||
            phase_or_forward(c->pass) != PHASE_FORWARD)
            continue;
        last = c->step;
        const int halves = hop ? 0 : 8,
                  pairs = (blocks[hop] - halves) * LEN * LEN + halves * LEN * (LEN + 1) / 2;
        /* of all four ranks, and of 256 multiplications and additions for q·k and as many for p·v
         */
        assert_true(4 * c->flops == 4.0 * 256 * pairs);
        hop++;
    }
    assert_int_equal(hop, 4);
    arena_free(a);
}
/* A plan of several rings says which one is drawn and which others there are, as text too. Beside a
 * plan of one, each side says its bytes, and only what the other has not is marked. */
static void rings_of_a_plan_are_counted(void **state) {
    (void)state;
    Arena *a = arena_new();
    const PlanRun one = shipped(a, "plans/41-llama3-8b-ring4-zigzag.yaml", &(PipelineOptions){0}),
                  two = shipped(a, "plans/42-llama3-8b-usp.yaml", &(PipelineOptions){0});
    RenderOptions o = view("shards");
    size_t n;
    const char *text = render_text(two.t, two.d, &o, FORMAT_TEXT, a, &n);
    says(words_of(a, two.t, o), "One of 2 rings over cp");
    says(words_of(a, two.t, o), "this is {0,2}, {1,3} has the same hops");
    says(text, "this is {0,2}, {1,3} has");
    says(words_of(a, one.t, o), "The ring over cp");
    o.preset = "column";
    o.with = two.t;
    Scene *page[32];
    assert_int_equal(render_pages(one.t, one.d, &o, a, page), 1);
    int all, told = 0;
    assert_int_equal(unlike_groups(page[0], "values", false, &all), 1);
    assert_int_equal(unlike_groups(page[0], "values", true, &all), 4);
    for (const char *at = words_of(a, one.t, o); (at = strstr(at, "3.25 MiB in all")); at++) told++;
    assert_int_equal(told, 4);
    arena_free(a);
}
/* A collective that a line of the timeline cuts says so at both ends, however narrow its name
 * leaves them: its name stands clear of the heads. */
static void cut_collectives_go_on(void **state) {
    (void)state;
    Arena *a = arena_new();
    const PlanRun r = shipped(a, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                              &(PipelineOptions){.events = true});
    RenderOptions o = view("timeline");
    Scene *page[32];
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
    const Scene *s = page[0];
    int heads = 0, named = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->group < 0 || strcmp(s->groups[m->group].what, "collective")) continue;
        heads += m->kind == MARK_POLY && m->n == 3;
        if (m->kind != MARK_TEXT || strcmp(m->run[0].s, "AR dw2")) continue;
        named++;
        for (int k = 0; k < s->n_marks; k++) {
            const Mark *h = &s->marks[k];
            if (h->group != m->group || h->kind != MARK_POLY || h->n != 3) continue;
            const Box text = scene_box(m), head = scene_box(h);
            assert_true(text.x0 >= head.x1 + 2 || head.x0 >= text.x1 + 2);
        }
    }
    assert_int_equal(named, 1); /* its other end has no room for both: there its name is below */
    assert_int_equal(heads, 4); /* AR dw2 and AR d norm, out of one line and into the next */
    arena_free(a);
}

/* Each slide of the shards is called what stands on it, and says whose: the weights, a product, the
 * values of the sections that it has, attention. */
static void slides_of_shards_say_what_they_show(void **state) {
    (void)state;
    static const struct {
        const char *plan, *titles[4];
    } row[] = {{"plans/01-column-row-mlp.yaml",
                {"Rank 0 holds ", "Rank 0 · up: Column parallel", "Rank 0 · down: Row parallel",
                 "Rank 0 · Inputs and activations"}},
               {"plans/08-llama3-8b-cp4-zigzag.yaml",
                {"Rank 0 holds ", "Rank 0 · Inputs and activations",
                 "Rank 0 · its part of causal attention"}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        size_t n;
        Diags *d = diags_new(a);
        const char *text = file_read(a, d, row[i].plan, 1 << 20, (Loc){0}, &n);
        assert_non_null(text);
        PlanRun r = plan_run_with(a, row[i].plan, text, &(PipelineOptions){0});
        assert_non_null(r.t);
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = view("shards");
        o.preset = "slide";
        int pages = render_pages(r.t, r.d, &o, a, page);
        for (int k = 0; k < 4 && row[i].titles[k]; k++) {
            assert_true(k < pages);
            says(page[k]->title, row[i].titles[k]);
        }
        arena_free(a);
    }
}

/* The bars of a page that mark a right step on wrong inputs; fails where a word of their cell is
 * nearer than 2 px. */
static int free_bars(const Scene *s, const char *preset) {
    int bars = 0;
    for (int b = 0; b < s->n_marks; b++) {
        const Mark *bar = &s->marks[b];
        if (bar->kind != MARK_RECT || bar->fill != ROLE_WRONG_LATER || bar->w > 5) continue;
        bars++;
        for (int k = b + 1; k < s->n_marks; k++) {
            const Mark *m = &s->marks[k];
            double left = m->x - (m->align == ALIGN_MIDDLE ? m->w / 2 : 0);
            if (m->kind == MARK_TEXT && m->y > bar->y && m->y < bar->y + bar->h + 1 &&
                left < bar->x + bar->w + 2 && left + m->w > bar->x)
                fail_msg("%s: '%s' touches a bar", preset, m->run[0].s);
        }
    }
    return bars;
}

static PlanRun planned_file(Arena *a, const char *file) {
    size_t n;
    const char *text = file_read(a, diags_new(a), file, 1 << 20, (Loc){0}, &n);
    assert_non_null(text);
    PlanRun r = plan_run_with(a, file, text, &(PipelineOptions){0});
    assert_non_null(r.t);
    return r;
}
static int texts_with(const Scene *s, const char *part) {
    int n = 0;
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; s->marks[i].kind == MARK_TEXT && k < s->marks[i].n_run; k++)
            n += strstr(s->marks[i].run[k].s, part) != NULL;
    return n;
}

/* The slides of weights are filled: matrices take a good part of the area of the page and reach
 * down it, and no letter is smaller than 12 units of 960. */
static void weights_fill_their_slides(void **state) {
    (void)state;
    static const struct {
        const char *plan;
        int pages;           /* of weights */
        double ink, tallest; /* of a page, at least: area of all matrices, height of one */
    } row[] = {{"plans/01-column-row-mlp.yaml", 1, 0.25, 0.6},
               {"plans/09-llama3-8b-dp2-cp2-tp2.yaml", 1, 0.12, 0.5},
               {"plans/18-llama3-8b-backward.yaml", 1, 0.065, 0.32},
               {"plans/20-llama3-8b-fsdp-tp.yaml", 1, 0.06, 0.29},
               {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", 2, 0.1, 0.48},
               {"plans/30-mixtral-8x7b-ep-dp-cp.yaml", 1, 0.1, 0.5},
               {"plans/41-llama3-8b-ring4-zigzag.yaml", 1, 0.13, 0.46},
               {"plans/54-deepseek-v3-latent-ring4.yaml", 1, 0.035, 0.55}};
    if (access("plans", F_OK) != 0) skip();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = planned_file(a, row[i].plan);
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = view("shards");
        o.preset = "slide";
        assert_true(render_pages(r.t, r.d, &o, a, page) >= row[i].pages);
        for (int k = 0; k < row[i].pages; k++) {
            double ink = 0, tallest = 0;
            for (int m = 0; m < page[k]->n_marks; m++) {
                const Mark *x = &page[k]->marks[m];
                if (x->kind == MARK_TEXT) assert_true(x->size * page[k]->scale >= 12 - 1e-9);
                if (x->kind != MARK_RECT || x->stroke != ROLE_WEIGHT_LINE || x->ground) continue;
                ink += x->w * x->h, tallest = fmax(tallest, x->h);
            }
            ink /= page[k]->page_w * page[k]->page_h, tallest /= page[k]->page_h;
            if (ink < row[i].ink || tallest < row[i].tallest)
                fail_msg("%s: matrices take %.3f of slide %d, the tallest %.3f of its height",
                         row[i].plan, ink, k + 1, tallest);
        }
        arena_free(a);
    }
}
/* No two slides of shards are called alike: values of one section on several say which they are. On
 * a page each move of a value stands between two, though what one makes another may take. */
static void values_of_shards_are_told_apart(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = planned_file(a, "plans/30-mixtral-8x7b-ep-dp-cp.yaml");
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = view("shards");
    o.preset = "slide";
    int pages = render_pages(r.t, r.d, &o, a, page), parts = 0;
    assert_true(pages > 4);
    for (int i = 0; i < pages; i++) {
        for (int k = 0; k < i; k++) assert_string_not_equal(page[i]->title, page[k]->title);
        parts += strstr(page[i]->title, "Inputs and activations: ") != NULL;
    }
    assert_true(parts > 1);
    o.preset = NULL;
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
    assert_int_equal(texts_with(page[0], "over ep"), 3);
    assert_int_equal(texts_with(page[0], "after AllGather"), 0);
    arena_free(a);
}
/* A slide with room under a product shows what of it each rank has. */
static void slides_of_products_show_all_ranks(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = planned_file(a, "plans/01-column-row-mlp.yaml");
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = view("shards");
    o.preset = "slide";
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 4);
    for (int k = 0; k < 4; k++)
        assert_int_equal(texts_with(page[1], arena_printf(a, "rank %d", k)), 1);
    assert_int_equal(texts_with(page[1], "[10, 512] · [512, 512] → [10, 512]"), 5);
    arena_free(a);
}

/* Boxes of an overview say what they hold all in the same words; weights that backward gathers once
 * more are told. */
static void boxes_of_an_overview_are_alike(void **state) {
    (void)state;
    static const char *const presets[] = {"wide", "column", "slide", "a4"};
    static const struct {
        const char *plan;
        bool again;
    } row[] = {{"plans/20-llama3-8b-fsdp-tp.yaml", true},
               {"plans/30-mixtral-8x7b-ep-dp-cp.yaml", false}};
    for (size_t i = 0; i < 8; i++) {
        Arena *a = arena_new();
        PlanRun r = planned_file(a, row[i / 4].plan);
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = view("overview");
        o.preset = presets[i % 4];
        assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
        int with = 0, without = 0;
        for (int k = 0; k < page[0]->n_marks; k++) {
            const Mark *m = &page[0]->marks[k];
            bool box = m->kind == MARK_TEXT && m->group >= 0 &&
                       !strncmp(page[0]->groups[m->group].id, "part-", 5);
            if (!box || !strstr(m->run[0].s, "B")) continue;
            if (strstr(m->run[0].s, " of weights")) with++;
            else without += m->run[0].weight == REGULAR;
        }
        if (!(with + without) || (with && without))
            fail_msg("%s, %s: %d say that they are weights, %d do not", row[i / 4].plan, o.preset,
                     with, without);
        assert_int_equal(texts_with(page[0], "again for backward"), row[i / 4].again);
        arena_free(a);
    }
}

/* A group over several rows of a mesh is joined in the order of a ring: from the last of a row to
 * the first of the next. */
static void rows_of_a_group_are_joined_in_order(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = planned_file(a, "plans/11-llama3-70b-tp16.yaml");
    RenderOptions o = view("mesh");
    Scene *page[VIEW_MAX_PAGES];
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
    int back = 0, down = 0;
    for (int i = 0; i < page[0]->n_marks; i++) {
        const Mark *m = &page[0]->marks[i];
        if (m->kind != MARK_LINE || m->n < 2 || m->pt[m->n - 1].y <= m->pt[0].y) continue;
        back += m->pt[m->n - 1].x < m->pt[0].x;
        down += m->pt[m->n - 1].x == m->pt[0].x;
    }
    assert_int_equal(back, 1);
    assert_int_equal(down, 0);
    arena_free(a);
}

/* No word of a cell lies on the bar that marks a right step on wrong inputs, however narrow the
 * cells of a preset are, nor in the legend. */
static void bars_of_errors_are_free(void **state) {
    (void)state;
    static const char *const presets[] = {"wide", "column", "slide", "a4"};
    static const char plan[] =
        "model: {preset: llama3-8b, layers: 1, shrink: 32}\n"
        "data: {batch: 1, sequence: 32, dtype: f32, block_input: shard(2)}\n"
        "mesh: {tp: 4}\nnames: torchtitan\nplan:\n"
        "  layers.*.attention_norm: {style: prepare_module_input, input: [shard(2)], "
        "desired_input: [replicate], use_local_output: true}\n"
        "  layers.*.attention.w[qkv]: colwise\n"
        "  layers.*.attention.wo: {style: rowwise, output: shard(2)}\n"
        "  layers.*.ffn_norm: {style: prepare_module_input, input: [shard(2)], "
        "desired_input: [replicate], use_local_output: true}\n"
        "  layers.*.feed_forward.w[13]: colwise\n"
        "  layers.*.feed_forward.w2: {style: rowwise, output: shard(2)}\n%s";
    Arena *a = arena_new();
    PipelineOptions how = {.execute = true, .numbers = true, .threads = 1};
    static const char fault[] = "faults: [{at: all_gather of layers.0.input, do: drop}]\n";
    PlanRun r = plan_run_with(a, "norm.yaml", arena_printf(a, plan, fault), &how),
            right = plan_run_with(a, "norm.yaml", arena_printf(a, plan, ""), &how);
    assert_true(r.t && right.t);
    int bars = 0;
    for (int i = 0; i < 8; i++) {
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = view("errors");
        o.preset = presets[i / 2];
        if (i % 2) o.beside = right.t;
        int pages = render_pages(r.t, r.d, &o, a, page);
        assert_true(pages > 0);
        bars += free_bars(page[0], presets[i / 2]);
    }
    if (access("plans/bugs", F_OK) == 0) { /* three narrow ranks, one of which has numbers alone */
        static const char file[] = "plans/bugs/81-last-experts-on-no-rank.yaml";
        PlanRun wrong = shipped(a, file, &how);
        how.sound = true;
        PlanRun sound = shipped(a, file, &how);
        RenderOptions o = view("errors");
        Scene *page[VIEW_MAX_PAGES];
        o.preset = "column", o.beside = sound.t, o.beside_planted = true;
        assert_true(render_pages(wrong.t, wrong.d, &o, a, page) > 0);
        bars += free_bars(page[0], o.preset);
        says_not(words_of(a, wrong.t, o), "mista…");
    }
    assert_true(bars > 20);
    arena_free(a);
}

/* A slide says its page at the top and nothing of options, which only who draws it knows. */
static void slides_name_no_options(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run_with(a, "train.yaml", train, &(PipelineOptions){0});
    RenderOptions o = view("block");
    o.preset = "slide";
    o.pass = "forward";
    for (o.page = 1; o.page <= 2; o.page++) {
        const char *w = words_of(a, r.t, o);
        says(w, arena_printf(a, "page %d of ", (int)o.page));
        says_not(w, "(--");
    }
    arena_free(a);
}

/* What the same model would take under DDP and ZeRO is what plans that say so take: parameters and
 * AdamW's state, byte for byte, and the picture has the four rows. */
static void ways_are_what_plans_take(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        int way;
    } row[] = {{"", 0},
               {"data_parallel: {mode: zero2, form: megatron}\n", 2},
               {"data_parallel: {mode: fsdp, axis: dp}\n", 3}};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 1, shrink: 32, parts: [embedding, blocks, norm, "
            "head, loss]}\ndata: {batch: 4, sequence: 16, dtype: f32}\nmesh: {dp: 4}\n"
            "names: torchtitan\npass: train\noptimizer: {name: adamw, lr: 0.01}\n%s",
            row[i].mode);
        PlanRun r = plan_run_with(a, "ways.yaml", text, &(PipelineOptions){.events = true});
        MemClass *c;
        MemWay way[MEM_WAYS];
        if (!r.t) run_print(&r);
        assert_non_null(r.t);
        assert_true(memory_classes(a, r.t, &c) > 0);
        assert_int_equal(memory_ways(a, r.t, c, way), MEM_WAYS);
        const int64_t *want = c->bytes, *got = way[row[i].way].held.bytes;
        assert_int_equal(got[MEM_PARAMS], want[MEM_PARAMS]);
        assert_int_equal(got[MEM_OPTIMIZER], want[MEM_OPTIMIZER]);
        assert_int_equal(way[0].held.bytes[MEM_GRADS], way[0].held.bytes[MEM_PARAMS]);
        assert_int_equal(4 * way[2].held.bytes[MEM_GRADS], way[0].held.bytes[MEM_GRADS]);
        const char *w = words_of(a, r.t, view("memory"));
        says(w, "\nDDP\neverything on every rank\n");
        says(w, "\nZeRO-1\nstate over dp, 4 ranks\n");
        says(w, "(4/4 + 4/4 + 8/4) B × ");
    }
    PlanRun r = plan_run_with(a, "one.yaml",
                              "model: {preset: llama3-8b, layers: 1, shrink: 32}\nmesh: {tp: 2}\n"
                              "data: {batch: 1, sequence: 16, dtype: f32}\nrecipe: hf-llama\n",
                              &(PipelineOptions){.events = true});
    says_not(words_of(a, r.t, view("memory")), "ZeRO-1"); /* nothing to cut */
    if (access("plans", F_OK) != 0) skip();
    size_t n; /* sums over tp of the gradients of norms alone are no data parallelism */
    const char *tp = "plans/18-llama3-8b-backward.yaml";
    const char *text = file_read(a, diags_new(a), tp, 1 << 20, (Loc){0}, &n);
    r = plan_run_with(a, tp, text, &(PipelineOptions){.events = true});
    says_not(words_of(a, r.t, view("memory")), "ZeRO-1");
    arena_free(a);
}

static int64_t int_at(const Json *o, const char *key) {
    const Json *v = json_get(o, key);
    if (!v || v->kind != JSON_INT) fail_msg("no number '%s'", key);
    return v->i;
}
/* DDP and ZeRO keep gradients all the time: their peak is the most that the course has beside
 * gradients, which need not be the plan's own. Recomputed from what the JSON says of each step. */
static void ways_peak_where_activations_do(void **state) {
    (void)state;
    static const char *const passes[] = {"backward", "train\noptimizer: {name: adamw, lr: 0.01}"};
    static const char *const modes[] = {"", "data_parallel: {mode: fsdp, axis: dp, unit: block}\n"};
    Arena *a = arena_new();
    int elsewhere = 0, apart = 0;
    for (int i = 0; i < 4; i++) {
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 2, shrink: 32, parts: [embedding, blocks, norm, "
            "head, loss]}\ndata: {batch: 2, sequence: 16, dtype: f32}\nmesh: {dp: 2}\n"
            "names: torchtitan\npass: %s\n%s",
            passes[i / 2], modes[i % 2]);
        PlanRun r = plan_run_with(a, "peak.yaml", text, &(PipelineOptions){.events = true});
        RenderOptions o = view("memory");
        const char *error;
        size_t n;
        int line, col;
        assert_non_null(r.t);
        const char *out = render_text(r.t, r.d, &o, FORMAT_JSON, a, &n);
        Json *figure = json_parse(a, out, n, &error, &line, &col);
        const Json *course = json_get(figure, "course"), *steps = json_get(course, "steps"),
                   *ways = json_get(figure, "ways");
        assert_true(steps && steps->n && ways && ways->n == MEM_WAYS);
        int64_t most = 0, step = 0, both = 0, last = 0, then = 0;
        for (int k = 0; k < steps->n; k++) {
            const int64_t live =
                int_at(steps->item[k], "live") - int_at(steps->item[k], "gradients");
            const int64_t with = live + int_at(steps->item[k], "gathered");
            if (live > most) most = live, step = int_at(steps->item[k], "step");
            if (with > both) both = with, last = int_at(steps->item[k], "step"), then = live;
        }
        elsewhere += step != int_at(course, "peak");
        for (int k = 0; k < ways->n; k++) {
            const Json *parts = json_get(ways->item[k], "parts");
            int64_t sum = 0;
            for (int q = 0; q < parts->n; q++) sum += parts->value[q]->i;
            const bool gathers = k == MEM_WAYS - 1 && i % 2; /* ZeRO-3 beside a plan with FSDP */
            assert_int_equal(int_at(parts, "activations"), gathers ? then : most);
            assert_int_equal(int_at(ways->item[k], "step"), gathers ? last : step);
            assert_int_equal(int_at(parts, "gathered"), gathers ? both - then : 0);
            assert_int_equal(int_at(ways->item[k], "bytes"), sum);
        }
        const char *w = words_of(a, r.t, o);
        says(w, arena_printf(a, "each + %s of live values at step %lld", bytes_text(most, a),
                             (long long)step));
        if (i % 2 == 0 || last == step) continue;
        apart++; /* ZeRO-3 then has what is there at its own step */
        says(w,
             arena_printf(a, ", ZeRO-3 + %s at step %lld\n", bytes_text(then, a), (long long)last));
        says(w,
             arena_printf(a, "as the plan does, and has its peak at step %lld", (long long)last));
    }
    assert_true(apart > 0);
    assert_true(elsewhere > 0); /* else the plan's own peak would do as well */
    arena_free(a);
}

/* What ZeRO-3 has at rest beside a plan with FSDP is what the plan has, also where experts have
 * fewer ranks to be cut over than other weights. */
static void zero_3_rests_as_fsdp(void **state) {
    (void)state;
    static const char *const path[] = {
        "plans/19-llama3-8b-fsdp4.yaml", "plans/20-llama3-8b-fsdp-tp.yaml",
        "plans/33-qwen3-30b-a3b-ep.yaml", "plans/37-qwen3-30b-a3b-ep-etp.yaml"};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        Arena *a = arena_new();
        size_t size;
        const char *text = file_read(a, diags_new(a), path[i], 1 << 20, (Loc){0}, &size);
        const Trace *t = plan_run_with(a, path[i], text, &(PipelineOptions){0}).t;
        assert_non_null(t);
        MemWay way[MEM_WAYS];
        int64_t rest = 0;
        for (int k = 0; k < t->n_params; k++) {
            const TraceLocal *l = words_find_local(&t->params[k].rest, 0);
            rest += l ? l->bytes : 0;
        }
        assert_int_equal(memory_ways(a, t, &(MemClass){.rank = 0}, way), MEM_WAYS);
        assert_int_equal(way[MEM_WAYS - 1].held.bytes[MEM_PARAMS], rest);
        assert_int_equal(*way[0].experts != 0, i > 1);
        arena_free(a);
    }
}

/* A timeline's moves speak of what its boxes are called: what a module gives, the gradient of that,
 * and of its weight. */
static void test_moved_words(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run_with(a, "moved.yaml",
                              "model: {preset: llama3-8b, layers: 1, shrink: 32}\n"
                              "data: {batch: 2, sequence: 16}\nmesh: {dp: 2, tp: 2}\n"
                              "names: torchtitan\npass: backward\nrecipe: torchtitan-llama3\n"
                              "hardware: h100-sxm\n",
                              &(PipelineOptions){.events = true});
    assert_non_null(r.t);
    RenderOptions o = {.view = "timeline", .rank = -1, .layer = -1};
    size_t n;
    const char *rows = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
    static const char *const moved[] = {
        "AG after attention_norm ", "RS after wo ", "RS after w2 ",        "AG dy wo ",
        "RS dy attention_norm ",    "AR dwo ",      "AR d attention_norm "};
    for (size_t k = 0; k < sizeof moved / sizeof *moved; k++)
        if (!strstr(rows, moved[k])) fail_msg("no %s in\n%s", moved[k], rows);
    /* boxes too narrow for their names: both gradients of three matrices have one label */
    says(svg_words(a, render_text(r.t, r.d, &o, FORMAT_SVG, a, &n)), "dx, dw: wv, wk, wq");
    arena_free(a);
}
/* What a kernel is filled with follows from what it does: products with weights and attention are
 * light however few tokens they have, and experts' weights wait for memory. */
static void kernels_have_one_ink(void **state) {
    (void)state;
    static const char *const plans[] = {
        "model: {preset: llama4-scout, layers: 1, shrink: 16}\n"
        "data: {batch: 1, sequence: 16}\nmesh: {tp: 2}\nnames: torchtitan\n",
        "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, blocks, norm, head, "
        "loss]}\ndata: {batch: 1, sequence: 2}\nmesh: {tp: 2}\nnames: torchtitan\n"};
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a, "%spass: backward\nrecipe: torchtitan-%s\nhardware: h100-sxm\n",
                         plans[k], k ? "llama3" : "llama4");
        PlanRun r = plan_run_with(a, "ink.yaml", text, &(PipelineOptions){.events = true});
        Scene *page[32];
        RenderOptions o = view("timeline");
        assert_non_null(r.t);
        assert_true(render_pages(r.t, r.d, &o, a, page) > 0);
        int seen[2] = {0};
        for (int i = 0; i < page[0]->n_marks; i++) {
            const Mark *m = &page[0]->marks[i];
            const Group *g = m->group >= 0 ? &page[0]->groups[m->group] : NULL;
            if (m->kind != MARK_RECT || !g || strcmp(g->what, "compute") || m->fill == ROLE_NONE)
                continue;
            int step = atoi(g->id + strlen("event-"));
            for (int c = 0; c < r.t->n_computes; c++) {
                const TraceCompute *x = &r.t->computes[c];
                if (x->step != step) continue;
                bool matrix = x->makes.role == OF_PARAM_GRADIENT;
                for (int j = 0; j < x->n_inputs; j++) {
                    const TraceParam *p = trace_param(r.t, x->inputs[j]);
                    matrix |= p && p->compute.nd >= 2;
                }
                matrix &= !strncmp(x->op, "linear", 6);
                if ((m->fill == ROLE_COMPUTE_DARK) == (matrix || x->attends))
                    fail_msg("%s (%s) is %s", x->output, x->op, matrix ? "dark" : "light");
                seen[matrix]++;
            }
        }
        assert_true(seen[0] > 10 && seen[1] > 15);
        arena_free(a);
    }
}
/* A collective is said to be hidden behind compute where the rank computes while it sends, and
 * behind other communication where compute stands still for that: in its tooltip, by its ink and
 * in the legend. */
static void hidden_is_behind_compute(void **state) {
    (void)state;
    static const char *const plans[] = {"plans/30-mixtral-8x7b-ep-dp-cp.yaml",
                                        "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml"};
    int seen[4] = {0};
    if (access("plans", F_OK) != 0) skip();
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
        Arena *a = arena_new();
        size_t size;
        const char *text = file_read(a, diags_new(a), plans[k], 1 << 20, (Loc){0}, &size);
        PlanRun r = plan_run_with(a, plans[k], text, &(PipelineOptions){.events = true});
        Scene *page[32];
        RenderOptions o = view("timeline");
        assert_true(render_pages(r.t, r.d, &o, a, page) > 0);
        for (int g = 0; g < page[0]->n_groups; g++) {
            const Group *x = &page[0]->groups[g];
            if (strcmp(x->what, "collective")) continue;
            for (int i = 0; i < r.t->n_events; i++) {
                const TraceEvent *e = &r.t->events[i];
                double both = 0, took = e->end - e->start - e->wait;
                if (e->step != atoi(x->id + strlen("event-"))) continue;
                for (int c = 0; c < r.t->n_events; c++) {
                    const TraceEvent *f = &r.t->events[c];
                    if (trace_is_compute(f))
                        both += fmax(0, fmin(f->end, e->end) - fmax(f->start, e->start + e->wait));
                }
                bool hidden = both > 0, beside = took - e->exposed - both > 1e-9 * took;
                if (!strstr(x->tip, "hidden behind compute") == hidden ||
                    !strstr(x->tip, "behind other communication") == beside)
                    fail_msg("of %g s %g while it computes, %g exposed: %s", took, both, e->exposed,
                             x->tip);
                seen[2 * hidden + beside]++;
            }
        }
        says(words_of(a, r.t, o), "communication behind other communication");
        arena_free(a);
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
}
/* A name in a collective clears the hatch behind it, and gives what is hidden no ink of what is
 * waited for. */
static void names_keep_the_ink(void **state) {
    (void)state;
    static const char *const plans[] = {"plans/20-llama3-8b-fsdp-tp.yaml",
                                        "plans/34-llama4-scout-torchtitan.yaml"};
    int seen = 0;
    if (access("plans", F_OK) != 0) skip();
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
        Arena *a = arena_new();
        size_t size;
        const char *text = file_read(a, diags_new(a), plans[k], 1 << 20, (Loc){0}, &size);
        PlanRun r = plan_run_with(a, plans[k], text, &(PipelineOptions){.events = true});
        Scene *page[32];
        RenderOptions o = view("timeline");
        assert_true(render_pages(r.t, r.d, &o, a, page) > 0);
        const Scene *s = page[0];
        for (int g = 0; g < s->n_groups; g++) {
            double hatch = -1;
            for (int i = 0; i < s->n_marks; i++)
                if (s->marks[i].group == g && s->marks[i].kind == MARK_HATCH) hatch = s->marks[i].x;
            for (int i = 0; hatch >= 0 && i < s->n_marks; i++) {
                const Mark *m = &s->marks[i];
                if (m->group != g || m->kind != MARK_RECT || m->fill != ROLE_COLL) continue;
                bool first = i == 0 || s->marks[i - 1].group != g; /* all of it is waited for */
                if (!first && m->x < hatch - 0.01)
                    fail_msg("%s: ink from %g, hatch from %g", s->groups[g].id, m->x, hatch);
                seen++;
            }
        }
        arena_free(a);
    }
    assert_true(seen > 20);
}
/* What is gathered for a whole layer stands in an overview at one of its parts: it says whose it
 * is, as a timeline does. */
static void units_are_named(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    size_t n;
    const char *file = "plans/20-llama3-8b-fsdp-tp.yaml";
    const char *text = file_read(a, diags_new(a), file, 1 << 20, (Loc){0}, &n);
    PlanRun r = plan_run_with(a, file, text, &(PipelineOptions){.events = true});
    const char *w = words_of(a, r.t, view("overview"));
    says(w, "AllGather layer, 373 KiB");
    says(w, "ReduceScatter layer, 373 KiB");
    says(w, "AllGather root, 1.47 MiB");
    says(words_of(a, r.t, view("timeline")), "AG layer 1");
    arena_free(a);
}
/* Slides with matrices have a scale each, and say so. */
static void slides_have_their_scale(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Arena *a = arena_new();
    size_t n;
    const char *file = "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml";
    const char *text = file_read(a, diags_new(a), file, 1 << 20, (Loc){0}, &n);
    PlanRun r = plan_run_with(a, file, text, &(PipelineOptions){.events = true});
    RenderOptions o = view("shards");
    o.preset = "slide";
    for (o.page = 1; o.page <= 2; o.page++)
        says(words_of(a, r.t, o), "one scale on a page unless a matrix says another");
    arena_free(a);
}
/* What a block's figure says is kept for backward is what memory has alive when that begins: each
 * block that goes round a ring has a buffer of its own. */
static void kept_is_what_is_alive(void **state) {
    (void)state;
    static const char *const plans[] = {
        "plans/40-llama3-8b-ulysses4.yaml", "plans/41-llama3-8b-ring4-zigzag.yaml",
        "plans/42-llama3-8b-usp.yaml", "plans/54-deepseek-v3-latent-ring4.yaml"};
    if (access("plans", F_OK) != 0) skip();
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
        Arena *a = arena_new();
        size_t size;
        const char *text = file_read(a, diags_new(a), plans[k], 1 << 20, (Loc){0}, &size);
        PlanRun r = plan_run_with(a, plans[k], text, &(PipelineOptions){0});
        int first = INT32_MAX;
        for (int i = 0; i < r.t->n_computes; i++)
            if (r.t->computes[i].pass == PHASE_BACKWARD && r.t->computes[i].step < first)
                first = r.t->computes[i].step;
        int64_t kept = 0;
        for (int i = 0; i < r.t->n_values; i++) {
            const TraceValue *v = &r.t->values[i];
            bool forward = v->alive && v->alive->from < first && v->alive->until >= first &&
                           v->subject.role == OF_ITSELF && strcmp(v->subject.of, "loss") != 0;
            if (forward) kept += v->shape.local[0].bytes;
        }
        says(words_of(a, r.t, view("block")),
             arena_printf(a, "Kept for backward: %s in all.", bytes_text(kept, a)));
        arena_free(a);
    }
}
/* Does one of n texts of a page say the name? Of some that share words the first has its kind: "AR
 * max, sumexp". */
static bool page_says(Arena *a, Scene *const *page, int pages, const char *name) {
    const char *blank = strchr(name, ' '), *own = blank ? blank + 1 : name;
    for (int k = 0; k < pages; k++)
        for (int i = 0; i < page[k]->n_marks; i++) {
            const Mark *m = &page[k]->marks[i];
            const char *at = m->kind == MARK_TEXT && m->n_run ? strstr(m->run[0].s, own) : NULL;
            const char *kind = at ? arena_strndup(a, name, (size_t)(own - name)) : "";
            if (at && strstr(m->run[0].s, kind) && !strstr(m->run[0].s, ": 1 ")) return true;
        }
    return false;
}
/* "AR dwq" of the event of a step, as its tooltip has it; NULL: it is not drawn. */
static const char *event_name(Arena *a, Scene *const *page, int pages, int step) {
    const char *id = arena_printf(a, "event-%d", step), *end;
    for (int k = 0; k < pages; k++)
        for (int g = 0; g < page[k]->n_groups; g++) {
            const Group *x = &page[k]->groups[g];
            const char *name = !strcmp(x->id, id) ? strstr(x->tip, ": ") : NULL;
            if (name && (end = strchr(name, ',')))
                return arena_strndup(a, name + 2, (size_t)(end - name - 2));
        }
    return NULL;
}
/* Each collective of a timeline has its name at its bar, not a number there and the name in a list,
 * however narrow the bars are: in it, beside it, or at a leader. */
static void collectives_have_names(void **state) {
    (void)state;
    static const char *const plans[] = {
        "plans/18-llama3-8b-backward.yaml",      "plans/20-llama3-8b-fsdp-tp.yaml",
        "plans/30-mixtral-8x7b-ep-dp-cp.yaml",   "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
        "plans/34-llama4-scout-torchtitan.yaml", "plans/54-deepseek-v3-latent-ring4.yaml"};
    static const char *const preset[] = {"wide", "column", "slide"};
    if (access("plans", F_OK) != 0) skip();
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++)
        for (int whole = 0; whole < 2; whole++) {
            Arena *a = arena_new();
            size_t size;
            const char *text = file_read(a, diags_new(a), plans[k], 1 << 20, (Loc){0}, &size);
            const PlanSet set = {"model.shrink", "1"};
            const PlanText plan = {plans[k], text, size, &set, whole};
            PlanRun r = {.d = diags_new(a)};
            r.t = pipeline_run(a, r.d, plan, &(PipelineOptions){.events = true}, &r.rep);
            for (size_t i = 0; i < sizeof preset / sizeof *preset; i++) {
                Scene *page[32];
                RenderOptions o = view("timeline");
                o.preset = preset[i];
                const int pages = render_pages(r.t, r.d, &o, a, page);
                for (int e = 0; e < r.t->n_events; e++) {
                    const TraceEvent *x = &r.t->events[e];
                    const char *name = event_name(a, page, pages, x->step);
                    if (!trace_is_compute(x) && name && !page_says(a, page, pages, name))
                        fail_msg("%s%s, %s: %s has no name", plans[k], whole ? ", whole" : "",
                                 preset[i], name);
                }
            }
            arena_free(a);
        }
}
/* A lane has all the names that collectives call its group by; of what ends with no weight the
 * module is named: "output" is one. */
static void lanes_and_modules_have_names(void **state) {
    (void)state;
    static const struct {
        const char *plan, *says[2];
    } row[] = {{"plans/30-mixtral-8x7b-ep-dp-cp.yaml", {"\nep, dp·cp\n", "AG dispatched"}},
               {"plans/34-llama4-scout-torchtitan.yaml", {"RS after moe", "AG dy moe"}}};
    if (access("plans", F_OK) != 0) skip();
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        Arena *a = arena_new();
        size_t size;
        const char *text = file_read(a, diags_new(a), row[k].plan, 1 << 20, (Loc){0}, &size);
        PlanRun r = plan_run_with(a, row[k].plan, text, &(PipelineOptions){.events = true});
        RenderOptions o = view("timeline");
        const char *words = svg_words(a, render_text(r.t, r.d, &o, FORMAT_SVG, a, &size));
        for (int i = 0; i < 2; i++) says(words, row[k].says[i]);
        arena_free(a);
    }
}
/* The number that an SVG gives to what stands in several places, of the group whose tooltip says
 * that; 0: it has none. */
static int same_number(const char *svg, const char *tip) {
    static const char attr[] = "data-same=\"";
    const char *at = strstr(svg, tip), *group = NULL;
    for (const char *g = strstr(svg, "<g id="); at && g && g < at; g = strstr(g + 1, "<g id="))
        group = g;
    const char *own = group ? strstr(group, attr) : NULL;
    return own && own < at ? atoi(own + strlen(attr)) : 0;
}
/* The pointer over one of the places of a thing, or a click there, shows the others: by rules of
 * the style sheet, without a script. */
static void same_things_show_each_other(void **state) {
    (void)state;
    static const struct {
        const char *plan, *view, *tip[2]; /* of two places of one thing */
    } row[] = {
        {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "timeline", {": w2,", ": AR dw2,"}},
        {"plans/45-llama3-8b-pp4-1f1b.yaml",
         "pipeline",
         {"forward of micro-batch 3 on stage 0", "backward of micro-batch 3 on stage 2"}},
        {"plans/18-llama3-8b-backward.yaml", "storyboard", {"; in its place", "; just arrived"}},
        {"plans/18-llama3-8b-backward.yaml",
         "block",
         {"makes layers.0.mlp.down", "<title>grad.param.layers.0.feed_forward.w2.weight"}}};
    if (access("plans", F_OK) != 0) skip();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = shipped(a, row[i].plan, &(PipelineOptions){.execute = true, .events = true});
        RenderOptions o = view(row[i].view);
        size_t n;
        const char *svg = render_text(r.t, r.d, &o, FORMAT_SVG, a, &n);
        const int number = same_number(svg, row[i].tip[0]);
        if (!number) fail_msg("%s: %s has no other place", row[i].view, row[i].tip[0]);
        if (number != same_number(svg, row[i].tip[1]))
            fail_msg("%s: %s is not %s", row[i].view, row[i].tip[1], row[i].tip[0]);
        says(svg, arena_printf(a, ":has([data-same=\"%d\"]:is(:hover,:focus)) [data-same=\"%d\"]",
                               number, number));
        says_not(svg, "<script");
        arena_free(a);
    }
}
/* A model is called as its makers call it. */
static void models_have_their_names(void **state) {
    (void)state;
    static const char *const row[][2] = {
        {"llama2-7b", "Llama-2-7B"},       {"llama3.1-405b", "Llama-3.1-405B"},
        {"llama4-scout", "Llama-4-Scout"}, {"mistral-7b-v0.3", "Mistral-7B-v0.3"},
        {"qwen3-0.6b", "Qwen3-0.6B"},      {"qwen3-235b-a22b", "Qwen3-235B-A22B"},
        {"mixtral-8x7b", "Mixtral-8x7B"},  {"deepseek-v3", "DeepSeek-V3"},
        {"gpt-oss-20b", "gpt-oss-20b"},    {"mlp", "mlp"}};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Trace t = {.model_name = row[i][0]};
        assert_string_equal(words_model(a, &t), row[i][1]);
    }
    arena_free(a);
}
/* What a figure says in sentences ends with a period. */
static void sentences_end(void **state) {
    (void)state;
    static const char *const plan[] = {
        "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "plans/30-mixtral-8x7b-ep-dp-cp.yaml",
        "plans/45-llama3-8b-pp4-1f1b.yaml", "plans/52-llama3-8b-pp4-dualpipe.yaml",
        "plans/54-deepseek-v3-latent-ring4.yaml"};
    if (access("plans", F_OK) != 0) skip();
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
        Arena *a = arena_new();
        PlanRun r = shipped(a, plan[i], &(PipelineOptions){.execute = true, .events = true});
        int views;
        const RenderView *all = render_views(&views);
        for (int k = 0; k < views; k++) {
            Scene *page[VIEW_MAX_PAGES];
            RenderOptions o = view(all[k].name);
            int n = render_pages(r.t, diags_new(a), &o, a, page);
            for (int p = 0; p < n; p++) {
                const char *said = page[p]->desc;
                if (!said || !*said || said[strlen(said) - 1] != '.')
                    fail_msg("%s, %s, page %d: '%s'", plan[i], o.view, p + 1, said ? said : "");
            }
        }
        arena_free(a);
    }
}
static int clean_up(void **state) {
    (void)state;
    render_cleanup();
    return 0;
}
static const struct CMUnitTest tests[] = {cmocka_unit_test(test_moved_words),
                                          cmocka_unit_test(sentences_end),
                                          cmocka_unit_test(models_have_their_names),
                                          cmocka_unit_test(same_things_show_each_other),
                                          cmocka_unit_test(collectives_have_names),
                                          cmocka_unit_test(lanes_and_modules_have_names),
                                          cmocka_unit_test(kept_is_what_is_alive),
                                          cmocka_unit_test(names_keep_the_ink),
                                          cmocka_unit_test(slides_have_their_scale),
                                          cmocka_unit_test(units_are_named),
                                          cmocka_unit_test(hidden_is_behind_compute),
                                          cmocka_unit_test(kernels_have_one_ink),
                                          cmocka_unit_test(no_sentence_is_cut),
                                          cmocka_unit_test(no_verdict_is_cut),
                                          cmocka_unit_test(print_needs_no_colour),
                                          cmocka_unit_test(silence_is_in_the_stamp),
                                          cmocka_unit_test(values_alive_have_tooltips),
                                          cmocka_unit_test(tooltips_say_inferred),
                                          cmocka_unit_test(sums_of_products_have_states),
                                          cmocka_unit_test(hatches_are_seen),
                                          cmocka_unit_test(errors_say_end_to_end),
                                          cmocka_unit_test(ranks_stand_in_nodes),
                                          cmocka_unit_test(mistakes_of_the_optimizer_have_words),
                                          cmocka_unit_test(the_optimizer_has_words),
                                          cmocka_unit_test(labels_that_lie_are_red),
                                          cmocka_unit_test(a_wrong_plan_is_called_so),
                                          cmocka_unit_test(rows_tell_before_from_after),
                                          cmocka_unit_test(before_and_after_are_a_line),
                                          cmocka_unit_test(bands_and_brackets_have_tooltips),
                                          cmocka_unit_test(shards_call_values_as_block_does),
                                          cmocka_unit_test(both_sides_are_what_is_moved),
                                          cmocka_unit_test(shards_can_be_taken_in),
                                          cmocka_unit_test(one_number_is_rounded_once),
                                          cmocka_unit_test(whole_matrices_of_integers),
                                          cmocka_unit_test(what_does_not_fit_is_the_title),
                                          cmocka_unit_test(two_plans_have_one_scale),
                                          cmocka_unit_test(two_plans_show_their_difference),
                                          cmocka_unit_test(lines_say_again),
                                          cmocka_unit_test(unlike_blocks_face_each_other),
                                          cmocka_unit_test(frames_of_a_ring),
                                          cmocka_unit_test(two_plans_are_named),
                                          cmocka_unit_test(shards_of_two_plans_face),
                                          cmocka_unit_test(bodies_of_two_plans_are_level),
                                          cmocka_unit_test(parts_of_unlike_plans_face),
                                          cmocka_unit_test(updated_weights_are_sent),
                                          cmocka_unit_test(update_has_its_arrow_on_a_slide),
                                          cmocka_unit_test(equal_weights_share_a_row),
                                          cmocka_unit_test(one_rank_moves_nothing),
                                          cmocka_unit_test(bars_stand_behind_the_keys),
                                          cmocka_unit_test(texts_of_two_plans_face),
                                          cmocka_unit_test(shards_show_the_ring),
                                          cmocka_unit_test(experts_stand_one_by_one),
                                          cmocka_unit_test(mask_of_a_ring_counts_hops),
                                          cmocka_unit_test(rings_of_a_plan_are_counted),
                                          cmocka_unit_test(cut_collectives_go_on),
                                          cmocka_unit_test(ways_are_what_plans_take),
                                          cmocka_unit_test(ways_peak_where_activations_do),
                                          cmocka_unit_test(zero_3_rests_as_fsdp),
                                          cmocka_unit_test(slides_name_no_options),
                                          cmocka_unit_test(slides_of_shards_say_what_they_show),
                                          cmocka_unit_test(weights_fill_their_slides),
                                          cmocka_unit_test(values_of_shards_are_told_apart),
                                          cmocka_unit_test(boxes_of_an_overview_are_alike),
                                          cmocka_unit_test(slides_of_products_show_all_ranks),
                                          cmocka_unit_test(rows_of_a_group_are_joined_in_order),
                                          cmocka_unit_test(bars_of_errors_are_free),
                                          cmocka_unit_test(backward_units_have_names),
                                          cmocka_unit_test(columns_name_collectives),
                                          cmocka_unit_test(narrow_columns_have_codes),
                                          cmocka_unit_test(the_legend_tells_groups_and_messages),
                                          cmocka_unit_test(wrong_sums_show_their_terms),
                                          cmocka_unit_test(values_are_called_by_modules),
                                          cmocka_unit_test(timelines_face_each_other)};

int main(void) { return cmocka_run_group_tests(tests, NULL, clean_up); }
