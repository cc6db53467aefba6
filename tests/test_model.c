/* The model room: graphs of every feature combination against the golden cases (names and shapes
 * that other people's implementations recorded), both generations of config keys, parameter totals,
 * rotation bands, naming schemes, shrink, and what is refused. Golden files are in tests/golden/hf,
 * or else in ../shared/golden/hf. */
#include "base/file.h"
#include "exec/reference.h"
#include "model/model.h"
#include "weights/weights.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include "support/child.h"
#include "support/support.h"
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

enum { ALL_PARTS = PART_EMBEDDING | PART_BLOCKS | PART_NORM | PART_HEAD | PART_LOSS };
static const char *const cases[] = {"llama-bias",   "llama-gqa", "llama-odd", "llama-wide",
                                    "llama31-rope", "qwen2",     "qwen3"};
enum { N_CASES = sizeof cases / sizeof *cases };

/* A config.json of that text. */
static const char *config_of(Arena *a, const char *name, const char *text) {
    const char *path = temp_path(a, name);
    child_write(path, text);
    return path;
}
/* A plan as the parser leaves it when nothing but a model is written. */
static Plan *new_plan(Arena *a) {
    Plan *p = plan_new(a, "test.yaml");
    p->input_gradient = true;
    p->names = NAMES_TORCHTITAN;
    return p;
}

static Plan *golden_plan(Arena *a, const char *name, const char *config) {
    Plan *p = new_plan(a);
    p->hf_config = golden_path(a, "hf/%s/%s", name, config);
    p->inputs = golden_path(a, "hf/%s/%s", name, "values.safetensors");
    p->layers_last = -1;
    p->parts = ALL_PARTS;
    return p;
}

static Model *must_build(Arena *a, const Plan *p) {
    Diags *d = diags_new(a);
    Model *m = model_build(a, d, p, NULL);
    if (diags_errors(d)) diags_print(d, stderr, false);
    assert_non_null(m);
    return m;
}

/* Builds and expects exactly this error (NULL text: any message) and no model. */
static void must_fail(Arena *a, const Plan *p, const char *code, const char *text) {
    Diags *d = diags_new(a);
    Model *m = model_build(a, d, p, NULL);
    assert_null(m);
    for (int i = 0; i < d->n; i++)
        if (!strcmp(d->item[i].code, code) && (!text || strstr(d->item[i].message, text))) return;
    diags_print(d, stderr, false);
    fail_msg("no %s with '%s'", code, text ? text : "");
}

static void assert_shape(const GTensor *t, int nd, const int64_t *shape) {
    int n;
    int64_t have[LAYOUT_MAX_DIMS];
    graph_stored_shape(t, &n, have);
    if (n != nd || memcmp(have, shape, (size_t)n * sizeof *shape))
        fail_msg("the shape of %s differs", t->name);
}

/* Numbers in the parameters of the graph; a tied table counts once. */
static int64_t params_of(const Model *m) {
    int64_t sum = 0;
    for (int t = 0; t < m->g.nt; t++) {
        int64_t n = m->g.t[t].kind == KIND_PARAM;
        for (int l = 0; l < m->g.t[t].nd; l++) n *= m->g.t[t].size[l];
        sum += n;
    }
    return sum;
}

/* ---- golden cases ---- */

/* Values that only the other implementation has, or that are no values of the forward graph. */
static bool not_ours(const char *name) {
    return !strncmp(name, "grad.", 5) || !strncmp(name, "rope.", 5) || !strcmp(name, "loss_sum") ||
           strstr(name, "attn_probs") || strstr(name, ".q_attn") || strstr(name, ".k_attn") ||
           strstr(name, ".v_attn");
}

static void test_golden_shapes(void **state) {
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        Arena *a = arena_new();
        Model *m = must_build(a, golden_plan(a, cases[c], "config.json"));
        SafeTensors *st = st_open(
            a, diags_new(a), golden_path(a, "hf/%s/%s", cases[c], "values.safetensors"), (Loc){0});
        assert_non_null(st);
        int found = 0;
        for (int i = 0; i < st->n; i++) {
            const StTensor *s = &st->t[i];
            if (not_ours(s->name)) continue;
            int t = graph_find(&m->g, s->name);
            if (t < 0) fail_msg("%s: no value %s", cases[c], s->name);
            assert_shape(&m->g.t[t], s->nd, s->shape);
            assert_int_equal(m->g.t[t].is_int, s->dtype == DT_I64);
            found++;
        }
        assert_true(found >= 9);
        st_close(st);
        st = st_open(a, diags_new(a), golden_path(a, "hf/%s/%s", cases[c], "model.safetensors"),
                     (Loc){0});
        assert_non_null(st);
        int params = 0;
        int64_t numbers = 0;
        for (int i = 0; i < st->n; i++) {
            int t = graph_find(&m->g, st->t[i].name);
            if (t < 0) fail_msg("%s: no parameter %s", cases[c], st->t[i].name);
            assert_int_equal(m->g.t[t].kind, KIND_PARAM);
            assert_shape(&m->g.t[t], st->t[i].nd, st->t[i].shape);
            numbers += st->t[i].bytes / 4;
        }
        for (int i = 0; i < m->g.nt; i++) params += m->g.t[i].kind == KIND_PARAM;
        assert_int_equal(params, st->n);
        assert_int_equal(params_of(m), numbers); /* attention + MLP + norms + tables */
        st_close(st);
        arena_free(a);
    }
}

static void test_config_generations(void **state) {
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        Arena *a = arena_new();
        ModelDims x = must_build(a, golden_plan(a, cases[c], "config.json"))->dims;
        ModelDims y = must_build(a, golden_plan(a, cases[c], "config_v4.json"))->dims;
        assert_string_equal(x.rope_type, y.rope_type);
        assert_string_equal(x.activation, y.activation);
        x.name = y.name = x.rope_type = y.rope_type = x.activation = y.activation = NULL;
        assert_memory_equal(&x, &y, sizeof x);
        arena_free(a);
    }
}

static void test_golden_frequencies(void **state) {
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        Arena *a = arena_new();
        Model *m = must_build(a, golden_plan(a, cases[c], "config.json"));
        SafeTensors *st = st_open(
            a, diags_new(a), golden_path(a, "hf/%s/%s", cases[c], "values.safetensors"), (Loc){0});
        const StTensor *s = st_find(st, "rope.inv_freq");
        if (s) { /* trimmed copies may lack it */
            double want[64];
            const double *have = model_inv_freq(a, &m->dims);
            assert_int_equal(s->shape[0], m->dims.d / 2);
            assert_true(st_read(s, 0, s->shape[0], DT_F64, want));
            for (int i = 0; i < m->dims.d / 2; i++)
                assert_true(fabs(have[i] - want[i]) <= 1e-14 * want[i]);
        }
        st_close(st);
        arena_free(a);
    }
}

/* A tensor of the graph with its dims as letters, packed. */
static Tensor letters_of(const GTensor *t, void *p) {
    Tensor x = {.nd = t->nd, .p = p};
    for (int i = 0; i < t->nd; i++) x.n[i] = t->size[i];
    tensor_pack(&x);
    return x;
}

/* Runs a graph in float64, unsharded, with the ops' own kernels. Values by tensor. */
static void **run_graph(Arena *a, const Plan *p, const Model *m) {
    Diags *d = diags_new(a);
    Weights *w = weights_open(a, d, p, m);
    if (!w) diags_print(d, stderr, false);
    assert_non_null(w);
    const Graph *g = &m->g;
    void **v = ARENA_ARRAY(a, void *, g->nt);
    for (int t = 0; t < g->nt; t++) {
        Tensor x = letters_of(&g->t[t], NULL);
        v[t] = arena_alloc(a, (size_t)tensor_count(&x) * 8);
        if (g->t[t].kind != KIND_ACTIVATION)
            assert_true(weights_load(w, d, t, g->t[t].is_int ? DT_I64 : DT_F64, v[t]));
    }
    for (int i = 0; i < g->nn; i++) {
        const GNode *n = &g->node[i];
        OpCall c = {.op = n->op, .rule = &n->rule, .at = &n->at, .dtype = DT_F64};
        for (int k = 0; k <= n->nin; k++) {
            const GTensor *t = &g->t[k < n->nin ? n->in[k] : n->out];
            const char *letters = k < n->nin ? n->rule.in[k] : n->rule.out;
            Tensor x = letters_of(t, v[t->id]);
            if (k < n->nin) c.in[k] = x;
            else c.out = x;
            if (k < n->nin && t->is_int) c.in_int |= 1u << k;
            for (int l = 0; l < t->nd; l++)
                c.local[letters[l] - 'a'] = c.global[letters[l] - 'a'] = t->size[l];
        }
        n->op->forward(&c);
    }
    weights_close(w);
    return v;
}

/* The graph computes what the other implementation computed: every value that its file has. */
static void test_golden_values(void **state) {
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        Arena *a = arena_new();
        Plan *p = golden_plan(a, cases[c], "config.json");
        p->weights = golden_path(a, "hf/%s/%s", cases[c], "model.safetensors");
        Model *m = must_build(a, p);
        void **v = run_graph(a, p, m);
        SafeTensors *st = st_open(a, diags_new(a), p->inputs, (Loc){0});
        int compared = 0;
        for (int i = 0; i < st->n; i++) {
            const StTensor *s = &st->t[i];
            /* loss_per_token is 0 at ignored labels there; here only its weight is. */
            if (not_ours(s->name) || s->dtype != DT_F64 || !strcmp(s->name, "loss_per_token"))
                continue;
            const double *have = v[graph_find(&m->g, s->name)];
            int64_t n = s->bytes / 8;
            double *want = ARENA_ARRAY(a, double, n), most = 0;
            assert_true(st_read(s, 0, n, DT_F64, want));
            for (int64_t k = 0; k < n; k++) most = fmax(most, fabs(want[k]));
            for (int64_t k = 0; k < n; k++)
                if (!(fabs(have[k] - want[k]) <= 1e-11 * most))
                    fail_msg("%s: %s differs at %lld: %g, not %g", cases[c], s->name, (long long)k,
                             have[k], want[k]);
            compared++;
        }
        assert_true(compared >= 7);
        st_close(st);
        arena_free(a);
    }
}

/* ---- presets ---- */

static void test_totals(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t total;
    } known[] = {{"llama3-8b", 8030261248},
                 {"llama3-70b", 70553706496},
                 {"llama3.1-405b", 405853388800},
                 {"llama2-7b", 6738415616},
                 {"llama3.2-1b", 1235814400},
                 {"llama3.2-3b", 3212749824},
                 {"mistral-7b-v0.3", 7248023552},
                 {"qwen2-0.5b", 494032768},
                 {"qwen2-1.5b", 1543714304},
                 {"qwen2-7b", 7615616512},
                 {"qwen3-0.6b", 596049920},
                 {"qwen3-1.7b", 1720574976},
                 {"qwen3-4b", 4022468096},
                 {"qwen3-8b", 8190735360},
                 {"qwen3-14b", 14768307200},
                 {"qwen3-32b", 32762123264},
                 /* semantics 10.1; DeepSeek-V3 with the 256 numbers of each selection bias */
                 {"mixtral-8x7b", 46702792704},
                 {"qwen3-30b-a3b", 30532122624},
                 {"qwen3-235b-a22b", 235093634560},
                 {"llama4-scout", 107769861120},
                 {"llama4-maverick", 400711848960},
                 {"deepseek-v3", 671026419200},
                 /* OpenAI's model card: 20.91 and 116.83 billion */
                 {"gpt-oss-20b", 20914757184},
                 {"gpt-oss-120b", 116829156672}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        Arena *a = arena_new();
        Plan *p = new_plan(a);
        p->preset = known[i].name;
        p->layers_last = -1;
        p->parts = ALL_PARTS;
        int64_t sum = params_of(must_build(a, p));
        if (sum != known[i].total) fail_msg("%s: %lld parameters", known[i].name, (long long)sum);
        if (strncmp(known[i].name, "gpt-oss", 7) == 0) { /* as its config.json has it */
            const Model *m = must_build(a, p);
            assert_int_equal(m->dims.yarn.truncate, 0);
            assert_true(m->dims.yarn.fast == 32 && m->dims.yarn.slow == 1);
            assert_int_equal(m->dims.window, 128); /* of every other layer, from the first */
            assert_true(model_windowed(&m->dims, 0) && !model_windowed(&m->dims, 1));
        }
        arena_free(a);
    }
}

static void test_every_preset(void **state) {
    (void)state;
    int n;
    const Preset *s = model_presets(&n);
    for (int i = 0; i < n; i++) {
        Arena *a = arena_new();
        Plan *p = new_plan(a);
        p->preset = s[i].name;
        assert_int_equal(must_build(a, p)->dims.H, s[i].H);
        for (int k = 0; k < i; k++) assert_string_not_equal(s[i].name, s[k].name);
        arena_free(a);
    }
}

static void test_rope_bands(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = new_plan(a);
    p->preset = "llama3-8b";
    const double *plain = model_inv_freq(a, &must_build(a, p)->dims);
    p->preset = "llama3.1-8b";
    const double *scaled = model_inv_freq(a, &must_build(a, p)->dims);
    static const double blended[] = {0.8282, 0.6437, 0.4935,
                                     0.3711, 0.2714, 0.1902}; /* pairs 29..34 */
    for (int i = 0; i < 64; i++) {
        double want = i < 29 ? 1 : i > 34 ? 1.0 / 8 : blended[i - 29];
        assert_true(fabs(scaled[i] / plain[i] - want) < (i >= 29 && i <= 34 ? 5e-5 : 1e-15));
    }
    /* Bands that touch: factor 16, low = high = 1: 0..34 kept, 35..63 divided. */
    ModelDims m = {.turned = 128,
                   .rope_base = 5e5,
                   .rope_type = "llama3",
                   .rope_factor = 16,
                   .rope_low = 1,
                   .rope_high = 1,
                   .rope_old_ctx = 8192};
    const double *scout = model_inv_freq(a, &m);
    for (int i = 0; i < 64; i++)
        assert_true(fabs(scout[i] / plain[i] - (i < 35 ? 1 : 1.0 / 16)) < 1e-15);
    m.rope_type = "linear";
    assert_true(model_inv_freq(a, &m)[5] == plain[5] / 16);
    arena_free(a);
}

/* ---- structure ---- */

/* What must hold of any graph. */
static void check_graph(const Graph *g) {
    for (int i = 0; i < g->nn; i++) {
        const GNode *n = &g->node[i];
        int64_t size[26] = {0};
        assert_int_equal(n->id, i);
        assert_non_null(n->part);
        assert_non_null(n->label);
        assert_true(n->module >= 0 && n->module < g->nm);
        assert_int_equal(g->t[n->out].producer, i);
        assert_int_equal(n->nin, n->rule.nin);
        for (int k = 0; k <= n->nin; k++) {
            const GTensor *t = &g->t[k < n->nin ? n->in[k] : n->out];
            const char *letters = k < n->nin ? n->rule.in[k] : n->rule.out;
            assert_int_equal((int)strlen(letters), t->nd);
            assert_true(k == n->nin || t->producer < i); /* in execution order */
            for (int l = 0; l < t->nd; l++) {
                int64_t *s = &size[letters[l] - 'a'];
                assert_true(!*s || *s == t->size[l]);
                *s = t->size[l];
            }
        }
    }
    for (int i = 0; i < g->nt; i++) {
        const GTensor *t = &g->t[i];
        int stored = 0;
        for (int k = 0; k < t->nstored; k++) stored += t->stored[k];
        assert_int_equal(stored, t->nd);
        assert_int_equal(t->id, i);
        assert_int_equal(t->producer >= 0, t->kind == KIND_ACTIVATION);
        assert_int_equal(graph_find(g, t->name), i);
        if (t->kind == KIND_PARAM) {
            assert_true(t->diff && t->module >= 0);
            assert_int_equal(graph_find(g, t->plan_name), i);
        }
        bool used = i == g->output || i == g->loss;
        for (int k = 0; k < g->nn; k++)
            for (int j = 0; j < g->node[k].nin; j++) used |= g->node[k].in[j] == i;
        if (!used) fail_msg("%s is made for nothing", t->name);
    }
    for (int i = 0; i < g->nm; i++) {
        assert_true(g->module[i].parent < i);
        assert_true(g->module[i].output >= 0 && g->module[i].n_input >= 1);
    }
}

static const char inline_sizes[] =
    "\"hidden_size\": 12, \"num_attention_heads\": 6, \"num_key_value_heads\": 3, \"head_dim\": 4, "
    "\"intermediate_size\": 7, \"vocab_size\": 11, \"num_hidden_layers\": 3";

static void test_every_feature(void **state) {
    (void)state;
    static const char *const flags[] = {"qk_norm", "q_bias",    "k_bias",
                                        "v_bias",  "o_bias",    "gate_bias",
                                        "up_bias", "down_bias", "tie_word_embeddings"};
    enum { N = sizeof flags / sizeof *flags };
    for (unsigned bits = 0; bits < 1u << N; bits++) {
        Arena *a = arena_new();
        Plan *p = new_plan(a);
        Str s = str_new(a);
        str_addf(&s, "{%s", inline_sizes);
        for (int i = 0; i < N; i++)
            str_addf(&s, ", \"%s\": %s", flags[i], bits >> i & 1 ? "true" : "false");
        str_add(&s, "}");
        p->inline_config = s.s;
        p->parts = ALL_PARTS;
        p->layers_last = 2;
        p->names = (Names)(bits % NAMES_COUNT);
        Model *m = must_build(a, p);
        check_graph(&m->g);
        int qk = bits & 1, biases = __builtin_popcount(bits >> 1 & 127u);
        assert_int_equal(m->g.nn, 2 * (16 + 2 * qk + biases) + 3 + 5);
        assert_int_equal(graph_find(&m->g, "layers.0.q_proj.product") >= 0, bits >> 1 & 1);
        assert_int_equal(graph_find(&m->g, "lm_head.weight") ==
                             graph_find(&m->g, "model.embed_tokens.weight"),
                         bits >> 8 & 1);
        arena_free(a);
    }
}

static void test_nodes(void **state) {
    (void)state;
    Arena *a = arena_new();
    Model *m = must_build(a, golden_plan(a, "qwen3", "config.json"));
    const Graph *g = &m->g;
    const GNode *q = &g->node[g->t[graph_find(g, "layers.1.q_rope")].producer];
    assert_int_equal(q->in[0], graph_find(g, "layers.1.q_norm"));
    assert_int_equal(q->at.n_freq, 8);
    assert_int_equal(q->at.order, ROPE_HALVES);
    assert_int_equal(q->layer, 1);
    const GNode *core = &g->node[g->t[graph_find(g, "layers.1.attn_context")].producer];
    assert_true(core->at.scale == 0.25);
    assert_string_equal(core->rule.text, "btkgx!,bs!kx!,bs!kx!->btkgx");
    assert_string_equal(g->module[core->module].kind, "core_attention");
    assert_int_equal(g->module[core->module].n_input, 3);
    assert_int_equal(core->in[2], graph_find(g, "layers.1.v_proj"));
    const GNode *norm = &g->node[g->t[graph_find(g, "final_norm")].producer];
    assert_true(norm->at.eps == 1e-6);
    assert_int_equal(norm->in[0], graph_find(g, "layers.1.output"));
    /* One value, two names. */
    assert_int_equal(graph_find(g, "layers.0.input"), graph_find(g, "embed"));
    assert_int_equal(graph_find(g, "layers.1.input"), graph_find(g, "layers.0.output"));
    assert_int_equal(g->loss, graph_find(g, "loss_mean"));
    assert_int_equal(g->output, graph_find(g, "logits"));
    const GNode *pick = &g->node[g->t[graph_find(g, "loss.target")].producer];
    assert_true(pick->at.ignore == -100);
    /* No gradient: ids, labels, weights of the loss, the max. */
    static const char *const constant[] = {"input_ids", "labels", "loss_weights", "loss.max"};
    for (int i = 0; i < 4; i++) assert_false(g->t[graph_find(g, constant[i])].diff);
    assert_true(g->t[graph_find(g, "loss.sumexp")].diff);
    assert_true(g->t[graph_find(g, "embed")].diff);
    arena_free(a);
}

static void test_symbols(void **state) {
    (void)state;
    Arena *a = arena_new();
    Model *m = must_build(a, golden_plan(a, "qwen3", "config.json"));
    static const struct {
        const char *name, *shape;
    } want[] = {{"layers.0.input", "B S D"},
                {"layers.0.q_proj", "B S H*d"},
                {"layers.0.q_rope", "B S H d"},
                {"layers.0.k_proj", "B S K*d"},
                {"layers.0.k_norm", "B S K d"},
                {"layers.0.mlp.gate", "B S F"},
                {"layers.0.attention.wo.weight", "D H*d"},
                {"layers.0.attention.wk.weight", "K*d D"},
                {"logits", "B S V"},
                {"loss_mean", ""},
                {"layers.0.attention.q_norm.weight", "d"}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const GTensor *t = &m->g.t[graph_find(&m->g, want[i].name)];
        Str s = str_new(a);
        for (int k = 0; k < t->nstored; k++)
            str_addf(&s, "%s%s", k ? " " : "", graph_stored_symbol(t, k, a));
        assert_string_equal(s.s, want[i].shape);
    }
    arena_free(a);
}

static void test_parts(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = new_plan(a);
    p->inline_config = arena_printf(a, "{%s}", inline_sizes);
    p->layers_first = 1;
    p->layers_last = 3;
    Model *m = must_build(a, p);
    check_graph(&m->g);
    int in = graph_find(&m->g, "layers.1.input");
    assert_int_equal(m->g.t[in].kind, KIND_INPUT);
    assert_true(m->g.t[in].diff);
    assert_int_equal(graph_find(&m->g, "layers.0.input"), -1);
    assert_int_equal(m->g.output, graph_find(&m->g, "layers.2.output"));
    assert_int_equal(m->g.loss, -1);
    assert_int_equal(m->dims.B, 2);
    assert_int_equal(m->dims.S, 64);
    p->pass = PASS_BACKWARD;
    p->input_gradient = false;
    m = must_build(a, p);
    check_graph(&m->g);
    assert_false(m->g.t[graph_find(&m->g, "layers.1.input")].diff);
    assert_int_equal(m->g.loss, graph_find(&m->g, "loss"));
    assert_false(m->g.t[graph_find(&m->g, "cotangent")].diff);
    p->loss_kind = "sum";
    m = must_build(a, p);
    assert_int_equal(graph_find(&m->g, "cotangent"), -1);
    assert_string_equal(m->g.node[m->g.nn - 1].rule.text, "btd->");
    p->parts = PART_NORM | PART_HEAD | PART_LOSS;
    p->loss_kind = NULL;
    m = must_build(a, p);
    check_graph(&m->g);
    assert_int_equal(m->g.t[graph_find(&m->g, "layers.2.output")].kind, KIND_INPUT);
    p->parts = PART_BLOCKS | PART_LOSS;
    p->loss_kind = "cross_entropy";
    must_fail(a, p, "E0214", "no head");
    p->loss_kind = "hinge";
    must_fail(a, p, "E0214", "hinge");
    p->loss_kind = "var";
    m = must_build(a, p);
    check_graph(&m->g);
    assert_int_equal(m->g.t[graph_find(&m->g, "target")].kind, KIND_INPUT);
    assert_false(m->g.t[graph_find(&m->g, "target")].diff);
    p->label_smoothing = 0.1;
    must_fail(a, p, "E0214", "no labels to smooth");
    p->label_smoothing = 0;
    p->kind = "mlp";
    p->n_sizes = 2;
    p->sizes = (int64_t[]){3, 1};
    p->rows = 1;
    must_fail(a, p, "E0214", "variance of one number");
    arena_free(a);
}

/* ---- losses: numbers of the unsharded program ---- */

/* The tensors of a run, every parameter moved by h in a direction of its own. */
typedef struct {
    FullSource src;
    double h;
} Moved;
static double direction(const GTensor *t, int64_t i) {
    return (double)((i * 7919 + (int64_t)strlen(t->name) * 104729 + t->id * 31) % 201 - 100) / 100;
}
static int64_t count_of(const GTensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->nd; i++) n *= t->size[i];
    return n;
}
static void *moved_full(void *arg, int t, Dtype dtype) {
    Moved *m = arg;
    const GTensor *g = &m->src.g->t[t];
    double *x = reference_full(&m->src, t, dtype);
    assert_non_null(x);
    for (int64_t i = 0; g->kind == KIND_PARAM && i < count_of(g); i++)
        x[i] += m->h * direction(g, i);
    return x;
}

typedef struct {
    Arena *a;
    const Model *m;
    Exec *e;
    Program *p;
    double loss;
    double slope; /* gradient of all parameters times the direction */
} Ran;
static Ran run_model(Arena *a, const Plan *p, double h) {
    Diags *d = diags_new(a);
    Ran r = {.a = a, .m = must_build(a, p)};
    Weights *w = weights_open(a, d, p, r.m);
    if (!w) diags_print(d, stderr, false);
    assert_non_null(w);
    Pool *pool = pool_new(1);
    r.p = reference_program(a, p, r.m, d, true);
    r.e = exec_new(a, r.p, DT_F64, pool);
    Moved *full = ARENA_NEW(a, Moved);
    *full = (Moved){.src = {.w = w, .d = d, .g = &r.m->g}, .h = h};
    r.e->full = moved_full;
    r.e->full_arg = full;
    r.e->keep_all = true;
    for (int i = 0; i < r.p->ns; i++) assert_true(exec_step(r.e, &r.p->step[i]));
    r.loss = *(double *)exec_store(r.e, r.p->loss)->l[0].t.p;
    for (int t = 0; t < r.m->g.nt; t++) {
        const GTensor *g = &r.m->g.t[t];
        if (g->kind != KIND_PARAM) continue;
        const double *x = exec_store(r.e, r.p->grad[t])->l[0].t.p;
        for (int64_t i = 0; i < count_of(g); i++) r.slope += x[i] * direction(g, i);
    }
    weights_close(w);
    pool_free(pool);
    return r;
}

/* Every loss: the gradient against central differences along one direction in all parameters,
 * padded rows included. */
static void test_loss_slopes(void **state) {
    (void)state;
    static const struct {
        const char *kind;
        double smoothing;
        int64_t multiple;
        bool mlp;
    } losses[] = {{NULL, 0, 1, false},    {NULL, 0.1, 1, false}, {NULL, 0, 8, false},
                  {NULL, 0.3, 32, false}, {"var", 0, 1, false},  {"var", 0, 1, true},
                  {"sum", 0, 1, true},    {"dot", 0, 1, true},   {"mse", 0, 1, true}};
    int64_t sizes[] = {5, 7, 3};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        Arena *a = arena_new();
        Plan *p = new_plan(a);
        p->pass = PASS_BACKWARD;
        p->seed = i;
        p->loss_kind = losses[i].kind;
        p->label_smoothing = losses[i].smoothing;
        p->vocab_multiple = losses[i].multiple;
        if (losses[i].mlp) {
            p->kind = "mlp";
            p->activation = "silu";
            p->n_sizes = 3;
            p->sizes = sizes;
            p->rows = 4;
        } else {
            p->inline_config = arena_printf(a, "{%s}", inline_sizes);
            p->parts = losses[i].kind ? PART_BLOCKS | PART_LOSS : ALL_PARTS;
            p->batch = 2;
            p->sequence = 7;
        }
        Ran at = run_model(a, p, 0), above = run_model(a, p, 1e-5), below = run_model(a, p, -1e-5);
        double want = (above.loss - below.loss) / 2e-5;
        if (!(fabs(at.slope - want) <= 1e-7 * (1 + fabs(want))))
            fail_msg("case %zu: slope %.15g, differences say %.15g", i, at.slope, want);
        exec_free(at.e);
        exec_free(above.e);
        exec_free(below.e);
        arena_free(a);
    }
}

/* A padded vocabulary changes no loss and no gradient, and has none of its own; with or without a
 * weights file. */
static void test_padding(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        Plan *p = new_plan(a);
        if (i < 2) {
            p->inline_config = arena_printf(a, "{%s}", inline_sizes);
            p->batch = 2;
            p->sequence = 7;
        } else {
            p = golden_plan(a, "qwen3", "config.json"); /* a tied table */
            p->weights = golden_path(a, "hf/%s/%s", "qwen3", "model.safetensors");
        }
        p->parts = ALL_PARTS;
        p->pass = PASS_BACKWARD;
        p->label_smoothing = i % 2 ? 0.2 : 0;
        Ran plain = run_model(a, p, 0);
        p->vocab_multiple = plain.m->dims.V - 1; /* as many padded rows as can be */
        Ran padded = run_model(a, p, 0);
        assert_int_equal(padded.m->dims.vocab, plain.m->dims.V);
        assert_int_equal(padded.m->dims.V, 2 * (plain.m->dims.V - 1));
        assert_true(padded.loss == plain.loss);
        for (int t = 0; t < plain.m->g.nt; t++) {
            if (plain.m->g.t[t].kind != KIND_PARAM) continue;
            int64_t n = count_of(&plain.m->g.t[t]), all = count_of(&padded.m->g.t[t]);
            const double *x = exec_store(plain.e, plain.p->grad[t])->l[0].t.p,
                         *y = exec_store(padded.e, padded.p->grad[t])->l[0].t.p;
            const double *value = exec_store(padded.e, padded.p->first[t])->l[0].t.p;
            for (int64_t k = 0; k < n; k++)
                assert_true(fabs(x[k] - y[k]) <= 1e-14 * (1 + fabs(x[k])));
            for (int64_t k = n; k < all; k++) assert_true(y[k] == 0 && value[k] == 0);
        }
        exec_free(plain.e);
        exec_free(padded.e);
        arena_free(a);
    }
}

/* The toy runs' first loss and its gradients, as PyTorch recorded them. */
static void test_toy_losses(void **state) {
    (void)state;
    static const struct {
        const char *run, *loss;
    } runs[] = {
        {"adamw-var", "var"}, {"sgd-var-clip", "var"}, {"adamw-sum", "sum"}, {"sgd-sum", "sum"}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        Arena *a = arena_new();
        Plan *p = new_plan(a);
        p->inputs = golden_path(a, "toy/%s/values.safetensors", runs[i].run);
        p->weights = p->inputs;
        p->weights_prefix = "initial.";
        p->kind = "mlp";
        p->activation = "relu";
        p->n_sizes = 3;
        p->sizes = (int64_t[]){10, 32, 5};
        p->loss_kind = runs[i].loss;
        p->pass = PASS_BACKWARD;
        Ran r = run_model(a, p, 0);
        SafeTensors *st = st_open(a, diags_new(a), p->inputs, (Loc){0});
        double want;
        assert_true(st_read(st_find(st, "losses"), 0, 1, DT_F64, &want));
        assert_true(fabs(r.loss - want) <= 1e-12 * fabs(want));
        for (int t = 0; t < r.m->g.nt; t++) {
            const GTensor *g = &r.m->g.t[t];
            if (g->kind != KIND_PARAM) continue;
            const StTensor *s = st_find(st, arena_printf(a, "step0.grad.%s", g->name));
            const double *x = exec_store(r.e, r.p->grad[t])->l[0].t.p;
            assert_non_null(s);
            for (int64_t k = 0; k < count_of(g); k++) {
                assert_true(st_read(s, k, 1, DT_F64, &want));
                assert_true(fabs(x[k] - want) <= 1e-12 * (1 + fabs(want)));
            }
        }
        st_close(st);
        exec_free(r.e);
        arena_free(a);
    }
}

static void test_mlp(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = new_plan(a);
    p->kind = "mlp";
    p->n_sizes = 3;
    p->sizes = (int64_t[]){10, 32, 5};
    p->rows = 20;
    p->pass = PASS_BACKWARD;
    Model *m = must_build(a, p);
    check_graph(&m->g);
    static const char *const order[] = {"net1.product", "net1", "act1",
                                        "net2.product", "net2", "loss"};
    assert_int_equal(m->g.nn, 6);
    for (int i = 0; i < 6; i++) assert_string_equal(m->g.t[m->g.node[i].out].name, order[i]);
    assert_shape(&m->g.t[graph_find(&m->g, "net2.weight")], 2, (int64_t[]){5, 32});
    assert_shape(&m->g.t[graph_find(&m->g, "input")], 2, (int64_t[]){20, 10});
    assert_string_equal(graph_stored_symbol(&m->g.t[graph_find(&m->g, "net1.weight")], 0, a), "F");
    assert_string_equal(graph_stored_symbol(&m->g.t[graph_find(&m->g, "net1.weight")], 1, a), "I");
    assert_int_equal(params_of(m), 10 * 32 + 32 + 32 * 5 + 5);
    assert_int_equal(graph_find(&m->g, "net1.output"), graph_find(&m->g, "net1"));
    assert_int_equal(graph_find(&m->g, "net2.input"), graph_find(&m->g, "act1"));
    p->mlp_bias = 0;
    p->activation = "none";
    p->n_layer_names = 2;
    p->layer_names = (const char *[]){"in_proj", "out_proj"};
    p->pass = PASS_FORWARD;
    m = must_build(a, p);
    assert_int_equal(m->g.nn, 2);
    assert_int_equal(graph_find(&m->g, "out_proj"), m->g.output);
    p->n_layer_names = 1;
    must_fail(a, p, "E0307", NULL);
    p->n_layer_names = 0;
    p->activation = "sine";
    must_fail(a, p, "E0206", "sine");
    p->n_sizes = 1;
    must_fail(a, p, "E0208", "two sizes");
    p->kind = "cnn";
    must_fail(a, p, "E0206", "cnn");
    arena_free(a);
}

/* ---- names ---- */

static void test_schemes(void **state) {
    (void)state;
    static const struct {
        Names scheme;
        const char *wq, *down, *gate_out, *attn_in, *norm, *head;
    } want[] = {
        {NAMES_TORCHTITAN, "layers.1.attention.wq.weight", "layers.1.feed_forward.w2.weight",
         "layers.1.feed_forward.w1.output", "layers.1.attention.input", "layers.1.ffn_norm.weight",
         "output.weight"},
        {NAMES_TORCHTUNE, "layers.1.attn.q_proj.weight", "layers.1.mlp.w2.weight",
         "layers.1.mlp.w1.output", "layers.1.attn.input", "layers.1.mlp_norm.scale",
         "output.weight"},
        {NAMES_HF, "model.layers.1.self_attn.q_proj.weight", "model.layers.1.mlp.down_proj.weight",
         "model.layers.1.mlp.gate_proj.output", "layers.1.self_attn.input",
         "model.layers.1.post_attention_layernorm.weight", "lm_head.weight"},
        {NAMES_MEGATRON, "decoder.layers.1.self_attention.linear_q.weight",
         "decoder.layers.1.mlp.linear_fc2.weight", "decoder.layers.1.mlp.linear_fc1_gate.output",
         "decoder.layers.1.self_attention.input", "decoder.layers.1.pre_mlp_layernorm.weight",
         "output_layer.weight"},
        {NAMES_GGUF, "blk.1.attn_q.weight", "blk.1.ffn_down.weight", "blk.1.ffn_gate.output",
         "blk.1.attn.input", "blk.1.ffn_norm.weight", "output.weight"},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        Arena *a = arena_new();
        Plan *p = golden_plan(a, "llama-gqa", "config.json");
        p->names = want[i].scheme;
        const Graph *g = &must_build(a, p)->g;
        const char *pairs[][2] = {
            {want[i].wq, "model.layers.1.self_attn.q_proj.weight"},
            {want[i].down, "layers.1.mlp.down_proj.weight"}, /* Hugging Face's without "model." */
            {want[i].gate_out, "layers.1.mlp.gate"},
            {want[i].attn_in, "layers.1.input_norm"},
            {want[i].norm, "model.layers.1.post_attention_layernorm.weight"},
            {want[i].head, "lm_head.weight"},
            {"model.layers.1.self_attn.o_proj.output", "layers.1.o_proj"},
            {"layers.1.self_attn.o_proj.input", "layers.1.attn_context"},
            {"lm_head.output", "logits"},
        };
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
            int x = graph_find(g, pairs[k][0]), y = graph_find(g, pairs[k][1]);
            if (x < 0 || x != y) fail_msg("%s is not %s", pairs[k][0], pairs[k][1]);
        }
        assert_string_equal(g->t[graph_find(g, want[i].wq)].plan_name, want[i].wq);
        assert_int_equal(graph_find(g, "layers.1.nothing"), -1);
        /* only torchtune's norms have a scale, and those are known by `weight` too */
        assert_int_equal(graph_find(g, "layers.1.attn.q_proj.scale"), -1);
        assert_int_equal(graph_find(g, "layers.1.ffn_norm.scale"), -1);
        if (want[i].scheme == NAMES_TORCHTUNE)
            assert_int_equal(graph_find(g, "layers.1.mlp_norm.weight"),
                             graph_find(g, want[i].norm));
        arena_free(a);
    }
}

static const char *one_layer(Arena *a, const char *name) {
    const char *star = strchr(name, '*');
    return star ? arena_printf(a, "%.*s3%s", (int)(star - name), name, star + 1) : name;
}
static void test_names_table(void **state) {
    (void)state;
    Arena *a = arena_new();
    int n;
    const NamesRow *rows = names_table(&n);
    for (int s = 0; s < NAMES_COUNT; s++)
        for (int i = 0; i < n; i++) {
            assert_non_null(rows[i].name[s]);
            /* what holds experts is called as what holds one feed-forward part, but for some */
            if (!strncmp(rows[i].what, "experts and router", 18)) continue;
            /* a norm after attention is called as one before the feed-forward part */
            if (s == NAMES_HF && !strcmp(rows[i].what, "norm after attention")) continue;
            /* Hugging Face's are the canonical ones; elsewhere models share names: each is read */
            int before = 0;
            for (int k = 0; k < i; k++) before += !strcmp(rows[i].name[s], rows[k].name[s]);
            assert_true(s != NAMES_HF || !before);
            const char *hf = names_from_scheme(a, (Names)s, one_layer(a, rows[i].name[s]), before);
            assert_string_equal(hf, one_layer(a, rows[i].name[NAMES_HF]));
        }
    assert_null(names_to_scheme(a, NAMES_GGUF, "model.layers.x.mlp"));
    assert_null(names_to_scheme(a, NAMES_GGUF, "net1"));
    assert_string_equal(names_to_scheme(a, NAMES_GGUF, "model.layers.12.mlp"), "blk.12.ffn");
    assert_string_equal(
        names_to_scheme(a, NAMES_TORCHTITAN, "model.layers.3.self_attn.q_proj.bias"),
        "layers.3.attention.wq.bias");
    static const char *const titan[] = {"tok_embeddings.weight", "layers.0.attention.wq.weight",
                                        "norm.weight"};
    static const char *const tune[] = {"layers.0.attn.q_proj.weight", "layers.0.mlp.w1.weight"};
    static const char *const hf[] = {"model.layers.0.self_attn.q_proj.weight"};
    static const char *const gguf[] = {"token_embd.weight", "blk.7.attn_q.weight"};
    assert_int_equal(names_recognise(titan, 3), NAMES_TORCHTITAN);
    assert_int_equal(names_recognise(tune, 2), NAMES_TORCHTUNE);
    assert_int_equal(names_recognise(hf, 1), NAMES_HF);
    assert_int_equal(names_recognise(gguf, 2), NAMES_GGUF);
    assert_int_equal(names_recognise(gguf, 0), -1);
    arena_free(a);
}

/* ---- sizes ---- */

static void test_shrink(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = new_plan(a);
    p->preset = "llama3-8b";
    p->shrink = 16;
    ModelDims m = must_build(a, p)->dims;
    assert_int_equal(m.D, 256);
    assert_int_equal(m.full_D, 4096);
    assert_int_equal(m.d, 8);
    assert_int_equal(m.F, 896);
    assert_int_equal(m.V, 8016);
    assert_int_equal(m.H, 32);
    Mesh mesh = {.naxes = 3};
    static const struct {
        const char *name;
        int64_t size;
    } axes[] = {{"dp", 3}, {"cp", 5}, {"tp", 64}};
    for (int i = 0; i < 3; i++) {
        mesh.axis[i].name = axes[i].name;
        mesh.axis[i].size = axes[i].size;
    }
    assert_true(mesh_finish(&mesh));
    p->shrink = 100;
    Model *x = model_build(a, diags_new(a), p, &mesh);
    assert_non_null(x);
    assert_int_equal(x->dims.D, 64);
    assert_int_equal(x->dims.d, 8);
    assert_int_equal(x->dims.F, 192);
    assert_int_equal(x->dims.V, 1344); /* 1283 rounded up to a multiple of 64 */
    p->shrink = INT64_MAX;
    x = model_build(a, diags_new(a), p, &mesh);
    assert_int_equal(x->dims.D, 64);
    assert_int_equal(x->dims.d, 8);
    /* what some axis does not divide, none of its parts may hide: F of 11007, V of 128258 */
    static const char uneven[] = "{\"hidden_size\": 4096, \"intermediate_size\": 11007, "
                                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 32, "
                                 "\"vocab_size\": 128258}";
    mesh = (Mesh){.naxes = 2, .axis = {{.name = "ep", .size = 3}, {.name = "tp", .size = 4}}};
    assert_true(mesh_finish(&mesh));
    p->preset = NULL;
    p->inline_config = uneven;
    p->shrink = 16;
    x = model_build(a, diags_new(a), p, &mesh);
    assert_non_null(x);
    assert_int_equal(x->dims.D, 256);  /* by 4, not by 3: nothing changes */
    assert_int_equal(x->dims.F, 693);  /* 688 is even; by 3, not by 2 */
    assert_int_equal(x->dims.V, 8018); /* 8017; by 2, not by 4 and not by 3 */
    arena_free(a);
}

/* A quarter of 96 dims turns: of 6 and of 12 that would be 1 and 3. */
static void test_shrunk_rotation(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = new_plan(a);
    p->inline_config = "{\"model_type\": \"gpt_neox\", \"hidden_size\": 6144, "
                       "\"num_hidden_layers\": 1, \"num_attention_heads\": 64, "
                       "\"intermediate_size\": 24576, \"vocab_size\": 50432}";
    for (p->shrink = 8; p->shrink <= 16; p->shrink *= 2) {
        Model *x = model_build(a, diags_new(a), p, NULL);
        assert_non_null(x);
        assert_int_equal(x->dims.d, p->shrink == 8 ? 16 : 8);
        assert_int_equal(x->dims.turned, p->shrink == 8 ? 4 : 2);
    }
    arena_free(a);
}

/* ---- what is refused ---- */

#define DEEPSEEK                                                                                   \
    "\"model_type\": \"deepseek_v3\", \"q_lora_rank\": null, \"kv_lora_rank\": 6, "                \
    "\"qk_nope_head_dim\": 8, \"qk_rope_head_dim\": 4, \"v_head_dim\": 5, "                        \
    "\"num_key_value_heads\": "
#define OWN_KEYS DEEPSEEK "6"
#define MISTRAL_SWITCHED                                                                           \
    "\"model_type\": \"mistral\", \"sliding_window\": 40, \"use_sliding_window\": false"
#define LLAMA4 "\"model_type\": \"llama4_text\", \"moe_layers\": "
static const struct {
    const char *keys, *code, *text; /* code NULL: accepted */
} config_keys[] = {
    {"\"attention_dropout\": 0.1", NULL, NULL},
    {"\"use_cache\": true, \"bos_token_id\": 1", NULL, NULL},
    {"\"something_new\": null, \"a\": false, \"b\": 0, \"c\": \"\", \"e\": [], \"f\": {}", NULL,
     NULL},
    {"\"something_new\": 3", "E0207", "something_new"},
    {"\"logit_softcap\": 30.0", "E0207", "logit_softcap"},
    /* as files of the hub have them */
    {"\"quantization_config\": {\"bits\": 4}, \"cache_implementation\": \"hybrid\"", NULL, NULL},
    {"\"hidden_act\": \"gelu_fast\", \"model_max_length\": 8", NULL, NULL},
    {"\"sliding_window\": 64, \"sliding_window_size\": 64", NULL, NULL}, /* gemma2's */
    {"\"model_type\": \"cohere2\", \"use_parallel_block\": true, \"rotary_pct\": 1.0", NULL, NULL},
    {"\"model_type\": \"cohere\", \"use_parallel_block\": true", "E0207", "use_parallel_block"},
    {"\"model_type\": \"cohere\", \"rotary_pct\": 1.0", "E0207", "rotary_pct"},
    /* 64 tokens */
    {"\"sliding_window\": 64", NULL, NULL},
    {"\"sliding_window\": 63", "E0207", "each of 64 tokens sees 63"},
    {"\"sliding_window\": \"big\"", "E0302", "sliding_window"},
    {"\"sliding_window\": 4096", NULL, NULL},
    {"\"sliding_window\": 4096, \"use_sliding_window\": false", NULL, NULL},
    {"\"sliding_window\": 8, \"use_sliding_window\": true", "E0207", "sliding_window"},
    /* Mistral's classes have a window of 4096 and no switch, Qwen's a switch that is off */
    {"\"model_type\": \"mistral\"", NULL, NULL},
    {"\"model_type\": \"mistral\", \"sliding_window\": 9", NULL, NULL},
    {"\"model_type\": \"ministral\", \"sliding_window\": 9, \"layer_types\": [1]", "E0207",
     "layer_types"},
    {"\"model_type\": \"mistral\", \"sliding_window\": null", NULL, NULL},
    {MISTRAL_SWITCHED, NULL, NULL},
    {"\"model_type\": \"qwen2\", \"sliding_window\": 131072", NULL, NULL},
    {"\"model_type\": \"qwen3\", \"sliding_window\": 4096", NULL, NULL},
    {"\"model_type\": \"qwen2\", \"use_sliding_window\": true", NULL, NULL},
    {"\"model_type\": \"qwen2\", \"use_sliding_window\": true, \"sliding_window\": null", NULL,
     NULL},
    {"\"model_type\": \"qwen3\", \"sliding_window\": 9, \"use_sliding_window\": true", NULL, NULL},
    {"\"layer_types\": [\"full_attention\", \"sliding_attention\"]", "E0207", "layer_types"},
    {"\"partial_rotary_factor\": 0.5", "E0207", "partial_rotary_factor"},
    {"\"partial_rotary_factor\": 1.0", NULL, NULL},
    {"\"hidden_act\": \"sine\"", "E0207", "sine"},
    {"\"model_type\": \"gemma9\"", "E0207", "gemma9"},
    {"\"model_type\": \"arcee\", \"packed_mlp\": true", "E0207", "packed_mlp"},
    {"\"embedding_multiplier\": 2.0", "E0207", "embedding_multiplier"},
    {"\"clip_qkv\": 2.0", "E0207", "clip_qkv"},
    {"\"clip_qkv\": null, \"attn_logit_softcapping\": null", NULL, NULL},
    {"\"model_type\": \"olmo\", \"clip_qkv\": 2.0", NULL, NULL},
    {"\"model_type\": \"olmo\", \"clip_qkv\": -1", "E0309", "clip_qkv"},
    {"\"model_type\": \"olmo\", \"clip_qkv\": 1e300", "E0309", "clips nothing"},
    {"\"model_type\": \"glm4\", \"partial_rotary_factor\": 99", "E0309", "1 or less"},
    {"\"model_type\": \"olmoe\", \"clip_qkv\": 1e300", "E0309", "clips nothing"},
    {"\"model_type\": \"cohere\", \"use_qk_norm\": true, \"logit_scale\": 2", NULL, NULL},
    {"\"model_type\": \"cohere2\", \"use_qk_norm\": true", "E0207", "use_qk_norm"},
    {"\"model_type\": \"cohere2_moe\", \"mlp_layer_types\": [\"dense\"]", "E0207",
     "mlp_layer_types"},
    {"\"model_type\": \"cohere2_moe\", \"expert_selection_fn\": \"sigmoid\"", "E0207",
     "expert_selection_fn"},
    {"\"model_type\": \"cohere2_moe\", \"num_shared_experts\": 1", "E0207",
     "shared_expert_combination_strategy"},
    {"\"model_type\": \"cohere2_moe\", \"rms_norm_eps\": 1e-6", "E0207", "rms_norm_eps"},
    {"\"model_type\": \"qwen3_moe\", \"shared_expert_intermediate_size\": 6", "E0207",
     "shared_expert_intermediate_size"},
    {"\"model_type\": \"olmo3\", \"rope_local_base_freq\": 10", "E0207", "rope_local"},
    {"\"model_type\": \"gpt_neox\", \"rotary_pct\": 0.5", "E0207", "num_key_value_heads"},
    {"\"model_type\": \"gpt2\", \"scale_attn_by_inverse_layer_idx\": true", "E0207", "inverse"},
    {"\"n_inner\": 7", "E0207", "n_inner"},
    {"\"model_type\": \"gemma2\", \"attn_logit_softcapping\": 0", "E0309", "softcapping"},
    {"\"model_type\": \"gemma2\", \"use_bidirectional_attention\": true", "E0207", "bidirectional"},
    {"\"model_type\": \"gemma2\", \"rope_local_base_freq\": 10", "E0207", "rope_local_base_freq"},
    {"\"model_type\": \"gemma3_text\", \"rope_local_base_freq\": 10", NULL, NULL},
    {"\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 10.0}}", "E0207",
     "sliding_attention"},
    {"\"model_type\": \"gemma3_text\", \"rope_parameters\": {\"sliding_attention\": "
     "{\"rope_type\": \"linear\", \"factor\": 2}}",
     "E0207", "factor"},
    {"\"model_type\": \"gemma3_text\", \"rope_parameters\": {\"sliding_attention\": "
     "{\"rope_type\": \"linear\"}}",
     "E0207", "default"},
    {"\"model_type\": \"glm\", \"partial_rotary_factor\": 1.5", "E0309", "partial_rotary_factor"},
    {"\"model_type\": \"glm\", \"head_dim\": 4, \"partial_rotary_factor\": 0.25", "E0309", "turns"},
    {"\"model_type\": \"apertus\", \"hidden_act\": \"xielu\"", NULL, NULL},
    {"\"hidden_act\": \"xielu\"", "E0207", "xielu"},
    {"\"model_type\": \"phi3\", \"rope_scaling\": {\"type\": \"su\", \"short_factor\": [1, 2], "
     "\"long_factor\": [2.5, 4]}",
     NULL, NULL},
    {"\"model_type\": \"phi3\", \"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1], "
     "\"long_factor\": [2, 4]}",
     "E0207", "short_factor"},
    {"\"model_type\": \"phi3\", \"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1, "
     "2]}",
     "E0207", "long_factor"},
    {"\"model_type\": \"phi3\", \"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": "
     "[1, \"x\"], \"long_factor\": [2, 4]}",
     "E0207", "short_factor"},
    {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4, \"short_factor\": [1, 2]}", "E0207",
     "short_factor"},
    {"\"model_type\": \"qwen2\", \"mlp_bias\": true", "E0207", "mlp_bias"},
    {"\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 4}", "E0207", "dynamic"},
    {"\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}", "E0208", "yarn"},
    {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}", NULL, NULL},
    {"\"rope_scaling\": {\"type\": \"linear\"}", "E0208", "linear"},
    {"\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 4}", "E0208", "llama3"},
    {"\"rope_parameters\": {\"rope_theta\": 10.0, \"mscale\": 2}", "E0207", "mscale"},
    {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4, \"beta_fast\": 9}", "E0207",
     "beta_fast"},
    {"\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, "
     "\"original_max_position_embeddings\": 64}",
     NULL, NULL},
    {"\"kv_lora_rank\": 16", "E0207", "kv_lora_rank"},
    {"\"attention_chunk_size\": 16", "E0207", "attention_chunk_size"},
    {"\"attention_chunk_size\": null", NULL, NULL},
    {"\"num_local_experts\": 4", "E0207", "num_local_experts"},
    {OWN_KEYS, NULL, NULL},
    {OWN_KEYS ", \"qk_head_dim\": 12, \"n_routed_experts\": 4, \"num_experts_per_tok\": 2", NULL,
     NULL},
    {OWN_KEYS ", \"qk_head_dim\": 13", "E0207", "13"},
    {DEEPSEEK "1", "E0307", "latent"},
    {OWN_KEYS ", \"qk_norm\": true", "E0207", "qk_norm"},
    {OWN_KEYS ", \"attention_chunk_size\": 8", "E0207", "attention_chunk_size"},
    {"\"model_type\": \"deepseek_v3\", \"kv_lora_rank\": 6", "E0208", "q_lora_rank"},
    {OWN_KEYS ", \"first_k_dense_replace\": 0", NULL, NULL},
    {OWN_KEYS ", \"first_k_dense_replace\": -1", "E0302", "first_k_dense_replace"},
    {LLAMA4 "[]", NULL, NULL},
    {LLAMA4 "[0]", NULL, NULL},
    {LLAMA4 "[7]", "E0207", "moe_layers"},
    {LLAMA4 "[], \"no_rope_layers\": [1, 0]", "E0207", "no_rope_layers"},
    {LLAMA4 "[], \"layer_types\": [\"sliding_attention\"]", "E0207", "layer_types"},
    {LLAMA4 "[], \"q_lora_rank\": 3", "E0207", "q_lora_rank"},
    {LLAMA4 "[], \"attn_temperature_tuning\": 4, \"attention_chunk_size\": null", NULL, NULL},
    {"\"rope_parameters\": {\"rope_theta\": 10.0}, \"rope_theta\": 11.0", "E0207", "rope_theta"},
    {"\"rope_theta\": -1", "E0309", "rope_theta"},
    {"\"rope_theta\": \"big\"", "E0301", "rope_theta"},
    {"\"num_hidden_layers\": 0", "E0302", "num_hidden_layers"},
    {"\"hidden_size\": 12.5", "E0302", "hidden_size"},
    {"\"hidden_size\": null", "E0208", "hidden_size"},
    {"\"tie_word_embeddings\": 1", "E0301", "tie_word_embeddings"},
    {"\"num_key_value_heads\": 4", "E0307", "query heads"},
    {"\"head_dim\": 5", "E0309", "odd"},
    {"\"head_dim\": null, \"hidden_size\": 13", "E0307", "13"},
    {"\"head_dim\": null", NULL, NULL},
    {"\"hidden_size\": 1099511627776, \"vocab_size\": 1099511627776", "E0701", "elements"},
};

static void test_config_keys(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof config_keys / sizeof *config_keys; i++) {
        Arena *a = arena_new();
        Plan *p = new_plan(a);
        p->parts = ALL_PARTS;
        /* As a file: the keys under test, then those of the base that they do not set. */
        Str s = str_new(a);
        str_addf(&s, "{\n%s", config_keys[i].keys);
        static const char *const base[] = {
            "\"hidden_size\": 12",      "\"num_attention_heads\": 6", "\"num_key_value_heads\": 3",
            "\"head_dim\": 4",          "\"intermediate_size\": 7",   "\"vocab_size\": 11",
            "\"num_hidden_layers\": 3", "\"model_type\": \"llama\""};
        for (size_t k = 0; k < sizeof base / sizeof *base; k++) {
            char *key = arena_strndup(a, base[k], strcspn(base[k], ":"));
            if (!strstr(config_keys[i].keys, key)) str_addf(&s, ",\n%s", base[k]);
        }
        str_add(&s, "}\n");
        p->hf_config = config_of(a, "keys.json", s.s);
        if (config_keys[i].code) must_fail(a, p, config_keys[i].code, config_keys[i].text);
        else must_build(a, p);
        arena_free(a);
    }
}

static void test_refusals(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = new_plan(a);
    must_fail(a, p, "E0208", "which model");
    p->preset = "lama3-8b";
    Diags *d = diags_new(a);
    assert_null(model_build(a, d, p, NULL));
    assert_string_equal(d->item[0].code, "E0202");
    assert_non_null(strstr(d->item[0].hint, "llama3-8b"));
    p->preset = "llama3-8b";
    p->layers_last = 33;
    must_fail(a, p, "E0309", "32");
    p->layers_first = 5;
    p->layers_last = 5;
    must_fail(a, p, "E0309", NULL);
    p->layers_first = 0;
    p->preset = NULL;
    p->hf_config = "nowhere/config.json";
    must_fail(a, p, "E0101", "nowhere");
    p->hf_config = NULL;
    p->inline_config = "{\"hidden_size\": 12,}";
    must_fail(a, p, "E0109", NULL);
    p->inline_config = "[1]";
    must_fail(a, p, "E0109", NULL);
    /* Several mistakes are told together, with their lines. */
    static const char text[] =
        "{\n  \"alpha_scale\": 2,\n  \"beta_scale\": 3,\n  \"model_type\": \"llama\"\n}\n";
    p->inline_config = NULL;
    p->hf_config = config_of(a, "scales.json", text);
    d = diags_new(a);
    assert_null(model_build(a, d, p, NULL));
    assert_int_equal(diags_errors(d), 2);
    assert_int_equal(d->item[0].loc.line, 2);
    assert_int_equal(d->item[0].loc.col, 3);
    assert_int_equal(d->item[1].loc.line, 3);
    p->n_ignore_config = 2;
    p->ignore_config = (const char *[]){"alpha_scale", "beta_scale"};
    must_fail(a, p, "E0208", "hidden_size");
    arena_free(a);
}

/* A config that does not say whose mathematics it is, is nobody's: it would run as a Llama. */
static void test_config_without_type(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = new_plan(a);
    static const char text[] =
        "{\"architectures\": [\"BertLMHeadModel\"], \"hidden_size\": 8, \"intermediate_size\": 8, "
        "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"vocab_size\": 8}\n";
    const char *path = config_of(a, "untyped.json", text);
    p->hf_config = path;
    must_fail(a, p, "E0208", "'model_type'");
    /* nor are its other keys held against a family's, one by one */
    static const char keys[] = "{\"n_embd\": 8, \"n_layer\": 1, \"hidden_size\": 8}\n";
    p->hf_config = config_of(a, "gpt2.json", keys);
    Diags *d = diags_new(a);
    assert_null(model_build(a, d, p, NULL));
    assert_int_equal(diags_errors(d), 1);
    assert_non_null(strstr(d->item[0].message, "'model_type'"));
    p->hf_config = path;
    p->inline_config = "{\"model_type\": \"bert\"}";
    must_fail(a, p, "E0207", "bert");
    p->inline_config = "{\"model_type\": \"qwen2\"}"; /* the plan may say it */
    must_fail(a, p, "E0307", "32 key/value heads"); /* what the class has where a file is silent */
    p->inline_config = "{\"model_type\": \"qwen2\", \"num_key_value_heads\": 2}";
    assert_true(must_build(a, p)->dims.q_bias);
    p->hf_config = NULL; /* and keys written in a plan are this program's own model */
    p->inline_config = arena_strdup(a, strstr(text, "\"hidden_size\"") - 1);
    ((char *)(uintptr_t)p->inline_config)[0] = '{';
    must_build(a, p);
    arena_free(a);
}

/* A preset with keys of the plan on top. */
static void test_overrides(void **state) {
    (void)state;
    Arena *a = arena_new();
    Plan *p = new_plan(a);
    p->preset = "qwen3-8b";
    p->inline_config = "{\"hidden_size\": 64, \"head_dim\": 8, \"o_bias\": true}";
    ModelDims m = must_build(a, p)->dims;
    assert_int_equal(m.D, 64);
    assert_int_equal(m.d, 8);
    assert_int_equal(m.F, 12288);
    assert_true(m.qk_norm && m.o_bias && !m.q_bias);
    p->batch = 3;
    p->sequence = 5;
    p->vocab_multiple = 1000;
    m = must_build(a, p)->dims;
    assert_int_equal(m.B, 3);
    assert_int_equal(m.S, 5);
    assert_int_equal(m.V, 152000);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_shapes),
        cmocka_unit_test(test_config_generations),
        cmocka_unit_test(test_golden_frequencies),
        cmocka_unit_test(test_golden_values),
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_every_preset),
        cmocka_unit_test(test_rope_bands),
        cmocka_unit_test(test_every_feature),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_loss_slopes),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_toy_losses),
        cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_schemes),
        cmocka_unit_test(test_names_table),
        cmocka_unit_test(test_shrink),
        cmocka_unit_test(test_shrunk_rotation),
        cmocka_unit_test(test_config_keys),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_config_without_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
