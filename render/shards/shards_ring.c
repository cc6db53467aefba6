/* Blocks that go round a ring. See shards_ring.h. */
#include "base/text.h"
#include "render/shards/shards_ring.h"
#include <math.h>
#include <string.h>

enum { MOST = 16, MOST_VALUES = 8, HOP_GAP = 34, CLOSE = 3, NARROW = 30, RANK_WIDE = 64 };

/* A ring as its hops say. */
typedef struct {
    const char *axis;         /* as the plan names the group */
    const RankGroups *groups; /* all rings of the axis */
    int n, turns;             /* ranks of the group; hops and the start */
    int64_t rank[MOST];       /* those of the pen's rank's group, in the order of the ring */
    int n_value;              /* what travels: as it lies before its first hop */
    const TraceValue *value[MOST_VALUES];
} Ring;

/* ---- the records ---- */

static bool is_hop(const ShardPen *p, const TraceCollective *c) {
    const CollWord *w = coll_word(c->op);
    return w && w->ahead && phase_or_forward(c->pass) == PHASE_FORWARD &&
           (p->layer < 0 || c->layer == p->layer) && words_group_of(&c->groups, p->rank) >= 0;
}
/* The ranks of the pen's rank's group. */
static void find_ranks(const ShardPen *p, const TraceCollective *c, Ring *r) {
    const int64_t group = words_group_of(&c->groups, p->rank);
    r->axis = c->axis;
    r->groups = &c->groups;
    r->n = (int)groups_size(&c->groups);
    for (int k = 0; k < r->n; k++) r->rank[k] = groups_member(&c->groups, group, k);
}
static bool find(const ShardPen *p, Ring *r) {
    const Trace *t = p->c->t;
    int hops = 0, layer = -1;
    *r = (Ring){0};
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        bool said = false;
        if (!is_hop(p, c) || (r->n && c->layer != layer)) continue;
        if (c->skipped || c->shift || c->wrong || groups_size(&c->groups) > MOST) return false;
        if (!r->n) find_ranks(p, c, r), layer = c->layer;
        for (int k = 0; k < r->n_value; k++) said |= text_same(r->value[k]->shape.name, c->value);
        const TraceValue *v = said ? NULL : trace_value(t, c->value, c->value_step);
        if (v && r->n_value < MOST_VALUES) r->value[r->n_value++] = v;
        hops += r->n_value && text_same(r->value[0]->shape.name, c->value);
    }
    r->turns = hops + 1;
    return r->n > 1 && r->n_value > 0 && hops < r->n;
}
bool shards_ring(ShardPen *p) {
    Ring r;
    return find(p, &r);
}
/* The place whose block place k has after so many hops. */
static int block_at(const Ring *r, int turn, int k) { return ((k - turn) % r->n + r->n) % r->n; }

/* ---- words ---- */

static const char *title(ShardPen *p, const Ring *r) {
    Arena *a = p->c->arena;
    const int64_t n = groups_count(r->groups);
    const char *axis = words_axis_list(a, p->c->t, r->axis);
    if (n < 2) return arena_printf(a, "The ring over %s", axis);
    return arena_printf(a, "One of %lld rings over %s", (long long)n, axis);
}
/* "this is {0,2}, {1,3} has the same hops; ": all rings, or how many the others are; "" if there is
 * one. */
static const char *others(ShardPen *p, const Ring *r) {
    enum { ALL = 4 };
    Arena *a = p->c->arena;
    const int64_t n = groups_count(r->groups), own = words_group_of(r->groups, p->rank);
    if (n < 2) return "";
    Str s = str_new(a);
    str_addf(&s, "this is %s", words_members(a, r->groups, own));
    if (n > ALL) str_addf(&s, ", the other %lld have", (long long)(n - 1));
    for (int64_t g = 0, told = 0; n <= ALL && g < n; g++)
        if (g != own)
            str_addf(&s, "%s%s",
                     !told++         ? ", "
                     : told == n - 1 ? " and "
                                     : ", ",
                     words_members(a, r->groups, g));
    if (n <= ALL) str_add(&s, n > 2 ? " have" : " has");
    str_add(&s, " the same hops; ");
    return s.s;
}
static const char *meaning(ShardPen *p, const Ring *r) {
    Str names = str_new(p->c->arena);
    for (int i = 0; i < r->n_value; i++)
        str_addf(&names, "%s%s", i ? ", " : "", shards_name(p, r->value[i]));
    return arena_printf(p->c->arena, "%swhat goes round: %s; the number is the part's",
                        others(p, r), names.s);
}
static const char *turn_words(ShardPen *p, int j) {
    if (!j) return "start: its own";
    return arena_printf(p->c->arena, "after %d hop%s", j, j > 1 ? "s" : "");
}
/* "tokens 0:8, 56:64" of what place k holds at the start; "" if it is not known. */
static const char *tokens(ShardPen *p, const Ring *r, int k) {
    const TraceShape *s = &r->value[0]->shape;
    for (int d = 0; d < s->nd; d++) {
        const DimCut c = shards_value_cut(p->c->arena, p->c->t, s, d, r->rank[k]);
        const char *range = c.n > 1 ? shards_range(p->c->arena, p->c->t, &c, r->rank[k]) : NULL;
        if (c.n >= r->n && range)
            return arena_printf(p->c->arena, "%s %s", words_base(p->c->arena, s->dim_symbol[d]),
                                range);
    }
    return "";
}

/* ---- the picture ---- */

/* A block at a turn: in the tone that the rulers give its part. */
static void draw_cell(ShardPen *p, const Ring *r, int turn, int k, Area at) {
    const int block = block_at(r, turn, k), tone = shards_shade(block, r->n);
    scene_begin(p->s, "ring", arena_printf(p->c->arena, "ring-%d-%d", turn, k),
                arena_printf(p->c->arena, "rank %lld, %s: the block of rank %lld",
                             (long long)r->rank[k], turn_words(p, turn),
                             (long long)r->rank[block]));
    scene_rect(p->s, at, 0, (Look){ROLE_SHARD + tone, ROLE_WEIGHT_LINE, 1});
    if (r->rank[k] == p->rank) scene_rect(p->s, at, 0, (Look){ROLE_NONE, ROLE_INK, 2.25});
    scene_textf(p->s, at.x + at.w / 2, at.y + at.h / 2 + 4.3,
                (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_SHARD_TEXT + tone}, "%d", block);
    scene_end(p->s);
}
/* The hop of a block from place k to the next; the last one's goes out below, and comes in above
 * the first. */
static void draw_hop(ShardPen *p, const Ring *r, int turn, int k, Area from, double pitch) {
    const bool last = k + 1 == r->n;
    const Pt a = {from.x + from.w + 2, from.y + from.h / 2}, b = {a.x + HOP_GAP - 4, a.y + pitch},
             out = {a.x + HOP_GAP / 2.0 - 2, a.y + pitch / 2 + 1};
    const Pt pt[2] = {a, last ? out : b},
             in[2] = {{out.x, out.y - pitch * r->n}, {b.x, b.y - pitch * r->n}};
    scene_begin(p->s, "edge", arena_printf(p->c->arena, "hop-%d-%d", turn, k),
                arena_printf(p->c->arena, "rank %lld to rank %lld", (long long)r->rank[k],
                             (long long)r->rank[(k + 1) % r->n]));
    scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_COLL_LINE, 1.25, false, false}, -1);
    if (last) scene_arrow(p->s, in, 2, (ArrowLook){ROLE_COLL_LINE, 1.25, false, false}, -1);
    scene_end(p->s);
}
/* The heading, and behind or under it how to read the table; returns the y of its first line. */
static double draw_heading(ShardPen *p, const Ring *r, double y) {
    const char *line[2];
    const double tw =
        scene_text(p->s, p->x, y, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, title(p, r));
    const bool beside = tw + 16 + scene_width(p->s, 12, REGULAR, meaning(p, r)) <= p->w;
    const double x = beside ? tw + 16 : 0, under = beside ? 0 : 20;
    const int n =
        scene_wrap(p->s, meaning(p, r), (TextColumn){p->w - x, 12, REGULAR, 2, NULL}, line);
    for (int i = 0; i < n; i++)
        scene_text(p->s, p->x + x, y + under + 16 * i,
                   (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, line[i]);
    return y + under + 16 * (n - 1) + 28;
}
/* Where the table's cells stand: with arrows between its turns if they leave a number room. */
typedef struct {
    double x, w, gap, h, pitch;
    bool tokens; /* there is room for them beside the ranks */
} Table;
static Table table_of(ShardPen *p, const Ring *r) {
    double label = 0;
    for (int k = 0; k < r->n; k++)
        label = fmax(label, scene_width(p->s, 12, REGULAR, tokens(p, r, k)));
    Table t = {.gap = HOP_GAP, .h = r->n > 8 ? 18 : 22, .tokens = true};
    const bool few = p->preset == PRESET_SLIDE && r->turns <= 3;
    if (p->preset == PRESET_SLIDE && r->n <= 4) t.h = r->n <= 2 ? 48 : 34; /* it may have its own */
    for (int turn = 0; turn < 3 && t.w < NARROW; turn++) {
        t.gap = turn ? CLOSE : HOP_GAP;
        t.tokens = turn < 2;
        t.x = p->x + RANK_WIDE + (t.tokens ? label + 14 : 0);
        t.w = fmin(few ? 220 : 110, (p->x + p->w - t.x - t.gap * (r->turns - 1)) / r->turns);
        if (turn == 1 && t.w >= NARROW / 1.5) break;
    }
    t.pitch = t.h + (t.gap > CLOSE ? 6 : CLOSE);
    return t;
}
double shards_draw_ring(ShardPen *p, double top) {
    Ring r;
    const TextLook small = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND};
    if (!find(p, &r)) return top;
    double y = draw_heading(p, &r, top + 12);
    const Table t = table_of(p, &r);
    for (int j = 0; j < r.turns; j++) {
        const char *text = turn_words(p, j);
        if (scene_width(p->s, 12, REGULAR, text) > t.w + t.gap - 8)
            text = j ? arena_printf(p->c->arena, "%d", j) : "own";
        scene_text(p->s, t.x + (t.w + t.gap) * j + t.w / 2, y,
                   (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, text);
    }
    y += 10;
    for (int k = 0; k < r.n; k++) {
        const double base = y + t.pitch * k + t.h / 2 + 4.3;
        scene_textf(p->s, p->x, base, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, "rank %lld",
                    (long long)r.rank[k]);
        if (t.tokens) scene_text(p->s, p->x + RANK_WIDE, base, small, tokens(p, &r, k));
        for (int j = 0; j < r.turns; j++) {
            const Area at = {t.x + (t.w + t.gap) * j, y + t.pitch * k, t.w, t.h};
            draw_cell(p, &r, j, k, at);
            if (j + 1 < r.turns && t.gap > CLOSE) draw_hop(p, &r, j, k, at, t.pitch);
        }
    }
    return y + t.pitch * r.n + 18;
}
const char *shards_ring_text(ShardPen *p) {
    Ring r;
    if (!find(p, &r)) return "";
    Str s = str_new(p->c->arena);
    str_addf(&s, "\n%s\n", title(p, &r));
    words_paragraph(&s, "    ", meaning(p, &r), furniture_columns(p->c->o));
    for (int k = 0; k < r.n; k++) {
        str_addf(&s, "    rank %-4lld", (long long)r.rank[k]);
        for (int j = 0; j < r.turns; j++) str_addf(&s, " %3d", block_at(&r, j, k));
        str_addf(&s, "   %s\n", tokens(p, &r, k));
    }
    return s.s;
}
