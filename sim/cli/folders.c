/* Folders and patterns given to `check`. Of a folder: the plans in it, in the order of their names,
 * folders below included. A plan is a .yaml or .yml file with a `mesh` of its own; profiles, maps
 * and other YAML files that lie beside plans are left out. A pattern that no shell has replaced
 * ('plans/[0-9]*.yaml', in quotes or from a CI file) names files as a shell would. Refuses to
 * follow links to folders: they may lead in a circle. */
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include <dirent.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    Arena *a;
    const char **path;
    int n, cap;
} Paths;

/* Does a line begin with the key `mesh`? What cannot be read is taken: its diagnostic is due. */
static bool has_mesh(Arena *a, const char *path) {
    size_t n;
    const char *text = file_read(a, diags_new(a), path, (size_t)1 << 20, diag_nowhere, &n);
    for (; text; text = strchr(text, '\n'), text += text != NULL)
        if (!strncmp(text, "mesh:", 5)) return true;
        else if (!strchr(text, '\n')) return false;
    return true;
}
static int by_name(const struct dirent **x, const struct dirent **y) {
    return strcmp((*x)->d_name, (*y)->d_name);
}
static bool walk(Paths *p, const char *folder) {
    struct dirent **e;
    int n = scandir(folder, &e, NULL, by_name);
    if (n < 0) return false;
    for (int pass = 0; pass < 2; pass++) /* a folder's own files before those below it */
        for (int i = 0; i < n; i++) {
            const char *name = e[i]->d_name;
            struct stat s;
            const char *path = file_join(p->a, folder, name);
            if (name[0] == '.' || lstat(path, &s)) continue;
            if (pass && S_ISDIR(s.st_mode)) walk(p, path);
            if (!pass && !S_ISDIR(s.st_mode) &&
                (text_before(name, ".yaml") || text_before(name, ".yml")) && has_mesh(p->a, path))
                *ARENA_PUSH(p->a, p->path, p->n, p->cap) = path;
        }
    for (int i = 0; i < n; i++) free(e[i]);
    free(e);
    return true;
}
/* A folder's plans, or the path itself. */
static void add_path(Cli *c, Paths *p, const char *path) {
    struct stat s;
    int before = p->n;
    if (stat(path, &s) || !S_ISDIR(s.st_mode) || !walk(p, path))
        *ARENA_PUSH(p->a, p->path, p->n, p->cap) = path;
    else if (p->n == before)
        diag_error(c->d, "E0101", diag_nowhere, "a plan is a .yaml file with a `mesh`",
                   "no plan in folder '%s'", path);
}
/* What a pattern stands for. A file of that very name wins. */
static void add_operand(Cli *c, Paths *p, const char *operand) {
    struct stat s;
    glob_t g = {0};
    bool pattern = strpbrk(operand, "*?[{") && strcmp(operand, "-") && stat(operand, &s);
    int none = pattern ? glob(operand, GLOB_BRACE, NULL, &g) : 0;
    if (!pattern) add_path(c, p, operand);
    else if (none)
        diag_error(c->d, "E0101", diag_nowhere,
                   "patterns have * ? [abc] {a,b}; a folder is searched with all below it",
                   "no file matches '%s'", operand);
    for (size_t i = 0; pattern && !none && i < g.gl_pathc; i++)
        add_path(c, p, arena_strdup(p->a, g.gl_pathv[i]));
    if (pattern) globfree(&g);
}
void folders_expand(Cli *c) {
    Paths p = {.a = c->arena};
    for (int i = 0; i < c->o.n_operands; i++) add_operand(c, &p, c->o.operands[i]);
    c->o.operands = p.path;
    c->o.n_operands = p.n;
}
