/* Times and bytes of a real run. See took.h. */
#include "exec/took.h"
#include "base/clock.h"
#include <stdlib.h>
#include <string.h>

struct Tooks {
    Engine *engine;
    int steps;
    Took now;
    int64_t *sent; /* [steps + 1][ranks]; the last row is that of the step that is run */
    Took *step;    /* [steps] */
    bool *done;    /* has the step been run? */
};

Tooks *took_new(Engine *engine, const Program *p) {
    Tooks *t = base_malloc(sizeof *t);
    size_t steps = (size_t)p->ns + 1, row = base_mul((size_t)engine->ranks, sizeof(int64_t)),
           all = base_mul(steps, row);
    *t = (Tooks){.engine = engine, .steps = p->ns};
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

/* ---- the records ---- */
/* What a rank says of one step; its bytes per rank follow behind all of these. */
typedef struct {
    double seconds, wait;
    int64_t given, done;
} Said;
static Said said_of(const Tooks *t, int step) {
    const Took *x = &t->step[step];
    return (Said){x->seconds, x->wait, x->given, t->done[step]};
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
/* Each step begins when the slowest rank has ended the one before. */
static void add_records(const Tooks *t, Trace *trace, const Said *said, const int64_t *sent) {
    int64_t ranks = t->engine->ranks;
    double begin = 0;
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
            m->start = begin;
            m->end = begin + s->seconds;
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
