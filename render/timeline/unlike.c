/* What one plan's timeline has and another's does not. See timeline.h. Kernels and collectives are
 * told by their names, streams and durations; when they run says nothing, for one that is longer
 * moves all behind it. */
#include "base/text.h"
#include "render/timeline/timeline.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_what(const TimeEvent *x, const TimeEvent *y) {
    const int name = strcmp(x->name, y->name);
    if (name) return name;
    return strcmp(x->e->stream ? x->e->stream : "", y->e->stream ? y->e->stream : "");
}
static double works(const TimeEvent *x) { return x->rec->end - x->rec->start - x->rec->wait; }
static int by_kind(const void *a, const void *b) {
    const TimeEvent *x = *(TimeEvent *const *)a, *y = *(TimeEvent *const *)b;
    const int what = by_what(x, y);
    if (what) return what;
    if (works(x) != works(y)) return works(x) < works(y) ? -1 : 1;
    return (x->e->step > y->e->step) - (x->e->step < y->e->step);
}
static TimeEvent **sorted(Arena *a, const Timeline *t) {
    TimeEvent **e = ARENA_ARRAY(a, TimeEvent *, t->n_events + 1);
    for (int i = 0; i < t->n_events; i++) e[i] = &t->event[i];
    qsort(e, (size_t)t->n_events, sizeof *e, by_kind);
    return e;
}
/* Marks those that one other timeline has none of, each event for one of its own; `again`: for as
 * many as are like it. */
static void mark_unlike(Timeline *t, const Timeline *other, bool again, Arena *arena) {
    enum { PER_MILLE = 5 }; /* durations that no reader tells apart */
    TimeEvent **own = sorted(arena, t), **far = sorted(arena, other);
    for (int i = 0, k = 0; i < t->n_events; i++) {
        const double most = works(own[i]) * PER_MILLE / 1000;
        int what = 1;
        while (k < other->n_events && (what = by_what(far[k], own[i])) <= 0 &&
               (what < 0 || works(far[k]) < works(own[i]) - most))
            k++;
        const bool like = k < other->n_events && by_what(far[k], own[i]) == 0 &&
                          fabs(works(far[k]) - works(own[i])) <= most;
        own[i]->unlike &= !like;
        k += like && !again;
    }
}
void timeline_mark_unlike(Timeline *t, const Timeline *other, int n, Arena *arena) {
    for (int i = 0; i < t->n_events; i++) t->event[i].unlike = n > 0;
    for (int i = 0; i < n; i++) mark_unlike(t, &other[i], t->step != NULL, arena);
}
