/* Drawing a roofline. See roof_plot.h. A name stands where it touches no other name, no mark and no
 * line; further away it is led to its mark. Marks at one place have one name. Where some find no
 * room they come first in another round; the names of roofs come before those of marks or behind
 * them. What leaves least without a name is drawn; what is left has a number. */
#include "render/roofline/roof_plot.h"
#include "base/text.h"
#include <math.h>
#include <string.h>

enum { LEFT = 64, BOTTOM = 42, HEAD = 24, SMALLEST = 4, LARGEST = 11 };
enum { CLOSE = 5, TOUCH = 9, NEXT = 13, NEAR_BY = 18 };
/* marks at one place; that touch; that nearly do; that one mark would stand between */
enum { NAMES_ABOVE = 76, ROOFS_ABOVE = 30 }; /* the flat roof: names of marks at it; of roofs */
enum { MOST_LINES = 512, MOST_NAMES = 3, DECADES = 16 };
enum { ROUNDS = 8, STARTS = 3, FROM_LEFT = 2, ATTEMPTS = 10 };
static const char two_digits[] = "00"; /* the room of a number, till it is known which */
static const double DISTANCE[] = {0, 12, 26, 42, 60, 80, 100, 125, 150, 180, 215, 250};
enum {
    WAYS = 32,
    FARS = sizeof DISTANCE / sizeof *DISTANCE
}; /* where a name may stand round its mark */
typedef struct {
    double lo, hi, from, to; /* log10; where these stand */
} Axis;
typedef struct {
    Pt a, b;
} Line;
/* The name of a mark, and the leader to it. */
typedef struct {
    const char *text; /* NULL: it has no room */
    Box box;
    bool led;
    int number; /* 0, or the number that it has instead */
    Line leader;
} Name;
/* What a mark may be called: by more or fewer of the names at its place. */
typedef struct {
    const char *text[MOST_NAMES];
    double w[MOST_NAMES], shortest;
    bool taken[FARS][WAYS]; /* by what stays in all rounds: not even the shortest has room */
} Label;
/* A name of a roof. */
typedef struct {
    const char *text;
    Box box;
    Role role;
} Word;
enum { MOST_WORDS = 8 };
/* What has names. */
typedef struct {
    int n_words;
    Word word[MOST_WORDS];
    Name *name;   /* of each mark */
    double close; /* as far apart these have one */
    double lacks; /* what the marks without a name count, and more for roofs */
} Names;
typedef struct {
    const RoofPlot *p;
    Scene *s;
    Arena *a;
    Axis x, y;
    Area box;           /* inside the axes */
    double size, close; /* of the text; as far apart marks are at one place */
    int n_lines, n_roofs, n_boxes, n_marks, n_words; /* leaders are lines behind the roofs */
    int stay_boxes, stay_lines;                      /* of them those that stay in all rounds */
    Word word[MOST_WORDS];
    Line line[MOST_LINES];
    Box *text; /* names that stand */
    Box *mark; /* what each mark covers, in the order of the plot */
    Pt *at;    /* where it stands */
    Name *name;
    Label *label;
    bool *by_number; /* of each mark: it has a number, before others have names */
    Pt way[WAYS];
    unsigned *legend;
} RoofPen;

static double at_log(const Axis *x, double log) {
    const double t = fmin(fmax((log - x->lo) / (x->hi - x->lo), 0), 1);
    return x->from + t * (x->to - x->from);
}
static double place(const Axis *x, double v) { return at_log(x, log10(v)); }
static Pt point(const RoofPen *q, double x, double y) {
    return (Pt){place(&q->x, x), place(&q->y, y)};
}
/* ---- axes ---- */
static void widen(Axis *x, double v) {
    const double log = log10(v);
    if (!isfinite(log)) return;
    x->lo = fmin(x->lo, log), x->hi = fmax(x->hi, log);
}
static void set_axes(RoofPen *q) {
    const RoofPlot *p = q->p;
    q->x = q->y = (Axis){INFINITY, -INFINITY, 0, 0};
    for (int i = 0; i < p->n; i++) widen(&q->x, p->mark[i].x), widen(&q->y, p->mark[i].y);
    for (int i = 0; i < p->n_slopes; i++) widen(&q->x, p->peak / p->slope[i].rate);
    widen(&q->y, p->peak);
    q->y.lo -= 0.15;
    q->x.lo -= 0.35, q->x.hi += 0.9;
    if (q->y.hi - q->y.lo < 1.2) q->y.lo = q->y.hi - 1.2;
    if (q->x.hi - q->x.lo > DECADES) q->x.lo = q->x.hi - DECADES;
    if (q->y.hi - q->y.lo > DECADES) q->y.lo = q->y.hi - DECADES;
    bool near = false;
    for (int i = 0; i < p->n; i++) near |= p->mark[i].y > 0.3 * p->peak;
    const double over = fmin(near ? NAMES_ABOVE : ROOFS_ABOVE, 0.25 * q->box.h) / q->box.h;
    q->y.hi = fmax(q->y.hi, (log10(p->peak) - over * q->y.lo) / (1 - over));
    q->x.from = q->box.x, q->x.to = q->box.x + q->box.w;
    q->y.from = q->box.y + q->box.h, q->y.to = q->box.y;
}
/* "0.01", "10 k" */
static const char *decade_text(Arena *a, int k) {
    return k < 0 ? arena_printf(a, "%.*f", -k, pow(10, k)) : count_text(pow(10, k), a);
}
/* Every so many decades have a number. */
static int decades(const Axis *x, double apart) {
    const double each = fabs(x->to - x->from) / (x->hi - x->lo);
    return (int)fmax(1, ceil(apart / each));
}
static void draw_x(RoofPen *q) {
    const int step = decades(&q->x, 46);
    const double y = q->box.y + q->box.h;
    for (int k = (int)ceil(q->x.lo); k <= (int)floor(q->x.hi); k++) {
        const double x = at_log(&q->x, k);
        scene_segment(q->s, (Pt){x, q->box.y}, (Pt){x, y}, ROLE_GRID, 1)->ground = true;
        if (((k % step) + step) % step == 0)
            scene_text(q->s, x, y + 16, (TextLook){ALIGN_MIDDLE, q->size, REGULAR, ROLE_TICK},
                       decade_text(q->a, k));
    }
    scene_text(q->s, q->box.x + q->box.w / 2, y + 34,
               (TextLook){ALIGN_MIDDLE, fmax(12, q->size), REGULAR, ROLE_SECOND}, q->p->x_name);
}
static void draw_y(RoofPen *q) {
    const int step = decades(&q->y, 26);
    for (int k = (int)ceil(q->y.lo); k <= (int)floor(q->y.hi); k++) {
        const double y = at_log(&q->y, k);
        scene_segment(q->s, (Pt){q->box.x, y}, (Pt){q->box.x + q->box.w, y}, ROLE_GRID, 1)->ground =
            true;
        if (((k % step) + step) % step == 0)
            scene_text(q->s, q->box.x - 6, y + 4,
                       (TextLook){ALIGN_RIGHT, q->size, REGULAR, ROLE_TICK}, decade_text(q->a, k));
    }
}

/* ---- what stands where ---- */
static double radius(const RoofMark *m) {
    return SMALLEST + (LARGEST - SMALLEST) * sqrt(fmin(fmax(m->share, 0), 1));
}
static bool is_wrong(const RoofPlot *p, const RoofMark *m) {
    return wrong_number(p->wrong, m->step) > 0;
}
static Box mark_box(const RoofMark *m, Pt at) {
    const double r = radius(m) + 1, w = m->hexagon ? 1.5 * r : r;
    return (Box){at.x - w, at.y - r, at.x + w, at.y + r};
}
static bool are_within(const RoofPen *q, int i, int k, double far) {
    return hypot(q->at[i].x - q->at[k].x, q->at[i].y - q->at[k].y) <= far;
}
/* Have they one name? */
static bool one_place(const RoofPen *q, int i, int k) { return are_within(q, i, k, q->close); }
static bool crosses(Line l, Box b) { return box_crossed(l.a, l.b, b); }
enum { AIR = 3, WORD_AIR = 8 }; /* round a text; between two on one line: else they read as one */
static Box with_air(Box b) { return (Box){b.x0 - AIR, b.y0 - AIR, b.x1 + AIR, b.y1 + AIR}; }
static Box with_word_air(Box b) {
    return (Box){b.x0 - WORD_AIR, b.y0 - AIR, b.x1 + WORD_AIR, b.y1 + AIR};
}
/* Is it clear of texts and lines from these on? */
static bool is_clear(const RoofPen *q, Box b, int boxes, int lines) {
    const Box wide = with_air(b), words = with_word_air(b);
    for (int i = boxes; i < q->n_boxes; i++)
        if (box_overlap(words, q->text[i], 0)) return false;
    for (int i = lines; i < q->n_lines; i++)
        if (crosses(q->line[i], wide)) return false;
    return true;
}
static bool is_free(const RoofPen *q, Box b, int own) {
    const Box wide = with_air(b);
    const Area in = q->box;
    if (b.x0 < in.x + 2 || b.x1 > in.x + in.w - 2 || b.y0 < in.y + 2 || b.y1 > in.y + in.h - 2)
        return false;
    for (int i = 0; i < q->n_marks; i++)
        if (box_overlap(wide, q->mark[i], 0) &&
            (own < 0 || !are_within(q, i, own, CLOSE) || box_overlap(b, q->mark[i], 0)))
            return false;
    return is_clear(q, b, 0, 0);
}
/* Nearly in one direction? Then one cannot be told from the other where they meet. */
static bool along(Line l, Line k) {
    const Pt a = {l.b.x - l.a.x, l.b.y - l.a.y}, b = {k.b.x - k.a.x, k.b.y - k.a.y};
    return fabs(a.x * b.y - a.y * b.x) < 0.6 * hypot(a.x, a.y) * hypot(b.x, b.y);
}
/* On which side of the line a point lies: above 0, below 0. */
static double side(Line l, Pt p) {
    return (l.b.x - l.a.x) * (p.y - l.a.y) - (l.b.y - l.a.y) * (p.x - l.a.x);
}
static bool meet(Line l, Line k) {
    return side(l, k.a) * side(l, k.b) <= 0 && side(k, l.a) * side(k, l.b) <= 0;
}
/* Does a leader run along a roof, and end near to it? */
static bool hugs(Line l, Line roof) {
    enum { FAR = 16 };
    const double len = hypot(roof.b.x - roof.a.x, roof.b.y - roof.a.y);
    return along(l, roof) && fabs(side(roof, l.b)) < FAR * len &&
           l.b.x > fmin(roof.a.x, roof.b.x) && l.b.x < fmax(roof.a.x, roof.b.x);
}
/* What a leader crosses of roofs and of the thin lines of ridges; -1: it runs along one. */
enum { OVER_RIDGE = 1, OVER_ROOF = 2 };
static int roofs_over(const RoofPen *q, Line l) {
    int n = 0;
    for (int i = 0; i < q->n_roofs; i++) {
        const bool met = meet(q->line[i], l);
        if ((met && along(l, q->line[i])) || hugs(l, q->line[i])) return -1;
        n += met ? (i < q->n_roofs - q->p->n_slopes ? OVER_ROOF : OVER_RIDGE) : 0;
    }
    return n;
}
static bool leads_free(const RoofPen *q, Line l, int own) {
    for (int i = q->n_roofs; i < q->n_lines; i++) /* another leader never */
        if (meet(q->line[i], l)) return false;
    for (int i = 0; i < q->n_boxes; i++)
        if (crosses(l, q->text[i])) return false;
    for (int i = 0; i < q->n_marks; i++)
        if (!are_within(q, i, own, CLOSE) && crosses(l, q->mark[i])) return false;
    return true;
}
static void add_line(RoofPen *q, Pt a, Pt b) {
    if (q->n_lines < MOST_LINES) q->line[q->n_lines++] = (Line){a, b};
}
/* The box of a line of text that begins at x, its middle at y. */
static Box text_box(const RoofPen *q, double x, double y, double w) {
    return (Box){x, y - 0.62 * q->size, x + w, y + 0.62 * q->size};
}
/* On a patch of paper: words over a line of the grid are hard to read. */
static void draw_text(RoofPen *q, Box b, TextLook look, const char *text) {
    scene_rect(q->s, (Area){b.x0 - 1, b.y0 + 1, b.x1 - b.x0 + 2, b.y1 - b.y0 - 2}, 0,
               (Look){ROLE_PAPER, ROLE_NONE, 0})
        ->ground = true;
    scene_text(q->s, b.x0, (b.y0 + b.y1) / 2 + 0.36 * q->size, look, text);
}
/* Keeps a place for the name of a roof. */
static void put_text(RoofPen *q, Box b, TextLook look, const char *text) {
    if (q->n_words < MOST_WORDS) q->word[q->n_words++] = (Word){text, b, look.role};
    q->text[q->n_boxes++] = b;
}

/* ---- roofs ---- */
/* The slanted roof from the left edge, or the bottom, to where it meets the flat one. */
static void draw_slope(RoofPen *q, int i, double part, bool whole) {
    const RoofPlot *p = q->p;
    const double rate = p->slope[i].rate, bottom = pow(10, q->y.lo),
                 x0 = fmax(pow(10, q->x.lo), bottom / (part * rate)), ridge = p->peak / rate;
    static const double dash[2] = {4, 3};
    const Pt pt[3] = {point(q, x0, part * rate * x0), point(q, ridge, part * p->peak),
                      point(q, pow(10, q->x.hi), part * p->peak)};
    const int n = whole ? 3 : 2;
    Mark *m = scene_line(q->s, pt, n, part < 1 ? ROLE_SECOND : ROLE_INK, part < 1 ? 1 : 2);
    m->bend = 0;
    if (part < 1) m->dash = dash, m->n_dash = 2;
    for (int k = 0; k + 1 < n; k++) add_line(q, pt[k], pt[k + 1]);
}
/* A line's words at the first of some places along it that is free, `dy` from it. */
static bool put_along(RoofPen *q, Line l, double dy, TextLook look, const char *text) {
    enum { STEPS = 48 };
    static const double away[] = {2, 8, 16, 26};
    const double w = scene_width(q->s, q->size, REGULAR, text);
    for (int k = 0; k <= 4 * STEPS; k++) {
        const double t = k / 4 / (double)STEPS, x = l.a.x + t * (l.b.x - l.a.x),
                     y = l.a.y + t * (l.b.y - l.a.y) + dy, far = away[k % 4];
        const bool right = look.align == ALIGN_LEFT;
        const Box b = text_box(q, right ? x + far : x - w - far, y, w);
        if (!is_free(q, b, -1)) continue;
        look.align = ALIGN_LEFT;
        put_text(q, b, look, text);
        return true;
    }
    return false;
}
static bool name_line(RoofPen *q, Line l, double dy, TextLook look, RoofName name) {
    return put_along(q, l, dy, look, name.whole) || put_along(q, l, dy, look, name.brief);
}
/* Where a slope meets the flat roof, with its number at the foot: beside the line, as low as it has
 * room. What is so on either side the roofs' names say: of what lies deep under both it is not. */
static void draw_ridge(RoofPen *q, int i) {
    const RoofPlot *p = q->p;
    enum { HIGHER = 6 };
    static const double dash[2] = {1.5, 3};
    const double ridge = p->peak / p->slope[i].rate,
                 w = scene_width(q->s, q->size, REGULAR, p->slope[i].ridge);
    const Pt top = point(q, ridge, p->peak), foot = {top.x, q->box.y + q->box.h};
    Mark *m = scene_segment(q->s, top, foot, ROLE_SECOND, 1);
    m->dash = dash, m->n_dash = 2;
    add_line(q, top, foot);
    for (int k = 0; k < 2 * HIGHER; k++) {
        const Box b = text_box(q, k % 2 ? top.x - 7 - w : top.x + 7, foot.y - 11 - k / 2 * 16, w);
        if (!is_free(q, b, -1)) continue;
        draw_text(q, b, (TextLook){ALIGN_LEFT, q->size, REGULAR, ROLE_SECOND}, p->slope[i].ridge);
        q->text[q->n_boxes++] = b;
        return;
    }
}
static void draw_roofs(RoofPen *q) {
    const RoofPlot *p = q->p;
    scene_begin(q->s, "roof", arena_printf(q->a, "%s-roof", p->id), p->peak_name.whole);
    for (int i = 0; i < p->n_slopes; i++) draw_slope(q, i, 1, i == 0);
    if (p->under > 0) draw_slope(q, 0, p->under, true);
    for (int i = 0; i < p->n_slopes; i++) draw_ridge(q, i);
    scene_end(q->s);
}
static Pt ridge_of(const RoofPen *q, int slope, double part) {
    return point(q, q->p->peak / q->p->slope[slope].rate, part * q->p->peak);
}
/* Where a slanted roof comes in at the left or from below. */
static Pt root_of(const RoofPen *q, int slope, double part) {
    const double rate = part * q->p->slope[slope].rate,
                 x = fmax(pow(10, q->x.lo), pow(10, q->y.lo) / rate);
    return point(q, x, x * rate);
}
/* At its left, or where others stand there at its right. */
static bool name_slope(RoofPen *q, int i) {
    const Pt top = ridge_of(q, i, 1), root = root_of(q, i, 1);
    const Line l = {{top.x + (root.x - top.x) / 8, top.y + (root.y - top.y) / 8}, root};
    TextLook look = {ALIGN_RIGHT, q->size, REGULAR, ROLE_INK};
    const RoofName name = q->p->slope[i].name;
    const double away = 0.62 * q->size + 4;
    for (int k = 0; k < 2; k++) {
        const char *text = k ? name.brief : name.whole;
        look.align = ALIGN_RIGHT;
        if (put_along(q, l, -away, look, text)) return true;
        look.align = ALIGN_LEFT;
        if (put_along(q, l, away, look, text)) return true;
    }
    return false;
}
/* Returns how many have no name. */
static int name_roofs(RoofPen *q) {
    const RoofPlot *p = q->p;
    const TextLook left = {ALIGN_RIGHT, q->size, REGULAR, ROLE_INK};
    const double end = q->box.x + q->box.w;
    const Line flat = {{end, ridge_of(q, 0, 1).y}, ridge_of(q, 0, 1)};
    int without = !name_line(q, flat, -0.95 * q->size - 3, left, p->peak_name);
    for (int i = 0; i < p->n_slopes; i++) without += !name_slope(q, i);
    return without;
}
/* The line under the roofs, under its slant, or its flat part, which marks need more. */
static bool name_under(RoofPen *q, bool flat) {
    const RoofPlot *p = q->p;
    const TextLook right = {ALIGN_LEFT, q->size, REGULAR, ROLE_SECOND};
    if (p->under <= 0) return true;
    const Pt top = ridge_of(q, 0, p->under), end = {q->box.x + q->box.w, top.y};
    const Pt root = root_of(q, 0, p->under),
             most = {(root.x + 3 * top.x) / 4, (root.y + 3 * top.y) / 4};
    const Line slant = {root, most}, level = {top, end};
    return name_line(q, flat ? level : slant, 0.62 * q->size + 4, right, p->under_name);
}

/* ---- marks ---- */
static void draw_mark(RoofPen *q, const RoofMark *m) {
    const Pt at = point(q, m->x, m->y);
    const double r = radius(m);
    scene_begin(q->s, m->what, m->id, m->tip);
    scene_same(q->s, m->thing);
    Mark *border = m->hexagon ? scene_hexagon(q->s, (Area){at.x - 1.5 * r, at.y - r, 3 * r, 2 * r},
                                              (Look){m->fill, m->line, 1.25})
                              : scene_circle(q->s, at.x, at.y, r, (Look){m->fill, m->line, 1.25});
    if (is_wrong(q->p, m)) wrong_border(border, q->legend);
    scene_end(q->s);
}
/* The flag of a wrong step, at its corner or as near as no line goes through it. */
static void draw_flag(RoofPen *q, const RoofMark *m) {
    enum { HALF = 11, PLACES = 8 };
    const Pt at = point(q, m->x, m->y);
    const double r = radius(m), rx = m->hexagon ? 1.5 * r : r;
    for (int k = 0; k < PLACES; k++) {
        const double far = k / 4 * 9.0, x = at.x + (k % 2 ? -1 : 1) * (rx + far),
                     y = at.y + (k / 2 % 2 ? 1 : -1) * (r + far);
        const Box b = {x - HALF, y - HALF, x + HALF, y + HALF};
        bool taken = b.x0 < q->box.x || b.x1 > q->box.x + q->box.w || b.y0 < q->box.y ||
                     b.y1 > q->box.y + q->box.h;
        for (int i = 0; i < q->n_lines; i++) taken |= crosses(q->line[i], b);
        for (int i = 0; i < q->n_boxes; i++) taken |= box_overlap(b, q->text[i], 0);
        if (taken) continue;
        q->text[q->n_boxes++] = b;
        wrong_flag(q->s, q->p->wrong, m->step, x, y);
        return;
    }
}
/* Has it been named with a larger one at its place? */
static bool is_named(const RoofPen *q, int i) {
    for (int k = 0; k < i; k++)
        if (one_place(q, k, i)) return true;
    return false;
}
/* Names of a mark and of those at its place behind it, `most` of them. */
static const char *names_at(const RoofPen *q, int i, int most) {
    Str s = str_new(q->a);
    int n = 0;
    const char *seen[MOST_NAMES] = {0};
    for (int k = i; k < q->p->n; k++) {
        bool known = k > i && !one_place(q, i, k);
        for (int j = 0; j < n && j < most; j++) known |= text_same(seen[j], q->p->mark[k].label);
        if (known) continue;
        if (n < most) {
            seen[n] = q->p->mark[k].label;
            str_addf(&s, "%s%s", n ? ", " : "", seen[n]);
        }
        n++;
    }
    if (n > most) str_addf(&s, " +%d", n - most);
    return s.s;
}
/* Where a name of that width stands: in which direction from the mark, and how far away. */
static Box name_box(const RoofPen *q, int i, double w, Pt way, double far) {
    const RoofMark *m = &q->p->mark[i];
    const Pt o = q->at[i];
    const double r = radius(m), rx = m->hexagon ? 1.5 * r : r, h = 0.62 * q->size;
    const double x = o.x + way.x * (rx + 4 + far), y = o.y + way.y * (r + 3 + far),
                 left = way.x > 0.5    ? x
                        : way.x < -0.5 ? x - w
                                       : x - w / 2,
                 mid = way.y > 0.9    ? y + h
                       : way.y < -0.9 ? y - h
                                      : y;
    return text_box(q, left, mid, w);
}
static Line leader_to(const RoofPen *q, int i, Pt way, double far) {
    const RoofMark *m = &q->p->mark[i];
    const Pt o = q->at[i];
    const double r = radius(m), rx = m->hexagon ? 1.5 * r : r;
    return (Line){{o.x + way.x * (rx + 1), o.y + way.y * (r + 1)},
                  {o.x + way.x * (rx + 2 + far), o.y + way.y * (r + 1 + far)}};
}
/* `most`: what its leader may cross. */
static bool try_name(RoofPen *q, int i, int name, int f, int k, int most) {
    const Label *label = &q->label[i];
    const Box b = name_box(q, i, label->w[name], q->way[k], DISTANCE[f]);
    const Line l = leader_to(q, i, q->way[k], DISTANCE[f]);
    const bool led = DISTANCE[f] > 0;
    const int over = led ? roofs_over(q, l) : 0;
    if (over < 0 || over > most || !is_free(q, b, i) || (led && !leads_free(q, l, i))) return false;
    q->name[i] = (Name){label->text[name], b, led, 0, l};
    return true;
}
static void take_place(RoofPen *q, const Name *n) {
    q->text[q->n_boxes++] = n->box;
    if (n->led) add_line(q, n->leader.a, n->leader.b);
}
/* Of 32, the four along the axes first, then those between them, and so on. */
static Pt direction(int k) {
    static const double quarter = 1.5707963267948966;
    static const double part[] = {0, 0.5, 0.25, 0.75, 0.125, 0.875, 0.375, 0.625};
    static const int turn[] = {0, 2, 1, 3}; /* right, left, below, above */
    const double angle = (turn[k % 4] + part[k / 4]) * quarter;
    return (Pt){cos(angle), sin(angle)};
}
/* What mark i may be called, and where it cannot be whatever the other marks do. A box that is not
 * free is no freer when it is wider. */
static void make_label(RoofPen *q, int i, bool number) {
    Label *label = &q->label[i];
    label->shortest = INFINITY;
    for (int n = 0; n < MOST_NAMES; n++) {
        label->text[n] = number ? two_digits : names_at(q, i, MOST_NAMES - n);
        label->w[n] = scene_width(q->s, q->size, REGULAR, label->text[n]);
        label->shortest = fmin(label->shortest, label->w[n]);
    }
    for (int f = 0; f < FARS; f++)
        for (int k = 0; k < WAYS; k++)
            label->taken[f][k] =
                !is_free(q, name_box(q, i, label->shortest, q->way[k], DISTANCE[f]), i);
}
/* Of the names of mark i, where the shortest has room beside those that stand; asked where needed.
 */
typedef enum { NOT_ASKED, HAS_ROOM, HAS_NONE } Room;
typedef struct {
    RoofPen *q;
    int i;
    Room room[FARS][WAYS];
} Round;
static bool has_room(Round *r, int f, int k) {
    const Label *label = &r->q->label[r->i];
    Room *room = &r->room[f][k];
    if (label->taken[f][k]) return false;
    if (*room == NOT_ASKED) {
        const Box b = name_box(r->q, r->i, label->shortest, r->q->way[k], DISTANCE[f]);
        *room = is_clear(r->q, b, r->q->stay_boxes, r->q->stay_lines) ? HAS_ROOM : HAS_NONE;
    }
    return *room == HAS_ROOM;
}
/* Tries all directions at the distances [from, to), first with all names of the place. */
static bool try_round(Round *r, int from, int to, int most) {
    for (int name = 0; name < MOST_NAMES; name++)
        for (int f = from; f < to && f < FARS; f++)
            for (int k = 0; k < WAYS; k++)
                if (has_room(r, f, k) && try_name(r->q, r->i, name, f, k, most)) return true;
    return false;
}
/* A leader over two roofs is hard to follow. */
static bool place_name(RoofPen *q, int i) {
    enum { NEAR = 5, ALL = 16 };
    Round r = {.q = q, .i = i};
    q->name[i] = (Name){0};
    if (!try_round(&r, 0, NEAR, 0) && !try_round(&r, NEAR, ALL, 0) &&
        !try_round(&r, 1, ALL, OVER_ROOF + OVER_RIDGE))
        return false;
    take_place(q, &q->name[i]);
    return true;
}
/* What a mark without a name counts: what it stands for, and that it is one. */
static double weight(const RoofPen *q, int i) { return 0.03 + q->p->mark[i].share; }
/* Names in the order. To its front come numbers without room, then the other numbers, then names
 * without. Returns what those without count. */
static double place_all(RoofPen *q, int *order, int n) {
    enum { CLASSES = 4 };
    int *next = ARENA_ARRAY(q->a, int, n + 1), *class = ARENA_ARRAY(q->a, int, n + 1), k = 0;
    double lacks = 0;
    for (int i = 0; i < n; i++) {
        const bool placed = place_name(q, order[i]);
        class[i] = (q->by_number[order[i]] ? 0 : 2) + placed;
        if (!placed) lacks += weight(q, order[i]);
    }
    for (int c = 0; c < CLASSES; c++)
        for (int i = 0; i < n; i++)
            if (class[i] == c) next[k++] = order[i];
    memcpy(order, next, (size_t)n * sizeof *order);
    return lacks;
}
/* Orders to begin with: large ones first, then from the right, the left: what
 * stands at the outside of a crowd leaves room to those behind it. */
static double rank_in(const RoofPen *q, int start, int i) {
    const Pt at = q->at[i];
    const double by[STARTS] = {0, -at.x, at.x};
    return q->by_number[i] ? -INFINITY : by[start];
}
static void start_order(const RoofPen *q, int start, const int *first, int *order, int n) {
    for (int i = 0; i < n; i++) {
        int k = i;
        for (; k > 0 && rank_in(q, start, order[k - 1]) > rank_in(q, start, first[i]); k--)
            order[k] = order[k - 1];
        order[k] = first[i];
    }
}
/* "00" at one of the marks of a place, where it has room. */
static Name number_at(RoofPen *q, int i) {
    for (int k = i; k < q->p->n; k++) {
        if (k > i && !one_place(q, i, k)) continue;
        make_label(q, k, true);
        if (!place_name(q, k)) continue;
        const Name at = q->name[k];
        if (k > i) q->name[k] = (Name){0};
        return at;
    }
    return (Name){0};
}
/* The round that names most, of marks in the orders of which `first` is one; those without room for
 * a name stand with "00". Returns what they count. */
static double place_most(RoofPen *q, const int *first, int n, Name *best) {
    const int all = q->p->n;
    int *order = ARENA_ARRAY(q->a, int, all + 1);
    double least = INFINITY;
    q->n_boxes = q->stay_boxes, q->n_lines = q->stay_lines;
    for (int k = 0; k < n; k++) make_label(q, first[k], q->by_number[first[k]]);
    for (int round = 0; round < STARTS * ROUNDS && least > 0; round++) {
        if (round % ROUNDS == 0) start_order(q, round / ROUNDS, first, order, n);
        q->n_boxes = q->stay_boxes, q->n_lines = q->stay_lines;
        const double lacks = place_all(q, order, n);
        if (lacks >= least) continue;
        least = lacks;
        memcpy(best, q->name, (size_t)all * sizeof *best);
    }
    q->n_boxes = q->stay_boxes, q->n_lines = q->stay_lines;
    memcpy(q->name, best, (size_t)all * sizeof *best);
    for (int i = 0; i < all; i++)
        if (best[i].text) take_place(q, &best[i]);
    for (int k = 0; k < n; k++) {
        const int i = first[k];
        if (!best[i].text) best[i] = number_at(q, i);
    }
    return least;
}
/* Numbers from left to right, each as near to its mark as it was led there. */
static void number_names(RoofPen *q, const int *first, int n) {
    int number = q->p->first;
    int *order = ARENA_ARRAY(q->a, int, n + 1);
    memset(q->by_number, 0, (size_t)q->p->n * sizeof *q->by_number);
    start_order(q, FROM_LEFT, first, order, n);
    for (int k = 0; k < n; k++) {
        const int i = order[k];
        Name *x = &q->name[i];
        if (!x->text || x->text != two_digits) continue;
        x->number = number++;
        x->text = arena_printf(q->a, "%d", x->number);
        const double spare = x->box.x1 - x->box.x0 - scene_width(q->s, q->size, REGULAR, x->text);
        const double mid = q->at[i].x;
        const bool left = x->box.x1<mid, right = x->box.x0> mid;
        x->box.x0 += left ? spare : right ? 0 : spare / 2;
        x->box.x1 -= right ? spare : left ? 0 : spare / 2;
    }
}
/* Are marks that are seen apart at its place? Its number says them all. */
static bool is_spread(const RoofPen *q, int i) {
    for (int k = i + 1; k < q->p->n; k++)
        if (one_place(q, i, k) && !are_within(q, i, k, CLOSE)) return true;
    return false;
}
/* Places that have one name; those marks that are not at an earlier one. Returns how many. */
static int find_places(const RoofPen *q, int *first) {
    int n = 0;
    for (int i = 0; i < q->p->n; i++)
        if (!is_named(q, i)) first[n++] = i;
    return n;
}
/* What has not even room for a number gets it before others have names, and then marks that touch
 * have one name, as long as more have one or the other. Returns what marks without a name count. */
static double place_names(RoofPen *q) {
    static const double close[ATTEMPTS] = {CLOSE, CLOSE, CLOSE, TOUCH,   TOUCH,
                                           TOUCH, NEXT,  NEXT,  NEAR_BY, NEAR_BY};
    const size_t all = (size_t)q->p->n;
    q->stay_boxes = q->n_boxes, q->stay_lines = q->n_lines;
    int *first = ARENA_ARRAY(q->a, int, all + 1), fewest = q->p->n + 1;
    double least = INFINITY, best_close = CLOSE;
    Name *best = ARENA_ARRAY(q->a, Name, all + 1), *name = ARENA_ARRAY(q->a, Name, all + 1);
    q->label = ARENA_ARRAY(q->a, Label, all + 1);
    q->by_number = ARENA_ARRAY(q->a, bool, all + 1);
    for (int attempt = 0; attempt < ATTEMPTS && fewest > 0; attempt++) {
        if (q->close != close[attempt]) memset(q->by_number, 0, all * sizeof *q->by_number);
        q->close = close[attempt];
        const int n = find_places(q, first);
        for (int k = 0; k < n; k++) q->by_number[first[k]] |= is_spread(q, first[k]);
        memset(q->name, 0, all * sizeof *q->name);
        const double lacks = place_most(q, first, n, name);
        int bare = 0;
        for (int k = 0; k < n; k++) {
            bare += !name[first[k]].text;
            q->by_number[first[k]] |= !name[first[k]].text;
        }
        if (bare >= fewest) continue;
        fewest = bare, least = lacks, best_close = q->close;
        memcpy(best, name, all * sizeof *best);
    }
    q->n_boxes = q->stay_boxes, q->n_lines = q->stay_lines;
    q->close = best_close;
    memcpy(q->name, best, all * sizeof *best);
    number_names(q, first, find_places(q, first));
    for (int i = 0; i < q->p->n; i++)
        if (q->name[i].text) take_place(q, &q->name[i]);
    return least;
}
/* Names of roofs and of marks, of these or of those first. */
static Names name_all(RoofPen q, bool roofs) {
    q.name = ARENA_ARRAY(q.a, Name, q.p->n + 1);
    int without = roofs ? name_roofs(&q) : 0;
    bool under = roofs && name_under(&q, false);
    double lacks = place_names(&q);
    if (!roofs) without = name_roofs(&q);
    if (!under && !roofs) under = name_under(&q, false);
    if (!under) under = name_under(&q, true);
    lacks += without + !under;
    Names all = {.n_words = q.n_words, .name = q.name, .close = q.close, .lacks = lacks};
    memcpy(all.word, q.word, sizeof all.word);
    return all;
}
/* The names of those with that number, each once: "add, RoPE"; of 0: of those without any, or "".
 */
static const char *names_of(const RoofPen *q, const Name *name, int number) {
    Str s = str_new(q->a);
    const char **seen = ARENA_ARRAY(q->a, const char *, q->p->n + 1);
    int n = 0;
    for (int i = 0; i < q->p->n; i++) {
        if (is_named(q, i) || name[i].number != number || (!number && name[i].text)) continue;
        for (int k = i; k < q->p->n; k++) {
            const char *label = q->p->mark[k].label;
            bool known = k > i && !one_place(q, i, k);
            for (int j = 0; j < n; j++) known |= text_same(seen[j], label);
            if (known) continue;
            seen[n++] = label;
            str_addf(&s, "%s%s", s.n ? ", " : "", label);
        }
    }
    return s.n ? s.s : "";
}
/* "1 RMSNorm′; 2 add, RoPE": what has a number; *last gets the highest. */
static const char *numbered(const RoofPen *q, const Name *name, int *last) {
    Str s = str_new(q->a);
    *last = q->p->first - 1;
    for (int i = 0; i < q->p->n; i++)
        if (name[i].number > *last) *last = name[i].number;
    for (int k = q->p->first; k <= *last; k++)
        str_addf(&s, "%s%d %s", s.n ? "; " : "", k, names_of(q, name, k));
    return s.n ? s.s : "";
}
static RoofSays draw_names(RoofPen *q) {
    q->n_roofs = q->n_lines;
    Names all = name_all(*q, true);
    if (all.lacks > 0) {
        const Names other = name_all(*q, false);
        if (other.lacks < all.lacks) all = other;
    }
    scene_begin(q->s, "roof-names", arena_printf(q->a, "%s-roof-names", q->p->id), NULL);
    for (int i = 0; i < all.n_words; i++)
        draw_text(q, all.word[i].box, (TextLook){ALIGN_LEFT, q->size, REGULAR, all.word[i].role},
                  all.word[i].text);
    scene_end(q->s);
    scene_begin(q->s, "names", arena_printf(q->a, "%s-names", q->p->id), NULL);
    for (int i = 0; i < q->p->n; i++) {
        const Name *n = &all.name[i];
        if (n->led) scene_segment(q->s, n->leader.a, n->leader.b, ROLE_FAINT, 1);
    }
    for (int i = 0; i < q->p->n; i++)
        if (all.name[i].text)
            draw_text(q, all.name[i].box, (TextLook){ALIGN_LEFT, q->size, REGULAR, ROLE_INK},
                      all.name[i].text);
    scene_end(q->s);
    q->close = all.close;
    RoofSays says = {.without = names_of(q, all.name, 0)};
    says.numbered = numbered(q, all.name, &says.last);
    for (int i = 0; i < q->p->n; i++) says.shared |= all.name[i].number && is_spread(q, i);
    for (int i = 0; i < q->p->n; i++)
        says.more |= all.name[i].text && strstr(all.name[i].text, " +");
    return says;
}
RoofSays roof_plot(const RoofPlot *p, unsigned *legend) {
    RoofPen q = {
        .p = p, .s = p->s, .a = p->c->arena, .legend = legend, .size = fmax(11.5, p->s->min_size)};
    q.box = (Area){p->at.x + LEFT, p->at.y + HEAD, p->at.w - LEFT, p->at.h - HEAD - BOTTOM};
    q.text = ARENA_ARRAY(q.a, Box, 2 * p->n + 16);
    q.mark = ARENA_ARRAY(q.a, Box, p->n + 1);
    q.at = ARENA_ARRAY(q.a, Pt, p->n + 1);
    set_axes(&q);
    scene_begin(p->s, "plot", p->id, p->head);
    scene_text(p->s, p->at.x, p->at.y + 12, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK},
               scene_fit(p->s, p->head, p->at.w, 13, SEMIBOLD));
    draw_x(&q), draw_y(&q);
    scene_rect(p->s, q.box, 0, (Look){ROLE_NONE, ROLE_FAINT, 1});
    for (; q.n_marks < p->n; q.n_marks++) {
        const RoofMark *m = &p->mark[q.n_marks];
        q.at[q.n_marks] = point(&q, m->x, m->y);
        q.mark[q.n_marks] = mark_box(m, q.at[q.n_marks]);
    }
    for (int k = 0; k < WAYS; k++) q.way[k] = direction(k);
    draw_roofs(&q);
    for (int k = 0; k < 2; k++) /* what is wrong is on top */
        for (int i = 0; i < p->n; i++)
            if (is_wrong(p, &p->mark[i]) == (k == 1)) draw_mark(&q, &p->mark[i]);
    for (int i = 0; i < p->n; i++)
        if (is_wrong(p, &p->mark[i])) draw_flag(&q, &p->mark[i]);
    const RoofSays says = draw_names(&q);
    scene_end(p->s);
    return says;
}
