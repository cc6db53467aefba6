/* Drawing when threads or memory are short: Pango looks for fonts in threads of its own, and
 * fontconfig crashes where it gets no memory. Each run of the real binary ends in 0, or in 5 with
 * the reason, and leaves the old file or the new one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "support/child.h"
#include "support/sandbox.h"
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* 0 and a whole picture, or 5, one line with a code, and the old one. Returns the code. */
static int holds(const Ended *e, const char *what) {
    const char *have = child_read(arena, in("x.svg"), NULL);
    bool old = have && strcmp(have, "old") == 0, fresh = have && strstr(have, "</svg>\n");
    bool told = e->code == 5 && (strstr(e->err, "[E0701]") || strstr(e->err, "[E0706]")) && old;
    if (!(told || (e->code == 0 && fresh)))
        print_error("%s: exit %d, %s file\n%s", what, e->code,
                    old     ? "old"
                    : fresh ? "new"
                            : "no whole",
                    e->err);
    assert_true(told || (e->code == 0 && fresh));
    assert_int_equal(child_count(dir, ".tmp"), 0);
    return e->code;
}
/* The n-th thread cannot be started, or none from the n-th on. */
static void test_threads_fail(void **state) {
    (void)state;
    const char *trip = arena_printf(arena, "LD_PRELOAD=%s", child_preload(arena, "trip.so"));
    int ended = 0, refused = 0;
    for (int n = 1; !ended && n < 500; n += n < 10 ? 1 : n / 2)
        for (int on = 0; on < 2; on++) {
            const char *env[] = {trip, "TRIP_WHAT=thread", arena_printf(arena, "TRIP_AT=%d", n),
                                 arena_printf(arena, "TRIP_LAST=%d", on ? 1000000 : n), NULL};
            child_write(in("x.svg"), "old");
            Ended e = child_run(
                arena,
                &(Child){.words = WORDS("draw", in("plan.yaml"), "-o", in("x.svg")), .env = env});
            int code = holds(&e, arena_printf(arena, "thread %d%s", n, on ? " and on" : ""));
            refused += code == 5;
            ended = code == 0;
        }
    assert_true(ended && refused);
}
/* Commands without pictures do with the one thread that they have. */
static void test_one_thread(void **state) {
    (void)state;
    const char *const env[] = {
        arena_printf(arena, "LD_PRELOAD=%s", child_preload(arena, "trip.so")),
        "TRIP_WHAT=thread",
        "TRIP_AT=1",
        "TRIP_LAST=1000000",
        "CI",
        "TERM=xterm",
        NULL};
    Ended e = child_run(
        arena, &(Child){.words = WORDS("check", in("plan.yaml"), "--threads", "8"), .env = env});
    assert_int_equal(e.code, 0);
    e = child_run(arena,
                  &(Child){.words = WORDS("check", in("plan.yaml")), .env = env, .pty = true});
    assert_int_equal(e.code, 0);
    e = child_run(arena,
                  &(Child){.words = WORDS("draw", in("plan.yaml"), "-o", in("x.txt")), .env = env});
    assert_int_equal(e.code, 0);
    e = child_run(arena,
                  &(Child){.words = WORDS("run", in("plan.yaml"), "-o", in("o")), .env = env});
    assert_int_equal(e.code, 5);
    assert_non_null(strstr(e.err, "[E0706]"));
}
/* As a user without rights (root has no such limit), in a folder that is this user's. */
static void as_nobody(void) {
    struct rlimit r = {2, 2};
    if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setrlimit(RLIMIT_NPROC, &r) != 0 ||
        setuid(65534) != 0)
        _exit(125);
}
static void test_few_processes(void **state) {
    (void)state;
    if (geteuid() != 0 || chmod(dir, 0777) != 0 || chmod(in("plan.yaml"), 0644) != 0) {
        print_message("not root: the limit of processes was tested by threads that fail\n");
        skip();
    }
    child_write(in("x.svg"), "old");
    assert_int_equal(chmod(in("x.svg"), 0666), 0);
    Ended e = child_run(arena, &(Child){.words = WORDS("draw", in("plan.yaml"), "-o", in("x.svg")),
                                        .prepare = as_nobody});
    if (e.code == 127 || e.code == 125) {
        print_message("another user may not start the program here\n");
        skip();
    }
    assert_int_equal(holds(&e, "ulimit -u 2"), 5);
}
/* Every limit of address space from too little to enough, several times: threads make no two runs
 * alike. */
static void test_little_memory(void **state) {
    (void)state;
    long step = getenv("SHARDPROOF_SOAK") ? 1 : 8;
    int refused = 0, drawn = 0;
    for (long mib = 60; mib <= 240; mib += step) {
        const char *what = arena_printf(arena, "ulimit -v %ld MiB", mib);
        child_write(in("x.svg"), "old");
        Ended e =
            child_run(arena, &(Child){.words = WORDS("draw", in("plan.yaml"), "-o", in("x.svg")),
                                      .limit = RLIMIT_AS,
                                      .limit_to = mib << 20});
        if (e.code == 127) continue; /* the loader got no memory for the libraries */
        int code = holds(&e, what);
        refused += code == 5;
        drawn += code == 0;
    }
    assert_true(refused && drawn);
}

static void deaf(void) { /* as a parent may leave its children */
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGPROF);
    sigaddset(&both, SIGXCPU);
    signal(SIGPROF, SIG_IGN);
    signal(SIGXCPU, SIG_IGN);
    sigprocmask(SIG_BLOCK, &both, NULL);
}
/* A soft limit of processor time that is the hard one, too, as `ulimit -t` sets it: told, not
 * killed, down to the single second that is the least. The run wants some fifteen times as much. */
static void test_processor_time(void **state) {
    (void)state;
    const char *const words[] = {"check",     "plans/03-llama3-8b-tp2.yaml",
                                 "--set",     "model.shrink=1",
                                 "--set",     "data.batch=16",
                                 "--threads", "1",
                                 NULL};
    for (int k = 0; k < 4; k++) {
        Ended e = child_run(arena, &(Child){.words = words,
                                            .limit = RLIMIT_CPU,
                                            .limit_to = 1 + k % 2,
                                            .prepare = k < 2 ? NULL : deaf});
        if (e.code != 5 || !strstr(e.err, "[E0705]")) fail_msg("%d: exit %d, %s", k, e.code, e.err);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, sandbox_plan, sandbox_gone)
int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_threads_fail), TEST(test_one_thread),
                                       TEST(test_few_processes), TEST(test_little_memory),
                                       TEST(test_processor_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
