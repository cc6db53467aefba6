/* What the picture of a pipeline shows, as one JSON object (docs/shardproof.schema.json,
 * pipeline_figure): each schedule with all its actions; of one that comes to no end those that are
 * done, without times, and where each rank stands. Refuses to round and to fold. */
#include "base/text.h"
#include "render/furniture/views.h"
#include "render/pipeline/pipeline.h"

static const char *text_json(const Pipe *p, const char *text) {
    Str s = str_new(p->a);
    if (text) text_add_json(&s, text);
    else str_add(&s, "null");
    return s.s;
}
/* What is counted or timed of a whole step: null where the schedule comes to no end. */
static const char *number(const Pipe *p, double x) {
    return p->stuck ? "null" : arena_printf(p->a, "%.9g", x);
}
static const char *whole(const Pipe *p, int64_t x) {
    return p->stuck ? "null" : arena_printf(p->a, "%lld", (long long)x);
}
/* The mean idle time of a rank, and what it is made of. */
static void add_idle(Str *s, const Pipe *p) {
    const Trace *t = p->t;
    str_addf(s, "\"idle\":%s,\"idle_time\":%s,\"closed_form\":", number(p, p->idle),
             number(p, p->idle * p->end));
    if (t->bubble_form)
        str_addf(s,
                 "{\"form\":%s,\"idle_time\":%.9g,\"stages_add\":%.9g,\"messages_add\":%.9g,"
                 "\"slow_stages\":%s,\"slow_times\":%.9g}",
                 text_json(p, t->bubble_form), t->bubble, t->bubble_stages, t->bubble_messages,
                 text_json(p, t->slow_stages), t->slow_times);
    else str_add(s, "null");
    str_addf(s, ",\"no_closed_form\":%s", text_json(p, t->bubble_unfit));
}
static void add_row(Str *s, const Pipe *p, int k) {
    const PipeRow *r = &p->row[k];
    str_addf(s,
             "\n    {\"rank\":%d,\"stages\":[%s],\"idle\":%s,\"in_flight\":%d,"
             "\"actions\":[",
             k, r->stages, number(p, 1 - r->busy / p->end), r->flight);
    for (int i = 0; i < r->n; i++) {
        const TraceAction *a = &r->a[i];
        str_addf(s,
                 "%s\n      {\"kind\":\"%c\",\"stage\":%d,\"microbatch\":%d,\"start\":%s,"
                 "\"end\":%s,\"with_next\":%s}",
                 i ? "," : "", *a->kind, a->stage, a->microbatch, number(p, a->start),
                 number(p, a->end), a->joined ? "true" : "false");
    }
    str_add(s, "]}");
}
/* Where ranks stand for ever: none of a schedule that comes to its end. */
static void add_stuck(Str *s, const Pipe *p) {
    str_add(s, ",\"stuck\":[");
    for (int i = 0; i < p->t->n_stuck; i++) {
        const TraceStuck *b = &p->t->stuck[i];
        str_addf(s, "%s\n    {\"rank\":%d,\"action\":%s,\"waits\":%s}", i ? "," : "", b->rank,
                 text_json(p, b->action), text_json(p, b->waits));
    }
    str_add(s, "]");
}
const char *view_pipeline_json(const ViewCall *c) {
    Pipe all[VIEW_MAX_BESIDE + 1];
    double span;
    int n = pipe_read_all(c, all, &span);
    if (!n) return NULL;
    Str s = str_new(c->arena);
    str_add(&s, "{\"schedules\":[");
    for (int i = 0; i < n; i++) {
        const Pipe *p = &all[i];
        PipeSums sums = pipe_sums(p);
        str_addf(&s, "%s\n  {\"schedule\":%s,\"axis\":%s,\"microbatches\":%d,\"span\":%s,",
                 i ? "," : "", text_json(p, p->t->schedule), text_json(p, p->t->schedule_axis),
                 p->parts, number(p, p->end));
        add_idle(&s, p);
        add_stuck(&s, p);
        str_addf(&s, ",\"in_flight\":%d,\"held\":%s,\"messages\":%s,\"weights\":%s,\"ranks\":[",
                 sums.flight, whole(p, sums.held), whole(p, sums.messages), whole(p, sums.weights));
        for (int k = 0; k < p->n; k++) {
            if (k) str_add(&s, ",");
            add_row(&s, p, k);
        }
        str_add(&s, "]}");
    }
    str_add(&s, "]}");
    return s.s;
}
