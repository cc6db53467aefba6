/* Completion as a user has it: bash, zsh and fish themselves read the script and complete lines.
 * Every command, every option of every command, every view, list and framework, and the names of
 * plans. A shell that is not installed is passed over with a line that says so. */
#include "cli/cli.h"
#include "import/import.h"
#include "support/child.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static Arena *arena;
static char dir[] = "/tmp/test completion XXXXXX";
static const char *in(const char *name) { return arena_printf(arena, "%s/%s", dir, name); }

/* ---- the shells ---- */
/* Each driver reads lines to complete, one a line, from standard input, and prints for each what it
 * offers for the last word, sorted, with blanks between. Arguments: the folder of the program, that
 * of the script. */
static const char bash_driver[] =
    "cd \"$1\"; PATH=$1:$PATH; . \"$2/_shardproof\"; compopt() { :; }\n"
    "while IFS= read -r line; do\n"
    /* = is a word of its own to readline */
    "  spaced=${line//=/ = }; read -ra COMP_WORDS <<<\"$spaced\"\n"
    "  [[ $line == *[\\ =] ]] && [[ $spaced != *'= ' ]] && COMP_WORDS+=('')\n"
    "  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _shardproof\n"
    "  echo $(printf '%s\\n' \"${COMPREPLY[@]}\" | sort -u)\n"
    "done\n";
/* A terminal of its own, in which Tab is pressed; what stands on the line then is printed. */
static const char zsh_driver[] =
    "zmodload zsh/zpty || exit 9\n"
    "zpty z zsh -f -i\n"
    "zpty -w z \"PS1=; PS2=; cd ${(q)1}; PATH=${(q)1}:\\$PATH; fpath=(${(q)2} \\$fpath); \"\\\n"
    "'autoload -Uz compinit; compinit -u -D; setopt no_beep no_list_beep; print R\"\"EADY'\n"
    "zpty -r z seen '*READY*'\n"
    "while IFS= read -r line; do\n"
    "  zpty -wn z \"$line\"$'\\t\\C-aprint -r -- O\"\"UT: \\n'\n"
    "  zpty -r z seen $'*\\nOUT:*\\n'\n"
    "  seen=${${seen##*$'\\nOUT: '}%%[[:cntrl:]]*}\n"
    "  seen=${seen%% }; seen=${seen##* }; print -r -- ${seen##*=}\n"
    "done\n"
    "zpty -d z\n";
static const char fish_driver[] =
    "cd $argv[1]; set -x PATH $argv[1] $PATH; source $argv[2]/_shardproof\n"
    "while read -l line\n"
    "  echo (complete -C $line | string replace -r '\\t.*' '' | string replace -r '^--[a-z-]+=' '' "
    "| sort -u)\n"
    "end\n";
static const struct {
    const char *name, *driver, *flag;
    bool offers; /* says all that it offers; zsh only what is typed for the user */
} shells[] = {{"bash", bash_driver, "--norc", true},
              {"zsh", zsh_driver, "-f", false},
              {"fish", fish_driver, "--no-config", true}};

static bool installed(const char *shell) {
    bool is = system(arena_printf(arena, "command -v %s >/dev/null", shell)) == 0;
    if (!is) print_message("%s is not installed: its completion was only read\n", shell);
    return is;
}
/* What the shell makes of these lines, one line of words for each. */
static char *completed(int shell, const char *lines) {
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    Ended e = child_run(arena, &(Child){.words = WORDS("completion", shells[shell].name)});
    assert_int_equal(e.code, 0);
    child_write(in("_shardproof"), e.out);
    child_write(in("driver"), shells[shell].driver);
    child_write(in("lines"), lines);
    int code =
        system(arena_printf(arena, "%s %s '%s' '%s' '%s' <'%s' >'%s' 2>&1", shells[shell].name,
                            shells[shell].flag, in("driver"), here, dir, in("lines"), in("out")));
    size_t n;
    char *out = child_read(arena, in("out"), &n);
    if (code) fail_msg("%s: %d\n%s", shells[shell].name, code, out);
    static const char *const files[] = {"_shardproof", "driver", "lines", "out"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(in(files[i]));
    return out;
}
static char *next_line(char **out) {
    char *line = *out, *end = line ? strchr(line, '\n') : NULL;
    if (end) *end = 0;
    *out = end ? end + 1 : NULL;
    return line ? line : arena_strdup(arena, "");
}

/* ---- single words ---- */
static void test_words(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"shardproof dr", "draw"},
                                          {"shardproof check --fail", "--fail-on"},
                                          {"shardproof check --fail-on n", "note"},
                                          {"shardproof check --fail-on=n", "note"},
                                          {"shardproof draw x --view tim", "timeline"},
                                          {"shardproof draw x --view=tim", "timeline"},
                                          {"shardproof list rec", "recipes"},
                                          {"shardproof completion z", "zsh"},
                                          {"shardproof explain all_g", "all_gather"},
                                          {"shardproof explain 02-toymodel-2", "02-toymodel-2"},
                                          {"shardproof import mega", "megatron"},
                                          {"shardproof check READ", "README.md"}, /* a file */
                                          {"shardproof import torch READ", "README.md"},
                                          {"shardproof check bugs/03", "bugs/03-missing-reduction"},
                                          {"shardproof run 02-toymodel-2", "02-toymodel-2"}};
    enum { N = sizeof rows / sizeof *rows };
    Str lines = str_new(arena);
    for (int i = 0; i < N; i++) str_addf(&lines, "%s\n", rows[i][0]);
    for (int k = 0; k < 3; k++) {
        if (!installed(shells[k].name)) continue;
        char *out = completed(k, lines.s);
        for (int i = 0; i < N; i++) {
            const char *got = next_line(&out);
            if (strcmp(got, rows[i][1]))
                fail_msg("%s: '%s' becomes '%s'", shells[k].name, rows[i][0], got);
        }
    }
}

/* ---- keys of the plan behind --set, and the words that they take ---- */
static void test_set(void **state) {
    (void)state;
    static const char *const rows[][4] = {
        /* bash and zsh complete behind the last =, fish the word */
        {"shardproof check x --set data.micro", "data.microbatches=", "", "data.microbatches="},
        {"shardproof check x --set data.dtype=b", "bf16", "bf16", "data.dtype=bf16"},
        {"shardproof draw x --set=data.dtype=b", "bf16", "bf16", "data.dtype=bf16"},
        {"shardproof diff x y --set pass=tr", "train", "train", "pass=train"}};
    enum { N = sizeof rows / sizeof *rows };
    Str lines = str_new(arena);
    for (int i = 0; i < N; i++) str_addf(&lines, "%s\n", rows[i][0]);
    for (int k = 0; k < 3; k++) {
        if (!installed(shells[k].name)) continue;
        char *out = completed(k, lines.s);
        for (int i = 0; i < N; i++) {
            const char *got = next_line(&out);
            if (strcmp(got, rows[i][1 + k]))
                fail_msg("%s: '%s' becomes '%s'", shells[k].name, rows[i][0], got);
        }
    }
}

/* ---- all of them ---- */
/* One line to complete, and a word that must be among what is offered. */
typedef struct {
    Str lines;
    const char **wanted;
    int n, cap;
} Asked;
static void ask(Asked *q, const char *before, const char *word) {
    str_addf(&q->lines, "%s%s\n", before, word);
    *ARENA_PUSH(arena, q->wanted, q->n, q->cap) = word;
}
static void ask_options(Asked *q) {
    int n;
    const OptionRow *o = options_rows(arena, &n);
    for (int k = 0; k < n_cli_commands; k++)
        for (int i = 0; i < n; i++)
            if (o[i].commands & cli_commands[k].bit)
                ask(q, arena_printf(arena, "shardproof %s ", cli_commands[k].name),
                    arena_printf(arena, "--%s", o[i].name));
}
static Asked ask_all(void) {
    Asked q = {.lines = str_new(arena)};
    for (int k = 0; k < n_cli_commands; k++) ask(&q, "shardproof ", cli_commands[k].name);
    ask_options(&q);
    for (int i = 0; i < n_diag_codes; i++) ask(&q, "shardproof explain ", diag_codes[i].code);
    int n;
    const RenderView *v = render_views(&n);
    for (int i = 0; i < n; i++) ask(&q, "shardproof draw x --view ", v[i].name);
    for (const char *const *w = import_names(arena); *w; w++) ask(&q, "shardproof import ", *w);
    char *plans =
        child_run(arena, &(Child){.words = WORDS("list", "plans", "--format", "csv")}).out;
    for (next_line(&plans); plans && *plans;) {
        const char *row = next_line(&plans);
        ask(&q, "shardproof check ", arena_strndup(arena, row, strcspn(row, ",")));
    }
    return q;
}
static bool among(const char *words, const char *word) {
    size_t n = strlen(word);
    for (const char *s = words; (s = strstr(s, word)); s += n)
        if ((s == words || s[-1] == ' ') && (!s[n] || s[n] == ' ')) return true;
    return false;
}
/* A whole word stays, and is one that the shell knows. zsh types the same whether or not it knows
 * it, so it is asked for nothing here. */
static void test_all(void **state) {
    (void)state;
    Asked q = ask_all();
    assert_true(q.n > 300);
    for (int k = 0; k < 3; k++) {
        if (!shells[k].offers || !installed(shells[k].name)) continue;
        char *out = completed(k, q.lines.s);
        for (int i = 0; i < q.n; i++) {
            const char *got = next_line(&out);
            if (!among(got, q.wanted[i]))
                fail_msg("%s: '%s' is not in '%s'", shells[k].name, q.wanted[i], got);
        }
    }
    int code = child_run(arena, &(Child){.words = WORDS("completion", "tcsh")}).code;
    assert_int_equal(code, 2);
}
/* `eval "$(shardproof completion zsh)"`, as people have it in .zshrc, completes too. */
static void test_eval(void **state) {
    (void)state;
    if (!installed("zsh")) return;
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    child_write(in("try"), "cd \"$1\"; PATH=$1:$PATH\n"
                           "eval \"$(shardproof completion zsh)\" || exit 1 # without compinit\n"
                           "autoload -Uz compinit; compinit -u -D\n"
                           "eval \"$(shardproof completion zsh)\"\n"
                           "[[ ${_comps[shardproof]} == _shardproof ]]\n");
    assert_int_equal(system(arena_printf(arena, "zsh -f '%s' '%s'", in("try"), here)), 0);
    unlink(in("try"));
}

static int setup(void **state) {
    (void)state;
    arena = arena_new();
    return mkdtemp(dir) ? 0 : -1;
}
static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return rmdir(dir);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_eval),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
