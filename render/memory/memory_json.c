/* What the memory picture shows, as one JSON object (docs/shardproof.schema.json, memory_figure).
 * Says what records say: refuses to round. */
#include "base/text.h"
#include "render/furniture/views.h"
#include "render/memory/compare.h"

static const char *const keys[MEM_KINDS] = {[MEM_PARAMS] = "parameters",
                                            [MEM_OPTIMIZER] = "optimizer",
                                            [MEM_GRADS] = "gradients",
                                            [MEM_ACTS] = "activations",
                                            [MEM_GATHERED] = "gathered"};

void memory_add_parts(Str *s, const int64_t bytes[MEM_KINDS]) {
    for (int k = 0; k < MEM_KINDS; k++)
        str_addf(s, "%s\"%s\":%lld", k ? "," : "{", keys[k], (long long)bytes[k]);
    str_add(s, "}");
}
/* The ranks of a class, and what they hold at the peak. */
static void add_class(Str *s, Arena *a, const MemClass *m) {
    str_addf(s, "\n  {\"ranks\":%s,\"step\":%d,\"bytes\":%lld,\"parts\":",
             trace_ranks_json(&m->ranks, a), m->step, (long long)m->total);
    memory_add_parts(s, m->bytes);
    str_add(s, "}");
}
/* Other ways to keep the same model (compare.h). */
static void add_way(Str *s, const MemWay *w) {
    str_add(s, "\n  {\"name\":");
    text_add_json(s, w->name);
    str_addf(s, ",\"rank\":%lld,\"step\":%d,\"bytes\":%lld,\"parts\":", (long long)w->held.rank,
             w->held.step, (long long)w->held.total);
    memory_add_parts(s, w->held.bytes);
    str_add(s, "}");
}
/* The same over the modelled time of a pipeline. */
static void add_time(Str *s, const MemTime *m) {
    str_addf(s, "],\"after\":%lld,\"time\":[", (long long)m->after);
    for (int i = 0; i < m->n; i++) {
        const MemMoment *x = &m->at[i];
        str_addf(s,
                 "%s\n    {\"from\":%.9g,\"to\":%.9g,\"held\":%lld,\"gathered\":%lld,"
                 "\"in_flight\":%d,\"actions\":[",
                 i ? "," : "", x->from, x->to, (long long)x->all, (long long)x->gathered,
                 x->flight);
        const TraceAction *of[] = {x->a, x->b};
        for (int k = 0; k < 2 && of[k]; k++)
            str_addf(s, "%s{\"kind\":\"%c\",\"microbatch\":%d,\"stage\":%d}", k ? "," : "",
                     *of[k]->kind, of[k]->microbatch, of[k]->stage);
        str_add(s, "]}");
    }
}
/* The course of one rank, and what is alive at its peak. */
static void add_course(Str *s, Arena *a, const MemCourse *c, const MemTime *time) {
    const MemLife **life;
    int n = memory_alive(a, c, c->peak, &life);
    str_addf(s, "{\"rank\":%lld,\"peak\":%d,\"exact\":%s,\"steps\":[", (long long)c->rank, c->peak,
             c->exact ? "true" : "false");
    for (int i = 0; i < c->n_steps; i++)
        str_addf(s, "%s\n    {\"step\":%d,\"live\":%lld,\"gradients\":%lld,\"gathered\":%lld}",
                 i ? "," : "", i, (long long)c->live[i], (long long)c->grad[i],
                 (long long)(c->all[i] - c->live[i]));
    add_time(s, time);
    str_add(s, "],\"alive\":[");
    for (int i = 0; i < n; i++) {
        str_addf(s, "%s\n    {\"value\":", i ? "," : "");
        text_add_json(s, life[i]->v->shape.name);
        str_addf(s, ",\"bytes\":%lld,\"from\":%d,\"until\":%d}", (long long)life[i]->bytes,
                 life[i]->from, life[i]->last);
    }
    str_add(s, "]}");
}
const char *view_memory_json(const ViewCall *c) {
    Arena *a = c->arena;
    MemClass *cls;
    MemCourse course;
    int n = memory_classes(a, c->t, &cls);
    int64_t room = memory_capacity(c->t), rank = memory_rank(c->o->rank, cls, n);
    if (!n) {
        diag_error(c->d, "E0211", diag_nowhere, "draw the plan itself",
                   "nothing to draw in view 'memory': the trace says nothing of memory");
        return NULL;
    }
    Str s = str_new(a);
    str_add(&s, "{\"capacity\":");
    if (room) str_addf(&s, "%lld", (long long)room);
    else str_add(&s, "null");
    str_add(&s, ",\"classes\":[");
    for (int i = 0; i < n; i++) {
        if (i) str_add(&s, ",");
        add_class(&s, a, &cls[i]);
    }
    MemWay way[MEM_WAYS];
    const int ways = memory_ways(a, c->t, cls, way);
    str_add(&s, "],\"ways\":[");
    for (int i = 0; i < ways; i++) {
        if (i) str_add(&s, ",");
        add_way(&s, &way[i]);
    }
    str_add(&s, "],\"course\":");
    MemTime time;
    if (memory_course(a, c->t, rank, &course)) {
        memory_time(a, c->t, &course, &time);
        add_course(&s, a, &course, &time);
    } else str_add(&s, "null");
    str_add(&s, "}");
    return s.s;
}
