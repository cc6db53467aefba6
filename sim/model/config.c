/* Dims from a preset, a Hugging Face config.json (both generations of key names) or keys written in
 * the plan. Keys are of three kinds: read, harmless, and all others, which must be null, false, 0
 * or empty: a key that changes the mathematics and is not understood is an error that names it,
 * never skipped. */
#include "base/file.h"
#include "model/config.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

enum { CONFIG_LIMIT = 1 << 20 };
static const int64_t size_limit = (int64_t)1 << 40;

typedef enum {
    KEY_HARMLESS,
    KEY_INT,
    KEY_REAL,
    KEY_BOOL,
    KEY_FLAG, /* an int of Raw: 0 or 1 */
    KEY_TEXT,
    KEY_ROPE,   /* an object of scaling keys */
    KEY_WINDOW, /* sliding_window */
    KEY_DENSE,  /* mlp_only_layers: which have no experts */
    KEY_COUNT,  /* a whole number of 0 and more; null: 0 */
    KEY_SWITCH, /* true or false, or a number that stands for it */
    KEY_LIST,   /* one entry for each layer, or numbers of layers */
    KEY_ANY,    /* kept as it is written */
    KEY_CLIP,   /* a number above 0 that clips something */
    KEY_CAP,    /* a number above 0; null: 0, which is none */
    KEY_TYPED,  /* of rope_parameters: the keys of layers with a window */
    KEY_STORED, /* how the checkpoint's file stores weights: told, and not acted on */
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
    {"tie_word_embeddings", KEY_FLAG, AT(tied), false},
    {"attention_bias", KEY_FLAG, AT(attention_bias), false},
    {"mlp_bias", KEY_FLAG, AT(mlp_bias), false},
    {"use_sliding_window", KEY_FLAG, AT(use_window), false},
    {"hidden_act", KEY_TEXT, AT(activation), false},
    {"model_type", KEY_TEXT, AT(model_type), false},
    {"rope_parameters", KEY_ROPE, 0, false},
    {"rope_scaling", KEY_ROPE, 0, false},
    {"sliding_window", KEY_WINDOW, 0, false},
    {"layer_types", KEY_LIST, AT(layer_types), false},
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
    {"cache_implementation", KEY_HARMLESS, 0, false}, /* of generate() */
    {"sliding_window_size", KEY_HARMLESS, 0, false},  /* gemma2's; its model reads sliding_window */
    {"dtype", KEY_HARMLESS, 0, false}, /* the plan's data.dtype says what is computed in */
    {"eos_token_id", KEY_HARMLESS, 0, false},
    {"id2label", KEY_HARMLESS, 0, false},
    {"embedding_initializer_range", KEY_HARMLESS, 0, false},
    {"initializer_range", KEY_HARMLESS, 0, false},
    {"is_llama_config", KEY_HARMLESS, 0, false},
    {"label2id", KEY_HARMLESS, 0, false},
    {"model_max_length", KEY_HARMLESS, 0, false}, /* of a tokenizer */
    {"max_window_layers", KEY_COUNT, AT(window_from), false},
    {"residual_dropout", KEY_HARMLESS, 0, false},
    {"_name_or_path", KEY_HARMLESS, 0, false},
    {"output_router_logits", KEY_HARMLESS, 0, false}, /* with the auxiliary loss, which the plan
                                                         asks for */
    {"pad_token_id", KEY_HARMLESS, 0, false},
    {"pretraining_tp", KEY_HARMLESS, 0, false}, /* another order of summation */
    {"quantization_config", KEY_STORED, 0, false},
    {"return_dict", KEY_HARMLESS, 0, false},
    {"tokenizer_class", KEY_HARMLESS, 0, false},
    {"torch_dtype", KEY_HARMLESS, 0, false},
    {"transformers.js_config", KEY_HARMLESS, 0, false},
    {"transformers_version", KEY_HARMLESS, 0, false},
    {"unsloth_fixed", KEY_HARMLESS, 0, false},
    {"unsloth_version", KEY_HARMLESS, 0, false},
    {"use_cache", KEY_HARMLESS, 0, false},
};
/* Keys of families; on others they are not understood. */
static const Key latent_keys[] = {
    {"q_lora_rank", KEY_COUNT, AT(q_rank), false},
    {"kv_lora_rank", KEY_INT, AT(kv_rank), false},
    {"qk_nope_head_dim", KEY_INT, AT(nope), false},
    {"qk_rope_head_dim", KEY_INT, AT(rope), false},
    {"qk_head_dim", KEY_INT, AT(qk_dim), false},
    {"v_head_dim", KEY_INT, AT(v_dim), false},
    {"rope_interleave", KEY_FLAG, AT(rope_interleave), false},
};
static const Key deepseek_keys[] = {
    {"first_k_dense_replace", KEY_COUNT, AT(experts_from), false},
    {"moe_layer_freq", KEY_INT, AT(experts_every), false},
    {"n_routed_experts", KEY_INT, AT(E), false},
    {"n_shared_experts", KEY_COUNT, AT(n_shared), false},
    {"topk_method", KEY_TEXT, AT(topk_method), false},
    {"scoring_func", KEY_TEXT, AT(scoring), false},
    /* a block that predicts one more token; no part of the model's own layers */
    {"num_nextn_predict_layers", KEY_HARMLESS, 0, false},
    {"num_mtp_layers", KEY_HARMLESS, 0, false},
};
static const Key mlp_type_keys[] = {{"mlp_layer_types", KEY_LIST, AT(mlp_types), false}};
static const Key aria_keys[] = {
    {"moe_num_experts", KEY_INT, AT(E), false},
    {"moe_topk", KEY_INT, AT(top_k), false},
    {"moe_num_shared_experts", KEY_COUNT, AT(n_shared), false},
};
static const Key gpt_oss_keys[] = {
    {"swiglu_limit", KEY_REAL, AT(swiglu_limit), false},
    {"swiglu_alpha", KEY_REAL, AT(swiglu_alpha), false},
    {"experts_per_token", KEY_INT, AT(top_k), false},
    {"initial_context_length", KEY_HARMLESS, 0, false}, /* as in the rope keys; nobody reads it */
};
static const Key shared_width_keys[] = {
    {"shared_expert_intermediate_size", KEY_INT, AT(shared_width), false},
};
static const Key cohere_expert_keys[] = {
    {"num_shared_experts", KEY_COUNT, AT(n_shared), false},
    {"expert_selection_fn", KEY_TEXT, AT(selection), false},
    {"shared_expert_combination_strategy", KEY_TEXT, AT(combination), false},
    /* of dense layers, which config_family.c refuses */
    {"prefix_dense_sliding_window_pattern", KEY_HARMLESS, 0, false},
    {"prefix_dense_intermediate_size", KEY_HARMLESS, 0, false},
};
static const Key hy3_keys[] = {
    {"num_shared_experts", KEY_COUNT, AT(n_shared), false},
    {"router_scaling_factor", KEY_REAL, AT(scaling), false},
    {"enable_moe_fp32_combine", KEY_HARMLESS, 0, false}, /* another rounding of one sum */
};
static const Key chunk_keys[] = {
    {"intermediate_size_mlp", KEY_INT, AT(F_dense), false},
    {"attention_chunk_size", KEY_COUNT, AT(chunk), false},
    {"attn_temperature_tuning", KEY_SWITCH, AT(tuning), false},
    {"floor_scale", KEY_INT, AT(floor_scale), false},
    {"attn_scale", KEY_REAL, AT(attn_scale), false},
    {"moe_layers", KEY_LIST, AT(experts), false},
    {"interleave_moe_layer_step", KEY_INT, AT(experts_every), false},
};
static const Key nope_keys[] = {
    {"no_rope_layers", KEY_LIST, AT(rotates), false},
    {"no_rope_layer_interval", KEY_INT, AT(unrotated_every), false},
};
static const Key pattern_keys[] = {{"sliding_window_pattern", KEY_ANY, AT(pattern), false},
                                   {"_sliding_window_pattern", KEY_ANY, AT(pattern), false}};
static const Key cap_keys[] = {
    {"attn_logit_softcapping", KEY_CAP, AT(cap_scores), false},
    {"final_logit_softcapping", KEY_CAP, AT(cap_logits), false},
    {"query_pre_attn_scalar", KEY_REAL, AT(query_scalar), false},
    {"hidden_activation", KEY_TEXT, AT(hidden_activation), false},
};
static const Key theta_keys[] = {{"rope_local_base_freq", KEY_REAL, AT(windowed_theta), false}};
static const Key layer_eps_keys[] = {{"layer_norm_eps", KEY_REAL, AT(layer_eps), false}};
static const Key logit_scale_keys[] = {{"logit_scale", KEY_REAL, AT(logit_scale), false}};
static const Key qk_switch_keys[] = {{"use_qk_norm", KEY_FLAG, AT(use_qk_norm), false}};
static const Key neox_keys[] = {
    {"rotary_pct", KEY_REAL, AT(rotary_pct), false},
    {"rotary_emb_base", KEY_REAL, AT(rotary_base), false},
    {"use_parallel_residual", KEY_FLAG, AT(parallel), false},
    {"hidden_dropout", KEY_HARMLESS, 0, false}, /* act in training only */
    {"classifier_dropout", KEY_HARMLESS, 0, false},
    {"is_decoder", KEY_HARMLESS, 0, false},
};
static const Key gpt2_keys[] = {
    {"n_embd", KEY_INT, AT(D), false},
    {"n_layer", KEY_INT, AT(L), false},
    {"n_head", KEY_INT, AT(H), false},
    {"n_inner", KEY_INT, AT(F), false},
    {"n_positions", KEY_INT, AT(max_positions), false},
    {"n_ctx", KEY_HARMLESS, 0, false}, /* as n_positions; nobody reads it */
    {"layer_norm_epsilon", KEY_REAL, AT(layer_eps), false},
    {"activation_function", KEY_TEXT, AT(activation), false},
    {"scale_attn_weights", KEY_FLAG, AT(scale_scores), false},
    {"reorder_and_upcast_attn", KEY_HARMLESS, 0, false}, /* another order of roundings */
    {"attn_pdrop", KEY_HARMLESS, 0, false},   /* act in training only; runs here have no dropout */
    {"summary_type", KEY_HARMLESS, 0, false}, /* of another head than that of language models */
    {"summary_use_proj", KEY_HARMLESS, 0, false},
    {"summary_activation", KEY_HARMLESS, 0, false},
    {"summary_proj_to_labels", KEY_HARMLESS, 0, false},
    {"summary_first_dropout", KEY_HARMLESS, 0, false},
    {"task_specific_params", KEY_HARMLESS, 0, false},
};
static const Key eps_keys[] = {{"norm_eps", KEY_REAL, AT(norm_eps), false}};
static const Key long_keys[] = {
    {"original_max_position_embeddings", KEY_REAL, AT(old_ctx), false},
};
static const Key dropout_keys[] = {
    {"resid_pdrop", KEY_HARMLESS, 0, false}, /* act in training only; runs here have no dropout */
    {"embd_pdrop", KEY_HARMLESS, 0, false},
};
static const Key clip_keys[] = {{"clip_qkv", KEY_CLIP, AT(clip_qkv), false}};
static const Key out_bias_keys[] = {{"attention_out_bias", KEY_FLAG, AT(out_bias), false}};
static const Key one_bias_keys[] = {{"use_bias", KEY_FLAG, AT(all_bias), false}};
static const Key multiplier_keys[] = {
    {"embedding_multiplier", KEY_REAL, AT(embedding_multiplier), false},
    {"attention_multiplier", KEY_REAL, AT(attention_multiplier), false},
    {"residual_multiplier", KEY_REAL, AT(residual_multiplier), false},
    {"logits_scaling", KEY_REAL, AT(logits_scaling), false},
};
/* Of DeepSeek's router, which a plan may put in front of any experts (config_experts.c refuses them
 * of others); what acts in training only: losses that the plan asks for. */
static const Key expert_keys[] = {
    {"n_group", KEY_COUNT, AT(groups), false},
    {"topk_group", KEY_COUNT, AT(top_groups), false},
    {"routed_scaling_factor", KEY_REAL, AT(scaling), false},
    {"aux_loss_alpha", KEY_HARMLESS, 0, false},
    {"seq_aux", KEY_HARMLESS, 0, false},
    {"ep_size", KEY_HARMLESS, 0, false},
    {"router_aux_loss_coef", KEY_HARMLESS, 0, false},
    {"router_jitter_noise", KEY_HARMLESS, 0, false},
    {"router", KEY_TEXT, AT(router), true},
};
#define ROWS(t) (t), (int)(sizeof(t) / sizeof *(t))
static const struct {
    const Key *key;
    int n;
    unsigned has;
} family_keys[] = {{ROWS(latent_keys), HAS_LATENT},
                   {ROWS(deepseek_keys), HAS_DEEPSEEK_EXPERTS},
                   {ROWS(mlp_type_keys), HAS_MLP_TYPES},
                   {ROWS(aria_keys), HAS_ARIA},
                   {ROWS(hy3_keys), HAS_HY3},
                   {ROWS(shared_width_keys), HAS_SHARED_WIDTH},
                   {ROWS(cohere_expert_keys), HAS_COHERE_EXPERTS},
                   {ROWS(gpt_oss_keys), HAS_GPT_OSS},
                   {ROWS(chunk_keys), HAS_CHUNKS},
                   {ROWS(expert_keys), HAS_EXPERTS},
                   {ROWS(nope_keys), HAS_NOPE},
                   {ROWS(out_bias_keys), HAS_OUT_BIAS},
                   {ROWS(one_bias_keys), HAS_ONE_BIAS},
                   {ROWS(multiplier_keys), HAS_MULTIPLIERS},
                   {ROWS(pattern_keys), HAS_PATTERN},
                   {ROWS(cap_keys), HAS_CAPS},
                   {ROWS(theta_keys), HAS_LOCAL_FREQ},
                   {ROWS(eps_keys), HAS_NORM_EPS},
                   {ROWS(layer_eps_keys), HAS_LAYER_EPS},
                   {ROWS(logit_scale_keys), HAS_LOGIT_SCALE},
                   {ROWS(qk_switch_keys), HAS_QK_SWITCH},
                   {ROWS(neox_keys), HAS_ROTARY_PCT},
                   {ROWS(gpt2_keys), HAS_GPT2},
                   {ROWS(dropout_keys), HAS_GPT2 | HAS_LONGROPE},
                   {ROWS(clip_keys), HAS_CLIP},
                   {ROWS(long_keys), HAS_LONGROPE}};

static const Key rope_keys[] = {
    {"rope_type", KEY_TEXT, AT(rope_type), false},
    {"type", KEY_TEXT, AT(rope_type), false},
    {"rope_theta", KEY_REAL, AT(theta_inside), false},
    {"partial_rotary_factor", KEY_REAL, AT(partial), false},
    {"factor", KEY_REAL, AT(rope_factor), false},
    {"low_freq_factor", KEY_REAL, AT(rope_low), false},
    {"high_freq_factor", KEY_REAL, AT(rope_high), false},
    {"original_max_position_embeddings", KEY_REAL, AT(rope_old_ctx), false},
    {"beta_fast", KEY_REAL, AT(beta_fast), false},
    {"beta_slow", KEY_REAL, AT(beta_slow), false},
    {"mscale", KEY_REAL, AT(mscale), false},
    {"mscale_all_dim", KEY_REAL, AT(mscale_all), false},
    {"attention_factor", KEY_REAL, AT(attention_factor), false},
    {"truncate", KEY_FLAG, AT(truncate), false},
    {"short_factor", KEY_LIST, AT(stretch_short), false},
    {"long_factor", KEY_LIST, AT(stretch_long), false},
    {"full_attention", KEY_ROPE, AT(by_layer_type), false},
    {"sliding_attention", KEY_TYPED, AT(by_layer_type), false},
};
/* Of the layers with a window, where they have a rotation of their own. */
static const Key windowed_keys[] = {
    {"rope_type", KEY_TEXT, AT(windowed_type), false},
    {"rope_theta", KEY_REAL, AT(windowed_theta_inside), false},
};

static void wrong_type(Config *c, const char *key, const char *wanted) {
    diag_error(c->d, "E0301", config_key_loc(c, key), NULL, "config key '%s' must be %s", key,
               wanted);
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

static void tell_stored(Config *c, const Key *k, const Json *v) {
    if (is_off(v)) return;
    diag_note(c->d, "N0010", config_key_loc(c, k->name), NULL,
              "config key '%s': weights are taken as those that the stored ones stand for, in the "
              "plan's dtype; how blocks of them are cut is not looked at",
              k->name);
}

static void read_int(Config *c, const Key *k, const Json *v, int64_t *at) {
    if (v->kind != JSON_INT || v->i < 1 || v->i > size_limit)
        diag_error(c->d, "E0302", config_key_loc(c, k->name), NULL,
                   "config key '%s' must be a whole number of 1 .. 2^40", k->name);
    else *at = v->i;
}

static void read_real(Config *c, const Key *k, const Json *v, double *at) {
    const double most = 1e18;
    if (v->kind != JSON_INT && v->kind != JSON_REAL) wrong_type(c, k->name, "a number above 0");
    else if (!(v->r >= 1 / most && v->r <= most))
        diag_error(c->d, "E0309", config_key_loc(c, k->name),
                   "beyond these the sums and products of f32 are 0 or infinite",
                   "config key '%s': %g is out of range, it must be 1e-18 .. 1e18", k->name, v->r);
    else *at = v->r;
}

static void read_window(Config *c, const Json *v) {
    c->raw->windowed = !is_off(v);
    c->raw->no_window = is_off(v);
    c->raw->windowed_loc = config_key_loc(c, "sliding_window");
    if (c->raw->no_window) return;
    if (v->kind != JSON_INT || v->i < 1 || v->i > size_limit)
        diag_error(c->d, "E0302", c->raw->windowed_loc, NULL,
                   "config key 'sliding_window' must be null or a whole number of 1 .. 2^40");
    else c->raw->window = v->i;
}

static void read_count(Config *c, const Key *k, const Json *v, int64_t *at) {
    if (v->kind == JSON_NULL) *at = 0;
    else if (v->kind != JSON_INT || v->i < 0 || v->i > size_limit)
        diag_error(c->d, "E0302", config_key_loc(c, k->name), NULL,
                   "config key '%s' must be null or a whole number of 0 .. 2^40", k->name);
    else *at = v->i;
}

static void read_switch(Config *c, const Key *k, const Json *v, int *at) {
    if (v->kind == JSON_BOOL) *at = v->b;
    else if (v->kind == JSON_INT) *at = v->i != 0;
    else wrong_type(c, k->name, "true or false");
}

static void read_dense(Config *c, const Key *k, const Json *v) {
    bool numbers = v->kind == JSON_ARRAY;
    for (int i = 0; numbers && i < v->n; i++)
        numbers = v->item[i]->kind == JSON_INT && v->item[i]->i >= 0;
    if (numbers) c->raw->dense = v;
    else wrong_type(c, k->name, "a list of layers");
}

static void read_object(Config *c, const Json *o, const Key *table, int n, bool nested);

static void read_value(Config *c, const Key *k, const Json *v) {
    void *at = (char *)c->raw + k->at;
    if (v->kind == JSON_NULL && k->at == AT(K) && k->kind == KEY_INT) c->raw->no_kv_heads = true;
    if (v->kind == JSON_NULL && k->kind != KEY_COUNT && k->kind != KEY_WINDOW && k->kind != KEY_CAP)
        return; /* as if it were absent */
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
        c->raw->rope_given = true;
        if (k->at) *(bool *)at = true;
        if (v->kind == JSON_OBJECT) read_object(c, v, ROWS(rope_keys), true);
        else wrong_type(c, k->name, "a mapping");
        break;
    case KEY_WINDOW: read_window(c, v); break;
    case KEY_DENSE: read_dense(c, k, v); break;
    case KEY_COUNT: read_count(c, k, v, at); break;
    case KEY_SWITCH: read_switch(c, k, v, at); break;
    case KEY_ANY: *(const Json **)at = v; break;
    case KEY_CLIP:
        if ((v->kind == JSON_INT || v->kind == JSON_REAL) && v->r > 1e18)
            diag_error(c->d, "E0309", config_key_loc(c, k->name),
                       "null, or leave the key out: then nothing is clipped",
                       "config key '%s': %g clips nothing, no value of f32 comes near it", k->name,
                       v->r);
        else read_real(c, k, v, at);
        break;
    case KEY_CAP:
        if (v->kind == JSON_NULL) *(double *)at = 0;
        else read_real(c, k, v, at);
        break;
    case KEY_TYPED:
        *(bool *)at = true;
        if (v->kind == JSON_OBJECT) read_object(c, v, ROWS(windowed_keys), true);
        else wrong_type(c, k->name, "a mapping");
        break;
    case KEY_STORED: tell_stored(c, k, v); break;
    case KEY_LIST:
        if (v->kind == JSON_ARRAY) *(const Json **)at = v;
        else wrong_type(c, k->name, "a list");
        break;
    }
}

static bool ignored(const Plan *p, const char *key) {
    for (int i = 0; i < p->n_ignore_config; i++)
        if (!strcmp(p->ignore_config[i], key)) return true;
    return false;
}

/* A key that only some families have: read, and remembered, as the family is not known yet. */
static const Key *family_key(Config *c, const char *name, const Json *v) {
    for (size_t t = 0; t < sizeof family_keys / sizeof *family_keys; t++)
        for (int j = 0; j < family_keys[t].n; j++) {
            const Key *k = &family_keys[t].key[j];
            if (strcmp(k->name, name)) continue;
            Raw *r = c->raw;
            if (r->n_met < MAX_MET)
                r->met[r->n_met++] = (MetKey){k->name, family_keys[t].has, is_off(v)};
            return k;
        }
    return NULL;
}

static void read_object(Config *c, const Json *o, const Key *table, int n, bool nested) {
    for (int i = 0; i < o->n; i++) {
        const Key *k = NULL;
        for (int j = 0; j < n && !k; j++)
            if (!strcmp(table[j].name, o->key[i]) && (!table[j].own || !c->file)) k = &table[j];
        if (ignored(c->p, o->key[i])) {
            diag_note(c->d, "N0010", config_key_loc(c, o->key[i]), NULL,
                      "config key '%s' is ignored, as the plan asks", o->key[i]);
            continue;
        }
        if (!k && !nested) k = family_key(c, o->key[i], o->value[i]);
        if (k) read_value(c, k, o->value[i]);
        else if (!is_off(o->value[i]))
            config_changes_maths(c, o->key[i], nested ? " of the rotation" : "");
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
/* A family that does not run, or that a file does not name, stops everything else: its keys mean
 * nothing here, so they are not held against the table one by one. */
static bool family_runs(Config *c, const Json *o) {
    const Json *type = json_get(o, "model_type");
    bool again = c->file && c->p->inline_config && strstr(c->p->inline_config, "\"model_type\"");
    if (again || (type ? type->kind != JSON_STRING : !c->file))
        return true; /* the plan's word wins */
    if (type) c->raw->model_type = type->s;
    int before = diags_errors(c->d);
    config_family(c, c->raw);
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
    r->windowed = s->window > 0;
    r->window = s->window;
    r->eps = s->eps;
    r->theta = s->rope_base;
    r->tied = s->tied;
    r->qk_norm = s->qk_norm;
    r->q_bias = r->k_bias = r->v_bias = s->qkv_bias;
    r->E = s->E ? s->E : UNSET;
    r->top_k = s->E ? s->top_k : UNSET;
    r->Fe = s->Fe ? s->Fe : UNSET;
    r->norm_topk = s->E ? 1 : UNSET; /* of all that are rows here */
    r->rope_type = s->rope_type;
    r->rope_factor = s->rope_factor;
    r->rope_low = s->rope_low;
    r->rope_high = s->rope_high;
    r->rope_old_ctx = s->rope_old_ctx;
    if (s->family) config_family_preset(s, r);
}

/* ---- from keys to dims ---- */

static bool flag(int own, int rule, int by_config) {
    if (own != UNSET) return own;
    return rule == ALWAYS || (rule == BY_CONFIG && by_config == 1) ||
           (rule == ALWAYS_UNLESS && by_config != 0);
}

/* A switch that this family does not read, but that is on: it would be silently lost. */
static void check_unread(Config *c, const Family *f, const Raw *r) {
    if (r->mlp_bias == 1 && f->mlp == NEVER) config_changes_maths(c, "mlp_bias", "");
    if (r->attention_bias == 1 && f->qkv == NEVER) config_changes_maths(c, "attention_bias", "");
    for (int i = 0; i < r->n_met; i++)
        if (!(f->has & r->met[i].has) && !r->met[i].off)
            config_changes_maths(c, r->met[i].name, "");
    if (!(f->has & HAS_LATENT)) return;
    if (r->v_bias == 1) config_changes_maths(c, "v_bias", " of latent attention");
    if (r->qk_norm == 1) config_changes_maths(c, "qk_norm", " of latent attention");
}

static NormKind norm_kind(unsigned shape) {
    bool plus = shape & SHAPE_NORM_PLUS;
    if (!(shape & SHAPE_LAYERNORM)) return plus ? NORM_RMS_PLUS : NORM_RMS;
    return shape & SHAPE_NORM_BARE ? NORM_LAYER_BARE : plus ? NORM_LAYER_PLUS : NORM_LAYER;
}
/* What layers are like, and what is multiplied. */
static void set_shape(Config *c, const Family *f, const Raw *r, ModelDims *m) {
    const char *key = f->has & HAS_CAPS ? r->hidden_activation : r->activation,
               *own = key             ? key
                      : f->activation ? f->activation
                                      : "silu";
    if (!strcmp(own, "gelu_new") || !strcmp(own, "gelu_fast"))
        own = "gelu_pytorch_tanh"; /* one formula, three names */
    if (r->scale_scores == 0) m->softmax_scale = 1;
    if (f->shape & SHAPE_TANH_GELU && !strcmp(own, "gelu")) own = f->activation;
    m->activation = c->p->activation ? c->p->activation : own;
    m->norms = f->shape & SHAPE_NORMS_AFTER    ? NORMS_AFTER
               : f->shape & SHAPE_NORMS_AROUND ? NORMS_BEFORE | NORMS_AFTER
                                               : NORMS_BEFORE;
    m->ungated = f->shape & SHAPE_UNGATED;
    m->norm = norm_kind(f->shape);
    m->norm_bias =
        (m->norm == NORM_LAYER || m->norm == NORM_LAYER_PLUS) && !(f->shape & SHAPE_NORM_PLAIN);
    m->parallel = f->shape & SHAPE_PARALLEL && r->parallel != 0;
    m->norm_shared = m->parallel && f->shape & SHAPE_NORM_SHARED;
    if (f->has & HAS_LOGIT_SCALE)
        m->logits_scale = r->logit_scale > 0 ? r->logit_scale : f->logit_scale;
    m->xielu = f->shape & SHAPE_XIELU && !strcmp(m->activation, "xielu");
    m->cap_scores = r->cap_scores < 0 ? f->cap_scores : r->cap_scores;
    m->cap_logits = r->cap_logits < 0 ? f->cap_logits : r->cap_logits;
    m->clip_qkv = r->clip_qkv;
    m->sinks = f->shape & SHAPE_SINKS;
    if (f->has & HAS_CAPS)
        m->softmax_scale = 1 / sqrt(r->query_scalar > 0 ? r->query_scalar : f->query_scalar);
    m->input_sqrt = f->shape & SHAPE_INPUT_SQRT;
    if (f->has & HAS_MULTIPLIERS) {
        m->input_scale = r->embedding_multiplier > 0 ? r->embedding_multiplier : 1;
        m->branch_scale = r->residual_multiplier > 0 ? r->residual_multiplier : 1;
        m->softmax_scale = r->attention_multiplier > 0 ? r->attention_multiplier : 1;
        m->logits_scale = r->logits_scaling > 0 ? 1 / r->logits_scaling : 1;
    }
}
/* The switches that this family reads for its biases. */
static void family_biases(const Family *f, Raw *r) {
    if (f->has & HAS_ONE_BIAS) r->attention_bias = r->mlp_bias = r->all_bias;
    int out = f->has & HAS_OUT_BIAS ? r->out_bias : r->attention_bias;
    if (r->o_bias == UNSET && f->o == BY_CONFIG) r->o_bias = out == 1;
}
static void set_features(Config *c, const Family *f, Raw *r, ModelDims *m) {
    config_experts(c, f, r, m);
    check_unread(c, f, r);
    family_biases(f, r);
    m->qk_norm = r->qk_norm != UNSET ? r->qk_norm : f->qk_norm;
    m->q_bias = flag(r->q_bias, f->qkv, r->attention_bias);
    m->k_bias = flag(r->k_bias, f->qkv, r->attention_bias);
    m->v_bias = flag(r->v_bias, f->qkv, r->attention_bias);
    m->o_bias = flag(r->o_bias, f->o, r->attention_bias);
    m->gate_bias = flag(r->gate_bias, f->mlp, r->mlp_bias);
    m->up_bias = flag(r->up_bias, f->mlp, r->mlp_bias);
    m->down_bias = flag(r->down_bias, f->mlp, r->mlp_bias);
    m->tied = r->tied == UNSET ? c->file && f->tied : r->tied;
    m->packed_qkv = f->shape & SHAPE_PACKED_QKV;
    m->learned = f->shape & SHAPE_LEARNED;
    m->turned_linear = f->shape & SHAPE_TURNED;
    m->qkv_by_head = f->shape & SHAPE_QKV_BY_HEAD;
    m->head_weights = f->has & HAS_QK_SWITCH && !(f->has & HAS_CHUNKS) && r->use_qk_norm == 1;
    m->qk_wide = m->qk_norm && f->shape & SHAPE_QK_WIDE;
    m->packed_mlp = r->packed_mlp == UNSET ? (f->shape & SHAPE_PACKED_MLP) != 0 : r->packed_mlp;
    if (m->packed_mlp && f->shape & SHAPE_UNGATED)
        config_changes_maths(c, "packed_mlp", " of a feed-forward part without a gate");
    if (m->packed_mlp && m->gate_bias != m->up_bias)
        diag_error(c->d, "E0207", config_key_loc(c, "packed_mlp"), "give both, or neither",
                   "gate and up are one weight here: they have a bias together");
    set_shape(c, f, r, m);
    if (!op_activation(m->activation) && !m->xielu)
        diag_error(c->d, c->p->activation ? "E0206" : "E0207",
                   c->p->activation ? c->p->activation_loc : config_key_loc(c, "hidden_act"),
                   model_activation_hint(c->a, m->activation), "unknown activation '%s'",
                   m->activation);
    else if (m->packed_mlp && strcmp(m->activation, "silu"))
        diag_error(c->d, "E0214", config_key_loc(c, "packed_mlp"), NULL,
                   "a packed gate and up with the activation '%s' is not supported by this version",
                   m->activation);
}

static void set_yarn(const Raw *r, ModelDims *m) {
    m->yarn = (Yarn){.fast = r->beta_fast > 0 ? r->beta_fast : 32,
                     .slow = r->beta_slow > 0 ? r->beta_slow : 1,
                     .mscale = r->mscale,
                     .mscale_all = r->mscale_all,
                     .attention_factor = r->attention_factor,
                     .truncate = r->truncate != 0};
}

/* Numbers that only YaRN reads, with another rotation: they would be silently lost. */
static void check_yarn(Config *c, const Raw *r, const ModelDims *m) {
    const struct {
        const char *key;
        bool given;
    } own[] = {{"attention_factor", r->attention_factor > 0}, /* LongRoPE reads it too */
               {"beta_fast", r->beta_fast > 0},
               {"beta_slow", r->beta_slow > 0},
               {"mscale", r->mscale > 0},
               {"mscale_all_dim", r->mscale_all > 0},
               {"truncate", r->truncate != UNSET}};
    bool yarn = !strcmp(m->rope_type, "yarn"), longrope = !strcmp(m->rope_type, "longrope");
    for (size_t i = longrope; i < sizeof own / sizeof *own && !yarn; i++)
        if (own[i].given) config_changes_maths(c, own[i].key, " of the rotation");
}

/* The rotation of layers with a window, where it is another. */
static void set_windowed_rope(Config *c, const Family *f, const Raw *r, ModelDims *m) {
    double own = r->windowed_theta_inside > 0 ? r->windowed_theta_inside : r->windowed_theta;
    if (!(f->has & HAS_TWO_THETAS)) {
        if (r->by_layer_type) config_changes_maths(c, "sliding_attention", " of the rotation");
        return;
    }
    m->windowed_base = own > 0 ? own : f->windowed_theta;
    if (r->windowed_type && strcmp(r->windowed_type, "default"))
        config_changes_maths(c, "sliding_attention", " with a rope_type other than default");
}
/* What a file means that has no object of rope keys: the family's own stretched rotation. */
static void default_rope(const Config *c, const Family *f, Raw *r) {
    const OwnRope *own = f->rope;
    if (!own || !c->file || r->rope_given) return;
    r->rope_type = own->type;
    r->rope_factor = own->factor, r->rope_low = own->low, r->rope_high = own->high;
    r->rope_old_ctx = own->old_ctx, r->truncate = own->truncate;
}
/* A list of numbers above 0, one for each pair that turns; NULL after an error. */
static const double *stretches(Config *c, const char *key, const Json *v, int64_t n) {
    double *list = ARENA_ARRAY(c->a, double, n + 1);
    bool fits = v && v->n == n;
    for (int i = 0; fits && i < v->n; i++) {
        const Json *x = v->item[i];
        fits = (x->kind == JSON_INT || x->kind == JSON_REAL) && x->r > 0 && x->r < 1e18;
        list[i] = x->r;
    }
    if (fits) return list;
    diag_error(c->d, "E0207", config_key_loc(c, v ? key : "rope_type"), NULL,
               "'%s' must have a number above 0 for each of the %lld pairs that turn", key,
               (long long)n);
    return NULL;
}
/* LongRoPE; its older files call it "su" or "yarn". */
static void set_longrope(Config *c, const Family *f, Raw *r, ModelDims *m) {
    bool has = f->has & HAS_LONGROPE, lists = r->stretch_short || r->stretch_long;
    bool other = r->rope_type && (!strcmp(r->rope_type, "su") || !strcmp(r->rope_type, "yarn"));
    if (has && other) r->rope_type = "longrope";
    bool is = r->rope_type && !strcmp(r->rope_type, "longrope");
    if (lists && !is)
        config_changes_maths(c, r->stretch_short ? "short_factor" : "long_factor",
                             " of the rotation");
    if (!is) return;
    if (has) r->rope_old_ctx = r->old_ctx > 0 ? r->old_ctx : 4096;
    int64_t turned = m->partial > 0 ? (int64_t)((double)m->d * m->partial) : m->d;
    if (turned > 1 << 20) return; /* the size is refused by itself */
    m->n_stretch = (int)(turned / 2);
    m->stretch_short = stretches(c, "short_factor", r->stretch_short, m->n_stretch);
    m->stretch_long = stretches(c, "long_factor", r->stretch_long, m->n_stretch);
}
static void set_rope(Config *c, const Family *f, Raw *r, ModelDims *m) {
    /* Rotation types, and which of their numbers must be there. */
    static const struct {
        const char *type;
        bool factor, bands, old;
    } types[] = {{"default", false, false, false},
                 {"linear", true, false, false},
                 {"llama3", true, true, true},
                 {"yarn", true, false, true},
                 {"longrope", false, false, true}};
    default_rope(c, f, r);
    set_windowed_rope(c, f, r, m);
    if (r->theta > 0 && r->theta_inside > 0 && r->theta != r->theta_inside)
        diag_error(c->d, "E0207", config_key_loc(c, "rope_theta"), NULL,
                   "two values of rope_theta: %g and %g", r->theta, r->theta_inside);
    m->partial = f->partial > 0 && r->partial > 0 ? r->partial : f->partial;
    if (r->partial > 1)
        diag_error(c->d, "E0309", config_key_loc(c, "partial_rotary_factor"),
                   "1 turns all of a head, 0.5 half of it",
                   "config key 'partial_rotary_factor': %g is out of range, it is the part of a "
                   "head that turns: above 0, 1 or less",
                   r->partial);
    else if (r->partial > 0 && r->partial != 1 && f->partial <= 0)
        config_changes_maths(c, "partial_rotary_factor", " other than 1");
    if (f->has & HAS_ROTARY_PCT) {
        if (r->partial <= 0 && r->rotary_pct > 0) m->partial = r->rotary_pct;
        if (r->theta <= 0) r->theta = r->rotary_base;
    }
    m->rope_base = r->theta_inside > 0 ? r->theta_inside : r->theta > 0 ? r->theta : f->theta;
    m->order = r->rope_interleave == 0 ? ROPE_HALVES : f->order;
    set_yarn(r, m);
    set_longrope(c, f, r, m);
    m->rope_type = r->rope_type ? r->rope_type : "default";
    m->rope_factor = r->rope_factor;
    m->rope_low = r->rope_low;
    m->rope_high = r->rope_high;
    m->rope_old_ctx = r->rope_old_ctx;
    check_yarn(c, r, m);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].type, m->rope_type)) continue;
        bool missing = (types[i].factor && r->rope_factor <= 0) ||
                       (types[i].bands && (r->rope_low <= 0 || r->rope_high <= 0)) ||
                       (types[i].old && r->rope_old_ctx <= 0);
        if (missing)
            diag_error(
                c->d, "E0208", config_key_loc(c, "rope_type"),
                types[i].old && !types[i].bands
                    ? "factor, original_max_position_embeddings"
                    : "factor, low_freq_factor, high_freq_factor, original_max_position_embeddings",
                "rope_type '%s' needs numbers that are missing", m->rope_type);
        if (types[i].bands && r->rope_high < r->rope_low)
            diag_error(c->d, "E0207", config_key_loc(c, "high_freq_factor"), NULL,
                       "high_freq_factor is below low_freq_factor");
        return;
    }
    diag_error(c->d, "E0207", config_key_loc(c, "rope_type"),
               "default, linear, llama3, yarn and longrope run in this version",
               "unknown rope_type '%s'", m->rope_type);
}

/* As Hugging Face: null is the number of query heads, a file without the key means its family's. */
static int64_t kv_heads(const Config *c, const Family *f, const Raw *r) {
    if (r->K != UNSET) return r->K;
    return c->file && f->kv_heads && !r->no_kv_heads ? f->kv_heads : r->H;
}
static void set_sizes(Config *c, const Family *f, Raw *r, ModelDims *m) {
    if (f->has & HAS_GPT2 && r->F == UNSET && r->D != UNSET && r->D <= size_limit / 4)
        r->F = 4 * r->D;
    if (f->has & HAS_GPT2 && r->max_positions == UNSET) r->max_positions = 1024;
    int64_t no_dense = config_only_experts(f, r); /* nothing is that wide; the key may be missing */
    if (no_dense) r->F = no_dense;
    const Required required[] = {{"hidden_size", r->D},
                                 {"intermediate_size", r->F},
                                 {"num_hidden_layers", r->L},
                                 {"num_attention_heads", r->H},
                                 {"vocab_size", r->V}};
    if (!config_all_given(c, required, sizeof required / sizeof *required)) return;
    const Required fixed[] = {{"num_key_value_heads", r->K == r->H ? UNSET : r->K},
                              {"head_dim", r->d * r->H == r->D ? UNSET : r->d}};
    for (int i = 0; i < 2 && f->shape & (SHAPE_QKV_BY_HEAD | SHAPE_LEARNED); i++)
        if (fixed[i].value != UNSET) config_changes_maths(c, fixed[i].key, " of this model_type");
    m->D = r->D;
    m->F = f->has & HAS_CHUNKS && r->F_dense != UNSET ? r->F_dense : r->F;
    m->naming = f->naming;
    m->L = r->L;
    m->H = r->H;
    m->V = r->V;
    m->K = kv_heads(c, f, r);
    m->max_positions = r->max_positions == UNSET ? 0 : r->max_positions;
    double eps = f->has & HAS_NORM_EPS    ? r->norm_eps
                 : f->has & HAS_LAYER_EPS ? r->layer_eps
                                          : r->eps;
    m->eps = eps > 0 ? eps : f->eps;
    config_layer_kinds(c, f, r, m);
    if (f->has & HAS_LATENT) {
        config_latent(c, r, m);
        return;
    }
    if (r->d == UNSET && c->file && f->head_dim) {
        m->d = f->head_dim;
        return;
    }
    if (r->d == UNSET && r->D % r->H)
        diag_error(c->d, "E0307", config_key_loc(c, "num_attention_heads"), "give head_dim",
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

/* Does the model attend within a window, as transformers reads the keys? Mistral does unless the
 * key is null, and knows no switch; Qwen does where the switch is on; of other families the key
 * alone says so, and a switch that is off is believed. Without the key it is 4096. */
static void set_window(Config *c, const Family *f, const Raw *r, ModelDims *m) {
    enum { WINDOW = 4096 };
    bool file = c->file, on = r->windowed && r->use_window != 0;
    if (ignored(c->p, "sliding_window")) return;
    Loc top = {c->file, 1, 1};
    m->window_unread = f->window == WINDOW_KEY;
    bool given =
        f->window == WINDOW_ALWAYS || f->window == WINDOW_TYPES || f->window >= WINDOW_ROTATED;
    if (given) on = file ? !r->no_window : on;
    if (f->window == WINDOW_GIVEN) on = r->windowed;
    if (f->window == WINDOW_SWITCHED) on = r->use_window == 1 && !r->no_window;
    if (f->window == WINDOW_UNROTATED) on = r->use_window == 1 && r->windowed;
    if (!on) return;
    m->window = r->windowed ? r->window : f->window_size ? f->window_size : WINDOW;
    m->window_loc = r->windowed ? r->windowed_loc : file ? top : c->p->model_loc;
}

/* No key has been met: whole numbers are UNSET. */
static void unset_keys(Raw *r, const Key *k, int n) {
    for (int i = 0; i < n; i++) {
        void *at = (char *)r + k[i].at;
        if (k[i].kind == KEY_INT || k[i].kind == KEY_COUNT) *(int64_t *)at = UNSET;
        if (k[i].kind == KEY_CAP) *(double *)at = UNSET;
        if (k[i].kind == KEY_FLAG || k[i].kind == KEY_SWITCH) *(int *)at = UNSET;
    }
}
static void unset(Raw *r) {
    unset_keys(r, ROWS(keys));
    unset_keys(r, ROWS(rope_keys));
    for (size_t t = 0; t < sizeof family_keys / sizeof *family_keys; t++)
        unset_keys(r, family_keys[t].key, family_keys[t].n);
}

bool config_dims(Arena *a, Diags *d, const Plan *p, ModelDims *m) {
    Raw raw = {0};
    unset(&raw);
    Config c = {.a = a, .d = d, .p = p, .text = "", .raw = &raw};
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
        Config own = {.a = a, .d = d, .p = p, .text = "", .raw = &raw};
        read_text(&own, p->inline_config, strlen(p->inline_config));
        if (!m->name) m->name = "custom";
    }
    if (diags_errors(d) > errors) return false;
    c.all_read = true;
    const Family *f = config_family(&c, &raw);
    set_window(&c, f, &raw, m);
    set_sizes(&c, f, &raw, m);
    set_features(&c, f, &raw, m);
    set_rope(&c, f, &raw, m);
    return diags_errors(d) == errors;
}
