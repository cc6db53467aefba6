/* Tests of render/: pictures from invented traces. The fixtures are written in a small language of symbolic shapes
 * ("[B/dp, S/(cp*sp), D]"), from which local shapes and bytes are computed, so that the facts in a picture can be compared
 * with the trace. `test_render --draw DIR` writes every fixture as pictures to look at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "render/paint.h"
#include "render/render.h"
#include "render/scene.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- building traces ---- */

typedef struct {
    Arena *a;
    Trace *t;
    int step, layer;
    int64_t bytes_per;
} Fix;

static int64_t axis_size(const Trace *t, const char *name) {
    for (int i = 0; i < t->n_groups; i++)
        if (!strcmp(t->groups[i].name, name)) name = t->groups[i].axes;
    for (int i = 0; i < t->n_axes; i++)
        if (!strcmp(t->axes[i].name, name)) return t->axes[i].size;
    return 1;
}
static double model_size(const Trace *t, const char *name) {
    for (int i = 0; i < t->n_model; i++)
        if (!strcmp(t->model[i].name, name)) return t->model[i].value;
    return atof(name);
}

/* "H*d/(tp*cp)" into whole and local size. */
static void dim_sizes(const Trace *t, const char *dim, int64_t *whole, int64_t *local) {
    char buf[64], *save = NULL;
    const char *slash = strchr(dim, '/');
    snprintf(buf, sizeof buf, "%.*s", slash ? (int)(slash - dim) : (int)strlen(dim), dim);
    *whole = 1;
    for (char *s = strtok_r(buf, "*", &save); s; s = strtok_r(NULL, "*", &save)) *whole *= (int64_t)model_size(t, s);
    *local = *whole;
    if (!slash) return;
    snprintf(buf, sizeof buf, "%s", slash + 1);
    for (char *s = strtok_r(buf, "()*", &save); s; s = strtok_r(NULL, "()*", &save)) *local /= axis_size(t, s);
}

static TraceShape shape(Fix *f, const char *name, const char *symbolic, const char *pending) {
    TraceShape s = {.name = name, .symbolic = symbolic, .pending = pending};
    Trace *t = f->t;
    char *text = arena_strndup(f->a, symbolic + 1, strlen(symbolic) - 2), *save = NULL;
    s.n_local = 1;
    s.local = ARENA_NEW(f->a, TraceLocal);
    s.local->ranks = rankset_range(f->a, 0, t->ranks, 1);
    s.local->bytes = f->bytes_per;
    s.place = ARENA_ARRAY(f->a, TracePlace, 16);
    for (char *d = strtok_r(text, ",", &save); d; d = strtok_r(NULL, ",", &save)) {
        while (*d == ' ') d++;
        s.dim_symbol[s.nd] = arena_strdup(f->a, d);
        dim_sizes(t, d, &s.global_shape[s.nd], &s.local->shape[s.nd]);
        s.local->bytes *= s.local->shape[s.nd];
        for (int i = 0; i < t->n_axes; i++) {
            const char *slash = strchr(d, '/');
            const char *name2 = t->axes[i].name;
            bool cut = slash && strstr(slash, name2);
            for (int k = 0; k < t->n_groups; k++)
                cut |= slash && !strcmp(t->groups[k].axes, name2) && strstr(slash, t->groups[k].name);
            if (cut) s.place[s.n_places++] = (TracePlace){name2, arena_printf(f->a, "shard(%d)", s.nd)};
        }
        s.nd++;
    }
    return s;
}

static Fix fix_new(Arena *a, const char *plan, const char *model) {
    Fix f = {a, trace_new(a), 0, 0, 2};
    f.t->plan = plan;
    f.t->model_name = model;
    f.t->hash = "0123456789abcdef";
    f.t->version = "0.1.0";
    f.t->backend = "virtual";
    f.t->pass = "forward";
    f.t->dtype = "bf16";
    f.t->ranks = 1;
    return f;
}
static void fix_axis(Fix *f, const char *name, int64_t size) {
    struct TraceAxis *ax = ARENA_ARRAY(f->a, struct TraceAxis, f->t->n_axes + 1);
    if (f->t->n_axes) memcpy(ax, f->t->axes, (size_t)f->t->n_axes * sizeof *ax);
    ax[f->t->n_axes].name = name;
    ax[f->t->n_axes++].size = size;
    f->t->axes = ax;
    f->t->ranks *= size;
    f->t->n_classes = 1;
    f->t->classes = ARENA_NEW(f->a, RankSet);
    *f->t->classes = rankset_range(f->a, 0, f->t->ranks, 1);
}
static void fix_group(Fix *f, const char *name, const char *axes) {
    f->t->groups = ARENA_NEW(f->a, struct TraceGroup);
    f->t->groups->name = name;
    f->t->groups->axes = axes;
    f->t->n_groups = 1;
}
static void fix_dim(Fix *f, const char *name, double v) {
    struct TraceDim *m = ARENA_ARRAY(f->a, struct TraceDim, f->t->n_model + 1);
    if (f->t->n_model) memcpy(m, f->t->model, (size_t)f->t->n_model * sizeof *m);
    m[f->t->n_model].name = name;
    m[f->t->n_model++].value = v;
    f->t->model = m;
}

static void fix_value(Fix *f, const char *name, int step, const char *symbolic, const char *pending, const char *kind) {
    Trace *t = f->t;
    TraceValue *v = ARENA_PUSH(f->a, t->values, t->n_values, t->cap_values);
    *v = (TraceValue){.step = step, .pass = "forward", .kind = kind, .layer = f->layer};
    v->shape = shape(f, name, symbolic, pending);
}
static void fix_param(Fix *f, const char *name, const char *symbolic, const char *style) {
    Trace *t = f->t;
    TraceParam *p = ARENA_PUSH(f->a, t->params, t->n_params, t->cap_params);
    *p = (TraceParam){.plan_name = name, .style = style, .layer = f->layer, .file = "plan.yaml", .line = 7};
    p->compute = p->rest = shape(f, name, symbolic, NULL);
    p->bytes = p->compute.local->bytes;
}

/* The step that last made a value; -1 if it is an input or a parameter. */
static int last_step(const Trace *t, const char *name) {
    int s = -1;
    for (int i = 0; i < t->n_values; i++)
        if (!strcmp(t->values[i].shape.name, name) && t->values[i].step > s) s = t->values[i].step;
    return s;
}
static const TraceValue *last_value(const Trace *t, const char *name) {
    const TraceValue *v = NULL;
    for (int i = 0; i < t->n_values; i++)
        if (!strcmp(t->values[i].shape.name, name) && (!v || t->values[i].step >= v->step)) v = &t->values[i];
    return v;
}

static void fix_op(Fix *f, const char *op, const char *label, const char *glyph, const char *module, const char *part,
                   const char *out, const char *symbolic, const char *pending, const char *in) {
    Trace *t = f->t;
    char *text = arena_strdup(f->a, in), *save = NULL;
    TraceCompute *c = ARENA_PUSH(f->a, t->computes, t->n_computes, t->cap_computes);
    *c = (TraceCompute){.step = f->step, .op = op, .label = label, .glyph = glyph, .module = module, .part = part,
                        .layer = f->layer, .output = out, .pass = "forward", .flops = 1e9, .bytes = 1 << 20};
    c->ranks = rankset_range(f->a, 0, t->ranks, 1);
    c->inputs = ARENA_ARRAY(f->a, const char *, 8);
    c->input_step = ARENA_ARRAY(f->a, int, 8);
    for (char *s = strtok_r(text, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        c->input_step[c->n_inputs] = last_step(t, s);
        c->inputs[c->n_inputs++] = s;
    }
    fix_value(f, out, f->step++, symbolic, pending, "activation");
}

static RankGroups groups_of(const Trace *t, const char *axis) {
    RankGroups g = {0};
    for (int i = 0; i < t->n_groups; i++)
        if (!strcmp(t->groups[i].name, axis)) axis = t->groups[i].axes;
    int64_t stride = t->ranks;
    for (int i = 0; i < t->n_axes; i++) {
        stride /= t->axes[i].size;
        bool in = !strcmp(t->axes[i].name, axis);
        int k = in ? g.n_in++ : g.n_out++;
        (in ? g.in_size : g.out_size)[k] = t->axes[i].size;
        (in ? g.in_stride : g.out_stride)[k] = stride;
    }
    return g;
}

static void fix_coll(Fix *f, const char *op, const char *axis, const char *value, const char *dim, const char *symbolic,
                     const char *part, const char *why) {
    Trace *t = f->t;
    const TraceValue *from = last_value(t, value);
    int64_t in = from->shape.local->bytes;
    int step = from->step;
    TraceCollective *c = ARENA_PUSH(f->a, t->collectives, t->n_collectives, t->cap_collectives);
    *c = (TraceCollective){.step = f->step, .op = op, .axis = axis, .axes = axis, .groups = groups_of(t, axis),
                           .dtype = "bf16", .bytes_in = in, .value = value, .value_step = step, .dim_symbol = dim,
                           .pass = "forward", .why = why, .file = "plan.yaml", .line = 12, .layer = f->layer, .part = part};
    for (int i = 0; i < t->n_groups; i++)
        if (!strcmp(t->groups[i].name, axis)) c->axes = t->groups[i].axes;
    fix_value(f, value, f->step++, symbolic, NULL, "moved");
    int64_t n = groups_size(&c->groups), out = last_value(t, value)->shape.local->bytes;
    c->bytes_out = out;
    c->bytes_sent = !strcmp(op, "all_reduce") ? 2 * (n - 1) * (in / n) : (n - 1) * (in > out ? in / n : in);
    if (strcmp(op, "all_gather")) c->reduce = "sum";
}

/* ---- the fixtures ---- */

typedef struct {
    const char *stream, *whole, *q, *k, *qh, *kh, *kfull, *ctx, *f; /* symbolic shapes */
    bool sp, cp, qk_norm, bias;
} Lay;

static void block_params(Fix *f, const Lay *l) {
    fix_param(f, "attention_norm.weight", "[D]", "sequence_parallel");
    fix_param(f, "wq.weight", "[H*d/tp, D]", "colwise");
    fix_param(f, "wk.weight", "[K*d/tp, D]", "colwise");
    fix_param(f, "wv.weight", "[K*d/tp, D]", "colwise");
    fix_param(f, "wo.weight", "[D, H*d/tp]", "rowwise");
    fix_param(f, "ffn_norm.weight", "[D]", "sequence_parallel");
    fix_param(f, "w1.weight", "[F/tp, D]", "colwise");
    fix_param(f, "w3.weight", "[F/tp, D]", "colwise");
    fix_param(f, "w2.weight", "[D, F/tp]", "rowwise");
    if (l->bias) {
        fix_param(f, "wq.bias", "[H*d/tp]", "colwise");
        fix_param(f, "wk.bias", "[K*d/tp]", "colwise");
        fix_param(f, "wv.bias", "[K*d/tp]", "colwise");
        fix_param(f, "wo.bias", "[D]", "rowwise");
    }
    if (l->qk_norm) {
        fix_param(f, "q_norm.weight", "[d]", NULL);
        fix_param(f, "k_norm.weight", "[d]", NULL);
    }
}

/* Reduces the pending sum of `v` the way the plan wants it. */
static void fix_reduce(Fix *f, const Lay *l, const char *v, const char *part) {
    if (axis_size(f->t, "tp") == 1) return;
    if (l->sp)
        fix_coll(f, "reduce_scatter", "sp", v, "S", l->stream, part, "adds the two halves of the sum");
    else
        fix_coll(f, "all_reduce", "tp", v, NULL, l->stream, part, "row parallel: the sum over H*d is pending");
}

static void projection(Fix *f, const Lay *l, const char *w, const char *out, const char *shape_out) {
    const char *weight = arena_printf(f->a, "%s.weight", w), *module = arena_printf(f->a, "layers.0.attention.%s", w);
    fix_op(f, "linear", "linear", "box", module, "attention", out, shape_out, NULL,
           arena_printf(f->a, "layers.0.input_norm %s", weight));
    if (!l->bias) return;
    fix_op(f, "add", "add", "plus", module, "attention", out, shape_out, NULL, arena_printf(f->a, "%s %s.bias", out, w));
}

static void attention_half(Fix *f, const Lay *l) {
    const char *at = "attention";
    fix_op(f, "rmsnorm", "RMSNorm", "box", "layers.0.attention_norm", "norm", "layers.0.input_norm", l->stream, NULL,
           "layers.0.input attention_norm.weight");
    if (l->sp)
        fix_coll(f, "all_gather", "sp", "layers.0.input_norm", "S", l->whole, "attention", "the matmul needs every token");
    projection(f, l, "wq", "layers.0.q_proj", l->q);
    projection(f, l, "wk", "layers.0.k_proj", l->k);
    projection(f, l, "wv", "layers.0.v_proj", l->k);
    const char *q = "layers.0.q_proj", *k = "layers.0.k_proj";
    if (l->qk_norm) {
        fix_op(f, "rmsnorm", "RMSNorm", "box", "layers.0.attention.q_norm", at, "layers.0.q_norm", l->qh, NULL,
               "layers.0.q_proj q_norm.weight");
        fix_op(f, "rmsnorm", "RMSNorm", "box", "layers.0.attention.k_norm", at, "layers.0.k_norm", l->kh, NULL,
               "layers.0.k_proj k_norm.weight");
        q = "layers.0.q_norm", k = "layers.0.k_norm";
    }
    fix_op(f, "rope", "RoPE", "box", "layers.0.attention", at, "layers.0.q_rope", l->qh, NULL, q);
    fix_op(f, "rope", "RoPE", "box", "layers.0.attention", at, "layers.0.k_rope", l->kh, NULL, k);
    if (l->cp) {
        fix_coll(f, "all_gather", "cp", "layers.0.k_rope", "S", l->kfull, at, "every query needs all earlier keys");
        fix_coll(f, "all_gather", "cp", "layers.0.v_proj", "S", "[B/dp, S, K*d/tp]", at, "every query needs all earlier keys");
    }
    fix_op(f, "attention", "causal attention", "box", "layers.0.attention.core", at, "layers.0.attn_context", l->ctx, NULL,
           "layers.0.q_rope layers.0.k_rope layers.0.v_proj");
    fix_op(f, "linear", "linear", "box", "layers.0.attention.wo", at, "layers.0.o_proj", l->whole,
           axis_size(f->t, "tp") > 1 ? "tp" : NULL, "layers.0.attn_context wo.weight");
    fix_reduce(f, l, "layers.0.o_proj", at);
    if (l->bias)
        fix_op(f, "add", "add", "plus", "layers.0.attention.wo", at, "layers.0.o_proj", l->stream, NULL,
               "layers.0.o_proj wo.bias");
    fix_op(f, "add", "add", "plus", "", at, "layers.0.resid_attn", l->stream, NULL, "layers.0.input layers.0.o_proj");
}

static void mlp_half(Fix *f, const Lay *l) {
    fix_op(f, "rmsnorm", "RMSNorm", "box", "layers.0.ffn_norm", "norm", "layers.0.post_attn_norm", l->stream, NULL,
           "layers.0.resid_attn ffn_norm.weight");
    if (l->sp)
        fix_coll(f, "all_gather", "sp", "layers.0.post_attn_norm", "S", l->whole, "mlp", "the matmul needs every token");
    fix_op(f, "linear", "linear", "box", "layers.0.feed_forward.w1", "mlp", "layers.0.mlp.gate", l->f, NULL,
           "layers.0.post_attn_norm w1.weight");
    fix_op(f, "linear", "linear", "box", "layers.0.feed_forward.w3", "mlp", "layers.0.mlp.up", l->f, NULL,
           "layers.0.post_attn_norm w3.weight");
    fix_op(f, "silu", "SiLU", "box", "layers.0.feed_forward", "mlp", "layers.0.mlp.gate_act", l->f, NULL,
           "layers.0.mlp.gate");
    fix_op(f, "einsum", "multiply", "box", "layers.0.feed_forward", "mlp", "layers.0.mlp.act", l->f, NULL,
           "layers.0.mlp.gate_act layers.0.mlp.up");
    fix_op(f, "linear", "linear", "box", "layers.0.feed_forward.w2", "mlp", "layers.0.mlp.down", l->whole,
           axis_size(f->t, "tp") > 1 ? "tp" : NULL, "layers.0.mlp.act w2.weight");
    fix_reduce(f, l, "layers.0.mlp.down", "mlp");
    fix_op(f, "add", "add", "plus", "", "mlp", "layers.0.output", l->stream, NULL, "layers.0.resid_attn layers.0.mlp.down");
}

static void llama_dims(Fix *f, double b, double s) {
    static const struct {
        const char *name;
        double v;
    } dim[] = {{"D", 4096}, {"H", 32}, {"K", 8}, {"d", 128}, {"F", 14336}, {"V", 128256}, {"L", 32}};
    fix_dim(f, "B", b);
    fix_dim(f, "S", s);
    for (size_t i = 0; i < sizeof dim / sizeof *dim; i++) fix_dim(f, dim[i].name, dim[i].v);
}

static void whole_block(Fix *f, const Lay *l) {
    block_params(f, l);
    fix_value(f, "layers.0.input", -1, l->stream, NULL, "input");
    attention_half(f, l);
    mlp_half(f, l);
}

static Trace *llama_dp2_cp2_tp2(Arena *a) {
    static const Lay l = {"[B/dp, S/(cp*sp), D]", "[B/dp, S/cp, D]", "[B/dp, S/cp, H*d/tp]", "[B/dp, S/cp, K*d/tp]",
                          "[B/dp, S/cp, H/tp, d]", "[B/dp, S/cp, K/tp, d]", "[B/dp, S, K/tp, d]", "[B/dp, S/cp, H*d/tp]",
                          "[B/dp, S/cp, F/tp]", true, true, false, false};
    Fix f = fix_new(a, "llama3-8b-dp2-cp2-tp2-sp", "llama3-8b");
    fix_axis(&f, "dp", 2);
    fix_axis(&f, "cp", 2);
    fix_axis(&f, "tp", 2);
    fix_group(&f, "sp", "tp");
    llama_dims(&f, 2, 8192);
    whole_block(&f, &l);
    return f.t;
}

static Trace *llama_tp2(Arena *a) {
    static const Lay l = {"[B, S, D]", "[B, S, D]", "[B, S, H*d/tp]", "[B, S, K*d/tp]", "[B, S, H/tp, d]",
                          "[B, S, K/tp, d]", "", "[B, S, H*d/tp]", "[B, S, F/tp]", false, false, false, false};
    Fix f = fix_new(a, "llama3-8b-tp2", "llama3-8b");
    fix_axis(&f, "tp", 2);
    llama_dims(&f, 1, 2048);
    whole_block(&f, &l);
    f.t->executed = true;
    f.t->verdict = "equivalent";
    return f.t;
}

static Trace *qwen_bias(Arena *a) {
    static const Lay l = {"[B, S, D]", "[B, S, D]", "[B, S, H*d/tp]", "[B, S, K*d/tp]", "[B, S, H/tp, d]",
                          "[B, S, K/tp, d]", "", "[B, S, H*d/tp]", "[B, S, F/tp]", false, false, true, true};
    Fix f = fix_new(a, "qwen-bias-tp4", "qwen3-8b");
    fix_axis(&f, "tp", 4);
    llama_dims(&f, 1, 2048);
    whole_block(&f, &l);
    f.t->verdict = "different";
    f.t->executed = true;
    f.t->first_wrong = "layers.0.o_proj";
    return f.t;
}

static Trace *llama_single(Arena *a) {
    static const Lay l = {"[B, S, D]", "[B, S, D]", "[B, S, H*d]", "[B, S, K*d]", "[B, S, H, d]",
                          "[B, S, K, d]", "", "[B, S, H*d]", "[B, S, F]", false, false, false, false};
    Fix f = fix_new(a, "llama-one", "llama3-8b");
    fix_axis(&f, "tp", 1);
    llama_dims(&f, 1, 2048);
    fix_value(&f, "layers.0.input", -1, l.stream, NULL, "input");
    block_params(&f, &l);
    attention_half(&f, &l);
    mlp_half(&f, &l);
    return f.t;
}

static Trace *llama_8192(Arena *a) {
    static const Lay l = {"[B/dp, S/(cp*sp), D]", "[B/dp, S/cp, D]", "[B/dp, S/cp, H*d/tp]", "[B/dp, S/cp, K*d/tp]",
                          "[B/dp, S/cp, H/tp, d]", "[B/dp, S/cp, K/tp, d]", "[B/dp, S, K/tp, d]", "[B/dp, S/cp, H*d/tp]",
                          "[B/dp, S/cp, F/tp]", true, true, false, false};
    Fix f = fix_new(a, "llama3-405b-dp64-cp16-tp8", "llama3.1-405b");
    fix_axis(&f, "dp", 64);
    fix_axis(&f, "cp", 16);
    fix_axis(&f, "tp", 8);
    fix_group(&f, "sp", "tp");
    llama_dims(&f, 2048, 131072);
    whole_block(&f, &l);
    return f.t;
}

static Trace *toy_mlp(Arena *a) {
    Fix f = fix_new(a, "mlp-column-row", NULL);
    f.bytes_per = 4;
    f.t->dtype = "f32";
    fix_axis(&f, "tp", 4);
    fix_dim(&f, "B", 10);
    fix_dim(&f, "I", 512);
    fix_dim(&f, "F", 2048);
    fix_dim(&f, "O", 512);
    fix_param(&f, "net1.weight", "[F/tp, I]", "colwise");
    fix_param(&f, "net1.bias", "[F/tp]", "colwise");
    fix_param(&f, "net2.weight", "[O, F/tp]", "rowwise");
    fix_param(&f, "net2.bias", "[O]", "rowwise");
    fix_value(&f, "input", -1, "[B, I]", NULL, "input");
    fix_op(&f, "linear", "linear", "box", "net1", "mlp", "net1", "[B, F/tp]", NULL, "input net1.weight");
    fix_op(&f, "add", "add", "plus", "net1", "mlp", "net1", "[B, F/tp]", NULL, "net1 net1.bias");
    fix_op(&f, "relu", "ReLU", "box", "act1", "mlp", "act1", "[B, F/tp]", NULL, "net1");
    f.layer = 1;
    fix_op(&f, "linear", "linear", "box", "net2", "mlp", "net2", "[B, O]", "tp", "act1 net2.weight");
    fix_coll(&f, "all_reduce", "tp", "net2", NULL, "[B, O]", "mlp", "row parallel: the sum over F is pending");
    fix_op(&f, "add", "add", "plus", "net2", "mlp", "net2", "[B, O]", NULL, "net2 net2.bias");
    f.t->executed = true;
    f.t->verdict = "equivalent";
    return f.t;
}

/* Nothing like a block: values read far below, three unlike branches, a dead end, no parts, no labels. */
static Trace *odd_graph(Arena *a) {
    Fix f = fix_new(a, "odd", "no model");
    fix_axis(&f, "a", 2);
    fix_axis(&f, "weird_axis", 3);
    fix_dim(&f, "N", 12);
    fix_value(&f, "u", -1, "[N/a]", NULL, "input");
    fix_value(&f, "v", -1, "[N]", NULL, "input");
    fix_op(&f, "one", NULL, NULL, NULL, NULL, "p", "[N/a]", NULL, "u");
    fix_op(&f, "two", NULL, NULL, NULL, NULL, "q", "[N/a, N]", NULL, "p");
    fix_op(&f, "three", NULL, NULL, NULL, NULL, "r", "[N]", "a", "p v");
    fix_op(&f, "four", NULL, NULL, NULL, NULL, "s", "[N, N]", NULL, "q r p");
    fix_coll(&f, "all_to_all", "weird_axis", "s", "N", "[N/weird_axis, N]", NULL, "because");
    fix_op(&f, "five", NULL, NULL, NULL, NULL, "dead", "[N]", NULL, "p");
    fix_op(&f, "six", NULL, NULL, NULL, NULL, "w", "[N]", NULL, "s u q");
    return f.t;
}

static const struct Fixture {
    const char *name;
    Trace *(*make)(Arena *);
} fixtures[] = {{"llama-dp2cp2tp2", llama_dp2_cp2_tp2}, {"llama-tp2", llama_tp2}, {"qwen-bias", qwen_bias},
                {"single", llama_single},               {"llama-8192", llama_8192}, {"mlp", toy_mlp},
                {"odd", odd_graph}};
enum { N_FIXTURES = sizeof fixtures / sizeof *fixtures };
static const char *const all_presets[] = {"wide", "column", "slide", "a4"};
static const char *const all_themes[] = {"light", "dark", "print"};

/* ---- pictures to look at ---- */

static int draw_all(const char *dir) {
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    mkdir(dir, 0777);
    for (int i = 0; i < N_FIXTURES; i++) {
        Trace *t = fixtures[i].make(a);
        for (int p = 0; p < 4; p++) {
            RenderOptions o = {.view = "block", .preset = all_presets[p], .rank = -1, .layer = -1};
            const char *base = arena_printf(a, "%s/%s-%s", dir, fixtures[i].name, all_presets[p]), *report;
            render_file(t, d, &o, FORMAT_SVG, arena_printf(a, "%s.svg", base));
            render_file(t, d, &o, FORMAT_PNG, arena_printf(a, "%s.png", base));
            int n = render_lint(t, d, &o, a, &report);
            if (n) printf("%s: %d findings, such as %.*s\n", base, n, (int)strcspn(report, "\n"), report);
        }
        RenderOptions o = {.view = "block", .rank = -1, .layer = -1};
        render_file(t, d, &o, FORMAT_TEXT, arena_printf(a, "%s/%s.txt", dir, fixtures[i].name));
        render_file(t, d, &o, FORMAT_PDF, arena_printf(a, "%s/%s.pdf", dir, fixtures[i].name));
    }
    diags_print(d, stderr, false);
    int rc = diags_errors(d) != 0;
    arena_free(a);
    render_cleanup();
    return rc;
}

/* ---- tests ---- */

static void test_placeholder(void **state) {
    (void)state;
    (void)all_themes;
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--draw")) return draw_all(argv[2]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_placeholder)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
