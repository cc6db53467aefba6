/* Bands of the program under the axis of steps: the passes, and below them bands as fine as most of
 * their names can be read. Every band says in its tooltip what is most alive in it. */
#include "base/text.h"
#include "render/memory/bands.h"
#include "render/memory/view_bands.h"
#include <math.h>

enum { BAND_H = 17, BAND_GAP = 3, BAND_ROOM = 6 };

/* Where steps stand on the page. */
typedef struct {
    const ViewCall *c;
    Scene *s;
    const MemCourse *m;
    Area plot;
    double size;
} BandPen;

static double step_x(const BandPen *p, int step) {
    return p->plot.x + p->plot.w * (step - p->m->from) / p->m->n_steps;
}
/* The bands of what is shown, cut off at its ends. */
static int shown_bands(const BandPen *p, BandLevel level, MemBand **out) {
    const int from = p->m->from, to = from + p->m->n_steps;
    int n = memory_bands(p->c->arena, p->c->t, to, level, out), kept = 0;
    for (int i = 0; i < n; i++) {
        MemBand b = (*out)[i];
        if (b.from < from) b.from = from;
        if (b.to > to) b.to = to;
        if (b.from < b.to) (*out)[kept++] = b;
    }
    return kept;
}
static double name_width(const BandPen *p, const MemBand *b, BandLevel level, int form) {
    return scene_width(p->s, p->size, REGULAR, memory_band_name(p->c->arena, b, level, form));
}
static double band_room(const BandPen *p, const MemBand *b) {
    return step_x(p, b->to) - step_x(p, b->from) - BAND_ROOM;
}
/* Do names of the form stand on at least half of the axis? Short ones are taken for all bands of a
 * row where any of them has no room for its long one. */
static bool stands(const BandPen *p, const MemBand *b, int n, BandLevel level, bool brief) {
    int named = 0;
    for (int i = 0; i < n; i++) {
        double room = band_room(p, &b[i]);
        bool here = name_width(p, &b[i], level, brief) <= room;
        if (!brief && !here && name_width(p, &b[i], level, true) <= room) return false;
        named += here ? b[i].to - b[i].from : 0;
    }
    return 2 * named >= p->m->n_steps;
}
/* The finest level whose names can be read; passes if there is none. */
static BandLevel readable(const BandPen *p) {
    BandLevel level = BAND_PARTS;
    for (; level < BAND_PASSES; level++) {
        MemBand *b;
        int n = shown_bands(p, level, &b);
        if (stands(p, b, n, level, false) || stands(p, b, n, level, true)) break;
    }
    return level;
}

static const char *band_tip(const BandPen *p, const MemBand *b, BandLevel level) {
    Arena *a = p->c->arena;
    const MemCourse *m = p->m;
    const char *name = memory_band_name(a, b, level, false);
    int most = b->from;
    for (int i = b->from; i < b->to; i++)
        if (m->all[i - m->from] > m->all[most - m->from]) most = i;
    Str s = str_new(a);
    if (level == BAND_PASSES) str_add(&s, name);
    else str_addf(&s, "%s, %s", phase_text(b->pass), name);
    tip_add(&s, "steps",
            b->to - b->from > 1 ? arena_printf(a, "%d to %d", b->from, b->to - 1)
                                : arena_printf(a, "%d", b->from));
    tip_add(&s, arena_printf(a, "most alive on rank %lld", (long long)m->rank),
            arena_printf(a, "%s, after step %d", bytes_text(m->all[most - m->from], a), most));
    return s.s;
}

static void draw_row(const BandPen *p, BandLevel level, double y) {
    MemBand *b;
    int n = shown_bands(p, level, &b);
    bool brief = !stands(p, b, n, level, false);
    for (int i = 0; i < n; i++) {
        double x = step_x(p, b[i].from), w = step_x(p, b[i].to) - x;
        const char *name = memory_band_name(p->c->arena, &b[i], level, brief);
        scene_begin(p->s, "band", arena_printf(p->c->arena, "band-%d-%d", level, b[i].from),
                    band_tip(p, &b[i], level));
        scene_rect(p->s, (Area){x, y, w, BAND_H}, 0,
                   (Look){ROLE_PAPER, w < 2 ? ROLE_NONE : ROLE_FAINT, 1});
        if (name_width(p, &b[i], level, brief) <= band_room(p, &b[i]))
            scene_text(p->s, x + w / 2, y + BAND_H / 2.0 + p->size * 0.36,
                       (TextLook){ALIGN_MIDDLE, p->size, REGULAR, ROLE_SECOND}, name);
        scene_end(p->s);
    }
}

/* Bands too narrow for their names have them below, each under a line from its band: as many as
 * stand beside each other. Returns the height that this takes. */
static double draw_leaders(const BandPen *p, BandLevel level, double y) {
    enum { LEADER = 5, APART = 8 };
    MemBand *b;
    int n = shown_bands(p, level, &b), named = 0;
    const bool brief = !stands(p, b, n, level, false);
    double free_x = p->plot.x - 24;
    for (int i = 0; i < n; i++) {
        const double x = step_x(p, b[i].from), to = step_x(p, b[i].to), mid = (x + to) / 2,
                     right = p->plot.x + p->plot.w;
        const char *name = memory_band_name(p->c->arena, &b[i], level, brief);
        const double w = scene_width(p->s, p->size, REGULAR, name);
        if (w <= band_room(p, &b[i]) || to - x < 2 || text_same(name, phase_text(b[i].pass)))
            continue;
        const double at = fmax(fmin(mid - w / 2, right - w), free_x);
        if (at > mid || at + w > right) continue; /* not under its band */
        scene_begin(p->s, "band", arena_printf(p->c->arena, "band-name-%d", b[i].from),
                    band_tip(p, &b[i], level));
        scene_segment(p->s, (Pt){mid, y}, (Pt){mid, y + LEADER}, ROLE_FAINT, 1);
        scene_text(p->s, at, y + LEADER + 11, (TextLook){ALIGN_LEFT, p->size, REGULAR, ROLE_SECOND},
                   name);
        scene_end(p->s);
        free_x = at + w + APART, named++;
    }
    return named ? LEADER + 14 : 0;
}

double memory_draw_bands(const ViewCall *c, Scene *s, const MemCourse *m, Area plot, bool leaders) {
    BandPen p = {c, s, m, plot, fmax(11.5, s->min_size)};
    MemBand *pass;
    BandLevel level = readable(&p);
    int rows = 0, passes = shown_bands(&p, BAND_PASSES, &pass);
    double y = plot.y + plot.h + 25, named = 0;
    if (passes == 0) return 0;
    if (passes > 1) draw_row(&p, BAND_PASSES, y), rows++;
    if (level < BAND_PASSES) {
        draw_row(&p, level, y + rows++ * (BAND_H + BAND_GAP));
        if (leaders) named = draw_leaders(&p, level, y + rows * (BAND_H + BAND_GAP) - BAND_GAP);
    }
    return rows * (BAND_H + BAND_GAP) + (rows ? BAND_GAP : 0) + named;
}
