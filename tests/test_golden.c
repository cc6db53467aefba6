/* Other people's models: every dense case of golden/hf (Hugging Face transformers in float64)
 * against the unsharded reference, and every plan family (TP, TP + SP, each with dp, cp, zigzag and
 * all of them) on those weights, executed and checked rank by rank in f64 and f32. Together they
 * close the chain framework = reference = every rank. Prints the table of case x family. */
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    const char *name;
    int layers;
    bool qk_norm;
    int tp[4]; /* 0 ends */
} Case;
static const Case cases[] = {
    {"llama-gqa", 2, false, {2, 4, 8}},    {"llama-wide", 1, false, {2, 4, 8}},
    {"llama31-rope", 2, false, {2, 4, 8}}, {"qwen2", 2, false, {2, 4, 8}},
    {"llama-bias", 2, false, {2, 6}},      {"qwen3", 2, true, {2, 6}},
    {"llama-odd", 1, false, {3}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* ---- the unsharded reference against the framework ---- */
static const char *const block_values[] = {
    "input_norm", "q_proj",   "k_proj", "v_proj",  "q_rope",   "k_rope", "attn_context",   "o_proj",
    "resid_attn", "mlp.gate", "mlp.up", "mlp.act", "mlp.down", "output", "post_attn_norm",
};
static const char *golden_plan(Arena *a, const char *name, const char *config, const char *parts,
                               const char *dtype) {
    return arena_printf(a,
                        "model: {hf_config: %s, weights: %s, layers: all, parts: [%s]}\n"
                        "data: {dtype: %s, inputs: %s}\nnames: hf\n",
                        golden_path(a, "hf/%s/%s", name, config),
                        golden_path(a, "hf/%s/model.safetensors", name), parts, dtype,
                        golden_path(a, "hf/%s/values.safetensors", name));
}
/* Values of the file that a forward run is not held against: gradients, and what is no value of
 * this program. */
static bool excused(const char *name) {
    static const char *const never[] = {"rope.inv_freq", "rope.attention_scaling", "loss_sum"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (!strcmp(name, never[i])) return true;
    return !strncmp(name, "grad.", 5);
}
static const struct AgainstRow *row_of(const PlanRun *r, const char *name) {
    for (int i = 0; i < r->rep.n_against; i++)
        if (!strcmp(r->rep.against[i].name, name) && !r->rep.against[i].missing_there)
            return &r->rep.against[i];
    return NULL;
}
/* tests/golden leaves out what the next value judges as well: a sum, a factor, what is rotated. */
static bool only_complete(const char *value) {
    static const char *const names[] = {"mlp.gate",   "mlp.up",       "mlp.down",      "resid_attn",
                                        "q_proj",     "k_proj",       "q_rope",        "k_rope",
                                        "input_norm", "attn_context", "post_attn_norm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!golden_complete() && !strcmp(value, names[i])) return true;
    return false;
}
static PlanRun against(Arena *a, const char *text, const char *file) {
    PipelineOptions o = {.execute = true, .threads = 1, .against = file};
    return plan_run_with(a, "golden.yaml", text, &o);
}
/* Every value of the blocks is in the file, is found in the model, and is equal to 1e-11 of its
 * largest. */
static void hold_blocks(Arena *a, const PlanRun *r, const Case *c, bool whole, double *worst) {
    for (int l = 0; l < c->layers; l++)
        for (size_t i = 0; i < sizeof block_values / sizeof *block_values; i++) {
            const char *name = arena_printf(a, "layers.%d.%s", l, block_values[i]);
            const struct AgainstRow *x = row_of(r, name);
            if (!x && only_complete(block_values[i])) continue;
            if (!x || x->missing_here || !(x->max_rel <= 1e-11) || !x->count)
                fail_msg("%s: %s differs or is missing", c->name, name);
        }
    for (int l = 0; c->qk_norm && l < c->layers; l++) {
        assert_true(row_of(r, arena_printf(a, "layers.%d.q_norm", l))->ok);
        assert_true(row_of(r, arena_printf(a, "layers.%d.k_norm", l))->ok);
    }
    for (int i = 0; i < r->rep.n_against; i++) {
        const struct AgainstRow *x = &r->rep.against[i];
        if (x->missing_there || excused(x->name) || (!whole && x->missing_here)) continue;
        if (x->missing_here || !x->ok)
            fail_msg("%s: %s %s (%.3g)", c->name, x->name,
                     x->missing_here ? "has no name here" : "differs", x->max_rel);
        if (x->max_rel > *worst) *worst = x->max_rel;
    }
}
static void test_reference(void **state) {
    (void)state;
    static const char *const configs[] = {"config.json", "config_v4.json"};
    for (int c = 0; c < N_CASES; c++)
        for (int g = 0; g < 2; g++) {
            Arena *a = arena_new();
            const char *file = golden_path(a, "hf/%s/values.safetensors", cases[c].name);
            const char *text =
                arena_printf(a, "%smesh: {tp: 1}\n",
                             golden_plan(a, cases[c].name, configs[g],
                                         "embedding, blocks, norm, head, loss", "f64"));
            PlanRun r = against(a, text, file);
            if (!r.t || r.rep.exit) run_print(&r);
            assert_non_null(r.t);
            run_must_be(&r, "equivalent");
            assert_int_equal(r.rep.exit, 0);
            double worst = 0;
            hold_blocks(a, &r, &cases[c], true, &worst);
            static const char *const selected[] = {"final_norm", "loss_per_token", "loss_mean"};
            static const char *const complete[] = {"embed", "logits", "layers.0.attn_probs"};
            for (int k = 0; k < 3; k++) {
                assert_true(row_of(&r, selected[k]) && row_of(&r, selected[k])->ok);
                if (golden_complete())
                    assert_true(row_of(&r, complete[k]) && row_of(&r, complete[k])->ok);
            }
            printf("%-13s %-15s worst %.2g of the largest\n", cases[c].name, configs[g], worst);
            arena_free(a);
        }
}
/* The comparison can fail: one number of the file moved by 1e-9 of the largest is found, under its
 * name. */
static void test_against_fails(void **state) {
    (void)state;
    Arena *a = arena_new();
    SafeTensors *st = golden_tensors(a, golden_path(a, "hf/qwen3/values.safetensors"));
    static const char *const names[] = {"layers.1.v_proj", "layers.0.o_proj"};
    NewTensor t[2];
    for (int i = 0; i < 2; i++) {
        int64_t n;
        const StTensor *s = st_find(st, names[i]);
        const double *x = tensor_numbers(a, st, names[i], &n);
        double *y = arena_memdup(a, x, (size_t)n * 8), top = 0;
        for (int64_t k = 0; k < n; k++) top = fmax(top, fabs(x[k]));
        if (i == 1) y[n - 3] += 1e-9 * top;
        t[i] = (NewTensor){.name = names[i], .nd = s->nd, .x = y};
        for (int d = 0; d < s->nd; d++) t[i].shape[d] = s->shape[d];
    }
    const char *text = arena_printf(a, "%smesh: {tp: 1}\n",
                                    golden_plan(a, "qwen3", "config.json", "blocks", "f64"));
    PlanRun r = against(a, text, write_tensors(a, "moved.safetensors", t, 2));
    assert_true(row_of(&r, "layers.1.v_proj")->ok);
    assert_false(row_of(&r, "layers.0.o_proj")->ok);
    assert_true(fabs(row_of(&r, "layers.0.o_proj")->max_rel - 1e-9) < 1e-11);
    assert_true(run_has(&r, "E0506"));
    assert_int_equal(diags_exit(r.d), 1);
    st_close(st);
    arena_free(a);
}

/* ---- plan families ---- */
static const char tp_lines[] =
    "  model.layers.*.self_attn.[qkv]_proj: colwise\n"
    "  model.layers.*.mlp.gate_proj: colwise\n  model.layers.*.mlp.up_proj: colwise\n";
static const char plain_lines[] =
    "  model.layers.*.self_attn.o_proj: rowwise\n  model.layers.*.mlp.down_proj: rowwise\n";
static const char sp_lines[] =
    "  model.layers.*.input_layernorm: sequence_parallel\n"
    "  model.layers.*.post_attention_layernorm: sequence_parallel\n"
    "  model.layers.*.self_attn: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "  model.layers.*.mlp: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "  model.layers.*.self_attn.o_proj: {style: rowwise, output: shard(1)}\n"
    "  model.layers.*.mlp.down_proj: {style: rowwise, output: shard(1)}\n";
static const char norm_lines[] =
    "  model.layers.*.self_attn.[qk]_norm: replicated_with_grad_allreduce\n";

typedef struct {
    const char *name, *mesh, *order; /* mesh: %d is tp */
    int cp;
    bool fixed_tp2;
} Family;
static const Family families[] = {
    {"plain", "{tp: %d}", NULL, 1, false},
    {"dp2", "{dp: 2, tp: %d}", NULL, 1, false},
    {"cp2", "{cp: 2, tp: %d}", "contiguous", 2, false},
    {"cp2 zigzag", "{cp: 2, tp: %d}", "zigzag", 2, false},
    {"dp2 cp2 tp2", "{dp: 2, cp: 2, tp: %d}", "contiguous", 2, true},
    {"the same zigzag", "{dp: 2, cp: 2, tp: %d}", "zigzag", 2, true},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

/* Where a size forbids a plan: the code that has to be said instead. */
static const struct {
    const char *name;
    int tp;
    bool zigzag;
    const char *code;
} forbidden[] = {
    {"qwen2", 0, true, "E0304"},      /* S = 30 is no multiple of 2 cp = 4 */
    {"llama-odd", 2, false, "E0305"}, /* K = 3 KV heads on 2 ranks */
    {"llama-odd", 2, true, "E0305"},
};
static const char *expected_code(const Case *c, const Family *f, int tp) {
    bool zigzag = f->order && !strcmp(f->order, "zigzag");
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (!strcmp(forbidden[i].name, c->name) && (!forbidden[i].tp || forbidden[i].tp == tp) &&
            forbidden[i].zigzag == zigzag)
            return forbidden[i].code;
    return NULL;
}
static const char *family_text(Arena *a, const Case *c, const Family *f, bool sp, int tp,
                               const char *dtype) {
    Str s = str_new(a);
    str_add(&s, golden_plan(a, c->name, "config.json", "blocks", dtype));
    str_add(&s, "mesh: ");
    str_addf(&s, "%.*s%d}\n", (int)(strlen(f->mesh) - 3), f->mesh, tp);
    if (f->order) str_addf(&s, "context_parallel: {mode: all_gather, order: %s}\n", f->order);
    str_addf(&s, "plan:\n%s%s%s", tp_lines, sp ? sp_lines : plain_lines,
             c->qk_norm ? norm_lines : "");
    return s.s;
}
/* Collectives of hand-written systems, per layer: 2 AR, or 2 AG 2 RS; context parallel adds 2
 * AG(cp); dp nothing. */
static void hold_counts(const PlanRun *r, const Case *c, const Family *f, bool sp) {
    int64_t L = c->layers, cp = f->cp > 1 ? 2 * L : 0;
    assert_int_equal(count_collectives(r->t, "forward", "all_reduce", "tp"), sp ? 0 : 2 * L);
    assert_int_equal(count_collectives(r->t, "forward", "all_gather", "tp"), sp ? 2 * L : 0);
    assert_int_equal(count_collectives(r->t, "forward", "reduce_scatter", "tp"), sp ? 2 * L : 0);
    assert_int_equal(count_collectives(r->t, "forward", "all_gather", "cp"), cp);
    assert_int_equal(r->t->n_collectives, (sp ? 4 : 2) * L + cp);
}
typedef struct {
    int runs, refused;
    double worst; /* share of its bound that the worst value used */
} Tally;
static void run_family(const Case *c, const Family *f, bool sp, int tp, const char *dtype,
                       Tally *tally) {
    Arena *a = arena_new();
    const char *text = family_text(a, c, f, sp, tp, dtype), *code = expected_code(c, f, tp);
    bool f64 = !strcmp(dtype, "f64");
    PipelineOptions o = {
        .execute = true,
        .threads = 1,
        .against = f64 && f->cp == 1 ? golden_path(a, "hf/%s/values.safetensors", c->name) : NULL};
    PlanRun r = plan_run_with(a, "golden.yaml", text, &o);
    bool as_expected =
        code ? run_has(&r, code) && r.rep.exit == 1 : run_is(&r, "equivalent") && !r.rep.exit;
    if (!as_expected) {
        fprintf(stderr, "%s %s %s tp=%d %s\n%s\n", c->name, sp ? "TP+SP" : "TP", f->name, tp, dtype,
                text);
        run_print(&r);
        fail_msg("%s %s %s tp=%d %s: %s expected", c->name, sp ? "TP+SP" : "TP", f->name, tp, dtype,
                 code ? code : "equivalent");
    }
    tally->refused += code != NULL;
    tally->runs++;
    if (!code) {
        hold_counts(&r, c, f, sp);
        assert_true(r.t->n_pass > 20 * c->layers && !r.t->n_fail);
        if (r.t->worst_used > tally->worst) tally->worst = r.t->worst_used;
        if (f64) assert_true(r.rep.end_to_end_worst && r.rep.end_to_end_rel < 1e-9);
        double worst = 0;
        if (o.against) hold_blocks(a, &r, c, false, &worst);
    }
    arena_free(a);
}
static Tally run_cell(const Case *c, const Family *f, bool sp) {
    static const char *const dtypes[] = {"f64", "f32"};
    Tally t = {0};
    for (int d = 0; d < 2; d++) {
        if (f->fixed_tp2) run_family(c, f, sp, 2, dtypes[d], &t);
        if (f->fixed_tp2 && c->tp[0] == 3) run_family(c, f, sp, 3, dtypes[d], &t);
        for (int i = 0; !f->fixed_tp2 && i < 4 && c->tp[i]; i++)
            run_family(c, f, sp, c->tp[i], dtypes[d], &t);
    }
    return t;
}
static void test_families(void **state) {
    (void)state;
    int runs = 0, refused = 0, n = sample_of(N_CASES, "models");
    printf("%-13s %-6s", "case", "plan");
    for (int f = 0; f < N_FAMILIES; f++) printf(" %15s", families[f].name);
    printf("   (equivalent/plans, the others refused as expected; worst share of the bound)\n");
    for (int c = 0; c < n; c++)
        for (int sp = n < N_CASES ? c % 2 : 0; sp < (n < N_CASES ? c % 2 + 1 : 2); sp++) {
            printf("%-13s %-6s", cases[c].name, sp ? "TP+SP" : "TP");
            for (int f = 0; f < N_FAMILIES; f++) {
                Tally t = run_cell(&cases[c], &families[f], sp);
                char cell[48];
                snprintf(cell, sizeof cell, "%d/%d %3.0f%%", t.runs - t.refused, t.runs,
                         100 * t.worst);
                printf(" %15s", cell);
                runs += t.runs, refused += t.refused;
            }
            printf("\n");
        }
    printf("%d runs: %d equivalent, %d refused with the expected code\n", runs, runs - refused,
           refused);
    if (n < N_CASES) return;
    assert_int_equal(runs, 336);
    assert_int_equal(refused, 24);
}
/* The families can fail: a dropped sum on golden weights is found at that step. */
static void test_family_fails(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text = arena_printf(a, "%sfaults: [{at: layers.1.mlp.down, do: drop}]\n",
                                    family_text(a, &cases[0], &families[0], false, 4, "f32"));
    PlanRun r = plan_run(a, "golden.yaml", text, true);
    assert_non_null(r.t);
    run_must_be(&r, "different");
    assert_string_equal(r.t->first_wrong, "layers.1.mlp.down");
    assert_int_equal(r.rep.exit, 1);
    arena_free(a);
}

/* ---- gradients: every cotangent and every parameter gradient of the framework, and every rank's,
 * whatever the plan
 * ---- */
static const char end_lines[] =
    "  model.embed_tokens: rowwise\n  lm_head: colwise\n  loss: loss_parallel\n";
static const char sp_end_lines[] =
    "  model.embed_tokens: {style: rowwise, output: shard(1)}\n  model.norm: sequence_parallel\n"
    "  lm_head: {style: colwise, input: shard(1)}\n  loss: loss_parallel\n";
typedef struct {
    const char *name, *mesh, *extra; /* mesh: %d is tp, the smallest of the case */
    int style;                       /* 0 none, 1 TP, 2 TP + SP */
} GradFamily;
static const GradFamily grad_families[] = {
    {"unsharded", "{one: 1}", "", 0},
    {"TP", "{tp: %d}", "", 1},
    {"TP + SP", "{tp: %d}", "", 2},
    {"dp2 cp2 TP + SP", "{dp: 2, cp: 2, tp: %d}",
     "context_parallel: {mode: all_gather, order: contiguous}\n", 2},
    {"FSDP", "{dp: 4}", "data_parallel: {mode: fsdp, axis: dp}\n", 0},
    {"FSDP dp2 cp2 TP + SP", "{dp: 2, cp: 2, tp: %d}",
     "data_parallel: {mode: fsdp, axis: dp*cp, reshard: false}\n", 2},
    {"FSDP TP, recompute", "{dp: 2, tp: %d}",
     "data_parallel: {mode: fsdp, axis: dp}\nrecompute: block\n", 1},
};
enum { N_GRAD_FAMILIES = sizeof grad_families / sizeof *grad_families };
static const char *grad_text(Arena *a, const Case *c, const GradFamily *f) {
    Str s = str_new(a);
    str_add(&s,
            golden_plan(a, c->name, "config.json", "embedding, blocks, norm, head, loss", "f64"));
    const char *tp = strstr(f->mesh, "%d");
    str_addf(&s, "mesh: %.*s", (int)(tp ? tp - f->mesh : (long)strlen(f->mesh)), f->mesh);
    if (tp) str_addf(&s, "%d%s", c->tp[0], tp + 2);
    str_addf(&s, "\npass: backward\n%s", f->extra);
    if (f->style)
        str_addf(&s, "plan:\n%s%s%s%s", tp_lines, f->style == 2 ? sp_lines : plain_lines,
                 c->qk_norm ? norm_lines : "", f->style == 2 ? sp_end_lines : end_lines);
    return s.s;
}
/* Gradients of the file that are held, and the worst. */
static int hold_gradients(const PlanRun *r, const Case *c, const char *family, double *worst) {
    int params = 0, values = 0;
    for (int i = 0; i < r->rep.n_against; i++) {
        const struct AgainstRow *x = &r->rep.against[i];
        if (x->missing_there || strncmp(x->name, "grad.", 5)) continue;
        /* inside the attention kernel: its gradient is never a tensor */
        if (strstr(x->name, ".attn_probs")) continue;
        if (x->missing_here || !x->ok || !(x->max_rel <= 1e-10))
            fail_msg("%s %s: %s %s (%.3g)", c->name, family, x->name,
                     x->missing_here ? "has no name here" : "differs", x->max_rel);
        *worst = fmax(*worst, x->max_rel);
        *(strncmp(x->name, "grad.param.", 11) ? &values : &params) += 1;
    }
    assert_int_equal(params, r->t->n_params);
    assert_true(!golden_complete() || values > 15 * c->layers);
    return params + values;
}
static void test_gradients(void **state) {
    (void)state;
    int n = sample_of(N_CASES, "models"), families_held = sample_of(N_GRAD_FAMILIES, "families");
    for (int c = 0; c < n; c++) {
        double worst = 0;
        int held = 0;
        for (int f = 0; f < families_held; f++) {
            Arena *a = arena_new();
            const char *text = grad_text(a, &cases[c], &grad_families[f]);
            PlanRun r = against(a, text, golden_path(a, "hf/%s/values.safetensors", cases[c].name));
            if (!r.t || r.rep.exit) fprintf(stderr, "%s\n", text), run_print(&r);
            assert_true(!r.rep.exit && run_is(&r, "equivalent"));
            held = hold_gradients(&r, &cases[c], grad_families[f].name, &worst);
            assert_true(r.rep.end_to_end_rel < 1e-9);
            arena_free(a);
        }
        printf(
            "%-13s %d gradients of the framework, %d plans equivalent, worst %.2g of the largest\n",
            cases[c].name, held, families_held, worst);
    }
}
/* It can fail: a gradient that is not summed is found on the ranks, although the reference agrees
 * with the file. */
static void test_gradients_fail(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Case *c = &cases[5];
    const char *text =
        arena_printf(a,
                     "%sfaults: [{at: all_reduce of "
                     "grad.param.model.layers.1.self_attn.q_norm.weight, do: drop}]\n",
                     grad_text(a, c, &grad_families[2]));
    PlanRun r = against(a, text, golden_path(a, "hf/%s/values.safetensors", c->name));
    double worst = 0;
    assert_non_null(r.t);
    hold_gradients(&r, c, "with a fault", &worst);
    run_must_be(&r, "different");
    assert_string_equal(r.t->first_wrong, "grad.param.model.layers.1.self_attn.q_norm.weight");
    assert_int_equal(r.rep.exit, 1);
    arena_free(a);
}

/* ---- toy runs: the first step's output, unsharded and as every rank of a column and row pair has
 * it ---- */
static void test_toy(void **state) {
    (void)state;
    static const char *const runs[] = {"adamw-sum", "adamw-var", "adamw-sum-clip", "adamw-var-clip",
                                       "sgd-sum",   "sgd-var",   "sgd-sum-clip",   "sgd-var-clip"};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        for (int tp = 2; tp <= 4; tp += 2) {
            Arena *a = arena_new();
            const char *file = golden_path(a, "toy/%s/values.safetensors", runs[i]),
                       *saved = temp_path(a, "toy.safetensors");
            SafeTensors *st = golden_tensors(a, file);
            const StTensor *x = st_find(st, st_find(st, "input") ? "input" : "inputs"),
                           *w1 = st_find(st, "initial.net1.weight"),
                           *w2 = st_find(st, "initial.net2.weight");
            int64_t rows = x->shape[x->nd - 2], n, m;
            NewTensor in = {.name = "input",
                            .nd = 2,
                            .shape = {rows, x->shape[x->nd - 1]},
                            .x = tensor_numbers(a, st, x->name, &n)};
            const char *text =
                arena_printf(a,
                             "model: {kind: mlp, sizes: [%d, %d, %d], bias: true, activation: "
                             "relu, weights: {file: %s, prefix: \"initial.\"}}\n"
                             "data: {dtype: f64, inputs: %s}\nmesh: {tp: %d}\nplan: {net1: "
                             "colwise, net2: rowwise}\n",
                             (int)w1->shape[1], (int)w1->shape[0], (int)w2->shape[0], file,
                             write_tensors(a, "toy.in.safetensors", &in, 1), tp);
            PlanRun r = plan_run_with(
                a, "toy.yaml", text,
                &(PipelineOptions){.execute = true, .threads = 1, .save_values = saved});
            if (!r.t || diags_errors(r.d)) run_print(&r);
            assert_true(run_is(&r, "equivalent"));
            SafeTensors *out = golden_tensors(a, saved);
            const double *want = tensor_numbers(a, st, "step0.output", &n);
            for (int q = -1; q < tp; q++) {
                const double *have =
                    tensor_numbers(a, out, q < 0 ? "net2" : arena_printf(a, "rank%d/net2", q), &m);
                assert_int_equal(n, m);
                for (int64_t k = 0; k < n; k++)
                    assert_true(fabs(want[k] - have[k]) <= 1e-14 * (1 + fabs(want[k])));
            }
            st_close(st), st_close(out);
            arena_free(a);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_against_fails),
        cmocka_unit_test(test_families),  cmocka_unit_test(test_family_fails),
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_gradients_fail),
        cmocka_unit_test(test_toy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
