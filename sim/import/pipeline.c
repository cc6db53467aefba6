/* Which layers are a stage, and how many micro-batches a plan that is made small keeps. Refuses to
 * judge a schedule: the plan's own rules do. */
#include "import/pipeline.h"

/* Layers of stage s: as even as they go where the ends count for so many layers more, the first
 * ones larger (generate_llm_fqn_per_model_part of torchtitan; Megatron has no remainder). */
static int64_t layers_of_stage(const DraftPipeline *p, int64_t layers, int64_t s) {
    int64_t stages = p->ranks * p->chunks, n = layers + p->first_less + p->last_less;
    return n / stages + (s < n % stages) - (s == 0 ? p->first_less : 0) -
           (s == stages - 1 ? p->last_less : 0);
}
static bool each_has_one(const DraftPipeline *p, int64_t layers) {
    int64_t stages = p->ranks * p->chunks;
    for (int64_t s = 0; s < stages; s++)
        if (layers_of_stage(p, layers, s) < 1) return false;
    return true;
}
static const char *stages_text(const Draft *x, const DraftPipeline *p, int64_t layers) {
    Str s = str_new(x->a);
    int64_t next = 0;
    for (int64_t i = 0; i < p->ranks * p->chunks; i++) {
        str_addf(&s, "%s[", i ? ", " : "");
        for (int64_t k = layers_of_stage(p, layers, i); k-- > 0; next++)
            str_addf(&s, "%lld%s", (long long)next, k ? ", " : "");
        str_add(&s, "]");
    }
    return s.s;
}
int64_t draft_layers(const Draft *x) { return x->in->layers ? x->in->layers : x->n_layers; }
void draft_pipeline(Draft *x, const DraftPipeline *p) {
    int64_t stages = p->ranks * p->chunks, layers = draft_layers(x), micro = p->microbatches;
    if (stages > 1024 || layers > 1 << 16 || !each_has_one(p, layers)) {
        diag_error(x->d, "E0307", p->at, "fewer stages",
                   "%lld stages: a model of %lld layers leaves one of them without",
                   (long long)stages, (long long)layers);
        return;
    }
    if (!x->in->full && !x->small) {
        int64_t least = stages;
        while (!each_has_one(p, least) || least < x->layers) least++;
        /* the remainder stays, and with it which stages are larger */
        layers = least + (layers - least) % stages;
        if (micro > 2 * p->ranks) micro = 2 * p->ranks + micro % p->ranks;
    }
    x->layers = layers;
    x->microbatches = micro;
    if (micro != p->microbatches)
        draft_remark(x,
                     "microbatches: %lld instead of %lld, so that it runs in seconds; --full keeps "
                     "them",
                     (long long)micro, (long long)p->microbatches);
    draft_key(x, "pipeline", NULL, p->at, NULL);
    draft_below(x, 1, "schedule", p->at, p->schedule, p->schedule_loc);
    draft_below(x, 1, "axis", p->at, "pp", p->at);
    if (p->chunks > 1)
        draft_below(x, 1, "chunks", p->at, arena_printf(x->a, "%lld", (long long)p->chunks),
                    p->split_loc);
    draft_below(x, 1, "microbatches", p->at, arena_printf(x->a, "%lld", (long long)micro),
                x->data_loc);
    draft_below(x, 1, "stages", p->at, arena_printf(x->a, "[%s]", stages_text(x, p, layers)),
                p->split_loc);
    if (p->pair) draft_below(x, 1, "tied", p->at, "pair", p->at);
}
