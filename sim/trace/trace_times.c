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
/* When it computes, or sends. */
static double begins(const TraceEvent *e) {
    return trace_is_compute(e) ? e->start : e->start + e->wait;
}
/* Disjoint union of the intervals of computes, or of all others, inside [from, to]. */
static int cover(const TraceEvent *const *e, int n, bool compute, double from, double to, Span *s) {
    int k = 0, m = 0;
    for (int i = 0; i < n; i++) {
        if (trace_is_compute(e[i]) != compute || !isfinite(e[i]->start) || !isfinite(e[i]->end))
            continue;
        Span x = {fmax(begins(e[i]), from), fmin(e[i]->end, to)};
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
/* Of two disjoint unions. */
static double common(const Span *x, int nx, const Span *y, int ny) {
    double sum = 0;
    for (int i = 0, k = 0; i < nx && k < ny;) {
        sum += fmax(0, fmin(x[i].b, y[k].b) - fmax(x[i].a, y[k].a));
        if (x[i].b < y[k].b) i++;
        else k++;
    }
    return sum;
}
double trace_overlap(const TraceEvent *const *e, int n, const TraceEvent *const *k, int m) {
    Span *x = base_malloc(base_mul((size_t)n + 1, sizeof *x)),
         *y = base_malloc(base_mul((size_t)m + 1, sizeof *y));
    int nx = cover(e, n, false, -INFINITY, INFINITY, x),
        ny = cover(k, m, true, -INFINITY, INFINITY, y);
    double sum = common(x, nx, y, ny);
    free(x);
    free(y);
    return sum;
}
void trace_hidden(const TraceEvent *const *e, int n, double *hidden, double *beside) {
    Span *x = base_malloc(base_mul((size_t)n + 1, sizeof *x));
    int m = cover(e, n, true, -INFINITY, INFINITY, x);
    for (int i = 0; i < n; i++) {
        const Span own = {begins(e[i]), e[i]->end};
        const double took = own.b - own.a;
        int low = 0, high = m; /* the kernels before `low` end before it */
        hidden[i] = beside[i] = 0;
        if (trace_is_compute(e[i]) || !(took > 0)) continue;
        while (low < high) {
            int mid = (low + high) / 2;
            if (x[mid].b <= own.a) low = mid + 1;
            else high = mid;
        }
        for (; low < m && x[low].a < own.b; low++) hidden[i] += common(&own, 1, &x[low], 1);
        beside[i] = took - e[i]->exposed - hidden[i];
        if (beside[i] < 1e-9 * took) beside[i] = 0; /* differences of the same sums */
    }
    free(x);
}
TraceTimes trace_times(const TraceEvent *const *e, int n, double from, double to) {
    Span *x = base_malloc(base_mul((size_t)n + 1, sizeof *x)),
         *y = base_malloc(base_mul((size_t)n + 1, sizeof *y));
    int nx = cover(e, n, true, from, to, x), ny = cover(e, n, false, from, to, y);
    TraceTimes s = {.compute = length(x, nx), .comm = length(y, ny), .span = to - from};
    for (int i = 0; i < n; i++) /* what is exposed of an event ends with it */
        if (isfinite(e[i]->start) && isfinite(e[i]->end))
            s.exposed += fmax(0, fmin(e[i]->end, to) - fmax(e[i]->end - e[i]->exposed, from));
    double still = fmax(0, s.span - s.compute);
    s.exposed = fmin(fmin(s.exposed, s.comm), still);
    s.waiting = still - s.exposed;
    s.hidden = fmin(common(x, nx, y, ny), s.comm - s.exposed);
    s.beside = s.comm - s.exposed - s.hidden;
    if (s.waiting < 1e-9 * s.span) s.waiting = 0; /* differences of the same sums */
    if (s.beside < 1e-9 * s.span) s.beside = 0;
    if (s.hidden < 1e-9 * s.span) s.hidden = 0;
    free(x);
    free(y);
    return s;
}
/* Of the first rank of a class, at whose index its sums stand. */
typedef struct {
    const RankSet *ranks; /* NULL: of no class */
    double end, waits, computes;
} ClassEnd;
static ClassEnd *class_ends(const Trace *t) {
    ClassEnd *c = base_malloc(base_mul((size_t)t->ranks + 1, sizeof *c));
    for (int64_t r = 0; r < t->ranks; r++) c[r] = (ClassEnd){NULL, 0, 0, 0};
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *e = &t->events[i];
        int64_t r = e->ranks.n ? rankset_first(&e->ranks) : 0;
        if (r < 0 || r >= t->ranks || !isfinite(e->end)) continue;
        c[r].ranks = &e->ranks;
        c[r].end = fmax(c[r].end, e->end);
        c[r].waits += e->wait_exposed;
        if (trace_is_compute(e)) c[r].computes += e->end - e->start;
    }
    return c;
}
/* Has x more to do than y: does it wait less for others, or as little and compute longer? */
static bool is_busier(const ClassEnd *x, const ClassEnd *y) {
    const double one = 1e-9 * fmax(x->end, y->end);
    if (fabs(x->waits - y->waits) > one) return x->waits < y->waits;
    return x->computes > y->computes + one;
}
const RankSet *trace_slowest(const Trace *t, bool *busiest) {
    ClassEnd *c = class_ends(t);
    const ClassEnd *best = NULL;
    for (const ClassEnd *x = c; x < c + t->ranks; x++) {
        if (!x->ranks) continue;
        if (!best) best = x;
        const double one = 1e-9 * fmax(x->end, best->end);
        if (x->end > best->end + one || (x->end >= best->end - one && is_busier(x, best))) best = x;
    }
    *busiest = best;
    for (const ClassEnd *x = c; best && x < c + t->ranks; x++)
        if (x->ranks && is_busier(x, best)) *busiest = false;
    const RankSet *ranks = best ? best->ranks : NULL;
    free(c);
    return ranks;
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
const char *percent_text(Arena *a, double part, double whole) {
    double p = whole > 0 ? 100 * part / whole : 0;
    if (p > 0 && p < 0.05) return "< 0.1 %";
    return p >= 99.95 || p == 0 ? arena_printf(a, "%.0f %%", p) : arena_printf(a, "%.1f %%", p);
}
const char *comm_text(double comm, double hidden, double beside, const char *exposed, Arena *a) {
    return hidden + beside <= 1e-9 * comm ? exposed : time_text(comm, a);
}
