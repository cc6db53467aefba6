/* The passes of the program, in their order, from the text of a plan to a trace. main.c and the
 * tests call this and nothing below it. */
#ifndef SP_DRIVE_PIPELINE_H
#define SP_DRIVE_PIPELINE_H
#include "base/progress.h"
#include "plan/plan.h"
#include "trace/trace.h"

struct Exec;
struct Step;
/* How a run's products are held: each element computed again, or random projections of them
 * (exec/project.h); the third chooses by size. */
typedef enum { CHECK_FULL, CHECK_QUICK, CHECK_AUTO } CheckHow;
enum { CHECK_AUTO_GFLOP = 50 }; /* above so many distinct GFLOP the third is quick */
typedef struct PipelineOptions {
    bool execute;   /* false: shape-only, no tensor data is allocated */
    bool structure; /* not executed: what verify found stands in the trace as checks of level 0 */
    bool events;    /* simulate the timeline from the hardware profile */
    bool numbers; /* keep the numbers of small values (<= 64 elements), and samples of collectives,
                     in the trace */
    int64_t rank; /* whose groups are sampled; below 0: rank 0 */
    bool strict;  /* SUSPECT counts as a failure */
    bool full;    /* --full: the widths of the model are asked for, however long it takes */
    int exact;    /* level 3 for so many seeds of integer data; 0: not */
    bool
        sensitivity; /* measure the bounds of the end-to-end comparison by a second unsharded run */
    CheckHow check;
    bool end_to_end;    /* compare with the unsharded run also where a quick check leaves it out */
    bool no_end_to_end; /* leave it out of a full check too: every step is held all the same */
    bool distances; /* say of every value how far it is from the unsharded model's: left out where
                       no unsharded run is made, ranks do not hold their values here, or keeping
                       them all takes much */
    bool stuck;     /* of a schedule that comes to no end a trace says how far it goes */
    bool no_verify; /* skip the static rules (mutation tests) */
    int threads;    /* 0: all cores */
    const char *hardware; /* overrides the plan's */
    const char *fault;    /* --fault NAME: an extra fault, or NULL */
    bool sound; /* leave out the mistakes that the plan plants (faults, gradients) or a key of it
                   asks for (plan_asks_wrong): what it would be without */
    const char *against, *map; /* --against FILE, --map FILE */
    int64_t against_of; /* --against-rank: 1 + the rank that the file is of; 0: its names say it */
    double tolerance;   /* --tolerance; 0: by dtype */
    const char *save_values; /* --save-values FILE */
    const char *dump;        /* --dump PASS: prints that pass to `dump_to` */
    FILE *dump_to;
    int64_t memory_limit; /* bytes; 0: what the machine has */
    Progress *progress;   /* told of the work and of what is done of it; may be NULL */
    /* Called after each step of the sharded run, before its check and once more after it
     * (`checked`); may be NULL. What it changes in the values counts: tests spoil results here. */
    void (*watch)(void *arg, struct Exec *e, const struct Step *s, bool checked);
    void *watch_arg;
    int64_t check_piece;   /* Check.piece, for tests; 0: as it is */
    struct Ranks *ranks;   /* the ranks are processes, and this is one of them; NULL: virtual */
    struct Device *device; /* where the ranks compute; NULL: on the host */
} PipelineOptions;

typedef struct PipelineReport {
    Plan *plan;         /* as parsed, also if there were errors */
    int exit;           /* exit code of this plan before `expect` is applied: 0, or 1, 3, 4, 5 */
    const char *shrunk; /* "D 4096 -> 256, F 14336 -> 896", or NULL */
    int64_t batch;      /* sequences of a step, of all ranks and micro-batches; rows where `rows` */
    bool rows;          /* the model has no sequences: its data are rows of a matrix */
    bool idle;          /* some ranks have nothing to do, or do what others do */
    const char
        *data_parallel; /* of a plan with gradients: "ddp over dp*cp, the default", or NULL */
    /* --against */
    int n_against;
    struct AgainstRow {
        const char *name;
        double max_abs, max_rel, tolerance;
        int64_t count;
        bool ok, missing_here, missing_there,
            unread;      /* unread: the file failed meanwhile (E0102) */
        const char *why; /* what is wrong with its shape, order or numbers; or NULL */
    } * against;
    bool quick, end_to_end; /* products were held by projections; the unsharded run was made */
    const char *end_to_end_worst; /* value, of the comparison with the unsharded float64 model */
    double end_to_end_rel;        /* of its largest magnitude, as is its bound */
    double end_to_end_bound;
    int64_t nothing_left; /* values that rounding moves by more than their largest number */
    const char *nothing_left_first;
    bool sides_decided; /* it agrees once the unsharded model has the ranks' sides of bends */
    bool loss_wrong; /* beyond its bound: that of the last step, and what the unsharded model has */
    double loss, loss_unsharded;
    double seconds_sharded, seconds_reference, seconds_check;
    double seconds_loaded; /* of seconds_sharded: inputs and weights made or read */
    int64_t peak_bytes;
    int64_t predicted_bytes;  /* what the run was expected to need beyond what the process had */
    int64_t predicted_device; /* the same of the memory of this process's GPU */
    double flops_distinct;
    const char *gemm; /* instruction set */
    int64_t n_losses; /* pass: train: loss of every step, on rank 0 */
    double *losses;
    bool fault_acted;     /* a planted mistake changed at least one bit of its step's output */
    int64_t unobservable; /* ranks of reductions that could be missing unnoticed */
    const char **unobservable_text;
} PipelineReport;

/* Runs all passes on one plan. Everything lives in `arena`, the report's texts too. Returns NULL if
 * the plan could not be understood (errors are in `d`); a plan that breaks a rule or whose values
 * differ still gives a trace with its verdict. */
Trace *pipeline_run(Arena *arena, Diags *d, PlanText given, const PipelineOptions *o,
                    PipelineReport *report);
#endif
