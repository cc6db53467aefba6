/* What a help gives to write: plans are damaged line by line, and each help that says a whole line
 * of a plan, or what to add to one, is obeyed. The plan must then be understood, and what was told
 * is told no more. Helps that say no line to write are held elsewhere (test_refusals, test_cli). */
#include "support/support.h"
#include "base/file.h"
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A line of the map `plan:`, and the bytes of the text that it takes. */
typedef struct {
    const char *at, *colon;
    size_t n;
} Line;
enum { MOST_LINES = 64 };
static const char *next_line(const char *s) {
    const char *end = strchr(s, '\n');
    return end ? end + 1 : s + strlen(s);
}
/* Lines written in one row each; 0 where `plan:` is not there or is written otherwise. */
static int find_lines(const char *text, Line *out) {
    const char *s = strncmp(text, "plan:\n", 6) ? strstr(text, "\nplan:\n") : text - 1;
    int n = 0;
    if (!s) return 0;
    for (s += 7; n < MOST_LINES && (!strncmp(s, "  ", 2) || *s == '#'); s = next_line(s)) {
        const char *at = s + strspn(s, " ");
        if (*at == '#') continue;
        const char *colon = strstr(at, ": ");
        size_t row = (size_t)(next_line(s) - s);
        if (at != s + 2 || !colon || (size_t)(colon - s) > row) return 0;
        out[n++] = (Line){s, colon, row};
    }
    return n;
}
static const char *without(Arena *a, const char *text, const Line *l) {
    return arena_printf(a, "%.*s%s", (int)(l->at - text), text, l->at + l->n);
}
/* The text with `line` in place of the one with its pattern, or behind the last one. */
static const char *with(Arena *a, const char *text, const char *line) {
    Line l[MOST_LINES];
    int n = find_lines(text, l), k = 0;
    size_t head = (size_t)(strstr(line, ": ") - line);
    while (k < n &&
           ((size_t)(l[k].colon - l[k].at) != head + 2 || strncmp(l[k].at + 2, line, head)))
        k++;
    const char *from = k < n ? l[k].at : l[n - 1].at + l[n - 1].n, /* what is put in between */
        *to = k < n ? from + l[k].n : from;
    return arena_printf(a, "%.*s  %s\n%s", (int)(from - text), text, line, to);
}
static const char *with_all(Arena *a, const char *text, const char *lines) {
    for (const char *end; *lines; lines = end + (*end == '\n')) {
        end = lines + strcspn(lines, "\n");
        text = with(a, text, arena_strndup(a, lines, (size_t)(end - lines)));
    }
    return text;
}
/* The lines of a plan that a help says in backticks, "and" between them, after "write" or "lay it
 * out so:", one below the other; NULL: it says none. */
static const char *line_of(Arena *a, const char *hint) {
    const char *at = hint ? strstr(hint, "write `") : NULL;
    if (!at) at = hint ? strstr(hint, "lay it out so: `") : NULL;
    Str s = str_new(a);
    for (at = at ? strchr(at, '`') + 1 : NULL; at;) {
        const char *end = strchr(at, '`'), *colon = strstr(at, ": "), *dot = strchr(at, '.');
        /* `dispatch: masked` is a key; a pattern has components, or is a name with its number */
        bool line = colon && colon < end && ((dot && dot < colon) || !strncmp(at, "net", 3));
        if (!line) return NULL;
        str_addf(&s, "%s%.*s", s.n ? "\n" : "", (int)(end - at), at);
        at = strncmp(end, "` and `", 7) ? NULL : end + 7;
    }
    return s.n ? s.s : NULL;
}

/* The line that a help adds to: "add `output: shard(1)` to the line `PATTERN`"; NULL. */
static const char *longer_line(Arena *a, const char *text, const char *hint) {
    Line l[MOST_LINES];
    static const char to[] = "` to the line `";
    const char *at = hint ? strstr(hint, "add `") : NULL, *end = at ? strstr(at, to) : NULL;
    if (!end) return NULL;
    const char *pattern = end + sizeof to - 1;
    size_t head = (size_t)(strchr(pattern, '`') - pattern);
    int n = find_lines(text, l), k = 0;
    while (k < n &&
           ((size_t)(l[k].colon - l[k].at) != head + 2 || strncmp(l[k].at + 2, pattern, head)))
        k++;
    if (k == n) return NULL; /* a recipe's line */
    const char *value = l[k].colon + 2;
    int all = (int)(l[k].at + l[k].n - 1 - value);
    const char *fields = arena_strndup(a, at + 5, (size_t)(end - at - 5));
    return *value == '{'
               ? arena_printf(a, "%.*s: %.*s, %s}", (int)head, pattern, all - 1, value, fields)
               : arena_printf(a, "%.*s: {style: %.*s, %s}", (int)head, pattern, all, value, fields);
}

/* How many helps of these codes the shipped plans come to at least. */
static const struct {
    const char *code;
    int least;
} kinds[] = {{"E0402", 20}, {"N0001", 100}, {"N0008", 30}, {"W0401", 100}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
typedef struct {
    const char *file, *how;
    bool errors; /* the mistake has consequences: only what is told as an error says its cause */
    int runs, pasted, of[N_KINDS];
} Count;
static PlanRun read_only(Arena *a, const char *file, const char *text) {
    return plan_run(a, file, text, false);
}
/* What the ranks do that no line asks for, or that contradicts the lines. */
static int problems(const PlanRun *r) {
    int n = r->t ? r->t->n_unasked + r->t->n_undeclared : 0;
    for (int i = 0; i < r->d->n; i++)
        n += !strncmp(r->d->item[i].code, "E04", 3) || !strcmp(r->d->item[i].code, "W0401");
    return n;
}
/* Obeys each help of the run that says a line. */
static void obey(Count *c, Arena *a, const char *text, const PlanRun *r) {
    for (int i = 0; i < r->d->n; i++) {
        const Diag *d = &r->d->item[i];
        const char *line = line_of(a, d->hint);
        if (!line) line = longer_line(a, text, d->hint);
        if (!line || (c->errors && d->severity != DIAG_ERROR)) continue;
        Arena *b = arena_new();
        const char *mended = with_all(b, text, line);
        PlanRun now = read_only(b, c->file, mended);
        c->pasted++;
        for (int k = 0; k < N_KINDS; k++) c->of[k] += !strcmp(kinds[k].code, d->code);
        /* an error hides what comes after it */
        bool left = !now.t || (d->severity != DIAG_ERROR && problems(&now) > problems(r));
        for (int k = 0; k < now.d->n; k++) {
            const Diag *x = &now.d->item[k];
            left |= !strcmp(x->code, d->code) && !strcmp(x->message, d->message);
            left |= !strncmp(x->code, "E02", 3) || !strncmp(x->code, "E03", 3);
        }
        if (left) {
            run_print(&now);
            fail_msg("%s, %s: %s [%s] says `%s`, and with it:\n%s", c->file, c->how, d->message,
                     d->code, line, mended);
        }
        arena_free(b);
    }
}
static void try(Count *c, Arena *a, const char *text, const char *how) {
    c->how = how;
    c->runs++;
    PlanRun r = read_only(a, c->file, text);
    obey(c, a, text, &r);
}
/* The line without what it says of its output; NULL if it says nothing of it, or nothing else. */
static const char *unsaid(Arena *a, const char *text, const Line *l) {
    static const char key[] = ", output: ";
    const char *at = strstr(l->at, key), *end = l->at + l->n;
    if (!at || at >= end) return NULL;
    const char *to = at + sizeof key - 1;
    for (int deep = 0; to < end && (deep || !strchr(",}", *to)); to++)
        deep += (*to == '{' || *to == '[' || *to == '(') - (*to == '}' || *to == ']' || *to == ')');
    return arena_printf(a, "%.*s%s", (int)(at - text), text, to);
}
/* The line with another word in place of the first such one; NULL: it has none. */
static const char *other(Arena *a, const char *text, const Line *l, const char *from,
                         const char *to) {
    const char *at = strstr(l->colon, from);
    if (!at || at >= l->at + l->n) return NULL;
    return arena_printf(a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}
/* The line without all others; NULL where the plan plants a mistake, which may need one of them. */
static const char *alone(Arena *a, const char *text, const Line *l) {
    Line all[MOST_LINES];
    if (strstr(text, "\nfaults:") || strstr(text, "\ngradients:")) return NULL;
    const int n = find_lines(text, all);
    const char *end = all[n - 1].at + all[n - 1].n;
    return arena_printf(a, "%.*s%.*s%s", (int)(all[0].at - text), text, (int)l->n, l->at, end);
}
/* One mistake in each line: it is left out, what it says of its output is, it cuts the result in
 * another place, or its weight; or all others are left out. */
static const char *damaged(Arena *a, const char *text, const Line *l, int way) {
    switch (way) {
    case 0: return without(a, text, l);
    case 1: return unsaid(a, text, l);
    case 2: return other(a, text, l, "output: shard(1)", "output: shard(-1)");
    case 3: return other(a, text, l, "rowwise", "colwise");
    case 4: return other(a, text, l, "colwise", "rowwise");
    default: return alone(a, text, l);
    }
}
enum { WAYS = 6 };
/* The plan as it is and with each line damaged in each way; its labels believed or not. */
static void damage(Count *c, const char *file) {
    Arena *a = arena_new();
    Line l[MOST_LINES];
    Diags *d = diags_new(a);
    size_t bytes;
    const char *text = file_read(a, d, file, 1 << 20, (Loc){0}, &bytes);
    int n = text ? find_lines(text, l) : 0;
    c->file = file;
    for (int i = -1; i < WAYS * n && n > 1; i++) {
        Arena *b = arena_new();
        const Line *at = &l[i < 0 ? 0 : i % n];
        const char *less = i < 0 ? text : damaged(b, text, at, i / n);
        const char *how = i < 0 ? "as it is" : arena_strndup(b, at->at, at->n);
        c->errors = i >= 2 * n;
        if (less) try(c, b, less, how);
        if (less && !c->errors && !strstr(text, "trust:"))
            try(c, b, arena_printf(b, "%s\ntrust: declared\n", less), how);
        arena_free(b);
    }
    arena_free(a);
}
static void test_lines(void **state) {
    (void)state;
    glob_t g;
    Count c = {0};
    assert_int_equal(glob("plans/*.yaml", 0, NULL, &g), 0);
    assert_int_equal(glob("plans/bugs/*.yaml", GLOB_APPEND, NULL, &g), 0);
    int n = sample_of((int)g.gl_pathc, "plans");
    for (int i = 0; i < n; i++) damage(&c, g.gl_pathv[sample_at(i, n, (int)g.gl_pathc)]);
    printf("%d damaged plans, %d helps obeyed:", c.runs, c.pasted);
    for (int k = 0; k < N_KINDS; k++) printf(" %s %d", kinds[k].code, c.of[k]);
    printf("\n");
    for (int k = 0; k < N_KINDS && n == (int)g.gl_pathc; k++)
        if (c.of[k] < kinds[k].least) fail_msg("%s: %d helps", kinds[k].code, c.of[k]);
    globfree(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
