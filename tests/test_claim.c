/* Who has the last words of a run (engine/claim.c, base_last_words): of the processes of a job one,
 * whenever and from wherever the others speak, also where that one has ended since, or did before
 * it had spoken. What whole runs say is test_nccl's and test_mpi_ends's. */
#include "base/ends.h"
#include "engine/claim.h"
#include "support/support.h"
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MANY = 24 };

/* Processes that speak into one pipe, each when the one before it has spoken and has ended
 * (`in_turn`), or all when the last of them is there. */
typedef struct {
    int said[2], go[2], here[2];
} Pipes;
static Pipes pipes_new(void) {
    Pipes p;
    assert_int_equal(pipe(p.said), 0);
    assert_int_equal(pipe(p.go), 0);
    assert_int_equal(pipe(p.here), 0);
    return p;
}
static _Noreturn void speaker(const Pipes *p, const char *job, int number) {
    char c;
    dup2(p->said[1], STDERR_FILENO);
    if (job) claim_share(job);
    if (write(p->here[1], "", 1) != 1 || read(p->go[0], &c, 1) != 1) _exit(9);
    base_last_words("none", "process %d speaks", number);
    _exit(0);
}
static int lines(Pipes *p) {
    char text[8192];
    int n = 0, found = 0;
    close(p->said[1]);
    for (ssize_t k; (k = read(p->said[0], text + n, sizeof text - 1 - (size_t)n)) > 0;) n += (int)k;
    text[n] = 0;
    for (const char *s = text; (s = strstr(s, " speaks\n  = help: none\n")); s++) found++;
    int others[] = {p->said[0], p->go[0], p->go[1], p->here[0], p->here[1]};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) close(others[i]);
    return found;
}
static void let_speak(const Pipes *p, int n) {
    for (int i = 0; i < n; i++) assert_int_equal(write(p->go[1], "", 1), 1);
}
static void all_well(const pid_t *pid, int n) {
    for (int i = 0; i < n; i++) {
        int status;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
}
static int speak(const char *const *job, bool in_turn) {
    Pipes p = pipes_new();
    pid_t pid[MANY];
    char c;
    fflush(NULL);
    for (int i = 0; i < MANY; i++)
        if ((pid[i] = fork()) == 0) speaker(&p, job[i], i);
    for (int i = 0; i < MANY; i++) assert_int_equal(read(p.here[0], &c, 1), 1);
    let_speak(&p, in_turn ? 1 : MANY);
    for (int i = 1; in_turn && i < MANY; i++) { /* whichever it was has ended before the next */
        siginfo_t x;
        assert_int_equal(waitid(P_ALL, 0, &x, WEXITED | WNOWAIT), 0);
        for (int k = 0; k < MANY; k++)
            if (pid[k] == x.si_pid) {
                all_well(&pid[k], 1);
                pid[k] = 0;
            }
        let_speak(&p, 1);
    }
    for (int i = 0; i < MANY; i++)
        if (pid[i]) all_well(&pid[i], 1);
    return lines(&p);
}
/* One that has its name and does not answer by it for a while, as one that has no processor there:
 * it says so to that file. */
static int late_to = -1;
int listen(int fd, int n) {
    if (late_to >= 0) {
        if (write(late_to, "", 1) != 1) _exit(9);
        usleep(2000000);
    }
    return (int)syscall(SYS_listen, fd, n);
}
static const char *job_name(Arena *a, const char *of) {
    return arena_printf(a, "test-%d-%s", (int)getpid(), of);
}
static void test_one_speaks(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *job[MANY];
    for (int turn = 0; turn < 20; turn++) {
        for (int i = 0; i < MANY; i++) job[i] = job_name(a, turn % 2 ? "all at once" : "in turn");
        assert_int_equal(speak(job, turn % 2 == 0), 1);
    }
    /* of several jobs one each, and everybody who is of none */
    for (int i = 0; i < MANY; i++) job[i] = job_name(a, i % 3 ? i % 3 > 1 ? "b" : "c" : "a");
    assert_int_equal(speak(job, false), 3);
    for (int i = 0; i < MANY; i++) job[i] = i ? NULL : job_name(a, "alone");
    assert_int_equal(speak(job, false), MANY);
    arena_free(a);
}
/* The job's name is free again when its processes have ended: whoever comes then is another run. */
static void test_forgotten(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *job[MANY], *name = job_name(a, "again");
    for (int i = 0; i < MANY; i++) job[i] = name;
    for (int turn = 0; turn < 3; turn++) assert_int_equal(speak(job, turn % 2), 1);
    arena_free(a);
}
/* A child that has been forked behind it shares it, as a guard does, without any name. */
static void test_forked(void **state) {
    (void)state;
    Pipes p = pipes_new();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int status;
        claim_share("");
        let_speak(&p, 2);
        if (fork() == 0) speaker(&p, NULL, 1);
        wait(&status);
        speaker(&p, NULL, 0);
    }
    all_well(&pid, 1);
    assert_int_equal(lines(&p), 1);
}
/* Whoever comes in the meantime waits for it. */
static void test_late_answer(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *job = job_name(a, "late");
    Pipes p = pipes_new();
    int named[2];
    char c;
    pid_t pid[2];
    assert_int_equal(pipe(named), 0);
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        if ((pid[i] = fork()) == 0) {
            late_to = i ? -1 : named[1];
            speaker(&p, job, i);
        }
        if (!i) assert_int_equal(read(named[0], &c, 1), 1);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(read(p.here[0], &c, 1), 1);
    let_speak(&p, 2);
    all_well(pid, 2);
    close(named[0]);
    close(named[1]);
    assert_int_equal(lines(&p), 1);
    arena_free(a);
}
/* One who was about to speak, and never will: it has ended, or is stopped. */
static void test_never_spoke(void **state) {
    (void)state;
    for (int stopped = 0; stopped < 2; stopped++) {
        Pipes p = pipes_new();
        _Atomic int32_t *word =
            mmap(NULL, sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(word, MAP_FAILED);
        fflush(NULL);
        pid_t other = fork();
        if (other == 0) {
            raise(SIGSTOP);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(other, &status, WUNTRACED), other);
        if (!stopped) {
            kill(other, SIGCONT);
            all_well(&other, 1);
        }
        atomic_store(word, (int32_t)other);
        let_speak(&p, 2);
        pid_t pid = fork();
        if (pid == 0) {
            base_one_speaks(word);
            speaker(&p, NULL, 0);
        }
        all_well(&pid, 1);
        if (stopped) { /* and says nothing when it goes on */
            assert_true(atomic_load(word) < 0);
            kill(other, SIGKILL);
            waitpid(other, &status, 0);
        }
        munmap((void *)(uintptr_t)word, sizeof *word);
        assert_int_equal(lines(&p), 1);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_speaks),  cmocka_unit_test(test_forgotten),
        cmocka_unit_test(test_forked),      cmocka_unit_test(test_never_spoke),
        cmocka_unit_test(test_late_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
