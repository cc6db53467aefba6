/* What a rank of a pipeline holds over the modelled time. See memory.h. */
#include "render/furniture/actions.h"
#include "render/memory/memory.h"
#include <string.h>

static void add(MemTime *m, MemMoment x) {
    if (x.to > x.from) m->at[m->n++] = x;
}
/* Actions of the coordinate in their order, and the waiting between; what waits has what was left.
 */
static void fill(MemTime *m, const Trace *t, int64_t copies) {
    MemMoment left = {.all = m->grads + copies, .gathered = copies};
    for (int i = 0; i < t->n_actions; i++) {
        const TraceAction *a = &t->actions[i], *b = NULL;
        if (a->end > m->end) m->end = a->end;
        if (a->rank != m->coord) continue;
        if (a->joined && i + 1 < t->n_actions && t->actions[i + 1].rank == a->rank)
            b = &t->actions[++i];
        left.to = a->start;
        add(m, left);
        const TraceAction *most = b && b->held > a->held ? b : a, *last = b ? b : a;
        int flight = action_flight(a, left.flight),
            most_flight = flight > left.flight ? flight : left.flight;
        if (b) flight = action_flight(b, flight);
        if (flight > most_flight) most_flight = flight;
        add(m,
            (MemMoment){a->start, last->end, most->held, most->held_gathered, a, b, most_flight});
        left = (MemMoment){.from = last->end,
                           .all = last->kept,
                           .gathered = last->kept_gathered,
                           .flight = flight};
    }
    left.to = m->end;
    add(m, left);
}
bool memory_time(Arena *a, const Trace *t, const MemCourse *c, MemTime *out) {
    *out = (MemTime){.coord = trace_pipe_coord(t, c->rank), .peak = -1};
    int64_t held = 0, copies = 0;
    double end = 0;
    for (int i = 0; i < t->n_actions; i++) {
        if (t->actions[i].rank == out->coord) held += t->actions[i].kept + t->actions[i].held;
        if (t->actions[i].end > end) end = t->actions[i].end;
        if (!*t->actions[i].kind || !strchr("FBIW", *t->actions[i].kind)) return false;
    }
    if (out->coord < 0 || end <= 0 || held <= 0) return false;
    for (int i = 0; i < c->n_life; i++) {
        const MemLife *l = &c->life[i];
        if (l->grad && l->from <= 0) out->grads += l->bytes;
        if (l->copy && l->shared) copies += l->bytes;
    }
    out->at = ARENA_ARRAY(a, MemMoment, 2 * t->n_actions + 2);
    fill(out, t, copies);
    for (int i = 0; i < out->n; i++)
        if (out->peak < 0 || out->at[i].all > out->at_peak)
            out->peak = i, out->at_peak = out->at[i].all;
    for (int i = 0; i < c->n_steps; i++)
        if (c->turn[i] == MEM_AFTER && c->all[i] > out->after)
            out->after = c->all[i], out->after_grads = c->grad[i];
    if (out->after > out->at_peak) out->peak = -1, out->at_peak = out->after;
    return out->n > 0;
}
