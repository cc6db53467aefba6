/* Collectives step by step. See ring.h. Every cell follows from its chunk, its rank and the number
 * of steps. */
#include "render/furniture/ring.h"
#include "trace/trace_rows.h"
#include <math.h>
#include <string.h>

static int wrap(int i, int n) { return (i % n + n) % n; }

int ring_steps(RingKind kind, int n) {
    static const int rounds[RING_KINDS] = {
        [RING_GATHER] = 1, [RING_SCATTER] = 1, [RING_REDUCE] = 2, [RING_EXCHANGE] = 1};
    return kind == RING_SLICE || kind == RING_SHIFT ? n > 1 : rounds[kind] * (n - 1);
}

/* What rank `rank` has of chunk number i of the page at the start. */
static double number(const RingStory *s, int i, int rank) {
    if (!s->before) return NAN;
    return s->kind == RING_GATHER ? s->before[i] : s->before[(int64_t)i * s->n + rank];
}
/* The terms of ranks first, first + 1, ... added in that order, as the ring adds them. */
static double sum(const RingStory *s, int i, int first, int terms) {
    double v = number(s, i, first);
    for (int k = 1; k < terms; k++) {
        double x = number(s, i, wrap(first + k, s->n));
        v = !s->max ? v + x : x > v ? x : v;
    }
    return v;
}

/* Chunk c starts on rank c and goes right: after t steps it is on ranks c .. c+t. With a shift its
 * place is filled by the chunk of another rank. */
static RingCell gathered(const RingStory *s, int i, int rank, int t, int steps, double value) {
    int of = wrap(s->shown[i] - s->shift, s->n), q = wrap(rank - of, s->n);
    if (q > t) return (RingCell){0};
    return (RingCell){.held = true,
                      .done = true,
                      .fresh = t && q == t,
                      .sends = q == t && t < steps,
                      .value = value,
                      .first = of,
                      .terms = 1,
                      .astray = t == steps && of != s->shown[i]};
}
/* The sum of chunk c starts on rank c+1 and ends on rank c, with a shift so many ranks before; p is
 * a rank's place on that way. */
static RingCell summed(const RingStory *s, int i, int rank, int t) {
    int first = wrap(s->shown[i] + 1 - s->shift, s->n), p = wrap(rank - first, s->n),
        last = s->n - 1;
    bool on_way = p <= t;
    RingCell c = {.held = true, .first = on_way ? first : rank, .terms = on_way ? p + 1 : 1};
    c.value = sum(s, i, c.first, c.terms);
    c.stale = p < t;
    c.fresh = t && p == t;
    c.sends = p == t && t < last;
    c.done = p == t && t == last;
    c.astray = c.done && rank != s->shown[i];
    return c;
}
static RingCell reduced(const RingStory *s, int i, int rank, int t) {
    int half = s->n - 1;
    if (t < half) return summed(s, i, rank, t);
    RingCell sums = summed(s, i, rank, half);
    RingCell c = gathered(s, i, rank, t - half, half, sum(s, i, wrap(s->shown[i] + 1, s->n), s->n));
    if (!c.held) return sums;
    c.first = wrap(s->shown[i] + 1, s->n);
    c.terms = s->n;
    c.fresh |= t == half;
    return c;
}

/* In which step ranks a and b swap; of an odd n every step has idle ranks in every pairing, and all
 * is shown as the last step. */
static int meeting(int n, int a, int b) {
    return n % 2 && a != b ? n - 1 : (int)exchange_round(n, a, b);
}
static RingCell exchanged(const RingStory *s, int place, int rank, int t) {
    /* with a shift a rank gets what is meant for another: no pairs swap, all is the last step */
    int other = s->shown[place], for_rank = wrap(rank + s->shift, s->n), column = -1,
        when = for_rank == rank ? meeting(s->n, other, rank) : s->n - 1;
    bool arrived = when <= t;
    for (int i = 0; i < s->n_shown; i++)
        if (s->shown[i] == for_rank) column = i;
    RingCell c = {.held = true,
                  .first = arrived ? other : rank,
                  .to = arrived ? for_rank : other,
                  .terms = 1};
    c.value = !arrived ? number(s, place, rank) : column < 0 ? NAN : number(s, column, other);
    c.done = arrived;
    c.fresh = t && when == t;
    c.astray = arrived && for_rank != rank;
    c.sends = when == t + 1;
    return c;
}
static RingCell sliced(const RingStory *s, int i, int rank, int t) {
    bool own = s->shown[i] == rank;
    return (RingCell){.held = true,
                      .done = t && own,
                      .stale = t && !own,
                      .value = number(s, i, rank),
                      .first = s->shown[i],
                      .terms = 1};
}

/* Row i is the block that comes to rank i. */
static RingCell hopped(const RingStory *s, int i, int rank, int t) {
    int to = s->shown[i], from = wrap(to + (s->back ? 1 : -1), s->n);
    RingCell c = {.held = rank == (t ? to : from), .first = from, .to = to, .terms = 1};
    c.value = number(s, i, from);
    c.done = c.held;
    c.fresh = t && c.held;
    c.sends = !t && c.held;
    return c;
}

void ring_frame(Ring *r, const RingStory *s, int step) {
    memset(r, 0, sizeof *r);
    r->step = step;
    r->steps = ring_steps(s->kind, s->n);
    for (int i = 0; i < s->n_shown; i++)
        for (int k = 0; k < s->n_shown; k++) {
            int rank = s->shown[k];
            RingCell *c = &r->cell[i][k];
            if (s->kind == RING_GATHER)
                *c = gathered(s, i, rank, step, r->steps, number(s, i, s->shown[i]));
            if (s->kind == RING_SCATTER) *c = summed(s, i, rank, step);
            if (s->kind == RING_REDUCE) *c = reduced(s, i, rank, step);
            if (s->kind == RING_EXCHANGE) *c = exchanged(s, i, rank, step);
            if (s->kind == RING_SHIFT) *c = hopped(s, i, rank, step);
            if (s->kind == RING_SLICE) *c = sliced(s, i, rank, step);
        }
}
