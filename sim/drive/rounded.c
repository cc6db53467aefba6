/* See rounded.h. */
#include "drive/rounded.h"
#include <math.h>
#include <stdlib.h>

/* Times what the model's own run in bf16 is off (docs/proof.md has what was seen), more where few
 * numbers carry it. */
static const double MOST = 4, NORM = 3, ALONG = 2, FEW = 3;
/* Of what is off, how much may lie along the value: of errors that know nothing of each other c
 * carriers leave c^-1/2 there, of one that all share 1. Real runs are between, gradients nearer to
 * 1 (the attention of a whole row is sharper or flatter), and the fourth root bounds both. */
static const double SHARED = 1.25, SHARED_GRAD = 3.5;
/* Share of elements whose step has no sign. */
static const double ODD = 0.125;
/* Half a unit in the last place, of a number just above a power of two. */
static const double ROUNDOFF = 0x1p-8;
static const double unit[] = {
    [DT_F32] = 0x1p-24, [DT_F64] = 0x1p-53, [DT_BF16] = 0x1p-8, [DT_F16] = 0x1p-11};
/* Half of what is between the smallest numbers of f16. */
static const double LEAST_F16 = 0x1p-25;

double rounded_norm(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}
double rounded_along(const double *x, const double *y, int64_t n) {
    double sum = 0, size = rounded_norm(y, n);
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return size > 0 ? sum / size : 0;
}
/* By how many numbers a sum of squares is carried (its participation ratio): n where all are as
 * large, 1 where one is all of it. Where they are few, what ours are off by is a matter of luck. */
static double carried_by(const double *x, int64_t n) {
    double two = 0, four = 0;
    for (int64_t i = 0; i < n; i++) two += x[i] * x[i], four += x[i] * x[i] * (x[i] * x[i]);
    return four > 0 ? two * two / four : fmax((double)n, 1);
}
/* A value of the unsharded model, and what its run in bf16 is off by; malloc'ed for the caller. */
typedef struct {
    int64_t n;
    double *exact, *off;
} Off;
static bool off_read(const ValueSet *s, const ValueKey *whole, Off *o) {
    ValueSet narrow = *s;
    ValueShape shape, same;
    narrow.ref = s->narrow;
    *o = (Off){0, NULL, NULL};
    if (!s->narrow || !s->ref || s->steps > 1 || (whole->after >= 0 && whole->after != s->after) ||
        !value_shape(s, whole, &shape) || !value_shape(&narrow, whole, &same) ||
        shape.dtype != DT_F64 || value_count(&shape) != value_count(&same))
        return false;
    o->exact = value_read(s, whole, &shape);
    o->off = value_read(&narrow, whole, &same);
    o->n = o->exact && o->off ? value_count(&shape) : 0;
    for (int64_t i = 0; i < o->n; i++) o->off[i] -= o->exact[i];
    return o->exact && o->off;
}
static void off_free(Off *o) {
    free(o->exact);
    free(o->off);
}
bool rounded_allows(const ValueSet *s, const ValueKey *k, Rounded *out) {
    ValueKey whole = *k;
    Off o;
    whole.rank = -1;
    if (value_is_share(s, k)) return false;
    bool read = off_read(s, &whole, &o);
    *out = (Rounded){0};
    for (int64_t i = 0; i < o.n; i++) out->most = fmax(out->most, fabs(o.off[i]));
    out->norm = out->along = rounded_norm(o.off, o.n);
    double carriers = carried_by(o.off, o.n);
    /* what lies along the value, and squares of gradients, its large numbers carry most */
    for (int64_t i = 0; i < o.n; i++) o.off[i] *= o.exact[i];
    const double most = fmin(carriers, carried_by(o.off, o.n));
    off_free(&o);
    if (k->after >= 0) carriers = most;
    const double few = 1 + FEW / sqrt(carriers);
    const double shared = k->grad || k->after >= 0 ? SHARED_GRAD : SHARED;
    out->most *= few, out->norm *= few, out->along *= few;
    /* what a rank holds is as far from float64 itself */
    out->most *= k->rank < 0 ? MOST : MOST + 1;
    out->norm *= k->rank < 0 ? NORM : hypot(NORM, 1);
    out->along *= k->rank < 0 ? ALONG : hypot(ALONG, 1);
    out->along *= fmin(1, shared / sqrt(sqrt(most)));
    return read && isfinite(out->norm);
}
/* Of how many numbers of the gradient is the sign rounding's? Those that bf16 is off by more than
 * they are: all, where the gradient is zero by identity (a bias that softmax does not see). */
static double signs_lost(const ValueSet *s, const ValueKey *k) {
    const ValueKey grad = {.tensor = k->tensor, .grad = true, .after = -1, .rank = -1};
    Off o;
    double lost = 0;
    bool read = off_read(s, &grad, &o);
    double size = read && o.n ? rounded_norm(o.off, o.n) / sqrt((double)o.n) : 0;
    for (int64_t i = 0; i < o.n; i++) lost += fabs(o.exact[i]) <= ALONG * size;
    off_free(&o);
    return lost;
}
bool rounded_steps(const ValueSet *s, const Program *p, const ValueKey *k, int64_t n,
                   Rounded *out) {
    const double way = 2 * p->assign->plan->optimizer.lr * (double)(k->after + 1);
    if (k->after < 0 || k->tensor < 0 || graph_moments(p->graph, k->tensor) < 2) return false;
    double norm = way * sqrt(fmin((double)n, fmax((double)n * ODD, signs_lost(s, k))));
    *out = (Rounded){way, norm, norm, true, NULL};
    return true;
}
/* The gradient where the parameter lies, in float64; NULL: it is not held as that is. */
static double *gradient(const ValueSet *s, const ValueKey *grad, int64_t n) {
    ValueShape shape;
    if (value_is_share(s, grad) || !value_shape(s, grad, &shape) || value_count(&shape) != n)
        return NULL;
    void *x = value_read(s, grad, &shape);
    if (!x || shape.dtype == DT_F64) return x;
    double *g = base_malloc(base_mul((size_t)n + 1, sizeof *g));
    for (int64_t i = 0; i < n; i++) g[i] = (double)((float *)x)[i];
    free(x);
    return g;
}
/* What the first step makes of a gradient. */
typedef struct {
    double lr, beta1, beta2, eps;
} Optimizer;
typedef double Made(const Optimizer *o, double g);
static double first_moment(const Optimizer *o, double g) { return (1 - o->beta1) * g; }
static double second_moment(const Optimizer *o, double g) { return (1 - o->beta2) * g * g; }
static double its_step(const Optimizer *o, double g) {
    return fabs(g) > 0 ? o->lr * g / (fabs(g) + o->eps) : 0;
}
static double itself(const Optimizer *o, double g) {
    (void)o;
    return g;
}
/* Which of them `k` is, and of which parameter; NULL: none. */
static Made *made_of(const Program *p, const ValueKey *k, int *param) {
    static Made *const moment[] = {first_moment, second_moment};
    const Graph *g = p->graph;
    int before = 0;
    if (k->tensor < 0) return NULL;
    const GTensor *t = &g->t[k->tensor];
    *param = t->state_of ? t->state_of - 1 : k->tensor;
    if (g->t[*param].kind != KIND_PARAM) return NULL;
    if (k->after < 0) return k->grad ? itself : NULL;
    if (k->after > 0 || graph_moments(g, *param) != 2) return NULL;
    for (int i = 0; i < k->tensor; i++) before += g->t[i].state_of == *param + 1;
    return t->state_of ? moment[before] : its_step;
}
bool rounded_of_gradient(const Program *p, const ValueKey *k) {
    int param;
    return made_of(p, k, &param) != NULL;
}
bool rounded_each(const ValueSet *s, const Program *p, const ValueKey *k, Dtype dtype,
                  Rounded *out) {
    ValueKey grad = {.grad = true, .after = -1, .rank = k->rank, .part = k->part};
    ValueShape shape;
    const Plan *plan = p->assign->plan;
    Optimizer o = {plan->optimizer.lr, plan->optimizer.beta1, plan->optimizer.beta2,
                   plan->optimizer.eps};
    Made *made = made_of(p, k, &grad.tensor);
    const int64_t n = made && value_shape(s, k, &shape) ? value_count(&shape) : -1;
    const Dtype run = k->rank < 0 ? DT_F64 : plan_executes_in(plan);
    double *g = n >= 0 && rounded_allows(s, &grad, out) ? gradient(s, &grad, n) : NULL;
    if (!g) return false;
    /* to first order what bf16 moves, moves in another type by as much less as its unit is */
    double off = out->most / ROUNDOFF * fmax(unit[dtype], unit[run]);
    if (dtype == DT_F16) off += LEAST_F16, o.eps = o.eps < LEAST_F16 ? 0 : o.eps;
    for (int64_t i = 0; i < n; i++) {
        const double at = made(&o, g[i]);
        /* what is zero in every type, as of a token that is not there, has no rounding */
        g[i] =
            g[i] == 0 ? 0 : fmax(fabs(made(&o, g[i] + off) - at), fabs(made(&o, g[i] - off) - at));
    }
    *out = (Rounded){.each = g};
    return true;
}
void rounded_own(Rounded *r, const double *want, int64_t n) {
    double top = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, fabs(want[i]));
    double most = 2 * ROUNDOFF * top, norm = ROUNDOFF * rounded_norm(want, n);
    r->most = r->apart ? r->most + most : fmax(r->most, most);
    r->norm = r->apart ? r->norm + norm : fmax(r->norm, norm);
    r->along = r->apart ? r->along + norm : fmax(r->along, norm);
}
