/* View `storyboard`: one collective of the plan step by step: what every rank holds, which ranks
 * are in a sum, what moves next, how much was sent so far. The numbers are elements of the run's
 * own values, or there are none: see story.h. */
#include "render/storyboard/hops.h"
#include "render/storyboard/story.h"
#include "render/furniture/headline.h"
#include "render/furniture/views.h"
#include <math.h>
#include <string.h>

static const double CAP = 0.76; /* the height of digits, as a share of their size */
enum { FEW = 4, A4_ROOM = 580, SLIDE_ROOM = 350, LOWEST = 28, WIDEST = 84 }; /* cells of a slide */
enum { FLAG_DOWN = 8, FLAG_RIGHT = 15 }; /* of a wrong step, beside the title of its last frame */

typedef struct {
    Story t;
    const ViewCall *c;
    Scene *s;
    Arena *a;
    PresetKind preset;
    int n; /* ranks drawn */
    double x, w, cell, high, label, gap, big;
    double number; /* width of a column of numbers, where cells show whole chunks */
} RingPen;

static RingKind kind(const RingPen *p) { return p->t.ring.kind; }
static bool sums(const RingPen *p) { return kind(p) == RING_SCATTER || kind(p) == RING_REDUCE; }

/* Left edge of a column; before the last of a folded group there is a gap for the ranks left out.
 */
static bool folded(const RingPen *p) { return p->t.ring.n > p->n; }
static double column(const RingPen *p, double k) {
    return k * p->cell + (folded(p) && k > p->n - 1.5 ? 30 : 0);
}

/* ---- a cell ---- */

/* Which chunk a cell without numbers has: that of its row, of a gather that of the rank it is from.
 */
static int moved_chunk(const RingPen *p, const RingCell *k, int chunk) {
    return kind(p) == RING_GATHER ? k->first : p->t.ring.shown[chunk];
}

/* Number and terms; without numbers the terms, or the name of the chunk, stand in their place. */
static void cell_words(RingPen *p, const RingCell *k, int chunk, const char **main,
                       const char **small) {
    bool named = (sums(p) && k->terms > 1) || kind(p) == RING_EXCHANGE;
    *small = named ? story_terms(&p->t, k, false) : NULL;
    if (*small && scene_width(p->s, 11.5, REGULAR, *small) > p->cell - 3.5)
        *small = story_terms(&p->t, k, true);
    *main = p->t.sample ? story_number(&p->t, k->value) : NULL;
    if (*main) return;
    *main = *small    ? *small
            : sums(p) ? story_terms(&p->t, k, false)
                      : arena_printf(p->a, "c%d", moved_chunk(p, k, chunk));
    *small = NULL;
}
/* What lies behind the words of a cell. */
static void cell_ground(RingPen *p, const RingCell *k, Area c, bool dark, bool pale, double fill) {
    Scene *s = p->s;
    if (pale) scene_rect(s, c, 0, (Look){ROLE_PART_SUM, ROLE_FAINT, 1.25});
    if (fill > 0) {
        scene_rect(s, (Area){c.x, c.y + c.h - fill, c.w, fill}, 0,
                   (Look){ROLE_PART_SUM, ROLE_NONE, 0});
        scene_rect(s, c, 0, (Look){ROLE_NONE, ROLE_FAINT, 1.25});
    }
    if (dark) scene_rect(s, c, 0, (Look){ROLE_SHARD, ROLE_INK, 2});
    if (k->astray)
        scene_rect(s, (Area){c.x + 1, c.y + 1, c.w - 2, c.h - 2}, 0,
                   (Look){ROLE_NONE, ROLE_FAIL, 3});
    if (kind(p) == RING_EXCHANGE && k->sends)
        scene_rect(s, (Area){c.x + 2, c.y + 2, c.w - 4, c.h - 4}, 0,
                   (Look){ROLE_NONE, ROLE_COLL_LINE, 2.2});
}
static double table_width(const RingPen *p) { return column(p, p->n - 1) + p->cell; }
/* Frames in one line share the names of chunks at its left; arrows reach out at both sides of a
 * frame. */
static double frame_width(const RingPen *p) { return table_width(p) + p->gap; }
static double line_width(const RingPen *p, int n) {
    return p->label + n * frame_width(p) - p->gap + 14;
}
static double frame_height(const RingPen *p) { return 50 + p->n * p->high + 44; }

/* ---- whole chunks ---- */

/* STRIP: where the terms stand; LANE: where arrows cross the border. */
enum { PITCH = 18, BESIDE = 3, LANE = 12, STRIP = 18 };
static const double element_size = 11.5;

static double strip(const RingPen *p) { return sums(p) ? STRIP : 0; }
/* Columns and rows of numbers decide how large the cells are; where a page has no room for that,
 * one number of each chunk stands for it. */
static void whole_sizes(RingPen *p) {
    double number = 0, most_w = p->w, cell = p->cell, high = p->high;
    int rows = 1, columns = 1;
    for (int c = 0; p->t.elements && c < p->n; c++) {
        rows = story_rows(&p->t, c) > rows ? story_rows(&p->t, c) : rows;
        columns = story_columns(&p->t, c) > columns ? story_columns(&p->t, c) : columns;
        for (int f = 0; f < p->t.frames; f++)
            for (int k = 0; k < p->n; k++)
                for (int e = 0; e < story_rows(&p->t, c) * story_columns(&p->t, c); e++) {
                    const char *text = story_element(&p->t, f, c, k, e);
                    number = fmax(number, scene_width(p->s, element_size, SEMIBOLD, text));
                }
    }
    if (!p->t.elements) return;
    p->number = number + 6, p->gap = fmin(p->gap, 26);
    p->cell = fmax(p->cell, columns * p->number + 2 * BESIDE);
    p->high = fmax(p->high, rows * PITCH + 6 + LANE + strip(p));
    double room = p->preset == PRESET_SLIDE ? SLIDE_ROOM : p->preset == PRESET_A4 ? A4_ROOM : 1e9;
    if (line_width(p, 1) <= most_w && frame_height(p) <= room) return;
    story_no_whole(&p->t);
    p->cell = cell, p->high = high;
}
/* How much of a partial sum's cell is filled: whole rows, so that no edge goes through numbers. */
static double whole_fill(const RingPen *p, const RingCell *k, int chunk) {
    int rows = story_rows(&p->t, chunk), n = p->t.ring.n;
    int full = (int)lround((double)rows * k->terms / n);
    if (full >= rows && rows > 1) full = rows - 1;
    return strip(p) + full * PITCH;
}
typedef struct {
    int frame, chunk, rank;
} CellAt;
static void whole_numbers(RingPen *p, CellAt at, Area c, TextLook look) {
    int columns = story_columns(&p->t, at.chunk), rows = story_rows(&p->t, at.chunk);
    double left = c.x + (c.w - columns * p->number) / 2, top = c.y + c.h - strip(p) - 4;
    for (int e = 0; e < rows * columns; e++)
        scene_text(p->s, left + (e % columns + 1) * p->number - 3,
                   top - (rows - 1 - e / columns) * PITCH - 2, look,
                   story_element(&p->t, at.frame, at.chunk, at.rank, e));
}

/* "0+1+" and "2+3": terms that a cell has no room for in one line. False: it has no such sign. */
static bool halves(Arena *a, const char *terms, const char *line[2]) {
    const size_t middle = strlen(terms) / 2;
    const char *at = strchr(terms + (middle ? middle - 1 : 0), '+');
    if (!at) return false;
    line[0] = arena_strndup(a, terms, (size_t)(at - terms) + 1);
    line[1] = at + 1;
    return true;
}
static void draw_cell(RingPen *p, CellAt at, double x, double y) {
    const RingCell *k = &p->t.frame[at.frame].cell[at.chunk][at.rank];
    int chunk = at.chunk;
    Scene *s = p->s;
    double w = p->cell, h = p->high, small_size = p->preset == PRESET_SLIDE ? 12 : 11.5;
    /* what came in this step is what the eye has to find; a slice and a sum have what is complete
     */
    bool moved = !sums(p) && kind(p) != RING_SLICE, pale = k->done && moved && !k->fresh;
    scene_rect(s, (Area){x, y, w, h}, 0, (Look){ROLE_PAPER, ROLE_FAINT, 1.25});
    if (!k->held) return;
    bool dark = k->done && !pale, part = !k->done && !k->stale && sums(p) && k->terms > 1;
    scene_begin(s, "cell", "cell", story_cell(&p->t, k, chunk));
    scene_same(s, arena_printf(p->a, "chunk %d", chunk));
    double filled = p->t.elements ? whole_fill(p, k, chunk) : h * k->terms / p->t.ring.n;
    cell_ground(p, k, (Area){x, y, w, h}, dark, pale, part ? filled : 0);
    Role ink = dark ? ROLE_SHARD_TEXT : k->stale ? ROLE_SECOND : ROLE_INK;
    const char *main, *small, *line[2];
    cell_words(p, k, chunk, &main, &small);
    double size = p->big;
    int weight = k->stale || (!p->t.sample && sums(p)) ? REGULAR : SEMIBOLD;
    /* a red frame is three wide, and inside the cell; letters of a line keep 1.5 from both */
    const double inside = k->astray ? w - 10 : w - 3.5;
    while (size > small_size && scene_width(s, size, weight, main) > inside) size -= 0.5;
    bool two = small && !k->stale;
    double base = h * (!two ? 0.62 : h < 40 ? 0.44 : 0.5), edge = h - filled;
    /* the edge of the fill goes under the number, or above it, not through it if there is room */
    if (part && two && edge > base - CAP * size / 2 && edge < base + 3) base = edge - 2;
    if (part && !two && edge > base - CAP * size - 3 && edge < base + 3)
        base = fmin(edge + CAP * size + 4, h - 4);
    if (p->t.elements)
        whole_numbers(p, at, (Area){x, y, w, h},
                      (TextLook){ALIGN_RIGHT, element_size, weight, ink});
    else if (!two && scene_width(s, size, weight, main) > inside && halves(s->arena, main, line))
        for (int i = 0; i < 2; i++)
            scene_text(s, x + w / 2, y + h / 2 + 4 + (i ? 8 : -8),
                       (TextLook){ALIGN_MIDDLE, size, weight, ink}, line[i]);
    else
        scene_text(s, x + w / 2, y + base, (TextLook){ALIGN_MIDDLE, size, weight, ink},
                   scene_fit(s, main, w - 3, size, weight));
    double under = h - (h < 40 ? 5 : 6);
    if (part && edge > under - CAP * small_size - 1 && edge < under + 3) under = edge - 3;
    if (two)
        scene_text(s, x + w / 2, y + under, (TextLook){ALIGN_MIDDLE, small_size, REGULAR, ink},
                   small);
    scene_end(s);
}

/* A chunk's way to the next rank: a short arrow over the border; from the last rank out at the
 * right and in at the left. Where ranks are left out between two columns it ends between them. */
static void draw_send(RingPen *p, double x0, int chunk, int k, double y) {
    double at = y + chunk * p->high + 6, reach = p->cell > 50 ? 12 : 10;
    double edge = x0 + column(p, k) + p->cell;
    bool back = p->t.ring.back;
    int last = back ? 0 : p->n - 1; /* from there it wraps */
    double left = x0 + column(p, k), end = x0 + table_width(p);
    Pt go[2] = {{edge - reach, at}, {edge + reach, at}},
       in[2] = {{x0 - reach, at}, {x0 + reach, at}};
    if (back) {
        go[0].x = left + reach, go[1].x = left - reach;
        in[0].x = end + reach, in[1].x = end - reach;
    }
    scene_arrow(p->s, go, 2, (ArrowLook){ROLE_COLL_LINE, 2.2, false, false}, -1);
    if (k == last) scene_arrow(p->s, in, 2, (ArrowLook){ROLE_COLL_LINE, 2.2, false, false}, -1);
}

/* ---- a frame ---- */

static void row_name(RingPen *p, int i, double x, double y) {
    const TraceSample *k = p->t.sample;
    const char *at = k && i < k->n_at ? k->at[i] : "";
    const char *name = kind(p) == RING_EXCHANGE
                           ? arena_printf(p->a, "r%lld", (long long)p->t.rank[i])
                           : arena_printf(p->a, "c%d", p->t.ring.shown[i]);
    scene_begin(p->s, "chunk", arena_printf(p->a, "chunk-%d", p->t.ring.shown[i]),
                *at ? arena_printf(p->a, "chunk %d: element %s", p->t.ring.shown[i], at) : NULL);
    scene_text(p->s, x, y, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, name);
    scene_end(p->s);
}
static void draw_frame(RingPen *p, const Ring *f, double x0, double y, bool names) {
    Scene *s = p->s;
    double top = y + 42;
    scene_at(s, f->step + 1);
    scene_begin(s, "frame", arena_printf(p->a, "frame-%d", f->step),
                arena_printf(p->a, "%s: %s", story_frame(&p->t, f), story_sent(&p->t, f)));
    const char *title = story_frame(&p->t, f);
    scene_text(s, x0, y + 12, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, title);
    if (p->t.is_wrong && f == &p->t.frame[p->t.frames - 1]) /* here the mistake has come of it */
        wrong_flag(s, p->t.wrong, p->t.step, x0 + scene_width(s, 15, BOLD, title) + FLAG_RIGHT,
                   y + FLAG_DOWN);
    bool words = true;
    for (int k = 0; k < p->n; k++)
        words &=
            scene_width(s, 12, REGULAR, arena_printf(p->a, "rank %lld", (long long)p->t.rank[k])) +
                6 <=
            p->cell;
    for (int k = 0; k < p->n; k++)
        scene_textf(s, x0 + column(p, k) + p->cell / 2, y + 34,
                    (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, "%s%lld",
                    words ? "rank " : "r", (long long)p->t.rank[k]);
    for (int c = 0; c < p->n; c++) {
        if (names) row_name(p, c, x0 - 18, top + (c + 0.5) * p->high + 4);
        for (int k = 0; k < p->n; k++)
            draw_cell(p, (CellAt){(int)(f - p->t.frame), c, k}, x0 + column(p, k),
                      top + c * p->high);
    }
    for (int c = 0; folded(p) && c < p->n; c++)
        scene_text(s, x0 + column(p, p->n - 1) - 15, top + (c + 0.5) * p->high + 8,
                   (TextLook){ALIGN_MIDDLE, 14, REGULAR, ROLE_SECOND}, "…");
    for (int c = 0; c < p->n; c++)
        for (int k = 0; k < p->n; k++)
            if (f->cell[c][k].sends && kind(p) != RING_EXCHANGE) draw_send(p, x0, c, k, top);
    double under = top + p->n * p->high;
    scene_segment(s, (Pt){x0, under + 12}, (Pt){x0 + table_width(p), under + 12}, ROLE_GRID, 1);
    scene_text(s, x0, under + 30,
               (TextLook){ALIGN_LEFT, 12.5, REGULAR, f->step ? ROLE_INK : ROLE_SECOND},
               scene_fit(s, story_sent(&p->t, f), table_width(p) + 16, 12.5, REGULAR));
    scene_end(s);
    scene_at(s, 0);
}

/* ---- the page ---- */

typedef enum {
    KEY_SEND,
    KEY_PART,
    KEY_FRESH,
    KEY_DONE,
    KEY_STALE,
    KEY_TERMS,
    KEY_ASTRAY,
    KEY_COUNT
} Key;
static const char *key_words(RingPen *p, Key k) {
    const char *what = p->t.ring.max ? "maximum" : "sum";
    bool swap = kind(p) == RING_EXCHANGE, slice = kind(p) == RING_SLICE;
    if (story_skipped(&p->t)) return k == KEY_TERMS && sums(p) ? "of which rank" : NULL;
    switch (k) {
    case KEY_SEND:
        if (slice) return NULL;
        if (swap) return p->t.ring.shift ? "sent next" : p->t.ranks % 2 ? NULL : "swapped next";
        return folded(p) ? "sent next"
                         : arena_printf(p->a, "sent next (rank %lld wraps to rank %lld)",
                                        (long long)p->t.rank[p->n - 1], (long long)p->t.rank[0]);
    case KEY_PART:
        return sums(p) && p->t.ring.n > 2
                   ? arena_printf(p->a, "partial %s, by share of %d terms", what, p->t.ring.n)
                   : NULL;
    case KEY_FRESH: return sums(p) || slice ? NULL : "came in this step";
    case KEY_DONE:
        if (swap && p->t.ring.shift) return NULL; /* nothing is */
        return sums(p) ? "complete" : slice ? "kept" : swap ? "in its place" : "held before";
    case KEY_STALE: return sums(p) ? "stale, already sent" : slice ? "dropped" : NULL;
    case KEY_TERMS: return sums(p) ? "ranks added, in order" : swap ? "from, to" : NULL;
    case KEY_ASTRAY: return p->t.ring.shift ? "not what is due there" : NULL;
    default: return NULL;
    }
}
static void key_mark(RingPen *p, Key k, double x, double y) {
    Scene *s = p->s;
    Pt pt[2] = {{x, y}, {x + 26, y}};
    bool swap = kind(p) == RING_EXCHANGE;
    if (k == KEY_SEND && swap)
        scene_rect(s, (Area){x + 1, y - 7, 24, 14}, 0, (Look){ROLE_NONE, ROLE_COLL_LINE, 2.2});
    if (k == KEY_SEND && !swap)
        scene_arrow(s, pt, 2, (ArrowLook){ROLE_COLL_LINE, 2.2, false, false}, -1);
    if (k == KEY_PART)
        scene_rect(s, (Area){x, y - 8, 26, 16}, 0, (Look){ROLE_PAPER, ROLE_FAINT, 1.25});
    if (k == KEY_PART)
        scene_rect(s, (Area){x, y, 26, 8}, 0, (Look){ROLE_PART_SUM, ROLE_FAINT, 1.25});
    const bool moved = !sums(p) && kind(p) != RING_SLICE;
    if (k == KEY_DONE && moved)
        scene_rect(s, (Area){x, y - 8, 26, 16}, 0, (Look){ROLE_PART_SUM, ROLE_FAINT, 1.25});
    if (k == KEY_FRESH || (k == KEY_DONE && !moved))
        scene_rect(s, (Area){x + 1, y - 7, 24, 14}, 0, (Look){ROLE_SHARD, ROLE_INK, 2});
    if (k == KEY_ASTRAY)
        scene_rect(s, (Area){x + 1.5, y - 6.5, 23, 13}, 0, (Look){ROLE_NONE, ROLE_FAIL, 3});
    if (k == KEY_STALE)
        scene_text(s, x + 13, y + 5, (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND},
                   p->t.sample && !p->t.whole ? "0.7" : "7");
    if (k == KEY_TERMS)
        scene_text(s, x + 13, y + 4.5, (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_INK},
                   story_skipped(&p->t)              ? "1"
                   : swap || folded(p) || p->n > FEW ? "1→2"
                                                     : "1+2");
}
static double draw_key(RingPen *p, double y) {
    double x = p->x;
    scene_begin(p->s, "legend", "legend", NULL);
    for (int k = 0; k < KEY_COUNT; k++) {
        const char *words = key_words(p, (Key)k);
        if (!words) continue;
        double w = 34 + scene_width(p->s, 12, REGULAR, words);
        if (x > p->x && x + w > p->x + p->w) x = p->x, y += 24;
        key_mark(p, (Key)k, x, y);
        scene_text(p->s, x + 34, y + 4.5, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, words);
        x += w + 20;
    }
    scene_end(p->s);
    return y + 18;
}

static void sizes(RingPen *p) {
    bool slide = p->preset == PRESET_SLIDE, column = p->preset == PRESET_COLUMN, few = p->n <= FEW;
    p->label = column ? 32 : 34;
    p->gap = column ? 26 : 34;
    p->cell = slide ? (few ? 66 : 54)
              : few ? 57
                    : 50; /* four frames of four ranks in a line of the wide page */
    if (p->n == 2) p->cell = 84;
    p->high = slide ? (few ? 58 : 36) : few ? 46 : 42;
    /* decimals are as wide as a cell: arrows cross the border above them */
    if (!slide && p->t.sample && !p->t.whole) p->high += 6;
    p->big = !p->t.sample ? 13 : p->t.whole ? 16 : 14;
}

/* One size for all numbers of the page: that of the widest. */
static void one_size(RingPen *p, int from, int to) {
    const char *main, *small;
    double least = p->preset == PRESET_SLIDE ? 12 : 11.5;
    for (int i = from; i < to; i++)
        for (int c = 0; c < p->n; c++)
            for (int k = 0; k < p->n; k++) {
                if (!p->t.frame[i].cell[c][k].held) continue;
                cell_words(p, &p->t.frame[i].cell[c][k], c, &main, &small);
                while (p->big > least && scene_width(p->s, p->big, SEMIBOLD, main) > p->cell - 9)
                    p->big -= 0.5;
            }
}

static Scene *page_at(RingPen *p, int from, int to, int per) {
    Scene *s = p->s = figure_new(p->c, "storyboard", p->preset);
    double all = line_width(p, per), step = frame_width(p);
    if (p->t.sample) one_size(p, from, to);
    if (p->preset == PRESET_WIDE) { /* short stories need no wide canvas, long ones a wider one */
        const char *rule = p->t.is_wrong ? wrong_title(p->t.wrong) : NULL;
        double title = scene_width(s, 20, BOLD, rule ? rule : story_headline(&p->t)) + 4;
        p->w = fmax(fmin(title, p->w), fmax(all, 620));
        s->w = p->w + 2 * p->x;
        s->px_width = (int)(presets[p->preset].px * s->w / presets[p->preset].w);
    }
    const char *sub[] = {story_text(&p->t), words_shrink(p->c->arena, p->c->t), NULL};
    double y =
        headline_draw(s, p->preset, p->t.is_wrong ? p->t.wrong : NULL, story_headline(&p->t), sub) +
        (p->preset == PRESET_SLIDE ? 4 : 14);
    if (p->t.wrong->n)
        y = wrong_notes(s, p->t.wrong, p->x, p->w, y - 4, p->preset == PRESET_SLIDE ? 2 : 0) + 8;
    for (int i = from; i < to; i++) {
        int k = i - from;
        draw_frame(p, &p->t.frame[i], p->x + p->label + k % per * step,
                   y + k / per * (frame_height(p) + 6), k % per == 0);
    }
    y += ((to - from + per - 1) / per) * (frame_height(p) + 6) - 6;
    y = draw_key(p, y + 6);
    y = figure_foot(s, p->c, (Band){p->x, p->w, y}, story_plan(&p->t), NULL);
    s->desc = arena_printf(p->a, "%s. %s %s", story_headline(&p->t), story_text(&p->t),
                           story_plan(&p->t));
    figure_page(s, p->preset, y);
    return s;
}

/* Frames [from, to) in lines of `per`; rows of a slide give way until the page fits. */
static Scene *storyboard_page(RingPen *p, int from, int to, int per) {
    double room = presets[p->preset].h;
    Scene *s = page_at(p, from, to, per);
    while (p->preset == PRESET_SLIDE && !p->t.elements && s->scale < 1 &&
           s->w <= presets[p->preset].w && p->high > LOWEST) {
        p->high = fmax(LOWEST, p->high - ceil((s->h - room) / p->n));
        s = page_at(p, from, to, per);
    }
    return s;
}

static bool prepare(const ViewCall *c, RingPen *p) {
    *p = (RingPen){.c = c, .a = c->arena};
    if (!story_prepare(c, &p->t)) return false;
    p->n = p->t.ring.n_shown;
    return true;
}

/* The ring, hop by hop: where it is asked for, and without being asked where a plan has one and no
 * mistake to tell. */
static bool tells_hops(const ViewCall *c) {
    const char *part = c->o->part;
    return part ? !strcmp(part, "ring") : hops_drawn(c) && !story_mistake(c->t);
}

/* Frames in a line of that width. */
static int per_line(const RingPen *p, double w) {
    int per = p->t.frames;
    while (per > 1 && line_width(p, per) > w + 0.1) per--;
    return per;
}
/* So much wider than a page may lines be where there are more than two of them. */
static const double WIDER = 1.7;

int view_storyboard(const ViewCall *c, Scene **page) {
    RingPen p;
    if (tells_hops(c)) return view_hops(c, page);
    if (!prepare(c, &p)) return 0;
    furniture_preset(c->o->preset, &p.preset);
    p.x = presets[p.preset].margin;
    p.w = presets[p.preset].w - 2 * p.x;
    sizes(&p);
    p.s = figure_new(c, "storyboard", p.preset);
    whole_sizes(&p);
    int frames = p.t.frames, pages = 0, per = per_line(&p, p.w);
    if (p.preset == PRESET_WIDE && frames > 2 * per) per = per_line(&p, WIDER * p.w);
    if (p.preset == PRESET_SLIDE && per == 1) /* arrows keep clear of numbers */
        p.cell = fmax(p.cell, fmin(WIDEST, p.cell + (p.w - line_width(&p, 1)) / p.n));
    /* of several lines the sums end one */
    if (kind(&p) == RING_REDUCE && p.preset != PRESET_SLIDE && per > p.n && per < frames) per = p.n;
    int lines = (frames + per - 1) / per;
    per = (frames + lines - 1) / lines;
    int each = p.preset == PRESET_SLIDE
                   ? per
                   : frames; /* frames on a page; letters of 7 pt ask for pages of A4 */
    if (p.preset == PRESET_A4) each = per * (int)fmax(1, floor(A4_ROOM / (frame_height(&p) + 6)));
    for (int i = 0; i < frames && pages < VIEW_MAX_PAGES; i += each)
        page[pages++] = storyboard_page(&p, i, i + each < frames ? i + each : frames, per);
    return pages;
}

/* ---- text ---- */

/* "24 36; 10 15": the rows of a whole chunk. */
static const char *whole_text(RingPen *p, CellAt at) {
    Str s = str_new(p->a);
    int columns = story_columns(&p->t, at.chunk), n = story_rows(&p->t, at.chunk) * columns;
    for (int e = 0; e < n; e++)
        str_addf(&s, "%s%s",
                 !e            ? ""
                 : e % columns ? " "
                               : "; ",
                 story_element(&p->t, at.frame, at.chunk, at.rank, e));
    return s.s;
}
static const char *cell_text(RingPen *p, CellAt at) {
    const RingCell *x = &p->t.frame[at.frame].cell[at.chunk][at.rank];
    int chunk = at.chunk;
    if (!x->held) return "·";
    bool named = (sums(p) && x->terms > 1) || kind(p) == RING_EXCHANGE;
    const char *terms = named ? story_terms(&p->t, x, p->n > FEW) : "";
    const char *t = p->t.elements ? whole_text(p, at)
                    : p->t.sample ? story_number(&p->t, x->value)
                    : sums(p)     ? story_terms(&p->t, x, p->n > FEW)
                                  : arena_printf(p->a, "c%d", moved_chunk(p, x, chunk));
    if (x->stale && !x->done) t = arena_printf(p->a, "(%s)", t);
    else if (named && p->n <= FEW && p->t.sample) t = arena_printf(p->a, "%s =%s", t, terms);
    else if (named && !sums(p)) t = terms;
    return arena_printf(p->a, "%s%s%s", t, x->astray ? " ✗" : "", x->sends ? " >" : "");
}
/* Some of a frame's ranks, first to end - 1, in cells of w columns. */
typedef struct {
    int first, end, w;
} Ranks;
static void text_frame(Str *s, RingPen *p, const Ring *f, Ranks r) {
    str_add(s, "    ");
    for (int k = r.first; k < r.end; k++)
        words_pad(s, arena_printf(p->a, "rank %lld", (long long)p->t.rank[k]), r.w, false);
    words_end_line(s);
    for (int ch = 0; ch < p->n; ch++) {
        words_pad(
            s,
            arena_printf(p->a, "%s%d", kind(p) == RING_EXCHANGE ? "r" : "c", p->t.ring.shown[ch]),
            4, false);
        for (int k = r.first; k < r.end; k++)
            words_pad(s, cell_text(p, (CellAt){(int)(f - p->t.frame), ch, k}), r.w, false);
        words_end_line(s);
    }
}
/* Columns of text that a cell takes: whole chunks have theirs where one fits into a line. */
static int cell_columns(RingPen *p, int w) {
    int most = p->n <= FEW ? 18 : 9, widest = most;
    for (int f = 0; p->t.elements && f < p->t.frames; f++)
        for (int ch = 0; ch < p->n; ch++)
            for (int k = 0; k < p->n; k++) {
                int n = words_columns(cell_text(p, (CellAt){f, ch, k})) + 2;
                widest = n > widest ? n : widest;
            }
    if (widest <= w - 4) return widest;
    story_no_whole(&p->t);
    return most;
}
const char *view_storyboard_text(const ViewCall *c) {
    RingPen p;
    Role role;
    if (tells_hops(c)) return view_hops_text(c);
    if (!prepare(c, &p)) return NULL;
    Str s = str_new(p.a);
    int w = furniture_columns(c->o), cell = cell_columns(&p, w), most = (w - 4) / cell;
    most = (p.n + (p.n + most - 1) / most - 1) / ((p.n + most - 1) / most); /* all alike */
    words_paragraph(&s, "", story_headline(&p.t), w);
    words_paragraph(&s, "", story_text(&p.t), w);
    wrong_text(&s, p.t.wrong, w);
    for (int i = 0; i < p.t.frames; i++) {
        const Ring *f = &p.t.frame[i];
        str_add(&s, "\n");
        words_paragraph(&s, "",
                        arena_printf(p.a, "%s, %s", story_frame(&p.t, f), story_sent(&p.t, f)), w);
        for (int k = 0; k < p.n; k += most)
            text_frame(&s, &p, f, (Ranks){k, k + most < p.n ? k + most : p.n, cell});
    }
    const char *key = story_skipped(&p.t)         ? ""
                      : kind(&p) == RING_EXCHANGE ? "> swapped in the next step; =0→1 from, to"
                      : kind(&p) == RING_SLICE    ? "(7) dropped"
                      : sums(&p)
                          ? "> sent in the next step; (7) already sent; =0+1 ranks added, in "
                            "order"
                          : "> sent in the next step";
    if (p.t.ring.shift)
        key = arena_printf(p.a, "%s%s✗ not what is due there", key, *key ? "; " : "");
    str_add(&s, "\n");
    words_paragraph(&s, "", key, w);
    words_paragraph(&s, "", story_plan(&p.t), w);
    words_paragraph(&s, "", words_stamp(p.a, c->t, &role), w);
    return s.s;
}
