/* How long each part of a run takes beside the others, for an honest percentage, and roughly how
 * long it all takes: ratios mean something, seconds only tell what ends from what does not. The
 * numbers come from the walk on the dry device, which counts the operations of the kernels that it
 * is asked to run and the bytes that are taken for what they make: whatever the run and its check
 * will do is in them, and nothing else. Here is only what an operation and a byte cost. */
#ifndef SP_EXEC_WORK_H
#define SP_EXEC_WORK_H
#include "base/progress.h"
#include "exec/walk.h"

typedef struct Work {          /* nanoseconds */
    double *load, *load_check; /* per value: an input or parameter read, and looked at */
    double *step, *check;      /* per step, and what looks at it */
    double total;              /* all of them, as often as the run does them */
    double flops;              /* floating-point operations of the steps, as often; distinct ones */
} Work;
/* Nothing known yet; in `a`. */
Work *work_new(Arena *a, const Program *p);

/* Who looks at a walk for its work. On the dry device it writes down what each event takes; in the
 * run it tells the same to whoever waits. */
typedef struct WorkEye {
    Exec *e;
    Work *work;
    Progress *progress; /* of the run; NULL: nobody waits */
    int64_t iterations,
        parts; /* how often the run does what the dry walk does WORK_TURNS times at most */
    double turns_iteration, turns_part; /* how many of them the current one stands for */
    DeviceWork before;                  /* the last event */
} WorkEye;
enum { WORK_TURNS = 2 }; /* training steps and micro-batches: those after the second do the same */
/* How many of n turns a dry walk makes. */
int64_t work_turns(int64_t n);
/* Two observers: what is done up to the first is the run's, from there to the last the others'
 * between them in the list. */
void work_observers(WorkEye *x, Observer *first, Observer *last);

/* What level 3 takes, from the device's work at its beginning and its end; and what it takes to
 * compare an element of a result with the unsharded run. */
double work_exact(DeviceWork from, DeviceWork to);
double work_compare(int64_t elements);
#endif
