/* Ulysses: inside attention the axes of the sequence cut heads. The moves are changes of layout
 * like any others (all-to-alls, and gathers of KV heads that several ranks read), so their adjoints
 * follow. It asks for the roles of dims, and refuses to know an op or what attention computes. */
#include "lower/context.h"
#include "assign/context.h"
#include "ops/op.h"
#include <string.h>

static int dim_of_role(const GTensor *t, DimRole role) {
    for (int d = 0; d < t->nd; d++)
        if (t->role[d] == role) return d;
    return -1;
}
/* What the cuts of dim d leave of its size. */
static int64_t rest_of(const Mesh *m, const GTensor *t, const Layout *l, int d) {
    AxisList cut = layout_dim_axes(l, d);
    int64_t n = mesh_size(m, &cut);
    return t->size[d] / n;
}
/* The heads of the operand that the axis cuts: KV heads while there are as many as ranks, then the
 * query heads of each; -1: neither, every rank reads them all. */
static int heads_dim(const Mesh *m, const GTensor *t, const Layout *l, int axis) {
    int k = dim_of_role(t, DIM_KV_HEADS);
    if (k >= 0 && rest_of(m, t, l, k) >= m->axis[axis].size) return k;
    return dim_of_role(t, DIM_QUERY_HEADS);
}
/* Does a node that works on the latent of a block make it? */
static bool of_block(const Graph *g, int tensor) {
    int n = g->t[tensor].producer;
    return n >= 0 && g->node[n].block;
}
void context_enter(Lower *l, const GNode *n, int *in) {
    Program *p = l->p;
    AxisList heads = context_heads(p->mesh, l->a->plan);
    if (!n->op->mixes || !heads.n) return;
    Reason r = {.text = "Ulysses: attention needs every token, of some heads",
                .back = "gradients go back to the ranks of their tokens",
                .loc = l->a->plan->context_parallel.loc,
                .asked = true,
                .module = n->module,
                .scope = -1,
                .pass = PHASE_FORWARD};
    for (int i = 0; i < n->nin; i++) {
        const GTensor *t = &p->graph->t[p->val[in[i]].tensor];
        Layout want = p->val[in[i]].L;
        for (int k = 0; k < heads.n; k++) {
            int d = layout_where(&want, heads.a[k]);
            bool made = d < 0 && of_block(p->graph, n->in[i]); /* of all tokens, of a latent */
            if (!made && (d < 0 || d >= t->nd || t->role[d] != DIM_SEQUENCE)) continue;
            layout_set_type(&want, heads.a[k], p->val[in[i]].diff ? TY_R : TY_I);
            int to = heads_dim(p->mesh, t, &want, heads.a[k]);
            if (to >= 0) layout_cut(&want, to, heads.a[k], CUT_CHUNK);
        }
        in[i] = moves_to(l, in[i], &want, &r);
    }
}
void context_latent(Lower *l, const GNode *n, int *in) {
    Program *p = l->p;
    AxisList axes;
    if (!n->block || !context_axes(p->mesh, l->a->plan, &axes)) return;
    for (int i = 0; i < n->nin; i++) {
        const GTensor *t = &p->graph->t[n->in[i]];
        Layout want = p->val[in[i]].L;
        int d = dim_of_role(t, DIM_SEQUENCE);
        if (d < 0 || t->kind == KIND_PARAM || of_block(p->graph, n->in[i])) continue;
        for (int k = 0; k < axes.n; k++)
            if (axes.a[k] != l->ring && layout_where(&want, axes.a[k]) == d)
                layout_set_type(&want, axes.a[k], p->val[in[i]].diff ? TY_R : TY_I);
        for (int k = 0; k < want.n[d]; k++)
            if (want.e[d][k].axis == l->ring) want.e[d][k].shift = (uint8_t)n->hop;
        const char *back = n->hop > 1 ? "s" : "";
        Reason r = {.text = !n->hop ? "the latent is gathered in place of keys and values"
                                    : arena_printf(p->arena,
                                                   "ring: the latent of %d rank%s before comes by "
                                                   "in place of keys and values",
                                                   n->hop, back),
                    .loc = l->a->plan->context_parallel.latent_loc,
                    .asked = true,
                    .module = n->module,
                    .scope = -1,
                    .pass = PHASE_FORWARD};
        in[i] = moves_to(l, in[i], &want, &r);
    }
}
/* Cuts dim t of `l` again by those of the axes that cut dim d of `home`, in the order that they
 * have there; what else cuts t now stays. */
static void cut_as_home(Layout *l, int t, const Layout *home, int d, const AxisList *axes) {
    Layout now = *l;
    for (int k = 0; k < axes->n; k++)
        if (layout_where(home, axes->a[k]) == d) layout_set_type(l, axes->a[k], TY_I);
    for (int k = 0; k < now.n[t]; k++)
        if (layout_where(l, now.e[t][k].axis) == t) layout_set_type(l, now.e[t][k].axis, TY_I);
    for (int k = 0; k < home->n[d]; k++) {
        int x = home->e[d][k].axis;
        bool goes = mesh_axes_set(axes) >> x & 1 || layout_where(&now, x) == t;
        if (!home->e[d][k].ghost && goes) layout_cut(l, t, x, (CutHow)home->e[d][k].how);
    }
    for (int k = 0; k < now.n[t]; k++)
        if (layout_where(l, now.e[t][k].axis) < 0 && !now.e[t][k].ghost)
            layout_cut(l, t, now.e[t][k].axis, (CutHow)now.e[t][k].how);
}
void context_leave(Lower *l, const GNode *n, Phase pass) {
    Program *p = l->p;
    const GModule *m = n->module >= 0 ? &p->graph->module[n->module] : NULL;
    AxisList heads = context_heads(p->mesh, l->a->plan);
    if (!m || !m->mixes || m->output != n->out || !heads.n) return;
    const Layout *home = &p->val[p->env[m->input[0]]].L; /* as the queries came */
    Layout want = p->val[p->env[n->out]].L;
    int t = dim_of_role(&p->graph->t[n->out], DIM_SEQUENCE);
    int from = dim_of_role(&p->graph->t[m->input[0]], DIM_SEQUENCE);
    cut_as_home(&want, t, home, from, &heads);
    Reason r = {.text = "Ulysses: the results go back to the ranks of their tokens",
                .back = "gradients go to the ranks of their heads",
                .loc = l->a->plan->context_parallel.loc,
                .asked = true,
                .module = n->module,
                .scope = -1,
                .pass = pass};
    p->env[n->out] = moves_to(l, p->env[n->out], &want, &r);
}

/* ---- blocks ---- */
/* [S]: of each position the place in the ring of those that hold it, of a value that lies so. In
 * the program's arena. */
static const int32_t *blocks_of(const Program *p, const GTensor *t, const Layout *L, int ring) {
    int d = dim_of_role(t, DIM_SEQUENCE);
    int32_t *block = ARENA_ARRAY(p->arena, int32_t, t->size[d] + 1);
    AxisList cut = layout_dim_axes(L, d);
    Arena *tmp = arena_new();
    for (int64_t i = 0; i < mesh_size(p->mesh, &cut); i++) {
        int64_t rank = mesh_member(p->mesh, &cut, 0, i);
        IndexList x = layout_index(p->mesh, L, d, t->size[d], rank, tmp);
        for (int64_t k = 0; k < x.n; k++) block[x.at[k]] = (int32_t)mesh_coord(p->mesh, rank, ring);
    }
    arena_free(tmp);
    return block;
}
void program_blocks(Program *p, Graph *g) {
    int ring = context_ring(p->mesh, p->assign->plan);
    const int32_t *known = NULL;
    const Layout *of = NULL;
    for (int i = 0; i < p->n_forward && ring >= 0; i++) {
        const Step *s = &p->step[i];
        GNode *n = s->kind == ST_OP ? &g->node[s->node] : NULL;
        if (!n || !n->rule.tied) continue;
        const Val *q = &p->val[s->in[0]]; /* queries stay where they are */
        if (!of || !layout_eq(of, &q->L)) known = blocks_of(p, &g->t[q->tensor], &q->L, ring);
        of = &q->L;
        n->at.block = known;
    }
}
