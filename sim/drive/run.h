/* One plan on its way through the passes, and the parts of the driver that work on it: front.c,
 * limits.c, fit.c, dry.c, passes.c, execute.c, observers.c, numbers.c, nonfinite.c, outside.c. For
 * sim/drive only. */
#ifndef SP_DRIVE_RUN_H
#define SP_DRIVE_RUN_H
#include "drive/against.h"
#include "drive/endtoend.h"
#include "drive/memory.h"
#include "drive/ranks.h"
#include "exec/check.h"
#include "exec/exact.h"
#include "exec/routes.h"
#include "exec/walk.h"
#include "exec/work.h"

/* What a run needs: memory, and nanoseconds of work (work.h). */
typedef struct RunNeed {
    MemoryNeed memory;
    double exact, compare; /* level 3; the comparison with the unsharded run */
    double all;            /* with the ranks, their check and the unsharded run */
} RunNeed;

typedef struct Run {
    Arena *arena;
    Diags *d;
    const PipelineOptions *o;
    PipelineReport *rep;
    Plan *plan;
    Mesh *mesh;
    Model *model, *whole; /* whole: of the whole batch, where micro-batches cut it; else the same */
    Assign *assign;
    const struct Play *stuck; /* a schedule that comes to no end, as far as it goes; or NULL */
    Program *program;
    Trace *t;
    Weights *weights;
    Pool *pool;
    Check *check;
    Exec *exec;
    WorkEye eye, ref_eye;  /* look at the walk of the ranks, and at the unsharded one */
    Work *work, *ref_work; /* of the ranks and their check; of the unsharded run */
    FullSource src, pure;  /* what the ranks load, and what their check holds them against: of the
                              same micro-batch and training step */
    double *losses; /* per training step, on rank 0, added up over the micro-batches; NULL: there is
                       no loss */
    Program *unsharded; /* the same model on a mesh of one rank */
    Device *dev;
    Device *on;                  /* of the dry walk: that of the ranks' blocks; NULL: the same */
    const Observer *const *look; /* who looks at the walk of the ranks */
    int n_look;
    Sides *sides;          /* of bends, kept for the unsharded run; NULL: nobody asks */
    SidesTaken taken;      /* what of them it took over */
    bool distances;        /* ranks keep all, for their distances */
    bool quick;            /* products are held by projections */
    bool dry;              /* this is the walk with sizes only, before the run */
    int64_t follow;        /* it goes on up to so many bytes; 0: a TiB */
    bool stop;             /* it has seen enough */
    WalkInstance at;       /* where the walk of the ranks is */
    struct Tables *tables; /* its count */
    int64_t peak_sharded, peak_unsharded; /* most bytes of values on the ranks; unsharded */
    RunNeed need;                         /* what it found */
    int found;                            /* by verify */
    bool nonfinite;                       /* reported already */
    Against *against;                     /* NULL: no file */
    struct Busy *busy;                    /* of a device with a clock; NULL: it has none */
    struct Real *real; /* ranks are processes, and this is one of them; NULL: all are here */
} Run;
typedef struct Real Real;

/* All training steps, or the one pass; of the dry walk at most WORK_TURNS. */
int64_t run_iterations(const Run *r);
/* Ranks' values are written, or compared, when all is done. */
bool run_keeps_all(const Run *r);
/* Does the program go backward? */
bool run_backward(const Run *r);
/* Are the values of the unsharded run kept for a comparison? */
bool run_keeps_whole(const Run *r);
/* Is the unsharded run made? A quick check leaves it out unless somebody asks for it. */
bool run_has_reference(const Run *r);
/* Does the run end in time and fit into memory? Makes r->exec, r->work and r->need. False and
 * E0701, E0703 or E0707 before anything is allocated. */
bool limits_fit(Run *r);
/* Does what each of the processes needs fit into its GPU's memory? All of them ask; E0608 on rank
 * 0, whose answer counts. */
bool limits_fit_gpus(Run *r);
/* What r->program needs on this machine, without a word about it: makes r->exec (the caller frees
 * it), r->unsharded, r->quick and r->need. */
void dry_estimate(Run *r);
/* Have two layers the same ops, of the same sizes? */
bool dry_same_layer(const Graph *g, int k, int l);
/* Do so many bytes fit into the room? A sixteenth of it is left alone. */
bool dry_within(int64_t bytes, int64_t room);
/* How long so much work takes here, roughly; a run that is put beyond RUN_MAX_HOURS is a slip, and
 * beyond RUN_UNASKED_HOURS full widths must be asked for (`shrink: 1`). */
enum { RUN_MAX_HOURS = 100, RUN_UNASKED_HOURS = 1 };
double dry_hours(const RunNeed *need);
/* Settings with which a run fits. */
typedef struct {
    int64_t shrink; /* 0: none does */
    int layers;     /* of the plan's, this many; 0: all of them */
    RunNeed need;   /* what it then needs */
} Fit;
/* The smallest `shrink` above the plan's, of those that double it, with which the run fits into
 * `room` bytes and into so many hours: each is lowered and walked with sizes only. Where none does,
 * or the plan's layers and ranks are too many for that, the same with as few layers as it can have,
 * and from the plan's own `shrink` on. */
Fit fit_shrink(const Run *r, int64_t room, double hours);
/* The most threads, of those that halve the run's, with which it fits into `room` bytes, of which
 * each thread above the first takes `stack`; what it then needs goes into *need. 0: none do, or
 * nobody knows, or it has one thread. */
int fit_threads(const Run *r, int64_t room, int64_t stack, RunNeed *need);
/* Which key makes a run that is refused so large, in time or in memory: of the sizes of the data
 * that make up more than half of it, the largest; else the model. Each is lowered and walked with
 * an eighth of it, if the program and its ranks are not too many for that. */
Loc fit_cause(const Run *r, bool time);
/* Is it worth while to divide widths? Not those of an mlp, nor of weights that come from a file,
 * nor where steps and ranks are too many to be walked again and again. */
bool fit_shrinks(const Run *r);
/* The model and its program as r->plan says them, before anything is planted: makes r->mesh to
 * r->program, which is NULL if it is too large to be looked at. False and diagnostics in r->d. */
bool run_front(Run *r);
bool run_lower(Run *r);
/* The passes of a run, on r->dev: ranks and check, level 3, the unsharded program and the
 * comparison. False if they did not come to their end; *ran: the ranks did. */
bool passes_run(Run *r, bool *ran);
/* Of them the ranks alone, with whoever looks on, in a dry walk whose ranks have a device of their
 * own. */
void passes_ranks(Run *r);
/* The same passes with sizes only: what they need, and what they take (r->work, r->ref_work). A
 * terabyte is enough to know. */
RunNeed dry_run(Run *r);
/* Most bytes in the memory of the GPU that this process's ranks lie on: of the walk that the run
 * will make, over a GPU that only counts (exec/device_gpu.h). */
int64_t dry_on_gpu(const Run *r);
/* Runs the lowered program on all ranks with its checks, the unsharded one, and compares. False: it
 * was refused, or something could not be loaded (errors are in r->d). */
bool execute_run(Run *r);
/* All who look at the run of the ranks, or of them those who check, *n of them; in r->arena. */
const Observer *const *observers_of(Run *r, int *n);
const Observer *observers_check(Run *r);
/* Keeps the sides of bends, in the dry walk too, which counts them. */
const Observer *observers_sides(Run *r);
/* Keeps the numbers of a small value that the step has just made, for pictures. */
void numbers_keep(Run *r, const Step *s);
/* The first element of what the first rank holds of a value, as a double; NaN if it holds none. */
double numbers_first(const Run *r, int val);
/* Reports the first step of the run that makes a NaN or an infinity (E0504). */
void nonfinite_find(Run *r, const Step *s);
/* ---- ranks that are processes (real.c); of a virtual run these do nothing ---- */
/* Are there as many processes as the mesh has ranks? False: E0603. */
bool real_fits(Run *r);
/* After r->exec was prepared, before the walk: makes r->real. */
void real_begin(Run *r);
/* The executor that is walked: of the own rank, or of all. */
Exec *real_exec(const Run *r);
/* The executor of all ranks beside it, where this process is one of them and checks; else NULL. */
Exec *real_beside(const Run *r);
/* Is this the process that checks? */
bool real_checks(const Run *r);
/* The observers of a walk whose ranks are processes: `look` (*n of them, whom only rank 0 has)
 * between the one that sends what this process holds to rank 0, and is told there what all hold,
 * and the one that lets go of it again. *n becomes their number; the list is r->arena's, the
 * observers in it are the caller's. Only after real_begin. */
const Observer *const *real_observers(Run *r, const Observer *const *look, int *n);
/* After the walk, on all ranks, which wait for each other here: did an act change numbers on any of
 * them (r->exec->edited), the floating-point operations of this process (r->exec->flops), and the
 * seconds that steps and moves took, into r->t. After WALK_FAILED rank 0 has an error in r->d
 * (E0606, if it has none yet). */
void real_walked(Run *r, WalkEnd end);
/* After r->exec is freed, some of whose blocks may be elsewhere. */
void real_end(Run *r);
/* Opens the file of --against. False and a diagnostic if it cannot be compared. */
bool outside_open(Run *r);
/* N0015 for each index list in which the unsharded run took choices of the run over. */
void ties_notes(const Run *r);
/* That sides of bends (exec/sides.h) decided whether the end of the run agrees. */
void sides_note(const Run *r);
/* That rounding leaves nothing of values at the end (`nothing_left` of the report). */
void nothing_left_note(const Run *r);
/* N0020 where ops overflowed inside (`beyond` of the check). */
void beyond_note(const Run *r);
/* After a training step of the ranks; of the unsharded run (`arg` is the Run). */
void outside_ranks_stepped(Run *r, int64_t step);
void outside_reference_stepped(void *arg, Exec *e, int64_t step);
/* Does --against want the unsharded model in bf16 too? */
bool outside_wants_narrow(const Run *r);
/* When all is done: writes the file of --save-values, reports on that of --against. `narrow`: that
 * run in bf16, or NULL. */
void outside_finish(Run *r, const Reference *ref, const Reference *narrow);
#endif
