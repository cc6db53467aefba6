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
#include "render/furniture/page_room.h"
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
    assert_non_null(
        strstr(roofline_title(&r, ROOF_BOTH), "; 2 of 8 collectives outlast their products"));
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

/* ---- what panels say ---- */
static int texts_with(const Scene *s, const char *part) {
    int n = 0;
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; s->marks[i].kind == MARK_TEXT && k < s->marks[i].n_run; k++)
            for (const char *at = s->marks[i].run[k].s; (at = strstr(at, part)); at++) n++;
    return n;
}
/* The figure; slides are two, a panel each: the first, with `both` the other beside it. */
static Scene *slide_of(Arena *a, const char *path, const char *preset, bool both) {
    size_t n;
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &n);
    const Trace *t = text ? trace_of(a, path, text) : NULL;
    RenderOptions o = {.view = "roofline", .preset = preset, .rank = -1, .layer = -1};
    Scene *page[VIEW_MAX_PAGES];
    assert_non_null(t);
    const bool slide = preset && !strcmp(preset, "slide");
    assert_int_equal(render_pages(t, diags_new(a), &o, a, page), slide ? 2 : 1);
    if (slide && both) scene_beside(page[0], page[1], 20);
    return page[0];
}
static const Scene *page_of(Arena *a, const char *path, const char *preset) {
    return slide_of(a, path, preset, true);
}
/* Names of roofs that say so. */
static int roofs_named(const Scene *s, const char *part) {
    int n = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        n += m->kind == MARK_TEXT && m->group >= 0 && strstr(m->run[0].s, part) &&
             !strcmp(s->groups[m->group].what, "roof-names");
    }
    return n;
}
/* Nothing is said of one side of a ridge that is not so of each mark there (a launch may take
 * longer, or a link another slope): roofs say what is so at them, ridges where they are. */
static void roofs_say_what_is_so(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    static const struct {
        const char *plan, *says[4];
    } row[] = {{"plans/05-llama3-8b-tp4-sp.yaml",
                {"memory-bound: 3 TB/s", "compute-bound: 53 TFLOP/s", "sending: 370 GB/s",
                 "computing: 53 TFLOP/s"}},
               {"plans/shape-only/llama3.1-405b-8192.yaml",
                {"memory-bound: 3 TB/s", "compute-bound: 660 TFLOP/s", "across nodes: 48 GB/s",
                 "ridge 13.8 k"}}};
    for (int i = 0; i < 8; i++) {
        Arena *a = arena_new();
        const Scene *s = page_of(a, row[i / 4].plan, sizes[i % 4]);
        for (int k = 0; k < 4; k++)
            if (texts_with(s, row[i / 4].says[k]) != 1)
                fail_msg("%s, %s: '%s' is there %d times", row[i / 4].plan, sizes[i % 4],
                         row[i / 4].says[k], texts_with(s, row[i / 4].says[k]));
        assert_int_equal(texts_with(s, "decides") + texts_with(s, "compute-bound from"), 0);
        assert_int_equal(roofs_named(s, "TFLOP/s"), 2);
        assert_int_equal(roofs_named(s, "370 GB/s"), 1);
        assert_true(texts_with(s, "launch-bound") > (i < 4 ? 2 : 0));
        assert_int_equal(texts_with(s, "larger: "), i % 4 == 2 ? 2 : 1);
        arena_free(a);
    }
}
/* The marks that take most have their names in every preset, and no leader runs along a roof. */
static void large_marks_have_names(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    static const char *const names[] = {"causal attention", "w1, w3, w2", "wq, wo", "AG k, AG v"};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        const Scene *s = page_of(a, "plans/shape-only/llama3.1-405b-8192.yaml", sizes[i]);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (!texts_with(s, names[k])) fail_msg("%s: %s has no name", sizes[i], names[k]);
        for (int m = 0; m < s->n_marks; m++)
            for (int k = 0; k < s->n_marks; k++) {
                const Mark *l = &s->marks[m], *roof = &s->marks[k];
                if (l->kind != MARK_LINE || roof->kind != MARK_LINE || l->n != 2) continue;
                if (l->group < 0 || strcmp(s->groups[l->group].what, "names")) continue;
                if (roof->group < 0 || strcmp(s->groups[roof->group].what, "roof")) continue;
                const Pt x = {l->pt[1].x - l->pt[0].x, l->pt[1].y - l->pt[0].y},
                         y = {roof->pt[1].x - roof->pt[0].x, roof->pt[1].y - roof->pt[0].y};
                const double cross = x.x * y.y - x.y * y.x,
                             /* how far the leader's outer end is from the roof */
                    off = fabs((l->pt[1].x - roof->pt[0].x) * y.y -
                               (l->pt[1].y - roof->pt[0].y) * y.x) /
                          hypot(y.x, y.y);
                if (off < 14 && l->pt[1].x > roof->pt[0].x && l->pt[1].x < roof->pt[1].x &&
                    fabs(cross) < 0.5 * hypot(x.x, x.y) * hypot(y.x, y.y))
                    fail_msg("%s: a leader at %g, %g runs along a roof", sizes[i], l->pt[0].x,
                             l->pt[0].y);
            }
        arena_free(a);
    }
}
/* Crowded marks have names too: each that the test knows, in the preset, where once there were
 * none. */
static void crowded_marks_have_names(void **state) {
    (void)state;
    static const struct {
        const char *plan, *preset, *says[3];
    } row[] = {{"plans/shape-only/deepseek-v3-2048.yaml",
                "wide",
                {"AR after shared down_proj", "AR after down_proj", "kv_b_proj"}},
               {"plans/shape-only/llama3.1-405b-8192.yaml",
                "wide",
                {"RS after w2", "AG after ffn_norm", "SiLU"}},
               {"plans/30-mixtral-8x7b-ep-dp-cp.yaml",
                "slide",
                {"A2A dispatched", "AR dwv", "A2A after w2"}},
               {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                "slide",
                {"AR dwv", "RS after wo", "multiply"}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        const Scene *s = page_of(a, row[i].plan, row[i].preset);
        for (int k = 0; k < 3; k++)
            if (!texts_with(s, row[i].says[k]))
                fail_msg("%s, %s: %s has no name", row[i].plan, row[i].preset, row[i].says[k]);
        arena_free(a);
    }
}
/* A page of a fixed height is filled, and a title of two lines has no word alone in the second. */
static void pages_are_filled(void **state) {
    (void)state;
    static const char *const plans[] = {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                                        "plans/shape-only/llama3.1-405b-8192.yaml",
                                        "plans/shape-only/deepseek-v3-2048.yaml"};
    for (int i = 0; i < 6; i++) {
        Arena *a = arena_new();
        const Scene *s = slide_of(a, plans[i / 2], i % 2 ? "slide" : "a4", false);
        const double room = page_room(i % 2 ? PRESET_SLIDE : PRESET_A4);
        double line[2] = {0};
        int n = 0;
        if (s->h > room + 1 || s->h < room - 4) fail_msg("%g of %g high", s->h, room);
        for (int k = 0; k < s->n_marks; k++) {
            const Mark *m = &s->marks[k];
            if (m->kind == MARK_TEXT && m->size >= 18 && n < 2) line[n++] = m->w;
        }
        if (n == 2 && line[1] < line[0] / 2)
            fail_msg("%s: lines of %g and %g", plans[i / 2], line[0], line[1]);
        arena_free(a);
    }
}
/* Which micro-batches the records are of is said once, and of two ways not "one of 8". */
static void micro_batches_are_said_once(void **state) {
    (void)state;
    static const struct {
        const char *plan, *says;
    } row[] = {{"plans/45-llama3-8b-pp4-1f1b.yaml", "one of 8 micro-batches"},
               {"plans/52-llama3-8b-pp4-dualpipe.yaml", "two of 8 micro-batches, one each way"}};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        const Scene *s = page_of(a, row[i].plan, NULL);
        assert_int_equal(texts_with(s, row[i].says), 1);
        assert_int_equal(texts_with(s, "micro-batch"), 1);
        assert_int_equal(texts_with(s, "and what is done once a step"), 1);
        arena_free(a);
    }
}

/* Each mark of a crowded slide has its name in the panel, or under it among those without room. */
static void no_mark_is_nameless(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Scene *s = page_of(a, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "slide");
    Str all = str_new(a);
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; k < s->marks[i].n_run; k++) str_addf(&all, "%s ", s->marks[i].run[k].s);
    static const char *const name[] = {"multiply′",  "add",  "RoPE",   "RoPE′",
                                       "likelihood", "SiLU", "output", "causal attention"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!strstr(all.s, name[i])) fail_msg("no mark is called %s", name[i]);
    assert_null(strstr(all.s, "Marks without room for a name: ")); /* each panel has its slide */
    assert_non_null(strstr(all.s, "below this line: launch-bound"));
    assert_non_null(strstr(all.s, "All 70 kernels are launch-bound "));
    assert_non_null(strstr(all.s, "19 of 25 collectives outlast their products "));
    assert_non_null(strstr(all.s, " + and a number: "));
    assert_non_null(strstr(all.s, "w1, w3, w2 +6"));
    arena_free(a);
}
/* How a group of the panel is called, "" outside of any. */
static const char *group_of(const Scene *s, const Mark *m) {
    return m->group < 0 ? "" : s->groups[m->group].what;
}
static double side_of(const Pt *l, Pt p) {
    return (l[1].x - l[0].x) * (p.y - l[0].y) - (l[1].y - l[0].y) * (p.x - l[0].x);
}
static bool cross(const Pt *l, const Pt *k) {
    return side_of(l, k[0]) * side_of(l, k[1]) < 0 && side_of(k, l[0]) * side_of(k, l[1]) < 0;
}
/* How many of the lines of roofs a leader crosses; a ridge's goes straight down. */
static int roofs_crossed(const Scene *s, const Mark *leader) {
    int n = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_LINE || strcmp(group_of(s, m), "roof")) continue;
        if (m->n == 2 && fabs(m->pt[0].x - m->pt[1].x) < 0.5) continue;
        bool met = false;
        for (int k = 0; k + 1 < m->n; k++) met |= cross(leader->pt, &m->pt[k]);
        n += met;
    }
    return n;
}
/* A leader crosses one roof at most, and names on one line have air between them: "ridge 143" and
 * the name of a mark would read as one. */
static void hold_names(const Scene *s, const char *path) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        const bool name = !strcmp(group_of(s, m), "names");
        if (m->kind == MARK_LINE && name && m->n == 2 && roofs_crossed(s, m) > 1)
            fail_msg("%s: a leader at %g, %g crosses two roofs", path, m->pt[0].x, m->pt[0].y);
        for (int k = 0; k < s->n_marks && name && m->kind == MARK_TEXT; k++) {
            const Mark *o = &s->marks[k];
            const bool other = !strcmp(group_of(s, o), "names") || !strcmp(group_of(s, o), "roof");
            if (k == i || o->kind != MARK_TEXT || !other || fabs(o->y - m->y) > 6) continue;
            const double gap = fmax(o->x - (m->x + m->w), m->x - (o->x + o->w));
            if (gap < 7) fail_msg("%s: %s stands at %s", path, m->run[0].s, o->run[0].s);
        }
    }
}
/* Numbers in panels are those of the words under them, from 1 on. */
static void hold_numbers(Arena *a, const Scene *s, const char *path) {
    int n = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_TEXT || strcmp(group_of(s, m), "names")) continue;
        n += strspn(m->run[0].s, "0123456789") == strlen(m->run[0].s);
    }
    Str all = str_new(a);
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; k < s->marks[i].n_run; k++) str_addf(&all, "%s ", s->marks[i].run[k].s);
    const char *said = strstr(all.s, "Marks with a number");
    if ((n > 0) != (said != NULL)) fail_msg("%s: %d numbers, said: %d", path, n, said != NULL);
    for (int k = 1; k <= n; k++) {
        said = strstr(said, arena_printf(a, k > 1 ? "; %d" : ": %d", k));
        if (!said) fail_msg("%s: number %d of %d is not said", path, k, n);
    }
    if (strstr(all.s, "Marks without room for a name")) fail_msg("%s: a mark has no name", path);
}
/* Of crowded figures too each mark has a name or a number. */
static void crowds_are_legible(void **state) {
    (void)state;
    static const char *const plans[] = {
        "plans/33-qwen3-30b-a3b-ep.yaml", "plans/18-llama3-8b-backward.yaml",
        "plans/54-deepseek-v3-latent-ring4.yaml", "plans/56-gpt-oss-20b-tp2-ep2.yaml"};
    for (int i = 0; i < 8; i++) {
        Arena *a = arena_new();
        const bool slide = i % 2, packed = i / 2 == 3 && !slide; /* 40 places in a sixth of it */
        const Scene *s = slide_of(a, plans[i / 2], slide ? "slide" : "wide", false);
        hold_names(s, plans[i / 2]);
        if (!packed) hold_numbers(a, s, plans[i / 2]);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_a_block),          cmocka_unit_test(no_mark_above_a_roof),
        cmocka_unit_test(layers_are_one_mark),         cmocka_unit_test(traces_from_files),
        cmocka_unit_test(roofs_say_what_is_so),        cmocka_unit_test(large_marks_have_names),
        cmocka_unit_test(crowded_marks_have_names),    cmocka_unit_test(pages_are_filled),
        cmocka_unit_test(micro_batches_are_said_once), cmocka_unit_test(no_mark_is_nameless),
        cmocka_unit_test(crowds_are_legible)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
