/* Simulated time on a stated machine. A kernel takes max(FLOP / rate, bytes / bandwidth) +
 * overhead; a collective takes its number of steps times the latency plus the bytes it sends over
 * the bandwidth (ring, all-to-all pairwise). Every class of ranks with the same work has one stream
 * for compute and one per set of axes; a step starts when what it reads is ready and its stream is
 * free; gathers of parameters run ahead by TRACE_PREFETCH units, as memory counts them.
 * Communication is exposed where it ends a wait of compute; where compute stands still for a
 * collective that waits for its last member, that is waiting. Compute, exposed and waiting are the
 * class's whole time. Rows of experts are those of the run where there was one (rows.h).
 * Refuses to reorder and to share a link between streams, which needs more facts than a profile
 * has; an algorithm is chosen only as NCCL does it (nccl.h). */
#include "cost/cost.h"
#include "base/recent.h"
#include "cost/nccl.h"
#include "cost/rows.h"
#include "trace/collectives.h"
#include "trace/trace_parts.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CLASSES = 256 };

typedef struct {
    TraceEvent e;
    int cause; /* event of this class whose end let this one start; -1: nothing did */
} Event;
typedef struct {
    const char *axes;
    double free;
    int last; /* event */
} Stream;
/* One rank class on its way through the steps. */
typedef struct {
    int64_t rank; /* first member */
    RankSet ranks;
    int n_events, cap_events;
    Event *event;
    int n_streams, cap_streams;
    Stream *stream; /* 0 is compute */
    double *ready;  /* when the output of a step is there */
    int *maker;     /* and the event that made it; -1: none */
} Class;
/* What the groups of a collective mean for classes and links; kept, for there are few different
 * ones. */
typedef struct {
    const RankGroups *groups;
    int *meets;    /* per class: classes of one number wait for each other; -1: takes no part */
    int64_t nodes; /* of the group that spans most */
    int64_t size;
} Meeting;
/* The formula of a step that did as much: layers repeat. */
typedef struct {
    const void *op, *groups; /* of a collective: its row, who meets; NULL: a kernel's */
    double x, y;             /* what it does */
    const char *text;
} Said;
enum { MAX_SAID = 64 };
typedef struct {
    Trace *t;
    const Hardware *h;
    Arena *scratch;
    int n_classes, n_steps;
    int n_parts; /* of ranks with the same work, of which n_classes are looked at */
    Class *cls;
    int n_meetings, cap_meetings;
    Meeting *meeting;
    CostRows rows;
    Recent said; /* rows of Said */
} Sim;

/* ---- what a step takes ---- */
/* What the record is timed and called by; of an op that is not known it is taken for a ring. */
static const CollWord *row_of(const char *op) {
    static const CollWord other = {"", "", "C", "", 1, false, false, NULL, NULL};
    const CollWord *known = coll_word(op);
    return known ? known : &other;
}
static double flop_rate(const Trace *t, const Hardware *h) {
    const char *d = t->dtype ? t->dtype : "";
    return strcmp(d, "bf16") == 0  ? h->flops_bf16
           : strcmp(d, "f64") == 0 ? h->flops_f64
                                   : h->flops_f32;
}
/* "layers.0.q_proj" -> "q_proj", "grad.layers.0.q_proj" -> "d q_proj" */
static const char *short_name(Subject s, Arena *arena) {
    const char *name = s.of;
    if (!name) return "";
    if (strncmp(name, "layers.", 7) == 0) {
        const char *p = strchr(name + 7, '.');
        if (p) name = p + 1;
    }
    return subject_is_gradient(s) ? arena_printf(arena, "d %s", name) : arena_strdup(arena, name);
}
/* "660 TFLOP/s", "512 FLOP" */
static const char *amount(double v, const char *unit, Arena *arena) {
    const char *s = count_text(v, arena);
    return arena_printf(arena, "%s%s%s", s, strchr(s, ' ') ? "" : " ", unit);
}
static bool is_said(const void *row, const void *want) {
    const Said *k = row, *w = want;
    return k->op == w->op && k->groups == w->groups && k->x == w->x && k->y == w->y;
}
/* Where the formula of these numbers stands, or is to be written. */
static const char **said_of(Sim *s, Said want) {
    Said *k = recent_find(&s->said, is_said, &want);
    if (!k) k = recent_add(&s->said, &want);
    return &k->text;
}
static const char *kernel_formula(const Sim *s, double work, double moved, double rate,
                                  double time) {
    Arena *a = s->t->arena;
    return arena_printf(a, "max(%s / %s, %s / %s) + %s = %s", amount(work, "FLOP", a),
                        amount(rate, "FLOP/s", a), bytes_text((int64_t)moved, a),
                        amount(s->h->memory_bandwidth, "B/s", a),
                        time_text(s->h->kernel_overhead, a), time_text(time, a));
}
/* Fills what a kernel's time is made from, and its formula; returns the time. */
static double compute_time(Sim *s, const TraceCompute *c, const RankSet *ranks, TraceEvent *e) {
    Arena *a = s->t->arena;
    RowLoad load;
    bool rows = cost_rows_of(&s->rows, c, ranks, &load);
    double more = rows ? load.rows / load.expected : 1, work = c->flops * more,
           moved = (double)c->bytes + (rows ? (more - 1) * (double)load.bytes : 0);
    double rate = flop_rate(s->t, s->h), flops = work / rate,
           bytes = moved / s->h->memory_bandwidth;
    double time = (flops > bytes ? flops : bytes) + s->h->kernel_overhead;
    const char **said = said_of(s, (Said){.x = work, .y = moved});
    if (!*said) *said = kernel_formula(s, work, moved, rate, time);
    e->work = work, e->moved = moved, e->formula = *said;
    if (rows)
        e->formula = s->rows.run
                         ? arena_printf(a, "%s; %.0f rows on the rank that has most, %.0f expected",
                                        *said, load.rows, load.expected)
                         : arena_printf(a, "%s; %.0f rows expected", *said, load.expected);
    return time;
}
/* What NCCL expects of a group in which a rank sends `sent` bytes. */
static double nccl_time(const Sim *s, const TraceCollective *c, const Meeting *m, int64_t sent,
                        const char **formula) {
    Arena *a = s->t->arena;
    double times = c->times > 1 ? (double)c->times : 1;
    NcclAsk ask = {c->op, m->size, m->nodes, nccl_size(c->op, m->size, (double)sent / times)};
    NcclWay way = nccl_choose(s->h, &ask);
    if (*formula) return times * way.time;
    *formula = arena_printf(a, "NCCL %s: %s + %s / %s = %s", nccl_way_text(&way, a),
                            time_text(way.latency, a), bytes_text((int64_t)ask.bytes, a),
                            amount(way.bandwidth, "B/s", a), time_text(way.time, a));
    if (times > 1)
        *formula =
            arena_printf(a, "%s, %.0f times: %s", *formula, times, time_text(times * way.time, a));
    return times * way.time;
}
/* The time of a group in which a rank sends `sent` bytes; done twice it takes twice the steps. */
static double ring_time(const Sim *s, const TraceCollective *c, const Meeting *m, int64_t sent,
                        const char **formula) {
    Arena *a = s->t->arena;
    int64_t rounds = row_of(c->op)->rounds, steps = rounds ? rounds * (m->size - 1) : 1;
    if (c->times > 1) steps *= c->times;
    bool inter = m->nodes > 1;
    double latency = inter ? s->h->inter_latency : s->h->intra_latency;
    double bandwidth = inter ? s->h->inter_bandwidth : s->h->intra_bandwidth;
    double time = (double)steps * latency + (double)sent / bandwidth;
    if (!*formula)
        *formula =
            arena_printf(a, "%lld × %s + %s / %s = %s", (long long)steps, time_text(latency, a),
                         bytes_text(sent, a), amount(bandwidth, "B/s", a), time_text(time, a));
    return time;
}
static double collective_time(Sim *s, const TraceCollective *c, const Meeting *m, int64_t sent,
                              const char **formula) {
    const char **said = said_of(
        s,
        (Said){.op = row_of(c->op), .groups = m->groups, .x = (double)sent, .y = (double)c->times});
    double time =
        nccl_models(s->h, c->op) ? nccl_time(s, c, m, sent, said) : ring_time(s, c, m, sent, said);
    *formula = *said;
    return time;
}

/* ---- who meets whom ---- */
static bool same_groups(const RankGroups *a, const RankGroups *b) {
    size_t in = (size_t)a->n_in * sizeof(int64_t), out = (size_t)a->n_out * sizeof(int64_t);
    return a->first == b->first && a->n_in == b->n_in && a->n_out == b->n_out &&
           memcmp(a->in_size, b->in_size, in) == 0 && memcmp(a->in_stride, b->in_stride, in) == 0 &&
           memcmp(a->out_size, b->out_size, out) == 0 &&
           memcmp(a->out_stride, b->out_stride, out) == 0;
}
static int find_root(const int *up, int i) {
    while (up[i] != i) i = up[i];
    return i;
}
/* Classes that share a group wait for each other, and so do those they share other groups with. */
static void meet_classes(Sim *s, Meeting *m, int64_t n_groups) {
    int64_t ranks = s->t->ranks;
    int *class_of = ARENA_ARRAY(s->scratch, int, ranks),
        *up = ARENA_ARRAY(s->scratch, int, s->n_classes);
    for (int64_t r = 0; r < ranks; r++) class_of[r] = -1;
    for (int c = 0; c < s->n_classes; c++) {
        up[c] = c;
        m->meets[c] = -1;
        int64_t rank;
        for (RankWalk w = {0}; rankset_next(&s->cls[c].ranks, &w, &rank);)
            if (rank < ranks) class_of[rank] = c;
    }
    for (int64_t g = 0; g < n_groups; g++) {
        int first = -1;
        for (int64_t i = 0; i < m->size; i++) {
            int64_t r = groups_member(m->groups, g, i);
            int c = r < ranks ? class_of[r] : -1;
            if (c < 0) continue;
            m->meets[c] = 0;
            if (first < 0) first = c;
            else up[find_root(up, c)] = find_root(up, first);
        }
    }
    for (int c = 0; c < s->n_classes; c++)
        if (m->meets[c] == 0) m->meets[c] = find_root(up, c);
}
/* Of `most` and the nodes of `node` ranks each that group i has members on; they are in order. */
static int64_t max_nodes(int64_t most, const RankGroups *g, int64_t i, int64_t node) {
    int64_t n = 0, last = -1;
    for (int64_t k = 0, size = groups_size(g); k < size; k++) {
        int64_t on = groups_member(g, i, k) / node;
        n += on != last;
        last = on;
    }
    return n > most ? n : most;
}
static const Meeting *meeting_of(Sim *s, const RankGroups *g) {
    for (int i = 0; i < s->n_meetings; i++)
        if (same_groups(s->meeting[i].groups, g)) return &s->meeting[i];
    Meeting *m = ARENA_PUSH(s->scratch, s->meeting, s->n_meetings, s->cap_meetings);
    int64_t n = groups_count(g), node = s->h->gpus_per_node;
    *m = (Meeting){
        .groups = g, .meets = ARENA_ARRAY(s->scratch, int, s->n_classes), .size = groups_size(g)};
    for (int64_t i = 0; i < n; i++) m->nodes = max_nodes(m->nodes, g, i, node);
    /* one class: all its ranks are alike, and meets[0] is 0 */
    if (s->n_classes > 1) meet_classes(s, m, n);
    return m;
}

/* ---- running one step ---- */
static int stream_of(Sim *s, Class *c, const char *axes) {
    for (int i = 0; i < c->n_streams; i++)
        if (strcmp(c->stream[i].axes, axes) == 0) return i;
    *ARENA_PUSH(s->scratch, c->stream, c->n_streams, c->cap_streams) = (Stream){axes, 0, -1};
    return c->n_streams - 1;
}
/* When the stream is free and `step` is ready, the later of both, and the event that decides it. */
static void wait_for(const Class *c, int step, double *when, int *cause) {
    if (step < 0 || c->maker[step] < 0 || c->ready[step] <= *when) return;
    *when = c->ready[step];
    *cause = c->maker[step];
}
static Event *add_event(Sim *s, Class *c, int stream, double start, double end, int cause) {
    Event *e = ARENA_PUSH(s->scratch, c->event, c->n_events, c->cap_events);
    *e = (Event){
        .e = {.ranks = c->ranks, .stream = c->stream[stream].axes, .start = start, .end = end},
        .cause = cause};
    c->stream[stream].free = end;
    c->stream[stream].last = c->n_events - 1;
    return e;
}
static void made(const Sim *s, Class *c, int step, double when, int event) {
    if (step < 0 || step >= s->n_steps) return;
    c->ready[step] = when;
    c->maker[step] = event;
}
static int known(const Sim *s, int step) { return step < s->n_steps ? step : -1; }

static void run_compute(Sim *s, Class *c, const TraceCompute *k) {
    if (k->ranks.n && !rankset_has(&k->ranks, c->rank)) return;
    TraceEvent of = {0};
    double start = c->stream[0].free, time = compute_time(s, k, &c->ranks, &of);
    int cause = c->stream[0].last;
    for (int i = 0; k->input_step && i < k->n_inputs; i++)
        wait_for(c, known(s, k->input_step[i]), &start, &cause);
    Event *e = add_event(s, c, 0, start, start + time, cause);
    e->e.step = k->step;
    e->e.kind = "compute";
    e->e.name = short_name(k->makes.of ? k->makes : (Subject){OF_ITSELF, k->module}, s->t->arena);
    e->e.formula = of.formula, e->e.work = of.work, e->e.moved = of.moved;
    made(s, c, k->step, start + time, c->n_events - 1);
}
/* A gather of parameters runs ahead no further than its record says: it waits until that kernel has
 * begun. */
static void wait_begun(const Class *c, int step, double *when, int *cause) {
    if (step < 0 || c->maker[step] < 0 || c->event[c->maker[step]].e.start <= *when) return;
    *when = c->event[c->maker[step]].e.start;
    *cause = c->event[c->maker[step]].cause;
}
/* The kernel before a collective that reads the same value, -1: there is none. A block that goes on
 * round a ring is sent while it is computed with: further ahead, a rank would hold more than two.
 */
static int read_before(const Sim *s, const TraceCollective *k) {
    const Trace *t = s->t;
    if (!row_of(k->op)->ahead || k->value_step < 0) return -1;
    for (int i = t->n_computes - 1; i >= 0; i--)
        for (int j = 0; t->computes[i].step < k->step && j < t->computes[i].n_inputs; j++)
            if (t->computes[i].input_step && t->computes[i].input_step[j] == k->value_step)
                return t->computes[i].step;
    return -1;
}
/* Results that are there as soon as what the step reads: nothing is sent. */
static void pass_on(Sim *s, int from, int step) {
    for (int i = 0; i < s->n_classes; i++)
        made(s, &s->cls[i], step, from < 0 ? 0 : s->cls[i].ready[from],
             from < 0 ? -1 : s->cls[i].maker[from]);
}
/* When a class comes to a collective, on which stream, and what let it. */
typedef struct {
    int stream, cause;
    double start;
} Arrival;
static Arrival arrive(Sim *s, Class *c, const TraceCollective *k, const char *axes) {
    Arrival x = {.stream = stream_of(s, c, axes)};
    x.start = c->stream[x.stream].free;
    x.cause = c->stream[x.stream].last;
    wait_for(c, known(s, k->value_step), &x.start, &x.cause);
    for (int i = 0; i < k->n_with_from; i++)
        wait_for(c, known(s, k->with_from[i]), &x.start, &x.cause);
    if (k->held) wait_begun(c, known(s, k->held->from), &x.start, &x.cause);
    wait_begun(c, known(s, read_before(s, k)), &x.start, &x.cause);
    return x;
}
/* "AG wq"; of an FSDP unit "AG layer 3 (9 tensors)". */
static const char *collective_name(const TraceCollective *k, Arena *a) {
    const char *code = row_of(k->op)->code;
    if (!k->n_with) return arena_printf(a, "%s %s", code, short_name(k->subject, a));
    if (k->layer < 0) return arena_printf(a, "%s root (%d tensors)", code, k->n_with + 1);
    return arena_printf(a, "%s layer %d (%d tensors)", code, k->layer, k->n_with + 1);
}
/* All classes together: those that meet end together, after the time of the largest among them. An
 * early one waits inside its collective, as on a real device. */
static void run_collective(Sim *s, const TraceCollective *k) {
    const Meeting *m = meeting_of(s, &k->groups);
    if (m->size < 2 || k->skipped) {
        pass_on(s, known(s, k->value_step), k->step);
        return;
    }
    Arena *a = s->t->arena;
    const char *axes = k->axes   ? k->axes
                       : k->axis ? k->axis
                                 : "other",
               *name = collective_name(k, a);
    const int64_t rows = cost_rows_sent(&s->rows, k);
    Arrival at[MAX_CLASSES];
    double last[MAX_CLASSES] = {0};
    int64_t sent[MAX_CLASSES] = {0};
    for (int i = 0; i < s->n_classes; i++) {
        int meets = m->meets[i];
        if (meets < 0) continue;
        at[i] = arrive(s, &s->cls[i], k, axes);
        int64_t own = rows >= 0 ? rows : collective_on(k, s->cls[i].rank).bytes_sent;
        last[meets] = fmax(last[meets], at[i].start);
        sent[meets] = own > sent[meets] ? own : sent[meets];
    }
    for (int i = 0; i < s->n_classes; i++) {
        if (m->meets[i] < 0) continue;
        const char *formula;
        double wait = last[m->meets[i]] - at[i].start,
               time = collective_time(s, k, m, sent[m->meets[i]], &formula);
        double end = last[m->meets[i]] + time;
        Event *e = add_event(s, &s->cls[i], at[i].stream, at[i].start, end, at[i].cause);
        e->e.step = k->step;
        e->e.kind = "collective";
        e->e.name = name;
        e->e.wait = wait;
        e->e.moved = (double)sent[m->meets[i]];
        e->e.formula = wait > 0 ? arena_printf(a, "%s, after %s of waiting for its slowest member",
                                               formula, time_text(wait, a))
                                : formula;
        made(s, &s->cls[i], k->step, end, s->cls[i].n_events - 1);
        for (int w = 0; w < k->n_with; w++)
            made(s, &s->cls[i], k->with[w], end, s->cls[i].n_events - 1);
    }
}
/* The step at which a collective joins its stream: a gather that runs ahead does so at the kernel
 * that it waits for, before what is sent between that kernel and the gather's own place in the
 * program. */
static int issued_at(const TraceCollective *k) {
    return k->held && k->held->from < k->step ? k->held->from : k->step;
}
static int by_issue(const void *x, const void *y) {
    const TraceCollective *a = *(const TraceCollective *const *)x,
                          *b = *(const TraceCollective *const *)y;
    int i = issued_at(a), j = issued_at(b);
    return i != j ? (i > j) - (i < j) : (a->step > b->step) - (a->step < b->step);
}
static const TraceCollective **issue_order(const Sim *s) {
    const Trace *t = s->t;
    const TraceCollective **order =
        ARENA_ARRAY(s->scratch, const TraceCollective *, t->n_collectives + 1);
    for (int i = 0; i < t->n_collectives; i++) order[i] = &t->collectives[i];
    qsort(order, (size_t)t->n_collectives, sizeof(const TraceCollective *), by_issue);
    return order;
}
/* The arrays are in the order of their steps; merged, that is the program. */
static void run_program(Sim *s) {
    const Trace *t = s->t;
    const TraceCollective **order = issue_order(s);
    int c = 0, k = 0, m = 0;
    while (c < t->n_computes || k < t->n_collectives || m < t->n_moves) {
        int sc = c < t->n_computes ? t->computes[c].step : INT32_MAX;
        int sk = k < t->n_collectives ? issued_at(order[k]) : INT32_MAX;
        int sm = m < t->n_moves ? t->moves[m].step : INT32_MAX;
        if (sc <= sk && sc <= sm && c < t->n_computes) {
            for (int i = 0; i < s->n_classes; i++) run_compute(s, &s->cls[i], &t->computes[c]);
            c++;
        } else if (sk <= sm && k < t->n_collectives) {
            run_collective(s, order[k++]);
        } else {
            pass_on(s, known(s, t->moves[m].value_step), t->moves[m].step);
            m++;
        }
    }
}

/* ---- exposed ---- */
/* Compute stood still from `from` until the event `e` (and before it, what let it start) had ended.
 * That is one stretch of an event, and ends with it. */
static void expose(Class *c, int e, double from) {
    while (e >= 0 && c->event[e].e.end > from) {
        TraceEvent *x = &c->event[e].e;
        double sends = x->start + x->wait, begin = fmax(x->start, from);
        x->exposed = x->end - fmax(sends, begin);
        x->wait_exposed = fmax(0, sends - begin);
        e = c->event[e].cause;
    }
}
static void find_exposed(Class *c) {
    double busy = 0, end = 0;
    int last = -1;
    for (int i = 0; i < c->n_events; i++) {
        const Event *e = &c->event[i];
        if (e->e.end > end) {
            end = e->e.end;
            last = i;
        }
        if (strcmp(e->e.kind, "compute") != 0) continue;
        if (e->e.start > busy) expose(c, e->cause, busy);
        busy = e->e.end;
    }
    if (end > busy) expose(c, last, busy); /* the last chain: nothing is computed after it */
}

/* ---- the whole ---- */
static int count_steps(const Trace *t) {
    int n = 0;
    for (int i = 0; i < t->n_computes; i++)
        n = t->computes[i].step >= n ? t->computes[i].step + 1 : n;
    for (int i = 0; i < t->n_collectives; i++)
        n = t->collectives[i].step >= n ? t->collectives[i].step + 1 : n;
    for (int i = 0; i < t->n_moves; i++) n = t->moves[i].step >= n ? t->moves[i].step + 1 : n;
    return n;
}
static void make_classes(Sim *s) {
    Trace *t = s->t;
    RankSet *part;
    s->n_parts = trace_parts(t, t->arena, &part);
    s->n_classes = s->n_parts < MAX_CLASSES ? s->n_parts : MAX_CLASSES;
    s->cls = ARENA_ARRAY(s->scratch, Class, s->n_classes);
    for (int i = 0; i < s->n_classes; i++) {
        Class *c = &s->cls[i];
        c->ranks = part[i];
        c->rank = rankset_first(&c->ranks);
        c->ready = ARENA_ARRAY(s->scratch, double, s->n_steps);
        c->maker = ARENA_ARRAY(s->scratch, int, s->n_steps);
        for (int k = 0; k < s->n_steps; k++) c->maker[k] = -1;
        stream_of(s, c, "compute");
    }
}
/* Where an event stands among those of all classes: at its step; one that ran ahead of another of
 * its class at that one's. *far: the last step of the class so far. */
static int place_in(const Event *e, int *far) {
    if (e->e.step > *far) *far = e->e.step;
    return *far;
}
/* Step by step, classes in order within a step. */
static void collect(Sim *s) {
    Trace *t = s->t;
    int *at = ARENA_ARRAY(s->scratch, int, s->n_steps + 1); /* where the next of a step goes */
    int n = 0;
    for (int i = 0; i < s->n_classes; i++)
        for (int k = 0, far = 0; k < s->cls[i].n_events; k++, n++)
            at[place_in(&s->cls[i].event[k], &far) + 1]++;
    for (int k = 0; k < s->n_steps; k++) at[k + 1] += at[k];
    t->events = ARENA_ARRAY(t->arena, TraceEvent, n);
    t->n_events = t->cap_events = n;
    for (int i = 0; i < s->n_classes; i++)
        for (int k = 0, far = 0; k < s->cls[i].n_events; k++)
            t->events[at[place_in(&s->cls[i].event[k], &far)]++] = s->cls[i].event[k].e;
}
/* "80 GB", "128 GiB": exact, because pictures draw a line at it. */
static const char *memory_words(int64_t bytes, Arena *a) {
    static const struct {
        const char *unit;
        int64_t bytes;
    } row[] = {{"GB", 1000000000}, {"GiB", 1 << 30}, {"MB", 1000000}, {"MiB", 1 << 20}, {"B", 1}};
    size_t i = 0;
    while (bytes % row[i].bytes) i++;
    return arena_printf(a, "%lld %s", (long long)(bytes / row[i].bytes), row[i].unit);
}
static const char *hardware_line(const Sim *s) {
    Arena *a = s->t->arena;
    const Hardware *h = s->h;
    const char *dtype = s->t->dtype ? s->t->dtype : "f32";
    Str line = str_new(a);
    str_addf(&line, "%s: %s %s, %s", h->name, amount(flop_rate(s->t, h), "FLOP/s", a), dtype,
             amount(h->memory_bandwidth, "B/s", a));
    if (h->memory > 0) str_addf(&line, ", %s memory", memory_words(h->memory, a));
    str_addf(&line, ", %s per kernel; ring steps of %s at %s", time_text(h->kernel_overhead, a),
             time_text(h->intra_latency, a), amount(h->intra_bandwidth, "B/s", a));
    if (h->nccl.channels)
        str_addf(&line, ", but what NCCL models by %lld channels of %s",
                 (long long)h->nccl.channels, amount(h->nccl.channel_bandwidth, "B/s", a));
    if (s->t->ranks > h->gpus_per_node)
        str_addf(&line, ", of %s at %s across nodes of %lld", time_text(h->inter_latency, a),
                 amount(h->inter_bandwidth, "B/s", a), (long long)h->gpus_per_node);
    str_add(&line, cost_rows_line(&s->rows, a));
    if (s->n_parts > MAX_CLASSES)
        str_addf(&line, "; first %d of %d classes of ranks", MAX_CLASSES, s->n_parts);
    return line.s;
}
void cost_simulate(Trace *t, const Hardware *h) {
    assert(h->gpus_per_node > 0 && h->memory_bandwidth > 0 && h->intra_bandwidth > 0);
    Sim s = {.t = t, .h = h, .scratch = arena_new(), .n_steps = count_steps(t)};
    s.said = recent_new(s.scratch, MAX_SAID, sizeof(Said));
    s.rows = cost_rows(t, s.n_steps, s.scratch);
    make_classes(&s);
    run_program(&s);
    for (int i = 0; i < s.n_classes; i++) find_exposed(&s.cls[i]);
    collect(&s);
    t->hardware = hardware_line(&s);
    t->node_ranks = h->gpus_per_node;
    t->links[0] = amount(h->intra_bandwidth, "B/s", t->arena);
    t->links[1] = amount(h->inter_bandwidth, "B/s", t->arena);
    t->flop_rate = flop_rate(t, h), t->memory_rate = h->memory_bandwidth;
    t->launch = h->kernel_overhead;
    t->link_rate[0] = h->intra_bandwidth, t->link_rate[1] = h->inter_bandwidth;
    arena_free(s.scratch);
}
