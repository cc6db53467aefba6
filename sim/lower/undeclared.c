/* Sums of gradients that nobody declared: found in the program, and for each the line that would
 * declare it, as the framework writes it whose names the plan uses. Refuses to make or to drop a
 * sum: lowering did. */
#include "lower/program.h"
#include <string.h>

bool undeclared_sum(const Program *p, const Step *s) {
    if (!s->inferred || s->id < p->n_forward || s->kind != ST_MOVE || !p->val[s->out].cot)
        return false;
    /* the adjoint of I -> R; the other inferred steps undo collectives of the forward pass, which
     * are reported there */
    return s->move.kind == MOVE_ALL_REDUCE && s->move.from.type[s->move.axes.a[0]] == TY_P &&
           s->move.to.type[s->move.axes.a[0]] == TY_I;
}

/* The same under `trust: declared`: the axes of sums that were not made, where what a rank holds is
 * taken for the whole. */
static uint32_t left_out(const Program *p, const Step *s) {
    uint32_t axes = 0;
    if (s->kind != ST_CLAIM || !s->unasked || s->id < p->n_forward || !p->val[s->out].cot) return 0;
    for (int x = 0; x < p->mesh->naxes; x++)
        if (s->move.from.type[x] == TY_P && s->move.to.type[x] == TY_I && p->mesh->axis[x].size > 1)
            axes |= 1u << x;
    return axes;
}

/* ---- the line that would declare it ---- */
static const char *axes_words(const Program *p, uint32_t set) {
    AxisList l = mesh_set_axes(p->mesh, set);
    return mesh_axes_text(p->mesh, p->arena, &l, false);
}
/* The same as a plan writes it: parts of an axis that was split for KV heads stand for the axis. */
static const char *written_axes(const Program *p, uint32_t set) {
    const Mesh *m = p->mesh;
    for (int x = 0; x < m->naxes; x++)
        for (int y = 0; y < m->naxes; y++)
            if ((set >> y & 1) && m->axis[x].parent && m->axis[y].parent &&
                !strcmp(m->axis[x].parent, m->axis[y].parent))
                set |= 1u << x;
    return axes_words(p, set);
}
/* A mapping of axes that says `place` of each. */
static const char *on_each(const Program *p, uint32_t set, const char *place) {
    Str s = str_new(p->arena);
    const char *last = NULL;
    for (int x = 0; x < p->mesh->naxes; x++) {
        const char *name =
            p->mesh->axis[x].parent ? p->mesh->axis[x].parent : p->mesh->axis[x].name;
        if (!(set >> x & 1) || (last && !strcmp(last, name))) continue;
        str_addf(&s, "%s%s: %s", last ? ", " : "{", name, place);
        last = name;
    }
    str_add(&s, "}");
    return s.s;
}
/* The node that uses a parameter, as the forward program has it. */
static const Step *user_of(const Program *p, int tensor) {
    for (int i = 0; i < p->n_forward; i++)
        for (int k = 0; p->step[i].kind == ST_OP && k < p->step[i].nin; k++)
            if (p->val[p->step[i].in[k]].tensor == tensor) return &p->step[i];
    return NULL;
}
/* Does the module that uses the parameter work on a part of the sequence, over these axes? */
static bool on_cut_sequence(const Program *p, int tensor, uint32_t axes) {
    const Step *s = user_of(p, tensor);
    if (!s) return false;
    const Val *x = &p->val[s->in[0]];
    const GTensor *t = &p->graph->t[x->tensor];
    for (int d = 0; d < t->nd; d++)
        for (int k = 0; k < x->L.n[d]; k++)
            if (t->role[d] == DIM_SEQUENCE && (axes >> x->L.e[d][k].axis & 1)) return true;
    return false;
}
/* The axes that a style acts on where no `axis` is written. */
static uint32_t default_axes(const Program *p, bool sequence) {
    AxisList l;
    if (sequence && mesh_lookup(p->mesh, "sp", &l)) return mesh_axes_set(&l);
    if (mesh_lookup(p->mesh, "tp", &l)) return mesh_axes_set(&l);
    return p->mesh->naxes == 1 ? 1 : 0;
}
/* The line of the plan that stands for a module, or NULL. */
static const PlanLine *line_of(const Plan *p, Loc loc) {
    for (int i = 0; i < p->n_lines; i++)
        if (p->lines[i].loc.line == loc.line && p->lines[i].loc.col == loc.col && loc.file &&
            !strcmp(p->lines[i].loc.file, loc.file))
            return &p->lines[i];
    return NULL;
}
static const char *style_line(const Program *p, int tensor, uint32_t axes) {
    const GTensor *t = &p->graph->t[tensor];
    const GModule *m = t->module >= 0 ? &p->graph->module[t->module] : NULL;
    int at = p->assign->line[tensor];
    const PlanLine *line = at < 0 ? NULL : &p->assign->plan->lines[at];
    if (line &&
        p->assign->summed[tensor] &
            ~mesh_axes_set(&p->assign->data)) /* it owns the parameter, and speaks of other axes */
        return arena_printf(p->arena, "let the placement of %s in the line `%s` say `%s` too",
                            graph_name(t), line->pattern, on_each(p, axes, "replicate"));
    bool norm = m && !strcmp(m->kind, "norm") && on_cut_sequence(p, tensor, axes);
    const char *style = norm ? "sequence_parallel" : "replicated_with_grad_allreduce";
    /* a module that has a style keeps it: the line is then the parameter's own */
    bool own = m && m->path && (!p->assign->use[t->module].style || norm) &&
               (m->weight == tensor || m->bias == tensor);
    const char *path = plan_pattern_of(p->arena, own ? m->path : graph_name(t));
    if (axes & ~default_axes(p, norm))
        return arena_printf(p->arena, "write `%s: {style: %s, axis: %s}`", path, style,
                            written_axes(p, axes));
    return arena_printf(p->arena, "write `%s: %s`", path, style);
}
/* What else the plan's entry says: the line that is written in its place says it too. */
static const char *data_keys(const Program *p) {
    const Plan *plan = p->assign->plan;
    Str s = str_new(p->arena);
    if (plan->data_parallel.form) str_addf(&s, ", form: %s", plan->data_parallel.form);
    if (plan->data_parallel.unit) str_addf(&s, ", unit: %s", plan->data_parallel.unit);
    if (plan->data_parallel.reshard) str_addf(&s, ", reshard: %s", plan->data_parallel.reshard);
    if (plan->data_parallel.grad_sync)
        str_addf(&s, ", grad_sync: %s", plan->data_parallel.grad_sync);
    if (strcmp(plan->data_parallel.grad_order, "shard_first"))
        str_addf(&s, ", grad_order: %s", plan->data_parallel.grad_order);
    return s.s ? s.s : "";
}
static const char *data_line(const Program *p, uint32_t axes) {
    const Assign *a = p->assign;
    const DataMode *mode = plan_data_mode(a->plan);
    uint32_t had = mesh_axes_set(&a->data);
    if (!a->shard.n) had &= a->tokens; /* an axis that cuts no data had nothing to sum */
    if (mode->copies)
        return arena_printf(p->arena,
                            "write `data_parallel: {mode: %s, replicate: %s, shard: %s%s}`",
                            mode->name, axes_words(p, (had & ~mesh_axes_set(&a->shard)) | axes),
                            axes_words(p, mesh_axes_set(&a->shard)), data_keys(p));
    return arena_printf(p->arena, "write `data_parallel: {mode: %s, axis: %s%s}`", mode->name,
                        axes_words(p, had | axes), data_keys(p));
}
/* Is the module's line one that the plan says in other keys? No field can be added to that. */
static bool of_kind(const Program *p, int m) {
    const ModuleUse *u = &p->assign->use[m];
    return u->style && p->assign->plan->lines[u->line].kind;
}
/* The module, of those around a node, at whose boundary the tensor enters, and as which argument;
 * -1: none. */
static int module_input(const Program *p, const GNode *n, int tensor, int *arg) {
    for (int m = n->module; m >= 0; m = p->graph->module[m].parent)
        for (int i = 0; i < p->graph->module[m].n_input; i++)
            if (p->graph->module[m].input[i] == tensor && !of_kind(p, m)) {
                *arg = i;
                return m;
            }
    return -1;
}
/* Those of the axes that are more than one rank. */
static uint32_t several(const Program *p, uint32_t axes) {
    for (int x = 0; x < p->mesh->naxes; x++)
        if (p->mesh->axis[x].size == 1) axes &= ~(1u << x);
    return axes;
}
static const char *input_line(const Program *p, int module, int arg, uint32_t axes) {
    const ModuleUse *u = &p->assign->use[module];
    const PlanLine *line = u->style ? line_of(p->assign->plan, u->loc) : NULL;
    bool bare = u->style && axes == several(p, mesh_axes_set(&u->axes));
    const char *place = bare ? u->cuts_param && !u->local_inside ? "replicate" : "varying_use"
                             : on_each(p, axes, "varying_use");
    Str list = str_new(p->arena), label = str_new(p->arena);
    for (int i = 0; i < arg; i++) str_add(&list, "null, "), str_add(&label, "null, ");
    str_add(&list, place);
    str_add(&label, bare ? "replicate" : on_each(p, axes, "replicate"));
    if (line && line->style.desired_input.set)
        return arena_printf(p->arena, "let `desired_input` of the line `%s` say %s%s",
                            line->pattern, place, bare ? "" : " too");
    if (line)
        return arena_printf(p->arena, "add `desired_input: [%s]` to the line `%s`", list.s,
                            line->pattern);
    /* with the label: a prepared DTensor without one stays as it is */
    return arena_printf(p->arena,
                        "write `%s: {style: prepare_module_input, input: [%s], desired_input: "
                        "[%s]}`",
                        plan_pattern_of(p->arena, p->graph->module[module].path), label.s, list.s);
}
/* For an activation: every module that reads this copy has to say what it wants. NULL if no module
 * does. */
static const char *input_lines(const Program *p, const Val *v, uint32_t axes) {
    Str s = str_new(p->arena);
    for (int k = 0; k < v->n_parts; k++) {
        if (v->parts[k].node < 0) continue;
        int arg = 0, module = module_input(p, &p->graph->node[v->parts[k].node], v->tensor, &arg);
        if (module < 0) continue;
        const char *line = input_line(p, module, arg, axes);
        if (!s.n || !strstr(s.s, line)) str_addf(&s, "%s%s", s.n ? ", " : "", line);
    }
    return s.n ? s.s : NULL;
}

/* ---- notes ---- */
typedef struct {
    const char *line; /* that would declare it */
    const char *axes, *first;
    int n;
    Loc loc;
    bool param;
} Wanted;
typedef struct {
    Program const *p;
    int n, cap;
    Wanted *w;
} Wants;
static void want(Wants *all, const char *line, uint32_t axes, const char *name, Loc loc,
                 bool param) {
    const char *text = axes_words(all->p, axes);
    for (int i = 0; i < all->n; i++) {
        Wanted *w = &all->w[i];
        if (!line == !w->line && (!line || !strcmp(w->line, line)) && !strcmp(w->axes, text) &&
            w->param == param) {
            w->n++;
            return;
        }
    }
    *ARENA_PUSH(all->p->arena, all->w, all->n, all->cap) =
        (Wanted){line, text, name, 1, loc, param};
}
static Loc where(const Program *p, const Step *s, bool data) {
    const Plan *plan = p->assign->plan;
    if (data && plan->data_parallel.axis_loc.file) return plan->data_parallel.axis_loc;
    if (data && plan->data_parallel.loc.file) return plan->data_parallel.loc;
    return program_place(p, s);
}
static void want_step(Wants *all, const Step *s, const char *name, uint32_t axes) {
    const Program *p = all->p;
    const Val *v = &p->val[s->out];
    uint32_t data = axes & p->assign->tokens, model = axes & ~data;
    if (p->graph->t[v->tensor].kind != KIND_PARAM) {
        want(all, input_lines(p, v, axes), axes, name, where(p, s, false), false);
        return;
    }
    if (data) want(all, data_line(p, data), data, name, where(p, s, true), true);
    if (model) want(all, style_line(p, v->tensor, model), model, name, where(p, s, false), true);
}
static void say(const Program *p, Diags *d, const Wanted *w) {
    const char *more = w->n > 1 ? arena_printf(p->arena, " and %d more like it", w->n - 1) : "";
    const char *made = p->assign->plan->trust == TRUST_DECLARED ? "is due and not made" : "is made";
    const char *hint = w->line ? w->line : "name the module that reads it, with `desired_input`";
    diag_note(d, "N0008", w->loc, hint,
              "the sum of %s%s over %s %s, and no line of the plan declares it", w->first, more,
              w->axes, made);
}
const char *undeclared_line(const Program *p, const Step *s) {
    int tensor = p->val[s->out].tensor;
    uint32_t axes = left_out(p, s), data = axes & p->assign->tokens;
    if (!axes || p->graph->t[tensor].kind != KIND_PARAM) return NULL;
    return data ? data_line(p, data) : style_line(p, tensor, axes);
}
int undeclared_notes(const Program *p, Diags *d, const char ***names) {
    Wants all = {.p = p};
    int n = 0, cap = 0;
    *names = NULL;
    if (p->assign->plan->trust == TRUST_COMPILER) return 0;
    for (int i = p->n_forward; i < p->ns; i++) {
        const Step *s = &p->step[i];
        bool made = undeclared_sum(p, s);
        uint32_t axes = made ? mesh_axes_set(&s->move.axes) : left_out(p, s);
        if (!axes) continue;
        const char *name = step_value(p, s);
        want_step(&all, s, name, axes);
        bool had = !made;
        for (int k = 0; k < n && !had; k++) had = !strcmp((*names)[k], name);
        if (!had) *ARENA_PUSH(p->arena, *names, n, cap) = name;
    }
    for (int i = 0; i < all.n; i++) say(p, d, &all.w[i]);
    return n;
}
