/* Real runs behind their seam, with threads as ranks (support/threads.h): each rank holds its own
 * parts only, and what rank 0 is told gives the trace of the virtual run, byte for byte: of random
 * plans, of their mutations, of training, of labels that lie. What a wire carries wrong is found
 * where it is. Processes are started by test_mpi. */
#include "drive/ranks.h"
#include "exec/exec.h"
#include "exec/wire_own.h"
#include "schedule/schedule.h"
#include "support/child.h"
#include "support/random_run.h"
#include "support/support.h"
#include "support/threads.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool says(const Diags *d, const char *code, const char *words) {
    for (int i = 0; i < d->n; i++)
        if (!strcmp(d->item[i].code, code) && strstr(d->item[i].message, words)) return true;
    return false;
}
/* The trace's text but for the name of what computed it, and what it took. */
static const char *text_of(Arena *a, Trace *t, CheckHow check) {
    size_t n;
    if (!t) return "";
    /* held where it lies, an attention is within a bound from the rank's own largest numbers */
    for (int i = 0; i < t->n_checks && check == CHECK_QUICK; i++)
        if (t->checks[i].verdict[0] == 'P') t->checks[i].bound = t->checks[i].used = 0;
    if (check == CHECK_QUICK) t->worst_used = 0, t->worst_value = NULL;
    t->backend = "virtual";
    t->n_measured = 0;
    return trace_text(t, a, true, &n);
}
static int64_t ranks_of(Arena *a, const char *text) {
    PlanRun r = plan_run(a, "random.yaml", text, false);
    return r.t ? r.t->ranks : 0;
}
static void print_difference(const char *a, const char *b) {
    while (*a && *a == *b) {
        const char *x = strchr(a, '\n'), *y = strchr(b, '\n');
        if (!x || !y || x - a != y - b || memcmp(a, b, (size_t)(x - a)) != 0) break;
        a = x + 1;
        b = y + 1;
    }
    print_error("virtual: %.*s\nreal:    %.*s\n", (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"),
                b);
}
/* The plan on threads gives what it gives virtually; returns the virtual run. */
static PlanRun same_with(Arena *a, const char *text, int64_t ranks, CheckHow check) {
    PipelineOptions o = {.execute = true, .threads = 1, .check = check};
    PlanRun v = plan_run_with(a, "random.yaml", text, &o);
    Threads x = {.ranks = ranks, .flip_rank = -1, .text = text, .o = o};
    ThreadsRun r = threads_run(a, &x);
    const char *want = text_of(a, v.t, check), *have = text_of(a, r.t, check);
    if (strcmp(want, have) != 0 || v.rep.fault_acted != r.rep.fault_acted) {
        printf("%s\n", text);
        print_difference(want, have);
    }
    assert_false(strcmp(want, have));
    assert_int_equal(v.rep.exit, r.rep.exit);
    assert_int_equal(v.rep.fault_acted, r.rep.fault_acted);
    return v;
}
/* With both checks. */
static PlanRun same(Arena *a, const char *text, int64_t ranks) {
    same_with(a, text, ranks, CHECK_QUICK);
    return same_with(a, text, ranks, CHECK_FULL);
}
static void test_random_plans(void **state) {
    (void)state;
    int plans = trials_of(60, "random plans"), mutated = 0, ran = 0, passes[3] = {0}, piped = 0;
    for (uint64_t seed = 70000; ran < plans; seed++) {
        Arena *a = arena_new();
        RandomPlan g;
        const char *text = random_plan(a, seed, &g);
        int64_t ranks = ranks_of(a, text);
        if (ranks >= 2 && ranks <= 8) {
            PlanRun v = same(a, text, ranks);
            const char *f = v.t ? random_fault(a, &g.r, v.t) : NULL;
            if (f) same(a, arena_printf(a, "%s%s", g.s.s, f), ranks);
            mutated += f != NULL;
            ran++;
            piped += g.schedule != NULL;
            passes[g.pass]++;
        }
        arena_free(a);
    }
    print_message("%d plans (%d forward, %d backward, %d training; %d pipelines), %d mutations\n",
                  ran, passes[0], passes[1], passes[2], piped, mutated);
    assert_true(ran < 60 || (mutated > ran / 2 && passes[0] && passes[1] && passes[2] && piped));
}

/* In a quick check blocks stay where they are: what rank 0 is told are sizes, digests and sums. */
static void test_only_vectors_travel(void **state) {
    (void)state;
    static const struct {
        const char *what, *text;
        int64_t ranks, least; /* so many times less than all blocks */
    } rows[] = {
        {"tensor parallel",
         "model: {preset: llama3-8b, layers: 1, shrink: 8}\ndata: {batch: 1, sequence: 192}\n"
         "pass: backward\nnames: torchtitan\nrecipe: torchtitan-llama3\nmesh: {tp: 4}\n",
         4, 2},
        {"FSDP",
         "model: {preset: llama3-8b, layers: 1, shrink: 8}\ndata: {batch: 4, sequence: 48}\n"
         "pass: backward\nmesh: {dp: 4}\ndata_parallel: {mode: fsdp, unit: block}\n",
         4, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t told[2];
        for (int k = 0; k < 2; k++) {
            Arena *a = arena_new();
            Threads x = {
                .ranks = rows[i].ranks,
                .flip_rank = -1,
                .text = rows[i].text,
                .o = {.execute = true, .threads = 1, .check = k ? CHECK_QUICK : CHECK_FULL}};
            ThreadsRun r = threads_run(a, &x);
            threads_must_be(&r, "equivalent");
            told[k] = r.told[rows[i].ranks - 1];
            arena_free(a);
        }
        print_message("%s: the last rank tells %.2f MiB of its blocks, in a quick check %.2f\n",
                      rows[i].what, (double)told[0] / 1048576, (double)told[1] / 1048576);
        assert_true(told[1] * rows[i].least < told[0]);
    }
}

static const char toy[] =
    "model: {preset: llama3-8b, layers: 2, shrink: 64, parts: [embedding, blocks, norm, head, "
    "loss]}\n"
    "names: torchtitan\nrecipe: torchtitan-llama3\n";
static void test_training(void **state) {
    (void)state;
    static const char *const rest[] = {
        "data: {batch: 4, sequence: 16, microbatches: 2}\nmesh: {dp: 2, cp: 2, tp: 2}\n"
        "data_parallel: {mode: fsdp, axis: dp, unit: block}\n"
        "context_parallel: {axis: cp, mode: all_gather, order: zigzag}\n"
        "pass: train\noptimizer: {name: adamw, steps: 3}\n",
        "data: {batch: 9, sequence: 11, microbatches: 3, dtype: f64}\nmesh: {dp: 3, tp: 2}\n"
        "pass: backward\n",
    };
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(a, "%s%s", toy, rest[i]);
        int64_t ranks = ranks_of(a, text);
        if (!ranks) run_print(&(PlanRun){.d = plan_run(a, "toy.yaml", text, false).d});
        assert_int_equal(ranks, i ? 6 : 8);
        PlanRun v = same(a, text, ranks);
        run_must_be(&v, "equivalent");
        arena_free(a);
    }
}
/* Stages that share nothing: every schedule, also where the last micro-batch is not the last to be
 * added up, and every way to cut inside a stage. */
static void piped(const char *model, const char *rest, const char *schedule, int64_t ranks) {
    int parts = strcmp(schedule, "dualpipe") != 0 ? 4 : 8;
    Arena *a = arena_new();
    const char *text = arena_printf(a, "%s%s\npipeline: {schedule: %s, microbatches: %d}\n", model,
                                    rest, schedule, parts);
    assert_int_equal(ranks_of(a, text), ranks);
    PlanRun v = same(a, text, ranks);
    run_must_be(&v, "equivalent");
    arena_free(a);
}
static void test_schedules(void **state) {
    (void)state;
    int n, ran = 0;
    const ScheduleKind *k = schedule_kinds(&n);
    for (int i = 0; i < n; i++) {
        int64_t ranks = k[i].most_chunks == 1 ? 4 : 2;
        piped("model: {kind: mlp, sizes: [6, 10, 7, 9, 5, 8, 6, 7, 4], bias: true, activation: "
              "silu}\nloss: dot\ndata: {rows: 24, dtype: f32}\npass: backward\n",
              ranks == 4 ? "mesh: {pp: 4}" : "mesh: {pp: 2}", k[i].name, ranks);
        ran++;
    }
    assert_int_equal(ran, n);
}
/* An order from a file in which the last micro-batch is not the last to come home: the sum of its
 * gradient is told when it is made, in the instance where it is. An order that waits for ever is
 * told before anything runs. */
static void test_order_of_file(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *path = temp_path(a, "order.csv"),
               *text = arena_printf(a,
                                    "model: {kind: mlp, sizes: [6, 10, 7, 9], bias: true, "
                                    "activation: silu}\nloss: dot\nmesh: {pp: 2}\n"
                                    "data: {rows: 6}\npass: backward\npipeline: {file: %s, "
                                    "stage_to_rank: [0, 1], microbatches: 2}\n",
                                    path);
    child_write(path, "0F0,0F1,0B1,0B0\n1F1,1B1,,1F0,1I0,1W0\n");
    const PlanRun again = same(a, text, 2);
    run_must_be(&again, "equivalent");
    child_write(path, "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
    Threads x = {.ranks = 2, .flip_rank = -1, .text = text, .o = {.execute = true, .threads = 1}};
    ThreadsRun r = threads_run(a, &x);
    assert_null(r.t);
    assert_true(says(r.d, "E0311", "rank 1"));
    arena_free(a);
}
/* A send whose group is another one. */
static void test_sent_elsewhere(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text = "model: {kind: mlp, sizes: [5, 8, 7, 8], bias: true, activation: relu}\n"
                       "data: {rows: 2, dtype: f64}\nmesh: {pp: 2, b: 2}\n"
                       "pipeline: {schedule: gpipe, microbatches: 2}\nloss: dot\npass: backward\n"
                       "faults: [{at: act2, axis: b}]\n";
    PlanRun v = same(a, text, 4);
    assert_non_null(v.t);
    assert_true(run_has(&v, "W0401"));
    arena_free(a);
}
#define TITAN "names: torchtitan\nrecipe: torchtitan-llama3\n"
static void test_stages(void **state) {
    (void)state;
    static const struct {
        int64_t ranks;
        const char *schedule, *rest;
    } row[] = {
        {4, "1f1b", "mesh: {pp: 2, dp: 2}\npass: backward\ndata_parallel: fsdp"},
        {4, "zb-h1", TITAN "mesh: {pp: 2, tp: 2}\npass: backward\nrecompute: block"},
        {8, "zb-v",
         TITAN "mesh: {tp: 2, pp: 2, dp: 2}\npass: train\noptimizer: {name: adamw, steps: 2}"},
        {6, "gpipe", "mesh: {pp: 3, cp: 2}\npass: backward"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        piped("model: {preset: llama3-8b, layers: 5, shrink: 64, parts: [embedding, blocks, norm, "
              "head, loss]}\n"
              "data: {batch: 8, sequence: 6}\n",
              row[i].rest, row[i].schedule, row[i].ranks);
    /* a table that two stages share; experts, whose lists all ranks of the mesh know */
    piped("model: {preset: llama3.2-1b, shrink: 64, layers: 4, parts: [embedding, blocks, norm, "
          "head, loss]}\ndata: {batch: 8, sequence: 4}\n",
          "mesh: {pp: 2}\npass: train\noptimizer: {name: sgd, steps: 2}", "1f1b", 2);
    piped("model: {preset: mixtral-8x7b, shrink: 64, layers: 2, parts: [embedding, blocks, norm, "
          "head, loss]}\ndata: {batch: 8, sequence: 4}\n",
          "mesh: {pp: 2, ep: 2}\nmoe: {axis: ep}\npass: backward", "1f1b", 4);
}
/* Whoever keeps all values for a file sees the same run: what every micro-batch reads is read, and
 * checked, once for each of them. */
static void test_saved(void **state) {
    (void)state;
    static const char *const rest[] = {
        "data: {batch: 4, sequence: 8, microbatches: 2}\nmesh: {dp: 2}\npass: backward\n",
        "data: {batch: 4, sequence: 8, microbatches: 2}\nmesh: {dp: 2}\npass: train\n"
        "optimizer: {name: sgd, steps: 2}\n",
        "data: {batch: 4, sequence: 8}\nmesh: {pp: 2}\npass: backward\n"
        "pipeline: {schedule: 1f1b, microbatches: 2}\n"};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
                       a,
                       "model: {preset: llama3-8b, layers: 2, shrink: 64, parts: [embedding, "
                       "blocks, norm, head, loss]}\n%s",
                       rest[i]),
                   *file[2] = {temp_path(a, "virtual"), temp_path(a, "real")};
        PipelineOptions o = {.execute = true, .threads = 1};
        const char *want = text_of(a, plan_run_with(a, "random.yaml", text, &o).t, o.check);
        o.save_values = file[0];
        assert_string_equal(text_of(a, plan_run_with(a, "random.yaml", text, &o).t, o.check), want);
        o.save_values = file[1];
        Threads x = {.ranks = 2, .flip_rank = -1, .text = text, .o = o};
        assert_string_equal(text_of(a, threads_run(a, &x).t, CHECK_FULL), want);
        size_t n, m;
        const char *v = child_read(a, file[0], &n), *r = child_read(a, file[1], &m);
        assert_true(n == m && n > 1000 && !memcmp(v, r, n));
        arena_free(a);
    }
}
/* One of three ranks cannot go on, whichever it is: no rank does, all know whose fault it is, and
 * its reason reaches the others. An engine that answers for all of them. */
typedef struct {
    Engine e; /* first */
    int64_t others, told;
    const char *reason;
} Answers;
static int64_t least_of(Engine *e, int64_t mine) {
    const Answers *x = (Answers *)e;
    return mine < x->others ? mine : x->others;
}
static void tell(Engine *e, const EngineItem *out, int n_out, const EngineItem *in, int n_in) {
    Answers *x = (Answers *)e;
    for (int i = 0; i < n_out; i++) x->told += !strcmp(out[i].p, x->reason);
    for (int i = 0; i < n_in; i++) snprintf(in[i].p, (size_t)in[i].bytes, "%s", x->reason);
}
static void test_one_stops(void **state) {
    (void)state;
    enum { RANKS = 3 };
    static const char reason[] = "it cannot";
    for (int64_t stuck = 0; stuck <= RANKS; stuck++)
        for (int64_t self = 0; self < RANKS; self++) {
            Arena *a = arena_new();
            Answers x = {.e = {.rank = self, .ranks = RANKS, .least = least_of, .tell = tell},
                         .others = self == stuck ? RANKS : stuck,
                         .reason = reason};
            Exec e = {.arena = a, .stuck = self == stuck ? reason : NULL};
            WireOwn *o = wire_own_new(&x.e, &(Program){0}, device_plain(), false);
            bool on = wire_own(o)->agree(wire_own(o), &e, self != stuck);
            assert_int_equal(on, stuck == RANKS);
            assert_int_equal(wire_own_stuck(o), stuck == RANKS ? -1 : stuck);
            if (stuck < RANKS) assert_string_equal(e.stuck, reason);
            assert_int_equal(x.told, self == stuck ? RANKS - 1 : 0);
            wire_own_free(o);
            arena_free(a);
        }
}
/* A label that lies cannot be computed any further on some rank: all of them stop there. */
static void test_false_labels(void **state) {
    (void)state;
    static const char *const plans[] = {
        "model: {kind: mlp, sizes: [6, 10, 3], bias: false, activation: relu}\n"
        "data: {rows: 5, dtype: f32, seed: 1}\nmesh: {tp: 2}\ntrust: declared\n"
        "plan:\n  net1: {style: colwise, output: shard(0)}\n  net2: rowwise\n",
        "model: {kind: mlp, sizes: [6, 7, 3], bias: false, activation: relu}\n"
        "data: {rows: 5, dtype: f32, seed: 1}\nmesh: {tp: 3}\ntrust: declared\n"
        "plan:\n  net1: {style: colwise, output: shard(0)}\n  net2: {style: rowwise}\n",
    };
    int stuck = 0;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        Arena *a = arena_new();
        PlanRun v = same(a, plans[i], i ? 3 : 2);
        for (int k = 0; k < v.t->n_checks; k++)
            stuck += v.t->checks[k].cause && strstr(v.t->checks[k].cause, "any further");
        arena_free(a);
    }
    assert_true(stuck > 0);
}

/* ---- what an engine may do otherwise ---- */
/* Its own order of summation: the numbers are others, the verdict is not, and beside checks every
 * record is the same. */
static void test_engine_sums(void **state) {
    (void)state;
    int others = 0;
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a, "%sdata: {batch: 4, sequence: 16}\nmesh: {dp: 2, tp: 4}\n%s", toy,
            i ? "data_parallel: {mode: fsdp, axis: dp, unit: block}\npass: backward\n" : "");
        PipelineOptions o = {.execute = true, .threads = 1};
        Threads x = {.ranks = 8, .flip_rank = -1, .text = text, .o = o};
        ThreadsRun declared = threads_run(a, &x);
        x.engine_sums = true;
        ThreadsRun engine = threads_run(a, &x);
        threads_must_be(&engine, "equivalent");
        assert_int_equal(engine.t->n_checks, declared.t->n_checks);
        for (int k = 0; k < engine.t->n_checks; k++)
            others += engine.t->checks[k].max_abs != declared.t->checks[k].max_abs;
        engine.t->n_checks = declared.t->n_checks = 0;
        engine.t->worst_used = declared.t->worst_used = 0;
        engine.t->worst_value = declared.t->worst_value = NULL;
        engine.t->end_to_end = declared.t->end_to_end = NULL;
        assert_string_equal(text_of(a, engine.t, CHECK_FULL), text_of(a, declared.t, CHECK_FULL));
        arena_free(a);
    }
    assert_true(others > 10);
}
/* One bit of one message: the step and the rank that it came to are named. Of the messages that
 * carry blocks each is found: what a rank has loaded or made, and what it sends to others. (Shorter
 * ones say sizes before them, with room for dims that a block does not have, or are a weight's own
 * bytes once more where a move changes nothing.) */
static void find_wrong_bit(Arena *a, const Threads *x) {
    ThreadsRun r = threads_run(a, x);
    const TraceCheck *c = NULL;
    for (int k = 0; r.t && !c && k < r.t->n_checks; k++)
        if (!strcmp(r.t->checks[k].verdict, "FAIL")) c = &r.t->checks[k];
    if (!c) print_error("nobody noticed the bit in message %lld\n", (long long)x->flip_message);
    assert_non_null(c);
    assert_true(c->level == LEVEL_BITS || c->level == LEVEL_BOUND);
    threads_must_be(&r, "different");
}
static void test_wrong_bit(void **state) {
    (void)state;
    enum { BLOCK = 256, EACH = 3 };
    for (int64_t message = 0; message < 20 * EACH; message += EACH) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a, "%sdata: {batch: 2, sequence: 16}\nmesh: {tp: 4}\n", toy);
        Threads x = {.ranks = 4,
                     .flip_rank = 1,
                     .flip_message = message,
                     .flip_over = BLOCK,
                     .text = text,
                     .o = {.execute = true, .threads = 1}};
        find_wrong_bit(a, &x);
        arena_free(a);
    }
}
/* In a quick check nobody sees the block itself: a move that brought something else is found by
 * digests, or by sums with random weights. */
static void test_wrong_bit_elsewhere(void **state) {
    (void)state;
    enum { BLOCK = 1024, MESSAGES = 24 };
    static const char *const rest[] = {
        "data: {batch: 2, sequence: 16}\nmesh: {tp: 4}\npass: backward\n",
        "data: {batch: 4, sequence: 16}\nmesh: {dp: 4}\npass: backward\ndata_parallel: {mode: "
        "fsdp, unit: block}\n"};
    for (int64_t message = 0; message < MESSAGES; message++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a, "%s%s", message % 2 ? "model: {preset: llama3-8b, layers: 1, shrink: 64}\n" : toy,
            rest[message % 2]);
        Threads x = {.ranks = 4,
                     .flip_rank = message % 3,
                     .flip_message = message / 2,
                     .flip_over = BLOCK,
                     .flip_moves = true,
                     .text = text,
                     .o = {.execute = true, .threads = 1, .check = CHECK_QUICK}};
        find_wrong_bit(a, &x);
        arena_free(a);
    }
}

/* ---- who does not fit ---- */
static void test_others(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const char rest[] = "data: {batch: 2, sequence: 16}\nmesh: {tp: 2}\n";
    PipelineOptions o = {.execute = true, .threads = 1};
    Threads x = {.ranks = 3, .flip_rank = -1, .text = arena_printf(a, "%s%s", toy, rest), .o = o};
    ThreadsRun r = threads_run(a, &x);
    assert_true(says(r.d, "E0603", "3 processes for a mesh of 2 ranks"));
    assert_int_equal(r.rep.exit, 5);
    x.ranks = 2;
    x.others = arena_printf(a, "%s%sloss: {label_smoothing: 0.5}\n", toy, rest);
    r = threads_run(a, &x);
    assert_true(says(r.d, "E0606", "rank 1 has another plan"));
    assert_int_equal(r.rep.exit, 5);
    assert_false(r.t->executed);
    assert_null(r.t->verdict); /* nothing is wrong with the plan */
    assert_false(run_is(&(PlanRun){.d = r.d, .t = r.t}, "different"));
    x.others = "model: nonsense\n";
    r = threads_run(a, &x);
    assert_true(says(r.d, "E0606", "rank 1 cannot run this plan"));
    x.others = x.text;
    x.text = "model: nonsense\n"; /* rank 0's own errors are enough */
    r = threads_run(a, &x);
    assert_null(r.t);
    assert_int_equal(r.rep.exit, 3);
    arena_free(a);
}
/* Each process says what it is and what it is about to do: one that is or does something else is
 * named, and nobody goes on. */
typedef struct {
    const char *version, *task;
} Guest;
typedef struct {
    const Guest *odd; /* rank 2 */
    atomic_int agreed;
} Guests;
static void greet(void *arg, Arena *a, Diags *d, Ranks *ranks) {
    static const Guest usual = {"1.2.3", "check of 2 plans"};
    Guests *x = arg;
    const Guest *g = ranks_engine(ranks)->rank == 2 ? x->odd : &usual;
    Ranks *mine =
        ranks_new(a, ranks_engine(ranks), &(RanksOptions){60, false, g->version, false, false});
    x->agreed += ranks_greet(mine, d, g->task);
}
static void test_greeting(void **state) {
    (void)state;
    static const struct {
        Guest odd;
        const char *says; /* NULL: nothing */
    } row[] = {
        {{"1.2.3", "check of 2 plans"}, NULL},
        {{"1.2.4", "check of 2 plans"}, "rank 2 runs shardproof 1.2.4, rank 0 1.2.3"},
        {{"1.2.3-a-very-long-name-of-it", "run"},
         "rank 2 runs shardproof 1.2.3-a-very-lo, rank 0 1.2.3"},
        {{"1.2.3", "check of 1 plan"},
         "rank 2 is to run `check of 1 plan`, rank 0 `check of 2 plans`"},
        {{"1.2.3", "run"}, "rank 2 is to run `run`, rank 0 `check of 2 plans`"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        Guests g = {.odd = &row[i].odd};
        Threads x = {.ranks = 4, .flip_rank = -1, .work = greet, .arg = &g};
        Diags *d = threads_run(a, &x).d;
        assert_int_equal(g.agreed, row[i].says ? 0 : 4);
        assert_int_equal(d->n, row[i].says != NULL);
        if (row[i].says) assert_true(says(d, "E0606", row[i].says));
        arena_free(a);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_vectors_travel),
        cmocka_unit_test(test_one_stops),
        cmocka_unit_test(test_random_plans),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_false_labels),
        cmocka_unit_test(test_engine_sums),
        cmocka_unit_test(test_wrong_bit),
        cmocka_unit_test(test_wrong_bit_elsewhere),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_greeting),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_order_of_file),
        cmocka_unit_test(test_sent_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
