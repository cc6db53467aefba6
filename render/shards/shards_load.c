/* Causal attention, cut along the sequence. See shards_load.h. */
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
    const char *axis, *order;
    int64_t S;
    Piece piece[PIECES]; /* along the sequence; striped: one of each part */
    int64_t rank[MOST];
    double share[MOST]; /* of all pairs */
    double most;        /* the largest share */
} Load;

/* ---- the mask ---- */

/* Queries of a piece, each with the keys up to its own. */
static double pairs(const Piece *x) {
    if (x->lim <= x->from) return 0;
    double n = (double)((x->lim - x->from + x->step - 1) / x->step), first = (double)x->from + 1;
    return n * first + (double)x->step * n * (n - 1) / 2;
}
static void add_piece(Load *l, int64_t from, int64_t lim, int part) {
    lim = lim < l->S ? lim : l->S;
    if (from < lim) l->piece[l->n_piece++] = (Piece){from, lim, 1, part};
}
static void find_pieces(Load *l, const DimCut *c) {
    int parts = c->order == PLACE_ZIGZAG ? 2 * l->n : l->n;
    int64_t len = (l->S + parts - 1) / parts;
    for (int i = 0; i < parts; i++) {
        int part = i < l->n ? i : 2 * l->n - 1 - i;
        if (c->order == PLACE_STRIPED) l->piece[l->n_piece++] = (Piece){i, l->S, l->n, i};
        else add_piece(l, i * len, (i + 1) * len, part);
    }
}

/* ---- the records ---- */

/* The work of a step on each of the ranks; false: a rank does none. */
static bool work_of(const Trace *t, int step, const Load *l, double work[MOST]) {
    bool all = true;
    for (int k = 0; k < l->n; k++) {
        work[k] = -1;
        for (int i = 0; i < t->n_computes && work[k] < 0; i++) {
            const TraceCompute *c = &t->computes[i];
            if (c->step == step && (!c->ranks.n || rankset_has(&c->ranks, l->rank[k])))
                work[k] = c->flops;
        }
        all &= work[k] > 0;
    }
    return all;
}
/* The axis that cuts the queries of a step whose keys are whole; -1: there is none, or several. */
static int cut_axis(ShardPen *p, const TraceCompute *c, DimCut *q) {
    const Trace *t = p->c->t;
    if (c->n_inputs < 2 || !c->input_step || phase_or_forward(c->pass) != PHASE_FORWARD ||
        c->recompute || c->mask)
        return -1;
    const TraceValue *x = trace_value(t, c->inputs[0], c->input_step[0]),
                     *y = trace_value(t, c->inputs[1], c->input_step[1]);
    if (!x || !y || x->shape.nd != 4 || y->shape.nd != 4 ||
        x->shape.global_shape[1] != y->shape.global_shape[1])
        return -1;
    *q = shards_value_cut(p->c->arena, t, &x->shape, 1, p->rank);
    DimCut keys = shards_value_cut(p->c->arena, t, &y->shape, 1, p->rank);
    return q->n_axis == 1 && q->n > 1 && q->n <= MOST && keys.n == 1 ? q->axis[0] : -1;
}
/* Is the work of the ranks that of the mask? Fills their shares. */
static bool is_causal(ShardPen *p, const TraceCompute *c, Load *l) {
    double work[MOST], sum = 0, all = 0, due[MOST] = {0};
    if (!work_of(p->c->t, c->step, l, work)) return false;
    for (int i = 0; i < l->n_piece; i++) {
        due[l->piece[i].part] += pairs(&l->piece[i]);
        all += pairs(&l->piece[i]);
    }
    for (int k = 0; k < l->n; k++) sum += work[k];
    for (int k = 0; k < l->n; k++) {
        l->share[k] = due[k] / all;
        l->most = fmax(l->most, l->share[k]);
        if (!(fabs(work[k] / sum - l->share[k]) <= 1e-9)) return false; /* NaN: no pair at all */
    }
    return true;
}
static bool find(ShardPen *p, Load *l) {
    static const char *const order[N_PLACE_CUTS] = {
        [PLACE_ZIGZAG] = "zigzag", [PLACE_STRIPED] = "striped"};
    const Trace *t = p->c->t;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        DimCut q;
        int axis = p->layer < 0 || c->layer == p->layer ? cut_axis(p, c, &q) : -1;
        if (axis < 0) continue;
        *l = (Load){.n = (int)q.n, .S = q.size, .axis = t->axes[axis].name};
        l->order = order[q.order] ? order[q.order] : "contiguous";
        int64_t stride = 1;
        for (int x = axis + 1; x < t->n_axes; x++) stride *= t->axes[x].size;
        for (int k = 0; k < l->n; k++)
            l->rank[k] = p->rank + (k - p->rank / stride % l->n) * stride;
        find_pieces(l, &q);
        if (is_causal(p, c, l)) return true;
    }
    return false;
}
bool shards_load(ShardPen *p) {
    Load l;
    return find(p, &l);
}

/* ---- words ---- */

static double idle(const Load *l) { return 1 - 1 / (l->most * l->n); }
static const char *verdict(ShardPen *p, const Load *l) {
    if (idle(l) < 1e-3)
        return arena_printf(p->c->arena, "each %.1f %%: nobody waits", 100 * l->most);
    return arena_printf(p->c->arena, "slowest %.1f %%, mean %.1f %%: idle %.1f %%", 100 * l->most,
                        100.0 / l->n, 100 * idle(l));
}
static const char *title(ShardPen *p, const Load *l) {
    return arena_printf(p->c->arena, "Causal attention, %s over %s", l->order, l->axis);
}
static const char meaning[] =
    "a query sees the keys up to its own: which pairs of both a rank computes";

/* ---- the picture ---- */

/* A strip of the sequence with its owners' tones, along one side of the mask. */
static void draw_strip(ShardPen *p, const Load *l, Area at, bool across) {
    for (int i = 0; i < l->n_piece; i++) {
        const Piece *x = &l->piece[i];
        double from = (double)x->from / (double)l->S, part = (double)x->lim / (double)l->S - from;
        Area a = across ? (Area){at.x + from * at.w, at.y, part * at.w, at.h}
                        : (Area){at.x, at.y + from * at.h, at.w, part * at.h};
        scene_rect(p->s, a, 0,
                   (Look){ROLE_SHARD + shards_shade(x->part, l->n), ROLE_WEIGHT_LINE, 0.8});
    }
}
/* The queries of a piece with the keys that they see, and the number of the part. */
static void draw_piece(ShardPen *p, const Load *l, const Piece *x, Area at) {
    double y0 = at.h * (double)x->from / (double)l->S, y1 = at.h * (double)x->lim / (double)l->S;
    int tone = shards_shade(x->part, l->n);
    const Pt pt[4] = {
        {at.x, at.y + y0}, {at.x + y0, at.y + y0}, {at.x + y1, at.y + y1}, {at.x, at.y + y1}};
    bool own = l->rank[x->part] == p->rank;
    scene_poly(p->s, pt, 4, (Look){ROLE_SHARD + tone, ROLE_WEIGHT_LINE, 1})->ground = true;
    if (own) scene_poly(p->s, pt, 4, (Look){ROLE_NONE, ROLE_INK, 2.25})->ground = true;
    const char *text = arena_printf(p->c->arena, "%d", x->part);
    if (y1 - y0 >= 15 && (y0 + y1) / 2 > scene_width(p->s, 12, SEMIBOLD, text) + 6)
        scene_text(p->s, at.x + (y0 + y1) / 4, at.y + (y0 + y1) / 2 + 4.3,
                   (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT + tone}, text);
}
static void draw_mask(ShardPen *p, const Load *l, Area at) {
    const TextLook small = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND};
    scene_begin(p->s, "load", "load-mask",
                arena_printf(p->c->arena, "%s: %lld queries and keys, %s", title(p, l),
                             (long long)l->S, verdict(p, l)));
    scene_text(p->s, at.x, at.y - STRIP - 10, small, "keys →");
    scene_text(p->s, at.x - STRIP - 6, at.y + at.h + 18, small, "↑ queries");
    draw_strip(p, l, (Area){at.x, at.y - STRIP - 4, at.w, STRIP}, true);
    draw_strip(p, l, (Area){at.x - STRIP - 4, at.y, STRIP, at.h}, false);
    for (int i = 0; i < l->n_piece; i++) draw_piece(p, l, &l->piece[i], at);
    scene_end(p->s);
}
/* The bar of part k, or (all) of every part, where they are alike. */
static void draw_bar(ShardPen *p, const Load *l, int k, bool all, Area at) {
    int tone = shards_shade(k, l->n);
    double w = at.w * l->share[k] / l->most;
    scene_begin(p->s, "load", arena_printf(p->c->arena, "load-%d", k),
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
    if (at.h >= 15 && w > 20 && !all)
        scene_textf(p->s, at.x + 10, at.y + at.h / 2 + 4.3,
                    (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT + tone}, "%d", k);
    scene_textf(p->s, at.x + w + 8, at.y + at.h / 2 + 4.3,
                (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, "%.1f %%", 100 * l->share[k]);
    scene_end(p->s);
}
double shards_draw_load(ShardPen *p, double top) {
    Load l;
    if (!find(p, &l)) return top;
    bool narrow = p->w < 700;
    enum { AROUND = 150 }; /* above and below, with the footer of a slide */
    double side = p->preset == PRESET_SLIDE ? fmin(300, presets[PRESET_SLIDE].h - top - AROUND)
                  : narrow                  ? 170
                                            : fmin(220, fmax(130, 19.0 * l.n_piece)),
           tw = scene_text(p->s, p->x, top + 12, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK},
                           title(p, &l));
    if (tw + 16 + scene_width(p->s, 12, REGULAR, meaning) <= p->w)
        scene_text(p->s, p->x + tw + 16, top + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   meaning);
    /* striped: a rank has every n-th query, which no band shows */
    bool mask = l.piece[0].step == 1;
    Area at = {p->x + STRIP + 4, top + 58, side, side};
    if (mask) draw_mask(p, &l, at);
    double x = p->x + (mask ? side + STRIP + 40 : 0) + 70,
           h = fmin(24, fmax(12, (side - 40) / l.n - 4)), w = fmin(300, p->x + p->w - x - 60),
           y = mask ? at.y : top + 34;
    const bool all = l.n > 4 && idle(&l) < 1e-3; /* one bar says it */
    const int bars = all ? 1 : l.n;
    if (all) h = 24;
    for (int k = 0; k < bars; k++) draw_bar(p, &l, k, all, (Area){x, y + (h + 4) * k, w, h});
    y += (h + 4) * bars + 20;
    const char *text = verdict(p, &l);
    scene_text(p->s, fmin(x, p->x + p->w - scene_width(p->s, 12.5, SEMIBOLD, text)), y,
               (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, idle(&l) < 1e-3 ? ROLE_PASS : ROLE_FAIL},
               text);
    return fmax(mask ? at.y + side + 34 : 0, y + 20);
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
