/* What PyTorch's DTensor does with a plan that the layouts of its styles alone do not say. A
 * style's module works on DTensors and hands out plain tensors unless `use_local_output: false`; a
 * plain tensor is believed to lie as the next label says (from_local), a DTensor knows. Refuses to
 * move anything, and to know a style by its name: a column of the table of styles says what is
 * DTensors. */
#include "assign/dtensor.h"
#include "assign/suggest.h"
#include "assign/uneven.h"
#include <string.h>

bool dtensor_system(const Plan *p) {
    return p->kind || p->names == NAMES_TORCHTITAN || p->names == NAMES_TORCHTUNE;
}

/* ---- a row's bias ---- */
static bool is_whole(const RawPlace *p) {
    return p->kind == RP_REPLICATE || p->kind == RP_INVARIANT || p->kind == RP_VARYING;
}
static const RawSpec *result_of(const Style *s) {
    const RawList *o = s->desired_output.set ? &s->desired_output : &s->output;
    return o->set && o->n && o->arg[0].set ? &o->arg[0] : NULL;
}
/* Is the result whole over every axis that the style speaks of? */
static bool whole_output(const Style *s) {
    const RawSpec *o = result_of(s);
    if (!o) return false;
    if (!o->mapping) return is_whole(&o->bare);
    for (int i = 0; i < o->n; i++)
        if (!is_whole(&o->on[i].place)) return false;
    return true;
}
const RawSpec *dtensor_bias(const Plan *p, const Style *s, const RawSpec *given) {
    static const RawSpec shares = {.set = true, .bare = {.kind = RP_PARTIAL}};
    return s->bias_in_shares && dtensor_system(p) && !whole_output(s) ? &shares : given;
}

/* ---- plain tensors and DTensors ---- */
typedef struct {
    enum {
        F_ANY,
        F_PLAIN,
        F_DTENSOR
    } is;   /* any: the caller's own, or of a style that is not PyTorch's */
    int by; /* the module that hands it out so, or -1 */
} Form;
typedef struct {
    Assign *a;
    const Graph *g;
    Form *form;                /* per tensor, as it leaves its last module */
    bool *noted;               /* per module and input: told once */
    bool *mixed;               /* per line of the plan: refused once */
    const StyleRow **row;      /* per module: what stands behind its line, or NULL */
    const int *first, *reader; /* tensor t is read by nodes reader[first[t]] to [first[t + 1] - 1],
                                  by each as often as it is an input */
} Follow;

/* The row of the table of styles that stands behind a module's line; NULL: none. */
static const StyleRow *row_of(const Follow *w, int m) {
    return m >= 0 && w->a->use[m].style ? w->row[m] : NULL;
}
static const StyleRow **find_rows(const Assign *a, const Graph *g) {
    const StyleRow **row = ARENA_ARRAY(a->arena, const StyleRow *, g->nm + 1);
    for (int m = 0; m < g->nm; m++)
        if (a->use[m].style) row[m] = style_builtin_for(a->use[m].style->name, g->module[m].kind);
    return row;
}
/* Nodes of the model by what they read; those of an optimizer are no readers. */
static void find_readers(Follow *w) {
    const Graph *g = w->g;
    const int nn = g->nn_model ? g->nn_model : g->nn;
    int *first = ARENA_ARRAY(w->a->arena, int, g->nt + 2), n = 0;
    for (int k = 0; k < nn; k++)
        for (int i = 0; i < g->node[k].nin; i++, n++) first[g->node[k].in[i] + 2]++;
    for (int t = 0; t < g->nt; t++) first[t + 2] += first[t + 1];
    int *reader = ARENA_ARRAY(w->a->arena, int, n + 1);
    for (int k = 0; k < nn; k++) /* first[t + 1] ends where t + 1 begins */
        for (int i = 0; i < g->node[k].nin; i++) reader[first[g->node[k].in[i] + 1]++] = k;
    w->first = first, w->reader = reader;
}
static TorchKind kind_of(const Follow *w, int m) {
    const StyleRow *row = row_of(w, m);
    return row ? row->torch : TORCH_NOT;
}
static bool styled(const Follow *w, int m) { return m >= 0 && w->a->use[m].style; }
/* Does the plan say it, where the style alone would not? */
static bool says(const Follow *w, int m, int local) {
    const StyleRow *row = row_of(w, m);
    return row && w->a->use[m].style->use_local_output == local &&
           row->style.use_local_output != local;
}
/* Is it a DTensor for sure? Of other systems' styles only where the plan says it. */
static bool known(const Follow *w, Form f) {
    return f.is == F_DTENSOR && (dtensor_system(w->a->plan) || says(w, f.by, 0));
}
static const char *path(const Follow *w, int m) { return w->g->module[m].path; }

/* ---- the walk ---- */
static bool says_something(const RawSpec *s) {
    return s->set && (s->mapping || s->bare.kind != RP_NONE);
}
/* Does a style that prepares inputs hand them to its module as plain tensors? */
static bool local_inside(const Follow *w, int m) {
    const Style *s = w->a->use[m].style;
    TorchKind k = kind_of(w, m);
    return (k == TORCH_INPUT && s->use_local_output == 1) ||
           (k == TORCH_BOTH && s->use_local_input == 1);
}
/* What the inputs of module m are, once inside. */
static Form inside(const Follow *w, int m, int arg, Form f) {
    const Style *s = w->a->use[m].style;
    switch (kind_of(w, m)) {
    case TORCH_LAYER:
    case TORCH_LOSS: return (Form){F_DTENSOR, m};
    case TORCH_BOTH:
    case TORCH_INPUT:
        if (!s->input.set || arg >= s->input.n || !says_something(&s->input.arg[arg])) return f;
        return (Form){local_inside(w, m) ? F_PLAIN : F_DTENSOR, m};
    case TORCH_OUTPUT: return f;
    case TORCH_NOT: break;
    }
    return styled(w, m) ? (Form){F_ANY, -1} : f;
}
static void label_plain(const Follow *w, const Form *f, const PlainLabel *label) {
    if (f->is == F_PLAIN) uneven_plain_label(w->a, label);
}
/* As a node inside `module` reads tensor t: through the inputs of all enclosing modules, outermost
 * first. */
static Form read_form(Follow *w, int module, int t) {
    int chain[16], n = 0;
    for (int m = module; m >= 0 && n < 16; m = w->g->module[m].parent) chain[n++] = m;
    Form f = w->form[t];
    while (n-- > 0) {
        const GModule *m = &w->g->module[chain[n]];
        for (int i = 0; i < m->n_input; i++)
            if (m->input[i] == t) {
                bool *seen = &w->noted[4 * chain[n] + i];
                if (!*seen && kind_of(w, chain[n]) != TORCH_NOT && dtensor_system(w->a->plan))
                    label_plain(w, &f,
                                &(PlainLabel){chain[n], "input", &w->a->use[chain[n]].style->input,
                                              i, t, f.by});
                if (!*seen && known(w, f)) w->a->use[chain[n]].dtensor_in |= (uint8_t)(1 << i);
                *seen = true;
                f = inside(w, chain[n], i, f);
            }
    }
    return f;
}
/* What a table is that an op in `module` multiplies by: a plain tensor, unless a module around it
 * prepares an argument that is none of the values here, as torchtitan's attention is given its
 * frequencies. The innermost that does decides. */
static Form table_form(const Follow *w, int module) {
    for (int m = module; m >= 0; m = w->g->module[m].parent) {
        TorchKind k = kind_of(w, m);
        const RawList *l = k == TORCH_BOTH || k == TORCH_INPUT ? &w->a->use[m].style->input : NULL;
        for (int i = w->g->module[m].n_input; l && l->set && i < l->n; i++)
            if (says_something(&l->arg[i]))
                return (Form){local_inside(w, m) ? F_PLAIN : F_DTENSOR, m};
    }
    return (Form){F_PLAIN, -1};
}
static Form leave(Follow *w, int m, Form f) {
    const Style *s = w->a->use[m].style;
    TorchKind k = kind_of(w, m);
    if (!s || k == TORCH_INPUT) return f;
    if (k == TORCH_NOT) return (Form){F_ANY, -1};
    if (!result_of(s)) return f;
    bool labelled = (k == TORCH_OUTPUT || k == TORCH_BOTH) &&
                    s->desired_output.set; /* its `output` is a label then */
    if (labelled && dtensor_system(w->a->plan))
        label_plain(w, &f, &(PlainLabel){m, "output", &s->output, 0, w->g->module[m].output, f.by});
    w->a->use[m].dtensor_out = labelled && known(w, f);
    return (Form){s->use_local_output == 0 ? F_DTENSOR : F_PLAIN, m};
}
/* Who hands out the DTensor, and why it is one. */
static const char *dtensor_words(const Follow *w, int by) {
    bool in = kind_of(w, by) == TORCH_INPUT || kind_of(w, by) == TORCH_BOTH;
    if (says(w, by, 0))
        return arena_printf(w->a->arena,
                            "with `use_local_output: false` the result of %s is a DTensor",
                            path(w, by));
    return arena_printf(w->a->arena, "%s makes the %s of %s a DTensor", w->a->use[by].name,
                        in ? "input" : "result", path(w, by));
}
/* Styles that a plain layer takes, by what stands in its module's kind or in its node's label. */
static const struct {
    const char *kind, *label, *styles;
} layer_styles[] = {
    {"norm", NULL, "`sequence_parallel`"},
    {"experts", NULL, "`expert_parallel`"},
    {NULL, "router", "`sequence_parallel`, or `replicate` on whole tokens"},
};
static const char *styles_of(const char *kind, const char *label) {
    for (size_t i = 0; i < sizeof layer_styles / sizeof *layer_styles; i++) {
        const char *k = layer_styles[i].kind, *l = layer_styles[i].label;
        if ((k && strstr(kind, k)) || (l && strstr(label, l))) return layer_styles[i].styles;
    }
    return "`colwise`, `rowwise`";
}
/* The line that a plain layer would need, or what makes the DTensor plain. */
static const char *mixed_hint(const Follow *w, int by, int layer, const GNode *n) {
    const char *layers = layer >= 0 ? suggest_all_layers(w->a, layer) : NULL;
    if (layers) return layers;
    if (layer >= 0) {
        return arena_printf(
            w->a->arena, "give %s a line of its own (%s), or %s", path(w, layer),
            styles_of(w->g->module[layer].kind, n->label),
            says(w, by, 0)
                ? "leave it out here"
                : arena_printf(w->a->arena, "`use_local_output: true` to %s", path(w, by)));
    }
    if (says(w, by, 0))
        return "leave it out here, or give it to all modules whose results meet (the embedding and "
               "every row layer)";
    return "`use_local_output: true` here, or DTensors for all that meet";
}
/* The module whose style could make an op's table a DTensor: the one around a layer, or itself. */
static const char *table_hint(const Follow *w, const GNode *n) {
    return arena_printf(
        w->a->arena,
        "leave it out here, or label them too: a further `replicate` in `input` and "
        "`desired_input` of prepare_module_input at %s",
        n->module >= 0 ? path(w, n->module) : "the module around it");
}
/* PyTorch's operators take DTensors or plain tensors, not both. `param`: the plain one is a
 * parameter that no line names; else -1. `table`: it is the op's table. */
static void refuse_mixed(Follow *w, const GNode *n, const Form *dtensor, int param, bool table) {
    int by = dtensor->by, layer = param >= 0 ? n->module : -1;
    bool *told = &w->mixed[w->a->use[by].line];
    if (!known(w, *dtensor) || *told) return;
    *told = true;
    const char *plain =
        param >= 0 ? arena_printf(w->a->arena, "has %s, which no line names, as a plain tensor",
                                  w->g->t[param].plan_name)
        : table    ? arena_printf(w->a->arena, "has its %s as a plain tensor", n->op->table)
                   : "takes a plain tensor beside it";
    diag_error(w->a->d, "E0408", w->a->use[by].loc,
               table ? table_hint(w, n) : mixed_hint(w, by, layer, n),
               "%s, and the %s that makes %s %s: PyTorch raises", dtensor_words(w, by), n->label,
               w->g->t[n->out].name, plain);
}
/* What the result of a node is; PyTorch's op brings DTensors together by itself. */
static Form node_form(Follow *w, const GNode *n) {
    TorchKind k = n->module >= 0 ? kind_of(w, n->module) : TORCH_NOT;
    Form d = {F_ANY, -1}, p = {F_ANY, -1};
    int param = -1;
    for (int i = 0; i < n->nin; i++) {
        const GTensor *t = &w->g->t[n->in[i]];
        bool par = t->kind == KIND_PARAM;
        Form f = par ? (Form){F_PLAIN, -1} : read_form(w, n->module, n->in[i]);
        if (f.is == F_DTENSOR && d.is == F_ANY) d = f;
        if (f.is == F_PLAIN) p = f;
        if (par) param = n->in[i];
    }
    Form table = n->op->table ? table_form(w, n->module) : (Form){F_ANY, -1};
    bool layer = k == TORCH_LAYER, plain_table = table.is == F_PLAIN;
    if (table.is == F_DTENSOR && p.is == F_PLAIN) refuse_mixed(w, n, &table, -1, false);
    w->a->dtensor_op[n->id] = layer ? dtensor_system(w->a->plan) : known(w, d);
    if (layer) return (Form){F_DTENSOR, n->module};
    if (styled(w, n->module) && k == TORCH_NOT) return (Form){F_ANY, -1};
    if (d.is == F_DTENSOR && (p.is == F_PLAIN || plain_table))
        refuse_mixed(w, n, &d, param, plain_table);
    return d.is == F_DTENSOR ? d : p;
}
/* Cross entropy of DTensor logits: labels are plain, and only loss_parallel takes both. */
static void loss_of_dtensors(Follow *w, int m, const Form *f) {
    if (kind_of(w, m) == TORCH_LOSS) {
        w->a->use[m].label_raises = true;
        return;
    }
    if (styled(w, m)) return;
    diag_error(
        w->a->d, "E0408", w->a->use[f->by].loc,
        says(w, f->by, 0)
            ? "leave it out here, or add `loss: loss_parallel` on logits that stay cut"
            : "`use_local_output: true` here",
        "%s and so are the logits; the labels are plain tensors: PyTorch's cross entropy raises",
        dtensor_words(w, f->by));
}
/* loss_parallel replaces ops on DTensors, and is not there for plain logits: whole ones have their
 * loss as without it, of a part of the vocabulary each rank takes its part for all of it. */
static void loss_of_plain(Follow *w, int m, const Form *f) {
    ModuleUse *u = &w->a->use[m];
    if (f->by >= 0 && !whole_output(w->a->use[f->by].style)) {
        diag_error(
            w->a->d, "E0408", w->a->use[f->by].loc, "`use_local_output: false`",
            "%s hands out plain tensors: PyTorch's loss_parallel does not see them, each rank "
            "takes its part of the vocabulary for all of it, and labels beyond it raise",
            path(w, f->by));
        return;
    }
    diag_note(w->a->d, "N0011", u->loc,
              "leave it out, or `use_local_output: false` on a head whose result stays cut",
              "loss_parallel does nothing here: PyTorch's replaces what is done with DTensors, and "
              "the logits are plain tensors, whole on every rank");
    Style *nothing = arena_memdup(w->a->arena, u->style, sizeof *nothing);
    nothing->input.set = nothing->desired_input.set = nothing->output.set = nothing->sums = false;
    u->style = nothing;
}
static void check_loss(Follow *w, int m) {
    const GModule *mod = &w->g->module[m];
    Form f = w->form[mod->input[0]];
    bool parallel = kind_of(w, m) == TORCH_LOSS, ours = dtensor_system(w->a->plan);
    if (mod->n_input < 2 || !w->g->t[mod->input[1]].is_int) return;
    if (known(w, f)) loss_of_dtensors(w, m, &f);
    if (parallel && ours) uneven_loss(w->a, m);
    if (parallel && f.is == F_PLAIN && (ours || says(w, f.by, 1))) loss_of_plain(w, m, &f);
}

/* ---- what use_local_output changes ---- */
static bool is_below(const Follow *w, int k, int m) {
    while (k >= 0 && k != m) k = w->g->module[k].parent;
    return k == m;
}
/* Inputs that were prepared and are plain again inside: each module makes them DTensors for itself,
 * so each reduces its part of the gradient, and the move outside undoes itself by a slice
 * (semantics.md 1.5). */
static void local_inputs(Follow *w, int m) {
    w->a->use[m].local_inside = true;
    /* to the end of the layer */
    for (int k = m + 1; k < w->g->nm && (w->g->module[k].parent >= 0 || w->g->module[m].parent < 0);
         k++) {
        bool below = is_below(w, w->g->module[k].parent, m);
        for (int i = 0; below && i < w->g->module[m].n_input; i++)
            if (styled(w, k) && w->g->module[k].n_input &&
                w->g->module[k].input[0] == w->g->module[m].input[i])
                w->a->use[k].per_module = true;
    }
}
/* Does layer k redistribute input 0, a DTensor that lies as it wants it? Its label, which is not
 * looked at, says otherwise; the backward of PyTorch's redistribution reduces the gradient to how
 * the DTensor lay. */
static bool reduces_for_itself(const Follow *w, int k) {
    const ModuleUse *u = &w->a->use[k];
    const Style *s = u->style;
    const RawSpec *label = s && s->input.set && s->input.n ? &s->input.arg[0] : NULL,
                  *goal = s && s->desired_input.set && s->desired_input.n ? &s->desired_input.arg[0]
                                                                          : NULL;
    return label && goal && kind_of(w, k) == TORCH_LAYER && (u->dtensor_in & 1) &&
           says_something(label) && !label->mapping && !is_whole(&label->bare) &&
           says_something(goal) && !goal->mapping && is_whole(&goal->bare);
}
/* Is the input of m whole inside, a DTensor, and read by such layers alone? */
static bool all_reduce_for_themselves(const Follow *w, int m) {
    const RawList *goal = &w->a->use[m].style->desired_input;
    const GModule *mod = &w->g->module[m];
    int readers = 0;
    if (!dtensor_system(w->a->plan) || mod->n_input != 1 || !goal->set || !goal->n ||
        goal->arg[0].mapping || !is_whole(&goal->arg[0].bare))
        return false;
    for (int i = w->first[mod->input[0]]; i < w->first[mod->input[0] + 1]; i++) {
        int by = w->g->node[w->reader[i]].module;
        if (!is_below(w, by, m)) continue;
        if (!reduces_for_itself(w, by)) return false;
        readers++;
    }
    return readers > 0;
}
/* A whole result that stays a DTensor: its gradient may stay a sum up to the move that made it
 * whole. So it does if only DTensor modules that use it differently read it; an op between them
 * reduces it first. */
static void whole_dtensor(Follow *w, int m) {
    int t = w->g->module[m].output, varies = 0, other = 0;
    const RawSpec *o = result_of(w->a->use[m].style);
    if (!o || o->mapping || o->bare.kind != RP_REPLICATE) return;
    if (t < 0) return;
    for (int i = w->first[t]; i < w->first[t + 1]; i++) {
        int by = w->g->node[w->reader[i]].module;
        bool layer = styled(w, by) && kind_of(w, by) == TORCH_LAYER && w->a->use[by].cuts_param;
        varies += layer;
        other += !layer;
    }
    if (varies && other)
        diag_error(w->a->d, "E0214", w->a->use[m].loc, "leave `use_local_output` out",
                   "use_local_output: false on %s, whose result is read by layers that cut it up "
                   "and by others: not supported by this version",
                   path(w, m));
    w->a->use[m].out_varies = varies && !other;
}

/* PyTorch's prepare_* leave an argument without a label alone, whatever its goal says. */
static void check_pair(const Follow *w, int m, const RawList *label, const RawList *goal,
                       const char *key) {
    const ModuleUse *u = &w->a->use[m];
    bool moves = true;
    for (int i = 0; goal->set && i < goal->n; i++)
        moves &= !says_something(&goal->arg[i]) ||
                 (label->set && i < label->n && says_something(&label->arg[i]));
    if (!moves)
        diag_error(w->a->d, "E0208", u->loc,
                   arena_printf(w->a->arena, "say with `%s` how it lies before", key),
                   "%s: `desired_%s` without `%s`: PyTorch's %s leaves alone what has no label",
                   path(w, m), key, key, u->name);
}
static void check_pairs(const Follow *w, int m) {
    const Style *s = w->a->use[m].style;
    check_pair(w, m, &s->input, &s->desired_input, "input");
    check_pair(w, m, &s->output, &s->desired_output, "output");
}

void dtensor_follow(Assign *a) {
    const Graph *g = &a->model->g;
    Follow w = {.a = a,
                .g = g,
                .form = ARENA_ARRAY(a->arena, Form, g->nt + 1),
                .noted = ARENA_ARRAY(a->arena, bool, 4 * g->nm + 4),
                .mixed = ARENA_ARRAY(a->arena, bool, a->plan->n_lines + 1),
                .row = find_rows(a, g)};
    find_readers(&w);
    for (int t = 0; t < g->nt; t++) w.form[t].by = -1;
    int nn = g->nn_model ? g->nn_model : g->nn;
    for (int n = 0; n < nn; n++) {
        const GNode *x = &g->node[n];
        if (graph_node_of_loss(x)) continue;
        Form f = node_form(&w, x);
        for (int m = x->module; m >= 0; m = g->module[m].parent)
            if (g->module[m].output == x->out) f = leave(&w, m, f);
        w.form[x->out] = f;
        a->dtensor[x->out] = known(&w, f);
    }
    for (int m = 0; m < g->nm; m++) {
        if (!strcmp(g->module[m].kind, "loss") && g->loss >= 0) check_loss(&w, m);
        if (!a->use[m].style) continue;
        TorchKind k = kind_of(&w, m);
        if (k == TORCH_LAYER && dtensor_system(a->plan)) uneven_layer(a, m);
        if (local_inside(&w, m)) local_inputs(&w, m);
        if (k == TORCH_LAYER && says(&w, m, 0)) whole_dtensor(&w, m);
        a->use[m].prepares = k == TORCH_INPUT || k == TORCH_OUTPUT || k == TORCH_BOTH;
        if (a->use[m].prepares && dtensor_system(a->plan)) check_pairs(&w, m);
        a->use[m].idle_in = local_inside(&w, m);
        if ((k == TORCH_INPUT || k == TORCH_BOTH) && all_reduce_for_themselves(&w, m))
            local_inputs(&w, m);
        a->use[m].hands_in = (k == TORCH_INPUT || k == TORCH_BOTH) && !a->use[m].idle_in;
        a->use[m].idle_out =
            (k == TORCH_OUTPUT || k == TORCH_BOTH) && a->use[m].style->use_local_output != 0;
        a->use[m].relays = row_of(&w, m) && row_of(&w, m)->relays;
    }
}
