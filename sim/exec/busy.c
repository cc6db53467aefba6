/* Times by the clock of a device. See busy.h. */
#include "exec/busy.h"

struct Busy {
    int steps;
    int64_t ranks;
    double *seconds; /* [step][rank]; below 0: not made there */
};
Busy *busy_new(Arena *arena, const Exec *e) {
    if (!e->dev->busy) return NULL;
    Busy *b = ARENA_NEW(arena, Busy);
    *b = (Busy){.steps = e->p->ns, .ranks = e->p->mesh->nranks};
    b->seconds = ARENA_ARRAY(arena, double, b->steps * b->ranks + 1);
    for (int64_t i = 0; i < b->steps * b->ranks; i++) b->seconds[i] = -1;
    return b;
}
void busy_step(Busy *b, const Exec *e, const Step *s) {
    for (int64_t r = 0; r < b->ranks; r++) {
        const Local *l = exec_local(e, s->out, r);
        if (l) b->seconds[s->id * b->ranks + r] = l->seconds;
    }
}
void busy_record(const Busy *b, Trace *t) {
    double begin = 0;
    for (int i = 0; i < b->steps; i++) {
        double longest = 0;
        for (int64_t r = 0; r < b->ranks; r++) {
            double took = b->seconds[i * b->ranks + r];
            if (took < 0) continue;
            *ARENA_PUSH(t->arena, t->measured, t->n_measured, t->cap_measured) =
                (TraceMeasured){.step = i, .rank = r, .start = begin, .end = begin + took};
            if (took > longest) longest = took;
        }
        begin += longest;
    }
}
