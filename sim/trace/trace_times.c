/* Sums of intervals. See trace_times.h. */
#include "trace/trace_times.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double a, b;
} Span;

bool trace_is_compute(const TraceEvent *e) { return !e->kind || strcmp(e->kind, "collective"); }
static int by_a(const void *x, const void *y) {
    const Span *p = x, *q = y;
    return (p->a > q->a) - (p->a < q->a);
}
/* Disjoint union of the intervals of computes, or of all others, inside [from, to]. */
static int cover(const TraceEvent *const *e, int n, bool compute, double from, double to, Span *s) {
    int k = 0, m = 0;
    for (int i = 0; i < n; i++) {
        if (trace_is_compute(e[i]) != compute || !isfinite(e[i]->start) || !isfinite(e[i]->end))
            continue;
        Span x = {fmax(e[i]->start, from), fmin(e[i]->end, to)};
        if (x.b > x.a) s[k++] = x;
    }
    if (k) qsort(s, (size_t)k, sizeof *s, by_a);
    for (int i = 0; i < k; i++) {
        if (m && s[i].a <= s[m - 1].b) s[m - 1].b = fmax(s[m - 1].b, s[i].b);
        else s[m++] = s[i];
    }
    return m;
}
static double length(const Span *s, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += s[i].b - s[i].a;
    return sum;
}
TraceTimes trace_times(const TraceEvent *const *e, int n, double from, double to) {
    Span *x = base_malloc(base_mul((size_t)n + 1, sizeof *x)),
         *y = base_malloc(base_mul((size_t)n + 1, sizeof *y));
    int nx = cover(e, n, true, from, to, x), ny = cover(e, n, false, from, to, y);
    TraceTimes s = {.compute = length(x, nx), .comm = length(y, ny), .span = to - from};
    for (int i = 0, j = 0; i < nx && j < ny;) {
        double lo = fmax(x[i].a, y[j].a), hi = fmin(x[i].b, y[j].b);
        if (hi > lo) s.hidden += hi - lo;
        if (x[i].b < y[j].b) i++;
        else j++;
    }
    s.exposed = fmax(0, s.span - s.compute);
    free(x);
    free(y);
    return s;
}
const RankSet *trace_slowest(const Trace *t) {
    const TraceEvent *last = t->events;
    for (int i = 0; i < t->n_events; i++)
        if (t->events[i].end > last->end) last = &t->events[i];
    return t->n_events ? &last->ranks : NULL;
}
TraceTimes trace_times_of(const Trace *t, int64_t rank) {
    const TraceEvent **e = base_malloc(base_mul((size_t)t->n_events + 1, sizeof *e));
    double end = 0;
    int n = 0;
    for (int i = 0; i < t->n_events; i++) {
        if (t->events[i].ranks.n && !rankset_has(&t->events[i].ranks, rank)) continue;
        e[n++] = &t->events[i];
        if (isfinite(t->events[i].end)) end = fmax(end, t->events[i].end);
    }
    TraceTimes s = trace_times(e, n, 0, end);
    free(e);
    return s;
}
