/* Sends and receives between the actions of a schedule, as PyTorch's _add_send_recv puts them: the
 * sender sends as soon as it has the result, and at that moment puts the receive into the list of
 * the other rank. So no rank waits for a receive that stands behind its own use. */
#include "schedule/schedule.h"
#include <string.h>

typedef struct {
    const Schedule *s;
    ActionList *out; /* per rank */
    int *at;         /* per rank: the next of its actions */
    bool *here[2];   /* per stage and micro-batch: is its input there, its output's gradient? */
} Adder;
static int cell(const Adder *x, int stage, int part) { return stage * x->s->parts + part; }
static bool in_range(const Adder *x, const Action *a) {
    return a->stage >= 0 && a->stage < x->s->stages && a->part >= 0 && a->part < x->s->parts;
}
static bool is_ready(const Adder *x, const Action *a) {
    if (!in_range(x, a)) return true; /* told by schedule_check */
    if (a->kind == DO_F) return a->stage == 0 || x->here[0][cell(x, a->stage, a->part)];
    if (a->kind == DO_B || a->kind == DO_I)
        return a->stage == x->s->stages - 1 || x->here[1][cell(x, a->stage, a->part)];
    return true;
}
static void push(Adder *x, int rank, Action a) {
    ActionList *l = &x->out[rank];
    *ARENA_PUSH(x->s->arena, l->a, l->n, l->cap) = a;
}
/* What others get of an action that was done. */
static void hand_on(Adder *x, const Action *a) {
    bool forward = a->kind == DO_F, backward = a->kind == DO_B || a->kind == DO_I;
    int to = a->stage + (forward ? 1 : -1);
    if (!in_range(x, a) || !(forward || backward) || to < 0 || to >= x->s->stages) return;
    int from_rank = schedule_rank_of(x->s, a->stage, a->part),
        to_rank = schedule_rank_of(x->s, to, a->part);
    x->here[backward][cell(x, to, a->part)] = true;
    if (from_rank == to_rank) return;
    Action send = {
        .kind = forward ? DO_SEND_F : DO_SEND_B, .stage = a->stage, .part = a->part, .loc = a->loc};
    Action receive = send;
    receive.kind = forward ? DO_RECV_F : DO_RECV_B;
    receive.stage = to;
    push(x, from_rank, send);
    push(x, to_rank, receive);
}
/* One action of a rank, or two that run together. False: its input is not there yet. */
static bool advance(Adder *x, int rank) {
    const ActionList *l = &x->s->rank[rank];
    int n = 1, i = x->at[rank];
    if (i == l->n) return false;
    while (l->a[i + n - 1].joined && i + n < l->n) n++;
    for (int k = 0; k < n; k++)
        if (!is_ready(x, &l->a[i + k])) return false;
    for (int k = 0; k < n; k++) push(x, rank, l->a[i + k]);
    for (int k = 0; k < n; k++) hand_on(x, &l->a[i + k]);
    x->at[rank] += n;
    return true;
}
bool schedule_add_p2p(Schedule *s) {
    Arena *tmp = arena_new();
    Adder x = {.s = s,
               .out = ARENA_ARRAY(s->arena, ActionList, s->ranks),
               .at = ARENA_ARRAY(tmp, int, s->ranks)};
    for (int k = 0; k < 2; k++) x.here[k] = ARENA_ARRAY(tmp, bool, s->stages * s->parts);
    bool moved = true, all = true;
    while (moved) {
        moved = false;
        for (int r = 0; r < s->ranks; r++) moved |= advance(&x, r);
    }
    for (int r = 0; r < s->ranks; r++) {
        all &= x.at[r] == s->rank[r].n;
        while (x.at[r] < s->rank[r].n) push(&x, r, s->rank[r].a[x.at[r]++]);
    }
    s->rank = x.out;
    arena_free(tmp);
    return all;
}
