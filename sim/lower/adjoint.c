/* The backward program, derived: no module name and no style is known here. The adjoint of an op is
 * asked from its rule and linearity, the adjoint of a move f -> t is the move dual(t) -> dual(f),
 * and the cotangents of a copy are summed before that copy's move is undone. */
#include "lower/program.h"
#include "ops/op.h"
#include <string.h>

typedef struct {
    Program *p;
    int *head, *next; /* per Val: list of its cotangents, in order of arrival */
    int cap;
    int *again; /* per forward Val: the Val that holds it anew in the backward pass, or -1 */
    int *part;  /* per forward Val: what is kept of it over a smaller group, or -1 */
    const Reshard *reshard; /* which gathered parameters are not kept */
    const int *block;       /* per tensor: the block that it belongs to, -1: none */
    bool regather;          /* nor gathered activations */
    const int *unit; /* per tensor: the layer whose parameters are gathered together; NULL: each by
                        itself */
    bool whole_unit; /* the others of a unit are being gathered */
    bool rehop;      /* what came by on a ring is not kept: it comes back the way it went */
    bool onward; /* `rfa`: it comes by again in the forward direction, and gradients go on with it
                  */
    int stage;   /* of the pipeline, whose backward is being made */
} Adj;

static Val *cot_val(Adj *a, const Val *of) {
    Val v = {.root = -1,
             .tensor = of->tensor,
             .cot = true,
             .kind = KIND_ACTIVATION,
             .L = layout_dual(&of->L),
             .stage = of->stage,
             .list = of->list};
    memcpy(v.group, of->group, sizeof v.group);
    return program_add_val(a->p, &v);
}
static Step *step(Adj *a, StepKind k, Phase pass, int out) {
    Step blank = step_blank(k, pass);
    return program_add_step(a->p, &blank, out);
}
static void give(Adj *a, int val, int cot) {
    a->next[cot] = -1;
    int *at = &a->head[val];
    while (*at >= 0) at = &a->next[*at];
    *at = cot;
}
static Phase pass_of(const Val *v, Phase pass) {
    return v->kind == KIND_PARAM ? PHASE_GRADIENTS : pass;
}
/* The sum of a value's cotangents, or -1. Uses are listed so that the reference can sum the same
 * ones. */
static int total(Adj *a, int val, Phase pass) {
    Program *p = a->p;
    int c = a->head[val], n = 0, parts = 0;
    if (c < 0 || a->next[c] < 0) return c;
    for (int i = c; i >= 0; i = a->next[i]) n++, parts += p->val[i].n_parts;
    Part *list = ARENA_ARRAY(p->arena, Part, parts);
    int acc = -1, k = 0;
    for (int i = c; i >= 0; i = a->next[i]) { /* two terms a step, in order of arrival */
        memcpy(list + k, p->val[i].parts, sizeof(Part) * (size_t)p->val[i].n_parts);
        k += p->val[i].n_parts;
        if (acc < 0) {
            acc = i;
            continue;
        }
        int o = cot_val(a, &p->val[val])->id;
        Step *s = step(a, ST_SUM, pass_of(&p->val[val], pass), o);
        s->stage = p->val[val].stage;
        s->nin = 2;
        s->in[0] = acc;
        s->in[1] = i;
        s->why = "the value is used more than once: its gradient is the sum over the uses";
        p->val[o].parts = arena_memdup(p->arena, list, sizeof(Part) * (size_t)k);
        p->val[o].n_parts = k;
        acc = o;
    }
    a->head[val] = acc;
    a->next[acc] = -1;
    return acc;
}

/* ---- values that are not kept: made again from the nearest that is ---- */
static bool gathers(const Program *p, const Step *s) {
    return s->kind == ST_MOVE && s->move.kind == MOVE_ALL_GATHER &&
           mesh_size(p->mesh, &s->move.axes) > 1;
}
/* The copy of v one hop further round the ring, of the forward pass; -1: it went no further. */
static int next_hop(const Program *p, int v) {
    for (int i = p->val[v].step + 1; i < p->n_forward; i++)
        if (p->step[i].kind == ST_MOVE && p->step[i].move.kind == MOVE_SHIFT &&
            p->step[i].in[0] == v)
            return p->step[i].out;
    return -1;
}
static bool is_hop(const Step *s) { return s->kind == ST_MOVE && s->move.kind == MOVE_SHIFT; }
/* Is the value used by a node outside the layer, or the stage, that makes it? Such values stay. */
static bool leaves(const Program *p, int tensor, Recompute what) {
    const Graph *g = p->graph;
    const Stages *s = p->assign->stages;
    int from = g->t[tensor].producer, nn = g->nn_model ? g->nn_model : g->nn;
    if (tensor == g->output || tensor == g->loss) return true;
    for (int n = 0; n < nn; n++)
        for (int i = 0; i < g->node[n].nin; i++)
            if (g->node[n].in[i] == tensor &&
                (what == RECOMPUTE_STAGE ? s->of_node[n] != s->of_node[from]
                                         : g->node[n].layer != g->node[from].layer))
                return true;
    return false;
}
/* What is computed again where the value is made: nothing, what is in its block, or all of its
 * stage. */
static Recompute again_of(const Program *p, const Step *s, int node) {
    const Stages *stages = p->assign->stages;
    Recompute what = stages ? stages->again[s->stage % stages->n] : p->assign->plan->recompute;
    bool outside = node < 0 || (what == RECOMPUTE_BLOCK && p->graph->node[node].layer < 0);
    return outside ? RECOMPUTE_NONE : what;
}
static bool dropped(const Adj *a, int v) {
    const Program *p = a->p;
    const Val *x = &p->val[v];
    if (x->step < 0) return false;
    const Step *s = &p->step[x->step];
    if (x->list == v) return false; /* a list is small, and what rows there are must not change */
    if (s->packs) return false;     /* that is what it is for */
    /* what another stage sent stays: it would have to be sent again, while that stage is elsewhere
     */
    if (s->kind == ST_MOVE && s->move.kind == MOVE_SEND) return false;
    if (is_hop(s) && a->onward) return true;
    if (is_hop(s) && a->rehop) return next_hop(p, v) >= 0; /* the last is there */
    /* what is made of it goes with it: keys and values of a latent too */
    const GNode *made = s->kind == ST_OP ? &p->graph->node[s->node] : NULL;
    if (made && made->block && made->hop && (a->onward || a->rehop)) return true;
    if (s->kind == ST_MOVE && dropped(a, s->in[0])) return true;
    if (x->kind == KIND_PARAM)
        return (a->block[x->tensor] < 0 ? a->reshard->rest : a->reshard->blocks) && gathers(p, s);
    if (gathers(p, s) && (a->regather || s->by_op)) return true; /* an op keeps what it was given */
    int node = p->graph->t[x->tensor].producer;
    Recompute what = again_of(p, s, node);
    if (!what) return false;
    return !leaves(p, x->tensor, what) || (s->kind != ST_OP && gathers(p, s));
}
static int make_again(Adj *a, int v);
/* A unit is gathered whole, also those of its parameters (a bias, the table of an embedding) that
 * no gradient reads: FSDP's one all-gather knows no others. Each stage is a module with units of
 * its own, whatever else its rank has. */
static void unit_again(Adj *a, const Step *fwd) {
    const Program *p = a->p;
    if (!a->unit || a->whole_unit || p->val[fwd->out].kind != KIND_PARAM || !gathers(p, fwd))
        return;
    int unit = a->unit[p->val[fwd->out].tensor];
    a->whole_unit = true;
    for (int i = 0; i < p->n_forward; i++) {
        const Step *s = &p->step[i];
        if (s->stage == a->stage && gathers(p, s) && p->val[s->out].kind == KIND_PARAM &&
            a->unit[p->val[s->out].tensor] == unit &&
            mesh_same_axes(&fwd->move.axes, &s->move.axes))
            make_again(a, s->out);
    }
    a->whole_unit = false;
}
/* A copy that came by on a ring, from the one that came after it. */
static int hop_back(Adj *a, int v) {
    Program *p = a->p;
    int from = make_again(a, next_hop(p, v)), made = program_add_val(p, &p->val[v])->id;
    Step fwd = p->step[p->val[v].step];
    a->again[v] = made;
    Step *s = program_add_step(p, &fwd, made);
    s->pass = PHASE_BACKWARD;
    s->recompute = true;
    s->in[0] = from;
    s->move.from = p->val[from].L;
    s->why = "ring: not kept after the forward pass, goes back the way it came";
    return made;
}
/* Two stages on one rank may share what is made once forward; backward the one that comes first
 * makes it. */
static int again_stage(const Adj *a, int made) {
    const Stages *s = a->p->assign->stages;
    const Val *v = &a->p->val[made];
    bool here = s && v->L.type[s->axis] == TY_AT && v->L.at[s->axis] == s->home[a->stage] &&
                a->stage > v->stage && stages_way_of(s, a->stage) == stages_way_of(s, v->stage);
    return here ? a->stage : v->stage;
}
/* Gathers from what a smaller group kept, not from what lies at rest. */
static void from_part(const Adj *a, Step *gather, int part) {
    const Program *p = a->p;
    const Step *cut = &p->step[p->val[part].step];
    gather->in[0] = part;
    gather->move = (Move){.from = cut->move.to, .to = cut->move.from, .axes = cut->move.axes};
    gather->move.kind = move_kind(&cut->move.to, &cut->move.from, cut->move.axes.a[0]);
    gather->group = NULL;
}
static int make_again(Adj *a, int v) {
    Program *p = a->p;
    if (!dropped(a, v)) return v;
    if (a->again[v] >= 0) return a->again[v];
    if (is_hop(&p->step[p->val[v].step]) && !a->onward && a->rehop) return hop_back(a, v);
    Step fwd = p->step[p->val[v].step];
    int in[RULE_MAX_IN + 2] = {0};
    if (a->part[v] >= 0) from_part(a, &fwd, a->part[v]);
    for (int i = 0; i < fwd.nin; i++) in[i] = fwd.in[i] >= 0 ? make_again(a, fwd.in[i]) : -1;
    int made = a->again[v] = program_add_val(p, &p->val[v])->id;
    Step *s = program_add_step(p, &fwd, made);
    s->pass = p->val[made].kind == KIND_PARAM ? PHASE_PARAMETERS : PHASE_BACKWARD;
    s->recompute = true;
    memcpy(s->in, in, sizeof s->in);
    s->stage = p->val[made].stage = again_stage(a, made);
    s->why = arena_printf(p->arena, "not kept after the forward pass, made again: %s",
                          fwd.why ? fwd.why : "");
    unit_again(a, &fwd);
    return made;
}

/* What a move that takes another back does with the gradient. */
static const char *way_back(const Program *p, const Step *s, const Step *fwd) {
    const bool param = p->val[fwd->in[0]].kind == KIND_PARAM;
    if (fwd->back) return fwd->back;
    switch (s->move.kind) {
    case MOVE_REDUCE_SCATTER:
        return param ? "FSDP: the ranks' gradients add up, each keeps the part that it has at rest"
                     : "all ranks used it: their gradients add up";
    case MOVE_ALL_GATHER:
        return fwd->move.kind == MOVE_REDUCE_SCATTER ? "each rank's term needs all of the gradient"
                                                     : "the parts of the gradient are joined";
    case MOVE_ALL_TO_ALL: return "the gradient is cut again as the value was";
    case MOVE_SHIFT: {
        const int n = step_places_behind(fwd);
        return arena_printf(p->arena,
                            "ring: the gradient goes home, to the block of %d rank%s before", n,
                            n > 1 ? "s" : "");
    }
    case MOVE_SLICE: return "all have the gradient, each keeps its part";
    default: return fwd->why ? fwd->why : "";
    }
}
/* Why the step that takes a move back is there. A value that is equal on all ranks and used in
 * another way by each becomes, taken back, a sum; what sends nothing has no better reason than the
 * move itself. */
static const char *why_adjoint(const Program *p, const Step *s, const Step *fwd) {
    const char *axes = mesh_axes_text(p->mesh, p->arena, &s->move.axes, true);
    if (undeclared_sum(p, s))
        return arena_printf(p->arena,
                            "its uses differ over %s: the gradient is the sum over them, and no "
                            "line of the plan makes it",
                            axes);
    const Stages *stages = p->assign->stages;
    bool copies = stages && mesh_axes_set(&s->move.axes) >> stages->axis & 1;
    if (fwd->move.kind == MOVE_ID && move_communicates(s->move.kind) && copies)
        return stages->ways == 2
                   ? "each way of the pipeline has added up its half: the gradient is both together"
                   : "two stages use it, each its own copy: the gradient is the sum of both";
    if (fwd->move.kind == MOVE_ID && move_communicates(s->move.kind))
        return arena_printf(p->arena, "its uses differ over %s: the gradient is the sum over them",
                            axes);
    return arena_printf(p->arena, "adjoint of %s: %s", move_name(fwd->move.kind),
                        way_back(p, s, fwd));
}
static void move_adjoint(Adj *a, const Step *f, int g, Phase pass) {
    Program *p = a->p;
    int src = f->in[0], o = cot_val(a, &p->val[src])->id;
    Step fwd = *f;
    p->val[o].parts = p->val[g].parts;
    p->val[o].n_parts = p->val[g].n_parts;
    Step *s = step(a, fwd.kind, pass_of(&p->val[src], pass), o);
    s->nin = 1;
    s->in[0] = g;
    s->stage = p->val[g].stage;
    s->move.from = layout_dual(&fwd.move.to);
    s->move.to = layout_dual(&fwd.move.from);
    s->move.axes = fwd.move.axes;
    s->move.kind =
        fwd.kind == ST_CLAIM ? MOVE_ID : move_kind(&s->move.from, &s->move.to, fwd.move.axes.a[0]);
    s->loc = fwd.loc;
    s->group = fwd.group;
    s->module = fwd.module;
    s->unasked = fwd.unasked;
    s->inferred = fwd.unasked && fwd.kind == ST_MOVE && move_communicates(s->move.kind) &&
                  mesh_size(p->mesh, &s->move.axes) > 1;
    s->why = why_adjoint(p, s, &fwd);
    give(a, src, o);
}
/* What PyTorch's ops gather for themselves of one DTensor is no step of its autograd: their
 * gradients, each pending, are added up as they are, and whoever made the DTensor reduces the sum.
 * The copy that gets the gradient of this one: one like it, made before; -1: it is the first. */
static int like_before(const Program *p, int move) {
    const Step *s = &p->step[move];
    for (int i = move - 1; i >= 0 && s->by_op && gathers(p, s); i--) {
        const Step *t = &p->step[i];
        if (t->by_op && gathers(p, t) && t->in[0] == s->in[0] && t->stage == s->stage &&
            layout_eq(&t->move.to, &s->move.to))
            return t->out;
    }
    return -1;
}
/* Where all uses of a DTensor are such gathers and a cut made it, the sum is reduced to what was
 * cut, at once: PyTorch's backward of a redistribution takes the pending gradient as it is. f and
 * the cut are one move then, of nothing. */
static bool undoes_cut(const Program *p, const Step *f, Step *both) {
    const Val *x = &p->val[f->in[0]];
    const Step *cut = f->by_op && gathers(p, f) && x->step >= 0 ? &p->step[x->step] : NULL;
    if (!cut || cut->kind != ST_MOVE || cut->move.kind != MOVE_SLICE ||
        !mesh_same_axes(&cut->move.axes, &f->move.axes))
        return false;
    for (int i = 0; i < f->move.axes.n; i++)
        if (cut->move.from.type[f->move.axes.a[i]] != TY_I) return false; /* no sum is wanted */
    for (int i = 0; i < p->n_forward; i++) {
        const Step *s = &p->step[i];
        for (int k = 0; k < s->nin; k++)
            if (s->in[k] == x->id && !(s->by_op && gathers(p, s))) return false;
    }
    *both = *f;
    both->in[0] = cut->in[0];
    both->move.from = cut->move.from;
    both->move.kind = MOVE_ID;
    return true;
}
static void op_adjoint(Adj *a, const Step *f, int g, Phase pass) {
    Program *p = a->p;
    Step fwd = *f;
    const GNode *n = &p->graph->node[fwd.node];
    a->stage = fwd.stage;
    for (int i = 0; i < n->nin && a->unit;
         i++) /* the unit is gathered before its backward begins */
        if (p->val[fwd.in[i]].kind == KIND_PARAM) make_again(a, fwd.in[i]);
    for (int i = 0; i < n->nin; i++) {
        if (!p->val[fwd.in[i]].diff || (n->op->nodiff >> i & 1)) continue;
        int o = cot_val(a, &p->val[fwd.in[i]])->id;
        Part *part = ARENA_NEW(p->arena, Part);
        *part = (Part){n->id, i, stages_way_of(p->assign->stages, fwd.stage)};
        p->val[o].parts = part;
        p->val[o].n_parts = 1;
        uint32_t saved = op_saved(n->op, n->nin, i);
        int way = stages_way_of(p->assign->stages, fwd.stage);
        int result = n->final ? program_first(p, n->final - 1, way) : fwd.out;
        int in[RULE_MAX_IN] = {0}, fout = n->op->adj_reads_output ? make_again(a, result) : -1;
        for (int j = 0; j < n->nin; j++) in[j] = saved >> j & 1 ? make_again(a, fwd.in[j]) : -1;
        Step *s = step(a, ST_ADJOINT, pass_of(&p->val[fwd.in[i]], pass), o);
        s->node = n->id;
        s->operand = i;
        s->stage = fwd.stage;
        s->module = n->module;
        s->loc = fwd.loc;
        s->nin = n->nin + 2;
        s->in[0] = g;
        for (int j = 0; j < n->nin; j++) s->in[1 + j] = in[j];
        s->in[1 + n->nin] = fout;
        s->why = arena_printf(p->arena, "gradient of %s through %s",
                              p->graph->t[p->val[fwd.in[i]].tensor].name, n->label);
        give(a, fwd.in[i], o);
    }
}

/* The gradient of one copy on a ring, moved to where another copy lies. */
static int hop_on(Adj *a, int cot, int to, const Step *hop, Phase pass) {
    Program *p = a->p;
    int o = cot_val(a, &p->val[to])->id;
    Step like = *hop;
    p->val[o].parts = p->val[cot].parts;
    p->val[o].n_parts = p->val[cot].n_parts;
    Step *s = program_add_step(p, &like, o);
    s->pass = pass;
    s->in[0] = cot;
    s->move.from = p->val[cot].L;
    s->move.to = p->val[o].L;
    s->why = "ring: the gradient goes on round with the keys, and one hop further home";
    return o;
}
/* The sum of a value's cotangents, with those of its copies on a ring: each copy's hop gives it
 * back, or under `rfa` the sum goes on round from copy to copy and comes home after as many hops as
 * there are ranks; it sets out from the first copy that has one. */
static int total_round(Adj *a, int val, Phase pass) {
    const Program *p = a->p;
    int sum = total(a, val, pass), next = a->onward ? next_hop(p, val) : -1;
    if (next < 0) return sum;
    const Step hop = p->step[p->val[next].step];
    for (int u = next; u >= 0; u = next_hop(p, u)) {
        if (sum >= 0) give(a, u, hop_on(a, sum, u, &hop, pass));
        sum = total(a, u, pass);
    }
    if (sum < 0) return sum;
    sum = hop_on(a, sum, val, &hop, pass);
    a->head[val] = sum;
    a->next[sum] = -1;
    return sum;
}

static void begin(Adj *a, int way) {
    static const Part seed_part[] = {{-1, 0, 0}, {-1, 0, 1}};
    Program *p = a->p;
    int loss = program_loss(p, way), seed = cot_val(a, &p->val[loss])->id;
    p->val[seed].parts = &seed_part[way];
    p->val[seed].n_parts = 1;
    Step *s = step(a, ST_SEED, PHASE_LOSS, seed);
    s->why = "the gradient of the loss with respect to itself is 1";
    s->stage = p->val[loss].stage;
    give(a, loss, seed);
}
/* What picks the copy of a parameter that its stage has, of the two there are. */
static bool picks_copy(const Program *p, const Step *s) {
    return s->kind == ST_MOVE && s->move.kind == MOVE_PICK && p->val[s->out].kind == KIND_PARAM;
}
/* The gradients of a parameter's copies become the terms of their sum right before it is made: as
 * terms they are there on both ranks, and all those of a model would be as large as it once more.
 */
static int total_of_copies(Adj *a, int val, Phase pass) {
    const Program *p = a->p;
    bool two = p->assign->stages && p->val[val].kind == KIND_PARAM;
    for (int i = p->n_forward - 1; i >= 0 && two; i--) {
        if (p->step[i].in[0] != val || !picks_copy(p, &p->step[i])) continue;
        int g = total_round(a, p->step[i].out, pass);
        if (g >= 0) move_adjoint(a, &p->step[i], g, pass);
    }
    return total_round(a, val, pass);
}
void adjoint_program(Program *p) {
    /* at most: a cotangent per use, plus a sum per extra use */
    int uses = 2;
    for (int i = 0; i < p->ns; i++) uses += 3 * (p->step[i].nin + 1);
    Adj a = {.p = p, .cap = p->nv + uses};
    a.head = ARENA_ARRAY(p->arena, int, a.cap);
    a.next = ARENA_ARRAY(p->arena, int, a.cap);
    for (int i = 0; i < a.cap; i++) a.head[i] = a.next[i] = -1;
    const Plan *plan = p->assign->plan;
    a.reshard = p->assign->reshard;
    a.block = graph_units(p->graph, false, p->arena);
    if (plan_data_unit(plan) != UNIT_PARAMETER) a.unit = unit_layers(p);
    a.regather = !plan->save_gathered;
    a.rehop = !plan->context_parallel.keep_kv;
    a.onward = plan->context_parallel.rfa;
    a.again = ARENA_ARRAY(p->arena, int, a.cap);
    a.part = ARENA_ARRAY(p->arena, int, a.cap);
    for (int i = 0; i < a.cap; i++) a.again[i] = a.part[i] = -1;
    for (int i = 0; i < p->n_forward; i++)
        if (p->step[i].packs) a.part[p->step[i].in[0]] = p->step[i].out;
    begin(&a, 0);
    if (p->other.env) begin(&a, 1);
    for (int i = p->n_forward - 1; i >= 0; i--) {
        Phase pass = p->step[i].pass == PHASE_LOSS ? PHASE_LOSS : PHASE_BACKWARD;
        int out = p->step[i].out;
        if (!p->val[out].diff) continue;
        if ((is_hop(&p->step[i]) && a.onward) || picks_copy(p, &p->step[i])) continue;
        int g = total_of_copies(&a, out, pass);
        if (g < 0) continue;
        int first = like_before(p, i);
        Step both;
        if (first >= 0) give(&a, first, g);
        else if (undoes_cut(p, &p->step[i], &both)) move_adjoint(&a, &both, g, pass);
        else if (p->step[i].kind == ST_OP) op_adjoint(&a, &p->step[i], g, pass);
        else move_adjoint(&a, &p->step[i], g, pass);
    }
    for (int t = 0; t < p->graph->nt; t++) {
        if (p->graph->t[t].kind == KIND_ACTIVATION || !p->graph->t[t].diff) continue;
        p->grad[t] = total_of_copies(&a, p->first[t], PHASE_GRADIENTS);
        if (!p->other.env) continue; /* parameters are of both ways, an input is of one */
        bool both = p->other.first[t] == p->first[t];
        p->other.grad[t] =
            both ? p->grad[t] : total_of_copies(&a, p->other.first[t], PHASE_GRADIENTS);
    }
}
