/* What a terminal gets: nothing wider than it is, colours by the rules, help that fits; and a pipe
 * gets every line whole. The real binary on a pseudo-terminal. */
#include "cli/cli.h"
#include "render/render.h"
#include "support/child.h"
#include "support/sandbox.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PLAN "plans/09-llama3-8b-dp2-cp2-tp2.yaml"
#define MOE "plans/30-mixtral-8x7b-ep-dp-cp.yaml"
#define TRAIN "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml"
#define BUG "plans/bugs/13-gradient-not-summed-over-dp.yaml"
static const char *const plain[] = {"CI=1",        "TERM=xterm",     "NO_COLOR",
                                    "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR",
                                    "COLUMNS",     "LC_ALL=C.UTF-8", NULL};

/* The text without its colours; fails on an escape sequence that is none of the 16 colours, bold or
 * underline. */
static char *uncoloured(Arena *a, const char *s, int *n_colours) {
    Str out = str_new(a);
    for (; *s; s++) {
        if (*s == '\r') continue;
        if (*s != '\033') {
            str_addn(&out, s, 1);
            continue;
        }
        ++*n_colours;
        assert_int_equal(s[1], '[');
        s += 2;
        for (;; s++) {
            char *end;
            long k = strtol(s, &end, 10);
            assert_true(end > s);
            assert_true(k == 0 || k == 1 || k == 4 || (k >= 30 && k <= 37) || (k >= 90 && k <= 97));
            s = end;
            if (*s == 'm') break;
            assert_int_equal(*s, ';');
        }
    }
    return out.s;
}
/* A word that is wider than the line stays whole, on a line of its own or, a path, behind its
 * verdict ("ok    plans/..."): it can be copied. */
static bool one_word(const char *line) {
    line += strspn(line, " ");
    const char *gap = strchr(line, ' ');
    if (!gap) return true;
    gap += strspn(gap, " ");
    return !strchr(gap, ' ') && strchr(gap, '/');
}
static void fits(Arena *a, const char *text, int width) {
    int colours = 0;
    for (const char *s = uncoloured(a, text, &colours); *s;) {
        size_t n = strcspn(s, "\n");
        const char *line = arena_strndup(a, s, n);
        bool fit = table_text_width(line) <= width || one_word(line),
             blank = !colours && n && line[n - 1] == ' ';
        if (!fit) print_error("%d columns of %d: %s\n", table_text_width(line), width, line);
        if (blank) print_error("blanks at the end: '%s'\n", line);
        assert_true(fit && !blank);
        s += n + (s[n] != 0);
    }
}
/* Words of a text, without what breaks lines: folding loses none. */
static char *words_of(Arena *a, const char *s) {
    Str out = str_new(a);
    for (; *s; s++)
        if (*s != ' ' && *s != '\n' && *s != '\r') str_addn(&out, s, 1);
    return out.s;
}
static bool beyond_ascii(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s >= 0x80) return true;
    return false;
}
/* In a locale of ASCII a terminal gets ASCII, as wide and as long as the text is elsewhere; what
 * goes into a pipe stays UTF-8. */
static void test_ascii(void **state) {
    (void)state;
    const char *const *const commands[] = {
        WORDS("shapes", PLAN),
        WORDS("draw", PLAN, "--view", "shards"),
        WORDS("draw", PLAN, "--view", "block"),
        WORDS("draw", TRAIN, "--view", "memory"),
        WORDS("shapes", "größe.yaml"),
    };
    /* the last two are pipes: of a locale that is set, and of none */
    static const char *const locales[][4] = {{"LC_ALL=C", NULL},
                                             {"LC_ALL", "LC_CTYPE=POSIX", NULL},
                                             {"LC_ALL=de_DE.UTF-8", NULL},
                                             {"LC_ALL=C", NULL},
                                             {"LC_ALL", "LC_CTYPE", "LANG", NULL}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        Arena *a = arena_new();
        Ended e[5];
        for (int k = 0; k < 5; k++)
            e[k] = child_run(
                a,
                &(Child){.words = commands[i], .env = locales[k], .pty = k < 3, .pty_out = k < 3});
        const char *wide = e[2].out, *narrow = e[0].out;
        assert_true(beyond_ascii(wide) || beyond_ascii(e[2].err));
        assert_false(beyond_ascii(narrow) || beyond_ascii(e[0].err));
        assert_false(beyond_ascii(e[3].out) || beyond_ascii(e[3].err));
        assert_true(beyond_ascii(e[4].out) || beyond_ascii(e[4].err));
        assert_string_equal(e[1].out, narrow);
        for (; *wide && *narrow;
             wide += strcspn(wide, "\n") + 1, narrow += strcspn(narrow, "\n") + 1)
            assert_int_equal(table_text_width(arena_strndup(a, wide, strcspn(wide, "\n"))),
                             table_text_width(arena_strndup(a, narrow, strcspn(narrow, "\n"))));
        assert_true(!*wide && !*narrow);
        arena_free(a);
    }
}
static void test_widths(void **state) {
    (void)state;
    const char *plan = in("p.yaml");
    /* a source line of 300 characters, some two columns wide, with tabs, and the mistake far right
     */
    child_write(plan,
                "model: {kind: mlp, sizes: [6, 10, 3]}\ndata: {rows: 5}\nmesh: {tp: 2}\n"
                "plan: {net1: colwise, net2:\t\trowwise, "
                "\"名前名前名前名前名前名前名前名前名前名前名前名前名前名前名前名前名前名前名前\": "
                "colwise, a.very.long.name.that.no.module.of.this.model.has.and.that.goes.on: "
                "colwisee, b: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n");
    const char *const *const commands[] = {
        WORDS("check", PLAN),
        WORDS("check", PLAN, BUG, "-v"),
        WORDS("comms", BUG),
        WORDS("comms", TRAIN),
        WORDS("times", TRAIN),
        WORDS("comms", MOE),
        WORDS("comms", MOE, "--pairs"),
        WORDS("shapes", MOE),
        WORDS("shapes", TRAIN),
        WORDS("params", PLAN),
        WORDS("explain", PLAN, "layers.0.attention.wo"),
        WORDS("explain", BUG, "34"),
        WORDS("explain", "E0403"),
        WORDS("check", "plans/none.yaml", "--set", "expect.verdict=same"),
        WORDS("check", BUG, "--set", "expect.verdict=equivalent"),
        WORDS("check", plan),
        WORDS("diff", PLAN, TRAIN),
        WORDS("list", "hardware"),
        WORDS("list", "ops"),
        WORDS("chekc", plan)};
    static const int widths[] = {80, 60};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        for (int k = 0; k < 2; k++) {
            Arena *a = arena_new();
            Ended e = child_run(a, &(Child){.words = commands[i],
                                            .env = plain,
                                            .pty = true,
                                            .pty_out = true,
                                            .columns = widths[k]});
            assert_true(e.n_err > 0 && e.code < 70);
            fits(a, e.err, widths[k]);
            arena_free(a);
        }
}

/* ---- every command ---- */
#define TP "plans/03-llama3-8b-tp2.yaml"
#define ILLEGAL "plans/bugs/07-sequence-not-cut.yaml"
#define WRONG "plans/bugs/04-wrong-block.yaml"
#define PIPE "plans/45-llama3-8b-pp4-1f1b.yaml"
/* What each command is asked; "PLAN" stands for each of `swept`, for what was written of its run
 * where `of_run` says so (no plan is executed again then), "EACH" for each of the words of the
 * command's operands. `pasted`: what it writes is for another program, only what it says beside
 * that is for people. */
static const struct {
    int bit;
    const char *words[6];
    bool of_run, pasted;
} asked[] = {
    {C_CHECK, {"check", "PLAN"}, false, false},
    {C_CHECK, {"check", "PLAN", "-v", "--static"}, false, false},
    {C_SHAPES, {"shapes", "PLAN"}, true, false},
    {C_SHAPES, {"shapes", "PLAN", "-v"}, true, false},
    {C_PARAMS, {"params", "PLAN"}, true, false},
    {C_COMMS, {"comms", "PLAN"}, true, false},
    {C_COMMS, {"comms", "PLAN", "--pairs"}, true, false},
    {C_COMMS, {"comms", "PLAN", "--each"}, true, false},
    {C_TIMES, {"times", "PLAN"}, true, false},
    {C_EXPLAIN, {"explain", "PLAN", "o_proj"}, true, false},
    {C_EXPLAIN, {"explain", "PLAN", "wo"}, true, false},
    {C_EXPLAIN, {"explain", "PLAN", "layers.0.attention"}, false, false},
    {C_EXPLAIN, {"explain", "PLAN", "12"}, true, false},
    {C_EXPLAIN, {"explain", "PLAN", "--hooks"}, false, false},
    {C_DIFF, {"diff", "PLAN", TP}, true, false},
    {C_EXPORT, {"export", "PLAN", "--to", "torch"}, false, true},
    {C_EXPORT, {"export", "PLAN", "--to", "hf"}, false, true},
    {C_EXPORT, {"export", "PLAN", "--to", "megatron"}, false, true},
    {C_RUN, {"run", PLAN, "-o", "OUT"}, false, false},
    {C_RUN, {"run", WRONG, "-o", "OUT"}, false, false},
    {C_DRAW, {"draw", TRAIN, "--view", "timelime"}, false, false},
    {C_DRAW, {"draw", TRAIN, "--view", "block", "--quiz=shapes"}, false, false},
    {C_LIST, {"list", "EACH"}, false, false},
    {C_COMPLETION, {"completion", "EACH"}, false, true},
    {C_COMPLETION, {"completion", "tcsh"}, false, false},
    {C_IMPORT, {"import", "jax", PLAN}, false, true},
    {C_IMPORT, {"import", "hf", "--model", "gpt9"}, false, true},
    {C_CALIBRATE, {"calibrate", "--hardware", "none"}, false, true},
    {C_EXPLAIN, {"explain", "partial sum"}, false, false},
    {C_EXPLAIN, {"explain", "colwise"}, false, false},
    {C_EXPLAIN, {"explain", "E0402"}, false, false},
    {C_CHECK, {"check", PLAN, "--set", "mesh.tpp=8"}, false, false},
    {C_CHECK, {"check", "plans/bugs", "--static"}, false, false},
    {C_CHECK, {"check", "plans/none.yaml", "examples/ci/broken.yaml"}, false, false},
};
static const char *const swept[] = {PLAN, MOE, PIPE, ILLEGAL, WRONG};
enum { N_ASKED = sizeof asked / sizeof *asked, N_SWEPT = sizeof swept / sizeof *swept };
/* Terminals: how wide, and in which locale. */
static const struct {
    int columns;
    const char *locale;
} looks[] = {{60, "LC_ALL=C"}, {80, "LC_ALL=C.UTF-8"}, {100, "LC_ALL=POSIX"}};
typedef struct {
    const char *trace[N_SWEPT]; /* of its run; NULL: there was none */
    int asked;
} EachCommand;
static void ask(EachCommand *t, const char *const *words, bool pasted) {
    for (size_t k = 0; k < sizeof looks / sizeof *looks; k++) {
        Arena *a = arena_new();
        Ended e = child_run(a, &(Child){.words = words,
                                        .env = WORDS("CI=1", "TERM=dumb", looks[k].locale),
                                        .pty = true,
                                        .pty_out = !pasted,
                                        .columns = looks[k].columns});
        int colours = 0;
        const char *text = uncoloured(a, e.err, &colours);
        bool ascii = k != 1 && beyond_ascii(text), empty = !*text && !*e.out;
        if (ascii || empty) print_error("%s %s: %s\n", words[0], words[1], text);
        assert_true(e.code < 70 && !ascii && !empty);
        fits(a, text, looks[k].columns);
        arena_free(a);
        t->asked++;
    }
}
/* The words of row i with `each` in place of what stands for several. */
static void ask_row(EachCommand *t, int i, const char *each) {
    const char *words[8] = {NULL};
    for (int w = 0; w < 6 && asked[i].words[w]; w++) {
        const char *s = asked[i].words[w];
        words[w] = !strcmp(s, "PLAN") || !strcmp(s, "EACH") ? each
                   : !strcmp(s, "OUT")                      ? in("out")
                                                            : s;
    }
    ask(t, words, asked[i].pasted);
}
static bool row_has(int i, const char *word) {
    for (int w = 0; w < 6 && asked[i].words[w]; w++)
        if (!strcmp(asked[i].words[w], word)) return true;
    return false;
}
static void ask_all(EachCommand *t, const Command *k) {
    Arena *a = arena_new();
    int rows = 0;
    for (int i = 0; i < N_ASKED; i++) {
        if (asked[i].bit != k->bit) continue;
        rows++;
        for (int p = 0; p < N_SWEPT && row_has(i, "PLAN"); p++)
            ask_row(t, i, asked[i].of_run && t->trace[p] ? t->trace[p] : swept[p]);
        for (const char *w = k->operands; *w && row_has(i, "EACH"); w += *w == '|') {
            size_t n = strcspn(w, "|");
            ask_row(t, i, arena_strndup(a, w, n));
            w += n;
        }
        if (!row_has(i, "PLAN") && !row_has(i, "EACH")) ask_row(t, i, NULL);
    }
    ask(t, WORDS(k->name, "--help"), false);
    ask(t, WORDS(k->name, "--nonsense"), false);
    if (!rows) print_error("nothing here asks `%s`\n", k->name);
    assert_true(rows);
    arena_free(a);
}
/* Each command of the table keeps to a terminal of 60, 80 and 100 columns, in ASCII where the
 * locale is C, with no blanks at the end of a line. */
static void test_every_command(void **state) {
    (void)state;
    EachCommand t = {.asked = 0};
    for (int p = 0; p < N_SWEPT; p++) {
        const char *to = in(arena_printf(arena, "%d.jsonl", p));
        child_run(arena, &(Child){.words = WORDS("check", swept[p], "--trace", to)});
        if (access(to, F_OK) == 0) t.trace[p] = to;
    }
    assert_true(t.trace[0] && t.trace[1] && t.trace[2] && t.trace[4]);
    int n = sample_of(n_cli_commands, "commands");
    for (int i = 0; i < n; i++) ask_all(&t, &cli_commands[i]);
    assert_true(n < n_cli_commands || t.asked > 3 * (N_ASKED + 20));
}
/* A list of nothing has no head. */
static void test_nothing_to_list(void **state) {
    (void)state;
    const char *const *const commands[] = {
        WORDS("comms", TP, "--set", "mesh.tp=1", "--color=always"),
        WORDS("explain", TP, "--hooks", "--set", "plan={}", "--color=always")};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        Arena *a = arena_new();
        Ended e = child_run(a, &(Child){.words = commands[i]});
        assert_true(*e.out);
        assert_null(strstr(e.out, "\033[1;4m"));
        arena_free(a);
    }
}
/* The text of every view keeps to the terminal, in a pipe it is what 80 columns hold. */
static void test_views(void **state) {
    (void)state;
    static const char *const plans[] = {TRAIN,
                                        MOE,
                                        BUG,
                                        WRONG,
                                        "plans/47-llama3-8b-pp2-dp2-tp2.yaml",
                                        "plans/shape-only/llama3.1-405b-8192.yaml"};
    static const int widths[] = {80, 60};
    int n_views, drawn = 0;
    const RenderView *view = render_views(&n_views);
    for (size_t p = 0; p < sizeof plans / sizeof *plans; p++)
        for (int v = 0; v < n_views; v++) {
            Arena *a = arena_new();
            const char *const *words = WORDS("draw", plans[p], "--view", view[v].name);
            Ended pipe = child_run(a, &(Child){.words = words, .env = plain}), e = {0};
            if (pipe.code == 0 || pipe.code == 1)
                for (int k = 0; k < 2; k++) {
                    e = child_run(a, &(Child){.words = words,
                                              .env = plain,
                                              .pty = true,
                                              .pty_out = true,
                                              .columns = widths[k]});
                    int colours = 0;
                    assert_int_equal(e.code, pipe.code);
                    fits(a, e.err, widths[k]);
                    if (k == 0) assert_non_null(strstr(uncoloured(a, e.err, &colours), pipe.out));
                }
            if (p == 0) { /* standard output by its name */
                e = child_run(
                    a, &(Child){.words = WORDS("draw", plans[p], "--view", view[v].name, "-o", "-"),
                                .env = plain,
                                .pty = true,
                                .pty_out = true,
                                .columns = widths[1]});
                fits(a, e.err, widths[1]);
            }
            drawn += *pipe.out != 0;
            arena_free(a);
        }
    assert_true(drawn >= 40);
}
/* A pipe gets whole lines, whatever COLUMNS says; a terminal that does not know its width takes
 * COLUMNS, else 80. */
static void test_unknown_width(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const char *const narrow[] = {"CI=1", "TERM=xterm", "COLUMNS=60", "NO_COLOR=1", NULL};
    const char *const *check = WORDS("check", PLAN);
    Ended pipe = child_run(a, &(Child){.words = check, .env = narrow});
    assert_true(strcspn(pipe.out, "\n") > 100); /* one line */
    assert_int_equal(strlen(strchr(pipe.out, '\n')), 1);
    Ended e = child_run(
        a, &(Child){.words = check, .env = narrow, .pty = true, .pty_out = true, .columns = -1});
    fits(a, e.err, 60);
    assert_string_equal(words_of(a, e.err), words_of(a, pipe.out));
    Ended wide = child_run(
        a, &(Child){.words = check, .env = plain, .pty = true, .pty_out = true, .columns = -1});
    fits(a, wide.err, 80);
    int n = 0;
    assert_string_not_equal(uncoloured(a, wide.err, &n), uncoloured(a, e.err, &n));
    e = child_run(
        a, &(Child){.words = check, .env = plain, .pty = true, .pty_out = true, .columns = 200});
    assert_int_equal(strcspn(uncoloured(a, e.err, &n), "\n"), strcspn(pipe.out, "\n"));
    arena_free(a);
}
static void test_fold(void **state) {
    (void)state;
    Arena *a = arena_new();
    assert_string_equal(table_fold("short\n\nas it is", 10, a), "short\n\nas it is");
    assert_string_equal(table_fold("  made by   one two three four five six\n", 24, a),
                        "  made by   one two\n            three four\n            five six\n");
    assert_string_equal(table_fold("one two three", 8, a), "one two\n  three");
    assert_string_equal(table_fold("\033[1mone\033[0m two", 7, a),
                        "\033[1mone\033[0m two"); /* colours take no room */
    assert_string_equal(table_fold("look at /a/path/that/is/longer end", 12, a),
                        "look at\n  /a/path/that/is/longer\n  end"); /* stays whole */
    assert_string_equal(table_fold("名前名前 名前名前", 10, a), "名前名前\n  名前名前");
    arena_free(a);
}
/* --color beats NO_COLOR beats what forces it beats TERM=dumb and CLICOLOR=0 beats what the stream
 * is; empty values say nothing. */
static void test_colours(void **state) {
    (void)state;
    static const struct {
        const char *env[6], *option;
        bool terminal, coloured;
    } row[] = {
        {{NULL}, NULL, true, true},
        {{NULL}, NULL, false, false},
        {{NULL}, "--color=never", true, false},
        {{NULL}, "--color=always", false, true},
        {{"NO_COLOR=1", "TERM=dumb"}, "--color=always", false, true},
        {{"FORCE_COLOR=1"}, "--color=never", true, false},
        {{"NO_COLOR=1"}, NULL, true, false},
        {{"NO_COLOR=1"}, "--color=auto", true, false},
        {{"NO_COLOR="}, NULL, true, true},
        {{"NO_COLOR=1", "FORCE_COLOR=1", "CLICOLOR_FORCE=1"}, NULL, true, false},
        {{"FORCE_COLOR=1"}, NULL, false, true},
        {{"CLICOLOR_FORCE=1"}, NULL, false, true},
        {{"CLICOLOR_FORCE=0"}, NULL, false, false},
        {{"FORCE_COLOR="}, NULL, false, false},
        {{"CLICOLOR_FORCE=1", "TERM=dumb"}, NULL, false, true},
        {{"FORCE_COLOR=1", "CLICOLOR=0"}, NULL, false, true},
        {{"TERM=dumb"}, NULL, true, false},
        {{"CLICOLOR=0"}, NULL, true, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        const char *env[16] = {NULL};
        int n = 0, m = 0, colours = 0;
        while (plain[n]) env[n] = plain[n], n++;
        while (row[i].env[m]) env[n++] = row[i].env[m++];
        /* both streams: a table on one, a diagnostic on the other */
        const char *const *words =
            row[i].option ? WORDS("comms", BUG, row[i].option) : WORDS("comms", BUG);
        Ended e = child_run(
            a, &(Child){
                   .words = words, .env = env, .pty = row[i].terminal, .pty_out = row[i].terminal});
        bool out = strstr(row[i].terminal ? e.err : e.out, "\033[1;4m") != NULL,
             err = strstr(e.err, "\033[1;35m") != NULL;
        uncoloured(a, e.err, &colours);
        if (out != row[i].coloured || err != row[i].coloured)
            print_error("row %zu: out %d, err %d\n", i, out, err);
        assert_true(out == row[i].coloured && err == row[i].coloured);
        assert_true((colours > 0) == row[i].coloured);
        arena_free(a);
    }
}
/* Each stream is asked for itself. */
static void test_streams_differ(void **state) {
    (void)state;
    Arena *a = arena_new();
    Ended e = child_run(a, &(Child){.words = WORDS("comms", BUG),
                                    .env = plain,
                                    .pty = true}); /* shardproof ... | less */
    assert_null(strchr(e.out, '\033'));
    assert_non_null(strstr(e.err, "\033[1;35m"));
    assert_non_null(strstr(
        e.out,
        "its uses differ over dp: the gradient is the sum over them  plans/")); /* not folded */
    fits(a, e.err, 80);
    arena_free(a);
}
static void test_help(void **state) {
    (void)state;
    static const char *const commands[] = {NULL,    "run",    "check",   "shapes", "params",
                                           "comms", "times",  "explain", "draw",   "diff",
                                           "list",  "import", "export"};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        Ended e = child_run(
            a, &(Child){.words = commands[i] ? WORDS(commands[i], "--help") : WORDS("--help"),
                        .env = plain});
        assert_int_equal(e.code, 0);
        assert_string_equal(e.err, "");
        assert_int_equal(strncmp(e.out, "Usage: shardproof ", 18), 0);
        fits(a, e.out, 80);
        Ended narrow = child_run(
            a, &(Child){.words = commands[i] ? WORDS(commands[i], "--help") : WORDS("--help"),
                        .env = WORDS("COLUMNS=60", "HOME=/")});
        fits(a, narrow.out, 60);
        assert_non_null(strstr(narrow.out, "Report bugs"));
        const char *examples = strstr(e.out, "\nExamples:\n"),
                   *options = strstr(e.out, commands[i] ? "\nOptions:\n" : "\nCommands:\n");
        assert_non_null(options);
        assert_true(examples && examples < options);
        assert_null(strstr(e.out, "  report ")); /* what is refused is not listed */
        assert_non_null(strstr(options, "Report bugs"));
    }
    Ended e = child_run(a, &(Child){.words = WORDS("--version"), .env = plain});
    assert_int_equal(e.code, 0);
    assert_int_equal(strncmp(e.out, "shardproof ", 11), 0);
    assert_string_equal(e.err, "");
    e = child_run(a, &(Child){.words = WORDS("check", "--nonsense", "x"), .env = plain});
    assert_int_equal(e.code, 2);
    assert_string_equal(e.out, "");
    assert_string_equal(
        e.err,
        "shardproof: error: unknown option '--nonsense' [E0212]\nTry 'shardproof check --help'.\n");
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_widths, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_every_command, sandbox_new, sandbox_gone),
        cmocka_unit_test(test_nothing_to_list),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_ascii),
        cmocka_unit_test(test_unknown_width),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_streams_differ),
        cmocka_unit_test(test_help)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
