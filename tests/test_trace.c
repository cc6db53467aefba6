/* Traces: rank sets, groups, texts; every field through a file and back; traces that are cut off,
 * foreign or hostile.
 */
#include "base/file.h"
#include "support/support.h"
#include "trace/trace.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* after the others: it needs some of them */
#include <cmocka.h>

#define TEXTS(a, n, ...) (arena_memdup((a), (const char *[]){__VA_ARGS__}, (n) * sizeof(char *)))

/* ---- rank sets, groups, texts ---- */
static void test_ranksets(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const struct {
        int n;
        int64_t rank[8];
        const char *text;
    } cases[] = {
        {0, {0}, "none"},
        {1, {5}, "5"},
        {2, {0, 2}, "0,2"},
        {2, {0, 1}, "0,1"},
        {3, {0, 1, 2}, "0-2"},
        {4, {0, 2, 4, 6}, "0,2,4,6"},
        {5, {0, 2, 4, 6, 8}, "0:10:2"},
        {5, {0, 2, 3, 4, 5}, "0,2-5"},
        {6, {1, 2, 5, 6, 9, 10}, "1,2,5,6,9,10"},
        {8, {0, 1, 2, 3, 8, 9, 10, 11}, "0-3,8-11"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RankSet r = rankset_from(a, cases[i].rank, cases[i].n);
        assert_string_equal(rankset_text(&r, a), cases[i].text);
        assert_int_equal(rankset_count(&r), cases[i].n);
        for (int64_t q = 0; q < 16; q++) {
            bool in = false;
            for (int k = 0; k < cases[i].n; k++) in = in || cases[i].rank[k] == q;
            assert_int_equal(rankset_has(&r, q), in);
        }
    }
    /* one text per set, however its runs were cut */
    RankRun odd[] = {{0, 1, 1}, {1, 2, 1}, {3, 1, 7}};
    RankSet r = {.n = 3, .run = odd};
    assert_string_equal(rankset_text(&r, a), "0-3");
    r = rankset_range(a, 3, 8192, 8);
    assert_string_equal(rankset_text(&r, a), "3:65539:8");
    assert_int_equal(rankset_range(a, 3, 0, 8).n, 0);
    arena_free(a);
}
/* Each word of a placement is a cut, or says what is pending, or neither. */
static void test_placements(void **state) {
    (void)state;
    static const struct {
        const char *place;
        PlaceCut cut;
        PlacePending pending;
    } row[] = {{NULL, PLACE_WHOLE, PENDING_NONE},
               {"", PLACE_WHOLE, PENDING_NONE},
               {"replicate", PLACE_WHOLE, PENDING_NONE},
               {"varying_use", PLACE_WHOLE, PENDING_NONE},
               {"at(0)", PLACE_WHOLE, PENDING_NONE},
               {"shard(1)", PLACE_SHARD, PENDING_NONE},
               {"striped(2)", PLACE_STRIPED, PENDING_NONE},
               {"partial", PLACE_WHOLE, PENDING_SUM},
               {"partial at(0,3)", PLACE_WHOLE, PENDING_SUM},
               {"partial(max)", PLACE_WHOLE, PENDING_MAX},
               {"partially", PLACE_WHOLE, PENDING_NONE}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_int_equal(place_cut(row[i].place, NULL), row[i].cut);
        assert_int_equal(place_pending(row[i].place), row[i].pending);
    }
}

static void test_groups(void **state) {
    (void)state;
    /* mesh dp=3 cp=2 tp=4 (strides 8, 4, 1); groups over (cp, dp): an order that is not that of the
     * ranks */
    RankGroups g = {2, 1, {2, 3}, {4, 8}, {4}, {1}, 0};
    assert_int_equal(groups_count(&g), 4);
    assert_int_equal(groups_size(&g), 6);
    static const int64_t want[] = {0, 8, 16, 4, 12, 20};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(groups_member(&g, 0, i), want[i]);
        assert_int_equal(groups_member(&g, 3, i), want[i] + 3);
    }
    RankGroups none = {0};
    assert_int_equal(groups_count(&none), 1);
    assert_int_equal(groups_size(&none), 1);
    assert_int_equal(groups_member(&none, 0, 0), 0);
}
static void test_texts(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const struct {
        int64_t bytes;
        const char *text;
    } bytes[] = {{0, "0 B"},
                 {40, "40 B"},
                 {1023, "1023 B"},
                 {1024, "1 KiB"},
                 {1536, "1.5 KiB"},
                 {16 << 20, "16 MiB"},
                 {1621234567, "1.51 GiB"},
                 {12345, "12.1 KiB"},
                 {1047527424, "999 MiB"},
                 {1073741823, "1.00 GiB"},
                 {-4096, "-4 KiB"},
                 {INT64_MAX, "8 EiB"},
                 {(int64_t)126 << 30, "126 GiB"},
                 {100 << 10, "100 KiB"}};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        assert_string_equal(bytes_text(bytes[i].bytes, a), bytes[i].text);
    assert_string_equal(count_text(1073741824, a), "1.07 G");
    assert_string_equal(count_text(512, a), "512");
    assert_string_equal(count_text(660e12, a), "660 T");
    assert_string_equal(count_text(999.9, a), "1.00 k");
    assert_string_equal(count_text(0, a), "0");
    assert_string_equal(time_text(42.1e-6, a), "42.1 µs");
    assert_string_equal(time_text(5e-6, a), "5 µs");
    assert_string_equal(time_text(0, a), "0 s");
    assert_string_equal(time_text(0.99996, a), "1.00 s");
    assert_string_equal(time_text(2.5e-10, a), "0.25 ns");
    assert_string_equal(time_text(INFINITY, a), "inf s");
    /* parts add up to the sum as they are read, and none is lost: 212 + 238 is not 451, and 213
     * would be another number than the one that is read of it elsewhere, so all have one more digit
     */
    const char *part[3];
    assert_string_equal(time_sum_text((double[]){212.4e-6, 238.4e-6}, 2, part, a), "450.8 µs");
    assert_string_equal(part[0], "212.4 µs");
    assert_string_equal(part[1], "238.4 µs");
    assert_string_equal(time_sum_text((double[]){386.6e-6, 25.7e-6}, 2, part, a), "412.3 µs");
    assert_string_equal(part[1], time_text(25.7e-6, a));
    assert_string_equal(time_sum_text((double[]){6.312e-3, 412e-6}, 2, part, a), "6.724 ms");
    assert_string_equal(part[1], "0.412 ms");
    assert_string_equal(time_sum_text((double[]){0.3333, 3e-6, 0}, 3, part, a), "333.303 ms");
    assert_string_equal(part[0], "333.300 ms");
    assert_string_equal(part[1], "0.003 ms");
    assert_string_equal(part[2], "0.000 ms");
    assert_string_equal(time_sum_text((double[]){0, 0}, 2, part, a), "0 s");
    assert_string_equal(time_sum_text((double[]){2e-6, 3e-6}, 2, part, a), "5.00 µs");
    /* five digits that do not add up: rather fewer than six */
    assert_string_equal(time_sum_text((double[]){1.887624e-3, 84.536e-6}, 2, part, a), "1.97 ms");
    assert_string_equal(part[1], "0.08 ms");
    assert_string_equal(time_sum_text((double[]){250.464e-6, 60.0549e-6}, 2, part, a),
                        "310.519 µs");
    assert_string_equal(time_sum_text((double[]){8.51, 3.2601, 4.55}, 3, part, a), "16.32 s");
    assert_string_equal(part[2], "4.55 s");
    arena_free(a);
}

/* ---- an invented trace in which no two numbers are alike ---- */
static TraceShape some_shape(Arena *a, const char *name, int seed, bool pending) {
    TraceShape s = {.name = name, .nd = 3, .global_shape = {seed + 1, 10 * seed + 3, 7}};
    s.dim_symbol[0] = "B/dp";
    s.dim_symbol[1] = seed % 2 ? "S/(cp*sp)" : NULL;
    s.dim_symbol[2] = "D";
    s.symbolic = "[B/dp, S/(cp*sp), D]";
    s.n_places = 2;
    s.place = ARENA_ARRAY(a, TracePlace, 2);
    s.place[0] = (TracePlace){"dp", "shard(0)"};
    s.place[1] = (TracePlace){"tp", pending ? "partial" : "zigzag(1)"};
    s.n_local = 2;
    s.local = ARENA_ARRAY(a, TraceLocal, 2);
    static const int64_t some[] = {0, 1, 4, 5, 7};
    s.local[0] = (TraceLocal){rankset_from(a, some, 5), {seed, 5, 7}, 4 * 35 * seed};
    s.local[1] = (TraceLocal){rankset_range(a, 96, 96, 1), {seed, 0, 7}, 0};
    s.pending = pending ? "tp" : NULL;
    return s;
}
static Trace *invented(Arena *a) {
    Trace *t = trace_new(a);
    *t = (Trace){.arena = a,
                 .plan = "pl\"an\nß",
                 .title = "a title",
                 .hash = "00ff",
                 .version = "0.1.0",
                 .backend = "virtual",
                 .pass = PASS_TRAIN,
                 .dtype = "f32",
                 .ranks = 192,
                 .model_name = "llama",
                 .model_kind = "mlp",
                 .names = "hf",
                 .executed = true,
                 .hardware = "h100-sxm: ...",
                 .verdict = "different",
                 .worst_value = "layers.0.x",
                 .worst_used = 12.5,
                 .n_pass = 41,
                 .n_suspect = 2,
                 .n_fail = 3,
                 .first_wrong = "layers.0.x"};
    t->n_axes = 3;
    t->axes = arena_memdup(a, (struct TraceAxis[]){{"dp", 2}, {"cp", 12}, {"tp", 8}},
                           3 * sizeof *t->axes);
    t->n_groups = 2;
    t->groups = arena_memdup(a, (struct TraceGroup[]){{"sp", "tp"}, {"all", "dp*cp*tp"}},
                             2 * sizeof *t->groups);
    t->n_model = 3;
    t->model = arena_memdup(a, (struct TraceDim[]){{"D", 4096}, {"eps", 1e-5}, {"big", 1e300}},
                            3 * sizeof *t->model);
    t->n_classes = 2;
    t->classes = ARENA_ARRAY(a, RankSet, 2);
    t->classes[0] = rankset_range(a, 0, 96, 2);
    t->classes[1] = rankset_range(a, 1, 96, 2);
    TraceParam *p = ARENA_PUSH(a, t->params, t->n_params, t->cap_params);
    *p = (TraceParam){.compute = some_shape(a, "model.w", 3, false),
                      .rest = some_shape(a, "rest.w", 4, true),
                      .plan_name = "w",
                      .n_placements = 2,
                      .placements = TEXTS(a, 2, "Shard(0)", "Replicate()"),
                      .style = "colwise",
                      .module = "layers.0.attention.wq",
                      .bytes = 1234,
                      .file = "plan.yaml",
                      .line = 7,
                      .layer = 5};
    p->cuts[1] = "tp:chunk";
    p = ARENA_PUSH(a, t->params, t->n_params, t->cap_params);
    *p = (TraceParam){.compute = {.name = "scalar"}, .rest = {.name = "scalar"}, .layer = -1};
    return t;
}
static void invented_steps(Arena *a, Trace *t) {
    for (int i = 0; i < 3; i++) {
        TraceCompute *c = ARENA_PUSH(a, t->computes, t->n_computes, t->cap_computes);
        *c = (TraceCompute){.step = 2 * i + 1,
                            .op = "linear",
                            .label = "linear",
                            .glyph = "box",
                            .module = "m",
                            .part = "mlp",
                            .style = i ? "rowwise" : NULL,
                            .layer = i,
                            .ranks = t->classes[i % 2],
                            .n_inputs = 2,
                            .inputs = TEXTS(a, 2, "x", "w"),
                            .input_step = arena_memdup(a, (int[]){2 * i, -1}, 8),
                            .output = "y",
                            .flops = i == 2 ? 1.5e18 : 1073741824,
                            .bytes = 77 + i,
                            .pass = PHASE_FORWARD,
                            .iteration = i,
                            .iteration_text = i ? "ring 1" : NULL,
                            .microbatch = 2 * i,
                            .recompute = i == 1,
                            .attends = i == 2,
                            .product = i == 0};
    }
}
static void invented_moves(Arena *a, Trace *t) {
    TraceCollective *k = ARENA_PUSH(a, t->collectives, t->n_collectives, t->cap_collectives);
    *k = (TraceCollective){.step = 2,
                           .op = "all_reduce",
                           .axis = "sp",
                           .axes = "tp",
                           .groups = {1, 2, {8}, {1}, {2, 12}, {96, 8}, 0},
                           .dtype = "f32",
                           .reduce = "sum",
                           .bytes_in = 11,
                           .bytes_out = 12,
                           .bytes_sent = 13,
                           .value = "y",
                           .value_step = 1,
                           .dim = 2,
                           .dim_symbol = "D",
                           .pass = PHASE_FORWARD,
                           .why = "a sum is pending",
                           .file = "plan.yaml",
                           .line = 11,
                           .inferred = true,
                           .module = "m",
                           .part = "attention",
                           .layer = 4};
    k = ARENA_PUSH(a, t->collectives, t->n_collectives, t->cap_collectives);
    *k = (TraceCollective){.step = 4,
                           .op = "all_gather",
                           .axes = "dp*cp",
                           .groups = {2, 1, {2, 12}, {96, 8}, {8}, {1}, 0},
                           .value_step = -1,
                           .dim = -1,
                           .layer = -1};
    k = ARENA_PUSH(a, t->collectives, t->n_collectives, t->cap_collectives);
    *k = (TraceCollective){.step = 4,
                           .op = "broadcast",
                           .axes = "all",
                           .groups = {1, 0, {192}, {1}, {0}, {0}, 0},
                           .value_step = 3,
                           .dim = 0,
                           .layer = 0};
}
static void invented_values(Arena *a, Trace *t) {
    TraceLocalMove *m = ARENA_PUSH(a, t->moves, t->n_moves, t->cap_moves);
    *m = (TraceLocalMove){.step = 0,
                          .op = "slice",
                          .value = "x",
                          .axes = "tp",
                          .pass = PHASE_FORWARD,
                          .why = "cut",
                          .file = "p.yaml",
                          .value_step = -1,
                          .layer = 2,
                          .line = 7};
    for (int i = 0; i < 2; i++) {
        TraceValue *v = ARENA_PUSH(a, t->values, t->n_values, t->cap_values);
        *v = (TraceValue){.step = i ? 3 : -1,
                          .pass = PHASE_FORWARD,
                          .shape = some_shape(a, i ? "y" : "x", 5 + i, i),
                          .kind = i ? VALUE_MOVED : VALUE_INPUT,
                          .layer = i - 1};
    }
    static const double numbers[] = {1,    -0.0,     0.1,       1e-310,
                                     -3.5, INFINITY, -INFINITY, 9007199254740993.0};
    t->values[1].n_numbers = 8;
    t->values[1].numbers = arena_memdup(a, numbers, sizeof numbers);
}
static void invented_event(Arena *a, Trace *t) {
    TraceEvent *e = ARENA_PUSH(a, t->events, t->n_events, t->cap_events);
    *e = (TraceEvent){.ranks = t->classes[0],
                      .step = 2,
                      .stream = "tp",
                      .name = "AG x",
                      .kind = "collective",
                      .start = 1.25e-4,
                      .end = 1.67e-4,
                      .wait = 1e-5,
                      .exposed = 3.2e-5,
                      .wait_exposed = 5e-6,
                      .formula = "1 × 5 µs"};
}
static void invented_results(Arena *a, Trace *t) {
    TraceCheck *c = ARENA_PUSH(a, t->checks, t->n_checks, t->cap_checks);
    *c = (TraceCheck){.step = 1,
                      .value = "y",
                      .pass = PHASE_FORWARD,
                      .level = 2,
                      .ranks = t->classes[0],
                      .max_abs = 1.2e-6,
                      .max_rel = 3.1e-7,
                      .bound = 8e-6,
                      .used = 0.15,
                      .verdict = "PASS",
                      .count = 100};
    c = ARENA_PUSH(a, t->checks, t->n_checks, t->cap_checks);
    *c = (TraceCheck){.step = 3,
                      .value = "z",
                      .level = 1,
                      .ranks = t->classes[1],
                      .max_abs = NAN,
                      .max_rel = INFINITY,
                      .bound = 0,
                      .used = INFINITY,
                      .verdict = "FAIL",
                      .count = 5,
                      .n_index = 3,
                      .index = {0, 2, 1},
                      .got = NAN,
                      .want = 0.1,
                      .cause = "a reduction is missing",
                      .n_rank_error = 2};
    c->rank_error = arena_alloc(a, 2 * sizeof *c->rank_error);
    c->rank_error[0].rank = 1;
    c->rank_error[0].error = 0.5;
    c->rank_error[1].rank = 191;
    c->rank_error[1].error = NAN;
    TraceMemory *m = ARENA_PUSH(a, t->memory, t->n_memory, t->cap_memory);
    *m = (TraceMemory){2, t->classes[0], "activations", (int64_t)1 << 55};
    /* arrays keep their own order in the file, also where their steps fall */
    m = ARENA_PUSH(a, t->memory, t->n_memory, t->cap_memory);
    *m = (TraceMemory){-1, t->classes[1], "parameters", 3};
    invented_event(a, t);
    static Diag diags[] = {{.code = "E0203",
                            .severity = DIAG_ERROR,
                            .message = "unknown style",
                            .hint = "colwise",
                            .loc = {"plan.yaml", 7, 18},
                            .exit = 3},
                           {.code = "N0001", .severity = DIAG_NOTE, .message = "moved"}};
    t->diags = diags;
    t->n_diags = 2;
}
static Trace *whole(Arena *a) {
    Trace *t = invented(a);
    invented_steps(a, t);
    invented_moves(a, t);
    invented_values(a, t);
    invented_results(a, t);
    return t;
}
static Trace *read_ok(Arena *a, const char *s, size_t n) {
    Diags *d = diags_new(a);
    Trace *t = trace_read(a, d, "x.jsonl", s, n);
    if (!t) diags_print(d, stderr, false);
    assert_non_null(t);
    assert_int_equal(d->n, 0);
    return t;
}

static void same_ranks(const RankSet *x, const RankSet *y, Arena *a) {
    assert_string_equal(rankset_text(x, a), rankset_text(y, a));
}
static void same_text(const char *x, const char *y) {
    assert_string_equal(x ? x : "", y ? y : ""); /* no text is read back as an empty one */
}
static void same_shape(const TraceShape *x, const TraceShape *y, Arena *a) {
    same_text(x->name, y->name);
    same_text(x->symbolic, y->symbolic);
    same_text(x->pending, y->pending);
    assert_int_equal(x->nd, y->nd);
    assert_memory_equal(x->global_shape, y->global_shape, sizeof x->global_shape);
    for (int i = 0; i < TRACE_MAX_DIMS; i++) same_text(x->dim_symbol[i], y->dim_symbol[i]);
    assert_int_equal(x->n_places, y->n_places);
    for (int i = 0; i < x->n_places; i++) {
        assert_string_equal(x->place[i].axis, y->place[i].axis);
        assert_string_equal(x->place[i].place, y->place[i].place);
    }
    assert_int_equal(x->n_local, y->n_local);
    for (int i = 0; i < x->n_local; i++) {
        same_ranks(&x->local[i].ranks, &y->local[i].ranks, a);
        assert_memory_equal(x->local[i].shape, y->local[i].shape, sizeof x->local[i].shape);
        assert_int_equal(x->local[i].bytes, y->local[i].bytes);
    }
}
static void test_round_trip_text(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t n, m;
    const char *s = trace_text(whole(a), a, true, &n);
    const char *again = trace_text(read_ok(a, s, n), a, true, &m);
    assert_string_equal(s, again);
    assert_int_equal(n, m);
    assert_int_equal(n, strlen(s));
    /* records as they look, key by key */
    assert_non_null(
        strstr(s, "{\"schema\":\"shardproof/1\",\"type\":\"run\",\"plan\":\"pl\\\"an\\nß\""));
    assert_non_null(
        strstr(s, "\"mesh\":{\"dp\":2,\"cp\":12,\"tp\":8},\"groups\":{\"sp\":\"tp\",\"all\":\"dp*"
                  "cp*tp\"},\"ranks\":192,\"model\":{\"D\":4096,\"eps\":1e-05,\"big\":1e+300}"));
    assert_non_null(strstr(s, "\"type\":\"param\",\"name\":\"w\""));
    assert_non_null(
        strstr(s, "\"rest\":{\"dp\":\"shard(0)\",\"tp\":\"partial\"},\"compute\":{\"dp\":\"shard(0)"
                  "\",\"tp\":\"zigzag(1)\"},\"placements\":[\"Shard(0)\",\"Replicate()\"]"));
    assert_non_null(strstr(s, "\"local\":[{\"ranks\":[0,1,4,5,7],\"shape\":[3,5,7],\"bytes\":420},{"
                              "\"ranks\":[\"96:192:1\"]"));
    assert_non_null(strstr(s, "\"matched_by\":{\"file\":\"plan.yaml\",\"line\":7}"));
    assert_non_null(strstr(s, "\"flops\":1073741824,\"bytes\":77,\"pass\":\"forward\""));
    assert_non_null(strstr(s, "\"groups\":[[0,1,2,3,4,5,6,7],[8,"));
    assert_non_null(strstr(s, "\"grouping\":{\"in\":[[8,1]],\"out\":[[2,96],[12,8]]}"));
    assert_non_null(strstr(s, "\"groups\":[\"0:192:1\"]"));
    assert_non_null(strstr(s, "\"max_abs\":\"nan\",\"max_rel\":\"inf\",\"bound\":0,\"used\":"
                              "\"inf\",\"verdict\":\"FAIL\""));
    assert_non_null(strstr(s,
                           "\"type\":\"event\",\"rank\":0,\"step\":2,\"stream\":\"tp\","
                           "\"start\":0.000125,\"end\":0.000167,\"exposed\":3.2e-05,\"wait\":1e-05,"
                           "\"wait_exposed\":5e-06"));
    assert_non_null(strstr(
        s,
        "\"worst\":{\"value\":\"layers.0.x\",\"used\":12.5},\"pass\":41,\"suspect\":2,\"fail\":3"));
    arena_free(a);
}
static void test_round_trip_fields(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t n;
    Trace *t = whole(a);
    const char *s = trace_text(t, a, true, &n);
    Trace *u = read_ok(a, s, n);
    assert_int_equal(t->n_params, u->n_params);
    for (int i = 0; i < t->n_params; i++) {
        same_shape(&t->params[i].compute, &u->params[i].compute, a);
        same_shape(&t->params[i].rest, &u->params[i].rest, a);
        same_text(t->params[i].plan_name, u->params[i].plan_name);
        same_text(t->params[i].style, u->params[i].style);
        same_text(t->params[i].file, u->params[i].file);
        assert_int_equal(t->params[i].layer, u->params[i].layer);
        for (int k = 0; k < TRACE_MAX_DIMS; k++)
            same_text(t->params[i].cuts[k], u->params[i].cuts[k]);
    }
    assert_int_equal(t->n_values, u->n_values);
    for (int i = 0; i < t->n_values; i++) same_shape(&t->values[i].shape, &u->values[i].shape, a);
    assert_int_equal(u->values[1].n_numbers, 8);
    assert_memory_equal(t->values[1].numbers, u->values[1].numbers,
                        8 * sizeof(double)); /* bits, -0 and subnormal too */
    assert_int_equal(u->n_computes, 3);
    assert_int_equal(u->computes[1].input_step[0], 2);
    assert_int_equal(u->computes[1].input_step[1], -1);
    assert_true(u->computes[1].recompute && !u->computes[2].recompute);
    assert_true(u->computes[2].attends && !u->computes[1].attends);
    assert_true(u->computes[0].product && !u->computes[2].product);
    assert_string_equal(u->model_kind, "mlp");
    assert_true(u->computes[2].flops == 1.5e18);
    assert_int_equal(u->computes[2].microbatch, 4);
    assert_int_equal(u->n_collectives, 3);
    for (int i = 0; i < 3; i++)
        for (int64_t g = 0; g < groups_count(&t->collectives[i].groups); g++)
            assert_int_equal(groups_member(&t->collectives[i].groups, g, 3),
                             groups_member(&u->collectives[i].groups, g, 3));
    for (int i = 0; i < 3; i++) {
        const TraceCollective *x = &t->collectives[i], *y = &u->collectives[i];
        assert_int_equal(x->bytes_in, y->bytes_in);
        assert_int_equal(x->bytes_out, y->bytes_out);
        assert_int_equal(x->bytes_sent, y->bytes_sent);
    }
    assert_true(u->collectives[0].inferred);
    assert_int_equal(u->collectives[1].value_step, -1);
    assert_int_equal(u->moves[0].layer, 2);
    assert_int_equal(u->moves[0].line, 7);
    assert_string_equal(u->moves[0].file, "p.yaml");
    assert_true(isnan(u->checks[1].got) && u->checks[1].want == 0.1);
    assert_int_equal(u->checks[1].rank_error[1].rank, 191);
    assert_int_equal(u->memory[0].step, 2); /* the order of the array, not of the steps */
    assert_int_equal(u->memory[1].step, -1);
    assert_int_equal(u->memory[0].bytes, (int64_t)1 << 55);
    assert_int_equal(u->n_diags, 2);
    assert_int_equal(u->diags[0].loc.col, 18);
    assert_int_equal(u->diags[0].exit, 3);
    assert_string_equal(u->hardware, t->hardware);
    assert_int_equal(u->n_classes, 2);
    arena_free(a);
}
static void test_without_events(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t n;
    const char *s = trace_text(whole(a), a, false, &n);
    assert_null(strstr(s, "\"event\""));
    assert_null(strstr(s, "hardware"));
    Trace *u = read_ok(a, s, n);
    assert_int_equal(u->n_events, 0);
    arena_free(a);
}
static void test_empty_trace(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t n;
    Trace *t = trace_new(a);
    const char *s = trace_text(t, a, true, &n);
    assert_string_equal(s, "{\"schema\":\"shardproof/"
                           "1\",\"type\":\"run\",\"mesh\":{},\"groups\":{},\"ranks\":1,\"model\":{}"
                           ",\"pass\":\"forward\",\"executed\":false}\n"
                           "{\"schema\":\"shardproof/"
                           "1\",\"type\":\"verdict\",\"verdict\":null,\"pass\":0,\"suspect\":0,"
                           "\"fail\":0,\"undeclared\":[],\"unasked\":[]}\n");
    assert_null(read_ok(a, s, n)->verdict);
    arena_free(a);
}
/* With the index and without it the same parameter has a name: the first one that bears it in
 * either scheme. */
static void test_parameters_by_name(void **state) {
    (void)state;
    enum { N = 300 };
    Arena *a = arena_new();
    Trace *plain = trace_new(a), *quick = trace_new(a);
    for (int k = 0; k < 2; k++) {
        Trace *t = k ? quick : plain;
        for (int i = 0; i < N; i++) {
            TraceParam *p = ARENA_PUSH(a, t->params, t->n_params, t->cap_params);
            *p = (TraceParam){.plan_name = i % 3 ? arena_printf(a, "plan.%d", i % 250) : NULL};
            p->compute.name = arena_printf(
                a, "plan.%d", (i * 7) % N); /* names of one scheme are also used by the other */
        }
    }
    trace_index(quick);
    for (int i = -1; i <= N; i++) {
        const char *name = arena_printf(a, "plan.%d", i);
        const TraceParam *p = trace_param(plain, name), *q = trace_param(quick, name);
        assert_int_equal(p ? p - plain->params : -1, q ? q - quick->params : -1);
        assert_int_equal(p != NULL, i >= 0 && i < N);
    }
    assert_null(trace_param(quick, NULL));
    assert_null(trace_param(quick, ""));
    arena_free(a);
}
static void test_step_order(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t n;
    const char *s = trace_text(whole(a), a, true, &n), *end = s + n;
    int last = -1;
    bool memory_back = false;
    for (const char *line = s; line < end; line = strchr(line, '\n') + 1) {
        const char *step = strstr(line, "\"step\":"), *stop = strchr(line, '\n');
        if (!step || step > stop) continue;
        int at = atoi(step + 7);
        if (strstr(line, "\"parameters\"") && strstr(line, "\"parameters\"") < stop)
            memory_back = true; /* see above */
        else assert_true(at >= last);
        if (!memory_back) last = at;
    }
    assert_true(memory_back);
    arena_free(a);
}

/* ---- traces of others ---- */
static const char *const example[] = {
    "{\"schema\":\"shardproof/"
    "1\",\"type\":\"run\",\"plan\":\"llama3-8b-tp2\",\"hash\":\"...\",\"mesh\":{\"tp\":2},"
    "\"groups\":{},\"ranks\":2,\"model\":{\"D\":4096,\"H\":32},\"pass\":\"forward\",\"dtype\":"
    "\"f32\",\"backend\":\"virtual\",\"version\":\"0.1.0\"}",
    "{\"schema\":\"shardproof/"
    "1\",\"type\":\"param\",\"name\":\"blk.0.attn_q.weight\",\"global_shape\":[4096,4096],\"rest\":"
    "{\"tp\":\"shard(0)\"},\"compute\":{\"tp\":\"shard(0)\"},\"placements\":[\"Shard(0)\"],"
    "\"symbolic\":\"[H*d/tp, "
    "D]\",\"local\":[{\"ranks\":[0,1],\"shape\":[2048,4096]}],\"bytes\":33554432,\"matched_by\":{"
    "\"file\":\"plan.yaml\",\"line\":7}}",
    "{\"schema\":\"shardproof/"
    "1\",\"type\":\"value\",\"step\":4,\"name\":\"layers.0.q_proj\",\"pass\":\"forward\",\"global_"
    "shape\":[1,64,4096],\"symbolic\":\"[B, S, "
    "H*d/"
    "tp]\",\"layout\":{\"tp\":\"shard(2)\"},\"local\":[{\"ranks\":[0,1],\"shape\":[1,64,2048]}]}",
    "{\"schema\":\"shardproof/"
    "1\",\"type\":\"compute\",\"step\":4,\"op\":\"linear\",\"module\":\"blk.0.attn_q\",\"ranks\":["
    "0,1],\"inputs\":[\"layers.0.input_norm\"],\"output\":\"layers.0.q_proj\",\"flops\":1073741824,"
    "\"bytes\":35651584,\"pass\":\"forward\"}",
    "{\"schema\":\"shardproof/"
    "1\",\"type\":\"collective\",\"step\":9,\"op\":\"all_reduce\",\"axis\":\"tp\",\"groups\":[[0,1]"
    "],\"dtype\":\"f32\",\"reduce\":\"sum\",\"bytes_in\":1048576,\"bytes_out\":1048576,\"bytes_"
    "sent\":1048576,\"value\":\"layers.0.o_proj\",\"pass\":\"forward\",\"why\":\"row parallel: the "
    "sum over H*d is pending\",\"line\":11,\"inferred\":false}",
    "{\"schema\":\"shardproof/"
    "1\",\"type\":\"check\",\"step\":9,\"value\":\"layers.0.o_proj\",\"level\":2,\"ranks\":[0,1],"
    "\"max_abs\":1.2e-6,\"max_rel\":3.1e-7,\"bound\":8.0e-6,\"used\":0.15,\"verdict\":\"PASS\"}",
    "{\"schema\":\"shardproof/"
    "1\",\"type\":\"memory\",\"step\":9,\"ranks\":[0,1],\"category\":\"activations\",\"bytes\":"
    "4194304}",
    "{\"schema\":\"shardproof/"
    "1\",\"type\":\"diagnostic\",\"code\":\"E0203\",\"severity\":\"error\",\"message\":\"unknown "
    "style 'colwsie'\",\"file\":\"plan.yaml\",\"line\":7,\"column\":18,\"hint\":\"colwise\"}",
    "{\"schema\":\"shardproof/"
    "1\",\"type\":\"event\",\"rank\":0,\"step\":9,\"stream\":\"tp\",\"start\":1.25e-4,\"end\":1."
    "67e-4,\"exposed\":4.2e-5}",
    "{\"schema\":\"shardproof/"
    "1\",\"type\":\"verdict\",\"verdict\":\"equivalent\",\"worst\":{\"value\":\"layers.0.o_proj\","
    "\"used\":0.15},\"pass\":41,\"suspect\":0,\"fail\":0}",
};
enum { N_EXAMPLE = sizeof example / sizeof *example };

/* The documented example lines, letter for letter. */
static void test_contract_lines(void **state) {
    (void)state;
    Arena *a = arena_new();
    Str s = str_new(a);
    for (int i = 0; i < N_EXAMPLE; i++)
        str_addf(&s, "%s%s", example[i], i + 1 < N_EXAMPLE ? "\r\n" : "");
    Trace *t = read_ok(a, s.s, s.n);
    assert_string_equal(t->params[0].plan_name, "blk.0.attn_q.weight");
    assert_int_equal(t->params[0].rest.local[0].shape[0],
                     2048); /* at rest as in compute, where nothing else is said */
    assert_int_equal(t->collectives[0].groups.n_in, 1);
    assert_int_equal(groups_size(&t->collectives[0].groups), 2);
    assert_int_equal(t->collectives[0].value_step, -1);
    assert_string_equal(rankset_text(&t->events[0].ranks, a), "0");
    assert_string_equal(t->verdict, "equivalent");
    assert_null(t->computes[0].input_step);
    arena_free(a);
}
/* Every word of an enum is read back as the number that wrote it; what a foreign trace leaves out
 * is none of them. */
static void test_words(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    Trace *t = trace_new(a);
    enum { N = 8 };
    assert_true(N >= (int)N_PHASES && N >= (int)N_VALUE_ROLES);
    t->pass = PASS_TRAIN;
    for (int i = 0; i < N; i++)
        *ARENA_PUSH(a, t->values, t->n_values, t->cap_values) =
            (TraceValue){.step = i,
                         .shape = {.name = "x"},
                         .pass = (Phase)(i % N_PHASES),
                         .kind = (ValueRole)(i % N_VALUE_ROLES)};
    size_t n;
    char *s = trace_text(t, a, true, &n);
    Trace *back = trace_read(a, d, "x", s, n);
    assert_non_null(back);
    assert_int_equal(back->pass, PASS_TRAIN);
    for (int i = 0; i < N; i++) {
        assert_int_equal(back->values[i].pass, i % N_PHASES);
        assert_int_equal(back->values[i].kind, i % N_VALUE_ROLES);
    }
    assert_null(strstr(s, "\"pass\":null"));
    arena_free(a);
}
/* A name made from a subject is read back as that subject. */
static void test_subjects(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const struct {
        SubjectRole role;
        const char *of, *name;
    } rows[] = {{OF_ITSELF, "layers.0.x", "layers.0.x"},
                {OF_GRADIENT, "layers.0.x", "grad.layers.0.x"},
                {OF_GRADIENT, "gradient", "grad.gradient"},
                {OF_ITSELF, "gradient", "gradient"},
                {OF_PARAM_GRADIENT, "blk.0.attn_q.weight", "grad.param.blk.0.attn_q.weight"},
                {OF_ITSELF, "param.x", "param.x"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Subject s = {rows[i].role, rows[i].of}, back = subject_of(rows[i].name);
        assert_string_equal(subject_name(a, s), rows[i].name);
        assert_int_equal(back.role, rows[i].role);
        assert_string_equal(back.of, rows[i].of);
        assert_int_equal(subject_is_gradient(s), rows[i].role != OF_ITSELF);
        assert_int_equal(subject_is_gradient_of(s, "layers.0.x"), i == 1);
    }
    assert_null(subject_of(NULL).of);
    arena_free(a);
}
/* Groups as lists only: the strides behind them are found, whatever the order of the axes. */
static void test_listed_groups(void **state) {
    (void)state;
    static const struct {
        const char *groups;
        bool ok;
        int64_t count, size, last;
    } cases[] = {
        {"[[0,1,2,3],[4,5,6,7]]", true, 2, 4, 7},
        {"[[0,2],[1,3],[4,6],[5,7]]", true, 4, 2, 7},
        {"[[0,1,4,5],[2,3,6,7]]", true, 2, 4, 7},
        {"[[0,4,1,5],[2,6,3,7]]", false, 0, 0,
         0}, /* not ascending: a trace of ours has `grouping` */
        {"[\"0:8:1\"]", true, 1, 8, 7},
        {"[[0,1],[2,3],[4,5]]", true, 3, 2, 5},
        {"[[0,1],[2,4]]", false, 0, 0, 0},
        {"[[0,1,3]]", false, 0, 0, 0},
        {"[[1,2]]", true, 1, 2, 2}, /* others take no part */
        {"[[0,8]]", false, 0, 0, 0},
        {"[]", false, 0, 0, 0},
        {"[[]]", false, 0, 0, 0},
        {"7", false, 0, 0, 0},
        {"[[0,\"x\"]]", false, 0, 0, 0},
        {"{\"in\":[[8,1]],\"out\":[]}", true, 1, 8, 7},
        {"{\"in\":[[8,2]],\"out\":[]}", false, 0, 0, 0},
        {"{\"in\":[[2,1]],\"out\":[[2,2]],\"first\":4}", true, 2, 2, 7},
        {"{\"in\":[[2,1]],\"out\":[[2,2]],\"first\":5}", false, 0, 0, 0},
        {"{\"in\":[[0,1]],\"out\":[]}", false, 0, 0, 0},
        {"{\"in\":[[2,1],[2,2],[2,4],[2,8]],\"out\":[]}", false, 0, 0, 0},
        {"{\"in\":[[4611686018427387904,4611686018427387904]],\"out\":[]}", false, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *a = arena_new();
        Diags *d = diags_new(a);
        const char *s = arena_printf(
            a,
            "{\"schema\":\"shardproof/1\",\"type\":\"run\",\"mesh\":{\"x\":8},\"ranks\":8}\n"
            "{\"schema\":\"shardproof/"
            "1\",\"type\":\"collective\",\"step\":1,\"op\":\"x\",\"groups\":%s}\n"
            "{\"schema\":\"shardproof/1\",\"type\":\"verdict\",\"verdict\":null}\n",
            cases[i].groups);
        Trace *t = trace_read(a, d, "x", s, strlen(s));
        assert_int_equal(t != NULL, cases[i].ok);
        if (!t) {
            assert_int_equal(d->item[0].loc.line, 2);
        } else {
            const RankGroups *g = &t->collectives[0].groups;
            assert_int_equal(groups_count(g), cases[i].count);
            assert_int_equal(groups_size(g), cases[i].size);
            assert_int_equal(groups_member(g, cases[i].count - 1, cases[i].size - 1),
                             cases[i].last);
        }
        arena_free(a);
    }
}

/* ---- hostile traces ---- */
#define RUN "{\"schema\":\"shardproof/1\",\"type\":\"run\",\"mesh\":{\"tp\":4},\"ranks\":4}\n"
#define END "{\"schema\":\"shardproof/1\",\"type\":\"verdict\",\"verdict\":null}\n"
#define REC(rest) "{\"schema\":\"shardproof/1\",\"type\":" rest "}\n"
static const struct {
    const char *text;
    int line;
    const char *why;
} hostile[] = {
    {"", 0, "empty"},
    {"\n\n", 2, "empty"},
    {RUN, 1, "cut off"},
    {END, 1, "not \"run\""},
    {RUN RUN END, 2, "second run"},
    {RUN END END, 3, "after the verdict"},
    {RUN END "x", 3, "not JSON"},
    {RUN "[1]\n" END, 2, "object"},
    {RUN "{\"type\":\"value\"}\n" END, 2, "no \"schema\""},
    {"{\"type\":\"run\"}\n", 1, "no \"schema\""},
    {"{\"schema\":\"shardproof/2\",\"type\":\"run\"}\n", 1, "shardproof/1"},
    {"{\"schema\":\"other/1\",\"type\":\"run\"}\n", 1, "other/1"},
    {"{\"schema\":7,\"type\":\"run\"}\n", 1, "not a text"},
    {"{\"schema\":\"shardproof/1\"}\n", 1, "without \"type\""},
    {"{\"schema\":\"shardproof/1\",\"type\":\"run\",\"mesh\":{\"tp\":4},\"ran", 1, "not JSON"},
    {REC("\"run\",\"ranks\":4"), 1, "without \"mesh\""},
    {REC("\"run\",\"mesh\":{\"tp\":4},\"ranks\":5"), 1, "the mesh has 4"},
    {REC("\"run\",\"mesh\":{\"tp\":0},\"ranks\":0"), 1, "outside"},
    {REC("\"run\",\"mesh\":{\"tp\":-4},\"ranks\":4"), 1, "outside"},
    {REC("\"run\",\"mesh\":{\"a\":1048576,\"b\":2},\"ranks\":4"), 1, "too large"},
    {REC("\"run\",\"mesh\":[4],\"ranks\":4"), 1, "not an object"},
    {REC("\"run\",\"mesh\":{\"tp\":4.5},\"ranks\":4"), 1, "whole number"},
    {REC("\"run\",\"mesh\":{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":"
         "1,\"j\":1,\"k\":1,\"l\":1,\"m\":1},\"ranks\":1"),
     1, "more than 12"},
    {RUN REC("\"value\",\"step\":0,\"name\":\"x\"") END, 2, "global_shape"},
    {RUN REC("\"value\",\"step\":\"0\",\"name\":\"x\",\"global_shape\":[]") END, 2, "whole number"},
    {RUN REC("\"value\",\"step\":2000000000,\"name\":\"x\",\"global_shape\":[]") END, 2, "outside"},
    {RUN REC("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[1,2,3,4,5,6,7,8,9]") END, 2,
     "more than 8"},
    {RUN REC("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[-1]") END, 2, "outside"},
    {RUN REC("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[2],\"dims\":[\"a\",\"b\"]") END,
     2, "2 entries for 1"},
    {RUN REC("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[2],\"local\":[{\"ranks\":[0],"
             "\"shape\":[1,1]}]") END,
     2, "without 1 dims"},
    {RUN REC("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[2],\"local\":[{\"ranks\":[4],"
             "\"shape\":[1]}]") END,
     2, "the mesh has not"},
    {RUN REC("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[2],\"local\":[{\"ranks\":[1,0],"
             "\"shape\":[1]}]") END,
     2, "ascend"},
    {RUN REC("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[2],\"local\":[3]") END, 2,
     "not an object"},
    {RUN REC("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[2],\"layout\":{\"tp\":3}") END,
     2, "not a text"},
    {RUN REC("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[2],\"numbers\":[\"q\"]") END, 2,
     "not a number"},
    {RUN REC("\"memory\",\"step\":0,\"ranks\":[\"0:9223372036854775807:1\"],\"category\":\"x\","
             "\"bytes\":1") END,
     2, "first:stop"},
    {RUN REC("\"memory\",\"step\":0,\"ranks\":[\"3:1:1\"],\"category\":\"x\",\"bytes\":1") END, 2,
     "first:stop"},
    {RUN REC("\"memory\",\"step\":0,\"ranks\":[\"0:4:0\"],\"category\":\"x\",\"bytes\":1") END, 2,
     "first:stop"},
    {RUN REC("\"memory\",\"step\":0,\"ranks\":[\"0:2:1\",\"0:2:1\"],\"category\":\"x\",\"bytes\":1")
         END,
     2, "the mesh has not"},
    {RUN REC("\"memory\",\"step\":0,\"ranks\":[0],\"category\":\"x\",\"bytes\":-1") END, 2,
     "outside"},
    {RUN REC("\"compute\",\"step\":0,\"op\":\"x\",\"inputs\":[\"a\"],\"input_step\":[0,1]") END, 2,
     "2 entries for 1"},
    {RUN REC("\"compute\",\"step\":0,\"op\":\"x\",\"recompute\":1") END, 2, "true or false"},
    {RUN REC(
         "\"check\",\"step\":0,\"value\":\"x\",\"level\":2,\"verdict\":\"FAIL\",\"terms\":[1,2],"
         "\"term_ranks\":[0]") END,
     2, "not a rank per term"},
    {RUN REC("\"event\",\"step\":0,\"stream\":\"tp\",\"start\":2,\"end\":1") END, 2, "no sense"},
    {RUN REC("\"event\",\"step\":0,\"stream\":\"tp\",\"start\":0,\"end\":\"inf\"") END, 2,
     "no sense"},
    {RUN REC("\"event\",\"rank\":4,\"step\":0,\"stream\":\"tp\",\"start\":0,\"end\":1") END, 2,
     "outside"},
    {RUN REC("\"diagnostic\",\"severity\":\"bad\"") END, 2, "severity"},
    {RUN REC("\"move\",\"step\":1,\"op\":\"x\",\"pass\":\"sideways\"") END, 2,
     "no trace says 'sideways'"},
    {RUN REC("\"value\",\"step\":1,\"name\":\"x\",\"global_shape\":[1],\"kind\":\"odd\"") END, 2,
     "no trace says 'odd'"},
    {RUN REC("\"check\",\"step\":0,\"value\":\"x\",\"verdict\":\"FAIL\",\"errors\":[{\"rank\":9,"
             "\"error\":1}]") END,
     2, "outside"},
    {RUN "{\"schema\":\"shardproof/1\",\"schema\":\"shardproof/1\",\"type\":\"value\"}\n" END, 2,
     "not JSON"},
};
static void test_hostile(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        Arena *a = arena_new();
        Diags *d = diags_new(a);
        Trace *t = trace_read(a, d, "x.jsonl", hostile[i].text, strlen(hostile[i].text));
        if (t || !strstr(d->item[0].message, hostile[i].why))
            print_error("case %zu: %s", i, t ? "was read\n" : d->item[0].message);
        assert_null(t);
        assert_int_equal(d->n, 1);
        assert_string_equal(d->item[0].code, "E0109");
        assert_int_equal(d->item[0].loc.line, hostile[i].line);
        assert_non_null(strstr(d->item[0].message, hostile[i].why));
        arena_free(a);
    }
}
/* Every prefix of a trace is refused, and no single changed byte crashes the reader. */
static void test_cut_and_bent(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t n;
    char *s = trace_text(whole(a), a, true, &n);
    for (size_t k = 0; k + 1 < n; k += 1 + k / 64) {
        Arena *b = arena_new();
        Diags *d = diags_new(b);
        assert_null(trace_read(b, d, "x", s, k));
        assert_int_equal(diags_exit(d), 3);
        arena_free(b);
    }
    static const char bytes[] = "\0\"{}[]9-,:n\n\xff";
    for (size_t k = 0; k < n; k += 7) {
        Arena *b = arena_new();
        char old = s[k];
        s[k] = bytes[k / 7 % (sizeof bytes - 1)];
        Trace *t = trace_read(b, diags_new(b), "x", s, n);
        if (t) trace_text(t, b, true, NULL);
        s[k] = old;
        arena_free(b);
    }
    arena_free(a);
}
static void test_later_version(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *s = "\xEF\xBB\xBF" RUN REC("\"hologram\",\"step\":-77") "\n  \n" REC(
        "\"memory\",\"step\":3,\"ranks\":[0,3],\"category\":\"x\",\"bytes\":1,\"colour\":{\"a\":[1,"
        "2]}") END;
    Trace *t = read_ok(a, s, strlen(s));
    assert_int_equal(t->n_memory, 1);
    assert_string_equal(rankset_text(&t->memory[0].ranks, a), "0,3");
    arena_free(a);
}
static void test_write_file(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    char path[] = "/tmp/test_trace_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    Trace *t = whole(a);
    assert_true(trace_write(t, d, path));
    size_t n, m;
    char *s = file_read(a, d, path, 1 << 20, (Loc){NULL, 0, 0}, &n);
    assert_string_equal(s, trace_text(t, a, true, &m));
    assert_false(trace_write(t, d, "/nowhere/at/all"));
    assert_int_equal(diags_exit(d), 4);
    unlink(path);
    arena_free(a);
}
/* 5,000 steps on 8,192 ranks: a few tens of ms; the test only refuses what would be absurd. */
static void test_large(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = trace_new(a);
    t->ranks = 8192;
    t->n_axes = 1;
    t->axes = arena_memdup(a, (struct TraceAxis[]){{"tp", 8192}}, sizeof *t->axes);
    for (int i = 0; i < 5000; i++) {
        TraceCompute *c = ARENA_PUSH(a, t->computes, t->n_computes, t->cap_computes);
        *c = (TraceCompute){.step = i,
                            .op = "linear",
                            .ranks = rankset_range(a, 0, 8192, 1),
                            .flops = 1e15,
                            .pass = PHASE_FORWARD};
        TraceCollective *k = ARENA_PUSH(a, t->collectives, t->n_collectives, t->cap_collectives);
        *k = (TraceCollective){.step = i,
                               .op = "all_gather",
                               .axes = "tp",
                               .groups = {1, 2, {8}, {1}, {128, 8}, {64, 8}, 0}};
    }
    size_t n;
    const char *s = NULL;
    for (Timed all = within(5000); timed(&all);) s = trace_text(t, a, true, &n);
    assert_non_null(strstr(s, "\"groups\":{\"count\":1024,\"size\":8,\"in\":[[8,1]],\"out\":[[128,"
                              "64],[8,8]]},\"grouping\""));
    assert_int_equal(read_ok(a, s, n)->n_collectives, 5000);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranksets),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_placements),
        cmocka_unit_test(test_parameters_by_name),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_round_trip_text),
        cmocka_unit_test(test_round_trip_fields),
        cmocka_unit_test(test_without_events),
        cmocka_unit_test(test_empty_trace),
        cmocka_unit_test(test_step_order),
        cmocka_unit_test(test_contract_lines),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_subjects),
        cmocka_unit_test(test_listed_groups),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_cut_and_bent),
        cmocka_unit_test(test_later_version),
        cmocka_unit_test(test_write_file),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
