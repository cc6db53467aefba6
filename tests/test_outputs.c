/* What happens to outputs when the machine says no or the user says stop: a folder that cannot be
 * written, a full disk, a limit of file sizes, a closed stream, a reader that goes away, a signal
 * at any moment. Run on the real binary: the exit code is that of docs/shardproof.1, an earlier
 * file keeps its bytes, and no file is left that was not asked for. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "support/child.h"
#include "support/sandbox.h"
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const run_files[] = {
    "small.trace.jsonl",  "small.block.svg",      "small.block.png",  "small.timeline.svg",
    "small.timeline.png", "small.overview.svg",   "small.shards.svg", "small.memory.svg",
    "small.errors.svg",   "small.storyboard.svg", "small.mesh.svg",   "small.roofline.svg"};
enum { N_RUN_FILES = sizeof run_files / sizeof *run_files };

static void expect_bytes(const char *path, const char *text) {
    const char *have = child_read(arena, path, NULL);
    assert_non_null(have);
    assert_string_equal(have, text);
}
/* Nothing in the folder that starts with our temporary name. */
static void expect_clean(const char *folder) { assert_int_equal(child_count(folder, ".tmp"), 0); }

/* A command for every way to a file, and the file. */
typedef struct {
    const char *file;
    const char *words[10];
} Way;
static Way ways(int i) {
    const char *p = in("plan.yaml");
    const Way all[] = {
        {in("x.svg"), {"draw", p, "-o", in("x.svg")}},
        {in("x.png"), {"draw", p, "-o", in("x.png")}},
        {in("x.pdf"), {"draw", p, "-o", in("x.pdf")}},
        {in("x.txt"), {"draw", p, "-o", in("x.txt")}},
        {in("x.json"), {"draw", p, "--view", "timeline", "-o", in("x.json")}},
        {in("v.safetensors"), {"check", p, "--save-values", in("v.safetensors")}},
        {in("t.jsonl"), {"check", p, "--trace", in("t.jsonl")}},
        {in("junit.xml"), {"check", p, "--format", "junit", "-o", in("junit.xml")}},
        {in("sarif.json"), {"check", p, "--format", "sarif", "-o", in("sarif.json")}},
        {in("list.md"), {"list", "codes", "--format", "md", "-o", in("list.md")}},
        {in("shapes.csv"), {"shapes", p, "--format", "csv", "-o", in("shapes.csv")}},
        {p, {"check", p, "--update-expect"}}};
    return i < (int)(sizeof all / sizeof *all) ? all[i] : (Way){0};
}

/* ---- the machine says no ---- */
/* Asked before the work: "nothing was run" is true. As root the permission bits say nothing, a
 * missing folder does. */
static void test_no_folder(void **state) {
    (void)state;
    const char *p = in("plan.yaml");
    Ended e = child_run(arena, &(Child){.words = WORDS("draw", p, "-o", in("none/x.svg"))});
    child_expect(&e, 4, "the folder does not exist");
    e = child_run(arena, &(Child){.words = WORDS("check", p, "--trace", in("none/t"),
                                                 "--save-values", in("plan.yaml/v"))});
    child_expect(&e, 4, "E0105");
    assert_null(strstr(e.out, "equivalent")); /* not run */
    const char *taken = put("taken", "");
    e = child_run(arena, &(Child){.words = WORDS("run", p, "-o", taken)});
    child_expect(&e, 4, "it is a file");
    unlink(taken);
    e = child_run(arena, &(Child){.words = WORDS("run", p, "-o", "/proc/none/deep")});
    child_expect(&e, 4, "nothing was run");
    e = child_run(arena, &(Child){.words = WORDS("check", p, "-o", dir)});
    child_expect(&e, 4, "Is a directory");
    assert_int_equal(child_count(dir, ""), 1);
}
static void as_nobody(void) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(125);
}
/* May that user start the program where it lies? Not in a clone under /root. */
static bool nobody_runs(void) {
    Ended e = child_run(arena, &(Child){.words = WORDS("--version"), .prepare = as_nobody});
    if (e.code) print_message("another user may not start %s: it is copied\n", child_program());
    return e.code == 0;
}
static void test_no_permission(void **state) {
    (void)state;
    assert_true(chmod(dir, 0755) == 0 && chmod(in("plan.yaml"), 0644) == 0);
    if (!nobody_runs()) {
        child_use(in("shardproof"));
        assert_true(nobody_runs());
    }
    assert_int_equal(mkdir(in("closed"), 0555), 0);
    child_write(in("mine.svg"), "old");
    assert_int_equal(chmod(in("mine.svg"), 0444), 0);
    const char *p = in("plan.yaml");
    Ended e = child_run(arena, &(Child){.words = WORDS("run", p, "-o", in("closed/deep/er")),
                                        .prepare = as_nobody});
    child_expect(&e, 4, "Permission denied");
    e = child_run(
        arena, &(Child){.words = WORDS("draw", p, "-o", in("closed/x.svg")), .prepare = as_nobody});
    child_expect(&e, 4, "Permission denied");
    e = child_run(arena,
                  &(Child){.words = WORDS("draw", p, "-o", in("mine.svg")), .prepare = as_nobody});
    child_expect(
        &e, 4,
        "Permission denied"); /* renaming over a file that may not be written would have worked */
    expect_bytes(in("mine.svg"), "old");
    assert_int_equal(child_count(in("closed"), ""), 0);
    expect_clean(dir);
    /* plans that nobody may look at are not taken for held */
    assert_true(mkdir(in("closed/plans"), 0755) == 0 && mkdir(in("closed/plans/own"), 0700) == 0);
    child_write(in("closed/plans/p.yaml"), SMALL_PLAN);
    assert_int_equal(chmod(in("closed/plans/p.yaml"), 0644), 0);
    const char *const all[] = {in("closed/plans"), in("closed/plans/**/*.yaml")};
    for (int i = 0; i < 2 && geteuid() == 0; i++) {
        e = child_run(arena, &(Child){.words = WORDS("check", all[i]), .prepare = as_nobody});
        child_expect(&e, 3, "/plans/own' cannot be opened: Permission denied");
    }
    rmdir(in("closed/plans/own"));
    unlink(in("closed/plans/p.yaml"));
    rmdir(in("closed/plans"));
    child_use(NULL);
}
/* A limit of file sizes kills the process unless SIGXFSZ is ignored; then write says so. */
static void test_size_limit(void **state) {
    (void)state;
    for (int i = 0; ways(i).file; i++) {
        Way w = ways(i);
        bool is_plan = strcmp(w.file, in("plan.yaml")) == 0;
        if (!is_plan) child_write(w.file, "old");
        Ended e =
            child_run(arena, &(Child){.words = w.words, .limit = RLIMIT_FSIZE, .limit_to = 40});
        child_expect(&e, 4, "ulimit -f");
        expect_bytes(w.file, is_plan ? SMALL_PLAN : "old");
        expect_clean(dir);
    }
}
/* A file system of 64 KiB in a mount namespace of its own; without the right to mount, the limit
 * above must do. */
static void full_disk(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", in("disk"), "tmpfs", 0, "size=64k") != 0)
        _exit(125);
    child_write(in("disk/small.trace.jsonl"), "old");
    char *fill = calloc(1, 1 << 16);
    int fd = open(in("disk/fill"), O_WRONLY | O_CREAT, 0600);
    for (ssize_t n = 4096; fd >= 0 && n > 0;) n = write(fd, fill, 4096);
    close(fd);
    free(fill);
}
static void full_disk_after(void) { /* the same, looked at from inside */
    full_disk();
    pid_t pid = fork();
    if (!pid) return; /* this one becomes the program */
    int status;
    waitpid(pid, &status, 0);
    char *have = child_read(arena, in("disk/small.trace.jsonl"), NULL);
    bool good = have && strcmp(have, "old") == 0 && child_count(in("disk"), "") == 2;
    _exit(good && WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}
static void test_full_disk(void **state) {
    (void)state;
    assert_int_equal(mkdir(in("disk"), 0700), 0);
    Ended e = child_run(arena, &(Child){.words = WORDS("run", in("plan.yaml"), "-o", in("disk")),
                                        .prepare = full_disk_after});
    if (e.code == 125) {
        print_message("no right to mount here: only the limit of file sizes was tested\n");
        skip();
    }
    child_expect(&e, 4, "the disk is full");
    e = child_run(
        arena, &(Child){.words = WORDS("check", in("plan.yaml"), "--save-values", in("disk/v.st")),
                        .prepare = full_disk_after});
    child_expect(&e, 4, "the disk is full");
}
static void test_full_device(void **state) {
    (void)state;
    const char *p = in("plan.yaml");
    static const char *const formats[] = {"text", "json",  "jsonl", "csv",
                                          "md",   "junit", "sarif", "github"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        Ended e =
            child_run(arena, &(Child){.words = WORDS("check", p, "--set", "mesh.tp=3", "--set",
                                                     "data.rows=4", "--format", formats[i]),
                                      .out = "/dev/full"});
        /* nothing found, nothing to write */
        if (strcmp(formats[i], "github") == 0 && e.code == 0) continue;
        child_expect(&e, 4, "No space left on device");
    }
    Ended e =
        child_run(arena, &(Child){.words = WORDS("draw", p, "-o", "/dev/full", "--format", "svg")});
    child_expect(&e, 4, "the disk is full");
    e = child_run(arena, &(Child){.words = WORDS("check", p, "--trace", "/dev/full")});
    child_expect(&e, 4, "the disk is full");
    e = child_run(arena,
                  &(Child){.words = WORDS("check", p, "--dump", "lower"), .out = "/dev/full"});
    child_expect(&e, 4, "No space left on device");
    e = child_run(arena, &(Child){.words = WORDS("--help"), .out = "/dev/full"});
    child_expect(&e, 4, "No space left on device");
    e = child_run(
        arena, &(Child){.words = WORDS("list", "codes"), .out = "/dev/full", .err = "/dev/full"});
    assert_int_equal(e.code, 4);
    struct stat st;
    assert_true(stat("/dev/full", &st) == 0 &&
                S_ISCHR(st.st_mode)); /* written through, not renamed over */
}

/* ---- streams ---- */
static void test_closed_streams(void **state) {
    (void)state;
    const char *p = in("plan.yaml");
    Ended e = child_run(arena, &(Child){.words = WORDS("check", p), .out = ""});
    child_expect(&e, 4, "Bad file descriptor");
    /* the picture must not get the number of a closed stream: messages would be written into it */
    e = child_run(
        arena, &(Child){.words = WORDS("draw", p, "-v", "-o", in("x.svg")), .out = "", .err = ""});
    assert_int_equal(e.code, 0);
    size_t n;
    const char *svg = child_read(arena, in("x.svg"), &n);
    assert_int_equal(strncmp(svg, "<?xml", 5) && strncmp(svg, "<svg", 4), 0);
    assert_string_equal(svg + n - 7, "</svg>\n");
    e = child_run(arena, &(Child){.words = WORDS("run", p, "-o", in("o")), .out = "", .err = ""});
    assert_int_equal(e.code, 4); /* its report is a result, too */
    assert_int_equal(child_count(in("o"), ""), N_RUN_FILES);
}
/* A reader that takes one line and goes: quiet, and the exit code is that of the work. */
static void test_reader_goes(void **state) {
    (void)state;
    static const char *const commands[] = {"list codes",
                                           "check P --format jsonl",
                                           "draw P",
                                           "draw P --format svg -o -",
                                           "--help",
                                           "check P P P P --format jsonl",
                                           "check P --dump lower"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char *words = arena_strdup(arena, commands[i]), *at;
        Str s = str_new(arena);
        str_addf(&s, "{ '%s'", child_program());
        for (char *w = strtok_r(words, " ", &at); w; w = strtok_r(NULL, " ", &at))
            str_addf(&s, " '%s'", strcmp(w, "P") == 0 ? in("plan.yaml") : w);
        str_addf(&s, " 2>'%s'; echo $? >'%s'; } | head -n 1 >/dev/null", in("err"), in("code"));
        assert_int_equal(system(s.s), 0);
        expect_bytes(in("err"), "");
        expect_bytes(in("code"), "0\n");
    }
    /* nobody at all: who read has gone before it begins */
    Str s = str_new(arena);
    str_addf(&s, "mkfifo '%s'; exec 3<>'%s' 4>'%s' 3<&-; '%s' list codes >&4 2>'%s'; echo $? >'%s'",
             in("pipe"), in("pipe"), in("pipe"), child_program(), in("err"), in("code"));
    assert_int_equal(system(s.s), 0);
    expect_bytes(in("err"), "");
    expect_bytes(in("code"), "0\n");
}

/* ---- the user says stop ---- */
/* What every file of `run` is when nothing goes wrong, and how many seconds that took. */
static const char *whole[N_RUN_FILES];
static size_t whole_n[N_RUN_FILES];
static double learn_files(void) {
    Ended e = child_run(arena, &(Child){.words = WORDS("run", in("plan.yaml"), "-o", in("ref"))});
    assert_int_equal(e.code, 0);
    for (int i = 0; i < N_RUN_FILES; i++) {
        whole[i] = child_read(arena, in(arena_printf(arena, "ref/%s", run_files[i])), &whole_n[i]);
        assert_non_null(whole[i]);
    }
    return e.seconds;
}
static void fill_old(void) {
    mkdir(in("o"), 0777);
    for (int i = 0; i < N_RUN_FILES; i++)
        child_write(in(arena_printf(arena, "o/%s", run_files[i])), "old");
}
/* Each file is the old one or the new one. Returns how many are new. */
static int old_or_new(void) {
    int fresh = 0;
    for (int i = 0; i < N_RUN_FILES; i++) {
        size_t n;
        const char *have = child_read(arena, in(arena_printf(arena, "o/%s", run_files[i])), &n);
        assert_non_null(have);
        bool is_old = n == 3 && memcmp(have, "old", 3) == 0,
             is_new = n == whole_n[i] && memcmp(have, whole[i], n) == 0;
        if (!is_old && !is_new) print_error("%s has %zu bytes and is neither\n", run_files[i], n);
        assert_true(is_old || is_new);
        fresh += is_new;
    }
    return fresh;
}
static void test_signals_by_time(void **state) {
    (void)state;
    double length = 1.2e6 * learn_files();
    int tries = getenv("SHARDPROOF_SOAK") ? 400 : 30, stopped = 0;
    /* once more where all of them came too early or too late: what else runs here has changed */
    for (int i = 0; i < tries || (!stopped && i < 10 * tries); i++) {
        fill_old();
        int sig = i % 2 ? SIGTERM : SIGINT;
        Ended e = child_run(arena, &(Child){.words = WORDS("run", in("plan.yaml"), "-o", in("o")),
                                            .signal = sig,
                                            .after_us = 1500 + (int)(i % tries * length / tries)});
        bool before_main = e.signal == sig; /* no handler yet */
        if (e.code != 0 && e.code != 128 + sig) print_error("exit %d\n%s", e.code, e.err);
        assert_true(e.code == 0 || e.code == 128 + sig);
        if (e.code && !before_main) stopped++;
        if (e.code) assert_string_equal(e.err, ""); /* who stops it knows */
        int fresh = old_or_new();
        assert_true(e.code || fresh == N_RUN_FILES);
        assert_int_equal(child_count(in("o"), ""), N_RUN_FILES); /* and no other */
    }
    assert_true(stopped > 0);
}
/* The same at every file operation, by the preloaded object: signals that end the run quietly, a
 * crash, and SIGKILL, of which no program knows. */
static void test_signals_by_operation(void **state) {
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGSEGV, SIGABRT, SIGKILL};
    learn_files();
    const char *trip = arena_printf(arena, "LD_PRELOAD=%s", child_preload(arena, "trip.so"));
    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++) {
        int sig = signals[k], ended = 0;
        for (int n = 1; !ended && n < 500; n += getenv("SHARDPROOF_SOAK") ? 1 : 2 + (int)k) {
            fill_old();
            const char *env[] = {trip,
                                 "TRIP_WHAT=io",
                                 arena_printf(arena, "TRIP_AT=%d", n),
                                 arena_printf(arena, "TRIP_SIGNAL=%d", sig),
                                 "TRIP_SHOW=1",
                                 NULL};
            Ended e = child_run(
                arena, &(Child){.words = WORDS("run", in("plan.yaml"), "-o", in("o")), .env = env});
            int fresh = old_or_new(), left = child_count(in("o"), "") - N_RUN_FILES;
            ended = e.code == 0; /* there is no n-th operation */
            if (ended) assert_int_equal(fresh, N_RUN_FILES);
            else assert_int_equal(e.code, 128 + sig);
            if (e.code && (sig == SIGINT || sig == SIGTERM || sig == SIGHUP))
                assert_int_equal(e.signal, 0);
            /* between the link and the rename even a file without a name has one */
            bool linked = sig == SIGKILL && strstr(e.err, "trip: fclose") != NULL;
            linked |= sig == SIGKILL && strstr(e.err, "trip: rename") != NULL;
            if (left > (int)linked) print_error("%d left after signal %d, %s", left, sig, e.err);
            assert_true(left <= (int)linked);
            if (left)
                assert_int_equal(system(arena_printf(arena, "rm -f '%s'/o/.shardproof-*", dir)), 0);
        }
        assert_true(ended);
    }
}
/* The other ways to a file: stopped at their operations. */
static void test_signals_elsewhere(void **state) {
    (void)state;
    const char *trip = arena_printf(arena, "LD_PRELOAD=%s", child_preload(arena, "trip.so"));
    for (int i = 0; ways(i).file; i++) {
        Way w = ways(i);
        bool is_plan = strcmp(w.file, in("plan.yaml")) == 0, ended = false;
        const char *old = is_plan ? SMALL_PLAN : "old";
        for (int n = 1; !ended && n < 100; n += 1 + n / 6) {
            child_write(w.file, old);
            const char *env[] = {trip, "TRIP_WHAT=io", arena_printf(arena, "TRIP_AT=%d", n),
                                 "TRIP_SIGNAL=2", NULL};
            Ended e = child_run(arena, &(Child){.words = w.words, .env = env});
            ended = e.code == 0;
            bool same = strcmp(child_read(arena, w.file, NULL), old) == 0;
            if (ended) assert_false(same);
            else assert_int_equal(e.code, 130);
            expect_clean(dir);
        }
        assert_true(ended);
        child_write(w.file, old);
    }
}
/* A folder that was made for the run goes with it. */
static void test_folder_goes(void **state) {
    (void)state;
    const char *env[] = {arena_printf(arena, "LD_PRELOAD=%s", child_preload(arena, "trip.so")),
                         "TRIP_AT=400", "TRIP_SIGNAL=15", NULL};
    Ended e = child_run(
        arena, &(Child){.words = WORDS("run", in("plan.yaml"), "-o", in("a/b/c")), .env = env});
    assert_int_equal(e.code, 143);
    assert_int_equal(child_count(dir, ""), 1); /* the plan */
}
static void ignore_int(void) { signal(SIGINT, SIG_IGN); }
/* A shell ignores SIGINT for what it starts in the background; nohup does so with SIGHUP. */
static void test_ignored_stays_ignored(void **state) {
    (void)state;
    const char *env[] = {arena_printf(arena, "LD_PRELOAD=%s", child_preload(arena, "trip.so")),
                         "TRIP_WHAT=io",
                         "TRIP_AT=5",
                         "TRIP_SIGNAL=2",
                         "TRIP_SHOW=1",
                         NULL};
    Ended e = child_run(arena, &(Child){.words = WORDS("run", in("plan.yaml"), "-o", in("o")),
                                        .env = env,
                                        .prepare = ignore_int});
    child_expect(&e, 0, "trip: ");
    assert_int_equal(child_count(in("o"), ""), N_RUN_FILES);
}
/* Mode and owner of what was there stay; a link stays a link. */
static void test_file_keeps_its_mode(void **state) {
    (void)state;
    child_write(in("x.svg"), "old");
    assert_int_equal(chmod(in("x.svg"), 0640), 0);
    assert_int_equal(symlink("x.svg", in("link.svg")), 0);
    bool chowned = geteuid() == 0 && chown(in("x.svg"), 65534, 65534) == 0;
    Ended e =
        child_run(arena, &(Child){.words = WORDS("draw", in("plan.yaml"), "-o", in("link.svg"))});
    assert_int_equal(e.code, 0);
    struct stat st, link;
    assert_true(stat(in("x.svg"), &st) == 0 && lstat(in("link.svg"), &link) == 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_true(S_ISLNK(link.st_mode) && st.st_size > 3);
    if (chowned) assert_int_equal(st.st_uid, 65534);
}

/* A figure that cannot be drawn is no file, as data as little as as a picture; on a pipe a document
 * says why. */
static void test_no_figure(void **state) {
    (void)state;
    const char *trace = in("t.jsonl");
    Ended e =
        child_run(arena, &(Child){.words = WORDS("check", in("plan.yaml"), "--trace", trace)});
    child_expect(&e, 0, "");
    static const char *const views[] = {"sweep", "pipeline"}, *const ends[] = {"json", "svg", "png",
                                                                               "pdf", "txt"};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
            const char *file = in(arena_printf(arena, "none.%s", ends[k]));
            e = child_run(arena,
                          &(Child){.words = WORDS("draw", trace, "--view", views[i], "-o", file)});
            child_expect(&e, 3, "E0211");
            assert_int_not_equal(access(file, F_OK), 0);
            put(arena_printf(arena, "none.%s", ends[k]), "old"); /* one that is there stays */
            e = child_run(arena,
                          &(Child){.words = WORDS("draw", trace, "--view", views[i], "-o", file)});
            expect_bytes(file, "old");
            unlink(file);
        }
        e = child_run(
            arena, &(Child){.words = WORDS("draw", trace, "--view", views[i], "--format", "json")});
        child_expect(&e, 3, "E0211");
        assert_non_null(strstr(e.out, "\"diagnostics\":[{\"code\":\"E0211\""));
        assert_non_null(strstr(e.out, "\"figure\":null"));
    }
    unlink(trace);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, sandbox_plan, sandbox_gone)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_no_folder),
        TEST(test_no_figure),
        TEST(test_no_permission),
        TEST(test_size_limit),
        TEST(test_full_disk),
        TEST(test_full_device),
        TEST(test_closed_streams),
        TEST(test_reader_goes),
        TEST(test_signals_by_time),
        TEST(test_signals_by_operation),
        TEST(test_signals_elsewhere),
        TEST(test_folder_goes),
        TEST(test_ignored_stays_ignored),
        TEST(test_file_keeps_its_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
