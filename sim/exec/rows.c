/* Rows at most. See rows.h. */
#include "exec/rows.h"
#include "ops/op.h"
#include <string.h>

/* What decides which rows there are. */
typedef struct {
    int64_t top;       /* experts that a token asks for */
    const Attrs *room; /* of the capacity that has the last word; NULL: every row is kept */
    bool whole;        /* an expert's room is for all tokens, not for those of a rank */
    const Layout *by;  /* how the tokens lay that were counted together */
} Routed;

static const GTensor *tensor_of(const Program *p, const Val *v) { return &p->graph->t[v->tensor]; }
/* The step that made the first copy of a list; NULL: it is given. */
static const Step *maker(const Program *p, int list) {
    int step = p->val[p->val[list].root].step;
    return step < 0 || p->step[step].kind != ST_OP ? NULL : &p->step[step];
}
static Routed rule_of(const Program *p, const Val *v) {
    Routed r = {0};
    const Step *s = v->list < 0 ? NULL : maker(p, v->list);
    if (!s) return r;
    const GNode *n = &p->graph->node[s->node];
    r.top = n->at.top;
    if (!graph_is_list(tensor_of(p, &p->val[s->in[0]]))) return r; /* chosen from scores */
    r.room = &n->at;
    r.whole = n->rule.whole;
    r.by = &p->val[s->in[0]].L;
    return r;
}

/* ---- sizes of a block by letter ---- */
typedef struct {
    int64_t tokens, experts;
} Has;
static Has block_of(const Program *p, const GTensor *t, const Layout *l, int64_t rank) {
    int64_t local[LAYOUT_MAX_DIMS];
    Has b = {1, 1};
    layout_local(p->mesh, l, t->size, rank, local);
    for (int d = 0; d < t->listed; d++) *(t->letter[d] == 'e' ? &b.experts : &b.tokens) *= local[d];
    return b;
}
/* Positions of a letter that a rank has before and after. */
static int64_t in_both(const Program *p, const GTensor *t, const Layout *a, const Layout *b, int d,
                       int64_t rank) {
    bool same = a->n[d] == b->n[d] && !memcmp(a->e[d], b->e[d], sizeof a->e[d]);
    if (same || !a->n[d]) return layout_dim_size(p->mesh, b, d, t->size[d], rank);
    if (!b->n[d]) return layout_dim_size(p->mesh, a, d, t->size[d], rank);
    Arena *tmp = arena_new();
    IndexList x = layout_index(p->mesh, a, d, t->size[d], rank, tmp),
              y = layout_index(p->mesh, b, d, t->size[d], rank, tmp);
    bool *in = ARENA_ARRAY(tmp, bool, t->size[d] + 1);
    int64_t n = 0;
    for (int64_t i = 0; i < x.n; i++) in[x.at[i]] = true;
    for (int64_t i = 0; i < y.n; i++) n += in[y.at[i]];
    arena_free(tmp);
    return n;
}

/* ---- room ---- */
/* Axes that cut tokens where they were counted and do not cut them so any more: over these blocks
 * of several ranks have come together. */
static AxisList together(const Program *p, const GTensor *t, const Layout *by, const Layout *now) {
    AxisList out = {0};
    for (int x = 0; x < p->mesh->naxes; x++) {
        int was = layout_where(by, x), is = layout_where(now, x);
        if (was < 0 || was >= t->listed || t->letter[was] == 'e' || was == is) continue;
        out.a[out.n++] = (uint8_t)x;
    }
    return out;
}
/* Rows that one expert takes of the tokens that a rank has now. */
static int64_t expert_most(const Program *p, const GTensor *t, const Routed *r, const Layout *l,
                           int64_t rank) {
    int64_t tokens = block_of(p, t, l, rank).tokens, all = 0, experts = 1, whole = 1;
    if (!r->room) return tokens;
    for (int d = 0; d < t->listed; d++) *(t->letter[d] == 'e' ? &experts : &whole) *= t->size[d];
    if (r->whole) all = op_places(r->room, whole, experts);
    AxisList axes = together(p, t, r->by, l);
    for (int64_t i = 0; !r->whole && i < mesh_size(p->mesh, &axes) && all < tokens; i++) {
        int64_t own = block_of(p, t, r->by, mesh_member(p->mesh, &axes, rank, i)).tokens,
                room = op_places(r->room, own, experts);
        all += room < own ? room : own;
    }
    return all < tokens ? all : tokens;
}
static int64_t less(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t rows_most(const Program *p, const Val *v, const Layout *l, int64_t rank) {
    const GTensor *t = tensor_of(p, v);
    if (!t->listed) return 0;
    Routed r = rule_of(p, v);
    Has b = block_of(p, t, l, rank);
    int64_t each = r.top ? less(r.top, b.experts) : b.experts;
    return less(b.tokens * each, b.experts * expert_most(p, t, &r, l, rank));
}
int64_t rows_room(const Program *p, const Val *v, const Layout *l, int64_t rank) {
    Routed r = rule_of(p, v);
    return r.room ? expert_most(p, tensor_of(p, v), &r, l, rank) : 0;
}
int64_t rows_most_leaving(const Program *p, const Val *v, const Layout *from, const Layout *to,
                          int64_t rank) {
    const GTensor *t = tensor_of(p, v);
    if (!t->listed) return 0;
    Routed r = rule_of(p, v);
    Has b = block_of(p, t, from, rank), stay = {1, 1};
    for (int d = 0; d < t->listed; d++)
        *(t->letter[d] == 'e' ? &stay.experts : &stay.tokens) *= in_both(p, t, from, to, d, rank);
    int64_t top = r.top ? r.top : b.experts, away = b.experts - stay.experts;
    int64_t of_tokens =
        (b.tokens - stay.tokens) * less(top, b.experts) + stay.tokens * less(top, away);
    int64_t experts = b.tokens > stay.tokens ? b.experts : away;
    return less(of_tokens, experts * expert_most(p, t, &r, from, rank));
}
const char *rows_most_symbol(const Program *p, const Val *v, Arena *arena) {
    const GTensor *t = tensor_of(p, v);
    Routed r = rule_of(p, v);
    if (!r.room || !t->listed) return NULL;
    int e = 0;
    while (e < t->listed - 1 && t->letter[e] != 'e') e++;
    const char *dims[LAYOUT_MAX_DIMS], *of = program_letter_symbol(p, v, e, arena);
    AxisList axes = together(p, t, r.by, &v->L);
    Str s = str_new(arena);
    program_symbols(p, v, arena, dims);
    const char *from = !r.whole && axes.n ? program_axes_called(p, v, &axes, arena) : "";
    str_addf(&s, "[%s, %s%sC", of, from, *from ? "*" : "");
    for (int d = 1; d < t->nstored; d++) str_addf(&s, ", %s", dims[d]);
    str_add(&s, "]");
    return s.s;
}
