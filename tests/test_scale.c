/* What must not grow: memory of a million ranks looked at, allocations and classes, records of many
 * ranks; and that the comparison, which all workers share, says the same whoever does it. It
 * measures no time: that is `make bench`. Runs in the root of the repository. */
#include "base/file.h"
#include "drive/pipeline.h"
#include "tests/support/child.h"
#include "tests/support/support.h"
#include "trace/trace.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

/* ---- many ranks ---- */
static const char *plan_file(Arena *a, const char *path) {
    size_t n;
    char *s = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &n);
    assert_non_null(s);
    return s;
}
static PlanRun run_set(Arena *a, const char *path, const PipelineOptions *o,
                       const char *const *sets) {
    const char *text = plan_file(a, path);
    PlanSet set[8];
    int n = 0;
    for (; sets && sets[n]; n++) {
        char *key = arena_strdup(a, sets[n]), *value = strchr(key, '=');
        *value = 0;
        set[n] = (PlanSet){key, value + 1};
    }
    PlanRun r = {.d = diags_new(a)};
    r.t = pipeline_run(a, r.d, (PlanText){path, text, strlen(text), set, n}, o, &r.rep);
    return r;
}
static const char wide[] = "tests/bench/ranks-8192.yaml";
#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Whoever compares, and in whatever pieces: a wrong run gives the same record, byte for byte. */
static void test_workers_say_the_same(void **state) {
    (void)state;
    static const char *const faults[] = {NULL,          "drop-reduction", "drop-reduce-scatter",
                                         "drop-gather", "average",        "max-for-sum",
                                         "wrong-block"};
    static const char *const shapes[][3] = {{"mesh.dp=2", "data.batch=8", "data.sequence=256"},
                                            {"mesh.dp=16", "data.batch=17", "data.sequence=36"}};
    for (size_t s = 0; s < 2; s++)
        for (size_t f = 0; f < sizeof faults / sizeof faults[0]; f++) {
            Arena *a = arena_new();
            const char *text[2];
            size_t n[2];
            for (int k = 0; k < 2; k++) {
                PipelineOptions o = {.execute = true, .threads = k ? 3 : 1, .fault = faults[f]};
                PlanRun r = run_set(a, wide, &o, SETS(shapes[s][0], shapes[s][1], shapes[s][2]));
                assert_non_null(r.t);
                if (!faults[f]) run_must_be(&r, "equivalent");
                text[k] = trace_text(r.t, a, true, &n[k]);
            }
            assert_int_equal(n[0], n[1]);
            assert_memory_equal(text[0], text[1], n[0]);
            arena_free(a);
        }
}

static long peak_kib(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}
/* A million ranks are one class, or a few, whatever their number. Runs first: ru_maxrss never
 * falls. */
static void test_a_million_ranks(void **state) {
    (void)state;
    static const char *const shapes[][4] = {
        {"mesh.dp=31250", "data.batch=31250", "data.sequence=64", NULL},
        {"mesh.dp=31250", "data.batch=31251", "data.sequence=64",
         NULL}, /* the last ranks get one sample, or none */
        {"mesh.dp=31250", "data.batch=100000", "data.sequence=65",
         NULL}, /* and the sequence is uneven too */
    };
    static const int most[] = {1, 3, 12};
    long before = peak_kib();
    for (size_t s = 0; s < 3; s++) {
        Arena *a = arena_new();
        PipelineOptions o = {.execute = false};
        PlanRun r = run_set(a, wide, &o, shapes[s]);
        assert_non_null(r.t);
        assert_int_equal(r.t->ranks, 1000000);
        assert_in_range(r.t->n_classes, 1, most[s]);
        assert_int_equal(diags_errors(r.d), 0);
        arena_free(a);
    }
    if (slow_machine() > 1)
        print_message("under a tool, which needs memory of its own: the peak of memory is not held "
                      "against its limit\n");
    else assert_in_range(peak_kib() - before, 0, 100 << 10);
}

/* ---- a million uneven ranks, all layers of a large model: memory and text ---- */
static const char giant[] =
    "model: {preset: llama3.1-405b, layers: all, parts: [embedding, blocks, norm, head, loss]}\n"
    "names: torchtitan\nrecipe: torchtitan-llama3\ngroups: {sp: tp}\n";
static const struct {
    const char *name, *text;
    int classes; /* most classes of ranks */
} giants[] = {
    {"forward",
     "data: {batch: 32767, sequence: 4095, dtype: f32}\n"
     "mesh: {dp: 8192, cp: 16, tp: 8}\n",
     8},
    {"FSDP",
     "data: {batch: 131071, sequence: 4095, dtype: f32}\n"
     "mesh: {dp: 131072, tp: 8}\npass: backward\ndata_parallel: {mode: fsdp}\n",
     16},
    {"training",
     "data: {batch: 131071, sequence: 4095, dtype: f32}\n"
     "mesh: {dp: 131072, tp: 8}\npass: train\n"
     "optimizer: {name: adamw, lr: 0.1, steps: 2}\ndata_parallel: {mode: fsdp}\n",
     16},
};
enum { MOST_MIB = 200, MOST_KIB = 160 }; /* of memory; of text, in which equal layers are folded */
static void hold_limits(Arena *a, const char *name, const char *plan) {
    static const char *const commands[] = {"shapes", "comms", "params"};
    for (int i = 0; i < 3; i++) {
        const char *words[] = {commands[i], plan, NULL};
        Ended e = child_run(a, &(Child){.words = words});
        /* many processors tell each other late how many pages they have given */
        for (int again = 0; again < 4 && slow_machine() == 1 && e.max_kib >> 10 > MOST_MIB; again++)
            e = child_run(a, &(Child){.words = words});
        long kib = (long)strlen(e.out) >> 10, mib = e.max_kib >> 10;
        print_message("%-9s %-7s %5ld KiB of text, %4ld MiB of memory\n", name, commands[i], kib,
                      mib);
        assert_int_equal(e.code, 0);
        assert_in_range(kib, 1, MOST_KIB);
        if (slow_machine() == 1) assert_in_range(mib, 1, MOST_MIB);
    }
}
static void test_a_million_uneven_ranks(void **state) {
    (void)state;
    int n = sample_of(sizeof giants / sizeof *giants, "giants");
    for (int i = 0; i < n; i++) {
        Arena *a = arena_new();
        const char *plan = temp_path(a, "giant.yaml");
        const char *text = arena_printf(a, "%s%s", giant, giants[i].text);
        child_write(plan, text);
        hold_limits(a, giants[i].name, plan);
        PlanRun r = plan_run(a, plan, text, false);
        assert_non_null(r.t);
        assert_int_equal(r.t->ranks, 1 << 20);
        assert_in_range(r.t->n_classes, 2, giants[i].classes);
        arena_free(a);
    }
}
/* The work, too: 126 layers ask for the parts of the axes as often as one. */
static void test_layers_share_their_classes(void **state) {
    (void)state;
    int kinds[2];
    for (int k = 0; k < 2; k++) {
        Arena *a = arena_new();
        const char *text = arena_printf(a,
                                        "model: {preset: llama3.1-405b, layers: %s}\nnames: "
                                        "torchtitan\nrecipe: torchtitan-llama3\n"
                                        "groups: {sp: tp}\ndata: {batch: 131071, sequence: 4095, "
                                        "dtype: f32}\nmesh: {dp: 131072, tp: 8}\npass: backward\n",
                                        k ? "all" : "2");
        PlanRun r = plan_run(a, "kinds.yaml", text, false);
        assert_non_null(r.t);
        const TraceLocal *met[4096];
        kinds[k] = 0;
        /* values that lie alike share what is known of them */
        for (int i = 0; i < r.t->n_values; i++) {
            int j = 0;
            while (j < kinds[k] && met[j] != r.t->values[i].shape.local) j++;
            if (j == kinds[k] && j < 4096) met[kinds[k]++] = r.t->values[i].shape.local;
        }
        arena_free(a);
    }
    assert_int_equal(kinds[0], kinds[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_million_ranks),
        cmocka_unit_test(test_layers_share_their_classes),
        cmocka_unit_test(test_a_million_uneven_ranks),
        cmocka_unit_test(test_workers_say_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
