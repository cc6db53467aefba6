/* make bench: how fast the full-size Llama-3-8B block (tp=8, sequence parallel, S=2048, f32) is
 * executed and checked, in full and quick; a layer of experts; attention round a ring. Ratios are
 * to the floor: distinct FLOPs over the rate of the default GEMM on the block's own shapes, which
 * is measured before and after each part; a part between two rates that are more than 5 % apart is
 * made again, twice at most. Prints tables and writes out/bench.json. With names of parts it makes
 * those only. SHARDPROOF_BENCH_S and SHARDPROOF_BENCH_RING set other lengths. */
#include "drive/pipeline.h"
#include "base/clock.h"
#include "tests/bench_scale.h"
#include "tests/bench_walk.h"
#include "formats/json.h"
#include "base/file.h"
#include "kernel/gemm.h"
#include "kernel/pool.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char *const plan_yaml =
    "name: llama3-8b-full\n"
    "model: {preset: llama3-8b, layers: 1}\n"
    "data: {batch: 1, sequence: %d, dtype: f32, seed: 0}\n"
    "mesh: {tp: 8}\nnames: torchtitan\ngroups: {sp: tp}\n"
    "plan:\n"
    "  layers.*.attention_norm: sequence_parallel\n"
    "  layers.*.ffn_norm: sequence_parallel\n"
    "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "  layers.*.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "  layers.*.attention.w[qkv]: colwise\n"
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
    "  layers.*.feed_forward.w[13]: colwise\n"
    "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n";

/* ---- the rate of the GEMM on the shapes of one rank of eight ---- */
typedef struct {
    int64_t M, N, K;
    bool split; /* the plan splits the sum over K */
} Shape;
typedef struct {
    Shape s;
    bool f64;
    const char *x, *w;
    char *y;
} GemmRun;
static void one_rank(void *arg, int64_t r) {
    const GemmRun *g = arg;
    int64_t es = g->f64 ? 8 : 4;
    GemmView A = {.p = g->x, .rs = g->s.K, .cs = 1}, B = {.p = g->w, .rs = g->s.K, .cs = 1},
             C = {.p = g->y + r * g->s.M * g->s.N * es, .rs = g->s.N, .cs = 1};
    (g->f64 ? gemm_f64 : gemm_f32)(g->s.M, g->s.N, g->s.K, &A, &B, &C);
}
/* FLOPs by the clock's second and by a processor's, each the best of two; *whole: the share of the
 * FLOPs in sums that the plan does not split. */
typedef struct {
    double wall, cpu;
} Rate;
static Rate gemm_rate(Pool *pool, bool f64, double *whole) {
    enum { S = 512 };
    const Shape shapes[] = {{S, 512, 4096, false}, {S, 128, 4096, false},  {S, 128, 4096, false},
                            {S, 4096, 512, true},  {S, 1792, 4096, false}, {S, 1792, 4096, false},
                            {S, 4096, 1792, true}}; /* q k v o gate up down */
    double flops = 0, wall = 0, cpu = 0;
    size_t es = f64 ? 8 : 4, nx = (size_t)(S * 4096), nw = (size_t)4096 * 4096;
    char *x = base_malloc(nx * es), *w = base_malloc(nw * es), *y = base_malloc(8 * nx * es);
    *whole = 0;
    for (size_t i = 0; i < nx; i++)
        if (f64) ((double *)(void *)x)[i] = (double)(i % 97) / 97;
        else ((float *)(void *)x)[i] = (float)(i % 97) / 97;
    for (size_t i = 0; i < nw; i++)
        if (f64) ((double *)(void *)w)[i] = (double)(i % 89) / 89;
        else ((float *)(void *)w)[i] = (float)(i % 89) / 89;
    memset(y, 0, 8 * nx * es);
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        GemmRun g = {shapes[k], f64, x, w, y};
        double best[2] = {1e300, 1e300}, work = 8 * 2.0 * (double)(g.s.M * g.s.N * g.s.K);
        for (int i = 0; i < 2; i++) {
            BenchTime last = bench_time(), t = {0};
            pool_run(pool, 8, one_rank, &g);
            bench_time_add(&t, &last);
            best[0] = fmin(best[0], t.wall);
            best[1] = fmin(best[1], t.user + t.sys);
        }
        wall += best[0];
        cpu += best[1];
        flops += work;
        if (!g.s.split) *whole += work;
    }
    *whole /= flops;
    free(x);
    free(w);
    free(y);
    return (Rate){flops / wall, flops / cpu};
}
static Rate rate_now(void) {
    Pool *pool = pool_new(0);
    double whole;
    Rate r = gemm_rate(pool, false, &whole);
    pool_free(pool);
    return r;
}

/* ---- parts ---- */
typedef struct Bench {
    JsonWriter w;
    Diags *d;
    int S;
    int64_t tokens; /* of the ring */
    /* of the part that is running */
    Arena *a;
    CheckHow check;
    const char *routing;
    PipelineReport report;
    BenchWalk walk;
    double total; /* seconds of it all */
    Rate rate;    /* round it: the faster one */
} Bench;
/* Runs a part between two rates that agree; false if it failed. What it makes in b->a lives until
 * the next. */
static bool between(Bench *b, const char *what, bool (*run)(Bench *b)) {
    enum { TIMES = 3 };
    for (int i = 0; i < TIMES; i++) {
        Rate before = rate_now();
        arena_free(b->a);
        b->a = arena_new();
        double from = clock_seconds();
        if (!run(b)) return false;
        b->total = clock_seconds() - from;
        Rate after = rate_now();
        b->rate = (Rate){fmax(before.wall, after.wall), fmax(before.cpu, after.cpu)};
        double apart = fabs(before.wall - after.wall) / b->rate.wall;
        printf("\n%s: the GEMM made %.0f GFLOP/s before and %.0f after, %.0f %% apart%s\n", what,
               before.wall / 1e9, after.wall / 1e9, 100 * apart,
               apart <= 0.05   ? ""
               : i + 1 < TIMES ? ": once more"
                               : ": ratios by the clock say little");
        if (apart <= 0.05) break;
    }
    return true;
}
static void title(const char *text) {
    printf("\n%s\n\n| what | value | ratio to the floor | goal |\n|---|---|---|---|\n", text);
}
static void row(Bench *b, const char *what, const char *key, double seconds, double floor_s,
                double goal) {
    printf("| %s | %.2f s | %.2f | ", what, seconds, seconds / floor_s);
    if (goal > 0) printf("%g |\n", goal);
    else printf("|\n");
    json_real(&b->w, key, seconds / floor_s);
}
static bool run_plan(Bench *b, PlanText text) {
    PipelineOptions o = {.execute = true, .check = b->check};
    Trace *t = pipeline_run(b->a, b->d, text, &o, &b->report);
    return t && t->verdict && !strcmp(t->verdict, "equivalent");
}
static bool run_block(Bench *b) {
    return run_plan(b, plan_text("bench.yaml", arena_printf(b->a, plan_yaml, b->S)));
}

static bool block(Bench *b) {
    b->check = CHECK_FULL;
    if (!between(b, "block", run_block)) return false;
    const PipelineReport *r = &b->report;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u); /* of the largest part, and before more memory is asked for */
    Pool *pool = pool_new(0);
    double whole, f64 = gemm_rate(pool, true, &whole).wall,
                  floor_s = r->flops_distinct / b->rate.wall;
    title(arena_printf(b->a,
                       "full-size Llama-3-8B block, tp=8, sequence parallel, B=1 S=%d f32, %d "
                       "threads, GEMM %s; %.1f GFLOP at %.0f GFLOP/s (%.0f in float64)",
                       b->S, pool_threads(pool), r->gemm, r->flops_distinct / 1e9,
                       b->rate.wall / 1e9, f64 / 1e9));
    pool_free(pool);
    json_str(&b->w, "what", "llama3-8b block tp=8 sp f32");
    json_int(&b->w, "sequence", b->S);
    json_real(&b->w, "gflop", r->flops_distinct / 1e9);
    json_real(&b->w, "gemm_gflops", b->rate.wall / 1e9);
    json_real(&b->w, "gemm_f64_gflops", f64 / 1e9);
    json_real(&b->w, "floor_s", floor_s);
    row(b, "sharded part (weights made, all ranks stepped)", "sharded_ratio", r->seconds_sharded,
        floor_s, 1.1);
    row(b, "the check by itself, levels 0 to 2, every value of every rank", "check_ratio",
        r->seconds_check, floor_s, 0);
    row(b, "sharded part and check", "checked_ratio", r->seconds_sharded + r->seconds_check,
        floor_s, 4.5);
    row(b,
        "the least that can be: each FLOP once sharded, once in float64, and once unsharded where "
        "no sum is split",
        "least_ratio", floor_s * (1 + whole + b->rate.wall / f64), floor_s, 0);
    row(b, "unsharded float64 reference by itself, end to end", "reference_ratio",
        r->seconds_reference, floor_s, 0);
    row(b, "all of it", "total_ratio", b->total, floor_s, 0);
    printf("| peak memory | %.2f GiB | | 3.5 GiB |\n", (double)u.ru_maxrss / 1048576);
    json_real(&b->w, "peak_gib", (double)u.ru_maxrss / 1048576);
    return true;
}
static bool quick(Bench *b) {
    b->check = CHECK_QUICK;
    bool ok = between(b, "quick", run_block);
    b->check = CHECK_FULL;
    if (!ok) return false;
    const PipelineReport *r = &b->report;
    double floor_s = r->flops_distinct / b->rate.wall;
    title("the same block, products held by projections (--check quick)");
    row(b, "the check by itself", "quick_check_ratio", r->seconds_check, floor_s, 0);
    row(b, "sharded part and check", "quick_ratio", r->seconds_sharded + r->seconds_check, floor_s,
        1.6);
    row(b, "all of it", "quick_total_ratio", b->total, floor_s, 0);
    return true;
}

/* ---- the steps, with nobody looking on ---- */
static double cpu_of(BenchTime t) { return t.user + t.sys; }
/* Writing an array by all threads. */
typedef struct {
    char *p;
    size_t each;
} Fill;
static void fill(void *arg, int64_t i) {
    const Fill *t = arg;
    memset(t->p + (size_t)i * t->each, 1, t->each);
}
/* What writing so many bytes takes where memory is there already. */
static BenchTime memory_time(double bytes) {
    enum { SHARES = 64 };
    Fill t = {.each = (size_t)bytes / SHARES};
    Pool *pool = pool_new(0);
    t.p = base_malloc(t.each * SHARES + 1);
    pool_run(pool, SHARES, fill, &t);
    BenchTime last = bench_time(), took = {0};
    pool_run(pool, SHARES, fill, &t);
    bench_time_add(&took, &last);
    pool_free(pool);
    free(t.p);
    return took;
}
static bool walk_block(Bench *b) {
    return bench_walk(arena_printf(b->a, plan_yaml, b->S), true, &b->walk);
}
static bool steps(Bench *b) {
    if (!between(b, "steps", walk_block)) return false;
    const BenchWalk *r = &b->walk;
    double floor_s = r->flops / b->rate.wall, floor_cpu = r->flops / b->rate.cpu;
    BenchTime least = memory_time(r->bytes);
    title("the same block, its ranks by themselves: nobody looks on");
    row(b, "weights and inputs made", "loaded_ratio", r->loaded.wall, floor_s, 0);
    row(b, "their processor time, of its own floor", "loaded_cpu_ratio", cpu_of(r->loaded),
        floor_cpu, 0);
    row(b, "of it the system's: first touch of memory", "loaded_touch_ratio", r->loaded.sys,
        floor_cpu, 0);
    row(b, "steps of all ranks, in new memory", "steps_ratio", r->steps.wall, floor_s, 1.08);
    row(b, "their processor time, of its own floor", "steps_cpu_ratio", cpu_of(r->steps), floor_cpu,
        1.08);
    row(b, "of it the system's: first touch of memory", "steps_touch_ratio", r->steps.sys,
        floor_cpu, 0);
    row(b, "steps once more, in that memory (the steady step of JAX and LocalTensor)",
        "steady_ratio", r->steady.wall, floor_s, 1.08);
    row(b, "their processor time, of its own floor", "steady_cpu_ratio", cpu_of(r->steady),
        floor_cpu, 1.08);
    printf("| making their numbers, %.2f GiB, without that: user time to writing as many bytes | "
           "%.2f s | %.2f times | |\n",
           r->bytes / 1073741824, r->loaded.user, r->loaded.user / cpu_of(least));
    json_real(&b->w, "loaded_to_memory", r->loaded.user / cpu_of(least));
    return true;
}
/* The steps of a layer of experts at full width to the floor of their distinct FLOPs. */
static bool run_experts(Bench *b) {
    const char *file = "tests/bench/scout-experts.yaml";
    const PlanSet set = {"moe.routing", b->routing};
    PlanText text = {.file = file, .sets = &set, .n_sets = 1};
    text.text = file_read(b->a, b->d, file, 1 << 16, (Loc){0}, &text.n);
    return text.text && run_plan(b, text);
}
static bool experts(Bench *b) {
    static const struct {
        const char *what, *key, *routing;
    } runs[] = {{"rows shared out evenly", "scout_balanced_steps_ratio", "balanced"},
                {"rows ragged", "scout_ragged_steps_ratio", "ragged"}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        b->routing = runs[i].routing;
        if (!between(b, runs[i].what, run_experts)) return false;
        title("a layer of Llama-4-Scout at full width, 2,048 tokens, ep 8, f32: steps without "
              "their weights");
        row(b, runs[i].what, runs[i].key, b->report.seconds_sharded - b->report.seconds_loaded,
            b->report.flops_distinct / b->rate.wall, 1.25);
    }
    return true;
}
/* Attention alone, D = 512 (4 heads of 128), causal, a ring of 8 in zigzag order, forward. */
static bool walk_ring(Bench *b) {
    return bench_walk(
        arena_printf(b->a,
                     "model: {kind: attention, heads: 4, kv_heads: 4, head_dim: 128}\n"
                     "data: {batch: 1, sequence: %lld, dtype: f32}\nmesh: {cp: 8}\n"
                     "context_parallel: {mode: ring, order: zigzag}\n",
                     (long long)b->tokens),
        false, &b->walk);
}
static bool ring(Bench *b) {
    if (!between(b, "ring", walk_ring)) return false;
    const BenchWalk *r = &b->walk;
    title(arena_printf(b->a,
                       "attention alone, D=512, a ring of 8, %lld tokens, f32, causal, zigzag: "
                       "%.0f GFLOP at %.0f GFLOP/s",
                       (long long)b->tokens, r->flops / 1e9, b->rate.wall / 1e9));
    row(b, "steps of all ranks", "ring_steps_ratio", r->steps.wall, r->flops / b->rate.wall, 1.25);
    row(b, "their processor time, of its own floor", "ring_cpu_ratio", cpu_of(r->steps),
        r->flops / b->rate.cpu, 1.25);
    return true;
}
/* First: a started process counts the memory of the one that started it. */
static bool scale(Bench *b) { return bench_scale(&b->w); }

static int64_t setting(const char *name, int64_t otherwise) {
    const char *v = getenv(name);
    return v ? atoll(v) : otherwise;
}
int main(int argc, char **argv) {
    static const struct {
        const char *name;
        bool (*run)(Bench *b);
    } parts[] = {{"scale", scale}, {"block", block},     {"quick", quick},
                 {"steps", steps}, {"experts", experts}, {"ring", ring}};
    enum { N = sizeof parts / sizeof *parts };
    Arena *a = arena_new();
    Bench b = {.w = json_writer(a),
               .d = diags_new(a),
               .S = (int)setting("SHARDPROOF_BENCH_S", 2048),
               .tokens = setting("SHARDPROOF_BENCH_RING", 32768),
               .a = arena_new()};
    bool ok = true;
    json_open(&b.w, NULL, '{');
    for (int i = 0; i < N && ok; i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted |= !strcmp(argv[k], parts[i].name);
        if (wanted) ok = parts[i].run(&b);
    }
    if (!ok) diags_print(b.d, stderr, false); /* and what was begun is not closed */
    if (ok && argc < 2) {
        json_close(&b.w, '}');
        json_newline(&b.w);
        file_write(b.d, "out/bench.json", b.w.s.s, b.w.s.n);
    }
    arena_free(b.a);
    arena_free(a);
    return !ok;
}
