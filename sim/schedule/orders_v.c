/* Orders in which micro-batches pass each rank twice or from both ends: V placements and DualPipe.
 */
#include "schedule/orders.h"

/* A rank with two kinds of work: chunks of a V (0: on the way down, 1: on the way back), or
 * DualPipe's directions (0: its own). */
typedef struct {
    Schedule *s;
    int rank;
    int stage[2], first[2]; /* the stage of each kind and its first micro-batch */
    int f[2], b[2], w[2];   /* done so far */
    int owed, cap, taken;   /* backwards whose weight gradients wait, first in first out */
    Action *wait;
} Two;
static Action action(const Two *x, ActionKind k, int c, int part) {
    return (Action){.kind = k, .stage = x->stage[c], .part = x->first[c] + part};
}
static void forward(Two *x, int c) { schedule_add(x->s, x->rank, action(x, DO_F, c, x->f[c]++)); }
static void whole(Two *x, int c) { schedule_add(x->s, x->rank, action(x, DO_B, c, x->b[c]++)); }
/* Only the gradient of the input; its weights wait. */
static void input(Two *x, int c) {
    Action w = action(x, DO_W, c, x->b[c]);
    schedule_add(x->s, x->rank, action(x, DO_I, c, x->b[c]++));
    *ARENA_PUSH(x->s->arena, x->wait, x->owed, x->cap) = w;
}
static void weight(Two *x) { schedule_add(x->s, x->rank, x->wait[x->taken++]); }
/* A forward of one kind together with a backward of the other. */
static void both(Two *x, int f, int b) {
    Action a = action(x, DO_F, f, x->f[f]++);
    a.joined = true;
    schedule_add(x->s, x->rank, a);
    whole(x, b);
}

/* ---- ZB-V ---- */
static void input_and_weight(Two *x, int c) {
    schedule_add(x->s, x->rank, action(x, DO_I, c, x->b[c]++));
    schedule_add(x->s, x->rank, action(x, DO_W, c, x->w[c]++));
}
static void only_weight(Two *x, int c) {
    schedule_add(x->s, x->rank, action(x, DO_W, c, x->w[c]++));
}
static void only_input(Two *x, int c) {
    schedule_add(x->s, x->rank, action(x, DO_I, c, x->b[c]++));
}
static void zb_v_rank(Two *x, int p, int m) {
    int r = x->rank;
    for (int i = 0; i < 2 * (p - r) - 1; i++) forward(x, 0);
    for (int i = 0; i < r; i++) forward(x, 1), forward(x, 0);
    for (int i = 0; i < p - r; i++) forward(x, 1), input_and_weight(x, 1);
    while (x->f[1] < x->f[0] || x->f[0] < m) {
        if (x->f[0] < m) forward(x, 0);
        input_and_weight(x, 0);
        forward(x, 1);
        input_and_weight(x, 1);
    }
    for (int i = 0; i < r; i++) only_input(x, 0), only_input(x, 1);
    for (int i = 0; i < p - r; i++) only_input(x, 0), only_weight(x, 0);
    while (x->w[1] < x->b[1]) only_weight(x, 1);
    while (x->w[0] < x->b[0]) only_weight(x, 0);
}
/* Made for at least 2p-1 micro-batches; those that are not there are left out again. */
void order_zb_v(Schedule *s, const ScheduleAsk *ask) {
    int p = ask->ranks, m = ask->parts > 2 * p - 1 ? ask->parts : 2 * p - 1;
    for (int r = 0; r < p; r++) {
        Two x = {.s = s, .rank = r, .stage = {r, 2 * p - 1 - r}};
        zb_v_rank(&x, p, m);
        ActionList *l = &s->rank[r];
        int keep = 0;
        for (int i = 0; i < l->n; i++)
            if (l->a[i].part < ask->parts) l->a[keep++] = l->a[i];
        l->n = keep;
    }
}

/* ---- DualPipe ---- */
/* The eight steps of DualPipe. `ahead`: ranks between this one and the middle; `behind`: h + 1, so
 * many ranks from the end to this one; m micro-batches of kind 0, as many of kind 1. */
static void dualpipe_rank(Two *x, int ahead, int behind, int m) {
    int h = behind - 1;
    for (int i = 0; i < 2 * ahead; i++) forward(x, 0);
    for (int i = 0; i < behind; i++) forward(x, 0), forward(x, 1);
    for (int i = 0; i < ahead; i++) input(x, 1), weight(x), forward(x, 1);
    for (int i = 0; i < m - 2 * (ahead + behind) + h + 1; i++) {
        if (i == 0 && !ahead) forward(x, 0), whole(x, 1); /* the turn: nothing to run along */
        else both(x, 0, 1);
        both(x, 1, 0);
    }
    for (int i = 0; i < ahead; i++) whole(x, 1), both(x, 1, 0);
    bool split = false;
    for (int i = 0; i < behind; i++) {
        if (i == behind / 2 && h % 2 == 1) split = true;
        if (split) input(x, 1);
        else whole(x, 1);
        if (i == behind / 2 && h % 2 == 0) split = true;
        if (split) input(x, 0);
        else whole(x, 0);
    }
    for (int i = 0; i < ahead; i++) weight(x), input(x, 0);
    for (int i = 0; i < behind; i++) weight(x);
}
void order_dualpipe_v(Schedule *s, const ScheduleAsk *ask) {
    int p = ask->ranks;
    for (int r = 0; r < p; r++) {
        Two x = {.s = s, .rank = r, .stage = {r, 2 * p - 1 - r}};
        dualpipe_rank(&x, p - 1 - r, r + 1, ask->parts);
    }
}
/* Rank r has stage r of the first half of the micro-batches and stage p-1-r of the second; ranks of
 * the second half take the two the other way round. */
void order_dualpipe(Schedule *s, const ScheduleAsk *ask) {
    int p = ask->ranks, half = ask->parts / 2;
    for (int r = 0; r < p; r++) {
        bool late = r >= p / 2;
        int h = late ? p - 1 - r : r;
        Two x = {.s = s,
                 .rank = r,
                 .stage = {late ? p - 1 - r : r, late ? r : p - 1 - r},
                 .first = {late ? half : 0, late ? 0 : half}};
        dualpipe_rank(&x, p / 2 - 1 - h, h + 1, half);
    }
}
