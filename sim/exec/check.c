/* Holding every value of every rank against what it must be. */
#include "exec/check.h"
#include "exec/assemble.h"
#include "exec/call.h"
#include "exec/cause.h"
#include "exec/compare.h"
#include "exec/narrow.h"
#include "exec/opcall.h"
#include "exec/project.h"
#include "ops/op.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

Check *check_new(Arena *arena, Exec *e, Trace *t) {
    Check *c = ARENA_NEW(arena, Check);
    *c = (Check){.e = e, .t = t, .arena = arena, .first_fail = -1};
    c->full = e->full;
    c->full_arg = e->full_arg;
    c->u = e->dtype == DT_F32 ? 0x1p-24 : 0x1p-53;
    c->slack = e->dtype == DT_F32 ? 1 : 2;
    return c;
}

/* ---- elements, shared by the workers ---- */
/* Memory of the host: what a check puts together. */
static void *take(const Check *c, int64_t n, int64_t size) {
    return device_array(c->e->host, n, size);
}
static void give(const Check *c, void *p) { c->e->host->release(c->e->host, p); }
/* Are there numbers to look at? */
static bool has_numbers(const Check *c) { return !c->e->dev->sizes_only; }
typedef struct {
    const Tensor *t;
    Dtype d;
    double *out;
} Widen;
static void widen(void *arg, int64_t lo, int64_t hi) {
    const Widen *w = arg;
    if (w->d == DT_F32)
        for (int64_t i = lo; i < hi; i++) w->out[i] = ((const float *)w->t->p)[i];
    else
        for (int64_t i = lo; i < hi; i++) w->out[i] = compare_at(w->t->p, w->d, i);
}
static double *to_f64(const Check *c, const Tensor *t, Dtype d) { /* packed in, packed out */
    int64_t n = tensor_count(t);
    Widen w = {t, d, take(c, n, 8)};
    c->e->host->pieces(c->e->host, c->e->pool, n, widen, &w);
    return w.out;
}

/* ---- recording ---- */
/* What is wrong only later than in the first micro-batch of the first step says when. */
static const char *cause_when(const Check *c, const char *cause) {
    if (!cause || (!c->part && !c->step)) return cause;
    const char *step =
        c->step ? arena_printf(c->arena, "training step %lld", (long long)c->step) : NULL;
    if (!c->part) return arena_printf(c->arena, "%s (in %s)", cause, step);
    return arena_printf(c->arena, "%s (in micro-batch %lld%s%s)", cause, (long long)c->part,
                        step ? " of " : "", step ? step : "");
}
static void record(Check *c, Compare *m, const RankSet *ranks, const char *cause) {
    Trace *t = c->t;
    const Mesh *mesh = c->e->p->mesh;
    m->rec.ranks = *ranks;
    if (m->failed) {
        t->n_fail++;
        m->rec.cause = cause_when(c, cause);
        int64_t bad = 0;
        for (int64_t r = 0; r < mesh->nranks; r++) bad += m->rank_error[r] >= 0;
        int64_t *list = ARENA_ARRAY(c->arena, int64_t, bad);
        m->rec.rank_error = arena_alloc(
            c->arena, base_mul((size_t)(bad < 64 ? bad : 64), sizeof *m->rec.rank_error));
        bad = 0;
        for (int64_t r = 0; r < mesh->nranks; r++) {
            if (m->rank_error[r] < 0) continue;
            if (bad < 64) {
                m->rec.rank_error[bad].rank = r;
                m->rec.rank_error[bad].error = m->rank_error[r];
                m->rec.n_rank_error = (int)bad + 1;
            }
            list[bad++] = r;
        }
        m->rec.ranks = rankset_from(c->arena, list, bad);
        if (c->first_fail < 0) {
            c->first_fail = t->n_checks;
            t->first_wrong = m->rec.value;
        }
    } else if (m->rec.verdict[0] == 'S') t->n_suspect++;
    else t->n_pass++;
    if (m->rec.level == LEVEL_BOUND && (m->rec.used > t->worst_used || !t->worst_value)) {
        t->worst_used = m->rec.used;
        t->worst_value = m->rec.value;
    }
    free(m->rank_error);
    m->rank_error = NULL;
    *ARENA_PUSH(t->arena, t->checks, t->n_checks, t->cap_checks) = m->rec;
}
/* The ranks that should hold a value. */
static RankSet ranks_of(const Check *c, int val) {
    const Mesh *m = c->e->p->mesh;
    const Layout *l = &c->e->p->val[val].L;
    int64_t n = 0, *list = base_malloc(base_mul((size_t)m->nranks, sizeof *list));
    for (int64_t r = 0; r < m->nranks; r++)
        if (layout_holds(m, l, r)) list[n++] = r;
    RankSet all =
        n == m->nranks ? rankset_range(c->arena, 0, n, 1) : rankset_from(c->arena, list, n);
    free(list);
    return all;
}

/* ---- sources ---- */
void check_source(Check *c, int val) {
    const Program *p = c->e->p;
    const Val *v = &p->val[val];
    const GTensor *t = &p->graph->t[v->tensor];
    Compare m = compare_new(c->e, c->arena, NULL, val, LEVEL_BITS);
    Dtype dt = exec_dtype(c->e, val);
    void *whole = c->full(c->full_arg, v->tensor, dt);
    if (!whole) return;
    Arena *tmp = arena_new();
    Region wb = region_whole(t);
    Whole w = {.box = &wb, .raw = region_packed(&wb)};
    w.raw.p = whole;
    AxisList nothing = {0};
    compare_all(&m, val, &v->L, &nothing, 0, &w);
    RankSet ranks = ranks_of(c, val);
    bool by_wish = c->weights_cause && !strcmp(t->name, "loss_weights");
    const char *cause = !m.failed ? NULL
                        : by_wish ? c->weights_cause
                                  : cause_of_source(c->arena, c->e, val, whole, m.rank_error);
    record(c, &m, &ranks, cause);
    give(c, whole);
    arena_free(tmp);
}

/* ---- kernels ---- */
static bool in_list(const AxisList *l, int a) {
    for (int i = 0; i < l->n; i++)
        if (l->a[i] == a) return true;
    return false;
}
/* Axes over which the step's values are pending sums: they are looked at one coordinate at a time.
 */
static AxisList pending_axes(const Check *c, const Step *s) {
    const Program *p = c->e->p;
    AxisList X = {0};
    int r[RULE_MAX_IN + 3], n = step_reads(s, r);
    r[n++] = s->out;
    for (int a = 0; a < p->mesh->naxes; a++)
        for (int k = 0; k < n; k++) {
            int ty = p->val[r[k]].L.type[a];
            if ((ty == TY_P || ty == TY_M) && !in_list(&X, a))
                layout_add_axis(&p->val[r[k]].L, a, &X);
        }
    return X;
}
/* The ranks' inputs put together, at one coordinate of the pending axes: that of `rank`. */
typedef struct {
    const Check *c;
    const AxisList *X;
    int64_t rank;
    bool sizes; /* numbers have sizes only, what lists rows is there */
} Joint;
/* A value put together, a dim for each letter of its op: rows, which lie as one list, too. */
static Tensor joint_letters(const Joint *j, int val) {
    const Program *p = j->c->e->p;
    Tensor t = assemble_value(j->c->e, val, j->X, j->rank);
    const GTensor *g = &p->graph->t[p->val[val].tensor];
    return t.nd < g->nd ? call_letters(&t, g) : t;
}
static Tensor joint_value(const OpcallSource *f, int val) {
    const Joint *j = f->of;
    if (!j->sizes || exec_is_int(j->c->e, val)) return joint_letters(j, val);
    Arena *tmp = arena_new();
    Region box = assemble_region(j->c->e, val, j->X, j->rank, tmp);
    Tensor t = region_packed(&box);
    const GTensor *g = &j->c->e->p->graph->t[j->c->e->p->val[val].tensor];
    arena_free(tmp);
    return t.nd < g->nd ? call_letters(&t, g) : t;
}
static Layout joint_layout(const OpcallSource *f, int val) {
    const Joint *j = f->of;
    return assemble_layout(j->c->e, &f->p->val[val].L, j->X);
}
/* The same op on them; *ob: the elements of its output.
 * False if they do not fit together. */
static bool whole_call(const Joint *j, const Step *s, OpCall *call, Region *ob, Arena *tmp) {
    const Check *c = j->c;
    const Program *p = c->e->p;
    OpcallSource f = {.p = p,
                      .dtype = c->e->dtype,
                      .pool = c->e->pool,
                      .rank = j->rank,
                      .part = c->e->now,
                      .sizes_only = c->e->dev->sizes_only,
                      .value = joint_value,
                      .lies = joint_layout,
                      .of = j};
    OpcallClash clash;
    if (!opcall_build(&f, s, call, &clash)) return false;
    const Val *o = &p->val[s->out];
    *ob = assemble_region(c->e, s->out, j->X, j->rank, tmp);
    for (int d = 0; d < ob->nd && !ob->outer; d++)
        if (call->out.n[d] != ob->n[d]) return false;
    /* a list that it makes: how many rows there are is what it says */
    if (o->list == s->out) ob->n[0] = ob->d[0].n = call->rows;
    if (o->list >= 0 && ob->n[0] != call->out.n[0]) return false;
    opcall_positions(&f, s, call, tmp);
    return true;
}
static void free_call(const Check *x, OpCall *c, int nin) {
    for (int i = 0; i < nin; i++) give(x, c->in[i].p);
    give(x, c->cot.p);
    give(x, c->fout.p);
    give(x, c->ids.p);
    give(x, c->out.p);
}
static void run_kernel(const Check *c, const Step *s, OpCall *call) {
    c->e->host->call(c->e->host, call, 1, s->kind == ST_ADJOINT ? DEVICE_ADJOINT : DEVICE_FORWARD,
                     NULL);
}
/* Bounds of what the ranks hold of a value, from those of what is computed. */
static void round_bounds(const Check *c, int val, int64_t n, double *want, double *bound,
                         double *prob) {
    if (c->e->narrow && c->e->narrow[val] && has_numbers(c)) narrow_bounds(n, want, bound, prob);
}
/* The call in float64 with its bounds; replaces the inputs by f64 copies. */
static void level2(Check *c, const Step *s, OpCall *call, int nin, Whole *w) {
    Dtype from = call->dtype;
    if (from == DT_F32) {
        for (int i = 0; i < nin; i++)
            if (call->in[i].p && !(call->in_int >> i & 1)) {
                double *x = to_f64(c, &call->in[i], from);
                give(c, call->in[i].p);
                call->in[i].p = x;
            }
        Tensor *more[2] = {&call->cot, &call->fout};
        for (int k = 0; k < 2; k++)
            if (more[k]->p) {
                double *x = to_f64(c, more[k], from);
                give(c, more[k]->p);
                more[k]->p = x;
            }
        call->dtype = DT_F64;
        give(c, call->out.p);
        call->out.p = NULL;
    }
    if (!call->out.p) { /* what f64 runs hold by bits is there */
        call->out.p = take(c, tensor_count(&call->out), 8);
        run_kernel(c, s, call);
    }
    int64_t n = tensor_count(&call->out);
    OpBound b = {
        .call = *call, .operand = s->kind == ST_ADJOINT ? s->operand : -1, .u = c->u * c->slack};
    b.bound = w->bound = take(c, n, 8);
    b.prob = w->prob = take(c, n, 8);
    c->e->host->bound(c->e->host, &b);
    round_bounds(c, s->out, n, call->out.p, w->bound, w->prob);
    w->want = call->out.p;
    w->raw.p = NULL;
}
/* The first rank that holds the value at coordinate i of some axes. */
static int64_t first_rank_of(const Check *c, int val, const AxisList *X, int64_t i) {
    const Program *p = c->e->p;
    return mesh_member(p->mesh, X, layout_first(p->mesh, &p->val[val].L), i);
}

/* Does the plan split what this step sums over? Then its output is a pending sum and its inputs are
 * not. */
static bool splits_contraction(const Check *c, const Step *s) {
    const Program *p = c->e->p;
    int r[RULE_MAX_IN + 3], n = step_reads(s, r);
    for (int a = 0; a < p->mesh->naxes; a++) {
        bool pending = p->val[s->out].L.type[a] == TY_P;
        for (int k = 0; k < n && pending; k++) pending = p->val[r[k]].L.type[a] != TY_P;
        if (pending && p->mesh->axis[a].size > 1) return true;
    }
    return false;
}
/* The level that what a step makes is held by: the one place that decides. A bound where ranks add
 * up terms in an order of their own: reductions, and f32 products whose sum the plan splits (in f64
 * their terms are exact enough to be held by bits); and where a device's kernels have orders of
 * their own. Everything else is held by bits; so are the
 * copies of a reduced value among each other. */
static CheckLevel level_of(const Check *c, const Step *s) {
    bool moves = s->kind == ST_MOVE || s->kind == ST_CLAIM, reduces = false;
    for (int i = 0; i < s->move.axes.n && moves; i++) {
        AxisType t = s->move.from.type[s->move.axes.a[i]];
        reduces |= t == TY_P || t == TY_M;
    }
    bool op = !moves && s->kind != ST_SUM;
    bool split = op && c->e->dtype == DT_F32 && splits_contraction(c, s);
    bool other = op && c->e->dev->own_order && !exec_is_int(c->e, s->out);
    return reduces || split || other ? LEVEL_BOUND : LEVEL_BITS;
}
#define REPLICAS_DIFFER                                                                            \
    "ranks that hold the same part of the value hold different bits: the sum was not the same "    \
    "for all"
/* Has each block of the ranks at one coordinate of the pending axes the shape that its layout gives
 * it of the whole, whose elements are `box`? Else what is put together has gaps. */
static bool shapes_hold(const Joint *j, const Compare *m, int val, const Region *box) {
    const Program *p = m->e->p;
    const Layout *L = &p->val[val].L;
    const Store *store = exec_store(m->e, val);
    Arena *tmp = arena_new();
    bool *seen = ARENA_ARRAY(tmp, bool, store->n + 1), hold = true;
    for (int64_t r = 0; r < p->mesh->nranks && hold && has_numbers(j->c); r++) {
        if (store->which[r] == EXEC_NOTHING || seen[store->which[r]]) continue;
        if (!compare_agrees(p->mesh, j->X, r, j->rank)) continue;
        seen[store->which[r]] = true;
        Region due = compare_due(m, val, L, r, box, tmp);
        const Tensor *t = &exec_local(m->e, val, r)->t;
        hold = t->nd == due.nd && !memcmp(t->n, due.n, sizeof *t->n * (size_t)due.nd);
    }
    arena_free(tmp);
    return hold;
}
/* The value in parts that the host can read, or put together into *whole. */
typedef struct {
    AssembleParts parts;
    bool apart;
} Lying;
static const AssembleParts *lie(const Joint *j, int val, Lying *l, Tensor *whole, Arena *tmp) {
    Device *dev = j->c->e->dev;
    l->apart = assemble_parts(j->c->e, val, j->X, j->rank, tmp, &l->parts);
    if (!l->apart) *whole = joint_letters(j, val);
    for (int64_t i = 0; l->apart && i < l->parts.n; i++) {
        Tensor *t = &l->parts.part[i].t;
        *t = dev->get(dev, t, exec_dtype(j->c->e, val));
    }
    return l->apart ? &l->parts : NULL;
}
static void lie_done(const Check *c, Lying *l) {
    for (int64_t i = 0; l->apart && i < l->parts.n; i++)
        c->e->dev->done(c->e->dev, &l->parts.part[i].t);
}
/* Projects a product at the coordinate of j. False: it cannot be. */
static bool project_joint(const Joint *j, const Step *s, const Compare *m, Projection *q,
                          Projected *seen) {
    const Check *c = j->c;
    Arena *tmp = arena_new();
    Region ob;
    bool can =
        whole_call(j, s, &q->call, &ob, tmp) && project_can(q) && shapes_hold(j, m, s->out, &ob);
    if (can) {
        const int *in = opcall_operands(s);
        int side = project_side(q),
            value[2] = {q->adjoint ? in[1 - s->operand] : in[0], q->adjoint ? s->in[0] : in[1]};
        Lying cut, out;
        *project_factor(q, 1 - side) = joint_letters(j, value[1 - side]);
        q->cut = lie(j, value[side], &cut, project_factor(q, side), tmp);
        q->out = lie(j, s->out, &out, &q->call.out, tmp);
        *seen = project_hold(q);
        lie_done(c, &out);
        lie_done(c, &cut);
    }
    free_call(c, &q->call, c->e->p->graph->node[s->node].nin);
    arena_free(tmp);
    return can;
}
/* A product held by random projections, at each coordinate of its pending axes. False: it cannot
 * be, or something needs a closer look; nothing is recorded then. */
static bool check_product(Check *c, const Step *s) {
    const Program *p = c->e->p;
    if (!project_may(p->graph->node[s->node].op)) return false;
    AxisList X = pending_axes(c, s);
    int64_t coords = mesh_size(p->mesh, &X);
    Compare all = compare_new(c->e, c->arena, s, s->out, LEVEL_BOUND),
            same = compare_new(c->e, c->arena, s, s->out, LEVEL_BITS);
    all.rec.projections = PROJECT_VECTORS;
    bool held = true;
    for (int64_t i = 0; i < coords && held; i++) {
        Projection q = {.host = c->e->host,
                        .adjoint = s->kind == ST_ADJOINT,
                        .u = c->u * c->slack,
                        .seed = c->seed,
                        .of = (uint64_t)s->id};
        Joint joint = {.c = c, .X = &X, .rank = first_rank_of(c, s->out, &X, i), .sizes = true};
        Projected seen = {0};
        held = project_joint(&joint, s, &all, &q, &seen) && seen.held;
        all.rec.count += tensor_count(&q.call.out);
        all.rec.notice = fmax(all.rec.notice, seen.notice);
        if (seen.used >= all.rec.used)
            all.rec.used = seen.used, all.rec.bound = seen.bound, all.rec.max_abs = seen.residual;
    }
    if (held && !c->e->dev->own_order) compare_replicas(&same, s->out, &p->val[s->out].L);
    free(same.rank_error);
    if (!held || same.failed) return false;
    RankSet ranks = ranks_of(c, s->out);
    record(c, &all, &ranks, NULL);
    return true;
}
static void check_kernel(Check *c, const Step *s) {
    /* a projection adds up as many roundings as there are elements: it would notice little */
    if (c->quick && !c->e->narrow && check_product(c, s)) return;
    const Program *p = c->e->p;
    const GNode *n = &p->graph->node[s->node];
    AxisList X = pending_axes(c, s);
    int64_t coords = mesh_size(p->mesh, &X);
    bool by_bound = level_of(c, s) == LEVEL_BOUND;
    Compare bits = compare_new(c->e, c->arena, s, s->out, LEVEL_BITS),
            local = compare_new(c->e, c->arena, s, s->out, LEVEL_BOUND);
    for (int64_t i = 0; i < coords; i++) {
        int64_t rank = first_rank_of(c, s->out, &X, i);
        Arena *tmp = arena_new();
        OpCall call;
        Region ob;
        bool ok = whole_call(&(Joint){.c = c, .X = &X, .rank = rank}, s, &call, &ob, tmp);
        if (!ok) {
            for (int64_t r = 0; r < p->mesh->nranks; r++)
                if (compare_agrees(p->mesh, &X, r, rank)) compare_wrong_shape(&bits, r);
        } else {
            Whole w = {.box = &ob, .raw = region_packed(&ob)};
            if (!by_bound) {
                w.raw.p = call.out.p =
                    take(c, tensor_count(&call.out), dtype_size(exec_dtype(c->e, s->out)));
                run_kernel(c, s, &call);
                narrow_round(c->e, c->e->host, s->out, &call.out);
                if (p->val[s->out].list == s->out)
                    ob.d[0] = (DimIndex){false, 0, call.rows, call.out.p};
                compare_all(&bits, s->out, &p->val[s->out].L, &X, rank, &w);
            }
            if ((c->e->dtype == DT_F32 || by_bound || bits.failed) && !exec_is_int(c->e, s->out)) {
                level2(c, s, &call, n->nin, &w);
                compare_all(&local, s->out, &p->val[s->out].L, &X, rank, &w);
                give(c, w.bound);
                give(c, w.prob);
            } else local.rec.count = bits.rec.count;
        }
        free_call(c, &call, n->nin);
        arena_free(tmp);
    }
    RankSet ranks = ranks_of(c, s->out);
    const char *cause = NULL;
    if (by_bound && !bits.failed) { /* level 2 says what it must be; copies of a share must agree */
        bits.rec.count = local.rec.count;
        if (!c->e->dev->own_order) compare_replicas(&bits, s->out, &p->val[s->out].L);
        if (bits.failed) cause = REPLICAS_DIFFER;
    }
    const Compare *bad = bits.failed ? &bits : local.failed ? &local : NULL;
    if (bad && !cause) cause = cause_of_op(c->arena, c->e, s, bad->rank_error);
    record(c, &bits, &ranks, cause);
    bool second = !bits.failed || local.failed || local.rec.count;
    if (second && !exec_is_int(c->e, s->out)) record(c, &local, &ranks, cause);
    else free(local.rank_error);
}

/* ---- moves ---- */
typedef struct {
    const void *x;
    Dtype dt;
    bool max;
    double *sum, *abs; /* abs NULL: not wanted */
} AddJob;
static void add_piece(void *arg, int64_t lo, int64_t hi) {
    const AddJob *j = arg;
    if (!j->max && j->dt == DT_F32 && j->abs) { /* what most plans reduce, as vector code */
        const float *x = j->x;
        for (int64_t i = lo; i < hi; i++) {
            j->sum[i] += (double)x[i];
            j->abs[i] += fabs((double)x[i]);
        }
        return;
    }
    for (int64_t i = lo; i < hi; i++) {
        double x = compare_at(j->x, j->dt, i);
        j->sum[i] = j->max ? fmax(j->sum[i], x) : j->sum[i] + x;
    }
    for (int64_t i = lo; i < hi && j->abs; i++) j->abs[i] += fabs(compare_at(j->x, j->dt, i));
}
static bool any_nonzero(const void *x, Dtype dt, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (fabs(compare_at(x, dt, i)) > 0) return true;
    return false;
}
/* What a value denotes at one coordinate of some axes, packed. */
typedef struct {
    Tensor shape;    /* p NULL */
    double *x, *abs; /* the value; the sums of magnitudes, where asked for */
} Denoted;
typedef struct {
    bool max;   /* the largest of the shares, not their sum */
    bool *seen; /* [shares]: does it hold anything but zeros? Asks for magnitudes too; or NULL */
} Shares;

/* `val` at the coordinate of X that `rank` has: shares over A added in f64. x and abs are to be
 * given back. */
static Denoted denoted(const Check *c, int val, const AxisList *X, const AxisList *A, int64_t rank,
                       Shares how) {
    const bool max = how.max;
    const Mesh *m = c->e->p->mesh;
    AxisList both = *X;
    for (int i = 0; i < A->n; i++)
        if (!in_list(&both, A->a[i])) mesh_add_axis(&both, A, i);
    int64_t n = mesh_size(m, A);
    Denoted d = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t q = mesh_member(m, A, rank, i);
        Tensor t = assemble_value(c->e, val, &both, q);
        int64_t k = tensor_count(&t);
        if (!d.x) {
            d.shape = t;
            d.x = take(c, k, 8);
            for (int64_t j = 0; j < k && has_numbers(c); j++) d.x[j] = max ? -INFINITY : 0;
            if (how.seen) {
                d.abs = take(c, k, 8);
                if (has_numbers(c)) memset(d.abs, 0, (size_t)k * 8);
            }
        }
        if (k != tensor_count(&d.shape)) k = 0; /* other rows: not what is added up here */
        AddJob j = {t.p, exec_dtype(c->e, val), max, d.x, d.abs};
        c->e->host->pieces(c->e->host, c->e->pool, k, add_piece, &j);
        if (how.seen) how.seen[i] = !has_numbers(c) || any_nonzero(t.p, j.dt, k);
        give(c, t.p);
    }
    d.shape.p = NULL;
    return d;
}
static void observe(Check *c, const Step *s, const bool *seen, int64_t rank, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (seen[i]) continue;
        c->unobservable++;
        if (c->n_unobservable < 16)
            *ARENA_PUSH(c->arena, c->unobservable_text, c->n_unobservable, c->cap_unobservable) =
                arena_printf(c->arena, "%s: this run could not notice rank %lld missing",
                             step_name(c->e->p, s, c->arena),
                             (long long)mesh_member(c->e->p->mesh, &s->move.axes, rank, i));
    }
}
static void check_reduction(Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank) {
    const Program *p = c->e->p;
    bool max = s->move.from.type[s->move.axes.a[0]] == TY_M;
    int64_t n = mesh_size(p->mesh, &s->move.axes);
    Arena *tmp = arena_new();
    AxisList XA = *X;
    for (int i = 0; i < s->move.axes.n; i++)
        if (!in_list(&XA, s->move.axes.a[i])) mesh_add_axis(&XA, &s->move.axes, i);
    Region box = assemble_region(c->e, s->in[0], &XA, rank, tmp);
    bool *seen = ARENA_ARRAY(tmp, bool, n);
    Denoted all = denoted(c, s->in[0], X, &s->move.axes, rank, (Shares){max, seen});
    Whole w = {.box = &box, .want = all.x};
    double *abs = all.abs;
    int64_t k = tensor_count(&all.shape);
    double g = max || n == 1 ? 0 : gamma_n((double)n, c->u * c->slack);
    for (int64_t j = 0; j < k && has_numbers(c); j++)
        abs[j] = abs[j] * g + (max ? 0 : n > 1 ? 0x1p-149 : 0);
    round_bounds(c, s->out, k, all.x, abs, NULL);
    w.bound = w.prob = abs;
    compare_all(m, s->out, &s->move.to, X, rank, &w);
    if (!max && s->kind == ST_MOVE && k) observe(c, s, seen, rank, n);
    give(c, w.want);
    give(c, abs);
    arena_free(tmp);
}
/* Moves that only copy: by bits. */
static void check_copy(Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank) {
    Arena *tmp = arena_new();
    Region box = assemble_region(c->e, s->in[0], X, rank, tmp);
    Whole w = {.box = &box, .raw = assemble_value(c->e, s->in[0], X, rank)};
    compare_all(m, s->out, &s->move.to, X, rank, &w);
    give(c, w.raw.p);
    arena_free(tmp);
}
/* A move into a pending sum: what the ranks hold must add up to the source. */
static void check_spread(Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank) {
    const Program *p = c->e->p;
    Tensor src = assemble_value(c->e, s->in[0], X, rank);
    Denoted all = denoted(c, s->out, X, &s->move.axes, rank, (Shares){false, NULL});
    double *sum = all.x;
    int64_t n = tensor_count(&src);
    m->rec.count += n;
    Dtype dt = exec_dtype(c->e, s->out);
    for (int64_t i = 0; i < n && tensor_count(&all.shape) == n && has_numbers(c); i++) {
        double want = compare_at(src.p, dt, i);
        if (sum[i] == want) continue;
        if (!m->failed) m->rec.got = sum[i], m->rec.want = want;
        m->rec.max_abs = fmax(m->rec.max_abs, fabs(sum[i] - want));
        m->rec.max_rel = fmax(m->rec.max_rel, fabs(sum[i] - want) / fmax(fabs(want), 0x1p-126));
        m->rec.used = INFINITY; /* the shares of a value are exact */
        for (int64_t r = 0; r < p->mesh->nranks; r++)
            if (compare_agrees(p->mesh, X, r, rank)) {
                compare_ranks(m);
                m->rank_error[r] = m->rec.max_abs;
            }
        m->failed = true;
        m->rec.verdict = "FAIL";
    }
    give(c, sum);
    give(c, src.p);
}
static void check_move(Check *c, const Step *s) {
    const Program *p = c->e->p;
    int a0 = s->move.axes.n ? s->move.axes.a[0] : 0;
    int tf = s->move.from.type[a0], tt = s->move.to.type[a0];
    Step claim = *s;
    if (s->kind == ST_CLAIM) { /* axes on which the label differs */
        claim.move.axes.n = 0;
        tf = tt = TY_V;
        for (int a = 0; a < p->mesh->naxes; a++)
            if ((s->move.from.type[a] == TY_P || s->move.from.type[a] == TY_M) &&
                s->move.to.type[a] != s->move.from.type[a])
                claim.move.axes.a[claim.move.axes.n++] = (uint8_t)a, tf = TY_P;
        /* whole values taken for shares of a sum */
        for (int a = 0; a < p->mesh->naxes && tf == TY_V; a++)
            if (s->move.to.type[a] == TY_P && s->move.from.type[a] != TY_P)
                claim.move.axes.a[claim.move.axes.n++] = (uint8_t)a, tt = TY_P;
        s = &claim;
    }
    AxisList X = {0};
    for (int a = 0; a < p->mesh->naxes; a++) {
        bool pf = s->move.from.type[a] == TY_P || s->move.from.type[a] == TY_M;
        if (pf && !in_list(&s->move.axes, a)) layout_add_axis(&s->move.from, a, &X);
    }
    CheckLevel level = level_of(c, s);
    bool reduces = level == LEVEL_BOUND, spreads = !reduces && tt == TY_P;
    Compare m = compare_new(c->e, c->arena, s, s->out, level);
    int64_t coords = mesh_size(p->mesh, &X);
    for (int64_t i = 0; i < coords; i++) {
        int64_t rank = first_rank_of(c, s->in[0], &X, i);
        if (reduces) check_reduction(c, s, &m, &X, rank);
        else if (spreads) check_spread(c, s, &m, &X, rank);
        else check_copy(c, s, &m, &X, rank);
    }
    RankSet ranks = ranks_of(c, s->out);
    Compare same = compare_new(c->e, c->arena, s, s->out, LEVEL_BITS);
    if ((reduces || spreads) && !m.failed) compare_replicas(&same, s->out, &s->move.to);
    record(c, &m, &ranks, m.failed ? cause_of_move(c->arena, c->e, s, m.rank_error) : NULL);
    if (same.failed) record(c, &same, &ranks, REPLICAS_DIFFER);
}
static void check_sum(Check *c, const Step *s) {
    const Program *p = c->e->p;
    AxisList X = pending_axes(c, s);
    Compare m = compare_new(c->e, c->arena, s, s->out, LEVEL_BITS);
    int64_t coords = mesh_size(p->mesh, &X);
    for (int64_t i = 0; i < coords; i++) {
        int64_t rank = first_rank_of(c, s->out, &X, i);
        Arena *tmp = arena_new();
        Region box = assemble_region(c->e, s->out, &X, rank, tmp);
        Tensor a = assemble_value(c->e, s->in[0], &X, rank),
               b = assemble_value(c->e, s->in[1], &X, rank);
        int64_t n = tensor_count(&a);
        for (int64_t k = 0; k < n && has_numbers(c); k++) {
            if (c->e->dtype == DT_F32) ((float *)a.p)[k] += ((float *)b.p)[k];
            else ((double *)a.p)[k] += ((double *)b.p)[k];
        }
        narrow_round(c->e, c->e->host, s->out, &a);
        Whole w = {.box = &box, .raw = a};
        compare_all(&m, s->out, &p->val[s->out].L, &X, rank, &w);
        give(c, a.p);
        give(c, b.p);
        arena_free(tmp);
    }
    RankSet ranks = ranks_of(c, s->out);
    record(c, &m, &ranks, m.failed ? cause_of_sum(c->arena, c->e, s, m.rank_error) : NULL);
}
void check_step(Check *c, const Step *s) {
    switch (s->kind) {
    case ST_OP:
    case ST_ADJOINT: check_kernel(c, s); break;
    case ST_MOVE:
    case ST_CLAIM: check_move(c, s); break;
    case ST_SUM: check_sum(c, s); break;
    case ST_SEED: break;
    }
}
void check_exact(Check *c, const Step *s, const Whole *want, double modulus) {
    const Program *p = c->e->p;
    const Val *v = &p->val[s->out];
    AxisList P = {0}, none = {0};
    for (int a = 0; a < p->mesh->naxes; a++) {
        /* a pending maximum: its reduction is looked at */
        if (v->L.type[a] == TY_M && p->mesh->axis[a].size > 1) return;
        if (v->L.type[a] == TY_P) layout_add_axis(&v->L, a, &P); /* of a pair: its two ranks */
    }
    Compare m = compare_new(c->e, c->arena, s, s->out, LEVEL_EXACT);
    if (!P.n) compare_all(&m, s->out, &v->L, &none, 0, want);
    else {
        /* the shares must add up to the value, modulo */
        Denoted all = denoted(c, s->out, &none, &P, first_rank_of(c, s->out, &none, 0),
                              (Shares){false, NULL});
        double *sum = all.x;
        int64_t n = tensor_count(&all.shape);
        for (int64_t i = 0; i < n && has_numbers(c); i++) {
            double x = sum[i] - modulus * floor(sum[i] / modulus),
                   y = want->raw.p ? compare_at(want->raw.p, c->e->dtype, i) : want->want[i];
            m.rec.count++;
            if (x == y || m.failed) continue;
            m.failed = true;
            m.rec.verdict = "FAIL";
            m.rec.got = x, m.rec.want = y, m.rec.max_abs = fabs(x - y);
            compare_ranks(&m);
            for (int64_t r = 0; r < p->mesh->nranks; r++) m.rank_error[r] = m.rec.max_abs;
        }
        give(c, sum);
        if (!m.failed) compare_replicas(&m, s->out, &v->L); /* only first holders were summed */
    }
    RankSet ranks = ranks_of(c, s->out);
    record(c, &m, &ranks, "integer data show another value than the unsharded program");
}
void check_stuck(Check *c, const Step *s, const char *why) {
    Compare m = compare_new(c->e, c->arena, s, s->out, LEVEL_BITS);
    compare_ranks(&m);
    for (int64_t r = 0; r < c->e->p->mesh->nranks; r++) m.rank_error[r] = INFINITY;
    m.failed = true;
    m.rec.verdict = "FAIL";
    m.rec.max_abs = m.rec.used = INFINITY;
    RankSet ranks = ranks_of(c, s->out);
    record(c, &m, &ranks, why);
}
static int larger_first(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}
double check_reference(Check *c, int val, const double *want, double odd, double *top) {
    const Program *p = c->e->p;
    const Val *v = &p->val[val];
    AxisList P = {0}, none = {0};
    for (int a = 0; a < p->mesh->naxes; a++)
        if (v->L.type[a] == TY_P) P.a[P.n++] = (uint8_t)a;
    Denoted all =
        denoted(c, val, &none, &P, first_rank_of(c, val, &none, 0), (Shares){false, NULL});
    double *got = all.x, err = 0;
    int64_t n = tensor_count(&all.shape), out = odd > 0 ? (int64_t)ceil(odd * (double)n) : 0;
    *top = 0;
    for (int64_t i = 0; i < n && has_numbers(c); i++) {
        *top = fmax(*top, fabs(want[i]));
        double d = fabs(got[i] - want[i]);
        got[i] = isnan(d) ? INFINITY : d;
        err = fmax(err, got[i]);
    }
    if (out && isfinite(err) && has_numbers(c)) {
        qsort(got, (size_t)n, sizeof *got, larger_first);
        err = out < n ? got[out] : 0;
    }
    give(c, got);
    return err;
}
/* The sum of the shares at each coordinate of X, the axes on which ranks hold copies. */
static void distance_of_sum(Check *c, int val, const AxisList *P, const double *want, double *far) {
    const Program *p = c->e->p;
    AxisList X = {0};
    for (int a = 0; a < p->mesh->naxes; a++)
        if (p->val[val].L.type[a] == TY_R || p->val[val].L.type[a] == TY_I) X.a[X.n++] = (uint8_t)a;
    for (int64_t i = 0; i < mesh_size(p->mesh, &X); i++) {
        int64_t rank = first_rank_of(c, val, &X, i);
        Denoted all = denoted(c, val, &X, P, rank, (Shares){false, NULL});
        double err = 0;
        for (int64_t k = 0; k < tensor_count(&all.shape) && has_numbers(c); k++) {
            double d = fabs(all.x[k] - want[k]);
            err = fmax(err, isnan(d) ? INFINITY : d);
        }
        for (int64_t r = 0; r < p->mesh->nranks; r++)
            if (exec_store(c->e, val)->which[r] != EXEC_NOTHING &&
                compare_agrees(p->mesh, &X, r, rank))
                far[r] = fmax(far[r], err);
        give(c, all.x);
    }
}
bool check_distance(Check *c, int val, double *want, const Region *box, double *far, double *top) {
    const Program *p = c->e->p;
    const Val *v = &p->val[val];
    const Tensor whole = region_packed(box);
    AxisList P = {0}, none = {0};
    for (int a = 0; a < p->mesh->naxes; a++) {
        bool many = p->mesh->axis[a].size > 1;
        if (v->L.type[a] == TY_M && many) return false;
        if (v->L.type[a] == TY_P && many) P.a[P.n++] = (uint8_t)a;
    }
    for (int64_t r = 0; r < p->mesh->nranks; r++) far[r] = 0;
    *top = 0;
    for (int64_t i = 0; i < tensor_count(&whole) && has_numbers(c); i++)
        *top = fmax(*top, fabs(want[i]));
    if (P.n) {
        distance_of_sum(c, val, &P, want, far);
        return true;
    }
    Compare m = compare_new(c->e, c->arena, NULL, val, LEVEL_BOUND);
    compare_all(&m, val, &v->L, &none, 0, &(Whole){.box = box, .want = want});
    for (int64_t r = 0; m.rank_error && r < p->mesh->nranks; r++) far[r] = fmax(m.rank_error[r], 0);
    free(m.rank_error);
    return true;
}
