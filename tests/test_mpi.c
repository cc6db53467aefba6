/* `--mpi` as users start it: mpirun, a process for each rank. Shipped plans, planted mistakes and
 * random plans give the traces of the virtual run, and files are written once. Where the MPI is not
 * installed (support/mpi.h says which) every test says so and is skipped. How runs end that cannot
 * go on is test_mpi_ends'; what happens behind the wire is test_ranks'. */
#include "support/child.h"
#include "support/mpi.h"
#include "support/same_records.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the same as virtually ---- */
static SameRecords by_mpi(void) {
    return (SameRecords){mpi_program(), mpi_run(), true, "--mpi", "mpi", 0};
}
static void test_shipped_plans(void **state) {
    (void)state;
    NEEDS_MPI;
    const SameRecords by = by_mpi();
    assert_true(same_folder(&by, "plans/[0-9]*.yaml") >= (getenv("SHARDPROOF_SAMPLE") ? 2 : 10));
}
static void test_planted_mistakes(void **state) {
    (void)state;
    NEEDS_MPI;
    const SameRecords by = by_mpi();
    assert_true(same_folder(&by, "plans/bugs/*.yaml") >= (getenv("SHARDPROOF_SAMPLE") ? 2 : 20));
}
static void test_other_plans(void **state) {
    (void)state;
    NEEDS_MPI;
    const SameRecords by = by_mpi();
    same_other_plans(&by);
}
/* Random plans and a mutation of each, many in one launch. */
static void test_random_plans(void **state) {
    (void)state;
    NEEDS_MPI;
    const SameRecords by = by_mpi();
    int plans = trials_of(40, "random plans"), piped = same_random_plans(&by, plans);
    assert_true(plans < 40 || piped);
}
/* The engine's own sums hold the bounds. */
static void test_engine_sums(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e");
    size_t n;
    assert_int_equal(MPI_RUN(o, e,
                             "-n 4 %s check plans/04*.yaml plans/05*.yaml plans/06*.yaml "
                             "plans/18*.yaml plans/19*.yaml --mpi --sum engine",
                             mpi_program()),
                     0);
    assert_non_null(strstr(child_read(a, o, &n), "5 plans hold"));
    arena_free(a);
}

static const char plan[] = "plans/02-toymodel-2.yaml";
/* Files are written once, by rank 0; where they cannot be, nobody runs. */
static void test_files(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = mpi_program();
    const char *out = temp_path(a, "folder"), *v = temp_path(a, "values.safetensors"),
               *w = temp_path(a, "values2.safetensors");
    size_t n, m;
    mpi_expect(MPI_RUN(o, e, "-n 2 %s run %s --mpi -o %s --save-values %s", p, plan, out, v), 0, e,
               "");
    assert_true(child_count(out, ".svg") >= 4);
    assert_int_equal(child_count(out, "") - 2, child_count(out, ".svg") + child_count(out, ".png") +
                                                   child_count(out, ".jsonl") - 2);
    mpi_expect(line_code(o, e, "%s check %s --save-values %s", p, plan, w), 0, e, "");
    const char *x = child_read(a, v, &n), *y = child_read(a, w, &m);
    assert_true(n == m && n > 100 && !memcmp(x, y, n));
    /* the records on standard output are the trace's, with those of what was measured */
    mpi_expect(MPI_RUN(o, e, "-n 2 %s check %s --mpi --format jsonl --trace %s", p, plan, w), 0, e,
               "");
    x = child_read(a, o, &n);
    assert_non_null(strstr(x, "\"type\":\"measured\""));
    assert_string_equal(x, child_read(a, w, &m));
    mpi_expect(MPI_RUN(o, e, "-n 2 %s run %s --mpi -o /dev/null/out", p, plan), 4, e, "[E0105]");
    mpi_expect(MPI_RUN(o, e, "-n 2 %s check %s --mpi --trace /dev/null/out", p, plan), 4, e,
               "[E0105]");
    arena_free(a);
}

/* Where the others cannot write, and need not: what is a folder for rank 0 is a file for them. */
static void test_files_of_one(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = mpi_program(),
               *one = temp_path(a, "one"), *other = temp_path(a, "other"),
               *here = temp_path(a, "plan.yaml");
    static const char words[] =
        "run ../plan.yaml --mpi -o out/of/one --trace traces/t.jsonl --save-values out/v";
    size_t n;
    mpi_expect(line_code(o, e,
                         "mkdir -p %s/out %s/traces %s && echo no > %s/out && echo no > "
                         "%s/traces",
                         one, one, other, other, other),
               0, e, "");
    child_write(here, child_read(a, plan, &n));
    mpi_expect(MPI_RUN(o, e,
                       "-n 1 sh -c \"cd %s && exec %s %s\" : -n 1 sh -c \"cd %s && exec %s %s\"",
                       one, p, words, other, p, words),
               0, e, "");
    assert_true(child_count(arena_printf(a, "%s/out/of/one", one), ".svg") >= 4);
    child_read(a, arena_printf(a, "%s/traces/t.jsonl", one), &n);
    assert_true(n > 1000);
    child_read(a, arena_printf(a, "%s/out/v", one), &n);
    assert_true(n > 100);
    mpi_expect(line_code(o, e, "cd %s && cat out traces && ls -A | wc -l", other), 0, e, "");
    assert_string_equal(child_read(a, o, &n), "no\nno\n2\n");
    arena_free(a);
}

/* ---- several machines ---- */
/* Two of them, as the launcher sees it: both are this one, each with its own folder for what the
 * launcher keeps there, as two daemons in one would write over each other. Between them everything
 * goes by TCP. */
static const char *two_machines(Arena *a) {
    const char *rsh = temp_path(a, "rsh"), *hosts = temp_path(a, "hosts");
    child_write(rsh,
                arena_printf(a,
                             "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\n"
                             "export TMPDIR=%s.$1; mkdir -p $TMPDIR; shift\nexec sh -c \"$*\"\n",
                             rsh));
    chmod(rsh, 0755);
    child_write(hosts, "# two\nnode1 slots=2\nnode2 slots=2\n");
    bool open = !strcmp(mpi_here()->name, "openmpi");
    return open ? arena_printf(a, "--mca plm_rsh_agent %s --mca btl tcp,self --hostfile %s", rsh,
                               hosts)
                : "-launcher fork -hosts node1:2,node2:2";
}
/* `before`: what the launcher's line stands behind. */
static void same_on_two(Arena *a, const char *before, const char *options) {
    const char *v = temp_path(a, "virtual"), *m = temp_path(a, "mpi"), *e = temp_path(a, "err"),
               *p = "plans/19*.yaml", *run = arena_printf(a, "%s%s", before, mpi_run()),
               *o = options;
    size_t n;
    assert_int_equal(line_code(v, e, "%s check %s --format jsonl", mpi_program(), p), 0);
    int code =
        line_code(m, e, "%s %s -n 4 %s check %s --mpi --format jsonl", run, o, mpi_program(), p);
    mpi_expect(code, 0, e, "");
    assert_true(!strcmp(child_read(a, v, &n), records_as_virtual(a, m, "mpi")));
    code = line_code(m, e, "%s %s -n 4 %s calibrate --mpi", run, o, mpi_program());
    mpi_expect(code, 0, e, "");
    const char *text = child_read(a, m, &n);
    assert_non_null(strstr(text, "gpus_per_node: 2"));
    assert_non_null(strstr(text, "the same between machines"));
}
static void test_two_machines(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    same_on_two(a, "", two_machines(a));
    arena_free(a);
}
/* The same where the two have names, addresses and networks of their own. */
static void test_two_networks(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *dir = temp_path(a, "machines"),
               *before = arena_printf(a, "sh tests/machines.sh %s ", dir), *e = temp_path(a, "err");
    int code = line_code("/dev/null", e, "%s true", before);
    if (code == 77 || strcmp(mpi_here()->name, "openmpi") != 0) {
        print_message("%s: two networks are not tried\n",
                      code == 77 ? "network namespaces cannot be made here"
                                 : "the launcher is not Open MPI's");
        arena_free(a);
        skip();
    }
    mpi_expect(code, 0, e, "");
    same_on_two(a, before,
                arena_printf(a, "--mca plm_rsh_agent %s/rsh --hostfile %s/hosts", dir, dir));
    arena_free(a);
}
/* The examples' scripts, with the launcher of the tests and, in place of Slurm, a script that
 * starts its processes so. */
static void test_cluster_scripts(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *o = temp_path(a, "out"), *e = temp_path(a, "err"), *hosts = temp_path(a, "hosts"),
               *srun = temp_path(a, "srun"), *p = "plans/19-llama3-8b-fsdp4.yaml";
    size_t n;
    two_machines(a);
    if (!strcmp(mpi_here()->name, "openmpi"))
        mpi_expect(line_code(o, e,
                             "MPIRUN=\"%s --mca plm_rsh_agent %s --mca btl tcp,self\" "
                             "SHARDPROOF=%s sh examples/cluster/run.sh %s %s",
                             mpi_run(), temp_path(a, "rsh"), mpi_program(), hosts, p),
                   0, e, "");
    mpi_expect(line_code(o, e, "sh examples/cluster/run.sh examples/cluster/slurm.sh %s", p), 2, e,
               "no line such as");
    child_write(srun, arena_printf(a, "#!/bin/sh\nshift\nexec %s -n 4 \"$@\"\n", mpi_run()));
    chmod(srun, 0755);
    mpi_expect(line_code(o, e,
                         "here=$PWD; cd %s && PATH=$PWD:$PATH SLURM_JOB_ID=7 SHARDPROOF=%s bash "
                         "\"$here/examples/cluster/slurm.sh\" \"$here/%s\"",
                         temp_path(a, "."), mpi_program(), p),
               0, e, "");
    assert_non_null(strstr(child_read(a, o, &n), "equivalent"));
    arena_free(a);
}
/* ---- what is written about it ---- */
/* A line of a page as a shell reads it: without the manual page's backslashes, up to the end of the
 * line or of the words that are set in `backquotes`. */
static const char *line_of(Arena *a, const char *at) {
    Str s = str_new(a);
    for (; *at && !strchr("\n`\"", *at); at++)
        if (*at != '\\') str_addn(&s, at, 1);
    return s.s;
}
/* Every line of a page that runs the program by mpirun does so, behind what README wants to be
 * exported first; how many there were. */
static int run_lines(Arena *a, const char *page, const char *first, const char *dir) {
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e");
    size_t n;
    int ran = 0;
    for (const char *at = child_read(a, page, &n); (at = strstr(at, "mpirun ")) != NULL; at += 7) {
        const char *line = line_of(a, at);
        bool other = strstr(line, "--allow") && strcmp(mpi_here()->name, "openmpi") != 0;
        if (!strstr(line, "shardproof ") || !strstr(line, "--mpi") || strstr(line, "PLAN"))
            continue;
        if (other || strstr(line, "...")) continue;
        print_message("%s\n", line);
        mpi_expect(line_code(o, e, "cd %s && PATH=$PWD/bin:$PATH && %s && %s", dir, first, line), 0,
                   e, "");
        ran++;
    }
    return ran;
}
static void test_written_lines(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    const char *dir = temp_path(a, "user"), *e = temp_path(a, "e"),
               *mpirun = arena_strndup(a, mpi_run(), strcspn(mpi_run(), " ")), *path, *help;
    size_t n;
    mpi_expect(line_code("/dev/null", e,
                         "mkdir -p %s/bin && ln -s \"$PWD/plans\" %s && ln -s %s "
                         "%s/bin/shardproof && ln -s bin/shardproof %s",
                         dir, dir, mpi_program(), dir, dir),
               0, e, "");
    const char *launch = arena_printf(a, "%s/bin/mpirun", dir);
    /* by its full name: the wrapper's folder comes first in the lines' PATH */
    path = temp_path(a, "path");
    mpi_expect(line_code(path, e, "command -v %s", mpirun), 0, e, "");
    path = child_read(a, path, &n);
    child_write(launch,
                arena_printf(a, "#!/bin/sh\nexec %.*s \"$@\"\n", (int)strcspn(path, "\n"), path));
    chmod(launch, 0755);
    const char *first = strstr(child_read(a, "README.md", &n), "export OMPI_");
    assert_non_null(first);
    first = line_of(a, first);
    assert_true(run_lines(a, "README.md", first, dir) >= 2);
    assert_true(run_lines(a, "docs/shardproof.1", first, dir) >= 1);
    help = temp_path(a, "help");
    mpi_expect(line_code(help, e, "%s calibrate --help", mpi_program()), 0, e, "");
    assert_true(run_lines(a, help, first, dir) >= 1);
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_plans), cmocka_unit_test(test_planted_mistakes),
        cmocka_unit_test(test_random_plans),  cmocka_unit_test(test_other_plans),
        cmocka_unit_test(test_engine_sums),   cmocka_unit_test(test_files),
        cmocka_unit_test(test_files_of_one),  cmocka_unit_test(test_two_machines),
        cmocka_unit_test(test_two_networks),  cmocka_unit_test(test_cluster_scripts),
        cmocka_unit_test(test_written_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
