/* Bars of time by way. See sweep_rows.h. */
#include "render/sweep/sweep_rows.h"
#include <math.h>

enum {
    HEAD = 26,
    KEY_H = 26,
    PITCH = 27,
    BAR = 17,
    HIGH = 26,
    MOST = 54,
    SIZE = 12,
    PARTS = 4,
    ROOMY = 17
};
typedef struct {
    Scene *s;
    const Sweep *w;
    Arena *a;
    double label, bar, per_second, pitch; /* x of the labels and the bars, units per second */
    double high;                          /* of a bar */
} RowPen;
/* What a step's time is made of. */
static const struct {
    const char *word;
    Role fill, line;
    bool hatched;
} parts[PARTS] = {{"compute", ROLE_COMPUTE, ROLE_COMPUTE_LINE, false},
                  {"exposed communication", ROLE_COLL, ROLE_COLL_LINE, false},
                  {"waiting", ROLE_PAPER, ROLE_COLL_LINE, true},
                  {"idle", ROLE_PAPER, ROLE_SECOND, false}};
static double part_of(const SweepWay *w, int k) {
    return k == 0 ? w->compute : k == 1 ? w->exposed : k == 2 ? w->waiting : w->idle;
}

static int room(double h) { return (int)fmax(2, (h - HEAD - KEY_H) / PITCH); }
int sweep_ways_left(const Sweep *s, double h) {
    return s->n_ways > room(h) ? s->n_ways - room(h) : 0;
}
double sweep_rows_height(const Sweep *s) {
    enum { ENOUGH = 16 };
    return HEAD + KEY_H + PITCH * (s->n_ways < ENOUGH ? s->n_ways : ENOUGH);
}
/* The fastest, and the plan's own, which else takes the last place. */
static bool is_drawn(const Sweep *s, int i, int most) {
    if (s->way[i].own || s->n_ways <= most) return true;
    bool below = false;
    for (int k = most; k < s->n_ways; k++) below |= s->way[k].own;
    return i < most - below;
}
static bool fits(const RowPen *q, const SweepWay *w) { return sweep_fits(q->w, w->total); }
static const char *held_words(const RowPen *q, const SweepWay *w) {
    return arena_printf(q->a, "  %s", bytes_text(w->total, q->a));
}
/* "1.2 ms  81 GiB, does not fit" */
static const char *row_words(const RowPen *q, const SweepWay *w) {
    return arena_printf(q->a, "%s%s%s", time_text(w->span, q->a), held_words(q, w),
                        fits(q, w) ? "" : ", does not fit");
}
static const char *name_of(const RowPen *q, const SweepWay *w) {
    return arena_printf(q->a, "%s%s", w->own ? "the plan: " : "", sweep_way_name(q->w, w));
}
static int weight_of(const SweepWay *w) { return w->own ? BOLD : REGULAR; }

static void draw_part(Scene *s, Area at, int k) {
    scene_rect(s, at, 0, (Look){parts[k].fill, ROLE_NONE, 0});
    if (parts[k].hatched && at.w > 3) scene_hatch(s, at, parts[k].line, 5, 0.75);
    scene_rect(s, at, 0, (Look){ROLE_NONE, parts[k].line, 1});
}
static void draw_key(const RowPen *q, Area at) {
    static const char held[] = "time, memory of the fullest rank";
    double x = at.x;
    scene_begin(q->s, "legend", "ways-key", NULL);
    for (int k = 0; k < PARTS; k++) {
        bool used = false;
        for (int i = 0; i < q->w->n_ways; i++) used |= part_of(&q->w->way[i], k) > 0;
        if (!used) continue;
        draw_part(q->s, (Area){x, at.y, 12, 12}, k);
        x += 18 +
             scene_text(q->s, x + 18, at.y + 10.5, (TextLook){ALIGN_LEFT, SIZE, REGULAR, ROLE_INK},
                        parts[k].word) +
             14;
    }
    if (x + scene_width(q->s, SIZE, REGULAR, held) <= at.x + at.w) /* over what rows end with */
        scene_text(q->s, at.x + at.w, at.y + 10.5,
                   (TextLook){ALIGN_RIGHT, SIZE, REGULAR, ROLE_SECOND}, held);
    scene_end(q->s);
}
static const char *row_tip(const RowPen *q, const SweepWay *w) {
    Str s = str_new(q->a);
    str_addf(&s, "%s: %s%s", name_of(q, w), time_text(w->span, q->a),
             fits(q, w) ? "" : ", does not fit");
    for (int k = 0; k < PARTS; k++)
        if (part_of(w, k) > 0) tip_add(&s, parts[k].word, time_text(part_of(w, k), q->a));
    tip_add(&s, "the fullest rank holds", bytes_text(w->total, q->a));
    return s.s;
}
static void draw_row(const RowPen *q, const SweepWay *w, int i, double y) {
    const double text = y + q->high / 2 + 4.3;
    double at = q->bar;
    scene_begin(q->s, "way", arena_printf(q->a, "way-%d", i), row_tip(q, w));
    scene_text(q->s, q->label, text, (TextLook){ALIGN_LEFT, SIZE, weight_of(w), ROLE_INK},
               name_of(q, w));
    for (int k = 0; k < PARTS; k++) {
        const double wide = part_of(w, k) * q->per_second;
        if (wide <= 0) continue;
        draw_part(q->s, (Area){at, y, wide, q->high}, k);
        const char *took = time_text(part_of(w, k), q->a);
        if (!parts[k].hatched && q->high >= ROOMY &&
            wide >= scene_width(q->s, SIZE, REGULAR, took) + 8)
            scene_text(q->s, at + wide / 2, text, (TextLook){ALIGN_MIDDLE, SIZE, REGULAR, ROLE_INK},
                       took);
        at += wide;
    }
    const Run run[3] = {{time_text(w->span, q->a), SEMIBOLD, ROLE_INK, false, false},
                        {held_words(q, w), REGULAR, ROLE_SECOND, false, false},
                        {", does not fit", SEMIBOLD, ROLE_FAIL, false, false}};
    scene_runs(q->s, (Pt){at + 8, text}, ALIGN_LEFT, SIZE, run, fits(q, w) ? 2 : 3);
    scene_end(q->s);
}

void sweep_draw_ways(Scene *scene, const Sweep *w, Area at) {
    RowPen q = {.s = scene, .w = w, .a = scene->arena, .label = at.x};
    const int most = room(at.h), n = w->n_ways < most ? w->n_ways : most;
    double names = 0, words = 0, longest = 0, y = at.y + HEAD + KEY_H;
    for (int i = 0; i < w->n_ways; i++) {
        const SweepWay *x = &w->way[i];
        if (!is_drawn(w, i, most)) continue;
        names = fmax(names, scene_width(scene, SIZE, weight_of(x), name_of(&q, x)));
        words = fmax(words, scene_width(scene, SIZE, SEMIBOLD, row_words(&q, x)));
        longest = fmax(longest, x->span);
    }
    q.bar = at.x + names + 10;
    q.per_second = fmax(20, at.w - names - words - 20) / fmax(longest, 1e-12);
    q.pitch = fmax(PITCH, fmin(MOST, (at.h - HEAD - KEY_H) / n));
    q.high = fmin(HIGH, BAR + (q.pitch - PITCH) / 2);
    scene_text(scene, at.x, at.y + 13, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK},
               arena_printf(q.a, "Time of a %s by how the %lld ranks are cut", sweep_span(w),
                            (long long)w->t->ranks));
    draw_key(&q, (Area){at.x, at.y + HEAD, at.w, 0});
    for (int i = 0; i < w->n_ways; i++) {
        if (!is_drawn(w, i, most)) continue;
        draw_row(&q, &w->way[i], i, y);
        y += q.pitch;
    }
}
