/* Closed forms of schedules whose stages all take the same: idle time and activations in flight.
 * Sources: Megatron-LM (2021) for GPipe, 1F1B and interleaved; "Zero Bubble Pipeline Parallelism"
 * (2023); the DeepSeek-V3 report (2024). In flight of those that cut backward in two, and of looped
 * BFS: measured in PyTorch's tables. */
#include "schedule/orders.h"

static int least(int a, int b) { return a < b ? a : b; }
/* Micro-batches that go through a rank's chunks together. */
static int group(const ScheduleAsk *a) {
    int rounds = a->parts / a->ranks;
    return a->parts / (rounds > 0 ? rounds : 1);
}

double idle_plain(const ScheduleAsk *a, const StageTimes *t) {
    return (a->ranks - 1) * (t->f + t->i + t->w);
}
double idle_zb_h1(const ScheduleAsk *a, const StageTimes *t) {
    return (a->ranks - 1) * (t->f + t->i - t->w);
}
double idle_dualpipe(const ScheduleAsk *a, const StageTimes *t) {
    return (a->ranks / 2 - 1) * (t->together + t->i + t->w - 3 * t->w);
}
double idle_dualpipe_v(const ScheduleAsk *a, const StageTimes *t) {
    return (a->ranks - 1) * (t->together + t->i + t->w - 3 * t->w);
}
int flight_all(const ScheduleAsk *a, int rank) {
    (void)rank;
    return a->parts * a->chunks;
}
int flight_1f1b(const ScheduleAsk *a, int rank) { return least(a->ranks - rank, a->parts); }
int flight_interleaved(const ScheduleAsk *a, int rank) {
    return least(a->parts * a->chunks, 2 * (a->ranks - rank - 1) + (a->chunks - 1) * group(a) + 1);
}
int flight_interleaved_zb(const ScheduleAsk *a, int rank) {
    (void)rank;
    return least(a->parts * a->chunks, a->ranks + (a->chunks - 1) * group(a));
}
int flight_zb_h1(const ScheduleAsk *a, int rank) {
    (void)rank;
    return least(a->ranks, a->parts);
}
int flight_zb_v(const ScheduleAsk *a, int rank) {
    (void)rank;
    return 2 * least(a->ranks, a->parts);
}
int flight_dualpipe(const ScheduleAsk *a, int rank) {
    (void)rank;
    return a->ranks * a->chunks + 1;
}
