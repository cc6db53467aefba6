/* Pipeline schedules as data: what each rank does, in which order, with which micro-batch on which
 * stage. An order is made by name (orders.c, orders_v.c) or read from a file (schedule_file.c);
 * sends and receives are put between (p2p.c); play.c lets all ranks go through theirs. It refuses
 * to know what a stage computes, and how long that takes. Sources: orders of PyTorch's
 * torch/distributed/pipelining/schedules.py; ZB-H1 of "Zero Bubble Pipeline Parallelism" (2023),
 * DualPipe of the DeepSeek-V3 report (2024). */
#ifndef SP_SCHEDULE_SCHEDULE_H
#define SP_SCHEDULE_SCHEDULE_H
#include "base/diag.h"

/* Forward; whole backward; its two halves: gradient of the input, gradients of the weights; what
 * travels between stages (the stage is the one that sends or receives). */
typedef enum {
    DO_F,
    DO_B,
    DO_I,
    DO_W,
    DO_SEND_F,
    DO_RECV_F,
    DO_SEND_B,
    DO_RECV_B,
    DO_KINDS
} ActionKind;
typedef struct Action {
    ActionKind kind;
    int stage, part; /* part: the micro-batch, from 0 */
    bool joined;     /* runs together with the next one, as one */
    Loc loc;         /* in the file it was read from */
} Action;
typedef struct ActionList {
    int n, cap;
    Action *a;
} ActionList;

/* What a real run does beside, where a file says so: FSDP's gather of a stage and its release, the
 * sum of a stage's gradients over ranks. */
typedef enum { ASIDE_UNSHARD, ASIDE_RESHARD, ASIDE_REDUCE, ASIDE_WAIT } AsideKind;
typedef struct Aside {
    AsideKind kind;
    int stage, at; /* at: so many actions of its list come before it */
    Loc loc;
} Aside;
typedef struct AsideList {
    int n, cap;
    Aside *a;
} AsideList;

typedef struct Schedule {
    Arena *arena;
    const char *name; /* "1f1b"; of a file: its path */
    int ranks, stages, parts;
    const int *home;  /* per stage: the rank that has it */
    bool both_ways;   /* DualPipe: the second half of the micro-batches runs the other way round, on
                         copies of the stages: stage s on rank ranks - 1 - s */
    bool forward;     /* of forward passes alone: nothing waits for its backward */
    ActionList *rank; /* per rank: its computation in order; after schedule_add_p2p with messages */
    AsideList *asides; /* of a file, per rank, as it was read: messages put between, and actions
                           left out, do not move it; NULL of a schedule by name */
} Schedule;

/* What a schedule is made for. */
typedef struct ScheduleAsk {
    const char *name;
    int ranks, chunks, parts; /* stages per rank, micro-batches; all at least 1 */
} ScheduleAsk;

/* How long one stage takes: forward, gradient of the input, of the weights; a forward and a whole
 * backward that run together. */
typedef struct StageTimes {
    double f, i, w, together;
} StageTimes;
/* What is known of a schedule by name. */
typedef struct ScheduleKind {
    const char *name, *title;
    int least_chunks, most_chunks; /* stages per rank; most 0: any number */
    bool v;                        /* V placement: rank r has stages r and 2p-1-r */
    bool both_ways;                /* micro-batches enter at both ends: see Schedule */
    const char *bubble;            /* the closed form of the idle time of a rank; NULL: none */
    bool torch_full;               /* PyTorch's class refuses fewer micro-batches than stages */
    const char *what;
    /* The idle time of a rank by that form; NULL: there is none. */
    double (*idle)(const ScheduleAsk *ask, const StageTimes *t);
    /* Most (stage, micro-batch) pairs in flight on a rank, from the forward to the last half of the
     * backward. */
    int (*flight)(const ScheduleAsk *ask, int rank);
    const char *(*refused)(const ScheduleAsk *ask, Arena *arena, const char **fix); /* or NULL */
    void (*make)(Schedule *s, const ScheduleAsk *ask);
} ScheduleKind;
/* All of them, in the order in which they are told; *n: how many. */
const ScheduleKind *schedule_kinds(int *n);
/* The row of a name, or NULL. */
const ScheduleKind *schedule_kind(const char *name);
/* Why there is no such schedule; NULL: there is one. *fix: what to do about it. Texts in `arena`.
 */
const char *schedule_refused(const ScheduleAsk *ask, Arena *arena, const char **fix);
/* The schedule, computation only; `ask` must not be refused. Lives in `arena`. */
Schedule *schedule_make(const ScheduleAsk *ask, Arena *arena);
/* An empty schedule with stages placed in a loop (stage s on rank s mod ranks) or as a V. */
Schedule *schedule_new(Arena *arena, const ScheduleAsk *ask, bool v);
void schedule_add(Schedule *s, int rank, Action a);

/* Leaves forwards alone, in their order, and what is sent between them. */
void schedule_keep_forward(Schedule *s);

/* The rank on which a stage works on a micro-batch. */
int schedule_rank_of(const Schedule *s, int stage, int part);
/* Is it one of the four that compute? */
bool action_computes(ActionKind k);
/* "2F5", "1SEND_B0"; the word alone, "SEND_B". */
const char *action_text(const Action *a, Arena *arena);
const char *action_word(ActionKind k);

/* Puts a send behind each action whose result another rank needs, and the receive into the list of
 * that rank, at the place where it is when the send is made, as PyTorch does. False if the order
 * comes to no end; what is never come to then has no messages, and playing it says where it stands.
 */
bool schedule_add_p2p(Schedule *s);

/* What is wrong with a schedule, whatever it was made by: an action that is missing, double, of no
 * such stage or on another rank. Errors (E0310) at the actions' places, or at `loc`. False if there
 * is any. */
bool schedule_check(const Schedule *s, Diags *d, Loc loc);
/* Reads rows of actions, one row a rank, in PyTorch's format: "0F0,0F1,,(1F2;0B0)OVERLAP_F_B", with
 * messages or without; UNSHARD and others that no message and no computation are, stand beside
 * them. `home`: per stage the rank (owned by the caller, in `arena`). NULL and diagnostics (E0310)
 * if it cannot be read; `path` is what errors name; that there is no such file is said of `loc`. */
Schedule *schedule_read(Arena *arena, Diags *d, Loc loc, const char *path, const int *home,
                        int stages);
/* Holds what a file says of gathers and reductions against its order: where it has any of UNSHARD
 * and RESHARD, and `gathers`, a stage is gathered before each use, and not twice; where it has any
 * REDUCE_GRAD, each stage has one, behind its last backward. Errors (E0310) at their places. False
 * if there is any. Wants the schedule as it was read. */
bool schedule_check_asides(const Schedule *s, Diags *d, bool gathers);
/* The first of a kind in the file; with `again` the first that is not the first of its stage.
 * NULL: there is none. */
const Aside *schedule_aside(const Schedule *s, AsideKind k, bool again);
#endif
