/* make bench: how fast the full-size Llama-3-8B block (tp=8, sequence parallel, S=2048, f32) is
 * executed and checked, as ratios to the floor measured in the same run: distinct FLOPs over the
 * rate of the default GEMM on the block's own shapes. Prints a table and writes out/bench.json.
 * SHARDPROOF_BENCH_S sets another sequence length. */
#include "drive/pipeline.h"
#include "base/clock.h"
#include "tests/bench_ring.h"
#include "tests/bench_scale.h"
#include "formats/json.h"
#include "base/file.h"
#include "kernel/gemm.h"
#include "kernel/pool.h"
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
/* FLOP/s, best of two; *whole: the share of the FLOPs in sums that the plan does not split. */
static double gemm_rate(Pool *pool, int64_t S, bool f64, double *whole) {
    const Shape shapes[] = {{S, 512, 4096, false}, {S, 128, 4096, false},  {S, 128, 4096, false},
                            {S, 4096, 512, true},  {S, 1792, 4096, false}, {S, 1792, 4096, false},
                            {S, 4096, 1792, true}}; /* q k v o gate up down */
    double flops = 0, seconds = 0;
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
        double best = 1e300, work = 8 * 2.0 * (double)(g.s.M * g.s.N * g.s.K);
        for (int i = 0; i < 2; i++) {
            double t0 = clock_seconds();
            pool_run(pool, 8, one_rank, &g);
            double t = clock_seconds() - t0;
            best = t < best ? t : best;
        }
        seconds += best;
        flops += work;
        if (!g.s.split) *whole += work;
    }
    *whole /= flops;
    free(x);
    free(w);
    free(y);
    return flops / seconds;
}
static void row(JsonWriter *w, const char *what, const char *key, double seconds, double floor_s,
                double goal) {
    printf("| %s | %.2f s | %.2f | ", what, seconds, seconds / floor_s);
    if (goal > 0) printf("%g |\n", goal);
    else printf("|\n");
    json_real(w, key, seconds / floor_s);
}
typedef struct {
    double f32, f64, whole; /* FLOP/s of the default GEMM on the block's shapes; see gemm_rate */
    int threads;
} Rates;
/* They come last: the run starts with the memory of a new process. */
static Rates rates(int S) {
    Rates r;
    Pool *pool = pool_new(0);
    r.threads = pool_threads(pool);
    r.f32 = gemm_rate(pool, S, false, &r.whole);
    r.f64 = gemm_rate(pool, S, true, &r.whole);
    pool_free(pool);
    return r;
}
static void head(JsonWriter *w, int S, const PipelineReport *r, const Rates *g, double floor_s) {
    printf("full-size Llama-3-8B block, tp=8, sequence parallel, B=1 S=%d f32, %d threads, GEMM "
           "%s\n\n",
           S, g->threads, r->gemm);
    printf("| what | value | ratio to the floor | goal |\n|---|---|---|---|\n");
    printf("| distinct FLOPs | %.1f G | | |\n", r->flops_distinct / 1e9);
    printf("| rate of the default GEMM on the block's shapes, this run; in float64 | %.0f; %.0f "
           "GFLOP/s | | |\n",
           g->f32 / 1e9, g->f64 / 1e9);
    printf("| floor: distinct FLOPs at that rate | %.2f s | 1.00 | |\n", floor_s);
    json_str(w, "what", "llama3-8b block tp=8 sp f32");
    json_int(w, "sequence", S);
    json_real(w, "gflop", r->flops_distinct / 1e9);
    json_real(w, "gemm_gflops", g->f32 / 1e9);
    json_real(w, "gemm_f64_gflops", g->f64 / 1e9);
    json_real(w, "floor_s", floor_s);
}
static void ratios(JsonWriter *w, const PipelineReport *r, const Rates *g, double floor_s,
                   double total) {
    double checked = r->seconds_sharded + r->seconds_check,
           least = floor_s * (1 + g->whole + g->f32 / g->f64);
    row(w, "sharded part (weights made, all ranks stepped)", "sharded_ratio", r->seconds_sharded,
        floor_s, 1.1);
    row(w, "weights and inputs by themselves", "loaded_ratio", r->seconds_loaded, floor_s, 0);
    row(w, "steps of all ranks by themselves", "steps_ratio",
        r->seconds_sharded - r->seconds_loaded, floor_s, 1.08);
    row(w, "the check by itself, levels 0 to 2, every value of every rank", "check_ratio",
        r->seconds_check, floor_s, 0);
    row(w, "sharded part and check", "checked_ratio", checked, floor_s, 3);
    row(w,
        "the least that can be: each FLOP once sharded, once in float64, and once unsharded where "
        "no sum is split",
        "least_ratio", least, floor_s, 0);
    row(w, "unsharded float64 reference by itself, end to end", "reference_ratio",
        r->seconds_reference, floor_s, 0);
    row(w, "all of it", "total_ratio", total, floor_s, 5);
}
/* The steps of a layer of experts at full width to the floor of their distinct FLOPs. */
static bool experts(JsonWriter *w, Diags *d, const Rates *g) {
    static const struct {
        const char *what, *key, *routing;
    } runs[] = {{"rows shared out evenly", "scout_balanced_steps_ratio", "balanced"},
                {"rows ragged", "scout_ragged_steps_ratio", "ragged"}};
    printf("\na layer of Llama-4-Scout at full width, 2,048 tokens, ep 8, f32: steps without their "
           "weights\n\n| what | value | ratio to the floor | goal |\n|---|---|---|---|\n");
    bool ok = true;
    for (size_t i = 0; i < sizeof runs / sizeof *runs && ok; i++) {
        Arena *a = arena_new();
        PipelineReport r;
        PipelineOptions o = {.execute = true};
        const char *file = "tests/bench/scout-experts.yaml";
        const PlanSet set = {"moe.routing", runs[i].routing};
        PlanText text = {.file = file, .sets = &set, .n_sets = 1};
        text.text = file_read(a, d, file, 1 << 16, (Loc){0}, &text.n);
        Trace *t = text.text ? pipeline_run(a, d, text, &o, &r) : NULL;
        ok = t && t->verdict && !strcmp(t->verdict, "equivalent");
        if (ok)
            row(w, runs[i].what, runs[i].key, r.seconds_sharded - r.seconds_loaded,
                r.flops_distinct / g->f32, 1.25);
        arena_free(a);
    }
    return ok;
}
static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
/* Attention round a ring, to the floor of its distinct FLOPs at the rate of the GEMM, measured
 * before and after; by the clock, and by processor time, which other programs disturb less. */
static bool ring(JsonWriter *w) {
    enum { TOKENS = 32768, S = 512 };
    double whole, cpu[3], rate[2], passes = 8 * 2.0 * S * 4096 * (512 + 128 + 128 + 512 + 3 * 1792);
    BenchRing r;
    Pool *pool = pool_new(0);
    cpu[0] = cpu_seconds();
    rate[0] = gemm_rate(pool, S, false, &whole);
    cpu[1] = cpu_seconds() - cpu[0];
    const char *env = getenv("SHARDPROOF_BENCH_RING");
    int64_t tokens = env ? atoll(env) : TOKENS;
    bool ok = bench_ring(tokens, &r);
    cpu[0] = cpu_seconds();
    rate[1] = gemm_rate(pool, S, false, &whole);
    cpu[2] = cpu_seconds() - cpu[0];
    pool_free(pool);
    if (!ok) return false;
    double best = rate[0] > rate[1] ? rate[0] : rate[1], least = cpu[1] < cpu[2] ? cpu[1] : cpu[2];
    printf("\nattention alone, D=512, a ring of 8, %lld tokens, f32, causal, zigzag: %.0f GFLOP at "
           "%.0f GFLOP/s\n\n| what | value | ratio to the floor | goal |\n|---|---|---|---|\n",
           (long long)tokens, r.flops / 1e9, best / 1e9);
    row(w, "steps of all ranks", "ring_steps_ratio", r.wall, r.flops / best, 1.25);
    row(w, "their processor time", "ring_cpu_ratio", r.cpu, r.flops / (2 * passes / least), 1.25);
    return true;
}
int main(int argc, char **argv) {
    const char *env = getenv("SHARDPROOF_BENCH_S");
    int S = env ? atoi(env) : 2048;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    JsonWriter w = json_writer(a);
    json_open(&w, NULL, '{');
    /* these rows by themselves */
    if (argc > 1 && !strcmp(argv[1], "ring")) return !ring(&w);
    if (argc > 1 && !strcmp(argv[1], "experts")) {
        Rates g = rates(S);
        return !experts(&w, d, &g);
    }
    /* first: a started process counts the memory of the one that started it */
    if (!bench_scale(&w)) return 1;
    const char *text = arena_printf(a, plan_yaml, S);
    PipelineOptions o = {.execute = true};
    PipelineReport r;
    double t0 = clock_seconds();
    Trace *t = pipeline_run(a, d, plan_text("bench.yaml", text), &o, &r);
    double total = clock_seconds() - t0;
    if (!t || !t->verdict || strcmp(t->verdict, "equivalent")) {
        diags_print(d, stderr, false);
        return 1;
    }
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    Rates g = rates(S);
    double floor_s = r.flops_distinct / g.f32;
    head(&w, S, &r, &g, floor_s);
    ratios(&w, &r, &g, floor_s, total);
    printf("| peak memory | %.2f GiB | | 6 GiB |\n", (double)u.ru_maxrss / 1048576);
    json_real(&w, "peak_gib", (double)u.ru_maxrss / 1048576);
    if (!experts(&w, d, &g) || !ring(&w)) {
        diags_print(d, stderr, false);
        return 1;
    }
    json_close(&w, '}');
    json_newline(&w);
    file_write(d, "out/bench.json", w.s.s, w.s.n);
    arena_free(a);
    return 0;
}
