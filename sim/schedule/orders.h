/* The orders of computation, one function a schedule. For sim/schedule only: the table of
 * schedule.c calls them, with numbers that it has not refused. */
#ifndef SP_SCHEDULE_ORDERS_H
#define SP_SCHEDULE_ORDERS_H
#include "schedule/schedule.h"

/* Each fills the lists of an empty schedule whose stages are placed. Letters of the formulas: p
 * ranks, m micro-batches, v stages per rank, rank r. */
void order_gpipe(Schedule *s, const ScheduleAsk *ask);
void order_1f1b(Schedule *s, const ScheduleAsk *ask);
void order_interleaved(Schedule *s, const ScheduleAsk *ask);
void order_looped_bfs(Schedule *s, const ScheduleAsk *ask);
void order_interleaved_zb(Schedule *s, const ScheduleAsk *ask);
void order_zb_h1(Schedule *s, const ScheduleAsk *ask);
void order_zb_v(Schedule *s, const ScheduleAsk *ask);
void order_dualpipe(Schedule *s, const ScheduleAsk *ask);
void order_dualpipe_v(Schedule *s, const ScheduleAsk *ask);

/* Closed forms (closed.c): see ScheduleKind. */
double idle_plain(const ScheduleAsk *a, const StageTimes *t);
double idle_zb_h1(const ScheduleAsk *a, const StageTimes *t);
double idle_dualpipe(const ScheduleAsk *a, const StageTimes *t);
double idle_dualpipe_v(const ScheduleAsk *a, const StageTimes *t);
int flight_all(const ScheduleAsk *a, int rank);
int flight_1f1b(const ScheduleAsk *a, int rank);
int flight_interleaved(const ScheduleAsk *a, int rank);
int flight_interleaved_zb(const ScheduleAsk *a, int rank);
int flight_zb_h1(const ScheduleAsk *a, int rank);
int flight_zb_v(const ScheduleAsk *a, int rank);
int flight_dualpipe(const ScheduleAsk *a, int rank);
#endif
