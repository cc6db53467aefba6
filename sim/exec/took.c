/* Times and bytes of a real run. See took.h. */
#include "exec/took.h"
#include "base/clock.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct Tooks {
    Engine *engine;
    const Program *p;
    int steps;
    bool clocked; /* by the device's clock */
    Took now;
    int64_t *sent; /* [steps + 1][ranks]; the last row is that of the step that is run */
    Took *step;    /* [steps] */
    bool *done;    /* has the step been run? */
};

Tooks *took_new(Engine *engine, const Program *p) {
    Tooks *t = base_malloc(sizeof *t);
    size_t steps = (size_t)p->ns + 1, row = base_mul((size_t)engine->ranks, sizeof(int64_t)),
           all = base_mul(steps, row);
    *t = (Tooks){.engine = engine, .p = p, .steps = p->ns};
    t->sent = memset(base_malloc(all), 0, all);
    t->step = memset(base_malloc(base_mul(steps, sizeof(Took))), 0, base_mul(steps, sizeof(Took)));
    t->done = memset(base_malloc(steps), 0, steps);
    for (int i = 0; i < t->steps; i++) t->step[i].sent = t->sent + (int64_t)i * engine->ranks;
    t->now.sent = t->sent + (int64_t)t->steps * engine->ranks;
    return t;
}
void took_free(Tooks *t) {
    if (!t) return;
    free(t->sent);
    free(t->step);
    free(t->done);
    free(t);
}
Took *took_now(Tooks *t) { return &t->now; }
void took_moves(Tooks *t) {
    t->now.given = 0;
    memset(t->now.sent, 0, (size_t)t->engine->ranks * sizeof *t->now.sent);
}
void took_begin(Tooks *t) {
    Took *now = &t->now;
    t->engine->least(t->engine, 0);
    now->wait = 0;
    took_moves(t);
    now->begin = clock_seconds();
}
void took_end(Tooks *t) { t->now.seconds = clock_seconds() - t->now.begin; }
void took_step(Tooks *t, int step) {
    int64_t *sent = t->step[step].sent;
    memcpy(sent, t->now.sent, (size_t)t->engine->ranks * sizeof *sent);
    t->step[step] = t->now;
    t->step[step].sent = sent;
    t->done[step] = true;
}
void took_clocked(Tooks *t, Device *dev) {
    double begin, end = 0;
    t->clocked = true;
    for (int i = 0; i < t->steps; i++) {
        if (!dev->took(dev, i, &begin, &end)) begin = end; /* nothing was done for it */
        t->step[i].begin = begin;
        t->step[i].seconds = end - begin;
        t->step[i].wait = 0;
    }
}

/* ---- the records ---- */
/* What a rank says of one step; its bytes per rank follow behind all of these. */
typedef struct {
    double begin, seconds, wait;
    int64_t given, done;
} Said;
static Said said_of(const Tooks *t, int step) {
    const Took *x = &t->step[step];
    return (Said){x->begin, x->seconds, x->wait, x->given, t->done[step]};
}
static TraceMeasured measured(const Tooks *t, Trace *trace, const Said *s, const int64_t *sent) {
    TraceMeasured m = {.wait = s->wait, .wire_bytes = s->given};
    int64_t ranks = t->engine->ranks, all = 0;
    for (int64_t r = 0; r < ranks; r++) all += sent[r];
    m.wire_bytes += all;
    if (!all) return m;
    m.n_sent = ranks;
    m.sent = ARENA_ARRAY(trace->arena, double, ranks);
    for (int64_t r = 0; r < ranks; r++) m.sent[r] = (double)sent[r];
    return m;
}
/* Seconds for which a rank was in a collective before the last of its group was. */
static double until_last(const Tooks *t, const Said *said, int step, int64_t rank) {
    const Step *s = &t->p->step[step];
    Act a = act_of(s);
    const Said *own = &said[rank * t->steps + step];
    bool joint = s->kind == ST_MOVE && a.axes.n && a.kind != MOVE_SHIFT && a.kind != MOVE_SEND;
    if (!joint || !mesh_takes_part(t->p->mesh, &a.axes, rank)) return 0;
    double last = own->begin;
    for (int64_t i = 0, n = mesh_size(t->p->mesh, &a.axes); i < n; i++) {
        const Said *x = &said[mesh_member(t->p->mesh, &a.axes, rank, i) * t->steps + step];
        last = x->begin > last ? x->begin : last;
    }
    return last < own->begin + own->seconds ? last - own->begin : own->seconds;
}
/* When the first step began, by the devices' clocks. */
static double first_of(const Tooks *t, const Said *said) {
    double first = INFINITY;
    for (int64_t i = 0; i < t->engine->ranks * t->steps; i++)
        if (said[i].done && said[i].begin < first) first = said[i].begin;
    return first;
}
/* Each step begins when the slowest rank has ended the one before; or when the clocks say. */
static void add_records(const Tooks *t, Trace *trace, const Said *said, const int64_t *sent) {
    int64_t ranks = t->engine->ranks;
    double begin = 0, first = t->clocked ? first_of(t, said) : 0;
    for (int i = 0; i < t->steps; i++) {
        double longest = 0;
        if (!t->done[i]) continue;
        for (int64_t r = 0; r < ranks; r++) {
            const Said *s = &said[r * t->steps + i];
            TraceMeasured *m =
                ARENA_PUSH(trace->arena, trace->measured, trace->n_measured, trace->cap_measured);
            *m = measured(t, trace, s, sent + (r * t->steps + i) * ranks);
            m->step = i;
            m->rank = r;
            m->start = t->clocked ? s->begin - first : begin;
            m->end = m->start + s->seconds;
            if (t->clocked) m->wait = until_last(t, said, i, r);
            if (s->seconds > longest) longest = s->seconds;
        }
        begin += longest;
    }
}
void took_record(Tooks *t, Trace *trace) {
    Engine *e = t->engine;
    size_t ranks = e->rank ? 1 : (size_t)e->ranks, n = base_mul((size_t)t->steps + 1, ranks);
    int64_t said_bytes = t->steps * (int64_t)sizeof(Said),
            sent_bytes = t->steps * e->ranks * (int64_t)sizeof(int64_t);
    Said *said = base_malloc(base_mul(n, sizeof *said));
    int64_t *sent = base_malloc(base_mul(n, (size_t)e->ranks * sizeof *sent));
    for (int i = 0; i < t->steps; i++) said[i] = said_of(t, i);
    memcpy(sent, t->sent, (size_t)sent_bytes);
    EngineItem *from = base_malloc(base_mul(2 * ranks, sizeof *from)),
               to[2] = {{0, said_bytes, said}, {0, sent_bytes, sent}};
    for (size_t r = 1; r < ranks; r++) {
        from[2 * r - 2] = (EngineItem){(int64_t)r, said_bytes, said + (int64_t)r * t->steps};
        from[2 * r - 1] =
            (EngineItem){(int64_t)r, sent_bytes, sent + (int64_t)r * t->steps * e->ranks};
    }
    if (e->rank) e->tell(e, to, 2, NULL, 0);
    else e->tell(e, NULL, 0, from, 2 * (int)ranks - 2);
    if (e->rank == 0) add_records(t, trace, said, sent);
    free(from);
    free(said);
    free(sent);
}
