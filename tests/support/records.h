/* What the records of a trace say of a rank, added up by a test alone: collectives, weights, memory
 * at the peak, time. Words of pictures are held against it, so nothing here asks render/. */
#ifndef SP_TESTS_RECORDS_H
#define SP_TESTS_RECORDS_H
#include "render/scene/scene.h"
#include "trace/trace.h"

/* Is the rank in one of the groups of the collective (skipped or not)? */
bool record_member(const TraceCollective *c, int64_t rank);
/* The first step of the backward pass; INT_MAX: there is none. */
int records_backward(const Trace *t);
/* Is it done in that pass, "forward" or "backward" (NULL: of all)? The loss is forward, gradients'
 * sums are backward, the optimizer is neither. */
bool record_in_pass(const Trace *t, const TraceCollective *c, const char *pass);

typedef struct {
    int64_t count, bytes;
    int64_t messages, received; /* of `count`: sends of a pipeline; those that only come */
} RecordSum;
void record_add(RecordSum *s, const TraceCollective *c, int64_t rank);
/* "4 collectives", "28 collectives and 1 message": of all that it has a part in, or sends in. */
const char *record_counted(Arena *a, RecordSum s, bool sent);
/* What the rank sends in that pass (NULL: all) and layer (-1: in all of them and outside). */
RecordSum records_sent(const Trace *t, int64_t rank, const char *pass, int layer);
/* Bytes of the weights that the rank holds, or of their whole selves; of a layer, or (-1) all. */
int64_t records_weights(const Trace *t, int64_t rank, int layer, bool whole);
/* The first layer of which there are parameters: plans may leave some out; 0 where none is. */
int records_first_layer(const Trace *t);
/* Bytes of live values and gathered parameters when the rank holds most of both, and with what lies
 * at rest. */
int64_t records_live(const Trace *t, int64_t rank);
int64_t records_peak(const Trace *t, int64_t rank);

/* A rank's modelled time, in seconds; still: compute does nothing; comm: the time in which it sends
 * anything, once however many streams do; hidden: of that, the time in which it computes too. */
typedef struct {
    double span, compute, still, waiting, exposed, hidden, comm;
} RecordTime;
RecordTime records_time(Arena *a, const Trace *t, int64_t rank);

/* Which of `n` kernels' times is the largest: its FLOPs', its bytes' or its launch's. */
typedef enum {
    RECORD_COMPUTE_BOUND,
    RECORD_MEMORY_BOUND,
    RECORD_LAUNCH_BOUND,
    RECORD_BOUNDS
} RecordBound;
/* How many kernels of the rank are of each kind and what they take; its collectives (no messages)
 * that have products around them, those of them that take longer than these, and their times;
 * collectives without. */
typedef struct {
    int kernels, of[RECORD_BOUNDS], colls, longer, alone, messages;
    double compute, took[RECORD_BOUNDS], sent, sent_longer;
} RecordRoof;
RecordRoof records_roof(Arena *a, const Trace *t, int64_t rank);
/* The time of the products that read what a collective brings or, of a sum, make what it sends, and
 * where there are none the other way round: those of one pass, behind kernels of the same layer
 * that are none. 0: there are none. */
double records_products(Arena *a, const Trace *t, int64_t rank, const TraceCollective *c);

/* What the events are of, in words: a step's, or of one of its micro-batches. */
const char *records_span(Arena *a, const Trace *t);

/* Of a pipeline, the whole step of a rank by the schedule's actions, in seconds: `times`
 * micro-batches of what it does for each, less messages between stages; once_*: what is done once a
 * step. Fails where what the events of the first rank of a stage come to is not what its actions
 * take. */
typedef struct {
    int coord, times;
    double span, compute, exposed, waiting, idle, comm, hidden;
    double once_compute, once_exposed, once_comm;
} RecordStep;
RecordStep records_step(Arena *a, const Trace *t, int64_t rank);

/* How long a coordinate of the pipeline's axis is at work: the time that any of its actions takes,
 * counted once; and the most pairs of stage and micro-batch of which it has begun the forward and
 * not ended the backward. */
double records_busy(const Trace *t, int rank);
int records_in_flight(const Trace *t, int rank);

/* All words of a page in the order in which they are drawn, a blank between two lines: a sentence
 * that was wrapped is one again. `what`: those of groups of that class ("title", "footer"); NULL:
 * of all. */
const char *page_words(Arena *a, const Scene *s, const char *what);
#endif
