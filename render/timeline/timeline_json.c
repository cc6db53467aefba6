/* What the timeline shows, as one JSON object (docs/shardproof.schema.json, timeline_figure): times
 * in seconds. Refuses to fold: every event of every class of ranks whose times differ is there. */
#include "base/text.h"
#include "render/furniture/views.h"
#include "render/timeline/timeline.h"

enum { MAX_CLASSES = 64 };

static void add_text(Str *s, const char *key, const char *text) {
    str_addf(s, ",\"%s\":", key);
    if (text) text_add_json(s, text);
    else str_add(s, "null");
}
static void add_event(Str *s, const Timeline *t, const TimeEvent *e) {
    str_addf(s,
             "{\"step\":%d,\"start\":%.9g,\"end\":%.9g,\"exposed\":%.9g,\"wait\":%.9g,"
             "\"wait_exposed\":%.9g,\"hidden\":%.9g,\"beside\":%.9g",
             e->rec->step, e->rec->start, e->rec->end, e->rec->exposed, e->rec->wait,
             e->rec->wait_exposed, e->hidden, e->beside);
    add_text(s, "kind", e->rec->kind);
    add_text(s, "stream", timeline_lane(t, e->e) ? e->rec->stream : "compute");
    add_text(s, "name", e->name);
    add_text(s, "op", e->coll ? e->coll->op : e->c ? e->c->op : NULL);
    add_text(s, "value", e->coll ? e->coll->value : e->c ? e->c->output : NULL);
    add_text(s, "formula", e->rec->formula);
    if (e->coll) str_addf(s, ",\"bytes_sent\":%lld", (long long)timeline_sent(e));
    else str_add(s, ",\"bytes_sent\":null");
    if (e->c) str_addf(s, ",\"flops\":%.0f", e->c->flops);
    else str_add(s, ",\"flops\":null");
    str_addf(s, ",\"aside\":%s}", e->aside ? "true" : "false");
}
static void add_step(Str *s, const TimeStep *x) {
    if (!x) {
        str_add(s, ",\"step\":null");
        return;
    }
    str_addf(s,
             ",\"step\":{\"coordinate\":%d,\"stages\":%d,\"microbatches\":%d,\"span\":%.9g,"
             "\"compute\":%.9g,\"exposed\":%.9g,\"waiting\":%.9g,\"idle\":%.9g,\"hidden\":%.9g,"
             "\"beside\":%.9g,\"comm\":%.9g,\"once\":{\"compute\":%.9g,\"exposed\":%.9g,\"hidden\":"
             "%.9g,\"comm\":%.9g}}",
             x->coord, x->stages, x->times, x->span, x->compute, x->exposed, x->waiting, x->idle,
             x->hidden, x->beside, x->comm, x->once_compute, x->once_exposed, x->once_hidden,
             x->once_comm);
}
static void add_class(Str *s, Arena *a, const Timeline *t) {
    const TraceTimes *x = &t->sum;
    str_addf(s,
             "\n  "
             "{\"ranks\":%s,\"span\":%.9g,\"compute\":%.9g,\"exposed\":%.9g,\"waiting\":%.9g,"
             "\"hidden\":%.9g,\"beside\":%.9g,"
             "\"comm\":%.9g",
             trace_ranks_json(&t->ranks, a), x->span, x->compute, x->exposed, x->waiting, x->hidden,
             x->beside, x->comm);
    add_step(s, t->step);
    str_add(s, ",\"events\":[");
    for (int i = 0; i < t->n_events; i++) {
        str_add(s, i ? ",\n    " : "\n    ");
        add_event(s, t, &t->event[i]);
    }
    str_add(s, "]}");
}
const char *view_timeline_json(const ViewCall *c) {
    Timeline t[MAX_CLASSES];
    TimeFold folded;
    int n = timeline_read(c, t, MAX_CLASSES, 24, &folded);
    if (n == 0) return NULL;
    Str s = str_new(c->arena);
    str_addf(&s, "{\"same_times\":%d", folded.same);
    add_text(&s, "times", timeline_kind(c));
    add_text(&s, "hardware", c->t->hardware);
    str_add(&s, ",\"classes\":[");
    for (int i = 0; i < n; i++) {
        if (i) str_add(&s, ",");
        add_class(&s, c->arena, &t[i]);
    }
    str_add(&s, "]}");
    return s.s;
}
