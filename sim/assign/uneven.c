/* Dims that the axes of a style do not divide, where PyTorch's DTensor gathers or raises (N0006).
 * Refuses to say how the blocks lie: here uneven blocks are legal. */
#include "assign/uneven.h"
#include "assign/compiled.h"
#include <string.h>

/* A dim cut by the axes of a style: `size` elements over n ranks, as DTensor sees them: other axes
 * cut it before. */
typedef struct {
    int64_t size, n;
    const char *sym, *axes;
} Uneven;
static int64_t cut_before(const Assign *a, DimRole role, const AxisList *own) {
    int64_t n = 1;
    /* only tokens are cut before a style sees them */
    if (role != DIM_BATCH && role != DIM_SEQUENCE) return 1;
    for (int t = 0; t < a->model->g.nt; t++) {
        const GTensor *x = &a->model->g.t[t];
        for (int d = 0; x->kind == KIND_INPUT && d < x->nd; d++) {
            if (x->role[d] != role) continue;
            AxisList by = layout_dim_axes(&a->compute[t], d);
            for (int i = 0; i < by.n; i++)
                if (!memchr(own->a, by.a[i], (size_t)own->n)) n *= a->mesh->axis[by.a[i]].size;
            return n;
        }
    }
    return n;
}
/* The first dim of t that the layout cuts unevenly; false if there is none. Heads are whole or
 * refused elsewhere. */
static bool uneven_dim(const Assign *a, int t, const Layout *l, Uneven *out) {
    const GTensor *x = &a->model->g.t[t];
    for (int d = 0, letter = 0; d < x->nstored; letter += x->stored[d++]) {
        AxisList by = layout_dim_axes(l, letter);
        if (x->stored[d] != 1 || x->role[letter] == DIM_KV_HEADS || !by.n) continue;
        int64_t n = mesh_size(a->mesh, &by),
                before = x->kind == KIND_PARAM ? 1 : cut_before(a, x->role[letter], &by);
        int64_t size = x->size[letter] / before + (x->size[letter] % before != 0);
        if (size % n == 0) continue;
        *out = (Uneven){size, n, x->sym[letter], mesh_axes_text(a->mesh, a->arena, &by, false)};
        return true;
    }
    return false;
}
static bool label_cut(const Assign *a, int m, int t, const RawSpec *s, Uneven *out) {
    Layout whole = layout_whole(a->mesh, a->model->g.t[t].nd, TY_I), want;
    if (!s->set || (!s->mapping && s->bare.kind != RP_SHARD)) return false;
    return assign_target(a, &(Target){m, t, s, USE_INPUT, &whole}, &want, NULL) &&
           uneven_dim(a, t, &want, out);
}
void uneven_plain_label(Assign *a, const PlainLabel *p) {
    const RawList *labels = p->labels;
    Uneven c;
    if (!labels->set || p->arg >= labels->n ||
        !label_cut(a, p->module, p->tensor, &labels->arg[p->arg], &c))
        return;
    diag_note(a->d, "N0006", a->use[p->module].loc,
              p->by >= 0
                  ? arena_printf(a->arena,
                                 "`use_local_output: false` on %s, or a size that %s divides",
                                 a->model->g.module[p->by].path, c.axes)
                  : NULL,
              "the %s of %s comes as plain local tensors, %s of %lld cut unevenly over %s of %lld: "
              "DTensor takes %lld times a rank's own block for the whole, the ranks disagree about "
              "it, and PyTorch raises",
              p->what, a->model->g.module[p->module].path, c.sym, (long long)c.size, c.axes,
              (long long)c.n, (long long)c.n);
}
void uneven_layer(Assign *a, int m) {
    const GModule *mod = &a->model->g.module[m];
    const ModuleUse *u = &a->use[m];
    const RawList *in = u->style->desired_input.set ? &u->style->desired_input : &u->style->input;
    Uneven c;
    const char *what = NULL;
    if (mod->weight >= 0 && uneven_dim(a, mod->weight, &a->compute[mod->weight], &c) &&
        c.size < c.n)
        what = "weight and input";
    if (!what && mod->n_input && in->set && in->n &&
        label_cut(a, m, mod->input[0], &in->arg[0], &c) && c.size < c.n)
        what = "the input";
    if (what)
        diag_note(a->d, "N0006", u->loc, NULL,
                  "%s: %s of %lld is shorter than %s of %lld: DTensor does not compute on its "
                  "shards, it gathers %s, and every rank computes all of it",
                  a->model->g.module[m].path, c.sym, (long long)c.size, c.axes, (long long)c.n,
                  what);
}
void uneven_loss(Assign *a, int m) {
    const ModuleUse *u = &a->use[m];
    Uneven c;
    if (!u->style->input.set || !u->style->input.n ||
        !label_cut(a, m, a->model->g.module[m].input[0], &u->style->input.arg[0], &c))
        return;
    int64_t block = (c.size + c.n - 1) / c.n;
    if (block * (c.n - 1) >= c.size)
        diag_note(a->d, "N0006", u->loc, NULL,
                  "%s of %lld over %s of %lld leaves ranks without a class: PyTorch's "
                  "loss_parallel raises",
                  c.sym, (long long)c.size, c.axes, (long long)c.n);
}
static void cuts_evenly(const Assign *a, Loc at, const char *name, const Uneven *c) {
    compiled_unevenly(a, at, &(CompiledCut){name, c->sym, c->axes, c->n});
}
/* All inputs are cut alike: the first stands for them. */
static void uneven_tokens(Assign *a) {
    const Plan *p = a->plan;
    int t = 0;
    while (t < a->model->g.nt && a->model->g.t[t].kind != KIND_INPUT) t++;
    const GTensor *x = &a->model->g.t[t];
    for (int d = 0; t < a->model->g.nt && d < x->nd; d++) {
        AxisList by = layout_dim_axes(&a->rest[t], d);
        int64_t n = mesh_size(a->mesh, &by);
        Loc at = x->role[d] == DIM_BATCH ? p->cut_batch_loc : p->cut_sequence_loc;
        if (x->size[d] % n)
            cuts_evenly(
                a, at, x->name,
                &(Uneven){x->size[d], n, x->sym[d], mesh_axes_text(a->mesh, a->arena, &by, false)});
    }
}
void uneven_sharding(Assign *a) {
    const Plan *p = a->plan;
    if (p->trust != TRUST_COMPILER) return;
    uneven_tokens(a);
    for (int t = 0; t < a->model->g.nt; t++) {
        const GTensor *x = &a->model->g.t[t];
        Uneven c;
        /* sizes may be shrunk, which keeps what divides them */
        if (x->kind == KIND_PARAM && !x->state_of && uneven_dim(a, t, &a->rest[t], &c))
            cuts_evenly(a, a->line[t] < 0 ? plan_place(p) : p->lines[a->line[t]].loc, x->plan_name,
                        &c);
    }
}

/* The first dim of t of which some rank has nothing. Whatever the order, the last rank has least.
 */
static bool empty_dim(const Assign *a, int t, Uneven *out) {
    const GTensor *x = &a->model->g.t[t];
    int64_t local[LAYOUT_MAX_DIMS];
    layout_local(a->mesh, &a->compute[t], x->size, a->mesh->nranks - 1, local);
    for (int d = 0; d < x->nd; d++) {
        AxisList by = layout_dim_axes(&a->compute[t], d);
        if (local[d] || !x->size[d] || !by.n) continue;
        *out = (Uneven){x->size[d], mesh_size(a->mesh, &by), x->sym[d],
                        mesh_axes_text(a->mesh, a->arena, &by, false)};
        return true;
    }
    return false;
}
bool uneven_empty(const Assign *a) {
    bool told[2] = {false, false};
    for (int t = 0; t < a->model->g.nt; t++) {
        const GTensor *x = &a->model->g.t[t];
        bool param = x->kind == KIND_PARAM;
        Uneven c;
        if ((!param && x->kind != KIND_INPUT) || x->state_of || told[param] || !empty_dim(a, t, &c))
            continue;
        told[param] = true;
        diag_note(a->d, "N0003", a->plan->mesh_loc, NULL,
                  "%s of %lld over %s of %lld leaves ranks with nothing of %s", c.sym,
                  (long long)c.size, c.axes, (long long)c.n, param ? x->plan_name : x->name);
    }
    return told[0] || told[1];
}
