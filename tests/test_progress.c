/* The progress line as a user sees it: the real binary on a terminal of its own (a
 * pseudo-terminal), and where none may be. */
#include "cli/progress.h"
#include "drive/pipeline.h"
#include "support/child.h"
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The real sizes of a block: some 1.5 s of processor time at batch 1, and ten times that at 16,
 * which is only run to be ended. */
#define BLOCK "check", "plans/03-llama3-8b-tp2.yaml", "--set", "model.shrink=1", "--threads", "1"
#define LONG BLOCK, "--set", "data.batch=16"
static const char *const human[] = {"CI", "TERM=xterm", NULL};

static void test_words(void **state) {
    (void)state;
    char s[160];
    assert_int_equal(
        progress_text(s, sizeof s, (ProgressWords){0.349, "ranks and check", 11.2, 0, 0}, 80), 32);
    assert_string_equal(s, "34 %  ranks and check, 12 s left");
    progress_text(s, sizeof s, (ProgressWords){0.5, "x", 3 * 3600 + 125, 2, 7}, 80);
    assert_string_equal(s, "plan 2 of 7: 50 %  x, 3 h 2 min left");
    progress_text(s, sizeof s, (ProgressWords){0.5, "x", 61, 1, 1}, 80);
    assert_string_equal(s, "50 %  x, 1 min 1 s left");
    progress_text(s, sizeof s, (ProgressWords){0, "x", -1, 0, 0}, 80);
    assert_string_equal(s, "0 %  x");
    assert_int_equal(
        progress_text(s, sizeof s, (ProgressWords){0.349, "ranks and check", 11.2, 0, 0}, 20),
        19); /* the cursor has a column */
    assert_string_equal(s, "34 %  ranks and che");
    assert_int_equal(
        progress_text(s, 10, (ProgressWords){0.349, "ranks and check", 1e300, 0, 0}, 0), 9);
}
/* What was announced is what is done, whatever kind of run: nothing is forgotten or counted twice.
 */
static void test_whole(void **state) {
    (void)state;
    enum { TRAIN = 5, PARTS = 7 }; /* how many of the settings */
    static const struct {
        const char *file, *pass;
        int sets, exact;
        bool quick;
    } row[] = {{"plans/01-column-row-mlp.yaml", NULL, 0, 0, false},
               {"plans/05-llama3-8b-tp4-sp.yaml", "forward", 2, 2, false},
               {"plans/18-llama3-8b-backward.yaml", "backward", 2, 0, false},
               {"plans/18-llama3-8b-backward.yaml", "backward", PARTS, 0, false},
               {"plans/20-llama3-8b-fsdp-tp.yaml", "train", TRAIN, 0, false},
               {"plans/18-llama3-8b-backward.yaml", "train", PARTS, 0, false},
               {"plans/18-llama3-8b-backward.yaml", "backward", 2, 0, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        Diags *d = diags_new(a);
        Progress p = {0};
        PipelineReport r;
        /* more turns than the walk that estimates them makes */
        PlanSet sets[] = {{"model.shrink", "64"},      {"pass", row[i].pass},
                          {"optimizer.name", "adamw"}, {"optimizer.lr", "0.001"},
                          {"optimizer.steps", "5"},    {"data.batch", "10"},
                          {"data.microbatches", "5"}};
        size_t n;
        const char *text = child_read(a, row[i].file, &n);
        assert_non_null(text);
        PipelineOptions o = {.execute = true,
                             .threads = 1,
                             .exact = row[i].exact,
                             .check = row[i].quick ? CHECK_QUICK : CHECK_FULL,
                             .end_to_end = row[i].quick,
                             .progress = &p};
        const PlanText plan = {row[i].file, text, n, sets, row[i].sets};
        const Trace *t = pipeline_run(a, d, plan, &o, &r);
        if (!t || r.exit) diags_print(d, stderr, false);
        assert_true(t && r.exit == 0);
        assert_true(p.total > 0);
        if (fabs(p.done / p.total - 1) > 0.01)
            print_error("%s, %d settings: %g of %g\n", row[i].file, row[i].sets, p.done, p.total);
        assert_true(fabs(p.done / p.total - 1) <= 0.01);
        assert_string_equal(p.phase, "comparison");
        arena_free(a);
    }
}
/* Percentages in the order in which they were drawn; each line ends by erasing the rest, and fits.
 */
static int percents(const char *err, int *p, int most) {
    int n = 0;
    for (const char *s = err; (s = strchr(s, '\r')); s++) {
        if (s[1] < '0' || s[1] > '9') continue;
        const char *end = strstr(s, "\033[K");
        assert_non_null(end);
        assert_true(end - s <= 80);
        if (n < most) p[n++] = atoi(s + 1);
    }
    return n;
}
/* On a terminal, and at the same time without one: both print the same, and only one shows a line.
 */
static Ended shown(Arena *a, const char *batch) {
    const Child run = {.words = WORDS(BLOCK, "--set", batch), .env = human, .pty = true};
    char out[] = "/tmp/test_progress_XXXXXX";
    close(mkstemp(out));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        Child quiet = run;
        quiet.pty = false, quiet.out = out;
        Ended log = child_run(a, &quiet);
        _exit(log.code || log.n_err);
    }
    Ended e = child_run(a, &run);
    int status = 0;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(e.code, 0);
    assert_string_equal(e.out, child_read(a, out, NULL));
    unlink(out);
    return e;
}
/* The time left never counts up while a step runs, and begins at the estimate. */
static void test_left(void **state) {
    (void)state;
    ProgressSeen x = {.share = 1e-6, .moved = 2, .estimate = 3600};
    assert_true(fabs(progress_left(x) - 3600) < 60); /* 2 s of 1e-6 are 23 days */
    double before = progress_left(x);
    for (x.since = 1; x.since < 3000; x.since += 100) {
        assert_true(progress_left(x) < before);
        before = progress_left(x);
    }
    x.since = 4000;
    assert_true(progress_left(x) < 0);
    x = (ProgressSeen){.share = 0.5, .moved = 100, .estimate = 10};
    assert_in_range((int)progress_left(x), 85, 100); /* what was seen weighs more then */
    x.share = 0;
    assert_true(progress_left(x) < 0);
}
/* False: it was over, or stood still, before two lines were shown that are what they should; what
 * must never be there fails. */
static bool well_shown(Arena *a, const char *batch) {
    int p[4000];
    Ended e = shown(a, batch);
    int n = percents(e.err, p, 4000);
    assert_in_range(n, 0, 4000);
    assert_true(n <= 10 * e.seconds + 1);
    for (int i = 1; i < n; i++) assert_true(p[i] >= p[i - 1]);
    if (n) assert_true(p[n - 1] < 100);
    if (n) assert_true(e.n_err > 4 && strcmp(e.err + e.n_err - 4, "\r\033[K") == 0);
    bool well = n > 1 && p[n - 1] > p[0] && strstr(e.err, " s left\033[K") &&
                strstr(e.err, "unsharded float64 run");
    if (!well) print_message("%.2f s, once more: '%s'\n", e.seconds, e.err);
    return well;
}
/* However fast the machine is, and where it stands still for a while: a longer run shows them. */
static void test_shown(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const char *const batch[] = {"data.batch=2", "data.batch=8", "data.batch=32",
                                        "data.batch=128"};
    bool well = false;
    for (size_t i = 0; i < sizeof batch / sizeof *batch && !well; i++)
        well = well_shown(a, batch[i]);
    assert_true(well);
    arena_free(a);
}
/* Each in a process of its own, all at once: none has shown a line when it has worked for longer
 * than it takes to show one (a second), however long the machine takes for that. */
static void test_not_shown(void **state) {
    (void)state;
    const char *const ci[] = {"CI=true", "TERM=xterm", NULL}, *const dumb[] = {"CI", "TERM=dumb",
                                                                               NULL};
    const Child quiet[] = {
        {.words = WORDS(LONG), .env = ci, .pty = true},
        {.words = WORDS(LONG), .env = dumb, .pty = true},
        {.words = WORDS(LONG, "-q"), .env = human, .pty = true},
        {.words = WORDS(LONG, "--format", "json"), .env = human, .pty = true, .pty_out = true},
        {.words = WORDS(LONG, "--format", "jsonl"), .env = human, .pty = true, .pty_out = true}};
    enum { N = sizeof quiet / sizeof *quiet };
    pid_t pid[N];
    for (int i = 0; i < N; i++) {
        pid[i] = fork();
        assert_true(pid[i] >= 0);
        if (pid[i]) continue;
        Child c = quiet[i];
        c.signal = i ? SIGINT : SIGTERM;
        c.after_cpu_ms = 1200;
        Ended e = child_run(arena_new(), &c);
        _exit(e.code != 128 + c.signal ? 3 : e.n_err || *e.out ? 1 : 0);
    }
    for (int i = 0; i < N; i++) {
        int status = 0;
        waitpid(pid[i], &status, 0);
        if (status) print_error("case %d: status %#x\n", i, (unsigned)status);
        assert_int_equal(status, 0);
    }
}
/* Ctrl-C in the middle of a product of the second plan of a list: sent when the line for that plan
 * is seen, however long that takes. The end comes soon: within 0.3 s where the machine has time for
 * us; a busy one gets ten tries, and then as much more time as it takes to start and end the
 * program at all, and to take its memory back when it is killed. */
static Ended ended_by(Arena *a, int signal) {
    return child_run(
        a, &(Child){.words = WORDS("check", "plans/01-column-row-mlp.yaml",
                                   "plans/03-llama3-8b-tp2.yaml", "plans/none.yaml", "--set",
                                   "model.shrink=1", "--threads", "1", "--set", "data.batch=16"),
                    .env = human,
                    .pty = true,
                    .signal = signal,
                    .after_text = "\rplan 2 of 3: "});
}
static double idle_run(Arena *a) {
    double best = 1e9;
    for (int k = 0; k < 3; k++) {
        Ended e = child_run(a, &(Child){.words = WORDS("--version")});
        if (e.seconds < best) best = e.seconds;
    }
    return best;
}
static void test_interrupted(void **state) {
    (void)state;
    Arena *a = arena_new();
    double best = 1e9, limit = 0.3;
    for (int k = 0; k < 10 && best > limit; k++) {
        Ended e = ended_by(a, SIGINT);
        assert_int_equal(e.code, 130);
        assert_non_null(strstr(e.err, "\rplan 2 of 3: "));
        assert_true(e.n_err > 4 && strcmp(e.err + e.n_err - 4, "\r\033[K") == 0);
        if (e.after_signal < best) best = e.after_signal;
        if (best > limit) /* some 10 ms each where nothing else runs */
            limit = fmax(limit, 20 * idle_run(a) + 4 * ended_by(a, SIGKILL).after_signal);
    }
    if (best > limit) print_error("it took %.2f s of %.2f\n", best, limit);
    assert_true(best <= limit);
    arena_free(a);
}

/* A sweep of a plan on thousands of ranks says what it is at, and takes that away. */
static void test_sweep(void **state) {
    (void)state;
    Arena *a = arena_new();
    Child run = {.words = WORDS("draw", "plans/shape-only/llama3.1-405b-pp16.yaml", "--view",
                                "sweep", "--set", "mesh.dp=4", "--set", "data.batch=128"),
                 .env = human,
                 .pty = true};
    Ended e = child_run(a, &run);
    assert_int_equal(e.code, 0);
    assert_non_null(strstr(e.err, "%  other meshes"));
    assert_string_equal(e.err + e.n_err - 4, "\r\033[K");
    run.pty = false;
    const Ended quiet = child_run(a, &run);
    assert_int_equal(quiet.code, 0);
    assert_string_equal(quiet.out, e.out);
    assert_string_equal(quiet.err, "");
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),     cmocka_unit_test(test_left),
        cmocka_unit_test(test_whole),     cmocka_unit_test(test_shown),
        cmocka_unit_test(test_not_shown), cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_sweep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
