/* The records of memory: what a rank of each class holds after each step, as parameters, copies of
 * parameters that are gathered for use, and all else. From when to when is lives.h's to say; here
 * is only what a machine does with a buffer that no virtual rank does: the optimizer writes over
 * what it updates, and an all-reduce over what nobody reads any more. */
#ifndef SP_EXEC_FOOTPRINT_H
#define SP_EXEC_FOOTPRINT_H
#include "exec/held.h"
#include "kernel/tensor.h"

typedef struct Footprint {
    Trace *t; /* its classes of ranks are there; records are added in its arena */
    const Program *p;
    const TraceHeld *const *held; /* of held_find */
    Dtype dtype;
    const int64_t *rep; /* a rank of each class */
} Footprint;
/* Adds a record where a number changes. It looks at one rank of each class and touches no data. */
void footprint_record(const Footprint *f);
#endif
