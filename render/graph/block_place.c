/* Levels and columns of one strip. Boxes of one level stand side by side, labels live between
 * levels, so no label ever meets a box of another column. A wire keeps its column from the box that
 * makes the value to the box that reads it. */
#include "render/graph/block_place.h"
#include "render/graph/grads.h"
#include "base/text.h"
#include <assert.h>
#include <string.h>

static bool has_matrix(const BlockOp *op) {
    for (int i = 0; i < op->n_param; i++)
        if (op->param[i]->compute.nd >= 2) return true;
    return false;
}

/* Are both steps the backward of one op, which makes several gradients of what it gets? */
static bool one_backward(const BlockGraph *g, int i, int j) {
    const BlockNode *a = &g->node[i], *b = &g->node[j];
    return g->pass == PHASE_BACKWARD && i != j && a->kind == NODE_OP && b->kind == NODE_OP &&
           a->strip == b->strip && a->n_in == 1 && b->n_in == 1 &&
           block_real(g, a->in[0]) == block_real(g, b->in[0]) && !a->op[0].n_param &&
           !b->op[0].n_param && !a->op[0].n_leave && !b->op[0].n_leave &&
           text_same(a->op[0].c->op, b->op[0].c->op) &&
           text_same(a->op[0].c->module, b->op[0].c->module) && a->op[0].c->module;
}
static bool has_sibling(const BlockGraph *g, int i) {
    for (int j = 0; j < g->n; j++)
        if (one_backward(g, i, j)) return true;
    return false;
}

/* An op that changes no shape abuts the op whose result only it reads. */
static bool abuts(const BlockGraph *g, int i) {
    const BlockNode *n = &g->node[i];
    if (n->kind != NODE_OP || n->n_in != 1 || n->alias != i || has_matrix(&n->op[0])) return false;
    const BlockNode *p = &g->node[block_real(g, n->in[0])], *q = &g->node[n->in[0]];
    if (n->op[0].n_leave) return false; /* its gradient leaves beside a box of its own */
    if (g->pass == PHASE_BACKWARD && has_sibling(g, block_real(g, n->in[0]))) return false;
    return p->kind == NODE_OP && p->strip == n->strip && q->users == 1 && p->n_op < BLOCK_MAX_OPS &&
           block_same_shape(g, q->out, n->out);
}

static void stack(BlockGraph *g, BlockStrip *s) {
    for (int k = 0; k < s->n; k++) {
        int i = s->node[k];
        if (!abuts(g, i)) continue;
        int r = block_real(g, g->node[i].in[0]);
        BlockNode *head = &g->node[r], *n = &g->node[i];
        head->op[head->n_op++] = n->op[0];
        head->out = n->out;
        head->users = n->users;
        n->alias = r;
        if (s->last == i) s->last = r;
    }
    for (int k = 0; k < s->n; k++)
        for (int j = 0; j < g->node[s->node[k]].n_in; j++)
            g->node[s->node[k]].in[j] = block_real(g, g->node[s->node[k]].in[j]);
    s->last = s->last >= 0 ? block_real(g, s->last) : -1;
}

/* The nodes of the strip that read the output of i, in step order; returns their number. */
static int readers(const BlockGraph *g, const BlockStrip *s, int i, int *out, int max) {
    int n = 0;
    for (int k = 0; k < s->n; k++) {
        const BlockNode *x = &g->node[s->node[k]];
        bool reads = false;
        for (int j = 0; x->alias == s->node[k] && j < x->n_in; j++) reads |= x->in[j] == i;
        if (reads && n < max) out[n++] = s->node[k];
    }
    return n;
}

enum { MAX_BRANCH = 16, MAX_FAN = 64, MAX_RING = 256 };
/* Nodes of one branch, and where it joins others: once, or round a ring at each block. */
typedef struct {
    int n, node[MAX_RING], n_join, join[MAX_RING];
} Branch;

/* Follows a chain of single inputs and single readers down to where it joins others. */
static Branch follow(const BlockGraph *g, const BlockStrip *s, int i) {
    Branch b = {0};
    while (b.n < MAX_BRANCH) {
        int next[2];
        b.node[b.n++] = i;
        int n = readers(g, s, i, next, 2);
        if (n != 1 || i == s->last) break;
        if (g->node[next[0]].n_in != 1) {
            b.join[b.n_join++] = next[0];
            break;
        }
        i = next[0];
    }
    return b;
}

static bool alike_params(const BlockGraph *g, const BlockOp *a, const BlockOp *b) {
    if (a->n_param != b->n_param || (a->fetch != NULL) != (b->fetch != NULL)) return false;
    for (int i = 0; i < a->n_param; i++) {
        const TraceParam *p = a->param[i], *q = b->param[i];
        const TraceLocal *x = words_find_local(&p->compute, g->rank),
                         *y = words_find_local(&q->compute, g->rank);
        if (!text_same(p->compute.symbolic, q->compute.symbolic) ||
            !text_same(p->style, q->style) || !x || !y || x->bytes != y->bytes)
            return false;
    }
    return true;
}

/* Is the step one that is wrong, and so shown alone? */
static bool is_marked(const BlockGraph *g, const BlockNode *n) {
    if (n->step == g->wrong_step) return true;
    if (n->coll) return n->coll->wrong || n->coll->planted;
    if (n->move) return n->move->wrong || n->move->planted;
    return n->kind == NODE_OP && (n->op[0].c->wrong || n->op[0].c->planted);
}

static bool alike(const BlockGraph *g, int i, int j) {
    const BlockNode *a = &g->node[i], *b = &g->node[j];
    if (is_marked(g, a) || is_marked(g, b)) return false;
    if (a->kind != b->kind || !a->out || !b->out || !block_same_shape(g, a->out, b->out))
        return false;
    if (a->kind == NODE_OP)
        return text_same(a->op[0].c->op, b->op[0].c->op) && alike_params(g, &a->op[0], &b->op[0]);
    if (a->kind == NODE_COLL)
        return text_same(a->coll->op, b->coll->op) && text_same(a->coll->axis, b->coll->axis) &&
               a->coll->bytes_sent == b->coll->bytes_sent &&
               text_same(a->coll->dim_symbol, b->coll->dim_symbol);
    return a->kind == NODE_MOVE && text_same(a->move->op, b->move->op);
}

/* Backward, an op between a collective and a weight has a box of its own: does it change nothing
 * but numbers, so that a branch with it and one without are alike? */
static bool is_extra(const BlockGraph *g, int i) {
    const BlockNode *n = &g->node[i];
    return g->pass == PHASE_BACKWARD && n->kind == NODE_OP && n->n_in == 1 && !n->op[0].n_param &&
           !n->op[0].n_leave && n->n_op == 1 && block_same_shape(g, g->node[n->in[0]].out, n->out);
}

/* Pairs the nodes of two branches, other[i]: that of b for node i of a; the one before where a has
 * one more. */
static bool alike_branches(const BlockGraph *g, const Branch *a, const Branch *b, int *other) {
    int j = 0;
    if (!a->n_join || !b->n_join || a->join[0] != b->join[0]) return false;
    for (int i = 0; i < a->n; i++) {
        const bool same = j < b->n && alike(g, a->node[i], b->node[j]);
        if (!same && (!j || !is_extra(g, a->node[i]))) return false;
        other[i] = b->node[same ? j++ : j - 1];
    }
    return j == b->n;
}

/* Pairs that are being found: other[k] is that of node k of the branch. */
typedef struct {
    const BlockGraph *g;
    const BlockStrip *s;
    Branch *a;
    int *other;
} Pairs;
/* Are both paired already, and with each other? *may: neither is, and they can be. */
static bool are_pair(const Pairs *p, int i, int j, bool *may) {
    *may = alike(p->g, i, j) && i != p->s->last && j != p->s->last && p->a->n < MAX_RING;
    for (int k = 0; k < p->a->n; k++) {
        if (p->a->node[k] == i && p->other[k] == j) return true;
        *may &= p->a->node[k] != i && p->a->node[k] != j && p->other[k] != i && p->other[k] != j;
    }
    return false;
}
/* Pairs node j with node i, what they read that is not the same, and what reads either, until all
 * joins. */
static bool pair_up(const Pairs *p, int i, int j) {
    Branch *a = p->a;
    const BlockNode *x = &p->g->node[i], *y = &p->g->node[j];
    int ri[MAX_FAN], rj[MAX_FAN], n = readers(p->g, p->s, i, ri, MAX_FAN);
    bool may;
    if (are_pair(p, i, j, &may)) return true;
    if (!may || x->n_in != y->n_in || n == 0 || n == MAX_FAN ||
        readers(p->g, p->s, j, rj, MAX_FAN) != n)
        return false;
    a->node[a->n] = i;
    p->other[a->n++] = j;
    for (int k = 0; k < x->n_in; k++)
        if (x->in[k] != y->in[k] && !pair_up(p, x->in[k], y->in[k])) return false;
    for (int k = 0; k < n; k++) {
        const bool joins = ri[k] == rj[k];
        if (joins && a->n_join == MAX_RING) return false;
        if (joins) a->join[a->n_join++] = ri[k];
        else if (!pair_up(p, ri[k], rj[k])) return false;
    }
    return true;
}
/* Do two branches from one node do the same all the way to where they join: in a chain, or round a
 * ring, at each of its blocks? */
static bool find_branches(const BlockGraph *g, const BlockStrip *s, int i, int j, Branch *a,
                          int *other) {
    *a = follow(g, s, i);
    const Branch b = follow(g, s, j);
    if (alike_branches(g, a, &b, other)) return true;
    *a = (Branch){0};
    return pair_up(&(Pairs){g, s, a, other}, i, j);
}

static const char *op_word(const BlockGraph *g, int i) {
    return g->node[i].op[0].c->module && *words_leaf(g->node[i].op[0].c->module) &&
                   g->node[i].op[0].n_param
               ? words_leaf(g->node[i].op[0].c->module)
               : words_leaf(g->node[i].name);
}

/* "dq" of the gradient of q_rope, "d gate_act" of that of gate_act. */
static const char *role_of(const BlockGraph *g, const BlockNode *n) {
    return words_gradient(g->arena, words_short(g->arena, g->t, n->op[0].c->makes.of));
}
/* The same of both of a box for two; of both parts of a query that attention takes in two, "dq". */
static const char *roles_of(const BlockGraph *g, const BlockNode *n) {
    const char *one = role_of(g, n), *two = n->twin < 0 ? one : role_of(g, &g->node[n->twin]);
    if (strstr(one, "q_") && strstr(two, "q_")) return "dq";
    return strcmp(one, two) ? arena_printf(g->arena, "%s, %s", one, two) : one;
}

/* The gradients that leave at either of two twins. */
static void merge_leaves(Arena *a, BlockOp *x, const BlockOp *y) {
    ParamGrad *all = ARENA_ARRAY(a, ParamGrad, x->n_leave + y->n_leave);
    if (x->n_leave) memcpy(all, x->leave, sizeof *all * (size_t)x->n_leave);
    if (y->n_leave) memcpy(all + x->n_leave, y->leave, sizeof *all * (size_t)y->n_leave);
    x->n_leave += y->n_leave;
    x->leave = all;
}

/* Ops of both stacks in one list: common ones once, others marked with the one that has them. */
static void merge_ops(Arena *arena, BlockNode *a, const BlockNode *b, const char *na,
                      const char *nb) {
    BlockOp op[BLOCK_MAX_OPS];
    int n = 0, j = 0;
    for (int i = 0; i < a->n_op && n < BLOCK_MAX_OPS; i++) {
        int k = j;
        while (k < b->n_op && strcmp(a->op[i].c->op, b->op[k].c->op)) k++;
        bool both = k < b->n_op;
        for (; both && j < k && n < BLOCK_MAX_OPS; j++) op[n] = b->op[j], op[n++].only = nb;
        if (n >= BLOCK_MAX_OPS) break;
        op[n] = a->op[i];
        if (!both) op[n].only = na;
        else merge_leaves(arena, &op[n], &b->op[k]);
        n++;
        if (both) j = k + 1;
    }
    for (; j < b->n_op && n < BLOCK_MAX_OPS; j++) op[n] = b->op[j], op[n++].only = nb;
    memcpy(a->op, op, (size_t)n * sizeof *op);
    a->n_op = n;
}

/* "q_pe", "d q_pe": where short names are one. */
static const char *own_name(const BlockGraph *g, int i) {
    const Subject of = g->node[i].op[0].c->makes;
    return subject_is_gradient(of) ? words_gradient(g->arena, words_leaf(of.of))
                                   : words_leaf(g->node[i].name);
}

static void merge_branches(BlockGraph *g, const Branch *a, const int *other) {
    const BlockOp *first = &g->node[a->node[0]].op[0];
    const char *na = op_word(g, a->node[0]), *nb = op_word(g, other[0]);
    const char *sa = block_differs(g->arena, na, nb), *sb = block_differs(g->arena, nb, na);
    if (strspn(sa, "0123456789") == strlen(sa) || strspn(sb, "0123456789") == strlen(sb))
        sa = na, sb = nb; /* "1" of w1 names nothing */
    if (g->pass == PHASE_BACKWARD && first->c->makes.role == OF_GRADIENT && !first->n_param)
        sa = role_of(g, &g->node[a->node[0]]), sb = role_of(g, &g->node[other[0]]);
    if (!strcmp(sa, sb)) sa = own_name(g, a->node[0]), sb = own_name(g, other[0]);
    bool past = false; /* backward, behind their weights: of one value, not of both */
    for (int i = 0; i < a->n; i++) {
        BlockNode *x = &g->node[a->node[i]], *y = &g->node[other[i]];
        const bool extra = i && other[i] == other[i - 1];
        x->twin = other[i];
        if (extra) x->op[0].only = sa;
        if (extra) continue;
        if (x->kind == NODE_OP) merge_ops(g->arena, x, y, sa, sb);
        past |= g->pass == PHASE_BACKWARD && x->kind == NODE_OP && x->op[0].n_param;
        x->pair = past ? NULL : arena_printf(g->arena, "%s, %s", sa, sb);
        y->alias = a->node[i];
    }
    for (int i = 0; i < a->n_join; i++) {
        BlockNode *join = &g->node[a->join[i]];
        int n = 0;
        for (int k = 0; k < join->n_in; k++)
            if (block_real(g, join->in[k]) == join->in[k]) join->in[n++] = join->in[k];
        join->n_in = n;
    }
}

/* Backward, do both make the gradient of one value, of different uses? */
static bool is_term(const BlockGraph *g, int i, int j) {
    return g->pass == PHASE_BACKWARD && !g->node[i].op[0].n_param &&
           !strcmp(g->node[i].name, g->node[j].name);
}

/* Forgets the nodes that others stand for. */
static void keep_live(const BlockGraph *g, BlockStrip *s) {
    int live = 0;
    for (int k = 0; k < s->n; k++)
        if (g->node[s->node[k]].alias == s->node[k]) s->node[live++] = s->node[k];
    s->n = live;
}

static bool passes_weight(const BlockGraph *g, const Branch *a) {
    for (int i = 0; i < a->n; i++)
        if (g->node[a->node[i]].kind == NODE_OP && g->node[a->node[i]].op[0].n_param) return true;
    return false;
}
/* Where more than two branches leave a node, alike ones behind the first become one (k and v);
 * backward the first, too, where they join before any weight: parts of one value. */
static void find_twins(BlockGraph *g, BlockStrip *s) {
    int count = s->n;
    for (int k = -1; k < count; k++) {
        int from = k < 0 ? s->from : s->node[k], fan[MAX_FAN];
        if (from < 0 || (k >= 0 && g->node[from].alias != from)) continue;
        int n = readers(g, s, from, fan, MAX_FAN);
        for (int i = g->pass == PHASE_BACKWARD ? 0 : 1; i < n && n > 2; i++)
            for (int j = i + 1; j < n; j++) {
                if (g->node[fan[i]].kind != NODE_OP || g->node[fan[i]].twin >= 0) continue;
                if (is_term(g, fan[i], fan[j])) continue;
                Branch a;
                int other[MAX_RING];
                if (!find_branches(g, s, fan[i], fan[j], &a, other)) continue;
                if (i == 0 && passes_weight(g, &a)) continue;
                merge_branches(g, &a, other);
                n = j = readers(g, s, from, fan, MAX_FAN);
                i = 0; /* others have moved up */
            }
    }
    keep_live(g, s);
    s->last = s->last >= 0 ? block_real(g, s->last) : -1;
}

/* The one value that both nodes read, each to take a piece of it, so that nothing of it is left;
 * -1: they do not. */
static int pieces_of(const BlockGraph *g, int i, int j) {
    const BlockNode *a = &g->node[i], *b = &g->node[j];
    if (a->kind != NODE_OP || b->kind != NODE_OP || a->n_in != 1 || b->n_in != 1 ||
        a->in[0] != b->in[0] || a->op[0].n_param || b->op[0].n_param || is_marked(g, a) ||
        is_marked(g, b) || !text_same(a->op[0].c->op, b->op[0].c->op))
        return -1;
    const int64_t all = block_bytes(g, &g->node[a->in[0]]);
    return block_bytes(g, a) + block_bytes(g, b) == all ? a->in[0] : -1;
}
/* Two pieces of a value that are read by the same become one: its split. */
static void find_pieces(BlockGraph *g, BlockStrip *s) {
    for (int k = 0; g->pass == PHASE_FORWARD && k < s->n; k++) {
        int fan[MAX_FAN], other[MAX_RING], ri[MAX_FAN], rj[MAX_FAN];
        if (g->node[s->node[k]].alias != s->node[k] ||
            readers(g, s, s->node[k], fan, MAX_FAN) != 2 ||
            pieces_of(g, fan[0], fan[1]) != s->node[k])
            continue;
        Branch a = {.n = 1, .node = {fan[0]}};
        other[0] = fan[1];
        a.n_join = readers(g, s, fan[0], ri, MAX_FAN);
        bool same = a.n_join > 0 && a.n_join < MAX_FAN &&
                    readers(g, s, fan[1], rj, MAX_FAN) == a.n_join && fan[0] != s->last &&
                    fan[1] != s->last;
        for (int j = 0; same && j < a.n_join; j++) {
            same = ri[j] == rj[j];
            a.join[j] = ri[j];
        }
        if (same) merge_branches(g, &a, other);
    }
    keep_live(g, s);
}

/* Does nothing in the strip read what the node makes? */
static bool is_unread(const BlockGraph *g, const BlockStrip *s, int i) {
    int next[1];
    return i != s->last && readers(g, s, i, next, 1) == 0;
}
/* Does x take the index list of the rows that y takes, the same way? */
static bool lists_rows(const BlockNode *x, const BlockNode *y) {
    if (x == y || x->kind != y->kind || y->with || y->with_move || !y->out ||
        y->out->list != x->step)
        return false;
    if (x->kind == NODE_MOVE)
        return text_same(x->move->op, y->move->op) && text_same(x->move->axes, y->move->axes);
    return x->kind == NODE_COLL && text_same(x->coll->op, y->coll->op) &&
           text_same(x->coll->axis, y->coll->axis);
}
/* An index list that goes where its rows go, and that no step reads there, is drawn with them. */
static void ride_along(BlockGraph *g, BlockStrip *s) {
    for (int k = s->n - 1; k >= 0; k--) { /* the last first: what it read is unread without it */
        BlockNode *x = &g->node[s->node[k]];
        for (int m = 0; m < s->n && x->alias == s->node[k]; m++) {
            BlockNode *y = &g->node[s->node[m]];
            if (!lists_rows(x, y) || is_marked(g, x) || is_marked(g, y) ||
                !is_unread(g, s, s->node[k]))
                continue;
            y->with = x->coll;
            y->with_move = x->move;
            x->alias = s->node[m];
        }
    }
    keep_live(g, s);
}

/* Level of a node: one below the lowest of its inputs. Inputs stand just above their first reader.
 */
static void set_levels(BlockGraph *g, BlockStrip *s) {
    bool moved = true;
    const BlockHops hops = block_hops(g, s);
    for (int k = 0; k < s->n; k++)
        g->node[s->node[k]].level = g->node[s->node[k]].kind == NODE_INPUT ? -1 : 0;
    for (int round = 0; moved && round <= s->n; round++) {
        moved = false;
        for (int k = 0; k < s->n; k++) {
            BlockNode *n = &g->node[s->node[k]];
            for (int j = 0; j < n->n_in; j++) {
                int above = n->in[j] == s->from ? -1 : g->node[n->in[j]].level;
                if (n->level <= above) n->level = above + 1, moved = true;
            }
        }
        for (int k = 0; k < hops.n; k++) {
            BlockNode *n = &g->node[hops.pair[k].below];
            const int above = g->node[hops.pair[k].above].level;
            if (n->level <= above) n->level = above + 1, moved = true;
        }
    }
    s->levels = 0;
    for (int k = 0; k < s->n; k++) {
        BlockNode *n = &g->node[s->node[k]];
        if (n->level + 1 > s->levels) s->levels = n->level + 1;
        if (n->kind != NODE_INPUT) continue;
        int r[1];
        if (readers(g, s, s->node[k], r, 1)) n->level = g->node[r[0]].level - 1;
    }
}

typedef struct {
    int from, to, col;
    bool aside; /* its box stands beside the column, as others do that read the same there */
} Wire;
typedef struct {
    BlockGraph *g;
    BlockStrip *s;
    bool ring; /* are there hops in the strip? */
    int n, cap;
    Wire *wire;
} Wires;

/* Is there a box of this level in the column? The wires that led to it are used up. */
static bool stands_at(const Wires *w, int col, int level) {
    for (int k = 0; k < w->s->n; k++) {
        const BlockNode *n = &w->g->node[w->s->node[k]];
        if (n->level == level && n->col >= 0 && n->col <= col && col <= n->col_last) return true;
    }
    return false;
}

static bool has_wire(const Wires *w, int col) {
    for (int i = 0; i < w->n; i++)
        if (w->wire[i].col == col) return true;
    return false;
}
static int free_column(const Wires *w, int from, int level) {
    while (has_wire(w, from) || stands_at(w, from, level)) from++;
    return from;
}
/* The same for a wire that begins under the boxes of the level: one that is several columns wide
 * sends what it makes down the first. */
static int free_below(const Wires *w, int from, int level) {
    bool taken = true;
    for (; taken; from += taken) {
        taken = has_wire(w, from);
        for (int k = 0; k < w->s->n; k++) {
            const BlockNode *n = &w->g->node[w->s->node[k]];
            taken |= n->level == level && n->col == from;
        }
    }
    return from;
}

/* Columns that a branch comes to fill before it joins others: backward, the gradients of an op
 * stand side by side, so that one box holds them. */
static int branch_columns(const BlockGraph *g, const BlockStrip *s, int i) {
    int next[MAX_FAN], n = readers(g, s, i, next, MAX_FAN), cols = 0;
    for (int k = 0; k < n && g->pass == PHASE_BACKWARD; k++)
        if (g->node[next[k]].n_in == 1) cols += branch_columns(g, s, next[k]);
    return cols > 1 ? cols : 1;
}

static void add_wire(Wires *w, Wire wire) {
    *ARENA_PUSH(w->g->arena, w->wire, w->n, w->cap) = wire;
}
/* The column in which another term of the same sum comes down; -1: none does. */
static int column_of_sum(const Wires *w, int i, int to) {
    for (int k = 0; k < w->n; k++)
        if (w->wire[k].to == to && w->g->node[w->wire[k].from].level < w->g->node[i].level &&
            !strcmp(w->g->node[w->wire[k].from].name, w->g->node[i].name))
            return w->wire[k].col;
    return -1;
}
/* Does nothing but other terms of it come down between the column of node i, which makes a term of
 * a sum, and that one? Then one box under all of them holds the sum. */
static bool clear_to_sum(const Wires *w, int i, int to, int sum) {
    const BlockNode *n = &w->g->node[i];
    const int lo = n->col < sum ? n->col : sum, hi = n->col < sum ? sum : n->col;
    bool clear = true;
    for (int k = 0; k < w->n && clear; k++)
        clear = w->wire[k].to == to || w->wire[k].col < lo || w->wire[k].col > hi;
    for (int k = 0; k < w->s->n && clear; k++) {
        const BlockNode *q = &w->g->node[w->s->node[k]];
        int out[2];
        if (q->level != n->level || q->col_last < lo || q->col > hi) continue;
        clear = readers(w->g, w->s, w->s->node[k], out, 2) == 1 && out[0] == to;
    }
    return clear;
}
/* Round a ring, what several blocks are computed with goes down one column past the boxes that
 * read it, which stand beside; and terms of one sum come down in the column of the first. */
static bool send_round(Wires *w, int i, int col, int level) {
    int out[MAX_RING], n = readers(w->g, w->s, i, out, MAX_RING), first = 1 << 20, late = 0;
    for (int k = 0; k < n; k++)
        if (w->g->node[out[k]].level < first) first = w->g->node[out[k]].level;
    for (int k = 0; k < n && w->g->pass == PHASE_FORWARD; k++)
        late += w->g->node[out[k]].level > first;
    int sum = n == 1 ? column_of_sum(w, i, out[0]) : -1;
    if (sum >= 0 && clear_to_sum(w, i, out[0], sum)) sum = -1;
    if (!w->ring || (!late && sum < 0)) return false;
    if (sum >= 0) add_wire(w, (Wire){i, out[0], sum, false});
    for (int k = 0; k < n && late; k++) {
        bool alone = true;
        for (int q = 0; q < n; q++)
            alone &= q == k || w->g->node[out[q]].level != w->g->node[out[k]].level;
        if (w->g->node[out[k]].level > first) add_wire(w, (Wire){i, out[k], col, !alone});
    }
    for (int k = 0, at = col; k < n && late; k++) {
        if (w->g->node[out[k]].level > first) continue;
        at = free_below(w, at + 1, level);
        add_wire(w, (Wire){i, out[k], n - late > 1 ? at : col, false});
        at += branch_columns(w->g, w->s, out[k]) - 1;
    }
    return true;
}
/* Wires of a node's output: the first reader stays in the column, every other gets a free one to
 * the right of what the one before will fill. A value that one box reads twice comes by one wire.
 */
static void send_out(Wires *w, int i, int col, int level) {
    int out[MAX_FAN], n = readers(w->g, w->s, i, out, MAX_FAN);
    if (send_round(w, i, col, level)) return;
    for (int k = 0; k < n; k++) {
        const int at = k ? free_below(w, col, level) : col;
        add_wire(w, (Wire){i, out[k], at, false});
        col = at + branch_columns(w->g, w->s, out[k]);
    }
}

/* May box i not stand in the column in which a wire to it comes down: does one to another box run
 * on there? */
static bool is_passed(const Wires *w, int i, int col) {
    for (int k = 0; k < w->n; k++)
        if (w->wire[k].col == col && (w->wire[k].to != i || w->wire[k].aside)) return true;
    return false;
}

/* Forgets the wires that lead to node i. */
static void use_up(Wires *w, int i) {
    int live = 0;
    for (int k = 0; k < w->n; k++)
        if (w->wire[k].to != i) w->wire[live++] = w->wire[k];
    w->n = live;
}

static void place_node(Wires *w, int i) {
    BlockNode *n = &w->g->node[i];
    int lo = 1 << 20, hi = -1;
    for (int k = 0; k < w->n; k++) {
        if (w->wire[k].to != i) continue;
        if (w->wire[k].col < lo) lo = w->wire[k].col;
        if (w->wire[k].col > hi) hi = w->wire[k].col;
        for (int j = 0; j < n->n_in; j++)
            if (n->in[j] == w->wire[k].from) n->in_col[j] = w->wire[k].col;
    }
    if (hi < 0) lo = hi = free_column(w, 0, n->level);
    bool foreign = false;
    for (int k = 0; k < w->n; k++)
        foreign |= w->wire[k].to != i && w->wire[k].col >= lo && w->wire[k].col <= hi;
    for (int col = lo; col <= hi; col++) foreign |= stands_at(w, col, n->level);
    if (is_passed(w, i, lo)) { /* it reads of what goes on */
        use_up(w, i);
        lo = hi = free_column(w, lo + 1, n->level);
    }
    n->col = lo;
    n->col_last = foreign ? lo : hi;
    use_up(w, i);
}

/* Does nothing but b stand or pass, at the level of a and b, right of a and up to b? */
static bool side_by_side(const BlockGraph *g, const BlockStrip *s, const BlockNode *a,
                         const BlockNode *b) {
    if (a->level != b->level || b->col <= a->col_last) return false;
    for (int k = 0; k < s->n; k++) {
        const BlockNode *q = &g->node[s->node[k]];
        if (q == a || q == b) continue;
        if (q->level == a->level && q->col_last > a->col_last && q->col <= b->col) return false;
        for (int j = 0; j < q->n_in; j++) {
            int from = q->in[j] == s->from ? -1 : g->node[q->in[j]].level;
            if (from < a->level && q->level > a->level && q->in_col[j] > a->col_last &&
                q->in_col[j] <= b->col)
                return false;
        }
    }
    return true;
}

/* "gate, up" and "up, gate_act": all names, each once. */
static const char *join_saved(Arena *a, const char *x, const char *y) {
    if (!x || !y) return x ? x : y;
    Str s = str_new(a);
    str_add(&s, x);
    for (const char *q = y; *q;) {
        size_t n = strcspn(q, ",");
        const char *name = arena_strndup(a, q, n), *in = strstr(s.s, name);
        bool whole = in && (in == s.s || in[-1] == ' ') && (!in[n] || in[n] == ',');
        if (!whole) str_addf(&s, ", %s", name);
        q += n + strspn(q + n, ", ");
    }
    return s.s;
}

/* The gradients that the backward of one op makes leave one box, as wide as they stand. */
static void share_boxes(BlockGraph *g, BlockStrip *s) {
    for (int k = 0; k < s->n; k++) g->node[s->node[k]].shared = -1;
    for (int k = 0; k < s->n; k++)
        for (int m = 0; m < s->n; m++) {
            const int i = s->node[k], j = s->node[m];
            BlockNode *a = &g->node[i], *b = &g->node[j];
            if (a->shared >= 0 || b->shared >= 0 || !one_backward(g, i, j) ||
                !side_by_side(g, s, a, b))
                continue;
            b->shared = i;
            a->col_last = b->col_last;
            a->op[0].saved = join_saved(g->arena, a->op[0].saved, b->op[0].saved);
            a->role = roles_of(g, a), b->role = roles_of(g, b);
            m = -1; /* the next may stand beside the wider box */
        }
    for (int k = 0; k < s->n; k++) {
        BlockNode *b = &g->node[s->node[k]];
        if (b->shared >= 0) b->op[0].saved = g->node[b->shared].op[0].saved;
    }
}

/* Collectives of one kind that stand side by side are one box, and each wire goes through it. */
static void join_collectives(BlockGraph *g, BlockStrip *s) {
    for (int k = 0; k < s->n; k++) g->node[s->node[k]].joined = -1;
    for (int k = 0; k < s->n; k++)
        for (int m = 0; m < s->n; m++) {
            BlockNode *a = &g->node[s->node[k]], *b = &g->node[s->node[m]];
            if (a == b || !a->coll || !b->coll || a->joined >= 0 || b->joined >= 0 ||
                is_marked(g, a) || is_marked(g, b) || !text_same(a->coll->op, b->coll->op) ||
                !text_same(a->coll->axis, b->coll->axis) || a->coll->reduce || b->coll->reduce ||
                !text_same(a->coll->dim_symbol, b->coll->dim_symbol) || !side_by_side(g, s, a, b))
                continue;
            for (int q = 0; q < s->n; q++) /* what b has in its box, too */
                if (g->node[s->node[q]].joined == s->node[m])
                    g->node[s->node[q]].joined = s->node[k];
            b->joined = s->node[k];
            a->col_last = b->col_last;
            m = -1; /* the next may stand beside the wider box */
        }
}

static void set_columns(BlockGraph *g, BlockStrip *s) {
    Wires w = {.g = g, .s = s, .ring = block_hops(g, s).n > 0};
    for (int k = 0; k < s->n; k++) g->node[s->node[k]].col = g->node[s->node[k]].col_last = -1;
    if (s->from >= 0) send_out(&w, s->from, 0, -1);
    for (int level = -1; level < s->levels; level++) {
        for (int k = 0; k < s->n; k++)
            if (g->node[s->node[k]].level == level) place_node(&w, s->node[k]);
        for (int k = 0; k < s->n; k++)
            if (g->node[s->node[k]].level == level)
                send_out(&w, s->node[k], g->node[s->node[k]].col, level);
    }
    share_boxes(g, s);
    join_collectives(g, s);
    s->cols = 1;
    for (int k = 0; k < s->n; k++) {
        const BlockNode *n = &g->node[s->node[k]];
        if (n->col_last + 1 > s->cols) s->cols = n->col_last + 1;
        for (int j = 0; j < n->n_in; j++)
            if (n->in_col[j] + 1 > s->cols) s->cols = n->in_col[j] + 1;
    }
}

void block_place_again(BlockGraph *g, int strip) {
    set_levels(g, &g->strip[strip]);
    set_columns(g, &g->strip[strip]);
}

void block_place(BlockGraph *g, int strip) {
    assert(strip >= 0 && strip < g->n_strips);
    BlockStrip *s = &g->strip[strip];
    stack(g, s);
    find_twins(g, s);
    find_pieces(g, s);
    ride_along(g, s);
    block_place_again(g, strip);
}
