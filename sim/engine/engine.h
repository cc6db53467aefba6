/* What carries bytes between processes, each of which is one rank of a mesh: the interface of the
 * plug-ins that are opened at run time (`--mpi`, `--cuda`). Plain C types only: the program and a
 * plug-in may come from different compilers. An engine knows no values, layouts or steps. */
#ifndef SP_ENGINE_ENGINE_H
#define SP_ENGINE_ENGINE_H
#include <stdbool.h>
#include <stdint.h>

enum { ENGINE_EXIT = 5 }; /* code with which a run ends that lost a rank */

/* What a process is about: in all but ENGINE_RUNS no other rank can see whether it lives. */
typedef enum { ENGINE_STARTS, ENGINE_RUNS, ENGINE_GROUPS, ENGINE_ENDS, ENGINE_STAGES } EngineStage;
/* Ranks that nobody can name: somebody is silent, `at` is the EngineStage; each waits for another.
 */
enum { ENGINE_NOBODY = -1, ENGINE_ALL_WAIT = -2 };
enum { ENGINE_ABSENT = -2 }; /* the place of a rank that has not come */

/* What a machine lacks that an engine needs. */
typedef enum { ENGINE_NO_GPU, ENGINE_FEW_GPUS, ENGINE_NO_LIBRARY, ENGINE_LACKS } EngineLack;

/* What an engine tells the program, from any of its threads. None of them ends the process. */
typedef struct EngineHost {
    /* seconds of silence of a rank after which the run ends; waiting for a rank that works is none
     */
    double deadline;
    int64_t rank; /* as the launcher says, before the engine knows */
    bool share;   /* ranks may share a GPU */
    /* A rank is silent since so many seconds, or (0) its process has ended; `at` is the place that
     * it named last. */
    void (*lost)(void *arg, int64_t rank, double seconds, int64_t at);
    /* In the engine's own words. failed: it cannot be opened here, which returns NULL. died: that
     * of a rank failed where that was (`at`), opened or not; all processes end behind it. */
    void (*failed)(void *arg, const char *what);
    void (*died)(void *arg, int64_t rank, int64_t at, const char *what);
    /* Instead of `failed`, on rank 0: what the machine of that rank lacks. */
    void (*lacks)(void *arg, int64_t rank, EngineLack what, const char *text);
    void (*stage)(void *arg, EngineStage stage); /* another has begun */
    void (*lives)(void *arg); /* again and again, but in ENGINE_RUNS: this process is not stopped */
    void *arg;
} EngineHost;

/* One message: to or from a rank. Between two ranks messages come in the order in which both list
 * them. None of 0 bytes is sent. */
typedef struct EngineItem {
    int64_t peer, bytes;
    void *p;
} EngineItem;
typedef enum { ENGINE_F32, ENGINE_F64 } EngineNumber;
/* A sum or maximum over a group, in the engine's own order: element by element (each NULL), or of
 * the blocks of `each` member, of which a rank gets its own. */
typedef struct EngineSum {
    int group;
    EngineNumber number;
    bool max;
    const void *mine;
    void *out;
    int64_t n;           /* elements of `mine` */
    const int64_t *each; /* elements of the block of each member, in the group's order, or NULL */
} EngineSum;

/* Where messages and sums lie and whom they are between. NULL in its place: in the host's memory,
 * between all ranks. */
typedef struct EngineOn {
    void *stream; /* they lie in the memory of the engine's GPU, and are moved behind what this
                     stream of it was asked before: a cudaStream_t */
    int group;    /* a peer is a place in this group; -1: a rank */
} EngineOn;
/* Functions return when all they ask for has been done, but on a stream when it has been asked for:
 * settle says when that is done. A process that waits sleeps. An engine that
 * fails, or that loses a rank, tells its host and ends all processes. */
typedef struct Engine Engine;
struct Engine {
    int64_t rank, ranks;
    const char *name; /* "Open MPI 4.1.4" */
    int device;  /* the GPU that its ranks compute on, as CUDA counts them here; -1: the host */
    int sharing; /* ranks that compute on that GPU, this one counted; 0: there is none */
    int64_t at;  /* where this process is: set by the program, read by any thread */
    void (*exchange)(Engine *e, const EngineOn *on, const EngineItem *out, int n_out,
                     const EngineItem *in, int n_in);
    /* The same for what ranks say of the run, not what its moves bring: it lies in the host's
     * memory, and most of it goes to rank 0 or comes from there. */
    void (*tell)(Engine *e, const EngineItem *out, int n_out, const EngineItem *in, int n_in);
    /* The least of what all ranks say; all of them call it. */
    int64_t (*least)(Engine *e, int64_t mine);
    /* Returns when what streams were asked for is done. NULL: nothing lies on a GPU. */
    void (*settle)(Engine *e);
    /* A group, from all ranks at once: those with equal `color`, in the order of `place`.
     * -1: there are too many. ungroup forgets all of them. */
    int (*group)(Engine *e, int64_t color, int64_t place);
    void (*ungroup)(Engine *e);
    void (*sum)(Engine *e, const EngineOn *on, const EngineSum *s); /* on: its stream alone */
    /* Ends all processes with that exit code. */
    void (*abort)(Engine *e, int code);
    /* When all ranks are here: ends the engine. */
    void (*close)(Engine *e);
};
/* The one symbol of a plug-in. NULL: it could not be started, and the host was told. Its number is
 * that of the structs above: whatever changes in them raises it, so that a program and a plug-in of
 * different ones do not find each other, instead of reading each other's memory. */
#define ENGINE_OPEN shardproof_engine_6
#define ENGINE_TEXT(x) #x
#define ENGINE_TEXT_OF(x) ENGINE_TEXT(x)
#define ENGINE_SYMBOL ENGINE_TEXT_OF(ENGINE_OPEN)
typedef Engine *EngineOpen(const EngineHost *host);
#endif
