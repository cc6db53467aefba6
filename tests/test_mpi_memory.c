/* A process of a real run holds its own parts: the most memory that each rank but 0 had, above that
 * of an empty process, against its parameters at rest and the largest buffer of a collective, for
 * more than 256 MiB of them: less than that (0.57 of it for tensor parallelism, 0.75 for FSDP). A
 * copy of the largest block that it tells is 0.27 and 0.17 more. Rank 0 holds the store of all
 * ranks besides: it has that of a virtual run. With --peak FILE PROGRAM... this runs the program
 * and writes down what it had. */
#include "support/child.h"
#include "support/mpi.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* FILE.RANK gets the KiB that the program had at most. */
static int peak(char **argv) {
    const char *rank = getenv(getenv("SHARDPROOF_RANK_IN"));
    struct rusage u;
    char path[4096];
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (wait4(pid, &status, 0, &u) != pid) return 1;
    snprintf(path, sizeof path, "%s.%s", argv[0], rank ? rank : "none");
    FILE *f = fopen(path, "w");
    if (!f || fprintf(f, "%ld\n", u.ru_maxrss) < 0 || fclose(f) != 0) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
static double mib_of(Arena *a, const char *file, int rank) {
    size_t n;
    const char *text = child_read(a, arena_printf(a, "%s.%d", file, rank), &n);
    assert_non_null(text);
    return atof(text) / 1024;
}
/* Runs a plan; the trace is in temp_path "trace". */
static const char *run(Arena *a, int ranks, const char *words) {
    char self[4096] = {0};
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *link = temp_path(a, "peak");
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) fail_msg("no /proc/self/exe");
    unlink(link);
    if (symlink(self, link)) fail_msg("no link");
    mpi_expect(
        MPI_RUN(o, e, "-n %d %s --peak %s %s check %s --mpi --check quick --threads 1 --trace %s",
                ranks, link, temp_path(a, "kib"), mpi_program(), words, temp_path(a, "trace")),
        0, e, "");
    return temp_path(a, "kib");
}
/* What a rank lays down at least: its parameters at rest, and the largest that a collective makes
 * for it. (The records of memory have one more, which frameworks gather ahead; here nothing is.) */
static double own_mib(Arena *a) {
    size_t n;
    const char *text = child_read(a, temp_path(a, "trace"), &n);
    Trace *t = trace_read(a, diags_new(a), "trace", text, n);
    assert_non_null(t);
    double all = 0, most = 0;
    for (int i = 0; i < t->n_memory && t->memory[i].step < 0; i++)
        if (rankset_has(&t->memory[i].ranks, 1)) all += (double)t->memory[i].bytes;
    for (int i = 0; i < t->n_collectives; i++) {
        double made = (double)collective_on(&t->collectives[i], 1).bytes_out;
        most = made > most ? made : most;
    }
    return (all + most) / 1048576;
}
static const char fsdp[] =
    "model: {preset: llama3-8b, layers: 1, shrink: 1}\ndata: {batch: 2, sequence: 32}\n"
    "mesh: {dp: 2}\ndata_parallel: {mode: fsdp, axis: dp, unit: parameter}\n";
static void test_own_parts(void **state) {
    (void)state;
    NEEDS_MPI;
    static const struct {
        const char *plan;
        int ranks;
        double most; /* of own_mib */
    } rows[] = {
        {"plans/03-llama3-8b-tp2.yaml --set model.shrink=1 --set data.sequence=32", 2, 0.7},
        {NULL, 2, 0.85}, /* FSDP */
    };
    Arena *a = arena_new();
    setenv("SHARDPROOF_RANK_IN", mpi_here()->rank, 1);
    double empty = mib_of(a, run(a, 2, "plans/02-toymodel-2.yaml"), 1);
    int n = sample_of((int)(sizeof rows / sizeof *rows), "plans");
    for (int i = 0; i < n; i++) {
        const char *file, *words = rows[i].plan;
        if (!words) child_write(words = temp_path(a, "fsdp.yaml"), fsdp);
        file = run(a, rows[i].ranks, words);
        double own = own_mib(a);
        assert_true(own > 256);
        for (int r = 1; r < rows[i].ranks; r++) {
            double had = mib_of(a, file, r) - empty;
            print_message("%s: rank %d had %.0f MiB, its parts and buffers are %.0f (%.2f)\n",
                          words, r, had, own, had / own);
            assert_true(had < rows[i].most * own);
        }
        double first = mib_of(a, file, 0) - empty;
        assert_true(first > own); /* its store besides */
    }
    arena_free(a);
}
int main(int argc, char **argv) {
    if (argc > 3 && !strcmp(argv[1], "--peak")) return peak(argv + 2);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
