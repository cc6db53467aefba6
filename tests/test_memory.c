/* Memory that will not fit is told before it is allocated, and the estimate is near what the
 * process then has. */
#include "exec/memory.h"
#include "drive/pipeline.h"
#include "support/child.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_room(void **state) {
    (void)state;
    assert_true(memory_meminfo("MemTotal: 9 kB\nMemAvailable:   2048 kB\n") == 2048 * 1024);
    assert_true(memory_meminfo("MemTotal: 9 kB\n") == INT64_MAX);
    assert_true(memory_meminfo(NULL) == INT64_MAX);
    assert_int_equal(memory_group("1000\n", "300\n"), 700);
    assert_int_equal(memory_group("1000\n", "3000\n"), 0);
    assert_true(memory_group("max\n", "300\n") == INT64_MAX);
    assert_true(memory_group("9223372036854771712\n", "300\n") ==
                INT64_MAX); /* no limit, as version 1 says it */
    assert_true(memory_group(NULL, NULL) == INT64_MAX);
    Arena *a = arena_new();
    MemoryRoom r = memory_room(a);
    assert_true(r.bytes > 0 && r.bytes < INT64_MAX && r.what);
    arena_free(a);
}
/* Refused in a moment, with the sizes, what limits them and what to change; shape-only commands go
 * on. */
static void test_limit_is_told_first(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *const words[] = {
        "check", "plans/03-llama3-8b-tp2.yaml", "--set", "model.shrink=1", "--threads", "1", NULL};
    Ended e = child_run(a, &(Child){.words = words, .limit = RLIMIT_AS, .limit_to = 1L << 30});
    assert_int_equal(e.code, 5);
    assert_non_null(strstr(e.err, "[E0701]"));
    assert_non_null(strstr(e.err, "ulimit -v"));
    assert_non_null(strstr(e.err, "shrink"));
    assert_true(e.max_kib < 200 * 1024);
    const char *const shapes[] = {"shapes", "plans/03-llama3-8b-tp2.yaml", "--set",
                                  "model.shrink=1", NULL};
    e = child_run(a, &(Child){.words = shapes, .limit = RLIMIT_AS, .limit_to = 1L << 30});
    assert_int_equal(e.code, 0);
    arena_free(a);
}
/* The estimate against the most memory that the process had. It holds to a fifth: the heap's holes
 * are an average. */
static void estimate(const char *plan, const char *shrink) {
    Arena *a = arena_new();
    size_t n;
    char *text = child_read(a, plan, &n);
    assert_non_null(text);
    PlanSet sets[] = {{"model.shrink", shrink}};
    PipelineOptions o = {
        .execute = true, .threads = 1, .memory_limit = 1}; /* the estimate without the run */
    PipelineReport rep;
    Diags *d = diags_new(a);
    pipeline_run(a, d, plan, text, n, sets, 1, &o, &rep);
    assert_int_equal(diags_exit(d), 5);
    const char *words[] = {"check",     plan, "--set", arena_printf(a, "model.shrink=%s", shrink),
                           "--threads", "1",  NULL};
    Ended e = child_run(a, &(Child){.words = words});
    assert_int_equal(e.code, 0);
    double predicted = (double)rep.predicted_bytes / 1048576, had = (double)e.max_kib / 1024;
    print_message("%s, shrink %s: %.0f MiB expected, %.0f MiB taken\n", plan, shrink, predicted,
                  had);
    assert_true(predicted > 0.8 * had && predicted < 1.25 * had);
    arena_free(a);
}
static void test_estimate(void **state) {
    (void)state;
    estimate("plans/03-llama3-8b-tp2.yaml", "4");
    estimate("plans/18-llama3-8b-backward.yaml", "8");
}

/* Many ranks: their blocks, what is pending on each, and the tables that hold them. The estimate is
 * never below what is taken; above it by at most 1.6 and a little that no plan is without. The
 * process itself, as a shape-only command of the same plan has it, is no part of it. */
static const struct {
    const char *name, *text;
} many[] = {
#define MLP "model: {kind: mlp, sizes: [4, 8, 4], layer_names: [up, down]}\n"
#define TINY                                                                                       \
    "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, blocks, norm, head, "    \
    "loss]}\nnames: torchtitan\n"
    {"8,192 ranks of a small batch", MLP "data: {rows: 8192}\nmesh: {dp: 8192}\n"},
    {"8,192 ranks that cut a feature",
     "model: {kind: mlp, sizes: [4, 8192, 4], layer_names: [up, down]}\ndata: {rows: 4}\n"
     "mesh: {tp: 8192}\nplan: {up: colwise, down: rowwise}\n"},
    {"8,192 ranks on two axes, backward",
     "model: {kind: mlp, sizes: [4, 64, 4], layer_names: [up, down]}\ndata: {rows: 128}\n"
     "mesh: {dp: 128, tp: 64}\nplan: {up: colwise, down: rowwise}\npass: backward\n"},
    {"pending gradients of 512 ranks",
     "model: {kind: mlp, sizes: [64, 256, 64]}\ndata: {rows: 512}\nmesh: {dp: 512}\n"
     "pass: backward\n"},
    {"dp 64, trained", TINY "data: {batch: 64, sequence: 8}\nmesh: {dp: 64}\npass: train\n"
                            "optimizer: {name: adamw, steps: 2}\n"},
    {"dp 256, fsdp", TINY "data: {batch: 256, sequence: 2}\nmesh: {dp: 256}\npass: backward\n"
                          "data_parallel: {mode: fsdp, axis: dp}\n"},
    {"400 steps", MLP "data: {rows: 64}\nmesh: {dp: 16}\npass: train\n"
                      "optimizer: {name: adamw, steps: 400}\n"},
    {"64 micro-batches", MLP "data: {rows: 1024, microbatches: 64}\nmesh: {dp: 16}\npass: train\n"
                             "optimizer: {name: sgd, steps: 5}\n"},
#undef TINY
};
static void test_estimate_many_ranks(void **state) {
    (void)state;
    const double base = 4;
    char path[] = "/tmp/shardproof-memory-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
        Arena *a = arena_new();
        child_write(path, many[i].text);
        const char *const words[] = {"check", path, "--threads", "2", NULL};
        const char *const shapes[] = {"shapes", path, NULL};
        Ended still = child_run(a, &(Child){.words = shapes, .out = "/dev/null"});
        Ended e = child_run(a, &(Child){.words = words});
        assert_int_equal(e.code, 0);
        PipelineOptions o = {.execute = true, .threads = 1, .memory_limit = 1};
        PipelineReport rep;
        Arena *own = arena_new();
        pipeline_run(own, diags_new(own), "p", many[i].text, strlen(many[i].text), NULL, 0, &o,
                     &rep);
        arena_free(own);
        double predicted = (double)rep.predicted_bytes / 1048576,
               had = (double)(e.max_kib - still.max_kib) / 1024;
        print_message("%s: %.1f MiB expected, %.1f MiB taken\n", many[i].name, predicted, had);
        assert_true(predicted + base >= had && predicted <= 1.6 * had + base);
        arena_free(a);
    }
    unlink(path);
}
/* A slip of a number: refused with the place and what would do, before anything is computed. */
static void test_time_is_told_first(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    PipelineOptions o = {.execute = true, .threads = 1};
    PipelineReport rep;
    const char *plan =
        MLP "mesh: {tp: 2}\npass: train\noptimizer: {name: adamw, steps: 1000000000}\n";
    pipeline_run(a, d, "long.yaml", plan, strlen(plan), NULL, 0, &o, &rep);
    assert_int_equal(rep.exit, 5);
    const Diag *e = &d->item[0];
    for (int i = 0; i < d->n; i++)
        if (!strcmp(d->item[i].code, "E0707")) e = &d->item[i];
    assert_string_equal(e->code, "E0707");
    assert_int_equal(e->loc.line, 4);
    assert_int_equal(e->loc.col, 33);
    assert_non_null(strstr(e->hint, "optimizer.steps"));
    PlanSet few = {"optimizer.steps", "10"};
    d = diags_new(a);
    pipeline_run(a, d, "long.yaml", plan, strlen(plan), &few, 1, &o, &rep);
    assert_int_equal(rep.exit, 0);
    PlanSet most = {"optimizer.steps", "9000000000000000000"}; /* no sum runs over */
    d = diags_new(a);
    pipeline_run(a, d, "long.yaml", plan, strlen(plan), &most, 1, &o, &rep);
    assert_int_equal(rep.exit, 5);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room), cmocka_unit_test(test_limit_is_told_first),
        cmocka_unit_test(test_estimate), cmocka_unit_test(test_estimate_many_ranks),
        cmocka_unit_test(test_time_is_told_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
