/* The slide form of the block view: another level of detail, not a scaled figure. One strip on 960
 * x 540 units, no text under 12 (24 px at 1920), one line per edge; numbers become bars of bytes,
 * joined to their edge by a dotted guide. */
#include "render/block/block_page.h"
#include "render/graph/unlike.h"
#include <math.h>
#include <string.h>

static const BlockLook slide = {.op = 22,
                                .joint = 22,
                                .abut = 20,
                                .weight = 26,
                                .coll = 34,
                                .move = 18,
                                .gap = 23,
                                .fork = 31,
                                .head = 50,
                                .plain_head = 50,
                                .tail = 54,
                                .sym = 15,
                                .num = 15};
enum { BAR_X = 646, BAR_MAX = 230, GAP_MIN = 18, EDGE = 4 };

/* Bytes of the values in a column, and how many of them are one term of a sum yet to be made. */
typedef struct {
    int64_t all, partial;
} CutBytes;
/* What exists at a level's lower edge: in the first column, in the others. */
typedef struct {
    CutBytes first, others;
    double label; /* right end of the labels there */
} Cut;

static Cut cut_at(BlockPen *p, const BlockFrame *f, int level) {
    const BlockStrip *s = f->strip;
    Cut c = {0};
    for (int k = -1; k < s->n; k++) {
        int i = k < 0 ? s->from : s->node[k];
        if (i < 0) continue;
        const BlockNode *n = &p->g->node[i];
        if (k >= 0 && block_ends_here(n)) continue; /* no edge leads on */
        int from = k < 0 ? -1 : n->level, to = i == s->last ? s->levels : from + 1,
            col = k < 0 ? 0 : n->col;
        for (int m = 0; m < s->n; m++) {
            const BlockNode *q = &p->g->node[s->node[m]];
            for (int j = 0; j < q->n_in; j++)
                if (q->in[j] == i && q->level > to) to = q->level;
        }
        if (from > level || to <= level) continue;
        CutBytes *part = col ? &c.others : &c.first;
        part->all += block_bytes(p->g, n);
        part->partial += block_pending_bytes(p->g, n);
        if (from != level) continue;
        double x = k < 0 ? f->x + 36.5 : f->x + f->centre[col] + (col ? 12 : 14);
        c.label = fmax(c.label, x + block_label_width(p, n));
    }
    return c;
}

/* A column's part of a bar, hatched as far as it is one term of a sum; returns where it ends. */
static double bar_part(Scene *s, const CutBytes *b, double x, double mid, double scale, Role fill) {
    const double w = (double)b->all * scale, partial = (double)b->partial * scale;
    if (w > 0) scene_rect(s, (Area){x, mid - 6, w, 12}, 0, (Look){fill, ROLE_WEIGHT_LINE, 1});
    if (partial > 0) scene_hatch(s, (Area){x, mid - 6, partial, 12}, ROLE_WEIGHT_LINE, 5, 0.8);
    return x + w;
}
static void draw_bar(BlockPen *p, const Cut *c, double x, double mid, double scale) {
    static const double dots[2] = {1, 3};
    Scene *s = p->s;
    int64_t all = c->first.all + c->others.all;
    if (all <= 0) return;
    scene_begin(
        s, "bytes", "bytes",
        arena_printf(p->g->arena, "%s on this edge, per rank", bytes_text(all, p->g->arena)));
    if (x - 8 > c->label + 16) {
        Mark *m = scene_segment(s, (Pt){c->label + 8, mid}, (Pt){x - 8, mid}, ROLE_GRID, 1);
        m->dash = dots;
        m->n_dash = 2;
    }
    double end = bar_part(s, &c->first, x, mid, scale, ROLE_BYTES);
    end = bar_part(s, &c->others, end, mid, scale, ROLE_BYTES_2);
    scene_text(s, end + 8, mid + 4.4, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK},
               bytes_text(all, p->g->arena));
    scene_end(s);
}

enum { KEY = 22, KEY_GAP = 14 }; /* a key and the room before its words; between two */
static double key(Scene *s, double x, double y, Role fill, bool hatch, const char *text) {
    scene_rect(s, (Area){x, y - 6, 16, 12}, 0, (Look){fill, ROLE_WEIGHT_LINE, 1});
    if (hatch) scene_hatch(s, (Area){x, y - 6, 16, 12}, ROLE_WEIGHT_LINE, 5, 0.8);
    return x + KEY +
           scene_text(s, x + KEY, y + 4.4, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, text) +
           KEY_GAP;
}

/* Returns where the words left of them end at the latest. */
static double draw_bars(BlockPen *p, const BlockFrame *f, double x, double w, double head,
                        double bottom) {
    const double left = x;
    const BlockStrip *s = f->strip;
    int64_t max = 1;
    bool others = false, partial = false;
    for (int l = -1; l < s->levels; l++) {
        Cut c = cut_at(p, f, l);
        if (c.first.all + c.others.all > max) max = c.first.all + c.others.all;
        others |= c.others.all > 0;
        partial |= c.first.partial > 0 || c.others.partial > 0;
    }
    scene_text(p->s, x, head, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_SECOND},
               w < 160 ? "bytes per rank" : "bytes on this edge, per rank");
    for (int l = -1; l < s->levels; l++) {
        Cut c = cut_at(p, f, l);
        double mid = l < 0 && s->from >= 0 ? f->y + 12 : block_gap_top(f, l) + p->look->sym - 4;
        draw_bar(p, &c, x, mid, w / (double)max);
    }
    if (!others && !partial) return left - 12;
    scene_begin(p->s, "legend", "legend", NULL);
    const char *term = "one term of a sum";
    const double end = p->s->w - presets[PRESET_SLIDE].margin;
    double need = KEY + scene_width(p->s, 12, REGULAR, others ? "left column" : "the value");
    if (others) need += KEY_GAP + KEY + scene_width(p->s, 12, REGULAR, "right");
    if (partial) need += KEY_GAP + KEY;
    if (partial && x + need + scene_width(p->s, 12, REGULAR, term) > end) term = "Σ term";
    if (partial) need += scene_width(p->s, 12, REGULAR, term);
    x = fmin(x, end - need);
    double kx = key(p->s, x, bottom, ROLE_BYTES, false, others ? "left column" : "the value");
    if (others) kx = key(p->s, kx, bottom, ROLE_BYTES_2, false, "right");
    if (partial) key(p->s, kx, bottom, ROLE_BYTES, true, term);
    scene_end(p->s);
    return fmin(left, x) - 12;
}

/* Gaps give way, down to a limit, so that the strip fits under the title. */
static BlockLook fitting(const ViewCall *c, BlockGraph *g, const BlockFrame *f, double room,
                         bool brief) {
    BlockLook l = slide;
    double height;
    l.brief = brief;
    block_measure(c, g, &l, f, &height);
    double less = (height - room) / (f->strip->levels + 1);
    if (less <= 0) { /* room is left: gaps take some of it */
        double more = fmin(16, -less);
        l.gap += more, l.fork += more, l.sym += more / 2, l.plain_head += more;
        return l;
    }
    l.gap = fmax(GAP_MIN, l.gap - less);
    l.fork = fmax(GAP_MIN + 8, l.fork - less);
    l.sym = fmin(l.sym, l.gap - 4.5);
    l.coll = fmax(31, l.coll - less);
    block_measure(c, g, &l, f, &height);
    if (height <= room) return l;
    l.op = l.joint = 19, l.abut = 18, l.weight = 22, l.head -= 6, l.plain_head -= 8, l.gap = 17.5,
    l.fork = 29, l.sym = 13.5;
    return l;
}

/* The stamp on one line under the strip; what does not fit is left to the larger figure. */
static void slide_stamp(BlockPen *p, const BlockFrame *f, double room, double y) {
    Role role;
    const ViewCall *c = p->c;
    Arena *a = c->arena;
    const BlockNode *last = f->strip->last >= 0 ? &p->g->node[f->strip->last] : NULL;
    bool beside =
        y - (f->y + block_height(p, f)) < 20; /* words at the strip's end stand on the same line */
    double x = f->x;
    if (beside && (f->strip->to >= 0 || !last)) x += 32;
    else if (beside) { /* left or right of the last pill, where there is more room */
        double half = scene_width(p->s, 12.5, SEMIBOLD, block_value(p->g, last->name)) / 2 + 24,
               mid = f->x + f->centre[last->col];
        if (mid - half - x > room - mid - half) room = mid - half;
        else x = mid + fmax(60, half);
    }
    const char *stamp = figure_verdict(p->s, c, room - x, &role);
    const char *plan = c->t->plan && *c->t->plan ? arena_printf(a, " · plan %s", c->t->plan) : "";
    int weight = role == ROLE_SECOND ? REGULAR : SEMIBOLD;
    double w = scene_width(p->s, 12, weight, stamp);
    const char *rest = scene_width(p->s, 12, REGULAR, plan) > room - x - w ? "" : plan;
    Run run[2] = {{stamp, weight, role, false, false}, {rest, REGULAR, ROLE_SECOND, false, false}};
    scene_begin(p->s, "footer", "footer", NULL);
    scene_runs(p->s, (Pt){x, y}, ALIGN_LEFT, 12, run, *rest ? 2 : 1);
    scene_end(p->s);
}

/* "AG: AllGather of the weight first": boxes have the code; NULL: nothing brings weights. */
static const char *fetch_key(const BlockGraph *g, const BlockStrip *s) {
    for (int i = 0; i < s->n; i++) {
        const BlockNode *n = &g->node[s->node[i]];
        const CollWord *w = n->n_op && n->op[0].fetch ? coll_word(n->op[0].fetch->op) : NULL;
        if (w) return arena_printf(g->arena, "%s: %s of the weight first", w->code, w->name);
    }
    return NULL;
}
/* Parts of the subtitle: shorter than those of the large figure, and without what its title says.
 */
static void slide_subtitle(const ViewCall *c, const BlockGraph *g, const BlockStrip *s,
                           const char *title, const char **part) {
    Arena *a = g->arena;
    const char *model = words_model(a, g->t);
    int n = 0;
    if (s->whole && strncmp(title, s->title, strlen(s->title)))
        part[n++] = s->title; /* "MoE, 1 of 3" */
    part[n++] = arena_printf(a, "%s%s%s, rank %lld of %lld", model ? model : "", model ? " " : "",
                             phase_text(g->pass), (long long)g->rank, (long long)g->t->ranks);
    part[n++] = words_mesh(a, g->t);
    part[n++] = words_data(a, g->t);
    part[n++] = words_class(a, g->t, g->rank);
    part[n] = fetch_key(g, s);
    part[n + (part[n] != NULL)] = NULL;
    unlike_key(c, part);
}

Scene *block_slide(const ViewCall *c, BlockGraph *g, BlockFrame *frame) {
    Scene *s = figure_new(c, "block", PRESET_SLIDE);
    s->one_scale = true;
    const Preset *pr = &presets[PRESET_SLIDE];
    const char *sub[8];
    int first = (int)(frame->strip - g->strip);
    BlockLook wide = slide;
    double height, right = pr->margin + block_measure(c, g, &wide, frame, &height);
    for (int k = 0; k < 2 && right + pr->margin > pr->w; k++) {
        wide.brief = frame->tight; /* first boxes give way, then words */
        frame->tight = true;
        right = pr->margin + block_measure(c, g, &wide, frame, &height);
    }
    double bar = fmax(BAR_X, right + 24), bar_w = fmin(BAR_MAX, pr->w - 84 - bar);
    const char *title = block_title(g, first, 1);
    slide_subtitle(c, g, frame->strip, title, sub);
    s->w = fmax(s->w, right + EDGE);
    const WrongList *wrong = block_wrong(g, first, 1);
    s->wrong = wrong->n || words_different(g->t);
    double y = figure_head(s, PRESET_SLIDE, title, sub, bar_w < 60 ? 0 : bar - 12 - pr->margin) + 5;
    double notes = fmin(right, bar - 24) + 60;
    y = wrong_notes(s, wrong, pr->margin, notes, y - 6, 3) + (wrong->n ? 12 : 6);
    BlockLook look = fitting(c, g, frame, pr->h - 12 - y, wide.brief);
    BlockPen p = block_pen(c, g, s, &look);
    BlockGrid grid;
    frame->x = pr->margin;
    frame->y = y;
    frame->note = NULL;
    block_columns(&p, frame);
    block_rows(&p, &grid, frame, 1);
    block_strip(&p, frame);
    double bottom = fmax(y + block_height(&p, frame), pr->h - 13);
    double room =
        bar_w >= 60 ? draw_bars(&p, frame, bar, bar_w, y - 15, bottom - 3) : s->w - pr->margin;
    slide_stamp(&p, frame, room, bottom + 1);
    s->desc = block_description(g, first, 1);
    figure_page(s, PRESET_SLIDE, bottom + 10);
    return s;
}
