/* Facts and words of a routing. See routing.h. */
#include "render/routing/routing.h"
#include "base/text.h"
#include "trace/trace_rows.h"
#include "trace/collectives.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int layer_of(const char *value) {
    int layer;
    return value && words_in_layer(value, &layer) ? layer : -1;
}

/* The record of the list that a step left; before it, the last one of that list. */
static const TraceRouted *routed_at(const Trace *t, const char *value, int step, bool before) {
    const TraceRouted *best = NULL;
    for (int i = 0; i < t->n_routed; i++) {
        const TraceRouted *k = &t->routed[i];
        if (!k->value || strcmp(k->value, value)) continue;
        if (k->experts <= 0 || k->n_rows != t->ranks * k->experts) continue;
        if (before ? k->step < step && (!best || k->step > best->step) : k->step == step) best = k;
    }
    return best;
}

static const TraceCollective *exchange_of(const Trace *t, int layer) {
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!coll_is_pairs(c->op) || !c->value) continue;
        if (layer >= 0 && layer_of(c->value) != layer) continue;
        if (routed_at(t, c->value, c->step, false)) return c;
    }
    return NULL;
}

static const double *part_of(const Routing *r, const TraceRouted *k) {
    double *part = ARENA_ARRAY(r->a, double, r->n * r->experts + 1);
    for (int64_t i = 0; i < r->n; i++)
        memcpy(part + i * r->experts, k->rows + r->rank[i] * r->experts,
               sizeof *part * (size_t)r->experts);
    return part;
}

/* False if two members have rows of one expert: then nobody knows from whom to whom. */
static bool find_homes(Routing *r) {
    int64_t *home = ARENA_ARRAY(r->a, int64_t, r->experts + 1);
    for (int64_t e = 0; e < r->experts; e++) {
        home[e] = -1;
        for (int64_t i = 0; i < r->n; i++) {
            if (r->got[i * r->experts + e] <= 0) continue;
            if (home[e] >= 0) return false;
            home[e] = i;
        }
    }
    r->home = home;
    return true;
}

static void add_up(Routing *r) {
    r->sent = ARENA_ARRAY(r->a, double, r->n * r->n + 1);
    r->out = ARENA_ARRAY(r->a, double, r->n + 1);
    r->in = ARENA_ARRAY(r->a, double, r->n + 1);
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t e = 0; e < r->experts; e++) {
            double rows = r->made[i * r->experts + e];
            int64_t to = r->home[e];
            r->out[i] += rows, r->rows += rows;
            r->in[i] += r->got[i * r->experts + e];
            if (to < 0) continue;
            r->sent[i * r->n + to] += rows;
            r->moved += to != i ? rows : 0;
        }
    r->lost = r->rows;
    for (int64_t i = 0; i < r->n; i++) {
        r->lost -= r->in[i];
        if (r->in[i] > r->in[r->busiest]) r->busiest = i;
    }
}

/* Bytes of a row: the exchange that follows the list's moves rows of so many bytes. */
static double row_bytes(const Routing *r) {
    const Trace *t = r->c->t;
    const char *dot = strrchr(r->coll->value, '.');
    size_t head = dot ? (size_t)(dot - r->coll->value) : 0;
    for (int i = 0; i < t->n_values; i++) {
        const TraceShape *s = &t->values[i].shape;
        const TraceLocal *l = words_find_local(s, r->rank[0]);
        bool same = s->name && !strncmp(s->name, r->coll->value, head) && s->name[head] == '.';
        if (same && t->values[i].step > r->coll->step && l && s->nd == 2 && l->shape[0] > 0)
            return (double)l->bytes / (double)l->shape[0];
    }
    return 0;
}

/* What a capacity left out before anything was sent. */
static void find_dropped(Routing *r) {
    int n;
    const TraceDispatch *d = trace_dispatches(r->c->t, r->a, &n);
    while (n > 0 && d->layer != r->layer) d++, n--;
    if (!n || d->asked <= d->kept || d->experts != r->experts) return;
    r->asked = d->asked;
    r->dropped = d->asked - d->kept;
    if (groups_count(&r->coll->groups) > 1) return;
    double *full = ARENA_ARRAY(r->a, double, r->experts + 1);
    for (int64_t e = 0; e < r->experts; e++) full[e] = d->wanted[e] - d->by_expert[e];
    r->full = full;
}

static bool nothing(const ViewCall *c, const char *why, const char *help) {
    diag_error(c->d, "E0211", diag_nowhere, help, "nothing to draw in view 'routing': %s", why);
    return false;
}

bool routing_read(Routing *r, const ViewCall *c) {
    const Trace *t = c->t;
    *r = (Routing){.c = c, .a = c->arena, .layer = c->o->layer};
    if (!t->n_routed && t->executed)
        return nothing(c, "the trace says nothing of rows and experts",
                       "draw the plan of a model with experts");
    if (!t->n_routed)
        return nothing(c, "nothing was run, and only a run knows which rows go where",
                       "draw the plan of a model with experts itself; where it is too large to "
                       "run, set `model.shrink`, or a smaller batch or sequence");
    r->coll = exchange_of(t, r->layer);
    if (!r->coll)
        return nothing(c, "no all-to-all brings rows to experts here",
                       "every rank computes the rows of the experts that it has: see `comms`");
    const TraceRouted *from = routed_at(t, r->coll->value, r->coll->step, true),
                      *to = routed_at(t, r->coll->value, r->coll->step, false);
    int64_t own = c->o->rank >= 0 && c->o->rank < t->ranks ? c->o->rank : 0,
            group = words_group_of(&r->coll->groups, own);
    if (!from || from->experts != to->experts)
        return nothing(c, "the trace lacks the rows before the all-to-all",
                       "draw the plan itself: it is run for this view");
    r->layer = layer_of(r->coll->value);
    r->n = groups_size(&r->coll->groups);
    r->experts = to->experts;
    int64_t *rank = ARENA_ARRAY(r->a, int64_t, r->n + 1);
    for (int64_t i = 0; i < r->n; i++)
        rank[i] = groups_member(&r->coll->groups, group < 0 ? 0 : group, i);
    r->rank = rank;
    r->made = part_of(r, from), r->got = part_of(r, to);
    if (!find_homes(r))
        return nothing(c, "rows of one expert go to several ranks of the group",
                       "`comms` has what is sent");
    add_up(r);
    find_dropped(r);
    r->bytes = row_bytes(r);
    return true;
}

/* ---- words ---- */

const char *routing_rows(Arena *arena, double n) {
    return arena_printf(arena, "%.0f row%s", n, n == 1 ? "" : "s");
}
/* ", rank 2 gets 1.25 × its share": who receives most decides how long all wait; "": nobody does.
 */
static const char *receives_most(const Routing *r) {
    const double peak = r->in[r->busiest], mean = (r->rows - r->lost) / (double)r->n;
    if (!(mean > 0) || peak <= mean) return "";
    return arena_printf(r->a, ", rank %lld gets %.2f × its share", (long long)r->rank[r->busiest],
                        peak / mean);
}
const char *routing_title(const Routing *r) {
    const long long groups = (long long)groups_count(&r->coll->groups);
    if (groups > 1) /* the other ranks have experts, too: those of its own are not all */
        return arena_printf(r->a, "MoE dispatch in one of %lld groups of %s: %s to %lld experts%s",
                            groups, words_axis_list(r->a, r->c->t, r->coll->axis),
                            routing_rows(r->a, r->rows), (long long)r->experts, receives_most(r));
    return arena_printf(r->a, "MoE dispatch: %s to %lld experts on %lld ranks%s",
                        routing_rows(r->a, r->rows), (long long)r->experts, (long long)r->n,
                        receives_most(r));
}

/* What brings the rows received to all ranks that share an expert; NULL: nobody does. */
static const TraceCollective *shared_by(const Routing *r) {
    const Trace *t = r->c->t;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->step > r->coll->step && text_same(c->value, r->coll->value) &&
            text_same(c->op, "all_gather"))
            return c;
    }
    return NULL;
}

double routing_expert(const Routing *r, int64_t expert) {
    double rows = 0;
    for (int64_t i = 0; i < r->n; i++) rows += r->got[i * r->experts + expert];
    return rows;
}

typedef struct {
    double rows;
    int64_t expert;
} Hot;
static int by_rows(const void *x, const void *y) {
    const Hot *a = x, *b = y;
    if (a->rows != b->rows) return a->rows > b->rows ? -1 : 1;
    return a->expert < b->expert ? -1 : 1;
}
const int64_t *routing_hottest(const Routing *r) {
    Hot *hot = ARENA_ARRAY(r->a, Hot, r->experts + 1);
    int64_t *order = ARENA_ARRAY(r->a, int64_t, r->experts + 1);
    for (int64_t e = 0; e < r->experts; e++) hot[e] = (Hot){routing_expert(r, e), e};
    qsort(hot, (size_t)r->experts, sizeof *hot, by_rows);
    for (int64_t e = 0; e < r->experts; e++) order[e] = hot[e].expert;
    return order;
}

int routing_load(const Routing *r, const char **name, const char **text) {
    double peak = r->in[r->busiest], mean = (r->rows - r->lost) / (double)r->n;
    int n = 0;
    name[n] = "received",
    text[n++] = arena_printf(r->a, "peak %.0f, mean %.*f", peak, mean == floor(mean) ? 0 : 1, mean);
    name[n] = "peak / mean",
    text[n++] = peak == mean ? "1: all ranks receive as many"
                : mean > 0
                    ? arena_printf(r->a, "%.2f of what they receive: the step waits for rank %lld",
                                   peak / mean, (long long)r->rank[r->busiest])
                    : "nobody receives a row";
    name[n] = "on the network",
    text[n++] = arena_printf(r->a, "%.0f of %s%s%s", r->moved, routing_rows(r->a, r->rows),
                             r->bytes > 0 ? ", " : "",
                             r->bytes > 0 ? bytes_text((int64_t)(r->moved * r->bytes), r->a) : "");
    if (r->dropped > 0)
        name[n] = "over capacity",
        text[n++] = arena_printf(r->a, "%.0f of %s asked for %s dropped", r->dropped,
                                 routing_rows(r->a, r->asked), r->dropped == 1 ? "is" : "are");
    if (r->lost != 0)
        name[n] = "lost",
        text[n++] = arena_printf(r->a, "%s asked for %s not there", routing_rows(r->a, r->lost),
                                 r->lost == 1 ? "is" : "are");
    return n;
}

const char *routing_foot(const Routing *r) {
    Str s = str_new(r->a);
    str_add(&s, "One row = one token for one expert");
    if (r->bytes > 0) str_addf(&s, ", %s", bytes_text((int64_t)r->bytes, r->a));
    str_addf(&s,
             ". Rows of the run (step %d, %s over %s); counted from the lists that the ranks hold. "
             "Combine is the same exchange with the matrix transposed.",
             r->coll->step, r->coll->value, words_axis_list(r->a, r->c->t, r->coll->axis));
    const TraceCollective *shared = shared_by(r);
    if (shared)
        str_addf(&s, " %s over %s follows: a rank goes on with what %lld ranks received.",
                 coll_word(shared->op)->name, words_axis_list(r->a, r->c->t, shared->axis),
                 (long long)groups_size(&shared->groups));
    int64_t others = groups_count(&r->coll->groups) - 1;
    if (others > 0)
        str_addf(&s, " %lld more group%s of %lld ranks: --rank.", (long long)others,
                 others == 1 ? "" : "s", (long long)r->n);
    return s.s;
}
