/* View `timeline`: compute and communication streams of a rank class. The time line is wrapped like
 * a line of music, all lines at one scale or at a stated number of times that; a pale band shows
 * where compute waits. What ends the wait is hatched; the rest is hidden. Where a collective waits
 * for another rank its stretch is an empty dashed one. Of a pipeline the schedule of the whole step
 * comes first, then one line for all stages that do the same for each micro-batch. */
#include "render/timeline/timeline.h"
#include "render/pipeline/strip.h"
#include "render/timeline/view_took.h"
#include "render/furniture/headline.h"
#include "render/furniture/views.h"
#include "render/furniture/wrong.h"
#include <math.h>
#include <string.h>

enum { MAX_CLASSES = 4, MAX_EVENT_LABELS = 64, A4_HEIGHT = 770 };

enum { FOOT = 132 }; /* legend and footer of a slide with totals and notes of one line */

/* Lengths of a preset. */
typedef struct {
    double label_w;    /* lane names */
    double axis_w;     /* the longest line; 0: what is left */
    double margin_w;   /* numbers at the right; 0: under the line */
    double head, over; /* title of a line; room for labels above compute */
    double compute, comm, gap, ticks, below;
    int kernels; /* on a line, if the program can be cut */
} TimeLook;
static const TimeLook looks[PRESET_COUNT] = {
    [PRESET_WIDE] = {84, 780, 176, 22, 16, 28, 18, 6, 22, 26, 24},
    [PRESET_COLUMN] = {70, 0, 0, 22, 16, 28, 18, 6, 22, 42, 12},
    [PRESET_SLIDE] = {80, 640, 176, 20, 16, 32, 22, 6, 20, 18, 12},
    [PRESET_A4] = {84, 780, 176, 22, 16, 28, 18, 6, 22, 26, 24},
};

typedef struct {
    const ViewCall *c;
    Scene *s;
    const TimeLook *look;
    double x0, width, scale; /* of the axis: left edge, longest line, px per second */
    int times;               /* how many times as wide as the longest line this one is drawn */
    double right;            /* labels end here */
    const WrongList *wrong;
    unsigned legend;
} TimePen;

/* One line on its way onto the page. */
typedef struct {
    const Timeline *t;
    const TimeLine *l;
    double y;         /* top of the compute lane */
    double bottom;    /* lower edge of the last lane */
    int lane_row[64]; /* row of each lane, -1: no events in this line */
    int rows;
    const int
        *number; /* per event: its number in the list below, in its cell; 0: none stands there */
} Stave;

static double lane_y(const TimePen *p, const Stave *v, int lane) {
    int r = v->lane_row[lane];
    return r <= 0
               ? v->y
               : v->y + p->look->compute + p->look->gap + (r - 1) * (p->look->comm + p->look->gap);
}
static double lane_h(const TimePen *p, int lane) { return lane ? p->look->comm : p->look->compute; }
static double time_x(const TimePen *p, const Stave *v, double t) {
    return p->x0 + p->scale * (fmin(fmax(t, v->l->start), v->l->end) - v->l->start);
}
static bool in_line(const Stave *v, const TimeEvent *x) {
    const TraceEvent *e = x->e;
    double eps = 1e-9 * (v->l->end - v->l->start);
    return !x->aside && e->end > v->l->start + eps && e->start < v->l->end - eps;
}

static void lay_lanes(const TimePen *p, Stave *v) {
    const Timeline *t = v->t;
    v->rows = 1;
    for (int i = 0; i < 64; i++) v->lane_row[i] = i ? -1 : 0;
    for (int lane = 1; lane < t->n_lanes && lane < 64; lane++)
        for (int i = 0; i < t->n_events && v->lane_row[lane] < 0; i++)
            if (timeline_lane(t, t->event[i].e) == lane && in_line(v, &t->event[i]))
                v->lane_row[lane] = v->rows++;
    v->bottom = v->y + p->look->compute + (v->rows - 1) * (p->look->comm + p->look->gap);
}

/* ---- the axis ---- */

/* 1, 2 or 5 times a power of ten, at least `min`. */
static double nice_step(double min) {
    double base = pow(10, floor(log10(min)));
    static const double k[] = {1, 2, 5, 10};
    for (int i = 0; i < 4; i++)
        if (base * k[i] >= min * (1 - 1e-9)) return base * k[i];
    return base * 10;
}

typedef struct {
    const char *name;
    double seconds;
} Unit;
static Unit unit_of(double span) {
    static const Unit u[] = {{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}, {"ns", 1e-9}};
    for (int i = 0; i < 3; i++)
        if (span >= 0.5 * u[i].seconds) return u[i];
    return u[3];
}

static void draw_axis(TimePen *p, const Stave *v, double longest, bool with_unit) {
    Unit u = unit_of(longest);
    double step = nice_step(longest / u.seconds * 46 / p->width),
           span = (v->l->end - v->l->start) / u.seconds;
    int digits = step < 0.999 ? (int)ceil(-log10(step) - 1e-9) : 0;
    double last = p->x0;
    for (int i = 0; i * step <= span + 1e-9 && i < 200; i++) {
        double x = p->x0 + i * step * u.seconds * p->scale;
        Mark *m = scene_segment(p->s, (Pt){x, v->y - 2}, (Pt){x, v->bottom + 4}, ROLE_GRID, 1);
        m->ground = true;
        last = x + scene_textf(p->s, x, v->bottom + 17,
                               (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_TICK}, "%.*f", digits,
                               i * step) /
                       2;
    }
    bool behind = last + 9 + scene_width(p->s, 12, REGULAR, u.name) <=
                  p->right; /* else before the first tick */
    if (with_unit)
        scene_text(p->s, behind ? last + 9 : p->x0 - 22, v->bottom + 17,
                   (TextLook){behind ? ALIGN_LEFT : ALIGN_RIGHT, 12, REGULAR, ROLE_TICK}, u.name);
    for (int lane = 1; lane < v->t->n_lanes && lane < 64; lane++) {
        if (v->lane_row[lane] < 0) continue;
        double y = lane_y(p, v, lane) + p->look->comm;
        Mark *m =
            scene_segment(p->s, (Pt){p->x0, y}, (Pt){time_x(p, v, v->l->end), y}, ROLE_GRID, 1);
        m->ground = true;
    }
}

/* Pale bands where compute waits. */
static void draw_waits(TimePen *p, const Stave *v) {
    double busy = v->l->start;
    for (int i = 0; i <= v->t->n_events; i++) {
        const TraceEvent *e = i < v->t->n_events ? v->t->event[i].e : NULL;
        if (e && (timeline_lane(v->t, e) > 0 || !in_line(v, &v->t->event[i]) ||
                  strcmp(e->kind ? e->kind : "", "collective") == 0))
            continue;
        double until = e ? e->start : v->l->end;
        double x = time_x(p, v, busy), w = time_x(p, v, until) - x;
        if (until > busy && w > 0.3) {
            scene_rect(p->s, (Area){x, v->y - 2, w, v->bottom - v->y + 4}, 0,
                       (Look){ROLE_BAND, ROLE_NONE, 0})
                ->ground = true;
            p->legend |= 1u << LEGEND_WAIT;
        }
        if (e) busy = fmax(busy, e->end);
    }
}

/* ---- events ---- */

static const char *event_tip(const TimePen *p, const TimeEvent *x) {
    Arena *a = p->c->arena;
    Str s = str_new(a);
    str_addf(&s, "step %d: %s, %s to %s, %s", x->rec->step, x->name, time_text(x->rec->start, a),
             time_text(x->rec->end, a), time_text(x->rec->end - x->rec->start, a));
    if (x->rec->wait > 0)
        str_addf(&s, ", %s of it waiting for another rank", time_text(x->rec->wait, a));
    if (x->rec->exposed > 0) str_addf(&s, ", %s of it exposed", time_text(x->rec->exposed, a));
    if (x->hidden > 0) str_addf(&s, ", %s hidden behind compute", time_text(x->hidden, a));
    if (x->beside > 0) str_addf(&s, ", %s behind other communication", time_text(x->beside, a));
    if (x->c) tip_add(&s, "makes", x->c->output);
    if (x->coll)
        str_addf(&s, "\n%s of %s over %s, sends %s", x->coll->op, x->coll->value, x->coll->axis,
                 bytes_text(timeline_sent(x), a));
    tip_add(&s, "", x->rec->formula);
    if (x->coll) tip_add(&s, "why", x->coll->why);
    if (x->coll) tip_inferred(&s, x->coll);
    return s.s;
}

/* The hatched part of a collective, with which it ends: compute waits for it. */
static void draw_exposed(TimePen *p, const Stave *v, const TimeEvent *x, double y, double h) {
    double a = time_x(p, v, x->e->end - x->e->exposed), w = time_x(p, v, x->e->end) - a;
    if (w <= 0) return;
    scene_rect(p->s, (Area){a, y, w, h}, 0, (Look){ROLE_COLL, ROLE_NONE, 0});
    scene_hatch(p->s, (Area){a, y, w, h}, ROLE_COLL_LINE, 3.5, 1);
    p->legend |= 1u << LEGEND_EXPOSED;
}

/* When an event sends or computes, after it has waited for others. */
static double works_from(const TimeEvent *x) { return x->e->start + x->e->wait; }
static double works_for(const TimeEvent *x) { return x->e->end - works_from(x); }
enum { FLAG_ROOM = 22 };
/* The words that fit inside an event with 3 px at each side, or NULL: the whole, the name, what it
 * is called where room is short. */
static const char *text_in(const TimePen *p, const Stave *v, const TimeEvent *x, double flag) {
    double room = time_x(p, v, x->e->end) - time_x(p, v, works_from(x)) - 6 - 2 * flag;
    bool coll = timeline_lane(v->t, x->e) > 0;
    const char *try[3] = {
        coll ? arena_printf(p->c->arena, "%s  %s", x->name, time_text(works_for(x), p->c->arena))
             : x->name,
        x->name, x->brief};
    for (int i = 0; i < 3; i++)
        if (*try[i] && scene_width(p->s, 12, coll ? REGULAR : MEDIUM, try[i]) <= room)
            return try[i];
    return NULL;
}

/* Does the flag of a wrong event stand beside its words? */
static bool flag_fits(const TimePen *p, const Stave *v, const TimeEvent *x) {
    return wrong_number(p->wrong, x->e->step) && text_in(p, v, x, FLAG_ROOM);
}
static const char *inside_text(const TimePen *p, const Stave *v, const TimeEvent *x) {
    const bool wrong = wrong_number(p->wrong, x->e->step), coll = timeline_lane(v->t, x->e) > 0;
    const char *text = text_in(p, v, x, wrong ? FLAG_ROOM : 0);
    return text || !wrong || !coll ? text : text_in(p, v, x, 0); /* the flag stands above */
}

/* "Shift k waits 82.3 ms" where it fits into that stretch, else NULL. */
static const char *waiting_text(const TimePen *p, const Stave *v, const TimeEvent *x) {
    const char *took = time_text(x->e->wait, p->c->arena),
               *try[] = {arena_printf(p->c->arena, "%s waits %s", x->name, took),
                         arena_printf(p->c->arena, "%s waits", x->name)};
    double room = time_x(p, v, works_from(x)) - time_x(p, v, x->e->start) - 6;
    for (int i = 0; i < 2 && x->e->wait > 0; i++)
        if (scene_width(p->s, 12, REGULAR, try[i]) <= room) return try[i];
    return NULL;
}
/* The stretch in which a collective waits for the last of its group. */
static void draw_waiting(TimePen *p, const Stave *v, const TimeEvent *x, double y, double h) {
    double a = time_x(p, v, x->e->start), w = time_x(p, v, works_from(x)) - a;
    if (w < 0.3) return;
    figure_waiting(p->s, (Area){a, y, w, h});
    p->legend |= 1u << LEGEND_OTHERS;
    const char *text = waiting_text(p, v, x);
    if (text)
        scene_text(p->s, a + w / 2, y + h / 2 + 4.3,
                   (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, text);
}
/* Of a collective that is beside others for some of its time: where the rank computes. */
static void draw_hidden(TimePen *p, const Stave *v, const TimeEvent *x, double y, double h) {
    const double from = works_from(x), to = x->e->end, eps = 1e-9 * (v->l->end - v->l->start);
    double a = from, b = from;
    for (int i = 0; i <= v->t->n_events; i++) {
        const TimeEvent *k = i < v->t->n_events ? &v->t->event[i] : NULL;
        if (k && (!trace_is_compute(k->e) || k->e->end <= from || k->e->start >= to)) continue;
        if (k && k->e->start <= b + eps) {
            b = fmin(fmax(b, k->e->end), to);
            continue;
        }
        double left = time_x(p, v, a), w = time_x(p, v, b) - left;
        if (w > 0) scene_rect(p->s, (Area){left, y, w, h}, 0, (Look){ROLE_COLL_PALE, ROLE_NONE, 0});
        if (k) a = k->e->start, b = fmin(k->e->end, to);
    }
}
/* What an event is filled with where nothing waits for it. */
static Role event_fill(TimePen *p, const TimeEvent *x, bool coll) {
    bool pale = coll && x->hidden > 0, beside = coll && x->beside > 0;
    Role fill = beside        ? ROLE_PAPER
                : pale        ? ROLE_COLL_PALE
                : coll        ? ROLE_COLL
                : x->small    ? ROLE_COMPUTE_DARK
                : x->gradient ? ROLE_COMPUTE_PALE
                              : ROLE_COMPUTE;
    if (pale) p->legend |= 1u << LEGEND_HIDDEN;
    if (beside) p->legend |= 1u << LEGEND_BESIDE;
    if (!coll)
        p->legend |= 1u << (x->small      ? LEGEND_SMALL
                            : x->gradient ? LEGEND_GRADIENT
                                          : LEGEND_MATMUL);
    return fill;
}
/* The module that the event is of: its kernels, forward and backward, and what is sent of its
 * weights, of what it makes and of the gradients of both. */
static const char *module_of(const Trace *t, const TimeEvent *x) {
    if (x->c) return x->c->module;
    const TraceParam *p = x->coll && !x->coll->n_with ? trace_param(t, x->coll->subject.of) : NULL;
    return p ? p->module : x->coll && !x->coll->n_with ? x->coll->module : NULL;
}
static void draw_event(TimePen *p, const Stave *v, const TimeEvent *x) {
    int lane = timeline_lane(v->t, x->e);
    double a = time_x(p, v, works_from(x)), b = time_x(p, v, x->e->end), y = lane_y(p, v, lane),
           h = lane_h(p, lane);
    const double stops = time_x(p, v, x->e->end - x->e->exposed),
                 eps = 1e-9 * (v->l->end - v->l->start);
    bool coll = lane > 0, exposed = coll && x->e->exposed > 0 && stops < b;
    bool works = x->e->end > v->l->start + eps && works_from(x) < v->l->end;
    const char *text = works ? inside_text(p, v, x) : NULL;
    const int number = v->number[x - v->t->event];
    if (number) text = arena_printf(p->c->arena, "%d", number);
    scene_begin(p->s, coll ? "collective" : "compute",
                arena_printf(p->c->arena, "event-%d", x->e->step), event_tip(p, x));
    scene_same(p->s, module_of(p->c->t, x));
    if (x->e->wait > 0) draw_waiting(p, v, x, y, h);
    Area at = {a, y, fmax(b - a, 0.5), h};
    if (works) {
        scene_rect(p->s, at, 0, (Look){event_fill(p, x, coll), ROLE_NONE, 0});
        if (coll && x->beside > 0) draw_hidden(p, v, x, y, h);
        if (exposed) draw_exposed(p, v, x, y, h);
        scene_rect(
            p->s, at, 0,
            (Look){ROLE_NONE, coll ? ROLE_COLL_LINE : ROLE_COMPUTE_LINE, b - a > 4 ? 1.25 : 0.6});
        if (wrong_number(p->wrong, x->e->step))
            wrong_border(scene_rect(p->s, at, 0, (Look){ROLE_NONE, ROLE_FAIL, 3}), &p->legend);
    }
    if (text) {
        double w = scene_width(p->s, 12, coll ? REGULAR : MEDIUM, text), mid = (a + b) / 2;
        const double from = fmax(mid - w / 2 - 3, stops), to = mid + w / 2 + 3;
        if (exposed &&
            to > from) /* off the hatch, and off nothing else: its fill says what waits */
            scene_rect(p->s, (Area){from, y + 2, to - from, h - 4}, 0,
                       (Look){ROLE_COLL, ROLE_NONE, 0});
        scene_text(p->s, mid, y + h / 2 + 4.3,
                   (TextLook){ALIGN_MIDDLE, 12, coll ? REGULAR : MEDIUM, ROLE_INK}, text);
    }
    scene_end(p->s);
}

/* The event of the step, or the first after it where nothing is done: `missing`. */
static const TimeEvent *event_of(const Stave *v, int step, bool *missing) {
    const TimeEvent *next = NULL;
    for (int i = 0; i < v->t->n_events; i++) {
        const TimeEvent *x = &v->t->event[i];
        if (x->e->step == step) {
            *missing = false;
            return x;
        }
        if (x->e->step > step && (!next || x->e->start < next->e->start)) next = x;
    }
    *missing = true;
    return next;
}

/* A red dot with the words of a flag, where there is no room for one. */
static void small_flag(TimePen *p, const WrongNote *note, int step, double x, double y) {
    scene_begin(p->s, "wrong", arena_printf(p->c->arena, "wrong-%d", step), note->text);
    scene_frame(p->s, x - 4, y - 4, 8, 8);
    scene_circle(p->s, x, y, 3.5, (Look){ROLE_FAIL, ROLE_NONE, 0});
    scene_end(p->s);
}

/* A step that is left out: a red line between the cells where it would run. */
static void flag_missing(TimePen *p, const Stave *v, const WrongNote *note, int step, double x) {
    double end = v->y + p->look->compute;
    scene_begin(p->s, "missing", arena_printf(p->c->arena, "missing-%d", step), note->text);
    scene_segment(p->s, (Pt){x, v->y}, (Pt){x, end}, ROLE_FAIL, 2.5);
    scene_end(p->s);
    small_flag(p, note, step, x, end + 2);
    p->legend |= 1u << LEGEND_WRONG;
}

/* The flags of wrong steps at their events: left of the words, or in the middle. */
static void flag_wrong(TimePen *p, const Stave *v) {
    for (int i = 0; i < p->wrong->n; i++)
        for (int k = 0; k < p->wrong->note[i].n; k++) {
            bool missing;
            const WrongNote *note = &p->wrong->note[i];
            const int step = note->step[k];
            const TimeEvent *x = event_of(v, step, &missing);
            if (!x || !in_line(v, x)) continue;
            if (missing) {
                flag_missing(p, v, note, step, time_x(p, v, x->e->start));
                continue;
            }
            const int lane = timeline_lane(v->t, x->e);
            double a = time_x(p, v, works_from(x)), b = time_x(p, v, x->e->end),
                   y = lane_y(p, v, lane) + lane_h(p, lane) / 2;
            const bool words = inside_text(p, v, x), beside = flag_fits(p, v, x);
            if (words && !beside) small_flag(p, note, step, a + 5, lane_y(p, v, lane) - 3);
            else if (b - a < 20) small_flag(p, note, step, (a + b) / 2, y);
            else wrong_flag(p->s, p->wrong, step, beside ? a + 12 : (a + b) / 2, y);
        }
}

typedef struct {
    double a, b; /* px */
} Span;

/* ---- labels of compute: above, for neighbours that are too narrow ---- */

/* Narrow kernels that touch each other. */
typedef struct {
    const char *name, *brief;
    Span at;
} Narrow;
typedef struct {
    Narrow *k;
    int n, cap;
} Narrows;

enum { LABEL_REACH = 28 }; /* px that words above a run reach over its neighbours at most */
/* Where words stand above the kernels of a line. */
typedef struct {
    Span *at;
    int n, cap;
} Taken;
/* Words above a run of narrow kernels, over a leader as wide as the run: it says which kernels they
 * name. Moved aside by the words beside them; false: they would not stand above the leader's
 * middle, or reach too far over what they do not name. */
static bool label_above(TimePen *p, const Stave *v, const char *text, Span run, Taken *taken) {
    enum { GAP = 8 };
    const double size = fmax(11.5, p->s->min_size), w = scene_width(p->s, size, REGULAR, text),
                 mid = (run.a + run.b) / 2;
    Span room = {p->x0, p->right};
    for (int i = 0; i < taken->n; i++) {
        const Span at = taken->at[i];
        if ((at.a + at.b) / 2 < mid) room.a = fmax(room.a, at.b + GAP);
        else room.b = fmin(room.b, at.a - GAP);
    }
    const double x = fmax(fmin(mid - w / 2, room.b - w), room.a);
    if (!*text || x > mid || x + w < mid || x + w > room.b ||
        fmax(run.a - x, x + w - run.b) > LABEL_REACH)
        return false;
    scene_begin(p->s, "leader", "leader", NULL);
    scene_text(p->s, x, v->y - 7, (TextLook){ALIGN_LEFT, size, REGULAR, ROLE_INK}, text);
    double y = v->y - 3.5;
    scene_segment(p->s, (Pt){run.a, y}, (Pt){run.b, y}, ROLE_SECOND, 1)->ground = true;
    scene_end(p->s);
    *ARENA_PUSH(p->c->arena, taken->at, taken->n, taken->cap) = (Span){x, x + w};
    return true;
}

/* What of a name its neighbour has not said: `part 2 dk` behind `part 2 dq` is dk. */
static const char *unsaid(const char *name, const char *before) {
    size_t k = 0;
    for (size_t i = 0; before && before[i] && before[i] == name[i]; i++)
        if (name[i] == ' ') k = i + 1;
    return name + k;
}
/* Both gradients of one matrix after another? */
static bool in_pairs(const Narrow *k, int n) {
    bool pairs = n >= 4 && n % 2 == 0;
    for (int i = 0; pairs && i < n; i += 2)
        pairs = !strncmp(k[i].name, "dx ", 3) && *k[i + 1].name == 'd' &&
                !strcmp(k[i].name + 3, k[i + 1].name + 1 + strspn(k[i + 1].name + 1, " "));
    return pairs;
}
/* "wq wk wv", "dx w2 dw2", of several matrices "dx, dw: wv wk wq"; what stands three times "add ×
 * 3"; brief: by what each is called where room is short. */
static const char *run_text(Arena *a, const Narrow *k, int n, bool brief) {
    const bool pairs = in_pairs(k, n);
    Str s = str_new(a);
    if (pairs) str_add(&s, "dx, dw:");
    for (int i = 0, same = 1; i < n; i += same, same = 1) {
        const Narrow *before = i ? &k[i - 1] : NULL;
        if (pairs) {
            same = 2;
            str_addf(&s, " %s", unsaid(k[i].name + 3, i ? k[i - 2].name + 3 : NULL));
            continue;
        }
        while (i + same < n && !strcmp(k[i].name, k[i + same].name)) same++;
        const bool cut = brief && strcmp(k[i].brief, k[i].name) != 0;
        /* a word for two things says neither: "moment" of the first and the second */
        if (cut && before && !strcmp(before->brief, k[i].brief)) return "";
        str_addf(&s, "%s%s", i ? " " : "",
                 cut ? k[i].brief : unsaid(k[i].name, before ? before->name : NULL));
        if (same > 1) str_addf(&s, " × %d", same);
    }
    return s.s;
}
/* One label for all of a run if it stands above it; else as many from the left as have one. */
static void label_run(TimePen *p, const Stave *v, const Narrows *run, Taken *taken) {
    for (int i = 0, used = 0; i < run->n; i += used ? used : 1, used = 0)
        for (int n = run->n - i; n > 0 && !used; n--)
            for (int brief = 0; brief < 2 && !used; brief++) {
                const Span at = {run->k[i].at.a, run->k[i + n - 1].at.b};
                const char *text = run_text(p->c->arena, run->k + i, n, brief);
                if (label_above(p, v, text, at, taken)) used = n;
            }
}
enum { SMALL_NAMED = 24 }; /* px from which on a small kernel is named too */
static void label_some(TimePen *p, const Stave *v, bool small, Taken *taken) {
    Narrows run = {0};
    for (int i = 0; i <= v->t->n_events; i++) {
        const TimeEvent *x = i < v->t->n_events ? &v->t->event[i] : NULL;
        if (x && (timeline_lane(v->t, x->e) > 0 || !in_line(v, x))) continue;
        const Span at = {x ? time_x(p, v, x->e->start) : 0, x ? time_x(p, v, x->e->end) : 0};
        bool own = x && x->small == small && !inside_text(p, v, x);
        const Narrow *last = run.n ? &run.k[run.n - 1] : NULL;
        if (last && (!own || at.a - last->at.b > 3)) {
            label_run(p, v, &run, taken);
            run.n = 0;
        }
        if (!own || (small && at.b - at.a < SMALL_NAMED)) continue;
        *ARENA_PUSH(p->c->arena, run.k, run.n, run.cap) = (Narrow){x->name, x->brief, at};
    }
}
/* Products and attention first: the other kernels have what room is left. */
static void label_computes(TimePen *p, const Stave *v) {
    Taken taken = {0};
    label_some(p, v, false, &taken);
    label_some(p, v, true, &taken);
}

/* ---- labels of collectives beside them: right, left, by a number; neighbours of one kind share
 * one
 * ---- */

enum { NAMED = 4 }; /* names that a label has at most */
typedef struct {
    double a, b;                    /* px */
    const char *name[NAMED], *code; /* names that differ, the first of them */
    const TimeEvent *first;
    double cell; /* px of the first event's right end */
    double seconds;
    int n, names;
    bool equal, goes_on; /* equal durations; continues in the next line */
    bool inside;         /* has its words inside */
} Cluster;

/* What stands beside a cluster: name and time, the name; or the number before its name in the list
 * under the line, with what it does or alone. */
typedef enum { WORDS_TIME, WORDS_NAME, WORDS_NUMBER_CODE, WORDS_NUMBER, WORDS_FORMS } WordsForm;
/* Where the words of a cluster stand: at its right, at its left, a number in its first cell. */
typedef enum { AT_NONE, AT_RIGHT, AT_LEFT, AT_CELL } WordsPlace;
typedef struct {
    WordsForm form;
    WordsPlace at;
    int number; /* in the list; 0: it is not there */
    double w;
} Beside;

static const char *cluster_text(Arena *a, const Cluster *k, WordsForm form, int number) {
    Str s = str_new(a);
    if (form == WORDS_NUMBER) return arena_printf(a, "%d", number);
    if (form == WORDS_NUMBER_CODE)
        return arena_printf(a, "%d %s", number, k->code && *k->code ? k->code : k->name[0]);
    str_add(&s, k->name[0]);
    size_t skip = k->code ? strlen(k->code) : 0;
    for (int i = 1; i < k->names && i < NAMED; i++) str_addf(&s, ",%s", k->name[i] + skip);
    if (form == WORDS_TIME) {
        if (k->n > 1 && k->equal) str_addf(&s, "  %d × %s", k->n, time_text(k->seconds, a));
        if (k->n == 1) str_addf(&s, "  %s", time_text(k->seconds, a));
    }
    if (k->goes_on) str_add(&s, " →");
    return s.s;
}

static bool has_name(const Cluster *k, const char *name) {
    bool has = false;
    for (int i = 0; i < k->names && i < NAMED; i++) has |= !strcmp(k->name[i], name);
    return has;
}
/* Does an event of a name from a to b belong to what stands before it? As wide as a label, or one
 * whose name the label has: the hops of a ring. */
static bool joins(const Cluster *k, const TimeEvent *x, double a, double b) {
    bool narrow = b - a < 60 && k->b - k->a < 60;
    return a - k->b < 16 && !strcmp(k->code, x->code) && (narrow || has_name(k, x->name));
}
/* The events of a lane in this line; close ones with the same code are one cluster. */
static int clusters(TimePen *p, const Stave *v, int lane, Cluster *k) {
    int n = 0;
    for (int i = 0; i < v->t->n_events; i++) {
        const TimeEvent *x = &v->t->event[i];
        if (timeline_lane(v->t, x->e) != lane || !in_line(v, x)) continue;
        double a = time_x(p, v, x->e->start), b = time_x(p, v, x->e->end), d = works_for(x);
        Cluster *last = n && !k[n - 1].inside ? &k[n - 1] : NULL;
        bool inside = inside_text(p, v, x) || waiting_text(p, v, x);
        if (last && !inside && joins(last, x, a, b)) {
            if (!has_name(last, x->name) && last->names++ < NAMED)
                last->name[last->names - 1] = x->name;
            last->n++;
            last->equal &= fabs(d - last->seconds) < 0.02 * d;
            last->b = b;
            continue;
        }
        if (n >= MAX_EVENT_LABELS) break;
        k[n] = (Cluster){.a = a,
                         .b = b,
                         .name = {x->name},
                         .code = x->code,
                         .first = x,
                         .cell = b,
                         .seconds = d,
                         .n = 1,
                         .names = 1,
                         .equal = true,
                         .goes_on = x->e->end > v->l->end * (1 + 1e-12),
                         .inside = inside};
        n++;
    }
    return n;
}

static double beside_from(const Cluster *k, const Beside *b) {
    return b->at == AT_LEFT ? k->a - 6 - b->w : k->a;
}
static double beside_to(const Cluster *k, const Beside *b) {
    return b->at == AT_RIGHT ? k->b + 6 + b->w : k->b;
}
/* Gives cluster i of n words of that form, beside what its neighbours have, or a number in its own
 * cell; false: no room. */
static bool put_beside(TimePen *p, const Cluster *k, Beside *b, int i, int n, WordsForm form) {
    const double size = fmax(11.5, p->s->min_size),
                 w = scene_width(p->s, size, REGULAR,
                                 cluster_text(p->c->arena, &k[i], form, b[i].number));
    /* nearer to its own cell than to another's */
    const double from = i ? beside_to(&k[i - 1], &b[i - 1]) + 14 : p->x0 + 2,
                 to = i + 1 < n ? beside_from(&k[i + 1], &b[i + 1]) - 10 : p->right;
    const bool cell = form == WORDS_NUMBER && k[i].first->e->wait <= 0 &&
                      w + 6 <= k[i].cell - k[i].a && !wrong_number(p->wrong, k[i].first->e->step);
    WordsPlace at = cell                     ? AT_CELL
                    : k[i].b + 6 + w <= to   ? AT_RIGHT
                    : k[i].a - 6 - w >= from ? AT_LEFT
                                             : AT_NONE;
    if (at) b[i] = (Beside){form, at, b[i].number, w};
    return at != AT_NONE;
}
/* The clusters of a lane and where their words stand: first as many as can have names, then the
 * numbers of the others; *number: how many have one in this line so far. */
static int lay_words(TimePen *p, const Stave *v, int lane, Cluster *k, Beside *b, int *number) {
    int n = clusters(p, v, lane, k);
    for (int i = 0; i < n; i++) b[i] = (Beside){0};
    for (int i = 0; i < n; i++)
        if (!k[i].inside && k[i].names <= NAMED) put_beside(p, k, b, i, n, WORDS_NAME);
    for (int i = 0; i < n; i++)
        if (!k[i].inside && !b[i].at) b[i].number = ++*number;
    for (WordsForm form = WORDS_NUMBER_CODE; form < WORDS_FORMS; form++)
        for (int i = 0; i < n; i++)
            if (b[i].number && !b[i].at) put_beside(p, k, b, i, n, form);
    return n;
}
/* The numbers that stand in cells, per event. */
static const int *cell_numbers(TimePen *p, const Stave *v) {
    int *of = ARENA_ARRAY(p->c->arena, int, v->t->n_events + 1), number = 0;
    for (int lane = 1; lane < v->t->n_lanes && lane < 64; lane++) {
        Cluster k[MAX_EVENT_LABELS];
        Beside b[MAX_EVENT_LABELS];
        const int n = v->lane_row[lane] < 0 ? 0 : lay_words(p, v, lane, k, b, &number);
        for (int i = 0; i < n; i++)
            if (b[i].at == AT_CELL) of[k[i].first - v->t->event] = b[i].number;
    }
    return of;
}
/* Where room is left, names say the time too. */
static void label_lane(TimePen *p, const Stave *v, int lane, int *number) {
    Cluster k[MAX_EVENT_LABELS];
    Beside b[MAX_EVENT_LABELS];
    int n = lay_words(p, v, lane, k, b, number);
    const double y = lane_y(p, v, lane) + p->look->comm / 2 + 4.2,
                 size = fmax(11.5, p->s->min_size);
    for (int i = 0; i < n; i++) {
        if (k[i].inside || !b[i].at || b[i].at == AT_CELL) continue;
        const Beside named = b[i];
        b[i].at = AT_NONE;
        if (named.form != WORDS_NAME || !put_beside(p, k, b, i, n, WORDS_TIME)) b[i] = named;
        const bool right = b[i].at == AT_RIGHT;
        scene_text(p->s, right ? k[i].b + 6 : k[i].a - 6, y,
                   (TextLook){right ? ALIGN_LEFT : ALIGN_RIGHT, size, REGULAR, ROLE_INK},
                   cluster_text(p->c->arena, &k[i], b[i].form, b[i].number));
    }
}

/* The names of a lane's events from px a to b, each behind `before`: "AR dwv, AR dwk × 2". */
static void list_events(TimePen *p, const Stave *v, int lane, double a, double b, Str *s) {
    const char *before = NULL;
    int same = 0;
    for (int i = 0; i < v->t->n_events; i++) {
        const TimeEvent *x = &v->t->event[i];
        if (timeline_lane(v->t, x->e) != lane || !in_line(v, x)) continue;
        const double at = time_x(p, v, x->e->start);
        if (at < a - 1e-9 || (at > a + 1e-9 && at >= b - 1e-9)) continue;
        if (before && !strcmp(before, x->name)) {
            same++;
            continue;
        }
        if (same) str_addf(s, " × %d", same + 1);
        str_addf(s, "%s%s", before ? ", " : "", x->name);
        before = x->name;
        same = 0;
    }
    if (same) str_addf(s, " × %d", same + 1);
}
/* "tp: 1 RS after wo, 2 AG k × 2; dp: 3 AR dw2": what has a number at its place, and what comes
 * behind as much as can have words. */
static const char *numbers_text(TimePen *p, const Stave *v) {
    Arena *a = p->c->arena;
    Str s = str_new(a);
    int number = 0;
    for (int lane = 1; lane < v->t->n_lanes && lane < 64; lane++) {
        Cluster k[MAX_EVENT_LABELS];
        Beside b[MAX_EVENT_LABELS];
        bool any = false;
        if (v->lane_row[lane] < 0) continue;
        const int n = lay_words(p, v, lane, k, b, &number);
        for (int i = 0; i <= n; i++) {
            const bool rest = i == n && n == MAX_EVENT_LABELS;
            if (!rest && (i == n || !b[i].number)) continue;
            if (!any)
                str_addf(&s, "%s%s:", s.n ? "; " : "",
                         words_axis_list(a, v->t->trace, v->t->lane[lane].axis));
            if (rest) str_addf(&s, "%s then ", any ? "," : "");
            else str_addf(&s, "%s %d ", any ? "," : "", b[i].number);
            any = true;
            list_events(p, v, lane, rest ? k[n - 1].b : k[i].a, rest ? p->right : k[i].b, &s);
        }
    }
    return s.n ? s.s : "";
}
enum { LIST_LINES = 4, LIST_STEP = 15 };
/* In lines under the axis; their number. */
static int numbers_lines(TimePen *p, const Stave *v, const char **line) {
    const char *text = numbers_text(p, v);
    const TextColumn at = {p->right - p->x0, fmax(11.5, p->s->min_size), REGULAR, LIST_LINES, NULL};
    return *text ? scene_wrap(p->s, text, at, line) : 0;
}
static double list_top(const TimePen *p, const Stave *v) {
    return v->bottom + p->look->ticks + (p->look->margin_w > 0 ? 0 : 20);
}
static void draw_list(TimePen *p, const Stave *v) {
    const char *line[LIST_LINES];
    int n = numbers_lines(p, v, line);
    for (int i = 0; i < n; i++)
        scene_text(p->s, p->x0, list_top(p, v) + 11 + i * LIST_STEP,
                   (TextLook){ALIGN_LEFT, fmax(11.5, p->s->min_size), REGULAR, ROLE_SECOND},
                   line[i]);
}

/* ---- the margin ---- */

static void bar(TimePen *p, const TraceTimes *s, double x, double y, double w, double h) {
    double a = s->span > 0 ? w * s->compute / s->span : 0,
           b = s->span > 0 ? w * s->exposed / s->span : 0;
    scene_rect(p->s, (Area){x, y, a, h}, 0, (Look){ROLE_COMPUTE, ROLE_NONE, 0});
    if (b > 0.2) {
        scene_rect(p->s, (Area){x + a, y, b, h}, 0, (Look){ROLE_COLL, ROLE_NONE, 0});
        scene_hatch(p->s, (Area){x + a, y, b, h}, ROLE_COLL_LINE, 3.5, 1);
    }
    if (w - a - b > 0.2) figure_waiting(p->s, (Area){x + a + b, y, w - a - b, h});
    scene_rect(p->s, (Area){x, y, w, h}, 0, (Look){ROLE_NONE, ROLE_INK, 1.25});
}

/* The numbers of a line: waiting where ranks wait for each other. */
enum { MAX_SUMS = 5 };
typedef struct {
    double t;
    const char *what;
} Sum;
/* Compute alone needs no bar. */
static bool nothing_sent(const TraceTimes *s) { return s->comm <= 0 && s->waiting <= 0; }
static int sums_of(const TraceTimes *s, Sum *row) {
    int n = 0;
    row[n++] = (Sum){s->compute, "compute"};
    if (nothing_sent(s)) return n;
    row[n++] = (Sum){s->exposed, "exposed"};
    if (s->waiting > 0) row[n++] = (Sum){s->waiting, "waiting"};
    row[n++] = (Sum){s->hidden, "hidden"};
    if (s->beside > 0) row[n++] = (Sum){s->beside, "beside"};
    return n;
}
static double sums_height(const TraceTimes *s) {
    return nothing_sent(s) ? 20 : 96 + 19 * ((s->waiting > 0) + (s->beside > 0));
}
/* "181 ms compute, 1.1 ms exposed, 82.6 ms waiting, 1.25 ms hidden", in a row beside a bar. */
static void draw_sums_below(TimePen *p, const Stave *v, const Sum *row, int n) {
    double y = v->bottom + 26, room, w = n > 3 ? 72 : 120;
    Str s;
    do {
        s = str_new(p->c->arena);
        for (int i = 0; i < n; i++)
            str_addf(&s, "%s%s %s", i ? ", " : "", time_text(row[i].t, p->c->arena), row[i].what);
        room = p->right - p->x0 - w - 10;
    } while (scene_width(p->s, 12, REGULAR, s.s) > room && --n > 1);
    if (nothing_sent(&v->l->sum)) w = -10;
    else bar(p, &v->l->sum, p->x0, y, w, 12);
    scene_text(p->s, p->x0 + w + 10, y + 10, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, s.s);
}
static void draw_sums(TimePen *p, const Stave *v) {
    Arena *a = p->c->arena;
    const TraceTimes *s = &v->l->sum;
    Sum row[MAX_SUMS];
    int n = sums_of(s, row);
    const char *waiting =
        s->waiting > 0 ? arena_printf(a, ", waiting for other ranks %s", time_text(s->waiting, a))
                       : "";
    const char *beside =
        s->beside > 0 ? arena_printf(a, ", behind other communication %s", time_text(s->beside, a))
                      : "";
    scene_begin(
        p->s, "sums", arena_printf(a, "sums-%s", v->l->title),
        arena_printf(
            a, "%s: compute %s%s and exposed communication %s make %s; hidden communication %s%s",
            v->l->title, time_text(s->compute, a), waiting, time_text(s->exposed, a),
            time_text(s->span, a), time_text(s->hidden, a), beside));
    if (p->look->margin_w > 0) {
        double x = p->s->w - presets[PRESET_WIDE].margin - 148, mid = x + 66, y = v->y + 10;
        for (int i = 0; i < n; i++, y += 19) {
            scene_text(p->s, mid, y, (TextLook){ALIGN_RIGHT, 12, MEDIUM, ROLE_INK},
                       time_text(row[i].t, a));
            scene_text(p->s, mid + 8, y, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                       row[i].what);
        }
        if (nothing_sent(s)) {
            scene_end(p->s);
            return;
        }
        bar(p, s, x, y - 6, 148, 16);
        bool waits = s->waiting > s->exposed; /* what compute waits for most */
        scene_textf(p->s, x, y + 27, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_COLL_WORD},
                    "%s %s", percent_text(a, waits ? s->waiting : s->exposed, s->span),
                    waits ? "waiting" : "exposed");
    } else draw_sums_below(p, v, row, n);
    scene_end(p->s);
}

/* ---- lines and pages ---- */

static double stave_height(TimePen *p, const Timeline *t, const TimeLine *l) {
    Stave v = {.t = t, .l = l};
    lay_lanes(p, &v);
    const char *line[LIST_LINES];
    double lanes = v.bottom - v.y + p->look->ticks + LIST_STEP * numbers_lines(p, &v, line);
    if (p->look->margin_w > 0) lanes = fmax(lanes, sums_height(&l->sum));
    return p->look->head + p->look->over + lanes + p->look->below;
}

/* "tp {0,1}" */
static const char *lane_text(Arena *a, const Timeline *t, int lane, bool members) {
    if (lane == 0) return "compute";
    const char *axis = words_axis_list(a, t->trace, t->lane[lane].axis);
    return members ? arena_printf(a, "%s %s", axis, t->lane[lane].members) : axis;
}
/* Lanes of axes with long names get the room that tells them apart, from that of the axis. */
static TimeLook look_of(const ViewCall *c, Scene *s, const Timeline *t, int n, PresetKind preset) {
    TimeLook look = looks[preset];
    double need = look.label_w, usual = need;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < t[k].n_lanes && i < 64; i++) {
            double w = scene_width(s, 12, MEDIUM, lane_text(c->arena, &t[k], i, false));
            if (w > usual + 4) need = fmax(need, w + 2);
        }
    if (look.axis_w <= 0) return look; /* a column has no room to give */
    look.label_w = fmin(need, fmax(usual, s->w * 0.24));
    look.axis_w -= look.label_w - usual;
    return look;
}

/* What stands beside a line's title; `folded`: of how many equal lines it stands for. */
static const char *line_words(const TimePen *p, const Timeline *t, const TimeLine *l,
                              const char *who, const char *folded) {
    Arena *a = p->c->arena;
    const char *more = l->same && !t->step ? arena_printf(a, " · %d %s", l->same, folded) : "";
    const char *wide = p->times > 1 ? arena_printf(a, " · drawn %d× as wide", p->times) : "";
    return arena_printf(a, "%s%s%s%s%s", time_text(l->end - l->start, a), wide, more,
                        *who ? " · " : "", who);
}
static double draw_stave(TimePen *p, const Timeline *t, const TimeLine *l, double y, double longest,
                         const char *who) {
    Arena *a = p->c->arena;
    Stave v = {.t = t, .l = l, .y = y + p->look->head + p->look->over};
    double left = presets[PRESET_WIDE].margin;
    left = p->x0 - p->look->label_w - 8;
    lay_lanes(p, &v);
    scene_begin(p->s, "line", arena_printf(a, "line-%s", l->title), NULL);
    double w = scene_text(p->s, left, y + 15, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, l->title);
    double x = left + w + 12, beside = p->s->w - presets[PRESET_COLUMN].margin - x;
    const char *about = line_words(p, t, l, who, "more like it are folded");
    if (scene_width(p->s, 13, REGULAR, about) > beside)
        about = line_words(p, t, l, who, "are folded");
    scene_text(p->s, x, y + 15, (TextLook){ALIGN_LEFT, 13, REGULAR, ROLE_SECOND},
               scene_fit(p->s, about, beside, 13, REGULAR));
    v.number = cell_numbers(p, &v);
    draw_waits(p, &v);
    draw_axis(p, &v, longest, true);
    for (int i = 0; i < t->n_lanes && i < 64; i++) {
        if (v.lane_row[i] < 0) continue;
        const char *text = lane_text(a, t, i, true);
        double room = p->look->label_w + 4;
        if (scene_width(p->s, 12, MEDIUM, text) > room) text = lane_text(a, t, i, false);
        Role role = i ? ROLE_AXIS_TEXT + theme_axis(words_color_axis(a, t->trace, t->lane[i].axis,
                                                                     t->lane[i].axes))
                      : ROLE_INK;
        scene_text(p->s, p->x0 - 10, lane_y(p, &v, i) + lane_h(p, i) / 2 + 4.3,
                   (TextLook){ALIGN_RIGHT, 12, MEDIUM, role},
                   scene_fit(p->s, text, room, 12, MEDIUM));
    }
    for (int i = 0; i < t->n_events; i++)
        if (in_line(&v, &t->event[i])) draw_event(p, &v, &t->event[i]);
    flag_wrong(p, &v);
    label_computes(p, &v);
    int number = 0;
    for (int i = 1; i < t->n_lanes && i < 64; i++)
        if (v.lane_row[i] >= 0) label_lane(p, &v, i, &number);
    draw_list(p, &v);
    draw_sums(p, &v);
    scene_end(p->s);
    return y + stave_height(p, t, l);
}

/* Of one timeline, or of all. */
static double longest_line(const TimeItem *item, int from, int to, const Timeline *of) {
    double longest = 0;
    for (int i = from; i < to; i++)
        if (!of || item[i].t == of) longest = fmax(longest, item[i].l->end - item[i].l->start);
    return longest > 0 ? longest : 1e-9;
}

/* What all pages of the view show: n timelines, what is folded or left out beside them, and their
 * lines. */
typedef struct Shown {
    const ViewCall *c;
    PresetKind preset;
    const Timeline *t;
    int n;
    TimeFold folded;
    TimeItem *item;
    int n_items;
    const struct Shown *peer; /* of the figure beside this one, at the same scale; NULL: none */
} Shown;

/* A line that would leave most of its row empty is drawn a round number of times as wide as the
 * scale of the longest, the same part of other ranks too; beside each it says how many, so that
 * lengths can still be compared. */
static int times_wide(const Shown *v, const TimeItem *item, double longest) {
    static const int round[] = {100, 50, 20, 10, 5, 4, 3, 2};
    double own = 0;
    for (const Shown *of = v; of; of = of->peer)
        for (const TimeItem *x = of->item; x < of->item + of->n_items; x++)
            if (!strcmp(x->l->title, item->l->title)) own = fmax(own, x->l->end - x->l->start);
    for (size_t i = 0; i < sizeof round / sizeof *round && own > 0; i++)
        if (own * round[i] <= longest) return round[i];
    return 1;
}

/* The longest of the lines that share a scale with line i, of those on its page from `from` to
 * before `to`. */
static double scale_line(const Shown *v, int i, int from, int to) {
    if (v->c->o->measured) return longest_line(v->item, 0, v->n_items, v->item[i].t);
    if (v->preset == PRESET_SLIDE && !v->peer) /* slides are looked at one by one */
        return longest_line(v->item, from, to, NULL);
    double own = longest_line(v->item, 0, v->n_items, NULL);
    return v->peer ? fmax(own, longest_line(v->peer->item, 0, v->peer->n_items, NULL)) : own;
}

static void subtitle(const Shown *v, const char **part) {
    const ViewCall *c = v->c;
    const Timeline *t = v->t;
    int n = v->n, lines = v->n_items;
    bool pages = v->preset == PRESET_SLIDE && lines > 2 && !v->peer; /* each has its own scale */
    Arena *a = c->arena;
    const char *model = words_model(a, c->t);
    int k = 0, all = n + v->folded.same + v->folded.left;
    part[k++] = model ? model : "";
    part[k++] = words_data(a, c->t);
    part[k++] = words_mesh(a, c->t);
    part[k++] = t->step          ? "lines: one micro-batch on a stage"
                : c->o->measured ? timeline_ranks(&t[n - 1], a)
                : all == 1
                    ? arena_printf(a, "one class: all %lld rank%s run%s the same program",
                                   (long long)c->t->ranks, c->t->ranks == 1 ? "" : "s",
                                   c->t->ranks == 1 ? "s" : "")
                    : arena_printf(a, "%s first, one of %d classes%s", timeline_ranks(&t[0], a),
                                   all, timeline_folded(a, v->folded));
    bool wide = false;
    for (int i = 0; i < lines; i++)
        wide |= times_wide(v, &v->item[i], scale_line(v, i, 0, lines)) > 1;
    part[k++] =
        v->peer && !c->o->measured
            ? arena_printf(a, "%s, both plans at one scale%s", timeline_kind(c),
                           wide ? ", wider where a line says so" : "")
        : lines > 1 && !c->o->measured
            ? arena_printf(a, "%s, %d lines at one scale%s%s", timeline_kind(c), lines,
                           pages ? " per page" : "", wide ? ", wider where a line says so" : "")
            : timeline_kind(c);
    part[k] = NULL;
}

/* "AG AllGather, RS ReduceScatter": of what the lines and sentences name; messages of a pipeline
 * stand in the schedule alone. */
static const char *codes(const Timeline *t, Arena *a) {
    Str s = str_new(a);
    for (int i = 0; i < t->n_events; i++) {
        const TimeEvent *e = &t->event[i];
        bool named = e->coll && !(e->aside && timeline_is_message(e));
        const CollWord *w = named ? coll_word(e->coll->op) : NULL;
        named = w && strcmp(w->code, w->name) != 0; /* else it is no abbreviation */
        const char *one = named ? arena_printf(a, "%s %s", w->code, w->name) : "";
        if (*one && !strstr(s.s, one)) str_addf(&s, "%s%s", s.n ? ", " : "", one);
    }
    return s.s;
}

/* "Forward, loss", "Forward, loss, then backward, loss and head", "Backward, attention, to
 * embedding" of lines from `from` to before `to`: of more than two the first and the last. */
static const char *lines_title(const Shown *v, int from, int to) {
    Arena *a = v->c->arena;
    const char *first = v->item[from].l->title, *last = v->item[to - 1].l->title;
    const size_t pass = strcspn(first, ",");
    if (!strcmp(first, last)) return first;
    char *low = arena_strdup(a, last);
    if (*low >= 'A' && *low <= 'Z') *low = (char)(*low - 'A' + 'a');
    const bool same = !strncmp(first, last, pass) && last[pass] == ',';
    return arena_printf(a, "%s, %s %s", first, to - from == 2 ? "then" : "to",
                        same ? low + pass + 2 : low);
}
/* What a slide behind the first shows: "Backward, MLP: compute waits 2.5 % of 213 µs", of several
 * lines of one class of their sum, of lines of several classes from the least to the most. */
static const char *slide_title(const Shown *v, int from, int to) {
    Arena *a = v->c->arena;
    double still = 0, span = 0, least = 1, most = 0;
    bool one = true;
    for (int i = from; i < to; i++) {
        const TraceTimes *s = &v->item[i].l->sum;
        double own = s->exposed + s->waiting, share = s->span > 0 ? own / s->span : 0;
        still += own, span += s->span;
        least = fmin(least, share), most = fmax(most, share);
        one &= v->item[i].t == v->item[from].t;
    }
    const char *what = lines_title(v, from, to), *ranks = timeline_ranks(v->item[from].t, a);
    if (one && v->n > 1 && !v->t->step && strlen(ranks) < 16)
        what = arena_printf(a, "%s, %s", what, ranks);
    if (most <= 1e-9) return arena_printf(a, "%s: compute never waits", what);
    if (one)
        return arena_printf(a, "%s: compute waits %s of %s", what, percent_text(a, still, span),
                            time_text(span, a));
    return arena_printf(a, "%s: compute waits %s to %s", what, percent_text(a, least, 1),
                        percent_text(a, most, 1));
}
/* A page up to where its lines begin, at the y that is returned; title NULL: that of the figure. */
static double begin_page(const Shown *v, const char *title, TimePen *p, TimeLook *look) {
    static const WrongList nothing = {0}; /* what was measured is not what is modelled of a plan */
    const ViewCall *c = v->c;
    const Preset *pr = &presets[v->preset];
    Scene *s = figure_new(c, "timeline", v->preset);
    *look = look_of(c, s, v->t, v->n, v->preset);
    const WrongList *wrong = wrong_find(c->arena, c->t, NULL, NULL);
    *p = (TimePen){.c = c, .s = s, .look = look, .wrong = c->o->measured ? &nothing : wrong};
    p->x0 = pr->margin + look->label_w + 8;
    p->width = look->axis_w > 0 ? look->axis_w : s->w - pr->margin - p->x0 - 26;
    p->right = look->margin_w > 0 ? s->w - pr->margin - 148 - 12 : s->w - pr->margin;
    const char *sub[8];
    subtitle(v, sub);
    if (!title) title = timeline_title(c, v->t, v->n);
    double y = headline_draw(s, v->preset, p->wrong, title, sub) + 10;
    return wrong_banner(s, c, (Band){pr->margin, s->w - 2 * pr->margin, y});
}
/* What stands below a page's lines, with a foot of that height where the page's is fixed. */
static void end_page(const Shown *v, TimePen *p, double y, double foot) {
    const ViewCall *c = v->c;
    const Preset *pr = &presets[v->preset];
    Scene *s = p->s;
    double w = s->w - 2 * pr->margin;
    y = figure_legend(s, (Band){pr->margin, w, fmax(y - 6, pr->h > 0 ? pr->h - foot : 0)},
                      p->legend);
    const char *hw = c->t->hardware ? c->t->hardware : "";
    const char *of = codes(&v->t[0], c->arena),
               *note = arena_printf(c->arena, "%s%s%s", hw, *hw && *of ? " · " : "", of),
               *totals = timeline_totals(c, v->t, v->n);
    y = figure_foot(s, c, (Band){pr->margin, w, y - (v->preset == PRESET_SLIDE ? 4 : 0)}, totals,
                    note);
    s->desc = arena_printf(c->arena, "Timeline of compute and communication streams. %s%s%s%s",
                           totals, *hw ? " Modelled: " : "", hw, *hw ? "." : "");
    figure_page(s, v->preset, y);
}
/* The schedule of the whole step, under a heading. */
static double draw_schedule(const Shown *v, TimePen *p, double y, double foot) {
    const double left = presets[v->preset].margin, h = presets[v->preset].h;
    const TimeStep *x = v->t->step;
    scene_begin(p->s, "schedule", "schedule", NULL);
    double w = scene_text(p->s, left, y + 15, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK},
                          arena_printf(p->c->arena, "The whole step, %s", p->c->t->schedule));
    scene_text(p->s, left + w + 12, y + 15, (TextLook){ALIGN_LEFT, 13, REGULAR, ROLE_SECOND},
               time_text(x->span, p->c->arena));
    y = pipe_strip(p->c, p->s, y + 26, h > 0 ? h - foot - y - 26 : 0);
    scene_end(p->s);
    return y + 6;
}
/* A slide with the schedule alone. */
static Scene *schedule_page(const Shown *v, double foot) {
    TimePen p;
    TimeLook look;
    double y = begin_page(v, NULL, &p, &look);
    end_page(v, &p, draw_schedule(v, &p, y, foot), foot);
    return p.s;
}
/* The scale of line i on a page of these lines; returns the longest that has it. */
static double set_scale(const Shown *v, TimePen *p, int i, int from, int to) {
    double longest = scale_line(v, i, from, to);
    p->times = v->c->o->measured ? 1 : times_wide(v, &v->item[i], longest);
    p->scale = p->times * p->width / longest;
    return longest;
}
/* Height of lines without the room that keeps the last from the next. */
static double staves_height(const Shown *v, TimePen *p, int from, int to) {
    double h = -p->look->below;
    for (int i = from; i < to; i++) {
        set_scale(v, p, i, from, to);
        h += stave_height(p, v->item[i].t, v->item[i].l);
    }
    return h;
}
/* Of a slide with room to spare the lanes grow: nobody sits near it. */
static void grow_lanes(const Shown *v, TimePen *p, TimeLook *look, int from, int to, double room) {
    const TimeLook usual = *look;
    for (double k = 2; k > 1.04; k -= 0.05) {
        look->compute = k * usual.compute, look->comm = k * usual.comm, look->gap = k * usual.gap;
        if (staves_height(v, p, from, to) <= room) return;
    }
    *look = usual;
}
/* A page with as many lines as fit above a foot of that height (all, where the height is free);
 * returns the index of the first that does not. */
static int draw_page(const Shown *v, int from, double foot, Scene **out) {
    const TimeItem *item = v->item;
    TimePen p;
    TimeLook look;
    double y = begin_page(v, NULL, &p, &look),
           limit = v->preset == PRESET_A4 ? A4_HEIGHT : presets[v->preset].h;
    if (v->t->step && !from && v->preset != PRESET_SLIDE) y = draw_schedule(v, &p, y, foot);
    int to = v->n_items ? from + 1 : from;
    while (to < v->n_items &&
           (limit <= 0 || y + staves_height(v, &p, from, to + 1) + foot <= limit))
        to++;
    if (from && !v->peer && !v->c->o->measured)
        y = begin_page(v, slide_title(v, from, to), &p, &look);
    if (v->preset == PRESET_SLIDE) grow_lanes(v, &p, &look, from, to, limit - foot - y);
    for (int i = from; i < to; i++) {
        double longest = set_scale(v, &p, i, from, to);
        y = draw_stave(&p, item[i].t, item[i].l, y, longest / p.times, item[i].who);
    }
    end_page(v, &p, y - (v->preset == PRESET_SLIDE ? look.below - 6 : 0), foot);
    *out = p.s;
    return to;
}

/* The lines of all classes; what other ranks compute alike and wait as long for stands once. */
static void list_lines(Shown *v) {
    Arena *a = v->c->arena;
    int all = 0;
    for (int i = 0; i < v->n; i++) all += v->t[i].n_lines;
    if (v->t->step) {
        v->n_items = timeline_items(v->c, v->t, v->n, &v->item);
        return;
    }
    v->item = ARENA_ARRAY(a, TimeItem, all + 1);
    for (int i = 0; i < v->n; i++)
        for (int k = 0; k < v->t[i].n_lines; k++) {
            const Timeline *t = &v->t[i];
            const char *who = v->n > 1 || v->c->o->measured ? timeline_who(v->c, t) : "";
            TimeItem *like = v->item, *end = v->item + v->n_items;
            while (like < end && (v->c->o->measured || like->t == t ||
                                  !timeline_as_long(like->t, like->l, t, &t->line[k])))
                like++;
            if (like == end)
                v->item[v->n_items++] = (TimeItem){.t = t, .l = &t->line[k], .who = who};
            else
                like->who = arena_printf(
                    a, strstr(like->who, " as long on ") ? "%s, %s" : "%s, as long on %s",
                    like->who, rankset_text(&t->ranks, a));
        }
}
int view_timeline(const ViewCall *c, Scene **page) {
    const int most = timeline_staged(c) ? TIMELINE_STAGES : MAX_CLASSES;
    Timeline *t = ARENA_ARRAY(c->arena, Timeline, most + 1);
    Shown v = {.c = c, .t = t};
    furniture_preset(c->o->preset, &v.preset);
    v.n = timeline_read(c, t, most, looks[v.preset].kernels, &v.folded);
    int pages = 0;
    if (v.n == 0) return 0;
    list_lines(&v);
    Timeline *far = c->peer ? ARENA_ARRAY(c->arena, Timeline, TIMELINE_STAGES + 1) : NULL;
    ViewCall other = c->peer ? *c->peer : *c;
    other.d = diags_new(c->arena); /* what the other figure lacks is told where it is drawn */
    Shown beside = {.c = &other, .preset = v.preset, .t = far};
    beside.n =
        far ? timeline_read(&other, far, timeline_staged(&other) ? TIMELINE_STAGES : MAX_CLASSES,
                            looks[v.preset].kernels, &beside.folded)
            : 0;
    if (beside.n) list_lines(&beside), v.peer = &beside;
    if (v.t->step && v.preset == PRESET_SLIDE) {
        double foot = FOOT;
        do page[pages] = schedule_page(&v, foot);
        while (page[pages]->scale < 1 && (foot += 17) < FOOT + 120);
        pages++;
    }
    for (int from = 0, next; from < v.n_items && pages < VIEW_MAX_PAGES; pages++, from = next) {
        double foot = FOOT;
        do next = draw_page(&v, from, foot, &page[pages]);
        while (v.preset == PRESET_SLIDE && page[pages]->scale < 1 && (foot += 17) < FOOT + 60);
    }
    Scene *took = c->o->measured && pages < VIEW_MAX_PAGES
                      ? timeline_took(c, v.preset, c->o->rank >= 0 ? c->o->rank : 0)
                      : NULL;
    if (took) page[pages++] = took;
    return pages;
}
