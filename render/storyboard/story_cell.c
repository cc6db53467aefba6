/* What one cell of a storyboard holds, in words. See story.h. */
#include "render/storyboard/story.h"
#include "trace/trace_rows.h"
#include <math.h>

/* The index list of the rows that a collective takes, and that of the rows it makes; NULL: the
 * trace does not name their tokens. */
static const TraceRouted *list_of(const Story *s, int step) {
    const TraceValue *v = trace_value(s->c->t, s->value, step);
    const TraceRouted *k = v && v->list >= 0 ? trace_routed(s->c->t, v->list) : NULL;
    return routed_named(k) ? k : NULL;
}
static bool has_row(const TraceRouted *k, int64_t rank, const RoutedRow *row) {
    RoutedRow x;
    for (RoutedWalk w = routed_walk(k, rank); routed_next(&w, &x);)
        if (x.token == row->token && x.expert == row->expert) return true;
    return false;
}
/* ": tokens 1 9 for expert 2, 1 9 for expert 3" of the rows that go from one rank to another. */
static void add_tokens(Str *t, const Story *s, int64_t from, int64_t to) {
    const TraceRouted *had = list_of(s, s->coll->value_step), *has = list_of(s, s->step);
    RoutedRow row;
    int64_t last = -1;
    if (!had || !has) return;
    for (RoutedWalk w = routed_walk(had, from); routed_next(&w, &row);) {
        if (!has_row(has, to, &row)) continue;
        if (row.expert != last)
            str_addf(t, "%s E%lld:", last < 0 ? "; tokens of" : ",", (long long)row.expert);
        str_addf(t, " %lld", (long long)row.token);
        last = row.expert;
    }
}

const char *story_cell(const Story *s, const RingCell *c, int chunk) {
    Str t = str_new(s->a);
    RingKind kind = s->ring.kind;
    bool number = s->sample && !isnan(c->value);
    if (s->rows) str_addf(&t, "%.0f row%s", c->value, c->value == 1 ? "" : "s");
    else if (number) str_addf(&t, "%.9g", c->value);
    else str_addf(&t, "chunk %d", s->ring.shown[chunk]);
    if (kind == RING_EXCHANGE) {
        int64_t from = story_rank(s, c->first), to = story_rank(s, c->to);
        str_addf(&t, " of rank %lld for rank %lld", (long long)from, (long long)to);
        if (s->rows) add_tokens(&t, s, from, to);
    } else if (kind == RING_SCATTER || kind == RING_REDUCE) {
        str_addf(&t, ": %s of rank%s %s",
                 c->terms == 1 ? "the term"
                 : s->ring.max ? "maximum"
                               : "sum",
                 c->terms == 1 ? "" : "s", story_terms(s, c, false));
    }
    if (c->astray) str_add(&t, "; not what is due here");
    else if (c->done) str_add(&t, c->fresh ? "; just arrived" : "; in its place");
    else if (c->stale) str_add(&t, "; not needed any more");
    else if (c->sends) str_add(&t, "; sent in the next step");
    return t.s;
}
