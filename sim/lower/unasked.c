/* Moves of the forward pass that no line of the plan asks for (N0001): they are made, and told with
 * the line that would ask for them. A framework makes none of them: blocks do not fit, or a part of
 * a sum goes on as the whole. Refuses to make or to drop a move: lowering did. */
#include "lower/mislabel.h"
#include "assign/dtensor.h"
#include "assign/suggest.h"
#include <string.h>

/* Data are cut by whoever loads them, no line asks for that; nobody exchanges them afterwards, and
 * labels, which come with the tokens, are not cut again. */
static bool unasked_move(const Program *p, const Step *s) {
    const Val *v = &p->val[s->in[0]];
    bool labels = p->graph->t[v->tensor].is_int && s->pass == PHASE_LOSS;
    return s->id < p->n_forward && s->kind == ST_MOVE && s->unasked && s->move.kind != MOVE_ID &&
           (v->kind != KIND_INPUT || move_communicates(s->move.kind) || labels) &&
           mesh_size(p->mesh, &s->move.axes) > 1;
}
/* The last of the unasked moves that follow one another from this one: where they lead. */
static const Step *last_of(const Program *p, const Step *s) {
    for (int i = s->id + 1; i < p->n_forward; i++)
        if (p->step[i].in[0] == s->out && unasked_move(p, &p->step[i])) s = &p->step[i];
    return s;
}
/* The linear module that makes the value, or -1: what may be said about others is not simple. */
static int linear_of(const Program *p, int tensor) {
    for (int m = 0; m < p->graph->nm; m++)
        if (p->graph->module[m].output == tensor && p->graph->module[m].weight >= 0 &&
            !strcmp(p->graph->module[m].kind, "linear"))
            return m;
    return -1;
}
/* The tensor whose module a move is mended at: of the loss, what it is taken of. */
static int made_at(const Program *p, const Step *s) {
    int t = p->val[s->in[0]].tensor, m = p->graph->t[t].module;
    return t == p->graph->loss && m >= 0 ? p->graph->module[m].input[0] : t;
}
/* The linear module that no line names and whose result the value is, but for what leaves each
 * number in its place (an activation, a rotation); -1. */
static int unnamed_linear(const Program *p, int tensor) {
    const Graph *g = p->graph;
    for (;;) {
        int m = linear_of(p, tensor), n = g->t[tensor].producer;
        if (m >= 0) return p->assign->use[m].style ? -1 : m;
        if (n < 0 || g->node[n].nin != 1) return -1;
        tensor = g->node[n].in[0];
    }
}
/* Does the layout cut a dim of features by the axis: what `colwise` makes? */
static bool cuts_features(const Program *p, const Val *v, int axis) {
    int d = layout_where(&v->L, axis);
    const GTensor *t = &p->graph->t[v->tensor];
    return d > 0 && d < t->nd && t->role[d] != DIM_BATCH && t->role[d] != DIM_SEQUENCE;
}
static const char *hint_of(const Program *p, const Step *s);
/* For a whole weight of which a part is used: the style that cuts it so. Where its result is moved
 * too, the line for that says the style with it. */
static const char *weight_hint(const Program *p, const Step *s) {
    int tensor = p->val[s->in[0]].tensor, m = 0, nm = p->graph->nm;
    while (m < nm &&
           (p->graph->module[m].weight != tensor || strcmp(p->graph->module[m].kind, "linear")))
        m++;
    if (m == nm && layout_where(&p->val[s->out].L, s->move.axes.a[0]) >= 0)
        return arena_printf(p->arena, "lay it out so: `%s: {weight: {%s: %s}}`",
                            plan_pattern_of(p->arena, graph_name(&p->graph->t[tensor])),
                            p->mesh->axis[s->move.axes.a[0]].name,
                            place_word(p, tensor, &p->val[s->out].L, s->move.axes.a[0]));
    if (m == nm || p->assign->use[m].style) return "lay it out by a line of its own";
    const char *layers = suggest_all_layers(p->assign, m);
    if (layers) return layers;
    for (int i = 0; i < p->n_forward; i++)
        if (unasked_move(p, &p->step[i]) &&
            p->val[p->step[i].in[0]].tensor == p->graph->module[m].output)
            return hint_of(p, &p->step[i]);
    const Layout *L = &p->val[s->out].L; /* of [out, in] */
    int d = program_stored_dim(&p->graph->t[tensor], L, layout_where(L, s->move.axes.a[0]));
    return arena_printf(p->arena, "write `%s: %s`",
                        plan_pattern_of(p->arena, p->graph->module[m].path),
                        d == 0 ? "colwise" : "rowwise");
}
/* The head whose logits a loss that no line names takes, of a value of that loss: its use, by a
 * line of the plan. NULL: it is another value. */
static const ModuleUse *head_of_loss(const Program *p, int tensor) {
    const Graph *g = p->graph;
    const int loss = g->t[tensor].module;
    if (loss < 0 || strcmp(g->module[loss].kind, "loss") || p->assign->use[loss].style) return NULL;
    const int head = linear_of(p, g->module[loss].input[0]);
    const ModuleUse *u = head < 0 ? NULL : &p->assign->use[head];
    return u && u->style && u->line >= 0 ? u : NULL;
}
/* For a sum or a largest over the vocabulary that the loss needs: whole logits, or a line for the
 * loss. NULL: it is another move. */
static const char *loss_hint(const Program *p, const Step *s) {
    const int tensor = p->val[s->in[0]].tensor;
    const ModuleUse *u = head_of_loss(p, tensor);
    if (!u || s->pass != PHASE_LOSS) return NULL;
    const PlanLine *line = &p->assign->plan->lines[u->line];
    const char *whole = arena_printf(p->arena,
                                     line->style.output.set ? "let `output` say `replicate` in the "
                                                              "line `%s`"
                                                            : "add `output: replicate` to the line "
                                                              "`%s`",
                                     line->pattern);
    return arena_printf(
        p->arena, "%s; or let the loss have it summed over %s: `%s: loss_parallel`%s", whole,
        program_axes_name(p, s, p->arena), p->graph->module[p->graph->t[tensor].module].path,
        dtensor_system(p->assign->plan)
            ? arena_printf(p->arena,
                           ", with `use_local_output: false` in the line "
                           "`%s`",
                           line->pattern)
            : "");
}
static const char *hint_of(const Program *p, const Step *s) {
    if (p->val[s->in[0]].kind == KIND_PARAM) return weight_hint(p, s);
    if (p->val[s->in[0]].kind == KIND_INPUT)
        return "let `data` give it as it is used (`order`, `cut`, `block_input`)";
    const Step *end = last_of(p, s);
    const Val *v = &p->val[s->in[0]];
    int m = linear_of(p, made_at(p, s)), whole = unnamed_linear(p, made_at(p, s));
    const int of = whole >= 0 ? whole : m;
    const char *layers = of < 0 ? NULL : suggest_all_layers(p->assign, of);
    if (layers) return layers;
    if (whole >= 0 && cuts_features(p, &p->val[end->out], s->move.axes.a[0]))
        return arena_printf(p->arena, "write `%s: colwise`",
                            plan_pattern_of(p->arena, p->graph->module[whole].path));
    if (m < 0) {
        const char *loss = loss_hint(p, s);
        return loss ? loss : "say `output` where it is made, or `desired_input` where it is read";
    }
    const ModuleUse *u = &p->assign->use[m];
    const char *place =
        place_word(p, p->val[end->out].tensor, &p->val[end->out].L, s->move.axes.a[0]);
    const PlanLine *line = u->style && u->line >= 0 ? &p->assign->plan->lines[u->line] : NULL;
    if (line)
        return arena_printf(p->arena,
                            line->style.output.set ? "let `output` say `%s` in the line `%s`"
                                                   : "add `output: %s` to the line `%s`",
                            place, line->pattern);
    if (v->L.type[s->move.axes.a[0]] != TY_P) return "name the module that makes it";
    return arena_printf(p->arena, "write `%s: {style: rowwise, output: %s}`",
                        plan_pattern_of(p->arena, p->graph->module[m].path), place);
}
/* How many components from the beginning two paths share. */
static int shared_path(const char *a, const char *b) {
    int n = 0;
    for (; *a && *a == *b; a++, b++) n += *a == '.';
    return n + ((!*a || *a == '.') && (!*b || *b == '.'));
}
Loc program_place(const Program *p, const Step *s) {
    const Graph *g = p->graph;
    int best = -1, most = 0, of = g->t[p->val[s->out].tensor].module;
    if (s->loc.file && s->loc.line) return s->loc;
    for (int m = 0; of >= 0 && m < g->nm; m++) {
        const ModuleUse *u = &p->assign->use[m];
        int n = u->style && u->loc.line && !p->assign->plan->lines[u->line].from_recipe
                    ? shared_path(g->module[m].path, g->module[of].path)
                    : 0;
        if (n > most) best = m, most = n;
    }
    const ModuleUse *head = head_of_loss(p, p->val[s->out].tensor);
    if (best < 0 && head && head->loc.line) return head->loc;
    return best >= 0 ? p->assign->use[best].loc : plan_place(p->assign->plan);
}
static Loc place_in_plan(const Program *p, const Step *s) {
    int m = linear_of(p, made_at(p, s));
    if (m >= 0 && p->assign->use[m].style && p->assign->use[m].loc.line)
        return p->assign->use[m].loc;
    return program_place(p, s);
}
/* Moves of one kind of values that differ in their layer's number only are told once. */
static bool alike(const Program *p, const Step *a, const Step *b) {
    return a->move.kind == b->move.kind &&
           !strcmp(program_axes_name(p, a, p->arena), program_axes_name(p, b, p->arena)) &&
           !strcmp(plan_pattern_of(p->arena, step_value(p, a)),
                   plan_pattern_of(p->arena, step_value(p, b)));
}
/* What a loss of logits that stay cut has summed is one thing that no line asks for. */
static bool one_loss(const Program *p, const Step *a, const Step *b) {
    const ModuleUse *u = a->pass == PHASE_LOSS ? head_of_loss(p, p->val[a->in[0]].tensor) : NULL;
    return u && b->pass == PHASE_LOSS && head_of_loss(p, p->val[b->in[0]].tensor) == u &&
           !strcmp(program_axes_name(p, a, p->arena), program_axes_name(p, b, p->arena)) &&
           !strcmp(hint_of(p, a), hint_of(p, b));
}
/* ", and so are the all_reduce of loss.sumexp and the all_reduce of loss.target": the moves behind
 * kind k that are told with it, which told[] then marks. */
static const char *also_made(const Program *p, const Step *const *first, int kinds, int k,
                             bool *told) {
    const char *name[3] = {NULL};
    int n = 0;
    for (int j = k + 1; j < kinds && n < 3; j++)
        if (one_loss(p, first[k], first[j]))
            name[n++] = step_name(p, first[j], p->arena), told[j] = true;
    Str s = str_new(p->arena);
    for (int i = 0; i < n; i++)
        str_addf(&s, "%sthe %s",
                 i == 0       ? n > 1 ? ", and so are " : ", and so is "
                 : i == n - 1 ? " and "
                              : ", ",
                 name[i]);
    return n ? s.s : "";
}
static void say(const Program *p, Diags *d, const Step *s, int n, const char *also) {
    const char *more = n > 1 ? arena_printf(p->arena, " and %d more like it", n - 1) : "";
    diag_note(d, "N0001", place_in_plan(p, s), hint_of(p, s),
              *also ? "the %s%s over %s is made (%s)%s: no line of the plan asks for them"
                    : "the %s%s over %s is made (%s)%s, and no line of the plan asks for it",
              step_name(p, s, p->arena), more, program_axes_name(p, s, p->arena), s->why, also);
}
bool program_of_torch(const Program *p) { return dtensor_system(p->assign->plan); }
const char *unasked_line(const Program *p, const Step *s) {
    bool claimed = s->kind == ST_CLAIM && s->unasked && s->id < p->n_forward && s->move.axes.n;
    return claimed ? hint_of(p, s) : NULL;
}
int unasked_notes(const Program *p, Diags *d, const char ***names) {
    int n = 0, cap = 0, kinds = 0;
    *names = NULL;
    if (p->assign->plan->trust == TRUST_COMPILER) return 0;
    const Step **first = ARENA_ARRAY(p->arena, const Step *, p->n_forward + 1);
    int *count = ARENA_ARRAY(p->arena, int, p->n_forward + 1);
    for (int i = 0; i < p->n_forward; i++) {
        const Step *s = &p->step[i];
        if (!unasked_move(p, s)) continue;
        *ARENA_PUSH(p->arena, *names, n, cap) = step_name(p, s, p->arena);
        int k = 0;
        while (k < kinds && !alike(p, first[k], s)) k++;
        if (k == kinds) first[kinds++] = s, count[k] = 0;
        count[k]++;
    }
    bool *told = ARENA_ARRAY(p->arena, bool, kinds + 1);
    for (int k = 0; k < kinds; k++)
        if (!told[k]) say(p, d, first[k], count[k], also_made(p, first, kinds, k, told));
    return n;
}
