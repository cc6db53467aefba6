/* The processes of a real run: how they come together, agree and end. Each of them runs the whole
 * program on the same command line; rank 0 checks, reports and writes. */
#ifndef SP_DRIVE_RANKS_H
#define SP_DRIVE_RANKS_H
#include "base/diag.h"
#include <stdbool.h>
#include <stdint.h>

struct Engine;
struct Program;
typedef struct Ranks Ranks;
typedef struct RanksOptions {
    double deadline;     /* seconds of silence after which a rank is lost (E0605) */
    bool engine_sums;    /* reductions are the engine's own: their order is not the declared one */
    const char *version; /* of this program: that of all must be the same */
    bool gpus;           /* one GPU for each rank, through NCCL; else MPI */
    bool share;          /* ranks may share a GPU, where a machine has fewer */
} RanksOptions;

/* Starts the engine of the launcher that started this process. NULL: E0601, E0603, E0604 or E0607.
 * Ended by ranks_close, once all processes call it. */
Ranks *ranks_open(Arena *arena, Diags *d, const RanksOptions *o);
void ranks_close(Ranks *r);
/* Where no launcher has: runs this program with the words `argv` as n processes of this machine, to
 * their end; rank 0's exit code. They have said all there is to say; else E0604 or E0607. */
int ranks_spawn(Diags *d, int64_t n, char **argv);
/* The same on an engine that is there. */
Ranks *ranks_new(Arena *arena, struct Engine *engine, const RanksOptions *o);
/* Was this process started by a launcher, as another rank than 0? It is asked before there is an
 * engine: such a process has nothing to say. */
bool ranks_silent(bool gpus);
/* Was it started by one with others? Asked as early. */
bool ranks_launched(bool gpus);
bool ranks_first(const Ranks *r);
int64_t ranks_count(const Ranks *r);
bool ranks_engine_sums(const Ranks *r);
void ranks_sum_by_engine(Ranks *r, bool does); /* from the next plan on; all processes call it */
/* The name of what carries the bytes, for the trace: "mpi", "nccl". */
const char *ranks_backend(const Ranks *r);
/* The GPU of this process, as CUDA counts them; -1: its ranks compute on the host. */
int ranks_device(const Ranks *r);
/* Ranks that share the GPU of this process; 0 where it has none. */
int ranks_sharing(const Ranks *r);
/* The most of all processes, which all call it. */
int ranks_most_sharing(Ranks *r);
/* Was it started with --cuda? */
bool ranks_on_gpus(const Ranks *r);
/* Says (W0602) that ranks share a GPU, where any do. All processes call it; rank 0 says it. */
void ranks_warn(Ranks *r, Diags *d);
/* Of the processes on this machine there are so many. */
int64_t ranks_beside(const Ranks *r);
struct Engine *ranks_engine(Ranks *r);
/* Workers of this process for its own steps, if `asked` (0: as many as there is room for) are asked
 * for: the processes of a machine share its cores. (Rank 0 checks on all of them, while the others
 * sleep.) */
int ranks_threads(const Ranks *r, int asked);

/* Once, before any plan: true if all processes are of one version and are about to do the same, of
 * which `task` is a short name ("check of 2 plans"). Else E0606 into rank 0's `d`. */
bool ranks_greet(Ranks *r, Diags *d, const char *task);
/* Once for every plan, whatever became of it, and for its files: true if all processes are ready to
 * run the same, which `what`, a hash, stands for. False otherwise; where rank 0 is ready and
 * another is not, or has something else, E0606 into rank 0's `d`. ranks_next is the next plan's
 * beginning.
 */
typedef enum { RANKS_PLAN, RANKS_PROGRAM, RANKS_FILES } RanksMatter;
bool ranks_meet(Ranks *r, Diags *d, bool ready, uint64_t what, RanksMatter of);
bool ranks_met(const Ranks *r);
void ranks_next(Ranks *r);
/* Can all processes do a thing ("open its GPU")? False: one cannot, E0601 into rank 0's `d`, unless
 * it is rank 0 that cannot. */
bool ranks_all(Ranks *r, Diags *d, bool can, const char *what);
/* What rank 0 says, for all of them. */
int ranks_decide(Ranks *r, int mine);
/* Which program is run: for the words about a rank that is lost. NULL: none. */
void ranks_run(Ranks *r, const struct Program *p);
#endif
