/* Numbers of a sweep: what the fullest rank of a plan holds with other batches, and how long a step
 * takes where the same ranks are cut over the plan's axes in other ways. Knows no lengths and no
 * colours. Refuses to scale: each number is that of a plan of its own, as views `memory` and
 * `timeline` have it. */
#ifndef SP_RENDER_SWEEP_H
#define SP_RENDER_SWEEP_H
#include "render/furniture/wrong.h"
#include "render/memory/memory.h"

enum { SWEEP_BATCHES = 48, SWEEP_AXES = 12, SWEEP_WAYS = 64 /* more are not tried */ };

typedef struct {
    int64_t batch, total; /* total: bytes at the peak of the fullest rank */
    int64_t bytes[MEM_KINDS];
    bool own; /* the plan's */
} SweepBatch;

/* One way to cut the ranks. */
typedef struct {
    int64_t size[SWEEP_AXES], total;
    double compute, exposed, waiting, idle, span; /* span: their sum; seconds, as a timeline's */
    bool own;
} SweepWay;

typedef struct {
    const ViewCall *c;
    const Trace *t; /* of the plan itself */
    const PlanOthers *others;
    const WrongList *wrong;
    int64_t capacity; /* of the machine; 0: nobody knows */
    int n, fits;      /* fits: the first so many batches */
    SweepBatch at[SWEEP_BATCHES];
    int64_t ended;         /* with this batch there is no plan to be had; 0: none was refused */
    int n_ways, illegal;   /* legal ones, fastest first; how many are none */
    int64_t ways, n_fixed; /* how many there are, counted up to SWEEP_WAYS + 1; of how many axes the
                              size is kept */
    SweepWay way[SWEEP_WAYS];
} Sweep;

/* False and a diagnostic where there is no plan to try, or its trace has no records of memory. */
bool sweep_read(Sweep *s, const ViewCall *c);
static inline bool sweep_fits(const Sweep *s, int64_t bytes) {
    return !s->capacity || bytes <= s->capacity;
}
/* Is there another way to cut the ranks beside which the plan's can stand? */
static inline bool sweep_compares(const Sweep *s) { return s->n_ways > 1; }
/* What the fullest rank of a trace holds at its peak, in all and of each kind; -1: nothing is
 * recorded. */
int64_t sweep_held(const Trace *t, int64_t bytes[MEM_KINDS]);
/* Fills ways, of a sweep whose batches are read: none where the plan has fewer than two axes that
 * can be cut anew, or more than SWEEP_WAYS ways to do it. */
void sweep_read_ways(Sweep *s);
/* "of 6 ways to cut 8 ranks dp=2 tp=4 is the fastest that fits: 1.2 ms, the plan's 1.4 ms"; NULL:
 * there is one. */
const char *sweep_fastest(const Sweep *s);
/* What is counted of ways, `left` of which have no room; "" where there is none. */
const char *sweep_ways_words(const Sweep *s, int left);
/* "step", "step of one micro-batch": what the time is of. */
const char *sweep_span(const Sweep *s);
/* "Fits up to batch 64; of 6 ways ..." */
const char *sweep_title(const Sweep *s);
/* What is counted, and what is not drawn: `hidden` batches and `left` ways have no room. */
const char *sweep_totals(const Sweep *s, int hidden, int left);
/* "64", "65,536": of five digits and more in groups of three. */
const char *sweep_number(Arena *a, int64_t n);
/* "batch", of a plan without one "rows" */
const char *sweep_what(const Sweep *s);
/* "dp=2 tp=4": axes of one rank are left out. */
const char *sweep_way_name(const Sweep *s, const SweepWay *w);
#endif
