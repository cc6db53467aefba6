/* How rows get to experts and back. Nothing is done here: where rows go follows from how tokens and
 * experts lie. This says where `home` is, and whether the way that a plan declares is the way that
 * was taken. Refuses to move anything. */
#include "lower/dispatch.h"
#include <string.h>

/* ---- home ---- */
/* Do the lines of a module around this one say that its result is pending over the axis? */
static bool pending_around(const Lower *l, int module, int axis) {
    const Graph *g = l->p->graph;
    for (int m = g->module[module].parent; m >= 0; m = g->module[m].parent) {
        const ModuleUse *u = &l->a->use[m];
        const RawList *o = u->style ? &u->style->output : NULL;
        if (!o || !o->set || !o->n || !u->style->desired_output.set) continue;
        const RawSpec *s = &o->arg[0];
        if (!s->mapping && s->bare.kind == RP_PARTIAL && mesh_axes_set(&u->axes) >> axis & 1)
            return true;
        for (int i = 0; s->mapping && i < s->n; i++) {
            AxisList on;
            if (s->on[i].place.kind == RP_PARTIAL && mesh_lookup(l->p->mesh, s->on[i].axis, &on) &&
                mesh_axes_set(&on) >> axis & 1)
                return true;
        }
    }
    return false;
}
bool dispatch_goes_home(const RawSpec *spec) {
    bool any = !spec->mapping && spec->bare.kind == RP_HOME;
    for (int i = 0; spec->mapping && i < spec->n; i++) any |= spec->on[i].place.kind == RP_HOME;
    return any;
}
/* The axes that go home: bit per axis. */
static uint32_t home_axes(const Lower *l, int module, const RawSpec *spec) {
    uint32_t set = 0;
    AxisList on;
    if (!spec->mapping && spec->bare.kind == RP_HOME) set = mesh_axes_set(&l->a->use[module].axes);
    for (int i = 0; spec->mapping && i < spec->n; i++)
        if (spec->on[i].place.kind == RP_HOME && mesh_lookup(l->p->mesh, spec->on[i].axis, &on))
            set |= mesh_axes_set(&on);
    return set;
}
void dispatch_home(const Lower *l, int module, int entered, const RawSpec *spec, Layout *want) {
    uint32_t set = home_axes(l, module, spec);
    const Val *in = &l->p->val[entered];
    const GTensor *t = &l->p->graph->t[l->p->graph->module[module].output];
    if (!set || in->L.ndim != want->ndim ||
        memcmp(l->p->graph->t[in->tensor].letter, t->letter, (size_t)t->nd) != 0)
        return;
    for (int x = 0; x < l->p->mesh->naxes; x++) {
        if (!(set >> x & 1)) continue;
        bool pending = pending_around(l, module, x);
        layout_set_type(want, x, pending ? TY_P : TY_I);
        if (pending) set &= ~(1u << x);
    }
    for (int d = 0; d < in->L.ndim; d++) { /* outermost first, as they cut the input */
        Layout now = *want;
        want->n[d] = 0;
        memset(want->e[d], 0, sizeof want->e[d]);
        for (int k = 0; k < in->L.n[d]; k++) {
            Entry e = in->L.e[d][k];
            bool goes = set >> e.axis & 1, lies = layout_where(&now, e.axis) == d;
            if (!goes && !lies) continue;
            want->e[d][want->n[d]++] = e;
            if (!e.ghost) want->type[e.axis] = TY_V;
        }
    }
}

/* ---- the way that the plan declares ---- */
/* A way by whether tokens, and then rows, are cut by what cuts the experts. */
typedef struct {
    const char *name;
    bool tokens_cut, rows_cut;
} Way;
static const Way ways[] = {
    {"all_to_all", true, true}, {"all_gather", true, false}, {"masked", false, false}};
enum { N_WAYS = sizeof ways / sizeof *ways };

static const Way *way_named(const char *name) {
    const Way *w = ways;
    while (w < ways + N_WAYS - 1 && strcmp(w->name, name) != 0) w++;
    return w;
}
static bool cuts_tokens(const Layout *l, int axis, int first) {
    int d = layout_where(l, axis);
    return d >= first && d < first + 2; /* b and t */
}
static void other_way(const Lower *l, int axis, bool tokens_cut, bool rows_cut) {
    const Plan *plan = l->a->plan;
    const Way *want = way_named(plan->moe.dispatch);
    const MeshAxis *x = &l->p->mesh->axis[axis];
    const char *name = x->name;
    /* an axis `ep` that nothing else is cut over: experts on the ranks of data parallelism */
    const bool alone = !strcmp(name, "ep") && plan->n_axes == 1;
    const char *data = arena_printf(l->p->arena,
                                    "%scut the tokens over it before the router "
                                    "(`sequence_parallel`) or after it "
                                    "(`reorderer_sequence_parallel`), or write `dispatch: masked`",
                                    alone ? arena_printf(l->p->arena,
                                                         "let ranks with other tokens have other "
                                                         "experts: `mesh: {dp: %lld}` and "
                                                         "`groups: {ep: dp}`; or ",
                                                         (long long)x->size)
                                          : "");
    if (want->tokens_cut && !tokens_cut)
        diag_error(l->d, "E0215", plan->moe.dispatch_loc, data,
                   "`dispatch: %s` over %s: its ranks hold the same tokens, and each of them would "
                   "go to its expert %lld times",
                   want->name, name, (long long)x->size);
    else if (!want->tokens_cut && tokens_cut)
        diag_error(l->d, "E0215", plan->moe.dispatch_loc,
                   "write `dispatch: all_to_all` or `all_gather`, or put experts on ranks that "
                   "hold the same tokens",
                   "`dispatch: %s` over %s: its ranks hold different tokens, and an expert would "
                   "not see those of the others",
                   want->name, name);
    else
        diag_error(l->d, "E0215", plan->moe.dispatch_loc,
                   "leave `dispatch` out, or the line for the experts",
                   "`dispatch: %s` and the plan's lines say different things: over %s %s",
                   want->name, name,
                   rows_cut ? "rows are sent to the ranks of their experts"
                            : "all ranks of experts get the tokens of all");
}
void dispatch_check(Lower *l, int tokens, int rows) {
    AxisList ep;
    const Layout *t = &l->p->val[tokens].L, *r = &l->p->val[rows].L;
    if (!l->a->plan->moe.dispatch || l->dispatched || !mesh_lookup(l->p->mesh, "ep", &ep)) return;
    const Way *want = way_named(l->a->plan->moe.dispatch);
    for (int i = 0; i < ep.n && !l->dispatched; i++) {
        if (l->p->mesh->axis[ep.a[i]].size == 1) continue;
        bool rows_cut = cuts_tokens(r, ep.a[i], 1), /* perhaps by whoever makes the list */
            tokens_cut = rows_cut || cuts_tokens(t, ep.a[i], 0);
        if (tokens_cut == want->tokens_cut && rows_cut == want->rows_cut) continue;
        other_way(l, ep.a[i], tokens_cut, rows_cut);
        l->dispatched = true;
    }
}
