/* check --update-expect loses nothing: it records what the plan does, not what the command line, a
 * missing file or this machine did; what it cannot find out, comments and keys of others stay. */
#include "base/file.h"
#include "cli/cli.h"
#include "cli/section.h"
#include "support/child.h"
#include "support/sandbox.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD SMALL_PLAN
#define SECTION                                                                                    \
    "expect:\n"                                                                                    \
    "  # proved by hand\n"                                                                         \
    "  equivalent: true\n"                                                                         \
    "  local_shapes:\n"                                                                            \
    "    net1: \"[B, F/tp]\" # one column each\n"                                                  \
    "  collectives:\n"                                                                             \
    "    forward: {all_reduce(tp): 1}\n"                                                           \
    "  memory_per_rank: 1 GiB\n"

static Ended run_limited(const char *const *words, int limit, long to) {
    return child_run(arena, &(Child){.words = words, .limit = limit, .limit_to = to});
}
static void expect_text(const char *path, const char *text) {
    assert_string_equal(child_read(arena, path, NULL), text);
}

/* Whatever makes the run another than the file's: wrong usage, and the file is not touched. */
static void test_another_run(void **state) {
    (void)state;
    static const char *const option[] = {
        "--set=data.batch=zwei", "--set=mesh.tp=1", "--seed=3", "--fault=drop-reduction",
        "--hardware=a100-sxm",   "--strict",        "--exact",  "--against=v.safetensors",
        "--map=m.yaml",          "--tolerance=1"};
    const char *plan = put("p.yaml", HEAD SECTION);
    for (size_t i = 0; i < sizeof option / sizeof *option; i++) {
        Ended e = run_limited(WORDS("check", plan, "--update-expect", option[i]), 0, 0);
        child_expect(&e, 2, "--update-expect records what the plan's file does");
        expect_text(plan, HEAD SECTION);
    }
}
/* A limit of this machine, a missing file and a slip of the pen are no findings about the plan. */
static void test_not_the_plans_doing(void **state) {
    (void)state;
    static const struct {
        const char *line, *code;
        int exit;
    } row[] = {{"weights: none.safetensors\n", "E0201", 3},
               {"model: {kind: mlp, sizes: [6, 10, 3], weights: none.safetensors}\n", "E0101", 3},
               {"data: {rows: zwei}\n", "E0301", 3},
               {"optimiser: 3\n", "E0201", 3},
               {"mesh: {tp: 99999999}\n", "E0703", 5}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *text = arena_printf(arena, "%s" HEAD SECTION, row[i].line), *twice;
        /* the first of two equal keys goes */
        size_t key = strcspn(row[i].line, ":") + 1;
        if ((twice = strstr(text + strlen(row[i].line), arena_strndup(arena, row[i].line, key)))) {
            const char *rest = strchr(twice, '\n') + 1;
            text = arena_printf(arena, "%.*s%s", (int)(twice - text), text, rest);
        }
        const char *plan = put("p.yaml", text);
        Ended e = run_limited(WORDS("check", plan, "--update-expect"), 0, 0);
        child_expect(&e, row[i].exit, row[i].code);
        expect_text(plan, text);
    }
    const char *big = "expect: {equivalent: true}\n" HEAD, *plan = put("q.yaml", big);
    plan = put("q.yaml", arena_printf(arena, "%smodel: {preset: llama3-8b}\n",
                                      "mesh: {tp: 2}\nexpect: {equivalent: true}\n"));
    big = child_read(arena, plan, NULL);
    Ended e = run_limited(WORDS("check", plan, "--update-expect"), RLIMIT_AS, 120000L << 10);
    child_expect(&e, 5, "E0701");
    expect_text(plan, big);
}
/* A mistake that the section names is meant, and stays; a broken rule is what the plan does, and is
 * recorded. */
static void test_findings(void **state) {
    (void)state;
    const char *meant = "nonsense: 1\n" HEAD "expect:\n  diagnostics: [E0201]\n",
               *plan = put("p.yaml", meant);
    Ended e = run_limited(WORDS("check", plan, "--update-expect"), 0, 0);
    child_expect(&e, 0, "");
    expect_text(plan, meant);
    plan = put("q.yaml", HEAD "gradients: {net1: none}\n" SECTION);
    plan = put("r.yaml", HEAD "  net9: colwise\n" SECTION);
    e = run_limited(WORDS("check", plan, "--update-expect"), 0, 0);
    assert_int_equal(e.code, 3);
    expect_text(plan, HEAD "  net9: colwise\n" SECTION);
}
/* A plan that is refused has no shapes, no collectives and no peak: those of the section stay as
 * they were. */
static void test_keeps_what_it_cannot_know(void **state) {
    (void)state;
    static const char refused[] = "model: {kind: mlp, sizes: [6, 10, 3], bias: false}\n"
                                  "data: {rows: 5}\n"
                                  "mesh: {tp: 2}\n"
                                  "plan:\n"
                                  "  net1: {style: colwise, output: shard(7)}\n";
    const char *plan = put("p.yaml", arena_printf(arena, "%s" SECTION, refused));
    Ended e = run_limited(WORDS("check", plan), 0, 0);
    const char *code = strchr(e.err, '[');
    assert_non_null(code);
    const char *kept = strstr(SECTION, "  local_shapes");
    const char *with = arena_printf(
        arena, "%sexpect:\n  # proved by hand\n  diagnostics: [%.5s]\n%s", refused, code + 1, kept);
    plan = put("p.yaml", with);
    e = run_limited(WORDS("check", plan, "--update-expect"), 0, 0);
    child_expect(&e, 0, "");
    expect_text(plan, with);
}
/* A key that holds is left to the letter; one that does not is written anew, its comments stay. */
static void test_comments_stay(void **state) {
    (void)state;
    const char *plan = put("p.yaml", HEAD SECTION "\n# about b\nhardware: h100-sxm\n");
    Ended e = run_limited(WORDS("check", plan, "--update-expect"), 0, 0);
    child_expect(&e, 0, "");
    const char *text = child_read(arena, plan, NULL);
    static const char *const kept[] = {"expect:\n  # proved by hand\n  equivalent: true\n",
                                       "# one column each\n", "    forward: {all_reduce(tp): 1}\n",
                                       "  memory_per_rank: 1 GiB\n",
                                       "\n# about b\nhardware: h100-sxm\n"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (!strstr(text, kept[i])) print_error("'%s' is gone from\n%s", kept[i], text);
        assert_non_null(strstr(text, kept[i]));
    }
    e = run_limited(WORDS("check", plan, "--update-expect"), 0, 0);
    expect_text(plan, text); /* nothing more to do */
}
/* A name that the run does not know is not dropped in silence. */
static void test_unknown_name_stays(void **state) {
    (void)state;
    const char *plan = put("p.yaml", HEAD "expect:\n  local_shapes:\n    net7: \"[B, D]\"\n");
    Ended e = run_limited(WORDS("check", plan, "--update-expect"), 0, 0);
    child_expect(&e, 1, "no value or parameter is called 'net7'");
    assert_non_null(strstr(child_read(arena, plan, NULL), "    net7: \"[B, D]\"\n"));
}

static void test_section(void **state) {
    (void)state;
    static const SectionKey keys[] = {{"equivalent", "  equivalent: NEW\n"}, {"first_wrong", NULL}};
    static const struct {
        const char *before, *after; /* NULL: refused */
    } cases[] = {
        {"a: 1", "a: 1\nexpect:\n  equivalent: NEW\n"},
        {"a: 1\n", "a: 1\nexpect:\n  equivalent: NEW\n"},
        {"", "expect:\n  equivalent: NEW\n"},
        {"a: 1\nexpect:\n  equivalent: true # x\n\n  # inside\n  more: 1\n\n# about b\nb: 2\n",
         "a: 1\nexpect:\n  # x\n  equivalent: NEW\n\n  # inside\n  more: 1\n\n# about b\nb: 2\n"},
        {"expect: # why\n  first_wrong: x\n  more:\n    a: 1\n  # end\n",
         "expect: # why\n  equivalent: NEW\n  more:\n    a: 1\n  # end\n"},
        {"expect:\n  more: {\n    a: 1\n  }\n  equivalent: true\n",
         "expect:\n  more: {\n    a: 1\n  }\n  equivalent: NEW\n"},
        {"expect:\n    more: 1\n", NULL},
        {"expect:\n    equivalent: \"# no\" # yes\nb: 2\n",
         "expect:\n  # yes\n  equivalent: NEW\nb: 2\n"},
        {"expect: {equivalent: true} # x\nb: 2", "expect:\n  # x\n  equivalent: NEW\nb: 2"},
        {"expect: {\n  equivalent: true\n}\nb: 2\n", "expect:\n  equivalent: NEW\nb: 2\n"},
        {"expect: {equivalent: true, memory_per_rank: 3}\nb: 2", NULL},
        {"\xEF\xBB\xBF"
         "expect: {}\n",
         "\xEF\xBB\xBF"
         "expect:\n  equivalent: NEW\n"},
        {"a: {expect: 3}\n# expect:\nexpected: 2\n",
         "a: {expect: 3}\n# expect:\nexpected: 2\nexpect:\n  equivalent: NEW\n"},
        {"expect:\n  equivalent: true", "expect:\n  equivalent: NEW\n"},
        {"expect:\n'q': 1\n", "expect:\n  equivalent: NEW\n'q': 1\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *s = section_replace(arena, cases[i].before, strlen(cases[i].before), keys, 2);
        if (!cases[i].after) assert_null(s);
        else assert_string_equal(s ? s : "(refused)", cases[i].after);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, sandbox_new, sandbox_gone)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_section),
        TEST(test_another_run),
        TEST(test_findings),
        TEST(test_not_the_plans_doing),
        TEST(test_comments_stay),
        TEST(test_keeps_what_it_cannot_know),
        TEST(test_unknown_name_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
