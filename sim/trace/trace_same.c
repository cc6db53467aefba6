/* Two traces, record by record. See trace_same.h. */
#include "trace/trace_same.h"
#include "base/text.h"
#include <string.h>

static const char *or_empty(const char *s) { return s ? s : ""; }
/* The worse of two verdicts of checks. */
static const char *worse(const char *a, const char *b) {
    static const char *const order[] = {"FAIL", "SUSPECT"};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (!strcmp(or_empty(a), order[i]) || !strcmp(or_empty(b), order[i])) return order[i];
    return a;
}
static bool same_subject(const TraceCheck *a, const TraceCheck *b) {
    return a->step == b->step && a->pass == b->pass &&
           !strcmp(or_empty(a->value), or_empty(b->value));
}
/* One for each value that is held: what both levels say of it, without magnitudes. */
static void join_checks(Trace *t, Arena *a) {
    TraceCheck *out = ARENA_ARRAY(a, TraceCheck, t->n_checks + 1);
    int n = 0;
    for (int i = 0; i < t->n_checks; i++) {
        TraceCheck c = t->checks[i];
        TraceCheck *last =
            n && i && same_subject(&t->checks[i - 1], &c) && t->checks[i - 1].level != c.level
                ? &out[n - 1]
                : NULL;
        c.max_abs = c.max_rel = c.bound = c.used = c.notice = c.got = c.want = 0;
        c.n_terms = 0; /* what was summed, in its own digits */
        c.level = LEVEL_BOUND;
        c.projections = 0;
        for (int k = 0; k < c.n_rank_error; k++) {
            if (!k)
                c.rank_error =
                    arena_memdup(a, c.rank_error, sizeof *c.rank_error * (size_t)c.n_rank_error);
            c.rank_error[k].error = 0;
        }
        if (!last) out[n++] = c;
        else {
            const char *verdict = worse(last->verdict, c.verdict);
            if (c.n_rank_error && !last->n_rank_error) *last = c;
            last->verdict = verdict;
        }
    }
    t->checks = out;
    t->n_checks = n;
}
/* A copy of n records that may be changed. */
static void *copy_of(Arena *a, const void *p, int n, size_t size) {
    char *to = arena_alloc(a, ((size_t)n + 1) * size);
    if (n) memcpy(to, p, (size_t)n * size);
    return to;
}
#define COPY(array, n) (array) = copy_of(a, array, n, sizeof *(array))
static void drop_numbers(Trace *t, Arena *a) {
    COPY(t->values, t->n_values);
    for (int i = 0; i < t->n_values; i++) t->values[i].n_numbers = 0;
    COPY(t->samples, t->n_samples);
    for (int i = 0; i < t->n_samples; i++) {
        TraceSample *k = &t->samples[i];
        k->n_before = k->n_after = k->n_whole = k->n_made = 0;
    }
    COPY(t->routed, t->n_routed);
    for (int i = 0; i < t->n_routed; i++) t->routed[i].n_weights = t->routed[i].n_scores = 0;
    COPY(t->ties, t->n_ties);
    for (int i = 0; i < t->n_ties; i++) t->ties[i].gap = t->ties[i].bound = 0;
    COPY(t->against, t->n_against);
    for (int i = 0; i < t->n_against; i++) t->against[i].max_abs = t->against[i].max_rel = 0;
    t->n_distances = 0;         /* all of them numbers; processes have none */
    COPY(t->diags, t->n_diags); /* their texts have numbers in them */
    for (int i = 0; i < t->n_diags; i++) t->diags[i].message = t->diags[i].hint = "";
}
/* The verdict of what is left: how many values, not how many records. */
static void count_checks(Trace *t) {
    t->n_pass = t->n_suspect = t->n_fail = 0;
    for (int i = 0; i < t->n_checks; i++) {
        const char *v = or_empty(t->checks[i].verdict);
        *(!strcmp(v, "FAIL")      ? &t->n_fail
          : !strcmp(v, "SUSPECT") ? &t->n_suspect
                                  : &t->n_pass) += 1;
    }
    t->worst_value = t->end_to_end = NULL;
    t->worst_used = 0;
}
static const char *text_of(const Trace *t, bool magnitudes, Arena *a) {
    Trace x = *t;
    size_t n;
    if (!magnitudes) {
        x.backend = NULL;
        join_checks(&x, a);
        drop_numbers(&x, a);
        count_checks(&x);
    }
    return trace_text(&x, a, false, &n);
}
/* The line at *s, which moves on; NULL: there is none. */
static const char *next_line(const char **s, Arena *a) {
    const char *end = strchr(*s, '\n');
    size_t n = end ? (size_t)(end - *s) : strlen(*s);
    if (!n) return NULL;
    const char *line = arena_strndup(a, *s, n);
    *s += n + (end != NULL);
    return line;
}
TraceApart trace_apart(const Trace *a, const Trace *b, Arena *arena) {
    TraceApart r = {.backends = strcmp(or_empty(a->backend), or_empty(b->backend)) != 0};
    const char *x = text_of(a, !r.backends, arena), *y = text_of(b, !r.backends, arena);
    for (;;) {
        const char *p = next_line(&x, arena), *q = next_line(&y, arena);
        if (!p && !q) return r;
        if (p && q && !strcmp(p, q)) continue;
        if (!r.n++) r.a = p, r.b = q;
    }
}
