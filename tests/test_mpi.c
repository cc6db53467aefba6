/* `--mpi` as users start it: mpirun, a process for each rank. Shipped plans, planted mistakes and
 * random plans give the traces of the virtual run; processes that stop, die, never start or run
 * something else end the run in time, with words, and leave nothing behind. Where no MPI is
 * installed every test says so and is skipped. What happens behind the wire is test_ranks'. */
#include "support/child.h"
#include "support/random_run.h"
#include "support/support.h"
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Open MPI wants to be asked twice by root, and for more processes than cores. */
static const char *mpirun;
static const char options[] = "--allow-run-as-root --oversubscribe -q --bind-to none";
enum { LONG = 300 };

static bool has_mpi(void) {
    static const char *const names[] = {"mpirun.openmpi", "mpirun"};
    for (size_t i = 0; i < 2 && !mpirun; i++) {
        char line[128];
        snprintf(line, sizeof line, "%s --version 2>/dev/null | grep -q 'Open MPI'", names[i]);
        if (system(line) == 0) mpirun = names[i];
    }
    if (mpirun && access("shardproof-openmpi.so", R_OK) == 0) return true;
    print_message("no Open MPI here (make test installs it for root): --mpi is not tried\n");
    return false;
}
#define NEEDS_MPI                                                                                  \
    if (!has_mpi()) skip()

/* A shell's line: its exit code; what it prints goes to the files. */
static int line_code(const char *out, const char *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int line_code(const char *out, const char *err, const char *fmt, ...) {
    Arena *a = arena_new();
    va_list ap;
    va_start(ap, fmt);
    const char *line = arena_printf(a, "exec >'%s' 2>'%s' </dev/null; timeout -k 5 %d sh -c '%s'",
                                    out, err, LONG * slow_machine(), arena_vprintf(a, fmt, ap));
    va_end(ap);
    int code = system(line);
    arena_free(a);
    return WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
}
/* What `fmt` prints, as mpirun's words behind the options. */
#define RUN(out, err, fmt, ...) line_code(out, err, "%s %s " fmt, mpirun, options, __VA_ARGS__)

/* The program under a name that a line may hold as it is, wherever the tree lies. The plug-in is
 * found beside what the link leads to. */
static const char *program(void) {
    static Arena *keep;
    static const char *link;
    if (link) return link;
    keep = arena_new();
    link = temp_path(keep, "program");
    char *real = realpath(child_program(), NULL);
    assert_non_null(real);
    if (symlink(real, link)) fail_msg("%s: no link to %s", link, real);
    free(real);
    return link;
}

/* ---- the same as virtually ---- */
/* Every record, but for the name of the engine. */
static const char *without_engine(Arena *a, const char *path) {
    size_t n;
    const char *text = child_read(a, path, &n);
    Str s = str_new(a);
    assert_non_null(text);
    for (const char *at; (at = strstr(text, "\"backend\":\"mpi\"")) != NULL; text = at + 15) {
        str_addn(&s, text, (size_t)(at - text));
        str_add(&s, "\"backend\":\"virtual\"");
    }
    str_add(&s, text);
    return s.s;
}
/* Every record of a list of plans, all of one number of ranks, in one launch. */
static void same(const char *plans, int ranks) {
    Arena *a = arena_new();
    const char *v = temp_path(a, "virtual"), *m = temp_path(a, "mpi"), *e = temp_path(a, "err");
    if (!*plans) {
        arena_free(a);
        return;
    }
    int want = line_code(v, "/dev/null", "%s check %s --format jsonl", program(), plans);
    int code = RUN(m, e, "-n %d %s check %s --mpi --format jsonl", ranks, program(), plans);
    size_t n;
    if (code != want) print_error("%s", child_read(a, e, &n));
    assert_int_equal(code, want);
    assert_true(!strcmp(child_read(a, v, &n), without_engine(a, m)));
    assert_true(n > 1000);
    arena_free(a);
}
/* The plans of a folder, by their number of ranks. */
static int same_folder(const char *pattern) {
    Arena *a = arena_new();
    Str by_ranks[9];
    int ran = 0;
    glob_t g;
    for (int k = 0; k < 9; k++) by_ranks[k] = str_new(a);
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        size_t n;
        const char *text = child_read(a, g.gl_pathv[i], &n);
        PlanRun r = plan_run(a, g.gl_pathv[i], text, false);
        int64_t ranks = r.t ? r.t->ranks : 0;
        if (ranks < 2 || ranks > 8) continue;
        str_addf(&by_ranks[ranks], " %s", g.gl_pathv[i]);
        ran++;
    }
    globfree(&g);
    for (int k = 2; k < 9; k++) same(by_ranks[k].s, k);
    arena_free(a);
    return ran;
}
static void test_shipped_plans(void **state) {
    (void)state;
    NEEDS_MPI;
    assert_true(same_folder("plans/[0-9]*.yaml") >= 20);
}
static void test_planted_mistakes(void **state) {
    (void)state;
    NEEDS_MPI;
    assert_true(same_folder("plans/bugs/*.yaml") >= 40);
}
/* Random plans, half of them with a mutation, many in one launch. */
static void test_random_plans(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    Str by_ranks[9];
    int plans = sample_of(60, "random plans"), ran = 0;
    for (int k = 0; k < 9; k++) by_ranks[k] = str_new(a);
    for (uint64_t seed = 90000; ran < plans; seed++) {
        RandomPlan g;
        const char *text = random_plan(a, seed, &g), *file;
        PlanRun r = plan_run(a, "random.yaml", text, false);
        if (!r.t || r.t->ranks < 2 || r.t->ranks > 6) continue;
        const char *f = seed % 2 ? random_fault(a, &g.r, r.t) : NULL;
        file = temp_path(a, arena_printf(a, "%d.yaml", ran++));
        child_write(file, f ? arena_printf(a, "%s%s", text, f) : text);
        str_addf(&by_ranks[r.t->ranks], " %s", file);
    }
    for (int k = 2; k < 9; k++) same(by_ranks[k].s, k);
    arena_free(a);
}
/* The engine's own sums hold the bounds. */
static void test_engine_sums(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e");
    size_t n;
    assert_int_equal(RUN(o, e,
                         "-n 4 %s check plans/04*.yaml plans/05*.yaml plans/06*.yaml "
                         "plans/18*.yaml plans/19*.yaml --mpi --sum engine",
                         program()),
                     0);
    assert_non_null(strstr(child_read(a, o, &n), "5 plans hold"));
    arena_free(a);
}

/* ---- ends ---- */
static const char plan[] = "plans/02-toymodel-2.yaml";
static void expect(int code, int want, const char *err, const char *words) {
    Arena *a = arena_new();
    size_t n;
    const char *text = child_read(a, err, &n);
    if (code != want || !strstr(text, words)) print_error("%d, %s", code, text);
    assert_int_equal(code, want);
    assert_non_null(strstr(text, words));
    arena_free(a);
}
static void test_refused(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = program();
    expect(line_code(o, e, "%s check %s --mpi", p, plan), 5, e, "[E0603]");
    expect(line_code(o, e, "PMI_RANK=0 PMI_SIZE=1 %s check %s --mpi", "/nowhere/shardproof", plan),
           127, e, "not found");
    expect(RUN(o, e, "-n 3 %s check %s --mpi", p, plan), 5, e, "3 processes for a mesh of 2 ranks");
    expect(RUN(o, e, "-n 1 %s check %s --mpi : -n 1 %s check %s --mpi --seed 7", p, plan, p, plan),
           5, e, "rank 1 has another plan than rank 0");
    expect(RUN(o, e, "-n 1 %s check %s --mpi : -n 1 %s check none.yaml --mpi", p, plan, p), 5, e,
           "rank 1 cannot run this plan");
    expect(RUN(o, e, "-n 1 %s check none.yaml --mpi : -n 1 %s check %s --mpi", p, p, plan), 3, e,
           "[E0101]");
    expect(line_code(o, e, "%s check %s --sum engine", p, plan), 2, e, "[E0212]");
    expect(line_code(o, e, "%s check %s --mpi --exact", p, plan), 2, e, "[E0212]");
    expect(line_code(o, e, "%s check - --mpi", p), 2, e, "[E0212]");
    arena_free(a);
}
/* Files are written once, by rank 0; where they cannot be, nobody runs. */
static void test_files(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = program();
    const char *out = temp_path(a, "folder"), *v = temp_path(a, "values.safetensors"),
               *w = temp_path(a, "values2.safetensors");
    size_t n, m;
    expect(RUN(o, e, "-n 2 %s run %s --mpi -o %s --save-values %s", p, plan, out, v), 0, e, "");
    assert_true(child_count(out, ".svg") >= 4);
    assert_int_equal(child_count(out, "") - 2, child_count(out, ".svg") + child_count(out, ".png") +
                                                   child_count(out, ".jsonl") - 2);
    expect(line_code(o, e, "%s check %s --save-values %s", p, plan, w), 0, e, "");
    const char *x = child_read(a, v, &n), *y = child_read(a, w, &m);
    assert_true(n == m && n > 100 && !memcmp(x, y, n));
    expect(RUN(o, e, "-n 2 %s run %s --mpi -o /dev/null/out", p, plan), 4, e, "[E0105]");
    expect(RUN(o, e, "-n 2 %s check %s --mpi --trace /dev/null/out", p, plan), 4, e, "[E0105]");
    arena_free(a);
}

/* A run that takes a while, each process of which has left its number in a file. */
typedef struct {
    Arena *a;
    pid_t shell;
    const char *pids, *out, *err;
    int ranks;
} Long;
static pid_t pid_of(const Long *l, int rank) {
    size_t n;
    for (int i = 0; i < 2000; i++) {
        const char *s = child_read(l->a, arena_printf(l->a, "%s/%d", l->pids, rank), &n);
        if (s && strchr(s, '\n')) return (pid_t)atoi(s);
        usleep(10000);
    }
    fail_msg("rank %d did not start", rank);
    return 0;
}
static Long start_long(Arena *a, double deadline) {
    Long l = {.a = a, .ranks = 4};
    l.pids = temp_path(a, "pids");
    l.out = temp_path(a, "long.out");
    l.err = temp_path(a, "long.err");
    line_code("/dev/null", "/dev/null", "rm -rf %s %s; mkdir -p %s", l.pids, l.out, l.pids);
    fflush(NULL);
    l.shell = fork();
    if (l.shell) return l;
    int code = line_code(
        l.out, l.err,
        "exec %s %s -n 4 sh -c \"echo \\$\\$ > %s/\\$OMPI_COMM_WORLD_RANK; exec %s check "
        "plans/18*.yaml plans/21*.yaml plans/19*.yaml plans/18*.yaml plans/21*.yaml plans/19*.yaml "
        "plans/18*.yaml plans/21*.yaml plans/19*.yaml plans/18*.yaml plans/21*.yaml --mpi "
        "--deadline %g\"",
        mpirun, options, l.pids, program(), deadline);
    _exit(code);
}
/* Until the first plan is done: all processes have met, and many plans are left. */
static void wait_for_first(const Long *l) {
    size_t n;
    for (int i = 0; i < 6000; i++) {
        const char *s = child_read(l->a, l->out, &n);
        if (s && strstr(s, "ok  ")) return;
        usleep(10000);
    }
    fail_msg("no plan was done in a minute");
}
/* Its exit code; none of its processes is left, and no file that is not whole. */
static int end_long(const Long *l, const pid_t *pid) {
    int status;
    assert_int_equal(waitpid(l->shell, &status, 0), l->shell);
    for (int i = 0; i < l->ranks; i++) {
        for (int k = 0; k < 500 && kill(pid[i], 0) == 0; k++) usleep(10000);
        assert_true(kill(pid[i], 0) < 0 && errno == ESRCH);
    }
    return WEXITSTATUS(status);
}
/* A rank that is stopped is told by the others; one that is killed by the launcher. */
static void test_lost(void **state) {
    (void)state;
    NEEDS_MPI;
    static const struct {
        int signal, rank, code;
        const char *words;
    } rows[] = {{SIGSTOP, 2, 5, "rank 2 has been silent"},
                {SIGSTOP, 0, 5, "rank 0 has been silent"},
                {SIGKILL, 3, 137, ""},
                {SIGINT, 0, 130, ""}};
    int n = sample_of((int)(sizeof rows / sizeof *rows), "signals");
    for (int i = 0; i < n; i++) {
        Arena *a = arena_new();
        pid_t pid[4];
        Long l = start_long(a, 5.0 * slow_machine());
        for (int r = 0; r < l.ranks; r++) pid[r] = pid_of(&l, r);
        wait_for_first(&l);
        usleep(30000 * (unsigned)i); /* at one step or another */
        kill(pid[rows[i].rank], rows[i].signal);
        int code = end_long(&l, pid);
        expect(code, rows[i].code, l.err, rows[i].words);
        arena_free(a);
    }
}
/* A process that never comes to MPI is missed. */
static void test_absent(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e");
    expect(RUN(o, e, "-n 1 %s check %s --mpi --deadline 2 : -n 1 sleep 86400", program(), plan), 5,
           e, "did not come together");
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_plans), cmocka_unit_test(test_planted_mistakes),
        cmocka_unit_test(test_random_plans),  cmocka_unit_test(test_engine_sums),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_files),
        cmocka_unit_test(test_lost),          cmocka_unit_test(test_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
