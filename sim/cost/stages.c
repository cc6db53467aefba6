/* The modelled time of a pipeline: how long the forward and the two halves of the backward of each
 * stage take by the events of one micro-batch, and the schedule played with these. See cost.h. */
#include "cost/cost.h"
#include "schedule/play.h"
#include <math.h>
#include <string.h>

enum { N_TIMES = DO_W + 1 };

typedef struct {
    Trace *t;
    Arena *tmp;
    bool *message;         /* per step */
    double *time[N_TIMES]; /* per stage */
    double *sent;          /* per step: of a message, without waiting for the other; 0: none */
} Stages;

static void find_messages(Stages *s) {
    const Trace *t = s->t;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->step >= 0 && c->step < t->n_order_steps)
            s->message[c->step] = !strcmp(c->op, "send");
    }
}
static int64_t axis_stride(const Trace *t, const char *axis) {
    int64_t stride = 1;
    for (int i = t->n_axes - 1; i >= 0; i--) {
        if (!strcmp(t->axes[i].name, axis)) return stride;
        stride *= t->axes[i].size;
    }
    return 1;
}
/* What one rank of each stage does for one micro-batch; waiting for others of its own stage is part
 * of it, waiting for another stage is not. */
static void add_events(Stages *s) {
    const Trace *t = s->t;
    int64_t stride = axis_stride(t, t->schedule_axis);
    const Schedule *order = t->order;
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *e = &t->events[i];
        if (e->step < 0 || e->step >= t->n_order_steps) continue;
        int stage = t->step_stage[e->step], kind = t->step_action[e->step];
        if (stage < 0 || kind < 0) continue;
        double took = e->end - e->start;
        if (s->message[e->step]) {
            s->sent[e->step] = fmax(s->sent[e->step], took - e->wait);
            continue;
        }
        if (strcmp(e->kind, "compute")) took = e->exposed + e->wait_exposed;
        if (rankset_has(&e->ranks, order->home[stage] * stride)) s->time[kind][stage] += took;
    }
}
static void fill_actions(Stages *s, const Play *p) {
    Trace *t = s->t;
    int at = 0;
    for (int r = 0; r < p->s->ranks; r++)
        for (int i = 0; i < p->s->rank[r].n; i++) {
            if (!action_computes(p->s->rank[r].a[i].kind)) continue;
            t->actions[at].start = p->span[r][i].start;
            t->actions[at++].end = p->span[r][i].end;
        }
}
/* ---- idle time ---- */
static double mean_idle(const Play *p) {
    double idle = 0;
    for (int r = 0; r < p->s->ranks; r++) idle += (p->end - p->busy[r]) / p->s->ranks;
    return idle;
}
/* Does every rank idle as long as the form says, with even stages and free messages? */
static bool form_holds(Stages *s, const ScheduleKind *k, const ScheduleAsk *ask, StageTimes one,
                       double *idle) {
    PlayTimes even = play_even(s->t->order, one.f, one.i, one.w, s->tmp);
    even.buffers = s->t->schedule_buffers;
    const Play *p = play_schedule(s->t->order, &even, s->tmp);
    *idle = k->idle(ask, &one);
    for (int r = 0; r < ask->ranks; r++)
        if (fabs(p->end - p->busy[r] - *idle) > 1e-9 * p->end) return false;
    return true;
}
/* Which stages take longest for one micro-batch: those within a percent of the slowest. */
static void find_slow(Stages *s, double mean) {
    Trace *t = s->t;
    const int n = t->order->stages;
    double most = 0, *all = ARENA_ARRAY(s->tmp, double, n);
    for (int g = 0; g < n; g++) {
        for (int k = 0; k < N_TIMES; k++) all[g] += s->time[k][g];
        most = fmax(most, all[g]);
    }
    if (mean <= 0) return;
    Str names = str_new(t->arena);
    for (int g = 0; g < n; g++)
        if (all[g] >= 0.99 * most) str_addf(&names, "%s%d", names.n ? ", " : "", g);
    t->slow_stages = names.s;
    t->slow_times = most / mean;
}
/* Takes the idle time of the schedule as it was played, with `times`, apart. */
static void find_bubble(Stages *s, const Play *played, const PlayTimes *times) {
    Trace *t = s->t;
    const Schedule *order = t->order;
    const ScheduleKind *k = schedule_kind(order->name);
    if (!k || !k->idle || order->forward) return;
    StageTimes mean = {0};
    for (int g = 0; g < order->stages; g++) {
        mean.f += s->time[DO_F][g] / order->stages;
        mean.i += s->time[DO_I][g] / order->stages;
        mean.w += s->time[DO_W][g] / order->stages;
    }
    mean.together = mean.f + mean.i + mean.w;
    ScheduleAsk ask = {k->name, order->ranks, order->stages / order->ranks, order->parts};
    double unit;
    if (!form_holds(s, k, &ask, mean, &t->bubble)) {
        bool alike = form_holds(s, k, &ask, (StageTimes){1, 1, 1, 3}, &unit);
        t->bubble = 0;
        t->bubble_unfit = arena_printf(t->arena, "%s is of %s", k->bubble,
                                       alike ? "F = I = W" : "more micro-batches");
        return;
    }
    PlayTimes free = *times;
    free.message = 0;
    double uneven = mean_idle(play_schedule(order, &free, s->tmp));
    t->bubble_form = k->bubble;
    t->bubble_stages = uneven - t->bubble;
    find_slow(s, mean.together);
    t->bubble_messages = mean_idle(played) - uneven;
}
void cost_stages(Trace *t) {
    Stages s = {.t = t, .tmp = arena_new()};
    const Schedule *order = t->order;
    if (!order || !t->n_events) {
        arena_free(s.tmp);
        return;
    }
    s.sent = ARENA_ARRAY(s.tmp, double, t->n_order_steps + 1);
    s.message = ARENA_ARRAY(s.tmp, bool, t->n_order_steps + 1);
    for (int k = 0; k < N_TIMES; k++) s.time[k] = ARENA_ARRAY(s.tmp, double, order->stages);
    find_messages(&s);
    add_events(&s);
    PlayTimes times = {.forward = s.time[DO_F],
                       .input = s.time[DO_I],
                       .weight = s.time[DO_W],
                       .together = 1,
                       .buffers = t->schedule_buffers};
    for (int i = 0; i < t->n_order_steps; i++) times.message = fmax(times.message, s.sent[i]);
    const Play *p = play_schedule(order, &times, s.tmp);
    fill_actions(&s, p);
    find_bubble(&s, p, &times);
    arena_free(s.tmp);
}
