/* What each step takes: what the model of time says of it beside what was measured. One definition
 * for tables, pictures and tools, whether processes, a GPU or both were measured. Refuses to judge
 * which of the two is right. */
#ifndef SP_TRACE_TRACE_TOOK_H
#define SP_TRACE_TRACE_TOOK_H
#include "trace/trace.h"

typedef struct TraceTook {
    int step; /* of the record: what travels with it is in its times */
    bool moves;
    Phase pass;
    const char *op;    /* "linear", "all_gather" */
    const char *value; /* that it makes, or moves */
    const char *axis;  /* of a collective; NULL */
    int64_t size;      /* ranks of a group; 1 */
    int layer;
    /* seconds of the rank, or of the slowest; below 0: nobody says. wait: of what was measured, for
     * other ranks */
    double modelled, measured, wait;
    double flops, bytes; /* operations; bytes read and written, or sent: of the same rank or most */
} TraceTook;
/* Steps that compute, and collectives, in the order of steps: n of them, in `a`. `rank` -1: of all
 * ranks the slowest, for each step by itself; else steps in which that rank has no part are left
 * out. */
TraceTook *trace_took(const Trace *t, int64_t rank, Arena *a, int *n);
/* Are collectives of this run copies and sums in one memory, which no model of links speaks of? */
bool trace_took_in_memory(const Trace *t);
/* The size of a collective as nccl-tests define it (its doc/PERFORMANCE.md), of what the ranks
 * send: that over time is the algorithm bandwidth, what they send over time the bus bandwidth. 0:
 * it is no collective, or sends nothing. */
double trace_took_size(const TraceTook *k);
/* Do ranks of this run take turns on one GPU? Then what was measured says nothing. */
bool trace_took_in_turns(const Trace *t);
#endif
