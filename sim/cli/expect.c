/* Holds a run against the plan's own `expect` section, expectation by expectation. Refuses to run
 * anything: it compares what the trace and the diagnostics say with what the plan says they would.
 */
#include "cli/expect.h"
#include "cli/find.h"
#include "cli/table.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What the run is held against, and what came of it. */
typedef struct {
    const Plan *p;
    const Trace *t; /* NULL: the plan could not be understood */
    Diags *d;
    int failed;
} Hold;

static void fail(Hold *h, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void fail(Hold *h, Loc loc, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(h->d->arena, fmt, ap);
    va_end(ap);
    diag_error(h->d, "E0505", loc, NULL, "%s", text);
    h->failed++;
}
static bool verdict_is(const Trace *t, const char *verdict) {
    return t && t->verdict && strcmp(t->verdict, verdict) == 0;
}
static const char *verdict_text(const Trace *t) {
    return !t ? "not understood" : t->verdict ? t->verdict : "not run";
}

/* ---- symbolic shapes ---- */
typedef struct {
    int n_top;
    const char *top[TRACE_MAX_DIMS]; /* factors of the dim: "H", "d" */
    int n_axes;
    const char *axes[TRACE_MAX_AXES]; /* that it is divided by, resolved, outermost first */
} SymDim;

/* Factors between from and to, split at '*' or '·'. */
static void split_factors(Arena *arena, const char *from, const char *to, SymDim *out) {
    while (from < to) {
        while (from < to &&
               (isspace((unsigned char)*from) || *from == '*' || *from == '(' || *from == ')'))
            from++;
        if (to - from >= 2 && strncmp(from, "\xC2\xB7", 2) == 0) {
            from += 2;
            continue;
        }
        const char *p = from;
        while (p < to && !isspace((unsigned char)*p) && !strchr("*()\xC2", *p)) p++;
        if (p == from) {
            if (from < to) from++;
            continue;
        }
        if (out->n_top < TRACE_MAX_DIMS)
            out->top[out->n_top++] = arena_strndup(arena, from, (size_t)(p - from));
        from = p;
    }
}
static SymDim parse_dim(const Trace *t, const char *from, const char *to) {
    SymDim s = {0};
    const char *slash = memchr(from, '/', (size_t)(to - from));
    split_factors(t->arena, from, slash ? slash : to, &s);
    if (slash)
        lookup_axes(t, arena_strndup(t->arena, slash + 1, (size_t)(to - slash - 1)), false, s.axes,
                    &s.n_axes);
    return s;
}
/* "[B/dp, S/(cp*sp), D]" -> its dims; -1 if it is not such a list. */
static int parse_shape(const Trace *t, const char *text, SymDim dims[TRACE_MAX_DIMS]) {
    while (isspace((unsigned char)*text)) text++;
    const char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) end--;
    if (*text != '[' || end - text < 2 || end[-1] != ']') return -1;
    text++, end--;
    int n = 0;
    while (isspace((unsigned char)*text)) text++;
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text)), *stop = comma ? comma : end;
        if (n == TRACE_MAX_DIMS) return -1;
        dims[n++] = parse_dim(t, text, stop);
        text = comma ? comma + 1 : end;
    }
    return n;
}
static bool same_list(const char *const *a, int na, const char *const *b, int nb) {
    if (na != nb) return false;
    for (int i = 0; i < na; i++)
        if (strcmp(a[i], b[i]) != 0) return false;
    return true;
}
/* Is the dim a plain number, and that on every rank? */
static bool same_number(const TraceShape *s, int i, const SymDim *d) {
    char *end;
    if (d->n_top != 1 || d->n_axes || i >= s->nd || !s->n_local) return false;
    long long v = strtoll(d->top[0], &end, 10);
    for (int k = 0; k < s->n_local; k++)
        if (*end || s->local[k].shape[i] != v) return false;
    return true;
}
/* Dim by dim: in letters, or a number that every rank has. */
static bool same_shape(const Trace *t, const TraceShape *s, const char *text) {
    SymDim x[TRACE_MAX_DIMS], y[TRACE_MAX_DIMS];
    int nx = parse_shape(t, s->symbolic, x), ny = parse_shape(t, text, y);
    if (nx < 0 || nx != ny) return false;
    for (int i = 0; i < nx; i++)
        if ((!same_list(x[i].top, x[i].n_top, y[i].top, y[i].n_top) ||
             !same_list(x[i].axes, x[i].n_axes, y[i].axes, y[i].n_axes)) &&
            !same_number(s, i, &y[i]))
            return false;
    return true;
}
/* "[B, S/tp, D]", and where numbers were expected those too: " = [2, 8, 256] on ranks 0-3". */
static const char *shape_found(const Hold *h, const TraceShape *s, const char *expected) {
    Arena *a = h->d->arena;
    if (!s->symbolic) return "without a shape";
    if (!expected[strcspn(expected, "0123456789")] || !s->n_local) return s->symbolic;
    Str out = str_new(a);
    str_add(&out, s->symbolic);
    for (int k = 0; k < s->n_local && k < 4; k++)
        str_addf(&out, "%s%s on %s", k ? ", " : " = ", cell_shape(a, s->local[k].shape, s->nd).text,
                 rankset_words(&s->local[k].ranks, a));
    return out.s;
}
static void hold_shapes(Hold *h) {
    const Expect *e = &h->p->expect;
    for (int i = 0; i < e->n_shapes; i++) {
        const PlanPair *s = &e->shapes[i];
        const char *hint;
        const TraceShape *is = lookup_shape(h->d->arena, h->t, s->key, &hint);
        if (!is) {
            diag_error(h->d, "E0505", s->loc, hint, "no value or parameter is called '%s'", s->key);
            h->failed++;
        } else if (!is->symbolic || !same_shape(h->t, is, s->text))
            fail(h, s->value_loc, "%s is %s, not %s", s->key, shape_found(h, is, s->text), s->text);
    }
}

/* ---- the other expectations ---- */
static void hold_collectives(Hold *h) {
    const Expect *e = &h->p->expect;
    for (int i = 0; i < e->n_collectives; i++) {
        const ExpectCollective *x = &e->collectives[i];
        int64_t n = 0;
        for (int k = 0; k < h->t->n_collectives; k++) {
            const TraceCollective *c = &h->t->collectives[k];
            bool phase = c->pass == x->phase, op = c->op && strcmp(c->op, x->op) == 0;
            const char *axes = c->axes ? c->axes : c->axis;
            if (phase && op && (!x->axis || lookup_same_axes(h->t, x->axis, axes)))
                n += collective_times(c);
        }
        if (n != x->count)
            fail(h, x->loc, "%s: %lld %s%s%s%s, not %lld", phase_text(x->phase), (long long)n,
                 x->op, x->axis ? "(" : "", x->axis ? x->axis : "", x->axis ? ")" : "",
                 (long long)x->count);
    }
}
static void hold_memory(Hold *h) {
    const Expect *e = &h->p->expect;
    int64_t peak = e->memory_per_rank >= 0 ? lookup_peak(h->t, NULL) : 0;
    if (peak > e->memory_per_rank && e->memory_per_rank >= 0)
        fail(h, e->memory_loc, "a rank needs %s, more than %s", bytes_text(peak, h->d->arena),
             bytes_text(e->memory_per_rank, h->d->arena));
}
static void hold_first_wrong(Hold *h) {
    const Expect *e = &h->p->expect;
    if (!e->first_wrong) return;
    const char *is = h->t ? h->t->first_wrong : NULL;
    const char *hint = NULL;
    const TraceShape *s = h->t ? lookup_shape(h->d->arena, h->t, e->first_wrong, &hint) : NULL;
    bool same = is && (strcmp(is, e->first_wrong) == 0 || (s && strcmp(s->name, is) == 0));
    if (!same) {
        diag_error(h->d, "E0505", e->first_wrong_loc, hint, "the first wrong value is %s, not %s",
                   is ? is : "none", e->first_wrong);
        h->failed++;
    }
}
static bool listed(const Expect *e, const char *code) {
    for (int i = 0; i < e->n_diagnostics; i++)
        if (strcmp(e->diagnostics[i], code) == 0) return true;
    return false;
}
/* Exactly the listed codes occur among errors and warnings. That values differ is said by
 * `equivalent` and needs no code; notes count only if they are listed. */
static void hold_diagnostics(Hold *h) {
    const Expect *e = &h->p->expect;
    if (!e->has_diagnostics) return;
    int n = h->d->n;
    for (int i = 0; i < e->n_diagnostics; i++) {
        bool found = false;
        for (int k = 0; k < n; k++)
            found = found || strcmp(h->d->item[k].code, e->diagnostics[i]) == 0;
        if (!found)
            fail(h, e->diagnostics_loc, "%s was expected and did not come", e->diagnostics[i]);
    }
    for (int k = 0; k < n; k++) {
        const Diag *g = &h->d->item[k];
        bool values = strcmp(g->code, "E0501") == 0 && (e->equivalent == 0 || e->first_wrong);
        bool first = true;
        for (int j = 0; j < k; j++) first = first && strcmp(h->d->item[j].code, g->code) != 0;
        if (g->severity != DIAG_NOTE && first && !values && !listed(e, g->code))
            fail(h, e->diagnostics_loc, "%s came and is not in `diagnostics`", g->code);
    }
}
static void hold_verdict(Hold *h) {
    const Expect *e = &h->p->expect;
    if (e->equivalent == 1 && !verdict_is(h->t, "equivalent"))
        fail(h, e->equivalent_loc, "the plan is %s, not equivalent", verdict_text(h->t));
    if (e->equivalent == 0 && !verdict_is(h->t, "different"))
        fail(h, e->equivalent_loc, "the plan is %s; it was expected to give other values",
             verdict_text(h->t));
}
/* An error that says nothing of the plan's values: a file that cannot be read, one of --against
 * that differs. Who expects wrong values does not expect it, unless its code is listed. */
static bool says_something_else(const Hold *h) {
    for (int i = 0; i < h->d->n; i++) {
        const Diag *g = &h->d->item[i];
        bool values = strcmp(g->code, "E0501") == 0 ||
                      (strcmp(g->code, "E0504") == 0 && verdict_is(h->t, "different"));
        if (g->severity == DIAG_ERROR && !values && !listed(&h->p->expect, g->code)) return true;
    }
    return false;
}
/* The listed errors explain a plan that was refused; values that differ want `equivalent: false`.
 * A listed note or warning refuses nothing: --strict fails a suspect value all the same. */
static bool refused_as_listed(const Hold *h) {
    if (verdict_is(h->t, "different")) return false;
    for (int i = 0; i < h->d->n; i++)
        if (h->d->item[i].severity == DIAG_ERROR && listed(&h->p->expect, h->d->item[i].code))
            return true;
    return false;
}

int expect_check(const Plan *p, const Trace *t, Diags *d, int exit_before) {
    const Expect *e = &p->expect;
    if (!e->set) return exit_before;
    Hold h = {p, t, d, 0};
    hold_diagnostics(&h); /* first: the failures below are diagnostics too */
    /* the machine failed, not the plan */
    bool machine = exit_before != 0 && exit_before != 1 && exit_before != 3;
    /* a run that did not come to a verdict has said why: that it is not equivalent either is no
     * news */
    bool told = machine || (exit_before != 0 && (!t || !t->verdict));
    /* check --static: values are not looked at, what is expected of them cannot be held */
    bool values = !t || t->executed || t->verdict || !t->n_checks;
    /* an invalid plan's shapes and collectives are what the broken rule makes of them; who expects
     * the diagnostic may expect these too */
    bool broken = verdict_is(t, "invalid") && exit_before && !e->has_diagnostics;
    if (!told && values && !(broken && e->equivalent == 1)) {
        hold_verdict(&h);
        hold_first_wrong(&h);
    }
    if (t && !told && !broken) {
        hold_shapes(&h);
        hold_collectives(&h);
        hold_memory(&h);
    }
    /* no expectation can make that good, unless it lists just this limit */
    if (machine) return exit_before == 5 && !h.failed && e->n_diagnostics > 0 ? 0 : exit_before;
    if (h.failed) return exit_before == 3 && !e->has_diagnostics ? 3 : 1;
    bool wrong_on_purpose =
        e->equivalent == 0 || e->first_wrong || (e->has_diagnostics && listed(e, "E0501"));
    if (wrong_on_purpose && (!values || verdict_is(t, "different")))
        return says_something_else(&h) ? exit_before : 0;
    return refused_as_listed(&h) ? 0 : exit_before;
}

/* What may be the reason of values that differ: a structure that is wrong, a mean of means. A
 * mistake that changes nothing, a line that matches nothing, a file that was not closed are none.
 */
static bool is_reason(const Diag *g) {
    static const char *const reasons[] = {"W0401", "W0402"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (g->severity == DIAG_WARNING && !strcmp(g->code, reasons[i])) return true;
    return false;
}
bool expect_means(const Plan *p, const Diag *g) {
    const Expect *e = &p->expect;
    bool means = is_reason(g) && (e->equivalent == 0 || e->first_wrong);
    for (int k = 0; k < e->n_diagnostics; k++)
        means = means || strcmp(e->diagnostics[k], g->code) == 0;
    return means;
}
