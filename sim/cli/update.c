/* check --update-expect: the `expect` section of a plan, written from a run. What the run says
 * nothing about stays as it was (section.c does the surgery). Refuses to record what is not the
 * plan's doing: a missing file, a limit of this machine, or a mistake in the plan's text that the
 * old section did not name. */
#include "base/file.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/section.h"
#include <ctype.h>
#include <string.h>

enum { DEFAULT_SHAPES = 8 };

/* ---- what the section says ---- */
/* A YAML scalar: plain where that is safe, else in double quotes. */
static const char *scalar(const char *s, Arena *a) {
    bool plain =
        *s && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-()*") ==
                  strlen(s);
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
static bool named(const Expect *e, const char *code) {
    for (int i = 0; i < e->n_diagnostics; i++)
        if (strcmp(e->diagnostics[i], code) == 0) return true;
    return false;
}
/* Errors and warnings; notes only where the old section asked for them. */
static const char *codes_text(const Loaded *l, bool values_differ, Arena *a) {
    const char *codes[DIAG_KEEP];
    const Diags *d = l->d;
    int n = 0;
    for (int i = 0; i < d->n; i++) {
        const Diag *g = &d->item[i];
        bool known = strcmp(g->code, "E0505") == 0;
        known |= g->severity == DIAG_NOTE && !named(&l->report.plan->expect, g->code);
        known |= values_differ && strcmp(g->code, "E0501") == 0;
        for (int k = 0; k < n && !known; k++) known = strcmp(codes[k], g->code) == 0;
        if (!known) codes[n++] = g->code;
    }
    if (!n) return NULL;
    Str s = str_new(a);
    for (int i = 0; i < n; i++) str_addf(&s, "%s%s", i ? ", " : "  diagnostics: [", codes[i]);
    str_add(&s, "]\n");
    return s.s;
}
static void shape_line(Str *s, const char *name, const char *symbolic, Arena *a) {
    str_addf(s, "    %s: %s\n", scalar(name, a), scalar(symbolic, a));
}
/* The shapes that the section named before (as it had them where the run has no such value: the
 * check will say so); without such, those of the first layer where they change. */
static const char *shapes_text(const Plan *p, const Trace *t, Arena *a) {
    const Expect *e = &p->expect;
    const char *last = NULL;
    int n = 0;
    Str lines = str_new(a);
    for (int i = 0; i < e->n_shapes; i++) {
        const char *hint;
        const TraceShape *is = lookup_shape(a, t, e->shapes[i].key, &hint);
        const char *symbolic = is ? is->symbolic : NULL;
        shape_line(&lines, e->shapes[i].key, symbolic ? symbolic : e->shapes[i].text, a);
    }
    for (int i = 0; e->n_shapes == 0 && i < t->n_values && n < DEFAULT_SHAPES; i++) {
        const TraceValue *v = &t->values[i];
        bool moved = v->kind == VALUE_MOVED;
        bool forward = phase_or_forward(v->pass) == PHASE_FORWARD;
        if (moved || !forward || !v->shape.symbolic || !v->shape.name || v->layer > 0) continue;
        if (last && strcmp(last, v->shape.symbolic) == 0) continue;
        if (lookup_value(t, v->shape.name) != v) continue;
        last = v->shape.symbolic;
        shape_line(&lines, v->shape.name, last, a);
        n++;
    }
    return lines.n ? arena_printf(a, "  local_shapes:\n%s", lines.s) : NULL;
}
static void add_count(Str *line, const char *op, const char *axis, int64_t n, Arena *a) {
    const char *key = axis ? arena_printf(a, "%s(%s)", op, axis) : op;
    str_addf(line, "%s%s: %lld", line->n ? ", " : "", scalar(key, a), (long long)n);
}
static bool same_collective(const TraceCollective *c, const TraceCollective *d) {
    return c->pass && c->pass == d->pass && c->op && d->op && c->axes && d->axes &&
           strcmp(c->op, d->op) == 0 && strcmp(c->axes, d->axes) == 0;
}
/* Every kind that occurs in a phase, and those that the section said would not and that still do
 * not. */
static void phase_section(Str *line, const Plan *p, const Trace *t, Phase phase, Arena *a) {
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->pass != phase) continue;
        int count = 0, first = -1;
        for (int k = 0; k < t->n_collectives; k++) {
            if (!same_collective(c, &t->collectives[k])) continue;
            if (first < 0) first = k;
            count += collective_times(&t->collectives[k]);
        }
        if (first == i) add_count(line, c->op, c->axes, count, a);
    }
    for (int i = 0; i < p->expect.n_collectives; i++) {
        const ExpectCollective *x = &p->expect.collectives[i];
        bool occurs = false;
        if (x->count != 0 || x->phase != phase) continue;
        for (int k = 0; k < t->n_collectives && !occurs; k++) {
            const TraceCollective *c = &t->collectives[k];
            occurs = c->pass == phase && c->op && strcmp(c->op, x->op) == 0 &&
                     (!x->axis || lookup_same_axes(t, x->axis, c->axes ? c->axes : c->axis));
        }
        if (!occurs) add_count(line, x->op, x->axis, 0, a);
    }
}
static const char *collectives_text(const Plan *p, const Trace *t, Arena *a) {
    Str all = str_new(a);
    for (Phase k = PHASE_FORWARD; k <= PHASE_PARAMETERS; k++) { /* the optimizer's: not counted */
        Str line = str_new(a);
        phase_section(&line, p, t, k, a);
        if (line.n) str_addf(&all, "    %s: {%s}\n", phase_text(k), line.s);
    }
    return all.n ? arena_printf(a, "  collectives:\n%s", all.s) : NULL;
}
/* A limit: never rounded down. */
static const char *memory_text(int64_t v, Arena *a) {
    if (v % ((int64_t)1 << 30) == 0) return arena_printf(a, "%lld GiB", (long long)(v >> 30));
    if (v % (1 << 20) == 0) return arena_printf(a, "%lld MiB", (long long)(v >> 20));
    return arena_printf(a, "%lld KiB", (long long)((v + 1023) >> 10));
}
/* What the run says, key by key. A key that is not here is one that it says nothing about. */
static int section_of(const Loaded *l, SectionKey *k, Arena *a) {
    const Trace *t = l->trace;
    const Plan *p = l->report.plan;
    const char *verdict = t && t->verdict ? t->verdict : "invalid", *held = NULL, *wrong = NULL;
    bool equivalent = strcmp(verdict, "equivalent") == 0,
         different = strcmp(verdict, "different") == 0;
    int n = 0;
    if (equivalent || different)
        held = equivalent ? "  equivalent: true\n" : "  equivalent: false\n";
    if (different && t->first_wrong)
        wrong = arena_printf(a, "  first_wrong: %s\n", scalar(t->first_wrong, a));
    k[n++] = (SectionKey){"equivalent", held};
    k[n++] = (SectionKey){"first_wrong", wrong};
    k[n++] = (SectionKey){"diagnostics", codes_text(l, different, a)};
    if (held) {
        k[n++] = (SectionKey){"local_shapes", shapes_text(p, t, a)};
        k[n++] = (SectionKey){"collectives", collectives_text(p, t, a)};
    }
    if (t && p->expect.memory_per_rank >= 0 && t->n_memory) {
        int64_t peak = lookup_peak(t, NULL), limit = p->expect.memory_per_rank;
        const char *bytes = memory_text(peak > limit ? peak : limit, a);
        k[n++] = (SectionKey){"memory_per_rank", arena_printf(a, "  memory_per_rank: %s\n", bytes)};
    }
    return n;
}

/* ---- what is not the plan's doing ---- */
/* The first diagnostic that no section may hold: of files and YAML, devices and limits, or a
 * mistake in the plan's text that the section did not name. */
static const Diag *unfit(const Loaded *l) {
    for (int i = 0; i < l->d->n; i++) {
        const Diag *g = &l->d->item[i];
        bool surroundings = strchr("167", g->code[2]) != NULL;
        bool unnamed = (g->exit == 3 || g->exit >= 4) && !named(&l->report.plan->expect, g->code);
        if (g->severity == DIAG_ERROR && (surroundings || unnamed)) return g;
    }
    return NULL;
}
static bool may_update(Cli *c, const Loaded *l) {
    Loc at = {l->path, 0, 0};
    if (strcmp(l->path, "-") == 0) {
        diag_error(c->d, "E0212", diag_nowhere, "write it to a file and name that",
                   "--update-expect wants a plan in a file, not standard input");
        return false;
    }
    const Diag *g = unfit(l);
    if (!g) return true;
    if (l->exit == 0) return false; /* the section names it: it holds as it is */
    diag_error(c->d, "E0505", at,
               "mend that first; a mistake that is meant is named in `diagnostics` by hand",
               "the `expect` section is left as it is: %s is no finding about what the plan does",
               g->code);
    return false;
}
/* Is the file still what was run? */
static bool is_unchanged(Cli *c, const Loaded *l) {
    size_t n;
    const char *now = file_read(c->arena, c->d, l->path, l->n, diag_nowhere, &n);
    if (now && n == l->n && memcmp(now, l->text, n) == 0) return true;
    diag_error(c->d, "E0102", ((Loc){l->path, 0, 0}), "run it again",
               "the plan was changed while it ran: its `expect` section is left as it is");
    return false;
}
bool update_expect(Cli *c, const Loaded *l) {
    SectionKey keys[8];
    if (!may_update(c, l)) return false;
    Diags *d = diags_new(c->arena);
    const char *text =
        section_replace(c->arena, l->text, l->n, keys, section_of(l, keys, c->arena));
    /* a plan in braces, or one that could not be parsed, has no place for the section */
    Plan *p = text ? plan_parse(c->arena, d, plan_text(l->path, text)) : NULL;
    if (!p || diags_errors(d) > diags_errors(l->d) || !p->expect.set) {
        diag_error(
            c->d, "E0104", ((Loc){l->path, 0, 0}),
            "write `expect:` as a key of its own at the start of a line, and its keys below it",
            "the `expect` section of this plan cannot be rewritten");
        return false;
    }
    return is_unchanged(c, l) && file_write(c->d, l->path, text, strlen(text));
}
