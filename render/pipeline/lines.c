/* See lines.h. A line may end where an action does, near to where it would if all were as long. */
#include "render/pipeline/lines.h"
#include <math.h>

#define SEEN 1e-3 /* of an action: less is rounding */
#define THIN 0.25 /* of an action */
#define OFF 0.2   /* of a line: so much sooner or later it may end */

PipeLines pipe_one_line(double span) { return (PipeLines){1, {0, span}, span}; }

static double shortest(const Pipe *p) {
    double least = p->end;
    for (int k = 0; k < p->n; k++)
        for (int i = 0; i < p->row[k].n; i++)
            least = fmin(least, p->row[k].a[i].end - p->row[k].a[i].start);
    return least;
}
/* How bad it is to end a line at t: actions that it cuts, above all if no piece is as long as the
 * shortest action, so that it may lose its number, or if a piece is a sliver. */
static int cut_at(const Pipe *p, double t, double least) {
    enum { LOST = 4, SLIVER = 2 };
    int n = 0;
    for (int k = 0; k < p->n; k++)
        for (int i = 0; i < p->row[k].n; i++) {
            const TraceAction *a = &p->row[k].a[i];
            double all = a->end - a->start, one = t - a->start, two = a->end - t;
            if (fmin(one, two) <= SEEN * all) continue;
            n += fmax(one, two) < least ? LOST : fmin(one, two) < THIN * all ? SLIVER : 1;
        }
    return n;
}
/* The best time near `ideal`; of several the nearest. */
static double best_end(const Pipe *p, double ideal, double line) {
    const double shortest_one = shortest(p);
    double best = ideal, off = 0;
    int least = cut_at(p, ideal, shortest_one);
    for (int k = 0; k < p->n; k++)
        for (int i = 0; i < p->row[k].n; i++) {
            double t = p->row[k].a[i].end, away = fabs(t - ideal);
            int cut = away < OFF * line ? cut_at(p, t, shortest_one) : least + 1;
            if (cut < least || (cut == least && away < off)) least = cut, best = t, off = away;
        }
    return best;
}
PipeLines pipe_lines(const Pipe *p, int n) {
    PipeLines l = {.n = n};
    for (int k = 1; k < n; k++) l.at[k] = best_end(p, p->end * k / n, p->end / n);
    l.at[n] = p->end;
    for (int k = 0; k < n; k++) l.longest = fmax(l.longest, l.at[k + 1] - l.at[k]);
    return l;
}
bool pipe_on_line(const PipeLines *l, int line, const TraceAction *a, bool *whole) {
    double slack = SEEN * (a->end - a->start), from = l->at[line], to = l->at[line + 1];
    *whole = a->start >= from - slack && a->end <= to + slack;
    return a->start < to - slack && a->end > from + slack;
}
