/* The events of one rank class, cut into lines at boundaries of the program: what the timeline view
 * draws, prints and sums. Knows no lengths and no colours. */
#ifndef SP_RENDER_TIMELINE_H
#define SP_RENDER_TIMELINE_H
#include "render/furniture/furniture.h"
#include "trace/trace_times.h"

typedef struct {
    const TraceEvent *e;
    const TraceCompute *c; /* its record, or NULL */
    const TraceCollective *coll;
    const char *name; /* for people: "wq", "AG k" */
    const char *code; /* of a collective: "AG" */
    bool small;       /* a kernel that waits for memory rather than for arithmetic */
    bool gradient;    /* a kernel that makes the gradient of a weight */
} TimeEvent;

typedef struct {
    const char *axes;    /* "compute" or the axes of the stream */
    const char *axis;    /* as the plan says: "sp" */
    const char *members; /* "{0,1}" */
} TimeLane;

typedef struct {
    const char *title;
    double start, end;
    int same; /* lines folded into this one because they look alike */
    TraceTimes sum;
} TimeLine;

typedef struct {
    const Trace *trace;
    const char *how; /* "modelled" or "measured" */
    RankSet ranks;
    int n_events;
    TimeEvent *event; /* by start */
    int n_lanes;
    TimeLane *lane; /* lane 0: compute */
    int n_lines;
    TimeLine *line;
    TraceTimes sum;
} Timeline;

/* Classes of ranks that are not among those returned: with the same times as one that is; others,
 * for which there was no room. */
typedef struct {
    int same, left;
} TimeFold;
/* ", 2 with the same times, 3 more not shown (--rank)"; "": none. */
const char *timeline_folded(Arena *a, TimeFold f);

/* Timelines of the rank classes that differ; first the one whose numbers are told: of the rank that
 * was asked for, else of the one that the others wait for (trace_slowest). Returns their number (0
 * and a diagnostic without events), at most `max`. */
int timeline_read(const ViewCall *c, Timeline *out, int max, int kernels, TimeFold *folded);
/* A trace whose events are what was measured on a rank; all else is shared with `t`. */
Trace *timeline_measured(const Trace *t, Arena *arena, int64_t rank);
/* Bytes that a rank of the event's class sends in its collective (not the most of any rank). */
int64_t timeline_sent(const TimeEvent *e);
/* Do lines of two classes compute the same, and wait as long? They may hide other collectives. */
bool timeline_as_long(const Timeline *t, const TimeLine *p, const Timeline *u, const TimeLine *q);
/* Index of the lane of an event. */
int timeline_lane(const Timeline *t, const TraceEvent *e);
/* Title sentence and the sentence of totals of n classes: of the first, which they name. */
const char *timeline_title(const ViewCall *c, const Timeline *t, int n);
const char *timeline_totals(const ViewCall *c, const Timeline *t, int n);
/* "rank 3", "ranks 0,1" of a class; timeline_who: "modelled, ranks 0,1" where both stand side by
 * side. */
const char *timeline_ranks(const Timeline *t, Arena *a);
const char *timeline_who(const ViewCall *c, const Timeline *t);
/* "modelled time", or what else is shown. */
const char *timeline_kind(const ViewCall *c);
/* "12.3 %" of the whole; "0 %" where there is none. */
const char *percent_text(Arena *a, double part, double whole);
#endif
