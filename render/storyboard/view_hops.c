/* The storyboard of ring attention: a square of queries (rows, they stay) and keys (columns, they
 * travel) that fills step by step, once for each row of the batch whose documents differ. Row r is
 * a rank; the block of column k moves down a row with each hop. Under it what each rank computes
 * and how long it waits. Refuses to colour what no rank computes. */
#include "render/furniture/wrong.h"
#include "render/storyboard/hops.h"
#include <math.h>
#include <string.h>

typedef struct {
    Hops h;
    const HopsRow *row;     /* that is drawn */
    const WrongList *wrong; /* steps of the plan that are */
    const ViewCall *c;
    Arena *a;
    Scene *s;
    PresetKind preset;
    double x, w, cell, label, gap;
    int per; /* frames side by side */
} HopsPen;
enum {
    CORNERS = 8,
    ROWS_DRAWN = 4,     /* rows of the batch, at most */
    A4_ROOM = 550,      /* a length on a page */
    SLIDE_OTHERS = 290, /* of a slide's height: all but the square */
    ROW_HEAD = 30,      /* what is said of a row of the batch */
    NOTES = 60,         /* of a plan that is wrong */
    LARGEST = 96        /* cell of a slide */
};
/* What stands on a page: of rows [row, rows) steps [from, to), and the work of each rank. */
typedef struct {
    int row, rows, from, to;
    bool load;
} HopsPage;

/* ---- words ---- */
/* Of a plan with a planted mistake: the frames do not follow what it breaks. */
static const char AS_MEANT[] = "drawn as the ring is meant, without the mistake";
static const char *const order_words[N_PLACE_CUTS] = {
    [PLACE_SHARD] = "contiguous", [PLACE_ZIGZAG] = "zigzag", [PLACE_STRIPED] = "striped"};
static const char *travels(const HopsPen *p) {
    return p->h.latent ? "the latent" : "keys and values";
}
static const char *headline(const HopsPen *p) {
    return arena_printf(p->a, "Ring attention over %s: %d ranks, %d hop%s of %s", p->h.axis, p->h.n,
                        p->h.n - 1, p->h.n > 2 ? "s" : "", travels(p));
}
static const char *subtitle(const HopsPen *p) {
    return arena_printf(p->a,
                        "Queries stay on their rank, each block of %s moves on by a rank in each "
                        "hop%s; %s order",
                        travels(p), p->h.latent ? ", and keys and values are made of it there" : "",
                        order_words[p->h.order]);
}
static const char *whose(const HopsPen *p, int j) {
    return j ? arena_printf(p->a, "After %d hop%s", j, j > 1 ? "s" : "") : "Start: own keys";
}
static const char *load(const HopsPen *p, int j) {
    int b;
    const char *who = hops_most(&p->h, p->row, j, &b);
    const double *share = p->row->share[j];
    if (share[b] <= 0) return "no rank: the mask has none of these";
    bool same = true;
    for (int k = 0; k < p->h.n; k++) same &= share[k] >= share[b] * (1 - 1e-9);
    if (same) return arena_printf(p->a, "each rank: %.1f %% of all", 100 * share[b]);
    return arena_printf(p->a, "most: %s, %.1f %% of all", who, 100 * share[b]);
}
/* Of a step without the room for the ranks that compute most: how much that is. */
static const char *load_in(const HopsPen *p, int j, double room) {
    const char *text = load(p, j);
    int b;
    if (scene_width(p->s, 12.5, REGULAR, text) <= room) return text;
    hops_most(&p->h, p->row, j, &b);
    return arena_printf(p->a, "most: %.1f %% of all", 100 * p->row->share[j][b]);
}
/* "5, 3, 9 and 7", of the documents of a row. */
static const char *lengths(const HopsPen *p, const HopsRow *row) {
    Str s = str_new(p->a);
    for (int d = 0; d < row->n_documents; d++)
        str_addf(&s, "%s%lld",
                 !d                         ? ""
                 : d + 1 < row->n_documents ? ", "
                                            : " and ",
                 (long long)(row->document[d].lim - row->document[d].from));
    return s.s;
}
static const char *row_words(const HopsPen *p, const HopsRow *row) {
    return arena_printf(p->a, "%s with %s of %s tokens",
                        row->times > 1 ? arena_printf(p->a, "%d rows", row->times) : "A row",
                        row->n_documents > 1 ? "documents" : "one document", lengths(p, row));
}
static const char *totals(const HopsPen *p) {
    const Hops *h = &p->h;
    Str mask = str_new(p->a);
    if (!h->known)
        str_add(&mask, " The work is not that of the mask: bars are shares of the largest tile.");
    else if (h->full) str_add(&mask, " There is no mask: each query sees all keys.");
    if (h->known && h->window)
        str_addf(&mask, " A query sees %lld positions up to its own.", (long long)h->window);
    if (h->known && h->chunk)
        str_addf(&mask, " Chunks of %lld positions, and none sees another.", (long long)h->chunk);
    if (h->known && h->n_rows > 1)
        str_addf(&mask, " Rows pack other documents each, and none sees another: %d masks.",
                 h->n_rows);
    else if (h->known && h->row->n_documents > 1)
        str_addf(&mask, " The row packs %d documents, and none sees another.", h->row->n_documents);
    else if (h->known && h->order == PLACE_STRIPED && !h->full)
        str_add(&mask, " A tile lacks its diagonal where the keys' rank comes after.");
    return arena_printf(p->a,
                        "Each rank sends %s of %s forward. If each step lasts as long as its "
                        "busiest rank, all steps together last %.2f times as long as with even "
                        "shares.%s",
                        bytes_text(h->sent, p->a), travels(p), hops_slowdown(h),
                        mask.n ? mask.s : "");
}

/* ---- a tile ---- */
/* A rectangle of query rows and key columns, in rows of their ranks. */
typedef struct {
    HopsDocument rows, columns;
} HopsBlock;
/* What lies where side * (x - y) is at most `most`, of a polygon of n corners that stand in order;
 * returns how many it has then. */
static int cut_off(Pt *pt, int n, double side, double most) {
    Pt out[CORNERS];
    int m = 0;
    for (int i = 0; i < n; i++) {
        Pt a = pt[i], b = pt[(i + 1) % n];
        double da = side * (a.x - a.y) - most, db = side * (b.x - b.y) - most;
        if (da <= 0) out[m++] = a;
        if ((da < 0 && db > 0) || (da > 0 && db < 0)) {
            double at = da / (da - db);
            out[m++] = (Pt){a.x + at * (b.x - a.x), a.y + at * (b.y - a.y)};
        }
    }
    // cppcheck-suppress uninitvar ; of no corners none is copied
    memcpy(pt, out, (size_t)m * sizeof *pt);
    return m;
}
/* Of a block, the pairs that the band leaves: a key no later than the query, and not longer ago
 * than the window. sub: the piece of the tile; each: of it, one row. */
static void fill_band(HopsPen *p, HopsBlock b, HopsBand band, Area sub, double each, Role fill) {
    double r0 = (double)b.rows.from, r1 = (double)b.rows.lim, c0 = (double)b.columns.from,
           c1 = (double)b.columns.lim;
    Pt pt[CORNERS] = {{c0, r0}, {c1, r0}, {c1, r1}, {c0, r1}};
    int n = cut_off(pt, 4, 1, (double)band.high);
    n = cut_off(pt, n, -1, 1 - (double)band.low);
    double area = 0;
    for (int i = 0; i < n; i++) {
        Pt next = pt[(i + 1) % n];
        area += (pt[i].x * next.y - next.x * pt[i].y) / 2;
    }
    if (area <= 1e-9) return;
    if (area > (c1 - c0) * (r1 - r0) - 1e-9) {
        double x = sub.x + c0 * each * sub.w, y = sub.y + r0 * each * sub.h;
        Area all = {x, y, fmin(1, c1 * each) * sub.w + sub.x - x,
                    fmin(1, r1 * each) * sub.h + sub.y - y};
        scene_rect(p->s, all, 0, (Look){fill, ROLE_NONE, 0})->ground = true;
        return;
    }
    for (int i = 0; i < n; i++) {
        pt[i].x = sub.x + fmin(1, pt[i].x * each) * sub.w;
        pt[i].y = sub.y + fmin(1, pt[i].y * each) * sub.h;
    }
    scene_poly(p->s, pt, n, (Look){fill, ROLE_NONE, 0})->ground = true;
}
static void bar(HopsPen *p, double work, Area t, Role fill) {
    double part = p->h.most > 0 ? work / p->h.most * t.h : 0;
    if (part > 0)
        scene_rect(p->s, (Area){t.x, t.y + t.h - part, t.w, part}, 0, (Look){fill, ROLE_NONE, 0})
            ->ground = true;
}
static void fill_tile(HopsPen *p, int j, int k, Area t, Role fill) {
    const Hops *h = &p->h;
    int n = h->order == PLACE_ZIGZAG ? 2 : 1, keys = hops_keys(h, j, k);
    double each = (double)h->n * n / (double)h->S;
    if (!h->known) bar(p, h->work[j][k], t, fill);
    for (int i = 0; h->known && i < n; i++)
        for (int m = 0; m < n; m++)
            for (int d = 0; d < p->row->n_blocks; d++) {
                HopsDocument b = p->row->block[d];
                HopsBlock block = {hops_rows(h, k, i, b.from, b.lim),
                                   hops_rows(h, keys, m, b.from, b.lim)};
                Area sub = {t.x + m * t.w / n, t.y + i * t.h / n, t.w / n, t.h / n};
                fill_band(p, block, hops_band(h, k, i, keys, m), sub, each, fill);
            }
}
/* The way of a block: down a row; from the last out at the bottom and in at the top. */
static void draw_hop(HopsPen *p, Area t, int row, double top) {
    double reach = fmin(9, p->cell * 0.3), x = t.x + t.w / 2, y = t.y + t.h;
    const Pt go[2] = {{x, y - reach}, {x, y + reach}}, in[2] = {{x, top - reach}, {x, top + reach}};
    scene_arrow(p->s, go, 2, (ArrowLook){ROLE_COLL_LINE, 2, false, false}, -1);
    if (row == p->h.n - 1)
        scene_arrow(p->s, in, 2, (ArrowLook){ROLE_COLL_LINE, 2, false, false}, -1);
}

/* ---- a frame ---- */
static double square(const HopsPen *p) { return p->h.n * p->cell; }
static double frame_width(const HopsPen *p) { return fmax(square(p), 176) + p->gap; }
static double frame_height(const HopsPen *p) { return 56 + square(p) + 44; }

static void draw_tiles(HopsPen *p, int j, double x0, double top) {
    const Hops *h = &p->h;
    for (int k = 0; k < h->n; k++)
        for (int i = 0; i < h->n; i++) {
            Area t = {x0 + hops_keys(h, i, k) * p->cell, top + k * p->cell, p->cell, p->cell};
            if (i <= j) fill_tile(p, i, k, t, i < j ? ROLE_PART_SUM : ROLE_SHARD);
            Mark *m = scene_rect(p->s, t, 0, (Look){ROLE_NONE, ROLE_FAINT, 1});
            m->ground = true;
        }
    for (int k = 0; k < h->n; k++) {
        Area t = {x0 + hops_keys(h, j, k) * p->cell, top + k * p->cell, p->cell, p->cell};
        scene_rect(p->s, t, 0, (Look){ROLE_NONE, ROLE_INK, 2});
    }
    for (int k = 0; k < h->n && j + 1 < h->n; k++) {
        Area t = {x0 + hops_keys(h, j, k) * p->cell, top + k * p->cell, p->cell, p->cell};
        draw_hop(p, t, k, top);
    }
}
static void draw_frame(HopsPen *p, int j, double x0, double y) {
    Scene *s = p->s;
    const Hops *h = &p->h;
    double top = y + 56;
    const TextLook small = {ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND};
    int row = (int)(p->row - h->row);
    scene_at(s, j + 1);
    scene_begin(s, "frame",
                row ? arena_printf(p->a, "row-%d-hop-%d", row, j) : arena_printf(p->a, "hop-%d", j),
                arena_printf(p->a, "%s; %s", whose(p, j), load(p, j)));
    scene_text(s, x0, y + 12, (TextLook){ALIGN_LEFT, 14, BOLD, ROLE_INK}, whose(p, j));
    for (int k = 0; k < h->n; k++) {
        if (p->cell >= 18 || k % 2 == 0) /* two digits want room */
            scene_textf(s, x0 + (k + 0.5) * p->cell, top - 14, small, "%lld",
                        (long long)h->rank[k]);
        scene_textf(s, x0 - 8, top + (k + 0.5) * p->cell + 4,
                    (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, "%s%lld",
                    p->cell >= 20 ? "rank " : "", (long long)h->rank[k]);
    }
    draw_tiles(p, j, x0, top);
    double under = top + square(p);
    /* Beside it is the room of the next frame's labels, which stand higher. */
    double room = fmin(frame_width(p) + p->label, p->x + p->w - x0 + 8) - 8;
    scene_text(s, x0, under + 28, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK},
               load_in(p, j, room));
    scene_end(s);
    scene_at(s, 0);
}

/* ---- what each rank computes ---- */
enum { LOAD_HEAD = 46, LOAD_LINE = 18 };
static double load_height(const HopsPen *p) { return LOAD_HEAD + p->h.n * LOAD_LINE + 14; }
/* Left of the bars stand a rank and its tokens: where the bars begin. */
static double load_left(const HopsPen *p) {
    double w = scene_width(p->s, 12, REGULAR, "its tokens");
    for (int k = 0; k < p->h.n; k++)
        w = fmax(w, scene_width(p->s, 12, REGULAR, hops_tokens(&p->h, k)));
    return p->x + p->label + fmin(w, 0.4 * p->w) + 12;
}
/* Of place k: filled while it computes, a band while it waits for the busiest. */
static void draw_load(HopsPen *p, int k, double y, double unit) {
    Scene *s = p->s;
    const Hops *h = &p->h;
    double left = p->x + p->label, x = load_left(p), sum = 0, slow = 0;
    const char *tokens = hops_tokens(h, k);
    for (int j = 0; j < h->n; j++) {
        sum += h->work[j][k];
        slow += h->work[j][hops_busiest(h, j)];
    }
    double part = h->total > 0 ? 100 * sum / h->total : 0, waits = slow > 0 ? 1 - sum / slow : 0;
    scene_begin(s, "load", arena_printf(p->a, "load-%d", k),
                arena_printf(p->a,
                             "rank %lld, tokens %s: %.1f %% of all work; waits %.1f %% of the time",
                             (long long)h->rank[k], tokens, part, 100 * waits));
    scene_text(s, left, y + 13, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK},
               scene_fit(s, tokens, x - left - 8, 12, REGULAR));
    scene_textf(s, left - 8, y + 13, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, "%s%lld",
                p->label >= 50 ? "rank " : "", (long long)h->rank[k]);
    for (int j = 0; j < h->n; j++) {
        double all = unit * h->work[j][hops_busiest(h, j)], own = unit * h->work[j][k];
        if (all <= 0) continue;
        scene_rect(s, (Area){x, y + 2, all, LOAD_LINE - 4}, 0, (Look){ROLE_BAND, ROLE_NONE, 0})
            ->ground = true;
        if (own > 0)
            scene_rect(s, (Area){x, y + 2, own, LOAD_LINE - 4}, 0, (Look){ROLE_SHARD, ROLE_NONE, 0})
                ->ground = true;
        scene_rect(s, (Area){x, y + 2, all, LOAD_LINE - 4}, 0, (Look){ROLE_NONE, ROLE_FAINT, 1})
            ->ground = true;
        x += all;
    }
    scene_textf(s, x + 8, y + 13, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, "%.1f %%", part);
    scene_end(s);
}
static double draw_loads(HopsPen *p, double y) {
    Scene *s = p->s;
    const Hops *h = &p->h;
    double left = p->x + p->label, x = load_left(p), room = p->x + p->w - x - 64, slow = 0;
    for (int j = 0; j < h->n; j++) slow += h->work[j][hops_busiest(h, j)];
    if (!(slow > 0)) return y;
    scene_text(s, left, y + 12, (TextLook){ALIGN_LEFT, 14, BOLD, ROLE_INK},
               "What each rank computes, and waits for the busiest of a step");
    scene_text(s, left, y + LOAD_HEAD - 8, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               "its tokens");
    for (int j = 0; j < h->n; j++) {
        double w = room * h->work[j][hops_busiest(h, j)] / slow;
        const char *word = j ? arena_printf(p->a, "%d hop%s", j, j > 1 ? "s" : "") : "start";
        if (scene_width(s, 12, REGULAR, word) + 6 > w) word = arena_printf(p->a, "%d", j);
        if (scene_width(s, 12, REGULAR, word) + 4 <= w)
            scene_text(s, x + w / 2, y + LOAD_HEAD - 8,
                       (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, word);
        x += w;
    }
    scene_text(s, x + 8, y + LOAD_HEAD - 8, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               "of all");
    for (int k = 0; k < h->n; k++) draw_load(p, k, y + LOAD_HEAD + k * LOAD_LINE, room / slow);
    return y + load_height(p);
}

/* ---- the page ---- */
static double draw_key(HopsPen *p, const HopsPage *page, double y) {
    static const char *const words[] = {
        "computed in this step",     "computed before",
        "the block is here",         "goes on to the next rank",
        "numbers above: whose keys", "waits for the busiest of the step"};
    const bool frames = page->to > page->from, uneven = hops_slowdown(&p->h) > 1 + 1e-9,
               shown[] = {true, frames, frames, frames, frames, page->load && uneven};
    double x = p->x;
    scene_begin(p->s, "legend", "legend", NULL);
    for (int k = 0; k < 6; k++) {
        double mark = k != 4 ? 34 : 0, w = mark + scene_width(p->s, 12, REGULAR, words[k]);
        if (!shown[k]) continue;
        if (x > p->x && x + w > p->x + p->w) x = p->x, y += 24;
        const Pt pt[2] = {{x + 13, y - 9}, {x + 13, y + 9}};
        const Look look[] = {
            {ROLE_SHARD, ROLE_NONE, 0}, {ROLE_PART_SUM, ROLE_NONE, 0}, {ROLE_NONE, ROLE_INK, 2}};
        if (k < 3) scene_rect(p->s, (Area){x + 1, y - 7, 24, 14}, 0, look[k]);
        if (k == 5)
            scene_rect(p->s, (Area){x + 1, y - 7, 24, 14}, 0, (Look){ROLE_BAND, ROLE_FAINT, 1});
        if (k == 3) scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_COLL_LINE, 2, false, false}, -1);
        scene_text(p->s, x + mark, y + 4.5, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   words[k]);
        x += w + 20;
    }
    scene_end(p->s);
    return y + 18;
}
static double draw_row(HopsPen *p, const HopsPage *page, double y) {
    double left = p->x + p->label;
    if (p->h.n_rows > 1) {
        scene_text(p->s, p->x, y + 12, (TextLook){ALIGN_LEFT, 14, REGULAR, ROLE_SECOND},
                   scene_fit(p->s, row_words(p, p->row), p->w, 14, REGULAR));
        y += ROW_HEAD;
    }
    for (int j = page->from; j < page->to; j++)
        draw_frame(p, j, left + (j - page->from) % p->per * (frame_width(p) + p->label),
                   y + (j - page->from) / p->per * frame_height(p));
    return y + ((page->to - page->from + p->per - 1) / p->per) * frame_height(p);
}
static Scene *hops_page(HopsPen *p, const HopsPage *page) {
    Scene *s = p->s = figure_new(p->c, "storyboard", p->preset);
    const char *sub[] = {subtitle(p), p->h.others ? p->h.others : "", p->wrong->n ? AS_MEANT : "",
                         words_shrink(p->a, p->c->t), NULL};
    double y = figure_head(s, p->preset, headline(p), sub, 0) + 14;
    y = wrong_banner(s, p->c, (Band){p->x, p->w, y});
    for (int r = page->row; r < page->rows; r++) {
        p->row = &p->h.row[r];
        y = draw_row(p, page, y);
    }
    if (page->load) y = draw_loads(p, y + 6);
    y = draw_key(p, page, y + 4);
    y = figure_foot(s, p->c, (Band){p->x, p->w, y}, totals(p), NULL);
    s->desc = arena_printf(p->a, "%s. %s. %s%s%s", headline(p), subtitle(p),
                           p->h.others ? p->h.others : "", p->h.others ? ". " : "", totals(p));
    figure_page(s, p->preset, y);
    return s;
}
static bool prepare(const ViewCall *c, HopsPen *p) {
    *p = (HopsPen){.c = c, .a = c->arena};
    if (!hops_prepare(c, &p->h)) return false;
    p->row = p->h.row;
    p->wrong = wrong_find(p->a, c->t, NULL, NULL);
    return true;
}
int view_hops(const ViewCall *c, Scene **page) {
    HopsPen p;
    if (!prepare(c, &p)) return 0;
    furniture_preset(c->o->preset, &p.preset);
    p.x = presets[p.preset].margin;
    p.w = presets[p.preset].w - 2 * p.x;
    p.cell = p.h.n <= 4 ? 44 : p.h.n <= 8 ? 26 : 18;
    if (p.preset == PRESET_SLIDE) {
        double others = SLIDE_OTHERS + (p.h.n_rows > 1 ? ROW_HEAD : 0) + (p.wrong->n ? NOTES : 0);
        p.cell = fmin(LARGEST, (presets[p.preset].h - others) / p.h.n);
    }
    p.label = p.cell >= 20 ? 52 : 30;
    p.gap = 4;
    int per = p.h.n, pages = 0, rows = p.h.n_rows < ROWS_DRAWN ? p.h.n_rows : ROWS_DRAWN;
    while (per > 1 && per * (frame_width(&p) + p.label) > p.w + 0.1) per--;
    int lines = (p.h.n + per - 1) / per;
    p.per = (p.h.n + lines - 1) / lines;
    if (p.preset != PRESET_SLIDE && p.preset != PRESET_A4) {
        page[0] = hops_page(&p, &(HopsPage){0, rows, 0, p.h.n, true});
        return 1;
    }
    int each = p.per, last = 0;
    if (p.preset == PRESET_A4) each *= (int)fmax(1, floor(A4_ROOM / frame_height(&p)));
    HopsPage part[VIEW_MAX_PAGES];
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < p.h.n && pages + 1 < VIEW_MAX_PAGES; j += each) {
            last = j + each < p.h.n ? j + each : p.h.n;
            part[pages++] = (HopsPage){r, r + 1, j, last, false};
            lines = (last - j + p.per - 1) / p.per;
        }
    if (p.preset == PRESET_A4 && lines * frame_height(&p) + load_height(&p) <= A4_ROOM)
        part[pages - 1].load = true;
    else part[pages++] = (HopsPage){.load = true};
    for (int k = 0; k < pages; k++) page[k] = hops_page(&p, &part[k]);
    return pages;
}
static void text_step(const HopsPen *p, int j, Str *s, int w) {
    str_add(s, "\n");
    words_paragraph(s, "", arena_printf(p->a, "%s; %s", whose(p, j), load(p, j)), w);
    for (int k = 0; k < p->h.n; k++)
        str_addf(s, "    rank %-4lld keys of rank %-4lld %5.1f %% of all\n",
                 (long long)p->h.rank[k], (long long)p->h.rank[hops_keys(&p->h, j, k)],
                 100 * p->row->share[j][k]);
}
const char *view_hops_text(const ViewCall *c) {
    HopsPen p;
    Role role;
    if (!prepare(c, &p)) return NULL;
    Str s = str_new(p.a);
    int w = furniture_columns(c->o);
    words_paragraph(&s, "", headline(&p), w);
    words_paragraph(&s, "", subtitle(&p), w);
    if (p.h.others) words_paragraph(&s, "", p.h.others, w);
    if (p.wrong->n) words_paragraph(&s, "", AS_MEANT, w), wrong_text(&s, p.wrong, w);
    for (int r = 0; r < p.h.n_rows; r++) {
        p.row = &p.h.row[r];
        if (p.h.n_rows > 1) str_add(&s, "\n"), words_paragraph(&s, "", row_words(&p, p.row), w);
        for (int j = 0; j < p.h.n; j++) text_step(&p, j, &s, w);
    }
    str_add(&s, "\n");
    for (int k = 0; k < p.h.n; k++) {
        double sum = 0;
        for (int j = 0; j < p.h.n && p.h.total > 0; j++) sum += 100 * p.h.work[j][k] / p.h.total;
        str_addf(&s, "    rank %-4lld %5.1f %% of all work; tokens %s\n", (long long)p.h.rank[k],
                 sum, hops_tokens(&p.h, k));
    }
    str_add(&s, "\n");
    words_paragraph(&s, "", totals(&p), w);
    words_paragraph(&s, "", words_stamp(p.a, c->t, &role), w);
    return s.s;
}
