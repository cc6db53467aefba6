/* The ways to cut a plan's ranks over its own axes. See sweep.h. The axis of a pipeline keeps its
 * size: a schedule is made for so many stages. */
#include "render/sweep/sweep.h"
#include "render/timeline/timeline.h"
#include <stdlib.h>
#include <string.h>

const char *sweep_span(const Sweep *s) {
    const double parts = words_find_dim(s->t, "microbatches");
    return parts > 1 && !s->t->schedule ? "step of one micro-batch" : "step";
}

/* ---- time ---- */
/* As a timeline has it, of the rank that it tells of first; in a pipeline with what is done once a
 * step. False: there are no times. */
static bool read_time(const Sweep *s, const Trace *t, SweepWay *w) {
    Arena *a = arena_new();
    RenderOptions o = {.view = "timeline", .rank = -1, .layer = -1};
    ViewCall c = {.t = t, .all = t, .d = diags_new(a), .o = &o, .arena = a};
    Timeline *line = ARENA_ARRAY(a, Timeline, 1);
    TimeFold fold;
    c.fonts = s->c->fonts;
    const bool any = timeline_read(&c, line, 1, TIMELINE_STAGES, &fold) > 0;
    const TimeStep *step = any ? line->step : NULL;
    if (step) {
        w->compute = step->compute + step->once_compute;
        w->exposed = step->exposed + step->once_exposed;
        w->waiting = step->waiting, w->idle = step->idle;
        w->span = step->span + step->once_compute + step->once_exposed;
    } else if (any) {
        const TraceTimes *x = &line->sum;
        w->compute = x->compute, w->exposed = x->exposed, w->waiting = x->waiting;
        w->span = x->span;
    }
    arena_free(a);
    return any;
}
/* ---- ways ---- */
static bool is_fixed(const Sweep *s, int axis) {
    return s->t->schedule_axis && !strcmp(s->t->schedule_axis, s->others->axis[axis]);
}
static void add_way(Sweep *s, const int64_t *size) {
    const PlanOthers *o = s->others;
    SweepWay w = {.own = !memcmp(size, o->size, sizeof *size * (size_t)o->n_axes)};
    memcpy(w.size, size, sizeof *size * (size_t)o->n_axes);
    const Trace *t = w.own ? s->t : o->with_mesh(o->of, size);
    int64_t bytes[MEM_KINDS];
    if (t && (w.total = sweep_held(t, bytes)) >= 0 && read_time(s, t, &w)) s->way[s->n_ways++] = w;
    else s->illegal++;
}
/* All sizes of the axes from `axis` on with which `left` ranks are cut; counts them, and with
 * `add` tries them. */
static void cut(Sweep *s, int axis, int64_t left, int64_t *size, bool add) {
    const int n = s->others->n_axes;
    if (axis == n) {
        if (left != 1) return;
        if (add) add_way(s, size);
        else s->ways++;
        return;
    }
    for (int64_t d = 1; d <= left && s->ways <= SWEEP_WAYS; d++) {
        if (left % d || (is_fixed(s, axis) && d != s->others->size[axis])) continue;
        size[axis] = d;
        cut(s, axis + 1, left / d, size, add);
    }
}
/* The fastest first; those that take as long in the order of their sizes, so that it is always the
 * same. */
static int by_span(const void *a, const void *b) {
    const SweepWay *x = a, *y = b;
    if (x->span != y->span) return x->span < y->span ? -1 : 1;
    for (int i = 0; i < SWEEP_AXES; i++)
        if (x->size[i] != y->size[i]) return x->size[i] < y->size[i] ? -1 : 1;
    return 0;
}
void sweep_read_ways(Sweep *s) {
    const PlanOthers *o = s->others;
    int64_t size[SWEEP_AXES] = {0}, ranks = 1;
    if (o->n_axes > SWEEP_AXES || o->n_axes < 2 || s->t->n_events == 0) return;
    for (int i = 0; i < o->n_axes; i++) ranks *= o->size[i], s->n_fixed += is_fixed(s, i);
    cut(s, 0, ranks, size, false);
    if (s->ways < 2 || s->ways > SWEEP_WAYS) return;
    o->expect(o->of, (int)s->ways);
    cut(s, 0, ranks, size, true);
    qsort(s->way, (size_t)s->n_ways, sizeof *s->way, by_span);
}

/* ---- words ---- */
const char *sweep_way_name(const Sweep *s, const SweepWay *w) {
    Str r = str_new(s->c->arena);
    for (int i = 0; i < s->others->n_axes; i++)
        if (w->size[i] > 1)
            str_addf(&r, "%s%s=%lld", r.n ? " " : "", s->others->axis[i], (long long)w->size[i]);
    return r.s;
}
static const SweepWay *own_way(const Sweep *s) {
    for (int i = 0; i < s->n_ways; i++)
        if (s->way[i].own) return &s->way[i];
    return NULL;
}
const char *sweep_fastest(const Sweep *s) {
    Arena *a = s->c->arena;
    const SweepWay *best = NULL, *own = own_way(s);
    int fit = 0;
    for (int i = 0; i < s->n_ways; i++) {
        if (!sweep_fits(s, s->way[i].total)) continue;
        fit++;
        if (!best) best = &s->way[i];
    }
    if (!sweep_compares(s)) return NULL;
    const char *of =
        arena_printf(a, "of %d ways to cut %lld ranks", s->n_ways, (long long)s->t->ranks);
    if (!best) return arena_printf(a, "%s none fits", of);
    const char *time = time_text(best->span, a), *that = fit < s->n_ways ? " that fits" : "";
    if (own && sweep_fits(s, own->total) && !strcmp(time_text(own->span, a), time))
        return arena_printf(a, "%s none%s is faster than the plan's: %s", of, that, time);
    const char *mine = own ? arena_printf(a, ", the plan's %s", time_text(own->span, a)) : "";
    return arena_printf(a, "%s %s is the fastest%s: %s%s", of, sweep_way_name(s, best), that, time,
                        mine);
}
const char *sweep_ways_words(const Sweep *s, int left) {
    Arena *a = s->c->arena;
    Str r = str_new(a);
    if (s->ways > SWEEP_WAYS)
        return " The ways to cut the ranks over the plan's axes are too many to try.";
    if (s->ways < 2) return "";
    str_addf(&r, " Ways to cut %lld ranks over the plan's axes", (long long)s->t->ranks);
    if (s->n_fixed) str_addf(&r, ", of which %s keeps its size", s->t->schedule_axis);
    str_addf(&r, ": %lld", (long long)s->ways);
    if (s->illegal)
        str_addf(&r, ", %d of them break%s a rule or leave%s ranks with nothing to do", s->illegal,
                 s->illegal == 1 ? "s" : "", s->illegal == 1 ? "s" : "");
    if (left) str_addf(&r, ", %d slower one%s not drawn", left, left == 1 ? "" : "s");
    str_add(&r, ".");
    if (sweep_compares(s))
        str_addf(&r, " Time of a %s%s, as view timeline has it.", sweep_span(s),
                 s->t->schedule ? " with what is done once" : "");
    return r.s;
}
