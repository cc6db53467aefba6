/* How runs on processes end that cannot go on: a rank that is stopped, killed or never starts, at a
 * random moment; Ctrl-C; plug-ins that are not there, belong to another MPI or fail. They end in
 * time, with words that name the cause; no process is left, and no file that is not whole. What
 * they say when all goes well is test_mpi's. SHARDPROOF_SOAK: so many random ends instead of 8. */
#include "base/clock.h"
#include "engine/engine.h"
#include "support/child.h"
#include "support/mpi.h"
#include "support/random_plan.h"
#include "support/support.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char plan[] = "plans/02-toymodel-2.yaml";

/* ---- what does not begin ---- */
static void test_refused(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = mpi_program();
    mpi_expect(line_code(o, e, "%s check %s --mpi", p, plan), 5, e, "[E0603]");
    mpi_expect(MPI_RUN(o, e, "-n 3 %s check %s --mpi", p, plan), 5, e,
               "3 processes for a mesh of 2 ranks");
    mpi_expect(MPI_RUN(o, e, "-n 1 %s check %s --mpi", p, plan), 5, e,
               "1 process for a mesh of 2 ranks");
    mpi_expect(
        MPI_RUN(o, e, "-n 1 %s check %s --mpi : -n 1 %s check %s --mpi --seed 7", p, plan, p, plan),
        5, e, "rank 1 has other options, or another of the files that the plan names,");
    mpi_expect(MPI_RUN(o, e, "-n 1 %s check %s --mpi : -n 1 %s check %s --mpi --sum engine", p,
                       plan, p, plan),
               5, e, "rank 1 has other options, or another of the files that the plan names,");
    /* nothing is wrong with the plan */
    size_t n;
    assert_null(strstr(child_read(a, o, &n), "invalid"));
    assert_non_null(strstr(child_read(a, o, &n), "rules and structure hold"));
    const char *other = temp_path(a, "other.yaml");
    child_write(other, arena_printf(a, "%s# another\n", child_read(a, plan, &n)));
    mpi_expect(MPI_RUN(o, e, "-n 1 %s check %s --mpi : -n 1 %s check %s --mpi", p, plan, p, other),
               5, e, "rank 1 has another plan than rank 0");
    mpi_expect(MPI_RUN(o, e, "-n 1 %s check %s --mpi : -n 1 %s check none.yaml --mpi", p, plan, p),
               5, e, "rank 1 cannot run this plan");
    mpi_expect(MPI_RUN(o, e, "-n 1 %s check none.yaml --mpi : -n 1 %s check %s --mpi", p, p, plan),
               3, e, "[E0101]");
    /* another command, and lists of other lengths: nobody waits for a word that never comes */
    static const char *const odd[][3] = {
        {"check plans/02-toymodel-2.yaml", "run plans/02-toymodel-2.yaml",
         "rank 1 is to run `run`, rank 0 `check of 1 plan`"},
        {"run plans/02-toymodel-2.yaml", "check plans/02-toymodel-2.yaml",
         "rank 1 is to run `check of 1 plan`, rank 0 `run`"},
        {"check plans/02-toymodel-2.yaml",
         "check plans/02-toymodel-2.yaml plans/02-toymodel-2.yaml",
         "`check of 2 plans`, rank 0 `check of 1 plan`"},
        {"check plans/02-toymodel-2.yaml plans/02-toymodel-2.yaml",
         "check plans/02-toymodel-2.yaml", "`check of 1 plan`, rank 0 `check of 2 plans`"},
        {"check plans/02-toymodel-2.yaml", "check plans/02-toymodel-2.yaml --frob",
         "rank 1 is to run `nothing: unknown option"},
        {"check plans/02-toymodel-2.yaml", "check plans/02-toymodel-2.yaml --deadline x",
         "rank 1 is to run `nothing: "},
        {"calibrate", "check plans/02-toymodel-2.yaml",
         "rank 1 is to run `check of 1 plan`, rank 0 `calibrate`"},
    };
    mpi_expect(MPI_RUN(o, e, "-n 2 %s check %s --mpi --frob", p, plan), 2, e, "[E0212]");
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        mpi_expect(MPI_RUN(o, e, "-n 1 %s %s --mpi : -n 1 %s %s --mpi", p, odd[i][0], p, odd[i][1]),
                   5, e, odd[i][2]);
    mpi_expect(line_code(o, e, "%s check %s --sum engine", p, plan), 2, e, "[E0212]");
    mpi_expect(line_code(o, e, "%s check %s --mpi --exact", p, plan), 2, e, "[E0212]");
    mpi_expect(line_code(o, e, "%s check - --mpi", p), 2, e, "[E0212]");
    arena_free(a);
}

/* Files of one name that hold other numbers where another process runs. */
static void test_other_files(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = mpi_program(),
               *dir = temp_path(a, "places"), *file = temp_path(a, "plan.yaml");
    static const char text[] = "model: {kind: mlp, sizes: [6, 8, 4], weights: w.safetensors}\n"
                               "data: {rows: 4}\nmesh: {tp: 2}\n"
                               "plan:\n  net1: colwise\n  net2: rowwise\n";
    child_write(file, text);
    for (int other = 0; other < 2; other++) {
        mpi_expect(line_code(o, e,
                             "mkdir -p %s/%d && cp %s %s/%d && cd %s/%d && sed s/,.weights:.*}/}/ "
                             "plan.yaml > bare.yaml && %s check bare.yaml --seed %d --save-values "
                             "w.safetensors",
                             dir, other, file, dir, other, dir, other, p, 1 + other),
                   0, e, "");
        const char *line = arena_printf(a,
                                        "-n 1 sh -c \"cd %s/0 && exec %s check plan.yaml --mpi\" : "
                                        "-n 1 sh -c \"cd %s/%d && exec %s check plan.yaml --mpi\"",
                                        dir, p, dir, other, p);
        mpi_expect(MPI_RUN(o, e, "%s", line), other ? 5 : 0, e,
                   other ? "rank 1 has other weights or inputs than rank 0" : "");
    }
    arena_free(a);
}
/* A copy of the program in a folder of its own; `plugin` becomes that of both MPIs. */
static const char *alone(Arena *a, const char *plugin) {
    const char *dir = temp_path(a, "alone");
    mpi_expect(line_code("/dev/null", temp_path(a, "e"), "rm -rf %s && mkdir %s && cp -L %s %s/sp",
                         dir, dir, mpi_program(), dir),
               0, temp_path(a, "e"), "");
    for (int i = 0; plugin && i < 2; i++)
        mpi_expect(line_code("/dev/null", temp_path(a, "e"), "cp \"%s\" %s/shardproof-%s.so",
                             plugin, dir, i ? "mpich" : "openmpi"),
                   0, temp_path(a, "e"), "");
    return arena_printf(a, "%s/sp", dir);
}
/* Without any launcher: the variables of one are all that is looked at. */
static void test_plugins(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = alone(a, NULL);
    static const char *const by[][2] = {
        {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", "shardproof-openmpi.so"},
        {"PMI_RANK=0 PMI_SIZE=2", "shardproof-mpich.so"}};
    for (int i = 0; i < 2; i++) {
        int code = line_code(o, e, "%s %s check %s --mpi", by[i][0], p, plan);
        mpi_expect(code, 5, e, "[E0601]");
        mpi_expect(code, 5, e, by[i][1]); /* what is missing, and how to get it */
        mpi_expect(code, 5, e, i ? "make MPI=mpich" : "make MPI=openmpi");
    }
    /* without --mpi each process does the whole, which one of them tells */
    mpi_expect(line_code(o, e, "%s %s check %s", by[0][0], p, plan), 0, e, "[W0601]");
    mpi_expect(
        line_code(o, e, "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 %s check %s", p, plan), 0, e,
        "");
    size_t n;
    assert_string_equal(child_read(a, e, &n), "");
    p = alone(a, plan); /* no library at all */
    mpi_expect(line_code(o, e, "%s %s check %s --mpi", by[0][0], p, plan), 5, e, "[E0601]");
    const char *trip = child_preload(a, "trip.so"); /* a library, but no engine */
    p = alone(a, trip);
    mpi_expect(line_code(o, e, "%s %s check %s --mpi", by[0][0], p, plan), 5, e, "[E0601]");
    arena_free(a);
}
/* A plug-in of another version of the program is not called: what it is told with may be another
 * struct. What was built before its symbol had a number is one too (tests/trip/engine.c). */
static void test_other_version(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *old = temp_path(a, "old.so");
    mpi_expect(line_code(o, e, "sed s/%s/shardproof_engine_0/g \"%s\" >%s", ENGINE_SYMBOL,
                         child_beside(a, "engine.so"), old),
               0, e, "");
    const char *p = alone(a, old);
    mpi_expect(
        line_code(o, e, "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 %s check %s --mpi", p, plan),
        5, e,
        "shardproof-openmpi.so belongs to another version of shardproof [E0601]\n"
        "  = help: `make MPI=openmpi` builds the one that belongs to this program");
    mpi_expect(line_code(o, e, "cd %s && mv shardproof-openmpi.so shardproof-nccl.so",
                         temp_path(a, "alone")),
               0, e, "");
    mpi_expect(
        line_code(o, e, "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 %s check %s --cuda", p, plan), 5,
        e, "shardproof-nccl.so belongs to another version of shardproof [E0601]");
    /* these are the structs of that number: whoever changes one raises it */
    assert_string_equal(ENGINE_SYMBOL, "shardproof_engine_6");
    assert_int_equal(sizeof(EngineHost), 80);
    assert_int_equal(sizeof(Engine), 112);
    assert_int_equal(sizeof(EngineItem), 24);
    assert_int_equal(sizeof(EngineSum), 48);
    arena_free(a);
}
/* An engine that fails at its start, or later: in its own words. */
static void test_engine_fails(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"),
               *engine = child_beside(a, "engine.so"), *p = alone(a, engine),
               *file = temp_path(a, "trace"),
               *by = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 ENGINE_FAILS";
    mpi_expect(
        line_code(o, e, "%s=0 %s check %s --set mesh.tp=1 --mpi --trace %s", by, p, plan, file), 5,
        e, "the engine did not start: no cable is plugged in [E0607]\n  = help: ");
    for (int call = 1; call < 20; call += 6) {
        mpi_expect(line_code(o, e, "%s=%d %s check %s --set mesh.tp=1 --mpi --trace %s", by, call,
                             p, plan, file),
                   5, e,
                   ": the cable was pulled; all ranks end [E0607]\n  = help: these are the words "
                   "of MPI; if `mpirun ");
        assert_int_not_equal(access(file, F_OK), 0);
    }
    arena_free(a);
}
/* A rank that somebody stops where no other can see it: its guard names it and ends it, in time.
 * One that has no processor for so long is seen where it is not stopped: the next try has four
 * times the deadline. */
static void test_stopped_alone(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"),
               *p = alone(a, child_beside(a, "engine.so")), *file = temp_path(a, "trace");
    static const char *const words[] = {
        [ENGINE_STARTS] = ", while it started; all ranks end [E0605]\n  = help: ",
        [ENGINE_RUNS] = ", while it ran and no other rank said so; all ranks end [E0605]\n  = help",
        [ENGINE_GROUPS] = ", while groups for sums were made; all ranks end [E0605]\n  = help: ",
        [ENGINE_ENDS] = ", while it ended; what the run has written is whole; all ranks end [E060",
        [ENGINE_STAGES] = ", while it ended; what the run has written is whole; all ranks end [E0"};
    for (int k = 0; k <= ENGINE_STAGES + 2; k++) {
        bool both = k > ENGINE_STAGES; /* while it ends its guard may be stopped as well */
        int stage = both ? k - 2 : k;
        int code = 0;
        for (int deadline = 2; deadline < LONGEST; deadline *= 4) {
            unlink(file);
            code = line_code(
                o, e,
                "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 ENGINE_FAILS=1000000 "
                "ENGINE_STOPS=%d %s %s run plans/01*.yaml --set mesh.tp=1 --mpi --deadline %d "
                "--trace %s -o %s",
                stage, both ? "ENGINE_STOPS_GUARD=1" : "", p, deadline, file,
                temp_path(a, "folder"));
            if (code == 5 && is_said(a, e, words[stage])) break;
        }
        mpi_expect(code, 5, e, "shardproof: error: rank 0 has been silent for ");
        mpi_expect(code, 5, e, words[stage]);
        assert_int_equal(access(file, F_OK), stage <= ENGINE_RUNS ? -1 : 0);
    }
    arena_free(a);
}
/* The same under a launcher, which would wait for it: a rank whose process is stopped after its MPI
 * has ended, alone or with its guard. */
static void test_stopped_behind_mpi(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = mpi_program(),
               *stops = temp_path(a, "stops.so"), *file = temp_path(a, "trace");
    mpi_expect(line_code(o, e, "cp \"%s\" %s", child_beside(a, "engine.so"), stops), 0, e, "");
    for (int k = 0; k < 4; k++) {
        int rank = k % 2;
        const char *other = arena_printf(a, "env LD_PRELOAD=%s ENGINE_STOPS=%d%s", stops,
                                         (int)ENGINE_STAGES, k < 2 ? "" : " ENGINE_STOPS_GUARD=1");
        int code = 5;
        for (int deadline = 2; deadline < LONGEST; deadline *= 4) {
            const char *one =
                arena_printf(a, "check %s --mpi --deadline %d --trace %s", plan, deadline, file);
            code = MPI_RUN(o, e, "-n 1 %s %s %s : -n 1 %s %s %s", rank ? "env" : other, p, one,
                           rank ? other : "env", p, one);
            if (is_said(a, e, "while it ended; ")) break;
        }
        mpi_expect(code, 5, e,
                   arena_printf(a, "shardproof: error: rank %d has been silent for ", rank));
        mpi_expect(code, 5, e, "while it ended; what the run has written is whole; all ranks end");
        assert_int_equal(access(file, F_OK), 0);
    }
    arena_free(a);
}
/* Each process that waits for one that never comes sees the end by itself: one tells it, also where
 * the launcher, which sees codes of 0, ends nobody. */
static void test_told_once(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = mpi_program(),
               *ends = temp_path(a, "ends");
    /* one that begins when all others have ended is another run: it had no processor so long */
    int deadline = 2 * slow_machine();
    do {
        mpi_expect(line_code(o, e, "rm -rf %s; mkdir %s", ends, ends), 0, e, "");
        const char *one =
            arena_printf(a, "-n 1 sh -c \"%s check %s --mpi --deadline %d; echo >%s/\\$%s\"", p,
                         "plans/05*.yaml", deadline, ends, mpi_here()->rank);
        MPI_RUN(o, e,
                "%s : %s : %s : -n 1 sh -c \"while ! [ -e %s/0 -a -e %s/1 -a -e %s/2 ]; do sleep "
                "0.1; done\"",
                one, one, one, ends, ends, ends);
        deadline *= 4;
    } while (deadline < LONGEST && (lost_another(a, e, -1) || ends_told(e) != 1));
    mpi_expect(0, 0, e, "the processes did not come together within ");
    assert_int_equal(ends_told(e), 1);
    arena_free(a);
}
/* A rank that can start no guard says so, whichever it is: it is no fault of MPI's. */
static void test_no_guard(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = mpi_program(),
               *no = temp_path(a, "no.so"), *one;
    mpi_expect(line_code(o, e, "cp \"%s\" %s", child_beside(a, "engine.so"), no), 0, e, "");
    for (int rank = 0; rank < 2; rank++) {
        const char *other = arena_printf(a, "env LD_PRELOAD=%s ENGINE_NO_FORK=1", no),
                   *words = arena_printf(
                       a,
                       "rank %d cannot start the small process that watches it (shardproofguard): ",
                       rank);
        int code = 0;
        /* the other may have waited for it before it says so */
        for (int deadline = 2; deadline < LONGEST; deadline *= 4) {
            one = arena_printf(a, "%s check %s --mpi --deadline %d", p, plan, deadline);
            code = MPI_RUN(o, e, "-n 1 %s %s : -n 1 %s %s", rank ? "env" : other, one,
                           rank ? other : "env", one);
            if (is_said(a, e, words)) break;
        }
        mpi_expect(code, code, e, words);
        assert_true(code == 5 || code == mpi_here()->begun);
        mpi_expect(code, code, e, " [E0607]\n  = help: a limit on processes is reached");
    }
    arena_free(a);
}
/* The plug-in of one MPI under the launcher of another: each process would be alone. */
static void test_other_launcher(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    bool open = !strcmp(mpi_here()->name, "openmpi");
    const char *other = open ? "shardproof-mpich.so" : "shardproof-openmpi.so",
               *o = temp_path(a, "o"), *e = temp_path(a, "e");
    if (access(other, R_OK) != 0) {
        print_message("no %s: a plug-in of another MPI than the launcher's is not tried\n", other);
        arena_free(a);
        skip();
    }
    int code = MPI_RUN(o, e, "-n 2 %s check %s --mpi", alone(a, other), plan);
    mpi_expect(code, 5, e, "the launcher says 2 processes, ");
    mpi_expect(code, 5, e, "finds 1 [E0603]");
    mpi_expect(code, 5, e, "use the launcher that belongs to the MPI of the plug-in");
    arena_free(a);
}

/* ---- what does not go on ---- */
typedef enum { STOP, BOTH, KILL, CTRL_C, ABSENT, KINDS } Kind;
static const char *const kinds[KINDS] = {"stopped", "stopped with its guard", "killed", "Ctrl-C",
                                         "absent"};
enum { RANKS = 4, AT_ONCE = -1, MOST_DEADLINE = 16 };
/* A run whose processes have left their numbers in files. */
typedef struct {
    Arena *a;
    pid_t shell, launcher, pid[RANKS];
    const char *pids, *out, *err, *dir;
    bool late, hung; /* the run was over before; its launcher hung when all its ranks had ended */
} Trial;

static pid_t pid_of(const Trial *t, const char *name) {
    size_t n;
    for (int i = 0; i < 6000 * slow_machine(); i++) {
        const char *s = child_read(t->a, arena_printf(t->a, "%s/%s", t->pids, name), &n);
        if (s && strchr(s, '\n')) return (pid_t)atoi(s);
        usleep(10000);
    }
    fail_msg("%s did not start", name);
    return 0;
}
/* `absent`: the rank that is another program, AT_ONCE none of them. */
static Trial start(Arena *a, double deadline, int absent) {
    Trial t = {.a = a};
    t.pids = temp_path(a, "pids");
    t.dir = temp_path(a, "folder");
    t.out = temp_path(a, "out");
    t.err = temp_path(a, "err");
    line_code("/dev/null", "/dev/null", "rm -rf %s %s; mkdir -p %s %s", t.pids, t.dir, t.pids,
              t.dir);
    const char *program = mpi_program();
    fflush(NULL);
    t.shell = fork();
    if (t.shell == 0) {
        signal(SIGINT, SIG_DFL); /* a test that runs in the background was told to ignore it */
        _exit(line_code(t.out, t.err,
                        "echo $$ > %s/launcher; exec %s -n %d sh -c \"echo \\$\\$ > %s/\\$%s; "
                        "[ \\$%s != %d ] || exec sleep 86400; exec %s run plans/18*.yaml --mpi "
                        "--deadline %g --save-values %s/values -o %s/out\"",
                        t.pids, mpi_run(), RANKS, t.pids, mpi_here()->rank, mpi_here()->rank,
                        absent, program, deadline, t.dir, t.dir));
    }
    t.launcher = pid_of(&t, "launcher");
    for (int r = 0; r < RANKS; r++) t.pid[r] = pid_of(&t, arena_printf(a, "%d", r));
    return t;
}
/* Has the launcher ended? */
static bool over(const Trial *t) {
    siginfo_t x = {0};
    waitid(P_PID, (id_t)t->shell, &x, WEXITED | WNOHANG | WNOWAIT);
    return x.si_pid != 0;
}
/* Its exit code, when the launcher has ended. Open MPI's launcher may hang in its own server
 * (PMIx_server_finalize) where a rank was stopped while it connected to that, as it may crash
 * there: when all ranks have ended it is killed after a while (128 + SIGKILL). */
static int end(Trial *t) {
    int status;
    int looks = 0; /* a machine that stands still for a while looks once */
    while (waitpid(t->shell, &status, WNOHANG) == 0) {
        bool all = true;
        for (int r = 0; r < RANKS; r++) all &= process_ended(t->pid[r]);
        looks = all ? looks + 1 : 0;
        if (looks > 1500 * slow_machine()) t->hung = kill(t->launcher, SIGKILL) == 0;
        usleep(10000);
    }
    for (int r = 0; r < RANKS; r++) {
        for (int k = 0; k < 6000 * slow_machine() && !process_ended(t->pid[r]); k++) usleep(10000);
        assert_true(process_ended(t->pid[r]));
    }
    return WEXITSTATUS(status);
}
static void judge(const Trial *t, Kind kind, int rank, int code) {
    Arena *a = t->a;
    size_t n;
    const char *err = child_read(a, t->err, &n), *name = arena_printf(a, "rank %d has been", rank);
    /* where ranks wait inside of MPI for the stopped one its guard names it, unless a busy machine
     * lets another speak first */
    bool met = !strstr(err, "did not come together"),
         known = met && !strstr(err, "did not end within");
    /* Open MPI's launcher may fall over its own server when it is already at its end (SIGSEGV in
     * PMIx_server_finalize, SIGPIPE), or hang there: what the rank said, and that all processes are
     * gone, is judged all the same */
    bool fell = (t->hung || code > 128) && strstr(err, "[E0605]");
    bool told = code == 5 || code == mpi_here()->forced || fell, ok = code != 0;
    told |= code == mpi_here()->begun && (!met || strstr(err, "while it started"));
    if (kind == STOP || kind == BOTH) ok = told && (!known || strstr(err, name));
    if (kind == ABSENT) ok = told && !met;
    const char *said = strstr(err, "[E0605]");
    if (said && ok) ok = strncmp(said, "[E0605]\n  = help: ", 18) == 0;
    if (said && ok) ok = !strstr(said + 1, "[E060"); /* once */
    if (!ok) print_error("%s, rank %d: code %d, %s\n", kinds[kind], rank, code, err);
    assert_true(ok);
}
/* A signal is sent before it acts: a process on its way through fork() has a child a little later.
 */
static void wait_stopped(pid_t pid) {
    for (int i = 0; i < 6000 * slow_machine(); i++) {
        if (process_state(pid) == 'T' || process_ended(pid)) return;
        usleep(10000);
    }
    fail_msg("%d does not stop", (int)pid);
}
/* To a rank and its guard. */
static void signal_both(const Trial *t, int rank, int sig) {
    int pid = (int)t->pid[rank];
    size_t n;
    kill(pid, sig); /* first: once it has stopped it starts no guard any more */
    if (sig == SIGSTOP) wait_stopped(pid);
    const char *s = child_read(t->a, arena_printf(t->a, "/proc/%d/task/%d/children", pid, pid), &n);
    for (char *end; s; s = end) {
        pid_t guard = (pid_t)strtol(s, &end, 10);
        if (end == s) break;
        kill(guard, sig);
    }
}
/* "" if nobody has said anything. */
static const char *first_words(const Trial *t) {
    size_t n;
    const char *at = strstr(child_read(t->a, t->err, &n), "error: ");
    return at ? at + 7 : "";
}
/* What a list of trials came to. */
typedef struct {
    int of[KINDS], missed, in_time, fell, hung;
    double length, deadline, worst; /* seconds: of a run that is let be; --deadline; of an end */
    const char *like;               /* the folder that such a run leaves */
} Ends;
/* False: the run had ended before anything was done to it. */
static bool one_end(Ends *x, Rng *r, Kind kind) {
    Arena *a = arena_new();
    int rank = rng_below(r, RANKS);
    Trial t = start(a, x->deadline, kind == ABSENT ? rank : AT_ONCE);
    if (kind != ABSENT) {
        usleep((useconds_t)(0.9e3 * x->length * (double)rng_below(r, 1000)));
        t.late = over(&t);
    }
    double begin = clock_seconds();
    if (kind == STOP || kind == KILL) kill(t.pid[rank], kind == STOP ? SIGSTOP : SIGKILL);
    if (kind == BOTH) signal_both(&t, rank, SIGSTOP);
    if (kind == CTRL_C) kill(t.launcher, SIGINT);
    int code = end(&t);
    double took = clock_seconds() - begin;
    int files = whole_files(t.a, t.dir, x->like);
    if (code == 0) assert_true(files > 8);
    t.late |= code == 0;
    if (!t.late && x->deadline < MOST_DEADLINE * slow_machine() &&
        lost_another(t.a, t.err, kind <= KILL ? rank : -1)) {
        x->deadline *= 2; /* this machine is busier than that: once more */
        t.late = true;
    }
    if (!t.late) {
        judge(&t, kind, rank, code);
        x->of[kind]++;
        x->worst = took > x->worst ? took : x->worst;
        x->in_time += took < x->deadline + 2;
        if (took >= x->deadline + 2)
            print_message("%s, rank %d: %.1f s, code %d%s: %.90s\n", kinds[kind], rank, took, code,
                          t.hung ? ", the launcher hung" : "", first_words(&t));
        x->hung += t.hung;
        x->fell += !t.hung && code > 128 && (kind <= BOTH || kind == ABSENT);
    }
    arena_free(a);
    return !t.late;
}
static void test_random_ends(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    int trials = trials_of(8, "random ends");
    Ends x = {.deadline = 2.0 * slow_machine(), .like = temp_path(a, "like")};
    Trial first = start(a, 60, AT_ONCE);
    double begin = clock_seconds();
    mpi_expect(end(&first), 0, first.err, "");
    x.length = clock_seconds() - begin;
    rename(first.dir, x.like);
    static const Kind of[8] = {STOP, BOTH, STOP, KILL, BOTH, KILL, CTRL_C, ABSENT};
    Rng r = {4711};
    for (int i = 0; i < trials;) {
        Kind kind = of[i % 8];
        if (one_end(&x, &r, kind)) {
            i++;
            continue;
        }
        x.length *= 0.9; /* how long a run takes depends on what else the machine does */
        if (++x.missed > 3 * trials + 20) fail_msg("%d runs ended by themselves", x.missed);
    }
    print_message("%d stopped, %d with their guards, %d killed, %d Ctrl-C, %d absent; %d more had "
                  "ended by themselves; "
                  "%d ended within --deadline %g and 2 s, the longest end took %.1f s; %d "
                  "times the launcher itself hung after its ranks had ended, %d times it fell\n",
                  x.of[STOP], x.of[BOTH], x.of[KILL], x.of[CTRL_C], x.of[ABSENT], x.missed,
                  x.in_time, x.deadline, x.worst, x.hung, x.fell);
    assert_true(x.hung <= 1 + trials / 8);
    /* nothing hangs, however slow it is here */
    assert_true(x.worst < x.deadline + 60 * slow_machine());
    arena_free(a);
}
/* The launcher, or what stands between it and the ranks; 0: they have ended. */
static pid_t parent_of(const Trial *t) {
    for (int r = 0; r < RANKS; r++) {
        pid_t parent = process_parent(t->pid[r]);
        if (parent) return parent;
    }
    return 0;
}
/* All of them at once, as Ctrl-Z or a machine that sleeps does, for longer than the deadline:
 * whoever was stopped itself could hear nobody, so it loses nobody, and the run goes on. */
static bool all_stopped(double deadline, int at_us) {
    Arena *a = arena_new();
    Trial t = start(a, deadline, AT_ONCE);
    usleep((useconds_t)at_us);
    pid_t parent = parent_of(&t);
    if (parent) kill(parent, SIGSTOP);
    for (int r = 0; r < RANKS; r++) signal_both(&t, r, SIGSTOP);
    usleep((useconds_t)(1e6 * (deadline + 1)));
    if (parent) kill(parent, SIGCONT);
    for (int r = 0; r < RANKS; r++) signal_both(&t, r, SIGCONT);
    int code = end(&t);
    size_t n;
    /* they are stopped one by one, and let go on so: it may take this process as long */
    bool busy = code && (too_busy(a, t.err) || lost_another(a, t.err, -1));
    /* no rank said a word: it is the launcher that has not stood it (seen once in some hundred
     * times, Open MPI, code 1); a rank that loses another says so */
    bool silent = code && !strstr(child_read(a, t.err, &n), "error: ");
    if (busy) print_message("one is lost within %g s: once more\n", deadline);
    else if (silent)
        print_message("the launcher ended with %d, %s: once more\n", code,
                      child_read(a, t.out, &n));
    else mpi_expect(code, 0, t.err, "");
    arena_free(a);
    return !busy && !silent;
}
static void test_all_stopped(void **state) {
    (void)state;
    NEEDS_MPI;
    for (int at = 0; at < 2; at++) {
        double deadline = 2.0 * slow_machine();
        while (!all_stopped(deadline, at * 400000)) {
            deadline *= 4;
            assert_true(deadline < LONGEST * slow_machine());
        }
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_plugins),
        cmocka_unit_test(test_engine_fails),
        cmocka_unit_test(test_other_launcher),
        cmocka_unit_test(test_other_version),
        cmocka_unit_test(test_stopped_alone),
        cmocka_unit_test(test_stopped_behind_mpi),
        cmocka_unit_test(test_random_ends),
        cmocka_unit_test(test_all_stopped),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_no_guard),
        cmocka_unit_test(test_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
