/* Pipelines, executed: stages on ranks of their own, values sent between them, every schedule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "cli/find.h"
#include "cost/cost.h"
#include "schedule/schedule.h"
#include "exec/compare.h"
#include "exec/exec.h"
#include "support/child.h"
#include "support/support.h"
#include <stdlib.h>
#include <string.h>

/* ---- the bits of all gradients ---- */
typedef struct {
    Arena *a;
    int n, cap;
    struct Sum {
        const char *name;
        int64_t rank;
        uint64_t bits;
    } * sum;
    int64_t steps; /* seen */
} Sums;
static uint64_t bits_of(const Exec *e, int val, const Local *l) {
    uint64_t h = 1469598103934665603u;
    int64_t n = tensor_count(&l->t);
    for (int64_t i = 0; i < n; i++) {
        double x = compare_at(l->t.p, exec_dtype(e, val), i);
        uint64_t b;
        memcpy(&b, &x, sizeof b);
        h = (h ^ b) * 1099511628211u;
    }
    return h;
}
/* The sums over micro-batches as they end: the last state of each wins. */
static void collect(void *arg, Exec *e, const Step *s, bool checked) {
    Sums *x = arg;
    x->steps += !checked;
    if (!checked || !lives_adds_up(e->p, s)) return;
    int64_t last = e->n_each - 1;
    const Store *st = e->each[last] ? &e->each[last][s->out] : NULL;
    const char *name = program_value_name(e->p, &e->p->val[s->out], x->a);
    for (int64_t r = 0; st && st->alive && r < e->p->mesh->nranks; r++) {
        if (st->which[r] == EXEC_NOTHING) continue;
        int i = 0;
        while (i < x->n && (strcmp(x->sum[i].name, name) || x->sum[i].rank != r)) i++;
        if (i == x->n) *ARENA_PUSH(x->a, x->sum, x->n, x->cap) = (struct Sum){name, r, 0};
        x->sum[i].bits = bits_of(e, s->out, &st->l[st->which[r]]);
    }
}
static Sums run_sums(Arena *a, const char *text) {
    Sums x = {.a = a};
    PipelineOptions o = {.execute = true, .threads = 1, .watch = collect, .watch_arg = &x};
    PlanRun r = plan_run_with(a, "pipeline.yaml", text, &o);
    if (!r.t || r.rep.exit) run_print(&r);
    assert_non_null(r.t);
    assert_int_equal(r.rep.exit, 0);
    run_must_be(&r, "equivalent");
    assert_int_equal(r.t->n_suspect, 0);
    return x;
}
static const char mlp[] = "model: {kind: mlp, sizes: [6, 10, 7, 9, 5, 8, 6, 7, 4], bias: true, "
                          "activation: silu}\nloss: dot\n";
static const char llama[] =
    "model: {preset: llama3-8b, shrink: 64, layers: 8, vocab_multiple: 1, parts: [embedding, "
    "blocks, norm, head, loss]}\n";
/* Each gradient of the one run has the bits of the same gradient in the other, on whichever rank.
 */
static void same_bits(const Sums *a, const Sums *b, const char *what) {
    assert_true(a->n > 0 && b->n > 0);
    for (int i = 0; i < b->n; i++) {
        int k = 0;
        while (k < a->n && strcmp(a->sum[k].name, b->sum[i].name)) k++;
        if (k == a->n) fail_msg("%s: %s", what, b->sum[i].name);
        if (a->sum[k].bits != b->sum[i].bits)
            fail_msg("%s: %s on rank %lld has other bits", what, b->sum[i].name,
                     (long long)b->sum[i].rank);
    }
}
/* All schedules give the bits of one device that adds the same micro-batches. */
static void check_schedules(const char *model, const char *data, const char *one) {
    int n;
    const ScheduleKind *k = schedule_kinds(&n);
    Arena *a = arena_new();
    Sums alone = run_sums(a, arena_printf(a, "%smesh: {dp: 1}\n%s\npass: backward\n", model, one));
    for (int i = 0; i < n; i++) {
        if (!strcmp(k[i].name, "dualpipe")) continue; /* adds two half sums: test_both_ways */
        int ranks = k[i].most_chunks == 1 ? 4 : 2;
        const char *text = arena_printf(a,
                                        "%smesh: {pp: %d}\n%s\npass: backward\npipeline: "
                                        "{schedule: %s, microbatches: 4}\n",
                                        model, ranks, data, k[i].name);
        Sums piped = run_sums(a, text);
        assert_int_equal(piped.n, alone.n);
        same_bits(&alone, &piped, k[i].name);
    }
    arena_free(a);
}
static void test_same_bits(void **state) {
    (void)state;
    check_schedules(mlp, "data: {rows: 12, dtype: f32}",
                    "data: {rows: 12, dtype: f32, microbatches: 4}");
    check_schedules(llama, "data: {batch: 8, sequence: 4, dtype: f64}",
                    "data: {batch: 8, sequence: 4, dtype: f64, microbatches: 4}");
}

/* ---- what is computed again ---- */
/* How long the computations of a kind take on a stage. */
static double time_of(const Trace *t, int stage, const char *kind) {
    for (int i = 0; i < t->n_actions; i++)
        if (t->actions[i].stage == stage && !strcmp(t->actions[i].kind, kind))
            return t->actions[i].end - t->actions[i].start;
    return 0;
}
/* The most bytes that a rank holds during its actions, or those of one kind. */
static int64_t most_held(const Trace *t, int rank, const char *kind) {
    int64_t most = 0;
    for (int i = 0; i < t->n_actions; i++) {
        const TraceAction *a = &t->actions[i];
        bool counts = a->rank == rank && (!kind || !strcmp(a->kind, kind));
        if (counts && a->held > most) most = a->held;
    }
    return most;
}
/* As the time model has it. */
static PlanRun run_timed(Arena *a, const char *text) {
    PlanRun r = plan_good(a, text, false);
    const Hardware *h =
        hardware_of_plan(a, r.d, "plans/hardware/h100-sxm.yaml", NULL, NULL, diag_nowhere);
    assert_non_null(h);
    cost_simulate(r.t, h);
    cost_stages(r.t);
    return r;
}
static int computes_again(const Trace *t, int layer) {
    int n = 0;
    for (int i = 0; i < t->n_computes; i++)
        n += t->computes[i].recompute && t->computes[i].layer == layer;
    return n;
}
/* What a stage computes again changes no bit, in any order; it takes time of that stage's backward
 * alone and gives back memory of that rank alone. */
static void test_recompute(void **state) {
    (void)state;
    static const char *const words[] = {"none", "[none, block, none, none]",
                                        "[none, stage, none, none]", "block"};
    static const char *const orders[] = {"gpipe", "1f1b", "zb-h1"};
    /* of the second collectives are done again too */
    static const char *const mesh[] = {
        "{pp: 4}", "{pp: 4, tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3", "{pp: 4}"};
    Arena *a = arena_new();
    for (int o = 0; o < 3; o++) {
        Sums bits[4];
        PlanRun r[4];
        for (int w = 0; w < 4; w++) {
            const char *text =
                arena_printf(a,
                             "%smesh: %s\ndata: {batch: 8, sequence: 16, dtype: f32}\npass: "
                             "backward\npipeline: {schedule: %s, microbatches: 8, recompute: %s}\n",
                             llama, mesh[o], orders[o], words[w]);
            bits[w] = run_sums(a, text);
            r[w] = run_timed(a, text);
            if (w && o != 1) same_bits(&bits[0], &bits[w], words[w]);
        }
        for (int w = 1; w < 3; w++) {
            const char *back = o == 2 ? "I" : "B";
            assert_true(time_of(r[w].t, 1, back) > 1.2 * time_of(r[0].t, 1, back));
            assert_true(most_held(r[w].t, 1, NULL) < most_held(r[0].t, 1, NULL));
            for (int g = 0; g < 4; g++) {
                assert_float_equal(time_of(r[w].t, g, "F"), time_of(r[0].t, g, "F"), 1e-9);
                if (g == 1) continue;
                assert_float_equal(time_of(r[w].t, g, back), time_of(r[0].t, g, back), 1e-9);
                assert_int_equal(most_held(r[w].t, g, NULL), most_held(r[0].t, g, NULL));
            }
            assert_int_equal(computes_again(r[w].t, 4), 0);
            assert_true(computes_again(r[w].t, 2) > 0 && computes_again(r[w].t, 3) > 0);
        }
        /* of each micro-batch in flight a stage keeps what entered it, blocks what left each */
        if (o == 0) assert_true(most_held(r[2].t, 1, "F") < most_held(r[1].t, 1, "F"));
        assert_true(computes_again(r[3].t, 0) > 0 && computes_again(r[3].t, 7) > 0);
    }
    arena_free(a);
}
/* Stages that share a rank, both ways, stages cut further: all that each makes is made again. */
/* A flat buffer is a rank's: one collective for the ranks of each place, whatever stages they hold;
 * in dualpipe all ranks hold the same. */
static void test_flat_buffers(void **state) {
    (void)state;
    int n;
    const ScheduleKind *k = schedule_kinds(&n);
    for (int i = 0; i < n; i++) {
        Arena *a = arena_new();
        int sums = k[i].both_ways ? 1 : 2;
        plan_good(a,
                  arena_printf(a,
                               "model: {preset: llama3.2-1b, shrink: 64, layers: 4, parts: "
                               "[embedding, blocks, norm, head, loss]}\nmesh: {pp: 2, dp: 2}\n"
                               "data: {batch: 8, sequence: 8}\npass: train\n"
                               "optimizer: {name: sgd, lr: 0.1, steps: 2}\n"
                               "data_parallel: {mode: zero1, form: %s}\n"
                               "pipeline: {schedule: %s, microbatches: 4}\n"
                               "expect: {collectives: {gradients: {reduce_scatter(dp): %d}, "
                               "optimizer: {all_gather(dp): %d}}}\n",
                               i % 2 ? "megatron" : "deepspeed", k[i].name, sums, sums),
                  true);
        arena_free(a);
    }
}
/* FSDP's units are a stage's: what is gathered forward is what is gathered again, whatever other
 * stages the rank has, and whichever of them comes first backward. */
static void test_units_of_stages(void **state) {
    (void)state;
    int n;
    const ScheduleKind *k = schedule_kinds(&n);
    for (int i = 0; i < 2 * n; i++) {
        Arena *a = arena_new();
        const ScheduleKind *of = &k[i / 2];
        bool one = i % 2; /* a unit for each stage; else for each layer, embedding, and head */
        int ways = of->both_ways ? 2 : 1, stages = of->most_chunks == 1 ? 2 : 4;
        PlanRun r = plan_good(
            a,
            arena_printf(a,
                         "%smesh: {pp: 2, dp: 2}\ndata: {batch: 16, sequence: 8}\npass: backward\n"
                         "data_parallel: {mode: fsdp, unit: %s, reshard: true}\n"
                         "pipeline: {schedule: %s, microbatches: 4}\n",
                         llama, one ? "model" : "block", of->name),
            false);
        int gathers[2] = {0}, loss = 0; /* what is behind the loss is gathered again */
        int64_t bytes[2] = {0};
        for (int j = 0; j < r.t->n_collectives; j++)
            if (r.t->collectives[j].pass == PHASE_LOSS) loss = r.t->collectives[j].step;
        for (int j = 0; j < r.t->n_collectives; j++) {
            const TraceCollective *c = &r.t->collectives[j];
            bool again = c->step > loss;
            if (c->pass != PHASE_PARAMETERS) continue;
            gathers[again]++;
            bytes[again] += c->bytes_sent;
        }
        for (int again = 0; again < 2; again++) {
            int units = ways * (one ? stages : 8 + 2);
            if (gathers[again] != units || bytes[again] != bytes[0])
                fail_msg("%s: %d gathers, not %d, %lld bytes of %lld", of->name, gathers[again],
                         units, (long long)bytes[again], (long long)bytes[0]);
        }
        arena_free(a);
    }
}
static void test_recompute_inside(void **state) {
    (void)state;
    static const char *const rows[] = {
        "mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, unit: block}",
        "mesh: {tp: 2, pp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3",
        "mesh: {pp: 2, cp: 2}\ncontext_parallel: {mode: ring, order: zigzag, keep_kv: false}",
        "mesh: {pp: 2}"};
    int n;
    const ScheduleKind *k = schedule_kinds(&n);
    for (int i = 0; i < n; i++) {
        Arena *a = arena_new();
        plan_good(a,
                  arena_printf(a,
                               "model: {preset: llama3.2-1b, shrink: 64, layers: 5, parts: "
                               "[embedding, blocks, norm, head, loss]}\n%s\ndata: {batch: 8, "
                               "sequence: 8}\npass: train\noptimizer: {name: adamw, steps: 2}\n"
                               "pipeline: {schedule: %s, microbatches: 4, recompute: %s}\n",
                               rows[i % 4], k[i].name, i % 3 == 1 ? "block" : "stage"),
                  true);
        arena_free(a);
    }
}

/* Forwards alone, in the order in which each schedule has them; nothing is kept, nothing waits for
 * a backward. A planted mistake is found in whichever micro-batch it is. */
static void test_forward(void **state) {
    (void)state;
    int n;
    const ScheduleKind *k = schedule_kinds(&n);
    for (int i = 0; i < n; i++) {
        Arena *a = arena_new();
        int ranks = k[i].most_chunks == 1 && strcmp(k[i].name, "dualpipe") != 0 ? 4 : 2;
        const char *text =
            arena_printf(a,
                         "%smesh: {pp: %d}\ndata: {rows: 12}\npass: forward\npipeline: "
                         "{schedule: %s, microbatches: 4}\n",
                         mlp, ranks, k[i].name);
        PlanRun r = plan_run_with(a, "forward.yaml", text,
                                  &(PipelineOptions){.execute = true, .threads = 1, .exact = 1});
        run_must_be(&r, "equivalent");
        assert_true(r.t->n_actions > 0);
        for (int j = 0; j < r.t->n_actions; j++) assert_string_equal(r.t->actions[j].kind, "F");
        assert_int_equal(r.t->n_actions, 4 * r.t->stages);
        int64_t held = r.t->actions[0].held;
        for (int j = 0; j < r.t->n_actions; j++) /* no more of the last than of the first */
            if (r.t->actions[j].stage == 0) assert_true(r.t->actions[j].held <= held + 4 * 8 * 4);
        r = plan_run(a, "wrong.yaml", arena_printf(a, "%sfaults: [{at: net2, scale: 2}]\n", text),
                     true);
        run_must_be(&r, "different");
        arena_free(a);
    }
    Arena *a = arena_new(); /* token ids of the whole batch: integer data takes its own part too */
    PlanRun r = plan_run_with(
        a, "tokens.yaml",
        arena_printf(a,
                     "%smesh: {pp: 2}\ndata: {batch: 8, sequence: 16}\npass: forward\n"
                     "pipeline: {schedule: gpipe, microbatches: 4}\n",
                     llama),
        &(PipelineOptions){.execute = true, .threads = 1, .exact = 2});
    run_must_be(&r, "equivalent");
    arena_free(a);
}

/* ---- with other ways to cut ---- */
static void test_inside(void **state) {
    (void)state;
    static const char *const rows[] = {
        "mesh: {pp: 2, dp: 2}\npass: backward\ndata_parallel: fsdp",
        "mesh: {dp: 2, pp: 2}\npass: backward\ndata_parallel: {mode: fsdp, unit: block, reshard: "
        "false}",
        "mesh: {pp: 2, tp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3\npass: backward",
        "mesh: {tp: 2, pp: 2, dp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3\npass: "
        "backward\nrecompute: block",
        "mesh: {pp: 3, cp: 2}\npass: backward",
        "mesh: {pp: 2, dp: 2}\npass: train\noptimizer: {name: adamw, steps: 2}",
        "mesh: {pp: 4}\npass: train\noptimizer: {name: sgd, momentum: 0.9, steps: 3}",
        "mesh: {pp: 2, dp: 2}\npass: train\noptimizer: {name: adamw, steps: 2}\ndata_parallel: "
        "{mode: "
        "fsdp, unit: block, grad_sync: microbatch}",
        "mesh: {dp: 2, pp: 2}\npass: train\noptimizer: {name: sgd, steps: 2}\ndata_parallel: "
        "{mode: "
        "ddp, grad_sync: microbatch}",
        "mesh: {r: 2, pp: 2, dp: 2}\npass: backward\ndata_parallel: {mode: fsdp, axis: r*dp, "
        "unit: block, reshard_over: dp}",
        "mesh: {pp: 2, dp: 2}\npass: train\noptimizer: {name: sgd, clip: 0.1, steps: 2}\n"
        "data_parallel: {mode: zero2, form: megatron}",
        "mesh: {dp: 2, pp: 2}\npass: train\noptimizer: {name: adamw, clip: 0.1, steps: 2}\n"
        "data_parallel: {mode: zero1}",
        "mesh: {pp: 2, dp_replicate: 2, dp_shard: 2}\npass: train\noptimizer: {name: sgd, steps: "
        "2}\ndata_parallel: "
        "{mode: hsdp, replicate: dp_replicate, shard: dp_shard, unit: block, grad_sync: scatter, "
        "reshard: step}",
    };
    static const char *const schedules[] = {"1f1b", "zb-h1", "gpipe"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        plan_good(
            a,
            arena_printf(a,
                         "model: {preset: llama3-8b, shrink: 64, layers: 5, parts: [embedding, "
                         "blocks, norm, head, loss]}\n%s\ndata: {batch: 8, sequence: 4}\n"
                         "pipeline: {schedule: %s, microbatches: 4}\n",
                         rows[i], schedules[i % 3]),
            true);
        arena_free(a);
    }
}
/* The norm of all gradients is one number for all stages: each rank adds up the squares of what it
 * has, whole ones counted once, and one all_reduce over all that divide any of it adds these. */
static void test_clip(void **state) {
    (void)state;
    static const struct {
        const char *keys, *over; /* the axes of that all_reduce; NULL: there is nothing to add */
    } rows[] = {
        {"mesh: {pp: 4, dp: 2}\npipeline: {schedule: 1f1b, microbatches: 4}", "pp"},
        {"mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, unit: block}\n"
         "pipeline: {schedule: zb-v, microbatches: 4}",
         "pp*dp"},
        {"mesh: {dp: 2, pp: 2, tp: 2}\ndata_parallel: {mode: zero2, form: deepspeed}\nnames: "
         "torchtitan\nrecipe: torchtitan-llama3\npipeline: {schedule: interleaved, "
         "microbatches: 4}",
         "dp*pp*tp"},
        {"mesh: {dp: 2, tp: 2}\ndata_parallel: {mode: zero2, form: megatron}\nnames: "
         "torchtitan\nrecipe: torchtitan-llama3",
         "dp*tp"},
        {"mesh: {dp: 2}\ndata_parallel: {mode: zero1}", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a,
            arena_printf(a,
                         "model: {preset: llama3-8b, shrink: 64, layers: 4, parts: [embedding, "
                         "blocks, norm, head, loss]}\n%s\ndata: {batch: 8, sequence: 4}\n"
                         "pass: train\noptimizer: {name: sgd, clip: 0.01, steps: 2}\n",
                         rows[i].keys),
            true);
        int sums = 0;
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *c = &r.t->collectives[k];
            if (c->pass != PHASE_OPTIMIZER || strcmp(c->op, "all_reduce")) continue;
            sums++;
            assert_non_null(rows[i].over);
            assert_string_equal(c->axis, rows[i].over);
            assert_string_equal(c->value, "grad_norm_squared");
            assert_int_equal(collective_per_step(c), 1);
        }
        assert_int_equal(sums, rows[i].over != NULL);
        arena_free(a);
    }
}
/* A table that the first and the last stage share: sent once a step, its gradient once back. */
static void test_tied(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        plan_good(a,
                  "model: {preset: llama3.2-1b, shrink: 64, layers: 4, parts: [embedding, "
                  "blocks, norm, head, loss]}\nmesh: {pp: 2}\ndata: {batch: 8, sequence: 4}\n"
                  "pass: backward\npipeline: {schedule: 1f1b, microbatches: 4}\n",
                  true);
    int there = 0, back = 0;
    for (int i = 0; i < r.t->n_collectives; i++) {
        const TraceCollective *c = &r.t->collectives[i];
        if (strcmp(c->op, "send") || !strstr(c->value, "tok_embeddings")) continue;
        there += c->pass == PHASE_PARAMETERS;
        back += c->pass == PHASE_GRADIENTS;
    }
    assert_int_equal(there, 1);
    assert_int_equal(back, 1);
    /* the next training step sends the table as it is then */
    plan_good(
        a,
        "model: {preset: llama3.2-1b, shrink: 64, layers: 2, parts: [embedding, blocks, norm, "
        "head, loss]}\nmesh: {pp: 2}\ndata: {batch: 4, sequence: 4, dtype: f64}\npass: train\n"
        "optimizer: {name: adamw, lr: 0.05, steps: 3}\n"
        "pipeline: {schedule: 1f1b, microbatches: 2}\n",
        true);
    arena_free(a);
}
/* Which ranks take part, and what they send: [b/m, S/tp, D] to the next stage, the same back. */
static void test_sends(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        plan_good(a,
                  "model: {preset: llama3-8b, shrink: 64, layers: 3, parts: [embedding, "
                  "blocks, norm, head, loss]}\nmesh: {pp: 3, tp: 2}\nnames: torchtitan\n"
                  "recipe: torchtitan-llama3\ndata: {batch: 8, sequence: 6}\npass: backward\n"
                  "pipeline: {schedule: 1f1b, microbatches: 4}\n",
                  false);
    int64_t D = 4096 / 64, bytes = 2 * 3 * D * 4;
    assert_int_equal(count_collectives(r.t, "forward", "send", "pp"), 2);
    assert_int_equal(count_collectives(r.t, "backward", "send", "pp"), 2);
    const TraceCollective *c = find_collective(r.t, "send", "layers.1.output");
    assert_int_equal(groups_count(&c->groups), 2);
    assert_int_equal(groups_size(&c->groups), 2);
    assert_int_equal(groups_member(&c->groups, 0, 0), 2);
    assert_int_equal(groups_member(&c->groups, 1, 1), 5);
    for (int64_t rank = 0; rank < 6; rank++)
        assert_int_equal(collective_on(c, rank).bytes_sent, rank / 2 == 1 ? bytes : 0);
    for (int i = 0; i < r.t->n_computes; i++) { /* a layer is computed by its stage alone */
        const TraceCompute *k = &r.t->computes[i];
        if (!strcmp(k->label, "sum of uses")) continue; /* of what another stage made */
        for (int64_t rank = 0; rank < 6 && k->layer >= 0; rank++)
            assert_int_equal(rankset_has(&k->ranks, rank), rank / 2 == k->layer);
    }
    arena_free(a);
}

/* ---- how often ---- */
typedef struct {
    int n, *seen; /* per step */
} Times;
static void count_times(void *arg, Exec *e, const Step *s, bool checked) {
    Times *x = arg;
    if (!x->seen) x->seen = calloc((size_t)e->p->ns, sizeof *x->seen), x->n = e->p->ns;
    x->seen[s->id] += !checked;
}
/* What records say of a whole step is how often the walk does it: sends and gathers for each
 * micro-batch, sums of gradients once or in each, and once what all micro-batches share. */
static void test_times(void **state) {
    (void)state;
    static const char *const rows[] = {
        "mesh: {pp: 2, dp: 2}\ndata_parallel: fsdp\npipeline: {schedule: 1f1b, microbatches: 4}",
        "mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, unit: block, reshard: false}\n"
        "pipeline: {schedule: zb-v, microbatches: 4}",
        "mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, unit: block, grad_sync: microbatch}\n"
        "pipeline: {schedule: zb-h1, microbatches: 4}",
        "mesh: {dp_replicate: 2, dp_shard: 2}\ndata_parallel: {mode: hsdp, replicate: "
        "dp_replicate, shard: dp_shard, unit: block, "
        "reshard: step, grad_sync: scatter}",
        "mesh: {tp: 2, dp: 2}\ndata_parallel: {mode: fsdp, unit: block}\nnames: torchtitan\n"
        "recipe: torchtitan-llama3",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        Times x = {0};
        PipelineOptions o = {.execute = true, .threads = 1, .watch = count_times, .watch_arg = &x};
        PlanRun r = plan_run_with(
            a, "times.yaml",
            arena_printf(a,
                         "model: {preset: llama3.2-1b, shrink: 64, layers: 4, parts: [embedding, "
                         "blocks, norm, head, loss]}\n%s\ndata: {batch: 8, sequence: 4, "
                         "microbatches: 4}\npass: backward\n",
                         rows[i]),
            &o);
        assert_non_null(r.t);
        run_must_be(&r, "equivalent");
        int each = 0, once = 0;
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *c = &r.t->collectives[k];
            assert_in_range(c->step, 0, x.n - 1);
            assert_int_equal(collective_per_step(c), x.seen[c->step]);
            each += x.seen[c->step] == 4;
            once += x.seen[c->step] == 1;
        }
        assert_true(each > 0 && (once > 0 || strstr(rows[i], "grad_sync: microbatch")));
        free(x.seen);
        arena_free(a);
    }
}

/* ---- full size, shapes alone ---- */
static PlanRun shapes_of(Arena *a, const char *path) {
    size_t n;
    char *text = child_read(a, path, &n);
    PlanRun r = plan_run(a, path, text, false);
    if (!r.t) run_print(&r);
    assert_non_null(r.t);
    return r;
}
static int64_t rest_on(const Trace *t, int64_t rank) {
    int64_t bytes = 0;
    for (int i = 0; i < t->n_params; i++)
        for (int k = 0; k < t->params[i].rest.n_local; k++)
            if (rankset_has(&t->params[i].rest.local[k].ranks, rank))
                bytes += t->params[i].rest.local[k].bytes;
    return bytes;
}
/* Models as they were trained: what a rank has at rest and what stages send, by hand. */
static void test_full_size(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = shapes_of(a, "plans/shape-only/llama3.1-405b-pp16.yaml");
    int64_t D = 16384, F = 53248, K = 1024, matrices = 2 * D * D + 2 * D * K + 3 * D * F;
    assert_int_equal(r.t->ranks, 8192);
    assert_int_equal(r.t->stages, 16);
    assert_int_equal(count_collectives(r.t, "forward", "send", "pp"), 15);
    assert_int_equal(count_collectives(r.t, "backward", "send", "pp"), 15);
    /* rank 8 = dp 0, pp 1, tp 0: eight layers, matrices cut 8 x 64 times, two norms 64 times */
    assert_int_equal(rest_on(r.t, 8), 2 * 8 * (matrices / 512 + 2 * D / 64));
    assert_int_equal(rest_on(r.t, 14 * 8), 2 * 7 * (matrices / 512 + 2 * D / 64));
    const TraceCollective *c = find_collective(r.t, "send", "layers.7.output");
    assert_int_equal(groups_count(&c->groups), 512);
    assert_int_equal(collective_on(c, 0).bytes_sent, 8192 / 8 * D * 2);
    assert_int_equal(c->per_step, 32);
    r = shapes_of(a, "plans/shape-only/deepseek-v3-pp16-ep64.yaml");
    assert_int_equal(r.t->ranks, 2048);
    assert_int_equal(r.t->stages, 32);
    /* 31 boundaries, one of them inside of the rank where the V turns */
    assert_int_equal(count_collectives(r.t, "forward", "send", "pp"), 30);
    c = find_collective(r.t, "send", "layers.1.output");
    assert_int_equal(groups_count(&c->groups), 128);
    assert_int_equal(collective_on(c, 0).bytes_sent, 4096 * 7168 * 2);
    int n_f = 0;
    for (int i = 0; i < r.t->n_actions; i++) n_f += !strcmp(r.t->actions[i].kind, "F");
    assert_int_equal(n_f, 32 * 32);
    arena_free(a);
}

/* ---- what is refused ---- */
static const struct {
    const char *line, *code, *says;
} refused[] = {
    {"mesh: {pp: 2}\npipeline: {schedule: 1f2b, microbatches: 4}", "E0206", "1f2b"},
    {"mesh: {dp: 2}\npipeline: {schedule: 1f1b, microbatches: 4}", "E0208", "no axis 'pp'"},
    {"mesh: {pp: 2}\npipeline: {microbatches: 4}", "E0208", "needs `schedule`"},
    {"mesh: {pp: 16}\npipeline: {schedule: gpipe, microbatches: 4}", "E0310",
     "16 stages for 5 layers"},
    {"mesh: {pp: 2}\npipeline: {schedule: interleaved, microbatches: 5}", "E0310",
     "5 micro-batches cannot be cut in 2 equal rounds"},
    {"mesh: {pp: 2}\npipeline: {schedule: dualpipe-v, microbatches: 3}", "E0310",
     "3 micro-batches for 4 stages"},
    {"mesh: {pp: 2}\npipeline: {schedule: 1f1b, chunks: 2, microbatches: 4}", "E0310",
     "1f1b has 1 stage on each rank, not 2"},
    {"mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 4, stages: [[0, 1], [3, 4]]}",
     "E0310", "layer 3 stands where layer 2 is due"},
    {"mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 4, stages: [[0, 1], [2]]}", "E0310",
     "layers from 3 on are in no stage"},
    {"mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 4, stages: [[0, 1, 2, 3, 4], "
     "[]]}",
     "E0310", "stage 1 has no layer"},
    {"mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 4, stages: []}", "E0310",
     "0 lists of layers for 2 stages"},
    {"mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, axis: dp, dims: }\npipeline: {schedule: "
     "1f1b, microbatches: 4}",
     "E0301", "'dims' must be a mapping"},
    {"mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 7}", "E0307", "micro-batches"},
    /* what else 7 cannot be is told at once */
    {"mesh: {pp: 2}\npipeline: {schedule: dualpipe, microbatches: 7}", "E0307", "micro-batches"},
    {"mesh: {pp: 2}\npipeline: {schedule: dualpipe, microbatches: 7}", "E0310",
     "both directions need"},
    {"mesh: {pp: 2}\npipeline: {schedule: dualpipe, microbatches: 2}", "E0310",
     "both directions need"},
    {"mesh: {pp: 3}\npipeline: {schedule: dualpipe, microbatches: 6}", "E0310",
     "both directions need"},
    {"mesh: {pp: 2}\ndata_parallel: {mode: fsdp, axis: pp}\npipeline: {schedule: 1f1b, "
     "microbatches: 4}",
     "E0310", "is cut by pp"},
    {"mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 4, recompute: [block, none, "
     "stage]}",
     "E0310", "`recompute` has 3 words for 2 stages"},
    {"mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 4, recompute: [block]}", "E0310",
     "`recompute` has 1 word for 2 stages"},
    {"mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 4, recompute: []}", "E0310",
     "`recompute` has 0 words for 2 stages"},
    {"mesh: {pp: 2}\npipeline: {file: nowhere.csv, stage_to_rank: [0, 1], chunks: 1}", "E0215",
     "`chunks` is of a schedule by name"},
    {"mesh: {pp: 2}\npipeline: {schedule: 1f1b, microbatches: 4, recompute: all}", "E0206", "all"},
    {"mesh: {pp: 2}\nrecompute: block\npipeline: {schedule: 1f1b, microbatches: 4, recompute: "
     "none}",
     "E0307", "for the whole plan"},
    {"mesh: {pp: 2}\npipeline: {file: nowhere.csv, stage_to_rank: [0, 1]}", "E0101", ""},
    {"mesh: {pp: 2}\npipeline: {file: nowhere.csv}", "E0208", "give `stage_to_rank` the rank"},
    {"mesh: {pp: 2}\npipeline: {file: nowhere.csv}", "E0208", "on which rank"},
};
static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        Arena *a = arena_new();
        PlanRun r =
            plan_run(a, "refused.yaml",
                     arena_printf(a,
                                  "model: {preset: llama3-8b, shrink: 64, layers: 5, parts: "
                                  "[embedding, blocks, norm, head, loss]}\ndata: {batch: 60, "
                                  "sequence: 4}\npass: backward\n%s\n",
                                  refused[i].line),
                     true);
        const Diag *said = run_diag(&r, refused[i].code, refused[i].says);
        if (!said) {
            run_print(&r);
            fail_msg("%s: no %s that says '%s'", refused[i].line, refused[i].code, refused[i].says);
        }
        assert_true(said->loc.line > 0);
        arena_free(a);
    }
}
/* A rank that there is not is told at its place in the list, whatever the file says. */
static void test_home_of_a_stage(void **state) {
    (void)state;
    static const char plan[] =
        "model: {preset: llama3-8b, layers: 4}\nmesh: {dp: 2, pp: 2}\npass: backward\n"
        "data: {microbatches: 2}\npipeline: {file: nowhere.csv, stage_to_rank: [0, 2, 1, 5]}\n";
    const char *list = strstr(plan, "pipeline: ");
    for (int stage = 1; stage < 4; stage += 2) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "homes.yaml", plan, false);
        const char *on = stage == 1 ? "2" : "5";
        const Diag *said = run_diag(
            &r, "E0310", arena_printf(a, "stage %d is on rank %s, and pp has 2 ranks", stage, on));
        if (!said) run_print(&r);
        assert_non_null(said);
        assert_int_equal(said->loc.line, 5);
        assert_int_equal(said->loc.col, strstr(list, stage == 1 ? "2, 1" : "5]") - list + 1);
        assert_string_equal(said->hint, "a rank from 0 to 1");
        arena_free(a);
    }
}
/* A slip in the number of a micro-batch is told as such, not as seven that are missing. */
static void test_file_of_more(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *path = temp_path(a, "more.csv");
    FILE *f = fopen(path, "w");
    fputs("0F0,0F7,0B0,0B1\n1F0,1F1,1B0,1B1\n", f);
    fclose(f);
    PlanRun r = plan_run(a, "more.yaml",
                         arena_printf(a,
                                      "%smesh: {pp: 2}\ndata: {rows: 6}\npass: backward\n"
                                      "pipeline: {file: %s, stage_to_rank: [0, 1], "
                                      "microbatches: 2}\n",
                                      mlp, path),
                         true);
    const Diag *d = run_diag(&r, "E0310", "0F7: the plan has 2 micro-batches, counted from 0");
    assert_non_null(d);
    assert_int_equal(d->loc.line, 1);
    assert_int_equal(d->loc.col, 5);
    assert_non_null(strstr(d->hint, "a number below 2"));
    assert_null(run_diag(&r, "E0310", "no backward"));
    arena_free(a);
}
/* An order from a file: executed as it stands; one that waits for ever is refused before it runs.
 */
static void test_file(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *path = temp_path(a, "order.csv");
    for (int good = 0; good < 2; good++) {
        FILE *f = fopen(path, "w");
        fputs(good ? "0F0,0F1,0B1,0B0\n1F1,1B1,,1F0,1I0,1W0\n"
                   : "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n",
              f);
        fclose(f);
        PlanRun r = plan_run(a, "order.yaml",
                             arena_printf(a,
                                          "%smesh: {pp: 2}\ndata: {rows: 6}\npass: backward\n"
                                          "pipeline: {file: %s, stage_to_rank: [0, 1], "
                                          "microbatches: 2}\n",
                                          mlp, path),
                             true);
        if (good) run_must_be(&r, "equivalent");
        else assert_non_null(run_diag(&r, "E0311", "rank 1 stands before 1F1"));
    }
    FILE *f = fopen(path, "w"); /* what is not there is told at the row in which it is missing */
    fputs("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n", f);
    fclose(f);
    PlanRun r = plan_run(a, "order.yaml",
                         arena_printf(a,
                                      "%smesh: {pp: 2}\ndata: {rows: 6}\npass: backward\n"
                                      "pipeline: {file: %s, stage_to_rank: [0, 1], "
                                      "microbatches: 2}\n",
                                      mlp, path),
                         true);
    const Diag *said = run_diag(&r, "E0310", "no backward of stage 1 for micro-batch 1");
    assert_non_null(said);
    assert_string_equal(said->loc.file, path);
    assert_int_equal(said->loc.line, 2);
    arena_free(a);
}

/* What a file says of gathers and reductions, against the plan: held where the plan cuts
 * parameters, told where it does otherwise than the file; what is run is the plan's. */
#define ONCE(s) s "UNSHARD," s "F0," s "F1," s "B0," s "B1," s "REDUCE_GRAD," s "RESHARD\n"
#define AGAIN(s) s "UNSHARD," s "F0," s "F1," s "RESHARD," s "UNSHARD," s "B0," s "B1\n"
static const char once[] = ONCE("0") ONCE("1"), again[] = AGAIN("0") AGAIN("1"),
                  late[] = "0F0,0UNSHARD,0F1,0B0,0B1\n1UNSHARD,1F0,1F1,1B0,1B1\n",
                  twice[] = "0F0,0F1,0B0,0REDUCE_GRAD,0B1,0REDUCE_GRAD\n1F0,1F1,1B0,1B1\n";
static const struct {
    const char *rows, *data_parallel, *code, *says;
    int line, col, gathers; /* of a weight in the step; 0: refused */
} gathers[] = {
    {once, "{mode: fsdp, reshard: false}", NULL, NULL, 0, 0, 1},
    {once, "{mode: fsdp, reshard: step}", NULL, NULL, 0, 0, 1},
    {once, "fsdp", NULL, NULL, 0, 0, 1}, /* the plan does not say: the file does */
    {once, "{mode: fsdp, reshard: true}", "N0018",
     "with `reshard: true` parameters are gathered anew", 1, 1, 4},
    {again, "{mode: fsdp, reshard: false}", "N0018",
     "stage 0 is gathered anew here in the file, and with `reshard: false`", 1, 27, 1},
    {again, "{mode: fsdp, reshard: blocks}", "N0018",
     "with `reshard: blocks` parameters are gathered anew", 1, 1, 4},
    {again, "fsdp", "N0018", "stage 0 is gathered anew here in the file, and it stays gathered", 1,
     27, 1},
    {once, "ddp", "N0018", "no `data_parallel` cuts parameters", 1, 1, -1},
    {late, "ddp", "N0018", "no `data_parallel` cuts parameters", 1, 5, -1},
    {late, "fsdp", "E0310", "0F0 uses stage 0, which nothing has gathered", 1, 1, 0},
    {twice, "ddp", "E0310", "0REDUCE_GRAD comes before 0B1", 1, 13, 0},
    {twice, "ddp", "E0310", "0REDUCE_GRAD is done twice", 1, 30, 0},
    {twice, "ddp", "E0310", "has no 1REDUCE_GRAD", 2, 13, 0},
    {once, "{mode: fsdp, reshard: false, grad_sync: microbatch}", "E0310",
     "and with `grad_sync: microbatch` the plan does so in each micro-batch", 1, 26, 0},
};
#undef ONCE
#undef AGAIN
static void test_file_of_gathers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof gathers / sizeof *gathers; i++) {
        Arena *a = arena_new();
        const char *path = temp_path(a, "gathers.csv");
        FILE *f = fopen(path, "w");
        fputs(gathers[i].rows, f);
        fclose(f);
        PlanRun r = plan_run(a, "gathers.yaml",
                             arena_printf(a,
                                          "%smesh: {pp: 2, dp: 2}\ndata: {rows: 8}\npass: "
                                          "backward\ndata_parallel: %s\npipeline: {file: %s, "
                                          "stage_to_rank: [0, 1], microbatches: 2}\n",
                                          mlp, gathers[i].data_parallel, path),
                             true);
        const Diag *said = gathers[i].code ? run_diag(&r, gathers[i].code, gathers[i].says) : NULL;
        bool placed = said && said->loc.file && !strcmp(said->loc.file, path) &&
                      said->loc.line == gathers[i].line && said->loc.col == gathers[i].col;
        if (gathers[i].code ? !placed : run_has(&r, "N0018")) {
            run_print(&r);
            fail_msg("%zu: %s", i, gathers[i].code ? gathers[i].says : "a note that is none");
        }
        if (!gathers[i].gathers) {
            assert_null(r.t);
            arena_free(a);
            continue;
        }
        run_must_be(&r, "equivalent");
        int n = 0;
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *g = &r.t->collectives[k];
            if (!strcmp(g->op, "all_gather") && strstr(g->value, "net2.weight"))
                n += g->per_step ? g->per_step : 1;
        }
        assert_int_equal(n, gathers[i].gathers < 0 ? 0 : gathers[i].gathers);
        arena_free(a);
    }
}

/* ---- both ways ---- */
/* A record of one all-reduce of a gradient by the two ranks that have its stage. */
static const TraceCollective *half_sums(const Trace *t, const char *param) {
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *k = &t->collectives[i];
        if (!strcmp(k->op, "all_reduce") && k->subject.role == OF_PARAM_GRADIENT &&
            k->groups.n_in == 1 && k->groups.in_size[0] == 2 && strstr(k->value, param))
            return k;
    }
    return NULL;
}
static int of_gradients(const TraceCollective *k, const void *arg) {
    (void)arg;
    return k->pass == PHASE_GRADIENTS;
}
/* The same text, counted from the records: two ranks send in each. */
static const char *sent_by_stage(const Trace *t, Arena *a) {
    int64_t ends = 0, middle = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *k = &t->collectives[i];
        if (k->pass == PHASE_GRADIENTS) *(k->groups.first ? &middle : &ends) += k->bytes_sent;
    }
    const char *e = bytes_text(ends, a), *m = bytes_text(middle, a);
    if (ends >= 1024) e = arena_printf(a, "%s (%lld bytes)", e, (long long)ends);
    if (middle >= 1024) m = arena_printf(a, "%s (%lld bytes)", m, (long long)middle);
    return ends < middle ? arena_printf(a, "%s (ranks 0,3) to %s (ranks 1,2)", e, m)
                         : arena_printf(a, "%s (ranks 1,2) to %s (ranks 0,3)", m, e);
}
static PlanRun run_both(Arena *a, const char *model, const char *mesh, int rows, const char *more) {
    return plan_run(a, "both.yaml",
                    arena_printf(a,
                                 "%smesh: {%s}\ndata: {%s, dtype: f32}\n%s\npipeline: {schedule: "
                                 "dualpipe, microbatches: 8}\n",
                                 model, mesh,
                                 model == mlp ? arena_printf(a, "rows: %d", rows)
                                              : arena_printf(a, "batch: %d, sequence: 8", rows),
                                 more),
                    true);
}
/* DualPipe: every value of every micro-batch on both copies of a stage holds, each gradient is the
 * sum of two half sums by one all-reduce of the pair, of its bytes, with whatever cuts a stage. */
static void test_both_ways(void **state) {
    (void)state;
    static const struct {
        const char *mesh, *more;
        int rows;
    } row[] = {
        {"pp: 4", "pass: backward", 16},
        {"pp: 4", "pass: train\noptimizer: {name: adamw, lr: 0.01, steps: 2, clip: 0.5}", 16},
        {"pp: 2", "pass: train\noptimizer: {name: adamw, lr: 0.01, steps: 2, clip: 0.5}", 16},
        {"dp: 2, pp: 4", "pass: backward\ndata_parallel: {mode: fsdp, unit: block}", 16},
        {"pp: 4, dp: 2", "pass: backward\ndata_parallel: {mode: ddp, grad_sync: microbatch}", 16},
        {"pp: 4, dp: 2",
         "pass: train\noptimizer: {name: sgd, lr: 0.1}\ndata_parallel: {mode: zero1}", 16},
        {"pp: 4, tp: 2", "pass: backward\nnames: torchtitan\nrecipe: torchtitan-llama3", 8},
        {"cp: 2, pp: 4", "pass: backward\ncontext_parallel: {mode: ring, order: zigzag}", 8},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = run_both(a, llama, row[i].mesh, row[i].rows, row[i].more);
        if (!run_is(&r, "equivalent")) run_print(&r);
        assert_non_null(r.t);
        run_must_be(&r, "equivalent");
        assert_int_equal(r.t->n_suspect, 0);
        arena_free(a);
    }
    Arena *a = arena_new(); /* an input is of one way: its gradient counts the uses of that one */
    PlanRun in = plan_good(a,
                           "model: {kind: mlp, sizes: [6, 8, 4]}\nmesh: {pp: 2}\npass: backward\n"
                           "data: {rows: 8, input_gradient: true}\n"
                           "pipeline: {schedule: dualpipe, microbatches: 4}\n",
                           true);
    run_must_be(&in, "equivalent");
    /* net1.weight, [10, 7], is on ranks 0 and 3; two layers a stage */
    PlanRun r = run_both(a, mlp, "pp: 4", 24, "pass: backward");
    const TraceCollective *k = half_sums(r.t, "net1.weight");
    run_must_be(&r, "equivalent");
    assert_non_null(k);
    assert_int_equal(k->groups.first, 0);
    assert_int_equal(k->groups.in_stride[0], 3);
    assert_int_equal(k->bytes_sent, k->bytes_in);
    k = half_sums(r.t, "net3.weight");
    assert_non_null(k);
    assert_int_equal(k->groups.first, 1);
    assert_int_equal(k->groups.in_stride[0], 1);
    int sums = 0, sends = 0;
    for (int i = 0; i < r.t->n_collectives; i++) {
        sums += !strcmp(r.t->collectives[i].op, "all_reduce");
        sends += strcmp(r.t->collectives[i].op, "send") ? 0 : r.t->collectives[i].per_step;
    }
    /* each rank sends what is of its own stages */
    assert_true(run_has(&r, "N0007") && run_diag(&r, "N0007", "one micro-batch each way of 8"));
    assert_string_equal(lookup_sent_text(r.t, of_gradients, NULL, true, a), sent_by_stage(r.t, a));
    assert_int_equal(sums, 16);               /* one for each parameter */
    assert_int_equal(sends, 8 * 2 * (4 - 1)); /* each micro-batch there and back */
    arena_free(a);
}
/* A half sum that is lost, doubled or added up with another rank's, and a message of the other way
 * that is another's: each is told, by numbers and where it is one of structure by that too. */
static void test_both_ways_wrong(void **state) {
    (void)state;
    static const char *const fault[] = {
        "{at: all_reduce of grad.param.net1.weight, do: drop}",
        "{at: all_reduce of grad.param.net3.bias, scale: 2}",
        "{at: net5.product, scale: 2}",
    };
    for (size_t i = 0; i < sizeof fault / sizeof *fault; i++) {
        Arena *a = arena_new();
        PlanRun r = run_both(a, mlp, "pp: 4", 24,
                             arena_printf(a, "pass: backward\nfaults: [%s]", fault[i]));
        if (!run_is(&r, "different")) run_print(&r);
        assert_non_null(r.t);
        run_must_be(&r, "different");
        arena_free(a);
    }
}
/* A name is that of both copies of a stage, a number that of one. */
static void test_fault_both_ways(void **state) {
    (void)state;
    static const struct {
        const char *at, *does;
        int planted;
        const char *more;
    } row[] = {
        {"net5.product", "scale: 2", 2, ""},
        {"grad.net3", "scale: 2", 2, ""},
        {"send of act2", "scale: 3", 2, ""},
        {"all_reduce of grad.param.net1.weight", "do: drop", 1, ""}, /* one, of both */
        {"all_reduce of layers.1.o_proj", "do: drop, rank: 6", 2, "tp"},
        {"14", "scale: 3", 1, ""},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        bool tp = *row[i].more;
        const char *more = "pass: backward";
        if (tp)
            more =
                "pass: backward\nnames: torchtitan\nplan: {'layers.*.attention.w[qkv]': colwise, "
                "'layers.*.attention.wo': rowwise}";
        PlanRun r =
            run_both(a, tp ? llama : mlp, tp ? "pp: 4, tp: 2" : "pp: 4", tp ? 8 : 24,
                     arena_printf(a, "%s\nfaults: [{at: %s, %s}]", more, row[i].at, row[i].does));
        if (!run_is(&r, "different")) run_print(&r);
        run_must_be(&r, "different");
        int planted = 0;
        for (int k = 0; k < r.t->n_computes; k++) planted += r.t->computes[k].planted != NULL;
        for (int k = 0; k < r.t->n_collectives; k++) planted += r.t->collectives[k].planted != NULL;
        if (planted != row[i].planted)
            fail_msg("%s: planted in %d steps, %d wanted", row[i].at, planted, row[i].planted);
        arena_free(a);
    }
}
/* A table that two stages read, both ways: one home and sent, or a copy on each and one all-reduce
 * of the pair; the numbers of one device either way. */
static void test_tied_both_ways(void **state) {
    (void)state;
    static const char tied[] = "model: {preset: llama3.2-1b, shrink: 64, layers: 5, parts: "
                               "[embedding, blocks, norm, head, loss]}\n";
    static const char *const how[] = {"", ", tied: send", ", tied: pair"};
    for (int pp = 2; pp <= 4; pp++)
        for (int h = 0; h < 3; h++) {
            Arena *a = arena_new();
            PlanRun r = plan_run(
                a, "tied.yaml",
                arena_printf(a,
                             "%smesh: {dp: 2, pp: %d}\ndata: {batch: 8, sequence: 4, dtype: f32}\n"
                             "pass: train\noptimizer: {name: adamw, lr: 0.01, steps: 2, clip: "
                             "0.5}\ndata_parallel: {mode: %s}\npipeline: {schedule: 1f1b, "
                             "microbatches: 4%s}\n",
                             tied, pp, pp == 3 ? "ddp" : "fsdp", how[h]),
                true);
            if (!run_is(&r, "equivalent")) run_print(&r);
            run_must_be(&r, "equivalent");
            int sent = 0, sums = 0;
            for (int i = 0; i < r.t->n_collectives; i++) {
                const TraceCollective *k = &r.t->collectives[i];
                bool table = strstr(k->value, "embed");
                sent += table && !strcmp(k->op, "send") && k->pass != PHASE_FORWARD;
                sums += table && !strcmp(k->op, "all_reduce") && !strcmp(k->axis, "pp");
            }
            assert_int_equal(sums, h == 2);
            assert_true(h == 2 ? sent <= 1 : sent >= 2); /* what the table makes is sent as well */
            arena_free(a);
        }
}
/* What a step sends in words: between stages messages, beside collectives where there are some; two
 * sums that differ never read alike. */
static void test_totals_in_words(void **state) {
    (void)state;
    static const char *const row[][2] = {
        {"plans/45-llama3-8b-pp4-1f1b.yaml",
         "8 micro-batches: 48 messages, 64 KiB (ranks 0,3) to 128 KiB (ranks 1,2) sent"},
        {"plans/47-llama3-8b-pp2-dp2-tp2.yaml",
         "4 micro-batches: 181 collectives and 8 messages, 2356224 bytes (ranks 0-3) to 2357792 "
         "bytes (ranks 4-7) sent"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        size_t n;
        PlanRun r = plan_run(a, row[i][0], child_read(a, row[i][0], &n), false);
        const char *said = lookup_step_text(r.t, -1, a);
        if (!strstr(said, row[i][1])) fail_msg("%s: %s", row[i][0], said);
        arena_free(a);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_both_ways_wrong),
        cmocka_unit_test(test_fault_both_ways),
        cmocka_unit_test(test_tied_both_ways),
        cmocka_unit_test(test_totals_in_words),
        cmocka_unit_test(test_home_of_a_stage),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_units_of_stages),
        cmocka_unit_test(test_recompute_inside),
        cmocka_unit_test(test_flat_buffers),
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_full_size),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_tied),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_sends),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_file_of_gathers),
        cmocka_unit_test(test_file_of_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
