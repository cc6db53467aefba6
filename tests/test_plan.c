/* From the text of a plan to a typed Plan: every key, every refusal with its place and hint, --set,
 * styles, patterns.
 */
#include "plan/sharding.h"
#include "plan/plan.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
    Arena *a;
    Diags *d;
} Fix;

static int setup(void **state) {
    Fix *f = calloc(1, sizeof *f);
    f->a = arena_new();
    f->d = diags_new(f->a);
    *state = f;
    return 0;
}
static int teardown(void **state) {
    Fix *f = *state;
    arena_free(f->a);
    free(f);
    return 0;
}
static Plan *parse(Fix *f, const char *text) {
    return plan_parse(f->a, f->d, plan_text("dir/p.yaml", text));
}
static Plan *parse_ok(Fix *f, const char *text) {
    Plan *p = parse(f, text);
    for (int i = 0; i < f->d->n; i++)
        print_error("%s: %s\n", f->d->item[i].code, f->d->item[i].message);
    assert_int_equal(f->d->n, 0);
    return p;
}
#define HEAD "model: llama3-8b\nmesh: {dp: 2, cp: 3, tp: 4}\n"

#define assert_loc(l, line_, col_)                                                                 \
    do {                                                                                           \
        assert_string_equal((l).file, "dir/p.yaml");                                               \
        assert_int_equal((l).line, (line_));                                                       \
        assert_int_equal((l).col, (col_));                                                         \
    } while (0)
#define assert_place(p, kind_, dim_)                                                               \
    do {                                                                                           \
        assert_int_equal((p).kind, (kind_));                                                       \
        assert_int_equal((p).dim, (dim_));                                                         \
        assert_int_equal((p).letter, 0);                                                           \
    } while (0)
#define assert_bare(s, kind_, dim_)                                                                \
    do {                                                                                           \
        assert_true((s).set && !(s).mapping);                                                      \
        assert_place((s).bare, (kind_), (dim_));                                                   \
    } while (0)

static void test_example_sizes_and_mesh(void **state) {
    Fix *f = *state;
    const Plan *p = parse_ok(f, example_plan);
    assert_string_equal(p->name, "llama3-8b-tp2-sp");
    assert_string_equal(p->file, "dir/p.yaml");
    assert_string_equal(p->dir, "dir");
    assert_string_equal(p->preset, "llama3-8b");
    assert_loc(p->model_loc, 2, 1);
    assert_loc(p->preset_loc, 2, 17);
    assert_true(p->layers_set && p->layers_first == 0 && p->layers_last == 1);
    assert_loc(p->layers_loc, 2, 36);
    assert_int_equal(p->shrink, 16);
    assert_loc(p->shrink_loc, 2, 47);
    assert_int_equal(p->parts, PART_BLOCKS);
    assert_int_equal(p->batch, 2);
    assert_int_equal(p->sequence, 64);
    assert_loc(p->batch_loc, 3, 15);
    assert_loc(p->sequence_loc, 3, 28);
    assert_int_equal(p->dtype, DT_F32);
    assert_loc(p->dtype_loc, 3, 39);
    assert_int_equal(p->n_axes, 3);
    static const char *const axis[] = {"dp", "cp", "tp"};
    static const int64_t size[] = {2, 1, 2};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(p->axes[i].name, axis[i]);
        assert_int_equal(p->axes[i].size, size[i]);
        assert_loc(p->axes[i].loc, 4, 8 + 7 * i);
        assert_loc(p->axes[i].size_loc, 4, 12 + 7 * i);
    }
    assert_loc(p->mesh_loc, 4, 1);
    assert_int_equal(p->n_groups, 1);
    assert_string_equal(p->groups[0].key, "sp");
    assert_string_equal(p->groups[0].text, "tp");
    assert_loc(p->groups[0].loc, 5, 10);
    assert_int_equal(p->names, NAMES_TORCHTITAN);
    assert_loc(p->names_loc, 6, 8);
    assert_string_equal(plan_names_text(p->names), "torchtitan");
}

static void test_example_lines_and_expect(void **state) {
    Fix *f = *state;
    const Plan *p = parse_ok(f, example_plan);
    assert_int_equal(p->n_lines, 8);
    assert_string_equal(p->lines[0].pattern, "layers.*.attention_norm");
    assert_string_equal(p->lines[0].style.name, "sequence_parallel");
    assert_loc(p->lines[0].loc, 8, 3);
    assert_loc(p->lines[0].style_loc, 8, 28);
    assert_false(p->lines[0].style.input.set);
    assert_int_equal(p->lines[0].style.use_local_output, -1);
    assert_int_equal(p->lines[0].style.per_module, -1);
    const Style *s = &p->lines[1].style;
    assert_string_equal(s->name, "prepare_module_input");
    assert_loc(p->lines[1].style_loc, 9, 31);
    assert_true(s->input.set && s->input.n == 1 && s->desired_input.set && s->desired_input.n == 1);
    assert_bare(s->input.arg[0], RP_SHARD, 1);
    assert_loc(s->input.arg[0].bare.loc, 9, 61);
    assert_bare(s->desired_input.arg[0], RP_REPLICATE, 0);
    assert_false(s->output.set || s->weight.set || s->bias.set);
    s = &p->lines[3].style;
    assert_string_equal(p->lines[3].pattern, "layers.*.attention.wo");
    assert_bare(s->output.arg[0], RP_SHARD, 1);
    assert_string_equal(p->lines[6].pattern, "layers.*.feed_forward.w[13]");
    assert_false(p->lines[7].from_recipe);
    const Expect *e = &p->expect;
    assert_true(e->set && e->equivalent == 1 && !e->has_diagnostics && !e->first_wrong);
    assert_loc(e->loc, 16, 1);
    assert_int_equal(e->n_shapes, 1);
    assert_string_equal(e->shapes[0].key, "layers.0.input");
    assert_string_equal(e->shapes[0].text, "[B/dp, S/(cp*sp), D]");
    assert_loc(e->shapes[0].loc, 18, 18);
    assert_int_equal(e->n_collectives, 2);
    assert_string_equal(phase_text(e->collectives[0].phase), "forward");
    assert_string_equal(e->collectives[0].op, "all_gather");
    assert_string_equal(e->collectives[1].op, "reduce_scatter");
    assert_string_equal(e->collectives[1].axis, "tp");
    assert_int_equal(e->collectives[1].count, 2);
    assert_loc(e->collectives[1].loc, 19, 46);
    assert_int_equal(e->memory_per_rank, -1);
}

static void test_defaults(void **state) {
    Fix *f = *state;
    const Plan *p = parse_ok(f, "model: llama3-8b\nmesh: {tp: 2}\n");
    assert_string_equal(p->name, "p");
    assert_string_equal(p->preset, "llama3-8b");
    assert_loc(p->preset_loc, 1, 8);
    assert_true(!p->layers_set && p->layers_first == 0 && p->layers_last == 1);
    assert_true(p->shrink == 1 && p->parts == 0 && p->rope_interleaved == -1 &&
                p->vocab_multiple == 1);
    assert_true(p->batch == -1 && p->sequence == -1 && p->rows == -1 && p->seed == 0 &&
                p->microbatches == 1);
    assert_true(p->dtype == DT_F32 && !p->input_gradient && !p->order_labels && !p->cut_batch &&
                !p->block_input.set);
    assert_true(p->names == NAMES_TORCHTITAN && p->n_lines == 0 && p->n_styles == 0 && !p->recipe);
    assert_true(!p->loss_kind && p->ignore_index == -100 && p->label_smoothing == 0);
    assert_string_equal(p->normalise, "global");
    assert_true(p->pass == PASS_FORWARD && !p->optimizer.name && !p->data_parallel.mode);
    assert_int_equal(plan_data_unit(p), UNIT_PARAMETER);
    assert_string_equal(p->data_parallel.reduce, "sum");
    assert_string_equal(p->data_parallel.grad_order, "shard_first");
    assert_true(plan_reshard(p)->rest && p->save_gathered && !p->per_module &&
                p->trust == TRUST_RULES);
    assert_string_equal(p->context_parallel.mode, "all_gather");
    assert_string_equal(p->context_parallel.order, "contiguous");
    assert_null(p->context_parallel.axis); /* there is no axis cp */
    assert_int_equal(p->recompute, RECOMPUTE_NONE);
    assert_string_equal(p->kv_replicate, "auto");
    assert_true(!p->expect.set && p->expect.equivalent == -1 && p->n_faults == 0 &&
                p->n_gradients == 0);
    p = parse_ok(
        f,
        "model: llama3-8b\nmesh: {cp: 2}\nplan:\nexpect:\ngroups:\nfaults:\n"); /* empty sections */
    assert_string_equal(p->context_parallel.axis, "cp");
    assert_false(p->expect.set);
    Diags *d = diags_new(f->a);
    assert_string_equal(plan_parse(f->a, d, plan_text("-", HEAD))->name, "plan");
    assert_string_equal(plan_parse(f->a, d, plan_text("-", HEAD))->dir, ".");
    assert_string_equal(plan_parse(f->a, d, plan_text("/a.b.yaml", HEAD))->name, "a.b");
    assert_string_equal(plan_parse(f->a, d, plan_text("/a.b.yaml", HEAD))->dir, "/");
    assert_int_equal(d->n, 0);
}

/* ---- every other key ---- */

static void test_model_keys(void **state) {
    Fix *f = *state;
    const Plan *p = parse_ok(
        f, "mesh: {tp: 2}\nmodel:\n  kind: mlp\n  sizes: [10, 32, 5]\n  bias: false\n  activation: "
           "relu\n"
           "  layer_names: [net1, net2]\n"
           "  rope: interleaved\n  ignore_config: [foo, bar]\n"
           "  weights: {file: w.safetensors, prefix: \"initial.\"}\n  weights_names: gguf\n");
    assert_string_equal(p->kind, "mlp");
    assert_true(p->n_sizes == 3 && p->sizes[0] == 10 && p->sizes[1] == 32 && p->sizes[2] == 5);
    assert_int_equal(p->mlp_bias, 0);
    assert_string_equal(p->activation, "relu");
    assert_loc(p->activation_loc, 6, 15);
    assert_true(p->n_layer_names == 2 && strcmp(p->layer_names[1], "net2") == 0);
    assert_int_equal(p->rope_interleaved, 1);
    assert_true(p->n_ignore_config == 2 && strcmp(p->ignore_config[0], "foo") == 0);
    assert_string_equal(p->weights, "w.safetensors"); /* relative to dir; joined by who opens it */
    assert_string_equal(p->weights_prefix, "initial.");
    assert_string_equal(p->weights_names, "gguf");
    assert_loc(p->weights_loc, 10, 19);
    p = parse_ok(f, "mesh: {tp: 2}\nmodel:\n  preset: x\n  layers: [2, 7]\n"
                    "  parts: [head, loss, embedding]\n  vocab_multiple: 128\n");
    assert_true(p->layers_first == 2 && p->layers_last == 7);
    assert_int_equal(p->parts, PART_HEAD | PART_LOSS | PART_EMBEDDING);
    assert_int_equal(p->vocab_multiple, 128);
    p = parse_ok(f, "mesh: {tp: 2}\nmodel: {hf_config: c.json, layers: all, weights: w, parts: "
                    "norm, rope: half}");
    assert_string_equal(p->hf_config, "c.json");
    assert_loc(p->hf_config_loc, 2, 20);
    assert_true(p->layers_set && p->layers_first == 0 && p->layers_last == -1);
    assert_string_equal(p->weights, "w");
    assert_true(p->parts == PART_NORM && p->rope_interleaved == 0);
    p = parse_ok(
        f, "mesh: {tp: 2}\nmodel: {preset: x, layers: 9, config: {hidden_size: 64, rope_scaling: "
           "{factor: 8.0, t: \"8\"}, tie: true, n: null, l: [1, -2e-3, a\\b], o: 010}}");
    assert_int_equal(p->layers_last, 9);
    assert_string_equal(
        p->inline_config,
        "{\"hidden_size\": 64, \"rope_scaling\": {\"factor\": 8.0, \"t\": \"8\"}, \"tie\": true, "
        "\"n\": null, \"l\": [1, -2e-3, \"a\\\\b\"], \"o\": \"010\"}");
}

static void test_data_keys(void **state) {
    Fix *f = *state;
    const Plan *p =
        parse_ok(f, "model: x\nmesh: {a: 2, b: 3, tp: 4}\ngroups: {ab: [a, b], z: ab*tp}\n"
                    "data: {batch: 9223372036854775807, dtype: bf16, seed: 77, inputs: "
                    "in.st, microbatches: 3, input_gradient: true, order: {labels: zigzag}, cut: "
                    "{batch: a * b, sequence: [tp]}, block_input: {tp: shard(1), ab: invariant}}");
    assert_true(p->rows == -1 && p->batch == INT64_MAX && p->sequence == -1);
    assert_true(p->dtype == DT_BF16 && p->seed == 77 && p->microbatches == 3 && p->input_gradient);
    assert_string_equal(p->inputs, "in.st");
    assert_string_equal(p->order_labels, "zigzag");
    assert_string_equal(p->cut_batch, "a*b");
    assert_string_equal(p->cut_sequence, "tp");
    assert_loc(p->cut_sequence_loc, 4, 168);
    assert_string_equal(p->groups[0].text, "a*b");
    assert_string_equal(p->groups[1].text, "a*b*tp"); /* a group of groups is spelt out */
    assert_true(p->block_input.set && p->block_input.mapping && p->block_input.n == 2);
    assert_string_equal(p->block_input.on[0].axis, "tp");
    assert_place(p->block_input.on[0].place, RP_SHARD, 1);
    assert_string_equal(p->block_input.on[1].axis, "ab");
    assert_int_equal(p->block_input.on[1].place.kind, RP_INVARIANT);
    assert_loc(p->block_input.on[1].loc, 4, 203);
    p = parse_ok(f, "model: {kind: mlp, sizes: [6, 3]}\nmesh: {a: 2}\ndata: {rows: 20}");
    assert_true(p->rows == 20);
    p = parse_ok(f, "model: x\nmesh: {a: 2}\ndata: {dtype: f64, seed: 9223372036854775807, "
                    "block_input: shard(-1)}");
    assert_true(p->dtype == DT_F64 && p->seed == INT64_MAX);
    assert_bare(p->block_input, RP_SHARD, -1);
    p = parse_ok(f, "model: x\nmesh: {dp: 10000000}\n"); /* ten million ranks are legal to plan */
    assert_int_equal(p->axes[0].size, 10000000);
    p = parse_ok(
        f,
        "model: x\nmesh: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, l: 2}");
    assert_int_equal(p->n_axes, 12);
    p = parse_ok(f, "model: x\nmesh: {a: 3037000499, b: 3037000499}\n"); /* just fits */
    p = parse_ok(f, "model: x\nmesh: {}\n");
    assert_int_equal(p->n_axes, 0);
}

static void test_training_keys(void **state) {
    Fix *f = *state;
    const Plan *p =
        parse_ok(f, HEAD "loss: {kind: cross_entropy, ignore_index: -7, label_smoothing: 0.125, "
                         "normalise: local_mean}\n"
                         "pass: train\n"
                         "optimizer: {name: adamw, lr: 3e-4, betas: [0.8, 0.95], eps: 1e-6, "
                         "weight_decay: 0.1, momentum: 0.5, clip: 2, steps: 5}\n"
                         "data_parallel: {mode: hsdp, axis: [dp, cp], unit: block, reshard: false, "
                         "reduce: avg, grad_order: tp_first, replicate: dp, shard: cp}\n"
                         "context_parallel: {mode: ulysses, order: striped, axis: cp}\n"
                         "recompute: block\nsave_gathered: false\nboundary: "
                         "per_module\nkv_replicate: never\nhardware: h100\ntrust: declared\n");
    assert_string_equal(p->loss_kind, "cross_entropy");
    assert_true(p->ignore_index == -7 && p->label_smoothing == 0.125);
    assert_string_equal(p->normalise, "local_mean");
    assert_int_equal(p->pass, PASS_TRAIN);
    assert_loc(p->pass_loc, 4, 7);
    assert_string_equal(p->optimizer.name, "adamw");
    assert_true(p->optimizer.lr == 3e-4 && p->optimizer.beta1 == 0.8 && p->optimizer.beta2 == 0.95);
    assert_true(p->optimizer.eps == 1e-6 && p->optimizer.weight_decay == 0.1 &&
                p->optimizer.momentum == 0.5);
    assert_true(p->optimizer.clip == 2 && p->optimizer.steps == 5);
    assert_string_equal(p->data_parallel.mode, "hsdp");
    assert_string_equal(p->data_parallel.axis, "dp*cp");
    assert_loc(p->data_parallel.axis_loc, 6, 35);
    assert_string_equal(p->data_parallel.unit, "block");
    assert_string_equal(p->data_parallel.reshard, "false");
    assert_string_equal(p->data_parallel.reduce, "avg");
    assert_string_equal(p->data_parallel.grad_order, "tp_first");
    assert_string_equal(p->data_parallel.replicate, "dp");
    assert_string_equal(p->data_parallel.shard, "cp");
    assert_string_equal(p->context_parallel.mode, "ulysses");
    assert_string_equal(p->context_parallel.order, "striped");
    assert_loc(p->context_parallel.order_loc, 7, 42);
    assert_int_equal(p->recompute, RECOMPUTE_BLOCK);
    assert_true(!p->save_gathered && p->per_module && p->trust == TRUST_DECLARED);
    assert_string_equal(p->kv_replicate, "never");
    assert_string_equal(p->hardware, "h100");
    assert_loc(p->hardware_loc, 12, 11);
    p = parse_ok(f, HEAD "loss: sum\noptimizer: adamw\ndata_parallel: fsdp\ncontext_parallel: "
                         "ring\npass: train\n"); /* shorthands */
    assert_string_equal(p->loss_kind, "sum");
    assert_loc(p->loss_loc, 3, 1);
    assert_string_equal(p->data_parallel.mode, "fsdp");
    assert_loc(p->data_parallel.mode_loc, 5, 16);
    assert_string_equal(p->context_parallel.mode, "ring");
    assert_int_equal(p->pass, PASS_TRAIN);
    assert_true(isnan(p->optimizer.weight_decay) && p->optimizer.lr == 1e-3);
    p = parse_ok(f, HEAD
                 "optimizer: {name: sgd, lr: 0, momentum: 0, betas: [0, 0.5]}\npass: train\nloss: "
                 "{label_smoothing: 0}\n");
    assert_true(p->optimizer.lr == 0 && p->optimizer.beta1 == 0 && p->optimizer.beta2 == 0.5);
    p = parse_ok(f, HEAD "pass: train\noptimizer: sgd\n");
    assert_true(isnan(p->optimizer.weight_decay));
    p = parse_ok(f, HEAD "pass: backward\n");
    assert_int_equal(p->pass, PASS_BACKWARD);
}

static void test_faults_and_expect_keys(void **state) {
    Fix *f = *state;
    const Plan *p =
        parse_ok(f, HEAD "gradients: {layers.*.attention_norm: none, norm: mean}\n"
                         "faults:\n- {at: layers.0.output, do: drop}\n- {at: s2, kind: "
                         "avg}\n- {at: s3, axis: cp}\n"
                         "- {at: s4, dim: -1}\n- {at: s5, offset: 2}\n- {at: s6, scale: 0.5}\n- "
                         "{at: s7, do: double}\n"
                         "expect:\n  equivalent: false\n  first_wrong: layers.0.o_proj\n  "
                         "diagnostics: [E0402, N0001]\n"
                         "  local_shapes: {x: [B/dp, S, D]}\n  memory_per_rank: 2 GiB\n"
                         "  collectives: {forward: {all_reduce: 3}, backward: {all_gather(dp*cp): "
                         "0}, loss: {}, gradients: {send: 1}, parameters: {recv(tp.1): 9}}\n");
    assert_int_equal(p->n_gradients, 2);
    assert_string_equal(p->gradients[0].key, "layers.*.attention_norm");
    assert_string_equal(p->gradients[0].text, "none");
    assert_string_equal(p->gradients[1].text, "mean");
    assert_int_equal(p->n_faults, 7);
    static const char *const doing[] = {"drop", "kind", "axis", "dim", "offset", "scale", "double"};
    for (int i = 0; i < 7; i++) assert_string_equal(p->faults[i].doing, doing[i]);
    assert_string_equal(p->faults[0].step, "layers.0.output");
    assert_loc(p->faults[0].loc, 5, 8);
    assert_string_equal(p->faults[1].kind, "avg");
    assert_string_equal(p->faults[2].axis, "cp");
    assert_int_equal(p->faults[3].dim, -1);
    assert_int_equal(p->faults[4].offset, 2);
    assert_true(p->faults[5].scale == 0.5);
    const Expect *e = &p->expect;
    assert_int_equal(e->equivalent, 0);
    assert_string_equal(e->first_wrong, "layers.0.o_proj");
    assert_loc(e->first_wrong_loc, 14, 16);
    assert_true(e->has_diagnostics && e->n_diagnostics == 2);
    assert_string_equal(e->diagnostics[1], "N0001");
    assert_string_equal(e->shapes[0].text, "[B/dp, S, D]"); /* the quotes may be left out */
    assert_true(e->memory_per_rank == (int64_t)2 << 30);
    assert_loc(e->memory_loc, 17, 20);
    assert_int_equal(e->n_collectives, 4);
    static const struct {
        const char *phase, *op, *axis;
        int count;
    } c[] = {{"forward", "all_reduce", NULL, 3},
             {"backward", "all_gather", "dp*cp", 0},
             {"gradients", "send", NULL, 1},
             {"parameters", "recv", "tp.1", 9}};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(phase_text(e->collectives[i].phase), c[i].phase);
        assert_string_equal(e->collectives[i].op, c[i].op);
        assert_true(c[i].axis ? strcmp(e->collectives[i].axis, c[i].axis) == 0
                              : !e->collectives[i].axis);
        assert_int_equal(e->collectives[i].count, c[i].count);
    }
    p = parse_ok(f, HEAD
                 "faults: {at: x, do: drop}\nexpect: {diagnostics: [], memory_per_rank: 1.5 kB}\n");
    assert_int_equal(p->n_faults, 1); /* one needs no list */
    assert_true(p->expect.has_diagnostics && p->expect.n_diagnostics == 0 &&
                p->expect.memory_per_rank == 1500);
}

static void test_style_fields(void **state) {
    Fix *f = *state;
    const Plan *p = parse_ok(
        f, HEAD "styles:\n  mine: {style: rowwise, bias: local, output: null}\n  bare: {weight: "
                "{tp: shard(g), cp: shard(x)}}\n"
                "plan:\n"
                "  a: {style: mine, axis: cp, input: [null, shard(-2), {tp: replicate, dp: null}], "
                "desired_input: varying_use, output: [partial], desired_output: {tp: "
                "contiguous(0)}, weight: shard(0), bias: partial, params: {q: shard(k), weight: "
                "replicate}, kwargs: {x: {input: shard(1), desired_input: replicate}}, "
                "use_local_output: false, boundary: per_module}\n"
                "  b: bare\n  c: {weight: {tp: shard(g)}, boundary: shared, bias: {tp: local}}\n");
    const Style *s = &p->styles[0];
    assert_int_equal(p->n_styles, 2);
    assert_string_equal(s->name, "mine");
    assert_string_equal(s->base, "rowwise");
    assert_loc(s->loc, 4, 3);
    assert_loc(s->base_loc, 4, 17);
    assert_true(s->bias_local);
    assert_bare(s->output.arg[0], RP_NONE, 0);
    assert_null(p->styles[1].base);
    assert_int_equal(p->styles[1].weight.on[1].place.letter, 'x');
    s = &p->lines[0].style;
    assert_string_equal(s->axis, "cp");
    assert_int_equal(s->input.n, 3);
    assert_bare(s->input.arg[0], RP_NONE, 0);
    assert_bare(s->input.arg[1], RP_SHARD, -2);
    assert_true(s->input.arg[2].mapping && s->input.arg[2].n == 2);
    assert_int_equal(s->input.arg[2].on[0].place.kind, RP_REPLICATE);
    assert_int_equal(s->input.arg[2].on[1].place.kind, RP_NONE);
    assert_int_equal(s->desired_input.n, 1);
    assert_bare(s->desired_input.arg[0], RP_VARYING, 0);
    assert_bare(s->output.arg[0], RP_PARTIAL, 0);
    assert_int_equal(s->desired_output.arg[0].on[0].place.kind, RP_CONTIGUOUS);
    assert_bare(s->weight, RP_REPLICATE, 0); /* params: {weight:} is the field */
    assert_true(s->bias.bare.kind == RP_PARTIAL && !s->bias_local && s->n_params == 1);
    assert_string_equal(s->params[0].name, "q");
    assert_int_equal(s->params[0].spec.bare.letter, 'k');
    assert_int_equal(s->n_kwargs, 1);
    assert_string_equal(s->kwargs[0].name, "x");
    assert_bare(s->kwargs[0].input, RP_SHARD, 1);
    assert_bare(s->kwargs[0].desired, RP_REPLICATE, 0);
    assert_true(s->use_local_output == 0 && s->per_module == 1);
    s = &p->lines[2].style;
    assert_null(s->name);
    assert_true(s->per_module == 0 && s->bias_local && s->weight.mapping);
}

/* ---- refusals: one mistake each, as line 3 behind HEAD ---- */

typedef struct {
    const char *text, *code;
    int line, col;
    const char *message, *hint; /* parts; NULL: any */
} Bad;

static const Bad bad_keys[] = {
    {"modle: x", "E0201", 3, 1, "unknown key 'modle'", "model"},
    {"data: {bacth: 2}", "E0201", 3, 8, "unknown key 'bacth' in 'data'", "batch"},
    {"data: {seq_len: 2}", "E0201", 3, 8, "'seq_len'", "sequence"},
    {"batch: 2", "E0201", 3, 1, "'batch'", "data: {batch: ...}"},
    {"layers.*.attention.wq: colwise", "E0201", 3, 1, "'layers.*.attention.wq'",
     "indented by two blanks"},
    {"zzzzzz: 2", "E0201", 3, 1, "'zzzzzz'", "known here: name model mesh"},
    {"data: {cut: {bath: dp}}", "E0201", 3, 14, "'bath' in 'cut'", "batch"},
    {"plan: {a: {style: colwise, input_layouts: shard(0)}}", "E0201", 3, 28,
     "'input_layouts' in 'a'", "input"},
    {"plan: {a: {stile: colwise}}", "E0201", 3, 12, "'stile'", "style"},
    {"plan: {a: {style: colwise, kwargs: {x: {inputt: shard(0)}}}}", "E0201", 3, 41,
     "'inputt' in 'x'", "input"},
    {"expect: {equivalant: true}", "E0201", 3, 10, "'equivalant'", "equivalent"},
    {"expect: {collectives: {forwards: {}}}", "E0201", 3, 24, "'forwards'", "forward"},
    {"expect: {collectives: {forward: {allgather: 1}}}", "E0201", 3, 34, "'allgather'",
     "all_gather"},
    {"expect: {collectives: {forward: {\"all_gather(tp\": 1}}}", "E0201", 3, 34, "OP(AXIS)", NULL},
    {"faults: [{at: x, doo: drop}]", "E0201", 3, 18, "'doo'", "do"},
    {"plan: {a: colwsie}", "E0203", 3, 11, "unknown style 'colwsie'", "colwise"},
    {"plan: {a: {style: RowwiseParalel}}", "E0203", 3, 19, "'RowwiseParalel'", "RowwiseParallel"},
    {"plan: {a: qqqqqqqq}", "E0203", 3, 11, "'qqqqqqqq'", "list styles"},
    {"styles: {s: {style: rowise}}", "E0203", 3, 21, "'rowise'", "rowwise"},
    {"styles: {mystyle: rowwise}\nplan: {a: mystile}", "E0203", 4, 11, "'mystile'", "mystyle"},
    {"styles: {s: t, t: s}", "E0203", 3, 13, "'s' starts from itself", NULL},
    {"styles: {s: {style: s}}\nplan: {a: s}", "E0203", 3, 21, "'s' starts from itself", NULL},
    {"styles: {r: t, t: s, s: t}\nplan: {a: r}", "E0203", 3, 19, "'t' starts from itself", NULL},
    {"plan: {a: mla_kv_a_proj}", "E0214", 3, 11, "'mla_kv_a_proj'", "k_cat"},
    {"moe: {dispatch: masked}", "E0208", 3, 17, "`ep`", "axis"},
    {"moe: {routing: sideways}", "E0206", 3, 16, "'sideways'", "balanced"},
    {"moe: {capacity_factor: 0}", "E0309", 3, 24, "capacity_factor", NULL},
    {"moe: {capacity_factor: .inf}", "E0301", 3, 24, "capacity_factor", NULL},
    {"moe: {priority: first}", "E0206", 3, 17, "'first'", "slot"},
    {"pipeline: {schedule: 1f1b}", "E0208", 3, 1, "no axis 'pp'", NULL},
    {"recipe: megatorn", "E0206", 3, 9, "'megatorn'", "megatron"},
    {"names: torchtitan\nrecipe: hf-llama", "E0215", 4, 9, "names of hf", "names"},
    {"names: hugging", "E0206", 3, 8, "'hugging' for 'names'",
     "one of: torchtitan torchtune hf megatron gguf"},
    {"pass: foward", "E0206", 3, 7, "'foward'", "forward"},
    {"data: {dtype: fp32}", "E0206", 3, 15, "'fp32'", "f32"},
    {"trust: rule", "E0206", 3, 8, NULL, "rules"},
    {"gradients: {a: average}", "E0206", 3, 16, "'average'", "sum mean none"},
    {"optimizer: adam", "E0206", 3, 12, "'adam'", "adamw"},
    {"expect: {diagnostics: [E0420]}", "E0206", 3, 24, "'E0420'", "E0"},
    {"faults: {do: drop}", "E0208", 3, 9, "`at`", NULL},
    {"faults: {at: x}", "E0208", 3, 9, "one of do", NULL},
    {"faults: {at: x, do: drop, axis: tp}", "E0215", 3, 9, "one edit", NULL},
    {"optimizer: {lr: 1}", "E0208", 3, 1, "`name`", NULL},
    {"data_parallel: hsdp", "E0208", 3, 1, "hsdp", NULL},
    {"groups: {sp: tq}", "E0204", 3, 14, "unknown axis or group 'tq'", "tp"},
    {"groups: {dp: tp}", "E0216", 3, 10, "name of an axis", NULL},
    {"groups: {a.b: tp}", "E0216", 3, 10, "'a.b'", NULL},
    {"groups: {a: tp*dp*tp}", "E0407", 3, 13, "'tp' is used twice", NULL},
    {"groups: {a: dp*tp, b: [cp, a, tp]}", "E0407", 3, 31, "'tp' is used twice in 'b'", NULL},
    {"groups: {a: tp*}", "E0204", 3, 13, "missing", NULL},
    {"groups: {b: c, c: tp}", "E0204", 3, 13, "'c'", NULL}, /* a group uses earlier ones only */
    {"plan: {a: {style: colwise, axis: pt}}", "E0204", 3, 34, "'pt'", "tp"},
    {"plan: {a: {style: colwise, axis: dp*tp}}", "E0301", 3, 34, "one axis or group", "groups"},
    {"plan: {a: {style: colwise, output: {tq: shard(0)}}}", "E0204", 3, 37, "'tq'", "tp"},
    {"groups: {sp: tp}\nplan: {a: {style: colwise, output: {sp: shard(0), tp: shard(1)}}}", "E0407",
     4, 51, "'tp' is used twice", NULL},
    {"data: {cut: {batch: tp*dp, sequence: [cp, dp]}}", "E0405", 3, 38, "'dp'", NULL},
    {"context_parallel: {axis: pc}", "E0204", 3, 26, "'pc'", "cp"},
    {"expect: {collectives: {forward: {all_gather(): 1}}}", "E0201", 3, 34, "OP(AXIS)", NULL},
    {"expect: {collectives: {forward: {all_gather(tp)x: 1}}}", "E0201", 3, 34, "OP(AXIS)", NULL},
    {"expect: {collectives: {forward: {all_gather(tp.x): 1}}}", "E0204", 3, 34, "'tp.x'", NULL},
    {"expect: {collectives: {forward: {all_gather(tp.10): 1}}}", "E0204", 3, 34, "'tp.10'", NULL},
    {"expect: {collectives: {forward: {all_gather(tq): 1}}}", "E0204", 3, 34, "'tq'", "tp"},
    {"faults: {at: x, axis: tq}", "E0204", 3, 23, "'tq'", "tp"},
};

static const Bad bad_values[] = {
    {"data: {batch: 1e3}", "E0302", 3, 15, "exponent", "write 1000"},
    {"data: {batch: 0x10}", "E0302", 3, 15, "hexadecimal", "write 16"},
    {"data: {batch: 0o17}", "E0302", 3, 15, "octal", "write 15"},
    {"data: {batch: 010}", "E0302", 3, 15, "leading zero", NULL},
    {"data: {batch: 1_000}", "E0302", 3, 15, "separators", "write 1000"},
    {"data: {batch: 6.5}", "E0302", 3, 15, "fraction", NULL},
    {"data: {batch: 6.0}", "E0302", 3, 15, "fraction", "write 6"},
    {"data: {batch: -3}", "E0302", 3, 15, "negative", NULL},
    {"data: {batch: +3}", "E0302", 3, 15, "sign", "write 3"},
    {"data: {batch: 0}", "E0302", 3, 15, "at least 1", NULL},
    {"data: {batch: 4k}", "E0302", 3, 15, "unit", NULL},
    {"data: {batch: .NaN}", "E0302", 3, 15, "whole number", NULL},
    {"data: {batch: -.5}", "E0302", 3, 15, "fraction", NULL},
    {"data: {batch: 12,000}", "E0201", 3, 18, NULL, NULL}, /* YAML's comma */
    {"data: {batch: 9_876_054_321}", "E0302", 3, 15, "separators", "write 9876054321"},
    {"data: {batch: .inf}", "E0302", 3, 15, "whole number", NULL},
    {"data: {batch: 9223372036854775808}", "E0302", 3, 15, "2^63-1", NULL},
    {"data: {batch: 99999999999999999999999999}", "E0302", 3, 15, "2^63-1", NULL},
    {"data: {batch: two}", "E0301", 3, 15, "'batch' must be a whole number, not 'two'", NULL},
    {"data: {batch: \"2\"}", "E0301", 3, 15, "the text '2'", "quotes"},
    {"data: {batch: true}", "E0301", 3, 15, "not 'true'", NULL},
    {"data: {batch: }", "E0301", 3, 15, "not nothing", NULL},
    {"data: {batch: [2]}", "E0301", 3, 15, "not a list", NULL},
    {"data: {documents: []}", "E0301", 3, 19, "not an empty list", NULL},
    {"data: {batch: {a: 2}}", "E0301", 3, 15, "not a mapping", NULL},
    {"data: [2]", "E0301", 3, 7, "'data' must be a mapping", NULL},
    {"data: {seed: -1}", "E0302", 3, 14, "negative", NULL},
    {"data: {input_gradient: yes}", "E0301", 3, 24, "true or false", NULL},
    {"data: {input_gradient: \"true\"}", "E0301", 3, 24, "true or false", NULL},
    {"data: {dtype: 32}", "E0206", 3, 15, "'32'", "f32"},
    {"name: [a]", "E0301", 3, 7, "text", NULL},
    {"name: ''", "E0301", 3, 7, "text", NULL},
    {"plan: [a]", "E0301", 3, 7, "mapping", NULL},
    {"plan: {a: [colwise]}", "E0301", 3, 11, "a style", NULL},
    {"plan: {a: }", "E0301", 3, 11, "nothing", NULL},
    {"plan: {a: {style: colwise, weight: partial}}", "E0206", 3, 36, "cannot be partial", NULL},
    {"plan: {a: {style: colwise, params: {w: {tp: local}}}}", "E0206", 3, 40, "cannot be local",
     NULL},
    {"plan: {a: {style: colwise, output: [shard(0), shard(1)]}}", "E0301", 3, 36, "one placement",
     "one result"},
    {"plan: {a: {style: colwise, weight: [shard(0)]}}", "E0301", 3, 36, "one placement", NULL},
    {"plan: {a: {style: colwise, use_local_output: 1}}", "E0301", 3, 46, "true or false", NULL},
    {"plan: {a: {style: colwise, boundary: each}}", "E0206", 3, 38, "'each'", "shared per_module"},
    {"plan: {a: {style: colwise, output: Shard(1)}}", "E0206", 3, 36, "'Shard(1)'", "shard(1)"},
    {"plan: {a: {style: colwise, output: shrad(-1)}}", "E0206", 3, 36, "'shrad(-1)'", "shard(-1)"},
    {"plan: {a: {style: colwise, output: Replicate()}}", "E0206", 3, 36, NULL, "replicate"},
    {"plan: {a: {style: colwise, output: shard}}", "E0206", 3, 36, "needs a dim", "shard(0)"},
    {"plan: {a: {style: colwise, output: shard()}}", "E0206", 3, 36, "needs a dim", NULL},
    {"plan: {a: {style: colwise, output: shard(1.5)}}", "E0206", 3, 36, "needs a dim", NULL},
    {"plan: {a: {style: colwise, output: shard(F)}}", "E0206", 3, 36, "needs a dim", NULL},
    {"plan: {a: {style: colwise, output: contiguous(f)}}", "E0206", 3, 36, "needs a dim",
     "contiguous(0)"},
    {"plan: {a: {style: colwise, output: shard(1) x}}", "E0206", 3, 36, "unknown placement", NULL},
    {"plan: {a: {style: colwise, output: replicate(1)}}", "E0206", 3, 36, "nothing in brackets",
     "replicate"},
    {"plan: {a: {style: colwise, output: qqqq}}", "E0206", 3, 36, "'qqqq'",
     "placements: replicate, shard(0)"},
    {"optimizer: {name: sgd, lr: -1}", "E0309", 3, 28, "0 or more", NULL},
    {"optimizer: {name: sgd, lr: fast}", "E0301", 3, 28, "a number", NULL},
    {"optimizer: {name: sgd, lr: 0x1p3}", "E0301", 3, 28, "a number", NULL},
    {"optimizer: {name: sgd, lr: .nan}", "E0301", 3, 28, "a number", NULL},
    {"optimizer: {name: sgd, clip: 0}", "E0309", 3, 30, "above 0", NULL},
    {"optimizer: {name: adamw, betas: [0.9, 1]}", "E0309", 3, 39, "below 1", NULL},
    {"optimizer: {name: adamw, betas: 0.9}", "E0301", 3, 33, "two numbers", NULL},
    {"expect: {memory_per_rank: 2 Gib}", "E0302", 3, 27, "'2 Gib'", "GiB"},
    {"expect: {memory_per_rank: 9 ZB}", "E0302", 3, 27, NULL, NULL},
    {"expect: {memory_per_rank: 9223372036854775808}", "E0302", 3, 27, NULL, NULL},
    {"expect: {collectives: {loss: {all_reduce: -1}}}", "E0302", 3, 43, "negative", NULL},
    {"expect: {local_shapes: {x: {a: b}}}", "E0301", 3, 28, "a shape", NULL},
    {"faults: drop", "E0301", 3, 9, "{at: STEP", NULL},
};

static const Bad bad_plans[] = {
    {"mesh: {tp: 2}", "E0208", 1, 1, "no `model`", "model: llama3-8b"},
    {"model: x", "E0208", 1, 1, "no `mesh`", "mesh: {tp: 2}"},
    /* a key that is misspelt is there */
    {"modle: x\nmesh: {tp: 2}", "E0201", 1, 1, "'modle'", "model"},
    {"model: x\nmehs: {tp: 2}", "E0201", 2, 1, "'mehs'", "mesh"},
    {"model: {}\nmesh: {tp: 2}", "E0208", 1, 1, "one of preset", NULL},
    {"- model", "E0301", 1, 1, "the plan", NULL},
    {"model", "E0301", 1, 1, "the plan", NULL},
    {"", "E0103", 1, 1, NULL, NULL},
    {"model: x\nmesh: {tp: 2, dp: 1.5}", "E0302", 2, 19, "'dp': 1.5", NULL},
    {"model: x\nmesh: {tp: 2, tp: 4}", "E0107", 2, 15, "'tp'", NULL},
    {"model: x\nmesh: {a b: 2}", "E0216", 2, 8, "'a b'", NULL},
    {"model: x\nmesh: {2d: 2}", "E0216", 2, 8, "'2d'", NULL},
    {"model: x\nmesh: [2, 4]", "E0301", 2, 7, "{dp: 2, tp: 4}", NULL},
    {"model: x\nmesh: {a: 3037000500, b: 3037000500}", "E0306", 2, 26, "2^63-1", NULL},
    {"model: x\nmesh: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, l: 1, m: "
     "2}",
     "E0703", 2, 80, "13 axes", NULL},
    {"model: {preset: x, hf_config: y}\nmesh: {tp: 2}", "E0215", 1, 31, "exclude", NULL},
    {"model: {kind: mlp}\nmesh: {tp: 2}", "E0208", 1, 1, "`sizes`", NULL},
    {"model: {kind: mlp, sizes: [3]}\nmesh: {tp: 2}", "E0301", 1, 27, "at least two", NULL},
    {"model: {kind: mlp, sizes: [3, 0]}\nmesh: {tp: 2}", "E0302", 1, 31, "'sizes'", NULL},
    {"model: {kind: mlp, sizes: [3, 4, 5], layer_names: [a]}\nmesh: {tp: 2}", "E0307", 1, 1,
     "1 layer name for 2 layers", NULL},
#define NAMED "model: {kind: mlp, sizes: [3, 4, 5], layer_names: "
    {NAMED "[a, a]}\nmesh: {tp: 2}", "E0216", 1, 55, "two layers are called 'a'", NULL},
    {NAMED "[a, input]}\nmesh: {tp: 2}", "E0216", 1, 55, "'input'", NULL},
    {NAMED "[act12, b]}\nmesh: {tp: 2}", "E0216", 1, 52, "'act12'", NULL},
    {NAMED "[a, grad]}\nmesh: {tp: 2}", "E0216", 1, 55, "'grad'", NULL},
    {NAMED "[a, grad.param]}\nmesh: {tp: 2}", "E0216", 1, 55, "'grad.param'", NULL},
    {NAMED "[loss, b]}\nmesh: {tp: 2}", "E0216", 1, 52, "'loss'", NULL},
    {NAMED "['', b]}\nmesh: {tp: 2}", "E0216", 1, 52, "layer 1 has no name", "[up, down]"},
    {NAMED "[a.product, a]}\nmesh: {tp: 2}", "E0216", 1, 52, "inside layer 'a'", NULL},
    {"model: {kind: mlp, sizes: [3, 4], preset: x}\nmesh: {tp: 2}", "E0215", 1, 1, "exclude", NULL},
    {"model: {kind: mlp, sizes: [3, 4], activation: reul}\nmesh: {tp: 2}", "E0206", 1, 47, "'reul'",
     "relu"},
    {"model: {preset: x, layers: 0}\nmesh: {tp: 2}", "E0302", 1, 28, "at least 1", NULL},
    {"model: {preset: x, layers: [3, 3]}\nmesh: {tp: 2}", "E0309", 1, 28, "empty", NULL},
    {"model: {preset: x, layers: [1, 2, 3]}\nmesh: {tp: 2}", "E0301", 1, 28, "'layers'", NULL},
    {"model: {preset: x, layers: 3000000000}\nmesh: {tp: 2}", "E0302", 1, 28, "too many", NULL},
    {"model: {preset: x, layers: every}\nmesh: {tp: 2}", "E0301", 1, 28, "'every'", NULL},
    {"model: {preset: x, parts: [blocks, haed]}\nmesh: {tp: 2}", "E0206", 1, 36, "'haed'", "head"},
    {"model: {preset: x, shrink: 2.5}\nmesh: {tp: 2}", "E0302", 1, 28, "fraction", NULL},
    {"model: {preset: x, weights: {file: a, prefx: b}}\nmesh: {tp: 2}", "E0201", 1, 39,
     "'prefx' in 'weights'", "prefix"},
    {"model: {config: c.json}\nmesh: {tp: 2}", "E0301", 1, 17, "mapping", "hf_config"},
    {"model: x\nmesh: {tp: 2}\ncontext_parallel: {mode: ring}", "E0208", 3, 1, "`axis`", NULL},
};

static void check_bad(const Bad *t, const char *head) {
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    const char *text = arena_printf(a, "%s%s\n", head, t->text);
    Plan *p = plan_parse(a, d, plan_text("dir/p.yaml", text));
    assert_non_null(p); /* always a plan */
    if (d->n != 1)
        fail_msg("'%s': %d diagnostics: %s; %s", t->text, d->n, d->n ? d->item[0].message : "",
                 d->n > 1 ? d->item[1].message : "");
    const Diag *g = &d->item[0];
    if (strcmp(g->code, t->code) != 0 || g->loc.line != t->line || g->loc.col != t->col ||
        g->severity != DIAG_ERROR)
        fail_msg("'%s': %s at %d:%d, '%s'", t->text, g->code, g->loc.line, g->loc.col, g->message);
    assert_string_equal(g->loc.file, "dir/p.yaml");
    if (t->message && !strstr(g->message, t->message))
        fail_msg("'%s': message '%s'", t->text, g->message);
    if (t->hint && (!g->hint || !strstr(g->hint, t->hint)))
        fail_msg("'%s': hint '%s'", t->text, g->hint ? g->hint : "none");
    arena_free(a);
}

static void test_bad_keys(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_keys / sizeof bad_keys[0]; i++) check_bad(&bad_keys[i], HEAD);
}
static void test_bad_values(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_values / sizeof bad_values[0]; i++)
        check_bad(&bad_values[i], HEAD);
}
static void test_bad_plans(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_plans / sizeof bad_plans[0]; i++)
        check_bad(&bad_plans[i], "");
}

static void test_all_mistakes_in_one_go(void **state) {
    Fix *f = *state;
    parse(f, "model: {preset: x, shrnk: 2}\ndata: {batch: two, dtype: f16, batch: 3}\nmesh: {tp: "
             "2}\nplan:\n  a: colwis\n"
             "  b: {style: rowwise, output: shard(x1), axis: dp}\nexpekt: {}\n");
    static const struct {
        int line;
        const char *code;
    } want[] = {{1, "E0201"}, {2, "E0107"}, {2, "E0301"}, {2, "E0206"},
                {5, "E0203"}, {6, "E0206"}, {6, "E0204"}, {7, "E0201"}};
    assert_int_equal(f->d->n, 8);
    for (size_t i = 0; i < 8; i++) {
        bool found = false;
        for (int j = 0; j < f->d->n; j++)
            found |= f->d->item[j].loc.line == want[i].line &&
                     strcmp(f->d->item[j].code, want[i].code) == 0;
        if (!found) fail_msg("no %s in line %d", want[i].code, want[i].line);
    }
    assert_int_equal(diags_exit(f->d), 3);
}

static void test_broken_mesh_causes_no_second_mistakes(void **state) {
    Fix *f = *state;
    parse(f, "model: x\nmesh: {t p: 2}\ngroups: {sp: tp}\nplan: {a: {style: colwise, axis: "
             "tp}}\ndata: {cut: {batch: dp}}\n");
    assert_int_equal(f->d->n, 1);
    assert_string_equal(f->d->item[0].code, "E0216");
    /* a wrong size does not make the axis unknown */
    f->d->n = 0;
    parse(f, "model: x\nmesh: {tp: x}\nplan: {a: {style: colwise, axis: tp}, b: {style: colwise, "
             "axis: tq}}\n");
    assert_int_equal(f->d->n, 2);
    assert_string_equal(f->d->item[1].code, "E0204");
}

/* ---- --set ---- */

static Plan *parse_set(Fix *f, const char *text, const char *key, const char *value) {
    PlanSet s = {key, value};
    return plan_parse(f->a, f->d, (PlanText){"dir/p.yaml", text, strlen(text), &s, 1});
}

static void test_set_overrides(void **state) {
    Fix *f = *state;
    Plan *p = parse_set(f, example_plan, "data.batch", "4");
    assert_int_equal(p->batch, 4);
    assert_int_equal(p->sequence, 64);
    p = parse_set(f, example_plan, "plan[layers.*.attention.w[qkv]]",
                  "{style: rowwise, output: shard(1)}");
    assert_int_equal(p->n_lines, 8);
    assert_string_equal(p->lines[2].style.name, "rowwise");
    assert_bare(p->lines[2].style.output.arg[0], RP_SHARD, 1);
    p = parse_set(f, example_plan, "plan[layers.*.attention.w[qkv]].output",
                  "replicate"); /* a style becomes a mapping */
    assert_string_equal(p->lines[2].style.name, "colwise");
    assert_bare(p->lines[2].style.output.arg[0], RP_REPLICATE, 0);
    p = parse_set(f, example_plan, "plan[norm]", "sequence_parallel");
    assert_int_equal(p->n_lines, 9);
    assert_string_equal(p->lines[8].pattern, "norm");
    assert_string_equal(p->lines[8].loc.file, "--set");
    p = parse_set(f, HEAD, "model.layers", "all"); /* the preset is kept */
    assert_string_equal(p->preset, "llama3-8b");
    assert_int_equal(p->layers_last, -1);
    p = parse_set(f, HEAD, "model", "qwen3-8b");
    assert_string_equal(p->preset, "qwen3-8b");
    p = parse_set(f, HEAD, "mesh.tp", "8");
    assert_int_equal(p->axes[2].size, 8);
    assert_int_equal(p->n_axes, 3);
    p = parse_set(f, HEAD, "mesh.pp", "5");
    assert_int_equal(p->n_axes, 4);
    p = parse_set(f, HEAD, "expect.local_shapes[layers.0.input]", "\"[B]\"");
    assert_string_equal(p->expect.shapes[0].text, "[B]");
    p = parse_set(f, example_plan, "expect", "");
    assert_false(p->expect.set);
    p = parse_set(f, HEAD, "plan[a][weight]", "shard(0)");
    assert_bare(p->lines[0].style.weight, RP_SHARD, 0);
    p = parse_set(f, HEAD, "loss", "sum");
    assert_string_equal(p->loss_kind, "sum");
    p = parse_set(f, HEAD, "faults", "[{at: x, do: drop}]");
    assert_int_equal(p->n_faults, 1);
    assert_int_equal(f->d->n, 0);
}

static void test_set_paths_are_of_the_command_line(void **state) {
    Fix *f = *state;
    char *cwd = getcwd(NULL, 0);
    Plan *p = parse_set(f, HEAD "data: {inputs: a.st}\n", "model.weights", "w.st");
    assert_string_equal(p->inputs, "a.st");
    assert_string_equal(p->weights, arena_printf(f->a, "%s/w.st", cwd));
    p = parse_set(f, HEAD, "data.inputs", "/abs");
    assert_string_equal(p->inputs, "/abs");
    free(cwd);
    assert_int_equal(f->d->n, 0);
}

static void test_set_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *key, *value, *code;
        int col;
        const char *message, *hint;
    } t[] = {
        {"data.bacth", "2", "E0212", 1, "unknown key 'bacth' in 'data'", "batch"},
        {"foo.bar", "2", "E0212", 1, "unknown key 'foo'", NULL},
        {"data.batch.x", "2", "E0212", 1, "'batch' is a single value", NULL},
        {"data..batch", "2", "E0212", 1, "not a key", NULL},
        {"", "2", "E0212", 1, "not a key", NULL},
        {"plan[a", "2", "E0212", 1, "not a key", "plan["},
        {"data.", "2", "E0212", 1, "not a key", NULL},
        {"plan[a]x", "2", "E0212", 1, "not a key", NULL},
        {"plan[a].", "2", "E0212", 1, "not a key", NULL},
        {"plan[]", "2", "E0212", 1, "not a key", NULL},
        {"data.batch", "x", "E0301", 12, "'x'", NULL},
        {"data.batch", "1e3", "E0302", 12, NULL, "write 1000"},
        {"plan[ä]", "colwsie", "E0203", 9, "'colwsie'", "colwise"},
        {"plan[a]", "{style: colwise, output: shrad(1)}", "E0206", 34, NULL, "shard(1)"},
        {"plan[a]", "{style: colwise", "E0104", 24, NULL, NULL},
        {"plan[a]", "{stile: colwise}", "E0212", 10, "'stile'", "style"},
        {"data.batch", "*x", "E0108", 12, NULL, NULL},
        {"mesh", "dp:2", "E0301", 6, "a mapping", "put a blank behind the colon: dp: 2"},
        {"mesh", "{dp:2}", "E0104", 7, "without a value", "colon: dp: 2"},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        Fix f;
        f.a = arena_new();
        f.d = diags_new(f.a);
        parse_set(&f, HEAD "data: {batch: 1}\n", t[i].key, t[i].value);
        if (f.d->n != 1)
            fail_msg("%s=%s: %d diagnostics, %s", t[i].key, t[i].value, f.d->n,
                     f.d->n ? f.d->item[0].message : "");
        const Diag *g = &f.d->item[0];
        assert_string_equal(g->loc.file, "--set");
        if (strcmp(g->code, t[i].code) != 0 || g->loc.line != 1 || g->loc.col != t[i].col)
            fail_msg("%s=%s: %s at %d:%d, %s", t[i].key, t[i].value, g->code, g->loc.line,
                     g->loc.col, g->message);
        if (t[i].message && !strstr(g->message, t[i].message))
            fail_msg("%s: %s", t[i].key, g->message);
        if (t[i].hint && (!g->hint || !strstr(g->hint, t[i].hint)))
            fail_msg("%s: hint %s", t[i].key, g->hint);
        if (strcmp(t[i].code, "E0212") == 0) assert_int_equal(diags_exit(f.d), 2);
        arena_free(f.a);
    }
}

static void test_hash(void **state) {
    Fix *f = *state;
    uint64_t h = parse(f, HEAD)->hash;
    assert_true(h == parse(f, HEAD)->hash);
    assert_true(h != parse(f, HEAD "\n")->hash);
    uint64_t s = parse_set(f, HEAD, "data.batch", "4")->hash;
    assert_true(s != h && s != parse_set(f, HEAD, "data.batch", "5")->hash &&
                s != parse_set(f, HEAD, "data.rows", "4")->hash);
    /* FNV-1a 64, so that other programs can compute it */
    assert_true(plan_parse(f->a, f->d, (PlanText){"x", "a", 1, NULL, 0})->hash ==
                0xaf63dc4c8601ec8cu);
}

/* ---- styles ---- */

static const Style *resolve(Fix *f, const char *plan_text, int line, const char *kind) {
    Plan *p = parse_ok(f, arena_printf(f->a, "%s%s", HEAD, plan_text));
    const Style *s = style_resolve_for(p, f->d, &p->lines[line], kind);
    assert_non_null(s);
    return s;
}

/* What a row says, in a line of text: enough to compare with the tables. */
static const char *spec_text(Arena *a, const RawSpec *s) {
    static const char *const word[] = {"null", "R", "S", "P", "I", "V", "C", "L"};
    if (!s->set) return "-";
    if (s->mapping) return "map";
    if (s->bare.kind != RP_SHARD) return word[s->bare.kind];
    return s->bare.letter ? arena_printf(a, "S(%c)", s->bare.letter)
                          : arena_printf(a, "S(%d)", s->bare.dim);
}
static const char *list_text(Arena *a, const RawList *l) {
    return l->set ? spec_text(a, &l->arg[0]) : "-";
}
static const char *style_text(Arena *a, const Style *s) {
    return arena_printf(a, "%s %s>%s w%s b%s %s>%s%s", s->name, list_text(a, &s->input),
                        list_text(a, &s->desired_input), spec_text(a, &s->weight),
                        spec_text(a, &s->bias), list_text(a, &s->output),
                        list_text(a, &s->desired_output),
                        s->use_local_output == 0 ? " dtensor" : "");
}

static void test_builtin_rows(void **state) {
    Fix *f = *state;
    static const struct {
        const char *name, *kind, *text;
    } t[] = {
        {"colwise", NULL, "colwise R>R wS(0) bS(0) S(-1)>-"},
        {"colwise", "linear", "colwise R>R wS(0) bS(0) S(-1)>-"},
        {"colwise", "embedding", "colwise R>R wS(1) b- S(-1)>-"},
        {"rowwise", NULL, "rowwise S(-1)>S(-1) wS(1) bR R>-"},
        {"rowwise", "embedding", "rowwise R>R wS(0) b- R>-"},
        {"sequence_parallel", "norm", "sequence_parallel S(1)>S(1) wR bR S(1)>- dtensor"},
        {"prepare_module_input", NULL, "prepare_module_input ->- w- b- ->-"},
        {"PrepareModuleInputOutput", NULL, "prepare_module_input_output ->- w- b- ->-"},
        {"replicate", NULL, "replicate R>R wR bR R>-"},
        {"NoParallel", NULL, "replicate R>R wR bR R>-"},
        {"ColwiseParallel", "embedding", "colwise R>R wS(1) b- S(-1)>-"},
        {"colwise_rep", NULL, "colwise_gather_output R>R wS(0) bS(0) R>-"},
        {"rowwise_rep", NULL, "rowwise_split_input R>S(-1) wS(1) bR R>-"},
        {"packed_colwise", NULL, "packed_colwise R>R wS(f) bS(f) S(f)>-"},
        {"packed_rowwise", NULL, "packed_rowwise S(f)>S(f) wS(f) bR R>-"},
        {"gather", NULL, "all_reduce ->- w- b- P>R"},
        {"replicated_with_grad_allreduce", NULL, "replicated_with_grad_allreduce ->- wR bR ->-"},
        {"embedding_rowwise", NULL, "embedding_rowwise R>R wS(0) b- R>-"},
        {"loss_parallel", NULL, "loss_parallel S(-1)>S(-1) w- b- R>-"},
        {"local_colwise", NULL, "local_colwise ->- wS(0) bS(0) L>-"},
        {"local_rowwise", NULL, "local_rowwise ->- wS(1) bL L>-"},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        const StyleRow *row = style_builtin_for(t[i].name, t[i].kind);
        assert_non_null(row);
        assert_string_equal(style_text(f->a, &row->style), t[i].text);
        assert_true(strlen(row->what) > 10);
    }
    assert_true(style_builtin("local_rowwise")->style.bias_local &&
                !style_builtin("rowwise")->style.bias_local);
    assert_null(style_builtin("Colwise"));
    assert_null(style_builtin("Parallel"));
    assert_null(style_builtin(""));
    int n;
    const StyleRow *rows = style_rows(&n);
    for (int i = 0; i < n; i++) {
        assert_non_null(style_builtin_for(rows[i].style.name, rows[i].module_kind));
        assert_ptr_equal(style_builtin_for(rows[i].style.name, rows[i].module_kind), &rows[i]);
        assert_int_equal(rows[i].style.per_module, -1);
    }
}

static void test_resolve(void **state) {
    Fix *f = *state;
    const char *plan =
        "styles:\n  mine: {style: RowwiseParallel, output: shard(1), params: {a: shard(0), b: "
        "shard(0)}}\n"
        "  yours: {style: mine, bias: local, params: {b: shard(1), c: replicate}, kwargs: {x: "
        "{input: partial}}}\n"
        "  free: {weight: shard(k)}\n"
        "plan:\n  l0: {style: colwise, input: shard(1), output: replicate, axis: cp}\n  l1: mine\n "
        " l2: {style: yours, weight: shard(0), boundary: per_module}\n"
        "  l3: {weight: {tp: shard(g)}}\n  l4: free\n  l5: rowwise\n";
    const Style *s = resolve(f, plan, 0, NULL);
    assert_string_equal(style_text(f->a, s),
                        "colwise S(1)>R wS(0) bS(0) R>-"); /* the label changes, the need stays */
    assert_string_equal(s->axis, "cp");
    assert_loc(s->loc, 8, 15);
    s = resolve(f, plan, 1, NULL);
    assert_string_equal(style_text(f->a, s), "rowwise S(-1)>S(-1) wS(1) bR S(1)>-");
    assert_int_equal(s->n_params, 2);
    s = resolve(f, plan, 1, "embedding");
    assert_string_equal(style_text(f->a, s), "rowwise R>R wS(0) b- S(1)>-");
    s = resolve(f, plan, 2, NULL);
    assert_string_equal(style_text(f->a, s), "rowwise S(-1)>S(-1) wS(0) bL S(1)>-");
    assert_true(s->bias_local && s->per_module == 1 && s->n_kwargs == 1);
    assert_int_equal(s->n_params, 3); /* a, then the better b, then c */
    assert_string_equal(s->params[0].name, "a");
    assert_string_equal(s->params[1].name, "b");
    assert_int_equal(s->params[1].spec.bare.dim, 1);
    s = resolve(f, plan, 3, NULL);
    assert_string_equal(style_text(f->a, s), "custom ->- wmap b- ->-");
    s = resolve(f, plan, 4, "embedding");
    assert_string_equal(style_text(f->a, s), "free ->- wS(k) b- ->-");
    s = resolve(f, plan, 5, NULL);
    assert_true(s->axis == NULL && s->per_module == -1 && s->use_local_output == -1);
    /* a built-in row is never changed by laying a line over a copy of it */
    assert_string_equal(style_text(f->a, &style_builtin("rowwise")->style),
                        "rowwise S(-1)>S(-1) wS(1) bR R>-");
}

static void test_later_fields_win(void **state) {
    Fix *f = *state;
    const char *plan = "styles: {s: {style: sequence_parallel, boundary: per_module}}\n"
                       "plan: {a: {style: s, boundary: shared, use_local_output: true}, b: s, c: "
                       "sequence_parallel}\n";
    const Style *s = resolve(f, plan, 0, NULL);
    assert_true(s->per_module == 0 && s->use_local_output == 1);
    s = resolve(f, plan, 1, NULL);
    assert_true(s->per_module == 1 && s->use_local_output == 0);
    s = resolve(f, plan, 2, NULL);
    assert_true(s->per_module == -1 && s->use_local_output == 0);
}

static void test_wrong_fields_are_not_kept(void **state) {
    Fix *f = *state;
    Plan *p = parse(f, HEAD "plan: {a: {style: colwise, params: {q: partial, r: shard(0)}, output: "
                            "shrad(0), weight: x}}\n"
                            "data: {batch: -1, sequence: 8}\ngradients: {a: sum, b: x, c: none}\n");
    assert_int_equal(diags_errors(f->d), 5);
    const Style *s = &p->lines[0].style;
    assert_int_equal(s->n_params, 1);
    assert_string_equal(s->params[0].name, "r");
    assert_false(s->output.set || s->weight.set);
    assert_true(p->batch == -1 && p->sequence == 8);
    assert_int_equal(p->n_gradients, 2);
    assert_string_equal(p->gradients[1].key, "c");
}

static void test_own_style_of_a_builtin_name(void **state) {
    Fix *f = *state;
    Plan *p = parse(f, HEAD
                    "styles: {colwise: {style: colwise, output: replicate}}\nplan: {a: colwise}\n");
    assert_int_equal(f->d->n, 1);
    assert_string_equal(f->d->item[0].code, "N0009");
    assert_int_equal(diags_errors(f->d), 0);
    assert_string_equal(style_text(f->a, style_resolve(p, f->d, &p->lines[0])),
                        "colwise R>R wS(0) bS(0) R>-");
}

static void test_recipes(void **state) {
    Fix *f = *state;
    int n;
    const RecipeRow *row = plan_recipes(&n);
    for (int i = 0; i < n; i++) {
        if (!row[i].lines) continue;
        Plan *p = parse_ok(f, arena_printf(f->a, "%srecipe: %s\n", HEAD, row[i].name));
        assert_true(p->n_lines >= 7);
        assert_int_equal(p->names, row[i].names);
        for (int j = 0; j < p->n_lines; j++) assert_true(p->lines[j].from_recipe);
    }
    Plan *p = parse_ok(
        f, HEAD
        "recipe: torchtitan-llama3\nnames: torchtitan\nplan:\n  layers.*.attention.wo: rowwise\n");
    assert_string_equal(p->recipe, "torchtitan-llama3");
    assert_loc(p->recipe_loc, 3, 9);
    assert_string_equal(p->lines[0].pattern, "tok_embeddings"); /* the recipe's lines come first */
    assert_string_equal(p->lines[0].loc.file, "recipe torchtitan-llama3");
    assert_int_equal(p->lines[1].loc.line, 2);
    const PlanLine *last = &p->lines[p->n_lines - 1];
    assert_string_equal(last->pattern, "layers.*.attention.wo");
    assert_false(last->from_recipe);
    assert_loc(last->loc, 6, 3);
    for (int i = 0; i < p->n_lines; i++)
        if (strcmp(p->lines[i].pattern, "output") == 0)
            assert_string_equal(style_text(f->a, style_resolve(p, f->d, &p->lines[i])),
                                "colwise S(1)>R wS(0) bS(0) S(-1)>- dtensor");
    p = parse_ok(f, HEAD "recipe: hf-llama\n");
    assert_string_equal(p->lines[0].style.name, "embedding_rowwise");
    assert_string_equal(p->lines[1].style.name, "colwise");
    assert_int_equal(p->lines[1].style.per_module, 1);
}

/* ---- placements and patterns ---- */

static void test_placements(void **state) {
    Fix *f = *state;
    static const struct {
        const char *text;
        RawKind kind;
        int dim;
        char letter;
    } t[] = {{"replicate", RP_REPLICATE, 0, 0}, {"shard(0)", RP_SHARD, 0, 0},
             {"shard(-3)", RP_SHARD, -3, 0},    {"shard(f)", RP_SHARD, 0, 'f'},
             {"shard(a)", RP_SHARD, 0, 'a'},    {"shard(z)", RP_SHARD, 0, 'z'},
             {"partial", RP_PARTIAL, 0, 0},     {"invariant", RP_INVARIANT, 0, 0},
             {"varying_use", RP_VARYING, 0, 0}, {"contiguous(2)", RP_CONTIGUOUS, 2, 0},
             {"local", RP_LOCAL, 0, 0},         {"null", RP_NONE, 0, 0}};
    Loc at = {"x", 3, 4};
    RawPlace p;
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        assert_true(plan_parse_place(f->a, f->d, t[i].text, at, &p));
        assert_true(p.kind == t[i].kind && p.dim == t[i].dim && p.letter == t[i].letter &&
                    p.loc.col == 4);
    }
    assert_int_equal(f->d->n, 0);
    static const char *const bad[] = {"shard(",    "shard)",     "(0)",        "",
                                      "shard(0)x", "shard(--1)", "shard(-)",   "shard(99999)",
                                      "shard(0",   "SHARD(0)",   "shard((0))", "local()"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        f->d->n = 0;
        if (plan_parse_place(f->a, f->d, bad[i], at, &p)) fail_msg("'%s' was accepted", bad[i]);
        assert_int_equal(f->d->n, 1);
        assert_string_equal(f->d->item[0].code, "E0206");
    }
}

static void test_patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool match;
    } t[] = {
        {"layers.*.attention.w[qkv]", "layers.0.attention.wq", true},
        {"layers.*.attention.w[qkv]", "layers.11.attention.wv", true},
        {"layers.*.attention.w[qkv]", "layers.0.attention.wo", false},
        {"layers.*.attention.w[qkv]", "layers.0.attention", false},
        {"layers.*.attention", "layers.0.attention.wq", false},
        {"*", "a.b", false},
        {"*.*", "a.b", true},
        {"*", "", true},
        {"", "", true},
        {"a", "", false},
        {"a.", "a.", true},
        {"a.", "a", false},
        {"layers.?.x", "layers.1.x", true},
        {"layers.?.x", "layers.10.x", false},
        {"w[!qk]", "wv", true},
        {"w[!qk]", "wq", false},
        {"w[^qk]", "wk", false},
        {"w[0-3]", "w2", true},
        {"w[0-3]", "w4", false},
        {"w[]x]", "w]", true},
        {"w[", "w[", true},
        {"w[a", "w[a", true},
        {"w[[:digit:]]", "w7", true},
        {"w[[:digit:]]", "wx", false},
        {"w[[:digit:]a]*", "wab", true},
        {"a\\*", "a*", true},
        {"a\\*", "ab", false},
        {"*_proj", "q_proj", true},
        {"*_proj", "proj", false},
        {"q*j", "q_proj", true},
        {"*a*b*c*", "xxaxxbxxc", true},
        {"*a*b*c*", "xxaxxcxxb", false},
        {"w[a-]", "w-", true},
        {"w[a\\]]", "w]", true},
        {"[q-k]", "m", false},
        {"**", "abc", true},
        {"a*", "a", true},
        {"W*", "w", false},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
        if (plan_match(t[i].pattern, t[i].path) != t[i].match)
            fail_msg("'%s' and '%s'", t[i].pattern, t[i].path);
}

static void test_patterns_take_no_exponential_time(void **state) {
    (void)state;
    char pattern[4001], path[4001];
    for (int i = 0; i < 4000; i++) pattern[i] = i % 2 ? 'a' : '*', path[i] = 'a';
    pattern[3999] = 'b';
    pattern[4000] = path[4000] = 0;
    for (Timed t = within(100); timed(&t);) assert_false(plan_match(pattern, path));
    memset(pattern, '[', 4000);
    for (Timed t = within(100); timed(&t);) assert_false(plan_match(pattern, path));
}

static void test_pattern_order(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int order;
    } t[] = {{"layers.0.wq", "layers.*.wq", 1},
             {"layers.*.wq", "layers.*.w?", 1},
             {"layers.*.w[qkv]", "layers.*.*", 0},
             {"layers.*.*", "layers.*.wq", -1},
             {"a", "b", 0},
             {"a\\*", "a*", 1},
             {"a[", "a", 0},
             {"*", "a[bc]d[ef]", 1}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        assert_int_equal(plan_pattern_order(t[i].a, t[i].b), t[i].order);
        assert_int_equal(plan_pattern_order(t[i].b, t[i].a), -t[i].order);
    }
}

/* Plans can be hostile too where YAML is not. */
static void test_large_plans_are_fast(void **state) {
    Fix *f = *state;
    Str s = str_new(f->a);
    str_add(&s, HEAD "plan:\n");
    for (int i = 0; i < 40000; i++) str_addf(&s, "  a%d: colwsie%d\n", i, i);
    for (Timed t = within(500); timed(&t);) {
        f->d->n = 0;
        parse(f, s.s);
    }
    assert_true(diags_errors(f->d) >= 50);
    /* styles that start from one another, and many lines that name the last */
    Str c = str_new(f->a);
    str_add(&c, HEAD "styles:\n  s15: colwise\n");
    for (int i = 0; i < 15; i++) str_addf(&c, "  s%d: s%d\n", i, i + 1);
    for (int i = 16; i < 500; i++) str_addf(&c, "  x%d: s0\n", i);
    char *one_more = arena_printf(f->a, "%s  s: x16\n", c.s);
    str_add(&c, "plan:\n");
    for (int i = 0; i < 40000; i++) str_addf(&c, "  a%d: s0\n", i);
    for (Timed t = within(500); timed(&t);) {
        f->d->n = 0;
        parse(f, c.s);
    }
    assert_string_equal(f->d->item[0].message,
                        "more than 16 styles start from one another, up to 's15'");
    parse(f, one_more);
    assert_string_equal(f->d->item[f->d->n - 1].code, "E0703");
    f->d->n = 0;
    Str u = str_new(f->a);
    str_add(&u, HEAD "styles:\n");
    for (int i = 0; i < 600; i++) str_addf(&u, "  s%d: s%d\n", i, i + 1);
    parse(f, u.s);
    assert_string_equal(f->d->item[0].code, "E0703");
    assert_int_equal(diags_exit(f->d), 5);
}

int main(void) {
#define FIX(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        FIX(test_example_sizes_and_mesh),
        FIX(test_example_lines_and_expect),
        FIX(test_defaults),
        FIX(test_model_keys),
        FIX(test_data_keys),
        FIX(test_training_keys),
        FIX(test_faults_and_expect_keys),
        FIX(test_style_fields),
        cmocka_unit_test(test_bad_keys),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_bad_plans),
        FIX(test_all_mistakes_in_one_go),
        FIX(test_broken_mesh_causes_no_second_mistakes),
        FIX(test_set_overrides),
        FIX(test_set_paths_are_of_the_command_line),
        cmocka_unit_test(test_set_mistakes),
        FIX(test_hash),
        FIX(test_builtin_rows),
        FIX(test_resolve),
        FIX(test_later_fields_win),
        FIX(test_wrong_fields_are_not_kept),
        FIX(test_own_style_of_a_builtin_name),
        FIX(test_recipes),
        FIX(test_placements),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_patterns_take_no_exponential_time),
        cmocka_unit_test(test_pattern_order),
        FIX(test_large_plans_are_fast),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
