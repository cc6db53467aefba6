/* View `memory`: per rank class a bar of what lies in memory at the peak, by category, with its
 * formula; below, the live bytes of one rank over the steps with the peak and what is alive then.
 * Says what it counts and what it does not: refuses to add an allowance for workspace or
 * fragmentation. */
#include "render/furniture/wrong.h"
#include "render/memory/bands.h"
#include "base/text.h"
#include "render/memory/compare.h"
#include "render/memory/inks.h"
#include "render/memory/view_bands.h"
#include "render/memory/view_time.h"
#include "render/furniture/views.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_BARS = 12,
    A4_BARS = 8,
    SLIDE_BARS = 6,
    MAX_STEPS = 320,
    MAX_BINS = 150,
    MIN_BINS = 12,
    MAX_ALIVE = 9,
    MEM_NOTES = 4
};

/* A line of the figure: classes that read the same, in every number, as one. */
typedef struct {
    MemClass m; /* the largest of them, with the ranks of all */
    int classes;
    int64_t least; /* total of the smallest */
    bool one_step; /* do all have their peak at the same step? */
} MemRow;

typedef struct {
    const ViewCall *c;
    Scene *s;
    Arena *a;
    PresetKind preset;
    bool narrow;
    double x, w;
    MemClass *cls;
    int n;
    MemRow *row;
    int n_rows;
    MemCourse course, shown; /* shown: what is drawn of it, all or one layer that stands for all */
    int layer, alike;        /* the one; how many others hold the same, 0: all is drawn */
    MemTime time;            /* n: 0 where the course is by step */
    int64_t capacity,
        limit; /* of the machine; as drawn: 0 where the bars would be too short beside it */
    MemWay way[MEM_WAYS]; /* what else the rank could hold, beside a single figure */
    int n_ways;
    const WrongList *wrong;
    int64_t longest, highest; /* bytes of the longest bar and of the peak, the peer's too */
    MemClass *far;            /* of the peer; NULL: there is none */
    int n_far;
    const MemLife **far_alive; /* what lives at its peak */
    int n_far_alive;
} MemPen;

/* ---- beside another plan ---- */

/* Has no rank of the plan beside as much of that kind, as far as is printed? */
static bool kind_unlike(const MemPen *p, const MemClass *m, int kind) {
    if (!p->far || m->bytes[kind] <= 0) return false;
    const char *own = bytes_text(m->bytes[kind], p->a);
    for (int i = 0; i < p->n_far; i++)
        if (!strcmp(own, bytes_text(p->far[i].bytes[kind], p->a))) return false;
    return true;
}
static bool any_unlike(const MemPen *p) {
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < MEM_KINDS; k++)
            if (kind_unlike(p, &p->cls[i], k)) return true;
    return false;
}
/* Does the plan beside hold no such value of that size at its peak? */
static bool alive_unlike(const MemPen *p, const MemLife *l) {
    if (!p->far_alive) return false;
    for (int i = 0; i < p->n_far_alive; i++)
        if (p->far_alive[i]->bytes == l->bytes &&
            !strcmp(p->far_alive[i]->v->shape.name, l->v->shape.name))
            return false;
    return true;
}
static const char *signed_bytes(Arena *a, int64_t bytes) {
    return arena_printf(a, "%s%s", bytes < 0 ? "−" : "+",
                        bytes_text(bytes < 0 ? -bytes : bytes, a));
}
/* "Compared with the other plan: parameters +497 KiB, activations −301 KiB; in all +196 KiB": of
 * the fullest rank of each; "": both hold the same. */
static const char *difference_words(const MemPen *p) {
    const MemClass *own = &p->cls[0], *far = p->far;
    Str s = str_new(p->a);
    for (int k = 0; far && k < MEM_KINDS; k++)
        if (strcmp(bytes_text(own->bytes[k], p->a), bytes_text(far->bytes[k], p->a)) != 0)
            str_addf(&s, "%s %s %s",
                     s.n ? "," : "Compared with the other plan:", memory_inks[k].name,
                     signed_bytes(p->a, own->bytes[k] - far->bytes[k]));
    if (s.n) str_addf(&s, "; in all %s", signed_bytes(p->a, own->total - far->total));
    return s.n ? s.s : "";
}

static const char *ranks_words(MemPen *p, const MemClass *m) {
    long long n = (long long)rankset_count(&m->ranks);
    if (p->c->t->ranks == n && n == 2) return "both ranks";
    if (p->c->t->ranks == n && n > 1) return arena_printf(p->a, "all %lld ranks", n);
    return n == 1 ? arena_printf(p->a, "rank %lld", (long long)m->rank)
                  : arena_printf(p->a, "%lld ranks", n);
}

/* "(4 + 8 + 4) B × 7,500,000,000 parameters": weights, optimizer state and gradients that are so
 * many bytes each; and what else lives at the peak. Gradients that still lie whole, before their
 * reduce-scatter, are no number for each parameter, even where that divides them. */
static void formula(MemPen *p, const MemRow *row, const char **rest, const char **live) {
    const MemClass *m = &row->m;
    int64_t n = m->numbers, top = 0;
    bool even = n && m->bytes[MEM_PARAMS] % n == 0;
    Str each = str_new(p->a);
    int terms = 0;
    for (int k = 0; k < MEM_KINDS; k++) {
        bool part = even && k <= MEM_GRADS && m->bytes[k] && m->bytes[k] % n == 0;
        if (k == MEM_GRADS && part && m->bytes[k] / n != m->bytes[MEM_PARAMS] / n)
            part = m->bytes[k] / n == 4; /* of parameters in half precision */
        if (part) str_addf(&each, "%s%lld", terms++ ? " + " : "", (long long)(m->bytes[k] / n));
        else if (k != MEM_PARAMS && (k != MEM_OPTIMIZER || even)) top += m->bytes[k];
    }
    *rest = terms > 1
                ? arena_printf(p->a, "(%s) B × %s parameters", each.s, memory_thousands(p->a, n))
            : terms == 1
                ? arena_printf(p->a, "%s B × %s parameters", each.s, memory_thousands(p->a, n))
                : arena_printf(p->a, "%s at rest",
                               bytes_text(m->bytes[MEM_PARAMS] + m->bytes[MEM_OPTIMIZER], p->a));
    const char *more = arena_printf(p->a, "+ %s more", bytes_text(top, p->a));
    *live = m->step < 0             ? ""
            : row->least < m->total ? arena_printf(p->a, "%s, to within %s", more,
                                                   bytes_text(m->total - row->least, p->a))
            : !row->one_step        ? arena_printf(p->a, "%s at the peak", more)
                                    : arena_printf(p->a, "%s at step %d", more, m->step);
}

/* As far as is printed. */
static bool same_kinds(const MemPen *p, const MemClass *a, const MemClass *b) {
    bool same = true;
    for (int k = 0; k < MEM_KINDS; k++)
        same = same && !strcmp(bytes_text(a->bytes[k], p->a), bytes_text(b->bytes[k], p->a));
    return same;
}
static bool reads_the_same(const MemPen *p, const MemClass *a, const MemClass *b) {
    return a->numbers == b->numbers && (a->step < 0) == (b->step < 0) &&
           !strcmp(bytes_text(a->total, p->a), bytes_text(b->total, p->a)) && same_kinds(p, a, b);
}
static int by_rank(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}
/* The ranks of n classes. */
static RankSet ranks_of(const MemPen *p, const MemClass *cls, int n) {
    int64_t count = 0, k = 0;
    for (int i = 0; i < n; i++) count += rankset_count(&cls[i].ranks);
    int64_t *list = ARENA_ARRAY(p->a, int64_t, count + 1);
    for (int i = 0; i < n; i++) {
        RankWalk w = {0};
        while (k < count && rankset_next(&cls[i].ranks, &w, &list[k])) k++;
    }
    qsort(list, (size_t)k, sizeof *list, by_rank);
    const RankBox mesh = trace_mesh_box(p->c->t);
    return rankset_on_mesh(p->a, &mesh, list, k);
}
static void fold_rows(MemPen *p) {
    p->row = ARENA_ARRAY(p->a, MemRow, p->n + 1);
    p->n_rows = 0;
    for (int i = 0, k; i < p->n; i = k) {
        MemRow *r = &p->row[p->n_rows++];
        *r = (MemRow){.m = p->cls[i], .one_step = true};
        for (k = i; k < p->n && reads_the_same(p, &p->cls[i], &p->cls[k]); k++)
            r->least = p->cls[k].total, r->one_step &= p->cls[k].step == r->m.step;
        r->classes = k - i;
        if (k - i > 1) r->m.ranks = ranks_of(p, &p->cls[i], k - i);
    }
}

/* ---- bars ---- */

/* Where the bars stand: their left edge, the width of the longest, units per byte; the scale goes
 * from y0 down to y1. */
typedef struct {
    int n;
    double x, w, per_byte, y0, y1;
} Bars;

/* A class as a bar with its top at y. */
static void draw_segments(MemPen *p, const MemClass *m, const Bars *b, double y) {
    const double x = b->x, w = b->w, per_byte = b->per_byte, h = 26;
    double at = x;
    for (int k = 0; k < MEM_KINDS; k++) {
        double part = (double)m->bytes[k] * per_byte;
        if (m->bytes[k] <= 0) continue;
        scene_rect(p->s, (Area){at, y, part, h}, 0,
                   (Look){memory_inks[k].fill, at > x ? ROLE_PAPER : ROLE_NONE, at > x ? 1 : 0});
        at += part;
    }
    scene_rect(p->s, (Area){x, y, fmax(at - x, 1), h}, 0,
               (Look){ROLE_NONE, ROLE_WEIGHT_LINE, 1.25});
    bool over = p->limit && m->total > p->limit;
    double cap = over ? x + (double)p->limit * per_byte : at, end = fmin(at, x + w);
    if (over) scene_hatch(p->s, (Area){cap, y, end - cap, h}, ROLE_PAPER, 7, 2);
    at = x;
    for (int k = 0; k < MEM_KINDS; k++) { /* numbers over the hatch, on patches of their own */
        double part = (double)m->bytes[k] * per_byte, mid = at + part / 2;
        const char *text = bytes_text(m->bytes[k], p->a);
        double half = scene_width(p->s, 12, SEMIBOLD, text) / 2 + 4;
        if (mid - half < cap && mid + half > cap && 2 * half <= cap - at)
            mid = (at + cap) / 2; /* not across the line */
        at += part;
        if (m->bytes[k] <= 0 || 2 * half > part) continue;
        if (mid + half > cap)
            scene_rect(p->s, (Area){mid - half, y + 4, 2 * half, h - 8}, 0,
                       (Look){memory_inks[k].fill, ROLE_NONE, 0})
                ->ground = true;
        scene_text(p->s, mid, y + h / 2 + 4.3,
                   (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, memory_inks[k].text}, text);
    }
    if (over)
        scene_rect(p->s, (Area){cap, y - 2, end - cap, h + 4}, 0,
                   (Look){ROLE_NONE, ROLE_FAIL, 2.5});
    at = x;
    for (int k = 0; k < MEM_KINDS; k++) {
        const double part = (double)m->bytes[k] * per_byte;
        unsigned used = 0; /* the key of this view says it */
        if (kind_unlike(p, m, k))
            figure_unlike(p->s, (Pt){at, y + h + 2}, fmax(part, 2), NOT_SO, &used);
        at += part;
    }
}

static void draw_bar(MemPen *p, const MemRow *row, const Bars *b, double y) {
    const MemClass *m = &row->m;
    const double x = b->x, w = b->w;
    const char *rest, *live, *who = ranks_words(p, m), *set = rankset_text(&m->ranks, p->a);
    Str tip = str_new(p->a);
    formula(p, row, &rest, &live);
    tip_add(&tip, "ranks", set);
    for (int k = 0; k < MEM_KINDS; k++)
        if (m->bytes[k]) tip_add(&tip, memory_inks[k].name, bytes_text(m->bytes[k], p->a));
    scene_begin(p->s, "memory", arena_printf(p->a, "memory-%lld", (long long)m->rank), tip.s);
    bool many = rankset_count(&m->ranks) > 1;
    int64_t over = p->limit ? m->total - p->limit : 0;
    Run total[2] = {{bytes_text(m->total, p->a), BOLD, ROLE_INK, false, false},
                    {arena_printf(p->a, "   +%s over", bytes_text(over, p->a)), SEMIBOLD, ROLE_FAIL,
                     false, false}};
    int n_total = over > 0 ? 2 : 1;
    if (p->narrow) {
        double tw = fonts_width(p->s->fonts, total, n_total, 15) + 16;
        Run run[2] = {
            {who, SEMIBOLD, ROLE_INK, false, false},
            {many ? arena_printf(p->a, "   %s", set) : "", REGULAR, ROLE_SECOND, false, false}};
        run[1].s =
            scene_fit(p->s, run[1].s, fmax(10, p->w - tw - scene_width(p->s, 13, SEMIBOLD, who)),
                      13, REGULAR);
        scene_runs(p->s, (Pt){p->x, y + 4}, ALIGN_LEFT, 13, run, many ? 2 : 1);
        scene_runs(p->s, (Pt){p->x + p->w, y + 4}, ALIGN_RIGHT, 15, total, n_total);
        draw_segments(p, m, b, y + 13);
        scene_text(p->s, p->x, y + 55 + 3 * (p->far != NULL),
                   (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   scene_fit(p->s, arena_printf(p->a, "%s %s", rest, live), p->w, 12, REGULAR));
    } else {
        scene_text(p->s, p->x, y + 11, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK}, who);
        if (many)
            scene_text(p->s, p->x, y + 28, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                       scene_fit(p->s, set, x - p->x - 16, 12, REGULAR));
        draw_segments(p, m, b, y);
        scene_runs(p->s, (Pt){x + w + 26, y + 8}, ALIGN_LEFT, 15, total, n_total);
        if (scene_width(p->s, 12, REGULAR, rest) > 224 && strstr(rest, " parameters"))
            rest = arena_strndup(
                p->a, rest,
                (size_t)(strstr(rest, " parameters") - rest)); /* what else would they be */
        scene_text(p->s, x + w + 26, y + 25, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   scene_fit(p->s, rest, 224, 12, REGULAR));
        scene_text(p->s, x + w + 26, y + 41, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   live);
    }
    scene_end(p->s);
}

enum { WAY_PITCH = 46, WAYS_HEAD = 26 };
/* Another way to keep the same model as a bar with its top at y. */
static void draw_way(MemPen *p, const MemWay *m, const Bars *b, double y) {
    Str tip = str_new(p->a);
    tip_add(&tip, "", arena_printf(p->a, "%s, %s", m->name, m->cut));
    for (int k = 0; k < MEM_KINDS; k++)
        if (m->held.bytes[k])
            tip_add(&tip, memory_inks[k].name, bytes_text(m->held.bytes[k], p->a));
    scene_begin(p->s, "memory", arena_printf(p->a, "way-%s", m->name), tip.s);
    scene_text(p->s, p->x, y + 11, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK}, m->name);
    scene_text(p->s, p->x, y + 28, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               scene_fit(p->s, m->cut, b->x - p->x - 12, 12, REGULAR));
    draw_segments(p, &m->held, b, y);
    const int64_t over = p->limit ? m->held.total - p->limit : 0;
    Run total[2] = {{bytes_text(m->held.total, p->a), BOLD, ROLE_INK, false, false},
                    {arena_printf(p->a, "   +%s over", bytes_text(over, p->a)), SEMIBOLD, ROLE_FAIL,
                     false, false}};
    scene_runs(p->s, (Pt){b->x + b->w + 26, y + 8}, ALIGN_LEFT, 15, total, over > 0 ? 2 : 1);
    scene_text(p->s, b->x + b->w + 26, y + 25, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               scene_fit(p->s, m->formula, 224, 12, REGULAR));
    scene_end(p->s);
}
/* Does ZeRO-3, which gathers, hold most at another step than the rows above it? */
static bool peaks_apart(const MemPen *p) {
    return p->way[MEM_WAYS - 1].held.step != p->way[0].held.step;
}
static const char *ways_words(const MemPen *p) {
    const MemClass *first = &p->way[0].held, *last = &p->way[MEM_WAYS - 1].held;
    return arena_printf(p->a,
                        "The same model with AdamW in float32, by what data parallelism cuts; "
                        "each + %s of live values%s%s",
                        bytes_text(first->bytes[MEM_ACTS], p->a),
                        first->step < 0 ? "" : arena_printf(p->a, " at step %d", first->step),
                        peaks_apart(p)
                            ? arena_printf(p->a, ", ZeRO-3 + %s at step %d",
                                           bytes_text(last->bytes[MEM_ACTS], p->a), last->step)
                            : "");
}

static double draw_key(MemPen *p, double y) {
    double x = p->x;
    bool used[MEM_KINDS] = {false};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < MEM_KINDS; k++) used[k] |= p->cls[i].bytes[k] > 0;
    for (int i = 0; i < p->n_ways; i++)
        for (int k = 0; k < MEM_KINDS; k++) used[k] |= p->way[i].held.bytes[k] > 0;
    for (int i = 0; i < p->course.n_steps; i++) { /* what only the course shows */
        used[MEM_GATHERED] |= p->course.all[i] > p->course.live[i];
        used[MEM_GRADS] |= p->course.grad[i] > 0;
        used[MEM_ACTS] |= p->course.live[i] > p->course.grad[i];
    }
    scene_begin(p->s, "legend", "legend", NULL);
    for (int k = 0; k < MEM_KINDS; k++) {
        if (!used[k]) continue;
        double w = 22 + scene_width(p->s, 12.5, REGULAR, memory_inks[k].name);
        if (x > p->x && x + w > p->x + p->w) x = p->x, y += 22;
        scene_rect(p->s, (Area){x, y - 11, 14, 14}, 0,
                   (Look){memory_inks[k].fill, ROLE_WEIGHT_LINE, 1});
        scene_text(p->s, x + 22, y, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK},
                   memory_inks[k].name);
        x += w + 22;
    }
    if (any_unlike(p)) {
        if (x > p->x && x + figure_key_width(p->s, LEGEND_UNLIKE) > p->x + p->w) x = p->x, y += 22;
        figure_key(p->s, (Pt){x, y - 4}, LEGEND_UNLIKE);
    }
    scene_end(p->s);
    return y + 24;
}

/* A line of the grid; where words stand between the bars it is drawn at the bars alone. */
static void grid_line(MemPen *p, const Bars *b, double x, Role role, double line) {
    for (int i = 0; p->narrow && i < b->n; i++) {
        double y = b->y0 + 6 + 74 * i + 13;
        scene_segment(p->s, (Pt){x, y - 3}, (Pt){x, y + 29}, role, line)->ground = true;
    }
    if (!p->narrow) scene_segment(p->s, (Pt){x, b->y0}, (Pt){x, b->y1}, role, line)->ground = true;
}
/* Grid and ticks under the bars; the grid is painted before them. */
static void draw_scale(MemPen *p, MemScale s, const Bars *b) {
    const double x = b->x, w = b->w, y1 = b->y1;
    for (double v = 0; v <= s.top + s.tick * 1e-6; v += s.tick) {
        double at = x + v * s.bytes * b->per_byte;
        if (at > x + w + 0.5) break;
        grid_line(p, b, at, ROLE_GRID, 1);
        if (p->narrow) scene_segment(p->s, (Pt){at, y1 - 5}, (Pt){at, y1}, ROLE_FAINT, 1);
        scene_textf(p->s, at, y1 + 16,
                    (TextLook){p->narrow && v <= 0 ? ALIGN_LEFT : ALIGN_MIDDLE,
                               11.5 + 0.5 * (p->preset == PRESET_SLIDE), REGULAR, ROLE_TICK},
                    "%g%s", v, v > 0 ? "" : arena_printf(p->a, " %s", s.unit));
    }
    if (!p->limit) return;
    double cap = x + (double)p->limit * b->per_byte;
    grid_line(p, b, cap, ROLE_INK, 1.5);
    const char *words = memory_capacity_words(p->a, p->c->t);
    double half = scene_width(p->s, 12, SEMIBOLD, words) / 2;
    scene_text(p->s, fmin(cap, p->s->w - p->x - half), y1 + 33,
               (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_INK}, words);
}

static double draw_bars(MemPen *p, double y) {
    int most = p->preset == PRESET_SLIDE ? SLIDE_BARS : p->preset == PRESET_A4 ? A4_BARS : MAX_BARS;
    /* of a pipeline the words below take a line more */
    int n = p->n_rows > most ? most - 1 - (p->c->t->schedule != NULL) : p->n_rows, left = p->n;
    double x = p->narrow ? p->x : p->x + 180, w = p->narrow ? p->w - 8 : p->w - 180 - 250;
    double pitch = p->narrow ? 74 : 58;
    int64_t top = p->longest;
    if (p->limit > top) top = p->limit;
    MemScale s = memory_scale(top, p->narrow ? 6 : 10);
    double per_byte = w / fmax(1, (double)top);
    y = draw_key(p, y + 10);
    double own = y + pitch * n - (p->narrow ? 4 : 12), ways = y + pitch * n + WAYS_HEAD;
    double y1 = p->n_ways ? ways + WAY_PITCH * p->n_ways - 4 : own;
    Bars b = {.n = n, .x = x, .w = w, .per_byte = per_byte, .y0 = y - 6, .y1 = y1};
    draw_scale(p, s, &b);
    for (int i = 0; i < n; i++) draw_bar(p, &p->row[i], &b, y + pitch * i);
    if (p->n_ways) {
        const char *words = ways_words(p);
        double tw = scene_width(p->s, 12, REGULAR, words) + 8;
        scene_rect(p->s, (Area){p->x, own + 10, tw, 17}, 0, (Look){ROLE_PAPER, ROLE_NONE, 0})
            ->ground = true; /* over the grid */
        scene_text(p->s, p->x, own + 23, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, words);
    }
    for (int i = 0; i < p->n_ways; i++) draw_way(p, &p->way[i], &b, ways + WAY_PITCH * i);
    y = y1 + (p->limit ? 52 : 34);
    const char *line[3], *differs = difference_words(p);
    const TextColumn column = {p->w, 12.5, REGULAR, 3, NULL};
    const int lines = *differs ? scene_wrap(p->s, differs, column, line) : 0;
    for (int i = 0; i < lines; i++, y += 17)
        scene_text(p->s, p->x, y + 4, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK}, line[i]);
    if (n == p->n_rows) return y;
    for (int i = 0; i < n; i++) left -= p->row[i].classes;
    scene_textf(p->s, p->x, y, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK},
                "and %d more rank classes, from %s down to %s", left,
                bytes_text(p->row[n].m.total, p->a), bytes_text(p->cls[p->n - 1].total, p->a));
    return y + 20;
}

/* ---- the course over the steps ---- */

/* The rectangle of the course; `top` bytes are as high as it. */
typedef struct {
    double x, y, w, h, top;
} Plot;

/* Does the rank hold the same after each of n steps from x on and from y on, as far as there are
 * any? */
static bool same_course(const MemCourse *c, int x, int y, int n) {
    if (x < 0 || y < 0) return false;
    for (int i = 0; i < n && y + i < c->n_steps; i++)
        if (c->live[x + i] != c->live[y + i] || c->grad[x + i] != c->grad[y + i] ||
            c->all[x + i] != c->all[y + i])
            return false;
    return true;
}
/* What is drawn: where the steps are too many, and all layers hold the same, that of the peak. The
 * first step of the first layer, and the last of the last, may lie outside of it. */
static void find_shown(MemPen *p) {
    MemCourse *c = &p->shown;
    MemBand *b;
    *c = p->course;
    if (c->n_steps <= MAX_STEPS || p->time.n) return;
    const int n = memory_bands(p->a, p->c->t, c->n_steps, BAND_LAYERS, &b);
    if (n < 3) return;
    const int steps = b[1].to - b[1].from;
    b[0].from = b[0].to - steps;
    int at = -1;
    for (int i = 0; i < n; i++) {
        if (b[i].first_layer < 0 || b[i].pass != b[0].pass ||
            (i + 1 < n && b[i].to - b[i].from != steps) ||
            !same_course(c, b[1].from, b[i].from, steps))
            return;
        if (c->peak >= b[i].from && c->peak < b[i].from + steps)
            at = b[i].from, p->layer = b[i].first_layer;
    }
    if (at < 0) return;
    c->from = at, c->n_steps = steps, c->peak -= at;
    c->live += at, c->grad += at, c->all += at;
    p->alike = n - 1;
}
/* Steps that are drawn as one: bin b has those from at[b] to before at[b + 1]. Where there are too
 * many, the parts outside layers and the layers themselves are one each, so that layers that are
 * alike look alike; if that is no picture either, so many steps each. */
typedef struct {
    int n, *at;
    const char *words; /* "by step" */
} Bins;
static Bins make_bins(const MemPen *p) {
    int steps = p->shown.n_steps, n = steps <= MAX_STEPS ? steps : MAX_BINS;
    MemBand *layer;
    int layers = steps <= MAX_STEPS ? 0 : memory_bands(p->a, p->c->t, steps, BAND_LAYERS, &layer);
    bool by_layer = layers >= MIN_BINS && layers <= MAX_STEPS;
    if (by_layer) n = layers;
    Bins b = {n, ARENA_ARRAY(p->a, int, n + 1), ", by step"};
    for (int i = 0; i <= n; i++)
        b.at[i] = !by_layer ? (int)((int64_t)i * steps / n) : i < n ? layer[i].from : steps;
    if (p->alike)
        b.words = arena_printf(p->a, ", by step of layer %d; the other %d hold the same", p->layer,
                               p->alike);
    else if (by_layer) b.words = "; the most in each layer";
    else if (n < steps)
        b.words = arena_printf(p->a, "; largest of %d steps each", (steps + n - 1) / n);
    return b;
}

/* The staircase of an array over the steps as an area, binned by maximum. */
static void draw_area(MemPen *p, const int64_t *v, const Plot *plot, Role fill, bool line) {
    const double x = plot->x, y = plot->y, w = plot->w, h = plot->h;
    const Bins bin = make_bins(p);
    int n = p->shown.n_steps, bins = bin.n;
    Pt *pt = ARENA_ARRAY(p->a, Pt, 2 * bins + 2);
    for (int b = 0; b < bins; b++) {
        int64_t max = 0;
        for (int i = bin.at[b]; i < bin.at[b + 1]; i++) max = v[i] > max ? v[i] : max;
        double at = y + h - h * (double)max / plot->top;
        pt[2 * b] = (Pt){x + w * bin.at[b] / n, at};
        pt[2 * b + 1] = (Pt){x + w * bin.at[b + 1] / n, at};
    }
    pt[2 * bins] = (Pt){x + w, y + h};
    pt[2 * bins + 1] = (Pt){x, y + h};
    scene_poly(p->s, pt, 2 * bins + 2, (Look){fill, ROLE_NONE, 0})->ground = true;
    if (line) scene_line(p->s, pt, 2 * bins, ROLE_INK, 1.25)->bend = 0;
}

static bool copies_made(const MemCourse *c) {
    for (int i = 0; i < c->n_steps; i++)
        if (c->all[i] != c->live[i]) return true;
    return false;
}

/* Returns the height of what stands under the ticks. */
static double draw_course(MemPen *p, double x, double y, double w, double h) {
    const MemCourse *c = &p->shown;
    MemScale s = memory_scale(p->highest, 5);
    double top = fmax(1, (double)p->highest), size = p->preset == PRESET_SLIDE ? 12 : 11.5;
    scene_begin(p->s, "course", "course",
                arena_printf(p->a, "live bytes of rank %lld after each step", (long long)c->rank));
    for (double v = 0; v <= s.top + s.tick * 1e-6; v += s.tick) {
        double at = y + h - h * v * s.bytes / top;
        scene_segment(p->s, (Pt){x, at}, (Pt){x + w, at}, ROLE_GRID, 1)->ground = true;
        scene_textf(p->s, x - 6, at + 4, (TextLook){ALIGN_RIGHT, size, REGULAR, ROLE_TICK},
                    "%g%s%s", v, v > 0 ? "" : " ", v > 0 ? "" : s.unit);
    }
    Plot plot = {x, y, w, h, top};
    if (copies_made(c)) draw_area(p, c->all, &plot, ROLE_SHARD_3, false);
    draw_area(p, c->live, &plot, ROLE_LIVE, false);
    if (c->exact) draw_area(p, c->grad, &plot, ROLE_SHARD_2, false);
    draw_area(p, c->all, &plot, ROLE_NONE, true);
    int ticks = c->n_steps < 1000 ? 8 : 6, step = (c->n_steps + ticks - 1) / ticks;
    for (int i = 0; i < c->n_steps; i += step)
        scene_textf(p->s, i ? x + w * (i + 0.5) / c->n_steps : x, y + h + 17,
                    (TextLook){i ? ALIGN_MIDDLE : ALIGN_LEFT, size, REGULAR, ROLE_TICK}, "%s%d",
                    i ? "" : "step ", i + c->from);
    double px = x + w * (c->peak + 0.5) / c->n_steps, py = y + h - h * (double)c->at_peak / top;
    scene_circle(p->s, px, py, 4, (Look){ROLE_PAPER, ROLE_INK, 2});
    /* without, a reader of a backward pass looks for them */
    const char *bare = c->exact && !c->grad[c->peak] && c->grad[c->n_steps - 1]
                           ? ", before the first gradient of a parameter"
                           : "",
               *text = arena_printf(p->a, "peak %s at step %d%s", bytes_text(c->at_peak, p->a),
                                    c->peak + c->from, bare);
    double half = scene_width(p->s, 12.5, SEMIBOLD, text) / 2;
    scene_text(p->s, fmin(fmax(px, x + half), x + w - half), py - 10,
               (TextLook){ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK}, text);
    double under = memory_draw_bands(p->c, p->s, c, (Area){x, y, w, h}, p->preset != PRESET_SLIDE);
    scene_end(p->s);
    return under;
}

/* What others than the values at the peak hold there. */
static const char *beside(const MemCourse *c) {
    return c->turn[c->peak] == MEM_AFTER ? "left by the micro-batches"
                                         : "other micro-batches in flight";
}
/* Why nothing is said of the values at the peak. */
static const char *not_known(const MemCourse *c) {
    return c->n_life ? "not known: how long values are held does not add up to what was recorded"
                     : "not known: the trace lacks how long values are held";
}
/* "after layers.1.feed_forward.w2", "gradient of feed_forward.w2" in a model of one layer, from
 * `at` on in that room; returns its width. */
static double alive_name(MemPen *p, Pt at, const char *name, double room) {
    const TextLook set = {ALIGN_LEFT, 12.5, MEDIUM, ROLE_INK};
    const char *path, *before = words_value_path(p->a, p->c->t, name, &path);
    int layer;
    const char *in = words_find_dim(p->c->t, "layers") == 1 ? words_in_layer(path, &layer) : NULL;
    if (in) path = in;
    room -= scene_width(p->s, set.size, set.weight, before);
    /* where it is too long, without what the shape beside it says as well */
    const size_t n = *before ? text_before(path, ".weight") : 0;
    if (n && scene_width(p->s, set.size, set.weight, path) > room)
        path = arena_strndup(p->a, path, n);
    path = fit_name(p->s, path, room, set.size, set.weight);
    return scene_text(p->s, at.x, at.y, set, arena_printf(p->a, "%s%s", before, path));
}
static double draw_alive(MemPen *p, double x, double y, double w) {
    const MemCourse *c = &p->course;
    const MemLife **l;
    int n = memory_alive(p->a, c, c->peak, &l), most = MAX_ALIVE - (c->flight > 0),
        shown = n > most ? most - 1 : n;
    int64_t rest = c->at_peak - c->flight;
    scene_begin(p->s, "table", "alive", NULL);
    scene_textf(p->s, x, y, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK}, "Alive at step %d",
                c->peak);
    scene_text(p->s, x + w - 76, y, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND},
               "made at step");
    scene_text(p->s, x + w, y, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, "bytes");
    y += 22;
    if (c->flight) {
        scene_text(p->s, x, y, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_SECOND}, beside(c));
        scene_text(p->s, x + w, y, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_INK},
                   bytes_text(c->flight, p->a));
        y += 19;
    }
    for (int i = 0; c->exact && i < shown; i++, y += 19) {
        const TraceLocal *at = words_find_local(&l[i]->v->shape, c->rank);
        const char *bytes = bytes_text(l[i]->bytes, p->a),
                   *from = l[i]->from < 0 ? "input" : arena_printf(p->a, "%d", l[i]->from);
        const char *shape = at ? words_shape(p->a, at->shape, l[i]->v->shape.nd) : "",
                   *name = l[i]->v->shape.name;
        double room = w - 130, sw = scene_width(p->s, 12, REGULAR, shape);
        scene_begin(
            p->s, "value", arena_printf(p->a, "alive-%s", name),
            arena_printf(p->a, "%s %s\nmade at step: %s\nbytes: %s", name, shape, from, bytes));
        double nw = alive_name(p, (Pt){x, y}, name, fmax(90, room - sw - 10));
        unsigned used = 0;
        if (alive_unlike(p, l[i])) figure_unlike(p->s, (Pt){x, y + 3}, nw, NOT_SO, &used);
        if (nw + 10 + sw <= room)
            scene_text(p->s, x + nw + 10, y, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                       shape);
        scene_text(p->s, x + w - 76, y, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, from);
        scene_text(p->s, x + w, y, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_INK}, bytes);
        scene_end(p->s);
        rest -= l[i]->bytes;
    }
    if (c->exact && n > shown) {
        scene_textf(p->s, x, y, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_SECOND}, "and %d more",
                    n - shown);
        scene_text(p->s, x + w, y, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_INK},
                   bytes_text(rest, p->a));
        y += 19;
    }
    if (!c->exact)
        scene_text(p->s, x, y, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, not_known(c)),
            y += 19;
    scene_end(p->s);
    return y;
}

static double draw_any_course(MemPen *p, Area plot) {
    if (!p->time.n) return draw_course(p, plot.x, plot.y, plot.w, plot.h);
    return memory_draw_time(p->c, p->s, &p->time, plot, p->highest);
}
/* Are all ranks one class? */
static bool all_alike(const MemPen *p) {
    const Trace *t = p->c->t;
    for (int i = 0; i < t->n_classes; i++)
        if (rankset_has(&t->classes[i], p->course.rank))
            return rankset_count(&t->classes[i]) == t->ranks;
    return true;
}
/* alone: it has the page to itself. */
static double draw_lower(MemPen *p, double y, bool alone) {
    if (p->preset != PRESET_SLIDE)
        scene_segment(p->s, (Pt){p->x, y}, (Pt){p->x + p->w, y}, ROLE_GRID, 1), y += 14;
    const char *words =
        p->time.n ? "beside what lies at rest, over the modelled time; below what is done"
                  : arena_printf(p->a, "values made so far and still needed%s", make_bins(p).words);
    if (!all_alike(p))
        words = arena_printf(p->a, "%s; %s", words_class(p->a, p->c->t, p->course.rank), words);
    double tw = scene_textf(p->s, p->x, y + 12, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK},
                            "Live bytes of rank %lld", (long long)p->course.rank);
    double room = p->w - tw - 14;
    if (p->alike && scene_width(p->s, 12, REGULAR, words) > room)
        words = arena_printf(p->a, "layer %d; the other %d hold the same", p->layer, p->alike);
    if (scene_width(p->s, 12, REGULAR, words) <= room)
        scene_text(p->s, p->x + tw + 14, y + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   words);
    y += 48;
    bool slide = p->preset == PRESET_SLIDE;
    int notes = p->wrong->n < MEM_NOTES ? p->wrong->n
                                        : MEM_NOTES; /* take room of the slide, as the bands do */
    double left = 46, h = !slide ? 190 : alone ? 190 - 20 * notes : 128, end;
    if (p->narrow) {
        h += draw_any_course(p, (Area){p->x + left, y, p->w - left - 4, h});
        end = draw_alive(p, p->x, y + h + 50, p->w);
    } else {
        double w = slide ? 440 : 560;
        h += draw_any_course(p, (Area){p->x + left, y, w - left, h});
        end = draw_alive(p, p->x + w + 40, y - 10, p->w - w - 40);
    }
    return fmax(end, y + h + 34);
}

/* ---- the page ---- */

/* Are parameters gathered as units, ahead of their use (FSDP)? */
static bool prefetches(const Trace *t) {
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].held) return true;
    return false;
}

/* What experts' rows make of the peak: they count as expected. */
static const char *rows_words(MemPen *p) {
    int64_t run, most;
    if (!memory_rows(p->a, p->c->t, &p->course, &run, &most)) return "";
    return arena_printf(p->a,
                        " Rows of experts count as expected: %s alive on rank %lld at the peak%s, "
                        "%s if as many come as can.",
                        bytes_text(p->course.at_peak, p->a), (long long)p->course.rank,
                        run < 0 ? ""
                                : arena_printf(p->a, ", %s with the run's", bytes_text(run, p->a)),
                        bytes_text(most, p->a));
}
/* Where records of a step have the most of live values and the most of copies, of two moments. */
static const char *apart_words(const MemPen *p) {
    if (!p->time.n || p->time.at_peak >= p->course.at_peak) return "";
    return arena_printf(p->a,
                        " Bars add up the most of live values and the most of gathered parameters "
                        "during a step, which are not there at one time: %s less over time.",
                        bytes_text(p->course.at_peak - p->time.at_peak, p->a));
}
static const char *gathers_words(const MemPen *p) {
    const MemClass *last = &p->way[MEM_WAYS - 1].held;
    if (!last->bytes[MEM_GATHERED]) return "nothing is gathered for use";
    return arena_printf(
        p->a, "only ZeRO-3 gathers for use, as the plan does%s",
        peaks_apart(p) ? arena_printf(p->a, ", and has its peak at step %d", last->step) : "");
}
static const char *counted(MemPen *p) {
    return arena_printf(
        p->a,
        "Counted: parameters as they lie at rest%s, and every value from the step that makes it to "
        "the last that reads it%s%s%s; all-reduces and clipping work in place. Not counted: "
        "buffers of collectives, workspace of kernels, fragmentation.%s%s%s%s%s",
        p->cls[0].bytes[MEM_OPTIMIZER] ? ", the optimizer's state (updated in place)" : "",
        !copies_made(&p->course) ? ""
        : prefetches(p->c->t)
            ? arena_printf(p->a, ", gathered units of parameters whole and %d ahead",
                           TRACE_PREFETCH)
            : ", copies of parameters gathered for use too",
        words_find_dim(p->c->t, "microbatches") > 1
            ? ", gradients from the beginning on, added to in place"
            : "",
        p->c->t->schedule
            ? ", of every micro-batch in flight: at each step the most there is in any of them"
            : "",
        !p->n_ways ? ""
                   : arena_printf(p->a,
                                  " Under DDP and ZeRO gradients are there all the time, as "
                                  "buckets keep them, so the peak is at step %d, which has most "
                                  "live values beside gradients; %s%s.",
                                  p->way[0].held.step, gathers_words(p), p->way[0].experts),
        apart_words(p), rows_words(p), p->capacity ? " " : "",
        p->capacity
            ? arena_printf(p->a, "%s.", words_capital(p->a, memory_capacity_words(p->a, p->c->t)))
            : "");
}

/* Values of one name at the peak, in all layers, with their gradients. */
typedef struct {
    const TraceValue *own, *grad; /* one of them that is no gradient, one that is; NULL: none */
    int64_t bytes;
    int grads;
} MemGroup;
/* What the list calls a value, or that which it is a gradient of. */
static const char *called(const MemPen *p, const TraceValue *v) {
    return v->subject.of ? words_value(p->a, p->c->t, v->subject.of) : "";
}
/* The group that holds most. */
static MemGroup largest_group(const MemPen *p) {
    const MemCourse *c = &p->course;
    const MemLife **l;
    MemGroup best = {0};
    int n = memory_alive(p->a, c, c->peak, &l);
    const char **name = ARENA_ARRAY(p->a, const char *, n + 1);
    for (int i = 0; i < n; i++) name[i] = called(p, l[i]->v);
    for (int i = 0; i < n; i++) {
        MemGroup g = {0};
        for (int k = 0; k < n; k++) {
            if (l[k]->grad || l[k]->copy || strcmp(name[k], name[i])) continue;
            bool grad = l[k]->v->subject.role == OF_GRADIENT;
            *(grad ? &g.grad : &g.own) = l[k]->v;
            g.bytes += l[k]->bytes, g.grads += grad;
        }
        if (*name[i] && g.bytes > best.bytes) best = g;
    }
    return best;
}
/* "values after output and their gradients", "attn_context", "gradient of attn_context": as the
 * list of what is alive calls them. */
static const char *group_words(MemPen *p, const MemGroup *g) {
    const char *end = g->grads > 1 ? "s" : "", *of = (g->own ? g->own : g->grad)->shape.name,
               *name = words_value(p->a, p->c->t, of);
    static const char gradient[] = "gradient";
    if (!g->own) return arena_printf(p->a, "%s%s%s", gradient, end, name + sizeof gradient - 1);
    const ValueName k = words_value_name(p->a, p->c->t, of);
    const bool after = k.after && !k.gradient;
    return arena_printf(p->a, "%s%s%s%s", after ? "values " : "", name,
                        !g->grads ? ""
                        : after   ? " and their gradient"
                                  : " and its gradient",
                        g->grads ? end : "");
}
/* What the live values of the peak are: "124 GiB of it other micro-batches in flight", "1.47 GiB of
 * it values after output and their gradients", where that is a third of them; else NULL. */
static const char *live_words(MemPen *p) {
    const MemCourse *c = &p->course;
    if (!c->exact || !rankset_has(&p->cls[0].ranks, c->rank)) return NULL;
    if (2 * c->flight > p->cls[0].bytes[MEM_ACTS])
        return arena_printf(p->a, "%s of it %s", bytes_text(c->flight, p->a), beside(c));
    MemGroup g = largest_group(p);
    if (3 * g.bytes < p->cls[0].bytes[MEM_ACTS]) return NULL;
    return arena_printf(p->a, "%s of it %s", bytes_text(g.bytes, p->a), group_words(p, &g));
}

/* Who holds as much as the fullest class does, as far as is printed. *alike: all of them in the
 * same kinds. */
static const char *fullest(const MemPen *p, bool *alike) {
    enum { NAMED = 24 }; /* characters of the ranks' names */
    const MemClass *m = &p->cls[0];
    int k = 0; /* classes, of which the fullest come first */
    *alike = true;
    for (; k < p->n; k++) {
        if (strcmp(bytes_text(p->cls[k].total, p->a), bytes_text(m->total, p->a)) != 0) break;
        *alike = *alike && same_kinds(p, &p->cls[k], m);
    }
    const RankSet all = ranks_of(p, p->cls, k);
    const int64_t n = rankset_count(&all);
    if (p->c->t->ranks == 1) return "The rank";
    if (p->n == 1 || n == p->c->t->ranks)
        return arena_printf(p->a, "Each of %lld ranks", (long long)p->c->t->ranks);
    if (n == 1) return arena_printf(p->a, "The fullest rank, %lld,", (long long)m->rank);
    const char *names = rankset_text(&all, p->a);
    /* by coordinates ("dp=0:63 pp=0") they would read like the mesh */
    bool named = strlen(names) <= NAMED && !strchr(names, '=');
    return arena_printf(p->a, "Each of the %lld fullest ranks%s", (long long)n,
                        named ? arena_printf(p->a, " (%s)", names) : "");
}
static const char *headline(MemPen *p) {
    const MemClass *m = &p->cls[0];
    bool alike;
    const char *total = bytes_text(m->total, p->a), *who = fullest(p, &alike);
    int top = 0;
    for (int k = 1; k < MEM_KINDS; k++)
        if (m->bytes[k] > m->bytes[top]) top = k;
    if (p->capacity && m->total > p->capacity)
        return arena_printf(p->a, "%s holds %s at the peak and does not fit: +%s", who, total,
                            bytes_text(m->total - p->capacity, p->a));
    if (!alike) return arena_printf(p->a, "%s holds %s at the peak", who, total);
    const char *live = top == MEM_ACTS ? live_words(p) : NULL;
    if (live) return arena_printf(p->a, "%s holds %s at the peak, %s", who, total, live);
    Str most = str_new(p->a); /* several where they are as large as each other, as printed */
    int n = 0, left = 0;
    bool large[MEM_KINDS];
    for (int k = 0; k < MEM_KINDS; k++) {
        large[k] = !strcmp(bytes_text(m->bytes[k], p->a), bytes_text(m->bytes[top], p->a));
        left += large[k];
    }
    for (int k = 0; k < MEM_KINDS; k++)
        if (large[k])
            str_addf(&most, "%s%s", n++ ? n == left ? " and " : ", " : "", memory_inks[k].name);
    return arena_printf(p->a, "%s holds %s at the peak, %s %s", who, total,
                        left > 1                       ? "its largest parts"
                        : 2 * m->bytes[top] > m->total ? "most of it"
                                                       : "its largest part",
                        most.s);
}

/* upper, lower: which halves are on the page. */
static Scene *memory_page(MemPen *p, bool upper, bool lower) {
    const Trace *t = p->c->t;
    Scene *s = p->s = figure_new(p->c, "memory", p->preset);
    const char *model = words_model(p->a, t),
               *pass = arena_printf(p->a, "pass %s", pass_words[t->pass]);
    const char *sub[] = {model ? model : "",
                         words_layers(p->a, t),
                         words_data(p->a, t),
                         pass,
                         words_mesh(p->a, t),
                         all_alike(p) ? words_class(p->a, t, p->course.rank) : "",
                         NULL};
    double y = figure_head(s, p->preset, headline(p), sub, 0) + 6;
    if (p->wrong->n) y = wrong_notes(s, p->wrong, p->x, p->w, y - 4, MEM_NOTES) + 8;
    if (upper) y = draw_bars(p, y + 6);
    if (lower) y = draw_lower(p, y + (upper ? 0 : 10), !upper);
    y = figure_foot(s, p->c, (Band){p->x, p->w, y + 2}, counted(p), NULL);
    s->desc = arena_printf(p->a, "%s. %s", headline(p), counted(p));
    figure_page(s, p->preset, y);
    return s;
}

static int64_t peak_of(const MemCourse *c, const MemTime *m) {
    return m->n ? m->at_peak : c->at_peak;
}
/* Two figures side by side have one scale, so that lengths and heights compare; and each knows what
 * the other has. */
static void scale_as_peer(MemPen *p) {
    p->longest = p->cls[0].total;
    p->highest = peak_of(&p->course, &p->time);
    if (!p->c->peer) return;
    MemClass *cls;
    MemCourse course;
    MemTime time;
    int n = memory_classes(p->a, p->c->peer->t, &cls);
    int64_t rank = memory_rank(p->c->o->rank, cls, n);
    if (n == 0 || !memory_course(p->a, p->c->peer->t, rank, &course)) return;
    p->far = cls, p->n_far = n;
    if (course.exact && p->course.exact)
        p->n_far_alive = memory_alive(p->a, &course, course.peak, &p->far_alive);
    if (cls[0].total > p->longest) p->longest = cls[0].total;
    memory_time(p->a, p->c->peer->t, &course, &time);
    if (peak_of(&course, &time) > p->highest) p->highest = peak_of(&course, &time);
}

/* The capacity is drawn where the bars are not too short to read beside it; several are there to be
 * compared. */
static void set_limit(MemPen *p) {
    const int most = p->n_ways || p->n_rows > 1 || p->far ? 3 : 20;
    p->limit = p->capacity > most * p->longest ? 0 : p->capacity;
}

static bool prepare(const ViewCall *c, MemPen *p) {
    *p = (MemPen){.c = c, .a = c->arena, .wrong = wrong_find(c->arena, c->t, NULL, NULL)};
    if (c->o->rank >= c->t->ranks) {
        diag_error(c->d, "E0212", diag_nowhere, ranks_span(0, c->t->ranks - 1, c->arena),
                   "the trace has no rank %lld", (long long)c->o->rank);
        return false;
    }
    p->n = memory_classes(c->arena, c->t, &p->cls);
    fold_rows(p);
    int64_t rank = memory_rank(c->o->rank, p->cls, p->n);
    if (p->n == 0 || !memory_course(c->arena, c->t, rank, &p->course)) {
        diag_error(c->d, "E0211", diag_nowhere,
                   "draw it from the plan: `shardproof draw PLAN --view memory`",
                   "nothing to draw in view 'memory': the trace has no records of memory");
        return false;
    }
    memory_time(c->arena, c->t, &p->course, &p->time);
    find_shown(p);
    scale_as_peer(p);
    p->capacity = memory_capacity(c->t);
    set_limit(p);
    return true;
}

static bool readable(const MemPen *p, const Scene *s) {
    return p->preset == PRESET_SLIDE ? s->scale >= 1
                                     : p->preset != PRESET_A4 || s->scale * 11.5 >= 7;
}
/* One page, or one for the bars and one for the course. */
static int draw_pages(MemPen *p, Scene **page) {
    page[0] = memory_page(p, true, true);
    if (readable(p, page[0])) return 1;
    page[0] = memory_page(p, true, false);
    page[1] = memory_page(p, false, true);
    return 2;
}

int view_memory(const ViewCall *c, Scene **page) {
    MemPen p;
    if (!prepare(c, &p)) return 0;
    furniture_preset(c->o->preset, &p.preset);
    p.x = presets[p.preset].margin;
    p.w = presets[p.preset].w - 2 * p.x;
    p.narrow = p.preset == PRESET_COLUMN;
    const int64_t longest = p.longest;
    /* narrow pages and figures that stand beside others have no room for what is not the plan's */
    if (p.n <= (p.preset == PRESET_SLIDE ? 2 : 4) && !p.narrow && !c->peer)
        p.n_ways = memory_ways(c->arena, c->t, p.cls, p.way);
    for (int i = 0; i < p.n_ways; i++)
        if (p.way[i].held.total > p.longest) p.longest = p.way[i].held.total;
    set_limit(&p);
    int n = draw_pages(&p, page);
    if (!p.n_ways || readable(&p, page[0])) return n;
    p.n_ways = 0, p.longest = longest; /* they do not fit */
    set_limit(&p);
    return draw_pages(&p, page);
}

/* A line of what is alive: a value, or the same one of several layers, each as large. */
typedef struct {
    const char *before, *path;
    int from, layers, last; /* the step that makes it; how many layers; the last of them */
    int64_t bytes, each;
} AliveRow;
/* "layers.*.resid_attn" of "layers.0.resid_attn"; NULL: it is no layer's. */
static const char *of_layers(Arena *a, const char *path) {
    int layer;
    const char *in = words_in_layer(path, &layer);
    return in ? arena_printf(a, "layers.*.%s", in) : NULL;
}
/* The rows of l[0..n) in their order; where three layers or more hold the same, these are one. */
static int alive_rows(MemPen *p, const MemLife *const *l, int n, AliveRow **out) {
    enum { FEW = 2 }; /* a line for each says more */
    AliveRow *row = ARENA_ARRAY(p->a, AliveRow, n + 1);
    int *kind = ARENA_ARRAY(p->a, int, n + 1), n_rows = 0, n_kinds = 0;
    AliveRow *many = ARENA_ARRAY(p->a, AliveRow, n + 1);
    for (int i = 0; i < n; i++) {
        const int layer = l[i]->v->layer;
        AliveRow r = {.from = l[i]->from,
                      .layers = 1,
                      .last = layer,
                      .bytes = l[i]->bytes,
                      .each = l[i]->bytes};
        r.before = words_value_path(p->a, p->c->t, l[i]->v->shape.name, &r.path);
        row[i] = r;
        const char *path = of_layers(p->a, r.path);
        int k = path ? 0 : n_kinds;
        while (k < n_kinds && (many[k].each != r.each || many[k].last == layer ||
                               strcmp(many[k].path, path) || strcmp(many[k].before, r.before)))
            k++;
        if (k == n_kinds) {
            many[n_kinds] = r;
            many[n_kinds++].path = path ? path : r.path;
        } else {
            many[k].layers++, many[k].last = layer;
            many[k].bytes += r.bytes;
        }
        kind[i] = k;
    }
    bool *told = ARENA_ARRAY(p->a, bool, n_kinds + 1);
    for (int i = 0; i < n; i++) {
        if (many[kind[i]].layers <= FEW) row[n_rows++] = row[i];
        else if (!told[kind[i]]) row[n_rows++] = many[kind[i]];
        told[kind[i]] = true;
    }
    *out = row;
    return n_rows;
}

/* What is alive at the peak, in lines of w columns. */
static void alive_text(Str *s, MemPen *p, int w) {
    const int name = w - 22; /* step and bytes behind it */
    const MemLife **l;
    AliveRow *row;
    int n = memory_alive(p->a, &p->course, p->course.peak, &l);
    str_addf(s, "\nRank %lld, alive at the peak, step %d: %s\n", (long long)p->course.rank,
             p->course.peak, bytes_text(p->course.at_peak, p->a));
    if (p->course.flight) {
        words_pad(s, arena_printf(p->a, "  %s", beside(&p->course)), name + 10, false);
        words_pad(s, bytes_text(p->course.flight, p->a), 11, true);
        words_end_line(s);
    }
    int n_rows = p->course.exact ? alive_rows(p, l, n, &row) : 0;
    for (int i = 0; i < n_rows; i++) {
        const AliveRow *r = &row[i];
        const bool one = r->layers == 1;
        const char *path = words_fit_name(p->a, r->path, name - 3 - words_columns(r->before));
        words_pad(s, arena_printf(p->a, "  %s%s", r->before, path), name, false);
        words_pad(s,
                  !one          ? arena_printf(p->a, "%d layers", r->layers)
                  : r->from < 0 ? "input"
                                : arena_printf(p->a, "step %d", r->from),
                  10, false);
        words_pad(s, bytes_text(r->bytes, p->a), 11, true);
        words_end_line(s);
    }
    if (!p->course.exact) str_addf(s, "  %s\n", not_known(&p->course));
}

const char *view_memory_text(const ViewCall *c) {
    MemPen p;
    Role role;
    int w = furniture_columns(c->o);
    Str s = str_new(c->arena);
    if (!prepare(c, &p)) return NULL;
    words_paragraph(&s, "", headline(&p), w);
    wrong_text(&s, p.wrong, w);
    str_add(&s, "\n");
    int left = p.n;
    for (int i = 0; i < p.n_rows && i < MAX_BARS; i++) {
        const char *rest, *live;
        const MemClass *m = &p.row[i].m;
        left -= p.row[i].classes;
        formula(&p, &p.row[i], &rest, &live);
        words_pad(&s, ranks_words(&p, m), 18, false);
        words_pad(&s, bytes_text(m->total, p.a), 10, true);
        words_end_line(&s);
        words_labelled(&s, "  = ", arena_printf(p.a, "%s %s", rest, live), w);
        for (int k = 0; k < MEM_KINDS; k++) {
            if (!m->bytes[k]) continue;
            words_pad(&s, arena_printf(p.a, "  %s", memory_inks[k].name), 30, false);
            words_pad(&s, bytes_text(m->bytes[k], p.a), 12, true);
            words_end_line(&s);
        }
    }
    if (left) str_addf(&s, "and %d more rank classes\n", left);
    p.n_ways = p.n <= 4 ? memory_ways(p.a, c->t, p.cls, p.way) : 0;
    if (p.n_ways) str_add(&s, "\n"), words_paragraph(&s, "", ways_words(&p), w);
    for (int i = 0; i < p.n_ways; i++) {
        words_pad(&s, p.way[i].name, 18, false);
        words_pad(&s, bytes_text(p.way[i].held.total, p.a), 10, true);
        words_end_line(&s);
        words_labelled(&s, "  = ", arena_printf(p.a, "%s, %s", p.way[i].formula, p.way[i].cut), w);
    }
    alive_text(&s, &p, w);
    str_add(&s, "\n");
    words_paragraph(&s, "", counted(&p), w);
    words_paragraph(&s, "", words_stamp(p.a, c->t, &role), w);
    return s.s;
}
