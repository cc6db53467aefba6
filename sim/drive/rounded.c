/* See rounded.h. */
#include "drive/rounded.h"
#include <math.h>
#include <stdlib.h>

/* Times what the model's own run in bf16 is off (docs/proof.md has what was seen), more where few
 * numbers carry it. */
static const double MOST = 4, NORM = 3, ALONG = 2, FEW = 3;
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
bool rounded_allows(const ValueSet *s, const ValueKey *k, Rounded *out) {
    ValueKey whole = *k;
    ValueSet narrow = *s;
    ValueShape shape, same;
    whole.rank = -1;
    narrow.ref = s->narrow;
    if (!s->narrow || !s->ref || s->steps > 1 || (k->after >= 0 && k->after != s->after) ||
        value_is_share(s, k) || !value_shape(s, &whole, &shape) ||
        !value_shape(&narrow, &whole, &same) || shape.dtype != DT_F64 ||
        value_count(&shape) != value_count(&same))
        return false;
    double *exact = value_read(s, &whole, &shape), *off = value_read(&narrow, &whole, &same);
    bool read = exact && off;
    *out = (Rounded){0, 0, 0, false};
    for (int64_t i = 0, n = value_count(&shape); read && i < n; i++) {
        off[i] -= exact[i];
        out->most = fmax(out->most, fabs(off[i]));
    }
    if (read) out->norm = out->along = rounded_norm(off, value_count(&shape));
    double carriers = read ? carried_by(off, value_count(&shape)) : 1;
    free(exact);
    free(off);
    const double few = 1 + FEW / sqrt(carriers);
    out->most *= few, out->norm *= few, out->along *= few;
    /* what a rank holds is as far from float64 itself */
    out->most *= k->rank < 0 ? MOST : MOST + 1;
    out->norm *= k->rank < 0 ? NORM : hypot(NORM, 1);
    out->along *= k->rank < 0 ? ALONG : hypot(ALONG, 1);
    return read && isfinite(out->norm);
}
bool rounded_steps(const Program *p, const ValueKey *k, int64_t n, Rounded *out) {
    const double way = 2 * p->assign->plan->optimizer.lr * (double)(k->after + 1);
    const Graph *g = p->graph;
    if (k->after < 0 || k->tensor < 0 || graph_moments(g, k->tensor) < 2) return false;
    double norm = way * sqrt((double)n * ODD);
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
