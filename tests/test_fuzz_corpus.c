/* Every kept input of every fuzz target, without libFuzzer: what once was a crash stays mended, on
 * any compiler. */
#include "base/file.h"
#include "fuzz/fuzz.h"
#include "plan/plan.h"
#include <dirent.h>
#include <glob.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void replay(const char *folder, void (*target)(const uint8_t *, size_t), int at_least) {
    Arena *a = arena_new();
    const char *dir = arena_printf(a, "tests/fuzz/corpus/%s", folder);
    DIR *h = opendir(dir);
    if (!h) fail_msg("%s is missing (run the tests from the repository root)", dir);
    int n = 0;
    for (struct dirent *e; (e = readdir(h));) {
        if (e->d_name[0] == '.') continue;
        size_t size;
        const char *path = file_join(a, dir, e->d_name);
        char *bytes = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &size);
        assert_non_null(bytes);
        /* of exactly this size, so that reading past the end shows */
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, bytes, size);
        target(copy, size);
        free(copy);
        n++;
    }
    closedir(h);
    arena_free(a);
    if (n < at_least) fail_msg("%d inputs in %s, there were at least %d", n, dir, at_least);
}
static void test_plan(void **state) {
    (void)state;
    replay("plan", fuzz_plan, 5);
}
/* Each key of plans is a word that the fuzzer has from the beginning, in a seed or in the
 * dictionary: it finds none by itself. */
static void test_keys(void **state) {
    (void)state;
    Arena *a = arena_new();
    glob_t g;
    Str all = str_new(a);
    size_t size;
    assert_int_equal(glob("tests/fuzz/plan.dict", 0, NULL, &g), 0);
    assert_int_equal(glob("tests/fuzz/corpus/plan/*", GLOB_APPEND, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        str_add(&all, file_read(a, diags_new(a), g.gl_pathv[i], 1 << 20, (Loc){0}, &size));
    int n, missing = 0;
    const KeyRow *row = plan_key_rows(a, &n);
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(row[i].path, '.');
        const char *word = arena_printf(a, "%s:", dot ? dot + 1 : row[i].path);
        if (!strstr(all.s, word)) printf("no seed has '%s'\n", row[i].path), missing++;
    }
    assert_true(n > 100 && !missing);
    globfree(&g);
    arena_free(a);
}
static void test_config(void **state) {
    (void)state;
    replay("config", fuzz_config, 2);
}
static void test_import(void **state) {
    (void)state;
    replay("import", fuzz_import, 8);
}
static void test_safetensors(void **state) {
    (void)state;
    replay("safetensors", fuzz_safetensors, 1);
}
static void test_trace(void **state) {
    (void)state;
    replay("trace", fuzz_trace, 4);
}
static void test_names(void **state) {
    (void)state;
    replay("names", fuzz_names, 3);
}
static void test_schedule(void **state) {
    (void)state;
    replay("schedule", fuzz_schedule, 4);
}
static void test_rule(void **state) {
    (void)state;
    replay("rule", fuzz_rule, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_config),      cmocka_unit_test(test_import),
        cmocka_unit_test(test_safetensors), cmocka_unit_test(test_trace),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_rule)};
    return cmocka_run_group_tests_name("fuzz corpus", tests, NULL, NULL);
}
