/* Does what a framework makes of the exported text compute as the plan does? The text is imported,
 * its keys are laid over the plan's own model and data, both are lowered, and the programs are
 * compared step by step: by what a step does, of which value, over which axes of the mesh by their
 * order. Names of axes, groups and modules may differ. What no program shows is held apart. */
#include "drive/run.h"
#include "export/export.h"
#include "plan/sharding.h"
#include <string.h>

/* Axes of more than one rank, by their order: number of axis, or -1. */
static int order_of(const Mesh *m, int axis) {
    int n = 0;
    for (int i = 0; i < axis; i++) n += m->axis[i].size > 1;
    return m->axis[axis].size > 1 ? n : -1;
}
static void add_layout(Str *s, const Mesh *m, const Layout *l) {
    for (int d = 0; d <= l->ndim; d++) {
        for (int i = 0; i < l->n[d]; i++) {
            const Entry *e = &l->e[d][i];
            if (m->axis[e->axis].size > 1)
                str_addf(s, "%d:%d~%d%s+%d ", d, order_of(m, e->axis), e->how, e->ghost ? "g" : "",
                         e->shift);
        }
    }
    for (int i = 0; i < m->naxes; i++)
        if (m->axis[i].size > 1) str_addf(s, "%d@%d ", l->type[i], l->at[i]);
    str_addf(s, "[%d %lld %lld]", l->list, (long long)l->flat.first, (long long)l->flat.total);
}
/* What a step is, without names of axes. */
static const char *text_of(Arena *a, const Program *p, const Step *s) {
    Str t = str_new(a);
    const Val *out = &p->val[s->out];
    int r[RULE_MAX_IN + 2], n = step_reads(s, r);
    str_addf(&t, "%d %d %d %d t%d%s %d%d%d ", s->pass, s->kind, s->node, s->operand, out->tensor,
             out->cot ? "'" : "", s->recompute, s->each, s->goes_on);
    if (s->kind == ST_MOVE) {
        str_addf(&t, "move %d over ", s->move.kind);
        for (int i = 0; i < s->move.axes.n; i++)
            if (p->mesh->axis[s->move.axes.a[i]].size > 1)
                str_addf(&t, "%d ", order_of(p->mesh, s->move.axes.a[i]));
        add_layout(&t, p->mesh, &s->move.from);
    }
    add_layout(&t, p->mesh, &out->L);
    for (int i = 0; i < n; i++)
        str_addf(&t, " %d%s", p->val[r[i]].tensor, p->val[r[i]].cot ? "'" : "");
    return t.s;
}
/* Moves over axes of one rank do nothing; where nothing goes backward, neither does a use that
 * modules share or not. */
static bool idle(const Program *p, const Step *s, bool forward) {
    if (s->kind != ST_MOVE) return false;
    return mesh_size(p->mesh, &s->move.axes) == 1 || (forward && s->move.kind == MOVE_ID);
}
static const Step *next(const Program *p, int *at, bool forward) {
    while (*at < p->ns && idle(p, &p->step[*at], forward)) ++*at;
    return *at < p->ns ? &p->step[(*at)++] : NULL;
}
static const char *said(Arena *a, const Program *p, const Step *s) {
    if (!s) return "nothing more";
    Str t = str_new(a);
    str_add(&t, step_name(p, s, a));
    if (s->kind == ST_MOVE) str_addf(&t, " over %s", program_axes_name(p, s, a));
    return t.s;
}
static const char *mesh_text(Arena *a, const Mesh *m) {
    Str t = str_new(a);
    for (int i = 0; i < m->naxes; i++)
        if (m->axis[i].size > 1)
            str_addf(&t, "%s%lld", t.n ? " x " : "", (long long)m->axis[i].size);
    return t.n ? t.s : "1";
}
/* The first thing in which they differ; steps: how far they agree. */
static ExportDifference compare(Arena *a, const Program *p, const Program *q) {
    ExportDifference d = {.at = p->assign->plan->mesh_loc};
    bool forward = p->assign->plan->pass == PASS_FORWARD;
    d.ours = mesh_text(a, p->mesh), d.theirs = mesh_text(a, q->mesh);
    if (strcmp(d.ours, d.theirs) != 0) return d;
    for (int i = 0, k = 0;; d.steps++) {
        const Step *mine = next(p, &i, forward), *their = next(q, &k, forward);
        if (!mine && !their) return (ExportDifference){.same = true};
        if (mine && their && !strcmp(text_of(a, p, mine), text_of(a, q, their))) continue;
        d.ours = said(a, p, mine), d.theirs = said(a, q, their);
        if (mine && mine->loc.file) d.at = mine->loc;
        if (!strcmp(d.ours, d.theirs)) { /* the same step over the same axes, laid otherwise */
            d.ours = arena_printf(a, "%s as %s", d.ours,
                                  layout_text(p->mesh, &p->val[mine->out].L, NULL, a));
            d.theirs = arena_printf(a, "%s as %s", d.theirs,
                                    layout_text(q->mesh, &q->val[their->out].L, NULL, a));
        }
        return d;
    }
}

/* The plan with what the framework's text says in place of its own keys. Lines of modules that the
 * plan's model has not got say nothing about it. */
static Plan *laid_over(Arena *a, const Plan *p, const Plan *q) {
    Plan *o = arena_memdup(a, p, sizeof *o);
    o->axes = q->axes, o->n_axes = q->n_axes, o->groups = q->groups, o->n_groups = q->n_groups;
    o->names = q->names, o->recipe = q->recipe, o->styles = q->styles, o->n_styles = q->n_styles;
    o->lines = q->lines, o->n_lines = q->n_lines;
    for (int i = 0; i < o->n_lines; i++) o->lines[i].from_recipe = true;
    o->per_module = q->per_module, o->kv_replicate = q->kv_replicate;
    o->trust = q->trust;
    o->data_parallel = q->data_parallel, o->dims = q->dims, o->n_dims = q->n_dims;
    o->context_parallel = q->context_parallel;
    o->pipeline = q->pipeline, o->recompute = q->recompute, o->save_gathered = q->save_gathered;
    o->cut_batch = q->cut_batch, o->cut_sequence = q->cut_sequence;
    o->moe.axis = q->moe.axis, o->moe.etp = q->moe.etp, o->moe.dispatch = q->moe.dispatch;
    o->moe.fsdp_dim = q->moe.fsdp_dim;
    o->faults = NULL, o->gradients = NULL, o->n_faults = o->n_gradients = 0;
    return o;
}
static Program *program_of(Arena *a, Diags *d, Plan *p) {
    PipelineReport rep = {0};
    Run r = {.arena = a, .d = d, .rep = &rep, .plan = p};
    return run_front(&r) && run_lower(&r) ? r.program : NULL;
}
static const char *first_error(Arena *a, const Diags *d) {
    for (int i = 0; i < d->n; i++)
        if (d->item[i].severity == DIAG_ERROR) return arena_strdup(a, d->item[i].message);
    return "an error";
}
/* A plan that goes forward shows nothing of what its keys say of gradients, of what is kept for
 * them and of the optimizer: without its lines, whose backward is not asked for, it is trained. */
static Plan *trained(Arena *a, const Plan *p) {
    Plan *o = arena_memdup(a, p, sizeof *o);
    o->n_lines = 0, o->recipe = NULL;
    o->pass = PASS_TRAIN;
    if (!o->optimizer.name) o->optimizer.name = "sgd";
    o->faults = NULL, o->gradients = NULL, o->n_faults = o->n_gradients = 0;
    return o;
}
static ExportDifference compare_trained(Arena *a, const Plan *p, const Plan *over) {
    bool said = p->data_parallel.loc.file || p->context_parallel.loc.file || p->recompute ||
                !p->save_gathered;
    Diags *d = diags_new(a);
    Program *mine = p->pass != PASS_TRAIN && said ? program_of(a, d, trained(a, p)) : NULL;
    if (!mine) return (ExportDifference){.same = true};
    Program *their = program_of(a, d, trained(a, over));
    if (their) return compare(a, mine, their);
    return (ExportDifference){.at = p->mesh_loc, .theirs = first_error(a, d)};
}
/* What steps do not show of a pipeline: which rank does what of which micro-batch, in which order.
 */
static const char *order_text(Arena *a, const Stages *st) {
    Str s = str_new(a);
    if (!st) return "no pipeline";
    str_addf(&s, "%s of %d micro-batches", st->schedule->name, st->schedule->parts);
    for (int r = 0; r < st->schedule->ranks; r++) {
        str_addf(&s, "\n%d:", r);
        for (int i = 0; i < st->schedule->rank[r].n; i++) {
            const Action *x = &st->schedule->rank[r].a[i];
            str_addf(&s, " %d.%d.%d%s", x->kind, x->stage, x->part, x->joined ? "+" : "");
        }
    }
    for (int i = 0; i < st->n; i++) str_addf(&s, "\n%d %d", st->home[i], st->again[i]);
    return s.s;
}
static const char *first_line(Arena *a, const char *s) {
    return arena_strndup(a, s, strcspn(s, "\n"));
}
/* How parameters that are cut at rest are gathered; "" where none are. */
static const char *shards_text(Arena *a, const Plan *p) {
    const DataMode *mode = plan_data_mode(p);
    if (!mode->cuts_params) return "";
    return arena_printf(a, "%s of unit %s, reshard %s", mode->name, plan_data_unit_word(p),
                        plan_reshard(p)->name);
}
ExportDifference export_difference(const Export *e, const ImportInput *in) {
    Diags *d = diags_new(e->a);
    ExportDifference x = {.at = e->p->mesh_loc};
    ImportedPlan text = import_plan(e->a, d, in);
    Plan *q = text.text ? plan_parse(e->a, d, (PlanText){in->framework, text.text, text.n, NULL, 0})
                        : NULL;
    Program *mine =
        q && !diags_errors(d) ? program_of(e->a, d, arena_memdup(e->a, e->p, sizeof *e->p)) : NULL;
    Plan *over = mine ? laid_over(e->a, e->p, q) : NULL;
    Program *their = over ? program_of(e->a, d, over) : NULL;
    if (!their) {
        x.theirs = first_error(e->a, d);
        return x;
    }
    x = compare(e->a, mine, their);
    int steps = x.steps;
    if (x.same && !(x = compare_trained(e->a, e->p, over)).same) x.steps += steps;
    const char *const orders[] = {order_text(e->a, mine->assign->stages),
                                  order_text(e->a, their->assign->stages)};
    if (x.same && strcmp(orders[0], orders[1]) != 0)
        x = (ExportDifference){.at = e->p->pipeline.loc.file ? e->p->pipeline.loc : e->p->mesh_loc,
                               .steps = steps,
                               .ours = first_line(e->a, orders[0]),
                               .theirs = first_line(e->a, orders[1])};
    const char *const shards[] = {shards_text(e->a, e->p), shards_text(e->a, over)};
    if (*shards[0] && *shards[1] &&
        strcmp(shards[0], shards[1]) != 0) /* what the steps differ by */
        x = (ExportDifference){
            .at = e->p->data_parallel.loc, .ours = shards[0], .theirs = shards[1]};
    return x;
}
void export_refuse_difference(const Export *e, const char *framework, const char *hint,
                              const ExportDifference *x) {
    if (!x->ours)
        export_refuse(e, x->at, hint, "what %s can say of this plan is no plan: %s", framework,
                      x->theirs);
    else
        export_refuse(e, x->at, hint, "%s would compute otherwise: %s where the plan has %s",
                      framework, x->theirs, x->ours);
}
