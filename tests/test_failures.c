/* Every allocation and every file operation of the real binary fails once, one after the other
 * (tests/trip): of our own code, of libyaml and of Jansson. The run is then either right to the
 * last byte, or it ends with the exit code for it (5, 4), says so, and every file is the old one.
 * GLib, Pango, Cairo and fontconfig may die of it; the files stay too. Some points of each command
 * here; with SHARDPROOF_SOAK=SEED all of a command that has up to SOAK_POINTS, of longer ones (of
 * the text libraries' tens of thousands) every so many-th, from where the seed says: as many seeds
 * in a row as the printed number of classes are all of them. */
#include "support/child.h"
#include "support/sandbox.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_FILES = 12 };

static Arena *one; /* of one run */
static int setup(void **state) { return sandbox_plan(state) || mkdir(in("o"), 0777) ? -1 : 0; }

/* A command, the files it writes, and what they are when all goes well. */
typedef struct {
    const char *words[12];
    const char *file[MAX_FILES];
    size_t n[MAX_FILES];
    const char *want[MAX_FILES], *out;
} Job;
static void fill_old(const Job *j) {
    for (int i = 0; i < MAX_FILES && j->file[i]; i++) child_write(j->file[i], "old");
}
/* Files that are the old ones, and files that are the new ones. */
static void look(const Job *j, int *old, int *fresh, int *files) {
    *old = *fresh = *files = 0;
    for (; *files < MAX_FILES && j->file[*files]; ++*files) {
        size_t n;
        const char *have = child_read(one, j->file[*files], &n);
        *old += have && n == 3 && memcmp(have, "old", 3) == 0;
        *fresh += have && n == j->n[*files] && memcmp(have, j->want[*files], n) == 0;
    }
}
typedef enum { ALLOC, IO } What;
/* Operations of the job when none fails. */
static long learn(Job *j, What what, const char *whom) {
    const char *count = in("count"), zero[8] = {0};
    FILE *f = fopen(count, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(zero, 1, 8, f), 8);
    fclose(f);
    const char *env[] = {arena_printf(arena, "LD_PRELOAD=%s", child_preload(arena, "trip.so")),
                         what == IO ? "TRIP_WHAT=io" : "TRIP_WHAT=alloc",
                         arena_printf(arena, "TRIP_COUNT=%s", count),
                         arena_printf(arena, "TRIP_FROM%s", whom), NULL};
    fill_old(j);
    Ended e = child_run(arena, &(Child){.words = j->words, .env = env});
    if (e.code) print_error("%s", e.err);
    assert_int_equal(e.code, 0);
    j->out = e.out;
    for (int i = 0; i < MAX_FILES && j->file[i]; i++) {
        j->want[i] = child_read(arena, j->file[i], &j->n[i]);
        assert_true(j->want[i] && j->n[i] != 3);
    }
    int64_t n;
    f = fopen(count, "rb");
    assert_int_equal(fread(&n, 8, 1, f), 1);
    fclose(f);
    assert_int_equal(unlink(count), 0);
    assert_true(n > 0);
    return (long)n;
}
/* One run in which number `at` fails (and all after it with `on`). `strict`: it must end as we say.
 * True if it failed. */
static bool attempt(Job *j, What what, const char *whom, long at, bool on, bool strict) {
    one = arena_new();
    const char *env[] = {arena_printf(one, "LD_PRELOAD=%s", child_preload(one, "trip.so")),
                         what == IO ? "TRIP_WHAT=io" : "TRIP_WHAT=alloc",
                         arena_printf(one, "TRIP_FROM%s", whom),
                         arena_printf(one, "TRIP_AT=%ld", at),
                         arena_printf(one, "TRIP_LAST=%ld", on ? 1000000000L : at),
                         NULL};
    fill_old(j);
    Ended e = child_run(one, &(Child){.words = j->words, .env = env});
    int old, fresh, files, left = child_count(dir, ".tmp") + child_count(in("o"), ".tmp"),
                           code = what == IO ? 4 : 5;
    look(j, &old, &fresh, &files);
    bool whole = e.code == 0 && fresh == files && strcmp(e.out, j->out) == 0;
    bool told =
        e.code == code && strstr(e.err, what == IO ? "[E0105]" : "[E0701]") && e.n_err < 3000;
    /* of several files those that could be written may be new */
    bool kept =
        what == IO ? old + fresh == files : (files > 1 ? old + fresh == files : old == files);
    bool good =
        left == 0 && (strict ? whole || (told && kept) : e.code == 0 || old + fresh == files);
    if (!good)
        print_error("%s %s: %s number %ld%s: exit %d, %d files, %d old, %d new, %d left\n%s",
                    j->words[0], j->words[1], what == IO ? "file operation" : "allocation", at,
                    on ? " and all after" : "", e.code, files, old, fresh, left, e.err);
    assert_true(good);
    arena_free(one);
    return e.code != 0;
}
/* Of the soak: at most so many points of one command; its seed, -1: this is none. */
enum { SOAK_POINTS = 1000 };
static long soak_seed(void) {
    const char *seed = getenv("SHARDPROOF_SOAK");
    return seed ? labs(strtol(seed, NULL, 10)) : -1;
}
/* How far apart are the points, of n: every number with that rest. */
static long points_apart(const Job *j, long n, int points, long *rest) {
    long seed = soak_seed(), most = seed < 0 ? points : SOAK_POINTS,
         step = n <= most  ? 1
                : seed < 0 ? n / most
                           : (n + most - 1) / most;
    *rest = (seed < 0 ? 4 : seed) % step;
    if (seed >= 0)
        print_message("%s, %s: class %ld of %ld, of %ld points\n", j->words[0],
                      j->file[0] ? strrchr(j->file[0], '/') + 1 : "no file", *rest, step, n);
    return step;
}
/* `points` of all; the first ones and the last always. */
static void torture(Job *j, What what, const char *whom, int points, bool strict) {
    long n = learn(j, what, whom), failed = 0, rest, step = points_apart(j, n, points, &rest);
    for (long at = 1; at <= n; at++) {
        if (at > 4 && at % step != rest) continue;
        failed += attempt(j, what, whom, at, false, strict);
        /* without memory for good fontconfig may look for it for ever; before a picture is begun it
         * is made sure of */
        if (strict && at % 3 == 1) attempt(j, what, whom, at, true, true);
    }
    attempt(j, what, whom, n, false, strict);
    assert_true(!strict || failed > n / step / 2);
}

static Job job_check(void) { return (Job){.words = {"check", in("plan.yaml"), "--threads", "1"}}; }
static Job job_save(const char *option, const char *file) {
    return (Job){.words = {"check", in("plan.yaml"), "--threads", "1", option, in(file)},
                 .file = {in(file)}};
}
static Job job_draw(const char *view, const char *file) {
    return (Job){.words = {"draw", in("plan.yaml"), "--view", view, "-o", in(file)},
                 .file = {in(file)}};
}
static Job job_run(void) {
    return (Job){
        .words = {"run", in("plan.yaml"), "--threads", "1", "-o", in("o")},
        .file = {in("o/small.trace.jsonl"), in("o/small.block.svg"), in("o/small.block.png"),
                 in("o/small.timeline.svg"), in("o/small.timeline.png"), in("o/small.overview.svg"),
                 in("o/small.shards.svg"), in("o/small.memory.svg"), in("o/small.errors.svg"),
                 in("o/small.storyboard.svg"), in("o/small.mesh.svg")}};
}

/* ---- memory ---- */
static void test_memory_of_check(void **state) {
    (void)state;
    Job j = job_check();
    torture(&j, ALLOC, "", 60, true);
    Job save = job_save("--save-values", "v.st");
    torture(&save, ALLOC, "", 20, true);
}
/* Jansson: a trace is read line by line, a config whole. */
static void test_memory_of_json(void **state) {
    (void)state;
    Job make = {.words = {"check", in("plan.yaml"), "--trace", in("trace.jsonl")}};
    assert_int_equal(child_run(arena, &(Child){.words = make.words}).code, 0);
    Job j = {.words = {"shapes", in("trace.jsonl"), "--format", "json", "-o", in("s.json")},
             .file = {in("s.json")}};
    torture(&j, ALLOC, "", 40, true);
    child_write(in("config.json"), "{\"model_type\": \"llama\", \"hidden_size\": 16, "
                                   "\"num_hidden_layers\": 1, \"num_attention_heads\": 2,\n"
                                   "\"num_key_value_heads\": 2, \"intermediate_size\": 24, "
                                   "\"vocab_size\": 32, \"rms_norm_eps\": 1e-5}\n");
    child_write(in("hf.yaml"), "model: {hf_config: config.json}\nmesh: {tp: 2}\nnames: hf\nplan:\n "
                               " model.layers.*.mlp.up_proj: colwise\n");
    Job hf = {.words = {"params", in("hf.yaml")}};
    torture(&hf, ALLOC, "", 30, true);
}
static void test_memory_of_draw(void **state) {
    (void)state;
    Job svg = job_draw("block", "x.svg");
    torture(&svg, ALLOC, "=ours", 30, true);
    Job text = job_draw("mesh", "x.txt");
    torture(&text, ALLOC, "", 25, true);
    Job png = job_draw("block", "x.png");
    torture(&png, ALLOC, "=ours", 10, true);
}
static void test_memory_of_run(void **state) {
    (void)state;
    Job j = job_run();
    torture(&j, ALLOC, "=ours", 12, true);
}
/* What the text libraries do without memory is theirs; that no file suffers is ours. */
static void test_memory_of_libraries(void **state) {
    (void)state;
    Job svg = job_draw("block", "x.svg"), png = job_draw("timeline", "x.png"),
        pdf = job_draw("mesh", "x.pdf");
    torture(&svg, ALLOC, "=others", 20, false);
    torture(&png, ALLOC, "=others", 10, false);
    torture(&pdf, ALLOC, "=others", 10, false);
}

/* ---- files ---- */
static void test_file_operations(void **state) {
    (void)state;
    Job save = job_save("--save-values", "v.st"), trace = job_save("--trace", "t.jsonl");
    Job draw = job_draw("mesh", "x.svg"), text = job_draw("mesh", "x.txt"), run = job_run();
    torture(&save, IO, "", 60, true);
    torture(&trace, IO, "", 60, true);
    torture(&draw, IO, "", 30, true);
    torture(&text, IO, "", 30, true);
    torture(&run, IO, "", 16, true);
}
/* Files of numbers that shrink while they are read: each ranged read finds the end once, of the
 * weights and of the values to compare with. The zeros that stand in for what is gone are never
 * believed. */
static void test_shrinking_files(void **state) {
    (void)state;
    const char *weights = arena_printf(arena, "model.weights=%s", in("v.st")),
               *trip = arena_printf(arena, "LD_PRELOAD=%s", child_preload(arena, "trip.so"));
    assert_int_equal(
        child_run(arena, &(Child){.words = job_save("--save-values", "v.st").words}).code, 0);
    for (int which = 0; which < 2; which++) {
        const char *words[] = {"check",
                               in("plan.yaml"),
                               "--threads",
                               "1",
                               which ? "--against" : "--set",
                               which ? in("v.st") : weights,
                               NULL};
        int ended = 0, n = 1;
        for (; !ended; n++) {
            one = arena_new();
            const char *env[] = {trip, "TRIP_WHAT=end", arena_printf(one, "TRIP_AT=%d", n), NULL};
            Ended e = child_run(one, &(Child){.words = words, .env = env});
            ended = e.code == 0;
            bool told = e.code == 3 && (strstr(e.err, "[E0102]") || strstr(e.err, "[E0109]"));
            /* weights are part of the verdict; another's values are beside it */
            told &= which ? !strstr(e.out, "against ") || strstr(e.out, "not read")
                          : !strstr(e.out, "equivalent");
            if (!ended && !told)
                fail_msg("%s, read %d: exit %d\n%s%s", words[5], n, e.code, e.out, e.err);
            assert_true(n < 200);
            arena_free(one);
        }
        assert_true(n > 5); /* length, header, and more than one tensor */
    }
}
/* The plan itself is the output: it is never lost. */
static void test_update_expect(void **state) {
    (void)state;
    const char *trip = arena_printf(arena, "LD_PRELOAD=%s", child_preload(arena, "trip.so"));
    for (int what = ALLOC; what <= IO; what++)
        for (int n = 1, ended = 0, step = what == IO || getenv("SHARDPROOF_SOAK") ? 1 : 60; !ended;
             n += step) {
            one = arena_new();
            child_write(in("plan.yaml"), SMALL_PLAN);
            const char *env[] = {trip, what == IO ? "TRIP_WHAT=io" : "TRIP_WHAT=alloc",
                                 arena_printf(one, "TRIP_AT=%d", n), NULL};
            Ended e = child_run(
                one, &(Child){.words = (const char *[]){"check", in("plan.yaml"), "--threads", "1",
                                                        "--update-expect", NULL},
                              .env = env});
            const char *have = child_read(one, in("plan.yaml"), NULL);
            bool fresh = strlen(have) > strlen(SMALL_PLAN) && strstr(have, "\nexpect:") &&
                         strncmp(have, SMALL_PLAN, strlen(SMALL_PLAN)) == 0;
            assert_true(fresh || strcmp(have, SMALL_PLAN) == 0);
            assert_true(e.code == 0 ? fresh : e.code == (what == IO ? 4 : 5));
            assert_int_equal(child_count(dir, ".tmp"), 0);
            ended = e.code == 0 && n > 20;
            assert_true(n < 5000);
            arena_free(one);
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, sandbox_gone)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_memory_of_check), TEST(test_memory_of_json),      TEST(test_memory_of_draw),
        TEST(test_memory_of_run),   TEST(test_memory_of_libraries), TEST(test_file_operations),
        TEST(test_shrinking_files), TEST(test_update_expect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
