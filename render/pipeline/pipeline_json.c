/* What the picture of a pipeline shows, as one JSON object (docs/shardproof.schema.json,
 * pipeline_figure): each schedule with all its actions. Refuses to round and to fold. */
#include "base/text.h"
#include "render/furniture/views.h"
#include "render/pipeline/pipeline.h"

static const char *text_json(const Pipe *p, const char *text) {
    Str s = str_new(p->a);
    if (text) text_add_json(&s, text);
    else str_add(&s, "null");
    return s.s;
}
/* The mean idle time of a rank, and what it is made of. */
static void add_idle(Str *s, const Pipe *p) {
    const Trace *t = p->t;
    str_addf(s, "\"idle\":%.9g,\"idle_time\":%.9g,\"closed_form\":", p->idle, p->idle * p->end);
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
             "\n    {\"rank\":%d,\"stages\":[%s],\"idle\":%.9g,\"in_flight\":%d,"
             "\"actions\":[",
             k, r->stages, 1 - r->busy / p->end, r->flight);
    for (int i = 0; i < r->n; i++) {
        const TraceAction *a = &r->a[i];
        str_addf(s,
                 "%s\n      {\"kind\":\"%c\",\"stage\":%d,\"microbatch\":%d,\"start\":%.9g,"
                 "\"end\":%.9g,\"with_next\":%s}",
                 i ? "," : "", *a->kind, a->stage, a->microbatch, a->start, a->end,
                 a->joined ? "true" : "false");
    }
    str_add(s, "]}");
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
        str_addf(&s, "%s\n  {\"schedule\":%s,\"axis\":%s,\"microbatches\":%d,\"span\":%.9g,",
                 i ? "," : "", text_json(p, p->t->schedule), text_json(p, p->t->schedule_axis),
                 p->parts, p->end);
        add_idle(&s, p);
        str_addf(
            &s, ",\"in_flight\":%d,\"held\":%lld,\"messages\":%lld,\"weights\":%lld,\"ranks\":[",
            sums.flight, (long long)sums.held, (long long)sums.messages, (long long)sums.weights);
        for (int k = 0; k < p->n; k++) {
            if (k) str_add(&s, ",");
            add_row(&s, p, k);
        }
        str_add(&s, "]}");
    }
    str_add(&s, "]}");
    return s.s;
}
