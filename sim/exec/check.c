/* Holding every value of every rank against what it must be. */
#include "exec/check.h"
#include "exec/assemble.h"
#include "exec/away.h"
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
/* Of what is known nothing, though in float64 it is a number: its op says so. */
static void count_beyond(Check *c, const Step *s, int64_t n, const double *want,
                         const double *bound) {
    const int64_t before = c->beyond;
    for (int64_t i = 0; i < n && has_numbers(c); i++)
        c->beyond += isinf(bound[i]) && isfinite(want[i]);
    if (!before && c->beyond)
        c->beyond_first =
            cause_when(c, program_value_name(c->e->p, &c->e->p->val[s->out], c->arena));
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
    count_beyond(c, s, n, call->out.p, w->bound);
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
#define OP_ITSELF                                                                                  \
    "every rank has, bit for bit, what the op gives on the ranks' inputs, but in float64 the op "  \
    "gives another number: more than rounding lies between the two"
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
static const AssembleParts *lie(const Joint *j, int val, Lying *l, Tensor *whole, Arena *tmp) {
    Device *dev = j->c->e->dev;
    l->apart = assemble_parts(j->c->e, val, j->X, j->rank, tmp, &l->parts) && !has_lists(&l->parts);
    if (!l->apart && whole) *whole = joint_letters(j, val);
    for (int64_t i = 0; l->apart && i < l->parts.n; i++) {
        Tensor *t = &l->parts.part[i].t;
        if (far_rank(j->c->e, t) < 0) *t = dev->get(dev, t, exec_dtype(j->c->e, val));
    }
    return l->apart ? &l->parts : NULL;
}
static void lie_done(const Check *c, Lying *l) {
    for (int64_t i = 0; l->apart && i < l->parts.n; i++)
        if (far_rank(c->e, &l->parts.part[i].t) < 0)
            c->e->dev->done(c->e->dev, &l->parts.part[i].t);
}
/* The factor that is used as it is: put together, or where it is elsewhere in parts. */
static const AssembleParts *lie_kept(const Joint *j, int val, Lying *l, Projection *q, Tensor *to,
                                     Arena *tmp) {
    l->apart = false;
    if (j->c->e->far) {
        const AssembleParts *parts = lie(j, val, l, to, tmp);
        if (!parts || project_apart(q, parts)) return parts;
        lie_done(j->c, l);
        l->apart = false;
    }
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
        whole_call(j, s, &q->call, &ob, tmp) && project_can(q) && shapes_hold(j, m, s->out, &ob);
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
    }
    free_call(c, &q->call, c->e->p->graph->node[s->node].nin);
    arena_free(tmp);
    return can;
}
/* What was seen of projections, in the record that is made. */
static void note_projected(Compare *m, const Projected *seen, int64_t count) {
    m->rec.projections = PROJECT_VECTORS;
    m->rec.count += count;
    m->rec.notice = fmax(m->rec.notice, seen->notice);
    if (seen->used >= m->rec.used)
        m->rec.used = seen->used, m->rec.bound = seen->bound, m->rec.max_abs = seen->residual;
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
        note_projected(&all, &seen, tensor_count(&q.call.out));
    }
    if (held && !c->e->dev->own_order) compare_replicas(&same, s->out, &p->val[s->out].L);
    free(same.rank_error);
    if (!held || same.failed) return false;
    RankSet ranks = ranks_of(c, s->out);
    record(c, &all, &ranks, NULL);
    return true;
}
/* What is seen of a step's result: by bits, and in float64. */
typedef struct {
    Compare bits, local;
} Levels;
static Levels levels_new(const Check *c, const Step *s) {
    return (Levels){compare_new(c->e, c->arena, s, s->out, LEVEL_BITS),
                    compare_new(c->e, c->arena, s, s->out, LEVEL_BOUND)};
}
/* An op or its adjoint at the coordinate of j. */
static void kernel_at(Check *c, const Step *s, const Joint *j, Levels *seen) {
    const Program *p = c->e->p;
    const Layout *L = &p->val[s->out].L;
    int nin = p->graph->node[s->node].nin;
    bool by_bound = level_of(c, s) == LEVEL_BOUND;
    Arena *tmp = arena_new();
    OpCall call;
    Region ob;
    if (!whole_call(j, s, &call, &ob, tmp)) {
        for (int64_t r = 0; r < p->mesh->nranks; r++)
            if (compare_agrees(p->mesh, j->X, r, j->rank)) compare_wrong_shape(&seen->bits, r);
    } else {
        Whole w = {.box = &ob, .raw = region_packed(&ob)};
        if (!by_bound) {
            w.raw.p = call.out.p =
                take(c, tensor_count(&call.out), dtype_size(exec_dtype(c->e, s->out)));
            run_kernel(c, s, &call);
            narrow_round(c->e, c->e->host, s->out, &call.out);
            if (p->val[s->out].list == s->out)
                ob.d[0] = (DimIndex){false, 0, call.rows, call.out.p};
            compare_all(&seen->bits, s->out, L, j->X, j->rank, &w);
        }
        if ((c->e->dtype == DT_F32 || by_bound || seen->bits.failed) &&
            !exec_is_int(c->e, s->out)) {
            level2(c, s, &call, nin, &w);
            compare_all(&seen->local, s->out, L, j->X, j->rank, &w);
            give(c, w.bound);
            give(c, w.prob);
        } else seen->local.rec.count = seen->bits.rec.count;
    }
    free_call(c, &call, nin);
    arena_free(tmp);
}
/* A sum of two values. */
static void sum_at(Check *c, const Step *s, const Joint *j, Levels *seen) {
    const Program *p = c->e->p;
    Arena *tmp = arena_new();
    Region box = assemble_region(c->e, s->out, j->X, j->rank, tmp);
    Tensor a = assemble_value(c->e, s->in[0], j->X, j->rank),
           b = assemble_value(c->e, s->in[1], j->X, j->rank);
    int64_t n = tensor_count(&a);
    for (int64_t k = 0; k < n && has_numbers(c); k++) {
        if (c->e->dtype == DT_F32) ((float *)a.p)[k] += ((float *)b.p)[k];
        else ((double *)a.p)[k] += ((double *)b.p)[k];
    }
    narrow_round(c->e, c->e->host, s->out, &a);
    Whole w = {.box = &box, .raw = a};
    compare_all(&seen->bits, s->out, &p->val[s->out].L, j->X, j->rank, &w);
    give(c, a.p);
    give(c, b.p);
    arena_free(tmp);
}

/* ---- steps held where they lie ---- */
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
        if (p->mesh->axis[a].size > 1 && !in_list(X, a) && !axis_apart(c, s, a, part, n))
            return false;
    return true;
}
/* What a rank's own blocks show, by bits and in float64; count below 0: it needs a closer look. A
 * bound that follows from a largest number is that of the rank's own numbers here. */
typedef struct {
    CompareSeen seen[2];
    int64_t count[2];
} Apart;
static Apart apart_here(Check *c, const Step *s, int64_t rank) {
    AxisList all = {0};
    for (int a = 0; a < c->e->p->mesh->naxes; a++) all.a[all.n++] = (uint8_t)a;
    Joint j = {.c = c, .X = &all, .rank = rank};
    Levels l = levels_new(c, s);
    (s->kind == ST_SUM ? sum_at : kernel_at)(c, s, &j, &l);
    Apart x;
    for (int k = 0; k < 2; k++) {
        const Compare *m = k ? &l.local : &l.bits;
        x.seen[k] = (CompareSeen){.max_abs = m->rec.max_abs,
                                  .max_rel = m->rec.max_rel,
                                  .used = m->rec.used,
                                  .bound = m->rec.bound,
                                  .first = -1};
        x.count[k] = m->rec.verdict[0] == 'P' ? m->rec.count : -1;
        free(m->rank_error);
    }
    return x;
}
static FarBytes apart_answer(void *arg, const Local *of, FarBytes q, Arena *arena) {
    Check *c = arg;
    (void)of;
    const int64_t *step = q.p, *rank = step + 1;
    Apart x = apart_here(c, &c->e->p->step[*step], *rank);
    return (FarBytes){sizeof x, arena_memdup(arena, &x, sizeof x)};
}
static Apart apart_of(Check *c, const Step *s, int64_t rank) {
    if (far_rank(c->e, &exec_local(c->e, s->out, rank)->t) < 0) return apart_here(c, s, rank);
    Arena *tmp = arena_new();
    int64_t q[2] = {s->id, rank};
    Apart x;
    FarBytes a = far_ask(c->e, FAR_HOLD, NULL, rank, (FarBytes){sizeof q, q}, tmp);
    memcpy(&x, a.p, sizeof x);
    arena_free(tmp);
    return x;
}
/* The first ranks of the blocks of a value among those that agree with j->rank; how many. */
static int64_t holders(const Joint *j, int val, int64_t *to) {
    const Mesh *m = j->c->e->p->mesh;
    const Store *st = exec_store(j->c->e, val);
    int64_t n = 0;
    for (int64_t r = 0; r < m->nranks; r++) {
        if (st->which[r] == EXEC_NOTHING || !compare_agrees(m, j->X, r, j->rank)) continue;
        int64_t k = 0;
        while (k < n && st->which[to[k]] != st->which[r]) k++;
        if (k == n) to[n++] = r;
    }
    return n;
}
/* Each rank holds the step on its own blocks. False: it cannot be, or something is wrong; then
 * nothing was seen. */
static bool held_apart(Check *c, const Step *s, const AxisList *X, Levels *to) {
    const Program *p = c->e->p;
    if (!is_apart(c, s, X)) return false;
    const Layout *L = &p->val[s->out].L;
    int64_t n = 0, coords = mesh_size(p->mesh, X), *rank;
    Arena *tmp = arena_new();
    rank = ARENA_ARRAY(tmp, int64_t, coords * p->mesh->nranks);
    for (int64_t i = 0; i < coords; i++) {
        Joint j = {.c = c, .X = X, .rank = first_rank_of(c, s->out, X, i)};
        n += holders(&j, s->out, rank + n);
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
    }
    arena_free(tmp);
    return right;
}
void check_answers(Check *c, Far *f) {
    far_answers(f, FAR_HOLD, apart_answer, c);
    away_answers(f, c->e);
}
static void check_kernel(Check *c, const Step *s) {
    /* a projection adds up as many roundings as there are elements: it would notice little */
    if (c->quick && !c->e->narrow && check_product(c, s)) return;
    const Program *p = c->e->p;
    AxisList X = pending_axes(c, s);
    bool by_bound = level_of(c, s) == LEVEL_BOUND;
    Levels seen = levels_new(c, s);
    bool apart = held_apart(c, s, &X, &seen);
    for (int64_t i = 0; i < mesh_size(p->mesh, &X) && !apart; i++)
        kernel_at(c, s, &(Joint){.c = c, .X = &X, .rank = first_rank_of(c, s->out, &X, i)}, &seen);
    Compare bits = seen.bits, local = seen.local;
    RankSet ranks = ranks_of(c, s->out);
    const char *cause = NULL;
    if (by_bound && !bits.failed) { /* level 2 says what it must be; copies of a share must agree */
        bits.rec.count = local.rec.count;
        if (!c->e->dev->own_order) compare_replicas(&bits, s->out, &p->val[s->out].L);
        if (bits.failed) cause = REPLICAS_DIFFER;
    }
    if (!by_bound && !bits.failed && local.failed) cause = OP_ITSELF;
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
/* A sum held by projections. False: it cannot be, or something needs a closer look. */
static bool check_total(Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank) {
    const Program *p = c->e->p;
    const AxisList *over = &s->move.axes;
    Arena *tmp = arena_new();
    AxisList both = *X;
    for (int i = 0; i < over->n; i++)
        if (!in_list(&both, over->a[i])) mesh_add_axis(&both, over, i);
    int64_t n = mesh_size(p->mesh, over), k = 0;
    AssembleParts *share = ARENA_ARRAY(tmp, AssembleParts, n);
    Lying out = {0}, *in = ARENA_ARRAY(tmp, Lying, n);
    bool *seen = ARENA_ARRAY(tmp, bool, n);
    ProjectAway away = away_asks(c->e);
    bool held = lie(&(Joint){.c = c, .X = X, .rank = rank}, s->out, &out, NULL, tmp);
    for (; k < n && held; k++) {
        Joint j = {.c = c, .X = &both, .rank = mesh_member(p->mesh, over, rank, k)};
        held = lie(&j, s->in[0], &in[k], NULL, tmp);
        share[k] = in[k].parts;
    }
    ProjectTotal q = {.host = c->e->host,
                      .pool = c->e->pool,
                      .dt = exec_dtype(c->e, s->out),
                      .u = c->u * c->slack,
                      .seed = c->seed,
                      .of = (uint64_t)s->id,
                      .away = c->e->far ? &away : NULL,
                      .share = share,
                      .out = &out.parts,
                      .n = n};
    Projected r = held ? project_total(&q, seen) : (Projected){0};
    while (k) lie_done(c, &in[--k]);
    lie_done(c, &out);
    Tensor all = region_packed(&out.parts.box);
    if (r.held) note_projected(m, &r, tensor_count(&all));
    if (r.held && s->kind == ST_MOVE && tensor_count(&all)) observe(c, s, seen, rank, n);
    arena_free(tmp);
    return r.held;
}
static void check_reduction(Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank) {
    const Program *p = c->e->p;
    bool max = s->move.from.type[s->move.axes.a[0]] == TY_M;
    /* in bf16 their roundings are all that there is */
    if (c->quick && !c->e->narrow && !max && check_total(c, s, m, X, rank)) return;
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
/* A copy whose blocks are elsewhere. False: it needs a closer look. */
static bool copy_apart(const Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank) {
    const Program *p = c->e->p;
    AssembleParts parts;
    if (!c->e->far || p->val[s->out].list >= 0) return false;
    Arena *tmp = arena_new();
    Joint j = {.c = c, .X = X, .rank = rank};
    int64_t *to = ARENA_ARRAY(tmp, int64_t, p->mesh->nranks), n = holders(&j, s->out, to);
    bool same = assemble_parts(c->e, s->in[0], X, rank, tmp, &parts);
    for (int64_t k = 0; k < n && same; k++) same = copied(c, s, to[k], &parts, tmp);
    for (int64_t k = 0; k < n && same; k++)
        compare_note(m, s->out, &s->move.to, to[k], &(CompareSeen){.first = -1},
                     tensor_count(&exec_local(c->e, s->out, to[k])->t));
    arena_free(tmp);
    return same;
}
/* Moves that only copy: by bits, of what they copy, or of what is kept from the step before. */
static void check_copy(Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank) {
    if (copy_apart(c, s, m, X, rank)) return;
    Arena *tmp = arena_new();
    const Store *part = narrow_part(c->e, s);
    int from = part ? s->out : s->in[0];
    Store now = *exec_store(c->e, from);
    if (part) *exec_store(c->e, from) = *part, rank = first_rank_of(c, from, X, 0);
    Region box = assemble_region(c->e, from, X, rank, tmp);
    Whole w = {.box = &box, .raw = assemble_value(c->e, from, X, rank)};
    *exec_store(c->e, from) = now;
    narrow_round(c->e, c->e->host, s->out, &w.raw);
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
    AxisList X = pending_axes(c, s);
    Levels seen = levels_new(c, s);
    bool apart = held_apart(c, s, &X, &seen);
    for (int64_t i = 0; i < mesh_size(c->e->p->mesh, &X) && !apart; i++)
        sum_at(c, s, &(Joint){.c = c, .X = &X, .rank = first_rank_of(c, s->out, &X, i)}, &seen);
    Compare m = seen.bits;
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
