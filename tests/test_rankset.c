/* Sets of ranks on a mesh: runs where few say it, boxes where runs would be a list as long as an
 * axis. Every set is held against the plain list of its ranks, and against itself, written to a
 * trace and read. */
#include "exec/classes.h"
#include "trace/rankgrid.h"
#include "trace/trace_parts.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static Mesh mesh_of(int64_t dp, int64_t cp, int64_t tp) {
    Mesh m = {.naxes = 3,
              .axis = {{.name = "dp", .size = dp},
                       {.name = "cp", .size = cp},
                       {.name = "tp", .size = tp}}};
    assert_true(mesh_finish(&m));
    return m;
}
/* Parts of an axis: `cut` are the coordinates at which a new run begins, of the parts in `part`. */
static void set_parts(Arena *a, AxisParts *p, int axis, int n_runs, const int64_t *cut,
                      const int *part) {
    int k = p->axes.n++, n = 0;
    p->axes.a[k] = (uint8_t)axis;
    p->n_runs[k] = n_runs;
    p->run[k] = arena_alloc(a, sizeof(PartRun) * (size_t)n_runs);
    p->first[k] = ARENA_ARRAY(a, int64_t, n_runs);
    for (int i = 0; i < n_runs; i++) {
        p->run[k][i] = (PartRun){cut[i], part[i]};
        if (part[i] == n) p->first[k][n++] = cut[i];
    }
    p->n[k] = n;
}
static int64_t part_of(const AxisParts *p, int k, int64_t c) {
    int64_t part = 0;
    for (int i = 0; i < p->n_runs[k] && p->run[k][i].first <= c; i++) part = p->run[k][i].part;
    return part;
}
static bool marked(const Mesh *m, const AxisParts *p, const bool *in, int64_t rank) {
    int64_t i = 0;
    for (int k = 0; k < p->axes.n; k++)
        i = i * p->n[k] + part_of(p, k, mesh_coord(m, rank, p->axes.a[k]));
    return in[i];
}
/* The set has exactly the marked ranks, each once, whoever asks. */
static void hold_set(const Mesh *m, const AxisParts *p, const bool *in, const RankSet *set) {
    int64_t n = 0, rank, walked = 0, first = -1;
    for (int64_t r = 0; r < m->nranks; r++) {
        bool want = marked(m, p, in, r);
        assert_int_equal(rankset_has(set, r), want);
        if (want && first < 0) first = r;
        n += want;
    }
    assert_int_equal(rankset_count(set), n);
    for (RankWalk w = {0}; rankset_next(set, &w, &rank);) {
        assert_true(marked(m, p, in, rank));
        walked++;
    }
    assert_int_equal(walked, n);
    if (n) assert_int_equal(rankset_first(set), first);
}
/* The axes in any order, any parts, any combinations of them. */
static void test_any_combination(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{97, 5, 3}, {8, 4, 2}, {40, 40, 40}, {1, 300, 70}};
    uint64_t seed = 7;
    int boxes = 0;
    for (int round = 0; round < 400; round++) {
        Arena *a = arena_new();
        const int64_t *size = sizes[round % 4];
        Mesh m = mesh_of(size[0], size[1], size[2]);
        AxisParts p = {0};
        for (int k = 0; k < 3; k++) {
            int axis = (k + round) % 3, n = 1, part[6] = {0}, next = 1;
            int64_t cut[6] = {0};
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            for (int64_t c = 1; c < m.axis[axis].size && n < 6; c++)
                if ((seed >> (c % 48) & 7) == 0) {
                    cut[n] = c;
                    part[n] = next > 1 && (seed >> 50 & 1) ? 0 : next++;
                    if (part[n] != part[n - 1]) n++;
                }
            set_parts(a, &p, axis, n, cut, part);
        }
        int64_t n = classes_count(&p);
        bool *in = ARENA_ARRAY(a, bool, n);
        for (int64_t i = 0; i < n; i++) in[i] = seed >> (i % 61) & 1;
        RankSets *sets = classes_sets(a, &m);
        RankSet set = classes_ranks(sets, &p, in);
        hold_set(&m, &p, in, &set);
        boxes += set.n && set.box;
        /* the same from a list of its ranks */
        int64_t *list = ARENA_ARRAY(a, int64_t, m.nranks), k = 0;
        for (int64_t r = 0; r < m.nranks; r++)
            if (marked(&m, &p, in, r)) list[k++] = r;
        RankBox box = {.n = 3};
        for (int x = 0; x < 3; x++)
            box.side[x] =
                (RankSide){m.axis[x].name, m.axis[x].size, m.axis[x].stride, 0, m.axis[x].size};
        RankSet from = rankset_on_mesh(a, &box, list, k);
        hold_set(&m, &p, in, &from);
        arena_free(a);
    }
    assert_true(boxes > 50);
}
/* What people read; and a trace keeps it. */
static void test_texts(void **state) {
    (void)state;
    Arena *a = arena_new();
    Mesh m = mesh_of(4096, 16, 8);
    AxisParts p = {0};
    set_parts(a, &p, 0, 2, (int64_t[]){0, 4094}, (int[]){0, 1});
    set_parts(a, &p, 1, 2, (int64_t[]){0, 15}, (int[]){0, 1});
    RankSets *sets = classes_sets(a, &m);
    static const struct {
        bool in[4];
        const char *text;
    } rows[] = {{{true, false, false, false}, "dp=0:4094 cp=0:15"},
                {{false, true, false, false}, "dp=0:4094 cp=15"},
                {{false, true, false, true}, "cp=15"},
                {{true, true, false, false}, "0-524031"},
                {{true, false, true, true}, "dp=0:4094 cp=0:15, dp=4094:4096"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        RankSet set = classes_ranks(sets, &p, rows[i].in);
        assert_string_equal(rankset_text(&set, a), rows[i].text);
    }
    const char *text =
        "model: {preset: llama3-8b, layers: 1, parts: [embedding, blocks, norm, head, loss]}\n"
        "data: {batch: 4095, sequence: 63, dtype: f32}\nmesh: {dp: 512, cp: 8, tp: 2}\ngroups: "
        "{sp: tp}\n"
        "names: torchtitan\nrecipe: torchtitan-llama3\npass: backward\n";
    PlanRun r = plan_run(a, "sets.yaml", text, false);
    size_t n;
    char *written = trace_text(r.t, a, true, &n);
    assert_non_null(strstr(written, "\"dp=0:511 cp=0:7\""));
    Trace *again = trace_read(a, r.d, "sets.jsonl", written, n);
    if (!again) run_print(&r);
    assert_non_null(again);
    size_t n2;
    assert_string_equal(trace_text(again, a, true, &n2), written);
    for (int i = 0; i < r.t->n_classes; i++)
        assert_int_equal(rankset_count(&again->classes[i]), rankset_count(&r.t->classes[i]));
    arena_free(a);
}
/* Boxes that the mesh has not are refused. */
static void test_bad_boxes(void **state) {
    (void)state;
    static const char *const bad[] = {
        "dp=0:5", "dp=3:3", "dp=4",  "xp=1",        "dp=1 dp=2", "cp=0 dp=0",
        "dp=",    "dp=-1",  "dp=1:", "dp=0:2 cp=9", "dp=1x",     "dp=99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Arena *a = arena_new();
        Diags *d = diags_new(a);
        const char *text = arena_printf(
            a,
            "{\"schema\":\"shardproof/"
            "1\",\"type\":\"run\",\"plan\":\"p\",\"mesh\":{\"dp\":4,\"cp\":2},\"ranks\":8}\n"
            "{\"schema\":\"shardproof/"
            "1\",\"type\":\"memory\",\"step\":-1,\"ranks\":[\"%s\"],\"category\":\"parameters\","
            "\"bytes\":4}\n"
            "{\"schema\":\"shardproof/1\",\"type\":\"verdict\"}\n",
            bad[i]);
        if (trace_read(a, d, "bad.jsonl", text, strlen(text)))
            fail_msg("'%s' is taken for ranks", bad[i]);
        assert_int_equal(diags_exit(d), 3);
        arena_free(a);
    }
}

/* ---- cells and parts, against each rank by itself ---- */
static unsigned draw(unsigned *seed, unsigned n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}
/* Runs that need not fit the axes, some beyond the last rank; or boxes of the mesh. */
static RankSet random_set(Arena *a, unsigned *seed, const RankBox *mesh, int64_t ranks) {
    int64_t *list = ARENA_ARRAY(a, int64_t, ranks), n = 0;
    unsigned kind = draw(seed, 3), of = 2 + draw(seed, 9), k = draw(seed, of);
    unsigned from = draw(seed, (unsigned)ranks), to = from + draw(seed, (unsigned)ranks);
    if (kind == 0) return rankset_range(a, from, 1 + draw(seed, 40), 1 + draw(seed, 50));
    for (int64_t r = 0; r < ranks; r++)
        if (kind == 1 ? r % of == k : r >= from && r < to && r / of % 2) list[n++] = r;
    return mesh->n && draw(seed, 2) ? rankset_on_mesh(a, mesh, list, n) : rankset_from(a, list, n);
}
static void add_cell(void *arg, int64_t cell) { ((bool *)arg)[cell] = true; }
static void hold_cells(Arena *a, const RankGrid *g, const RankSet *set, int64_t ranks) {
    int64_t n = grid_cells(g), n_in = 0, *list = ARENA_ARRAY(a, int64_t, n);
    bool *in = ARENA_ARRAY(a, bool, n);
    grid_visit(g, set, add_cell, in);
    for (int64_t c = 0; c < n; c++)
        if (in[c]) list[n_in++] = c;
    RankSet again = grid_set(g, a, list, n_in);
    for (int64_t r = 0; r < ranks; r++)
        assert_int_equal(rankset_has(&again, r), rankset_has(set, r));
}
static void hold_parts(Arena *a, const Trace *t, const RankSet *set, int n) {
    RankSet *part;
    int64_t last = -1, sum = 0;
    int n_parts = trace_parts(t, a, &part);
    for (int p = 0; p < n_parts; p++) {
        int64_t first = rankset_first(&part[p]);
        assert_true(first > last);
        last = first;
        for (int64_t r = 0; r < t->ranks; r++) {
            bool alike = true;
            for (int i = 0; i < n; i++)
                alike &= rankset_has(&set[i], r) == rankset_has(&set[i], first);
            assert_int_equal(rankset_has(&part[p], r), alike);
        }
        sum += rankset_count(&part[p]);
    }
    assert_int_equal(sum, t->ranks);
}
static void test_cells_and_parts(void **state) {
    (void)state;
    enum { SETS = 4 };
    unsigned seed = 7;
    for (int round = 0; round < 300; round++) {
        Arena *a = arena_new();
        struct TraceAxis axes[] = {
            {"dp", 1 + draw(&seed, 9)}, {"cp", 1 + draw(&seed, 5)}, {"tp", 3}};
        Trace t = {.arena = a, .n_axes = round % 5 ? 3 : 1, .axes = axes};
        t.ranks = axes[0].size * axes[1].size * axes[2].size; /* of one axis: no mesh that fits */
        RankBox mesh = trace_mesh_box(&t);
        RankSet set[SETS];
        const RankSet *met[SETS];
        TraceCompute compute[SETS] = {0};
        for (int i = 0; i < SETS; i++) {
            met[i] = &set[i];
            set[i] = compute[i].ranks = random_set(a, &seed, &mesh, t.ranks);
        }
        t.computes = compute;
        t.n_computes = SETS;
        const RankGrid *g = grid_new(a, &mesh, t.ranks, met, SETS);
        for (int i = 0; i < SETS; i++) hold_cells(a, g, &set[i], t.ranks);
        hold_parts(a, &t, set, SETS);
        arena_free(a);
    }
}
/* A million ranks are a few cells, whatever the runs look like. */
static void test_cells_are_few(void **state) {
    (void)state;
    Arena *a = arena_new();
    Mesh m = mesh_of(8192, 16, 8);
    RankBox mesh = classes_mesh(&m);
    RankSet set[] = {rankset_range(a, 127, 8192, 128), rankset_range(a, 0, 1048448, 1)};
    const RankSet *both[] = {&set[0], &set[1]};
    assert_int_equal(grid_cells(grid_new(a, &mesh, m.nranks, both, 2)), 2 * 2 * 2);
    assert_int_equal(rankset_as_boxes(a, &mesh, &set[0]).n, 1);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_combination), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_cells_and_parts), cmocka_unit_test(test_cells_are_few),
        cmocka_unit_test(test_bad_boxes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
