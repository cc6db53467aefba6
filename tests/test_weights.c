/* The weights room: random numbers (the same however a tensor is cut, the same in float32 and
 * float64, as random as they claim), safetensors files (golden ones, shards, other schemes, and
 * hostile ones), and what is refused when a run's tensors are bound and loaded. Golden files are in
 * tests/golden/hf, or else in ../shared/golden/hf. */
#include "base/file.h"
#include "weights/weights.h"
#include <Random123/philox.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include "support/support.h"
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { ALL_PARTS = PART_EMBEDDING | PART_BLOCKS | PART_NORM | PART_HEAD | PART_LOSS };

static Plan *new_plan(Arena *a) {
    Plan *p = plan_new(a, "test.yaml");
    p->input_gradient = true;
    return p;
}

static Plan *golden_plan(Arena *a, const char *name) {
    Plan *p = new_plan(a);
    p->hf_config = golden_path(a, "hf/%s/%s", name, "config.json");
    p->weights = golden_path(a, "hf/%s/%s", name, "model.safetensors");
    p->inputs = golden_path(a, "hf/%s/%s", name, "values.safetensors");
    p->layers_last = -1;
    p->parts = ALL_PARTS;
    return p;
}

static const char small_config[] =
    "{\"hidden_size\": 12, \"num_attention_heads\": 6, \"num_key_value_heads\": 3, \"head_dim\": "
    "4, \"intermediate_size\": 7, \"vocab_size\": 11, \"num_hidden_layers\": 1, \"qk_norm\": true, "
    "\"o_bias\": true}";

static Plan *small_plan(Arena *a) {
    Plan *p = new_plan(a);
    p->inline_config = small_config;
    p->parts = ALL_PARTS;
    p->batch = 3;
    p->sequence = 13;
    return p;
}

static Model *must_build(Arena *a, const Plan *p) {
    Diags *d = diags_new(a);
    Model *m = model_build(a, d, p, NULL);
    if (diags_errors(d)) diags_print(d, stderr, false);
    assert_non_null(m);
    return m;
}

static Weights *must_open(Arena *a, const Plan *p, const Model *m) {
    Diags *d = diags_new(a);
    Weights *w = weights_open(a, d, p, m);
    if (diags_errors(d)) diags_print(d, stderr, false);
    assert_non_null(w);
    return w;
}

/* A folder of its own for one test. */
static const char *new_folder(Arena *a) {
    char *path = arena_strdup(a, "/tmp/test_weights_XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}
static void remove_folder(Arena *a, const char *path) {
    assert_int_equal(system(arena_printf(a, "rm -r '%s'", path)), 0);
}

static bool has_error(const Diags *d, const char *code, const char *text) {
    for (int i = 0; i < d->n; i++)
        if (!strcmp(d->item[i].code, code) && (!text || strstr(d->item[i].message, text)))
            return true;
    diags_print(d, stderr, false);
    return false;
}

/* ---- random numbers ---- */

static void test_philox(void **state) {
    (void)state;
    RandomStream r = {.seed = 0x0123456789abcdef, .stream = 0xfedcba9876543210};
    /* Across the end of the low word of the counter too. */
    static const int64_t starts[] = {0, 3, (int64_t)0xfffffff0 * 4 + 1};
    for (int s = 0; s < 3; s++) {
        int64_t got[1000];
        random_ints(&r, starts[s], 1000, 1 << 20, got);
        for (int i = 0; i < 1000; i++) {
            uint64_t at = (uint64_t)(starts[s] + i), block = at / 4;
            philox4x32_ctr_t c = {
                {(uint32_t)block, (uint32_t)(block >> 32), 0x76543210, 0xfedcba98}};
            philox4x32_key_t k = {{0x89abcdef, 0x01234567}};
            assert_int_equal(got[i], philox4x32(c, k).v[at % 4] >> 12);
        }
    }
}

static void test_pieces(void **state) {
    (void)state;
    enum { N = 3001 };
    RandomStream r = {.seed = 7, .stream = 99, .mean = 0.013, .scale = 0.37};
    float whole[N], part[N];
    double wide[N];
    random_fill(&r, 12345, N, DT_F32, whole);
    random_fill(&r, 12345, N, DT_F64, wide);
    for (int i = 0; i < N; i++) assert_true((double)whole[i] == wide[i]);
    for (int piece = 1; piece < 400; piece += 7) {
        for (int at = 0; at < N; at += piece)
            random_fill(&r, 12345 + at, at + piece < N ? piece : N - at, DT_F32, part + at);
        assert_memory_equal(whole, part, sizeof whole);
    }
}

static void test_statistics(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    double *x = base_malloc(N * sizeof *x);
    for (uint64_t seed = 0; seed < 4; seed++) {
        RandomStream r = {.seed = seed, .stream = 5, .mean = 0.25, .scale = 2};
        double sum = 0, square = 0, low = 1e9, high = -1e9, lag = 0;
        int64_t bins[16] = {0};
        random_fill(&r, 0, N, DT_F64, x);
        for (int i = 0; i < N; i++) {
            double y = x[i] - 0.25;
            sum += y;
            square += y * y;
            if (i) lag += y * (x[i - 1] - 0.25);
            low = fmin(low, y);
            high = fmax(high, y);
            bins[(int)((y + 2) / 4.0000001 * 16)]++;
        }
        assert_true(fabs(sum / N) < 5 * 2 / sqrt(3.0 * N));
        assert_true(fabs(square / N - 4.0 / 3) < 0.01);
        assert_true(fabs(lag / N) < 5 * (4.0 / 3) / sqrt(N));
        assert_true(low >= -2 && low < -1.9999 && high <= 2 && high > 1.9999);
        double chi = 0;
        for (int i = 0; i < 16; i++) chi += pow((double)bins[i] - N / 16.0, 2) / (N / 16.0);
        assert_true(chi < 45); /* 15 degrees of freedom: p < 1e-4 */
    }
    free(x);
}

/* Streams of different tensors and seeds have nothing in common, and every kind has the spread that
 * it should. */
static void test_streams(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = small_plan(a);
    Model *m = must_build(a, p);
    const Graph *g = &m->g;
    RandomStream wq = random_stream(g, graph_find(g, "model.layers.0.self_attn.q_proj.weight"), 1);
    RandomStream wo = random_stream(g, graph_find(g, "model.layers.0.self_attn.o_proj.weight"), 1);
    RandomStream norm = random_stream(g, graph_find(g, "model.layers.0.input_layernorm.weight"), 1);
    RandomStream bias = random_stream(g, graph_find(g, "model.layers.0.self_attn.o_proj.bias"), 1);
    RandomStream table = random_stream(g, graph_find(g, "model.embed_tokens.weight"), 1);
    RandomStream head = random_stream(g, graph_find(g, "lm_head.weight"), 1);
    assert_true(fabs(wq.scale - sqrt(3.0 / 12)) < 1e-12); /* D */
    assert_true(fabs(wo.scale - sqrt(3.0 / 24)) < 1e-12); /* H*d */
    assert_true(fabs(head.scale - sqrt(3.0 / 12)) < 1e-12);
    assert_true(fabs(table.scale - sqrt(3.0)) < 1e-12);
    assert_true(norm.mean > 1 && norm.mean < 1.1 && norm.scale < 0.5);
    assert_true(bias.mean != 0 && bias.scale == 0.1);
    assert_true(wq.stream != wo.stream && wq.stream != norm.stream);
    float x[64], y[64];
    random_fill(&wq, 0, 64, DT_F32, x);
    wq.seed = 2;
    random_fill(&wq, 0, 64, DT_F32, y);
    int equal = 0;
    for (int i = 0; i < 64; i++) equal += x[i] == y[i];
    assert_true(equal < 3);
    arena_free(a);
}

static void test_random_run(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = small_plan(a);
    Model *m = must_build(a, p);
    Weights *w = must_open(a, p, m);
    Diags *d = diags_new(a);
    int64_t ids[39], labels[39];
    double weights[39], sum = 0;
    assert_true(weights_load(w, d, graph_find(&m->g, "input_ids"), DT_I64, ids));
    assert_true(weights_load(w, d, graph_find(&m->g, "labels"), DT_I64, labels));
    assert_true(weights_load(w, d, graph_find(&m->g, "loss_weights"), DT_F64, weights));
    int valid = 0;
    for (int i = 0; i < 39; i++) {
        assert_true(ids[i] >= 0 && ids[i] < 11);
        assert_true((labels[i] >= 0 && labels[i] < 11) || labels[i] == -100);
        assert_true((weights[i] == 0) == (labels[i] == -100));
        valid += labels[i] != -100;
        sum += weights[i];
    }
    assert_true(valid >= 27 && valid < 39 && fabs(sum - 1) < 1e-14);
    for (int b = 0; b < 3; b++) assert_true(labels[13 * b] != -100);
    for (int t = 0; t < m->g.nt; t++) {
        const GTensor *g = &m->g.t[t];
        if (g->kind == KIND_ACTIVATION) continue;
        int64_t n = 1;
        for (int l = 0; l < g->nd; l++) n *= g->size[l];
        double *x = ARENA_ARRAY(a, double, n);
        float *y = ARENA_ARRAY(a, float, n);
        assert_non_null(weights_source(w, t));
        if (g->is_int) continue;
        assert_true(weights_load(w, d, t, DT_F64, x) && weights_load(w, d, t, DT_F32, y));
        for (int64_t i = 0; i < n; i++) assert_true(y[i] == (float)x[i]);
    }
    assert_string_equal(weights_source(w, graph_find(&m->g, "labels")), "random");
    weights_close(w);
    arena_free(a);
}

/* Any part of a tensor is what the whole has there, whatever it comes from. */
static void check_parts(Arena *a, Weights *w, const Model *m) {
    Diags *d = diags_new(a);
    for (int t = 0; t < m->g.nt; t++) {
        const GTensor *g = &m->g.t[t];
        Dtype dt = g->is_int ? DT_I64 : DT_F64;
        int64_t n = 1;
        if (g->kind == KIND_ACTIVATION) continue;
        for (int l = 0; l < g->nd; l++) n *= g->size[l];
        int64_t *all = ARENA_ARRAY(a, int64_t, n), *part = ARENA_ARRAY(a, int64_t, n);
        assert_true(weights_load(w, d, t, dt, all)); /* eight bytes each, as bits */
        for (int64_t first = 0; first < n; first += 1 + n / 5)
            for (int64_t k = 1; first + k <= n; k = 3 * k + 1) {
                WeightsPart p = {t, dt, 0, first, k};
                memset(part, 0x55, (size_t)k * sizeof *part);
                assert_true(weights_part(w, d, &p, part));
                assert_memory_equal(part, all + first, (size_t)k * sizeof *part);
            }
    }
    assert_false(weights_failed(w));
}
static void test_parts(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *plans[] = {small_plan(a), golden_plan(a, "qwen3")};
    for (int i = 0; i < 2; i++) {
        Model *m = must_build(a, plans[i]);
        Weights *w = must_open(a, plans[i], m);
        check_parts(a, w, m);
        weights_close(w);
    }
    arena_free(a);
}

/* ---- golden files ---- */

static void test_golden_weights(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = golden_plan(a, "qwen3");
    Model *m = must_build(a, p);
    Weights *w = must_open(a, p, m);
    Diags *d = diags_new(a);
    double *x = ARENA_ARRAY(a, double, 100000);
    float *y = ARENA_ARRAY(a, float, 100000);
    int t = graph_find(&m->g, "model.layers.1.self_attn.q_proj.weight");
    assert_true(weights_load(w, d, t, DT_F64, x) && weights_load(w, d, t, DT_F32, y));
    assert_true(x[0] == 0.05798900127410889 && x[1] == 0.13125137984752655 &&
                x[4607] == -0.16150057315826416);
    for (int i = 0; i < 4608; i++) assert_true((double)y[i] == x[i]);
    assert_string_equal(weights_source(w, t),
                        "model.safetensors:model.layers.1.self_attn.q_proj.weight");
    t = graph_find(&m->g, "layers.0.attention.k_norm.weight");
    assert_true(weights_load(w, d, t, DT_F64, x));
    assert_true(x[0] == 0.7738375663757324 && x[15] == 0.9575936198234558);
    int64_t ids[84];
    assert_true(weights_load(w, d, graph_find(&m->g, "input_ids"), DT_I64, ids));
    assert_true(ids[0] == 89 && ids[83] == 14);
    assert_true(weights_load(w, d, graph_find(&m->g, "labels"), DT_I64, ids));
    assert_true(ids[0] == 22 && ids[27] == 99 && ids[55] == 81 && ids[83] == -100);
    assert_true(weights_load(w, d, graph_find(&m->g, "loss_weights"), DT_F64, x));
    assert_true(x[0] == 1.0 / 72 && x[83] == 0); /* 27 + 19 + 26 labels */
    weights_close(w);
    /* Blocks alone: the same file has the input of any layer. */
    p->parts = PART_BLOCKS;
    m = must_build(a, p);
    w = must_open(a, p, m);
    assert_true(weights_load(w, d, graph_find(&m->g, "layers.0.input"), DT_F64, x));
    assert_true(x[0] == 1.0021084547042847 && x[4031] == 0.2476247251033783);
    weights_close(w);
    arena_free(a);
}

static void test_every_golden_case(void **state) {
    (void)state;
    static const char *const cases[] = {"llama-bias", "llama-gqa",    "llama-odd",
                                        "llama-wide", "llama31-rope", "qwen2"};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        Arena *a = arena_new();
        Plan *p = golden_plan(a, cases[c]);
        Model *m = must_build(a, p);
        assert_false(m->dims.rope_interleaved);
        Weights *w = must_open(a, p, m);
        Diags *d = diags_new(a);
        double *x = ARENA_ARRAY(a, double, 100000);
        for (int t = 0; t < m->g.nt; t++)
            if (m->g.t[t].kind != KIND_ACTIVATION)
                assert_true(weights_load(w, d, t, m->g.t[t].is_int ? DT_I64 : DT_F64, x));
        weights_close(w);
        arena_free(a);
    }
}

/* ---- files of our own ---- */

/* Writes the parameters of a model under the names of a scheme; `skip` leaves one out. */
static void write_params(Arena *a, const Model *m, const char *path, Names scheme,
                         const char *prefix, const char *skip, double first) {
    StWriter *s = st_writer(a, diags_new(a), path);
    assert_non_null(s);
    for (int pass = 0; pass < 2; pass++)
        for (int t = 0; t < m->g.nt; t++) {
            const GTensor *g = &m->g.t[t];
            int n;
            int64_t shape[LAYOUT_MAX_DIMS], count = 1;
            if (g->kind != KIND_PARAM || (skip && !strcmp(skip, g->name))) continue;
            graph_stored_shape(g, &n, shape);
            for (int i = 0; i < n; i++) count *= shape[i];
            if (!pass) {
                st_declare(s, arena_printf(a, "%s%s", prefix, names_to_scheme(a, scheme, g->name)),
                           DT_F64, n, shape);
                continue;
            }
            for (int64_t i = 0; i < count; i++)
                st_data(s, &(double){i ? t : first}, sizeof(double));
        }
    assert_true(st_commit(s));
}

static void test_schemes(void **state) {
    (void)state;
    for (int scheme = 0; scheme < NAMES_COUNT; scheme++) {
        Arena *a = arena_new();
        const char *folder = new_folder(a);
        Plan *p = small_plan(a);
        p->names = (Names)((scheme + 1) % NAMES_COUNT); /* that of the plan does not matter */
        Model *m = must_build(a, p);
        write_params(a, m, arena_printf(a, "%s/model.safetensors", folder), (Names)scheme,
                     "initial.", NULL, 3.5);
        p->weights = folder; /* a folder stands for its model.safetensors */
        p->weights_prefix = "initial.";
        m = must_build(a, p);
        bool meta = scheme == NAMES_TORCHTITAN || scheme == NAMES_TORCHTUNE || scheme == NAMES_GGUF;
        assert_int_equal(m->dims.rope_interleaved, meta);
        Weights *w = must_open(a, p, m);
        double x[24];
        int t = graph_find(&m->g, "model.layers.0.self_attn.q_norm.weight");
        assert_true(weights_load(w, diags_new(a), t, DT_F64, x));
        assert_true(x[0] == 3.5 && x[3] == t);
        weights_close(w);
        p->rope_interleaved = 0;
        assert_false(must_build(a, p)->dims.rope_interleaved);
        p->rope_interleaved = -1;
        p->weights_names = "gguf";
        assert_true(must_build(a, p)->dims.rope_interleaved);
        Diags *d = diags_new(a);
        w = weights_open(a, d, p, m);
        assert_int_equal(w != NULL, scheme == NAMES_GGUF);
        weights_close(w);
        remove_folder(a, folder);
        arena_free(a);
    }
}

static void test_missing_and_misshaped(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *folder = new_folder(a), *file = arena_printf(a, "%s/w.safetensors", folder);
    Plan *p = small_plan(a);
    Model *m = must_build(a, p);
    write_params(a, m, file, NAMES_HF, "", "model.norm.weight", 1);
    p->weights = file;
    m = must_build(a, p);
    Diags *d = diags_new(a);
    assert_null(weights_open(a, d, p, m));
    assert_int_equal(diags_errors(d), 1);
    assert_true(has_error(d, "E0502", "model.norm.weight"));
    /* Another width: all that disagree are told, with both shapes. */
    p->inline_config = "{\"hidden_size\": 12, \"num_attention_heads\": 6, \"num_key_value_heads\": "
                       "3, \"head_dim\": 4, \"intermediate_size\": 8, \"vocab_size\": 11, "
                       "\"num_hidden_layers\": 1, \"qk_norm\": true, \"o_bias\": true}";
    p->parts = PART_BLOCKS;
    m = must_build(a, p);
    d = diags_new(a);
    assert_null(weights_open(a, d, p, m));
    assert_int_equal(diags_errors(d), 3);
    assert_true(has_error(d, "E0503", "[7, 12]") && has_error(d, "E0503", "[8, 12]"));
    remove_folder(a, folder);
    arena_free(a);
}

static void test_not_finite(void **state) {
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1e300};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        const char *folder = new_folder(a), *file = arena_printf(a, "%s/w.safetensors", folder);
        Plan *p = small_plan(a);
        Model *m = must_build(a, p);
        write_params(a, m, file, NAMES_HF, "", NULL, bad[i]);
        p->weights = file;
        m = must_build(a, p);
        Weights *w = must_open(a, p, m);
        double x[200];
        Diags *d = diags_new(a);
        int t = graph_find(&m->g, "lm_head.weight");
        assert_false(weights_load(w, d, t, DT_F32, x));
        assert_true(has_error(d, "E0504", "lm_head.weight") && has_error(d, "E0504", "[0, 0]"));
        assert_int_equal(weights_load(w, d, t, DT_F64, x), i == 3); /* too large for float32 only */
        weights_close(w);
        remove_folder(a, folder);
        arena_free(a);
    }
}

static void test_ids(void **state) {
    (void)state;
    static const struct {
        int64_t id, label;
        bool ids_ok, labels_ok;
    } want[] = {{0, 10, true, true},
                {11, 0, false, true},
                {-1, -100, false, true},
                {3, -1, true, false},
                {3, 11, true, false}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        Arena *a = arena_new();
        const char *folder = new_folder(a), *file = arena_printf(a, "%s/in.safetensors", folder);
        StWriter *s = st_writer(a, diags_new(a), file);
        int64_t shape[] = {2, 2}, ids[] = {1, 1, want[i].id, 1},
                labels[] = {1, want[i].label, 1, 1};
        st_declare(s, "input_ids", DT_I64, 2, shape);
        st_declare(s, "labels", DT_I64, 2, shape);
        st_data(s, ids, sizeof ids);
        st_data(s, labels, sizeof labels);
        assert_true(st_commit(s));
        Plan *p = small_plan(a);
        p->inputs = file;
        p->batch = p->sequence = -1; /* the sizes follow from the file */
        Model *m = must_build(a, p);
        assert_int_equal(m->dims.B, 2);
        assert_int_equal(m->dims.S, 2);
        Weights *w = must_open(a, p, m);
        Diags *d = diags_new(a);
        int64_t x[4];
        assert_int_equal(weights_load(w, d, graph_find(&m->g, "input_ids"), DT_I64, x),
                         want[i].ids_ok);
        if (!want[i].ids_ok) assert_true(has_error(d, "E0507", "[1, 0]"));
        assert_int_equal(weights_load(w, d, graph_find(&m->g, "labels"), DT_I64, x),
                         want[i].labels_ok);
        if (!want[i].labels_ok) assert_true(has_error(d, "E0507", "[0, 1]"));
        weights_close(w);
        p->batch = 5; /* the plan says otherwise */
        d = diags_new(a);
        assert_null(weights_open(a, d, p, must_build(a, p)));
        assert_true(has_error(d, "E0503", "[2, 2]"));
        p->parts = PART_BLOCKS;
        d = diags_new(a);
        assert_null(weights_open(a, d, p, must_build(a, p)));
        assert_true(has_error(d, "E0502", "layers.0.input"));
        assert_non_null(d->item[0].hint); /* what such a file is asked for, not a checkpoint */
        assert_non_null(strstr(d->item[0].hint, "a file of inputs may have `layers.0.input`"));
        remove_folder(a, folder);
        arena_free(a);
    }
}

/* Inputs with an entry per training step, those that are the same in every step, and too many
 * steps. */
static void test_steps(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *folder = new_folder(a), *file = arena_printf(a, "%s/in.safetensors", folder);
    StWriter *s = st_writer(a, diags_new(a), file);
    int64_t shape[] = {3, 2, 2}, ids[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11},
            labels[12] = {0};
    for (int i = 0; i < 12; i++) labels[i] = i < 4 ? i : i < 7 ? -100 : i < 8 ? 7 : -100;
    st_declare(s, "input_ids", DT_I64, 3, shape);
    st_declare(s, "labels", DT_I64, 3, shape);
    st_data(s, ids, sizeof ids);
    st_data(s, labels, sizeof labels);
    assert_true(st_commit(s));
    Plan *p = small_plan(a);
    p->inputs = file;
    p->batch = p->sequence = -1;
    Model *m = must_build(a, p);
    assert_true(m->dims.B == 2 && m->dims.S == 2);
    Weights *w = must_open(a, p, m);
    Diags *d = diags_new(a);
    int in = graph_find(&m->g, "input_ids"), weights = graph_find(&m->g, "loss_weights");
    int64_t x[4];
    double y[4], *one = base_malloc(11 * 12 * 8), *two = base_malloc(11 * 12 * 8);
    for (int step = 0; step < 2; step++) {
        assert_true(weights_load_step(w, d, in, DT_I64, step, x));
        assert_memory_equal(x, ids + 4 * step, sizeof x);
        assert_true(weights_load_step(w, d, weights, DT_F64, step, y));
        for (int i = 0; i < 4; i++) assert_true(y[i] == (step == 0 ? 0.25 : i == 3 ? 1 : 0));
    }
    assert_true(weights_load(w, d, in, DT_I64, x));
    assert_memory_equal(x, ids, sizeof x);
    int table = graph_find(&m->g, "model.embed_tokens.weight");
    assert_true(weights_load_step(w, d, table, DT_F64, 0, one) &&
                weights_load_step(w, d, table, DT_F64, 7, two));
    assert_memory_equal(one, two, 11 * 12 * 8);
    assert_int_equal(diags_errors(d), 0);
    assert_false(weights_load_step(w, d, in, DT_I64, 2, x));
    assert_true(has_error(d, "E0507", "[2, 1, 1]"));
    assert_false(weights_load_step(w, d, weights, DT_F64, 2, y));
    assert_true(has_error(d, "E0507", "the loss has no token"));
    assert_false(weights_load_step(w, d, in, DT_I64, 3, x));
    assert_true(has_error(d, "E0503", "3 steps, not of 4"));
    free(one);
    free(two);
    weights_close(w);
    remove_folder(a, folder);
    arena_free(a);
}

/* ---- reading ---- */

/* Writes a file of an 8-byte length, a header and some data. length < 0: that of the header. */
static void write_raw(const char *path, const char *header, int64_t length, size_t data) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    uint64_t n = length < 0 ? strlen(header) : (uint64_t)length;
    for (int i = 0; i < 8; i++) fputc((int)(n >> 8 * i & 255), f);
    fputs(header, f);
    for (size_t i = 0; i < data; i++) fputc((int)(i * 37 & 255), f);
    fclose(f);
}

/* Headers and how much data follows. */
static const struct {
    const char *header;
    int64_t length;
    size_t data;
    const char *text; /* NULL: accepted */
} headers[] = {
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", -1, 8, NULL},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   ", -1, 8, NULL},
    {"{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":["
     "0,1]}}",
     -1, 1, NULL},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[0,0]},\"b\":{\"dtype\":\"F32\","
     "\"shape\":[1],\"data_offsets\":[0,4]}}",
     -1, 4, NULL},
    {"{}", -1, 0, NULL},
    {"", -1, 0, "too short"},
    {"{}", 0, 0, "not JSON"},
    {"{}", 1000, 0, "longer than the file"},
    {"{}", INT64_MAX, 0, "100 MB"},
    {"{}", 100000001, 0, "100 MB"},
    {"not json at all", -1, 0, "not JSON"},
    {"[1, 2, 3]", -1, 0, "no JSON object"},
    {"{\"a\":3}", -1, 0, "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", -1, 8, "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", -1, 8, "lacks"},
    {"{\"a\":{\"dtype\":\"Q4\",\"shape\":[2],\"data_offsets\":[0,8]}}", -1, 8,
     "unknown dtype 'Q4'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", -1, 8, "impossible"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.5],\"data_offsets\":[0,8]}}", -1, 8, "impossible"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}", -1, 8,
     "impossible"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807],\"data_offsets\":[0,8]}}", -1, 8,
     "impossible"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", -1, 4,
     "9 dims"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,12]}}", -1, 12, "shape asks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", -1, 7, "outside the file"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", -1, 8, "outside the file"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", -1, 8,
     "outside the file"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[9223372036854775800,"
     "9223372036854775807]}}",
     -1, 8, "outside the file"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\","
     "\"shape\":[2],\"data_offsets\":[4,12]}}",
     -1, 12, "overlap"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\","
     "\"shape\":[1],\"data_offsets\":[8,12]}}",
     -1, 12, "hole"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", -1, 8, "hole"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", -1, 8,
     "longer than its tensors"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\","
     "\"shape\":[],\"data_offsets\":[1,2]}}",
     -1, 2, "valid"},
};

static void test_hostile(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *folder = new_folder(a), *file = arena_printf(a, "%s/x.safetensors", folder);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        Diags *d = diags_new(a);
        write_raw(file, headers[i].header, headers[i].length, headers[i].data);
        SafeTensors *st = st_open(a, d, file, (Loc){0});
        if (headers[i].text) {
            assert_null(st);
            assert_true(has_error(d, "E0109", headers[i].text));
        } else {
            assert_non_null(st);
        }
        st_close(st);
    }
    Diags *d = diags_new(a);
    assert_null(st_open(a, d, "/tmp/no such file.safetensors", (Loc){0}));
    assert_true(has_error(d, "E0101", "no such file"));
    assert_null(st_open(a, d, "/dev/null", (Loc){0}));
    assert_true(has_error(d, "E0109", "regular"));
    remove_folder(a, folder);
    arena_free(a);
}

/* Every prefix of a good file is refused, and no byte of its header can be changed into a crash. */
static void test_damaged(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *folder = new_folder(a), *file = arena_printf(a, "%s/x.safetensors", folder);
    const char *good = golden_path(a, "hf/%s/%s", "llama-odd", "model.safetensors");
    size_t n;
    Diags *d = diags_new(a);
    char *text = file_read(a, d, good, 1 << 24, (Loc){0}, &n);
    assert_non_null(text);
    for (size_t cut = 0; cut < n; cut += cut < 3000 ? 7 : 5003) {
        FILE *f = fopen(file, "wb");
        fwrite(text, 1, cut, f);
        fclose(f);
        assert_null(st_open(a, diags_new(a), file, (Loc){0}));
    }
    srand(1);
    for (int i = 0; i < 500; i++) {
        FILE *f = fopen(file, "wb");
        fwrite(text, 1, n, f);
        for (int k = 0; k < 3; k++) {
            fseek(f, rand() % 1200, SEEK_SET);
            fputc(rand() % 256, f);
        }
        fclose(f);
        SafeTensors *st = st_open(a, diags_new(a), file, (Loc){0});
        for (int k = 0; st && k < st->n; k++) {
            double x;
            if (st->t[k].bytes) st_read(&st->t[k], 0, 1, DT_F64, &x);
        }
        st_close(st);
    }
    remove_folder(a, folder);
    arena_free(a);
}

static void test_shrinking_file(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *folder = new_folder(a), *file = arena_printf(a, "%s/w.safetensors", folder);
    Plan *p = small_plan(a);
    Model *m = must_build(a, p);
    write_params(a, m, file, NAMES_HF, "", NULL, 1);
    p->weights = file;
    Weights *w = must_open(a, p, m);
    assert_int_equal(truncate(file, 100), 0);
    Diags *d = diags_new(a);
    double x[200];
    assert_false(weights_load(w, d, graph_find(&m->g, "lm_head.weight"), DT_F64, x));
    assert_true(has_error(d, "E0102", "lm_head.weight"));
    weights_close(w);
    remove_folder(a, folder);
    arena_free(a);
}

/* Every half and bfloat16 number, and the whole-number types, at odd offsets. */
static void test_types(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *folder = new_folder(a), *file = arena_printf(a, "%s/x.safetensors", folder);
    static const char header[] =
        "{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"h\":{\"dtype\":\"F16\","
        "\"shape\":[65536],\"data_offsets\":[1,131073]},\"b\":{\"dtype\":\"BF16\",\"shape\":[65536]"
        ",\"data_offsets\":[131073,262145]},\"i\":{\"dtype\":\"I32\",\"shape\":[2],\"data_"
        "offsets\":[262145,262153]},\"l\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":["
        "262153,262161]}}";
    FILE *f = fopen(file, "wb");
    uint64_t n = sizeof header - 1;
    fwrite(&n, 8, 1, f);
    fwrite(header, 1, n, f);
    fputc(200, f);
    for (int k = 0; k < 2; k++)
        for (unsigned i = 0; i < 65536; i++) fwrite(&(uint16_t){(uint16_t)i}, 2, 1, f);
    fwrite((int32_t[]){-7, INT32_MAX}, 4, 2, f);
    fwrite(&(int64_t){INT64_MIN}, 8, 1, f);
    fclose(f);
    SafeTensors *st = st_open(a, diags_new(a), file, (Loc){0});
    assert_non_null(st);
    double *x = ARENA_ARRAY(a, double, 65536);
    assert_true(st_read(st_find(st, "h"), 0, 65536, DT_F64, x));
    for (unsigned i = 0; i < 65536; i++) {
        int e = i >> 10 & 31, m = i & 1023;
        double want = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
        if (i >> 15) want = -want;
        assert_true(isnan(want) ? isnan(x[i]) : x[i] == want && !signbit(x[i]) == !signbit(want));
    }
    assert_true(st_read(st_find(st, "b"), 0, 65536, DT_F64, x));
    for (unsigned i = 0; i < 65536; i++) {
        float want;
        memcpy(&want, &(uint32_t){i << 16}, 4);
        assert_true(isnan(want) ? isnan(x[i]) : x[i] == (double)want);
    }
    int64_t y[2];
    float z[3];
    assert_true(st_read(st_find(st, "u"), 0, 1, DT_I64, y) && y[0] == 200);
    assert_true(st_read(st_find(st, "i"), 0, 2, DT_I64, y) && y[0] == -7 && y[1] == INT32_MAX);
    assert_true(st_read(st_find(st, "l"), 0, 1, DT_I64, y) && y[0] == INT64_MIN);
    assert_true(st_read(st_find(st, "h"), 0x3c00, 1, DT_F32, z) && z[0] == 1);
    assert_true(st_read(st_find(st, "h"), 0x7bff, 1, DT_I64, y) && y[0] == 65504);
    /* Outside: false, and zeros. */
    z[2] = 5;
    assert_false(st_read(st_find(st, "h"), 65534, 3, DT_F32, z));
    assert_true(z[2] == 0);
    assert_false(st_read(st_find(st, "h"), -1, 1, DT_F32, z));
    assert_false(st_read(st_find(st, "h"), INT64_MAX, 1, DT_F32, z));
    assert_null(st_find(st, "hh"));
    st_close(st);
    remove_folder(a, folder);
    arena_free(a);
}

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static void test_shards(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *folder = new_folder(a),
               *index = arena_printf(a, "%s/model.safetensors.index.json", folder);
    for (int k = 0; k < 2; k++) {
        StWriter *s =
            st_writer(a, diags_new(a), arena_printf(a, "%s/part%d.safetensors", folder, k));
        st_declare(s, k ? "b" : "a", DT_F32, 1, (int64_t[]){1});
        st_data(s, &(float){(float)k + 1}, 4);
        assert_true(st_commit(s));
    }
    write_text(index, "{\"metadata\":{},\"weight_map\":{\"a\":\"part0.safetensors\",\"b\":\"part1."
                      "safetensors\"}}");
    SafeTensors *st = st_open(a, diags_new(a), folder, (Loc){0});
    assert_non_null(st);
    assert_int_equal(st->n, 2);
    float x;
    assert_true(st_read(st_find(st, "b"), 0, 1, DT_F32, &x) && x == 2);
    st_close(st);
    static const char *const bad[] = {
        "{\"weight_map\":{\"a\":\"part1.safetensors\"}}",
        "{\"weight_map\":{\"a\":\"../part1.safetensors\"}}",
        "{\"weight_map\":{\"a\":\"/etc/passwd\"}}",
        "{\"weight_map\":{\"a\":3}}",
        "{\"weight_map\":[]}",
        "{}",
        "nonsense",
        "{\"weight_map\":{\"c\":\"part0.safetensors\"}}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Diags *d = diags_new(a);
        write_text(index, bad[i]);
        assert_null(st_open(a, d, index, (Loc){0}));
        assert_true(has_error(d, "E0109", NULL));
    }
    write_text(index, "{\"weight_map\":{\"a\":\"part7.safetensors\"}}");
    Diags *d = diags_new(a);
    assert_null(st_open(a, d, index, (Loc){0}));
    assert_true(has_error(d, "E0101", "part7"));
    /* One name in two shards. */
    StWriter *s = st_writer(a, diags_new(a), arena_printf(a, "%s/part1.safetensors", folder));
    st_declare(s, "a", DT_F32, 1, (int64_t[]){1});
    st_declare(s, "b", DT_F32, 1, (int64_t[]){1});
    st_data(s, &(float[]){1, 2}, 8);
    assert_true(st_commit(s));
    write_text(index, "{\"weight_map\":{\"a\":\"part0.safetensors\",\"b\":\"part1.safetensors\"}}");
    assert_null(st_open(a, diags_new(a), index, (Loc){0}));
    remove_folder(a, folder);
    arena_free(a);
}

static void test_writer(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *folder = new_folder(a), *file = arena_printf(a, "%s/x.safetensors", folder);
    StWriter *s = st_writer(a, diags_new(a), file);
    st_declare(s, "odd \"name\" \xc3\xa9", DT_F32, 2, (int64_t[]){3, 1});
    st_declare(s, "empty", DT_F64, 2, (int64_t[]){0, 4});
    st_declare(s, "scalar", DT_F64, 0, NULL);
    st_declare(s, "ids", DT_I64, 1, (int64_t[]){2});
    st_data(s, (float[]){1, 2, 3}, 8);
    st_data(s, (float[]){3}, 4);
    st_data(s, &(double){0.1}, 8);
    st_data(s, (int64_t[]){-1, INT64_MAX}, 16);
    assert_true(st_commit(s));
    SafeTensors *st = st_open(a, diags_new(a), file, (Loc){0});
    assert_non_null(st);
    assert_int_equal(st->n, 4);
    double x[3];
    int64_t y[2];
    const StTensor *t = st_find(st, "odd \"name\" \xc3\xa9");
    assert_true(t && t->nd == 2 && t->shape[0] == 3 && t->dtype == DT_F32);
    assert_true(st_read(t, 0, 3, DT_F64, x) && x[0] == 1 && x[2] == 3);
    assert_true(st_read(st_find(st, "scalar"), 0, 1, DT_F64, x) && x[0] == 0.1);
    assert_true(st_read(st_find(st, "ids"), 0, 2, DT_I64, y) && y[0] == -1 && y[1] == INT64_MAX);
    assert_int_equal(st_find(st, "empty")->bytes, 0);
    st_close(st);
    /* Nothing at all is a file too. */
    s = st_writer(a, diags_new(a), file);
    assert_true(st_commit(s));
    st = st_open(a, diags_new(a), file, (Loc){0});
    assert_true(st && st->n == 0 && !st_find(st, "x"));
    st_close(st);
    Diags *d = diags_new(a);
    assert_null(st_writer(a, d, arena_printf(a, "%s/no/such/folder", folder)));
    assert_true(has_error(d, "E0105", NULL));
    remove_folder(a, folder);
    arena_free(a);
}

/* Llama 4's experts lie input dim first in files of Hugging Face and of torchtune, there with gate
 * and up in one tensor; elsewhere output dim first. A plan in the names of any scheme reads the
 * files of the others and computes the same numbers (gate and up apart round otherwise), where D is
 * F too: nothing else would tell. */
static void turned_plan(Arena *a, const char *names, const char *file, int width, char **text) {
    *text = arena_printf(
        a,
        "model: {%s%s%sparts: [blocks], layers: all, config: {model_type: llama4_text, "
        "hidden_size: "
        "8, intermediate_size: %d, intermediate_size_mlp: 8, num_hidden_layers: 1, "
        "num_attention_heads: 2, num_key_value_heads: 2, head_dim: 4, vocab_size: 13, moe_layers: "
        "[0], num_local_experts: 3}}\ndata: {batch: 2, sequence: 4, dtype: f64, cut: {batch: dp}}\n"
        "mesh: {dp: 2}\ngroups: {ep: dp}\nnames: %s\n",
        file ? "weights: " : "", file ? file : "", file ? ", " : "", width, names);
}
static void hold_turned(Arena *a, const char *from, const char *to, int width) {
    const char *file = temp_path(a, "turned.safetensors");
    char *text;
    turned_plan(a, from, NULL, width, &text);
    PipelineOptions o = {.execute = true, .threads = 1, .save_values = file};
    PlanRun r = plan_run_with(a, "turned.yaml", text, &o);
    assert_true(run_is(&r, "equivalent"));
    turned_plan(a, to, file, width, &text);
    o = (PipelineOptions){.execute = true, .threads = 1, .against = file};
    r = plan_run_with(a, "turned.yaml", text, &o);
    if (!strcmp(to, "hf") && strcmp(from, "hf") != 0) { /* two tensors for one: told */
        const Diag *said = run_diag(&r, "E0502", "gate_up_proj', it has parts of it ('");
        assert_non_null(said);
        assert_true(said->loc.line == 1 && strstr(said->hint, "`names: torchtitan`"));
        return;
    }
    if (!r.t || !r.t->verdict) run_print(&r);
    assert_true(run_is(&r, "equivalent"));
    int values = 0;
    for (int k = 0; k < r.rep.n_against; k++) {
        const struct AgainstRow *x = &r.rep.against[k];
        if (strncmp(x->name, "layers.0.", 9) != 0 || x->missing_here || x->missing_there) continue;
        if (!strstr(x->name, "moe.") || strstr(x->name, "weight") || strstr(x->name, ".experts."))
            continue;
        values++;
        if (!x->ok || x->max_rel > 1e-12) fail_msg("%s as %s: %s differs", from, to, x->name);
    }
    assert_true(values >= 8);
}
static void test_turned_experts(void **state) {
    (void)state;
    static const char *const names[] = {"hf", "torchtitan", "torchtune", "megatron", "gguf"};
    for (int from = 0; from < 5; from++)
        for (int to = 0; to < 5; to++)
            for (int width = 6; width <= 8; width += 2) {
                Arena *a = arena_new();
                hold_turned(a, names[from], names[to], width);
                arena_free(a);
            }
}
/* Experts one by one, or of all experts in one tensor with gate and up apart, lie output dim first:
 * where the model has them input dim first they are told, under either family's names of the parts,
 * though D is F and each would fit. */
static void hold_apart(Arena *a, const char *names, const char *const *part, bool stacked) {
    static double x[3 * 64];
    NewTensor t[9];
    int n = 0;
    for (int e = 0; e < (stacked ? 1 : 3); e++)
        for (int i = 0; i < 3; i++, n++) {
            const char *of = stacked ? "" : arena_printf(a, "%d.", e),
                       *end = stacked ? "" : ".weight";
            t[n] = (NewTensor){.name = arena_printf(a, "model.layers.0.feed_forward.experts.%s%s%s",
                                                    of, part[i], end),
                               .nd = stacked ? 3 : 2,
                               .shape = {stacked ? 3 : 8, 8, 8},
                               .x = x};
        }
    const char *file = write_tensors(a, "apart.safetensors", t, n);
    char *text;
    turned_plan(a, names, file, 8, &text);
    PlanRun r = plan_run(a, "apart.yaml", text, true);
    for (int i = 0; i < 3; i += 2)
        if (!run_diag(&r, "E0502", arena_printf(a, "parts of it ('%s'", t[i].name)))
            fail_msg("names: %s: '%s' is not told", names, t[i].name);
}
static void test_turned_apart(void **state) {
    (void)state;
    static const char *const part[2][3] = {{"gate_proj", "up_proj", "down_proj"},
                                           {"w1", "w3", "w2"}};
    static const char *const names[] = {"hf", "torchtune"};
    for (int i = 0; i < 2; i++)
        for (int way = 0; way < 2; way++) {
            Arena *a = arena_new();
            hold_apart(a, names[i], part[way], false);
            arena_free(a);
        }
    Arena *a = arena_new();
    hold_apart(a, "hf", part[1], true);
    arena_free(a);
}
/* A tensor of another size than the view needs is told, with both shapes. */
static void test_turned_shape(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *file = temp_path(a, "turned.safetensors");
    char *text;
    turned_plan(a, "hf", NULL, 6, &text);
    PipelineOptions o = {.execute = true, .threads = 1, .save_values = file};
    plan_run_with(a, "turned.yaml", text, &o);
    turned_plan(a, "torchtitan", file, 8, &text);
    PlanRun r = plan_run(a, "turned.yaml", text, true);
    assert_non_null(run_diag(&r, "E0503", "[3, 8, 12]"));
    assert_non_null(run_diag(&r, "E0503", "[3, 8, 16]"));
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox),         cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_statistics),     cmocka_unit_test(test_streams),
        cmocka_unit_test(test_random_run),     cmocka_unit_test(test_parts),
        cmocka_unit_test(test_golden_weights), cmocka_unit_test(test_every_golden_case),
        cmocka_unit_test(test_schemes),        cmocka_unit_test(test_missing_and_misshaped),
        cmocka_unit_test(test_not_finite),     cmocka_unit_test(test_ids),
        cmocka_unit_test(test_steps),          cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_damaged),

        cmocka_unit_test(test_shrinking_file), cmocka_unit_test(test_types),
        cmocka_unit_test(test_shards),         cmocka_unit_test(test_writer),
        cmocka_unit_test(test_turned_experts), cmocka_unit_test(test_turned_shape),
        cmocka_unit_test(test_turned_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
