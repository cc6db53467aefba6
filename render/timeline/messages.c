/* Messages between stages. See messages.h. */
#include "render/timeline/messages.h"
#include <math.h>
#include <string.h>

enum { HEAD = 24, ROW = 24, BELOW = 12, MOST_WAYS = 8 };

/* ---- reading ---- */

/* How long the rank takes to send it; *e: the event. */
static double sends_for(const Trace *t, const TraceCollective *c, int64_t rank,
                        const TraceEvent **e) {
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *x = &t->events[i];
        if (x->step != c->step || trace_is_compute(x) || !rankset_has(&x->ranks, rank)) continue;
        *e = x;
        return x->end - x->start - x->wait;
    }
    return 0;
}
/* From one coordinate of the pipeline to another. */
typedef struct {
    int from, to;
} Way;
typedef struct {
    Way *way;
    int n, cap;
} Ways;
static void add_way(Ways *w, Way way, Arena *a) {
    for (int i = 0; i < w->n; i++)
        if (w->way[i].from == way.from && w->way[i].to == way.to) return;
    *ARENA_PUSH(a, w->way, w->n, w->cap) = way;
}
/* Adds those of a record's pairs; returns a rank that sends it, -1: there is none. */
static int64_t add_pairs(const Trace *t, const TraceCollective *c, Ways *to, Arena *a) {
    int64_t sender = -1;
    for (int64_t g = 0; g < groups_count(&c->groups); g++) {
        int64_t one = groups_member(&c->groups, g, 0), two = groups_member(&c->groups, g, 1);
        if (collective_on(c, one).bytes_sent <= 0) {
            const int64_t other = one;
            one = two, two = other;
        }
        if (sender < 0) sender = one;
        add_way(to, (Way){trace_pipe_coord(t, one), trace_pipe_coord(t, two)}, a);
    }
    return sender;
}
/* Each goes on where the one before it ends? */
static bool in_chain(const Ways *w) {
    bool chain = true;
    for (int i = 1; i < w->n; i++)
        chain &= w->way[i].from == w->way[i - 1].to && w->way[i].to != w->way[i - 1].from;
    return chain;
}
/* "pp 0 → 1, 1 → 0", of a long chain "pp 0 → 1 to 14 → 15"; `most` of them by name. */
static const char *ways_text(const Ways *w, int most, const char *axis, Arena *a) {
    enum { FEW = 3 };
    const Way *last = &w->way[w->n - 1];
    Str s = str_new(a);
    if (w->n > FEW && in_chain(w))
        return arena_printf(a, "%s %d → %d to %d → %d", axis, w->way->from, w->way->to, last->from,
                            last->to);
    for (int i = 0; i < w->n && i < most; i++)
        str_addf(&s, "%s%s%d → %d", i ? "" : axis, i ? ", " : " ", w->way[i].from, w->way[i].to);
    if (w->n > most) str_addf(&s, " and %d more way%s", w->n - most, w->n - most == 1 ? "" : "s");
    return s.s;
}
static bool row_like(const MessageRow *x, const MessageRow *y) {
    return x->pass == y->pass && x->bytes == y->bytes && fabs(x->took - y->took) <= 1e-6 * x->took;
}
int messages_read(const ViewCall *c, MessageRow **out) {
    const Trace *t = c->t;
    Arena *a = c->arena;
    MessageRow *row = ARENA_ARRAY(a, MessageRow, t->n_collectives + 1);
    Ways *ways = ARENA_ARRAY(a, Ways, t->n_collectives + 1);
    int n = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *x = &t->collectives[i];
        if (strcmp(x->op, "send") != 0) continue;
        Ways own = {0};
        const int64_t sender = add_pairs(t, x, &own, a);
        if (sender < 0) continue;
        MessageRow one = {.pass = phase_or_forward(x->pass), .value = x->value};
        one.bytes = collective_on(x, sender).bytes_sent;
        one.took = sends_for(t, x, sender, &one.e);
        if (!one.e) continue;
        int k = 0;
        while (k < n && !row_like(&row[k], &one)) k++;
        if (k == n) row[n++] = one;
        else row[k].value = arena_printf(a, "%s, %s", row[k].value, x->value);
        row[k].times += collective_per_step(x);
        for (int w = 0; w < own.n; w++) add_way(&ways[k], own.way[w], a);
    }
    for (int k = 0; k < n; k++) {
        row[k].way = ways_text(&ways[k], MOST_WAYS, t->schedule_axis, a);
        row[k].brief = ways_text(&ways[k], 1, t->schedule_axis, a);
    }
    *out = row;
    return n;
}

/* ---- drawing ---- */

const char *messages_count(const MessageRow *row, int n, Arena *a) {
    int times = 0;
    for (int i = 0; i < n; i++) times += row[i].times;
    return arena_printf(a, "%d in the step; a stage that waits for one is idle", times);
}
const char *messages_text(const MessageRow *row, bool brief, Arena *a) {
    return arena_printf(a, "%s, %s each, %d in the step: %s", time_text(row->took, a),
                        bytes_text(row->bytes, a), row->times, brief ? row->brief : row->way);
}
double messages_height(int n) { return n ? HEAD + n * ROW + BELOW : 0; }
double messages_draw(const MessageRow *row, int n, TimePen *p, Pt at) {
    Arena *a = p->c->arena;
    const double h = p->look->comm;
    double longest = 0, y = at.y;
    if (!n) return y;
    for (int i = 0; i < n; i++) longest = fmax(longest, row[i].took);
    const double scale = fmin(p->scale, 0.5 * p->width / longest);
    const char *own = p->times && scale >= p->scale ? "" : " · bars at a scale of their own";
    scene_begin(p->s, "messages", "messages", NULL);
    const double w = scene_text(p->s, at.x, y + 15, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK},
                                "Messages between stages");
    scene_text(p->s, at.x + w + 12, y + 15, (TextLook){ALIGN_LEFT, 13, REGULAR, ROLE_SECOND},
               arena_printf(a, "%s%s", messages_count(row, n, a), own));
    y += HEAD;
    for (int i = 0; i < n; i++, y += ROW) {
        const double wide = fmax(0.5, scale * row[i].took);
        scene_begin(p->s, "collective", arena_printf(a, "message-%d", row[i].e->step),
                    arena_printf(a, "%s\n%s", row[i].value, row[i].e->formula));
        scene_text(p->s, p->x0 - 10, y + h / 2 + 4.3, (TextLook){ALIGN_RIGHT, 12, MEDIUM, ROLE_INK},
                   phase_text(row[i].pass));
        scene_rect(p->s, (Area){p->x0, y, wide, h}, 0,
                   (Look){ROLE_COLL, ROLE_COLL_LINE, wide > 4 ? 1.25 : 0.6});
        const double x = p->x0 + wide + 8, most = p->s->w - at.x - x, size = stave_size(p);
        const char *text = messages_text(&row[i], false, a);
        if (scene_width(p->s, size, REGULAR, text) > most) text = messages_text(&row[i], true, a);
        scene_text(p->s, x, y + h / 2 + 4.3, (TextLook){ALIGN_LEFT, size, REGULAR, ROLE_INK},
                   scene_fit(p->s, text, most, size, REGULAR));
        scene_end(p->s);
    }
    scene_end(p->s);
    return y + BELOW;
}
