/* What the timeline of a pipeline shows and says: a line for all stages that do the same, and the
 * sums of a whole step. */
#include "render/timeline/timeline.h"
#include <stdlib.h>
#include <string.h>

/* "pp 0 to 14, 16" of those that are set. */
static const char *coords_text(Arena *a, const char *axis, const bool *in, int n) {
    Str s = str_new(a);
    int count = 0;
    for (int i = 0; i < n; i++) count += in[i];
    if (count == n && n > 1) return "all stages";
    for (int i = 0; i < n; i++) {
        int last = i;
        if (!in[i]) continue;
        while (last + 1 < n && in[last + 1]) last++;
        str_addf(&s, "%s%d", s.n ? ", " : "", i);
        if (last > i) str_addf(&s, "%s%d", last > i + 1 ? " to " : ", ", last);
        i = last;
    }
    return arena_printf(a, "%s %s", axis, s.s);
}
/* Which of n classes do something: coordinates of the pipeline's axis where all classes of these
 * do, else ranks. */
static const char *places(const ViewCall *c, const Timeline *t, int n, const int *in) {
    Arena *a = c->arena;
    int coords = 0;
    for (int i = 0; i < n; i++)
        if (t[i].step->coord >= coords) coords = t[i].step->coord + 1;
    bool *set = ARENA_ARRAY(a, bool, coords + 1), whole = true;
    for (int i = 0; i < n; i++) set[t[i].step->coord] |= in[i] > 0;
    for (int i = 0; i < n; i++) whole &= in[i] || !set[t[i].step->coord];
    if (whole) return coords_text(a, c->t->schedule_axis, set, coords);
    Str s = str_new(a);
    for (int i = 0; i < n; i++)
        if (in[i]) str_addf(&s, "%s%s", s.n ? ", " : "", rankset_text(&t[i].ranks, a));
    return arena_printf(a, "rank%s %s", strpbrk(s.s, ",-: ") ? "s" : "", s.s);
}
/* "8 micro-batches x 2 layers": how often a step does what a line shows, on ranks of n classes, in
 * so many layers each; 0: not there. */
static const char *often(Arena *a, const TimeStep *s, const int *layers, int n) {
    int least = 0, most = 0;
    for (int i = 0; i < n; i++) {
        if (layers[i] && (!least || layers[i] < least)) least = layers[i];
        if (layers[i] > most) most = layers[i];
    }
    const char *parts = arena_printf(a, "%d micro-batch%s", s->times, s->times == 1 ? "" : "es");
    if (most == 1) return parts;
    return least == most ? arena_printf(a, "%s × %d layers", parts, most)
                         : arena_printf(a, "%s × %d to %d layers", parts, least, most);
}
/* In the order of the program. */
static int by_step(const void *x, const void *y) {
    const TimeLine *a = ((const TimeItem *)x)->l, *b = ((const TimeItem *)y)->l;
    return (a->step > b->step) - (a->step < b->step);
}
int timeline_items(const ViewCall *c, const Timeline *t, int n, TimeItem **out) {
    Arena *a = c->arena;
    int all = 0, items = 0;
    for (int i = 0; i < n; i++) all += t[i].n_lines;
    TimeItem *item = ARENA_ARRAY(a, TimeItem, all + 1);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < t[i].n_lines; k++) {
            const TimeLine *l = &t[i].line[k];
            TimeItem *like = item, *end = item + items;
            while (like < end && (like->t->step->times != t[i].step->times ||
                                  !timeline_as_long(like->t, like->l, &t[i], l)))
                like++;
            if (like == end) {
                *like = (TimeItem){.t = &t[i], .l = l, .layers = ARENA_ARRAY(a, int, n)};
                items++;
            }
            like->layers[i] += 1 + l->same;
        }
    qsort(item, (size_t)items, sizeof *item, by_step);
    for (int i = 0; i < items; i++)
        item[i].who = arena_printf(a, "%s · %s", often(a, item[i].t->step, item[i].layers, n),
                                   places(c, t, n, item[i].layers));
    *out = item;
    return items;
}
/* The class that idles longest. */
static const Timeline *idlest(const Timeline *t, int n) {
    const Timeline *most = t;
    for (int i = 1; i < n; i++)
        if (t[i].step->idle > most->step->idle) most = &t[i];
    return most;
}
/* "pp 0", where a class is. */
static const char *place(const ViewCall *c, const Timeline *t) {
    return arena_printf(c->arena, "%s %d", c->t->schedule_axis, t->step->coord);
}
/* "Busiest, pp 0: ", or of the rank that was asked for. */
static const char *whose(const ViewCall *c, const Timeline *t, int n, bool sentence) {
    Arena *a = c->arena;
    if (c->o->rank >= 0) return arena_printf(a, "On rank %lld: ", (long long)c->o->rank);
    if (n == 1) return "";
    if (!sentence) return arena_printf(a, "Busiest, %s: ", place(c, t));
    return arena_printf(a, "The busiest, %s, %s: ", place(c, t), timeline_ranks(t, a));
}
const char *timeline_title(const ViewCall *c, const Timeline *t, int n) {
    Arena *a = c->arena;
    if (!t->step) return timeline_plain_title(c, t, n);
    const TimeStep *s = t->step;
    Str r = str_new(a);
    str_addf(&r, "%s%s compute", whose(c, t, n, false), percent_text(a, s->compute, s->span));
    if (s->comm > 0)
        str_addf(&r, ", %s exposed communication", percent_text(a, s->exposed, s->span));
    if (s->waiting > 1e-9 * s->span)
        str_addf(&r, ", %s waiting for others", percent_text(a, s->waiting, s->span));
    str_addf(&r, ", %s idle", percent_text(a, s->idle, s->span));
    const Timeline *most = idlest(t, n);
    if (most->step->idle > s->idle * (1 + 1e-9))
        str_addf(&r, "; %s idles %s", place(c, most), percent_text(a, most->step->idle, s->span));
    return r.s;
}
/* " (AG, RS)": what is sent once a step. */
static const char *once_codes(const Timeline *t, Arena *a) {
    Str s = str_new(a);
    for (int i = 0; i < t->n_events; i++) {
        const TimeEvent *x = &t->event[i];
        if (!x->aside || !*x->code || timeline_is_message(x) || (s.n && strstr(s.s, x->code)))
            continue;
        str_addf(&s, "%s%s", s.n ? ", " : " (", x->code);
    }
    return s.n ? arena_printf(a, "%s)", s.s) : "";
}
/* Of what is sent once a step what is not exposed: behind what. */
static const char *rest_text(const TimeStep *s, Arena *a) {
    const double rest = s->once_comm - s->once_exposed, other = rest - s->once_hidden;
    if (rest <= 1e-9 * s->once_comm) return "";
    if (other <= 1e-9 * s->once_comm) return " and the rest hidden behind compute";
    if (s->once_hidden <= 1e-9 * s->once_comm) return " and the rest behind other communication";
    return arena_printf(a, ", %s hidden behind compute and the rest behind other communication",
                        time_text(s->once_hidden, a));
}
/* " Beside that, once a step: communication (AG, RS) 5 ms, 4 ms of it exposed, ..."; "" where there
 * is nothing of it. */
static const char *once_a_step(const Timeline *t, Arena *a) {
    const TimeStep *s = t->step;
    Str r = str_new(a);
    if (s->once_comm <= 0 && s->once_compute <= 0) return "";
    str_add(&r, " Beside that, once a step:");
    if (s->once_compute > 0) str_addf(&r, " compute %s", time_text(s->once_compute, a));
    if (s->once_comm > 0)
        str_addf(&r, "%s communication%s %s, %s of it exposed%s", s->once_compute > 0 ? "," : "",
                 once_codes(t, a), time_text(s->once_comm, a), time_text(s->once_exposed, a),
                 rest_text(s, a));
    str_add(&r, ".");
    return r.s;
}
const char *timeline_totals(const ViewCall *c, const Timeline *t, int n) {
    Arena *a = c->arena;
    if (!t->step) return timeline_plain_totals(c, t, n);
    const TimeStep *s = t->step;
    Str r = str_new(a);
    const char *who = whose(c, t, n, true);
    int64_t parts = trace_microbatches(c->t);
    const char *part[4],
        *span = time_sum_text((double[]){s->compute, s->exposed, s->waiting, s->idle}, 4, part, a);
    str_addf(&r, "%s%s %lld micro-batch%s %s = compute %s", who, *who ? "all" : "All",
             (long long)parts, parts == 1 ? "" : "es", span, part[0]);
    if (s->comm > 0) str_addf(&r, " + exposed %s", part[1]);
    if (s->waiting > 1e-9 * s->span) str_addf(&r, " + waiting for other ranks %s", part[2]);
    str_addf(&r, " + idle %s.", part[3]);
    if (s->comm > 0)
        str_addf(&r, " Communication within its stages %s; messages between stages are idle time.",
                 timeline_hidden_text(s->comm, s->hidden, s->beside, part[1], a));
    str_add(&r, once_a_step(t, a));
    return r.s;
}
