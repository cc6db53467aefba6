/* Model families by their config.json. Values: the loss, logits and gradients of tiny models with
 * this program's own random weights, as Hugging Face transformers computes them in float64
 * (tests/golden/families, made by tests/golden_families.py). Plans: what the library's own loads
 * with the plans that it ships gave (../shared/golden/plans/runs), phase by phase. */
#include "base/text.h"
#include "import/import.h"
#include "import/recorded.h"
#include "model/model.h"
#include "support/child.h"
#include "support/support.h"
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/spfamiliesXXXXXX";
static int make_dir(void **state) {
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}
static int remove_dir(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

/* ---- JSON and files ---- */
static void put(JsonWriter *w, const char *key, const Json *v) {
    bool array = v->kind == JSON_ARRAY;
    switch (v->kind) {
    case JSON_NULL: json_null(w, key); break;
    case JSON_BOOL: json_bool(w, key, v->b); break;
    case JSON_INT: json_int(w, key, v->i); break;
    case JSON_REAL: json_real(w, key, v->r); break;
    case JSON_STRING: json_str(w, key, v->s); break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        json_open(w, key, array ? '[' : '{');
        for (int i = 0; i < v->n; i++)
            put(w, array ? NULL : v->key[i], (array ? v->item : v->value)[i]);
        json_close(w, array ? ']' : '}');
    }
}
/* A file with this JSON; its path. */
static const char *json_file(Arena *a, const char *name, const Json *j) {
    JsonWriter w = json_writer(a);
    put(&w, NULL, j);
    const char *path = arena_printf(a, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(w.s.s, f);
    fclose(f);
    return path;
}
/* Every file that ends so in a folder, in turn. */
static struct dirent *next_json(DIR *folder) {
    struct dirent *e;
    while ((e = readdir(folder))) {
        size_t n = strlen(e->d_name);
        if (n > 5 && !strcmp(e->d_name + n - 5, ".json")) return e;
    }
    return NULL;
}

/* ---- values ---- */
static void hold_sum(Arena *a, const SafeTensors *st, const char *name, double want,
                     const char *what) {
    int64_t n;
    const double *x = tensor_numbers(a, st, name, &n);
    double sum = 0, size = 0;
    for (int64_t k = 0; k < n; k++) sum += x[k] * cos((double)k), size += x[k] * x[k];
    if (!(fabs(sum - want) <= 1e-11 * (fabs(want) + sqrt(size))))
        fail_msg("%s: %s: %.17g, not %.17g", what, name, sum, want);
}
/* Is each recorded sum that of the values in the file? Gradients stand in their names' order,
 * as tensors of a file do. */
static void hold_sums(Arena *a, const char *what, const Json *j, const char *path) {
    const SafeTensors *st = golden_tensors(a, path);
    const Json *gradients = json_get(j, "gradients");
    const char **name = ARENA_ARRAY(a, const char *, st->n + 1);
    int n = 0;
    for (int i = 0; i < st->n; i++)
        if (!strncmp(st->t[i].name, "grad.param.", 11)) name[n++] = st->t[i].name;
    assert_int_equal(n, gradients->n);
    hold_sum(a, st, "logits", json_get(j, "logits")->r, what);
    hold_sum(a, st, "loss_mean", json_get(j, "loss_mean")->r, what);
    for (int i = 0; i < n; i++) hold_sum(a, st, name[i], gradients->item[i]->r, what);
}
static void hold_plan(Arena *a, const Json *j, const char *how, const char *plan) {
    const char *family = json_get(json_get(j, "config"), "model_type")->s,
               *saved = arena_printf(a, "%s/values", dir);
    PipelineOptions o = {.execute = true, .threads = 1, .save_values = saved};
    PlanRun r = plan_run_with(a, arena_printf(a, "%s/plan.yaml", dir), plan, &o);
    if (r.rep.exit || !run_is(&r, "equivalent")) {
        run_print(&r);
        fail_msg("%s, %s\n%s", family, how, plan);
    }
    hold_sums(a, arena_printf(a, "%s, %s", family, how), j, saved);
}
static const char model[] =
    "model: {hf_config: config.json, layers: all, parts: [embedding, blocks, norm, head, loss]}\n"
    "pass: backward\n";
static const char data[] = "data: {dtype: f64, batch: 2, sequence: 11, seed: 7}\n";
/* The plan that `import hf` makes, on the data of the record. */
static const char *shipped_plan(Arena *a, const char *config, const char *tp_plan, int tp, int ep) {
    Diags *d = diags_new(a);
    ImportInput in = {.framework = "hf",
                      .config = config,
                      .tp_plan = tp_plan,
                      .tp = tp,
                      .ep = ep ? ep : -1,
                      .full = true,
                      .dir = dir};
    ImportedPlan p = import_plan(a, d, &in);
    if (!p.text) return NULL;
    const char *from = strstr(p.text, "\ndata:"), *to = from ? strchr(from + 1, '\n') : NULL;
    assert_non_null(to);
    /* experts' tokens are shared out by whole sequences */
    const char *more = "data: {dtype: f64, batch: 4, sequence: 11, seed: 7}\n";
    return arena_printf(a, "%.*s\n%s%s", (int)(from - p.text), p.text, ep > 2 ? more : data,
                        to + 1);
}
/* The plan with the sums that no line declares: one family ships without them. */
static const char *with_rules(Arena *a, const char *plan) {
    const char *declared = "trust: declared\n", *at = strstr(plan, declared);
    assert_non_null(at);
    return arena_printf(a, "%.*s%s", (int)(at - plan), plan, at + strlen(declared));
}
/* Lines for a family that ships without any; NULL: it ships with its own. Weights of GPT-2 are
 * stored input dim first, and the styles mean the same features. */
static const char *own_plan(const Json *j) {
    const char *family = json_get(json_get(j, "config"), "model_type")->s;
    if (strcmp(family, "gpt2")) return NULL;
    return "  transformer.wte: rowwise\n"
           "  transformer.wpe: {style: rowwise}\n"
           "  transformer.h.*.attn.c_attn: colwise_gather_output\n"
           "  transformer.h.*.attn.c_proj: rowwise_split_input\n"
           "  transformer.h.*.mlp.c_fc: colwise\n"
           "  transformer.h.*.mlp.c_proj: rowwise\n"
           "  lm_head: colwise\n";
}
/* Unsharded, by the shipped plan on two ranks, with sequence parallelism, sharded over dp. */
static void test_values(void **state) {
    (void)state;
    DIR *folder = opendir("tests/golden/families");
    int families = 0;
    assert_non_null(folder);
    for (struct dirent *e; (e = next_json(folder)); families++) {
        Arena *a = arena_new();
        const Json *j = golden_json(a, arena_printf(a, "tests/golden/families/%s", e->d_name));
        const char *config = json_file(a, "config.json", json_get(j, "config"));
        hold_plan(a, j, "unsharded",
                  arena_printf(a, "%s%snames: hf\nmesh: {tp: 1}\n", model, data));
        const char *plan = shipped_plan(a, config, NULL, 2, 0);
        if (own_plan(j)) {
            assert_null(plan); /* the library ships none */
            hold_plan(a, j, "a plan of its own",
                      arena_printf(a, "%s%snames: hf\nmesh: {tp: 2}\nplan:\n%s", model, data,
                                   own_plan(j)));
        } else {
            assert_non_null(plan);
            hold_plan(a, j, "the shipped plan", with_rules(a, plan));
        }
        hold_plan(
            a, j, "fsdp",
            arena_printf(a, "%s%snames: hf\nmesh: {dp: 2}\ndata_parallel: {mode: fsdp, axis: dp}\n",
                         model, data));
        arena_free(a);
    }
    closedir(folder);
    printf("%d families\n", families);
    assert_true(families >= 9);
}

/* Sinks, experts' biases and pairs of gate and up, wherever an axis may cut them. */
static void test_gpt_oss_cut(void **state) {
    (void)state;
#define QKVO "  layers.*.self_attn.[qkv]_proj: colwise\n  layers.*.self_attn.o_proj: rowwise\n"
    static const struct {
        const char *how, *lines;
    } plans[] = {
        {"tp, sinks whole", "mesh: {tp: 2}\nplan:\n" QKVO},
        {"tp, sinks cut", "mesh: {tp: 2}\nplan:\n" QKVO "  layers.*.self_attn.sinks: colwise\n"},
        {"experts cut inside",
         "mesh: {tp: 2}\nplan:\n  layers.*.mlp.experts.gate_up_proj: rowwise\n"
         "  layers.*.mlp.experts.gate_up_proj_bias: rowwise\n"
         "  layers.*.mlp.experts.down_proj: colwise\n"
         "  layers.*.mlp.experts: moe_tp_experts\n"},
        {"ep", "mesh: {ep: 2}\nmoe: {axis: ep}\n"},
        {"ulysses", "mesh: {cp: 2}\ncontext_parallel: {axis: cp, mode: ulysses}\n"},
        {"all_gather", "mesh: {cp: 3}\ncontext_parallel: {axis: cp, mode: all_gather}\n"},
        {"ring", "mesh: {cp: 2}\ncontext_parallel: {axis: cp, mode: ring}\n"},
        {"ring, chain",
         "mesh: {cp: 2}\ncontext_parallel: {axis: cp, mode: ring, backward: chain}\n"},
        {"ring of three", "mesh: {cp: 3}\ncontext_parallel: {axis: cp, mode: ring}\n"},
    };
#undef QKVO
    Arena *a = arena_new();
    const Json *j = golden_json(a, "tests/golden/families/gpt_oss.json");
    json_file(a, "config.json", json_get(j, "config"));
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        hold_plan(a, j, plans[i].how,
                  arena_printf(a, "%s%snames: hf\n%s", model, data, plans[i].lines));
    PlanRun r = plan_run(a, arena_printf(a, "%s/plan.yaml", dir),
                         arena_printf(a,
                                      "%sdata: {dtype: f64, batch: 2, sequence: 12}\nnames: hf\n"
                                      "mesh: {cp: 2}\ncontext_parallel: {axis: cp, mode: ring, "
                                      "order: zigzag}\n",
                                      model),
                         true);
    assert_non_null(r.t);
    run_must_be(&r, "equivalent");
    arena_free(a);
}

/* ---- transformers' strategies in the user's words ---- */
/* What a command prints of a plan with these styles and lines. */
static const char *printed(Arena *a, const char *command, const char *styles, const char *line) {
    const char *path = arena_printf(a, "%s/styles.yaml", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "model: {config: {model_type: llama, hidden_size: 16, intermediate_size: 24, "
            "num_hidden_layers: 1, num_attention_heads: 4, vocab_size: 22, mlp_bias: true, "
            "attention_bias: true}, layers: all, parts: [embedding, blocks, norm, head, loss]}\n"
            "data: {dtype: f64, batch: 2, sequence: 8}\nnames: hf\nmesh: {tp: 2}\n"
            "pass: backward\nplan:\n  model.layers.*.mlp.gate_proj: colwise\n"
            "  model.layers.*.mlp.up_proj: colwise\n  %s\n%s",
            line, styles);
    fclose(f);
    Ended e = child_run(a, &(Child){.words = WORDS(command, path)});
    child_expect(&e, 0, "");
    return arena_strdup(a, e.out);
}
/* A registered strategy's layouts as `styles:` has them: the same collectives and local shapes. */
static void test_own_styles(void **state) {
    (void)state;
#define MOVED "{input: replicate, desired_input: replicate, "
    static const struct {
        const char *style, *module, *fields;
    } rows[] = {
        {"colwise", "model.layers.*.self_attn.v_proj",
         MOVED "weight: shard(0), bias: shard(0), output: shard(-1)}"},
        {"rowwise", "model.layers.*.mlp.down_proj",
         "{input: shard(-1), desired_input: shard(-1), weight: shard(1), bias: replicate, "
         "output: replicate}"},
        {"colwise_gather_output", "model.layers.*.self_attn.q_proj",
         MOVED "weight: shard(0), bias: shard(0), output: shard(-1), desired_output: replicate}"},
        {"rowwise_split_input", "model.layers.*.self_attn.o_proj",
         "{input: replicate, desired_input: shard(-1), weight: shard(1), bias: replicate, "
         "output: replicate}"},
        {"replicate", "model.layers.*.self_attn.o_proj",
         MOVED "weight: replicate, bias: replicate, output: replicate}"},
        {"embedding_rowwise", "model.embed_tokens", MOVED "weight: shard(0), output: replicate}"},
        {"embedding_colwise", "model.embed_tokens",
         MOVED "weight: shard(1), output: shard(-1), desired_output: replicate}"},
    };
#undef MOVED
    static const char *const commands[] = {"comms", "shapes"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int c = 0; c < 2; c++) {
            Arena *a = arena_new();
            const char *own = arena_printf(a, "styles:\n  mine: %s\n", rows[i].fields),
                       *line = arena_printf(a, "%s: mine", rows[i].module),
                       *mine = printed(a, commands[c], own, line);
            line = arena_printf(a, "%s: %s", rows[i].module, rows[i].style);
            const char *theirs = printed(a, commands[c], "", line);
            if (strcmp(mine, theirs)) fail_msg("%s\n%s\n%s", rows[i].style, mine, theirs);
            assert_string_not_equal(printed(a, commands[c], "", "lm_head: colwise"), mine);
            arena_free(a);
        }
}

/* ---- what the library's own loads gave ---- */
static const char *const phases[] = {"inference", "training_forward", "gradients"};
static int64_t recorded(const Json *run, const char *phase, const char *op) {
    const Json *n = json_get(json_get(json_get(run, "collectives_of_rank_0"), phase), op);
    return n ? n->i : 0;
}
static void hold_shapes(Arena *a, const Json *run, const char *name, const Trace *t) {
    const Json *shapes = json_get(run, "local_shapes");
    int64_t ranks = json_get(run, "world")->i;
    for (int k = 0; k < shapes->n; k++)
        for (int64_t rank = 0; rank < ranks; rank++) {
            const Json *want = shapes->value[k];
            if (want->n && want->item[0]->kind == JSON_ARRAY) want = want->item[rank];
            Str s = str_new(a);
            for (int d = 0; d < want->n; d++)
                str_addf(&s, "%s%lld", d ? ", " : "", (long long)want->item[d]->i);
            const char *mine = local_text(a, &find_param(t, shapes->key[k])->rest, rank);
            if (strcmp(arena_printf(a, "[%s]", s.s), mine))
                fail_msg("%s: %s on rank %lld: %s, not [%s]", name, shapes->key[k], (long long)rank,
                         mine, s.s);
        }
}
/* What two ways to call one collective come to; in ours, backward pass and gradients together. */
static void hold_collectives(const Json *run, const char *name, const Trace *t) {
    const struct {
        const char *phase, *theirs[3], *passes[2], *ours;
    } counts[] = {
        {"training_forward", {"all_reduce", "allreduce_"}, {"forward"}, "all_reduce"},
        {"training_forward", {"all_gather_into_tensor"}, {"forward"}, "all_gather"},
        {"training_forward", {"all_to_all_single", "alltoall_base_"}, {"forward"}, "all_to_all"},
        {"backward", {"all_reduce", "allreduce_"}, {"backward", "gradients"}, "all_reduce"},
        {"backward", {"all_gather_into_tensor"}, {"backward"}, "all_gather"},
        {"backward", {"all_to_all_single", "alltoall_base_"}, {"backward"}, "all_to_all"}};
    const Json *phase = json_get(json_get(run, "collectives_of_rank_0"), "training_forward");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t theirs = 0, ours = 0;
        const char *there = counts[i].phase;
        if (!phase && !strcmp(there, "backward")) continue; /* it raised */
        if (!phase) there = phases[0];
        for (int k = 0; k < 3 && counts[i].theirs[k]; k++)
            theirs += recorded(run, there, counts[i].theirs[k]);
        for (int k = 0; k < 2 && counts[i].passes[k]; k++)
            ours += count_collectives(t, counts[i].passes[k], counts[i].ours, "tp");
        if (theirs != ours)
            fail_msg("%s: %s in %s: %lld, not %lld", name, counts[i].ours, counts[i].phase,
                     (long long)ours, (long long)theirs);
    }
}
/* The verdict of a recorded run: "equal", or the first phase that was not. */
static const char *recorded_verdict(const Json *run) {
    const Json *v = json_get(run, "verdict");
    if (v->kind == JSON_STRING) return v->s; /* it was not even loaded */
    for (int i = 0; i < 3; i++)
        if (strcmp(json_get(v, phases[i])->s, "equal")) return json_get(v, phases[i])->s;
    return "equal";
}
/* The same for the table: which phase it was. */
static const char *recorded_phase(Arena *a, const Json *run) {
    const Json *v = json_get(run, "verdict");
    if (v->kind == JSON_STRING) return arena_printf(a, "load %s", v->s);
    for (int i = 0; i < 3; i++) {
        const char *said = json_get(v, phases[i])->s;
        if (strcmp(said, "equal") != 0)
            return arena_printf(a, "%s %s", i == 1 ? "training" : phases[i], said);
    }
    return "equal";
}
/* A row of the table of loads: what is said here, and why it is not what is recorded. */
typedef struct {
    const char *ours, *why;
} LoadRow;
/* Loads whose verdict is not the plan's doing, or that no plan can say; with the reason. */
static const struct {
    const char *name, *why;
} others[] = {
    {"Llama.tp2.sequence_parallel_norms.json",
     "`import hf` refuses sequence_parallel: it labels a whole norm as a part"},
    {"DeepseekV3.tp2ep2.all_reduce.json",
     "ep_implementation all_reduce is an argument of the load and of no plan: the table is that of "
     "DeepseekV3.tp2ep2.json, whose exchanges it leaves out"},
};
static const char *other(const char *name) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(others[i].name, name)) return others[i].why;
    return NULL;
}
/* Where the numbers are right up to the loss: the same parameters have wrong gradients. */
static void hold_wrong_gradients(Arena *a, const Json *run, const char *name, const Trace *t) {
    const Json *wrong = json_get(run, "gradients_wrong_relative"),
               *all = json_get(run, "parameters");
    if (strcmp(json_get(json_get(run, "verdict"), "training_forward")->s, "equal")) return;
    for (int i = 0; i < all->n; i++) {
        const char *value = arena_printf(a, "grad.param.%s", all->key[i]);
        bool mine = false, theirs = json_get(wrong, all->key[i]) != NULL;
        for (int k = 0; k < t->n_checks; k++)
            mine |= !strcmp(t->checks[k].value, value) && !strcmp(t->checks[k].verdict, "FAIL");
        if (mine != theirs)
            fail_msg("%s: %s is %s, and the library says %s", name, value, mine ? "wrong" : "right",
                     theirs ? "wrong" : "right");
    }
}
/* Is it this load that a recorded fault of the library speaks of? It is no fault of the plan, whose
 * other loads are equal. */
static bool recorded_fault(const Json *run, const char *verdict) {
    const Json *config = json_get(run, "config_used"), *pad = json_get(config, "pad_token_id"),
               *tied = json_get(config, "tie_word_embeddings");
    const char *type = json_get(config, "model_type")->s,
               *inference = json_get(json_get(run, "verdict"), phases[0])->s;
    if (!import_recorded(type)) return false;
    const char *forward = json_get(json_get(run, "verdict"), phases[1])->s;
    if (!strcmp(type, "gpt_oss")) /* experts one by one */
        return !strcmp(inference, "raises") && !strcmp(forward, "equal");
    if (!strcmp(type, "youtu")) /* the pad row of a tied table */
        return pad->kind == JSON_INT && tied->b && !strcmp(verdict, "different");
    return !strcmp(verdict, "raises") && !strcmp(inference, "equal");
}
/* False: it was not executed, and the row says why. */
static bool hold_run(Arena *a, const Json *run, const char *name, LoadRow *row) {
    const Json *with = json_get(run, "distributed"), *over = json_get(with, "tp_plan"),
               *experts = json_get(with, "ep_size");
    const char *config = json_file(a, "config.json", json_get(run, "config_used")),
               *table = over && over->kind == JSON_OBJECT ? json_file(a, "table.json", over) : NULL,
               *verdict = recorded_verdict(run),
               *plan = shipped_plan(a, config, table, (int)json_get(with, "tp_size")->i,
                                    experts ? (int)experts->i : 0);
    if (other(name)) {
        assert_true(!plan || json_get(with, "ep_implementation"));
        *row = (LoadRow){plan ? "not run" : "refused", other(name)};
        return false;
    }
    if (!plan && !strcmp(verdict, "raises")) { /* refused here, as it was there */
        assert_string_equal(json_get(run, "failed_in")->s, "load");
        row->ours = "refused";
        return true;
    }
    if (!plan) fail_msg("%s is not imported", name);
    PlanRun r = plan_run(a, arena_printf(a, "%s/plan.yaml", dir), plan, true);
    const char *mine = r.t && r.t->verdict ? r.t->verdict : "none";
    if (recorded_fault(run, verdict)) {
        const char *type = json_get(json_get(run, "config_used"), "model_type")->s;
        row->why = arena_printf(a, "recorded, not derived: %s of transformers %s",
                                import_recorded(type)->where, import_recorded(type)->version);
        verdict = "equal"; /* what the plan says */
    }
    bool equal = !strcmp(mine, "equivalent"),
         same = !strcmp(verdict, "raises")  ? diags_errors(r.d) > 0
                : !strcmp(verdict, "equal") ? equal
                                            : !strcmp(mine, "different");
    if (!same) {
        run_print(&r);
        fail_msg("%s: %s, not %s", name, mine, verdict);
    }
    if (strcmp(verdict, "raises")) {
        hold_shapes(a, run, name, r.t);
        hold_collectives(run, name, r.t);
        hold_wrong_gradients(a, run, name, r.t);
    }
    row->ours = r.t && r.t->verdict ? mine : "refused";
    return true;
}
/* Loads of families that do not run here. */
typedef struct {
    Arena *a;
    int n, loads;
    const char *type[128];
} Lacking;
static void count_lacking(Lacking *l, const char *type, const char *name) {
    const char *what = import_lacking(type);
    if (!what) fail_msg("%s: does not run, and nothing says why: %s", name, type);
    l->loads++;
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->type[i], type)) return;
    assert_true(l->n < 128);
    l->type[l->n++] = arena_strdup(l->a, type);
}
/* The page says how many, and of each family the import of its config says why, as the page does
 * (test_names). */
static void hold_page(Arena *a, int seen, int others_seen, const Lacking *l) {
    size_t n;
    const char *page = child_read(a, "docs/shipped-plans.md", &n),
               *line =
                   arena_printf(a,
                                "Of %d recorded loads %d are executed and agree, %d say what "
                                "no plan says, and %d of %d families are not run:",
                                seen + others_seen + l->loads, seen, others_seen, l->loads, l->n);
    char *words = arena_strdup(a, page);
    for (char *p = words; (p = strchr(p, '\n'));) *p = ' '; /* wherever its lines end */
    if (!strstr(words, line)) fail_msg("docs/shipped-plans.md: %s", line);
    for (int i = 0; i < l->n; i++) {
        Json type = {.kind = JSON_STRING, .s = l->type[i]}, *types[] = {&type};
        const char *keys[] = {"model_type"};
        Json config = {.kind = JSON_OBJECT, .n = 1, .key = keys, .value = types};
        const char *file = json_file(a, "lacking.json", &config), *what = import_lacking(type.s);
        Ended e =
            child_run(a, &(Child){.words = WORDS("import", "hf", "--config", file, "--tp", "2")});
        child_expect(&e, 3, what);
    }
}
static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
/* Each load is a row of the page, and the page has no other. */
static void hold_rows(Arena *a, const char *const *row, int n) {
    size_t size;
    const char *page = child_read(a, "docs/shipped-plans.md", &size),
               *table = strstr(page, "## All loads\n");
    assert_non_null(table);
    for (int i = 0; i < n; i++) printf("%s\n", row[i]);
    for (int i = 0; i < n; i++)
        if (!strstr(table, arena_printf(a, "\n%s\n", row[i])))
            fail_msg("docs/shipped-plans.md has no row %s", row[i]);
    int rows = -2; /* its head */
    for (const char *p = table; (p = strstr(p, "\n| ")) && p < strstr(table, "\n## All classes");
         p++)
        rows++;
    if (golden_complete()) assert_int_equal(rows, n);
}
static void test_loads(void **state) {
    (void)state;
    Arena *all = arena_new();
    enum { MOST_LOADS = 256 };
    const char *loads[MOST_LOADS];
    int n_loads = 0;
    if (!golden_complete() || !golden_has(all, "plans/runs/Granite.tp2.json"))
        printf("plans/runs: two of them; the others only in the complete set, ../shared/golden\n");
    DIR *folder = opendir(golden_path(all, "plans/runs"));
    int seen = 0, others_seen = 0;
    Lacking l = {.a = all};
    for (struct dirent *e; (e = next_json(folder));) {
        Arena *a = arena_new();
        const Json *run = golden_json(a, golden_path(a, "plans/runs/%s", e->d_name)),
                   *type = json_get(json_get(run, "config_used"), "model_type");
        assert_non_null(type);
        if (model_family_runs(type->s)) assert_null(import_lacking(type->s));
        LoadRow row = {"not run", import_lacking(type->s)};
        if (!model_family_runs(type->s)) count_lacking(&l, type->s, e->d_name);
        else if (hold_run(a, run, e->d_name, &row)) seen++;
        else others_seen++;
        size_t n = text_before(e->d_name, ".json");
        loads[n_loads++] =
            arena_printf(all, "| `%.*s` | `%s` | %s | %s | %s |", (int)n, e->d_name, type->s,
                         row.ours, recorded_phase(a, run), row.why ? row.why : "");
        assert_true(n_loads < MOST_LOADS);
        arena_free(a);
    }
    closedir(folder);
    qsort(loads, (size_t)n_loads, sizeof *loads, by_text);
    hold_rows(all, loads, n_loads);
    printf("%d loads agree, %d say what no plan says, %d of %d families are NOT RUN\n", seen,
           others_seen, l.loads, l.n);
    assert_true(seen >= 2);
    if (l.loads) hold_page(all, seen, others_seen, &l);
    arena_free(all);
}

/* ---- norms after branches, and the layers that rotate ---- */
static const char exaone[] =
    "model:\n  config: {model_type: exaone4, hidden_size: 16, intermediate_size: 20, "
    "num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 22, num_hidden_layers: 3%s}\n"
    "  layers: all\nmesh: {tp: 2}\nnames: %s\ndata: {batch: 1, sequence: 6}\n%s";
static bool has_value(const Trace *t, const char *name) {
    for (int i = 0; i < t->n_values; i++)
        if (!strcmp(t->values[i].shape.name, name)) return true;
    return false;
}
static void test_rotated_layers(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        const char *rotates; /* one for each layer; NULL: it is refused */
    } cases[] = {
        {"", "yyy"},
        {", sliding_window: null, layer_types: [full_attention, full_attention, full_attention]",
         "yyy"},
        {", sliding_window: 3", "yyy"}, /* each fourth does not */
        {", sliding_window: 3, sliding_window_pattern: 2", "yny"},
        {", sliding_window: 3, sliding_window_pattern: 1", "nnn"},
        {", sliding_window: 3, sliding_window_pattern: LLG, layer_types: [full_attention, "
         "sliding_attention, full_attention]",
         "nyn"},
        {", sliding_window: 3, sliding_window_pattern: LLG", NULL},
        {", sliding_window: 3, sliding_window_pattern: 0", NULL},
        {", attention_bias: true", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, arena_printf(a, "%s/plan.yaml", dir),
                             arena_printf(a, exaone, cases[i].keys, "hf", ""), false);
        if (!cases[i].rotates) assert_true(diags_errors(r.d) > 0);
        for (int l = 0; cases[i].rotates && l < 3; l++) {
            assert_int_equal(has_value(r.t, arena_printf(a, "layers.%d.q_rope", l)),
                             cases[i].rotates[l] == 'y');
            assert_true(has_value(r.t, arena_printf(a, "layers.%d.attn_out_norm", l)));
            assert_false(has_value(r.t, arena_printf(a, "layers.%d.input_norm", l)));
            assert_false(has_value(r.t, arena_printf(a, "layers.%d.post_attn_norm", l)));
        }
        arena_free(a);
    }
}
/* Which layers have experts where the library reads a list, and not DeepSeek's intervals. */
static void test_expert_layers(void **state) {
    (void)state;
    static const char sizes[] =
        "hidden_size: 16, intermediate_size: 20, num_attention_heads: 4, num_key_value_heads: 4, "
        "vocab_size: 22, num_hidden_layers: 3, num_experts_per_tok: 2, moe_intermediate_size: 6",
                      latent[] = ", n_routed_experts: 4, q_lora_rank: 4, kv_lora_rank: 4, "
                                 "qk_rope_head_dim: 4, qk_nope_head_dim: 4, v_head_dim: 4";
    static const struct {
        const char *type, *keys;
        const char *experts; /* one for each layer; NULL: it is refused */
    } cases[] = {
        {"glm4_moe_lite", "", "nyy"},
        {"glm4_moe_lite", ", first_k_dense_replace: 1", "nyy"},
        {"glm4_moe_lite", ", first_k_dense_replace: 2", NULL},
        {"glm4_moe_lite", ", moe_layer_freq: 2", NULL},
        {"glm4_moe_lite", ", mlp_layer_types: [sparse, dense, sparse], first_k_dense_replace: 2",
         "yny"},
        {"glm4_moe_lite", ", mlp_layer_types: [sparse, dense]", NULL},
        {"glm4_moe_lite", ", mlp_layer_types: [sparse, dense, moe]", NULL},
        {"deepseek_v3", ", n_group: 1, topk_group: 1, mlp_layer_types: [sparse, dense, dense]",
         NULL},
        {"solar_open", ", n_routed_experts: 4", "yyy"},
        {"solar_open", ", n_routed_experts: 4, first_k_dense_replace: 1", NULL},
        {"solar_open", ", n_routed_experts: 4, moe_layer_freq: 2", NULL},
        {"hy_v3", ", num_experts: 4", "nyy"},
        {"hy_v3", ", num_experts: 4, mlp_bias: true", NULL}, /* of the shared expert too */
        {"hy_v3", ", num_experts: 4, first_k_dense_replace: 1", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *a = arena_new();
        bool low_rank = strchr("dg", cases[i].type[0]);
        PlanRun r =
            plan_run(a, arena_printf(a, "%s/plan.yaml", dir),
                     arena_printf(a,
                                  "model: {config: {model_type: %s, %s%s%s}, layers: all}\n"
                                  "mesh: {tp: 2}\ndata: {batch: 1, sequence: 6}\n",
                                  cases[i].type, sizes, low_rank ? latent : "", cases[i].keys),
                     false);
        if (!cases[i].experts != (diags_errors(r.d) > 0)) {
            run_print(&r);
            fail_msg("%s%s", cases[i].type, cases[i].keys);
        }
        for (int l = 0; cases[i].experts && l < 3; l++)
            assert_int_equal(has_value(r.t, arena_printf(a, "layers.%d.moe.router_logits", l)),
                             cases[i].experts[l] == 'y');
        arena_free(a);
    }
}
/* A norm after attention is not called as one before the feed-forward part, but by Hugging Face. */
static void test_norm_names(void **state) {
    (void)state;
    static const char *const names[][3] = {
        {"hf", "model.layers.0.post_attention_layernorm",
         "model.layers.0.post_feedforward_layernorm"},
        {"torchtune", "layers.0.sa_scale", "layers.0.mlp_scale"},
        {"gguf", "blk.0.post_attention_norm", "blk.0.post_ffw_norm"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Arena *a = arena_new();
        const char *lines =
            arena_printf(a, "plan:\n  %s: replicate\n  %s: replicate\n", names[i][1], names[i][2]);
        PlanRun r = plan_run(a, arena_printf(a, "%s/plan.yaml", dir),
                             arena_printf(a, exaone, "", names[i][0], lines), true);
        if (!r.t || r.rep.exit) {
            run_print(&r);
            fail_msg("%s", names[i][0]);
        }
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),         cmocka_unit_test(test_gpt_oss_cut),
        cmocka_unit_test(test_own_styles),     cmocka_unit_test(test_loads),
        cmocka_unit_test(test_rotated_layers), cmocka_unit_test(test_expert_layers),
        cmocka_unit_test(test_norm_names)};
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
