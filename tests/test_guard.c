/* The process beside a rank (engine/guard.c): a rank that is stopped or shows no life where no
 * other can see it is named and ended, at its end even where its guard is stopped too; one that
 * lives, runs, or was stopped together with all that wait for it goes on; no guard outlives its
 * rank. What a whole run says then is test_mpi_ends's. */
#include "engine/guard.h"
#include "support/child.h"
#include "support/support.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A rank, and what its guard said. Both write to the one pipe: "PID PID\n" of the guard and the
 * rank, "3 was silent\n". */
typedef struct {
    pid_t child, rank, guard; /* the child is the rank, or a launcher that waits for it */
    int in, status;
    char said[64];
} Pair;
typedef void Act(const Guard *g, double deadline);
static void silent(void *arg, EngineStage stage, double seconds) {
    char text[64];
    int n = snprintf(text, sizeof text, "%d %s\n", (int)stage, (const char *)arg);
    if (seconds < 0 || write(STDERR_FILENO, text, (size_t)n) < 0) _exit(99);
}
static _Noreturn void rank(int out, Act *act, double deadline) {
    Guard g;
    char text[32];
    setpgid(0, 0);
    dup2(out, STDERR_FILENO);
    if (!guard_start(&g, deadline, &(GuardWords){silent, "was silent"})) _exit(98);
    int n = snprintf(text, sizeof text, "%d %d\n", (int)g.pid, (int)getpid());
    if (write(STDERR_FILENO, text, (size_t)n) < 0) _exit(97);
    act(&g, deadline);
    _exit(0);
}
static _Noreturn void launcher(int out, Act *act, double deadline) {
    int status;
    pid_t pid = fork();
    if (pid == 0) rank(out, act, deadline);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) _exit(95);
    _exit(WEXITSTATUS(status));
}
static void read_line(int in, char *to, size_t room) {
    size_t n = 0;
    while (n + 1 < room && read(in, to + n, 1) == 1 && to[n] != '\n') n++;
    to[n] = 0;
}
static Pair begin(Act *act, double deadline, bool launched) {
    int pipes[2];
    Pair p = {0};
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    p.child = fork();
    if (p.child == 0) (launched ? launcher : rank)(pipes[1], act, deadline);
    assert_true(p.child > 0);
    close(pipes[1]);
    p.in = pipes[0];
    read_line(p.in, p.said, sizeof p.said);
    char *end;
    p.guard = (pid_t)strtol(p.said, &end, 10);
    p.rank = (pid_t)strtol(end, NULL, 10);
    assert_true(p.guard > 0 && p.rank > 0 && p.guard != p.rank);
    return p;
}
/* The pipe is at its end when both have ended: a guard that stayed would hold the test here. */
static void finish(Pair *p) {
    read_line(p->in, p->said, sizeof p->said);
    char more[8];
    read_line(p->in, more, sizeof more);
    assert_string_equal(more, "");
    close(p->in);
    assert_int_equal(waitpid(p->child, &p->status, 0), p->child);
}
/* Or it has ended: whoever would look at that may be stopped. */
static void wait_stopped(pid_t pid) {
    while (process_state(pid) != 'T' && !process_ended(pid)) usleep(1000);
}

static void stops(const Guard *g, double deadline) {
    (void)g, (void)deadline;
    raise(SIGSTOP);
}
static void stops_in_groups(const Guard *g, double deadline) {
    guard_stage(g, ENGINE_RUNS);
    guard_stage(g, ENGINE_GROUPS);
    stops(g, deadline);
}
static void stops_at_its_end(const Guard *g, double deadline) {
    guard_stage(g, ENGINE_ENDS);
    guard_lives(g);
    stops(g, deadline);
}
/* Once it has a name of its own the guard ends with its rank. */
static void stop_guard(const Guard *g) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)g->pid);
    while (strncmp(name, "shardproofguard", 15) != 0) {
        FILE *f = fopen(path, "r");
        if (!f || !fgets(name, sizeof name, f)) _exit(96);
        fclose(f);
        usleep(1000); /* the processor may be the guard's */
    }
    kill(g->pid, SIGSTOP);
    wait_stopped(g->pid);
}
static void stops_behind_its_guard(const Guard *g, double deadline) {
    guard_stage(g, ENGINE_RUNS);
    stop_guard(g);
    for (int i = 0; i < 100; i++) guard_lives(g);
    stops_at_its_end(g, deadline);
}
static void stops_with_its_guard(const Guard *g, double deadline) {
    guard_stage(g, ENGINE_ENDS);
    stop_guard(g);
    stops(g, deadline);
}
/* Nobody is left to see it: it goes on by itself. */
static void stops_without_a_guard(const Guard *g, double deadline) {
    guard_stage(g, ENGINE_ENDS);
    kill(g->pid, SIGKILL);
    stops(g, deadline);
}
static void hangs(const Guard *g, double deadline) {
    (void)deadline;
    guard_stage(g, ENGINE_ENDS);
    for (;;) pause();
}
static void hears_nothing(const Guard *g, double deadline) {
    signal(SIGUSR1, SIG_IGN);
    hangs(g, deadline);
}
static void lives(const Guard *g, double deadline) {
    for (int i = 0; i < 120; i++) {
        guard_lives(g);
        usleep((useconds_t)(deadline * 2e4));
    }
}
static void runs(const Guard *g, double deadline) {
    guard_stage(g, ENGINE_RUNS);
    usleep((useconds_t)(deadline * 3e6));
}
/* As every rank is that somebody stopped: there is none to see it. */
static void stops_while_it_runs(const Guard *g, double deadline) {
    guard_stage(g, ENGINE_RUNS);
    stops(g, deadline);
}
static void dies(const Guard *g, double deadline) {
    (void)g, (void)deadline;
    raise(SIGKILL);
}
static void dies_behind_its_guard(const Guard *g, double deadline) {
    guard_stage(g, ENGINE_RUNS); /* however long stopping it takes */
    stop_guard(g);
    dies(g, deadline);
}
/* A rank, or this process, may have had no processor for a whole deadline, which nobody can tell
 * from one that hangs: what fails is tried again with a longer one, and a defect fails each time.
 */
enum { TRIES = 4 };
static bool in_a_try(bool (*go)(double deadline), double deadline) {
    for (int k = 0; k < TRIES; k++, deadline *= 4)
        if (go(deadline)) return true;
    return false;
}
static bool ended_so(const Pair *p, const char *said, int code, int sig) {
    bool ok = strcmp(p->said, said) == 0 &&
              (sig ? WIFSIGNALED(p->status) && WTERMSIG(p->status) == sig
                   : WIFEXITED(p->status) && WEXITSTATUS(p->status) == code);
    if (!ok)
        print_message("said '%s' for '%s', status %#x: once more\n", p->said, said,
                      (unsigned)p->status);
    return ok;
}
/* All at once: their deadlines are waited for together. */
static bool all_ends(double deadline) {
    static const struct {
        Act *act;
        int code, sig; /* of the rank's end */
        const char *said;
    } list[] = {
        {stops, ENGINE_EXIT, 0, "0 was silent"},
        {stops_in_groups, ENGINE_EXIT, 0, "2 was silent"},
        {stops_at_its_end, ENGINE_EXIT, 0, "3 was silent"},
        {stops_behind_its_guard, ENGINE_EXIT, 0, "3 was silent"},
        {stops_with_its_guard, ENGINE_EXIT, 0, "3 was silent"},
        {stops_without_a_guard, 0, 0, ""},
        {hangs, ENGINE_EXIT, 0, "3 was silent"},
        {hears_nothing, 0, SIGKILL, "3 was silent"},
        {lives, 0, 0, ""},
        {runs, 0, 0, ""},
        {stops_while_it_runs, ENGINE_EXIT, 0, "1 was silent"},
        {dies, 0, SIGKILL, ""},
        {dies_behind_its_guard, 0, SIGKILL, ""},
    };
    enum { N = sizeof list / sizeof *list };
    static bool held[N]; /* in some try */
    bool all = true;
    Pair p[N];
    for (size_t i = 0; i < N; i++)
        if (!held[i]) p[i] = begin(list[i].act, deadline, false);
    for (size_t i = 0; i < N; i++) {
        if (held[i]) continue;
        finish(&p[i]);
        held[i] = ended_so(&p[i], list[i].said, list[i].code, list[i].sig);
        if (!held[i]) print_message("act %zu\n", i);
        all &= held[i];
    }
    return all;
}
static void test_ends(void **state) {
    (void)state;
    assert_true(in_a_try(all_ends, 3.0 * slow_machine()));
}
/* Ctrl-Z, and a machine that sleeps: for longer than the deadline, and whoever waits for the rank
 * is stopped too. */
static bool stopped_together(double deadline) {
    static Act *const acts[] = {stops_at_its_end, stops_while_it_runs};
    bool ok = true;
    for (int i = 0; i < 2 && ok; i++) {
        Pair p = begin(acts[i], deadline, true);
        kill(p.child, SIGSTOP);
        wait_stopped(p.rank);
        kill(p.guard, SIGSTOP);
        usleep((useconds_t)(deadline * 1.6e6));
        kill(p.child, SIGCONT);
        kill(-p.rank, SIGCONT);
        finish(&p);
        ok = ended_so(&p, "", 0, 0);
    }
    return ok;
}
static void test_stopped_together(void **state) {
    (void)state;
    assert_true(in_a_try(stopped_together, 3.0 * slow_machine()));
}
/* Between fork() and what follows it there is a guard already: the rank ends by it all the same. */
static void stop_here(void) { raise(SIGSTOP); }
static bool stopped_at_its_birth(double deadline) {
    Guard g;
    int pipes[2];
    Pair p = {0};
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    p.child = fork();
    if (p.child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        pthread_atfork(NULL, stop_here, NULL);
        _exit(guard_start(&g, deadline, &(GuardWords){silent, "was silent"}) ? 0 : 98);
    }
    close(pipes[1]);
    p.in = pipes[0];
    finish(&p);
    return ended_so(&p, "0 was silent", ENGINE_EXIT, 0);
}
static void test_stopped_at_its_birth(void **state) {
    (void)state;
    assert_true(in_a_try(stopped_at_its_birth, 1.0 * slow_machine()));
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_stopped_at_its_birth),
        cmocka_unit_test(test_stopped_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
