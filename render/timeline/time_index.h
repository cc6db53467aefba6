/* Where the records of a step stand in a trace: asked for each event of a timeline. */
#ifndef SP_RENDER_TIME_INDEX_H
#define SP_RENDER_TIME_INDEX_H
#include "trace/trace.h"

typedef struct {
    const char *key; /* NULL: ordered by step */
    int step, at;    /* of t->computes or t->collectives */
} TimeAt;
typedef struct {
    const Trace *t;
    const TimeAt *compute, *coll, *maker;
    int n_makers;
} TimeIndex;

/* Of all records of t; lives in the arena. */
TimeIndex time_index(const Trace *t, Arena *arena);
/* The step's record on the ranks of the event, else the last of the step; NULL: it has none. */
const TraceCompute *time_compute(const TimeIndex *x, const TraceEvent *e);
/* The first of the step, or NULL. */
const TraceCollective *time_collective(const TimeIndex *x, const TraceEvent *e);
/* The first step that makes the value itself, no gradient of it; NULL: none does. */
const TraceCompute *time_maker(const TimeIndex *x, const char *value);

#endif
