/* Other people's models with experts, and with latent attention (golden/hf), whole, under every way
 * to lay experts over ranks: in float64 every value and every gradient that the file and the model
 * have is the framework's, to 1e-11 and 1e-10, and in both widths what the ranks hold is checked
 * step by step. Prints the table of case x family; no rule refuses any pair. `make soak` runs
 * each pair with both configs in both widths, and with three ranks of tokens, which divide nothing.
 */
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct {
    const char *name;
    int E;
    bool complete; /* in the complete set of golden values only */
    bool dense;    /* some layers have no experts */
    bool shared, llama4;
    const char *heads, *keys; /* lines for tensor parallel; for sequence parallel none of `keys` */
    const char *latent;       /* for sequence parallel */
} Case;
#define HEADS "  layers.*.attention.w[qkv]: colwise\n"
#define QK_NORM "  layers.*.attention.[qk]_norm: replicated_with_grad_allreduce\n"
#define KEY                                                                                        \
    "  layers.*.attention.k_cat: {style: prepare_module_input, input: [null, replicate], "         \
    "desired_input: [null, varying_use], use_local_output: true}\n"
#define DOWN                                                                                       \
    "  layers.*.attention.w*_a: replicated_with_grad_allreduce\n"                                  \
    "  layers.*.attention.*_norm: replicated_with_grad_allreduce\n"
static const Case cases[] = {
    {"mixtral-wide", 8, false, false, false, false, HEADS, "", ""},
    {"mixtral", 8, false, false, false, false, HEADS, "", ""},
    {"qwen3-moe-norm", 16, false, false, false, false, HEADS, QK_NORM, QK_NORM},
    {"qwen3-moe-raw", 12, false, true, false, false, HEADS, QK_NORM, QK_NORM},
    {"llama4-interleaved", 8, false, true, true, true, HEADS, "", ""},
    {"deepseek-v3-yarn", 12, false, true, true, false,
     "  layers.*.attention.wq: colwise\n  layers.*.attention.wkv_b: colwise\n", KEY, DOWN},
    {"llama4-text", 4, true, false, true, true, HEADS, "", ""},
    {"deepseek-v3", 16, true, true, true, false, "  layers.*.attention.w*_b: colwise\n", KEY, DOWN},
};
enum { N_CASES = sizeof cases / sizeof *cases };

typedef struct {
    const char *name, *mesh, *moe, *more;
    enum { WHOLE, TP, SP } style;
    bool drops; /* another result than the framework's */
} Family;
#define DDP "data_parallel: {mode: ddp}\n"
#define FSDP "data_parallel: {mode: fsdp}\n"
#define ZIGZAG "context_parallel: {mode: all_gather, order: zigzag}\n"
static const Family families[] = {
    {"ep", "{dp: 2}", "axis: dp", DDP, WHOLE, false},
    {"ep FSDP", "{dp: 2}", "axis: dp", FSDP, WHOLE, false},
    {"FSDP", "{dp: 2}", "fsdp_dim: auto", FSDP, WHOLE, false},
    {"masked", "{tp: 2}", "axis: tp, dispatch: masked", "", TP, false},
    {"masked zigzag", "{dp: 2, cp: 2, tp: 2}", "axis: tp, dispatch: masked", FSDP ZIGZAG, TP,
     false},
    {"etp", "{tp: 2}", "etp: tp", "", TP, false},
    {"etp SP", "{tp: 2}", "etp: tp", "", SP, false},
    {"ep x etp", "{dp: 2, tp: 2}", "axis: dp, etp: tp", DDP, TP, false},
    {"ep x etp SP", "{dp: 2, tp: 2}", "axis: dp, etp: tp", FSDP, SP, false},
    {"ep x etp zigzag", "{dp: 2, cp: 2, tp: 2}", "axis: dp*cp, etp: tp", FSDP ZIGZAG, SP, false},
    {"folded", "{dp: 2, tp: 2}", "axis: dp*tp", DDP, SP, false},
    {"folded zigzag", "{dp: 2, cp: 2, tp: 2}", "axis: dp*cp*tp", FSDP ZIGZAG, SP, false},
    {"edp zigzag", "{dp: 2, cp: 2}", "axis: cp", FSDP ZIGZAG, WHOLE, false},
    {"room for all", "{dp: 2, cp: 2}", "axis: dp*cp, capacity_factor: E", FSDP ZIGZAG, WHOLE,
     false},
    {"room SP", "{dp: 2, tp: 2}", "axis: dp*tp, capacity_factor: E, priority: score", DDP, SP,
     false},
    {"drops", "{dp: 2, cp: 2}", "axis: dp*cp, capacity_factor: 0.8, priority: slot", DDP ZIGZAG,
     WHOLE, true},
    {"drops masked", "{tp: 2}", "axis: tp, dispatch: masked, capacity_factor: 0.6", "", TP, true},
    {"all-gather", "{dp: 2}", "axis: dp, dispatch: all_gather", DDP, WHOLE, false},
    {"all-gather SP", "{dp: 2, cp: 2, tp: 2}", "axis: dp*cp*tp, dispatch: all_gather", FSDP ZIGZAG,
     SP, false},
    {"recomputed", "{dp: 2, tp: 2}", "axis: dp, etp: tp", FSDP "recompute: block\n", TP, false},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

/* ---- a plan ---- */
/* Transformers has Llama 4's experts [E, D, F], and its file is compared in that order: such plans
 * are written in its names. Which layers are dense is no word of theirs. */
static const struct {
    const char *here, *there;
} llama4_names[] = {
    {"layers.*.attention.w[qkv]", "model.layers.*.self_attn.[qkv]_proj"},
    {"layers.*.attention.wo", "model.layers.*.self_attn.o_proj"},
    {"layers.*.attention_norm", "model.layers.*.input_layernorm"},
    {"layers.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
    {"layers.*.attention:", "model.layers.*.self_attn:"},
    {"tok_embeddings", "model.embed_tokens"},
    {"  norm:", "  model.norm:"},
    {"  output: {style", "  lm_head: {style"},
    {"layers.*.moe.router.gate", "model.layers.*.feed_forward.router"},
    {"layers.*.moe.shared_experts.w[13]", "model.layers.*.feed_forward.shared_expert.[gu]*_proj"},
    {"layers.*.moe.shared_experts.w2", "model.layers.*.feed_forward.shared_expert.down_proj"},
    {"layers.*.moe.shared_experts", "model.layers.*.feed_forward.shared_expert"},
    {"layers.*.feed_forward.w[13]", "model.layers.[02].feed_forward.[gu]*_proj"},
    {"layers.*.feed_forward.w2", "model.layers.[02].feed_forward.down_proj"},
    {"layers.*.feed_forward:", "model.layers.[02].feed_forward:"},
};
static const char *in_llama4_names(Arena *a, const char *lines) {
    Str s = str_new(a);
    while (*lines) {
        size_t n = 0, k = 0;
        for (; k < sizeof llama4_names / sizeof *llama4_names; k++) {
            n = strlen(llama4_names[k].here);
            if (!strncmp(lines, llama4_names[k].here, n)) break;
        }
        if (k < sizeof llama4_names / sizeof *llama4_names) {
            str_add(&s, llama4_names[k].there);
            lines += n;
        } else str_addf(&s, "%c", *lines++);
    }
    return s.s;
}
#define FFN(at) "  layers.*." at ".w[13]: colwise\n  layers.*." at ".w2: rowwise\n"
#define FFN_SP(at)                                                                                 \
    "  layers.*." at ": {style: prepare_module_input, input: [shard(1)], desired_input: "          \
    "[replicate]}\n  layers.*." at ".w[13]: colwise\n  layers.*." at                               \
    ".w2: {style: rowwise, output: shard(1)}\n"
static const char tp_lines[] =
    "  layers.*.attention.wo: rowwise\n  tok_embeddings: rowwise\n"
    "  output: {style: colwise, use_local_output: false}\n  loss: loss_parallel\n";
static const char sp_lines[] =
    "  tok_embeddings: {style: rowwise, output: shard(1)}\n  norm: sequence_parallel\n"
    "  output: {style: colwise, input: shard(1), use_local_output: false}\n  loss: loss_parallel\n"
    "  layers.*.attention_norm: sequence_parallel\n  layers.*.ffn_norm: sequence_parallel\n"
    "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
    "  layers.*.moe.router.gate: {style: sequence_parallel, use_local_output: true}\n";
static void add_lines(Str *s, const Case *c, const Family *f) {
    if (f->style == WHOLE) return;
    bool sp = f->style == SP;
    str_addf(s, "plan:\n%s%s%s", c->heads, sp ? sp_lines : tp_lines, sp ? c->latent : c->keys);
    if (c->dense) str_add(s, sp ? FFN_SP("feed_forward") : FFN("feed_forward"));
    if (c->shared) str_add(s, sp ? FFN_SP("moe.shared_experts") : FFN("moe.shared_experts"));
}
static const char *text_of(Arena *a, const Case *c, const Family *f, const char *config,
                           const char *dtype) {
    Str s = str_new(a);
    str_addf(&s,
             "model: {hf_config: %s, weights: %s, layers: all, parts: [embedding, blocks, norm, "
             "head, loss]}\ndata: {dtype: %s, inputs: %s}\nnames: %s\npass: backward\n",
             golden_path(a, "hf/%s/%s", c->name, config),
             golden_path(a, "hf/%s/model.safetensors", c->name), dtype,
             golden_path(a, "hf/%s/values.safetensors", c->name), c->llama4 ? "hf" : "torchtitan");
    const char *E = strstr(f->moe, ": E"); /* as much room as if all chose one expert */
    if (E) str_addf(&s, "moe: {%.*s: %d%s}\n", (int)(E - f->moe), f->moe, c->E, E + 3);
    else str_addf(&s, "moe: {%s}\n", f->moe);
    str_addf(&s, "mesh: %s\n%s", f->mesh, f->more);
    Str lines = str_new(a);
    add_lines(&lines, c, f);
    str_add(&s, c->llama4 ? in_llama4_names(a, lines.s) : lines.s);
    return s.s;
}

/* ---- what is held ---- */
typedef struct {
    int runs, values, gradients;
    double worst; /* share of its bound that the worst value used */
} Tally;
static void fail_plan(const PlanRun *r, const char *text, const char *why) {
    printf("%s", text);
    run_print(r);
    fail_msg("%s", why);
}
/* Everything that the file and the model have; the same number of them whatever the plan. */
static void hold_rows(const PlanRun *r, const char *text, int *values, int *gradients) {
    for (int i = 0; i < r->rep.n_against; i++) {
        const struct AgainstRow *x = &r->rep.against[i];
        if (x->missing_there || x->missing_here) continue;
        bool grad = !strncmp(x->name, "grad.", 5);
        if (!x->ok || !(x->max_rel <= (grad ? 1e-10 : 1e-11))) {
            printf("%s: %.3g\n", x->name, x->max_rel);
            fail_plan(r, text, "a value is not the framework's");
        }
        *(grad ? gradients : values) += 1;
    }
}
static void run_pair(const Case *c, const Family *f, const char *config, const char *dtype,
                     Tally *t) {
    Arena *a = arena_new();
    const char *text = text_of(a, c, f, config, dtype);
    bool f64 = !strcmp(dtype, "f64");
    const char *file = golden_path(a, "hf/%s/values.safetensors", c->name);
    PipelineOptions o = {.execute = true, .threads = 1, .against = f64 && !f->drops ? file : NULL};
    PlanRun r = plan_run_with(a, "families.yaml", text, &o);
    t->runs++;
    bool good = run_is(&r, "equivalent") && !r.rep.exit && !r.t->n_fail && r.t->n_pass > 100;
    if (!good) fail_plan(&r, text, "equivalent expected");
    if (r.t->worst_used > t->worst) t->worst = r.t->worst_used;
    if (o.against) hold_rows(&r, text, &t->values, &t->gradients);
    arena_free(a);
}
/* What the file and the model have, from a run on one rank. */
static Tally unsharded(const Case *c) {
    static const Family one = {"one", "{one: 1}", "aux_loss: none", "", WHOLE, false};
    Tally t = {0};
    run_pair(c, &one, "config.json", "f64", &t);
    assert_true(t.values > 5 && t.gradients > 5);
    return t;
}
/* The same over three ranks of tokens. */
static Family over_three(Arena *a, const Family *f) {
    Family three = *f;
    const char *dp = strstr(f->mesh, "dp: 2");
    if (dp) three.mesh = arena_printf(a, "%.*sdp: 3%s", (int)(dp - f->mesh), f->mesh, dp + 5);
    return three;
}
static void run_family(const Case *c, const Family *f, int i, Tally *t) {
    static const char *const configs[] = {"config.json", "config_v4.json"};
    run_pair(c, f, configs[i % 2], "f64", t);
    run_pair(c, f, configs[1 - i % 2], "f32", t);
    if (!getenv("SHARDPROOF_SOAK")) return;
    Arena *a = arena_new();
    Family three = over_three(a, f);
    Tally more = {0};
    run_pair(c, f, configs[1 - i % 2], "f64", &more);
    run_pair(c, f, configs[i % 2], "f32", &more);
    run_pair(c, &three, configs[i % 2], "f64", &more);
    run_pair(c, &three, configs[i % 2], "f32", &more);
    t->runs += more.runs;
    arena_free(a);
}
static void run_case(const Case *c, int n, Tally *all) {
    Tally one = unsharded(c);
    for (int i = 0; i < n; i++) {
        const Family *f = &families[i];
        Tally t = {0};
        run_family(c, f, i, &t);
        if (!f->drops && (t.values != one.values || t.gradients != one.gradients))
            fail_msg("%s, %s: %d of %d values, %d of %d gradients compared", c->name, f->name,
                     t.values, one.values, t.gradients, one.gradients);
        all->runs += t.runs, all->values += t.values, all->gradients += t.gradients;
        printf(" %5.0f%%", 100 * t.worst);
    }
}
static void test_every_family(void **state) {
    (void)state;
    int n = sample_of(N_FAMILIES, "families");
    Tally all = {0};
    for (int i = 0; i < n; i++) printf("%2d %s%s", i, families[i].name, i % 5 == 4 ? "\n" : ", ");
    printf("\nThe worst value's share of its bound (f64 and f32):\n");
    for (int i = 0; i < N_CASES; i++) {
        if (cases[i].complete && !golden_complete()) {
            printf("%s: only in the complete set of golden values, not run\n", cases[i].name);
            continue;
        }
        printf("%-18s", cases[i].name);
        run_case(&cases[i], n, &all);
        printf("\n");
    }
    printf("%d runs; %d values and %d gradients are the framework's\n", all.runs, all.values,
           all.gradients);
}
/* The table can fail: rows that stay at home, and a room that drops some. */
static void test_can_fail(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text = arena_printf(a, "%sfaults: [{at: layers.0.moe.dispatched, do: drop}]\n",
                                    text_of(a, &cases[0], &families[0], "config.json", "f64"));
    PlanRun r = plan_run(a, "families.yaml", text, true);
    run_must_be(&r, "different");
    assert_string_equal(r.t->first_wrong, "layers.0.moe.dispatched");
    Family small = families[0];
    small.moe = "axis: dp, capacity_factor: 0.8";
    PipelineOptions o = {.execute = true, .threads = 1};
    o.against = golden_path(a, "hf/%s/values.safetensors", cases[0].name);
    r = plan_run_with(a, "families.yaml", text_of(a, &cases[0], &small, "config.json", "f64"), &o);
    run_must_be(&r, "equivalent");
    assert_true(run_has(&r, "E0506") && r.rep.exit);
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_family),
                                       cmocka_unit_test(test_can_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
