/* Sums over records. See records.h. */
#include "records.h"
#include "trace/collectives.h"
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool record_member(const TraceCollective *c, int64_t rank) {
    for (int64_t g = 0; g < groups_count(&c->groups); g++)
        for (int64_t i = 0; i < groups_size(&c->groups); i++)
            if (groups_member(&c->groups, g, i) == rank) return true;
    return false;
}
int records_backward(const Trace *t) {
    int step = INT_MAX;
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].pass == PHASE_BACKWARD && t->computes[i].step < step)
            step = t->computes[i].step;
    return step;
}
bool record_in_pass(const Trace *t, const TraceCollective *c, const char *pass) {
    if (!pass) return true;
    if (c->pass == PHASE_OPTIMIZER) return false;
    bool back = c->pass == PHASE_BACKWARD || c->pass == PHASE_GRADIENTS ||
                (c->pass == PHASE_LOSS && subject_is_gradient(c->subject)) ||
                (c->pass == PHASE_PARAMETERS && c->step > records_backward(t));
    return back == !strcmp(pass, "backward");
}
void record_add(RecordSum *s, const TraceCollective *c, int64_t rank) {
    bool message = !strcmp(c->op, "send");
    s->count += collective_times(c);
    s->bytes += collective_on(c, rank).bytes_sent;
    if (message) s->messages += collective_times(c);
    if (message && !collective_on(c, rank).bytes_in) s->received += collective_times(c);
}
const char *record_counted(Arena *a, RecordSum s, bool sent) {
    long long messages = s.messages - (sent ? s.received : 0), others = s.count - s.messages;
    const char *m = arena_printf(a, "%lld message%s", messages, messages == 1 ? "" : "s"),
               *c = arena_printf(a, "%lld collective%s", others, others == 1 ? "" : "s");
    return !messages ? c : !others ? m : arena_printf(a, "%s and %s", c, m);
}
RecordSum records_sent(const Trace *t, int64_t rank, const char *pass, int layer) {
    RecordSum s = {0};
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!record_member(c, rank) || !record_in_pass(t, c, pass)) continue;
        if (c->skipped || (layer >= 0 && c->layer != layer)) continue;
        record_add(&s, c, rank);
    }
    return s;
}
int64_t records_weights(const Trace *t, int64_t rank, int layer, bool whole) {
    int64_t n = 0;
    for (int i = 0; i < t->n_params; i++) {
        const TraceShape *s = &t->params[i].rest;
        int64_t all = 1, here = 0, bytes = 0;
        if (layer >= 0 && t->params[i].layer != layer) continue;
        for (int k = 0; k < s->nd; k++) all *= s->global_shape[k];
        for (int k = 0; k < s->n_local; k++)
            if (rankset_has(&s->local[k].ranks, rank)) {
                here = 1, bytes = s->local[k].bytes;
                for (int d = 0; d < s->nd; d++) here *= s->local[k].shape[d];
            }
        /* of another stage: what one of its ranks has, whole */
        if (whole && !here && s->n_local) {
            here = 1, bytes = s->local[0].bytes;
            for (int d = 0; d < s->nd; d++) here *= s->local[0].shape[d];
        }
        n += whole && here ? bytes / here * all : bytes;
    }
    return n;
}
int records_first_layer(const Trace *t) {
    int first = -1;
    for (int i = 0; i < t->n_params; i++)
        if (t->params[i].layer >= 0 && (first < 0 || t->params[i].layer < first))
            first = t->params[i].layer;
    return first < 0 ? 0 : first;
}

static int64_t category(const Trace *t, int64_t rank, const char *name, int step) {
    int64_t bytes = 0;
    for (int i = 0; i < t->n_memory && t->memory[i].step <= step; i++)
        if (!strcmp(t->memory[i].category, name) && rankset_has(&t->memory[i].ranks, rank))
            bytes = t->memory[i].bytes;
    return bytes;
}
int64_t records_live(const Trace *t, int64_t rank) {
    int64_t most = 0, live = 0, grads = 0, copies = 0;
    for (int i = 0; i < t->n_memory; i++) { /* in the order of steps */
        const TraceMemory *m = &t->memory[i];
        if (m->step < 0 || !rankset_has(&m->ranks, rank)) continue;
        if (!strcmp(m->category, "activations")) live = m->bytes;
        if (!strcmp(m->category, "gradients")) grads = m->bytes;
        if (!strcmp(m->category, "gathered")) copies = m->bytes;
        bool last = true;
        for (int k = i + 1; k < t->n_memory && t->memory[k].step == m->step && last; k++)
            last = !rankset_has(&t->memory[k].ranks, rank);
        if (last && live + grads + copies > most) most = live + grads + copies;
    }
    return most;
}
int64_t records_peak(const Trace *t, int64_t rank) {
    return records_live(t, rank) + category(t, rank, "parameters", -1) +
           category(t, rank, "optimizer", -1);
}

static int by_time(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}
/* Between neighbouring ends of events nothing changes: who is busy in each of these spans. */
static RecordTime time_of(Arena *a, const Trace *t, int64_t rank) {
    const TraceEvent **own = ARENA_ARRAY(a, const TraceEvent *, t->n_events + 1);
    int n = 0, n_own = 0;
    RecordTime x = {0};
    for (int i = 0; i < t->n_events; i++)
        if (rankset_has(&t->events[i].ranks, rank)) own[n_own++] = &t->events[i];
    double *at = ARENA_ARRAY(a, double, 3 * n_own + 2);
    for (int i = 0; i < n_own; i++) {
        const TraceEvent *e = own[i];
        at[n++] = e->start, at[n++] = e->start + e->wait, at[n++] = e->end;
        x.waiting += e->wait_exposed, x.exposed += e->exposed;
    }
    at[n++] = 0;
    qsort(at, (size_t)n, sizeof *at, by_time);
    for (int i = 0; i + 1 < n; i++) {
        bool computes = false, sends = false;
        for (int k = 0; k < n_own && at[i + 1] > at[i]; k++) {
            const TraceEvent *e = own[k];
            if (e->start + e->wait > at[i] || e->end < at[i + 1]) continue;
            *(strcmp(e->kind, "compute") ? &sends : &computes) = true;
        }
        double d = at[i + 1] - at[i];
        x.span += d;
        if (!computes) x.still += d;
        if (sends) x.comm += d;
        if (sends && computes) x.hidden += d;
    }
    x.compute = x.span - x.still;
    return x;
}
RecordTime records_time(Arena *a, const Trace *t, int64_t rank) {
    RecordTime x = time_of(a, t, rank);
    assert(fabs(x.still - x.exposed - x.waiting) <= 1e-6 * x.span);
    return x;
}

const char *records_span(Arena *a, const Trace *t) {
    double parts = 1;
    bool ways = false, once = t->pass != PASS_FORWARD;
    for (int i = 0; i < t->n_model; i++)
        if (!strcmp(t->model[i].name, "microbatches")) parts = t->model[i].value;
    for (int i = 0; i < t->n_values; i++) ways |= t->values[i].way > 0;
    if (parts <= 1) return "step";
    return arena_printf(a, "one micro-batch%s%s,", ways ? " each way" : "",
                        once ? " and what is done once a step" : "");
}
double records_busy(const Trace *t, int rank) {
    double busy = 0, until = -1;
    for (int i = 0; i < t->n_actions; i++) { /* in the order of its list, so of their times */
        const TraceAction *x = &t->actions[i];
        if (x->rank != rank) continue;
        double from = fmax(x->start, until);
        if (x->end > from) busy += x->end - from, until = x->end;
    }
    return busy;
}
/* Of each step: is it done once, however many micro-batches there are, or is it a message? */
typedef enum { EACH_MICROBATCH, ONCE, MESSAGE } Often;
static Often *often_of(Arena *a, const Trace *t) {
    int n = 0;
    bool cut = false;
    for (int i = 0; i < t->n_events; i++) n = t->events[i].step >= n ? t->events[i].step + 1 : n;
    for (int k = 0; k < t->n_model; k++)
        cut |= !strcmp(t->model[k].name, "microbatches") && t->model[k].value > 1;
    Often *of = ARENA_ARRAY(a, Often, n + 1);
    for (int i = 0; i < n; i++) of[i] = EACH_MICROBATCH;
    for (int i = 0; i < t->n_values; i++)
        if (t->values[i].once && t->values[i].step >= 0 && t->values[i].step < n)
            of[t->values[i].step] = ONCE;
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].pass == PHASE_OPTIMIZER && t->computes[i].step < n)
            of[t->computes[i].step] = ONCE;
    for (int i = t->n_collectives - 1; i >= 0; i--) { /* of several the first says it */
        const TraceCollective *c = &t->collectives[i];
        if (c->step < n)
            of[c->step] = !strcmp(c->op, "send") ? MESSAGE
                          : cut && !c->per_step  ? ONCE
                                                 : EACH_MICROBATCH;
    }
    return of;
}
/* The trace with those events alone. */
static Trace events_of(Arena *a, const Trace *t, const Often *of, Often which) {
    Trace u = *t;
    u.events = ARENA_ARRAY(a, TraceEvent, t->n_events + 1);
    u.n_events = 0;
    for (int i = 0; i < t->n_events; i++)
        if (of[t->events[i].step] == which) u.events[u.n_events++] = t->events[i];
    return u;
}
RecordStep records_step(Arena *a, const Trace *t, int64_t rank) {
    RecordStep s = {.coord = -1};
    int64_t stride = 1;
    int stage = -1;
    for (int i = t->n_axes - 1; i >= 0 && s.coord < 0; i--) {
        if (!strcmp(t->axes[i].name, t->schedule_axis))
            s.coord = (int)(rank / stride % t->axes[i].size);
        else stride *= t->axes[i].size;
    }
    for (int i = 0; i < t->n_actions; i++) {
        const TraceAction *x = &t->actions[i];
        s.span = fmax(s.span, x->end);
        if (x->rank != s.coord || strcmp(x->kind, "F")) continue;
        if (stage < 0) stage = x->stage;
        s.times += x->stage == stage;
    }
    const Often *of = often_of(a, t);
    Trace each = events_of(a, t, of, EACH_MICROBATCH), once = events_of(a, t, of, ONCE);
    RecordTime x = time_of(a, &each, rank), y = time_of(a, &once, rank);
    s.compute = s.times * x.compute, s.exposed = s.times * x.exposed;
    s.waiting = s.times * x.waiting, s.comm = s.times * x.comm, s.hidden = s.times * x.hidden;
    double works = s.compute + s.exposed + s.waiting, busy = records_busy(t, s.coord);
    s.idle = fmax(0, s.span - works);
    assert(rank != s.coord * stride || fabs(works - busy) <= 1e-6 * s.span);
    s.once_compute = y.compute, s.once_exposed = y.exposed, s.once_comm = y.comm;
    return s;
}
int records_in_flight(const Trace *t, int rank) {
    int now = 0, most = 0;
    for (int i = 0; i < t->n_actions; i++) {
        const TraceAction *x = &t->actions[i];
        bool last = true; /* the backward's last half */
        if (x->rank != rank) continue;
        for (int k = i + 1; k < t->n_actions && last; k++)
            last = t->actions[k].rank != rank || t->actions[k].stage != x->stage ||
                   t->actions[k].microbatch != x->microbatch;
        if (!strcmp(x->kind, "F")) now++;
        else now -= last;
        most = now > most ? now : most;
    }
    return most;
}

const char *page_words(Arena *a, const Scene *s, const char *what) {
    Str t = str_new(a);
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_TEXT) continue;
        if (what && (m->group < 0 || strcmp(s->groups[m->group].what, what))) continue;
        if (t.n) str_add(&t, " ");
        for (int k = 0; k < m->n_run; k++) str_add(&t, m->run[k].s);
    }
    return t.s ? t.s : "";
}

/* ---- the roofline ---- */
typedef struct {
    const Trace *t;
    int64_t rank;
    bool makes;
    int layer;
    bool *seen; /* per compute */
    int first;  /* the first product that was found, of makers the last; -1 */
    int n, *found;
} Around;

static const TraceEvent *event_of(const Trace *t, int64_t rank, int step) {
    for (int i = 0; i < t->n_events; i++)
        if (t->events[i].step == step && rankset_has(&t->events[i].ranks, rank))
            return &t->events[i];
    return NULL;
}
static void go_from(Around *x, int step);
static void go_to(Around *x, int i) {
    const TraceCompute *c = &x->t->computes[i];
    if (x->seen[i] || !rankset_has(&c->ranks, x->rank)) return;
    x->seen[i] = true;
    if (c->product || c->attends) {
        const TraceEvent *e = event_of(x->t, x->rank, c->step);
        if (!e || e->work <= 0) return; /* the mask leaves nothing */
        const int was = x->first < 0 ? -1 : x->t->computes[x->first].step;
        if (was < 0 || (c->step > was) == x->makes) x->first = i;
        x->found[x->n++] = i;
        return;
    }
    if (c->layer != x->layer) return;
    if (!x->makes) go_from(x, c->step);
    for (int k = 0; x->makes && k < c->n_inputs; k++)
        if (c->input_step[k] >= 0) go_from(x, c->input_step[k]);
}
/* All that reads the output of a step, or what makes it; slices only show it another way. */
static void go_from(Around *x, int step) {
    const Trace *t = x->t;
    for (int i = 0; i < t->n_moves; i++) {
        if (x->makes && t->moves[i].step == step) go_from(x, t->moves[i].value_step);
        if (!x->makes && t->moves[i].value_step == step) go_from(x, t->moves[i].step);
    }
    for (int i = 0; i < t->n_computes; i++) {
        bool next = x->makes && t->computes[i].step == step;
        for (int k = 0; !x->makes && k < t->computes[i].n_inputs; k++)
            next |= t->computes[i].input_step[k] == step;
        if (next) go_to(x, i);
    }
}
static int phase_of(const TraceCompute *c) {
    const bool back = c->pass == PHASE_BACKWARD || c->pass == PHASE_GRADIENTS ||
                      (c->pass == PHASE_LOSS && subject_is_gradient(c->makes));
    return c->pass == PHASE_OPTIMIZER ? 2 : back;
}
static double one_way(Arena *a, const Trace *t, int64_t rank, const TraceCollective *c,
                      bool makes) {
    Around x = {t, rank, makes, c->layer, NULL, -1, 0, NULL};
    double sum = 0;
    x.seen = ARENA_ARRAY(a, bool, t->n_computes + 1);
    x.found = ARENA_ARRAY(a, int, t->n_computes + 1);
    if (!makes || c->value_step >= 0) go_from(&x, makes ? c->value_step : c->step);
    for (int i = 0; !makes && i < c->n_with; i++) go_from(&x, c->with[i]);
    for (int i = 0; makes && i < c->n_with_from; i++) go_from(&x, c->with_from[i]);
    for (int i = 0; i < x.n; i++) {
        const TraceCompute *k = &t->computes[x.found[i]];
        const TraceEvent *e = event_of(t, rank, k->step);
        if (phase_of(k) == phase_of(&t->computes[x.first])) sum += e ? e->end - e->start : 0;
    }
    return sum;
}
double records_products(Arena *a, const Trace *t, int64_t rank, const TraceCollective *c) {
    const double own = one_way(a, t, rank, c, c->reduce != NULL);
    return own > 0 ? own : one_way(a, t, rank, c, c->reduce == NULL);
}
static void add_kernel(RecordRoof *r, const Trace *t, const TraceEvent *e) {
    const double flops = e->work / t->flop_rate, bytes = e->moved / t->memory_rate,
                 took = e->end - e->start;
    const RecordBound b = t->launch > flops && t->launch > bytes ? RECORD_LAUNCH_BOUND
                          : flops < bytes                        ? RECORD_MEMORY_BOUND
                                                                 : RECORD_COMPUTE_BOUND;
    r->kernels++, r->of[b]++;
    r->compute += took, r->took[b] += took;
}
static const TraceCollective *coll_of(const Trace *t, int step) {
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step == step) return &t->collectives[i];
    return NULL;
}
RecordRoof records_roof(Arena *a, const Trace *t, int64_t rank) {
    RecordRoof r = {0};
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *e = &t->events[i];
        if (!rankset_has(&e->ranks, rank)) continue;
        const TraceCollective *c = strcmp(e->kind, "compute") ? coll_of(t, e->step) : NULL;
        if (!c) add_kernel(&r, t, e);
        else if (!strcmp(c->op, "send")) r.messages++;
        else {
            const double took = e->end - e->start - e->wait,
                         products = records_products(a, t, rank, c);
            const bool has = products > 0 && e->moved > 0, longer = has && took > products;
            r.alone += !has, r.colls += has, r.longer += longer;
            r.sent += has ? took : 0, r.sent_longer += longer ? took : 0;
        }
    }
    return r;
}
