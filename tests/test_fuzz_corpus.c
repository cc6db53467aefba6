/* Every kept input of every fuzz target, without libFuzzer: what once was a crash stays mended, on
 * any compiler. */
#include "base/file.h"
#include "fuzz/fuzz.h"
#include <dirent.h>
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
static void test_config(void **state) {
    (void)state;
    replay("config", fuzz_config, 2);
}
static void test_import(void **state) {
    (void)state;
    replay("import", fuzz_import, 6);
}
static void test_safetensors(void **state) {
    (void)state;
    replay("safetensors", fuzz_safetensors, 1);
}
static void test_trace(void **state) {
    (void)state;
    replay("trace", fuzz_trace, 4);
}
static void test_rule(void **state) {
    (void)state;
    replay("rule", fuzz_rule, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),   cmocka_unit_test(test_config),
        cmocka_unit_test(test_import), cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_trace),  cmocka_unit_test(test_rule)};
    return cmocka_run_group_tests_name("fuzz corpus", tests, NULL, NULL);
}
