/* Sums of gradients that no line of the plan declares, in words: what a verdict of "equivalent"
 * rests on. Refuses to judge: the notes (N0008) say which line is missing. */
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
    str_addf(s, "%s%d gradient%s over %s", names ? n == 1 ? "this " : "these " : "", n,
             n == 1 ? "" : "s", axes);
    for (int i = 0; i < t->n_collectives && told < names; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!undeclared_collective(t, c) || strcmp(c->axes, axes)) continue;
        str_addf(s, "%s%s", told++ ? ", " : ": ", c->value);
    }
    if (names && n > told) str_addf(s, " and %d more", n - told);
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
    if (!s.n) return NULL;
    if (!names) return arena_printf(arena, "if somebody sums %s (no line of the plan does)", s.s);
    return arena_printf(arena, "if somebody sums %s, no line of the plan does",
                        table_clean(s.s, 0, arena));
}
