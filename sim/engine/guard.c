/* The process beside a rank. See guard.h. What it is told comes through a socket; that the rank has
 * ended is told by the kernel, whose timer also wakes up a guard that somebody has stopped. */
#include "engine/guard.h"
#include "base/clock.h"
#include "base/ends.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* milliseconds between two looks at the clock; the most for a rank to end as it is told, which
 * takes a few where it has a processor; the most for it to wait for its guard; seconds that the
 * others have to name a rank that runs; file numbers that may be open so early; the word that no
 * other stage has begun */
enum {
    TICK_MS = 100,
    LEAVE_MS = 3000,
    STEP_MS = 25,
    HEAR_MS = 1000,
    OTHERS = 1,
    FILES = 1024,
    SAME = ENGINE_STAGES
};
/* seconds: no look at the clock comes so soon after the last where a process was stopped */
static const double SHORT = 0.5;
/* What a guard watches: its rank, and who waits for that. */
typedef struct {
    pid_t rank, waits;
    double deadline;
    Waker waker; /* of the guard */
} Watched;

/* The launcher's pipes would stay open in the guard, and what it reads from them never end. */
static void let_go(int keep) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGUSR1};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    for (int fd = 0; fd < FILES; fd++)
        if (fd != keep && fd != STDERR_FILENO) close(fd);
}
/* One that is stopped wakes up for it: with the exit code of a lost rank where it can, or none. Its
 * end is the guard's (PR_SET_PDEATHSIG), which waits no longer then. */
static _Noreturn void end_rank(pid_t rank) {
    kill(rank, SIGUSR1);
    kill(rank, SIGCONT);
    /* in small steps: where there is no processor for the rank there is none for its guard either
     */
    for (int ms = 0; ms < LEAVE_MS; ms += STEP_MS) poll(NULL, 0, STEP_MS);
    kill(rank, SIGKILL);
    _exit(0);
}
/* A guard that is stopped has many words to read, of which one is enough. */
static void say(int to, unsigned char word) {
    ssize_t sent = send(to, &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)sent;
}
static void wake(int sig) { (void)sig; }
static Waker waker_new(void) {
    /* a signal that is ignored is not sent again */
    struct sigaction a = {.sa_handler = wake, .sa_flags = SA_RESTART};
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
    Waker w = {0};
    w.there = sigaction(SIGCONT, &a, NULL) == 0 && timer_create(CLOCK_MONOTONIC, &e, &w.timer) == 0;
    return w;
}
static void waker_set(const Waker *w, double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) + 1};
    struct itimerspec each = {t, t};
    if (w->there) timer_settime(w->timer, 0, &each, NULL);
}
static bool is_stopped(pid_t pid) {
    char path[32], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *name_end = strrchr(text, ')'); /* "12 (mpirun) T 1 ..." */
    return name_end && name_end[1] == ' ' && strchr("Tt", name_end[2] ? name_end[2] : ' ');
}
static _Noreturn void guard(int in, const Watched *w, const GuardWords *words) {
    EngineStage stage = ENGINE_STARTS;
    double heard = clock_seconds(), last = heard;
    for (;;) {
        struct pollfd p = {.fd = in, .events = POLLIN};
        unsigned char said;
        ssize_t n = poll(&p, 1, TICK_MS) > 0 ? read(in, &said, 1) : -1;
        double now = clock_seconds(), gap = now - last;
        last = now;
        if (n == 0) _exit(0);
        if (n == 1) {
            if (said == ENGINE_ENDS && stage != ENGINE_ENDS) waker_set(&w->waker, w->deadline / 4);
            if (said == ENGINE_ENDS) say(in, said);
            if (said != SAME) stage = (EngineStage)said;
            heard = now;
        } else if (gap > w->deadline / 2 && gap > SHORT)
            heard += gap; /* it was stopped itself, or starved */
        bool runs = stage == ENGINE_RUNS;
        if (runs && !is_stopped(w->rank)) heard = now;
        if (now - heard <= w->deadline + (runs ? OTHERS : 0)) continue;
        if ((runs || stage == ENGINE_ENDS) && is_stopped(w->waits)) {
            heard = now; /* Ctrl-Z: nobody is kept waiting */
            continue;
        }
        words->silent(words->arg, stage, now - heard);
        end_rank(w->rank);
    }
}

/* SIGUSR1: the guard's, or somebody's who would have ended the process without cleaning up. */
static void leave(int sig) {
    (void)sig;
    base_run_cleanups();
    _exit(ENGINE_EXIT);
}
static void listen_to_guard(void) {
    struct sigaction old, now = {.sa_handler = leave};
    sigfillset(&now.sa_mask);
    if (sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(SIGUSR1, &now, NULL);
}
bool guard_start(Guard *g, double deadline, const GuardWords *words) {
    int ends[2];
    Watched w = {.rank = getpid(), .waits = getppid(), .deadline = deadline};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return false;
    *g = (Guard){.to = ends[1], .deadline = deadline, .waker = waker_new()};
    listen_to_guard(); /* before there is one: a rank that is stopped here ends by it as well */
    g->pid = fork();
    if (g->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != w.rank) _exit(0);
        prctl(PR_SET_NAME, "shardproofguard");
        let_go(ends[0]);
        w.waker = waker_new();
        guard(ends[0], &w, words);
    }
    int why = errno;
    close(ends[0]);
    if (g->pid < 0) close(g->to);
    errno = why;
    return g->pid > 0;
}
/* Once it has heard of the end it cannot be kept stopped: so a rank that is stopped later is seen.
 * Where the guard is no more, the rank wakes up by itself, which then ends well. */
static void be_heard(const Guard *g) {
    struct pollfd p = {.fd = g->to, .events = POLLIN};
    unsigned char word;
    waker_set(&g->waker, g->deadline + 1);
    kill(g->pid, SIGCONT); /* whoever stopped it may have let the rank be */
    if (poll(&p, 1, HEAR_MS) > 0) (void)!recv(g->to, &word, 1, MSG_DONTWAIT);
}
void guard_stage(const Guard *g, EngineStage stage) {
    say(g->to, (unsigned char)stage);
    if (stage == ENGINE_ENDS) be_heard(g);
}
void guard_lives(const Guard *g) { say(g->to, SAME); }
