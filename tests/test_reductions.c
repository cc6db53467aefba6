/* Sums of gradients that nobody declared (interface: trust): under `rules` they are made, marked
 * and named with the line that declares them; under `declared` they are not made, and the numbers
 * decide. Which style, key and axis declares what is asked case by case; random plans hold the two
 * trusts against each other and every hint against what it says. */
#include "base/file.h"
#include "cli/cli.h"
#include "plan/plan.h"
#include "support/plan_lines.h"
#include "support/random_plan.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- running ---- */
enum { MOST_SETS = 64 };
typedef struct {
    int n;
    PlanSet set[MOST_SETS];
} Sets;
static PlanRun run_sets(Arena *a, const char *text, const Sets *sets, const char *save) {
    PlanRun r = {.d = diags_new(a)};
    PipelineOptions o = {.execute = true, .threads = 1, .save_values = save};
    r.t = pipeline_run(a, r.d, (PlanText){"plan.yaml", text, strlen(text), sets->set, sets->n}, &o,
                       &r.rep);
    return r;
}
static void add_set(Sets *s, const char *key, const char *value) {
    assert_true(s->n < MOST_SETS);
    s->set[s->n++] = (PlanSet){key, value};
}
/* What stands between the next two back quotes, or NULL; *at goes on behind them. */
static const char *quoted(Arena *a, const char **at) {
    const char *p = strchr(*at, '`'), *end = p ? strchr(p + 1, '`') : NULL;
    if (!end) return NULL;
    *at = end + 1;
    return arena_strndup(a, p + 1, (size_t)(end - p - 1));
}
/* What the notes ask for, as overrides of the plan: write `LINE`, add `FIELD` to the line
 * `PATTERN`. False if one asks for more than that. */
static bool cure(Arena *a, const Diags *d, Sets *out) {
    bool all = true;
    for (int i = 0; i < d->n; i++) {
        const char *at = d->item[i].hint, *word, *text;
        if (strcmp(d->item[i].code, "N0008")) continue;
        all &= at && !strstr(at, "let ") && !strstr(at, "name ");
        while (all && (word = strpbrk(at, "wa")) && (text = quoted(a, &at))) {
            bool add = word[0] == 'a';
            const char *colon = strchr(text, ':'), *line = add ? quoted(a, &at) : NULL;
            const char *key = arena_strndup(a, text, (size_t)(colon - text));
            if (add) key = arena_printf(a, "plan[%s].%s", line, key);
            else if (strcmp(key, "data_parallel")) key = arena_printf(a, "plan[%s]", key);
            add_set(out, key, colon + 1);
        }
    }
    return all;
}
static int count_notes(const Diags *d, const char *code) {
    int n = 0;
    for (int i = 0; i < d->n; i++) n += !strcmp(d->item[i].code, code);
    return n;
}
static int count_inferred(const Trace *t) {
    int n = 0;
    for (int i = 0; i < t->n_collectives; i++) n += t->collectives[i].inferred;
    return n;
}
static bool listed(const Trace *t, const char *value) {
    bool has = false;
    for (int i = 0; i < t->n_undeclared; i++) has |= !strcmp(t->undeclared[i], value);
    return has;
}

/* ---- cases ---- */
#define WHOLE(mesh, data)                                                                          \
    "model: {layers: 2, parts: [embedding, blocks, norm, head, loss], config: {hidden_size: 24, "  \
    "num_attention_heads: 4, "                                                                     \
    "num_key_value_heads: 4, head_dim: 6, intermediate_size: 20, vocab_size: 28, "                 \
    "num_hidden_layers: 2}}\n"                                                                     \
    "data: {batch: 4, sequence: 16, dtype: f64, seed: 3" data "}\nmesh: {" mesh                    \
    "}\npass: backward\n"
#define BLOCK(extra, mesh, data) BLOCK_KV("4", extra, mesh, data)
#define BLOCK_KV(kv, extra, mesh, data)                                                            \
    "model: {config: {hidden_size: 24, num_attention_heads: 4, num_key_value_heads: " kv           \
    ", head_dim: 6, "                                                                              \
    "intermediate_size: 20, vocab_size: 28, num_hidden_layers: 1" extra "}}\n"                     \
    "data: {batch: 4, sequence: 16, dtype: f64, seed: 3" data "}\nmesh: {" mesh                    \
    "}\npass: backward\n"
#define TITAN                                                                                      \
    "names: torchtitan\n"                                                                          \
    "plan:\n"                                                                                      \
    "  tok_embeddings: {style: rowwise, output: shard(1)}\n"                                       \
    "  output: {style: colwise, input: shard(1), use_local_output: false}\n"                       \
    "  loss: loss_parallel\n" TITAN_ATTENTION TITAN_FFN
#define TITAN_NORMS                                                                                \
    "  layers.*.attention_norm: sequence_parallel\n  layers.*.ffn_norm: sequence_parallel\n  "     \
    "norm: sequence_parallel\n"
#define TP                                                                                         \
    "names: torchtitan\nplan:\n  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: "    \
    "rowwise\n"                                                                                    \
    "  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: rowwise\n"
#define HF_ATTENTION                                                                               \
    "names: hf\nplan:\n  model.layers.*.self_attn.[qkv]_proj: {style: colwise, boundary: "         \
    "per_module}\n"                                                                                \
    "  model.layers.*.self_attn.o_proj: rowwise\n"
#define HF_MLP                                                                                     \
    "  model.layers.*.mlp.gate_proj: colwise\n  model.layers.*.mlp.up_proj: colwise\n  "           \
    "model.layers.*.mlp.down_proj: rowwise\n"
#define HF_LOCAL                                                                                   \
    "  model.layers.*.mlp.gate_proj: local_colwise\n  model.layers.*.mlp.up_proj: local_colwise\n" \
    "  model.layers.*.mlp.down_proj: local_rowwise\n  model.layers.*.mlp: gather\n"
typedef struct {
    const char *what, *text;
    int undeclared;    /* sums, one per gradient and move */
    const char *axis;  /* over which, all of them */
    const char *value; /* one of them */
    const char *line;  /* in a hint */
    const char *first; /* the first wrong value under trust: declared */
} Case;
static const Case cases[] = {
    {"torchtitan, no norm lines", WHOLE("tp: 2", "") TITAN, 5, "tp",
     "grad.param.layers.1.ffn_norm.weight", "layers.*.attention_norm: sequence_parallel",
     "grad.param.norm.weight"},
    {"torchtitan", WHOLE("tp: 2", "") TITAN TITAN_NORMS, 0, 0, 0, 0, 0},
    {"its norms replicated by hand",
     BLOCK("", "tp: 2", ", block_input: replicate") TP
     "  layers.*.attention_norm: replicate\n  layers.*.ffn_norm: no_parallel\n",
     0, 0, 0, 0, 0},
    {"dp, no norm lines", WHOLE("dp: 2, tp: 2", "") TITAN, 5, "tp", "grad.param.norm.weight",
     "norm: sequence_parallel", "grad.param.norm.weight"},
    {"Qwen3, q and k norm", BLOCK(", qk_norm: true", "tp: 2", "") HF_ATTENTION HF_MLP, 2, "tp",
     "grad.param.model.layers.0.self_attn.q_norm.weight",
     "model.layers.*.self_attn.q_norm: replicated_with_grad_allreduce",
     "grad.param.model.layers.0.self_attn.k_norm.weight"},
    {"Qwen3, declared",
     BLOCK(", qk_norm: true", "tp: 2", "") HF_ATTENTION HF_MLP
     "  model.layers.*.self_attn.[qk]_norm: replicated_with_grad_allreduce\n",
     0, 0, 0, 0, 0},
    {"Qwen3, replicated",
     BLOCK(", qk_norm: true", "tp: 2", "") HF_ATTENTION HF_MLP
     "  model.layers.*.self_attn.[qk]_norm: {weight: replicate}\n",
     0, 0, 0, 0, 0}, /* an own style places it */
    {"Megatron", WHOLE("tp: 2", "") "recipe: megatron\n", 0, 0, 0, 0, 0},
    {"Megatron, sequence parallel, biases",
     "model: {preset: qwen3-0.6b, shrink: 64, layers: 1, parts: [embedding, blocks, norm, head, "
     "loss]}\n"
     "data: {batch: 2, sequence: 8, dtype: f64}\nmesh: {tp: 2, dp: 2}\npass: backward\nrecipe: "
     "megatron-sp\n",
     0, 0, 0, 0, 0},
    {"Hugging Face", WHOLE("tp: 2", "") "recipe: hf-llama\n", 0, 0, 0, 0, 0},
    {"torchtune", WHOLE("tp: 2", "") "recipe: torchtune-llama3\n", 0, 0, 0, 0, 0},
    {"KV copies and biases",
     BLOCK_KV("2", ", attention_bias: true, mlp_bias: true", "tp: 4", "") TP, 0, 0, 0, 0, 0},
    {"ddp over dp, batch over dp*x",
     BLOCK("", "dp: 2, x: 2, tp: 2",
           ", cut: {batch: dp*x}") "data_parallel: {mode: ddp, axis: dp}\n" TP,
     9, "x", "grad.param.layers.0.attention.wq.weight", "data_parallel: {mode: ddp, axis: dp*x}",
     "grad.param.layers.0.feed_forward.w2.weight"},
    {"ddp over tp, batch over dp*x",
     BLOCK("", "dp: 2, x: 2, tp: 2",
           ", cut: {batch: dp*x}") "data_parallel: {mode: ddp, axis: tp}\n" TP,
     9, "dp*x", "grad.param.layers.0.attention.wq.weight", "data_parallel: {mode: ddp, axis: dp*x}",
     "grad.param.layers.0.feed_forward.w2.weight"},
    {"ddp over dp*x",
     BLOCK("", "dp: 2, x: 2, tp: 2",
           ", cut: {batch: dp*x}") "data_parallel: {mode: ddp, axis: dp*x}\n" TP,
     0, 0, 0, 0, 0},
    {"ddp by default", BLOCK("", "dp: 2, cp: 2, tp: 2", "") TP, 0, 0, 0, 0, 0},
    {"a mode alone", BLOCK("", "dp: 2, cp: 2, tp: 2", "") "data_parallel: ddp\n" TP, 0, 0, 0, 0, 0},
    {"fsdp by default", BLOCK("", "dp: 2, cp: 2, tp: 2", "") "data_parallel: fsdp\n" TP, 0, 0, 0, 0,
     0},
    {"fsdp over dp, tokens over cp",
     BLOCK("", "dp: 2, cp: 2", "") "names: torchtitan\ndata_parallel: {mode: fsdp, axis: dp}\n", 9,
     "cp", "grad.param.layers.0.feed_forward.w2.weight", "data_parallel: {mode: fsdp, axis: dp*cp}",
     "grad.param.layers.0.feed_forward.w2.weight"},
    {"fsdp over dp, in units, the sums over tp first",
     BLOCK("", "dp: 2, cp: 2, tp: 2",
           "") "data_parallel: {mode: fsdp, axis: dp, unit: block, grad_order: tp_first}\n" TP,
     9, "cp", "grad.param.layers.0.feed_forward.w2.weight",
     "data_parallel: {mode: fsdp, axis: dp*cp, unit: block, grad_order: tp_first}",
     "grad.param.layers.0.feed_forward.w2.weight"},
    {"hsdp, tokens over cp too",
     BLOCK("", "a: 2, b: 2, cp: 2", ", cut: {batch: a*b}") "names: torchtitan\ndata_parallel: "
                                                           "{mode: hsdp, replicate: a, shard: b}\n",
     9, "cp", "grad.param.layers.0.attention_norm.weight",
     "data_parallel: {mode: hsdp, replicate: a*cp, shard: b}",
     "grad.param.layers.0.feed_forward.w2.weight"},
    {"hsdp",
     BLOCK("", "a: 2, b: 2", ", cut: {batch: a*b}") "names: torchtitan\ndata_parallel: {mode: "
                                                    "hsdp, replicate: a, shard: b}\n",
     0, 0, 0, 0, 0},
    {"plain shards", BLOCK("", "tp: 2", "") HF_ATTENTION HF_LOCAL, 1, "tp",
     "grad.layers.0.post_attn_norm",
     "add `desired_input: [replicate]` to the line `model.layers.*.mlp.gate_proj`",
     "grad.layers.0.post_attn_norm"},
    {"plain heads beside cut ones",
     BLOCK_KV("1", "", "tp: 2", "") "names: hf\nplan:\n"
                                    "  model.layers.*.self_attn.q_proj: colwise\n  "
                                    "model.layers.*.self_attn.o_proj: rowwise\n" HF_MLP,
     2, "tp.1", "grad.layers.0.k_rope", NULL, NULL},
    {"own styles with labels only",
     "styles:\n  cols: {input: replicate, weight: shard(0), output: shard(-1)}\n"
     "  rows: {input: shard(-1), weight: shard(1), output: replicate}\n" BLOCK(
         "", "tp: 2", "") "names: torchtitan\nplan:\n  layers.*.attention.w[qkv]: cols\n  "
                          "layers.*.attention.wo: rows\n"
                          "  layers.*.feed_forward.w[13]: cols\n  layers.*.feed_forward.w2: rows\n",
     2, "tp", "grad.layers.0.input_norm",
     "add `desired_input: [replicate]` to the line `layers.*.attention.w[qkv]`",
     "grad.layers.0.post_attn_norm"},
    {"the gradients key declares",
     WHOLE("tp: 2", "") TITAN
     "gradients: {layers.*.ffn_norm: sum, layers.*.attention_norm: sum, norm: sum}\n",
     0, 0, 0, 0, 0},
    {"a module stands for its parameters",
     WHOLE("tp: 2", "") TITAN "gradients: {'layers.*': sum, norm: sum}\n", 0, 0, 0, 0, 0},
    /* a wildcard is one component, here as in `plan` */
    {"all of the first depth", WHOLE("tp: 2", "") TITAN "gradients: {'*': sum}\n", 4, "tp",
     "grad.param.layers.0.ffn_norm.weight", NULL, "grad.param.layers.1.ffn_norm.weight"},
};
static void hold_made(const Case *c, const PlanRun *r) {
    bool good = run_is(r, "equivalent");
    if (!good || r->t->n_undeclared != c->undeclared) run_print(r);
    if (!good) fail_msg("%s: not equivalent", c->what);
    if (r->t->n_undeclared != c->undeclared)
        fail_msg("%s: %d undeclared, not %d", c->what, r->t->n_undeclared, c->undeclared);
    assert_int_equal(r->rep.exit, 0);
    assert_int_equal(count_notes(r->d, "N0008") > 0, c->undeclared > 0);
    int n = 0;
    for (int i = 0; i < r->t->n_collectives; i++) {
        const TraceCollective *k = &r->t->collectives[i];
        if (!listed(r->t, k->value) && k->inferred && k->pass != PHASE_FORWARD)
            fail_msg("%s: %s", c->what, k->value);
        if (!k->inferred || !listed(r->t, k->value)) continue;
        n++;
        assert_string_equal(k->op, "all_reduce");
        assert_string_equal(k->axes, c->axis);
    }
    assert_int_equal(n, c->undeclared);
    if (c->value && !listed(r->t, c->value)) fail_msg("%s: %s is not listed", c->what, c->value);
    bool told = !c->line;
    for (int i = 0; i < r->d->n && c->line; i++) {
        const Diag *g = &r->d->item[i];
        told |= !strcmp(g->code, "N0008") && g->hint && strstr(g->hint, c->line);
    }
    if (!told) run_print(r);
    if (!told) fail_msg("%s: no note gives `%s`", c->what, c->line);
}
/* Not made: the first gradient of it is wrong, and nothing is inferred. */
static void hold_left_out(const Case *c, const PlanRun *r) {
    const char *want = c->undeclared ? "different" : "equivalent";
    if (!run_is(r, want)) {
        run_print(r);
        fail_msg("%s, declared: not %s", c->what, want);
    }
    assert_int_equal(count_notes(r->d, "N0008") > 0, c->undeclared > 0);
    assert_int_equal(r->t->n_undeclared, 0);
    assert_int_equal(count_inferred(r->t), 0);
    if (c->first) assert_string_equal(r->t->first_wrong, c->first);
}
static void test_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        Arena *a = arena_new();
        Sets none = {0}, declared = {0}, forward = {0}, cured = {0};
        PlanRun r = run_sets(a, c->text, &none, NULL);
        hold_made(c, &r);
        add_set(&declared, "trust", "declared");
        PlanRun left = run_sets(a, c->text, &declared, NULL);
        hold_left_out(c, &left);
        if (!strstr(c->text, "gradients:")) { /* forward there is nothing to report */
            add_set(&forward, "pass", "forward");
            PlanRun f = run_sets(a, c->text, &forward, NULL);
            assert_int_equal(count_notes(f.d, "N0008"), 0);
            assert_int_equal(f.t->n_undeclared, 0);
        }
        bool curable = cure(a, r.d, &cured);
        if (c->line) { /* what the notes say declares it */
            assert_true(curable);
            PlanRun well = run_sets(a, c->text, &cured, NULL);
            Case now = {.what = arena_printf(a, "%s, cured", c->what)};
            hold_made(&now, &well);
            add_set(&cured, "trust", "declared");
            well = run_sets(a, c->text, &cured, NULL);
            hold_left_out(&now, &well);
        }
        printf("%-50s %d undeclared\n", c->what, r.t->n_undeclared);
        arena_free(a);
    }
}

/* A sum of which a part is declared is two collectives: what is declared, and the rest on what that
 * leaves. */
static void test_two_collectives(void **state) {
    (void)state;
    Arena *a = arena_new();
    Sets none = {0};
    PlanRun r = run_sets(a,
                         BLOCK("", "dp: 2, x: 2, tp: 2",
                               ", cut: {batch: dp*x}") "data_parallel: {mode: ddp, axis: dp}\n" TP,
                         &none, NULL);
    assert_int_equal(count_collectives(r.t, "gradients", "all_reduce", "dp"), 9);
    assert_int_equal(count_collectives(r.t, "gradients", "all_reduce", "x"), 9);
    assert_int_equal(count_collectives(r.t, "gradients", NULL, NULL), 18);
    r = run_sets(a, BLOCK("", "dp: 2, cp: 2", "") "data_parallel: {mode: fsdp, axis: dp}\n", &none,
                 NULL);
    const TraceCollective *rs =
        find_collective(r.t, "reduce_scatter", "grad.param.layers.0.attention.wq.weight");
    const TraceCollective *ar =
        find_collective(r.t, "all_reduce", "grad.param.layers.0.attention.wq.weight");
    assert_true(!rs->inferred && ar->inferred && ar->value_step == rs->step &&
                ar->bytes_in == rs->bytes_out);
    arena_free(a);
}

/* ---- what users read ---- */
/* Runs a command on a plan file; what it writes on either stream, and its exit code. */
static const char *command(Arena *a, int *code, const char *const *words) {
    char *argv[16] = {(char *)(uintptr_t) "shardproof"}, *text = NULL;
    int argc = 1;
    size_t n;
    for (; *words; words++) argv[argc++] = (char *)(uintptr_t)*words;
    FILE *f = open_memstream(&text, &n);
    *code = cli_main(argc, argv, f, f);
    fclose(f);
    const char *copy = arena_strdup(a, text);
    free(text);
    return copy;
}
#define COMMAND(code, ...) command(a, code, (const char *const[]){__VA_ARGS__, NULL})
static void hold_says(const char *text, const char *what) {
    if (!strstr(text, what)) fail_msg("'%s' is not in\n%s", what, text);
}
static const char *plan_file(Arena *a, const char *name, const char *text) {
    const char *path = temp_path(a, name);
    assert_true(file_write(diags_new(a), path, text, strlen(text)));
    return path;
}
/* The picture of a view, as SVG. */
static const char *picture(Arena *a, const char *path, const char *part) {
    const char *file = temp_path(a, "view.svg");
    int code;
    size_t n;
    if (part) COMMAND(&code, "draw", path, "--view", "block", "--part", part, "-o", file);
    else COMMAND(&code, "draw", path, "--view", "block", "-o", file);
    assert_int_equal(code, 0);
    return file_read(a, diags_new(a), file, 1 << 24, (Loc){0}, &n);
}
static void test_fail_on(void **state) {
    (void)state;
    Arena *a = arena_new();
    int code;
    const char *lines = WHOLE("tp: 2", "") TITAN, *path = plan_file(a, "lines.yaml", lines);
    const char *text = COMMAND(&code, "check", path);
    assert_int_equal(code, 0);
    hold_says(text,
              "equivalent, if somebody sums 5 gradients over tp (no line of the plan does), ");
    COMMAND(&code, "check", "--fail-on", "error", path);
    assert_int_equal(code, 0);
    COMMAND(&code, "check", "--fail-on", "warning", path);
    assert_int_equal(code, 0);
    text = COMMAND(&code, "check", "--fail-on", "note", path);
    assert_int_equal(code, 1);
    hold_says(text, "FAIL");
    hold_says(text, "write `norm: sequence_parallel`");
    text = COMMAND(&code, "check", "--fail-on=note", "--format", "junit", path);
    hold_says(text, "failures=\"1\"");
    hold_says(text, "[N0008]");
    text = COMMAND(&code, "check", "--fail-on=note", "--format", "github", path);
    hold_says(text, "::error file=");
    text = COMMAND(&code, "check", "--format", "github", path);
    hold_says(text, "::notice file=");
    assert_null(strstr(text, "::error"));
    text = COMMAND(&code, "check", "--fail-on=note", "--format", "sarif", path);
    hold_says(text, "\"ruleId\":\"N0008\",\"level\":\"error\"");
    text = COMMAND(&code, "check", "--format", "json", path);
    hold_says(text, "\"undeclared\":[\"grad.param.norm.weight\",");
    COMMAND(&code, "check", "--fail-on", "fatal", path);
    assert_int_equal(code, 2);
    COMMAND(&code, "run", "--fail-on", "note", path);
    assert_int_equal(code, 2);
    /* what a plan lists, it means; a mistake that it expects comes with warnings */
    path = plan_file(
        a, "listed.yaml",
        arena_printf(a, "%sexpect: {equivalent: true, diagnostics: [N0002, N0008]}\n", lines));
    COMMAND(&code, "check", "--fail-on", "note", path);
    assert_int_equal(code, 0);
    path = plan_file(
        a, "meant.yaml",
        arena_printf(a, "%strust: declared\nexpect: {first_wrong: grad.param.norm.weight}\n",
                     lines));
    COMMAND(&code, "check", "--fail-on", "warning", path);
    assert_int_equal(code, 0);
    arena_free(a);
}
static void test_reports(void **state) {
    (void)state;
    Arena *a = arena_new();
    int code;
    const char *lines = WHOLE("tp: 2", "") TITAN, *path = plan_file(a, "lines.yaml", lines);
    const char *well = plan_file(a, "well.yaml", WHOLE("tp: 2", "") TITAN TITAN_NORMS),
               *out = temp_path(a, "out");
    const char *text = COMMAND(&code, "run", path, "-o", out);
    assert_int_equal(code, 0);
    hold_says(text,
              "lines: equivalent, if somebody sums these 5 gradients over tp: "
              "grad.param.norm.weight, grad.param.layers.1.ffn_norm.weight, "
              "grad.param.layers.1.attention_norm.weight and 2 more, no line of the plan does\n");
    text = COMMAND(&code, "run", well, "-o", out);
    hold_says(text, "well: equivalent to the unsharded model\n");
    text = COMMAND(&code, "run", path, "-o", out, "--format", "json");
    hold_says(text, "\"undeclared\":[\"grad.param.norm.weight\",");
    text = COMMAND(&code, "run", path, "-o", out, "--format", "jsonl");
    hold_says(text, "\"undeclared\":[\"grad.param.norm.weight\",");
    hold_says(text, "\"code\":\"N0008\",\"severity\":\"note\"");
    text = COMMAND(&code, "diff", path, well);
    hold_says(text, "undeclared sum");
    text = COMMAND(&code, "explain", path, "grad.param.norm.weight");
    hold_says(text, "no line of the plan asks for this sum");
    text = COMMAND(&code, "explain", path, "norm.weight");
    hold_says(text, "no line of the plan declares a sum of it");
    text = COMMAND(&code, "explain", well, "norm.weight");
    hold_says(text, "the plan declares its sum over tp");
    text = COMMAND(&code, "explain", "N0008");
    hold_says(text, "sequence_parallel");
    text = COMMAND(&code, "list", "styles", "--format", "jsonl");
    hold_says(text, "every rank\",\"gradients\":\"as they are\"");
    hold_says(text, "is a sum over the axis\",\"gradients\":\"summed\"");
    text = picture(a, path, NULL);
    hold_says(text, "collective that no line of the plan asks for");
    hold_says(text, "no line of the plan asks for this sum; without it the gradient is wrong");
    text = picture(a, well, NULL);
    assert_null(strstr(text, "no line of the plan"));
    /* data parallelism by default is a declaration, and the report names it */
    path = plan_file(a, "default.yaml", BLOCK("", "dp: 2, cp: 2, tp: 2", "") TP);
    text = COMMAND(&code, "run", path, "-o", out);
    hold_says(text, "data parallel   ddp over dp*cp, by default");
    text =
        COMMAND(&code, "run", path, "-o", out, "--set", "data_parallel={mode: fsdp, axis: dp*cp}");
    hold_says(text, "data parallel   fsdp over dp*cp\n");
    arena_free(a);
}
/* ---- moves of the forward pass that no line asks for ---- */
/* The plan of TITAN and TITAN_NORMS with another line for w2; NULL: with none. */
static const char *other_w2(Arena *a, const char *line) {
    static const char head[] = WHOLE("tp: 2", "") TITAN, key[] = "  layers.*.feed_forward.w2";
    int before = (int)(strstr(head, key) - head);
    return arena_printf(a, "%.*s" TITAN_NORMS "%s", before, head, line);
}
static const char *hint_with(const Diags *d, const char *code, const char *part) {
    for (int i = 0; i < d->n; i++)
        if (!strcmp(d->item[i].code, code) && strstr(d->item[i].message, part))
            return d->item[i].hint;
    fail_msg("no %s says \"%s\"", code, part);
    return NULL;
}
/* A line that is forgotten, and one that forgets its output: made, told in the verdict with the
 * line that asks for it, in every layer once; the line cures it. */
static void test_forward_moves(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Sets none = {0};
    int code;
    PlanRun r = run_sets(a, other_w2(a, ""), &none, NULL);
    run_must_be(&r, "equivalent");
    assert_int_equal(r.t->n_unasked, 4);
    int said = 0; /* their records say it too, the slices have none */
    for (int i = 0; i < r.t->n_collectives; i++)
        said += r.t->collectives[i].inferred && r.t->collectives[i].pass == PHASE_FORWARD;
    assert_int_equal(said, 2);
    assert_string_equal(r.t->unasked[1], "reduce_scatter of layers.0.mlp.down");
    assert_int_equal(count_notes(r.d, "N0001"), 2);
    const char *cured = "write `layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}`";
    assert_string_equal(hint_with(r.d, "N0001", "reduce_scatter of layers.0.mlp.down and 1 more"),
                        cured);
    assert_string_equal(hint_with(r.d, "N0001", "slice of layers.0.feed_forward.w2.weight"), cured);

    r = run_sets(a, other_w2(a, "  layers.*.feed_forward.w2: rowwise\n"), &none, NULL);
    assert_int_equal(r.t->n_unasked, 2);
    assert_string_equal(r.t->unasked[0], "slice of layers.0.mlp.down");
    assert_string_equal(hint_with(r.d, "N0001", "slice of layers.0.mlp.down and 1 more like it"),
                        "add `output: shard(1)` to the line `layers.*.feed_forward.w2`");

    cured = "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n";
    r = run_sets(a, other_w2(a, cured), &none, NULL);
    assert_int_equal(r.t->n_unasked + r.t->n_undeclared + count_notes(r.d, "N0001"), 0);

    const char *path = plan_file(a, "forgot.yaml", other_w2(a, "")), *out = temp_path(a, "out");
    const char *text = COMMAND(&code, "check", path);
    hold_says(text, "equivalent, if somebody makes 4 moves (no line of the plan does), ");
    assert_int_equal(code, 0);
    COMMAND(&code, "check", "--fail-on", "note", path);
    assert_int_equal(code, 1);
    text = COMMAND(&code, "run", path, "-o", out);
    hold_says(text, "forgot: equivalent, if somebody makes these 4 moves: slice of "
                    "layers.0.feed_forward.w2.weight, reduce_scatter of layers.0.mlp.down, ");
    path = plan_file(a, "both.yaml",
                     WHOLE("tp: 2", "") TITAN "  layers.*.ffn_norm: sequence_parallel\n");
    text =
        COMMAND(&code, "run", path, "-o", out, "--set", "model.layers=1", "--set",
                "plan[norm]=sequence_parallel", "--set", "plan[layers.*.feed_forward.w2]=rowwise");
    hold_says(text, "both: equivalent, if somebody sums this gradient over tp: "
                    "grad.param.layers.0.attention_norm.weight; and makes this move: slice of "
                    "layers.0.mlp.down, no line of the plan does\n");
    text = COMMAND(&code, "run", path, "-o", out, "--format", "json", "--set",
                   "plan[layers.*.feed_forward.w2]=rowwise");
    hold_says(text, "\"unasked\":[\"slice of layers.0.mlp.down\",");
    arena_free(a);
}
/* What no line leads to names its file, and a value is called what `explain` finds. */
static void test_names(void **state) {
    (void)state;
    Arena *a = arena_new();
    int code;
    const char *text = COMMAND(&code, "check", "plans/bugs/39-positions-not-zigzag.yaml", "--set",
                               "expect.equivalent=true");
    assert_int_equal(code, 1);
    hold_says(text, "39-positions-not-zigzag.yaml:11:15: error: "
                    "layers.0.q_rope is wrong on ranks 0-3: ");
    const char *path = plan_file(a, "whole.yaml", WHOLE("tp: 2", "") TITAN TITAN_NORMS);
    const Sets none = {0};
    PlanRun r = run_sets(a, WHOLE("tp: 2", "") TITAN TITAN_NORMS, &none, NULL);
    COMMAND(&code, "explain", path, r.rep.end_to_end_worst);
    assert_int_equal(code, 0);
    arena_free(a);
}
/* A gradient with a declared sum over tp, one over the data and one that nobody declared: the page
 * of weights has all three. */
static void test_weights_page(void **state) {
    (void)state;
    Arena *a = arena_new();
    int inferred = 0, sums = 0;
    const char *path =
        plan_file(a, "three.yaml",
                  BLOCK("", "dp: 2, cp: 2, tp: 2",
                        "") "data_parallel: {mode: fsdp, axis: dp}\nnames: torchtitan\nplan:\n  "
                            "layers.*.attention_norm: sequence_parallel\n"
                            "  layers.*.attention: {style: prepare_module_input, input: "
                            "[shard(1)], desired_input: [replicate]}\n"
                            "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: "
                            "{style: rowwise, output: shard(1)}\n"
                            "  layers.*.ffn_norm: sequence_parallel\n"
                            "  layers.*.feed_forward: {style: prepare_module_input, input: "
                            "[shard(1)], desired_input: [replicate]}\n"
                            "  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: "
                            "{style: rowwise, output: shard(1)}\n");
    const char *text = picture(a, path, "weights");
    for (const char *p = text; (p = strstr(p, "all_reduce over cp")); p++) inferred++;
    for (const char *p = text; (p = strstr(p, "all_reduce over tp")); p++) sums++;
    /* rows: wk and wv share one, and w1 and w3 */
    assert_true(inferred >= 7 && sums >= 2);
    arena_free(a);
}

/* ---- random plans ---- */
/* Under rules, with every undeclared sum dropped, each rank holds what it holds under declared. And
 * the lines that the notes give declare everything. Plans with other moves that nobody asked for,
 * which declared leaves out too, do not count. */
static const char *drops(Arena *a, const Trace *t) {
    Str s = str_new(a);
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].inferred)
            str_addf(&s, "%s{at: \"%d\", do: drop}", s.n ? ", " : "", t->collectives[i].step);
    return arena_printf(a, "[%s]", s.s ? s.s : "");
}
static int same_gradients(Arena *a, const char *one, const char *other, uint64_t seed) {
    SafeTensors *x = golden_tensors(a, one), *y = golden_tensors(a, other);
    int n = 0;
    for (int i = 0; i < x->n; i++) {
        const char *name = x->t[i].name;
        if (strncmp(name, "rank", 4) || !strstr(name, "/grad.")) continue;
        /* believed to be another value, an activation's gradient has no total that could be saved
         */
        if (!strstr(name, "/grad.param.") && !st_find(y, name)) continue;
        int64_t m, k;
        const double *p = tensor_numbers(a, x, name, &m), *q = tensor_numbers(a, y, name, &k);
        bool same = m == k && !memcmp(p, q, (size_t)m * sizeof *p);
        if (!same) fail_msg("seed %llu: %s is not the same", (unsigned long long)seed, name);
        n++;
    }
    st_close(x);
    st_close(y);
    return n;
}
/* A slice that nobody asked for is not made either: then blocks do not fit, and the run ends. */
static bool ended_early(const PlanRun *r) {
    for (int i = 0; i < r->d->n; i++)
        if (strstr(r->d->item[i].message, "cannot be computed any further")) return true;
    return false;
}
/* Gradients are compared by bits. Where they are summed over ranks in each micro-batch, the two of
 * a tied weight are added before the micro-batches are; where that sum is not made, after. */
static const char *summed_once(Arena *a, const char *text) {
    static const char *const others[] = {"grad_sync: microbatch", "grad_sync: scatter"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *at = strstr(text, others[i]);
        if (at)
            return arena_printf(a, "%.*sgrad_sync: step%s", (int)(at - text), text,
                                at + strlen(others[i]));
    }
    return text;
}
static void test_random_plans(void **state) {
    (void)state;
    enum { SEEDS = 3000 };
    int seeds = sample_of(SEEDS, "random plans"), held = 0, sums = 0, gradients = 0, cures = 0,
        twice = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)seeds; seed++) {
        Arena *a = arena_new();
        RandomPlan g;
        const char *text = summed_once(a, random_plan(a, seed, &g));
        Sets none = {0}, dropped = {0}, declared = {0}, cured = {0};
        PlanRun r = {0};
        if (g.pass == 1 && !g.declared) r = run_sets(a, text, &none, NULL);
        if (r.t && r.t->n_undeclared && !run_has(&r, "N0001")) {
            const char *one = temp_path(a, "one.safetensors"),
                       *other = temp_path(a, "other.safetensors");
            add_set(&dropped, "faults", drops(a, r.t));
            add_set(&declared, "trust", "declared");
            PlanRun x = run_sets(a, text, &dropped, one), y = run_sets(a, text, &declared, other);
            assert_true(x.t && y.t);
            if (ended_early(&y)) {
                arena_free(a);
                continue;
            }
            if (count_inferred(y.t))
                fail_msg("seed %llu: declared infers", (unsigned long long)seed);
            gradients += same_gradients(a, one, other, seed);
            held++, sums += r.t->n_undeclared;
        }
        bool wild = g.form == RANDOM_WILD; /* one line changed, another is due elsewhere */
        bool curable = r.t && r.t->n_undeclared && !wild && cure(a, r.d, &cured);
        if (curable) {
            PlanRun well = run_sets(a, text, &cured, NULL);
            /* what a module's line now declares leaves its parameters' sums to be told */
            if (well.t && well.t->n_undeclared && cure(a, well.d, &cured))
                well = run_sets(a, text, &cured, NULL), twice++;
            bool good = run_is(&well, "equivalent") && !well.t->n_undeclared;
            if (!good) printf("seed %llu\n%s", (unsigned long long)seed, text);
            if (!good) run_print(&r);
            if (!good) run_print(&well);
            assert_true(good);
            cures++;
        }
        arena_free(a);
    }
    printf("%d random plans with %d undeclared sums: %d local gradients are those of trust: "
           "declared; %d plans cured by their notes, %d of them by notes on what was cured\n",
           held, sums, gradients, cures, twice);
    assert_true(seeds < SEEDS || (held > 20 && cures > 40));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),         cmocka_unit_test(test_two_collectives),
        cmocka_unit_test(test_fail_on),       cmocka_unit_test(test_reports),
        cmocka_unit_test(test_forward_moves), cmocka_unit_test(test_names),
        cmocka_unit_test(test_weights_page),  cmocka_unit_test(test_random_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
