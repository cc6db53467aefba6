/* What families of models have of their own: their defaults, their layers, latent attention. Adding
 * a family is one row; its keys are a table of config.c. */
#include "model/config.h"
#include <string.h>

static const Family families[] = {
    {"llama", BY_CONFIG, BY_CONFIG, BY_CONFIG, false, 0, ROPE_HALVES, 1e-6, 1e4, "mlp", 0, 0,
     WINDOW_KEY},
    {"mistral", NEVER, NEVER, NEVER, false, 0, ROPE_HALVES, 1e-6, 1e4, "mlp", 8, 0, WINDOW_ALWAYS},
    {"qwen2", ALWAYS, NEVER, NEVER, false, 0, ROPE_HALVES, 1e-6, 1e4, "mlp", 32, 0,
     WINDOW_SWITCHED},
    {"qwen3", BY_CONFIG, BY_CONFIG, NEVER, true, 0, ROPE_HALVES, 1e-6, 1e4, "mlp", 32, 128,
     WINDOW_SWITCHED},
    {"mixtral", NEVER, NEVER, NEVER, false, HAS_EXPERTS, ROPE_HALVES, 1e-6, 1e4, "mlp", 0, 0,
     WINDOW_KEY},
    {"qwen3_moe", BY_CONFIG, BY_CONFIG, NEVER, true, HAS_EXPERTS | HAS_SPARSE, ROPE_HALVES, 1e-6,
     1e4, "mlp", 0, 0, WINDOW_SWITCHED},
    {"deepseek_v3", BY_CONFIG, BY_CONFIG, NEVER, false, HAS_LATENT | HAS_EXPERTS,
     ROPE_NEIGHBOURS_TO_HALVES, 1e-6, 1e4, "mlp", 0, 0, WINDOW_KEY},
    {"llama4_text", BY_CONFIG, BY_CONFIG, NEVER, false, HAS_CHUNKS | HAS_EXPERTS, ROPE_NEIGHBOURS,
     1e-5, 5e5, "feed_forward", 0, 0, WINDOW_KEY},
};
enum { N_FAMILIES = sizeof families / sizeof *families };
bool model_family_runs(const char *type) {
    for (int i = 0; i < N_FAMILIES; i++)
        if (!strcmp(families[i].type, type)) return true;
    return false;
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
    r->F_dense = s->F;
    r->chunk = s->chunk, r->unrotated_every = s->unrotated_every;
    r->use_qk_norm = !s->no_qk_l2;
    if (s->chunk) r->F = s->Fe, r->Fe = UNSET; /* as the keys of Llama 4 have it */
    if (!s->experts_every) return;             /* as the family has them */
    r->experts_every = s->experts_every;
    r->experts_from = s->experts_from;
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
    for (int i = 0; i < N_FAMILIES; i++)
        if (!strcmp(families[i].type, r->model_type)) return &families[i];
    diag_error(c->d, "E0207", config_key_loc(c, "model_type"), families_text(c->a),
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
/* layer_types: "full_attention", in some families "chunked_attention" too. */
static const bool *chunked_list(Config *c, const Family *f, const Json *v, int64_t L) {
    if (!v) return NULL;
    bool may = f->has & HAS_CHUNKS, known = !may || v->n == L;
    bool *list = ARENA_ARRAY(c->a, bool, v->n + 1);
    for (int i = 0; known && i < v->n; i++) {
        const char *kind = v->item[i]->kind == JSON_STRING ? v->item[i]->s : "";
        list[i] = may && !strcmp(kind, "chunked_attention");
        known = list[i] || !strcmp(kind, "full_attention");
    }
    if (known) return may ? list : NULL;
    config_changes_maths(
        c, "layer_types",
        may ? " other than full_attention and chunked_attention, one for each layer,"
            : " with other layers than full_attention");
    return NULL;
}
void config_layer_kinds(Config *c, const Family *f, const Raw *r, ModelDims *m) {
    LayerKinds *k = &m->layers;
    *k = (LayerKinds){.chunked = chunked_list(c, f, r->layer_types, m->L)};
    if (f->has & HAS_EXPERTS) {
        k->experts_every = r->experts_every == UNSET ? 1 : r->experts_every;
        k->experts_from = k->experts_every - 1;
        if (f->has & HAS_LATENT) k->experts_from = r->experts_from == UNSET ? 3 : r->experts_from;
        k->experts = layer_list(c, "moe_layers", r->experts, m->L, true);
    }
    if (!(f->has & HAS_CHUNKS)) return;
    k->unrotated_every = r->unrotated_every == UNSET ? 4 : r->unrotated_every;
    if (r->rotates && r->rotates->n) /* an empty list stands for the interval */
        k->rotates = layer_list(c, "no_rope_layers", r->rotates, m->L, false);
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
