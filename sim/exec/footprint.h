/* The records of memory: what a rank of each class holds after each step, as parameters at rest,
 * what the optimizer keeps, gradients of parameters, copies of parameters that are gathered for
 * use, and all else ("activations"). It adds up; from when to when a buffer is held is lives.h's to
 * say, and its size region.h's. */
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
/* What a rank holds beside what lies at rest, by the category of its record. */
typedef enum { HOLDS_ACTIVATIONS, HOLDS_GRADIENTS, HOLDS_GATHERED, HOLDS_KINDS } HoldsKind;
typedef struct {
    int64_t bytes[HOLDS_KINDS];
} Holding;

/* Adds a record where a number changes. Not of a pipeline, where a rank holds values of several
 * micro-batches: flight.h. It looks at one rank of each class and touches no data. */
void footprint_record(const Footprint *f);
/* Bytes of a value on the ranks of a class; 0: it is not there. */
int64_t footprint_bytes(const Footprint *f, int val, int klass);
/* Adds the bytes of a value (below 0: it goes) to the category that it is of. */
void footprint_add(const Program *p, Holding *h, int val, int64_t bytes);
int64_t footprint_sum(const Holding *h);
/* Adds a record of each category whose bytes are not those that were said last, in step 0 of the
 * activations in any case; `said` is `now` then. */
void footprint_tell(const Footprint *f, int step, int klass, const Holding *now, Holding *said);
/* Adds the records of what lies at rest. */
void footprint_at_rest(const Footprint *f, int klass);
#endif
