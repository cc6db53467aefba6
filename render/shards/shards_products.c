/* Products of the shards picture: y = x·W transposed with the part of every rank in each operand,
 * what one rank multiplies, the pending sum and the collective that adds it. So column and row
 * parallel layers explain themselves. Draws a few; refuses to draw a whole block, which the view
 * `block` shows. */
#include "render/furniture/hexagon.h"
#include "base/text.h"
#include "render/shards/shards_draw.h"
#include <math.h>
#include <string.h>

enum { MOST = 4, TERMS = 4, NARROW = 700 };

typedef struct {
    const TraceCompute *op;
    const TraceParam *w;
    const TraceValue *x, *y;
    const TraceCollective *coll; /* that adds y; NULL */
} Product;

/* Is the module (NULL: no) called so, or one that it is in? */
static bool is_in(Arena *a, const char *module, const char *name) {
    for (const char *end = module; end && *end; end += strcspn(end, ".")) {
        end += *end == '.';
        if (text_names(arena_strndup(a, module, (size_t)(end - module) + strcspn(end, ".")), name))
            return true;
    }
    return false;
}
static bool named(const ShardPen *p, const TraceParam *w) {
    const char *part = p->c->o->part;
    return !part || is_in(p->c->arena, w->module, part) || text_names(w->plan_name, part) ||
           text_names(w->compute.name, part);
}
/* y = x W^T by its shapes: W's columns are what x has last, its rows what y has last. */
static bool is_product(const Product *q) {
    const TraceShape *w = &q->w->compute, *x = &q->x->shape, *y = &q->y->shape;
    return w->nd == 2 && x->nd >= 1 && y->nd == x->nd &&
           x->global_shape[x->nd - 1] == w->global_shape[1] &&
           y->global_shape[y->nd - 1] == w->global_shape[0];
}
static int find_products(ShardPen *p, Product *out) {
    const Trace *t = p->c->t;
    int n = 0;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (c->n_inputs != 2 || c->recompute || phase_or_forward(c->pass) != PHASE_FORWARD ||
            !rankset_has(&c->ranks, p->rank))
            continue;
        if (p->layer >= 0 && c->layer != p->layer) continue;
        Product q = {.op = c};
        for (int k = 0; k < 2; k++) {
            const TraceParam *w = trace_param(t, c->inputs[k]);
            if (w) q.w = w;
            else
                q.x = trace_value(t, c->inputs[k],
                                  c->input_step ? c->input_step[k]
                                                : c->step); /* a trace may leave them out */
        }
        q.y = trace_value(t, c->output, c->step);
        if (!q.w || !q.x || !q.y || !is_product(&q) || !named(p, q.w)) continue;
        for (int k = 0; k < t->n_collectives && !q.coll; k++)
            if (t->collectives[k].value_step == c->step && t->collectives[k].value &&
                !strcmp(t->collectives[k].value, c->output))
                q.coll = &t->collectives[k];
        if (n == MOST) return 0; /* too many to explain */
        out[n++] = q;
    }
    return n;
}

/* The weight as it is multiplied with, its stored dims cut by their symbols. */
static DimCut weight_cut(ShardPen *p, const TraceParam *w, int d) {
    return shards_value_cut(p->c->arena, p->c->t, &w->compute, d, p->rank);
}
static DimCut last_cut(ShardPen *p, const TraceShape *s) {
    return shards_value_cut(p->c->arena, p->c->t, s, s->nd - 1, p->rank);
}
/* Rows are tokens: of the dims before the last the first that is cut. */
static DimCut row_cut(ShardPen *p, const TraceShape *s) {
    DimCut c = {.n = 1, .blocks = 1};
    for (int d = 0; d + 1 < s->nd && c.n < 2; d++)
        c = shards_value_cut(p->c->arena, p->c->t, s, d, p->rank);
    return c;
}
static bool pending(const TraceValue *v) { return v->shape.pending && *v->shape.pending; }

static const char *story(const Product *q, const DimCut *out, const DimCut *in) {
    if (in->n > 1) return "the inputs are cut: each rank makes one full-size term of the sum";
    if (out->n > 1)
        return "the outputs are cut: every rank needs all of x and makes its own columns of y";
    return q->w ? "the weight is whole: each rank multiplies what it has of x" : "";
}
static const char *kind_words(const DimCut *out, const DimCut *in) {
    return in->n > 1 && out->n > 1 ? "Cut both ways"
           : in->n > 1             ? "Row parallel"
           : out->n > 1            ? "Column parallel"
                                   : "Whole";
}
static const char *product_leaf(const Product *q) {
    return words_leaf(q->w->module && *words_leaf(q->w->module) ? q->w->module : q->w->plan_name);
}
static const char *heading(ShardPen *p, const Product *q, const DimCut *out, const DimCut *in) {
    return arena_printf(p->c->arena, "%s: %s", product_leaf(q), kind_words(out, in));
}
/* "[10, 512] · [512, 512] → [10, 512]" on a rank. */
static const char *numbers_on(ShardPen *p, const Product *q, int64_t rank) {
    Arena *a = p->c->arena;
    const TraceLocal *x = words_find_local(&q->x->shape, rank),
                     *w = words_find_local(&q->w->compute, rank),
                     *y = words_find_local(&q->y->shape, rank);
    if (!x || !w || !y) return "nothing";
    int64_t turned[2] = {w->shape[1], w->shape[0]};
    return arena_printf(a, "%s · %s → %s", words_shape(a, x->shape, q->x->shape.nd),
                        words_shape(a, turned, 2), words_shape(a, y->shape, q->y->shape.nd));
}
static const char *numbers(ShardPen *p, const Product *q) { return numbers_on(p, q, p->rank); }
/* "21.0 MFLOP, then AllReduce over tp: sends 120 KiB and has [10, 2048]" */
static const char *sends(ShardPen *p, const Product *q) {
    Arena *a = p->c->arena;
    const char *flops = count_text(q->op->flops, a);
    if (!q->coll)
        return arena_printf(a, "%s%sFLOP, then nothing is sent", flops,
                            strchr(flops, ' ') ? "" : " ");
    const CollWord *word = coll_word(q->coll->op);
    if (wrong_skipped(q->coll))
        return arena_printf(a, "%s%sFLOP, then nothing is sent: the %s over %s is left out", flops,
                            strchr(flops, ' ') ? "" : " ", word ? word->name : q->coll->op,
                            words_axis_list(a, p->c->t, q->coll->axis));
    const TraceValue *end = trace_value(p->c->t, q->coll->value, q->coll->step);
    const TraceLocal *l = end ? words_find_local(&end->shape, p->rank) : NULL;
    return arena_printf(a, "%s%sFLOP, then %s over %s: sends %s%s%s", flops,
                        strchr(flops, ' ') ? "" : " ", word ? word->name : q->coll->op,
                        words_axis_list(a, p->c->t, q->coll->axis),
                        bytes_text(q->coll->bytes_sent, a), l ? " and has " : "",
                        l ? words_shape(a, l->shape, end->shape.nd) : "");
}

/* What stands under an operand; it and the operand share a slot of the width of the wider. */
typedef struct {
    const char *name, *shape, *where;
    Role role;
} Caption;
static double slot_width(ShardPen *p, double w, const Caption *c) {
    return fmax(
        fmax(w, scene_width(p->s, 13, SEMIBOLD, c->name)),
        fmax(scene_width(p->s, 12, REGULAR, c->shape), scene_width(p->s, 12, SEMIBOLD, c->where)));
}
static void draw_caption(ShardPen *p, const Caption *c, double mid, double y) {
    scene_text(p->s, mid, y, (TextLook){ALIGN_MIDDLE, 13, SEMIBOLD, ROLE_INK}, c->name);
    scene_text(p->s, mid, y + 17, (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_INK}, c->shape);
    scene_text(p->s, mid, y + 33,
               (TextLook){ALIGN_MIDDLE, 12, c->role == ROLE_SECOND ? REGULAR : SEMIBOLD, c->role},
               c->where);
}
static void operand(ShardPen *p, const DimCut *r, const DimCut *k, Area at) {
    shards_draw_copies(p, r, k, at);
    shards_draw_parts(p, r, k, at);
    DimCut lines_r = *r, lines_k = *k;
    lines_r.part = lines_k.part = NULL; /* the index of the cut stands under the matrices above */
    if (r->n > 1 && at.h / (double)r->n >= 4) shards_draw_cuts(p, &lines_r, true, at);
    if (k->n > 1 && at.w / (double)k->n >= 4) shards_draw_cuts(p, &lines_k, false, at);
}
static const char *where(ShardPen *p, const DimCut *k, const char *piece) {
    if (k->n < 2) return p->c->t->ranks > 1 ? "on every rank" : "";
    return arena_printf(p->c->arena, "%s cut by %s", piece, shards_axes(p->c->arena, p->c->t, k));
}

/* The terms of a pending sum below each other. */
static void draw_terms(ShardPen *p, const Product *q, double x, double mid, double w, double h) {
    const double gap = 16;
    int64_t n = q->coll ? groups_size(&q->coll->groups) : 2;
    int shown = n > TERMS ? TERMS : (int)n;
    int64_t group = q->coll ? words_group_of(&q->coll->groups, p->rank) : -1;
    double top = mid - (shown * h + (shown - 1) * gap) / 2;
    for (int i = 0; i < shown; i++) {
        int tone = shards_shade(i, shown);
        bool last = n > TERMS && i == shown - 1;
        int64_t rank =
            q->coll && group >= 0 ? groups_member(&q->coll->groups, group, last ? n - 1 : i) : i;
        double y = top + i * (h + gap);
        const char *who = q->coll ? arena_printf(p->c->arena, "%lld", (long long)rank) : "?";
        double tw = scene_width(p->s, 12, SEMIBOLD, who) + 10;
        scene_rect(p->s, (Area){x, y, w, h}, 0, (Look){ROLE_SHARD + tone, ROLE_WEIGHT_LINE, 1.25});
        scene_hatch(p->s, (Area){x, y, w, h}, ROLE_SHARD_TEXT + tone, 5, 0.6);
        scene_rect(p->s, (Area){x + w / 2 - tw / 2, y + 2, tw, h - 4}, 0,
                   (Look){ROLE_SHARD + tone, ROLE_NONE, 0})
            ->ground = true;
        scene_text(p->s, x + w / 2, y + h / 2 + 4.3,
                   (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT + tone}, who);
        if (rank == p->rank)
            scene_rect(p->s, (Area){x, y, w, h}, 0, (Look){ROLE_NONE, ROLE_INK, 2.25});
        if (i)
            scene_text(p->s, x + w / 2, y - 3.5, (TextLook){ALIGN_MIDDLE, 13, SEMIBOLD, ROLE_INK},
                       last ? "+ … +" : "+");
    }
}

/* What is said of the collective that is not as the plan asks for or as it should be; NULL: it is.
 */
static const char *sum_state(ShardPen *p, const Product *q) {
    int k = q->coll ? wrong_number(p->wrong, q->coll->step) : 0;
    if (k) return p->wrong->note[k - 1].text;
    if (q->coll && q->coll->inferred) return "No line of the plan asks for this collective";
    return NULL;
}

/* The collective that adds the terms up, to the right of them if there is room; returns its right
 * end, 0: it is not drawn. */
static double draw_sum(ShardPen *p, const Product *q, double at, double mid, bool sum) {
    if (!q->coll) return 0;
    Scene *s = p->s;
    Arena *a = p->c->arena;
    const CollWord *word = coll_word(q->coll->op);
    const char *name = word ? word->name : q->coll->op;
    const char *over = words_done(
        a, arena_printf(a, "over %s", words_axis_list(a, p->c->t, q->coll->axis)), q->coll);
    double room = p->x + p->w - at - 30, hw = 34 + fmax(scene_width(s, 13, SEMIBOLD, name),
                                                        scene_width(s, 12, REGULAR, over) - 4);
    if (hw > room) return 0;
    Pt go[2] = {{at + 6, mid}, {at + 30, mid}};
    Hexagon x = hexagon_of(q->coll, at + 30, mid - 21, hw, 42);
    x.id = arena_printf(a, "collective-%d", q->coll->step);
    Str tip = str_new(a);
    str_add(&tip, sends(p, q));
    tip_inferred(&tip, q->coll);
    x.tip = tip.s;
    x.wrong = wrong_number(p->wrong, q->coll->step) > 0;
    x.line[0] = (HexagonLine){name, mid - 2, 13, SEMIBOLD};
    x.line[1] = (HexagonLine){over, mid + 14, 12, REGULAR};
    x.list = p->wrong, x.flag_x = x.x + 11, x.flag_y = x.y;
    scene_arrow(s, go, 2, (ArrowLook){ROLE_INK, 1.5, false, sum}, hexagon_draw(s, &x, NULL));
    return at + 30 + hw;
}

/* What the collective leaves, behind it if there is room: a part of the sum, or all of it on every
 * rank. */
static void draw_result(ShardPen *p, const Product *q, double at, double mid, double h) {
    const TraceValue *v = q->coll && !wrong_skipped(q->coll)
                              ? trace_value(p->c->t, q->coll->value, q->coll->step)
                              : NULL;
    if (!v || v->shape.nd < 1 || at <= 0) return;
    DimCut r = row_cut(p, &v->shape), k = last_cut(p, &v->shape);
    Caption cap = {shards_name(p, v), words_shape(p->c->arena, v->shape.global_shape, v->shape.nd),
                   where(p, k.n > 1 ? &k : &r, k.n > 1 ? "columns" : "rows"), ROLE_SECOND};
    const double room = p->x + p->w - at - 36, w = fmin(150, room), x = at + 30,
                 need = slot_width(p, 0, &cap);
    if (w < 60 || need > room) return;
    Pt go[2] = {{at + 4, mid}, {x - 4, mid}};
    if (k.n < 2 && r.n > 1) h = fmin(96, 18 * (double)r.n); /* a label in each row */
    scene_arrow(p->s, go, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, -1);
    operand(p, &r, &k, (Area){x, mid - h / 2, w, h});
    draw_caption(p, &cap, x + fmax(w, need) / 2, mid + h / 2 + 24);
}

/* The sentence behind a title of width `title`, or under it where the page is narrow; returns its
 * lines. */
static int draw_story(ShardPen *p, const char *story, double title, double top) {
    bool narrow = p->w < NARROW;
    double x = narrow ? p->x : p->x + title + 14, y = top + 12 + (narrow ? 17.0 : 0);
    const char *line[2];
    int n = scene_wrap(p->s, story,
                       (TextColumn){narrow ? p->w : p->w - title - 14, 12, REGULAR, 2, NULL}, line);
    for (int i = 0; i < n; i++)
        scene_text(p->s, x, y + 16 * i, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, line[i]);
    return n;
}

/* The sentences under a product from the baseline y on; returns that of the last. */
static double draw_said(ShardPen *p, const Product *q, double y) {
    Scene *s = p->s;
    const char *state = sum_state(p, q), *line[3];
    bool wrong = q->coll && wrong_number(p->wrong, q->coll->step);
    TextLook look = {ALIGN_LEFT, 12, SEMIBOLD, wrong ? ROLE_FAIL : ROLE_SECOND};
    int n = state ? scene_wrap(s, state, (TextColumn){p->w, 12, SEMIBOLD, 3, NULL}, line) : 0;
    for (int i = 0; i < n; i++, y += 17) scene_text(s, p->x, y, look, line[i]);
    scene_textf(s, p->x, y, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK},
                "Rank %lld computes %s", (long long)p->rank, numbers(p, q));
    scene_text(s, p->x, y + 17, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               scene_fit(s, sends(p, q), p->w, 12, REGULAR));
    return y + 17;
}

/* ---- rank by rank ---- */

enum { GHOST = 15, GHOST_LINE = 24, GHOST_END = 470 };
/* One operand of a product, and what of it is the part of which rank. */
typedef struct {
    DimCut r, k; /* its rows and columns */
    double x, w;
    bool term; /* of a pending sum: all of it */
} Operand;
/* The lowest rank that has part i; the pen's rank where it is its. */
static int64_t holder(const ShardPen *p, const DimCut *c, int64_t i) {
    const Trace *t = p->c->t;
    if (shards_part_of(t, c, p->rank) == i) return p->rank;
    for (int64_t rank = 0; rank < t->ranks; rank++)
        if (shards_holds(c, rank) && shards_part_of(t, c, rank) == i) return rank;
    return p->rank;
}
/* The whole operand as an outline, the rank's part of it filled. */
static void draw_ghost(ShardPen *p, const Operand *o, int64_t rank, int tone, double y) {
    const Trace *t = p->c->t;
    const int64_t i = shards_part_of(t, &o->r, rank), j = shards_part_of(t, &o->k, rank);
    const bool whole = o->r.n * o->k.n < 2;
    const double x0 = shards_band_at(&o->k, j, o->w), x1 = shards_band_at(&o->k, j + 1, o->w),
                 y0 = shards_band_at(&o->r, i, GHOST), y1 = shards_band_at(&o->r, i + 1, GHOST);
    Area own = {o->x + x0, y + y0, x1 - x0, y1 - y0};
    scene_rect(p->s, (Area){o->x, y, o->w, GHOST}, 0, (Look){ROLE_PAPER, ROLE_FAINT, 1})->ground =
        true;
    scene_rect(p->s, own, 0,
               (Look){whole && !o->term ? ROLE_PAPER : ROLE_SHARD + tone, ROLE_WEIGHT_LINE, 1});
    if (o->term) scene_hatch(p->s, own, ROLE_SHARD_TEXT + tone, 5, 0.6);
}
/* Under a product on a slide with room: what of it each of a few ranks has. Returns the y under it.
 */
static double draw_ranks(ShardPen *p, const Product *q, const Operand o[3], double y) {
    Scene *s = p->s;
    const DimCut *cut = o[1].k.n > 1 ? &o[1].k : &o[1].r;
    const double x = o[2].x + o[2].w + 24, end = y + 24 + GHOST_LINE * (double)cut->n;
    const TextLook words = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND};
    bool fits = p->preset == PRESET_SLIDE && p->product != SHARDS_ALL && cut->n > 1 &&
                cut->n <= TERMS && o[1].r.n * o[1].k.n == cut->n && cut->blocks == 1 &&
                end <= GHOST_END;
    for (int64_t i = 0; fits && i < cut->n; i++)
        fits = x + 52 + scene_width(s, 12, REGULAR, numbers_on(p, q, holder(p, cut, i))) <=
               p->x + p->w;
    if (!fits) return y;
    scene_text(s, p->x, y + 12, words, "each rank has its part, and multiplies");
    for (int64_t i = 0; i < cut->n; i++) {
        const int64_t rank = holder(p, cut, i);
        const double at = y + 24 + GHOST_LINE * (double)i;
        scene_begin(s, "rank", arena_printf(p->c->arena, "product-rank-%lld", (long long)rank),
                    numbers_on(p, q, rank));
        for (int k = 0; k < 3; k++) draw_ghost(p, &o[k], rank, shards_shade(i, cut->n), at);
        scene_textf(s, x, at + 12, (TextLook){ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK}, "rank %lld",
                    (long long)rank);
        scene_text(s, x + 52, at + 12, words, numbers_on(p, q, rank));
        scene_end(s);
    }
    return end;
}

static double draw_product(ShardPen *p, const Product *q, double top, double per) {
    Scene *s = p->s;
    Arena *a = p->c->arena;
    const Trace *t = p->c->t;
    bool narrow = p->w < NARROW, sum = pending(q->y);
    DimCut out = weight_cut(p, q->w, 0), in = weight_cut(p, q->w, 1), x = last_cut(p, &q->x->shape),
           y = last_cut(p, &q->y->shape), rx = row_cut(p, &q->x->shape),
           ry = row_cut(p, &q->y->shape);
    const double bar = 24, gap = narrow ? 34 : 48;
    double wi = fmax(24, per * (double)q->w->compute.global_shape[1]),
           wo = fmax(24, per * (double)q->w->compute.global_shape[0]);
    int64_t terms = sum && q->coll ? groups_size(&q->coll->groups) : sum ? 2 : 1;
    double stack = (terms > TERMS ? TERMS : (double)terms) * (bar + 16) - 16,
           high = fmax(fmax(wi, stack), bar) + 12;
    const char *leaf = product_leaf(q);
    scene_begin(s, "product", arena_printf(a, "product-%d", q->op->step), numbers(p, q));
    double tw = scene_text(s, p->x, top + 12, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK},
                           heading(p, q, &out, &in));
    int lines = draw_story(p, story(q, &out, &in), tw, top);
    double mid = top + 24 + (narrow ? 17 * lines : 0) + high / 2, caption = mid + high / 2 + 18;
    const char *wshape = words_shape(
        a, (const int64_t[]){q->w->compute.global_shape[1], q->w->compute.global_shape[0]}, 2);
    const char *yshape = words_shape(a, q->y->shape.global_shape, q->y->shape.nd);
    Caption cap[3] = {{shards_name(p, q->x),
                       words_shape(a, q->x->shape.global_shape, q->x->shape.nd),
                       where(p, x.n > 1 ? &x : &rx, x.n > 1 ? "columns" : "rows"), ROLE_SECOND},
                      {arena_printf(a, "%s transposed", leaf), wshape,
                       in.n > 1 ? where(p, &in, "rows") : where(p, &out, "columns"), ROLE_SECOND},
                      {shards_name(p, q->y), yshape,
                       where(p, y.n > 1 ? &y : &ry, y.n > 1 ? "columns" : "rows"), ROLE_SECOND}};
    if (sum) {
        cap[2].shape = arena_printf(a, "%lld × %s", (long long)terms, yshape);
        cap[2].where = arena_printf(a, "Σ %s pending", words_axis_list(a, t, q->y->shape.pending));
        cap[2].role = ROLE_AXIS_TEXT + theme_axis(q->y->shape.pending);
    }
    const double size[3] = {wi, wo, wo};
    Operand part[3] = {{rx, x, 0, wi, false}, {in, out, 0, wo, false}, {ry, y, 0, wo, sum}};
    double at = p->x;
    for (int i = 0; i < 3; i++) {
        double slot = slot_width(p, size[i], &cap[i]), left = at + (slot - size[i]) / 2;
        part[i].x = left;
        if (i)
            scene_text(s, at - gap / 2 + 2, mid + 6,
                       (TextLook){ALIGN_MIDDLE, 16, SEMIBOLD, ROLE_INK}, i == 1 ? "×" : "=");
        if (i == 0) operand(p, &rx, &x, (Area){left, mid - bar / 2, wi, bar});
        if (i == 1) operand(p, &in, &out, (Area){left, mid - wi / 2, wo, wi});
        if (i == 2 && !sum) operand(p, &ry, &y, (Area){left, mid - bar / 2, wo, bar});
        if (i == 2 && sum) draw_terms(p, q, left, mid, wo, bar);
        draw_caption(p, &cap[i], at + slot / 2, caption);
        at += slot + (i < 2 ? gap : 0);
        if (i == 2) at -= (slot - size[i]) / 2;
    }
    draw_result(p, q, draw_sum(p, q, at, mid, sum), mid, bar);
    double end = draw_said(p, q, caption + 57);
    scene_end(s);
    return draw_ranks(p, q, part, end + 21);
}

int shards_products(ShardPen *p) {
    Product q[MOST];
    return find_products(p, q);
}
double shards_draw_products(ShardPen *p, double top) {
    Product q[MOST];
    int n = find_products(p, q);
    double side = 1, wide = 1;
    if (n == 0) return top;
    for (int i = 0; i < n; i++) {
        double in = (double)q[i].w->compute.global_shape[1],
               out = (double)q[i].w->compute.global_shape[0];
        side = fmax(side, in);
        wide = fmax(wide, in + 2 * out);
    }
    bool narrow = p->w < 700;
    double per = fmin((narrow ? 120 : 170) / side, (p->w - (narrow ? 100 : 280)) / wide);
    double y = top;
    scene_text(p->s, p->x, y + 12, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, "Products");
    if (!narrow)
        scene_text(p->s, p->x + 92, y + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   "y = x·W transposed; one scale, the sides of tokens not to it");
    y += 30;
    for (int i = 0; i < n; i++)
        if (p->product == SHARDS_ALL || p->product == i) y = draw_product(p, &q[i], y, per);
    return y;
}

const char *shards_product_title(ShardPen *p) {
    Product q[MOST];
    if (p->product < 0 || p->product >= find_products(p, q)) return "";
    DimCut out = weight_cut(p, q[p->product].w, 0), in = weight_cut(p, q[p->product].w, 1);
    return heading(p, &q[p->product], &out, &in);
}

const char *shards_products_text(ShardPen *p) {
    Product q[MOST];
    int n = find_products(p, q);
    int w = furniture_columns(p->c->o);
    Str s = str_new(p->c->arena);
    for (int i = 0; i < n; i++) {
        DimCut out = weight_cut(p, q[i].w, 0), in = weight_cut(p, q[i].w, 1);
        str_add(&s, "\n");
        words_paragraph(&s, "", heading(p, &q[i], &out, &in), w);
        words_paragraph(&s, "    ", story(&q[i], &out, &in), w);
        words_paragraph(&s, "    ",
                        arena_printf(p->c->arena, "rank %lld computes %s", (long long)p->rank,
                                     numbers(p, &q[i])),
                        w);
        words_paragraph(&s, "    ", sends(p, &q[i]), w);
        if (sum_state(p, &q[i])) words_paragraph(&s, "    ", sum_state(p, &q[i]), w);
    }
    return s.n ? s.s : "";
}
