/* Dims from a preset, a Hugging Face config.json (both generations of key names) or keys written in
 * the plan. Keys are of three kinds: read, harmless, and all others, which must be null, false, 0
 * or empty: a key that changes the mathematics and is not understood is an error that names it,
 * never skipped. */
#include "base/file.h"
#include "formats/json.h"
#include "model/build.h"
#include <stddef.h>
#include <string.h>

enum { CONFIG_LIMIT = 1 << 20, UNSET = -1, MOST_EXPERTS = 1 << 20 };
static const int64_t size_limit = (int64_t)1 << 40;

/* What the keys say, before defaults. Whole numbers: UNSET; reals: below 0. */
typedef struct {
    int64_t D, F, L, H, K, d, V, max_positions, E, top_k, Fe, sparse_step;
    int norm_topk;     /* UNSET, 0, 1 */
    const Json *dense; /* a list of layers */
    double eps, theta, theta_inside, partial;
    bool tied;
    int attention_bias, mlp_bias, use_window; /* UNSET, 0, 1 */
    int qk_norm, q_bias, k_bias, v_bias, o_bias, gate_bias, up_bias, down_bias, packed_mlp;
    const char *activation, *model_type, *rope_type;
    double rope_factor, rope_low, rope_high, rope_old_ctx;
    bool windowed; /* sliding_window has a value; whether it acts depends on use_sliding_window */
    Loc windowed_loc;
} Raw;

/* Model families, by the only thing that tells them apart here: who has biases and a q/k norm. */
enum { NEVER, BY_CONFIG, ALWAYS };
typedef struct {
    const char *type;
    uint8_t qkv, o, mlp; /* biases */
    bool qk_norm;
    bool experts; /* a router and experts in every layer */
} Family;
static const Family families[] = {
    {"llama", BY_CONFIG, BY_CONFIG, BY_CONFIG, false, false},
    {"mistral", NEVER, NEVER, NEVER, false, false},
    {"qwen2", ALWAYS, NEVER, NEVER, false, false},
    {"qwen3", BY_CONFIG, BY_CONFIG, NEVER, true, false},
    {"mixtral", NEVER, NEVER, NEVER, false, true},
    {"qwen3_moe", BY_CONFIG, BY_CONFIG, NEVER, true, true},
};

/* One config being read. */
typedef struct {
    Arena *a;
    Diags *d;
    const Plan *p;
    const char *file, *text; /* file NULL: keys written in the plan */
    Raw *raw;
} Config;

typedef enum {
    KEY_HARMLESS,
    KEY_INT,
    KEY_REAL,
    KEY_BOOL,
    KEY_FLAG, /* an int of Raw: 0 or 1 */
    KEY_TEXT,
    KEY_ROPE,   /* an object of scaling keys */
    KEY_WINDOW, /* sliding_window */
    KEY_LAYERS, /* layer_types: all full_attention */
    KEY_DENSE,  /* mlp_only_layers: which have no experts */
} KeyKind;
typedef struct {
    const char *name;
    KeyKind kind;
    size_t at; /* offset in Raw */
    bool own;  /* shardproof's own, only for keys written in a plan */
} Key;
#define AT(f) offsetof(Raw, f)

static const Key keys[] = {
    {"hidden_size", KEY_INT, AT(D), false},
    {"intermediate_size", KEY_INT, AT(F), false},
    {"num_hidden_layers", KEY_INT, AT(L), false},
    {"num_attention_heads", KEY_INT, AT(H), false},
    {"num_key_value_heads", KEY_INT, AT(K), false},
    {"head_dim", KEY_INT, AT(d), false},
    {"vocab_size", KEY_INT, AT(V), false},
    {"num_local_experts", KEY_INT, AT(E), false},
    {"num_experts", KEY_INT, AT(E), false},
    {"num_experts_per_tok", KEY_INT, AT(top_k), false},
    {"moe_intermediate_size", KEY_INT, AT(Fe), false},
    {"decoder_sparse_step", KEY_INT, AT(sparse_step), false},
    {"norm_topk_prob", KEY_FLAG, AT(norm_topk), false},
    {"mlp_only_layers", KEY_DENSE, 0, false},
    {"max_position_embeddings", KEY_INT, AT(max_positions), false},
    {"rms_norm_eps", KEY_REAL, AT(eps), false},
    {"rope_theta", KEY_REAL, AT(theta), false},
    {"partial_rotary_factor", KEY_REAL, AT(partial), false},
    {"tie_word_embeddings", KEY_BOOL, AT(tied), false},
    {"attention_bias", KEY_FLAG, AT(attention_bias), false},
    {"mlp_bias", KEY_FLAG, AT(mlp_bias), false},
    {"use_sliding_window", KEY_FLAG, AT(use_window), false},
    {"hidden_act", KEY_TEXT, AT(activation), false},
    {"model_type", KEY_TEXT, AT(model_type), false},
    {"rope_parameters", KEY_ROPE, 0, false},
    {"rope_scaling", KEY_ROPE, 0, false},
    {"sliding_window", KEY_WINDOW, 0, false},
    {"layer_types", KEY_LAYERS, 0, false},
    {"qk_norm", KEY_FLAG, AT(qk_norm), true},
    {"q_bias", KEY_FLAG, AT(q_bias), true},
    {"k_bias", KEY_FLAG, AT(k_bias), true},
    {"v_bias", KEY_FLAG, AT(v_bias), true},
    {"o_bias", KEY_FLAG, AT(o_bias), true},
    {"gate_bias", KEY_FLAG, AT(gate_bias), true},
    {"up_bias", KEY_FLAG, AT(up_bias), true},
    {"down_bias", KEY_FLAG, AT(down_bias), true},
    {"packed_mlp", KEY_FLAG, AT(packed_mlp), true},
    /* Say nothing about the values of a forward or backward pass of the block. */
    {"architectures", KEY_HARMLESS, 0, false},
    {"attention_dropout", KEY_HARMLESS, 0,
     false}, /* acts in training only; runs here have no dropout */
    {"auto_map", KEY_HARMLESS, 0, false},
    {"attn_implementation", KEY_HARMLESS, 0, false},
    {"_attn_implementation_autoset", KEY_HARMLESS, 0, false},
    {"bos_token_id", KEY_HARMLESS, 0, false},
    {"dtype", KEY_HARMLESS, 0, false}, /* the plan's data.dtype says what is computed in */
    {"eos_token_id", KEY_HARMLESS, 0, false},
    {"id2label", KEY_HARMLESS, 0, false},
    {"initializer_range", KEY_HARMLESS, 0, false},
    {"is_llama_config", KEY_HARMLESS, 0, false},
    {"label2id", KEY_HARMLESS, 0, false},
    {"max_window_layers", KEY_HARMLESS, 0, false}, /* means nothing without a window */
    {"_name_or_path", KEY_HARMLESS, 0, false},
    {"output_router_logits", KEY_HARMLESS, 0, false}, /* with the auxiliary loss, which the plan
                                                         asks for */
    {"pad_token_id", KEY_HARMLESS, 0, false},
    {"pretraining_tp", KEY_HARMLESS, 0, false}, /* another order of summation */
    {"return_dict", KEY_HARMLESS, 0, false},
    {"router_aux_loss_coef", KEY_HARMLESS, 0, false},
    {"tokenizer_class", KEY_HARMLESS, 0, false},
    {"torch_dtype", KEY_HARMLESS, 0, false},
    {"transformers.js_config", KEY_HARMLESS, 0, false},
    {"transformers_version", KEY_HARMLESS, 0, false},
    {"unsloth_fixed", KEY_HARMLESS, 0, false},
    {"unsloth_version", KEY_HARMLESS, 0, false},
    {"use_cache", KEY_HARMLESS, 0, false},
};
static const Key rope_keys[] = {
    {"rope_type", KEY_TEXT, AT(rope_type), false},
    {"type", KEY_TEXT, AT(rope_type), false},
    {"rope_theta", KEY_REAL, AT(theta_inside), false},
    {"partial_rotary_factor", KEY_REAL, AT(partial), false},
    {"factor", KEY_REAL, AT(rope_factor), false},
    {"low_freq_factor", KEY_REAL, AT(rope_low), false},
    {"high_freq_factor", KEY_REAL, AT(rope_high), false},
    {"original_max_position_embeddings", KEY_REAL, AT(rope_old_ctx), false},
};

/* Where a key stands: the first place where it is written as a key. */
static Loc key_loc(const Config *c, const char *key) {
    if (!c->file) return c->p->model_loc;
    Loc loc = {c->file, 0, 0};
    size_t n = strlen(key);
    int line = 1;
    const char *start = c->text;
    for (const char *s = c->text; *s; s++) {
        if (*s == '\n') {
            line++;
            start = s + 1;
        } else if (*s == '"' && !strncmp(s + 1, key, n) && s[n + 1] == '"' &&
                   s[n + 2 + strspn(s + n + 2, " \t\r\n")] == ':') {
            return (Loc){c->file, line, (int)(s - start) + 1};
        }
    }
    return loc;
}

static void wrong_type(Config *c, const char *key, const char *wanted) {
    diag_error(c->d, "E0301", key_loc(c, key), NULL, "config key '%s' must be %s", key, wanted);
}

static void changes_maths(Config *c, const char *key, const char *what) {
    diag_error(
        c->d, "E0207", key_loc(c, key),
        arena_printf(c->a, "if it does not matter here, say so: model: {ignore_config: [%s]}", key),
        "config key '%s'%s is not understood by this version, and may change the values", key,
        what);
}

/* null, false, 0, "", [] and {}: the key is switched off. */
static bool is_off(const Json *v) {
    switch (v->kind) {
    case JSON_NULL: return true;
    case JSON_BOOL: return !v->b;
    case JSON_INT:
    case JSON_REAL: return v->r == 0;
    case JSON_STRING: return !*v->s;
    case JSON_ARRAY:
    case JSON_OBJECT: return v->n == 0;
    }
    return false;
}

static void read_int(Config *c, const Key *k, const Json *v, int64_t *at) {
    if (v->kind != JSON_INT || v->i < 1 || v->i > size_limit)
        diag_error(c->d, "E0302", key_loc(c, k->name), NULL,
                   "config key '%s' must be a whole number of 1 .. 2^40", k->name);
    else *at = v->i;
}

static void read_real(Config *c, const Key *k, const Json *v, double *at) {
    if ((v->kind != JSON_INT && v->kind != JSON_REAL) || !(v->r > 0 && v->r < 1e18))
        wrong_type(c, k->name, "a number above 0");
    else *at = v->r;
}

static void read_window(Config *c, const Json *v) {
    if (is_off(v)) return;
    c->raw->windowed = true;
    c->raw->windowed_loc = key_loc(c, "sliding_window");
}

static void read_layers(Config *c, const Key *k, const Json *v) {
    bool full = v->kind == JSON_ARRAY;
    for (int i = 0; full && i < v->n; i++)
        full = v->item[i]->kind == JSON_STRING && !strcmp(v->item[i]->s, "full_attention");
    if (!full) changes_maths(c, k->name, " with other layers than full_attention");
}

static void read_dense(Config *c, const Key *k, const Json *v) {
    bool numbers = v->kind == JSON_ARRAY;
    for (int i = 0; numbers && i < v->n; i++)
        numbers = v->item[i]->kind == JSON_INT && v->item[i]->i >= 0;
    if (numbers) c->raw->dense = v;
    else wrong_type(c, k->name, "a list of layers");
}

static void read_object(Config *c, const Json *o, const Key *table, int n, bool nested);
static const Family *family(Config *c, const Raw *r);

static void read_value(Config *c, const Key *k, const Json *v) {
    void *at = (char *)c->raw + k->at;
    if (v->kind == JSON_NULL) return; /* as if it were absent */
    switch (k->kind) {
    case KEY_HARMLESS: break;
    case KEY_INT: read_int(c, k, v, at); break;
    case KEY_REAL: read_real(c, k, v, at); break;
    case KEY_BOOL:
        if (v->kind == JSON_BOOL) *(bool *)at = v->b;
        else wrong_type(c, k->name, "true or false");
        break;
    case KEY_FLAG:
        if (v->kind == JSON_BOOL) *(int *)at = v->b;
        else wrong_type(c, k->name, "true or false");
        break;
    case KEY_TEXT:
        if (v->kind == JSON_STRING) *(const char **)at = v->s;
        else wrong_type(c, k->name, "a string");
        break;
    case KEY_ROPE:
        if (v->kind == JSON_OBJECT)
            read_object(c, v, rope_keys, sizeof rope_keys / sizeof *rope_keys, true);
        else wrong_type(c, k->name, "a mapping");
        break;
    case KEY_WINDOW: read_window(c, v); break;
    case KEY_LAYERS: read_layers(c, k, v); break;
    case KEY_DENSE: read_dense(c, k, v); break;
    }
}

static bool ignored(const Plan *p, const char *key) {
    for (int i = 0; i < p->n_ignore_config; i++)
        if (!strcmp(p->ignore_config[i], key)) return true;
    return false;
}

static void read_object(Config *c, const Json *o, const Key *table, int n, bool nested) {
    for (int i = 0; i < o->n; i++) {
        const Key *k = NULL;
        for (int j = 0; j < n && !k; j++)
            if (!strcmp(table[j].name, o->key[i]) && (!table[j].own || !c->file)) k = &table[j];
        if (ignored(c->p, o->key[i])) {
            diag_note(c->d, "N0010", key_loc(c, o->key[i]), NULL,
                      "config key '%s' is ignored, as the plan asks", o->key[i]);
            continue;
        }
        if (k) read_value(c, k, o->value[i]);
        else if (!is_off(o->value[i]))
            changes_maths(c, o->key[i], nested ? " of the rotation" : "");
    }
}

/* A file of another kind is not quoted: a plan of a stranger may name any file of the machine. */
static bool is_config(const Json *o) {
    static const char *const one[] = {"model_type", "architectures", "hidden_size",
                                      "num_hidden_layers", "vocab_size"};
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        if (json_get(o, one[i])) return true;
    return false;
}
static bool quotable(const char *text) {
    return strstr(text, "\"hidden_size\"") || strstr(text, "\"model_type\"");
}
/* A family that does not run stops everything else: its keys mean nothing here, so they are not
 * held against the table one by one. */
static bool family_runs(Config *c, const Json *o) {
    const Json *type = json_get(o, "model_type");
    bool again = c->file && c->p->inline_config && strstr(c->p->inline_config, "\"model_type\"");
    if (!type || type->kind != JSON_STRING || again) return true; /* the plan's own word wins */
    c->raw->model_type = type->s;
    int before = diags_errors(c->d);
    family(c, c->raw);
    return diags_errors(c->d) == before;
}
static void read_text(Config *c, const char *text, size_t n) {
    const char *why = NULL;
    int line = 0, col = 0;
    c->text = text;
    Json *o = json_parse(c->a, text, n, &why, &line, &col);
    Loc loc = c->file ? (Loc){c->file, line, col} : c->p->model_loc;
    if (o && c->file && is_config(o)) diags_source(c->d, c->file, text, n);
    if (!o)
        diag_error(c->d, "E0109", loc, NULL, "not JSON: %.*s",
                   quotable(text) ? (int)strlen(why) : (int)strcspn(why, "\""), why);
    else if (o->kind != JSON_OBJECT)
        diag_error(c->d, "E0109", loc, NULL, "a config must be a JSON object");
    else if (c->file && !is_config(o))
        diag_error(c->d, "E0109", c->p->hf_config_loc, "the config.json of a checkpoint has them",
                   "'%s' is no model's config: no model_type, no hidden_size", c->file);
    else if (family_runs(c, o)) read_object(c, o, keys, sizeof keys / sizeof *keys, false);
}

static void raw_from_preset(const Preset *s, Raw *r) {
    r->D = s->D;
    r->L = s->L;
    r->H = s->H;
    r->K = s->K;
    r->d = s->d;
    r->F = s->F;
    r->V = s->V;
    r->max_positions = s->max_positions ? s->max_positions : UNSET;
    r->eps = s->eps;
    r->theta = s->rope_base;
    r->tied = s->tied;
    r->qk_norm = s->qk_norm;
    r->q_bias = r->k_bias = r->v_bias = s->qkv_bias;
    r->E = s->E ? s->E : UNSET;
    r->top_k = s->E ? s->top_k : UNSET;
    r->Fe = s->Fe ? s->Fe : UNSET;
    r->norm_topk = s->E ? 1 : UNSET; /* of all that are rows here */
    r->model_type = s->family;
    r->rope_type = s->rope_type;
    r->rope_factor = s->rope_factor;
    r->rope_low = s->rope_low;
    r->rope_high = s->rope_high;
    r->rope_old_ctx = s->rope_old_ctx;
}

/* ---- from keys to dims ---- */

static const Family *family(Config *c, const Raw *r) {
    const int n = sizeof families / sizeof *families;
    Loc top = {c->file, 1, 1};
    /* whose mathematics is it? `architectures` names a class, which nothing here reads */
    if (!r->model_type && c->file)
        diag_error(c->d, "E0208", top,
                   "add it, or say it in the plan: model: {config: {model_type: llama}}; llama, "
                   "mistral, qwen2, qwen3, mixtral and qwen3_moe run in this version",
                   "the config has no 'model_type'");
    if (!r->model_type) return &families[0];
    for (int i = 0; i < n; i++)
        if (!strcmp(families[i].type, r->model_type)) return &families[i];
    diag_error(c->d, "E0207", key_loc(c, "model_type"),
               "llama, mistral, qwen2, qwen3, mixtral and qwen3_moe run in this version",
               "config key 'model_type' says '%s', which this version does not know",
               r->model_type);
    return &families[0];
}

static bool flag(int own, int rule, int by_config) {
    return own != UNSET ? own : rule == ALWAYS || (rule == BY_CONFIG && by_config == 1);
}

/* A switch that this family does not read, but that is on: it would be silently lost. */
static void check_unread(Config *c, const Family *f, const Raw *r) {
    if (r->mlp_bias == 1 && f->mlp == NEVER) changes_maths(c, "mlp_bias", "");
    if (r->attention_bias == 1 && f->qkv == NEVER) changes_maths(c, "attention_bias", "");
}

/* Experts are the family's matter: a switch that it does not read would be silently lost. */
static void check_experts_unread(Config *c, const Family *f, const Raw *r) {
    const struct {
        const char *key;
        bool off;
    } row[] = {{"num_local_experts", r->E == UNSET},
               {"num_experts_per_tok", r->top_k == UNSET},
               {"moe_intermediate_size", r->Fe == UNSET}};
    for (size_t i = 0; i < sizeof row / sizeof *row && !f->experts; i++)
        if (!row[i].off) changes_maths(c, row[i].key, "");
    if (!strcmp(f->type, "qwen3_moe")) return;
    if (r->norm_topk == 0 && f->experts) changes_maths(c, "norm_topk_prob", " false");
    if (r->sparse_step > 1) changes_maths(c, "decoder_sparse_step", " above 1");
    if (r->dense && r->dense->n) changes_maths(c, "mlp_only_layers", "");
}
static void set_dense(Config *c, const Raw *r, ModelDims *m) {
    m->sparse_step = r->sparse_step;
    m->n_dense = r->dense ? r->dense->n : 0;
    int64_t *dense = ARENA_ARRAY(c->a, int64_t, m->n_dense + 1);
    for (int i = 0; i < m->n_dense; i++) dense[i] = r->dense->item[i]->i;
    m->dense = dense;
}
static void set_experts(Config *c, const Family *f, const Raw *r, ModelDims *m) {
    check_experts_unread(c, f, r);
    if (!f->experts) return;
    Loc loc = c->file ? (Loc){c->file, 0, 0} : c->p->model_loc;
    bool qwen = !strcmp(f->type, "qwen3_moe");
    if (r->E == UNSET)
        diag_error(c->d, "E0208", loc, NULL, "the config has no '%s'",
                   qwen ? "num_experts" : "num_local_experts");
    if (r->E == UNSET) return;
    m->E = r->E;
    m->top_k = r->top_k != UNSET ? r->top_k : qwen ? 8 : 2; /* HF's defaults */
    m->Fe = r->Fe == UNSET ? r->F : r->Fe;
    m->experts_packed = c->p->names == NAMES_HF;
    m->all_experts = qwen && r->norm_topk != 1; /* HF's default */
    set_dense(c, r, m);
    if (m->E > MOST_EXPERTS)
        diag_error(c->d, "E0701", loc, NULL, "%lld experts; at most %d", (long long)m->E,
                   (int)MOST_EXPERTS);
    if (m->top_k > m->E)
        diag_error(c->d, "E0307", key_loc(c, "num_experts_per_tok"), NULL,
                   "%lld experts per token of %lld", (long long)m->top_k, (long long)m->E);
}

static void set_features(Config *c, const Raw *r, ModelDims *m) {
    const Family *f = family(c, r);
    set_experts(c, f, r, m);
    check_unread(c, f, r);
    m->qk_norm = r->qk_norm != UNSET ? r->qk_norm : f->qk_norm;
    m->q_bias = flag(r->q_bias, f->qkv, r->attention_bias);
    m->k_bias = flag(r->k_bias, f->qkv, r->attention_bias);
    m->v_bias = flag(r->v_bias, f->qkv, r->attention_bias);
    m->o_bias = flag(r->o_bias, f->o, r->attention_bias);
    m->gate_bias = flag(r->gate_bias, f->mlp, r->mlp_bias);
    m->up_bias = flag(r->up_bias, f->mlp, r->mlp_bias);
    m->down_bias = flag(r->down_bias, f->mlp, r->mlp_bias);
    m->tied = r->tied;
    m->packed_mlp = r->packed_mlp == 1;
    if (m->packed_mlp && m->gate_bias != m->up_bias)
        diag_error(c->d, "E0207", key_loc(c, "packed_mlp"), "give both, or neither",
                   "gate and up are one weight here: they have a bias together");
    m->activation = c->p->activation ? c->p->activation : r->activation ? r->activation : "silu";
    if (!op_activation(m->activation))
        diag_error(c->d, c->p->activation ? "E0206" : "E0207",
                   c->p->activation ? c->p->activation_loc : key_loc(c, "hidden_act"),
                   "`list ops` shows the activations", "unknown activation '%s'", m->activation);
    else if (m->packed_mlp && strcmp(m->activation, "silu"))
        diag_error(c->d, "E0214", key_loc(c, "packed_mlp"), NULL,
                   "a packed gate and up with the activation '%s' is not supported by this version",
                   m->activation);
}

static void set_rope(Config *c, const Raw *r, ModelDims *m) {
    /* Rotation types, and which of their numbers must be there. */
    static const struct {
        const char *type;
        bool factor, bands;
    } types[] = {{"default", false, false}, {"linear", true, false}, {"llama3", true, true}};
    if (r->theta > 0 && r->theta_inside > 0 && r->theta != r->theta_inside)
        diag_error(c->d, "E0207", key_loc(c, "rope_theta"), NULL,
                   "two values of rope_theta: %g and %g", r->theta, r->theta_inside);
    if (r->partial > 0 && r->partial != 1)
        changes_maths(c, "partial_rotary_factor", " other than 1");
    m->rope_base = r->theta_inside > 0 ? r->theta_inside
                   : r->theta > 0      ? r->theta
                                       : 10000; /* HF's default */
    m->rope_type = r->rope_type ? r->rope_type : "default";
    m->rope_factor = r->rope_factor;
    m->rope_low = r->rope_low;
    m->rope_high = r->rope_high;
    m->rope_old_ctx = r->rope_old_ctx;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].type, m->rope_type)) continue;
        bool missing =
            (types[i].factor && r->rope_factor <= 0) ||
            (types[i].bands && (r->rope_low <= 0 || r->rope_high <= 0 || r->rope_old_ctx <= 0));
        if (missing)
            diag_error(
                c->d, "E0208", key_loc(c, "rope_type"),
                "factor, low_freq_factor, high_freq_factor, original_max_position_embeddings",
                "rope_type '%s' needs numbers that are missing", m->rope_type);
        if (types[i].bands && r->rope_high < r->rope_low)
            diag_error(c->d, "E0207", key_loc(c, "high_freq_factor"), NULL,
                       "high_freq_factor is below low_freq_factor");
        return;
    }
    diag_error(c->d, "E0207", key_loc(c, "rope_type"),
               "default, linear and llama3 run in this version", "unknown rope_type '%s'",
               m->rope_type);
}

static void set_sizes(Config *c, const Raw *r, ModelDims *m) {
    const struct {
        const char *key;
        int64_t value;
    } required[] = {{"hidden_size", r->D},
                    {"intermediate_size", r->F},
                    {"num_hidden_layers", r->L},
                    {"num_attention_heads", r->H},
                    {"vocab_size", r->V}};
    Loc loc = c->file ? (Loc){c->file, 0, 0} : c->p->model_loc;
    int errors = diags_errors(c->d);
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (required[i].value == UNSET)
            diag_error(c->d, "E0208", loc, NULL, "the config has no '%s'", required[i].key);
    if (diags_errors(c->d) > errors) return;
    m->D = r->D;
    m->F = r->F;
    m->L = r->L;
    m->H = r->H;
    m->V = r->V;
    m->K = r->K == UNSET ? r->H : r->K;
    m->max_positions = r->max_positions == UNSET ? 0 : r->max_positions;
    m->eps = r->eps > 0 ? r->eps : 1e-6; /* HF's default */
    if (r->d == UNSET && r->D % r->H)
        diag_error(c->d, "E0307", key_loc(c, "num_attention_heads"), "give head_dim",
                   "hidden_size %lld is no multiple of %lld heads, and there is no head_dim",
                   (long long)r->D, (long long)r->H);
    m->d = r->d == UNSET ? r->D / r->H : r->d;
}

static void read_file(Config *c) {
    const char *path = file_join(c->a, c->p->dir, c->p->hf_config);
    size_t n = 0;
    char *text = file_read(c->a, c->d, path, CONFIG_LIMIT, c->p->hf_config_loc, &n);
    if (!text) return;
    c->file = path;
    read_text(c, text, n);
}

bool config_dims(Arena *a, Diags *d, const Plan *p, ModelDims *m) {
    Raw raw = {.D = UNSET,
               .F = UNSET,
               .L = UNSET,
               .H = UNSET,
               .K = UNSET,
               .d = UNSET,
               .V = UNSET,
               .max_positions = UNSET,
               .E = UNSET,
               .top_k = UNSET,
               .Fe = UNSET,
               .sparse_step = UNSET,
               .norm_topk = UNSET,
               .attention_bias = UNSET,
               .mlp_bias = UNSET,
               .use_window = UNSET,
               .qk_norm = UNSET,
               .packed_mlp = UNSET,
               .q_bias = UNSET,
               .k_bias = UNSET,
               .v_bias = UNSET,
               .o_bias = UNSET,
               .gate_bias = UNSET,
               .up_bias = UNSET,
               .down_bias = UNSET};
    Config c = {a, d, p, NULL, "", &raw};
    int errors = diags_errors(d);
    if (!p->preset && !p->hf_config && !p->inline_config) {
        diag_error(d, "E0208", p->model_loc, "model: llama3-8b, or hf_config: FILE, or kind: mlp",
                   "the plan does not say which model");
        return false;
    }
    if (p->preset) {
        const Preset *s = preset_find(a, d, p);
        if (!s) return false;
        raw_from_preset(s, &raw);
        m->name = s->name;
    }
    if (p->hf_config) {
        read_file(&c);
        m->name = p->hf_config;
    }
    if (p->inline_config) { /* on top of the others: these keys win */
        Config own = {a, d, p, NULL, "", &raw};
        read_text(&own, p->inline_config, strlen(p->inline_config));
        if (!m->name) m->name = "custom";
    }
    if (diags_errors(d) > errors) return false;
    if (raw.windowed && raw.use_window != 0)
        diag_error(d, "E0207", raw.windowed_loc, "null, or use_sliding_window: false",
                   "config key 'sliding_window': attention within a window is not in this version");
    set_sizes(&c, &raw, m);
    set_features(&c, &raw, m);
    set_rope(&c, &raw, m);
    return diags_errors(d) == errors;
}
