/* Tokens, weights and scores of a routing. See chosen.h. Reads what the step just run has made;
 * refuses to choose anything itself. */
#include "exec/chosen.h"
#include "exec/compare.h"
#include "exec/rows.h"
#include <math.h>
#include <string.h>

static const GTensor *tensor_of(const Exec *e, int val) {
    return &e->p->graph->t[e->p->val[val].tensor];
}
static int64_t index_at(const DimIndex *d, int64_t i) { return d->range ? d->lo + i : d->list[i]; }

/* A row's number in the product of its listed letters, taken apart: its expert, and its token, the
 * number in the product of the others. */
typedef struct {
    int64_t expert, token;
} Row;
static Row row_of(const GTensor *t, int64_t at) {
    Row r = {0};
    int64_t wide = 1;
    for (int i = t->listed - 1; i >= 0; i--) {
        int64_t x = at % t->size[i];
        at /= t->size[i];
        if (t->letter[i] == 'e') r.expert = x;
        else r.token += x * wide, wide *= t->size[i];
    }
    return r;
}

/* Numbers lie rank by rank, by expert, in the order of the list: where those of a rank's rows go,
 * if those of the ranks before it end at *next. Moves *next on. */
static int64_t *places_of(const TraceRouted *k, int64_t rank, int64_t *next, Arena *tmp) {
    int64_t *at = ARENA_ARRAY(tmp, int64_t, k->experts + 1);
    for (int64_t x = 0; x < k->experts; x++) {
        at[x] = *next;
        *next += (int64_t)k->rows[rank * k->experts + x];
    }
    return at;
}
static int64_t rows_of(const TraceRouted *k) {
    double n = 0;
    for (int64_t i = 0; i < k->n_rows; i++) n += k->rows[i];
    return (int64_t)n;
}

/* ---- scores ---- */
/* Element i of a block, row-major; its letters' indices are those of the region. */
static double number(const Exec *e, int val, const Tensor *t, int64_t i) {
    Dtype dt = exec_dtype(e, val);
    int64_t o = 0;
    for (int d = t->nd - 1; d >= 0; d--) {
        o += i % t->n[d] * t->s[d];
        i /= t->n[d];
    }
    Tensor one = {.p = (char *)t->p + o * dtype_size(dt)}, host = e->dev->get(e->dev, &one, dt);
    double x = compare_at(host.p, dt, 0);
    e->dev->done(e->dev, &host);
    return x;
}
/* What a rank has of the scores, into the table [token][expert]. */
static void put_scores(const Exec *e, int val, int64_t rank, TraceRouted *k, Arena *tmp) {
    const GTensor *g = tensor_of(e, val);
    Region r = region_of(e, val, rank, tmp);
    const Tensor *t = &exec_local(e, val, rank)->t;
    int64_t all = 1;
    for (int d = 0; d < r.nd; d++) all *= r.n[d];
    if (r.outer || r.nd != g->nd || t->nd != r.nd || all != tensor_count(t)) return;
    for (int64_t i = 0; i < all; i++) {
        int64_t rest = i, token = 0, wide = 1, expert = 0;
        for (int d = r.nd - 1; d >= 0; d--) {
            int64_t x = index_at(&r.d[d], rest % r.n[d]);
            rest /= r.n[d];
            if (g->letter[d] == 'e') expert = x;
            else token += x * wide, wide *= g->size[d];
        }
        k->scores[token * k->experts + expert] = number(e, val, t, i);
    }
}
/* The scores are the last operand of what chooses (select.c). */
static void keep_scores(Trace *t, const Exec *e, const Step *s, TraceRouted *k) {
    int val = s->kind == ST_OP && s->nin ? s->in[s->nin - 1] : -1;
    const GTensor *g = val < 0 ? NULL : tensor_of(e, val);
    int64_t n = g ? graph_elements(g) : 0;
    if (!g || g->listed || !memchr(g->letter, 'e', (size_t)g->nd) || n > SCORES_MOST) return;
    Arena *tmp = arena_new();
    k->n_scores = n;
    k->scores = ARENA_ARRAY(t->arena, double, n + 1);
    for (int64_t i = 0; i < n; i++) k->scores[i] = NAN;
    for (int64_t r = 0; r < e->p->mesh->nranks; r++)
        if (exec_local(e, val, r)) put_scores(e, val, r, k, tmp);
    arena_free(tmp);
}

/* ---- rows ---- */
void chosen_rows(Trace *t, const Exec *e, const Step *s, TraceRouted *k) {
    const Val *v = &e->p->val[s->out];
    int64_t n = rows_of(k), next = 0;
    if (n > CHOSEN_MOST || e->dev->sizes_only) return;
    Arena *tmp = arena_new();
    k->n_tokens = n;
    k->tokens = ARENA_ARRAY(t->arena, double, n + 1);
    for (int64_t r = 0; r < e->p->mesh->nranks; r++) {
        if (!exec_local(e, s->out, r)) continue;
        DimIndex rows = exec_rows(e, s->out, r, tmp);
        int64_t *at = places_of(k, r, &next, tmp), room = rows_room(e->p, v, &v->L, r);
        if (room > k->room) k->room = room;
        for (int64_t i = 0; i < rows.n; i++) {
            Row x = row_of(tensor_of(e, s->out), index_at(&rows, i));
            k->tokens[at[x.expert]++] = (double)x.token;
        }
    }
    arena_free(tmp);
    keep_scores(t, e, s, k);
}

/* ---- weights ---- */
static TraceRouted *record_of(Trace *t, int step) {
    for (int i = t->n_routed - 1; i >= 0; i--)
        if (t->routed[i].step == step && t->routed[i].n_tokens) return &t->routed[i];
    return NULL;
}
static void put_weights(const Exec *e, int val, int64_t rank, TraceRouted *k, int64_t *at,
                        Arena *tmp) {
    DimIndex rows = exec_rows(e, val, rank, tmp);
    const Tensor *t = &exec_local(e, val, rank)->t;
    for (int64_t i = 0; i < rows.n && i < tensor_count(t); i++) {
        int64_t x = row_of(tensor_of(e, val), index_at(&rows, i)).expert;
        if (at[x] < k->n_weights) k->weights[at[x]++] = number(e, val, t, i);
    }
}
void chosen_weights(Trace *t, const Exec *e, const Step *s) {
    const Val *v = &e->p->val[s->out];
    const GTensor *g = tensor_of(e, s->out);
    bool per_row = g->listed && g->listed == g->nd && !g->is_int && v->list >= 0;
    if (!per_row || s->kind != ST_OP || s->pass != PHASE_FORWARD || e->dev->sizes_only) return;
    TraceRouted *k = record_of(t, e->p->val[v->list].step);
    if (!k || k->weight_step >= s->id) return; /* of an earlier instance */
    Arena *tmp = arena_new();
    k->weight_step = s->id;
    k->n_weights = k->n_tokens;
    k->weights = ARENA_ARRAY(t->arena, double, k->n_weights + 1);
    for (int64_t r = 0, next = 0; r < e->p->mesh->nranks; r++) {
        int64_t *at = places_of(k, r, &next, tmp);
        if (exec_local(e, s->out, r)) put_weights(e, s->out, r, k, at, tmp);
    }
    arena_free(tmp);
}
