/* make bench, third part: the full-size Llama-3-8B block (tp=2, S=2048, f32) on 2 processes of Open
 * MPI against the virtual run of the same plan, both checked, in turns; starting and meeting are
 * taken off by a plan that has nothing to do. Beside the whole run the sharded part of it, as the
 * runs themselves say: the steps of all ranks, without checks and without the unsharded run. Prints
 * a table and writes out/bench_mpi.json. Where there is no Open MPI it says so. SHARDPROOF_BENCH_S
 * sets another sequence length, SHARDPROOF_BENCH_TURNS how often each is run. */
#include "base/clock.h"
#include "base/file.h"
#include "formats/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char launcher[] =
    "mpirun.openmpi --allow-run-as-root --oversubscribe -q --bind-to none -n 2 ";

typedef struct {
    double seconds, cpu, sharded; /* cpu: of all processes together */
} Cost;
static double cpu_so_far(void) {
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
/* "sharded 2.34 s" or "... 812 ms" of a report, in seconds; below 0: it does not say. */
static double sharded_of(const char *line) {
    static const struct {
        const char *name;
        double seconds;
    } unit[] = {{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}};
    double x;
    char u[8];
    const char *at = strstr(line, "sharded ");
    if (!at || sscanf(at, "sharded %lf %7[^,]", &x, u) != 2) return -1;
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
        if (!strcmp(unit[i].name, u)) return x * unit[i].seconds;
    return -1;
}
static bool one_run(const char *line, Cost *c) {
    double from = clock_seconds(), cpu = cpu_so_far();
    char text[1024];
    FILE *f = popen(line, "r");
    *c = (Cost){.sharded = -1};
    while (f && fgets(text, sizeof text, f))
        if (sharded_of(text) >= 0) c->sharded = sharded_of(text);
    if (!f || pclose(f) != 0 || c->sharded < 0) return false;
    c->seconds = clock_seconds() - from;
    c->cpu = cpu_so_far() - cpu;
    return true;
}
static double least(double a, double b, bool first) { return first || b < a ? b : a; }
/* The least of some runs of each line, in turns; false: one failed. */
static bool best_of(const char *const *line, int n, int turns, Cost *best) {
    for (int i = 0; i < turns * n; i++) {
        Cost c, *to = &best[i % n];
        if (!one_run(line[i % n], &c)) return false;
        to->seconds = least(to->seconds, c.seconds, i < n);
        to->cpu = least(to->cpu, c.cpu, i < n);
        to->sharded = least(to->sharded, c.sharded, i < n);
    }
    return true;
}
/* The plan virtually and on processes, each without what it takes to start. */
static bool work_of(Arena *a, const char *plan, int turns, Cost *here, Cost *apart) {
    const char *line[4];
    Cost c[4];
    for (int i = 0; i < 4; i++)
        line[i] = arena_printf(a, "%s./shardproof run %s %s -v 2>&1", i % 2 ? launcher : "",
                               i < 2 ? plan : "plans/02-toymodel-2.yaml", i % 2 ? "--mpi" : "");
    if (!best_of(line, 4, turns, c)) return false;
    for (int i = 0; i < 2; i++) {
        c[i].seconds -= c[i + 2].seconds;
        c[i].cpu -= c[i + 2].cpu;
    }
    *here = c[0];
    *apart = c[1];
    return here->seconds > 0 && here->cpu > 0;
}
static void print_all(const Cost *here, const Cost *apart) {
    printf(
        "\n| the full-size block, tp=2, checked, start excluded | s | sharded part s | processor s "
        "|\n|---|---|---|---|\n");
    printf("| virtual | %.2f | %.2f | %.2f |\n", here->seconds, here->sharded, here->cpu);
    printf("| 2 processes | %.2f | %.2f | %.2f |\n", apart->seconds, apart->sharded, apart->cpu);
    printf("| times the virtual run | %.2f | %.2f | %.2f |\n| goal | 1.3 | 1.15 | |\n",
           apart->seconds / here->seconds, apart->sharded / here->sharded, apart->cpu / here->cpu);
}
static void write_all(Arena *a, const Cost *here, const Cost *apart) {
    JsonWriter w = json_writer(a);
    json_open(&w, NULL, '{');
    json_real(&w, "virtual_s", here->seconds);
    json_real(&w, "processes_s", apart->seconds);
    json_real(&w, "ratio", apart->seconds / here->seconds);
    json_real(&w, "sharded_ratio", apart->sharded / here->sharded);
    json_real(&w, "cpu_ratio", apart->cpu / here->cpu);
    json_close(&w, '}');
    json_newline(&w);
    file_write(diags_new(a), "out/bench_mpi.json", w.s.s, w.s.n);
}
int main(void) {
    const char *env = getenv("SHARDPROOF_BENCH_S"), *turns = getenv("SHARDPROOF_BENCH_TURNS");
    Arena *a = arena_new();
    if (access("shardproof-openmpi.so", R_OK) != 0) {
        printf("\nno shardproof-openmpi.so: nothing is measured on processes\n");
        return 0;
    }
    const char *plan =
        arena_printf(a, "plans/03-llama3-8b-tp2.yaml --set model.shrink=1 --set data.sequence=%d",
                     env ? atoi(env) : 2048);
    Cost here, apart;
    if (!work_of(a, plan, turns ? atoi(turns) : 3, &here, &apart)) {
        fprintf(stderr, "bench: a run failed, or took no longer than its start\n");
        return 1;
    }
    print_all(&here, &apart);
    write_all(a, &here, &apart);
    arena_free(a);
    return 0;
}
