/* The ranks compute on a device whose memory the host cannot touch: what is seen of the run is the
 * same, and nobody reached past the device. And the heap that both devices place arrays in. */
#include "base/heap.h"
#include "drive/pipeline.h"
#include "exec/device_gpu.h"
#include "support/guard.h"
#include "trace/trace_same.h"
#include "support/child.h"
#include "support/emulate.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Runs a plan; NULL: on the host. */
static Trace *run_on(Arena *a, PlanText plan, Device *dev, int exact, PipelineReport *rep) {
    PipelineOptions o = {
        .execute = true, .threads = 2, .device = dev, .numbers = true, .exact = exact};
    return pipeline_run(a, diags_new(a), plan, &o, rep);
}
static void same_traces(const Trace *x, const Trace *y, const PipelineReport *host,
                        const PipelineReport *guarded) {
    assert_int_equal(host->exit, guarded->exit);
    assert_int_equal(x->n_checks, y->n_checks);
    for (int i = 0; i < x->n_checks; i++) {
        const TraceCheck *p = &x->checks[i], *q = &y->checks[i];
        assert_string_equal(p->value, q->value);
        assert_string_equal(p->verdict, q->verdict);
        assert_true(p->count == q->count && p->level == q->level);
        assert_memory_equal(&p->max_abs, &q->max_abs, sizeof p->max_abs);
        assert_true(!p->cause == !q->cause);
        if (p->cause) assert_string_equal(p->cause, q->cause);
    }
    assert_int_equal(x->n_samples, y->n_samples);
    for (int i = 0; i < x->n_samples; i++)
        assert_memory_equal(x->samples[i].after, y->samples[i].after,
                            sizeof(double) * (size_t)x->samples[i].n_after);
    assert_int_equal(host->n_losses, guarded->n_losses);
    for (int64_t i = 0; i < host->n_losses; i++)
        assert_memory_equal(&host->losses[i], &guarded->losses[i], sizeof(double));
}
/* False: on the host it is not executed, and neither is it on the device. */
static bool same_plan(PlanText plan, int exact) {
    Arena *a = arena_new();
    PipelineReport host, guarded;
    Device *dev = guard_new((size_t)1 << 36);
    Trace *x = run_on(a, plan, NULL, exact, &host), *y = run_on(a, plan, dev, exact, &guarded);
    bool runs = x && x->executed;
    assert_true(runs == (y && y->executed));
    if (runs) same_traces(x, y, &host, &guarded);
    GuardCalls calls = guard_calls(dev);
    assert_true(!runs || calls.gets > 0);
    guard_free(dev);
    arena_free(a);
    return runs;
}
static void same(const char *text) { assert_true(same_plan(plan_text("p", text), 1)); }
#define TINY                                                                                       \
    "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, blocks, norm, head, "    \
    "loss]}\nnames: torchtitan\n"
static const char *const plans[] = {
    "model: {kind: mlp, sizes: [6, 10, 4], layer_names: [up, down]}\ndata: {rows: 5}\n"
    "mesh: {tp: 2}\nplan: {up: colwise, down: rowwise}\n",
    TINY "data: {batch: 4, sequence: 16}\nmesh: {dp: 2, cp: 2}\npass: train\n"
         "context_parallel: {mode: all_gather, order: zigzag}\n"
         "optimizer: {name: adamw, steps: 2}\ndata_parallel: {mode: fsdp, axis: dp}\n",
    TINY "data: {batch: 2, sequence: 8, dtype: bf16, master: f32}\nmesh: {tp: 2}\npass: train\n"
         "plan:\n  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: rowwise\n"
         "optimizer: {name: adamw, steps: 2}\n",
    TINY "data: {batch: 4, sequence: 8, dtype: bf16, master: f32}\nmesh: {dp: 2}\npass: train\n"
         "optimizer: {name: sgd, steps: 2}\ndata_parallel: {mode: zero1, form: deepspeed}\n",
    TINY "data: {batch: 3, sequence: 8, documents: [[5, 3], [2, 6], [8]]}\nmesh: {cp: 2}\n"
         "pass: backward\ncontext_parallel: {mode: ring, order: zigzag}\n",
    "model: {config: {model_type: llama4_text, hidden_size: 12, intermediate_size: 10, vocab_size: "
    "11, num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 4, "
    "no_rope_layer_interval: 2, attention_chunk_size: 4, moe_layers: [], floor_scale: 2}, layers: "
    "all, parts: [embedding, blocks, norm, head, loss]}\nmesh: {dp: 2}\npass: backward\n"
    "data: {batch: 4, sequence: 8, documents: [[5, 3], [2, 6], [8], [1, 7]]}\n"
    "data_parallel: {mode: ddp}\n",
    "model: {kind: mlp, sizes: [4, 8, 4]}\ndata: {rows: 24, microbatches: 3}\nmesh: {dp: 4}\n"
    "pass: train\noptimizer: {name: sgd, steps: 2}\n",
};
static void test_untouched(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) same(plans[i]);
}
/* What faults do and what the report finds as their cause goes through the device too. */
static void test_untouched_faults(void **state) {
    (void)state;
    const char *const bugs[] = {"plans/bugs/02-bias-on-every-rank.yaml",
                                "plans/bugs/04-wrong-block.yaml",
                                "plans/bugs/09-norm-gradient-averaged.yaml"};
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        Arena *a = arena_new();
        size_t n;
        same(child_read(a, bugs[i], &n));
        arena_free(a);
    }
}

/* Every plan that is shipped and executes. */
static void test_untouched_shipped(void **state) {
    (void)state;
    static const char *const of[] = {"plans/[0-9]*.yaml", "plans/bugs/*.yaml"};
    int ran = 0, seen = 0;
    for (int k = 0; k < 2; k++) {
        for (PlanFiles f = plan_files(of[k], of[k]); plan_files_next(&f); seen++)
            if (strstr(f.text, "dtype: f")) ran += same_plan(plan_text(f.path, f.text), 0);
    }
    print_message("%d of %d shipped plans execute\n", ran, seen);
    assert_true(2 * ran > seen);
}

/* ---- a GPU that is this process ---- */
/* Every plan that executes runs on a GPU's kernels with the verdict, and the first wrong value, of
 * the host; kernels that the plans never ask for are named. */
static long kernel_calls[GPU_N_KERNELS + 1];
static int exactly_told, loosely_told;
/* What was told beforehand of the GPU's memory is what was taken. */
/* Of rows of experts it is what they are expected to be; and mistakes that are planted make blocks
 * differ that ranks would share. A sixteenth of the room is left alone. */
static void as_told(const char *file, const char *text, int64_t told, int64_t taken) {
    const double share = (double)told / (double)taken;
    const bool planted = strstr(text, "faults:") != NULL;
    if (share < (planted ? 0.8 : 15.0 / 16) || share > 1.15)
        fail_msg("%s: %.4f of what was taken of the GPU's memory was told", file, share);
    exactly_told += told == taken;
    loosely_told += told != taken;
}
static bool same_on_gpu(const char *file, const char *text) {
    Arena *a = arena_new();
    PipelineReport host, there;
    Gpu *gpu = emulated_gpu((size_t)1 << 36, GPU_WARP);
    Device *dev = device_gpu(gpu);
    Trace *x = run_on(a, plan_text(file, text), NULL, 0, &host),
          *y = run_on(a, plan_text(file, text), dev, 0, &there);
    bool runs = x && x->executed;
    assert_true(runs == (y && y->executed));
    if (runs && strcmp(x->verdict, y->verdict) != 0)
        fail_msg("%s: %s on the host, %s on the GPU, first at %s: %s", file, x->verdict, y->verdict,
                 y->first_wrong ? y->first_wrong : "-",
                 y->n_fail ? "a check failed" : "no check failed");
    if (runs && strcmp(x->first_wrong ? x->first_wrong : "", y->first_wrong ? y->first_wrong : ""))
        fail_msg("%s: %s on the host, %s on the GPU", file, x->first_wrong, y->first_wrong);
    TraceApart apart = {0}; /* what is found, where, on whom and why */
    if (runs) apart = trace_apart(x, y, a);
    if (apart.n) fail_msg("%s: host\n%s\nGPU\n%s", file, apart.a, apart.b);
    for (int k = 0; k <= GPU_N_KERNELS; k++) kernel_calls[k] += emulated_calls(gpu)[k];
    if (runs) as_told(file, text, there.predicted_device, (int64_t)device_use(dev).large);
    const char *missing = device_gpu_missing(dev, a);
    if (runs && missing) fail_msg("%s: on the host %s", file, missing);
    device_free(dev);
    arena_free(a);
    return runs;
}
static void test_emulated_gpu(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        assert_true(same_on_gpu("p", plans[i]));
    static const char *const shipped[] = {
        "plans/01-*.yaml",         "plans/02-*.yaml",
        "plans/1[0-9]-*.yaml",     "plans/23-*.yaml",
        "plans/3[0-9]-*.yaml",     "plans/4[0-3]-*.yaml",
        "plans/bugs/0[1-9]*.yaml", "plans/bugs/[1-6][1389]-*.yaml"};
    for (size_t k = 0; k < sizeof shipped / sizeof *shipped; k++)
        for (PlanFiles f = plan_files(shipped[k], shipped[k]); plan_files_next(&f);)
            same_on_gpu(f.path, f.text);
    long ran = 0;
    for (int k = 0; k <= GPU_N_KERNELS; k++) ran += kernel_calls[k];
    print_message("%ld launches; of %d runs the GPU's memory was told to the byte, of %d nearly\n",
                  ran, exactly_told, loosely_told);
    assert_true(exactly_told > 4 * loosely_told);
    assert_true(kernel_calls[GPU_N_KERNELS] > 0 && kernel_calls[GPU_attention] > 0 &&
                kernel_calls[GPU_bf16_pack] > 0 && ran > 1000);
}

/* ---- the heap ---- */
enum { SLOTS = 40, TURNS = 4000 };
/* The same takes and gives on memory and on sizes: the range grows alike, and no two arrays that
 * are there overlap. */
static void test_heap(void **state) {
    (void)state;
    Heap *real = heap_new((size_t)1 << 30), *dry = heap_new(0);
    unsigned char *p[SLOTS] = {0};
    void *q[SLOTS] = {0};
    size_t n[SLOTS] = {0};
    uint64_t seed = 7;
    for (int i = 0; i < TURNS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int k = (int)(seed >> 33) % SLOTS;
        if (p[k]) {
            assert_true(p[k][0] == k && p[k][n[k] - 1] == k);
            heap_give(real, p[k]);
            heap_give(dry, q[k]);
            p[k] = q[k] = NULL;
        } else {
            n[k] = 1 + (size_t)(seed >> 40) % 300000;
            p[k] = heap_take(real, n[k]);
            q[k] = heap_take(dry, n[k]);
            assert_non_null(p[k]);
            assert_true((uintptr_t)p[k] % 64 == 0);
            memset(p[k], k, n[k]);
        }
        assert_true(heap_top(real) == heap_top(dry));
    }
    assert_true(heap_top(real) < (size_t)SLOTS * 300000); /* places are used again */
    size_t top = heap_top(real);
    for (int k = 0; k < SLOTS; k++)
        if (p[k]) heap_give(real, p[k]);
    assert_non_null(heap_take(real, top - 4096)); /* neighbours are joined */
    assert_true(heap_top(real) == top);
    assert_null(heap_take(real, (size_t)1 << 31));
    heap_free(real);
    heap_free(dry);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untouched), cmocka_unit_test(test_untouched_faults),
        cmocka_unit_test(test_untouched_shipped), cmocka_unit_test(test_emulated_gpu),
        cmocka_unit_test(test_heap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
