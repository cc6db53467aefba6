/* Experts as matrices. See shards_experts.h. */
#include "render/shards/shards_experts.h"
#include "base/text.h"
#include "render/shards/shards_which.h"
#include <math.h>
#include <string.h>

enum {
    NARROW = 700,
    MOST = 8,       /* shelves, and parts of one that are drawn all */
    FEW = 4,        /* of more parts */
    PART_GAP = 22,  /* between parts, with the line that cuts */
    NEXT_GAP = 5,   /* between experts of a part */
    SHEET = 3,      /* from one sheet of a stack to the next */
    SHELF_GAP = 46, /* between shelves of a line */
    THIN = 14,      /* px of the thinnest part that is drawn as one of many */
    HEAD = 40,      /* name, and the numbers of experts */
    CAPTION = 17
};

/* Weights that lie alike, of all experts. */
typedef struct {
    const TraceParam *q; /* the first */
    int alike;
    const char *name, *tip;
    DimCut e, r, k; /* experts, rows, columns */
    int n;          /* parts drawn */
    int64_t part[MOST];
    int gap; /* before which some are left out; -1: none are */
} Shelf;
/* How all shelves are drawn. */
typedef struct {
    bool each;          /* a matrix for each expert; else a stack for a part's */
    bool one_line;      /* all shelves beside each other */
    double scale, room; /* room: for the height of all */
} Plan;

bool shards_experts(const ShardPen *p) {
    bool any = false;
    for (int i = 0; i < p->c->t->n_params; i++) any |= shards_as_experts(p, &p->c->t->params[i]);
    return any;
}

/* ---- the records ---- */

static bool lie_alike(const TraceParam *a, const TraceParam *b) {
    bool same = text_same(a->rest.symbolic, b->rest.symbolic);
    for (int d = 0; d < 3 && same; d++)
        same = a->rest.global_shape[d] == b->rest.global_shape[d] &&
               text_same(a->cuts[d] ? a->cuts[d] : "", b->cuts[d] ? b->cuts[d] : "");
    return same;
}
/* Which parts are drawn: all, or the first ones with the pen's rank's, and the last. */
static void choose_parts(const ShardPen *p, Shelf *s) {
    const int64_t own = shards_part_of(p->c->t, &s->e, p->rank);
    const bool all = s->e.n <= (p->w < NARROW ? FEW : MOST);
    s->n = all ? (int)s->e.n : FEW;
    s->gap = all ? -1 : FEW - 1;
    for (int i = 0; i < s->n; i++) s->part[i] = i;
    s->part[s->n - 1] = s->e.n - 1;
    if (s->gap > 0 && own >= FEW - 1 && own < s->e.n - 1) s->part[FEW - 2] = own;
}
static int find_shelves(ShardPen *p, Shelf *shelf) {
    const Trace *t = p->c->t;
    Arena *a = p->c->arena;
    int n = 0;
    for (int i = 0; i < t->n_params; i++) {
        const TraceParam *q = &t->params[i];
        if (!shards_as_experts(p, q)) continue;
        int k = 0;
        while (k < n && !lie_alike(shelf[k].q, q)) k++;
        if (k == MOST) continue;
        Shelf *s = &shelf[k];
        const char *name = words_param(a, q);
        if (k < n) {
            s->alike++;
            s->name = arena_printf(a, "%s, %s", s->name, name);
            s->tip = arena_printf(a, "%s\n%s", s->tip, q->rest.name);
            continue;
        }
        shelf[n++] = (Shelf){.q = q,
                             .alike = 1,
                             .name = name,
                             .tip = q->rest.name,
                             .e = shards_param_cut(a, t, q, 0, p->rank),
                             .r = shards_param_cut(a, t, q, 1, p->rank),
                             .k = shards_param_cut(a, t, q, 2, p->rank)};
        choose_parts(p, s);
    }
    return n;
}
/* Experts of part i, from *first on. */
static int64_t experts_of(const Shelf *s, int64_t i, int64_t *first) {
    const DimCut *e = &s->e;
    *first = 0;
    if (!e->part) {
        *first = i * (e->size / e->n);
        return e->size / e->n;
    }
    for (int64_t k = 0; k < i; k++) *first += e->part[k];
    return e->part[i];
}
/* Ranks that hold a part: "0,2", in words "ranks 0,2"; many are counted, "16 ranks" in both. */
typedef struct {
    const char *text, *words;
} Owners;
/* Of the part of the experts, and of their rows and columns (-1: any). */
static Owners owners(ShardPen *p, const Shelf *s, const int64_t part[3]) {
    const Trace *t = p->c->t;
    const DimCut *const cut[3] = {&s->e, &s->r, &s->k};
    int64_t *list = ARENA_ARRAY(p->c->arena, int64_t, t->ranks), n = 0;
    for (int64_t rank = 0; rank < t->ranks; rank++) {
        bool holds = shards_holds(&s->e, rank);
        for (int d = 0; d < 3 && holds; d++)
            holds = part[d] < 0 || shards_part_of(t, cut[d], rank) == part[d];
        if (holds) list[n++] = rank;
    }
    const RankSet set = rankset_from(p->c->arena, list, n);
    const char *text = rankset_text(&set, p->c->arena);
    if (strchr(text, ':') || strlen(text) > 12) {
        text = arena_printf(p->c->arena, "%lld ranks", (long long)n);
        return (Owners){text, text};
    }
    return (Owners){text, arena_printf(p->c->arena, "rank%s %s", n == 1 ? "" : "s", text)};
}

/* ---- sizes ---- */

static int64_t bands(const DimCut *c) { return c->n > 1 ? c->n * c->blocks : 1; }
static double high_of(const Shelf *s, double scale) {
    return fmax(6, scale * (double)s->q->rest.global_shape[1]);
}
static double wide_of(const Shelf *s, double scale) {
    return fmax(6, scale * (double)s->q->rest.global_shape[2]);
}
static int sheets(int64_t experts) { return experts > 3 ? 3 : experts > 1 ? (int)experts - 1 : 0; }
/* Of part i: its matrices, or its stack with room for what is said over and under it. */
static double part_width(ShardPen *p, const Shelf *s, const Plan *plan, int64_t i) {
    int64_t first, n = experts_of(s, i, &first);
    const int64_t part[3] = {i, -1, -1};
    const double w = wide_of(s, plan->scale),
                 words = scene_width(p->s, 12, REGULAR, owners(p, s, part).text);
    const double matrices =
        plan->each ? (double)n * (w + NEXT_GAP) - NEXT_GAP : w + SHEET * sheets(n);
    return fmax(fmax(matrices, words), plan->each ? 0 : scene_width(p->s, 12, REGULAR, "E100-127"));
}
/* The words under a shelf. */
static int caption(ShardPen *p, const Shelf *s, const char **line) {
    Arena *a = p->c->arena;
    const TraceLocal *l = words_find_local(&s->q->rest, p->rank);
    const int64_t parts = s->e.n * s->r.n * s->k.n;
    int64_t held = 0;
    for (int64_t i = 0; i < p->c->t->ranks; i++) held += shards_holds(&s->e, i);
    Str first = str_new(a);
    str_addf(&first, "%lld of %lld experts%s", (long long)l->shape[0], (long long)s->e.size,
             s->r.n * s->k.n > 1 ? ", a part of each" : "");
    if (held > parts) str_addf(&first, ", %lld copies", (long long)(held / parts));
    line[0] = first.s;
    line[1] = arena_printf(a, "%s   %s   %s%s", words_symbol(a, s->q->rest.symbolic),
                           words_shape(a, l->shape, 3), bytes_text(l->bytes, a),
                           s->alike > 1 ? " each" : "");
    return 2;
}
static double shelf_width(ShardPen *p, const Shelf *s, const Plan *plan) {
    double w = s->gap > 0 ? 2 * PART_GAP : 0;
    for (int i = 0; i < s->n; i++) w += part_width(p, s, plan, s->part[i]) + (i ? PART_GAP : 0);
    const char *line[2];
    for (int i = 0, n = caption(p, s, line); i < n; i++)
        w = fmax(w, scene_width(p->s, i ? 12 : 12.5, i ? REGULAR : MEDIUM, line[i]));
    return w;
}
/* Height of a shelf with its words. */
static double shelf_height(const Shelf *s, const Plan *plan) {
    return HEAD + (plan->each ? 0 : 3 * SHEET) + high_of(s, plan->scale) + 40 + 2 * CAPTION + 8;
}
/* Does it fit so, no matrix higher than `most`, and are its parts seen? */
static bool fits(ShardPen *p, const Shelf *shelf, int n, const Plan *plan, double most) {
    double w = -SHELF_GAP, widest = 0, high = 0, all = 0;
    bool seen = true;
    for (int i = 0; i < n; i++) {
        const Shelf *s = &shelf[i];
        const double one = shelf_width(p, s, plan);
        w += one + SHELF_GAP;
        widest = fmax(widest, one);
        high = fmax(high, high_of(s, plan->scale));
        all = plan->one_line ? fmax(all, shelf_height(s, plan)) : all + shelf_height(s, plan);
        seen &= wide_of(s, plan->scale) / (double)bands(&s->k) >= THIN &&
                high_of(s, plan->scale) / (double)bands(&s->r) >= THIN;
    }
    return seen && high <= most && (plan->one_line ? w : widest) <= p->w && all <= plan->room;
}
/* The largest scale, of a matrix for each expert if that can be seen, in as few lines; a slide has
 * room for several. */
static Plan choose(ShardPen *p, const Shelf *shelf, int n, double room) {
    const bool slide = p->preset == PRESET_SLIDE;
    const double most = slide ? 300 : 170;
    double side = 1;
    for (int i = 0; i < n; i++)
        for (int d = 1; d < 3; d++) side = fmax(side, (double)shelf[i].q->rest.global_shape[d]);
    Plan best = {.scale = 0};
    for (int turn = 0; turn < 4 && !(best.scale > 0 && (!slide || turn == 2)); turn++) {
        Plan plan = {.each = turn < 2, .one_line = turn % 2 == 0, .room = room};
        const double high = plan.one_line || slide ? most : most * 0.75;
        for (plan.scale = 2 * most / side; plan.scale * side > 10; plan.scale *= 0.96)
            if (fits(p, shelf, n, &plan, high)) break;
        if (plan.scale * side > 10 && plan.scale > best.scale) best = plan;
    }
    if (best.scale > 0) return best;
    return (Plan){.scale = fmin(most, 60) / side};
}

/* ---- the picture ---- */

/* A matrix of the part's experts at `at`, with the owners of its parts where `told`. */
static void draw_matrix(ShardPen *p, const Shelf *s, int64_t i, Area at, bool told) {
    const bool dealt = s->e.n > 1, here = shards_part_of(p->c->t, &s->e, p->rank) == i;
    for (int64_t y = 0; y < bands(&s->r); y++)
        for (int64_t x = 0; x < bands(&s->k); x++) {
            const int64_t part[3] = {i, y % s->r.n, x % s->k.n};
            const double x0 = shards_band_at(&s->k, x, at.w), y0 = shards_band_at(&s->r, y, at.h),
                         w = (bands(&s->k) > 1 ? shards_band_at(&s->k, x + 1, at.w) : at.w) - x0,
                         h = (bands(&s->r) > 1 ? shards_band_at(&s->r, y + 1, at.h) : at.h) - y0;
            const Area a = {at.x + x0, at.y + y0, w, h};
            const bool cut = dealt || s->r.n * s->k.n > 1,
                       own = here && shards_part_of(p->c->t, &s->r, p->rank) == part[1] &&
                             shards_part_of(p->c->t, &s->k, p->rank) == part[2];
            const int tone = dealt        ? shards_shade(i, s->e.n)
                             : s->r.n > 1 ? shards_shade(part[1], s->r.n)
                                          : shards_shade(part[2], s->k.n);
            const char *who = owners(p, s, part).text;
            scene_rect(p->s, a, 0,
                       (Look){cut ? ROLE_SHARD + tone : ROLE_PAPER, ROLE_WEIGHT_LINE, 0.8});
            if (own && cut) scene_rect(p->s, a, 0, (Look){ROLE_NONE, ROLE_INK, 2.25});
            if (told && h >= 15 && scene_width(p->s, 12, SEMIBOLD, who) + 4 <= w)
                scene_text(
                    p->s, a.x + w / 2, a.y + h / 2 + 4.3,
                    (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, cut ? ROLE_SHARD_TEXT + tone : ROLE_INK},
                    who);
        }
}
/* Lines where an axis cuts the rows or columns of a matrix. */
static void draw_cuts(ShardPen *p, const DimCut *c, bool rows, Area at) {
    const Role role = ROLE_AXIS + shards_axis_kind(p->c->arena, p->c->t, c);
    for (int64_t i = 1; i < bands(c); i++) {
        const double d = shards_band_at(c, i, rows ? at.h : at.w);
        const Pt from = {rows ? at.x - 2 : at.x + d, rows ? at.y + d : at.y - 2},
                 to = {rows ? at.x + at.w + 2 : at.x + d, rows ? at.y + d : at.y + at.h + 2};
        scene_segment(p->s, from, to, role, 1.25)->ground = true;
    }
}
static const char *range_of(ShardPen *p, int64_t first, int64_t n) {
    if (n == 1) return arena_printf(p->c->arena, "E%lld", (long long)first);
    return arena_printf(p->c->arena, "E%lld-%lld", (long long)first, (long long)(first + n - 1));
}
/* The experts of part i with their numbers over, and the ranks that hold them under them. */
static void draw_part(ShardPen *p, const Shelf *s, const Plan *plan, int64_t i, Pt at) {
    int64_t first, n = experts_of(s, i, &first);
    const int64_t part[3] = {i, -1, -1}, matrices = plan->each ? n : 1;
    const double w = wide_of(s, plan->scale), h = high_of(s, plan->scale);
    const TextLook mid = {ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND},
                   left = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND};
    const bool told = s->r.n * s->k.n > 1,
               numbered = plan->each && /* all or none */
                          scene_width(p->s, 12, REGULAR, range_of(p, s->e.size - 1, 1)) + 6 <=
                              w + NEXT_GAP;
    const Owners who = owners(p, s, part);
    scene_begin(
        p->s, "experts",
        arena_printf(p->c->arena, "experts-%s-%lld", s->q->rest.name, (long long)i),
        arena_printf(p->c->arena, "%s of %s: %s", range_of(p, first, n), s->name, who.words));
    for (int k = plan->each ? 0 : sheets(n); k > 0; k--)
        scene_rect(p->s, (Area){at.x + SHEET * k, at.y - SHEET * k, w, h}, 0,
                   (Look){ROLE_PAPER, ROLE_WEIGHT_LINE, 1})
            ->ground = true;
    if (!numbered)
        scene_text(p->s, at.x, at.y - 7 - (plan->each ? 0 : SHEET * sheets(n)), left,
                   range_of(p, first, n));
    for (int64_t k = 0; k < matrices; k++) {
        const Area a = {at.x + (double)k * (w + NEXT_GAP), at.y, w, h};
        const char *text = range_of(p, first + k, 1);
        draw_matrix(p, s, i, a, told);
        draw_cuts(p, &s->r, true, a);
        draw_cuts(p, &s->k, false, a);
        if (numbered) scene_text(p->s, a.x + w / 2, a.y - 7, mid, text);
    }
    const double room = part_width(p, s, plan, i) + PART_GAP / 2.0 - 4;
    const bool fits_in = scene_width(p->s, 12, REGULAR, who.words) <= room;
    scene_text(p->s, at.x, at.y + h + 18, left, fits_in ? who.words : who.text);
    scene_end(p->s);
}
/* Returns the y under it. */
static double draw_shelf(ShardPen *p, const Shelf *s, const Plan *plan, Pt at) {
    const char *line[2];
    const double h = high_of(s, plan->scale), top = at.y + HEAD + (plan->each ? 0 : 3 * SHEET);
    double x = at.x;
    scene_begin(p->s, "shelf", arena_printf(p->c->arena, "shelf-%s", s->q->rest.name), s->tip);
    scene_text(p->s, at.x, at.y + 12, (TextLook){ALIGN_LEFT, 13.5, BOLD, ROLE_INK}, s->name);
    scene_end(p->s);
    for (int i = 0; i < s->n; i++) {
        if (i) {
            const double cut = x - PART_GAP / 2.0;
            scene_begin(p->s, "cut", arena_printf(p->c->arena, "cut-%s-%d", s->q->rest.name, i),
                        arena_printf(p->c->arena, "experts cut by %s",
                                     shards_axes(p->c->arena, p->c->t, &s->e)));
            scene_segment(p->s, (Pt){cut, top - 10}, (Pt){cut, top + h + 10},
                          ROLE_AXIS + shards_axis_kind(p->c->arena, p->c->t, &s->e), 2);
            scene_end(p->s);
        }
        if (i && i == s->gap) {
            scene_text(p->s, x + PART_GAP / 2.0, top + h / 2,
                       (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, "…");
            x += 2 * PART_GAP;
        }
        draw_part(p, s, plan, s->part[i], (Pt){x, top});
        x += part_width(p, s, plan, s->part[i]) + PART_GAP;
    }
    const int n = caption(p, s, line);
    for (int i = 0; i < n; i++)
        scene_text(
            p->s, at.x, top + h + 40 + CAPTION * i,
            (TextLook){ALIGN_LEFT, i ? 12 : 12.5, i ? REGULAR : MEDIUM, i ? ROLE_SECOND : ROLE_INK},
            line[i]);
    return top + h + 40 + CAPTION * n;
}
double shards_draw_experts(ShardPen *p, double top) {
    static const char how[] = "a matrix per expert, the ranks that hold them under it";
    static const char stacked[] = "a stack per part, the ranks that hold it under it";
    Shelf shelf[MOST];
    const int n = find_shelves(p, shelf);
    if (!n) return top;
    const bool slide = p->preset == PRESET_SLIDE;
    const Plan plan = choose(p, shelf, n, slide ? presets[PRESET_SLIDE].h - top - p->under : 1e9);
    const double tw =
        scene_text(p->s, p->x, top + 12, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, "Experts");
    const char *words =
        arena_printf(p->c->arena, "%s; a scale of their own", plan.each ? how : stacked);
    if (tw + 16 + scene_width(p->s, 12, REGULAR, words) <= p->w)
        scene_text(p->s, p->x + tw + 16, top + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   words);
    double x = p->x, y = top + 28, end = y;
    for (int i = 0; i < n; i++) {
        end = fmax(end, draw_shelf(p, &shelf[i], &plan, (Pt){x, y}));
        if (plan.one_line) x += shelf_width(p, &shelf[i], &plan) + SHELF_GAP;
        else y = end + 8;
    }
    return end + 8;
}
