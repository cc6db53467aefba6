/* At home on a machine: plans that ship are found by name from any folder, beside the program and
 * where `make install` puts them; what is installed is taken away again. Runs in the root of the
 * repository, on the real binary. */
#include "cli/words.h"
#include "support/child.h"
#include "support/support.h"
#include <glob.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/test shipped XXXXXX";
static void elsewhere(void) {
    if (chdir(dir)) _exit(99);
}
#define RUN(a, prep, ...)                                                                          \
    child_run(a, &(Child){.words = (const char *const[]){__VA_ARGS__, NULL}, .prepare = prep})

static void test_by_name(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const char *const names[] = {"02-toymodel-2", "02-toymodel-2.yaml",
                                        "plans/02-toymodel-2.yaml", "bugs/03-missing-reduction"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Ended e = RUN(a, elsewhere, "check", names[i]);
        if (e.code) print_error("%s: %s%s\n", names[i], e.out, e.err);
        assert_int_equal(e.code, 0);
    }
    static const char *const none[] = {"02-toymodel-", "../plans/02-toymodel-2", "hardware", "",
                                       "nothing"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(RUN(a, elsewhere, "check", none[i]).code, 3);
    static const char *const meant[][2] = {
        {"05-lama3", "did you mean 05-llama3-8b-tp4-sp?"},
        {"plans/05-lama3.yaml", "did you mean 05-llama3-8b-tp4-sp?"},
        {"bugs/03-mising", "did you mean bugs/03-missing-reduction?"},
        {"04-", "did you mean 04-llama3-8b-tp4?"},
        {"02-toymodl", "shipped plans that begin so: 02-toymodel-2, 02-toymodel-4"},
        {"nothing.yaml", "check the spelling and where the path starts"}};
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) {
        Ended e = RUN(a, elsewhere, "check", meant[i][0]);
        if (!strstr(e.err, meant[i][1])) fail_msg("%s: %s", meant[i][0], e.err);
    }
    assert_int_equal(RUN(a, elsewhere, "diff", "04-llama3-8b-tp4", "05-llama3-8b-tp4-sp").code, 1);
    assert_int_equal(RUN(a, elsewhere, "explain", "02-toymodel-2", "net1").code, 0);
    arena_free(a);
}
/* A file of that path is what the user means, right or wrong. */
static void test_own_file_wins(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *own = arena_printf(a, "%s/02-toymodel-2", dir);
    child_write(own, "mesh: {tp: 2}\n");
    Ended e = RUN(a, elsewhere, "check", "02-toymodel-2");
    assert_int_equal(e.code, 3);
    assert_non_null(strstr(e.err, "E0208"));
    unlink(own);
    arena_free(a);
}
static void test_lists(void **state) {
    (void)state;
    Arena *a = arena_new();
    Ended e = RUN(a, elsewhere, "list", "plans", "--format", "csv");
    assert_int_equal(e.code, 0);
    int rows = -1, files = child_count("plans", ".yaml") + child_count("plans/bugs", ".yaml") +
                           child_count("plans/models", ".yaml") +
                           child_count("plans/shape-only", ".yaml");
    for (char *line = strtok(e.out, "\n"); line; line = strtok(NULL, "\n"), rows++) {
        char *comma = strchr(line, ',');
        assert_non_null(comma);
        assert_true(rows < 0 || strlen(comma) > 9); /* each says what it is */
        *comma = 0;
        assert_true(rows < 0 || access(arena_printf(a, "plans/%s.yaml", line), R_OK) == 0);
    }
    assert_int_equal(rows, files);
    e = RUN(a, NULL, "list", "recipes", "--format", "csv");
    assert_non_null(strstr(e.out, "megatron-sp,"));
    arena_free(a);
}
static void test_install(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *make = "make -s --no-print-directory %s DESTDIR='%s/root' PREFIX=/opt >/dev/null";
    /* by one whose files nobody else may read: these are for all */
    const mode_t mask = umask(077);
    assert_int_equal(system(arena_printf(a, make, "install", dir)), 0);
    umask(mask);
    const char *private = "find '%s/root/opt' ! -perm -o=r | grep . >&2";
    assert_int_not_equal(system(arena_printf(a, private, dir)), 0);
    static const char *const files[] = {"bin/shardproof",
                                        "share/man/man1/shardproof.1",
                                        "share/man/man5/shardproof-plan.5",
                                        "share/doc/shardproof/LICENSE",
                                        "share/doc/shardproof/README.md",
                                        "share/shardproof/examples/ci/check.sh",
                                        "share/bash-completion/completions/shardproof",
                                        "share/zsh/site-functions/_shardproof",
                                        "share/fish/vendor_completions.d/shardproof.fish"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_int_equal(access(arena_printf(a, "%s/root/opt/%s", dir, files[i]), R_OK), 0);
    child_use_installed(arena_printf(a, "%s/root/opt/bin/shardproof", dir));
    Ended e = RUN(a, elsewhere, "check", "02-toymodel-2", "--hardware", "h200-sxm");
    assert_int_equal(e.code, 0);
    child_use(NULL);
    assert_int_equal(system(arena_printf(a, make, "uninstall", dir)), 0);
    /* no empty folder either */
    const char *left = arena_printf(a, "find '%s/root' -mindepth 1 | grep -q .", dir);
    assert_int_not_equal(system(left), 0);
    assert_int_equal(system(arena_printf(a, "rm -r '%s/root'", dir)), 0);
    arena_free(a);
}

/* Without the libraries plain make says one sentence, with the command of the distribution where
 * that is known, and none of the compiler's. */
static void test_no_libraries(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const char *const says[] = {"shardproof needs what pkg-config calls: yaml-0.1",
                                       "shardproof needs these packages; run:  sudo apt-get"};
    const char *none = "#!/bin/sh\nexit 1\n", *all = "#!/bin/sh\necho install ok installed\n";
    for (int known = 0; known < 2; known++) { /* dpkg has them, or has not */
        const char *pkg = arena_printf(a, "%s/pkg-config", dir),
                   *dpkg = arena_printf(a, "%s/dpkg-query", dir),
                   *said = arena_printf(a, "%s/said", dir);
        child_write(pkg, none);
        child_write(dpkg, known ? none : all);
        int code = system(arena_printf(a,
                                       "chmod +x '%s' '%s'; PATH='%s':$PATH make BUILD=build/none "
                                       "BIN=build/none/x MPI= >'%s' 2>&1",
                                       pkg, dpkg, dir, said));
        size_t n;
        const char *text = child_read(a, said, &n);
        if (!code || !strstr(text, says[known]) || strstr(text, "error:"))
            fail_msg("make without libraries: %d\n%.2000s", code, text);
        unlink(pkg);
        unlink(dpkg);
        unlink(said);
    }
    arena_free(a);
}
/* The reference of plans in docs/ is what the tables of the program say. */
static void test_reference(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const char *const files[] = {"plan.md", "shardproof-plan.5"};
    assert_int_equal(system(arena_printf(a, "sh docs/reference.sh ./shardproof '%s'", dir)), 0);
    for (size_t i = 0; i < 2; i++) {
        size_t n;
        const char *made = arena_printf(a, "%s/%s", dir, files[i]);
        const char *is = child_read(a, arena_printf(a, "docs/%s", files[i]), &n);
        if (!is || strcmp(is, child_read(a, made, &n)) != 0)
            fail_msg("docs/%s is not what the program says: make docs", files[i]);
        unlink(made);
    }
    arena_free(a);
}
/* ---- letters ---- */
static bool is_axis(const Trace *t, const char *word) {
    bool found = false;
    size_t n = strlen(word); /* tp of an axis that is split into tp.0 and tp.1 */
    for (int i = 0; i < t->n_axes; i++)
        found |= !strncmp(t->axes[i].name, word, n) && strchr(".", t->axes[i].name[n]);
    for (int i = 0; i < t->n_groups; i++) found |= !strcmp(t->groups[i].name, word);
    return found;
}
/* Each name in a shape that is no axis is a term of its own: how many there were. */
static int letters_in(Arena *a, const Trace *t, const char *shape, const char *plan) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    int found = 0;
    for (const char *s = shape; s && *(s += strcspn(s, letters));) {
        size_t n = strspn(s, letters);
        const char *word = arena_strndup(a, s, n);
        const Term *x = cli_terms;
        s += n + strspn(s + n, "0123456789.");
        if (is_axis(t, word)) continue;
        while (x->name && strcmp(x->name, word) != 0) x++;
        if (!x->name) fail_msg("%s: nothing explains '%s' of %s", plan, word, shape);
        found++;
    }
    return found;
}
static void test_letters(void **state) {
    (void)state;
    int found = 0;
    for (PlanFiles f = plan_files("plans/{,models/}*.yaml", NULL); plan_files_next(&f);) {
        const Trace *t = plan_run_with(f.a, f.path, f.text, &(PipelineOptions){0}).t;
        for (int v = 0; t && v < t->n_values; v++)
            found += letters_in(f.a, t, t->values[v].shape.symbolic, f.path);
    }
    assert_true(found > 1000);
}
/* README's commands name files that are there; `plan.yaml` is the reader's own, what follows `-o`
 * is written. */
static void test_readme(void **state) {
    (void)state;
    static const char *const ends[] = {".yaml", ".json", ".py", ".toml", ".txt"};
    Arena *a = arena_new();
    char *text = child_read(a, "README.md", &(size_t){0});
    int files = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "    shardproof ", 15)) continue;
        line[strcspn(line, "#")] = 0;
        bool written = false;
        while (*(line += strspn(line, " "))) {
            size_t n = strcspn(line, " ");
            const char *word = arena_strndup(a, line, n), *end = strrchr(word, '.');
            bool file = false, own = written || !strcmp(word, "plan.yaml");
            for (size_t k = 0; k < 5; k++) file |= end && !strcmp(end, ends[k]);
            line += n;
            written = !strcmp(word, "-o");
            if (!file || own) continue;
            files++;
            glob_t g;
            int found = glob(word, 0, NULL, &g);
            if (found) print_error("README names %s\n", word);
            assert_int_equal(found, 0);
            globfree(&g);
        }
    }
    assert_true(files >= 6);
    arena_free(a);
}

/* "1 row", "2 rows": nothing that is said of a shipped plan counts one of several. `times` is one
 * word of its own: "at worst 1 times as many". */
static void one_is_one(const char *plan, const char *command, const char *text) {
    for (const char *s = text; (s = strstr(s, "1 ")); s++) {
        const char *word = s + 2;
        size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz");
        bool whole = s == text || s[-1] == ' ' || s[-1] == '(' || s[-1] == '\n';
        bool many = n > 3 && word[n - 1] == 's' && word[n - 2] != 's';
        bool number = s - text >= 6 && !strncmp(s - 6, "stage ", 6); /* "stage 1 ends" */
        if (!whole || !many || number || !strncmp(word, "times", n)) continue;
        fail_msg("%s %s: '%.*s'", command, plan, (int)n + 2, s);
    }
}
static void test_grammar(void **state) {
    (void)state;
    static const char *const commands[] = {"comms", "params", "explain", "check"};
    glob_t g;
    assert_int_equal(glob("plans/[0-9]*.yaml", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        for (int k = 0; k < 4; k++) {
            Arena *a = arena_new();
            Ended e = k < 3 ? RUN(a, NULL, commands[k], g.gl_pathv[i])
                            : RUN(a, NULL, commands[k], "--static", "-v", g.gl_pathv[i]);
            one_is_one(g.gl_pathv[i], commands[k], e.out);
            one_is_one(g.gl_pathv[i], commands[k], e.err);
            arena_free(a);
        }
    globfree(&g);
}

/* Every word of every table is explained, by all of its names; what none knows is refused. */
static void explained(Arena *a, const char *word, const char *says) {
    Ended e = RUN(a, NULL, "explain", word);
    if (e.code || !strstr(e.out, says))
        fail_msg("explain '%s': %d %s%s", word, e.code, e.out, e.err);
}
static void test_words(void **state) {
    (void)state;
    Arena *a = arena_new();
    int n;
    for (const Term *t = cli_terms; t->name; t++) explained(a, t->name, t->name);
    const StyleRow *s = style_rows(&n);
    for (int i = 0; i < n; i++) explained(a, s[i].style.name, "a style");
    explained(a, "ColwiseParallel", "colwise, a style");
    const KeyRow *k = plan_key_rows(a, &n);
    for (int i = 0; i < n; i += 7) explained(a, k[i].path, "a key of plans");
    const PlaceWord *p = plan_place_words(a, &n);
    for (int i = 0; i < n; i++) explained(a, p[i].word, "a placement");
    explained(a, "All-Gather", "all_gather, a collective");
    explained(a, "fsdp", "fsdp, a term");
    Ended upper = RUN(a, NULL, "explain", "D"), lower = RUN(a, NULL, "explain", "d");
    assert_string_not_equal(upper.out, lower.out);
    Ended e = RUN(a, NULL, "explain", "rowwse");
    assert_int_equal(e.code, 3);
    assert_non_null(strstr(e.err, "did you mean 'rowwise'?"));
    for (int i = 0; i < n_cli_commands; i++) /* what a list prints it also names */
        if (!strcmp(cli_commands[i].name, "list")) {
            char *words = arena_strdup(a, cli_commands[i].operands);
            for (char *w = strtok(words, "|"); w; w = strtok(NULL, "|"))
                assert_int_equal(RUN(a, NULL, "list", w).code, 0);
        }
    arena_free(a);
}

static int setup(void **state) {
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}
static int teardown(void **state) {
    (void)state;
    return rmdir(dir);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_name),      cmocka_unit_test(test_own_file_wins),
        cmocka_unit_test(test_lists),        cmocka_unit_test(test_install),
        cmocka_unit_test(test_no_libraries), cmocka_unit_test(test_reference),
        cmocka_unit_test(test_readme),       cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_words),        cmocka_unit_test(test_letters),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
