/* Counts what random plans say and do, against the program's own tables. See coverage.h. */
#include "coverage.h"
#include "layout/redistribute.h"
#include "model/model.h"
#include "ops/op.h"
#include "plan/read.h"
#include <string.h>

/* What no legal random plan can show, and why. A name that ends in * stands for all that begin so.
 */
static const struct {
    const char *name, *why;
} excused[] = {
    {"expect*", "judged by `check`, after the run"},
    {"faults*", "plants a mistake: the mutations"},
    {"gradients", "plants a mistake: plans/bugs and test_backward"},
    {"moe.dispatch*", "groups and lines for `experts` are drawn instead: test_experts"},
    {"moe.axis*", "groups and lines for `experts` are drawn instead: test_experts"},
    {"data.integers*",
     "the same plan with other numbers, too large for a chain of layers: test_pictures"},
    {"moe.etp*", "groups and lines for `experts` are drawn instead: test_experts"},
    {"moe.aux_loss: per_shard", "is wrong on purpose: test_balance"},
    {"counts", "the unsharded model's, of a batch in micro-batches: test_balance, test_rows"},
    {"moe.fsdp_dim*", "groups and lines for `experts` are drawn instead: test_experts"},
    {"pipeline.file", "an order of its own: test_pipelines"},
    {"pipeline.stage_to_rank", "an order of its own: test_pipelines"},
    {"data.master: bf16", "is what bf16 has without it: test_bf16"},
    {"data.master: f64", "is computed in f32: test_bf16"},
    {"data.moments: bf16", "is what bf16 has without it: test_bf16"},
    {"data.moments: f64", "is computed in f32: test_bf16"},
    {"data.gradients: bf16", "is what bf16 has without it: test_bf16"},
    {"data.gradients: f64", "no more than a width on machines: test_lives"},
    {"data.execute*", "says in what to compute a plan of another dtype: test_verdicts"},
    {"data_parallel.reduce: avg", "refused by this version"},
    {"style.kwargs*", "refused by this version"},
    {"model.weights_names: torchtitan", "needs a file with such names: test_weights"},
    {"model.weights_names: torchtune", "needs a file with such names: test_weights"},
    {"model.weights_names: megatron", "needs a file with such names: test_weights"},
    {"model.weights_names: gguf", "needs a file with such names: test_weights"},
    {"layernorm*", "of a family that random plans do not draw: test_families, test_ops"},
    {"softcap", "of a family that random plans do not draw: test_families, test_ops"},
    {"clamp", "of a family that random plans do not draw: test_families, test_ops"},
    {"limit_pairs", "of a family that random plans do not draw: test_families, test_ops"},
    {"swiglu_up_plus", "of a family that random plans do not draw: test_families, test_ops"},
    {"attention_sink", "of a family that random plans do not draw: test_families, test_ops"},
    {"position", "of a family that random plans do not draw: test_families, test_ops"},
    {"xielu", "of a family that random plans do not draw: test_families, test_ops"},
};
static const char *why_not(const char *name) {
    for (size_t i = 0; i < sizeof excused / sizeof *excused; i++) {
        size_t n = strlen(excused[i].name);
        bool prefix = excused[i].name[n - 1] == '*';
        if (prefix ? !strncmp(name, excused[i].name, n - 1) : !strcmp(name, excused[i].name))
            return excused[i].why;
    }
    return NULL;
}

static void expect(Coverage *c, const char *group, const char *name) {
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->f[i].group, group) && !strcmp(c->f[i].name, name)) return;
    *ARENA_PUSH(c->a, c->f, c->n, c->cap) =
        (Feature){.group = group, .name = arena_strdup(c->a, name), .excused = why_not(name)};
}
static bool see(Coverage *c, const char *group, const char *name) {
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->f[i].group, group) && !strcmp(c->f[i].name, name)) return c->f[i].now = true;
    return false;
}
/* The same for what must be in the tables. */
static void see_known(Coverage *c, const char *group, const char *name) {
    if (see(c, group, name)) return;
    printf("%s '%s' is in no table\n", group, name);
    c->unknown++;
}

/* What the tables do not list beforehand: counted when it is seen. */
static void see_more(Coverage *c, const char *group, const char *name) {
    if (see(c, group, name)) return;
    *ARENA_PUSH(c->keep, c->f, c->n, c->cap) =
        (Feature){.group = group, .name = arena_strdup(c->keep, name), .now = true};
}

/* ---- what there is ---- */
static bool has_words(const Key *k) {
    return k->read == read_word_text || k->read == read_word_int || k->read == read_word_bool;
}
static const Word *words_of(Coverage *c, const Key *k) {
    if (k->read == plan_read_activation) return plan_activations(c->a);
    return has_words(k) ? k->arg : NULL;
}
static bool is_switch(const Key *k) { return k->read == read_bool || k->read == read_flag; }
static const Key *nested(const Key *k) {
    if (k->read == read_sub) return ((const Sub *)k->arg)->keys;
    if (k->read == read_lines || k->read == read_styles) return plan_style_keys;
    return !strcmp(k->name, "expect") ? plan_expect_keys : NULL;
}
/* Lines of `plan` and styles of the plan's own have the same fields. */
static const char *below(Coverage *c, const char *where, const Key *k) {
    bool named = k->read == read_lines || k->read == read_styles;
    return named ? "style" : arena_printf(c->a, "%s%s", where, k->name);
}
static void expect_keys(Coverage *c, const Key *keys, const char *where) {
    for (const Key *k = keys; k->name; k++) {
        const char *name = arena_printf(c->a, "%s%s", where, k->name);
        expect(c, "key", name);
        for (const Word *w = words_of(c, k); w && w->word; w++)
            expect(c, "key", arena_printf(c->a, "%s: %s", name, w->word));
        if (is_switch(k))
            expect(c, "key", arena_printf(c->a, "%s: true", name)),
                expect(c, "key", arena_printf(c->a, "%s: false", name));
        if (nested(k)) expect_keys(c, nested(k), arena_printf(c->a, "%s.", below(c, where, k)));
    }
}
/* Keys of a config that change the mathematics; the harmless ones are tested with the configs. */
static const char *const config_keys[] = {"hidden_size",
                                          "intermediate_size",
                                          "num_hidden_layers",
                                          "num_attention_heads",
                                          "num_key_value_heads",
                                          "head_dim",
                                          "vocab_size",
                                          "max_position_embeddings",
                                          "rms_norm_eps",
                                          "rope_theta",
                                          "partial_rotary_factor",
                                          "tie_word_embeddings",
                                          "attention_bias",
                                          "mlp_bias",
                                          "use_sliding_window",
                                          "hidden_act",
                                          "model_type",
                                          "rope_parameters",
                                          "rope_scaling",
                                          "sliding_window",
                                          "layer_types",
                                          "qk_norm",
                                          "q_bias",
                                          "k_bias",
                                          "v_bias",
                                          "o_bias",
                                          "gate_bias",
                                          "up_bias",
                                          "down_bias",
                                          "packed_mlp",
                                          "router"};
static const char *const placements[] = {
    "replicate",   "shard(dim)",      "shard(-dim)",      "shard(letter)", "partial", "invariant",
    "varying_use", "contiguous(dim)", "contiguous(-dim)", "local",         "null"};
static const char *const passes[] = {"forward",   "loss",       "backward",
                                     "gradients", "parameters", "optimizer"};

Coverage *coverage_new(Arena *a) {
    Coverage *c = ARENA_NEW(a, Coverage);
    c->a = c->keep = a;
    expect_keys(c, plan_keys, "");
    for (size_t i = 0; i < sizeof config_keys / sizeof *config_keys; i++)
        expect(c, "config", config_keys[i]);
    int n;
    const StyleRow *s = style_rows(&n);
    for (int i = 0; i < n; i++) {
        expect(c, "style", s[i].style.name);
        for (const char *w = s[i].aliases; w && *w; w += strcspn(w, " "), w += *w == ' ')
            expect(c, "style", arena_strndup(a, w, strcspn(w, " ")));
    }
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        expect(c, "placement", placements[i]);
    const RecipeRow *r = plan_recipes(&n);
    for (int i = 0; i < n; i++)
        if (r[i].lines) expect(c, "recipe", r[i].name);
    for (int i = 0; i < n_ops; i++) expect(c, "op", op_list[i]->name);
    for (int k = MOVE_SLICE; k < MOVE_KINDS; k++)
        expect(c, "move", k == MOVE_ALL_REDUCE_MAX ? "all_reduce (max)" : move_name((MoveKind)k));
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) expect(c, "steps of", passes[i]);
    return c;
}

/* ---- what a plan says ---- */
static void see_place(Coverage *c, const Yaml *y) {
    if (y->kind == YAML_LIST) {
        for (int i = 0; i < y->n; i++) see_place(c, y->item[i]);
        return;
    }
    if (y->kind == YAML_MAP) {
        for (int i = 0; i < y->n; i++) see_place(c, y->pair[i].value);
        return;
    }
    const char *open = yaml_is_null(y) ? NULL : strchr(y->s, '('),
               *name = yaml_is_null(y) ? "null" : y->s;
    if (open) {
        const char *arg = open[1] == '-' ? "(-dim)" : open[1] >= 'a' ? "(letter)" : "(dim)";
        name = arena_printf(c->a, "%.*s%s", (int)(open - y->s), y->s, arg);
    }
    see_known(c, "placement", name);
}
static void see_style(Coverage *c, const Yaml *y) {
    if (y->kind == YAML_MAP) y = yaml_get((Yaml *)(uintptr_t)y, "style");
    if (y && y->kind == YAML_SCALAR) see(c, "style", y->s); /* not a style of the plan's own */
}
static bool takes_places(const char *key) {
    static const char *const keys[] = {"input",  "desired_input", "output", "desired_output",
                                       "weight", "bias",          "params", "block_input"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i], key)) return true;
    return false;
}
static void see_keys(Coverage *c, const Key *keys, const char *where, const char *shorthand,
                     const Yaml *y) {
    YamlPair one = {.key = shorthand, .value = (Yaml *)(uintptr_t)y};
    const YamlPair *pair = y->kind == YAML_MAP ? y->pair : &one;
    if (y->kind != YAML_MAP && !shorthand) return;
    for (int i = 0; i < (y->kind == YAML_MAP ? y->n : 1); i++) {
        const Key *k = keys;
        while (k->name && strcmp(k->name, pair[i].key) != 0) k++;
        if (!k->name) continue;
        const Yaml *v = pair[i].value;
        const char *name = arena_printf(c->a, "%s%s", where, k->name);
        see_known(c, "key", name);
        if (v->kind == YAML_SCALAR && (words_of(c, k) || is_switch(k)))
            see_known(c, "key", arena_printf(c->a, "%s: %s", name, v->s));
        if (!strcmp(k->name, "config") && v->kind == YAML_MAP)
            for (int j = 0; j < v->n; j++) see(c, "config", v->pair[j].key);
        if (k->read == read_recipe) see_known(c, "recipe", v->s);
        if (takes_places(k->name) && (keys == plan_style_keys || !strcmp(k->name, "block_input")))
            see_place(c, v);
        const char *inner = arena_printf(c->a, "%s.", below(c, where, k));
        if (k->read == read_sub) see_keys(c, nested(k), inner, ((const Sub *)k->arg)->shorthand, v);
        if (k->read == read_lines || k->read == read_styles)
            for (int j = 0; j < v->n; j++) {
                see_style(c, v->pair[j].value);
                see_keys(c, plan_style_keys, inner, "style", v->pair[j].value);
            }
    }
}
static void see_trace(Coverage *c, const Trace *t) {
    for (int i = 0; i < t->n_computes; i++) {
        const char *op = t->computes[i].op;
        if (strstr(op, "_backward")) see_more(c, "adjoint of", op);
        else see_known(c, "op", !strcmp(op, "linear") ? "einsum" : op);
        see(c, "steps of", phase_text(t->computes[i].pass));
    }
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *x = &t->collectives[i];
        bool max = x->reduce && !strcmp(x->reduce, "max");
        see_known(c, "move", max ? "all_reduce (max)" : x->op);
        see(c, "steps of", phase_text(x->pass));
    }
    for (int i = 0; i < t->n_moves; i++) see(c, "move", t->moves[i].op);
}
void coverage_plan(Coverage *c, const char *text, const Trace *t, int n_axes, int pass) {
    Arena *tmp = arena_new();
    c->a = tmp; /* names made here are only looked up */
    const Yaml *y = yaml_parse(tmp, diags_new(tmp), "random.yaml", text, strlen(text));
    for (int i = 0; i < c->n; i++) c->f[i].now = false;
    if (y) see_keys(c, plan_keys, "", NULL, y);
    if (t) see_trace(c, t);
    for (int i = 0; i < c->n; i++) {
        c->f[i].axes[n_axes] += c->f[i].now;
        c->f[i].pass[pass] += c->f[i].now;
    }
    c->a = c->keep;
    arena_free(tmp);
}

/* ---- output ---- */
void coverage_save(const Coverage *c, FILE *f) {
    for (int i = 0; i < c->n; i++)
        fprintf(f, "%ld %ld %ld %ld %ld %ld %s|%s\n", c->f[i].axes[1], c->f[i].axes[2],
                c->f[i].axes[3], c->f[i].pass[0], c->f[i].pass[1], c->f[i].pass[2], c->f[i].group,
                c->f[i].name);
    fprintf(f, "end\n");
}
bool coverage_load(Coverage *c, FILE *f) {
    char group[64], name[256];
    long x[6];
    while (fscanf(f, "%ld %ld %ld %ld %ld %ld %63[^|]|%255[^\n]", &x[0], &x[1], &x[2], &x[3], &x[4],
                  &x[5], group, name) == 8) {
        see_more(c, arena_strdup(c->keep, group), name);
        for (int i = 0; i < c->n; i++)
            if (!strcmp(c->f[i].group, group) && !strcmp(c->f[i].name, name))
                for (int k = 0; k < 3; k++)
                    c->f[i].axes[k + 1] += x[k], c->f[i].pass[k] += x[k + 3];
    }
    return fscanf(f, "%3s", name) == 1 && !strcmp(name, "end");
}
int coverage_print(const Coverage *c, FILE *f, bool all) {
    int never = 0, open = 0;
    const char *group = "";
    for (int i = 0; i < c->n; i++) {
        const Feature *x = &c->f[i];
        long n = x->axes[1] + x->axes[2] + x->axes[3];
        open += !x->excused;
        if (!n && !x->excused) never++, fprintf(f, "NEVER DRAWN: %s %s\n", x->group, x->name);
        if (!all || (x->excused && !n)) continue;
        if (strcmp(group, x->group))
            fprintf(f, "%-10s %-38s %8s | %7s %7s %7s | %8s %8s %8s\n", group = x->group, "",
                    "plans", "1 axis", "2 axes", "3 axes", "forward", "backward", "train");
        fprintf(f, "%-10s %-38s %8ld | %7ld %7ld %7ld | %8ld %8ld %8ld\n", "", x->name, n,
                x->axes[1], x->axes[2], x->axes[3], x->pass[0], x->pass[1], x->pass[2]);
    }
    for (int i = 0; all && i < c->n; i++)
        if (c->f[i].excused && !(c->f[i].axes[1] + c->f[i].axes[2] + c->f[i].axes[3]))
            fprintf(f, "not drawn: %s (%s)\n", c->f[i].name, c->f[i].excused);
    fprintf(f, "language and engine: %d of %d rows drawn\n", open - never, open);
    return never;
}
