/* check --update-expect: the `expect` section of a plan, written from a run. It is surgery on the text, so that
 * comments and the order of everything else stay. Refuses a plan whose `expect` it cannot find the end of. */
#include "base/file.h"
#include "cli/cli.h"
#include "cli/find.h"
#include <ctype.h>
#include <string.h>

enum { DEFAULT_SHAPES = 8 };

/* ---- what the section says ---- */
/* A YAML scalar: plain where that is safe, else in double quotes. */
static const char *scalar(const char *s, Arena *a) {
    bool plain = *s && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-()*") == strlen(s);
    if (plain && (isalpha((unsigned char)*s) || *s == '_')) return s;
    Str q = str_new(a);
    str_add(&q, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') str_add(&q, "\\");
        str_addn(&q, s, 1);
    }
    str_add(&q, "\"");
    return q.s;
}
static void codes_section(Str *s, const Diags *d, bool values_differ) {
    const char *codes[DIAG_KEEP];
    int n = 0;
    for (int i = 0; i < d->n; i++) {
        const Diag *g = &d->item[i];
        bool known = g->severity == DIAG_NOTE || strcmp(g->code, "E0505") == 0;
        known = known || (values_differ && strcmp(g->code, "E0501") == 0);
        for (int k = 0; k < n && !known; k++) known = strcmp(codes[k], g->code) == 0;
        if (!known) codes[n++] = g->code;
    }
    if (!n) return;
    str_add(s, "  diagnostics: [");
    for (int i = 0; i < n; i++) str_addf(s, "%s%s", i ? ", " : "", codes[i]);
    str_add(s, "]\n");
}
static void shape_line(Str *s, const char *name, const char *symbolic, Arena *a) {
    str_addf(s, "    %s: %s\n", scalar(name, a), scalar(symbolic, a));
}
/* The shapes that the section named before; without such, those of the first layer where they change. */
static void shapes_section(Str *s, const Plan *p, const Trace *t, Arena *a) {
    const Expect *e = &p->expect;
    const char *last = NULL;
    int n = 0;
    Str lines = str_new(a);
    for (int i = 0; i < e->n_shapes; i++) {
        const TraceValue *v = lookup_value(t, e->shapes[i].key);
        const TraceParam *q = v ? NULL : lookup_param(t, e->shapes[i].key);
        const char *symbolic = v ? v->shape.symbolic : q ? q->compute.symbolic : NULL;
        if (symbolic) shape_line(&lines, e->shapes[i].key, symbolic, a);
    }
    for (int i = 0; e->n_shapes == 0 && i < t->n_values && n < DEFAULT_SHAPES; i++) {
        const TraceValue *v = &t->values[i];
        bool moved = v->kind && strcmp(v->kind, "moved") == 0;
        bool forward = !v->pass || strcmp(v->pass, "forward") == 0;
        if (moved || !forward || !v->shape.symbolic || !v->shape.name || v->layer > 0) continue;
        if (last && strcmp(last, v->shape.symbolic) == 0) continue;
        if (lookup_value(t, v->shape.name) != v) continue;
        last = v->shape.symbolic;
        shape_line(&lines, v->shape.name, last, a);
        n++;
    }
    if (lines.n) str_addf(s, "  local_shapes:\n%s", lines.s);
}
static void add_count(Str *line, const char *op, const char *axis, int64_t n, Arena *a) {
    const char *key = axis ? arena_printf(a, "%s(%s)", op, axis) : op;
    str_addf(line, "%s%s: %lld", line->n ? ", " : "", scalar(key, a), (long long)n);
}
static bool same_collective(const TraceCollective *c, const TraceCollective *d) {
    return c->pass && d->pass && c->op && d->op && c->axes && d->axes && strcmp(c->pass, d->pass) == 0 &&
           strcmp(c->op, d->op) == 0 && strcmp(c->axes, d->axes) == 0;
}
/* Every kind that occurs in a phase, and those that the section said would not and that still do not. */
static void phase_section(Str *line, const Plan *p, const Trace *t, const char *phase, Arena *a) {
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!c->pass || strcmp(c->pass, phase) != 0) continue;
        int count = 0, first = -1;
        for (int k = 0; k < t->n_collectives; k++) {
            if (!same_collective(c, &t->collectives[k])) continue;
            if (first < 0) first = k;
            count++;
        }
        if (first == i) add_count(line, c->op, c->axes, count, a);
    }
    for (int i = 0; i < p->expect.n_collectives; i++) {
        const ExpectCollective *x = &p->expect.collectives[i];
        bool occurs = false;
        if (x->count != 0 || strcmp(x->phase, phase) != 0) continue;
        for (int k = 0; k < t->n_collectives && !occurs; k++) {
            const TraceCollective *c = &t->collectives[k];
            occurs = c->pass && strcmp(c->pass, phase) == 0 && c->op && strcmp(c->op, x->op) == 0 &&
                     (!x->axis || lookup_same_axes(t, x->axis, c->axes ? c->axes : c->axis));
        }
        if (!occurs) add_count(line, x->op, x->axis, 0, a);
    }
}
static void collectives_section(Str *s, const Plan *p, const Trace *t, Arena *a) {
    static const char *const phases[] = {"forward", "loss", "backward", "gradients", "parameters"};
    Str all = str_new(a);
    for (int i = 0; i < 5; i++) {
        Str line = str_new(a);
        phase_section(&line, p, t, phases[i], a);
        if (line.n) str_addf(&all, "    %s: {%s}\n", phases[i], line.s);
    }
    if (all.n) str_addf(s, "  collectives:\n%s", all.s);
}
/* A limit: never rounded down. */
static const char *memory_text(int64_t v, Arena *a) {
    if (v % ((int64_t)1 << 30) == 0) return arena_printf(a, "%lld GiB", (long long)(v >> 30));
    if (v % (1 << 20) == 0) return arena_printf(a, "%lld MiB", (long long)(v >> 20));
    return arena_printf(a, "%lld KiB", (long long)((v + 1023) >> 10));
}
static const char *section_of(const Loaded *l, Arena *a) {
    const Trace *t = l->trace;
    const Plan *p = l->report.plan;
    const char *verdict = t && t->verdict ? t->verdict : "invalid";
    bool equivalent = strcmp(verdict, "equivalent") == 0, different = strcmp(verdict, "different") == 0;
    Str s = str_new(a);
    str_add(&s, "expect:\n");
    if (equivalent) str_add(&s, "  equivalent: true\n");
    if (different) str_add(&s, "  equivalent: false\n");
    if (different && t->first_wrong) str_addf(&s, "  first_wrong: %s\n", scalar(t->first_wrong, a));
    codes_section(&s, l->d, different);
    if (equivalent || different) {
        shapes_section(&s, p, t, a);
        collectives_section(&s, p, t, a);
    }
    if (t && p->expect.memory_per_rank >= 0 && t->n_memory) {
        int64_t peak = lookup_peak(t, NULL), limit = p->expect.memory_per_rank;
        str_addf(&s, "  memory_per_rank: %s\n", memory_text(peak > limit ? peak : limit, a));
    }
    return s.s;
}

/* ---- surgery ---- */
static size_t line_end(const char *s, size_t n, size_t at) {
    const char *nl = memchr(s + at, '\n', n - at);
    return nl ? (size_t)(nl - s) + 1 : n;
}
/* Does a top-level key, or the end of the document, begin at this line? Blank lines, comments, indented lines and
 * closing brackets do not. */
static bool is_key_line(const char *s, size_t n, size_t at) {
    return at < n && (isalpha((unsigned char)s[at]) || s[at] == '_' || s[at] == '"' || s[at] == '\'' ||
                      (n - at >= 3 && (strncmp(s + at, "---", 3) == 0 || strncmp(s + at, "...", 3) == 0)));
}
static bool is_blank_or_comment(const char *s, size_t n, size_t at) {
    return at < n && (s[at] == '#' || s[at] == '\n' || s[at] == '\r');
}
const char *update_text(Arena *arena, const char *plan, size_t n, const char *section) {
    size_t from = n, to = n;
    for (size_t at = 0; at < n && from == n; at = line_end(plan, n, at)) {
        size_t bom = at == 0 && n >= 3 && memcmp(plan, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        if (n - at - bom >= 7 && strncmp(plan + at + bom, "expect:", 7) == 0) from = at + bom;
    }
    if (from < n) {
        to = line_end(plan, n, from);
        /* what is not a key belongs to the section, but comments and blank lines before the next key are that key's */
        for (size_t at = to; at < n && !is_key_line(plan, n, at);) {
            size_t next = line_end(plan, n, at);
            if (!is_blank_or_comment(plan, n, at)) to = next;
            at = next;
        }
    }
    Str s = str_new(arena);
    str_addn(&s, plan, from);
    if (from == n && n && plan[n - 1] != '\n') str_add(&s, "\n");
    str_add(&s, section);
    str_addn(&s, plan + to, n - to);
    return s.s;
}
bool update_expect(Cli *c, const Loaded *l) {
    Loc at = {l->path, 0, 0};
    if (strcmp(l->path, "-") == 0) {
        diag_error(c->d, "E0212", ((Loc){NULL, 0, 0}), NULL,
                   "--update-expect wants a plan in a file, not standard input");
        return false;
    }
    const char *text = update_text(c->arena, l->text, l->n, section_of(l, c->arena));
    /* a plan in braces, or one that could not be parsed, has no place for the section */
    Diags *d = diags_new(c->arena);
    Plan *p = plan_parse(c->arena, d, l->path, text, strlen(text), NULL, 0);
    if (diags_errors(d) > diags_errors(l->d) || !p->expect.set) {
        diag_error(c->d, "E0104", at, "write `expect:` as a key of its own at the start of a line",
                   "the `expect` section of this plan cannot be rewritten");
        return false;
    }
    return file_write(c->d, l->path, text, strlen(text));
}
