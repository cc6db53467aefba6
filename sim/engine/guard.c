/* The process beside a rank. See guard.h. What it is told comes through a pipe; that the rank has
 * ended is told by the kernel. */
#include "engine/guard.h"
#include "base/clock.h"
#include "base/ends.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* milliseconds between two looks at the clock; the most for a rank to end as it is told, which
 * takes a few where it has a processor; file numbers that may be open so early; the word that no
 * other stage has begun */
enum { TICK_MS = 100, LEAVE_MS = 3000, STEP_MS = 25, FILES = 1024, SAME = ENGINE_STAGES };

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
static _Noreturn void guard(int in, pid_t rank, double deadline, const GuardWords *words) {
    EngineStage stage = ENGINE_STARTS;
    double heard = clock_seconds(), last = heard;
    for (;;) {
        struct pollfd p = {.fd = in, .events = POLLIN};
        unsigned char said;
        ssize_t n = poll(&p, 1, stage == ENGINE_RUNS ? -1 : TICK_MS) > 0 ? read(in, &said, 1) : -1;
        double now = clock_seconds(), gap = now - last;
        last = now;
        if (n == 0) _exit(0);
        if (n == 1) {
            if (said != SAME) stage = (EngineStage)said;
            heard = now;
        } else if (gap > deadline / 2) heard += gap; /* the guard itself was stopped, or starved */
        if (stage == ENGINE_RUNS || now - heard <= deadline) continue;
        words->silent(words->arg, stage, now - heard);
        end_rank(rank);
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
    int pipes[2];
    pid_t rank = getpid();
    if (pipe(pipes) < 0) return false;
    g->out = pipes[1];
    listen_to_guard(); /* before there is one: a rank that is stopped here ends by it as well */
    g->pid = fork();
    if (g->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != rank) _exit(0);
        prctl(PR_SET_NAME, "shardproofguard");
        let_go(pipes[0]);
        guard(pipes[0], rank, deadline, words);
    }
    close(pipes[0]);
    fcntl(g->out, F_SETFD, FD_CLOEXEC);
    fcntl(g->out, F_SETFL, O_NONBLOCK);
    if (g->pid < 0) close(g->out);
    return g->pid > 0;
}
/* A guard that is stopped has a pipe full of words to read, of which one is enough. */
static void say(const Guard *g, unsigned char word) {
    ssize_t written = write(g->out, &word, 1);
    (void)written;
}
void guard_stage(const Guard *g, EngineStage stage) {
    say(g, (unsigned char)stage);
    if (stage == ENGINE_ENDS)
        kill(g->pid, SIGCONT); /* whoever stopped it may have let the rank be */
}
void guard_lives(const Guard *g) { say(g, SAME); }
