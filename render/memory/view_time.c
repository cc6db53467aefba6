/* Memory over the time of a pipeline's step: an area that is as high as what the rank holds, what
 * it does under it. What is done once after the last micro-batch has a place of its own at the
 * right, which is not to scale. */
#include "render/memory/view_time.h"
#include "render/furniture/actions.h"
#include <math.h>

enum { TIME_STRIP = 14, TIME_AFTER = 34, TIME_FLIGHT = 20 };
typedef struct {
    const ViewCall *c;
    Scene *s;
    const MemTime *m;
    Area plot;
    double w, top, size; /* w: of the time; top: bytes that are as high as the plot */
} TimePen;

static double x_of(const TimePen *p, double t) { return p->plot.x + p->w * t / p->m->end; }
static double y_of(const TimePen *p, int64_t bytes) {
    return p->plot.y + p->plot.h - p->plot.h * (double)bytes / p->top;
}
const char *memory_when(Arena *a, const MemTime *m) {
    if (m->peak < 0) return "after the last micro-batch";
    const MemMoment *x = &m->at[m->peak];
    if (!x->a) return arena_printf(a, "at %s, waiting", time_text(x->from, a));
    const char *and = x->b ? arena_printf(a, " and %s of %d", x->b->kind, x->b->microbatch) : "";
    return arena_printf(a, "in %s of micro-batch %d%s", x->a->kind, x->a->microbatch, and);
}
/* The staircase of `part` of every moment. */
typedef int64_t (*PartOf)(const MemTime *m, const MemMoment *x);
static int64_t all_of(const MemTime *m, const MemMoment *x) { return (void)m, x->all; }
static int64_t live_of(const MemTime *m, const MemMoment *x) {
    return (void)m, x->all - x->gathered;
}
static int64_t grads_of(const MemTime *m, const MemMoment *x) {
    int64_t live = x->all - x->gathered;
    return m->grads < live ? m->grads : live;
}
static void draw_stairs(TimePen *p, PartOf part, Role fill, bool line) {
    const MemTime *m = p->m;
    Pt *pt = ARENA_ARRAY(p->c->arena, Pt, 2 * m->n + 2);
    double base = p->plot.y + p->plot.h;
    for (int i = 0; i < m->n; i++) {
        double y = y_of(p, part(m, &m->at[i]));
        pt[2 * i] = (Pt){x_of(p, m->at[i].from), y};
        pt[2 * i + 1] = (Pt){x_of(p, m->at[i].to), y};
    }
    pt[2 * m->n] = (Pt){x_of(p, m->end), base};
    pt[2 * m->n + 1] = (Pt){p->plot.x, base};
    scene_poly(p->s, pt, 2 * m->n + 2, (Look){fill, ROLE_NONE, 0})->ground = true;
    if (line) scene_line(p->s, pt, 2 * m->n, ROLE_INK, 1.25)->bend = 0;
}
static void draw_after(TimePen *p) {
    double x = p->plot.x + p->plot.w - TIME_AFTER + 8, w = TIME_AFTER - 8, y = y_of(p, p->m->after);
    Area all = {x, y, w, p->plot.y + p->plot.h - y};
    scene_begin(p->s, "memory", "course-after",
                arena_printf(p->c->arena,
                             "at most %s after the last micro-batch: sums of "
                             "gradients and the step; not over time",
                             bytes_text(p->m->after, p->c->arena)));
    scene_rect(p->s, all, 0, (Look){ROLE_LIVE, ROLE_NONE, 0})->ground = true;
    all.h = p->plot.y + p->plot.h - y_of(p, p->m->after_grads), all.y = y_of(p, p->m->after_grads);
    scene_rect(p->s, all, 0, (Look){ROLE_SHARD_2, ROLE_NONE, 0})->ground = true;
    all.y = y, all.h = p->plot.y + p->plot.h - y;
    scene_rect(p->s, all, 0, (Look){ROLE_NONE, ROLE_INK, 1.25});
    scene_text(p->s, x + w / 2, p->plot.y + p->plot.h + 17,
               (TextLook){ALIGN_MIDDLE, p->size, REGULAR, ROLE_TICK}, "after");
    scene_end(p->s);
}
static void draw_bytes(TimePen *p) {
    MemScale s = memory_scale((int64_t)p->top, 5);
    for (double v = 0; v <= s.top + s.tick * 1e-6; v += s.tick) {
        double at = p->plot.y + p->plot.h - p->plot.h * v * s.bytes / p->top;
        scene_segment(p->s, (Pt){p->plot.x, at}, (Pt){p->plot.x + p->plot.w, at}, ROLE_GRID, 1)
            ->ground = true;
        scene_textf(p->s, p->plot.x - 6, at + 4,
                    (TextLook){ALIGN_RIGHT, p->size, REGULAR, ROLE_TICK}, "%g%s%s", v,
                    v > 0 ? "" : " ", v > 0 ? "" : s.unit);
    }
}
static void draw_times(TimePen *p) {
    enum { TICKS = 4 };
    double tick = pow(10, floor(log10(p->m->end / TICKS)));
    while (p->m->end / tick > TICKS) tick *= p->m->end / (2 * tick) <= TICKS ? 2 : 5;
    for (double t = 0; t <= p->m->end; t += tick) {
        const char *word = t > 0 ? time_text(t, p->c->arena) : "0";
        if (x_of(p, t) + scene_width(p->s, p->size, REGULAR, word) / 2 > p->plot.x + p->w) break;
        scene_text(p->s, x_of(p, t), p->plot.y + p->plot.h + 17,
                   (TextLook){t > 0 ? ALIGN_MIDDLE : ALIGN_LEFT, p->size, REGULAR, ROLE_TICK},
                   word);
    }
}
/* What "in flight" counts: a micro-batch on two stages of a rank counts twice. */
static const char flight_words[] = "pairs of stage and micro-batch";
static void draw_cell(TimePen *p, const MemMoment *x, const TraceAction *a, Area box, int i) {
    const ActionLook *k = &action_looks[action_look(a)];
    Arena *arena = p->c->arena;
    Str tip = str_new(arena);
    str_addf(&tip, "%s of micro-batch %d on stage %d", k->what, a->microbatch, a->stage);
    tip_add(&tip, "held at most", bytes_text(x->all, arena));
    tip_add(&tip, "in flight", arena_printf(arena, "%d, %s", x->flight, flight_words));
    scene_begin(p->s, "compute", arena_printf(arena, "held-%d%s", i, a == x->b ? "b" : ""), tip.s);
    scene_rect(p->s, box, 0, (Look){k->fill, ROLE_COMPUTE_LINE, box.w > 4 ? 0.75 : 0});
    const char *word = arena_printf(arena, "%s", a->kind);
    if (!x->b && scene_width(p->s, p->size, BOLD, word) + 3 < box.w)
        scene_text(p->s, box.x + box.w / 2, box.y + box.h / 2 + p->size * 0.36,
                   (TextLook){ALIGN_MIDDLE, p->size, BOLD, k->text}, word);
    scene_end(p->s);
}
/* What the rank does: a cell for each action. */
static void draw_strip(TimePen *p, double y) {
    for (int i = 0; i < p->m->n; i++) {
        const MemMoment *x = &p->m->at[i];
        double x0 = x_of(p, x->from), h = x->b ? TIME_STRIP / 2.0 : TIME_STRIP;
        if (x->a) draw_cell(p, x, x->a, (Area){x0, y, x_of(p, x->to) - x0, h}, i);
        if (x->b) draw_cell(p, x, x->b, (Area){x0, y + h, x_of(p, x->to) - x0, h}, i);
    }
}
/* How many pairs of stage and micro-batch are in flight: a number where it changes and has room. */
static void draw_flight(TimePen *p, double y) {
    const MemTime *m = p->m;
    Arena *a = p->c->arena;
    scene_begin(p->s, "flight", "held-flight", arena_printf(a, "%s in flight", flight_words));
    double free = p->plot.x;
    for (int i = 0; i < m->n;) {
        int k = i + 1;
        while (k < m->n && m->at[k].flight == m->at[i].flight) k++;
        double x0 = x_of(p, m->at[i].from), x1 = x_of(p, m->at[k - 1].to);
        const char *word = arena_printf(a, "%d", m->at[i].flight);
        double w = scene_width(p->s, p->size, REGULAR, word), mid = (x0 + x1) / 2;
        if (x1 - x0 > w + 4 && mid - w / 2 >= free) {
            scene_text(p->s, mid, y + 13, (TextLook){ALIGN_MIDDLE, p->size, REGULAR, ROLE_SECOND},
                       word);
            free = mid + w / 2 + 2;
        }
        scene_segment(p->s, (Pt){x0, y}, (Pt){x0, y + 5}, ROLE_FAINT, 1);
        i = k;
    }
    scene_text(p->s, p->plot.x - 6, y + 13, (TextLook){ALIGN_RIGHT, p->size, REGULAR, ROLE_TICK},
               "in flight");
    scene_end(p->s);
}
/* The kinds of the strip. Returns its height. */
static double draw_key(TimePen *p, double y) {
    bool used[ACTION_LOOKS] = {false};
    for (int i = 0; i < p->m->n; i++) {
        const MemMoment *x = &p->m->at[i];
        if (x->a) used[action_look(x->a)] = true;
        if (x->b) used[action_look(x->b)] = true;
    }
    double x = p->plot.x, y0 = y;
    scene_begin(p->s, "legend", "held-legend", NULL);
    for (int k = 0; k < ACTION_LOOKS; k++) {
        const ActionLook *look = &action_looks[k];
        const char *word = arena_printf(p->c->arena, "%c %s", look->kind, look->what);
        double w = 20 + scene_width(p->s, p->size, REGULAR, word) + 16;
        if (!used[k]) continue;
        if (x > p->plot.x && x + w > p->plot.x + p->plot.w) x = p->plot.x, y += 18;
        scene_rect(p->s, (Area){x, y, 14, 11}, 0, (Look){look->fill, ROLE_COMPUTE_LINE, 0.75});
        scene_text(p->s, x + 19, y + 9.5, (TextLook){ALIGN_LEFT, p->size, REGULAR, ROLE_SECOND},
                   word);
        x += w;
    }
    const char *flight = arena_printf(p->c->arena, "in flight: %s", flight_words);
    PresetKind preset = PRESET_WIDE;
    furniture_preset(p->c->o->preset, &preset);
    const bool wraps =
        x > p->plot.x && x + scene_width(p->s, p->size, REGULAR, flight) > p->plot.x + p->plot.w;
    if (wraps) x = p->plot.x, y += 18;
    if (wraps && preset == PRESET_SLIDE) y -= 18; /* has no line for it: tooltips say it */
    else
        scene_text(p->s, x, y + 9.5, (TextLook){ALIGN_LEFT, p->size, REGULAR, ROLE_SECOND}, flight);
    scene_end(p->s);
    return y + 18 - y0;
}
double memory_draw_time(const ViewCall *c, Scene *s, const MemTime *m, Area plot, int64_t highest) {
    TimePen p = {c,
                 s,
                 m,
                 plot,
                 plot.w - (m->after ? TIME_AFTER : 0),
                 fmax(1, (double)highest),
                 fmax(11.5, s->min_size)};
    scene_begin(s, "course", "course",
                arena_printf(c->arena, "bytes held over the time of a step, %s %d",
                             c->t->schedule_axis, m->coord));
    draw_bytes(&p);
    bool gathered = false;
    for (int i = 0; i < m->n; i++) gathered |= m->at[i].gathered > 0;
    if (gathered) draw_stairs(&p, all_of, ROLE_SHARD_3, false);
    draw_stairs(&p, live_of, ROLE_LIVE, false);
    draw_stairs(&p, grads_of, ROLE_SHARD_2, false);
    draw_stairs(&p, all_of, ROLE_NONE, true);
    if (m->after) draw_after(&p);
    draw_times(&p);
    const MemMoment *x = m->peak < 0 ? NULL : &m->at[m->peak];
    double px = x ? (x_of(&p, x->from) + x_of(&p, x->to)) / 2 : plot.x + plot.w - TIME_AFTER / 2;
    double py = y_of(&p, m->at_peak);
    scene_circle(s, px, py, 4, (Look){ROLE_PAPER, ROLE_INK, 2});
    const char *text = arena_printf(c->arena, "peak %s %s", bytes_text(m->at_peak, c->arena),
                                    memory_when(c->arena, m));
    double half = scene_width(s, 12.5, SEMIBOLD, text) / 2;
    scene_text(s, fmin(fmax(px, plot.x + half), plot.x + plot.w - half), py - 10,
               (TextLook){ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK}, text);
    draw_strip(&p, plot.y + plot.h + 25);
    double y = plot.y + plot.h + 25 + TIME_STRIP + 2;
    draw_flight(&p, y);
    scene_end(s);
    return TIME_STRIP + TIME_FLIGHT + draw_key(&p, y + TIME_FLIGHT + 2);
}
