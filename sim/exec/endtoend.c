/* The bounds of the comparison with the unsharded run, and what is held against what. */
#include "exec/endtoend.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A value is the end of a chain of many rounded sums, not of one. */
enum { SUMS = 64 };
/* Per dtype: the bound as a share of a value's largest magnitude, the unit in the last place, and
 * how many of the nudges of reference_full (an ulp of f64, 2^-52) make one. */
static const struct {
    double share, ulp, nudges;
} limits[] = {[DT_F32] = {1e-2, 0x1p-23, 0x1p29}, [DT_F64] = {1e-9, 0x1p-52, 1}};

/* One comparison: n numbers against those of the unsharded run. */
typedef struct {
    const char *name, *pass;
    int step;
    const double *want, *nudged; /* nudged NULL: not asked for yet */
    int64_t n;
    double top, error; /* the largest magnitude that is wanted, the largest difference */
} Pair;
typedef struct {
    const EndToEnd *e;
    PipelineReport *rep;
    Reference *nudged;
    bool asked;
    double worst; /* share of its bound that the worst value used */
} State;

static const Reference *nudged_run(State *s) {
    if (!s->asked) s->nudged = s->e->nudged(s->e->arg);
    s->asked = true;
    return s->nudged;
}
static int64_t elements(const GTensor *t) {
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    return n;
}

/* ---- bounds ---- */
/* How far rounding alone can move the value: SUMS times what inputs and weights off by an ulp of
 * the run's dtype do. */
static double rounding(const EndToEnd *e, const Pair *p) {
    double far = 0;
    for (int64_t i = 0; i < p->n; i++) far = fmax(far, fabs(p->want[i] - p->nudged[i]));
    return SUMS * limits[e->check->e->dtype].nudges * far;
}
/* A share of the largest magnitude, or what rounding can do where that is more (a saturated
 * softmax, a sum that cancels, a few steps of training). Measured, it is what rounding can do, and
 * not below a few ulps. A value that is zero everywhere has no magnitude to take a share of:
 * rounding decides alone. */
static double bound_of(const EndToEnd *e, const Pair *p) {
    const double share =
        e->measure ? SUMS * limits[e->check->e->dtype].ulp : limits[e->check->e->dtype].share;
    double least = share * p->top;
    return p->nudged ? fmax(least, rounding(e, p)) : least;
}

/* ---- one value ---- */
static void fail(const State *s, const Pair *p, double bound) {
    Check *c = s->e->check;
    Trace *t = c->t;
    const char *add = s->e->parts > 1 ? ", or the micro-batches do not add up to the batch" : "";
    TraceCheck *k = ARENA_PUSH(t->arena, t->checks, t->n_checks, t->cap_checks);
    *k = (TraceCheck){.step = p->step,
                      .value = p->name,
                      .pass = p->pass,
                      .level = 2,
                      .verdict = "FAIL",
                      .ranks = rankset_range(c->arena, 0, c->e->p->mesh->nranks, 1),
                      .count = p->n,
                      .max_abs = p->error,
                      .max_rel = p->top > 0 ? p->error / p->top : p->error,
                      .bound = bound,
                      .used = bound > 0 ? p->error / bound : INFINITY};
    k->cause = arena_printf(
        c->arena,
        "end to end it differs from the unsharded model by %.2g of its largest number, bound "
        "%.2g, although every step follows from its inputs%s",
        k->max_rel, p->top > 0 ? bound / p->top : bound, add);
    c->first_fail = t->n_checks - 1;
    t->first_wrong = k->value;
    t->n_fail++;
}
/* `again` fetches the numbers of the nudged run; they are asked for only where they decide. */
static void judge(State *s, Pair *p,
                  const double *(*again)(State *s, const Pair *p, const void *arg),
                  const void *arg) {
    bool open = s->e->check->first_fail < 0;
    if (s->e->measure) p->nudged = again(s, p, arg);
    double bound = bound_of(s->e, p);
    if (!(p->error <= bound) && open && !p->nudged) {
        p->nudged = again(s, p, arg);
        bound = bound_of(s->e, p);
    }
    double used = p->error == 0 ? 0 : bound > 0 ? p->error / bound : INFINITY;
    if (used >= s->worst || !s->rep->end_to_end_worst) {
        s->worst = used;
        s->rep->end_to_end_worst = p->name;
        s->rep->end_to_end_rel = p->top > 0 ? p->error / p->top : p->error;
        s->rep->end_to_end_bound = p->top > 0 ? bound / p->top : bound;
    }
    if (open && !(p->error <= bound)) fail(s, p, bound);
}

/* ---- values ---- */
bool endtoend_result(const Program *p, int val, bool *grad) {
    const Graph *g = p->graph;
    const Val *x = &p->val[val];
    bool trained =
        g->nn_model && x->step < 0 && x->kind == KIND_PARAM; /* holds what the last step made */
    *grad = x->cot && p->grad[x->tensor] == val && !g->nn_model;
    return *grad || trained ||
           (x->tensor == g->output && x->tensor != g->loss && !x->cot && p->env[x->tensor] == val);
}
/* Numbers of a run that the ranks' last micro-batch is compared with: its rows of the batch, which
 * is always first. */
static const double *last_rows(const EndToEnd *e, const GTensor *t, const double *whole) {
    bool cut = e->parts > 1 && t->nd && !strcmp(t->sym[0], "B");
    return cut && whole ? whole + (e->parts - 1) * elements(t) : whole;
}
typedef struct {
    const Val *val;
    bool grad;
    double *sum; /* of the nudged run's cotangents; freed by value() */
} Again;
static const double *value_again(State *s, const Pair *p, const void *arg) {
    Again *a = (Again *)(uintptr_t)arg;
    const Reference *r = nudged_run(s);
    (void)p;
    if (!r) return NULL;
    if (a->grad) a->sum = reference_cotangent(r, a->val);
    return last_rows(s->e, &s->e->check->e->p->graph->t[a->val->tensor],
                     a->grad ? a->sum : reference_value(r, a->val->tensor));
}
/* As the run itself calls it, so that `explain` finds it. */
static const char *name_of(const EndToEnd *e, const GTensor *t, bool grad) {
    const char *name = t->plan_name ? t->plan_name : t->name;
    if (!grad) return name;
    return arena_printf(e->check->arena, t->kind == KIND_PARAM ? "grad.param.%s" : "grad.%s", name);
}
static void value(State *s, int v, bool grad) {
    const EndToEnd *e = s->e;
    const Program *p = e->check->e->p;
    const Val *x = &p->val[v];
    const GTensor *t = &p->graph->t[x->tensor];
    double *sum = grad ? reference_cotangent(e->ref, x) : NULL;
    Pair pair = {.name = name_of(e, t, grad),
                 .step = x->step,
                 .n = elements(t)};
    pair.pass = x->step >= 0 ? p->step[x->step].pass : "parameters";
    pair.want = last_rows(e, t, grad ? sum : reference_value(e->ref, x->tensor));
    progress_add(e->progress, e->work * (double)pair.n);
    Again a = {x, grad, NULL};
    if (pair.want) {
        pair.error = check_reference(e->check, v, pair.want, &pair.top);
        judge(s, &pair, value_again, &a);
    }
    free(sum);
    free(a.sum);
}
static const double *losses_again(State *s, const Pair *p, const void *arg) {
    const Reference *r = nudged_run(s);
    (void)p, (void)arg;
    return r ? r->losses : NULL;
}
static void losses(State *s) {
    const EndToEnd *e = s->e;
    const Program *p = e->check->e->p;
    if (!e->losses || !e->ref->losses) return;
    const Val *loss = &p->val[p->loss];
    Pair pair = {.name = p->graph->t[loss->tensor].name,
                 .step = loss->step,
                 .pass = "loss",
                 .want = e->ref->losses,
                 .n = e->steps};
    for (int64_t i = 0; i < e->steps; i++) {
        double off = fabs(e->losses[i] - e->ref->losses[i]);
        pair.top = fmax(pair.top, fabs(e->ref->losses[i]));
        pair.error = fmax(pair.error, isnan(off) ? INFINITY : off);
    }
    judge(s, &pair, losses_again, NULL);
}
void endtoend_check(const EndToEnd *e, PipelineReport *report) {
    State s = {.e = e, .rep = report};
    const Exec *x = e->check->e;
    bool grad;
    losses(&s);
    for (int v = 0; v < x->p->nv; v++)
        if (endtoend_result(x->p, v, &grad) && x->store[v].alive) value(&s, v, grad);
    reference_free(s.nudged);
}
