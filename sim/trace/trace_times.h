/* Compute and communication of one rank over time: the one definition that report, pictures and
 * records share.
 *
 * comm is the time in which at least one collective of the rank sends; two at once count once. An
 * early rank waits inside its collective until the last of the group has come: no part of comm.
 * Where compute stands still, that is exposed or waiting: as what it stands still for sends, or
 * waits for another rank. So span = compute + exposed + waiting. Hidden is what is sent while the
 * rank computes. The rest of comm is beside: compute stands still, but for other communication. So
 * comm = exposed + hidden + beside; of a single collective too, whose `exposed` is its record's.
 * The records' `exposed` and `wait_exposed` share the time in which compute stands still out among
 * the collectives that it stands still for: they add up to it. */
#ifndef SP_TRACE_TRACE_TIMES_H
#define SP_TRACE_TRACE_TIMES_H
#include "trace/trace.h"

typedef struct {
    double compute, exposed, waiting, hidden, beside, comm, span; /* seconds */
} TraceTimes;
/* Between two instants, of n events of one rank (in any order; those whose times make no sense are
 * left out). */
TraceTimes trace_times(const TraceEvent *const *e, int n, double from, double to);
/* How long any of n events sends while any of m others computes. */
double trace_overlap(const TraceEvent *const *e, int n, const TraceEvent *const *k, int m);
/* Of each of n events of one rank: how long it sends while the rank computes, and while compute
 * stands still for others; both 0 of a kernel. */
void trace_hidden(const TraceEvent *const *e, int n, double *hidden, double *beside);
/* Of a whole trace, on one rank: from 0 to the end of its last event. */
TraceTimes trace_times_of(const Trace *t, int64_t rank);
/* The class of ranks that a step's time is told of: of those that are the last to end, the one that
 * waits for others least, of several the one that computes longest. `busiest`: so of all ranks.
 * NULL without events. */
const RankSet *trace_slowest(const Trace *t, bool *busiest);
/* How long is sent in all, as it stands behind a sum of which `exposed` is a part's text: where
 * nothing is hidden or beside it is that part, in the same digits. */
const char *comm_text(double comm, double hidden, double beside, const char *exposed, Arena *a);
/* "12.3 %" of the whole, "< 0.1 %"; "0 %" where there is none. */
const char *percent_text(Arena *a, double part, double whole);
/* Of the stream of compute, not a collective. */
bool trace_is_compute(const TraceEvent *e);
#endif
