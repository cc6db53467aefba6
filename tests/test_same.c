/* The same bytes of trace whatever the instruction set and the number of threads. tests/same.sh
 * holds builds of several compilers against each other in the same way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "kernel/gemm.h"
#include "support/support.h"
#include <string.h>

#define BLOCK(layers, dtype)                                                                       \
    "model: {config: {hidden_size: 40, intermediate_size: 56, num_hidden_layers: 2, "              \
    "num_attention_heads: 4, num_key_value_heads: "                                                \
    "2, vocab_size: 37, head_dim: 8, qk_norm: true, attention_bias: true}, layers: " layers        \
    ", parts: [embedding, blocks, norm, head, loss]}\ndata: {batch: 2, sequence: 32, "             \
    "dtype: " dtype "}\n"
static const char *const plans[] = {
    BLOCK("2", "f32") "mesh: {dp: 2, cp: 2, tp: 2}\ncontext_parallel: {order: zigzag}\nrecipe: "
                      "torchtitan-llama3\n",
    BLOCK("1", "f64") "mesh: {dp: 2, tp: 4}\npass: backward\ndata_parallel: {mode: "
                      "fsdp}\nrecompute: block\nrecipe: megatron\n",
    BLOCK("1",
          "f32") "mesh: {tp: 3}\npass: train\noptimizer: {name: adamw, clip: 1, steps: 2}\nplan:\n"
                 "  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: rowwise\n",
};
static const char *trace_of(Arena *a, const char *text, int threads, size_t *n) {
    PlanRun r =
        plan_run_with(a, "same.yaml", text,
                      &(PipelineOptions){.execute = true, .numbers = true, .threads = threads});
    if (!run_is(&r, "equivalent")) run_print(&r);
    assert_non_null(r.t);
    run_must_be(&r, "equivalent");
    return trace_text(r.t, a, false, n);
}
static void test_same_bytes(void **state) {
    (void)state;
    static const char *const isas[] = {"generic", "avx2", "avx512"};
    for (size_t p = 0; p < sizeof plans / sizeof plans[0]; p++) {
        Arena *a = arena_new();
        size_t n, m;
        int held = 0;
        assert_true(kernel_select("generic"));
        const char *want = trace_of(a, plans[p], 1, &n);
        assert_true(n > 10000);
        for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
            if (!kernel_select(isas[i])) {
                printf("%s: this processor has it not\n", isas[i]);
                continue;
            }
            for (int threads = i ? 1 : 2; threads <= 4; threads *= 2) {
                const char *have = trace_of(a, plans[p], threads, &m);
                if (n != m || memcmp(want, have, n) != 0)
                    fail_msg("plan %zu: %s on %d threads gives other bytes", p, isas[i], threads);
                held++;
            }
        }
        printf("plan %zu: %zu bytes of trace, %d runs the same\n", p, n, held);
        kernel_select("auto");
        arena_free(a);
    }
}
/* It can fail: another seed is another trace. */
static void test_other_bytes(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t n, m;
    const char *one = trace_of(a, plans[0], 2, &n);
    const char *two = trace_of(a, arena_printf(a, "%s", plans[2]), 2, &m);
    assert_true(n != m || memcmp(one, two, n) != 0);
    arena_free(a);
}
/* `use_local_output` has no effect where only layers of PyTorch's styles meet: a value keeps its
 * layout. What it changes: test_dtensor. */
static void test_local_output_changes_nothing(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t n[2];
    const char *have[2];
    for (int k = 0; k < 2; k++)
        have[k] = trace_of(
            a,
            arena_printf(
                a,
                "model: {kind: mlp, sizes: [6, 10, 3]}\ndata: {rows: 5}\nmesh: {tp: 2}\nplan:\n"
                "  net1: {style: colwise, use_local_output: %s}\n"
                "  net2: {style: rowwise, use_local_output: %s}\n",
                k ? "true " : "false", k ? "false" : "true "),
            1, &n[k]);
    assert_int_equal(n[0], n[1]);
    assert_string_equal(strchr(have[0], '\n'),
                        strchr(have[1], '\n')); /* the first line has the hash of the plan's text */
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bytes),
                                       cmocka_unit_test(test_other_bytes),
                                       cmocka_unit_test(test_local_output_changes_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
