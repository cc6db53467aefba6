/* View `timeline`: compute and communication streams of a rank class. The time line is wrapped like
 * a line of music, all lines at one scale or at a stated number of times that; a pale band shows
 * where compute waits. What ends the wait is hatched; the rest is hidden. Where a collective waits
 * for another rank its stretch is an empty dashed one. Of a pipeline the schedule of the whole step
 * comes first, then one line for all stages that do the same for each micro-batch. */
#include "render/timeline/above.h"
#include "render/timeline/below.h"
#include "render/timeline/messages.h"
#include "render/pipeline/strip.h"
#include "render/timeline/view_took.h"
#include "render/furniture/headline.h"
#include "render/furniture/views.h"
#include <math.h>
#include <string.h>

enum { MAX_CLASSES = 4, A4_HEIGHT = 770 };

enum { FOOT = 132 }; /* legend and footer of a slide with totals and notes of one line */

static const TimeLook looks[PRESET_COUNT] = {
    [PRESET_WIDE] = {84, 780, 176, 22, 16, 28, 18, 6, 22, 26, 24},
    [PRESET_COLUMN] = {70, 0, 0, 22, 16, 28, 18, 6, 22, 42, 12},
    [PRESET_SLIDE] = {80, 640, 176, 20, 16, 32, 22, 6, 20, 18, 12},
    [PRESET_A4] = {84, 780, 176, 22, 16, 28, 18, 6, 22, 26, 24},
};

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
    for (int lane = 1; lane < v->t->n_lanes && lane < STAVE_LANES; lane++) {
        if (!v->has[lane]) continue;
        double y = stave_top(p, v, lane) + p->look->comm;
        Mark *m =
            scene_segment(p->s, (Pt){p->x0, y}, (Pt){stave_x(p, v, v->l->end), y}, ROLE_GRID, 1);
        m->ground = true;
    }
}

/* Pale bands where compute waits. */
static void draw_waits(TimePen *p, const Stave *v) {
    double busy = v->l->start;
    for (int i = 0; i <= v->t->n_events; i++) {
        const TraceEvent *e = i < v->t->n_events ? v->t->event[i].e : NULL;
        if (e && (timeline_lane(v->t, e) > 0 || !stave_in(v, &v->t->event[i]) ||
                  strcmp(e->kind ? e->kind : "", "collective") == 0))
            continue;
        double until = e ? e->start : v->l->end;
        double x = stave_x(p, v, busy), w = stave_x(p, v, until) - x;
        if (until > busy && w > 0.3) {
            scene_begin(p->s, "wait", arena_printf(p->c->arena, "wait-%d", i),
                        arena_printf(p->c->arena, "compute waits %s",
                                     time_text(until - busy, p->c->arena)));
            scene_rect(p->s, (Area){x, v->y - 2, w, v->bottom - v->y + 4}, 0,
                       (Look){ROLE_BAND, ROLE_NONE, 0})
                ->ground = true;
            scene_end(p->s);
            p->legend |= 1u << LEGEND_WAIT;
        }
        if (e) busy = fmax(busy, e->end);
    }
}

/* ---- events ---- */

static const char *event_tip(const TimePen *p, const TimeEvent *x) {
    Arena *a = p->c->arena;
    Str s = str_new(a);
    str_addf(&s, "step %d: %s%s, %s to %s, %s", x->rec->step, x->name,
             timeline_again(x) ? ", again" : "", time_text(x->rec->start, a),
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
    double a = stave_x(p, v, x->e->end - x->e->exposed), w = stave_x(p, v, x->e->end) - a;
    if (w <= 0) return;
    scene_rect(p->s, (Area){a, y, w, h}, 0, (Look){ROLE_COLL, ROLE_NONE, 0});
    scene_hatch(p->s, (Area){a, y, w, h}, ROLE_COLL_LINE, 3.5, 1);
    p->legend |= 1u << LEGEND_EXPOSED;
}

/* The stretch in which a collective waits for the last of its group. */
static void draw_waiting(TimePen *p, const Stave *v, const TimeEvent *x, double y, double h) {
    double a = stave_x(p, v, x->e->start), w = stave_x(p, v, stave_works_from(x)) - a;
    if (w < 0.3) return;
    figure_waiting(p->s, (Area){a, y, w, h});
    p->legend |= 1u << LEGEND_OTHERS;
    const char *text = stave_waiting(p, v, x);
    if (text)
        scene_text(p->s, a + w / 2, y + h / 2 + 4.3,
                   (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, text);
}
/* Of a collective that is beside others for some of its time: where the rank computes. */
static void draw_hidden(TimePen *p, const Stave *v, const TimeEvent *x, double y, double h) {
    const double from = stave_works_from(x), to = x->e->end, eps = 1e-9 * (v->l->end - v->l->start);
    double a = from, b = from;
    for (int i = 0; i <= v->t->n_events; i++) {
        const TimeEvent *k = i < v->t->n_events ? &v->t->event[i] : NULL;
        if (k && (!trace_is_compute(k->e) || k->e->end <= from || k->e->start >= to)) continue;
        if (k && k->e->start <= b + eps) {
            b = fmin(fmax(b, k->e->end), to);
            continue;
        }
        double left = stave_x(p, v, a), w = stave_x(p, v, b) - left;
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
/* A collective that a line cuts has an arrow's head at that end, where its own name leaves room.
 * Returns how far the name gives way to it. */
static double draw_cut(TimePen *p, const Stave *v, const TimeEvent *x, Area at, double text) {
    enum { HEAD = 8, CLEAR = 3 };
    const double eps = 1e-9 * (v->l->end - v->l->start), mid = at.y + at.h / 2;
    const bool before = stave_works_from(x) + eps < v->l->start;
    const bool after = x->e->end - eps > v->l->end;
    const int heads = before + after;
    const double least = text > 0 ? text + heads * HEAD + 2 * CLEAR : 2 * (HEAD + CLEAR);
    if (!heads || at.w < least) return 0;
    if (before) figure_goes_on(p->s, (Pt){at.x + HEAD, mid});
    if (after) figure_goes_on(p->s, (Pt){at.x + at.w - 2, mid});
    p->legend |= 1u << LEGEND_GOES_ON;
    if (heads == 2 || at.w >= text + 2 * (HEAD + CLEAR)) return 0;
    return before ? HEAD / 2.0 : -HEAD / 2.0;
}
/* What stands in an event, its middle at at.x: off the hatch, which begins at `hatch`, and off
 * nothing else: its fill says what waits. */
static void draw_name(TimePen *p, const char *text, Pt at, double h, double hatch, bool coll) {
    const TextLook look = {ALIGN_MIDDLE, 12, coll ? REGULAR : MEDIUM, ROLE_INK};
    const double w = scene_width(p->s, 12, look.weight, text), from = fmax(at.x - w / 2 - 3, hatch),
                 to = at.x + w / 2 + 3;
    if (to > from)
        scene_rect(p->s, (Area){from, at.y + 2, to - from, h - 4}, 0,
                   (Look){ROLE_COLL, ROLE_NONE, 0});
    scene_text(p->s, at.x, at.y + h / 2 + 4.3, look, text);
}
static void draw_event(TimePen *p, const Stave *v, const TimeEvent *x) {
    int lane = timeline_lane(v->t, x->e);
    double a = stave_x(p, v, stave_works_from(x)), b = stave_x(p, v, x->e->end),
           y = stave_top(p, v, lane), h = stave_height(p, lane);
    const double stops = stave_x(p, v, x->e->end - x->e->exposed),
                 eps = 1e-9 * (v->l->end - v->l->start);
    bool coll = lane > 0, exposed = coll && x->e->exposed > 0 && stops < b;
    bool works = x->e->end > v->l->start + eps && stave_works_from(x) < v->l->end;
    const char *text = works ? stave_text(p, v, x) : NULL;
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
    const double aside =
        works && coll ? draw_cut(p, v, x, at, text ? scene_width(p->s, 12, REGULAR, text) : 0) : 0;
    if (x->unlike) figure_unlike(p->s, (Pt){a, y + h + 1}, at.w, NOT_SO, &p->legend);
    if (text) draw_name(p, text, (Pt){(a + b) / 2 + aside, y}, h, exposed ? stops : INFINITY, coll);
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
            if (!x || !stave_in(v, x)) continue;
            if (missing) {
                flag_missing(p, v, note, step, stave_x(p, v, x->e->start));
                continue;
            }
            const int lane = timeline_lane(v->t, x->e);
            double a = stave_x(p, v, stave_works_from(x)), b = stave_x(p, v, x->e->end),
                   y = stave_top(p, v, lane) + stave_height(p, lane) / 2;
            const bool words = stave_text(p, v, x), beside = stave_flag_fits(p, v, x);
            if (words && !beside) small_flag(p, note, step, a + 5, stave_top(p, v, lane) - 3);
            else if (b - a < 20) small_flag(p, note, step, (a + b) / 2, y);
            else wrong_flag(p->s, p->wrong, step, beside ? a + 12 : (a + b) / 2, y);
        }
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

enum { LIST_LINES = 4 };

/* A line with all that stands at it. */
typedef struct {
    Stave v;
    Above above;
    Below below;
    const char *list[LIST_LINES]; /* under the axis: the names of numbers */
    int n_list;
    double height;
} Laid;
static Laid lay_line(const TimePen *p, const TimeItem *item, double y) {
    const TimeLook *look = p->look;
    Laid k = {.v = {.t = item->t, .l = item->l}};
    Stave *v = &k.v;
    stave_find_lanes(v);
    above_lay(p, v, &k.above);
    below_lay(p, v, &k.below);
    v->number = k.below.number;
    v->y = y + look->head + look->over + STAVE_STEP * k.above.rows;
    for (int i = 0; i < STAVE_LANES; i++)
        if (v->has[i]) v->bottom = stave_top(p, v, i) + stave_height(p, i) + v->under[i];
    const TextColumn at = {p->right - p->x0, stave_size(p), REGULAR, LIST_LINES, NULL};
    k.n_list = *k.below.list ? scene_wrap(p->s, k.below.list, at, k.list) : 0;
    double lanes = v->bottom - v->y + look->ticks + STAVE_STEP * k.n_list;
    if (look->margin_w > 0) lanes = fmax(lanes, sums_height(&item->l->sum));
    k.height = v->y - y + lanes + look->below;
    return k;
}
static void draw_list(const TimePen *p, const Laid *k) {
    const double top = k->v.bottom + p->look->ticks + (p->look->margin_w > 0 ? 0 : 20);
    for (int i = 0; i < k->n_list; i++)
        scene_text(p->s, p->x0, top + 11 + i * STAVE_STEP,
                   (TextLook){ALIGN_LEFT, stave_size(p), REGULAR, ROLE_SECOND}, k->list[i]);
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
        for (int i = 0; i < t[k].n_lanes && i < STAVE_LANES; i++) {
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
static void draw_lane_names(const TimePen *p, const Stave *v) {
    const Timeline *t = v->t;
    const double room = p->look->label_w + 4;
    for (int i = 0; i < t->n_lanes && i < STAVE_LANES; i++) {
        if (!v->has[i]) continue;
        const char *text = lane_text(p->c->arena, t, i, true);
        if (scene_width(p->s, 12, MEDIUM, text) > room) text = lane_text(p->c->arena, t, i, false);
        Role role =
            i ? ROLE_AXIS_TEXT + theme_axis(words_color_axis(p->c->arena, t->trace, t->lane[i].axis,
                                                             t->lane[i].axes))
              : ROLE_INK;
        scene_text(p->s, p->x0 - 10, stave_top(p, v, i) + stave_height(p, i) / 2 + 4.3,
                   (TextLook){ALIGN_RIGHT, 12, MEDIUM, role},
                   scene_fit(p->s, text, room, 12, MEDIUM));
    }
}
static double draw_line(TimePen *p, const TimeItem *item, double y, double longest) {
    const Timeline *t = item->t;
    const TimeLine *l = item->l;
    const Laid laid = lay_line(p, item, y);
    const Stave *v = &laid.v;
    const double left = p->x0 - p->look->label_w - 8;
    scene_begin(p->s, "line", arena_printf(p->c->arena, "line-%s", l->title), NULL);
    double w = scene_text(p->s, left, y + 15, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, l->title);
    double x = left + w + 12, beside = p->s->w - presets[PRESET_COLUMN].margin - x;
    const char *about = line_words(
        p, t, l, item->who, l->same == 1 ? "more like it is folded" : "more like it are folded");
    if (scene_width(p->s, 13, REGULAR, about) > beside)
        about = line_words(p, t, l, item->who, l->same == 1 ? "is folded" : "are folded");
    scene_text(p->s, x, y + 15, (TextLook){ALIGN_LEFT, 13, REGULAR, ROLE_SECOND},
               scene_fit(p->s, about, beside, 13, REGULAR));
    draw_waits(p, v);
    draw_axis(p, v, longest, true);
    draw_lane_names(p, v);
    for (int i = 0; i < t->n_events; i++)
        if (stave_in(v, &t->event[i])) draw_event(p, v, &t->event[i]);
    flag_wrong(p, v);
    above_draw(p, v, &laid.above);
    below_draw(p, v, &laid.below);
    draw_list(p, &laid);
    draw_sums(p, v);
    scene_end(p->s);
    return y + laid.height;
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
    bool alone;               /* all is on one slide */
    const struct Shown *peer; /* of the figure beside this one, at the same scale; NULL: none */
} Shown;

/* The most events of a line that are in one lane. */
static int most_in_lane(const Timeline *t, const TimeLine *l) {
    const Stave v = {.t = t, .l = l};
    int n[STAVE_LANES] = {0}, most = 1;
    for (int i = 0; i < t->n_events; i++) {
        const int lane = timeline_lane(t, t->event[i].e);
        if (lane < STAVE_LANES && stave_in(&v, &t->event[i]) && ++n[lane] > most) most = n[lane];
    }
    return most;
}
/* A line that would leave most of its row empty is drawn a round number of times as wide as the
 * scale of the longest, the same part of other ranks too, and no wider than the names of its events
 * need; beside each it says how many, so that lengths can still be compared. */
static int times_wide(const Shown *v, const TimeItem *item, double longest) {
    enum { NAME = 90 /* px */ };
    static const int round[] = {100, 50, 20, 10, 5, 4};
    double own = 0;
    int events = 1;
    for (const Shown *of = v; of; of = of->peer)
        for (const TimeItem *x = of->item; x < of->item + of->n_items; x++) {
            if (strcmp(x->l->title, item->l->title) != 0) continue;
            const int n = most_in_lane(x->t, x->l);
            events = n > events ? n : events;
            own = fmax(own, x->l->end - x->l->start);
        }
    const double widest = longest * fmin(1, events * NAME / looks[v->preset].axis_w);
    for (size_t i = 0; i < sizeof round / sizeof *round && own > 0; i++)
        if (own * round[i] <= widest) return round[i];
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
    bool pages = v->preset == PRESET_SLIDE && lines > 1 && !v->peer &&
                 !v->alone; /* each has its own scale */
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
    int least = 0, most = 0; /* how many times as wide as the scale that they share */
    for (int i = 0; i < lines; i++) {
        const int times = times_wide(v, &v->item[i], scale_line(v, i, 0, lines));
        least = i && least < times ? least : times, most = times > most ? times : most;
    }
    const char *wide =
        least == most || pages
            ? ""
            : arena_printf(a, ", drawn %d× to %d× as wide, as each says", least, most);
    part[k++] = v->peer && !c->o->measured ? arena_printf(a, "%s, both plans%s%s", timeline_kind(c),
                                                          *wide ? "" : " at one scale", wide)
                : lines > 1 && !c->o->measured
                    ? arena_printf(a, "%s, %d lines%s%s", timeline_kind(c), lines,
                                   *wide   ? ""
                                   : pages ? ", each page at a scale of its own"
                                           : " at one scale",
                                   wide)
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
/* The schedule of the whole step, under a heading, and what its stages send each other. */
static double draw_schedule(const Shown *v, TimePen *p, double y, double foot) {
    enum { LEAST = 230 }; /* units of a slide for the schedule of many stages */
    MessageRow *row;
    int rows = messages_read(v->c, &row);
    const bool tight = presets[v->preset].h > 0 &&
                       presets[v->preset].h - foot - messages_height(rows) - y < LEAST &&
                       v->c->t->stages > 4;
    const char *sent = tight && rows ? arena_printf(v->c->arena, " · messages between stages: %s",
                                                    messages_count(row, rows, v->c->arena))
                                     : "";
    if (tight) rows = 0; /* what the rows say stands in words beside the heading */
    foot += messages_height(rows);
    const double left = presets[v->preset].margin, h = presets[v->preset].h;
    const TimeStep *x = v->t->step;
    scene_begin(p->s, "schedule", "schedule", NULL);
    double w = scene_text(p->s, left, y + 15, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK},
                          arena_printf(p->c->arena, "The whole step, %s", p->c->t->schedule));
    scene_text(p->s, left + w + 12, y + 15, (TextLook){ALIGN_LEFT, 13, REGULAR, ROLE_SECOND},
               arena_printf(p->c->arena, "%s%s%s", time_text(x->span, p->c->arena),
                            pipe_strip_apart(p->c) ? " · at a scale of its own" : "", sent));
    y = pipe_strip(p->c, p->s, y + 26, h > 0 ? h - foot - y - 26 : 0);
    scene_end(p->s);
    p->times = v->preset != PRESET_SLIDE || v->peer;
    p->scale = p->width / scale_line(v, 0, 0, v->n_items);
    return messages_draw(row, rows, p, (Pt){left, y + 6});
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
        h += lay_line(p, &v->item[i], 0).height;
    }
    return h;
}
/* Of a slide with room to spare the lanes grow, for nobody sits near it; where a line alone is too
 * high they are lower. */
static void grow_lanes(const Shown *v, TimePen *p, TimeLook *look, int from, int to, double room) {
    const TimeLook usual = *look;
    for (double k = 2; k > 0.79; k -= 0.05) {
        look->compute = k * usual.compute, look->comm = k * usual.comm, look->gap = k * usual.gap;
        if (staves_height(v, p, from, to) <= room) return;
    }
    *look = usual;
}
/* ---- two plans ---- */

/* Where a page begins under its head, where its lines do, and how high each is. */
typedef struct {
    double top, y, *high;
} Column;
static Column column_of(const Shown *v) {
    TimePen p;
    TimeLook look;
    const double top = begin_page(v, NULL, &p, &look);
    Column x = {top, top, ARENA_ARRAY(v->c->arena, double, v->n_items + 1)};
    if (v->t->step) x.y = draw_schedule(v, &p, top, 0);
    for (int i = 0; i < v->n_items; i++) {
        set_scale(v, &p, i, 0, v->n_items);
        x.high[i] = lay_line(&p, &v->item[i], 0).height;
    }
    return x;
}
/* Of two figures beside each other the same parts stand side by side, at one height: the y of each
 * line, behind them that of the end. What one plan alone has leaves its place empty in the other.
 */
static const double *facing_places(const Shown *v) {
    Arena *a = v->c->arena;
    const Shown *u = v->peer;
    Shown back = *u;
    back.peer = v; /* at one scale */
    const Column x = column_of(v), z = column_of(&back);
    const int n = v->n_items, m = u->n_items, row = m + 1;
    int *best = ARENA_ARRAY(a, int, (n + 1) * row);
    for (int i = n - 1; i >= 0; i--)
        for (int k = m - 1; k >= 0; k--) {
            const int down = best[(i + 1) * row + k], right = best[i * row + k + 1];
            const bool same = !strcmp(v->item[i].l->title, u->item[k].l->title);
            best[i * row + k] = same           ? best[(i + 1) * row + k + 1] + 1
                                : down > right ? down
                                               : right;
        }
    /* heads of other lengths are levelled when both pages are there (scene_level) */
    double *at = ARENA_ARRAY(a, double, n + 1), y = x.top + fmax(x.y - x.top, z.y - z.top);
    for (int i = 0, k = 0; i < n || k < m;) {
        const bool same = i < n && k < m && !strcmp(v->item[i].l->title, u->item[k].l->title);
        /* what only one has takes the place of what only the other has */
        const bool both =
            same || (i < n && k < m && best[(i + 1) * row + k + 1] == best[i * row + k]);
        const bool own =
            i < n && (both || k == m || best[(i + 1) * row + k] >= best[i * row + k + 1]);
        const double high = fmax(own ? x.high[i] : 0, both || !own ? z.high[k] : 0);
        if (own) at[i] = y;
        i += own, k += both || !own;
        y += high;
    }
    at[n] = y;
    return at;
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
    const bool behind = from || (v->t->step && v->preset == PRESET_SLIDE); /* another page */
    if (behind && !v->peer && !v->c->o->measured)
        y = begin_page(v, slide_title(v, from, to), &p, &look);
    if (v->preset == PRESET_SLIDE) grow_lanes(v, &p, &look, from, to, limit - foot - y);
    const double *facing = v->peer && limit <= 0 && !v->c->o->measured ? facing_places(v) : NULL;
    for (int i = from; i < to; i++) {
        double longest = set_scale(v, &p, i, from, to);
        y = draw_line(&p, &item[i], facing ? facing[i] : y, longest / p.times);
    }
    if (facing) y = facing[v->n_items];
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
/* The pages of lines behind `pages` others; returns how many there are then. */
static int line_pages(const Shown *v, Scene **page, int pages) {
    for (int from = 0, next; from < v->n_items && pages < VIEW_MAX_PAGES; pages++, from = next) {
        double foot = FOOT;
        do next = draw_page(v, from, foot, &page[pages]);
        while (v->preset == PRESET_SLIDE && page[pages]->scale < 1 && (foot += 17) < FOOT + 60);
    }
    return pages;
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
    for (int i = 0; i < v.n && beside.n && !c->o->measured; i++) {
        const int like = i < beside.n ? i : beside.n - 1; /* stages are not in one order */
        timeline_mark_unlike(&t[i], t->step ? far : &far[like], t->step ? beside.n : 1, c->arena);
    }
    if (v.t->step && v.preset == PRESET_SLIDE) {
        double foot = FOOT;
        do page[pages] = schedule_page(&v, foot);
        while (page[pages]->scale < 1 && (foot += 17) < FOOT + 120);
        pages++;
    }
    const int before = pages;
    pages = line_pages(&v, page, before);
    /* one slide has one scale, and says so; if that took a second one, each has its own again */
    if ((v.alone = v.preset == PRESET_SLIDE && pages == 1)) pages = line_pages(&v, page, before);
    if (v.alone && pages > 1) v.alone = false, pages = line_pages(&v, page, before);
    Scene *took = c->o->measured && pages < VIEW_MAX_PAGES
                      ? timeline_took(c, v.preset, c->o->rank >= 0 ? c->o->rank : 0)
                      : NULL;
    if (took) page[pages++] = took;
    return pages;
}
