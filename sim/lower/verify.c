/* The static check: cut / partial / equal propagated through the explicit forward and backward
 * program, step by step, from the rules alone. It shares nothing with the pass that inserted the
 * moves. A move is held twice against the layouts of its values: what is declared of it, and what
 * it does (its act, by what each kind of move makes of a cut, a pending sum or equal copies). Which
 * block of a cut a rank gets, and by what a result is multiplied, is no matter of types: the
 * numbers tell. */
#include "base/text.h"
#include "lower/program.h"
#include "ops/op.h"
#include <string.h>

typedef struct {
    Program *p;
    Diags *d;
    bool warn;
    int found, first;
} Verify;

static void finding(Verify *v, const Step *s, const char *text) {
    if (v->first < 0 || s->id < v->first) v->first = s->id;
    v->found++;
    const char *name = step_name(v->p, s, v->p->arena);
    if (!v->p->step[s->id].wrong) v->p->step[s->id].wrong = text;
    const char *line = unasked_line(v->p, s);
    Loc at = program_place(v->p, s);
    if (v->warn) diag_warn(v->d, "W0401", at, line, "%s: %s", name, text);
    else diag_error(v->d, "E0404", at, line, "%s: %s", name, text);
}

/* What an axis does to a value: cut by a letter, pending sum or max, equal on all ranks, or nowhere
 * but at one of its coordinates. */
typedef struct {
    enum { W_UNKNOWN, W_CUT, W_SUM, W_MAX, W_EQUAL, W_PLACE } what;
    int letter;  /* of a place: its coordinate */
    AxisPair at; /* of a sum, of copies: where alone they are */
} Way;
/* A flattened stored dim of what lies at rest, as one more letter, each stored dim its own:
 * element-wise ops keep it, sums contract it. */
enum { LIST_LETTER = '#' };
static bool is_list(int letter) { return letter >= LIST_LETTER && letter < LIST_LETTER + 8; }
static Way way(const Layout *L, const char *letters, int axis) {
    int d = layout_where(L, axis);
    if (d >= 0 && d < L->ndim) return (Way){W_CUT, letters[d], {0}};
    if (d >= 0) return (Way){W_CUT, LIST_LETTER + L->list, {0}};
    if (L->type[axis] == TY_AT) return (Way){W_PLACE, L->at[axis], {0}};
    return (Way){L->type[axis] == TY_P   ? W_SUM
                 : L->type[axis] == TY_M ? W_MAX
                                         : W_EQUAL,
                 0, L->pair[axis]};
}

static bool same_place(Way a, Way b) { return a.at.low == b.at.low && a.at.high == b.at.high; }
static bool same_way(Way a, Way b) {
    return a.what == b.what && a.letter == b.letter && same_place(a, b);
}

/* A rule on operands. */
typedef struct {
    const Rule *r;
    const Val *const *in;
    uint32_t lin; /* bit i: the op is linear in operand i */
    bool add;     /* it is a sum of its operands */
    bool max;     /* it contracts by the largest, not by a sum */
    int hop;      /* how many places a tied letter lies behind the other */
} Applied;

/* What an axis that cuts a tied letter cuts, as the rule sees it: the letter that it follows. */
static char cut_letter(const Rule *r, char letter) {
    return r->tied && letter == r->tied ? r->to : letter;
}
/* Has the operand (-1: the output) the letter, or with `ring` the one that is tied to it? */
static bool has_letter(const Rule *r, int operand, char letter, bool ring) {
    int own = operand < 0 ? rule_find_out(r, letter) : rule_find(r, operand, letter);
    if (own >= 0 || !ring || letter != r->to) return own >= 0;
    return (operand < 0 ? rule_find_out(r, r->tied) : rule_find(r, operand, r->tied)) >= 0;
}

/* Propagates one axis through a rule; NULL and the result, or what is wrong. */
static const char *propagate(Verify *v, const Applied *ap, int axis, Way *out) {
    const Rule *r = ap->r;
    const Val *const *in = ap->in;
    Arena *A = v->p->arena;
    const char *name = v->p->mesh->axis[axis].name;
    Way w[RULE_MAX_IN];
    char cut = 0;
    int sums = 0, which = -1;
    bool ring = false; /* the axis cuts the tied letter too */
    for (int i = 0; i < r->nin; i++) {
        w[i] = way(&in[i]->L, r->in[i], axis);
        ring |= r->tied && w[i].what == W_CUT && w[i].letter == r->tied;
        if (w[i].what == W_CUT) {
            char letter = cut_letter(r, w[i].letter);
            if (cut && cut != letter)
                return arena_printf(A, "axis %s cuts letters %c and %c at once", name, cut, letter);
            cut = letter;
        }
        if (w[i].what == W_SUM || w[i].what == W_MAX) sums++, which = i;
    }
    int places = 0, pairs = 0;
    for (int i = 0; i < r->nin; i++) {
        places += w[i].what == W_PLACE;
        pairs += w[i].at.high > 0;
    }
    for (int i = 1; i < r->nin && places + pairs; i++)
        if (places ? !same_way(w[i], w[0]) : !same_place(w[i], w[0]))
            return arena_printf(A, "its operands live at different places of %s", name);
    if (places) {
        *out = w[0];
        return NULL;
    }
    if (cut) {
        if (!is_list(cut) && (r->whole & RULE_BIT(cut)))
            return arena_printf(A, "axis %s cuts letter %c, which the op needs whole", name, cut);
        for (int i = 0; i < r->nin; i++) {
            bool has = is_list(cut) ? r->nl[i] > 0 : has_letter(r, i, cut, ring);
            if (has && w[i].what != W_CUT)
                return arena_printf(A, "operand %d must be cut by %s like the others", i, name);
            if (w[i].what == W_SUM || w[i].what == W_MAX)
                return arena_printf(A, "a pending sum over %s meets data cut by %s", name, name);
        }
        bool stays = is_list(cut) ? r->nout > 0 : has_letter(r, -1, cut, ring);
        if (stays && !is_list(cut) && rule_find_out(r, cut) < 0) cut = r->tied;
        *out = stays ? (Way){W_CUT, cut, {0}} : (Way){ap->max ? W_MAX : W_SUM, 0, {0}};
        return NULL;
    }
    *out = (Way){sums ? W_SUM : W_EQUAL, 0, r->nin ? w[0].at : (AxisPair){0}};
    if (!sums) return NULL;
    if (ap->add)
        return sums == r->nin
                   ? NULL
                   : arena_printf(A, "a pending sum over %s is added to a complete value", name);
    if (sums == 1 && w[which].what == W_SUM && (ap->lin >> which & 1)) return NULL;
    return arena_printf(A, "a pending sum over %s enters an op that is not linear in it", name);
}
static const char *way_word(Way w) {
    return w.what == W_CUT     ? "a cut"
           : w.what == W_EQUAL ? "equal copies"
           : w.what == W_PLACE ? "another place"
                               : "a pending sum";
}
static bool broadcast(const Rule *r, char letter) {
    for (int i = 0; i < r->nin; i++)
        if (rule_find(r, i, letter) >= 0) return false;
    return true;
}
/* Nested order must agree: each letter is cut by the same axes in the same order and manner in all
 * operands and the output. */
static const char *same_cuts(Verify *v, const Rule *r, const Val *const *in, const Val *out) {
    uint32_t have = 0;
    for (int i = 0; i < r->nin; i++)
        for (int d = 0; d < r->nl[i]; d++) have |= RULE_BIT(r->in[i][d]);
    for (int d = 0; d < r->nout; d++) have |= RULE_BIT(r->out[d]);
    for (char ch = 'a'; ch <= 'z'; ch++) {
        const Layout *first = NULL;
        int fd = 0;
        if (!(have & RULE_BIT(ch))) continue;
        for (int i = 0; i <= r->nin; i++) {
            const Layout *L = i < r->nin ? &in[i]->L : &out->L;
            int d = i < r->nin ? rule_find(r, i, ch) : rule_find_out(r, ch);
            if (d < 0) continue;
            if (!first) first = L, fd = d;
            else if ((i < r->nin || !broadcast(r, ch)) &&
                     (first->n[fd] != L->n[d] ||
                      memcmp(first->e[fd], L->e[d], sizeof(Entry) * L->n[d])))
                return arena_printf(v->p->arena, "letter %c lies differently in its operands", ch);
        }
    }
    return NULL;
}
/* The entry by which the axis cuts the letter of an operand, or of the output (operand r->nin). */
static const Entry *letter_cut(const Applied *ap, const Val *out, int operand, char letter,
                               int axis) {
    const Rule *r = ap->r;
    bool last = operand == r->nin;
    const Layout *L = last ? &out->L : &ap->in[operand]->L;
    int d = last ? rule_find_out(r, letter) : rule_find(r, operand, letter);
    for (int k = 0; d >= 0 && k < L->n[d]; k++)
        if (L->e[d][k].axis == axis && !L->e[d][k].ghost) return &L->e[d][k];
    return NULL;
}
/* Round a ring the tied letter must be cut as the other is, as many places behind as the node says:
 * else keys of one block are taken for those of another. */
static const char *check_tie(const Verify *v, const Applied *ap, const Val *out) {
    const Rule *r = ap->r;
    for (int x = 0; r->tied && x < v->p->mesh->naxes; x++) {
        const Entry *lead = NULL;
        for (int i = 0; i <= r->nin && !lead; i++) lead = letter_cut(ap, out, i, r->to, x);
        for (int i = 0; i <= r->nin; i++) {
            const Entry *e = letter_cut(ap, out, i, r->tied, x);
            if (!e || v->p->mesh->axis[x].size == 1) continue;
            if (lead && e->how == lead->how && e->shift == lead->shift + ap->hop) continue;
            return arena_printf(v->p->arena,
                                "round %s letter %c must lie %d places behind letter %c",
                                v->p->mesh->axis[x].name, r->tied, ap->hop, r->to);
        }
    }
    return NULL;
}
static void check_rule(Verify *v, const Step *s, const Applied *ap) {
    const Rule *r = ap->r;
    const Val *out = &v->p->val[s->out];
    for (int x = 0; x < v->p->mesh->naxes; x++) {
        if (v->p->mesh->axis[x].size == 1) continue;
        Way got = {W_EQUAL, 0, {0}}, said = way(&out->L, r->out, x);
        const char *bad = propagate(v, ap, x, &got);
        if (bad) {
            finding(v, s, bad);
            return;
        }
        /* no operand has it: any cut is local */
        if (got.what == W_EQUAL && said.what == W_CUT && broadcast(r, said.letter)) continue;
        if (same_way(got, said)) continue;
        finding(v, s,
                arena_printf(v->p->arena, "over %s the rule gives %s, the program says %s",
                             v->p->mesh->axis[x].name, way_word(got), way_word(said)));
        return;
    }
    const char *bad = same_cuts(v, r, ap->in, out);
    if (!bad) bad = check_tie(v, ap, out);
    if (bad) finding(v, s, bad);
}
/* I never mixes: operands of an op agree on I over every axis (forward, operands with gradient). */
static void check_types(Verify *v, const Step *s, const GNode *n, const Val *const *in) {
    for (int x = 0; x < v->p->mesh->naxes; x++) {
        bool inv = false, other = false;
        if (v->p->mesh->axis[x].size == 1) continue;
        for (int i = 0; i < n->nin; i++) {
            if (!in[i]->diff || (n->op->nodiff >> i & 1)) continue;
            if (in[i]->L.type[x] == TY_I) inv = true;
            else other = true;
        }
        if (inv && other) {
            finding(v, s,
                    arena_printf(v->p->arena,
                                 "a value whose uses are all equal over %s meets one that differs: "
                                 "its gradient would miss a sum",
                                 v->p->mesh->axis[x].name));
            return;
        }
    }
}
/* Rows follow one list, which lies as they do. */
static void check_list(Verify *v, const Step *s) {
    const Program *p = v->p;
    int list = program_list(p, s);
    for (int i = -1; i < s->nin; i++) {
        int val = i < 0 ? s->out : s->in[i];
        if (val < 0 || p->val[val].list < 0) continue;
        const Val *x = &p->val[val], *l = &p->val[x->list];
        Layout lies = program_list_layout(p, x->list, &x->L);
        /* from one list to another, moved or made of it */
        bool moved = s->kind == ST_MOVE || s->kind == ST_CLAIM || (i < 0 && x->list == s->out);
        if ((!moved && x->list != list) || (!moved && !layout_eq(&lies, &l->L)) ||
            (l->root != p->val[list].root && x->list != s->out)) {
            finding(v, s, "its rows do not follow the list that lies as they do");
            return;
        }
    }
}
static void check_op(Verify *v, const Step *s) {
    const Program *p = v->p;
    check_list(v, s);
    const GNode *n = &p->graph->node[s->node];
    const Val *in[RULE_MAX_IN];
    uint32_t lin = 0;
    for (int i = 0; i < n->nin; i++) {
        in[i] = &p->val[s->in[i]];
        lin |= (uint32_t)op_linear_in(n->op, i) << i;
    }
    check_rule(v, s, &(Applied){&n->rule, in, lin, n->op->lin == LIN_ADD, n->op->max, n->hop});
    check_types(v, s, n, in);
}
static void check_adjoint(Verify *v, const Step *s) {
    const Program *p = v->p;
    check_list(v, s);
    const GNode *n = &p->graph->node[s->node];
    uint32_t saved = op_saved(n->op, n->nin, s->operand), lin = 1;
    Rule r = rule_adjoint(&n->rule, s->operand, saved);
    const Val *in[RULE_MAX_IN];
    int k = 0;
    in[k++] = &p->val[s->in[0]];
    for (int j = 0; j < n->nin && k < RULE_MAX_IN; j++)
        if (saved >> j & 1) {
            lin |= (uint32_t)op_linear_in(n->op, j) << k;
            in[k++] = &p->val[s->in[1 + j]];
        }
    check_rule(v, s, &(Applied){&r, in, lin, false, false, n->hop});
    const int result = s->in[1 + n->nin];
    for (int x = 0; result >= 0 && x < p->mesh->naxes; x++)
        if (layout_where(&p->val[result].L, x) != layout_where(&in[0]->L, x)) {
            finding(v, s, "the result that it reads is cut in another way than its gradient");
            return;
        }
}
/* Do source and result of a claim look alike, so that only a pending sum tells them apart? */
static bool same_shape(const Program *p, const Step *s) {
    return !strcmp(program_symbolic(p, &p->val[s->in[0]], p->arena),
                   program_symbolic(p, &p->val[s->out], p->arena));
}
static const char *pending_word(AxisType type) {
    return type == TY_P ? "sum" : type == TY_M ? "maximum" : NULL;
}
/* A sum over axes is pending and denied, or complete and called pending; NULL: it is neither. Of
 * several such states the first axis' is told, with all axes of which it is true. */
static const char *false_state(const Program *p, const Layout *from, const Layout *to) {
    AxisList over = {0};
    const char *is = NULL, *says = NULL;
    for (int x = 0; x < p->mesh->naxes; x++) {
        const char *here = pending_word(from->type[x]), *said = pending_word(to->type[x]);
        if (from->type[x] == to->type[x] || (!here && !said)) continue;
        if (!over.n) is = here, says = said;
        if (text_same(is, here) && text_same(says, said)) over.a[over.n++] = (uint8_t)x;
    }
    const char *axes = over.n ? mesh_axes_text(p->mesh, p->arena, &over, true) : NULL;
    if (!axes) return NULL;
    if (is && says)
        return arena_printf(p->arena, "a %s over %s is pending, and it is taken for a %s", is, axes,
                            says);
    if (is)
        return arena_printf(
            p->arena, "a %s over %s is pending, and the value is taken for complete", is, axes);
    return arena_printf(p->arena,
                        "the value is complete, and is taken for a term of a %s pending over %s",
                        says, axes);
}
/* layout_order of what axes of several ranks cut: one rank alone holds all in any order. */
static const char *order_of_cut(const Mesh *mesh, Layout l) {
    for (int d = 0; d <= l.ndim; d++)
        for (int k = 0; k < l.n[d]; k++)
            if (mesh->axis[l.e[d][k].axis].size == 1) l.e[d][k].how = CUT_CHUNK;
    return layout_order(&l);
}
/* The label of a claim must be true. */
static void check_claim(Verify *v, const Step *s) {
    const Program *p = v->p;
    if (assign_label_holds(p->assign, &s->move.from, &s->move.to)) {
        /* the same dims are cut by the same axes, but a rank holds other positions of them */
        const char *lies = order_of_cut(p->mesh, s->move.from),
                   *said = order_of_cut(p->mesh, s->move.to);
        if (strcmp(lies, said) != 0)
            finding(v, s,
                    arena_printf(p->arena, "blocks in %s order are taken for %s ones", lies, said));
        return;
    }
    const char *state = same_shape(p, s) ? false_state(p, &s->move.from, &s->move.to) : NULL;
    if (state) finding(v, s, state);
    else if (same_shape(p, s))
        finding(v, s,
                arena_printf(p->arena, "lies as %s but is taken for %s",
                             layout_text(p->mesh, &s->move.from, NULL, p->arena),
                             layout_text(p->mesh, &s->move.to, NULL, p->arena)));
    else
        finding(v, s,
                arena_printf(p->arena, "lies as %s but is taken for %s",
                             program_symbolic(p, &p->val[s->in[0]], p->arena),
                             program_symbolic(p, &p->val[s->out], p->arena)));
}
/* Do the declared kind and group follow from the declared layouts? */
static bool declared_follows(const Verify *v, const Move *m) {
    const Layout *f = &m->from, *t = &m->to;
    uint32_t changed = 0, listed = 0;
    for (int x = 0; x < v->p->mesh->naxes; x++)
        if (f->type[x] != t->type[x] || layout_where(f, x) != layout_where(t, x) ||
            f->at[x] != t->at[x] || layout_paired(f, x) != layout_paired(t, x))
            changed |= 1u << x;
    for (int d = 0; d <= f->ndim && !changed; d++) /* chunk <-> zigzag in place */
        for (int k = 0; k < f->n[d]; k++)
            if (memcmp(&f->e[d][k], &t->e[d][k], sizeof(Entry))) changed |= 1u << f->e[d][k].axis;
    bool kinds = true;
    for (int i = 0; i < m->axes.n; i++) {
        listed |= 1u << m->axes.a[i];
        kinds &= move_kind(f, t, m->axes.a[i]) == m->kind;
    }
    return changed == listed && kinds;
}

/* ---- what is done ---- */
/* What each kind of move makes of a value, over the axes that it is done over. A theory of its own:
 * nothing of it is asked of the table of the planner. */
static const struct {
    unsigned char from, to;
} makes[MOVE_KINDS] = {
    [MOVE_ID] = {W_EQUAL, W_EQUAL},        [MOVE_SLICE] = {W_EQUAL, W_CUT},
    [MOVE_KEEP] = {W_EQUAL, W_SUM},        [MOVE_PAD] = {W_CUT, W_SUM},
    [MOVE_ALL_GATHER] = {W_CUT, W_EQUAL},  [MOVE_REDUCE_SCATTER] = {W_SUM, W_CUT},
    [MOVE_ALL_REDUCE] = {W_SUM, W_EQUAL},  [MOVE_ALL_REDUCE_MAX] = {W_MAX, W_EQUAL},
    [MOVE_ALL_TO_ALL] = {W_CUT, W_CUT},    [MOVE_SHIFT] = {W_CUT, W_CUT},
    [MOVE_SEND] = {W_PLACE, W_PLACE},      [MOVE_PICK] = {W_EQUAL, W_PLACE},
    [MOVE_BROADCAST] = {W_PLACE, W_EQUAL}, [MOVE_TERM] = {W_PLACE, W_SUM},
};
/* What becomes of `w` over one axis of the act, done once. False: no theory says so (a sum of equal
 * copies, a mean, a slice of a pending sum). A cut that it makes is that of `want`. */
static bool done_once(const Act *a, Way w, Way want, Way *out) {
    if (a->kind == MOVE_PICK && w.what == W_EQUAL && want.what == W_EQUAL) {
        *out = want; /* two of all */
        return !w.at.high && want.at.high;
    }
    if ((int)w.what != makes[a->kind].from) return false;
    if (w.what == W_SUM && a->combine != COMBINE_SUM) return false;
    if (w.what == W_MAX && a->combine != COMBINE_MAX) return false;
    *out =
        (Way){makes[a->kind].to,
              makes[a->kind].to == W_CUT || makes[a->kind].to == W_PLACE ? want.letter : 0, w.at};
    if (a->kind == MOVE_TERM) { /* of a sum over all, or of one over a pair that has its place */
        out->at = want.at;
        return !want.at.high || w.letter == want.at.low || w.letter == want.at.high;
    }
    if (a->kind == MOVE_PICK) {
        out->at = (AxisPair){0};
        return !w.at.high || want.letter == w.at.low || want.letter == w.at.high;
    }
    /* what is at two coordinates changes between those two, and nowhere else */
    bool group = !w.at.high ||
                 (a->axes.paired && a->axes.pair.low == w.at.low && a->axes.pair.high == w.at.high);
    return group;
}
static bool over(const Act *a, int axis) { return mesh_axes_set(&a->axes) >> axis & 1; }
/* A dim that an act names must be the one that is cut. */
static bool right_dim(const Act *a, const GTensor *t, Way w) {
    return a->dim < 0 || a->dim >= t->nd || w.what != W_CUT || w.letter == t->letter[a->dim];
}
/* Is a value cut by the axis in the same manner as another (contiguous, zigzag), if at all? */
static bool same_manner(const Layout *a, const Layout *b, int axis) {
    const Entry *x = NULL, *y = NULL;
    for (int d = 0; d <= a->ndim; d++) {
        for (int k = 0; k < a->n[d]; k++)
            if (a->e[d][k].axis == axis && !a->e[d][k].ghost) x = &a->e[d][k];
        for (int k = 0; k < b->n[d]; k++)
            if (b->e[d][k].axis == axis && !b->e[d][k].ghost) y = &b->e[d][k];
    }
    return !x || !y || !memcmp(x, y, sizeof *x);
}
/* Does the act lead from what its source is over the axis to what its result is said to be? */
static bool leads(const Verify *v, const Step *s, const Act *a, int axis) {
    const Program *p = v->p;
    const GTensor *t = &p->graph->t[p->val[s->out].tensor];
    const Layout *f = &p->val[s->in[0]].L, *to = &p->val[s->out].L;
    Way w = way(f, t->letter, axis), want = way(to, t->letter, axis);
    if (!a->times || !over(a, axis)) return same_manner(f, to, axis) && same_way(w, want);
    for (int k = 0; k < a->times; k++)
        if (!right_dim(a, t, w) || !right_dim(a, t, want) || !done_once(a, w, want, &w))
            return false;
    return same_way(w, want);
}
static bool same_axes(const Verify *v, const AxisList *a, const AxisList *b) {
    uint32_t wide = 0; /* an axis of one rank is as good as none */
    for (int x = 0; x < v->p->mesh->naxes; x++)
        wide |= (uint32_t)(v->p->mesh->axis[x].size > 1) << x;
    return !((mesh_axes_set(a) ^ mesh_axes_set(b)) & wide);
}
/* "all_reduce(tp), avg" */
static const char *act_text(const Verify *v, const Act *a) {
    static const char *const how[] = {"", ", sum", ", max", ", avg"};
    Arena *A = v->p->arena;
    return arena_printf(A, "%s(%s)%s%s", move_name(a->kind),
                        mesh_axes_text(v->p->mesh, A, &a->axes, true), how[a->combine],
                        a->times == 0 ? " left out" : "");
}
static void check_act(Verify *v, const Step *s) {
    const Program *p = v->p;
    Act a = act_of(s);
    bool right = true;
    for (int x = 0; x < p->mesh->naxes && right; x++)
        right = p->mesh->axis[x].size == 1 || leads(v, s, &a, x);
    if (right && !a.absent) return;
    const char *text;
    if (a.alone && !a.times)
        text = arena_printf(p->arena, "rank %lld takes no part in %s(%s)%s", (long long)a.alone - 1,
                            move_name(a.kind), mesh_axes_text(p->mesh, p->arena, &a.axes, true),
                            a.absent ? ": the others wait for it" : "'s result");
    else if (!same_axes(v, &a.axes, &s->move.axes))
        text = arena_printf(p->arena, "the group is that of %s, the layouts ask for another",
                            mesh_axes_text(p->mesh, p->arena, &a.axes, true));
    else if (a.times > 1)
        text = "the reduction is done twice: the second starts from a complete value";
    else
        text = arena_printf(p->arena,
                            "the step %s '%s', which does not lead from its layout to the declared "
                            "one",
                            s->fault ? "is planted as" : "does",
                            s->fault ? s->fault : act_text(v, &a));
    finding(v, s, text);
}
static void check_move(Verify *v, const Step *s) {
    const Program *p = v->p;
    check_list(v, s);
    if (!layout_eq(&s->move.from, &p->val[s->in[0]].L) ||
        !layout_eq(&s->move.to, &p->val[s->out].L))
        finding(v, s, "the move does not lead from its source's layout to its result's");
    else if (s->kind == ST_CLAIM) check_claim(v, s);
    else if (!declared_follows(v, &s->move))
        finding(v, s, "kind and group do not follow from the layouts");
    else check_act(v, s);
}
/* How often a cotangent says that it has that use in it. */
static int times_listed(const Val *x, Part use) {
    int times = 0;
    for (int k = 0; k < x->n_parts; k++)
        times += x->parts[k].node == use.node && x->parts[k].operand == use.operand &&
                 x->parts[k].way == use.way;
    return times;
}
static bool same_uses(const Val *a, const Val *b) {
    for (int k = 0; k < a->n_parts; k++) {
        const Part *x = &a->parts[k];
        if (times_listed(a, *x) != times_listed(b, *x)) return false;
    }
    return a->n_parts == b->n_parts;
}
static void check_sum(Verify *v, const Step *s) {
    const Program *p = v->p;
    const Val *o = &p->val[s->out];
    int parts = 0;
    bool listed = true;
    for (int i = 0; i < s->nin; i++) {
        const Val *x = &p->val[s->in[i]];
        parts += x->n_parts;
        for (int k = 0; k < x->n_parts; k++) listed &= times_listed(o, x->parts[k]) > 0;
        if (!layout_eq(&x->L, &o->L)) finding(v, s, "the terms of a sum lie differently");
    }
    if (parts != o->n_parts || !listed)
        finding(v, s, "the uses of a sum are not the uses of its terms");
}
/* What a cotangent says of its uses follows from the step that makes it. */
static void check_said_uses(Verify *v, const Step *s) {
    const Val *o = &v->p->val[s->out];
    bool moved = s->kind == ST_MOVE || s->kind == ST_CLAIM;
    if (!o->cot) return;
    if (moved && !same_uses(o, &v->p->val[s->in[0]]))
        finding(v, s, "the uses of a gradient change in a move");
    Part own = {s->node, s->operand, stages_way_of(v->p->assign->stages, s->stage)};
    if (s->kind == ST_ADJOINT && (o->n_parts != 1 || times_listed(o, own) != 1))
        finding(v, s, "the gradient through one use is said to be that of another");
}
/* Does the loss depend on a tensor? Nodes follow what they read. */
static bool *reached(const Program *p) {
    const Graph *g = p->graph;
    bool *r = ARENA_ARRAY(p->arena, bool, g->nt + 1);
    r[p->val[p->loss].tensor] = true;
    for (int n = g->nn - 1; n >= 0; n--)
        for (int i = 0; i < g->node[n].nin && r[g->node[n].out]; i++)
            if (!(g->node[n].op->nodiff >> i & 1)) r[g->node[n].in[i]] = true;
    return r;
}
/* `x`, the whole gradient of a tensor as step `s` takes it, must list each use on the way to the
 * loss, in every node of one way through the pipeline, exactly once. */
static bool check_all_uses(Verify *v, const Step *s, const Val *x, int way, const bool *reach) {
    const Program *p = v->p;
    const Graph *g = p->graph;
    for (int n = 0; n < g->nn; n++)
        for (int i = 0; i < g->node[n].nin; i++) {
            if (g->node[n].in[i] != x->tensor || (g->node[n].op->nodiff >> i & 1)) continue;
            int times = times_listed(x, (Part){n, i, way});
            if (times == 1 || !reach[g->node[n].out]) continue;
            finding(v, s,
                    arena_printf(p->arena, "the gradient of %s counts its use in %s %d times",
                                 g->t[x->tensor].name, g->t[g->node[n].out].name, times));
            return false;
        }
    return true;
}
/* Of every activation where it goes back through the node that made it, and of every input and
 * parameter at the end: a term of a sum that is lost, the residual's for one, is found here. */
static void check_uses(Verify *v) {
    const Program *p = v->p;
    if (p->loss < 0 || p->ns == p->n_forward) return;
    const bool *reach = reached(p);
    int last = -1;
    for (int i = p->n_forward; i < p->ns; i++) {
        const Step *s = &p->step[i];
        if (s->kind != ST_ADJOINT || s->in[0] == last) continue;
        last = s->in[0]; /* the adjoints of one node follow one another */
        if (!check_all_uses(v, s, &p->val[last], stages_way_of(p->assign->stages, s->stage), reach))
            return;
    }
    for (int t = 0; t < p->graph->nt; t++)
        for (int way = 0; way < (p->other.env ? 2 : 1); way++) {
            int g = way ? p->other.grad[t] : p->grad[t];
            if (g < 0) continue;
            const Val *x = &p->val[g];
            if (!check_all_uses(v, &p->step[x->step < 0 ? 0 : x->step], x, way, reach)) return;
        }
}
int verify(Program *p, Diags *d, bool warn, int *first_step) {
    Verify v = {p, d, warn, 0, -1};
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        switch (s->kind) {
        case ST_OP: check_op(&v, s); break;
        case ST_ADJOINT: check_adjoint(&v, s); break;
        case ST_MOVE:
        case ST_CLAIM: check_move(&v, s); break;
        case ST_SUM: check_sum(&v, s); break;
        case ST_SEED: break;
        }
        check_said_uses(&v, s);
    }
    check_uses(&v);
    if (first_step) *first_step = v.first;
    return v.found;
}
