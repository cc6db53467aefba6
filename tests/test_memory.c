/* Memory that will not fit is told before it is allocated, and the estimate is near what the
 * process then has. */
#include "drive/memory.h"
#include "drive/pipeline.h"
#include "support/child.h"
#include "support/support.h"
#include <glob.h>
#include <setjmp.h>
#include <stdio.h>
#include <malloc.h>
#include <math.h>
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
    Ended e = child_run(a, &(Child){.words = words, .limit = RLIMIT_AS, .limit_to = 1L << 29});
    assert_int_equal(e.code, 5);
    assert_non_null(strstr(e.err, "[E0701]"));
    assert_non_null(strstr(e.err, "ulimit -v"));
    assert_non_null(strstr(e.err, "shrink"));
    assert_true(e.max_kib < 200 * 1024);
    const char *const shapes[] = {"shapes", "plans/03-llama3-8b-tp2.yaml", "--set",
                                  "model.shrink=1", NULL};
    e = child_run(a, &(Child){.words = shapes, .limit = RLIMIT_AS, .limit_to = 1L << 29});
    assert_int_equal(e.code, 0);
    arena_free(a);
}
/* What a process that only shows shapes has is no part of the estimate: the measured base. The
 * system counts for a process also what it had before it became the program, which is what this one
 * has: what was freed goes back first. */
static double taken(Arena *a, const char *const *check, const char *const *shapes, int code) {
    malloc_trim(0);
    Ended still = child_run(a, &(Child){.words = shapes, .out = "/dev/null"});
    Ended e = child_run(a, &(Child){.words = check, .out = "/dev/null"});
    assert_int_equal(e.code, code);
    return (double)(e.max_kib - still.max_kib) / 1024;
}
/* The estimate against the most memory that the process took beyond its base, in MiB: within a
 * tenth, or a tenth of 64 MiB where that is more. Nothing in it is fitted. Each processor counts
 * pages for itself and tells the others late, so where there are many the same run is measured up
 * to five times. */
static void near_ending(Arena *a, const char *name, double expected, const char *const *check,
                        const char *const *shapes, int code) {
    bool is = false;
    for (int again = 0; again < 5 && !is; again++) {
        double had = taken(a, check, shapes, code);
        print_message("%s: %.1f MiB expected, %.1f MiB taken\n", name, expected, had);
        is = fabs(expected - had) <= 0.1 * fmax(had, 64);
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
        /* the system counts what the process had before it became another: here that is the most */
        print_message("not compared: a sanitizer's own memory hides what was taken\n");
        is = true;
#endif
    }
    assert_true(is);
}
static void near(Arena *a, const char *name, double expected, const char *const *check,
                 const char *const *shapes) {
    near_ending(a, name, expected, check, shapes, 0);
}
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
    pipeline_run(a, d, (PlanText){plan, text, n, sets, shrink != NULL}, &o, &rep);
    assert_int_equal(diags_exit(d), 5);
    const char *set = shrink ? arena_printf(a, "model.shrink=%s", shrink) : NULL;
    near(a, set ? arena_printf(a, "%s, %s", plan, set) : plan,
         (double)rep.predicted_bytes / 1048576,
         WORDS("check", plan, "--threads", "1", set ? "--set" : NULL, set),
         WORDS("shapes", plan, set ? "--set" : NULL, set));
    arena_free(a);
}
static void test_estimate(void **state) {
    (void)state;
    estimate("plans/03-llama3-8b-tp2.yaml", "4");
    estimate("plans/18-llama3-8b-backward.yaml", "8");
}
/* A picture that says how far every value is from the unsharded model: the ranks keep them all. */
static void test_estimate_distances(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *plan = "plans/18-llama3-8b-backward.yaml";
    size_t n;
    char *text = child_read(a, plan, &n);
    PlanSet sets[] = {{"model.shrink", "8"}};
    PipelineReport with, without;
    PipelineOptions o = {.execute = true, .threads = 1};
    pipeline_run(a, diags_new(a), (PlanText){plan, text, n, sets, 1}, &o, &without);
    o.distances = true;
    pipeline_run(a, diags_new(a), (PlanText){plan, text, n, sets, 1}, &o, &with);
    assert_true(with.predicted_bytes > without.predicted_bytes);
    near(a, "errors", (double)with.predicted_bytes / 1048576,
         WORDS("draw", plan, "--view", "errors", "--format", "text", "--threads", "1", "--set",
               "model.shrink=8"),
         WORDS("shapes", plan, "--set", "model.shrink=8"));
    arena_free(a);
}
/* Every shipped plan that executes, as it is. */
static void test_estimate_plans(void **state) {
    (void)state;
    glob_t found;
    assert_int_equal(glob("plans/*.yaml", 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 20);
    for (size_t i = 0; i < found.gl_pathc; i++) estimate(found.gl_pathv[i], NULL);
    globfree(&found);
}
/* Many ranks: their blocks, what is pending on each, and the tables that hold them. */
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
    {"8,192 ranks of wide rows",
     "model: {kind: mlp, sizes: [64, 256, 64], layer_names: [up, down]}\ndata: {rows: 32768}\n"
     "mesh: {dp: 8192}\n"},
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
    {"dp 512, fsdp", TINY "data: {batch: 512, sequence: 2}\nmesh: {dp: 512}\npass: backward\n"
                          "data_parallel: {mode: fsdp, axis: dp}\n"},
    {"400 steps", MLP "data: {rows: 64}\nmesh: {dp: 16}\npass: train\n"
                      "optimizer: {name: adamw, steps: 400}\n"},
    {"64 micro-batches", MLP "data: {rows: 1024, microbatches: 64}\nmesh: {dp: 16}\npass: train\n"
                             "optimizer: {name: sgd, steps: 5}\n"},
#undef TINY
};
/* Of a plan that is no file. */
static void estimate_text(const char *name, const char *text, CheckHow how, const char *threads) {
    char path[] = "/tmp/shardproof-memory-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    child_write(path, text);
    Arena *a = arena_new();
    PipelineOptions o = {.execute = true, .threads = 1, .memory_limit = 1, .check = how};
    PipelineReport rep;
    Arena *own = arena_new();
    pipeline_run(own, diags_new(own), plan_text("p", text), &o, &rep);
    arena_free(own);
    near(a, name, (double)rep.predicted_bytes / 1048576,
         WORDS("check", path, "--threads", threads, "--check",
               how == CHECK_QUICK ? "quick" : "full"),
         WORDS("shapes", path));
    arena_free(a);
    unlink(path);
}
static void test_estimate_many_ranks(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++)
        estimate_text(many[i].name, many[i].text, CHECK_FULL, "2");
}
/* A product's smaller factor, large itself: each rank has it, so that it is read where it lies; or
 * none has all of it, and it is put together. */
static void test_estimate_quick(void **state) {
    (void)state;
#define SQUARE "model: {kind: mlp, sizes: [3072, 3072], bias: false, layer_names: [up]}\n"
    estimate_text("quick, on every rank",
                  SQUARE "data: {rows: 3000}\nmesh: {tp: 2}\nplan: {up: colwise}\n", CHECK_QUICK,
                  "1");
    estimate_text("quick, in parts", SQUARE "data: {rows: 3000}\nmesh: {dp: 2}\n", CHECK_QUICK,
                  "1");
#undef SQUARE
}
/* ---- wrong runs ---- */
/* The search for the cause of a wrong value takes what is left over, and no run that was said to
 * fit ends for want of memory because it is wrong. */
#define WIDE                                                                                       \
    "model: {kind: mlp, sizes: [512, 64, 2048], activation: relu, layer_names: [up, down]}\n"      \
    "data: {rows: 2048, dtype: f32}\nmesh: {tp: 4}\nplan: {up: colwise, down: rowwise}\n"
#define HEAVY                                                                                      \
    "model: {kind: mlp, sizes: [4096, 4096, 64], activation: relu, layer_names: [up, down]}\n"     \
    "data: {rows: 512, dtype: f32}\nmesh: {tp: 2}\nplan: {up: colwise, down: rowwise}\n"
#define SHARES "add up to the right value"
#define NOT_LOOKED "the cause was not looked for: that takes about "
static const struct {
    const char *name, *text, *cause;
} wrong[] = {
    {"a sum left out", WIDE "faults: [{at: all_reduce of down.product, do: drop}]\n", SHARES},
    {"a mean for a sum", WIDE "faults: [{at: all_reduce of down.product, kind: avg}]\n",
     "averaged over tp instead of summed"},
    {"a bias left out", WIDE "faults: [{at: down, do: drop}]\n", "is not applied"},
    {"another rank's weight", HEAVY "faults: [{at: up.weight, offset: 1}]\n", "of the next rank"},
    {"three times too large", HEAVY "faults: [{at: act1, scale: 3}]\n", "factor of 3"},
};
static double predicted(const char *text) {
    Arena *own = arena_new();
    PipelineOptions o = {.execute = true, .threads = 1, .memory_limit = 1, .check = CHECK_QUICK};
    PipelineReport rep;
    pipeline_run(own, diags_new(own), plan_text("p", text), &o, &rep);
    arena_free(own);
    return (double)rep.predicted_bytes / 1048576;
}
static void test_estimate_wrong_runs(void **state) {
    (void)state;
    char path[] = "/tmp/shardproof-memory-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        Arena *a = arena_new();
        child_write(path, wrong[i].text);
        near_ending(a, wrong[i].name, predicted(wrong[i].text),
                    WORDS("check", path, "--check", "quick", "--threads", "1"),
                    WORDS("shapes", path), 1);
        arena_free(a);
    }
    unlink(path);
}
/* Limits from what is refused up to what is not, in small steps. */
static void test_wrong_run_with_little_left(void **state) {
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    print_message("left out: a sanitizer needs more addresses than any such limit leaves\n");
    return;
#endif
    char path[] = "/tmp/shardproof-memory-XXXXXX";
    int fd = mkstemp(path), short_of = 0;
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        child_write(path, wrong[i].text);
        long limit = (long)(predicted(wrong[i].text) * 1048576);
        for (int fits = 0; fits < 4; limit += 1L << 20) {
            Arena *a = arena_new();
            const char *const words[] = {"check", path, "--check", "quick", "--threads", "1", NULL};
            Ended e = child_run(a, &(Child){.words = words, .limit = RLIMIT_AS, .limit_to = limit});
            const bool refused = e.code == 5, none = strstr(e.err, NOT_LOOKED) != NULL;
            if (refused ? !strstr(e.err, "executing this plan needs")
                        : e.code != 1 || (!none && !strstr(e.err, wrong[i].cause)))
                fail_msg("%s, %ld bytes: exit %d\n%s", wrong[i].name, limit, e.code, e.err);
            fits += !refused;
            short_of += none;
            arena_free(a);
        }
    }
    assert_true(short_of > 0);
    unlink(path);
}
/* What is said to fit ends well with no more than that, though its bounds have scratch memory of
 * their own: a ring's, put together, has blocks of each rank; rows of experts are not cut. */
static void test_right_run_with_little_left(void **state) {
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    print_message("left out: a sanitizer needs more addresses than any such limit leaves\n");
    return;
#endif
    static const char *const run[][3] = {
        {"plans/41-llama3-8b-ring4-zigzag.yaml", "model.shrink=32", "data.sequence=512"},
        {"plans/30-mixtral-8x7b-ep-dp-cp.yaml", "model.shrink=16", "data.sequence=256"},
        {"plans/54-deepseek-v3-latent-ring4.yaml", "model.shrink=64", "data.sequence=512"},
    };
    int close_to = 0;
    for (size_t i = 0; i < sizeof run / sizeof run[0]; i++) {
        long limit = 48L << 20; /* less is too little for the program itself */
        for (int fits = 0; fits < 3; limit += 1L << 20) {
            Arena *a = arena_new();
            const char *const words[] = {"check",     run[i][0], "--set",   run[i][2],
                                         "--set",     run[i][1], "--check", "quick",
                                         "--threads", "1",       NULL};
            Ended e = child_run(a, &(Child){.words = words, .limit = RLIMIT_AS, .limit_to = limit});
            const bool refused = e.code == 5 && strstr(e.err, "executing this plan needs");
            close_to += strstr(e.err, "a sixteenth of which is left alone: ulimit -v") != NULL;
            if (!refused && e.code)
                fail_msg("%s, %ld bytes: exit %d\n%s", run[i][0], limit, e.code, e.err);
            fits += !refused;
            arena_free(a);
        }
    }
    assert_true(close_to > 0); /* refused with more than is needed: it says why */
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
    pipeline_run(a, d, plan_text("long.yaml", plan), &o, &rep);
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
    pipeline_run(a, d, (PlanText){"long.yaml", plan, strlen(plan), &few, 1}, &o, &rep);
    assert_int_equal(rep.exit, 0);
    PlanSet most = {"optimizer.steps", "9000000000000000000"}; /* no sum runs over */
    d = diags_new(a);
    pipeline_run(a, d, (PlanText){"long.yaml", plan, strlen(plan), &most, 1}, &o, &rep);
    assert_int_equal(rep.exit, 5);
    arena_free(a);
}

/* ---- what is offered where a run does not fit ---- */

/* The numbers of a text like "A (B x, C y)" in bytes. */
static int sizes_in(const char *s, double *out, int most) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int n = 0;
    for (; *s && n < most; s++) {
        if (*s < '0' || *s > '9' || s[-1] == '=') continue;
        char *end;
        double x = strtod(s, &end);
        for (int u = 0; u < 5; u++)
            if (*end == ' ' && !strncmp(end + 1, units[u], strlen(units[u])))
                out[n++] = x * pow(1024, u);
        s = end - (*end == 0);
    }
    return n;
}
/* What a run of the plan is refused with, of this code; NULL: not so. In `a`. */
static const Diag *refused_with(Arena *a, const char *code, const char *plan, PlanSet *sets,
                                int n_sets, int64_t limit) {
    size_t n;
    char *text = child_read(a, plan, &n);
    assert_non_null(text);
    PipelineOptions o = {.execute = true, .threads = 1, .memory_limit = limit};
    PipelineReport rep;
    Diags *d = diags_new(a);
    pipeline_run(a, d, (PlanText){plan, text, n, sets, n_sets}, &o, &rep);
    for (int i = 0; i < d->n; i++)
        if (!strcmp(d->item[i].code, code)) return &d->item[i];
    return NULL;
}
static const Diag *refused(Arena *a, const char *plan, PlanSet *sets, int n_sets, int64_t limit) {
    return refused_with(a, "E0701", plan, sets, n_sets, limit);
}
/* The estimate is said in parts that are the whole, whichever pass needs most; what is offered was
 * tried: it fits, and half of it does not. */
static void test_offer(void **state) {
    (void)state;
    static const struct {
        const char *plan, *sequence, *dtype;
        int64_t limit;
    } row[] = {{"plans/18-llama3-8b-backward.yaml", "16384", "f32", (int64_t)9 << 30},
               {"plans/18-llama3-8b-backward.yaml", "4096", "f32", (int64_t)1 << 30},
               {"plans/10-llama3-70b-tp8.yaml", "16384", "f64", (int64_t)6 << 30},
               {"plans/20-llama3-8b-fsdp-tp.yaml", "8192", "f32", (int64_t)9 << 30},
               {"plans/47-llama3-8b-pp2-dp2-tp2.yaml", "4096", "f32", (int64_t)4 << 30}};
    int of_both = 0;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        Arena *a = arena_new();
        PlanSet sets[] = {{"data.sequence", row[i].sequence},
                          {"model.shrink", "1"},
                          {"data.dtype", row[i].dtype}};
        const Diag *d = refused(a, row[i].plan, sets, 3, row[i].limit);
        assert_non_null(d);
        double size[8];
        int n = sizes_in(strstr(d->message, "needs"), size, 8), shrink;
        if (strstr(d->message, "unsharded")) {
            assert_true(n == 4 && fabs(size[0] - size[1] - size[2]) <= 0.011 * size[0]);
            of_both++;
        } else {
            assert_int_equal(n, 2);
        }
        const char *offer = strstr(d->hint, "--set model.shrink=");
        print_message("%s\n  %s\n", d->message, d->hint);
        assert_non_null(offer);
        assert_int_equal(sscanf(offer, "--set model.shrink=%d", &shrink), 1);
        assert_true(shrink > 2); /* or a doubling would do as well */
        sets[1].value = arena_printf(a, "%d", shrink / 2);
        assert_non_null(refused(a, row[i].plan, sets, 3, row[i].limit));
        sets[1].value = arena_printf(a, "%d", shrink);
        double offered;
        assert_true(sizes_in(offer, &offered, 1) == 1);
        assert_true(offered < (double)row[i].limit * 15 / 16);
        d = refused(a, row[i].plan, sets, 3, 1); /* what it then needs, without the run */
        assert_true(d && sizes_in(strstr(d->message, "needs"), size, 8));
        assert_true(size[0] == offered);
        arena_free(a);
    }
    assert_true(of_both > 0 && of_both < (int)(sizeof row / sizeof row[0]));
}
/* What is offered ends under the limit that it was offered for, whatever threads hold besides. */
static void test_offer_under_limit(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *words[] = {"check",     "plans/18-llama3-8b-backward.yaml",
                           "--threads", "2",
                           "--check",   "full",
                           "--set",     "data.sequence=2048",
                           "--set",     "model.shrink=1",
                           NULL};
    Child c = {.words = words, .limit = RLIMIT_AS, .limit_to = 250000L << 10};
    Ended e = child_run(a, &c);
    const char *offer = strstr(e.err, "--set model.shrink=");
    int shrink = 0;
    assert_int_equal(e.code, 5);
    assert_true(offer && sscanf(offer, "--set model.shrink=%d", &shrink) == 1);
    words[9] = arena_printf(a, "model.shrink=%d", shrink);
    e = child_run(a, &c);
    if (e.code) fail_msg("%s: exit %d\n%s", words[9], e.code, e.err);
    arena_free(a);
}
/* Fewer layers are offered with what `expect` says of the others left out, and only that: what is
 * offered then holds. */
static void test_offer_leaves_expect(void **state) {
    (void)state;
    static const struct {
        const char *expect, *leaves[2], *keeps;
    } row[] = {
        {"  local_shapes: {layers.79.output: \"[B/dp, S, D]\"}\n"
         "  collectives: {forward: {all_reduce(tp): 160}}\n",
         {"expect.collectives={}", "expect.local_shapes={}"},
         NULL},
        {"  local_shapes: {layers.0.output: \"[B/dp, S, D]\"}\n"
         "  collectives: {forward: {all_to_all: 0}}\n",
         {NULL, NULL},
         "expect.local_shapes"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        const char *path = temp_path(a, "layers.yaml");
        child_write(path, arena_printf(a,
                                       "model: {preset: llama3-70b, layers: all}\npass: backward\n"
                                       "mesh: {dp: 4, tp: 8}\n"
                                       "data: {batch: 4, sequence: 64, dtype: f32}\n"
                                       "plan:\n  layers.*.attention.w[qkv]: colwise\n"
                                       "  layers.*.attention.wo: rowwise\n"
                                       "  layers.*.feed_forward.w[13]: colwise\n"
                                       "  layers.*.feed_forward.w2: rowwise\n"
                                       "expect:\n  equivalent: true\n%s",
                                       row[i].expect));
        const char *words[16] = {"check", path, "--threads", "2", "--check", "full"};
        Child c = {.words = words, .limit = RLIMIT_AS, .limit_to = 250000L << 10};
        Ended e = child_run(a, &c);
        assert_int_equal(e.code, 5);
        int layers = 0, shrink = 0;
        const char *offer = strstr(e.err, "--set model.layers=");
        assert_true(offer && sscanf(offer, "--set model.layers=%d --set model.shrink=%d", &layers,
                                    &shrink) == 2);
        int n = 6;
        words[n++] = "--set", words[n++] = arena_printf(a, "model.layers=%d", layers);
        words[n++] = "--set", words[n++] = arena_printf(a, "model.shrink=%d", shrink);
        assert_int_equal(strstr(e.err, "what `expect` says") != NULL, row[i].keeps == NULL);
        for (int k = 0; k < 2 && row[i].leaves[k]; k++) {
            assert_int_equal(child_run(a, &c).code, 1); /* as it is said without */
            assert_non_null(strstr(offer, row[i].leaves[k]));
            words[n++] = "--set", words[n++] = row[i].leaves[k];
        }
        e = child_run(a, &c);
        if (e.code) fail_msg("exit %d\n%s", e.code, e.err);
        unlink(path);
        arena_free(a);
    }
}
/* Of a run of weeks the first layers tell: those that are like them take as long. */
static void test_weeks_ahead(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *path = temp_path(a, "weeks.yaml");
    child_write(path, "model: {preset: llama3.1-405b, layers: all, shrink: 1}\nmesh: {tp: 8}\n"
                      "data: {batch: 8, sequence: 16384, dtype: f32}\nrecipe: hf-llama\n");
    const Diag *d = refused_with(a, "E0707", path, NULL, 0, (int64_t)1 << 50);
    const char *hours = d ? strstr(d->message, "more than ") : NULL;
    assert_non_null(hours);
    assert_true(atof(hours + strlen("more than ")) > 500);
    unlink(path);
    arena_free(a);
}
/* A run that would take too long is offered a shrink that ends in time and fits: half of it would
 * not. Where memory is short too, both errors offer the same. Nothing is run: what is not known to
 * be refused is asked for with a limit of one byte, which refuses it. */
static void test_offer_of_time(void **state) {
    (void)state;
    const char *plan = "plans/05-llama3-8b-tp4-sp.yaml";
    const int64_t limits[] = {(int64_t)1 << 50, (int64_t)160 << 30};
    int offers[2];
    for (int k = 0; k < 2; k++) {
        Arena *a = arena_new();
        PlanSet sets[] = {{"data.sequence", "1200000"}, {"data.batch", "1"}, {"model.shrink", "1"}};
        assert_non_null(refused_with(a, "E0707", plan, sets, 3, 1));
        const Diag *d = refused_with(a, "E0707", plan, sets, 3, limits[k]);
        print_message("%s\n  %s\n", d->message, d->hint);
        const char *offer = strstr(d->hint, "--set model.shrink=");
        assert_true(offer && sscanf(offer, "--set model.shrink=%d", &offers[k]) == 1);
        assert_true(k || strstr(offer, " hours)"));
        if (k) {
            d = refused(a, plan, sets, 3, limits[k]);
            assert_true(d && strstr(d->hint, arena_printf(a, "shrink=%d needs", offers[k])));
        }
        double size;
        sets[2].value = arena_printf(a, "%d", offers[k] / 2);
        d = refused(a, plan, sets, 3, 1);
        assert_true(d && sizes_in(strstr(d->message, "needs"), &size, 1) == 1);
        assert_true(refused_with(a, "E0707", plan, sets, 3, 1) || size > (double)limits[k] * 0.93);
        sets[2].value = arena_printf(a, "%d", offers[k]);
        assert_null(refused_with(a, "E0707", plan, sets, 3, 1));
        arena_free(a);
    }
    assert_true(offers[1] > offers[0] && offers[0] > 1);
}
/* Full widths for hours are no slip, and nobody asked for them: what is offered ends within one.
 * `shrink: 1` asks, so does --full. Nothing is run: see above. */
static void test_long_runs_are_asked_for(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *path = temp_path(a, "full.yaml");
    child_write(path, "mesh: {dp: 2, tp: 8}\nmodel: {preset: llama3.1-405b, layers: all}\n"
                      "data: {dtype: f32}\nrecipe: torchtitan-llama3\n");
    const Diag *d = refused_with(a, "E0707", path, NULL, 0, 1);
    assert_non_null(d);
    assert_int_equal(d->loc.line, 2);
    assert_non_null(strstr(d->message, "its full widths must be asked for"));
    assert_non_null(strstr(d->hint, "--full or `shrink: 1`"));
    d = refused_with(a, "E0707", path, NULL, 0, (int64_t)1 << 40);
    const char *offer = strstr(d->hint, "--set model.shrink=");
    int shrink = 0;
    assert_true(offer && sscanf(offer, "--set model.shrink=%d", &shrink) == 1 && shrink > 1);
    assert_null(strstr(d->hint, "hour"));
    PlanSet set = {"model.shrink", arena_printf(a, "%d", shrink)};
    assert_null(refused_with(a, "E0707", path, &set, 1, 1));
    set.value = "1";
    assert_null(refused_with(a, "E0707", path, &set, 1, 1));
    assert_non_null(refused_with(a, "E0701", path, &set, 1, 1));
    const char *full[] = {"check", path, "--full", "-v", NULL};
    Ended e = child_run(a, &(Child){.words = full, .limit = RLIMIT_AS, .limit_to = 1L << 30});
    assert_null(strstr(e.err, "must be asked for"));
    assert_non_null(strstr(e.err, "needs"));
    unlink(path);
    arena_free(a);
}
/* What is refused points at the size that is the cause: that of the data where less of it would do,
 * whichever of its keys that is and wherever it stands, else the model. */
static void test_cause(void **state) {
    (void)state;
    static const char *const long_text =
        "model: {preset: llama3-8b, layers: 1, shrink: 16}\nmesh: {tp: 2}\ndata:\n"
        "  batch: %s\n  sequence: %s\n  dtype: f32\n";
    static const struct {
        const char *batch, *sequence, *shrink;
        int line;
    } row[] = {{"1", "65536", "16", 5}, {"4096", "256", "16", 4}, {"1", "32", "1", 1}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(a, long_text, row[i].batch, row[i].sequence);
        PlanSet set = {"model.shrink", row[i].shrink};
        PipelineOptions o = {.execute = true, .threads = 1, .memory_limit = 1 << 20};
        PipelineReport rep;
        Diags *d = diags_new(a);
        pipeline_run(a, d, (PlanText){"large.yaml", text, strlen(text), &set, i == 2}, &o, &rep);
        const Diag *e = NULL;
        for (int k = 0; k < d->n; k++)
            if (!strcmp(d->item[k].code, "E0701")) e = &d->item[k];
        assert_non_null(e);
        assert_string_equal(e->loc.file, "large.yaml");
        assert_int_equal(e->loc.line, row[i].line);
        PlanSet own = {i == 1 ? "data.batch" : "data.sequence", i == 1 ? "8192" : "131072"};
        d = diags_new(a);
        pipeline_run(a, d, (PlanText){"large.yaml", text, strlen(text), &own, 1}, &o, &rep);
        for (int k = 0; k < d->n; k++)
            if (!strcmp(d->item[k].code, "E0701"))
                assert_string_equal(d->item[k].loc.file, "--set");
        arena_free(a);
    }
}
/* A plan that fits with fewer threads is offered them, as many as do; and it then fits. */
static void test_offer_of_threads(void **state) {
    (void)state;
    static const char name[] = "plans/07-llama3-8b-cp4.yaml";
    PlanSet sets[] = {{"data.sequence", "1024"}, {"model.shrink", "64"}};
    const int64_t limit = (int64_t)64 << 20;
    for (int threads = 64; threads;) {
        Arena *a = arena_new();
        size_t n;
        char *text = child_read(a, name, &n);
        assert_non_null(text);
        PipelineOptions o = {.execute = true, .threads = threads, .memory_limit = limit};
        PipelineReport rep;
        Diags *d = diags_new(a);
        pipeline_run(a, d, (PlanText){name, text, n, sets, 2}, &o, &rep);
        const Diag *e = NULL;
        for (int k = 0; k < d->n; k++)
            if (!strcmp(d->item[k].code, "E0701")) e = &d->item[k];
        assert_true((threads == 64) == (e != NULL));
        const char *offer = e ? strstr(e->hint, "use fewer threads (--threads ") : NULL;
        assert_true(!e || offer);
        threads = offer ? atoi(strstr(offer, "--threads ") + 10) : 0;
        assert_true(!offer || (threads >= 1 && threads < 64));
        arena_free(a);
    }
}
/* Values that are kept for their distances are not what a run is refused for: the room that decides
 * on them is without the stacks of threads too. */
static void test_distances_and_stacks(void **state) {
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    print_message("left out: a sanitizer needs more addresses than any such limit leaves\n");
    return;
#endif
    char dir[] = "/tmp/shardproof-memory-XXXXXX";
    assert_non_null(mkdtemp(dir));
    Arena *a = arena_new();
    const char *const words[] = {"run",       "plans/33-qwen3-30b-a3b-ep.yaml",
                                 "--threads", "16",
                                 "--set",     "data.sequence=128",
                                 "-o",        dir,
                                 NULL};
    /* with their distances it needs 177 MiB, without them 123 */
    Ended e = child_run(a, &(Child){.words = words, .limit = RLIMIT_AS, .limit_to = 240000L << 10});
    assert_int_equal(e.code, 5);
    assert_non_null(strstr(e.err, "executing this plan needs about 12"));
    arena_free(a);
    rmdir(dir);
}
/* Where no width is small enough nothing is promised; nor where widths are none to divide. */
static void test_no_offer(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanSet sets[] = {{"data.sequence", "16384"}};
    const Diag *d = refused(a, "plans/18-llama3-8b-backward.yaml", sets, 1, 1 << 20);
    assert_true(d && strstr(d->hint, "no `shrink` alone is enough"));
    sets[0] = (PlanSet){"data.rows", "100000000"};
    d = refused(a, "plans/01-column-row-mlp.yaml", sets, 1, 1 << 20);
    assert_true(d && strstr(d->hint, "fewer rows") && !strstr(d->hint, "shrink"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_room),
                                       cmocka_unit_test(test_limit_is_told_first),
                                       cmocka_unit_test(test_estimate),
                                       cmocka_unit_test(test_estimate_distances),
                                       cmocka_unit_test(test_estimate_plans),
                                       cmocka_unit_test(test_estimate_many_ranks),
                                       cmocka_unit_test(test_estimate_quick),
                                       cmocka_unit_test(test_estimate_wrong_runs),
                                       cmocka_unit_test(test_wrong_run_with_little_left),
                                       cmocka_unit_test(test_right_run_with_little_left),
                                       cmocka_unit_test(test_time_is_told_first),
                                       cmocka_unit_test(test_offer),
                                       cmocka_unit_test(test_offer_under_limit),
                                       cmocka_unit_test(test_offer_leaves_expect),
                                       cmocka_unit_test(test_weeks_ahead),
                                       cmocka_unit_test(test_offer_of_time),
                                       cmocka_unit_test(test_long_runs_are_asked_for),
                                       cmocka_unit_test(test_cause),
                                       cmocka_unit_test(test_offer_of_threads),
                                       cmocka_unit_test(test_distances_and_stacks),
                                       cmocka_unit_test(test_no_offer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
