/* The time model: hand-computed examples, what is exposed, classes that wait for each other,
 * profiles as files. */
#include "base/file.h"
#include "cost/cost.h"
#include "cost/nccl.h"
#include "render/furniture/ring.h"
#include "trace/trace_times.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* after the others: it needs some of them */
#include <cmocka.h>

static const Loc nowhere = {NULL, 0, 0};

/* A machine with round numbers: 1 FLOP takes 1 s, 1 byte over memory 1 s, over a link 2 s (between
 * nodes 10 s), a step of latency 3 s (7 s); 4 per node. */
static const Hardware toy = {.name = "toy",
                             .what = "",
                             .flops_f32 = 1,
                             .flops_f64 = 0.5,
                             .flops_bf16 = 2,
                             .memory_bandwidth = 1,
                             .kernel_overhead = 0.25,
                             .gpus_per_node = 4,
                             .intra_bandwidth = 0.5,
                             .inter_bandwidth = 0.1,
                             .intra_latency = 3,
                             .inter_latency = 7,
                             .memory = (int64_t)3 << 30};

static Trace *mesh_trace(Arena *a, int64_t outer, int64_t inner) {
    Trace *t = trace_new(a);
    t->ranks = outer * inner;
    t->dtype = "f32";
    t->n_axes = 2;
    t->axes =
        arena_memdup(a, (struct TraceAxis[]){{"dp", outer}, {"tp", inner}}, 2 * sizeof *t->axes);
    return t;
}
static void compute(Trace *t, int step, double flops, int64_t bytes, int from) {
    TraceCompute *c = ARENA_PUSH(t->arena, t->computes, t->n_computes, t->cap_computes);
    *c = (TraceCompute){.step = step,
                        .op = "linear",
                        .output = "layers.0.y",
                        .flops = flops,
                        .bytes = bytes,
                        .n_inputs = 1,
                        .inputs = arena_memdup(t->arena, (const char *[]){"x"}, sizeof(char *)),
                        .input_step = arena_memdup(t->arena, &from, sizeof from),
                        .ranks = rankset_range(t->arena, 0, t->ranks, 1)};
    trace_compute_subjects(t->arena, c);
}
static TraceCollective *collective(Trace *t, int step, const char *op, const char *axes,
                                   RankGroups g, int64_t sent, int from) {
    TraceCollective *c = ARENA_PUSH(t->arena, t->collectives, t->n_collectives, t->cap_collectives);
    *c = (TraceCollective){.step = step,
                           .op = op,
                           .axis = axes,
                           .axes = axes,
                           .groups = g,
                           .bytes_sent = sent,
                           .value = "grad.layers.0.x",
                           .subject = subject_of("grad.layers.0.x"),
                           .value_step = from};
    return c;
}
static const TraceEvent *event(const Trace *t, int step, int64_t rank) {
    for (int i = 0; i < t->n_events; i++)
        if (t->events[i].step == step && rankset_has(&t->events[i].ranks, rank))
            return &t->events[i];
    fail_msg("no event of step %d on rank %d", step, (int)rank);
    return NULL;
}
static void spans(const Trace *t, int step, double start, double end, double exposed) {
    const TraceEvent *e = event(t, step, 0);
    assert_true(e->start == start);
    assert_true(e->end == end);
    assert_true(e->exposed == exposed);
}
/* compute + exposed + waiting = makespan, for the class of `rank`; no event is exposed for longer
 * than it sends, or waits, and streams run one event at a time. */
static void adds_up(const Trace *t, int64_t rank) {
    double compute_time = 0, exposed = 0, end = 0;
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *e = &t->events[i];
        if (!rankset_has(&e->ranks, rank)) continue;
        bool is_compute = strcmp(e->kind, "compute") == 0;
        if (is_compute) compute_time += e->end - e->start;
        assert_true(e->exposed >= 0 && e->exposed <= e->end - e->start - e->wait + 1e-12);
        assert_true(e->wait_exposed >= 0 && e->wait_exposed <= e->wait);
        assert_true(!is_compute || (e->exposed == 0 && e->wait == 0));
        exposed += e->exposed + e->wait_exposed;
        if (e->end > end) end = e->end;
        for (int k = 0; k < i; k++) {
            const TraceEvent *f = &t->events[k];
            if (rankset_has(&f->ranks, rank) && strcmp(e->stream, f->stream) == 0)
                assert_true(f->end <= e->start);
        }
    }
    assert_true(fabs(compute_time + exposed - end) <= 1e-9 * end);
}
static const RankGroups tp_of_4 = {1, 1, {4}, {1}, {2}, {4}, 0},
                        dp_of_2 = {1, 1, {2}, {4}, {4}, {1}, 0};

/* compute 10 s, gather, compute 5 s that needs it: all of the gather is exposed. */
static void test_all_exposed(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = mesh_trace(a, 2, 4);
    compute(t, 0, 9.75, 4, -1);
    collective(t, 1, "all_gather", "tp", tp_of_4, 6, 0);
    compute(t, 2, 1, 5, 1); /* memory bound: 5 bytes beat 1 FLOP */
    cost_simulate(t, &toy);
    spans(t, 0, 0, 10, 0);
    spans(t, 1, 10, 10 + 3 * 3 + 6 * 2, 21);
    spans(t, 2, 31, 36.25, 0);
    adds_up(t, 3);
    assert_string_equal(event(t, 1, 0)->stream, "tp");
    assert_string_equal(event(t, 1, 0)->kind, "collective");
    assert_string_equal(event(t, 1, 0)->name, "AG d x");
    assert_string_equal(event(t, 1, 0)->formula, "3 × 3 s + 6 B / 0.5 B/s = 21 s");
    assert_string_equal(event(t, 0, 0)->formula,
                        "max(9.75 FLOP / 1 FLOP/s, 4 B / 1 B/s) + 250 ms = 10 s");
    assert_string_equal(event(t, 0, 0)->name, "y");
    assert_string_equal(rankset_text(&event(t, 0, 0)->ranks, a), "0-7");
    assert_string_equal(t->hardware,
                        "toy: 1 FLOP/s f32, 1 B/s, 3 GiB memory, 250 ms per kernel; ring steps of "
                        "3 s at 0.5 B/s, of 7 s at 0.1 B/s across nodes of 4");
    arena_free(a);
}
/* A gather beside a compute that does not need it is hidden as far as the compute goes. */
static void test_overlap(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = mesh_trace(a, 2, 4);
    compute(t, 0, 1.75, 0, -1);                              /* 0 .. 2 */
    collective(t, 1, "reduce_scatter", "tp", tp_of_4, 2, 0); /* 2 .. 15 */
    compute(t, 2, 7.75, 0, 0);                               /* 2 .. 10 */
    compute(t, 3, 0.75, 0, 1);                               /* waits 10 .. 15 */
    cost_simulate(t, &toy);
    spans(t, 1, 2, 15, 5);
    spans(t, 3, 15, 16, 0);
    adds_up(t, 0);
    arena_free(a);
}
/* How long the collective of a step on rank 0 sends while the rank computes, and beside others. */
static void stretches(const Trace *t, int step, double hidden, double beside) {
    const TraceEvent *e[64] = {0};
    double h[64], b[64];
    int n = 0;
    for (int i = 0; i < t->n_events; i++)
        if (!t->events[i].ranks.n || rankset_has(&t->events[i].ranks, 0)) e[n++] = &t->events[i];
    trace_hidden(e, n, h, b);
    for (int i = 0; i < n; i++)
        if (e[i]->step == step && (fabs(h[i] - hidden) > 1e-9 || fabs(b[i] - beside) > 1e-9))
            fail_msg("step %d: %g hidden, %g beside others", step, h[i], b[i]);
}
/* How long the rank sends while it computes, counted in quarters of a second, of which all times of
 * the toy are multiples. */
static double in_quarters(const Trace *t, int64_t rank, double span) {
    double both = 0;
    for (double at = 0.125; at < span; at += 0.25) {
        bool computes = false, sends = false;
        for (int i = 0; i < t->n_events; i++) {
            const TraceEvent *e = &t->events[i];
            bool own = !e->ranks.n || rankset_has(&e->ranks, rank),
                 on = own && e->start + e->wait < at && at < e->end;
            computes |= on && trace_is_compute(e);
            sends |= on && !trace_is_compute(e);
        }
        both += computes && sends ? 0.25 : 0;
    }
    return both;
}
/* An all-reduce that runs beside the gather that compute really waits for is not exposed. */
static void test_only_what_ends_the_wait(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = mesh_trace(a, 2, 4);
    compute(t, 0, 0.75, 0, -1); /* 0 .. 1 */
    collective(t, 1, "all_reduce", "dp", dp_of_2, 1,
               0); /* other nodes: 2 steps of 7 + 10 = 24: 1 .. 25 */
    collective(t, 2, "all_gather", "tp", tp_of_4, 3, 0); /* 9 + 6 = 15: 1 .. 16 */
    compute(t, 3, 0.75, 0, 2);                           /* 16 .. 17 */
    collective(t, 4, "all_gather", "tp", tp_of_4, 0, 3); /* 17 .. 26: the last chain */
    cost_simulate(t, &toy);
    stretches(t, 1, 1, 23); /* nothing computes but 16 .. 17 */
    stretches(t, 2, 0, 0);
    stretches(t, 4, 0, 0);
    cost_simulate(t, &toy);
    spans(t, 1, 1, 25, 0);
    spans(t, 2, 1, 16, 15);
    spans(t, 4, 17, 26, 9);
    adds_up(t, 7);
    arena_free(a);
}
/* Two collectives one after the other end one wait: both are exposed, the first as far as compute
 * stood still. */
static void test_chain_and_moves(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = mesh_trace(a, 2, 4);
    compute(t, 0, 0.75, 0, -1);                          /* 0 .. 1 */
    collective(t, 1, "all_to_all", "tp", tp_of_4, 0, 0); /* 1 .. 10 */
    compute(t, 2, 3.75, 0, 0);                           /* 1 .. 5 */
    TraceLocalMove *m = ARENA_PUSH(a, t->moves, t->n_moves, t->cap_moves);
    *m = (TraceLocalMove){.step = 3, .op = "slice", .value_step = 1};
    collective(t, 4, "broadcast", "dp", dp_of_2, 1, 3); /* one step: 7 + 10: 10 .. 27 */
    compute(t, 5, 0.75, 0, 4);
    cost_simulate(t, &toy);
    spans(t, 1, 1, 10, 5);
    spans(t, 4, 10, 27, 17);
    spans(t, 5, 27, 28, 0);
    adds_up(t, 0);
    arena_free(a);
}
/* What travels together waits for the last of its parts, whichever leads it. */
static void test_unit_waits_for_its_last_part(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = mesh_trace(a, 2, 4);
    compute(t, 0, 0.75, 0, -1); /* 0 .. 1 */
    compute(t, 1, 9.75, 0, 0);  /* 1 .. 11 */
    TraceCollective *c = collective(t, 2, "reduce_scatter", "tp", tp_of_4, 1, 0);
    c->with = arena_memdup(a, &(int){3}, sizeof(int));
    c->with_from = arena_memdup(a, &(int){1}, sizeof(int));
    c->n_with = c->n_with_from = 1;
    cost_simulate(t, &toy);
    spans(t, 2, 11, 22, 11);
    adds_up(t, 0);
    arena_free(a);
}
/* A gather that runs ahead takes its stream before what is sent after the kernel that it waits for.
 */
static void test_gather_ahead_of_a_reduction(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = mesh_trace(a, 2, 4);
    compute(t, 0, 0.75, 0, -1);                              /* 0 .. 1 */
    compute(t, 1, 19.75, 0, 0);                              /* 1 .. 21 */
    collective(t, 2, "reduce_scatter", "tp", tp_of_4, 1, 0); /* 11 s, behind the gather: 14 .. 25 */
    collective(t, 3, "all_gather", "tp", tp_of_4, 2, -1)->held =
        &(TraceHeld){1, 4};    /* 13 s: 1 .. 14 */
    compute(t, 4, 0.75, 0, 3); /* 21 .. 22 */
    cost_simulate(t, &toy);
    spans(t, 3, 1, 14, 0);
    spans(t, 2, 14, 25, 3);
    spans(t, 4, 21, 22, 0);
    adds_up(t, 0);
    arena_free(a);
}
/* A group of one communicates nothing. */
static void test_group_of_one(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = mesh_trace(a, 8, 1);
    compute(t, 0, 0.75, 0, -1);
    collective(t, 1, "all_reduce", "tp", (RankGroups){1, 1, {1}, {1}, {8}, {1}, 0}, 0, 0);
    compute(t, 2, 0.75, 0, 1);
    cost_simulate(t, &toy);
    assert_int_equal(t->n_events, 2);
    spans(t, 2, 1, 2, 0);
    arena_free(a);
}
static void test_dtype_and_nothing(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = mesh_trace(a, 1, 2);
    cost_simulate(t, &toy);
    assert_int_equal(t->n_events, 0);
    t->dtype = "bf16";
    compute(t, 0, 8, 0, -1);
    cost_simulate(t, &toy);
    cost_simulate(t, &toy); /* again: not twice the events */
    assert_int_equal(t->n_events, 1);
    spans(t, 0, 0, 4.25, 0);
    t->dtype = "f64";
    cost_simulate(t, &toy);
    spans(t, 0, 0, 16.25, 0);
    arena_free(a);
}
/* A mesh of dp 2, tp 4 whose halves over dp are classes of their own. */
static Trace *two_classes(Arena *a) {
    Trace *t = mesh_trace(a, 2, 4);
    t->n_classes = 2;
    t->classes = ARENA_ARRAY(a, RankSet, 2);
    t->classes[0] = rankset_range(a, 0, 4, 1);
    t->classes[1] = rankset_range(a, 4, 4, 1);
    return t;
}
/* Uneven classes: the early one waits inside the collective, which ends for both at once. */
static void test_classes_meet(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = two_classes(a);
    compute(t, 0, 1.75, 0, -1);
    t->computes[0].ranks = t->classes[0];
    compute(t, 0, 4.75, 0, -1);
    t->computes[1].ranks = t->classes[1];
    collective(t, 1, "all_gather", "tp", tp_of_4, 1, 0); /* inside a class: 9 + 2 */
    collective(t, 2, "all_reduce", "dp", dp_of_2, 0, 1); /* across: 14 */
    compute(t, 3, 0.75, 0, 2);
    cost_simulate(t, &toy);
    assert_true(event(t, 0, 0)->end == 2 && event(t, 0, 4)->end == 5);
    assert_true(event(t, 1, 0)->end == 13 && event(t, 1, 4)->end == 16);
    assert_true(event(t, 2, 0)->start == 13 && event(t, 2, 0)->end == 30);
    assert_true(event(t, 2, 4)->start == 16 && event(t, 2, 4)->end == 30);
    assert_true(event(t, 2, 0)->wait == 3 && event(t, 2, 4)->wait == 0); /* then both send for 14 */
    assert_true(event(t, 2, 0)->exposed == 14 && event(t, 2, 0)->wait_exposed == 3);
    assert_true(event(t, 2, 4)->exposed == 14 && event(t, 2, 4)->wait_exposed == 0);
    TraceTimes early = trace_times_of(t, 0), late = trace_times_of(t, 4);
    assert_true(early.waiting == 3 && early.comm == 25 && early.exposed == 25);
    assert_true(late.waiting == 0 && late.comm == 25 && late.span == early.span);
    bool busiest;
    assert_true(rankset_has(trace_slowest(t, &busiest), 4) && busiest); /* both end at once */
    assert_non_null(strstr(event(t, 2, 0)->formula, "after 3 s of waiting for its slowest member"));
    assert_null(strstr(event(t, 2, 4)->formula, "waiting"));
    adds_up(t, 0);
    adds_up(t, 4);
    arena_free(a);
}
/* Nobody waits for another and all end at once: the busiest computes most, whoever comes first. */
static void test_busiest_computes_most(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = two_classes(a);
    collective(t, 0, "all_reduce", "dp", dp_of_2, 0, -1);
    compute(t, 1, 1.75, 0, -1); /* beside the collective */
    t->computes[0].ranks = t->classes[0];
    compute(t, 1, 4.75, 0, -1);
    t->computes[1].ranks = t->classes[1];
    cost_simulate(t, &toy);
    assert_true(event(t, 0, 0)->end == event(t, 0, 4)->end);
    assert_true(event(t, 1, 4)->end < event(t, 0, 4)->end);
    bool busiest;
    assert_true(rankset_has(trace_slowest(t, &busiest), 4) && busiest);
    arena_free(a);
}
/* Random programs of two classes: compute, exposed and waiting are the whole time, whatever the
 * steps are; what is sent while the rank computes is hidden, the rest of it beside what is exposed.
 */
static void test_random_programs(void **state) {
    (void)state;
    uint64_t x = 88172645463325252u;
    int waited = 0, besides = 0;
    for (int round = 0; round < 300; round++) {
        Arena *a = arena_new();
        Trace *t = mesh_trace(a, 2, 4);
        t->n_classes = 2;
        t->classes = ARENA_ARRAY(a, RankSet, 2);
        for (int k = 0; k < 2; k++) t->classes[k] = rankset_range(a, 4 * k, 4, 1);
        for (int s = 0; s < 40; s++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            int from = (int)(x >> 8 & 63) % (s + 1) - 1;
            for (int k = 0; x & 1 && k < 2; k++) {
                compute(t, s, (double)(x >> (20 + 4 * k) & 15), (int64_t)(x >> 30 & 15), from);
                t->computes[t->n_computes - 1].ranks = t->classes[k];
            }
            if (x & 1) continue;
            if (x & 2) collective(t, s, "all_gather", "tp", tp_of_4, (int64_t)(x >> 20 & 7), from);
            else collective(t, s, "all_reduce", "dp", dp_of_2, (int64_t)(x >> 20 & 3), from);
        }
        cost_simulate(t, &toy);
        for (int64_t rank = 1; rank < 8; rank += 4) {
            adds_up(t, rank);
            TraceTimes s = trace_times_of(t, rank);
            waited += s.waiting > 0;
            assert_true(fabs(s.compute + s.exposed + s.waiting - s.span) <= 1e-9 * s.span);
            assert_true(fabs(s.hidden + s.exposed + s.beside - s.comm) <= 1e-9 * s.span);
            assert_true(fabs(s.hidden - in_quarters(t, rank, s.span)) < 1e-6 && s.beside >= 0);
            besides += s.beside > 0;
        }
        arena_free(a);
    }
    assert_true(waited > 30 && besides > 10);
}

/* ---- profiles ---- */
static void same_profile(const Hardware *x, const Hardware *y) {
    assert_string_equal(x->name, y->name);
    assert_string_equal(x->what, y->what);
    const double *a = &x->flops_f32, *b = &y->flops_f32;
    for (int i = 0; i < 5; i++) assert_true(a[i] == b[i]);
    assert_int_equal(x->gpus_per_node, y->gpus_per_node);
    assert_true(x->intra_bandwidth == y->intra_bandwidth &&
                x->inter_bandwidth == y->inter_bandwidth);
    assert_true(x->intra_latency == y->intra_latency && x->inter_latency == y->inter_latency);
    assert_int_equal(x->memory, y->memory);
    const NcclProfile *n = &x->nccl, *m = &y->nccl;
    assert_true(n->gpu == m->gpu && n->cpu == m->cpu && n->link == m->link &&
                n->channels == m->channels && n->channel_bandwidth == m->channel_bandwidth &&
                n->nvls_channels == m->nvls_channels && n->nvls_ranks == m->nvls_ranks &&
                n->nvls_bandwidth == m->nvls_bandwidth);
}
/* The files that are shipped say what is built in. Run from the folder of the project. */
static void test_files_are_built_in(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    static const char *const dirs[] = {"plans/hardware", NULL};
    if (access("plans/hardware", F_OK) != 0) skip();
    int n = 0;
    for (const char *const *name = hardware_names(); *name; name++, n++) {
        const Hardware *file = hardware_find(a, d, *name, dirs, nowhere),
                       *row = hardware_find(a, d, *name, NULL, nowhere);
        if (!file) diags_print(d, stderr, false);
        assert_non_null(file);
        assert_non_null(row);
        assert_ptr_not_equal(file, row);
        same_profile(file, row);
    }
    assert_int_equal(n, 6);
    assert_int_equal(d->n, 0);
    arena_free(a);
}
static void test_unknown_hardware(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    assert_null(hardware_find(a, d, "h10-sxm", NULL, (Loc){"p.yaml", 3, 4}));
    assert_string_equal(d->item[0].code, "E0213");
    assert_string_equal(d->item[0].hint, "h100-sxm");
    assert_int_equal(d->item[0].loc.line, 3);
    assert_null(hardware_find(a, d, "./no/such.yaml", NULL, nowhere));
    assert_string_equal(d->item[1].code, "E0101");
    d = diags_new(a); /* its help speaks of profiles, not of plans */
    assert_null(hardware_find(a, d, "/dev/null", NULL, nowhere));
    assert_string_equal(d->item[0].code, "E0103");
    assert_non_null(strstr(d->item[0].message, "no hardware profile: the file is empty"));
    assert_non_null(strstr(d->item[0].hint, "`shardproof list hardware`"));
    arena_free(a);
}
static const char good[] = "what: mine\nflops: {f32: 1e12, f64: 2e12, bf16: "
                           "3e12}\nmemory_bandwidth: 4e12\nkernel_overhead: 0\n"
                           "gpus_per_node: 5\nintra: {bandwidth: 6e9, latency: 7e-6}\ninter: "
                           "{bandwidth: 8e9, latency: 0}\nmemory: 9\n";

#define NCCL(rest)                                                                                 \
    "memory: 9\nnccl: {gpu: hopper, link: pci, channel_bandwidth: 3e9, nvls_channels: 0, "         \
    "nvls_bandwidth: 0, nvls_ranks: 0, " rest "}"
static void test_own_profile(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *code;
        int line;
    } cases[] = {
        {"what: mine", "what: other", NULL, 0},
        {"memory: 9", "memory: 9.5", "E0309", 8},
        {"f32: 1e12", "f32: -1", "E0309", 2},
        {"f32: 1e12", "f32: nan", "E0309", 2},
        {"f32: 1e12", "f32: 1e-300", "E0309", 2},
        {"f32: 1e12", "f32: 1e300", "E0309", 2},
        {"f32: 1e12", "f32: fast", "E0301", 2},
        {"f32: 1e12", "f32: [1]", "E0301", 2},
        {"f32: 1e12", "f23: 1e12", "E0208", 1},
        {"kernel_overhead: 0", "kernel_overhaed: 0", "E0208", 1},
        {"gpus_per_node: 5", "gpus_per_node: 0", "E0309", 5},
        {"intra: {bandwidth: 6e9, latency: 7e-6}", "intra: 3", "E0208", 1},
        {"memory: 9", "memory: 9\ncolour: red", "E0201", 9},
        {"what: mine", "what: [", "E0104", 0},
        {"memory: 9", "memory: 9\nnccl: 4", "E0208", 1},
        {"memory: 9", "memory: 9\nnccl: {gpu: hoper}", "E0208", 1},
        {"memory: 9", NCCL("cpu: amd, channels: 0"), "E0309", 9},
        {"memory: 9", NCCL("cpu: adm, channels: 2"), "E0301", 9},
        {"memory: 9", NCCL("cpu: [amd], channels: 2"), "E0301", 9},
        {"memory: 9", NCCL("cpu: amd, channels: 2, rings: 3"), "E0201", 9},
    };
    char dir[] = "/tmp/test_cost_XXXXXX";
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *a = arena_new();
        Diags *d = diags_new(a);
        const char *at = strstr(good, cases[i].from), *path = file_join(a, dir, "mine.yaml");
        const char *text = arena_printf(a, "%.*s%s%s", (int)(at - good), good, cases[i].to,
                                        at + strlen(cases[i].from));
        assert_true(file_write(d, path, text, strlen(text)));
        const char *const dirs[] = {"/nowhere", dir, NULL};
        const Hardware *h = hardware_find(a, d, "mine", dirs, nowhere);
        assert_int_equal(h != NULL, cases[i].code == NULL);
        if (h) {
            assert_true(h->flops_bf16 == 3e12 && h->intra_latency == 7e-6 &&
                        h->gpus_per_node == 5 && h->memory == 9);
            assert_string_equal(h->what, "other");
        } else {
            assert_string_equal(d->item[0].code, cases[i].code);
            if (cases[i].line) assert_int_equal(d->item[0].loc.line, cases[i].line);
        }
        unlink(path);
        arena_free(a);
    }
    rmdir(dir);
}

/* A path in a plan starts at the plan's folder, one on the command line at the working directory.
 */
static void test_path_of_a_plan(void **state) {
    (void)state;
    char dir[] = "/tmp/test_cost_XXXXXX";
    assert_non_null(mkdtemp(dir));
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    const char *path = file_join(a, dir, "mine.yaml");
    assert_true(file_write(d, path, good, strlen(good)));
    assert_non_null(hardware_of_plan(a, d, NULL, "./mine.yaml", dir, nowhere));
    assert_non_null(hardware_of_plan(a, d, NULL, path, "/nowhere", nowhere));
    assert_non_null(hardware_of_plan(a, d, path, "./none.yaml", dir, nowhere));
    assert_int_equal(d->n, 0);
    assert_null(hardware_of_plan(a, d, "./mine.yaml", NULL, dir, nowhere));
    assert_string_equal(hardware_of_plan(a, d, NULL, NULL, NULL, nowhere)->name, "h100-sxm");
    unlink(path);
    rmdir(dir);
    arena_free(a);
}

/* ---- NCCL's own model ---- */
static const Hardware *nccl_machine(Arena *a) {
    const Hardware *h = hardware_find(a, diags_new(a), "h100-nccl", NULL, nowhere);
    assert_non_null(h);
    return h;
}
static bool near(double x, double want, double share) { return fabs(x - want) <= share * want; }
/* What the tuner of NCCL 2.28 has for H100s, worked out from its source: microseconds, GB/s of the
 * size S (algorithm bandwidth; 0: not looked at). */
static void test_nccl_table(void **state) {
    (void)state;
    static const struct {
        const char *op;
        int64_t ranks, nodes;
        NcclAlgo algo;
        NcclProto proto;
        double latency, bandwidth;
    } row[] = {
        {"all_reduce", 8, 1, NCCL_RING, NCCL_LL, 15.0, 80.6},
        {"all_reduce", 8, 1, NCCL_RING, NCCL_LL128, 40.6, 189},
        {"all_reduce", 8, 1, NCCL_RING, NCCL_SIMPLE, 56.0, 206},
        {"all_reduce", 8, 1, NCCL_TREE, NCCL_LL, 15.2, 43.6},
        {"all_reduce", 8, 1, NCCL_NVLS, NCCL_SIMPLE, 25.0, 272},
        {"all_gather", 8, 1, NCCL_RING, NCCL_LL, 10.8, 161},
        {"reduce_scatter", 8, 1, NCCL_RING, NCCL_LL128, 27.3, 378},
        {"all_gather", 8, 1, NCCL_RING, NCCL_SIMPLE, 32.2, 411},
        {"reduce_scatter", 8, 1, NCCL_NVLS, NCCL_SIMPLE, 25.0, 208},
        {"all_reduce", 2, 1, NCCL_RING, NCCL_LL, 7.8, 0},
        {"all_reduce", 4, 1, NCCL_RING, NCCL_LL, 10.2, 0},
        {"all_gather", 2, 1, NCCL_RING, NCCL_LL, 7.2, 0},
        {"all_gather", 4, 1, NCCL_RING, NCCL_LL, 8.4, 0},
        {"all_reduce", 2, 1, NCCL_RING, NCCL_SIMPLE, 15.2, 0},
        {"all_reduce", 4, 1, NCCL_RING, NCCL_SIMPLE, 28.8, 0},
        {"reduce_scatter", 2, 1, NCCL_RING, NCCL_SIMPLE, 11.8, 0},
        {"reduce_scatter", 4, 1, NCCL_RING, NCCL_SIMPLE, 18.6, 0},
        {"all_reduce", 16, 2, NCCL_TREE, NCCL_LL, 25, 0},
        {"all_reduce", 32, 4, NCCL_TREE, NCCL_LL, 35, 0},
        {"all_reduce", 64, 8, NCCL_TREE, NCCL_LL, 45, 0},
        {"all_reduce", 128, 16, NCCL_TREE, NCCL_LL, 55, 0},
        {"all_reduce", 16, 2, NCCL_NVLS_TREE, NCCL_SIMPLE, 67, 0},
        {"all_reduce", 32, 4, NCCL_NVLS_TREE, NCCL_SIMPLE, 109, 0},
        {"all_reduce", 64, 8, NCCL_NVLS_TREE, NCCL_SIMPLE, 150, 0},
        {"all_reduce", 128, 16, NCCL_NVLS_TREE, NCCL_SIMPLE, 192, 0},
        {"all_reduce", 16, 2, NCCL_RING, NCCL_SIMPLE, 132, 0},
        {"all_reduce", 32, 4, NCCL_RING, NCCL_SIMPLE, 283, 0},
        {"all_reduce", 64, 8, NCCL_RING, NCCL_SIMPLE, 585, 0},
        {"all_reduce", 128, 16, NCCL_RING, NCCL_SIMPLE, 1190, 0},
        {"all_reduce", 16, 2, NCCL_RING, NCCL_LL, 40, 0},
        {"all_reduce", 32, 4, NCCL_RING, NCCL_LL, 79, 0},
        {"all_reduce", 64, 8, NCCL_RING, NCCL_LL, 156, 0},
        {"all_reduce", 128, 16, NCCL_RING, NCCL_LL, 312, 0},
        /* 8 + 3 x 14 / 3.5 + 8 x 2.8; one 48 GB/s card a rank, and three quarters of it */
        {"all_gather", 8, 8, NCCL_PAT, NCCL_SIMPLE, 42.4, 36},
        /* a step each: 6.6 + 8 x 0.6; as fast as what is sent on */
        {"broadcast", 8, 1, NCCL_RING, NCCL_LL, 11.4, 141},
    };
    Arena *a = arena_new();
    const Hardware *h = nccl_machine(a);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        NcclWay way;
        NcclAsk ask = {row[i].op, row[i].ranks, row[i].nodes, 1}; /* too small for corrections */
        assert_true(nccl_way(h, &ask, row[i].algo, row[i].proto, &way));
        if (!near(way.latency * 1e6, row[i].latency, 0.01) ||
            (row[i].bandwidth > 0 && !near(way.bandwidth * 1e-9, row[i].bandwidth, 0.005)))
            fail_msg("%s of %d: %.4g us, %.4g GB/s", row[i].op, (int)row[i].ranks,
                     way.latency * 1e6, way.bandwidth * 1e-9);
    }
    arena_free(a);
}
/* Which it takes, by size; what it would not use. */
static void test_nccl_choice(void **state) {
    (void)state;
    static const struct {
        const char *op;
        int64_t ranks, nodes;
        double bytes;
        const char *way;
        double us; /* 0: not looked at */
    } row[] = {{"all_reduce", 8, 1, 1 << 20, "Ring/LL", 28.01},
               {"all_reduce", 8, 1, 1 << 21, "NVLS/Simple", 32.71},
               {"all_reduce", 8, 1, 0x1p28, "NVLS/Simple", 1012},
               {"all_reduce", 8, 1, 0x1p30, "NVLS/Simple", 3973},
               {"all_reduce", 4, 1, 0x1p28, "Ring/Simple", 0}, /* no NVLS with four */
               {"all_gather", 8, 1, 0x1p28, "Ring/Simple", 0},
               {"all_gather", 8, 1, 0x1p23, "Ring/LL128", 0},
               {"all_reduce", 16, 2, 1024, "Tree/LL", 25.3},
               {"all_reduce", 16, 2, 0x1p30, "NVLSTree/Simple", 0},
               {"all_gather", 16, 2, 0x1p30, "Ring/Simple", 0},
               {"all_gather", 16, 16, 1 << 16, "PAT/Simple", 0}};
    Arena *a = arena_new();
    const Hardware *h = nccl_machine(a);
    NcclWay way;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        way = nccl_choose(h, &(NcclAsk){row[i].op, row[i].ranks, row[i].nodes, row[i].bytes});
        if (strcmp(nccl_way_text(&way, a), row[i].way) != 0 ||
            (row[i].us > 0 && !near(way.time * 1e6, row[i].us, 0.01)))
            fail_msg("%s of %d, %g B: %s, %.5g us", row[i].op, (int)row[i].ranks, row[i].bytes,
                     nccl_way_text(&way, a), way.time * 1e6);
    }
    /* what depends on the size: 1.4 times the latency of rings over nodes, 0.6 of a tree's
     * bandwidth */
    NcclAsk large = {"all_reduce", 16, 2, 0x1p28}, middle = {"all_reduce", 8, 1, 1 << 16};
    assert_true(nccl_way(h, &large, NCCL_RING, NCCL_SIMPLE, &way) &&
                near(way.latency * 1e6, 1.4 * 131.6, 0.001));
    assert_true(nccl_way(h, &middle, NCCL_TREE, NCCL_LL, &way) &&
                near(way.bandwidth * 1e-9, 0.6 * 43.58, 0.001));
    NcclAsk gather = {"all_gather", 8, 1, 1}, far = {"all_gather", 16, 2, 1};
    assert_false(nccl_way(h, &gather, NCCL_TREE, NCCL_LL, &way));
    assert_false(nccl_way(h, &gather, NCCL_NVLS, NCCL_LL, &way));
    assert_false(nccl_way(h, &far, NCCL_NVLS, NCCL_SIMPLE, &way));
    assert_false(nccl_way(h, &far, NCCL_PAT, NCCL_SIMPLE, &way));
    assert_false(nccl_models(h, "all_to_all") || nccl_models(&toy, "all_gather"));
    Hardware pci = *h;
    pci.nccl.link = NCCL_PCI;
    assert_false(nccl_way(&pci, &gather, NCCL_NVLS, NCCL_SIMPLE, &way));
    assert_false(nccl_way(&pci, &gather, NCCL_RING, NCCL_LL128, &way));
    arena_free(a);
}
/* What other machines have in their place, and how trees fall behind the model: by powers of two
 * from 64 B, in tenths (A: all of it). */
static void test_nccl_machines(void **state) {
    (void)state;
    static const char *const tenths[NCCL_PROTOCOLS] = {
        "AAAA987777654456789AAAAA", "AAAAA9888766666689999AAA", "99999998766555567877899A"};
    static const struct {
        NcclAsk ask;
        NcclAlgo algo;
        NcclProto proto;
        double latency, bandwidth;
    } row[] = {/* 6.6 + 28 x 2 + 2 x 2.7, 22.5 x 16 / 30; a host's 3 x 2 for Simple */
               {{"all_reduce", 16, 2, 1}, NCCL_RING, NCCL_LL, 68.0, 12.0},
               {{"all_reduce", 16, 2, 1}, NCCL_RING, NCCL_SIMPLE, 204.4, 192},
               /* 12 x 24 / 2; that x 7 / 9 */
               {{"all_reduce", 8, 1, 1}, NCCL_TREE, NCCL_SIMPLE, 64.4, 144},
               {{"all_reduce", 8, 1, 1}, NCCL_TREE, NCCL_LL128, 31.5, 112},
               /* 12 x 20 x 8 / 14 */
               {{"all_reduce", 8, 1, 1}, NCCL_RING, NCCL_LL128, 40.6, 137.1}};
    Arena *a = arena_new();
    const Hardware *h = nccl_machine(a);
    Hardware other = *h;
    NcclWay way, all;
    other.nccl.cpu = NCCL_AMD, other.nccl.gpu = NCCL_AMPERE;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_true(nccl_way(&other, &row[i].ask, row[i].algo, row[i].proto, &way));
        if (!near(way.latency * 1e6, row[i].latency, 0.001) ||
            !near(way.bandwidth * 1e-9, row[i].bandwidth, 0.001))
            fail_msg("row %d: %.5g us, %.5g GB/s", (int)i, way.latency * 1e6, way.bandwidth * 1e-9);
    }
    for (int p = 0; p < NCCL_PROTOCOLS; p++)
        for (int k = 0; tenths[p][k]; k++) {
            NcclAsk none = {"all_reduce", 8, 1, 1}, some = {"all_reduce", 8, 1, ldexp(64, k)};
            double want = tenths[p][k] == 'A' ? 1 : (tenths[p][k] - '0') / 10.0;
            assert_true(nccl_way(h, &none, NCCL_TREE, (NcclProto)p, &all));
            assert_true(nccl_way(h, &some, NCCL_TREE, (NcclProto)p, &way));
            if (!near(way.bandwidth, want * all.bandwidth, 1e-9)) fail_msg("%d, size %d", p, k);
        }
    arena_free(a);
}
/* In a timeline: S from the bytes that a rank sends, the way in the formula, done twice two calls;
 * all-to-alls by the profile's links. */
static void test_nccl_times(void **state) {
    (void)state;
    static const RankGroups eight = {1, 1, {8}, {1}, {1}, {0}, 0},
                            sixteen = {1, 1, {16}, {1}, {1}, {0}, 0};
    Arena *a = arena_new();
    const Hardware *h = nccl_machine(a);
    const int64_t s = 1 << 20;
    Trace *t = mesh_trace(a, 2, 8);
    collective(t, 0, "all_reduce", "tp", eight, s * 14 / 8, -1);
    collective(t, 1, "all_reduce", "tp", eight, 2 * s * 14 / 8, -1)->times = 2;
    collective(t, 2, "all_reduce", "dp,tp", sixteen, 1024 * 30 / 16, -1);
    collective(t, 3, "all_to_all", "tp", eight, 7000, -1);
    cost_simulate(t, h);
    static const double us[] = {28.01, 56.02, 25.3, 7 * 5 + 0.0189};
    static const char *const says[] = {"NCCL Ring/LL: 15 µs + 1 MiB / 80.6 GB/s = 28.0 µs",
                                       "2 times", "NCCL Tree/LL: 25.2 µs + 1 KiB", "7 × 5 µs"};
    for (int i = 0; i < 4; i++) {
        const TraceEvent *e = event(t, i, 0);
        if (!near((e->end - e->start) * 1e6, us[i], 0.01) || !strstr(e->formula, says[i]))
            fail_msg("step %d: %.5g us, %s", i, (e->end - e->start) * 1e6, e->formula);
    }
    assert_non_null(strstr(t->hardware, "what NCCL models by 12 channels of 30 GB/s"));
    arena_free(a);
}

/* Rows of experts: a kernel takes the time of the rank that has most, an exchange that of the
 * largest pair of each of its rounds; without a run what is expected, and the line says which. */
static void test_rows(void **state) {
    (void)state;
    for (int run = 0; run < 2; run++) {
        Arena *a = arena_new();
        Trace *t = mesh_trace(a, 1, 3);
        RankSet all = rankset_range(a, 0, 3, 1);
        TraceValue *v = ARENA_PUSH(t->arena, t->values, t->n_values, t->cap_values);
        *v = (TraceValue){.step = 1, .list = 0, .most = 12, .layer = 0};
        v->shape = (TraceShape){.name = "layers.0.moe.dispatched", .nd = 2, .n_local = 1};
        v->shape.local = arena_memdup(a, &(TraceLocal){all, {4, 2}, 32}, sizeof(TraceLocal));
        const RankGroups three = {.n_in = 1, .in_size = {3}, .in_stride = {1}};
        TraceCollective *k = collective(t, 1, "all_to_all", "tp", three, 16, -1);
        k->row_bytes = 8;
        compute(t, 2, 100, 50, 1);
        if (run) {
            TraceRouted *r = ARENA_PUSH(t->arena, t->routed, t->n_routed, t->cap_routed);
            *r = (TraceRouted){.step = 0, .experts = 1, .n_rows = 3};
            r->rows = arena_memdup(a, (double[]){2, 6, 4}, 3 * sizeof(double));
            TraceExchange *x = ARENA_PUSH(t->arena, t->exchanges, t->n_exchanges, t->cap_exchanges);
            *x = (TraceExchange){.step = 1, .size = 3, .n_in = 3, .n_out = 3, .n_sent = 3};
            x->in = x->out = x->sent = r->rows;
            x->n_to = x->n_from = 9;
            /* rounds: 0>1 1>2 2>0 is 3 1 0, 0>2 1>0 2>1 is 0 0 2 */
            x->to = x->from =
                arena_memdup(a, (double[]){1, 3, 0, 0, 3, 1, 0, 2, 4}, 9 * sizeof(double));
        }
        cost_simulate(t, &toy);
        assert_int_equal(t->n_events, 2);
        /* 2 rounds of 3 s, 16 bytes at 2 s; with the run (3 + 2) rows of 8 bytes */
        double sent = run ? 6 + 40 * 2 : 6 + 16 * 2, work = run ? 150.25 : 100.25;
        assert_true(fabs(t->events[0].end - sent) < 1e-9);
        assert_true(fabs(t->events[1].end - t->events[1].start - work) < 1e-9);
        const char *says = run ? "6 rows on the rank that has most, 4 expected" : "4 rows expected";
        assert_non_null(strstr(t->events[1].formula, says));
        says = run ? "rows of experts: the run's" : "at worst 3 times as many";
        assert_non_null(strstr(t->hardware, says));
        arena_free(a);
    }
}

/* An exchange takes its largest pair of each round that the storyboard draws. */
static void test_rounds_are_those_drawn(void **state) {
    (void)state;
    for (int n = 2; n <= 6; n += 2) {
        Arena *a = arena_new();
        Trace *t = mesh_trace(a, 1, n);
        const RankGroups all = {.n_in = 1, .in_size = {n}, .in_stride = {1}};
        TraceCollective *k = collective(t, 1, "all_to_all", "tp", all, 16, -1);
        k->row_bytes = 8;
        double to[RING_MAX * RING_MAX], before[RING_MAX * RING_MAX], rows = 0;
        RingStory s = {.kind = RING_EXCHANGE, .n = n, .n_shown = n, .before = before};
        for (int i = 0; i < n; i++) {
            s.shown[i] = i;
            for (int j = 0; j < n; j++) before[j * n + i] = to[i * n + j] = (i * 7 + j * 5) % 11;
        }
        TraceExchange *x = ARENA_PUSH(t->arena, t->exchanges, t->n_exchanges, t->cap_exchanges);
        *x = (TraceExchange){.step = 1, .size = n, .n_in = n, .n_out = n, .n_sent = n};
        x->in = x->out = x->sent = x->to = x->from = to;
        x->n_to = x->n_from = (int64_t)n * n;
        for (int step = 1; step < n; step++) {
            Ring g;
            double largest = 0;
            ring_frame(&g, &s, step);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++)
                    if (g.cell[i][j].fresh) largest = fmax(largest, g.cell[i][j].value);
            rows += largest;
        }
        Hardware one = toy; /* node for all */
        one.gpus_per_node = RING_MAX;
        cost_simulate(t, &one);
        assert_int_equal(t->n_events, 1);
        assert_true(fabs(t->events[0].end - (3 * (n - 1) + rows * 8 * 2)) < 1e-9);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl_table),
        cmocka_unit_test(test_nccl_choice),
        cmocka_unit_test(test_nccl_machines),
        cmocka_unit_test(test_nccl_times),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rounds_are_those_drawn),
        cmocka_unit_test(test_all_exposed),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_only_what_ends_the_wait),
        cmocka_unit_test(test_chain_and_moves),
        cmocka_unit_test(test_unit_waits_for_its_last_part),
        cmocka_unit_test(test_gather_ahead_of_a_reduction),
        cmocka_unit_test(test_group_of_one),
        cmocka_unit_test(test_dtype_and_nothing),
        cmocka_unit_test(test_classes_meet),
        cmocka_unit_test(test_busiest_computes_most),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_files_are_built_in),
        cmocka_unit_test(test_unknown_hardware),
        cmocka_unit_test(test_own_profile),
        cmocka_unit_test(test_path_of_a_plan),
    };
    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
