/* The house as its document says: which room includes which (the table of docs/architecture.md), no
 * circles among rooms or files, and the discipline of lines: short functions, in tests/ too,
 * few parameters, a comment at every public function; and every mistake that `make sabotage` plants
 * still has its place. Reads the sources and, with nm, what the
 * objects beside this program define and use. Refuses to know a room by name. */
#include "base/arena.h"
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FILES = 2000, MAX_ROOMS = 64, MAX_LINES = 60, MAX_PARAMS = 6 };

typedef struct {
    const char *path, *room;
    char *text;
} File;
typedef struct {
    const char *name, *includes; /* "`sim/base`, `sim/layout`", as the document has it */
} Room;

static struct {
    Arena *arena;
    const char *build;    /* folder of the objects */
    File file[MAX_FILES]; /* first those of the rooms, then those of tests/ */
    int n_files, n_all;
    Room room[MAX_ROOMS];
    int n_rooms;
} house;

static char *read_whole(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    Str s = str_new(house.arena);
    char buffer[1 << 14];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;) str_addn(&s, buffer, n);
    fclose(f);
    return s.s;
}
static const char *folder_of(const char *path) {
    return arena_strndup(house.arena, path, (size_t)(strrchr(path, '/') - path));
}
static void read_files(const char *pattern) {
    glob_t g;
    if (glob(pattern, 0, NULL, &g) == 0)
        for (size_t i = 0; i < g.gl_pathc; i++) {
            assert_true(house.n_all < MAX_FILES);
            const char *path = arena_strdup(house.arena, g.gl_pathv[i]);
            house.file[house.n_all++] = (File){path, folder_of(path), read_whole(path)};
        }
    globfree(&g);
}

/* Rows "| `room` | what it answers for | `room`, `room` |" of the document. */
static void read_rooms(void) {
    char *text = read_whole("docs/architecture.md"), *save = NULL;
    assert_non_null(text);
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        if (strncmp(l, "| `sim/", 7) != 0 && strncmp(l, "| `render", 9) != 0) continue;
        char *name = l + 3, *end = strchr(name, '`'), *last = strrchr(l, '|');
        assert_non_null(end);
        *last = 0;
        char *includes = strrchr(l, '|');
        *end = 0;
        assert_true(house.n_rooms < MAX_ROOMS);
        house.room[house.n_rooms++] = (Room){name, includes + 1};
    }
}
static int setup(void **state) {
    (void)state;
    static const char *const patterns[] = {"sim/*/*.c",   "sim/*/*.h",  "sim/*/*.inc",
                                           "render/*.c",  "render/*.h", "render/*/*.c",
                                           "render/*/*.h"};
    house.arena = arena_new();
    static const char *const ours[] = {"tests/*.c", "tests/*.h", "tests/*/*.c", "tests/*/*.h"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) read_files(patterns[i]);
    house.n_files = house.n_all;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) read_files(ours[i]);
    read_rooms();
    return house.n_files > 100 && house.n_all > house.n_files && house.n_rooms > 10 ? 0 : -1;
}
static int teardown(void **state) {
    (void)state;
    arena_free(house.arena);
    return 0;
}
static int room_index(const char *name) {
    for (int i = 0; i < house.n_rooms; i++)
        if (!strcmp(house.room[i].name, name)) return i;
    return -1;
}
static bool allows(const Room *r, const char *other) {
    return strstr(r->includes, arena_printf(house.arena, "`%s`", other)) != NULL;
}

/* ---- rooms ---- */

/* The room of an include of ours, as the compiler looks it up: under sim/, or from the root. */
static const char *room_of_include(const char *name, size_t n) {
    const char *path = arena_strndup(house.arena, name, n);
    if (!strchr(path, '/')) return NULL;
    if (!strncmp(path, "render/", 7)) return folder_of(path);
    return folder_of(arena_printf(house.arena, "sim/%s", path));
}
/* Calls look(file, room) for every include of another room. */
static void each_include(void (*look)(const File *f, const char *room, void *arg), void *arg) {
    for (int i = 0; i < house.n_files; i++) {
        const File *f = &house.file[i];
        for (const char *at = f->text; (at = strstr(at, "#include \"")) != NULL; at++) {
            const char *name = at + 10, *room = room_of_include(name, strcspn(name, "\"\n"));
            if (room && strcmp(room, f->room) != 0) look(f, room, arg);
        }
    }
}
static void look_allowed(const File *f, const char *room, void *arg) {
    int from = room_index(f->room), to = room_index(room);
    bool good = from >= 0 && to >= 0 && allows(&house.room[from], room);
    if (!good) print_error("%s includes %s: the document does not allow it\n", f->path, room);
    *(int *)arg += !good;
}
typedef struct {
    const char *from, *to;
    bool seen;
} Edge;
static void look_edge(const File *f, const char *room, void *arg) {
    Edge *e = arg;
    e->seen |= !strcmp(f->room, e->from) && !strcmp(room, e->to);
}
/* A room includes what its row lists, and every room of the row stands above it: so there is no
 * circle among rooms. */
static void test_includes_follow_the_document(void **state) {
    (void)state;
    int bad = 0;
    each_include(look_allowed, &bad);
    for (int i = 0; i < house.n_files; i++) {
        if (room_index(house.file[i].room) >= 0) continue;
        print_error("%s: its room is not in the document\n", house.file[i].path);
        bad++;
    }
    for (int i = 0; i < house.n_rooms; i++)
        for (int k = 0; k < house.n_rooms; k++) {
            Edge e = {house.room[i].name, house.room[k].name, false};
            if (!allows(&house.room[i], e.to)) continue;
            each_include(look_edge, &e);
            if (k >= i) print_error("%s stands below %s, which it lists\n", e.to, e.from);
            if (!e.seen) print_error("%s lists %s and never includes it\n", e.from, e.to);
            bad += k >= i || !e.seen;
        }
    assert_int_equal(bad, 0);
}

/* ---- files ---- */

typedef struct {
    const char *name;
    int file; /* that defines it, or uses it */
} Symbol;
typedef struct {
    Symbol *item;
    int n, cap;
} Symbols;

static int by_name(const void *a, const void *b) {
    return strcmp(((const Symbol *)a)->name, ((const Symbol *)b)->name);
}
/* What each object defines and what it takes from others, by nm. */
static void read_symbols(Symbols *def, Symbols *use) {
    char line[4096];
    for (int i = 0; i < house.n_files; i++) {
        const char *path = house.file[i].path;
        size_t n = strlen(path);
        if (path[n - 1] != 'c' || path[n - 2] != '.') continue;
        const char *object = arena_printf(house.arena, "%s/%.*so", house.build, (int)n - 1, path);
        if (access(object, R_OK) != 0) print_error("%s is not there\n", object);
        assert_int_equal(access(object, R_OK), 0);
        FILE *nm = popen(arena_printf(house.arena, "nm -P -g '%s'", object), "r");
        assert_non_null(nm);
        while (fgets(line, sizeof line, nm)) {
            char name[2048], kind;
            if (sscanf(line, "%2047s %c", name, &kind) != 2) continue;
            Symbols *to = kind == 'U' ? use : def;
            *ARENA_PUSH(house.arena, to->item, to->n, to->cap) =
                (Symbol){arena_strdup(house.arena, name), i};
        }
        assert_int_equal(pclose(nm), 0);
    }
    qsort(def->item, (size_t)def->n, sizeof *def->item, by_name);
}
/* Takes away, again and again, files that use nothing of those left or that none of them uses: what
 * stays is circles, and what lies between two. */
static void test_no_circle_among_files(void **state) {
    (void)state;
    static bool uses[MAX_FILES][MAX_FILES], gone[MAX_FILES];
    Symbols def = {0}, use = {0};
    read_symbols(&def, &use);
    assert_true(def.n > 500 && use.n > def.n);
    for (int i = 0; i < use.n; i++) {
        const Symbol *d = bsearch(&use.item[i], def.item, (size_t)def.n, sizeof *def.item, by_name);
        if (d && d->file != use.item[i].file) uses[use.item[i].file][d->file] = true;
    }
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < house.n_files; i++) {
            bool needs = false, needed = false;
            for (int k = 0; k < house.n_files && !gone[i]; k++) {
                needs |= uses[i][k] && !gone[k];
                needed |= uses[k][i] && !gone[k];
            }
            if (!gone[i] && !(needs && needed)) gone[i] = any = true;
        }
    }
    int left = 0;
    for (int i = 0; i < house.n_files; i++)
        for (int k = 0; k < house.n_files; k++)
            if (uses[i][k] && !gone[i] && !gone[k]) {
                left++;
                print_error("%s -> %s\n", house.file[i].path, house.file[k].path);
            }
    assert_int_equal(left, 0);
}

/* ---- lines ---- */

/* A declaration or definition in column 0. */
typedef struct {
    const File *file;
    const char *at;
    bool body, commented; /* a comment stands above it, or above its neighbours without a blank */
    int lines, params;
} Function;

static const char *next_line(const char *l) {
    const char *end = strchr(l, '\n');
    return end ? end + 1 : l + strlen(l);
}
/* Commas of the outermost list, plus one; `open` is its parenthesis. */
static int count_params(const char *open) {
    int depth = 0, n = 1;
    for (const char *s = open; *s; s++) {
        depth += (*s == '(') - (*s == ')');
        if (!depth) return n;
        n += *s == ',' && depth == 1;
    }
    return n;
}
/* The function that starts at `l`, if one does; *end is the line after it. */
static bool function_at(const char *l, Function *f, const char **end) {
    static const char *const others[] = {"typedef", "struct ", "enum", "union", "extern ", NULL};
    size_t head = strcspn(l, "{;=");
    const char *open = memchr(l, '(', head);
    *end = next_line(l + head);
    if (!open || l[head] == '=') return false;
    for (int i = 0; others[i]; i++)
        if (!strncmp(l, others[i], strlen(others[i])) && l[head] == '{' && open > l + 60)
            return false;
    if (!strncmp(l, "typedef", 7)) return false;
    f->at = l;
    f->body = l[head] == '{';
    f->params = count_params(open);
    f->lines = 1;
    for (const char *s = l; s < l + head; s++) f->lines += *s == '\n';
    bool one_line = f->body && (*end)[-2] == '}';
    for (; f->body && !one_line && **end; *end = next_line(*end)) {
        f->lines++;
        if (**end != '}') continue;
        *end = next_line(*end);
        break;
    }
    return true;
}
/* Of the first n files. */
static void each_function(int n, void (*look)(const Function *f, void *arg), void *arg) {
    for (int i = 0; i < n; i++) {
        bool commented = false;
        for (const char *l = house.file[i].text, *end; *l; l = end) {
            Function f = {.file = &house.file[i], .commented = commented};
            end = next_line(l);
            if (*l == '\n') commented = false;
            if (!strncmp(l, "/*", 2)) {
                end = strstr(l, "*/");
                assert_non_null(end);
                end = next_line(end);
                commented = true;
            } else if (isalpha((unsigned char)*l) && function_at(l, &f, &end)) look(&f, arg);
        }
    }
}
static void complain(const Function *f, const char *what, int n) {
    print_error("%s: %d %s: %.*s\n", f->file->path, n, what, (int)strcspn(f->at, "\n"), f->at);
}
static void look_length(const Function *f, void *arg) {
    if (f->lines > MAX_LINES) complain(f, "lines", f->lines);
    *(int *)arg += f->lines > MAX_LINES;
}
static void test_functions_are_short(void **state) {
    (void)state;
    int bad = 0;
    each_function(house.n_all, look_length, &bad);
    assert_int_equal(bad, 0);
}
static void look_params(const Function *f, void *arg) {
    bool wide = f->body && f->params > MAX_PARAMS;
    if (wide) complain(f, "parameters", f->params);
    *(int *)arg += wide;
}
static void test_functions_take_few_parameters(void **state) {
    (void)state;
    int bad = 0;
    each_function(house.n_files, look_params, &bad);
    assert_int_equal(bad, 0);
}
/* Texts of kernels (.cu.h) are no headers: their file's beginning says what their arguments are. */
static bool is_header(const char *path) {
    size_t n = strlen(path);
    return path[n - 1] == 'h' && !(n > 5 && !strcmp(path + n - 5, ".cu.h"));
}
static void look_comment(const Function *f, void *arg) {
    const char *end = next_line(f->at + strcspn(f->at, ";{")), *note = strstr(f->at, "/*");
    bool beside = note && note < end;
    if (!is_header(f->file->path) || f->commented || beside) return;
    complain(f, "comments", 0);
    (*(int *)arg)++;
}
static void test_public_functions_have_comments(void **state) {
    (void)state;
    int bad = 0;
    each_function(house.n_files, look_comment, &bad);
    assert_int_equal(bad, 0);
}

/* ---- the list of `make sabotage`, which takes hours: that a row went stale is said here ---- */
static int times_in(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; at && (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}
static void test_planted_mistakes_have_their_place(void **state) {
    (void)state;
    char *list = read_whole("tests/sabotage/list.txt"), *save = NULL;
    const char *file = "", *test = "";
    int bad = 0, rows = 0;
    assert_non_null(list);
    for (char *l = strtok_r(list, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        const char *value = strstr(l, ": "), *in = NULL;
        if (*l == '#' || !value) continue;
        value += 2;
        if (!strncmp(l, "file: ", 6)) file = value;
        if (!strncmp(l, "test: ", 6)) test = arena_printf(house.arena, "tests/%s.c", value);
        if (!strncmp(l, "old: ", 5)) in = file, rows++;
        if (!strncmp(l, "check: ", 7)) in = test;
        if (!in) continue;
        int n = times_in(read_whole(in), value);
        if (in == file ? n == 1 : n > 0) continue;
        print_error("%s: %d times: %s\n", in, n, value);
        bad++;
    }
    assert_true(rows > 200);
    assert_int_equal(bad, 0);
}

int main(int argc, char **argv) {
    (void)argc;
    char *at = strstr(argv[0], "/tests/");
    if (at) *at = 0;
    house.build = at ? argv[0] : "build";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_includes_follow_the_document),
        cmocka_unit_test(test_no_circle_among_files),
        cmocka_unit_test(test_functions_are_short),
        cmocka_unit_test(test_functions_take_few_parameters),
        cmocka_unit_test(test_public_functions_have_comments),
        cmocka_unit_test(test_planted_mistakes_have_their_place),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
