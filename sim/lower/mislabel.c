/* Labels that lie (E0402): what a line says of a module's input or output, and how the value really
 * lies. One missing idea mislabels many modules; they are one finding, told at the end of lowering,
 * with who leaves the value so and what would mend it. Refuses to decide whether a label holds:
 * lowering did. */
#include "lower/mislabel.h"
#include "assign/suggest.h"
#include "assign/target.h"
#include <string.h>

void mislabel_add(Mislabels *all, Arena *a, Mislabel m) {
    *ARENA_PUSH(a, all->m, all->n, all->cap) = m;
}
const char *place_word(const Program *p, int tensor, const Layout *L, int axis) {
    int d = layout_where(L, axis);
    return d >= 0
               ? arena_printf(p->arena, "shard(%d)", program_stored_dim(&p->graph->t[tensor], L, d))
           : L->type[axis] == TY_P ? "partial"
                                   : "replicate";
}
/* The one placement over the axes in which the two layouts differ, of `of`; NULL: there is none. */
static const char *one_place(const Program *p, const Mislabel *m, const Layout *of) {
    const char *word = NULL;
    for (int x = 0; x < p->mesh->naxes; x++) {
        const char *a = place_word(p, m->tensor, &m->want, x),
                   *b = place_word(p, m->tensor, &m->have, x);
        if (p->mesh->axis[x].size < 2 || !strcmp(a, b)) continue;
        const char *one = place_word(p, m->tensor, of, x);
        if (word && strcmp(word, one) != 0) return NULL;
        word = one;
    }
    return word;
}
/* Does the tensor lie as the value does, over the axes on which the label is wrong? */
static bool lies_so(const Program *p, const Mislabel *m, int tensor) {
    if (p->env[tensor] < 0) return false;
    for (int x = 0; x < p->mesh->naxes; x++) {
        const char *want = place_word(p, m->tensor, &m->want, x),
                   *have = place_word(p, m->tensor, &m->have, x);
        if (p->mesh->axis[x].size > 1 && strcmp(want, have) != 0 &&
            strcmp(place_word(p, tensor, &p->val[p->env[tensor]].L, x), have) != 0)
            return false;
    }
    return true;
}
static bool activation(const Program *p, int tensor) {
    return p->graph->t[tensor].kind == KIND_ACTIVATION;
}
/* What a node adds up, norms or scales, and leaves where it lies: the operand that lies as the
 * value does, of a residual sum its branch first. -1: the node makes something else. */
static int before_it(const Program *p, const Mislabel *m, int tensor) {
    const Graph *g = p->graph;
    const GNode *n = g->t[tensor].producer >= 0 ? &g->node[g->t[tensor].producer] : NULL;
    int read = 0;
    for (int i = 0; n && i < n->nin; i++) read += activation(p, n->in[i]);
    if (read > 1 && n->op->lin != LIN_ADD) return -1;
    for (int i = n ? n->nin - 1 : -1; i >= 0; i--) {
        const GTensor *in = &g->t[n->in[i]];
        bool like = in->nd == g->t[tensor].nd && !strcmp(in->letter, g->t[tensor].letter);
        if (like && in->kind != KIND_PARAM && lies_so(p, m, in->id)) return in->id;
    }
    return -1;
}
/* The branch that the last residual sum of the layers adds; -1: none. */
static int last_branch(const Program *p) {
    const Graph *g = p->graph;
    for (int k = g->nn - 1; k >= 0; k--) {
        const GNode *n = &g->node[k];
        bool sum = n->layer >= 0 && n->op->lin == LIN_ADD && n->nin == 2;
        if (sum && activation(p, n->in[0]) && activation(p, n->in[1])) return n->in[1];
    }
    return -1;
}
/* Has the module a plain product with its weight? */
static bool is_linear(const GModule *m) {
    return m->weight >= 0 && (!strcmp(m->kind, "linear") || !strcmp(m->kind, "conv1d"));
}
/* The module whose result the tensor is: the innermost whose line speaks of it, else a linear one
 * that no line names, else one that is named for its inputs. */
static int leaves(const Program *p, int tensor) {
    const GModule *all = p->graph->module;
    int speaks = -1, plain = -1, named = -1;
    for (int k = 0; k < p->graph->nm; k++) {
        const Style *s = p->assign->use[k].style;
        if (all[k].output != tensor) continue;
        if (!s && is_linear(&all[k])) plain = k;
        if (s && (all[k].weight >= 0 || s->output.set || s->desired_output.set)) speaks = k;
        if (s) named = k;
    }
    return speaks >= 0 ? speaks : plain >= 0 ? plain : named;
}
/* The module that leaves the value so, through sums, norms and factors; for what enters the first
 * layer the one whose result leaves the last. -1: none, as of ids. */
static int maker(const Program *p, const Mislabel *m) {
    bool stream = true;
    for (int t = m->tensor; t >= 0;) {
        int by = leaves(p, t);
        if (by >= 0) return by;
        if (p->graph->t[t].kind != KIND_INPUT) {
            t = before_it(p, m, t);
            continue;
        }
        if (!stream || p->graph->t[t].is_int || p->assign->plan->block_input.set) return -1;
        by = assign_stream_module(p->assign);
        if (by >= 0) return by;
        stream = false, t = last_branch(p);
    }
    return -1;
}
static bool same_place(const Mislabel *a, const Mislabel *b) {
    return a->input == b->input && !a->instead == !b->instead && a->loc.line == b->loc.line &&
           a->loc.col == b->loc.col && a->loc.file && b->loc.file &&
           !strcmp(a->loc.file, b->loc.file) && !strcmp(a->want_text, b->want_text) &&
           !strcmp(a->have_text, b->have_text);
}
/* "layers.0.attention.wq, wk, wv and 3 more": those beside the first are named, the others counted.
 */
static const char *modules_text(const Program *p, const Mislabels *all, int first) {
    enum { NAMED = 4 };
    Str s = str_new(p->arena);
    const char *path = p->graph->module[all->m[first].module].path, *dot = strrchr(path, '.');
    size_t parent = dot ? (size_t)(dot - path) + 1 : 0;
    int named = 0, more = 0;
    for (int i = first; i < all->n; i++) {
        if (!same_place(&all->m[first], &all->m[i])) continue;
        const char *other = p->graph->module[all->m[i].module].path;
        bool beside = !strncmp(other, path, parent) && !strchr(other + parent, '.');
        if (i > first && (!beside || !parent || named == NAMED)) more++;
        else str_addf(&s, "%s%s", named++ ? ", " : "", i > first ? other + parent : other);
    }
    if (more) str_addf(&s, " and %d more", more);
    return s.s;
}
static const PlanLine *line_of(const Program *p, int module) {
    const ModuleUse *u = module >= 0 ? &p->assign->use[module] : NULL;
    return u && u->style && u->line >= 0 ? &p->assign->plan->lines[u->line] : NULL;
}
/* The only axis over which the label is wrong; -1: there are several. */
static int one_axis(const Program *p, const Mislabel *m) {
    int one = -1;
    for (int x = 0; x < p->mesh->naxes; x++) {
        if (p->mesh->axis[x].size < 2 ||
            !strcmp(place_word(p, m->tensor, &m->want, x), place_word(p, m->tensor, &m->have, x)))
            continue;
        if (one >= 0) return -1;
        one = x;
    }
    return one;
}
static bool cut_last(const Program *p, int tensor, const Layout *L, int axis) {
    const GTensor *t = &p->graph->t[tensor];
    int d = layout_where(L, axis);
    return d >= 0 && program_stored_dim(t, L, d) == t->nstored - 1;
}
/* Does a line say a style and at most its output, and how its boundary is kept? */
static bool plain_line(const PlanLine *line) {
    const Style *s = &line->style;
    return line->pattern && s->name && !s->axis && !s->input.set && !s->desired_input.set &&
           !s->desired_output.set && !s->weight.set && !s->bias.set && !s->n_params &&
           !s->n_kwargs && s->use_local_output < 0 && s->use_local_input < 0;
}
bool mislabel_short_line(const PlanLine *line) {
    return plain_line(line) && line->style.per_module < 0;
}
static const char *row_line(const Program *p, const char *pattern, const char *output) {
    return output
               ? arena_printf(p->arena, "write `%s: {style: rowwise, output: %s}`", pattern, output)
               : arena_printf(p->arena, "write `%s: rowwise`", pattern);
}
/* The placement as the line of the maker has to say it: a bare one speaks of the line's own axes,
 * and where the label is about another one both are named: "{vp: replicate, tp: shard(1)}". */
static const char *place_at(const Program *p, int by, int axis, const char *want) {
    const ModuleUse *u = &p->assign->use[by];
    const AxisList *own = &u->seq_axes;
    if (axis < 0 || !u->style || !own->n || mesh_axes_set(own) >> axis & 1) return want;
    Str s = str_new(p->arena);
    for (int i = 0; i < own->n; i++)
        str_addf(&s, "%s%s: replicate", i ? ", " : "{", p->mesh->axis[own->a[i]].name);
    str_addf(&s, ", %s: %s}", p->mesh->axis[axis].name, want);
    return s.s;
}
/* What mends it at the module that makes the value; NULL: nothing there. */
static const char *maker_hint(const Program *p, const Mislabel *m, const char *want) {
    int by = m->by, axis = one_axis(p, m);
    const PlanLine *line = line_of(p, by);
    Arena *a = p->arena;
    if (by < 0 || by == m->module || m->own || !strcmp(want, "partial")) return NULL;
    want = place_at(p, by, axis, want);
    if (line && mislabel_short_line(line))
        return arena_printf(a, "write `%s: {style: %s, output: %s}`", line->pattern,
                            line->style.name, want);
    if (line && line->pattern)
        return arena_printf(a,
                            line->style.output.set ? "let `output` say `%s` in the line `%s`"
                                                   : "add `output: %s` to the line `%s`",
                            want, line->pattern);
    const GModule *x = &p->graph->module[by];
    int in = !p->assign->use[by].style && x->n_input && axis >= 0 ? x->input[0] : -1;
    if (in < 0 || p->env[in] < 0 || !cut_last(p, in, &p->val[p->env[in]].L, axis)) return NULL;
    return row_line(p, plan_pattern_of(a, x->path), want);
}
typedef enum { SIDE_NONE, SIDE_INPUTS, SIDE_OUTPUTS } WeightSide;
/* What the axis cuts of the weight of a linear module: its inputs (a row layer) or its outputs. */
static WeightSide cut_side(const Program *p, int module, int axis) {
    const GModule *x = &p->graph->module[module];
    if (axis < 0 || !is_linear(x) || x->output < 0) return SIDE_NONE;
    int at = layout_where(&p->assign->compute[x->weight], axis);
    if (at < 0 || at >= p->graph->t[x->weight].nd) return SIDE_NONE;
    const GTensor *out = &p->graph->t[x->output];
    const char letter = p->graph->t[x->weight].letter[at];
    return memchr(out->letter, letter, (size_t)out->nd) ? SIDE_OUTPUTS : SIDE_INPUTS;
}
/* Does the axis cut that side of the module's weight, where no more than a style stands in its line
 * and the label of its input is that style's? */
static bool cuts_weight(const Program *p, const Mislabel *m, int axis, WeightSide side) {
    const PlanLine *line = line_of(p, m->module);
    return m->input && !m->own && line && plain_line(line) && cut_side(p, m->module, axis) == side;
}
/* A column layer that reads what is cut already: a row layer was meant. */
static bool meant_row(const Program *p, const Mislabel *m) {
    int axis = one_axis(p, m);
    return cuts_weight(p, m, axis, SIDE_OUTPUTS) && cut_last(p, m->tensor, &m->have, axis) &&
           layout_where(&m->want, axis) < 0;
}
/* Is the tensor what runs through the layers, or that of a norm: no product lies between? */
static bool of_stream(const Program *p, int tensor) {
    const Graph *g = p->graph;
    while (g->t[tensor].producer >= 0) {
        const GNode *n = &g->node[g->t[tensor].producer];
        int read = 0, from = -1;
        for (int i = 0; i < n->nin; i++)
            if (activation(p, n->in[i]) || g->t[n->in[i]].kind == KIND_INPUT)
                read++, from = n->in[i];
        if (read > 1) return n->op->lin == LIN_ADD;
        if (from < 0 || g->t[from].is_int) return from >= 0; /* an embedding */
        if (n->op->lin == LIN_BILINEAR || strcmp(g->t[from].letter, g->t[tensor].letter) != 0)
            return false;
        tensor = from;
    }
    return g->t[tensor].kind == KIND_INPUT;
}
/* Does a node between the tensor and the product that makes it need the dim whole, as a norm over
 * it does? Then no column layer may have cut it. */
static bool needed_whole(const Program *p, int tensor, char letter) {
    const Graph *g = p->graph;
    while (g->t[tensor].producer >= 0) {
        const GNode *n = &g->node[g->t[tensor].producer];
        int from = -1, read = 0;
        for (int i = 0; i < n->nin; i++)
            if (activation(p, n->in[i])) read++, from = n->in[i];
        if (read != 1 || n->op->lin == LIN_BILINEAR ||
            strcmp(g->t[from].letter, g->t[tensor].letter) != 0)
            return false;
        if (n->rule.whole & RULE_BIT(letter)) return true;
        tensor = from;
    }
    return false;
}
/* A row layer that reads what is whole; where its result is then to be cut, a column layer was
 * meant. */
static bool meant_column(const Program *p, const Mislabel *m) {
    int axis = one_axis(p, m);
    return cuts_weight(p, m, axis, SIDE_INPUTS) && cut_last(p, m->tensor, &m->want, axis) &&
           layout_where(&m->have, axis) < 0;
}
/* The letter that the label of a row layer's input cuts over the only axis that is wrong; 0. */
static char letter_cut(const Program *p, const Mislabel *m) {
    const int axis = one_axis(p, m), at = axis < 0 ? -1 : layout_where(&m->want, axis);
    return (char)(at < 0 ? 0 : p->graph->t[m->tensor].letter[at]);
}
/* A mistake of its own line, whoever left the value so: a row layer that reads the stream, which is
 * whole for all others that read it, or what a norm has just needed whole. */
static bool own_mistake(const Program *p, const Mislabel *m) {
    return meant_column(p, m) &&
           (of_stream(p, m->tensor) || needed_whole(p, m->tensor, letter_cut(p, m)));
}
/* The module that leaves what the tensor is made of, which is put in its place; -1: none does. */
static int made_of(const Program *p, int *tensor) {
    const Graph *g = p->graph;
    int from = g->t[*tensor].producer, next = -1;
    for (int i = 0; from >= 0 && i < g->node[from].nin && next < 0; i++)
        if (activation(p, g->node[from].in[i])) next = g->node[from].in[i];
    *tensor = next;
    return next >= 0 ? leaves(p, next) : -1;
}
/* The module with a line of which the value is made, through all that no line names; -1. */
static int source(const Program *p, const Mislabel *m) {
    int t = m->tensor, by = m->by;
    while (!line_of(p, by) && t >= 0) by = made_of(p, &t);
    return line_of(p, by) ? by : -1;
}
/* Does the module's result lie as what it is given, whatever its line says? */
static bool passes_on(const Program *p, int module) {
    const PlanLine *line = line_of(p, module);
    return !line || (!is_linear(&p->graph->module[module]) && !line->style.output.set &&
                     !line->style.desired_output.set);
}
/* Is the value made of what a module of that line leaves, through all that pass it on? */
static bool comes_from(const Program *p, const Mislabel *m, const PlanLine *line) {
    int t = m->tensor, by = m->by;
    while (line_of(p, by) != line && passes_on(p, by) && t >= 0) by = made_of(p, &t);
    return line_of(p, by) == line;
}
/* ---- an `axis:` that is not that of the lines it works with ---- */
/* The axis that the module's line would act on without its `axis:`; NULL: it has none, or acts on
 * that one anyway. */
static const char *axis_without(const Program *p, int module) {
    const Assign *a = p->assign;
    const PlanLine *line = line_of(p, module);
    AxisList l;
    if (!line || !line->style.axis) return NULL;
    const char *usual = target_default_axis(a, p->graph->module[module].vocab);
    if (!usual || !mesh_lookup(p->mesh, usual, &l)) return NULL;
    return mesh_axes_set(&l) & mesh_axes_set(&a->use[module].axes) ? NULL : usual;
}
/* A column layer whose axis cuts the batch, or a row layer and the column layer before it of which
 * one alone says an axis: that line. NULL: their axes are not what is wrong. */
static const PlanLine *odd_axis(const Program *p, const Mislabel *m) {
    const GTensor *t = &p->graph->t[m->tensor];
    const AxisList *own = &p->assign->use[m->module].axes;
    if (!m->input || m->own || !own->n || !is_linear(&p->graph->module[m->module])) return NULL;
    const bool axis = axis_without(p, m->module) != NULL;
    const WeightSide side = cut_side(p, m->module, own->a[0]);
    if (axis && side == SIDE_OUTPUTS && t->nd && t->role[0] == DIM_BATCH &&
        layout_where(&m->have, own->a[0]) == 0)
        return line_of(p, m->module);
    const int by = side == SIDE_INPUTS ? source(p, m) : -1;
    const AxisList *other = by < 0 ? own : &p->assign->use[by].axes;
    if (!other->n || mesh_axes_set(own) & mesh_axes_set(other) ||
        !cut_last(p, m->tensor, &m->have, other->a[0]))
        return NULL;
    if (axis) return line_of(p, m->module);
    return axis_without(p, by) ? line_of(p, by) : NULL;
}
/* ---- what a row layer reads ---- */
/* The modules whose lines are missing where a row layer reads what is whole. */
typedef struct {
    const Program *p;
    int axis;
    char letter; /* of the row layer's input, that its label cuts */
    bool *seen;  /* per tensor */
    bool other;  /* what it reads is made by something else too, and no line of a module cuts that
                  */
    const char **pattern;
    int n;
    const PlanLine **gathers; /* lines of column layers whose `output` makes whole what they cut */
    int n_gathers;
    const char *layers; /* one of them has its line in other layers; NULL: none has */
} Feeders;
static bool has_letter(const GTensor *t, char letter) {
    return memchr(t->letter, letter, (size_t)t->nd) != NULL;
}
/* The linear module whose result the tensor is; -1: of none. */
static int product_of(const Program *p, int tensor) {
    const GModule *all = p->graph->module;
    for (int k = 0; k < p->graph->nm; k++)
        if (all[k].output == tensor && is_linear(&all[k])) return k;
    return -1;
}
/* The line of a column layer whose `output` makes whole over the axis what the layer has cut, where
 * it may be written anew; NULL: it is none. */
static const PlanLine *gathering_line(const Program *p, int module, int axis) {
    const PlanLine *line = module < 0 ? NULL : line_of(p, module);
    const bool gathers = line && mislabel_short_line(line) && line->style.output.set &&
                         is_linear(&p->graph->module[module]) &&
                         cut_side(p, module, axis) == SIDE_OUTPUTS &&
                         layout_where(&p->val[p->env[p->graph->module[module].output]].L, axis) < 0;
    return gathers ? line : NULL;
}
static void add_feeder(Feeders *f, int module) {
    const ModuleUse *u = &f->p->assign->use[module];
    const GModule *x = &f->p->graph->module[module];
    const char *pattern = plan_pattern_of(f->p->arena, x->path);
    const PlanLine *gathers = gathering_line(f->p, module, f->axis);
    /* one that has a line is cut by it, or is meant to be whole */
    f->other |=
        u->style && !gathers && layout_where(&f->p->val[f->p->env[x->output]].L, f->axis) < 0;
    bool told = !gathers;
    for (int i = 0; i < f->n_gathers; i++) told |= f->gathers[i] == gathers;
    if (!told) f->gathers[f->n_gathers++] = gathers;
    bool had = u->style != NULL;
    if (!f->layers) f->layers = suggest_all_layers(f->p->assign, module);
    for (int i = 0; i < f->n && !had; i++) had = !strcmp(f->pattern[i], pattern);
    if (!had) f->pattern[f->n++] = pattern;
}
/* Goes back to the products that make the dim which is to be cut, through all that leaves it. */
static void find_feeders(Feeders *f, int tensor) {
    const Graph *g = f->p->graph;
    const GTensor *t = &g->t[tensor];
    if (f->seen[tensor] || f->p->env[tensor] < 0) return;
    f->seen[tensor] = true;
    const int by = product_of(f->p, tensor), from = by < 0 ? t->producer : -1;
    int through = 0;
    if (by >= 0) add_feeder(f, by);
    for (int i = 0; from >= 0 && i < g->node[from].nin; i++) {
        const GTensor *in = &g->t[g->node[from].in[i]];
        if (in->is_int || in->kind == KIND_PARAM || !has_letter(in, f->letter)) continue;
        through++;
        find_feeders(f, in->id);
    }
    f->other |= by < 0 && !through;
}
/* Patterns that differ in one character are one: w[qkv]. Takes that of `first` and all like it off
 * the list; NULL: it was taken already. */
static const char *one_pattern(Feeders *f, int first) {
    const char *s = f->pattern[first];
    if (!s) return NULL;
    size_t at = strlen(s);
    Str letters = str_new(f->p->arena);
    for (int i = first + 1; i < f->n; i++) {
        const char *o = f->pattern[i];
        size_t k = 0;
        if (!o || strlen(o) != strlen(s)) continue;
        while (s[k] == o[k]) k++;
        if (strcmp(s + k + 1, o + k + 1) != 0 || (letters.n && k != at)) continue;
        if (!letters.n) str_addf(&letters, "%c", s[k]);
        at = k;
        str_addf(&letters, "%c", o[k]);
        f->pattern[i] = NULL;
    }
    f->pattern[first] = NULL;
    return letters.n ? arena_printf(f->p->arena, "%.*s[%s]%s", (int)at, s, letters.s, s + at + 1)
                     : s;
}
/* The lines of the modules that make what a row layer reads, where they have none: column layers
 * come before it. NULL: it is no row layer, or something else is missing. */
static const char *feeders_hint(const Program *p, const Mislabel *m) {
    int axis = one_axis(p, m), at = axis < 0 ? -1 : layout_where(&m->want, axis);
    const Graph *g = p->graph;
    if (!m->input || cut_side(p, m->module, axis) != SIDE_INPUTS || at < 0 ||
        (line_of(p, m->by) && !gathering_line(p, m->by, axis)) ||
        !cut_last(p, m->tensor, &m->want, axis) || layout_where(&m->have, axis) >= 0 ||
        of_stream(p, m->tensor))
        return NULL;
    Feeders f = {.p = p,
                 .axis = axis,
                 .letter = g->t[m->tensor].letter[at],
                 .seen = ARENA_ARRAY(p->arena, bool, g->nt),
                 .pattern = ARENA_ARRAY(p->arena, const char *, g->nm + 1),
                 .gathers = ARENA_ARRAY(p->arena, const PlanLine *, g->nm + 1)};
    find_feeders(&f, m->tensor);
    if (f.layers) return f.layers;
    if (f.other || (!f.n && !f.n_gathers)) return NULL;
    Str s = str_new(p->arena);
    int lines = 0;
    for (int i = 0; i < f.n; i++) {
        const char *pattern = one_pattern(&f, i);
        if (pattern) str_addf(&s, "%s`%s: colwise`", lines++ ? " and " : "write ", pattern);
    }
    for (int i = 0; i < f.n_gathers; i++)
        str_addf(&s, "%s`%s: %s`", lines++ ? " and " : "write ", f.gathers[i]->pattern,
                 f.gathers[i]->style.name);
    return arena_printf(p->arena, "%s: a row layer reads what column layers have cut", s.s);
}
/* Is b wrong because of the module that a speaks of? */
static bool follows(const Program *p, const Mislabel *a, const Mislabel *b) {
    if (a->instead || b->instead || !b->input || same_place(a, b)) return false;
    if (a->odd && a->odd == b->odd) return a < b;
    if (own_mistake(p, b)) return false;
    const PlanLine *line = line_of(p, a->module);
    if (!line || line_of(p, b->module) == line || !comes_from(p, b, line)) return false;
    return meant_row(p, a) ||
           (meant_column(p, a) && !b->feeders && cut_last(p, b->tensor, &b->want, one_axis(p, b)));
}
/* What is wrong because of this finding, first of all; NULL: nothing. */
static const Mislabel *after(const Program *p, const Mislabels *all, const Mislabel *m) {
    for (int i = 0; i < all->n; i++)
        if (follows(p, m, &all->m[i])) return &all->m[i];
    return NULL;
}
/* The line with the style that was meant: the result of a row layer lies as whoever reads it says,
 * or as the line does. NULL: nothing else was meant. */
static const char *meant_hint(const Program *p, const Mislabels *all, const Mislabel *m) {
    const Mislabel *next = after(p, all, m);
    const PlanLine *line = line_of(p, m->module);
    if ((next && meant_column(p, m)) || own_mistake(p, m))
        return arena_printf(p->arena,
                            mislabel_short_line(line)
                                ? "write `%s: colwise`"
                                : "let `style` say `colwise` in the line `%s`",
                            line->pattern);
    if (!meant_row(p, m) || !mislabel_short_line(line)) return NULL;
    int out = p->graph->module[m->module].output;
    const char *place = next ? one_place(p, next, &next->want) : NULL;
    if (!next && line->style.output.set)
        place = place_word(p, out, &p->val[p->env[out]].L, one_axis(p, m));
    return row_line(p, line->pattern, place);
}
/* The line of the module, which says how its one input lies and where it goes. NULL: it says more
 * than a style, there are several inputs, or it is a linear module, where what makes its input may
 * lack a line instead. */
static const char *moved_line(const Program *p, const Mislabel *m, const PlanLine *line,
                              const char *have, const char *want) {
    const GModule *x = &p->graph->module[m->module];
    if (!line || !mislabel_short_line(line) || line->style.output.set || x->n_input != 1 ||
        is_linear(x))
        return NULL;
    const int axis = one_axis(p, m);
    return arena_printf(p->arena, "write `%s: {style: %s, input: %s, desired_input: %s}`",
                        line->pattern, line->style.name, place_at(p, m->module, axis, have),
                        place_at(p, m->module, axis, want));
}
static const char *odd_hint(const Program *p, const Mislabel *m) {
    const PlanLine *line = m->odd;
    const char *axis = line->style.axis;
    const bool own = line == line_of(p, m->module);
    const char *usual = axis_without(p, own ? m->module : source(p, m));
    return arena_printf(p->arena,
                        "take `axis: %s` out of the line `%s`, which then acts on `%s` as the "
                        "lines that it works with",
                        axis, line->pattern, usual);
}
static const char *hint_of(const Program *p, const Mislabels *all, const Mislabel *m) {
    const char *want = one_place(p, m, &m->want), *have = one_place(p, m, &m->have);
    const char *see = "`trust: declared` shows what the mistake does";
    const char *mend = m->odd ? odd_hint(p, m) : meant_hint(p, all, m);
    if (!mend) mend = m->feeders;
    if (!mend && m->by >= 0) mend = suggest_all_layers(p->assign, m->by);
    if (!mend && want) mend = maker_hint(p, m, want);
    const PlanLine *line = line_of(p, m->module);
    if (!mend && m->input && have && line && line->style.desired_input.set)
        mend = arena_printf(p->arena,
                            "say how it lies: `input: %s`; where it goes stands in "
                            "`desired_input`",
                            have);
    const bool moves = m->input && want && have && strcmp(want, "partial") != 0;
    if (!mend && moves) mend = moved_line(p, m, line, have, want);
    if (!mend && moves)
        mend = arena_printf(p->arena,
                            "say how it lies and where it goes: `input: %s, desired_input: %s`",
                            have, want);
    return arena_printf(p->arena, "%s; %s",
                        mend ? mend : "declare how it really lies, or move it before", see);
}
/* "line 14", "the recipe's line 1"; of a module that none names, that. */
static const char *line_text(const Program *p, int module) {
    const PlanLine *line = line_of(p, module);
    return !line ? "no line names it"
                 : arena_printf(p->arena, "%s %d", line->from_recipe ? "the recipe's line" : "line",
                                p->assign->use[module].loc.line);
}
static const char *left_by(const Program *p, const Mislabel *m) {
    int by = m->by >= 0 ? m->by : source(p, m);
    /* without an embedding the first layer is given what the last one leaves */
    bool enters = p->graph->t[m->tensor].kind == KIND_INPUT || (m->input && by > m->module);
    if (by < 0 || by == m->module) return "";
    if (m->by < 0)
        return arena_printf(p->arena, ", made of what %s%s (%s) leaves",
                            enters ? "in the last layer " : "", p->graph->module[by].path,
                            line_text(p, by));
    return arena_printf(p->arena, ", as %s%s (%s) leaves it", enters ? "in the last layer " : "",
                        p->graph->module[by].path, line_text(p, by));
}
/* The enclosing module that prepares the value for this one, or -1. */
static int preparer(const Program *p, const Mislabel *m) {
    const GModule *all = p->graph->module;
    for (int up = all[m->module].parent; m->input && up >= 0; up = all[up].parent)
        for (int i = 0; p->assign->use[up].prepares && i < all[up].n_input; i++)
            if (all[up].input[i] == m->tensor) return up;
    return -1;
}
/* PyTorch asks the DTensor, so nothing is wrong; the line says what is not so. */
static void note_dtensor(const Program *p, const Mislabels *all, int i, Diags *d) {
    const Mislabel *m = &all->m[i];
    const char *have = one_place(p, m, &m->have), *key = m->input ? "input" : "output";
    int by = preparer(p, m);
    const char *who = by < 0 ? left_by(p, m)
                             : arena_printf(p->arena, ", as %s (line %d) hands it in",
                                            p->graph->module[by].path, p->assign->use[by].loc.line);
    diag_note(d, "N0013", m->loc,
              have ? arena_printf(p->arena, "`%s: %s` says how it lies", key, have) : NULL,
              "the %s of %s is said to lie as %s, but it is a DTensor and lies as %s%s: PyTorch "
              "goes by how it lies, %s",
              key, modules_text(p, all, i), m->want_text, m->have_text, who, m->instead);
}
/* "wq, wk, wv" of layers.0.attention: modules of which the same is said at one step; without their
 * layer, for all layers that are alike are told as one. */
static const char *leaves_text(const Program *p, const Mislabels *all, const Mislabel *m) {
    Str s = str_new(p->arena);
    for (int i = 0; i < all->n; i++) {
        const Mislabel *k = &all->m[i];
        const char *path = p->graph->module[k->module].path, *dot = strrchr(path, '.');
        if (k->step == m->step && !k->instead && same_place(k, m))
            str_addf(&s, "%s%s", s.n ? ", " : "", dot ? dot + 1 : path);
    }
    return s.s;
}
/* Pictures show the mistake where it happens, with both layouts. */
static void mark_step(Program *p, const Mislabels *all, const Mislabel *m) {
    if (m->step < 0 || m->step >= p->ns || p->step[m->step].wrong) return;
    const char *by = m->by >= 0 && m->by != m->module ? p->graph->module[m->by].path : NULL;
    const char *leaf = by && strrchr(by, '.') ? strrchr(by, '.') + 1 : by;
    p->step[m->step].left_by = by;
    p->step[m->step].wrong =
        arena_printf(p->arena, "the plan says that the %s of %s lies as %s, it lies as %s%s",
                     m->input ? "input" : "result", leaves_text(p, all, m), m->want_text,
                     m->have_text, by ? arena_printf(p->arena, ", as %s leaves it", leaf) : "");
}
/* with[i]: the first of those that are in one place with it, or of one result that several lines
 * read. */
static void join_places(const Program *p, const Mislabels *all, int *with) {
    for (int i = 0; i < all->n; i++) {
        const Mislabel *m = &all->m[i];
        with[i] = i;
        for (int k = 0; k < i && with[i] == i; k++) {
            const Mislabel *f = &all->m[k];
            bool result = f->input && m->input && !f->own && !m->own && f->by >= 0 &&
                          f->by == m->by && !f->instead && !m->instead && !own_mistake(p, m) &&
                          !strcmp(f->want_text, m->want_text) &&
                          !strcmp(f->have_text, m->have_text);
            if (same_place(f, m) || result) with[i] = with[k];
        }
    }
}
/* Is what is found there wrong because of another finding? The first such, or -1. */
static int because_of(const Program *p, const Mislabels *all, const int *with, int i) {
    for (int k = 0; k < all->n; k++)
        if (with[k] == k && k != i && follows(p, &all->m[k], &all->m[i])) return k;
    return -1;
}
/* Under which finding each is told. One that follows from another is no cause itself: so that of a
 * circle all are told. */
static int *told_with(const Program *p, const Mislabels *all) {
    int *first = ARENA_ARRAY(p->arena, int, all->n + 1);
    int *with = ARENA_ARRAY(p->arena, int, all->n + 1);
    join_places(p, all, first);
    for (int i = 0; i < all->n; i++) {
        int cause = first[i] == i ? because_of(p, all, first, i) : -1;
        with[i] = cause >= 0 && because_of(p, all, first, cause) < 0 ? cause : i;
    }
    for (int i = 0; i < all->n; i++) with[i] = with[first[i]];
    return with;
}
/* "; the input of norm (line 19) is wrong because of it": the other places of one mistake. */
static const char *places_too(const Program *p, const Mislabels *all, const int *with, int first) {
    Str s = str_new(p->arena);
    for (int i = 0; i < all->n; i++) {
        const Mislabel *m = &all->m[i];
        bool told = with[i] != first || same_place(&all->m[first], m);
        for (int k = 0; k < i && !told; k++) told = same_place(&all->m[k], m);
        if (!told)
            str_addf(&s, "; the input of %s (line %d) is wrong because of it",
                     modules_text(p, all, i), m->loc.line);
    }
    return s.n ? s.s : "";
}
void mislabels_report(Program *p, const Mislabels *all, Diags *d) {
    for (int i = 0; i < all->n; i++) {
        Mislabel *m = &all->m[i];
        int k = 0; /* looked for once of those that are told together */
        m->by = maker(p, m);
        while (k < i && !same_place(&all->m[k], m)) k++;
        m->feeders = k < i ? all->m[k].feeders : feeders_hint(p, m);
        m->odd = m->instead ? NULL : odd_axis(p, m);
    }
    const int *with = told_with(p, all);
    for (int i = 0; i < all->n; i++) {
        const Mislabel *m = &all->m[i];
        if (!m->instead) mark_step(p, all, m);
        if (with[i] != i) continue;
        if (m->instead) note_dtensor(p, all, i, d);
        else
            diag_error(d, "E0402", m->loc, hint_of(p, all, m),
                       "the %s of %s is said to lie as %s, but it lies as %s%s%s",
                       m->input ? "input" : "output", modules_text(p, all, i), m->want_text,
                       m->have_text, left_by(p, m), places_too(p, all, with, i));
    }
}
