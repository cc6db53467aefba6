/* Plans of other frameworks: what each says becomes the plan that is written here by hand, what
 * cannot be said is an error at its place, all of them at once, and nothing is executed. The values
 * behind the imported plans are held against PyTorch's in test_torch. */
#include "base/file.h"
#include "cli/cli.h"
#include "import/hf_version.h"
#include "import/import.h"
#include "import/layer_freq.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static Arena *arena;
static int setup(void **state) {
    (void)state;
    arena = arena_new();
    return 0;
}
static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

/* ---- importing ---- */
typedef struct {
    ImportedPlan plan;
    Diags *d;
    const char *said; /* diagnostics as printed */
} Imported;
static Imported import_with(ImportInput in, const char *text) {
    Imported r = {.d = diags_new(arena)};
    in.text = text;
    in.n = strlen(text);
    in.dir = ".";
    if (!in.tp) in.tp = in.ep = -1;
    r.plan = import_plan(arena, r.d, &in);
    r.said = diags_text(arena, r.d);
    return r;
}
/* Does the plan hold each of these lines, without its comment? */
static void holds(const Imported *r, const char *const *lines) {
    if (!r->plan.text) fail_msg("not imported:\n%s", r->said);
    for (int i = 0; lines[i]; i++) {
        const char *at = strstr(r->plan.text, lines[i]);
        size_t n = strlen(lines[i]);
        if (!at || (at[n] != '\n' && strncmp(at + n, "  # ", 4) != 0))
            fail_msg("no line '%s' in\n%s", lines[i], r->plan.text);
    }
}
#define HOLDS(r, ...) holds(&(r), (const char *const[]){__VA_ARGS__, NULL})
static void refuses(const Imported *r, const char *const *said) {
    assert_null(r->plan.text);
    for (int i = 0; said[i]; i++)
        if (!strstr(r->said, said[i])) fail_msg("nothing says '%s' in\n%s", said[i], r->said);
}
#define REFUSES(r, ...) refuses(&(r), (const char *const[]){__VA_ARGS__, NULL})
static PlanRun run_plan(const Imported *r, bool execute) {
    if (!r->plan.text) fail_msg("not imported:\n%s", r->said);
    PlanRun run = {.d = diags_new(arena)};
    PipelineOptions o = {.execute = execute, .threads = 1};
    diags_origins(run.d, "imported.yaml", r->plan.origin, r->plan.n_origin);
    run.t = pipeline_run(
        arena, run.d, (PlanText){"imported.yaml", r->plan.text, r->plan.n, NULL, 0}, &o, &run.rep);
    return run;
}
static void equivalent(const Imported *r) {
    PlanRun run = run_plan(r, true);
    if (!run_is(&run, "equivalent")) {
        run_print(&run);
        fail_msg("%s", r->plan.text);
    }
}

/* ---- torch ---- */
static Imported torch_given_args(const char *mesh, const char *text, const char *args) {
    return import_with((ImportInput){.framework = "torch",
                                     .path = "plan.py",
                                     .model = "llama3-8b",
                                     .mesh = mesh,
                                     .args = args},
                       text);
}
static Imported torch(const char *mesh, const char *text) {
    return torch_given_args(mesh, text, NULL);
}
static const char titan_loop[] =
    "from torch.distributed.tensor.parallel import (\n"
    "    ColwiseParallel as Col, RowwiseParallel, SequenceParallel, PrepareModuleInput,\n"
    ")\n"
    "mesh = init_device_mesh('cuda', (2, 4), mesh_dim_names=('dp_shard', 'tp'))\n"
    "tp_mesh = mesh['tp']\n"
    "model = parallelize_module(model, tp_mesh, {\n"
    "    'tok_embeddings': RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),\n"
    "    'norm': SequenceParallel(),  # on the cut sequence\n"
    "    'output': Col(input_layouts=Shard(1), output_layouts=Shard(-1),\n"
    "                  use_local_output=False),\n"
    "})\n"
    "prepare = PrepareModuleInput(input_layouts=(Shard(1), None),\n"
    "                             desired_input_layouts=(Replicate(), None))\n"
    "for i, block in enumerate(model.layers.values()):\n"
    "    plan: dict[str, ParallelStyle] = {\n"
    "        'attention_norm': SequenceParallel(), 'ffn_norm': SequenceParallel(),\n"
    "        'attention': prepare, 'feed_forward': prepare,\n"
    "        'attention.wq': Col(), 'attention.wk': Col(), 'attention.wv': Col(),\n"
    "        'attention.wo': RowwiseParallel(output_layouts=Shard(1)),\n"
    "        'feed_forward.w1': Col(), 'feed_forward.w3': Col(),\n"
    "    }\n"
    "    plan['feed_forward.w2'] = RowwiseParallel(output_layouts=Shard(dim=1))\n"
    "    parallelize_module(block, tp_mesh, plan)\n"
    "    fully_shard(block, mesh=mesh['dp_shard'], reshard_after_forward=False)\n"
    "fully_shard(model, mesh=mesh['dp_shard'])\n"
    "with loss_parallel():\n"
    "    loss.backward()\n";
static void test_torch_code(void **state) {
    (void)state;
    Imported r = torch(NULL, titan_loop);
    HOLDS(r, "mesh: {dp_shard: 2, tp: 4}", "names: torchtitan", "pass: backward",
          "data_parallel: {mode: fsdp, axis: dp_shard, unit: block, reshard: false, grad_order: "
          "tp_first}",
          "  tok_embeddings: {style: rowwise, input: replicate, output: shard(1)}",
          "  norm: sequence_parallel",
          "  output: {style: colwise, input: shard(1), output: shard(-1), use_local_output: false, "
          "boundary: per_module}",
          "  layers.*.attention: {style: prepare_module_input, input: [shard(1), null], "
          "desired_input: [replicate, null]}",
          "  layers.*.attention.wq: colwise", "  layers.*.feed_forward.w1: colwise",
          "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}",
          "  loss: loss_parallel");
    equivalent(&r);
}
/* Modules that nobody prepares move their inputs each for itself: three all-reduces backward for q,
 * k and v, as in PyTorch (03_llama3_nosp). */
/* An entry that is written again is the later one, as in Python, at the place of the first. */
static void test_torch_entries(void **state) {
    (void)state;
    Imported r = torch("tp=2", "p = {\n    'layers.*.attention.wo': ColwiseParallel(),\n"
                               "    'layers.*.attention.wq': ColwiseParallel(),\n}\n"
                               "p['layers.*.attention.wo'] = RowwiseParallel()\n"
                               "p['layers.*.attention.wk'] = ColwiseParallel()\n"
                               "parallelize_module(model, mesh, p)\n");
    HOLDS(r, "  layers.*.attention.wo: rowwise",
          "  layers.*.attention.wk: {style: colwise, boundary: per_module}");
    assert_null(strstr(r.plan.text, "wo: colwise"));
    assert_null(strstr(r.plan.text, "wo: {style: colwise"));
    /* in a literal it is a slip */
    r = torch("tp=2", "{'layers.*.attention.wo': ColwiseParallel(),\n"
                      " 'layers.*.attention.wo': RowwiseParallel()}");
    REFUSES(r, ":2:2: error: 'layers.*.attention.wo' occurs twice [E0107]");
}
static void test_torch_boundaries(void **state) {
    (void)state;
    Imported r = torch("tp=2", "{'layers.*.attention.wq': ColwiseParallel(),\n"
                               " 'layers.*.attention.wk': ColwiseParallel(),\n"
                               " 'layers.*.attention.wv': ColwiseParallel(),\n"
                               " 'layers.*.attention.wo': RowwiseParallel()}");
    HOLDS(r, "  layers.*.attention.wq: {style: colwise, boundary: per_module}",
          "  layers.*.attention.wo: rowwise");
    PlanRun run = run_plan(&r, false);
    assert_int_equal(count_collectives(run.t, "backward", "all_reduce", "tp"), 3);
    assert_int_equal(count_collectives(run.t, "forward", "all_reduce", "tp"), 1);
    /* inputs that are left cut: w1 and w3 gather one each, as PyTorch 2.15 does */
    r = torch("tp=2",
              "{'layers.*.feed_forward': PrepareModuleInputOutput(input_layouts=(Replicate(),),\n"
              " desired_input_layouts=(Shard(1),), output_layouts=(Shard(1),),\n"
              " desired_output_layouts=(Replicate(),)),\n"
              " 'layers.*.feed_forward.w1': ColwiseParallel(input_layouts=Shard(1)),\n"
              " 'layers.*.feed_forward.w3': ColwiseParallel(input_layouts=Shard(1)),\n"
              " 'layers.*.feed_forward.w2': RowwiseParallel(output_layouts=Shard(1))}");
    HOLDS(r, "  layers.*.feed_forward.w1: {style: colwise, input: shard(1), boundary: per_module}");
    run = run_plan(&r, false);
    assert_int_equal(count_collectives(run.t, "forward", "all_gather", "tp"), 3);
    assert_int_equal(count_collectives(run.t, "backward", "reduce_scatter", "tp"), 2);
}
/* Every argument of every style, and what it becomes. */
static void test_torch_styles(void **state) {
    (void)state;
    static const struct {
        const char *torch, *ours;
    } rows[] = {
        {"ColwiseParallel()", "colwise"},
        {"ColwiseParallel(input_layouts=Shard(1))", "{style: colwise, input: shard(1)}"},
        {"ColwiseParallel(output_layouts=Replicate(), use_local_output=True)",
         "{style: colwise, output: replicate, use_local_output: true}"},
        {"torch.distributed.tensor.parallel.RowwiseParallel(input_layouts=Replicate())",
         "{style: rowwise, input: replicate}"},
        {"RowwiseParallel(output_layouts=Partial())", "{style: rowwise, output: partial}"},
        {"RowwiseParallel(output_layouts=Partial(reduce_op='sum'))",
         "{style: rowwise, output: partial}"},
        {"SequenceParallel(sequence_dim=1)", "sequence_parallel"},
        {"SequenceParallel(sequence_dim=0, use_local_output=True)",
         "{style: sequence_parallel, input: shard(0), desired_input: shard(0), output: shard(0), "
         "use_local_output: true}"},
        {"PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate())",
         "{style: prepare_module_input, input: shard(1), desired_input: replicate}"},
        {"PrepareModuleInput(input_kwarg_layouts={'x': Shard(1), 'mask': None},\n"
         "  desired_input_kwarg_layouts={'x': Replicate(), 'mask': None}, use_local_output=True)",
         "prepare_module_input"}, /* called by position: a keyword's layout does nothing */
        {"PrepareModuleOutput(output_layouts=Partial(), desired_output_layouts=Shard(1))",
         "{style: prepare_module_output, output: partial, desired_output: shard(1)}"},
        {"PrepareModuleInputOutput(input_layouts=(Shard(1),), "
         "desired_input_layouts=(Replicate(),),\n"
         "  use_local_input=False, output_layouts=(Partial(),), "
         "desired_output_layouts=(Shard(1),))",
         "{style: prepare_module_input_output, input: [shard(1)], desired_input: [replicate], "
         "output: [partial], desired_output: [shard(1)], use_local_input: false}"},
        {"PrepareModuleInputOutput(input_layouts=(Shard(1),), "
         "desired_input_layouts=(Replicate(),),\n"
         "  use_local_input=True, output_layouts=(Partial(),), "
         "desired_output_layouts=(Shard(1),))",
         "{style: prepare_module_input_output, input: [shard(1)], desired_input: [replicate], "
         "output: [partial], desired_output: [shard(1)], use_local_input: true}"},
        {"NoParallel(use_local_output=False)", "{style: no_parallel, use_local_output: false}"},
        {"NoParallel(input_layout=Shard(1), output_layout=Replicate())",
         "{style: no_parallel, input: shard(1), output: replicate}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Imported r =
            torch("tp=2", arena_printf(arena, "{'layers.*.feed_forward': %s}", rows[i].torch));
        const char *want = arena_printf(arena, "  layers.*.feed_forward: %s", rows[i].ours);
        if (strstr(want, "colwise")) { /* nothing prepares its input */
            size_t n = strlen(want);
            want = want[n - 1] == '}'
                       ? arena_printf(arena, "%.*s, boundary: per_module}", (int)n - 1, want)
                       : "  layers.*.feed_forward: {style: colwise, boundary: per_module}";
        }
        HOLDS(r, want);
    }
}
/* RowwiseParallel takes the input of an embedding too for cut on its last dim: whole ids are then
 * n times as many, and PyTorch raises or computes something else. */
static void test_torch_embedding(void **state) {
    (void)state;
    static const struct {
        const char *module, *call, *line;
    } rows[] = {
        {"tok_embeddings", "RowwiseParallel(output_layouts=Shard(1))",
         "  tok_embeddings: {style: rowwise, output: shard(1), input: shard(-1)}"},
        {"model.embed_tokens", "RowwiseParallel(input_layouts=None)",
         "  model.embed_tokens: {style: rowwise, input: shard(-1)}"},
        {"embed_tokens", "RowwiseParallel()", "  embed_tokens: {style: rowwise, input: shard(-1)}"},
        {"tok_embeddings", "RowwiseParallel(input_layouts=Replicate())",
         "  tok_embeddings: {style: rowwise, input: replicate}"},
        {"tok_embeddings", "ColwiseParallel(output_layouts=Replicate())", NULL},
        {"layers.*.feed_forward.w2", "RowwiseParallel()", "  layers.*.feed_forward.w2: rowwise"},
    };
    for (int i = 0; i < 6; i++) {
        Imported r =
            torch("tp=2", arena_printf(arena, "parallelize_module(model, mesh, {'%s': %s})\n",
                                       rows[i].module, rows[i].call));
        if (rows[i].line) HOLDS(r, rows[i].line);
        if (strstr(r.plan.text, "input: shard(-1)") == NULL) continue;
        PlanRun run = run_plan(&r, true);
        bool told = false;
        for (int k = 0; k < run.d->n; k++) told |= !strcmp(run.d->item[k].code, "E0501");
        assert_true(told && !run_is(&run, "equivalent"));
    }
}
/* torchtitan's apply_moe_ep_tp as it comes out for each of its cases, and torchtune's experts. */
#define MOE_HEAD                                                                                   \
    "mesh = init_device_mesh('cuda', (2, 2), mesh_dim_names=('dp', 'tp'))\n"                       \
    "tp_mesh = mesh['tp']\n"                                                                       \
    "parallelize_module(model, tp_mesh, {\n"                                                       \
    "    'tok_embeddings': RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),\n" \
    "    'norm': SequenceParallel(),\n"                                                            \
    "    'output': ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})\n"        \
    "for block in model.layers.values():\n"                                                        \
    "    plan = {\n"                                                                               \
    "        'attention_norm': SequenceParallel(), 'ffn_norm': SequenceParallel(),\n"              \
    "        'attention': PrepareModuleInput(input_layouts=(Shard(1), None),\n"                    \
    "                                        desired_input_layouts=(Replicate(), None)),\n"        \
    "        'attention.wq': ColwiseParallel(), 'attention.wk': ColwiseParallel(),\n"              \
    "        'attention.wv': ColwiseParallel(),\n"                                                 \
    "        'attention.wo': RowwiseParallel(output_layouts=Shard(1)),\n"                          \
    "        'moe': PrepareModuleInputOutput(\n"                                                   \
    "            input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),),\n"               \
    "            use_local_input=True, output_layouts=(Partial(),),\n"                             \
    "            desired_output_layouts=(Shard(1),)),\n"                                           \
    "        'moe.router.gate': NoParallel(),\n"                                                   \
    "    }\n"                                                                                      \
    "    plan.update({'moe.shared_experts.w1': ColwiseParallel(),\n"                               \
    "                 'moe.shared_experts.w2': RowwiseParallel(output_layouts=Partial()),\n"       \
    "                 'moe.shared_experts.w3': ColwiseParallel()})\n"
#define MOE_APPLY                                                                                  \
    "    parallelize_module(module=block, device_mesh=tp_mesh, parallelize_plan=plan)\n"
static const struct {
    const char *text, *line, *groups;
    int sent; /* all_to_all of rows, forward, */
    const char *axes;
    bool partial; /* the router's gradient is whole by its label and a part (torchtitan 0.2.2) */
} moe_rows[] = {
    {MOE_HEAD MOE_APPLY "    parallelize_module(block.moe.experts, tp_mesh, TensorParallel())\n",
     "  layers.*.moe.experts: tensor_parallel", NULL, 0, "tp", false},
    {MOE_HEAD MOE_APPLY "    parallelize_module(block.moe.experts, tp_mesh, ExpertTensorParallel(\n"
                        "        input_layouts=(Replicate(), None), output_layout=Partial()))\n",
     "  layers.*.moe.experts: {style: expert_tensor_parallel, input: [replicate, null], output: "
     "partial}",
     NULL, 0, "tp", false},
    {MOE_HEAD MOE_APPLY "    parallelize_module(block.moe.experts, mesh['dp', 'tp'],\n"
                        "                       ExpertTensorParallel())\n",
     "  layers.*.moe.experts: {style: expert_tensor_parallel, weight: {dp: shard(e), tp: "
     "shard(w)}}",
     NULL, 3, "dp", false},
    {MOE_HEAD "    plan['moe.reorderer'] = ReordererSequenceParallel()\n" MOE_APPLY
              "    ep_mesh = mesh['dp', 'tp']._flatten('ep')\n"
              "    parallelize_module(module=block.moe.experts, device_mesh=ep_mesh,\n"
              "                       parallelize_plan=ExpertParallel())\n",
     "  layers.*.moe.experts: {style: expert_parallel, axis: ep, output: home}",
     "groups: {ep: dp*tp}", 3, "dp*tp", true},
};
/* Collectives of the forward pass over these axes. */
static int forward_over(const Trace *t, const char *op, const char *axes) {
    int n = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        n += c->pass == PHASE_FORWARD && !strcmp(c->op, op) && !strcmp(c->axes, axes);
    }
    return n;
}
static void test_torch_experts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof moe_rows / sizeof *moe_rows; i++) {
        Imported r = import_with(
            (ImportInput){.framework = "torch", .path = "plan.py", .model = "llama4-scout"},
            moe_rows[i].text);
        HOLDS(r, moe_rows[i].line);
        if (moe_rows[i].groups) HOLDS(r, moe_rows[i].groups);
        else assert_null(strstr(r.plan.text, "groups:"));
        PlanRun run = run_plan(&r, true);
        /* torchtitan 0.2.2's router: PyTorch leaves its gradient a part (semantics.md 0.6) */
        const char *want = moe_rows[i].partial ? "different" : "equivalent";
        if (!run_is(&run, want)) run_print(&run);
        run_must_be(&run, want);
        assert_int_equal(run_has(&run, "N0008"), moe_rows[i].partial);
        assert_int_equal(forward_over(run.t, "all_to_all", moe_rows[i].axes), moe_rows[i].sent);
    }
    /* without the reorderer each rank of tp sends all rows: they are counted tp times */
    Imported r =
        import_with((ImportInput){.framework = "torch", .path = "plan.py", .model = "llama4-scout"},
                    MOE_HEAD MOE_APPLY "    parallelize_module(block.moe.experts, mesh['dp'],"
                                       " ExpertParallel())\n");
    HOLDS(r, "  layers.*.moe.experts: {style: expert_parallel, axis: dp, output: home}");
    PlanRun run = run_plan(&r, true);
    const char *said = diags_text(arena, run.d);
    assert_non_null(strstr(said, "plan.py:"));
    run_must_be(&run, "different");
}
/* Experts of different ranks are no copies for fully_shard and DistributedDataParallel. */
static void test_torch_experts_sharded(void **state) {
    (void)state;
    static const struct {
        const char *shard, *said, *dims;
    } shards[] = {
        {"    fully_shard(block.moe.experts, mesh=mesh['edp'])\n"
         "    fully_shard(block, mesh=dp_mesh)\nfully_shard(model, mesh=dp_mesh)\n",
         NULL, ""},
        {"    fully_shard(block.moe.experts, mesh=mesh['edp'], shard_placement_fn=lambda p: "
         "Shard(1))\n"
         "    fully_shard(block, mesh=dp_mesh)\nfully_shard(model, mesh=dp_mesh)\n",
         NULL, ", dims: {layers.*.moe.experts: 1}"},
        {"    def of(param):\n        return Shard(dim=1)\n"
         "    fully_shard(block.moe.experts, mesh=mesh['edp'], shard_placement_fn=of)\n"
         "    fully_shard(block, mesh=dp_mesh)\nfully_shard(model, mesh=dp_mesh)\n",
         NULL, ", dims: {layers.*.moe.experts: 1}"},
        {"    fully_shard(block, mesh=dp_mesh, shard_placement_fn=lambda p: Shard(1) if p.ndim > 1 "
         "else None)\nfully_shard(model, mesh=dp_mesh)\n",
         ":11:79: error: `p.ndim` is not known here [E0217]", NULL},
        {"    fully_shard(block, mesh=dp_mesh, shard_placement_fn=fn)\n",
         ":11:57: error: which dim of each parameter is cut cannot be seen here [E0217]", NULL},
        {"    fully_shard(block, mesh=dp_mesh, shard_placement_fn=lambda p: Shard(2))\n",
         ":11:67: error: fully_shard on dim 2: not supported by this version [E0214]", NULL},
        {"    fully_shard(block, mesh=dp_mesh)\nfully_shard(model, mesh=dp_mesh)\n",
         ":11:5: error: fully_shard takes the experts of different ranks for copies [E0307]", NULL},
        {"    fully_shard(block.moe.experts, mesh=dp_mesh)\n"
         "    fully_shard(block, mesh=dp_mesh)\nfully_shard(model, mesh=dp_mesh)\n",
         ":11:5: error: fully_shard of experts over other axes than those of fully_shard that",
         NULL},
        {"model = DDP(model, device_mesh=dp_mesh)\n",
         ":11:9: error: DistributedDataParallel takes the experts of different ranks for copies",
         NULL},
    };
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
        Imported x = import_with(
            (ImportInput){.framework = "torch", .path = "plan.py", .model = "llama4-scout"},
            arena_printf(arena,
                         "mesh = init_device_mesh('cuda', (2, 2), mesh_dim_names=('edp', 'ep'))\n"
                         "dp_mesh = mesh['edp', 'ep']._flatten('dp')\n"
                         "for block in model.layers:\n"
                         "    # experts\n\n\n\n\n\n"
                         "    parallelize_module(block.moe.experts, mesh['ep'], "
                         "ExpertParallel())\n%s",
                         shards[i].shard));
        if (shards[i].said) {
            REFUSES(x, shards[i].said);
            continue;
        }
        HOLDS(x, "groups: {dp: edp*ep}",
              "  layers.*.moe.experts: {style: expert_parallel, axis: ep, output: home}",
              arena_printf(arena,
                           "data_parallel: {mode: fsdp, axis: dp, unit: block, reshard: blocks, "
                           "grad_order: tp_first%s}",
                           shards[i].dims));
        PlanRun sharded = run_plan(&x, true);
        run_must_be(&sharded, "equivalent");
        assert_true(count_collectives(sharded.t, "gradients", "reduce_scatter", "edp") > 0);
    }
}
static const struct {
    const char *text, *said[3];
} torch_refusals[] = {
    {"{'a': ColwiseParalel()}",
     {"plan.py:1:7: error: unknown style ColwiseParalel [E0203]", "did you mean ColwiseParallel?"}},
    {"{'a': ColwiseParallel(output_layout=Shard(1))}",
     {"plan.py:1:23: error: unknown argument of ColwiseParallel 'output_layout' [E0201]",
      "did you mean 'output_layouts'?"}},
    {"{'a': RowwiseParallel(Shard(1))}", {":1:23: error: RowwiseParallel takes", "[E0301]"}},
    {"{'a': ExpertParallel(x=1),\n 'b': DeepEPExpertParallel()}",
     {":1:22: error: unknown argument of ExpertParallel 'x' [E0201]",
      ":2:7: error: style DeepEPExpertParallel sends rows by kernels of its own", "[E0214]"}},
    {"m = init_device_mesh('cuda', (2, 2), mesh_dim_names=('dp', 'tp'))\n"
     "e = init_device_mesh('cuda', (2, 2), mesh_dim_names=('edp', 'ep'))\n"
     "parallelize_module(model, m['dp', 'tp'], {'a': ColwiseParallel()})\n"
     "m['dp', 'cp']._flatten('ep')\n",
     {":2:54: error: axis edp of a second mesh: how it lies on the first one's ranks",
      ":3:27: error: ColwiseParallel takes a mesh of one axis [E0204]",
      ":4:9: error: the mesh has no axis cp [E0204]"}},
    {"m = init_device_mesh('cuda', (2, 2), mesh_dim_names=('dp', 'tp'))\n"
     "m[axes]._flatten('ep')\nm['dp', 'tp']._flatten('dp')\np = {}\np.update(q)\n",
     {":2:1: error: which axes this joins cannot be seen here [E0217]",
      ":3:1: error: the name dp is that of an axis already [E0307]",
      ":5:1: error: what `update` does to the plan cannot be seen here [E0217]"}},
    {"{'a': ColwiseParallel(output_layouts=_StridedShard(0, split_factor=2))}",
     {":1:38: error: _StridedShard at a module's boundary", "[E0214]"}},
    {"{'a': RowwiseParallel(output_layouts=Partial('avg'))}",
     {":1:38: error: a pending 'avg'", "[E0214]"}},
    {"{'a': PrepareModuleInput(input_layouts=(Shard(1), None), desired_input_layouts="
     "Replicate())}",
     {":1:80: error: input_layouts and desired_input_layouts must have as many", "[E0307]"}},
    {"{'a': PrepareModuleInput(input_kwarg_layouts={'mask': Shard(1)},\n"
     "desired_input_kwarg_layouts={'mask': Replicate()})}",
     {":1:47: error: a layout for the keyword 'mask'", ":2:30: error:", "[E0214]"}},
    {"x = {'a': ColwiseParallel(use_local_output=1)}\nparallelize_module(model, tp, x)",
     {":1:44: error: use_local_output wants True or False", "[E0301]"}},
    {"for i in x:\n    parallelize_module(model.layers[i], m, {})\n",
     {":1:1: error: a loop would have to be executed: `x` is not known here", "[E0217]"}},
    {"if cond:\n    x = ColwiseParallel\nelse:\n    x = RowwiseParallel\n{'a': x(), 'b': f'{q}'}",
     {":1:1: error: this depends on the `if` in line 1: `cond` is not known here",
      ":5:17: error: `q` is not known here"}},
    {"for b in model.layers:\n    fully_shard(b, reshard_after_forward=r)\nfully_shard(model)\n",
     {":2:42: error: `r` is not known here [E0217]"}},
    {"if cond:\n    fully_shard(model)\n",
     {":1:4: error: which branch is taken cannot be seen here: `cond` is not known here [E0217]",
      "`cond = True` (or False) in a line of its own before it"}},
    {"for b in model.layers:\n    if not b.moe_enabled:\n        continue\n",
     {":2:8: error: which branch is taken cannot be seen here: this may differ from layer to"}},
    {"for b in model.layers:\n    parallelize_module(b, mesh, {})\n    break\n",
     {":1:1: error: a loop over the layers that is left before its end"}},
    {"parallelize_module(model, tp, {k: v for k, v in t})",
     {":1:49: error: `t` is not known here [E0217]"}},
    {"{'a': Shard(1) if x else y, 'a.b': ColwiseParallel()}",
     {":1:19: error: `x` is not known here [E0217]"}},
    {"{'a': ColwiseParallel(output_layouts=Shard(1 if 0 < 1 < 2 else 0))}",
     {":1:49: error: an expression with 'a chain of comparisons' would have to be executed"}},
    {"for i in range(2):\n    p = {f'a.{model}': ColwiseParallel()}\n"
     "    parallelize_module(model, mesh, p)\n",
     {":2:10: error: `model` is not known here [E0217]"}},
    {"{1: ColwiseParallel()}", {":1:2: error: a key of this dict is a whole number, not text"}},
    {"fully_shard(model, **config)\n", {":1:20: error: `config` is not known here [E0217]"}},
    {"def f(x):\n    return f(x)\nparallelize_module(model, mesh, f(1))\n",
     {":2:12: error: functions that call one another so deep are not read here [E0217]"}},
    {"p = {}\nif 'a' in p:\n    x = 1\nelse:\n    raise ValueError('no')\n",
     {":5:5: error: the file raises an error in this line [E0217]"}},
    {"model = apply_tp(model)\n", {":1:9: error: what `apply_tp` does to the plan cannot be seen"}},
    {"model = FSDP(model)\n", {":1:9: error: FullyShardedDataParallel: not supported by this"}},
    {"parallelize_module(model, mesh, {'a': ColwiseParallel()})\nwith loss_parallel() if x else y:"
     "\n    pass\n",
     {":2:25: error: `x` is not known here [E0217]"}},
    {"parallelize_module(model.layers[:2], mesh, {'a': ColwiseParallel()})",
     {":1:32: error: a slice is not read here [E0217]"}},
    {"apply_tp(model)\n",
     {":1:1: error: what `apply_tp` does to the plan cannot be seen here [E0217]"}},
    {"fully_shard(model)\n", {":1:1: error: fully_shard of the whole model as one unit"}},
    {"fully_shard(model, shard_placement_fn=lambda p: p)\n",
     {":1:46: error: shard_placement_fn gives a Shard [E0206]"}},
    {"{'a': ColwiseParallel(), 'a': RowwiseParallel()}",
     {":1:26: error: 'a' occurs twice [E0107]", "the first one is in line 1"}},
    {"{'a': ColwiseParallel(\n", {"plan.py:2:1: error: ", "[E0110]"}},
    {"parallelize_module(model, mesh['pp'], {'a': ColwiseParallel()})",
     {":1:27: error: the mesh has no axis pp [E0204]"}},
    {"x = 1\n", {":1:1: error: no plan stands here [E0208]"}},
    /* a table of Hugging Face's, assigned or alone */
    {"tp_plan = {'layers.*.self_attn.q_proj': 'colwise'}\n",
     {":1:11: error: no plan of PyTorch stands here, but a tp_plan of Hugging Face [E0208]",
      "`import hf --config config.json --tp 8 --tp-plan FILE`"}},
    {"{'layers.*.self_attn.q_proj': 'colwise'}",
     {":1:31: error: unknown style colwise [E0203]",
      "`import hf --config config.json --tp 8 --tp-plan FILE`"}},
};
/* What literals decide is followed, as Python would: each of these files makes the same lines. */
static const char *const decided[] = {
    "TP = True\nif TP and not False:\n    parallelize_module(model, mesh, "
    "{'layers.*.attention.wo': "
    "RowwiseParallel(output_layouts=Shard(1) if 2 > 1 else Replicate())})\nelse:\n    f(x)\n",
    "for i, block in enumerate(model.layers):\n    plan = {f'attention.{n}': RowwiseParallel("
    "output_layouts=Shard(int(TP))) for n in ['wo'] if n != 'wq' for TP in [True]}\n"
    "    parallelize_module(block, mesh, plan)\n",
    "for i in range(len(model.layers)):\n    parallelize_module(model.layers[i].attention, mesh,\n"
    "        dict(wo=RowwiseParallel(output_layouts=Shard(3 - 2))))\n",
    "table = {'wo': RowwiseParallel}\nplan = {}\nfor name, style in table.items():\n"
    "    plan['layers.*.attention.' + name] = style(output_layouts=Shard(len(table)))\n"
    "parallelize_module(model, mesh, plan)\n",
    "def table(sp, reduce=True):\n    if not sp: return {}\n"
    "    layouts = {'output_layouts': Shard(1)}\n"
    "    return {'attention.wo': RowwiseParallel(**layouts)}\n"
    "def apply(model, tp_mesh, sp: bool = False) -> None:\n    if sp is None:\n"
    "        raise ValueError\n    for block in model.layers.values():\n"
    "        parallelize_module(block, tp_mesh, table(sp=sp))\n"
    "def main():\n    model = Transformer(ModelArgs()).to('cuda')\n"
    "    model = apply(model, mesh['tp'], sp=mesh['tp'].size() == 2)\n"
    "if __name__ == '__main__':\n    main()\n",
    "sp = True\ndef apply(model, tp_mesh, sp):\n    plan = {'x': 1} if not sp else {}\n"
    "    plan |= {'attention.wo': RowwiseParallel(output_layouts=Shard(1))}\n"
    "    if debug:\n        print('a')\n    elif rank == 0:\n        logger.info(f'{plan=}')\n"
    "    for _, block in model.layers.items():\n"
    "        block.attention.n_heads = block.attention.n_heads // tp_mesh.size()\n"
    "        parallelize_module(block, tp_mesh, {**plan})\n",
    "col, row = ColwiseParallel, RowwiseParallel\nplan = {'layers.*.attention.wo': row()}\n"
    "plan.update({k: row(output_layouts=Shard(1)) for k in plan.keys()})\n"
    "parallelize_module(Model.from_args(a), mesh, plan)\n"
    "for step in range(10 ** 12):\n    loss = model(x)\n    loss.backward()\n",
};
/* Cases are decided as branches are; what would bind a name is refused at its place. */
static void test_torch_match(void **state) {
    (void)state;
    static const struct {
        const char *subject, *reshard;
    } rows[] = {{"'always'", "true"}, {"'never'", "false"}, {"None", "true"}, {"'other'", "false"}};
    static const char text[] = "policy = %s\nmatch policy:\n    case 'always' | 'on':\n"
                               "        keep = True\n    case 'never':\n        keep = False\n"
                               "    case None if True: keep = True\n    case _:\n"
                               "        keep = False\nmatch = 3\n"
                               "for block in model.layers:\n"
                               "    fully_shard(block, mesh=mesh['dp'], "
                               "reshard_after_forward=keep)\n"
                               "fully_shard(model, mesh=mesh['dp'], reshard_after_forward=keep)\n";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Imported r = torch("dp=2", arena_printf(arena, text, rows[i].subject));
        const char *want = arena_printf(arena, " reshard: %s,", rows[i].reshard);
        if (!r.plan.text || !strstr(r.plan.text, want)) fail_msg("%s\n%s", want, r.said);
    }
    Imported r = torch("dp=2", "match policy:\n    case [x, y]:\n        z = x\n");
    REFUSES(r, ":2:10: error: a pattern that is no literal");
    r = torch("dp=2", "match 1:\n    casse 1: z = 1\n");
    REFUSES(r, ":2:5: error: ");
    Str many = str_new(arena);
    str_add(&many, "match 1:\n    case 1");
    for (int i = 0; i < 30000; i++) str_add(&many, "|1");
    str_add(&many, ": x = 1\n");
    r = torch("dp=2", many.s);
    REFUSES(r, "levels of nesting");
}
/* A keyword in a call of transformers', which calls its attention so, and nowhere else. */
static void test_torch_keywords(void **state) {
    (void)state;
    static const char keyword[] = "PrepareModuleInput(input_kwarg_layouts={'hidden_states': "
                                  "Shard(1)}, desired_input_kwarg_layouts={'hidden_states': "
                                  "Replicate()})";
    Imported r = torch("tp=2", arena_printf(arena, "{'model.layers.*.self_attn': %s}", keyword));
    HOLDS(r, "{style: prepare_module_input, input: shard(1), desired_input: replicate}");
    assert_null(strstr(r.said, "by position"));
    r = torch("tp=2", arena_printf(arena, "{'model.layers.*.mlp': %s}", keyword));
    HOLDS(r, "model.layers.*.mlp: prepare_module_input");
    assert_non_null(strstr(r.said, "plan.py:1:"));
    assert_non_null(strstr(r.said, "gets 'hidden_states' by position"));
}
/* torchtitan's way to write it: a function of the file is given parallel_dims and job_config, calls
 * the others, and nothing calls it. The mesh decides the switches, what nobody changed is as
 * torchtitan has it, and --args says the rest. */
static const char titan_code[] =
    "saved = {\n    torch.ops.mm,\n    torch.ops.sdpa,\n}\n"
    "def tensor(model, tp_mesh, loss, tensorwise):\n"
    "    parallelize_module(model, tp_mesh, {'output': ColwiseParallel(input_layouts=Shard(1),\n"
    "        output_layouts=Shard(-1) if loss else Replicate(), use_local_output=not loss)})\n"
    "    row = Float8RowwiseParallel if tensorwise else RowwiseParallel\n"
    "    for block in model.layers.values():\n"
    "        parallelize_module(block, tp_mesh, {'attention.wo': row(output_layouts=Shard(1))})\n"
    "def shard(model, mesh, policy, pp):\n"
    "    config = {'mesh': mesh}\n"
    "    match policy:\n        case 'always':\n            reshard = True\n"
    "        case 'default':\n            reshard = not pp\n"
    "        case _:\n            raise ValueError(policy)\n"
    "    if model.tok_embeddings is not None:\n"
    "        fully_shard(model.tok_embeddings, **config, reshard_after_forward=reshard)\n"
    "    for i, block in model.layers.items():\n"
    "        fully_shard(block, **config, reshard_after_forward=reshard)\n"
    "    if model.norm is not None and model.output is not None:\n"
    "        fully_shard([model.norm, model.output], **config,\n"
    "                    reshard_after_forward=policy == 'always')\n"
    "    fully_shard(model, **config)\n"
    "def copies(model, mesh):\n    replicate(model, device_mesh=mesh)\n"
    "def parallelize(model, parallel_dims, job_config):\n"
    "    if parallel_dims.tp_enabled:\n"
    "        tensorwise = 'float8' in job_config.model.converters\n"
    "        tensor(model, parallel_dims.get_mesh('tp'),\n"
    "               loss=not job_config.parallelism.disable_loss_parallel,\n"
    "               tensorwise=tensorwise)\n"
    "    if job_config.activation_checkpoint.mode != 'none':\n"
    "        apply_ac(model, op_sac_save_list=saved)\n"
    "    if parallel_dims.fsdp_enabled:\n"
    "        names = ['dp_replicate', 'fsdp'] if parallel_dims.dp_replicate_enabled else ['fsdp']\n"
    "        shard(model, parallel_dims.get_mesh(names),\n"
    "              policy=job_config.parallelism.fsdp_reshard_after_forward,\n"
    "              pp=parallel_dims.pp_enabled)\n"
    "    elif parallel_dims.dp_replicate_enabled:\n"
    "        copies(model, parallel_dims.get_mesh('dp_replicate'))\n"
    "    return model\n";
static void test_torch_given(void **state) {
    (void)state;
    static const char row[] = "  layers.*.attention.wo: {style: rowwise, output: shard(1)}",
                      kept[] = "  loss: loss_parallel", always[] = "reshard: true";
    static const struct {
        const char *mesh, *args, *has[3], *lacks[3];
    } rows[] = {
        {"tp=2", NULL, {row, kept, "use_local_output: false"}, {"data_parallel"}},
        {"dp=2,tp=2", NULL, {row, kept, "mode: fsdp, axis: dp, unit: block, reshard: blocks"}, {0}},
        {"dp=2", NULL, {"mode: fsdp, axis: dp"}, {row, kept}},
        {"dp_replicate=2,dp_shard=2", NULL, {"replicate: dp_replicate, shard: dp_shard"}, {row}},
        {"dp_replicate=2", NULL, {"{mode: ddp, axis: dp_replicate}"}, {row, "fsdp"}},
        {"dp=2,tp=1", NULL, {"mode: fsdp"}, {row, kept}},
        {"tp=2",
         "job_config.parallelism.disable_loss_parallel=True",
         {row, "output: {style: colwise, input: shard(1), output: replicate"},
         {kept}},
        {"tp=2", "job_config.parallelism.disable_loss_parallel=False", {row, kept}, {0}},
        {"dp=2",
         "job_config.parallelism.fsdp_reshard_after_forward=\"always\"",
         {"mode: fsdp"},
         {"job_config.parallelism.fsdp_reshard_after_forward=", row}},
        {"dp=2", "parallel_dims.pp_enabled=True", {"reshard: false"}, {always}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Imported r = torch_given_args(rows[i].mesh, titan_code, rows[i].args);
        if (!r.plan.text) fail_msg("row %zu: %s", i, r.said);
        for (int k = 0; k < 3 && rows[i].has[k]; k++)
            if (!strstr(r.plan.text, rows[i].has[k]))
                fail_msg("row %zu lacks %s\n%s", i, rows[i].has[k], r.plan.text);
        for (int k = 0; k < 3 && rows[i].lacks[k]; k++)
            if (strstr(r.plan.text, rows[i].lacks[k]))
                fail_msg("row %zu has %s\n%s", i, rows[i].lacks[k], r.plan.text);
    }
}
/* As torchtitan 0.1 had it: other names, and the functions that lay out nothing stand in the file;
 * one of them lays out after all. */
static const char titan_old[] =
    "def checkpointed(module, ac_config):\n"
    "    if ac_config.mode == 'full':\n        return wrapper(module)\n"
    "    every = ac_config.option.isdigit()\n"
    "    if not every:\n        raise ValueError(ac_config.option)\n    return module\n"
    "def apply_ac(model, ac_config):\n"
    "    for i, block in model.layers.named_children():\n"
    "        block = checkpointed(block, ac_config)\n"
    "        model.layers.register_module(i, block)\n"
    "def train(model, tp_mesh, loss):\n"
    "    parallelize_module(model, tp_mesh, {'layers.*.attention.wo': RowwiseParallel(),\n"
    "        'output': ColwiseParallel(input_layouts=Replicate(), output_layouts=Shard(-1) if "
    "loss\n"
    "        else Replicate(), use_local_output=not loss)})\n"
    "def parallelize(model, world_mesh, parallel_dims, job_config):\n"
    "    if parallel_dims.tp_enabled:\n"
    "        train(model, world_mesh['tp'], parallel_dims.loss_parallel_enabled)\n"
    "    if job_config.activation_checkpoint.mode != 'none':\n"
    "        apply_ac(model, job_config.activation_checkpoint)\n"
    "    if job_config.training.compile:\n        apply_compile(model)\n"
    "    if parallel_dims.dp_shard_enabled or parallel_dims.cp_enabled:\n"
    "        names = ('dp_shard_cp',)\n"
    "        if parallel_dims.dp_replicate_enabled:\n"
    "            names = ('dp_replicate', 'dp_shard_cp')\n"
    "        for block in model.layers.values():\n"
    "            fully_shard(block, mesh=world_mesh[tuple(names)])\n"
    "        fully_shard(model, mesh=world_mesh[tuple(names)])\n"
    "    if parallel_dims.cp_enabled:\n"
    "        apply_cp_to_attention_module([b.attention for b in model.layers.values()])\n";
static void test_torch_given_old(void **state) {
    (void)state;
    static const char kept[] = "  loss: loss_parallel",
                      ring[] = "context_parallel: {mode: all_gather, order: zigzag, axis: cp}";
    static const struct {
        const char *mesh, *args, *has[3], *lacks[2];
    } rows[] = {
        {"tp=2", NULL, {kept, "use_local_output: false"}, {"data_parallel", ring}},
        {"tp=2",
         "job_config.parallelism.disable_loss_parallel=True",
         {"output: {style: colwise, input: replicate, output: replicate"},
         {kept}},
        {"dp_shard=2", NULL, {"mode: fsdp, axis: dp_shard,"}, {kept, "cut:"}},
        {"dp_replicate=2,dp_shard=2,cp=2,tp=2",
         NULL,
         {"groups: {dp_shard_cp: dp_shard*cp}", "shard: dp_shard_cp", ring},
         {"cut:"}},
        {"cp=2", NULL, {"mode: fsdp, axis: cp", ring}, {"cut:"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Imported r = torch_given_args(rows[i].mesh, titan_old, rows[i].args);
        if (!r.plan.text) fail_msg("row %zu: %s", i, r.said);
        for (int k = 0; k < 3 && rows[i].has[k]; k++)
            if (!strstr(r.plan.text, rows[i].has[k]))
                fail_msg("row %zu lacks %s\n%s", i, rows[i].has[k], r.plan.text);
        for (int k = 0; k < 2 && rows[i].lacks[k]; k++)
            if (strstr(r.plan.text, rows[i].lacks[k]))
                fail_msg("row %zu has %s\n%s", i, rows[i].lacks[k], r.plan.text);
    }
}
/* A function of the file with a name that lays out nothing elsewhere lays out what it says, by
 * whatever name; those that call one another end. */
static void test_torch_harmless_names(void **state) {
    (void)state;
    static const char *const heads[] = {
        "def train(m):\n    torch.distributed.fsdp.fully_shard(m)\n",
        "from torch.distributed.fsdp import fully_shard as cut\ndef train(m):\n    cut(m)\n",
        "def inner(m):\n    fully_shard(m)\ndef train(m):\n    inner(m)\n",
        "def train(m):\n    other(m)\ndef other(m):\n    train(m)\n    fully_shard(m)\n"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        Imported r = torch("dp=2", arena_printf(arena,
                                                "%sfor block in model.layers:\n"
                                                "    fully_shard(block)\ntrain(model)\n",
                                                heads[i]));
        bool deep = i == 3;
        if (deep ? !strstr(r.said, "so deep") : !r.plan.text) fail_msg("%zu: %s", i, r.said);
        if (!deep) assert_non_null(strstr(r.plan.text, "mode: fsdp, axis: dp"));
    }
    Imported r = torch("dp=2", "def eval(m):\n    train(m)\ndef train(m):\n    eval(m)\n"
                               "for block in model.layers:\n    fully_shard(block)\n"
                               "fully_shard(model)\ntrain(model)\n");
    if (!r.plan.text) fail_msg("%s", r.said);
    assert_non_null(strstr(r.plan.text, "mode: fsdp, axis: dp"));
}
/* Data parallelism cuts the batch over all its axes, whatever they are called, and over replicas
 * that the plan knows by their name; never over the axis of context parallelism. */
static void test_torch_batch(void **state) {
    (void)state;
    static const char code[] = "for block in model.layers:\n    fully_shard(block, mesh=mesh[%s])\n"
                               "fully_shard(model, mesh=mesh[%s])\n";
    static const struct {
        const char *mesh, *over, *cut, *input;
    } rows[] = {
        {"dp_replicate=2,dp_shard=2", "'dp_replicate', 'dp_shard'", NULL,
         "[B/(dp_replicate*dp_shard), S]"},
        {"dp_replicate=2,fsdp=2", "'dp_replicate', 'fsdp'", "cut: {batch: \"dp_replicate*fsdp\"}",
         "[B/(dp_replicate*fsdp), S]"},
        {"dp=2,fsdp=2", "'fsdp'", "cut: {batch: \"dp*fsdp\"}", "[B/(dp*fsdp), S]"},
        {"rep=2,fsdp=2,cp=2", "'rep', 'fsdp'", "cut: {batch: \"rep*fsdp\"}",
         "[B/(rep*fsdp), S/cp]"},
        {"dp=2,cp=2", "'dp', 'cp'", NULL, "[B/dp, S/cp]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Imported r = torch(rows[i].mesh, arena_printf(arena, code, rows[i].over, rows[i].over));
        if (!r.plan.text) fail_msg("row %zu: %s", i, r.said);
        const char *cut = strstr(r.plan.text, "cut:");
        if (rows[i].cut ? !cut || strncmp(cut, rows[i].cut, strlen(rows[i].cut)) != 0 : cut != NULL)
            fail_msg("row %zu: %s", i, r.plan.text);
        PlanRun run = plan_good(arena, r.plan.text, false);
        assert_string_equal(find_value(run.t, "input_ids", false)->symbolic, rows[i].input);
    }
}
static void test_torch_given_wrong(void **state) {
    (void)state;
    /* functions from elsewhere: torchtitan's have another way */
    static const char theirs[] = "from %s import apply_fsdp\napply_fsdp(model)\n";
    for (int k = 0; k < 2; k++) {
        Imported r =
            torch("dp=2", arena_printf(arena, theirs, k ? "torchtitan.models.llama4" : "ours"));
        assert_non_null(strstr(r.said, "what `apply_fsdp` does to the plan cannot be seen here"));
        assert_int_equal(strstr(r.said, "`shardproof import torchtitan train.toml`") != NULL, k);
    }
    static const struct {
        const char *mesh, *args, *says[2];
    } wrong[] = {
        {"tp=2",
         "job_config.parallelism.disable=True",
         {"--args:1:1: error: nothing in the file asks for `job_config.parallelism.disable`",
          "[E0201]"}},
        {"tp=2", "parallel_dims.tp_enabled", {"--args:1:1: error: ", "[E0110]"}},
        {"tp=2", "a=1 a=2", {"--args:1:5: error: 'a' occurs twice [E0107]"}},
        {"tp=2", "a=f(1)+", {"--args:1:", "error: "}},
        {"dp=2",
         "job_config.parallelism.fsdp_reshard_after_forward='x'",
         {"error: the file raises an error in this line [E0217]"}},
        {"tp=2", "job_config.model.converters=['float8']", {"Float8RowwiseParallel"}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Imported r = torch_given_args(wrong[i].mesh, titan_code, wrong[i].args);
        for (int k = 0; k < 2 && wrong[i].says[k]; k++)
            if (r.plan.text || !strstr(r.said, wrong[i].says[k]))
                fail_msg("%s: %s\n%s", wrong[i].args, wrong[i].says[k], r.said);
    }
}
static void test_torch_decided(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++) {
        Imported r = torch("tp=2", decided[i]);
        HOLDS(r, "  layers.*.attention.wo: {style: rowwise, output: shard(1)}");
        assert_ptr_equal(strstr(r.plan.text, "layers.*"), strrchr(r.plan.text, '*') - 7);
    }
    Imported r = torch("tp=2", "for i in range(3):\n    if i == 1: continue\n"
                               "    if i > 1:\n        break\n    parallelize_module(model.layers"
                               "[i], mesh, {'attention.wo': RowwiseParallel()})\n");
    HOLDS(r, "  layers.0.attention.wo: rowwise");
    assert_null(strstr(r.plan.text, "layers.1"));
    /* a branch that lays out nothing need not be decided, unless it says how the loss is computed
     */
    r = torch("tp=2",
              "parallelize_module(model, mesh, {'layers.*.attention.wo': RowwiseParallel()})"
              "\nfor batch in loader:\n    with loss_parallel():\n"
              "        loss.backward()\n");
    HOLDS(r, "  loss: loss_parallel");
    r = torch("tp=2", "if x:\n    with loss_parallel():\n        loss.backward()\n");
    REFUSES(r, ":1:4: error: which branch is taken cannot be seen here");
}
static void test_torch_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof torch_refusals / sizeof *torch_refusals; i++) {
        Imported r = torch("tp=2", torch_refusals[i].text);
        assert_null(r.plan.text);
        for (int k = 0; k < 3 && torch_refusals[i].said[k]; k++)
            if (!strstr(r.said, torch_refusals[i].said[k]))
                fail_msg("%s\nnothing says '%s' in\n%s", torch_refusals[i].text,
                         torch_refusals[i].said[k], r.said);
    }
    Imported r =
        torch("tp=2", "for b in model.layers:\n    fully_shard(b, reshard_after_forward=r)\n"
                      "fully_shard(model)\n"); /* the layers are taken all the same */
    assert_null(strstr(r.said, "the whole model as one unit"));
    r = import_with((ImportInput){.framework = "torch", .path = "plan.py"},
                    "{'a': ColwiseParallel()}");
    REFUSES(r, "the sizes of the model do not stand here [E0208]",
            "the mesh does not stand here [E0208]");
}
/* What the ordinary passes find in the plan is shown in the framework's file. */
static void test_places(void **state) {
    (void)state;
    Imported r = torch("tp=2", "p = {\n    'layers.*.attention.wq': ColwiseParallel(),\n"
                               "    'layers.*.atention.wk': ColwiseParallel(),\n}\n");
    PlanRun run = run_plan(&r, false);
    assert_non_null(strstr(diags_text(arena, run.d), "plan.py:3:5: error: "));
    /* a label that is not true: the residual is whole, the norm takes it for cut */
    r = torch("tp=2", "{'layers.*.attention_norm':\n   SequenceParallel(use_local_output=True)}");
    run = run_plan(&r, true);
    const char *said = diags_text(arena, run.d);
    assert_true(strstr(said, "plan.py:2:4: error: ") || strstr(said, "plan.py:1:2: error: "));
    assert_non_null(strstr(said, "[E0501]"));
    assert_non_null(strstr(said, "PyTorch believes the label"));
    /* what no line leads to is said of their file too */
    r = torch("tp=2", "{'layers.*.attention.wo': RowwiseParallel(output_layouts=Partial()),\n"
                      " 'layers.*.attention.w[qkv]': ColwiseParallel()}");
    run = run_plan(&r, true);
    run_must_be(&run, "different");
    assert_null(strstr(diags_text(arena, run.d), "imported.yaml"));
    assert_non_null(strstr(diags_text(arena, run.d), "plan.py"));
}
/* Every dense record's plan.json is imported; those whose model is none of this version's are
 * refused by name. */
static void test_torch_records(void **state) {
    (void)state;
    static const struct {
        const char *folder, *said; /* NULL: imported */
    } rows[] = {
        {"01_fig5_pair_tp4", NULL},
        {"02_toy_tp4", NULL},
        {"03_llama3_sp_gather_tp2", NULL},
        {"04_fsdp2_tp2_nosp", NULL},
        {"04_hsdp2x2", NULL},
        {"04_hsdp2x2_tp2_sp_loss_parallel", NULL},
        {"06_small_col_out3_tp4", NULL},
        {"06_small_row_in3_tp4", NULL},
        {"06_uneven_row_in10_scatter1_tp8", NULL},
        {"06_wrong_uneven_local_tp4", NULL},
        {"06_uneven_seq5_tp4", "a model of kind 'norm + mlp'"},
        {"08_wrong_missing_reduction_tp2", "a model of kind 'y = x + w2"},
        {"09_torchtune_llama4_decoder_fsdp2_tp2", "a model of kind 'torchtune llama4 decoder'"}};
    int n = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!golden_has(arena, "torch/%s/plan.json", rows[i].folder)) {
            printf("%s is not in this selection\n", rows[i].folder);
            continue;
        }
        const char *path = golden_path(arena, "torch/%s/plan.json", rows[i].folder);
        size_t size;
        const char *text = file_read(arena, diags_new(arena), path, 1 << 20, (Loc){0}, &size);
        Imported r = import_with((ImportInput){.framework = "torch", .path = path}, text);
        if (rows[i].said) {
            REFUSES(r, rows[i].said, "[E0214]");
        } else {
            PlanRun run = run_plan(&r, true);
            if (!run.t) run_print(&run);
            assert_non_null(run.t);
            run_must_be(&run, "equivalent");
        }
        n++;
    }
    assert_true(n >= 4);
}

/* ---- torchtitan ---- */
static Imported titan(const char *mesh, const char *text) {
    return import_with((ImportInput){.framework = "torchtitan", .path = "train.toml", .mesh = mesh},
                       text);
}
static const char titan_toml[] = "# a comment\n"
                                 "[job]\ndump_folder = './out'\n"
                                 "[model]\nname = \"llama3\"\nflavor = 'debugmodel'\n"
                                 "[training]\nlocal_batch_size = 1\nseq_len = 32\n"
                                 "mixed_precision_param = \"float32\"\n"
                                 "[parallelism]\n"
                                 "data_parallel_replicate_degree = 1\n"
                                 "data_parallel_shard_degree = -1 # the rest\n"
                                 "tensor_parallel_degree = 2\n"
                                 "context_parallel_degree = 2\n"
                                 "fsdp_reshard_after_forward = \"never\"\n"
                                 "[activation_checkpoint]\nmode = \"full\"\n";
static void test_torchtitan(void **state) {
    (void)state;
    Imported r = titan("dp_shard=2", titan_toml);
    HOLDS(r, "data: {batch: 2, sequence: 32, dtype: f32, seed: 0}",
          "mesh: {dp_shard: 2, cp: 2, tp: 2}", "recompute: block",
          "data_parallel: {mode: fsdp, axis: \"dp_shard*cp\", unit: block, reshard: false, "
          "grad_order: tp_first}",
          "context_parallel: {mode: all_gather, order: zigzag, axis: cp}",
          "  layers.*.attention.wo: {style: rowwise, output: shard(1)}",
          "  output: {style: colwise, input: shard(1), output: shard(-1), use_local_output: false}",
          "  loss: loss_parallel");
    equivalent(&r);
    /* the lines are those of the recipe that is held against torchtitan's collectives elsewhere */
    r = titan(NULL, "[parallelism]\ndata_parallel_shard_degree = 1\ntensor_parallel_degree = 4\n"
                    "disable_loss_parallel = true\n[model]\nflavor = \"8B\"\n"
                    "[training]\nseq_len = 8192\n");
    HOLDS(r, "mesh: {tp: 4}",
          "model: {preset: llama3.1-8b, layers: 1, shrink: 16, parts: [embedding, blocks, norm, "
          "head, loss]}",
          "# sequence: 64 tokens instead of 8192, so that it runs in seconds; --full keeps them",
          "  output: {style: colwise, input: shard(1), output: replicate}");
    assert_null(strstr(r.plan.text, "loss_parallel"));
    assert_null(strstr(r.plan.text, "data_parallel"));
    equivalent(&r);
    r = titan(NULL, "[parallelism]\ndata_parallel_replicate_degree = 2\n"
                    "data_parallel_shard_degree = 2\n[model]\nflavor = \"debugmodel\"\n");
    HOLDS(r, "mesh: {dp_replicate: 2, dp_shard: 2}",
          "data_parallel: {mode: hsdp, replicate: dp_replicate, shard: \"dp_shard\", unit: block, "
          "reshard: true, grad_order: tp_first}");
    equivalent(&r);
}
/* Experts where torchtitan 0.2.2 puts them, and what becomes of its router's gradient: labelled
 * whole and a part where scores come after the experts, and where the ranks of tp take tokens of
 * their own (etp = 1), as recorded (golden/moe/styles). */
static const struct {
    const char *model, *flavor, *degrees; /* tp, ep, etp on dp_shard = 4 */
    const char *mesh, *groups, *line, *rest;
    const char *record; /* of the same styles; NULL: none */
    const char *wrong;
} expert_rows[] = {
    {"deepseek_v3", "debugmodel", "1, 2, 1", "{dp_shard_edp: 2, dp_shard_ep: 2}",
     "{dp_shard: dp_shard_edp*dp_shard_ep, ep: dp_shard_ep}",
     "{style: expert_parallel, axis: ep, output: home}", "[E/(ep*dp_shard_edp), Fe, D]",
     "ep2_score_after", NULL},
    {"deepseek_v3", "debugmodel", "2, 1, 1", "{dp_shard: 4, tp: 2}", NULL, "tensor_parallel",
     "[E/dp_shard, Fe/tp, D]", "tp2_score_after", "grad.layers.1.moe.weights"},
    {"deepseek_v3", "debugmodel", "2, 2, 2", "{dp_shard_edp: 2, dp_shard_ep: 2, tp: 2}",
     "{dp_shard: dp_shard_edp*dp_shard_ep, etp: tp, ep: dp_shard_ep}",
     "{style: expert_tensor_parallel, weight: {ep: shard(e), etp: shard(w)}}",
     "[E/(ep*dp_shard_edp), Fe/etp, D]", "tp2_ep2_etp2_score_after", "grad.layers.1.moe.weights"},
    {"llama4", "debugmodel", "1, 4, 1", "{dp_shard: 4}", "{ep: dp_shard}",
     "{style: expert_parallel, axis: ep, output: home}", "[E/ep, Fe, D]", "ep4_score_before", NULL},
    {"llama4", "debugmodel", "2, 1, 1", "{dp_shard: 4, tp: 2}", NULL, "tensor_parallel",
     "[E/dp_shard, Fe/tp, D]", "tp2_score_before", NULL},
    {"llama4", "debugmodel_irope", "2, 2, 2", "{dp_shard_edp: 2, dp_shard_ep: 2, tp: 2}",
     "{dp_shard: dp_shard_edp*dp_shard_ep, etp: tp, ep: dp_shard_ep}",
     "{style: expert_tensor_parallel, weight: {ep: shard(e), etp: shard(w)}}",
     "[E/(ep*dp_shard_edp), Fe/etp, D]", "tp2_ep2_etp2_score_before", NULL},
    {"llama4", "debugmodel", "2, 2, 1", "{dp_shard: 4, tp: 2}", "{ep: tp}",
     "{style: expert_parallel, axis: ep, output: home}", "[E/(ep*dp_shard), Fe, D]",
     "tp2_ep2_etp1_score_before", "grad.layers.1.post_attn_norm"},
    {"llama4", "debugmodel", "2, 4, 1", "{dp_shard_edp: 2, dp_shard_ep: 2, tp: 2}",
     "{dp_shard: dp_shard_edp*dp_shard_ep, ep: dp_shard_ep*tp}",
     "{style: expert_parallel, axis: ep, output: home}", "[E/(ep*dp_shard_edp), Fe, D]",
     "tp2_ep4_etp1_score_before", "grad.layers.1.post_attn_norm"},
    {"qwen3", "debugmodel_moe", "4, 2, 4", "{dp_shard_edp: 2, dp_shard_ep: 2, tp: 4}",
     "{dp_shard: dp_shard_edp*dp_shard_ep, etp: tp, ep: dp_shard_ep}",
     "{style: expert_tensor_parallel, weight: {ep: shard(e), etp: shard(w)}}",
     "[E/(ep*dp_shard_edp), Fe/etp, D]", NULL, "grad.layers.0.moe.weights"},
};
static void experts_row(int i) {
    int tp, ep, etp;
    assert_int_equal(sscanf(expert_rows[i].degrees, "%d, %d, %d", &tp, &ep, &etp), 3);
    Imported r = titan(
        NULL, arena_printf(arena,
                           "[model]\nname = \"%s\"\nflavor = \"%s\"\n[training]\n"
                           "local_batch_size = 4\nseq_len = 16\n[parallelism]\n"
                           "data_parallel_shard_degree = 4\ntensor_parallel_degree = %d\n"
                           "expert_parallel_degree = %d\nexpert_tensor_parallel_degree = %d\n",
                           expert_rows[i].model, expert_rows[i].flavor, tp, ep, etp));
    const char *wrong = expert_rows[i].wrong, *record = expert_rows[i].record,
               *path = record ? arena_printf(arena, "moe/styles/%s.json", record) : "";
    HOLDS(r, arena_printf(arena, "mesh: %s", expert_rows[i].mesh),
          arena_printf(arena, "  layers.*.moe.experts: %s", expert_rows[i].line));
    if (expert_rows[i].groups) HOLDS(r, arena_printf(arena, "groups: %s", expert_rows[i].groups));
    if (ep > 1) HOLDS(r, "moe: {fsdp_dim: auto}");
    PlanRun run = run_plan(&r, true);
    if (!run.t || !run.t->verdict) run_print(&run);
    run_must_be(&run, wrong ? "different" : "equivalent");
    if (wrong) assert_string_equal(run.t->first_wrong, wrong);
    int layer = strcmp(expert_rows[i].model, "qwen3") != 0;
    const TraceParam *w1 =
        find_param(run.t, arena_printf(arena, "layers.%d.moe.experts.w1", layer));
    assert_string_equal(w1->rest.symbolic, expert_rows[i].rest);
    if (!record || !golden_has(arena, "%s", path)) return;
    const Json *router =
        json_get(json_get(golden_json(arena, golden_path(arena, "%s", path)), "gradients"),
                 "moe.router.gate.weight");
    assert_int_equal(json_get(router, "max_abs_diff_after_sum_over_data_parallel")->r > 1e-3,
                     wrong != NULL);
}
static void test_torchtitan_experts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof expert_rows / sizeof *expert_rows; i++) experts_row((int)i);
    /* the whole sizes of each flavor, and more ranks than experts: dim 1 at rest */
    static const char *const sizes[][4] = {
        {"deepseek_v3", "671B", "expert_parallel_degree = 64\n", "[E/ep, Fe/dp_shard_edp, D]"},
        {"deepseek_v3", "16B", "expert_parallel_degree = 16\n", "[E/ep, Fe/dp_shard_edp, D]"},
        {"llama4", "17bx16e", "expert_parallel_degree = 4\n", "[E/ep, Fe/dp_shard_edp, D]"},
        {"llama4", "17bx128e", "expert_parallel_degree = 16\n", "[E/(ep*dp_shard_edp), Fe, D]"},
        {"qwen3", "235B-A22B", "expert_parallel_degree = 8\n", "[E/(ep*dp_shard_edp), F, D]"},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t ranks = strcmp(sizes[i][1], "671B") ? 128 : 512;
        Imported r =
            titan(NULL, arena_printf(arena,
                                     "[model]\nname = \"%s\"\nflavor = \"%s\"\n[training]\n"
                                     "local_batch_size = 1\nseq_len = 8192\n[parallelism]\n%s"
                                     "data_parallel_shard_degree = %lld\n",
                                     sizes[i][0], sizes[i][1], sizes[i][2], (long long)ranks));
        PlanRun run = run_plan(&r, false);
        if (!run.t) run_print(&run);
        bool found = false;
        for (int k = 0; k < 4 && !found; k++) {
            const TraceParam *w1 =
                trace_param(run.t, arena_printf(arena, "layers.%d.moe.experts.w1", k));
            if (w1) assert_string_equal(w1->rest.symbolic, sizes[i][3]);
            found = w1 != NULL;
        }
        assert_true(found);
        assert_int_equal(strstr(r.plan.text, "rope_type: yarn") != NULL,
                         !strcmp(sizes[i][0], "deepseek_v3"));
    }
}
/* The lines for tensor parallelism name modules that each flavor has. */
static void test_torchtitan_flavors(void **state) {
    (void)state;
    static const char *const flavors[][2] = {
        {"llama3", "debugmodel"},    {"llama3", "405B"},           {"llama4", "debugmodel"},
        {"llama4", "17bx16e"},       {"llama4", "17bx128e_irope"}, {"deepseek_v3", "debugmodel"},
        {"deepseek_v3", "16B"},      {"deepseek_v3", "671B"},      {"qwen3", "0.6B"},
        {"qwen3", "debugmodel_moe"}, {"qwen3", "235B-A22B"},
    };
    for (size_t i = 0; i < sizeof flavors / sizeof *flavors; i++) {
        Imported r =
            titan(NULL, arena_printf(arena,
                                     "[model]\nname = \"%s\"\nflavor = \"%s\"\n[training]\n"
                                     "local_batch_size = 2\nseq_len = 32\n[parallelism]\n"
                                     "data_parallel_shard_degree = 2\ntensor_parallel_degree = 4\n",
                                     flavors[i][0], flavors[i][1]));
        PlanRun run = run_plan(&r, false);
        if (!run.t) run_print(&run);
        assert_non_null(run.t);
    }
}
#define PP "[model]\nflavor = \"8B\"\n[parallelism]\npipeline_parallel_degree = 2\n"
/* Which layers a stage has: generate_llm_fqn_per_model_part of torchtitan's pipeline_parallel.py,
 * worked out by hand; a micro-batch of one sequence, two stages of a rank where the schedule has
 * several, and parameters that stay gathered, are its defaults. */
static void test_torchtitan_pipelines(void **state) {
    (void)state;
    static const struct {
        const char *keys, *schedule, *chunks, *stages;
        bool full;
    } rows[] = {
        {"", "1f1b", NULL, "[[0], [1]]", false},
        {"pipeline_parallel_first_stage_less_layers = 0\n", "1f1b", NULL, "[[0, 1, 2], [3]]",
         false},
        {"pipeline_parallel_schedule = \"interleaved1f1b\"\n", "interleaved", "2",
         "[[0, 1], [2, 3, 4], [5, 6], [7]]", false},
        {"pipeline_parallel_schedule = \"ZBVZeroBubble\"\npipeline_parallel_layers_per_stage = 9\n",
         "zb-v", "2", "[[0, 1], [2, 3, 4], [5, 6], [7]]", false},
        {"pipeline_parallel_schedule = \"Interleaved1F1B\"\n", "interleaved", "2",
         "[[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15, 16], [17, 18, 19, 20, 21, 22, "
         "23, 24], [25, 26, 27, 28, 29, 30, 31]]",
         true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = arena_printf(arena,
                                        PP "data_parallel_shard_degree = 2\n%s"
                                           "[training]\nlocal_batch_size = 6\nseq_len = 16\n",
                                        rows[i].keys);
        Imported r = import_with(
            (ImportInput){.framework = "torchtitan", .path = "train.toml", .full = rows[i].full},
            text);
        HOLDS(r, "mesh: {pp: 2, dp_shard: 2}",
              "pipeline:", arena_printf(arena, "  schedule: %s", rows[i].schedule),
              arena_printf(arena, "  microbatches: %d", rows[i].full ? 6 : 4),
              arena_printf(arena, "  stages: %s", rows[i].stages));
        if (rows[i].chunks) HOLDS(r, arena_printf(arena, "  chunks: %s", rows[i].chunks));
        assert_non_null(strstr(r.plan.text, "reshard: false"));
        assert_non_null(strstr(r.plan.text, rows[i].full ? "batch: 12," : "batch: 8,"));
        if (rows[i].full) run_plan(&r, false);
        else equivalent(&r);
    }
    Imported r = titan(NULL, PP "data_parallel_shard_degree = 2\n"
                                "fsdp_reshard_after_forward = \"always\"\n[job]\nx = 1\n[comm]\n");
    assert_non_null(strstr(r.plan.text, "reshard: true"));
    assert_non_null(strstr(r.plan.text, "# not read, for they say nothing about who holds what: "
                                        "[job], [comm]\n"));
}
typedef struct {
    const char *text, *said[3];
} TitanRefusal;
static void titan_refuses(const TitanRefusal *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        Imported r = titan(NULL, rows[i].text);
        assert_null(r.plan.text);
        for (int k = 0; k < 3 && rows[i].said[k]; k++)
            if (!strstr(r.said, rows[i].said[k]))
                fail_msg("%s\nnothing says '%s' in\n%s", rows[i].text, rows[i].said[k], r.said);
    }
}
#define DS "[model]\nname = \"deepseek_v3\"\n[parallelism]\ndata_parallel_shard_degree = 4\n"
/* Degrees that torchtitan 0.2.2 stops at, or that no plan here says. */
static void test_torchtitan_degrees(void **state) {
    (void)state;
    static const TitanRefusal rows[] = {
        {DS "expert_parallel_degree = 2\nexpert_tensor_parallel_degree = 2\n",
         {":6:1: error: experts cut over 2 ranks, other layers over 1: torchtitan raises [E0307]"}},
        {DS "expert_parallel_degree = 3\n",
         {":5:1: error: experts over 3 ranks of 4 (dp_shard, cp and tp): torchtitan raises"}},
        {DS "tensor_parallel_degree = 4\nexpert_parallel_degree = 2\n",
         {":6:1: error: experts on a part of the ranks of tp: not supported by this version "
          "[E0214]",
          "a multiple of tensor_parallel_degree"}},
        {"[model]\nname = \"llama4\"\n[parallelism]\ndata_parallel_shard_degree = 1\n"
         "tensor_parallel_degree = 2\nexpert_parallel_degree = 2\n",
         {":6:1: error: expert_parallel_degree without a rank of dp_shard or cp", "[E0307]"}},
        {"[model]\nflavor = \"8B\"\n[parallelism]\ndata_parallel_shard_degree = 4\n"
         "expert_parallel_degree = 2\n",
         {":5:1: error: expert_parallel_degree of 2: llama3 8B has no experts [E0307]"}},
        {"[model]\nname = \"deepseek_v3\"\nflavor = \"16B\"\n[parallelism]\n"
         "data_parallel_shard_degree = 1\ncontext_parallel_degree = 2\n",
         {":6:1: error: flavor 16B attends by FlexAttention", "[E0307]"}},
        {"[model]\nname = \"deepseek_v3\"\nflavor = \"236B\"\n[parallelism]\n"
         "data_parallel_shard_degree = 2\n",
         {":3:1: error: flavor '236B' of deepseek_v3: not supported by this version: its router "
          "takes groups of a softmax [E0214]"}},
        {"[model]\nname = \"qwen3\"\nflavor = \"8B\"\n[parallelism]\n"
         "data_parallel_shard_degree = 2\npipeline_parallel_degree = 2\n",
         {":6:1: error: torchtitan cannot cut qwen3 into stages: it raises [E0307]"}},
        {DS "expert_parallel_degree = 2\nexpert_parallel_comm_backend = \"deepep\"\n",
         {":6:1: error: expert_parallel_comm_backend: not supported by this version [E0214]"}},
        {"[model]\nflavor = \"8B\"\n[parallelism]\ndata_parallel_shard_degree = 1\n"
         "tensor_parallel_degree = 4\n[training]\nseq_len = 36\n",
         {":7:1: error: seq_len: 36 is no multiple of tp times twice cp, 8: torchtitan stops "
          "[E0307]"}},
        {"[model]\nflavor = \"8B\"\n[parallelism]\ndata_parallel_shard_degree = 1\n"
         "data_parallel_replicate_degree = 2\ntensor_parallel_degree = 4\n",
         {":5:1: error: copies of the model beside other degrees, and no shards: torchtitan "
          "raises [E0307]"}},
    };
    titan_refuses(rows, sizeof rows / sizeof *rows);
}
static void test_torchtitan_refusals(void **state) {
    (void)state;
    static const TitanRefusal rows[] = {
        {"[parallelism]\ndata_parallel_shard_degree = -1\n",
         {"train.toml:2:1: error: data_parallel_shard_degree is -1", "[E0208]",
          "--mesh dp_shard=4"}},
        {PP "data_parallel_shard_degree = 1\npipeline_parallel_schedule = \"1F1BB\"\n"
            "pipeline_parallel_schedule_csv = \"a.csv\"\n",
         {":6:1: error: schedule '1F1BB' is not known here [E0206]", "did you mean '1F1B'?",
          ":7:1: error: pipeline_parallel_schedule_csv: not supported by this version [E0214]"}},
        {PP "data_parallel_shard_degree = 1\npipeline_parallel_microbatch_size = 3\n",
         {":6:1: error: micro-batches of 3 of a batch of 8: torchtitan raises [E0307]"}},
        {PP "data_parallel_shard_degree = 1\npipeline_parallel_layers_per_stage = 5\n",
         {":6:1: error: 32 layers, 5 a stage, are 7 stages for 2 ranks", "[E0307]"}},
        {"[model]\nflavor = \"8B\"\n[parallelism]\ndata_parallel_shard_degree = 1\n"
         "pipeline_parallel_degree = 40\n",
         {":5:1: error: 40 stages: a model of 32 layers leaves one of them without [E0307]"}},
        {"[parallelism]\ntensor_paralel_degree = 2\n[trainin]\n",
         {":2:1: error: unknown key of [parallelism] 'tensor_paralel_degree' [E0201]",
          ":3:2: error: unknown section 'trainin' [E0201]", "did you mean 'training'?"}},
        {"[parallelism]\ntensor_parallel_degree = 8\ntensor_parallel_degree = 4\n",
         {":3:1: error: 'tensor_parallel_degree' occurs twice [E0107]"}},
        {"[parallelism]\n[parallelism]\n", {":2:2: error: table [parallelism] occurs twice"}},
        {"[model]\nname = \"gpt_oss\"\n",
         {":2:1: error: torchtitan's plan of 'gpt_oss': not supported by this version [E0214]",
          "name = \"llama3\", \"llama4\", \"deepseek_v3\", \"qwen3\""}},
        {"[model]\nflavor = \"9B\"\n", {":2:1: error: flavor '9B' of llama3", "[E0206]"}},
        {"[parallelism]\ncontext_parallel_rotate_method = \"alltoall\"\n",
         {":2:1: error: context_parallel_rotate_method: not supported", "[E0214]"}},
        {"[parallelism]\ntensor_parallel_degree = two\nx = [1, 2\n",
         {":2:26: error: a value is expected here [E0110]", "text needs quotes",
          "',' or ']' is expected here [E0110]"}},
        {"[parallelism]\ntensor_parallel_degree = 1979-05-27\n", {":2:30: error:", "[E0110]"}},
        {"a.b = 1\na.b.c = 2\n[a]\n", {":2:3: error: 'b' has a value already", "[E0107]"}},
    };
    titan_refuses(rows, sizeof rows / sizeof *rows);
    /* what changes no placement is said and left out */
    Imported r = titan(NULL, "[parallelism]\ndata_parallel_shard_degree = 2\n[model]\n"
                             "converters = [\"float8\"]\n[activation_checkpoint]\n"
                             "mode = \"selective\"\n");
    assert_non_null(r.plan.text);
    assert_non_null(strstr(r.said, "train.toml:4:1: warning: converters change"));
    assert_non_null(strstr(r.said, "train.toml:6:1: warning: selective activation"));
    /* a mesh that says otherwise */
    r = titan("tp=4,ep=2", "[parallelism]\ntensor_parallel_degree = 2\n"
                           "data_parallel_shard_degree = 1\n");
    REFUSES(r, "--mesh:1:1: error: axis tp of 4 ranks has 2 in the file [E0307]",
            "--mesh names an axis that torchtitan has not [E0204]");
}

/* ---- megatron ---- */
static Imported megatron(ImportInput in, const char *text) {
    in.framework = "megatron";
    if (!in.path) in.path = "args.txt";
    return import_with(in, text);
}
static const char megatron_args[] =
    "torchrun --nproc_per_node 4 --nnodes 2 pretrain_gpt.py \\\n"
    "  --tensor-model-parallel-size 2 --sequence-parallel   # a comment\n"
    "  --context-parallel-size=2 --cp-comm-type all_gather \\\n"
    "  --num-layers 2 --hidden-size 64 --ffn-hidden-size 96 --num-attention-heads 8 \\\n"
    "  --group-query-attention --num-query-groups 4 --swiglu --normalization RMSNorm \\\n"
    "  --position-embedding-type 'rope' --rotary-base 500000 --vocab-size 250 \\\n"
    "  --make-vocab-size-divisible-by 16 --add-qkv-bias --disable-bias-linear --qk-layernorm \\\n"
    "  --seq-length 16 --micro-batch-size 2 --global-batch-size 64 \\\n"
    "  --recompute-granularity full --data-path 0.5 a 0.5 b --lr 1e-4 --use-flash-attn\n";
#define SIZES                                                                                      \
    "--num-layers 1 --hidden-size 64 --num-attention-heads 4 --swiglu --normalization RMSNorm "    \
    "--use-rotary-position-embeddings --vocab-size 128 --seq-length 16 "
/* Ranks counted twice: tp, cp, dp by the dense layers, etp, ep and what is left by the experts. */
static void test_megatron_experts(void **state) {
    (void)state;
    static const struct {
        const char *args, *lines[5];
    } rows[] = {
        {"--tensor-model-parallel-size 2 --sequence-parallel --expert-model-parallel-size 2 "
         "--nproc-per-node 8",
         {"mesh: {dp_edp: 2, dp_ep: 2, tp: 2}", "recipe: megatron-moe",
          "groups: {dp: dp_edp*dp_ep, etp: tp, ep: dp_ep, sp: tp}", "moe: {dispatch: all_to_all}"}},
        {"--tensor-model-parallel-size 2 --sequence-parallel --expert-model-parallel-size 4 "
         "--expert-tensor-parallel-size 1 --nproc-per-node 8",
         {"groups: {dp: dp_edp*dp_ep, ep: dp_ep*tp, sp: tp}"}},
        {"--tensor-model-parallel-size 4 --sequence-parallel --expert-model-parallel-size 2 "
         "--expert-tensor-parallel-size 2",
         {"mesh: {tp_ep: 2, tp_etp: 2}", "groups: {tp: tp_ep*tp_etp, etp: tp_etp, ep: tp_ep, sp: "
                                         "tp}"}},
        {"--expert-model-parallel-size 4 --context-parallel-size 2 --use-distributed-optimizer",
         {"mesh: {dp: 2, cp: 2}", "groups: {ep: dp*cp}",
          "data_parallel: {mode: zero1, form: megatron}"}},
        {"--tensor-model-parallel-size 2 --sequence-parallel", {"groups: {etp: tp, sp: tp}"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Imported r = megatron(
            (ImportInput){0},
            arena_printf(
                arena,
                SIZES
                "--seq-length 32 --num-attention-heads 8 --num-experts 8 "
                "--disable-bias-linear --moe-grouped-gemm --moe-token-dispatcher-type alltoall %s",
                rows[i].args));
        holds(&r, rows[i].lines);
        equivalent(&r);
    }
    Imported r =
        megatron((ImportInput){0}, SIZES
                 "--seq-length 32 --num-attention-heads 8 --num-experts 8 "
                 "--disable-bias-linear --expert-model-parallel-size 2 --moe-router-pre-softmax "
                 "--moe-router-topk 3 --moe-aux-loss-coeff 1e-2");
    HOLDS(r, "moe: {dispatch: all_gather}"); /* Megatron's default */
    assert_non_null(strstr(r.plan.text, "num_experts_per_tok: 3"));
    assert_non_null(strstr(r.plan.text, "norm_topk_prob: false"));
    assert_non_null(strstr(r.said, "the router's terms of the loss are left out"));
    equivalent(&r);
    r = megatron((ImportInput){0}, SIZES "--moe-router-topk 2");
    REFUSES(r, "--moe-router-topk is of experts, and there are none [E0307]");
}
/* A sequence that is made short is as uneven as it was; one that zigzag refuses stays. */
static void test_megatron_uneven(void **state) {
    (void)state;
    Imported r = megatron((ImportInput){.mesh = "tp=3"},
                          SIZES "--seq-length 4096 --num-attention-heads 6 --kv-channels 8 "
                                "--ffn-hidden-size 96 --tensor-model-parallel-size 3\n");
    assert_non_null(strstr(r.plan.text, "sequence: 64, "));
    r = megatron((ImportInput){0}, SIZES "--seq-length 4096 --context-parallel-size 3 "
                                         "--cp-comm-type all_gather\n");
    assert_non_null(strstr(r.plan.text, "sequence: 4096, "));
    /* what tp cuts and does not divide: of the arguments, of a preset */
    r = megatron((ImportInput){.mesh = "tp=3"}, SIZES "--tensor-model-parallel-size 3\n");
    REFUSES(r, "attention heads: 4 is not divided by tensor parallelism of 3", "[E0307]",
            "so many ranks: 1, 2 or 4", "the MLP's width: 128 is not");
    r = megatron((ImportInput){0}, SIZES "--tensor-model-parallel-size 4 --sequence-parallel "
                                         "--ffn-hidden-size 130 --seq-length 18\n");
    REFUSES(r, "the MLP's width: 130", "1, 2, 5, 10, 13 or 26", "sequence of a rank of cp: 18");
    r = megatron((ImportInput){.model = "llama3-8b"}, "--tensor-model-parallel-size 6\n");
    REFUSES(r, "attention heads: 32", "query groups: 8", "the MLP's width: 14336");
    r = megatron((ImportInput){.model = "llama3-8b"}, "--tensor-model-parallel-size 16\n");
    assert_non_null(r.plan.text); /* each group's keys on two ranks */
}
static void test_megatron(void **state) {
    (void)state;
    Imported r = megatron((ImportInput){0}, megatron_args);
    HOLDS(r, "mesh: {dp: 2, cp: 2, tp: 2}", "groups: {sp: tp}", "names: megatron",
          "recipe: megatron-sp", "recompute: block",
          "data: {batch: 4, sequence: 16, dtype: f32, seed: 0}",
          "context_parallel: {mode: all_gather, order: zigzag, axis: cp}");
    /* sizes, biases, norms, the padded vocabulary, the tied head */
    assert_non_null(strstr(r.plan.text, "tie_word_embeddings: true, qk_norm: true, q_bias: true, "
                                        "k_bias: true, v_bias: true, o_bias: false"));
    assert_non_null(strstr(r.plan.text, "vocab_multiple: 32,"));
    assert_non_null(strstr(r.plan.text, "num_key_value_heads: 4, head_dim: 8"));
    equivalent(&r);
    /* the same model without them, as arguments, on the mesh of --mesh */
    static const char *const words[] = {"--tensor-model-parallel-size",
                                        "2",
                                        "--num-layers",
                                        "1",
                                        "--hidden-size",
                                        "64",
                                        "--num-attention-heads",
                                        "4",
                                        "--swiglu",
                                        "--normalization",
                                        "RMSNorm",
                                        "--use-rotary-position-embeddings",
                                        "--vocab-size",
                                        "128",
                                        "--seq-length",
                                        "16"};
    r = megatron(
        (ImportInput){
            .path = NULL, .mesh = "dp=2", .n_args = sizeof words / sizeof *words, .arg = words},
        "");
    HOLDS(r, "mesh: {dp: 2, tp: 2}", "recipe: megatron");
    assert_non_null(strstr(r.plan.text, "intermediate_size: 128,")); /* 8/3 of 64, in 64s */
    assert_non_null(strstr(r.plan.text, "q_bias: true, k_bias: true, v_bias: true, o_bias: true"));
    equivalent(&r);
    /* Megatron reads the number of groups with --group-query-attention only, and has 1 by default
     */
    r = megatron((ImportInput){0}, SIZES "--num-query-groups 2\n");
    assert_non_null(strstr(r.plan.text, "num_key_value_heads: 4,"));
    HOLDS(r, "# --num-query-groups is not read: there is no --group-query-attention");
    equivalent(&r);
    r = megatron((ImportInput){0}, SIZES "--num-query-groups 4\n");
    assert_null(strstr(r.plan.text, "is not read")); /* the same model either way */
    r = megatron((ImportInput){0}, SIZES "--group-query-attention\n");
    assert_non_null(strstr(r.plan.text, "num_key_value_heads: 1,"));
    r = megatron((ImportInput){.model = "llama3-8b"}, "--tensor-model-parallel-size 4\n");
    HOLDS(r, "# dp: 1; the number of ranks does not stand in the arguments: --mesh dp=N",
          "mesh: {tp: 4}");
    equivalent(&r);
}
/* In other numbers than the plan's: the same plan, and it is told. */
static void test_megatron_numbers(void **state) {
    (void)state;
    Imported r = megatron((ImportInput){0}, SIZES
                          "--fp8-format hybrid --fp8-amax-history-len 1024 --fp8-param-gather "
                          "--grad-reduce-in-bf16 --apply-layernorm-1p\n");
    static const char *const told[] = {"# --fp8-format: products are of 8 bits there",
                                       "# --fp8-param-gather: parameters are gathered in 8 bits",
                                       "# --grad-reduce-in-bf16: gradients are summed in bf16",
                                       "# --apply-layernorm-1p: weights of norms are held less 1"};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (!strstr(r.plan.text, told[i])) fail_msg("%s\n%s", told[i], r.plan.text);
    equivalent(&r);
}
/* pp outermost; a step's whole batch; every rank has as many layers, where embedding and loss may
 * count for one each; a tied table is on both ends (core/pipeline_parallel and arguments.py). */
static void test_megatron_pipelines(void **state) {
    (void)state;
    static const struct {
        const char *words, *schedule, *stages, *micro;
    } rows[] = {
        {"--num-layers 4", "1f1b", "[[0], [1]]", "4"},
        {"--num-layers 8 --num-layers-per-virtual-pipeline-stage 2", "interleaved",
         "[[0], [1], [2], [3]]", "4"},
        {"--num-layers 8 --num-virtual-stages-per-pipeline-rank 2", "interleaved",
         "[[0], [1], [2], [3]]", "4"},
        {"--num-layers 6 --account-for-embedding-in-pipeline-split "
         "--account-for-loss-in-pipeline-split",
         "1f1b", "[[0], [1]]", "4"},
        {"--num-layers 7 --account-for-embedding-in-pipeline-split", "1f1b", "[[0], [1, 2]]", "4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Imported r = megatron((ImportInput){.mesh = "dp=2"},
                              arena_printf(arena,
                                           SIZES "%s --seq-length 16 --global-batch-size 16 "
                                                 "--pipeline-model-parallel-size 2 "
                                                 "--micro-batch-size 1 --train-iters 5\n",
                                           rows[i].words));
        HOLDS(r, "mesh: {pp: 2, dp: 2}", arena_printf(arena, "  schedule: %s", rows[i].schedule),
              arena_printf(arena, "  stages: %s", rows[i].stages),
              arena_printf(arena, "  microbatches: %s", rows[i].micro), "  tied: pair",
              "# not read, for they change neither layouts nor values: --train-iters");
        equivalent(&r);
    }
}
/* The scripts that people start: arrays, variables, branches that literals decide, and none of what
 * prepares the run. */
static const char megatron_script[] =
    "#!/bin/bash\n"
    "# a model\n"
    "export CUDA_DEVICE_MAX_CONNECTIONS=1 NODES=2\n"
    "GPUS_PER_NODE=${GPUS:-\"4\"}\n"
    "CHECKPOINT=${1:-\"runs/a\"} #<a path>\n"
    "WORLD_SIZE=$(($GPUS_PER_NODE*NODES))\n"
    "DTYPE='bf16'\n"
    "TP=$(( WORLD_SIZE / (2 + 2) ))\n"
    "mkdir -p \"$(dirname \"$CHECKPOINT\")\" && cd $HOME\n"
    "DISTRIBUTED_ARGS=(\n"
    "    --nproc_per_node $GPUS_PER_NODE\n"
    "    --nnodes $NODES # so many\n"
    ")\n"
    "MODEL_ARGS=( --num-layers 2 --hidden-size 64\n"
    "  --ffn-hidden-size 96 --num-attention-heads 8 --swiglu --normalization 'RMSNorm'\n"
    "  --position-embedding-type rope --vocab-size 250 --disable-bias-linear)\n"
    "TRAINING_ARGS=\" --micro-batch-size 2 \\\n"
    "  --seq-length 16 --save $CHECKPOINT\"\n"
    "TRAINING_ARGS+=' --lr 1e-4'\n"
    "PARALLEL=(--tensor-model-parallel-size ${TP})\n"
    "if [[ \"$DTYPE\" == \"fp8\" ]]; then\n"
    "    PARALLEL+=(\"--context-parallel-size 4\")\n"
    "elif [ $TP -gt 1 ] && [[ ! -z \"$DTYPE\" ]]; then\n"
    "    PARALLEL+=(\"--context-parallel-size 2\" \"--sequence-parallel\")\n"
    "else\n"
    "    exit 1\n"
    "fi\n"
    "LOG=(--log-interval 1)\n"
    "if [ -n \"${WANDB_API_KEY}\" ]; then\n"
    "    LOG+=(--wandb-project ${WANDB:-x})\n"
    "fi\n"
    "usage() {\n  echo 'no'; exit 1\n}\n"
    "[ -f pretrain_gpt.py ] || usage\n"
    "torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \\\n"
    "    ${MODEL_ARGS[@]} $TRAINING_ARGS \\\n"
    "    \"${PARALLEL[@]}\" ${LOG[@]} --data-path $DATA 2>&1 | tee log.txt\n";
static void test_megatron_scripts(void **state) {
    (void)state;
    assert_string_equal(import_recognise("train", megatron_script, sizeof megatron_script - 1),
                        "megatron");
    /* quotes keep what is one word together: it would reach Megatron so */
    Imported r = megatron((ImportInput){.path = "a.sh"}, megatron_script);
    REFUSES(r, "a.sh:24:17: error: unknown argument '--context-parallel-size 2' [E0201]");
    char *unquoted = arena_strdup(arena, megatron_script), *at = strstr(unquoted, "\"${PAR");
    assert_non_null(at);
    at[0] = at[strlen("\"${PARALLEL[@]}")] = ' ';
    r = megatron((ImportInput){.path = "a.sh"}, unquoted);
    HOLDS(
        r, "mesh: {dp: 2, cp: 2, tp: 2}", "groups: {sp: tp}", "recipe: megatron-sp",
        "data: {batch: 4, sequence: 16, dtype: f32, seed: 0}",
        "context_parallel: {mode: ring, order: zigzag, axis: cp}  # ring, line 24",
        "# unless the environment says otherwise (--args NAME=VALUE): GPUS: \"4\", $1: \"runs/a\", "
        "WANDB_API_KEY: not set");
    assert_non_null(strstr(r.plan.text, "hidden_size: 64, intermediate_size: 96, num_att"));
    /* places are those of the assignments */
    r = megatron((ImportInput){.path = "a.sh", .mesh = "tp=8"}, unquoted);
    REFUSES(r, "--mesh:1:1: error: axis tp of 8 ranks");
    *strstr(unquoted, "96") = 'x';
    r = megatron((ImportInput){.path = "a.sh"}, unquoted);
    REFUSES(r,
            "a.sh:15:21: error: --ffn-hidden-size wants a whole number above 0, not 'x6' [E0302]");
}
/* What its example scripts have in common: an `if` whose branches give one argument alike, what
 * only the environment or the caller has, launchers before the program. */
static const char megatron_outside[] =
    "TOKENIZER=$1\n"
    "if [ -z ${TP} ]; then\n  TP=2\nfi\n"
    "if [[ \"$(basename \"$ENV\")\" = x.yaml ]]; then\n"
    "  BATCH=${BATCH:-64}\n  LENGTH=16\n"
    "elif [ -d y ]; then\n  BATCH=${BATCH:-32}\n  LENGTH=16\n"
    "else\n  BATCH=${BATCH:-8}\n  LENGTH=16\nfi\n"
    "MODEL=( --num-layers 2 --hidden-size 64 --num-attention-heads 8 --swiglu --normalization "
    "RMSNorm\n"
    "  --position-embedding-type rope --disable-bias-linear)\n"
    "DATA=()\n"
    "if [[ \"$TOKENIZER\" == MOCK ]]; then\n  DATA+=(\n    \"--mock-data\"\n    \"--vocab-size "
    "250\")\n"
    "else\n  DATA+=(\"--vocab-size 250\" --data-path $2)\nfi\n"
    "RUN=\"uv run\"\nTIMES=()\n"
    "$RUN \"${TIMES[@]}\" python -u -m torch.distributed.run --nproc_per_node $((TP * DP)) "
    "pretrain.py \\\n"
    "  ${MODEL[@]} ${DATA[@]} --tensor-model-parallel-size $TP --micro-batch-size $BATCH \\\n"
    "  --seq-length $LENGTH --calculate-per-token-loss\n";
static void test_megatron_outside(void **state) {
    (void)state;
    Imported r = megatron((ImportInput){.path = "a.sh"}, megatron_outside);
    REFUSES(
        r, "a.sh:27:72: error: --nproc_per_node wants a value", "no numbers of this file decide it",
        "--micro-batch-size wants a value, and '$BATCH' is none yet: 'if' in line 5 decides it");
    assert_null(strstr(r.said, "vocab-size"));
    assert_null(strstr(r.said, "seq-length"));
    /* what it takes from outside, and more arguments: the last word counts, as with argparse */
    r = megatron((ImportInput){.path = "a.sh", .args = "DP=4 BATCH=1 1='a b' --vocab-size=300"},
                 megatron_outside);
    HOLDS(r, "mesh: {dp: 4, tp: 2}", "data: {batch: 4, sequence: 16, dtype: f32, seed: 0}",
          "# unless the environment says otherwise (--args NAME=VALUE): TP: not set");
    assert_non_null(strstr(r.plan.text, "vocab_size: 300"));
    r = megatron((ImportInput){.path = "a.sh", .args = "TP=4 DP=1 BATCH=1 '--bf16' ${MODEL[@]}"},
                 megatron_outside);
    HOLDS(r, "mesh: {tp: 4}");
    static const char *const wrong[][2] = {
        {"TP=x DP=1 BATCH=1", "--tensor-model-parallel-size wants a whole number above 0, not 'x'"},
        {"DP=1 BATCH=1 PP=2", "--args:1:14: error: nothing in the script asks for PP [E0201]"},
        {"DP=1 BATCH=1 3=x", "--args:1:14: error: nothing in the script asks for $3 [E0201]"},
        {"RUN=8 DP=1 BATCH=1", "--args:1:1: error: the script sets RUN itself before"},
        {"BATCH=1 DP=1 --vocab-siz 4", "--args:1:14: error: unknown argument '--vocab-siz'"},
        {"BATCH=1 DP=1; rm", "--args:1:13: error: ';' between arguments [E0217]"},
        {"BATCH='1", "--args:1:7: error: this text is not closed"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        r = megatron((ImportInput){.path = "a.sh", .args = wrong[i][0]}, megatron_outside);
        REFUSES(r, wrong[i][1]);
    }
    /* branches that differ, or an `if` without else, decide nothing */
    static const char *const said[][2] = {
        {"A=()\nif [ -d x ]; then A+=(--cp-comm-type a2a); else A+=(--cp-comm-type p2p); fi\n"
         "torchrun x.py ${A[@]}",
         ":2:23: error: --cp-comm-type: 'if' in line 2 decides it [E0217]"},
        {"A=()\nif [ -d x ]; then A+=(--bf16); elif [ -d y ]; then A+=(--bf16); fi\n"
         "torchrun x.py ${A[@]}",
         ":2:23: error: --bf16: 'if' in line 2 decides it"},
        {"if [ -d x ]; then N=2; elif [ -d y ]; then N=2; fi\n--context-parallel-size $N",
         "'$N' is none yet: 'if' in line 1 decides it"},
        {"if [ -d x ]; then N=2; elif [ -d y ]; then M=2; else N=2; fi\n--context-parallel-size $N",
         "'$N' is none yet: 'if' in line 1 decides it"},
        {"if [ -d x ]; then N=2; N=4; else N=2; fi\n--context-parallel-size $N",
         "'$N' is none yet: 'if' in line 1 decides it"}};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        r = megatron((ImportInput){.model = "llama3-8b"}, said[i][0]);
        REFUSES(r, said[i][1]);
    }
}
/* A file that another reads: it runs nothing, and has the arguments in its variables. */
static void test_megatron_conf(void **state) {
    (void)state;
    Imported r =
        megatron((ImportInput){.path = "a.sh", .args = "--tensor-model-parallel-size 2"},
                 "NAME=x\nsource other.sh\nTP=${TP:-1}\nMODEL_ARGS=\" \\\n  --num-layers 2 "
                 "--hidden-size 64 \\\n  --num-attention-heads 8 --swiglu "
                 "--normalization RMSNorm --use-rotary-position-embeddings \\\n "
                 "--padded-vocab-size 200 --use-rope-scaling \\\n\"\n");
    HOLDS(r, "# nothing is run there: the arguments of MODEL_ARGS", "mesh: {tp: 2}");
    assert_non_null(strstr(r.plan.text, "vocab_size: 200, "));
    assert_non_null(strstr(r.plan.text, "vocab_multiple: 1,"));
    assert_non_null(
        strstr(r.plan.text, "rope_scaling: {rope_type: llama3, factor: 8, low_freq_factor: 1, "));
}
/* Megatron's defaults are a model of GPT-3's kind, and that runs. */
static void test_megatron_gpt(void **state) {
    (void)state;
    static const char args[] =
        "--num-layers 4 --hidden-size 64 --num-attention-heads 8 --seq-length 16 "
        "--max-position-embeddings 32 --vocab-size 250 --tensor-model-parallel-size 2 "
        "--micro-batch-size 1 --fp16";
    Imported r = megatron((ImportInput){0}, args);
    HOLDS(r, "mesh: {tp: 2}", "recipe: megatron");
    assert_non_null(strstr(r.plan.text, "n_inner: 256, n_head: 8, n_layer: 4, n_positions: 32, "));
    assert_non_null(strstr(r.plan.text, "activation_function: gelu_pytorch_tanh,"));
    assert_non_null(strstr(r.plan.text, "tie_word_embeddings: true"));
    r = megatron((ImportInput){0}, arena_printf(arena,
                                                "%s --no-bias-gelu-fusion "
                                                "--untie-embeddings-and-output-weights",
                                                args));
    assert_non_null(strstr(r.plan.text, "activation_function: gelu,"));
    assert_non_null(strstr(r.plan.text, "tie_word_embeddings: false"));
    r = megatron((ImportInput){0}, arena_printf(arena,
                                                "%s --global-batch-size 4 "
                                                "--step-batch-size-schedule '0:16 2B:32'",
                                                args));
    REFUSES(r, "--step-batch-size-schedule beside --global-batch-size: Megatron stops [E0307]");
}
/* What a script of DeepSeek's says, in small. */
static const char of_latent[] =
    "--num-layers 3 --hidden-size 64 --ffn-hidden-size 96 --num-attention-heads 4 --vocab-size 128 "
    "--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
    "--seq-length 16 --multi-latent-attention --qk-layernorm --kv-lora-rank 16 --qk-head-dim 16 "
    "--qk-pos-emb-head-dim 8 --v-head-dim 16 --rotary-scaling-factor 40 --mscale-all-dim 0.0 "
    "--moe-aux-loss-coeff 0.0";
static const char latent_experts[] =
    " --num-experts 8 --moe-ffn-hidden-size 16 --moe-router-topk 4 --moe-layer-freq [0]*1+[1]*2 "
    "--moe-shared-expert-intermediate-size 32 --moe-token-dispatcher-type alltoall";
static const char sigmoid[] =
    " --moe-router-score-function sigmoid --moe-router-enable-expert-bias "
    "--moe-router-num-groups 4 --moe-router-group-topk 2 --moe-router-topk-scaling-factor 2.5";
#define LATENT_TP " --tensor-model-parallel-size 2 --sequence-parallel"
static int collectives_of(const Trace *t, const char *value, const char *op) {
    int n = 0;
    for (int i = 0; i < t->n_collectives; i++)
        n += !strcmp(t->collectives[i].value, value) && !strcmp(t->collectives[i].op, op);
    return n;
}
static Imported import_latent(const char *router, const char *more) {
    return megatron((ImportInput){.model = NULL},
                    arena_printf(arena, "%s%s%s", of_latent, router, more));
}
/* Latents are made of the rank's own tokens by weights that are whole; what they become, and the
 * keys' turned part, gather the sequence. */
static void test_megatron_latent(void **state) {
    (void)state;
    const char *experts = arena_printf(arena, "%s%s", latent_experts, sigmoid);
    static const char *const rows[][3] = {
        /* ranks of queries, what gathers the sequence; the other does not */
        {"--q-lora-rank 24", "layers.0.q_a_norm", "layers.0.input_norm"},
        {"", "layers.0.input_norm", "layers.0.q_a_norm"}};
    for (int i = 0; i < 2; i++) {
        Imported r = import_latent(experts, arena_printf(arena,
                                                         LATENT_TP " %s "
                                                                   "--expert-model-parallel-size 2 "
                                                                   "--context-parallel-size 1",
                                                         rows[i][0]));
        HOLDS(r, "recipe: megatron-moe",
              "  decoder.layers.*.self_attention.linear_kv_down_proj: sequence_parallel");
        assert_non_null(strstr(r.plan.text, "first_k_dense_replace: 1, n_routed_experts: 8, "));
        assert_non_null(strstr(r.plan.text, "n_shared_experts: 2, n_group: 4, topk_group: 2, "));
        assert_non_null(strstr(r.plan.text, "rope_type: yarn, factor: 40, original_max_"));
        PlanRun run = run_plan(&r, true);
        assert_string_equal(run.t->verdict, "equivalent");
        assert_int_equal(collectives_of(run.t, rows[i][1], "all_gather"), 1);
        assert_int_equal(collectives_of(run.t, rows[i][2], "all_gather"), 0);
        assert_int_equal(collectives_of(run.t, "layers.0.kv_a_norm", "all_gather"), 1);
        assert_int_equal(collectives_of(run.t, "layers.0.k_rope", "all_gather"), 1);
        assert_int_equal(collectives_of(run.t, "grad.layers.0.kv_a_norm", "reduce_scatter"), 1);
    }
    Imported r = import_latent(latent_experts, " --pipeline-model-parallel-size 3 "
                                               "--expert-model-parallel-size 8 "
                                               "--nproc-per-node 6");
    REFUSES(r, "6 ranks are no multiple of expert tensor times expert times pipeline parallel, 24: "
               "Megatron stops [E0307]");
    r = import_latent(latent_experts, " --moe-router-pre-softmax");
    assert_non_null(strstr(r.plan.text, ", router: qwen3_moe, norm_topk_prob: false}"));
    assert_string_equal(run_plan(&r, true).t->verdict, "equivalent");
    r = import_latent("", LATENT_TP);
    HOLDS(r, "recipe: megatron-sp");
    assert_non_null(strstr(r.plan.text, "first_k_dense_replace: 3}"));
    assert_string_equal(run_plan(&r, true).t->verdict, "equivalent");
}
static void test_megatron_latent_refused(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"", " --tensor-model-parallel-size 2",
         "--multi-latent-attention: not supported by this version [E0214]"},
        {"", " --transformer-impl local", "--transformer-impl: not supported by this version"},
        {"", " --group-query-attention --num-query-groups 2", "--group-query-attention: not"},
        {"", " --rope-type other", "--rope-type: not supported"},
        {"", " --mscale 0.5", "--mscale: not supported by this version"},
        {latent_experts, " --moe-router-score-function sigmoid",
         "--moe-router-score-function: not supported by this version"},
        {latent_experts, " --moe-router-enable-expert-bias",
         "a bias of experts beside a softmax: Megatron stops [E0307]"},
        {latent_experts, " --moe-router-topk-scaling-factor 2.5", "--moe-router-topk-scaling-"},
        {latent_experts, " --moe-shared-expert-intermediate-size 20",
         "--moe-shared-expert-intermediate-size: not supported"},
        {latent_experts, " --moe-layer-freq [1,0,1]", "--moe-layer-freq: not supported"},
        {latent_experts, " --moe-layer-freq [1]*4",
         "--moe-layer-freq '[1]*4' is of another number of layers than --num-layers"},
        {latent_experts, " --moe-layer-freq 2*[1]", "wants a number of layers, or lists"},
        {latent_experts, " --moe-layer-freq [0]*3", "leaves no layer with experts"},
        {latent_experts,
         " --moe-router-score-function sigmoid --moe-router-enable-expert-bias "
         "--moe-router-num-groups 4 --moe-router-group-topk 4",
         "--moe-router-group-topk: not supported by this version"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Imported r = import_latent(rows[i][0], rows[i][1]);
        REFUSES(r, rows[i][2]);
    }
}
/* Nemotron's: an ungated MLP of squared relus; a part of each head turns. */
static void test_megatron_nemotron(void **state) {
    (void)state;
    static const char args[] =
        "--log-dir a --tee 3 --enable-experimental "
        "--num-layers 2 --hidden-size 64 --ffn-hidden-size 96 --num-attention-heads 4 --vocab-size "
        "128 --seq-length 8 --disable-bias-linear --use-rotary-position-embeddings "
        "--rotary-percent 0.5 --squared-relu --group-query-attention --num-query-groups 2 "
        "--tensor-model-parallel-size 2 --sequence-parallel";
    Imported r = megatron((ImportInput){0}, args);
    HOLDS(r, "recipe: megatron-sp");
    assert_non_null(strstr(r.plan.text, "{model_type: nemotron, hidden_size: 64, "));
    assert_non_null(strstr(r.plan.text, "num_key_value_heads: 2, head_dim: 16, "));
    assert_non_null(strstr(r.plan.text, "partial_rotary_factor: 0.5, "));
    assert_string_equal(run_plan(&r, true).t->verdict, "equivalent");
    r = megatron((ImportInput){0}, arena_printf(arena, "%s --normalization RMSNorm", args));
    REFUSES(r, "--squared-relu: not supported by this version [E0214]",
            "--rotary-percent: not supported");
}
/* Models that no row says: the way round is a config, and beside it they are told and not read. */
static void test_megatron_of_models(void **state) {
    (void)state;
    static const char args[] = "--num-layers 24 --hidden-size 2880 --num-attention-heads 64 "
                               "--vocab-size 128 --quick-geglu --window-size 127,0 "
                               "--seq-length 8 --normalization RMSNorm";
    Imported r = megatron((ImportInput){0}, args);
    REFUSES(r, ":1:78: error: --quick-geglu: not supported by this version [E0214]",
            ":1:92: error: --window-size: not", "--config config.json, or --model");
    assert_null(strstr(r.said, "--swiglu"));
    r = megatron((ImportInput){.model = "gpt-oss-20b", .mesh = "dp=2"}, args);
    HOLDS(r, "# --quick-geglu is not read: the model is named");
    assert_string_equal(r.said, "");
}
/* Megatron's experts and their router have biases unless they are told not to. */
static void test_megatron_biased_experts(void **state) {
    (void)state;
    Imported r = megatron((ImportInput){0}, SIZES "--num-experts 8");
    REFUSES(r,
            ":1:156: error: experts and a router with biases, Megatron's default: not supported");
    r = megatron((ImportInput){0}, SIZES "--num-experts 8 --tensor-model-parallel-size 2 "
                                         "--expert-model-parallel-size 2 --sequence-parallel");
    REFUSES(r, "under expert tensor parallelism: Megatron stops [E0307]");
    /* of a model that is named too, where --tensor-model-parallel-size alone says so */
    r = megatron((ImportInput){.model = "gpt-oss-20b"},
                 "--num-experts 32 --expert-model-parallel-size 2 --sequence-parallel "
                 "--tensor-model-parallel-size 2 --micro-batch-size 1 --seq-length 64");
    REFUSES(r, "as gpt_oss has them, under expert tensor parallelism of 2 ranks: Megatron stops");
    r = megatron((ImportInput){.model = "mixtral-8x7b"}, SIZES "--num-experts 8");
    assert_null(strstr(r.said, "biases"));
}
/* Layers with experts, by a number or by lists as Python multiplies them. */
static void test_megatron_layers_of_experts(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"1", "111111"},
                                          {"2", "101010"},
                                          {"7", "100000"},
                                          {"[0]*2+[1]*4", "001111"},
                                          {"[0,1]*3", "010101"},
                                          {"(([0] + [1]*2)*2)", "011011"},
                                          {"[1]*2*3", "111111"},
                                          {"[0]*5", NULL},
                                          {"[0]*7", NULL},
                                          {"0", NULL},
                                          {"[2]*6", NULL},
                                          {"[1]*6+", NULL},
                                          {"[]", NULL},
                                          {"([1]*6", NULL},
                                          {"[1]*6)", NULL},
                                          {"[1]*5000", NULL},
                                          {"[10]*6", NULL},
                                          {"-1", NULL},
                                          {"[1]*99999999999999999999", NULL},
                                          {"((((((((((((((((((([1]*6)))))))))))))))))))", NULL}};
    static bool has[LAYER_FREQ_MOST];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = layer_freq_read(rows[i][0], 6, has);
        if (!why != !!rows[i][1]) fail_msg("%s: %s", rows[i][0], why ? why : "read");
        for (int k = 0; !why && k < 6; k++) assert_int_equal(has[k], rows[i][1][k] == '1');
    }
    Imported r =
        megatron((ImportInput){0},
                 "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-size 128 "
                 "--swiglu --normalization RMSNorm --position-embedding-type rope "
                 "--disable-bias-linear --seq-length 8 --num-experts 4 "
                 "--moe-ffn-hidden-size 16 --moe-layer-freq [0,1]*2");
    assert_non_null(strstr(r.plan.text, "mlp_only_layers: [0, 2]}"));
    assert_non_null(strstr(r.plan.text, "layers: 2,"));
    assert_string_equal(run_plan(&r, true).t->verdict, "equivalent");
}
/* Learned positions are added to whole words, and the sum is cut: an all-reduce and, backward, an
 * all-gather; Llama's words are reduce-scattered. */
static void test_megatron_positions(void **state) {
    (void)state;
    Imported r = megatron((ImportInput){0},
                          "--num-layers 2 --hidden-size 64 --num-attention-heads 8 --seq-length 16 "
                          "--vocab-size 250 --tensor-model-parallel-size 2 --sequence-parallel");
    HOLDS(r, "recipe: megatron-sp", "  embedding.word_embeddings: embedding_rowwise");
    assert_string_equal(r.said, "");
    PlanRun run = run_plan(&r, true);
    assert_string_equal(run.t->verdict, "equivalent");
    assert_int_equal(collectives_of(run.t, "embed", "all_reduce"), 1);
    assert_int_equal(collectives_of(run.t, "embed", "reduce_scatter"), 0);
    assert_int_equal(collectives_of(run.t, "grad.embed_sum", "all_gather"), 1);
    assert_int_equal(collectives_of(run.t, "grad.pos_embed", "all_gather"), 0);
}
/* Megatron's own FSDP: its strategies. */
static void test_megatron_fsdp(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"--data-parallel-sharding-strategy optim", "data_parallel: {mode: zero1, form: megatron}"},
        {"--data-parallel-sharding-strategy optim_grads",
         "data_parallel: {mode: zero2, form: megatron}"},
        {"--data-parallel-sharding-strategy optim_grads_params", "data_parallel: {mode: fsdp}"},
        {"--data-parallel-sharding-strategy no_shard", NULL},
        {"", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Imported r = megatron(
            (ImportInput){.model = "llama3-8b", .mesh = "dp=2"},
            arena_printf(arena, "--use-megatron-fsdp --use-distributed-optimizer %s", rows[i][0]));
        if (rows[i][1]) HOLDS(r, rows[i][1]);
        else assert_null(strstr(r.plan.text, "data_parallel"));
    }
    Imported r = megatron((ImportInput){.model = "llama3-8b", .mesh = "dp=2"},
                          "--use-megatron-fsdp --data-parallel-sharding-strategy some");
    REFUSES(r, ":1:21: error: --data-parallel-sharding-strategy: not supported by this version");
}
/* What stands between backticks may be anything, a brace alone too. */
static void test_words_of_helps(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"write `w1: {`", NULL},
        {"write `w1: {style`, or `w1: {style: colwise}`", NULL},
        {"write `w1: {style: colwise}`", "write `\"w1\": ColwiseParallel()`"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *said = import_words(arena, "torch", rows[i][0]);
        assert_non_null(said);
        if (rows[i][1]) assert_string_equal(said, rows[i][1]);
    }
}
/* Text of nothing is no piece of a word, however often it is doubled. */
static void test_megatron_nothing(void **state) {
    (void)state;
    Str text = str_new(arena);
    str_add(&text, "A=\"\"\n");
    for (int i = 0; i < 24; i++) str_add(&text, "A=\"$A$A\"\n");
    str_add(&text, "torchrun x.py --tensor-model-parallel-size \"2$A\" \"$A\"--bf16");
    Imported r = megatron((ImportInput){.model = "llama3-8b"}, text.s);
    HOLDS(r, "mesh: {tp: 2}");
}
typedef struct {
    const char *text, *said[3];
} Refused;
static void megatron_refuses(const Refused *row) {
    Imported r = megatron((ImportInput){.model = "llama3-8b"}, row->text);
    assert_null(r.plan.text);
    for (int k = 0; k < 3 && row->said[k]; k++)
        if (!strstr(r.said, row->said[k]))
            fail_msg("%s\nnothing says '%s' in\n%s", row->text, row->said[k], r.said);
}
static void test_megatron_undecided(void **state) {
    (void)state;
    static const Refused rows[] = {
        {"TP=$(nproc)\nMBS=$1\nif [ -d x ]; then CP=2; fi\n"
         "--tensor-model-parallel-size $TP --micro-batch-size=$MBS --context-parallel-size $CP",
         {":1:4: error: --tensor-model-parallel-size wants a value, and '$(nproc)' is none yet: a "
          "command decides it, and none is run [E0217]",
          "'$1' is none yet: whoever calls the script decides it",
          ":4:82: error: --context-parallel-size wants a value, and '$CP' is none yet: 'if' in "
          "line "
          "3 decides it"}},
        {"A=(--bf16)\nif [ -d x ]; then\n  A+=(--sequence-parallel)\nfi\ntorchrun x.py ${A[@]}",
         {":3:7: error: --sequence-parallel: 'if' in line 2 decides it [E0217]",
          "write it where it is decided, or leave it out"}},
        {"if [ 99999999999999999999 -eq 99999999999999999998 ]; then N=2; fi\n"
         "--tensor-model-parallel-size $N",
         {"'$N' is none yet: 'if' in line 1 decides it [E0217]"}},
        {"N=010\n--nproc-per-node $((N * 1)) --pipeline-model-parallel-size $((010))",
         {":2:18: error: --nproc-per-node wants a value, and '$((N * 1))' is none yet: no numbers "
          "of this file decide it [E0217]",
          ":2:60: error: --pipeline-model-parallel-size wants a value, and '$((010))' is none"}},
        {"torchrun a.py --bf16\ntorchrun b.py --bf16",
         {":2:1: error: a second program is started, the first in line 1"}},
        {"if [ -d x ]; then\n  torchrun a.py\nfi",
         {":2:3: error: whether this is run: 'if' in line 1 decides it [E0217]"}},
        {"for i in 1 2; do\n echo $i", {":1:1: error: 'for' is not closed [E0110]"}},
        {"A=(--bf16\n", {":1:3: error: ')' is missing [E0110]"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) megatron_refuses(&rows[i]);
}
static void test_megatron_refusals(void **state) {
    (void)state;
    static const Refused rows[] = {
        {"--tensor-model-parallel-size two --hiden-size 4",
         {"args.txt:1:30: error: --tensor-model-parallel-size wants a whole number", "[E0302]"}},
        {"--tensor-model-paralel-size 2",
         {":1:1: error: unknown argument '--tensor-model-paralel-size' [E0201]",
          "did you mean --tensor-model-parallel-size?"}},
        {"--micro-batch-size $MBS --cp-comm-type ${KIND} --sequence-parallel",
         {":1:20: error: --micro-batch-size wants a value, and '$MBS' is none yet: nothing in this "
          "file sets it [E0217]",
          "write the number that the variable has", ":1:40: error: --cp-comm-type wants a value"}},
        {"--num-experts 8 --expert-model-parallel-size 3 --tensor-model-parallel-size 2",
         {":1:17: error: experts: 8 is no multiple of 3: Megatron stops [E0307]",
          ":1:48: error: experts under tensor parallelism without --sequence-parallel"}},
        {"--num-experts 8 --moe-router-score-function sigmoid --moe-token-dispatcher-type flex",
         {":1:17: error: --moe-router-score-function: not supported by this version [E0214]",
          ":1:53: error: --moe-token-dispatcher-type: not supported by this version [E0214]"}},
        {"--num-experts 8 --expert-model-parallel-size 2 --context-parallel-size 3",
         {":1:17: error: axis ep of the experts fits no axis of the other layers [E0307]"}},
        {"--pipeline-model-parallel-size 3",
         {":1:1: error: layers: 32 is no multiple of 3: Megatron stops [E0307]"}},
        {"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3",
         {":1:34: error: layers of a rank: 16 is no multiple of 3: Megatron stops [E0307]"}},
        {"--num-virtual-stages-per-pipeline-rank 2",
         {":1:1: error: --num-virtual-stages-per-pipeline-rank is of a pipeline, and there is "
          "none"}},
        {"--pipeline-model-parallel-size 2 --global-batch-size 7 --micro-batch-size 2",
         {":1:34: error: a batch of 7 is no multiple", "[E0307]"}},
        {"--nproc-per-node 6 --tensor-model-parallel-size 4", {":1:1: error: 6 ranks", "[E0307]"}},
        {"$ARGS", {":1:1: error: '$ARGS' is no argument of Megatron [E0201]"}},
        {"--=4 --bf16 --", {":1:1: error: unknown argument '--=4' [E0201]"}},
        {"--num-layers", {":1:1: error: --num-layers wants a value [E0208]"}},
        {"--sequence-parallel=false --bf16=1 --use-flash-attn=",
         {":1:1: error: --sequence-parallel is a flag: it takes no value, here 'false' [E0301]",
          ":1:27: error: --bf16 is a flag", ":1:36: error: --use-flash-attn is a flag"}},
        {"--position-embedding-type 'rope", {":1:27: error: this text is not closed"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) megatron_refuses(&rows[i]);
    /* Megatron's own defaults are GPT-2's */
    Imported r = megatron((ImportInput){0}, "--hidden-size 64 --group-query-attention");
    REFUSES(r, "without --swiglu the MLP has no gate", "LayerNorm: not supported",
            "learned positions", "--num-layers is missing [E0208]");
    r = megatron((ImportInput){.model = "llama3-8b", .mesh = "tp=4"},
                 "--tensor-model-parallel-size 2");
    REFUSES(r, "--mesh:1:1: error: axis tp of 4 ranks: the arguments say otherwise [E0307]");
}

/* ---- jax ---- */
static Imported jax(const char *mesh, const char *text) {
    return import_with(
        (ImportInput){.framework = "jax", .path = "specs.json", .model = "llama3-8b", .mesh = mesh},
        text);
}
/* Flax's kernels are [in, out]; weights of torch's names [out, in]: the same cut, the same plan. */
static void test_jax(void **state) {
    (void)state;
    Imported r =
        jax("data=2,model=4", "{\"tokens\": [\"data\", null],\n"
                              " \"params/tok_embeddings/embedding\": [\"model\", null],\n"
                              " \"params/layers_0/attention/wq/kernel\": [null, \"model\"],\n"
                              " \"layers.*.attention.wk.weight\": [\"model\"],\n"
                              " \"layers.*.attention.wv.weight\": [\"model\"],\n"
                              " \"layers.*.attention.wo.kernel\": [\"model\"],\n"
                              " \"layers/*/feed_forward/w1/kernel\": [null, \"model\"],\n"
                              " \"layers.*.ffn_norm.scale\": []}");
    HOLDS(
        r, "groups: {every: data*model}", "names: torchtitan", "mesh: {data: 2, model: 4}",
        "data: {batch: 4, sequence: 16, dtype: f32, seed: 0, cut: {batch: \"data\"}}",
        "  tok_embeddings.weight: {weight: {model: shard(0), data: replicate}, axis: every}",
        "  layers.0.attention.wq.weight: {weight: {model: shard(0), data: replicate}, axis: every}",
        "  layers.*.attention.wk.weight: {weight: {model: shard(0), data: replicate}, axis: every}",
        "  layers.*.attention.wv.weight: {weight: {model: shard(0), data: replicate}, axis: every}",
        "  layers.*.attention.wo.weight: {weight: {model: shard(1), data: replicate}, axis: every}",
        "  layers.*.feed_forward.w1.weight: {weight: {model: shard(0), data: replicate}, axis: "
        "every}",
        "  layers.*.ffn_norm.weight: {weight: {data: replicate, model: replicate}, axis: every}");
    equivalent(&r);
    r = jax("x=4", "{\"layers_*/attention/wq/kernel\": [null, \"x\"]}");
    HOLDS(r, "  layers.*.attention.wq.weight: {weight: {x: shard(0)}, axis: x}");
    equivalent(&r);
}
/* An axis that cuts the batch and a parameter: what jax.jit does (jax 0.10.2, four CPU devices, a
 * gated MLP of these specs, its compiled HLO): one all-gather of each weight over fsdp, none again
 * in the gradient's program; one all-reduce over model of what w2 makes; the gradients summed over
 * fsdp and laid as the parameters are. */
static const char jax_fsdp[] =
    "{\"params/layers_*/feed_forward/w1/kernel\": [\"fsdp\", \"model\"],\n"
    " \"params/layers_*/feed_forward/w3/kernel\": [\"fsdp\", \"model\"],\n"
    " \"params/layers_*/feed_forward/w2/kernel\": [\"model\", \"fsdp\"],\n"
    " \"params/layers_*/attention/wq/kernel\": [null, [\"model\", \"fsdp\"]],\n"
    " \"params/norm/scale\": [null],\n"
    " \"tokens\": [%s, null]}";
static int moved(const PlanRun *r, const char *op, const char *value, const char *axes) {
    int n = 0;
    for (int i = 0; i < r->t->n_collectives; i++) {
        const TraceCollective *c = &r->t->collectives[i];
        n += strcmp(c->op, op) == 0 && strcmp(c->axes, axes) == 0 && strcmp(c->value, value) == 0;
    }
    return n;
}
static void test_jax_at_rest(void **state) {
    (void)state;
    Imported r = jax("fsdp=2,model=2", arena_printf(arena, jax_fsdp, "\"fsdp\""));
    HOLDS(r, "data_parallel:", "  mode: fsdp", "  axis: fsdp", "  unit: parameter",
          "  reshard: false", "    layers.*.feed_forward.w1.weight: 1",
          "    layers.*.feed_forward.w2.weight: 0", "    layers.*.attention.wq.weight: 0",
          "    \"*\": whole", "    norm.weight: whole",
          "  layers.*.feed_forward.w1.weight: {weight: {model: shard(0), fsdp: replicate}, axis: "
          "every}");
    equivalent(&r);
    PlanRun run = run_plan(&r, false);
    static const char *const weights[] = {"feed_forward.w1.weight", "feed_forward.w3.weight",
                                          "feed_forward.w2.weight", "attention.wq.weight"};
    for (int i = 0; i < 4; i++) {
        const char *name = arena_printf(arena, "layers.0.%s", weights[i]);
        assert_int_equal(moved(&run, "all_gather", name, "fsdp"), 1);
        name = arena_printf(arena, "grad.param.%s", name);
        assert_int_equal(moved(&run, "reduce_scatter", name, "fsdp"), 1);
    }
    assert_int_equal(moved(&run, "all_reduce", "grad.param.norm.weight", "fsdp"), 1);
    assert_int_equal(moved(&run, "all_reduce", "layers.0.mlp.down", "model"), 1);
    assert_int_equal(moved(&run, "all_gather", "output.weight", "fsdp"), 0); /* has no spec */
    /* two axes of the batch, one of them at rest; by its name where nothing says how tokens lie */
    r = jax("data=2,fsdp=2,model=2", arena_printf(arena, jax_fsdp, "[\"data\", \"fsdp\"]"));
    HOLDS(r, "  mode: hsdp", "  replicate: data", "  shard: fsdp");
    equivalent(&r);
    r = jax("dp=2", "{\"layers.*.feed_forward.w1.kernel\": [\"dp\"]}");
    HOLDS(r, "  axis: dp", "    layers.*.feed_forward.w1.weight: 1");
    equivalent(&r);
    /* it does not cut the batch: a contraction, whose sum nobody but the partitioner makes */
    r = jax("fsdp=2,model=2", "{\"layers.*.feed_forward.w1.kernel\": [\"fsdp\", \"model\"]}");
    assert_null(strstr(r.plan.text, "data_parallel"));
    HOLDS(r, "  layers.*.feed_forward.w1.weight: {weight: {fsdp: shard(1), model: shard(0)}, axis: "
             "every}");
    equivalent(&r);
}
static void test_jax_at_rest_refusals(void **state) {
    (void)state;
    Imported r =
        jax("a=2,b=2,t=2", "{\"q.weight\": [[\"a\", \"t\"]],\n \"r.weight\": [\"a\", \"b\"],\n"
                           " \"tokens\": [[\"a\", \"b\"]]}");
    REFUSES(r, "specs.json:1:21: error: a cuts the batch, and outside of t",
            ":2:20: error: axes that cut the batch cut two dims of a parameter");
    r = jax("a=2,b=2", "{\"q.weight\": [\"a\"],\n \"r.weight\": [null, \"b\"],\n"
                       " \"s.weight\": [null],\n \"tokens\": [[\"a\", \"b\"]]}");
    REFUSES(r, "specs.json:2:14: error: parameters cut by different axes of the batch");
    r = jax("dp=2", "{\"layers.*.attention.wz.kernel\": [\"dp\"]}");
    PlanRun run = run_plan(&r, false);
    assert_int_equal(diags_errors(run.d), 1); /* once, and in their file */
    assert_non_null(strstr(diags_text(arena, run.d), "specs.json:1:2: error: pattern"));
}
/* Kernels with heads apart, layers stacked in front, and MaxText's own tree. */
static void test_jax_heads(void **state) {
    (void)state;
    static const char *const trees[] = {
        "{\"tokens\": [\"data\", null],\n"
        " \"params/layers_0/attention/wq/kernel\": [null, \"model\", null],\n"
        " \"layers_0/attention/wk/kernel\": [null, [\"model\"]],\n"
        " \"layers_0/attention/wv/kernel\": [null, \"model\", null],\n"
        " \"layers_0/attention/wo/kernel\": [\"model\", null, null],\n"
        " \"layers_0/feed_forward/w1/kernel\": [null, \"model\"],\n"
        " \"layers_0/feed_forward/w3/kernel\": [null, \"model\"],\n"
        " \"layers_0/feed_forward/w2/kernel\": [\"model\", null],\n"
        " \"layers_0/ffn_norm/scale\": [null], \"norm/scale\": [null],\n"
        " \"output/kernel\": [null, \"model\"]}",
        "{\"tokens\": [\"data\", null],\n"
        " \"params/layers/attention/wq/kernel\": [null, null, \"model\", null],\n"
        " \"layers/attention/wk/kernel\": [[], null, \"model\"],\n"
        " \"layers/attention/wv/kernel\": [null, null, \"model\", null],\n"
        " \"layers/attention/wo/kernel\": [null, \"model\"],\n"
        " \"layers/feed_forward/w1/kernel\": [null, null, \"model\"],\n"
        " \"layers/feed_forward/w3/kernel\": [null, null, \"model\"],\n"
        " \"layers/feed_forward/w2/kernel\": [null, \"model\", null],\n"
        " \"layers/ffn_norm/scale\": [null, null], \"norm/scale\": [null],\n"
        " \"output/kernel\": [null, \"model\"]}",
        "{\"tokens\": [\"data\", null],\n"
        " \"params/decoder/layers/self_attention/query/kernel\": [null, null, \"model\", null],\n"
        " \"params/decoder/layers/self_attention/key/kernel\": [[], null, \"model\", null],\n"
        " \"params/decoder/layers/self_attention/value/kernel\": [null, null, \"model\", null],\n"
        " \"params/decoder/layers/self_attention/out/kernel\": [\"model\", null, null, null],\n"
        " \"params/decoder/layers/mlp/wi_0/kernel\": [null, null, \"model\"],\n"
        " \"params/decoder/layers/mlp/wi_1/kernel\": [null, null, \"model\"],\n"
        " \"params/decoder/layers/mlp/wo/kernel\": [\"model\", null, null],\n"
        " \"params/decoder/layers/post_self_attention_layer_norm/scale\": [null, null],\n"
        " \"params/decoder/decoder_norm/scale\": [null],\n"
        " \"params/decoder/logits_dense/kernel\": [null, \"model\"]}"};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        Imported r = jax("data=2,model=4", trees[i]);
        const char *layer = i ? "*" : "0";
#define LINE(module, dim)                                                                          \
    arena_printf(arena,                                                                            \
                 "  layers.%s." module ".weight: {weight: {model: shard(" dim                      \
                 "), data: replicate}, axis: every}",                                              \
                 layer)
        HOLDS(r, LINE("attention.wq", "0"), LINE("attention.wk", "0"), LINE("attention.wv", "0"),
              LINE("attention.wo", "1"), LINE("feed_forward.w1", "0"), LINE("feed_forward.w3", "0"),
              LINE("feed_forward.w2", "1"),
              "  norm.weight: {weight: {data: replicate, model: replicate}, axis: every}",
              "  output.weight: {weight: {model: shard(0), data: replicate}, axis: every}");
#undef LINE
        equivalent(&r);
    }
}
static void test_jax_heads_refusals(void **state) {
    (void)state;
    Imported r = jax("a=2,b=2", "{\"layers/attention/wq/kernel\": [\"a\", null, null],\n"
                                " \"decoder/layers/self_attention/out/kernel\": [null, \"a\"],\n"
                                " \"layers_0/attention/wk/kernel\": [null, null, \"b\"],\n"
                                " \"layers_0/attention/wo/kernel\": [null, \"b\", null],\n"
                                " \"layers_0/feed_forward/w1/kernel\": [null, null, \"b\"],\n"
                                " \"layers/feed_forward/w1/kernel\": [null, null, null, \"b\"]}");
    REFUSES(
        r, "specs.json:1:33: error: layers that an axis shares out: not supported",
        "null: dim 0 is that of the layers", ":2:53: error: layers that an axis shares out",
        ":3:47: error: an axis that cuts within heads: not supported",
        ":4:41: error: an axis that cuts within heads",
        ":5:37: error: the PartitionSpec of a kernel has at most 2 dims [E0307]",
        ":6:35: error: the PartitionSpec of a kernel has at most 2 dims and that of the layers");
}
static void test_jax_refusals(void **state) {
    (void)state;
    Imported r = jax("a=2,b=2", "{\"q/kernel\": [\"a\", \"b\", null],\n"
                                " \"q/weight\": 3,\n \"r/weight\": [[\"b\", \"a\"], \"c\"],\n"
                                " \"s/weight\": [\"a\", \"a\"],\n \"t/mu\": [null],\n"
                                " \"u/weight\": [{}],\n \"tokens\": \"a\"}");
    REFUSES(r, "specs.json:1:14: error: the PartitionSpec of a kernel has at most 2 dims [E0307]",
            ":2:14: error:", ":3:21: error: axes of one dim in another order",
            ":3:27: error: the mesh has no axis c [E0204]", ":4:20: error: axis a cuts two dims",
            ":5:2: error: 't/mu' is no parameter's path [E0209]", ":6:15: error: a dim of",
            ":7:12: error: the spec of 'tokens' has two dims");
    r = jax("a=2", "{\"x\": [1,]}");
    REFUSES(r, "specs.json:1:", "[E0109]");
    r = jax("a=2", "{\"x\": 1, \"x\": 2}");
    REFUSES(r, "specs.json:1:", "[E0109]");
}

/* ---- hf ---- */
static const char *write_file(const char *name, const char *text) {
    const char *path = temp_path(arena, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}
static Imported hf(const char *config, int64_t tp, const char *table) {
    return import_with((ImportInput){.framework = "hf",
                                     .config = write_file("config.json", config),
                                     .tp = tp,
                                     .ep = -1,
                                     .full = true,
                                     .tp_plan = table ? write_file("tp_plan.json", table) : NULL},
                       "");
}
/* A Json value as text again. */
static const char *json_again(const Json *j) {
    JsonWriter w = json_writer(arena);
    json_open(&w, NULL, '{');
    for (int i = 0; i < j->n; i++) {
        const Json *v = j->value[i];
        if (v->kind == JSON_INT) json_int(&w, j->key[i], v->i);
        if (v->kind == JSON_REAL) json_real(&w, j->key[i], v->r);
        if (v->kind == JSON_BOOL) json_bool(&w, j->key[i], v->b);
        if (v->kind == JSON_STRING) json_str(&w, j->key[i], v->s);
        if (v->kind == JSON_OBJECT) json_raw(&w, j->key[i], json_again(v));
    }
    json_close(&w, '}');
    return w.s.s;
}
static int64_t recorded(const Json *run, const char *phase, const char *op) {
    const Json *n = json_get(json_get(json_get(run, "collectives_of_rank_0"), phase), op);
    return n ? n->i : 0;
}
/* The library's own runs of the plans that it ships: local shapes, numbers of collectives, and that
 * all values and gradients are right. */
static void test_hf_runs(void **state) {
    (void)state;
    static const char *const cases[] = {"Llama.tp2", "Qwen3.tp2"};
    for (int i = 0; i < 2; i++) {
        const Json *run = golden_json(arena, golden_path(arena, "plans/runs/%s.json", cases[i])),
                   *shapes = json_get(run, "local_shapes");
        Imported r = hf(json_again(json_get(run, "config_used")), 2, NULL);
        PlanRun p = run_plan(&r, true);
        if (!p.t) run_print(&p);
        assert_non_null(p.t);
        run_must_be(&p, "equivalent");
        for (int k = 0; k < shapes->n; k++) {
            const Json *want = shapes->value[k];
            Str s = str_new(arena);
            for (int d = 0; d < want->n; d++)
                str_addf(&s, "%s%lld", d ? ", " : "", (long long)want->item[d]->i);
            assert_string_equal(arena_printf(arena, "[%s]", s.s),
                                local_text(arena, &find_param(p.t, shapes->key[k])->rest, 1));
        }
        assert_true(shapes->n >= 21);
        assert_int_equal(recorded(run, "training_forward", "all_reduce"),
                         count_collectives(p.t, "forward", "all_reduce", "tp"));
        assert_int_equal(recorded(run, "training_forward", "all_gather_into_tensor"),
                         count_collectives(p.t, "forward", "all_gather", "tp"));
        assert_int_equal(recorded(run, "backward", "all_reduce"),
                         count_collectives(p.t, "backward", "all_reduce", "tp"));
        /* in place: the gradients of q_norm and k_norm */
        assert_int_equal(recorded(run, "backward", "allreduce_"),
                         count_collectives(p.t, "gradients", "all_reduce", "tp"));
    }
}
static void test_hf(void **state) {
    (void)state;
    static const char config[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 96,\n"
        " \"num_attention_heads\": 8, \"num_hidden_layers\": 1, \"vocab_size\": 128,\n"
        " \"rms_norm_eps\": 1e-5}\n";
    Imported r = hf(config, 2,
                    "{\"model.layers.*.self_attn.o_proj\": \"rowwise_split_input\",\n"
                    " \"model.layers.*.mlp.down_proj\": \"rowwise\",\n"
                    " \"model.norm\": \"replicate\"}");
    HOLDS(r, "mesh: {tp: 2}", "names: hf", "  model.embed_tokens: embedding_rowwise",
          "  model.layers.*.self_attn.q_proj: {style: colwise, boundary: per_module}",
          "  model.layers.*.self_attn.o_proj: rowwise_split_input",
          "  model.layers.*.mlp.down_proj: rowwise", "  model.norm: replicate",
          "  lm_head: colwise_gather_output");
    r = hf(config, 2,
           "{\"model.layers.*.input_layernorm\": \"sequence_parallel\",\n \"lm_head\": 1}");
    REFUSES(r, "tp_plan.json:1:36: error: the library's sequence_parallel", "[E0214]",
            "tp_plan.json:2:13: error: a style is text", "[E0301]");
    /* names in the library have no numbers: DistributedConfig(tp_plan=...) raises for this line */
    r = hf(config, 2, "{\"model.layers.0.mlp.down_proj\": \"replicate\"}");
    REFUSES(r, "tp_plan.json:1:2: error: the library matches keys", "[E0205]",
            "did you mean 'model.layers.*.mlp.down_proj'?");
    /* and begin with `model.`: of the base model alone they do not, and it has no head */
    r = hf(config, 2,
           "{\"layers.*.self_attn.q_proj\": \"replicate\",\n \"norm\": \"replicate\",\n"
           " \"embed_tokens\": \"replicate\"}");
    REFUSES(r, "tp_plan.json:1:2: error: the library matches keys", "[E0205]",
            "model.layers.*.self_attn.q_proj", "tp_plan.json:2:2: error: the library", "model.norm",
            "tp_plan.json:3:2: error: the library", "model.embed_tokens");
    r = hf(config, -1, NULL);
    REFUSES(r, "config.json:1:1: error: how many ranks there are", "[E0208]");
    /* another model is refused first and alone */
    r = hf("{\"model_type\": \"gemma3\", \"attn_logit_softcapping\": 3}", -1, "{\"x\": 1}");
    REFUSES(r,
            "config.json:1:16: error: model_type 'gemma3': not supported by this version [E0214]");
    r = hf("{\"model_type\": \"llama4\", \"text_config\": {\"model_type\": \"llama4_text\"}}", -1,
           NULL);
    REFUSES(r, "model_type 'llama4'",
            "write the object `text_config` to a file of its own: model_type 'llama4_text' runs");
    assert_int_equal(diags_errors(r.d), 1);
}

/* ---- the command ---- */
static int command(const char **out, const char **err, int argc, const char *const *words) {
    char **argv = ARENA_ARRAY(arena, char *, argc + 1), *o = NULL, *e = NULL;
    size_t no = 0, ne = 0;
    for (int i = 0; i < argc; i++) argv[i] = arena_strdup(arena, words[i]);
    FILE *fo = open_memstream(&o, &no), *fe = open_memstream(&e, &ne);
    int code = cli_main(argc, argv, fo, fe);
    fclose(fo), fclose(fe);
    *out = arena_strdup(arena, o), *err = arena_strdup(arena, e);
    free(o), free(e);
    return code;
}
#define COMMAND(...)                                                                               \
    command(&out, &err, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)),       \
            (const char *[]){__VA_ARGS__})
/* More ranks than KV heads: where the config has them, and a number that the library takes. */
static void test_hf_kv_heads(void **state) {
    (void)state;
    const char *out, *err,
        *file = write_file(
            "few.json",
            "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 96,\n"
            " \"num_attention_heads\": 8, \"num_key_value_heads\": 2, \"num_hidden_layers\": 1,\n"
            " \"vocab_size\": 128, \"rms_norm_eps\": 1e-5}\n");
    assert_int_equal(COMMAND("shardproof", "check", file, "--tp", "4"), 1);
    static const char *const said[] = {
        "few.json:2:51: error: 2 KV heads cannot be cut over tp of size 4 [E0305]\n",
        "= help: choose a number of ranks that divides the KV heads: 1 or 2\n"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (!strstr(err, said[i])) fail_msg("nothing says '%s' in\n%s", said[i], err);
    assert_int_equal(COMMAND("shardproof", "check", file, "--tp", "2"), 0);
    assert_int_equal(COMMAND("shardproof", "check", file, "--tp", "3"), 1);
    assert_non_null(strstr(err, "few.json:2:25: error: 8 heads cannot be cut over tp of size 3"));
    assert_int_equal(COMMAND("shardproof", "check", "--model", "llama3-8b", "--tp", "16"), 2);
}
/* ---- a gate ---- */
/* A gate says 0 only for what runs and is right: PyTorch raised, or left gradients a part, on each
 * of these (2.15, gloo, two processes), and its own words say what mends it. */
static const char tp_table[] =
    "for block in model.layers:\n"
    "    parallelize_module(block, mesh['tp'], {'attention.wq': ColwiseParallel(%s),\n"
    "        'attention.wk': ColwiseParallel(), 'attention.wv': ColwiseParallel(),\n"
    "        'attention.wo': RowwiseParallel(),\n"
    "        'feed_forward.w1': ColwiseParallel(),%s\n"
    "        'feed_forward.w2': RowwiseParallel(%s)})\n";
static const char w3[] = " 'feed_forward.w3': ColwiseParallel(),";
static void test_torch_verdicts(void **state) {
    (void)state;
    static const struct {
        const char *wq, *more, *w2, *says, *help; /* NULL: right */
    } rows[] = {
        {"", w3, "", NULL, NULL},
        {"output_layouts=Replicate()", w3, "", "it raises", "output_layouts"},
        {"", "", "", "it raises", "write `\"layers.*.feed_forward.w3\": ColwiseParallel()`"},
        {"", w3, "input_layouts=Replicate()", "PyTorch believes the label", "explain PLAN"},
        {"", w3, "output_layouts=Partial()", "the sum over tp is missing", "say `Replicate()`"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = arena_printf(arena, tp_table, rows[i].wq, rows[i].more, rows[i].w2);
        const char *out, *err, *py = write_file("gate.py", text);
        int code = COMMAND("shardproof", "check", py, "--model", "llama3-8b", "--mesh", "tp=2");
        assert_int_equal(code, rows[i].says ? 1 : 0);
        if (!rows[i].says) continue;
        const char *at = strstr(err, "gate.py:");
        if (!at || !strstr(err, rows[i].says) || !strstr(err, rows[i].help) ||
            strstr(err, "--mesh:1:1"))
            fail_msg("%zu: %s%s", i, out, err);
    }
}
/* ---- what autograd moves ---- */
/* Collectives of PyTorch 2.15 (gloo, two processes, one layer, CommDebugMode), with its fused
 * RMSNorm, which GPUs run: a kernel of aten::_fused_rms_norm was registered for the CPU. Where a
 * hook leaves a DTensor alone the linear op gathers it; what autograd keeps is what the op was
 * given, so each gathers again for its weight's gradient, and the pending gradients of the input
 * are added up before the norm reduces them. */
#define NORM(m) "'" m "_norm': SequenceParallel(), "
#define PREPARE(m, more)                                                                           \
    "'" m "': PrepareModuleInput(input_layouts=(Shard(1)," more                                    \
    "), desired_input_layouts=(Replicate()," more ")), "
#define QKV(in)                                                                                    \
    "'attention.wq': ColwiseParallel(" in "), 'attention.wk': ColwiseParallel(" in                 \
    "), 'attention.wv': ColwiseParallel(" in "), "
#define W13(one, three)                                                                            \
    "'feed_forward.w1': ColwiseParallel(" one "), 'feed_forward.w3': ColwiseParallel(" three "), "
#define CUT "input_layouts=Shard(1)"
#define ATTENTION NORM("attention") PREPARE("attention", " None") QKV("")
#define FFN NORM("ffn") PREPARE("feed_forward", "") W13("", "")
static const char sp_table[] =
    "parallelize_module(model, mesh['tp'], {'tok_embeddings': RowwiseParallel(\n"
    "    input_layouts=Replicate(), output_layouts=Shard(1)), 'norm': SequenceParallel(),\n"
    "    'output': ColwiseParallel(%soutput_layouts=Replicate())})\n"
    "for block in model.layers:\n    parallelize_module(block, mesh['tp'], {%s\n%s\n"
    "        'attention.wo': RowwiseParallel(output_layouts=Shard(1)),\n"
    "        'feed_forward.w2': RowwiseParallel(output_layouts=Shard(1))})\n";
static const char said_cut[] = CUT ", ";
static const struct {
    const char *output, *attention, *ffn;
    int forward[2], backward[3]; /* all-gathers, reduce-scatters, all-reduces */
} autograd_rows[] = {
    {said_cut, ATTENTION, FFN, {4, 3}, {3, 3, 0}},
    {said_cut, ATTENTION, NORM("ffn") W13("", ""), {5, 3}, {5, 3, 0}},
    {said_cut,
     ATTENTION,
     NORM("ffn") W13("", "") "'feed_forward': PrepareModuleInput(input_kwarg_layouts={'x': "
                             "Shard(1)}, desired_input_kwarg_layouts={'x': Replicate()}), ",
     {5, 3},
     {5, 3, 0}},
    {said_cut,
     ATTENTION,
     NORM("ffn") W13("", "") "'feed_forward': PrepareModuleInput(input_layouts=(Replicate(),), "
                             "desired_input_layouts=(Replicate(),)), ",
     {5, 3},
     {5, 3, 0}},
    {said_cut, ATTENTION, NORM("ffn") W13(CUT, ""), {5, 3}, {4, 4, 0}},
    {said_cut, ATTENTION, NORM("ffn") W13("", CUT), {5, 3}, {4, 4, 0}},
    {said_cut,
     ATTENTION,
     "'ffn_norm': SequenceParallel(use_local_output=True), " W13(CUT, CUT),
     {5, 3},
     {3, 4, 0}},
    {said_cut,
     ATTENTION,
     NORM("ffn") W13("", "") "'feed_forward': PrepareModuleInput(input_layouts=(Shard(1),), "
                             "desired_input_layouts=(Replicate(),), use_local_output=True), ",
     {4, 3},
     {3, 2, 2}},
    {said_cut, NORM("attention") QKV(""), FFN, {6, 3}, {6, 3, 0}},
    {said_cut, NORM("attention") QKV(CUT), FFN, {6, 3}, {3, 5, 0}},
    {"", ATTENTION, FFN, {4, 3}, {4, 3, 0}},
    {"", NORM("attention") QKV(""), NORM("ffn") W13("", ""), {7, 3}, {9, 3, 0}},
};
static void test_torch_autograd(void **state) {
    (void)state;
    static const char *const ops[] = {"all_gather", "reduce_scatter", "all_reduce"};
    for (size_t i = 0; i < sizeof autograd_rows / sizeof *autograd_rows; i++) {
        Imported r = torch("tp=2", arena_printf(arena, sp_table, autograd_rows[i].output,
                                                autograd_rows[i].attention, autograd_rows[i].ffn));
        PlanRun run = run_plan(&r, true);
        if (!run.t || strcmp(run.t->verdict, "equivalent") != 0) run_print(&run);
        assert_non_null(run.t);
        assert_string_equal(run.t->verdict, "equivalent");
        for (int k = 0; k < 3; k++) {
            int64_t f = count_collectives(run.t, "forward", ops[k], "tp"),
                    b = count_collectives(run.t, "backward", ops[k], "tp");
            if (b != autograd_rows[i].backward[k] || (k < 2 && f != autograd_rows[i].forward[k]))
                fail_msg("row %zu: %s %d forward, %d backward", i, ops[k], (int)f, (int)b);
        }
        /* each of the whole input of a layer, as all of PyTorch's */
        int64_t whole = 0;
        for (int k = 0; k < run.t->n_collectives; k++) {
            const TraceCollective *c = &run.t->collectives[k];
            int64_t bytes = c->bytes_in > c->bytes_out ? c->bytes_in : c->bytes_out;
            if (c->pass != PHASE_BACKWARD) continue;
            if (!whole) whole = bytes;
            assert_int_equal(bytes, whole);
        }
    }
}
/* The compiler inserts what PyTorch's user would have to: nobody is asked to. */
static void test_jax_compiler(void **state) {
    (void)state;
    static const char specs[] = "{\"layers.*.feed_forward.w1.weight\": [\"tp\", null]}";
    const char *out, *err, *path = write_file("specs.json", specs);
    assert_int_equal(COMMAND("shardproof", "check", path, "--model", "llama3-8b", "--mesh", "tp=2",
                             "--fail-on", "warning", "-v"),
                     0);
    assert_non_null(strstr(out, "equivalent"));
    assert_null(strstr(out, "if somebody"));
    assert_null(strstr(err, "N0001"));
    assert_null(strstr(err, "N0008"));
}
/* A batch or a sequence that its axes do not divide: each at its own place in the spec. */
static void test_jax_indivisible_tokens(void **state) {
    (void)state;
    static const char *const sizes[][3] = {{"data.batch=6", "data.sequence=8", NULL},
                                           {"data.batch=4", "data.sequence=8", "1:14: B data (3)"},
                                           {"data.batch=6", "data.sequence=7", "1:22: S seq (2)"}};
    const char *path = write_file(
        "tokens.json", "{ \"tokens\": [\"data\", \"seq\"], \"output.weight\": [null, null]}");
    for (int i = 0; i < 3; i++) {
        const char *out, *err, *want = sizes[i][2];
        int code = COMMAND("shardproof", "check", path, "--model", "llama3-8b", "--mesh",
                           "data=3,seq=2", "--set", sizes[i][0], "--set", sizes[i][1], "-q");
        assert_int_equal(code, want ? 1 : 0);
        if (!want) continue;
        const char *says = arena_printf(
            arena,
            "tokens.json:%.4s: error: input_ids: %c is no multiple of %s, and a NamedSharding",
            want, want[6], want + 8);
        if (!strstr(err, says) || !strstr(err, "[E0409]")) fail_msg("%s\n%s%s", says, out, err);
    }
}
/* What jax 0.10 raises on (IndivisibleError of device_put and jit) is no plan that runs, at any
 * width; each at its line. */
static void test_jax_indivisible(void **state) {
    (void)state;
    static const struct {
        const char *specs, *mesh, *says; /* NULL: right */
    } rows[] = {
        {"{\"layers.*.feed_forward.w1.weight\": [\"tp\", null]}", "tp=3",
         "w1.weight: F is no multiple of tp (3)"},
        {"{\"layers.*.feed_forward.w2.weight\":\n [null, [\"a\", \"b\"]]}", "a=2,b=3",
         "w2.weight: F is no multiple of a*b (6)"},
        {"{\"norm.weight\": [\"tp\"]}", "tp=3", "norm.weight: D is no multiple of tp (3)"},
        {"{\"tokens\": [\"fsdp\", null], \"layers.*.feed_forward.w1.weight\": [null, \"fsdp\"]}",
         "fsdp=3", "w1.weight: D is no multiple of fsdp (3)"},
        {"{\"layers.*.feed_forward.w1.weight\": [\"tp\", null]}", "tp=7", NULL},
    };
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        const char *out, *err, *path = write_file("specs.json", rows[i / 2].specs);
        int code = COMMAND("shardproof", i % 2 ? "shapes" : "check", path, "--model", "llama3-8b",
                           "--mesh", rows[i / 2].mesh, i % 2 ? "--full" : "-q");
        assert_int_equal(code, rows[i / 2].says ? 1 : 0);
        if (!rows[i / 2].says) continue;
        if (!strstr(err, "specs.json:1:") || !strstr(err, "[E0409]") ||
            !strstr(err, rows[i / 2].says))
            fail_msg("%zu: %s%s", i, out, err);
    }
}
/* Heads that an axis cuts within: jax runs them (weights are arrays, their dims heads times head
 * size), so such a table is not wrong, only not run here; what does not divide is wrong there too.
 */
static void test_jax_parts_of_heads(void **state) {
    (void)state;
#define WEIGHT(module, spec) "{\"layers.*.attention." module ".weight\": " spec "}"
    static const struct {
        const char *specs, *mesh;
        int code;
        const char *says; /* NULL: right */
    } rows[] = {
        {WEIGHT("wk", "[\"tp\", null]"), "tp=8", 0, NULL},
        {WEIGHT("wk", "[\"tp\", null]"), "tp=16", 3, "wk.weight over tp (16) cuts within heads"},
        {WEIGHT("wq", "[\"tp\", null]"), "tp=64", 3, "wq.weight over tp (64) cuts within heads"},
        {WEIGHT("wq", "[\"tp\", null]"), "tp=4096", 3,
         "wq.weight over tp (4096) cuts within heads"},
        {WEIGHT("wo", "[null, \"tp\"]"), "tp=64", 3, "wo.weight over tp (64) cuts within heads"},
        {WEIGHT("wq", "[[\"a\", \"b\"], null]"), "a=4,b=16", 3,
         "wq.weight over a*b (64) cuts within heads"},
        {WEIGHT("wq", "[\"tp\", null]"), "tp=3", 1, "wq.weight: 4096 is no multiple of tp (3)"},
        {WEIGHT("wk", "[\"tp\", null]"), "tp=6", 1, "wk.weight: 1024 is no multiple of tp (6)"},
        {WEIGHT("wo", "[null, [\"a\", \"b\"]]"), "a=2,b=3", 1,
         "wo.weight: 4096 is no multiple of a*b (6)"},
    };
#undef WEIGHT
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *out, *err, *path = write_file("specs.json", rows[i].specs);
        int code = COMMAND("shardproof", "check", path, "--model", "llama3-8b", "--mesh",
                           rows[i].mesh, "-q");
        if (code != rows[i].code) fail_msg("%zu: exit %d\n%s%s", i, code, out, err);
        if (!rows[i].says) continue;
        const char *text = rows[i].code == 3 ? "[E0214]" : "[E0409]";
        if (!strstr(err, "specs.json:1:") || !strstr(err, text) || !strstr(err, rows[i].says))
            fail_msg("%zu: %s%s", i, out, err);
    }
    /* the same of a plan's own line, whose KV heads are replicated where that helps */
    static const char text[] = "model: {preset: llama3-8b}\nmesh: {tp: 64}\ntrust: compiler\n"
                               "plan:\n  layers.*.attention.w[qkv]: colwise\n";
    const char *out, *err;
    assert_int_equal(COMMAND("shardproof", "check", write_file("p.yaml", text), "-q"), 3);
    if (!strstr(err, "p.yaml:5:3: error:") || !strstr(err, "[E0214]")) fail_msg("%s%s", out, err);
}
/* ---- hf with experts ---- */
#define SMALL                                                                                      \
    "\"hidden_size\": 16, \"intermediate_size\": 12, \"num_attention_heads\": 4, "                 \
    "\"num_key_value_heads\": 2, \"head_dim\": 4, \"vocab_size\": 14, \"num_experts_per_tok\": 2"
static const char mixtral[] =
    "{\"model_type\": \"mixtral\", " SMALL ", \"num_hidden_layers\": 2, \"num_local_experts\": 6}",
                  qwen[] = "{\"model_type\": \"qwen3_moe\", " SMALL
                           ", \"num_hidden_layers\": 2, \"num_experts\": 6, "
                           "\"moe_intermediate_size\": 6, \"mlp_only_layers\": [0]}",
                  llama4[] = "{\"model_type\": \"llama4_text\", " SMALL
                             ", \"num_hidden_layers\": 3, \"num_local_experts\": 6, "
                             "\"intermediate_size_mlp\": 20, \"interleave_moe_layer_step\": 2}";
static Imported hf_experts(const char *config, int64_t tp, int64_t ep, const char *table) {
    static int files; /* each has its own, which its plan names */
    return import_with(
        (ImportInput){.framework = "hf",
                      .config = write_file(arena_printf(arena, "experts%d.json", files++), config),
                      .tp = tp,
                      .ep = ep,
                      .ep_plan = table ? write_file("ep_plan.json", table) : NULL},
        "");
}
/* Lines for what the model has, as many layers as have experts; the library's table for experts
 * over it where ranks share them. */
static void test_hf_experts(void **state) {
    (void)state;
    Imported tp = hf_experts(mixtral, 2, -1, NULL), ep = hf_experts(mixtral, 2, 2, NULL),
             alone = hf_experts(mixtral, -1, 2, NULL), dense = hf_experts(qwen, 2, 2, NULL),
             deep = hf_experts(llama4, 2, -1, NULL);
    HOLDS(tp, "mesh: {tp: 2}", "  model.layers.*.mlp.experts.gate_up_proj: packed_colwise",
          "  model.layers.*.mlp.experts.down_proj: rowwise",
          "  model.layers.*.mlp.experts: moe_tp_experts");
    HOLDS(ep, "  model.layers.*.mlp.experts.gate_up_proj: grouped_gemm",
          "  model.layers.*.mlp.experts.down_proj: grouped_gemm",
          "  model.layers.*.mlp.experts: ep_dispatch_experts");
    HOLDS(alone, "mesh: {tp: 2}");
    HOLDS(dense, "  model.layers.*.mlp.experts: ep_dispatch_experts",
          "  model.layers.*.mlp.down_proj: rowwise");
    HOLDS(deep, "  model.layers.*.feed_forward.experts.gate_up_proj: packed_rowwise",
          "  model.layers.*.feed_forward.experts.down_proj: colwise",
          "  model.layers.*.feed_forward.down_proj: rowwise");
    assert_non_null(strstr(tp.plan.text, "layers: 1,"));
    assert_non_null(strstr(dense.plan.text, "layers: 2,")); /* the first has none */
    assert_non_null(strstr(deep.plan.text, "layers: 2,"));
    assert_null(strstr(tp.plan.text, "mlp.gate_proj")); /* no layer has it */
    assert_null(strstr(deep.plan.text, ".mlp."));
    equivalent(&tp);
    equivalent(&ep);
    equivalent(&dense);
    equivalent(&deep);
    /* no layer has any: the table is there, and nothing for it */
    Imported bare =
        hf_experts("{\"model_type\": \"qwen3_moe\", " SMALL ", \"num_hidden_layers\": 2, "
                   "\"num_experts\": 6, \"mlp_only_layers\": [0, 1]}",
                   2, 2, NULL);
    HOLDS(bare, "  model.layers.*.mlp.down_proj: rowwise");
    assert_null(strstr(bare.plan.text, "mlp.experts"));
    equivalent(&bare);
    /* a table of the user's own: experts' weights whole, each rank computes all of them */
    Imported own =
        hf_experts(llama4, 2, 2,
                   "{\"model.layers.*.feed_forward.experts.gate_up_proj\": \"grouped_gemm\", "
                   "\"model.layers.*.feed_forward.experts.down_proj\": \"grouped_gemm\", "
                   "\"model.layers.*.feed_forward.experts\": \"ep_dispatch_experts\"}");
    HOLDS(own, "  model.layers.*.feed_forward.experts: ep_dispatch_experts");
    equivalent(&own);
    Imported none = hf_experts(llama4, 2, 2, NULL), other = hf_experts(mixtral, 4, 2, NULL),
             idle = hf_experts(mixtral, 2, -1, "{}"), empty = hf(mixtral, 2, "{}"),
             three = hf_experts(mixtral, -1, 3, NULL);
    REFUSES(three, "--ep 3: the ranks that share out experts are those of tensor parallelism",
            "[E0303]");
    REFUSES(none, "model_type llama4_text: the library ships no table for experts", "--ep-plan");
    REFUSES(other, "--ep 2: experts are shared out to the ranks of --tp, which are 4");
    REFUSES(idle, "--ep-plan is for --ep above 1");
    REFUSES(empty, "a tp_plan without a line: the library refuses to load the model");
}
/* ---- hf by its versions ---- */
static const char dense_llama[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 16, \"intermediate_size\": 12, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"vocab_size\": 14, "
    "\"num_hidden_layers\": 1}";
static Imported hf_then(const char *version, const char *config, const char *table) {
    const char *name = config == mixtral ? "then_experts.json" : "then.json";
    return import_with((ImportInput){.framework = "hf",
                                     .config = write_file(name, config),
                                     .hf_version = version,
                                     .tp = 2,
                                     .ep = -1,
                                     .tp_plan = table ? write_file("tp_plan.json", table) : NULL},
                       "");
}
/* What the framework's code says and no line of the file: an error of it stands where the file asks
 * for it, in what the importer wrote it has no place. */
static void test_places_of_code(void **state) {
    (void)state;
    static const char pipeline[] =
        "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"ZBVZeroBubble\"\n"
        "data_parallel_shard_degree = 1\ntensor_parallel_degree = 3\n[training]\nlocal_batch_size "
        "= 1\n";
    Imported r[] = {
        hf(dense_llama, 3, NULL),
        hf(dense_llama, 4, NULL),
        titan(NULL, DS "tensor_parallel_degree = 3\n"),
        titan(NULL, arena_printf(arena,
                                 "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
                                 "[parallelism]\n%s",
                                 pipeline)),
    };
    for (size_t i = 0; i < sizeof r / sizeof *r; i++) {
        if (!r[i].plan.text) fail_msg("%s", r[i].said);
        PlanRun run = run_plan(&r[i], false);
        assert_true(run.d->n > 0);
        for (int k = 0; k < run.d->n; k++)
            if (!run.d->item[k].loc.file || strcmp(run.d->item[k].loc.file, "imported.yaml") == 0)
                fail_msg("%s", diags_text(arena, run.d));
    }
}
/* Each name in each version: read where the library had it, refused with another where it had not.
 * The names of the newest are those that its own registry was recorded with. */
static void test_hf_styles_then(void **state) {
    (void)state;
    static const char *const version[] = {"4.57.1", "5.3", "5.23"};
    int n;
    const HfStyle *row = hf_styles(&n);
    for (int i = 0; i < n; i++) {
        int blocks;
        bool linear;
        assert_int_equal((row[i].in & HF_GEN_3) != 0,
                         style_hf(row[i].name, &blocks, &linear) != HF_NOT);
        for (int v = 0; v < 3; v++) {
            Imported r = hf_then(
                version[v], dense_llama,
                arena_printf(arena, "{\"model.layers.*.mlp.up_proj\": \"%s\"}", row[i].name));
            const char *no =
                arena_printf(arena, "transformers %s knows no style '%s'", version[v], row[i].name);
            bool refused = strstr(r.said, no) != NULL;
            if (refused != !(row[i].in & 1u << v)) fail_msg("%s\n%s", no, r.said);
            if (refused && row[i].instead && !strstr(r.said, row[i].instead))
                fail_msg("%s: nothing says %s", no, row[i].instead);
        }
        const char *to = row[i].instead; /* a name that a version has, which this one has not */
        if (to && !strchr(to, ' ')) assert_true(hf_style(to)->in & ~row[i].in);
    }
}
static void test_hf_versions(void **state) {
    (void)state;
    static const char *const unknown[] = {"4.49", "5.20",  "5.22.1", "5.24",   "6.0",           "5",
                                          "5.",   "v5.23", "5.23.",  "5.23.x", "99999999999.1", ""};
    static const char wordless[] = "{\"layers.*.mlp.up_proj\": \"colwise\", "
                                   "\"model.layers.*.mlp.gate_proj\": \"colwise\", "
                                   "\"model.layers.*.mlp.up_proj\": \"colwise\", "
                                   "\"model.layers.*.mlp.down_proj\": \"rowwise\"}";
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        Imported r = hf_then(unknown[i], dense_llama, wordless);
        REFUSES(r, arena_printf(arena, "--hf-version %s: what styles", unknown[i]));
        assert_null(strstr(r.said, "E0203"));
    }
    Imported none = hf_then("4.50", dense_llama, NULL),
             old = hf_then("5.19.4", dense_llama, wordless),
             now = hf_then("5.23", dense_llama, wordless),
             odd = hf_then("5.0", dense_llama, "{\"model.norm\": \"sequence_parallel\"}");
    REFUSES(none, "which plan transformers 4.50 ships for it is not recorded", "--tp-plan");
    REFUSES(now, "'layers.*.mlp.up_proj' matches nothing, and it raises");
    REFUSES(odd, "what sequence_parallel did in these versions is not recorded");
    HOLDS(old, "# styles as transformers 5.19.4 had them",
          "  model.layers.*.mlp.down_proj: rowwise");
    assert_non_null(strstr(old.said, "matches nothing, and cuts nothing"));
    equivalent(&old);
}
/* What the first generation did: a norm on a slice whose result is gathered; shards without hooks
 * whose result a `gather` sums, forward, while backward nobody sums the input's gradient. And the
 * masked experts of the second. */
static void test_hf_generations(void **state) {
    (void)state;
    static const char *const closed =
        "{\"model.layers.*.input_layernorm\": \"sequence_parallel\", "
        "\"model.layers.*.self_attn.q_proj\": \"colwise\", "
        "\"model.layers.*.self_attn.k_proj\": \"colwise\", "
        "\"model.layers.*.self_attn.v_proj\": \"colwise\", "
        "\"model.layers.*.self_attn.o_proj\": \"rowwise\", \"lm_head\": \"colwise_rep\"%s}";
    static const char local[] = ", \"model.layers.*.mlp.gate_proj\": \"local_colwise\", "
                                "\"model.layers.*.mlp.up_proj\": \"local_colwise\", "
                                "\"model.layers.*.mlp.down_proj\": \"local_rowwise\", "
                                "\"model.layers.*.mlp\": \"gather\"";
    Imported whole = hf_then("4.55", dense_llama, arena_printf(arena, closed, "")),
             open = hf_then("4.55", dense_llama, arena_printf(arena, closed, local)),
             masked = hf_then("5.3", mixtral,
                              "{\"model.layers.*.mlp.gate\": \"ep_router\", "
                              "\"model.layers.*.mlp.experts\": \"moe_tp_experts\", "
                              "\"model.layers.*.mlp.experts.gate_up_proj\": \"grouped_gemm\", "
                              "\"model.layers.*.mlp.experts.down_proj\": \"grouped_gemm\"}");
    HOLDS(whole, "  model.layers.*.input_layernorm: {style: sequence_parallel, input: replicate, "
                 "desired_input: shard(1), output: replicate}");
    equivalent(&whole);
    equivalent(&masked);
    PlanRun run = run_plan(&open, true);
    assert_true(run_is(&run, "different"));
    assert_string_equal(run.t->first_wrong, "grad.layers.0.post_attn_norm");
    for (int i = 0; i < run.t->n_checks; i++) /* inference is right */
        assert_true(!strncmp(run.t->checks[i].value, "grad.", 5) ||
                    run.t->checks[i].verdict[0] != 'F');
}
/* A wrong value's line is shown of the file that it stands in, not of the plan that was made of it.
 */
static void test_command_shows_the_files_line(void **state) {
    (void)state;
    const char *out, *err,
        *toml = write_file("train.toml", DS "tensor_parallel_degree = 2\n"
                                            "expert_parallel_degree = 8\n"
                                            "[training]\nlocal_batch_size = 2\n");
    assert_int_equal(COMMAND("shardproof", "check", toml), 1);
    assert_non_null(strstr(out, "train.toml:6  expert_parallel_degree = 8\n"));
}
/* A comma or a key too many: whose file it is can be seen, and its reader says what is wrong. */
static void test_broken_json(void **state) {
    (void)state;
    static const struct {
        const char *text, *framework, *said;
    } rows[] = {
        {"{\"model_type\": \"llama\", \"a\": 1,\n \"a\": 2}", "hf",
         ":2:2: error: this is not JSON"},
        {"{\"model_type\": \"llama\",,}", "hf", ":1:24: error: this is not JSON"},
        {"{\"a.b\": \"ColwiseParallel()\",\n \"a.b\": \"RowwiseParallel()\"}", "torch",
         ":2:2: error: 'a.b' occurs twice"},
        {"{\"w\": [null, \"tp\"],\n \"w\": [null]}", "jax", ":2:2: error: this is not JSON"},
        {"{\"model\": \"llama3-8b\", \"mesh\": {\"tp\": 2},,}", NULL, "error: not YAML"},
        {"{\"a\": {\"b\": 1},,}", NULL, "error: not YAML"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *out, *err, *is = import_recognise("x.json", rows[i].text, strlen(rows[i].text));
        assert_true(is == rows[i].framework || (is && !strcmp(is, rows[i].framework)));
        assert_int_equal(COMMAND("shardproof", "check", write_file("x.json", rows[i].text)), 3);
        if (!strstr(err, rows[i].said)) fail_msg("%s\n%s", rows[i].text, err);
    }
    const char *out, *err,
        *config = write_file("gemma.json", "{\"model_type\": \"gemma3\", "
                                           "\"text_config\": {\"model_type\": \"gemma3_text\"}}"),
        *plan = write_file("inside.yaml", "model: {hf_config: gemma.json}\nmesh: {tp: 2}\n");
    assert_non_null(config);
    assert_int_equal(COMMAND("shardproof", "check", plan), 3);
    assert_non_null(strstr(err, "write the object `text_config` to a file of its own: model_type "
                                "'gemma3_text' runs"));
}
/* As they lie on the hub: weights stored in four bits; a head of latent attention, whose width is
 * not the hidden size by the heads; a key that nobody knows, with a fix that is obeyed. */
static void test_files_of_the_hub(void **state) {
    (void)state;
    static const char stored
        [] = "{\"model_type\": \"gpt_oss\", \"hidden_size\": 2880, \"intermediate_size\": 2880, "
             "\"num_hidden_layers\": 24, \"num_attention_heads\": 64, \"num_key_value_heads\": 8, "
             "\"head_dim\": 64, \"vocab_size\": 201088, \"num_local_experts\": 32,\n"
             "\"quantization_config\": {\"quant_method\": \"mxfp4\"}, \"attention_bias\": true}",
  latent[] =
        "{\"model_type\": \"glm4_moe_lite\", \"hidden_size\": 2048, \"intermediate_size\": 10240, "
        "\"num_hidden_layers\": 47, \"num_attention_heads\": 20, \"num_key_value_heads\": 20, "
        "\"vocab_size\": 154880, \"q_lora_rank\": 768, \"kv_lora_rank\": 512, "
        "\"qk_nope_head_dim\": 192, \"qk_rope_head_dim\": 64, \"v_head_dim\": 256}",
  unknown[] = "{\"model_type\": \"llama\", \"hidden_size\": 64, "
              "\"intermediate_size\": 96, \"num_hidden_layers\": 1, "
              "\"num_attention_heads\": 4, \"vocab_size\": 96, \"new\": 3}";
    const char *out, *err, *file = write_file("config.json", stored);
    assert_int_equal(COMMAND("shardproof", "import", "hf", "--config", file, "--tp", "4"), 0);
    assert_int_equal(COMMAND("shardproof", "check", file, "--tp", "4", "--static", "-v"), 0);
    assert_non_null(strstr(err, "config.json:2:1: note: config key 'quantization_config'"));
    file = write_file("config.json", latent);
    assert_int_equal(COMMAND("shardproof", "import", "hf", "--config", file, "--tp", "4"), 0);
    assert_non_null(strstr(out, "shrink: 8"));
    file = write_file("config.json", unknown);
    assert_int_equal(COMMAND("shardproof", "check", file, "--tp", "2"), 3);
    assert_non_null(strstr(err, "take it out of the config"));
    assert_non_null(strstr(err, "--set 'model.ignore_config=[new]'"));
    assert_int_equal(COMMAND("shardproof", "check", file, "--tp", "2", "--static", "--set",
                             "model.ignore_config=[new]"),
                     0);
}
static void test_command(void **state) {
    (void)state;
    const char *out, *err,
        *py = write_file("plan.py", titan_loop), *to = temp_path(arena, "plan.yaml"),
        *wrong = write_file("wrong.py", "{'layers.*.atention': ColwiseParallel()}");
    assert_int_equal(COMMAND("shardproof", "import", "torch", py, "--model", "llama3-8b", "-o", to),
                     0);
    assert_string_equal(err, "");
    assert_int_equal(COMMAND("shardproof", "check", to), 0);
    /* the same without a plan between: also what shows */
    assert_int_equal(COMMAND("shardproof", "check", py, "--model", "llama3-8b"), 0);
    assert_non_null(strstr(out, "equivalent"));
    assert_int_equal(
        COMMAND("shardproof", "params", py, "--model", "llama3-8b", "--full", "--format", "csv"),
        0);
    assert_non_null(strstr(out, "4096"));
    /* a config is found from here, wherever the file and the plan lie */
    assert_int_equal(
        COMMAND("shardproof", "import", "torch", py, "--config", "examples/import/config.json"), 0);
    assert_non_null(strstr(out, "hf_config: examples/import/config.json"));
    assert_int_equal(COMMAND("shardproof", "import", "torch", py, "--config",
                             "examples/import/config.json", "-o", to),
                     0);
    /* Qwen3's norms of q and k stand in no line: PyTorch sums their gradients over no heads */
    assert_int_equal(COMMAND("shardproof", "check", to, "--static"), 1);
    assert_non_null(strstr(err, "grad.param.layers.0.attention.q_norm.weight"));
    /* what is left out of a plan that holds is not passed over in silence */
    const char *float8 =
        write_file("float8.toml", "[model]\nconverters = \"float8\"\n[parallelism]\n"
                                  "data_parallel_shard_degree = 2\n");
    assert_int_equal(COMMAND("shardproof", "check", float8, "--static"), 0);
    assert_non_null(strstr(err, "float8.toml:2:1: warning: converters"));
    /* an existing plan stays when the import fails */
    assert_int_equal(COMMAND("shardproof", "import", "torch", wrong, "--model", "llama3-8b",
                             "--mesh", "tp=2", "-o", to),
                     3);
    assert_non_null(strstr(err, "wrong.py:1:2: error: "));
    assert_non_null(strstr(err, "[E0205]"));
    assert_int_equal(access(to, R_OK), 0);
    assert_int_equal(COMMAND("shardproof", "params", to), 0);
    /* no input is written over */
    assert_int_equal(COMMAND("shardproof", "import", "torch", py, "--config", to, "-o", to), 2);
    assert_int_equal(COMMAND("shardproof", "import", "torch", to, "--model", "llama3-8b", "-o", to),
                     2);
    assert_int_equal(COMMAND("shardproof", "params", to), 0);
    assert_int_equal(COMMAND("shardproof", "check", py, "--update-expect"), 2);
    assert_non_null(strstr(err, "--update-expect writes into plans"));
    assert_int_equal(COMMAND("shardproof", "import", "tensorflow", py), 2);
    assert_int_equal(COMMAND("shardproof", "import", "torch", py, "--mesh", "tp"), 2);
    assert_int_equal(COMMAND("shardproof", "import", "torch"), 2);
    assert_int_equal(COMMAND("shardproof", "import", "torch", "no-such-file.py"), 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_torch_code, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_entries, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_boundaries, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_styles, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_embedding, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_refusals, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_match, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_keywords, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_decided, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_given, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_given_old, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_batch, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_harmless_names, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_given_wrong, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_experts, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_experts_sharded, setup, teardown),
    cmocka_unit_test_setup_teardown(test_places, setup, teardown),
    cmocka_unit_test_setup_teardown(test_places_of_code, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_verdicts, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_autograd, setup, teardown),
    cmocka_unit_test_setup_teardown(test_jax_compiler, setup, teardown),
    cmocka_unit_test_setup_teardown(test_jax_indivisible, setup, teardown),
    cmocka_unit_test_setup_teardown(test_jax_indivisible_tokens, setup, teardown),
    cmocka_unit_test_setup_teardown(test_jax_parts_of_heads, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torch_records, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torchtitan, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torchtitan_experts, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torchtitan_flavors, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torchtitan_pipelines, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torchtitan_refusals, setup, teardown),
    cmocka_unit_test_setup_teardown(test_torchtitan_degrees, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_numbers, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_uneven, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_experts, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_pipelines, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_scripts, setup, teardown),
    cmocka_unit_test_setup_teardown(test_words_of_helps, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_outside, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_conf, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_gpt, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_positions, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_latent, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_latent_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_layers_of_experts, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_biased_experts, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_nemotron, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_of_models, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_fsdp, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_undecided, setup, teardown),
    cmocka_unit_test_setup_teardown(test_megatron_refusals, setup, teardown),
    cmocka_unit_test_setup_teardown(test_jax, setup, teardown),
    cmocka_unit_test_setup_teardown(test_jax_heads, setup, teardown),
    cmocka_unit_test_setup_teardown(test_jax_heads_refusals, setup, teardown),
    cmocka_unit_test_setup_teardown(test_jax_at_rest, setup, teardown),
    cmocka_unit_test_setup_teardown(test_jax_at_rest_refusals, setup, teardown),
    cmocka_unit_test_setup_teardown(test_jax_refusals, setup, teardown),
    cmocka_unit_test_setup_teardown(test_hf_runs, setup, teardown),
    cmocka_unit_test_setup_teardown(test_hf, setup, teardown),
    cmocka_unit_test_setup_teardown(test_hf_kv_heads, setup, teardown),
    cmocka_unit_test_setup_teardown(test_hf_experts, setup, teardown),
    cmocka_unit_test_setup_teardown(test_hf_styles_then, setup, teardown),
    cmocka_unit_test_setup_teardown(test_hf_versions, setup, teardown),
    cmocka_unit_test_setup_teardown(test_hf_generations, setup, teardown),
    cmocka_unit_test_setup_teardown(test_broken_json, setup, teardown),
    cmocka_unit_test_setup_teardown(test_files_of_the_hub, setup, teardown),
    cmocka_unit_test_setup_teardown(test_command, setup, teardown),
    cmocka_unit_test_setup_teardown(test_command_shows_the_files_line, setup, teardown),
};
int main(void) { return cmocka_run_group_tests(tests, NULL, NULL); }
