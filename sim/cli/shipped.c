/* The plans that ship with the program, found by name from anywhere: beside the program in a source
 * tree, or where `make install` put them (share/shardproof/plans beside bin). A file of that path
 * always wins: a shipped plan only stands in for what is not there. */
#include "cli/shipped.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of plans, or NULL. A user may have moved the whole installation: it is looked for from
 * where the program really lies. */
const char *shipped_folder(Arena *a) {
    static const char *const places[] = {"plans", "../share/shardproof/plans"};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return NULL;
    self[n] = 0;
    char *slash = strrchr(self, '/');
    if (!slash) return NULL;
    *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char whole[PATH_MAX];
        if (realpath(arena_printf(a, "%s/%s", self, places[i]), whole))
            return arena_printf(a, "%s", whole);
    }
    return NULL;
}
static bool is_file(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}
const char *shipped_plan(Arena *a, const char *name) {
    if (!strcmp(name, "-") || name[0] == '/' || strstr(name, "..") || access(name, F_OK) == 0)
        return NULL;
    if (!strncmp(name, "plans/", 6)) name += 6;
    const char *folder = *name ? shipped_folder(a) : NULL;
    if (!folder) return NULL;
    const char *exact = arena_printf(a, "%s/%s", folder, name);
    if (is_file(exact)) return exact;
    exact = arena_printf(a, "%s.yaml", exact);
    return is_file(exact) ? exact : NULL;
}

void shipped_operands(Cli *c) {
    int n = c->command->bit & (C_LIST | C_COMPLETION) ? 0
            : c->command->bit == C_EXPLAIN            ? 1
                                                      : c->o.n_operands;
    for (int i = 0; i < n && i < c->o.n_operands; i++) {
        const char *path = shipped_plan(c->arena, c->o.operands[i]);
        if (path) c->o.operands[i] = path;
    }
}

int shipped_by_name(const struct dirent **x, const struct dirent **y) {
    return strcmp((*x)->d_name, (*y)->d_name);
}
/* "05-llama3-8b-tp4-sp" for "05"; NULL: no shipped plan begins so, or several do and their names
 * are in *many. */
static const char *shipped_prefix(Arena *a, const char *name, Str *many) {
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *one = NULL;
    const char *sub = slash && strstr(name, "bugs/") ? "bugs/" : "", *folder = shipped_folder(a);
    struct dirent **e;
    int found = 0;
    int n = folder && *base ? scandir(file_join(a, folder, sub), &e, NULL, shipped_by_name) : -1;
    for (int i = 0; i < n; i++) {
        const char *f = e[i]->d_name;
        size_t k = text_before(f, ".yaml");
        if (!strncmp(f, base, strlen(base)) && k) {
            one = arena_printf(a, "%s%.*s", sub, (int)k, f);
            if (found++ < 4) str_addf(many, "%s%s", many->n ? ", " : "", one);
        }
        free(e[i]);
    }
    if (n >= 0) free(e);
    return found == 1 ? one : NULL;
}
void shipped_suggest(Arena *a, const char *path, Diags *d) {
    Diag *g = d->n ? &d->item[d->n - 1] : NULL;
    struct stat s;
    Str many = str_new(a);
    if (!g || diag_knows_better(g)) return;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) {
        g->hint = "name a plan in it; `check` takes folders";
        return;
    }
    const char *one = strcmp(g->code, "E0101") ? NULL : shipped_prefix(a, path, &many);
    if (one) g->hint = arena_printf(a, "did you mean %s? `list plans` has all that ship", one);
    else if (many.n && !strcmp(g->code, "E0101"))
        g->hint = arena_printf(a, "shipped plans that begin so: %s", many.s);
}
