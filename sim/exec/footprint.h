/* The records of memory: what a rank of each class holds after each step, as parameters at rest,
 * what the optimizer keeps, copies of parameters that are gathered for use, and all else. It adds
 * up; from when to when a buffer is held is lives.h's to say, and its size region.h's. */
#ifndef SP_EXEC_FOOTPRINT_H
#define SP_EXEC_FOOTPRINT_H
#include "kernel/tensor.h"
#include "lower/program.h"
#include "trace/trace.h"

typedef struct Footprint {
    Trace *t; /* its classes of ranks are there; records are added in its arena */
    const Program *p;
    const TraceHeld *const *buffers; /* of lives_buffers */
    Dtype dtype;                     /* of real numbers */
    int moments, master; /* Dtype of the optimizer's state, and of the copy of each trained
                            parameter that it keeps beside; -1: dtype, none */
    const int64_t *rep;  /* a rank of each class */
} Footprint;
/* Adds a record where a number changes. In a pipeline a rank also holds what other micro-batches
 * keep for their backward: as many as its schedule has in flight at most, each as much as stays of
 * its stages after the forward (of several stages the mean). It looks at one rank of each class and
 * touches no data. */
void footprint_record(const Footprint *f);
#endif
