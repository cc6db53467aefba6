/* make bench, second part: many ranks, start-up, and commands that only look. Each row starts the
 * program itself and waits for it, so that the time is from start to exit and the memory that of
 * the whole process (run it while this one is small: the peak of a child begins with its parent's).
 * Prints a table and adds to out/bench.json. Refuses to count a run that ends with an error. */
#include "tests/bench_scale.h"
#include "base/clock.h"
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct {
    double seconds, cpu, mib;
} Cost;
/* One start of ./shardproof; false if it did not exit with 0. */
static bool once(char *const *argv, Cost *c) {
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    struct rusage u;
    pid_t pid;
    int status = -1;
    double t0 = clock_seconds();
    bool ok = posix_spawn(&pid, "./shardproof", &quiet, NULL, argv, environ) == 0 &&
              wait4(pid, &status, 0, &u) == pid;
    c->seconds = clock_seconds() - t0;
    posix_spawn_file_actions_destroy(&quiet);
    ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ok) return false;
    c->cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
             1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    c->mib = (double)u.ru_maxrss / 1024;
    return true;
}
/* The best of `times` starts. */
static bool best_of(int times, char *const *argv, Cost *best) {
    for (int i = 0; i < times; i++) {
        Cost c;
        if (!once(argv, &c)) {
            fprintf(stderr, "bench: did not exit with 0:");
            for (int k = 0; argv[k] && k < 8; k++) fprintf(stderr, " %s", argv[k]);
            fputc('\n', stderr);
            return false;
        }
        if (!i || c.seconds < best->seconds) *best = c;
    }
    return true;
}

/* What a row runs, how often, and what it must not exceed. */
typedef struct {
    const char *key, *what;
    int times;
    double seconds, mib; /* goals; 0: none */
    const char *argv[10];
} Row;
#define LARGE "plans/shape-only/llama3.1-405b-8192.yaml"
#define SCOUT "tests/bench/scout-experts.yaml"
#define EXPERTS "plans/shape-only/deepseek-v3-2048.yaml"
#define WIDE "tests/bench/ranks-8192.yaml"
#define OUT "-o", "out/bench-figure.svg"
static const Row rows[] = {
    {"dense_512",
     "dense block, D=512, H=K=64, F=2048, S=128, B=64, dp 64 x tp 8 = 512 ranks, all values "
     "checked",
     3,
     2,
     0,
     {"check", "tests/bench/dense-512.yaml"}},
    {"ranks_8192",
     "8,192 ranks executed (dp 256 x cp 4 x tp 8, D=64, S=64), all values of all ranks checked",
     3,
     60,
     4096,
     {"check", WIDE}},
    {"start",
     "start to exit: check of a small plan (2 ranks)",
     10,
     0.015,
     0,
     {"check", "plans/02-toymodel-2.yaml"}},
    {"start_5m",
     "start to exit: check of 5.2 million weights on 4 ranks",
     10,
     0.015,
     0,
     {"check", "plans/01-column-row-mlp.yaml"}},
    {"version", "start to exit: --version", 10, 0, 0, {"--version"}},
    {"shapes_405b",
     "Llama-3.1-405B, 126 layers, 8,192 ranks: YAML to shapes",
     5,
     0.05,
     0,
     {"shapes", LARGE}},
    {"params_405b", "the same to parameters", 5, 0.05, 0, {"params", LARGE}},
    {"comms_405b", "the same to collectives", 5, 0.05, 0, {"comms", LARGE}},
    {"draw_405b",
     "the same to a figure (block, SVG)",
     5,
     0.05,
     0,
     {"draw", "--view=block", OUT, LARGE}},
    {"timeline_405b",
     "the same to a timeline (SVG)",
     5,
     0.05,
     0,
     {"draw", "--view=timeline", OUT, LARGE}},
    {"shapes_deepseek",
     "DeepSeek-V3, 61 layers, 2,048 ranks: to shapes",
     5,
     0.1,
     0,
     {"shapes", EXPERTS}},
    {"comms_deepseek", "the same to collectives", 5, 0.1, 0, {"comms", EXPERTS}},
    {"params_deepseek", "the same to parameters", 5, 0.1, 0, {"params", EXPERTS}},
    {"draw_deepseek",
     "the same to a figure (block, SVG)",
     5,
     0.1,
     0,
     {"draw", "--view=block", OUT, EXPERTS}},
    {"schedule",
     "64 stages x 512 micro-batches, laid out and drawn",
     3,
     1,
     0,
     {"draw", "--view=pipeline", OUT, "tests/bench/schedule-64x512.yaml"}},
    {"dense_1",
     "dense block, D=512, F=4096, 4,096 tokens, one rank, all values checked",
     3,
     0,
     0,
     {"check", "tests/bench/dense-1.yaml"}},
    {"experts_64",
     "64 experts of F=512, 8 a token, 4,096 tokens on 64 ranks, all values checked",
     3,
     0,
     0,
     {"check", "tests/bench/experts-64.yaml"}},
    {"scout_balanced",
     "a layer of Llama-4-Scout at full width, 2,048 tokens, ep 8, all values checked",
     1,
     0,
     16384,
     {"check", "--strict", SCOUT}},
    {"scout_ragged",
     "the same, ragged",
     1,
     0,
     16384,
     {"check", "--strict", "--set=moe.routing=ragged", SCOUT}},
    {"million",
     "1,000,000 ranks, shape-only, all cuts even",
     3,
     1,
     100,
     {"comms", WIDE, "--set=mesh.dp=31250", "--set=data.batch=31250"}},
    {"million_uneven",
     "1,000,000 ranks, shape-only, batch and sequence uneven",
     3,
     1,
     100,
     {"comms", WIDE, "--set=mesh.dp=31250", "--set=data.batch=100000", "--set=data.sequence=65"}},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* ---- the cost of ranks: the same block and batch on ever more of them ---- */
static const int64_t rank_steps[] = {8, 64, 512, 2048, 8192};
enum { N_STEPS = sizeof rank_steps / sizeof rank_steps[0] };
static bool cost_of_ranks(JsonWriter *w) {
    double first = 0, last = 0, first_cpu = 0, last_cpu = 0;
    printf("\nThe cost of ranks: D=64, S=16, B=1024, dp = ranks/8 x tp 8, all values checked, "
           "every record written\n\n");
    printf("| ranks | start to exit | to 8 ranks | processor time | memory "
           "|\n|---|---|---|---|---|\n");
    json_open(w, "cost_of_ranks", '[');
    for (int i = 0; i < N_STEPS; i++) {
        char dp[64];
        snprintf(dp, sizeof dp, "--set=mesh.dp=%lld", (long long)rank_steps[i] / 8);
        char *const argv[] = {(char *)(uintptr_t) "shardproof",
                              (char *)(uintptr_t) "check",
                              (char *)(uintptr_t)WIDE,
                              dp,
                              (char *)(uintptr_t) "--set=mesh.cp=1",
                              (char *)(uintptr_t) "--set=data.batch=1024",
                              (char *)(uintptr_t) "--set=data.sequence=16",
                              (char *)(uintptr_t) "--format=jsonl",
                              NULL};
        Cost c = {0};
        if (!best_of(3, argv, &c)) return false;
        if (!i) first = c.seconds, first_cpu = c.cpu;
        last = c.seconds, last_cpu = c.cpu;
        printf("| %lld | %.2f s | %.2f | %.2f s | %.0f MiB |\n", (long long)rank_steps[i],
               c.seconds, c.seconds / first, c.cpu, c.mib);
        json_open(w, NULL, '{');
        json_int(w, "ranks", rank_steps[i]);
        json_real(w, "seconds", c.seconds);
        json_real(w, "cpu_s", c.cpu);
        json_real(w, "mib", c.mib);
        json_close(w, '}');
    }
    json_close(w, ']');
    double growth = log((double)rank_steps[N_STEPS - 1] / (double)rank_steps[0]),
           p = log(last / first) / growth, q = log(last_cpu / first_cpu) / growth;
    printf("\ntime grows as ranks^%.2f, processor time as ranks^%.2f (goal: at most ranks^0.5)\n",
           p, q);
    json_real(w, "growth", p);
    json_real(w, "growth_cpu", q);
    return true;
}

/* ---- a thousand plans in one call ---- */
static const char *const small_plans[] = {
    "plans/02-toymodel-2.yaml",    "plans/02-toymodel-4.yaml",     "tests/bench/small-tp.yaml",
    "tests/bench/small-fsdp.yaml", "tests/bench/small-wrong.yaml",
};
static bool thousand(JsonWriter *w) {
    enum { N = 1000 };
    char *argv[N + 3] = {(char *)(uintptr_t) "shardproof", (char *)(uintptr_t) "check"};
    for (int i = 0; i < N; i++)
        argv[i + 2] =
            (char *)(uintptr_t)small_plans[i % (sizeof small_plans / sizeof small_plans[0])];
    Cost c = {0};
    if (!best_of(3, argv, &c)) return false;
    printf("| 1,000 small plans (2 to 8 ranks, forward and backward) in one call of check | %.2f s "
           "| %.2f s | %.0f MiB | 5 s | %.2f |\n",
           c.seconds, c.cpu, c.mib, c.seconds / 5);
    json_real(w, "thousand_plans_s", c.seconds);
    json_real(w, "thousand_plans_mib", c.mib);
    return true;
}

/* Experts to the dense block of as many FLOPs on one rank: what many ranks and ragged rows cost. */
static void experts_to_dense(JsonWriter *w, const Cost *cost) {
    const Cost *experts = NULL, *dense = NULL;
    for (int i = 0; i < N_ROWS; i++) {
        if (!strcmp(rows[i].key, "experts_64")) experts = &cost[i];
        if (!strcmp(rows[i].key, "dense_1")) dense = &cost[i];
    }
    if (!experts || !dense) return;
    printf("\nexperts on 64 ranks to the dense block on one: time %.2f, processor time %.2f (goal: "
           "at most 1.5)\n",
           experts->seconds / dense->seconds, experts->cpu / dense->cpu);
    json_real(w, "experts_to_dense", experts->seconds / dense->seconds);
    json_real(w, "experts_to_dense_cpu", experts->cpu / dense->cpu);
}
bool bench_scale(JsonWriter *w) {
    double jax = 6.1; /* measured earlier on this kind of machine: whole process, nothing checked */
    Cost cost[N_ROWS] = {{0}};
    printf("\nMany ranks and start-up: the program started anew, from start to exit, best of "
           "several\n\n");
    printf("| what | time | processor time | memory | goal | share of the goal "
           "|\n|---|---|---|---|---|---|\n");
    json_open(w, "scale", '{');
    for (int i = 0; i < N_ROWS; i++) {
        const Row *r = &rows[i];
        char *argv[12] = {(char *)(uintptr_t) "shardproof"};
        for (int k = 0; k < 10 && r->argv[k]; k++) argv[k + 1] = (char *)(uintptr_t)r->argv[k];
        Cost c = {0};
        if (!best_of(r->times, argv, &c)) return false;
        cost[i] = c;
        const char *unit = c.seconds < 0.5 ? "ms" : "s";
        double scale = c.seconds < 0.5 ? 1e3 : 1;
        printf("| %s | %.*f %s | %.*f %s | %.0f MiB | ", r->what, scale > 1 ? 1 : 2,
               c.seconds * scale, unit, scale > 1 ? 1 : 2, c.cpu * scale, unit, c.mib);
        if (r->seconds > 0)
            printf("%g s%s | %.2f |\n", r->seconds,
                   r->mib > 0 ? (r->mib > 1000 ? ", 4 GiB" : ", 100 MiB") : "",
                   fmax(c.seconds / r->seconds, r->mib > 0 ? c.mib / r->mib : 0));
        else printf("| |\n");
        fflush(stdout);
        json_open(w, r->key, '{');
        json_real(w, "seconds", c.seconds);
        json_real(w, "cpu_s", c.cpu);
        json_real(w, "mib", c.mib);
        json_close(w, '}');
    }
    if (!thousand(w)) return false;
    printf("\n512 ranks to JAX's whole process for the same block, unchecked (stored figure, 6.1 "
           "s): %.2f\n",
           cost[0].seconds / jax);
    json_real(w, "dense_512_to_stored_jax", cost[0].seconds / jax);
    experts_to_dense(w, cost);
    bool ok = cost_of_ranks(w);
    json_close(w, '}');
    unlink("out/bench-figure.svg");
    return ok;
}
