/* Element by element: the op again on the whole, in the run's numbers and in float64. See levels.h.
 */
#include "exec/levels.h"
#include "exec/narrow.h"
#include "exec/projected.h"
#include "exec/slices.h"
#include "ops/op.h"
#include "weights/weights.h"
#include <math.h>
#include <stdlib.h>
#include <stdatomic.h>

typedef struct {
    const float *x;
    double *out;
} Widen;
static void widen(void *arg, int64_t lo, int64_t hi) {
    const Widen *w = arg;
    for (int64_t i = lo; i < hi; i++) w->out[i] = w->x[i];
}
static double *to_f64(const Check *c, const Tensor *t) { /* packed float32 in, packed out */
    int64_t n = tensor_count(t);
    Widen w = {t->p, joint_take(c, n, 8)};
    c->e->host->pieces(c->e->host, c->e->pool, n, widen, &w);
    return w.out;
}

/* Towards which operand; -1: forward. */
static int adjoint_of(const Step *s) { return s->kind == ST_ADJOINT ? s->operand : -1; }
static void run_kernel(const Check *c, const Step *s, OpCall *call) {
    c->e->host->call(c->e->host, call, 1, s->kind == ST_ADJOINT ? DEVICE_ADJOINT : DEVICE_FORWARD,
                     NULL);
}
void levels_round(const Check *c, int val, int64_t n, double *want, double *bound, double *prob) {
    if (c->e->narrow && c->e->narrow[val] && joint_numbers(c)) narrow_bounds(n, want, bound, prob);
}
/* Of what is known nothing, though in float64 it is a number: its op says so. */
typedef struct {
    const double *want, *bound;
    _Atomic int64_t n;
} Beyond;
static void beyond_piece(void *arg, int64_t lo, int64_t hi) {
    enum { PIECE = 1024 };
    Beyond *j = arg;
    int64_t n = 0;
    for (int64_t k0 = lo; k0 < hi; k0 += PIECE) {
        int64_t k1 = k0 + PIECE < hi ? k0 + PIECE : hi;
        double top = 0; /* mostly finite: then no element is looked at by itself */
        for (int64_t i = k0; i < k1; i++) top = j->bound[i] > top ? j->bound[i] : top;
        for (int64_t i = k0; i < k1 && isinf(top); i++)
            n += isinf(j->bound[i]) && isfinite(j->want[i]);
    }
    j->n += n;
}
static void count_beyond(Check *c, const Step *s, int64_t n, const double *want,
                         const double *bound) {
    Beyond j = {.want = want, .bound = bound};
    c->e->host->pieces(c->e->host, c->e->pool, n, beyond_piece, &j);
    if (!c->beyond.n && j.n) {
        c->beyond.first =
            joint_when(c, program_value_name(c->e->p, &c->e->p->val[s->out], c->arena));
        c->beyond.in = c->step;
        c->beyond.at = s->id;
    }
    if (j.n && c->step == c->beyond.in && s->id < c->beyond.at) c->beyond.at = s->id;
    c->beyond.n += j.n;
}
/* Are bounds as products of two magnitudes enough? Not where each must be widened, nor where a
 * block lists the dims of the result as one. */
static bool by_factors(const Check *c, const Step *s, const OpCall *call, int operand, int *outer) {
    const Layout *L = &c->e->p->val[s->out].L;
    const bool narrow = c->e->narrow && c->e->narrow[s->out];
    return call->op->factored && !narrow && !L->n[L->ndim] &&
           call->op->factored(call, operand, outer);
}
static void give_bounds(const Check *c, Whole *w) {
    joint_give(c, w->bound);
    joint_give(c, w->prob);
    free(w->factors.row);
    free(w->factors.col);
    w->bound = w->prob = NULL;
    w->factors = (ErrorFactors){0};
}
/* What the call makes of operands in float64, with its bounds (give_bounds); `want` is to be given
 * back. */
static void in_float64(Check *c, const Step *s, OpCall *call, Whole *w) {
    if (!call->out.p) { /* what f64 runs hold by bits is there */
        call->out.p = joint_take(c, tensor_count(&call->out), 8);
        run_kernel(c, s, call);
    }
    int64_t n = tensor_count(&call->out);
    OpBound b = {.call = *call, .operand = adjoint_of(s), .u = c->u * c->slack};
    bool finite = !joint_numbers(c);
    b.finite = &finite;
    w->want = call->out.p;
    w->raw.p = NULL;
    if (by_factors(c, s, call, b.operand, &w->outer)) {
        b.factors = &w->factors;
        c->e->host->bound(c->e->host, &b);
        if (finite) return;
        give_bounds(c, w); /* which are infinite is looked for one by one */
        b.factors = NULL;
    }
    b.bound = w->bound = joint_take(c, n, 8);
    b.prob = w->prob = joint_take(c, n, 8);
    c->e->host->bound(c->e->host, &b);
    if (!finite) count_beyond(c, s, n, call->out.p, w->bound);
    levels_round(c, s->out, n, call->out.p, w->bound, w->prob);
}
/* Which operands are read as they are and widened on the way: all or none. */
static uint32_t widens(const Step *s, const OpCall *call) {
    bool all = call->op->widens && call->op->widens(call, adjoint_of(s));
    return all ? ((uint32_t)2 << call->rule->nin) - 1 : 0;
}
/* The call in float64 with its bounds; replaces the inputs by f64 copies if the op reads no other.
 */
static void level2(Check *c, const Step *s, OpCall *call, Whole *w) {
    if (call->dtype == DT_F32) {
        call->floats = widens(s, call);
        for (int k = 0; !call->floats && k < slices_tensors(s, call); k++) {
            Tensor *t = slices_tensor(call, k);
            if (!t->p || (k < call->rule->nin && call->in_int >> k & 1)) continue;
            double *x = to_f64(c, t);
            joint_give(c, t->p);
            t->p = x;
        }
        call->dtype = DT_F64;
        joint_give(c, call->out.p);
        call->out.p = NULL;
    }
    in_float64(c, s, call, w);
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
CheckLevel levels_of(const Check *c, const Step *s) {
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
Levels levels_new(const Check *c, const Step *s, bool each) {
    return (Levels){.bits = compare_new(c->e, c->arena, s, s->out, LEVEL_BITS),
                    .local = compare_new(c->e, c->arena, s, s->out, LEVEL_BOUND),
                    .each = each};
}
/* An op in slices: operands without their letter are put together and widened once. */
typedef struct {
    Tensor t[RULE_MAX_IN + 2];
    double *wide[RULE_MAX_IN + 2];
} Kept;
static void load_slice(const Joint *j, const Step *s, const Slices *x, int64_t lo, OpCall *call,
                       Kept *kept) {
    for (int k = 0; k < slices_tensors(s, call); k++) {
        Tensor *t = slices_tensor(call, k);
        if (slices_value(s, call, k) < 0) continue;
        if (slices_dim(x, k) >= 0) *t = slices_part(j, x, s, k, lo);
        else {
            if (!kept->t[k].p) kept->t[k] = slices_part(j, x, s, k, lo);
            *t = kept->t[k];
        }
    }
}
static void widen_slice(const Check *c, const Step *s, const Slices *x, OpCall *call, Kept *kept) {
    call->dtype = DT_F64;
    call->floats = widens(s, call);
    if (call->floats) return;
    for (int k = 0; k < slices_tensors(s, call); k++) {
        Tensor *t = slices_tensor(call, k);
        if (!t->p) continue;
        bool own = slices_dim(x, k) >= 0;
        double *wide = own || !kept->wide[k] ? to_f64(c, t) : kept->wide[k];
        if (own) joint_give(c, t->p);
        else kept->wide[k] = wide;
        t->p = wide;
    }
}
static void slice_by_bits(const Check *c, const Step *s, OpCall *call, Whole *w, CompareLooks *to) {
    w->raw.p = call->out.p = joint_take(c, tensor_count(&call->out), dtype_size(DT_F32));
    run_kernel(c, s, call);
    narrow_round(c->e, c->e->host, s->out, &call->out);
    compare_look(to, w);
    joint_give(c, call->out.p);
    call->out.p = NULL;
}
/* One slice of so many is asked in float64 where bits hold all: an op that rounding does not
 * explain is wrong in any. Which ones is drawn, others in each step, micro-batch and training step.
 */
enum { IN_FLOAT64 = 8 };
typedef struct {
    int64_t of, first;
} Asked;
static Asked slices_asked(const Check *c, const Step *s, const Slices *x) {
    int64_t n = (x->n + x->each - 1) / x->each, first = 0, of = n < IN_FLOAT64 ? n : IN_FLOAT64;
    RandomStream stream = {.seed = c->seed, .stream = projected_of(c, s)};
    random_ints(&stream, 0, 1, of, &first);
    return (Asked){of, first};
}
static void levels_slices(Check *c, const Step *s, const Joint *j, const Slices *x, Levels *seen) {
    const Layout *L = &c->e->p->val[s->out].L;
    bool by_bound = levels_of(c, s) == LEVEL_BOUND;
    Kept kept = {0};
    Asked asked = {1, 0};
    if (c->quick && !by_bound && !seen->each) asked = slices_asked(c, s, x), seen->some = true;
    CompareLooks bits = {0}, local = compare_begin(&seen->local, s->out, L, j->X, j->rank);
    if (!by_bound) bits = compare_begin(&seen->bits, s->out, L, j->X, j->rank);
    for (int64_t lo = 0; lo < x->n; lo += x->each) {
        Region box;
        OpCall call = slices_call(x, s, lo, &box);
        Whole w = {.box = &box, .part = 1 + x->dim, .raw = region_packed(&box)};
        load_slice(j, s, x, lo, &call, &kept);
        if (!by_bound) slice_by_bits(c, s, &call, &w, &bits);
        if (lo / x->each % asked.of == asked.first) {
            widen_slice(c, s, x, &call, &kept);
            in_float64(c, s, &call, &w);
            compare_look(&local, &w);
            give_bounds(c, &w);
            joint_give(c, call.out.p);
        }
        for (int k = 0; k < slices_tensors(s, &call); k++)
            if (slices_dim(x, k) >= 0) joint_give(c, slices_tensor(&call, k)->p);
    }
    for (int k = 0; k < RULE_MAX_IN + 2; k++) {
        joint_give(c, kept.t[k].p);
        joint_give(c, kept.wide[k]);
    }
    if (!by_bound) compare_end(&bits);
    compare_end(&local);
}
/* In float64, once the bits are looked at, w->raw; not in f64 runs whose bits are right, of
 * integers never. */
static void second_level(Check *c, const Step *s, const Joint *j, OpCall *call, Whole *w,
                         Levels *seen) {
    bool by_bits = levels_of(c, s) == LEVEL_BITS && !seen->bits.failed;
    if ((c->e->dtype != DT_F32 && by_bits) || exec_is_int(c->e, s->out)) {
        seen->local.rec.count = seen->bits.rec.count;
        return;
    }
    if (by_bits && projected_mixed(c, s, call, &seen->local)) return;
    level2(c, s, call, w);
    compare_all(&seen->local, s->out, &c->e->p->val[s->out].L, j->X, j->rank, w);
    give_bounds(c, w);
}
void levels_op(Check *c, const Step *s, const Joint *j, Levels *seen) {
    const Program *p = c->e->p;
    const Layout *L = &p->val[s->out].L;
    int nin = p->graph->node[s->node].nin;
    bool by_bound = levels_of(c, s) == LEVEL_BOUND;
    Arena *tmp = arena_new();
    OpCall call;
    Region ob;
    Slices x;
    if (slices_of(j, s, &x, tmp)) {
        levels_slices(c, s, j, &x, seen);
        arena_free(tmp);
        return;
    }
    if (!joint_call(j, s, &call, &ob, tmp)) {
        for (int64_t r = 0; r < p->mesh->nranks; r++)
            if (compare_agrees(p->mesh, j->X, r, j->rank)) compare_no_numbers(&seen->bits, r);
    } else {
        Whole w = {.box = &ob, .raw = region_packed(&ob)};
        if (!by_bound) {
            w.raw.p = call.out.p =
                joint_take(c, tensor_count(&call.out), dtype_size(exec_dtype(c->e, s->out)));
            run_kernel(c, s, &call);
            narrow_round(c->e, c->e->host, s->out, &call.out);
            if (p->val[s->out].list == s->out)
                ob.d[0] = (DimIndex){false, 0, call.rows, call.out.p};
            compare_all(&seen->bits, s->out, L, j->X, j->rank, &w);
        }
        second_level(c, s, j, &call, &w, seen);
    }
    joint_free(c, &call, nin);
    arena_free(tmp);
}
typedef struct {
    Dtype dt;
    void *sum;
    const void *x;
} PlusJob;
static void plus_piece(void *arg, int64_t lo, int64_t hi) {
    const PlusJob *j = arg;
    float *f = j->sum;
    double *d = j->sum;
    if (j->dt == DT_F32)
        for (int64_t i = lo; i < hi; i++) f[i] += ((const float *)j->x)[i];
    else
        for (int64_t i = lo; i < hi; i++) d[i] += ((const double *)j->x)[i];
}
void levels_sum(Check *c, const Step *s, const Joint *j, Levels *seen) {
    const Program *p = c->e->p;
    Arena *tmp = arena_new();
    Region box = assemble_region(c->e, s->out, j->X, j->rank, tmp);
    Tensor a = assemble_value(c->e, s->in[0], j->X, j->rank),
           b = assemble_value(c->e, s->in[1], j->X, j->rank);
    PlusJob plus = {c->e->dtype, a.p, b.p};
    c->e->host->pieces(c->e->host, c->e->pool, tensor_count(&a), plus_piece, &plus);
    narrow_round(c->e, c->e->host, s->out, &a);
    Whole w = {.box = &box, .raw = a};
    compare_all(&seen->bits, s->out, &p->val[s->out].L, j->X, j->rank, &w);
    joint_give(c, a.p);
    joint_give(c, b.p);
    arena_free(tmp);
}
