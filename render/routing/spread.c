/* What the matrix of many ranks is too fine to show: how many of them receive how much, and which
 * pairs send most. Takes the rows that a routing has added up and refuses to count any itself. */
#include "render/routing/spread.h"
#include "render/routing/frames.h"
#include <math.h>
#include <string.h>

enum { BANDS = 24, EVEN_BANDS = 8, LINE = 18 };

/* ---- bands ---- */

typedef struct {
    int n;
    double lo[BANDS + 1]; /* lo[n]: behind the last */
} Bands;

/* As wide as 1, 2, 5, 10, .. where ranks receive much alike; by twos where the most is many times
 * the least. */
static Bands bands_of(const Routing *r) {
    Bands b = {0};
    double least = r->in[0], most = r->in[r->busiest], step = 1;
    for (int64_t k = 0; k < r->n; k++) least = fmin(least, r->in[k]);
    if (most >= EVEN_BANDS && most > 8 * least) {
        for (double lo = least < 1 ? 0 : exp2(floor(log2(least))); lo <= most && b.n < BANDS - 1;
             lo = lo < 1 ? 1 : 2 * lo)
            b.lo[b.n++] = lo;
        b.lo[b.n] = fmax(exp2(floor(log2(most)) + 1), most + 1);
        return b;
    }
    for (int i = 1; floor(most / step) - floor(least / step) >= EVEN_BANDS; i++)
        step *= i % 3 == 2 ? 2.5 : 2;
    for (double lo = step * floor(least / step); lo <= most; lo += step) b.lo[b.n++] = lo;
    b.lo[b.n] = b.lo[b.n - 1] + step;
    return b;
}

double spread_draw(const Routing *r, Scene *s, Pt at, double w) {
    enum { NAME = 96, NUMBER = 44 };
    Bands b = bands_of(r);
    double ranks[BANDS] = {0}, most = 0, x = at.x, y = at.y;
    for (int64_t k = 0; k < r->n; k++) {
        int i = 0;
        while (i + 1 < b.n && r->in[k] >= b.lo[i + 1]) i++;
        most = fmax(most, ++ranks[i]);
    }
    scene_begin(s, "spread", "spread", "ranks by the rows that they receive");
    scene_text(s, x, y + 12, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
               "Ranks by rows received");
    y += 22;
    for (int i = 0; i < b.n; i++, y += LINE) {
        double hi = b.lo[i + 1] - 1, bar = (w - NAME - NUMBER) / most * ranks[i];
        scene_text(s, x, y + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   b.lo[i] < hi ? arena_printf(r->a, "%.0f to %.0f", b.lo[i], hi)
                                : arena_printf(r->a, "%.0f", b.lo[i]));
        if (ranks[i] > 0)
            scene_rect(s, (Area){x + NAME, y + 3, fmax(1, bar), 11}, 0,
                       (Look){ROLE_BYTES, ROLE_NONE, 0});
        scene_textf(s, x + NAME + bar + 6, y + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK},
                    "%.0f", ranks[i]);
    }
    scene_end(s);
    return y + 10;
}

/* ---- pairs ---- */

enum { TOP = 5, RIBBON = 14, POINTS = 24 };
typedef struct {
    int64_t from, to;
    double rows;
    int place; /* among those that arrive, from above */
} Pair;

/* Those that send most to another, by their senders; returns how many, and how many more send as
 * much as the least of them. */
static int pairs_of(const Routing *r, Pair top[TOP], int64_t *as_many) {
    int n = 0;
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t k = 0; k < r->n; k++) {
            double rows = r->sent[i * r->n + k];
            if (i == k || rows <= 0 || (n == TOP && rows <= top[n - 1].rows)) continue;
            int at = n < TOP ? n++ : n - 1;
            for (; at > 0 && top[at - 1].rows < rows; at--) top[at] = top[at - 1];
            top[at] = (Pair){.from = i, .to = k, .rows = rows};
        }
    *as_many = -n;
    for (int64_t i = 0; n && i < r->n; i++)
        for (int64_t k = 0; k < r->n; k++)
            *as_many += i != k && r->sent[i * r->n + k] >= top[n - 1].rows;
    for (int i = 1; i < n; i++) /* by sender, then by receiver */
        for (int j = i; j > 0 && (top[j].from < top[j - 1].from ||
                                  (top[j].from == top[j - 1].from && top[j].to < top[j - 1].to));
             j--) {
            Pair p = top[j];
            top[j] = top[j - 1], top[j - 1] = p;
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            top[i].place += top[j].to < top[i].to || (j < i && top[j].to == top[i].to);
    return n;
}

static const char *rank_of(const Routing *r, int64_t member) {
    return arena_printf(r->a, "rank %lld", (long long)r->rank[member]);
}
/* A ribbon whose middle goes from one point to the other, its rows before it. */
static void draw_pair(const Routing *r, Scene *s, const Pair *p, Pt from, Pt to, double h) {
    Pt pt[2 * POINTS];
    for (int i = 0; i < POINTS; i++) {
        double t = (double)i / (POINTS - 1), ease = t * t * (3 - 2 * t);
        pt[i] = (Pt){from.x + t * (to.x - from.x), from.y + ease * (to.y - from.y) - h / 2};
        pt[2 * POINTS - 1 - i] = (Pt){pt[i].x, pt[i].y + h};
    }
    scene_begin(s, "ribbon",
                arena_printf(r->a, "pair-%lld-%lld", (long long)p->from, (long long)p->to),
                arena_printf(r->a, "%s to %s: %.0f row%s", rank_of(r, p->from), rank_of(r, p->to),
                             p->rows, p->rows == 1 ? "" : "s"));
    Mark *m = scene_poly(s, pt, 2 * POINTS, (Look){ROLE_BYTES, ROLE_PAPER, 0.6});
    m->ground = true, m->opacity = RIBBON_OPACITY;
    scene_textf(s, from.x - 5, from.y + 4, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_INK}, "%.0f",
                p->rows);
    scene_end(s);
}
/* A rank's name at its first ribbon and a bar along all of them. */
static void draw_side(Scene *s, const char *name, bool right, double x, double y, int ribbons) {
    scene_rect(s, (Area){right ? x : x - 6, y + 2, 6, LINE * (double)ribbons - 4}, 0,
               (Look){ROLE_INK, ROLE_NONE, 0});
    scene_text(s, right ? x + 14 : x - 84, y + 13, (TextLook){ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK},
               name);
}

/* Beside the pairs that are drawn: others send as many as the least of them. */
static double as_many_more(Scene *s, Pt at, int64_t more, double least) {
    scene_textf(s, at.x, at.y + 14, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                "%lld more send%s %.0f row%s, too", (long long)more, more == 1 ? "s" : "", least,
                least == 1 ? "" : "s");
    return at.y + LINE;
}
/* More than five pairs send as many as any does: no five of them are the first. */
static double all_first(Scene *s, Pt at, int64_t pairs, double rows) {
    scene_textf(s, at.x, at.y + 34, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                "%lld pairs send %.0f row%s each, none more", (long long)pairs, rows,
                rows == 1 ? "" : "s");
    scene_end(s);
    return at.y + 22 + LINE + 10;
}
double spread_pairs(const Routing *r, Scene *s, Pt at, double w) {
    Pair top[TOP];
    int64_t as_many;
    int n = pairs_of(r, top, &as_many);
    if (!n) return at.y;
    double x0 = at.x + 84, x1 = at.x + w - 84, y = at.y + 22, most = 0, least = top[0].rows;
    for (int i = 0; i < n; i++) most = fmax(most, top[i].rows), least = fmin(least, top[i].rows);
    double number = scene_width(s, 12, REGULAR, arena_printf(r->a, "%.0f", most)) + 14;
    scene_begin(s, "pairs", "pairs", "pairs of ranks that send most; width of a ribbon = rows");
    scene_text(s, at.x, at.y + 12, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
               "Pairs that send most");
    if (as_many > 0 && least == most) return all_first(s, at, as_many + n, most);
    for (int i = 0; i < n; i++)
        draw_pair(r, s, &top[i], (Pt){x0 + number, y + (i + 0.5) * LINE},
                  (Pt){x1, y + (top[i].place + 0.5) * LINE}, RIBBON * top[i].rows / most);
    for (int i = 0; i < n; i++) {
        int out = 0, in = 0, first = n;
        bool starts = i == 0 || top[i - 1].from != top[i].from;
        for (int j = 0; j < n; j++) {
            out += top[j].from == top[i].from;
            in += top[j].to == top[i].to;
            if (top[j].to == top[i].to && top[j].place < first) first = top[j].place;
        }
        if (starts) draw_side(s, rank_of(r, top[i].from), false, x0, y + i * LINE, out);
        if (top[i].place == first)
            draw_side(s, rank_of(r, top[i].to), true, x1, y + first * LINE, in);
    }
    y += n * LINE;
    if (as_many > 0) y = as_many_more(s, (Pt){at.x, y}, as_many, least);
    scene_end(s);
    return y + 10;
}
