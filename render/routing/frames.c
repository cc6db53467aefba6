/* The seven frames of a routing. See frames.h. What a rank has in a frame stands in its panel;
 * panels are measured first, so that a rank is at one place in all of them. Refuses panels that a
 * page cannot hold: it says then how many ranks it shows. */
#include "render/routing/frames.h"
#include "render/furniture/page_room.h"
#include <math.h>
#include <string.h>

enum { TILES = 2, SUMS = 6, FRAMES = 7 }; /* frames from which on there are tiles, and sums */
enum { PAD = 10, HEAD = 26, BETWEEN = 14, NARROW = 700 };
enum { MOST = 30, LARGEST = 44 };   /* height of a tile; on a page with room to spare */
enum { CELL = 15, CELL_WIDE = 20 }; /* height of a score's cell; on a page as high as it needs */
enum { NUMBER = 19 };               /* size of a tile's number: beyond, it outgrows the titles */

typedef struct {
    TilePen tile;
    const Routing *r;
    const Tokens *k;
    Scene *s;
    Arena *a;
    PresetKind preset;
    double x, w;    /* of the page's body */
    double size;    /* of text in panels, but for tiles, what stands beside them, and sums */
    TileSize sums;  /* as if tiles stood in the last frame */
    double cell;    /* most height of a score's cell */
    double panel_w; /* and their heights by line of panels */
    double height[TOKENS_RANKS];
    int64_t columns, shown;
} Pen;

static TextLook look(const Pen *p, Align align, int weight, Role role) {
    return (TextLook){align, p->size, weight, role};
}
static const char *rank_name(const Pen *p, int64_t i) {
    return arena_printf(p->a, "rank %lld", (long long)p->r->rank[i]);
}

TileSize tile_size(double h, double text) {
    const double k = h / TILE_H;
    TileSize t = {.w = round(k * TILE_W), .h = h, .text = fmin(k * text, fmax(text, NUMBER))};
    t.pitch = t.w + round(k * (TILE_PITCH - TILE_W));
    t.line = h + round(k * (TILE_LINE - TILE_H));
    t.base = h / 2 + 0.357 * t.text;
    return t;
}
/* The box of a token and its number in it. */
static void draw_box(const TilePen *p, Pt at, int64_t token, Look box, Role ink) {
    const TileSize *t = &p->size;
    scene_rect(p->s, (Area){at.x, at.y, t->w, t->h}, 2, box);
    scene_textf(p->s, at.x + t->w / 2, at.y + t->base,
                (TextLook){ALIGN_MIDDLE, t->text, REGULAR, ink}, "%lld", (long long)token);
}
void tile_draw(const TilePen *p, Pt at, int64_t token, int64_t from, const char *tip) {
    Arena *a = p->r->a;
    scene_begin(p->s, "token", arena_printf(a, "token-%lld", (long long)token), tip);
    scene_same(p->s, arena_printf(a, "token %lld", (long long)token));
    draw_box(p, at, token, (Look){routing_hue(from), ROLE_WEIGHT_LINE, 1},
             ROLE_SHARD_TEXT + (int)(from % 4));
    scene_end(p->s);
}
/* A row that found no room. */
static void tile_dropped(const TilePen *p, Pt at, const TokenRow *row) {
    Arena *a = p->r->a;
    scene_begin(p->s, "token", arena_printf(a, "dropped-%lld", (long long)row->token),
                arena_printf(a, "%s: no room with expert %lld", tokens_name(p->r, p->k, row->token),
                             (long long)row->expert));
    draw_box(p, at, row->token, (Look){ROLE_NONE, ROLE_FAIL, 1.5}, ROLE_FAIL);
    scene_end(p->s);
}

/* ---- tiles one after the other ---- */
typedef struct {
    Pen *p;
    double x0, w, x, y; /* left edge and width; where the next one goes */
    double hang;        /* where tiles go on that the line of their word has no room for */
} Flow;
static void flow_line(Flow *f) {
    if (f->x > f->x0) f->y += f->p->tile.size.line;
    f->x = f->hang = f->x0;
}
static Pt flow_next(Flow *f, double w) {
    if (f->x + w > f->x0 + f->w + 0.1) {
        const double hang = f->hang;
        flow_line(f);
        f->x = f->hang = hang;
    }
    Pt at = {f->x, f->y};
    f->x += w;
    return at;
}
/* A word before n tiles; it stays with all of them where a line holds them, else with the first. */
static void flow_word(Flow *f, const char *word, int weight, Role role, int64_t n) {
    const TileSize *t = &f->p->tile.size;
    const double k = t->h / TILE_H;
    double w = scene_width(f->p->s, t->text, weight, word) + round(6 * k),
           gap = f->x > f->x0 ? round(10 * k) : 0, all = (double)n * t->pitch;
    if (w + all > f->w) all = t->w;
    if (f->x + gap + w + all > f->x0 + f->w + 0.1) flow_line(f), gap = 0;
    scene_text(f->p->s, f->x + gap, f->y + t->base, (TextLook){ALIGN_LEFT, t->text, weight, role},
               word);
    f->x += gap + w;
    if (n && f->x <= f->x0 + w) f->hang = f->x; /* the line's first */
}
static void flow_tile(Flow *f, const TokenRow *row) {
    Pen *p = f->p;
    Pt at = flow_next(f, p->tile.size.pitch);
    const char *weight = isnan(row->weight) ? "" : arena_printf(p->a, ", weight %.3g", row->weight);
    if (!row->kept) {
        tile_dropped(&p->tile, at, row);
        return;
    }
    tile_draw(&p->tile, at, row->token, row->from,
              arena_printf(p->a, "%s, of %s, for expert %lld%s",
                           tokens_name(p->r, p->k, row->token), rank_name(p, row->from),
                           (long long)row->expert, weight));
}
/* Places of an expert that nobody took. */
static void flow_padding(Flow *f, int64_t n) {
    static const double dots[2] = {1.5, 2.5};
    Pen *p = f->p;
    const double h = p->tile.size.h, w = round(8 * h / TILE_H), gap = round(2 * h / TILE_H);
    if (n <= 0) return;
    for (int64_t i = 0; i < n; i++) {
        Pt at = flow_next(f, w + gap);
        Mark *m = scene_rect(p->s, (Area){at.x, at.y, w, h}, 1, (Look){ROLE_NONE, ROLE_TICK, 1});
        m->dash = dots, m->n_dash = 2;
    }
    flow_word(f, arena_printf(p->a, "pad %lld", (long long)n), REGULAR, ROLE_SECOND, 0);
}
static Flow flow_in(Pen *p, double x, double y) {
    return (Flow){p, x, p->panel_w - 2 * PAD, x, y, x};
}
static double flow_end(Flow *f) {
    flow_line(f);
    return f->y;
}

/* ---- scores and choices ---- */
static const TokenRow *row_for(const Pen *p, int64_t token, int64_t expert) {
    for (int64_t i = 0; i < p->k->n; i++)
        if (p->k->row[i].token == token && p->k->row[i].expert == expert) return &p->k->row[i];
    return NULL;
}
/* A cell's square is as large as the score among the token's; the largest fills it. */
static double share(const Pen *p, int64_t token, int64_t expert) {
    int64_t n = p->r->experts;
    double lo = INFINITY, hi = -INFINITY, own = p->k->scores[token * n + expert];
    for (int64_t e = 0; e < n; e++) {
        double x = p->k->scores[token * n + e];
        if (isfinite(x)) lo = fmin(lo, x), hi = fmax(hi, x);
    }
    return isfinite(own) && hi > lo ? (own - lo) / (hi - lo) : 0;
}
static bool scored(const Pen *p, int64_t token) {
    return p->k->scores && (token + 1) * p->r->experts <= p->k->n_scores;
}
static const char *scores_tip(const Pen *p, int64_t token, bool chosen) {
    Str s = str_new(p->a);
    str_add(&s, tokens_name(p->r, p->k, token));
    for (int64_t e = 0; e < p->r->experts; e++) {
        if (chosen && !row_for(p, token, e)) continue;
        str_addf(&s, "%s E%lld", s.n ? "," : "", (long long)e);
        if (scored(p, token)) str_addf(&s, " %.3g", p->k->scores[token * p->r->experts + e]);
    }
    return s.s;
}
typedef struct {
    double x, y, w, h; /* of all cells: the first one's corner, and the size of one */
    int64_t every;     /* so many tokens have one number */
} Cells;
/* One token's score with one expert; cells too low for squares have bars. */
static void draw_score(Pen *p, const Cells *c, Pt at, double part, Look look) {
    double side = fmin(c->w, c->h) * sqrt(part) - 1;
    bool low = c->h < 6;
    Area box = low ? (Area){at.x + 1, at.y, (c->w - 3) * part, c->h - 0.4}
                   : (Area){at.x + (c->w - side) / 2, at.y + (c->h - side) / 2, side, side};
    if (low) look.stroke = ROLE_NONE, look.line = 0;
    if (box.w > 0.5 && box.h > 0.5) scene_rect(p->s, box, 0, look);
}
static void draw_token(Pen *p, const Cells *c, int64_t member, int64_t i, bool chosen) {
    int64_t token = p->k->own[member][i];
    Look own = {routing_hue(member), ROLE_WEIGHT_LINE,
                !chosen    ? 0.6
                : c->h < 6 ? 0.4
                           : 1},
         other = {ROLE_GRID, ROLE_NONE, 0};
    scene_begin(p->s, "token", arena_printf(p->a, "token-%lld", (long long)token),
                scores_tip(p, token, chosen));
    scene_same(p->s, arena_printf(p->a, "token %lld", (long long)token));
    for (int64_t e = 0; e < p->r->experts; e++) {
        Pt at = {c->x + (double)i * c->w, c->y + (double)e * c->h};
        if (chosen && row_for(p, token, e))
            scene_rect(p->s, (Area){at.x + 0.5, at.y + 0.5, c->w - 1, c->h - 1}, 0, own);
        else if (scored(p, token)) draw_score(p, c, at, share(p, token, e), chosen ? other : own);
    }
    if (i % c->every == 0)
        scene_textf(p->s, c->x + ((double)i + 0.5) * c->w, c->y - 5,
                    look(p, ALIGN_MIDDLE, REGULAR, ROLE_SECOND), "%lld", (long long)token);
    scene_end(p->s);
}
static double draw_cells(Pen *p, int64_t member, double x, double y, bool chosen) {
    int64_t n = p->k->n_own[member], experts = p->r->experts, every = 1;
    const char *last = arena_printf(p->a, "E%lld", (long long)experts - 1),
               *token = arena_printf(p->a, "%lld", n ? (long long)p->k->own[member][n - 1] : 0);
    double names = scene_width(p->s, p->size, REGULAR, last) + 6,
           wide = scene_width(p->s, p->size, REGULAR, token) + 5,
           room = p->panel_w - 2 * PAD - names - wide / 2;
    const double all_h = 9 * p->cell,
                 h = fmin(fmin(LARGEST, p->cell), fmax(2, all_h / (double)experts));
    Cells c = {x + names, y + p->size + 6, fmin(fmax(24, 3 * h), room / fmax(1, (double)n)), h, 1};
    while ((double)c.every * c.w < wide) c.every++;
    while ((double)every * c.h < p->size + 2.5) every *= 2;
    scene_begin(p->s, "experts", "experts", NULL);
    for (int64_t e = 0; e < experts; e += every)
        scene_textf(p->s, x, c.y + ((double)e + 0.5) * c.h + 4.2,
                    look(p, ALIGN_LEFT, REGULAR, ROLE_SECOND), "E%lld", (long long)e);
    scene_end(p->s);
    for (int64_t i = 0; i < n; i++) draw_token(p, &c, member, i, chosen);
    double end = c.y + (double)experts * c.h, least = c.y + p->size + 4;
    return fmax(end, least) + 2;
}

/* ---- what a rank's panel has in each frame; each returns its lower end ---- */
/* Rows of a member, kept or not, that an expert has. */
static int64_t rows_of(const Pen *p, int64_t i, int64_t expert, bool kept) {
    int64_t n = 0;
    for (int64_t j = 0; j < p->k->n; j++) {
        const TokenRow *row = &p->k->row[j];
        n += row->from == i && row->expert == expert && row->kept == kept;
    }
    return n;
}
static double draw_scores(Pen *p, int64_t i, double x, double y) {
    return draw_cells(p, i, x, y, false);
}
static double draw_chosen(Pen *p, int64_t i, double x, double y) {
    return draw_cells(p, i, x, y, true);
}
/* Rows of a member in order, those without room in a tray behind. */
static double draw_sorted(Pen *p, int64_t i, double x, double y) {
    Flow f = flow_in(p, x, y);
    int64_t last = -1, dropped = 0;
    for (int64_t j = 0; j < p->k->n; j++) {
        const TokenRow *row = &p->k->row[j];
        if (row->from != i) continue;
        if (!row->kept) dropped++;
        if (!row->kept) continue;
        if (row->expert != last)
            flow_word(&f, arena_printf(p->a, "E%lld", (long long)row->expert), SEMIBOLD, ROLE_INK,
                      rows_of(p, i, row->expert, true));
        last = row->expert;
        flow_tile(&f, row);
    }
    if (!dropped) return flow_end(&f);
    flow_line(&f);
    last = -1;
    flow_word(&f, "dropped", SEMIBOLD, ROLE_FAIL, 1);
    for (int64_t j = 0; j < p->k->n; j++) {
        const TokenRow *row = &p->k->row[j];
        if (row->from != i || row->kept) continue;
        if (row->expert != last)
            flow_word(&f, arena_printf(p->a, "E%lld", (long long)row->expert), REGULAR, ROLE_SECOND,
                      rows_of(p, i, row->expert, false));
        last = row->expert;
        flow_tile(&f, row);
    }
    return flow_end(&f);
}
static int64_t home_of(const Pen *p, const TokenRow *row) {
    return row->to >= 0 ? row->to : p->r->home[row->expert];
}
/* A rank's rows by the rank they go to (sent) or came from. */
static double draw_pairs(Pen *p, int64_t i, double x, double y, bool sent) {
    Flow f = flow_in(p, x, y);
    for (int64_t other = 0; other < p->r->n; other++) {
        int64_t n = 0;
        for (int64_t j = 0; j < p->k->n; j++) {
            const TokenRow *row = &p->k->row[j];
            int64_t here = sent ? row->from : row->to, there = sent ? home_of(p, row) : row->from;
            if (!row->kept || here != i || there != other) continue;
            if (!n++) {
                flow_line(&f);
                flow_word(&f,
                          other == i ? "stay"
                                     : arena_printf(p->a, "to %lld", (long long)p->r->rank[other]),
                          SEMIBOLD, other == i ? ROLE_SECOND : ROLE_INK, 1);
            }
            flow_tile(&f, row);
        }
    }
    return flow_end(&f);
}
static double draw_sent(Pen *p, int64_t i, double x, double y) {
    return draw_pairs(p, i, x, y, true);
}
static double draw_back(Pen *p, int64_t i, double x, double y) {
    return draw_pairs(p, i, x, y, false);
}
static int64_t arrived(const Pen *p, int64_t expert, int64_t i) {
    int64_t n = 0;
    for (int64_t j = 0; j < p->k->n; j++)
        n += p->k->row[j].expert == expert && p->k->row[j].to == i;
    return n;
}
static double draw_experts(Pen *p, int64_t i, double x, double y) {
    Flow f = flow_in(p, x, y);
    int64_t have = 0;
    for (int64_t e = 0; e < p->r->experts; e++) have += p->r->home[e] == i;
    for (int64_t e = 0; e < p->r->experts; e++) {
        int64_t n = 0;
        if (p->r->home[e] != i) continue;
        if (have <= 4) flow_line(&f);
        for (int64_t j = 0; j < p->k->n; j++) {
            const TokenRow *row = &p->k->row[j];
            if (row->expert != e || row->to != i) continue;
            if (!n++)
                flow_word(&f, arena_printf(p->a, "E%lld", (long long)e), SEMIBOLD, ROLE_INK,
                          arrived(p, e, i));
            flow_tile(&f, row);
        }
        if (p->k->room) flow_padding(&f, p->k->room - n);
    }
    return flow_end(&f);
}
/* "0 = 0.63·E0 + 0.37·E3"; of many terms how many there are and what their weights add up to. */
static const char *sum_of(const Pen *p, int64_t token, bool *lacks) {
    Str s = str_new(p->a);
    TokenSum all = tokens_sum(p->k, token);
    *lacks = all.kept < all.asked;
    str_addf(&s, "%lld = ", (long long)token);
    if (!all.kept) str_add(&s, "nothing");
    else if (p->k->top > 2)
        str_addf(&s, "Σ of %lld%s", (long long)all.kept,
                 isnan(all.sum) ? "" : arena_printf(p->a, ", weights %.3g", all.sum));
    for (int64_t i = 0, n = 0; p->k->top <= 2 && i < p->k->n; i++) {
        const TokenRow *row = &p->k->row[i];
        if (row->token != token || !row->kept) continue;
        str_add(&s, n++ ? " + " : "");
        if (!isnan(row->weight)) str_addf(&s, "%.2f·", row->weight);
        str_addf(&s, "E%lld", (long long)row->expert);
    }
    return s.s;
}
/* The widest sum of a rank's tokens. */
static double widest_sum(const Pen *p, int64_t i) {
    double wide = 1;
    bool lacks;
    for (int64_t j = 0; j < p->k->n_own[i]; j++)
        wide = fmax(wide,
                    scene_width(p->s, p->sums.text, REGULAR, sum_of(p, p->k->own[i][j], &lacks)));
    return wide;
}
static double draw_sums(Pen *p, int64_t i, double x, double y) {
    const TileSize *t = &p->sums;
    const double w = p->panel_w - 2 * PAD, step = t->h + round(t->h / TILE_H),
                 gap = round(12 * t->h / TILE_H);
    int64_t columns = (int64_t)fmax(1, floor((w + gap) / (widest_sum(p, i) + gap))),
            n = p->k->n_own[i], lines = (n + columns - 1) / columns;
    for (int64_t j = 0; j < n; j++) {
        bool lacks;
        const char *text = sum_of(p, p->k->own[i][j], &lacks);
        scene_text(p->s, x + (double)(j / lines) * (w + gap) / (double)columns,
                   y + t->base + (double)(j % lines) * step,
                   (TextLook){ALIGN_LEFT, t->text, REGULAR, lacks ? ROLE_FAIL : ROLE_INK}, text);
    }
    return y + (double)lines * step + 2;
}

/* ---- the notes at a panel's right, and the titles ---- */
static double kept_of(const Pen *p, int64_t i) {
    double n = 0;
    for (int64_t j = 0; j < p->k->n; j++) n += p->k->row[j].from == i && p->k->row[j].kept;
    return n;
}
static double asked_of(const Pen *p, int64_t i) {
    double n = 0;
    for (int64_t j = 0; j < p->k->n; j++) n += p->k->row[j].from == i;
    return n;
}
static const char *counted(const Pen *p, double n, const char *one) {
    return arena_printf(p->a, "%.0f %s%s", n, one, n == 1 ? "" : "s");
}
static const char *note_tokens(const Pen *p, int64_t i) {
    return counted(p, (double)p->k->n_own[i], "token");
}
static const char *note_asked(const Pen *p, int64_t i) { return counted(p, asked_of(p, i), "row"); }
static const char *note_kept(const Pen *p, int64_t i) {
    double gone = asked_of(p, i) - kept_of(p, i);
    return gone > 0 ? arena_printf(p->a, "%s, %.0f dropped", counted(p, kept_of(p, i), "row"), gone)
                    : counted(p, kept_of(p, i), "row");
}
static const char *note_sent(const Pen *p, int64_t i) {
    double stay = p->r->sent[i * p->r->n + i];
    return arena_printf(p->a, "sends %s", counted(p, p->r->out[i] - stay, "row"));
}
static const char *note_received(const Pen *p, int64_t i) {
    bool most = i == p->r->busiest && p->r->in[i] * (double)p->r->n > p->r->rows;
    return arena_printf(p->a, "%s%s", counted(p, p->r->in[i], "row"), most ? ", most" : "");
}
static const char *note_back(const Pen *p, int64_t i) {
    double stay = p->r->sent[i * p->r->n + i];
    return arena_printf(p->a, "sends back %s", counted(p, p->r->in[i] - stay, "row"));
}

static double all_tokens(const Pen *p) {
    double n = 0;
    for (int64_t i = 0; i < p->r->n; i++) n += (double)p->k->n_own[i];
    return n;
}
static const char *title_scores(const Pen *p) {
    return arena_printf(p->a, "1 Scores: the router rates %lld experts for each of %.0f tokens",
                        (long long)p->r->experts, all_tokens(p));
}
static const char *title_chosen(const Pen *p) {
    bool one = all_tokens(p) == 1;
    return arena_printf(p->a, "2 Top-%lld: %.0f %s for %s", (long long)p->k->top, all_tokens(p),
                        one ? "token asks" : "tokens ask", routing_rows(p->a, (double)p->k->n));
}
static const char *title_sorted(const Pen *p) {
    double gone = (double)p->k->n - p->r->rows;
    return gone > 0
               ? arena_printf(p->a, "3 Permute: %s sorted by expert, %.0f %s no room",
                              routing_rows(p->a, p->r->rows), gone, gone == 1 ? "finds" : "find")
               : arena_printf(p->a, "3 Permute: %s sorted by expert",
                              routing_rows(p->a, p->r->rows));
}
static const char *title_sent(const Pen *p) {
    return arena_printf(p->a, "4 AllToAll: %.0f of %s %s", p->r->moved,
                        routing_rows(p->a, p->r->rows),
                        p->r->moved == 1 ? "leaves its rank" : "leave their rank");
}
static const char *title_experts(const Pen *p) {
    const Routing *r = p->r;
    return arena_printf(p->a, "5 Experts: rank %lld computes %.0f of %s%s",
                        (long long)r->rank[r->busiest], r->in[r->busiest],
                        routing_rows(p->a, r->rows - r->lost),
                        r->in[r->busiest] * (double)r->n > r->rows ? ", the most" : "");
}
static const char *title_back(const Pen *p) {
    return arena_printf(p->a, "6 AllToAll back: %.0f of %.0f results return to their rank",
                        p->r->moved, p->r->rows);
}
static const char *title_sums(const Pen *p) {
    int64_t less = 0;
    for (int64_t i = 0; i < p->r->n; i++)
        for (int64_t j = 0; j < p->k->n_own[i]; j++) {
            TokenSum s = tokens_sum(p->k, p->k->own[i][j]);
            less += s.kept < s.asked;
        }
    return less ? arena_printf(p->a, "7 Weighted sum: %lld of %.0f tokens lack a result",
                               (long long)less, all_tokens(p))
                : arena_printf(p->a, "7 Weighted sum: each of %.0f tokens adds its %lld result%s",
                               all_tokens(p), (long long)p->k->top, p->k->top == 1 ? "" : "s");
}

typedef struct {
    const char *(*title)(const Pen *p);
    double (*draw)(Pen *p, int64_t member, double x, double y);
    const char *(*note)(const Pen *p, int64_t member);
    const char *says;
} Frame;
static const Frame frames[FRAMES] = {
    {title_scores, draw_scores, note_tokens,
     "across: tokens; down: experts; a mark is as large as the score among its token’s"},
    {title_chosen, draw_chosen, note_asked,
     "filled: chosen, one row each; grey: the others’ scores"},
    {title_sorted, draw_sorted, note_kept,
     "a tile is one row: a token for one expert; rows stand in the order of their experts"},
    {title_sent, draw_sent, note_sent, "by the rank that has the expert"},
    {title_experts, draw_experts, note_received, "fill: the rank that a row comes from"},
    {title_back, draw_back, note_back, "each row’s result, by the rank that has the token"},
    {title_sums, draw_sums, note_tokens,
     "a token’s results times the router’s weights; the residual stream has the token itself"},
};

/* ---- the page ---- */
/* Why a frame's sentence says more in this run. */
static const char *frame_words(const Pen *p, int at) {
    if (at == 4 && p->k->inside)
        return arena_printf(p->a, "%s; between the two exchanges: %s", frames[at].says,
                            p->k->inside);
    if (at == 4 && p->k->room)
        return arena_printf(p->a, "%s; an expert has room for %lld, dotted: padding",
                            frames[at].says, (long long)p->k->room);
    return frames[at].says;
}
static double draw_panel(Pen *p, int at, int64_t i, Area box) {
    scene_begin(p->s, "rank", arena_printf(p->a, "rank-%lld", (long long)i),
                arena_printf(p->a, "%s: %s", rank_name(p, i), frames[at].note(p, i)));
    scene_frame(p->s, box.x, box.y, box.w, box.h);
    scene_rect(p->s, box, 4, (Look){ROLE_NONE, ROLE_FAINT, 1.25});
    scene_begin(p->s, "legend", arena_printf(p->a, "source-%lld", (long long)i), NULL);
    scene_rect(p->s, (Area){box.x + PAD, box.y + 8, 12, 12}, 2,
               (Look){routing_hue(i), ROLE_WEIGHT_LINE, 1});
    scene_text(p->s, box.x + PAD + 18, box.y + 18.5, look(p, ALIGN_LEFT, SEMIBOLD, ROLE_INK),
               rank_name(p, i));
    scene_end(p->s);
    scene_at(p->s, (int)i + 1);
    scene_text(p->s, box.x + box.w - PAD, box.y + 18.5, look(p, ALIGN_RIGHT, REGULAR, ROLE_SECOND),
               frames[at].note(p, i));
    double end = frames[at].draw(p, i, box.x + PAD, box.y + HEAD);
    scene_at(p->s, 0);
    scene_end(p->s);
    return end + PAD - 4;
}
/* How high each line of panels is, in the frame that needs most. */
static void measure(Pen *p) {
    memset(p->height, 0, sizeof p->height);
    p->panel_w = (p->w - (double)(p->columns - 1) * BETWEEN) / (double)p->columns;
    for (int at = 0; at < FRAMES; at++)
        for (int64_t i = 0; i < p->r->n; i++) {
            p->tile.s = p->s = figure_new(p->r->c, "routing", p->preset);
            double h = draw_panel(p, at, i, (Area){0, 0, p->panel_w, 10});
            p->height[i / p->columns] = fmax(p->height[i / p->columns], h);
        }
}
/* The height of a page less title and footer; without end where it is as high as what is on it. */
static double panels_room(const Pen *p) {
    enum { AROUND = 150, AROUND_SLIDE = 168 };
    const double page = page_room(p->preset);
    return page > 0 ? page - (p->preset == PRESET_SLIDE ? AROUND_SLIDE : AROUND) : INFINITY;
}
/* Of the ranks those whose panels fit on a page. */
static void fit(Pen *p) {
    const double room = panels_room(p);
    double y = 0;
    p->shown = 0;
    for (int64_t line = 0; line * p->columns < p->r->n; line++) {
        y += p->height[line];
        if (y > room) break;
        y += BETWEEN;
        p->shown = (line + 1) * p->columns;
    }
    if (p->shown > p->r->n) p->shown = p->r->n;
}
/* Have these frames, from one up to another, room for what they have now in the panels of all ranks
 * that are shown, none higher than it is? */
static bool room_in(Pen *p, int from, int to) {
    for (int at = from; at < to; at++)
        for (int64_t i = 0; i < p->shown; i++) {
            p->tile.s = p->s = figure_new(p->r->c, "routing", p->preset);
            if (at == SUMS && widest_sum(p, i) > p->panel_w - 2 * PAD) return false;
            if (draw_panel(p, at, i, (Area){0, 0, p->panel_w, 10}) >
                p->height[i / p->columns] + 0.1)
                return false;
        }
    return true;
}
/* The largest size, at most h, for which no panel grows. */
static void enlarge(Pen *p, TileSize *size, double h, int from, int to) {
    for (; h > TILE_H; h--) {
        *size = tile_size(h, p->size);
        if (room_in(p, from, to)) return;
    }
    *size = tile_size(TILE_H, p->size);
}
/* As many columns as show most ranks. */
static void choose(Pen *p) {
    int64_t best = 1, shown = -1;
    for (p->columns = 1; p->columns <= 4 && p->columns <= p->r->n; p->columns++) {
        bool narrow = p->w < NARROW, paged = p->preset == PRESET_SLIDE || p->preset == PRESET_A4;
        if (narrow ? p->columns > 1 : p->r->n > 1 && (paged ? p->columns < 2 : p->columns != 2))
            continue;
        measure(p);
        fit(p);
        if (p->shown > shown) best = p->columns, shown = p->shown;
    }
    p->columns = best;
    measure(p);
    fit(p);
}
/* The height that the panels shown leave of the page. */
static double spare(const Pen *p) {
    double y = -BETWEEN;
    for (int64_t i = 0; i < p->shown; i += p->columns) y += p->height[i / p->columns] + BETWEEN;
    return panels_room(p) - y;
}
/* Of a page that is left half blank the panels are as high as they can be, and what is in
 * them as large. */
static void fill(Pen *p) {
    enum { MOST_CELL = 90 }; /* of few experts it stops at LARGEST */
    const int64_t lines = (p->shown + p->columns - 1) / p->columns;
    for (p->cell = MOST_CELL; p->cell > CELL; p->cell--) {
        measure(p);
        if (spare(p) >= 0) break;
    }
    measure(p);
    const double more = spare(p) / (double)lines;
    for (int64_t i = 0; i < lines && more > 0; i++) p->height[i] += more;
}
static Scene *draw_frame(Pen *p, int at) {
    const ViewCall *c = p->r->c;
    Scene *s = p->tile.s = p->s = figure_new(c, "routing", p->preset);
    const char *model = words_model(p->a, c->t), *title = frames[at].title(p);
    const char *sub[] = {model ? model : "",
                         p->r->layer >= 0 ? arena_printf(p->a, "layer %d", p->r->layer) : "",
                         words_shrink(p->a, c->t),
                         frame_words(p, at),
                         p->shown < p->r->n ? arena_printf(p->a, "%lld of %lld ranks shown",
                                                           (long long)p->shown, (long long)p->r->n)
                                            : "",
                         NULL};
    double y = figure_head(s, p->preset, title, sub, 0) + 10;
    for (int64_t i = 0; i < p->shown; i += p->columns) {
        double h = p->height[i / p->columns];
        for (int64_t k = 0; k < p->columns && i + k < p->shown; k++)
            draw_panel(p, at, i + k,
                       (Area){p->x + (double)k * (p->panel_w + BETWEEN), y, p->panel_w, h});
        y += h + BETWEEN;
    }
    bool right;
    const char *stamp = tokens_stamp(p->r, p->k, &right),
               *foot = arena_printf(p->a, "Tokens of the run, %s: %s.", p->r->coll->value, stamp);
    double end = figure_foot(s, c, (Band){p->x, p->w, y - 2}, foot, NULL);
    s->desc = arena_printf(p->a, "%s. %s", title, foot);
    s->one_scale = true;
    figure_page(s, p->preset, end);
    return s;
}
int routing_frames(const Routing *r, const Tokens *k, PresetKind preset, Scene **page, int max) {
    Pen p = {.r = r, .k = k, .a = r->a, .preset = preset, .tile = {.r = r, .k = k}};
    int n = 0;
    p.x = presets[preset].margin, p.w = presets[preset].w - 2 * p.x;
    p.size = preset == PRESET_SLIDE ? 12 : 11.5;
    p.tile.size = p.sums = tile_size(TILE_H, p.size);
    p.cell = preset == PRESET_WIDE ? CELL_WIDE : CELL;
    choose(&p);
    const bool filled = p.shown > 0 && isfinite(panels_room(&p));
    if (filled) fill(&p);
    /* one size in all frames with tiles, so that a token is the same in each */
    enlarge(&p, &p.tile.size, filled ? LARGEST : MOST, TILES, SUMS);
    enlarge(&p, &p.sums, p.tile.size.h, SUMS, FRAMES);
    if (filled) measure(&p); /* no higher than the fullest */
    for (int at = 0; at < FRAMES && n < max && p.shown > 0; at++) {
        if (!at && !k->scores) continue; /* nobody kept them */
        page[n++] = draw_frame(&p, at);
    }
    return n;
}
