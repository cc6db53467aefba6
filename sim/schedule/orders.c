/* Orders in which micro-batches go one way through the ranks, once or in several rounds. */
#include "schedule/orders.h"

static int least(int a, int b) { return a < b ? a : b; }
static void put(Schedule *s, int rank, ActionKind k, int stage, int part) {
    schedule_add(s, rank, (Action){.kind = k, .stage = stage, .part = part});
}

void order_gpipe(Schedule *s, const ScheduleAsk *ask) {
    for (int r = 0; r < ask->ranks; r++) {
        for (int i = 0; i < ask->parts; i++) put(s, r, DO_F, r, i);
        for (int i = 0; i < ask->parts; i++) put(s, r, DO_B, r, i);
    }
}
/* w = min(p-1-r, m) forwards; then one forward, one backward; then what is left. */
void order_1f1b(Schedule *s, const ScheduleAsk *ask) {
    for (int r = 0; r < ask->ranks; r++) {
        int f = 0, b = 0, warm = least(ask->ranks - 1 - r, ask->parts);
        while (f < warm) put(s, r, DO_F, r, f++);
        while (f < ask->parts) {
            put(s, r, DO_F, r, f++);
            put(s, r, DO_B, r, b++);
        }
        while (b < ask->parts) put(s, r, DO_B, r, b++);
    }
}
/* The last chunk's backwards come first, the last micro-batch first. */
void order_looped_bfs(Schedule *s, const ScheduleAsk *ask) {
    for (int r = 0; r < ask->ranks; r++) {
        for (int c = 0; c < ask->chunks; c++)
            for (int i = 0; i < ask->parts; i++) put(s, r, DO_F, c * ask->ranks + r, i);
        for (int c = ask->chunks - 1; c >= 0; c--)
            for (int i = ask->parts - 1; i >= 0; i--) put(s, r, DO_B, c * ask->ranks + r, i);
    }
}
/* ZB-H1: a W as soon as more than r backwards are done without theirs; when no forward is left one
 * W after each backward, the rest at the end. */
void order_zb_h1(Schedule *s, const ScheduleAsk *ask) {
    for (int r = 0; r < ask->ranks; r++) {
        int f = 0, b = 0, w = 0, warm = least(ask->ranks - 1 - r, ask->parts);
        while (f < warm) put(s, r, DO_F, r, f++);
        while (f < ask->parts) {
            put(s, r, DO_F, r, f++);
            put(s, r, DO_I, r, b++);
            if (b - w > r) put(s, r, DO_W, r, w++);
        }
        while (b < ask->parts) {
            put(s, r, DO_I, r, b++);
            put(s, r, DO_W, r, w++);
        }
        while (w < ask->parts) put(s, r, DO_W, r, w++);
    }
}

/* ---- interleaved ---- */
/* Groups of N = m / max(1, m / p) micro-batches go through a rank's chunks, chunk by chunk; the
 * k-th forward of a rank is of chunk k / N mod v, backwards take the chunks the other way round. */
typedef struct {
    Schedule *s;
    int rank, p, v, group, total;  /* total: m v */
    int *next_f, *next_b, *next_w; /* per chunk: its next micro-batch */
    int backs, weights;            /* backwards and weight gradients so far */
    bool split;
} Interleaved;
static int chunk_of(const Interleaved *x, int k) { return k / x->group % x->v; }
static void forward(Interleaved *x, int k) {
    int c = chunk_of(x, k);
    put(x->s, x->rank, DO_F, c * x->p + x->rank, x->next_f[c]++);
}
static void backward(Interleaved *x) {
    int c = x->v - 1 - chunk_of(x, x->backs++);
    put(x->s, x->rank, x->split ? DO_I : DO_B, c * x->p + x->rank, x->next_b[c]++);
}
static void weight(Interleaved *x) {
    int c = x->v - 1 - chunk_of(x, x->weights++);
    put(x->s, x->rank, DO_W, c * x->p + x->rank, x->next_w[c]++);
}
/* `late`: so many backwards are done before the first weight gradient. */
static void interleaved_rank(Interleaved *x, int warm, int late) {
    int k = 0;
    while (k < warm) forward(x, k++);
    while (x->backs < x->total) {
        if (k < x->total) forward(x, k++);
        backward(x);
        if (x->split && x->backs > late) weight(x);
    }
    while (x->split && x->weights < x->total) weight(x);
}
static void interleaved(Schedule *s, const ScheduleAsk *ask, bool split) {
    int p = ask->ranks, v = ask->chunks, rounds = ask->parts / p > 0 ? ask->parts / p : 1;
    for (int r = 0; r < p; r++) {
        Interleaved x = {.s = s,
                         .rank = r,
                         .p = p,
                         .v = v,
                         .group = ask->parts / rounds,
                         .total = ask->parts * v,
                         .next_f = ARENA_ARRAY(s->arena, int, v),
                         .next_b = ARENA_ARRAY(s->arena, int, v),
                         .next_w = ARENA_ARRAY(s->arena, int, v),
                         .split = split};
        int ahead = (split ? 1 : 2) * (p - 1 - r) + (v - 1) * x.group;
        interleaved_rank(&x, least(ahead, x.total), r);
    }
}
void order_interleaved(Schedule *s, const ScheduleAsk *ask) { interleaved(s, ask, false); }
void order_interleaved_zb(Schedule *s, const ScheduleAsk *ask) { interleaved(s, ask, true); }
