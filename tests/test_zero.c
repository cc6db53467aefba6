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
    if (!run.t || !run.t->verdict || strcmp(run.t->verdict, "equivalent")) {
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
static Sum theirs(const Record *r, const char *op) {
    Sum x = {0};
    const Json *step = json_get(r->json, "collectives_rank_0")->item[1];
    for (int p = 0; p < step->n; p++)
        for (int i = 0; i < step->value[p]->n; i++) {
            const Json *c = step->value[p]->item[i];
            bool order = !strcmp(op, "broadcast") && strcmp(step->key[p], "optimizer");
            if (strcmp(c->item[0]->s, op) || order) continue;
            x.n++;
            x.bytes += c->item[2]->i;
        }
    return x;
}
/* Parameters are gathered in every micro-batch; the rest is done once. The loss's own sum is ours:
 * each of their ranks has its loss. */
static Sum ours(const Record *r, const Trace *t, MoveKind kind) {
    Sum x = {0};
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (strcmp(c->op, move_name(kind)) || c->pass == PHASE_LOSS) continue;
        int64_t times = c->pass == PHASE_PARAMETERS ? r->parts : 1;
        x.n += times;
        x.bytes += times * c->bytes_in;
    }
    return x;
}
static void compare_collectives(const Record *r, const Trace *t) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        Sum a = ours(r, t, kinds[k].kind), b = theirs(r, kinds[k].theirs);
        if (a.n != b.n || a.bytes != b.bytes)
            fail_msg("%s on %d ranks: %lld %s of %lld bytes, the record has %lld of %lld",
                     r->c->name, r->ranks, (long long)a.n, move_name(kinds[k].kind),
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
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
