/* View `roofline`: its numbers against formulas of the test's own, from sizes and the profile; no
 * mark above a roof; what it says of time against the timeline's; the same picture from a file, and
 * what is said of a trace that lacks what times are made from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"
#include "render/render.h"
#include "render/roofline/roofline.h"
#include "support/records.h"
#include "support/support.h"
#include <math.h>
#include <string.h>

/* The roofline of a trace, for the rank (-1: the one that a timeline tells of). */
static bool read_roof(Roofline *r, Arena *a, const Trace *t, int64_t rank, Diags *d) {
    RenderOptions *o = ARENA_NEW(a, RenderOptions);
    ViewCall *c = ARENA_NEW(a, ViewCall);
    *o = (RenderOptions){.view = "roofline", .rank = rank, .layer = -1};
    *c = (ViewCall){.t = t, .all = t, .d = d, .o = o, .arena = a};
    return roofline_read(r, c);
}
static const RoofKernel *kernel(const Roofline *r, const char *name) {
    for (int i = 0; i < r->n_kernels; i++)
        if (!strcmp(r->kernel[i].name, name)) return &r->kernel[i];
    fail_msg("no kernel %s", name);
    return NULL;
}
static const RoofColl *coll(const Roofline *r, const char *name) {
    for (int i = 0; i < r->n_colls; i++)
        if (!strcmp(r->coll[i].name, name)) return &r->coll[i];
    fail_msg("no collective %s", name);
    return NULL;
}
static void near(const char *what, double got, double want) {
    if (fabs(got - want) > 1e-6 * fabs(want)) fail_msg("%s: %.9g, not %.9g", what, got, want);
}

/* A Llama-3-8B block, tp=4 with sequence parallel, bf16 on an H100. */
static const char block[] =
    "name: block\nmodel: {preset: llama3-8b, layers: 2, parts: [blocks]}\n"
    "data: {batch: 2, sequence: 8192, dtype: bf16}\nmesh: {tp: 4}\nnames: torchtitan\nplan:\n"
    "  layers.*.attention_norm: sequence_parallel\n"
    "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "  layers.*.attention.w[qkv]: colwise\n"
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
    "  layers.*.ffn_norm: sequence_parallel\n"
    "  layers.*.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "  layers.*.feed_forward.w[13]: colwise\n"
    "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\nhardware: h100-sxm\n";
static const Trace *trace_of(Arena *a, const char *name, const char *text) {
    PipelineOptions o = {.events = true, .threads = 1};
    return plan_run_with(a, name, text, &o).t;
}
static void numbers_of_a_block(void **state) {
    (void)state;
    enum { TOKENS = 2 * 8192, D = 4096, F = 14336, KV = 1024, TP = 4 };
    const double rate = 660e12, memory = 3e12, link = 370e9, launch = 3e-6, step = 5e-6;
    Arena *a = arena_new();
    Roofline r;
    assert_true(read_roof(&r, a, trace_of(a, "block.yaml", block), -1, diags_new(a)));
    const struct {
        const char *name;
        double in, out; /* features of the local part */
        int n;
    } product[] = {{"wq", D, D / TP, 2}, {"wk", D, KV / TP, 2}, {"wv", D, KV / TP, 2},
                   {"wo", D / TP, D, 2}, {"w1", D, F / TP, 2},  {"w3", D, F / TP, 2},
                   {"w2", F / TP, D, 2}};
    double took[7];
    for (int i = 0; i < 7; i++) {
        const RoofKernel *k = kernel(&r, product[i].name);
        const double in = product[i].in, out = product[i].out, work = 2.0 * TOKENS * in * out,
                     moved = 2 * (TOKENS * in + in * out + TOKENS * out);
        took[i] = fmax(work / rate, moved / memory) + launch;
        near("FLOPs", k->work, work), near("bytes", k->moved, moved);
        near("time", k->took, took[i]);
        assert_int_equal(k->n, product[i].n);
        assert_int_equal(k->bound, work / rate >= moved / memory ? BOUND_COMPUTE : BOUND_MEMORY);
    }
    const struct {
        const char *name;
        double math;
        int products;
        bool makes;
    } sends[] = {{"AG after attention_norm", took[0] + took[1] + took[2], 3, false},
                 {"RS after wo", took[3], 1, true},
                 {"AG after ffn_norm", took[4] + took[5], 2, false},
                 {"RS after w2", took[6], 1, true}};
    const double sent = 2.0 * TOKENS * D * (TP - 1) / TP, time = (TP - 1) * step + sent / link;
    int longer = 0;
    for (int i = 0; i < 4; i++) {
        const RoofColl *c = coll(&r, sends[i].name);
        near("sent", c->sent, sent), near("takes", c->took, time);
        near("products", c->math, sends[i].math);
        assert_int_equal(c->products, sends[i].products);
        assert_int_equal(c->makes, sends[i].makes);
        longer += time > sends[i].math ? c->n : 0;
    }
    assert_int_equal(r.longer, longer);
    assert_int_equal(r.longer, 2); /* after wo, of both layers: the smallest of its products */
    assert_int_equal(r.colls, 8);
    near("the ridge", roofline_ridge(r.t), 220);
    assert_non_null(strstr(roofline_title(&r), "; 2 of 8 collectives outlast their products"));
    arena_free(a);
}
/* No kernel is faster than the machine, and under half of its roof it is the launch that takes
 * longest; sums are those of the timeline. */
static void hold_roofs(Arena *a, const Trace *t, const char *path) {
    Roofline r;
    for (int64_t rank = 0; rank<t->ranks; rank += t->ranks> 1 ? t->ranks - 1 : 1) {
        if (!read_roof(&r, a, t, rank, diags_new(a))) return;
        int kernels = 0, of[BOUNDS] = {0};
        for (int i = 0; i < r.n_kernels; i++) {
            const RoofKernel *k = &r.kernel[i];
            const double roof = k->moved > 0 ? roofline_roof(t, k->work / k->moved) : t->flop_rate,
                         y = k->work / k->took;
            if (y > roof * (1 + 1e-6)) fail_msg("%s: %s is above the roof", path, k->name);
            if (k->work > 0 && fabs(y - roof / 2) > 1e-6 * roof &&
                (y < roof / 2) != (k->bound == BOUND_LAUNCH))
                fail_msg("%s: %s is %s at %g of the roof", path, k->name, bound_words[k->bound],
                         y / roof);
            kernels += k->n, of[k->bound] += k->n;
        }
        assert_int_equal(kernels, r.kernels);
        for (int b = 0; b < BOUNDS; b++) assert_int_equal(of[b], r.of_bound[b]);
        const RecordTime time = records_time(a, t, rank);
        near(path, r.compute, time.compute);
        near(path, r.took[0] + r.took[1] + r.took[2], time.compute);
    }
}
static void no_mark_above_a_roof(void **state) {
    (void)state;
    int n = 0;
    for (PlanFiles f = plan_files("plans/*.yaml", NULL); plan_files_next(&f);) {
        const Trace *t = trace_of(f.a, f.path, f.text);
        if (t && t->n_events) hold_roofs(f.a, t, f.path), n++;
    }
    assert_true(n >= 5);
}
/* Layers are folded: a figure of two has no more marks than one of one. */
static void layers_are_one_mark(void **state) {
    (void)state;
    Arena *a = arena_new();
    Roofline two, one;
    const char *at = strstr(block, "layers: 2"),
               *less = arena_printf(a, "%.*slayers: 1%s", (int)(at - block), block, at + 9);
    assert_true(read_roof(&two, a, trace_of(a, "two.yaml", block), -1, diags_new(a)));
    assert_true(read_roof(&one, a, trace_of(a, "one.yaml", less), -1, diags_new(a)));
    assert_int_equal(two.n_kernels, one.n_kernels);
    assert_int_equal(two.n_colls, one.n_colls);
    assert_int_equal(two.kernels, 2 * one.kernels);
    assert_int_equal(two.colls, 2 * one.colls);
    arena_free(a);
}
/* A file gives the same picture; one of before, without what times are made from, says so. */
static void traces_from_files(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = trace_of(a, "block.yaml", block);
    size_t n, m, k;
    const char *text = trace_text(t, a, true, &n);
    Trace *back = trace_read(a, diags_new(a), "block.jsonl", text, n);
    RenderOptions o = {.view = "roofline", .rank = -1, .layer = -1};
    assert_non_null(back);
    const char *x = render_text(t, diags_new(a), &o, FORMAT_SVG, a, &m),
               *y = render_text(back, diags_new(a), &o, FORMAT_SVG, a, &k);
    assert_true(x && y && m == k && !memcmp(x, y, m));
    int events = back->n_events;
    back->n_events = 0;
    Diags *none = diags_new(a);
    assert_null(render_text(back, none, &o, FORMAT_TEXT, a, &n));
    assert_non_null(strstr(none->item[0].message, "no times for view 'roofline'"));
    back->n_events = events;
    back->flop_rate = 0;
    Diags *d = diags_new(a);
    assert_null(render_text(back, d, &o, FORMAT_TEXT, a, &n));
    assert_true(d->n == 1 && !strcmp(d->item[0].code, "E0211"));
    assert_non_null(strstr(d->item[0].message, "does not say what its times are made from"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_a_block), cmocka_unit_test(no_mark_above_a_roof),
        cmocka_unit_test(layers_are_one_mark), cmocka_unit_test(traces_from_files)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
