/* Constants of a profile, fitted to measured steps. See calibrate.h. */
#include "drive/calibrate.h"
#include "drive/calibrate_nccl.h"
#include "drive/pipeline.h"
#include "drive/ranks.h"
#include "engine/engine.h"
#include "exec/device.h"
#include <string.h>
#include <unistd.h>

enum { TURNS = 5, SMALL = 64 << 10 };

/* The shortest time of each step, of its slowest rank: what disturbs a run makes it longer only. */
typedef struct {
    const Trace *t;
    int n;
    double *best; /* per step; 0: not measured */
} Times;
/* Who runs the plans: processes, on GPUs or not, or virtual ranks on one GPU. */
typedef struct {
    Arena *arena;
    Diags *d;
    Ranks *ranks;   /* NULL: virtual */
    Device *device; /* NULL: the host */
} On;
/* A sum of two products, fitted: count * each + bytes / rate. */
typedef struct {
    double each, rate;
    int samples;
} Line;
typedef struct {
    Line intra, inter;
    double f32, f64, bf16, memory, kernel; /* bf16 0: it is computed in f32 */
    int64_t per_node, nodes, room;         /* room: bytes of each */
    bool of_gpu;                           /* that room is a GPU's */
    const NcclSeen *seen;                  /* n_seen of them; NULL: NCCL was not seen */
    int n_seen;
    const char *of; /* whose links these are; NULL: measured */
} Constants;

/* A linear network of layers whose sizes differ, cut by FSDP over `dp`: all-gathers and
 * reduce-scatters of many sizes, products and element-wise kernels. The other axis repeats it. */
static const char plan[] =
    "name: calibration\n"
    "model: {kind: mlp, sizes: [16, 512, 256, 1024, 1024, 16], bias: false, activation: relu}\n"
    "data: {rows: %lld, dtype: %s, seed: 1}\n"
    "mesh: {%s: %lld, %s: %lld}\n"
    "data_parallel: {mode: %s, axis: dp%s}\n"
    "pass: backward\n";
/* Its data parallelism: gathered and scattered by parameters, or all gradients summed. */
#define FSDP "fsdp", ", unit: parameter"
#define DDP "ddp", ""

static void keep_best(Arena *arena, Times *x, const Trace *t) {
    double *longest = ARENA_ARRAY(arena, double, t->n_measured + 1);
    int n = 0;
    for (int i = 0; i < t->n_measured; i++) {
        const TraceMeasured *m = &t->measured[i];
        double took = m->end - m->start;
        if (took > longest[m->step]) longest[m->step] = took;
        if (m->step >= n) n = m->step + 1;
    }
    if (!x->best) *x = (Times){t, n, longest};
    for (int i = 0; i < x->n && i < n; i++)
        if (longest[i] < x->best[i]) x->best[i] = longest[i];
}
static bool time_plan(const On *on, const char *text, Times *out) {
    PipelineOptions o = {.execute = true, .ranks = on->ranks, .device = on->device};
    if (!on->ranks) o.check = CHECK_QUICK; /* products too large to be made again by the host */
    for (int i = 0; i < TURNS; i++) {
        PipelineReport rep;
        if (on->ranks) ranks_next(on->ranks);
        const Trace *t =
            pipeline_run(on->arena, on->d, plan_text("calibration.yaml", text), &o, &rep);
        bool ran = t && t->executed && !rep.exit;
        if (!ran || diags_errors(on->d)) return false;
        if (!on->ranks || ranks_first(on->ranks)) keep_best(on->arena, out, t);
    }
    return true;
}

/* ---- fits ---- */
/* Least squares of the relative errors: a * each + b / rate = 1, with a and b over the time. */
typedef struct {
    double aa, ab, bb, a, b;
    int n;
} Sums;
static void add(Sums *s, double count, double bytes, double took) {
    double a = count / took, b = bytes / took;
    s->aa += a * a;
    s->ab += a * b;
    s->bb += b * b;
    s->a += a;
    s->b += b;
    s->n++;
}
static Line fit(const Sums *s) {
    double det = s->aa * s->bb - s->ab * s->ab;
    double each = det > 0 ? (s->a * s->bb - s->b * s->ab) / det : -1;
    double slope = det > 0 ? (s->b * s->aa - s->a * s->ab) / det : -1;
    if (each < 0 || slope <= 0) { /* one of them is lost in the noise: all is the other's */
        each = 0;
        slope = s->bb > 0 ? s->b / s->bb : 0;
    }
    return (Line){each, slope > 0 ? 1 / slope : 0, s->n};
}
static Line links(const Times *x) {
    Sums s = {0};
    for (int i = 0; i < x->t->n_collectives; i++) {
        const TraceCollective *c = &x->t->collectives[i];
        double took = c->step < x->n ? x->best[c->step] : 0;
        bool ring = !strcmp(c->op, "all_gather") || !strcmp(c->op, "reduce_scatter");
        if (ring && took > 0)
            add(&s, (double)(groups_size(&c->groups) - 1), (double)c->bytes_sent, took);
    }
    return fit(&s);
}
/* Seconds of a kernel that has next to nothing to do. */
static double smallest_kernel(const Times *x) {
    double least = 0;
    for (int i = 0; i < x->t->n_computes; i++) {
        const TraceCompute *c = &x->t->computes[i];
        double took = c->step < x->n ? x->best[c->step] : 0;
        if (c->bytes < SMALL && took > 0 && (least <= 0 || took < least)) least = took;
    }
    return least;
}
/* Is it of the kind that is asked for: a product, or a kernel that is as fast as memory? Its work
 * then, else 0. */
static double work_of(const TraceCompute *c, bool products) {
    if (products) return c->product ? c->flops : 0;
    return c->flops <= (double)c->bytes ? (double)c->bytes : 0;
}
/* FLOP/s of products, or bytes/s of what is none: the best of the large ones. */
static double rate(const Times *x, bool products, double kernel) {
    double most = 0, per_second = 0;
    for (int i = 0; i < x->t->n_computes; i++) {
        double work = work_of(&x->t->computes[i], products);
        most = work > most ? work : most;
    }
    for (int i = 0; i < x->t->n_computes; i++) {
        const TraceCompute *c = &x->t->computes[i];
        double took = c->step < x->n ? x->best[c->step] : 0, work = work_of(c, products);
        if (took <= 0 || work < most / 8) continue;
        double now = work / (took > 2 * kernel ? took - kernel : took / 2);
        per_second = now > per_second ? now : per_second;
    }
    return per_second;
}

/* The shortest time of the largest product. */
static double largest_product(const Times *x) {
    double most = 0, took = 0;
    for (int i = 0; i < x->t->n_computes; i++) {
        const TraceCompute *c = &x->t->computes[i];
        double work = work_of(c, true);
        if (work > most && c->step < x->n) most = work, took = x->best[c->step];
    }
    return took;
}

/* ---- the file ---- */
static void link_text(Str *s, const char *name, const Line *l, const char *how) {
    str_addf(s, "%s: # %s\n  bandwidth: %.3g\n  latency: %.3g\n", name, how, l->rate, l->each);
}
static void constants_text(Str *s, const Constants *k) {
    Arena *a = s->a;
    int64_t room = k->room - k->room % (1 << 20); /* pictures write the number out */
    str_addf(s, "flops:\n  bf16: %.3g # %s\n  f32: %.3g # the largest product\n",
             k->bf16 > 0 ? k->bf16 : k->f32, k->bf16 > 0 ? "the same in bf16" : "computed in f32",
             k->f32);
    str_addf(s, "  f64: %.3g # the same in f64\n", k->f64);
    str_addf(s, "memory_bandwidth: %.3g # the largest element-wise kernel\n", k->memory);
    str_addf(s, "kernel_overhead: %.3g # the shortest kernel below 64 KiB\n", k->kernel);
    str_addf(s, "gpus_per_node: %lld\n", (long long)k->per_node);
    if (k->of) {
        const char *how = arena_printf(a, "not measured, there was one GPU: those of %s", k->of);
        link_text(s, "intra", &k->intra, how);
        link_text(s, "inter", &k->inter, how);
    } else {
        link_text(s, "intra", &k->intra,
                  arena_printf(a,
                               "%d all-gathers and reduce-scatters, least squares of relative "
                               "errors",
                               k->intra.samples));
        link_text(s, "inter", &k->inter,
                  k->nodes > 1 ? "the same between machines"
                               : "not measured, all processes were on one machine: as intra");
    }
    str_addf(s, "memory: %lld # %s\n", (long long)room,
             k->of_gpu ? "free when it was measured" : "of the machine, shared by its processes");
}
static const char *text_of(const On *on, const Constants *k, int64_t ranks) {
    Str s = str_new(on->arena);
    bool gpus = ranks_on_gpus(on->ranks);
    str_addf(&s,
             "# Hardware profile, measured by `shardproof calibrate --%s` on %lld processes, %lld "
             "on each machine.\n# It says what the executor of shardproof takes there, packing and "
             "calls included: the shortest of %d runs\n# of a small plan, step by step.\n",
             gpus ? "cuda" : "mpi", (long long)ranks, (long long)k->per_node, TURNS);
    str_addf(&s, "what: \"processes of %s, %lld on each machine, measured\"\n",
             gpus ? "NCCL" : "MPI", (long long)k->per_node);
    constants_text(&s, k);
    calibrate_nccl(&s, k->seen, k->n_seen, on->device ? on->device->name : NULL);
    return s.s;
}
/* The sums of a run that NCCL has made. */
static void see(Constants *k, Arena *arena, const Times *x, const char *op) {
    NcclSeen *all = ARENA_ARRAY(arena, NcclSeen, k->n_seen + x->t->n_collectives + 1);
    if (k->n_seen) memcpy(all, k->seen, (size_t)k->n_seen * sizeof *all);
    k->seen = all;
    for (int i = 0; i < x->t->n_collectives; i++) {
        const TraceCollective *c = &x->t->collectives[i];
        double took = c->step < x->n ? x->best[c->step] : 0;
        if (strcmp(c->op, op) != 0 || took <= 0 || !c->bytes_sent) continue;
        all[k->n_seen++] = (NcclSeen){c->op, groups_size(&c->groups), (double)c->bytes_sent, took};
    }
}
/* NCCL's own all-reduces and reduce-scatters, which move what plans' declared sums do by sends. */
static bool see_nccl(const On *on, Constants *k, const char *fsdp, const char *ddp) {
    Times scatters = {0}, sums = {0};
    bool was = ranks_engine_sums(on->ranks), ran;
    ranks_sum_by_engine(on->ranks, true);
    ran = time_plan(on, ddp, &sums) && time_plan(on, fsdp, &scatters);
    ranks_sum_by_engine(on->ranks, was);
    if (!ran || !ranks_first(on->ranks)) return ran;
    see(k, on->arena, &sums, "all_reduce");
    see(k, on->arena, &scatters, "reduce_scatter");
    return true;
}
/* Processes on each machine, if launchers place them one machine after the other; else one. */
static int64_t per_node(const Ranks *ranks) {
    int64_t n = ranks_count(ranks), beside = ranks_beside(ranks);
    return n % beside == 0 ? beside : n;
}
/* Fewer than two processes, or several on one GPU, whose times say nothing. */
static bool refused(Diags *d, Ranks *ranks) {
    int sharing = ranks_most_sharing(ranks);
    if (sharing > 1)
        diag_error(d, "E0604", diag_nowhere,
                   "start as many processes as there are GPUs, or `shardproof calibrate --cuda` "
                   "for one GPU",
                   "%d processes share a GPU, whose times say nothing: calibrate wants a GPU for "
                   "each",
                   sharing);
    else if (ranks_count(ranks) < 2)
        diag_error(d, "E0603", diag_nowhere,
                   ranks_on_gpus(ranks)
                       ? "torchrun --nproc-per-node 8 --no-python shardproof calibrate --cuda -o "
                         "gpus.yaml"
                       : "mpirun -n 4 shardproof calibrate --mpi -o machine.yaml",
                   "one process has nobody to talk to: calibrate wants at least two");
    else return false;
    return true;
}
/* Bytes for each process: of its GPU, the smallest of them, or its share of the machine. */
static int64_t room_of(Ranks *ranks, const Device *device, int64_t beside) {
    int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    Engine *e = ranks_engine(ranks);
    return e->least(e, device && device->room ? device->room : all / beside);
}
const char *calibrate(Arena *arena, Diags *d, Ranks *ranks, Device *device) {
    const On on = {arena, d, ranks, device};
    int64_t n = ranks_count(ranks);
    Constants k = {.per_node = per_node(ranks)};
    k.nodes = n / k.per_node;
    if (refused(d, ranks)) return NULL;
    k.room = room_of(ranks, device, k.per_node);
    k.of_gpu = device && device->room;
    int64_t inside = k.per_node, outside = k.nodes;
    if (inside == 1) inside = n, outside = 1; /* one on each machine: all links are between them */
    Times f32 = {0}, f64 = {0}, bf16 = {0}, far = {0};
#define NEAR(dtype)                                                                                \
    arena_printf(arena, plan, 64LL * n, dtype, "other", (long long)outside, "dp",                  \
                 (long long)inside, FSDP)
    const char *far_text = arena_printf(arena, plan, 64LL * n, "f32", "dp", (long long)k.nodes,
                                        "other", (long long)k.per_node, FSDP);
    bool apart = k.nodes > 1 && k.per_node > 1;
    if (!time_plan(&on, NEAR("f32"), &f32) || !time_plan(&on, NEAR("f64"), &f64) ||
        (device && !time_plan(&on, NEAR("bf16"), &bf16)) ||
        (apart && !time_plan(&on, far_text, &far)))
        return NULL;
    if (ranks_on_gpus(ranks) &&
        !see_nccl(&on, &k, NEAR("f32"),
                  arena_printf(arena, plan, 64LL * n, "f32", "other", (long long)outside, "dp",
                               (long long)inside, DDP)))
        return NULL;
#undef NEAR
    if (!ranks_first(ranks)) return "";
    k.intra = links(&f32);
    k.inter = apart ? links(&far) : k.intra;
    k.kernel = smallest_kernel(&f32);
    k.f32 = rate(&f32, true, k.kernel);
    k.f64 = rate(&f64, true, smallest_kernel(&f64));
    if (device) k.bf16 = rate(&bf16, true, smallest_kernel(&bf16));
    k.memory = rate(&f32, false, k.kernel);
    return text_of(&on, &k, n);
}

/* ---- one GPU ---- */
/* Two square products and what stands between them. */
static const char square[] = "name: calibration\n"
                             "model: {kind: mlp, sizes: [%lld, %lld, %lld], bias: false, "
                             "activation: relu}\n"
                             "data: {rows: %lld, dtype: %s, seed: 1}\n"
                             "mesh: {dp: 1}\n";
static bool time_square(const On *on, int64_t n, const char *dtype, Times *out) {
    long long s = (long long)n;
    *out = (Times){0};
    return time_plan(on, arena_printf(on->arena, square, s, s, s, s, dtype), out);
}
const char *calibrate_gpu(Arena *arena, Diags *d, Device *device, const Hardware *links_of) {
    enum { LEAST = 256, MOST = 4096 };
    const On on = {arena, d, NULL, device};
    const double LONG = 1e-3; /* then neither the clock nor the launch counts */
    Times small, f32, f64, bf16;
    int64_t n = LEAST;
    if (!time_square(&on, 16, "f32", &small) || !time_square(&on, n, "f32", &f32)) return NULL;
    while (n < MOST && largest_product(&f32) < LONG)
        if (!time_square(&on, n *= 2, "f32", &f32)) return NULL;
    if (!time_square(&on, n, "f64", &f64) || !time_square(&on, n, "bf16", &bf16)) return NULL;
    Constants k = {.intra = {links_of->intra_latency, links_of->intra_bandwidth, 0},
                   .inter = {links_of->inter_latency, links_of->inter_bandwidth, 0},
                   .kernel = smallest_kernel(&small),
                   .per_node = links_of->gpus_per_node,
                   .room = device->room,
                   .of_gpu = true,
                   .of = links_of->name};
    k.f32 = rate(&f32, true, k.kernel);
    k.f64 = rate(&f64, true, k.kernel);
    k.bf16 = rate(&bf16, true, k.kernel);
    k.memory = rate(&f32, false, k.kernel);
    Str s = str_new(arena);
    str_addf(
        &s,
        "# Hardware profile, measured by `shardproof calibrate --cuda` on one GPU: kernels and "
        "products by events,\n# the shortest of %d runs; the largest product had %lld rows, "
        "columns and terms.\n",
        TURNS, (long long)n);
    str_addf(&s, "what: \"%s, measured; links as of %s\"\n", device->name, links_of->name);
    constants_text(&s, &k);
    return s.s;
}
