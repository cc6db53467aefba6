/* Attention round a ring without its check (which computes every part again in float64, and takes
 * hours at 32,768 tokens): the same program, steps and kernels as `run`, walked with nobody looking
 * on. Refuses to judge the numbers: `tests/test_context.c` does, at sizes where that is quick. */
#include "tests/bench_ring.h"
#include "drive/run.h"
#include "base/clock.h"
#include <stdio.h>
#include <sys/resource.h>

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
/* Inputs are loaded before the steps begin, so their time is told apart. */
static bool walk(Run *r, BenchRing *out) {
    r->weights = weights_open(r->arena, r->d, r->plan, r->whole);
    if (!r->weights) return false;
    r->pool = pool_new(0);
    r->dev = device_host((size_t)1 << 30);
    r->exec = exec_new(r->arena, r->program, DT_F32, r->pool);
    r->exec->host = r->exec->dev = r->dev;
    r->src = (FullSource){.w = r->weights,
                          .d = r->d,
                          .g = &r->model->g,
                          .dev = r->dev,
                          .pool = r->pool,
                          .data_seed = r->plan->seed,
                          .whole = &r->whole->g,
                          .parts = 1};
    r->exec->full = reference_full;
    r->exec->full_arg = &r->src;
    Walk w = {.e = r->exec, .iterations = 1, .parts = 1, .load_first = true, .stop = &r->stop};
    double cpu = cpu_seconds();
    bool ok = walk_run(&w) == WALK_DONE;
    double load = w.seconds_loaded;
    *out = (BenchRing){w.seconds_run - load, cpu_seconds() - cpu, r->exec->flops};
    exec_free(r->exec);
    device_free(r->dev);
    pool_free(r->pool);
    weights_close(r->weights);
    return ok;
}
bool bench_ring(int64_t tokens, BenchRing *out) {
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    PipelineOptions o = {.execute = true};
    PipelineReport rep = {0};
    const char *text =
        arena_printf(a,
                     "model: {kind: attention, heads: 4, kv_heads: 4, head_dim: 128}\n"
                     "data: {batch: 1, sequence: %lld, dtype: f32}\nmesh: {cp: 8}\n"
                     "context_parallel: {mode: ring, order: zigzag}\n",
                     (long long)tokens);
    Run r = {.arena = a, .d = d, .o = &o, .rep = &rep};
    r.plan = plan_parse(a, d, plan_text("ring.yaml", text));
    bool ok = r.plan && run_front(&r) && run_lower(&r) && walk(&r, out);
    if (!ok) diags_print(d, stderr, false);
    arena_free(a);
    return ok;
}
