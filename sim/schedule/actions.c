/* Lists of actions, whatever made them. See schedule.h. */
#include "schedule/schedule.h"
#include <assert.h>

Schedule *schedule_new(Arena *arena, const ScheduleAsk *ask, bool v) {
    Schedule *s = ARENA_NEW(arena, Schedule);
    int n = ask->ranks * ask->chunks, *home = ARENA_ARRAY(arena, int, n);
    for (int i = 0; i < n; i++) {
        int loop = i / ask->ranks, at = i % ask->ranks;
        home[i] = v && loop % 2 ? ask->ranks - 1 - at : at;
    }
    *s = (Schedule){.arena = arena,
                    .name = ask->name,
                    .ranks = ask->ranks,
                    .stages = n,
                    .parts = ask->parts,
                    .home = home,
                    .rank = ARENA_ARRAY(arena, ActionList, ask->ranks)};
    return s;
}
void schedule_add(Schedule *s, int rank, Action a) {
    ActionList *l = &s->rank[rank];
    *ARENA_PUSH(s->arena, l->a, l->n, l->cap) = a;
}
void schedule_keep_forward(Schedule *s) {
    s->forward = true;
    for (int r = 0; r < s->ranks; r++) {
        ActionList *l = &s->rank[r];
        int n = 0;
        for (int i = 0; i < l->n; i++) {
            ActionKind k = l->a[i].kind;
            if (k != DO_F && k != DO_SEND_F && k != DO_RECV_F) continue;
            l->a[n] = l->a[i];
            l->a[n++].joined = false;
        }
        l->n = n;
    }
}
int schedule_rank_of(const Schedule *s, int stage, int part) {
    bool other = s->both_ways && part >= s->parts / 2;
    return other ? s->ranks - 1 - s->home[stage] : s->home[stage];
}

/* ---- actions ---- */
static const char *const words[DO_KINDS] = {
    [DO_F] = "F",           [DO_B] = "B",           [DO_I] = "I",           [DO_W] = "W",
    [DO_SEND_F] = "SEND_F", [DO_RECV_F] = "RECV_F", [DO_SEND_B] = "SEND_B", [DO_RECV_B] = "RECV_B",
};
const char *action_word(ActionKind k) {
    assert(k < DO_KINDS);
    return words[k];
}
bool action_computes(ActionKind k) { return k <= DO_W; }
const char *action_text(const Action *a, Arena *arena) {
    return arena_printf(arena, "%d%s%d", a->stage, words[a->kind], a->part);
}
