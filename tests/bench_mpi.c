/* make bench, third part: the full-size Llama-3-8B block (tp=2, S=2048, f32) on 2 processes of Open
 * MPI against the virtual run of the same plan, both checked; starting and meeting are taken off by
 * a plan that has nothing to do. Prints a table and writes out/bench_mpi.json. Where there is no
 * Open MPI it says so. SHARDPROOF_BENCH_S sets another sequence length. */
#include "base/clock.h"
#include "base/file.h"
#include "formats/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TURNS = 3 };
static const char launcher[] =
    "mpirun.openmpi --allow-run-as-root --oversubscribe -q --bind-to none -n 2 ";

typedef struct {
    double seconds, cpu; /* cpu: of all processes together */
} Cost;
static double cpu_so_far(void) {
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
/* The least of some runs; false: one failed. */
static bool best_of(const char *line, Cost *best) {
    for (int i = 0; i < TURNS; i++) {
        double from = clock_seconds(), cpu = cpu_so_far();
        if (system(line) != 0) return false;
        Cost c = {clock_seconds() - from, cpu_so_far() - cpu};
        if (!i || c.seconds < best->seconds) best->seconds = c.seconds;
        if (!i || c.cpu < best->cpu) best->cpu = c.cpu;
    }
    return true;
}
/* Without what it takes to start. */
static bool work_of(Arena *a, const char *launch, const char *plan, Cost *out) {
    const char *format = "%s./shardproof check %s %s >/dev/null", *flag = *launch ? "--mpi" : "";
    Cost start;
    if (!best_of(arena_printf(a, format, launch, plan, flag), out) ||
        !best_of(arena_printf(a, format, launch, "plans/02-toymodel-2.yaml", flag), &start))
        return false;
    out->seconds -= start.seconds;
    out->cpu -= start.cpu;
    return out->seconds > 0 && out->cpu > 0;
}
int main(void) {
    const char *env = getenv("SHARDPROOF_BENCH_S");
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    if (access("shardproof-openmpi.so", R_OK) != 0) {
        printf("\nno shardproof-openmpi.so: nothing is measured on processes\n");
        return 0;
    }
    const char *plan =
        arena_printf(a, "plans/03-llama3-8b-tp2.yaml --set model.shrink=1 --set data.sequence=%d",
                     env ? atoi(env) : 2048);
    Cost here, apart;
    if (!work_of(a, "", plan, &here) || !work_of(a, launcher, plan, &apart)) {
        fprintf(stderr, "bench: a run failed, or took no longer than its start\n");
        return 1;
    }
    double wall = apart.seconds / here.seconds, cpu = apart.cpu / here.cpu;
    printf("\n| the full-size block, tp=2, checked, start excluded | s | processor s | goal "
           "|\n|---|---|---|---|\n| virtual | %.2f | %.2f | |\n| 2 processes | %.2f | %.2f | |\n"
           "| times the virtual run | %.2f | %.2f | 1.3 |\n",
           here.seconds, here.cpu, apart.seconds, apart.cpu, wall, cpu);
    JsonWriter w = json_writer(a);
    json_open(&w, NULL, '{');
    json_real(&w, "virtual_s", here.seconds);
    json_real(&w, "processes_s", apart.seconds);
    json_real(&w, "ratio", wall);
    json_real(&w, "cpu_ratio", cpu);
    json_close(&w, '}');
    json_newline(&w);
    file_write(d, "out/bench_mpi.json", w.s.s, w.s.n);
    arena_free(a);
    return 0;
}
