/* `import hf --names`: Hugging Face's own tables over recorded names and shapes, held to what the
 * library recorded of itself (../shared/golden/plans: 121 classes, 108 loads), and a small file
 * made here with every kind of rule in it. */
#include "base/file.h"
#include "import/named.h"
#include "import/recorded.h"
#include "support/child.h"
#include "support/support.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/spnamesXXXXXX";
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

/* ---- a small model with each kind of rule ---- */
static const char small[] =
    "{\"model_class\": \"Tiny\", \"model_type\": \"tiny\", \"odd\": [0.0, Infinity, -NaN],\n"
    " \"modules\": {\"embed\": \"Embedding\", \"layers.0\": \"Layer\", \"layers.0.q\": "
    "\"Linear\",\n"
    "  \"layers.0.o\": \"Linear\", \"layers.0.experts\": \"Experts\", \"layers.1.experts\": "
    "\"Experts\",\n"
    "  \"layers.1.list\": \"ModuleList\", \"layers.1.list.0\": \"Linear\", \"head\": \"Linear\"},\n"
    " \"tied_keys\": {\"head.weight\": \"embed.weight\"},\n"
    " \"parameters\": {\"embed.weight\": [11, 6], \"layers.0.q.weight\": [10, 6], "
    "\"layers.0.q.bias\": [10],\n"
    "  \"layers.0.o.weight\": [6, 10], \"layers.0.o.bias\": [6], \"layers.0.experts.gate_up\": [4, "
    "14, 6],\n"
    "  \"layers.1.experts.gate_up\": [4, 14, 6], \"layers.0.experts.down\": [4, 6, 7], "
    "\"layers.1.list.0.weight\": [8, 6],\n"
    "  \"norm.weight\": [6]},\n"
    " \"plan\": {\"tp\": {\"embed\": \"embedding_rowwise\", \"layers.*.q\": \"colwise\", "
    "\"layers.*.o\": \"rowwise\",\n"
    "   \"layers.*.experts.gate_up\": \"packed_colwise\", \"layers.*.experts.down\": \"rowwise\",\n"
    "   \"layers.*.experts\": \"moe_tp_experts\", \"layers.*.list.0\": \"colwise\", "
    "\"layers.*.list.*\": \"colwise\",\n"
    "   \"head\": \"colwise_gather_output\"},\n"
    "  \"ep\": {\"layers.*.experts.gate_up\": \"grouped_gemm\", \"layers.*.experts\": "
    "\"ep_dispatch_experts\"}}}\n";

static const char *small_file(Arena *a, const char *text) {
    const char *path = arena_printf(a, "%s/names.json", dir);
    child_write(path, text);
    return path;
}
static const NamedParam *param_of(const NamedPlan *p, const char *name) {
    for (int i = 0; i < p->n_params; i++)
        if (!strcmp(p->param[i].name, name)) return &p->param[i];
    fail_msg("no parameter %s", name);
    return NULL;
}
static void lies(const NamedPlan *p, const char *name, const char *placement, int64_t first,
                 int64_t second, int dim) {
    const NamedParam *x = param_of(p, name);
    if (!placement != !x->placement || (placement && strcmp(placement, x->placement)))
        fail_msg("%s: %s, not %s", name, x->placement ? x->placement : "plain", placement);
    if (!x->rule) return;
    assert_int_equal(x->local[0][dim], first);
    assert_int_equal(x->local[1][dim], second);
}
static void test_small(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    const NamedPlan *p = import_named(a, d, small_file(a, small), (NamedTables){2, 0, NULL, NULL});
    assert_non_null(p);
    assert_int_equal(diags_errors(d), 0);
    lies(p, "embed.weight", "S(0)", 6, 5, 0); /* torch.chunk: the first ranks have more */
    lies(p, "layers.0.q.weight", "S(0)", 5, 5, 0);
    lies(p, "layers.0.q.bias", "S(0)", 5, 5, 0);
    lies(p, "layers.0.o.weight", "S(1)", 5, 5, 1);
    lies(p, "layers.0.o.bias", "R", 6, 6, 0);
    lies(p, "layers.0.experts.gate_up", "_S(1, 2)", 8, 6, 1); /* two blocks of 7: 4 + 4, 3 + 3 */
    lies(p, "layers.0.experts.down", "S(2)", 4, 3, 2);
    lies(p, "norm.weight", NULL, 6, 6, 0);
    /* of two numbers in a row the second stays one: "layers.*.list.0" */
    assert_string_equal(param_of(p, "layers.1.list.0.weight")->rule->pattern, "layers.*.list.*");
    assert_true(strstr(diags_text(a, d), "'layers.*.list.0' matches no module") != NULL);
    arena_free(a);
}
/* Experts follow the table of ep, with all that is in them. */
static void test_experts(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    const NamedPlan *p = import_named(a, d, small_file(a, small), (NamedTables){2, 2, NULL, NULL});
    assert_int_equal(diags_errors(d), 0);
    lies(p, "layers.0.experts.gate_up", "S(0)", 2, 2, 0);
    lies(p, "layers.0.experts.down", NULL, 4, 4, 0); /* whole: its module is hooked */
    lies(p, "layers.0.q.weight", "S(0)", 5, 5, 0);
    arena_free(a);
}

/* ---- what is said ---- */
static void says(const char *from, const char *to, int code, const char *said, const char *ep) {
    Arena *a = arena_new();
    Str s = str_new(a);
    const char *at = strstr(small, from);
    assert_non_null(at);
    str_addf(&s, "%.*s%s%s", (int)(at - small), small, to, at + strlen(from));
    Ended e =
        child_run(a, &(Child){.words = WORDS("import", "hf", "--names", small_file(a, s.s), "--tp",
                                             "2", ep ? "--ep" : "--color", ep ? ep : "never")});
    if (e.code != code || !strstr(e.err, said))
        fail_msg("%s: %d, not %d, %s\n%s", to, e.code, code, e.err, e.out);
    arena_free(a);
}
static void test_refused(void **state) {
    (void)state;
    says("\"colwise\", \"layers.*.o\"", "\"colwize\", \"layers.*.o\"", 3,
         "transformers 5.23 knows no style 'colwize'", NULL);
    says("\"colwise\", \"layers.*.o\"", "\"ColwiseParallel\", \"layers.*.o\"", 3, "[E0203]", NULL);
    says("\"layers.*.list.0\"", "\"layers.*.list\"", 1, "'layers.1.list' is a ModuleList", NULL);
    says("\"embedding_rowwise\"", "\"colwise\"", 1, "'embed' is a Embedding", NULL);
    says("\"embed\": \"embedding_rowwise\"", "\"norm\": \"embedding_colwise\"", 1,
         "'norm.weight' has one dim", NULL);
    says("tiny", "tiny", 1, "4 experts cannot be shared out evenly to 3 ranks", "3");
    says("\"plan\"", "\"tables\"", 3, "it has no 'plan'", NULL);
    says("\"modules\"", "\"mods\"", 3, "a file of names has 'modules'", NULL);
    says("[11, 6]", "[11, -6]", 3, "a shape is a list", NULL);
    says("[11, 6]", "\"x\"", 3, "a shape is a list", NULL);
    says("\"embedding_rowwise\"", "7", 3, "a style is text", NULL);
    says("\"colwise_gather_output\"", "\"colwise_rep\"", 0, "", NULL);
}
static void test_command(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *file = small_file(a, small), *table = arena_printf(a, "%s/table", dir);
    child_write(table, "{\"embed\": \"embedding_colwise\"}");
    Ended e = child_run(a, &(Child){.words = WORDS("import", "hf", "--names", file, "--tp", "2",
                                                   "-q", "--tp-plan", table, "--format", "jsonl")});
    assert_int_equal(e.code, 0);
    assert_non_null(strstr(e.out, "\"name\":\"embed.weight\",\"rule\":\"embed\",\"style\":"
                                  "\"embedding_colwise\",\"axis\":\"tp\",\"placement\":\"S(1)\","
                                  "\"shape\":[11, 6],\"local\":[11, 3]}"));
    assert_non_null(strstr(e.out, "\"local\":[[4, 8, 6],[4, 6, 6]]"));
    e = child_run(a, &(Child){.words = WORDS("import", "hf", "--names", dir, "--tp", "2", "--ep",
                                             "2", "--format", "csv")});
    assert_int_equal(e.code, 0);
    assert_non_null(strstr(e.out, "Tiny,tiny,"));
    child_expect(
        &(Ended[]){child_run(a, &(Child){.words = WORDS("import", "hf", "--names", file)})}[0], 3,
        "--tp 2");
    child_expect(
        &(Ended[]){child_run(a, &(Child){.words = WORDS("import", "torch", "--names", file)})}[0],
        2, "--names");
    arena_free(a);
}

/* ---- the recordings ---- */
static const char *const axes[] = {"tp", "ep"};
typedef struct {
    int classes, placements, names, refused;
} Seen;
static bool says_so(const Json *j, const char *name, const char *text) {
    const Json *v = json_get(j, name);
    return text ? v && v->kind == JSON_STRING && !strcmp(v->s, text) : v == NULL;
}
static void hold_resolved(const NamedPlan *p, const Json *j, const Json *resolved, const char *what,
                          Seen *seen) {
    int n = 0;
    for (int i = 0; i < p->n_params; i++) {
        const NamedRule *r = p->param[i].rule;
        if (!says_so(resolved, p->param[i].name, r ? r->style : NULL))
            fail_msg("%s: %s has the rule %s", what, p->param[i].name, r ? r->pattern : "none");
        n += r != NULL;
    }
    for (int i = 0; i < p->n_modules; i++, n++)
        if (!says_so(resolved, p->module[i].name, p->module[i].rule->style))
            fail_msg("%s: module %s", what, p->module[i].name);
    seen->names += n;
    for (int i = 0; resolved && i < resolved->n; i++) {
        bool met = json_get(json_get(j, "tied_keys"), resolved->key[i]) != NULL; /* listed once */
        for (int k = 0; k < p->n_params && !met; k++)
            met = !strcmp(p->param[k].name, resolved->key[i]);
        for (int k = 0; k < p->n_modules && !met; k++)
            met = !strcmp(p->module[k].name, resolved->key[i]);
        if (!met) fail_msg("%s: the library resolves %s, too", what, resolved->key[i]);
    }
}
static void hold_unused(const NamedPlan *p, const Json *unused, const char *what) {
    int n = 0;
    for (int i = 0; i < p->n_rules; i++) {
        bool none = p->rule[i].unused, told = false;
        for (int k = 0; unused && k < unused->n; k++)
            told |= !strcmp(unused->item[k]->s, p->rule[i].pattern);
        if (none != told) fail_msg("%s: %s", what, p->rule[i].pattern);
        n += none;
    }
    assert_int_equal(n, unused ? unused->n : 0);
}
/* One table of one class. */
static void hold_class(const char *path, const Json *j, int axis, Seen *seen) {
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    const char *what = arena_printf(a, "%s %s", json_get(j, "model_class")->s, axes[axis]);
    const NamedPlan *p =
        import_named(a, d, path, (NamedTables){axis ? 0 : 2, axis ? 2 : 0, NULL, NULL});
    assert_non_null(p);
    const Json *error = json_get(j, arena_printf(a, "apply_error_%s", axes[axis])),
               *places = json_get(j, arena_printf(a, "placements_%s", axes[axis])),
               *resolved = json_get(j, arena_printf(a, "resolved_%s", axes[axis]));
    if (!error != !diags_errors(d)) fail_msg("%s: %s", what, diags_text(a, d));
    seen->refused += error != NULL;
    if (resolved) hold_resolved(p, j, resolved, what, seen);
    hold_unused(p, json_get(json_get(j, "rules_that_match_nothing"), axes[axis]), what);
    for (int i = 0; places && i < p->n_params; i++, seen->placements++)
        if (!says_so(places, p->param[i].name, p->param[i].placement))
            fail_msg("%s: %s is %s", what, p->param[i].name, p->param[i].placement);
    arena_free(a);
}
static bool is_json(const char *name) {
    size_t n = strlen(name);
    return n > 5 && !strcmp(name + n - 5, ".json");
}
/* Every class that has names: each rule finds what it found in the library, each parameter lies as
 * it lay there, and what the library refused is refused. */
static void test_recorded(void **state) {
    (void)state;
    Arena *a = arena_new();
    if (!golden_has(a, "plans/models")) {
        printf("plans/models NOT COMPARED: only in the complete set, ../shared/golden\n");
        skip();
    }
    Seen seen = {0};
    DIR *folder = opendir(golden_path(a, "plans/models"));
    for (struct dirent *e; (e = readdir(folder));) {
        if (!is_json(e->d_name)) continue;
        Arena *own = arena_new();
        const char *path = golden_path(own, "plans/models/%s", e->d_name);
        const Json *j = golden_json(own, path);
        if (json_get(j, "parameters")) {
            seen.classes++;
            for (int axis = 0; axis < 2; axis++) hold_class(path, j, axis, &seen);
        }
        arena_free(own);
    }
    closedir(folder);
    printf("%d classes, %d names with a rule, %d placements, %d refused\n", seen.classes,
           seen.names, seen.placements, seen.refused);
    assert_int_equal(seen.classes, 117);
    assert_int_equal(seen.refused, 3);
    assert_true(seen.placements > 9000);
    arena_free(a);
}

/* docs/shipped-plans.md holds what the command that stands in it says. */
static void test_document(void **state) {
    (void)state;
    Arena *a = arena_new();
    if (!golden_has(a, "plans/models")) {
        printf("docs/shipped-plans.md NOT COMPARED: only beside ../shared/golden\n");
        skip();
    }
    size_t n;
    const char *doc = child_read(a, "docs/shipped-plans.md", &n);
    Ended e = child_run(
        a, &(Child){.words = WORDS("import", "hf", "--names", golden_path(a, "plans/models"),
                                   "--tp", "2", "--ep", "2", "--format", "md")});
    const char *at = doc ? strstr(doc, "| class |") : NULL;
    if (!at || strcmp(at, e.out) != 0) fail_msg("docs/shipped-plans.md: make the table again");
    arena_free(a);
}

/* What is recorded as no fault of a plan: the library's own load of that model type came out
 * otherwise than one process, with the plan that it ships; and both forms of the command say it. */
static bool phase_unlike(const Json *run) {
    const Json *v = json_get(run, "verdict");
    for (int i = 0; i < v->n; i++)
        if (strcmp(v->value[i]->s, "equal")) return true;
    return false;
}
static void test_recorded_faults(void **state) {
    (void)state;
    Arena *a = arena_new();
    int n, seen = 0;
    const RecordedFault *row = import_recorded_rows(&n);
    assert_null(import_recorded("llama"));
    assert_null(import_recorded(NULL));
    if (!golden_has(a, "plans/runs/Youtu.tp2.json")) {
        printf("recorded faults NOT COMPARED: only beside ../shared/golden\n");
        skip();
    }
    static const char *const classes[][2] = {
        {"GptOss", "ep2"}, {"HrmText", ""}, {"Llama4", ""}, {"Youtu", ""}};
    assert_int_equal(n, 4);
    for (int i = 0; i < n; i++) {
        const Json *run = golden_json(
            a, golden_path(a, "plans/runs/%s.tp2%s.json", classes[i][0], classes[i][1]));
        const char *type = json_get(json_get(run, "config_used"), "model_type")->s,
                   *file = golden_path(a, "plans/models/%sForCausalLM.json", classes[i][0]);
        assert_ptr_equal(import_recorded(type), &row[i]);
        assert_true(phase_unlike(run));
        Ended e =
            child_run(a, &(Child){.words = WORDS("import", "hf", "--names", file, "--tp", "2")});
        if (!strstr(e.out, "recorded with transformers 5.23 (")) fail_msg("%s\n%s", file, e.out);
        seen++;
    }
    assert_int_equal(seen, n);
    arena_free(a);
}

/* ---- loads ---- */
/* A file of names made of a run's parameters and the table of its class; the run's own lines of a
 * table in a second one. NULL: the library refuses it. */
static const char *file_of_run(Arena *a, const Json *run) {
    const Json *model =
        golden_json(a, golden_path(a, "plans/models/%s.json", json_get(run, "model_class")->s));
    const Json *plan = json_get(model, "plan"), *shapes = json_get(run, "parameters"),
               *own = json_get(json_get(run, "distributed"), "tp_plan");
    JsonWriter w = json_writer(a);
    json_open(&w, NULL, '{');
    json_open(&w, "modules", '{');
    const Json *modules = json_get(model, "modules");
    for (int i = 0; i < modules->n; i++) json_str(&w, modules->key[i], modules->value[i]->s);
    json_close(&w, '}');
    json_open(&w, "parameters", '{');
    for (int i = 0; i < shapes->n; i++) {
        json_open(&w, shapes->key[i], '[');
        for (int k = 0; k < shapes->value[i]->n; k++)
            json_int(&w, NULL, shapes->value[i]->item[k]->i);
        json_close(&w, ']');
    }
    json_close(&w, '}');
    json_open(&w, "plan", '{');
    for (int axis = 0; axis < 2; axis++) {
        const Json *table = json_get(plan, axes[axis]);
        json_open(&w, axes[axis], '{');
        for (int i = 0; i < table->n; i++) {
            bool over = !axis && own && own->kind == JSON_OBJECT && json_get(own, table->key[i]);
            if (!over) json_str(&w, table->key[i], table->value[i]->s);
        }
        for (int i = 0; !axis && own && own->kind == JSON_OBJECT && i < own->n; i++)
            json_str(&w, own->key[i], own->value[i]->s);
        json_close(&w, '}');
    }
    json_close(&w, '}');
    json_close(&w, '}');
    return small_file(a, w.s.s);
}
static int hold_run(const Json *run, const char *what) {
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    const Json *with = json_get(run, "distributed"), *shapes = json_get(run, "local_shapes"),
               *ep = json_get(with, "ep_size");
    int64_t tp = json_get(with, "tp_size")->i;
    const NamedPlan *p =
        import_named(a, d, file_of_run(a, run), (NamedTables){tp, ep ? ep->i : 0, NULL, NULL});
    int n = 0;
    if (!p) fail_msg("%s: %s", what, diags_text(a, d));
    for (int i = 0; i < p->n_params; i++) {
        const NamedParam *x = &p->param[i];
        const Json *s = json_get(shapes, x->name);
        if (!s) continue;
        bool each = s->n && s->item[0]->kind == JSON_ARRAY;
        for (int r = 0; r < tp; r++, n++)
            for (int k = 0; k < x->nd; k++) {
                int64_t size = (each ? s->item[r] : s)->item[k]->i;
                if (x->local[x->ranks > 1 ? r : 0][k] != size)
                    fail_msg("%s: %s, rank %d, dim %d: %lld, not %lld", what, x->name, r, k,
                             (long long)x->local[x->ranks > 1 ? r : 0][k], (long long)size);
            }
    }
    arena_free(a);
    return n;
}
/* What the ranks of a real load had: local shapes of every parameter, rank by rank. */
static void test_loads(void **state) {
    (void)state;
    Arena *a = arena_new();
    if (!golden_has(a, "plans/runs/Llama.tp2.json") || !golden_has(a, "plans/models")) {
        printf("plans/runs NOT COMPARED: only in the complete set, ../shared/golden\n");
        skip();
    }
    int runs = 0, shapes = 0;
    DIR *folder = opendir(golden_path(a, "plans/runs"));
    for (struct dirent *e; (e = readdir(folder));) {
        if (!is_json(e->d_name)) continue;
        Arena *own = arena_new();
        const Json *run = golden_json(own, golden_path(own, "plans/runs/%s", e->d_name));
        const Json *shapes_of = json_get(run, "local_shapes");
        if (!golden_has(own, "plans/models/%s.json", json_get(run, "model_class")->s))
            printf("%s: its class is not recorded here\n", e->d_name);
        else if (shapes_of && shapes_of->n) {
            runs++;
            shapes += hold_run(run, e->d_name);
        } else printf("%s: no local shapes recorded\n", e->d_name);
        arena_free(own);
    }
    closedir(folder);
    printf("%d loads, %d local shapes\n", runs, shapes);
    assert_true(runs > 90 && shapes > 5000);
    arena_free(a);
}

/* Each expert by itself, as checkpoints have them: more names than a plan may have lines. Each is
 * found, the first as the last, and a pattern that is of the last alone. */
static void test_many_names(void **state) {
    (void)state;
    enum { LAYERS = 40, EXPERTS = 128 };
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    Str modules = str_new(a), parameters = str_new(a);
    for (int l = 0; l < LAYERS; l++)
        for (int e = 0; e < EXPERTS; e++) {
            const char *name = arena_printf(a, "model.layers.%d.mlp.e%d.up_proj", l, e);
            str_addf(&modules, ",\n\"%s\": \"Linear\"", name);
            str_addf(&parameters, "%s\n\"%s.weight\": [%d, 6]", l || e ? "," : "", name, 4 + 2 * e);
        }
    const char *path = small_file(
        a, arena_printf(a,
                        "{\"model_class\": \"X\", \"model_type\": \"x\", \"plan\": {\"tp\": "
                        "{\"model.layers.*.mlp.e127.up_proj\": \"colwise\"}},\n\"modules\": "
                        "{\"model\": \"M\"%s},\n\"parameters\": {%s}}",
                        modules.s, parameters.s));
    const NamedPlan *p = import_named(a, d, path, (NamedTables){2, 0, NULL, NULL});
    if (!p || d->n) fail_msg("%s", diags_text(a, d));
    assert_int_equal(p->n_params, LAYERS * EXPERTS);
    assert_int_equal(p->n_modules, LAYERS);
    assert_int_equal(p->rule[0].params, LAYERS);
    int cut = 0;
    for (int i = 0; i < p->n_params; i++) {
        const NamedParam *x = &p->param[i];
        cut += x->rule != NULL;
        if (x->rule) assert_int_equal(x->local[1][0], (4 + 2 * 127) / 2);
    }
    assert_int_equal(cut, LAYERS);
    assert_string_equal(p->param[p->n_params - 1].name, "model.layers.39.mlp.e127.up_proj.weight");
    arena_free(a);
}

/* As many names as there may be, of as many modules, and a table of as many patterns, of which half
 * find nothing: in time and memory that grow with the file. */
static void test_most_names(void **state) {
    (void)state;
    enum { N = 50000 };
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    Str modules = str_new(a), parameters = str_new(a), rules = str_new(a);
    for (int i = 0; i < N; i++) {
        const char *comma = i ? "," : "";
        str_addf(&modules, "%s\"m%d\":\"L\"", comma, i);
        str_addf(&parameters, "%s\"m%d.weight\":[4,6]", comma, i);
        str_addf(&rules, "%s\"%s%d\":\"colwise\"", comma, i % 2 ? "m" : "n", i);
    }
    const char *path = small_file(
        a, arena_printf(a, "{\"plan\": {\"tp\": {%s}},\n\"modules\": {%s},\n\"parameters\": {%s}}",
                        rules.s, modules.s, parameters.s));
    const NamedPlan *p = import_named(a, d, path, (NamedTables){2, 0, NULL, NULL});
    if (!p) fail_msg("%s", diags_text(a, d));
    int cut = 0, unused = 0;
    for (int i = 0; i < p->n_params; i++) cut += p->param[i].rule != NULL;
    for (int i = 0; i < p->n_rules; i++) unused += p->rule[i].unused;
    assert_int_equal(p->n_params, N);
    assert_int_equal(p->n_rules, N);
    assert_int_equal(cut, N / 2);
    assert_int_equal(unused, N / 2);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_most_names), cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_small),      cmocka_unit_test(test_experts),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_command),
        cmocka_unit_test(test_recorded),   cmocka_unit_test(test_loads),
        cmocka_unit_test(test_document),   cmocka_unit_test(test_recorded_faults),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
