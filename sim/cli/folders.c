/* Folders given to `check`: the plans in them, in the order of their names, folders below included.
 * A plan is a .yaml or .yml file with a `mesh` of its own; profiles, maps and other YAML files that
 * lie beside plans are left out. Refuses to follow links to folders: they may lead in a circle. */
#include "base/file.h"
#include "cli/cli.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    Arena *a;
    const char **path;
    int n, cap;
} Paths;

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end);
}
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
                (ends_with(name, ".yaml") || ends_with(name, ".yml")) && has_mesh(p->a, path))
                *ARENA_PUSH(p->a, p->path, p->n, p->cap) = path;
        }
    for (int i = 0; i < n; i++) free(e[i]);
    free(e);
    return true;
}
void folders_expand(Cli *c) {
    Paths p = {.a = c->arena};
    for (int i = 0; i < c->o.n_operands; i++) {
        const char *operand = c->o.operands[i];
        struct stat s;
        int before = p.n;
        if (stat(operand, &s) || !S_ISDIR(s.st_mode) || !walk(&p, operand))
            *ARENA_PUSH(p.a, p.path, p.n, p.cap) = operand;
        else if (p.n == before)
            diag_error(c->d, "E0101", diag_nowhere, "a plan is a .yaml file with a `mesh`",
                       "no plan in folder '%s'", operand);
    }
    c->o.operands = p.path;
    c->o.n_operands = p.n;
}
