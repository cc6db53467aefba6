/* Steps held where they lie. See apart.h. */
#include "exec/apart.h"
#include "exec/away.h"
#include <string.h>
#include <stdlib.h>

/* A value of a step by the letters of its rule. */
typedef struct {
    int val, nl;
    const char *letters;
} Operand;
static int parts_of(const Check *c, const Step *s, Operand *to) {
    const GNode *n = &c->e->p->graph->node[s->node];
    const Rule *r = &n->rule;
    const Operand out = {s->out, r->nout, r->out};
    bool adjoint = s->kind == ST_ADJOINT;
    int k = 0;
    for (int i = 0; i < n->nin; i++)
        if (s->in[adjoint + i] >= 0) to[k++] = (Operand){s->in[adjoint + i], r->nl[i], r->in[i]};
    if (!adjoint) {
        to[k++] = out;
        return k;
    }
    to[k++] = (Operand){s->in[0], r->nout, r->out};
    if (s->in[1 + n->nin] >= 0) to[k++] = (Operand){s->in[1 + n->nin], r->nout, r->out};
    to[k++] = (Operand){s->out, r->nl[s->operand], r->in[s->operand]};
    return k;
}
/* How a letter of a value is cut; NULL: the value lacks it. */
static const Entry *cut_of(const Check *c, const Operand *x, char letter, int *n) {
    const char *at = memchr(x->letters, letter, (size_t)x->nl);
    const Layout *L = &c->e->p->val[x->val].L;
    if (at) *n = L->n[at - x->letters];
    return at ? L->e[at - x->letters] : NULL;
}
/* Is the axis, where it cuts a letter, one by which every value that has the letter is cut alike,
 * the result among them, and which means nothing to the op? */
static bool axis_apart(const Check *c, const Step *s, int axis, const Operand *part, int n) {
    const GNode *node = &c->e->p->graph->node[s->node];
    char letter = 0;
    for (int k = 0; k < n; k++) {
        int d = layout_where(&c->e->p->val[part[k].val].L, axis);
        if (d >= part[k].nl || (d >= 0 && letter && part[k].letters[d] != letter)) return false;
        if (d >= 0) letter = part[k].letters[d];
    }
    if (!letter) return true;
    uint32_t means = node->rule.whole | op_asks(node->op, &node->rule, &node->at);
    int many, most;
    const Entry *of_out = cut_of(c, &part[n - 1], letter, &most);
    if (means & RULE_BIT(letter) || !of_out) return false;
    for (int k = 0; k < n; k++) {
        const Entry *e = cut_of(c, &part[k], letter, &many);
        if (e && (many != most || memcmp(e, of_out, sizeof *e * (size_t)most) != 0)) return false;
    }
    return true;
}
/* Is the step, at one coordinate of X, the same step on each rank's own blocks? Then the op on the
 * whole, restricted to what a rank holds, is the op on what it holds of the operands: as long as
 * nothing was wrong, copies are the same on all ranks. */
static bool is_apart(const Check *c, const Step *s, const AxisList *X) {
    const Program *p = c->e->p;
    const Layout *L = &p->val[s->out].L;
    Operand part[RULE_MAX_IN + 3];
    if (!c->e->far || c->first_fail >= 0) return false;
    if (exec_is_int(c->e, s->out) || p->val[s->out].list >= 0) return false;
    if (s->kind == ST_SUM) {
        const Layout *a = &p->val[s->in[0]].L, *b = &p->val[s->in[1]].L;
        return !memcmp(a->n, L->n, sizeof L->n) && !memcmp(a->e, L->e, sizeof L->e) &&
               !memcmp(b->n, L->n, sizeof L->n) && !memcmp(b->e, L->e, sizeof L->e);
    }
    const Rule *r = &p->graph->node[s->node].rule;
    if (rule_listed(r) || r->tied || program_list(p, s) >= 0) return false;
    int n = parts_of(c, s, part);
    for (int a = 0; a < p->mesh->naxes; a++)
        if (p->mesh->axis[a].size > 1 && !joint_has_axis(X, a) && !axis_apart(c, s, a, part, n))
            return false;
    return true;
}
/* What a rank's own blocks show, by bits and in float64; count below 0: it needs a closer look. A
 * bound that follows from a largest number is that of the rank's own numbers here. */
typedef struct {
    CompareSeen seen[2];
    int64_t count[2], projections;
} Apart;
static Apart apart_here(Check *c, const Step *s, int64_t rank) {
    AxisList all = {0};
    for (int a = 0; a < c->e->p->mesh->naxes; a++) all.a[all.n++] = (uint8_t)a;
    Joint j = {.c = c, .X = &all, .rank = rank};
    Levels l = levels_new(c, s, true);
    (s->kind == ST_SUM ? levels_sum : levels_op)(c, s, &j, &l);
    Apart x;
    for (int k = 0; k < 2; k++) {
        const Compare *m = k ? &l.local : &l.bits;
        x.seen[k] = (CompareSeen){.max_abs = m->rec.max_abs,
                                  .max_rel = m->rec.max_rel,
                                  .used = m->rec.used,
                                  .bound = m->rec.bound,
                                  .first = -1};
        x.seen[k].nd_shape = m->rec.n_shape, x.seen[k].nd_due = m->rec.n_due;
        memcpy(x.seen[k].shape, m->rec.shape, sizeof *m->rec.shape * (size_t)m->rec.n_shape);
        memcpy(x.seen[k].due, m->rec.due, sizeof *m->rec.due * (size_t)m->rec.n_due);
        x.count[k] = m->rec.verdict[0] == 'P' ? m->rec.count : -1;
        free(m->rank_error);
    }
    x.projections = l.local.rec.projections;
    return x;
}
/* What is asked of the process of a rank: how it is held follows from the check that asks, so that
 * all ranks' projections are through the same columns. */
typedef struct {
    int64_t step, rank, part, iteration, quick;
} ApartAsk;
static FarBytes apart_answer(void *arg, const Local *of, FarBytes q, Arena *arena) {
    Check *c = arg;
    (void)of;
    const ApartAsk *ask = q.p;
    c->part = ask->part, c->step = ask->iteration, c->quick = ask->quick;
    Apart x = apart_here(c, &c->e->p->step[ask->step], ask->rank);
    return (FarBytes){sizeof x, arena_memdup(arena, &x, sizeof x)};
}
static Apart apart_of(Check *c, const Step *s, int64_t rank) {
    if (far_rank(c->e, &exec_local(c->e, s->out, rank)->t) < 0) return apart_here(c, s, rank);
    Arena *tmp = arena_new();
    ApartAsk q = {s->id, rank, c->part, c->step, c->quick};
    Apart x;
    FarBytes a = far_ask(c->e, FAR_HOLD, NULL, rank, (FarBytes){sizeof q, &q}, tmp);
    memcpy(&x, a.p, sizeof x);
    arena_free(tmp);
    return x;
}
bool apart_held(Check *c, const Step *s, const AxisList *X, Levels *to) {
    const Program *p = c->e->p;
    if (!is_apart(c, s, X)) return false;
    const Layout *L = &p->val[s->out].L;
    int64_t n = 0, coords = mesh_size(p->mesh, X), *rank;
    Arena *tmp = arena_new();
    rank = ARENA_ARRAY(tmp, int64_t, coords * p->mesh->nranks);
    for (int64_t i = 0; i < coords; i++) {
        Joint j = {.c = c, .X = X, .rank = joint_rank(c, s->out, X, i)};
        n += joint_holders(&j, s->out, rank + n);
    }
    Apart *x = ARENA_ARRAY(tmp, Apart, n);
    bool right = true;
    for (int64_t k = 0; k < n && right; k++) {
        x[k] = apart_of(c, s, rank[k]);
        right = x[k].count[0] >= 0 && x[k].count[1] >= 0;
    }
    for (int64_t k = 0; k < n && right; k++) {
        if (x[k].count[0])
            compare_note(&to->bits, s->out, L, rank[k], &x[k].seen[0], x[k].count[0]);
        if (x[k].count[1])
            compare_note(&to->local, s->out, L, rank[k], &x[k].seen[1], x[k].count[1]);
        if (x[k].projections) to->local.rec.projections = (int)x[k].projections;
    }
    arena_free(tmp);
    return right;
}
void apart_answers(Check *c, Far *f) {
    far_answers(f, FAR_HOLD, apart_answer, c);
    away_answers(f, c->e);
}
/* Do the pairs join two blocks, element by element in their order? */
static bool in_order(const RegionPairs *x) {
    bool same = true;
    for (int d = 0; d < x->nd && same; d++)
        same = !memcmp(x->to[d], x->from[d], sizeof *x->to[d] * (size_t)x->n[d]);
    return same;
}
/* Has what a rank holds after a copy, place by place, the digests of the parts that it comes from?
 */
static bool copied(const Check *c, const Step *s, int64_t rank, const AssembleParts *parts,
                   Arena *tmp) {
    const Program *p = c->e->p;
    const Tensor *to = &exec_local(c->e, s->out, rank)->t;
    Dtype dt = exec_dtype(c->e, s->out);
    Region due = region_at(p->mesh, &p->graph->t[p->val[s->out].tensor], &s->move.to, rank, tmp);
    int64_t held = 0, all = tensor_count(to);
    if (to->nd != due.nd || memcmp(to->n, due.n, sizeof *to->n * (size_t)to->nd) != 0) return false;
    for (int64_t i = 0; i < parts->n && held < all; i++) {
        const struct AssemblePart *one = &parts->part[i];
        RegionPairs at;
        FarPlaces there = {0}, here = {0};
        if (!region_pairs((Block){&due, to}, (Block){&one->has, &one->t}, tmp, &at)) return false;
        int64_t n = 1;
        for (int d = 0; d < at.nd; d++) {
            n *= here.n[d] = there.n[d] = at.n[d];
            here.at[d] = at.to[d], there.at[d] = at.from[d];
        }
        here.nd = there.nd = at.nd;
        held += n;
        bool whole = n == all && n == tensor_count(&one->t) && in_order(&at);
        if (whole && far_alike(c->e, to, &one->t, dt)) continue;
        if (n &&
            !digest_same(far_digest(c->e, to, dt, &here), far_digest(c->e, &one->t, dt, &there)))
            return false;
    }
    return held == all;
}
bool apart_copied(const Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank) {
    const Program *p = c->e->p;
    AssembleParts parts;
    if (!c->e->far || p->val[s->out].list >= 0) return false;
    Arena *tmp = arena_new();
    Joint j = {.c = c, .X = X, .rank = rank};
    int64_t *to = ARENA_ARRAY(tmp, int64_t, p->mesh->nranks), n = joint_holders(&j, s->out, to);
    bool same = assemble_parts(c->e, s->in[0], X, rank, tmp, &parts);
    for (int64_t k = 0; k < n && same; k++) same = copied(c, s, to[k], &parts, tmp);
    for (int64_t k = 0; k < n && same; k++)
        compare_note(m, s->out, &s->move.to, to[k], &(CompareSeen){.first = -1},
                     tensor_count(&exec_local(c->e, s->out, to[k])->t));
    arena_free(tmp);
    return same;
}
