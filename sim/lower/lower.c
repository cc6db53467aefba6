/* Lowering: the nodes of the graph in their order, each with a strategy per mesh axis (strategy.c),
 * its operands brought to the layouts that it needs (moves.c), its module's style at the boundaries
 * (boundary.c). No module and no style is known by name here. Refuses to derive the backward
 * program (adjoint.c), and to say whether what it made is right (verify.c). */
#include "lower/boundary.h"
#include "assign/context.h"
#include "lower/context.h"
#include "lower/dispatch.h"
#include "lower/mislabel.h"
#include "lower/strategy.h"
#include "lower/why.h"
#include "ops/op.h"
#include <string.h>

/* ---- nodes ---- */
/* The line with an output that sums, for a module whose line leaves a pending sum. */
static const char *summed_line(const Lower *l, int module) {
    Arena *a = l->p->arena;
    const ModuleUse *u = module >= 0 ? &l->a->use[module] : NULL;
    if (!u || !u->style || u->line < 0)
        return "let the module reduce its output (`output: replicate` or `shard(1)`)";
    const PlanLine *line = &l->a->plan->lines[u->line];
    const char *parts = "or `shard(1)` for a part of the sequence on each rank";
    if (mislabel_short_line(line))
        return arena_printf(a, "write `%s: {style: %s, output: replicate}`, %s", line->pattern,
                            line->style.name, parts);
    return arena_printf(a,
                        line->style.output.set ? "let `output` say `replicate` in the line `%s`, %s"
                                               : "add `output: replicate` to the line `%s`, %s",
                        line->pattern, parts);
}
static void check_pending(Lower *l, const GNode *n, int v, const Layout *want) {
    const Program *p = l->p;
    const Val *x = &p->val[v];
    if (l->declared || !l->declared_p[x->tensor]) return;
    for (int a = 0; a < p->mesh->naxes; a++)
        if (p->mesh->axis[a].size > 1 && x->L.type[a] == TY_P && want->type[a] != TY_P) {
            int m = p->graph->t[x->tensor].module;
            diag_error(l->d, "E0403", m >= 0 ? l->a->use[m].loc : diag_nowhere, summed_line(l, m),
                       "%s is left as a partial sum over %s, and %s is not linear in it",
                       p->graph->t[x->tensor].name, p->mesh->axis[a].name, n->label);
            l->declared_p[x->tensor] = false; /* once is enough */
            return;
        }
}
static void node_names(const Lower *l, const GNode *n, const int *in, const Layout *L,
                       const char **names) {
    for (int x = 0; x < l->p->mesh->naxes; x++) {
        if (layout_where(L, x) < 0) continue;
        for (int params = 1; params >= 0 && !names[x]; params--)
            for (int i = 0; i < n->nin && !names[x]; i++)
                if ((l->p->val[in[i]].kind == KIND_PARAM) == params &&
                    layout_where(&l->p->val[in[i]].L, x) >= 0)
                    names[x] = l->p->val[in[i]].group[x];
    }
}
/* Is every sum that is reduced on the way to `want` one that the declared output `goal` wants
 * reduced too? */
static bool reduces(const Program *p, const Val *v, const Layout *want, const Layout *goal) {
    bool any = false;
    for (int x = 0; x < p->mesh->naxes; x++) {
        if (v->L.type[x] != TY_P || want->type[x] == TY_P) continue;
        if (goal->type[x] == TY_P) return false;
        any = true;
    }
    return any;
}
/* Each rank reads other tokens of a whole operand: a slice, which its rows ask for. That its
 * gradient is then a sum over those ranks is another matter, which a line has to ask for. */
static int reach_tokens(Lower *l, int in, const Layout *want, const Reason *why) {
    Layout first = l->p->val[in].L;
    for (int x = 0; x < l->p->mesh->naxes; x++)
        if (layout_where(want, x) >= 0 && first.type[x] == TY_I) first.type[x] = TY_R;
    Reason sum = *why;
    sum.asked = false;
    if (l->p->val[in].diff) in = moves_to(l, in, &first, &sum);
    return moves_to(l, in, want, why);
}
/* What the plan calls the axes over which an operand is to be cut: the name under which a parameter
 * of the node has the same letter cut, so that rows go out over the `ep` over which they come back.
 */
static void operand_names(const Lower *l, const GNode *n, const GTensor *t, const Layout *want,
                          const char **names) {
    for (int i = 0; i < n->nin; i++) {
        const GTensor *w = &l->p->graph->t[n->in[i]];
        const Val *v = w->kind == KIND_PARAM ? &l->p->val[l->p->env[n->in[i]]] : NULL;
        for (int x = 0; v && x < l->p->mesh->naxes; x++) {
            int cut = layout_where(want, x), there = layout_where(&v->L, x);
            bool same = cut >= 0 && cut < t->nd && there >= 0 && there < w->nd;
            if (same && t->letter[cut] == w->letter[there] && !names[x]) names[x] = v->group[x];
        }
    }
}
/* Is anything cut that was not, or the other way round? Else all stays where it is. */
static bool cuts_otherwise(const Program *p, const Layout *from, const Layout *to) {
    for (int x = 0; x < p->mesh->naxes; x++)
        if (layout_where(from, x) != layout_where(to, x) || from->type[x] == TY_P) return true;
    return false;
}
/* Did a weight of experts make these rows: are they past the first of them? */
static bool past_weight(const Graph *g, const GTensor *t) {
    while (t && t->listed && t->producer >= 0) {
        const GNode *n = &g->node[t->producer];
        t = NULL;
        for (int i = 0; i < n->nin; i++) {
            const GTensor *in = &g->t[n->in[i]];
            if (in->kind == KIND_PARAM) return true;
            if (!t && in->listed && !graph_is_list(in)) t = in;
        }
    }
    return false;
}
/* Are the rows of experts themselves cut in another place, or moved to other ranks between one
 * weight of an expert and the next? No dispatch does that: rows come before the first weight and go
 * home after the last, and a line cuts all weights alike, or it is missing. */
static bool rows_recut(const Program *p, const GNode *n, const GTensor *t, const Layout *from,
                       const Layout *to) {
    bool recut = false,
         between = n->rule.listed[RULE_MAX_IN] && t->listed && past_weight(p->graph, t);
    for (int x = 0; t->listed && x < p->mesh->naxes; x++) {
        int was = layout_where(from, x), is = layout_where(to, x);
        recut |= was != is &&
                 (between || (was >= t->listed && was < t->nd) || (is >= t->listed && is < t->nd));
    }
    return recut;
}
/* What is asked for by what the values are, whatever a style says: rows and their lists, what a
 * loss is made of. */
static void reach_reason(const Lower *l, const GNode *n, const GTensor *t, bool moved, Phase pass,
                         Reason *r) {
    const ModuleUse *u = n->module >= 0 ? &l->a->use[n->module] : NULL;
    /* rows change ranks because a style puts experts there; that they stay, and are used by parts,
     * is the style's too of what its own module makes: routing weights come from outside */
    if (t->listed && u && u->style && (moved || t->module == n->module)) {
        r->asked = true;
        r->text = "tokens go to the ranks of their experts";
        r->back = "gradients go back to the ranks of their tokens";
    }
    if (graph_is_list(t)) r->asked = true; /* goes where its rows are */
    if (n->op->rows && t->listed) {        /* a list is made of a list */
        r->asked = true;
        r->text = "an expert has one capacity for all tokens: who comes first is found among all";
    }
    if (u) r->loc = u->loc;
    if (graph_counts_rows(l->p->graph, t)) { /* no module's: the plan's loss is of all tokens */
        r->asked = true;
        r->text = "the load balance is that of all tokens: the counts of all are added up";
        r->loc = l->a->plan->moe.aux_loc;
    }
    /* what a loss is the sum of is complete when the loss is */
    if (!t->nd && pass == PHASE_LOSS && t->kind == KIND_ACTIVATION) {
        r->asked = r->output = true;
        r->text = "a term of the loss is the sum over all ranks";
    }
}
/* Taken at its word, a plan has a weight used as its lines lay it out: nobody takes a part of a
 * whole one, unless a line says whose gradients are added up then. Such cuts are left out of what
 * is asked for; the rest of the way is, as before. */
static Layout as_laid_out(const Lower *l, int in, const Layout *want) {
    const Val *v = &l->p->val[in];
    Layout laid = *want;
    for (int x = 0; x < l->p->mesh->naxes; x++)
        if (layout_where(&v->L, x) < 0 && layout_where(want, x) >= 0 &&
            l->p->mesh->axis[x].size > 1 && !(l->a->summed[v->tensor] >> x & 1))
            layout_set_type(&laid, x, v->L.type[x]);
    return laid;
}
/* Brings one operand of a node to where the strategies want it. */
static int reach(Lower *l, const GNode *n, int in, const Layout *want, const Layout *goal,
                 Phase pass) {
    Program *p = l->p;
    const GTensor *t = &p->graph->t[p->val[in].tensor];
    const ModuleUse *u = n->module >= 0 ? &l->a->use[n->module] : NULL;
    bool param = t->kind == KIND_PARAM, asked = false;
    bool dtensor = l->a->dtensor_op && l->a->dtensor_op[n->id] && !param;
    if (!dtensor) check_pending(l, n, in, want);
    Reason r = {.module = n->module,
                .scope = u && u->per_module ? n->module : -1,
                .pass = param ? PHASE_PARAMETERS : pass};
    r.text = why_operand(p, n, in, want, &asked);
    if (goal && reduces(p, &p->val[in], want,
                        goal)) { /* the style's output asks for it, only earlier: before the bias */
        r.text = why_output(p, n->module, in, want);
        asked = true;
    }
    /* between two ops of one module the module's style is what asks, if it owns what happens there:
     * loss_parallel the three sums of its loss; a style that only prepares inputs, that cuts
     * plain tensors or that says nothing of the result asks for nothing */
    bool inside = u && u->style && u->style->sums && boundary_result(u->style) &&
                  t->kind == KIND_ACTIVATION && t->module == n->module;
    bool recut = rows_recut(p, n, t, &p->val[in].L, want);
    r.asked = asked || (inside && !recut) || dtensor; /* PyTorch's op brings DTensors together */
    r.by_op = dtensor && l->declared;
    if (r.by_op) r.scope = n->module; /* each op for itself */
    if (!recut) reach_reason(l, n, t, cuts_otherwise(p, &p->val[in].L, want), pass, &r);
    if (!param && why_tokens_of_rows(p, n, in, want)) return reach_tokens(l, in, want, &r);
    const char *names[MESH_MAX_AXES] = {0};
    if (!param) {
        operand_names(l, n, t, want, names);
        r.names = names;
        return moves_to(l, in, want, &r);
    }
    in = moves_undeclared(l, in, want, &r);
    if (!strcmp(
            l->a->plan->data_parallel.grad_order,
            "tp_first")) { /* whole first, then R: the sums over R's axes come first in backward */
        Layout whole = *want;
        /* copies of shards add up what a shard is left with, not the whole */
        uint32_t copies = l->a->shard.n ? mesh_axes_set(&l->a->data) : 0;
        for (int x = 0; x < p->mesh->naxes; x++)
            if (whole.type[x] == TY_R && p->val[in].L.type[x] == TY_I && !(copies >> x & 1))
                whole.type[x] = TY_I; /* what is cut at rest is gathered to R */
        in = moves_to(l, in, &whole, &r);
    }
    if (l->declared && !(l->a->dtensor_op && l->a->dtensor_op[n->id])) {
        Layout laid = as_laid_out(l, in, want);
        in = moves_to(l, in, &laid, &r);
        r.asked = false;
    }
    return moves_to(l, in, want, &r);
}
/* Rows go back to the ranks of their tokens: what cuts those cuts them again. */
static void go_home(Lower *l, const GNode *n, Phase pass) {
    Program *p = l->p;
    if (!n->home) return;
    const Layout *home = &p->val[p->first[n->home - 1]].L, *now = &p->val[p->env[n->out]].L;
    const GTensor *t = &p->graph->t[n->out];
    Layout want = *now;
    for (int x = 0; x < p->mesh->naxes; x++)
        if (layout_where(home, x) >= 0) layout_set_type(&want, x, TY_I);
    for (int d = 0; d < t->listed; d++) {
        if (!home->n[d]) continue;
        for (int k = 0; k < now->n[d]; k++) /* what cuts the rows there and no tokens */
            if (layout_where(home, now->e[d][k].axis) < 0)
                layout_set_type(&want, now->e[d][k].axis, TY_I);
        want.n[d] = home->n[d];
        memcpy(want.e[d], home->e[d], sizeof want.e[d]);
        for (int k = 0; k < home->n[d]; k++)
            if (!home->e[d][k].ghost) want.type[home->e[d][k].axis] = TY_V;
    }
    Reason r = {.text = "the results go back to the ranks of their tokens",
                .back = "gradients go to the ranks of their experts",
                .loc = n->module >= 0 ? l->a->use[n->module].loc : diag_nowhere,
                .asked = true,
                .module = n->module,
                .scope = -1,
                .pass = pass};
    int back = moves_to(l, p->env[n->out], &want, &r);
    home = &p->val[p->first[n->home - 1]].L;
    for (int x = 0; back != p->env[n->out] && x < p->mesh->naxes; x++)
        if (layout_where(home, x) >= 0) /* cut by dp again, not by ep */
            p->val[back].group[x] = p->val[p->first[n->home - 1]].group[x];
    p->env[n->out] = back;
}
/* A parameter that two stages have: each reads its own copy, and from here on its uses differ. */
static int own_copy(Lower *l, int t, Layout *want) {
    const Stages *s = l->a->stages;
    Program *p = l->p;
    int v = l->base[t];
    *want = p->val[v].L;
    if (want->type[s->axis] == TY_AT) return p->env[t];
    Reason r = {.text = s->ways == 2 ? "each way of the pipeline has a copy of the stage"
                                     : "two stages have a copy, each uses its own",
                .loc = l->a->plan->pipeline.loc,
                .asked = true,
                .module = -1,
                .scope = -1,
                .pass = PHASE_PARAMETERS};
    want->type[s->axis] = TY_R;
    int way = l->way;
    l->way = 0; /* it is one value for both: there their gradients meet */
    v = moves_to(l, v, want, &r);
    l->way = way;
    return v;
}
/* What another stage of the pipeline made, or a parameter that it has, is handed on before anything
 * is asked of it here: whoever reads it from now on is here or further on. */
static void fetch(Lower *l, const GNode *n, Phase pass) {
    Program *p = l->p;
    const Stages *s = l->a->stages;
    if (!s) return;
    l->stage = s->of_node[n->id] + l->way * s->n;
    for (int i = 0; i < n->nin; i++) {
        const GTensor *t = &p->graph->t[n->in[i]];
        bool param = t->kind == KIND_PARAM;
        int from = p->env[n->in[i]];
        Layout want = p->val[from].L;
        if (want.type[s->axis] == TY_AT && want.at[s->axis] == s->home[l->stage]) continue;
        if (param) from = own_copy(l, n->in[i], &want);
        bool two = want.type[s->axis] != TY_AT;
        layout_place(&want, s->axis, s->home[l->stage]);
        const char *both = two ? "the copy that is here"
                               : "a parameter of two stages has one home: it is sent once a step";
        const int here = l->stage % s->n, there = p->val[from].stage % s->n;
        Reason r = {
            .text = param ? both
                          : arena_printf(p->arena,
                                         "stage %d of the pipeline goes on where stage %d ends",
                                         here, there),
            .back =
                param ? "the gradient of a copy goes home, to be added there"
                      : arena_printf(p->arena, "stage %d gets the gradient of what it sent", there),
            .loc = l->a->plan->pipeline.loc,
            .asked = true,
            .module = -1,
            .scope = -1,
            .pass = param ? PHASE_PARAMETERS : pass};
        p->env[n->in[i]] = moves_to(l, from, &want, &r);
    }
}
static Phase phase_of(const GNode *n) { return graph_node_of_loss(n) ? PHASE_LOSS : PHASE_FORWARD; }
/* Brings operand i to where the node reads it. What comes by on a ring lies first as the part of
 * the own block wants it, and sets out from there: the same copy, with the same sum of gradients.
 */
static int reach_operand(Lower *l, const GNode *n, const Strategies *S, int i, int in,
                         const Layout *goal) {
    Phase pass = phase_of(n);
    int from = l->p->graph->t[n->in[i]].producer;
    bool there = from >= 0 && l->p->graph->node[from].block; /* it is made of what has come by */
    if (n->hop && !n->block && !there) {
        GNode own = *n;
        own.hop = 0;
        Layout lies = strategy_operand(l, &own, S, i, &l->p->val[in]);
        in = reach(l, &own, in, &lies, goal, pass);
    }
    Layout want = strategy_operand(l, n, S, i, &l->p->val[in]);
    return reach(l, n, in, &want, goal, pass);
}
static void lower_node(Lower *l, const GNode *n) {
    Program *p = l->p;
    int in[RULE_MAX_IN];
    Strategies S;
    Phase pass = phase_of(n);
    fetch(l, n, pass);
    for (int i = 0; i < n->nin; i++)
        in[i] = p->graph->t[n->in[i]].kind == KIND_PARAM ? p->env[n->in[i]]
                                                         : boundary_read(l, n->module, n->in[i]);
    context_latent(l, n, in);
    context_enter(l, n, in);
    Layout declared;
    const Layout *goal = boundary_goal(l, n, in, &declared) ? &declared : NULL;
    strategy_find(l, n, in, goal, &S);
    int moved[RULE_MAX_IN];
    for (int i = 0; i < n->nin; i++) moved[i] = reach_operand(l, n, &S, i, in[i], goal);
    bool diff = false;
    for (int i = 0; i < n->nin; i++) diff |= p->val[moved[i]].diff && !(n->op->nodiff >> i & 1);
    Layout L = strategy_output(l, n, &S, diff);
    const char *names[MESH_MAX_AXES] = {0};
    node_names(l, n, moved, &L, names);
    Val *out = moves_value(p, n->out, &L);
    out->diff = diff;
    out->stage = l->stage;
    memcpy(out->group, names, sizeof names);
    Step *s = moves_step(p, ST_OP, pass);
    s->node = n->id;
    s->nin = n->nin;
    s->stage = l->stage;
    memcpy(s->in, moved, sizeof moved);
    s->out = out->id;
    if (n->rule.listed[RULE_MAX_IN]) out->list = n->op->rows ? out->id : program_list(p, s);
    s->module = n->module;
    s->why = n->label;
    if (n->module >= 0) s->loc = l->a->use[n->module].loc;
    out->step = s->id;
    p->env[n->out] = p->first[n->out] = out->id;
    moves_begin(l, out->id);
    go_home(l, n, pass);
    if (n->home) dispatch_check(l, boundary_enters(l, n->module), p->first[n->home - 1]);
    context_leave(l, n, pass);
    for (int m = n->module; m >= 0; m = p->graph->module[m].parent) /* inner declarations first */
        if (p->graph->module[m].output == n->out ||
            (n->again && p->graph->module[m].output == n->again - 1))
            boundary_leave(l, m, n->out);
}

static void lower_input(Lower *l, int t) {
    Program *p = l->p;
    const GTensor *x = &p->graph->t[t];
    const Stages *st = l->a->stages;
    Val *v = moves_value(p, t, &l->a->rest[t]);
    memcpy(v->group, l->a->group[t], sizeof v->group);
    if (st) v->stage = st->of_source[t] + l->way * st->n;
    if (st && l->way) layout_place(&v->L, st->axis, st->home[v->stage]);
    p->env[t] = p->first[t] = v->id;
    moves_begin(l, v->id);
    /* holds one layout and means another: a contiguous cut of packed blocks, a bias: local */
    if (l->a->claimed[t]) {
        Reason r = {.text = "the plan takes it for what it is not",
                    .module = x->module,
                    .scope = -1,
                    .pass = PHASE_PARAMETERS};
        if (l->a->line[t] >= 0) r.loc = l->a->plan->lines[l->a->line[t]].loc;
        p->env[t] = moves_claim(l, v->id, &l->a->compute[t], &r);
    }
    l->base[t] = p->env[t];
}
/* A loss over a model's output that is left pending is a part on every rank, and no line asks for
 * the sum of those: it is told, or under trust: declared not made. Silent stay the sums over cuts
 * of tokens (data parallelism) and of what the loss is taken of (its own contraction), and those of
 * a DTensor, which knows that it is pending. */
static void finish_pending_output(Lower *l) {
    Program *p = l->p;
    const Graph *g = p->graph;
    int loss = g->t[g->loss].module, x = loss >= 0 ? g->module[loss].input[0] : -1;
    if (x < 0 || p->env[x] < 0 || (l->a->dtensor && l->a->dtensor[x])) return;
    Layout want = p->val[p->env[g->loss]].L;
    for (int a = 0; a < p->mesh->naxes; a++)
        if (want.type[a] == TY_P && p->val[p->env[x]].L.type[a] == TY_P) want.type[a] = TY_I;
    Reason r = {.text = "the model's output is a partial sum, so is its loss",
                .module = -1,
                .scope = -1,
                .pass = PHASE_LOSS};
    p->env[g->loss] = moves_to(l, p->env[g->loss], &want, &r);
}
/* What leaves the program must be complete: the loss ends as I, a forward output is reduced unless
 * declared otherwise. */
static void finish(Lower *l) {
    Program *p = l->p;
    const Graph *g = p->graph;
    int t = g->loss >= 0 ? g->loss : g->output;
    if (t < 0) return;
    if (g->loss >= 0) finish_pending_output(l);
    Layout want = p->val[p->env[t]].L;
    for (int x = 0; x < p->mesh->naxes; x++) {
        if (want.type[x] == TY_P || want.type[x] == TY_M ||
            (g->loss >= 0 && want.type[x] == TY_R)) {
            want.type[x] = TY_I;
        }
    }
    if (g->loss < 0 && l->declared_p[t]) return;
    Reason r = {.text = g->loss >= 0 ? "the loss is the sum over all ranks"
                                     : "the output is a partial sum",
                .asked = g->loss >= 0,
                .output = g->loss >= 0,
                .module = -1,
                .scope = -1,
                .pass = g->loss >= 0 ? PHASE_LOSS : PHASE_FORWARD};
    p->env[t] = moves_to(l, p->env[t], &want, &r);
    if (g->loss >= 0) p->loss = p->env[t];
}

static void open_lower(Lower *l, Program *p, const Assign *a) {
    const Graph *g = p->graph;
    *l = (Lower){.p = p,
                 .a = a,
                 .arena = p->arena,
                 .d = a->d,
                 .declared = a->plan->trust == TRUST_DECLARED,
                 .ring = context_ring(a->mesh, a->plan),
                 .backward = a->plan->pass != PASS_FORWARD && g->loss >= 0};
    l->scope = ARENA_ARRAY(p->arena, int, RULE_OPERANDS * g->nm + 1);
    l->declared_p = ARENA_ARRAY(p->arena, bool, g->nt + 1);
    l->base = ARENA_ARRAY(p->arena, int, g->nt + 1);
    for (int i = 0; i < RULE_OPERANDS * g->nm; i++) l->scope[i] = -1;
}
static void lower_nodes(Lower *l) {
    const Graph *g = l->p->graph;
    int nn = g->nn_model ? g->nn_model : g->nn;
    for (int n = 0; n < nn; n++) lower_node(l, &g->node[n]);
    finish(l);
}
/* The same nodes once more, on the second copy of each stage, for the micro-batches that enter at
 * the other end: values of their own but for the parameters. */
static void lower_other_way(Lower *l) {
    Program *p = l->p;
    const Graph *g = p->graph;
    size_t bytes = ((size_t)g->nt + 1) * sizeof *p->env;
    int *env = arena_memdup(p->arena, p->env, bytes),
        *first = arena_memdup(p->arena, p->first, bytes), loss = p->loss;
    l->way = 1;
    for (int i = 0; i < RULE_OPERANDS * g->nm; i++) l->scope[i] = -1;
    memset(l->declared_p, 0, ((size_t)g->nt + 1) * sizeof *l->declared_p);
    for (int t = 0; t < g->nt; t++) {
        if (g->t[t].kind == KIND_INPUT) lower_input(l, t);
        else if (g->t[t].kind == KIND_PARAM) p->env[t] = l->base[t];
    }
    lower_nodes(l);
    p->other.env = p->env, p->other.first = p->first, p->other.loss = p->loss;
    p->other.grad = arena_memdup(p->arena, p->grad, bytes); /* none yet */
    p->env = env, p->first = first, p->loss = loss;
    l->way = 0;
}
Program *lower(Arena *arena, const Assign *a) {
    Program *p = ARENA_NEW(arena, Program);
    const Graph *g = &a->model->g;
    *p = (Program){.arena = arena, .mesh = a->mesh, .graph = g, .assign = a, .loss = -1};
    p->env = ARENA_ARRAY(arena, int, g->nt + 1);
    p->first = ARENA_ARRAY(arena, int, g->nt + 1);
    p->grad = ARENA_ARRAY(arena, int, g->nt + 1);
    Lower l;
    open_lower(&l, p, a);
    for (int t = 0; t < g->nt; t++) p->env[t] = p->first[t] = p->grad[t] = -1;
    for (int t = 0; t < g->nt; t++)
        if (g->t[t].kind != KIND_ACTIVATION) lower_input(&l, t);
    lower_nodes(&l);
    if (a->stages && a->stages->ways == 2) lower_other_way(&l);
    mislabels_report(p, &l.mislabels, l.d);
    p->n_forward = p->ns;
    return p;
}
/* Terms of one sum over everything: over each axis that any of them is pending over, or at unlike
 * places of, all are pending, so that one all-reduce of the whole sum completes it. */
static Layout common_terms(const Lower *l, const GNode *n) {
    const Program *p = l->p;
    Layout all = p->val[p->env[n->in[0]]].L;
    for (int i = 1; i < n->nin; i++) {
        const Layout *one = &p->val[p->env[n->in[i]]].L;
        for (int x = 0; x < p->mesh->naxes; x++)
            if (one->type[x] != all.type[x] || one->at[x] != all.at[x] ||
                one->pair[x].high != all.pair[x].high || one->pair[x].low != all.pair[x].low)
                layout_set_type(&all, x, TY_P);
    }
    return all;
}
/* An element-wise op on what a rank holds at rest: all operands lie where the parameter is updated,
 * or else like the first (flattened cuts included), a scalar is complete, and a sum over everything
 * is pending over whatever cuts the operand. */
static void lower_at_rest(Lower *l, const GNode *n) {
    Program *p = l->p;
    int in[RULE_MAX_IN] = {0};
    bool owned = n->updates && l->a->state;
    const Layout *like = owned ? &l->a->state[n->updates - 1] : &p->val[p->env[n->in[0]]].L;
    Layout first = *like, scalar = layout_whole(p->mesh, 0, TY_I), out = first;
    Reason r = {.text = owned ? "the rank that updates a parameter takes its gradient"
                              : "the norm is over all gradients",
                .asked = true,
                .output = true,
                .module = -1,
                .scope = -1,
                .pass = PHASE_OPTIMIZER};
    if (!n->rule.nl[0] && n->op->lin == LIN_ADD) scalar = common_terms(l, n);
    for (int x = 0; x < p->mesh->naxes && n->rule.nl[0]; x++)
        if (first.type[x] == TY_AT) layout_place(&scalar, x, first.at[x]);
        else if (layout_paired(&first, x)) scalar.pair[x] = first.pair[x];
    for (int i = 0; i < n->nin; i++)
        in[i] = moves_to(l, p->env[n->in[i]], n->rule.nl[i] ? &first : &scalar, &r);
    if (!n->rule.nout) {
        out = scalar;
        for (int x = 0; x < p->mesh->naxes && n->rule.nl[0]; x++)
            if (first.type[x] == TY_V) out.type[x] = TY_P;
    }
    Val *v = moves_value(p, n->out, &out);
    v->diff = false;
    memcpy(v->group, p->val[in[0]].group, sizeof v->group);
    Step *s = moves_step(p, ST_OP, PHASE_OPTIMIZER);
    s->node = n->id;
    s->nin = n->nin;
    memcpy(s->in, in, sizeof in);
    s->out = v->id;
    s->why = n->label;
    v->step = s->id;
    p->env[n->out] = p->first[n->out] = v->id;
}
/* What was updated on some ranks goes to all that have the parameter at rest. */
static void hand_back(Lower *l, int t) {
    Program *p = l->p;
    const Layout *rest = &p->val[p->first[p->graph->t[t].next_of - 1]].L;
    Reason r = {.text = "ZeRO: updated on one rank, needed on all",
                .loc = l->a->plan->data_parallel.loc,
                .asked = true,
                .output = true,
                .module = -1,
                .scope = -1,
                .pass = PHASE_OPTIMIZER};
    p->env[t] = moves_to(l, p->env[t], rest, &r);
}
void lower_optimizer(Program *p) {
    const Graph *g = p->graph;
    if (!g->nn_model) return;
    Lower l;
    open_lower(&l, p, p->assign);
    for (int t = 0; t < g->nt; t++) {
        if (g->t[t].kind == KIND_PARAM) p->env[t] = p->first[t];
        if (g->t[t].grad_of) p->env[t] = p->first[t] = p->grad[g->t[t].grad_of - 1];
    }
    for (int n = g->nn_model; n < g->nn; n++) lower_at_rest(&l, &g->node[n]);
    for (int t = 0; t < g->nt; t++)
        if (g->t[t].next_of && p->env[t] >= 0) hand_back(&l, t);
}
