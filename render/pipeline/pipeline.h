/* What a pipeline's schedule comes to: rows of actions with their times, idle time and activations
 * in flight, and the words for it. For the view `pipeline`. */
#ifndef SP_RENDER_PIPELINE_H
#define SP_RENDER_PIPELINE_H
#include "render/furniture/actions.h"
#include "render/furniture/furniture.h"

/* One coordinate of the pipeline's axis. */
typedef struct PipeRow {
    int n;
    const TraceAction *a;    /* [n], in order */
    double busy;             /* seconds */
    int flight;              /* most (stage, micro-batch) pairs between forward and backward */
    const char *stages;      /* "0, 4" */
    const TraceStuck *stuck; /* where it stands for ever; NULL: it comes to its end */
} PipeRow;
typedef struct Pipe {
    const Trace *t;
    Arena *a;
    const char *name; /* the schedule's; among others of its name with what tells it apart */
    int n, parts;     /* ranks of the pipeline's axis, micro-batches */
    double end;       /* of the last action, seconds */
    PipeRow *row;
    double idle; /* share of all ranks' time in which they compute nothing */
    bool stuck;  /* the schedule comes to no end: times are in units of a forward's */
    double unit; /* of such a one: as long as each action is drawn */
} Pipe;
/* Over all ranks: most in flight; most bytes held beside what lies at rest; messages of a step;
 * most bytes of parameters at rest. */
typedef struct PipeSums {
    int flight;
    int64_t held, messages, weights;
} PipeSums;
PipeSums pipe_sums(const Pipe *p);
/* What is said of a schedule among others: time, idle time, what is in flight and held, messages,
 * weights; each column has a heading. */
enum { PIPE_COLUMNS = 8 };
extern const char *const pipe_columns[PIPE_COLUMNS];
const char *pipe_cell(const Pipe *p, int column);
/* False and E0211 if the trace has no schedule, or no times. */
bool pipe_read(Pipe *p, const ViewCall *c);
/* All schedules of a request, with room for VIEW_MAX_BESIDE + 1: how many; 0 and E0211 where one
 * has none. *span: seconds of the longest. What comes to no end has no times: beside others its
 * actions are as long as a mean forward of the first that does. */
int pipe_read_all(const ViewCall *c, Pipe *all, double *span);
/* What another schedule's work is, where it is not that of the first: "6 layers, B=8"; "": it is
 * the same, so their times may be held against each other. */
const char *pipe_other_work(const Pipe *first, const Pipe *other);
/* "1f1b: 4 ranks, 8 micro-batches, 27 % of their time idle". */
const char *pipe_title(const Pipe *p);
/* The idle time, taken apart into its closed form and what is added to it, and what is in flight:
 * sentences, the last without its period. */
const char *pipe_foot(const Pipe *p);
/* "27.3 %" of the row's time. */
const char *pipe_idle(const Pipe *p, const PipeRow *r);
#endif
