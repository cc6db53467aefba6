/* Sums of gradients that no line of the plan declares, and moves that none asks for, in words:
 * what a verdict of "equivalent" rests on. Refuses to judge: the notes (N0008, N0001) say which
 * line is missing. */
#include "cli/cli.h"
#include <string.h>

bool undeclared_collective(const Trace *t, const TraceCollective *c) {
    bool listed = false;
    for (int i = 0; i < t->n_undeclared && !listed; i++)
        listed = c->value && strcmp(t->undeclared[i], c->value) == 0;
    return listed && c->inferred && c->reduce;
}
/* "these 3 gradients over tp: a, b, c": those over `axes`, at most `names` of them by name. */
static void over_axes(const Trace *t, const char *axes, int names, Str *s) {
    int n = 0, told = 0;
    for (int i = 0; i < t->n_collectives; i++)
        n += undeclared_collective(t, &t->collectives[i]) && !strcmp(t->collectives[i].axes, axes);
    if (names && n == 1) str_addf(s, "this gradient over %s", axes);
    else str_addf(s, "%s%d gradient%s over %s", names ? "these " : "", n, n == 1 ? "" : "s", axes);
    for (int i = 0; i < t->n_collectives && told < names; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!undeclared_collective(t, c) || strcmp(c->axes, axes)) continue;
        str_addf(s, "%s%s", told++ ? ", " : ": ", c->value);
    }
    if (names && n > told) str_addf(s, " and %d more", n - told);
}
/* "makes these 2 moves: slice of a, all_gather of b", at most `names` of them by name. */
static void moves(const Trace *t, int names, Str *s) {
    int n = t->n_unasked;
    if (names && n == 1) str_add(s, "makes this move");
    else str_addf(s, "makes %s%d move%s", names ? "these " : "", n, n == 1 ? "" : "s");
    for (int i = 0; i < n && i < names; i++) str_addf(s, "%s%s", i ? ", " : ": ", t->unasked[i]);
    if (names && n > names) str_addf(s, " and %d more", n - names);
}
const char *undeclared_text(const Trace *t, int names, Arena *arena) {
    Str s = str_new(arena);
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        bool first = undeclared_collective(t, c);
        for (int k = 0; k < i && first; k++)
            first = !undeclared_collective(t, &t->collectives[k]) ||
                    strcmp(t->collectives[k].axes, c->axes);
        if (!first) continue;
        if (s.n) str_add(&s, names ? "; and " : " and ");
        over_axes(t, c->axes, names, &s);
    }
    if (!s.n && !t->n_unasked) return NULL;
    Str all = str_new(arena);
    if (s.n) str_addf(&all, "sums %s%s", s.s, !t->n_unasked ? "" : names ? "; and " : " and ");
    if (t->n_unasked) moves(t, names, &all);
    if (!names) return arena_printf(arena, "if somebody %s (no line of the plan does)", all.s);
    return arena_printf(arena, "if somebody %s, no line of the plan does",
                        table_clean(all.s, 0, arena));
}
