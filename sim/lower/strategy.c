/* Strategies: for each axis the first that applies, looked up in the op's rule, its linearity and
 * how the operands lie. No op is known by name. Refuses to move anything. */
#include "lower/strategy.h"
#include "ops/op.h"
#include <string.h>

/* ---- placement of one axis seen through the rule's letters ---- */
typedef struct {
    bool cut;
    char letter;
    int type;
} Seen;
static Seen seen(const Layout *L, const char *letters, int axis) {
    int d = layout_where(L, axis);
    return d >= 0 && d < L->ndim ? (Seen){true, letters[d], TY_V} : (Seen){false, 0, L->type[axis]};
}
/* One strategy for one axis: the first that applies. goal: as in strategy_find. */
static Strategy choose(const Lower *l, const GNode *n, const int *in, const Layout *goal,
                       int axis) {
    const Program *p = l->p;
    const Op *op = n->op;
    const Stages *stages = l->a->stages;
    if (stages && stages->axis == axis) return (Strategy){S_AT, 0, (uint8_t)stages->home[l->stage]};
    Seen s[RULE_MAX_IN] = {0};
    bool any_diff = false;
    for (int i = 0; i < n->nin; i++) {
        const Val *v = &p->val[in[i]];
        s[i] = seen(v->kind == KIND_PARAM ? &l->a->compute[v->tensor] : &v->L, n->rule.in[i], axis);
        any_diff |= v->diff;
    }
    static const ValueKind order[] = {KIND_PARAM, KIND_ACTIVATION, KIND_INPUT};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n->nin; i++)
            if (p->val[in[i]].kind == order[k] && s[i].cut &&
                !(n->rule.whole & RULE_BIT(s[i].letter)))
                return (Strategy){S_LETTER, s[i].letter, 0};
    int partial = 0, which = -1;
    bool all_pr = true, uses_differ = false;
    for (int i = 0; i < n->nin; i++) {
        const Val *v = &p->val[in[i]];
        if (!s[i].cut && s[i].type == TY_P && (v->diff || !any_diff)) partial++, which = i;
        all_pr &= !s[i].cut && (s[i].type == TY_P || s[i].type == TY_R);
        uses_differ |= !s[i].cut && s[i].type == TY_R && v->diff;
    }
    if (partial && ((op->lin == LIN_ADD && all_pr) ||
                    (op->lin != LIN_ADD && partial == 1 && op_linear_in(op, which))))
        return (Strategy){S_P, 0, 0};
    /* said to be pending: so is, on the plan's word, all that is added up */
    if (partial && l->declared && op->lin == LIN_ADD && goal && goal->type[axis] == TY_P)
        return (Strategy){S_P, 0, 0};
    int to = partial && goal
                 ? layout_where(goal, axis)
                 : -1; /* the sum is refused: reduce it to where the output has to lie */
    if (to >= 0 && to < n->rule.nout && !(n->rule.whole & RULE_BIT(n->rule.out[to])))
        return (Strategy){S_LETTER, n->rule.out[to], 0};
    return (Strategy){uses_differ ? S_R : S_I, 0, 0};
}

static bool has_axis(const LetterCuts *c, char ch, int axis) {
    for (int i = 0; i < c->n[ch - 'a']; i++)
        if (c->e[ch - 'a'][i].axis == axis) return true;
    return false;
}
static void add_cut(LetterCuts *c, char ch, Entry e) {
    if (c->n[ch - 'a'] == LAYOUT_MAX_ENTRIES) base_die(70, "a letter is cut by too many axes");
    c->e[ch - 'a'][c->n[ch - 'a']++] = e;
}
static void letter_cuts(const Lower *l, const GNode *n, const int *in, const Layout *goal,
                        const Strategy *S, LetterCuts *c) {
    memset(c, 0, sizeof *c);
    for (int params = 1; params >= 0; params--)
        for (int i = 0; i < n->nin; i++) {
            const Val *v = &l->p->val[in[i]];
            if ((v->kind == KIND_PARAM) != params) continue;
            const Layout *L = params ? &l->a->compute[v->tensor] : &v->L;
            for (int d = 0; d < L->ndim; d++)
                for (int k = 0; k < L->n[d]; k++) {
                    Entry e = L->e[d][k];
                    char ch = n->rule.in[i][d];
                    if (S[e.axis].kind == S_LETTER && S[e.axis].letter == ch &&
                        !has_axis(c, ch, e.axis))
                        add_cut(c, ch, e);
                }
        }
    /* cuts that no operand has yet, only the declared output */
    for (int d = 0; goal && d < n->rule.nout; d++)
        for (int k = 0; k < goal->n[d]; k++) {
            Entry e = goal->e[d][k];
            if (S[e.axis].kind == S_LETTER && S[e.axis].letter == n->rule.out[d] &&
                !has_axis(c, n->rule.out[d], e.axis))
                add_cut(c, n->rule.out[d], e);
        }
}
/* An operand of a node, or its output. */
typedef struct {
    const char *letters;
    int nl;
    bool diff;
    const Val *v; /* what the operand is now; NULL: the output */
} Slot;
/* Does the axis cut the tied letter of this operand, because it is the ring and cuts the other? */
static bool round_ring(const Lower *l, const GNode *n, const Strategies *s, const Slot *slot,
                       int axis) {
    return n->rule.tied && axis == l->ring && s->axis[axis].kind == S_LETTER &&
           s->axis[axis].letter == n->rule.to &&
           memchr(slot->letters, n->rule.tied, (size_t)slot->nl);
}
/* Cuts the tied letter as the other is cut round the ring, the node's hops behind. */
static void cut_behind(const Lower *l, const GNode *n, const Strategies *s, const Slot *slot,
                       Layout *L) {
    const LetterCuts *c = &s->cuts;
    if (l->ring < 0 || !round_ring(l, n, s, slot, l->ring)) return;
    int to = n->rule.to - 'a', d = 0;
    while (slot->letters[d] != n->rule.tied) d++;
    for (int k = 0; k < c->n[to]; k++) {
        Entry e = c->e[to][k];
        if (e.axis != l->ring) continue;
        e.shift = (uint8_t)(e.shift + n->hop);
        L->e[d][L->n[d]++] = e;
        L->type[e.axis] = TY_V;
    }
}
/* The layout of an operand or of the output under the strategies. */
static Layout needed(const Lower *l, const GNode *n, const Strategies *s, const Slot *slot) {
    const Mesh *m = l->p->mesh;
    const Strategy *S = s->axis;
    const LetterCuts *c = &s->cuts;
    const char *letters = slot->letters;
    const Val *v = slot->v;
    int nl = slot->nl;
    bool diff = slot->diff;
    Layout L = layout_whole(m, nl, TY_I);
    for (int x = 0; x < m->naxes; x++) {
        int t = TY_I;
        if (S[x].kind == S_AT) {
            L.type[x] = TY_AT;
            L.at[x] = S[x].at;
            continue;
        }
        if (S[x].kind == S_LETTER) {
            if (memchr(letters, S[x].letter, (size_t)nl) || round_ring(l, n, s, slot, x)) continue;
            t = v ? TY_R : n->op->max ? TY_M : TY_P;
        } else if (S[x].kind == S_P && v) {
            Seen now = seen(&v->L, letters, x);
            t = n->op->lin == LIN_ADD || (!now.cut && now.type == TY_P && (diff || s->constant))
                    ? TY_P
                    : TY_R;
        } else t = S[x].kind == S_P ? TY_P : S[x].kind == S_R ? TY_R : TY_I;
        if (!diff && t == TY_R) t = TY_I; /* R and I differ only in the gradient */
        L.type[x] = (uint8_t)t;
    }
    for (int d = 0; d < nl; d++)
        for (int k = 0; k < c->n[letters[d] - 'a']; k++) {
            Entry e = c->e[letters[d] - 'a'][k];
            if (L.n[d] < LAYOUT_MAX_ENTRIES) L.e[d][L.n[d]++] = e;
            if (!e.ghost) L.type[e.axis] = TY_V;
        }
    cut_behind(l, n, s, slot, &L);
    for (int d = 0; d < nl; d++) /* trailing ghosts cut nothing */
        while (L.n[d] && L.e[d][L.n[d] - 1].ghost) memset(&L.e[d][--L.n[d]], 0, sizeof(Entry));
    return L;
}

void strategy_find(const Lower *l, const GNode *n, const int *in, const Layout *goal,
                   Strategies *s) {
    for (int x = 0; x < l->p->mesh->naxes; x++) s->axis[x] = choose(l, n, in, goal, x);
    letter_cuts(l, n, in, goal, s->axis, &s->cuts);
    s->constant = true;
    for (int i = 0; i < n->nin; i++) s->constant &= !l->p->val[in[i]].diff;
}
Layout strategy_operand(const Lower *l, const GNode *n, const Strategies *s, int i, const Val *v) {
    return needed(l, n, s, &(Slot){n->rule.in[i], n->rule.nl[i], v->diff, v});
}
Layout strategy_output(const Lower *l, const GNode *n, const Strategies *s, bool diff) {
    return needed(l, n, s, &(Slot){n->rule.out, n->rule.nout, diff, NULL});
}
