/* Numbers of the memory picture: what a rank class holds at its peak, and which values live after
 * each step. Takes the recorded bytes and lifetimes as they are. Refuses
 * to guess what the trace does not count: buffers of collectives, workspace, fragmentation. */
#ifndef SP_RENDER_MEMORY_H
#define SP_RENDER_MEMORY_H
#include "render/furniture/words.h"

typedef enum { MEM_PARAMS, MEM_OPTIMIZER, MEM_GRADS, MEM_ACTS, MEM_GATHERED, MEM_KINDS } MemKind;

/* A rank class at its peak. */
typedef struct {
    RankSet ranks;
    int64_t rank;             /* its first */
    int64_t bytes[MEM_KINDS]; /* activations: all live values that are no gradients of parameters */
    int64_t total,
        numbers; /* numbers: how many the parameters at rest have; 0 if that is not even */
    int step;    /* of the peak; -1 if nothing is recorded */
} MemClass;
/* One row per rank class, largest first; returns their number, 0 if the trace has no memory
 * records. */
int memory_classes(Arena *a, const Trace *t, MemClass **out);

/* A value and how long the rank holds it. */
typedef struct {
    const TraceValue *v;
    int64_t bytes;
    int from, last;  /* steps during which it is held */
    bool grad, copy; /* gradient of a parameter; copy of a parameter, made for use */
    bool shared;     /* by all micro-batches: what they add to, what is gathered once */
} MemLife;
/* Who does a step of a pipeline: a micro-batch, one that goes the other way, nobody of them: it is
 * done once, after the last. */
typedef enum { MEM_OWN, MEM_OTHER, MEM_AFTER } MemTurn;
/* The course of one rank over the steps. */
typedef struct {
    int64_t rank;
    int n_steps, n_life, peak; /* peak: the step */
    int from;                  /* first step of what is shown of it, from which `peak` counts */
    MemLife *life;
    MemTurn *turn; /* by step */
    int64_t *live, *grad, *all,
        at_peak;    /* by step. live: values as recorded; grad: part of it that is gradients of
                       parameters; all: live and the copies of parameters gathered for use */
    int64_t flight; /* part of live at the peak: what other micro-batches of a pipeline hold */
    bool exact;     /* the lifetimes add up to what was recorded, at every step; in a pipeline they
                       are of one micro-batch, and no more than that at the peak */
} MemCourse;
/* Of a pipeline: what the rank's coordinate holds over the modelled time, from one change to the
 * next. The bytes are of the rank there that has most. */
typedef struct {
    double from, to;          /* seconds */
    int64_t all, gathered;    /* beside what lies at rest; part of it: copies of parameters */
    const TraceAction *a, *b; /* what is done, b: together with a; NULL: it waits */
    int flight;               /* pairs of stage and micro-batch */
} MemMoment;
typedef struct {
    int n, coord; /* on the axis of the pipeline */
    MemMoment *at;
    double end;    /* of the last action of any rank */
    int64_t grads; /* part of all throughout: what micro-batches add up to */
    /* the most that is held after the last micro-batch, not over time, and the gradients of it; 0:
     * nothing is done then */
    int64_t after, after_grads;
    int peak; /* the moment that holds most; -1: it is after */
    int64_t at_peak;
} MemTime;
/* False where the trace has no schedule with times, or does not say what is held. In the arena. */
bool memory_time(Arena *a, const Trace *t, const MemCourse *c, MemTime *out);
/* Whose course is shown: the rank that was asked for (-1: none), else the first of the class that
 * holds most, which titles speak of; n: how many classes there are. */
int64_t memory_rank(int64_t asked, const MemClass *cls, int n);
/* False if the trace has no records of memory for that rank. In the arena. */
bool memory_course(Arena *a, const Trace *t, int64_t rank, MemCourse *out);
/* The rank's live bytes at the peak if experts' rows, which count as expected, were those of the
 * run
 * (*run; -1: nobody counted them) and as many as may come (*most), each at a peak of its own.
 * False: there are no rows, or lifetimes are not known exactly. */
bool memory_rows(Arena *a, const Trace *t, const MemCourse *c, int64_t *run, int64_t *most);
/* What lives at a step, largest first. */
int memory_alive(Arena *a, const MemCourse *c, int step, const MemLife ***out);
/* An axis of bytes: unit, distance of ticks and the largest, in units. */
typedef struct {
    const char *unit;
    double bytes, tick, top;
} MemScale;
/* For up to `most` bytes with about so many ticks. */
MemScale memory_scale(int64_t most, int ticks);
/* Bytes of memory that the trace's line about the hardware states ("80 GB memory"); 0: none. */
int64_t memory_capacity(const Trace *t);
/* Adds what lies there by kind as one JSON object: {"parameters":1024,...}. */
void memory_add_parts(Str *s, const int64_t bytes[MEM_KINDS]);
#endif
