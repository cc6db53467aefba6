/* Products and sums by projections of what ranks hold. See projected.h. */
#include "exec/projected.h"
#include "exec/away.h"
#include "exec/opcall.h"
#include "exec/project.h"
#include <math.h>
#include <stdlib.h>

uint64_t projected_of(const Check *c, const Step *s) {
    return (uint64_t)s->id ^ (uint64_t)c->part << 24 ^ (uint64_t)c->step << 44;
}

/* The value in parts that the host can read or ask for; else NULL, and it is put together into
 * *whole (NULL: it is not). */
typedef struct {
    AssembleParts parts;
    bool apart;
} Lying;
/* Is something of it the range of a flattened dim, which is no dim by itself? */
static bool has_lists(const AssembleParts *x) {
    bool lists = x->box.outer != 0;
    for (int64_t i = 0; i < x->n; i++) lists |= x->part[i].has.outer != 0;
    return lists;
}
/* Where its parts are; false: it has to be put together. */
static bool lies(const Joint *j, int val, Lying *l, Arena *tmp) {
    l->apart = assemble_parts(j->c->e, val, j->X, j->rank, tmp, &l->parts) && !has_lists(&l->parts);
    return l->apart;
}
static const AssembleParts *lie_get(const Joint *j, int val, Lying *l) {
    Device *dev = j->c->e->dev;
    for (int64_t i = 0; i < l->parts.n; i++) {
        Tensor *t = &l->parts.part[i].t;
        if (far_rank(j->c->e, t) < 0) *t = dev->get(dev, t, exec_dtype(j->c->e, val));
    }
    return &l->parts;
}
static const AssembleParts *lie(const Joint *j, int val, Lying *l, Tensor *whole, Arena *tmp) {
    if (lies(j, val, l, tmp)) return lie_get(j, val, l);
    if (whole) *whole = joint_letters(j, val);
    return NULL;
}
static void lie_done(const Check *c, Lying *l) {
    for (int64_t i = 0; l->apart && i < l->parts.n; i++)
        if (far_rank(c->e, &l->parts.part[i].t) < 0)
            c->e->dev->done(c->e->dev, &l->parts.part[i].t);
}
/* The factor that is used as it is, whose sizes *to has: where it is elsewhere in parts, where one
 * rank has all of it as that rank has it, else put together. */
static const AssembleParts *lie_kept(const Joint *j, int val, Lying *l, const Projection *q,
                                     Tensor *to, Arena *tmp) {
    bool far = j->c->e->far != NULL, apart = lies(j, val, l, tmp);
    if (apart && far && project_apart(q, &l->parts)) return lie_get(j, val, l);
    if (apart && !far && l->parts.one) {
        lie_get(j, val, l);
        if (joint_numbers(j->c)) *to = l->parts.part[0].t;
        return NULL;
    }
    l->apart = false;
    *to = joint_letters(j, val);
    return NULL;
}
/* Projects a product at the coordinate of j. False: it cannot be. */
static bool project_joint(const Joint *j, const Step *s, const Compare *m, Projection *q,
                          Projected *seen) {
    const Check *c = j->c;
    Arena *tmp = arena_new();
    Region ob;
    bool can =
        joint_call(j, s, &q->call, &ob, tmp) && project_can(q) && joint_shapes(j, m, s->out, &ob);
    if (can) {
        const int *in = opcall_operands(s);
        int side = project_side(q),
            value[2] = {q->adjoint ? in[1 - s->operand] : in[0], q->adjoint ? s->in[0] : in[1]};
        Lying cut, out, kept;
        ProjectAway away = away_asks(c->e);
        q->away = c->e->far ? &away : NULL;
        q->kept = lie_kept(j, value[1 - side], &kept, q, project_factor(q, 1 - side), tmp);
        q->cut = lie(j, value[side], &cut, project_factor(q, side), tmp);
        q->out = lie(j, s->out, &out, &q->call.out, tmp);
        *seen = project_hold(q);
        lie_done(c, &out);
        lie_done(c, &cut);
        lie_done(c, &kept);
        if (kept.apart) project_factor(q, 1 - side)->p = NULL; /* a rank's own */
    }
    joint_free(c, &q->call, c->e->p->graph->node[s->node].nin);
    arena_free(tmp);
    return can;
}
/* What was seen of projections, in the record that is made. */
static void note_projected(Compare *m, const Projected *seen, int64_t count) {
    m->rec.projections = PROJECT_VECTORS;
    m->rec.count += count;
    m->rec.notice = fmax(m->rec.notice, seen->notice);
    m->rec.max_abs = fmax(m->rec.max_abs, seen->residual);
    if (seen->used >= m->rec.used) m->rec.used = seen->used, m->rec.bound = seen->bound;
}
bool projected_product(Check *c, const Step *s, Compare *all) {
    const Program *p = c->e->p;
    if (!project_may(p->graph->node[s->node].op)) return false;
    AxisList X = joint_pending(c, s);
    int64_t coords = mesh_size(p->mesh, &X);
    Compare same = compare_new(c->e, c->arena, s, s->out, LEVEL_BITS);
    *all = compare_new(c->e, c->arena, s, s->out, LEVEL_BOUND);
    bool held = true;
    for (int64_t i = 0; i < coords && held; i++) {
        Projection q = {.host = c->e->host,
                        .adjoint = s->kind == ST_ADJOINT,
                        .u = c->u * c->slack,
                        .seed = c->seed,
                        .of = projected_of(c, s),
                        .step = s->id};
        Joint joint = {.c = c, .X = &X, .rank = joint_rank(c, s->out, &X, i), .sizes = true};
        Projected seen = {0};
        held = project_joint(&joint, s, all, &q, &seen) && seen.held;
        note_projected(all, &seen, tensor_count(&q.call.out));
    }
    /* of the ranks that hold the same block one was looked at; where copies need not have the same
     * bits, all are looked at closer */
    if (held) compare_replicas(&same, s->out, &p->val[s->out].L);
    free(same.rank_error);
    return held && !same.failed;
}
bool projected_mixed(const Check *c, const Step *s, const OpCall *call, Compare *m) {
    bool may = c->quick && !c->e->narrow && s->kind == ST_OP && call->dtype == DT_F32;
    if (!may || !call->op->mixed || call->out.n[call->out.nd - 1] <= 2 * PROJECT_VECTORS)
        return false;
    Projection p = {.host = c->e->host,
                    .call = *call,
                    .u = c->u * c->slack,
                    .seed = c->seed,
                    .of = projected_of(c, s),
                    .step = s->id};
    Projected seen = project_mixed(&p);
    seen.notice = 0; /* each number is held by bits beside it */
    if (seen.held) note_projected(m, &seen, tensor_count(&call->out));
    return seen.held;
}
bool projected_total(Check *c, const Step *s, Compare *m, const Joint *j, bool *seen) {
    const Program *p = c->e->p;
    const AxisList *over = &s->move.axes;
    Arena *tmp = arena_new();
    AxisList both = *j->X;
    for (int i = 0; i < over->n; i++)
        if (!joint_has_axis(&both, over->a[i])) mesh_add_axis(&both, over, i);
    int64_t n = mesh_size(p->mesh, over), k = 0;
    AssembleParts *share = ARENA_ARRAY(tmp, AssembleParts, n);
    Lying out = {0}, *in = ARENA_ARRAY(tmp, Lying, n);
    ProjectAway away = away_asks(c->e);
    bool held = lie(j, s->out, &out, NULL, tmp);
    for (; k < n && held; k++) {
        Joint term = {.c = c, .X = &both, .rank = mesh_member(p->mesh, over, j->rank, k)};
        held = lie(&term, s->in[0], &in[k], NULL, tmp);
        share[k] = in[k].parts;
    }
    ProjectTotal q = {.host = c->e->host,
                      .pool = c->e->pool,
                      .dt = exec_dtype(c->e, s->out),
                      .u = c->u * c->slack,
                      .seed = c->seed,
                      .of = projected_of(c, s),
                      .away = c->e->far ? &away : NULL,
                      .share = share,
                      .out = &out.parts,
                      .n = n};
    Projected r = held ? project_total(&q, seen) : (Projected){0};
    while (k) lie_done(c, &in[--k]);
    lie_done(c, &out);
    Tensor all = region_packed(&out.parts.box);
    if (r.held) note_projected(m, &r, tensor_count(&all));
    arena_free(tmp);
    return r.held;
}
