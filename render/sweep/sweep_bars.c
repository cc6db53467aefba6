/* Bars of memory by batch. See sweep_bars.h. The smallest batches give way: beside the largest they
 * would not be seen. */
#include "render/sweep/sweep_bars.h"
#include "render/memory/inks.h"
#include <math.h>
#include <string.h>

enum { LEFT = 52, HEAD = 26, OVER = 36, UNDER = 52, PITCH = 62, WIDEST = 72, TICKS = 6 };
enum { OWN = 88, TIMES = 30 }; /* the plan's bar on its own scale: how wide; from what on */
enum { THIN = 3, DIGIT = 8, BETWEEN = 20 }; /* of the numbers under bars */
typedef struct {
    Scene *s;
    const Sweep *w;
    Arena *a;
    Area plot; /* inside the axes */
    double per_byte, pitch, bar;
    int first; /* of the batches that are drawn; the plan's own is, if it comes before */
    int apart; /* the one with a scale of its own, or -1 */
} BarPen;

/* The first batch that there is room for, besides the plan's own. */
static int first_drawn(const Sweep *s, double w) {
    const double label =
        DIGIT * (double)strlen(sweep_number(s->c->arena, s->at[s->n - 1].batch)) + BETWEEN;
    const int room = (int)fmax(3, (w - LEFT) / fmax(PITCH, label));
    const int first = s->n > room ? s->n - room : 0;
    for (int i = 0; i < first; i++)
        if (s->at[i].own) return first + 1; /* it takes a place */
    return first;
}
int sweep_hidden(const Sweep *s, double w) {
    int n = first_drawn(s, w);
    for (int i = n - 1; i >= 0; i--)
        if (s->at[i].own) return n - 1;
    return n;
}
/* The plan's own batch, if it is far before those that are drawn and would be a line beside them.
 */
static int own_apart(const Sweep *s, double w) {
    const int64_t most = s->at[s->n - 1].total;
    for (int i = 0; i < first_drawn(s, w); i++)
        if (s->at[i].own && s->at[i].total > 0 && sweep_fits(s, s->at[i].total) &&
            most / TIMES > s->at[i].total)
            return i;
    return -1;
}
bool sweep_own_scale(const Sweep *s, double w) { return own_apart(s, w) >= 0; }
static bool is_drawn(const BarPen *q, int i) { return i >= q->first || q->w->at[i].own; }

double sweep_draw_key(Scene *s, const Sweep *w, Band at) {
    enum { BOX = 14, GAP = 20, LINE = 20, SIZE = 12 };
    double x = at.x, y = at.y;
    scene_begin(s, "legend", "memory-key", NULL);
    for (int k = 0; k <= MEM_KINDS; k++) {
        const bool line = k == MEM_KINDS;
        bool used = line && w->capacity > 0;
        for (int i = 0; i < w->n && !line; i++) used |= w->at[i].bytes[k] > 0;
        if (!used) continue;
        const char *word = line ? memory_capacity_words(s->arena, w->t) : memory_inks[k].name;
        const double wide = BOX + 7 + scene_width(s, SIZE, REGULAR, word);
        if (x > at.x && x + wide > at.x + at.w) x = at.x, y += LINE;
        if (line) scene_segment(s, (Pt){x, y + 7}, (Pt){x + BOX, y + 7}, ROLE_INK, 1.5);
        else
            scene_rect(s, (Area){x, y, BOX, BOX}, 0,
                       (Look){memory_inks[k].fill, ROLE_WEIGHT_LINE, 1});
        scene_text(s, x + BOX + 7, y + 11.5, (TextLook){ALIGN_LEFT, SIZE, REGULAR, ROLE_INK}, word);
        x += wide + GAP;
    }
    scene_end(s);
    return y + LINE;
}

/* ---- axes ---- */
static double place(const BarPen *q, double bytes) {
    return q->plot.y + q->plot.h - bytes * q->per_byte;
}
static void draw_axis(const BarPen *q, int64_t most) {
    const MemScale m = memory_scale(most, TICKS);
    const double x = q->plot.x, end = x + q->plot.w;
    for (double v = 0; v <= m.top + 1e-6 * m.tick; v += m.tick) {
        const double y = place(q, v * m.bytes);
        scene_segment(q->s, (Pt){x, y}, (Pt){end, y}, ROLE_GRID, 1)->ground = true;
        scene_textf(q->s, x - 6, y + 4,
                    (TextLook){ALIGN_RIGHT, fmax(11.5, q->s->min_size), REGULAR, ROLE_TICK}, "%g%s",
                    v, v > 0 ? "" : arena_printf(q->a, " %s", m.unit));
    }
    scene_text(q->s, x + q->plot.w / 2, q->plot.y + q->plot.h + UNDER - 4,
               (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, sweep_what(q->w));
}
static void draw_capacity(const BarPen *q) {
    if (!q->w->capacity) return;
    const double y = place(q, (double)q->w->capacity);
    scene_begin(q->s, "capacity", "capacity", memory_capacity_words(q->a, q->w->t));
    scene_segment(q->s, (Pt){q->plot.x, y}, (Pt){q->plot.x + q->plot.w, y}, ROLE_INK, 1.5)->ground =
        true;
    scene_end(q->s);
}

/* ---- bars ---- */
static const char *bar_tip(const BarPen *q, const SweepBatch *b) {
    Str s = str_new(q->a);
    str_addf(&s, "%s %lld%s: %s", sweep_what(q->w), (long long)b->batch,
             b->own ? ", the plan's own" : "", bytes_text(b->total, q->a));
    for (int k = 0; k < MEM_KINDS; k++)
        if (b->bytes[k]) tip_add(&s, memory_inks[k].name, bytes_text(b->bytes[k], q->a));
    if (!sweep_fits(q->w, b->total))
        tip_add(&s, "does not fit",
                arena_printf(q->a, "+%s", bytes_text(b->total - q->w->capacity, q->a)));
    return s.s;
}
static void draw_stack(const BarPen *q, const SweepBatch *b, double x) {
    const double foot = q->plot.y + q->plot.h, top = fmin(place(q, (double)b->total), foot - 1);
    double at = foot, below = 0; /* what lies under it */
    for (int k = 0; k < MEM_KINDS; k++) {
        const double part = (double)b->bytes[k] * q->per_byte;
        if (b->bytes[k] <= 0) continue;
        scene_rect(q->s, (Area){x, at - part, q->bar, part}, 0,
                   (Look){memory_inks[k].fill, ROLE_NONE, 0});
        if (fmin(part, below) > THIN) /* a line of paper would hide thinner ones */
            scene_segment(q->s, (Pt){x, at}, (Pt){x + q->bar, at}, ROLE_PAPER, 1);
        at -= part, below = part;
    }
    const bool fits = sweep_fits(q->w, b->total);
    const double cap = fits ? top : place(q, (double)q->w->capacity);
    scene_rect(q->s, (Area){x, cap, q->bar, foot - cap}, 0,
               (Look){ROLE_NONE, ROLE_WEIGHT_LINE, 1.25});
    if (fits) return;
    scene_hatch(q->s, (Area){x, top, q->bar, cap - top}, ROLE_PAPER, 7, 2);
    scene_rect(q->s, (Area){x, top, q->bar, cap - top}, 0, (Look){ROLE_NONE, ROLE_FAIL, 2.5});
}
/* Words over a line of the grid stand on a patch of paper. */
static void draw_words(const BarPen *q, double mid, double y, TextLook look, const char *text) {
    const double w = scene_width(q->s, look.size, look.weight, text) + 4;
    scene_rect(q->s, (Area){mid - w / 2, y - look.size + 1, w, look.size + 3}, 0,
               (Look){ROLE_PAPER, ROLE_NONE, 0})
        ->ground = true;
    scene_text(q->s, mid, y, look, text);
}
static void draw_bar(const BarPen *q, const SweepBatch *b, double mid) {
    enum { SIZE = 12, LINE = 16 };
    const bool over = !sweep_fits(q->w, b->total);
    const double foot = q->plot.y + q->plot.h;
    double y = fmin(place(q, (double)b->total), foot - 1) - 6;
    scene_begin(q->s, "memory", arena_printf(q->a, "batch-%lld", (long long)b->batch),
                bar_tip(q, b));
    if (over) {
        draw_words(q, mid, y, (TextLook){ALIGN_MIDDLE, SIZE, SEMIBOLD, ROLE_FAIL},
                   arena_printf(q->a, "+%s", bytes_text(b->total - q->w->capacity, q->a)));
        y -= LINE;
    }
    draw_words(q, mid, y, (TextLook){ALIGN_MIDDLE, SIZE, SEMIBOLD, ROLE_INK},
               bytes_text(b->total, q->a));
    draw_stack(q, b, mid - q->bar / 2);
    scene_text(q->s, mid, foot + 17,
               (TextLook){ALIGN_MIDDLE, SIZE, b->own ? BOLD : REGULAR, ROLE_INK},
               sweep_number(q->a, b->batch));
    if (b->own)
        scene_text(q->s, mid, foot + 33, (TextLook){ALIGN_MIDDLE, SIZE, BOLD, ROLE_INK},
                   "the plan");
    scene_end(q->s);
}
static void draw_left_out(const BarPen *q, double x) {
    const double foot = q->plot.y + q->plot.h;
    scene_text(q->s, x, foot + 17, (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, "…");
}

/* The plan's bar before the axis, which does not hold for it: half as high as the panel. */
static void draw_apart(const BarPen *q, Area at) {
    static const double dash[2] = {4, 3};
    const SweepBatch *b = &q->w->at[q->apart];
    const double foot = q->plot.y + q->plot.h, mid = at.x + OWN / 2.0 - 4, end = at.x + OWN;
    BarPen own = *q;
    own.per_byte = 0.5 * q->plot.h / (double)b->total;
    own.bar = fmin(q->bar, OWN - 24);
    scene_segment(q->s, (Pt){at.x, foot}, (Pt){end - 8, foot}, ROLE_GRID, 1)->ground = true;
    draw_bar(&own, b, mid);
    Mark *m = scene_segment(q->s, (Pt){end, q->plot.y}, (Pt){end, foot}, ROLE_FAINT, 1);
    m->dash = dash, m->n_dash = 2;
    scene_text(q->s, mid, foot + UNDER - 4, (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND},
               "own scale");
}
void sweep_draw_batches(Scene *scene, const Sweep *w, Area at) {
    BarPen q = {.s = scene, .w = w, .a = scene->arena, .first = first_drawn(w, at.w)};
    q.apart = own_apart(w, at.w);
    const double left = LEFT + (q.apart < 0 ? 0 : OWN);
    q.plot = (Area){at.x + left, at.y + HEAD + OVER, at.w - left, at.h - HEAD - OVER - UNDER};
    int64_t most = w->capacity;
    int n = 0, k = 0;
    for (int i = 0; i < w->n; i++) {
        if (!is_drawn(&q, i) || i == q.apart) continue;
        most = w->at[i].total > most ? w->at[i].total : most;
        n++;
    }
    q.per_byte = q.plot.h / fmax(1, (double)most);
    q.pitch = q.plot.w / n;
    q.bar = fmin(WIDEST, 0.62 * q.pitch);
    scene_text(scene, at.x, at.y + 13, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK},
               arena_printf(q.a, "Memory of the fullest rank by %s", sweep_what(w)));
    draw_axis(&q, most);
    draw_capacity(&q);
    if (q.apart >= 0) draw_apart(&q, at);
    for (int i = 0; i < w->n; i++) {
        if (!is_drawn(&q, i) || i == q.apart) continue;
        const double x = q.plot.x + q.pitch * k++;
        const bool skips = i > 0 && w->at[i].batch / 2 > w->at[i - 1].batch;
        if (i > 0 && (skips || !is_drawn(&q, i - 1)))
            draw_left_out(&q, k > 1 ? x : x + (q.apart < 0 ? 9 : 3)); /* not at the tick */
        draw_bar(&q, &w->at[i], x + q.pitch / 2);
    }
}
