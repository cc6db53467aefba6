/* Whose tokens a rank counts by itself. A capacity of its own tokens is another result than one of
 * all, so the unsharded run has to know the groups too: they follow from how the ranks' tokens lie
 * once the program is lowered. A load balance of its own tokens is a mistake, which is done as the
 * plan says and found by the check. Refuses to change what is declared of a step. */
#include "lower/program.h"
#include "ops/op.h"
#include <string.h>

/* Does any axis cut batch or sequence of an index list [e, b, t]? Then those axes, else none. */
static AxisList cutting(const Layout *l) {
    AxisList out = {0};
    for (int d = 1; d < 3; d++) {
        AxisList one = layout_dim_axes(l, d);
        for (int i = 0; i < one.n; i++) out.a[out.n++] = one.a[i];
    }
    return out;
}
/* Is it the first of the ranks that hold the same tokens? */
static bool is_first(const Mesh *m, const AxisList *cut, int64_t rank) {
    for (int x = 0; x < m->naxes; x++) {
        bool cuts = false;
        for (int i = 0; i < cut->n; i++) cuts |= cut->a[i] == x;
        if (!cuts && mesh_coord(m, rank, x)) return false;
    }
    return true;
}
/* [B * S]: of each token the number of its ranks' first. In the program's arena. */
static const int32_t *groups_of(const Program *p, const Val *list) {
    const GTensor *t = &p->graph->t[list->tensor];
    int64_t B = t->size[1], S = t->size[2];
    int32_t *group = ARENA_ARRAY(p->arena, int32_t, B * S + 1);
    AxisList cut = cutting(&list->L);
    Arena *tmp = arena_new();
    for (int64_t r = 0; r < p->mesh->nranks; r++) {
        if (!is_first(p->mesh, &cut, r)) continue;
        IndexList b = layout_index(p->mesh, &list->L, 1, B, r, tmp),
                  s = layout_index(p->mesh, &list->L, 2, S, r, tmp);
        for (int64_t i = 0; i < b.n; i++)
            for (int64_t k = 0; k < s.n; k++) group[b.at[i] * S + s.at[k]] = (int32_t)r;
    }
    arena_free(tmp);
    return group;
}
/* Does the node thin out a list, counting tokens? */
static bool counts(const Graph *g, const GNode *n) {
    return n->op->rows && n->nin && graph_is_list(&g->t[n->in[0]]);
}
void program_groups(Program *p, Graph *g) {
    for (int i = 0; i < p->n_forward; i++) {
        const Step *s = &p->step[i];
        if (s->kind != ST_OP) continue;
        GNode *n = &g->node[s->node];
        if (!counts(g, n) || n->rule.whole) continue; /* of all tokens */
        n->at.group = groups_of(p, &p->val[s->in[0]]);
    }
}
/* [B * S] of the batch: micro-batch after micro-batch, each with groups of its own, those of `one`
 * or all of its tokens. */
static const int32_t *groups_of_parts(Arena *arena, const int32_t *one, int64_t tokens,
                                      int64_t parts) {
    int32_t *group = ARENA_ARRAY(arena, int32_t, tokens * parts + 1), most = 0;
    for (int64_t i = 0; one && i < tokens; i++) most = one[i] > most ? one[i] : most;
    for (int64_t i = 0; i < tokens * parts; i++)
        group[i] = (int32_t)(i / tokens) * (most + 1) + (one ? one[i % tokens] : 0);
    return group;
}
void program_groups_whole(const Program *p, Graph *whole, int64_t parts) {
    const Graph *g = p->graph;
    for (int i = 0; i < g->nn && parts > 1; i++) {
        const GTensor *t = &g->t[g->node[i].in[0]];
        if (!counts(g, &g->node[i])) continue;
        whole->node[i].at.group =
            groups_of_parts(p->arena, g->node[i].at.group, t->size[1] * t->size[2], parts);
    }
}

/* Has every rank equally many tokens in the list that a count was made of? */
static bool equal_shares(const Program *p, const Val *counts) {
    const Val *list = &p->val[p->step[counts->step].in[0]];
    const GTensor *t = &p->graph->t[list->tensor];
    int64_t first = -1;
    for (int64_t r = 0; r < p->mesh->nranks; r++) {
        int64_t local[LAYOUT_MAX_DIMS];
        layout_local(p->mesh, &list->L, t->size, r, local);
        if (first >= 0 && local[1] * local[2] != first) return false;
        first = local[1] * local[2];
    }
    return true;
}
bool program_own_counts(Program *p, Diags *d) {
    Loc loc = p->assign->plan->moe.aux_loc;
    bool own = p->assign->model->dims.balanced_apart, any = false;
    for (int i = 0; i < p->n_forward && own; i++) {
        Step *s = &p->step[i];
        const Val *made = &p->val[s->nin ? s->in[0] : s->out];
        if (s->kind != ST_MOVE || !move_reduces(s->move.kind) ||
            !graph_counts_rows(p->graph, &p->graph->t[made->tensor]))
            continue;
        while (p->step[made->step].kind != ST_OP) made = &p->val[p->step[made->step].in[0]];
        if (!equal_shares(p, made)) {
            diag_error(d, "E0307", loc, "aux_loss: exact",
                       "`per_shard` is a mean over ranks, and they have unequally many tokens");
            return false;
        }
        Act *a = act_rewrite(p, s, "aux_loss: per_shard", loc);
        a->kind = MOVE_ID;
        a->combine = COMBINE_COPY;
        a->scale = (double)mesh_size(p->mesh, &s->move.axes);
        any |= a->scale > 1;
    }
    if (own && !any)
        diag_note(d, "N0003", loc, "aux_loss: exact",
                  "no axis cuts the tokens: `per_shard` is the loss of all of them here");
    return true;
}
