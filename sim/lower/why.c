/* Why a move is made, in words: what the place that asks for it needs. See why.h. */
#include "lower/why.h"
#include "assign/context.h"
#include "base/text.h"
#include "ops/op.h"
#include <string.h>

/* Of a declared boundary that only cuts or joins a dimension: what for. NULL: it does neither. */
static const char *recut_why(const Program *p, int v, const Layout *want) {
    const Val *x = &p->val[v];
    const GTensor *t = &p->graph->t[x->tensor];
    for (int a = 0; a < p->mesh->naxes; a++) {
        const int has = layout_where(&x->L, a), gets = layout_where(want, a);
        if (p->mesh->axis[a].size < 2 || has == gets) continue;
        if (has >= 0 && gets < 0)
            return arena_printf(p->arena, "what follows needs all of %s", t->sym[has]);
        if (has < 0) return arena_printf(p->arena, "each rank takes its part of %s", t->sym[gets]);
    }
    return NULL;
}

const char *why_input(const Program *p, int module, int v, const Layout *want) {
    const GTensor *t = &p->graph->t[p->val[v].tensor];
    const Layout *L = &p->val[v].L;
    const ModuleUse *u = &p->assign->use[module];
    for (int d = 0; d < t->nd; d++)
        if (L->n[d])
            for (int k = 0; k < L->n[d]; k++)
                for (int i = 0; i < u->seq_axes.n; i++)
                    if (L->e[d][k].axis == u->seq_axes.a[i])
                        return t->role[d] == DIM_SEQUENCE
                                   ? "the matmul needs every token"
                                   : arena_printf(p->arena, "%s needs all of %s",
                                                  p->graph->module[module].path, t->sym[d]);
    const char *recut = recut_why(p, v, want);
    return recut ? recut
                 : arena_printf(p->arena, "declared at the input of %s",
                                p->graph->module[module].path);
}

/* Does the node add over a letter that the axis cuts, so that each rank has its terms only? */
static bool adds_over(const Program *p, const GNode *n, int axis) {
    for (int i = 0; i < n->nin; i++) {
        int v = p->env[n->in[i]], d = v < 0 ? -1 : layout_where(&p->val[v].L, axis);
        if (d >= 0 && d < n->rule.nl[i] && rule_find_out(&n->rule, n->rule.in[i][d]) < 0)
            return true;
    }
    return false;
}
/* The node that leaves the sum over `axis` to be made: what lies between (a bias in shares, an
 * exchange, the weighing of the chosen experts) is linear and passes the share on. -1 if none. */
static int pending_since(const Program *p, int tensor, int axis) {
    const Graph *g = p->graph;
    int node = g->t[tensor].producer, next = node;
    while (next >= 0 && !adds_over(p, &g->node[node = next], axis)) {
        next = -1;
        for (int i = 0; i < g->node[node].nin && next < 0; i++) {
            int t = g->node[node].in[i], v = p->env[t];
            if (v >= 0 && p->val[v].L.type[axis] == TY_P) next = g->t[t].producer;
        }
    }
    return node;
}
/* The letters of the sum that is pending over `axis`: "F", "H*Dh". */
static const char *pending_symbol(const Program *p, const Val *v, int axis) {
    const Graph *g = p->graph;
    int node = pending_since(p, v->tensor, axis);
    if (node < 0) return "its terms";
    const GNode *n = &g->node[node];
    const GTensor *x = &g->t[n->in[0]];
    bool kv = false;
    Str s = str_new(p->arena);
    for (int i = 0; i < n->rule.nl[0]; i++) { /* letters that the output lacks */
        if (rule_find_out(&n->rule, n->rule.in[0][i]) >= 0) continue;
        bool heads = x->role[i] == DIM_QUERY_HEADS && kv; /* KV heads times those of each: all */
        if (heads) s.s[s.n - 1] = 'H';
        else str_addf(&s, "%s%s", s.n ? "*" : "", x->sym[i]);
        kv = !heads && x->role[i] == DIM_KV_HEADS;
    }
    return s.n ? s.s : "its terms";
}
const char *why_output(const Program *p, int module, int v, const Layout *want) {
    const Val *x = &p->val[v];
    int pending = -1;
    bool kept = false;
    for (int a = 0; a < p->mesh->naxes; a++)
        if (x->L.type[a] == TY_P && want->type[a] != TY_P)
            pending = pending < 0 ? a : pending, kept |= want->type[a] == TY_V;
    if (pending >= 0)
        return arena_printf(p->arena, "row parallel: the sum over %s is pending%s",
                            pending_symbol(p, x, pending),
                            kept ? ", each rank keeps its part" : "");
    const char *recut = recut_why(p, v, want);
    return recut ? recut
                 : arena_printf(p->arena, "declared at the output of %s",
                                p->graph->module[module].path);
}

/* A parameter that the data-parallel axes cut at rest only: gathered, because nobody computes with
 * a part of it. */
static const char *at_rest_why(const Program *p, const GNode *n, int tensor) {
    const Mesh *m = p->mesh;
    const GTensor *t = &p->graph->t[tensor];
    AxisList axes = {0};
    for (int x = 0; x < m->naxes; x++)
        if (layout_where(&p->assign->rest[tensor], x) >= 0 &&
            layout_where(&p->assign->compute[tensor], x) < 0 && axes.n < MESH_MAX_AXES)
            axes.a[axes.n++] = (uint8_t)x;
    if (!axes.n) return NULL;
    bool weight = text_before(t->name, ".weight");
    return arena_printf(p->arena, "FSDP: the %s is cut at rest over %s, %s needs all of it",
                        weight ? "weight" : "parameter", mesh_axes_text(m, p->arena, &axes, true),
                        weight && !strcmp(n->label, "linear") ? "the matmul" : n->label);
}
/* Context parallelism by all-gather is what a cut of the data's own sequence means; what a style
 * has cut besides (sequence parallelism) is not gathered by that. Are all cuts of dim d the
 * data's? */
static bool data_cuts(const Program *p, const Layout *L, int d) {
    for (int k = 0; k < L->n[d]; k++)
        if (!(p->assign->tokens >> L->e[d][k].axis & 1) && p->mesh->axis[L->e[d][k].axis].size > 1)
            return false;
    return true;
}
bool why_tokens_of_rows(const Program *p, const GNode *n, int v, const Layout *want) {
    const GTensor *t = &p->graph->t[p->val[v].tensor];
    bool rows = false, any = false;
    for (int i = 0; i <= RULE_MAX_IN; i++) rows |= n->rule.listed[i] > 0;
    if (!rows || t->listed || t->kind != KIND_ACTIVATION) return false;
    for (int x = 0; x < p->mesh->naxes; x++) {
        int d = layout_where(want, x), type = p->val[v].L.type[x];
        if (want->type[x] == type && layout_where(&p->val[v].L, x) == d) continue;
        if (d < 0 || (type != TY_I && type != TY_R)) return false;
        any |= t->role[d] == DIM_BATCH || t->role[d] == DIM_SEQUENCE;
    }
    return any;
}
const char *why_operand(const Program *p, const GNode *n, int v, const Layout *want, bool *asked) {
    const GTensor *t = &p->graph->t[p->val[v].tensor];
    const Layout *L = &p->val[v].L;
    *asked = t->kind == KIND_PARAM;
    const char *rest = t->kind == KIND_PARAM ? at_rest_why(p, n, p->val[v].tensor) : NULL;
    if (rest) return rest;
    if (why_tokens_of_rows(p, n, v, want)) {
        *asked = true;
        return "only the tokens of the rank's rows are read";
    }
    for (int d = 0; d < t->nd; d++)
        for (int k = 0; k < L->n[d]; k++) {
            int x = L->e[d][k].axis;
            if (n->hop && x == context_ring(p->mesh, p->assign->plan) &&
                layout_where(want, x) == d) {
                *asked = true;
                return arena_printf(p->arena, "ring: the block of %d rank%s before comes by",
                                    n->hop, n->hop > 1 ? "s" : "");
            }
            if (layout_where(want, x) == d) continue;
            if (t->role[d] == DIM_SEQUENCE && (t->kind == KIND_ACTIVATION || n->op->mixes) &&
                layout_where(&p->val[p->env[n->in[0]]].L, x) >= 0) {
                *asked = data_cuts(p, L, d);
                return "every query needs all earlier keys";
            }
            return arena_printf(p->arena, "%s needs all of %s", n->label, t->sym[d]);
        }
    for (int x = 0; x < p->mesh->naxes; x++) {
        if (L->type[x] == TY_P && want->type[x] != TY_P)
            return arena_printf(p->arena, "%s needs the sum over %s, it is not linear in its terms",
                                n->label, pending_symbol(p, &p->val[v], x));
        if (L->type[x] == TY_M && want->type[x] != TY_M)
            return arena_printf(p->arena, "%s needs the largest over all of %s", n->label,
                                pending_symbol(p, &p->val[v], x));
        if (L->type[x] == TY_I && want->type[x] == TY_P && p->mesh->axis[x].size > 1)
            return arena_printf(
                p->arena,
                "added before the sum over %s: all of it on the first rank, zeros on the others",
                p->mesh->axis[x].name);
        if (L->type[x] == TY_I && want->type[x] == TY_R)
            return arena_printf(p->arena, "from here on its uses differ over %s",
                                p->mesh->axis[x].name);
    }
    return arena_printf(p->arena, "%s wants it so", n->label);
}
