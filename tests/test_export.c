/* Plans as PyTorch's calls: what is written is read back by the importer and lowers to the program
 * of the plan it came from; what PyTorch cannot say is refused at its place, nothing is left out.
 */
#include "base/file.h"
#include "export/export.h"
#include "import/import.h"
#include "support/sandbox.h"
#include "support/exported.h"
#include "support/support.h"
#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a program as text ---- */
/* Steps without their numbers and operands' names: those are of the naming scheme. `sp` is another
 * name of tp. Without gradients, modules may share a use of a whole value or not: nothing moves. */
static const char *program_of(const char *file, const char *text) {
    char *dump = NULL, *save = NULL;
    size_t n = 0;
    PipelineOptions o = {.dump = "lower", .dump_to = open_memstream(&dump, &n), .threads = 1};
    PlanRun r = plan_run_with(arena, file, text, &o);
    fclose(o.dump_to);
    if (!r.t || diags_errors(r.d)) {
        run_print(&r);
        fail_msg("%s does not lower:\n%s", file, text);
    }
    bool forward = r.rep.plan->pass == PASS_FORWARD;
    Str out = str_new(arena);
    for (char *l = strtok_r(dump, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        char *reads = strstr(l, "  reads ");
        if (reads) *reads = 0;
        bool identity = strstr(l, "identity of ") != NULL;
        if (identity && forward) continue;
        char *name = identity ? NULL : strstr(l, "over sp");
        if (name) memcpy(name, "over tp", 7);
        str_addf(&out, "%s\n", l + strspn(l, " 0123456789"));
    }
    free(dump);
    return out.s;
}
/* Top-level keys of a plan that a table of styles is about. */
static bool of_table(const char *line) {
    static const char *const keys[] = {"mesh:",   "groups:", "names:",    "styles:",        "plan:",
                                       "recipe:", "expect:", "boundary:", "data_parallel:", NULL};
    for (int i = 0; keys[i]; i++)
        if (strncmp(line, keys[i], strlen(keys[i])) == 0) return true;
    return false;
}
/* The lines of those keys, or the lines of all others. */
static void add_lines(Str *out, const char *text, bool table) {
    bool in = false;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        if (*p != ' ' && *p != '#' && n) in = of_table(p);
        if (in == table && n && *p != '#') str_addf(out, "%.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}
/* What import makes of the export, around the model and data of the plan itself. */
static const char *back(const char *text, const char *exported) {
    Diags *d = diags_new(arena);
    ImportInput in = {.framework = "torch",
                      .path = "plan.py",
                      .text = exported,
                      .n = strlen(exported),
                      .model = "llama3-8b",
                      .tp = -1,
                      .ep = -1,
                      .dir = "."};
    ImportedPlan p = import_plan(arena, d, &in);
    if (!p.text) fail_msg("%s\nis not imported:\n%s", exported, diags_text(arena, d));
    Str out = str_new(arena);
    add_lines(&out, text, false);
    add_lines(&out, p.text, true);
    return out.s;
}
/* Does Python know every name that is called? Those of PyTorch and torchtitan come by an import. */
static void hold_imports(const char *exported) {
    static const char *const others[] = {"model", "loss_fn", "backward", "import", NULL};
    for (const char *p = strchr(exported, '('); p; p = strchr(p + 1, '(')) {
        const char *from = p;
        while (from > exported && (isalnum((unsigned char)from[-1]) || from[-1] == '_')) from--;
        const char *name = arena_strndup(arena, from, (size_t)(p - from));
        bool known = from == p;
        for (int i = 0; others[i]; i++) known |= !strcmp(name, others[i]);
        if (!known && !strstr(exported, arena_printf(arena, "\n    %s,\n", name)))
            fail_msg("'%s' is called and not imported:\n%s", name, exported);
    }
}
static void round_trip(const char *file, const char *text) {
    Exported x = export_to(arena, file, text, "torch");
    if (!x.text) fail_msg("%s is refused:\n%s", file, x.said);
    hold_imports(x.text);
    const char *again = back(text, x.text);
    const char *was = program_of(file, text), *is = program_of(file, again);
    if (strcmp(was, is) != 0) fail_msg("%s:\n%s\nbecame\n%s\nby\n%s", file, was, is, x.text);
    assert_true(strlen(was) > 50);
}

/* ---- every plan that ships ---- */
static const struct {
    const char *file, *refused; /* NULL: PyTorch can say it */
} shipped[] = {
    {"01-column-row-mlp.yaml", NULL},
    {"02-toymodel-2.yaml", NULL},
    {"02-toymodel-4.yaml", NULL},
    {"03-llama3-8b-tp2.yaml", NULL},
    {"04-llama3-8b-tp4.yaml", NULL},
    {"05-llama3-8b-tp4-sp.yaml", NULL},
    {"06-llama3-8b-dp2-tp2-sp.yaml", NULL},
    {"07-llama3-8b-cp4.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"08-llama3-8b-cp4-zigzag.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"09-llama3-8b-dp2-cp2-tp2.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"10-llama3-70b-tp8.yaml", NULL},
    {"11-llama3-70b-tp16.yaml", "it has no copies of KV heads"},
    {"12-qwen3-8b-tp16.yaml", "it has no copies of KV heads"},
    {"13-qwen3-0.6b-tp4.yaml", "does what 'replicated_with_grad_allreduce' does"},
    {"14-qwen2-bias-tp2.yaml", NULL},
    {"15-megatron-tp-sp.yaml", NULL},
    {"16-hf-llama-tp4.yaml", NULL},
    {"17-own-styles.yaml", "no style of PyTorch's does what 'by_head' does"},
    {"18-llama3-8b-backward.yaml", NULL},
    {"19-llama3-8b-fsdp4.yaml",
     "fully_shard is written for each layer: a layer is gathered at a time"},
    {"20-llama3-8b-fsdp-tp.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"21-llama3-8b-recompute.yaml", "`recompute: block` is code of the model, no style"},
    {"22-llama3-8b-dp2-cp2-tp2-backward.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"30-mixtral-8x7b-ep-dp-cp.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"31-mixtral-8x7b-tp.yaml", "TensorParallel has no argument for `output`"},
    {"33-qwen3-30b-a3b-ep.yaml", "a mesh of one axis is wanted for data parallelism"},
    {"32-mixtral-8x7b-ep-masked.yaml", "ExpertParallel has no argument for `output`"},
    {"34-llama4-scout-torchtitan.yaml", NULL},
    {"35-mixtral-8x7b-all-gather.yaml", "PyTorch has no placement for this"},
    {"36-mixtral-8x7b-capacity.yaml", "would take the experts of different ranks for copies"},
    {"37-qwen3-30b-a3b-ep-etp.yaml", "does what 'replicated_with_grad_allreduce' does"},
    {"38-llama4-scout-reorderer.yaml", "takes a mesh of one axis"},
    {"39-mixtral-8x7b-hf-ep.yaml", "does what 'ep_dispatch_experts' does"},
    {"23-llama3-8b-packed.yaml", "no style of PyTorch's does what 'packed_colwise' does"},
    {"40-llama3-8b-ulysses4.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"41-llama3-8b-ring4-zigzag.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"42-llama3-8b-usp.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"43-llama4-maverick-six-diagrams.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"44-llama3-8b-packed-documents.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"45-llama3-8b-pp4-1f1b.yaml", "no table of styles cuts the layers into stages"},
    {"46-llama3-8b-pp2-zb-v.yaml", "no table of styles cuts the layers into stages"},
    {"47-llama3-8b-pp2-dp2-tp2.yaml", "no table of styles cuts the layers into stages"},
    {"48-llama3.2-1b-pp2-tied.yaml", "no table of styles cuts the layers into stages"},
    {"49-llama3-8b-pp2-interleaved.yaml", "no table of styles cuts the layers into stages"},
    {"50-llama3-8b-zero1.yaml", "zero1 is the optimizer's, which is not exported"},
    {"51-llama3-8b-zero2-megatron.yaml", "zero2 is the optimizer's, which is not exported"},
    {"52-llama3-8b-pp4-dualpipe.yaml", "no table of styles cuts the layers into stages"},
    {"53-llama3.2-1b-pp2-tied-pair.yaml", "no table of styles cuts the layers into stages"},
    {"54-deepseek-v3-latent-ring4.yaml", "no table of styles cuts the sequence over 'cp'"},
    {"55-llama3-8b-pp2-tp2-recompute-stage.yaml", "no table of styles cuts the layers into stages"},
    {"56-gpt-oss-20b-tp2-ep2.yaml", "does what 'ep_dispatch_experts' does"},
};
enum { N_SHIPPED = sizeof shipped / sizeof *shipped };
static void test_shipped(void **state) {
    (void)state;
    for (int i = 0; i < N_SHIPPED; i++) {
        const char *file = arena_printf(arena, "plans/%s", shipped[i].file),
                   *text = shipped_text(arena, file);
        if (!shipped[i].refused) {
            round_trip(file, text);
            continue;
        }
        export_refused(arena, file, text, "torch", shipped[i].refused);
    }
}
static const char *shipped_file(int i) { return shipped[i].file; }
static void test_all_shipped_are_listed(void **state) {
    (void)state;
    shipped_listed(shipped_file, N_SHIPPED);
}

/* ---- what no shipped plan shows ---- */
#define MODEL                                                                                      \
    "model: {preset: llama3-8b, layers: 2, shrink: 16, parts: [embedding, blocks, norm, head, "    \
    "loss]}\ndata: {batch: 4, sequence: 16}\npass: backward\n"
#define STYLES                                                                                     \
    "plan:\n"                                                                                      \
    "  tok_embeddings: {style: rowwise, output: shard(1)}\n"                                       \
    "  layers.*.attention_norm: sequence_parallel\n"                                               \
    "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "       \
    "[replicate]}\n"                                                                               \
    "  layers.*.attention.w[qkv]: colwise\n"                                                       \
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"                                \
    "  layers.*.ffn_norm: sequence_parallel\n"                                                     \
    "  layers.*.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: "    \
    "[replicate]}\n"                                                                               \
    "  layers.*.feed_forward.w[13]: colwise\n"                                                     \
    "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n"                             \
    "  norm: sequence_parallel\n"                                                                  \
    "  output: {style: colwise_gather_output, input: shard(1)}\n"
static void test_data_parallel(void **state) {
    (void)state;
    static const char *const ways[][2] = {
        {"mesh: {dp: 2, tp: 2}\ndata_parallel: {mode: fsdp, axis: dp, unit: block, grad_order: "
         "tp_first}\n",
         "fully_shard(model, mesh=mesh[\"dp\"], reshard_after_forward=True)"},
        {"mesh: {dp: 2, tp: 2}\ndata_parallel: {mode: fsdp, axis: dp, unit: block, reshard: false, "
         "grad_order: tp_first}\n",
         "fully_shard(layer, mesh=mesh[\"dp\"], reshard_after_forward=False)"},
        {"mesh: {dp_r: 2, dp_s: 2, tp: 2}\ndata_parallel: {mode: hsdp, replicate: dp_r, shard: "
         "dp_s, unit: block, grad_order: tp_first}\n",
         "mesh=mesh[\"dp_r\", \"dp_s\"]"},
        {"mesh: {dp: 2, tp: 2}\n", "DistributedDataParallel(model, device_mesh=mesh[\"dp\"])"},
    };
    for (int i = 0; i < 4; i++) {
        const char *text = arena_printf(arena, "%s%s%s", MODEL, ways[i][0], STYLES);
        Exported x = export_to(arena, "dp.yaml", text, "torch");
        if (!x.text || !strstr(x.text, ways[i][1]))
            fail_msg("no '%s' in\n%s%s", ways[i][1], x.text ? x.text : "", x.said);
        assert_non_null(strstr(x.text, "# PyTorch averages these gradients."));
        round_trip("dp.yaml", text);
    }
}
/* One layer's number, another axis, a style with other arguments. */
static void test_lines(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"mesh: {tp: 2}\nplan:\n  layers.1.feed_forward.w[13]: {style: colwise, boundary: "
         "per_module}\n  layers.1.feed_forward.w2: rowwise\n",
         "\"layers.1.feed_forward.w2\": RowwiseParallel()"},
        {"mesh: {tp: 2, ep: 2}\nplan:\n"
         "  layers.*.feed_forward.w[13]: {style: colwise, axis: ep, boundary: per_module}\n"
         "  layers.*.feed_forward.w2: {style: rowwise, axis: ep}\n"
         "  layers.*.attention.w[qkv]: {style: colwise, boundary: per_module}\n"
         "  layers.*.attention.wo: rowwise\n",
         "    mesh[\"ep\"],\n"},
        {"mesh: {tp: 2}\nplan:\n  tok_embeddings: embedding_rowwise\n  output: "
         "colwise_gather_output\n",
         "\"output\": ColwiseParallel(output_layouts=Replicate())"},
        /* RowwiseParallel would take whole ids for cut ones */
        {"mesh: {tp: 2}\nplan:\n  tok_embeddings: rowwise\n",
         "\"tok_embeddings\": RowwiseParallel(input_layouts=Replicate())"},
        {"mesh: {tp: 2}\nplan:\n  output: {style: colwise, use_local_output: false}\n  loss: "
         "loss_parallel\n",
         "with loss_parallel():\n    loss = loss_fn(model(inputs), labels)\n    loss.backward()\n"},
    };
    for (int i = 0; i < 5; i++) {
        const char *text = arena_printf(arena, "%s%s", MODEL, rows[i][0]);
        Exported x = export_to(arena, "lines.yaml", text, "torch");
        if (!x.text || !strstr(x.text, rows[i][1]))
            fail_msg("no '%s' in\n%s%s", rows[i][1], x.text ? x.text : "", x.said);
        round_trip("lines.yaml", text);
    }
}
static void test_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"mesh: {tp: 2}\nplan:\n  layers.*.feed_forward.w[13]: colwise\n"
         "  layers.*.feed_forward.w2: rowwise\n",
         "lines.yaml:6:32: error: PyTorch sums the gradient of a shared input at each"},
        {"mesh: {tp: 2}\nplan:\n  layers.*.feed_forward.w1.weight: {weight: shard(0)}\n"
         "  layers.*.feed_forward.w3: colwise\n  layers.*.feed_forward.w2: rowwise\n",
         "PyTorch's styles speak of modules, not of one parameter"},
        {"mesh: {tp: 2}\nsave_gathered: false\nplan:\n  output: colwise_gather_output\n",
         "lines.yaml:5:16: error: what PyTorch's styles gather is kept"},
        {"mesh: {tp: 2}\n", "nothing of this plan is a table of styles"},
        /* PyTorch raises for it; nobody makes the move, the sum; the claim does not hold */
        {"mesh: {tp: 3}\nplan:\n  layers.*.feed_forward.w[13]: {style: colwise, boundary: "
         "per_module}\n  layers.*.feed_forward.w2: rowwise\n",
         "PyTorch does not do this: the input of layers.0.feed_forward.w2 comes as plain local"},
        {"mesh: {tp: 2}\nplan:\n  layers.*.feed_forward.w1: {style: colwise, boundary: "
         "per_module}\n"
         "  layers.*.feed_forward.w2: rowwise\n",
         "a table holds only what lines ask for: the slice of layers.0.mlp.up"},
        {"mesh: {tp: 2}\nplan:\n  layers.*.feed_forward: {style: prepare_module_input, input: "
         "[shard(1)], desired_input: [replicate]}\n  layers.*.feed_forward.w[13]: colwise\n"
         "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n"
         "  layers.*.attention.w[qkv]: {style: colwise, input: shard(1), boundary: per_module}\n"
         "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
         "  tok_embeddings: {style: rowwise, output: shard(1)}\n"
         "  output: {style: colwise_gather_output, input: shard(1)}\n",
         "a table holds only what lines declare: the sum of grad.param.norm.weight"},
        {"mesh: {tp: 2}\ntrust: declared\nplan:\n  layers.*.feed_forward.w2: {style: rowwise, "
         "input: "
         "shard(-1), output: replicate}\n",
         "this plan does not hold: "},
    };
    for (int i = 0; i < 8; i++) {
        Exported x =
            export_to(arena, "lines.yaml", arena_printf(arena, "%s%s", MODEL, rows[i][0]), "torch");
        if (x.text) fail_msg("written:\n%s", x.text);
        if (!strstr(x.said, rows[i][1])) fail_msg("no '%s' in\n%s", rows[i][1], x.said);
    }
    assert_string_equal(export_python_text(arena, "a\"b\\c\n"), "\"a\\\"b\\\\c\\n\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shipped, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_all_shipped_are_listed, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_data_parallel, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_lines, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_refused, sandbox_new, sandbox_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
