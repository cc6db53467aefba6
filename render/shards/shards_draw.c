/* Matrices with their cuts: parts, owners, lines, copies. See shards_draw.h. */
#include "render/shards/shards_draw.h"
#include <assert.h>
#include <math.h>
#include <string.h>

const char *shards_name(const ShardPen *p, const TraceValue *v) {
    const char *state = p->names ? block_state(p->names, v->shape.name) : NULL;
    return state ? state : words_value(p->c->arena, p->c->t, v->shape.name);
}
/* Colour of part i of n, from dark to light; above four neighbours share one. */
int shards_shade(int64_t i, int64_t n) {
    if (n <= 2) return i ? 3 : 0;
    return n <= 4 ? (int)i : (int)(4 * i / n);
}

/* Edge of part i in a side of length px: by sizes, or evenly if they are not known. */
static double edge_at(const DimCut *c, int64_t i, double px) {
    if (!c->part || c->size <= 0) return px * (double)i / (double)(c->n > 0 ? c->n : 1);
    double sum = 0;
    for (int64_t k = 0; k < i; k++) sum += (double)c->part[k];
    return px * sum / (double)c->size;
}

/* Bands that lie in the dim one after the other: parts of a whole dim, or those of every packed
 * block. */
static int64_t bands(const DimCut *c) { return c->n > 1 ? c->n * c->blocks : 1; }
double shards_band_at(const DimCut *c, int64_t i, double px) {
    assert(c->n >= 1 && c->blocks >= 1 && i >= 0);
    int64_t blocks = c->n > 1 ? c->blocks : 1;
    return px * (double)(i / c->n) / (double)blocks + edge_at(c, i % c->n, px / (double)blocks);
}

/* px from one sheet of a stack to the next, and of the thinnest part that is seen */
enum { SHEET = 3, THIN = 2 };
/* Sheets behind the first. */
static int sheets(const Trace *t, const DimCut *r, const DimCut *k) {
    int64_t copies = shards_copies(t, r, k);
    return copies > 3 ? 3 : copies > 1 ? (int)copies - 1 : 0;
}
double shards_stack(const Trace *t, const DimCut *r, const DimCut *k) {
    return SHEET * sheets(t, r, k);
}
/* What several ranks hold alike lies in a stack. */
void shards_draw_copies(ShardPen *p, const DimCut *r, const DimCut *k, Area at) {
    double x = at.x, y = at.y, w = at.w, h = at.h;
    for (int i = sheets(p->c->t, r, k); i > 0; i--)
        scene_rect(p->s, (Area){x + SHEET * i, y - SHEET * i, w, h}, 0,
                   (Look){ROLE_PAPER, ROLE_WEIGHT_LINE, 1})
            ->ground = true;
}

/* Width of the widest text of owners; 0 if there are too many parts for any. */
double shards_label_width(ShardPen *p, const DimCut *r, const DimCut *k) {
    double widest = 0;
    for (int64_t i = 0; r->n * k->n <= SHARDS_MAX_LABELS && i < r->n * k->n; i++) {
        const char *who = shards_owners(p->c->arena, p->c->t, r, i / k->n, k, i % k->n);
        widest = fmax(widest, scene_width(p->s, 12, SEMIBOLD, who));
    }
    return widest;
}

/* Bands of a side of px, or 1 where they are too many or too thin to be seen. */
static int64_t seen(const DimCut *c, double px) {
    int64_t n = bands(c);
    return n > SHARDS_MAX_LINES || px / (double)n < THIN ? 1 : n;
}
/* The part of rows i and columns j, of that many seen. */
static Area part_area(const DimCut *r, const DimCut *k, const int64_t n[2], int64_t i, int64_t j,
                      Area at) {
    double y0 = n[0] > 1 ? shards_band_at(r, i, at.h) : 0,
           y1 = n[0] > 1 ? shards_band_at(r, i + 1, at.h) : at.h,
           x0 = n[1] > 1 ? shards_band_at(k, j, at.w) : 0,
           x1 = n[1] > 1 ? shards_band_at(k, j + 1, at.w) : at.w;
    return (Area){at.x + x0, at.y + y0, x1 - x0, y1 - y0};
}
/* Where the rank's own parts lie; one too thin to be seen is as wide as a line. */
static void draw_own(ShardPen *p, const DimCut *r, const DimCut *k, Area at) {
    for (int64_t i = shards_part_of(p->c->t, r, p->rank); i < bands(r); i += r->n)
        for (int64_t j = shards_part_of(p->c->t, k, p->rank); j < bands(k); j += k->n) {
            double y = shards_band_at(r, i, at.h), x = shards_band_at(k, j, at.w),
                   h = shards_band_at(r, i + 1, at.h) - y, w = shards_band_at(k, j + 1, at.w) - x;
            scene_rect(p->s, (Area){at.x + x, at.y + y, fmax(w, 1), fmax(h, 1)}, 0,
                       (Look){ROLE_NONE, ROLE_INK, 2.25});
        }
}
/* In place of parts that are not seen, where their number has room. */
static void draw_number(ShardPen *p, const DimCut *r, const DimCut *k, Area at) {
    const char *text = arena_printf(p->c->arena, "%lld parts", (long long)(r->n * k->n));
    if (at.h < 18 || scene_width(p->s, 12, SEMIBOLD, text) + 8 > at.w) return;
    scene_text(p->s, at.x + at.w / 2, at.y + at.h / 2 + 4.3,
               (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT_3}, text);
}

void shards_draw_parts(ShardPen *p, const DimCut *r, const DimCut *k, Area at) {
    assert(r->n >= 1 && k->n >= 1);
    const Trace *t = p->c->t;
    Arena *a = p->c->arena;
    int64_t n = r->n * k->n;
    const int64_t shown[2] = {seen(r, at.h), seen(k, at.w)};
    const bool none = shown[0] == 1 && shown[1] == 1 && n > 1;
    /* equal parts have their owners all or not at all: a row of numbers that breaks off would be
     * read as the ranks */
    double thin_r = r->uneven ? 1e9 : at.h / (double)bands(r),
           thin_k = k->uneven ? 1e9 : at.w / (double)bands(k), widest = shards_label_width(p, r, k);
    bool label = widest > 0 && thin_r >= 15 && thin_k >= widest + 4;
    for (int64_t i = 0; i < shown[0]; i++)
        for (int64_t j = 0; j < shown[1]; j++) {
            int64_t pr = i % r->n, pk = j % k->n;
            Area part = part_area(r, k, shown, i, j, at);
            int tone = none ? 3 : shown[0] > 1 ? shards_shade(pr, r->n) : shards_shade(pk, k->n);
            /* what all hold has no rank's tone: white, as an uncut dim's ruler */
            Role fill = n > 1 ? ROLE_SHARD + tone : ROLE_PAPER,
                 ink = n > 1 ? ROLE_SHARD_TEXT + tone : ROLE_INK;
            scene_rect(p->s, part, 0, (Look){fill, ROLE_NONE, 0});
            if (!label) continue;
            const char *who = shards_owners(a, t, r, pr, k, pk);
            double tw = scene_width(p->s, 12, SEMIBOLD, who);
            if (tw + 4 <= part.w && part.h >= 15)
                scene_text(p->s, part.x + part.w / 2, part.y + part.h / 2 + 4.3,
                           (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ink}, who);
        }
    if (none) draw_number(p, r, k, at);
    scene_rect(p->s, at, 0, (Look){ROLE_NONE, ROLE_WEIGHT_LINE, 1.25});
    if (n > 1 && shards_holds(r, p->rank)) draw_own(p, r, k, at);
}

/* Lines where an axis cuts, with 5 px overhang, and the index of the first cut at the margin. */
void shards_draw_cuts(ShardPen *p, const DimCut *c, bool rows, Area at) {
    double x = at.x, y = at.y, w = at.w, h = at.h;
    if (c->n < 2 || seen(c, rows ? h : w) == 1) return;
    bool crowded = (rows ? h : w) / (double)bands(c) < 4;
    Role role = ROLE_AXIS + shards_axis_kind(p->c->arena, p->c->t, c);
    double line = fmax(w, h) < 100 ? 1.25 : 2;
    for (int64_t i = 1; i < bands(c) && !crowded; i++) {
        double cut = shards_band_at(c, i, rows ? h : w);
        Mark *m =
            rows ? scene_segment(p->s, (Pt){x - 5, y + cut}, (Pt){x + w + 5, y + cut}, role, line)
                 : scene_segment(p->s, (Pt){x + cut, y - 5}, (Pt){x + cut, y + h + 5}, role, line);
        m->ground = true;
    }
    if (!c->part) return;
    double cut = shards_band_at(c, 1, rows ? h : w);
    int64_t first = c->part[0] / c->blocks;
    if (rows)
        scene_textf(p->s, x - 9, y + cut + 4, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_TICK},
                    "%lld", (long long)first);
    else
        scene_textf(p->s, x + cut, y + h + 18, (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_TICK},
                    "%lld", (long long)first);
}
