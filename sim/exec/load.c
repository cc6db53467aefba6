/* Work per class of ranks. See load.h. Steps of one kind whose operands lie alike (the layers of a
 * model) share what is found about positions. */
#include "exec/load.h"
#include "exec/classes.h"
#include "exec/opcall.h"
#include "exec/region.h"
#include "trace/rankgrid.h"
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PLACES = 4096
}; /* different sets of positions that are told apart; beyond, all have the average */

/* Ranks of one class with the same work, by their first. */
typedef struct {
    int klass;
    int64_t rank;
    RankSet ranks;
    const int64_t *index[26];
    double flops; /* of an op that asks for positions, which follow from all of this; -1: not yet */
} Place;
/* What is known about steps whose op and operands' layouts are these. */
typedef struct {
    const GNode *node;
    bool adjoint;
    Layout in[RULE_MAX_IN];
    int n, cap;
    Place *place;
} Known;
struct Loads {
    Arena *arena;
    const Program *p;
    Dtype dtype;
    const RankSet *classes;
    const int64_t *rep;
    int n_classes, n_known, cap_known;
    Known *known;
    int cap;
    Load *load;
};
Loads *loads_new(Arena *arena, const Program *p, Dtype dtype, const RankSet *classes,
                 const int64_t *rep, int n) {
    Loads *l = ARENA_NEW(arena, Loads);
    *l = (Loads){
        .arena = arena, .p = p, .dtype = dtype, .classes = classes, .rep = rep, .n_classes = n};
    return l;
}

/* ---- one rank ---- */
static int64_t elem_bytes(const Loads *l, const GTensor *t) {
    return dtype_size(region_dtype(t, l->dtype));
}
static const Layout *layout_in(const Loads *l, const Step *s, int i) {
    const GNode *n = &l->p->graph->node[s->node];
    int v = opcall_operands(s)[i];
    return &l->p->val[v >= 0 ? v : l->p->env[n->in[i]]].L;
}
static Tensor local_sizes(const OpcallSource *f, int val) {
    const Val *v = &f->p->val[val];
    return region_letters(f->p->mesh, &f->p->graph->t[v->tensor], &v->L, f->rank);
}
static Layout local_layout(const OpcallSource *f, int val) { return f->p->val[val].L; }
static OpcallSource rank_of(const Loads *l, int64_t rank) {
    return (OpcallSource){.p = l->p,
                          .dtype = l->dtype,
                          .rank = rank,
                          .sizes_only = true,
                          .value = local_sizes,
                          .lies = local_layout};
}
/* Sizes only; of an adjoint those of its forward call. A false label may not fit: the sizes that
 * were met first count. */
static OpCall size_call(const Loads *l, const Step *s, int64_t rank, int64_t *bytes) {
    const Program *p = l->p;
    const GNode *n = &p->graph->node[s->node];
    OpcallSource f = rank_of(l, rank);
    OpCall c;
    opcall_build(&f, s, &c, NULL);
    c = op_call_forward(&c);
    *bytes = tensor_count(&c.out) * elem_bytes(l, &p->graph->t[n->out]);
    for (int i = 0; i < n->nin; i++)
        if (opcall_operands(s)[i] >= 0)
            *bytes += tensor_count(&c.in[i]) * elem_bytes(l, &p->graph->t[n->in[i]]);
    return c;
}

/* ---- positions ---- */
/* The axes that cut letters whose positions the op asks for. */
static AxisList asked_axes(const Loads *l, const Step *s) {
    const GNode *n = &l->p->graph->node[s->node];
    AxisList axes = {0};
    uint32_t have = 0;
    for (int i = 0; i < n->nin && n->op->asks; i++)
        for (int d = 0; d < n->rule.nl[i]; d++) {
            AxisList cut = layout_dim_axes(layout_in(l, s, i), d);
            for (int k = 0; k < cut.n && (op_positions(n->op, &n->at) & RULE_BIT(n->rule.in[i][d]));
                 k++) {
                if (!(have >> cut.a[k] & 1)) axes.a[axes.n++] = cut.a[k];
                have |= 1u << cut.a[k];
            }
        }
    return axes;
}
static void set_index(const Loads *l, const Step *s, Place *x, Arena *into) {
    int64_t bytes;
    OpCall c = size_call(l, s, x->rank, &bytes);
    OpcallSource f = rank_of(l, x->rank);
    opcall_positions(&f, s, &c, into);
    memcpy(x->index, c.index, sizeof x->index);
}
/* Do micro-batches differ in their work? Then each counts with the mean of all. */
static bool work_differs(const Loads *l, const Step *s) {
    const AttentionPacking *d = l->p->graph->node[s->node].at.documents;
    return d && d->rows > 1 && l->p->assign->plan->microbatches > 1;
}
static double flops_at(const Loads *l, const Step *s, const Place *x, OpCall *c, int64_t *bytes) {
    *c = size_call(l, s, x->rank, bytes);
    if (x->flops >= 0) return x->flops;
    memcpy(c->index, x->index, sizeof x->index);
    int64_t parts = work_differs(l, s) ? l->p->assign->plan->microbatches : 1;
    double flops = 0;
    for (int64_t i = 0; i < parts; i++) {
        c->batch_from = i * c->global['b' - 'a'];
        flops += op_flops(c);
    }
    return flops / (double)parts;
}
/* A class of ranks that is being split: the combinations of coordinates of the axes that matter. */
typedef struct {
    Loads *l;
    const Step *s;
    Known *at;
    const RankSet *ranks; /* of the class, as boxes */
    int klass, begin;     /* first of its places */
    const AxisList *axes;
    int64_t n;
    int *group; /* 1 + place, counted from begin, of each combination; 0: not met */
    double *flops;
} Split;
static void meet(Split *x, int64_t c, int64_t rank) {
    if (x->group[c]) return;
    Place p = {.klass = x->klass, .rank = rank, .flops = -1}, try = p;
    OpCall call;
    int64_t bytes;
    Arena *tmp = arena_new(); /* most combinations do what another does: their positions go */
    set_index(x->l, x->s, &try, tmp);
    double f = flops_at(x->l, x->s, &try, &call, &bytes);
    arena_free(tmp);
    int same = x->begin;
    while (same < x->at->n && x->flops[same - x->begin] != f) same++;
    if (same == x->at->n) {
        x->flops[same - x->begin] = f;
        set_index(x->l, x->s, &p, x->l->arena);
        *ARENA_PUSH(x->l->arena, x->at->place, x->at->n, x->at->cap) = p;
    }
    x->group[c] = same - x->begin + 1;
}
/* What a box has at combination c; false: nothing. */
static bool box_at(const Split *x, const RankBox *b, int64_t c, RankBox *out) {
    *out = *b;
    for (int k = x->axes->n - 1; k >= 0; k--) {
        RankSide *s = &out->side[x->axes->a[k]];
        int64_t at = c % s->size;
        c /= s->size;
        if (at < s->first || at >= s->first + s->count) return false;
        s->first = at;
        s->count = 1;
    }
    return true;
}
/* Joins b to a, if they are next to each other along one side and else the same. */
static bool join(RankBox *a, const RankBox *b) {
    int side = -1, differ = 0;
    for (int k = 0; k < a->n; k++)
        if (a->side[k].first != b->side[k].first || a->side[k].count != b->side[k].count)
            side = k, differ++;
    if (differ != 1 || a->side[side].first + a->side[side].count != b->side[side].first)
        return false;
    a->side[side].count += b->side[side].count;
    return true;
}
/* No rank is looked at. */
static void split_boxes(Split *x) {
    RankBox one;
    for (int i = 0; i < x->ranks->n; i++)
        for (int64_t c = 0; c < x->n; c++)
            if (box_at(x, &x->ranks->box[i], c, &one))
                meet(x, c, rankset_first(&(RankSet){.n = 1, .box = &one}));
    for (int g = x->begin; g < x->at->n; g++) {
        Arena *tmp = arena_new();
        RankBox *out = NULL;
        int n = 0, cap = 0;
        for (int i = 0; i < x->ranks->n; i++)
            for (int64_t c = 0; c < x->n; c++) {
                if (x->group[c] != g - x->begin + 1 || !box_at(x, &x->ranks->box[i], c, &one))
                    continue;
                if (!n || !join(&out[n - 1], &one)) *ARENA_PUSH(tmp, out, n, cap) = one;
            }
        x->at->place[g].ranks = rankset_boxes(x->l->arena, out, n);
        arena_free(tmp);
    }
}
/* The ranks of class k with the same work: by what the ranks at each combination of coordinates
 * have to do. */
static void split_class(Loads *l, const Step *s, Known *at, int k, const AxisList *axes) {
    Split x = {.l = l,
               .s = s,
               .at = at,
               .ranks = &l->classes[k],
               .klass = k,
               .begin = at->n,
               .axes = axes};
    x.n = mesh_size(l->p->mesh, axes);
    x.group = ARENA_ARRAY(l->arena, int, x.n);
    x.flops = ARENA_ARRAY(l->arena, double, x.n);
    RankBox mesh = classes_mesh(l->p->mesh);
    RankSet boxes = rankset_as_boxes(l->arena, &mesh, x.ranks);
    x.ranks = &boxes;
    split_boxes(&x);
    if (at->n == x.begin + 1) at->place[x.begin].ranks = l->classes[k];
}
/* Do the nodes' constants give positions the same meaning: who sees whom? */
static bool alike(const GNode *a, const GNode *b) {
    return a->op == b->op && a->nin == b->nin && a->at.chunk == b->at.chunk &&
           a->at.window == b->at.window && a->at.full == b->at.full && a->at.hop == b->at.hop &&
           a->at.documents == b->at.documents;
}
static const Known *places_of(Loads *l, const Step *s) {
    const GNode *n = &l->p->graph->node[s->node];
    Known x = {.node = n, .adjoint = s->kind == ST_ADJOINT};
    for (int i = 0; i < n->nin && n->op->asks; i++) x.in[i] = *layout_in(l, s, i);
    for (int i = 0; i < l->n_known; i++) {
        const Known *y = &l->known[i];
        bool same = n->op->asks ? alike(y->node, n) && y->adjoint == x.adjoint : !y->node->op->asks;
        for (int k = 0; same && n->op->asks && k < n->nin; k++)
            same = layout_eq(&x.in[k], &y->in[k]) &&
                   !memcmp(l->p->graph->t[n->in[k]].size, l->p->graph->t[y->node->in[k]].size,
                           sizeof l->p->graph->t[0].size);
        if (same) return y;
    }
    AxisList axes = asked_axes(l, s);
    bool split = axes.n && mesh_size(l->p->mesh, &axes) <= MAX_PLACES;
    for (int k = 0; k < l->n_classes; k++) {
        if (split) split_class(l, s, &x, k, &axes);
        else
            *ARENA_PUSH(l->arena, x.place, x.n, x.cap) =
                (Place){.klass = k, .rank = l->rep[k], .ranks = l->classes[k], .flops = -1};
    }
    Known *y = ARENA_PUSH(l->arena, l->known, l->n_known, l->cap_known);
    *y = x;
    return y;
}
const Load *loads_of(Loads *l, const Step *s, int *n) {
    const Known *at = places_of(l, s);
    if (l->cap < at->n) l->load = ARENA_ARRAY(l->arena, Load, l->cap = at->n);
    for (int i = 0; i < at->n; i++) {
        OpCall c;
        Load *x = &l->load[i];
        x->flops = flops_at(l, s, &at->place[i], &c, &x->bytes);
        if (c.op->asks) at->place[i].flops = x->flops;
        x->ranks = at->place[i].ranks;
        x->product = c.op->lin == LIN_BILINEAR && c.rule->nin == 2 &&
                     x->flops > 2 * (double)tensor_count(&c.out);
    }
    *n = at->n;
    return l->load;
}
