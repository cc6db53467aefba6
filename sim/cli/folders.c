/* Folders and patterns given to `check`. Of a folder: the plans in it, in the order of their names,
 * folders below included. A plan is a .yaml or .yml file with a `mesh` of its own, or with `model`
 * and another key of plans; profiles, maps and other YAML files that lie beside plans are left out.
 * A pattern that no shell has replaced ('plans/[0-9]*.yaml', in quotes or from a CI file) names
 * files as a shell would, with ** for a folder and all below it; of YAML files it takes those that
 * a folder's would be, and says which it leaves out. Below a folder that is named neither hidden
 * folders are searched, nor those that tools fill (build, node_modules), nor other file systems;
 * where there are too many folders nothing is checked, for a part would be taken for the whole.
 * Refuses to follow links to folders: they may lead in a circle. */
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include <dirent.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* A search below one folder. */
typedef struct {
    int folders;
    bool beyond; /* there are more than are searched */
    dev_t device;
    const char **skipped; /* folders that are not searched, but for hidden ones */
    int n_skipped, cap_skipped;
} Search;
typedef struct {
    Arena *a;
    const char **path;
    int n, cap;
    const char **left; /* files that a pattern matches and that are no plans */
    int n_left, cap_left;
    int n_words; /* that braces of the operand stand for */
    Search now;
} Paths;
enum { MOST_WORDS = 10000, MOST_FOLDERS = 10000 };

/* The blanks before the first key. */
static size_t indent_of(const char *text) {
    for (const char *p = text; p; p = strchr(p, '\n'), p += p != NULL) {
        size_t n = strspn(p, " ");
        if (p[n] && !strchr("#\r\n", p[n]) && strncmp(p, "---", 3)) return n;
    }
    return 0;
}
/* Does a line of the text begin with that key, in quotes or not, as far in as the first one? */
static bool has_key(const char *text, const char *key) {
    size_t n = strlen(key), in = indent_of(text);
    for (const char *p = text; p; p = strchr(p, '\n'), p += p != NULL) {
        if (strspn(p, " ") != in) continue;
        bool quoted = p[in] == '"' || p[in] == '\'';
        const char *name = p + in + quoted, *end = name + n + quoted;
        if (!strncasecmp(name, key, n) && (!quoted || name[n] == p[in]) &&
            end[strspn(end, " ")] == ':')
            return true;
    }
    return false;
}
/* A text from its first key or bracket on: without a byte order mark. */
static const char *marked(const char *text) {
    return strncmp(text, "\xEF\xBB\xBF", 3) ? text : text + 3;
}
/* Is the whole text in braces, as JSON is? Comments, directives and "---" may stand before. */
static bool is_in_braces(const char *text) {
    for (const char *p = text; *p;) {
        p += strspn(p, " \t\r\n");
        if (!strncmp(p, "---", 3)) p += 3;
        else if (*p == '#' || *p == '%') p += strcspn(p, "\n");
        else return *p == '{';
    }
    return false;
}
/* What cannot be read, or is no UTF-8 (UTF-16 has zeros), is taken: its diagnostic is due. So is a
 * plan whose `mesh` is spelled wrong: it has a model and something to do with it. */
static bool is_plan(Arena *a, const char *path) {
    static const char *const others[] = {"plan",   "recipe", "pass",
                                         "groups", "expect", "data_parallel"};
    size_t n;
    const char *text = file_read(a, diags_new(a), path, (size_t)1 << 20, diag_nowhere, &n);
    if (!text || memchr(text, 0, n)) return true;
    text = marked(text);
    if (has_key(text, "mesh")) return true;
    if (is_in_braces(text)) return strstr(text, "mesh") || strstr(text, "model");
    for (size_t i = 0; has_key(text, "model") && i < sizeof others / sizeof *others; i++)
        if (has_key(text, others[i])) return true;
    return false;
}
static bool is_yaml(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && dot > path && dot[-1] != '/' &&
           (!strcasecmp(dot, ".yaml") || !strcasecmp(dot, ".yml"));
}
static int by_name(const struct dirent **x, const struct dirent **y) {
    return strcmp((*x)->d_name, (*y)->d_name);
}
static void skip(Paths *p, const char *path) {
    *ARENA_PUSH(p->a, p->now.skipped, p->now.n_skipped, p->now.cap_skipped) = path;
}
/* Is the path, of which lstat says *s, a link to a folder? */
static bool leads_to_folder(const char *path, const struct stat *s) {
    struct stat to;
    return S_ISLNK(s->st_mode) && !stat(path, &to) && S_ISDIR(to.st_mode);
}
/* Is the folder one that is searched, with all below it? What is not is remembered. */
static bool is_searched(Paths *p, const char *name, const char *path, const struct stat *s) {
    static const char *const filled[] = {"build",        "dist",          "venv",
                                         "node_modules", "site-packages", "__pycache__"};
    Search *now = &p->now;
    bool out = s->st_dev != now->device;
    for (size_t i = 0; i < sizeof filled / sizeof *filled; i++) out |= !strcmp(name, filled[i]);
    if (out) skip(p, path);
    now->beyond |= !out && ++now->folders > MOST_FOLDERS;
    return !out && !now->beyond;
}
/* A search below this folder begins; returns the one that it interrupts. */
static Search begin_search(Paths *p, const char *folder) {
    const Search outer = p->now;
    struct stat s;
    p->now = (Search){.device = stat(*folder ? folder : ".", &s) ? 0 : s.st_dev};
    return outer;
}
/* The plans of a folder; false: it cannot be read. One below it that cannot is taken as it is: its
 * diagnostic is due. */
static bool walk(Paths *p, const char *folder) {
    struct dirent **e;
    int n = scandir(folder, &e, NULL, by_name);
    if (n < 0) return false;
    for (int pass = 0; pass < 2; pass++) /* a folder's own files before those below it */
        for (int i = 0; i < n; i++) {
            const char *name = e[i]->d_name;
            struct stat s;
            const char *path = file_join(p->a, folder, name);
            if (p->now.beyond || name[0] == '.' || lstat(path, &s)) continue;
            bool below = pass && S_ISDIR(s.st_mode) && is_searched(p, name, path, &s);
            if (pass && leads_to_folder(path, &s)) skip(p, path);
            bool unread = below && !walk(p, path);
            if (unread) *ARENA_PUSH(p->a, p->path, p->n, p->cap) = path;
            if (!pass && !S_ISDIR(s.st_mode) && is_yaml(name) && is_plan(p->a, path))
                *ARENA_PUSH(p->a, p->path, p->n, p->cap) = path;
        }
    for (int i = 0; i < n; i++) free(e[i]);
    free(e);
    return true;
}
/* "a, b, c and 4 more" */
static const char *first_of(Arena *a, const char *const *path, int n) {
    enum { NAMED = 3 };
    Str s = str_new(a);
    for (int i = 0; i < n && i < NAMED; i++) str_addf(&s, "%s%s", i ? ", " : "", path[i]);
    if (n > NAMED) str_addf(&s, " and %d more", n - NAMED);
    return s.s;
}
/* N0022, printed at once, and kept for other formats and --fail-on. */
static void note(Cli *c, const char *first, const char *help, const char *message) {
    Diags *d = diags_new(c->arena);
    if (!c->left_out) c->left_out = diags_new(c->arena);
    diag_note(d, "N0022", diag_nowhere, help, "%s", message);
    diag_note(c->left_out, "N0022", (Loc){.file = first}, help, "%s", message);
    cli_diagnostics(c, d, true);
}
static void note_skipped(Cli *c, const Paths *p, const char *folder) {
    note(c, p->now.skipped[0], "name a folder to search it too",
         arena_printf(p->a,
                      "below '%s' links to folders, folders that tools fill, and other file "
                      "systems, are left out: %s",
                      folder, first_of(p->a, p->now.skipped, p->now.n_skipped)));
}
/* Goes on with the outer search, and drops the paths from `before` on, with a diagnostic and false,
 * if there were more folders than are searched. */
static bool end_search(Cli *c, Paths *p, const char *folder, int before, const Search *outer) {
    const bool all = !p->now.beyond;
    if (!*folder) folder = ".";
    if (!all)
        diag_error(c->d, "E0708", diag_nowhere, "name the folder of the plans, or a pattern",
                   "'%s' has more than %d folders: nothing below it was checked", folder,
                   MOST_FOLDERS);
    else if (p->now.n_skipped) note_skipped(c, p, folder);
    if (!all) p->n = before;
    p->now = *outer;
    return all;
}
/* A folder's plans, or the path itself. */
static void add_path(Cli *c, Paths *p, const char *path) {
    struct stat s;
    int before = p->n;
    const Search outer = begin_search(p, path);
    bool read = !stat(path, &s) && S_ISDIR(s.st_mode) && walk(p, path);
    if (!read) *ARENA_PUSH(p->a, p->path, p->n, p->cap) = path;
    if (!end_search(c, p, path, before, &outer)) return;
    if (read && p->n == before)
        diag_error(c->d, "E0101", diag_nowhere, "a plan is a .yaml file with a `mesh`",
                   "no plan in folder '%s'", path);
}
/* Files that match a pattern; false: there are none. */
static bool add_matches(Cli *c, Paths *p, const char *pattern) {
    glob_t g = {0};
    if (glob(pattern, 0, NULL, &g)) return false;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        struct stat s;
        const char *path = arena_strdup(p->a, g.gl_pathv[i]);
        bool other = is_yaml(path) && !stat(path, &s) && S_ISREG(s.st_mode) && !is_plan(p->a, path);
        if (other) *ARENA_PUSH(p->a, p->left, p->n_left, p->cap_left) = path;
        else add_path(c, p, path);
    }
    globfree(&g);
    return true;
}
/* A name in which nothing is a pattern. */
static const char *literally(Arena *a, const char *name) {
    Str s = str_new(a);
    for (; *name; name++) str_addf(&s, strchr("*?[]{}\\,", *name) ? "\\%c" : "%c", *name);
    return s.n ? s.s : "";
}
static bool add_pattern(Cli *c, Paths *p, const char *pattern);
/* The rest of a pattern in a folder ("": the one we are in) and in all below it. A folder that
 * cannot be read is taken as it is. */
static bool add_below(Cli *c, Paths *p, const char *folder, const char *rest) {
    struct dirent **e;
    bool any = add_pattern(c, p, file_join(p->a, literally(p->a, folder), rest));
    int n = scandir(*folder ? folder : ".", &e, NULL, by_name);
    for (int i = 0; i < n; i++) {
        struct stat s;
        const char *name = e[i]->d_name, *path = file_join(p->a, folder, name);
        const bool seen = !p->now.beyond && name[0] != '.' && !lstat(path, &s);
        if (seen && leads_to_folder(path, &s)) skip(p, path);
        if (seen && S_ISDIR(s.st_mode) && is_searched(p, name, path, &s))
            any |= add_below(c, p, path, rest);
        free(e[i]);
    }
    if (n >= 0) free(e);
    else *ARENA_PUSH(p->a, p->path, p->n, p->cap) = *folder ? folder : ".";
    return any || n < 0;
}
static bool search_below(Cli *c, Paths *p, const char *folder, const char *rest) {
    const int before = p->n;
    const Search outer = begin_search(p, folder);
    bool any = add_below(c, p, folder, rest);
    return !end_search(c, p, folder, before, &outer) || any;
}
/* What a pattern stands for; ** in it is a folder and all below it. False: nothing. */
static bool add_pattern(Cli *c, Paths *p, const char *pattern) {
    const char *deep = strstr(pattern, "**");
    while (deep && ((deep > pattern && deep[-1] != '/') || (deep[2] && deep[2] != '/')))
        deep = strstr(deep + 1, "**");
    if (!deep) return add_matches(c, p, pattern);
    const char *base = arena_strndup(p->a, pattern, (size_t)(deep - pattern));
    if (!deep[2]) return add_matches(c, p, *base ? base : "."); /* a folder is searched anyway */
    const char *rest = deep + 3;
    if (!*base) return search_below(c, p, "", rest);
    glob_t g = {0};
    bool any = false;
    if (glob(base, GLOB_ONLYDIR, NULL, &g)) return false;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        size_t n = strlen(g.gl_pathv[i]);
        while (n > 1 && g.gl_pathv[i][n - 1] == '/') n--;
        any |= search_below(c, p, arena_strndup(p->a, g.gl_pathv[i], n), rest);
    }
    globfree(&g);
    return any;
}
/* The end of the first {..} in a pattern, `*open` its beginning; NULL: there is none. As in shells
 * "{}" is none, nor what \\ stands before. */
static const char *brace(const char *pattern, const char **open) {
    int deep = 0;
    *open = NULL;
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && p[1]) p++;
        else if (*p == '{' && p[1] == '}' && !deep) p++;
        else if (*p == '{' && !deep++) *open = p;
        else if (*p == '}' && deep && !--deep) return p;
    }
    return NULL;
}
/* A name in which nothing is a pattern, without the \\ before its characters; NULL: it is one. */
static const char *plain_name(Arena *a, const char *pattern) {
    Str s = str_new(a);
    for (; *pattern; pattern++) {
        if (strchr("*?[", *pattern)) return NULL;
        if (*pattern == '\\' && pattern[1]) pattern++;
        str_addn(&s, pattern, 1);
    }
    return s.n ? s.s : NULL;
}
/* A pattern for each word in braces, and what they match; false: nothing. A word that is a name is
 * taken, as a shell does: a plan that is not there must not be taken for held. */
static bool add_words(Cli *c, Paths *p, const char *pattern, bool is_word) {
    const char *open, *close = brace(pattern, &open);
    if (!close) {
        if (is_word && ++p->n_words > MOST_WORDS) return true;
        const char *name = is_word ? plain_name(p->a, pattern) : NULL;
        if (!name) return add_pattern(c, p, pattern);
        if (!add_pattern(c, p, pattern)) add_path(c, p, name);
        return true;
    }
    bool any = false;
    int deep = 0;
    for (const char *from = open + 1, *s = from; s <= close && p->n_words <= MOST_WORDS; s++) {
        if (*s == '\\' && s[1]) s++;
        else if (deep || (s < close && *s != ',')) deep += (*s == '{') - (*s == '}');
        else {
            any |= add_words(c, p,
                             arena_printf(p->a, "%.*s%.*s%s", (int)(open - pattern), pattern,
                                          (int)(s - from), from, close + 1),
                             true);
            from = s + 1;
        }
    }
    return any;
}
/* A folder and a file in it may both match: each plan once. */
static void drop_doubles(Paths *p, int from) {
    int kept = from;
    for (int i = from; i < p->n; i++) {
        bool seen = false;
        for (int k = from; k < kept && !seen; k++) seen = !strcmp(p->path[k], p->path[i]);
        if (!seen) p->path[kept++] = p->path[i];
    }
    p->n = kept;
}
/* What a pattern matches and what is no plan, each once. */
static void note_left(Cli *c, Paths *p, const char *pattern, bool any) {
    if (!p->n_left) return;
    Paths once = {.a = p->a, .path = p->left, .n = p->n_left};
    drop_doubles(&once, 0);
    const char *help = "a plan has `mesh`, or `model` and what to do with it; a file that is named "
                       "itself is always checked";
    const char *what = arena_printf(p->a, "'%s' matches %d file%s that %s no plan%s: %s", pattern,
                                    once.n, once.n == 1 ? "" : "s", once.n == 1 ? "is" : "are",
                                    once.n == 1 ? "" : "s", first_of(p->a, once.path, once.n));
    if (any) note(c, once.path[0], help, what);
    else diag_error(c->d, "E0101", diag_nowhere, help, "%s", what);
    p->n_left = 0;
}
/* A file of that very name wins. */
static void add_operand(Cli *c, Paths *p, const char *operand) {
    struct stat s;
    bool pattern = strpbrk(operand, "*?[{") && strcmp(operand, "-") && stat(operand, &s);
    int before = p->n;
    p->n_words = 0;
    if (!pattern) add_path(c, p, operand);
    else if (!add_words(c, p, operand, false))
        diag_error(c->d, "E0101", diag_nowhere,
                   "patterns have * ? [abc] {a,b} **; a folder is searched with all below it",
                   "no file matches '%s'", operand);
    if (p->n_words > MOST_WORDS) {
        diag_error(c->d, "E0212", diag_nowhere, "name a folder, or use * where any name will do",
                   "braces of '%.40s' stand for more than %d names", operand, MOST_WORDS);
        p->n = before;
    }
    if (pattern) drop_doubles(p, before);
    if (pattern) note_left(c, p, operand, p->n > before);
}
void folders_expand(Cli *c) {
    Paths p = {.a = c->arena};
    for (int i = 0; i < c->o.n_operands; i++) add_operand(c, &p, c->o.operands[i]);
    c->o.operands = p.path;
    c->o.n_operands = p.n;
}
