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
/* The shipped plans that may be meant: all in the folder that `name` speaks of, "bugs/01-..". */
typedef struct {
    const char **name, *sub;
    int n;
} Plans;
static Plans plans_near(Arena *a, const char *name) {
    Plans p = {.sub = strchr(name, '/') && strstr(name, "bugs/") ? "bugs/" : ""};
    const char *folder = shipped_folder(a);
    struct dirent **e;
    int n = folder ? scandir(file_join(a, folder, p.sub), &e, NULL, shipped_by_name) : -1;
    p.name = ARENA_ARRAY(a, const char *, n + 2);
    for (int i = 0; i < n; i++) {
        size_t k = text_before(e[i]->d_name, ".yaml");
        if (k) p.name[p.n++] = arena_strndup(a, e[i]->d_name, k);
        free(e[i]);
    }
    if (n >= 0) free(e);
    return p;
}
/* The help for plans whose name begins so; NULL: there is none. */
static const char *begins_so(Arena *a, const Plans *p, const char *begin) {
    Str all = str_new(a);
    const char *last = NULL;
    int found = 0;
    for (int i = 0; *begin && i < p->n; i++) {
        if (strncmp(p->name[i], begin, strlen(begin))) continue;
        last = p->name[i];
        if (found++ < 4) str_addf(&all, "%s%s%s", all.n ? ", " : "", p->sub, last);
    }
    if (found == 1)
        return arena_printf(a, "did you mean %s%s? `list plans` has all that ship", p->sub, last);
    return found ? arena_printf(a, "shipped plans that begin so: %s", all.s) : NULL;
}
/* The same with a slip: "05-lama3" is nearest to the beginning of 05-llama3-8b-tp4-sp. */
static const char *begins_nearly(Arena *a, const Plans *p, const char *base) {
    const char **begin = ARENA_ARRAY(a, const char *, 3 * p->n + 1);
    int n = 0;
    for (int more = -1; more <= 1; more++)
        for (int i = 0; i < p->n; i++)
            begin[n++] = arena_printf(a, "%.*s", (int)strlen(base) + more, p->name[i]);
    const char *near = diag_nearest(base, begin);
    return near ? begins_so(a, p, near) : NULL;
}
void shipped_suggest(Arena *a, const char *path, Diags *d) {
    Diag *g = d->n ? &d->item[d->n - 1] : NULL;
    struct stat s;
    if (!g || diag_knows_better(g)) return;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) {
        g->hint = "name a plan in it; `check` takes folders";
        return;
    }
    if (strcmp(g->code, "E0101")) return;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *hint = NULL;
    size_t k = text_before(base, ".yaml");
    if (k) base = arena_strndup(a, base, k);
    Plans p = plans_near(a, path);
    hint = begins_so(a, &p, base);
    if (!hint && strlen(base) > 3) hint = begins_nearly(a, &p, base);
    if (hint) g->hint = hint;
}
