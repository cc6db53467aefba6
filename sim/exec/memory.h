/* How much memory a run will need at its peak, from its program alone, and how much there is. Said
 * before anything is allocated: a plan that does not fit gets a diagnostic with the sizes and what
 * to change, not the kernel's out-of-memory killer. */
#ifndef SP_EXEC_MEMORY_H
#define SP_EXEC_MEMORY_H
#include "lower/program.h"

typedef struct {
    Dtype dtype;
    bool keep_all;   /* --save-values: no value is dropped */
    bool keep_whole; /* the unsharded values are kept for a comparison */
    bool exact;  /* level 3 runs the program a second time beside the unsharded one, in the run's
                    dtype */
    bool nudged; /* --sensitivity: the unsharded run three times, with all values of each */
    int microbatches;
    int64_t steps;      /* of training; 1: there are none */
    const Graph *whole; /* what the unsharded run computes: the graph of the whole batch */
} MemoryUse;
typedef struct {
    int64_t peak; /* bytes, without what the process has already */
    int64_t
        sharded; /* of it, in the worse of the two phases: values on all ranks with their check */
    int64_t unsharded; /* the float64 run that they are compared with */
    int64_t records;   /* of the checks, which every training step adds to */
} MemoryNeed;
/* Walks the steps as exec, check and reference will: distinct buffers once, kept buffers, copies
 * for the check. No tensor data is touched. */
MemoryNeed memory_predict(const Program *p, const MemoryUse *use);

typedef struct {
    int64_t bytes;    /* that can still be had */
    const char *what; /* what sets the limit: "MemAvailable of the machine", "ulimit -v", "the
                         memory limit of the control group" */
} MemoryRoom;
/* The least of what the machine, the process limits and the control groups leave. Files that cannot
 * be read limit nothing. */
MemoryRoom memory_room(Arena *arena);
/* The same from texts, for tests: /proc/meminfo, and a control group's limit and use ("max" or a
 * number; NULL: none). */
int64_t memory_meminfo(const char *text);
int64_t memory_group(const char *limit, const char *use);
#endif
