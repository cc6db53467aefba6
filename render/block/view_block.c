/* View `block`: what one GPU computes and communicates in one layer, every edge with its local
 * shape. Wide: strips side by side on common rows; column: one under the other; slide: one strip
 * per page, bytes as bars. */
#include "render/block/block_page.h"
#include "render/graph/block_divide.h"
#include "render/graph/block_place.h"
#include "render/graph/block_read.h"
#include "render/graph/block_words.h"
#include "render/mirror/mirror_page.h"
#include "render/furniture/views.h"
#include "base/text.h"
#include <math.h>
#include <string.h>

static const BlockLook full = {.op = 26,
                               .joint = 28,
                               .abut = 24,
                               .weight = 42,
                               .coll = 42,
                               .move = 20,
                               .gap = 38,
                               .fork = 52,
                               .head = 85,
                               .plain_head = 84,
                               .tail = 85,
                               .sym = 16,
                               .num = 31,
                               .numbers = true};

/* Distance from the left edge of a strip to that of the next: strips of the stream stand on a grid
 * of 568. */
static double pitch(const BlockFrame *f, double width) {
    return f->strip->to >= 0 ? width + fmax(20, 568 - width) : width + 44;
}

/* How many of n strips, at most `max`, fit side by side into width w; their total width goes to
 * *used. */
static int fit_line(const BlockFrame *f, const double *width, int n, double w, int max,
                    double *used) {
    double x = 0;
    int k = 0;
    for (; k < n && k < max; k++) {
        if (k && x + width[k] > w) break;
        *used = x + width[k];
        x += pitch(&f[k], width[k]);
    }
    return k;
}

/* Strips of about as many rows stand on the same: a much shorter one would be torn in two. */
static void line_rows(BlockPen *p, BlockFrame *frame, int n) {
    enum { TORN = 3 }; /* rows that a strip may be stretched by, less one */
    BlockGrid *grid = ARENA_ARRAY(p->g->arena, BlockGrid, n);
    int least = 1 << 20, most = 0;
    for (int i = 0; i < n; i++) {
        most = (int)fmax(most, frame[i].strip->levels);
        if (frame[i].strip->to < 0) continue; /* a chain is not stretched */
        least = (int)fmin(least, frame[i].strip->levels);
    }
    if (most - least < TORN) block_rows(p, &grid[0], frame, n);
    for (int i = 0; i < n && most - least >= TORN; i++) block_rows(p, &grid[i], &frame[i], 1);
}

static double draw_line(BlockPen *p, BlockFrame *frame, const double *width, int n, double x,
                        double y) {
    double height = 0;
    for (int i = 0; i < n; i++) {
        frame[i].x = x;
        frame[i].y = y;
        x += pitch(&frame[i], width[i]);
        block_columns(p, &frame[i]);
    }
    line_rows(p, frame, n);
    for (int i = 0; i < n; i++) {
        block_strip(p, &frame[i]);
        height = fmax(height, block_height(p, &frame[i]));
    }
    return height;
}

/* Width of a line of strips, and how many stand in one. */
typedef struct {
    double w;
    int max;
} LineRoom;
/* The lines that the strips take up. */
static int count_lines(const BlockFrame *f, const double *width, int n, LineRoom room) {
    double used;
    int lines = 0;
    for (int i = 0; i < n; lines++) i += fit_line(f + i, width + i, n - i, room.w, room.max, &used);
    return lines;
}
static void set_tight(const ViewCall *c, BlockGraph *g, BlockFrame *f, double *width, bool tight) {
    f->tight = tight;
    *width = block_measure(c, g, &full, f, NULL);
}
/* The widths of n strips. One takes no more room than it needs where it is too wide for the page,
 * or where there is then a line less; all do where that takes all of them. */
static void measure(const ViewCall *c, BlockGraph *g, BlockFrame *frame, double *width, int n,
                    LineRoom room) {
    for (int i = 0; i < n; i++) {
        set_tight(c, g, &frame[i], &width[i], frame[i].tight);
        if (width[i] > room.w && !frame[i].tight) set_tight(c, g, &frame[i], &width[i], true);
    }
    const int lines = count_lines(frame, width, n, room);
    for (int i = 0; i < n && room.max > 1 && lines > 1; i++) {
        if (frame[i].tight) continue;
        set_tight(c, g, &frame[i], &width[i], true);
        if (count_lines(frame, width, n, room) < lines) return;
        set_tight(c, g, &frame[i], &width[i], false);
    }
    if (room.max < 2 || lines < 2) return;
    BlockFrame *was = arena_memdup(c->arena, frame, (size_t)n * sizeof *frame);
    for (int i = 0; i < n; i++) set_tight(c, g, &frame[i], &width[i], true);
    const bool less = count_lines(frame, width, n, room) < lines;
    for (int i = 0; i < n && !less; i++) set_tight(c, g, &frame[i], &width[i], was[i].tight);
}

/* How large all of the page is seen on a screen, in relation to others of the same strips. */
static double seen(const ViewCall *c, BlockGraph *g, const BlockFrame *f, const double *width,
                   LineRoom room, int n) {
    enum { SCREEN_W = 16, SCREEN_H = 10, BETWEEN = 24, FURNITURE = 170 }; /* head, legend, foot */
    double widest = 0, height = FURNITURE, used = 0;
    for (int i = 0; i < n;) {
        const int k = fit_line(f + i, width + i, n - i, room.w, room.max, &used);
        double line = 0;
        for (int q = i; q < i + k; q++) {
            double h;
            block_measure(c, g, &full, &f[q], &h);
            line = fmax(line, h);
        }
        widest = fmax(widest, used), height += line + BETWEEN;
        i += k;
    }
    return fmin(SCREEN_W / widest, SCREEN_H / height);
}
/* Measures strips, and returns how wide their lines become: in the room that a page has, or in more
 * where so all of it is seen much larger, in fewer lines, than as a tower with nothing beside it.
 */
static double lines_room(const ViewCall *c, BlockGraph *g, BlockFrame *frame, double *width, int n,
                         LineRoom room) {
    static const double more[] = {1.25, 1.5}, much = 1.05;
    measure(c, g, frame, width, n, room);
    if (room.max < 2 || n < 2 || count_lines(frame, width, n, room) < 2) return room.w;
    const double own = seen(c, g, frame, width, room, n);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        BlockFrame *f = arena_memdup(c->arena, frame, (size_t)n * sizeof *f);
        double *w = ARENA_ARRAY(c->arena, double, n);
        const LineRoom wider = {room.w * more[i], room.max};
        for (int k = 0; k < n; k++) f[k].tight = false;
        measure(c, g, f, w, n, wider);
        if (seen(c, g, f, w, wider, n) < much * own) continue;
        for (int k = 0; k < n; k++) frame[k].tight = f[k].tight, width[k] = w[k];
        return wider.w;
    }
    return room.w;
}

/* Strips [first, first + n) on one page, wrapped into lines. */
static Scene *page_new(const ViewCall *c, BlockGraph *g, PresetKind preset, BlockFrame *all,
                       int first, int n) {
    BlockFrame *frame = all + first;
    int per_line = preset == PRESET_COLUMN ? 1 : 4;
    const Preset *pr = &presets[preset];
    double *width = ARENA_ARRAY(c->arena, double, n), widest = 0, used = 0;
    /* two strips of a block belong side by side: the canvas grows for them, up to where the
     * smallest letters of a PNG have 11 pixels; beyond it the PNG grows, too */
    const double most = pr->px * pr->min_size / 11, own = preset == PRESET_COLUMN ? pr->w : most;
    double room = own - 2 * pr->margin;
    if (preset == PRESET_WIDE) room = lines_room(c, g, frame, width, n, (LineRoom){room, per_line});
    else measure(c, g, frame, width, n, (LineRoom){room, per_line});
    for (int i = 0; i < n; widest = fmax(widest, used))
        i += fit_line(frame + i, width + i, n - i, room, per_line, &used);
    Scene *s = figure_new(c, "block", preset);
    double wide =
        n > 1 ? 1140
              : 760; /* a single strip needs no wide canvas; the scale of a PNG stays the same */
    s->w = fmax(preset == PRESET_COLUMN ? pr->w : wide, ceil(widest + 2 * pr->margin));
    if (preset == PRESET_WIDE && n == 1) s->px_width = (int)(pr->px * s->w / 1140);
    if (preset == PRESET_WIDE && n > 1) s->px_width = (int)(pr->px * fmax(1, s->w / own));
    BlockPen p = block_pen(c, g, s, &full);
    const char *sub[8];
    block_subtitle(g, phase_text(g->pass), sub);
    const WrongList *wrong = block_wrong(g, first, n);
    s->wrong = wrong->n || words_different(g->t);
    double y = figure_head(s, preset, block_title(g, first, n), sub, 0) + 14;
    y = wrong_notes(s, wrong, pr->margin, s->w - 2 * pr->margin, y - 10, 0) + (wrong->n ? 22 : 10);
    s->desc = block_description(g, first, n);
    for (int i = 0; i < n;) {
        int k = fit_line(frame + i, width + i, n - i, room, per_line, &used);
        scene_row(s, block_row_name(&g->strip[first + i]), y);
        y += draw_line(&p, frame + i, width + i, k, pr->margin, y) + 24;
        i += k;
    }
    double w = s->w - 2 * pr->margin;
    scene_row(s, "legend", y - 4);
    y = figure_legend(s, (Band){pr->margin, w, y - 4}, p.legend);
    y = figure_foot(s, c, (Band){pr->margin, w, y}, block_totals(g, first, n), NULL);
    figure_page(s, preset, y);
    return s;
}

/* Strip i on a page of its own. */
static Scene *own_page(const ViewCall *c, BlockGraph *g, PresetKind preset, int i) {
    BlockFrame *frame = block_frames(g);
    if (preset == PRESET_SLIDE) return block_slide(c, g, &frame[i]);
    Scene *s = page_new(c, g, preset, frame, i, 1);
    if (s->scale * 11.5 >= 7) return s;
    frame[i].tight = true;
    return page_new(c, g, preset, frame, i, 1);
}

static bool readable(const Scene *s, PresetKind preset) {
    return preset == PRESET_SLIDE ? s->scale >= 1 : s->scale * 11.5 >= 7;
}

/* Can it be read, and does nothing on it touch? */
static bool clean(const ViewCall *c, const Scene *s, PresetKind preset) {
    const char *report;
    return readable(s, preset) && scene_lint(s, c->arena, &report) == 0;
}

/* The graph with strip i divided in two where its page cannot be read or is crowded: as many of its
 * boxes as fit stay, or a few less where fewer values pass to the next page, or where it would have
 * one or two. */
static BlockGraph *divided(const ViewCall *c, BlockGraph *g, PresetKind preset, int i) {
    enum { MOST = 24, VALUE = 3, FEW = 3 }; /* boxes on a page; so many less for a value less */
    if (clean(c, own_page(c, g, preset, i), preset)) return g;
    BlockGraph *best = NULL, *legible = NULL, *next = NULL;
    int fit = 0, least = 0, boxes = block_boxes(g, i);
    for (int n = boxes - 1 < MOST ? boxes - 1 : MOST; n > 0 && 2 * n > fit; n--) {
        const int cost = VALUE * block_passing(g, i, n) - n + (boxes - n < FEW ? FEW + 1 : 0);
        if ((best && cost >= least) || !(next = block_divide(g, i, n))) continue;
        Scene *s = own_page(c, next, preset, i);
        if (!legible && readable(s, preset)) legible = next;
        if (!clean(c, s, preset)) continue;
        if (!best) fit = n;
        best = next, least = cost;
    }
    best = best ? best : legible ? legible : next; /* a single box, at worst */
    return best ? best : g;
}

/* A slide per strip; A4 per strip too if all on one page would be under 7 pt. */
static int pages(const ViewCall *c, BlockGraph *g, PresetKind preset, Scene **page) {
    for (int i = 0; i < g->n_strips; i++)
        if (block_fold_hops(g, i)) block_place(g, i);
    if (preset != PRESET_SLIDE) {
        page[0] = page_new(c, g, preset, block_frames(g), 0, g->n_strips);
        if (preset != PRESET_A4 || readable(page[0], preset)) return 1;
    }
    for (int i = 0; i < g->n_strips; i++) g = divided(c, g, preset, i);
    int n = g->n_strips < VIEW_MAX_PAGES ? g->n_strips : VIEW_MAX_PAGES;
    for (int i = 0; i < n; i++) page[i] = own_page(c, g, preset, i);
    return n;
}

int view_block(const ViewCall *c, Scene **page) {
    PresetKind preset;
    furniture_preset(c->o->preset, &preset);
    RenderOptions o = *c->o;
    ViewCall call = *c;
    bool weights = o.part && !strcmp(o.part, "weights");
    if (weights) o.part = NULL;
    call.o = &o;
    BlockGraph *g = block_read_trace(&call);
    if (!g) return 0;
    int n = !c->pass || weights ? view_mirror(&call, g, preset, weights, page) : 0;
    if (weights && !n)
        diag_error(c->d, "E0211", diag_nowhere, "give the plan `pass: backward`",
                   "part 'weights' shows gradients, and the trace has none");
    if (weights) return n;
    return n ? n : pages(&call, g, preset, page);
}
