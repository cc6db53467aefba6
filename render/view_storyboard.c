/* View `storyboard`: one collective of the plan step by step as a ring, on small numbers: what every rank holds, which
 * ranks are in a sum, what moves next, how much was sent so far. The numbers are the plan's own if the trace holds
 * them, else invented, and the picture says which. Refuses collectives that are no ring here (all-to-all, send). */
#include "render/ring.h"
#include "render/views.h"
#include <math.h>
#include <string.h>

enum { FEW = 4, A4_ROOM = 580 };

typedef struct {
    const ViewCall *c;
    Scene *s;
    Arena *a;
    PresetKind preset;
    const TraceCollective *coll;
    RingKind kind;
    int n;        /* ranks drawn */
    int64_t size; /* of the group */
    bool invented;
    double x, w, cell, high, label, gap;
    Ring frame[2 * RING_MAX];
    int frames;
} RingPen;

/* ---- what to show ---- */

static bool ring_kind(const char *op, RingKind *k) {
    static const struct {
        const char *op;
        RingKind kind;
    } row[] = {{"all_gather", RING_GATHER}, {"reduce_scatter", RING_SCATTER}, {"all_reduce", RING_REDUCE}};
    for (size_t i = 0; op && i < sizeof row / sizeof *row; i++)
        if (!strcmp(op, row[i].op)) {
            *k = row[i].kind;
            return true;
        }
    return false;
}

/* --part names an op ("all-gather" or "all_gather") or a value; without it the first collective that is a ring. */
static const TraceCollective *choose(const ViewCall *c, const char *part) {
    RingKind k;
    char *want = arena_strdup(c->arena, part ? part : "");
    for (char *p = want; *p; p++) *p = *p == '-' ? '_' : *p;
    for (int i = 0; i < c->t->n_collectives; i++) {
        const TraceCollective *x = &c->t->collectives[i];
        if (!ring_kind(x->op, &k) || groups_size(&x->groups) < 2) continue;
        if (!part || !strcmp(want, x->op) || (x->value && !strcmp(part, x->value))) return x;
    }
    return NULL;
}

static const char *what_there_is(const ViewCall *c) {
    RingKind k;
    Str s = str_new(c->arena);
    for (int i = 0; i < c->t->n_collectives; i++) {
        const char *op = c->t->collectives[i].op;
        if (!ring_kind(op, &k) || strstr(s.s ? s.s : "", op)) continue;
        str_addf(&s, "%s%s", s.n ? ", " : "--part ", op);
    }
    return s.n ? s.s : NULL;
}

/* The first element of each rank's part of the gathered value, if the trace has the numbers. */
static bool own_numbers(const RingPen *p, double number[RING_MAX][RING_MAX]) {
    const TraceValue *v = words_find_value(p->c->t, p->coll->value, p->coll->step);
    int d = p->coll->dim;
    if (p->kind != RING_GATHER || !v || v->n_numbers <= 0 || d < 0 || d >= v->shape.nd) return false;
    int64_t stride = 1, size = v->shape.global_shape[d];
    for (int i = d + 1; i < v->shape.nd; i++) stride *= v->shape.global_shape[i];
    for (int i = 0; i < p->n; i++) {
        int64_t at = size / p->size * i * stride;
        if (size % p->size || at >= v->n_numbers || !isfinite(v->numbers[at])) return false;
        number[i][i] = v->numbers[at];
    }
    return true;
}

/* What rank r has in chunk c: small, and with sums that differ. */
static const int invented[RING_MAX][RING_MAX] = {
    {1, 2, 3, 4, 5, 6, 7, 8}, {5, 6, 7, 8, 9, 1, 2, 3}, {2, 4, 6, 8, 1, 3, 5, 7}, {3, 1, 4, 1, 5, 9, 2, 6},
    {9, 7, 5, 3, 2, 4, 6, 8}, {2, 7, 1, 8, 2, 8, 1, 8}, {6, 5, 4, 3, 2, 1, 8, 7}, {1, 4, 1, 4, 2, 1, 3, 5}};

static void make_frames(RingPen *p) {
    double number[RING_MAX][RING_MAX] = {{0}};
    for (int c = 0; c < p->n; c++)
        for (int r = 0; r < p->n; r++) number[c][r] = invented[p->kind == RING_GATHER ? 1 : r][c];
    p->invented = !own_numbers(p, number);
    Ring r;
    ring_start(&r, p->kind, p->n, p->coll->reduce && !strcmp(p->coll->reduce, "max"), number);
    do p->frame[p->frames++] = r;
    while (ring_next(&r));
}

static bool prepare(const ViewCall *c, RingPen *p) {
    *p = (RingPen){.c = c, .a = c->arena, .coll = choose(c, c->o->part)};
    if (!p->coll) {
        diag_error(c->d, "E0211", (Loc){0}, what_there_is(c),
                   "nothing to draw in view 'storyboard': the trace has no %s",
                   c->o->part ? arena_printf(c->arena, "ring collective '%s'", c->o->part)
                              : "all-gather, reduce-scatter or all-reduce");
        return false;
    }
    ring_kind(p->coll->op, &p->kind);
    p->size = groups_size(&p->coll->groups);
    p->n = p->size > RING_MAX ? FEW : (int)p->size;
    make_frames(p);
    return true;
}

/* ---- words ---- */

static const char *frame_name(RingPen *p, const Ring *f) {
    if (f->step == 0) return "Start";
    if (f->step == f->steps) return arena_printf(p->a, "After step %d: done", f->step);
    bool half = p->kind == RING_REDUCE && f->step == p->n - 1;
    return arena_printf(p->a, "After step %d%s", f->step, half ? ": sums" : "");
}
static const char *sent_words(RingPen *p, const Ring *f) {
    if (f->step == 0) return p->kind == RING_GATHER ? "each rank: one chunk, M/n" : "each rank: all of M";
    int a = f->step, b = p->n;
    for (int d = 2; d <= b; d++)
        while (a % d == 0 && b % d == 0) a /= d, b /= d;
    return b == 1 ? arena_printf(p->a, "sent %sM per rank", a == 1 ? "" : arena_printf(p->a, "%d ", a))
                  : arena_printf(p->a, "sent %d/%d of M per rank", a, b);
}
/* "1+2+3", or "1→3" where that is too long. */
static const char *terms_words(RingPen *p, const RingCell *c, bool shorter) {
    Str s = str_new(p->a);
    if (shorter) return arena_printf(p->a, "%d→%d", c->first, (c->first + c->terms - 1) % p->n);
    for (int i = 0; i < c->terms; i++) str_addf(&s, "%s%d", i ? "+" : "", (c->first + i) % p->n);
    return s.s;
}
static const char *headline(RingPen *p) {
    const CollWord *w = words_coll(p->coll->op);
    return arena_printf(p->a, "Ring %s, %d ranks, step by step", w ? w->name : p->coll->op, p->n);
}
static const char *story(RingPen *p) {
    static const char *const text[] = {
        [RING_GATHER] =
            "Each rank starts with one chunk and ends with all. In every step all ranks send one chunk to the "
            "right at the same time.",
        [RING_SCATTER] =
            "Each rank starts with %d chunks and ends with the finished %s of one. In every step all ranks send one "
            "chunk to the right at the same time.",
        [RING_REDUCE] = "First a ReduceScatter (%d chunks, every rank finishes one %s), then an AllGather of the "
                        "results. In each step all ranks send a chunk to the right."};
    const char *t = text[p->kind], *what = p->frame[0].max ? "maximum" : "sum";
    if (p->kind == RING_GATHER) return t;
    const char *at = strstr(t, "%d"), *end = strstr(t, "%s");
    return arena_printf(p->a, "%.*s%d%.*s%s%s", (int)(at - t), t, p->n, (int)(end - at - 2), at + 2, what, end + 2);
}
static const char *plan_words(RingPen *p) {
    const TraceCollective *c = p->coll;
    const char *more =
        p->size > p->n ? arena_printf(p->a, ", of whose %lld ranks %d are drawn", (long long)p->size, p->n) : "";
    int64_t m = p->kind == RING_GATHER ? c->bytes_out : c->bytes_in;
    const char *steps = p->kind == RING_REDUCE ? "2(n−1)" : "n−1";
    Str s = str_new(p->a);
    str_addf(&s, "In this plan: %s over %s%s, M = %s, n = %lld: %s = %d steps, %s sent per rank.",
             c->value ? c->value : "a value", words_axis_list(p->a, p->c->t, c->axis), more, bytes_text(m, p->a),
             (long long)p->size, steps, ring_steps(p->kind, (int)(p->size < 1 << 20 ? p->size : 1 << 20)),
             bytes_text(c->bytes_sent, p->a));
    for (int i = 0; i < p->c->t->n_events; i++) {
        const TraceEvent *e = &p->c->t->events[i];
        if (e->step != c->step || !e->formula) continue;
        str_addf(&s, " Time, modelled: %s = %s.", e->formula, time_text(e->end - e->start, p->a));
        break;
    }
    str_add(&s, p->kind == RING_REDUCE ? "" : " AllReduce = ReduceScatter, then AllGather of the results.");
    str_addf(&s, " %s",
             p->invented ? "The small integers are invented." : "The numbers are the first element of each part.");
    return s.s;
}

/* ---- frames ---- */

static void draw_cell(RingPen *p, const RingCell *k, double x, double y) {
    Scene *s = p->s;
    double w = p->cell, h = p->high;
    bool sum = p->kind != RING_GATHER && k->terms > 1, fresh = k->done && k->fresh && p->kind == RING_GATHER;
    scene_rect(s, x, y, w, h, 0, ROLE_PAPER, ROLE_FAINT, 1.25);
    if (!k->held) return;
    bool dark = k->done && !fresh, part = !k->done && !k->stale && sum;
    if (fresh) scene_rect(s, x, y, w, h, 0, ROLE_PART_SUM, ROLE_FAINT, 1.25);
    if (part) {
        double fill = h * k->terms / p->n;
        scene_rect(s, x, y + h - fill, w, fill, 0, ROLE_PART_SUM, ROLE_NONE, 0);
        scene_rect(s, x, y, w, h, 0, ROLE_NONE, ROLE_FAINT, 1.25);
    }
    if (dark) scene_rect(s, x, y, w, h, 0, ROLE_SHARD, ROLE_INK, 2);
    Role ink = dark ? ROLE_SHARD_TEXT : k->stale ? ROLE_SECOND : ROLE_INK;
    double big = p->preset == PRESET_SLIDE ? 17 : 16, small = p->preset == PRESET_SLIDE ? 12 : 11.5;
    scene_text(s, x + w / 2,
               y + h * (p->kind == RING_GATHER ? 0.62
                        : h < 40               ? 0.44
                                               : 0.48),
               ALIGN_MIDDLE, big, k->stale ? REGULAR : SEMIBOLD, ink,
               scene_fit(s, arena_printf(p->a, "%.4g", k->value), w - 4, big, SEMIBOLD));
    if (!sum || k->stale) return;
    const char *terms = terms_words(p, k, false);
    if (scene_width(s, small, REGULAR, terms) > w - 3.5) terms = terms_words(p, k, true);
    scene_text(s, x + w / 2, y + h - (h < 40 ? 5 : 7), ALIGN_MIDDLE, small, REGULAR, ink, terms);
}

/* A chunk's way to the next rank: a short arrow over the border; from the last rank out at the right and in at the
 * left. */
static void draw_send(RingPen *p, double x0, int chunk, int rank, double y) {
    double at = y + chunk * p->high + 11, reach = p->cell > 50 ? 12 : 10;
    double edge = x0 + (rank + 1) * p->cell;
    Pt go[2] = {{edge - reach, at}, {edge + reach, at}}, in[2] = {{x0 - reach, at}, {x0 + reach, at}};
    scene_arrow(p->s, go, 2, ROLE_COLL_LINE, 2.2, false, false, -1);
    if (rank == p->n - 1) scene_arrow(p->s, in, 2, ROLE_COLL_LINE, 2.2, false, false, -1);
}

/* Frames in one line share the names of chunks at its left; arrows reach out at both sides of a frame. */
static double frame_width(const RingPen *p) { return p->n * p->cell + p->gap; }
static double line_width(const RingPen *p, int n) { return p->label + n * frame_width(p) - p->gap + 14; }
static double frame_height(const RingPen *p) { return 50 + p->n * p->high + 44; }

static void draw_frame(RingPen *p, const Ring *f, double x0, double y, bool names) {
    Scene *s = p->s;
    double top = y + 42;
    scene_begin(s, "frame", arena_printf(p->a, "frame-%d", f->step),
                arena_printf(p->a, "%s: %s", frame_name(p, f), sent_words(p, f)));
    scene_text(s, x0, y + 12, ALIGN_LEFT, 15, BOLD, ROLE_INK, frame_name(p, f));
    bool words = scene_width(s, 12, REGULAR, "rank 0") + 6 <= p->cell;
    for (int k = 0; k < p->n; k++)
        scene_textf(s, x0 + (k + 0.5) * p->cell, y + 34, ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND, "%s%d",
                    words ? "rank " : "r", k);
    for (int c = 0; c < p->n; c++) {
        if (names)
            scene_textf(s, x0 - 18, top + (c + 0.5) * p->high + 4, ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND, "c%d", c);
        for (int k = 0; k < p->n; k++) draw_cell(p, &f->cell[c][k], x0 + k * p->cell, top + c * p->high);
    }
    for (int c = 0; c < p->n; c++)
        for (int k = 0; k < p->n; k++)
            if (f->cell[c][k].sends) draw_send(p, x0, c, k, top);
    double under = top + p->n * p->high;
    scene_segment(s, x0, under + 12, x0 + p->n * p->cell, under + 12, ROLE_GRID, 1);
    scene_text(s, x0, under + 30, ALIGN_LEFT, 12.5, REGULAR, f->step ? ROLE_INK : ROLE_SECOND,
               scene_fit(s, sent_words(p, f), p->n * p->cell + 16, 12.5, REGULAR));
    scene_end(s);
}

/* ---- the page ---- */

typedef enum { KEY_SEND, KEY_PART, KEY_FRESH, KEY_DONE, KEY_STALE, KEY_TERMS, KEY_COUNT } Key;
static const char *key_words(RingPen *p, Key k) {
    bool gather = p->kind == RING_GATHER;
    switch (k) {
    case KEY_SEND:
        return arena_printf(p->a, "sent next (rank %d wraps to rank 0)", p->n - 1);
    case KEY_PART:
        return gather
                   ? NULL
                   : arena_printf(p->a, "partial %s, by share of %d terms", p->frame[0].max ? "maximum" : "sum", p->n);
    case KEY_FRESH:
        return gather ? "just arrived" : NULL;
    case KEY_DONE:
        return gather ? "held" : "complete";
    case KEY_STALE:
        return gather ? NULL : "stale, already sent";
    case KEY_TERMS:
        return gather || p->n < 2 ? NULL : "ranks added, in order";
    default:
        return NULL;
    }
}
static void key_mark(RingPen *p, Key k, double x, double y) {
    Scene *s = p->s;
    Pt pt[2] = {{x, y}, {x + 26, y}};
    if (k == KEY_SEND) scene_arrow(s, pt, 2, ROLE_COLL_LINE, 2.2, false, false, -1);
    if (k == KEY_PART || k == KEY_FRESH) scene_rect(s, x, y - 8, 26, 16, 0, ROLE_PAPER, ROLE_FAINT, 1.25);
    if (k == KEY_PART) scene_rect(s, x, y, 26, 8, 0, ROLE_PART_SUM, ROLE_FAINT, 1.25);
    if (k == KEY_FRESH) scene_rect(s, x, y - 8, 26, 16, 0, ROLE_PART_SUM, ROLE_FAINT, 1.25);
    if (k == KEY_DONE) scene_rect(s, x + 1, y - 7, 24, 14, 0, ROLE_SHARD, ROLE_INK, 2);
    if (k == KEY_STALE) scene_text(s, x + 13, y + 5, ALIGN_MIDDLE, 15, REGULAR, ROLE_SECOND, "7");
    if (k == KEY_TERMS) scene_text(s, x + 13, y + 4.5, ALIGN_MIDDLE, 12, REGULAR, ROLE_INK, p->n > FEW ? "1→2" : "1+2");
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
        scene_text(p->s, x + 34, y + 4.5, ALIGN_LEFT, 12, REGULAR, ROLE_SECOND, words);
        x += w + 20;
    }
    scene_end(p->s);
    return y + 18;
}

static void sizes(RingPen *p) {
    bool slide = p->preset == PRESET_SLIDE, column = p->preset == PRESET_COLUMN, few = p->n <= FEW;
    p->label = column ? 32 : 34;
    p->gap = column ? 26 : 34;
    p->cell = slide ? (few ? 66 : 54) : column ? (few ? 57 : 50) : few ? 57 : 50;
    if (p->n == 2) p->cell = 84;
    p->high = slide ? (few ? 58 : 36) : few ? 46 : 42;
}

/* Frames [from, to) in lines of `per`. */
static Scene *storyboard_page(RingPen *p, int from, int to, int per) {
    Scene *s = p->s = figure_new(p->c, "storyboard", p->preset);
    double all = line_width(p, per), step = frame_width(p);
    if (p->preset == PRESET_WIDE && all < p->w) { /* short stories need no wide canvas */
        p->w = fmax(all, 620);
        s->w = p->w + 2 * p->x;
        s->px_width = (int)(presets[p->preset].px * s->w / presets[p->preset].w);
    }
    const char *sub[] = {story(p), NULL};
    double y = figure_head(s, p->preset, headline(p), sub, 0) + (p->preset == PRESET_SLIDE ? 4 : 14);
    for (int i = from; i < to; i++) {
        int k = i - from;
        draw_frame(p, &p->frame[i], p->x + p->label + k % per * step, y + k / per * (frame_height(p) + 6),
                   k % per == 0);
    }
    y += ((to - from + per - 1) / per) * (frame_height(p) + 6) - 6;
    y = draw_key(p, y + 6);
    y = figure_foot(s, p->c, p->x, p->w, y, plan_words(p), NULL);
    s->desc = arena_printf(p->a, "%s. %s %s", headline(p), story(p), plan_words(p));
    figure_page(s, p->preset, y);
    return s;
}

int view_storyboard(const ViewCall *c, Scene **page) {
    RingPen p;
    if (!prepare(c, &p)) return 0;
    furniture_preset(c->o->preset, &p.preset);
    p.x = presets[p.preset].margin;
    p.w = presets[p.preset].w - 2 * p.x;
    sizes(&p);
    int per = p.frames, pages = 0;
    while (per > 1 && line_width(&p, per) > p.w + 0.1) per--;
    if (p.kind == RING_REDUCE && p.preset != PRESET_SLIDE && per > p.n) per = p.n; /* the sums end a line */
    int lines = (p.frames + per - 1) / per;
    per = (p.frames + lines - 1) / lines;
    int each = p.preset == PRESET_SLIDE ? per : p.frames; /* frames on a page; letters of 7 pt ask for pages of A4 */
    if (p.preset == PRESET_A4) each = per * (int)fmax(1, floor(A4_ROOM / (frame_height(&p) + 6)));
    for (int i = 0; i < p.frames && pages < VIEW_MAX_PAGES; i += each)
        page[pages++] = storyboard_page(&p, i, i + each < p.frames ? i + each : p.frames, per);
    return pages;
}

const char *view_storyboard_text(const ViewCall *c) {
    RingPen p;
    Role role;
    if (!prepare(c, &p)) return NULL;
    Str s = str_new(p.a);
    int w = p.n <= FEW ? 18 : 9;
    str_addf(&s, "%s\n", headline(&p));
    words_paragraph(&s, "", story(&p), 80);
    for (int i = 0; i < p.frames; i++) {
        const Ring *f = &p.frame[i];
        str_addf(&s, "\n%s, %s\n", frame_name(&p, f), sent_words(&p, f));
        str_add(&s, "    ");
        for (int k = 0; k < p.n; k++) words_pad(&s, arena_printf(p.a, "rank %d", k), w, false);
        words_end_line(&s);
        for (int ch = 0; ch < p.n; ch++) {
            str_addf(&s, "c%d  ", ch);
            for (int k = 0; k < p.n; k++) {
                const RingCell *x = &f->cell[ch][k];
                const char *t = !x->held ? "·" : arena_printf(p.a, "%s%.4g", x->stale && !x->done ? "-" : "", x->value);
                if (x->held && x->stale && !x->done) t = arena_printf(p.a, "(%.4g)", x->value);
                if (x->held && !(x->stale && !x->done) && x->terms > 1 && p.kind != RING_GATHER)
                    t = arena_printf(p.a, "%s =%s", t, terms_words(&p, x, p.n > FEW));
                words_pad(&s, arena_printf(p.a, "%s%s", t, x->sends ? " >" : ""), w, false);
            }
            words_end_line(&s);
        }
    }
    str_add(&s, "\n> sent in the next step; (7) already sent; =0+1 ranks added, in order\n");
    words_paragraph(&s, "", plan_words(&p), 80);
    words_paragraph(&s, "", words_stamp(p.a, c->t, &role), 80);
    return s.s;
}
