/* plans/bugs/README.md is held against the folder and the runs: all bugs of the catalogue in
 * their order, each plan in some line, and the first wrong value, the cause and the factor of each
 * line are what the run says. A line without a plan says what it waits for, or names the test that
 * stands in for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/file.h"
#include "support/support.h"
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DASH "\xe2\x80\x93"
enum { CELLS = 7, LINES = 128, BUGS = 47 };
enum { NUMBER, BUG, PLAN, WRONG, CAUSE, FACTOR, UPSTREAM };
typedef struct {
    char *cell[CELLS];
} Line;

static char *trimmed(Arena *a, const char *from, const char *to) {
    while (from < to && (*from == ' ' || *from == '`')) from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '`')) to--;
    return arena_strndup(a, from, (size_t)(to - from));
}
/* The lines of the table that begin with a number. */
static int read_table(Arena *a, const char *text, Line *line) {
    int n = 0;
    for (const char *s = text; *s && n < LINES; s += strcspn(s, "\n"), s += *s == '\n') {
        if (strncmp(s, "| ", 2) || s[2] < '1' || s[2] > '9') continue;
        const char *at = s + 1;
        for (int k = 0; k < CELLS; k++) {
            const char *end = at + strcspn(at, "|\n");
            if (*end != '|') fail_msg("a line of fewer than %d cells: %.60s", CELLS, s);
            line[n].cell[k] = trimmed(a, at, end);
            at = end + 1;
        }
        n++;
    }
    return n;
}
static char *text_of(Arena *a, const char *path) {
    size_t n;
    char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &n);
    if (!text) fail_msg("%s cannot be read", path);
    return text;
}
/* "[name](name.yaml)" to "plans/bugs/name.yaml"; NULL for a dash. */
static const char *plan_path(Arena *a, const char *cell) {
    if (!strcmp(cell, DASH)) return NULL;
    const char *open = strstr(cell, "]("), *close = open ? strchr(open, ')') : NULL;
    if (!close) fail_msg("no link: %s", cell);
    return arena_printf(a, "plans/bugs/%.*s", (int)(close - open - 2), open + 2);
}
/* By numbers: level 0 says what verify found. */
static const TraceCheck *first_failure(const Trace *t) {
    for (int i = 0; t && i < t->n_checks; i++)
        if (t->checks[i].level && t->checks[i].verdict[0] == 'F') return &t->checks[i];
    return NULL;
}
static bool same(const char *what, const char *path, const char *got, const char *want) {
    if (!strcmp(got, want)) return true;
    print_error("%s: %s\n    %s\n    the table says\n    %s\n", path, what, got, want);
    return false;
}
static bool line_holds(Arena *a, const Line *l, const char *path) {
    PlanRun r = plan_run(a, path, text_of(a, path), true);
    const TraceCheck *c = first_failure(r.t);
    if (!c)
        return run_has(&r, l->cell[CAUSE])
                   ? true
                   : same("refused with", path, "another code", l->cell[CAUSE]);
    bool ok = same("first wrong value", path, c->value, l->cell[WRONG]);
    ok &= same("cause", path, c->cause, l->cell[CAUSE]);
    if (strcmp(l->cell[FACTOR], DASH) && !strstr(c->cause, l->cell[FACTOR]))
        ok = same("factor", path, c->cause, l->cell[FACTOR]);
    return ok;
}
/* What a line without a plan says instead. */
static bool reason_holds(Arena *a, const Line *l) {
    if (!strncmp(l->cell[CAUSE], "to come", 7)) return true;
    const char *test = strstr(l->cell[CAUSE], "tests/"), *end = test ? strchr(test, ':') : NULL;
    return end && !access(arena_strndup(a, test, (size_t)(end - test)), R_OK);
}
static void test_table(void **state) {
    (void)state;
    Arena *a = arena_new();
    static Line line[LINES];
    int n = read_table(a, text_of(a, "plans/bugs/README.md"), line), bug = 0, bad = 0;
    for (int i = 0; i < n; i++) { /* every bug, in order */
        int number = atoi(line[i].cell[NUMBER]);
        if (number != bug && number != bug + 1) fail_msg("line %d follows %d", number, bug);
        bug = number;
        for (int k = 0; k < CELLS; k++) assert_true(*line[i].cell[k]);
    }
    assert_int_equal(bug, BUGS);
    int held = sample_of(n, "lines of the catalogue");
    for (int k = 0; k < held; k++) {
        const Line *l = &line[sample_at(k, held, n)];
        Arena *b = arena_new();
        const char *path = plan_path(b, l->cell[PLAN]);
        bool ok = path ? line_holds(b, l, path) : reason_holds(b, l);
        if (!ok) print_error("line %s\n", l->cell[NUMBER]);
        bad += !ok;
        arena_free(b);
    }
    arena_free(a);
    assert_int_equal(bad, 0);
}
static void test_every_plan_has_a_line(void **state) {
    (void)state;
    Arena *a = arena_new();
    static Line line[LINES];
    int n = read_table(a, text_of(a, "plans/bugs/README.md"), line);
    glob_t g;
    assert_int_equal(glob("plans/bugs/*.yaml", 0, NULL, &g), 0);
    assert_true(g.gl_pathc >= 45);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        bool found = false;
        for (int k = 0; k < n && !found; k++) {
            const char *path = plan_path(a, line[k].cell[PLAN]);
            found = path && !strcmp(path, g.gl_pathv[i]);
        }
        if (!found) fail_msg("%s is in no line of plans/bugs/README.md", g.gl_pathv[i]);
    }
    globfree(&g);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_every_plan_has_a_line)};
    return cmocka_run_group_tests_name("bugs", tests, NULL, NULL);
}
