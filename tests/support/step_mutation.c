/* Mistakes in what a step computes. See step_mutation.h. */
#include "step_mutation.h"
#include "spoil.h"

void step_sites_watch(void *sites, Exec *e, const Step *s, bool checked) {
    StepSites *x = sites;
    if (checked || s->kind == ST_SEED || exec_is_int(e, s->out)) return;
    for (int i = x->n - 1; i >= 0; i--)
        if (x->site[i].step == s->id) return; /* another micro-batch or training step */
    bool rows = e->p->graph->t[e->p->val[s->out].tensor].listed;
    *ARENA_PUSH(x->a, x->site, x->n, x->cap) = (struct StepSite){s->id, s->kind, rows};
}
bool step_site_fits(const struct StepSite *s, StepMutationKind kind) {
    bool kernel = s->kind == ST_OP || s->kind == ST_ADJOINT;
    if (kind == S_ROW || kind == S_ROLL) return s->rows && s->kind != ST_CLAIM;
    if (kind == S_OPERAND) return kernel;
    if (kind == S_TERM) return s->kind == ST_SUM;
    return kernel || s->kind == ST_SUM || (kind == S_STALE && s->kind == ST_MOVE);
}

/* Do the ranks hold blocks of the same sizes of both values? */
static bool alike(const Exec *e, int a, int b) {
    const Val *x = &e->p->val[a], *y = &e->p->val[b];
    const GTensor *t = &e->p->graph->t[x->tensor], *u = &e->p->graph->t[y->tensor];
    if (exec_dtype(e, a) != exec_dtype(e, b) || t->nd != u->nd || !layout_eq(&x->L, &y->L))
        return false;
    for (int d = 0; d < t->nd; d++)
        if (t->size[d] != u->size[d]) return false;
    return true;
}
/* A value that is there, alike and another; -1: none. */
static int another(const Exec *e, Rng *r, int val, int out) {
    int n = e->p->nv, from = rng_below(r, n);
    for (int i = 0; i < n; i++) {
        int v = (from + i) % n;
        if (v != val && v != out && exec_store(e, v)->alive && alike(e, val, v)) return v;
    }
    return -1;
}
/* The step's result becomes that of `val`, on every rank. */
static void pass_on(Exec *e, const Step *s, int val) {
    const Layout *L = &e->p->val[s->out].L;
    Step copy = {.kind = ST_MOVE,
                 .nin = 1,
                 .in = {val},
                 .out = s->out,
                 .move = {.kind = MOVE_ID, .from = *L, .to = *L}};
    exec_step(e, &copy);
}
static void other_operand(StepMutation *m, Exec *e, const Step *s) {
    Step other = *s;
    int first = rng_below(&m->r, s->nin);
    for (int i = 0; i < s->nin; i++) {
        int k = (first + i) % s->nin, v = s->in[k] < 0 ? -1 : another(e, &m->r, s->in[k], s->out);
        if (v < 0) continue;
        other.in[k] = v;
        if (exec_step(e, &other)) return;
        other.in[k] = s->in[k]; /* rows of another list: the op cannot take them */
        exec_step(e, s);
    }
}
static void scaled(StepMutation *m, Exec *e, const Step *s) {
    static const double factors[] = {2, 0.5, -1, 1.25, 0};
    double f = factors[rng_below(&m->r, 5)];
    int64_t ranks = e->p->mesh->nranks, rank = rng_below(&m->r, (int)ranks);
    if (rng_chance(&m->r, 50)) {
        spoil_all(e, s->out, f);
        return;
    }
    while (!exec_local(e, s->out, rank)) rank = (rank + 1) % ranks;
    Spoil part = spoil_part(e, s->out, rank); /* stays, unless the rank holds nothing */
    if (!part.n) spoil_undo(&part);
    for (int64_t i = 0; i < part.n; i++) /* 0 and -0 are the same number */
        if (spoil_get(&part, i) != 0) spoil_set(&part, i, f * spoil_get(&part, i));
}
/* On the first rank from a drawn one on that has enough rows; on none if none has. */
static void other_rows(StepMutation *m, Exec *e, const Step *s) {
    int64_t ranks = e->p->mesh->nranks, rank = rng_below(&m->r, (int)ranks), least = 1;
    if (m->kind == S_ROLL) least = 2;
    for (int64_t k = 0; k < ranks; k++, rank = (rank + 1) % ranks) {
        const Local *l = exec_local(e, s->out, rank);
        int64_t rows = l ? l->t.n[0] : 0;
        if (rows < least || !tensor_count(&l->t)) continue;
        Spoil part = spoil_part(e, s->out, rank); /* stays */
        int64_t width = part.n / rows, row = rng_below(&m->r, (int)rows);
        for (int64_t c = 0; c < width; c++) {
            double last = spoil_get(&part, part.n - width + c);
            for (int64_t i = rows - 1; m->kind == S_ROLL && i >= 0; i--)
                spoil_set(&part, i * width + c, i ? spoil_get(&part, (i - 1) * width + c) : last);
            if (m->kind == S_ROW && spoil_get(&part, row * width + c) != 0)
                spoil_set(&part, row * width + c, 0);
        }
        return;
    }
}
void step_mutation_watch(void *mutation, Exec *e, const Step *s, bool checked) {
    StepMutation *m = mutation;
    if (checked || m->done || s->id != m->step) return;
    m->done = true;
    uint64_t before = spoil_hash(e, s->out);
    int stale = m->kind == S_STALE ? another(e, &m->r, s->out, s->out) : -1;
    if (m->kind == S_OPERAND) other_operand(m, e, s);
    if (m->kind == S_TERM) pass_on(e, s, s->in[rng_below(&m->r, 2)]);
    if (m->kind == S_SCALE) scaled(m, e, s);
    if (m->kind == S_ROW || m->kind == S_ROLL) other_rows(m, e, s);
    if (stale >= 0) pass_on(e, s, stale);
    m->changed = spoil_hash(e, s->out) != before;
}
