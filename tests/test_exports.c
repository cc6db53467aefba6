/* Plans as Hugging Face's, JAX's, Megatron's and torchtitan's own: what is written is imported by
 * the command a user would write, and makes the same collectives, by what they are, how many bytes
 * they carry and between whom, and the same local shapes; a table says which shipped plan each of
 * them can say, and why not the others. `export` compares programs by itself: here traces are, of
 * which it knows nothing. */
#include "base/file.h"
#include "export/export.h"
#include "import/import.h"
#include "support/sandbox.h"
#include "support/exported.h"
#include "support/support.h"
#include <inttypes.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_TO = 4 };
static const char *const to[N_TO] = {"hf", "jax", "megatron", "torchtitan"};

/* ---- there ---- */

/* ---- and back ---- */
/* Top-level keys that are not the framework's to say. */
static bool stays(const char *line) {
    static const char *const keys[] = {
        "name:", "model:", "pass:", "loss:", "optimizer:", "hardware:", "moe:", "normalise", NULL};
    for (int i = 0; keys[i]; i++)
        if (strncmp(line, keys[i], strlen(keys[i])) == 0) return true;
    return false;
}
static const char *value_of(const char *text, const char *key) {
    const char *at = strncmp(text, key, strlen(key)) == 0
                         ? text
                         : strstr(text, arena_printf(arena, "\n%s", key));
    if (!at) return NULL;
    at += *at == '\n';
    return arena_strndup(arena, at, strcspn(at, "\n"));
}
/* `data` is the plan's, with what the framework cuts of it. */
static const char *data_of(const char *plan, const char *imported) {
    const char *mine = value_of(plan, "data:"), *their = value_of(imported, "data:"),
               *cut = their ? strstr(their, ", cut: {") : NULL;
    if (!cut) return mine;
    return arena_printf(arena, "%.*s%s", (int)strlen(mine) - 1, mine, cut);
}
/* Lines of modules that the plan's model has not got are left out: they speak of the whole model.
 */
static bool outside(const char *plan, const char *line) {
    bool whole = strstr(plan, "parts: [embedding, blocks, norm, head, loss]") != NULL;
    const char *s = line + strspn(line, " ");
    return !whole && *line == ' ' && !strstr(s, "layers.");
}
static void add_lines(Str *out, const char *plan, const char *text, bool mine) {
    bool in = false;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        const char *line = arena_strndup(arena, p, n);
        if (*p != ' ' && *p != '#' && n)
            in = stays(line) == mine && strncmp(line, "data:", 5) != 0 &&
                 strncmp(line, "expect:", 7) != 0;
        bool skip = (!mine && outside(plan, line)) || strncmp(line, "name:", 5) == 0;
        if (in && n && *p != '#' && !skip) str_addf(out, "%s\n", line);
        p += n + (p[n] == '\n');
    }
}
/* The plan again: the framework's keys from its text, by `import`, around the plan's own model. */
static const char *back(const Exported *x, const char *plan, const char *framework) {
    Diags *d = diags_new(arena);
    const Plan *p = x->run.rep.plan;
    bool hf = strcmp(framework, "hf") == 0;
    ImportInput in = {.framework = framework,
                      .path = "file",
                      .text = x->text,
                      .n = strlen(x->text),
                      .model = p->preset ? p->preset : "llama3-8b",
                      .tp = -1,
                      .ep = -1,
                      .full = p->pipeline.loc.file != NULL,
                      .dir = "."};
    if (in.full && !strstr(x->text, "--num-layers "))
        sscanf(strstr(plan, "layers: "), "layers: %" SCNd64, &in.layers);
    if (hf) {
        const char *file = temp_path(arena, "tp_plan.json");
        assert_true(file_write(diags_new(arena), file, x->text, strlen(x->text)));
        in.path = NULL, in.text = "", in.n = 0, in.tp_plan = file;
    }
    Str mesh = str_new(arena);
    for (int i = 0; i < p->n_axes; i++)
        str_addf(&mesh, "%s%s=%lld", i ? "," : "", p->axes[i].name, (long long)p->axes[i].size);
    if (!p->n_axes) str_add(&mesh, "dp=1");
    if (hf || strcmp(framework, "jax") == 0) in.mesh = mesh.s;
    ImportedPlan q = import_plan(arena, d, &in);
    if (!q.text) fail_msg("%s\nis not imported:\n%s", x->text, diags_text(arena, d));
    Str out = str_new(arena);
    add_lines(&out, plan, plan, true);
    if (data_of(plan, q.text)) str_addf(&out, "%s\n", data_of(plan, q.text));
    add_lines(&out, plan, q.text, false);
    return out.s;
}

/* ---- what they do ---- */
static void add_groups(Str *s, const RankGroups *g) {
    for (int64_t i = 0; i < groups_count(g); i++)
        for (int64_t k = 0; k < groups_size(g); k++)
            str_addf(s, "%s%lld", k ? "," : " ", (long long)groups_member(g, i, k));
}
/* Collectives between more than one rank, and what each rank holds of the parameters. */
static const char *deeds(const Trace *t) {
    Str s = str_new(arena);
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (groups_size(&c->groups) == 1) continue;
        str_addf(&s, "%d %s %s %lld>%lld sent %lld of", c->pass, c->op, c->reduce ? c->reduce : "",
                 (long long)c->bytes_in, (long long)c->bytes_out, (long long)c->bytes_sent);
        add_groups(&s, &c->groups);
        str_add(&s, "\n");
    }
    for (int i = 0; i < t->n_params; i++)
        str_addf(&s, "%s %s\n", local_text(arena, &t->params[i].rest, 0),
                 local_text(arena, &t->params[i].rest, t->ranks - 1));
    return s.s;
}
static const char *deeds_of(const char *file, const char *text) {
    PlanRun r = plan_run(arena, file, text, false);
    if (!r.t || diags_errors(r.d)) {
        run_print(&r);
        fail_msg("%s does not lower:\n%s", file, text);
    }
    return deeds(r.t);
}
static void round_trip(const char *file, const char *text, const char *framework) {
    Exported x = export_to(arena, file, text, framework);
    if (!x.text) fail_msg("%s to %s is refused:\n%s", file, framework, x.said);
    const char *again = back(&x, text, framework), *was = deeds(x.run.t),
               *is = deeds_of(file, again);
    if (strcmp(was, is) != 0)
        fail_msg("%s to %s:\n%s\nbecame\n%s\nby\n%s\nthat is\n%s", file, framework, was, is, x.text,
                 again);
    assert_true(strlen(was) > 100);
}

/* ---- every plan that ships ---- */
#define MLP "has no model without the layers of a Transformer"
#define PP "has no cut of the layers into stages"
#define CP "has nothing about context parallelism"
#define DP "a tp_plan says nothing about data parallelism"
#define AGAIN "has nothing about what is computed again"
#define PMI "no style of transformers does what 'prepare_module_input' does"
#define KV "a PartitionSpec has no copies of KV heads"
#define ROOM "has no limit of an expert's rows"
#define EXPERTS "no PartitionSpec is read here of '"
/* clang-format off */
static const struct {
    const char *file, *refused[N_TO]; /* by hf, jax, megatron, torchtitan; NULL: it can say the plan */
} shipped[] = {
    {"01-column-row-mlp.yaml", {MLP, MLP, MLP, MLP}},
    {"02-toymodel-2.yaml", {MLP, MLP, MLP, MLP}},
    {"02-toymodel-4.yaml", {MLP, MLP, MLP, MLP}},
    {"03-llama3-8b-tp2.yaml", {NULL, NULL, NULL, "layers.0.input_norm as [.,tp,.]"}},
    {"04-llama3-8b-tp4.yaml", {NULL, NULL, NULL, "layers.0.input_norm as [.,tp,.]"}},
    {"05-llama3-8b-tp4-sp.yaml", {PMI, NULL, NULL, NULL}},
    {"06-llama3-8b-dp2-tp2-sp.yaml", {PMI, NULL, NULL, "copies of the model beside other degrees, and no shards: torchtitan raises"}},
    {"07-llama3-8b-cp4.yaml", {CP, NULL, "layers.0.input_norm as [.,cp~z,.]", "all_gather of layers.0.attention_norm.weight over cp"}},
    {"08-llama3-8b-cp4-zigzag.yaml", {CP, "layers.0.input_norm as [.,cp,.]", NULL, "all_gather of layers.0.attention_norm.weight over cp"}},
    {"09-llama3-8b-dp2-cp2-tp2.yaml", {CP, "layers.0.input_norm as [dp,cp/tp,.]", NULL, "all_gather of layers.0.attention_norm.weight over cp"}},
    {"10-llama3-70b-tp8.yaml", {PMI, NULL, NULL, NULL}},
    {"11-llama3-70b-tp16.yaml", {"is for one axis", KV, NULL, NULL}},
    {"12-qwen3-8b-tp16.yaml", {"is for one axis", KV, NULL, "layers.0.input_norm as [.,tp.0/tp.1,.]"}},
    {"13-qwen3-0.6b-tp4.yaml", {NULL, NULL, NULL, "layers.0.input_norm as [.,tp,.]"}},
    {"14-qwen2-bias-tp2.yaml", {NULL, NULL, NULL, "layers.0.input_norm as [.,tp,.]"}},
    {"15-megatron-tp-sp.yaml", {PMI, NULL, NULL, NULL}},
    {"16-hf-llama-tp4.yaml", {NULL, NULL, NULL, "layers.0.input_norm as [.,tp,.]"}},
    {"17-own-styles.yaml", {"what 'by_head' does", NULL, NULL, "layers.0.input_norm as [.,tp,.]"}},
    {"18-llama3-8b-backward.yaml", {"'loss_parallel'", "all_reduce of embed over tp", NULL, NULL}},
    {"19-llama3-8b-fsdp4.yaml", {DP, "parameter, reshard false where the plan has fsdp of unit parameter, reshard true", "identity of embedding.word_embeddings.weight over dp", "fsdp of unit block, reshard true where the plan has fsdp of unit parameter"}},
    {"20-llama3-8b-fsdp-tp.yaml", {CP, "axes of one dim in another order than the mesh's: not suppor", "identity of embedding.word_embeddings.weight over dp*cp", NULL}},
    {"21-llama3-8b-recompute.yaml", {AGAIN, AGAIN, NULL, NULL}},
    {"22-llama3-8b-dp2-cp2-tp2-backward.yaml", {CP, "embed as [dp,cp,.] tp:P", NULL, "identity of tok_embeddings.weight over dp_replicate where"}},
    {"23-llama3-8b-packed.yaml", {"identity of layers.0.input_norm over tp", "cuts a dim as one list", NULL, "prepare_module_input makes the input of layers.0.feed_forwar"}},
    {"30-mixtral-8x7b-ep-dp-cp.yaml", {CP, EXPERTS, NULL, "what torchtitan can say of this plan is no plan: expert_para"}},
    {"31-mixtral-8x7b-tp.yaml", {PMI, EXPERTS, "what megatron can say of this plan is no plan: experts under", "identity of layers.0.attention_norm.weight over tp where"}},
    {"32-mixtral-8x7b-ep-masked.yaml", {"'expert_parallel' does", EXPERTS, "what megatron can say of this plan is no plan: experts under", "identity of layers.0.attention_norm.weight over tp where"}},
    {"33-qwen3-30b-a3b-ep.yaml", {DP, EXPERTS, "identity of decoder.layers.0.input_layernorm.weight over", "fsdp of unit block, reshard true where the plan has fsdp of"}},
    {"34-llama4-scout-torchtitan.yaml", {PMI, EXPERTS, "identity of decoder.layers.3.mlp.router.weight over tp", NULL}},
    {"35-mixtral-8x7b-all-gather.yaml", {DP, EXPERTS, "identity of decoder.layers.0.mlp.router.weight over dp", "what torchtitan can say of this plan is no plan: expert_para"}},
    {"36-mixtral-8x7b-capacity.yaml", {ROOM, ROOM, "megatron has no limit of an expert's rows that is written he", "torchtitan has no limit of an expert's rows that is written "}},
    {"37-qwen3-30b-a3b-ep-etp.yaml", {DP, EXPERTS, "what megatron can say of this plan is no plan: experts under", "fsdp of unit block, reshard true where the plan has fsdp of"}},
    {"38-llama4-scout-reorderer.yaml", {DP, EXPERTS, "identity of decoder.layers.0.mlp.router.weight over dp*tp", "what torchtitan can say of this plan is no plan: experts ove"}},
    {"39-mixtral-8x7b-hf-ep.yaml", {"stands in the ep_plan", EXPERTS, "what megatron can say of this plan is no plan: experts under", "identity of layers.0.attention_norm.weight over tp where"}},
    {"40-llama3-8b-ulysses4.yaml", {CP, "all_gather of layers.0.k_rope over cp", "layers.0.input_norm as [.,cp~z,.]", "all_gather of layers.0.attention_norm.weight over cp"}},
    {"41-llama3-8b-ring4-zigzag.yaml", {CP, "layers.0.input_norm as [.,cp,.]", NULL, "all_gather of layers.0.attention_norm.weight over cp"}},
    {"42-llama3-8b-usp.yaml", {CP, "layers.0.input_norm as [.,cp/up,.]", "are for context", "are for context"}},
    {"43-llama4-maverick-six-diagrams.yaml", {CP, EXPERTS, "layers.1.moe.router_logits where the plan has all_gather of", "what torchtitan can say of this plan is no plan: experts ove"}},
    {"44-llama3-8b-packed-documents.yaml", {CP, "layers.0.input_norm as [dp,cp,.]", NULL, "identity of layers.0.attention_norm.weight over dp_replicate"}},
    {"45-llama3-8b-pp4-1f1b.yaml", {PP, PP, NULL, NULL}},
    {"46-llama3-8b-pp2-zb-v.yaml", {PP, PP, "Megatron runs 2 stages a rank as interleaved, not zb-v", NULL}},
    {"47-llama3-8b-pp2-dp2-tp2.yaml", {DP, PP, "identity of embedding.word_embeddings.weight over dp where", "all_gather of layers.0.attention_norm.weight over dp_shard"}},
    {"48-llama3.2-1b-pp2-tied.yaml", {PP, PP, "what megatron can say of this plan is no plan: layers: 3 is ", "torchtitan ties no table of two stages"}},
    {"49-llama3-8b-pp2-interleaved.yaml", {PP, PP, "what megatron can say of this plan is no plan: layers: 5 is ", NULL}},
    {"50-llama3-8b-zero1.yaml", {DP, "all_reduce of grad.param.output.weight over dp", "reduce_scatter of grad.param.output_layer.weight over dp", "all_reduce of grad.param.output.weight over dp_replicate"}},
    {"51-llama3-8b-zero2-megatron.yaml", {DP, "all_reduce of grad.param.output.weight over dp", "grad.layers.0.output", "all_reduce of grad.param.output.weight over dp_replicate"}},
    {"52-llama3-8b-pp4-dualpipe.yaml", {PP, PP, "Megatron runs 1 stages a rank as 1f1b, not dualpipe", "PyTorch has no schedule 'dualpipe'"}},
    {"53-llama3.2-1b-pp2-tied-pair.yaml", {PP, PP, NULL, "torchtitan ties no table of two stages"}},
    {"54-deepseek-v3-latent-ring4.yaml", {CP, "layers.0.input_norm as [.,cp,.]", "shift 1 of layers.0.k_nope over cp", "all_gather of layers.0.attention_norm.weight over cp"}},    {"55-llama3-8b-pp2-tp2-recompute-stage.yaml", {PP, PP, "Megatron runs 1 stages a rank as 1f1b, not gpipe", "where the plan has layers.2.input_norm"}},
    {"56-gpt-oss-20b-tp2-ep2.yaml", {"stands in the ep_plan", "no PartitionSpec is read here of", "experts with biases, as gpt_oss has them, under expert tensor parallelism of 2 ranks", "layers.0.moe.experts.w2_bias has no dim"}},
};
/* clang-format on */
enum { N_SHIPPED = sizeof shipped / sizeof *shipped };
static void shipped_to(int f) {
    int said = 0;
    for (int i = 0; i < N_SHIPPED; i++) {
        const char *file = arena_printf(arena, "plans/%s", shipped[i].file),
                   *text = shipped_text(arena, file), *why = shipped[i].refused[f];
        if (!why) {
            round_trip(file, text, to[f]);
            said++;
            continue;
        }
        export_refused(arena, file, text, to[f], why);
    }
    printf("%-10s says %d of %d shipped plans\n", to[f], said, N_SHIPPED);
}
static void test_hf(void **state) {
    (void)state;
    shipped_to(0);
}
static void test_jax(void **state) {
    (void)state;
    shipped_to(1);
}
static void test_megatron(void **state) {
    (void)state;
    shipped_to(2);
}
static void test_torchtitan(void **state) {
    (void)state;
    shipped_to(3);
}
static const char *shipped_file(int i) { return shipped[i].file; }
static void test_all_shipped_are_listed(void **state) {
    (void)state;
    shipped_listed(shipped_file, N_SHIPPED);
}

/* ---- what no shipped plan shows ---- */
#define WHOLE                                                                                      \
    "model: {preset: llama3-8b, layers: 2, shrink: 32, parts: [embedding, blocks, norm, head, "    \
    "loss]}\ndata: {batch: 4, sequence: 16}\npass: backward\n"
static const struct {
    const char *framework, *plan, *says; /* a line of the text */
} more[] = {
    {"torchtitan",
     "mesh: {dp_r: 2, dp_s: 2, tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3\n"
     "data_parallel: {mode: hsdp, replicate: dp_r, shard: dp_s, unit: block, reshard: true, "
     "grad_order: tp_first}\n",
     "fsdp_reshard_after_forward = \"default\"\n"},
    {"torchtitan",
     "mesh: {dp: 4}\ndata_parallel: {mode: fsdp, unit: block, reshard: false, grad_order: "
     "tp_first}\n",
     "fsdp_reshard_after_forward = \"never\"\n"},
    {"torchtitan", "mesh: {dp: 2}\n", "data_parallel_replicate_degree = 2\n"},
    {"torchtitan",
     "mesh: {tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3\nrecompute: block\n",
     "mode = \"full\"\n"},
    {"megatron", "mesh: {dp: 2, tp: 2}\nnames: megatron\nrecipe: megatron\n",
     "    --tensor-model-parallel-size 2\n"},
    {"megatron",
     "mesh: {dp: 2, cp: 2, tp: 2}\ngroups: {sp: tp}\nnames: megatron\nrecipe: megatron-sp\n"
     "context_parallel: {mode: ring, order: zigzag}\nrecompute: block\n",
     "    --cp-comm-type p2p \\\n"},
    {"megatron", "mesh: {cp: 2}\ncontext_parallel: {mode: ulysses, order: zigzag}\n",
     "    --cp-comm-type a2a\n"},
    {"hf",
     "mesh: {dp: 2, tp: 2}\nnames: hf\nkv_replicate: never\nplan:\n"
     "  model.embed_tokens: embedding_rowwise\n"
     "  model.layers.*.self_attn.[qkv]_proj: {style: colwise, boundary: per_module}\n"
     "  model.layers.*.self_attn.o_proj: rowwise\n  lm_head: colwise_gather_output\n",
     "  \"model.layers.*.mlp.up_proj\": \"replicate\""},
    {"jax",
     "mesh: {data: 2, model: 2}\nnames: torchtitan\ngroups: {dp: data, tp: model}\nplan:\n"
     "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n",
     "  \"params/layers_*/attention/wo/kernel\": [\"model\", null]"},
    {"jax",
     "mesh: {data: 2, fsdp: 2, tp: 2}\nnames: torchtitan\ngroups: {dp: data*fsdp}\n"
     "data_parallel: {mode: hsdp, replicate: data, shard: fsdp, unit: parameter, reshard: false, "
     "dims: {\"layers.*.feed_forward.w[13]\": 1, norm: whole}}\nplan:\n"
     "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n",
     "  \"params/layers_*/attention/wq/kernel\": [null, [\"tp\", \"fsdp\"]],\n"},
    {"jax", "mesh: {}\nnames: torchtitan\n", "  \"tokens\": [null, null]"},
    {"torchtitan",
     "mesh: {pp: 2, dp: 2, tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3\n"
     "pipeline: {schedule: gpipe, microbatches: 2}\n"
     "data_parallel: {mode: fsdp, unit: block, reshard: true, grad_order: tp_first}\n",
     "pipeline_parallel_schedule = \"GPipe\"\npipeline_parallel_microbatch_size = 1\n"},
    {"torchtitan",
     "mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 2, stages: [[0], [1]]}\n"
     "recompute: block\n",
     "local_batch_size = 4\n\n[activation_checkpoint]\nmode = \"full\"\n"},
    {"megatron",
     "mesh: {pp: 2, dp: 2, tp: 2}\nnames: megatron\nrecipe: megatron\n"
     "groups: {sp: tp}\npipeline: {schedule: 1f1b, microbatches: 2, tied: pair}\n",
     "    --micro-batch-size 1 \\\n    --global-batch-size 4"},
};
enum { N_MORE = sizeof more / sizeof *more };
static void says_and_back(const char *head, const char *plan, const char *framework,
                          const char *says) {
    const char *text = arena_printf(arena, "%s%s", head, plan);
    Exported x = export_to(arena, "more.yaml", text, framework);
    if (!x.text || !strstr(x.text, says))
        fail_msg("no '%s' in\n%s%s", says, x.text ? x.text : "", x.said);
    round_trip("more.yaml", text, framework);
}
static void test_more(void **state) {
    (void)state;
    for (int i = 0; i < N_MORE; i++)
        says_and_back(WHOLE, more[i].plan, more[i].framework, more[i].says);
}
/* Experts on other ranks, by the degrees that both frameworks have for them. */
static void test_experts(void **state) {
    (void)state;
    static const char scout[] =
        "model: {preset: llama4-scout, layers: 1, shrink: 64, parts: [embedding, blocks, norm, "
        "head, loss]}\ndata: {batch: 4, sequence: 16}\npass: backward\n"
        "names: torchtitan\ndata_parallel: {mode: fsdp, unit: block, grad_order: tp_first}\n";
    static const char qwen[] =
        "model: {preset: qwen3-30b-a3b, layers: 1, shrink: 16, parts: [embedding, blocks, norm, "
        "head, loss]}\ndata: {batch: 4, sequence: 16}\npass: backward\nnames: megatron\n"
        "recipe: megatron-moe\n";
    static const struct {
        const char *head, *plan, *framework, *says;
    } rows[] = {
        {scout,
         "mesh: {dp_edp: 2, dp_ep: 2}\ngroups: {dp: dp_edp*dp_ep, ep: dp_ep}\n"
         "moe: {fsdp_dim: auto}\nplan:\n"
         "  layers.*.moe.experts: {style: expert_parallel, axis: ep, output: home}\n",
         "torchtitan", "expert_parallel_degree = 2\nexpert_tensor_parallel_degree = 1\n"},
        {scout,
         "mesh: {dp: 2, tp: 2}\ngroups: {ep: dp, etp: tp}\nmoe: {fsdp_dim: auto}\n"
         "recipe: torchtitan-llama4\nplan:\n  layers.*.moe.experts: {style: "
         "expert_tensor_parallel, weight: {ep: shard(e), etp: shard(w)}}\n",
         "torchtitan", "expert_parallel_degree = 2\nexpert_tensor_parallel_degree = 2\n"},
        {qwen,
         "mesh: {dp: 2, tp: 2}\ngroups: {sp: tp, ep: dp, etp: tp}\n"
         "moe: {dispatch: all_to_all}\n",
         "megatron",
         "    --num-experts 128 \\\n    --expert-model-parallel-size 2 \\\n"
         "    --moe-token-dispatcher-type alltoall"},
        {qwen,
         "mesh: {dp: 2, tp: 2}\ngroups: {sp: tp, ep: dp*tp}\n"
         "moe: {dispatch: all_gather}\n",
         "megatron",
         "    --expert-model-parallel-size 4 \\\n    --expert-tensor-parallel-size 1 \\\n"
         "    --moe-token-dispatcher-type allgather"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        says_and_back(rows[i].head, rows[i].plan, rows[i].framework, rows[i].says);
}
/* A name is text of the plan's: in no framework's text it is more than a comment. */
static void test_names_are_comments(void **state) {
    (void)state;
    static const struct {
        const char *framework, *name, *mesh;
    } rows[] = {
        {"megatron", "x\\nexport MODEL=other #", "recipe: megatron\nnames: megatron\n"},
        {"megatron", "x\\n\\\"it's", "recipe: megatron\nnames: megatron\n"},
        {"torchtitan", "x\\n[training]\\nsteps = 1 #", "recipe: torchtitan-llama3\n"},
        {"torchtitan", "x\\r\\x01", "recipe: torchtitan-llama3\n"},
        {"torch", "x\\nimport os", "recipe: torchtitan-llama3\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = arena_printf(arena, "%sname: \"%s\"\nmesh: {tp: 2}\n%s", WHOLE,
                                        rows[i].name, rows[i].mesh);
        Exported x = export_to(arena, "name.yaml", text, rows[i].framework);
        if (!x.text) fail_msg("%s", x.said);
        int comments = 0;
        for (const char *l = x.text; *l == '#'; l = strchr(l, '\n') + 1) comments++;
        if (comments != 2 || strstr(x.text, "\nexport") || strstr(x.text, "\n[training]") ||
            strstr(x.text, "\nimport os") || strchr(x.text, '\r'))
            fail_msg("more than a comment:\n%s", x.text);
    }
}
/* A key that no degree says, and a line that differs from the framework's own in one place. */
static const struct {
    const char *framework, *plan, *says;
} refused[] = {
    {"torchtitan",
     "mesh: {tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3\nplan:\n"
     "  layers.1.feed_forward.w2: {style: rowwise, output: replicate}\n",
     "more.yaml:8:"},
    {"megatron", "mesh: {tp: 2, dp: 2}\nnames: megatron\nrecipe: megatron\n",
     "megatron would compute otherwise: "},
    {"megatron", "mesh: {a: 2, b: 2}\n",
     "two axes of more than one rank are for tensor parallelism"},
    {"hf",
     "mesh: {tp: 2}\nnames: hf\ntrust: declared\nplan:\n"
     "  model.layers.*.mlp.gate_proj: {style: colwise, boundary: per_module}\n",
     "this plan does not hold"},
    {"hf", "mesh: {tp: 2}\nnames: hf\nplan:\n  model.norm: sequence_parallel\n",
     "the library's sequence_parallel only relabels"},
    {"hf",
     "mesh: {tp: 2}\nnames: torchtitan\nplan:\n"
     "  layers.1.feed_forward.w[13]: {style: colwise, boundary: per_module}\n"
     "  layers.1.feed_forward.w2: rowwise\n",
     "a tp_plan speaks of all layers at once"},
    {"hf",
     "mesh: {tp: 2}\nnames: hf\nplan:\n  model.layers.*.mlp.gate_proj: colwise\n"
     "  model.layers.*.mlp.up_proj: colwise\n  model.layers.*.mlp.down_proj: rowwise\n",
     "hf would compute otherwise: "},
    {"torchtitan",
     "mesh: {tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3\nfaults:\n"
     "  - {at: layers.0.mlp.down, do: drop}\n",
     "torchtitan has no planted fault"},
    {"torchtitan",
     "mesh: {dp: 4}\ndata_parallel: {mode: fsdp, unit: model, grad_order: tp_first}\n",
     "torchtitan would compute otherwise: "},
    {"hf", "mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 2}\n", PP},
    {"torchtitan", "mesh: {pp: 2}\npipeline: {schedule: zb-h1, microbatches: 2}\n",
     "PyTorch has no schedule 'zb-h1'"},
    {"megatron", "mesh: {pp: 2}\npipeline: {schedule: gpipe, microbatches: 2}\n",
     "Megatron runs 1 stages a rank as 1f1b, not gpipe"},
    {"megatron",
     "mesh: {tp: 2, pp: 2}\nnames: megatron\nrecipe: megatron\n"
     "pipeline: {schedule: 1f1b, microbatches: 2}\n",
     "megatron would compute otherwise: embed as"},
};
static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *text = arena_printf(arena, "%s%s", WHOLE, refused[i].plan);
        PlanRun r = plan_run(arena, "more.yaml", text, false);
        if (!r.t) {
            run_print(&r);
            fail_msg("%s is no plan", text);
        }
        const char *out = export_plan(arena, r.d, r.rep.plan, refused[i].framework),
                   *said = diags_text(arena, r.d);
        if (out) fail_msg("written:\n%s\nof\n%s", out, text);
        if (!strstr(said, refused[i].says) || !strstr(said, "E0218"))
            fail_msg("no '%s' in\n%s", refused[i].says, said);
    }
}

/* What only a backward pass or the optimizer shows is no less said of a plan that goes forward. */
static void test_forward_keeps_keys(void **state) {
    (void)state;
    static const struct {
        const char *framework, *keys;
        bool written;
    } rows[] = {
        {"megatron", "mesh: {dp: 2}\ndata_parallel: {mode: zero1, form: megatron}\n", true},
        {"megatron", "mesh: {dp: 2}\ndata_parallel: {mode: zero1}\n", false},
        {"megatron", "mesh: {dp: 2}\ndata_parallel: {mode: zero1, form: deepspeed}\n", false},
        {"megatron", "mesh: {dp: 2}\ndata_parallel: {mode: zero2, form: deepspeed}\n", false},
        {"megatron", "mesh: {dp: 2}\ndata_parallel: {mode: ddp, unit: block}\n", false},
        {"megatron", "mesh: {cp: 4}\ncontext_parallel: {mode: ring, order: zigzag}\n", true},
        {"megatron",
         "mesh: {cp: 4}\ncontext_parallel: {mode: ring, order: zigzag, backward: chain}\n", false},
        {"megatron", "mesh: {cp: 4}\ncontext_parallel: {mode: ring, order: zigzag, rfa: true}\n",
         false},
        {"megatron",
         "mesh: {cp: 4}\ncontext_parallel: {mode: ring, order: zigzag, keep_kv: false}\n", false},
        {"torchtitan", "mesh: {dp: 4}\ndata_parallel: {mode: fsdp, unit: block}\n", true},
        {"torchtitan", "mesh: {dp: 2}\ndata_parallel: {mode: zero1}\n", false},
        {"torchtitan", "mesh: {dp: 2}\ndata_parallel: {mode: ddp, unit: block}\n", false},
        {"jax", "mesh: {dp: 2}\ndata_parallel: {mode: zero1}\n", false},
        {"jax", "mesh: {dp: 2}\ndata_parallel: {mode: ddp}\n", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = arena_printf(arena,
                                        "model: {preset: llama3-8b, layers: 2, shrink: 32, parts: "
                                        "[embedding, blocks, norm, head, loss]}\n"
                                        "data: {batch: 4, sequence: 16}\n%s",
                                        rows[i].keys);
        Exported x = export_to(arena, "forward.yaml", text, rows[i].framework);
        if (!x.text != !rows[i].written)
            fail_msg("%s of\n%s\n%s%s", rows[i].framework, text, x.text ? x.text : "", x.said);
        if (!x.text && !strstr(x.said, "would compute otherwise: ")) fail_msg("%s", x.said);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hf, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_jax, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_megatron, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_torchtitan, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_all_shipped_are_listed, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_more, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_experts, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_names_are_comments, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_refused, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_forward_keeps_keys, sandbox_new, sandbox_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
