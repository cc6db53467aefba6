/* View `routing`: the rows that the ranks of one group send to each other's experts, as ribbons and
 * as a matrix, and what that means for the rank that receives most. The receiver decides how long a
 * step takes, so its numbers stand out. Refuses more ribbons than an eye can follow: many ranks
 * have the matrix, binned if need be, many experts are taken together by their rank. */
#include "render/routing/frames.h"
#include "render/routing/spread.h"
#include "render/furniture/page_room.h"
#include "render/furniture/views.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_RIBBONS = 8,  /* ranks with ribbons */
    MOST_EXPERTS = 32, /* that have a bar each */
    MOST_NUMBERS = 16, /* ranks with a number in each cell */
    LARGE = 44,        /* a cell with room for a larger number */
    BINS = 64,
    SLIDE_MATRIX = 310,
    HOT = 10,
    HOT_SLIDE = 4,
    CURVE = 24,   /* points of a side of a ribbon */
    MOST_UNIT = 5 /* height of a row where rows are few */
};

typedef struct {
    const ViewCall *c;
    Routing r;
    const Tokens *k;  /* NULL: single tokens are not known, or too many */
    int64_t most_own; /* tokens of a rank */
    Scene *s;
    PresetKind preset;
    double x, w;
    double less;       /* height that the ribbons of a slide give up for its footer; negative: what
                          those of a sheet have more */
    bool narrow, each; /* each: every expert has its bar */
    bool numbers;      /* in the cells of the matrix */
    bool tiles;        /* a rank's tokens stand before its bar */
    double unit, gap;  /* height of a row; between the frames of destinations */
    double tile_x, bar_x, to_x, frame_w;
    Pt corner;             /* right and upper of the matrix */
    double *from_y, *to_y; /* [n]: tops of a member's bar; [experts or n]: of a destination's */
    double *top_y;         /* [n]: of all that a member has there */
} RoutePen;

static const char *whole(const RoutePen *p, double v) { return arena_printf(p->r.a, "%.0f", v); }
static const char *rank_name(const RoutePen *p, int64_t i) {
    return arena_printf(p->r.a, "rank %lld", (long long)p->r.rank[i]);
}

/* ---- ribbons ---- */

/* Destinations: experts, or the ranks that have them. */
static int64_t ends(const RoutePen *p) { return p->each ? p->r.experts : p->r.n; }
static int64_t home_of(const RoutePen *p, int64_t end) { return p->each ? p->r.home[end] : end; }
static double flow(const RoutePen *p, int64_t from, int64_t end) {
    return p->each ? p->r.made[from * p->r.experts + end] : p->r.sent[from * p->r.n + end];
}
static double end_rows(const RoutePen *p, int64_t end) {
    double rows = 0;
    for (int64_t i = 0; i < p->r.n; i++) rows += flow(p, i, end);
    return rows;
}
enum {
    PITCH = 20,
    GAP = 5,
    CROWD = 20,
    CROWD_PITCH = 16,
    CROWD_GAP = 1,
    FRAME_GAP = 14,
    HEAD = 24
};
/* A page has room for some twenty destinations with air between them; more stand line by line. */
static bool crowded(const RoutePen *p) { return ends(p) > CROWD; }
/* Rows that an expert has room for; 0: for all that come. */
static double room_of(const RoutePen *p) { return p->k && p->each ? (double)p->k->room : 0; }
static double end_height(const RoutePen *p, int64_t end) {
    return fmax(crowded(p) ? CROWD_PITCH : PITCH, fmax(end_rows(p, end), room_of(p)) * p->unit);
}
/* Experts that nobody asked for stand with nobody: they are told in words. */
static double place_ends(RoutePen *p, double y) {
    for (int64_t i = 0; i < p->r.n; i++) {
        y += p->each ? HEAD : 8;
        for (int64_t e = 0; e < ends(p); e++) {
            if (home_of(p, e) != i) continue;
            p->to_y[e] = y;
            y += end_height(p, e) + (crowded(p) ? CROWD_GAP : GAP);
        }
        y += p->gap;
    }
    return y - p->gap;
}
/* Tiles of a rank in a line, and the height of its tiles with name and count. */
static int64_t tiles_wide(const RoutePen *p) { return p->narrow ? 4 : p->most_own > 24 ? 8 : 6; }
static double start_height(const RoutePen *p, int64_t i) {
    double bar = fmax(34, p->r.out[i] * p->unit), each = (double)tiles_wide(p);
    return p->tiles ? fmax(bar, 38 + TILE_LINE * ceil((double)p->k->n_own[i] / each)) : bar;
}
static double place_starts(RoutePen *p, double y, double h) {
    double all = 0;
    for (int64_t i = 0; i < p->r.n; i++) all += start_height(p, i);
    double gap = p->r.n > 1 ? fmax(10, (h - all) / (double)(p->r.n - 1)) : 0;
    gap = fmin(gap, 60);
    for (int64_t i = 0; i < p->r.n; i++) {
        double high = start_height(p, i), bar = p->r.out[i] * p->unit;
        p->top_y[i] = y;
        p->from_y[i] = p->tiles ? y + (high - bar) / 2 : y;
        y += high + gap;
    }
    return y - gap;
}

typedef struct {
    int64_t from, end;
    double rows, y0, y1; /* y: of its upper side at both ends */
} Ribbon;
static void draw_ribbon(RoutePen *p, const Ribbon *b) {
    const int64_t from = b->from, end = b->end;
    const double y0 = b->y0, y1 = b->y1;
    Pt pt[2 * CURVE];
    double h = b->rows * p->unit, x0 = p->bar_x + 12, x1 = p->to_x;
    for (int i = 0; i < CURVE; i++) {
        double t = (double)i / (CURVE - 1), ease = t * t * (3 - 2 * t);
        pt[i] = (Pt){x0 + t * (x1 - x0), y0 + ease * (y1 - y0)};
        pt[2 * CURVE - 1 - i] = (Pt){pt[i].x, pt[i].y + h};
    }
    int64_t to = home_of(p, end);
    const char *who = p->each ? arena_printf(p->r.a, "expert %lld on rank %lld", (long long)end,
                                             (long long)p->r.rank[to])
                              : rank_name(p, to);
    scene_at(p->s, (int)from + 1);
    scene_begin(p->s, "ribbon",
                arena_printf(p->r.a, "ribbon-%lld-%lld", (long long)from, (long long)end),
                arena_printf(p->r.a, "%s to %s: %s", rank_name(p, from), who,
                             routing_rows(p->r.a, b->rows)));
    Mark *m = scene_poly(p->s, pt, 2 * CURVE, (Look){routing_hue(from), ROLE_WEIGHT_LINE, 0.5});
    m->ground = true, m->opacity = RIBBON_OPACITY;
    scene_end(p->s);
    scene_at(p->s, 0);
}

/* Wide ones first, so that narrow ones run over them; else in the order of their destinations. */
static int wider(const void *x, const void *y) {
    const Ribbon *a = x, *b = y;
    if (a->rows > b->rows || a->rows < b->rows) return a->rows > b->rows ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return (a->from > b->from) - (a->from < b->from);
}
/* A ribbon starts and ends behind those of the sources and destinations before it. */
static void draw_ribbons(RoutePen *p) {
    double *out = ARENA_ARRAY(p->r.a, double, p->r.n + 1),
           *in = ARENA_ARRAY(p->r.a, double, ends(p) + 1);
    Ribbon *all = ARENA_ARRAY(p->r.a, Ribbon, p->r.n * ends(p) + 1);
    size_t n = 0;
    for (int64_t to = 0; to < p->r.n; to++)
        for (int64_t e = 0; e < ends(p); e++)
            for (int64_t i = 0; home_of(p, e) == to && i < p->r.n; i++) {
                double rows = flow(p, i, e);
                if (rows > 0)
                    all[n++] = (Ribbon){i, e, rows, p->from_y[i] + out[i] * p->unit,
                                        p->to_y[e] + in[e] * p->unit};
                out[i] += rows, in[e] += rows;
            }
    qsort(all, n, sizeof *all, wider);
    for (size_t k = 0; k < n; k++) draw_ribbon(p, &all[k]);
}

/* A rank's tokens before its bar, and how many rows they come to. */
static void draw_tiles(RoutePen *p, double x, int64_t i) {
    const TilePen tile = {&p->r, p->k, p->s,
                          tile_size(TILE_H, p->preset == PRESET_SLIDE ? 12 : 11.5)};
    double y = p->top_y[i];
    int64_t n = p->k->n_own[i], each = tiles_wide(p);
    double rows = p->r.out[i], asked = 0;
    scene_text(p->s, x, y + 12, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK}, rank_name(p, i));
    for (int64_t j = 0; j < n; j++) {
        int64_t token = p->k->own[i][j];
        TokenSum sum = tokens_sum(p->k, token);
        asked += (double)sum.asked;
        tile_draw(
            &tile,
            (Pt){x + (double)(j % each * TILE_PITCH), y + 18 + (double)(j / each * TILE_LINE)},
            token, i,
            arena_printf(p->r.a, "%s: sends %lld of %s", tokens_name(&p->r, p->k, token),
                         (long long)sum.kept, routing_rows(p->r.a, (double)sum.asked)));
    }
    bool gone = asked > rows;
    const char *sends = gone ? arena_printf(p->r.a, "%.0f of %s", rows, routing_rows(p->r.a, asked))
                             : routing_rows(p->r.a, rows),
               *all =
                   arena_printf(p->r.a, "%lld token%s, %s", (long long)n, n == 1 ? "" : "s", sends);
    TextLook look = {ALIGN_LEFT, 12, REGULAR, gone ? ROLE_FAIL : ROLE_SECOND};
    bool fits = scene_width(p->s, 12, REGULAR, all) <= p->bar_x - x - 6;
    scene_text(p->s, x, y + 31 + TILE_LINE * ceil((double)n / (double)each), look,
               fits ? all : sends);
}
static void draw_start(RoutePen *p, int64_t i) {
    const Routing *r = &p->r;
    double y = p->from_y[i], h = r->out[i] * p->unit, mid = y + fmax(34, h) / 2;
    scene_begin(p->s, "rank", arena_printf(r->a, "from-%lld", (long long)i),
                arena_printf(r->a, "%s: its tokens ask for %s, %.0f of them stay", rank_name(p, i),
                             routing_rows(r->a, r->out[i]), r->sent[i * r->n + i]));
    if (h > 0)
        scene_rect(p->s, (Area){p->bar_x, y, 12, h}, 0,
                   (Look){routing_hue(i), ROLE_WEIGHT_LINE, 1.25});
    if (!p->tiles)
        scene_text(p->s, p->bar_x - 10, mid - 3, (TextLook){ALIGN_RIGHT, 13, SEMIBOLD, ROLE_INK},
                   rank_name(p, i));
    if (p->tiles) draw_tiles(p, p->tile_x, i);
    else
        scene_text(p->s, p->bar_x - 10, mid + 13, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND},
                   routing_rows(r->a, r->out[i]));
    scene_end(p->s);
}

/* Places of an expert that no row took. */
static void draw_room(RoutePen *p, int64_t e) {
    static const double dots[2] = {1.5, 2.5};
    double rows = end_rows(p, e), pad = room_of(p) - rows, y = p->to_y[e];
    if (pad <= 0) return;
    Mark *m = scene_rect(p->s, (Area){p->to_x, y + rows * p->unit, 14, pad * p->unit}, 0,
                         (Look){ROLE_NONE, ROLE_TICK, 1});
    m->dash = dots, m->n_dash = 2;
    scene_textf(p->s, p->to_x + 98, y + end_height(p, e) / 2 + 4.4,
                (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, "pad %.0f", pad);
}
/* The step of a figure that builds up at which all ranks have sent their rows: a step each. */
static int all_sent(const RoutePen *p) { return (int)p->r.n + 1; }
/* A destination's bar, stacked by source, with its name and rows. */
static void draw_end(RoutePen *p, int64_t e) {
    double y = p->to_y[e], at = y, all = end_rows(p, e), mid = y + end_height(p, e) / 2;
    for (int64_t i = 0; i < p->r.n; i++) {
        double h = flow(p, i, e) * p->unit;
        scene_at(p->s, (int)i + 1);
        if (h > 0)
            scene_rect(p->s, (Area){p->to_x, at, 14, h}, 0, (Look){routing_hue(i), ROLE_NONE, 0});
        at += h;
    }
    scene_at(p->s, 0);
    if (p->each)
        scene_textf(p->s, p->to_x + 24, mid + 4.4, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
                    "E%lld", (long long)e);
    scene_at(p->s, all_sent(p));
    if (all > 0)
        scene_rect(p->s, (Area){p->to_x, y, 14, all * p->unit}, 0,
                   (Look){ROLE_NONE, ROLE_WEIGHT_LINE, 1.25});
    if (!p->each) return;
    scene_text(p->s, p->to_x + 88, mid + 4.4, (TextLook){ALIGN_RIGHT, 12.5, REGULAR, ROLE_INK},
               whole(p, all));
    draw_room(p, e);
    if (!p->r.full || p->r.full[e] <= 0) return;
    const char *over = arena_printf(p->r.a, "+%.0f over", p->r.full[e]);
    if (98 + scene_width(p->s, 12, REGULAR, over) <= p->frame_w - 10)
        scene_text(p->s, p->to_x + 98, mid + 4.4, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_FAIL},
                   over);
}

/* "for 36 experts": where there is no room for each, under the name of their rank. */
static const char *experts_here(const RoutePen *p, int64_t i) {
    long long n = 0;
    for (int64_t e = 0; e < p->r.experts; e++) n += p->r.home[e] == i;
    return arena_printf(p->r.a, "for %lld expert%s", n, n == 1 ? "" : "s");
}
static void draw_frame(RoutePen *p, int64_t i) {
    const Routing *r = &p->r;
    double top = 0, bottom = 0;
    int64_t first = -1, count = 0;
    for (int64_t e = 0; e < ends(p); e++) {
        if (home_of(p, e) != i) continue;
        if (!count++) first = e, top = p->to_y[e];
        bottom = p->to_y[e] + end_height(p, e);
    }
    if (!count) return;
    bool most = i == r->busiest && r->in[i] * (double)r->n > r->rows;
    double y = top - (p->each ? HEAD - 4 : 6);
    scene_begin(p->s, "rank", arena_printf(r->a, "to-%lld", (long long)i),
                arena_printf(r->a, "%s receives %s, %.0f of them its own", rank_name(p, i),
                             routing_rows(r->a, r->in[i]), r->sent[i * r->n + i]));
    scene_rect(p->s, (Area){p->to_x - 6, y, p->frame_w, bottom + 6 - y}, 4,
               (Look){ROLE_NONE, ROLE_FAINT, 1.25});
    for (int64_t e = first; e < ends(p); e++)
        if (home_of(p, e) == i) draw_end(p, e);
    scene_at(p->s, 0);
    double name = p->each ? p->to_x + 24 : p->to_x + 24, base = p->each ? y + 16 : y + 18;
    double w = scene_text(p->s, name, base, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
                          rank_name(p, i));
    scene_at(p->s, all_sent(p));
    scene_textf(
        p->s, name + w + 8, base,
        (TextLook){ALIGN_LEFT, 12, most ? SEMIBOLD : REGULAR, most ? ROLE_FAIL : ROLE_SECOND},
        "%s%s", routing_rows(r->a, r->in[i]), most ? ", most" : "");
    scene_at(p->s, 0);
    if (!p->each && bottom - base >= 20)
        scene_text(
            p->s, name, base + 17, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
            scene_fit(p->s, experts_here(p, i), p->to_x - 12 + p->frame_w - name, 12, REGULAR));
    scene_end(p->s);
}

/* The ribbons in a panel of width w; returns its height. */
static double draw_flows(RoutePen *p, double x, double y, double w, double high) {
    const Routing *r = &p->r;
    p->tile_x = x;
    p->bar_x = x + (p->tiles ? (double)(tiles_wide(p) * TILE_PITCH) + 14 : 78);
    p->frame_w = 172;
    p->to_x = x + w - p->frame_w + 6;
    p->from_y = ARENA_ARRAY(r->a, double, r->n + 1);
    p->top_y = ARENA_ARRAY(r->a, double, r->n + 1);
    p->to_y = ARENA_ARRAY(r->a, double, ends(p) + 1);
    scene_text(p->s, x, y + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               p->tiles ? "from ranks: their tokens" : "from ranks");
    scene_text(p->s, p->to_x - 6, y + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               p->each ? "to experts, by rank" : "to the experts of");
    double top = y + 24;
    double starts = 0;
    for (int64_t i = 0; p->tiles && i < r->n; i++) starts += start_height(p, i) + 10;
    p->gap = FRAME_GAP;
    p->unit = 0;
    const double least =
                     place_ends(p, top) - top, /* many experts are high, however few their rows */
        most = fmax(fmax(high + 150, starts), p->preset == PRESET_SLIDE ? 0 : 1.1 * least);
    p->unit = fmin(MOST_UNIT - fmin(0, p->less) / 40, fmax(high, 0.7 * starts) / fmax(1, r->rows));
    double end = place_ends(p, top);
    while (end - top > most && p->unit > 0.05) {
        p->unit *= 0.85;
        double next = place_ends(p, top);
        if (next > end - 1) break;
        end = next;
    }
    if (r->n > 1 && starts > end - top) { /* destinations stand as far apart as their sources */
        p->gap += fmin(40, (starts - 16 - (end - top)) / (double)(r->n - 1));
        end = place_ends(p, top);
    }
    end = fmax(end, place_starts(p, top + 8, end - top - 16));
    draw_ribbons(p);
    scene_begin(p->s, "legend", "sources", NULL); /* it says whose rows have which fill */
    for (int64_t i = 0; i < r->n; i++) draw_start(p, i);
    scene_end(p->s);
    for (int64_t i = 0; i < r->n; i++) draw_frame(p, i);
    return end - y;
}

/* ---- the matrix ---- */

typedef struct {
    double x, y, cell;
    int64_t bins, per; /* bins a side, ranks in a bin */
    double most;
} Grid;

static double bin_sum(const RoutePen *p, const Grid *g, int64_t i, int64_t k) {
    const Routing *r = &p->r;
    double sum = 0;
    for (int64_t a = i * g->per; a < (i + 1) * g->per && a < r->n; a++)
        for (int64_t b = k * g->per; b < (k + 1) * g->per && b < r->n; b++)
            sum += r->sent[a * r->n + b];
    return sum;
}

/* A cell: its number over a bar of its rows, or a square as large as they are many. */
static void draw_cell(RoutePen *p, const Grid *g, int64_t i, int64_t k) {
    double x = g->x + (double)k * g->cell, y = g->y + (double)i * g->cell, c = g->cell;
    double rows = bin_sum(p, g, i, k), share = g->most > 0 ? rows / g->most : 0;
    if (p->numbers) {
        Mark *m = scene_rect(p->s, (Area){x, y, c, c}, 0, (Look){ROLE_PAPER, ROLE_FAINT, 1});
        m->ground = true;
        double h = 0.26 * c;
        scene_at(p->s, (int)i + 1);
        if (rows > 0)
            scene_rect(p->s, (Area){x + 2, y + c - 2 - h, (c - 4) * share, h}, 0,
                       (Look){i == k ? ROLE_GRID : routing_hue(i),
                              i == k ? ROLE_NONE : ROLE_WEIGHT_LINE, i == k ? 0 : 0.8});
        const double size = c < LARGE ? 12 : 15;
        scene_text(p->s, x + c / 2, y + 0.52 * c,
                   (TextLook){ALIGN_MIDDLE, size, i == k ? REGULAR : SEMIBOLD,
                              i == k ? ROLE_SECOND : ROLE_INK},
                   whole(p, rows));
    } else if (rows > 0) {
        double side = c * sqrt(share);
        scene_at(p->s, (int)i + 1);
        scene_rect(p->s, (Area){x + (c - side) / 2, y + (c - side) / 2, side, side}, 0,
                   (Look){i == k ? ROLE_TICK : ROLE_BYTES, ROLE_NONE, 0});
    }
    scene_at(p->s, 0);
}

static void draw_sums(RoutePen *p, const Grid *g) {
    const Routing *r = &p->r;
    double right = g->x + (double)g->bins * g->cell + 8, under = g->y + (double)g->bins * g->cell;
    for (int64_t i = 0; i < r->n; i++) {
        double y = g->y + ((double)i + 0.5) * g->cell + 4.4, x = g->x + ((double)i + 0.5) * g->cell;
        bool most = i == r->busiest && r->in[i] * (double)r->n > r->rows;
        scene_textf(p->s, g->x - 8, y, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, "%lld",
                    (long long)r->rank[i]);
        scene_textf(p->s, x, g->y - 7, (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, "%lld",
                    (long long)r->rank[i]);
        const double size = g->cell < LARGE ? 12 : 13;
        scene_at(p->s, (int)i + 1);
        scene_text(p->s, right, y, (TextLook){ALIGN_LEFT, size, SEMIBOLD, ROLE_INK},
                   whole(p, r->out[i]));
        scene_at(p->s, all_sent(p));
        scene_text(
            p->s, x, under + 17,
            (TextLook){ALIGN_MIDDLE, size, most ? BOLD : SEMIBOLD, most ? ROLE_FAIL : ROLE_INK},
            whole(p, r->in[i]));
        scene_at(p->s, 0);
    }
    scene_text(p->s, g->x - 8, under + 17, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND},
               "received");
    scene_text(p->s, right, g->y - 7, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, "all");
}

/* Squares: every so many of the ranks are named, in whole powers of two. */
static void draw_names(RoutePen *p, const Grid *g) {
    int64_t every = 1;
    while ((double)every * g->cell < 44) every *= 2;
    for (int64_t i = 0; i < g->bins; i += every) {
        double at = ((double)i + 0.5) * g->cell;
        long long rank = (long long)p->r.rank[i * g->per];
        scene_textf(p->s, g->x - 8, g->y + at + 4.4,
                    (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, "%lld", rank);
        scene_textf(p->s, g->x + at, g->y - 7, (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND},
                    "%lld", rank);
    }
}

static const char *matrix_words(const RoutePen *p, const Grid *g) {
    if (p->numbers) return "rows from a rank (down) to a rank (across); grey stays there";
    return arena_printf(
        p->r.a,
        "a square is as large as its rows are many: from %s (down) to %s (across), "
        "most %.0f; grey stays%s",
        g->per > 1 ? arena_printf(p->r.a, "%lld ranks", (long long)g->per) : "a rank",
        g->per > 1 ? "as many" : "a rank", g->most, g->per > 1 ? " among them" : "");
}

/* Do the sums, the widest numbers, fit into cells of a matrix so large? */
static bool has_numbers(const RoutePen *p, double side) {
    double widest = 0;
    for (int64_t i = 0; i < p->r.n && p->r.n <= MOST_NUMBERS; i++) {
        widest = fmax(widest, scene_width(p->s, side / (double)p->r.n < LARGE ? 12 : 13, BOLD,
                                          whole(p, p->r.in[i])));
        widest = fmax(widest, scene_width(p->s, 12, REGULAR, whole(p, (double)p->r.rank[i])));
    }
    return p->r.n <= MOST_NUMBERS && widest + 4 <= side / (double)p->r.n;
}

static double draw_matrix(RoutePen *p, double x, double y, double w) {
    const Routing *r = &p->r;
    double high = p->preset == PRESET_SLIDE ? SLIDE_MATRIX : 1e4; /* a slide is low */
    bool numbers = p->numbers = has_numbers(p, fmin(w - 102, high));
    Grid g = {.bins = r->n < BINS ? r->n : BINS};
    g.per = (r->n + g.bins - 1) / g.bins;
    g.bins = (r->n + g.per - 1) / g.per;
    for (int64_t i = 0; i < g.bins * g.bins; i++)
        g.most = fmax(g.most, bin_sum(p, &g, i / g.bins, i % g.bins));
    const char *line[4];
    scene_begin(p->s, "matrix", "matrix", matrix_words(p, &g));
    int n = scene_wrap(p->s, matrix_words(p, &g), (TextColumn){w, 12, REGULAR, 4, NULL}, line);
    for (int i = 0; i < n; i++, y += 16)
        scene_text(p->s, x, y + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, line[i]);
    double left = numbers ? 62 : 44, room = w - left - (numbers ? 40 : 0);
    const double few = (p->preset == PRESET_WIDE ? 60 : 52) - p->less / 5;
    double wish = numbers ? fmax(26, few) : 20;
    g.cell = fmin(wish, fmin(room, high) / (double)g.bins);
    g.x = x + left, g.y = y + 26;
    double side = g.cell * (double)g.bins;
    p->corner = (Pt){g.x + side, g.y};
    for (int64_t i = 0; i < g.bins; i++)
        for (int64_t k = 0; k < g.bins; k++) draw_cell(p, &g, i, k);
    scene_rect(p->s, (Area){g.x, g.y, side, side}, 0, (Look){ROLE_NONE, ROLE_FAINT, 1.25});
    if (numbers) draw_sums(p, &g);
    else draw_names(p, &g);
    scene_end(p->s);
    return g.y + side + (numbers ? 30 : 12);
}

/* ---- what it means ---- */

static double draw_load(RoutePen *p, double x, double y, double w) {
    const char *name[ROUTING_LINES], *text[ROUTING_LINES], *line[2];
    int n = routing_load(&p->r, name, text);
    scene_begin(p->s, "load", "load", NULL);
    for (int i = 0; i < n; i++) {
        scene_text(p->s, x, y + 12, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_SECOND}, name[i]);
        int k = scene_wrap(p->s, text[i], (TextColumn){w - 106, 12.5, SEMIBOLD, 2, NULL}, line);
        for (int j = 0; j < k; j++, y += 17)
            scene_text(p->s, x + 106, y + 12,
                       (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD,
                                  !strcmp(name[i], "lost") || !strcmp(name[i], "over capacity")
                                      ? ROLE_FAIL
                                      : ROLE_INK},
                       line[j]);
        y += 4;
    }
    scene_end(p->s);
    return y;
}

/* What an expert gets, by whose rows they are where ranks have a fill of their own. */
static void draw_bar(RoutePen *p, int64_t expert, Area bar) {
    const Routing *r = &p->r;
    double x = bar.x, all = 0; /* that were sent: some may be lost on their way */
    const bool own = r->n <= MOST_RIBBONS;
    for (int64_t i = 0; i < r->n; i++) all += r->made[i * r->experts + expert];
    for (int64_t i = 0; own && i < r->n; i++) {
        const double w = bar.w * r->made[i * r->experts + expert] / all;
        if (w > 0)
            scene_rect(p->s, (Area){x, bar.y, w, bar.h}, 0,
                       (Look){routing_hue(i), ROLE_WEIGHT_LINE, 0.8});
        x += w;
    }
    if (!own) scene_rect(p->s, bar, 0, (Look){ROLE_BYTES, ROLE_NONE, 0});
}
/* The experts that get most, each with a bar. */
static double draw_hottest(RoutePen *p, double x, double y, double w) {
    const Routing *r = &p->r;
    const int64_t *hot = routing_hottest(r);
    double top = routing_expert(r, hot[0]), mean = (r->rows - r->lost) / (double)r->experts;
    int64_t idle = 0, most = p->preset == PRESET_SLIDE ? HOT_SLIDE : HOT,
            shown = r->experts < most ? r->experts : most;
    for (int64_t e = 0; e < r->experts; e++) idle += routing_expert(r, e) <= 0;
    scene_begin(p->s, "experts", "experts",
                "rows that an expert gets, from all ranks of the group");
    scene_textf(p->s, x, y + 12, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
                "Experts that get most");
    y += 22;
    for (int64_t i = 0; i < shown; i++, y += 18) {
        double rows = routing_expert(r, hot[i]);
        int64_t home = r->home[hot[i]];
        scene_textf(p->s, x, y + 12, (TextLook){ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK}, "E%lld",
                    (long long)hot[i]);
        if (home >= 0)
            scene_textf(p->s, x + 46, y + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                        "on %s", rank_name(p, home));
        double bx = x + 138, room = w - 138 - 44;
        if (rows > 0) draw_bar(p, hot[i], (Area){bx, y + 3, fmax(1, room * rows / top), 11});
        scene_text(p->s, bx + (top > 0 ? room * rows / top : 0) + 6, y + 12,
                   (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, whole(p, rows));
    }
    scene_textf(p->s, x, y + 14, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                idle ? "mean of %lld experts: %.3g; %lld get%s none"
                     : "mean of %lld experts: %.3g; each gets some",
                (long long)r->experts, mean, (long long)idle, idle == 1 ? "s" : "");
    scene_end(p->s);
    return y + 24;
}

/* ---- the page ---- */

/* A slide has no room for the hottest experts on the right, and under many ranks none at all. */
static bool under_flows(const RoutePen *p) {
    return p->preset == PRESET_SLIDE && p->r.n <= MOST_RIBBONS / 2 && !p->each;
}
static double draw_body(RoutePen *p, double y) {
    bool slide = p->preset == PRESET_SLIDE, flows = p->r.n <= MOST_RIBBONS;
    double side = p->narrow ? p->w
                  : slide   ? 300
                            : 372,
           left = p->narrow ? p->w : p->w - side - 36, x = p->narrow ? p->x : p->x + left + 36,
           end = y;
    if (flows)
        end = y + draw_flows(p, p->x, y, left,
                             (!slide           ? 380
                              : p->each        ? 230
                              : under_flows(p) ? 130
                                               : 200) -
                                 p->less);
    else if (!p->narrow) end = draw_matrix(p, p->x, y, left);
    double at = p->narrow && flows ? end + 14 : y;
    if (flows || p->narrow) at = draw_matrix(p, x, at, side) + 8;
    scene_at(p->s, all_sent(p));
    at = draw_load(p, x, at, side) + 8;
    bool under = under_flows(p);
    if (under) end = draw_hottest(p, p->x, end + 14, left);
    else if (!p->each && !(slide && flows)) at = draw_hottest(p, x, at, side);
    if (!flows) at = spread_pairs(&p->r, p->s, (Pt){x, at + 6}, side);
    Pt beside = {p->corner.x + 28, p->corner.y - 8}; /* a slide has room there */
    if (!p->numbers && slide) spread_draw(&p->r, p->s, beside, x - 28 - beside.x);
    else if (!p->numbers) at = spread_draw(&p->r, p->s, (Pt){x, at + 6}, side); /* else: sums */
    scene_at(p->s, 0);
    return fmax(end, at);
}

/* The page; its lower end to *end. */
static Scene *draw_page(RoutePen *p, double *end) {
    const ViewCall *c = p->c;
    Arena *a = c->arena;
    Scene *s = p->s = figure_new(c, "routing", p->preset);
    const char *model = words_model(a, c->t);
    const char *sub[] = {model ? model : "",
                         p->r.layer >= 0 ? arena_printf(a, "layer %d", p->r.layer) : "",
                         words_data(a, c->t),
                         words_mesh(a, c->t),
                         p->r.n <= MOST_RIBBONS ? "width of a ribbon = rows, fill = source" : "",
                         NULL};
    double y = figure_head(s, p->preset, routing_title(&p->r), sub, 0) + 12;
    y = draw_body(p, y);
    *end = figure_foot(s, c, (Band){p->x, p->w, y + 8}, routing_foot(&p->r), NULL);
    s->desc = arena_printf(a, "%s. %s", routing_title(&p->r), routing_foot(&p->r));
    figure_page(s, p->preset, *end);
    return s;
}

/* A slide has room for the tokens of few ranks only. */
static void set_tiles(RoutePen *p) {
    double high = 0;
    p->tiles = p->k != NULL;
    for (int64_t i = 0; p->k && i < p->r.n; i++)
        if (p->k->n_own[i] > p->most_own) p->most_own = p->k->n_own[i];
    for (int64_t i = 0; p->k && i < p->r.n; i++) high += start_height(p, i) + 10;
    p->tiles = p->k && (p->preset != PRESET_SLIDE || high <= 372) &&
               (p->preset != PRESET_A4 || high <= 560);
}
/* A slide gives up what it has no room for. */
static Scene *draw_fitting(RoutePen *p) {
    Scene *s;
    double end;
    do {
        s = draw_page(p, &end);
        if (s->scale >= 1 || p->preset != PRESET_SLIDE) break;
        p->less += 20;
        if (p->less > 100 && p->tiles) p->tiles = false, p->less = 0;
        if (p->less > 100 && p->each)
            p->each = false, p->less = 0; /* experts give way to their ranks */
    } while (p->less <= 100);
    return s;
}
/* Paper has all, as high as the sheet where there is so much room. */
static Scene *draw_sheet(RoutePen *p) {
    enum { MORE = 200 };
    double end = 0;
    for (p->less = -MORE; p->less < 0; p->less += 10) {
        Scene *s = draw_page(p, &end);
        if (end <= page_room(p->preset)) return s;
    }
    return draw_page(p, &end);
}
int view_routing(const ViewCall *c, Scene **page) {
    RoutePen p = {.c = c, .preset = PRESET_WIDE};
    furniture_preset(c->o->preset, &p.preset);
    if (!routing_read(&p.r, c)) return 0;
    p.x = presets[p.preset].margin, p.w = presets[p.preset].w - 2 * p.x;
    p.narrow = p.w < 700;
    p.k = routing_tokens(&p.r);
    set_tiles(&p);
    p.each = p.r.experts <= MOST_EXPERTS && p.r.n <= MOST_RIBBONS;
    page[0] = p.preset == PRESET_A4 ? draw_sheet(&p) : draw_fitting(&p);
    return 1 + (p.k ? routing_frames(&p.r, p.k, p.preset, page + 1, VIEW_MAX_PAGES - 1) : 0);
}

/* ---- text ---- */

/* A matrix too wide for w columns goes on below, from rank `first` on. */
static void text_columns(Str *out, const Routing *r, int64_t first, int64_t end, int cell) {
    bool last = end == r->n;
    words_pad(out, "from \\ to", 10, false);
    for (int64_t i = first; i < end; i++)
        words_pad(out, arena_printf(r->a, "%lld", (long long)r->rank[i]), cell, true);
    words_pad(out, last ? "all" : "", 8, true);
    words_end_line(out);
    for (int64_t i = 0; i < r->n; i++) {
        words_pad(out, arena_printf(r->a, "rank %lld", (long long)r->rank[i]), 10, false);
        for (int64_t k = first; k < end; k++)
            words_pad(out, arena_printf(r->a, "%.0f", r->sent[i * r->n + k]), cell, true);
        words_pad(out, last ? arena_printf(r->a, "%.0f", r->out[i]) : "", 8, true);
        words_end_line(out);
    }
    words_pad(out, "received", 10, false);
    for (int64_t i = first; i < end; i++)
        words_pad(out, arena_printf(r->a, "%.0f", r->in[i]), cell, true);
    words_end_line(out);
}
static void text_matrix(Str *out, const Routing *r, int w) {
    int cell = w < 80 ? 5 : 6;
    for (int64_t i = 0; i < r->n; i++) /* a column's sum is its widest number */
        cell = (int)fmax(cell, words_columns(arena_printf(r->a, " %.0f", r->in[i])));
    int64_t most = (w - 18) / cell;
    for (int64_t i = 0; i < r->n; i += most) {
        if (i) str_add(out, "\n");
        text_columns(out, r, i, i + most < r->n ? i + most : r->n, cell);
    }
}

/* Which tokens each rank sends to which expert, and which find no room. */
static void text_tokens(Str *out, const Routing *r, int w) {
    const Tokens *k = routing_tokens(r);
    if (!k) return;
    str_add(out, "\ntokens by expert; (7): dropped\n");
    for (int64_t i = 0; i < r->n; i++) {
        Str s = str_new(r->a);
        int64_t last = -1;
        for (int64_t j = 0; j < k->n; j++) {
            const TokenRow *row = &k->row[j];
            if (row->from != i) continue;
            if (row->expert != last)
                str_addf(&s, "%sE%lld:", last < 0 ? "" : "  ", (long long)row->expert);
            str_addf(&s, row->kept ? " %lld" : " (%lld)", (long long)row->token);
            last = row->expert;
        }
        words_labelled(out, arena_printf(r->a, "rank %-5lld", (long long)r->rank[i]), s.s, w);
    }
}
const char *view_routing_text(const ViewCall *c) {
    Routing r;
    Role role;
    int w = furniture_columns(c->o);
    const char *name[ROUTING_LINES], *text[ROUTING_LINES];
    if (!routing_read(&r, c)) return NULL;
    Str s = str_new(r.a);
    words_paragraph(&s, "", routing_title(&r), w);
    str_add(&s, "\n");
    if (r.n <= MOST_RIBBONS) {
        text_matrix(&s, &r, w);
        str_add(&s, "\n");
    }
    int n = routing_load(&r, name, text);
    for (int i = 0; i < n; i++) words_labelled(&s, arena_printf(r.a, "%-16s", name[i]), text[i], w);
    text_tokens(&s, &r, w);
    const int64_t *hot = routing_hottest(&r);
    str_add(&s, "\nexpert    rank      rows, most first\n");
    for (int64_t i = 0; i < r.experts && i < HOT; i++) {
        int64_t home = r.home[hot[i]];
        str_addf(&s, "%-10lld%-10s%.0f\n", (long long)hot[i],
                 home >= 0 ? arena_printf(r.a, "%lld", (long long)r.rank[home]) : "",
                 routing_expert(&r, hot[i]));
    }
    str_add(&s, "\n");
    words_paragraph(&s, "", routing_foot(&r), w);
    words_paragraph(&s, "", words_stamp(r.a, c->t, &role), w);
    return s.s;
}
