/* --cuda=virtual as a user meets it: the real binary beside a plug-in whose GPU is the process
 * itself (trip/gpu.c). What it checks and records is what the host's run does; each way in which
 * there is no GPU, or one that fails, ends in time, in words, with nothing half-written. The
 * numbers of kernels are test_ops' and test_device's. */
#include "cost/cost.h"
#include "support/child.h"
#include "support/sandbox.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RUN(...) child_run(arena, &(Child){.words = WORDS(__VA_ARGS__)})
#define RUN_AS(how, ...)                                                                           \
    child_run(arena, &(Child){.words = WORDS(__VA_ARGS__),                                         \
                              .env = (const char *const[]){"SHARDPROOF_GPU=" how, NULL}})

static void copy(const char *from, const char *to) {
    size_t n;
    char *bytes = child_read(arena, from, &n);
    FILE *f = fopen(to, "wb");
    assert_true(bytes && f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}
/* The program in the test's folder, with the plug-in beside it or without. */
static int with_plugin(void **state) {
    sandbox_plan(state);
    child_use(in("shardproof"));
    copy(child_beside(arena, "gpu.so"), in("shardproof-cuda.so"));
    return 0;
}
static int gone(void **state) {
    child_use(NULL);
    return sandbox_gone(state);
}
static const char *trace_of(const char *plan, const char *name, const char *cuda, int code) {
    const char *to = in(name);
    Ended e = RUN("check", plan, "--trace", to, cuda);
    child_expect(&e, code, "");
    return to;
}
static void expect_out(const Ended *e, const char *text) {
    if (!strstr(e->out, text)) fail_msg("no \"%s\" in:\n%s%s", text, e->out, e->err);
}

/* ---- the plug-in itself ---- */
/* What it asks of CUDA and of cuBLASLt, which are the tests' own (trip/cuda_host.c): memory,
 * streams, launches as wide as they are, products by their descriptors in each type, events; and a
 * GPU that it has no kernels for. */
static void test_host_code(void **state) {
    (void)state;
    const char *own = child_built(arena, "cuda_host.so");
    if (!own) {
        print_message("CUDA's plug-in is not tried: no toolkit with cublasLt.h\n");
        skip();
    }
    copy(own, in("shardproof-cuda.so"));
    setenv("SHARDPROOF_CUBLASLT", in("shardproof-cuda.so"), 1);
    static const char *const runs[][2] = {{"plans/05-llama3-8b-tp4-sp.yaml", "f32"},
                                          {"plans/18-llama3-8b-backward.yaml", "f32"},
                                          {"plans/18-llama3-8b-backward.yaml", "f64"},
                                          {"plans/18-llama3-8b-backward.yaml", "bf16"},
                                          {"plans/bugs/04-wrong-block.yaml", "f32"}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const char *dtype = arena_printf(arena, "data.dtype=%s", runs[i][1]);
        Ended host = RUN("check", runs[i][0], "--set", dtype, "--trace", in("host.jsonl")),
              gpu = RUN("check", runs[i][0], "--set", dtype, "--cuda=virtual", "--trace",
                        in("gpu.jsonl"));
        child_expect(&host, 0, "");
        child_expect(&gpu, 0, "");
        Ended e = RUN("diff", in("host.jsonl"), in("gpu.jsonl"));
        child_expect(&e, 0, "");
        e = RUN("times", in("gpu.jsonl"));
        child_expect(&e, 0, "");
    }
    static const char *const others[][2] = {
        {"FAKE_CAPABILITY=75", "of compute capability 7.5: the kernels want 8.0 or more) [E0601]"},
        {"FAKE_IMAGE=none", "no kernel image is available for execution on the device; make"}};
    for (size_t i = 0; i < 2; i++) {
        Ended e = child_run(arena, &(Child){.words = WORDS("check", runs[0][0], "--cuda=virtual"),
                                            .env = (const char *const[]){others[i][0], NULL}});
        child_expect(&e, 5, others[i][1]);
    }
    unsetenv("SHARDPROOF_CUBLASLT");
}

/* ---- the same checks ---- */
/* Right ones and planted mistakes: exit codes, what is found and why are those of the host, and the
 * records are, but for where they ran. */
static void test_same_records(void **state) {
    (void)state;
    static const char *const plans[] = {
        "plans/01-column-row-mlp.yaml",           "plans/09-llama3-8b-dp2-cp2-tp2.yaml",
        "plans/14-qwen2-bias-tp2.yaml",           "plans/bugs/03-missing-reduction.yaml",
        "plans/bugs/04-wrong-block.yaml",         "plans/bugs/07-sequence-not-cut.yaml",
        "plans/bugs/38-positions-from-zero.yaml", "plans/bugs/58-rows-not-gathered-over-etp.yaml"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const char *host = trace_of(plans[i], "host.jsonl", NULL, 0),
                   *gpu = trace_of(plans[i], "gpu.jsonl", "--cuda=virtual", 0);
        Ended e = RUN("diff", host, gpu);
        child_expect(&e, 0, "");
        expect_out(&e, strstr(plans[i], "/07-") /* it is not executed */
                           ? "no difference\n"
                           : "no difference: the records of virtual and cuda are equal once "
                             "backend, times and magnitudes are left out\n");
    }
    Ended e = RUN("diff", in("host.jsonl"), in("host.jsonl"));
    expect_out(&e, "no difference: the records are equal once times are left out\n");
}
/* What is left out is no more than that: another verdict, rank, index or cause is a difference. */
static void test_diff_sees(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        int code;
    } edits[] = {{"\"verdict\":\"PASS\"", "\"verdict\":\"FAIL\"", 1},
                 {"\"count\":", "\"count\":1", 1},
                 {"\"cause\":\"", "\"cause\":\"not ", 1},
                 {"\"index\":[0", "\"index\":[1", 1},
                 {"\"max_abs\":", "\"max_abs\":1", 0},
                 {"\"end\":", "\"end\":1", 0}};
    const char *plan = "plans/bugs/04-wrong-block.yaml",
               *host = trace_of(plan, "host.jsonl", NULL, 0),
               *gpu = trace_of(plan, "gpu.jsonl", "--cuda=virtual", 0);
    size_t n;
    const char *text = child_read(arena, gpu, &n);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        const char *at = strstr(text, edits[i].from);
        if (!at) fail_msg("no %s", edits[i].from);
        const char *other =
            put("other.jsonl",
                arena_printf(arena, "%s%s%s", arena_strndup(arena, text, (size_t)(at - text)),
                             edits[i].to, at + strlen(edits[i].from)));
        Ended e = RUN("diff", host, other);
        if (e.code != edits[i].code) fail_msg("%s: %d\n%s", edits[i].from, e.code, e.out);
        if (e.code) expect_out(&e, "record");
    }
}
/* Many plans in one check, in each format that records have; level 3 is the host's. */
static void test_check(void **state) {
    (void)state;
    Ended e = RUN("check", "plans/01-column-row-mlp.yaml", "plans/bugs/04-wrong-block.yaml",
                  "--cuda=virtual");
    child_expect(&e, 0, "");
    expect_out(&e, "2 plans hold\n");
    e = RUN("check", "plans/01-column-row-mlp.yaml", "--cuda=virtual", "--format", "jsonl");
    child_expect(&e, 0, "");
    expect_out(&e, "\"backend\":\"cuda\"");
    expect_out(&e, "\"type\":\"measured\"");
    e = RUN("check", in("plan.yaml"), "--cuda=virtual", "--exact", "--check", "quick");
    child_expect(&e, 0, "");
    e = RUN("check", in("plan.yaml"), "--cuda=virtual", "--fault", "drop");
    if (e.code == 0) fail_msg("a planted mistake held: %s", e.out);
    e = RUN("check", in("plan.yaml"), "--cuda=virtual", "--static");
    child_expect(&e, 2, "--cuda wants a run");
    e = RUN("check", in("plan.yaml"), "--cuda=virtual", "--update-expect");
    child_expect(&e, 2, "it is another run");
}
/* Times by the GPU's clock: of each step on each rank, in a picture and a table of their own. */
static void test_measured(void **state) {
    (void)state;
    const char *gpu =
        trace_of("plans/09-llama3-8b-dp2-cp2-tp2.yaml", "gpu.jsonl", "--cuda=virtual", 0);
    Ended e = RUN("draw", gpu, "--view", "timeline", "--measured", "--format", "text");
    child_expect(&e, 0, "");
    expect_out(&e, "causal attention");
    e = RUN("times", gpu, "--format", "csv"); /* kernels have a ratio, copies in its memory none */
    child_expect(&e, 0, "");
    int moves = 0, kernels = 0;
    for (const char *s = e.out; (s = strchr(s, '\n')) && s[1]; s++) {
        const char *cell[10] = {s};
        for (int k = 1; k < 10; k++) cell[k] = strchr(cell[k - 1] + 1, ',');
        double modelled = atof(cell[7] + 1), took = atof(cell[8] + 1), ratio = atof(cell[9] + 1);
        assert_true(modelled > 0 && took > 0);
        bool move = cell[4][1] != ',';
        assert_true(move ? cell[9][1] == ',' : fabs(ratio * modelled - took) < 1e-6 * took);
        *(move ? &moves : &kernels) += 1;
    }
    assert_true(moves == 6 && kernels > 12);
    expect_out(&(Ended){.out = RUN("times", gpu).out, .err = ""}, "measured on one GPU");
    size_t n, records = 0, longer = 0;
    for (char *s = child_read(arena, gpu, &n); (s = strstr(s, "\"type\":\"measured\"")); s++) {
        double start = 0, end = 0;
        assert_non_null(strstr(s, "\"end\":"));
        if (strstr(s, "\"start\":") < strchr(s, '\n')) start = atof(strstr(s, "\"start\":") + 8);
        end = atof(strstr(s, "\"end\":") + 6);
        records++;
        longer += end > start;
    }
    assert_true(records >= 8 * 20 && longer > records / 2);
}

/* A profile of the GPU, which the model of time reads: its own rates, another profile's links. */
static void test_calibrate(void **state) {
    (void)state;
    const char *file = put("gpu.yaml", "old");
    Ended e = RUN("calibrate", "--cuda", "--hardware", "a100-80g", "-o", file);
    child_expect(&e, 0, "");
    Diags *d = diags_new(arena);
    const Hardware *h = hardware_find(arena, d, file, NULL, diag_nowhere),
                   *links = hardware_find(arena, d, "a100-80g", NULL, diag_nowhere);
    assert_true(h && links);
    assert_true(h->flops_f32 > 0 && h->flops_f64 > 0 && h->flops_bf16 > 0);
    assert_true(h->flops_bf16 != h->flops_f32);
    assert_true(h->memory_bandwidth > 0 && h->kernel_overhead > 0);
    assert_true(h->kernel_overhead < 0.1 && h->memory == (int64_t)1 << 34);
    assert_true(h->intra_bandwidth == links->intra_bandwidth &&
                h->inter_latency == links->inter_latency);
    size_t n;
    assert_non_null(strstr(child_read(arena, file, &n), "those of a100-80g"));
    put("gpu.yaml", "old"); /* what goes wrong leaves it */
    e = RUN_AS("launch 3", "calibrate", "--cuda", "-o", file);
    child_expect(&e, 5, "[E0607]");
    e = RUN_AS("driver", "calibrate", "--cuda=virtual", "-o", file);
    child_expect(&e, 5, "[E0601]");
    e = RUN("calibrate", "--cuda", "--hardware", "b52", "-o", file);
    child_expect(&e, 3, "[E0213]");
    assert_string_equal(child_read(arena, file, &n), "old");
    e = RUN("calibrate");
    child_expect(&e, 2, "it wants --mpi or --cuda");
}

/* ---- the script for machines with a GPU ---- */
/* Each part of tests/gpu.sh with this plug-in: its own text is what runs there. A part that finds a
 * difference, an op on the host or no plan at all ends with 1. */
static void test_script(void **state) {
    (void)state;
    static const struct {
        const char *how, *part, *plan;
        int code;
        const char *out;
    } rows[] = {
        {NULL, "machine", NULL, 0, "equivalent"},
        {NULL, "ops", "plans/14-qwen2-bias-tp2.yaml", 0, "same    plans/14-qwen2-bias-tp2.yaml"},
        {NULL, "plans", "plans/01-column-row-mlp.yaml", 0, "(exit 0)"},
        {NULL, "bugs", "plans/bugs/04-wrong-block.yaml", 0, "same    plans/bugs/04"},
        {NULL, "bf16", "plans/03-llama3-8b-tp2.yaml", 0,
         "--set data.dtype=bf16 --cuda=virtual (exit 0)"},
        {NULL, "diff", "plans/02-toymodel-2.yaml", 0, "same    plans/02"},
        {NULL, "timings", "plans/02-toymodel-2.yaml", 0, "measured on one GPU"},
        {"SHARDPROOF_GPU='launch 5'", "plans", "plans/01-column-row-mlp.yaml", 1,
         "DIFFERS plans/01"},
        {"SHARDPROOF_GPU='launch 5'", "bf16", "plans/03-llama3-8b-tp2.yaml", 1, "DIFFERS plans/03"},
        {"SHARDPROOF_GPU=driver", "machine", NULL, 1, ""},
        {"SHARDPROOF_GPU=driver", "timings", "plans/02-toymodel-2.yaml", 1, ""},
        {NULL, "speed", NULL, 2, ""},
    };
    const char *said = in("said");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n;
        int status = system(arena_printf(
            arena, "SHARDPROOF_EMULATED='%s' %s sh tests/gpu.sh --emulated %s %s >'%s' 2>&1", dir,
            rows[i].how ? rows[i].how : "", rows[i].part, rows[i].plan ? rows[i].plan : "", said));
        const char *out = child_read(arena, said, &n);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != rows[i].code || !strstr(out, rows[i].out))
            fail_msg("%s: status %d\n%s", rows[i].part, status, out);
    }
}

/* ---- what there is not ---- */
static void test_missing(void **state) {
    (void)state;
    const char *p = in("plan.yaml"), *out = in("new/deep");
    static const char *const why[][2] = {{"driver", "no NVIDIA driver"},
                                         {"device", "finds no GPU"},
                                         {"old", "older than the CUDA"},
                                         {"version", "another version of shardproof"},
                                         {"broken", "libcublasLt"}};
    for (size_t i = 0; i < sizeof why / sizeof *why; i++)
        for (int run = 0; run < 2; run++) {
            const char *env[] = {arena_printf(arena, "SHARDPROOF_GPU=%s", why[i][0]), NULL};
            Ended e = child_run(arena,
                                &(Child){.words = run ? WORDS("run", p, "--cuda=virtual", "-o", out)
                                                      : WORDS("check", p, "--cuda=virtual"),
                                         .env = env});
            child_expect(&e, 5, "[E0601]");
            child_expect(&e, 5, why[i][1]);
            child_expect(&e, 5, "= help: ");
            assert_true(e.seconds < 20 * slow_machine());
            assert_int_not_equal(access(in("new"), F_OK), 0);
        }
    child_write(in("shardproof-cuda.so"), "no library");
    Ended e = RUN("check", p, "--cuda=virtual");
    child_expect(&e, 5, "cannot be loaded");
    unlink(in("shardproof-cuda.so"));
    e = RUN("check", p, "--cuda=virtual");
    child_expect(&e, 5, "make CUDA=1");
}
/* CUDA's own plug-in, where it could be built, on a machine without a GPU: it says so, and writes
 * nothing. */
static void test_real(void **state) {
    (void)state;
    const char *real = child_built(arena, "real/shardproof-cuda.so"), *p = in("plan.yaml"),
               *out = in("new/deep");
    if (!real || access("/dev/nvidiactl", F_OK) == 0) {
        print_message("no CUDA toolkit here, or there is a GPU: not tried\n");
        skip();
    }
    copy(real, in("shardproof-cuda.so"));
    Ended run[] = {RUN("check", p, "--cuda=virtual"), RUN("run", p, "--cuda=virtual", "-o", out),
                   RUN("calibrate", "--cuda", "-o", out)};
    for (int i = 0; i < 3; i++) {
        child_expect(&run[i], 5, "[E0601]");
        child_expect(&run[i], 5, "= help: ");
        assert_true(strstr(run[i].err, "no NVIDIA driver") || strstr(run[i].err, "finds no GPU"));
        assert_true(run[i].seconds < 20 * slow_machine());
    }
    assert_int_not_equal(access(in("new"), F_OK), 0);
}
/* A kernel that fails in the middle, at any launch: the library's words, and what was there stays.
 */
static void test_failing(void **state) {
    (void)state;
    const char *p = in("plan.yaml"), *old = put("old.jsonl", "old");
    Ended e;
    size_t n;
#define FAILS(how)                                                                                 \
    e = RUN_AS(how, "check", p, "--cuda=virtual", "--trace", old);                                 \
    child_expect(&e, 5,                                                                            \
                 "the GPU failed: softmax: an illegal memory access was encountered "              \
                 "[E0607]");                                                                       \
    assert_string_equal(child_read(arena, old, &n), "old");                                        \
    assert_int_equal(child_count(dir, ".tmp"), 0)
    FAILS("launch 1");
    FAILS("launch 2");
    FAILS("launch 5");
    e = RUN_AS("launch 100000", "check", p, "--cuda=virtual", "--trace", old);
    child_expect(&e, 0, "");
}
/* The memory that is needed is told before anything is taken, and what is told is enough. */
static double room_of(const char *dtype) {
    static const char plan[] = "plans/09-llama3-8b-dp2-cp2-tp2.yaml";
    Ended e = RUN_AS("room 4096", "check", plan, "--cuda=virtual", "--set", dtype);
    child_expect(&e, 5, "this process has 4 KiB free");
    child_expect(&e, 5, "[E0608]");
    double need = bytes_behind(e.err, "take about ");
    static const struct {
        const char *how;
        double share; /* of what was told; a sixteenth of the room is left alone */
        int code;
    } rows[] = {
        {"room", 1.01 * 16 / 15, 0}, {"room", 0.97, 5}, {"limit", 1.01, 0}, {"limit", 0.97, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *env[] = {
            arena_printf(arena, "SHARDPROOF_GPU=%s %.0f", rows[i].how, need * rows[i].share), NULL};
        e = child_run(
            arena,
            &(Child){.words = WORDS("check", plan, "--cuda=virtual", "--set", dtype), .env = env});
        child_expect(&e, rows[i].code, rows[i].code ? "[E0608]" : "");
    }
    return need;
}
/* What is bf16 lies there in two bytes: half of the memory, but for the step that is made. */
static void test_room(void **state) {
    (void)state;
    double wide = room_of("data.dtype=f32"), half = room_of("data.dtype=bf16");
    print_message("bf16 takes %.2f of the memory of f32\n", half / wide);
    assert_true(half < 0.75 * wide);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, with_plugin, gone)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_host_code), TEST(test_same_records), TEST(test_diff_sees), TEST(test_check),
        TEST(test_measured),  TEST(test_calibrate),    TEST(test_script),    TEST(test_missing),
        TEST(test_real),      TEST(test_failing),      TEST(test_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
