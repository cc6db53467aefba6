/* The gate of CI: which plans a line of `check` takes, what makes it fail, and that it says why.
 * Patterns that no shell has replaced, --fail-on, keys that change nothing, words that were meant
 * otherwise. */
#include "support/child.h"
#include "support/sandbox.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static Ended check(const char *a, const char *b, const char *c) {
    return child_run(arena, &(Child){.words = WORDS("check", a, b, c)});
}
static void has(const Ended *e, int code, const char *out, const char *err) {
    assert_true(e->out && e->err);
    if (e->code != code || !strstr(e->out, out) || !strstr(e->err, err))
        fail_msg("exit %d, not %d; wanted '%s' and '%s' in\n%s\n%s", e->code, code, out, err,
                 e->out, e->err);
}

/* ---- patterns ---- */
static void test_patterns(void **state) {
    (void)state;
    put("a.yaml", SMALL_PLAN);
    put("b.yaml", SMALL_PLAN "expect: {equivalent: false}\n");
    put("note.txt", "no plan");
    Ended e = check(in("*.yaml"), NULL, NULL);
    has(&e, 1, "1 of 2 plans failed", "");
    e = check(in("[a].yaml"), in("{a,c*}.yaml"), NULL);
    has(&e, 0, "2 plans hold", "");
    /* a name that is not there, as a shell hands it on */
    e = check(in("{a,c}.yaml"), NULL, NULL);
    has(&e, 3, "1 of 2 plans failed", "c.yaml' [E0101]");
    e = check(in("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"), NULL,
              NULL);
    has(&e, 2, "", "stand for more than 10000 names");
    e = check(in("x*.yaml"), NULL, NULL);
    has(&e, 3, "", "no file matches");
    assert_int_equal(mkdir(in("sub"), 0777), 0); /* a folder that matches is searched */
    put("sub/c.yaml", SMALL_PLAN);
    e = check(in("su?"), in("a.yaml"), NULL);
    has(&e, 0, "2 plans hold", "");
    assert_non_null(strstr(e.out, "sub/c.yaml"));
    put("[a].yaml", SMALL_PLAN "expect: {equivalent: false}\n"); /* a file of that very name wins */
    e = check(in("[a].yaml"), NULL, NULL);
    has(&e, 1, "[a].yaml", "");
    static const char *const files[] = {"a.yaml", "b.yaml", "note.txt", "sub/c.yaml", "[a].yaml"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(in(files[i]));
    rmdir(in("sub"));
}

/* ** is no star of one level: plans that it left out would be taken for held. */
static void test_deep_patterns(void **state) {
    (void)state;
    static const char *const folders[] = {"sub", "sub/[x]", "sub/[x]/.hidden"},
                             *const files[] = {"a.yaml", "b.yaml", "sub/c.yaml", "sub/[x]/d.yaml",
                                               "sub/[x]/.hidden/e.yaml"};
    static const struct {
        const char *pattern;
        int plans;
    } row[] = {{"**/*.yaml", 4},
               {"**", 4},
               {"{sub,no}/**/[acd].yaml", 2},
               {"**/**/[a-d].yaml", 4},
               {"**/d.yaml", 1},
               {"s*/**/*.yaml", 2},
               {"sub/**", 2},
               {"**/{sub,d.yaml}", 2},
               {"{sub/**/*.yaml,b.yaml}", 3},
               {"{a,{sub,x}/**/{c,d}}.yaml", 3},
               {"{**/d,[ab]}.yaml", 3},
               {"{}{a}.yaml", 0},
               {"{,[x]}a.yaml", 1},
               {"sub/\\[x\\]/{d,x*}.yaml", 1}};
    for (int i = 0; i < 3; i++) assert_int_equal(mkdir(in(folders[i]), 0777), 0);
    for (int i = 0; i < 5; i++) put(files[i], SMALL_PLAN);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Ended e = check(in(row[i].pattern), "--format", "csv");
        int n = 0;
        for (const char *s = e.out; (s = strstr(s, ".yaml,ok")); s++) n++;
        if (n != row[i].plans || (n && e.code)) fail_msg("%s: %s%s", row[i].pattern, e.out, e.err);
    }
    Ended e = check(in("**/x.yaml"), NULL, NULL);
    has(&e, 3, "", "no file matches");
    e = check(in("sub/\\[x\\]/{d,e}.yaml"), NULL, NULL);
    has(&e, 3, "1 of 2 plans failed", "/sub/[x]/e.yaml' [E0101]");
    /* profiles and maps lie between plans: they are left out, and named */
    put("sub/h100.yaml", "name: h100\nlinks: {}\n");
    e = check(in("**/*.yaml"), NULL, NULL);
    has(&e, 0, "4 plans hold", "matches 1 file that is no plan: ");
    has(&e, 0, "", "/sub/h100.yaml [N0022]");
    e = check(in("{sub/**,.}/h100.yaml"), NULL, NULL);
    has(&e, 3, "", "matches 1 file that is no plan: ");
    e = check(in("sub/h100.yaml"), NULL, NULL);
    has(&e, 3, "", "E0201");
    unlink(in("sub/h100.yaml"));
    for (int i = 0; i < 5; i++) unlink(in(files[i]));
    for (int i = 2; i >= 0; i--) rmdir(in(folders[i]));
}
/* What is left out fails a gate of --fail-on note, in all forms that machines read. */
/* One without notes. */
#define NAMED_PLAN                                                                                 \
    "model: {kind: mlp, sizes: [4, 8, 4]}\nmesh: {tp: 2}\n"                                        \
    "plan: {net1: colwise, net2: rowwise}\n"
static void test_left_out(void **state) {
    (void)state;
    assert_int_equal(mkdir(in("gate"), 0777), 0);
    assert_int_equal(mkdir(in("gate/build"), 0777), 0);
    assert_int_equal(mkdir(in("beyond"), 0777), 0);
    assert_int_equal(symlink("../beyond", in("gate/away")), 0);
    put("gate/a.yaml", NAMED_PLAN);
    Ended e = check(in("gate"), NULL, NULL);
    has(&e, 0, "ok", "/gate/away, ");
    has(&e, 0, "", "/gate/build [N0022]");
    has(&e, 0, "ok", "below '");
    e = check(in("gate/**/*.yaml"), NULL, NULL);
    has(&e, 0, "ok", "/gate/away, ");
    e = check(in("gate"), "--fail-on", "note");
    has(&e, 1, "/gate/away left out; --fail-on note: 1 is above", "[N0022]");
    e = check(in("gate"), "--fail-on", "warning");
    has(&e, 0, "ok", "[N0022]");
    static const struct {
        const char *format, *says, *fails;
    } row[] = {
        {"json", "\"diagnostics\":[{\"code\":\"N0022\",\"severity\":\"note\"", ""},
        {"junit", "[N0022]", "<failure type=\"N0022\""},
        {"sarif", "\"ruleId\":\"N0022\",\"level\":\"note\"",
         "\"ruleId\":\"N0022\",\"level\":\"error\""},
        {"github", "::notice file=", ",title=N0022::"},
        {"gitlab", "\"check_name\":\"N0022\"", "\"severity\":\"major\""},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        e = child_run(arena,
                      &(Child){.words = WORDS("check", in("gate"), "--format", row[i].format)});
        has(&e, 0, row[i].says, "");
        e = child_run(arena, &(Child){.words = WORDS("check", in("gate"), "--format", row[i].format,
                                                     "--fail-on", "note")});
        has(&e, 1, row[i].fails, "");
    }
    /* a link that leads nowhere is no slip of its own name */
    assert_int_equal(symlink("nothing.yaml", in("gate/b.yaml")), 0);
    e = check(in("gate/b.yaml"), NULL, NULL);
    has(&e, 3, "E0101", "it is a link to '");
    assert_null(strstr(e.err, "did you mean"));
    assert_null(strstr(e.err, "= help: "
                              "/"));
    static const char *const files[] = {"gate/a.yaml", "gate/b.yaml", "gate/away"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(in(files[i]));
    static const char *const folders[] = {"gate/build", "gate", "beyond"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) rmdir(in(folders[i]));
}
/* In a folder a plan is known by its `mesh`; one that spells it wrong is told, not left out. */
static void test_plans_of_a_folder(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int exit;
        const char *says;
    } row[] = {
        {SMALL_MODEL "meshh: {tp: 2}\nplan: {net1: colwise, net2: rowwise}\n", 3, "E0201"},
        {SMALL_MODEL "\"mesh\": {tp: 2}\nplan: {net1: colwise, net2: rowwise}\n", 0,
         "2 plans hold"},
        {"{\"model\": {\"kind\": \"mlp\", \"sizes\": [4, 4, 4]}, \"mesh\": {\"tp\": 2},\n"
         " \"data\": {\"rows\": 2}}\n",
         0, "2 plans hold"},
        {SMALL_MODEL "mehs: {tp: 2}\nrecipe: megatron\n", 3, "E0201"},
        {"Modle: llama3-8b\nMesh: {tp: 2}\n", 3, "E0201"},
        {"  model: {kind: mlp, sizes: [4, 4, 4]}\n  data: {rows: 2}\n  mesh : {tp: 2}\n", 0,
         "2 plans hold"},
        {"\xEF\xBB\xBFmesh: {tp: 2}\n" SMALL_MODEL, 0, "2 plans hold"},
        {"# a plan\n--- # in braces\n{model: {kind: mlp, sizes: [4, 4, 4]}, mesh: {tp: 2}}\n", 0,
         "2 plans hold"},
        {"job:\n  mesh: here\n", 0, "ok "},
        {"model: gpt\ndata: {path: x}\ntrainer: {max_steps: 3}\n", 0, "ok "}};
    assert_int_equal(mkdir(in("sub"), 0777), 0);
    put("sub/a.yaml", SMALL_PLAN);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        put("sub/b.yaml", row[i].text);
        Ended e = check(in("sub"), NULL, NULL);
        has(&e, row[i].exit, row[i].exit ? "" : row[i].says, row[i].exit ? row[i].says : "");
    }
    unlink(in("sub/a.yaml"));
    unlink(in("sub/b.yaml"));
    rmdir(in("sub"));
}

/* ---- what fails, and why ---- */
#define FEW(schedule)                                                                              \
    "model: {preset: llama3-8b, shrink: 64, layers: 6}\ndata: {batch: 2, sequence: 4}\n"           \
    "mesh: {pp: 3}\npass: backward\npipeline: {microbatches: 2, schedule: " schedule "}\n"
#define LLAMA "model: {preset: llama3-8b, layers: 1, shrink: 64}\ndata: {batch: 4, sequence: 8}\n"
static void test_fail_on(void **state) {
    (void)state;
    const char *p = put("p.yaml", "model: {kind: mlp, sizes: [6, 10, 3]}\ndata: {rows: 5}\n"
                                  "mesh: {tp: 2}\nplan: {net1: colwise}\n");
    Ended e = check(p, NULL, NULL);
    has(&e, 0, "notes, -v shows them", "");
    e = check(p, "--fail-on", "note");
    has(&e, 1, "; --fail-on note: 3 are above\n", "[N0001]");
    e = check(p, "--fail-on", "warning");
    has(&e, 0, "ok", "");
    p = put("p.yaml", SMALL_PLAN "faults: [{at: net2, do: drop}]\n"); /* numbers say it already */
    e = check(p, "--fail-on", "note");
    assert_int_equal(e.code, 1);
    assert_null(strstr(e.out, "--fail-on note: "));
    unlink(p);
}
/* A slip of the pen in --set makes an axis: the note stands at it and names the one that was meant.
 */
static void test_new_axis(void **state) {
    (void)state;
    const char *p = put("p.yaml", SMALL_PLAN);
    Ended e = child_run(
        arena, &(Child){.words = WORDS("check", p, "--set", "mesh.tpp=8", "--fail-on", "note")});
    has(&e, 1, "FAIL", "--set:1:");
    has(&e, 1, "", "did you mean 'tp'?");
    e = child_run(
        arena, &(Child){.words = WORDS("check", p, "--set", "mesh.other=2", "--fail-on", "note")});
    has(&e, 1, "", "--set has made a new axis of the mesh");
    /* axes of another framework's names: one of data, and two that are replicas and shards */
    e = child_run(
        arena, &(Child){.words = WORDS("check", p, "--set", "mesh.hsdp=2", "--fail-on", "note")});
    has(&e, 1, "", "'hsdp' is `dp` here: `mesh: {tp: 2, dp: 2}`");
    e = child_run(arena, &(Child){.words = WORDS("check", p, "--set", "mesh.replicate=2", "--set",
                                                 "mesh.shard=2", "--fail-on", "note")});
    has(&e, 1, "", "`mesh: {tp: 2, dp_replicate: 2, dp_shard: 2}`");
    static const char *const only[] = {"hsdp", "fsdp", "shard"};
    for (int i = 0; i < 3; i++) { /* N0023: lines of tensor parallelism on an axis of data */
        p = put("p.yaml", arena_printf(arena,
                                       "name: x\n" SMALL_MODEL "mesh: {%s: 2}\n"
                                       "plan: {net1: colwise, net2: rowwise}\n",
                                       only[i]));
        e = check(p, "--fail-on", "note");
        has(&e, 1, "", arena_printf(arena, "act on '%s', the only one of the mesh", only[i]));
    }
    p = put("p.yaml", "name: x\n" SMALL_MODEL "mesh:\n  tp: 2\n  more: 3\n"
                      "plan: {net1: colwise, net2: rowwise}\n");
    e = check(p, "--fail-on", "note");
    has(&e, 1, "", "p.yaml:5:3: note: axis 'more' of size 3 cuts nothing");
    /* a plan for training that is looked at by another pass has no slip in it */
    p = put("p.yaml", LLAMA "mesh: {dp: 2}\npass: train\noptimizer: {name: sgd, lr: 0.1}\n"
                            "data_parallel: ddp\n");
    e = child_run(arena, &(Child){.words = WORDS("check", p, "--set", "pass=backward", "-v")});
    assert_int_equal(e.code, 0);
    assert_null(strstr(e.err, "N0018"));
    unlink(p);
}

/* ---- words ---- */
static const struct {
    const char *text; /* behind LLAMA, or a plan of its own */
    int exit;
    const char *code, *says, *help;
} rows[] = {
    {"data: {documents: \"4,4\"}\nmesh: {tp: 2}\n", 3, "E0301",
     "'documents' must be a list of whole numbers, not the text '4,4'", "write the list [4, 4]"},
    {"data: {documents: 3 5}\nmesh: {tp: 2}\n", 3, "E0301", "a list of whole numbers, not '3 5'",
     "write the list [3, 5]"},
    {"model: {kind: mlp, sizes: [[6, 10, 3]]}\nmesh: {tp: 2}\n", 3, "E0301",
     "'sizes' must be one list of whole numbers, not a list", "none within it"},
    {"data: {documents: \"8\"}\nmesh: {tp: 2}\n", 3, "E0301", "a whole number, not the text '8'",
     "remove the quotes"},
    {"data: {documents: \"[3, 5]\"}\nmesh: {tp: 2}\n", 3, "E0301",
     "a list of whole numbers, not the text '[3, 5]'", "write the list [3, 5]"},
    {"model: {kind: mlp, sizes: \"6, 10, 3\"}\nmesh: {tp: 2}\n", 3, "E0301",
     "'sizes' must be a list of whole numbers", "write the list [6, 10, 3]"},
    {LLAMA "mesh: {dp_shard: 2, dp_replicate: 2}\npass: backward\ndata_parallel: hsdp\n", 3,
     "E0208", "hsdp needs", "{mode: hsdp, replicate: dp_replicate, shard: dp_shard}"},
    {LLAMA "mesh: {dp: 2}\npass: backward\ndata_parallel: hsdp\n", 3, "E0208", "hsdp needs",
     "`mesh: {dp_replicate: 2, dp_shard: 2}`"},
    {LLAMA "mesh: {tp: 2}\nexpect: {collectives: {all_reduce(tp): 4}}\n", 3, "E0201",
     "'all_reduce(tp)' in 'collectives'", "by pass: `forward: {all_reduce(tp): 2}`"},
    {LLAMA "mesh: {dp: -1, tp: 2}\n", 3, "E0302", "'dp': -1 is negative", "say how many"},
    {LLAMA "mesh: {shape: [2, 4]}\n", 3, "E0301", "'shape' must be",
     "outermost first: `mesh: {dp: 2, tp: 4}`"},
    {LLAMA "mesh: {tp: 2}\nnames: huggingface\n", 3, "E0206", "'huggingface'",
     "did you mean 'hf'?"},
    {LLAMA "mesh: {tp: 2}\nplan: {layers.*.mlp.gate_up_proj: colwise}\n", 3, "E0205",
     "'layers.*.mlp.gate_up_proj'", "'layers.*.feed_forward.w1', 'layers.*.feed_forward.w3'"},
    {LLAMA "mesh: {tp: 2}\nplan: {layers.*.attention.wq: QKVParallelLinear}\n", 3, "E0203",
     "QKVParallelLinear", "what does that here is `colwise`"},
    /* short and foreign words for styles and placements */
    {LLAMA "mesh: {tp: 2}\nplan: {layers.*.attention.wq: col}\n", 3, "E0203", "'col'",
     "did you mean 'colwise'?"},
    {LLAMA "mesh: {tp: 2}\nplan: {layers.*.attention.wq: shard(0)}\n", 3, "E0203", "'shard(0)'",
     "a placement; the style whose weight lies so is `colwise`"},
    {LLAMA "mesh: {tp: 2}\nplan: {layers.*.attention.wo: shard(-1)}\n", 3, "E0203", "'shard(-1)'",
     "is `rowwise`"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.wq: P(None, 'tp')\n", 3, "E0203",
     "unknown style 'P(None, 'tp')'", "`shardproof import jax FILE`"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.wo: {style: rowwise, output: all_reduce}\n",
     3, "E0206", "unknown placement 'all_reduce'", "the collective follows: `replicate`"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.wo: {style: rowwise, out: replicate}\n", 3,
     "E0201", "unknown key 'out'", "did you mean 'output'?"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.wo: {shard: 0}\n", 3, "E0201",
     "unknown key 'shard'", "known here: style axis"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.wo: {style: rowwise, output: -1}\n", 3,
     "E0206", "unknown placement '-1'", "did you mean 'shard(-1)'?"},
    {LLAMA "mesh: {dp: 2}\npass: train\noptimizer: {type: adamw, lr: 0.1}\n", 3, "E0201",
     "'type' in 'optimizer'", "did you mean 'name'?"},
    {LLAMA "mesh: {cp: 2}\ncontext_parallel: {type: ring}\n", 3, "E0201", "'type'",
     "did you mean 'mode'?"},
    {"model: {name: llama3}\nmesh: {tp: 2}\n", 3, "E0201", "'name' in 'model'",
     "did you mean 'preset'?"},
    {LLAMA "parallelism: {data_parallel_shard_degree: 2, tensor_parallel_degree: 4}\n", 3, "E0201",
     "'parallelism'", "sizes of axes are the mesh: `mesh: {dp_shard: 2, tp: 4}`"},
    {LLAMA "mesh: {data_parallel_size: 2, tp_size: 2}\nrecipe: torchtitan-llama3\n", 3, "E0204",
     "act on no axis", "'tp_size' is `tp` here: `mesh: {dp: 2, tp: 2}`"},
    {"model: {config: {model_type: lama, hidden_size: 64}}\nmesh: {tp: 2}\n", 3, "E0207",
     "'model_type' says 'lama'", "did you mean 'llama'? llama, mistral"},
    /* keys that stand elsewhere, and those of other frameworks */
    {"model: llama3-8b\nmesh: {tp: 2}\ndata: {pass: backward}\n", 3, "E0201",
     "unknown key 'pass' in 'data'",
     "it stands with the plan's own keys, not indented: `pass: ...`"},
    {"model: llama3-8b\nmesh: {tp: 2}\ndata: {batch: 2, steps: 3}\n", 3, "E0201",
     "'steps' in 'data'", "it belongs to another key: `optimizer: {steps: ...}`"},
    {LLAMA "mesh: {tp: 2}\noptimizer: {kind: adam}\n", 3, "E0201", "'kind' in 'optimizer'",
     "known here: name lr"},
    {LLAMA "tensor_model_parallel_size: 2\ndata-parallel-size: 4\ncontext_parallel_size: 1\n", 3,
     "E0201", "unknown key 'tensor_model_parallel_size'",
     "an axis of the mesh: `mesh: {dp: 4, tp: 2}`"},
    {LLAMA "mesh: {dp: 2}\npipeline_parallel_degree: 2\n", 3, "E0201", "pipeline_parallel_degree",
     "`mesh: {dp: 2, pp: 2}`, and `pipeline: {schedule: 1f1b}`"},
    {LLAMA "mesh: {tp: 2}\ncontext_parallel_size: 1\n", 3, "E0201", "context_parallel_size",
     "leave it out: one rank is no axis"},
    {LLAMA "mesh: {dp: 2}\nep_size: 2\n", 3, "E0201", "ep_size", "`groups: {ep: dp}`"},
    {LLAMA "mesh: {dp: 2}\ngradient_accumulation_steps: 2\n", 3, "E0201",
     "gradient_accumulation_steps", "write `data: {microbatches: 2}`"},
    /* values that no plan can have are not what is told to write */
    {LLAMA "mesh: {dp: 2}\ngradient_accumulation_steps: auto\n", 3, "E0201",
     "gradient_accumulation_steps", "write `data: {microbatches: 4}`"},
    {LLAMA "mesh: {dp: 2}\nnum_micro_batches: -5\n", 3, "E0201", "num_micro_batches",
     "write `data: {microbatches: 4}`"},
    {LLAMA "tensor_parallel_size: 99999999999999999999999\n", 3, "E0201", "tensor_parallel_size",
     "`mesh: {tp: 2}`"},
    {LLAMA "mesh: {dp: 2}\ntensor_parallel_size: auto\n", 3, "E0201", "tensor_parallel_size",
     "an axis of the mesh: `mesh: {dp: 2, tp: 2}`"},
    {LLAMA "parallelism: {tensor_parallel_degree: -1}\n", 3, "E0201", "'parallelism'",
     "sizes of axes are the mesh: `mesh: {tp: 2}`"},
    {LLAMA "mesh: {dp: 2}\nzero_optimization: {stage: 2}\n", 3, "E0201", "zero_optimization",
     "write `data_parallel: zero1`, `zero2`"},
    {LLAMA "mesh: {dp: 2}\nbf16: {enabled: true}\n", 3, "E0201", "bf16",
     "write `data: {dtype: bf16}`"},
    {LLAMA "mesh: {tp: 2}\nsequence_parallel: true\n", 3, "E0201", "sequence_parallel",
     "a style of the lines of norms"},
    {"tensor_model_parallel_size: 2\nnum_layers: 4\n", 3, "E0201", "none of its 2 keys",
     "`model` and `mesh`, here `mesh: {tp: 2}`; what a framework"},
    {LLAMA "mesh: {dp: 2}\npass: backward\ndata_parallel: {mode: fsdp, grad_sync: scatter}\n", 0,
     "N0018", "`grad_sync: scatter` changes nothing: the batch is one micro-batch",
     "data.microbatches"},
    {LLAMA "mesh: {dp: 2}\ndata_parallel: {mode: fsdp, grad_sync: microbatch}\n", 0, "N0018",
     "`pass: forward` has no gradients", "pass: backward"},
    {"model: {preset: llama3-8b, layers: 1, shrink: 64}\n"
     "data: {batch: 4, sequence: 8, microbatches: 2}\n"
     "mesh: {dp: 2}\npass: backward\ndata_parallel: {mode: ddp, grad_sync: scatter}\n",
     0, "N0018", "mode ddp reduce-scatters no gradient", "leave `grad_sync` out"},
    /* PyTorch's Schedule1F1B refuses what the rule of 1f1b can do, GPipe does not */
    {FEW("1f1b"), 0, "N0021", "PyTorch refuses 1f1b of 2 micro-batches on 3 ranks",
     "at least 3 micro-batches"},
    /* keys of another kind of model */
    {"mesh: {tp: 2}\nmodel: {preset: llama3-8b, heads: 4}\n", 3, "E0215",
     "`heads` is a key of `kind: attention`, and the model is a preset or a config",
     "keys of a config stand in `config`"},
    {"mesh: {tp: 2}\nmodel: {kind: mlp, sizes: [6, 10, 3], kv_heads: 4}\n", 3, "E0215",
     "`kv_heads` is a key of `kind: attention`, and the model is `kind: mlp`", "leave it out"},
    {"mesh: {tp: 2}\nmodel: {kind: mlp, sizes: [6, 10, 3], shrink: 2}\n", 0, "N0018",
     "p.yaml:2:39: note: `shrink` changes nothing: it is a key of a preset or a config",
     "leave it"},
    {"data: {batch: 2, sequence: 8, rows: 5}\nmesh: {tp: 2}\n", 0, "N0018",
     "`rows` changes nothing: it is a key of `kind: mlp`", "leave it out"},
    {LLAMA "mesh: {pp: 1}\npipeline: {schedule: 1f1b, stage_to_rank: [0]}\n", 3, "E0215",
     "`stage_to_rank` is of a `file`", "leave `stage_to_rank` out"},
    /* a number is told as it was written, however large it is */
    {LLAMA "mesh: {pp: 1}\npipeline: {schedule: 1f1b, stages: [[0, 1099511627776]]}\n", 3, "E0309",
     "'stages': 1099511627776 is too large", "within the range"},
    {LLAMA "mesh: {pp: 1, tp: 2}\npipeline: {schedule: 1f1b, p2p_buffers: 1099511627776}\n", 3,
     "E0309", "'p2p_buffers': 1099511627776 is too large; at most 1048576", "leave it out"},
    {LLAMA "mesh: {pp: 1, tp: 2}\npipeline: {schedule: 1f1b, p2p_buffers: 1048576}\n", 0, "N0003",
     "", ""},
    {"mesh: {dp: 2}\nmodel:\n  preset: deepseek-v3\n  shrink: 64\n  config:\n"
     "    n_group: 1099511627776\n",
     3, "E0307", "256 experts cannot stand in 1099511627776 groups", "n_group divides the experts"},
    {"mesh: {dp: 2}\nmodel:\n  preset: deepseek-v3\n  shrink: 64\n  config:\n"
     "    topk_group: 1099511627776\n",
     3, "E0307", "1099511627776 groups of 8", ""},
    {"mesh: {dp: 2}\nmodel:\n  preset: mixtral-8x7b\n  shrink: 64\n  config:\n"
     "    num_local_experts: 4\n    num_experts_per_tok: 9\n",
     3, "E0307", "p.yaml:7:5: error: 9 experts per token of 4", "at most"},
    {"mesh: {dp: 2}\nmodel:\n  preset: llama3-8b\n  config:\n"
     "    rope_scaling: {rope_type: llama3,\n      factor: none}\n",
     3, "E0301", "p.yaml:6:7: error: config key 'factor'", "docs/plan.md"},
    /* an optimizer that makes no step, an axis of stages without stages */
    {LLAMA "mesh: {dp: 2}\npass: backward\noptimizer: {name: adamw, lr: 0.1}\n", 0, "N0018",
     "p.yaml:5:1: note: `optimizer` changes nothing: only `pass: train` makes a step, and this is "
     "`pass: backward`",
     "write `pass: train`, or leave it out"},
    {LLAMA "mesh: {dp: 2}\noptimizer: sgd\n", 0, "N0018", "this is `pass: forward`", "pass: train"},
    {LLAMA "mesh: {dp: 1, pp: 2}\n", 0, "N0003", "axis 'pp' of size 2 cuts nothing",
     "asked for by a block of their own: `pipeline: {schedule: 1f1b}`"},
#define MIXTRAL "model: {preset: mixtral-8x7b, layers: 1, shrink: 64}\ndata: {sequence: 8}\n"
    {MIXTRAL "mesh: {dp: 2}\nmoe: {capacity: local}\n", 0, "N0018",
     "`capacity: local` changes nothing: every row is kept", "set `capacity_factor`"},
    {MIXTRAL "mesh: {dp: 2}\nmoe: {priority: score}\n", 0, "N0018",
     "`priority: score` changes nothing: every row is kept", "set `capacity_factor`"},
    {MIXTRAL "mesh: {dp: 2}\nmoe: {fsdp_dim: 1}\n", 0, "N0018",
     "`fsdp_dim: 1` changes nothing: no parameter is cut by fsdp", "mode: fsdp"},
    {"model: \u201Cllama3-8b\u201D\nmesh: {tp: 2}\n", 3, "E0202", "unknown preset",
     "typographic quotes are part of the text here"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  \u201Clayers.*.attention.wq\u201D: colwise\n", 3, "E0205",
     "matches no module", "typographic quotes"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.{wq,wk,wv}: colwise\n", 3, "E0205",
     "matches no module", "one of several letters is `w[123]`"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.\\d+.attention.w(q|k): colwise\n", 3, "E0205",
     "matches no module", "a pattern is no regular expression"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.w[qk: colwise\n", 3, "E0205",
     "matches no module", "a ] is missing"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.5.attention.w[qkv]: colwise\n", 3, "E0205",
     "matches no module", "in 'layers' there is only '0' (`names: torchtitan`)"},
    /* words of other tools */
    {"model: llama3-8b\ndata: {dtype: torch.float32}\nmesh: {tp: 2}\n", 3, "E0206",
     "unknown value 'torch.float32' for 'data.dtype'", "did you mean 'f32'?"},
    {LLAMA "mesh: {tp: 2}\nsave_gathered: yes\n", 3, "E0301",
     "'save_gathered' must be true or false, not 'yes'", "write true"},
    {LLAMA "mesh: {tp: 2}\ncontext_parallel: {axis: cp}\n", 3, "E0204",
     "unknown axis or group 'cp'", "an axis more: `mesh: {cp: 2, ...}`"},
    {LLAMA "mesh: {tp: 2}\noptimizer: adam\n", 3, "E0206", "unknown value 'adam' for 'optimizer'",
     "did you mean 'adamw'?"},
    {LLAMA "mesh: {tp: 2}\noptimizer: {name: adam}\n", 3, "E0206",
     "unknown value 'adam' for 'optimizer.name'", "did you mean 'adamw'?"},
    /* an expectation is told where it stands */
    {LLAMA "mesh: {dp: 1}\nexpect:\n  equivalent: false\n", 1, "E0505",
     "p.yaml:5:15: error: the plan is equivalent", ""},
    {LLAMA "mesh: {dp: 1}\nexpect:\n  diagnostics: [E0402]\n", 1, "E0505",
     "p.yaml:5:16: error: E0402 was expected", ""},
    /* the ranks of the key share weights: what they have of the sequence is the lines' business */
    {LLAMA
     "mesh: {tp: 2}\ncontext_parallel: {axis: tp}\nplan:\n"
     "  layers.*.attention.w[qkv]: {style: colwise, input: shard(1), desired_input: replicate}\n"
     "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
     "  layers.*.feed_forward.w[13]: {style: colwise, input: shard(1), desired_input: replicate}\n"
     "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n",
     0, "N0018", "`axis: tp` changes nothing: these ranks share the weights",
     "leave it out, or name an axis of its own"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.wq: ColwiseParallel()\n", 3, "E0203",
     "unknown style 'ColwiseParallel()'", "write `ColwiseParallel`, without brackets"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.wq: {style: ColwiseParalel()}\n", 3, "E0203",
     "unknown style 'ColwiseParalel()'", "write `ColwiseParallel`, without brackets"},
    {LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.wq: ColwiseParallel(input_layouts=None)\n",
     3, "E0203", "unknown style 'ColwiseParallel(input_layouts=None)'",
     "{style: ColwiseParallel, input: ..., output: ...}; a file with calls of PyTorch is read by "
     "`shardproof import torch FILE`"},
};
/* One mistake is one finding. */
static void test_one_finding(void **state) {
    (void)state;
    static const struct {
        const char *text, *says, *help;
    } one[] = {
        {"model: llama3-8b\nmesh:{tp: 2}\n", "p.yaml:2:1: error: unknown key 'mesh:{tp'",
         "put a blank behind the colon: mesh: {tp"},
        {"apiVersion: v1\nkind: Pod\nspec: {containers: []}\n",
         "p.yaml:1:1: error: this is no plan: none of its 3 keys is one of a plan's",
         "`shardproof import`"},
        {LLAMA "mesh: {tp: 2}\ngroups: {sp: tp, tp: TP}\n",
         "p.yaml:4:18: error: group 'tp' has the name of an axis",
         "leave it out, for the axis has"},
        {"name: x\ntrain_batch_size: 8\nzero_optimization: {stage: 3}\n",
         "p.yaml:1:1: error: this is no plan", "at least `model` and `mesh`"},
    };
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        Ended e = check(put("p.yaml", one[i].text), NULL, NULL);
        has(&e, 3, "", one[i].says);
        has(&e, 3, "", one[i].help);
        const char *first = strstr(e.err, "error:");
        assert_true(first && !strstr(first + 1, "error:"));
    }
    unlink(in("p.yaml"));
}
/* Lines in the names of another scheme are one finding; a pattern that is wrong in both is another.
 */
static void test_names(void **state) {
    (void)state;
#define OTHERS                                                                                     \
    "names: hf\nplan:\n  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n"
    Ended e = check(put("p.yaml", LLAMA "mesh: {tp: 2}\n" OTHERS), NULL, NULL);
    has(&e, 3, "", "p.yaml:4:8: error: 2 patterns ('layers.*.attention.w[qkv]' first) match no");
    has(&e, 3, "", "write `names: torchtitan`");
    const char *first = strstr(e.err, "[E0205]");
    assert_true(first && !strstr(first + 1, "[E0205]"));
    e = check(put("p.yaml", LLAMA "mesh: {tp: 2}\n" OTHERS "  layers.*.attention.w9: rowwise\n"),
              NULL, NULL);
    has(&e, 3, "", "write `names: torchtitan`");
    has(&e, 3, "", "p.yaml:8:3: error: pattern 'layers.*.attention.w9' matches no module");
    /* in the plan's own names are others: these are the slips */
    e = check(
        put("p.yaml", LLAMA "mesh: {tp: 2}\n" OTHERS "  model.layers.*.mlp.up_proj: colwise\n"),
        NULL, NULL);
    has(&e, 3, "", "here it is 'model.layers.*.self_attn.o_proj'");
    assert_null(strstr(e.err, "write `names:"));
    unlink(in("p.yaml"));
}
/* A label that lies: who leaves the value so, through a residual sum and around the layers, with
 * its line, and the line to write; what follows from it is no finding of its own. */
static void test_label(void **state) {
    (void)state;
#define NORMS                                                                                      \
    "  layers.*.attention_norm: sequence_parallel\n  layers.*.ffn_norm: sequence_parallel\n"
#define READS(part)                                                                                \
    "  layers.*." part ": {style: prepare_module_input, input: [shard(1)], "                       \
    "desired_input: [replicate]}\n"
#define COLUMNS                                                                                    \
    READS("attention")                                                                             \
    "  layers.*.attention.w[qkv]: colwise\n" READS(                                                \
        "feed_forward") "  layers.*.feed_forward.w[13]: colwise\n"
    static const char head[] = LLAMA "mesh: {tp: 2}\nplan:\n" NORMS COLUMNS,
                      row[] = ": {style: rowwise, output: shard(1)}";
    static const struct {
        const char *wo, *w2; /* what stands behind each pattern; NULL: no line */
        const char *says, *too, *write;
    } bad[] = {
        {row, NULL, "as in the last layer layers.0.feed_forward.w2 (no line names it) leaves it",
         "", "feed_forward.w2"},
        {": {style: rowwise, output: shard(-1)}", row,
         "as layers.0.attention.wo (line 11) leaves it", "", "attention.wo"},
        {": colwise", row, "made of what layers.0.attention.wq (line 8) leaves",
         "the input of layers.0.ffn_norm (line 6) is wrong because of it", "attention.wo"},
        {row, ": colwise", "made of what layers.0.feed_forward.w1 (line 10) leaves",
         "the input of layers.0.attention_norm (line 5) is wrong because of it", "feed_forward.w2"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *text =
            arena_printf(arena, "%s%s%s\n%s%s\n", head, "  layers.*.attention.wo", bad[i].wo,
                         bad[i].w2 ? "  layers.*.feed_forward.w2" : "", bad[i].w2 ? bad[i].w2 : "");
        Ended e = check(put("p.yaml", text), NULL, NULL);
        has(&e, 1, "", bad[i].says);
        has(&e, 1, "", bad[i].too);
        has(&e, 1, "", arena_printf(arena, "write `layers.*.%s%s`", bad[i].write, row));
        const char *first = strstr(e.err, "[E0402]");
        assert_true(first && !strstr(first + 1, "[E0402]"));
    }
    unlink(in("p.yaml"));
}
/* A row layer where a column layer was meant: through a norm with a line, and in a line that says
 * more than its style, the row layer behind it is wrong because of it, and the help says the style.
 */
static void test_label_through(void **state) {
    (void)state;
    static const char *const bad[][3] = {
        {"plans/13-qwen3-0.6b-tp4.yaml", "[qkv]_proj: colwise",
         "write `model.layers.*.self_attn.[qkv]_proj: colwise`"},
        {"plans/39-mixtral-8x7b-hf-ep.yaml", "[qkv]_proj: {style: colwise",
         "let `style` say `colwise` in the line `model.layers.*.self_attn.[qkv]_proj`"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t n;
        char *text = child_read(arena, bad[i][0], &n), *at = strstr(text, bad[i][1]);
        assert_non_null(at);
        memcpy(strstr(at, "colwise"), "rowwise", 7);
        Ended e = check(put("p.yaml", text), NULL, NULL);
        has(&e, 1, "", "self_attn.o_proj (line ");
        has(&e, 1, "", ") is wrong because of it");
        has(&e, 1, "", bad[i][2]);
        const char *first = strstr(e.err, "[E0402]");
        assert_true(first && !strstr(first + 1, "[E0402]"));
    }
    unlink(in("p.yaml"));
}
/* The lines of a block, of which two say the other style: each is a finding of its own, at its
 * line, and none is told as following from the other. Every help is obeyed until the plan holds. */
enum { LINES = 7 };
static const char *const modules[LINES] = {"attention.wq",   "attention.wk",    "attention.wv",
                                           "attention.wo",   "feed_forward.w1", "feed_forward.w3",
                                           "feed_forward.w2"};
static const char *plan_of(uint32_t columns) {
    Str s = str_new(arena);
    str_add(&s, LLAMA "names: torchtitan\nmesh: {tp: 2}\nplan:\n");
    for (int i = 0; i < LINES; i++)
        str_addf(&s, "  layers.*.%s: %s\n", modules[i], columns >> i & 1 ? "colwise" : "rowwise");
    return put("p.yaml", s.s);
}
static void test_two_mistakes(void **state) {
    (void)state;
    const uint32_t right = 0x37; /* wo and w2 are row layers */
    for (int i = 0; i < LINES; i++)
        for (int k = i; k < LINES; k++) {
            uint32_t columns = right ^ (1u << i) ^ (k > i ? 1u << k : 0);
            Ended e = check(plan_of(columns), "--static", NULL);
            assert_int_equal(e.code, 1);
            for (int m = 0; m < LINES; m++) {
                const char *write = arena_printf(arena, "write `layers.*.%s: %s`", modules[m],
                                                 right >> m & 1 ? "colwise" : "rowwise"),
                           *at = strstr(e.err, arena_printf(arena, "p.yaml:%d:3: error", 6 + m));
                const char *after = arena_printf(arena, "(line %d) is wrong because of it", 6 + m);
                if ((m == i || m == k) == !at || (at && !strstr(at, write)) ||
                    (at && strstr(e.err, after)))
                    fail_msg("%s, %s:\n%s", modules[i], modules[k], e.err);
            }
        }
    Ended e = check(plan_of(right), "--static", NULL);
    assert_int_equal(e.code, 0);
    unlink(in("p.yaml"));
}
/* A line whose bare placements speak of another axis than the label has to name both. */
static void test_axis_of_help(void **state) {
    (void)state;
    static const char text[] =
        "model: {preset: llama3-8b, shrink: 64, parts: [embedding, blocks, norm, head, loss]}\n"
        "data: {batch: 2, sequence: 8}\nmesh: {vp: 2, tp: 2}\nrecipe: torchtitan-llama3\n";
    const char *p = put("p.yaml", text);
    Ended e = check(p, NULL, NULL);
    has(&e, 1, "", "let `output` say `{vp: replicate, tp: shard(1)}` in the line `tok_embeddings`");
    e = check(p, "--set",
              "plan[tok_embeddings]={style: rowwise, input: replicate, "
              "output: {vp: replicate, tp: shard(1)}}");
    has(&e, 0, "equivalent", "");
    unlink(p);
}
static void test_words(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *own =
            strncmp(rows[i].text, "data", 4)
                ? rows[i].text
                : arena_printf(arena, "model: {preset: llama3-8b, shrink: 64}\n%s", rows[i].text);
        Ended e = check(put("p.yaml", own), "-v", NULL);
        has(&e, rows[i].exit, "", arena_printf(arena, "[%s]", rows[i].code));
        has(&e, rows[i].exit, "", rows[i].says);
        has(&e, rows[i].exit, "", rows[i].help);
    }
    unlink(in("p.yaml"));
}
/* A shape may be expected in numbers: those of every rank. */
static void test_numbers_expected(void **state) {
    (void)state;
#define SHAPED(shapes)                                                                             \
    LLAMA "mesh: {tp: 2}\nplan:\n  layers.*.attention.w[qkv]: colwise\n"                           \
          "  layers.*.attention.wo: rowwise\nexpect:\n  local_shapes: " shapes "\n"
    Ended e = check(put("p.yaml", SHAPED("{layers.0.q_proj: [4, 8, 64]}")), NULL, NULL);
    has(&e, 1, "", "layers.0.q_proj is [B, S, H*d/tp] = [4, 8, 128] on ranks 0,1, not [4, 8, 64]");
    e = check(put("p.yaml", SHAPED("{layers.0.q_proj: [4, S, 128], layers.0.o_proj: [B, 8, D]}")),
              NULL, NULL);
    has(&e, 0, "ok", "");
    e = check(put("p.yaml", SHAPED("{layers.0.q_proj: [B, S]}")), NULL, NULL);
    has(&e, 1, "", "layers.0.q_proj is [B, S, H*d/tp], not [B, S]");
    /* ranks that differ have no number in common */
    e = check(put("p.yaml", "model: {kind: mlp, sizes: [6, 9, 3]}\ndata: {rows: 5}\n"
                            "mesh: {tp: 2}\nplan: {net1: colwise, net2: rowwise}\n"
                            "expect: {local_shapes: {net1: [5, 5]}}\n"),
              NULL, NULL);
    has(&e, 1, "", "[5, 5] on rank 0, [5, 4] on rank 1, not [5, 5]");
    unlink(in("p.yaml"));
}
/* With several micro-batches the key means something, and nothing is noted. */
static void test_means_something(void **state) {
    (void)state;
    const char *p = put("p.yaml", "model: {preset: llama3-8b, layers: 1, shrink: 64}\n"
                                  "data: {batch: 4, sequence: 8, microbatches: 2}\nmesh: {dp: 2}\n"
                                  "pass: backward\n"
                                  "data_parallel: {mode: fsdp, grad_sync: scatter}\n");
    Ended e = check(p, "-v", NULL);
    assert_int_equal(e.code, 0);
    assert_null(strstr(e.err, "N0018"));
    static const char *const few[] = {FEW("gpipe"),          FEW("looped-bfs"), FEW("interleaved"),
                                      FEW("interleaved-zb"), FEW("zb-v"),       FEW("zb-h1")};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        e = check(put("p.yaml", few[i]), "-v", NULL);
        has(&e, 0, "equivalent", "");
        assert_null(strstr(e.err, "N0021"));
    }
    p = put("p.yaml", MIXTRAL "mesh: {dp: 2}\npass: backward\ndata_parallel: {mode: fsdp}\n"
                              "moe: {capacity_factor: 1, capacity: local, priority: slot, "
                              "fsdp_dim: 1}\n");
    e = check(p, "-v", NULL);
    assert_int_equal(e.code, 0);
    assert_null(strstr(e.err, "N0018"));
    unlink(p);
}

/* ---- config.json ---- */
static void refused(const char *family, const char *key, const char *says) {
    put("config.json",
        arena_printf(arena,
                     "{\"model_type\":\"%s\",\"attention_bias\":false,\"hidden_act\":\"silu\","
                     "\"hidden_size\":64,\"intermediate_size\":128,\"num_attention_heads\":4,"
                     "\"num_hidden_layers\":2,\"num_key_value_heads\":4,\"rope_theta\":1e4,"
                     "\"tie_word_embeddings\":false,\"vocab_size\":128,\"rms_norm_eps\":1e-5,%s}",
                     family, key));
    Ended e = check(put("p.yaml", "model: {hf_config: config.json, layers: 1}\n"
                                  "data: {batch: 2, sequence: 4}\nmesh: {tp: 2}\n"),
                    NULL, NULL);
    if (says) has(&e, 3, "", says);
    else has(&e, 0, "ok", "");
    unlink(in("config.json"));
    unlink(in("p.yaml"));
}
static void test_numbers_of_configs(void **state) {
    (void)state;
    refused("glm4", "\"head_dim\":16,\"partial_rotary_factor\":0.5", NULL);
    refused("glm4", "\"head_dim\":16,\"partial_rotary_factor\":99",
            "99 is out of range, it is the part of a head that turns: above 0, 1 or less");
    refused("llama", "\"partial_rotary_factor\":0.5", "E0207");
    refused("llama", "\"partial_rotary_factor\":2", "2 is out of range");
    refused("olmo", "\"clip_qkv\":8", NULL);
    refused("olmo", "\"clip_qkv\":1e300", "1e+300 clips nothing");
    refused("olmo", "\"clip_qkv\":1e-300", "1e-300 is out of range"); /* 0 in f32: a false alarm */
    refused("olmo", "\"clip_qkv\":-1", "-1 is out of range");
    refused("olmo", "\"clip_qkv\":\"8\"", "must be a number above 0");
}

/* Asked for a run of every product, or of a planted mistake, or of one way to look at numbers, a
 * plan that is too large fails; and where it is held without numbers no format calls that a run. */
static void test_not_executed(void **state) {
    (void)state;
    static const char text[] = SMALL_MODEL "mesh: {tp: 2}\nplan: {net1: colwise, net2: rowwise}\n"
                                           "data: {rows: 1000000000000}\n";
    const char *p = put("p.yaml", text), *small = put("q.yaml", SMALL_PLAN);
    static const char *const asked[][2] = {
        {"--check", "full"}, {"--check", "quick"}, {"--fault", "drop-reduction"}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        Ended e = check(p, asked[i][0], asked[i][1]);
        has(&e, 5, "FAIL", "[E0701]");
    }
    Ended left = check(p, "--no-end-to-end", NULL);
    has(&left, 5, "FAIL", "[E0701]");
    static const char *const planted[] = {"faults: [{at: net2, do: drop}]\n",
                                          "pass: backward\ngradients: {net1: mean}\n"};
    for (int i = 0; i < 2; i++) {
        const char *f = put("f.yaml", arena_printf(arena, "%s%s", text, planted[i]));
        Ended e = check(f, NULL, NULL);
        has(&e, 5, "FAIL", "[E0701]");
        e = check(f, "--static", NULL);
        has(&e, !i, i ? "not executed" : "the structure is wrong", "");
        unlink(f);
    }
    static const char *const says[][2] = {{"csv", ",ok,not executed,0,"},
                                          {"md", "| ok | not executed |"},
                                          {"json", "\"check\":null"},
                                          {"junit", "skipped=\"1\""},
                                          {"junit", "<skipped message=\"not executed"},
                                          {"github", "title=N0014::not executed"},
                                          {"sarif", "not executed"},
                                          {"gitlab", "not executed"}};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        Ended e = check(p, "--format", says[i][0]);
        has(&e, 0, says[i][1], "");
    }
    Ended e = check(p, small, NULL);
    has(&e, 0, "2 plans hold, 1 of them not executed\n", "");
    e = check(p, "--check", "auto");
    has(&e, 0, "not executed", "");
    unlink(p);
    unlink(small);
}
/* Who expects other values expects what may be their reason, and nothing else: a mistake that
 * changes nothing, or a file that was not closed, explains no number. */
static void test_warnings_meant(void **state) {
    (void)state;
    static const char both[] =
        SMALL_PLAN "trust: declared\nfaults: [{at: net2, do: drop}%s]\nexpect: {%s}\n",
                      idle[] = ", {at: act1, scale: 1}";
    static const char *const expects[] = {"equivalent: false", "first_wrong: net2"};
    for (int i = 0; i < 2; i++) {
        const char *p = put("p.yaml", arena_printf(arena, both, "", expects[i]));
        Ended e = check(p, "--fail-on", "warning");
        has(&e, 0, "as expected", "");
        p = put("p.yaml", arena_printf(arena, both, idle, expects[i]));
        e = check(p, NULL, NULL);
        has(&e, 0, "as expected", "[W0001]");
        e = check(p, "--fail-on", "warning");
        has(&e, 1, "as expected; --fail-on warning: 1 is above", "[W0001]");
        assert_null(strstr(e.err, "E0501"));
        e = child_run(arena, &(Child){.words = WORDS("check", p, "--fail-on", "warning", "--format",
                                                     "junit")});
        has(&e, 1, "<failure type=\"W0001\"", "");
        unlink(p);
    }
}

/* What is planted is said as it was written, not rounded to nothing. */
static void test_small_factor(void **state) {
    (void)state;
    const char *p = put("p.yaml", SMALL_PLAN "faults: [{at: act1, scale: 1.00000001}]\n");
    Ended e = check(p, NULL, NULL);
    has(&e, 0, "ok", "'scale: 1.00000001' is planted, and no number of this run shows it");
    unlink(p);
}

/* ---- run ---- */
static void test_run_writes_a_folder(void **state) {
    (void)state;
    const char *p = put("p.yaml", SMALL_PLAN);
    static const char *const names[] = {"x.json", "x.svg", "x.html", "x.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Ended e = child_run(arena, &(Child){.words = WORDS("run", p, "-o", in(names[i]))});
        has(&e, 2, "", "`run` writes a folder");
        has(&e, 2, "", "run --format json > ");
        e = child_run(arena,
                      &(Child){.words = WORDS("run", p, "--format", "json", "-o", in(names[i]))});
        has(&e, 2, "", "`run` writes a folder");
        assert_int_equal(access(in(names[i]), F_OK), -1);
    }
    unlink(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_patterns, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_deep_patterns, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_left_out, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_plans_of_a_folder, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_fail_on, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_new_axis, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_one_finding, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_names, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_label, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_label_through, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_two_mistakes, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_axis_of_help, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_words, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_numbers_expected, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_means_something, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_numbers_of_configs, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_not_executed, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_warnings_meant, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_small_factor, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_run_writes_a_folder, sandbox_new, sandbox_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
