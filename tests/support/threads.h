/* An engine whose ranks are threads of this process: what is behind the seam of real runs is tried
 * without a launcher, hundreds of plans in seconds. Messages are copied when they are sent; a sum
 * is made in the order of the group turned round, so that it is not the declared one. */
#ifndef SP_TESTS_THREADS_H
#define SP_TESTS_THREADS_H
#include "support.h"
#include "drive/pipeline.h"
#include "engine/engine.h"

typedef struct {
    int64_t ranks;
    bool engine_sums;
    /* the bit that is wrong in a message: of `rank`'s so many-th exchange that sends one of more
     * than so many bytes; below 0: in none */
    int64_t flip_rank, flip_message, flip_over;
    bool flip_moves;    /* only of those that moves send */
    const char *text;   /* the plan */
    const char *others; /* what the ranks but 0 read; NULL: the same */
    PipelineOptions o;  /* of all of them */
    /* what they do instead of running a plan; NULL: they run it */
    void (*work)(void *arg, Arena *a, Diags *d, struct Ranks *ranks);
    void *arg;
} Threads;
typedef struct {
    Trace *t; /* of rank 0, in `a`; NULL: none */
    Diags *d;
    PipelineReport rep;
    int64_t *messages, *bytes; /* per rank: sent */
    int64_t *told;             /* of these bytes, those that are about the run (Engine.tell) */
} ThreadsRun;
#define threads_must_be(r, verdict) run_must_be((&(PlanRun){.d = (r)->d, .t = (r)->t}), verdict)
ThreadsRun threads_run(Arena *a, const Threads *x);
#endif
