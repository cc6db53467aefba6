/* What a newcomer meets: every shipped plan holds what it expects, the plans show the numbers of
 * the articles that they reproduce, the examples' scripts print their expected output, and what the
 * README says is so. Runs in the root of the repository. */
#include "base/file.h"
#include "cli/cli.h"
#include "formats/yaml.h"
#include "support/support.h"
#include <setjmp.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static Arena *arena; /* of one test */
static char dir[] = "/tmp/test_examples_XXXXXX";

static int setup(void **state) {
    (void)state;
    arena = arena_new();
    return 0;
}
static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

/* ---- running a command line ---- */
typedef struct {
    int code;
    const char *out, *err;
} Ran;
static Ran run_words(const char *const *words) {
    char *argv[32] = {(char *)(uintptr_t) "shardproof"}, *text[2];
    int argc = 1;
    size_t n;
    for (; *words; words++) argv[argc++] = (char *)(uintptr_t)*words;
    FILE *out = open_memstream(&text[0], &n), *err = open_memstream(&text[1], &n);
    Ran r = {.code = cli_main(argc, argv, out, err)};
    fclose(out);
    fclose(err);
    r.out = arena_strdup(arena, text[0]);
    r.err = arena_strdup(arena, text[1]);
    free(text[0]);
    free(text[1]);
    return r;
}
#define RUN(...) run_words((const char *const[]){__VA_ARGS__, NULL})
static void must_exit(const char *what, Ran r, int code) {
    if (r.code != code)
        print_error("%s: exit %d, wanted %d\n%s%s", what, r.code, code, r.out, r.err);
    assert_int_equal(r.code, code);
}
static void must_say(const char *what, const char *text, const char *part) {
    if (!strstr(text, part)) print_error("%s: does not say '%s'\n%s", what, part, text);
    assert_non_null(strstr(text, part));
}
static char *get(const char *path) {
    Diags *d = diags_new(arena);
    size_t n;
    char *text = file_read(arena, d, path, 1 << 20, (Loc){0}, &n);
    if (!text) print_error("%s cannot be read\n", path);
    assert_non_null(text);
    return text;
}
static const char *put(const char *name, const char *text) {
    const char *path = arena_printf(arena, "%s/%s", dir, name);
    assert_true(file_write(diags_new(arena), path, text, strlen(text)));
    return path;
}
/* The text with the first `from` replaced, which must be there. */
static const char *edited(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    if (!at) print_error("no '%s' in\n%s", from, text);
    assert_non_null(at);
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* ---- shipped plans ---- */
static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
/* Every plan of a folder: it begins with a comment, expects something, and the run gives exactly
 * that. */
static void hold_folder(const char *pattern, size_t at_least) {
    glob_t g;
    int failed = 0;
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    assert_true(g.gl_pathc >= at_least);
    int all = (int)g.gl_pathc, n = sample_of(all, pattern);
    for (int i = 0; i < n; i++) {
        const char *path = g.gl_pathv[sample_at(i, n, all)], *text = get(path);
        double start = seconds();
        Ran r = RUN("check", path);
        double took = seconds() - start;
        bool tells = text[0] == '#' && strstr(text, "\nexpect:\n");
        if (r.code || !tells)
            print_error("%s%s\n%s%s", path, tells ? "" : ": no comment or no expect", r.out, r.err);
        if (took > 2)
            print_message("%s took %.1f s; a plan for learning should take less than 2\n", path,
                          took);
        failed += r.code != 0 || !tells;
    }
    globfree(&g);
    assert_int_equal(failed, 0);
}
static void test_plans_hold(void **state) {
    (void)state;
    hold_folder("plans/*.yaml", 18);
}
static void test_bugs_hold(void **state) {
    (void)state;
    hold_folder("plans/bugs/*.yaml", 7);
}
/* The test above is worth something only if an expectation that is wrong fails. */
static void test_wrong_expectations_fail(void **state) {
    (void)state;
    static const struct {
        const char *plan, *from, *to;
    } edits[] = {
        {"plans/04-llama3-8b-tp4.yaml", "all_reduce(tp): 2", "all_reduce(tp): 3"},
        {"plans/04-llama3-8b-tp4.yaml", "\"[B, S, F/tp]\"", "\"[B, S, F]\""},
        {"plans/04-llama3-8b-tp4.yaml", "equivalent: true", "equivalent: false"},
        {"plans/11-llama3-70b-tp16.yaml", "[N0004]", "[N0005]"},
        {"plans/bugs/03-missing-reduction.yaml", "first_wrong: layers.0.mlp.down",
         "first_wrong: layers.0.output"},
        {"plans/bugs/03-missing-reduction.yaml", "faults: [{at: layers.0.mlp.down, do: drop}]", ""},
        {"plans/bugs/07-sequence-not-cut.yaml", "[E0402]", "[E0403]"},
    };
    int n = sample_of((int)(sizeof edits / sizeof *edits), "wrong expectations");
    for (int i = 0; i < n; i++) {
        const char *path =
            put("edited.yaml", edited(get(edits[i].plan), edits[i].from, edits[i].to));
        must_exit(arena_printf(arena, "%s with '%s'", edits[i].plan, edits[i].to),
                  RUN("check", path), 1);
    }
}
/* Numbers that the articles give. */
static void test_numbers_of_the_articles(void **state) {
    (void)state;
    static const struct {
        const char *command, *plan, *set, *line, *number;
    } rows[] = {
        {"params", "plans/01-column-row-mlp.yaml", "data.seed=0", "up.weight", "[512, 512]"},
        {"params", "plans/01-column-row-mlp.yaml", "data.seed=0", "down.weight", "[2048, 512]"},
        {"params", "plans/02-toymodel-4.yaml", "data.seed=0", "net1.weight", "[8, 10]"},
        {"params", "plans/02-toymodel-4.yaml", "data.seed=0", "net1.bias", "[8]"},
        {"params", "plans/02-toymodel-4.yaml", "data.seed=0", "net2.weight", "[5, 8]"},
        {"params", "plans/03-llama3-8b-tp2.yaml", "model.shrink=1", "blk.0.attn_q.weight",
         "[2048, 4096]"},
        {"params", "plans/03-llama3-8b-tp2.yaml", "model.shrink=1", "blk.0.attn_k.weight",
         "[512, 4096]"},
        {"params", "plans/03-llama3-8b-tp2.yaml", "model.shrink=1", "blk.0.attn_v.weight",
         "[512, 4096]"},
        {"params", "plans/03-llama3-8b-tp2.yaml", "model.shrink=1", "blk.0.attn_output.weight",
         "[4096, 2048]"},
        {"params", "plans/03-llama3-8b-tp2.yaml", "model.shrink=1", "blk.0.ffn_up.weight",
         "[7168, 4096]"},
        {"params", "plans/03-llama3-8b-tp2.yaml", "model.shrink=1", "blk.0.ffn_gate.weight",
         "[7168, 4096]"},
        {"params", "plans/03-llama3-8b-tp2.yaml", "model.shrink=1", "blk.0.ffn_down.weight",
         "[4096, 7168]"},
        {"shapes", "plans/03-llama3-8b-tp2.yaml", "model.shrink=1", "layers.0.q_rope",
         "[1, 64, 16, 128]"},
        {"shapes", "plans/03-llama3-8b-tp2.yaml", "model.shrink=1", "layers.0.k_rope",
         "[1, 64, 4, 128]"},
        {"params", "plans/13-qwen3-0.6b-tp4.yaml", "model.shrink=1", "q_proj.weight",
         "[512, 1024]"},
        {"params", "plans/13-qwen3-0.6b-tp4.yaml", "model.shrink=1", "o_proj.weight",
         "[1024, 512]"},
    };
    int all = sizeof rows / sizeof *rows, n = sample_of(all, "numbers");
    for (int k = 0; k < n; k++) {
        int i = sample_at(k, n, all);
        Ran r = RUN(rows[i].command, rows[i].plan, "--set", rows[i].set, "--format", "csv");
        must_exit(rows[i].plan, r, 0);
        const char *line = strstr(r.out, rows[i].line);
        assert_non_null(line);
        must_say(rows[i].plan, arena_strndup(arena, line, strcspn(line, "\n")), rows[i].number);
    }
}
static void test_shape_only(void **state) {
    (void)state;
    const char *plan = "plans/shape-only/llama3.1-405b-8192.yaml";
    double start = seconds();
    Ran shapes = RUN("shapes", plan), params = RUN("params", plan), comms = RUN("comms", plan);
    double took = seconds() - start;
    must_exit(plan, shapes, 0);
    must_say(plan, shapes.out, "[B/dp, S/(cp*sp), D]");
    must_say(plan, shapes.out, "[16, 1024, 16384]");
    must_say(plan, shapes.out, "\n  layers 1-125: the same as layer 0 (steps ");
    must_exit(plan, params, 0);
    must_say(plan, params.out, "1134 parameters");
    must_exit(plan, comms, 0);
    must_say(plan, comms.out, "756 collectives");
    if (took > 1) print_message("three shape-only commands took %.2f s\n", took);
    start = seconds(); /* what makes it so large is not looked for: that took a minute */
    Ran held = RUN("check", plan, "-v");
    took = seconds() - start;
    must_exit(plan, held, 0);
    must_say(plan, held.out, "756 collectives in one order on all ranks, not executed");
    must_say(plan, held.err, "executing this plan needs more than ");
    if (took > 1) print_message("a check without values took %.2f s\n", took);
    assert_true(took < 20);
}

/* ---- the plan in the README ---- */
static void test_readme_plan(void **state) {
    (void)state;
    const char *readme = get("README.md"), *at = strstr(readme, "```yaml\n");
    assert_non_null(at);
    const char *end = strstr(at + 8, "```");
    assert_non_null(end);
    const char *plan = put("readme.yaml", arena_strndup(arena, at + 8, (size_t)(end - at - 8)));
    must_exit("the plan in README.md", RUN("check", plan), 0);
}
/* Every file that the README links to or names in a command is there. */
static void test_readme_names_files(void **state) {
    (void)state;
    static const char *const roots[] = {"plans/", "docs/", "examples/"};
    const char *readme = get("README.md");
    for (size_t k = 0; k < sizeof roots / sizeof *roots; k++)
        for (const char *at = readme; (at = strstr(at, roots[k])); at++) {
            const char *path = arena_strndup(arena, at, strcspn(at, " `)\n\"'*:,;#"));
            if (access(path, R_OK) != 0)
                print_error("README.md names %s, which is not there\n", path);
            assert_int_equal(access(path, R_OK), 0);
        }
}

/* ---- the examples' scripts ---- */
static void need_binary(void) {
    if (access("shardproof", X_OK) == 0) return;
    print_message("./shardproof is not built\n");
    skip();
}
static char *output_of(const char *command, int *code) {
    FILE *p = popen(command, "r");
    assert_non_null(p);
    Str s = str_new(arena);
    char part[4096];
    size_t n;
    while ((n = fread(part, 1, sizeof part, p)) > 0) str_addf(&s, "%.*s", (int)n, part);
    int status = pclose(p);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return s.n ? s.s : arena_strdup(arena, "");
}
static void script_prints(const char *folder, const char *script) {
    char here[4096];
    int code;
    need_binary();
    assert_non_null(getcwd(here, sizeof here));
    const char *command =
        arena_printf(arena, "cd examples/%s && SHARDPROOF='%s/shardproof' FIGURES=%s sh %s 2>&1",
                     folder, here, dir, script);
    const char *expected = arena_printf(arena, "examples/%s/expected.txt", folder);
    const char *got = output_of(command, &code), *want = get(expected);
    if (strcmp(got, want) != 0) {
        const char *path = put("got.txt", got);
        int ignored;
        print_error("%s differs from what %s prints; if that is right: sh %s > expected.txt\n%s",
                    expected, script, script,
                    output_of(arena_printf(arena, "diff -u %s %s", expected, path), &ignored));
    }
    assert_int_equal(code, 0);
    assert_string_equal(got, want);
    /* and from another folder, with what the caller names relative to that */
    assert_string_equal(
        output_of(arena_printf(arena, "SHARDPROOF=./shardproof FIGURES=%s sh examples/%s/%s 2>&1",
                               dir, folder, script),
                  &code),
        want);
    assert_int_equal(code, 0);
}
/* Every line of README.md that calls the program does what the page says: exit 0, or the code in
 * its comment. */
static void test_readme_commands(void **state) {
    (void)state;
    int n = 0, code;
    need_binary();
    for (const char *at = get("README.md"); (at = strstr(at, "\n./shardproof ")); n++) {
        at++;
        const char *line = arena_strndup(arena, at, strcspn(at, "\n")),
                   *says = strstr(line, "# exit ");
        const char *out = output_of(arena_printf(arena, "%s", line), &code);
        if (code != (says ? atoi(says + 7) : 0)) print_error("%s\nexit %d\n%s", line, code, out);
        assert_int_equal(code, says ? atoi(says + 7) : 0);
    }
    assert_true(n >= 5);
}
static void test_classroom(void **state) {
    (void)state;
    script_prints("classroom", "teacher.sh");
    assert_non_null(strstr(get(arena_printf(arena, "%s/block.svg", dir)), "<svg"));
}
static void test_ci(void **state) {
    (void)state;
    script_prints("ci", "check.sh");
    must_exit("examples/ci/broken.yaml", RUN("check", "examples/ci/broken.yaml"), 1);
}
/* ---- pipelines ---- */
/* What a YAML file runs: every `run` of steps, every line of `before_script` and `script`. */
static void add_lines(const Yaml *y, const char *key, Str *out) {
    bool runs = !strcmp(key, "run") || !strcmp(key, "script") || !strcmp(key, "before_script");
    if (y->kind == YAML_SCALAR && runs) str_addf(out, "%s\n", y->s);
    for (int i = 0; y->kind == YAML_LIST && i < y->n; i++) add_lines(y->item[i], key, out);
    for (int i = 0; y->kind == YAML_MAP && i < y->n; i++)
        add_lines(y->pair[i].value, y->pair[i].key, out);
}
/* A repository that stands for shardproof's own: its Makefile makes the program that is here. */
static void make_origin(const char *here) {
    put("Makefile",
        arena_printf(arena, "all: ; ln -s '%s/shardproof' shardproof\ndeps: ; @echo deps\n", here));
    int code;
    output_of(
        arena_printf(arena,
                     "mkdir %s/origin && cd %s/origin && mv ../Makefile . && git init -q . && "
                     "git add . && git -c user.name=x -c user.email=x@y commit -qm x 2>&1",
                     dir, dir),
        &code);
    assert_int_equal(code, 0);
}
/* The lines of a CI service run as they are written there, in a clone with a good plan and in one
 * with a bad one; apt-get does nothing here. */
static void service_runs(const char *file, const char *here, const char *says) {
    const char *path = arena_printf(arena, "examples/ci/%s", file);
    char *text = get(path);
    Str lines = str_new(arena);
    Yaml *y = yaml_parse(arena, diags_new(arena), path, text, strlen(text));
    assert_non_null(y);
    add_lines(y, "", &lines);
    must_say(path, lines.s, "git clone --depth 1 \"$SHARDPROOF_REPOSITORY\" ../shardproof\n");
    must_say(path, lines.s, "make -C ../shardproof -j2\n");
    put("lines.sh", lines.s);
    for (int bad = 0; bad < 2; bad++) {
        int code;
        const char *said = output_of(
            arena_printf(arena,
                         "cd %s && rm -rf repo shardproof bin && mkdir -p repo/plans bin && cp "
                         "'%s/examples/ci/%s.yaml' repo/plans/p.yaml && printf '#!/bin/sh\n' "
                         ">bin/apt-get && chmod +x bin/apt-get && cd repo && "
                         "PATH=%s/bin:$PATH SHARDPROOF_REPOSITORY=file://%s/origin sh -e "
                         "../lines.sh 2>&1; code=$?; cat gl-code-quality-report.json 2>/dev/null; "
                         "exit $code",
                         dir, here, bad ? "broken" : "plan", dir, dir),
            &code);
        if (code != bad) print_error("%s: exit %d\n%s", path, code, said);
        assert_int_equal(code, bad);
        if (bad) must_say(path, said, says);
    }
}
static void test_pipelines(void **state) {
    (void)state;
    need_binary();
    char here[4096];
    int code;
    assert_non_null(getcwd(here, sizeof here));
    output_of("git --version", &code);
    if (code) print_message("git is not installed: lines of CI services were not run\n");
    if (code) return;
    make_origin(here);
    service_runs("workflow.yml", here, "::error file=plans/p.yaml,line=");
    service_runs("gitlab-ci.yml", here, "\"check_name\":\"E0402\"");
    output_of(arena_printf(arena, "cd %s && rm -rf repo shardproof bin origin lines.sh", dir),
              &code);
}
/* pre-commit calls its `entry` with the files of a commit that match `files` behind it. */
static void test_hook(void **state) {
    (void)state;
    need_binary();
    const char *path = "examples/ci/pre-commit-config.yaml";
    char *text = get(path);
    Yaml *y = yaml_parse(arena, diags_new(arena), path, text, strlen(text));
    assert_non_null(y);
    Yaml *hook = yaml_get(yaml_get(y, "repos")->item[0], "hooks")->item[0];
    assert_string_equal(yaml_get(hook, "files")->s, "^plans/.*\\.ya?ml$");
    /* whoever names this repository gets the same hook */
    const char *own = get(".pre-commit-hooks.yaml");
    Yaml *of = yaml_parse(arena, diags_new(arena), "hooks", own, strlen(own));
    assert_true(of && of->n == 1 && of->item[0]->n == hook->n);
    static const char *const keys[] = {"id",       "name",  "entry",
                                       "language", "files", "require_serial"};
    assert_int_equal(hook->n, sizeof keys / sizeof *keys);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_string_equal(yaml_get(of->item[0], keys[i])->s, yaml_get(hook, keys[i])->s);
    for (int bad = 0; bad < 2; bad++) {
        int code;
        const char *said =
            output_of(arena_printf(arena,
                                   "PATH=$PWD:$PATH; %s plans/05-llama3-8b-tp4-sp.yaml "
                                   "examples/ci/%s.yaml 2>&1",
                                   yaml_get(hook, "entry")->s, bad ? "broken" : "plan"),
                      &code);
        if (code != bad) print_error("%s: exit %d\n%s", path, code, said);
        assert_int_equal(code, bad);
    }
}

/* ---- the lesson of 90 minutes ---- */
/* `line` with every run of blanks as one, for tables are as wide as their folder's name. */
static const char *squeezed(const char *line) {
    Str s = str_new(arena);
    for (; *line; line++)
        if (*line != ' ' || (s.n && s.s[s.n - 1] != ' ')) str_addn(&s, line, 1);
    while (s.n && s.s[s.n - 1] == ' ') s.s[--s.n] = 0;
    return s.n ? s.s : "";
}
/* Each `$` line of a page's consoles is run in a folder; the lines below it are said. */
enum { CHECK_FAILED = 1, BAD_INPUT = 3 }; /* exit codes */
static void run_page(const char *page, const char *folder, int worst, int least_commands,
                     int least_says) {
    char here[4096], *text = get(page), *rest;
    assert_non_null(getcwd(here, sizeof here));
    const char *out = "", *command = NULL, *to = arena_printf(arena, "%s/said.txt", dir);
    int commands = 0, says = 0;
    bool console = false;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        bool fence = !strncmp(line, "```", 3);
        if (fence) console = !console && !strcmp(line, "```console");
        else if (console && *line == '$') {
            command = line + 2;
            int code = system(arena_printf(arena, "cd %s && PATH='%s':$PATH && { %s; } >%s 2>&1",
                                           folder, here, command, to));
            assert_true(WIFEXITED(code) && WEXITSTATUS(code) <= worst && WEXITSTATUS(code) != 2);
            out = squeezed(get(to));
            commands++;
        } else if (console) {
            must_say(command, out, squeezed(line));
            says++;
        }
    }
    assert_true(commands >= least_commands && says >= least_says);
    unlink(to);
}
static void test_lesson(void **state) {
    (void)state;
    const char *home = arena_printf(arena, "%s/lesson", dir);
    assert_int_equal(
        system(arena_printf(arena, "mkdir %s && cp examples/classroom/lesson.yaml %s", home, home)),
        0);
    run_page("examples/classroom/lesson.md", home, CHECK_FAILED, 20, 15);
    assert_int_equal(system(arena_printf(arena,
                                         "cd %s && ls handout-3.pdf handout-4.pdf slides-4.pdf "
                                         "ring.svg both.svg wrong.svg >out.txt",
                                         home)),
                     0);
    assert_int_equal(system(arena_printf(arena, "rm -r %s", home)), 0);
}
/* What the articles say otherwise, and what shows it. */
static void test_errata(void **state) {
    (void)state;
    run_page("docs/errata.md", ".", BAD_INPUT, 17, 22);
}

int main(void) {
    if (!mkdtemp(dir)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plans_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bugs_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_expectations_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_numbers_of_the_articles, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shape_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readme_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readme_names_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readme_commands, setup, teardown),
        cmocka_unit_test_setup_teardown(test_classroom, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lesson, setup, teardown),
        cmocka_unit_test_setup_teardown(test_errata, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ci, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pipelines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hook, setup, teardown),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    static const char *const left[] = {"edited.yaml", "readme.yaml", "got.txt", "block.svg"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", dir, left[i]);
        unlink(path);
    }
    rmdir(dir);
    return failed;
}
