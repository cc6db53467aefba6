/* Completion scripts for bash, zsh and fish, written from the tables of commands and options that
 * also make --help, so that they cannot drift from it. Plans are asked for when a name is completed
 * (`list plans`), all else stands in the script: of --set the keys that every plan may have, and
 * the values of those that take words. Refuses to complete what depends on the plan: axes, modules.
 */
#include "cli/cli.h"
#include "cli/words.h"
#include "cost/cost.h"
#include "import/import.h"
#include "lower/program.h"
#include <string.h>

typedef struct {
    Cli *c;
    const OptionRow *row;
    int n;
} Words;

/* ---- what stands behind an option or a command ---- */
/* Text with every character of `from` replaced. */
static const char *spaced(Arena *a, const char *text, char from) {
    char *s = arena_strdup(a, text);
    for (char *p = s; *p; p++)
        if (*p == from) *p = ' ';
    return s;
}
static const char *joined(Arena *a, const char *const *name) {
    Str s = str_new(a);
    for (int i = 0; name[i]; i++) str_addf(&s, "%s%s", i ? " " : "", name[i]);
    return s.s;
}
static const char *view_names(Arena *a) {
    int n;
    const RenderView *v = render_views(&n);
    Str s = str_new(a);
    for (int i = 0; i < n; i++) str_addf(&s, "%s%s", i ? " " : "", v[i].name);
    return s.s;
}
/* The words that an option takes for a command, NULL: a file, a number or free text. */
static const char *option_words(const Words *w, const OptionRow *o, const Command *k) {
    Arena *a = w->c->arena;
    const char *const *what;
    if (o->words) return o->words;
    if (!strcmp(o->name, "format")) return k->formats;
    if (!strcmp(o->name, "view")) return view_names(a);
    if (!strcmp(o->name, "hardware")) return joined(a, hardware_names());
    if (!strcmp(o->name, "fault")) return joined(a, fault_names(a, &what));
    return NULL;
}
/* The words that a command takes as operand, NULL: plans and files. */
static const char *operand_words(const Words *w, const Command *k) {
    if (k->bit & C_IMPORT) return joined(w->c->arena, import_names(w->c->arena));
    if (k->bit & C_EXPLAIN) return words_plain(w->c->arena, w->c->d);
    return k->bit & (C_LIST | C_COMPLETION) ? spaced(w->c->arena, k->operands, '|') : NULL;
}
/* Is it a key that a plan may have under a fixed name? */
static bool fixed_key(const KeyRow *k) {
    return !strstr(k->path, "PATTERN") && !strstr(k->path, "[]");
}
/* "f64, f32, bf16" with blanks only, and `before` before each word. */
static const char *choices(Arena *a, const KeyRow *k, const char *before) {
    Str s = str_new(a);
    for (const char *w = k->takes; *w; w += strspn(w, ", ")) {
        size_t one = strcspn(w, ", ");
        str_addf(&s, "%s%s%.*s", s.n ? " " : "", before, (int)one, w);
        w += one;
    }
    return s.s;
}
/* What stands behind --set: "data.batch= data.dtype=", and with `values` those that a key takes. */
static const char *set_words(Arena *a, bool values) {
    int n;
    const KeyRow *k = plan_key_rows(a, &n);
    Str s = str_new(a);
    for (int i = 0; i < n; i++) {
        if (!fixed_key(&k[i])) continue;
        const char *key = arena_printf(a, "%s=", k[i].path);
        str_addf(&s, "%s%s", s.n ? " " : "", values && k[i].choices ? choices(a, &k[i], key) : key);
    }
    return s.s;
}
/* Does it take files beside these words, and plans by their names? */
static bool takes_files(const Command *k) { return k->bit & (C_IMPORT | C_EXPLAIN); }
static bool takes_plans(const Command *k) { return k->bit & C_EXPLAIN; }
static const char *command_names(const Cli *c) {
    Str s = str_new(c->arena);
    for (int i = 0; i < c->n_commands; i++) str_addf(&s, "%s%s", i ? " " : "", c->commands[i].name);
    return s.s;
}
#define PLANS "shardproof list plans --format csv 2>/dev/null | sed 1d | cut -d, -f1"

/* ---- bash and zsh: one `case` for words behind an option, one for options, one for operands ----
 */
static void case_values(const Words *w, Str *s, const char *act, const char *keys) {
    str_addf(s, "    case $cmd$prev in\n    *--set) %s; return ;;\n",
             arena_printf(w->c->arena, keys, set_words(w->c->arena, false)));
    for (int k = 0; k < w->c->n_commands; k++)
        for (int i = 0; i < w->n; i++) {
            const OptionRow *o = &w->row[i];
            if (!(o->commands & w->c->commands[k].bit) || !o->arg) continue;
            const char *words = option_words(w, o, &w->c->commands[k]);
            if (words)
                str_addf(s, "    %s--%s) %s; return ;;\n", w->c->commands[k].name, o->name,
                         arena_printf(w->c->arena, act, words));
        }
    str_add(s, "    esac\n    case $prev in\n");
    int n;
    const KeyRow *k = plan_key_rows(w->c->arena, &n);
    for (int i = 0; i < n; i++)
        if (fixed_key(&k[i]) && k[i].choices)
            str_addf(s, "    %s) %s; return ;;\n", k[i].path,
                     arena_printf(w->c->arena, act, choices(w->c->arena, &k[i], "")));
    str_add(s, "    esac\n");
}
static void case_options(const Words *w, Str *s, const char *act) {
    str_add(s, "    case $cur in -*) case $cmd in\n");
    for (int k = 0; k < w->c->n_commands; k++) {
        Str names = str_new(w->c->arena);
        for (int i = 0; i < w->n; i++)
            if (w->row[i].commands & w->c->commands[k].bit)
                str_addf(&names, "%s--%s", names.n ? " " : "", w->row[i].name);
        str_addf(s, "        %s) %s ;;\n", w->c->commands[k].name,
                 arena_printf(w->c->arena, act, names.s));
    }
    str_addf(s, "        *) %s ;;\n    esac; return ;; esac\n",
             arena_printf(w->c->arena, act, "--help --version"));
}
/* `plans` is done where an operand is a plan or a file, and with words before where it is one of
 * them or a plan; `files` beside words where files are too. */
static void case_operands(const Words *w, Str *s, const char *act, const char *files,
                          const char *plans) {
    str_addf(s, "    case $cmd in\n    '') %s ;;\n",
             arena_printf(w->c->arena, act, command_names(w->c)));
    for (int k = 0; k < w->c->n_commands; k++) {
        const char *words = operand_words(w, &w->c->commands[k]);
        if (words && takes_plans(&w->c->commands[k]))
            str_addf(s, "    %s) %s ;;\n", w->c->commands[k].name,
                     arena_printf(w->c->arena, plans, arena_printf(w->c->arena, "%s ", words)));
        else if (words)
            str_addf(s, "    %s) %s%s ;;\n", w->c->commands[k].name,
                     arena_printf(w->c->arena, act, words),
                     takes_files(&w->c->commands[k]) ? files : "");
    }
    str_addf(s, "    *) %s ;;\n    esac\n", arena_printf(w->c->arena, plans, ""));
}
/* A function of a shell that has `case`: how it begins, offers words and files, and ends. */
typedef struct {
    const char *begin, *act, *keys, *files, *plans, *end;
} Shell;
static void function_of(const Words *w, Str *s, const Shell *x) {
    str_add(s, x->begin);
    case_values(w, s, x->act, x->keys);
    case_options(w, s, x->act);
    case_operands(w, s, x->act, x->files, x->plans);
    str_add(s, x->end);
}
static void bash(const Words *w, Str *s) {
    static const Shell shell = {
        "# bash completion of shardproof, written by `shardproof completion bash`\n"
        "_shardproof() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= i\n"
        "    # --view=block are three words to bash\n"
        "    [ \"$cur\" = = ] && cur= || { [ \"$prev\" = = ] && "
        "prev=${COMP_WORDS[COMP_CWORD-2]}; }\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "        case ${COMP_WORDS[i]} in -*) ;; *) cmd=${COMP_WORDS[i]}; break ;; esac\n"
        "    done\n"
        "    COMPREPLY=()\n",
        "COMPREPLY=($(compgen -W '%s' -- \"$cur\"))",
        "COMPREPLY=($(compgen -W '%s' -- \"$cur\")); compopt -o nospace 2>/dev/null",
        "; COMPREPLY+=($(compgen -f -- \"$cur\"))",
        "COMPREPLY=($(compgen -f -- \"$cur\") $(compgen -W \"%s$(" PLANS ")\" -- "
        "\"$cur\"))\n       compopt -o filenames 2>/dev/null",
        "}\ncomplete -F _shardproof shardproof\n"};
    function_of(w, s, &shell);
}
static void zsh(const Words *w, Str *s) {
    static const Shell shell = {
        "#compdef shardproof\n# zsh completion, written by `shardproof completion zsh`\n"
        "_shardproof() {\n"
        "    local cur=${words[CURRENT]} prev=${words[CURRENT-1]} cmd= i\n"
        "    for ((i = 2; i < CURRENT; i++)); do\n"
        "        case ${words[i]} in -*) ;; *) cmd=${words[i]}; break ;; esac\n"
        "    done\n"
        "    if [[ $cur == --*=* ]]; then prev=${cur%%=*} cur=${cur#*=}; compset -P '*='; fi\n"
        "    if [[ $prev == --set && $cur == *=* ]]; then prev=${cur%%=*}; compset -P '*='; fi\n",
        "compadd -- %s", "compadd -S '' -- %s", "; _files",
        "compadd -- %s${(f)\"$(" PLANS ")\"}; _files",
        /* a file of $fpath is the function's first call, `eval` of it defines the function */
        "}\nif [[ ${funcstack[1]} == _shardproof ]]; then _shardproof \"$@\"\n"
        "elif (( $+functions[compdef] )); then compdef _shardproof shardproof; fi\n"};
    function_of(w, s, &shell);
}

/* ---- fish: a line for each command, option and list of words ---- */
/* Text between single quotes. */
static const char *quoted(Arena *a, const char *text) {
    Str s = str_new(a);
    for (; *text; text++) str_addf(&s, *text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    return s.s ? s.s : "";
}
static void fish(const Words *w, Str *s) {
    Arena *a = w->c->arena;
    str_addf(s,
             "# fish completion of shardproof, written by `shardproof completion fish`\n"
             "function __shardproof_keys\n    string split ' ' '%s'\nend\n",
             set_words(a, true));
    for (int k = 0; k < w->c->n_commands; k++) {
        const Command *x = &w->c->commands[k];
        const char *seen = arena_printf(a, "__fish_seen_subcommand_from %s", x->name);
        str_addf(s, "complete -c shardproof -n __fish_use_subcommand -f -a %s -d '%s'\n", x->name,
                 quoted(a, x->what));
        const char *words = operand_words(w, x);
        str_addf(s, "complete -c shardproof -n '%s' %s'%s'\n", seen,
                 words && !takes_files(x) ? "-f -a " : "-a ",
                 !words           ? "(" PLANS ")"
                 : takes_plans(x) ? arena_printf(a, "%s (" PLANS ")", words)
                                  : words);
        for (int i = 0; i < w->n; i++) {
            const OptionRow *o = &w->row[i];
            if (!(o->commands & x->bit)) continue;
            str_addf(s, "complete -c shardproof -n '%s' -l %s", seen, o->name);
            if (o->letter) str_addf(s, " -s %c", o->letter);
            const char *values = !o->arg                   ? NULL
                                 : !strcmp(o->name, "set") ? "(__shardproof_keys)"
                                                           : option_words(w, o, x);
            if (values) str_addf(s, " -x -a '%s'", values);
            else if (o->arg) str_add(s, " -r");
            str_addf(s, " -d '%s'\n", quoted(a, o->what));
        }
    }
}

int cmd_completion(Cli *c) {
    static const struct {
        const char *name;
        void (*write)(const Words *w, Str *s);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    enum { N = sizeof shells / sizeof *shells };
    Words w = {.c = c};
    w.row = options_rows(c->arena, &w.n);
    const char *names[N + 1] = {NULL};
    for (int i = 0; i < N; i++) {
        names[i] = shells[i].name;
        if (!strcmp(c->o.operands[0], names[i])) {
            shells[i].write(&w, &c->text);
            return 0;
        }
    }
    diag_error(c->d, "E0212", diag_nowhere, diag_nearest(c->o.operands[0], names),
               "`completion` knows %s, not '%s'", c->command->operands, c->o.operands[0]);
    return 2;
}
