/* Rows per rank and expert, and per pair of ranks. Reads the lists that the step just run has made,
 * so what is counted is what the run did, mistakes included. Refuses to compute a routing: it
 * counts. */
#include "exec/routed.h"
#include "exec/chosen.h"
#include "exec/pieces.h"
#include <string.h>

/* Positions in the product of the listed letters that share one index of expert `e`: how far apart
 * two experts lie, and how many experts there are; 0 if the list has no experts. */
static int64_t experts_of(const GTensor *t, int64_t *stride) {
    const char *at = memchr(t->letter, 'e', (size_t)t->listed);
    *stride = 1;
    if (!at) return 0;
    for (int i = (int)(at - t->letter) + 1; i < t->listed; i++) *stride *= t->size[i];
    return t->size[at - t->letter];
}

static void count(const Exec *e, const Step *s, TraceRouted *k, int64_t stride) {
    Arena *tmp = arena_new();
    for (int64_t r = 0; r < e->p->mesh->nranks; r++) {
        if (!exec_local(e, s->out, r)) continue;
        DimIndex rows = exec_rows(e, s->out, r, tmp);
        for (int64_t i = 0; i < rows.n; i++) {
            int64_t at = rows.range ? rows.lo + i : rows.list[i];
            k->rows[r * k->experts + at / stride % k->experts]++;
        }
    }
    arena_free(tmp);
}

static void by_expert(Trace *t, const Exec *e, const Step *s) {
    const GTensor *g = &e->p->graph->t[e->p->val[s->out].tensor];
    int64_t stride, experts = graph_is_list(g) ? experts_of(g, &stride) : 0;
    if (!experts || experts > ROUTED_MOST / e->p->mesh->nranks) return;
    for (int i = t->n_routed - 1; i >= 0; i--)
        if (t->routed[i].step == s->id) return; /* of an earlier instance */
    TraceRouted *k = ARENA_PUSH(t->arena, t->routed, t->n_routed, t->cap_routed);
    *k = (TraceRouted){.step = s->id, .value = graph_name(g), .experts = experts};
    k->n_rows = e->p->mesh->nranks * experts;
    k->rows = ARENA_ARRAY(t->arena, double, k->n_rows);
    count(e, s, k, stride);
    chosen_rows(t, e, s, k);
}

/* ---- pairs ---- */
/* The rows that each rank has of a value, none where it has another stage of a pipeline; NULL where
 * one holds nothing to be looked at. */
static const DimIndex *lists_of(const Exec *e, int val, Arena *tmp) {
    int64_t n = e->p->mesh->nranks;
    DimIndex *all = ARENA_ARRAY(tmp, DimIndex, n);
    for (int64_t r = 0; r < n; r++) {
        if (!layout_holds(e->p->mesh, &e->p->val[val].L, r)) continue;
        if (!exec_local(e, e->p->val[val].list, r)) return NULL;
        all[r] = exec_rows(e, val, r, tmp);
    }
    return all;
}
static int64_t inside(const Exec *e, const Step *s, const Layout *l, int64_t rank,
                      const DimIndex *rows) {
    Arena *tmp = arena_new();
    int64_t n =
        region_inside(e->p->mesh, &e->p->graph->t[e->p->val[s->out].tensor], l, rank, rows, tmp).n;
    arena_free(tmp);
    return n;
}
/* By the numbers of `volume_of`, in rows: what does not stay leaves, gathered blocks go to all. */
static double leaving(const Exec *e, const Step *s, int64_t rank, const DimIndex *rows, int64_t n) {
    Act act = act_of(s);
    double all = (double)rows->n, times = act.times;
    switch (move_sends(act.kind)) {
    case SENDS_PIECES:
    case SENDS_PART: return times * (all - (double)inside(e, s, &s->move.to, rank, rows));
    case SENDS_BLOCK: return times * (double)(n - 1) * all;
    case SENDS_ONCE:
    case SENDS_ON: return times * all;
    case SENDS_BOTH: return times * 2 * (double)(n - 1) * (double)((rows->n + n - 1) / n);
    case SENDS_NOTHING:
    case MOVE_SENDS: break;
    }
    return 0;
}
/* What a rank's list sends to each member of its group, by where that is to lie; and what comes to
 * a rank from each, by the pieces that are done. Where each piece goes to one rank, what is sent is
 * what comes to the others: rows that nobody takes do not leave. */
static void count_pairs(const Exec *e, const Step *s, const DimIndex *had, TraceExchange *x) {
    const Mesh *m = e->p->mesh;
    Act act = act_of(s);
    Pieces done = pieces_of_run(e, s, &act);
    MoveSends how = move_sends(act.kind);
    bool pieces = how == SENDS_PIECES || how == SENDS_PART;
    for (int64_t r = 0; pieces && r < m->nranks; r++) x->sent[r] = 0;
    for (int64_t r = 0; r < m->nranks; r++) {
        int64_t wide = 1, local[LAYOUT_MAX_DIMS];
        layout_local(m, &done.to, done.t->size, r, local);
        for (int d = done.t->listed; d < done.t->nd; d++) wide *= local[d];
        for (int64_t i = 0; i < x->size; i++) {
            int64_t other = mesh_member(m, &s->move.axes, r, i);
            x->to[r * x->size + i] = (double)inside(e, s, &s->move.to, other, &had[r]);
            if (!wide) continue;
            double came = (double)(pieces_between(&done, other, r) / wide);
            x->from[r * x->size + i] = came;
            if (pieces && other != r) x->sent[other] += act.times * came;
        }
    }
}
static void by_pair(Trace *t, const Exec *e, const Step *s) {
    const Val *v = &e->p->val[s->out];
    const GTensor *g = &e->p->graph->t[v->tensor];
    int64_t n = e->p->mesh->nranks, size = mesh_size(e->p->mesh, &s->move.axes);
    if (s->kind != ST_MOVE || !g->listed || graph_is_list(g) || v->list < 0) return;
    if (!move_communicates(s->move.kind) || size < 2) return;
    for (int i = t->n_exchanges - 1; i >= 0; i--)
        if (t->exchanges[i].step == s->id) return; /* of an earlier instance */
    Arena *tmp = arena_new();
    const DimIndex *had = lists_of(e, s->in[0], tmp), *has = had ? lists_of(e, s->out, tmp) : NULL;
    if (has) {
        TraceExchange *x = ARENA_PUSH(t->arena, t->exchanges, t->n_exchanges, t->cap_exchanges);
        *x = (TraceExchange){.step = s->id, .size = size, .n_in = n, .n_out = n, .n_sent = n};
        x->value = program_value_name(e->p, v, t->arena);
        x->in = ARENA_ARRAY(t->arena, double, n);
        x->out = ARENA_ARRAY(t->arena, double, n);
        x->sent = ARENA_ARRAY(t->arena, double, n);
        for (int64_t r = 0; r < n; r++) {
            x->in[r] = (double)had[r].n;
            x->out[r] = (double)has[r].n;
            x->sent[r] = leaving(e, s, r, &had[r], size);
        }
        MoveSends how = move_sends(s->move.kind);
        if (how != SENDS_BOTH && how != SENDS_NOTHING && size <= PAIRS_MOST / n) {
            x->n_to = x->n_from = n * size;
            x->to = ARENA_ARRAY(t->arena, double, n *size);
            x->from = ARENA_ARRAY(t->arena, double, n *size);
            count_pairs(e, s, had, x);
        }
    }
    arena_free(tmp);
}

void routed_step(Trace *t, const Exec *e, const Step *s) {
    if (s->out < 0) return;
    by_expert(t, e, s);
    by_pair(t, e, s);
    chosen_weights(t, e, s);
}
