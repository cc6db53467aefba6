/* `list plans` and `list recipes`: what ships, with the first words of each plan's own comment.
 * Refuses to describe a plan otherwise: what it says of itself stays true. */
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/shipped.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The first comment of a plan up to its first full stop or colon that stands in no brackets, lines
 * joined; "" without one. A colon behind a few words is no end: what comes after it is what tells
 * plans apart. */
static const char *first_words(Arena *a, const char *text) {
    enum { FEW_WORDS = 32 }; /* characters */
    Str s = str_new(a);
    int depth = 0;
    for (; text[0] == '#'; text += strcspn(text, "\n"), text += *text == '\n') {
        const char *line = text + 1 + (text[1] == ' ');
        size_t n = strcspn(line, "\n");
        for (size_t i = 0; i < n; i++) {
            depth += line[i] == '(' ? 1 : line[i] == ')' ? -1 : 0;
            bool stop = line[i] == '.' || (line[i] == ':' && s.n + i >= FEW_WORDS);
            if (!depth && stop && (i + 1 == n || line[i + 1] == ' ')) {
                str_addf(&s, "%s%.*s", s.n ? " " : "", (int)i, line);
                return s.s;
            }
        }
        str_addf(&s, "%s%.*s", s.n ? " " : "", (int)n, line);
    }
    return s.s ? s.s : "";
}
/* Rows of a folder and then of its folders; machines (plans/hardware) are no plans. */
static void list_folder(Cli *c, Table *t, const char *folder, const char *prefix, bool folders) {
    struct dirent **e;
    int n = scandir(folder, &e, NULL, shipped_by_name);
    for (int i = 0; i < n; i++) {
        const char *name = e[i]->d_name, *path = arena_printf(c->arena, "%s/%s", folder, name);
        size_t k = text_before(name, ".yaml"), size = 0;
        struct stat s;
        bool sub = stat(path, &s) == 0 && S_ISDIR(s.st_mode);
        if (folders && sub && name[0] != '.' && strcmp(name, "hardware") != 0)
            list_folder(c, t, path, arena_printf(c->arena, "%s%s/", prefix, name), false);
        if (!folders && !sub && k) {
            const char *text =
                file_read(c->arena, c->d, path, (size_t)1 << 20, diag_nowhere, &size);
            Cell *r = table_row(t);
            r[0] = cell_text(arena_printf(c->arena, "%s%.*s", prefix, (int)k, name));
            r[1] = cell_text(text ? first_words(c->arena, text) : "");
        }
        free(e[i]);
    }
    if (n >= 0) free(e);
}
void list_plans(Cli *c) {
    static const Column col[] = {{"name", "plan", false, 0}, {"what", "", false, COL_WRAP}};
    Table t = table_new(c->arena, "plan", col, 2);
    const char *folder = shipped_folder(c->arena);
    if (!folder) {
        diag_error(c->d, "E0101", diag_nowhere,
                   "`make install` puts them into share/shardproof/plans beside bin",
                   "the plans that ship with the program are not beside it");
        return;
    }
    list_folder(c, &t, folder, "", false);
    list_folder(c, &t, folder, "", true);
    cli_table(c, &t);
}
void list_recipes(Cli *c) {
    static const Column col[] = {
        {"name", "recipe", false, 0}, {"names", "names", false, 0}, {"what", "", false, COL_WRAP}};
    Table t = table_new(c->arena, "recipe", col, 3);
    int n;
    const RecipeRow *rows = plan_recipes(&n);
    for (int i = 0; i < n; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(rows[i].name);
        r[1] = cell_text(plan_names_text(rows[i].names));
        r[2] =
            cell_text(rows[i].lines ? rows[i].what
                                    : arena_printf(c->arena, "not yet: %s is not in this version",
                                                   rows[i].what));
    }
    cli_table(c, &t);
}
