/* See play.h. The rank whose next action can begin earliest goes on; ties are the lowest rank's. */
#include "schedule/play.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* Messages from one rank to another, of one direction: they are received in the order in which they
 * are sent. */
typedef struct {
    int sent, received, cap_sent, cap_received;
    int *send, *receive; /* cells (stage of the sender, micro-batch), in order */
} Channel;
typedef struct {
    Play *p;
    const PlayTimes *t;
    Arena *arena, *tmp;
    int *at;      /* per rank */
    double *free; /* per rank: end of what it computed last */
    double
        *done[4]; /* per kind that computes and (stage, micro-batch): its end; below 0: not done */
    double *sent[2];  /* per direction: when the message leaves */
    bool *posted[2];  /* is its receive posted? */
    Channel *channel; /* [from][to][direction] */
    int *live;        /* per rank */
    double *next;     /* per rank: when its next action can begin, as far as looked at */
    bool *look;       /* per rank: something has come since that it may have waited for */
    PlayBlocked *why; /* what is waited for is said here: only where all stand still, it takes
                         long; else NULL */
} Player;

static int cell(const Player *x, int stage, int part) { return stage * x->p->s->parts + part; }
static Channel *channel_of(const Player *x, int from, int to, int backward) {
    return &x->channel[(from * x->p->s->ranks + to) * 2 + backward];
}
static bool is_backward(ActionKind k) { return k != DO_F && k != DO_SEND_F && k != DO_RECV_F; }
static bool is_send(ActionKind k) { return k == DO_SEND_F || k == DO_SEND_B; }
/* The stage at the other end. */
static int other_stage(const Action *a) {
    bool up = a->kind == DO_SEND_F || a->kind == DO_RECV_B || a->kind == DO_B || a->kind == DO_I;
    return a->stage + (up ? 1 : -1);
}
static bool is_action(const Action *a, const Action *b) {
    return a->kind == b->kind && a->stage == b->stage && a->part == b->part;
}
/* Does the rank's list have it, at or behind where the rank is? */
static bool comes_later(const Player *x, ActionKind k, int stage, int part) {
    int rank = schedule_rank_of(x->p->s, stage, part);
    const ActionList *l = &x->p->s->rank[rank];
    const Action want = {.kind = k, .stage = stage, .part = part};
    for (int i = x->at[rank]; i < l->n; i++)
        if (is_action(&l->a[i], &want)) return true;
    return false;
}
/* The half that makes the gradient of a stage's input: of a list that has them apart, I. */
static ActionKind maker_of(const Player *x, int stage, int part) {
    return x->why && comes_later(x, DO_I, stage, part) ? DO_I : DO_B;
}
static const char *stands_before(const Player *x, int rank) {
    const ActionList *l = &x->p->s->rank[rank];
    return action_text(&l->a[x->at[rank]], x->arena);
}
/* Of an action that is in the rank's list, at or behind where the rank is. */
static void still_to_come(const Player *x, const Action *want, const char *text, int rank) {
    const ActionList *l = &x->p->s->rank[rank];
    const Action *at = &l->a[x->at[rank]];
    bool next = is_action(at, want);
    x->why->wait = rank == x->why->rank ? WAIT_OWN : next && !at->joined ? WAIT_NEXT : WAIT_OTHER;
    x->why->waits_for = arena_printf(x->arena, "%s on rank %d, which %s", text, rank,
                                     next ? "waits itself" : "it has not come to");
    x->why->fix = next && at->joined
                      ? arena_printf(x->arena, "let %s run apart from %s in the list of rank %d",
                                     text, action_text(at + 1, x->arena), rank)
                      : arena_printf(x->arena, "put %s before %s in the list of rank %d", text,
                                     action_text(at, x->arena), rank);
}
/* The action `k` of the same micro-batch on `stage`, by the rank that has it. */
static void missing(const Player *x, const Action *a, ActionKind k, int stage) {
    if (!x->why) return;
    Action want = {.kind = k, .stage = stage, .part = a->part};
    int rank = schedule_rank_of(x->p->s, stage, a->part);
    const char *text = action_text(&want, x->arena);
    if (comes_later(x, k, stage, a->part)) {
        still_to_come(x, &want, text, rank);
        return;
    }
    x->why->wait = WAIT_ABSENT;
    x->why->waits_for = arena_printf(x->arena, "%s on rank %d, which is in no list", text, rank);
    x->why->fix = arena_printf(x->arena, "put %s into the list of rank %d", text, rank);
}
/* What a receive waits for that is not posted: where nobody wrote messages, they follow from the
 * order, and the work that makes this one is still to come. */
static void unposted(const Player *x, const Action *a, int b, int from) {
    ActionKind receive = b ? DO_RECV_B : DO_RECV_F, send = b ? DO_SEND_B : DO_SEND_F;
    if (!x->why) return;
    ActionKind maker = b ? maker_of(x, from, a->part) : DO_F;
    bool written =
        comes_later(x, receive, a->stage, a->part) || comes_later(x, send, from, a->part);
    if (!written && comes_later(x, maker, from, a->part)) missing(x, a, maker, from);
    else missing(x, a, receive, a->stage);
}
/* When what another stage sends is there; infinite: not yet. */
static double input_of(const Player *x, const Action *a) {
    const Schedule *s = x->p->s;
    int b = is_backward(a->kind), from = other_stage(a), c = cell(x, from, a->part),
        rank = schedule_rank_of(s, a->stage, a->part);
    if (from < 0 || from >= s->stages) return 0;
    if (schedule_rank_of(s, from, a->part) == rank) {
        double whole = x->done[b ? DO_B : DO_F][c], half = b ? x->done[DO_I][c] : -1;
        if (whole >= 0 || half >= 0) return fmax(whole, half);
        missing(x, a, b ? maker_of(x, from, a->part) : DO_F, from);
        return INFINITY;
    }
    if (!x->posted[b][cell(x, a->stage, a->part)]) {
        unposted(x, a, b, from);
        return INFINITY;
    }
    if (x->sent[b][c] >= 0) return x->sent[b][c] + x->t->message;
    missing(x, a, b ? DO_SEND_B : DO_SEND_F, from);
    return INFINITY;
}
/* When a computation can begin. `with`: the one that it runs together with, or NULL. */
static double compute_ready(const Player *x, const Action *a, const Action *with) {
    int c = cell(x, a->stage, a->part);
    if (a->kind == DO_W) {
        if (x->done[DO_I][c] >= 0) return x->done[DO_I][c];
        missing(x, a, DO_I, a->stage);
        return INFINITY;
    }
    bool own = with && with->kind == DO_F && with->stage == a->stage && with->part == a->part;
    if (a->kind != DO_F && x->done[DO_F][c] < 0 && !own) {
        missing(x, a, DO_F, a->stage);
        return INFINITY;
    }
    return input_of(x, a);
}
static void no_room(const Player *x, int to) {
    int n = x->t->buffers;
    if (!x->why) return;
    const char *more =
        arena_printf(x->arena, "let more wait: `pipeline: {p2p_buffers: %d}`", n + 1);
    bool ended = x->at[to] == x->p->s->rank[to].n;
    x->why->wait = WAIT_ROOM;
    x->why->waits_for =
        arena_printf(x->arena, "room: rank %d has not begun to receive the %d before", to, n);
    x->why->fix = ended ? more
                        : arena_printf(x->arena, "let rank %d receive before %s, or %s", to,
                                       stands_before(x, to), more);
}
static double message_ready(const Player *x, int rank, const Action *a) {
    int b = is_backward(a->kind), c = cell(x, a->stage, a->part), other = other_stage(a);
    double now = x->free[rank];
    if (!is_send(a->kind)) return now;
    double made = b ? fmax(x->done[DO_B][c], x->done[DO_I][c]) : x->done[DO_F][c];
    if (made < 0) {
        missing(x, a, b ? maker_of(x, a->stage, a->part) : DO_F, a->stage);
        return INFINITY;
    }
    int to = schedule_rank_of(x->p->s, other, a->part);
    const Channel *ch = channel_of(x, rank, to, b);
    if (ch->sent - ch->received < x->t->buffers) return now;
    no_room(x, to);
    return INFINITY;
}
/* How many actions from `i` on run together. */
static int width(const ActionList *l, int i) {
    int n = 1;
    while (l->a[i + n - 1].joined && i + n < l->n) n++;
    return n;
}
/* When the rank's next action can begin; infinite: not yet, and why if that is asked. */
static double ready(const Player *x, int rank) {
    const ActionList *l = &x->p->s->rank[rank];
    int i = x->at[rank], n = width(l, i);
    if (!action_computes(l->a[i].kind)) return message_ready(x, rank, &l->a[i]);
    double from = x->free[rank];
    for (int k = 0; k < n; k++)
        from = fmax(from, compute_ready(x, &l->a[i + k], n > 1 ? &l->a[i] : NULL));
    return from;
}
static double takes(const Player *x, const Action *a) {
    const PlayTimes *t = x->t;
    if (a->kind == DO_F) return t->forward[a->stage];
    return (a->kind == DO_W ? 0 : t->input[a->stage]) + (a->kind == DO_I ? 0 : t->weight[a->stage]);
}
static void post(Player *x, int rank, const Action *a) {
    int b = is_backward(a->kind), other = other_stage(a), c = cell(x, a->stage, a->part);
    int peer = schedule_rank_of(x->p->s, other, a->part);
    if (is_send(a->kind)) {
        Channel *ch = channel_of(x, rank, peer, b);
        *ARENA_PUSH(x->tmp, ch->send, ch->sent, ch->cap_sent) = c;
        x->sent[b][c] = x->free[rank];
    } else {
        Channel *ch = channel_of(x, peer, rank, b);
        *ARENA_PUSH(x->tmp, ch->receive, ch->received, ch->cap_received) = cell(x, other, a->part);
        x->posted[b][c] = true;
    }
}
static void count_live(Player *x, int rank, const Action *a) {
    if (x->p->s->forward) {
        x->p->in_flight[rank] = 1;
        return;
    }
    x->live[rank] += a->kind == DO_F ? 1 : a->kind == DO_I ? 0 : -1;
    if (x->live[rank] > x->p->in_flight[rank]) x->p->in_flight[rank] = x->live[rank];
}
/* Whoever waits for an action waits on a neighbouring stage, or on the rank itself. */
static void look_again(Player *x, int rank, const Action *a) {
    const Schedule *s = x->p->s;
    x->look[rank] = true;
    for (int k = -1; k <= 1; k += 2)
        if (a->stage + k >= 0 && a->stage + k < s->stages)
            x->look[schedule_rank_of(s, a->stage + k, a->part)] = true;
}
static void go(Player *x, int rank, double start) {
    Play *p = x->p;
    const ActionList *l = &p->s->rank[rank];
    int i = x->at[rank], n = width(l, i);
    double time = 0;
    for (int k = 0; k < n; k++)
        if (action_computes(l->a[i + k].kind)) time += takes(x, &l->a[i + k]);
    if (n > 1) time *= x->t->together;
    for (int k = 0; k < n; k++) {
        const Action *a = &l->a[i + k];
        p->span[rank][i + k] = (PlaySpan){start, start + time};
        p->step[p->n_steps++] = (PlayStep){rank, i + k};
        if (action_computes(a->kind)) {
            x->done[a->kind][cell(x, a->stage, a->part)] = start + time;
            count_live(x, rank, a);
        } else post(x, rank, a);
        look_again(x, rank, a);
    }
    if (action_computes(l->a[i].kind)) {
        x->free[rank] = start + time;
        p->busy[rank] += time;
        p->end = fmax(p->end, start + time);
    }
    x->at[rank] += n;
}
/* Receives that were posted for another message than the one that comes: ranks would compute with
 * the wrong micro-batch. */
static void find_crossed(Player *x) {
    Play *p = x->p;
    int n = p->s->ranks;
    for (int k = 0; k < n * n * 2; k++) {
        const Channel *ch = &x->channel[k];
        int to = k / 2 % n, both = ch->sent < ch->received ? ch->sent : ch->received, i = 0;
        while (i < both && ch->send[i] == ch->receive[i]) i++;
        if (i == both) continue;
        Action sent = {.kind = k % 2 ? DO_SEND_B : DO_SEND_F,
                       .stage = ch->send[i] / p->s->parts,
                       .part = ch->send[i] % p->s->parts};
        Action got = sent;
        got.stage = ch->receive[i] / p->s->parts;
        got.part = ch->receive[i] % p->s->parts;
        p->blocked[p->n_blocked++] = (PlayBlocked){
            .rank = to,
            .at = -1,
            .wait = WAIT_CROSSED,
            .waits_for = arena_printf(
                x->arena, "message %d from rank %d is %s, and rank %d receives it as %s", i,
                k / 2 / n, action_text(&sent, x->arena), to, action_text(&got, x->arena)),
            .fix = arena_printf(x->arena, "let rank %d receive in the order in which rank %d sends",
                                to, k / 2 / n)};
        if (p->n_blocked >= n) return;
    }
}
static void open_player(Player *x) {
    const Schedule *s = x->p->s;
    int cells = s->stages * s->parts, all = 0;
    x->at = ARENA_ARRAY(x->tmp, int, s->ranks);
    x->live = ARENA_ARRAY(x->tmp, int, s->ranks);
    x->free = ARENA_ARRAY(x->tmp, double, s->ranks);
    x->next = ARENA_ARRAY(x->tmp, double, s->ranks);
    x->look = ARENA_ARRAY(x->tmp, bool, s->ranks);
    for (int r = 0; r < s->ranks; r++) x->look[r] = true;
    x->channel = ARENA_ARRAY(x->tmp, Channel, s->ranks * s->ranks * 2);
    for (int k = 0; k < 4; k++) x->done[k] = ARENA_ARRAY(x->tmp, double, cells);
    for (int k = 0; k < 2; k++) x->sent[k] = ARENA_ARRAY(x->tmp, double, cells);
    for (int k = 0; k < 2; k++) x->posted[k] = ARENA_ARRAY(x->tmp, bool, cells);
    for (int i = 0; i < cells; i++) {
        for (int k = 0; k < 4; k++) x->done[k][i] = -1;
        x->sent[0][i] = x->sent[1][i] = -1;
    }
    Play *p = x->p;
    p->span = ARENA_ARRAY(x->arena, PlaySpan *, s->ranks);
    p->busy = ARENA_ARRAY(x->arena, double, s->ranks);
    p->in_flight = ARENA_ARRAY(x->arena, int, s->ranks);
    p->blocked = ARENA_ARRAY(x->arena, PlayBlocked, s->ranks);
    for (int r = 0; r < s->ranks; r++) {
        p->span[r] = ARENA_ARRAY(x->arena, PlaySpan, s->rank[r].n);
        all += s->rank[r].n;
    }
    p->step = ARENA_ARRAY(x->arena, PlayStep, all);
}
Play *play_schedule(const Schedule *s, const PlayTimes *t, Arena *arena) {
    Player x = {.p = ARENA_NEW(arena, Play), .t = t, .arena = arena, .tmp = arena_new()};
    assert(t->buffers >= 1);
    x.p->s = s;
    open_player(&x);
    for (;;) {
        int best = -1;
        double first = INFINITY;
        for (int r = 0; r < s->ranks; r++) {
            if (x.at[r] == s->rank[r].n) continue;
            if (x.look[r]) x.next[r] = ready(&x, r), x.look[r] = false;
            if (x.next[r] < first) first = x.next[r], best = r;
        }
        if (best < 0) break;
        go(&x, best, first);
    }
    for (int r = 0; r < s->ranks; r++) {
        if (x.at[r] == s->rank[r].n) continue;
        x.why = &x.p->blocked[x.p->n_blocked++];
        *x.why = (PlayBlocked){.rank = r, .at = x.at[r]};
        ready(&x, r);
    }
    if (!x.p->n_blocked) find_crossed(&x);
    arena_free(x.tmp);
    return x.p;
}
PlayTimes play_even(const Schedule *s, double f, double i, double w, Arena *arena) {
    double *t[3], all[3] = {f, i, w};
    for (int k = 0; k < 3; k++) {
        t[k] = ARENA_ARRAY(arena, double, s->stages);
        for (int g = 0; g < s->stages; g++) t[k][g] = all[k];
    }
    return (PlayTimes){.forward = t[0], .input = t[1], .weight = t[2], .together = 1, .buffers = 2};
}
void play_report(const Play *p, Diags *d, Loc loc) {
    Arena *tmp = arena_new();
    Str all = str_new(tmp);
    const PlayBlocked *first = NULL;
    for (int i = 0; i < p->n_blocked; i++) {
        const PlayBlocked *b = &p->blocked[i];
        if (!first || b->wait > first->wait) first = b;
        if (i) str_add(&all, "; ");
        if (b->at >= 0) {
            const Action *a = &p->s->rank[b->rank].a[b->at];
            str_addf(&all, "rank %d stands before %s and waits for ", b->rank, action_text(a, tmp));
        }
        str_add(&all, b->waits_for);
    }
    const Action *a = first && first->at >= 0 ? &p->s->rank[first->rank].a[first->at] : NULL;
    if (a && a->loc.file) loc = a->loc;
    if (first) diag_error(d, "E0311", loc, first->fix, "the schedule comes to no end: %s", all.s);
    arena_free(tmp);
}
