/* Gradients added up over the micro-batches of a step: in their order, in the run's dtype, as the
 * adjoints make them. It refuses to know what moves them afterwards. */
#include "exec/narrow.h"
#include "exec/store.h"
#include "exec/wire.h"
#include <stdlib.h>
#include <string.h>

/* The sum so far of the block that a rank holds; NULL: this is the first micro-batch. Found by the
 * rank: which ranks share a block may differ from one micro-batch to the next. */
static const double *so_far(const struct Accumulated *a, int64_t rank, bool first) {
    return first ? NULL : a->x + a->at[rank];
}
static double sum_of(Dtype dt, const double *before, int64_t i, double x) {
    if (!before) return x;
    return dt == DT_F32 ? (double)((float)before[i] + (float)x) : before[i] + x;
}
static void add_block(const Exec *e, int val, const Local *l, const double *before, double *to,
                      bool last) {
    int64_t n = tensor_count(&l->t); /* what an adjoint makes is packed */
    Tensor host = e->dev->get(e->dev, &l->t, e->dtype);
    for (int64_t i = 0; i < n; i++) {
        bool f32 = e->dtype == DT_F32;
        double x = f32 ? (double)((float *)host.p)[i] : ((double *)host.p)[i];
        to[i] = sum_of(e->dtype, before, i, x);
        if (!last) continue;
        if (f32) ((float *)host.p)[i] = (float)to[i];
        else ((double *)host.p)[i] = to[i];
    }
    if (last) e->dev->put(e->dev, &l->t, &host, e->dtype);
    e->dev->done(e->dev, &host);
    if (last && e->modulus > 0) device_residues(e->dev, &l->t, e->dtype, e->modulus);
    if (last) narrow_round(e, e->dev, val, &l->t); /* once, of the sum of all */
}
/* Adds the gradient of micro-batch `part`, as its instance has it. */
static void add_part(Exec *e, int val, int64_t part, bool first, bool last) {
    int64_t n = 0, nranks = e->p->mesh->nranks;
    const Store *st = &e->each[part][val];
    struct Accumulated *a = &e->acc[val];
    int64_t *begin = base_malloc(base_mul((size_t)st->n + 1, sizeof *begin));
    for (int k = 0; k < st->n; k++) {
        begin[k] = n;
        n += tensor_count(&st->l[k].t);
    }
    double *x = device_array(e->host, n, sizeof *x);
    for (int k = 0; k < st->n && !e->dev->sizes_only; k++)
        add_block(e, val, &st->l[k], so_far(a, st->l[k].rank, first), x + begin[k], last);
    e->host->release(e->host, a->x);
    a->x = x;
    if (!a->at) a->at = base_malloc(base_mul((size_t)nranks, sizeof *a->at));
    for (int64_t r = 0; r < nranks; r++)
        a->at[r] = st->which[r] == EXEC_NOTHING ? -1 : begin[st->which[r]];
    free(begin);
}
void exec_carry(Exec *e, int64_t from, int64_t to) {
    for (int v = 0; v < e->p->nv; v++) {
        int step = e->p->val[v].step;
        Store *had = &e->each[from][v], *has = &e->each[to][v];
        if (step < 0 || !lives_adds_up(e->p, &e->p->step[step]) || !had->alive) continue;
        store_drop(e, has);
        *has = *had;
        *had = (Store){0};
    }
}
bool exec_accumulate(Exec *e, const Step *s, int64_t part, int64_t parts) {
    if (parts < 2 || !lives_adds_up(e->p, s)) return false;
    const Stages *stages = e->p->assign->stages; /* each way adds up its own */
    int64_t first = 0;
    if (stages && stages->ways == 2) {
        int way = stages_way_of(stages, s->stage);
        first = way ? parts / 2 : 0;
        parts = way ? parts : parts / 2;
    }
    if (!e->acc) e->acc = ARENA_ARRAY(e->arena, struct Accumulated, e->p->nv);
    struct Accumulated *a = &e->acc[s->out];
    if (!a->ready) a->ready = ARENA_ARRAY(e->arena, bool, parts);
    a->ready[part] = true;
    if (a->next < first) a->next = first;
    for (; a->next < parts && a->ready[a->next]; a->next++) {
        if (!e->wire->told) add_part(e, s->out, a->next, a->next == first, a->next == parts - 1);
        if (stages && a->next < parts - 1) store_drop(e, &e->each[a->next][s->out]);
    }
    if (a->next < parts) return false;
    a->next = 0;
    memset(a->ready, 0, (size_t)parts * sizeof *a->ready);
    return true;
}
void accumulate_free(Exec *e) {
    for (int v = 0; e->acc && v < e->p->nv; v++) {
        e->host->release(e->host, e->acc[v].x);
        free(e->acc[v].at);
    }
}
