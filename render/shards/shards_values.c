/* Values of the shards picture. See shards_values.h. */
#include "render/shards/shards_values.h"
#include "base/text.h"
#include "render/shards/shards_which.h"
#include "render/furniture/hexagon.h"
#include <math.h>
#include <string.h>

enum {
    MAX_ROWS = 64,
    MAX_LINES = 2 * MAX_ROWS, /* a row may stand in two: made by one move, taken by the next */
    MAX_NAMES = 6,
    NARROW = 700,
    RULER_HEIGHT = 18,
    RULER_PARTS = 32
};

/* ---- rulers ---- */

/* Which of n ranks has piece i of 2n in a zigzag. */
static int64_t zig_rank(int64_t i, int64_t n) { return i < n ? i : 2 * n - 1 - i; }

/* " zigzag": what follows the axes of a cut that is not contiguous. */
static const char *order_words(const DimCut *c) {
    static const char *const words[N_PLACE_CUTS] = {
        [PLACE_ZIGZAG] = " zigzag", [PLACE_STRIPED] = " striped"};
    return c->n_axis > 0 && words[c->order] ? words[c->order] : "";
}
/* The parts of one dim along a ruler of w units. Zigzag: every rank has two of 2 * outer pieces,
 * and cuts inside the first axis cut these two behind each other. Striped: a part is one position,
 * and cuts inside the first axis cut a rank's list of them. */
typedef struct {
    const DimCut *c;
    double x, y, w, h;
    int64_t n, outer, inner,
        sub;     /* parts drawn; ranks of the first axis; parts of each; per piece */
    int64_t own; /* index of the part of the rank shown */
    bool zig, striped, pending, numbered; /* numbered: all parts have room, or they are uneven */
    double at[33]; /* where part i starts, if the parts are few enough to be drawn */
} Ruler;

static Ruler ruler_new(const ShardPen *p, const TraceShape *s, const DimCut *c, Area at) {
    const Trace *t = p->c->t;
    Ruler r = {.c = c,
               .x = at.x,
               .y = at.y,
               .w = at.w,
               .h = at.h,
               .n = c->n,
               .outer = c->n,
               .inner = 1,
               .sub = 1};
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
    return (Area){r->x + r->at[i], r->y, r->at[i + 1] - r->at[i], r->h};
}
/* The number of part i's owner, where it has room, and the border of the rank shown. */
static void ruler_owner(ShardPen *p, const Ruler *r, int64_t i) {
    Area part = ruler_part(r, i);
    int64_t owner = ruler_owner_of(r, i);
    int tone = ruler_tone(r, i);
    const char *num = arena_printf(p->c->arena, "%lld", (long long)owner);
    double tw = scene_width(p->s, 12, SEMIBOLD, num), mid = r->x + (r->at[i] + r->at[i + 1]) / 2;
    bool fits = r->numbered && tw + 4 <= part.w;
    if (fits && r->pending)
        scene_rect(p->s, (Area){mid - tw / 2 - 3, r->y + 2, tw + 6, r->h - 4}, 0,
                   (Look){ROLE_SHARD + tone, ROLE_NONE, 0});
    if (fits)
        scene_text(p->s, mid, r->y + r->h / 2 + 4.3,
                   (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT + tone}, num);
    if (owner == r->own) scene_rect(p->s, part, 0, (Look){ROLE_NONE, ROLE_INK, 2.25});
}
/* Equal parts have their numbers all or not at all. */
static bool ruler_numbered(ShardPen *p, const Ruler *r) {
    bool all = r->n <= SHARDS_MAX_LABELS;
    for (int64_t i = 0; i < r->n && all && !r->c->uneven; i++)
        all = scene_width(p->s, 12, SEMIBOLD,
                          arena_printf(p->c->arena, "%lld", (long long)ruler_owner_of(r, i))) +
                  4 <=
              ruler_part(r, i).w;
    return all;
}
static void ruler_parts(ShardPen *p, Ruler *r) {
    r->numbered = ruler_numbered(p, r);
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
    scene_rect(p->s, (Area){r->x, r->y, r->w, r->h}, 0, (Look){ROLE_SHARD_3, ROLE_NONE, 0});
    const TextLook look = {ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT_3};
    const char *text = arena_printf(p->c->arena, "%lld parts%s", (long long)(r->outer * r->inner),
                                    r->striped ? " in turn" : "");
    scene_text(p->s, r->x + r->w / 2, r->y + r->h / 2 + 4.3, look, text);
    for (int64_t i = 0; i < r->n && !r->striped; i++) /* a part too thin to be seen is a line */
        if (ruler_owner_of(r, i) == r->own)
            scene_rect(p->s,
                       (Area){r->x + r->w * (double)i / (double)r->n, r->y,
                              fmax(1, r->w / (double)r->n), r->h},
                       0, (Look){ROLE_NONE, ROLE_INK, 2.25});
}

static bool two_columns(const ShardPen *p) { return p->w >= NARROW; }

/* ---- rows ---- */

/* What lies alike. */
typedef struct {
    const TraceShape *s;
    int n; /* values of this layout; the first have their name in name[] */
    const char *name[MAX_NAMES];
    Str names, tip; /* tip: with what records call them, "x (layers.0.input)" */
    int section;
    int wrong;      /* the step, where what it makes is wrong; -1 */
    int next;       /* the step that moves it on, where that is wrong; -1 */
    const char *on; /* what moves all of them on, "AllGather tp"; NULL: nothing on the page */
    const char
        *by; /* what moved all of them into it, where a name stands in two rows; NULL: an op did */
    const TraceCollective *coll;      /* where a collective did: one of them; NULL */
    int from;                         /* the row that it was moved from; -1: none on the page */
    bool other[TRACE_MAX_DIMS], each; /* dims that are not the same in all; all of one size */
    int64_t bytes;                    /* of the rank, of all of them */
    bool unlike;                      /* not so in the other plan */
} Row;

/* Sections of the rows. */
typedef enum { SEC_STACKS, SEC_VALUES, SEC_GRADS, SEC_STATE, SECTIONS } Section;
static const char *const section_names[SECTIONS] = {
    "Weights of all experts in one", "Inputs and activations", "Gradients of parameters",
    "After the optimizer's step"};

/* -1: stands nowhere (cotangents of activations lie as those do). */
static int section_of(const TraceValue *v) {
    if (v->kind == VALUE_UPDATED) return SEC_STATE;
    if (v->subject.role == OF_PARAM_GRADIENT) return SEC_GRADS;
    return v->kind == VALUE_COTANGENT || v->kind == VALUE_GRADIENT ? -1 : SEC_VALUES;
}
/* "w2" of "grad.param.layers.0.feed_forward.w2.weight", "w2.exp_avg" of its state. */
static const char *short_name(const ShardPen *p, const TraceValue *v, int section) {
    Arena *a = p->c->arena;
    const Trace *t = p->c->t;
    if (section == SEC_VALUES) return shards_name(p, v);
    const TraceParam *q = section == SEC_GRADS ? trace_param(t, v->subject.of) : NULL;
    if (q) return words_param(a, q);
    char *s = arena_strdup(a, words_updated(a, v->shape.name));
    char *weight = strstr(s, ".weight");
    if (!weight) return words_leaf(s);
    const char *tail = arena_strdup(a, weight + 7);
    *weight = 0;
    return arena_printf(a, "%s%s", words_leaf(s), tail);
}

/* Equal values are one picture, whatever their uses (replicate, varying_use). */
static const char *cut_place(const TracePlace *p) {
    bool told = place_cut(p->place, NULL) != PLACE_WHOLE || place_pending(p->place) != PENDING_NONE;
    return told ? p->place : "";
}
static bool same_places(const TraceShape *a, const TraceShape *b) {
    bool same = a->nd == b->nd && a->n_places == b->n_places &&
                !strcmp(a->pending ? a->pending : "", b->pending ? b->pending : "");
    for (int i = 0; same && i < a->n_places; i++)
        same = !strcmp(cut_place(&a->place[i]), cut_place(&b->place[i]));
    return same;
}
static bool same_layout(const TraceShape *a, const TraceShape *b) {
    return text_same(a->symbolic ? a->symbolic : "", b->symbolic ? b->symbolic : "") &&
           same_places(a, b);
}
/* Are both dims cut into as many even parts by the same axes, whatever they are dims of? */
static bool same_cut(ShardPen *p, const TraceShape *a, const TraceShape *b, int d) {
    const char *x = strchr(a->dim_symbol[d], '/'), *y = strchr(b->dim_symbol[d], '/');
    if (!strcmp(a->dim_symbol[d], b->dim_symbol[d])) return true;
    DimCut j = shards_value_cut(p->c->arena, p->c->t, a, d, p->rank),
           k = shards_value_cut(p->c->arena, p->c->t, b, d, p->rank);
    return text_same(x ? x : "", y ? y : "") && j.blocks == k.blocks && !j.uneven && !k.uneven;
}
/* Do both lie alike, in a section where sizes count or not? */
static bool lie_alike(ShardPen *p, int section, const TraceShape *a, const TraceShape *b) {
    if (section < SEC_GRADS) return same_layout(a, b);
    bool same = same_places(a, b);
    for (int d = 0; same && d < a->nd; d++) same = same_cut(p, a, b, d);
    return same;
}
/* Do both stand in one row? What a collective leaves is apart from what an op makes in the same
 * layout, and from what another row's leaves, so that it stands behind what the collective took;
 * and what it takes is apart from what lies so and stays. */
static bool alike(ShardPen *p, const Row *x, const Row *y) {
    return x->wrong == y->wrong && x->next == y->next && x->from == y->from &&
           text_same(x->by ? x->by : "", y->by ? y->by : "") &&
           text_same(x->on ? x->on : "", y->on ? y->on : "") &&
           lie_alike(p, x->section, x->s, y->s);
}
static bool has_name(const Row *r, const char *name) {
    const size_t n = strlen(name);
    for (const char *s = r->names.n ? r->names.s : ""; *s; s += strspn(s, ", ")) {
        const size_t k = strcspn(s, ",");
        if (k == n && !strncmp(s, name, n)) return true;
        s += k;
    }
    return false;
}
/* One more thing of this name and layout in a section whose rows begin at `start`; returns its row,
 * -1: no room. */
static int add_row(ShardPen *p, Row *row, int *n, int start, const Row *as, const char *name) {
    const TraceLocal *l = words_find_local(as->s, p->rank);
    const int64_t bytes = l ? l->bytes : 0;
    int k = start;
    /* what is made of a value in its layout, of its name (a bias added), is the same to a reader */
    while (k < *n && (as->by || row[k].wrong != as->wrong || !has_name(&row[k], name) ||
                      !lie_alike(p, as->section, row[k].s, as->s)))
        k++;
    for (int i = start; i < *n && k == *n; i++)
        if (alike(p, &row[i], as)) k = i;
    if (k == MAX_ROWS) return -1;
    if (k == *n) {
        row[(*n)++] = *as;
        row[k].names = str_new(p->c->arena), row[k].tip = str_new(p->c->arena);
        row[k].each = true;
    }
    Row *r = &row[k];
    if (has_name(r, name)) return k;
    for (int d = 0; d < r->s->nd; d++)
        r->other[d] |= strcmp(r->s->dim_symbol[d], as->s->dim_symbol[d]) != 0;
    r->each &= bytes * r->n == r->bytes; /* as large as those before it, all alike */
    r->bytes += bytes;
    if (as->coll && as->coll->inferred) r->coll = as->coll; /* a broken border, if any has one */
    if (r->n < MAX_NAMES) r->name[r->n] = name;
    r->n++;
    str_addf(&r->names, "%s%s", r->names.n ? ", " : "", name);
    str_addf(&r->tip, "%s%s", r->tip.n ? ", " : "", name);
    if (strcmp(name, as->s->name)) str_addf(&r->tip, " (%s)", as->s->name);
    return k;
}
static int stack_rows(ShardPen *p, Row *row) {
    int n = 0;
    for (int i = 0; i < p->c->t->n_params; i++) {
        const TraceParam *q = &p->c->t->params[i];
        const Row as = {.s = &q->rest,
                        .section = SEC_STACKS,
                        .wrong = shards_wrong_of(p, q),
                        .next = -1,
                        .from = -1};
        if (shards_wanted(p, q) && shards_of_all_experts(p->c->t, q) && !shards_as_experts(p, q))
            add_row(p, row, &n, 0, &as, words_param(p->c->arena, q));
    }
    return n;
}
static const char *coll_name(const TraceCollective *c) {
    const CollWord *w = coll_word(c->op);
    return w ? w->name : c->op;
}
/* What moved a value into its layout. */
typedef struct {
    const char *by;              /* "AllGather", "slice"; NULL: an op made it */
    const TraceCollective *coll; /* NULL: no collective did */
    int step;                    /* that made what it took; UNKNOWN: the last before */
} Moved;
enum { UNKNOWN = -2 };
static Moved moved_by(Arena *a, const Trace *t, const TraceValue *v) {
    const TraceCollective *c = v->step < 0 ? NULL : trace_collective_of(t, v->step);
    if (c) return (Moved){coll_name(c), c, c->step == v->step ? c->value_step : UNKNOWN};
    for (int i = 0; i < t->n_moves; i++) {
        const TraceLocalMove *m = &t->moves[i];
        if (m->step != v->step) continue;
        const CollWord *alone = coll_word(m->op);
        const char *by = words_declares(m) ? "the declaration"
                         : alone           ? arena_printf(a, "%s of 1 rank", alone->name)
                                           : m->op;
        return (Moved){by, NULL, m->value_step};
    }
    return (Moved){0};
}
/* Over axes of one rank nothing is moved, as `comms` has it: the value before it lies as this one.
 * What is wrong or planted there is shown. */
static bool is_same(const Trace *t, const TraceValue *v) {
    if (v->step < 0) return false;
    for (int i = 0; i < t->n_moves; i++) {
        const TraceLocalMove *m = &t->moves[i];
        if (m->step == v->step) return coll_word(m->op) && !m->wrong && !m->planted;
    }
    return false;
}
/* What a value was moved from, its index, and by what; -1: an op made it, or the rank has nothing
 * of it. */
static int taken_from(ShardPen *p, const TraceValue *v, int section, Moved *moved) {
    const Trace *t = p->c->t;
    int from = -1;
    *moved = moved_by(p->c->arena, t, v);
    for (int i = 0; moved->by && i < t->n_values; i++) {
        const TraceValue *o = &t->values[i];
        if (o->step < v->step && o->layer == v->layer && section_of(o) == section &&
            !strcmp(o->shape.name, v->shape.name) &&
            (moved->step == UNKNOWN ? from < 0 || o->step >= t->values[from].step
                                    : o->step == moved->step))
            from = i;
    }
    Moved none;
    return from >= 0 && is_same(t, &t->values[from])
               ? taken_from(p, &t->values[from], section, &none)
               : from;
}
static bool stands(const ShardPen *p, const TraceValue *v, int section) {
    return (p->layer < 0 || v->layer == p->layer) && v->shape.nd > 0 && section_of(v) == section &&
           !trace_param(p->c->t, v->shape.name) && !is_same(p->c->t, v);
}
/* Of each value of a section what moves it into another layout: one that is made of it in its
 * layout, of its name, may be what is moved. */
static void find_moves_on(ShardPen *p, int section, const char **on) {
    const Trace *t = p->c->t;
    for (int i = 0; i < t->n_values; i++) {
        Moved moved;
        const TraceValue *v = &t->values[i];
        const int from = stands(p, v, section) ? taken_from(p, v, section, &moved) : -1;
        if (from < 0 || on[from] || same_layout(&t->values[from].shape, &v->shape)) continue;
        on[from] = arena_printf(p->c->arena, "%s %s", moved.by, moved.coll ? moved.coll->axis : "");
    }
    for (int i = t->n_values - 1; i >= 0; i--)
        for (int k = 0; on[i] && k < i; k++)
            if (!on[k] && stands(p, &t->values[k], section) &&
                t->values[k].layer == t->values[i].layer &&
                !strcmp(t->values[k].shape.name, t->values[i].shape.name) &&
                same_layout(&t->values[k].shape, &t->values[i].shape))
                on[k] = on[i];
}
/* A value keeps its name when it is moved: what moved it, where the name stands in two rows; and
 * the row that it was moved from. False: of what it took the rank has nothing (the other way's of a
 * pipeline that is entered at both ends). */
static bool tell_apart(ShardPen *p, const TraceValue *v, const int *row_of, Row *as) {
    Moved moved;
    const int from = taken_from(p, v, as->section, &moved);
    if (from < 0) return !moved.by || moved.step < 0;
    if (same_layout(&p->c->t->values[from].shape, &v->shape)) return true;
    as->by = moved.by;
    as->coll = moved.coll;
    as->from = row_of[from];
    return true;
}
/* The wrong step that moves the value on: it stands behind what it takes, not behind all that lies
 * like it. -1: none does. */
static int wrong_next(const ShardPen *p, const TraceValue *v) {
    const Trace *t = p->c->t;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->value_step == v->step && text_same(c->value, v->shape.name) &&
            wrong_number(p->wrong, c->step))
            return c->step;
    }
    for (int i = 0; i < t->n_moves; i++) {
        const TraceLocalMove *m = &t->moves[i];
        if (m->value_step == v->step && text_same(m->value, v->shape.name) &&
            wrong_number(p->wrong, m->step))
            return m->step;
    }
    return -1;
}
/* Values of the layer, one row per layout and section, sections in order. */
static int value_rows(ShardPen *p, Row *row) {
    const Trace *t = p->c->t;
    int n = stack_rows(p, row), *row_of = ARENA_ARRAY(p->c->arena, int, t->n_values + 1);
    const char **on = ARENA_ARRAY(p->c->arena, const char *, t->n_values + 1);
    for (int sec = SEC_VALUES; sec < SECTIONS; sec++) {
        if (two_columns(p)) find_moves_on(p, sec, on); /* else no row stands behind another */
        for (int i = 0, start = n; i < t->n_values; i++) {
            const TraceValue *v = &t->values[i];
            if (!stands(p, v, sec)) continue;
            Row as = {.s = &v->shape,
                      .section = sec,
                      .wrong = wrong_number(p->wrong, v->step) ? v->step : -1,
                      .next = wrong_next(p, v),
                      .on = on[i],
                      .from = -1};
            if (tell_apart(p, v, row_of, &as))
                row_of[i] = add_row(p, row, &n, start, &as, short_name(p, v, sec));
        }
    }
    return n;
}

/* ---- lines ---- */

/* One row, or two: of a pair the right one is what a collective or a move makes of the left. */
typedef struct {
    int left, right; /* right: -1: none */
    bool pair;
} Line;
/* The first row that is moved from row i and stands in no line; -1: none. */
static int follower(const Row *row, int n, int i, const bool *placed) {
    for (int k = i + 1; k < n; k++)
        if (row[k].from == i && row[k].section == row[i].section && !placed[k]) return k;
    return -1;
}
/* Whatever is moved stands behind what it was moved from, which then may stand in several lines; of
 * the others two are a line, where the second comes soon after the first. */
static int make_lines(const ShardPen *p, const Row *row, int n, Line *line) {
    enum { NEAR = 2 };
    const bool two = two_columns(p);
    bool placed[MAX_ROWS] = {false};
    int lines = 0, open = -1; /* the line with room at its right */
    for (int i = 0; i < n; i++) {
        if (i == 0 || row[i].section != row[i - 1].section) open = -1;
        const int from = row[i].from;
        if (!placed[i] && two && from >= 0 && row[from].section == row[i].section)
            placed[i] = true, line[lines++] = (Line){from, i, true};
        const int next = two ? follower(row, n, i, placed) : -1;
        if (next >= 0) placed[i] = placed[next] = true, line[lines++] = (Line){i, next, true};
        if (placed[i]) continue;
        placed[i] = true;
        if (open >= 0 && lines - open <= NEAR) {
            line[open].right = i;
            open = -1;
            continue;
        }
        if (two) open = lines;
        line[lines++] = (Line){i, -1, false};
    }
    return lines;
}

/* "rows", "columns": what a dim is called where things of several sizes stand in a row. */
static const char *dim_base(ShardPen *p, const Row *r, int d) {
    const int last = r->s->nd - 1;
    if (!r->other[d])
        return words_symbol(p->c->arena, words_base(p->c->arena, r->s->dim_symbol[d]));
    return last == 0       ? "elements"
           : d == last     ? "columns"
           : d == last - 1 ? "rows"
                           : arena_printf(p->c->arena, "dim %d", d);
}
/* "[B/dp, S/cp, D]", "[rows/tp, columns]". */
static const char *row_symbol(ShardPen *p, const Row *r) {
    bool other = false;
    for (int d = 0; d < r->s->nd; d++) other |= r->other[d];
    if (!other) return words_symbol(p->c->arena, r->s->symbolic);
    Str s = str_new(p->c->arena);
    for (int d = 0; d < r->s->nd; d++) {
        const char *cut = strchr(r->s->dim_symbol[d], '/');
        str_addf(&s, "%s%s%s", d ? ", " : "[", dim_base(p, r, d),
                 cut ? words_symbol(p->c->arena, cut) : "");
    }
    str_add(&s, "]");
    return s.s;
}
/* The axes over which the largest is not taken yet: "tp"; "". */
static const char *largest_pending(ShardPen *p, const TraceShape *s) {
    Str axes = str_new(p->c->arena);
    for (int i = 0; i < s->n_places; i++)
        if (place_pending(s->place[i].place) == PENDING_MAX)
            str_addf(&axes, "%s%s", axes.n ? "*" : "", s->place[i].axis);
    return axes.n ? axes.s : "";
}
/* What stands beside a row's names: its layout, its bytes if they are asked for, what moved it
 * there, what is pending. */
static int layout_runs(ShardPen *p, const Row *r, bool say_by, bool say_bytes, Run run[2]) {
    Arena *a = p->c->arena;
    const char *bytes = !say_bytes  ? ""
                        : !r->bytes ? "nothing here"
                                    : bytes_text(r->each ? r->bytes / r->n : r->bytes, a),
               *of = r->n < 2 || !say_bytes || !r->bytes ? ""
                     : r->each                           ? " each"
                                                         : " in all",
               *largest = largest_pending(p, r->s), *sum = r->s->pending ? r->s->pending : "";
    run[0] = (Run){arena_printf(a, "%s%s%s%s%s%s", row_symbol(p, r), *bytes ? "   " : "", bytes, of,
                                !say_by                             ? ""
                                : r->coll && wrong_skipped(r->coll) ? "   without "
                                                                    : "   after ",
                                say_by ? r->by : ""),
                   REGULAR, ROLE_SECOND, false, false};
    if (!*sum && !*largest) return 1;
    const char *axes = *sum ? sum : largest,
               *pend = arena_printf(a, "   %s %s pending", *sum ? "Σ" : "max",
                                    words_axis_list(a, p->c->t, axes));
    run[1] = (Run){pend, SEMIBOLD, ROLE_AXIS_TEXT + theme_axis(axes), false, false};
    return 2;
}
static double runs_width(ShardPen *p, const Run *run, int n) {
    double w = 0;
    for (int i = 0; i < n; i++) w += scene_width(p->s, 12, run[i].weight, run[i].s);
    return w;
}
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

/* ---- the picture ---- */

enum { GUTTER = 140, DIM_GAP = 10, COLUMN_GAP = 16, LINE_HIGH = 60, COLUMN_HIGH = 66 };

/* "S 16: cp zigzag", under the ruler of a dim. */
static const char *ruler_words(ShardPen *p, const Row *r, int d, const DimCut *c) {
    Arena *a = p->c->arena;
    const char *size =
        r->other[d] ? "" : arena_printf(a, " %lld", (long long)r->s->global_shape[d]);
    bool cut = c->n > 1;
    return arena_printf(a, "%s%s%s%s%s", dim_base(p, r, d), size, cut ? ": " : "",
                        cut ? shards_axes(a, p->c->t, c) : "", order_words(c));
}
static void draw_ruler(ShardPen *p, const Row *row, int d, Area at) {
    Arena *a = p->c->arena;
    const Trace *t = p->c->t;
    const TraceShape *s = row->s;
    DimCut c = shards_value_cut(a, t, s, d, p->rank);
    const char *text = ruler_words(p, row, d, &c);
    scene_begin(p->s, "ruler", arena_printf(a, "ruler-%s-%d", s->name, d),
                arena_printf(a, "%s of %s: %lld, %s%s",
                             words_symbol(a, words_base(a, s->dim_symbol[d])), s->name,
                             (long long)s->global_shape[d], c.n > 1 ? "cut by " : "whole",
                             shards_axes(a, t, &c)));
    Ruler r = ruler_new(p, s, &c, at);
    if (r.n > RULER_PARTS) ruler_band(p, &r);
    else ruler_parts(p, &r);
    scene_rect(p->s, at, 0, (Look){ROLE_NONE, ROLE_WEIGHT_LINE, 1.25});
    Role role = c.n > 1 ? ROLE_AXIS_TEXT + shards_axis_kind(a, t, &c) : ROLE_SECOND;
    scene_text(p->s, at.x, at.y + at.h + 14, (TextLook){ALIGN_LEFT, 12, REGULAR, role},
               scene_fit(p->s, text, at.w + DIM_GAP - 2, 12, REGULAR));
    scene_end(p->s);
}

/* Where the rulers of a section stand in a cell, one below the other in all its rows of as many
 * dims. */
typedef struct {
    int n;
    double x[TRACE_MAX_DIMS], w[TRACE_MAX_DIMS];
} Rulers;
/* A dim that no row cuts has room for its words alone. */
static Rulers section_rulers(ShardPen *p, const Row *row, int n, const Row *as, double w) {
    Rulers r = {.n = as->s->nd};
    double need[TRACE_MAX_DIMS] = {0}, all = 0;
    bool cut[TRACE_MAX_DIMS] = {false};
    int wide = 0;
    for (int i = 0; i < n; i++)
        for (int d = 0; row[i].section == as->section && row[i].s->nd == r.n && d < r.n; d++) {
            DimCut c = shards_value_cut(p->c->arena, p->c->t, row[i].s, d, p->rank);
            cut[d] |= c.n > 1;
            need[d] =
                fmax(need[d], scene_width(p->s, 12, REGULAR, ruler_words(p, &row[i], d, &c)) + 2);
        }
    for (int d = 0; d < r.n; d++) need[d] = fmax(need[d], 34), wide += cut[d], all += need[d];
    double left = w - all - DIM_GAP * (r.n - 1); /* for those that are cut, or for all */
    for (int d = 0; d < r.n; d++) {
        r.w[d] = left < 0 ? need[d] * (w - DIM_GAP * (r.n - 1)) / all
                 : cut[d] ? need[d] + left / wide
                 : !wide  ? need[d] + left / r.n
                          : need[d];
        r.x[d] = d ? r.x[d - 1] + r.w[d - 1] + DIM_GAP : 0;
    }
    return r;
}

/* How far a value of a row is from what the other plan has. */
typedef enum { LIKE, LIES_OTHERWISE, OTHER_SIZE, NOT_THERE, UNLIKES } Unlike;
/* That of a name of the row, among n rows of the other plan. */
static Unlike unlike_of(ShardPen *p, const Row *r, const char *name, const Row *other, int n) {
    ShardPen far = *p->peer;
    const TraceLocal *l = words_find_local(r->s, p->rank);
    Unlike least = NOT_THERE;
    for (int i = 0; i < n && least; i++) {
        const Row *o = &other[i];
        const TraceLocal *k = words_find_local(o->s, far.rank);
        if (o->section != r->section || !has_name(o, name) ||
            !text_same(o->by ? o->by : "", r->by ? r->by : ""))
            continue;
        bool like = o->s->nd == r->s->nd && same_places(o->s, r->s) && !l == !k &&
                    !strcmp(row_symbol(&far, o), row_symbol(p, r));
        for (int d = 0; d < r->s->nd && like && l && k; d++) like = l->shape[d] == k->shape[d];
        const Unlike u = like                                       ? LIKE
                         : (l ? l->bytes : 0) == (k ? k->bytes : 0) ? LIES_OTHERWISE
                                                                    : OTHER_SIZE;
        least = u < least ? u : least;
    }
    return least;
}
/* Of n rows, into u; returns from where on they are marked: what stands nearly everywhere tells
 * nothing apart. */
static Unlike rows_unlike(ShardPen *p, const Row *row, int n, Unlike *u) {
    Row other[MAX_ROWS];
    ShardPen far = *p->peer;
    const int m = value_rows(&far, other);
    int count[UNLIKES] = {0}, from = NOT_THERE, above = 0;
    for (int i = 0; i < n; i++) {
        u[i] = LIKE;
        for (int k = 0; k < row[i].n && k < MAX_NAMES; k++) {
            const Unlike x = unlike_of(p, &row[i], row[i].name[k], other, m);
            u[i] = x > u[i] ? x : u[i];
        }
        count[u[i]]++;
    }
    for (int x = NOT_THERE; x > LIKE; x--)
        if (2 * (above += count[x]) <= n) from = x;
    return (Unlike)from;
}

/* A row with its head at `at.y`, in the width at.w. */
static void draw_row(ShardPen *p, const Row *row, int n, int number, Area at, bool say_by) {
    const Row *r = &row[number];
    const Rulers own = section_rulers(p, row, n, r, at.w), *rulers = &own;
    bool narrow = !two_columns(p);
    Run run[2];
    const char *least =
        r->n > 1 ? arena_printf(p->c->arena, "%s and %d more", r->name[0], r->n - 1) : r->name[0];
    /* names give way to the layout, and bytes go where there is no room beside the shortest */
    const double least_w = scene_width(p->s, 12.5, SEMIBOLD, least), most = at.w - 14 - least_w,
                 tab = narrow ? p->w * 0.48 : 0; /* where layouts begin, if they have room there */
    int k = layout_runs(p, r, say_by && r->by, true, run);
    if (runs_width(p, run, k) > most) k = layout_runs(p, r, say_by && r->by, false, run);
    const double rw = runs_width(p, run, k), from = fmin(tab, at.w - rw);
    double room = fmax(narrow && from >= tab ? tab - 14 : at.w - rw - 14, least_w);
    const char *names = fit_names(p, r, room);
    scene_begin(p->s, "values", arena_printf(p->c->arena, "values-%d", number), r->tip.s);
    double tw = scene_text(
        p->s, at.x, at.y + 12,
        (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, r->wrong < 0 ? ROLE_INK : ROLE_FAIL}, names);
    wrong_flag(p->s, p->wrong, r->wrong, at.x - 11, at.y + 8);
    if (r->unlike) figure_unlike(p->s, (Pt){at.x, at.y + 15}, tw, NOT_SO, p->legend);
    scene_end(p->s);
    double x = fmax(at.x + tw + 14, narrow ? at.x + from : 0);
    room = at.x + at.w - x;
    if (k == 2 && rw > room) run[1].s = scene_fit(p->s, run[1].s, room, 12, SEMIBOLD);
    run[0].s =
        scene_fit(p->s, run[0].s, fmax(0, room - runs_width(p, run + 1, k - 1)), 12, REGULAR);
    scene_runs(p->s, (Pt){x, at.y + 12}, ALIGN_LEFT, 12, run, k);
    for (int d = 0; d < r->s->nd; d++)
        draw_ruler(p, r, d, (Area){at.x + rulers->x[d], at.y + 19, rulers->w[d], p->ruler});
}
/* "AllGather over tp of after wo", "slice of cotangent". */
static const char *moved_tip(ShardPen *p, const Row *r) {
    const char *axis = r->coll ? words_axis_list(p->c->arena, p->c->t, r->coll->axis) : "";
    return arena_printf(p->c->arena, "%s%s%s of %s", r->by, *axis ? " over " : "", axis,
                        r->names.s);
}
/* The hexagon of a row's collective in the middle of `at`; returns its group. */
static int draw_collective(ShardPen *p, const Row *r, int number, double mid, Area *at) {
    Arena *a = p->c->arena;
    const char *over = words_done(
        a, arena_printf(a, "over %s", words_axis_list(a, p->c->t, r->coll->axis)), r->coll);
    double w = fmin(at->w - 24, 24 + fmax(scene_width(p->s, 12, SEMIBOLD, r->by),
                                          scene_width(p->s, 12, REGULAR, over)));
    *at = (Area){at->x + (at->w - w) / 2, mid - 19, w, 38};
    Hexagon h = hexagon_of(r->coll, at->x, at->y, w, at->h);
    Str tip = str_new(a);
    str_add(&tip, moved_tip(p, r));
    tip_inferred(&tip, r->coll);
    h.id = arena_printf(a, "between-%d", number);
    h.tip = tip.s;
    h.wrong = r->wrong >= 0;
    h.line[0] = (HexagonLine){r->by, mid - 3, 12, SEMIBOLD};
    h.line[1] = (HexagonLine){scene_fit(p->s, over, w - 20, 12, REGULAR), mid + 12, 12, REGULAR};
    return hexagon_draw(p->s, &h, p->legend);
}
/* What moves the left row into the right one, between them. */
static void draw_between(ShardPen *p, const Row *r, int number, Area at) {
    const double mid = at.y + 19 + p->ruler / 2, end = at.x + at.w - 3;
    const ArrowLook look = {ROLE_INK, 1.5, false, false};
    scene_begin(p->s, "moved", arena_printf(p->c->arena, "moved-%d", number), moved_tip(p, r));
    if (r->coll) {
        Area in = at;
        int hexagon = draw_collective(p, r, number, mid, &in);
        scene_arrow(p->s, (const Pt[]){{at.x + 3, mid}, {in.x, mid}}, 2, look, hexagon);
        scene_arrow(p->s, (const Pt[]){{in.x + in.w, mid}, {end, mid}}, 2, look, -1);
    } else {
        const char *by = scene_fit(p->s, r->by, at.w - 8, 12, SEMIBOLD);
        scene_arrow(p->s, (const Pt[]){{at.x + 5, mid}, {end, mid}}, 2, look, -1);
        scene_text(p->s, at.x + at.w / 2, mid - 8, (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_INK},
                   by);
    }
    scene_end(p->s);
}

/* All rows, and the lines that they stand in; returns how many lines. */
static int read_lines(ShardPen *p, Row *row, Line *line) {
    const int n = value_rows(p, row);
    return make_lines(p, row, n, line);
}
/* What lines [from, end) take: a heading is a line, but for that of the first. */
static int units(const Row *row, const Line *line, int from, int end) {
    int n = 0;
    for (int i = from; i < end; i++)
        n += 1 + (i > from && row[line[i].left].section != row[line[i - 1].left].section);
    return n;
}
/* Does a page that begins with this line leave no line of a section alone? */
static bool begins_well(const Row *row, const Line *line, int lines, int i) {
    const int of = row[line[i].left].section;
    const bool goes_on = row[line[i - 1].left].section == of;
    const bool alone_before = i < 2 || row[line[i - 2].left].section != of,
               alone = i + 1 == lines || row[line[i + 1].left].section != of;
    return !goes_on || (!alone_before && !alone);
}
/* As few pages as there can be, and these as full as each other: the lines of the first; 0: that
 * would leave a line alone. A page that ends with a section is better than a fuller one. */
static int even_page(const Row *row, const Line *line, int lines, int from, int most) {
    const int all = units(row, line, from, lines), pages = (all + most - 1) / most,
              want = (all + pages - 1) / pages;
    int best = 0, far = 3 * most;
    for (int end = from + 1; end < lines; end++) {
        const int n = units(row, line, from, end),
                  left = (units(row, line, end, lines) + most - 1) / most;
        const bool ends = row[line[end].left].section != row[line[end - 1].left].section;
        const int off = 2 * (n > want ? n - want : want - n) - ends;
        if (n > most || left >= pages || !begins_well(row, line, lines, end) || off > far) continue;
        best = end - from, far = off;
    }
    return pages == 1 ? lines - from : best;
}
int shards_values_page(ShardPen *p, int from, int most) {
    Row row[MAX_ROWS];
    Line line[MAX_LINES];
    int lines = read_lines(p, row, line), end = from, high = 0;
    const int even = even_page(row, line, lines, from, most);
    if (even) return even;
    while (end < lines) {
        int k = end;
        while (k < lines && row[line[k].left].section == row[line[end].left].section) k++;
        const int n = k - end, pages = (n + most - 1) / most;
        if (end == from && n > most) return (n + pages - 1) / pages;
        if (end > from && high + 1 + n > most) { /* a heading is a line */
            if (2 * high < most) return end - from + most - high - 1;
            if (n < 3 && k == lines && high == end - from) return (high + 1) / 2;
            break;
        }
        high += n + (end > from);
        end = k;
    }
    return end - from;
}
int shards_values(ShardPen *p) {
    Row row[MAX_ROWS];
    Line line[MAX_LINES];
    return read_lines(p, row, line);
}
static void mark_unlike(ShardPen *p, Row *row, int n) {
    Unlike u[MAX_ROWS];
    if (!p->peer) return;
    const Unlike from = rows_unlike(p, row, n, u);
    for (int i = 0; i < n; i++) row[i].unlike = u[i] >= from;
}
/* The heading of a section; of the first on a page with how to read its rows. */
static void draw_heading(ShardPen *p, int section, bool first, double y) {
    double tw = scene_text(p->s, p->x, y + 12, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK},
                           section_names[section]);
    const char *more = two_columns(p)
                           ? "one bar per dim, cut as its ranks hold it; the number is the part's"
                           : "one bar per dim";
    if (first)
        scene_text(p->s, p->x + tw + 16, y + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   more);
}
/* Height of a line; on a slide few are higher, and so are their rulers. */
static double line_height(ShardPen *p, int lines) {
    enum { ROOM = 330, MOST = 130 };
    double high = two_columns(p) ? LINE_HIGH : COLUMN_HIGH;
    if (p->preset == PRESET_SLIDE && !p->load)
        high = fmax(high, fmin(MOST, ROOM / (double)(lines > 0 ? lines : 1)));
    p->ruler = RULER_HEIGHT + (two_columns(p) ? (high - LINE_HIGH) / 2 : 0);
    return high;
}

/* ---- beside another plan ---- */

/* Rows of two plans under one another: where a plan has no such row there is a gap, so that what
 * both have faces itself. */
typedef struct {
    int n;            /* places */
    int at[MAX_ROWS]; /* of each row of the pen's plan, its place */
    int section[2 * MAX_ROWS];
} Facing;
/* Do both rows tell of one thing: of a value, as the same made it? */
static bool face(const Row *x, const Row *y) {
    if (x->section != y->section || !text_same(x->by ? x->by : "", y->by ? y->by : ""))
        return false;
    for (int i = 0; i < x->n && i < MAX_NAMES; i++)
        if (has_name(y, x->name[i])) return true;
    return false;
}
/* The places of n rows and of m of the other plan, which have the longest list of pairs in the
 * order of both; what stands between two pairs comes section by section, those of the first plan
 * first. */
static Facing rows_facing(ShardPen *p, const Row *row, int n) {
    const bool second = p->c->all == p->c->o->with;
    Row other[MAX_ROWS];
    ShardPen far = *p->peer;
    const int m = value_rows(&far, other), na = second ? m : n, nb = second ? n : m;
    const Row *a = second ? other : row, *b = second ? row : other;
    int(*pairs)[MAX_ROWS + 1] = arena_alloc(p->c->arena, sizeof *pairs * (MAX_ROWS + 1));
    Facing f = {0};
    for (int i = na - 1; i >= 0; i--)
        for (int k = nb - 1; k >= 0; k--) {
            int best = pairs[i + 1][k] > pairs[i][k + 1] ? pairs[i + 1][k] : pairs[i][k + 1];
            const int with = face(&a[i], &b[k]) ? pairs[i + 1][k + 1] + 1 : 0;
            pairs[i][k] = with > best ? with : best;
        }
    for (int i = 0, k = 0; i < na || k < nb; f.n++) {
        const bool both = i < na && k < nb && face(&a[i], &b[k]) &&
                          pairs[i][k] == pairs[i + 1][k + 1] + 1,
                   skip_a = i < na && (k >= nb || pairs[i + 1][k] == pairs[i][k]),
                   skip_b = k < nb && (i >= na || pairs[i][k + 1] == pairs[i][k]),
                   first = both || (skip_a && (!skip_b || a[i].section <= b[k].section));
        f.section[f.n] = first ? a[i].section : b[k].section;
        if (first && !second) f.at[i] = f.n;
        if ((both || !first) && second) f.at[k] = f.n;
        i += first, k += both || !first;
    }
    return f;
}
/* All rows at their places; returns the y under those of both plans. */
static double draw_facing(ShardPen *p, const Row *row, int n, double y) {
    const Facing f = rows_facing(p, row, n);
    const double high = line_height(p, f.n);
    int section = -1;
    for (int place = 0, i = 0; place < f.n; place++, y += high) {
        const bool here = i < n && f.at[i] == place;
        if (f.section[place] != section) {
            y += section < 0 ? 0 : 8;
            for (int k = i, told = 0; k < n && !told; k++)
                if ((told = row[k].section == f.section[place]))
                    draw_heading(p, row[k].section, section < 0, y);
            y += 28;
            section = f.section[place];
        }
        if (here) draw_row(p, row, n, i++, (Area){p->x, y, p->w, 0}, true);
    }
    return y + 4;
}
double shards_draw_values(ShardPen *p, int from, int count, double y) {
    Row row[MAX_ROWS];
    Line line[MAX_LINES];
    int n = value_rows(p, row), lines = make_lines(p, row, n, line), section = -1;
    mark_unlike(p, row, n);
    if (p->peer && !two_columns(p) && from == 0 && count >= lines) return draw_facing(p, row, n, y);
    const double w = two_columns(p) ? (p->w - GUTTER) / 2 : p->w, high = line_height(p, count);
    for (int i = from; i < lines && i < from + count; i++) {
        const int l = line[i].left, r = line[i].right;
        if (row[l].section != section) {
            y += section < 0 ? 0 : 8;
            draw_heading(p, row[l].section, section < 0, y);
            y += 28;
            section = row[l].section;
        }
        draw_row(p, row, n, l, (Area){p->x, y, w, 0}, true);
        if (r >= 0) draw_row(p, row, n, r, (Area){p->x + w + GUTTER, y, w, 0}, !line[i].pair);
        if (line[i].pair) draw_between(p, &row[r], r, (Area){p->x + w, y, GUTTER, 0});
        y += high;
    }
    return y;
}

/* Of a section that other pages go on with: what its lines [from, end) begin and end with. */
static const char *between_names(ShardPen *p, const Row *row, const Line *line, int from, int end) {
    const Line *last = &line[end - 1];
    const Row *r = &row[last->right >= 0 ? last->right : last->left];
    const char *first = row[line[from].left].name[0],
               *to = r->name[(r->n < MAX_NAMES ? r->n : MAX_NAMES) - 1];
    return !strcmp(first, to) ? arena_printf(p->c->arena, ": %s", first)
                              : arena_printf(p->c->arena, ": %s to %s", first, to);
}
const char *shards_values_title(ShardPen *p, int from, int count) {
    Row row[MAX_ROWS];
    Line line[MAX_LINES];
    Str s = str_new(p->c->arena);
    int lines = read_lines(p, row, line), end = from + count < lines ? from + count : lines;
    for (int i = from, k; i < end; i = k) {
        const int of = row[line[i].left].section;
        for (k = i; k < end && row[line[k].left].section == of;) k++;
        bool part = (i > 0 && row[line[i - 1].left].section == of) ||
                    (k < lines && row[line[k].left].section == of);
        str_addf(&s, "%s%s%s", s.n ? " · " : "", section_names[of],
                 part ? between_names(p, row, line, i, k) : "");
    }
    return s.n ? s.s : "";
}

void shards_values_words(ShardPen *p, int from, int count, Str *s) {
    Arena *a = p->c->arena;
    const Trace *t = p->c->t;
    Row row[MAX_ROWS];
    Line line[MAX_LINES];
    int n = value_rows(p, row), lines = make_lines(p, row, n, line);
    bool rows = false, hatched = false;
    int64_t ring = 0; /* ranks of the axis that cuts in zigzag */
    const char *axis = "", *inner = "";
    for (int i = from; i < lines && i < from + count; i++)
        for (int k = 0; k < 2; k++) {
            const int at = k ? line[i].right : line[i].left;
            for (int d = 0; at >= 0 && d < row[at].s->nd; d++) {
                DimCut c = shards_value_cut(a, t, row[at].s, d, p->rank);
                hatched |= row[at].s->pending && *row[at].s->pending;
                rows |= c.rows && c.n > 1;
                if (c.order != PLACE_ZIGZAG || !c.n_axis) continue;
                ring = t->axes[c.axis[0]].size, axis = t->axes[c.axis[0]].name;
                c.axis[0] = c.axis[c.n_axis - 1];
                if (c.n_axis == 2) c.n_axis = 1, inner = shards_axes(a, t, &c);
            }
        }
    static const char *const unlike[UNLIKES] = {
        [OTHER_SIZE] = " Most values lie otherwise than in the other plan: marked are those of "
                       "another size, or that it has not.",
        [NOT_THERE] = " Most values lie otherwise than in the other plan: marked are those that "
                      "it has not."};
    Unlike u[MAX_ROWS], least = p->peer ? rows_unlike(p, row, n, u) : LIKE;
    bool marked = false;
    for (int i = 0; i < n && least; i++) marked |= u[i] >= least;
    if (unlike[least])
        str_add(s, marked
                       ? unlike[least]
                       : " Most values lie otherwise than in the other plan and are not marked.");
    if (hatched) str_add(s, " Hatched: a term of the sum, on each rank.");
    if (ring)
        str_addf(s, " Zigzag: of %lld pieces %s i has those numbered i and %lld − i%s%s%s.",
                 (long long)(2 * ring), axis, (long long)(2 * ring - 1), *inner ? "; " : "", inner,
                 *inner ? " cuts the two as one list" : "");
    if (rows) str_add(s, " Rows of experts stand by part: routing decides which they are.");
}
