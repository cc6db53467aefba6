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
    *out = (Rounded){0, 0, 0, false};
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
    const Graph *g = p->graph;
    if (k->after < 0 || k->tensor < 0 || graph_moments(g, k->tensor) < 2) return false;
    double norm = way * sqrt(fmin((double)n, fmax((double)n * ODD, signs_lost(s, k))));
    *out = (Rounded){way, norm, norm, true};
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
