/* The events as text: a table in 80 columns or fewer, and Chrome trace JSON that opens in Perfetto
 * (one process per rank class, one thread per stream, times in microseconds). */
#include "base/text.h"
#include "render/timeline/messages.h"
#include "render/timeline/timeline.h"
#include "render/pipeline/strip.h"
#include "render/furniture/views.h"
#include "render/furniture/wrong.h"
#include <string.h>

enum { MAX_CLASSES = 64 };

/* Event, stream, start, time, exposed. */
enum { CELLS = 5 };
typedef struct {
    Str *s;
    int w; /* columns */
} Out;

static void rule(Out *o) {
    for (int i = 0; i < o->w; i++) str_add(o->s, "─");
    str_add(o->s, "\n");
}

static void row(Out *o, const char *const text[CELLS]) {
    static const int wide[] = {26, 18, 12, 12, 12}, narrow[] = {19, 14, 9, 9, 9};
    WordsCell cell[CELLS];
    for (int i = 0; i < CELLS; i++)
        cell[i] = (WordsCell){text[i], (o->w < 80 ? narrow : wide)[i], i > 1};
    words_row(o->s, "", cell, CELLS);
}

static void event_row(Out *o, const Timeline *t, const TimeLine *line, const TimeEvent *e,
                      Arena *a) {
    int lane = timeline_lane(t, e->e);
    const char *stream =
        lane ? arena_printf(
                   a, "%s %s",
                   words_axis_list(a, t->trace, e->coll ? e->coll->axis : t->lane[lane].axis),
                   t->lane[lane].members)
             : "compute";
    /* in a pipeline from where the line begins, as the picture's axis has it */
    double from = e->e->start - (t->step ? line->start : 0), sends = from + e->e->wait;
    if (e->e->wait > 0)
        row(o,
            (const char *const[]){arena_printf(a, "wait: %s", e->name), stream, time_text(from, a),
                                  time_text(e->e->wait, a),
                                  e->e->wait_exposed > 0 ? time_text(e->e->wait_exposed, a) : ""});
    row(o, (const char *const[]){e->name, stream, time_text(sends, a),
                                 time_text(e->e->end - e->e->start - e->e->wait, a),
                                 e->e->exposed > 0 ? time_text(e->e->exposed, a) : ""});
}

static const char *waiting(const TraceTimes *s, Arena *a) {
    return s->waiting > 0 ? arena_printf(a, ", waiting for others %s", time_text(s->waiting, a))
                          : "";
}
static const char *beside(const TraceTimes *s, Arena *a) {
    return s->beside > 0
               ? arena_printf(a, ", behind other communication %s", time_text(s->beside, a))
               : "";
}
static const char *const columns[CELLS] = {"event", "stream", "start", "time", "exposed"};
/* A line's sums, `more` and its events. */
static void text_line(Out *o, const Timeline *t, const TimeLine *line, const char *more, Arena *a) {
    rule(o);
    words_paragraph(o->s, "",
                    arena_printf(a, "%s: %s, compute %s, exposed %s%s, hidden %s%s%s", line->title,
                                 time_text(line->end - line->start, a),
                                 time_text(line->sum.compute, a), time_text(line->sum.exposed, a),
                                 waiting(&line->sum, a), time_text(line->sum.hidden, a),
                                 beside(&line->sum, a), more),
                    o->w);
    for (int k = 0; k < t->n_events; k++) {
        const TraceEvent *e = t->event[k].e;
        if (!t->event[k].aside && e->start >= line->start - 1e-15 && e->start < line->end)
            event_row(o, t, line, &t->event[k], a);
    }
}
/* A pipeline: the schedule in letters, then the lines that its picture has. */
static void staged_lines(const ViewCall *c, Out *o, const Timeline *t, int n) {
    Pipe p;
    TimeItem *item;
    if (!pipe_read(&p, c)) return;
    str_add(o->s, "\n");
    pipe_text_rows(o->s, &p, o->w - 30, p.end);
    MessageRow *message;
    const int messages = messages_read(c, &message);
    if (messages)
        words_paragraph(o->s, "",
                        arena_printf(c->arena, "Messages between stages: %s",
                                     messages_count(message, messages, c->arena)),
                        o->w);
    for (int i = 0; i < messages; i++)
        words_paragraph(o->s, "  ",
                        arena_printf(c->arena, "%s: %s", phase_text(message[i].pass),
                                     messages_text(&message[i], false, c->arena)),
                        o->w);
    if (messages) str_add(o->s, "\n");
    row(o, columns);
    int items = timeline_items(c, t, n, &item);
    for (int i = 0; i < items; i++)
        text_line(o, item[i].t, item[i].l, arena_printf(c->arena, " (%s)", item[i].who), c->arena);
}
const char *view_timeline_text(const ViewCall *c) {
    const int most = timeline_staged(c) ? TIMELINE_STAGES : 4;
    Timeline *t = ARENA_ARRAY(c->arena, Timeline, most + 1);
    Arena *a = c->arena;
    Role role;
    TimeFold folded;
    int n = timeline_read(c, t, most, 24, &folded);
    if (n == 0) return NULL;
    Str s = str_new(a);
    Out o = {&s, furniture_columns(c->o)};
    words_paragraph(&s, "", timeline_title(c, t, n), o.w);
    wrong_text(&s, wrong_find(a, c->t, NULL, NULL), o.w);
    const char *model = words_model(a, c->t);
    words_paragraph(&s, "",
                    arena_printf(a, "%s%s%s · %s · %s", model ? model : "", model ? " · " : "",
                                 words_data(a, c->t), words_mesh(a, c->t), timeline_kind(c)),
                    o.w);
    if (t->step) staged_lines(c, &o, t, n);
    for (int i = 0; i < n && !t->step; i++) {
        str_add(&s, "\n");
        words_paragraph(&s, "", timeline_who(c, &t[i]), o.w);
        row(&o, columns);
        for (int l = 0; l < t[i].n_lines; l++) {
            const TimeLine *line = &t[i].line[l];
            text_line(&o, &t[i], line,
                      line->same ? arena_printf(a, " (%d more like it)", line->same) : "", a);
        }
    }
    rule(&o);
    if (folded.same || folded.left)
        words_paragraph(&s, "",
                        arena_printf(a, "Of %d classes of ranks %d shown%s.",
                                     n + folded.same + folded.left, n, timeline_folded(a, folded)),
                        o.w);
    words_paragraph(&s, "", timeline_totals(c, t, n), o.w);
    if (c->t->hardware)
        words_paragraph(&s, "", arena_printf(a, "time model: %s", c->t->hardware), o.w);
    words_paragraph(&s, "", words_stamp(a, c->t, &role), o.w);
    return s.s;
}

/* ---- Chrome trace ---- */

static void quote(Str *s, const char *t) { text_add_json(s, t ? t : ""); }

/* Microseconds with three decimals, in integers so that no locale interferes. */
static void micros(Str *s, double seconds) {
    long long ns = (long long)(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5));
    str_addf(s, "%lld.%03lld", ns / 1000, ns % 1000);
}

static void meta(Str *s, const char *kind, int pid, int tid, const char *name) {
    str_addf(s, "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s_name\",\"args\":{\"name\":", pid,
             tid, kind);
    quote(s, name);
    str_addf(s,
             "}},\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s_sort_index\",\"args\":{\"sort_"
             "index\":%d}},\n",
             pid, tid, kind, strcmp(kind, "process") ? tid : pid);
}

/* A slice up to its "args", which stays open. */
static void chrome_slice(Str *s, const Timeline *t, const TimeEvent *e, int pid, bool wait) {
    double sends = e->rec->start + e->rec->wait, from = wait ? e->rec->start : sends;
    str_addf(s, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"cat\":\"%s\",\"name\":", pid,
             timeline_lane(t, e->e),
             wait           ? "wait"
             : e->rec->kind ? e->rec->kind
                            : "compute");
    quote(s, wait ? "wait" : e->name);
    str_add(s, ",\"ts\":");
    micros(s, from);
    str_add(s, ",\"dur\":");
    micros(s, (wait ? sends : e->rec->end) - from);
    str_addf(s, ",\"args\":{\"step\":%d,\"exposed_us\":", e->rec->step);
    micros(s, wait ? e->rec->wait_exposed : e->rec->exposed);
    if (trace_is_compute(e->rec) || wait) return;
    str_add(s, ",\"hidden_us\":");
    micros(s, e->hidden);
    str_add(s, ",\"beside_us\":");
    micros(s, e->beside);
}
static void chrome_event(Str *s, const Timeline *t, const TimeEvent *e, int pid, Arena *a) {
    if (e->rec->wait > 0) {
        chrome_slice(s, t, e, pid, true);
        str_add(s, ",\"for\":");
        quote(s, e->name);
        str_add(s, "}},\n");
    }
    chrome_slice(s, t, e, pid, false);
    str_add(s, ",\"formula\":");
    quote(s, e->rec->formula);
    if (e->coll) {
        str_add(s, ",\"op\":");
        quote(s, e->coll->op);
        str_add(s, ",\"value\":");
        quote(s, e->coll->value);
        str_addf(s, ",\"group\":\"%lld groups × %lld ranks\",\"bytes_sent\":%lld,\"why\":",
                 (long long)groups_count(&e->coll->groups),
                 (long long)groups_size(&e->coll->groups), (long long)timeline_sent(e));
        quote(s, e->coll->why);
    }
    if (e->c) {
        const TraceValue *v = trace_value(t->trace, e->c->output, e->c->step);
        str_addf(s, ",\"flops\":%.0f,\"bytes\":%lld,\"output\":", e->c->flops,
                 (long long)e->c->bytes);
        quote(s, e->c->output);
        str_add(s, ",\"shape\":");
        quote(s, v ? words_symbol(a, v->shape.symbolic) : "");
    }
    str_add(s, "}}");
}

const char *chrome_text(const ViewCall *c) {
    Timeline t[MAX_CLASSES];
    Arena *a = c->arena;
    TimeFold folded;
    int n = timeline_read(c, t, MAX_CLASSES, 24, &folded);
    if (n == 0) return NULL;
    Str s = str_new(a);
    str_add(&s, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"plan\":");
    quote(&s, c->t->plan);
    str_add(&s, ",\"hardware\":");
    quote(&s, c->t->hardware);
    str_add(&s, "},\"traceEvents\":[\n");
    bool first = true;
    for (int i = 0; i < n; i++) {
        meta(&s, "process", i, 0,
             c->o->measured ? timeline_who(c, &t[i]) : rankset_words(&t[i].ranks, a));
        for (int k = 0; k < t[i].n_lanes; k++)
            meta(&s, "thread", i, k,
                 k ? arena_printf(a, "%s %s", t[i].lane[k].axis, t[i].lane[k].members) : "compute");
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < t[i].n_events; k++, first = false) {
            if (!first) str_add(&s, ",\n");
            chrome_event(&s, &t[i], &t[i].event[k], i, a);
        }
    str_add(&s, "\n]}\n");
    return s.s;
}
