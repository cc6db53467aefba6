/* The processes of a real run. See ranks.h. What is said of a lost rank is said from the engine's
 * own thread, while the others work. */
#include "drive/ranks.h"
#include "base/ends.h"
#include "base/text.h"
#include "engine/claim.h"
#include "engine/guard.h"
#include "engine/place.h"
#include "engine/plugin.h"
#include "engine/spawn.h"
#include "exec/exec.h"
#include "trace/trace.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct Ranks {
    Arena *arena;
    RanksOptions o;
    Engine *engine;
    Guard guard; /* of this process, where a launcher has started it */
    int64_t rank, beside;
    bool met;
    const char *failed; /* why the engine did not start */
    struct {
        int64_t rank;
        EngineLack what;
        const char *text; /* NULL: nothing is lacking */
    } lack;
    _Atomic(const Program *) program;
};
/* What a process says of itself, first of all and before a plan is run. */
typedef struct {
    char version[16], task[112];
} Greeting;
typedef struct {
    int64_t ready;
    uint64_t what;
} Hello;

/* ---- ends ---- */
/* "at step 12, all_reduce of layers.0.o_proj"; `at` is the value that it made, from 1. */
static const char *place_text(const Ranks *r, int64_t at, Arena *arena) {
    const Program *p = atomic_load(&r->program);
    if (!r->engine) return "where its engine starts";
    if (at < 0) return "past the last value of its plan";
    if (!p && at)
        return arena_printf(arena,
                            "at value %lld or later of a plan that rank %lld has run to its end",
                            (long long)at, (long long)r->rank);
    if (!p || !at || at > p->nv) return "before the first value of a plan";
    const Val *v = &p->val[at - 1];
    if (v->step < 0)
        return arena_printf(arena, "where it reads %s", program_value_name(p, v, arena));
    return arena_printf(arena, "at step %d, %s", v->step, step_name(p, &p->step[v->step], arena));
}
/* What is said of a rank that shows no life: by its guard, and by the others, who cannot name it.
 */
static const struct {
    const char *guard, *others;
} silent[] = {
    [ENGINE_STARTS] = {"while it started",
                       "the processes did not come together within %s: one of them did not start, "
                       "hangs or is stopped; all of them end [E0605]"},
    [ENGINE_RUNS] = {"while it ran and no other rank said so", ""},
    [ENGINE_GROUPS] = {"while groups for sums were made",
                       "groups for sums were not made within %s: a rank hangs or is stopped; all "
                       "ranks end [E0605]"},
    [ENGINE_ENDS] = {"while it ended; what the run has written is whole",
                     "the processes did not end within %s: one of them hangs or is stopped; what "
                     "the run has written is whole; all of them end [E0605]"},
};
/* In the guard's process. */
static void no_life(void *arg, EngineStage stage, double seconds) {
    Arena *tmp = arena_new();
    base_last_words(
        "its process was stopped, or its machine hangs; --deadline gives a machine that "
        "is only busy more seconds",
        "rank %lld has been silent for %s, %s; all ranks end [E0605]",
        (long long)((Ranks *)arg)->rank, time_text(seconds, tmp), silent[stage].guard);
    arena_free(tmp);
}
/* Whose wire may be blocked. */
static const char *const all_wait_help[] = {
    "is a connection between two machines blocked? Open MPI takes the network of --mca "
    "btl_tcp_if_include; --deadline gives a slow one more seconds",
    "is a connection between two machines blocked? NCCL takes the network of NCCL_SOCKET_IFNAME, "
    "and says with NCCL_DEBUG=INFO which one that is; --deadline gives a slow one more seconds"};
static void stage(void *arg, EngineStage s) { guard_stage(&((Ranks *)arg)->guard, s); }
static void lives(void *arg) { guard_lives(&((Ranks *)arg)->guard); }
static void lost(void *arg, int64_t rank, double seconds, int64_t at) {
    const Ranks *r = arg;
    Arena *tmp = arena_new();
    if (rank == ENGINE_NOBODY)
        base_last_words("look at the machine of each process and at the launcher's own words; "
                        "where the machines are busy, --deadline gives them more seconds",
                        silent[at].others, time_text(seconds, tmp));
    else if (rank == ENGINE_ALL_WAIT && !r->engine)
        base_last_words(all_wait_help[r->o.gpus],
                        "the engine did not start within %s: the processes have met, and each "
                        "waits for another; all of them end [E0605]",
                        time_text(seconds, tmp));
    else if (rank == ENGINE_ALL_WAIT)
        base_last_words(all_wait_help[r->o.gpus],
                        "each rank has waited for another for %s, rank 0 %s; all of them end "
                        "[E0605]",
                        time_text(seconds, tmp), place_text(r, at, tmp));
    else if (at == ENGINE_ABSENT)
        base_last_words("was it started, with the same MASTER_ADDR and port, and no other process "
                        "with its number? Its own words say; --deadline gives one that comes late "
                        "more seconds",
                        "rank %lld has not come within %s; all ranks end [E0605]", (long long)rank,
                        time_text(seconds, tmp));
    else if (seconds <= 0)
        base_last_words(
            "look at its own words, and at the system's: a machine that runs out of "
            "memory ends processes",
            "the process of rank %lld has ended, last heard of %s; all ranks end [E0605]",
            (long long)rank, place_text(r, at, tmp));
    else
        base_last_words("its process was stopped, or its machine or the network to it hangs; "
                        "--deadline gives a machine that is only busy more seconds",
                        "rank %lld has been silent for %s, last heard of %s; all ranks end [E0605]",
                        (long long)rank, time_text(seconds, tmp), place_text(r, at, tmp));
    arena_free(tmp);
}
/* What leads to the cause of an engine's failure: does a program without us run? */
static const char *const engine_help[] = {
    "these are the words of MPI; if `mpirun -n 2 shardproof check 02-toymodel-2 --mpi` fails too, "
    "the fault is in how MPI is installed, or in the network",
    "if `shardproof run 02-toymodel-2 --cuda` fails too, the fault is in the machine; "
    "NCCL_DEBUG=INFO has NCCL say more"};
static void failed(void *arg, const char *what) {
    Ranks *r = arg;
    r->failed = arena_strdup(r->arena, what);
}
static void died(void *arg, int64_t rank, int64_t at, const char *what) {
    const Ranks *r = arg;
    Arena *tmp = arena_new();
    if (r->engine)
        base_last_words(engine_help[r->o.gpus],
                        "the engine failed on rank %lld, which was %s: %s; all ranks end [E0607]",
                        (long long)rank, place_text(r, at, tmp), what);
    else
        base_last_words(engine_help[r->o.gpus],
                        "the engine did not start on rank %lld: %s; all ranks end [E0607]",
                        (long long)rank, what);
    arena_free(tmp);
}

static void lacks(void *arg, int64_t rank, EngineLack what, const char *text) {
    Ranks *r = arg;
    r->lack.rank = rank;
    r->lack.what = what;
    r->lack.text = arena_strdup(r->arena, text);
}
static const char few_gpus[] =
    "--cuda=virtual runs all ranks on one GPU, and --cuda=share their "
    "processes (for tests: NVIDIA does not support it); or start them on more "
    "machines (examples/cluster)";
static void refuse(const Ranks *r, Diags *d) {
    static const struct {
        const char *code, *help;
    } of[ENGINE_LACKS] = {
        [ENGINE_NO_GPU] = {"E0601",
                           "nvidia-smi must show a GPU on the machine of each rank; leave --cuda "
                           "out: the plan runs on virtual ranks of this machine's processor"},
        [ENGINE_FEW_GPUS] = {"E0604", few_gpus},
        [ENGINE_NO_LIBRARY] =
            {"E0601", "install NCCL (Debian: libnccl2; or `pip install nvidia-nccl-cu12`), "
                      "or name its file: SHARDPROOF_NCCL=/path/libnccl.so.2"},
    };
    diag_error(d, of[r->lack.what].code, diag_nowhere, of[r->lack.what].help,
               "--cuda: rank %lld: %s", (long long)r->lack.rank, r->lack.text);
}

/* ---- together ---- */
bool ranks_silent(bool gpus) { return plugin_launched(gpus).rank > 0; }
bool ranks_launched(bool gpus) {
    Launched by = plugin_launched(gpus);
    return by.ranks > (gpus ? 0 : 1);
}
Ranks *ranks_new(Arena *arena, Engine *engine, const RanksOptions *o) {
    Ranks *r = ARENA_NEW(arena, Ranks);
    Launched by = plugin_launched(o->gpus);
    *r = (Ranks){.arena = arena, .o = *o, .engine = engine, .rank = by.rank, .beside = by.beside};
    return r;
}
/* No second process (errno says why), which is no fault of MPI's. A rank that has nothing to say
 * says this: it may be the only one that knows. */
static void no_guard(const Ranks *r, Diags *d) {
    const char *help = errno == EAGAIN
                           ? "a limit on processes is reached (`ulimit -u`, or that of a container "
                             "or job): each rank takes two and some threads; raise it, or start "
                             "fewer processes on this machine"
                       : errno == ENOMEM ? "there is no memory for it on this machine: start fewer "
                                           "processes here"
                                         : "is `ulimit -n` (open files) enough for it?";
    const char *said = arena_printf(r->arena,
                                    "rank %lld cannot start the small process that watches it "
                                    "(shardproofguard): %s",
                                    (long long)r->rank, strerror(errno));
    if (ranks_silent(r->o.gpus)) base_last_words(help, "%s [E0607]", said);
    else diag_error(d, "E0607", diag_nowhere, help, "%s", said);
}
/* A rank other than 0 is silent, but nobody else knows why its engine did not open. What its whole
 * machine lacks is said once there, and by rank 0 of its own. */
static void speak(const Ranks *r, const Diags *d, const Launched *by) {
    const Diag *x = diags_errors(d) ? d->item : NULL;
    bool first = by->beside < by->ranks && by->rank % by->beside == 0;
    if (r->rank <= 0 || !x || (!r->failed && !(first && !strcmp(x->code, "E0601")))) return;
    base_last_words(x->hint, "rank %lld: %s [%s]", (long long)r->rank, x->message, x->code);
}
Ranks *ranks_open(Arena *arena, Diags *d, const RanksOptions *o) {
    Ranks *r = ranks_new(arena, NULL, o);
    EngineHost host = {.deadline = o->deadline,
                       .share = o->share,
                       .lost = lost,
                       .failed = failed,
                       .died = died,
                       .lacks = lacks,
                       .stage = stage,
                       .lives = lives,
                       .arg = r};
    Launched by = plugin_launched(o->gpus);
    if (by.engine) {
        char job[PLACE_TOKEN_BYTES + 1];
        place_job(job, sizeof job);
        claim_share(job);
    }
    if (by.engine && !guard_start(&r->guard, o->deadline, &(GuardWords){no_life, r})) {
        no_guard(r, d);
        return NULL;
    }
    r->engine = plugin_open(arena, d, &host, o->gpus); /* without a launcher: is refused */
    if (r->engine) return r;
    if (r->lack.text) refuse(r, d);
    else if (r->failed)
        diag_error(d, "E0607", diag_nowhere, engine_help[o->gpus], "the engine did not start: %s",
                   r->failed);
    speak(r, d, &by);
    return NULL;
}
int ranks_spawn(Diags *d, int64_t n, char **argv) {
    enum { MOST = 128 }; /* GPUs of a machine, and a few more */
    const char *why;
    if (n > MOST) {
        diag_error(d, "E0604", diag_nowhere, few_gpus,
                   "--cuda: a mesh of %lld ranks on one machine", (long long)n);
        return ENGINE_EXIT;
    }
    int code = spawn_ranks(n, argv, &why);
    if (code >= 0) return code;
    diag_error(d, "E0607", diag_nowhere, "start them with torchrun or mpirun",
               "--cuda: the processes of the ranks could not be started: %s", why);
    return ENGINE_EXIT;
}
void ranks_close(Ranks *r) {
    if (r) r->engine->close(r->engine);
}
bool ranks_first(const Ranks *r) { return r->engine->rank == 0; }
int64_t ranks_count(const Ranks *r) { return r->engine->ranks; }
void ranks_sum_by_engine(Ranks *r, bool does) { r->o.engine_sums = does; }
bool ranks_engine_sums(const Ranks *r) { return r->o.engine_sums; }
int64_t ranks_beside(const Ranks *r) { return r->beside; }
Engine *ranks_engine(Ranks *r) { return r->engine; }
const char *ranks_backend(const Ranks *r) {
    return r->engine->sharing > 1 ? "nccl-share" : r->o.gpus ? "nccl" : "mpi";
}
bool ranks_on_gpus(const Ranks *r) { return r->o.gpus; }
int ranks_sharing(const Ranks *r) { return r->engine->sharing; }
int ranks_device(const Ranks *r) { return r->engine->device; }
int ranks_threads(const Ranks *r, int asked) {
    if (asked) return asked;
    long cores = sysconf(_SC_NPROCESSORS_ONLN), share = cores / (long)r->beside;
    return share > 1 ? (int)share : 1;
}
int ranks_most_sharing(Ranks *r) {
    int most = (int)-r->engine->least(r->engine, -(int64_t)r->engine->sharing);
    if (most > r->engine->sharing) r->engine->sharing = most; /* one name for the whole run */
    return most;
}
void ranks_warn(Ranks *r, Diags *d) {
    int most = ranks_most_sharing(r);
    if (most > 1 && ranks_first(r))
        diag_warn(d, "W0602", diag_nowhere, "with a GPU for each rank leave =share out",
                  "%d ranks share a GPU, which NVIDIA does not support: what is computed is "
                  "checked, what is measured says nothing",
                  most);
}
void ranks_run(Ranks *r, const Program *p) {
    __atomic_store_n(&r->engine->at, p ? 0 : -1, __ATOMIC_RELAXED);
    atomic_store(&r->program, p);
}

/* Rank 0's bytes to all of them. */
static void spread(Engine *e, void *p, int64_t bytes) {
    EngineItem from = {0, bytes, p}, *to = base_malloc(base_mul((size_t)e->ranks, sizeof *to));
    for (int64_t k = 1; k < e->ranks; k++) to[k - 1] = (EngineItem){k, bytes, p};
    if (e->rank) e->tell(e, NULL, 0, &from, 1);
    else e->tell(e, to, (int)e->ranks - 1, NULL, 0);
    free(to);
}
/* One record of each process, in the order of ranks, on rank 0; `all` is untouched elsewhere. */
static void collect(Engine *e, void *mine, void *all, int64_t bytes) {
    EngineItem to = {0, bytes, mine}, *from = base_malloc(base_mul((size_t)e->ranks, sizeof *from));
    for (int64_t k = 1; k < e->ranks; k++)
        from[k - 1] = (EngineItem){k, bytes, (char *)all + k * bytes};
    if (e->rank) e->tell(e, &to, 1, NULL, 0);
    else {
        e->tell(e, NULL, 0, from, (int)e->ranks - 1);
        memcpy(all, mine, (size_t)bytes);
    }
    free(from);
}
int ranks_decide(Ranks *r, int mine) {
    int64_t code = mine;
    spread(r->engine, &code, sizeof code);
    return (int)code;
}
bool ranks_all(Ranks *r, Diags *d, bool can, const char *what) {
    Engine *e = r->engine;
    int64_t first = e->least(e, can ? e->ranks : e->rank);
    if (first && first < e->ranks)
        diag_error(d, "E0601", diag_nowhere,
                   "run `shardproof check 02-toymodel-2 --cuda=virtual` there: it says why",
                   "--cuda: rank %lld cannot %s", (long long)first, what);
    return first == e->ranks;
}
static bool differ(Diags *d, const Hello *h, int64_t rank, RanksMatter of) {
    static const char *const has[] = {
        [RANKS_PLAN] = "another plan",
        [RANKS_PROGRAM] = "other options, or another of the files that the plan names,",
        [RANKS_FILES] = "other weights or inputs"};
    if (h[rank].ready == h[0].ready && h[rank].what == h[0].what) return false;
    if (!h[rank].ready)
        diag_error(d, "E0606", diag_nowhere,
                   "the plan and the files that it names must be the same for all processes",
                   "rank %lld cannot run this plan, which rank 0 can: a file is missing or another "
                   "where it runs",
                   (long long)rank);
    else
        diag_error(d, "E0606", diag_nowhere,
                   "the plan, the files that it names and the options must be the same for all "
                   "processes",
                   "rank %lld has %s than rank 0", (long long)rank, has[of]);
    return true;
}
static bool strange(Diags *d, const Greeting *g, int64_t rank) {
    if (strcmp(g[rank].version, g[0].version) != 0)
        diag_error(d, "E0606", diag_nowhere, "install the same version everywhere",
                   "rank %lld runs shardproof %s, rank 0 %s", (long long)rank, g[rank].version,
                   g[0].version);
    else if (strcmp(g[rank].task, g[0].task) != 0)
        diag_error(d, "E0606", diag_nowhere,
                   "start all processes with one command line; a folder must hold the same plans "
                   "for all of them",
                   "rank %lld is to run `%s`, rank 0 `%s`", (long long)rank, g[rank].task,
                   g[0].task);
    else return false;
    return true;
}
bool ranks_greet(Ranks *r, Diags *d, const char *task) {
    Engine *e = r->engine;
    Greeting mine = {{0}, {0}}, *all = base_malloc(base_mul((size_t)e->ranks, sizeof *all));
    snprintf(mine.version, sizeof mine.version, "%s", r->o.version);
    snprintf(mine.task, sizeof mine.task, "%s", task);
    collect(e, &mine, all, sizeof mine);
    bool same = true;
    for (int64_t k = 1; e->rank == 0 && same && k < e->ranks; k++) {
        all[k].version[sizeof mine.version - 1] = all[k].task[sizeof mine.task - 1] = 0;
        same = !strange(d, all, k);
    }
    free(all);
    return ranks_decide(r, same) != 0;
}
bool ranks_meet(Ranks *r, Diags *d, bool ready, uint64_t what, RanksMatter of) {
    Engine *e = r->engine;
    Hello mine = {.ready = ready,
                  .what = what ^ (uint64_t)(of == RANKS_PROGRAM && r->o.engine_sums)},
          *all = base_malloc(base_mul((size_t)e->ranks, sizeof *all));
    r->met = true;
    collect(e, &mine, all, sizeof mine);
    bool same = true;
    for (int64_t k = 1; e->rank == 0 && ready && same && k < e->ranks; k++)
        same = !differ(d, all, k, of);
    free(all);
    return ranks_decide(r, ready && same) != 0;
}
bool ranks_met(const Ranks *r) { return r->met; }
void ranks_next(Ranks *r) { r->met = false; }
