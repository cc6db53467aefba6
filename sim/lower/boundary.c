/* Module boundaries: the labels and the wanted placements of a style, at the inputs and the output
 * of its module. What a label claims is held against how the value lies; under trust: declared it
 * is believed. No style is known by name here. Refuses to look inside a module. */
#include "lower/boundary.h"
#include "lower/dispatch.h"
#include "lower/why.h"
#include "ops/op.h"
#include <string.h>

const RawSpec *boundary_result(const Style *s) {
    const RawList *o = s->desired_output.set ? &s->desired_output : &s->output;
    return o->set && o->n && o->arg[0].set ? &o->arg[0] : NULL;
}

/* Under trust: declared a label that says pending is believed of all that is added up there, whole
 * operands too: each rank adds what it has. */
static bool labelled_pending(const Lower *l, const GNode *n, const Style *s, const Layout *now,
                             Layout *want) {
    bool both = s->desired_output.set && s->output.set && s->output.n && s->output.arg[0].set;
    if (!l->declared || !both ||
        !assign_target(l->a, &(Target){n->module, n->out, &s->output.arg[0], USE_OUTPUT, now}, want,
                       NULL))
        return false;
    for (int x = 0; x < l->p->mesh->naxes; x++)
        if (want->type[x] == TY_P && l->p->mesh->axis[x].size > 1) return true;
    return false;
}
bool boundary_goal(const Lower *l, const GNode *n, const int *in, Layout *want) {
    const Style *s = n->module >= 0 && l->p->graph->module[n->module].output == n->out
                         ? l->a->use[n->module].style
                         : NULL;
    const RawSpec *o = s ? boundary_result(s) : NULL;
    if (!o || (!o->mapping && o->bare.kind == RP_LOCAL)) return false;
    for (int i = 0; i < n->nin; i++) {
        const Val *v = &l->p->val[in[i]];
        bool like = n->rule.nl[i] == n->rule.nout &&
                    !memcmp(n->rule.in[i], n->rule.out, (size_t)n->rule.nout),
             pending = false;
        for (int x = 0; x < l->p->mesh->naxes; x++) pending |= v->L.type[x] == TY_P;
        if (like && pending && labelled_pending(l, n, s, &v->L, want)) return true;
        if (like && pending)
            return assign_target(l->a, &(Target){n->module, n->out, o, USE_OUTPUT, &v->L}, want,
                                 NULL);
    }
    return false;
}

/* A module's boundary: which label speaks of it, where the value is wanted; `dtensor`: the value is
 * one of PyTorch's DTensors, which knows how it lies. */
typedef struct {
    int module;
    UseKind kind;
    const RawSpec *label, *want;
    bool dtensor;
} Boundary;
static bool says_nothing(const RawSpec *s) {
    return !s || !s->set || (!s->mapping && (s->bare.kind == RP_NONE || s->bare.kind == RP_LOCAL));
}
/* Do label and what is wanted speak of one placement? Then PyTorch moves no DTensor. */
static bool asks_no_move(const Lower *l, const Boundary *b, int v) {
    const Val *x = &l->p->val[v];
    Layout label, want;
    if (says_nothing(b->label) || says_nothing(b->want)) return true;
    return assign_target(l->a, &(Target){b->module, x->tensor, b->label, b->kind, &x->L}, &label,
                         NULL) &&
           assign_target(l->a, &(Target){b->module, x->tensor, b->want, b->kind, &x->L}, &want,
                         NULL) &&
           assign_label_holds(l->a, &label, &want);
}
static const char *instead(const Lower *l, const Boundary *b, int v) {
    if (!b->dtensor) return NULL;
    if (!asks_no_move(l, b, v)) return "and moves it from there";
    return l->a->use[b->module].prepares ? "and moves nothing here" : "and its op moves it";
}
/* Holds a label against how the value lies; under trust: declared the label is believed. */
static int label(Lower *l, const Boundary *b, int v) {
    if (says_nothing(b->label)) return v;
    const char *names[MESH_MAX_AXES] = {0};
    Layout want;
    const Val *x = &l->p->val[v];
    const ModuleUse *u = &l->a->use[b->module];
    if (!assign_target(l->a, &(Target){b->module, x->tensor, b->label, b->kind, &x->L}, &want,
                       names))
        return v;
    if (assign_label_holds(l->a, &x->L, &want) || (b->dtensor && u->relays)) return v;
    if (!l->declared || b->dtensor || u->label_raises) {
        mislabel_add(&l->mislabels, l->arena,
                     (Mislabel){.module = b->module,
                                .tensor = x->tensor,
                                .input = b->kind == USE_INPUT,
                                .own = b->label->loc.file,
                                .instead = instead(l, b, v),
                                .step = b->kind == USE_INPUT ? l->p->ns : x->step,
                                .loc = b->label->loc.file ? b->label->loc : u->loc,
                                .want = want,
                                .have = x->L,
                                .want_text = moves_place_words(l, v, &want, names),
                                .have_text = moves_place_words(l, v, &x->L, NULL)});
        return v;
    }
    bool idle = b->kind == USE_INPUT ? u->idle_in : u->idle_out;
    if (idle && asks_no_move(l, b, v)) return v; /* a DTensor by that label, and plain again */
    Reason r = {.text = "the plan says that it lies so",
                .loc = u->loc,
                .names = names,
                .output = true,
                .asked = true,
                .module = b->module,
                .scope = -1,
                .pass = PHASE_FORWARD};
    return moves_claim(l, v, &want, &r);
}
/* Does a redistribution find the DTensor as it wants it? The label, which is not looked at, says
 * otherwise. Then it moves nothing, and its backward pass reduces the gradient to how that lay. */
static bool finds_it_so(const Lower *l, const Boundary *b, int v, const Layout *want) {
    const ModuleUse *u = &l->a->use[b->module];
    return b->dtensor && !u->relays && !u->idle_in && !asks_no_move(l, b, v) &&
           assign_label_holds(l->a, &l->p->val[v].L, want);
}
static Layout used_alike(const Layout *of, int naxes) {
    Layout L = *of;
    for (int x = 0; x < naxes; x++)
        if (L.type[x] == TY_R) L.type[x] = TY_I;
    return L;
}
static int enter_module(Lower *l, int module, int arg, int v) {
    const ModuleUse *u = &l->a->use[module];
    const Style *s = u->style;
    if (!s) return v;
    const RawSpec *need =
        s->desired_input.set && arg < s->desired_input.n ? &s->desired_input.arg[arg] : NULL;
    Boundary b = {module, USE_INPUT, s->input.set && arg < s->input.n ? &s->input.arg[arg] : NULL,
                  need, u->dtensor_in >> arg & 1};
    v = label(l, &b, v);
    if (asks_no_move(l, &b, v) && (u->idle_in || (b.dtensor && u->prepares))) return v;
    if (need && need->set) {
        bool by_op = l->declared && b.dtensor && !u->relays && !says_nothing(b.label) &&
                     asks_no_move(l, &b, v); /* its hook leaves the DTensor as it is */
        const char *names[MESH_MAX_AXES] = {0};
        Layout want;
        const Val *x = &l->p->val[v];
        if (!assign_target(l->a, &(Target){module, x->tensor, need, USE_INPUT, &x->L}, &want,
                           names))
            return v;
        Reason r = {.text = why_input(l->p, module, v, &want),
                    .loc = u->loc,
                    .names = names,
                    .asked = true,
                    .output = true,
                    .by_op = by_op,
                    .module = module,
                    .scope = u->per_module || by_op ? module : -1,
                    .pass = PHASE_FORWARD};
        if (finds_it_so(l, &b, v, &want)) {
            const Layout alike = used_alike(&want, l->p->mesh->naxes);
            r.scope = module;
            v = moves_to(l, v, &alike, &r);
        }
        v = moves_to(l, v, &want, &r);
    }
    return v;
}
/* Keys and values that are made again, of another block of a ring, come into a module as the own
 * ones do: the tensor of those; of others itself. */
static int first_made(const Graph *g, int tensor) {
    int from = g->t[tensor].producer;
    return from >= 0 && g->node[from].again ? g->node[from].again - 1 : tensor;
}
int boundary_read(Lower *l, int module, int tensor) {
    const Graph *g = l->p->graph;
    int chain[16], n = 0, own = first_made(g, tensor);
    for (int m = module; m >= 0 && n < 16; m = g->module[m].parent) chain[n++] = m;
    int v = l->p->env[tensor];
    while (n-- > 0) {
        const GModule *m = &g->module[chain[n]];
        for (int i = 0; i < m->n_input; i++) {
            if (m->input[i] != own) continue;
            int anew = -1, *memo = own == tensor ? &l->scope[chain[n] * RULE_OPERANDS + i] : &anew;
            if (*memo < 0) *memo = enter_module(l, chain[n], i, v);
            v = *memo;
            break;
        }
    }
    return v;
}
int boundary_enters(Lower *l, int module) {
    const GModule *m = &l->p->graph->module[module];
    bool there = m->n_input && l->p->env[m->input[0]] >= 0;
    return there ? boundary_read(l, m->parent, m->input[0]) : -1;
}
static void mark_declared(Lower *l, int tensor) { l->declared_p[tensor] = true; }
/* `partial`, or over one of several axes. */
static bool says_partial(const RawSpec *s) {
    if (!s->mapping) return s->bare.kind == RP_PARTIAL;
    for (int i = 0; i < s->n; i++)
        if (s->on[i].place.kind == RP_PARTIAL) return true;
    return false;
}
/* Does the local result of a module go on as what it is? A plain shard does, into the next local
 * op; a plain share of a sum does if an enclosing module, whose result it is too, says how it lies.
 * Else it is taken for the whole. */
static bool goes_on(const Lower *l, int module, int tensor) {
    const Graph *g = l->p->graph;
    const AxisList *axes = &l->a->use[module].axes;
    bool on = false;
    for (int i = 0; i < axes->n; i++)
        on |= layout_where(&l->p->val[l->p->env[tensor]].L, axes->a[i]) >= 0;
    for (int m = g->module[module].parent; m >= 0; m = g->module[m].parent)
        on |= g->module[m].output == tensor && l->a->use[m].style &&
              l->a->use[m].style->desired_output.set;
    return on;
}
void boundary_leave(Lower *l, int module, int tensor) {
    const ModuleUse *u = &l->a->use[module];
    const Style *s = u->style;
    Program *p = l->p;
    if (!s) return;
    const RawList *move = s->desired_output.set ? &s->desired_output : &s->output;
    if (!move->set || !move->n || !move->arg[0].set) return;
    if (s->desired_output.set && s->output.set && s->output.n) {
        Boundary b = {module, USE_OUTPUT, &s->output.arg[0], &move->arg[0], u->dtensor_out};
        p->env[tensor] = label(l, &b, p->env[tensor]);
        if ((b.dtensor || u->idle_out) && asks_no_move(l, &b, p->env[tensor])) return;
    }
    const RawSpec *spec = &move->arg[0];
    if (!spec->mapping && spec->bare.kind == RP_LOCAL) { /* left as it is and taken for replicate */
        mark_declared(l, tensor);
        RawSpec repl = *spec;
        repl.bare.kind = RP_REPLICATE;
        if (l->declared && !goes_on(l, module, tensor))
            p->env[tensor] =
                label(l, &(Boundary){module, USE_OUTPUT, &repl, NULL, false}, p->env[tensor]);
        return;
    }
    const char *names[MESH_MAX_AXES] = {0};
    Layout want;
    if (!assign_target(l->a, &(Target){module, tensor, spec, USE_OUTPUT, &p->val[p->env[tensor]].L},
                       &want, names))
        return;
    int entered = dispatch_goes_home(spec) ? boundary_enters(l, module) : -1;
    if (entered >= 0) dispatch_home(l, module, entered, spec, &want);
    if (says_partial(spec)) mark_declared(l, tensor);
    Reason r = {.text = why_output(p, module, p->env[tensor], &want),
                .loc = u->loc,
                .names = names,
                .asked = true,
                .output = true,
                .module = module,
                .scope = -1,
                .pass = PHASE_FORWARD};
    int left = moves_to(l, p->env[tensor], &want, &r);
    if (left != p->env[tensor]) moves_begin_anew(l, left);
    p->env[tensor] = left;
}
