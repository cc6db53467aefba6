/* Rows of "backward beside forward": forward at the left, downwards; its mirror image at the right,
 * upwards; between them what joins them. Labels of forward stand left of their line and those of
 * backward right of it. */
#include "render/furniture/hexagon.h"
#include "render/graph/unlike.h"
#include "render/mirror/mirror_draw.h"
#include "base/text.h"
#include <math.h>
#include <string.h>

static bool is_wrong(const MirrorPen *p, int step) {
    return step == p->m->g->wrong_step || wrong_number(p->wrong, step);
}
static Mark *wrong(MirrorPen *p, Mark *m, int step) {
    if (is_wrong(p, step)) wrong_border(m, &p->legend);
    return m;
}

/* The flag of a wrong step sits on the upper corner of its box that faces the gutter. */
static double flag_x(const MirrorPen *p, double cx, double w) {
    bool left = fabs(cx - p->forward) > 1; /* all but the boxes of forward */
    return left ? cx - w / 2 - 2 : cx + w / 2 + 2;
}
static void flag(MirrorPen *p, int step, double cx, double y, double w) {
    wrong_flag(p->s, p->wrong, step, flag_x(p, cx, w), y);
}

/* A place by the middle of its top. */
typedef struct {
    double cx, y, w, h;
} Slot;

/* The module whose step that is; NULL: none's. */
static const char *module_at(const Trace *t, int step) {
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].step == step) return t->computes[i].module;
    return NULL;
}
/* The words in a box: a name, and what stands behind it where there is room. */
typedef struct {
    const char *name, *note;
    Likeness like; /* to the other plan's step, of two */
} BoxWords;

enum { IN_BOX = 10 };    /* from its sides to a line along its edge */
enum { ABOVE_SUM = 16 }; /* from the middle of a sum to what leaves the line above it */

static int box(MirrorPen *p, Slot at, BoxWords words, int step, const char *tip) {
    double cx = at.cx, y = at.y, w = at.w, h = at.h;
    scene_begin(p->s, "compute", arena_printf(p->c->arena, "step-%d", step), tip);
    scene_same(p->s, module_at(p->m->g->t, step));
    scene_frame(p->s, cx - w / 2, y, w, h);
    wrong(p,
          scene_rect(p->s, (Area){cx - w / 2, y, w, h}, 3,
                     (Look){ROLE_COMPUTE, ROLE_COMPUTE_LINE, 1.25}),
          step);
    const double note = mirror_text_width(p, words.note, REGULAR),
                 name = scene_width(p->s, 12.5, SEMIBOLD, words.name);
    const bool both = note > 0 && name + 6 + note <= w - 12;
    const double left = cx - (both ? name + 6 + note : fmin(name, w - 12)) / 2;
    scene_text(p->s, left, y + h / 2 + 4.5, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
               scene_fit(p->s, words.name, w - 12, 12.5, SEMIBOLD));
    if (both)
        scene_text(p->s, left + name + 6, y + h / 2 + 4.5,
                   (TextLook){ALIGN_LEFT, MIRROR_SIZE, REGULAR, ROLE_COMPUTE_NOTE}, words.note);
    figure_unlike_box(p->s, (Area){cx - w / 2, y, w, h}, IN_BOX, words.like, &p->legend);
    int group = p->s->open;
    flag(p, step, cx, y - 1, w);
    scene_end(p->s);
    p->legend |= 1u << LEGEND_COMPUTE;
    return group;
}

static const char *coll_tip(const MirrorPen *p, const TraceCollective *c) {
    Arena *a = p->c->arena;
    Str s = str_new(a);
    str_addf(&s, "step %d: %s over %s, %s", c->step, c->op, c->axis, c->value);
    tip_add(&s, "sends", bytes_text(c->bytes_sent, a));
    tip_add(&s, "why", c->why);
    tip_inferred(&s, c);
    return s.s;
}

/* The flag of a collective. On a slide edges are short, and words stand close above: it goes inside
 * if there is room. */
static void hexagon_flag(MirrorPen *p, Slot at, const char *text, int step) {
    bool inside = p->look.edge < 24 && (at.w - mirror_text_width(p, text, SEMIBOLD)) / 2 > 44;
    double aside = !inside ? 0 : at.cx > (p->forward + p->backward) / 2 ? 22 : -22;
    wrong_flag(p->s, p->wrong, step, flag_x(p, at.cx + aside, at.w),
               inside ? at.y + at.h / 2 : at.y + 5);
}
/* Without its flag, which goes over the arrow that ends here. */
static int hexagon(MirrorPen *p, Slot at, const char *text, const TraceCollective *c,
                   const char *more) {
    double cx = at.cx, y = at.y, w = at.w, h = at.h;
    Hexagon x = hexagon_of(c, cx - w / 2, y, w, h);
    x.id = arena_printf(p->c->arena, "step-%d", c->step);
    x.tip = arena_printf(p->c->arena, "%s%s", coll_tip(p, c), more);
    x.wrong = is_wrong(p, c->step);
    x.like = unlike_collective(p->c, p->m->g->rank, c);
    x.line[0] = (HexagonLine){scene_fit(p->s, text, w - (w < 60 ? 12 : 16), 12.5, SEMIBOLD),
                              y + h / 2 + 4.5, 12.5, SEMIBOLD};
    return hexagon_draw(p->s, &x, &p->legend);
}

/* Where nothing is sent: a thin dashed box. */
static int thin(MirrorPen *p, double cx, double y, double h, const char *text, int step) {
    static const double dash[2] = {3, 2};
    double w = fmax(80, mirror_text_width(p, text, REGULAR) + 20), in = (h - 20) / 2;
    scene_begin(p->s, "move", "move",
                arena_printf(p->c->arena, "step %d: %s, nothing is sent", step, text));
    scene_frame(p->s, cx - w / 2, y + in, w, 20);
    Mark *m =
        scene_rect(p->s, (Area){cx - w / 2, y + in, w, 20}, 2, (Look){ROLE_PAPER, ROLE_INK, 1});
    m->dash = dash;
    m->n_dash = 2;
    wrong(p, m, step);
    scene_text(p->s, cx, y + h / 2 + 4.3, (TextLook){ALIGN_MIDDLE, MIRROR_SIZE, REGULAR, ROLE_INK},
               text);
    int group = p->s->open;
    double out =
        cx > (p->forward + p->backward) / 2 ? w / 2 + 2 : -w / 2 - 2; /* away from the gutter */
    wrong_flag(p->s, p->wrong, step, cx + out, y + h / 2);
    scene_end(p->s);
    p->legend |= 1u << LEGEND_MOVE;
    return group;
}

/* The steps of a backward row without a box: its collectives, its moves, sums of what they make. */
static const char *changes_tip(const MirrorPen *p, const MirrorRow *r) {
    Str s = str_new(p->c->arena);
    for (int i = 1; i < r->n_conj; i++) str_addf(&s, "\n%s", coll_tip(p, r->conj[i]));
    for (int i = 0; i < r->n_back_move; i++)
        str_addf(&s, "\nstep %d: %s, %s", r->back_move[i]->step, r->back_move[i]->op,
                 r->back_move[i]->value);
    for (int i = 0; i < r->n_back; i++)
        str_addf(&s, "\nstep %d: %s makes %s", r->back[i].f->step, r->back[i].f->op,
                 r->back[i].f->output);
    return s.n ? s.s : "";
}

static const char *steps_tip(const MirrorPen *p, const MirrorOp *op, int n, bool rest) {
    Str s = str_new(p->c->arena);
    for (int i = 0; i < n; i++)
        if (op[i].rest == rest)
            str_addf(&s, "%sstep %d: %s makes %s", s.n ? "\n" : "", op[i].f->step, op[i].f->op,
                     op[i].f->output);
    return s.s;
}

/* How the steps of the box stand to the other plan's. */
static Likeness ops_likeness(const MirrorPen *p, const MirrorOp *op, int n, bool rest) {
    Likeness all = ALIKE;
    for (int i = 0, seen = 0; i < n; i++) {
        if (op[i].rest != rest) continue;
        const Likeness own = unlike_compute(p->c, p->m->g->rank, op[i].f);
        all = seen++ ? figure_likeness(all, own) : own;
    }
    return all;
}

/* The step of the box that is red if it is wrong; else its first. */
static int box_step(const MirrorPen *p, const MirrorOp *op, int n, bool rest) {
    int step = -1;
    for (int i = 0; i < n; i++)
        if (op[i].rest == rest && (step < 0 || op[i].f->step == p->m->g->wrong_step ||
                                   wrong_number(p->wrong, op[i].f->step)))
            step = op[i].f->step;
    return step;
}

/* The step among the collectives of a row that a flag speaks of; else the first. */
static const TraceCollective *wrong_one(const MirrorPen *p, const TraceCollective *const *c,
                                        int n) {
    for (int i = 0; i < n; i++)
        if (wrong_number(p->wrong, c[i]->step)) return c[i];
    return n ? c[0] : NULL;
}

/* The step of a weight that is wrong (a claim about it, or what brings it); -1: none. */
static int wrong_weight(const MirrorPen *p, const MirrorRow *r, bool rest) {
    const Trace *t = p->m->g->t;
    for (int i = 0; i < r->n_op; i++)
        for (int k = 0; r->op[i].rest == rest && k < r->op[i].f->n_inputs; k++) {
            const char *name = r->op[i].f->inputs[k];
            if (!trace_param(t, name)) continue;
            for (int m = 0; m < t->n_moves; m++)
                if (!strcmp(t->moves[m].value, name) && wrong_number(p->wrong, t->moves[m].step))
                    return t->moves[m].step;
            for (int m = 0; m < t->n_collectives; m++)
                if (!strcmp(t->collectives[m].value, name) &&
                    wrong_number(p->wrong, t->collectives[m].step))
                    return t->collectives[m].step;
        }
    return -1;
}

/* A claim about the gradient of what the row moves. */
static int move_step(const MirrorPen *p, const MirrorRow *r, bool back) {
    const Trace *t = p->m->g->t;
    for (int i = 0; back && i < t->n_moves; i++)
        for (int k = 0; k < r->n_out; k++)
            if (!strcmp(t->moves[i].value, mirror_grad(p->m->g, r->out[k])) &&
                wrong_number(p->wrong, t->moves[i].step))
                return t->moves[i].step;
    if (back) return r->n_back_move ? r->back_move[0]->step : -1;
    return r->n_move ? r->move[0]->step : -1;
}

int mirror_pill_of(MirrorPen *p, double x, double y, Subject s) {
    const char *word = mirror_value(p->m->g, s.of, subject_is_gradient(s)),
               *name = subject_name(p->c->arena, s);
    double w = mirror_pill_width(p, s.of, subject_is_gradient(s));
    scene_begin(p->s, "input", arena_printf(p->c->arena, "end-%s", name), name);
    scene_frame(p->s, x - w / 2, y, w, MIRROR_PILL);
    scene_rect(p->s, (Area){x - w / 2, y, w, MIRROR_PILL}, MIRROR_PILL / 2.0,
               (Look){ROLE_PAPER, ROLE_INK, 1.5});
    scene_text(p->s, x, y + 15.4, (TextLook){ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK}, word);
    int group = p->s->open;
    scene_end(p->s);
    return group;
}

static MirrorSide draw_side(MirrorPen *p, const MirrorStrip *s, const MirrorRow *r, bool back,
                            double y) {
    double cx = back ? p->backward : p->forward, h = mirror_row_height(p, s, r),
           row = r->kind == ROW_MOVE ? h : p->look.row;
    const char *text = mirror_words(p, r, back, false);
    const TraceCollective *c = wrong_one(p, back ? r->conj : r->coll, back ? r->n_conj : r->n_coll);
    MirrorSide side = {-1, -1, y, y + h};
    if (back && !mirror_has_back(p->m, r)) return side;
    if (r->kind == ROW_FROM) {
        Subject v = {back ? OF_GRADIENT : OF_ITSELF, r->out[0]};
        side.top = side.bottom = mirror_pill_of(p, cx, y, v);
        side.y1 = y + h;
        return side;
    }
    if (r->kind != ROW_OPS) {
        Slot slot = {cx, y, p->box, row};
        side.top = side.bottom = c ? hexagon(p, slot, text, c, back ? changes_tip(p, r) : "")
                                   : thin(p, cx, y, row, text, move_step(p, r, back));
        if (c) hexagon_flag(p, slot, text, c->step);
        if (!c) side.y0 = y + (row - 20) / 2, side.y1 = side.y0 + 20;
        return side;
    }
    const MirrorOp *op = back ? r->back : r->op;
    int n = back ? r->n_back : r->n_op, step = box_step(p, op, n, false),
        weight = back ? -1 : wrong_weight(p, r, false);
    if (step < 0 && r->n_grad) step = r->grad[0].made->step;
    if (weight >= 0) step = weight;
    const char *rest = mirror_has_rest(r) ? mirror_words(p, r, back, true) : "",
               *tip = steps_tip(p, op, n, false);
    if (!*tip && back && r->n_grad) /* nothing but the gradient of a parameter */
        tip = arena_printf(p->c->arena, "step %d: makes %s", step, r->grad[0].made->output);
    const BoxWords upper = {text, back ? "" : mirror_note(p, r, false),
                            ops_likeness(p, op, n, false)},
                   lower = {rest, back ? "" : mirror_note(p, r, true),
                            ops_likeness(p, op, n, true)};
    side.top = side.bottom = box(p, (Slot){cx, y, p->box, *rest ? row : h}, upper, step, tip);
    if (*rest)
        side.bottom = box(p, (Slot){cx, y + row, p->box, h - row}, lower, box_step(p, op, n, true),
                          steps_tip(p, op, n, true));
    return side;
}

/* The line that joins a collective with its mirror image. */
static void join_pair(MirrorPen *p, const MirrorRow *r, double y) {
    Arena *a = p->c->arena;
    const TraceCollective *c = r->n_coll ? r->coll[0] : r->n_conj ? r->conj[0] : NULL;
    if (!c || !mirror_has_back(p->m, r)) return;
    const char *color = words_color_axis(a, p->m->g->t, c->axis, c->axes),
               *text = mirror_pill(p, c);
    AxisKind k = theme_axis(color);
    double in = fmax(80, mirror_text_width(p, "identity", REGULAR) + 20) / 2;
    double x0 = p->forward + (r->n_coll ? p->box / 2 : in) + 4,
           x1 = p->backward - (r->n_conj ? p->box / 2 : in) - 4;
    double w = pill_width(p->s, text), mid = (p->forward + p->backward) / 2;
    scene_begin(p->s, "pair", arena_printf(a, "pair-%d", c->step), coll_tip(p, c));
    for (int i = 0; i < 2; i++) {
        Mark *m = scene_segment(p->s, (Pt){i ? mid + w / 2 + 3 : x0, y},
                                (Pt){i ? x1 : mid - w / 2 - 3, y}, ROLE_AXIS + k, 2);
        m->dash = theme_axis_dash(k, &m->n_dash);
    }
    draw_pill(p->s, mid - w / 2, y, text, color);
    scene_end(p->s);
}

/* A collective without a mirror image has its group in the gutter all the same. */
static void lone_pill(MirrorPen *p, const MirrorRow *r, double y) {
    if (!r->n_coll || mirror_has_back(p->m, r)) return;
    const char *color =
        words_color_axis(p->c->arena, p->m->g->t, r->coll[0]->axis, r->coll[0]->axes);
    scene_begin(p->s, "pair", arena_printf(p->c->arena, "pair-%d", r->coll[0]->step),
                coll_tip(p, r->coll[0]));
    draw_pill(p->s, p->forward + p->box / 2 + 12, y, mirror_pill(p, r->coll[0]), color);
    scene_end(p->s);
}

/* The grey arrow of what is kept for backward. */
static void draw_saved(MirrorPen *p, const MirrorRow *r, bool rest, double y, int to) {
    double x0 = p->forward + p->box / 2 + 3, x1 = p->backward - p->box / 2, room = x1 - x0 - 40;
    const char *text = mirror_saved_words(p, r, rest, room);
    if (!text || to < 0) return;
    text = scene_fit(p->s, text, room + 12, MIRROR_SIZE, REGULAR);
    double w = mirror_text_width(p, text, REGULAR), mid = (x0 + x1) / 2 - 2;
    scene_begin(p->s, "saved", "saved", mirror_saved_words(p, r, rest, INFINITY));
    scene_segment(p->s, (Pt){x0, y}, (Pt){mid - w / 2 - 5, y}, ROLE_TICK, 1.2);
    Pt pt[2] = {{mid + w / 2 + 5, y}, {x1, y}};
    scene_text(p->s, mid, y + 4.3, (TextLook){ALIGN_MIDDLE, MIRROR_SIZE, REGULAR, ROLE_SECOND},
               text);
    scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_TICK, 1.2, false, false}, to);
    scene_end(p->s);
    p->legend |= 1u << (strstr(text, "  again") ? LEGEND_AGAIN : LEGEND_SAVED);
}

/* One entry of weight gradients at (x, y): box, its reductions, words. */
static void draw_entry(MirrorPen *p, const MirrorEntry *e, double x, double y, double h,
                       double from) {
    Arena *a = p->c->arena;
    int group;
    scene_begin(p->s, "gradient", arena_printf(a, "gradient-%d", e->step), e->first->made->output);
    const TraceParam *of = trace_param(p->m->g->t, e->first->made->makes.of);
    scene_same(p->s, of ? of->module : NULL);
    scene_frame(p->s, x, y - h / 2, p->grad_w, h);
    wrong(p,
          scene_rect(p->s, (Area){x, y - h / 2, p->grad_w, h}, 3,
                     (Look){ROLE_COMPUTE_PALE, ROLE_COMPUTE_LINE, 1.25}),
          e->step);
    scene_text(p->s, x + 10, y + 4.5, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
               scene_fit(p->s, e->names, p->grad_w - 16, 12.5, SEMIBOLD));
    group = p->s->open;
    scene_end(p->s);
    Pt in[2] = {{from, y}, {x, y}};
    scene_begin(p->s, "edge", "gradient-flow", e->first->made->output);
    if (from > 0)
        scene_arrow(p->s, in, 2, (ArrowLook){ROLE_COMPUTE_LINE, 1.5, false, false}, group);
    scene_end(p->s);
    double at = x + p->grad_w;
    const TraceValue *v = trace_value(p->m->g->t, e->first->made->output, e->step);
    for (int i = 0; i < e->first->n; i++, at += p->gap + p->hex) {
        const TraceCollective *c = e->first->coll[i];
        bool max, partial = v && words_pending(&v->shape, &max);
        const char *word = mirror_entry_words(p, e, i);
        scene_at(p->s, c->step + 1);
        Slot slot = {at + p->gap + p->hex / 2, y - h / 2, p->hex, h};
        group = hexagon(p, slot, word, c, "");
        Pt pt[2] = {{at, y - (partial ? 2 : 0)}, {at + p->gap, y - (partial ? 2 : 0)}};
        scene_begin(p->s, "edge", "gradient-flow", e->first->made->output);
        scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_COMPUTE_LINE, 1.5, false, partial}, group);
        scene_end(p->s);
        hexagon_flag(p, slot, word, c->step);
        if (partial) p->legend |= 1u << LEGEND_PARTIAL;
        if (!wrong_skipped(c)) v = trace_value(p->m->g->t, e->first->made->output, c->step);
    }
    const TraceCollective *last = e->first->n ? e->first->coll[e->first->n - 1] : NULL;
    Role role = ROLE_SECOND;
    if (last)
        role = ROLE_AXIS_TEXT + theme_axis(words_color_axis(a, p->m->g->t, last->axis, last->axes));
    if (last && wrong_number(p->wrong, last->step)) role = ROLE_FAIL;
    scene_text(p->s, at + 8, y - 3, (TextLook){ALIGN_LEFT, MIRROR_SIZE, REGULAR, ROLE_INK},
               mirror_end_words(p, e, 0));
    scene_text(p->s, at + 8, y + 12,
               (TextLook){ALIGN_LEFT, MIRROR_SIZE, last ? SEMIBOLD : REGULAR, role},
               mirror_end_words(p, e, 1));
}

static void draw_grads(MirrorPen *p, const MirrorRow *r, double y) {
    MirrorEntry e[MIRROR_MAX];
    int n = p->look.beside ? mirror_entries(p, r, e) : 0;
    double pitch = n > 1 ? 36 : 0, h = fmin(p->look.row, 28), x0 = p->backward + p->box / 2;
    for (int i = 0; i < n; i++) {
        double ey = y + pitch * i;
        Pt turn[2] = {{p->grad - 14, y}, {p->grad - 14, ey}};
        scene_at(p->s, e[i].step + 1);
        scene_begin(p->s, "edge", "gradient-flow", e[i].first->made->output);
        if (i) scene_line(p->s, turn, 2, ROLE_COMPUTE_LINE, 1.5);
        scene_end(p->s);
        draw_entry(p, &e[i], p->grad, ey, h, i ? p->grad - 14 : x0);
    }
}

void mirror_arrow(MirrorPen *p, const Pt *pt, int n, bool partial, int to) {
    scene_arrow(p->s, pt, n, (ArrowLook){ROLE_INK, 1.5, false, partial}, to);
    if (partial) p->legend |= 1u << LEGEND_PARTIAL;
}
void mirror_flow_arrow(MirrorPen *p, const Pt *pt, int n, const MirrorLabel *l, int to) {
    Str tip = str_new(p->c->arena);
    for (int i = 0; i < l->n; i++) str_addf(&tip, "%s%s", i ? "\n" : "", l->tip[i]);
    scene_begin(p->s, "edge", "flow", tip.n ? tip.s : "nothing flows here");
    mirror_arrow(p, pt, n, l->pending != NULL, to);
    scene_end(p->s);
}

/* Forward left of its line, backward right of it; numbers under the symbols, or behind them. */
void mirror_draw_label(MirrorPen *p, const MirrorStrip *s, int r, bool back, double y, double h) {
    MirrorLabel l = mirror_label(p, s, r, back);
    Arena *a = p->c->arena;
    mirror_label_gap(p, s, r, back, &y, &h);
    int lines = p->look.inlined ? l.n : 2 * l.n;
    double x = back ? p->backward : p->forward, lx = back ? x + MIRROR_LABEL : x - MIRROR_LABEL,
           apart = p->look.apart,
           base = y + (h - p->look.line * (lines - 1) - apart * (l.n - 1)) / 2 + 4.3;
    Align align = back ? ALIGN_LEFT : ALIGN_RIGHT;
    for (int i = 0; i < l.n; i++) {
        Run run[2] = {{l.line[i], REGULAR, ROLE_INK, false, false},
                      {arena_printf(a, "  %s", l.num[i]), REGULAR, ROLE_SECOND, false, false}};
        double at = base + p->look.line * (p->look.inlined ? i : 2 * i) + apart * i;
        scene_begin(p->s, "label", arena_printf(a, "label-%s-%d-%d", s->to, r, back), l.tip[i]);
        scene_runs(p->s, (Pt){lx, at}, align, MIRROR_SIZE, run,
                   p->look.inlined && *l.num[i] ? 2 : 1);
        if (!p->look.inlined)
            scene_text(p->s, lx, at + p->look.line,
                       (TextLook){align, MIRROR_SIZE, REGULAR, ROLE_SECOND}, l.num[i]);
        const double w =
            fmax(mirror_text_width(p, l.line[i], REGULAR), mirror_text_width(p, l.num[i], REGULAR));
        figure_unlike(p->s, (Pt){back ? lx : lx - w, at + (p->look.inlined ? 0 : p->look.line) + 2},
                      w, l.like[i], &p->legend);
        scene_end(p->s);
    }
    if (!l.pending) return;
    Role role = ROLE_AXIS_TEXT + theme_axis(words_color_axis(a, p->m->g->t, l.axes, l.axes));
    scene_text(p->s, back ? x - MIRROR_LABEL : x + MIRROR_LABEL, y + h / 2 + 4.3,
               (TextLook){back ? ALIGN_RIGHT : ALIGN_LEFT, MIRROR_SIZE, SEMIBOLD, role},
               mirror_pending(p, &l));
}

/* Values that a row reads from outside, left of its box, each with an arrow to the box at its
 * height: the row's own, or below it what else the row does. */
static void draw_sides(MirrorPen *p, const MirrorStrip *s, int r, double y, const MirrorSide *f) {
    const TraceValue *v[MIRROR_FLOW];
    int n = mirror_sides(p->m, s, r, v, MIRROR_FLOW);
    double box = p->forward - p->box / 2, h = mirror_row_height(p, s, &s->row[r]);
    const bool past = *mirror_past_words(p, s, r, false) != 0; /* a line comes in under them */
    if (mirror_sides_named(p, s, r)) {
        const double mid = y + (past ? h / 4 : p->look.row / 2);
        Str names = str_new(p->c->arena);
        for (int i = 0; i < n; i++) {
            const char *name = mirror_told(p, v[i]->shape.name, false);
            bool said = false; /* parts of one value have one name */
            for (int k = 0; k < i; k++)
                said |= !strcmp(name, mirror_told(p, v[k]->shape.name, false));
            if (!said) str_addf(&names, "%s%s", i ? ", " : "", name);
        }
        Pt pt[2] = {{box - 22, mid}, {box, mid}};
        scene_begin(p->s, "input", arena_printf(p->c->arena, "inputs-%d", f->top), names.s);
        mirror_arrow(p, pt, 2, false, f->top);
        const char *line[2];
        const double room = box - 27 - (s->plain ? presets[PRESET_SLIDE].margin : p->stream + 8);
        const int lines =
            scene_wrap(p->s, names.s, (TextColumn){room, MIRROR_SIZE, SEMIBOLD, 2, NULL}, line);
        for (int i = 0; i < lines; i++) /* the last at the arrow: below it is another label */
            scene_text(p->s, box - 27, mid + 4.3 - 14 * (lines - 1 - i),
                       (TextLook){ALIGN_RIGHT, MIRROR_SIZE, SEMIBOLD, ROLE_INK}, line[i]);
        scene_end(p->s);
        return;
    }
    for (int i = 0; i < n; i++) {
        double mid = y + h * (i + 0.5) / (n + past);
        Pt pt[2] = {{box - 22, mid}, {box, mid}};
        scene_begin(p->s, "input", arena_printf(p->c->arena, "input-%s", v[i]->shape.name),
                    v[i]->shape.name);
        mirror_arrow(p, pt, 2, false, mid > y + p->look.row ? f->bottom : f->top);
        for (int line = 0; line < 2; line++)
            scene_text(p->s, box - 27, mid - 3 + 14 * line,
                       (TextLook){ALIGN_RIGHT, MIRROR_SIZE, line ? REGULAR : SEMIBOLD,
                                  line ? ROLE_SECOND : ROLE_INK},
                       mirror_side_words(p, v[i], false, line));
        scene_end(p->s);
    }
}

/* Is the gradient one that the sum above row r makes, of what comes to it there? */
static bool is_summed(const MirrorStrip *s, int r, const TraceValue *v) {
    const MirrorRow *row = &s->row[r];
    bool made = false, comes = false;
    for (int i = 0; i < row->n_back; i++)
        made |= row->back[i].f->step == v->step && trace_adds_uses(row->back[i].f);
    for (int i = 0; i < s->n_past[1] + s->in[1].n; i++) {
        const int far = i - s->n_past[1];
        const MirrorRead *q = far < 0 ? &s->past[1][i] : &s->in[1].read[far];
        comes |= q->to == r && q->sum && text_same(q->v->shape.name, v->shape.name);
    }
    return made && comes;
}
/* Of the gradients that leave row r by its side those that the sum above it makes (summed), or the
 * others. */
static int side_grads(const MirrorPen *p, const MirrorStrip *s, int r, bool summed,
                      const TraceValue **out) {
    const TraceValue *v[MIRROR_FLOW];
    const int all = p->look.bare ? 0 : mirror_side_grads(s, r, v, MIRROR_FLOW);
    int n = 0;
    for (int i = 0; i < all; i++)
        if (is_summed(s, r, v[i]) == summed) out[n++] = v[i];
    return n;
}
/* What is complete above the sum only leaves the line there, to the left: at the right the line has
 * its label. */
static void draw_summed_grads(MirrorPen *p, const MirrorStrip *s, int r, double y) {
    const TraceValue *v[MIRROR_FLOW];
    const int n = side_grads(p, s, r, true, v);
    const double x = p->backward, at = y - p->look.fork / 2 - 3 - ABOVE_SUM;
    const Pt pt[2] = {{x, at}, {x - 22, at}};
    if (!n) return;
    Str tip = str_new(p->c->arena);
    for (int i = 0; i < n; i++)
        str_addf(&tip, "%s%s, step %d", i ? "\n" : "", v[i]->shape.name, v[i]->step);
    scene_begin(p->s, "edge", arena_printf(p->c->arena, "gradient-%d", v[0]->step), tip.s);
    scene_circle(p->s, x, at, 2.6, (Look){ROLE_INK, ROLE_NONE, 0});
    mirror_arrow(p, pt, 2, false, -1);
    for (int line = 0; line < 2; line++) {
        const char *text = mirror_side_grad_words(p, s, v, n, line);
        const bool alone = !*mirror_side_grad_words(p, s, v, n, 1);
        if (*text)
            scene_text(p->s, x - 27, at + (alone ? 4.3 : -3 + 14 * line),
                       (TextLook){ALIGN_RIGHT, MIRROR_SIZE, line ? REGULAR : SEMIBOLD,
                                  line ? ROLE_SECOND : ROLE_INK},
                       text);
    }
    scene_end(p->s);
}

/* Gradients that leave the box that makes them without a line, at its right: one for another page
 * with its shape, others by name. */
static void draw_side_grads(MirrorPen *p, const MirrorStrip *s, int r, double y) {
    const TraceValue *v[MIRROR_FLOW];
    const int n = side_grads(p, s, r, false, v);
    const bool past = s->row[r].kind == ROW_OPS && *mirror_past_words(p, s, r, true);
    const bool under = s->row[r].n_grad && p->look.beside; /* the line of the gradients */
    const double box = p->backward + p->box / 2, h = mirror_row_height(p, s, &s->row[r]),
                 mid = y + (past    ? 14
                            : under ? h - 6
                                    : h / 2);
    Pt pt[2] = {{box, mid}, {box + 22, mid}};
    if (!n) return;
    Str tip = str_new(p->c->arena);
    for (int i = 0; i < n; i++)
        str_addf(&tip, "%s%s, step %d", i ? "\n" : "", v[i]->shape.name, v[i]->step);
    scene_begin(p->s, "edge", arena_printf(p->c->arena, "gradient-%d", v[0]->step), tip.s);
    mirror_arrow(p, pt, 2, false, -1);
    for (int line = 0; line < 2; line++) {
        const char *text = mirror_side_grad_words(p, s, v, n, line);
        const bool alone = !*mirror_side_grad_words(p, s, v, n, 1);
        if (*text)
            scene_text(p->s, box + 27, mid + (alone ? 4.3 : -3 + 14 * line),
                       (TextLook){ALIGN_LEFT, MIRROR_SIZE, line ? REGULAR : SEMIBOLD,
                                  line ? ROLE_SECOND : ROLE_INK},
                       text);
    }
    scene_end(p->s);
}

/* What brings a weight: a small hexagon where it is its own collective, an arrow where it travels
 * with another. */
static void draw_fetch(MirrorPen *p, const MirrorRow *r, const TraceParam *w, double x, double y) {
    const char *word = mirror_fetch_words(p, r, w);
    const double mid = x - 7 - p->fetch / 2;
    if (!*word) {
        scene_text(p->s, mid, y, (TextLook){ALIGN_MIDDLE, MIRROR_SIZE, REGULAR, ROLE_SECOND}, "→");
        return;
    }
    const TraceCollective *c = mirror_fetch(p->m, w, 0);
    int before = scene_at(p->s, c->step + 1);
    Slot slot = {mid, y - 14, p->fetch, 20};
    hexagon(p, slot, word, c, "");
    hexagon_flag(p, slot, word, c->step);
    scene_at(p->s, before);
}

/* Weights that lie at rest in another way, around y: symbols, and numbers under them. */
static void draw_states(MirrorPen *p, const MirrorRow *r, double y, double pitch) {
    const TraceParam *w[MIRROR_FLOW];
    const char *name[MIRROR_FLOW];
    int n = mirror_states(p, r, w, name);
    Str tip = str_new(p->c->arena);
    for (int i = 0; i < n; i++) str_addf(&tip, "%s%s", i ? "\n" : "", w[i]->compute.name);
    scene_begin(p->s, "weight", "weight", tip.s);
    for (int i = 0; i < n; i++) {
        double ly = y + (2 * pitch + 4) * (i - (n - 1) / 2.0) - pitch / 2 + 4.3;
        scene_text(p->s, p->col[0], ly, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK}, name[i]);
        for (int k = 1; k < 4; k++) {
            const char *text = mirror_state_words(p, w[i], k);
            const TraceShape *sh = k == 1 ? &w[i]->rest : &w[i]->compute;
            const TraceLocal *l = words_find_local(sh, p->m->g->rank);
            if (!*text) continue;
            scene_text(
                p->s, p->col[k], ly,
                (TextLook){ALIGN_LEFT, MIRROR_SIZE, REGULAR, k == 3 ? ROLE_SECOND : ROLE_INK},
                text);
            if (k < 3 && l)
                scene_text(p->s, p->col[k], ly + pitch,
                           (TextLook){ALIGN_LEFT, MIRROR_SIZE, REGULAR, ROLE_SECOND},
                           words_shape(p->c->arena, l->shape, sh->nd));
            if (k == 2) draw_fetch(p, r, w[i], p->col[k], ly);
            if (k == 3)
                scene_text(p->s, p->col[k] - 6, ly,
                           (TextLook){ALIGN_RIGHT, MIRROR_SIZE, REGULAR, ROLE_SECOND}, "→");
        }
    }
    scene_end(p->s);
}

/* The boxes of a row at `at`, what joins them, and what comes from outside. */
static MirrorPlace draw_row(MirrorPen *p, const MirrorStrip *s, int r, double at) {
    const MirrorRow *row = &s->row[r];
    const double h = mirror_row_height(p, s, row),
                 mid = at + (row->kind == ROW_MOVE ? h : p->look.row) / 2;
    const int step = mirror_row_step(row, false), again = mirror_row_step(row, true);
    scene_at(p->s, step);
    const MirrorSide f = draw_side(p, s, row, false, at);
    draw_sides(p, s, r, at, &f);
    if (p->weight >= 0 && p->look.weights) draw_states(p, row, mid, p->look.line + 1);
    scene_at(p->s, again);
    const MirrorSide b = draw_side(p, s, row, true, at);
    draw_side_grads(p, s, r, at);
    draw_summed_grads(p, s, r, at);
    scene_link(p->s, f.top, b.top); /* a step and its mirror image */
    scene_at(p->s, step > again ? step : again);
    if (row->kind != ROW_OPS) join_pair(p, row, mid), lone_pill(p, row, mid);
    scene_at(p->s, again);
    draw_saved(p, row, false, mid, b.top);
    if (mirror_has_rest(row))
        draw_saved(p, row, true, at + p->look.row + p->look.sub / 2, b.bottom);
    draw_grads(p, row, mid);
    return (MirrorPlace){at, f, b, false};
}

double mirror_rows(MirrorPen *p, const MirrorStrip *s, double y, MirrorEnds *e) {
    MirrorSide f = {-1, -1, y, y}, b = f;
    MirrorPlace *place = ARENA_ARRAY(p->c->arena, MirrorPlace, s->n + 1);
    const MirrorRow *up_to = NULL; /* the last above with a box of backward */
    const MirrorFold fold = mirror_fold(p->m->g, s);
    double at = y, gap = 0;
    *e = (MirrorEnds){f, f, f, f, false};
    for (int r = 0; r < s->n; r++) {
        const MirrorRow *row = &s->row[r];
        const bool in = r >= fold.from && r < fold.until, back = mirror_has_back(p->m, row);
        const int again = mirror_row_step(row, true);
        if (in && r > fold.from) { /* stands in the band */
            place[r] = place[fold.from];
            if (back) up_to = row;
            if (r + 1 < fold.until) continue;
            gap = r + 1 < s->n ? mirror_edge_height(p, s, r) : 0;
            at += p->look.row + gap;
            continue;
        }
        if (in) scene_at(p->s, again);
        place[r] = in ? mirror_band(p, s, at) : draw_row(p, s, r, at);
        f = place[r].f, b = place[r].b;
        for (int k = 0; r && k < 2; k++) { /* what flows appears with the row that makes it */
            MirrorLabel l = mirror_label(p, s, r - 1, k);
            const bool parts = mirror_breaks(s, r - 1); /* mirror_rails */
            Pt pt[2] = {{p->forward, e->f1.y1}, {p->forward, f.y0}},
               up[2] = {{p->backward, b.y0}, {p->backward, e->b1.y1}};
            scene_at(p->s, k ? again : mirror_row_step(row - 1, false));
            const MirrorFed fed = !k && in && mirror_into(s, &fold) ? FED_UNKNOWN
                                  : !k                              ? row->fed[0]
                                  : up_to                           ? up_to->fed[1]
                                                                    : FED_UNKNOWN;
            if (fed == FED_WHOLE) l.pending = NULL; /* the sum runs past the row */
            if (!k && !parts && fed != FED_NOT) mirror_flow_arrow(p, pt, 2, &l, f.top);
            if (k && !parts && back && l.n && e->back && fed != FED_NOT)
                mirror_flow_arrow(p, up, 2, &l, e->b1.bottom);
            mirror_draw_label(p, s, r - 1, k, at - gap, gap);
        }
        scene_at(p->s, 0);
        if (r == 0) e->f0 = f;
        if (back && !e->back) e->b0 = b;
        e->f1 = f;
        if (back) e->b1 = b, e->back = true, up_to = row;
        if (in && r + 1 < fold.until) continue;
        gap = r + 1 < s->n ? mirror_edge_height(p, s, r) : 0;
        at += (in ? p->look.row : mirror_row_height(p, s, row)) + gap;
    }
    mirror_rails(p, s, place);
    return at;
}

/* ---- heads and lists ---- */

void mirror_heads(MirrorPen *p, double y) {
    scene_text(p->s, p->forward, y, (TextLook){ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK},
               p->look.narrow ? "forward ↓" : "forward, downwards");
    scene_text(p->s, p->backward, y, (TextLook){ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK},
               p->look.narrow ? "backward ↑" : "backward, upwards");
    scene_text(p->s, (p->forward + p->backward) / 2, y,
               (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND},
               p->look.narrow ? "saved" : "saved / conjugate");
    if (p->grads)
        scene_text(p->s, p->grad, y, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
                   "weight gradients");
    if (p->weight < 0 || !p->look.weights) return;
    scene_text(p->s, p->col[0], y, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK}, "weights");
    scene_text(p->s, p->col[1], y, (TextLook){ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK}, "at rest");
    scene_text(p->s, p->col[2], y, (TextLook){ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK}, "gathered");
    scene_text(p->s, p->col[3], y, (TextLook){ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK}, "after");
}

double mirror_lists(MirrorPen *p, const MirrorStrip *s, double x, double y) {
    Arena *a = p->c->arena;
    const TraceParam *w[MIRROR_FLOW];
    const char *name[MIRROR_FLOW];
    MirrorEntry e[MIRROR_MAX];
    int entries = 0, states = 0;
    for (int r = 0; r < s->n; r++)
        entries += mirror_entries(p, &s->row[r], e),
            states += mirror_states(p, &s->row[r], w, name);
    if (entries) {
        scene_text(p->s, x, y + 12, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
                   arena_printf(a, "%s: weight gradients", s->strip->title));
        y += 36;
    }
    for (int r = 0; r < s->n; r++) {
        int n = mirror_entries(p, &s->row[r], e);
        for (int i = 0; i < n; i++, y += 32) draw_entry(p, &e[i], x, y, 28, 0);
    }
    if (!states) return y;
    y += 10;
    scene_text(p->s, x, y - 4, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
               arena_printf(a, "%s: weights at rest → gathered → after use", s->strip->title));
    y += 16;
    for (int r = 0; r < s->n; r++) {
        int n = mirror_states(p, &s->row[r], w, name);
        if (n) draw_states(p, &s->row[r], y + 17 * (n - 1) + 8, 15);
        if (n) y += 34 * n + 4;
    }
    return y + 10;
}
