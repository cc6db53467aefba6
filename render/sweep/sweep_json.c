/* What the picture of a sweep shows, as one JSON object (docs/shardproof.schema.json,
 * sweep_figure). Refuses to round and to leave out: small batches and slow ways stand there too. */
#include "base/text.h"
#include "render/furniture/views.h"
#include "render/sweep/sweep.h"

static const char *word(bool yes) { return yes ? "true" : "false"; }
/* Whether so many bytes fit; null where nobody knows the capacity. */
static const char *fits(const Sweep *w, int64_t bytes) {
    return w->capacity ? word(sweep_fits(w, bytes)) : "null";
}
static const char *whole(const Sweep *w, int64_t x) {
    return x ? arena_printf(w->c->arena, "%lld", (long long)x) : "null";
}
static void add_batch(Str *s, const Sweep *w, const SweepBatch *b) {
    str_addf(s, "\n    {\"batch\":%lld,\"own\":%s,\"fits\":%s,\"bytes\":%lld,\"parts\":",
             (long long)b->batch, word(b->own), fits(w, b->total), (long long)b->total);
    memory_add_parts(s, b->bytes);
    str_add(s, "}");
}
static void add_way(Str *s, const Sweep *w, const SweepWay *x) {
    str_add(s, "\n    {\"mesh\":[");
    for (int i = 0; i < w->others->n_axes; i++) {
        str_add(s, i ? ",{\"axis\":" : "{\"axis\":");
        text_add_json(s, w->others->axis[i]);
        str_addf(s, ",\"size\":%lld}", (long long)x->size[i]);
    }
    str_addf(s,
             "],\"own\":%s,\"fits\":%s,\"bytes\":%lld,\"span\":%.9g,\"compute\":%.9g,"
             "\"exposed\":%.9g,\"waiting\":%.9g,\"idle\":%.9g}",
             word(x->own), fits(w, x->total), (long long)x->total, x->span, x->compute, x->exposed,
             x->waiting, x->idle);
}
const char *view_sweep_json(const ViewCall *c) {
    Sweep *w = ARENA_NEW(c->arena, Sweep);
    if (!sweep_read(w, c)) return NULL;
    Str s = str_new(c->arena);
    str_addf(&s, "{\"capacity\":%s,\"rows\":%s,\"batches\":[", whole(w, w->capacity),
             word(w->others->rows));
    for (int i = 0; i < w->n; i++) {
        if (i) str_add(&s, ",");
        add_batch(&s, w, &w->at[i]);
    }
    str_addf(&s,
             "],\"refused\":%s,\"ways\":{\"count\":%s,\"refused\":%d,\"of\":", whole(w, w->ended),
             w->ways > SWEEP_WAYS ? "null" : whole(w, w->ways), w->illegal);
    text_add_json(&s, sweep_span(w));
    str_add(&s, ",\"legal\":[");
    for (int i = 0; i < w->n_ways; i++) {
        if (i) str_add(&s, ",");
        add_way(&s, w, &w->way[i]);
    }
    str_add(&s, "]}}");
    return s.s;
}
