/* Builds the first layers of a model to see what they are made of. Refuses to report: the plan that
 * is written will be read again. */
#include "import/modules.h"

/* NULL: it has not so many. */
static const Model *first_layers(const Draft *x, Names names, int64_t layers) {
    Diags *d = diags_new(x->a);
    PlanWriter w = write_start(x->a);
    write_text(&w, "model: {%s: ", x->in->config ? "hf_config" : "preset");
    write_scalar(&w, x->in->config ? x->in->config : x->in->model);
    write_text(&w, ", layers: %lld, parts: [embedding, blocks, norm, head, loss]}\nmesh: {tp: 1}\n",
               (long long)layers);
    write_text(&w, "names: %s\n", plan_names_text(names));
    const Plan *p = plan_parse(x->a, d, plan_text("config", w.s.s));
    return diags_errors(d) ? NULL : model_build(x->a, d, p, NULL);
}
bool draft_has(const Graph *g, const char *pattern) {
    for (int m = 0; m < g->nm; m++)
        if (plan_match(pattern, g->module[m].path)) return true;
    for (int t = 0; t < g->nt; t++)
        if (g->t[t].kind == KIND_PARAM && g->t[t].plan_name &&
            plan_match(pattern, g->t[t].plan_name))
            return true;
    return false;
}
const Graph *draft_modules(Draft *x, Names names) {
    enum { DEEPEST = 64 };
    const Model *m = first_layers(x, names, 1);
    int64_t n = 1;
    while (m && m->dims.E && n < DEEPEST && n < m->dims.L && !model_has_experts(&m->dims, n - 1))
        n++;
    if (m && n > 1 && model_has_experts(&m->dims, n - 1)) m = first_layers(x, names, n);
    if (!x->in->full) x->layers = m ? m->dims.last_layer : 1;
    return m ? &m->g : NULL;
}
