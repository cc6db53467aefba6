/* The table of schedules, and what is asked of every schedule. See schedule.h. */
#include "schedule/schedule.h"
#include "schedule/orders.h"
#include <assert.h>
#include <string.h>

/* ---- what they refuse ---- */
static const char *needs_rounds(const ScheduleAsk *ask, Arena *a, const char **fix) {
    int rounds = ask->parts / ask->ranks; /* of fewer micro-batches than ranks: one */
    if (rounds < 2 || ask->parts % rounds == 0) return NULL;
    *fix = arena_printf(a, "%d or %d micro-batches: a multiple of the %d ranks",
                        rounds * ask->ranks, (rounds + 1) * ask->ranks, ask->ranks);
    return arena_printf(a, "%d micro-batches cannot be cut in %d equal rounds", ask->parts, rounds);
}
static const char *needs_pairs(const ScheduleAsk *ask, Arena *a, const char **fix) {
    if (ask->ranks % 2 == 0 && ask->parts % 2 == 0 && ask->parts >= 2 * ask->ranks) return NULL;
    *fix = arena_printf(a, "an even number of ranks, and an even number of micro-batches that is "
                           "at least twice theirs");
    return arena_printf(a, "both directions need their half of %d micro-batches on %d ranks",
                        ask->parts, ask->ranks);
}
static const char *needs_twice(const ScheduleAsk *ask, Arena *a, const char **fix) {
    if (ask->parts >= 2 * ask->ranks) return NULL;
    *fix = arena_printf(a, "at least %d micro-batches, one for each stage", 2 * ask->ranks);
    return arena_printf(a, "%d micro-batch%s for %d stages", ask->parts,
                        ask->parts == 1 ? "" : "es", 2 * ask->ranks);
}

/* ---- the table ---- */
static const ScheduleKind rows[] = {
    {"gpipe", "GPipe", 1, 1, false, false, "(p-1)(F+B)", false,
     "all forwards, then all backwards: simple, and all micro-batches are in flight at once",
     idle_plain, flight_all, NULL, order_gpipe},
    {"1f1b", "1F1B", 1, 1, false, false, "(p-1)(F+B)", true,
     "after a warm-up each forward is followed by a backward: rank r has at most p-r micro-batches "
     "in flight",
     idle_plain, flight_1f1b, NULL, order_1f1b},
    {"interleaved", "interleaved 1F1B", 1, 0, false, false, "(p-1)(F+B)", false,
     "each rank has several chunks of layers, in turns: the bubble is that of a chunk", idle_plain,
     flight_interleaved, needs_rounds, order_interleaved},
    {"looped-bfs", "looped BFS", 1, 0, false, false, "(p-1)(F+B)", false,
     "all micro-batches through one chunk before the next: gradients are complete early",
     idle_plain, flight_all, NULL, order_looped_bfs},
    {"interleaved-zb", "interleaved zero bubble", 1, 0, false, false, NULL, false,
     "interleaved, with backward cut in two: weight gradients fill the gaps", NULL,
     flight_interleaved_zb, needs_rounds, order_interleaved_zb},
    {"zb-h1", "ZB-H1", 1, 1, false, false, "(p-1)(F+I-W)", false,
     "1F1B with backward cut in two: weight gradients wait until a rank would idle", idle_zb_h1,
     flight_zb_h1, NULL, order_zb_h1},
    {"zb-v", "ZB-V", 2, 2, true, false, NULL, false,
     "two chunks a rank, placed as a V: the first and the last stage share a rank", NULL,
     flight_zb_v, NULL, order_zb_v},
    {"dualpipe", "DualPipe", 1, 1, false, true, "(p/2-1)(FB+B-3W)", false,
     "micro-batches enter at both ends, each rank has two stages' weights; a forward of one "
     "direction runs with a backward of the other",
     idle_dualpipe, flight_dualpipe, needs_pairs, order_dualpipe},
    {"dualpipe-v", "DualPipeV", 2, 2, true, false, "(p-1)(FB+B-3W)", false,
     "DualPipe cut in half: a V of two chunks a rank, no weights twice", idle_dualpipe_v,
     flight_dualpipe, needs_twice, order_dualpipe_v},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

const ScheduleKind *schedule_kinds(int *n) {
    *n = N_ROWS;
    return rows;
}
const ScheduleKind *schedule_kind(const char *name) {
    for (int i = 0; i < N_ROWS; i++)
        if (!strcmp(rows[i].name, name)) return &rows[i];
    return NULL;
}
const char *schedule_refused(const ScheduleAsk *ask, Arena *arena, const char **fix) {
    const ScheduleKind *k = schedule_kind(ask->name);
    assert(k && ask->ranks >= 1 && ask->chunks >= 1 && ask->parts >= 1);
    if (k->most_chunks && (ask->chunks < k->least_chunks || ask->chunks > k->most_chunks)) {
        *fix = arena_printf(arena, "`chunks: %d`", k->least_chunks);
        return arena_printf(arena, "%s has %d stage%s on each rank, not %d", k->name,
                            k->least_chunks, k->least_chunks == 1 ? "" : "s", ask->chunks);
    }
    return k->refused ? k->refused(ask, arena, fix) : NULL;
}

Schedule *schedule_make(const ScheduleAsk *ask, Arena *arena) {
    const ScheduleKind *k = schedule_kind(ask->name);
    Schedule *s = schedule_new(arena, ask, k->v);
    s->both_ways = k->both_ways;
    k->make(s, ask);
    return s;
}
