/* Causal attention, cut along the sequence. See shards_load.h. */
#include "base/text.h"
#include "render/shards/shards_load.h"
#include <math.h>
#include <string.h>

enum { MOST = 16, PIECES = 2 * MOST, STRIP = 10 };

/* Positions [from, lim) of the sequence, every step-th, that part `part` of the cut has. */
typedef struct {
    int64_t from, lim, step;
    int part;
} Piece;
typedef struct {
    int n, n_piece; /* parts */
    bool ring;      /* keys come block by block: part k has those of part k - j after j hops */
    const char *axis;
    PlaceCut order;
    int64_t S;
    Piece piece[PIECES]; /* along the sequence; striped: one of each part */
    int64_t rank[MOST];
    double share[MOST];     /* of all pairs */
    double hop[MOST][MOST]; /* in a ring, of which that many after hop j, [part][j] */
    double most;            /* the largest share */
} Load;

/* ---- the mask ---- */

/* Pairs of the queries of x, each with the keys of y up to its own place. */
static double pairs(const Piece *x, const Piece *y) {
    double n = 0;
    for (int64_t q = x->from; q < x->lim; q += x->step) {
        const int64_t last = q < y->lim ? q : y->lim - 1;
        if (last >= y->from) n += (double)((last - y->from) / y->step + 1);
    }
    return n;
}
static void add_piece(Load *l, int64_t from, int64_t lim, int part) {
    lim = lim < l->S ? lim : l->S;
    if (from < lim) l->piece[l->n_piece++] = (Piece){from, lim, 1, part};
}
static void find_pieces(Load *l) {
    int parts = l->order == PLACE_ZIGZAG ? 2 * l->n : l->n;
    int64_t len = (l->S + parts - 1) / parts;
    for (int i = 0; i < parts; i++) {
        int part = i < l->n ? i : 2 * l->n - 1 - i;
        if (l->order == PLACE_STRIPED) l->piece[l->n_piece++] = (Piece){i, l->S, l->n, i};
        else add_piece(l, i * len, (i + 1) * len, part);
    }
}
/* The hop after which the keys of a part are where the queries of another are. */
static int hop_of(const Load *l, int queries, int keys) { return (queries - keys + l->n) % l->n; }
static void find_shares(Load *l) {
    const Piece whole = {0, l->S, 1, 0};
    const double all = (double)l->S * (double)(l->S + 1) / 2;
    for (int i = 0; i < l->n_piece; i++) {
        const Piece *x = &l->piece[i];
        if (!l->ring) l->share[x->part] += pairs(x, &whole) / all;
        for (int k = 0; l->ring && k < l->n_piece; k++) {
            const double part = pairs(x, &l->piece[k]) / all;
            l->share[x->part] += part;
            l->hop[x->part][hop_of(l, x->part, l->piece[k].part)] += part;
        }
    }
    for (int k = 0; k < l->n; k++) l->most = fmax(l->most, l->share[k]);
}
/* The same sequence on the same ranks in another order; false: it is not cut so. */
static bool in_order(const Load *l, PlaceCut order, Load *other) {
    *other = (Load){.n = l->n, .ring = l->ring, .axis = l->axis, .order = order, .S = l->S};
    memcpy(other->rank, l->rank, sizeof l->rank);
    if (order == PLACE_ZIGZAG && l->S % (2 * l->n)) return false;
    find_pieces(other);
    find_shares(other);
    return true;
}

/* ---- the records ---- */

/* The work of a step on a rank; -1: the rank does not do it. */
static double work_of(const Trace *t, int step, int64_t rank) {
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (c->step == step && (!c->ranks.n || rankset_has(&c->ranks, rank))) return c->flops;
    }
    return -1;
}
static const TraceValue *input_of(const Trace *t, const TraceCompute *c, int i) {
    return trace_value(t, c->inputs[i], c->input_step[i]);
}
/* The axis that cuts the queries of a step whose keys are whole, or, in a ring, cut as these; -1:
 * there is none, or several. */
static int cut_axis(ShardPen *p, const TraceCompute *c, DimCut *q, bool *ring) {
    const Trace *t = p->c->t;
    if (c->n_inputs < 2 || !c->input_step || phase_or_forward(c->pass) != PHASE_FORWARD ||
        c->recompute || c->mask)
        return -1;
    const TraceValue *x = input_of(t, c, 0), *y;
    if (!x || x->shape.nd != 4) return -1;
    *q = shards_value_cut(p->c->arena, t, &x->shape, 1, p->rank);
    if (q->n_axis != 1 || q->n < 2 || q->n > MOST) return -1;
    bool whole = false, alike = c->attends;
    for (int i = 1; i < c->n_inputs; i++) {
        if (!(y = input_of(t, c, i)) || y->shape.nd != 4) continue;
        if (y->shape.global_shape[1] != x->shape.global_shape[1]) return -1;
        const DimCut keys = shards_value_cut(p->c->arena, t, &y->shape, 1, p->rank);
        whole |= keys.n == 1;
        alike &= keys.n == q->n;
    }
    *ring = !whole;
    return whole || alike ? q->axis[0] : -1;
}
/* The step of the ring's hop j, of which c is the first; NULL: there are fewer. */
static const TraceCompute *step_of_hop(const Trace *t, const TraceCompute *c, int j) {
    const TraceCompute *at = c;
    for (int i = 0; i < t->n_computes && j > 0; i++) {
        const TraceCompute *x = &t->computes[i];
        if (x->step <= at->step || !x->attends || x->layer != c->layer || x->recompute ||
            phase_or_forward(x->pass) != PHASE_FORWARD || !text_same(x->op, c->op))
            continue;
        at = x, j--;
    }
    return j ? NULL : at;
}
/* Is the work of the ranks that of the mask, in a ring hop by hop? */
static bool is_causal(ShardPen *p, const TraceCompute *c, const Load *l) {
    const Trace *t = p->c->t;
    double work[MOST][MOST], sum = 0;
    const int hops = l->ring ? l->n : 1;
    for (int k = 0; k < l->n; k++)
        for (int j = 0; j < hops; j++) {
            const TraceCompute *step = step_of_hop(t, c, j);
            work[k][j] = step ? work_of(t, step->step, l->rank[k]) : -1;
            if (work[k][j] < 0) return false;
            sum += work[k][j];
        }
    for (int k = 0; k < l->n; k++)
        for (int j = 0; j < hops; j++) {
            const double due = l->ring ? l->hop[k][j] : l->share[k];
            if (!(fabs(work[k][j] / sum - due) <= 1e-9)) return false; /* NaN: no pair at all */
        }
    return true;
}
static bool find(ShardPen *p, Load *l) {
    const Trace *t = p->c->t;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        DimCut q;
        bool ring = false;
        int axis = p->layer < 0 || c->layer == p->layer ? cut_axis(p, c, &q, &ring) : -1;
        if (axis < 0) continue;
        Load of = {.n = (int)q.n, .ring = ring, .S = q.size, .axis = t->axes[axis].name};
        int64_t stride = 1;
        for (int x = axis + 1; x < t->n_axes; x++) stride *= t->axes[x].size;
        for (int k = 0; k < of.n; k++)
            of.rank[k] = p->rank + (k - p->rank / stride % of.n) * stride;
        in_order(&of, q.order, l);
        if (is_causal(p, c, l)) return true;
    }
    return false;
}
bool shards_load(ShardPen *p) {
    Load l;
    return find(p, &l);
}

/* ---- words ---- */

static const char *const order_word[N_PLACE_CUTS] = {
    [PLACE_ZIGZAG] = "zigzag", [PLACE_STRIPED] = "striped"};
static const char *order_of(const Load *l) {
    return order_word[l->order] ? order_word[l->order] : "contiguous";
}
static double idle(const Load *l) { return 1 - 1 / (l->most * l->n); }
static const char *verdict(ShardPen *p, const Load *l) {
    if (idle(l) < 1e-3)
        return arena_printf(p->c->arena, "each %.1f %%: nobody waits", 100 * l->most);
    return arena_printf(p->c->arena, "slowest %.1f %%, mean %.1f %%: idle %.1f %%", 100 * l->most,
                        100.0 / l->n, 100 * idle(l));
}
static const char *title(ShardPen *p, const Load *l) {
    return arena_printf(p->c->arena, "Causal attention, %s over %s", order_of(l), l->axis);
}
static const char *meaning(const Load *l) {
    return l->ring ? "a query sees the keys up to its own; tone: whose query, number: after how "
                     "many hops the keys are there"
                   : "a query sees the keys up to its own: which pairs of both a rank computes";
}

/* ---- the picture ---- */

/* A panel: the mask of an order and its bars. */
typedef struct {
    ShardPen *p;
    const Load *l;
    bool own;       /* the plan's order; else one beside it */
    double most;    /* the share that fills a bar */
    const char *of; /* whose order this is; NULL: there is no other */
} Panel;

/* A strip of the sequence with its owners' tones, along one side of the mask. */
static void draw_strip(const Panel *f, Area at, bool across) {
    const Load *l = f->l;
    for (int i = 0; i < l->n_piece; i++) {
        const Piece *x = &l->piece[i];
        double from = (double)x->from / (double)l->S, part = (double)x->lim / (double)l->S - from;
        Area a = across ? (Area){at.x + from * at.w, at.y, part * at.w, at.h}
                        : (Area){at.x, at.y + from * at.h, at.w, part * at.h};
        scene_rect(f->p->s, a, 0,
                   (Look){ROLE_SHARD + shards_shade(x->part, l->n), ROLE_WEIGHT_LINE, 0.8});
    }
}
/* Of the queries of a piece in a ring: the blocks of keys, each with the hop that brings it. */
static void draw_blocks(const Panel *f, const Piece *x, Area at) {
    Scene *s = f->p->s;
    const Load *l = f->l;
    const double px = at.h / (double)l->S, y0 = at.y + px * (double)x->from,
                 h = px * (double)(x->lim - x->from);
    const int tone = shards_shade(x->part, l->n);
    for (int k = 0; k < l->n_piece && l->piece[k].from <= x->from; k++) {
        const Piece *y = &l->piece[k];
        const bool last = y->from == x->from; /* half a block */
        const double x0 = at.x + px * (double)y->from, w = px * (double)(y->lim - y->from);
        if (k)
            scene_segment(s, (Pt){x0, y0}, (Pt){x0, y0 + h}, ROLE_WEIGHT_LINE, 0.6)->ground = true;
        if (h >= (last ? 24 : 17))
            scene_textf(s, x0 + (last ? 0.27 : 0.5) * w, y0 + (last ? 0.7 : 0.5) * h + 4.3,
                        (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SHARD_TEXT + tone}, "%d",
                        hop_of(l, x->part, y->part));
    }
}
/* The queries of a piece with the keys that they see, and the number of the part. */
static void draw_piece(const Panel *f, const Piece *x, Area at) {
    ShardPen *p = f->p;
    const Load *l = f->l;
    double y0 = at.h * (double)x->from / (double)l->S, y1 = at.h * (double)x->lim / (double)l->S;
    int tone = shards_shade(x->part, l->n);
    const Pt pt[4] = {
        {at.x, at.y + y0}, {at.x + y0, at.y + y0}, {at.x + y1, at.y + y1}, {at.x, at.y + y1}};
    bool own = l->rank[x->part] == p->rank;
    scene_poly(p->s, pt, 4, (Look){ROLE_SHARD + tone, ROLE_WEIGHT_LINE, 1})->ground = true;
    if (own) scene_poly(p->s, pt, 4, (Look){ROLE_NONE, ROLE_INK, 2.25})->ground = true;
    if (l->ring) {
        draw_blocks(f, x, at);
        return;
    }
    const char *text = arena_printf(p->c->arena, "%d", x->part);
    if (y1 - y0 >= 15 && (y0 + y1) / 2 > scene_width(p->s, 12, SEMIBOLD, text) + 6)
        scene_text(p->s, at.x + (y0 + y1) / 4, at.y + (y0 + y1) / 2 + 4.3,
                   (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT + tone}, text);
}
/* Ids of marks: those of the order beside have its name. */
static const char *id_of(const Panel *f, const char *what) {
    return arena_printf(f->p->c->arena, "load-%s%s%s", f->own ? "" : order_of(f->l),
                        f->own ? "" : "-", what);
}
static void draw_mask(const Panel *f, Area at) {
    ShardPen *p = f->p;
    const Load *l = f->l;
    const TextLook small = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND};
    scene_begin(p->s, "load", id_of(f, "mask"),
                arena_printf(p->c->arena, "%s: %lld queries and keys, %s", title(p, l),
                             (long long)l->S, verdict(p, l)));
    scene_text(p->s, at.x, at.y - STRIP - 10, small, "keys →");
    scene_text(p->s, at.x - STRIP - 6, at.y + at.h + 18, small, "↑ queries");
    draw_strip(f, (Area){at.x, at.y - STRIP - 4, at.w, STRIP}, true);
    draw_strip(f, (Area){at.x - STRIP - 4, at.y, STRIP, at.h}, false);
    for (int i = 0; i < l->n_piece; i++) draw_piece(f, &l->piece[i], at);
    scene_end(p->s);
}
/* The bar of part k, or (all) of every part, where they are alike. */
static void draw_bar(const Panel *f, int k, bool all, Area at) {
    ShardPen *p = f->p;
    const Load *l = f->l;
    int tone = shards_shade(k, l->n);
    double w = at.w * l->share[k] / f->most;
    scene_begin(p->s, "load", id_of(f, arena_printf(p->c->arena, "%d", k)),
                arena_printf(p->c->arena, "rank %lld: %.1f %% of the pairs of query and key",
                             (long long)l->rank[k], 100 * l->share[k]));
    const char *who = all ? arena_printf(p->c->arena, "%d parts", l->n)
                          : arena_printf(p->c->arena, "rank %lld", (long long)l->rank[k]);
    scene_text(p->s, at.x - 8, at.y + at.h / 2 + 4.3,
               (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, who);
    scene_rect(p->s, (Area){at.x, at.y, w, at.h}, 0,
               (Look){ROLE_SHARD + tone, ROLE_WEIGHT_LINE, 1});
    if (l->rank[k] == p->rank && !all)
        scene_rect(p->s, (Area){at.x, at.y, w, at.h}, 0, (Look){ROLE_NONE, ROLE_INK, 2.25});
    if (at.h >= 15 && w > 20 && !all && !l->ring)
        scene_textf(p->s, at.x + 10, at.y + at.h / 2 + 4.3,
                    (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT + tone}, "%d", k);
    scene_textf(p->s, at.x + w + 8, at.y + at.h / 2 + 4.3,
                (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, "%.1f %%", 100 * l->share[k]);
    scene_end(p->s);
}
enum { SOME = 8, WHO = 60, SHARE = 60 }; /* parts; room of words before and behind a bar */
static double bar_height(const Load *l, double side) {
    return fmin(24, fmax(12, (side - 40) / l->n - 4));
}
/* How far from the left edge bars begin: in the corner that the mask leaves free, behind the strip
 * of keys over it. */
static double bars_left(const Load *l, double side) {
    if (l->piece[0].step != 1) return WHO;
    const double corner = fmin(side, l->n * (bar_height(l, side) + 4) + 14) + STRIP + 26 + WHO;
    return fmax(corner, STRIP + 4 + side + 14);
}
/* In the width at.w, with a mask of at.h units if it can be seen; returns the y under it. */
static double draw_panel(const Panel *f, Area at) {
    ShardPen *p = f->p;
    const Load *l = f->l;
    /* striped: a rank has every n-th query, which no band shows */
    const bool mask = l->piece[0].step == 1;
    const double side = at.h, left = at.x + STRIP + 4;
    if (mask) draw_mask(f, (Area){left, at.y + 24, side, side});
    double x = at.x + bars_left(l, side), h = bar_height(l, side),
           w = fmin(300, at.x + at.w - x - SHARE), y = mask ? at.y + 24 : at.y;
    if (f->of)
        scene_text(p->s, fmin(x, at.x + at.w - scene_width(p->s, 12.5, SEMIBOLD, f->of)),
                   y - STRIP - 10, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK}, f->of);
    const bool all = l->n > 4 && idle(l) < 1e-3; /* one bar says it */
    /* of many beside the plan's own some are enough, with the first and the last */
    const int step = f->own || l->n <= SOME ? 1 : (l->n + SOME - 3) / (SOME - 2);
    if (all || step > 1) h = 24;
    for (int k = 0; k < (all ? 1 : l->n); k++) {
        if (k % step && k + 1 < l->n) continue;
        draw_bar(f, k, all, (Area){x, y, w, h});
        y += h + 4;
    }
    y += 20;
    const TextLook look = {ALIGN_LEFT, 12.5, SEMIBOLD,
                           !f->own          ? ROLE_SECOND
                           : idle(l) < 1e-3 ? ROLE_PASS
                                            : ROLE_FAIL};
    const char *text = verdict(p, l), *line[3] = {text};
    const double tw = scene_width(p->s, 12.5, SEMIBOLD, text), from = fmin(x, at.x + at.w - tw),
                 edge = mask ? left + fmin(side, y + 8 - at.y - 24) + 6 : at.x; /* the mask's */
    const bool one = from >= edge;
    const int lines =
        one ? 1
            : scene_wrap(p->s, text, (TextColumn){at.x + at.w - x, 12.5, SEMIBOLD, 3, NULL}, line);
    for (int i = 0; i < lines; i++) scene_text(p->s, one ? from : x, y + 17 * i, look, line[i]);
    y += 17 * (lines - 1);
    return fmax(mask ? at.y + 24 + side + 34 : 0, y + 20);
}
/* The order that shows best what the plan's is good for, or lacks; false: there is none to draw. */
static bool beside_it(const Load *l, Load *other) {
    return l->order != PLACE_STRIPED &&
           in_order(l, l->order == PLACE_ZIGZAG ? PLACE_WHOLE : PLACE_ZIGZAG, other);
}
enum { BETWEEN = 40 };
/* The side of a mask, of two beside each other (other: NULL: of one); a slide has it as large as
 * bars beside it let it be. */
static double mask_side(const ShardPen *p, const Load *l, const Load *other, double top) {
    enum { AROUND = 150, NARROW_SIDE = 170, LARGEST = 300, TWO = 216, LEAST_BAR = 110 };
    const int pieces = other && other->n_piece > l->n_piece ? other->n_piece : l->n_piece;
    if (p->w < 700) return NARROW_SIDE;
    if (p->preset != PRESET_SLIDE) return fmin(other ? TWO : LARGEST, fmax(130, 27.0 * pieces));
    double side = fmin(LARGEST, presets[PRESET_SLIDE].h - top - AROUND);
    const double w = other ? (p->w - BETWEEN) / 2 : p->w;
    while (side > NARROW_SIDE && w - bars_left(l, side) - SHARE < LEAST_BAR) side -= 5;
    return side;
}
double shards_draw_load(ShardPen *p, double top) {
    Load l, other;
    if (!find(p, &l)) return top;
    const bool two = p->w >= 700 && beside_it(&l, &other);
    const double side = mask_side(p, &l, two ? &other : NULL, top);
    const TextLook small = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND};
    const double tw =
        scene_text(p->s, p->x, top + 12, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, title(p, &l));
    const bool behind = tw + 16 + scene_width(p->s, 12, REGULAR, meaning(&l)) <= p->w;
    const char *line[3];
    const int n =
        behind ? 0 : scene_wrap(p->s, meaning(&l), (TextColumn){p->w, 12, REGULAR, 3, NULL}, line);
    if (behind) scene_text(p->s, p->x + tw + 16, top + 12, small, meaning(&l));
    for (int i = 0; i < n; i++) scene_text(p->s, p->x, top + 32 + 16 * i, small, line[i]);
    const double y = top + 34 + 16 * n, w = two ? (p->w - BETWEEN) / 2 : p->w;
    const Panel own = {p, &l, true, two ? fmax(l.most, other.most) : l.most,
                       two ? arena_printf(p->c->arena, "%s: this plan", order_of(&l)) : NULL};
    double end = draw_panel(&own, (Area){p->x, y, w, side});
    if (!two) return end;
    const Panel beside = {p, &other, false, own.most,
                          arena_printf(p->c->arena, "%s: in comparison", order_of(&other))};
    const Area at = {p->x + w + BETWEEN, y, w, side};
    return fmax(end, draw_panel(&beside, at));
}
const char *shards_load_text(ShardPen *p) {
    Load l;
    if (!find(p, &l)) return "";
    Arena *a = p->c->arena;
    Str s = str_new(a);
    str_addf(&s, "\n%s\n", title(p, &l));
    for (int k = 0; k < l.n; k++)
        str_addf(&s, "    rank %-4lld %5.1f %% of the pairs of query and key\n",
                 (long long)l.rank[k], 100 * l.share[k]);
    str_addf(&s, "    %s\n", verdict(p, &l));
    return s.s;
}
