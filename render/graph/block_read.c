/* Structure of a block picture: reading the steps, hiding identities, finding strips. Columns and
 * twins: block_place.c.
 */
#include "render/graph/block_read.h"
#include "render/graph/unlike.h"
#include "base/text.h"
#include "render/graph/grads.h"
#include "render/graph/block_place.h"
#include "trace/trace_way.h"
#include <stdlib.h>
#include <string.h>

static bool on_rank(const RankSet *r, int64_t rank) { return r->n == 0 || rankset_has(r, rank); }

static bool pass_is(Phase pass, Phase want) { return phase_or_forward(pass) == want; }

/* The loss belongs to the forward picture of a model that has a head, or where it is asked for. */
static bool wants_loss(const Trace *t, const RenderOptions *o) {
    if (o->part) return part_term(o->part)->loss;
    for (int i = 0; i < t->n_computes; i++)
        if (part_term(t->computes[i].part)->head) return true;
    return false;
}

static BlockNode *add_node(BlockGraph *g, BlockKind kind, int step, const char *name) {
    BlockNode *n = ARENA_PUSH(g->arena, g->node, g->n, g->cap);
    *n = (BlockNode){.kind = kind,
                     .step = step,
                     .name = name,
                     .twin = -1,
                     .shared = -1,
                     .joined = -1,
                     .strip = -1,
                     .level = -1};
    n->out = trace_value(g->t, name, step);
    n->alias = g->n - 1;
    return n;
}

/* Is the layer among those drawn? Steps outside of layers (-1) are drawn beside a single layer, or
 * if asked for. */
static bool wanted_layer(const BlockGraph *g, int layer) {
    return g->layer < 0 || layer == g->layer || (layer < 0 && g->outside);
}

static int by_step(const void *a, const void *b) {
    const BlockNode *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool is_param(const Trace *t, const char *name) { return trace_param(t, name) != NULL; }

static bool makes(const BlockGraph *g, const char *name) {
    for (int i = 0; i < g->n; i++)
        if (g->node[i].kind == NODE_OP && !strcmp(g->node[i].name, name)) return true;
    return false;
}
/* The step whose result, moved or not, is what step `step` leaves under this name. */
static int made_at(const BlockGraph *g, const char *name, int step) {
    const Trace *t = g->t;
    for (int before = step + 1; step >= 0 && step < before;) {
        before = step;
        for (int i = 0; i < t->n_collectives && step == before; i++)
            if (t->collectives[i].step == step && !strcmp(t->collectives[i].value, name))
                step = t->collectives[i].value_step;
        for (int i = 0; i < t->n_moves && step == before; i++)
            if (t->moves[i].step == step && !strcmp(t->moves[i].value, name))
                step = t->moves[i].value_step;
    }
    return step;
}
/* Such a sum stands with the steps that make what is added, whatever layer the value is of: what
 * the layer above adds is read here, and what this one adds to the gradient of its input leaves it.
 * A wrong one stands with its own layer in any case. */
static bool adds_here(const BlockGraph *g, const TraceCompute *c) {
    if (c->wrong || c->planted || c->step == g->wrong_step || !c->input_step)
        return wanted_layer(g, c->layer) || makes(g, c->output);
    for (int k = 0; k < c->n_inputs; k++) {
        const int step = made_at(g, c->output, c->input_step[k]);
        for (int i = 0; i < g->n; i++)
            if (g->node[i].step == step && !strcmp(g->node[i].name, c->output)) return true;
    }
    return false;
}

/* The gradient that step c reads, and the step that made it; NULL: none. */
static const char *reads_gradient(const TraceCompute *c, int *step) {
    for (int k = 0; k < c->n_inputs; k++)
        if (c->reads[k].role == OF_GRADIENT) {
            *step = c->input_step ? c->input_step[k] : -1;
            return c->inputs[k];
        }
    return NULL;
}
/* Are both the backward of one op: what they make are gradients of its input and its parameter? */
static bool same_backward(const TraceCompute *a, const TraceCompute *b) {
    int sa = -1, sb = -1;
    const char *x = reads_gradient(a, &sa), *y = reads_gradient(b, &sb);
    return x && y && sa == sb && !strcmp(x, y) && text_same(a->module, b->module) &&
           text_same(a->op, b->op);
}

/* Does the backward pass end in the gradient that c makes of a parameter: has its op no input with
 * a gradient? Then it has a box of its own. */
static bool ends_the_pass(const BlockGraph *g, const TraceCompute *c) {
    int step;
    if (c->pass != PHASE_GRADIENTS || !grads_param(g->t, c->makes) || !reads_gradient(c, &step))
        return false;
    for (int i = 0; i < g->t->n_computes; i++) {
        const TraceCompute *b = &g->t->computes[i];
        bool other = b->pass == PHASE_BACKWARD || (b->pass == PHASE_GRADIENTS && b->step < c->step);
        if (b != c && other && block_on_rank(g, b) && same_backward(b, c)) return false;
    }
    return true;
}

static void add_compute(BlockGraph *g, const TraceCompute *c) {
    BlockNode *n = add_node(g, NODE_OP, c->step, c->output);
    n->part = wanted_layer(g, c->layer) ? c->part : NULL;
    n->n_op = 1;
    n->op[0] = (BlockOp){.c = c, .claim = -1};
}

static void read_computes(BlockGraph *g, Phase pass) {
    for (int i = 0; i < g->t->n_computes; i++) {
        const TraceCompute *c = &g->t->computes[i];
        bool loss = g->loss && c->pass == PHASE_LOSS && !subject_is_gradient(c->makes);
        bool end = pass == PHASE_BACKWARD && ends_the_pass(g, c);
        bool uses = pass == PHASE_BACKWARD && trace_adds_uses(c) && c->makes.role == OF_GRADIENT;
        if ((!pass_is(c->pass, pass) && !loss && !end) || !block_on_rank(g, c)) continue;
        if (uses ? adds_here(g, c) : wanted_layer(g, c->layer)) add_compute(g, c);
    }
}

/* Does the collective bring from another stage what a step of the picture reads, or take there what
 * one makes? It is of the layer that made the value, which is not always drawn. */
static bool crosses(const BlockGraph *g, const TraceCollective *c) {
    Message way = words_message(c, g->rank);
    if (way == MESSAGE_TO) return makes(g, c->value);
    for (int i = 0; way == MESSAGE_FROM && i < g->n; i++) {
        const TraceCompute *f = g->node[i].kind == NODE_OP ? g->node[i].op[0].c : NULL;
        for (int k = 0; f && k < f->n_inputs; k++)
            if (!strcmp(f->inputs[k], c->value)) return true;
    }
    return false;
}

static void read_moves(BlockGraph *g, Phase pass) {
    int cap = 0, backward = words_backward(g->t);
    for (int i = 0; i < g->t->n_collectives; i++) {
        const TraceCollective *c = &g->t->collectives[i];
        /* before names are compared: a model has many layers */
        if (!wanted_layer(g, c->layer) && !crosses(g, c)) continue;
        bool fetch = is_param(g->t, c->value); /* stands in the box of the op that reads it */
        if (fetch && words_pass_of(c, backward) != pass)
            continue; /* what is kept comes from there */
        bool loss = g->loss && c->pass == PHASE_LOSS && !subject_is_gradient(c->subject);
        bool ends = pass == PHASE_BACKWARD && c->subject.role == OF_PARAM_GRADIENT; /* in boxes */
        bool again = pass == PHASE_BACKWARD &&
                     !subject_is_gradient(c->subject); /* of what is made again: no step here */
        if ((!pass_is(c->pass, pass) && !fetch && !loss && !ends) || (again && !fetch && !ends))
            continue;
        if (words_group_of(&c->groups, g->rank) < 0) continue;
        *ARENA_PUSH(g->arena, g->used, g->n_used, cap) = c;
        if (fetch || ends) continue;
        BlockNode *n = add_node(g, NODE_COLL, c->step, c->value);
        n->coll = c;
        n->part = wanted_layer(g, c->layer) ? c->part : NULL;
    }
    for (int i = 0; i < g->t->n_moves; i++) {
        const TraceLocalMove *m = &g->t->moves[i];
        bool loss = g->loss && m->pass == PHASE_LOSS && !subject_is_gradient(m->subject);
        if ((!pass_is(m->pass, pass) && !loss) || !wanted_layer(g, m->layer) ||
            is_param(g->t, m->value))
            continue;
        if (pass == PHASE_BACKWARD && !subject_is_gradient(m->subject)) continue;
        add_node(g, NODE_MOVE, m->step, m->value)->move = m;
    }
}

/* The node that makes (name, step); made as an input if no step that is drawn makes it. */
static int producer(BlockGraph *g, const char *name, int step, int before) {
    int best = -1;
    for (int i = 0; i < g->n; i++) {
        const BlockNode *n = &g->node[i];
        if (strcmp(n->name, name) || (n->kind != NODE_INPUT && n->step >= before)) continue;
        if (n->step == step) return i;
        if (n->kind != NODE_INPUT && step > n->step && (best < 0 || n->step > g->node[best].step))
            best = i;
    }
    if (best >= 0) return best;
    add_node(g, NODE_INPUT, step, name);
    return g->n - 1;
}

/* The collective that makes the copy of a parameter that a step reads. */
static const TraceCollective *fetch_of(const BlockGraph *g, const char *name, int step) {
    const TraceCollective *best = NULL;
    for (int i = 0; step >= 0 && i < g->n_used; i++)
        if (g->used[i]->step <= step && !strcmp(g->used[i]->value, name) &&
            (!best || g->used[i]->step > best->step))
            best = g->used[i];
    return best;
}

static void add_input(BlockGraph *g, int i, const char *name, int step) {
    int p = producer(g, name, step, g->node[i].step); /* may move g->node */
    BlockNode *n = &g->node[i];
    if (n->n_in < BLOCK_MAX_IN) n->in[n->n_in++] = p;
}

/* Backward ops read values that the forward pass has saved: words in the box, no wires through the
 * picture. */
static bool is_saved(const BlockGraph *g, int i, Subject read) {
    const TraceCompute *c = g->node[i].op[0].c;
    return phase_or_forward(c->pass) != PHASE_FORWARD && c->pass != PHASE_LOSS &&
           !subject_is_gradient(read);
}

/* Their names, once the states of the stream have theirs. */
static void say_saved(BlockGraph *g) {
    for (int i = 0; i < g->n; i++) {
        BlockOp *op = &g->node[i].op[0];
        const TraceCompute *c = g->node[i].kind == NODE_OP ? op->c : NULL;
        for (int k = 0; c && k < c->n_inputs; k++) {
            if (trace_param(g->t, c->inputs[k]) || !is_saved(g, i, c->reads[k])) continue;
            const char *word = block_kept(g, c->inputs[k], false);
            if (op->saved && text_has_word(op->saved, word)) continue; /* parts of one value */
            op->saved = op->saved ? arena_printf(g->arena, "%s, %s", op->saved, word) : word;
        }
    }
}

static void connect(BlockGraph *g) {
    int steps = g->n; /* inputs are added behind them */
    for (int i = 0; i < steps; i++) {
        if (g->node[i].kind == NODE_COLL)
            add_input(g, i, g->node[i].name, g->node[i].coll->value_step);
        if (g->node[i].kind == NODE_MOVE)
            add_input(g, i, g->node[i].name, g->node[i].move->value_step);
        if (g->node[i].kind != NODE_OP) continue;
        const TraceCompute *c = g->node[i].op[0].c;
        for (int k = 0; k < c->n_inputs; k++) {
            const TraceParam *p = trace_param(g->t, c->inputs[k]);
            int step = c->input_step ? c->input_step[k] : -1;
            if (!p && is_saved(g, i, c->reads[k])) continue; /* say_saved */
            if (!p) {
                add_input(g, i, c->inputs[k], step);
                continue;
            }
            BlockOp *op = &g->node[i].op[0];
            if (op->n_param < 3) op->param[op->n_param++] = p;
            if (!op->fetch) op->fetch = fetch_of(g, c->inputs[k], step);
            for (int m = 0; m < g->t->n_moves && op->claim < 0; m++)
                if (g->t->moves[m].wrong && g->t->moves[m].step <= c->step &&
                    !strcmp(g->t->moves[m].value, c->inputs[k]))
                    op->claim = g->t->moves[m].step;
        }
    }
}

/* Gradients of parameters leave at the box of the op whose backward makes them. */
static void leave(BlockGraph *g) {
    for (int i = 0; g->pass == PHASE_BACKWARD && i < g->t->n_computes; i++) {
        const TraceCompute *c = &g->t->computes[i];
        if (!grads_param(g->t, c->makes) || !block_on_rank(g, c)) continue;
        for (int k = 0; k < g->n; k++) {
            BlockOp *op = &g->node[k].op[0];
            if (g->node[k].kind != NODE_OP || (op->c != c && !same_backward(op->c, c))) continue;
            ParamGrad *all = ARENA_ARRAY(g->arena, ParamGrad, op->n_leave + 1);
            if (op->n_leave) memcpy(all, op->leave, sizeof *all * (size_t)op->n_leave);
            all[op->n_leave++] = grads_read(g, c);
            op->leave = all;
            break;
        }
    }
}

static bool identical_shape(const BlockGraph *g, const TraceValue *a, const TraceValue *b) {
    return block_same_shape(g, a, b) && text_same(a->shape.symbolic, b->shape.symbolic);
}

/* Identities and moves that change nothing one can see stand for their input. */
static void hide_identities(BlockGraph *g) {
    for (int i = 0; i < g->n; i++) {
        BlockNode *n = &g->node[i];
        bool view = n->kind == NODE_OP && n->n_in == 1 && n->op[0].n_param == 0 &&
                    text_same(n->op[0].c->glyph, "view");
        bool passes = n->kind == NODE_OP && n->op[0].n_param == 0 && n->n_in == 1 &&
                      g->pass == PHASE_BACKWARD && text_same(n->op[0].c->glyph, "plus") &&
                      !n->op[0].n_leave && !n->op[0].c->wrong && !n->op[0].c->planted &&
                      n->step != g->wrong_step; /* backward of an add: hands on what it gets */
        view |= passes;
        if ((!view && n->kind != NODE_MOVE) || n->n_in != 1) continue;
        const BlockNode *p = &g->node[n->in[0]];
        n->hidden = n->kind == NODE_MOVE ? !n->out || block_same_shape(g, p->out, n->out)
                                         : identical_shape(g, p->out, n->out);
        n->hidden &= !(n->move && (n->move->wrong || n->move->planted));
        if (n->hidden) n->alias = n->in[0];
    }
    for (int i = 0; i < g->n; i++)
        for (int k = 0; k < g->node[i].n_in; k++) {
            int r = block_real(g, g->node[i].in[k]);
            g->node[i].in[k] = r;
            if (g->node[i].alias == i) g->node[r].users++;
        }
}

/* Bit sets of ancestors, one row per node. */
typedef struct {
    size_t words;
    uint64_t *bit;
} Ancestors;
static bool has(const Ancestors *a, int i, int j) {
    return a->bit[(size_t)i * a->words + (size_t)j / 64] >> (j % 64) & 1;
}

static Ancestors ancestors(const BlockGraph *g, const int *order, int n) {
    Ancestors a = {((size_t)g->n + 63) / 64, NULL};
    a.bit = ARENA_ARRAY(g->arena, uint64_t, base_mul((size_t)g->n, a.words));
    for (int o = 0; o < n; o++) {
        int i = order[o];
        for (int k = 0; k < g->node[i].n_in; k++) {
            int j = g->node[i].in[k];
            for (size_t w = 0; w < a.words; w++)
                a.bit[(size_t)i * a.words + w] |= a.bit[(size_t)j * a.words + w];
            a.bit[(size_t)i * a.words + (size_t)j / 64] |= 1ull << (j % 64);
        }
    }
    return a;
}

static bool is_sum_of_uses(const BlockGraph *g, int i) {
    const BlockNode *n = &g->node[i];
    return n->kind == NODE_OP && n->n_in > 1 && !n->op[0].n_param && n->alias == i &&
           text_same(n->op[0].c->glyph, "plus") && !n->op[0].c->wrong && !n->op[0].c->planted &&
           n->step != g->wrong_step;
}

/* Does one of the inputs of sums i and j descend from another? Then one is that of a residual
 * stream. */
static bool has_skip(const BlockGraph *g, const Ancestors *a, int i, int j) {
    const BlockNode *of[2] = {&g->node[i], &g->node[j]};
    for (int k = 0; k < 2; k++)
        for (int m = 0; m < of[k]->n_in; m++)
            for (int q = 0; q < of[1 - k]->n_in; q++)
                if (of[k]->in[m] != j && of[1 - k]->in[q] != j &&
                    (has(a, of[k]->in[m], of[1 - k]->in[q]) ||
                     has(a, of[1 - k]->in[q], of[k]->in[m])))
                    return true;
    return false;
}

/* A sum of uses that only another sum of the same gradient reads is part of it: one box. */
static void join_sums(BlockGraph *g, const Ancestors *a) {
    for (int i = 0; i < g->n && g->pass == PHASE_BACKWARD; i++)
        for (int k = 0; is_sum_of_uses(g, i) && k < g->node[i].n_in; k++) {
            BlockNode *n = &g->node[i];
            const int j = n->in[k];
            BlockNode *p = &g->node[j];
            if (j == i || !is_sum_of_uses(g, j) || strcmp(p->name, n->name) || p->users != 1 ||
                n->n_in + p->n_in - 1 > BLOCK_MAX_IN || has_skip(g, a, i, j))
                continue;
            n->in[k--] = p->in[0];
            for (int m = 1; m < p->n_in; m++) n->in[n->n_in++] = p->in[m];
            p->alias = i;
        }
}

static BlockStrip *add_strip(BlockGraph *g, int from, int to) {
    BlockStrip *s = &g->strip[g->n_strips++];
    *s = (BlockStrip){
        .from = from, .to = to, .last = -1, .node = ARENA_ARRAY(g->arena, int, 2 * g->n + 8)};
    return s;
}

/* An add of two activations, one of which descends from the other, closes a strip of the residual
 * stream. */
static bool is_residual(const BlockGraph *g, const Ancestors *a, int i, int *skip, int *branch) {
    const BlockNode *n = &g->node[i];
    if (n->kind != NODE_OP || n->n_in != 2 || n->op[0].n_param ||
        !text_same(n->op[0].c->glyph, "plus"))
        return false;
    for (int k = 0; k < 2; k++)
        if (has(a, n->in[1 - k], n->in[k])) {
            *skip = n->in[k];
            *branch = n->in[1 - k];
            return true;
        }
    return false;
}

static void residual_strips(BlockGraph *g, const Ancestors *a, const int *order, int n) {
    for (int o = 0; o < n && g->n_strips < BLOCK_MAX_STRIPS - 8; o++) {
        int r = order[o], skip, branch;
        if (!is_residual(g, a, r, &skip, &branch) || g->node[r].strip >= 0 ||
            g->node[branch].strip >= 0)
            continue;
        BlockStrip *s = add_strip(g, skip, r);
        for (int k = 0; k < n; k++) {
            int i = order[k];
            bool inside = (i == branch || has(a, branch, i)) && i != skip && !has(a, skip, i);
            if (!inside || g->node[i].strip >= 0 || g->node[i].alias != i) continue;
            g->node[i].strip = g->n_strips - 1;
            s->node[s->n++] = i;
        }
        s->last = branch;
        s->part = g->node[r].part;
        for (int k = 0; k < s->n && !s->part; k++) { /* a sum of uses belongs to no part */
            const char *part = g->node[s->node[k]].part;
            if (part && !part_term(part)->norm) s->part = part;
        }
        g->node[r].strip = g->n_strips - 1;
    }
}

/* Does an op read the output of node i, at once or after moves? */
static bool is_computed_with(const BlockGraph *g, int i) {
    for (int k = 0; k < g->n; k++)
        for (int j = 0; g->node[k].alias == k && j < g->node[k].n_in; j++)
            if (g->node[k].in[j] == i && (g->node[k].kind == NODE_OP || is_computed_with(g, k)))
                return true;
    return false;
}

/* Moves whose result no op reads, as those of the list that says which rows a rank has, stand where
 * the value is made. */
static void moves_at_home(BlockGraph *g, const int *order, int n) {
    for (int o = 0; o < n; o++) {
        BlockNode *x = &g->node[order[o]];
        if (x->strip >= 0 || x->n_in != 1 || x->alias != order[o] || x->kind == NODE_OP) continue;
        int home = g->node[x->in[0]].strip;
        if (home < 0 || x->in[0] == g->strip[home].to || is_computed_with(g, order[o])) continue;
        BlockStrip *s = &g->strip[x->strip = home];
        int at = s->n++; /* in step order */
        for (; at > 0 && s->node[at - 1] > order[o]; at--) s->node[at] = s->node[at - 1];
        s->node[at] = order[o];
    }
}

/* What is left becomes plain chains, cut where a residual strip or another part of the model
 * begins. */
static void plain_strips(BlockGraph *g, const int *order, int n) {
    BlockStrip *s = NULL;
    for (int o = 0; o < n; o++) {
        BlockNode *x = &g->node[order[o]];
        if (x->kind == NODE_INPUT || x->alias != order[o]) continue;
        if (x->strip >= 0) {
            if (g->strip[x->strip].to >= 0) s = NULL;
            continue;
        }
        /* a norm stands before what reads it: its backward comes behind */
        bool norm =
            g->pass == PHASE_BACKWARD ? part_term(x->part)->norm : s && part_term(s->part)->norm;
        bool other = s && s->part && x->part && strcmp(s->part, x->part) && !norm;
        if (!s || (other && g->n_strips < BLOCK_MAX_STRIPS))
            s = g->n_strips < BLOCK_MAX_STRIPS ? add_strip(g, -1, -1) : s;
        if (!s) return;
        x->strip = (int)(s - g->strip);
        s->node[s->n++] = order[o];
        s->last = order[o];
        if (x->part && (!s->part || part_term(s->part)->norm)) s->part = x->part;
    }
}

static int strip_order(const void *a, const void *b) {
    const BlockStrip *x = a, *y = b;
    return x->n && y->n ? (x->node[0] > y->node[0]) - (x->node[0] < y->node[0]) : 0;
}

void block_close_strip(BlockGraph *g, int si) {
    BlockStrip *s = &g->strip[si];
    int n = s->n;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < g->node[s->node[k]].n_in; j++) {
            int p = g->node[s->node[k]].in[j], own = -1;
            if (p == s->from || (g->node[p].strip == si && p != s->to)) continue;
            for (int q = n; q < s->n; q++)
                if (g->node[s->node[q]].users == p)
                    own = s->node[q]; /* while closing: users holds the origin */
            if (own < 0) {
                BlockNode *x = add_node(g, NODE_INPUT, g->node[p].step, g->node[p].name);
                x->out = g->node[p].out;
                x->twin = g->node[p].twin; /* of a piece: both come from another page */
                x->strip = si;
                x->users = p;
                own = g->n - 1;
                s->node[s->n++] = own;
            }
            g->node[s->node[k]].in[j] = own;
        }
    for (int q = n; q < s->n; q++) g->node[s->node[q]].users = 1;
}

/* Steps beside the stream of their part that end in one number: what it adds to the loss, as the
 * load balance of a router. */
static bool is_loss_term(const BlockGraph *g, const BlockStrip *s) {
    const TraceValue *out = s->last >= 0 ? g->node[s->last].out : NULL;
    bool beside = false;
    for (int i = 0; i < g->n_strips && s->part; i++)
        beside |= g->strip[i].to >= 0 && text_same(g->strip[i].part, s->part);
    return s->to < 0 && beside && out && out->shape.nd == 0;
}

/* Forward, the strips stand in step order; a strip is known by its part. */
static void name_strips(BlockGraph *g) {
    for (int i = 0; i < g->n_strips; i++) {
        BlockStrip *s = &g->strip[i];
        bool moves = true;          /* only moves: how what follows gets its input */
        const char *message = NULL; /* whom with */
        for (int k = 0; k < s->n; k++) {
            const BlockNode *n = &g->node[s->node[k]];
            moves &= n->kind != NODE_OP;
            if (n->kind != NODE_COLL) continue;
            const Message way = words_message(n->coll, g->rank);
            const char *with = words_message_title(g->arena, n->coll, g->rank, way);
            message = way == MESSAGE_NONE                ? NULL
                      : message && strcmp(message, with) ? words_message_way(way)
                                                         : with;
        }
        s->title = moves && message ? message
                   : s->part        ? words_capital(g->arena, part_term_word(s->part))
                   : moves          ? "Input"
                                    : "Steps";
        if (is_loss_term(g, s))
            s->title = arena_printf(g->arena, "%s: terms of the loss", s->title);
    }
}

void block_renumber(BlockGraph *g) {
    for (int i = 0; i < g->n; i++) g->node[i].strip = -1;
    for (int i = 0; i < g->n_strips; i++) {
        for (int k = 0; k < g->strip[i].n; k++) g->node[g->strip[i].node[k]].strip = i;
        if (g->strip[i].to >= 0) g->node[g->strip[i].to].strip = i;
    }
    for (int i = 0; i < g->n; i++) /* a twin stands where the one does that it is drawn with */
        if (g->node[i].twin >= 0 && g->node[i].strip >= 0)
            g->node[g->node[i].twin].strip = g->node[i].strip;
}

/* Is the node the add of a residual strip? */
static bool is_stream(const BlockGraph *g, int i) {
    for (int k = 0; k < g->n_strips; k++)
        if (g->strip[k].to == i) return true;
    return false;
}
/* Backward, what a layer's input is made of may have no gradient: then the stream's gradient goes
 * into its first part and nothing comes back. Such a chain begins at the stream, too. */
static void open_strip(BlockGraph *g, int si) {
    BlockStrip *s = &g->strip[si];
    int from = -1, ops = 0;
    for (int k = 0; k < s->n; k++) {
        const BlockNode *x = &g->node[s->node[k]];
        ops += x->kind == NODE_OP;
        if (x->kind == NODE_OP && x->op[0].c->layer < 0) return;
        for (int j = 0; j < x->n_in; j++) {
            const int p = x->in[j];
            if (g->node[p].strip == si) continue;
            if ((from >= 0 && p != from) || !is_stream(g, p)) return;
            from = p;
        }
    }
    if (ops) s->from = from; /* what is only sent on has an end elsewhere */
}

static void find_strips(BlockGraph *g) {
    int *order = ARENA_ARRAY(g->arena, int, g->n), n = 0;
    for (int i = 0; i < g->n; i++)
        if (g->node[i].kind == NODE_INPUT) order[n++] = i;
    for (int i = 0; i < g->n; i++)
        if (g->node[i].kind != NODE_INPUT) order[n++] = i;
    Ancestors a = ancestors(g, order, n);
    join_sums(g, &a);
    residual_strips(g, &a, order, n);
    moves_at_home(g, order, n);
    plain_strips(g, order, n);
    qsort(g->strip, (size_t)g->n_strips, sizeof *g->strip, strip_order);
    block_renumber(g);
    for (int i = 0; i < g->n_strips && g->pass == PHASE_BACKWARD; i++)
        if (g->strip[i].to < 0) open_strip(g, i);
    for (int i = 0; i < g->n_strips; i++) block_close_strip(g, i);
    name_strips(g);
}

typedef struct {
    int layer, step; /* of the first mistake; -1: none */
} Mistake;
static void mistake(const BlockGraph *g, Mistake *m, int layer, int step, bool bad) {
    bool first = m->step < 0 || step < m->step;
    if (layer >= 0 && (bad || step == g->wrong_step) && first) *m = (Mistake){layer, step};
}
/* The layer of the first step that is wrong or planted, or of the first wrong value; -1: none. */
static int wrong_layer(const BlockGraph *g) {
    const Trace *t = g->t;
    Mistake m = {-1, -1};
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        mistake(g, &m, c->layer, c->step, c->wrong || c->planted);
    }
    for (int i = 0; i < t->n_moves; i++) {
        const TraceLocalMove *c = &t->moves[i];
        mistake(g, &m, c->layer, c->step, c->wrong || c->planted);
    }
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        mistake(g, &m, c->layer, c->step, c->wrong || c->planted);
    }
    return m.layer;
}

static bool has_part(const BlockGraph *g, int layer, const char *part) {
    for (int i = 0; i < g->t->n_computes; i++) {
        const TraceCompute *c = &g->t->computes[i];
        if (c->layer == layer && text_same(c->part, part)) return true;
    }
    return false;
}

/* The layers that the trace has, and the one to draw: the asked one, that of the first mistake, the
 * first, of those that have the part if one is asked for, or all if nothing says "layer". */
static void choose_layer(BlockGraph *g, const ViewCall *call) {
    const RenderOptions *o = call->o;
    /* the first of the rank in this pass, and in forward: a stage adds up gradients of what the one
     * before it made */
    int lo = -1, hi = -1, own = -1, forward = -1;
    bool residual = false;
    for (int i = 0; i < g->t->n_computes; i++) {
        const TraceCompute *c = &g->t->computes[i];
        int activations = 0;
        for (int k = 0; k < c->n_inputs; k++) activations += !is_param(g->t, c->inputs[k]);
        residual |= text_same(c->glyph, "plus") && activations == 2 && c->layer >= 0;
        if (c->layer < 0) continue;
        if (lo < 0 || c->layer < lo) lo = c->layer;
        if (c->layer > hi) hi = c->layer;
        bool here = on_rank(&c->ranks, g->rank) && (!o->part || text_same(c->part, o->part));
        if (here && pass_is(c->pass, g->pass) && (own < 0 || c->layer < own)) own = c->layer;
        if (here && pass_is(c->pass, PHASE_FORWARD) && (forward < 0 || c->layer < forward))
            forward = c->layer;
    }
    own = own >= 0 && forward >= 0 ? forward : own;
    g->n_layers = lo < 0 ? 0 : hi - lo + 1;
    g->first_layer = lo;
    int wrong = o->part && own >= 0 && !has_part(g, wrong_layer(g), o->part) ? -1 : wrong_layer(g);
    g->layer = o->layer >= 0 ? (int)o->layer
               : !residual   ? -1
               : wrong >= 0  ? wrong
               : own >= 0    ? own
                             : lo;
    /* beside backward everything is drawn: the gradient begins in the loss */
    const bool back = !call->pass && trace_has_backward(g->t);
    g->whole = !o->part;
    g->outside = o->part || g->n_layers <= 1 || back;
}

/* Forgets the collectives that no strip shows, so that totals speak of what is drawn. */
static void keep_used(BlockGraph *g) {
    int used = 0;
    for (int i = 0; i < g->n_used; i++) {
        bool in = false;
        for (int k = 0; k < g->n && !in; k++) {
            const BlockNode *x = &g->node[k];
            in = x->strip >= 0 && block_draws(x, g->used[i]);
        }
        if (in) g->used[used++] = g->used[i];
    }
    g->n_used = used;
}

static void add_part(Str *have, const char *part) {
    if (part && !part_term(part)->norm && !text_has_word(have->s, part))
        str_addf(have, "%s%s", have->n ? ", " : "", part);
}
/* The parts that the trace has in any layer, those of the backward pass by its strips; a norm is
 * drawn with what it stands before. */
static const char *all_parts(const BlockGraph *g) {
    Str have = str_new(g->arena);
    str_add(&have, "");
    if (g->pass == PHASE_BACKWARD)
        for (int i = g->n_strips - 1; i >= 0; i--) add_part(&have, g->strip[i].part);
    for (int i = 0; i < g->t->n_computes && g->pass != PHASE_BACKWARD; i++)
        add_part(&have, g->t->computes[i].part);
    return have.s;
}
/* Leaves only the strips of one part; false and a diagnostic that lists the parts if there is none.
 */
static bool choose_part(BlockGraph *g, Diags *d, const RenderOptions *o) {
    const char *part = o->part;
    if (!part) return true;
    int n = 0;
    for (int i = 0; i < g->n_strips; i++)
        if (text_same(g->strip[i].part, part)) g->strip[n++] = g->strip[i];
    if (n == 0) {
        const bool loss = g->pass == PHASE_BACKWARD && part_term(part)->loss;
        const char *there = arena_printf(
            g->arena, "%sparts: %s",
            loss ? "without --pass it stands beside the forward pass; " : "", all_parts(g));
        diag_error(d, "E0212", diag_nowhere, words_part_help(g->arena, o, there),
                   "%s has no part '%s'",
                   g->pass == PHASE_BACKWARD ? "the backward pass" : "the trace", part);
        return false;
    }
    g->n_strips = n;
    block_renumber(g);
    return true;
}

/* The first failing step of the first wrong value; in a trace without checks the first step that
 * makes it. */
static int wrong_step(const BlockGraph *g) {
    const Trace *t = g->t;
    int best = -2;
    if (!t->first_wrong) return best;
    for (int i = 0; i < t->n_checks; i++) {
        const TraceCheck *c = &t->checks[i];
        if (c->level > 0 && text_same(c->value, t->first_wrong) && text_same(c->verdict, "FAIL") &&
            (best == -2 || c->step < best))
            best = c->step;
    }
    for (int i = 0; i < t->n_values && best == -2; i++)
        if (!strcmp(t->values[i].shape.name, t->first_wrong)) best = t->values[i].step;
    return best;
}

/* The graph with its strips, all of them; NULL and a diagnostic if there is nothing to draw. */
static BlockGraph *read_strips(const ViewCall *c) {
    const Trace *t = c->t;
    const RenderOptions *o = c->o;
    Diags *d = c->d;
    Arena *arena = c->arena;
    BlockGraph *g = ARENA_NEW(arena, BlockGraph);
    g->t = t;
    g->arena = arena;
    g->rank = o->rank >= 0 ? o->rank : 0;
    if (t->ranks > 0 && g->rank >= t->ranks) {
        diag_error(d, "E0212", diag_nowhere, ranks_span(0, t->ranks - 1, arena),
                   "the trace has no rank %lld", (long long)g->rank);
        return NULL;
    }
    g->pass = phase_or_forward(c->pass);
    g->wrong_step = wrong_step(g);
    choose_layer(g, c);
    g->t = trace_own_way(t, g->rank, g->layer, arena);
    g->loss = g->pass == PHASE_FORWARD && wants_loss(t, o);
    read_computes(g, g->pass);
    if (g->n == 0) {
        diag_error(d, "E0211", diag_nowhere,
                   "draw a plan, or a trace that `run` or `draw --trace` wrote with this pass",
                   "nothing to draw in view 'block': the trace has no compute steps of pass '%s' "
                   "on rank %lld",
                   phase_text(g->pass), (long long)g->rank);
        return NULL;
    }
    read_moves(g, g->pass);
    qsort(g->node, (size_t)g->n, sizeof *g->node, by_step);
    for (int i = 0; i < g->n; i++) g->node[i].alias = i;
    connect(g);
    leave(g);
    hide_identities(g);
    find_strips(g);
    return g;
}

const BlockGraph *block_read_names(const ViewCall *c, int layer) {
    RenderOptions o = *c->o;
    ViewCall call = *c;
    o.part = NULL;
    o.layer = layer;
    call.o = &o;
    call.pass = PHASE_FORWARD;
    call.d = diags_new(c->arena);
    BlockGraph *g = read_strips(&call);
    if (g) block_name_states(g);
    return g;
}
/* The states have the names that they have in the forward pass of the same layer. */
static void name_states(BlockGraph *g, const ViewCall *c) {
    if (g->pass == PHASE_FORWARD) {
        block_name_states(g);
        return;
    }
    const BlockGraph *forward = block_read_names(c, g->layer);
    if (forward) g->state = forward->state, g->n_states = forward->n_states;
}

BlockGraph *block_read_trace(const ViewCall *c) {
    BlockGraph *g = read_strips(c);
    if (!g) return NULL;
    name_states(g, c);
    say_saved(g);
    if (!choose_part(g, c->d, c->o)) return NULL;
    keep_used(g);
    for (int i = 0; i < g->n_strips; i++) block_place(g, i);
    g->wrong = block_wrong(g, 0, g->n_strips);
    g->unlike = unlike_throughout(c, g);
    g->one_pass = c->o->with && !c->o->pass && c->pass == PHASE_FORWARD && trace_has_backward(c->t);
    return g;
}
