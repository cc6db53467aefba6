/* Writing down what a program is: the trace's records from steps and layouts. */
#include "assign/context.h"
#include "exec/record.h"
#include "exec/flight.h"
#include "exec/hooks.h"
#include "exec/lives.h"
#include "exec/load.h"
#include "exec/widths.h"
#include "exec/rows.h"
#include "exec/settings.h"
#include "exec/tasks.h"
#include "exec/traffic.h"
#include "ops/op.h"
#include <stdlib.h>
#include <string.h>

/* What values of one kind have in common that are called alike. */
typedef struct {
    const GTensor *t;
    const Val *v;
    TraceShape s;
    int next; /* 1 + index of another of the kind; 0: none */
} Shape;
typedef struct {
    Trace *t;
    const Program *p;
    Arena *a;
    const Plan *plan;
    Dtype dtype;
    Arena *tmp; /* of this record */
    RankSets *sets;
    Loads *loads;
    Recent moved;              /* bytes of moves (traffic.h) */
    const TraceHeld **held;    /* per step: of gathers of parameters */
    const TraceHeld **buffers; /* per value: while a rank holds it */
    int *kind;                 /* per kind of values that was met: 1 + index of its first shape */
    int n_kinds, cap_kinds;
    Shape *shapes;
    int n_shapes, cap_shapes;
    int *user, *user_in_layer; /* per tensor: layer of the first node that reads it; of the first
                                  that is in one; -1: none */
} Rec;

/* ---- local shapes ---- */
enum { WIDTHS = 3 }; /* of elements: 2, 4 or 8 bytes */
/* The local shapes of a kind of values. */
static void local_classes(Rec *r, const Val *v, const Layout *l, int kind, TraceShape *s) {
    const Mesh *m = r->p->mesh;
    const GTensor *t = &r->p->graph->t[v->tensor];
    int64_t es = dtype_size(widths_of(r->p, v, r->dtype));
    const AxisParts u = *classes_parts(r->sets, kind / WIDTHS);
    int64_t n = classes_count(&u);
    int *member = ARENA_ARRAY(r->tmp, int, n), cap = 0;
    bool *in = ARENA_ARRAY(r->tmp, bool, n);
    for (int64_t i = 0; i < n; i++) {
        TraceLocal x = {.bytes = es};
        member[i] = -1;
        if (!layout_holds(m, l, classes_rank(m, &u, i))) continue;
        x.bytes *= region_stored(m, t, l, classes_rank(m, &u, i), x.shape);
        int k = 0;
        while (k < s->n_local && memcmp(s->local[k].shape, x.shape, sizeof x.shape)) k++;
        if (k == s->n_local) *ARENA_PUSH(r->a, s->local, s->n_local, cap) = x;
        member[i] = k;
    }
    for (int k = 0; k < s->n_local; k++) {
        for (int64_t i = 0; i < n; i++) in[i] = member[i] == k;
        s->local[k].ranks = classes_ranks(r->sets, &u, in);
    }
}
static TraceShape new_shape(Rec *r, const Val *v, const Layout *l, int kind) {
    static const PlaceCut how[N_CUTS] = {
        [CUT_CHUNK] = PLACE_SHARD, [CUT_ZIGZAG] = PLACE_ZIGZAG, [CUT_STRIPED] = PLACE_STRIPED};
    const char *const type[] = {"",
                                "replicate",
                                "varying_use",
                                place_pending_words[PENDING_SUM],
                                place_pending_words[PENDING_MAX],
                                "at"};
    const GTensor *t = &r->p->graph->t[v->tensor];
    const Mesh *m = r->p->mesh;
    TraceShape shape = {0}, *s = &shape;
    Val as = *v;
    as.L = *l;
    int nd = 0;
    graph_stored_shape(t, &nd, s->global_shape);
    s->nd = program_symbols(r->p, &as, r->a, s->dim_symbol);
    for (int d = s->nd; d < nd; d++) s->global_shape[0] *= s->global_shape[d]; /* one list */
    s->symbolic = program_symbolic(r->p, &as, r->a);
    s->place = ARENA_ARRAY(r->a, TracePlace, m->naxes + 1);
    Str pending = str_new(r->a);
    for (int x = 0; x < m->naxes; x++) {
        int d = layout_where(l, x);
        TracePlace *pl = &s->place[s->n_places++];
        pl->axis = m->axis[x].name;
        if (d < 0) {
            pl->place = type[l->type[x]];
            if (l->type[x] == TY_AT) pl->place = arena_printf(r->a, "at(%d)", l->at[x]);
            if (layout_paired(l, x))
                pl->place =
                    arena_printf(r->a, "%s at(%d,%d)", pl->place, l->pair[x].low, l->pair[x].high);
            if (l->type[x] == TY_P && m->axis[x].size > 1)
                str_addf(&pending, "%s%s", pending.n ? "*" : "", m->axis[x].name);
            continue;
        }
        int cut = 0;
        for (int k = 0; k < l->n[d]; k++)
            if (l->e[d][k].axis == x && !l->e[d][k].ghost) cut = l->e[d][k].how;
        pl->place =
            arena_printf(r->a, "%s(%d)", place_cut_words[how[cut]], program_stored_dim(t, l, d));
    }
    s->pending = pending.n ? pending.s : NULL;
    local_classes(r, v, l, kind, s);
    return shape;
}
/* Have values of one kind the same words for their dims and axes? */
static bool called_alike(const Rec *r, const Shape *x, const GTensor *t, const Val *v) {
    if (x->t->listed != t->listed || memcmp(x->t->role, t->role, sizeof t->role)) return false;
    for (int d = 0; d < t->nd; d++)
        if (strcmp(x->t->sym[d], t->sym[d])) return false;
    for (int a = 0; a < r->p->mesh->naxes; a++)
        if (x->v->group[a] != v->group[a]) return false;
    return true;
}
/* All that a record says of a shape but its name; a model's layers have the same ones. */
static void shape_record(Rec *r, const Val *v, const Layout *l, TraceShape *s) {
    const GTensor *t = &r->p->graph->t[v->tensor];
    int es = (int)dtype_size(widths_of(r->p, v, r->dtype));
    int kind = WIDTHS * classes_alike(r->sets, t, l) + es / 4;
    while (r->n_kinds <= kind) *ARENA_PUSH(r->tmp, r->kind, r->n_kinds, r->cap_kinds) = 0;
    int i = r->kind[kind];
    while (i && !called_alike(r, &r->shapes[i - 1], t, v)) i = r->shapes[i - 1].next;
    if (!i) {
        Shape x = {.t = t, .v = v, .s = new_shape(r, v, l, kind), .next = r->kind[kind]};
        *ARENA_PUSH(r->tmp, r->shapes, r->n_shapes, r->cap_shapes) = x;
        i = r->kind[kind] = r->n_shapes;
    }
    *s = r->shapes[i - 1].s;
}

/* ---- run ---- */
static void record_run(Rec *r, const Model *model) {
    Trace *t = r->t;
    const Mesh *m = r->p->mesh;
    const ModelDims *d = &model->dims;
    t->plan = t->title = r->plan->name;
    t->hash = arena_printf(r->a, "%016llx", (unsigned long long)r->plan->hash);
    t->backend = "virtual";
    t->pass = r->plan->pass;
    t->dtype = dtype_text(r->dtype);
    Dtype in = plan_executes_in(r->plan);
    t->executed_in = in == r->dtype ? NULL : dtype_text(in);
    t->names = plan_names_text(r->plan->names);
    t->model_name = d->name;
    t->model_kind = r->plan->kind;
    t->ranks = m->nranks;
    t->axes = arena_alloc(r->a, sizeof *t->axes * (size_t)(m->naxes + 1));
    for (int x = 0; x < m->naxes; x++) {
        t->axes[t->n_axes].name = m->axis[x].name;
        t->axes[t->n_axes++].size = m->axis[x].size;
    }
    t->groups = arena_alloc(r->a, sizeof *t->groups * (size_t)(m->ngroups + 1));
    for (int g = 0; g < m->ngroups; g++) {
        t->groups[t->n_groups].name = m->group[g].name;
        t->groups[t->n_groups++].axes = mesh_axes_text(m, r->a, &m->group[g].axes, true);
    }
    t->model = arena_alloc(r->a, sizeof *t->model * (size_t)(16 + d->n_sizes));
#define DIM(n, v) (t->model[t->n_model].name = (n), t->model[t->n_model++].value = (double)(v))
    if (d->mlp) {
        DIM("B", d->B);
        for (int i = 0; i < d->n_sizes; i++) DIM(arena_printf(r->a, "N%d", i), d->sizes[i]);
    } else if (d->core) {
        DIM("B", d->B), DIM("S", d->S), DIM("H", d->H), DIM("K", d->K), DIM("d", d->d);
    } else {
        DIM("B", d->B), DIM("S", d->S), DIM("D", d->D), DIM("H", d->H), DIM("K", d->K),
            DIM("d", d->d), DIM("F", d->F), DIM("V", d->V);
        DIM("L", d->L), DIM("layers", d->last_layer - d->first_layer), DIM("eps", d->eps);
    }
    if (r->plan->shrink > 1 && !r->plan->kind) DIM("shrink", r->plan->shrink);
    if (r->plan->microbatches > 1) DIM("microbatches", r->plan->microbatches);
#undef DIM
    record_settings(r->a, r->plan, model, t);
}

/* ---- classes of the whole program ---- */
/* Ranks whose values all have the same local shapes; (*rep)[k] is the first rank of class k. */
static void record_classes(Rec *r, int64_t **rep) {
    const Mesh *m = r->p->mesh;
    AxisList uneven = {0};
    /* one value of each kind stands for all */
    int *kind = ARENA_ARRAY(r->tmp, int, r->p->nv + 1), n_kinds = 0;
    for (int v = 0; v < r->p->nv; v++) {
        const GTensor *t = &r->p->graph->t[r->p->val[v].tensor];
        if (classes_alike(r->sets, t, &r->p->val[v].L) < n_kinds) continue;
        kind[n_kinds++] = v;
        classes_uneven(m, t, &r->p->val[v].L, &uneven);
    }
    AxisParts all = classes_even(r->tmp, &uneven);
    for (int k = 0; k < n_kinds && uneven.n; k++)
        classes_refine(r->tmp, &all, classes_parts(r->sets, k));
    int64_t n = classes_count(&all), k = 0;
    uint64_t *sig = ARENA_ARRAY(r->tmp, uint64_t, n);
    int64_t *of = ARENA_ARRAY(r->tmp, int64_t, n), *first = ARENA_ARRAY(r->a, int64_t, n);
    bool *in = ARENA_ARRAY(r->tmp, bool, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t rank = classes_rank(m, &all, i), shape[LAYOUT_MAX_DIMS];
        uint64_t h = 1469598103934665603u;
        for (int q = 0; n > 1 && q < n_kinds; q++) {
            const Val *v = &r->p->val[kind[q]];
            const GTensor *t = &r->p->graph->t[v->tensor];
            bool here = layout_holds(m, &v->L, rank);
            memset(shape, 0, sizeof shape);
            if (here) region_stored(m, t, &v->L, rank, shape);
            h = (h ^ here) * 1099511628211u;
            for (int d = 0; d < t->nstored; d++) h = (h ^ (uint64_t)shape[d]) * 1099511628211u;
        }
        int64_t c = 0;
        while (c < k && sig[c] != h) c++;
        if (c == k) {
            sig[k] = h;
            first[k++] = rank;
        }
        of[i] = c;
    }
    r->t->classes = ARENA_ARRAY(r->a, RankSet, k);
    r->t->n_classes = (int)k;
    for (int64_t c = 0; c < k; c++) {
        for (int64_t i = 0; i < n; i++) in[i] = of[i] == c;
        r->t->classes[c] = classes_ranks(r->sets, &all, in);
    }
    *rep = first;
}

static void find_users(Rec *r) {
    const Graph *g = r->p->graph;
    bool *met = ARENA_ARRAY(r->tmp, bool, g->nt + 1);
    r->user = ARENA_ARRAY(r->tmp, int, g->nt + 1);
    r->user_in_layer = ARENA_ARRAY(r->tmp, int, g->nt + 1);
    for (int t = 0; t < g->nt; t++) r->user[t] = r->user_in_layer[t] = -1;
    for (int n = 0; n < g->nn; n++)
        for (int i = 0; i < g->node[n].nin; i++) {
            int t = g->node[n].in[i];
            if (!met[t]) r->user[t] = g->node[n].layer, met[t] = true;
            if (r->user_in_layer[t] < 0) r->user_in_layer[t] = g->node[n].layer;
        }
}
/* ---- parameters ---- */
/* "Shard(0)", or "_StridedShard(0, sf=2)": PyTorch cuts in mesh order, so an axis whose pieces lie
 * inside those of a later axis is strided by them (FSDP on top of TP). */
static const char *shard_text(const Rec *r, const GTensor *x, const Layout *l, int dim, int axis) {
    int64_t split = 1;
    for (int d = 0; d <= l->ndim; d++)
        for (int k = 0; k < l->n[d] && program_stored_dim(x, l, d) == dim; k++) {
            if (l->e[d][k].axis == axis)
                return split > 1
                           ? arena_printf(r->a, "_StridedShard(%d, sf=%lld)", dim, (long long)split)
                           : arena_printf(r->a, "Shard(%d)", dim);
            if (l->e[d][k].axis > axis) split *= r->p->mesh->axis[l->e[d][k].axis].size;
        }
    return "Replicate()";
}
static void record_params(Rec *r) {
    const Graph *g = r->p->graph;
    const Assign *a = r->p->assign;
    static const char *how[] = {"chunk", "zigzag", "striped", "block"};
    for (int t = 0; t < g->nt; t++) {
        const GTensor *x = &g->t[t];
        if (x->kind != KIND_PARAM || x->state_of) continue;
        TraceParam *q = ARENA_PUSH(r->t->arena, r->t->params, r->t->n_params, r->t->cap_params);
        const Val *v = &r->p->val[r->p->first[t]];
        *q = (TraceParam){.plan_name = x->plan_name, .layer = -1, .planted = v->fault};
        q->planted_at = traffic_planted_at(r->a, v->planted_at, (Loc){0});
        shape_record(r, v, &a->compute[t], &q->compute);
        shape_record(r, v, &a->rest[t], &q->rest);
        q->compute.name = q->rest.name = graph_name(x);
        q->placements = ARENA_ARRAY(r->a, const char *, r->p->mesh->naxes + 1);
        for (int ax = 0; ax < r->p->mesh->naxes; ax++) {
            int d = layout_where(&a->rest[t], ax);
            q->placements[q->n_placements++] =
                a->rest[t].type[ax] == TY_AT ? "-"
                : d < 0                      ? "Replicate()"
                        : shard_text(r, x, &a->rest[t], program_stored_dim(x, &a->rest[t], d), ax);
        }
        for (int k = 0; k < q->rest.n_local; k++)
            if (q->rest.local[k].bytes > q->bytes) q->bytes = q->rest.local[k].bytes;
        int at = 0;
        for (int d = 0; d < x->nstored; d++) {
            Str s = str_new(r->a);
            for (int k = 0; k < x->stored[d]; k++, at++)
                for (int i = 0; i < a->rest[t].n[at]; i++)
                    str_addf(&s, "%s%c:%s:%s", s.n ? "/" : "", x->letter[at],
                             r->p->mesh->axis[a->rest[t].e[at][i].axis].name,
                             how[a->rest[t].e[at][i].how]);
            q->cuts[d] = s.s;
        }
        if (x->module >= 0) {
            q->module = g->module[x->module].path;
            if (a->use[x->module].style) q->style = a->use[x->module].name;
        }
        if (a->line[t] >= 0) {
            q->file = r->plan->lines[a->line[t]].loc.file;
            q->line = r->plan->lines[a->line[t]].loc.line;
            q->style = r->plan->lines[a->line[t]].style.name;
        }
        q->on = hooks_mesh(r->a, r->p, t);
        AxisList summed = {0};
        for (int ax = 0; ax < r->p->mesh->naxes; ax++)
            if (a->summed[t] >> ax & 1 && r->p->mesh->axis[ax].size > 1)
                summed.a[summed.n++] = (uint8_t)ax;
        if (summed.n) q->summed = mesh_axes_text(r->p->mesh, r->a, &summed, false);
        q->layer = r->user_in_layer[t];
    }
}

/* ---- values and steps ---- */
static int layer_of(const Rec *r, int tensor) {
    int n = r->p->graph->t[tensor].producer;
    if (n >= 0) return r->p->graph->node[n].layer;
    return r->user[tensor];
}
static const char *part_of(const Rec *r, int tensor) {
    int n = r->p->graph->t[tensor].producer;
    return n >= 0 ? r->p->graph->node[n].part : NULL;
}
/* The part of the first node that reads a parameter; NULL: none does. */
static const char *part_of_reader(const Rec *r, int tensor) {
    const Graph *g = r->p->graph;
    for (int n = 0; n < g->nn; n++)
        for (int i = 0; i < g->node[n].nin; i++)
            if (g->node[n].in[i] == tensor) return g->node[n].part;
    return NULL;
}
/* The most rows that any rank can have: one rank of each class is asked. */
static int64_t most_rows(Rec *r, const Val *v) {
    const AxisParts *u =
        classes_parts(r->sets, classes_alike(r->sets, &r->p->graph->t[v->tensor], &v->L));
    int64_t most = 0;
    for (int64_t i = 0; i < classes_count(u); i++) {
        int64_t n = rows_most(r->p, v, &v->L, classes_rank(r->p->mesh, u, i));
        most = n > most ? n : most;
    }
    return most;
}
static void record_rows(Rec *r, const Val *v, TraceValue *x) {
    x->list = -1;
    if (v->list < 0 || !r->p->graph->t[v->tensor].listed) return;
    x->list = r->p->val[v->list].step;
    x->most = most_rows(r, v);
    x->room = rows_most_symbol(r->p, v, r->a);
}
static void record_value(Rec *r, const Val *v, const Step *s) {
    TraceValue *x = ARENA_PUSH_LARGE(r->t->arena, r->t->values, r->t->n_values, r->t->cap_values);
    *x = (TraceValue){.step = s ? s->id : -1,
                      .pass = s ? s->pass : PHASE_FORWARD,
                      .layer = layer_of(r, v->tensor)};
    x->planted = s ? NULL : v->fault;
    if (!s) x->planted_at = traffic_planted_at(r->a, v->planted_at, (Loc){0});
    x->way = stages_way_of(r->p->assign->stages, v->stage);
    x->once = s && r->p->assign->stages && lives_deferred(r->p, s);
    x->alive = r->buffers[v - r->p->val];
    shape_record(r, v, &v->L, &x->shape);
    record_rows(r, v, x);
    x->subject = program_subject(r->p, v);
    x->shape.name = subject_name(r->a, x->subject);
    bool of_param = r->p->graph->t[v->tensor].kind == KIND_PARAM;
    x->kind = v->cot                              ? (of_param ? VALUE_GRADIENT : VALUE_COTANGENT)
              : !s                                ? VALUE_INPUT
              : r->p->graph->t[v->tensor].next_of ? VALUE_UPDATED
              : s->kind == ST_MOVE || s->kind == ST_CLAIM ? VALUE_MOVED
                                                          : VALUE_ACTIVATION;
}
/* Of a part of attention: what its mask is beside the causal one, or in its place. */
static const char *mask_text(Arena *a, const Attrs *at) {
    if (!at->blocks) return NULL;
    if (at->full) return "none";
    if (at->window && at->chunk)
        return arena_printf(a, "window %lld, chunk %lld", (long long)at->window,
                            (long long)at->chunk);
    if (at->window) return arena_printf(a, "window %lld", (long long)at->window);
    return at->chunk ? arena_printf(a, "chunk %lld", (long long)at->chunk) : NULL;
}
/* Does the node multiply by a matrix of weights, and sum? */
static bool is_product(const Program *p, const GNode *n) {
    bool weight = false;
    uint32_t sums = 0;
    for (int i = 0; i < n->nin; i++) {
        const GTensor *t = &p->graph->t[n->in[i]];
        weight |= t->kind == KIND_PARAM && t->nd >= 2;
        for (int d = 0; d < n->rule.nl[i]; d++)
            if (!strchr(n->rule.out, n->rule.in[i][d])) sums |= RULE_BIT(n->rule.in[i][d]);
    }
    return weight && sums && n->op->lin == LIN_BILINEAR;
}
static void record_compute(Rec *r, const Step *s) {
    const Program *p = r->p;
    const GNode *n = s->node >= 0 ? &p->graph->node[s->node] : NULL;
    int nr, rd[RULE_MAX_IN + 2], parts = 0;
    Trace *t = r->t;
    const Load *load = loads_of(r->loads, s, &parts);
    TraceCompute c = {.step = s->id,
                      .pass = s->pass,
                      .layer = layer_of(r, p->val[s->out].tensor),
                      .recompute = s->recompute,
                      .wrong = s->wrong};
    c.planted = s->fault;
    c.planted_at = traffic_planted_at(r->a, s->planted_at, s->loc);
    c.makes = program_subject(p, &p->val[s->out]);
    c.output = subject_name(r->a, c.makes);
    c.op = n ? (s->kind == ST_ADJOINT
                    ? arena_printf(r->a, "%s_backward", n->label ? n->label : n->op->name)
                    : n->op->name)
             : "add";
    c.label = n ? n->label : "sum of uses";
    c.glyph = !n ? "plus" : n->op->glyph ? n->op->glyph : "box";
    c.part = n ? n->part : NULL;
    if (n) c.layer = n->layer, c.attends = n->op->mixes, c.mask = mask_text(r->a, &n->at);
    c.product = n && is_product(p, n);
    if (n && n->module >= 0) {
        c.module = p->graph->module[n->module].path;
        c.style = p->assign->use[n->module].style ? p->assign->use[n->module].name : NULL;
    }
    nr = step_reads(s, rd);
    c.inputs = ARENA_ARRAY(r->a, const char *, nr + 1);
    c.input_step = ARENA_ARRAY(r->a, int, nr + 1);
    c.reads = ARENA_ARRAY(r->a, Subject, nr + 1);
    for (int i = 0; i < nr; i++) {
        c.reads[c.n_inputs] = program_subject(p, &p->val[rd[i]]);
        c.inputs[c.n_inputs] = subject_name(r->a, c.reads[c.n_inputs]);
        c.input_step[c.n_inputs++] = p->val[rd[i]].step;
    }
    for (int k = 0; k < parts; k++) { /* one record for each class of ranks with the same work */
        const RankSet *who = &load[k].ranks;
        if (!layout_holds(p->mesh, &p->val[s->out].L, rankset_first(who))) continue;
        TraceCompute *x = ARENA_PUSH_LARGE(t->arena, t->computes, t->n_computes, t->cap_computes);
        *x = c;
        x->ranks = *who;
        x->flops = load[k].flops;
        x->bytes = load[k].bytes;
        if (load[k].product) x->op = s->kind == ST_ADJOINT ? "linear_backward" : "linear";
    }
}
/* The stored dim that is cut after the move, else before it; -1: neither. */
static int moved_dim(const GTensor *t, const Move *v) {
    for (int i = 0; i < v->axes.n; i++) {
        int after = layout_where(&v->to, v->axes.a[i]),
            before = layout_where(&v->from, v->axes.a[i]);
        if (after >= 0) return program_stored_dim(t, &v->to, after);
        if (before >= 0) return program_stored_dim(t, &v->from, before);
    }
    return -1;
}
/* Where the plan asks for a collective that no line asks for: keys and values are gathered over the
 * axis of `context_parallel`, or over an axis that is called cp. */
static Loc asked_by(const Rec *r, const Step *s) {
    const Plan *plan = r->plan;
    const char *name = plan->context_parallel.axis ? plan->context_parallel.axis : "cp";
    AxisList cp;
    if (s->loc.line > 0 || s->inferred || !s->move.axes.n || !context_axes(r->p->mesh, plan, &cp))
        return s->loc;
    for (int i = 0; i < s->move.axes.n; i++) {
        bool in = false;
        for (int k = 0; k < cp.n; k++) in |= cp.a[k] == s->move.axes.a[i];
        if (!in) return s->loc;
    }
    if (plan->context_parallel.loc.line > 0) return plan->context_parallel.loc;
    for (int i = 0; i < plan->n_axes; i++)
        if (!strcmp(plan->axes[i].name, name)) return plan->axes[i].loc;
    return s->loc;
}
/* Why the data of one unit travel. */
static const char *unit_why(const Assign *a, const Step *s) {
    if (s->pass == PHASE_OPTIMIZER)
        return "ZeRO: each rank has updated its part; the parameters of one unit travel together";
    if (s->pass != PHASE_GRADIENTS)
        return "FSDP: cut at rest, needed whole; the parameters of one unit travel together";
    if (!move_cuts(s->move.kind))
        return "the ranks' gradients are added up; those of one unit travel together";
    if (a->shard.n == 0)
        return "each rank keeps the part that it updates; the gradients of one unit travel "
               "together";
    return "each rank keeps the part that it has at rest; the gradients of one unit travel "
           "together";
}
static void record_collective(Rec *r, const Step *s) {
    const Program *p = r->p;
    const Val *v = &p->val[s->out];
    const GTensor *t = &p->graph->t[v->tensor];
    TraceCollective *x =
        ARENA_PUSH(r->t->arena, r->t->collectives, r->t->n_collectives, r->t->cap_collectives);
    *x = (TraceCollective){.step = s->id,
                           .op = move_name(s->move.kind),
                           .pass = s->pass,
                           .why = s->why,
                           .inferred = s->inferred,
                           .dim = -1,
                           .value_step = p->val[s->in[0]].step,
                           .layer = layer_of(r, v->tensor),
                           .part = part_of(r, v->tensor)};
    x->dtype = dtype_text(widths_of(p, v, r->dtype));
    x->held = r->held[s->id];
    const Stages *stages = p->assign->stages;
    if (r->plan->microbatches > 1 && !lives_deferred(p, s) && !lives_once(p, v)) /* of its way */
        x->per_step = (int)(r->plan->microbatches / (stages ? stages->ways : 1));
    Arena *tmp = arena_new();
    traffic_record(&(Traffic){p, r->a, tmp, r->sets, r->dtype, &r->moved}, s, x);
    arena_free(tmp);
    if (x->n_with) x->why = unit_why(r->p->assign, s);
    x->subject = program_subject(p, v);
    x->value = subject_name(r->a, x->subject);
    Act act = act_of(s);
    Move done = act_move(&s->move, &act);
    int d = moved_dim(t, &done);
    if (d >= 0) {
        x->dim = d;
        x->dim_symbol = graph_stored_symbol(t, d, r->a);
    }
    /* what travels together was asked for by the key, not by the line of the first parameter */
    Loc unit = p->assign->plan->data_parallel.loc;
    Loc by = x->n_with && unit.file ? unit : asked_by(r, s);
    x->file = by.file;
    x->line = by.line;
    if (s->module >= 0) x->module = p->graph->module[s->module].path;
    x->where = hooks_where(p, s);
    x->wrong = s->wrong;
    /* figures put a collective beside what it belongs to */
    if (!x->part && x->subject.role == OF_ITSELF) x->part = part_of_reader(r, v->tensor);
    /* a layer's term of the loss is added up by the loss */
    if (s->pass == PHASE_LOSS && x->layer >= 0) x->layer = -1, x->part = "loss";
}
static void record_move(Rec *r, const Step *s) {
    TraceLocalMove *x = ARENA_PUSH_LARGE(r->t->arena, r->t->moves, r->t->n_moves, r->t->cap_moves);
    *x = (TraceLocalMove){.step = s->id,
                          .op = s->kind == ST_CLAIM ? "claim" : move_name(s->move.kind),
                          .subject = program_subject(r->p, &r->p->val[s->out]),
                          .pass = s->pass,
                          .why = s->why,
                          .value_step = r->p->val[s->in[0]].step,
                          .layer = layer_of(r, r->p->val[s->out].tensor)};
    x->value = subject_name(r->a, x->subject);
    if (s->module >= 0) x->module = r->p->graph->module[s->module].path;
    x->where = hooks_where(r->p, s);
    x->axes = mesh_axes_text(r->p->mesh, r->a, &s->move.axes, true);
    x->file = s->loc.file;
    x->line = s->loc.line;
    x->wrong = s->wrong;
    x->left_by = s->left_by;
    x->planted = s->fault;
    x->planted_at = traffic_planted_at(r->a, s->planted_at, s->loc);
}

/* Of a file its name, without the folder that it lies in. */
static const char *schedule_name(const Schedule *s) {
    const char *slash = strrchr(s->name, '/');
    return slash ? slash + 1 : s->name;
}
static void record_schedule(Rec *r) {
    const Stages *s = r->p->assign->stages;
    Trace *t = r->t;
    if (!s) return;
    t->schedule = schedule_name(s->schedule);
    t->schedule_axis = r->p->mesh->axis[s->axis].name;
    t->stages = s->n;
    t->order = s->schedule;
    t->schedule_buffers = r->plan->pipeline.p2p_buffers;
    t->step_stage = ARENA_ARRAY(r->a, int, r->p->ns + 1);
    t->step_action = ARENA_ARRAY(r->a, int, r->p->ns + 1);
    t->n_order_steps = r->p->ns;
    for (int i = 0; i < r->p->ns; i++) { /* the stage's times are those of its first copy */
        const Step *q = &r->p->step[i];
        bool once = lives_deferred(r->p, q) || lives_once(r->p, &r->p->val[q->out]);
        t->step_stage[i] = stages_way_of(s, q->stage) ? -1 : q->stage;
        t->step_action[i] = once ? -1 : (int)tasks_kind(r->p, q);
    }
    for (int k = 0; k < s->schedule->ranks; k++)
        for (int i = 0; i < s->schedule->rank[k].n; i++) {
            const Action *a = &s->schedule->rank[k].a[i];
            if (!action_computes(a->kind)) continue;
            *ARENA_PUSH_LARGE(r->a, t->actions, t->n_actions, t->cap_actions) =
                (TraceAction){.rank = k,
                              .stage = a->stage,
                              .microbatch = a->part,
                              .kind = action_word(a->kind),
                              .joined = a->joined};
        }
}

void record_program(Trace *t, const Program *p, const Plan *plan, const Model *model, Dtype dtype) {
    Rec r = {.t = t, .p = p, .a = t->arena, .plan = plan, .dtype = dtype};
    int64_t *rep;
    r.tmp = arena_new();
    r.sets = classes_sets(r.a, p->mesh);
    r.held = held_find(p, r.a);
    r.buffers = lives_buffers(p, r.held, plan->microbatches, r.a);
    find_users(&r);
    record_run(&r, model);
    record_schedule(&r);
    record_classes(&r, &rep);
    r.moved = traffic_alike(r.a);
    r.loads = loads_new(r.a, p, dtype, t->classes, rep, t->n_classes);
    record_params(&r);
    hooks_record(t, p, plan);
    trace_index(t);
    for (int v = 0; v < p->nv; v++)
        if (p->val[v].step < 0 && p->val[v].kind == KIND_INPUT) record_value(&r, &p->val[v], NULL);
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        record_value(&r, &p->val[s->out], s);
        if (s->kind == ST_OP || s->kind == ST_ADJOINT || s->kind == ST_SUM) record_compute(&r, s);
        else if (s->unit >= 0 && s->unit != i)
            continue; /* its bytes travel with those of the step that leads */
        else if (s->kind == ST_MOVE && move_communicates(s->move.kind) &&
                 mesh_size(p->mesh, &s->move.axes) > 1)
            record_collective(&r, s);
        else if (s->kind != ST_SEED) record_move(&r, s);
    }
    trace_index_values(t);
    const Footprint held = {t, p, r.buffers, dtype, plan->moments, plan->master, rep};
    if (p->assign->stages) flight_record(&held);
    else footprint_record(&held);
    arena_free(r.tmp);
}

void record_stuck(Trace *t, Mesh *mesh, const Plan *plan, const Model *model, const Play *play) {
    Program none = {.mesh = mesh};
    Rec r = {.t = t, .p = &none, .a = t->arena, .plan = plan, .dtype = plan->dtype};
    const Schedule *s = play->s;
    record_run(&r, model);
    t->schedule = schedule_name(s);
    t->schedule_axis = plan->pipeline.axis;
    t->stages = s->stages;
    int *done = ARENA_ARRAY(t->arena, int, s->ranks);
    for (int i = 0; i < play->n_steps; i++) {
        const PlayStep *x = &play->step[i];
        if (done[x->rank] <= x->at) done[x->rank] = x->at + 1;
    }
    for (int k = 0; k < s->ranks; k++)
        for (int i = 0; i < done[k]; i++) {
            const Action *a = &s->rank[k].a[i];
            if (!action_computes(a->kind)) continue;
            *ARENA_PUSH_LARGE(r.a, t->actions, t->n_actions, t->cap_actions) =
                (TraceAction){.rank = k,
                              .stage = a->stage,
                              .microbatch = a->part,
                              .kind = action_word(a->kind),
                              .joined = a->joined,
                              .start = play->span[k][i].start,
                              .end = play->span[k][i].end};
        }
    t->stuck = ARENA_ARRAY(t->arena, TraceStuck, play->n_blocked);
    for (int i = 0; i < play->n_blocked; i++) {
        const PlayBlocked *b = &play->blocked[i];
        const Action *a = b->at >= 0 ? &s->rank[b->rank].a[b->at] : NULL;
        t->stuck[t->n_stuck++] = (TraceStuck){.rank = b->rank,
                                              .stage = a ? a->stage : -1,
                                              .action = a ? action_text(a, t->arena) : NULL,
                                              .waits = b->waits_for};
    }
}
