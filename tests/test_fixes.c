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

/* ---- all helps of a run at once ---- */
/* What stands in backticks behind `before` in the help; NULL: nothing. */
static const char *quoted(Arena *a, const char *hint, const char *before) {
    const char *at = hint ? strstr(hint, before) : NULL;
    at = at ? strchr(at, '`') : NULL;
    return at ? arena_strndup(a, at + 1, strcspn(at + 1, "`")) : NULL;
}
/* The text with this key of the top in place of the one there, or behind the mesh. */
static const char *with_key(Arena *a, const char *text, const char *key) {
    const char *name = arena_strndup(a, key, strcspn(key, ":") + 1);
    const char *at = strstr(text, arena_printf(a, "\n%s", name));
    const char *from = at ? at + 1 : next_line(strstr(text, "\nmesh:") + 1);
    return arena_printf(a, "%.*s%s\n%s", (int)(from - text), text, key,
                        at ? next_line(from) : from);
}
/* The text with what the help says to write, whatever kind of help it is; NULL: it says nothing to
 * write. */
static const char *obeyed(Arena *a, const char *text, const char *hint) {
    const char *lines = line_of(a, hint), *mesh = quoted(a, hint, "`mesh: "),
               *groups = quoted(a, hint, "`groups: "), *axis = quoted(a, hint, "take `axis: "),
               *of = quoted(a, hint, "` out of the line `");
    if (!lines) lines = longer_line(a, text, hint);
    if (lines) return with_all(a, text, lines);
    if (axis && of) {
        of = quoted(a, strstr(hint, "out of the line"), "`");
        const char *line = strstr(text, of), *field = arena_printf(a, ", %s", axis);
        const char *at = line ? strstr(line, field) : NULL;
        assert_true(at && at < next_line(line));
        return arena_printf(a, "%.*s%s", (int)(at - text), text, at + strlen(field));
    }
    const char *one = quoted(a, hint, "let the line `"), *all = quoted(a, hint, "all layers: `");
    if (one && all) {
        const char *at = strstr(text, arena_printf(a, "\n  %s:", one));
        if (!at) return strstr(text, arena_printf(a, "\n  %s:", all)) ? text : NULL; /* twice */
        return arena_printf(a, "%.*s%s%s", (int)(at + 3 - text), text, all, at + 3 + strlen(one));
    }
    if (!mesh && !groups) return NULL;
    if (mesh) text = with_key(a, text, mesh);
    return groups ? with_key(a, text, groups) : text;
}
/* Is it a help that a plan without mistakes does not get? That an axis cuts nothing may be meant.
 */
static bool to_obey(const Diag *d) {
    static const char *const notes[] = {"N0001", "N0003", "N0008", "N0023", "W0401"};
    bool is = d->severity == DIAG_ERROR;
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        is |= d->hint && !strcmp(d->code, notes[i]);
    return is;
}
/* Obeys all helps of a plan, and those of what comes then: no finding comes again, and in the end
 * there is none. */
static int obey_all(Arena *a, const char *text, const char *how) {
    enum { ROUNDS = 3 };
    const char *first = text, *told[64];
    int n = 0, round = 0;
    for (;; round++) {
        PlanRun r = read_only(a, "wrong.yaml", text);
        const char *next = text;
        for (int i = 0; i < r.d->n; i++) {
            const Diag *d = &r.d->item[i];
            if (!to_obey(d)) continue;
            for (int k = 0; k < n; k++)
                if (!strcmp(told[k], d->message)) goto again;
            if (n < 64) told[n++] = d->message;
            bool done = false; /* who has written it once does not write it again */
            for (int k = 0; k < i && d->hint; k++)
                done |= r.d->item[k].hint && to_obey(&r.d->item[k]) &&
                        !strcmp(r.d->item[k].hint, d->hint);
            const char *now = done ? NULL : obeyed(a, next, d->hint);
            if (now) next = now;
        }
        if (next == text) {
            bool right = r.t != NULL;
            for (int i = 0; i < r.d->n; i++) right &= !to_obey(&r.d->item[i]);
            if (right) return round;
        } else if (round < ROUNDS) {
            text = next;
            continue;
        }
    again:
        run_print(&r);
        fail_msg("%s: helps obeyed, and then:\n%s\nat first:\n%s", how, text, first);
    }
}
#define WRONG_MODEL "model: {preset: llama3-8b, layers: 1, shrink: 16}\n"
#define WRONG_DATA "data: {batch: 8, sequence: 64, dtype: f32}\n"
static const char tp_lines[] = "plan:\n  layers.*.attention.w[qkv]: colwise\n"
                               "  layers.*.attention.wo: rowwise\n"
                               "  layers.*.feed_forward.w[13]: colwise\n"
                               "  layers.*.feed_forward.w2: rowwise\n";
/* Column layers that gather what a row layer then reads in parts: their lines without `output`. */
static void test_gathered(void **state) {
    (void)state;
    static const struct {
        const char *lines, *writes[2]; /* for each finding in its order */
    } row[] = {
        {"  layers.*.attention.w[qkv]: {style: colwise, output: replicate}\n"
         "  layers.*.feed_forward.w[13]: colwise\n",
         {"write `layers.*.attention.w[qkv]: colwise`: a row layer"}},
        {"  layers.*.attention.w[qkv]: {style: ColwiseParallel, output: replicate}\n"
         "  layers.*.feed_forward.w[13]: {style: colwise, output: replicate}\n",
         {"write `layers.*.attention.w[qkv]: ColwiseParallel`: a row layer",
          "write `layers.*.feed_forward.w[13]: colwise`: a row layer"}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a,
                         WRONG_MODEL WRONG_DATA "mesh: {tp: 2}\nplan:\n%s"
                                                "  layers.*.attention.wo: rowwise\n"
                                                "  layers.*.feed_forward.w2: rowwise\n",
                         row[i].lines);
        PlanRun r = read_only(a, "gathered.yaml", text);
        int n = 0;
        for (int k = 0; k < r.d->n; k++) {
            if (strcmp(r.d->item[k].code, "E0402")) continue;
            if (n == 2 || !row[i].writes[n] || !strstr(r.d->item[k].hint, row[i].writes[n]))
                fail_msg("%s", r.d->item[k].hint);
            n++;
        }
        assert_int_equal(n, row[i].writes[1] ? 2 : 1);
        assert_int_equal(obey_all(a, text, "gathered"), 1);
        arena_free(a);
    }
}
/* Sums that a row layer leaves pending, and experts on ranks that hold the same tokens. */
static void test_pending(void **state) {
    (void)state;
    static const char *const outputs[] = {"partial", "{tp: partial}"};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a,
                         WRONG_MODEL WRONG_DATA "mesh: {tp: 2}\nplan:\n"
                                                "  layers.*.attention.w[qkv]: colwise\n"
                                                "  layers.*.attention.wo: {style: rowwise, "
                                                "output: %s}\n"
                                                "  layers.*.feed_forward.w[13]: colwise\n"
                                                "  layers.*.feed_forward.w2: rowwise\n",
                         outputs[i]);
        assert_int_equal(obey_all(a, text, "a pending sum"), 1);
        arena_free(a);
    }
    Arena *a = arena_new();
    obey_all(a,
             "model: {preset: mixtral-8x7b, layers: 1, shrink: 32}\n" WRONG_DATA
             "mesh: {ep: 4}\nmoe: {dispatch: all_to_all}\n",
             "experts");
    arena_free(a);
}
/* Logits that stay cut under a loss that no line names: the help stands at the head's line, and
 * either way that it names does. */
static void test_loss(void **state) {
    (void)state;
    static const char *const trusts[] = {"rules", "declared"};
    static const char *const heads[] = {"colwise", "{style: colwise, output: shard(-1)}"};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        const char *plan = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 1, shrink: 16, parts: [embedding, blocks, norm, "
            "head, loss]}\n" WRONG_DATA
            "mesh: {tp: 2}\ntrust: %s\n%s  tok_embeddings: {style: rowwise, output: replicate}\n",
            trusts[i / 2], tp_lines);
        const char *text = arena_printf(a, "%s  output: %s\n", plan, heads[i % 2]);
        PlanRun r = read_only(a, "loss.yaml", text);
        int n = 0;
        for (int k = 0; k < r.d->n; k++) {
            if (!to_obey(&r.d->item[k])) continue;
            assert_non_null(strstr(r.d->item[k].hint, "`loss: loss_parallel`"));
            assert_int_equal(r.d->item[k].loc.line, 11);
            n++;
        }
        /* the largest, the sum of exponentials, the label's logit: three steps that are wrong
         * where lines are believed, one thing that no line asks for where rules move */
        assert_int_equal(n, i / 2 ? 3 : 1);
        if (!(i % 2)) assert_int_equal(obey_all(a, text, "whole logits"), 1);
        text = arena_printf(a,
                            "%s  output: {style: colwise, use_local_output: false}\n"
                            "  loss: loss_parallel\n",
                            plan);
        assert_int_equal(obey_all(a, text, "a line for the loss"), 0);
        arena_free(a);
    }
}
/* An `axis:` in one line, that cuts the batch or nothing else. */
static void test_axis(void **state) {
    (void)state;
    static const char *const meshes[] = {"dp: 2, tp: 2", "a: 2, tp: 2"};
    for (int m = 0; m < 2; m++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a, WRONG_MODEL WRONG_DATA "mesh: {%s}\n%s", meshes[m], tp_lines);
        Line l[MOST_LINES];
        const int n = find_lines(text, l);
        assert_int_equal(n, 4);
        for (int i = 0; i < n; i++) {
            const char *end = strchr(l[i].colon, '\n');
            const char *wrong =
                arena_printf(a, "%.*s: {style: %.*s, axis: %.*s}%s", (int)(l[i].colon - text), text,
                             (int)(end - l[i].colon - 2), l[i].colon + 2,
                             (int)strcspn(meshes[m], ":"), meshes[m], end);
            assert_int_equal(obey_all(a, wrong, "axis"), 1);
        }
        arena_free(a);
    }
}
/* A line that is for one of two layers only. */
static void test_one_layer(void **state) {
    (void)state;
    static const char *const files[] = {"plans/04-llama3-8b-tp4.yaml",
                                        "plans/05-llama3-8b-tp4-sp.yaml"};
    for (int f = 0; f < 2; f++) {
        Arena *a = arena_new();
        size_t bytes;
        const char *text = file_read(a, diags_new(a), files[f], 1 << 20, (Loc){0}, &bytes);
        const char *one = strstr(text, "layers: 1"), *hw = strstr(text, "hardware:");
        text = arena_printf(a, "%.*slayers: 2%.*s", (int)(one - text), text, (int)(hw - one - 9),
                            one + 9);
        Line l[MOST_LINES];
        const int n = find_lines(text, l);
        assert_true(n >= 4);
        for (int i = 0; i < 2 * n; i++) {
            const Line *at = &l[i % n];
            const char *star = strstr(at->at, ".*.");
            assert_true(star && star < at->colon);
            const char *wrong =
                arena_printf(a, "%.*s.%d.%s", (int)(star - text), text, i / n, star + 3);
            const char *how = arena_strndup(a, at->at, at->n);
            obey_all(a, wrong, how);
            obey_all(a, arena_printf(a, "%spass: backward\n", wrong), how);
        }
        arena_free(a);
    }
}
/* Other mistakes of whole plans. */
static void test_whole(void **state) {
    (void)state;
    static const char *const latent = "model: {preset: deepseek-v3, layers: 1, shrink: 32}\n";
    static const struct {
        const char *how, *model, *mesh, *lines;
        int rounds;
    } t[] = {
        {"the query of a latent as rows", NULL, "mesh: {tp: 2}",
         "plan:\n  layers.*.attention.wq_b: rowwise\n  layers.*.attention.wkv_b: colwise\n"
         "  layers.*.attention.wo: rowwise\n",
         1},
        {"JAX", WRONG_MODEL, "mesh: {replica: 2, fsdp: 2, tensor: 2}", tp_lines, 1},
        {"two for the data", WRONG_MODEL, "mesh: {dp: 2, fsdp: 2, tp: 2}", tp_lines, 1},
        {"capitals", WRONG_MODEL, "mesh: {batch: 2, TP: 2}", tp_lines, 1},
        {"a group of theirs", WRONG_MODEL, "mesh: {data: 2, model: 2}\ngroups: {sp: model}",
         tp_lines, 1},
        {"data", WRONG_MODEL, "mesh: {data: 2, tp: 2}", tp_lines, 1},
        {"stages", WRONG_MODEL, "mesh: {pp: 2}", tp_lines, 1},
        {"shards", WRONG_MODEL, "mesh: {fsdp: 2}", tp_lines, 1},
        {"nothing wrong", WRONG_MODEL, "mesh: {x: 2}", tp_lines, 0},
        {"nor here", WRONG_MODEL, "mesh: {TP: 2}", tp_lines, 0},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        Arena *a = arena_new();
        int rounds = obey_all(a,
                              arena_printf(a, "%s" WRONG_DATA "%s\n%s",
                                           t[i].model ? t[i].model : latent, t[i].mesh, t[i].lines),
                              t[i].how);
        assert_int_equal(rounds, t[i].rounds);
        arena_free(a);
    }
}

/* The text with what is written instead: a whole line, a key with its list, or a word in place of
 * the one that the message quotes. */
static const char *respelt(Arena *a, const char *text, const Diag *g) {
    const char *hint = g->hint, *line = line_of(a, hint), *quoted = strchr(g->message, '\'');
    if (line) return with_all(a, text, line);
    const char *tick = strchr(hint, '`');
    const char *put = tick ? arena_strndup(a, tick + 1, strcspn(tick + 1, "`")) : hint;
    const char *colon = strstr(put, ": ");
    const char *old = arena_strndup(a, quoted + 1, strcspn(quoted + 1, "'"));
    const char *whole = strstr(g->message, "needs a dim: ");
    if (whole) old = strchr(whole, ':') + 2;
    if (colon) old = arena_printf(a, "%.*s: [", (int)(colon - put), put);
    const char *at = strstr(text, old);
    if (!at) return NULL;
    const char *end = colon ? strchr(at, ']') + 1 : at + strlen(old);
    return arena_printf(a, "%.*s%s%s", (int)(at - text), text, put, end);
}
/* Other spellings of a placement, where one stands and where a style does: the first help says what
 * is right, and no second one is needed. */
static void test_one_help_is_enough(void **state) {
    (void)state;
    static const char *const spelt[] = {
        "Shard(1)", "[Shard(1)]",         "S(1)",        "[S(1)]",         "Shard(dim=1)",
        "shard1",   "shard(dim=1)",       "Replicate()", "[Replicate()]",  "R",
        "SHARD(1)", "{tp: \"Shard(1)\"}", "{tp: S(-1)}", "{tp: [S(1)]}",   "[shard(1)]",
        "shard(1)", "{tp: [shard(0)]}",   "[shard(-1)]", "{tp: shard(1)}", "{tp: Replicate()}"};
    int obeyed_in[2] = {0};
    for (size_t i = 0; i < 2 * sizeof spelt / sizeof *spelt; i++) {
        Arena *a = arena_new();
        const bool style = i % 2;
        const char *word = spelt[i / 2];
        if (style && !strcmp(word, "R")) continue; /* too short for the name of a style */
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 1, shrink: 16}\ndata: {batch: 2, sequence: 64}\n"
            "mesh: {tp: 4}\nnames: torchtitan\nplan:\n  layers.*.attention.w[kv]: colwise\n"
            "  layers.*.attention.wq: %s%s%s\n  layers.*.attention.wo: rowwise\n",
            style ? "" : "{style: colwise, weight: ", word, style ? "" : "}");
        PlanRun r = read_only(a, "spelt.yaml", text);
        for (int k = 0; k < r.d->n; k++) {
            const Diag *g = &r.d->item[k];
            if (strncmp(g->code, "E02", 3) && strncmp(g->code, "E03", 3)) continue;
            const char *mended = g->hint ? respelt(a, text, g) : NULL;
            if (!mended) fail_msg("%s: '%s' helps nobody: %s", word, g->message, g->hint);
            PlanRun again = read_only(a, "spelt.yaml", mended);
            for (int j = 0; j < again.d->n; j++)
                if (!strncmp(again.d->item[j].code, "E02", 3) ||
                    !strncmp(again.d->item[j].code, "E03", 3))
                    fail_msg("%s, then %s: %s", word, g->hint, again.d->item[j].message);
            obeyed_in[style]++;
            break;
        }
        arena_free(a);
    }
    assert_true(obeyed_in[0] >= 15 && obeyed_in[1] >= 18);
}
/* The help for another spelling cuts the dim that is spelt, over the axis that is meant, and where
 * no dim can be read it says none. */
static void test_the_dim_that_is_spelt(void **state) {
    (void)state;
    static const struct {
        const char *line, *help, *not ; /* what the first help has, and has not */
    } row[] = {
        {"layers.*.attention.wo: Shard(dim = 1)", "is `rowwise`", "is `colwise`"},
        {"layers.*.attention.wo: Shard( 1 )", "is `rowwise`", "is `colwise`"},
        {"layers.*.attention.wo: Shard(1.0)", NULL, "colwise"},
        {"layers.*.attention.wo: Shard(99999999999)", NULL, "colwise"},
        {"layers.*.attention.wo: Shard(dim=)", NULL, "colwise"},
        {"layers.*.attention.wo: {style: rowwise, output: \"Shard(dim = 1)\"}", "shard(1)", NULL},
        {"layers.*.attention.wo: {style: rowwise, output: shard( 1 )}", "shard(1)", "shard(0)"},
        {"layers.*.attention.wo: {style: rowwise, output: Shard(1.0)}", "write shard(0), ", NULL},
        {"tok_embeddings: Shard(0)", "of an embedding `rowwise`", NULL},
        {"tok_embeddings: [Shard(1)]", "of an embedding `colwise`", NULL},
        {"tok_embeddings: {tp: Shard(0)}", "of an embedding `rowwise`", NULL},
        {"tok_embeddings: [Replicate()]", "`tok_embeddings: replicate`", "of an embedding"},
        {"layers.*.attention.wo: [Shard(0), Replicate()]", "{style: colwise, axis: dp}", NULL},
        {"layers.*.attention.wo: [Replicate(), Shard(1)]", "{style: rowwise, axis: tp}", NULL},
        {"layers.*.attention.wo: [Shard(0), Shard(1)]",
         "`layers.*.attention.wo: {weight: {dp: shard(0), tp: shard(1)}}`", NULL},
        {"layers.*.attention.wo: [Shard(0), Replicate(), Shard(1)]", "colwise`", "axis"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 1, shrink: 16, parts: [embedding, blocks]}\n"
            "data: {batch: 2, sequence: 64}\nmesh: {dp: 2, tp: 4}\nnames: torchtitan\nplan:\n"
            "  %s\n",
            row[i].line);
        PlanRun r = read_only(a, "spelt.yaml", text);
        const char *help = r.d->n ? r.d->item[0].hint : NULL;
        if (!help || (row[i].help && !strstr(help, row[i].help)) ||
            (row[i].not &&strstr(help, row[i].not )))
            fail_msg("%s: %s", row[i].line, help ? help : "no help");
        arena_free(a);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_axis),
                                       cmocka_unit_test(test_gathered),
                                       cmocka_unit_test(test_loss),
                                       cmocka_unit_test(test_pending),
                                       cmocka_unit_test(test_one_layer),
                                       cmocka_unit_test(test_whole),
                                       cmocka_unit_test(test_lines),
                                       cmocka_unit_test(test_one_help_is_enough),
                                       cmocka_unit_test(test_the_dim_that_is_spelt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
