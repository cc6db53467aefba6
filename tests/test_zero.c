/* Data parallelism with the optimizer's work divided: ZeRO's stages and forms, FSDP and HSDP with
 * what they keep, against training runs of PyTorch (golden/zero): values after every step, who
 * holds what, every collective with its bytes. And what needs no record: the memory of the ZeRO
 * paper, refusals, planted mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "layout/redistribute.h"
#include "support/spoil.h"
#include "support/support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */
enum { STEPS = 3, LAYERS = 3 };
/* A case of golden/zero by its name without the ranks, and the plan's words for it. */
typedef struct {
    const char *name, *mesh4; /* mesh4: of four ranks, where it is no {dp: n} */
    const char *keys;
} Case;
static const Case cases[] = {
    {"ddp", NULL, "{mode: ddp, unit: model}"},
    {"zero1", NULL, "{mode: zero1}"},
    {"fsdp_keep", NULL, "{mode: fsdp, unit: block, reshard: false}"},
    {"fsdp_reshard", NULL, "{mode: fsdp, unit: block}"},
    {"fsdp_root_only", NULL, "{mode: fsdp, unit: model}"},
    {"fsdp_keep_accumulate_nosync", NULL, "{mode: fsdp, unit: block, reshard: false}"},
    {"fsdp_reshard_accumulate_nosync", NULL, "{mode: fsdp, unit: block}"},
    {"fsdp_default", NULL, "{mode: fsdp, unit: block, reshard: blocks}"},
    {"fsdp_reshard_accumulate", NULL, "{mode: fsdp, unit: block, grad_sync: microbatch}"},
    {"fsdp_keep_accumulate_nosync_noreshard", NULL, "{mode: fsdp, unit: block, reshard: step}"},
    {"fsdp_reshard_to_2", "r: 2, s: 2", "{mode: fsdp, axis: r*s, unit: block, reshard_over: s}"},
    {"hsdp_2x2_accumulate_no_allreduce", "r: 2, s: 2",
     "{mode: hsdp, replicate: r, shard: s, unit: block, grad_sync: scatter}"},
    {"hsdp_2x2_keep", "r: 2, s: 2",
     "{mode: hsdp, replicate: r, shard: s, unit: block, reshard: false}"},
    {"hsdp_2x2_reshard", "r: 2, s: 2", "{mode: hsdp, replicate: r, shard: s, unit: block}"},
    {"hsdp_2x2_reshard_accumulate_nosync", "r: 2, s: 2",
     "{mode: hsdp, replicate: r, shard: s, unit: block}"},
};
typedef struct {
    Arena *a;
    const Case *c;
    Json *json;
    const SafeTensors *st;
    const char *path; /* of its tensors */
    int ranks, parts;
} Record;
static int64_t whole(const Json *j, const char *key, int64_t otherwise) {
    const Json *x = json_get(j, key);
    return x ? x->i : otherwise;
}
/* Its inputs as a plan reads them: all rows of the micro-batches of a step one below the other. */
static void write_inputs(const Record *r, const char *path) {
    static const char *const from[] = {"inputs", "targets"}, *const to[] = {"input", "target"};
    Diags *d = diags_new(r->a);
    StWriter *w = st_writer(r->a, d, path);
    const StTensor *t[2];
    for (int i = 0; i < 2; i++) { /* [step, micro-batch, rows, width] */
        t[i] = st_find(r->st, from[i]);
        assert_int_equal(t[i]->nd, 4);
        int64_t shape[] = {STEPS, r->parts * t[i]->shape[2], t[i]->shape[3]};
        st_declare(w, to[i], DT_F64, 3, shape);
    }
    for (int i = 0; i < 2; i++) {
        int64_t n, each = t[i]->shape[2] * t[i]->shape[3], had = t[i]->shape[1];
        const double *x = tensor_numbers(r->a, r->st, from[i], &n);
        for (int64_t s = 0; s < STEPS; s++)
            st_data(w, x + s * had * each, (size_t)(r->parts * each) * sizeof *x);
    }
    assert_true(st_commit(w));
}
static bool open_record(Arena *a, const Case *c, int ranks, Record *r) {
    const char *name = arena_printf(a, "zero/%s_%d", c->name, ranks);
    if (!golden_has(a, "%s.json", name)) return false;
    *r = (Record){
        .a = a, .c = c, .ranks = ranks, .json = golden_json(a, golden_path(a, "%s.json", name))};
    r->path = golden_path(a, "%s.safetensors", name);
    r->st = golden_tensors(a, r->path);
    r->parts = (int)whole(r->json, "accumulate", 1);
    return true;
}
static PlanRun run_record(const Record *r, int steps, const char *inputs, const char *save) {
    const char *mesh = r->c->mesh4 ? r->c->mesh4 : arena_printf(r->a, "dp: %d", r->ranks);
    const char *text = arena_printf(
        r->a,
        "model: {kind: mlp, sizes: [5, 8, 7, 3], bias: true, activation: tanh, scale: true,\n"
        "  layer_names: [layers.0, layers.1, layers.2], weights: {file: %s, prefix: "
        "\"initial.\"}}\n"
        "data: {dtype: f64, inputs: %s, microbatches: %d%s}\nmesh: {%s}\npass: train\nloss: mse\n"
        "optimizer: {name: adamw, lr: 0.05, weight_decay: 0.1, steps: %d}\ndata_parallel: %s\n",
        r->path, inputs, r->parts, r->c->mesh4 ? ", cut: {batch: r*s}" : "", mesh, steps,
        r->c->keys);
    PipelineOptions o = {.execute = true, .threads = 1, .save_values = save};
    PlanRun run = plan_run_with(r->a, "zero.yaml", text, &o);
    if (!run_is(&run, "equivalent")) {
        run_print(&run);
        fail_msg("%s on %d ranks: %s", r->c->name, r->ranks, text);
    }
    return run;
}
/* What a run of so many steps leaves. */
static void compare_values(const Record *r, int steps, const char *save) {
    SafeTensors *ours = golden_tensors(r->a, save);
    const Json *shapes = json_get(r->json, "global_shapes");
    double worst = 0;
    for (int k = 0; k < shapes->n; k++) {
        int64_t n, m;
        const char *name = shapes->key[k];
        const double *x = tensor_numbers(r->a, ours,
                                         arena_printf(r->a, "after.%d.%s", steps - 1, name), &n),
                     *y = tensor_numbers(r->a, r->st,
                                         arena_printf(r->a, "after%d.%s", steps - 1, name), &m);
        assert_int_equal(n, m);
        for (int64_t i = 0; i < n; i++) worst = fmax(worst, fabs(x[i] - y[i]));
    }
    st_close(ours);
    if (!(worst <= 1e-12)) fail_msg("%s on %d ranks: off by %g", r->c->name, r->ranks, worst);
}
/* The collectives of one kind that a rank issues in a step: how many, and the bytes handed in. */
typedef struct {
    int64_t n, bytes;
} Sum;
/* PyTorch's names of what gloo was asked for. DDP's two broadcasts of the second step bring ranks
 * to one order of its buckets: no part of the training, and of other phases than the optimizer's.
 */
static const struct {
    MoveKind kind;
    const char *theirs;
} kinds[] = {{MOVE_ALL_GATHER, "allgather_base"},
             {MOVE_REDUCE_SCATTER, "reduce_scatter_base"},
             {MOVE_ALL_REDUCE, "allreduce"},
             {MOVE_BROADCAST, "broadcast"}};
static Sum theirs(const Record *r, const char *op, int part) {
    Sum x = {0};
    const Json *step = json_get(r->json, "collectives_rank_0")->item[1];
    for (int p = 0; p < step->n; p++) { /* "forward0", "backward0", "forward1", ..., "optimizer" */
        const char *number = step->key[p] + strcspn(step->key[p], "0123456789");
        if ((*number ? atoi(number) : r->parts - 1) != part) continue;
        for (int i = 0; i < step->value[p]->n; i++) {
            const Json *c = step->value[p]->item[i];
            bool order = !strcmp(op, "broadcast") && strcmp(step->key[p], "optimizer");
            if (strcmp(c->item[0]->s, op) || order) continue;
            x.n++;
            x.bytes += c->item[2]->i;
        }
    }
    return x;
}
/* Of one micro-batch. The loss's own sum is ours: each of their ranks has its loss. */
static Sum ours(const Trace *t, MoveKind kind, int parts, int part) {
    Sum x = {0};
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (strcmp(c->op, move_name(kind)) || c->pass == PHASE_LOSS) continue;
        if (!collective_in(c, parts, 0, part)) continue;
        x.n++;
        x.bytes += c->bytes_in;
    }
    return x;
}
/* Micro-batch by micro-batch: what is done in each of them, and what once. */
static void compare_collectives(const Record *r, const Trace *t) {
    for (int part = 0; part < r->parts; part++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            Sum a = ours(t, kinds[k].kind, r->parts, part), b = theirs(r, kinds[k].theirs, part);
            if (a.n != b.n || a.bytes != b.bytes)
                fail_msg("%s on %d ranks, micro-batch %d: %lld %s of %lld bytes, the record has "
                         "%lld of %lld",
                         r->c->name, r->ranks, part, (long long)a.n, move_name(kinds[k].kind),
                         (long long)a.bytes, (long long)b.n, (long long)b.bytes);
        }
}
/* Bytes of optimizer state of each rank. */
static void compare_state(const Record *r, const Trace *t) {
    const Json *want = json_get(r->json, "bytes_of_adam_moments_per_rank"),
               *params = json_get(r->json, "bytes_of_parameters_per_rank");
    for (int rank = 0; rank < r->ranks; rank++) {
        int64_t state = 0, own = 0;
        for (int i = 0; i < t->n_memory; i++) {
            const TraceMemory *m = &t->memory[i];
            if (m->step >= 0 || !rankset_has(&m->ranks, rank)) continue;
            if (!strcmp(m->category, "optimizer")) state += m->bytes;
            if (!strcmp(m->category, "parameters")) own += m->bytes;
        }
        assert_int_equal(state, want->item[rank]->i);
        assert_int_equal(own, params->item[rank]->i);
    }
}
static void test_records(void **state) {
    (void)state;
    int met = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int ranks = 2; ranks <= 4; ranks += 2) {
            Arena *a = arena_new();
            Record r;
            if (open_record(a, &cases[i], ranks, &r)) {
                const char *inputs = arena_printf(a, "build/zero-in-%d.safetensors", (int)getpid()),
                           *save = arena_printf(a, "build/zero-out-%d.safetensors", (int)getpid());
                write_inputs(&r, inputs);
                for (int steps = 1; steps <= STEPS; steps++) {
                    PlanRun run = run_record(&r, steps, inputs, save);
                    compare_values(&r, steps, save);
                    compare_collectives(&r, run.t);
                    compare_state(&r, run.t);
                }
                unlink(inputs);
                unlink(save);
                met++;
            }
            arena_free(a);
        }
    print_message("%d runs of PyTorch compared\n", met);
    if (!met) skip();
}

/* ---- without records ---- */
/* Sums in every micro-batch: of norms over tp before those over dp, of a table that is used twice,
 * of copies once. A step does each collective so often, and its model is that of one device. */
static void test_sync(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        int scatters, sums; /* a step, of 3 micro-batches */
        const char *says;   /* the note beside the records of one micro-batch */
    } rows[] = {{"{mode: hsdp, replicate: r, shard: s}", 1, 1, "reduced once, after the last"},
                {"{mode: hsdp, replicate: r, shard: s, grad_sync: scatter}", 3, 1,
                 "reduce-scattered in each and added up, all-reduced once"},
                {"{mode: hsdp, replicate: r, shard: s, grad_sync: microbatch, reshard: step}", 3, 3,
                 "gradients are reduced in each"},
                {"{mode: zero2, form: megatron, axis: r*s, grad_sync: microbatch}", 3, 3,
                 "gradients are reduced in each"},
                {"{mode: ddp, axis: r*s, grad_sync: microbatch, unit: block}", 3, 3,
                 "gradients are reduced in each"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a,
            arena_printf(a,
                         "model: {preset: llama3.2-1b, shrink: 64, layers: 2, parts: [embedding, "
                         "blocks, norm, head, loss]}\nmesh: {r: 2, s: 2, tp: 2}\n"
                         "data: {batch: 12, sequence: 4, microbatches: 3, cut: {batch: r*s}}\n"
                         "names: torchtitan\nrecipe: torchtitan-llama3\npass: train\n"
                         "optimizer: {name: adamw, steps: 2}\ndata_parallel: %s\n",
                         rows[i].keys),
            true);
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *c = &r.t->collectives[k];
            bool data = strcmp(c->axis, "tp") != 0, cut = strcmp(c->op, "all_reduce") != 0;
            int times = c->per_step > 1 ? c->per_step : 1;
            if (c->pass == PHASE_GRADIENTS && data)
                assert_int_equal(times, cut ? rows[i].scatters : rows[i].sums);
        }
        if (!run_diag(&r, "N0007", rows[i].says)) {
            run_print(&r);
            fail_msg("%s: no note that says '%s'", rows[i].keys, rows[i].says);
        }
        arena_free(a);
    }
}
/* What a step of 3 micro-batches sends by the rules of FSDP and ZeRO: how often each of `units` is
 * gathered and reduced, whatever is combined with what. */
enum { PARTS = 3 };
/* Of the 138 numbers of NET: what a rank of s = 2 hands in of them cut by rows and padded, 4 of 8,
 * 4 of 7, 2 of 3 and as many biases; of the output scale, which is the root's, 2 of 3; what a flat
 * buffer of all has on 4 ranks, DeepSpeed's (a multiple of 8) and Megatron's (parameters at
 * multiples of 64, 512 in all: test_owners). */
enum { ALL = 138, CUT = 20 + 4 + 32 + 4 + 14 + 2 + 2, ROOT = 2, DEEPSPEED = 144, MEGATRON = 512 };
typedef struct {
    const char *word;
    int ahead, back; /* times a unit is gathered in all forwards and in all backwards */
    bool root_stays; /* but the root not in backward */
} Kept;
static const Kept kept[] = {{"true", PARTS, PARTS, false},
                            {"blocks", PARTS, PARTS, true},
                            {"false", PARTS, 0, false},
                            {"step", 1, 0, false}};
typedef struct {
    const char *word;
    int cuts,
        sums; /* times in a step that gradients are reduce-scattered, and summed over copies */
} Synced;
static const Synced synced[] = {
    {"step", 1, 1}, {"microbatch", PARTS, PARTS}, {"scatter", PARTS, 1}};
/* By itself a parameter is gathered again only if the backward pass reads it: the weights but the
 * first, and the scale; what travels with others is gathered with them. */
typedef struct {
    const char *word;
    int units, again, numbers; /* in all, gathered again, and what a rank hands in of these */
    bool root;                 /* a unit of its own */
} Unit;
static const Unit each_unit[] = {{"parameter", 7, 3, 32 + 14 + ROOT, true},
                                 {"block", 4, 4, CUT, true},
                                 {"model", 1, 1, CUT, false}};
typedef struct {
    const char *keys;
    Sum want[sizeof kinds / sizeof *kinds]; /* in elements */
} SyncRule;
static void check_rule(const SyncRule *rule) {
    Arena *a = arena_new();
    PlanRun r = plan_good(
        a,
        arena_printf(
            a,
            "model: {kind: mlp, sizes: [5, 8, 7, 3], bias: true, activation: tanh, scale: true}\n"
            "mesh: {r: 2, s: 2}\ndata: {dtype: f64, rows: 24, microbatches: %d, cut: {batch: "
            "r*s}}\npass: train\nloss: mse\noptimizer: {name: adamw, steps: 2}\n"
            "data_parallel: {%s}\n",
            PARTS, rule->keys),
        true);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        Sum all = {0};
        for (int part = 0; part < PARTS; part++) {
            Sum x = ours(r.t, kinds[k].kind, PARTS, part);
            all.n += x.n, all.bytes += x.bytes;
        }
        if (all.n != rule->want[k].n || all.bytes != 8 * rule->want[k].bytes)
            fail_msg("%s: %lld %s of %lld bytes, by the rule %lld of %lld", rule->keys,
                     (long long)all.n, move_name(kinds[k].kind), (long long)all.bytes,
                     (long long)rule->want[k].n, 8 * (long long)rule->want[k].bytes);
    }
    arena_free(a);
}
static void check_hsdp(const Unit *u, const Kept *k, const Synced *y) {
    Arena *a = arena_new();
    bool stays = k->root_stays && u->root;
    if (k->root_stays && !u->root) k = &kept[2]; /* all is the root's */
    SyncRule rule = {
        arena_printf(a, "mode: hsdp, replicate: r, shard: s, unit: %s, reshard: %s, grad_sync: %s",
                     u->word, k->word, y->word),
        {{k->ahead * u->units + k->back * (u->again - stays),
          k->ahead * CUT + k->back * (u->numbers - stays * ROOT)},
         {y->cuts * u->units, y->cuts * 2 * CUT},
         {y->sums * u->units, y->sums * CUT}}};
    check_rule(&rule);
    arena_free(a);
}
static void test_rules(void **state) {
    (void)state;
    for (size_t u = 0; u < sizeof each_unit / sizeof *each_unit; u++)
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
            for (size_t y = 0; y < sizeof synced / sizeof *synced; y++)
                check_hsdp(&each_unit[u], &kept[k], &synced[y]);
    static const SyncRule flat[] = {
        {"mode: zero1, axis: r*s", {{0}, {0}, {1, ALL}, {7, ALL}}},
        {"mode: zero1, axis: r*s, grad_sync: microbatch", {{0}, {0}, {3, 3 * ALL}, {7, ALL}}},
        {"mode: zero1, form: deepspeed, axis: r*s", {{1, DEEPSPEED / 4}, {1, DEEPSPEED}}},
        {"mode: zero1, form: megatron, axis: r*s", {{1, MEGATRON / 4}, {1, MEGATRON}}},
        {"mode: zero2, form: deepspeed, axis: r*s, unit: model, grad_sync: microbatch",
         {{1, DEEPSPEED / 4}, {3, 3 * DEEPSPEED}}},
        {"mode: zero2, form: megatron, axis: r*s, unit: model", {{1, MEGATRON / 4}, {1, MEGATRON}}},
    };
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++) check_rule(&flat[i]);
}
#define NET                                                                                        \
    "model: {kind: mlp, sizes: [5, 8, 7, 3], bias: true, activation: tanh, scale: true}\n"         \
    "data: {dtype: f64, rows: 12}\npass: train\nloss: mse\n"                                       \
    "optimizer: {name: adamw, lr: 0.05, weight_decay: 0.1, clip: 0.3, steps: 2}\n"

/* Bytes of optimizer state of a rank; adamw has two numbers for each of a parameter. */
static int64_t state_of(const Trace *t, int64_t rank) {
    int64_t all = 0;
    for (int i = 0; i < t->n_memory; i++)
        if (!strcmp(t->memory[i].category, "optimizer") && rankset_has(&t->memory[i].ranks, rank))
            all += t->memory[i].bytes;
    return all;
}
static const TraceCollective *of_pass(const Trace *t, Phase pass) {
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].pass == pass) return &t->collectives[i];
    fail_msg("no collective of the pass");
    return NULL;
}
/* Who updates what: whole tensors greedily, 56, 40, 21 and 8 + 7 + 3 + 3 of the 138 numbers; ranges
 * of a buffer, of 2 x 4 (DeepSpeed: 144 in all, 36 each) or of lcm(4, 128) elements with each
 * parameter at a multiple of 64 (Megatron: from the scale at 0 to the first weight at 384, 512 in
 * all, 128 each). */
static void test_owners(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        int64_t elements[4], buffer;
    } rows[] = {
        {"{mode: zero1}", {56, 40, 21, 21}, 138},
        {"{mode: zero1, form: deepspeed}", {36, 36, 36, 30}, 144},
        /* scale 0-3, bias 64-67, weight 128-149, bias 192-199, weight 256-312, bias 320-328,
           weight 384-424 */
        {"{mode: zero1, form: megatron}", {6, 28, 64, 40}, 512},
        {"{mode: zero2, form: megatron, unit: model}", {6, 28, 64, 40}, 512},
        {"{mode: zero2, form: deepspeed, unit: model}", {36, 36, 36, 30}, 144},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a, arena_printf(a, NET "mesh: {dp: 4}\ndata_parallel: %s\n", rows[i].keys), true);
        for (int rank = 0; rank < 4; rank++) {
            int64_t n = state_of(r.t, rank);
            if (n != 16 * rows[i].elements[rank])
                fail_msg("%s: rank %d has state of %lld numbers, not of %lld", rows[i].keys, rank,
                         (long long)n / 16, (long long)rows[i].elements[rank]);
        }
        bool whole = rows[i].buffer == 138;
        assert_int_equal(count_collectives(r.t, "gradients", NULL, NULL), 1);
        const TraceCollective *c = of_pass(r.t, PHASE_GRADIENTS);
        assert_string_equal(c->op, move_name(whole ? MOVE_ALL_REDUCE : MOVE_REDUCE_SCATTER));
        assert_int_equal(c->bytes_in, 8 * rows[i].buffer);
        if (!whole) /* at rest every rank has all of it */
            assert_non_null(strstr(c->why, "each rank keeps the part that it updates"));
        assert_int_equal(
            count_collectives(r.t, "optimizer", whole ? "broadcast" : "all_gather", "dp"),
            whole ? 7 : 1);
        /* the norm is of ranges: their sums of squares are added up; of whole gradients each rank
         * has it */
        assert_int_equal(count_collectives(r.t, "optimizer", "all_reduce", NULL) > 0, !whole);
        arena_free(a);
    }
}

/* Bytes of gradients on rank 0 while step `at` runs. */
static int64_t gradients_at(const Trace *t, int at) {
    int64_t all = 0;
    for (int i = 0; i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        if (v->subject.role != OF_PARAM_GRADIENT || !v->alive || v->alive->from > at ||
            v->alive->until < at)
            continue;
        for (int k = 0; k < v->shape.n_local; k++)
            if (rankset_has(&v->shape.local[k].ranks, 0)) all += v->shape.local[k].bytes;
    }
    return all;
}
/* The figure of the ZeRO paper (arXiv 1910.02054, figure 1): 7.5 billion parameters of 2 bytes with
 * gradients of 2, and 12 of optimizer state for each, on 64 ranks: 120, 31.4, 16.6 and 1.9 GB. Of
 * gradients what there is when the backward pass is over, or where each rank has its part of them
 * only, when the optimizer begins. */
static void test_paper(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        bool parts;
        double gb;
    } rows[] = {{"{mode: ddp}", false, 120.0},
                {"{mode: zero1, form: deepspeed}", false, 31.4},
                {"{mode: zero1, form: megatron}", false, 31.4},
                {"{mode: zero2, form: deepspeed}", true, 16.6},
                {"{mode: zero2, form: megatron}", true, 16.6},
                {"{mode: fsdp}", true, 1.9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a,
            arena_printf(
                a,
                "model: {kind: mlp, bias: false, sizes: [25000, 25000, 25000, 25000, 25000, "
                "25000, 25000, 25000, 25000, 25000, 25000, 25000, 25000]}\n"
                "data: {dtype: bf16, execute: f32, master: f32, moments: f32, rows: 64}\n"
                "mesh: {dp: 64}\npass: train\noptimizer: adamw\nloss: sum\n"
                "data_parallel: %s\n",
                rows[i].keys),
            false);
        int backward = 0, optimizer = -1;
        for (int k = 0; k < r.t->n_computes; k++) {
            const TraceCompute *c = &r.t->computes[k];
            if (c->pass == PHASE_GRADIENTS && c->step > backward) backward = c->step;
            if (c->pass == PHASE_OPTIMIZER && optimizer < 0) optimizer = c->step;
        }
        int64_t bytes = gradients_at(r.t, rows[i].parts ? optimizer : backward);
        for (int k = 0; k < r.t->n_memory; k++)
            if (r.t->memory[k].step < 0 && rankset_has(&r.t->memory[k].ranks, 0))
                bytes += r.t->memory[k].bytes;
        double gb = (double)bytes / 1e9;
        if (fabs(gb - rows[i].gb) > 0.05)
            fail_msg("%s: %.2f GB, the paper has %.1f", rows[i].keys, gb, rows[i].gb);
        arena_free(a);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *mesh, *keys, *code, *says;
    } rows[] = {
        {"tp: 2", "{mode: zero1}", "E0208", "has none of more than one rank"},
        {"dp: 2", "{mode: zero2}", "E0215", "zero2 cuts gradients, and the form pytorch"},
        {"dp: 2", "{mode: zero2, form: pytorch}", "E0215", "zero2 cuts gradients"},
        {"dp: 2", "{mode: zero1, form: fairscale}", "E0206", "'fairscale'"},
        {"dp: 2", "{mode: fsdp, form: megatron}", "E0215", "mode fsdp does not ask"},
        {"dp: 2", "{mode: zero1, form: megatron, unit: parameter}", "E0215", "no single parameter"},
        {"dp: 2", "zero3", "E0206", "'zero3'"},
        {"dp: 2", "{mode: fsdp, reshard: root}", "E0206", "'root'"},
        {"dp: 2", "{mode: ddp, reshard: step}", "E0215", "mode ddp does not ask"},
        {"dp: 2", "{mode: fsdp, shard: dp}", "E0215", "`shard` says"},
        {"dp: 2, r: 2", "{mode: fsdp, axis: r*dp, reshard_over: r*dp}", "E0307", "and not by all"},
        {"dp: 2, tp: 2", "{mode: fsdp, axis: dp, reshard_over: tp}", "E0307", "cut by dp at rest"},
        {"dp: 2", "{mode: ddp, reshard_over: dp}", "E0215", "mode ddp does not ask"},
        {"dp: 2, r: 2", "{mode: fsdp, axis: r*dp, reshard: blocks, reshard_over: r}", "E0215",
         "some stay whole"},
        {"dp: 2", "{mode: fsdp, reshard_over: 2}", "E0204", "group '2'"},
        {"dp: 2", "{mode: ddp, dims: {\"*\": whole}}", "E0215", "`dims` says which dim"},
        {"dp: 2", "{mode: fsdp, dims: {net1.bias: 1}}", "E0307", "net1.bias has no dim 1"},
        {"dp: 2", "{mode: fsdp, dims: {nom: 0}}", "E0205", "pattern 'nom' matches no parameter"},
        {"dp: 2", "{mode: fsdp, dims: {net1: 3}}", "E0206", "unknown value '3'"},
        {"dp: 2", "{mode: ddp, replicate: dp}", "E0215", "`replicate` says"},
        {"dp: 2", "{mode: zero1, reshard: blocks}", "E0215", "mode zero1 does not ask"},
        {"dp: 2", "{mode: fsdp, grad_sync: never}", "E0206", "'never'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(
            a, "refused.yaml",
            arena_printf(a, NET "mesh: {%s}\ndata_parallel: %s\n", rows[i].mesh, rows[i].keys),
            false);
        if (!run_diag(&r, rows[i].code, rows[i].says)) {
            run_print(&r);
            fail_msg("%s over %s: no %s that says '%s'", rows[i].keys, rows[i].mesh, rows[i].code,
                     rows[i].says);
        }
        arena_free(a);
    }
}

/* Mistakes of systems that divide the optimizer's work: found at the step, with the reason. */
static void test_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *keys, *fault, *first, *cause;
    } rows[] = {
        {"{mode: zero1}", "{at: net2.weight.next, do: drop}", "net2.weight.next",
         "the parameter is what it was before the step"},
        {"{mode: zero1, form: megatron}", "{at: net2.weight.next, do: drop}", "net2.weight.next",
         ""},
        {"{mode: zero1}", "{at: grad.param.net2.weight, do: drop}", "grad.param.net2.weight",
         "the sum over dp is missing"},
        {"{mode: zero1}", "{at: grad.param.net2.weight, scale: 0.25}", "grad.param.net2.weight",
         "averaged over dp instead of summed"},
        {"{mode: zero2, form: deepspeed}", "{at: grad.param.net2.weight, do: drop}",
         "grad.param.net2.weight", ""},
        {"{mode: zero2, form: deepspeed}", "{at: grad.param.net2.weight, offset: 1}",
         "grad.param.net2.weight", ""},
        {"{mode: fsdp, grad_sync: microbatch}", "{at: grad.param.net2.weight, scale: 0.25}",
         "grad.param.net2.weight", "averaged over dp instead of summed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "mistake.yaml",
                             arena_printf(a, NET "mesh: {dp: 4}\ndata_parallel: %s\nfaults: [%s]\n",
                                          rows[i].keys, rows[i].fault),
                             true);
        const Diag *wrong = run_diag(&r, "E0501", arena_printf(a, "%s is wrong", rows[i].first));
        if (!wrong || !strstr(wrong->message, rows[i].cause)) {
            run_print(&r);
            fail_msg("%s, %s: not found at %s, or for another reason", rows[i].keys, rows[i].fault,
                     rows[i].first);
        }
        for (int k = 0; k < r.t->n_checks; k++) { /* what follows is no matter of last bits */
            const TraceCheck *c = &r.t->checks[k];
            bool bits = c->cause && strstr(c->cause, "in the last bits only");
            assert_false(bits && fabs(c->got - c->want) > 1e-9);
        }
        for (int k = 0; k < r.t->n_checks; k++) /* every element is wrong: the place is the first */
            if (r.t->checks[k].verdict[0] == 'F' && !strcmp(r.t->checks[k].value, rows[i].first))
                for (int d = 0; d < r.t->checks[k].n_index; d++)
                    assert_int_equal(r.t->checks[k].index[d], 0);
        arena_free(a);
    }
}
/* The next rank's part of a flat buffer is larger or smaller than the own: what is made of it has
 * no shape of the value's, and is told so, not read beyond its end. */
static void test_other_sizes(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "sizes.yaml",
                         NET "mesh: {dp: 4}\ndata_parallel: {mode: zero2, form: deepspeed}\n"
                             "faults: [{at: grad.param.net2.weight, offset: 1}]\n",
                         true);
    int told = 0;
    for (int k = 0; k < r.t->n_checks; k++) {
        const TraceCheck *c = &r.t->checks[k];
        if (c->verdict[0] != 'F' || !strstr(c->value, "net2.weight.")) continue;
        assert_true(!c->n_index || c->max_abs < 1); /* no number of elsewhere */
        told += !c->n_index && isinf(c->max_abs);
    }
    assert_true(told > 2);
    arena_free(a);
}

/* ---- places ---- */
#define GRADIENT "grad.param.net2.weight"
/* One element of what a rank has of the value that a step makes. */
typedef struct {
    int step;
    int64_t rank, element, of; /* of: how many it has */
    bool done;
} Spot;
static void spoil_spot(void *spot, Exec *e, const Step *s, bool checked) {
    Spot *x = spot;
    if (checked || x->done || s->id != x->step) return;
    x->done = true;
    Spoil part = spoil_part(e, s->out, x->rank); /* stays, unless the rank holds nothing */
    x->of = part.n;
    if (x->element < 0) x->element += part.n;
    if (part.n) spoil_set(&part, x->element, spoil_get(&part, x->element) + 1);
    else spoil_undo(&part);
}
/* A wrong element of a part of a flat buffer is told by its place in the parameter, whichever rank
 * has it. */
static void test_places(void **state) {
    (void)state;
    static const char text[] = NET "mesh: {dp: 4}\ndata_parallel: {mode: zero2, form: deepspeed}\n";
    enum { ROWS = 7, COLUMNS = 8 }; /* of net2.weight */
    int64_t begin = 0, told = 0;
    for (int64_t rank = 0; rank < 4; rank++) {
        int64_t has = 0;
        for (int last = 0; last < 2; last++) {
            Arena *a = arena_new();
            PlanRun dry = plan_run(a, "places.yaml", text, false);
            Spot x = {.step = -1, .rank = rank, .element = -last};
            for (int i = 0; i < dry.t->n_values; i++)
                if (!strcmp(dry.t->values[i].shape.name, GRADIENT) &&
                    strstr(dry.t->values[i].shape.symbolic, "flat"))
                    x.step = dry.t->values[i].step;
            PipelineOptions o = {
                .execute = true, .threads = 1, .watch = spoil_spot, .watch_arg = &x};
            PlanRun r = plan_run_with(a, "places.yaml", text, &o);
            assert_true(x.done);
            has = x.of;
            const TraceCheck *k = r.t->checks;
            for (int i = 0; has && k->verdict[0] != 'F'; k++) assert_true(++i < r.t->n_checks);
            if (has) {
                assert_string_equal(k->value, GRADIENT);
                assert_int_equal(rankset_first(&k->ranks), rank);
                assert_int_equal(k->n_index, 2);
                assert_int_equal(k->index[0] * COLUMNS + k->index[1], begin + x.element);
            }
            told += has > 0;
            arena_free(a);
        }
        begin += has;
    }
    assert_int_equal(begin, ROWS * COLUMNS);
    assert_true(told > 2);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records), cmocka_unit_test(test_sync),
        cmocka_unit_test(test_owners),  cmocka_unit_test(test_paper),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_places),  cmocka_unit_test(test_other_sizes),
        cmocka_unit_test(test_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
