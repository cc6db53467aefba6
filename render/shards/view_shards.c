/* View `shards`: which part of every weight and activation a rank holds. Weights as matrices at one
 * scale with the cuts in the colour of their axis; activations as rulers, one per dim, which works
 * for any number of dims. */
#include "base/text.h"
#include "render/graph/block_read.h"
#include "render/shards/shards_draw.h"
#include "render/shards/shards_experts.h"
#include "render/shards/shards_grid.h"
#include "render/shards/shards_load.h"
#include "render/shards/shards_ring.h"
#include "render/shards/shards_tiles.h"
#include "render/shards/shards_values.h"
#include "render/shards/shards_which.h"
#include "render/furniture/headline.h"
#include "render/furniture/views.h"
#include "trace/trace_way.h"
#include <math.h>
#include <string.h>

enum {
    MAX_LABELS = SHARDS_MAX_LABELS,
    MAX_CUT_LINES = SHARDS_MAX_LINES,
    SLIDE_LINES = 6,
    A4_LINES = 14,
    GAP = 20,
    MIN_CUT = 5,
    BESIDE = 330,
    BESIDE_GAP = 36,
    WORDS_BASE = 12, /* from the top of a line of words to its baseline */
    TILES_UNDER = 22
};

/* The longest side of a layer's matrices, to begin with. */
static const double longest[PRESET_COUNT] = {
    [PRESET_WIDE] = 230, [PRESET_COLUMN] = 190, [PRESET_SLIDE] = 180, [PRESET_A4] = 230};

/* Layers of the trace's weights: all if they are few, else the asked one or the first that the rank
 * asked for has any of. */
static int choose_layer(const ViewCall *c) {
    int matrices = 0, first = -1;
    for (int i = 0; i < c->t->n_params; i++) {
        const TraceParam *q = &c->t->params[i];
        matrices += q->compute.nd == 2;
        if (q->layer < 0 || !words_find_local(&q->rest, c->o->rank < 0 ? 0 : c->o->rank)) continue;
        if (first < 0 || q->layer < first) first = q->layer;
    }
    return c->o->layer >= 0 ? c->o->layer : matrices > 12 ? first : -1;
}

/* From what the rank has of it, or, where another stage has it, from what a rank there has. */
static int64_t whole_bytes(const TraceShape *s, int64_t rank) {
    const TraceLocal *l = words_find_local(s, rank);
    double local = 1, whole = 1;
    if (!l && s->n_local) l = &s->local[0];
    for (int i = 0; i < s->nd; i++) whole *= (double)s->global_shape[i];
    for (int i = 0; l && i < s->nd; i++) local *= (double)l->shape[i];
    return l && local > 0 ? (int64_t)((double)l->bytes * (whole / local) + 0.5)
           : s->n_local   ? s->local[0].bytes
                          : 0;
}

/* Sides of a matrix on paper, large enough to be seen; what is larger than the others by far (an
 * embedding) is drawn smaller by the factor that is returned, and its caption says so. */
static double matrix_size(const ShardPen *p, const TraceParam *q, double *w, double *h) {
    double rows = p->scale * (double)q->rest.global_shape[0],
           cols = p->scale * (double)q->rest.global_shape[1];
    double shrunk = fmax(1, fmax(rows, cols) / p->most);
    if (shrunk > 3) shrunk = ceil(shrunk); /* "drawn at 1/9" */
    *h = fmax(shrunk > 1 ? 14 : 5, rows / shrunk);
    *w = fmax(shrunk > 1 ? 14 : 5, cols / shrunk);
    return shrunk;
}

static const char *copies_text(ShardPen *p, const DimCut *r, const DimCut *k) {
    int64_t copies = shards_copies(p->c->t, r, k);
    return copies > 1 ? arena_printf(p->c->arena, "%lld copies", (long long)copies) : "";
}

typedef struct {
    const TraceParam *q; /* the first of those that are alike */
    int alike;           /* their number */
    bool unlike;         /* not so in the other plan */
    const char *name, *tip;
    DimCut r, k;
    double label; /* width of the widest owners of a part; 0: parts have no room for them at any
                     scale */
    double w, h, room, left; /* drawn size, width of the slot, room for an index at the left */
    double slack;            /* of the room beside the matrix, what the next one's index may take */
    double far_h;            /* height and lines of words of the matrix that faces it */
    int far_line;
    bool first;     /* begins a line */
    ShardTile tile; /* its place on a slide */
    int n_line;
    const char *line[12];
} Slot;

/* Does the plan say of the weight that it lies as it does not? */
static bool claimed(const Trace *t, const TraceParam *q) {
    for (int i = 0; i < t->n_moves; i++)
        if (text_same(t->moves[i].value, q->rest.name) && words_declares(&t->moves[i])) return true;
    return false;
}

/* The words under a matrix; returns the number of lines. */
static int caption(ShardPen *p, const Slot *slot, double shrunk, const char **line) {
    const TraceParam *q = slot->q;
    const DimCut *r = &slot->r, *k = &slot->k;
    Arena *a = p->c->arena;
    const TraceLocal *l = words_find_local(&q->rest, p->rank);
    const char *style = words_style(q->style), *copies = copies_text(p, r, k);
    int n = 0;
    style = style ? style : r->n * k->n > 1 ? "cut at rest" : "whole";
    line[n++] = *copies ? arena_printf(a, "%s, %s", style, copies) : style;
    line[n++] = words_symbol(a, q->rest.symbolic);
    line[n++] = l ? words_shape(a, l->shape, q->rest.nd) : "nothing here";
    const char *rows = shards_range(a, p->c->t, r, p->rank),
               *cols = shards_range(a, p->c->t, k, p->rank);
    if (rows && cols && r->n * k->n > 1) line[n++] = arena_printf(a, "[%s, %s]", rows, cols);
    line[n++] = arena_printf(a, "%s%s", l ? bytes_text(l->bytes, a) : "0 B",
                             slot->alike > 1 ? " each" : "");
    if (shrunk > 1.001) line[n++] = arena_printf(a, "drawn at 1/%.3g", shrunk);
    if (r->n * k->n > SHARDS_MAX_LABELS)
        line[n++] = r->n > 1 && k->n > 1
                        ? arena_printf(a, "%lld × %lld parts", (long long)r->n, (long long)k->n)
                        : arena_printf(a, "%lld parts", (long long)(r->n * k->n));
    const DimCut *uneven = r->uneven ? r : k->uneven ? k : NULL;
    if (uneven) line[n++] = shards_sizes(a, uneven);
    if (q->rest.symbolic && q->compute.symbolic && strcmp(q->rest.symbolic, q->compute.symbolic)) {
        line[n++] = claimed(p->c->t, q) ? "is taken for" : "computes with";
        line[n++] = words_symbol(a, q->compute.symbolic);
    }
    return n;
}

static const char *param_tip(ShardPen *p, const TraceParam *q) {
    Str s = str_new(p->c->arena);
    tip_add(&s, "", q->plan_name ? q->plan_name : q->rest.name);
    for (int i = 0; i < q->n_placements && i < p->c->t->n_axes; i++)
        str_addf(&s, "%s%s: %s", i ? ", " : "\n", p->c->t->axes[i].name, q->placements[i]);
    if (q->file && q->line > 0) str_addf(&s, "\nplan line %s:%d", words_file(q->file), q->line);
    return s.s;
}

/* Sizes and words of a matrix at the pen's scale. */
static void size_slot(ShardPen *p, Slot *s) {
    double shrunk = matrix_size(p, s->q, &s->w, &s->h);
    s->n_line = caption(p, s, shrunk, s->line);
    s->left = 0;
    if (s->r.n > 1 && s->r.n <= MAX_CUT_LINES && s->r.part)
        s->left = 12 + scene_width(p->s, 12, REGULAR,
                                   arena_printf(p->c->arena, "%lld",
                                                (long long)(s->r.part[0] / s->r.blocks)));
    s->room =
        fmax(s->w + shards_stack(p->c->t, &s->r, &s->k), scene_width(p->s, 15, BOLD, s->name));
    for (int i = 0; i < s->n_line; i++)
        s->room = fmax(s->room, scene_width(p->s, i ? 12 : 12.5, i ? REGULAR : MEDIUM, s->line[i]));
    s->slack = fmax(0, s->room - s->w - shards_stack(p->c->t, &s->r, &s->k) - 14);
}
/* What slot i needs at its left: less if the one before it leaves some. */
static double slot_left(const Slot *slot, int i) {
    return slot[i].first ? slot[i].left : fmax(0, slot[i].left - slot[i - 1].slack);
}

/* Do both lie alike, and compute so? */
static bool lie_alike(const TraceParam *a, const TraceParam *b) {
    bool same = text_same(a->style ? a->style : "", b->style ? b->style : "") &&
                text_same(a->rest.symbolic, b->rest.symbolic) &&
                text_same(a->compute.symbolic, b->compute.symbolic) && a->rest.nd == b->rest.nd;
    for (int d = 0; same && d < a->rest.nd; d++)
        same = a->rest.global_shape[d] == b->rest.global_shape[d] &&
               text_same(a->cuts[d] ? a->cuts[d] : "", b->cuts[d] ? b->cuts[d] : "");
    return same;
}
/* Would both be one picture, with the same words under it? */
static bool same_picture(const ShardPen *p, const TraceParam *a, const TraceParam *b) {
    return lie_alike(a, b) && !a->planted && !b->planted && shards_wrong_of(p, a) < 0 &&
           shards_wrong_of(p, b) < 0;
}
/* Does the other plan's rank hold the weight otherwise, or nothing of that name? */
static bool slot_unlike(const ShardPen *p, const Slot *s) {
    const Trace *t = p->peer ? p->peer->c->t : NULL;
    const TraceLocal *l = words_find_local(&s->q->rest, p->rank), *k;
    bool like = !t;
    for (int i = 0; t && i < t->n_params && !like; i++) {
        const TraceParam *q = &t->params[i];
        if (!text_same(q->rest.name, s->q->rest.name) || !lie_alike(q, s->q) ||
            !q->planted != !s->q->planted)
            continue;
        k = words_find_local(&q->rest, p->peer->rank);
        like = !l == !k;
        for (int d = 0; d < q->rest.nd && like && l && k; d++) like = l->shape[d] == k->shape[d];
    }
    return !like;
}
static void mark_slot(ShardPen *p, const Slot *s, Area at) {
    unsigned legend = 0; /* the flag and the sentence under the title say what red is */
    const int step = shards_wrong_of(p, s->q);
    if (step < 0) return;
    wrong_border(scene_rect(p->s, at, 0, (Look){ROLE_NONE, ROLE_FAIL, 3}), &legend);
    wrong_flag(p->s, p->wrong, step, at.x, at.y);
}

/* With its name at (x, y), and the first of its words at that baseline. */
static void draw_slot(ShardPen *p, const Slot *s, double x, double y, Pt words) {
    scene_begin(p->s, "weight", arena_printf(p->c->arena, "weight-%s", s->q->rest.name), s->tip);
    scene_text(p->s, x, y + 12, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, s->name);
    if (s->unlike)
        figure_unlike(p->s, (Pt){x, y + 16}, scene_width(p->s, 15, BOLD, s->name), NOT_SO,
                      p->legend);
    Area at = {x, y + 30, s->w, s->h};
    shards_draw_copies(p, &s->r, &s->k, at);
    shards_draw_parts(p, &s->r, &s->k, at);
    shards_draw_cuts(p, &s->r, true, at);
    shards_draw_cuts(p, &s->k, false, at);
    mark_slot(p, s, at);
    for (int i = 0; i < s->n_line; i++)
        scene_text(p->s, words.x, words.y + 17 * i,
                   (TextLook){ALIGN_LEFT, i ? 12 : 12.5, i ? REGULAR : MEDIUM,
                              i > 1 ? ROLE_SECOND : ROLE_INK},
                   s->line[i]);
    scene_end(p->s);
}

/* With the index under it. */
static double slot_height(const Slot *s) { return s->h + (s->k.n > 1 ? 20 : 0); }
/* Where the line that begins at slot i ends, and its width with the smallest gaps. */
static int line_end(const Slot *slot, int n, int i, double *w, double *high, int *words) {
    *w = -GAP, *high = 0, *words = 0;
    for (int k = i;; k++) {
        if (k == n || (k > i && slot[k].first)) return k;
        *w += slot_left(slot, k) + slot[k].room + GAP;
        *high = fmax(*high, fmax(slot_height(&slot[k]), slot[k].far_h));
        *words = slot[k].n_line > *words ? slot[k].n_line : *words;
        *words = slot[k].far_line > *words ? slot[k].far_line : *words;
    }
}

/* Fills lines of width w from the left; returns their number. */
static int fill_lines(Slot *slot, int n, double w) {
    double x = 0;
    int lines = 0;
    for (int i = 0; i < n; i++) {
        slot[i].first = i == 0;
        slot[i].first = i == 0 || x + slot_left(slot, i) + slot[i].room > w;
        lines += slot[i].first;
        x = (slot[i].first ? 0 : x) + slot_left(slot, i) + slot[i].room + GAP;
    }
    return lines;
}

/* As few lines as width w allows, and these as equal as they can be, so that no matrix falls alone
 * on the last. */
static int break_lines(Slot *slot, int n, double w) {
    int lines = fill_lines(slot, n, w);
    while (lines > 1 && w > 60 && fill_lines(slot, n, w - 10) == lines) w -= 10;
    return fill_lines(slot, n, w);
}

/* All matrices in lines; returns the y under them. */
static double draw_matrices(ShardPen *p, const Slot *slot, int n, double y) {
    double w, high,
        gap = 56; /* what a line leaves free goes between the matrices, alike in all lines */
    int words;
    for (int i = 0, k; i < n; i = k) {
        k = line_end(slot, n, i, &w, &high, &words);
        if (k - i > 1) gap = fmin(gap, GAP + (p->w - w) / (k - i - 1));
    }
    for (int i = 0; i < n;) {
        int k = line_end(slot, n, i, &w, &high, &words);
        double x = p->x, table = y + 30 + high + 30;
        scene_segment(p->s, (Pt){p->x, table - 20}, (Pt){p->x + p->w, table - 20}, ROLE_GRID, 1);
        for (; i < k; i++) {
            x += slot_left(slot, i);
            draw_slot(p, &slot[i], x, y, (Pt){x, table});
            x += slot[i].room + fmax(gap, 0);
        }
        y = table + 17 * words + 16;
    }
    return y;
}

/* The tile of a slide that a matrix takes at the pen's scale. */
static ShardTile tile_of(ShardPen *p, const Slot *s) {
    ShardTile t = {.left = s->left,
                   .w = s->w + shards_stack(p->c->t, &s->r, &s->k),
                   .h = slot_height(s),
                   .name_w = scene_width(p->s, 15, BOLD, s->name),
                   .words_h = 17 * s->n_line};
    for (int i = 0; i < s->n_line; i++)
        t.words_w =
            fmax(t.words_w, scene_width(p->s, i ? 12 : 12.5, i ? REGULAR : MEDIUM, s->line[i]));
    return t;
}
/* The matrices of a slide, where their tiles are; returns the y under them. */
static double draw_tiles(ShardPen *p, const Slot *slot, int n, double y) {
    double low = y;
    for (int i = 0; i < n; i++) {
        const ShardTile *t = &slot[i].tile;
        const double words = y + t->words.y;
        draw_slot(p, &slot[i], p->x + t->at.x, y + t->at.y,
                  (Pt){p->x + t->words.x, words + WORDS_BASE});
        low = fmax(low, fmax(words + t->words_h, y + t->at.y + TILE_NAME + t->h));
    }
    return low + TILES_UNDER;
}

/* ---- the page ---- */

/* Of an axis that the plan splits because a weight has fewer parts than it has ranks: what the
 * halves are. */
static void split_words(const Trace *t, Str *s) {
    for (int i = 0; i + 1 < t->n_axes; i++) {
        const struct TraceAxis *x = &t->axes[i], *y = &t->axes[i + 1];
        size_t n = text_before(x->name, ".0");
        if (!n || strncmp(y->name, x->name, n) || strcmp(y->name + n, ".1")) continue;
        str_addf(s,
                 "%s%s and %s: the axis %.*s as %lld times %lld ranks; what %s alone cuts, the "
                 "ranks of %s hold alike",
                 s->n ? " · " : "", x->name, y->name, (int)n, x->name, (long long)x->size,
                 (long long)y->size, x->name, y->name);
    }
}
static const char *vectors(ShardPen *p) {
    Str s = str_new(p->c->arena);
    for (int i = 0; i < p->c->t->n_params; i++) {
        const TraceParam *q = &p->c->t->params[i];
        if (!shards_wanted(p, q) || q->rest.nd != 1) continue;
        str_addf(&s, "%s%s %s", s.n ? ", " : "Vectors: ", words_param(p->c->arena, q),
                 words_symbol(p->c->arena, q->rest.symbolic));
    }
    split_words(p->c->t, &s);
    return s.s;
}

static void sums(ShardPen *p, bool all, int64_t *here, int64_t *whole) {
    *here = *whole = 0;
    for (int i = 0; i < p->c->t->n_params; i++) {
        const TraceParam *q = &p->c->t->params[i];
        const TraceLocal *l = words_find_local(&q->rest, p->rank);
        if (!all && !shards_wanted(p, q)) continue;
        *here += l ? l->bytes : 0;
        *whole += whole_bytes(&q->rest, p->rank);
    }
}

/* "124 KiB of 993 KiB of layer 0's weights". */
static const char *holds(ShardPen *p, bool all) {
    int64_t here, whole;
    Arena *a = p->c->arena;
    const char *of =
        all || p->layer < 0 ? "weights" : arena_printf(a, "layer %d's weights", p->layer);
    sums(p, all, &here, &whole);
    return arena_printf(a, "%s of %s of %s", bytes_text(here, a), bytes_text(whole, a), of);
}

/* One scale for the n slots: the longest side takes `most`. */
static double common_scale(ShardPen *p, const Slot *slot, int n, double most) {
    double inside = 0, all = 1; /* of a layer's weights; those outside (embedding, head) may be many
                                   times longer */
    for (int i = 0; i < n; i++) {
        const TraceParam *q = slot[i].q;
        double side = fmax((double)q->rest.global_shape[0], (double)q->rest.global_shape[1]);
        all = fmax(all, side);
        if (q->layer >= 0) inside = fmax(inside, side);
    }
    p->most = most;
    return most / (inside > 0 ? inside : all);
}

enum { NOTE_LINES = 2 };
/* What the sentences about a wrong plan take under the subtitle. */
static double notes_height(ShardPen *p) {
    return p->wrong->n && wrong_height(p->s, p->wrong, p->w, NOTE_LINES) > 0
               ? wrong_height(p->s, p->wrong, p->w, NOTE_LINES) + 8
               : 0;
}
static void draw_notes(ShardPen *p, double y) {
    wrong_notes(p->s, p->wrong, p->x, p->w, y - 4, NOTE_LINES);
}

/* "one scale": of which those are excepted whose captions say so. */
static const char *scale_words(const ShardPen *p, const Slot *slot, int n) {
    double w, h;
    bool smaller = false;
    for (int i = 0; i < n; i++) smaller |= matrix_size(p, slot[i].q, &w, &h) > 1.001;
    return arena_printf(p->c->arena, "one scale%s%s", p->preset == PRESET_SLIDE ? " on a page" : "",
                        smaller ? " unless a matrix says another" : "");
}

/* Do parts of any matrix say a place, and not the numbers of ranks? */
static bool by_place(const ShardPen *p, const Slot *slot, int n) {
    bool place = false;
    for (int i = 0; i < n && !place; i++) {
        const char *who = shards_owners(p->c->arena, p->c->t, &slot[i].r, 0, &slot[i].k, 0);
        place = slot[i].label > 0 && *who && !strchr("0123456789", *who);
    }
    return place;
}
/* How to read the numbers in parts, and the order of those that are not contiguous, as lines
 * [from, from + count) of values show them. */
static const char *foot_words(ShardPen *p, const Slot *slot, int n, int from, int count) {
    Arena *a = p->c->arena;
    Str s = str_new(a);
    bool bars = count > 0 && shards_values(p) > from;
    if (n > 0 || p->product >= 0)
        str_addf(&s, "In a part: the %sranks that hold it%s. ",
                 by_place(p, slot, n) ? "place on the mesh of the " : "",
                 bars ? ", in a bar its number" : "");
    else str_add(&s, "In a part: its number. ");
    str_add(&s, "Thick outline: this rank's part.");
    if (n > 0) str_add(&s, " Lines: cuts; the shape names their axes.");
    if (n > 0 && p->throughout)
        str_add(&s, " Most matrices lie otherwise than in the other plan and are not marked.");
    if (bars) shards_values_words(p, from, count, &s);
    return s.s;
}
/* The matrices and what is said under them; returns the y under it. */
static double draw_weights(ShardPen *p, const Slot *slot, int n, double y) {
    const char *line[3];
    y = p->preset == PRESET_SLIDE ? draw_tiles(p, slot, n, y) : draw_matrices(p, slot, n, y);
    int k = scene_wrap(p->s, vectors(p), (TextColumn){p->w, 12, REGULAR, 3, NULL}, line);
    ShardPen far = p->peer ? *p->peer : *p;
    const bool unlike = strcmp(vectors(p), vectors(&far)) != 0;
    for (int i = 0; i < k; i++, y += 16) {
        const double w =
            scene_text(p->s, p->x, y, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, line[i]);
        if (unlike) figure_unlike(p->s, (Pt){p->x, y + 3}, w, NOT_SO, p->legend);
    }
    return y;
}
/* The same at the left, and the products that explain them at the right. */
static double draw_beside(ShardPen *p, const Slot *slot, int n, double y) {
    const double x = p->x, w = p->w;
    p->w = p->beside;
    double left = draw_weights(p, slot, n, y);
    p->x = x + p->beside + BESIDE_GAP, p->w = w - p->beside - BESIDE_GAP;
    double right = shards_draw_products(p, y);
    p->x = x, p->w = w;
    return fmax(left, right);
}
/* What stands on a page: of one without weights the headings of what it has instead, and whose. */
static const char *page_title(ShardPen *p, int n, int from, int count) {
    Arena *a = p->c->arena;
    if (n > 0) return arena_printf(a, "Rank %lld holds %s", (long long)p->rank, holds(p, false));
    const char *what = p->product >= 0            ? shards_product_title(p)
                       : count > 0                ? shards_values_title(p, from, count)
                       : p->load & SHARDS_EXPERTS ? "its experts"
                       : p->load & SHARDS_RING    ? "the blocks that come round the ring"
                                                  : "its part of causal attention";
    return arena_printf(a, "Rank %lld · %s%s", (long long)p->rank,
                        p->layer < 0 ? "" : arena_printf(a, "layer %d · ", p->layer), what);
}
/* A page with n weights and `count` lines of values; either may be none. */
static Scene *draw_page(ShardPen *p, const Slot *slot, int n, int from, int count) {
    bool weights = n > 0;
    unsigned legend = 0;
    p->legend = &legend;
    const ViewCall *c = p->c;
    Arena *a = c->arena;
    Scene *s = p->s = figure_new(c, "shards", p->preset);
    const char *model = words_model(a, c->t), *layers = words_layers(a, c->t),
               *model_holds = p->layer >= 0
                                  ? arena_printf(a, "in %s %s", *layers ? layers : "all layers",
                                                 holds(p, true))
                                  : layers;
    const char *sub[] = {model ? model : "",
                         model_holds,
                         words_mesh(a, c->t),
                         c->t->dtype ? c->t->dtype : "",
                         words_shrink(a, c->t),
                         weights ? "rows = outputs, columns = inputs of y = x·W transposed" : "",
                         !weights ? "" : scale_words(p, slot, n),
                         NULL};
    const char *title = page_title(p, n, from, count);
    double y = headline_draw(s, p->preset, p->wrong, title, sub) + 8;
    draw_notes(p, y);
    y += notes_height(p);
    if (weights && p->product >= 0 && p->beside > 0) y = draw_beside(p, slot, n, y);
    else {
        if (weights) y = draw_weights(p, slot, n, y);
        if (p->product >= 0) y = shards_draw_products(p, y + 8);
    }
    if (p->load & SHARDS_EXPERTS) y = shards_draw_experts(p, y + 8);
    if (count > 0) y = shards_draw_values(p, from, count, y + 8);
    if (p->load & SHARDS_RING && shards_ring(p)) y = shards_draw_ring(p, y + 8);
    if (p->load & SHARDS_MASK && shards_load(p)) y = shards_draw_load(p, y + 8);
    if (!(legend >> LEGEND_INFERRED & 1)) legend &= 1u << LEGEND_UNLIKE; /* others need no key */
    if (legend) y = figure_legend(s, (Band){p->x, p->w, y + 2}, legend);
    y = figure_foot(s, c, (Band){p->x, p->w, y + 2}, foot_words(p, slot, n, from, count), NULL);
    s->desc = arena_printf(a, "Which part of every weight and activation rank %lld holds: %s.",
                           (long long)p->rank, holds(p, false));
    figure_page(s, p->preset, y);
    return s;
}

/* Parts of the thinnest cut in px, and the number of matrices whose parts have room for a number.
 */
static double thinnest(const Slot *slot, int n, int *readable) {
    double thin = 1e9;
    *readable = 0;
    for (int i = 0; i < n; i++) {
        const Slot *s = &slot[i];
        double high = s->h / (double)(s->r.n * s->r.blocks),
               wide = s->w / (double)(s->k.n * s->k.blocks);
        if (s->r.n > 1) thin = fmin(thin, high);
        if (s->k.n > 1) thin = fmin(thin, wide);
        *readable += s->label > 0 && high >= 15 && wide >= s->label + 4;
    }
    return thin;
}

/* Sizes all slots so that the longest side of a layer's matrices takes `most`; returns the lines
 * they need, *high their height with words. */
static int lay_out(ShardPen *p, Slot *slot, int n, double most, double *high) {
    double w, h;
    int words;
    p->scale = common_scale(p, slot, n, most);
    for (int i = 0; i < n; i++) size_slot(p, &slot[i]);
    int lines = break_lines(slot, n, p->w);
    *high = 0;
    for (int i = 0; i < n;) {
        i = line_end(slot, n, i, &w, &h, &words);
        double line = 76 + h + 17 * words;
        *high =
            p->preset == PRESET_SLIDE ? fmax(*high, line) : *high + line; /* a slide has one line */
    }
    return lines;
}

/* The height that lines of matrices may take, with their words. */
static double height_room(ShardPen *p) {
    static const double room[PRESET_COUNT] = {
        [PRESET_WIDE] = 1200, [PRESET_COLUMN] = 1e9, [PRESET_SLIDE] = 396, [PRESET_A4] = 760};
    const char *words[3], *rule = wrong_title(p->wrong);
    TextColumn column = {p->w, 12, REGULAR, 3, NULL}, head = {p->w, 18, BOLD, 3, NULL};
    bool slide = p->preset == PRESET_SLIDE;
    int lines = slide ? scene_wrap(p->s, vectors(p), column, words) : 0,
        more = slide && rule ? scene_wrap(p->s, rule, head, words) - 1 : 0; /* of the title */
    return room[p->preset] - 16 * lines - 25 * more - notes_height(p);
}

/* All matrices of the layer; returns their number. */
static int find_slots(ShardPen *p, Slot *slot) {
    const Trace *t = p->c->t;
    int n = 0, unlike = 0;
    for (int i = 0; i < t->n_params; i++) {
        const TraceParam *q = &t->params[i];
        if (!shards_wanted(p, q) || q->rest.nd != 2 || shards_of_all_experts(t, q)) continue;
        Slot *s = &slot[n++];
        *s = (Slot){.q = q,
                    .alike = 1,
                    .name = words_param(p->c->arena, q),
                    .tip = param_tip(p, q),
                    .r = shards_param_cut(p->c->arena, t, q, 0, p->rank),
                    .k = shards_param_cut(p->c->arena, t, q, 1, p->rank)};
        s->label = shards_label_width(p, &s->r, &s->k);
        s->unlike = slot_unlike(p, s);
        unlike += s->unlike;
    }
    p->throughout = 2 * unlike > n; /* what stands everywhere tells nothing apart */
    for (int i = 0; p->throughout && i < n; i++) slot[i].unlike = false;
    return n;
}
/* Neighbours that are one picture become one, "w1, w3"; returns how many are left. */
static int fold_slots(ShardPen *p, Slot *slot, int n) {
    int left = 0;
    for (int i = 0; i < n; i++) {
        Slot *last = left ? &slot[left - 1] : NULL;
        if (last && same_picture(p, last->q, slot[i].q) && last->unlike == slot[i].unlike) {
            last->name = arena_printf(p->c->arena, "%s, %s", last->name, slot[i].name);
            last->tip = arena_printf(p->c->arena, "%s\n%s", last->tip, slot[i].tip);
            last->alike++;
        } else slot[left++] = slot[i];
    }
    return left;
}
/* Do n matrices leave room beside them for their products? Sets how wide they are then, and their
 * scale. */
static bool fit_beside(ShardPen *p, Slot *slot, int n) {
    const double w = p->w;
    double high;
    bool fit = false;
    p->w = BESIDE;
    for (double most = 240; most >= 120 && !fit; most *= 0.95)
        fit = lay_out(p, slot, n, most, &high) == 1;
    p->w = w;
    p->beside = fit ? BESIDE : 0;
    return fit;
}
/* One scale for n matrices: the largest at which they stand in one line; in two lines if that makes
 * the parts thick enough to be told apart, or to carry their numbers. Returns the lines. */
static int scale_slots(ShardPen *p, Slot *slot, int n, double most_side) {
    int read_one = 0, read_two = 0, lines = 0;
    double limit = height_room(p);
    double high, one = 0, two = 0, thin_one = 0, thin_two = 0;
    bool column = p->preset == PRESET_COLUMN;
    /* larger only where the parts would be too thin */
    for (double from = column ? 1 : 1.15; from < 1.6 && (!one || thin_one < MIN_CUT);
         from += 0.35) {
        double found = 0;
        for (double most = most_side * from; most >= most_side * 0.5 && !found; most *= 0.95) {
            lines = lay_out(p, slot, n, most, &high);
            if ((lines == 1 || column) && high <= limit) found = most;
        }
        if (found > one) one = found, thin_one = thinnest(slot, n, &read_one);
    }
    for (double most = most_side * 2.3;
         !column && thin_one < MIN_CUT && most > fmax(one, most_side * 0.4); most *= 0.95) {
        lines = lay_out(p, slot, n, most, &high);
        if (lines > 2 || high > limit) continue;
        int readable;
        double thin = thinnest(slot, n, &readable);
        /* enough is enough, and more is not to be had */
        if (two > 0 && (thin < MIN_CUT || most < most_side)) break;
        two = most, thin_two = thin, read_two = readable;
    }
    bool better = two > 0 && (!one || thin_two >= MIN_CUT || read_two >= read_one + 2);
    return lay_out(p, slot, n, better ? two : one > 0 ? one : most_side * 0.5, &high);
}
/* The matrices and their scale; those that are alike are one picture where all of them would take
 * more than a line. */
static int make_slots(ShardPen *p, Slot *slot) {
    int n = find_slots(p, slot);
    bool wide = p->preset == PRESET_WIDE || p->preset == PRESET_A4;
    if (wide && shards_products(p) && fit_beside(p, slot, n)) return n;
    if (scale_slots(p, slot, n, longest[p->preset]) == 1) return n;
    n = fold_slots(p, slot, n);
    scale_slots(p, slot, n, longest[p->preset]);
    return n;
}

/* Two plans of one model beside each other: what is one matrix in both stands at one place, with
 * the room that either needs. */
static void face_slots(ShardPen *p, Slot *slot, int n) {
    ShardPen far = *p->peer;
    far.peer = p;
    Slot *other = ARENA_ARRAY(p->c->arena, Slot, far.c->t->n_params + 1);
    const int m = far.rank < far.c->t->ranks ? make_slots(&far, other) : 0;
    bool same = m == n;
    for (int i = 0; i < n && same; i++) same = text_same(slot[i].name, other[i].name);
    if (!same) return;
    for (int i = 0; i < n; i++) {
        Slot *s = &slot[i];
        const Slot *o = &other[i];
        s->room = fmax(s->room, o->room), s->left = fmax(s->left, o->left);
        s->far_h = slot_height(o), s->far_line = o->n_line;
        s->slack = fmin(s->slack, o->slack);
    }
    break_lines(slot, n, p->w);
}

/* The matrices of a slide that begins with slot i: a line of them, as columns, at the largest scale
 * at which these have room in the height. Returns the slot after them. */
static int slide_line(ShardPen *p, Slot *slot, int i, int n, double limit) {
    double w, h, high;
    int words, k = line_end(slot, n, i, &w, &h, &words);
    ShardTile *tile = ARENA_ARRAY(p->c->arena, ShardTile, k - i);
    bool fits = false;
    for (double most = p->w; most > 20 && !fits; most *= 0.97) {
        p->scale = common_scale(p, slot + i, k - i, most);
        for (int j = i; j < k; j++) size_slot(p, &slot[j]), tile[j - i] = tile_of(p, &slot[j]);
        fits = shards_tiles(p->c->arena, tile, k - i, p->w, limit, &high);
    }
    for (int j = i; j < k; j++) slot[j].tile = tile[j - i];
    return k;
}

/* The call with the rank's own way of a pipeline that is entered at both ends. */
static ViewCall own_call(const ViewCall *c) {
    ViewCall own = *c;
    int64_t rank = c->o->rank >= 0 && c->o->rank < c->t->ranks ? c->o->rank : 0;
    own.t = trace_own_way(c->t, rank, choose_layer(c), c->arena);
    return own;
}
static void nothing(const ViewCall *c, const ShardPen *p) {
    if (!c->t->n_params) {
        diag_error(c->d, "E0211", diag_nowhere, "views block and storyboard show what it computes",
                   "nothing to draw in view 'shards': the model has no weights");
        return;
    }
    diag_error(c->d, c->o->layer >= 0 || c->o->rank >= 0 ? "E0212" : "E0211", diag_nowhere, NULL,
               "nothing to draw in view 'shards': no weights of layer %d on rank %lld", p->layer,
               (long long)p->rank);
}

/* --part asks for the product of a module. */
static bool part_exists(ShardPen *p) {
    if (!p->c->o->part || shards_products(p)) return true;
    Str s = str_new(p->c->arena);
    for (int i = 0; i < p->c->t->n_params; i++)
        if (shards_wanted(p, &p->c->t->params[i]) && p->c->t->params[i].compute.nd == 2)
            str_addf(&s, "%s%s", s.n ? ", " : "modules with a weight: ",
                     words_param(p->c->arena, &p->c->t->params[i]));
    diag_error(p->c->d, "E0212", diag_nowhere,
               words_part_help(p->c->arena, p->c->o, s.n ? s.s : NULL),
               "nothing to draw in view 'shards': no product of '%s'", p->c->o->part);
    return false;
}

/* Letters of a slide are as large as drawn; paper asks for 7 pt. */
static bool readable(const ShardPen *p, const Scene *s) {
    return s->scale * 11.5 >= (p->preset == PRESET_A4 ? 7 : 11.5);
}
/* Pages of matrices: a line on a slide; on paper all, with the first lines of values, *lines, and
 * the experts if there is room. */
static int weight_pages(ShardPen *p, Slot *slot, int n, int *lines, Scene **page) {
    int pages = 0;
    if (p->preset == PRESET_A4) {
        const int all = *lines;
        page[0] = draw_page(p, slot, n, 0, all);
        while (!readable(p, page[0]) && (*lines > 0 || p->load)) {
            if (*lines) --*lines;
            else p->load = 0, *lines = all;
            page[0] = draw_page(p, slot, n, 0, *lines);
        }
        return 1;
    }
    *lines = 0;
    for (int i = 0, k; i < n && pages < VIEW_MAX_PAGES / 2; i = k) {
        double more = 48; /* a short subtitle or footer leaves more room than is sure */
        do {
            k = slide_line(p, slot, i, n, height_room(p) - TILES_UNDER + more);
            page[pages] = draw_page(p, slot + i, k - i, 0, 0);
            more -= 6;
        } while (more >= 0 && !readable(p, page[pages]));
        pages++;
    }
    return pages;
}
/* Pages of the values from line i on, the first with the experts (`load`) above them; the last has
 * the ring and the load of attention too if there is room, else each has its own. */
static int value_pages(ShardPen *p, Slot *slot, int i, unsigned load, Scene **page, int most) {
    const int lines = shards_values(p),
              per_page = p->preset == PRESET_SLIDE ? SLIDE_LINES - (p->wrong->n > 0) : A4_LINES;
    int pages = 0;
    for (int k; i < lines && pages < most; i += k) {
        k = shards_values_page(p, i, per_page);
        const unsigned above = p->load = load & SHARDS_EXPERTS;
        load &= ~above;
        page[pages] = draw_page(p, slot, 0, i, k);
        while (!readable(p, page[pages]) && k > 1) /* headings may leave room for fewer */
            page[pages] = draw_page(p, slot, 0, i, --k);
        pages++;
        const unsigned more[] = {load, load & SHARDS_RING, load & SHARDS_MASK};
        for (int j = 0; j < 3 && i + k >= lines; j++) {
            p->load = more[j] | above;
            Scene *both = more[j] & load ? draw_page(p, slot, 0, i, k) : NULL;
            if (!both || !readable(p, both)) continue;
            page[pages - 1] = both, load &= ~more[j];
            break;
        }
        p->load = 0;
    }
    for (unsigned one = SHARDS_RING; one <= SHARDS_EXPERTS && pages < most; one <<= 1)
        if ((p->load = load & one)) page[pages++] = draw_page(p, slot, 0, 0, 0);
    return pages;
}

/* The experts of a slide, as large as what stands over and under them leaves room for. */
static Scene *experts_slide(ShardPen *p) {
    enum { LEAST = 78, MOST = 300, STEP = 20 };
    Scene *s = NULL;
    for (p->under = LEAST; p->under < MOST && !(s && readable(p, s)); p->under += STEP)
        s = draw_page(p, NULL, 0, 0, 0);
    return s;
}

static ShardPen pen_of(const ViewCall *c) {
    ShardPen p = {.c = c,
                  .rank = c->o->rank >= 0 ? c->o->rank : 0,
                  .layer = choose_layer(c),
                  .wrong = wrong_find(c->arena, c->t, NULL, NULL)};
    p.names = block_read_names(c, p.layer);
    furniture_preset(c->o->preset, &p.preset);
    p.s = figure_new(c, "shards", p.preset);
    p.x = presets[p.preset].margin;
    p.w = p.s->w - 2 * p.x;
    return p;
}
int view_shards(const ViewCall *c, Scene **page) {
    const ViewCall own = own_call(c);
    c = &own;
    ShardPen p = pen_of(c);
    const ViewCall other = c->peer ? own_call(c->peer) : own;
    const ShardPen far = pen_of(&other);
    if (c->peer) p.peer = &far;
    Slot *slot = ARENA_ARRAY(c->arena, Slot, c->t->n_params + 1);
    int n = p.rank < c->t->ranks ? make_slots(&p, slot) : 0;
    if (n == 0) {
        nothing(c, &p);
        return 0;
    }
    if (!part_exists(&p)) return 0;
    if (p.peer && p.preset == PRESET_COLUMN) face_slots(&p, slot, n);
    int lines = shards_values(&p);
    int products = shards_products(&p);
    p.product = products ? SHARDS_ALL : -1;
    const unsigned experts = shards_experts(&p) ? SHARDS_EXPERTS : 0,
                   load = (shards_ring(&p) ? SHARDS_RING : 0) | (shards_load(&p) ? SHARDS_MASK : 0);
    p.load = load | experts;
    if (p.preset != PRESET_SLIDE) page[0] = draw_page(&p, slot, n, 0, lines);
    p.product = -1, p.load = 0;
    if (p.preset != PRESET_SLIDE && (p.preset != PRESET_A4 || readable(&p, page[0]))) return 1;
    p.load = p.preset == PRESET_SLIDE ? 0 : experts;
    int pages = weight_pages(&p, slot, n, &lines, page);
    const unsigned left = experts & ~p.load; /* paper may have them with the weights */
    p.load = left;
    if (left && p.preset == PRESET_SLIDE) page[pages++] = experts_slide(&p);
    p.load = 0;
    for (p.product = 0; p.product < products; p.product++)
        page[pages++] = draw_page(&p, slot, 0, 0, 0);
    p.product = -1;
    return pages + value_pages(&p, slot, lines, load | (p.preset == PRESET_SLIDE ? 0 : left),
                               page + pages, VIEW_MAX_PAGES - pages);
}

/* Weight, where it lies at rest, the rank's part, its bytes. */
static void text_row(Str *s, int w, const char *const text[4]) {
    static const int wide[] = {26, 22, 18, 10}, narrow[] = {18, 17, 16, 9};
    WordsCell cell[4];
    for (int i = 0; i < 4; i++) cell[i] = (WordsCell){text[i], (w < 80 ? narrow : wide)[i], i == 3};
    words_row(s, "    ", cell, 4);
}
const char *view_shards_text(const ViewCall *c) {
    const ViewCall own = own_call(c);
    c = &own;
    ShardPen p = {.c = c,
                  .rank = c->o->rank >= 0 && c->o->rank < c->t->ranks ? c->o->rank : 0,
                  .layer = choose_layer(c),
                  .wrong = wrong_find(c->arena, c->t, NULL, NULL)};
    p.names = block_read_names(c, p.layer);
    Arena *a = c->arena;
    Role role;
    int w = furniture_columns(c->o);
    Str s = str_new(a);
    int n = 0;
    wrong_text(&s, p.wrong, w);
    for (int i = 0; i < c->t->n_params; i++) n += shards_wanted(&p, &c->t->params[i]);
    if (n == 0) {
        nothing(c, &p);
        return NULL;
    }
    if (!part_exists(&p)) return NULL;
    const char *rank = arena_printf(a, "on rank %lld", (long long)p.rank);
    text_row(&s, w, (const char *const[]){"weight", "at rest", rank, "bytes"});
    for (int i = 0; i < c->t->n_params; i++) {
        const TraceParam *q = &c->t->params[i];
        const TraceLocal *l = words_find_local(&q->rest, p.rank);
        if (!shards_wanted(&p, q)) continue;
        text_row(&s, w,
                 (const char *const[]){words_param(a, q), words_symbol(a, q->rest.symbolic),
                                       l ? words_shape(a, l->shape, q->rest.nd) : "",
                                       l ? bytes_text(l->bytes, a) : ""});
        Str index = str_new(a);
        bool cut = false, known = true;
        for (int d = 0; d < q->rest.nd; d++) {
            DimCut k = shards_param_cut(a, c->t, q, d, p.rank);
            const char *range = shards_range(a, c->t, &k, p.rank);
            cut |= k.n > 1;
            known &= range != NULL;
            str_addf(&index, "%s%s", d ? ", " : "", range ? range : "");
        }
        if (cut && known) words_labelled(&s, "    holds ", arena_printf(a, "[%s]", index.s), w);
        for (int d = 0; d < q->rest.nd; d++) {
            DimCut k = shards_param_cut(a, c->t, q, d, p.rank);
            if (k.n < 2) continue;
            words_paragraph(&s, "    ",
                            arena_printf(a, "dim %d cut by %s into %lld parts: %s", d,
                                         shards_axes(a, c->t, &k), (long long)k.n,
                                         k.part ? shards_sizes(a, &k) : "not contiguous"),
                            w);
        }
    }
    const TraceParam **shown = ARENA_ARRAY(a, const TraceParam *, n);
    for (int i = 0, k = 0; i < c->t->n_params; i++)
        if (shards_wanted(&p, &c->t->params[i])) shown[k++] = &c->t->params[i];
    str_add(&s, shards_grid_text(a, c->t, shown, n, p.rank, w));
    const char *more[] = {shards_products_text(&p), shards_ring_text(&p), shards_load_text(&p)};
    for (int i = 0; i < 3; i++)
        if (*more[i]) str_addf(&s, "%s\n", more[i]);
    words_paragraph(&s, "", words_stamp(a, c->t, &role), w);
    return s.s;
}
