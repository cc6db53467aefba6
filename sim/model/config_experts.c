/* Experts of a config: how many, how wide, which router chooses them, the expert that all tokens go
 * to. A router is a row here; what its ops compute is in sim/ops. */
#include "model/config.h"
#include <string.h>

enum { MOST_EXPERTS = 1 << 20 };

/* What families and published papers have, and their defaults: experts, experts per token. */
typedef struct {
    const char *name; /* as the plan's own key `router` and model_type have it */
    const char *count_key;
    int64_t experts, top;  /* 0: the config must say */
    int64_t width, shared; /* of an expert, 0: intermediate_size; experts that all tokens go to */
    Router router;
    bool everywhere; /* no layer is without them: nothing is intermediate_size wide */
    bool norm_key;   /* `norm_topk_prob` says whether the chosen are made to add up to 1 */
} RouterRow;
static const RouterRow rows[] = {
    {"mixtral", "num_local_experts", 0, 2, .router = {.factor = 1}},
    {"qwen3_moe", "num_experts", 0, 8, .router = {.factor = 1, .all = true}, .norm_key = true},
    {"olmoe", "num_experts", 64, 8, .router = {.factor = 1, .all = true}, .norm_key = true},
    {"llama4_text", "num_local_experts", 16, 1, 0, 1,
     .router = {.factor = 1, .sigmoid = true, .first = true}},
    {"deepseek_v3", "n_routed_experts", 256, 8, 2048, 1,
     .router = {.factor = 2.5,
                .sigmoid = true,
                .share = true,
                .bias = true,
                .groups = 8,
                .top_groups = 4}},
    {"glm4_moe_lite", "n_routed_experts", 64, 4, 1536, 1,
     .router = {.factor = 1.8, .sigmoid = true, .share = true, .bias = true}},
    {"solar_open", "n_routed_experts", 128, 8, 1280, 1, .everywhere = true,
     .router = {.factor = 1, .sigmoid = true, .share = true, .bias = true}},
    {"hy_v3", "num_experts", 192, 8, 1536, 1,
     .router = {.factor = 2.826, .sigmoid = true, .share = true, .bias = true}},
    {"flex_olmo", "num_experts", 7, 5, .router = {.factor = 1, .all = true}, .norm_key = true},
    {"flint", "num_experts", 256, 6, 512, .router = {.factor = 1, .sigmoid = true, .share = true}},
    {"cohere2_moe", "num_experts", 8, 2, .router = {.factor = 1}},
    {"gpt_oss", "num_local_experts", 128, 4, .router = {.factor = 1}},
    {"aria_text", "moe_num_experts", 8, 2, 0, 2, .router = {.factor = 1}},
    {"switch", NULL, 0, 1, .router = {.factor = 1, .all = true}},
    {"gshard", NULL, 0, 2, .router = {.factor = 1}},
};
enum { N_ROUTERS = sizeof rows / sizeof *rows };
static const RouterRow *router_row(const char *name) {
    for (int i = 0; i < N_ROUTERS; i++)
        if (!strcmp(rows[i].name, name)) return &rows[i];
    return NULL;
}
/* "mixtral, qwen3_moe or gshard" */
static const char *routers_text(Arena *a) {
    Str s = str_new(a);
    for (int i = 0; i < N_ROUTERS; i++)
        str_addf(&s, "%s%s", i == 0 ? "" : i + 1 < N_ROUTERS ? ", " : " or ", rows[i].name);
    return s.s;
}
/* The row that the plan names, else the family's. */
static const RouterRow *chosen_row(Config *c, const Family *f, const Raw *r) {
    const RouterRow *own = r->router ? router_row(r->router) : NULL;
    if (r->router && !own) {
        const char *names[N_ROUTERS + 1] = {NULL};
        for (int i = 0; i < N_ROUTERS; i++) names[i] = rows[i].name;
        const char *near = diag_nearest(r->router, names);
        diag_error(c->d, "E0206", config_key_loc(c, "router"), near ? near : routers_text(c->a),
                   "unknown router '%s'", r->router);
    }
    return own ? own : router_row(f->type);
}

int64_t config_only_experts(const Family *f, const Raw *r) {
    const RouterRow *row = f->has & HAS_EXPERTS ? router_row(f->type) : NULL;
    if (!row || !row->everywhere) return 0;
    return r->Fe != UNSET ? r->Fe : row->width;
}

/* A switch that this family does not read would be silently lost. */
static void check_unread(Config *c, const Family *f, const Raw *r, const Router *router) {
    const struct {
        const char *key;
        bool off;
    } row[] = {{"num_local_experts", r->E == UNSET},
               {"num_experts_per_tok", r->top_k == UNSET},
               {"moe_intermediate_size", r->Fe == UNSET}},
      grouped[] = {{"n_group", r->groups < 2},
                   {"topk_group", r->top_groups < 2},
                   {"routed_scaling_factor", r->scaling <= 0 || r->scaling == 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row && !(f->has & HAS_EXPERTS); i++)
        if (!row[i].off) config_changes_maths(c, row[i].key, "");
    for (size_t i = 0; i < sizeof grouped / sizeof *grouped && !router->bias; i++)
        if (f->has & HAS_EXPERTS && !grouped[i].off) config_changes_maths(c, grouped[i].key, "");
    if (f->has & (HAS_CHUNKS | HAS_ARIA) && r->Fe != UNSET)
        config_changes_maths(c, "moe_intermediate_size", "");
    if (f->has & HAS_SPARSE) return;
    bool softmax_chosen = f->has & HAS_EXPERTS && !router->sigmoid && !router->all;
    if (r->norm_topk == 0 && (softmax_chosen || f->has & HAS_CHUNKS))
        config_changes_maths(c, "norm_topk_prob", " false");
    if (r->sparse_step > 1) config_changes_maths(c, "decoder_sparse_step", " above 1");
    if (r->dense && r->dense->n) config_changes_maths(c, "mlp_only_layers", "");
}
/* Words of DeepSeek's configs that stand for one router. */
static void check_words(Config *c, const Raw *r) {
    if (r->topk_method && strcmp(r->topk_method, "noaux_tc"))
        config_changes_maths(c, "topk_method", " other than noaux_tc");
    if (r->scoring && strcmp(r->scoring, "sigmoid"))
        config_changes_maths(c, "scoring_func", " other than sigmoid");
}
/* What Cohere's experts may say beside that. */
static void check_cohere(Config *c, const Family *f, const Raw *r) {
    if (!(f->has & HAS_COHERE_EXPERTS)) return;
    if (r->eps > 0) config_changes_maths(c, "rms_norm_eps", " other than null");
    if (r->selection && strcmp(r->selection, "softmax"))
        config_changes_maths(c, "expert_selection_fn", " other than softmax");
    if (r->n_shared > 0 && (!r->combination || strcmp(r->combination, "sum")))
        config_changes_maths(c, "shared_expert_combination_strategy", " other than sum");
}
static Loc top_of(const Config *c) { return c->file ? (Loc){c->file, 0, 0} : c->p->model_loc; }
static void set_dense(Config *c, const Family *f, const Raw *r, ModelDims *m) {
    m->sparse_step = r->sparse_step;
    m->n_dense = r->dense ? r->dense->n : (int)f->dense;
    int64_t *dense = ARENA_ARRAY(c->a, int64_t, m->n_dense + 1);
    for (int i = 0; i < m->n_dense; i++) dense[i] = r->dense ? r->dense->item[i]->i : i;
    m->dense = dense;
}
/* Without a walk over all layers, of which a file may claim any number: of one more than are named
 * dense, one has experts or none has. */
static bool any_layer(const ModelDims *m) {
    const LayerKinds *k = &m->layers;
    bool listed = k->experts && m->sparse_step <= 1;
    int64_t every = m->sparse_step > 1 ? m->sparse_step
                    : listed           ? 1
                                       : k->experts_every,
            first = m->sparse_step > 1 ? every - 1
                    : listed           ? 0
                                       : k->experts_from,
            tries = listed ? m->L : (int64_t)m->n_dense + 1;
    for (int64_t i = first; every > 0 && tries-- > 0 && i < m->L; i += every)
        if (model_has_experts(m, i)) return true;
    return false;
}
/* Groups that cannot be made, more experts than there are. */
static void check_counts(Config *c, const ModelDims *m) {
    const Router *r = &m->router;
    if (m->E > MOST_EXPERTS)
        diag_error(c->d, "E0701", top_of(c), NULL, "%lld experts; at most %d", (long long)m->E,
                   (int)MOST_EXPERTS);
    if (m->top_k > m->E)
        diag_error(c->d, "E0307", config_key_loc(c, "num_experts_per_tok"),
                   "a token goes to as many experts as there are, at most",
                   "%lld experts per token of %lld", (long long)m->top_k, (long long)m->E);
    if (r->groups < 2) return;
    if (m->E % r->groups)
        diag_error(c->d, "E0307", config_key_loc(c, "n_group"), "n_group divides the experts",
                   "%lld experts cannot stand in %lld groups", (long long)m->E,
                   (long long)r->groups);
    else if (r->top_groups < 1 || r->top_groups > r->groups)
        diag_error(c->d, "E0307", config_key_loc(c, "topk_group"), NULL, "%lld groups of %lld",
                   (long long)r->top_groups, (long long)r->groups);
    else if (m->top_k > m->E / r->groups * r->top_groups) /* no more than E: it divides E */
        diag_error(c->d, "E0307", config_key_loc(c, "num_experts_per_tok"), NULL,
                   "%lld experts per token; %lld groups have %lld", (long long)m->top_k,
                   (long long)r->top_groups, (long long)(m->E / r->groups * r->top_groups));
}
static void set_router(const Raw *r, const RouterRow *row, ModelDims *m) {
    Router *o = &m->router;
    *o = row->router;
    if (row->norm_key && r->norm_topk == 1) o->all = false;
    if (o->share) o->share = r->norm_topk != 0;
    if (!o->bias) return; /* the rest are DeepSeek's keys */
    if (r->groups != UNSET) o->groups = r->groups;
    if (r->top_groups != UNSET) o->top_groups = r->top_groups;
    if (r->scaling > 0) o->factor = r->scaling;
}

void config_experts(Config *c, const Family *f, const Raw *r, ModelDims *m) {
    static const RouterRow none = {.name = ""};
    const RouterRow *row = f->has & HAS_EXPERTS ? chosen_row(c, f, r) : &none;
    check_unread(c, f, r, &row->router);
    check_words(c, r);
    check_cohere(c, f, r);
    if (!(f->has & HAS_EXPERTS)) return;
    set_dense(c, f, r, m);
    if (!any_layer(m)) return;
    const RouterRow *family = router_row(f->type);
    if (r->E == UNSET && !family->experts) {
        diag_error(c->d, "E0208", top_of(c), NULL, "the config has no '%s'", family->count_key);
        return;
    }
    m->E = r->E != UNSET ? r->E : family->experts;
    m->top_k = r->top_k != UNSET ? r->top_k : row->top;
    m->Fe = r->Fe != UNSET ? r->Fe : family->width ? family->width : r->F;
    int64_t shared = r->n_shared == UNSET ? family->shared : r->n_shared;
    if (f->has & HAS_SHARED_WIDTH) m->shared = r->shared_width == UNSET ? 1024 : r->shared_width;
    else if (__builtin_mul_overflow(shared, m->Fe, &m->shared)) m->shared = INT64_MAX;
    /* pairs of gate and up are one weight in all schemes, input dim first */
    bool pairs = m->expert_biases = f->shape & SHAPE_EXPERT_BIASES;
    m->experts_packed = pairs || c->p->names == NAMES_HF;
    m->turns = f->shape & SHAPE_EXPERTS_TURNED;
    m->experts_turned = m->turns && (pairs || names_turn_experts(c->p->names));
    m->swiglu_limit = r->swiglu_limit > 0 ? r->swiglu_limit : 7;
    m->swiglu_alpha = r->swiglu_alpha > 0 ? r->swiglu_alpha : 1.702;
    set_router(r, row, m);
    check_counts(c, m);
}
