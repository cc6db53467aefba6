/* explain --hooks and params --notation torch: tables 2 to 7 of the write-up on Llama 4 Scout under
 * torchtune's training plan with FSDP (dp_shard 2 x tp 2), from the program; and what other systems
 * have in place of hooks. Where PyTorch itself ran, test_torch holds the same records to it. */
#include "cli/hooks.h"
#include "support/child.h"
#include "support/support.h"
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

/* The table's model at its full size, one of its layers (the write-up says 32 layers; Scout has
 * 48). The decoder's PrepareModuleInput cuts what the embedding hands it: here that is said where
 * the embedding hands it out. Nothing is sent there, it is a local slice; the write-up says that
 * the tensor is replicated to cuda 0 and 2 first, which are dp_shard's ranks and not tp's. */
static const char scout_file[] = "examples/errata/scout-dp2-tp2.yaml";

/* The same before FSDP is applied. */
static const char *tp_only(Arena *a, const char *scout) {
    const char *fsdp = "data_parallel: {mode: fsdp, axis: dp_shard, unit: block}\n",
               *at = strstr(scout, fsdp), *mesh = strstr(scout, "{dp_shard: 2, tp: 2}");
    return arena_printf(a, "%.*s{tp: 2}%.*s%s", (int)(mesh - scout), scout, (int)(at - mesh - 20),
                        mesh + 20, at + strlen(fsdp));
}

/* ---- tables 2, 3 and 5 ---- */
static const struct {
    const char *name, *global; /* as `params` writes it */
    bool tp;                   /* table 3: DTensor on cuda [0, 1]; else it stays a Parameter */
    const char *both;          /* table 5: the placements on (dp_shard, tp), or on dp_shard alone */
} parameters[] = {
    {"tok_embeddings.weight", "[202048, 5120]", false, "(Shard(0),)"},
    {"layers.0.attn.q_proj.weight", "[5120, 5120]", true, "(_StridedShard(0, sf=2), Shard(0))"},
    {"layers.0.attn.k_proj.weight", "[1024, 5120]", true, "(_StridedShard(0, sf=2), Shard(0))"},
    {"layers.0.attn.v_proj.weight", "[1024, 5120]", true, "(_StridedShard(0, sf=2), Shard(0))"},
    {"layers.0.attn.output_proj.weight", "[5120, 5120]", true, "(Shard(0), Shard(1))"},
    {"layers.0.mlp.experts.gate_proj", "[16, 5120, 8192]", true, "(Shard(0), Shard(2))"},
    {"layers.0.mlp.experts.down_proj", "[16, 8192, 5120]", true, "(Shard(0), Shard(1))"},
    {"layers.0.mlp.experts.up_proj", "[16, 5120, 8192]", true, "(Shard(0), Shard(2))"},
    {"layers.0.mlp.router.gate.weight", "[16, 5120]", true, "(Shard(0), Replicate())"},
    {"layers.0.mlp.shared_expert.w1.weight", "[8192, 5120]", false, "(Shard(0),)"},
    {"layers.0.mlp.shared_expert.w2.weight", "[5120, 8192]", false, "(Shard(0),)"},
    {"layers.0.mlp.shared_expert.w3.weight", "[8192, 5120]", false, "(Shard(0),)"},
    {"layers.0.sa_norm.scale", "[5120]", true, "(Shard(0), Replicate())"},
    {"layers.0.mlp_norm.scale", "[5120]", true, "(Shard(0), Replicate())"},
    {"norm.scale", "[5120]", true, "(Shard(0), Replicate())"},
    {"output.weight", "[202048, 5120]", true, "(_StridedShard(0, sf=2), Shard(0))"},
};
enum { N_PARAMETERS = sizeof parameters / sizeof *parameters };

/* Nested lists as `params` and PyTorch write them: "[[0, 1], [2, 3]]". */
static const char *list_text(Arena *a, const Json *x) {
    if (!x || x->kind == JSON_NULL) return "";
    if (x->kind == JSON_STRING) return x->s;
    if (x->kind != JSON_ARRAY) return arena_printf(a, "%lld", (long long)x->i);
    Str s = str_new(a);
    str_add(&s, "[");
    for (int i = 0; i < x->n; i++) str_addf(&s, "%s%s", i ? ", " : "", list_text(a, x->item[i]));
    str_add(&s, "]");
    return s.s;
}
static void hold_text(Arena *a, const Json *row, const char *key, const char *want) {
    const char *have = list_text(a, json_get(row, key));
    if (strcmp(have, want))
        fail_msg("%s: %s is %s, want %s", json_get(row, "name")->s, key, have, want);
}
static const Json *row_of(const Json *rows, const char *name) {
    for (int i = 0; i < rows->n; i++)
        if (!strcmp(json_get(rows->item[i], "name")->s, name)) return rows->item[i];
    fail_msg("no row of %s", name);
    return NULL;
}
static const Json *params_of(Arena *a, const char *plan) {
    Ended e = child_run(a, &(Child){.words = WORDS("params", "-q", "--notation", "torch",
                                                   "--format", "json", plan)});
    const char *why = "";
    int line, column;
    const Json *j = json_parse(a, e.out, strlen(e.out), &why, &line, &column);
    if (e.code || !j) fail_msg("%s%s", e.err, why);
    return json_get(j, "rows");
}
static void test_parameters(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *tp = temp_path(a, "scout_tp.yaml");
    child_write(tp, tp_only(a, child_read(a, scout_file, NULL)));
    const Json *five = params_of(a, scout_file), *three = params_of(a, tp);
    assert_int_equal(five->n, N_PARAMETERS);
    for (int i = 0; i < N_PARAMETERS; i++) {
        const Json *x = row_of(five, parameters[i].name), *y = row_of(three, parameters[i].name);
        bool cut = parameters[i].tp;
        hold_text(a, x, "global", parameters[i].global);
        hold_text(a, x, "notation", parameters[i].both);
        hold_text(a, x, "mesh", cut ? "dp_shard, tp" : "dp_shard");
        /* the write-up's prose says cuda 0 and 1 of the embedding; its table has these */
        hold_text(a, x, "devices", cut ? "[[0, 1], [2, 3]]" : "[0, 2]");
        hold_text(a, y, "mesh", cut ? "tp" : "");
        hold_text(a, y, "devices", cut ? "[0, 1]" : "");
        if (!cut) hold_text(a, y, "notation", "Parameter");
    }
    arena_free(a);
}

/* ---- tables 4, 6 and 7 ---- */
static const struct {
    const char *module;
    const char *before, *after; /* whose hook it is; NULL: the tables have none */
    const char *moves_in, *moves_out;
    const char *style; /* table 4, in our words */
} hooks[] = {
    {"(root)", "fsdp", "fsdp", "all_gather(dp_shard) of tok_embeddings.weight and 2 more", NULL,
     "fully_shard"},
    {"layers.0", "fsdp", "fsdp", "all_gather(dp_shard) of layers.0.sa_norm.scale and 12 more", NULL,
     "fully_shard"},
    /* in place of the table's `decoder` */
    {"tok_embeddings", NULL, "style", NULL, "slice(tp) of embed", "prepare_module_output"},
    {"layers.0.attn", "style", NULL, "all_gather(tp) of layers.0.input_norm", NULL,
     "prepare_module_input"},
    {"layers.0.attn.q_proj", "api", "api", NULL, NULL, "colwise"},
    {"layers.0.attn.k_proj", "api", "api", NULL, NULL, "colwise"},
    {"layers.0.attn.v_proj", "api", "api", NULL, NULL, "colwise"},
    {"layers.0.attn.output_proj", "api", "api", NULL, "reduce_scatter(tp) of layers.0.o_proj",
     "rowwise"},
    {"layers.0.mlp", "style", "style", "all_gather(tp) of layers.0.post_attn_norm",
     "reduce_scatter(tp) of layers.0.moe.output", "prepare_module_input_output"},
    {"layers.0.mlp.experts", "api", "api", NULL, NULL, "expert_tensor_parallel"},
    {"layers.0.mlp.router.gate", "api", "api", NULL, NULL, "no_parallel"},
    {"layers.0.sa_norm", "api", "api", NULL, NULL, "sequence_parallel"},
    {"layers.0.mlp_norm", "api", "api", NULL, NULL, "sequence_parallel"},
    {"norm", "api", "api", NULL, NULL, "sequence_parallel"},
    {"output", "api", "api", "all_gather(tp) of final_norm", "all_gather(tp) of logits", "colwise"},
};
enum { N_HOOKS = sizeof hooks / sizeof *hooks };

static const Trace *trace_of(Arena *a, const char *text) {
    PlanRun r = plan_run(a, "plan.yaml", text, false);
    if (!r.t) fail_msg("%s", r.d->n ? r.d->item[0].message : "no trace");
    return r.t;
}
/* The table's cells of a row: module, hook, by, style, does. */
static const Cell *hook_row(const Table *t, const char *module, const char *hook) {
    for (int i = 0; i < t->n_rows; i++)
        if (!strcmp(t->row[i][0].text, module) && !strcmp(t->row[i][1].text, hook))
            return t->row[i];
    return NULL;
}
static void hold_hook(const Table *t, const char *module, const char *hook, const char *by,
                      const char *style, const char *does) {
    const Cell *r = hook_row(t, module, hook);
    if (!r != !by) fail_msg("%s: %s hook %s", module, by ? "no" : "a", hook);
    if (!by) return;
    if (!r[2].text || strcmp(r[2].text, by)) fail_msg("%s: %s by %s", module, hook, r[2].text);
    if (!r[3].text || strcmp(r[3].text, style)) fail_msg("%s: style %s", module, r[3].text);
    bool gives = !strcmp(by, "fsdp") && !strcmp(hook, "after");
    if (!gives && strcmp(r[4].text, does ? does : "nothing moves"))
        fail_msg("%s: %s does %s", module, hook, r[4].text);
}
static void test_hooks(void **state) {
    (void)state;
    Arena *a = arena_new();
    Cli c = {.arena = a, .format = "text"};
    const Trace *trace = trace_of(a, child_read(a, scout_file, NULL));
    Table t = table_hooks(&c, trace, NULL);
    int n = 0, inside = 0;
    for (int i = 0; i < N_HOOKS; i++) {
        hold_hook(&t, hooks[i].module, "before", hooks[i].before, hooks[i].style,
                  hooks[i].moves_in);
        hold_hook(&t, hooks[i].module, "after", hooks[i].after, hooks[i].style, hooks[i].moves_out);
        n += (hooks[i].before != NULL) + (hooks[i].after != NULL);
    }
    for (int i = 0; i < t.n_rows; i++) inside += !strcmp(t.row[i][1].text, "inside");
    /* where the shared expert, whole on each rank, is taken for a term of a sum */
    assert_int_equal(inside, 1);
    assert_non_null(strstr(hook_row(&t, "layers.0.mlp", "inside")[4].text, "moe.shared.down"));
    assert_int_equal(t.n_rows, n + inside);
    Table one = table_hooks(&c, trace, "attn.output_proj");
    assert_int_equal(one.n_rows, 2);
    arena_free(a);
}
/* Others' modules move too: by the library, or by themselves. */
static void test_others(void **state) {
    (void)state;
    static const struct {
        const char *recipe, *names, *module, *by;
    } cases[] = {
        {"hf-llama", "hf", "model.layers.0.self_attn.o_proj", "transformers"},
        {"megatron", "megatron", "decoder.layers.0.self_attention.linear_proj", NULL},
        {"torchtitan-llama3", "torchtitan", "layers.0.attention.wo", "api"},
    };
    Arena *a = arena_new();
    Cli c = {.arena = a, .format = "text"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Trace *trace = trace_of(
            a, arena_printf(a,
                            "model: {preset: llama3-8b, layers: 1, shrink: 16}\ndata: {sequence: "
                            "8, dtype: f32}\nmesh: {tp: 2}\nnames: %s\nrecipe: %s\n",
                            cases[i].names, cases[i].recipe));
        Table t = table_hooks(&c, trace, NULL);
        const Cell *r = hook_row(&t, cases[i].module, "after");
        if (!r || !strstr(r[4].text, "(tp) of layers.0.o_proj")) fail_msg("%s", cases[i].recipe);
        if (!cases[i].by != !r[2].text || (r[2].text && strcmp(r[2].text, cases[i].by)))
            fail_msg("%s: by %s", cases[i].recipe, r[2].text);
    }
    arena_free(a);
}
/* The command: a trace says the same as its plan; a module that has no hook is told. */
static void test_command(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *plan = "plans/06-llama3-8b-dp2-tp2-sp.yaml", *trace = temp_path(a, "hooks.jsonl");
    Ended first =
        child_run(a, &(Child){.words = WORDS("explain", "--hooks", "--trace", trace, plan)});
    child_expect(&first, 0, "");
    assert_non_null(strstr(first.out, "reduce_scatter(tp) of layers.0.o_proj"));
    Ended again = child_run(a, &(Child){.words = WORDS("explain", trace, "--hooks")});
    child_expect(&again, 0, "");
    assert_string_equal(first.out, again.out);
    Ended none = child_run(a, &(Child){.words = WORDS("explain", plan, "--hooks", "attnetion")});
    child_expect(&none, 3, "nothing runs before or after a module 'attnetion'");
    static const char *const hints[][2] = {
        {"layers.0.o_proj", "without a name, lists the modules"}, /* a value: it has no hook */
        {"layers.0.attention.woo", "did you mean 'layers.0.attention.wo'?"}};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        Ended near =
            child_run(a, &(Child){.words = WORDS("explain", plan, "--hooks", hints[i][0])});
        child_expect(&near, 3, hints[i][1]);
    }
    Ended ring = child_run(
        a, &(Child){.words = WORDS("explain", "plans/41-llama3-8b-ring4-zigzag.yaml", "--hooks")});
    child_expect(&ring, 0, "");
    assert_non_null(strstr(ring.out, "shift(cp) of layers.0.k_rope, 3 times; shift(cp) of "
                                     "layers.0.v_proj, 3 times"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parameters),
                                       cmocka_unit_test(test_hooks), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_command)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
