/* Tests of render/: pictures from invented traces. The fixtures are written in a small language of
 * symbolic shapes
 * ("[B/dp, S/(cp*sp), D]"), from which local shapes and bytes are computed, so that the facts in a
 * picture can be compared with the trace. `test_render --draw DIR` writes every fixture as pictures
 * to look at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "drive/pipeline.h"
#include "render/paint/paint.h"
#include "render/render.h"
#include "render/furniture/ring.h"
#include "render/furniture/words.h"
#include "render/scene/scene.h"
#include "support/pictures.h"
#include "support/support.h"
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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
    for (char *s = strtok_r(buf, "*", &save); s; s = strtok_r(NULL, "*", &save))
        *whole *= (int64_t)model_size(t, s);
    *local = *whole;
    if (!slash) return;
    snprintf(buf, sizeof buf, "%s", slash + 1);
    for (char *s = strtok_r(buf, "()*", &save); s; s = strtok_r(NULL, "()*", &save))
        *local /= axis_size(t, s);
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
                cut |=
                    slash && !strcmp(t->groups[k].axes, name2) && strstr(slash, t->groups[k].name);
            if (cut)
                s.place[s.n_places++] = (TracePlace){name2, arena_printf(f->a, "shard(%d)", s.nd)};
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
    f.t->pass = PASS_FORWARD;
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

static void fix_value(Fix *f, const char *name, int step, const char *symbolic, const char *pending,
                      ValueRole kind) {
    Trace *t = f->t;
    TraceValue *v = ARENA_PUSH(f->a, t->values, t->n_values, t->cap_values);
    *v = (TraceValue){.step = step, .pass = PHASE_FORWARD, .kind = kind, .layer = f->layer};
    v->shape = shape(f, name, symbolic, pending);
    v->subject = subject_of(name);
}
static void fix_param(Fix *f, const char *name, const char *symbolic, const char *style) {
    Trace *t = f->t;
    TraceParam *p = ARENA_PUSH(f->a, t->params, t->n_params, t->cap_params);
    *p = (TraceParam){
        .plan_name = name, .style = style, .layer = f->layer, .file = "plan.yaml", .line = 7};
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
        if (!strcmp(t->values[i].shape.name, name) && (!v || t->values[i].step >= v->step))
            v = &t->values[i];
    return v;
}

static void fix_op(Fix *f, const char *op, const char *label, const char *glyph, const char *module,
                   const char *part, const char *out, const char *symbolic, const char *pending,
                   const char *in) {
    Trace *t = f->t;
    char *text = arena_strdup(f->a, in), *save = NULL;
    TraceCompute *c = ARENA_PUSH(f->a, t->computes, t->n_computes, t->cap_computes);
    *c = (TraceCompute){.step = f->step,
                        .op = op,
                        .label = label,
                        .glyph = glyph,
                        .module = module,
                        .part = part,
                        .layer = f->layer,
                        .output = out,
                        .pass = PHASE_FORWARD,
                        .flops = 1e9,
                        .bytes = 1 << 20};
    c->ranks = rankset_range(f->a, 0, t->ranks, 1);
    c->inputs = ARENA_ARRAY(f->a, const char *, 8);
    c->input_step = ARENA_ARRAY(f->a, int, 8);
    for (char *s = strtok_r(text, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        c->input_step[c->n_inputs] = last_step(t, s);
        c->inputs[c->n_inputs++] = s;
    }
    trace_compute_subjects(f->a, c);
    fix_value(f, out, f->step++, symbolic, pending, VALUE_ACTIVATION);
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

static void fix_coll(Fix *f, const char *op, const char *axis, const char *value, const char *dim,
                     const char *symbolic, const char *part, const char *why) {
    Trace *t = f->t;
    const TraceValue *from = last_value(t, value);
    int64_t in = from->shape.local->bytes;
    int step = from->step;
    TraceCollective *c = ARENA_PUSH(f->a, t->collectives, t->n_collectives, t->cap_collectives);
    *c = (TraceCollective){.step = f->step,
                           .op = op,
                           .axis = axis,
                           .axes = axis,
                           .groups = groups_of(t, axis),
                           .dtype = "bf16",
                           .bytes_in = in,
                           .value = value,
                           .subject = subject_of(value),
                           .value_step = step,
                           .dim_symbol = dim,
                           .pass = PHASE_FORWARD,
                           .why = why,
                           .file = "plan.yaml",
                           .line = 12,
                           .layer = f->layer,
                           .part = part};
    for (int i = 0; i < t->n_groups; i++)
        if (!strcmp(t->groups[i].name, axis)) c->axes = t->groups[i].axes;
    fix_value(f, value, f->step++, symbolic, NULL, VALUE_MOVED);
    int64_t n = groups_size(&c->groups), out = last_value(t, value)->shape.local->bytes;
    c->bytes_out = out;
    c->bytes_sent =
        !strcmp(op, "all_reduce") ? 2 * (n - 1) * (in / n) : (n - 1) * (in > out ? in / n : in);
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
        fix_coll(f, "reduce_scatter", "sp", v, "S", l->stream, part,
                 "adds the two halves of the sum");
    else
        fix_coll(f, "all_reduce", "tp", v, NULL, l->stream, part,
                 "row parallel: the sum over H*d is pending");
}

static void projection(Fix *f, const Lay *l, const char *w, const char *out,
                       const char *shape_out) {
    const char *weight = arena_printf(f->a, "%s.weight", w),
               *module = arena_printf(f->a, "layers.0.attention.%s", w);
    fix_op(f, "linear", "linear", "box", module, "attention", out, shape_out, NULL,
           arena_printf(f->a, "layers.0.input_norm %s", weight));
    if (!l->bias) return;
    fix_op(f, "add", "add", "plus", module, "attention", out, shape_out, NULL,
           arena_printf(f->a, "%s %s.bias", out, w));
}

static void attention_half(Fix *f, const Lay *l) {
    const char *at = "attention";
    fix_op(f, "rmsnorm", "RMSNorm", "box", "layers.0.attention_norm", "norm", "layers.0.input_norm",
           l->stream, NULL, "layers.0.input attention_norm.weight");
    if (l->sp)
        fix_coll(f, "all_gather", "sp", "layers.0.input_norm", "S", l->whole, "attention",
                 "the matmul needs every token");
    projection(f, l, "wq", "layers.0.q_proj", l->q);
    projection(f, l, "wk", "layers.0.k_proj", l->k);
    projection(f, l, "wv", "layers.0.v_proj", l->k);
    const char *q = "layers.0.q_proj", *k = "layers.0.k_proj";
    if (l->qk_norm) {
        fix_op(f, "rmsnorm", "RMSNorm", "box", "layers.0.attention.q_norm", at, "layers.0.q_norm",
               l->qh, NULL, "layers.0.q_proj q_norm.weight");
        fix_op(f, "rmsnorm", "RMSNorm", "box", "layers.0.attention.k_norm", at, "layers.0.k_norm",
               l->kh, NULL, "layers.0.k_proj k_norm.weight");
        q = "layers.0.q_norm", k = "layers.0.k_norm";
    }
    fix_op(f, "rope", "RoPE", "box", "layers.0.attention", at, "layers.0.q_rope", l->qh, NULL, q);
    fix_op(f, "rope", "RoPE", "box", "layers.0.attention", at, "layers.0.k_rope", l->kh, NULL, k);
    if (l->cp) {
        fix_coll(f, "all_gather", "cp", "layers.0.k_rope", "S", l->kfull, at,
                 "every query needs all earlier keys");
        fix_coll(f, "all_gather", "cp", "layers.0.v_proj", "S", "[B/dp, S, K*d/tp]", at,
                 "every query needs all earlier keys");
    }
    fix_op(f, "attention", "causal attention", "box", "layers.0.attention.core", at,
           "layers.0.attn_context", l->ctx, NULL,
           "layers.0.q_rope layers.0.k_rope layers.0.v_proj");
    fix_op(f, "linear", "linear", "box", "layers.0.attention.wo", at, "layers.0.o_proj", l->whole,
           axis_size(f->t, "tp") > 1 ? "tp" : NULL, "layers.0.attn_context wo.weight");
    fix_reduce(f, l, "layers.0.o_proj", at);
    if (l->bias)
        fix_op(f, "add", "add", "plus", "layers.0.attention.wo", at, "layers.0.o_proj", l->stream,
               NULL, "layers.0.o_proj wo.bias");
    fix_op(f, "add", "add", "plus", "", at, "layers.0.resid_attn", l->stream, NULL,
           "layers.0.input layers.0.o_proj");
}

static void mlp_half(Fix *f, const Lay *l) {
    fix_op(f, "rmsnorm", "RMSNorm", "box", "layers.0.ffn_norm", "norm", "layers.0.post_attn_norm",
           l->stream, NULL, "layers.0.resid_attn ffn_norm.weight");
    if (l->sp)
        fix_coll(f, "all_gather", "sp", "layers.0.post_attn_norm", "S", l->whole, "mlp",
                 "the matmul needs every token");
    fix_op(f, "linear", "linear", "box", "layers.0.feed_forward.w1", "mlp", "layers.0.mlp.gate",
           l->f, NULL, "layers.0.post_attn_norm w1.weight");
    fix_op(f, "linear", "linear", "box", "layers.0.feed_forward.w3", "mlp", "layers.0.mlp.up", l->f,
           NULL, "layers.0.post_attn_norm w3.weight");
    fix_op(f, "silu", "SiLU", "box", "layers.0.feed_forward", "mlp", "layers.0.mlp.gate_act", l->f,
           NULL, "layers.0.mlp.gate");
    fix_op(f, "einsum", "multiply", "box", "layers.0.feed_forward", "mlp", "layers.0.mlp.act", l->f,
           NULL, "layers.0.mlp.gate_act layers.0.mlp.up");
    fix_op(f, "linear", "linear", "box", "layers.0.feed_forward.w2", "mlp", "layers.0.mlp.down",
           l->whole, axis_size(f->t, "tp") > 1 ? "tp" : NULL, "layers.0.mlp.act w2.weight");
    fix_reduce(f, l, "layers.0.mlp.down", "mlp");
    fix_op(f, "add", "add", "plus", "", "mlp", "layers.0.output", l->stream, NULL,
           "layers.0.resid_attn layers.0.mlp.down");
}

static void llama_dims(Fix *f, double b, double s) {
    static const struct {
        const char *name;
        double v;
    } dim[] = {{"D", 4096},  {"H", 32},     {"K", 8}, {"d", 128},
               {"F", 14336}, {"V", 128256}, {"L", 32}};
    fix_dim(f, "B", b);
    fix_dim(f, "S", s);
    for (size_t i = 0; i < sizeof dim / sizeof *dim; i++) fix_dim(f, dim[i].name, dim[i].v);
}

static void whole_block(Fix *f, const Lay *l) {
    block_params(f, l);
    fix_value(f, "layers.0.input", -1, l->stream, NULL, VALUE_INPUT);
    attention_half(f, l);
    mlp_half(f, l);
}

/* Batch over dp, sequence over cp and between the blocks over sp, heads and widths over tp. */
static const Lay dp_cp_tp = {"[B/dp, S/(cp*sp), D]",
                             "[B/dp, S/cp, D]",
                             "[B/dp, S/cp, H*d/tp]",
                             "[B/dp, S/cp, K*d/tp]",
                             "[B/dp, S/cp, H/tp, d]",
                             "[B/dp, S/cp, K/tp, d]",
                             "[B/dp, S, K/tp, d]",
                             "[B/dp, S/cp, H*d/tp]",
                             "[B/dp, S/cp, F/tp]",
                             true,
                             true,
                             false,
                             false};
static Trace *llama_dp2_cp2_tp2(Arena *a) {
    Fix f = fix_new(a, "llama3-8b-dp2-cp2-tp2-sp", "llama3-8b");
    fix_axis(&f, "dp", 2);
    fix_axis(&f, "cp", 2);
    fix_axis(&f, "tp", 2);
    fix_group(&f, "sp", "tp");
    llama_dims(&f, 2, 8192);
    whole_block(&f, &dp_cp_tp);
    return f.t;
}

static Trace *llama_tp2(Arena *a) {
    static const Lay l = {"[B, S, D]",
                          "[B, S, D]",
                          "[B, S, H*d/tp]",
                          "[B, S, K*d/tp]",
                          "[B, S, H/tp, d]",
                          "[B, S, K/tp, d]",
                          "",
                          "[B, S, H*d/tp]",
                          "[B, S, F/tp]",
                          false,
                          false,
                          false,
                          false};
    Fix f = fix_new(a, "llama3-8b-tp2", "llama3-8b");
    fix_axis(&f, "tp", 2);
    llama_dims(&f, 1, 2048);
    whole_block(&f, &l);
    f.t->executed = true;
    f.t->verdict = "equivalent";
    return f.t;
}

static Trace *qwen_bias(Arena *a) {
    static const Lay l = {"[B, S, D]",
                          "[B, S, D]",
                          "[B, S, H*d/tp]",
                          "[B, S, K*d/tp]",
                          "[B, S, H/tp, d]",
                          "[B, S, K/tp, d]",
                          "",
                          "[B, S, H*d/tp]",
                          "[B, S, F/tp]",
                          false,
                          false,
                          true,
                          true};
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
    static const Lay l = {"[B, S, D]",    "[B, S, D]", "[B, S, H*d]", "[B, S, K*d]", "[B, S, H, d]",
                          "[B, S, K, d]", "",          "[B, S, H*d]", "[B, S, F]",   false,
                          false,          false,       false};
    Fix f = fix_new(a, "llama-one", "llama3-8b");
    fix_axis(&f, "tp", 1);
    llama_dims(&f, 1, 2048);
    fix_value(&f, "layers.0.input", -1, l.stream, NULL, VALUE_INPUT);
    block_params(&f, &l);
    attention_half(&f, &l);
    mlp_half(&f, &l);
    return f.t;
}

static Trace *llama_8192(Arena *a) {
    Fix f = fix_new(a, "llama3-405b-dp64-cp16-tp8", "llama3.1-405b");
    fix_axis(&f, "dp", 64);
    fix_axis(&f, "cp", 16);
    fix_axis(&f, "tp", 8);
    fix_group(&f, "sp", "tp");
    llama_dims(&f, 2048, 131072);
    whole_block(&f, &dp_cp_tp);
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
    fix_value(&f, "input", -1, "[B, I]", NULL, VALUE_INPUT);
    fix_op(&f, "linear", "linear", "box", "net1", "mlp", "net1", "[B, F/tp]", NULL,
           "input net1.weight");
    fix_op(&f, "add", "add", "plus", "net1", "mlp", "net1", "[B, F/tp]", NULL, "net1 net1.bias");
    fix_op(&f, "relu", "ReLU", "box", "act1", "mlp", "act1", "[B, F/tp]", NULL, "net1");
    f.layer = 1;
    fix_op(&f, "linear", "linear", "box", "net2", "mlp", "net2", "[B, O]", "tp",
           "act1 net2.weight");
    fix_coll(&f, "all_reduce", "tp", "net2", NULL, "[B, O]", "mlp",
             "row parallel: the sum over F is pending");
    fix_op(&f, "add", "add", "plus", "net2", "mlp", "net2", "[B, O]", NULL, "net2 net2.bias");
    f.t->executed = true;
    f.t->verdict = "equivalent";
    return f.t;
}

/* Nothing like a block: values read far below, three unlike branches, a dead end, no parts, no
 * labels. */
static Trace *odd_graph(Arena *a) {
    Fix f = fix_new(a, "odd", "no model");
    fix_axis(&f, "a", 2);
    fix_axis(&f, "weird_axis", 3);
    fix_dim(&f, "N", 12);
    fix_value(&f, "u", -1, "[N/a]", NULL, VALUE_INPUT);
    fix_value(&f, "v", -1, "[N]", NULL, VALUE_INPUT);
    fix_op(&f, "one", NULL, NULL, NULL, NULL, "p", "[N/a]", NULL, "u");
    fix_op(&f, "two", NULL, NULL, NULL, NULL, "q", "[N/a, N]", NULL, "p");
    fix_op(&f, "three", NULL, NULL, NULL, NULL, "r", "[N]", "a", "p v");
    fix_op(&f, "four", NULL, NULL, NULL, NULL, "s", "[N, N]", NULL, "q r p");
    fix_coll(&f, "all_to_all", "weird_axis", "s", "N", "[N/weird_axis, N]", NULL, "because");
    fix_op(&f, "five", NULL, NULL, NULL, NULL, "dead", "[N]", NULL, "p");
    fix_op(&f, "six", NULL, NULL, NULL, NULL, "w", "[N]", NULL, "s u q");
    return f.t;
}

/* Times as the cost model writes them: one compute stream, one stream per axis, steps in order. */
static Trace *with_times(Arena *a, Trace *t) {
    double now = 0, free_at[2] = {0, 0};
    for (int step = 0; step < t->n_computes + t->n_collectives; step++) {
        TraceEvent e = {.step = step, .ranks = rankset_range(a, 0, t->ranks, 1)};
        for (int i = 0; i < t->n_computes; i++)
            if (t->computes[i].step == step) {
                double d = 1e-5 * (1 + t->computes[i].n_inputs);
                e.kind = e.stream = "compute", e.name = t->computes[i].output, e.start = now,
                e.end = now + d, now += d;
            }
        for (int i = 0; i < t->n_collectives; i++)
            if (t->collectives[i].step == step) {
                int s = !strcmp(t->collectives[i].axes, "cp");
                e.kind = "collective", e.stream = t->collectives[i].axes,
                e.name = t->collectives[i].value;
                e.start = fmax(now, free_at[s]), e.end = free_at[s] = e.start + 4e-5;
                e.exposed = s ? 0 : e.end - now;
                if (!s) now = e.end;
            }
        e.formula = "1 × 5 µs";
        *ARENA_PUSH(a, t->events, t->n_events, t->cap_events) = e;
    }
    t->hardware = "test: 1 TFLOP/s, 1 GB/s";
    return t;
}
static Trace *llama_times(Arena *a) { return with_times(a, llama_dp2_cp2_tp2(a)); }
static Trace *mlp_times(Arena *a) { return with_times(a, toy_mlp(a)); }

/* From when to when a value is held: from its step to the last that reads it. */
static const TraceHeld *alive(Arena *a, const Trace *t, const TraceValue *v, int steps) {
    int last = -1;
    for (int k = 0; k < t->n_computes; k++)
        for (int j = 0; j < t->computes[k].n_inputs; j++)
            if (!strcmp(t->computes[k].inputs[j], v->shape.name) &&
                t->computes[k].input_step[j] == v->step)
                last = t->computes[k].step > last ? t->computes[k].step : last;
    for (int k = 0; k < t->n_collectives; k++) {
        const TraceCollective *c = &t->collectives[k];
        if (strcmp(c->value, v->shape.name) || c->value_step != v->step || c->step <= last)
            continue;
        /* an all-reduce works in place */
        last = c->step - (!strcmp(c->op, "all_reduce") && v->step >= 0);
    }
    TraceHeld *h = ARENA_NEW(a, TraceHeld);
    *h = (TraceHeld){v->step < 0 ? 0 : v->step, last < 0 ? steps - 1 : last};
    return h;
}
/* Memory as the executor counts it: what is live after each step, before the step's inputs are
 * freed. */
static Trace *with_memory(Arena *a, Trace *t, int64_t params) {
    int steps = t->n_computes + t->n_collectives;
    RankSet all = rankset_range(a, 0, t->ranks, 1);
    *ARENA_PUSH(a, t->memory, t->n_memory, t->cap_memory) =
        (TraceMemory){-1, all, "parameters", params};
    for (int i = 0; i < t->n_values; i++) t->values[i].alive = alive(a, t, &t->values[i], steps);
    for (int s = 0; s < steps; s++) {
        int64_t live[2] = {0}; /* activations, gradients */
        for (int i = 0; i < t->n_values; i++) {
            const TraceValue *v = &t->values[i];
            if (v->alive->from <= s && v->alive->until >= s)
                live[v->subject.role == OF_PARAM_GRADIENT] += v->shape.local->bytes;
        }
        for (int k = 0; k < 2; k++)
            *ARENA_PUSH(a, t->memory, t->n_memory, t->cap_memory) =
                (TraceMemory){s, all, k ? "gradients" : "activations", live[k]};
    }
    return t;
}
static int64_t param_bytes(const Trace *t) {
    int64_t n = 0;
    for (int i = 0; i < t->n_params; i++) n += t->params[i].rest.local->bytes;
    return n;
}
static Trace *llama_memory(Arena *a) {
    Trace *t = llama_dp2_cp2_tp2(a);
    return with_memory(a, t, param_bytes(t));
}
/* Optimizer state, gradients, and a machine that is too small. */
static Trace *train_memory(Arena *a) {
    Trace *t = llama_tp2(a);
    Fix f = {a, t, t->n_computes + t->n_collectives, 0, 2};
    t->pass = PASS_TRAIN;
    t->hardware = "toy: 1 TFLOP/s, 0.8 GB memory, 1 GB/s";
    fix_op(&f, "linear_backward", "linear", "box", "", "mlp",
           "grad.param.layers.0.feed_forward.w2.weight", "[D, F/tp]", NULL,
           "layers.0.mlp.act layers.0.output");
    fix_op(&f, "linear_backward", "linear", "box", "", "mlp",
           "grad.param.layers.0.feed_forward.w1.weight", "[F/tp, D]", NULL,
           "layers.0.mlp.act layers.0.output");
    fix_op(&f, "linear_backward", "linear", "box", "", "mlp",
           "grad.param.layers.0.feed_forward.w3.weight", "[F/tp, D]", NULL,
           "layers.0.mlp.act layers.0.output");
    fix_op(&f, "linear_backward", "linear", "box", "", "mlp", "grad.layers.0.mlp.act",
           "[B, S, F/tp]", NULL, "layers.0.output");
    return with_memory(a, t, 3 * param_bytes(t));
}
/* Twenty classes of ranks: more than a page shows. */
static Trace *many_classes(Arena *a) {
    Trace *t = llama_8192(a);
    with_memory(a, t, param_bytes(t));
    int n = t->n_memory;
    for (int k = 0; k < 20; k++)
        for (int i = 0; i < n; i++) {
            TraceMemory m = t->memory[i];
            m.ranks = rankset_range(a, k * 400, 400 - k, 1);
            m.bytes += m.bytes / 40 * k;
            *ARENA_PUSH(a, t->memory, t->n_memory, t->cap_memory) = m;
        }
    t->memory += n, t->n_memory -= n, t->cap_memory -= n;
    return t;
}

/* Checks as a run records them; the step `bad` is wrong on all ranks, three later ones on every
 * second. */
static Trace *with_checks(Arena *a, Trace *t, int bad) {
    RankSet all = rankset_range(a, 0, t->ranks, 1), odd = rankset_range(a, 1, t->ranks / 2, 2);
    t->executed = true;
    t->verdict = bad >= 0 ? "different" : "equivalent";
    for (int i = 0; i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        TraceCheck k = {.step = v->step,
                        .value = v->shape.name,
                        .pass = v->step < 0 ? PHASE_PARAMETERS : PHASE_FORWARD,
                        .level = 1,
                        .ranks = all,
                        .verdict = "PASS",
                        .count = 64};
        bool later = bad >= 0 && v->step > bad && v->step < bad + 4;
        if (v->step != bad && !later) *ARENA_PUSH(a, t->checks, t->n_checks, t->cap_checks) = k;
        if (v->step < 0 || v->step % 5 == 2) continue;
        k.level = 2, k.max_abs = 3.4e-7 * (1 + v->step), k.bound = 1e-4, k.used = 0.01;
        if (v->step == bad || later) {
            k.ranks = later && t->ranks > 1 ? odd : all, k.verdict = "FAIL", k.max_abs = 2.5,
            k.got = 0.539, k.want = 0.615;
            k.n_index = 2, k.index[1] = 21,
            k.cause = "the sum over tp is missing: each rank holds only its own part";
            k.n_rank_error = (int)(t->ranks < 64 ? rankset_count(&k.ranks) : 64);
            k.rank_error = arena_alloc(a, (size_t)k.n_rank_error * sizeof *k.rank_error);
            for (int r = 0; r < k.n_rank_error; r++)
                k.rank_error[r].rank = later && t->ranks > 1 ? 2 * r + 1 : r,
                k.rank_error[r].error = 2.5 - 0.01 * r;
        }
        *(k.verdict[0] == 'P' ? &t->n_pass : &t->n_fail) += 1;
        if (v->step == bad) t->first_wrong = v->shape.name;
        *ARENA_PUSH(a, t->checks, t->n_checks, t->cap_checks) = k;
    }
    t->worst_value = "layers.0.q_rope", t->worst_used = 0.53;
    return t;
}
static Trace *story_of_8(Arena *a) {
    Trace *t = llama_8192(a);
    while (t->n_collectives && strcmp(t->collectives->op, "reduce_scatter"))
        t->collectives++, t->n_collectives--;
    return t;
}
static Trace *errors_right(Arena *a) { return with_checks(a, llama_dp2_cp2_tp2(a), -1); }
static Trace *errors_wrong(Arena *a) { return with_checks(a, llama_tp2(a), 6); }
static Trace *errors_many(Arena *a) { return with_checks(a, llama_8192(a), 9); }

static const struct Fixture {
    const char *name, *view;
    Trace *(*make)(Arena *);
} fixtures[] = {{"llama-dp2cp2tp2", "block", llama_dp2_cp2_tp2},
                {"llama-tp2", "block", llama_tp2},
                {"qwen-bias", "block", qwen_bias},
                {"single", "block", llama_single},
                {"llama-8192", "block", llama_8192},
                {"mlp", "block", toy_mlp},
                {"odd", "block", odd_graph},
                {"times", "timeline", llama_times},
                {"times-mlp", "timeline", mlp_times},
                {"memory", "memory", llama_memory},
                {"memory-train", "memory", train_memory},
                {"memory-classes", "memory", many_classes},
                {"errors-right", "errors", errors_right},
                {"errors-wrong", "errors", errors_wrong},
                {"errors-8192", "errors", errors_many},
                {"story-gather", "storyboard", llama_dp2_cp2_tp2},
                {"story-mlp", "storyboard", toy_mlp},
                {"story-8192", "storyboard", story_of_8}};
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
            RenderOptions o = {
                .view = fixtures[i].view, .preset = all_presets[p], .rank = -1, .layer = -1};
            const char *base = arena_printf(a, "%s/%s-%s", dir, fixtures[i].name, all_presets[p]),
                       *report;
            render_file(t, d, &o, FORMAT_SVG, arena_printf(a, "%s.svg", base));
            render_file(t, d, &o, FORMAT_PNG, arena_printf(a, "%s.png", base));
            int n = render_lint(t, d, &o, a, &report);
            if (n)
                printf("%s: %d findings, such as %.*s\n", base, n, (int)strcspn(report, "\n"),
                       report);
        }
        RenderOptions o = {.view = fixtures[i].view, .rank = -1, .layer = -1};
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

typedef struct {
    Arena *a;
    Diags *d;
} Ground;
static int set_up(void **state) {
    Ground *g = malloc(sizeof *g);
    g->a = arena_new();
    g->d = diags_new(g->a);
    *state = g;
    return 0;
}
static int tear_down(void **state) {
    Ground *g = *state;
    arena_free(g->a);
    free(g);
    return 0;
}
static RenderOptions options(const char *view) {
    return (RenderOptions){.view = view, .rank = -1, .layer = -1};
}

static void lint_is_silent(void **state) {
    Ground *g = *state;
    int fixtures_held = sample_of(N_FIXTURES, "fixtures");
    for (int i = 0; i < fixtures_held; i++)
        for (int p = 0; p < 4; p++)
            for (int th = 0; th < 3; th++) {
                const char *report;
                RenderOptions o = options(fixtures[i].view);
                o.preset = all_presets[p];
                o.theme = all_themes[th];
                int n = render_lint(fixtures[i].make(g->a), g->d, &o, g->a, &report);
                if (n) print_message("%s %s %s\n%s", fixtures[i].name, o.preset, o.theme, report);
                assert_int_equal(n, 0);
                assert_int_equal(diags_errors(g->d), 0);
            }
}

/* ---- every rule of the lint fires on a planted fault, and on nothing else ---- */

/* A clean figure: a legend, a box with words inside and an arrow that ends on it. Returns the box's
 * group. */
static int clean_figure(Scene *s) {
    Pt end[2] = {{40, 25}, {40, 40}};
    s->title = "t", s->desc = "d";
    scene_begin(s, "legend", "legend", NULL);
    scene_rect(s, (Area){10, 10, 20, 10}, 0, (Look){ROLE_COMPUTE, ROLE_NONE, 0});
    scene_text(s, 40, 19, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, "compute");
    scene_end(s);
    int box = scene_begin(s, "compute", "box", "a tooltip");
    scene_frame(s, 10, 40, 80, 20);
    scene_rect(s, (Area){10, 40, 80, 20}, 0, (Look){ROLE_COMPUTE, ROLE_COMPUTE_LINE, 1.25});
    scene_text(s, 14, 54, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, "inside");
    scene_end(s);
    scene_begin(s, "edge", "edge", "what flows");
    scene_arrow(s, end, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, box);
    scene_end(s);
    return box;
}
static void ink(Scene *s, double x, double y, const char *text) {
    scene_text(s, x, y, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, text);
}

static void f_title(Scene *s, int box) { (void)box, s->title = ""; }
static void f_desc(Scene *s, int box) { (void)box, s->desc = ""; }
static void f_canvas(Scene *s, int box) { (void)box, s->w = s->page_w = NAN; }
static void f_page(Scene *s, int box) { (void)box, s->page_h = s->h / 2; }
static void f_text_out(Scene *s, int box) { (void)box, ink(s, 190, 90, "beyond"); }
static void f_mark_out(Scene *s, int box) {
    (void)box, scene_rect(s, (Area){150, 90, 60, 5}, 0, (Look){ROLE_GRID, ROLE_NONE, 0});
}
static void f_arrow_out(Scene *s, int box) {
    Pt pt[2] = {{150, 90}, {210, 90}};
    (void)box, scene_arrow(s, pt, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, -1);
}
static void f_nan(Scene *s, int box) {
    (void)box, scene_rect(s, (Area){NAN, 80, 5, 5}, 0, (Look){ROLE_GRID, ROLE_NONE, 0});
}
static void f_nan_line(Scene *s, int box) {
    (void)box, scene_segment(s, (Pt){150, 80}, (Pt){160, 80}, ROLE_INK, 1)->bend = NAN;
}
static void f_wide(Scene *s, int box) {
    scene_begin(s, "compute", "small", "tip");
    scene_frame(s, 120, 70, 30, 20);
    scene_rect(s, (Area){120, 70, 30, 20}, 0, (Look){ROLE_COMPUTE, ROLE_NONE, 0});
    ink(s, 122, 84, "too wide");
    scene_end(s), (void)box;
}
static void f_wide_child(Scene *s, int box) { /* the words are in a group inside the box */
    scene_begin(s, "compute", "small", "tip");
    scene_frame(s, 120, 70, 30, 20);
    scene_begin(s, "words", "words", NULL);
    ink(s, 122, 84, "too wide");
    scene_end(s), scene_end(s), (void)box;
}
static void f_near(Scene *s, int box) {
    (void)box, ink(s, 120, 80, "above"), ink(s, 120, 80 + 0.98 * 12 + 1.4, "below");
}
static void f_foreign(Scene *s, int box) { (void)box, ink(s, 60, 54, "foreign"); }
static void f_line(Scene *s, int box) {
    (void)box, ink(s, 120, 80, "struck"),
        scene_segment(s, (Pt){110, 76}, (Pt){180, 76}, ROLE_INK, 1);
}
static void f_hatch(Scene *s, int box) {
    (void)box, ink(s, 120, 80, "hatched"),
        scene_hatch(s, (Area){110, 60, 60, 30}, ROLE_INK, 5, 0.6)->ground = false;
}
static void f_nowhere(Scene *s, int box) {
    Pt pt[2] = {{150, 55}, {150, 70}};
    scene_arrow(s, pt, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, box);
}
static void f_inside(Scene *s,
                     int box) { /* the tip is in the middle of the box instead of on its border */
    Pt pt[2] = {{120, 50}, {75, 50}};
    scene_arrow(s, pt, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, box);
}
static void f_borderless(Scene *s, int box) {
    Pt pt[2] = {{150, 55}, {150, 70}};
    scene_arrow(s, pt, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, 0),
        (void)box; /* the legend has no border */
}
static void f_tip_nan(Scene *s, int box) { (void)box, s->arrows[0].tip.x = NAN; }
static void f_small(Scene *s, int box) {
    (void)box, scene_text(s, 120, 80, (TextLook){ALIGN_LEFT, 11, REGULAR, ROLE_INK}, "tiny");
}
static void f_scaled(Scene *s, int box) { (void)box, s->scale = 0.9; }
static void f_points(Scene *s, int box) { (void)box, s->points = true, s->scale = 0.5; }
static void f_pale(Scene *s, int box) {
    (void)box, scene_text(s, 120, 80, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_GRID}, "pale");
}
static void f_pale_end(Scene *s,
                       int box) { /* good on paper, not on the dark mark under its last letter */
    scene_begin(s, "note", "note", "tip");
    scene_rect(s, (Area){150, 66, 40, 20}, 0, (Look){ROLE_INK, ROLE_NONE, 0});
    ink(s, 120, 80, "half dark"), scene_end(s), (void)box;
}
static void f_pale_theme(
    Scene *s,
    int box) { /* black on the pale blue of the light theme is black on navy in the dark one */
    scene_begin(s, "compute", "dark", "tip");
    scene_rect(s, (Area){120, 66, 60, 20}, 0, (Look){ROLE_COMPUTE, ROLE_NONE, 0});
    scene_text(s, 125, 80, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_LIVE_TEXT}, "dark"),
        scene_end(s), (void)box;
}
static void f_pale_through(Scene *s, int box) { /* white on ink that lets the paper through */
    scene_begin(s, "note", "note", "tip");
    scene_rect(s, (Area){115, 66, 60, 20}, 0, (Look){ROLE_INK, ROLE_NONE, 0})->opacity = 0.3;
    scene_text(s, 120, 80, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_PAPER}, "white"), scene_end(s),
        (void)box;
}
static void f_glyph(Scene *s, int box) { (void)box, ink(s, 120, 80, "\xF3\xB0\x80\x80"); }
static void f_legend(Scene *s, int box) {
    scene_begin(s, "collective", "c", "tip");
    scene_rect(s, (Area){120, 70, 20, 10}, 0, (Look){ROLE_COLL, ROLE_NONE, 0});
    scene_end(s), (void)box;
}
static void f_bare(Scene *s, int box) { /* a line that no group is about */
    (void)box;
    scene_segment(s, (Pt){150, 80}, (Pt){180, 80}, ROLE_INK, 1.5);
}
static void f_leader(Scene *s, int box) { /* words beside the short line that they stand above */
    scene_begin(s, "leader", "leader", "tip");
    ink(s, 130, 80, "of others");
    scene_segment(s, (Pt){110, 84}, (Pt){120, 84}, ROLE_SECOND, 1)->ground = true;
    scene_end(s), (void)box;
}
static void f_callout(Scene *s, int box) { /* a line that ends beside the words */
    scene_begin(s, "callout", "callout", "tip");
    ink(s, 130, 92, "elsewhere");
    scene_segment(s, (Pt){120, 70}, (Pt){120, 80}, ROLE_SECOND, 1);
    scene_end(s), (void)box;
}
static void f_tooltip(Scene *s, int box) {
    (void)box, scene_rect(s, (Area){120, 70, 20, 10}, 0, (Look){ROLE_COMPUTE, ROLE_NONE, 0});
}

static const struct {
    void (*plant)(Scene *, int);
    const char *rule, *whom;
} planted[] = {{f_title, "no title", ""},
               {f_desc, "no description", ""},
               {f_canvas, "no canvas", ""},
               {f_page, "the page is too small", ""},
               {f_text_out, "text outside the canvas", "beyond"},
               {f_mark_out, "a mark outside the canvas", ""},
               {f_arrow_out, "a mark outside the canvas", ""},
               {f_nan, "not a number", ""},
               {f_nan_line, "not a number", ""},
               {f_wide, "text wider than its box", "small: "},
               {f_wide_child, "text wider than its box", "too wide"},
               {f_near, "two texts closer than 1.5 px", "'above' and 'below'"},
               {f_foreign, "text on a mark that is not its own", "foreign"},
               {f_line, "a line through a text", "struck"},
               {f_hatch, "a line through a text", "hatched"},
               {f_nowhere, "an arrow does not end on the border of", "box"},
               {f_inside, "an arrow does not end on the border of", "box"},
               {f_borderless, "an arrow ends on something without a border", ""},
               {f_tip_nan, "an arrow ends nowhere", ""},
               {f_small, "text smaller than the preset allows", "11.0 tiny"},
               {f_scaled, "text smaller than the preset allows", "inside"},
               {f_points, "text smaller than 7 pt", "inside"},
               {f_pale, "contrast under 4.5", "pale (light)"},
               {f_pale_end, "contrast under 4.5", "half dark"},
               {f_pale_theme, "contrast under 4.5", "dark (dark)"},
               {f_pale_through, "contrast under 4.5", "white (light)"},
               {f_glyph, "no font has a character of", ""},
               {f_legend, "a colour that the legend does not explain", "#F0A35E"},
               {f_leader, "words that are not at their leader", "of others"},
               {f_callout, "words that are not at their line", "elsewhere"},
               {f_tooltip, "a mark without a tooltip", ""},
               {f_bare, "a mark without a tooltip", "figure"}};
static void lint_finds_faults(void **state) {
    Ground *g = *state;
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        Scene *s = scene_new(g->a, fonts_shared(), THEME_LIGHT, 200, 100);
        int box = clean_figure(s);
        const char *report;
        assert_int_equal(scene_lint(s, g->a, &report), 0);
        bool tipless = planted[i].plant == f_tooltip || planted[i].plant == f_bare;
        if (!tipless) scene_begin(s, "note", "planted", "a tooltip");
        planted[i].plant(s, box);
        if (!tipless) scene_end(s);
        if (!scene_lint(s, g->a, &report) || !strstr(report, planted[i].rule) ||
            !strstr(report, planted[i].whom))
            fail_msg("planted: %s %s, found:\n%s", planted[i].rule, planted[i].whom, report);
        /* nothing else is blamed; a canvas that is none makes everything wrong */
        for (const char *p = report; *p; p += strcspn(p, "\n"), p += *p == '\n') {
            const char *line = arena_strndup(g->a, p, strcspn(p, "\n"));
            if (!strstr(line, planted[i].rule) && planted[i].plant != f_canvas)
                fail_msg("planted: %s, found: %s", planted[i].rule, line);
        }
    }
    /* what is no number is left out by the painters */
    Scene *s = scene_new(g->a, fonts_shared(), THEME_LIGHT, 200, 100);
    f_nan(s, clean_figure(s));
    Sink out = {.arena = g->a};
    assert_null(paint_png(s, 200, &out));
    paint_svg(s, &out);
    assert_null(strstr((char *)out.p + 8, "nan"));
}

/* The colour of a pixel of the scene's picture. */
static uint32_t pixel(Ground *g, const Scene *s, int x, int y) {
    Sink out = {.arena = g->a};
    png_image p = {.version = PNG_IMAGE_VERSION};
    assert_null(paint_png(s, (int)s->w, &out));
    assert_true(png_image_begin_read_from_memory(&p, out.p, out.n));
    p.format = PNG_FORMAT_RGB;
    unsigned char *rgb = arena_alloc(g->a, PNG_IMAGE_SIZE(p)),
                  *at = rgb + 3 * ((size_t)y * p.width + (size_t)x);
    assert_true(png_image_finish_read(&p, NULL, rgb, 0, NULL));
    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}
static bool near(uint32_t a, uint32_t b) {
    for (int k = 0; k < 24; k += 8)
        if (abs((int)(a >> k & 255) - (int)(b >> k & 255)) > 1) return false;
    return true;
}
/* A fill that is not opaque lets through what lies under it, in every theme and format. */
static void fills_let_through(void **state) {
    Ground *g = *state;
    for (int th = 0; th < THEME_COUNT; th++) {
        const Theme t = (Theme)th;
        Scene *s = scene_new(g->a, fonts_shared(), t, 90, 30);
        scene_rect(s, (Area){0, 0, 60, 30}, 0, (Look){ROLE_SHARD, ROLE_NONE, 0});
        scene_rect(s, (Area){30, 0, 60, 30}, 0, (Look){ROLE_SHARD_2, ROLE_NONE, 0})->opacity = 0.62;
        const uint32_t lower = theme_color(t, ROLE_SHARD), upper = theme_color(t, ROLE_SHARD_2),
                       paper = theme_color(t, ROLE_PAPER);
        assert_int_equal(pixel(g, s, 15, 15), lower);
        assert_true(near(pixel(g, s, 45, 15), theme_blend(upper, lower, 0.62)));
        assert_true(near(pixel(g, s, 75, 15), theme_blend(upper, paper, 0.62)));
        Sink out = {.arena = g->a};
        paint_svg(s, &out);
        sink_add(&out, "", 1);
        const char *svg = (const char *)out.p, *one = strstr(svg, "fill-opacity=\"0.62\"");
        assert_true(one && !strstr(one + 1, "fill-opacity"));
    }
}

/* A small check that markup is well-formed: tags close in order, attributes are quoted and unique
 * ids are unique. */
static bool well_formed(Arena *a, const char *s) {
    const char *open[128], *id[8192];
    int n = 0, ids = 0;
    for (const char *p = s; *p;) {
        if (*p == '&' && strncmp(p, "&amp;", 5) && strncmp(p, "&lt;", 4) && strncmp(p, "&gt;", 4) &&
            strncmp(p, "&quot;", 6))
            return false;
        if (*p == '>') return false;
        if (*p != '<') {
            p++;
            continue;
        }
        const char *end = p + 1;
        bool quote = false;
        for (; *end && (quote || *end != '>'); end++) {
            if (*end == '"') quote = !quote;
            if (*end == '<') return false;
        }
        if (!*end) return false;
        const char *tag = arena_strndup(a, p + 1, (size_t)(end - p - 1));
        const char *i = strstr(tag, " id=\"");
        if (i) {
            i = arena_strndup(a, i + 5, strcspn(i + 5, "\""));
            for (int k = 0; k < ids; k++)
                if (!strcmp(id[k], i)) return false;
            if (ids < 8192) id[ids++] = i;
        }
        size_t name = strcspn(tag, " /");
        if (*tag == '/') {
            if (n == 0 || strcmp(open[--n], tag + 1)) return false;
        } else if (*tag != '?' && tag[strlen(tag) - 1] != '/') {
            if (n >= 128) return false;
            open[n++] = arena_strndup(a, tag, name);
        }
        p = end + 1;
    }
    return n == 0;
}

/* A group may be a link; its address is escaped like any other text. */
static void links_are_links(void **state) {
    Ground *g = *state;
    Scene *s = scene_new(g->a, fonts_shared(), THEME_LIGHT, 200, 100);
    int box = clean_figure(s);
    s->groups[box].href = "x.svg?a=1&b=\"2\"#id";
    Sink out = {.arena = g->a};
    paint_svg(s, &out);
    const char *t = (const char *)out.p;
    assert_true(well_formed(g->a, t));
    const char *link = strstr(t, "<a xlink:href=\"x.svg?a=1&amp;b=&quot;2&quot;#id\">");
    assert_non_null(link);
    assert_non_null(strstr(link, "inside</text>"));
    assert_true(strstr(link, "inside</text>") < strstr(link, "</g></a>"));
}

static char *draw(Ground *g, const Trace *t, const RenderOptions *o, RenderFormat f, size_t *n) {
    size_t dummy;
    char *p = render_text(t, g->d, o, f, g->a, n ? n : &dummy);
    if (!p) diags_print(g->d, stderr, false);
    assert_non_null(p);
    return p;
}

static int n_views(void) {
    int n;
    render_views(&n);
    return n;
}
static const char *view_at(int i) {
    int n;
    return render_views(&n)[i].name;
}

/* Every view of every trace that has something for it. */
static void lint_of_all_views(void **state) {
    Ground *g = *state;
    int fixtures_held = sample_of(N_FIXTURES, "fixtures");
    for (int i = 0; i < fixtures_held; i++)
        for (int v = 0; v < n_views(); v++) {
            for (int p = 0; p < 4; p++) {
                const char *report;
                Diags *d = diags_new(g->a);
                Trace *t = fixtures[i].make(g->a);
                RenderOptions o = options(view_at(v));
                o.preset = all_presets[p];
                o.theme = all_themes[p % 3];
                o.rank = t->ranks - 1;
                int n = render_lint(t, d, &o, g->a, &report);
                if (n)
                    print_message("%s %s %s\n%s", fixtures[i].name, view_at(v), o.preset, report);
                assert_int_equal(n, 0);
                if (diags_errors(d)) continue;
                assert_true(well_formed(g->a, draw(g, t, &o, FORMAT_SVG, NULL)));
            }
        }
}

static void svg_is_well_formed(void **state) {
    Ground *g = *state;
    int fixtures_held = sample_of(N_FIXTURES, "fixtures");
    for (int i = 0; i < fixtures_held; i++)
        for (int p = 0; p < 4; p++) {
            RenderOptions o = options(fixtures[i].view);
            o.preset = all_presets[p];
            char *s = draw(g, fixtures[i].make(g->a), &o, FORMAT_SVG, NULL);
            assert_true(well_formed(g->a, s));
            assert_non_null(strstr(s, "role=\"img\""));
            assert_non_null(strstr(s, "<desc id="));
            assert_null(strstr(s, "nan"));
            assert_null(strstr(s, "inf\""));
        }
    /* texts that XML cannot hold, or only escaped */
    Trace *t = toy_mlp(g->a);
    t->plan = "a<b>&\"c\"\001\xff\xc3";
    t->model_name = "</svg><script>";
    RenderOptions o = options("block");
    assert_true(well_formed(g->a, draw(g, t, &o, FORMAT_SVG, NULL)));
}

/* A picture goes further than the machine it was made on: it names the plan's file, not its
 * folders. */
static void folders_stay_at_home(void **state) {
    Ground *g = *state;
    static const char plan[] = "model: {kind: mlp, sizes: [6, 10, 3], layer_names: [up, down]}\n"
                               "mesh: {tp: 2}\nplan: {up: colwise, down: rowwise}\n";
    PipelineOptions run = {.execute = true, .numbers = true, .events = true, .threads = 1};
    PipelineReport report;
    Trace *t = pipeline_run(g->a, diags_new(g->a),
                            plan_text("/home/somebody/secret/plan.yaml", plan), &run, &report);
    assert_non_null(t);
    int named = 0;
    for (int v = 0; v < n_views(); v++) {
        RenderOptions o = options(view_at(v));
        Diags *d = diags_new(g->a);
        size_t n;
        char *svg = render_text(t, d, &o, FORMAT_SVG, g->a, &n);
        if (!svg) continue; /* a view that has nothing to show says so */
        assert_null(strstr(svg, "somebody"));
        named += strstr(svg, "plan.yaml:") != NULL;
    }
    assert_true(named > 1);
}

static void same_bytes_twice(void **state) {
    Ground *g = *state;
    static const RenderFormat formats[] = {FORMAT_SVG, FORMAT_PNG, FORMAT_PDF, FORMAT_TEXT,
                                           FORMAT_CHROME};
    Trace *t = llama_times(g->a);
    int drawn = 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (int v = 0; v < n_views(); v++) {
            size_t n, m;
            RenderOptions o = options(view_at(v));
            Diags *d = diags_new(g->a);
            char *a = render_text(t, d, &o, formats[i], g->a, &n);
            if (!a) { /* nothing of a run stands in this trace */
                assert_string_equal(d->item[d->n - 1].code, "E0211");
                continue;
            }
            char *b = draw(g, llama_times(g->a), &o, formats[i], &m);
            assert_int_equal(n, m);
            assert_memory_equal(a, b, n);
            drawn++;
        }
    assert_true(drawn >= 5 * (int)(sizeof formats / sizeof *formats));
}

/* What a figure prints is what the trace says: shapes, bytes, groups, reasons. */
static void facts_equal_the_trace(void **state) {
    Ground *g = *state;
    for (int i = 0; i < 6; i++) {
        Trace *t = fixtures[i].make(g->a);
        RenderOptions o = options("block");
        const char *w = svg_words(g->a, draw(g, t, &o, FORMAT_SVG, NULL));
        const char *text = draw(g, t, &o, FORMAT_TEXT, NULL);
        int64_t sent = 0;
        for (int k = 0; k < t->n_collectives; k++) {
            const TraceCollective *c = &t->collectives[k];
            sent += c->bytes_sent;
            assert_non_null(
                strstr(text, arena_printf(g->a, "sends %s", bytes_text(c->bytes_sent, g->a))));
            assert_non_null(strstr(w, c->axis));
        }
        assert_non_null(strstr(w, t->plan));
        if (sent && strcmp(fixtures[i].name, "qwen-bias"))
            assert_non_null(strstr(w, bytes_text(sent, g->a)));
        for (int k = 0; k < t->n_values; k++) {
            const TraceValue *v = &t->values[k];
            Str shape = str_new(g->a);
            for (int d = 0; d < v->shape.nd; d++)
                str_addf(&shape, "%s%lld", d ? ", " : "[", (long long)v->shape.local->shape[d]);
            str_addf(&shape, "]");
            const char *bytes = bytes_text(v->shape.local->bytes, g->a);
            assert_non_null(strstr(text, shape.s));
            assert_non_null(strstr(text, bytes));
            assert_non_null(strstr(w, bytes));
        }
        for (int k = 0; k < t->n_params; k++) {
            const TraceShape *p = &t->params[k].compute;
            if (p->nd != 2) continue;
            assert_non_null(
                strstr(w, arena_printf(g->a, "[%lld, %lld]", (long long)p->local->shape[0],
                                       (long long)p->local->shape[1])));
        }
    }
}

static void example_is_drawn_right(void **state) {
    Ground *g = *state;
    RenderOptions o = options("block");
    const char *w = svg_words(g->a, draw(g, llama_dp2_cp2_tp2(g->a), &o, FORMAT_SVG, NULL));
    static const char *const facts[] = {
        "Inside one GPU, a Transformer block needs 6 collectives and sends 72 MiB",
        ("rank 0 (dp0 cp0 tp0) · Llama-3-8B forward · B=2 S=8192 bf16 · dp=2 cp=2 tp=sp=2, order "
         "tp→cp→dp"),
        "(fastest→slowest) · identical on 8 of 8 ranks",
        "AllGather k, v",
        "dim S, ×2 · sends 8 MiB",
        "dim S, ÷2 · sends 16 MiB",
        "[1, 8192, 4, 128]   2 × 8 MiB",
        "wk, wv",
        "RoPE on k",
        "causal attention, 16 of 32 heads",
        "{0,2}",
        "Σ tp pending",
        "output of the block: same layout as x, so blocks stack without a reshard",
        "sp 64 MiB in 4 collectives, cp 8 MiB in 2 (bytes leaving the GPU)",
        "shapes checked, not executed"};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        if (!strstr(w, facts[i])) print_message("missing: %s\n", facts[i]);
        assert_non_null(strstr(w, facts[i]));
    }
    const char *s = draw(g, llama_dp2_cp2_tp2(g->a), &o, FORMAT_SVG, NULL);
    assert_non_null(strstr(s, "font-weight=\"700\">S/cp</tspan>")); /* changed by the gather */
    assert_non_null(
        strstr(s, "text-decoration=\"underline\">H·d/tp</tspan>")); /* contracted by wo */
    assert_non_null(strstr(s, "plan line: plan.yaml:12"));
}

static void stamps(void **state) {
    Ground *g = *state;
    RenderOptions o = options("block");
    assert_non_null(strstr(draw(g, llama_tp2(g->a), &o, FORMAT_SVG, NULL),
                           "✓ executed on 2 virtual ranks: equivalent"));
    const char *wrong = draw(g, qwen_bias(g->a), &o, FORMAT_SVG, NULL);
    assert_non_null(strstr(wrong, "✗ different: the first wrong value comes after "));
    assert_non_null(strstr(wrong, "stroke=\"#B00020\""));
    Trace *t = toy_mlp(g->a);
    t->verdict = "invalid";
    t->n_diags = 1;
    t->diags = ARENA_NEW(g->a, Diag);
    t->diags->code = "E0402";
    assert_non_null(strstr(draw(g, t, &o, FORMAT_TEXT, NULL), "✗ the plan breaks a rule: E0402"));
}

static void text_fits_80_columns(void **state) {
    Ground *g = *state;
    for (int i = 0; i < N_FIXTURES * n_views(); i++) {
        const struct Fixture *f = &fixtures[i / n_views()];
        RenderOptions o = options(view_at(i % n_views()));
        size_t len;
        char *text = render_text(f->make(g->a), diags_new(g->a), &o, FORMAT_TEXT, g->a, &len);
        for (const char *p = text ? text : ""; *p;) {
            int n = 0;
            const char *line = p;
            for (; *p && *p != '\n'; p++) n += ((unsigned char)*p & 0xC0) != 0x80;
            if (n > 80) print_message("%d: %.*s\n", n, (int)(p - line), line);
            assert_true(n <= 80);
            assert_true(p == line || p[-1] != ' ');
            if (*p) p++;
        }
    }
}

/* The last diagnostic, and that nothing was drawn. */
static const Diag *refused(Ground *g, const Trace *t, const RenderOptions *o, RenderFormat f) {
    size_t n;
    Diags *d = diags_new(g->a);
    assert_null(render_text(t, d, o, f, g->a, &n));
    assert_true(d->n > 0);
    return &d->item[d->n - 1];
}

static void bad_requests(void **state) {
    Ground *g = *state;
    Trace *t = llama_tp2(g->a);
    RenderOptions o = options("blok");
    const Diag *d = refused(g, t, &o, FORMAT_SVG);
    assert_string_equal(d->code, "E0212");
    assert_non_null(strstr(d->hint, "block"));
    o = options("block"), o.preset = "colunm";
    assert_non_null(strstr(refused(g, t, &o, FORMAT_SVG)->hint, "column"));
    o = options("block"), o.theme = "drak";
    assert_non_null(strstr(refused(g, t, &o, FORMAT_SVG)->hint, "dark"));
    o = options("block"), o.layer = 7;
    assert_non_null(strstr(refused(g, t, &o, FORMAT_SVG)->message, "no layer 7"));
    o = options("block"), o.rank = 2;
    assert_non_null(strstr(refused(g, t, &o, FORMAT_PNG)->message, "no rank 2"));
    o = options("block"), o.part = "moe";
    assert_non_null(strstr(refused(g, t, &o, FORMAT_PNG)->hint, "attention, mlp"));
    o = options("block"), o.pass = "backward";
    assert_string_equal(refused(g, t, &o, FORMAT_TEXT)->code, "E0211");
    o = options("timeline");
    assert_non_null(strstr(refused(g, t, &o, FORMAT_SVG)->hint, "hardware"));
    assert_string_equal(refused(g, t, &o, FORMAT_CHROME)->code, "E0211");
    o = options("block"), o.width_px = 40000;
    assert_string_equal(refused(g, t, &o, FORMAT_PNG)->code, "E0105");
    o = options("block");
    assert_string_equal(refused(g, trace_new(g->a), &o, FORMAT_SVG)->code, "E0211");
}

static void files_stay_intact(void **state) {
    Ground *g = *state;
    char path[] = "/tmp/shardproof-render-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    assert_non_null(f);
    fputs("mine", f);
    fclose(f);
    RenderOptions o = options("nothing");
    assert_false(render_file(llama_tp2(g->a), g->d, &o, FORMAT_SVG, path));
    char b[8] = "";
    f = fopen(path, "r");
    assert_int_equal(fread(b, 1, sizeof b, f), 4);
    fclose(f);
    assert_memory_equal(b, "mine", 4);
    o = options("block");
    assert_true(render_file(llama_tp2(g->a), g->d, &o, FORMAT_SVG, path));
    remove(path);
    Diags *d = diags_new(g->a);
    assert_false(render_file(llama_tp2(g->a), d, &o, FORMAT_SVG, "/nonexistent/dir/x.svg"));
    assert_string_equal(d->item[0].code, "E0105");
    assert_int_equal(diags_exit(d), 4);
}

static void formats_by_extension(void **state) {
    (void)state;
    RenderFormat f;
    assert_true(render_format("a/b.svg", &f) && f == FORMAT_SVG);
    assert_true(render_format("b.png", &f) && f == FORMAT_PNG);
    assert_true(render_format("b.pdf", &f) && f == FORMAT_PDF);
    assert_true(render_format("b.txt", &f) && f == FORMAT_TEXT);
    assert_true(render_format("b.json", &f) && f == FORMAT_JSON);
    assert_false(render_format("b.gif", &f));
    assert_false(render_format("a.svg/b", &f));
    assert_false(render_format("b", &f));
    int n;
    const RenderView *v = render_views(&n);
    assert_true(n >= 2);
    assert_string_equal(v[0].name, "block");
}

/* A figure from a saved trace equals the figure from the run. */
static void saved_trace_gives_the_same_figure(void **state) {
    Ground *g = *state;
    for (int i = 0; i < N_FIXTURES; i++) {
        Trace *t = fixtures[i].make(g->a);
        size_t n, a, b;
        char *text = trace_text(t, g->a, true, &n);
        Trace *u = trace_read(g->a, g->d, "saved", text, n);
        if (!u) diags_print(g->d, stderr, false);
        assert_non_null(u);
        RenderOptions o = options(fixtures[i].view);
        char *p = draw(g, t, &o, FORMAT_SVG, &a), *q = draw(g, u, &o, FORMAT_SVG, &b);
        assert_int_equal(a, b);
        assert_memory_equal(p, q, a);
    }
}

static void numbers_that_are_none(void **state) {
    Ground *g = *state;
    Trace *t = llama_times(g->a);
    t->events[0].start = NAN;
    t->events[1].end = INFINITY;
    t->events[2].exposed = NAN;
    for (int i = 0; i < t->n_computes; i++) t->computes[i].flops = NAN;
    t->model[0].value = NAN;
    RenderOptions o = options("timeline");
    assert_null(strstr(draw(g, t, &o, FORMAT_SVG, NULL), "=\"nan"));
    draw(g, t, &o, FORMAT_PNG, NULL);
    o = options("block");
    for (int i = 0; i < t->n_params; i++) t->params[i].compute.global_shape[0] = 0;
    draw(g, t, &o, FORMAT_PNG, NULL);
    assert_null(strstr(draw(g, t, &o, FORMAT_SVG, NULL), "=\"nan"));
}

static void thousands_of_ranks_are_small(void **state) {
    Ground *g = *state;
    size_t two, many;
    RenderOptions o = options("block");
    draw(g, llama_tp2(g->a), &o, FORMAT_SVG, &two);
    char *s = draw(g, llama_8192(g->a), &o, FORMAT_SVG, &many);
    assert_true(many < 3 * two);
    assert_non_null(strstr(svg_words(g->a, s), "1024 groups × 8"));
    assert_non_null(strstr(svg_words(g->a, s), "identical on 8192 of 8192 ranks"));
}

static void chrome_json(void **state) {
    Ground *g = *state;
    RenderOptions o = options("timeline");
    Trace *t = llama_times(g->a);
    const char *s = draw(g, t, &o, FORMAT_CHROME, NULL);
    int events = 0;
    for (const char *p = strstr(s, "\"ph\":\"X\""); p; p = strstr(p + 1, "\"ph\":\"X\"")) events++;
    assert_int_equal(events, t->n_events);
    assert_non_null(strstr(s, "\"displayTimeUnit\":\"ms\""));
    assert_non_null(strstr(s, "\"name\":\"compute\""));
}

static void contrast_of_roles(void **state) {
    (void)state;
    static const struct {
        Role text, ground;
    } pair[] = {{ROLE_INK, ROLE_PAPER},
                {ROLE_SECOND, ROLE_PAPER},
                {ROLE_INK, ROLE_COMPUTE},
                {ROLE_COMPUTE_NOTE, ROLE_COMPUTE},
                {ROLE_INK, ROLE_COLL},
                {ROLE_INK, ROLE_COLL_PALE},
                {ROLE_INK, ROLE_COMPUTE_DARK},
                {ROLE_INK, ROLE_COMPUTE_PALE},
                {ROLE_COLL_WORD, ROLE_PAPER},
                {ROLE_PASS, ROLE_PAPER},
                {ROLE_FAIL, ROLE_PAPER},
                {ROLE_SHARD_TEXT, ROLE_SHARD},
                {ROLE_SHARD_TEXT_1, ROLE_SHARD_1},
                {ROLE_SHARD_TEXT_2, ROLE_SHARD_2}};
    for (int th = 0; th < THEME_COUNT; th++) {
        for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
            assert_true(theme_contrast(theme_color(th, pair[i].text),
                                       theme_color(th, pair[i].ground)) >= 4.5);
        for (int k = 0; k < AXIS_KINDS; k++) {
            assert_true(theme_contrast(theme_color(th, ROLE_AXIS_TEXT + k),
                                       theme_color(th, ROLE_PAPER)) >= 4.5);
            assert_true(theme_contrast(theme_color(th, ROLE_AXIS_PILL + k),
                                       theme_color(th, ROLE_AXIS + k)) >= 4.5);
            assert_true(
                theme_contrast(theme_color(th, ROLE_AXIS + k), theme_color(th, ROLE_PAPER)) >= 2.9);
        }
    }
}

/* ---- graphs of all kinds ---- */

static uint32_t seed;
static int draw_lot(int n) {
    seed = seed * 1664525u + 1013904223u;
    return (int)(seed >> 8) % n;
}

/* A program nobody would write: any op reads any earlier value, with moves, biases and dead ends.
 */
static Trace *random_trace(Arena *a, uint32_t from) {
    static const char *const glyphs[] = {"box", "plus", "view", "loss", NULL};
    static const char *const parts[] = {"attention", "mlp", "norm", NULL};
    static const char *const shapes[] = {"[N/a, M]", "[N, M]", "[N]", "[N/(a*b), M, M]", "[M/b]"};
    seed = from;
    Fix f = fix_new(a, "random", "none");
    fix_axis(&f, "a", 2);
    fix_axis(&f, "b", 3);
    fix_dim(&f, "N", 24);
    fix_dim(&f, "M", 12);
    fix_param(&f, "w", "[M, N/a]", "colwise");
    fix_param(&f, "bias", "[M]", NULL);
    fix_value(&f, "v0", -1, shapes[draw_lot(5)], NULL, VALUE_INPUT);
    int n = 1, steps = 1 + draw_lot(24);
    for (int i = 0; i < steps; i++) {
        const char *in = arena_printf(a, "v%d", draw_lot(n));
        if (draw_lot(4) == 0) {
            fix_coll(&f, draw_lot(2) ? "all_gather" : "all_reduce", draw_lot(2) ? "a" : "b", in,
                     draw_lot(2) ? "N" : NULL, shapes[draw_lot(5)], parts[draw_lot(4)],
                     draw_lot(2) ? "a reason" : NULL);
            continue;
        }
        for (int k = draw_lot(3); k > 0; k--) in = arena_printf(a, "%s v%d", in, draw_lot(n));
        if (draw_lot(3) == 0) in = arena_printf(a, "%s %s", in, draw_lot(2) ? "w" : "bias");
        fix_op(&f, draw_lot(2) ? "op" : "other", draw_lot(3) ? "label" : NULL, glyphs[draw_lot(5)],
               draw_lot(2) ? "m.x" : "", parts[draw_lot(4)], arena_printf(a, "v%d", n),
               shapes[draw_lot(5)], draw_lot(5) ? NULL : "a", in);
        n++;
    }
    return f.t;
}

static void any_graph_is_drawn(void **state) {
    Ground *g = *state;
    uint32_t n = (uint32_t)sample_of(150, "random graphs");
    for (uint32_t i = 0; i < n; i++) {
        Arena *a = arena_new();
        Ground one = {a, diags_new(a)};
        Trace *t = random_trace(a, i);
        RenderOptions o = options("block");
        o.preset = all_presets[i % 4];
        assert_true(t->n_computes == 0 || well_formed(a, draw(&one, t, &o, FORMAT_SVG, NULL)));
        if (t->n_computes) draw(&one, t, &o, FORMAT_TEXT, NULL);
        arena_free(a);
    }
    (void)g;
}

/* ---- backward beside forward ---- */

static const Trace *backward_trace(Arena *a, const char *extra) {
    const char *plan = arena_printf(a,
                                    "name: small-backward\n"
                                    "model: {preset: llama3-8b, layers: 1, shrink: 32, parts: "
                                    "[embedding, blocks, norm, head, loss]}\n"
                                    "data: {batch: 4, sequence: 16, dtype: f32, seed: 0}\n"
                                    "names: torchtitan\npass: backward\n%s",
                                    extra);
    PlanRun r = plan_run(a, "small.yaml", plan, false);
    if (!r.t || diags_errors(r.d)) run_print(&r);
    assert_non_null(r.t);
    assert_int_equal(diags_errors(r.d), 0);
    return r.t;
}

static const char *const plan_tp_sp =
    "mesh: {dp: 2, tp: 2}\n"
    "plan:\n"
    "  tok_embeddings: {style: rowwise, output: shard(1)}\n"
    "  norm: sequence_parallel\n"
    "  output: {style: colwise, input: shard(1), use_local_output: false}\n"
    "  loss: loss_parallel\n"
    "  layers.*.attention_norm: sequence_parallel\n"
    "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "  layers.*.attention.w[qkv]: colwise\n"
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
    "  layers.*.ffn_norm: sequence_parallel\n"
    "  layers.*.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "  layers.*.feed_forward.w[13]: colwise\n"
    "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n";

static int times(const char *text, const char *what) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++) n++;
    return n;
}

/* Every gather of forward is joined to a scatter of backward, every weight gradient has its
 * reduction. */
static void backward_mirrors_forward(void **state) {
    Ground *g = *state;
    const Trace *t = backward_trace(g->a, plan_tp_sp);
    RenderOptions o = options("block");
    char *s = draw(g, t, &o, FORMAT_SVG, NULL);
    const char *words = svg_words(g->a, s);
    assert_true(well_formed(g->a, s));
    assert_int_equal(times(s, "class=\"pair\""),
                     9); /* 4 of the block, 2 of embedding and head, 3 of the loss */
    assert_int_equal(times(s, "class=\"gradient\""), 9);
    /* those of the layer, each as a hexagon of its own */
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        bool shown = c->layer == 0 && c->pass != PHASE_PARAMETERS;
        bool grad = c->pass == PHASE_GRADIENTS; /* wq wk wv and w1 w3 stand as one */
        if (shown && !grad) assert_non_null(strstr(s, arena_printf(g->a, "-step-%d\"", c->step)));
    }
    assert_non_null(strstr(words, "every AllGather faces a ReduceScatter"));
    assert_non_null(strstr(words, "dwq dwk dwv"));
    assert_non_null(strstr(words, "dx via w1 w3"));
    assert_non_null(strstr(words, "RMSNorm′"));
    assert_null(strstr(words, "at rest"));
    o.pass = "both";
    assert_string_equal(draw(g, t, &o, FORMAT_SVG, NULL), s);
    o.pass = "forward";
    assert_null(strstr(draw(g, t, &o, FORMAT_SVG, NULL), "stream-backward"));
    o.pass = "backward";
    assert_null(strstr(draw(g, t, &o, FORMAT_SVG, NULL), "stream-backward"));
    o = options("block"), o.part = "mlp";
    assert_int_equal(times(draw(g, t, &o, FORMAT_SVG, NULL), "class=\"pair\""), 2);
    assert_int_equal(diags_errors(g->d), 0);
}

/* FSDP: how a weight lies at rest, in compute, and that it is freed in between. */
static void weights_have_three_states(void **state) {
    Ground *g = *state;
    const Trace *t = backward_trace(g->a, "mesh: {dp: 4}\ndata_parallel: {mode: fsdp, axis: dp}\n");
    RenderOptions o = options("block");
    const char *words = svg_words(g->a, draw(g, t, &o, FORMAT_SVG, NULL));
    for (int i = 0; i < t->n_params; i++) {
        const TraceParam *p = &t->params[i];
        if (p->layer != 0) continue;
        const char *rest = p->rest.symbolic, *compute = p->compute.symbolic;
        if (strchr(rest, '*') || strchr(compute, '*')) continue; /* printed with another sign */
        assert_non_null(strstr(words, rest));
        assert_non_null(strstr(words, compute));
    }
    assert_non_null(strstr(words, "freed"));
    assert_int_equal(times(words, "freed\n") + times(words, "kept\n"),
                     10);                     /* q; k and v; gate and up as one line each */
    assert_true(times(words, "kept\n") <= 2); /* used last, first in backward */
    assert_non_null(strstr(words, "only weights and their gradients travel"));
    assert_int_equal(diags_errors(g->d), 0);
}

/* Clean and the same twice in every preset; the layout of forward alone where nothing mirrors it.
 */
static void mirrors_are_clean(void **state) {
    Ground *g = *state;
    const Trace *t[] = {
        backward_trace(g->a, "mesh: {tp: 1}\n"), backward_trace(g->a, plan_tp_sp),
        backward_trace(g->a, "mesh: {dp: 4}\ndata_parallel: {mode: fsdp, axis: dp}\n"),
        backward_trace(g->a,
                       "mesh: {dp: 2}\ndata_parallel: {mode: fsdp, axis: dp, unit: block}\n")};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (int p = 0; p < 4; p++) {
            const char *report;
            RenderOptions o = options("block");
            o.preset = all_presets[p];
            o.theme = all_themes[p % 3];
            int n = render_lint(t[i], g->d, &o, g->a, &report);
            if (n) print_message("mirror %zu %s\n%s", i, o.preset, report);
            assert_int_equal(n, 0);
            char *s = draw(g, t[i], &o, FORMAT_SVG, NULL);
            assert_non_null(strstr(
                svg_words(g->a, s),
                "backward")); /* the first page may be that of the embedding, without a stream */
            assert_string_equal(draw(g, t[i], &o, FORMAT_SVG, NULL), s);
        }
    RenderOptions o = options("block");
    assert_null(strstr(draw(g, llama_tp2(g->a), &o, FORMAT_SVG, NULL), "stream-backward"));
    assert_int_equal(diags_errors(g->d), 0);
}

/* ---- memory, errors, storyboard ---- */

static void has(Ground *g, const Trace *t, const RenderOptions *o, const char *const *fact) {
    const char *w = svg_words(g->a, draw(g, t, o, FORMAT_SVG, NULL));
    for (; *fact; fact++) {
        if (!strstr(w, *fact)) print_message("missing: %s\n", *fact);
        assert_non_null(strstr(w, *fact));
    }
}

static void memory_adds_up(void **state) {
    Ground *g = *state;
    Trace *t = train_memory(g->a);
    RenderOptions o = options("memory");
    int64_t rest = param_bytes(t), top = 0, sum = 0;
    int at = -1;
    for (int i = 0; i < t->n_memory; i++) {
        const TraceMemory *m = &t->memory[i];
        sum = i && m[-1].step == m->step ? sum + m->bytes : m->bytes;
        if (m->step >= 0 && sum > top) top = sum, at = m->step;
    }
    const char *facts[] = {arena_printf(g->a, "Each of 2 ranks holds %s at the peak",
                                        bytes_text(3 * rest + top, g->a)),
                           bytes_text(rest, g->a),
                           bytes_text(2 * rest, g->a),
                           "optimizer state",
                           "gradients of parameters",
                           arena_printf(g->a, "peak %s at step %d", bytes_text(top, g->a), at),
                           "(2 + 4) B × ",
                           "capacity ",
                           "MiB over",
                           "Counted: parameters as they lie at rest",
                           "workspace of kernels",
                           NULL};
    has(g, t, &o, facts);
    assert_non_null(
        strstr(draw(g, t, &o, FORMAT_SVG, NULL), "stroke=\"#B00020\"")); /* over the capacity */
    assert_non_null(
        strstr(draw(g, t, &o, FORMAT_TEXT, NULL), "gradient of layers.0.feed_forward.w2.weight"));
    t->memory[3].bytes += 1; /* lifetimes do not explain it any more */
    assert_non_null(
        strstr(draw(g, t, &o, FORMAT_TEXT, NULL),
               "not known: how long values are held does not add up to what was recorded"));
    static const char *const fold[] = {"and 9 more rank classes, from ",
                                       "Each of the 381 fullest ranks", "Live bytes of rank 7600",
                                       NULL};
    has(g, many_classes(g->a), &o, fold);
    const Diag *d = refused(g, llama_tp2(g->a), &o, FORMAT_SVG);
    assert_string_equal(d->code, "E0211");
    assert_non_null(strstr(d->hint, "--view memory"));
    o.rank = 2;
    assert_non_null(strstr(refused(g, t, &o, FORMAT_SVG)->message, "no rank 2"));
}

static void errors_are_located(void **state) {
    Ground *g = *state;
    RenderOptions o = options("errors");
    Trace *t = errors_wrong(g->a);
    const char *wrong[] = {arena_printf(g->a, "The first wrong value %s",
                                        words_wrong_value(g->a, t, t->first_wrong, true)),
                           "both ranks · step 6",
                           "The sum over tp is missing: each rank holds",
                           "first wrong element [0, 21]",
                           "0.539",
                           "0.615",
                           "\n2.5\n2.5\n", /* the errors of both ranks, in their cells */
                           "after",
                           "wrong because of it",
                           "bit for bit equal",
                           NULL};
    has(g, t, &o, wrong);
    const char *s = draw(g, t, &o, FORMAT_SVG, NULL);
    assert_non_null(strstr(s, "#993404"));
    assert_non_null(strstr(s, "#CF8E6A"));
    assert_non_null(strstr(s, "and 10 later ones are wrong or follow"));
    const char *text = draw(g, t, &o, FORMAT_TEXT, NULL);
    assert_non_null(strstr(text, " XX\n"));
    assert_non_null(strstr(text, " ~x\n"));
    static const char *const right[] = {"All right: ", "on 8 ranks agree", "Every value is right",
                                        "uses 53 % of it", NULL};
    has(g, errors_right(g->a), &o, right);
    assert_null(strstr(draw(g, errors_right(g->a), &o, FORMAT_SVG, NULL), "#993404"));
    static const char *const many[] = {
        "4096 ranks", "Ranks of a column are alike in every check: ", "0:8192:2", NULL};
    has(g, errors_many(g->a), &o, many);
    const Diag *d = refused(g, llama_tp2(g->a), &o, FORMAT_SVG);
    assert_string_equal(d->code, "E0211");
    assert_non_null(strstr(d->hint, "draw PLAN --view errors"));
    t->checks[9].max_abs = NAN;
    assert_null(strstr(draw(g, t, &o, FORMAT_SVG, NULL), "=\"nan"));
}

/* Every kind ends with what it is for, whatever the number of ranks, and shows nothing that was not
 * sent. */
static void rings_end_right(void **state) {
    (void)state;
    for (int n = 2; n <= RING_MAX; n++)
        for (RingKind kind = RING_GATHER; kind < RING_KINDS; kind++)
            for (int max = 0; max < 2; max++) {
                double x[RING_MAX * RING_MAX], want[RING_MAX] = {0};
                RingStory s = {.kind = kind, .n = n, .n_shown = n, .max = max, .before = x};
                for (int c = 0; c < n; c++) s.shown[c] = c;
                for (int c = 0; c < n; c++)
                    for (int r = 0; r < n; r++) x[c * n + r] = (c * 7 + r * 5) % 11 + 1;
                for (int c = 0; c < n; c++)
                    for (int r = 0; r < n; r++)
                        want[c] = max ? fmax(want[c], x[c * n + r]) : want[c] + x[c * n + r];
                int steps = ring_steps(kind, n);
                assert_int_equal(steps, kind == RING_SLICE || kind == RING_SHIFT ? 1
                                        : kind == RING_REDUCE                    ? 2 * (n - 1)
                                                                                 : n - 1);
                for (int t = 0; t <= steps; t++) {
                    Ring g;
                    int sends = 0, fresh = 0;
                    ring_frame(&g, &s, t);
                    for (int c = 0; c < n; c++)
                        for (int r = 0; r < n; r++) {
                            const RingCell *k = &g.cell[c][r];
                            sends += k->sends, fresh += k->fresh;
                            if (t < steps || (kind == RING_SCATTER && c != r)) continue;
                            if ((kind == RING_SLICE || kind == RING_SHIFT) && c != r) {
                                assert_true(kind == RING_SLICE || !k->held);
                                continue;
                            }
                            assert_true(k->done);
                            double right = kind == RING_GATHER     ? x[c]
                                           : kind == RING_EXCHANGE ? x[r * n + c]
                                           : kind == RING_SLICE    ? x[c * n + r]
                                           : kind == RING_SHIFT    ? x[c * n + (c + n - 1) % n]
                                                                   : want[c];
                            assert_true(k->value == right);
                            if (kind == RING_SCATTER || kind == RING_REDUCE)
                                assert_int_equal(k->terms, n);
                        }
                    bool odd = kind == RING_EXCHANGE && n % 2;
                    if (kind != RING_SLICE && !odd) {
                        /* all ranks send one chunk; in a round-robin two may rest, in a ring none
                         */
                        assert_int_equal(sends, t < steps ? n : 0);
                        assert_int_equal(fresh, t ? n : 0);
                    }
                }
            }
}

static void storyboards(void **state) {
    Ground *g = *state;
    RenderOptions o = options("storyboard");
    static const char *const reduce[] = {"Ring AllReduce after ",
                                         "After step 3: sums",
                                         "After step 6: done",
                                         "sent 3/2 of M = ",
                                         "2(n−1) = 6 steps",
                                         "No numbers:",
                                         "1+2+3+0",
                                         NULL};
    has(g, toy_mlp(g->a), &o, reduce);
    o.part = "reduce-scatter";
    static const char *const scatter[] = {"Ring ReduceScatter after ", "2 ranks",
                                          "After step 1: done", "sent 1/2 of M = ", NULL};
    has(g, llama_dp2_cp2_tp2(g->a), &o, scatter);
    const Diag *d = refused(g, toy_mlp(g->a), &o, FORMAT_SVG);
    assert_string_equal(d->code, "E0212");
    assert_non_null(strstr(d->hint, "all_reduce"));
    o.part = NULL;
    assert_string_equal(refused(g, llama_single(g->a), &o, FORMAT_TEXT)->code, "E0211");
}

/* Text of the three views in 80 columns, and the same bytes twice in every format. */
static void new_views_are_steady(void **state) {
    Ground *g = *state;
    for (int i = 0; i < N_FIXTURES; i++) {
        const char *v = fixtures[i].view;
        if (strcmp(v, "memory") && strcmp(v, "errors") && strcmp(v, "storyboard")) continue;
        RenderOptions o = options(v);
        size_t n, m;
        char *text = draw(g, fixtures[i].make(g->a), &o, FORMAT_TEXT, &n);
        for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
            int w = 0;
            for (size_t k = 0; k < strcspn(p, "\n"); k++) w += (p[k] & 0xC0) != 0x80;
            if (w > 80) print_message("%s: %.*s\n", fixtures[i].name, (int)strcspn(p, "\n"), p);
            assert_true(w <= 80);
        }
        static const RenderFormat formats[] = {FORMAT_SVG, FORMAT_PNG, FORMAT_PDF, FORMAT_TEXT};
        for (int k = 0; k < 4; k++) {
            char *a = draw(g, fixtures[i].make(g->a), &o, formats[k], &n);
            char *b = draw(g, fixtures[i].make(g->a), &o, formats[k], &m);
            assert_int_equal(n, m);
            assert_memory_equal(a, b, n);
        }
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--draw")) return draw_all(argv[2]);
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(lint_is_silent),
                                       T(lint_of_all_views),
                                       T(lint_finds_faults),
                                       T(fills_let_through),
                                       T(links_are_links),
                                       T(svg_is_well_formed),
                                       T(folders_stay_at_home),
                                       T(same_bytes_twice),
                                       T(facts_equal_the_trace),
                                       T(example_is_drawn_right),
                                       T(stamps),
                                       T(text_fits_80_columns),
                                       T(bad_requests),
                                       T(files_stay_intact),
                                       T(formats_by_extension),
                                       T(saved_trace_gives_the_same_figure),
                                       T(numbers_that_are_none),
                                       T(thousands_of_ranks_are_small),
                                       T(chrome_json),
                                       T(contrast_of_roles),
                                       T(backward_mirrors_forward),
                                       T(weights_have_three_states),
                                       T(mirrors_are_clean),
                                       T(any_graph_is_drawn),
                                       T(memory_adds_up),
                                       T(errors_are_located),
                                       T(rings_end_right),
                                       T(storyboards),
                                       T(new_views_are_steady)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
