/* View `shards`: which part of every weight and activation a rank holds. Weights as matrices at one
 * scale with the cuts in the colour of their axis; activations as rulers, one per dim, which works
 * for any number of dims. */
#include "base/text.h"
#include "render/shards/shards_draw.h"
#include "render/shards/shards_grid.h"
#include "render/shards/shards_load.h"
#include "render/furniture/headline.h"
#include "render/furniture/views.h"
#include "trace/trace_way.h"
#include <math.h>
#include <string.h>

enum {
    MAX_LABELS = SHARDS_MAX_LABELS,
    MAX_CUT_LINES = SHARDS_MAX_LINES,
    MAX_ROWS = 40,
    MAX_NAMES = 6,
    SLIDE_ROWS = 6,
    A4_ROWS = 14,
    GAP = 20,
    MIN_CUT = 8
};

static bool wanted(const ShardPen *p, const TraceParam *q) {
    return p->layer < 0 || q->layer == p->layer;
}

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
    *h = fmax(shrunk > 1 ? 14 : 5, rows / shrunk);
    *w = fmax(shrunk > 1 ? 14 : 5, cols / shrunk);
    return shrunk;
}

static const char *copies_text(ShardPen *p, const DimCut *r, const DimCut *k) {
    int64_t copies = shards_copies(p->c->t, r, k);
    return copies > 1 ? arena_printf(p->c->arena, "%lld copies", (long long)copies) : "";
}

/* The words under a matrix; returns the number of lines. */
static int caption(ShardPen *p, const TraceParam *q, const DimCut *r, const DimCut *k,
                   double shrunk, const char **line) {
    Arena *a = p->c->arena;
    const TraceLocal *l = words_find_local(&q->rest, p->rank);
    const char *style = words_style(q->style), *copies = copies_text(p, r, k);
    int n = 0;
    line[n++] = style ? style : r->n * k->n > 1 ? "cut at rest" : "whole";
    line[n++] = words_symbol(a, q->rest.symbolic);
    line[n++] = l ? words_shape(a, l->shape, q->rest.nd) : "nothing here";
    const char *rows = shards_range(a, p->c->t, r, p->rank),
               *cols = shards_range(a, p->c->t, k, p->rank);
    if (rows && cols && r->n * k->n > 1) line[n++] = arena_printf(a, "[%s, %s]", rows, cols);
    line[n++] = l ? bytes_text(l->bytes, a) : "0 B";
    if (shrunk > 1.001) line[n++] = arena_printf(a, "drawn at 1/%.3g", shrunk);
    if (*copies) line[n++] = copies;
    const DimCut *uneven = r->uneven ? r : k->uneven ? k : NULL;
    if (uneven) line[n++] = shards_sizes(a, uneven);
    if (q->rest.symbolic && q->compute.symbolic && strcmp(q->rest.symbolic, q->compute.symbolic)) {
        line[n++] = "computes with";
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

typedef struct {
    const TraceParam *q;
    DimCut r, k;
    double label; /* width of the widest owners of a part; 0: parts have no room for them at any
                     scale */
    double w, h, room, left; /* drawn size, width of the slot, room for an index at the left */
    bool first;              /* begins a line */
    int n_line;
    const char *line[10];
} Slot;

/* Sizes and words of a matrix at the pen's scale. */
static void size_slot(ShardPen *p, Slot *s) {
    double shrunk = matrix_size(p, s->q, &s->w, &s->h);
    s->n_line = caption(p, s->q, &s->r, &s->k, shrunk, s->line);
    s->left = 0;
    if (s->r.n > 1 && s->r.n <= MAX_CUT_LINES && s->r.part)
        s->left = 12 + scene_width(p->s, 12, REGULAR,
                                   arena_printf(p->c->arena, "%lld",
                                                (long long)(s->r.part[0] / s->r.blocks)));
    s->room = fmax(s->w + shards_stack(p->c->t, &s->r, &s->k),
                   scene_width(p->s, 15, BOLD, words_param(p->c->arena, s->q)));
    for (int i = 0; i < s->n_line; i++)
        s->room = fmax(s->room, scene_width(p->s, 12, REGULAR, s->line[i]));
}

/* The wrong step that speaks of the weight as it lies: where its planted shard, or what claims
 * something of it, is read first. -1: it is right. */
static int wrong_of(const ShardPen *p, const TraceParam *q) {
    const Trace *t = p->c->t;
    const char *name = q->rest.name;
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].wrong && !strcmp(t->moves[i].value, name)) return t->moves[i].step;
    for (int i = 0; i < t->n_collectives; i++)
        if (!strcmp(t->collectives[i].value, name) &&
            wrong_number(p->wrong, t->collectives[i].step))
            return t->collectives[i].step;
    for (int i = 0; q->planted && i < t->n_computes; i++)
        for (int k = 0; k < t->computes[i].n_inputs; k++)
            if (!strcmp(t->computes[i].inputs[k], name) &&
                wrong_number(p->wrong, t->computes[i].step))
                return t->computes[i].step;
    return -1;
}
static void mark_slot(ShardPen *p, const Slot *s, Area at) {
    unsigned legend = 0; /* the flag and the sentence under the title say what red is */
    const int step = wrong_of(p, s->q);
    if (step < 0) return;
    wrong_border(scene_rect(p->s, at, 0, (Look){ROLE_NONE, ROLE_FAIL, 3}), &legend);
    wrong_flag(p->s, p->wrong, step, at.x, at.y);
}

static void draw_slot(ShardPen *p, const Slot *s, double x, double y, double table) {
    scene_begin(p->s, "weight", arena_printf(p->c->arena, "weight-%s", s->q->rest.name),
                param_tip(p, s->q));
    scene_text(p->s, x, y + 12, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK},
               words_param(p->c->arena, s->q));
    Area at = {x, y + 30, s->w, s->h};
    shards_draw_copies(p, &s->r, &s->k, at);
    shards_draw_parts(p, &s->r, &s->k, at);
    shards_draw_cuts(p, &s->r, true, at);
    shards_draw_cuts(p, &s->k, false, at);
    mark_slot(p, s, at);
    for (int i = 0; i < s->n_line; i++)
        scene_text(p->s, x, table + 17 * i,
                   (TextLook){ALIGN_LEFT, i ? 12 : 12.5, i ? REGULAR : MEDIUM,
                              i > 1 ? ROLE_SECOND : ROLE_INK},
                   s->line[i]);
    scene_end(p->s);
}

/* Where the line that begins at slot i ends, and its width with the smallest gaps. */
static int line_end(const Slot *slot, int n, int i, double *w, double *high, int *words) {
    *w = -GAP, *high = 0, *words = 0;
    for (int k = i;; k++) {
        if (k == n || (k > i && slot[k].first)) return k;
        *w += slot[k].left + slot[k].room + GAP;
        *high = fmax(*high, slot[k].h + (slot[k].k.n > 1 ? 20 : 0));
        *words = slot[k].n_line > *words ? slot[k].n_line : *words;
    }
}

/* Fills lines of width w from the left; returns their number. */
static int fill_lines(Slot *slot, int n, double w) {
    double x = 0;
    int lines = 0;
    for (int i = 0; i < n; i++) {
        double room = slot[i].left + slot[i].room;
        slot[i].first = i == 0 || x + room > w;
        lines += slot[i].first;
        x = (slot[i].first ? 0 : x) + room + GAP;
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
        double line = p->preset == PRESET_SLIDE ? w + fmax(gap - GAP, 0) * (k - i - 1) : p->w;
        scene_segment(p->s, (Pt){p->x, table - 20}, (Pt){p->x + line, table - 20}, ROLE_GRID, 1);
        for (; i < k; i++) {
            x += slot[i].left;
            draw_slot(p, &slot[i], x, y, table);
            x += slot[i].room + fmax(gap, 0);
        }
        y = table + 17 * words + 16;
    }
    return y;
}

/* ---- rulers ---- */

/* Which of n ranks has piece i of 2n in a zigzag. */
static int64_t zig_rank(int64_t i, int64_t n) { return i < n ? i : 2 * n - 1 - i; }

/* " zigzag": what follows the axes of a cut that is not contiguous. */
static const char *order_words(const DimCut *c) {
    static const char *const words[N_PLACE_CUTS] = {
        [PLACE_ZIGZAG] = " zigzag", [PLACE_STRIPED] = " striped"};
    return c->n_axis > 0 && words[c->order] ? words[c->order] : "";
}
/* "S 16: cp zigzag", under the ruler of a dim. */
static const char *ruler_words(const ShardPen *p, const TraceShape *s, int dim, const DimCut *c) {
    Arena *a = p->c->arena;
    bool cut = c->n > 1;
    return arena_printf(a, "%s %lld%s%s%s", words_symbol(a, words_base(a, s->dim_symbol[dim])),
                        (long long)s->global_shape[dim], cut ? ": " : "",
                        cut ? shards_axes(a, p->c->t, c) : "", order_words(c));
}

/* The parts of one dim along a ruler of w units. Zigzag: every rank has two of 2 * outer pieces,
 * and cuts inside the first axis cut these two behind each other. Striped: a part is one position,
 * and cuts inside the first axis cut a rank's list of them. */
typedef struct {
    const DimCut *c;
    double x, y, w;
    int64_t n, outer, inner,
        sub;     /* parts drawn; ranks of the first axis; parts of each; per piece */
    int64_t own; /* index of the part of the rank shown */
    bool zig, striped, pending;
    double at[33]; /* where part i starts, if the parts are few enough to be drawn */
} Ruler;

enum { RULER_HEIGHT = 18, RULER_PARTS = 32 };

static Ruler ruler_new(const ShardPen *p, const TraceShape *s, const DimCut *c, Area at) {
    const Trace *t = p->c->t;
    Ruler r = {
        .c = c, .x = at.x, .y = at.y, .w = at.w, .n = c->n, .outer = c->n, .inner = 1, .sub = 1};
    r.own = shards_part_of(t, c, p->rank);
    r.zig = c->order == PLACE_ZIGZAG && c->n_axis > 0;
    r.striped = c->order == PLACE_STRIPED && c->n_axis > 0;
    r.pending = s->pending && *s->pending;
    if (r.zig) {
        r.outer = t->axes[c->axis[0]].size, r.inner = r.n / r.outer;
        if (r.inner > 1 && r.inner % 2) r.own /= r.inner, r.inner = 1;
        r.sub = r.inner > 1 ? r.inner / 2 : 1;
        r.n = 2 * r.outer * r.sub;
    } else if (r.striped) {
        r.outer = t->axes[c->axis[0]].size, r.inner = r.n / r.outer, r.n = c->size;
    } else if (r.n > 1) r.n *= c->blocks;
    for (int64_t i = 0; i <= r.n && r.n <= RULER_PARTS; i++)
        r.at[i] = r.zig || r.striped ? r.w * (double)i / (double)r.n : shards_band_at(c, i, r.w);
    return r;
}
/* The rank of the first axis that has part i. */
static int64_t ruler_rank(const Ruler *r, int64_t i) {
    return r->zig ? zig_rank(i / r->sub, r->outer) : i % r->outer;
}
/* The part of the cut that part i of the ruler belongs to. */
static int64_t ruler_owner_of(const Ruler *r, int64_t i) {
    int64_t rank = ruler_rank(r, i);
    if (r->striped) {
        int64_t len = (r->c->size - rank + r->outer - 1) / r->outer;
        return rank * r->inner + i / r->outer / ((len + r->inner - 1) / r->inner);
    }
    int64_t second = i / r->sub >= r->outer;
    return r->zig && r->inner > 1 ? rank * r->inner + second * r->sub + i % r->sub : rank;
}
/* The colour of a part, wherever its pieces lie. */
static int ruler_tone(const Ruler *r, int64_t i) {
    return shards_shade(ruler_owner_of(r, i), r->outer * r->inner);
}
static Area ruler_part(const Ruler *r, int64_t i) {
    return (Area){r->x + r->at[i], r->y, r->at[i + 1] - r->at[i], RULER_HEIGHT};
}
/* The number of part i's owner, where it has room, and the border of the rank shown. */
static void ruler_owner(ShardPen *p, const Ruler *r, int64_t i) {
    Area part = ruler_part(r, i);
    int64_t owner = ruler_owner_of(r, i);
    int tone = ruler_tone(r, i);
    const char *num = arena_printf(p->c->arena, "%lld", (long long)owner);
    double tw = scene_width(p->s, 12, SEMIBOLD, num), mid = r->x + (r->at[i] + r->at[i + 1]) / 2;
    bool fits = r->n <= MAX_LABELS && tw + 4 <= part.w;
    if (fits && r->pending)
        scene_rect(p->s, (Area){mid - tw / 2 - 3, r->y + 2, tw + 6, RULER_HEIGHT - 4}, 0,
                   (Look){ROLE_SHARD + tone, ROLE_NONE, 0});
    if (fits)
        scene_text(p->s, mid, r->y + 13.3,
                   (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT + tone}, num);
    if (owner == r->own) scene_rect(p->s, part, 0, (Look){ROLE_NONE, ROLE_INK, 2.25});
}
static void ruler_parts(ShardPen *p, const Ruler *r) {
    for (int64_t i = 0; i < r->n; i++) {
        Role fill = r->n > 1 ? ROLE_SHARD + ruler_tone(r, i) : ROLE_PAPER;
        scene_rect(p->s, ruler_part(r, i), 0, (Look){fill, ROLE_WEIGHT_LINE, 0.8});
    }
    for (int64_t i = 0; i < r->n && r->pending; i++)
        scene_hatch(p->s, ruler_part(r, i),
                    r->n > 1 ? ROLE_SHARD_TEXT + ruler_tone(r, i) : ROLE_WEIGHT_LINE, 5, 0.6);
    for (int64_t i = 0; i < r->n && r->n > 1; i++) ruler_owner(p, r, i);
}
/* Too many parts to be seen: one band with their number. */
static void ruler_band(ShardPen *p, const Ruler *r) {
    scene_rect(p->s, (Area){r->x, r->y, r->w, RULER_HEIGHT}, 0, (Look){ROLE_SHARD_3, ROLE_NONE, 0});
    const TextLook look = {ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT_3};
    const char *text = arena_printf(p->c->arena, "%lld parts%s", (long long)(r->outer * r->inner),
                                    r->striped ? " in turn" : "");
    scene_text(p->s, r->x + r->w / 2, r->y + 13.3, look, text);
}

static void ruler(ShardPen *p, const TraceShape *s, int dim, double x, double y, double w) {
    Arena *a = p->c->arena;
    const Trace *t = p->c->t;
    DimCut c = shards_value_cut(a, t, s, dim, p->rank);
    scene_begin(p->s, "ruler", arena_printf(a, "ruler-%s-%d", s->name, dim),
                arena_printf(a, "%s of %s: %lld, %s%s",
                             words_symbol(a, words_base(a, s->dim_symbol[dim])), s->name,
                             (long long)s->global_shape[dim], c.n > 1 ? "cut by " : "whole",
                             shards_axes(a, t, &c)));
    Ruler r = ruler_new(p, s, &c, (Area){x, y, w, RULER_HEIGHT});
    if (r.n > RULER_PARTS) ruler_band(p, &r);
    else ruler_parts(p, &r);
    scene_rect(p->s, (Area){x, y, w, RULER_HEIGHT}, 0, (Look){ROLE_NONE, ROLE_WEIGHT_LINE, 1.25});
    const char *text = ruler_words(p, s, dim, &c);
    Role role = c.n > 1 ? ROLE_AXIS_TEXT + shards_axis_kind(a, t, &c) : ROLE_SECOND;
    scene_text(p->s, x, y + RULER_HEIGHT + 14, (TextLook){ALIGN_LEFT, 12, REGULAR, role},
               scene_fit(p->s, text, w + 8, 12, REGULAR));
    scene_end(p->s);
}

typedef struct {
    const TraceShape *s;
    int n; /* values of this layout; the first have their name in name[] */
    const char *name[MAX_NAMES];
    Str names;
    int section;
    int wrong;      /* the step, where what it makes is wrong; -1 */
    const char *by; /* what moved all of them into it, where a name stands in two rows */
} Row;

/* As many whole names as width w has room for, and the number of the others: "q_proj, k_proj and 2
 * more". */
static const char *fit_names(ShardPen *p, const Row *row, double w) {
    Arena *a = p->c->arena;
    const char *best = NULL;
    Str s = str_new(a);
    for (int i = 0; i < row->n && i < MAX_NAMES; i++) {
        str_addf(&s, "%s%s", i ? ", " : "", row->name[i]);
        const char *text = i + 1 < row->n ? arena_printf(a, "%s and %d more", s.s, row->n - i - 1)
                                          : arena_strdup(a, s.s);
        if (!best || scene_width(p->s, 12.5, SEMIBOLD, text) <= w) best = text;
    }
    return scene_fit(p->s, best ? best : "", w, 12.5, SEMIBOLD);
}

/* Equal values are one picture, whatever their uses (replicate, varying_use). */
static const char *cut_place(const TracePlace *p) {
    bool told =
        place_cut(p->place, NULL) != PLACE_WHOLE || (p->place && !strncmp(p->place, "partial", 7));
    return told ? p->place : "";
}

static bool same_layout(const TraceShape *a, const TraceShape *b) {
    bool same = a->nd == b->nd &&
                !strcmp(a->symbolic ? a->symbolic : "", b->symbolic ? b->symbolic : "") &&
                a->n_places == b->n_places &&
                !strcmp(a->pending ? a->pending : "", b->pending ? b->pending : "");
    for (int i = 0; same && i < a->n_places; i++)
        same = !strcmp(cut_place(&a->place[i]), cut_place(&b->place[i]));
    return same;
}

/* Sections of the rulers. */
typedef enum { SEC_STACKS, SEC_VALUES, SEC_GRADS, SEC_STATE, SECTIONS } Section;
static const char *const section_names[SECTIONS] = {"Weights of all experts in one", "Activations",
                                                    "Gradients of parameters",
                                                    "After the optimizer's step"};

/* -1: stands nowhere (cotangents of activations lie as those do). */
static int section_of(const TraceValue *v) {
    if (v->kind == VALUE_UPDATED) return SEC_STATE;
    if (v->subject.role == OF_PARAM_GRADIENT) return SEC_GRADS;
    return v->kind == VALUE_COTANGENT || v->kind == VALUE_GRADIENT ? -1 : SEC_VALUES;
}
/* "w2" of "grad.param.layers.0.feed_forward.w2.weight", "w2.exp_avg" of its state. */
static const char *short_name(Arena *a, const Trace *t, const TraceValue *v, int section) {
    if (section == SEC_VALUES) return words_leaf(v->shape.name);
    const TraceParam *q = section == SEC_GRADS ? trace_param(t, v->subject.of) : NULL;
    if (q) return words_param(a, q);
    char *s = arena_strdup(a, words_updated(a, v->shape.name));
    char *weight = strstr(s, ".weight");
    if (!weight) return words_leaf(s);
    const char *tail = arena_strdup(a, weight + 7);
    *weight = 0;
    return arena_printf(a, "%s%s", words_leaf(s), tail);
}

/* Do both stand in one row? What a collective leaves is apart from what an op makes in the same
 * layout, so that it stands after what the collective took. */
static bool alike(const Row *x, const Row *y) {
    return same_layout(x->s, y->s) && x->wrong == y->wrong &&
           !strcmp(x->by ? x->by : "", y->by ? y->by : "");
}
/* One more thing of this name and layout in a section whose rows begin at `start`; false: no room.
 */
static bool add_row(ShardPen *p, Row *row, int *n, int start, const Row *as, const char *leaf) {
    int k = start;
    while (k < *n && !alike(&row[k], as)) k++;
    if (k == MAX_ROWS) return false;
    if (k == *n)
        row[(*n)++] = (Row){.s = as->s,
                            .names = str_new(p->c->arena),
                            .section = as->section,
                            .wrong = as->wrong,
                            .by = as->by};
    if (row[k].n && text_has_word(row[k].names.s, leaf)) return true;
    if (row[k].n < MAX_NAMES) row[k].name[row[k].n] = leaf;
    row[k].n++;
    str_addf(&row[k].names, "%s%s", row[k].names.n ? ", " : "", leaf);
    return true;
}
/* Those of all experts in one tensor, their biases [E, F] too: no matrix shows them. */
static bool of_all_experts(const Trace *t, const TraceParam *q) {
    if (q->rest.nd != 2) return q->rest.nd > 2;
    for (int i = 0; i < t->n_params; i++)
        if (t->params[i].rest.nd > 2 && text_same(t->params[i].module, q->module)) return true;
    return false;
}
static int stack_rows(ShardPen *p, Row *row) {
    int n = 0;
    for (int i = 0; i < p->c->t->n_params; i++) {
        const TraceParam *q = &p->c->t->params[i];
        const Row as = {.s = &q->rest, .section = SEC_STACKS, .wrong = wrong_of(p, q)};
        if (wanted(p, q) && of_all_experts(p->c->t, q))
            add_row(p, row, &n, 0, &as, words_param(p->c->arena, q));
    }
    return n;
}
/* "AllGather", "slice": what moved the value into its layout; NULL: an op made it. */
static const char *moved_by(const Trace *t, const TraceValue *v) {
    for (int i = 0; i < t->n_collectives; i++) {
        const CollWord *w = coll_word(t->collectives[i].op);
        if (t->collectives[i].step == v->step) return w ? w->name : t->collectives[i].op;
    }
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].step == v->step)
            return words_declares(&t->moves[i]) ? "the declaration" : t->moves[i].op;
    return NULL;
}
/* A value keeps its name when it is moved: what moved it, where the name stands in two rows. */
static const char *told_apart(ShardPen *p, const TraceValue *v, int section) {
    const Trace *t = p->c->t;
    const char *leaf = short_name(p->c->arena, t, v, section), *by = moved_by(t, v);
    for (int i = 0; by && i < t->n_values; i++) {
        const TraceValue *o = &t->values[i];
        if (o->step < v->step && o->layer == v->layer && section_of(o) == section &&
            !same_layout(&o->shape, &v->shape) &&
            !strcmp(short_name(p->c->arena, t, o, section), leaf))
            return by;
    }
    return NULL;
}
/* Values of the layer, one row per layout and section, sections in order. */
static int value_rows(ShardPen *p, Row *row) {
    const Trace *t = p->c->t;
    int n = stack_rows(p, row);
    for (int sec = SEC_VALUES; sec < SECTIONS; sec++)
        for (int i = 0, start = n; i < t->n_values && n < MAX_ROWS; i++) {
            const TraceValue *v = &t->values[i];
            if ((p->layer >= 0 && v->layer != p->layer) || v->shape.nd == 0 || section_of(v) != sec)
                continue;
            if (trace_param(t, v->shape.name)) continue;
            const Row as = {.s = &v->shape,
                            .section = sec,
                            .wrong = wrong_number(p->wrong, v->step) ? v->step : -1,
                            .by = told_apart(p, v, sec)};
            const char *name = sec == SEC_VALUES ? words_value(p->c->arena, t, v->shape.name)
                                                 : short_name(p->c->arena, t, v, sec);
            add_row(p, row, &n, start, &as, name);
        }
    return n;
}

/* What stands under a row's names: its layout, its bytes, what moved it there, the pending sum. */
static int layout_runs(ShardPen *p, const Row *row, Run run[2]) {
    Arena *a = p->c->arena;
    const TraceShape *s = row->s;
    const TraceLocal *l = words_find_local(s, p->rank);
    const char *bytes = l ? bytes_text(l->bytes, a) : "";
    run[0] = (Run){arena_printf(a, "%s%s%s%s%s", words_symbol(a, s->symbolic), l ? "   " : "",
                                bytes, row->by ? "   after " : "", row->by ? row->by : ""),
                   REGULAR, ROLE_SECOND, false, false};
    if (!s->pending || !*s->pending) return 1;
    const char *pend = arena_printf(a, "   Σ %s pending", words_axis_list(a, p->c->t, s->pending));
    run[1] = (Run){pend, SEMIBOLD, ROLE_AXIS_TEXT + theme_axis(s->pending), false, false};
    return 2;
}
static double runs_width(ShardPen *p, const Run *run, int n) {
    double w = 0;
    for (int i = 0; i < n; i++) w += scene_width(p->s, 12, run[i].weight, run[i].s);
    return w;
}
/* Room for the words before the bars: axes may have long names. */
static double words_room(ShardPen *p, const Row *row, int n) {
    double w = 236;
    Run run[2];
    for (int i = 0; i < n; i++) w = fmax(w, runs_width(p, run, layout_runs(p, &row[i], run)));
    return fmin(w + 14, p->w * 0.45);
}

/* Rows [from, from + count) of the values. */
static double draw_rulers(ShardPen *p, int from, int count, double y) {
    Row all[MAX_ROWS], *row = all + from;
    int n = value_rows(p, all) - from, dims = 1;
    if (n > count) n = count;
    bool narrow = p->w < 700;
    if (n <= 0) return y;
    for (int i = 0; i < n; i++) dims = row[i].s->nd > dims ? row[i].s->nd : dims;
    double left = narrow ? 0 : words_room(p, row, n), gap = 16,
           w = (p->w - left - gap * (dims - 1)) / dims;
    for (int i = 0; i < n; i++) {
        if (i == 0 || row[i].section != row[i - 1].section) {
            y += i ? 10 : 0;
            double tw = scene_text(p->s, p->x, y + 12, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK},
                                   section_names[row[i].section]);
            const char *more =
                narrow ? "one bar per dim"
                       : "one bar per dim, cut as its ranks hold it; the number is the part's";
            if (i == 0)
                scene_text(p->s, p->x + tw + 16, y + 12,
                           (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, more);
            y += 30;
        }
        const TraceShape *s = row[i].s;
        const char *names = fit_names(p, &row[i], narrow ? p->w * 0.45 : left - 14);
        scene_begin(p->s, "values", arena_printf(p->c->arena, "values-%d", from + i),
                    row[i].names.s);
        scene_text(p->s, p->x, y + 12,
                   (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, row[i].wrong < 0 ? ROLE_INK : ROLE_FAIL},
                   names);
        wrong_flag(p->s, p->wrong, row[i].wrong, p->x - 11, y + 8);
        scene_end(p->s);
        double tx = narrow ? p->x + p->w * 0.48 : p->x, ty = narrow ? y + 12 : y + 29;
        Run run[2];
        int k = layout_runs(p, &row[i], run);
        double room = narrow ? p->x + p->w - tx : left - 14;
        if (k == 2 && runs_width(p, run, 2) > room)
            run[1].s =
                scene_fit(p->s, run[1].s, fmax(0, room - runs_width(p, run, 1)), 12, SEMIBOLD);
        run[0].s = scene_fit(p->s, run[0].s, room, 12, REGULAR);
        scene_runs(p->s, (Pt){tx, ty}, ALIGN_LEFT, 12, run, k);
        for (int d = 0; d < s->nd; d++)
            ruler(p, s, d, p->x + left + d * (w + gap), narrow ? y + 20 : y, w);
        y += narrow ? 66 : 46;
    }
    return y;
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
        if (!wanted(p, q) || q->rest.nd != 1) continue;
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
        if (!all && !wanted(p, q)) continue;
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
    if (smaller) return "one scale unless a matrix says another";
    return p->preset == PRESET_SLIDE ? "one scale on a page" : "one scale";
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
/* How to read the numbers in parts, and the order of those that are not contiguous, as rows
 * [from, from + count) show them. */
static const char *foot_words(ShardPen *p, const Slot *slot, int n, int from, int count) {
    Arena *a = p->c->arena;
    const Trace *t = p->c->t;
    Str s = str_new(a);
    bool rows = false;
    int64_t ring = 0; /* ranks of the axis that cuts in zigzag */
    const char *axis = "", *inner = "";
    Row all[MAX_ROWS];
    int last = count > 0 ? value_rows(p, all) : 0;
    for (int i = from; i < last && i < from + count; i++)
        for (int d = 0; d < all[i].s->nd; d++) {
            DimCut c = shards_value_cut(a, t, all[i].s, d, p->rank);
            rows |= c.rows && c.n > 1;
            if (c.order != PLACE_ZIGZAG || !c.n_axis) continue;
            ring = t->axes[c.axis[0]].size, axis = t->axes[c.axis[0]].name;
            c.axis[0] = c.axis[c.n_axis - 1];
            if (c.n_axis == 2) c.n_axis = 1, inner = shards_axes(a, t, &c);
        }
    if (n > 0)
        str_addf(&s, "In a part: the %sranks that hold it%s. ",
                 by_place(p, slot, n) ? "place on the mesh of the " : "",
                 last ? ", in a bar its number" : "");
    else str_add(&s, "In a part: its number. ");
    str_add(&s, "Thick outline: this rank's part.");
    if (n > 0) str_add(&s, " Lines: cuts; the shape names their axes.");
    if (ring)
        str_addf(&s, " Zigzag: of %lld pieces %s i has those numbered i and %lld − i%s%s%s.",
                 (long long)(2 * ring), axis, (long long)(2 * ring - 1), *inner ? "; " : "", inner,
                 *inner ? " cuts the two as one list" : "");
    if (rows) str_add(&s, " Rows of experts stand by part: routing decides which they are.");
    return s.s;
}
/* A page with n weights and `count` rows of activations; either may be none. */
static Scene *draw_page(ShardPen *p, const Slot *slot, int n, int from, int count) {
    bool weights = n > 0;
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
    const char *title = arena_printf(a, "Rank %lld holds %s", (long long)p->rank, holds(p, false));
    double y = headline_draw(s, p->preset, p->wrong, title, sub) + 8;
    draw_notes(p, y);
    y += notes_height(p);
    if (weights) {
        const char *line[3];
        y = draw_matrices(p, slot, n, y);
        int k = scene_wrap(s, vectors(p), (TextColumn){p->w, 12, REGULAR, 3, NULL}, line);
        for (int i = 0; i < k; i++, y += 16)
            scene_text(s, p->x, y, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, line[i]);
    }
    if (p->product >= 0) y = shards_draw_products(p, y + 8);
    if (count > 0) y = draw_rulers(p, from, count, y + 8);
    if (p->load) y = shards_draw_load(p, y + 8);
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

/* One scale for all matrices: the largest at which they stand in one line; in two lines if that
 * makes the parts thick enough to be told apart, or to carry their numbers. */
static int make_slots(ShardPen *p, Slot *slot, double longest) {
    const Trace *t = p->c->t;
    int n = 0, read_one = 0, read_two = 0, lines = 0;
    for (int i = 0; i < t->n_params; i++) {
        const TraceParam *q = &t->params[i];
        if (!wanted(p, q) || q->rest.nd != 2 || of_all_experts(t, q)) continue;
        slot[n++] = (Slot){.q = q,
                           .r = shards_param_cut(p->c->arena, t, q, 0, p->rank),
                           .k = shards_param_cut(p->c->arena, t, q, 1, p->rank)};
        slot[n - 1].label = shards_label_width(p, &slot[n - 1].r, &slot[n - 1].k);
    }
    double limit = height_room(p);
    double high, one = 0, two = 0, thin_one = 0, thin_two = 0;
    bool column = p->preset == PRESET_COLUMN;
    for (double most = longest * (column ? 1 : 1.3); most >= longest * 0.5 && !one; most *= 0.95) {
        lines = lay_out(p, slot, n, most, &high);
        if ((lines == 1 || column) && high <= limit)
            one = most, thin_one = thinnest(slot, n, &read_one);
    }
    for (double most = longest * 2.3;
         !column && thin_one < MIN_CUT && most > fmax(one, longest * 0.4); most *= 0.95) {
        lines = lay_out(p, slot, n, most, &high);
        if (lines > 2 || high > limit) continue;
        int readable;
        double thin = thinnest(slot, n, &readable);
        /* enough is enough */
        if (two > 0 && thin < MIN_CUT && (thin_two >= MIN_CUT || readable < read_two)) break;
        two = most, thin_two = thin, read_two = readable;
    }
    bool better = two > 0 && (!one || thin_two >= MIN_CUT || read_two >= read_one + 2);
    lay_out(p, slot, n, better ? two : one > 0 ? one : longest * 0.5, &high);
    return n;
}

/* The matrices of a slide that begins with slot i: a line, at the largest scale that the slide has
 * room for. Returns the slot after them. */
static int slide_line(ShardPen *p, Slot *slot, int i, int n) {
    double w, h, high, limit = height_room(p), all = p->w;
    int words, k = line_end(slot, n, i, &w, &h, &words), lines = 0;
    for (double most = all; most > 20 && lines != 1; most *= 0.97) {
        lines = lay_out(p, slot + i, k - i, most, &high);
        if (high > limit) lines = 0;
    }
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
        if (wanted(p, &p->c->t->params[i]) && p->c->t->params[i].compute.nd == 2)
            str_addf(&s, "%s%s", s.n ? ", " : "modules with a weight: ",
                     words_param(p->c->arena, &p->c->t->params[i]));
    diag_error(p->c->d, "E0212", diag_nowhere,
               words_part_help(p->c->arena, p->c->o, s.n ? s.s : NULL),
               "nothing to draw in view 'shards': no product of '%s'", p->c->o->part);
    return false;
}

int view_shards(const ViewCall *c, Scene **page) {
    const ViewCall own = own_call(c);
    c = &own;
    static const double longest[PRESET_COUNT] = {
        [PRESET_WIDE] = 230, [PRESET_COLUMN] = 190, [PRESET_SLIDE] = 180, [PRESET_A4] = 230};
    ShardPen p = {.c = c,
                  .rank = c->o->rank >= 0 ? c->o->rank : 0,
                  .layer = choose_layer(c),
                  .wrong = wrong_find(c->arena, c->t, NULL, NULL)};
    furniture_preset(c->o->preset, &p.preset);
    p.s = figure_new(c, "shards", p.preset);
    p.x = presets[p.preset].margin;
    p.w = p.s->w - 2 * p.x;
    Slot *slot = ARENA_ARRAY(c->arena, Slot, c->t->n_params + 1);
    int n = p.rank < c->t->ranks ? make_slots(&p, slot, longest[p.preset]) : 0;
    if (n == 0) {
        nothing(c, &p);
        return 0;
    }
    if (!part_exists(&p)) return 0;
    Row row[MAX_ROWS];
    int rows = value_rows(&p, row),
        per_page = p.preset == PRESET_SLIDE ? SLIDE_ROWS - (p.wrong->n > 0) : A4_ROWS, pages = 1;
    int products = shards_products(&p);
    p.product = products ? SHARDS_ALL : -1;
    bool load = shards_load(&p);
    p.load = load;
    if (p.preset != PRESET_SLIDE) page[0] = draw_page(&p, slot, n, 0, MAX_ROWS);
    p.product = -1, p.load = false;
    if (p.preset != PRESET_SLIDE && (p.preset != PRESET_A4 || page[0]->scale * 11.5 >= 7)) return 1;
    pages = 0;
    for (int i = 0, k; i < n && pages < VIEW_MAX_PAGES / 2; i = k) {
        k = p.preset == PRESET_SLIDE ? slide_line(&p, slot, i, n) : n;
        page[pages++] = draw_page(&p, slot + i, k - i, 0, 0);
    }
    for (p.product = 0; p.product < products; p.product++)
        page[pages++] = draw_page(&p, slot, 0, 0, 0);
    p.product = -1;
    for (int i = 0, k; i < rows && pages < VIEW_MAX_PAGES; i += k) {
        int left = (rows - i + per_page - 1) /
                   per_page; /* pages that are needed, with as many rows on each */
        k = (rows - i + left - 1) / left;
        page[pages] = draw_page(&p, slot, 0, i, k);
        /* paper asks for letters of 7 pt: fewer rows on a page */
        while (p.preset == PRESET_A4 && page[pages]->scale * 11.5 < 7 && k > 2)
            page[pages] = draw_page(&p, slot, 0, i, --k);
        pages++;
    }
    p.load = load;
    if (load && pages < VIEW_MAX_PAGES) page[pages++] = draw_page(&p, slot, 0, 0, 0);
    return pages;
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
    Arena *a = c->arena;
    Role role;
    int w = furniture_columns(c->o);
    Str s = str_new(a);
    int n = 0;
    wrong_text(&s, p.wrong, w);
    for (int i = 0; i < c->t->n_params; i++) n += wanted(&p, &c->t->params[i]);
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
        if (!wanted(&p, q)) continue;
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
        if (wanted(&p, &c->t->params[i])) shown[k++] = &c->t->params[i];
    str_add(&s, shards_grid_text(a, c->t, shown, n, p.rank, w));
    const char *products = shards_products_text(&p);
    if (*products) str_addf(&s, "%s\n", products);
    const char *load = shards_load_text(&p);
    if (*load) str_addf(&s, "%s\n", load);
    words_paragraph(&s, "", words_stamp(a, c->t, &role), w);
    return s.s;
}
