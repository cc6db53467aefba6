/* What a line of the plan says of a module: the axes it acts on, and how its style places a
 * parameter of the module. Lays nothing out. */
#include "assign/spec.h"
#include "assign/dtensor.h"
#include "assign/target.h"
#include <string.h>

bool spec_axes(Assign *a, ModuleUse *u, const GModule *m, const PlanLine *line) {
    AxisList l;
    const char *axis = u->style->axis, *prefers = u->style->prefers;
    if (!axis && prefers && mesh_lookup(a->mesh, prefers, &l)) axis = prefers;
    if (!axis) axis = target_default_axis(a, m->vocab);
    if (!axis) {
        if (!a->no_axis) a->no_axis = ARENA_ARRAY(a->arena, bool, a->plan->n_lines);
        a->no_axis[line - a->plan->lines] = true;
        return false;
    }
    if (!assign_axes(a->mesh, a->arena, a->d, axis, u->style->loc.file ? u->style->loc : u->loc,
                     &u->axes))
        return false;
    u->group = u->seq_group = axis;
    u->seq_axes = u->axes;
    if (!u->style->axis && mesh_lookup(a->mesh, "sp", &l)) {
        u->seq_axes = l;
        u->seq_group = "sp";
    }
    return true;
}

const RawSpec *spec_of_param(const Assign *a, const Style *s, const GModule *mod, int t) {
    if (t == mod->weight) return &s->weight;
    if (t == mod->bias) return dtensor_bias(a->plan, s, &s->bias);
    if (!strcmp(mod->kind, "experts") && s->weight.set) return &s->weight; /* of all its weights */
    const char *dot = strrchr(a->model->g.t[t].name, '.');
    for (int i = 0; i < s->n_params; i++)
        if (dot && !strcmp(s->params[i].name, dot + 1)) return &s->params[i].spec;
    return NULL;
}
