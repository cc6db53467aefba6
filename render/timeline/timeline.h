/* The events of one rank class, cut into lines at boundaries of the program: what the timeline view
 * draws, prints and sums. Knows no lengths and no colours. */
#ifndef SP_RENDER_TIMELINE_H
#define SP_RENDER_TIMELINE_H
#include "render/furniture/furniture.h"
#include "trace/trace_times.h"

enum { TIMELINE_STAGES = 64 }; /* classes of a pipeline that are shown at most */

typedef struct {
    const TraceEvent *e;   /* in a pipeline on a clock that stands still for what is aside */
    const TraceEvent *rec; /* the record */
    const TraceCompute *c; /* its record, or NULL */
    const TraceCollective *coll;
    const char *name; /* for people: "wq", "AG k" */
    const char
        *brief; /* where room is short: "exp" of "sum of exp over V"; a weight keeps its name */
    const char *product;   /* of a kernel that makes a gradient of a product: its weight, "wq" */
    const char *code;      /* of a collective: "AG" */
    bool small;            /* a kernel that is neither a product with weights nor attention */
    bool gradient;         /* a kernel that makes the gradient of a weight */
    double hidden, beside; /* of a collective: trace_hidden of the record */
    bool unlike;           /* the plan beside has none that is like it */
    /* in a pipeline: no part of what a stage does for each micro-batch, so in no line: it is done
     * once a step, or a message between stages */
    bool aside;
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
    int step; /* of its first kernel */
} TimeLine;

/* What a rank of a pipeline does in a whole step: from the first action of the schedule to the end
 * of the last, span = compute + exposed + waiting + idle. Messages between stages are idle time. */
typedef struct {
    int coord;  /* on the pipeline's axis */
    int stages; /* that it has */
    int times;  /* micro-batches that go through each of them */
    double span, compute, exposed, waiting, idle, comm, hidden,
        beside; /* seconds, all micro-batches */
    /* beside the schedule, once a step; comm: the time in which any of it is sent */
    double once_compute, once_comm, once_exposed, once_hidden;
} TimeStep;

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
    const TimeStep *step; /* lines are of one micro-batch and have nothing aside; NULL: no pipeline,
                             and lines have all from the first event to the last */
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
/* Says of each event of t whether one of n others has one of its name, stream and duration
 * (unlike). In a pipeline one is like any number, for stages have other layers. */
void timeline_mark_unlike(Timeline *t, const Timeline *other, int n, Arena *arena);
/* Is the request answered as a pipeline's? Not what was measured, and not of a plan that breaks a
 * rule: its flags may stand at what lines leave out. */
bool timeline_staged(const ViewCall *c);
/* Of a pipeline: finds what is aside, and takes its time out of the clock of all events: what is
 * left is one micro-batch on each of the rank's stages, without a gap. */
void timeline_take_aside(Timeline *t, Arena *arena);
bool timeline_is_message(const TimeEvent *x); /* between stages */
/* What the rank does in a whole step. */
const TimeStep *timeline_step(const Timeline *t, Arena *arena, int64_t rank);
/* Index of the lane of an event. */
int timeline_lane(const Timeline *t, const TraceEvent *e);
/* Does it make, or move, what was made before and not kept? */
bool timeline_again(const TimeEvent *x);
/* Title sentence and the sentence of totals of n classes: of the first, which they name. The plain
 * ones are of what is no pipeline. */
const char *timeline_title(const ViewCall *c, const Timeline *t, int n);
const char *timeline_totals(const ViewCall *c, const Timeline *t, int n);
const char *timeline_plain_title(const ViewCall *c, const Timeline *t, int n);
const char *timeline_plain_totals(const ViewCall *c, const Timeline *t, int n);
/* "5 ms (overlaps counted once), of which 40 % is hidden, and 3 % is behind other
 * communication", of seconds in which something is sent; behind a sum whose part `exposed` is. */
const char *timeline_hidden_text(double comm, double hidden, double beside, const char *exposed,
                                 Arena *a);
/* "rank 3", "ranks 0,1" of a class; timeline_who: "modelled, ranks 0,1" where both stand side by
 * side. */
const char *timeline_ranks(const Timeline *t, Arena *a);
const char *timeline_who(const ViewCall *c, const Timeline *t);
/* "modelled time", or what else is shown. */
const char *timeline_kind(const ViewCall *c);
/* A line as it is shown: of a pipeline one for all stages that do it, in the order of the program.
 */
typedef struct {
    const Timeline *t;
    const TimeLine *l;
    const char *who; /* "4 micro-batches x 2 layers, pp 0 to 2" */
    int *layers;     /* of a pipeline: per class, how many of its lines are like it */
} TimeItem;
/* The lines of a pipeline, of n classes; returns how many. */
int timeline_items(const ViewCall *c, const Timeline *t, int n, TimeItem **out);
#endif
