/* The bounds of the comparison with the unsharded run, and what is held against what. */
#include "drive/endtoend.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A value is the end of a chain of many rounded sums, not of one. */
enum { SUMS = 64 };
/* Per dtype: the bound as a share of a value's largest magnitude; the unit in the last place, and
 * how many of it one layer may be off; the smallest normal number, of which that is the unit of all
 * smaller ones. In bf16 it is results that are rounded, by half a unit each:
 * some 16 of them a layer one after the other, whose errors add up as the root of their number does
 * (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019): four times
 * that is 2^-4 in the first layer, and grows with the root of the depth. */
static const double MOST_SHARE = 0.25;
static const struct {
    double share;
    bool grows; /* with the root of the depth, to MOST_SHARE; else it is one for all depths */
    double ulp, ulps, least;
} limits[] = {[DT_F32] = {1e-2, false, 0x1p-23, SUMS, 0x1p-126},
              [DT_F64] = {1e-9, false, 0x1p-52, SUMS, 0x1p-1022},
              [DT_BF16] = {0x1p-4, true, 0x1p-7, 0.5, 0x1p-126}};
/* The unsharded run is made again on numbers that are off. By an ulp of f64, taken times what the
 * run's rounding is more: that shows where a value is nothing but rounding (a sum that cancels). By
 * SUMS ulps of the run at once: that shows where a small cause has an effect out of proportion, as
 * Adam's first steps have, which divide a gradient by its own size. Where the ranks are not in
 * float64 a third run is in their dtype, on the right numbers: by how much one device is off, also
 * where a number on the way is smaller than any that the dtype has. The last run is on
 * the right numbers too, and moves no bound: it takes over on which side of a ReLU's 0 the ranks'
 * numbers lie, where rounding decides that, and the ranks are held against it instead. */
enum { TINY, WHOLE, ALIKE, SIDES, NUDGES };

/* One comparison: n numbers against those of the unsharded run. */
typedef struct {
    const char *name;
    int val;    /* -1: the losses */
    double odd; /* share of its elements that may be off */
    Phase pass;
    int step;
    const double *want, *nudged[NUDGES]; /* nudged NULL: not asked for yet */
    int64_t n;
    double top, error; /* the largest magnitude that is wanted, the largest difference */
    bool open;         /* an op before it has numbers inside that nobody knows (Check.beyond) */
} Pair;
typedef struct {
    const EndToEnd *e;
    PipelineReport *rep;
    Reference *nudged[NUDGES];
    bool asked[NUDGES];
    double worst; /* share of its bound that the worst value used */
    bool failed;  /* a value here; of those behind it nobody asks what rounding can do */
} State;

/* Layers, each of which adds rounding of its own; 1 for a model without. */
static double depth_of(const Graph *g) {
    int last = 0;
    for (int n = 0; n < g->nn; n++)
        if (g->node[n].layer > last) last = g->node[n].layer;
    return last + 1;
}
static double depth(const EndToEnd *e) { return depth_of(e->check->e->p->graph); }
static Dtype numbers(const EndToEnd *e) { return e->check->e->numbers; }
/* By how much of itself a number may be off behind one layer. */
static double layer_off(Dtype t) { return limits[t].ulps * limits[t].ulp; }
enum { WAYS = 8 }; /* of being off, of which a nudged run shows one */
double endtoend_rounding(Dtype dtype) { return WAYS * layer_off(dtype); }
double endtoend_share(const Program *p, Dtype t) {
    const double share = limits[t].share;
    return limits[t].grows ? fmin(share * sqrt(depth_of(p->graph)), MOST_SHARE) : share;
}
/* And behind all of them. */
static double model_off(const EndToEnd *e) {
    Dtype t = numbers(e);
    return layer_off(t) * (limits[t].grows ? sqrt(depth(e)) : depth(e));
}
static const Reference *nudged_run(State *s, int k) {
    const EndToEnd *e = s->e;
    Dtype t = numbers(e);
    if (s->asked[k] || (k == ALIKE && t == DT_F64)) return s->nudged[k];
    s->nudged[k] = k == ALIKE   ? e->alike(e->arg)
                   : k == SIDES ? e->with_sides(e->arg)
                                : e->nudged(e->arg, k == TINY ? 0x1p-52 : model_off(e));
    s->asked[k] = true;
    return s->nudged[k];
}
static int64_t elements(const GTensor *t) {
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    return n;
}

/* ---- bounds ---- */
static double farthest(const Pair *p, int k) {
    double far = 0;
    for (int64_t i = 0; p->nudged[k] && i < p->n; i++)
        far = fmax(far, fabs(p->want[i] - p->nudged[k][i]));
    return far;
}
/* Has training left what it started from, so that rounding decides where to? Then a run of several
 * steps that is off has losses that are off by more than themselves. */
static bool ran_away(const State *s) {
    const EndToEnd *e = s->e;
    double top = 0, off = 0;
    for (int64_t i = 0; e->losses && e->ref->losses && e->steps > 1 && i < e->steps; i++) {
        top = fmax(top, fabs(e->ref->losses[i]));
        for (int k = WHOLE; k <= ALIKE; k++)
            if (s->nudged[k]) off = fmax(off, fabs(s->nudged[k]->losses[i] - e->ref->losses[i]));
    }
    return off > top;
}
/* How far rounding alone can move the value, as far as has been asked. The numbers of a nudged run
 * are off in one way of many, and at the sources only, where rounding is in each step; and where no
 * digit of the largest number is left the next way may be orders of magnitude from this one (a
 * square of a gradient, dozens of layers deep). No number is off by less than the dtype's smallest
 * ones are apart. Where training ran away each step multiplies what
 * is off, and so do the ways: they are factors there, no summands. */
static double rounding(const State *s, const Pair *p) {
    enum { NO_DIGIT = 1 << 20 };
    const EndToEnd *e = s->e;
    double whole = farthest(p, WHOLE), alike = farthest(p, ALIKE);
    double ways = whole > p->top / 10 && numbers(e) != DT_BF16 ? NO_DIGIT : WAYS;
    double least = WAYS * model_off(e) * limits[numbers(e)].least;
    double tiny = farthest(p, TINY), more = WAYS * layer_off(numbers(e)) / 0x1p-52;
    /* nothing but rounding in f64 too (a gradient that is zero by identity): its square, which Adam
     * keeps, is the square of what the run's rounding is more */
    if (tiny > p->top / 10) more *= more;
    else if (fmax(whole, alike) > p->top && ran_away(s))
        return fmax(more * tiny, p->top * (pow(1 + fmax(whole, alike) / p->top, WAYS) - 1));
    return fmax(fmax(more * tiny, least), fmax(ways * whole, WAYS * alike));
}
/* A share of the largest magnitude, or what rounding can do where that is more (a saturated
 * softmax, a sum that cancels, a few steps of training). Measured, it is what rounding can do, and
 * not below a few ulps. A value that is zero everywhere has no magnitude to take a share of:
 * rounding decides alone. */
static double bound_of(const State *s, const Pair *p) {
    const EndToEnd *e = s->e;
    const double share =
        e->measure ? layer_off(numbers(e)) : endtoend_share(e->check->e->p, numbers(e));
    return fmax(share * p->top, rounding(s, p));
}

/* ---- one value ---- */
static void fail(State *s, const Pair *p, double bound) {
    Check *c = s->e->check;
    Trace *t = c->t;
    TraceCheck *k = ARENA_PUSH(t->arena, t->checks, t->n_checks, t->cap_checks);
    *k = (TraceCheck){.step = p->step,
                      .value = p->name,
                      .pass = p->pass,
                      .level = LEVEL_BOUND,
                      .verdict = "FAIL",
                      .iteration = (int)c->step,
                      .microbatch = (int)c->part,
                      .ranks = rankset_range(c->arena, 0, c->e->p->mesh->nranks, 1),
                      .count = p->n,
                      .max_abs = p->error,
                      .max_rel = p->top > 0 ? p->error / p->top : p->error,
                      .bound = bound,
                      .used = bound > 0 ? p->error / bound : INFINITY};
    k->cause = arena_printf(c->arena,
                            "end to end it differs from the unsharded model by %.2g of its largest "
                            "number, bound %.2g, although every step follows from its inputs",
                            k->max_rel, p->top > 0 ? bound / p->top : bound);
    c->first_fail = t->n_checks - 1;
    s->failed = true;
    t->first_wrong = k->value;
    t->n_fail++;
}
/* How far the ranks are from such numbers; *top: the largest magnitude of those. */
static double error_of(const EndToEnd *e, const Pair *p, const double *want, double *top) {
    double error = 0;
    if (p->val >= 0) return check_reference(e->check, p->val, want, p->odd, top);
    *top = 0;
    for (int64_t i = 0; i < p->n; i++) {
        double off = fabs(e->losses[i] - want[i]);
        *top = fmax(*top, fabs(want[i]));
        error = fmax(error, isnan(off) ? INFINITY : off);
    }
    return error;
}
/* The run's own sides decide, where they explain the difference. A gradient that has no other terms
 * than theirs is zero without them, so the share is of what it is with them. */
static void beside_sides(State *s, Pair *p, const double *want) {
    Pair with = *p;
    if (!want) return;
    with.error = error_of(s->e, p, want, &with.top);
    if (!(with.error <= bound_of(s, &with))) return;
    p->error = with.error;
    p->top = with.top;
    s->rep->sides_decided = true;
}
/* `again` fetches the numbers of a nudged run; they are asked for only where they decide. */
static void judge(State *s, Pair *p, const double *(*again)(State *s, int k, void *arg),
                  void *arg) {
    if (s->e->check->e->dev->sizes_only) { /* only what it takes */
        for (int k = 0; k < NUDGES && s->e->measure; k++) again(s, k, arg);
        return;
    }
    if (s->failed) return;
    bool open = s->e->check->first_fail < 0 && !(s->e->told && isinf(p->error));
    for (int k = 0; k < SIDES; k++)
        if (s->e->measure || (open && !(p->error <= bound_of(s, p))))
            p->nudged[k] = again(s, k, arg);
    if (open && !(p->error <= bound_of(s, p))) beside_sides(s, p, again(s, SIDES, arg));
    double bound = bound_of(s, p);
    /* the unsharded numbers were made in float64, which has what the run's dtype has not */
    if (open && !(p->error <= bound) && isfinite(p->error) && p->open) bound = INFINITY;
    double used = p->error == 0 ? 0 : bound > 0 ? p->error / bound : INFINITY;
    if (used >= s->worst || !s->rep->end_to_end_worst) {
        s->worst = used;
        s->rep->end_to_end_worst = p->name;
        s->rep->end_to_end_rel = p->top > 0 ? p->error / p->top : p->error;
        s->rep->end_to_end_bound = p->top > 0 ? bound / p->top : bound;
    }
    if (!open) return;
    if (!(p->error <= bound)) fail(s, p, bound);
    /* zeros, which are not off by more than the dtype's smallest numbers, are held */
    else if (bound > p->top && p->top > 0 && !s->rep->nothing_left++)
        s->rep->nothing_left_first = p->name;
}

/* ---- values ---- */
/* Losses of training steps before the first numbers that nobody knows. */
static int64_t known_losses(const EndToEnd *e) {
    const Check *c = e->check;
    if (!c->beyond.n) return e->steps;
    return c->beyond.in + (c->e->p->val[c->e->p->loss].step < c->beyond.at);
}
/* What the last training step makes before them; parameters are what the step before has made of
 * them. */
static bool behind_unknown(const EndToEnd *e, int step) {
    const Check *c = e->check;
    bool before = c->beyond.in == e->steps - 1 && step >= 0 && step < c->beyond.at;
    return c->beyond.n && !before;
}
bool endtoend_result(const Program *p, int val, bool *grad) {
    const Graph *g = p->graph;
    const Val *x = &p->val[val];
    bool trained =
        g->nn_model && x->step < 0 && x->kind == KIND_PARAM; /* holds what the last step made */
    *grad = x->cot && p->grad[x->tensor] == val && !g->nn_model;
    return *grad || trained ||
           (x->tensor == g->output && x->tensor != g->loss && !x->cot && p->env[x->tensor] == val);
}
const double *endtoend_last_rows(const EndToEnd *e, const GTensor *t, const double *whole) {
    bool cut = e->parts > 1 && t->nd && t->role[0] == DIM_BATCH;
    return cut && whole ? whole + (e->parts - 1) * elements(t) : whole;
}
typedef struct {
    const Val *val;
    bool grad;
    double *sum[NUDGES]; /* of the nudged runs' cotangents; given back by value() */
} Again;
static const double *value_again(State *s, int k, void *arg) {
    Again *a = arg;
    const Reference *r = nudged_run(s, k);
    if (!r) return NULL;
    if (a->grad) a->sum[k] = reference_cotangent(r, a->val);
    return endtoend_last_rows(s->e, &s->e->check->e->p->graph->t[a->val->tensor],
                              a->grad ? a->sum[k] : reference_value(r, a->val->tensor));
}
/* An optimizer with two moments divides a gradient by its own size: where an element has no digit
 * its step has no sign, and parameters go the other way. The moments do not, and are held in full;
 * so in f32 three quarters of such a parameter's elements may be off: what is wrong in all of them
 * shows. */
static double odd_share(const EndToEnd *e, const Val *x) {
    const Graph *g = e->check->e->p->graph;
    return graph_moments(g, x->tensor) > 1 && !x->cot && e->check->e->dtype == DT_F32 ? 0.75 : 0;
}
static void value(State *s, int v, bool grad) {
    const EndToEnd *e = s->e;
    const Program *p = e->check->e->p;
    const Val *x = &p->val[v];
    const GTensor *t = &p->graph->t[x->tensor];
    double *sum = grad ? reference_cotangent(e->ref, x) : NULL;
    Pair pair = {.name = subject_name(e->check->arena, graph_subject(t, grad)),
                 .val = v,
                 .odd = odd_share(e, x),
                 .open = behind_unknown(e, x->step),
                 .step = x->step,
                 .n = elements(t)};
    pair.pass = x->step >= 0 ? p->step[x->step].pass : PHASE_PARAMETERS;
    pair.want = endtoend_last_rows(e, t, grad ? sum : reference_value(e->ref, x->tensor));
    progress_add(e->progress, work_compare(pair.n));
    Again a = {x, grad, {NULL}};
    if (pair.want) {
        pair.error = error_of(e, &pair, pair.want, &pair.top);
        judge(s, &pair, value_again, &a);
    }
    Device *dev = e->ref->exec->dev;
    dev->release(dev, sum);
    for (int k = 0; k < NUDGES; k++) dev->release(dev, a.sum[k]);
}
static const double *losses_again(State *s, int k, void *arg) {
    const Reference *r = nudged_run(s, k);
    (void)arg;
    return r ? r->losses : NULL;
}
static void losses(State *s) {
    const EndToEnd *e = s->e;
    const Program *p = e->check->e->p;
    if (!e->losses || !e->ref->losses) return;
    const Val *loss = &p->val[p->loss];
    Pair pair = {.name = p->graph->t[loss->tensor].name,
                 .val = -1,
                 .step = loss->step,
                 .pass = PHASE_LOSS,
                 .want = e->ref->losses,
                 .n = e->steps,
                 .open = known_losses(e) < e->steps};
    /* the first of them, the first two, ...: training that runs away has no digit left at the end
     */
    for (int64_t n = 1; pair.open && n <= known_losses(e); n++) {
        Pair before = pair;
        before.n = n;
        before.open = false;
        before.error = error_of(e, &before, before.want, &before.top);
        judge(s, &before, losses_again, NULL);
    }
    pair.error = error_of(e, &pair, pair.want, &pair.top);
    judge(s, &pair, losses_again, NULL);
    s->rep->loss_wrong = !(pair.error <= bound_of(s, &pair));
    s->rep->loss = e->losses[e->steps - 1];
    s->rep->loss_unsharded = e->ref->losses[e->steps - 1];
}
void endtoend_check(const EndToEnd *e, PipelineReport *report) {
    State s = {.e = e, .rep = report};
    const Exec *x = e->check->e;
    bool grad;
    losses(&s);
    for (int v = 0; v < x->p->nv; v++)
        if (endtoend_result(x->p, v, &grad) && exec_store(x, v)->alive) value(&s, v, grad);
    for (int k = 0; k < NUDGES; k++) reference_free(s.nudged[k]);
}
