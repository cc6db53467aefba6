/* Hooks of modules, from styles and units. See hooks.h. */
#include "exec/hooks.h"
#include "assign/dtensor.h"
#include <string.h>

/* ---- where a step stands ---- */
/* Is it the module's result, or the product to which its bias is still to be added? */
static bool is_result(const Graph *g, const GModule *m, int tensor) {
    if (m->output < 0) return false;
    if (m->output == tensor) return true;
    int n = g->t[m->output].producer;
    return n >= 0 && m->bias >= 0 && g->node[n].nin > 1 && g->node[n].in[0] == tensor &&
           g->node[n].in[1] == m->bias;
}
const char *hooks_where(const Program *p, const Step *s) {
    const Graph *g = p->graph;
    const Val *v = &p->val[s->out];
    if (s->module < 0 || v->cot || s->recompute || g->t[v->tensor].kind == KIND_PARAM) return NULL;
    const GModule *m = &g->module[s->module];
    if (s->unasked) return "body";
    if (is_result(g, m, v->tensor)) return "output";
    for (int i = 0; i < m->n_input; i++)
        if (m->input[i] == v->tensor) return "input";
    return "body";
}

/* ---- what becomes a DTensor ---- */
/* distribute_module makes DTensors of all parameters of its module; a style that only moves inputs
 * or the result touches none. */
static bool distributes(const Assign *a, const GTensor *x, int tensor) {
    const ModuleUse *u = x->module >= 0 ? &a->use[x->module] : NULL;
    if (!u || !u->style) return false;
    const StyleRow *row = style_builtin_for(u->style->name, a->model->g.module[x->module].kind);
    return a->line[tensor] >= 0 || (row && row->before && !strcmp(row->before, "api"));
}
static bool has_axis(const AxisList *l, int axis) {
    for (int i = 0; i < l->n; i++)
        if (l->a[i] == axis) return true;
    return false;
}
const char *hooks_mesh(Arena *arena, const Program *p, int tensor) {
    const Assign *a = p->assign;
    const GTensor *x = &p->graph->t[tensor];
    bool styled = distributes(a, x, tensor), sharded = plan_data_mode(a->plan)->cuts_params;
    AxisList on = {0};
    if (!dtensor_system(a->plan)) return NULL;
    for (int ax = 0; ax < p->mesh->naxes; ax++)
        if ((styled && has_axis(&a->use[x->module].axes, ax)) || has_axis(&a->shard, ax) ||
            (sharded && has_axis(&a->data, ax)))
            on.a[on.n++] = (uint8_t)ax;
    return on.n ? mesh_axes_text(p->mesh, arena, &on, true) : "";
}

/* ---- who hangs on a module ---- */
static TraceModule *add(Trace *t, const char *module, const char *style, Loc at) {
    TraceModule *x = ARENA_PUSH(t->arena, t->modules, t->n_modules, t->cap_modules);
    *x = (TraceModule){.module = module, .style = style, .file = at.file, .line = at.line};
    return x;
}
static void of_style(Trace *t, const Program *p, int module) {
    const ModuleUse *u = &p->assign->use[module];
    const GModule *m = &p->graph->module[module];
    const Plan *plan = p->assign->plan;
    const StyleRow *row = style_builtin_for(u->style->name, m->kind);
    TraceModule *x = add(t, m->path, u->name ? u->name : u->style->name, u->loc);
    if (row && dtensor_system(plan)) {
        x->before = row->before;
        x->after = row->after;
    } else if (row && plan->names == NAMES_HF && row->hf != HF_NOT)
        x->before = x->after = "transformers";
}
/* The module whose parameters are gathered together. */
static const char *unit_path(const Program *p, int unit) {
    const Graph *g = p->graph;
    int n = 0;
    while (n < g->nn && g->node[n].layer != unit) n++;
    int m = n < g->nn ? g->node[n].module : unit; /* without layers units are modules */
    while (n < g->nn && g->module[m].parent >= 0) m = g->module[m].parent;
    return g->module[m].path;
}
static void of_units(Trace *t, const Program *p, const Plan *plan) {
    if (!plan_data_mode(plan)->cuts_params || plan_data_unit(plan) == UNIT_PARAMETER) return;
    const Graph *g = p->graph;
    const int *unit = unit_layers(p);
    int last = -1;
    for (int x = 0; x < g->nt; x++)
        if (g->t[x].kind == KIND_PARAM && !g->t[x].state_of && unit[x] > last) last = unit[x];
    for (int u = -1; u <= last; u++) {
        bool any = u < 0; /* the model itself, with whatever is left for it */
        for (int x = 0; x < g->nt; x++)
            any |= g->t[x].kind == KIND_PARAM && !g->t[x].state_of && unit[x] == u;
        if (!any) continue;
        TraceModule *m =
            add(t, u < 0 ? TRACE_ROOT : unit_path(p, u), "fully_shard", plan->data_parallel.loc);
        m->before = m->after = "fsdp";
    }
}
void hooks_record(Trace *t, const Program *p, const Plan *plan) {
    of_units(t, p, plan);
    for (int m = 0; m < p->graph->nm; m++)
        if (p->assign->use[m].style) of_style(t, p, m);
}
