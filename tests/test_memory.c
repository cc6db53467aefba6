/* Memory that will not fit is told before it is allocated, and the estimate is near what the process then has. */
#include "exec/memory.h"
#include "exec/pipeline.h"
#include "support/child.h"
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_room(void **state) {
    (void)state;
    assert_true(memory_meminfo("MemTotal: 9 kB\nMemAvailable:   2048 kB\n") == 2048 * 1024);
    assert_true(memory_meminfo("MemTotal: 9 kB\n") == INT64_MAX);
    assert_true(memory_meminfo(NULL) == INT64_MAX);
    assert_int_equal(memory_group("1000\n", "300\n"), 700);
    assert_int_equal(memory_group("1000\n", "3000\n"), 0);
    assert_true(memory_group("max\n", "300\n") == INT64_MAX);
    assert_true(memory_group("9223372036854771712\n", "300\n") == INT64_MAX); /* no limit, as version 1 says it */
    assert_true(memory_group(NULL, NULL) == INT64_MAX);
    Arena *a = arena_new();
    MemoryRoom r = memory_room(a);
    assert_true(r.bytes > 0 && r.bytes < INT64_MAX && r.what);
    arena_free(a);
}
/* Refused in a moment, with the sizes, what limits them and what to change; shape-only commands go on. */
static void test_limit_is_told_first(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *const words[] = {"check", "plans/03-llama3-8b-tp2.yaml", "--set", "model.shrink=1", "--threads", "1", NULL};
    Ended e = child_run(a, &(Child){.words = words, .limit = RLIMIT_AS, .limit_to = 1L << 30});
    assert_int_equal(e.code, 5);
    assert_non_null(strstr(e.err, "[E0701]"));
    assert_non_null(strstr(e.err, "ulimit -v"));
    assert_non_null(strstr(e.err, "shrink"));
    assert_true(e.max_kib < 200 * 1024);
    const char *const shapes[] = {"shapes", "plans/03-llama3-8b-tp2.yaml", "--set", "model.shrink=1", NULL};
    e = child_run(a, &(Child){.words = shapes, .limit = RLIMIT_AS, .limit_to = 1L << 30});
    assert_int_equal(e.code, 0);
    arena_free(a);
}
/* The estimate against the most memory that the process had. It holds to a fifth: the heap's holes are an average. */
static void estimate(const char *plan, const char *shrink) {
    Arena *a = arena_new();
    size_t n;
    char *text = child_read(a, plan, &n);
    assert_non_null(text);
    PlanSet sets[] = {{"model.shrink", shrink}};
    PipelineOptions o = {.execute = true, .threads = 1, .memory_limit = 1}; /* the estimate without the run */
    PipelineReport rep;
    Diags *d = diags_new(a);
    pipeline_run(a, d, plan, text, n, sets, 1, &o, &rep);
    assert_int_equal(diags_exit(d), 5);
    const char *words[] = {"check", plan, "--set", arena_printf(a, "model.shrink=%s", shrink), "--threads", "1", NULL};
    Ended e = child_run(a, &(Child){.words = words});
    assert_int_equal(e.code, 0);
    double predicted = (double)rep.predicted_bytes / 1048576, had = (double)e.max_kib / 1024;
    print_message("%s, shrink %s: %.0f MiB expected, %.0f MiB taken\n", plan, shrink, predicted, had);
    assert_true(predicted > 0.8 * had && predicted < 1.25 * had);
    arena_free(a);
}
static void test_estimate(void **state) {
    (void)state;
    estimate("plans/03-llama3-8b-tp2.yaml", "4");
    estimate("plans/18-llama3-8b-backward.yaml", "8");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_room), cmocka_unit_test(test_limit_is_told_first), cmocka_unit_test(test_estimate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
