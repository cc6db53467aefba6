/* Which steps of the backward pass face which of the forward pass. See mirror.h. */
#include "render/mirror/mirror.h"
#include "render/graph/block_place.h"
#include "base/text.h"
#include <string.h>

/* "x" of the gradient of x; NULL if it is no gradient of a value. */
static const char *of_grad(Subject s) { return s.role == OF_GRADIENT ? s.of : NULL; }
const char *mirror_grad(const BlockGraph *g, const char *value) {
    return subject_name(g->arena, (Subject){OF_GRADIENT, value});
}

/* The backward program begins within the loss. */
static bool is_back(Phase pass, Subject made) {
    return pass == PHASE_BACKWARD || pass == PHASE_GRADIENTS ||
           (pass == PHASE_LOSS && subject_is_gradient(made));
}

static void add_name(const char **list, int *n, const char *name) {
    for (int i = 0; i < *n; i++)
        if (!strcmp(list[i], name)) return;
    if (*n < MIRROR_FLOW * 2) list[(*n)++] = name;
}
static bool has_name(const char *const *list, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i], name)) return true;
    return false;
}

/* ---- rows of the forward pass ---- */

static MirrorRow *row_of(MirrorStrip *s, const BlockNode *n, int level) {
    MirrorKind kind = n->kind == NODE_COLL ? ROW_COLL : n->kind == NODE_MOVE ? ROW_MOVE : ROW_OPS;
    int at = 0;
    for (int i = 0; i < s->n; i++) {
        MirrorRow *r = &s->row[i];
        bool alike = r->kind == kind && r->level == level;
        if (alike && kind == ROW_COLL)
            alike = text_same(r->coll[0]->op, n->coll->op) &&
                    text_same(r->coll[0]->axis, n->coll->axis) &&
                    text_same(r->coll[0]->reduce, n->coll->reduce);
        if (alike) return r;
        if (r->level < level || (r->level == level && r->kind <= kind)) at = i + 1;
    }
    for (int i = s->n++; i > at; i--) s->row[i] = s->row[i - 1];
    s->row[at] = (MirrorRow){.kind = kind, .level = level};
    return &s->row[at];
}

static void add_op(MirrorRow *r, const TraceCompute *c, bool rest) {
    for (int i = 0; i < r->n_op; i++)
        if (r->op[i].f == c) return;
    if (r->n_op < MIRROR_MAX) r->op[r->n_op++] = (MirrorOp){.f = c, .rest = rest};
}

/* The level of the first node of the strip that reads what node k of it makes; -1: none does. */
static int first_reader(const BlockGraph *g, const BlockStrip *b, const int *level, int k) {
    int first = -1;
    for (int j = k + 1; j < b->n; j++) {
        const BlockNode *x = &g->node[b->node[j]];
        for (int q = 0; x->alias == b->node[j] && q < x->n_in; q++)
            if (x->in[q] == b->node[k] && (first < 0 || level[j] < first)) first = level[j];
    }
    return first;
}
/* A chain that parts and joins again, as the loss does, is read as one line of rows: a step stands
 * just above the first that reads it, so that what is summed together stands together and nothing
 * runs past a row that has no use for it. level[k]: of node k of the strip. */
static void late_levels(const BlockGraph *g, const BlockStrip *b, int *level) {
    for (int k = b->n - 1; k >= 0; k--) {
        const int first = first_reader(g, b, level, k);
        if (g->node[b->node[k]].kind != NODE_INPUT && first > level[k]) level[k] = first - 1;
    }
}
static bool same_move(const BlockNode *x, const BlockNode *y) {
    return x != y && x->kind == NODE_MOVE && y->kind == NODE_MOVE &&
           text_same(x->move->op, y->move->op) && text_same(x->move->axes, y->move->axes);
}
/* Does the move read what an op makes? That stands above the moves of its own level. */
static bool moves_result(const BlockGraph *g, const BlockNode *x) {
    return x->n_in == 1 && g->node[x->in[0]].kind == NODE_OP;
}
/* A lone move whose result is read further below stands beside the next that does the same, and one
 * of what an op has just made beside that of what the op has read. */
static void join_moves(const BlockGraph *g, const BlockStrip *b, int *level) {
    for (int k = 0; k < b->n; k++) {
        const int first = first_reader(g, b, level, k);
        int best = first;
        for (int j = 0; j < b->n; j++)
            if (same_move(&g->node[b->node[k]], &g->node[b->node[j]]) && level[j] >= level[k] &&
                level[j] < best)
                best = level[j];
        if (best < first) level[k] = best;
    }
    for (int k = 0; k < b->n; k++)
        for (int j = 0; j < b->n; j++)
            if (same_move(&g->node[b->node[k]], &g->node[b->node[j]]) && level[j] == level[k] - 1 &&
                moves_result(g, &g->node[b->node[k]]))
                level[k] = level[j];
}

static void add_node(const BlockGraph *g, MirrorStrip *s, int i, int level, bool beside) {
    const BlockNode *n = &g->node[i];
    if (n->kind == NODE_INPUT || n->level < 0) return;
    MirrorRow *r = row_of(s, n, level);
    r->beside = beside;
    for (int k = i, twice = 0; k >= 0 && twice < 2; k = g->node[k].twin, twice++) {
        const BlockNode *q = &g->node[k];
        if (q->kind == NODE_COLL && r->n_coll < MIRROR_FLOW) r->coll[r->n_coll++] = q->coll;
        if (q->with && r->n_coll < MIRROR_FLOW) {
            r->rides |= 1u << r->n_coll;
            r->coll[r->n_coll++] = q->with;
        }
        if (q->kind == NODE_MOVE && r->n_move < MIRROR_FLOW) r->move[r->n_move++] = q->move;
        if (q->with_move && r->n_move < MIRROR_FLOW) {
            r->move_rides |= 1u << r->n_move;
            r->move[r->n_move++] = q->with_move;
        }
        if (q->kind == NODE_OP) add_op(r, q->op[0].c, false);
    }
    for (int k = i, twice = 0; k >= 0 && twice < 2; k = g->node[k].twin, twice++)
        for (int j = 0; g->node[k].kind == NODE_OP && j < g->node[k].n_op; j++)
            add_op(r, g->node[k].op[j].c, true);
}

static void read_ends(const BlockGraph *g, MirrorRow *r) {
    r->n_in = r->n_out = 0;
    for (int i = 0; i < r->n_coll; i++) {
        if (r->rides >> i & 1) continue;
        add_name(r->in, &r->n_in, r->coll[i]->value);
        add_name(r->out, &r->n_out, r->coll[i]->value);
    }
    for (int i = 0; i < r->n_conj && r->kind == ROW_BACK; i++)
        add_name(r->in, &r->n_in, of_grad(r->conj[i]->subject)),
            add_name(r->out, &r->n_out, of_grad(r->conj[i]->subject));
    for (int i = 0; i < r->n_back_move && r->kind == ROW_BACK; i++)
        add_name(r->in, &r->n_in, of_grad(r->back_move[i]->subject)),
            add_name(r->out, &r->n_out, of_grad(r->back_move[i]->subject));
    for (int i = 0; i < r->n_move; i++) {
        if (r->move_rides >> i & 1) continue;
        add_name(r->in, &r->n_in, r->move[i]->value);
        add_name(r->out, &r->n_out, r->move[i]->value);
    }
    for (int i = 0; i < r->n_op; i++) {
        const TraceCompute *c = r->op[i].f;
        add_name(r->out, &r->n_out, c->output);
        for (int k = 0; k < c->n_inputs; k++)
            if (!trace_param(g->t, c->inputs[k])) add_name(r->in, &r->n_in, c->inputs[k]);
    }
}

/* ---- steps of the backward pass ---- */

/* Is b the mirror of f: reads the gradient of its output, makes that of an input? */
static bool mirrors(const Trace *t, const TraceCompute *f, const TraceCompute *b) {
    const char *to = of_grad(b->makes);
    const TraceParam *p = grads_param(t, b->makes);
    bool reads = false, makes = false;
    for (int i = 0; i < b->n_inputs; i++) reads |= text_same(of_grad(b->reads[i]), f->output);
    for (int i = 0; reads && i < f->n_inputs; i++)
        makes |= (to && !strcmp(to, f->inputs[i])) || (p && trace_param(t, f->inputs[i]) == p);
    return reads && makes;
}

static void add_back(const BlockGraph *g, MirrorStrip *s, const TraceCompute *b) {
    const Trace *t = g->t;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->row[i].n_op; k++) {
            MirrorRow *r = &s->row[i];
            if (!mirrors(t, r->op[k].f, b)) continue;
            bool weight = grads_param(t, b->makes) != NULL;
            *(weight ? &r->op[k].dw : &r->op[k].dx) = true;
            if (weight && r->n_grad < MIRROR_MAX) r->grad[r->n_grad++] = grads_read(g, b);
            else if (!weight && r->n_back < MIRROR_MAX)
                r->back[r->n_back++] = (MirrorOp){.f = b, .rest = r->op[k].rest};
            return;
        }
}

/* A sum of the gradients of several uses stands with the first use. */
static void add_sum(MirrorStrip *s, const TraceCompute *b) {
    const char *value = of_grad(b->makes);
    for (int k = 0; k < b->n_inputs; k++)
        if (!value || strcmp(b->inputs[k], b->output)) return;
    for (int i = 0; i < s->n && (s->plain || strcmp(value, s->from)); i++)
        for (int k = 0; k < s->row[i].n_op; k++) {
            MirrorRow *r = &s->row[i];
            if (r->n_back == r->n_sum && !r->n_grad) continue; /* reads it without a gradient */
            if (!has_name(r->op[k].f->inputs, r->op[k].f->n_inputs, value)) continue;
            if (r->n_back < MIRROR_MAX) r->back[r->n_back++] = (MirrorOp){.f = b}, r->n_sum++;
            return;
        }
}

/* What the backward pass does to a gradient without computing: a collective or a local move. */
typedef struct {
    const TraceCollective *coll;
    const TraceLocalMove *move;
    const char *value; /* of forward */
    const char *name;  /* of its gradient */
    int step, from;    /* its own, and that which made what it reads */
    const char *axis;
} Change;

static Change change_of_coll(const TraceCollective *c) {
    return (Change){c, NULL, of_grad(c->subject), c->value, c->step, c->value_step, c->axis};
}
static Change change_of_move(const TraceLocalMove *m) {
    return (Change){NULL, m, of_grad(m->subject), m->value, m->step, m->value_step, m->axes};
}

/* The row whose backward made it; s->n: it comes from below; -1: from elsewhere. */
static int maker(const MirrorStrip *s, const Change *c) {
    for (int i = 0; i < s->n; i++)
        if (mirror_makes_grad(&s->row[i], c->name, c->from)) return i;
    return text_same(c->value, s->branch) ? s->n : -1;
}

/* The step of the next change of what that step made; -1: none. */
static int next_change(const Trace *t, const char *name, int step) {
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].value_step == step && !strcmp(t->collectives[i].value, name))
            return t->collectives[i].step;
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].value_step == step && !strcmp(t->moves[i].value, name))
            return t->moves[i].step;
    return -1;
}
/* The row in which what c makes is added to the gradients of other uses; -1: in none. */
static int summed_in(const BlockGraph *g, const MirrorStrip *s, const Change *c) {
    int step = c->step;
    for (int next = step; next >= 0; next = next_change(g->t, c->name, step)) step = next;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->row[i].n_back; k++)
            if (grads_sums(s->row[i].back[k].f, c->name, step)) return i;
    return -1;
}

/* The row above `below` in which forward works on the value, and no use joins in between; NULL:
 * none. */
static MirrorRow *facing(const BlockGraph *g, MirrorStrip *s, const Change *c, int below) {
    int end = summed_in(g, s, c);
    /* what a chain beside others makes of a value that they read, too, faces a row of its own */
    const bool beside = below < s->n && s->row[below].beside;
    for (int i = below - 1; i > end; i--) {
        MirrorRow *r = &s->row[i];
        if (beside && !r->beside) break;
        bool works = false, done = false;
        for (int k = 0; k < r->n_coll && r->kind == ROW_COLL; k++)
            works |= !strcmp(r->coll[k]->value, c->value) && text_same(r->coll[k]->axis, c->axis);
        for (int k = 0; k < r->n_move && r->kind == ROW_MOVE; k++)
            works |= !strcmp(r->move[k]->value, c->value) && text_same(r->move[k]->axes, c->axis);
        for (int k = 0; k < r->n_conj; k++) done |= !strcmp(r->conj[k]->value, c->name);
        for (int k = 0; k < r->n_back_move; k++) done |= !strcmp(r->back_move[k]->value, c->name);
        if (works && !done) return r;
    }
    return NULL;
}

/* May the change stand beside those of the row: of the same kind, and not one after the other? */
static bool joins(const MirrorRow *r, const Change *c) {
    if (r->kind != ROW_BACK || mirror_makes_grad(r, c->name, c->from)) return false;
    if (c->move)
        return r->n_back_move > 0 && r->n_back_move < MIRROR_FLOW &&
               text_same(r->back_move[0]->op, c->move->op);
    return r->n_conj > 0 && r->n_conj < MIRROR_FLOW && text_same(r->conj[0]->op, c->coll->op) &&
           text_same(r->conj[0]->axis, c->axis);
}

/* A change that faces nothing has a row of its own, just above the row that made what it reads. */
static MirrorRow *own_row(MirrorStrip *s, const Change *c, int below) {
    if (below && joins(&s->row[below - 1], c)) return &s->row[below - 1];
    if (s->n >= MIRROR_MAX * 2) return NULL;
    bool beside = below < s->n && s->row[below].beside;
    for (int i = s->n++; i > below; i--) s->row[i] = s->row[i - 1];
    s->row[below] = (MirrorRow){.kind = ROW_BACK, .level = -1, .beside = beside};
    return &s->row[below];
}

/* Does a strip above show it already, facing what brings the value to this one? */
static bool shown_above(const Mirror *m, const MirrorStrip *s, const Change *c) {
    for (int i = 0; i < m->n && &m->strip[i] != s; i++)
        for (int r = 0; r < m->strip[i].n; r++)
            if (mirror_makes_grad(&m->strip[i].row[r], c->name, c->step)) return true;
    return false;
}

/* Does the move leave the gradient as it lies? Then it is told as little as forward tells of such
 * (hide_identities, block_read.c), unless it faces what does more. */
static bool silent(const BlockGraph *g, const Change *c) {
    if (!c->move || c->move->wrong || c->move->planted || c->step == g->wrong_step) return false;
    return block_same_shape(g, trace_value(g->t, c->name, c->from),
                            trace_value(g->t, c->name, c->step));
}

static void add_change(const Mirror *m, MirrorStrip *s, Change c) {
    int below = c.value ? maker(s, &c) : -1;
    if (below < 0 || shown_above(m, s, &c)) return;
    MirrorRow *r = facing(m->g, s, &c, below);
    if (!r && silent(m->g, &c)) {
        MirrorRow *of = below < s->n ? &s->row[below] : NULL;
        if (of && of->n_silent < MIRROR_FLOW) of->silent[of->n_silent++] = c.move;
        return;
    }
    /* what a chain below made of the output of this one has its row there */
    if (!r && below == s->n && s->plain) return;
    if (!r) r = own_row(s, &c, below);
    if (!r) return;
    if (c.coll && r->n_conj < MIRROR_FLOW) r->conj[r->n_conj++] = c.coll;
    if (c.move && r->n_back_move < MIRROR_FLOW) r->back_move[r->n_back_move++] = c.move;
    read_ends(m->g, r);
}

/* A sum stands no lower than what it adds. */
static void raise_sums(MirrorStrip *s) {
    for (int i = s->n - 1; i > 0; i--)
        for (int k = 0; k < s->row[i].n_back; k++) {
            MirrorRow *r = &s->row[i];
            const TraceCompute *b = r->back[k].f;
            int to = i;
            for (int j = 0; j < i && to == i; j++)
                for (int q = 0; q < b->n_inputs; q++)
                    if (b->input_step && grads_sums(b, b->output, b->input_step[q]) &&
                        mirror_makes_grad(&s->row[j], b->output, b->input_step[q]))
                        to = j;
            if (to == i || s->row[to].n_back >= MIRROR_MAX) continue;
            s->row[to].back[s->row[to].n_back++] = r->back[k];
            s->row[to].n_sum++;
            for (int q = k + 1; q < r->n_back; q++) r->back[q - 1] = r->back[q];
            r->n_back--, r->n_sum--, k--;
        }
}

/* Backward in the order of forward. */
static void sort_conj(MirrorRow *r) {
    for (int i = 1; i < r->n_conj; i++)
        for (int k = i; k > 0; k--) {
            int a = 0, b = 0;
            while (a < r->n_in && !text_same(of_grad(r->conj[k - 1]->subject), r->in[a])) a++;
            while (b < r->n_in && !text_same(of_grad(r->conj[k]->subject), r->in[b])) b++;
            if (a <= b) break;
            const TraceCollective *c = r->conj[k];
            r->conj[k] = r->conj[k - 1];
            r->conj[k - 1] = c;
        }
}

static void read_back(const Mirror *m, MirrorStrip *s) {
    const BlockGraph *g = m->g;
    const Trace *t = g->t;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (!block_on_rank(g, c)) continue;
        if (is_back(c->pass, c->makes)) add_back(g, s, c), add_sum(s, c);
        s->up |= s->from && is_back(c->pass, c->makes) && text_same(of_grad(c->makes), s->from);
    }
    for (int i = 0, k = 0; i < t->n_collectives || k < t->n_moves;) { /* as they are done */
        const TraceCollective *c = i < t->n_collectives ? &t->collectives[i] : NULL;
        const TraceLocalMove *move = k < t->n_moves ? &t->moves[k] : NULL;
        if (c && (!move || c->step < move->step)) {
            i++;
            if (!is_back(c->pass, c->subject) || words_group_of(&c->groups, g->rank) < 0) continue;
            add_change(m, s, change_of_coll(c));
            s->up |= s->from && text_same(of_grad(c->subject), s->from); /* another stage made it */
        } else {
            k++;
            if (is_back(move->pass, move->subject)) add_change(m, s, change_of_move(move));
        }
    }
    raise_sums(s);
    for (int i = 0; i < s->n; i++) sort_conj(&s->row[i]);
}

/* ---- values ---- */

/* The step that made `name` as row r and those beyond read it; -2: none of them does. */
static int read_step(const MirrorRow *r, const char *name, bool back) {
    int n = back ? r->n_back : r->n_op;
    for (int i = 0; i < n + (back ? r->n_grad : 0); i++) {
        const TraceCompute *c = i >= n ? r->grad[i - n].made : back ? r->back[i].f : r->op[i].f;
        for (int k = 0; k < c->n_inputs; k++)
            if (!strcmp(c->inputs[k], name) && strcmp(c->output, name))
                return c->input_step && c->input_step[k] >= 0 ? c->input_step[k] : c->step;
    }
    for (int i = 0; i < (back ? r->n_conj : r->n_coll); i++) {
        const TraceCollective *c = back ? r->conj[i] : r->coll[i];
        if (!strcmp(c->value, name)) return c->value_step;
    }
    for (int i = 0; i < (back ? r->n_back_move : r->n_move); i++) {
        const TraceLocalMove *c = back ? r->back_move[i] : r->move[i];
        if (!strcmp(c->value, name)) return c->value_step;
    }
    return -2;
}

static int last_step(const Mirror *m, const char *name, bool back) {
    int step = -1;
    for (int i = 0; i < m->g->t->n_values; i++) {
        const TraceValue *v = &m->g->t->values[i];
        bool in_time = back || m->first_back < 0 || v->step < m->first_back;
        if (in_time && v->step > step && !strcmp(v->shape.name, name)) step = v->step;
    }
    return step;
}

static bool makes(const MirrorRow *r, const char *value) {
    return has_name(r->out, r->n_out, value);
}

static bool has_grad(const Mirror *m, const char *value) {
    return last_step(m, mirror_grad(m->g, value), true) >= 0;
}

/* Does a step of the row's backward take up what another made? */
static bool row_reads(const MirrorRow *r, const char *name, int step) {
    for (int k = 0; k < r->n_back; k++)
        if (grads_sums(r->back[k].f, name, step)) return true;
    for (int k = 0; k < r->n_conj; k++)
        if (r->conj[k]->value_step == step && !strcmp(r->conj[k]->value, name)) return true;
    for (int k = 0; k < r->n_back_move; k++)
        if (r->back_move[k]->value_step == step && !strcmp(r->back_move[k]->value, name))
            return true;
    for (int k = 0; k < r->n_silent; k++)
        if (r->silent[k]->value_step == step && !strcmp(r->silent[k]->value, name)) return true;
    return false;
}
/* The steps of the row that make the gradient `name` for what stands above; returns their number.
 */
static int leaving(const Trace *t, const MirrorRow *r, const char *name, const TraceValue **out,
                   int max) {
    int n = 0;
    for (int i = 0; i < t->n_values && n < max; i++) {
        const TraceValue *v = &t->values[i];
        if (!strcmp(v->shape.name, name) && mirror_makes_grad(r, name, v->step) &&
            !row_reads(r, name, v->step))
            out[n++] = v;
    }
    return n;
}

/* Does the backward of the row make the gradient of the value, or pass it on? */
static bool makes_grad(const Mirror *m, const MirrorRow *r, const char *value) {
    const char *name = mirror_grad(m->g, value);
    bool made = r->kind != ROW_OPS && makes(r, value) && has_grad(m, value);
    for (int k = 0; k < r->n_back; k++) made |= !strcmp(r->back[k].f->output, name);
    return made;
}

/* Is the value made by rows [0, r] of the strip, or does it come from above? */
static bool from_above(const MirrorStrip *s, int r, const char *value) {
    if (s->from && !strcmp(value, s->from)) return true;
    for (int i = 0; i <= r; i++)
        if (makes(&s->row[i], value)) return true;
    return false;
}

/* Puts in front of each chain beside the others what it reads of the rows above it. */
static void begin_beside(MirrorStrip *s) {
    for (int r = 1; r < s->n; r++) {
        MirrorRow from = {.kind = ROW_FROM, .beside = true};
        if (!s->row[r].beside || s->row[r - 1].beside) continue;
        for (int k = r; k < s->n && s->row[k].beside; k++)
            for (int i = 0; i < s->row[k].n_in; i++)
                if (from_above(s, r - 1, s->row[k].in[i]))
                    add_name(from.out, &from.n_out, s->row[k].in[i]);
        for (int i = s->n++; i > r; i--) s->row[i] = s->row[i - 1];
        s->row[r++] = from;
    }
}

/* Does the chain beside the others that ends in row r make the value? True of any other row. */
static bool of_chain(const MirrorStrip *s, int r, const char *value) {
    if (r < 0 || !s->row[r].beside) return true;
    for (; r >= 0 && s->row[r].kind != ROW_FROM; r--)
        if (makes(&s->row[r], value)) return true;
    return false;
}
/* Names that flow under row r, in the order in which they are read. */
static int flow_names(const Mirror *m, const MirrorStrip *s, int r, bool back, const char **name,
                      int max) {
    const MirrorRow *up = r >= 0 ? &s->row[r] : NULL;
    int n = 0;
    if (r + 1 >= s->n && n < max) name[n++] = s->branch;
    bool breaks = mirror_breaks(s, r);
    if (back && r + 1 < s->n && !breaks) { /* made by row r + 1 */
        const MirrorRow *down = &s->row[r + 1];
        for (int i = 0; i < down->n_in && n < max; i++)
            if (from_above(s, r, down->in[i]) && makes_grad(m, down, down->in[i]) &&
                (down->beside || of_chain(s, r, down->in[i])))
                name[n++] = down->in[i];
        return n;
    }
    for (int k = r + 1; k < s->n; k++) /* made by row r */
        for (int i = 0; i < s->row[k].n_in && n < max; i++) {
            const char *value = s->row[k].in[i];
            bool own = up ? makes(up, value) : s->from && !strcmp(value, s->from);
            bool again = false; /* a row between makes it anew */
            for (int q = r + 1; q < k; q++) again |= makes(&s->row[q], value);
            if (back && !has_grad(m, value)) continue;
            if (own && !again && !has_name(name, n, value)) name[n++] = value;
        }
    return n;
}

/* The gradients of one value that rise under row r; returns their number. */
static int rising(const Mirror *m, const MirrorStrip *s, int r, const char *name,
                  const TraceValue **out, int max) {
    const Trace *t = m->g->t;
    bool breaks = mirror_breaks(s, r);
    int n = 0, step = -2;
    for (int k = r + 1; k < s->n && !n && !breaks; k++) /* a row that does nothing passes it on */
        n = leaving(t, &s->row[k], name, out, max);
    if (n) return n;
    for (int k = r; k >= 0 && step == -2; k--) step = read_step(&s->row[k], name, true);
    const TraceValue *v = trace_value(t, name, step == -2 ? last_step(m, name, true) : step);
    if (v && max > 0) out[n++] = v;
    return n;
}

/* The step of row r that makes the value forward; -2: none does. */
static int made_step(const MirrorStrip *s, int r, const char *value) {
    int step = -2;
    for (int k = 0; r >= 0 && k < s->row[r].n_op; k++)
        if (!strcmp(s->row[r].op[k].f->output, value)) step = s->row[r].op[k].f->step;
    for (int k = 0; r >= 0 && k < s->row[r].n_coll; k++)
        if (!strcmp(s->row[r].coll[k]->value, value)) step = s->row[r].coll[k]->step;
    for (int k = 0; r >= 0 && k < s->row[r].n_move; k++)
        if (!strcmp(s->row[r].move[k]->value, value)) step = s->row[r].move[k]->step;
    return step;
}
int mirror_flow(const Mirror *m, const MirrorStrip *s, int r, bool back, const TraceValue **out,
                int max) {
    const char *value[MIRROR_FLOW * 2];
    int n = 0, count = flow_names(m, s, r, back, value, MIRROR_FLOW * 2);
    for (int i = 0; i < count && n < max; i++) {
        if (back) {
            n += rising(m, s, r, mirror_grad(m->g, value[i]), out + n, max - n);
            continue;
        }
        int step = -2;
        for (int k = r + 1; k < s->n && step == -2; k++)
            step = read_step(&s->row[k], value[i], false);
        if (step == -2) step = made_step(s, r, value[i]); /* the end of the strip */
        const TraceValue *v =
            trace_value(m->g->t, value[i], step == -2 ? last_step(m, value[i], false) : step);
        if (v) out[n++] = v;
    }
    for (int i = 0; i < s->out[0].n && n < max && !back; i++) { /* for other pages */
        const MirrorRead *q = &s->out[0].read[i];
        bool have = q->from != r;
        for (int k = 0; k < n; k++) have |= out[k] == q->v;
        if (!have) out[n++] = q->v;
    }
    return n;
}

/* The step that made the copy which `step` hands on unchanged or moved; -1: it is the first. */
static int copied_from(const Trace *t, const char *value, int step) {
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].step == step && !strcmp(t->moves[i].value, value))
            return t->moves[i].value_step;
    return -1;
}
int mirror_maker(const Mirror *m, const MirrorStrip *s, int from) {
    const char *value = s->row[from].n_out ? s->row[from].out[0] : "";
    int step = -2;
    for (int r = from + 1; r < s->n && s->row[r].beside && step < 0; r++)
        step = read_step(&s->row[r], value, false);
    for (int hop = 0; step >= 0 && hop < MIRROR_MAX; hop++) {
        for (int r = 0; r < from; r++) {
            const MirrorRow *row = &s->row[r];
            bool made = false;
            for (int k = 0; k < row->n_coll; k++)
                made |= row->coll[k]->step == step && !strcmp(row->coll[k]->value, value);
            for (int k = 0; k < row->n_move; k++)
                made |= row->move[k]->step == step && !strcmp(row->move[k]->value, value);
            for (int k = 0; k < row->n_op; k++)
                made |= row->op[k].f->step == step && !strcmp(row->op[k].f->output, value);
            if (made) return r;
        }
        step = copied_from(m->g->t, value, step);
    }
    return -1;
}

bool mirror_breaks(const MirrorStrip *s, int r) {
    return r >= 0 && r + 1 < s->n && s->row[r + 1].kind == ROW_FROM;
}
bool mirror_forks(const Mirror *m, const MirrorStrip *s, int r) {
    for (int k = r + 1; r >= 0 && k < s->n; k++)
        if (mirror_breaks(s, k - 1) && mirror_maker(m, s, k) == r) return true;
    return false;
}

/* Does row r take up a chain beside others, and come what these made by a line of its own? */
static bool by_rail(const MirrorStrip *s, int r) {
    for (int k = r - 1; k > 0 && s->row[k].beside; k--)
        if (s->row[k].kind == ROW_FROM) return true;
    return false;
}
int mirror_sides(const Mirror *m, const MirrorStrip *s, int r, const TraceValue **out, int max) {
    const MirrorRow *row = &s->row[r];
    int n = 0;
    for (int i = 0; i < s->in[0].n && n < max && row->kind == ROW_OPS; i++)
        if (s->in[0].read[i].to == r) out[n++] = s->in[0].read[i].v;
    for (int i = 0; i < row->n_in && n < max; i++) {
        bool have = false;
        for (int k = 0; k < n; k++) have |= !strcmp(out[k]->shape.name, row->in[i]);
        if (have) continue;
        /* in a chain, what the row above does not hand down comes past it */
        bool past = s->plain && !s->piece && r > 0 && row->kind == ROW_OPS && !by_rail(s, r) &&
                    !makes(&s->row[r - 1], row->in[i]);
        if ((from_above(s, r - 1, row->in[i]) && !past) || makes(row, row->in[i])) continue;
        const TraceValue *v = trace_value(m->g->t, row->in[i], last_step(m, row->in[i], false));
        if (v) out[n++] = v;
    }
    return n;
}

int mirror_side_grads(const MirrorStrip *s, int r, const TraceValue **out, int max) {
    int n = 0;
    for (int i = 0; i < s->out[1].n && n < max && s->row[r].kind == ROW_OPS; i++) {
        const MirrorRead *q = &s->out[1].read[i];
        bool have = q->from != r;
        for (int k = 0; k < n; k++) have |= out[k] == q->v;
        if (!have) out[n++] = q->v;
    }
    return n;
}

bool mirror_has_back(const Mirror *m, const MirrorRow *row) {
    if (row->n_back > 0 || row->n_grad > 0 || row->n_conj > 0 || row->n_back_move > 0) return true;
    bool flows = false; /* an identity */
    for (int i = 0; row->kind != ROW_OPS && i < row->n_out; i++) flows |= has_grad(m, row->out[i]);
    return flows;
}

bool mirror_one_buffer(const Mirror *m, const TraceValue *a, const TraceValue *b) {
    if (a == b) return true;
    /* each block that goes round a ring has a buffer of its own, under one name */
    const bool view = !a->alive || !b->alive;
    return view && !strcmp(a->shape.name, b->shape.name) && block_same_shape(m->g, a, b) &&
           mirror_again(m, a) == mirror_again(m, b);
}
int mirror_saved(const Mirror *m, const MirrorRow *row, bool rest, const TraceValue **out,
                 int max) {
    int n = 0, all = row->n_back + row->n_grad;
    for (int i = 0; i < all; i++) {
        const TraceCompute *c = i < row->n_back ? row->back[i].f : row->grad[i - row->n_back].made;
        bool low = i < row->n_back && row->back[i].rest;
        for (int k = 0; i >= row->n_back && k < row->n_op; k++)
            low |= row->op[k].rest && mirrors(m->g->t, row->op[k].f, c);
        for (int k = 0; low == rest && k < c->n_inputs; k++) {
            if (subject_is_gradient(c->reads[k]) || trace_param(m->g->t, c->inputs[k])) continue;
            const TraceValue *v =
                trace_value(m->g->t, c->inputs[k], c->input_step ? c->input_step[k] : c->step);
            bool have = !v;
            for (int j = 0; j < n && !have; j++) have = mirror_one_buffer(m, out[j], v);
            if (!have && n < max) out[n++] = v;
        }
    }
    return n;
}

bool mirror_again(const Mirror *m, const TraceValue *v) { return v->step >= m->first_back; }

bool mirror_moves(const TraceParam *p) {
    return p && p->rest.symbolic && p->compute.symbolic &&
           strcmp(p->rest.symbolic, p->compute.symbolic) != 0;
}

const TraceCollective *mirror_fetch(const Mirror *m, const TraceParam *p, int nth) {
    enum { MAX_STEPS = 64 };
    const Trace *t = m->g->t;
    int n = 0, step[MAX_STEPS]; /* of gathers that travel with others, its copies */
    if (!mirror_moves(p)) return NULL;
    for (int i = 0; i < t->n_values && n < MAX_STEPS; i++)
        if (t->values[i].step >= 0 && trace_param(t, t->values[i].shape.name) == p)
            step[n++] = t->values[i].step;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        bool brings = trace_param(t, c->value) == p;
        for (int k = 0; k < c->n_with && !brings; k++)
            for (int j = 0; j < n; j++) brings |= c->with[k] == step[j];
        /* what was updated travels after the step */
        brings &= c->pass != PHASE_OPTIMIZER && words_group_of(&c->groups, m->g->rank) >= 0;
        if (brings && nth-- == 0) return c;
    }
    return NULL;
}

bool mirror_freed(const Mirror *m, const TraceParam *p) {
    const TraceCollective *c = mirror_fetch(m, p, 0);
    if (c && c->held) return c->held->until < m->first_back;
    return mirror_fetch(m, p, 1) != NULL;
}

/* ---- the whole ---- */

/* Every row whose input and output have a gradient has a mirror image. */
static bool is_whole(const Mirror *m, const MirrorStrip *s) {
    for (int i = 0; i < s->n; i++) {
        const MirrorRow *r = &s->row[i];
        bool need = false, made = false;
        for (int k = 0; k < r->n_in; k++) need |= has_grad(m, r->in[k]);
        for (int k = 0; k < r->n_out; k++) made |= has_grad(m, r->out[k]);
        if (r->kind == ROW_OPS && need && made && r->n_back == 0) return false;
    }
    return s->n > 0 && s->n < MIRROR_MAX * 2;
}

/* What a chain reads from outside: the value that has a gradient, else the first. */
static const char *chain_input(const Mirror *m, const MirrorStrip *s) {
    const char *first = NULL;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->row[i].n_in; k++) {
            const char *value = s->row[i].in[k];
            bool made = false; /* by an op; a move only passes on */
            for (int q = 0; q < s->n; q++)
                made |= s->row[q].kind == ROW_OPS && makes(&s->row[q], value);
            if (made) continue;
            if (has_grad(m, value)) return value;
            if (!first) first = value;
        }
    return first;
}

static bool mirrors_strip(Mirror *m, const BlockStrip *b) {
    const BlockGraph *g = m->g;
    if (b->last < 0) return true;
    MirrorStrip *s = &m->strip[m->n++];
    *s = (MirrorStrip){.strip = b, .plain = b->to < 0};
    s->branch = g->node[b->last].out ? g->node[b->last].out->shape.name : g->node[b->last].name;
    s->to = s->plain ? s->branch : g->node[b->to].name;
    s->row = ARENA_ARRAY(g->arena, MirrorRow, b->n + MIRROR_MAX * 2);
    int *level = ARENA_ARRAY(g->arena, int, b->n + 1);
    for (int k = 0; k < b->n; k++) level[k] = g->node[b->node[k]].level;
    if (s->plain) late_levels(g, b, level);
    else join_moves(g, b, level);
    bool *beside = ARENA_ARRAY(g->arena, bool, b->n + 1);
    mirror_beside(g, b, level, beside);
    for (int k = 0; k < b->n; k++) add_node(g, s, b->node[k], level[k], beside[k]);
    for (int k = 0; k < s->n; k++) read_ends(g, &s->row[k]);
    s->from = s->plain ? chain_input(m, s) : g->node[b->from].name;
    read_back(m, s);
    begin_beside(s);
    for (int k = 0; k < s->n; k++) s->row[k].acts = mirror_has_back(m, &s->row[k]);
    mirror_pass(m, s);
    return is_whole(m, s);
}

Mirror *mirror_new(const BlockGraph *g) {
    const Trace *t = g->t;
    Mirror *m = ARENA_NEW(g->arena, Mirror);
    int mirrored = 0;
    m->g = g;
    m->first_back = -1;
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].pass == PHASE_BACKWARD &&
            (m->first_back < 0 || t->computes[i].step < m->first_back))
            m->first_back = t->computes[i].step;
    for (int i = 0; i < g->n_strips && m->first_back >= 0; i++)
        if (!mirrors_strip(m, &g->strip[i])) return NULL;
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < m->strip[i].n; k++)
            mirrored +=
                m->strip[i].row[k].n_back + m->strip[i].row[k].n_grad + m->strip[i].row[k].n_conj;
    return mirrored > 0 ? m : NULL;
}
