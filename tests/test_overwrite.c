/* No input is ever an output: whatever names it (operand, option, plan), however it is spelled
 * (link, another way to its folder, standard input), whichever option writes. Each case: exit 2,
 * and every file has the bytes that it had. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "support/child.h"
#include "support/sandbox.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char cwd[4096];
static const char *read_in(const char *name) { return child_read(arena, in(name), NULL); }

/* A folder with one input of each kind. The plan: all that a plan can name. */
static int setup(void **state) {
    if (sandbox_new(state) != 0 || !getcwd(cwd, sizeof cwd)) return -1;
    size_t n;
    child_write(in("mlp.yaml"), "name: mlp\n" SMALL_MODEL SMALL_REST);
    child_write(in("hw.yaml"), child_read(arena, "plans/hardware/h200-sxm.yaml", &n));
    child_write(in("map.yaml"), "net1: net1\n");
    child_write(in("config.json"), "{\"model_type\": \"llama\", \"hidden_size\": 16, "
                                   "\"num_hidden_layers\": 1, \"num_attention_heads\": 2,\n"
                                   "\"num_key_value_heads\": 2, \"intermediate_size\": 24, "
                                   "\"vocab_size\": 32, \"rms_norm_eps\": 1e-5}\n");
    const char *hf =
        "model: {hf_config: config.json}\nmesh: {tp: 2}\nnames: hf\nhardware: hw.yaml\n"
        "plan:\n  model.layers.*.mlp.up_proj: colwise\n";
    child_write(in("hf.yaml"), hf);
    if (mkdir(in("shards"), 0755) != 0 || mkdir(in("o"), 0755) != 0) return -1;
    Ended e = child_run(
        arena, &(Child){.words = WORDS("check", in("mlp.yaml"), "--save-values", in("v.st"))});
    if (e.code != 0 || link(in("v.st"), in("w.st")) != 0) return -1;
    e = child_run(arena,
                  &(Child){.words = WORDS("check", in("mlp.yaml"), "--trace", in("t.jsonl"))});
    if (e.code != 0) return -1;
    child_write(in("w.yaml"), arena_printf(arena,
                                           "name: w\nmodel: {kind: mlp, sizes: [6, 10, 3], bias: "
                                           "false, activation: relu, weights: w.st}\n%s",
                                           SMALL_REST));
    return 0;
}
static const char *const files[] = {"mlp.yaml", "hw.yaml", "map.yaml", "config.json", "hf.yaml",
                                    "v.st",     "t.jsonl", "w.yaml",   "w.st",        NULL};
typedef struct {
    size_t n[16];
    char *was[16];
} Kept;
static Kept keep(void) {
    Kept k = {0};
    for (int i = 0; files[i]; i++) k.was[i] = child_read(arena, in(files[i]), &k.n[i]);
    return k;
}
/* A command line with '@' for our folder, a standard input, what it must say. */
static void refused(const char *line, const char *input, const char *says) {
    Kept k = keep();
    const char *words[32];
    int n = 0;
    char *copy = arena_strdup(arena, line), *at;
    for (char *w = strtok_r(copy, " ", &at); w; w = strtok_r(NULL, " ", &at))
        words[n++] = *w == '@' ? in(w + 1) : w;
    words[n] = NULL;
    Ended e = child_run(arena, &(Child){.words = words, .in = input});
    if (e.code != 2 || !strstr(e.err, says))
        print_error("`%s`: exit %d\n%s%s", line, e.code, e.out, e.err);
    assert_int_equal(e.code, 2);
    assert_non_null(strstr(e.err, says));
    for (int i = 0; files[i]; i++) {
        size_t m;
        char *now = child_read(arena, in(files[i]), &m);
        if (!now || m != k.n[i] || memcmp(now, k.was[i], m) != 0)
            fail_msg("`%s` altered %s", line, files[i]);
    }
    assert_int_equal(child_count(dir, ".tmp"), 0);
}
static void test_inputs(void **state) {
    (void)state;
    static const char *const lines[] = {
        "times @mlp.yaml --hardware @hw.yaml -o @hw.yaml --format text",
        "check @mlp.yaml --hardware @hw.yaml --trace @hw.yaml",
        "check @mlp.yaml --hardware @hw.yaml --save-values @hw.yaml",
        "draw @hf.yaml -o @hw.yaml --format svg",
        "params @hf.yaml --trace @hw.yaml",
        "params @hf.yaml -o @config.json",
        "shapes @hf.yaml -o @hf.yaml --format text",
        "check @w.yaml --save-values @w.st",
        "check @w.yaml --trace @v.st", /* the same file by another name */
        "check @w.yaml -o @w.st --format text",
        "check @mlp.yaml --against @v.st --save-values @v.st",
        "check @mlp.yaml --against @v.st --map @map.yaml -o @map.yaml --format text",
        "shapes @t.jsonl -o @t.jsonl",
        "draw @t.jsonl -o @t.jsonl --format svg",
        "draw @mlp.yaml --view errors --beside @t.jsonl -o @t.jsonl --format svg",
        "diff @mlp.yaml @t.jsonl -o @t.jsonl",
        "check @mlp.yaml @w.yaml -o @w.yaml --format junit",
        "check @mlp.yaml @w.yaml @hf.yaml -o @hf.yaml --format text",
        "explain @mlp.yaml net1 -o @mlp.yaml --format text",
        "run @w.yaml -o @o --save-values @w.st",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        refused(lines[i], NULL, "is also an input");
}
static void test_other_ways(void **state) {
    (void)state;
    assert_int_equal(symlink("mlp.yaml", in("link.yaml")), 0);
    assert_int_equal(symlink(".", in("same")), 0);
    refused("shapes @mlp.yaml -o @link.yaml --format text", NULL, "is also an input");
    refused("shapes @link.yaml -o @mlp.yaml --format text", NULL, "is also an input");
    refused("shapes @mlp.yaml -o @same/mlp.yaml --format text", NULL, "is also an input");
    refused("shapes - -o @mlp.yaml --format text", in("mlp.yaml"), "is also an input");
    refused("shapes /dev/stdin -o @mlp.yaml --format text", in("mlp.yaml"), "is also an input");
    refused("check - --trace @mlp.yaml", in("mlp.yaml"), "is also an input");
    refused("diff - -", in("mlp.yaml"), "2 operands are `-`: the standard input is read once");
    refused("check - @mlp.yaml -", in("mlp.yaml"), "2 operands are `-`");
}
/* What `run` writes into its folder under names of its own. */
static void test_run(void **state) {
    (void)state;
    assert_int_equal(symlink("../w.st", in("o/w.block.svg")), 0);
    assert_int_equal(symlink("../hw.yaml", in("o/mlp.mesh.svg")), 0);
    refused("run @w.yaml -o @o", NULL, "is also an input");
    refused("run @mlp.yaml --hardware @hw.yaml -o @o", NULL, "is also an input");
    refused("run @mlp.yaml -o @o --trace @o/mlp.timeline.svg", NULL, "two outputs go to");
}
/* Shards of weights are inputs, too, whether the folder or its index is named. */
static void test_shards(void **state) {
    (void)state;
    assert_int_equal(link(in("v.st"), in("shards/model.safetensors")), 0);
    child_write(in("w.yaml"), arena_printf(arena,
                                           "name: w\nmodel: {kind: mlp, sizes: [6, 10, 3], bias: "
                                           "false, activation: relu, weights: shards}\n%s",
                                           SMALL_REST));
    refused("check @w.yaml --save-values @v.st", NULL, "is also an input");
}
static void test_two_outputs(void **state) {
    (void)state;
    assert_int_equal(chdir(dir), 0);
    refused("check @mlp.yaml --trace n --save-values ./n", NULL, "two outputs go to");
    refused("check @mlp.yaml --trace n -o o/../n", NULL, "two outputs go to");
    assert_int_equal(symlink("n", in("to_n")), 0);
    refused("check @mlp.yaml --trace n -o to_n", NULL, "two outputs go to");
    assert_int_equal(chdir(cwd), 0);
    assert_null(read_in("n"));
}
/* A link to a file that is not there yet stays a link, and the file is made where it leads. */
static void test_dangling_link(void **state) {
    (void)state;
    assert_int_equal(symlink("o/there.svg", in("x.svg")), 0);
    assert_int_equal(symlink("none/there.svg", in("y.svg")), 0);
    assert_int_equal(symlink("z.svg", in("z.svg")), 0);
    Ended e = child_run(arena, &(Child){.words = WORDS("draw", in("mlp.yaml"), "-o", in("x.svg"))});
    assert_int_equal(e.code, 0);
    struct stat st;
    assert_true(lstat(in("x.svg"), &st) == 0 && S_ISLNK(st.st_mode));
    assert_non_null(strstr(read_in("o/there.svg"), "</svg>"));
    static const char *const bad[] = {"y.svg", "z.svg"};
    for (int i = 0; i < 2; i++) {
        e = child_run(arena, &(Child){.words = WORDS("draw", in("mlp.yaml"), "-o", in(bad[i]))});
        if (e.code != 4) print_error("%s", e.err);
        assert_int_equal(e.code, 4);
        assert_true(lstat(in(bad[i]), &st) == 0 && S_ISLNK(st.st_mode));
        assert_int_equal(child_count(dir, ".tmp"), 0);
    }
}
/* What only looks alike is written. */
static void test_no_false_alarm(void **state) {
    (void)state;
    assert_int_equal(chdir(dir), 0);
    Ended e = child_run(arena, &(Child){.words = WORDS("list", "styles", "-o", "styles")});
    assert_int_equal(e.code, 0);
    e = child_run(arena, &(Child){.words = WORDS("explain", "mlp.yaml", "net1", "-o", "net1")});
    assert_int_equal(e.code, 0);
    e = child_run(arena, &(Child){.words = WORDS("times", "mlp.yaml", "--hardware", "h200-sxm",
                                                 "-o", "h200-sxm")});
    assert_int_equal(e.code, 0);
    e = child_run(arena,
                  &(Child){.words = WORDS("check", "mlp.yaml", "-o", "-", "--trace", "t2.jsonl")});
    assert_int_equal(e.code, 0);
    assert_int_equal(chdir(cwd), 0);
}
/* A name that is too long for a file is cut, before any work is done with it, and stays one of its
 * own. */
static void test_long_name(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        Str s = str_new(arena);
        for (int i = 0; i < 400; i++) str_add(&s, i % 3 ? "n" : "\xC3\xA4");
        child_write(in("long.yaml"),
                    arena_printf(arena, "name: %s%d\n" SMALL_MODEL SMALL_REST, s.s, k));
        Ended e =
            child_run(arena, &(Child){.words = WORDS("run", in("long.yaml"), "-o", in("long"))});
        if (e.code) print_error("%s", e.err);
        assert_int_equal(e.code, 0);
        assert_int_equal(child_count(in("long"), ".trace.jsonl"), k + 1);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, sandbox_gone)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_inputs),         TEST(test_other_ways),  TEST(test_run),
        TEST(test_shards),         TEST(test_two_outputs), TEST(test_dangling_link),
        TEST(test_no_false_alarm), TEST(test_long_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
