/* Failures, followed through the records of a run. See follow.h. */
#include "render/errors/follow.h"
#include "base/text.h"
#include <string.h>

/* An input or parameter at rest that is wrong on some ranks. */
typedef struct {
    const char *name;
    uint8_t *on; /* [wide] */
} Source;

typedef struct {
    int compute, n_computes; /* first record of the step, and how many (one per rank class) */
    int coll, move;          /* -1: none */
} StepAt;

struct Follow {
    const Trace *t;
    Arena *a;
    int n, at;    /* steps; the last one that was followed in this round */
    int64_t wide; /* ranks, or 1 if they are not told apart */
    StepAt *step; /* [n] */
    uint8_t *in;  /* [n][wide]: reads something wrong */
    uint8_t *out; /* [n][wide]: so, or is wrong itself */
    Source *source;
    int n_sources, cap_sources;
    const uint8_t *now; /* of the check at hand; NULL: nothing wrong is read */
};

enum { MOST_FLAGS = 1 << 25 };

static int last_step(const Trace *t) {
    int last = -1;
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].step > last) last = t->computes[i].step;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->step > last) last = c->step;
        for (int k = 0; k < c->n_with; k++)
            if (c->with[k] > last) last = c->with[k];
    }
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].step > last) last = t->moves[i].step;
    return last;
}
static void find_steps(Follow *f) {
    const Trace *t = f->t;
    for (int s = 0; s < f->n; s++) f->step[s] = (StepAt){.coll = -1, .move = -1};
    for (int i = t->n_computes - 1; i >= 0; i--) {
        int s = t->computes[i].step;
        if (s >= 0) f->step[s].compute = i, f->step[s].n_computes++;
    }
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->step >= 0) f->step[c->step].coll = i;
        for (int k = 0; k < c->n_with; k++)
            if (c->with[k] >= 0) f->step[c->with[k]].coll = i;
    }
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].step >= 0) f->step[t->moves[i].step].move = i;
}

Follow *follow_new(Arena *a, const Trace *t) {
    Follow *f = ARENA_NEW(a, Follow);
    *f = (Follow){.t = t, .a = a, .at = -1, .n = last_step(t) + 1};
    f->wide = f->n > 0 && t->ranks > MOST_FLAGS / f->n ? 1 : t->ranks;
    f->step = ARENA_ARRAY(a, StepAt, f->n + 1);
    f->in = ARENA_ARRAY(a, uint8_t, f->n * f->wide + 1);
    f->out = ARENA_ARRAY(a, uint8_t, f->n * f->wide + 1);
    memset(f->in, 0, (size_t)(f->n * f->wide));
    memset(f->out, 0, (size_t)(f->n * f->wide));
    find_steps(f);
    return f;
}

static void raise_flag(const Follow *f, uint8_t *flags, int64_t rank) {
    if (rank >= 0 && rank < f->t->ranks) flags[f->wide == 1 ? 0 : rank] = 1;
}
static bool flag(const Follow *f, const uint8_t *flags, int64_t rank) {
    return flags && rank >= 0 && rank < f->t->ranks && flags[f->wide == 1 ? 0 : rank];
}

/* Sources have a name in the checkpoint's scheme and one in the plan's. */
static bool same_name(const Trace *t, const char *a, const char *b) {
    const TraceParam *p = trace_param(t, a);
    return !strcmp(a, b) || (p && p == trace_param(t, b));
}
static uint8_t *source_flags(Follow *f, const char *name, bool make) {
    for (int i = 0; name && i < f->n_sources; i++)
        if (same_name(f->t, f->source[i].name, name)) return f->source[i].on;
    if (!make) return NULL;
    Source *s = ARENA_PUSH(f->a, f->source, f->n_sources, f->cap_sources);
    *s = (Source){name, ARENA_ARRAY(f->a, uint8_t, f->wide)};
    memset(s->on, 0, (size_t)f->wide);
    return s->on;
}
/* Flags of what a step reads; NULL: nothing of it is wrong. */
static const uint8_t *read_flags(Follow *f, const char *name, int step) {
    if (step < 0) return source_flags(f, name, false);
    return step < f->n ? f->out + step * f->wide : NULL;
}

/* What a step reads that travels with another's collective and has no record of its own: the last
 * value of its name before it. */
static const uint8_t *read_with(Follow *f, int step) {
    const Trace *t = f->t;
    const char *name = NULL;
    int from = -1;
    for (int i = 0; i < t->n_values && !name; i++)
        if (t->values[i].step == step) name = t->values[i].shape.name;
    for (int i = 0; i < t->n_values && name; i++)
        if (t->values[i].step < step && t->values[i].step > from &&
            !strcmp(t->values[i].shape.name, name))
            from = t->values[i].step;
    return read_flags(f, name, from);
}

static void follow_compute(Follow *f, const TraceCompute *c, uint8_t *in) {
    for (int i = 0; i < c->n_inputs; i++) {
        const uint8_t *read = read_flags(f, c->inputs[i], c->input_step ? c->input_step[i] : -1);
        int64_t rank;
        if (!read) continue;
        for (RankWalk w = {0}; rankset_next(&c->ranks, &w, &rank);)
            if (flag(f, read, rank)) raise_flag(f, in, rank);
    }
}
/* One wrong member spoils the group: each other one is sent something of it. */
static void follow_collective(Follow *f, const TraceCollective *c, int step, uint8_t *in) {
    const uint8_t *read =
        step == c->step ? read_flags(f, c->value, c->value_step) : read_with(f, step);
    int64_t size = groups_size(&c->groups);
    for (int64_t g = 0; read && g < groups_count(&c->groups); g++) {
        bool any = false;
        for (int64_t i = 0; i < size && !any; i++)
            any = flag(f, read, groups_member(&c->groups, g, i));
        for (int64_t i = 0; i < size && any; i++)
            raise_flag(f, in, groups_member(&c->groups, g, i));
    }
}
static void follow_step(Follow *f, int s) {
    const StepAt *p = &f->step[s];
    uint8_t *in = f->in + s * f->wide;
    for (int i = p->compute, left = p->n_computes; left > 0; i++)
        if (f->t->computes[i].step == s) follow_compute(f, &f->t->computes[i], in), left--;
    if (p->coll >= 0) follow_collective(f, &f->t->collectives[p->coll], s, in);
    const TraceLocalMove *m = p->move >= 0 ? &f->t->moves[p->move] : NULL;
    const uint8_t *read = m ? read_flags(f, m->value, m->value_step) : NULL;
    if (read) memcpy(in, read, (size_t)f->wide);
    for (int64_t r = 0; r < f->wide; r++) f->out[s * f->wide + r] |= in[r];
}

/* What the optimizer makes of a parameter or of its state, "w.next", and what is then sent of it:
 * the next training step starts from it. */
static void update_sources(Follow *f) {
    for (int i = 0; i < f->t->n_values; i++) {
        const TraceValue *v = &f->t->values[i];
        const size_t n = v->shape.name ? text_before(v->shape.name, ".next") : 0;
        if (!n || v->step < 0 || v->step >= f->n) continue;
        const uint8_t *on = f->out + v->step * f->wide;
        if (!memchr(on, 1, (size_t)f->wide)) continue;
        uint8_t *to = source_flags(f, arena_printf(f->a, "%.*s", (int)n, v->shape.name), true);
        for (int64_t r = 0; r < f->wide; r++) to[r] |= on[r];
    }
}
/* The program runs again, for the next micro-batch or training step. */
static void next_round(Follow *f) {
    update_sources(f);
    memset(f->in, 0, (size_t)(f->n * f->wide));
    memset(f->out, 0, (size_t)(f->n * f->wide));
    f->at = -1;
}

void follow_check(Follow *f, const TraceCheck *k) {
    f->now = NULL;
    if (k->level == LEVEL_STRUCTURE || k->step >= f->n)
        return; /* of the program, not of a number */
    if (k->step < f->at) next_round(f);
    while (f->at < k->step) follow_step(f, ++f->at);
    f->now = k->step >= 0 ? f->in + k->step * f->wide : source_flags(f, k->value, false);
    if (!k->verdict || strcmp(k->verdict, "FAIL")) return;
    uint8_t *out = k->step >= 0 ? f->out + k->step * f->wide : source_flags(f, k->value, true);
    int64_t rank;
    for (RankWalk w = {0}; rankset_next(&k->ranks, &w, &rank);) raise_flag(f, out, rank);
}
bool follow_anywhere(const Follow *f) { return f->now && memchr(f->now, 1, (size_t)f->wide); }
bool follow_wrong(const Follow *f, int64_t rank) { return flag(f, f->now, rank); }
