/* A plan's ranks without their check (which computes every product again in float64, and takes
 * hours for a ring of 32,768 tokens): the same program, steps and kernels as `run`, and nobody
 * looks at the numbers. Refuses to judge them: the tests do, at sizes where that is quick. */
#include "tests/bench_walk.h"
#include "drive/run.h"
#include "base/clock.h"
#include <stdio.h>
#include <sys/resource.h>

static double seconds_of(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }
BenchTime bench_time(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (BenchTime){clock_seconds(), seconds_of(u.ru_utime), seconds_of(u.ru_stime)};
}
void bench_time_add(BenchTime *sum, BenchTime *last) {
    BenchTime now = bench_time();
    sum->wall += now.wall - last->wall;
    sum->user += now.user - last->user;
    sum->sys += now.sys - last->sys;
    *last = now;
}
/* Who looks at the clock. */
typedef struct {
    const Exec *e;
    BenchWalk *out;
    BenchTime last;
} Watch;
/* What was made is the whole tensor, of which the ranks' blocks are views. */
static void loaded(void *arg, int val) {
    Watch *w = arg;
    const Program *p = w->e->p;
    const GTensor *t = &p->graph->t[p->val[val].tensor];
    double bytes = dtype_size(DT_F32);
    for (int d = 0; d < t->nd; d++) bytes *= (double)t->size[d];
    bench_time_add(&w->out->loaded, &w->last);
    w->out->bytes += bytes;
}
static void stepped(void *arg, const Step *s) {
    (void)s;
    Watch *w = arg;
    bench_time_add(&w->out->steps, &w->last);
}
static bool walk_once(Run *r, BenchWalk *out) {
    r->exec = exec_new(r->arena, r->program, DT_F32, r->pool);
    r->exec->host = r->exec->dev = r->dev;
    r->exec->full = reference_full;
    r->exec->full_arg = &r->src;
    *out = (BenchWalk){0};
    Watch watch = {.e = r->exec, .out = out, .last = bench_time()};
    const Observer observer = {.arg = &watch, .loaded = loaded, .stepped = stepped},
                   *const observers[] = {&observer};
    Walk w = {.e = r->exec,
              .iterations = 1,
              .parts = 1,
              .load_first = true,
              .observers = observers,
              .n = 1,
              .stop = &r->stop};
    bool ok = walk_run(&w) == WALK_DONE;
    out->flops = r->exec->flops;
    exec_free(r->exec);
    return ok;
}
static bool walk(Run *r, bool again, BenchWalk *out) {
    r->weights = weights_open(r->arena, r->d, r->plan, r->whole);
    if (!r->weights) return false;
    r->pool = pool_new(0);
    r->dev = device_host((size_t)1 << 30);
    r->src = (FullSource){.w = r->weights,
                          .d = r->d,
                          .g = &r->model->g,
                          .dev = r->dev,
                          .pool = r->pool,
                          .whole = &r->whole->g,
                          .parts = 1};
    bool ok = walk_once(r, out);
    if (ok && again) { /* the device keeps the memory that the first took */
        BenchWalk second;
        ok = walk_once(r, &second);
        out->steady = second.steps;
    }
    device_free(r->dev);
    pool_free(r->pool);
    weights_close(r->weights);
    return ok;
}
bool bench_walk(const char *text, bool again, BenchWalk *out) {
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    PipelineOptions o = {.execute = true};
    PipelineReport rep = {0};
    Run r = {.arena = a, .d = d, .o = &o, .rep = &rep};
    r.plan = plan_parse(a, d, plan_text("bench.yaml", text));
    bool ok = r.plan && run_front(&r) && run_lower(&r) && walk(&r, again, out);
    if (!ok) diags_print(d, stderr, false);
    arena_free(a);
    return ok;
}
