/* What families of models have of their own: their defaults, their layers, latent attention. Adding
 * a family is one row; its keys are a table of config.c. */
#include "model/config.h"
#include <string.h>

/* qkv, o, mlp: who has biases. eps, theta, kv_heads, head_dim, activation, tied: what a file means
 * that does not say. */
#define DENSE .eps = 1e-6, .theta = 1e4
static const OwnRope apertus_rope = {"llama3", 8, 1, 4, 8192, UNSET},
                     cwm_rope = {"llama3", 16, 1, 4, 8192, UNSET},
                     gpt_oss_rope = {"yarn", 32, 0, 0, 4096, 0};
static const Family families[] = {
    {"llama", BY_CONFIG, BY_CONFIG, BY_CONFIG, DENSE},
    {"mistral", NEVER, NEVER, NEVER, DENSE, .kv_heads = 8, .window = WINDOW_ALWAYS},
    {"ministral", NEVER, NEVER, NEVER, DENSE, .kv_heads = 8, .window = WINDOW_TYPES},
    {"qwen2", ALWAYS, NEVER, NEVER, DENSE, .kv_heads = 32, .window = WINDOW_SWITCHED},
    {"qwen3", BY_CONFIG, BY_CONFIG, NEVER, true, DENSE, .kv_heads = 32, .head_dim = 128,
     .window = WINDOW_SWITCHED},
    {"seed_oss", ALWAYS_UNLESS, BY_CONFIG, BY_CONFIG, DENSE, .has = HAS_OUT_BIAS, .kv_heads = 8,
     .head_dim = 128},
    {"smollm3", BY_CONFIG, BY_CONFIG, BY_CONFIG, .eps = 1e-6, .theta = 2e6, .has = HAS_NOPE,
     .kv_heads = 4, .window = WINDOW_UNROTATED, .tied = true},
    {"ernie4_5", BY_CONFIG, BY_CONFIG, BY_CONFIG, .has = HAS_ONE_BIAS, .order = ROPE_NEIGHBOURS,
     .eps = 1e-5, .theta = 5e5, .kv_heads = 2, .head_dim = 128, .tied = true},
    {"helium", BY_CONFIG, NEVER, BY_CONFIG, .order = ROPE_NEIGHBOURS, .eps = 1e-8, .theta = 1e5,
     .kv_heads = 20, .head_dim = 128},
    {"granite", BY_CONFIG, BY_CONFIG, BY_CONFIG, DENSE, .has = HAS_MULTIPLIERS},
    {"arcee", BY_CONFIG, BY_CONFIG, BY_CONFIG, .eps = 1e-5, .theta = 1e4, .shape = SHAPE_UNGATED,
     .activation = "relu2"},
    {"gemma", BY_CONFIG, BY_CONFIG, NEVER, DENSE, .kv_heads = 16, .head_dim = 256,
     .shape = SHAPE_NORM_PLUS | SHAPE_INPUT_SQRT | SHAPE_TANH_GELU,
     .activation = "gelu_pytorch_tanh", .tied = true},
    {"exaone4", NEVER, NEVER, NEVER, true, .eps = 1e-5, .theta = 1e4, .has = HAS_PATTERN,
     .kv_heads = 32, .window = WINDOW_ROTATED, .shape = SHAPE_NORMS_AFTER},
    {"glm", ALWAYS_UNLESS, NEVER, NEVER, .order = ROPE_NEIGHBOURS, .eps = 1.5625e-7, .theta = 1e4,
     .kv_heads = 2, .head_dim = 128, .partial = 0.5, .shape = SHAPE_PACKED_MLP},
    {"glm4", ALWAYS_UNLESS, NEVER, NEVER, .order = ROPE_NEIGHBOURS, .eps = 1.5625e-7, .theta = 1e4,
     .kv_heads = 2, .head_dim = 128, .partial = 0.5, .shape = SHAPE_PACKED_MLP | SHAPE_NORMS_AROUND,
     .naming = NAMING_GLM4},
    {"gemma2", BY_CONFIG, BY_CONFIG, NEVER, DENSE, .has = HAS_CAPS, .kv_heads = 4, .head_dim = 256,
     .window = WINDOW_PATTERN, .pattern = 2, .cap_scores = 50, .cap_logits = 30,
     .query_scalar = 256, .shape = SHAPE_NORM_PLUS | SHAPE_INPUT_SQRT | SHAPE_NORMS_AROUND,
     .activation = "gelu_pytorch_tanh", .tied = true, .naming = NAMING_GEMMA},
    {"gemma3_text", BY_CONFIG, BY_CONFIG, NEVER, true, .eps = 1e-6, .theta = 1e6,
     .has = HAS_CAPS | HAS_TWO_THETAS | HAS_LOCAL_FREQ | HAS_PATTERN, .kv_heads = 4,
     .head_dim = 256, .window = WINDOW_PATTERN, .pattern = 6, .query_scalar = 256,
     .windowed_theta = 1e4, .shape = SHAPE_NORM_PLUS | SHAPE_INPUT_SQRT | SHAPE_NORMS_AROUND,
     .activation = "gelu_pytorch_tanh", .tied = true, .naming = NAMING_GEMMA},
    {"nemotron", BY_CONFIG, BY_CONFIG, BY_CONFIG, .eps = 1e-5, .theta = 1e4, .has = HAS_NORM_EPS,
     .partial = 0.5, .shape = SHAPE_UNGATED | SHAPE_LAYERNORM | SHAPE_NORM_PLUS,
     .activation = "relu2"},
    {"apertus", BY_CONFIG, BY_CONFIG, NEVER, true, .eps = 1e-5, .theta = 12e6,
     .rope = &apertus_rope, .shape = SHAPE_UNGATED | SHAPE_XIELU, .activation = "xielu",
     .naming = NAMING_APERTUS},
    {"phi3", NEVER, NEVER, NEVER, .eps = 1e-5, .theta = 1e4, .has = HAS_LONGROPE,
     .window = WINDOW_GIVEN, .partial = 1, .shape = SHAPE_PACKED_QKV | SHAPE_PACKED_MLP},
    {"olmo", BY_CONFIG, BY_CONFIG, NEVER, .eps = 1e-5, .theta = 1e4, .has = HAS_CLIP,
     .shape = SHAPE_LAYERNORM | SHAPE_NORM_BARE},
    {"olmo2", BY_CONFIG, BY_CONFIG, NEVER, true, .eps = 1e-5, .theta = 1e4,
     .shape = SHAPE_NORMS_AFTER | SHAPE_QK_WIDE},
    {"olmo3", BY_CONFIG, BY_CONFIG, NEVER, true, .eps = 1e-5, .theta = 5e5, .has = HAS_TWO_THETAS,
     .window = WINDOW_PATTERN, .windowed_theta = 5e5, .shape = SHAPE_NORMS_AFTER | SHAPE_QK_WIDE},
    {"olmoe", BY_CONFIG, BY_CONFIG, NEVER, true, .eps = 1e-5, .theta = 1e4,
     .has = HAS_EXPERTS | HAS_CLIP, .shape = SHAPE_QK_WIDE},
    {"flex_olmo", BY_CONFIG, BY_CONFIG, NEVER, true, .eps = 1e-6, .theta = 5e5, .has = HAS_EXPERTS,
     .shape = SHAPE_NORMS_AFTER | SHAPE_QK_WIDE},
    {"cohere", BY_CONFIG, BY_CONFIG, NEVER, .eps = 1e-5, .theta = 5e5, .order = ROPE_NEIGHBOURS,
     .has = HAS_LAYER_EPS | HAS_LOGIT_SCALE | HAS_QK_SWITCH, .logit_scale = 0.0625,
     .shape = SHAPE_LAYERNORM | SHAPE_NORM_PLAIN | SHAPE_PARALLEL | SHAPE_NORM_SHARED,
     .tied = true},
    {"cohere2", BY_CONFIG, BY_CONFIG, NEVER, .eps = 1e-5, .theta = 1e4, .order = ROPE_NEIGHBOURS,
     .has = HAS_LAYER_EPS | HAS_LOGIT_SCALE | HAS_PATTERN, .window = WINDOW_ONLY_ROTATED,
     .logit_scale = 0.0625,
     .shape = SHAPE_LAYERNORM | SHAPE_NORM_PLAIN | SHAPE_PARALLEL | SHAPE_NORM_SHARED,
     .tied = true},
    {"cohere2_moe", BY_CONFIG, BY_CONFIG, NEVER, .eps = 1e-5, .theta = 1e4,
     .order = ROPE_NEIGHBOURS,
     .has = HAS_LAYER_EPS | HAS_LOGIT_SCALE | HAS_PATTERN | HAS_EXPERTS | HAS_MLP_TYPES |
            HAS_COHERE_EXPERTS,
     .window = WINDOW_ONLY_ROTATED, .logit_scale = 0.0625,
     .shape = SHAPE_LAYERNORM | SHAPE_NORM_PLAIN | SHAPE_PARALLEL | SHAPE_NORM_SHARED, .tied = true,
     .whole = MODULES_SHARED},
    {"gpt_neox", ALWAYS_UNLESS, ALWAYS_UNLESS, ALWAYS, .eps = 1e-5, .theta = 1e4,
     .has = HAS_LAYER_EPS | HAS_ROTARY_PCT, .partial = 0.25, .activation = "gelu",
     .shape = SHAPE_LAYERNORM | SHAPE_UNGATED | SHAPE_PARALLEL | SHAPE_QKV_BY_HEAD,
     .naming = NAMING_NEOX},
    {"gpt2", ALWAYS, ALWAYS, ALWAYS, .eps = 1e-5, .theta = 1e4, .has = HAS_LAYER_EPS | HAS_GPT2,
     .activation = "gelu_new",
     .shape = SHAPE_LAYERNORM | SHAPE_UNGATED | SHAPE_PACKED_QKV | SHAPE_LEARNED | SHAPE_TURNED,
     .tied = true, .naming = NAMING_GPT2},
    {"megatron_gpt", BY_CONFIG, BY_CONFIG, BY_CONFIG, .eps = 1e-5, .theta = 1e4,
     .has = HAS_LAYER_EPS | HAS_GPT2, .activation = "gelu_pytorch_tanh",
     .shape = SHAPE_LAYERNORM | SHAPE_UNGATED | SHAPE_QKV_BY_HEAD | SHAPE_LEARNED, .tied = true,
     .naming = NAMING_GPT2},
    {"mixtral", NEVER, NEVER, NEVER, DENSE, .has = HAS_EXPERTS},
    {"qwen3_moe", BY_CONFIG, BY_CONFIG, NEVER, true, DENSE, .has = HAS_EXPERTS | HAS_SPARSE,
     .window = WINDOW_SWITCHED},
    {"deepseek_v3", BY_CONFIG, BY_CONFIG, NEVER, DENSE,
     .has = HAS_LATENT | HAS_EXPERTS | HAS_DEEPSEEK_EXPERTS, .order = ROPE_NEIGHBOURS_TO_HALVES,
     .whole = MODULES_LATENT},
    {"glm4_moe_lite", BY_CONFIG, BY_CONFIG, NEVER, .eps = 1e-5, .theta = 1e4,
     .has = HAS_LATENT | HAS_EXPERTS | HAS_DEEPSEEK_EXPERTS | HAS_MLP_TYPES,
     .order = ROPE_NEIGHBOURS_TO_HALVES, .whole = MODULES_SHARED},
    {"youtu", BY_CONFIG, BY_CONFIG, NEVER, DENSE, .has = HAS_LATENT,
     .order = ROPE_NEIGHBOURS_TO_HALVES, .tied = true, .whole = MODULES_LATENT},
    {"cwm", NEVER, NEVER, BY_CONFIG, .eps = 1e-5, .theta = 1e6, .rope = &cwm_rope, .kv_heads = 8,
     .head_dim = 128, .window = WINDOW_BUT_FIRST, .window_size = 8192},
    {"solar_open", BY_CONFIG, NEVER, NEVER, .eps = 1e-5, .theta = 1e6,
     .has = HAS_EXPERTS | HAS_DEEPSEEK_EXPERTS, .kv_heads = 8, .head_dim = 128,
     .whole = MODULES_SHARED},
    {"hy_v3", BY_CONFIG, BY_CONFIG, NEVER, true, .eps = 1e-5, .theta = 11158840,
     .has = HAS_EXPERTS | HAS_MLP_TYPES | HAS_HY3, .kv_heads = 8, .head_dim = 128,
     .naming = NAMING_HY3},
    {"gpt_oss", ALWAYS_UNLESS, ALWAYS_UNLESS, NEVER, .eps = 1e-5, .theta = 150000,
     .rope = &gpt_oss_rope, .has = HAS_EXPERTS | HAS_GPT_OSS, .kv_heads = 8, .head_dim = 64,
     .window = WINDOW_PATTERN, .pattern = 2, .window_size = 128,
     .shape = SHAPE_EXPERTS_TURNED | SHAPE_SINKS | SHAPE_EXPERT_BIASES, .naming = NAMING_GPT_OSS,
     .whole = MODULES_EMBEDDING | MODULES_QKV | MODULES_GATE | MODULES_UP | MODULES_SHARED |
              MODULES_EXPERTS_TURNED},
    {"flint", BY_CONFIG, BY_CONFIG, NEVER, true, DENSE,
     .has = HAS_EXPERTS | HAS_SPARSE | HAS_SHARED_WIDTH, .kv_heads = 4, .head_dim = 128,
     .window = WINDOW_AFTER_TWO, .window_size = 513, .dense = 2, .shape = SHAPE_SINKS,
     .naming = NAMING_FLINT, .whole = MODULES_QKV | MODULES_QK_NORM},
    {"aria_text", BY_CONFIG, BY_CONFIG, NEVER, DENSE, .has = HAS_EXPERTS | HAS_ARIA,
     .shape = SHAPE_EXPERTS_TURNED, .naming = NAMING_ROUTER},
    {"llama4_text", BY_CONFIG, BY_CONFIG, NEVER,
     .has = HAS_CHUNKS | HAS_NOPE | HAS_EXPERTS | HAS_QK_SWITCH, .order = ROPE_NEIGHBOURS,
     .eps = 1e-5, .theta = 5e5, .shape = SHAPE_EXPERTS_TURNED, .naming = NAMING_LLAMA4},
};
enum { N_FAMILIES = sizeof families / sizeof *families };
static const Family *find(const char *type) {
    for (int i = 0; i < N_FAMILIES; i++)
        if (!strcmp(families[i].type, type)) return &families[i];
    return NULL;
}
bool model_family_runs(const char *type) { return find(type) != NULL; }
unsigned model_family_modules(const char *type) {
    const Family *f = find(type);
    if (!f) return 0;
    if (f->naming == NAMING_NEOX) return MODULES_NEOX;
    if (f->naming == NAMING_GPT2) return MODULES_UNSHIPPED;
    bool wide = f->shape & SHAPE_QK_WIDE;
    bool packed = f->shape & SHAPE_PACKED_MLP, gate = !packed && !(f->shape & SHAPE_UNGATED);
    unsigned experts = f->shape & SHAPE_EXPERTS_TURNED ? MODULES_EXPERTS_TURNED : MODULES_EXPERTS;
    unsigned biased = f->shape & SHAPE_EXPERT_BIASES ? MODULES_EXPERTS_BIASED : 0u;
    return (MODULES_ANY | MODULES_EMBEDDING | biased |
            (f->qk_norm && !wide ? MODULES_QK_NORM : 0u) | (gate ? MODULES_GATE : 0u) |
            (packed ? MODULES_PACKED_MLP : MODULES_UP) |
            (f->has & HAS_EXPERTS ? experts | MODULES_SHARED : 0u) |
            (f->has & HAS_SHARED_WIDTH ? MODULES_SHARED_ONE : 0u) |
            (f->has & HAS_LATENT           ? MODULES_LATENT
             : wide                        ? MODULES_QKV_WHOLE
             : f->shape & SHAPE_PACKED_QKV ? MODULES_PACKED_QKV
                                           : MODULES_QKV)) &
           ~f->whole;
}
static const char *families_text(Arena *a) {
    Str s = str_new(a);
    for (int i = 0; i < N_FAMILIES; i++)
        str_addf(&s, "%s%s", i == 0 ? "" : i + 1 < N_FAMILIES ? ", " : " and ", families[i].type);
    str_add(&s, " run in this version");
    return s.s;
}

void config_family_preset(const Preset *s, Raw *r) {
    r->model_type = s->family;
    r->q_rank = s->q_rank, r->kv_rank = s->kv_rank;
    r->nope = s->nope, r->rope = s->rope, r->v_dim = s->v_dim;
    r->beta_fast = s->yarn.fast, r->beta_slow = s->yarn.slow;
    r->mscale = s->yarn.mscale, r->mscale_all = s->yarn.mscale_all;
    if (s->yarn.fast > 0) r->truncate = s->yarn.truncate;
    r->F_dense = s->F;
    r->chunk = s->chunk, r->unrotated_every = s->unrotated_every;
    r->use_qk_norm = !s->no_qk_l2;
    if (s->chunk) r->F = s->Fe, r->Fe = UNSET; /* as the keys of Llama 4 have it */
    if (!s->experts_every) return;             /* as the family has them */
    r->experts_every = s->experts_every;
    r->experts_from = s->experts_from;
}

const char *model_config_inside(Arena *a, const char *text, size_t n) {
    const char *why;
    int line, col;
    const Json *inner = json_get(json_parse(a, text, n, &why, &line, &col), "text_config"),
               *type = inner && inner->kind == JSON_OBJECT ? json_get(inner, "model_type") : NULL;
    if (!type || type->kind != JSON_STRING || !find(type->s)) return NULL;
    return arena_printf(a,
                        "write the object `text_config` to a file of its own: model_type '%s' "
                        "runs",
                        type->s);
}
const Family *config_family(Config *c, const Raw *r) {
    Loc top = {c->file, 1, 1};
    /* whose mathematics is it? `architectures` names a class, which nothing here reads */
    if (!r->model_type && c->file)
        diag_error(c->d, "E0208", top,
                   arena_printf(c->a,
                                "add it, or say it in the plan: model: {config: {model_type: "
                                "llama}}; %s",
                                families_text(c->a)),
                   "the config has no 'model_type'");
    if (!r->model_type) return &families[0];
    const Family *known = find(r->model_type);
    if (known) return known;
    const char *help = c->file ? model_config_inside(c->a, c->text, strlen(c->text)) : NULL;
    const char **types = ARENA_ARRAY(c->a, const char *, N_FAMILIES + 1);
    for (int i = 0; i < N_FAMILIES; i++) types[i] = families[i].type;
    const char *near = diag_nearest(r->model_type, types);
    if (!help && near)
        help = arena_printf(c->a, "did you mean '%s'? %s", near, families_text(c->a));
    diag_error(c->d, "E0207", config_key_loc(c, "model_type"), help ? help : families_text(c->a),
               "config key 'model_type' says '%s', which this version does not know",
               r->model_type);
    return &families[0];
}

/* What is said of each layer, [L]; NULL: there is no list, or it is wrong. `numbers`: the list
 * names layers. */
static const bool *layer_list(Config *c, const char *key, const Json *v, int64_t L, bool numbers) {
    bool fits = v && (numbers || v->n == L) && L < (1 << 20), *list = NULL;
    if (fits) list = ARENA_ARRAY(c->a, bool, L + 1);
    for (int i = 0; fits && i < v->n; i++) {
        const Json *x = v->item[i];
        if (x->kind != JSON_INT || x->i < 0 || x->i >= (numbers ? L : 2)) fits = false;
        else if (numbers) list[x->i] = true;
        else list[i] = x->i;
    }
    if (v && !fits)
        diag_error(c->d, "E0207", config_key_loc(c, key), NULL,
                   numbers ? "'%s' must be numbers of the %lld layers"
                           : "'%s' must have a 0 or a 1 for each of the %lld layers",
                   key, (long long)L);
    return fits ? list : NULL;
}
/* A list of words, one for each layer. */
typedef struct {
    const char *key, *usual, *other; /* other NULL: all are as usual */
} Words;
/* In which layers the other word stands. NULL: there is no list, or it is wrong. */
static const bool *typed_list(Config *c, Words w, const Json *v, int64_t L) {
    if (!v) return NULL;
    bool known = !w.other || v->n == L;
    bool *list = ARENA_ARRAY(c->a, bool, v->n + 1);
    for (int i = 0; known && i < v->n; i++) {
        const char *kind = v->item[i]->kind == JSON_STRING ? v->item[i]->s : "";
        list[i] = w.other && !strcmp(kind, w.other);
        known = list[i] || !strcmp(kind, w.usual);
    }
    if (known) return w.other ? list : NULL;
    config_changes_maths(
        c, w.key,
        w.other ? arena_printf(c->a, " other than %s and %s, one for each layer,", w.usual, w.other)
                : arena_printf(c->a, " with other layers than %s", w.usual));
    return NULL;
}
/* layer_types: "full_attention"; in some families "chunked_attention" or "sliding_attention" too.
 */
static Words attention_words(const char *other) {
    return (Words){"layer_types", "full_attention", other};
}
/* sliding_window_pattern: each so many-th layer sees all. Text, as "LLLG", is what layer_types was
 * made from: the library reads that list alone. */
static int64_t pattern_interval(Config *c, const Family *f, const Raw *r) {
    int64_t own = f->pattern ? f->pattern : 4;
    if (!r->pattern) return own;
    if (r->pattern->kind == JSON_INT && r->pattern->i > 0) return r->pattern->i;
    diag_error(c->d, "E0302", config_key_loc(c, "sliding_window_pattern"),
               "give layer_types, one for each layer",
               "without layer_types 'sliding_window_pattern' must be a whole number above 0");
    return own;
}
/* Which layers attend within a window, as transformers 5.23 reads the keys; NULL: all. */
static const bool *windowed_list(Config *c, const Family *f, const Raw *r, ModelDims *m) {
    bool types = f->window >= WINDOW_TYPES;
    const bool *list =
        typed_list(c, attention_words(types ? "sliding_attention" : NULL), r->layer_types, m->L);
    if (!m->window) return NULL;
    if (list || !types || f->window == WINDOW_TYPES || m->L >= 1 << 20) return list;
    bool *own = ARENA_ARRAY(c->a, bool, m->L + 1);
    int64_t from = r->window_from == UNSET ? 28 : r->window_from;
    bool each = f->window >= WINDOW_ROTATED, first = f->window == WINDOW_BUT_FIRST;
    int64_t every = each ? pattern_interval(c, f, r) : 1;
    for (int64_t i = 0; i < m->L; i++)
        own[i] = f->window == WINDOW_UNROTATED   ? !model_rotates(m, i)
                 : first                         ? i % every != 0
                 : f->window == WINDOW_AFTER_TWO ? i > 1 && i % 4 != 1 && i != m->L - 1
                 : each                          ? (i + 1) % every != 0
                                                 : i >= from;
    return own;
}
/* Families of DeepSeek's kind that do not read its keys: mlp_layer_types says which layers have
 * experts, or all but the first have them; or all. */
static void without_intervals(Config *c, const Family *f, const Raw *r, ModelDims *m) {
    LayerKinds *k = &m->layers;
    bool types = f->has & HAS_MLP_TYPES;
    if (types) {
        bool all = f->has & HAS_COHERE_EXPERTS; /* its dense layers turn as no others do */
        Words words = {"mlp_layer_types", all ? "sparse" : "dense", all ? NULL : "sparse"};
        k->experts = typed_list(c, words, r->mlp_types, m->L);
    }
    k->experts_from = types && !(f->has & HAS_COHERE_EXPERTS);
    k->experts_every = 1;
    if (k->experts) return;
    if (r->experts_from != UNSET && r->experts_from != k->experts_from)
        config_changes_maths(c, "first_k_dense_replace", types ? " other than 1" : " other than 0");
    if (r->experts_every > 1) config_changes_maths(c, "moe_layer_freq", " other than 1");
}
void config_layer_kinds(Config *c, const Family *f, const Raw *r, ModelDims *m) {
    LayerKinds *k = &m->layers;
    *k = (LayerKinds){0};
    if (f->has & HAS_CHUNKS)
        k->chunked = typed_list(c, attention_words("chunked_attention"), r->layer_types, m->L);
    if (f->has & HAS_NOPE) {
        k->unrotated_every = r->unrotated_every == UNSET ? 4 : r->unrotated_every;
        if (r->rotates && r->rotates->n) /* an empty list stands for the interval */
            k->rotates = layer_list(c, "no_rope_layers", r->rotates, m->L, false);
    }
    if (f->shape & SHAPE_LEARNED) k->unrotated_every = 1;
    if (!(f->has & HAS_CHUNKS)) k->windowed = windowed_list(c, f, r, m);
    if (f->window == WINDOW_ROTATED) k->rotates = k->windowed; /* NULL: no window, all rotate */
    if (f->window == WINDOW_ONLY_ROTATED ||
        f->window == WINDOW_AFTER_TWO) { /* and without one none does */
        k->rotates = k->windowed;
        if (!m->window) k->unrotated_every = 1;
    }
    if (f->has & HAS_EXPERTS) {
        k->experts_every = r->experts_every == UNSET ? 1 : r->experts_every;
        k->experts_from = k->experts_every - 1;
        if (f->has & HAS_LATENT) k->experts_from = r->experts_from == UNSET ? 3 : r->experts_from;
        k->experts = layer_list(c, "moe_layers", r->experts, m->L, true);
        bool all = f->has & HAS_DEEPSEEK_EXPERTS && !(f->has & HAS_LATENT);
        if (f->has & HAS_MLP_TYPES || all) without_intervals(c, f, r, m);
    }
    if (!(f->has & HAS_CHUNKS)) return;
    m->chunk = r->chunk == UNSET ? 8192 : r->chunk;
    m->qk_l2 = r->use_qk_norm != 0;
    if (r->tuning == 0) return;
    m->temperature_floor = r->floor_scale == UNSET ? 8192 : r->floor_scale;
    m->temperature_scale = r->attn_scale > 0 ? r->attn_scale : 0.1;
}

void config_latent(Config *c, const Raw *r, ModelDims *m) {
    const Required required[] = {{"q_lora_rank", r->q_rank},
                                 {"kv_lora_rank", r->kv_rank},
                                 {"qk_nope_head_dim", r->nope},
                                 {"qk_rope_head_dim", r->rope},
                                 {"v_head_dim", r->v_dim}};
    if (!config_all_given(c, required, sizeof required / sizeof *required)) return;
    m->q_rank = r->q_rank, m->kv_rank = r->kv_rank;
    m->nope = r->nope, m->rope = r->rope, m->v_dim = r->v_dim;
    m->d = m->nope + m->rope;
    /* head_dim: Hugging Face means what is rotated, others the whole */
    bool head = r->d != UNSET && r->d != m->rope && r->d != m->d && c->file;
    const Required wide[] = {{"qk_head_dim", r->qk_dim}, {"head_dim", head ? r->d : UNSET}};
    for (int i = 0; i < 2; i++)
        if (wide[i].value != UNSET && wide[i].value != m->d)
            diag_error(c->d, "E0207", config_key_loc(c, wide[i].key), NULL,
                       "%s is %lld; qk_nope_head_dim and qk_rope_head_dim are %lld together",
                       wide[i].key, (long long)wide[i].value, (long long)m->d);
}
