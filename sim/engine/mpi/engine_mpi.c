/* The engine of MPI: the source of the plug-ins shardproof-openmpi.so and shardproof-mpich.so,
 * which differ by the mpi.h that they are compiled with. Every call is made under one lock and none
 * of them waits, but for starting and ending: so a second thread can tell all others that this
 * process lives (its heart), and notice who does not, while the first works or sleeps. */
#include "engine/engine.h"
#include <assert.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

EngineOpen ENGINE_OPEN;

/* MPI counts in int; and each chunk that arrives says that a slow wire is no silent one */
enum { CHUNK = 1 << 24, MAX_GROUPS = 64 };
/* seconds in which last words are passed on; between two looks at who is silent, at most; for the
 * guard of a silent rank, who can name it, to speak before those who only miss somebody */
static const double HEARD = 0.1, TICK = 0.25, GRACE = 0.25;
/* an EngineStage, or: MPI is no more */
enum { ENDED = ENGINE_STAGES };

/* What one process tells another of itself, again and again. */
typedef struct {
    int64_t at, calls, waiting;
} Beat;

static struct {
    Engine e; /* first: an Engine is all that the program sees */
    EngineHost host;
    MPI_Comm data, life;
    MPI_Comm group[MAX_GROUPS];
    int n_groups;
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    pthread_t heart;
    pthread_mutex_t lock;
    _Atomic int state;
    _Atomic double since; /* of the state */
    _Atomic int64_t calls, waiting;
    Beat mine, *theirs; /* per rank: the last that was heard */
    double *heard;
    MPI_Request *sent;
    double all_wait; /* since when everybody waits; 0: somebody does not */
    int64_t all_calls;
} M;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void rest(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}
static void enter(int s) {
    atomic_store(&M.since, now());
    atomic_store(&M.state, s);
    M.host.stage(M.host.arg, s == ENDED ? ENGINE_ENDS : (EngineStage)s);
}
static _Noreturn void end_all(void) {
    int s = atomic_load(&M.state);
    rest(HEARD); /* MPICH's launcher drops words that it has not read when it is told to end */
    if (s == ENGINE_RUNS || s == ENGINE_GROUPS) MPI_Abort(MPI_COMM_WORLD, ENGINE_EXIT);
    _exit(ENGINE_EXIT);
}
static _Noreturn void die(const char *what) {
    M.host.died(M.host.arg, M.host.rank, __atomic_load_n(&M.e.at, __ATOMIC_RELAXED), what);
    end_all();
}
static void must(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;
    if (code == MPI_SUCCESS) return;
    MPI_Error_string(code, text, &n);
    die(text);
}

/* ---- the heart ---- */
static bool is_pair(int64_t r) { /* rank 0 and every other watch each other */
    return r != M.e.rank && (r == 0 || M.e.rank == 0);
}
static void beat(void) {
    M.mine = (Beat){__atomic_load_n(&M.e.at, __ATOMIC_RELAXED), atomic_load(&M.calls),
                    atomic_load(&M.waiting)};
    for (int64_t r = 0; r < M.e.ranks; r++) {
        int done = 1;
        if (!is_pair(r)) continue;
        if (M.sent[r] != MPI_REQUEST_NULL) must(MPI_Test(&M.sent[r], &done, MPI_STATUS_IGNORE));
        if (done) must(MPI_Isend(&M.mine, sizeof M.mine, MPI_BYTE, (int)r, 0, M.life, &M.sent[r]));
    }
}
static void listen(void) {
    for (;;) {
        int there;
        MPI_Status st;
        must(MPI_Iprobe(MPI_ANY_SOURCE, 0, M.life, &there, &st));
        if (!there) return;
        int from = st.MPI_SOURCE; /* it is here: receiving does not wait */
        must(MPI_Recv(&M.theirs[from], sizeof(Beat), MPI_BYTE, from, 0, M.life, MPI_STATUS_IGNORE));
        M.heard[from] = now();
    }
}
/* Its guard hears meanwhile that this process lives. */
static void wait_turn(double seconds) {
    double step = M.host.deadline / 10 < TICK ? M.host.deadline / 10 : TICK;
    for (double begin = now(); now() - begin < seconds; rest(step)) M.host.lives(M.host.arg);
}
static void lose(int64_t rank, double seconds, int64_t at) {
    /* where nobody can be named, or rank 0 is lost, every other finds out: one speaks for all, and
     * has ended them before the next one's turn, who may have looked a tick before it */
    int64_t turn = M.host.rank - (rank == 0);
    if (rank <= 0) wait_turn((TICK + HEARD) * (double)(turn < 4 ? turn : 4));
    int s = atomic_load(&M.state);
    if (s == ENDED || (rank < 0 && s == ENGINE_RUNS && !M.all_wait)) return;
    M.host.lost(M.host.arg, rank, seconds, at);
    end_all();
}
/* `t`: from before it was listened. A process that is stopped in between loses nobody: how long
 * that was is the next turn's gap. */
static void look(double t) {
    int64_t calls = M.mine.calls, waiting = M.mine.waiting;
    for (int64_t r = 0; r < M.e.ranks; r++) {
        if (!is_pair(r)) continue;
        if (t - M.heard[r] > M.host.deadline) lose(r, t - M.heard[r], M.theirs[r].at);
        calls += M.theirs[r].calls;
        waiting += M.theirs[r].waiting;
    }
    if (M.e.rank) return;
    if (waiting < M.e.ranks || calls != M.all_calls || !M.all_wait)
        M.all_wait = waiting < M.e.ranks ? 0 : t;
    M.all_calls = calls;
    if (M.all_wait && t - M.all_wait > M.host.deadline)
        lose(ENGINE_ALL_WAIT, t - M.all_wait, M.mine.at);
}
/* This process itself was stopped (Ctrl-Z) or had no processor: so long it could hear nobody. `t`:
 * now, beyond which nobody was heard. */
static void forgive(double gap, double t) {
    for (int64_t r = 0; r < M.e.ranks; r++)
        if (M.heard[r] < t) M.heard[r] = M.heard[r] + gap < t ? M.heard[r] + gap : t;
    M.all_wait = 0;
}
static void *heart(void *arg) {
    double tick = M.host.deadline / 10, last = atomic_load(&M.since), missed = 0;
    /* missed: of the time between two turns, what is not yet forgiven the others, also where the
     * run had not begun: they are counted as heard a little before it does */
    if (tick > TICK) tick = TICK;
    for (;;) {
        /* the clock first: a stop before it is told to the stage that is there behind it */
        double t = now(), gap = t - last;
        int s = atomic_load(&M.state);
        last = t;
        bool away = gap > M.host.deadline / 2;
        if (away) missed += gap;
        if (s != ENGINE_RUNS && away) atomic_store(&M.since, atomic_load(&M.since) + gap);
        double silent = t - atomic_load(&M.since); /* as for look() */
        if (s == ENDED) return arg;
        if (s != ENGINE_RUNS) M.host.lives(M.host.arg);
        if (s != ENGINE_RUNS && silent > M.host.deadline + GRACE) lose(ENGINE_NOBODY, silent, s);
        if (s == ENGINE_RUNS && pthread_mutex_trylock(&M.lock) == 0) {
            if (atomic_load(&M.state) == ENGINE_RUNS) {
                if (missed > 0) forgive(missed, t);
                missed = 0;
                listen();
                beat();
                look(t);
            }
            pthread_mutex_unlock(&M.lock);
        } else if (s == ENGINE_RUNS) {
            rest(tick / 50); /* the other thread holds it for a moment */
            continue;
        }
        rest(tick);
    }
}

/* ---- messages ---- */
/* Waits until all is done: awake at first, then for ever longer moments asleep. */
static void finish(MPI_Request *r, int n) {
    atomic_fetch_add(&M.calls, 1);
    for (int turn = 0, done = 0;; turn++) {
        int was = done, one = 1;
        pthread_mutex_lock(&M.lock);
        while (done < n && one) {
            must(MPI_Test(&r[done], &one, MPI_STATUS_IGNORE));
            done += one;
        }
        pthread_mutex_unlock(&M.lock);
        if (done == n) break;
        if (done > was) atomic_fetch_add(&M.calls, 1);
        if (turn == 20) atomic_store(&M.waiting, 1);
        if (turn < 200) sched_yield();
        else rest(turn < 1000 ? 20e-6 : 300e-6);
    }
    atomic_store(&M.waiting, 0);
    atomic_fetch_add(&M.calls, 1);
}
static int chunks(const EngineItem *x, int n) {
    int64_t all = 0;
    for (int i = 0; i < n; i++) all += (x[i].bytes + CHUNK - 1) / CHUNK;
    return (int)all;
}
static void post(const EngineItem *x, int n, bool out, MPI_Request **r) {
    for (int i = 0; i < n; i++)
        for (int64_t at = 0; at < x[i].bytes; at += CHUNK) {
            int k = (int)(x[i].bytes - at < CHUNK ? x[i].bytes - at : CHUNK);
            char *p = (char *)x[i].p + at;
            if (out) must(MPI_Isend(p, k, MPI_BYTE, (int)x[i].peer, 0, M.data, (*r)++));
            else must(MPI_Irecv(p, k, MPI_BYTE, (int)x[i].peer, 0, M.data, (*r)++));
        }
}
static void check_items(const EngineItem *x, int n) {
    for (int i = 0; i < n; i++) {
        assert(x[i].peer >= 0 && x[i].peer < M.e.ranks && x[i].peer != M.e.rank);
        assert(x[i].bytes >= 0 && (x[i].p || !x[i].bytes));
    }
}
static void tell(Engine *e, const EngineItem *out, int n_out, const EngineItem *in, int n_in) {
    (void)e;
    check_items(out, n_out);
    check_items(in, n_in);
    int n = chunks(out, n_out) + chunks(in, n_in);
    if (!n) return;
    MPI_Request *all = malloc((size_t)n * sizeof *all), *r = all;
    if (!all) die("out of memory for its requests");
    pthread_mutex_lock(&M.lock);
    post(in, n_in, false, &r);
    post(out, n_out, true, &r);
    pthread_mutex_unlock(&M.lock);
    finish(all, n);
    free(all);
}
static void exchange(Engine *e, const EngineOn *on, const EngineItem *out, int n_out,
                     const EngineItem *in, int n_in) {
    (void)on; /* no GPU is its own */
    tell(e, out, n_out, in, n_in);
}
static int64_t least(Engine *e, int64_t mine) {
    (void)e;
    int64_t all;
    MPI_Request r;
    pthread_mutex_lock(&M.lock);
    must(MPI_Iallreduce(&mine, &all, 1, MPI_INT64_T, MPI_MIN, M.data, &r));
    pthread_mutex_unlock(&M.lock);
    finish(&r, 1);
    return all;
}
static void meet(void) {
    MPI_Request r;
    pthread_mutex_lock(&M.lock);
    must(MPI_Ibarrier(M.data, &r));
    pthread_mutex_unlock(&M.lock);
    finish(&r, 1);
}

/* ---- sums ---- */
static int group(Engine *e, int64_t color, int64_t place) {
    (void)e;
    if (M.n_groups == MAX_GROUPS) return -1;
    meet(); /* splitting waits, and no heart beats meanwhile: so nobody is late for it */
    pthread_mutex_lock(&M.lock);
    enter(ENGINE_GROUPS);
    must(MPI_Comm_split(M.data, (int)color, (int)place, &M.group[M.n_groups]));
    MPI_Comm_set_errhandler(M.group[M.n_groups], MPI_ERRORS_RETURN);
    for (int64_t r = 0; r < M.e.ranks; r++) M.heard[r] = now(); /* nobody's heart beat meanwhile */
    enter(ENGINE_RUNS);
    pthread_mutex_unlock(&M.lock);
    return M.n_groups++;
}
static void ungroup(Engine *e) {
    (void)e;
    pthread_mutex_lock(&M.lock);
    enter(ENGINE_GROUPS);
    while (M.n_groups) MPI_Comm_free(&M.group[--M.n_groups]);
    enter(ENGINE_RUNS);
    pthread_mutex_unlock(&M.lock);
}
static void sum_all(const EngineSum *s, MPI_Datatype type, MPI_Op op) {
    size_t size = s->number == ENGINE_F32 ? 4 : 8;
    for (int64_t at = 0; at < s->n; at += CHUNK / 8) {
        MPI_Request r;
        int k = (int)(s->n - at < CHUNK / 8 ? s->n - at : CHUNK / 8);
        pthread_mutex_lock(&M.lock);
        must(MPI_Iallreduce((const char *)s->mine + (size_t)at * size,
                            (char *)s->out + (size_t)at * size, k, type, op, M.group[s->group],
                            &r));
        pthread_mutex_unlock(&M.lock);
        finish(&r, 1);
    }
}
/* The blocks of all members, one after the other, for lengths that the counts of one call cannot
 * say. */
static void sum_blocks(const EngineSum *s, MPI_Datatype type, MPI_Op op, int members) {
    size_t size = s->number == ENGINE_F32 ? 4 : 8;
    const char *mine = s->mine;
    int self;
    MPI_Comm_rank(M.group[s->group], &self);
    for (int i = 0; i < members; i++)
        for (int64_t at = 0; at < s->each[i]; at += CHUNK / 8) {
            MPI_Request r;
            int k = (int)(s->each[i] - at < CHUNK / 8 ? s->each[i] - at : CHUNK / 8);
            char *to = i == self ? (char *)s->out + (size_t)at * size : NULL;
            pthread_mutex_lock(&M.lock);
            must(MPI_Ireduce(mine, to, k, type, op, i, M.group[s->group], &r));
            pthread_mutex_unlock(&M.lock);
            finish(&r, 1);
            mine += (size_t)k * size;
        }
}
static void sum(Engine *e, const EngineOn *on, const EngineSum *s) {
    (void)on;
    MPI_Datatype type = s->number == ENGINE_F32 ? MPI_FLOAT : MPI_DOUBLE;
    MPI_Op op = s->max ? MPI_MAX : MPI_SUM;
    (void)e;
    assert(s->group >= 0 && s->group < M.n_groups && s->n >= 0);
    if (!s->each) {
        sum_all(s, type, op);
        return;
    }
    int n, *each;
    MPI_Request r;
    MPI_Comm_size(M.group[s->group], &n);
    if (s->n > INT_MAX) {
        sum_blocks(s, type, op, n);
        return;
    }
    if (!(each = malloc((size_t)n * sizeof *each))) die("out of memory for its counts");
    int64_t all = 0;
    for (int i = 0; i < n; i++) {
        assert(s->each[i] >= 0 && s->each[i] <= s->n);
        each[i] = (int)s->each[i];
        all += s->each[i];
    }
    assert(all == s->n);
    pthread_mutex_lock(&M.lock);
    must(MPI_Ireduce_scatter(s->mine, s->out, each, type, op, M.group[s->group], &r));
    pthread_mutex_unlock(&M.lock);
    finish(&r, 1);
    free(each);
}

/* ---- begin and end ---- */
static void abort_all(Engine *e, int code) {
    (void)e;
    MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}
static void close_engine(Engine *e) {
    (void)e;
    meet();             /* rank 0 may write files for minutes: hearts beat meanwhile */
    enter(ENGINE_ENDS); /* nobody has anything left to do */
    meet();
    pthread_mutex_lock(&M.lock);
    listen();
    for (int64_t r = 0; r < M.e.ranks; r++)
        if (M.sent[r] != MPI_REQUEST_NULL) MPI_Wait(&M.sent[r], MPI_STATUS_IGNORE);
    while (M.n_groups) MPI_Comm_free(&M.group[--M.n_groups]);
    MPI_Comm_free(&M.data);
    MPI_Comm_free(&M.life);
    MPI_Finalize();
    enter(ENDED);
    pthread_mutex_unlock(&M.lock);
    pthread_join(M.heart, NULL);
    free(M.theirs);
    free(M.heard);
    free(M.sent);
}
/* The name of the library without what was built into it: "Open MPI 4.1.4", "MPICH 4.0.2". */
static void name_library(void) {
    static char text[MPI_MAX_LIBRARY_VERSION_STRING], title[64], number[64];
    int n;
    MPI_Get_library_version(text, &n);
    text[strcspn(text, ",\n")] = 0;
    bool mpich = sscanf(text, "%63s Version: %63s", title, number) == 2;
    if (mpich) snprintf(M.name, sizeof M.name, "%s %s", title, number);
    else snprintf(M.name, sizeof M.name, "%s", text);
    M.e.name = M.name;
}
static bool start_heart(void) {
    sigset_t all, old;
    pthread_mutex_init(&M.lock, NULL);
    enter(ENGINE_STARTS);
    sigfillset(&all); /* the first thread takes the signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&M.heart, NULL, heart, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) M.host.failed(M.host.arg, "no thread could be started");
    return !failed;
}
static bool start_mpi(void) {
    int have, rank, ranks;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &have) != MPI_SUCCESS) {
        M.host.failed(M.host.arg, "MPI_Init_thread failed");
        return false;
    }
    if (have < MPI_THREAD_SERIALIZED) {
        M.host.failed(M.host.arg, "this MPI was built without threads (MPI_THREAD_SERIALIZED)");
        return false;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &M.data);
    MPI_Comm_dup(MPI_COMM_WORLD, &M.life);
    MPI_Comm_set_errhandler(M.data, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(M.life, MPI_ERRORS_RETURN);
    M.e.rank = M.host.rank = rank;
    M.e.ranks = ranks;
    return true;
}
Engine *ENGINE_OPEN(const EngineHost *host) {
    M.host = *host;
    M.e = (Engine){.device = -1,
                   .exchange = exchange,
                   .tell = tell,
                   .least = least,
                   .group = group,
                   .ungroup = ungroup,
                   .sum = sum,
                   .abort = abort_all,
                   .close = close_engine};
    if (!start_heart() || !start_mpi()) return NULL;
    size_t n = (size_t)M.e.ranks;
    M.theirs = calloc(n, sizeof *M.theirs);
    M.heard = calloc(n, sizeof *M.heard);
    M.sent = calloc(n, sizeof *M.sent);
    if (!M.theirs || !M.heard || !M.sent) {
        M.host.failed(M.host.arg, "out of memory");
        return NULL;
    }
    for (size_t r = 0; r < n; r++) {
        M.sent[r] = MPI_REQUEST_NULL;
        M.heard[r] = now();
    }
    name_library();
    enter(ENGINE_RUNS);
    return &M.e;
}
