/* Compute and communication of one rank over time: the one definition that report, pictures and
 * records share.
 *
 * comm is the time in which at least one collective of the rank runs; two at once count once.
 * exposed is the time in which compute stands still, hidden the part of comm in which compute runs;
 * so span = compute + exposed, and comm = hidden + the exposed time in which something is
 * communicated (all of it, in a modelled run). A record's `exposed` shares this time out among the
 * collectives that compute waits for, so they add up to it. */
#ifndef SP_TRACE_TRACE_TIMES_H
#define SP_TRACE_TRACE_TIMES_H
#include "trace/trace.h"

typedef struct {
    double compute, exposed, hidden, comm, span; /* seconds */
} TraceTimes;
/* Between two instants, of n events of one rank (in any order; those whose times make no sense are
 * left out). */
TraceTimes trace_times(const TraceEvent *const *e, int n, double from, double to);
/* Of a whole trace, on one rank: from 0 to the end of its last event. */
TraceTimes trace_times_of(const Trace *t, int64_t rank);
/* The class of ranks that is the last to end; NULL without events. */
const RankSet *trace_slowest(const Trace *t);
/* Of the stream of compute, not a collective. */
bool trace_is_compute(const TraceEvent *e);
#endif
