/* The one interpreter: it runs the steps of a program for each instance, in order. The ranks, the
 * unsharded program and integer data are the same walk over other programs and sources; what is to
 * be seen of it (checks, samples, comparisons, progress) is seen by observers. It refuses to know
 * what a value should be. */
#ifndef SP_EXEC_WALK_H
#define SP_EXEC_WALK_H
#include "exec/exec.h"
#include "exec/tasks.h"

/* Which of its runs the program is in: a training step, and a micro-batch of it; both from 0. */
typedef struct WalkInstance {
    int64_t iteration, part;
} WalkInstance;

/* Who looks on. Each function may be NULL; they are called in the order of the walk's list. */
typedef struct Observer {
    void *arg;
    void (*begun)(void *arg, WalkInstance at);      /* before anything is loaded for it;
                                                       also when it goes on after others */
    void (*loaded)(void *arg, int val);             /* an input or parameter, just read */
    void (*stepped)(void *arg, const Step *s);      /* just run; what it read is still there */
    void (*summed)(void *arg, const Step *s);       /* the last gradient to be added up over the
                                                       micro-batches: the sum is in the last one */
    void (*settled)(void *arg, const Step *s);      /* and added up, where it is a gradient */
    void (*ended)(void *arg, WalkInstance at);      /* all steps of an instance */
    void (*iterated)(void *arg, int64_t iteration); /* parameters are those of the next one */
    void (*stuck)(void *arg, const Step *s);        /* it cannot be run: e->stuck says why */
} Observer;

typedef struct Walk {
    Exec *e;
    /* of all ranks, where `e` is one of them: observers make what is in it, and values go there
     * when they go in `e`; NULL: none */
    Exec *beside;
    int64_t iterations, parts; /* training steps, micro-batches; 1: the one pass */
    int64_t from;              /* the first micro-batch; those before it are not run */
    bool load_first; /* sources are loaded before the first step (but for late ones, lives.h), else
                        as they are read */
    const Observer *const *observers; /* n of them */
    int n;
    Tasks *tasks; /* a pipeline: the order of its schedule; NULL: one instance after the other */
    const bool *stop; /* an observer has seen enough: set to end the walk; NULL: nobody does */
    double seconds_run, seconds_observed; /* filled in: loading and running; looking on */
    double seconds_loaded;                /* of seconds_run: making or reading what no step makes */
} Walk;
typedef enum {
    WALK_DONE,
    WALK_STUCK,   /* under a false label (trust: declared) a step could not be run */
    WALK_STOPPED, /* by an observer */
    WALK_FAILED   /* something could not be loaded; there is a diagnostic */
} WalkEnd;
/* Runs it all. Values that the last instance leaves stay in the executor. */
WalkEnd walk_run(Walk *w);
#endif
