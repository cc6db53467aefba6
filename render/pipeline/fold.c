/* See fold.h. A period is found from where it begins: the time to each of the next actions of the
 * same kind on the same stage is tried, and followed on all rows until one differs. */
#include "render/pipeline/fold.h"
#include <math.h>
#include <string.h>

enum { LEAST_PERIODS = 6, MOST_TRIES = 64 };
#define ALIKE 1e-6 /* of a period: times are sums of many */

typedef struct {
    const PipeRow *const *row;
    int n;
    int *first; /* per row: the first action that ends after the time that is looked at */
} Rows;

static bool same_work(const TraceAction *x, const TraceAction *y) {
    return x->stage == y->stage && x->joined == y->joined && !strcmp(x->kind, y->kind);
}
/* From t on: how long row r does what it does again after `period`. */
static double repeats(const PipeRow *r, int i, double t, double period) {
    int j = i;
    while (j < r->n && r->a[j].end <= t + period * (1 + ALIKE)) j++;
    for (;; i++, j++) {
        if (i >= r->n && j >= r->n) return INFINITY;
        if (i >= r->n) return fmax(0, r->a[j].start - period - t);
        if (j >= r->n) return fmax(0, r->a[i].start - t);
        const TraceAction *x = &r->a[i], *y = &r->a[j];
        double off = fabs(y->start - x->start - period), late = fabs(y->end - x->end - period);
        if (!same_work(x, y) || off > ALIKE * period || late > ALIKE * period)
            return fmax(0, fmin(x->start, y->start - period) - t);
    }
}
/* Where all is alike for so long after one period: that one too. */
static int periods_in(double all, double period) { return (int)(all / period * (1 + ALIKE)) + 1; }
/* The longest run of periods from t on. What is a period of all rows is one of the row on which an
 * action begins at t: from that one to one like it. */
static int longest(const Rows *s, double t, double *period) {
    int most = 0, row = 0, tries = 0;
    while (row < s->n && (s->first[row] >= s->row[row]->n ||
                          s->row[row]->a[s->first[row]].start > t * (1 + 1e-12)))
        row++;
    if (row == s->n) return 0;
    const PipeRow *r = s->row[row];
    const TraceAction *x = &r->a[s->first[row]];
    for (int i = s->first[row] + 1; i < r->n && tries < MOST_TRIES; i++) {
        if (!same_work(x, &r->a[i])) continue;
        double p = r->a[i].start - x->start, all = INFINITY;
        tries++;
        for (int k = 0; k < s->n && (isinf(all) || periods_in(all, p) >= LEAST_PERIODS); k++)
            all = fmin(all, repeats(s->row[k], s->first[k], t, p));
        if (isinf(all)) continue;
        int periods = periods_in(all, p);
        if (periods >= LEAST_PERIODS && periods * p > most * *period * (1 + ALIKE))
            most = periods, *period = p;
    }
    return most;
}
/* The next time after t at which an action of any row begins; INFINITY: there is none. */
static double next_start(Rows *s, double t) {
    double next = INFINITY;
    for (int r = 0; r < s->n; r++) {
        int *i = &s->first[r];
        while (*i < s->row[r]->n && s->row[r]->a[*i].end <= t) ++*i;
        for (int k = *i; k < s->row[r]->n; k++)
            if (s->row[r]->a[k].start > t) {
                next = fmin(next, s->row[r]->a[k].start);
                break;
            }
    }
    return next;
}
static void seek(Rows *s, double t) {
    for (int r = 0; r < s->n; r++)
        while (s->first[r] < s->row[r]->n && s->row[r]->a[s->first[r]].end <= t) s->first[r]++;
}
PipeFold pipe_fold(Arena *a, const PipeRow *const *row, int n) {
    PipeFold f = {0};
    Rows s = {row, n, ARENA_ARRAY(a, int, n + 1)};
    int cap = 0;
    for (double t = 0; !isinf(t); t = next_start(&s, t)) {
        double period = 0;
        seek(&s, t);
        int periods = longest(&s, t, &period);
        if (periods < LEAST_PERIODS) continue;
        double from = t + period, to = t + (periods - 1) * period;
        *ARENA_PUSH(a, f.cut, f.n, cap) = (PipeCut){from, to, periods - 2};
        f.hidden += to - from;
        t = to + period * (1 - ALIKE); /* the last one stays, and what comes may repeat too */
        seek(&s, t);
    }
    return f;
}
const PipeCut *pipe_cut_at(const PipeFold *f, double t) {
    for (int i = 0; i < f->n; i++)
        if (t >= f->cut[i].from && t <= f->cut[i].to) return &f->cut[i];
    return NULL;
}
bool pipe_in_sight(const PipeFold *f, const TraceAction *x) {
    for (int i = 0; i < f->n; i++) {
        double slack = ALIKE * (x->end - x->start);
        if (x->start >= f->cut[i].from - slack && x->end <= f->cut[i].to + slack) return false;
    }
    return true;
}
