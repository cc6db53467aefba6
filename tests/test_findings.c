/* Whoever reads what `check` found reads the same: the likely cause of the first wrong value is one
 * sentence in every format, on the command line and in reports for other tools. */
#include "cli/cli.h"
#include "support/child.h"
#include "support/sandbox.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BACKWARD "plans/18-llama3-8b-backward.yaml"
static const struct {
    const char *lines, *first, *cause;
} rows[] = {
    {"faults: [{at: net2, do: drop}]\n", "net2",
     "the sum over tp is missing: each rank passes on its own part, and the parts add up to the "
     "right value"},
    {"faults: [{at: net2, kind: avg}]\n", "net2",
     "exactly 1/2 of the right value: averaged over tp instead of summed"},
    {"faults: [{at: net1, scale: 0.3}]\n", "net1", "off by a constant factor of 0.3"},
    {"faults: [{at: input, do: reseed}]\n", "input",
     "the ranks of tp should hold the same and hold different data"},
    {"faults: [{at: net1.weight, offset: 1}]\n", "net1.weight",
     "each rank holds the block of the next rank of tp"},
};
/* Of each command and format: its words, and whether a plan that means its mistake says it too. */
static const struct {
    const char *command, *format;
    bool meant;
} ways[] = {
    {"check", "text", false}, {"check", "json", true},   {"check", "jsonl", true},
    {"check", "csv", true},   {"check", "md", true},     {"check", "junit", true},
    {"check", "sarif", true}, {"check", "github", true}, {"check", "gitlab", true},
    {"run", "text", true},    {"run", "json", true},     {"run", "jsonl", true},
};
static void say(const char *plan, const char *command, const char *format, int code,
                const char *cause) {
    bool draws = !strcmp(command, "run");
    Ended e = child_run(arena, &(Child){.words = WORDS(command, plan, "--format", format,
                                                       draws ? "-o" : NULL, in("out"))});
    if (e.code != code || !strstr(e.out, cause))
        fail_msg("%s --format %s: exit %d\n%s\nhas not\n%s", command, format, e.code, e.out, cause);
}
static void test_one_cause(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            const char *text = arena_printf(arena, "%s%s", SMALL_PLAN, rows[i].lines);
            say(put("p.yaml", text), ways[k].command, ways[k].format, 1, rows[i].cause);
            if (!ways[k].meant) continue;
            text = arena_printf(arena, "%sexpect: {first_wrong: %s}\n", text, rows[i].first);
            say(put("p.yaml", text), ways[k].command, ways[k].format, 0, rows[i].cause);
        }
}
/* One key of one object: null where nothing is wrong, or nothing was run. */
static void test_key(void **state) {
    (void)state;
    const char *plan = put("p.yaml", SMALL_PLAN);
    say(plan, "check", "json", 0, "\"cause\":null");
    say(plan, "run", "json", 0, "\"cause\":null");
    plan = put("p.yaml", SMALL_PLAN "faults: [{at: net2, kind: avg}]\n");
    say(plan, "check", "json", 1, "\"cause\":\"exactly 1/2 of the right value: averaged over tp ");
    say(plan, "run", "json", 1, "\"cause\":\"exactly 1/2 of the right value: averaged over tp ");
}
/* A fault is planted at the end of a name as at the whole: of a value, of a module whose result it
 * is in the plan's scheme or another, behind the kind of a move, of a gradient, of a parameter. */
static void test_short_names(void **state) {
    (void)state;
    static const char *const names[][3] = {
        {"layers.0.o_proj", "o_proj", "do: drop"},
        {"layers.0.o_proj", "attention.wo", "do: drop"},
        {"layers.0.o_proj", "self_attn.o_proj", "do: drop"},
        {"reduce_scatter of layers.0.mlp.down", "reduce_scatter of feed_forward.w2", "kind: avg"},
        {"grad.layers.0.o_proj", "grad.wo", "do: drop"},
        {"layers.0.attention.wo.weight", "wo.weight", "offset: 1"},
        {"layers.0.mlp.act", "mlp.act", "scale: 2"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *said[2];
        for (int k = 0; k < 2; k++) {
            const char *fault =
                arena_printf(arena, "faults=[{at: %s, %s}]", names[i][k], names[i][2]);
            Ended e = child_run(arena, &(Child){.words = WORDS("check", BACKWARD, "--set",
                                                               "expect=", "--set", fault)});
            if (e.code > 1) fail_msg("%s: exit %d\n%s", fault, e.code, e.err);
            said[k] = e.out;
        }
        if (strcmp(said[0], said[1]) != 0)
            fail_msg("%s is not %s:\n%s\n%s", names[i][1], names[i][0], said[1], said[0]);
        assert_non_null(strstr(said[0], "FAIL"));
    }
}
/* With --strict a suspect number fails: reports name it and its cause, as the text does. */
static void test_suspect(void **state) {
    (void)state;
    int64_t ranks = 4;
    TraceCheck k[] = {{.value = "net1", .level = 2, .verdict = "PASS"},
                      {.value = "net2",
                       .level = 2,
                       .ranks = rankset_range(arena, 0, ranks, 1),
                       .verdict = "SUSPECT",
                       .cause = "another order of the sum"}};
    Trace t = {.checks = k, .n_checks = 2, .n_suspect = 1, .verdict = "equivalent"};
    Loaded l = {.path = "p.yaml", .d = diags_new(arena), .trace = &t};
    assert_int_equal(findings_collect(&l, false, DIAG_ERROR, arena).n, 0);
    l.exit = 1;
    PlanFindings p = findings_collect(&l, true, DIAG_ERROR, arena);
    assert_int_equal(p.n, 1);
    assert_non_null(strstr(p.f[0].message, "net2 is suspect on ranks 0-3"));
    assert_non_null(strstr(p.f[0].message, ": another order of the sum"));
    assert_string_equal(summary_cause(&t, true), k[1].cause);
    assert_null(summary_cause(&t, false));
}

/* Services know files by the names that the repository has for them, however they were typed. */
static void in_folder(void) {
    if (chdir(dir)) _exit(99);
}
static void test_places(void **state) {
    (void)state;
    static const char *const formats[][2] = {
        {"github", "::error file=plans/p.yaml,line=9,col=15,"},
        {"gitlab", "\"path\":\"plans/p.yaml\",\"lines\":{\"begin\":9}"},
        {"sarif", "\"uri\":\"plans/p.yaml\"},\"region\":{\"startLine\":9,"},
        {"junit", "file=\"plans/p.yaml\" time=\"0."},
        {"junit", "\nplans/p.yaml:9:15: "},
        {"junit", "skipped=\"0\" time=\"0."}};
    assert_int_equal(mkdir(in("plans"), 0777), 0);
    put("plans/p.yaml", SMALL_PLAN "trust: declared\nfaults: [{at: net2, do: drop}]\n");
    assert_int_equal(symlink("plans", in("link")), 0);
    assert_int_equal(symlink("plans/p.yaml", in("l.yaml")), 0);
    const char *const names[] = {"plans/p.yaml",    "./plans/p.yaml",        ".//plans/p.yaml",
                                 "plans//./p.yaml", "plans/../plans/p.yaml", "link/p.yaml",
                                 "l.yaml",          in("link/p.yaml")};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
            Ended e = child_run(
                arena, &(Child){.words = WORDS("check", names[i], "--format", formats[k][0]),
                                .prepare = in_folder});
            if (e.code != 1 || !strstr(e.out, formats[k][1]) || strstr(e.out, "time=\"0.000\""))
                fail_msg("%s: %s%s has not %s", names[i], e.out, e.err, formats[k][1]);
        }
    Ended e =
        child_run(arena, &(Child){.words = WORDS("check", ".//none.yaml", "--format", "github"),
                                  .prepare = in_folder});
    assert_non_null(strstr(e.out, "::error file=none.yaml,"));
    unlink(in("l.yaml"));
    unlink(in("link"));
    put("q.yaml", "model: {preset: llama3-8b, shrink: 64, parts: [embedding, blocks]}\n"
                  "data: {batch: 2, sequence: 8}\nmesh: {vp: 2, tp: 2}\n"
                  "recipe: torchtitan-llama3\n");
    e = child_run(arena, &(Child){.words = WORDS("check", "q.yaml", "--format", "github"),
                                  .prepare = in_folder});
    assert_non_null(strstr(e.out, "::error file=q.yaml,title=E0402::"));
    unlink(in("q.yaml"));
    unlink(in("plans/p.yaml"));
    rmdir(in("plans"));
}

/* `explain PLAN NAME`, which the report of a wrong value sends to, says what is planted there. */
static void test_planted_is_explained(void **state) {
    (void)state;
    static const struct {
        const char *fault, *name, *says;
    } row[] = {
        {"at: layers.0.o_proj, kind: avg", "layers.0.o_proj",
         "planted      kind: avg; due: reduce_scatter(tp), sum\n"},
        {"at: all_gather of layers.0.input_norm, do: drop", "layers.0.input_norm",
         "planted      drop: the step does nothing; due: all_gather(tp)\n"},
        {"at: layers.0.mlp.act, scale: 3", "layers.0.mlp.act", "planted      scale: 3\n"},
        {"at: layers.0.q_rope, do: local", "layers.0.q_rope", "planted      local\n"},
        {"at: layers.0.attention.wq.weight, offset: 1", "layers.0.attention.wq.weight",
         "planted      offset: 1\n"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Ended e = child_run(
            arena,
            &(Child){.words = WORDS("explain", "plans/05-llama3-8b-tp4-sp.yaml", row[i].name,
                                    "--set", arena_printf(arena, "faults=[{%s}]", row[i].fault))});
        if (e.code || !strstr(e.out, row[i].says))
            fail_msg("%s: exit %d\n%s%s", row[i].fault, e.code, e.out, e.err);
    }
    Ended e = child_run(arena, &(Child){.words = WORDS("explain",
                                                       "plans/bugs/44-ranks-fed-different-data"
                                                       ".yaml",
                                                       "input_ids")});
    if (e.code || !strstr(e.out, "planted      reseed\n")) fail_msg("%s%s", e.out, e.err);
}
/* A claim is false over all the axes that its cause names. */
static void test_axes_of_a_claim(void **state) {
    (void)state;
    Ended e = child_run(
        arena,
        &(Child){.words = WORDS("check", put("p.yaml",
                                             "model: {kind: mlp, sizes: [8, 16, 8]}\n"
                                             "data: {rows: 16, dtype: f64, cut: {batch: [dp, x]}}\n"
                                             "mesh: {dp: 2, x: 2, tp: 2}\npass: backward\n"
                                             "trust: declared\ndata_parallel: {mode: ddp, axis: "
                                             "tp}\nplan: {net1: colwise, net2: rowwise}\n"))});
    assert_int_equal(e.code, 1);
    assert_non_null(strstr(e.err, "claim about grad.param.net2.bias: a sum over dp*x is pending"));
    assert_non_null(strstr(e.err, "the sum over dp*x is missing: each rank"));
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_cause, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_planted_is_explained, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_axes_of_a_claim, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_short_names, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_suspect, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_places, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_key, sandbox_new, sandbox_gone),
    };
    return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
