/* Rows of "backward beside forward": forward at the left, downwards; its mirror image at the right, upwards; between
 * them what joins them. Labels of forward stand left of their line and those of backward right of it. */
#include "render/mirror_draw.h"
#include <math.h>
#include <string.h>

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static Mark *wrong(MirrorPen *p, Mark *m, int step) {
    if (step != p->m->g->wrong_step) return m;
    m->stroke = ROLE_FAIL;
    m->line = 3;
    p->legend |= 1u << LEGEND_WRONG;
    return m;
}

static int box(MirrorPen *p, double cx, double y, double w, double h, const char *text, int step, const char *tip) {
    scene_begin(p->s, "compute", arena_printf(p->c->arena, "step-%d", step), tip);
    scene_frame(p->s, cx - w / 2, y, w, h);
    wrong(p, scene_rect(p->s, cx - w / 2, y, w, h, 3, ROLE_COMPUTE, ROLE_COMPUTE_LINE, 1.25), step);
    scene_text(p->s, cx, y + h / 2 + 4.5, ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK,
               scene_fit(p->s, text, w - 12, 12.5, SEMIBOLD));
    int group = p->s->open;
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
    return s.s;
}

static int hexagon(MirrorPen *p, double cx, double y, double w, double h, const char *text, const TraceCollective *c) {
    scene_begin(p->s, "collective", arena_printf(p->c->arena, "step-%d", c->step), coll_tip(p, c));
    scene_frame(p->s, cx - w / 2, y, w, h);
    wrong(p, scene_hexagon(p->s, cx - w / 2, y, w, h, ROLE_COLL, ROLE_COLL_LINE, 2), c->step);
    scene_text(p->s, cx, y + h / 2 + 4.5, ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK,
               scene_fit(p->s, text, w - 16, 12.5, SEMIBOLD));
    int group = p->s->open;
    scene_end(p->s);
    p->legend |= 1u << LEGEND_COLL;
    return group;
}

/* Where nothing is sent: a thin dashed box. */
static int thin(MirrorPen *p, double cx, double y, double h, const char *text) {
    static const double dash[2] = {3, 2};
    double w = fmax(80, mirror_text_width(p, text, REGULAR) + 20), in = (h - 20) / 2;
    scene_begin(p->s, "move", "move", NULL);
    scene_frame(p->s, cx - w / 2, y + in, w, 20);
    Mark *m = scene_rect(p->s, cx - w / 2, y + in, w, 20, 2, ROLE_PAPER, ROLE_INK, 1);
    m->dash = dash;
    m->n_dash = 2;
    scene_text(p->s, cx, y + h / 2 + 4.3, ALIGN_MIDDLE, MIRROR_SIZE, REGULAR, ROLE_INK, text);
    int group = p->s->open;
    scene_end(p->s);
    p->legend |= 1u << LEGEND_MOVE;
    return group;
}

static const char *steps_tip(const MirrorPen *p, const MirrorOp *op, int n, bool rest) {
    Str s = str_new(p->c->arena);
    for (int i = 0; i < n; i++)
        if (op[i].rest == rest)
            str_addf(&s, "%sstep %d: %s makes %s", s.n ? "\n" : "", op[i].f->step, op[i].f->op, op[i].f->output);
    return s.s;
}

/* The step of the box that is red if it is wrong; else its first. */
static int box_step(const MirrorPen *p, const MirrorOp *op, int n, bool rest) {
    int step = -1;
    for (int i = 0; i < n; i++)
        if (op[i].rest == rest && (step < 0 || op[i].f->step == p->m->g->wrong_step)) step = op[i].f->step;
    return step;
}

typedef struct {
    int top, bottom; /* groups on which arrows end */
    double y0, y1;   /* borders */
} Side;

static Side draw_side(MirrorPen *p, const MirrorRow *r, bool back, double y) {
    double cx = back ? p->backward : p->forward, h = mirror_row_height(p, r),
           row = r->kind == ROW_MOVE ? h : p->look.row;
    const char *text = mirror_words(p, r, back, false);
    const TraceCollective *c = back ? (r->n_conj ? r->conj[0] : NULL) : r->n_coll ? r->coll[0] : NULL;
    Side side = {-1, -1, y, y + h};
    if (r->kind != ROW_OPS) {
        side.top = side.bottom =
            c ? hexagon(p, cx, y, p->box, row, text, c) : thin(p, cx, y, row, back ? "identity" : text);
        if (!c) side.y0 = y + (row - 20) / 2, side.y1 = side.y0 + 20;
        return side;
    }
    const MirrorOp *op = back ? r->back : r->op;
    int n = back ? r->n_back : r->n_op, step = box_step(p, op, n, false);
    if (back && n == 0 && r->n_grad == 0) return side;
    if (step < 0 && r->n_grad) step = r->grad[0].made->step;
    const char *rest = mirror_has_rest(r) ? mirror_words(p, r, back, true) : "", *tip = steps_tip(p, op, n, false);
    if (!*tip && back && r->n_grad) /* nothing but the gradient of a parameter */
        tip = arena_printf(p->c->arena, "step %d: makes %s", step, r->grad[0].made->output);
    side.top = side.bottom = box(p, cx, y, p->box, *rest ? row : h, text, step, tip);
    if (*rest)
        side.bottom = box(p, cx, y + row, p->box, h - row, rest, box_step(p, op, n, true), steps_tip(p, op, n, true));
    return side;
}

/* The line that joins a collective with its mirror image. */
static void join_pair(MirrorPen *p, const MirrorRow *r, double y) {
    Arena *a = p->c->arena;
    const TraceCollective *c = r->n_coll ? r->coll[0] : r->n_conj ? r->conj[0] : NULL;
    if (!c) return;
    const char *color = words_color_axis(a, p->c->t, c->axis, c->axes), *text = mirror_pill(p, c);
    AxisKind k = theme_axis(color);
    double in = fmax(80, mirror_text_width(p, "identity", REGULAR) + 20) / 2;
    double x0 = p->forward + (r->n_coll ? p->box / 2 : in) + 4, x1 = p->backward - (r->n_conj ? p->box / 2 : in) - 4;
    double w = pill_width(p->s, text), mid = (p->forward + p->backward) / 2;
    scene_begin(p->s, "pair", arena_printf(a, "pair-%d", c->step), coll_tip(p, c));
    for (int i = 0; i < 2; i++) {
        Mark *m = scene_segment(p->s, i ? mid + w / 2 + 3 : x0, y, i ? x1 : mid - w / 2 - 3, y, ROLE_AXIS + k, 2);
        m->dash = theme_axis_dash(k, &m->n_dash);
    }
    draw_pill(p->s, mid - w / 2, y, text, color);
    scene_end(p->s);
}

/* The grey arrow of what is kept for backward. */
static void draw_saved(MirrorPen *p, const MirrorRow *r, bool rest, double y, int to) {
    const char *text = mirror_saved_words(p, r, rest, false);
    double x0 = p->forward + p->box / 2 + 3, x1 = p->backward - p->box / 2, room = x1 - x0 - 40;
    if (!text || to < 0) return;
    if (mirror_text_width(p, text, REGULAR) > room) text = mirror_saved_words(p, r, rest, true);
    text = scene_fit(p->s, text, room + 12, MIRROR_SIZE, REGULAR);
    double w = mirror_text_width(p, text, REGULAR), mid = (x0 + x1) / 2 - 2;
    scene_begin(p->s, "saved", "saved", mirror_saved_words(p, r, rest, false));
    scene_segment(p->s, x0, y, mid - w / 2 - 5, y, ROLE_TICK, 1.2);
    Pt pt[2] = {{mid + w / 2 + 5, y}, {x1, y}};
    scene_text(p->s, mid, y + 4.3, ALIGN_MIDDLE, MIRROR_SIZE, REGULAR, ROLE_SECOND, text);
    scene_arrow(p->s, pt, 2, ROLE_TICK, 1.2, false, false, to);
    scene_end(p->s);
    p->legend |= 1u << LEGEND_SAVED;
}

/* One entry of weight gradients at (x, y): box, its reductions, words. */
static void draw_entry(MirrorPen *p, const MirrorEntry *e, double x, double y, double h, double from) {
    Arena *a = p->c->arena;
    int group;
    scene_begin(p->s, "gradient", arena_printf(a, "gradient-%d", e->step), e->first->made->output);
    scene_frame(p->s, x, y - h / 2, p->grad_w, h);
    wrong(p, scene_rect(p->s, x, y - h / 2, p->grad_w, h, 3, ROLE_COMPUTE_PALE, ROLE_COMPUTE_LINE, 1.25), e->step);
    scene_text(p->s, x + 10, y + 4.5, ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK,
               scene_fit(p->s, e->names, p->grad_w - 16, 12.5, SEMIBOLD));
    group = p->s->open;
    scene_end(p->s);
    Pt in[2] = {{from, y}, {x, y}};
    if (from > 0) scene_arrow(p->s, in, 2, ROLE_COMPUTE_LINE, 1.5, false, false, group);
    double at = x + p->grad_w;
    const TraceValue *v = words_find_value(p->c->t, e->first->made->output, e->step);
    for (int i = 0; i < e->first->n; i++, at += p->gap + p->hex) {
        const TraceCollective *c = e->first->coll[i];
        const CollWord *w = words_coll(c->op);
        bool partial = v && v->shape.pending && *v->shape.pending;
        group = hexagon(p, at + p->gap + p->hex / 2, y - h / 2, p->hex, h, w ? w->name : c->op, c);
        Pt pt[2] = {{at, y - (partial ? 2 : 0)}, {at + p->gap, y - (partial ? 2 : 0)}};
        scene_arrow(p->s, pt, 2, ROLE_COMPUTE_LINE, 1.5, false, partial, group);
        if (partial) p->legend |= 1u << LEGEND_PARTIAL;
        v = words_find_value(p->c->t, e->first->made->output, c->step);
    }
    const TraceCollective *last = e->first->n ? e->first->coll[e->first->n - 1] : NULL;
    Role role = ROLE_SECOND;
    if (last) role = ROLE_AXIS_TEXT + theme_axis(words_color_axis(a, p->c->t, last->axis, last->axes));
    scene_text(p->s, at + 8, y - 3, ALIGN_LEFT, MIRROR_SIZE, REGULAR, ROLE_INK, mirror_end_words(p, e, 0));
    scene_text(p->s, at + 8, y + 12, ALIGN_LEFT, MIRROR_SIZE, last ? SEMIBOLD : REGULAR, role,
               mirror_end_words(p, e, 1));
}

static void draw_grads(MirrorPen *p, const MirrorRow *r, double y) {
    MirrorEntry e[MIRROR_MAX];
    int n = p->look.beside ? mirror_entries(p, r, e) : 0;
    double pitch = n > 1 ? 36 : 0, h = fmin(p->look.row, 28), x0 = p->backward + p->box / 2;
    for (int i = 0; i < n; i++) {
        double ey = y + pitch * i;
        Pt turn[2] = {{p->grad - 14, y}, {p->grad - 14, ey}};
        if (i) scene_line(p->s, turn, 2, ROLE_COMPUTE_LINE, 1.5);
        draw_entry(p, &e[i], p->grad, ey, h, i ? p->grad - 14 : x0);
    }
}

static void arrow(MirrorPen *p, double x, double y0, double y1, const char *pending, int to) {
    Pt pt[2] = {{x, y0}, {x, y1}};
    scene_arrow(p->s, pt, 2, ROLE_INK, 1.5, false, pending != NULL, to);
    if (pending) p->legend |= 1u << LEGEND_PARTIAL;
}

/* MirrorLabel in the gap [y, y + h] below row r; forward left of its line, backward right of it. */
static void draw_label(MirrorPen *p, const MirrorStrip *s, int r, bool back, double y, double h) {
    MirrorLabel l = mirror_label(p, s, r, back);
    Arena *a = p->c->arena;
    double x = back ? p->backward : p->forward, base = y + (h - p->look.line * (l.n - 1)) / 2 + 4.3;
    for (int i = 0; i < l.n; i++)
        scene_text(p->s, back ? x + MIRROR_LABEL : x - MIRROR_LABEL, base + p->look.line * i,
                   back ? ALIGN_LEFT : ALIGN_RIGHT, MIRROR_SIZE, REGULAR, ROLE_INK, l.line[i]);
    if (!l.pending) return;
    Role role = ROLE_AXIS_TEXT + theme_axis(words_color_axis(a, p->c->t, l.pending, l.pending));
    scene_text(p->s, back ? x - MIRROR_LABEL : x + MIRROR_LABEL, base, back ? ALIGN_RIGHT : ALIGN_LEFT, MIRROR_SIZE,
               SEMIBOLD, role, mirror_pending(p, &l));
}

static void draw_edge(MirrorPen *p, const MirrorStrip *s, int r, Side f[2], Side b[2], double y, double h) {
    MirrorLabel lf = mirror_label(p, s, r, false), lb = mirror_label(p, s, r, true);
    scene_begin(p->s, "edge", arena_printf(p->c->arena, "edge-%s-%d", s->from, r), NULL);
    arrow(p, p->forward, f[0].y1, f[1].y0, lf.pending, f[1].top);
    if (lb.n) arrow(p, p->backward, b[1].y0, b[0].y1, lb.pending, b[0].bottom);
    for (int back = 0; back < 2; back++) draw_label(p, s, r, back, y, h);
    scene_end(p->s);
}

static void draw_states(MirrorPen *p, const MirrorRow *r, double y, double pitch) {
    const TraceParam *w[MIRROR_FLOW];
    const char *name[MIRROR_FLOW];
    int n = mirror_states(p, r, w, name);
    scene_begin(p->s, "weight", "weight", NULL);
    for (int i = 0; i < n; i++) {
        double ly = y + pitch * (i - (n - 1) / 2.0) + 4.3;
        scene_text(p->s, p->col[0], ly, ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK, name[i]);
        for (int k = 1; k < 4; k++) {
            const char *text = mirror_state_words(p, w[i], k);
            if (!*text) continue;
            scene_text(p->s, p->col[k], ly, ALIGN_LEFT, MIRROR_SIZE, REGULAR, k == 3 ? ROLE_SECOND : ROLE_INK, text);
            if (k > 1) scene_text(p->s, p->col[k] - 6, ly, ALIGN_RIGHT, MIRROR_SIZE, REGULAR, ROLE_SECOND, "→");
        }
    }
    scene_end(p->s);
}

double mirror_height(const MirrorPen *p, const MirrorStrip *s) {
    double h = p->look.tap + p->look.plus;
    for (int r = 0; r < s->n; r++)
        h += mirror_row_height(p, &s->row[r]) + (r + 1 < s->n ? mirror_edge_height(p, s, r) : 0);
    return h;
}

double mirror_strip(MirrorPen *p, const MirrorStrip *s, double y) {
    Side f[2] = {{0}}, b[2] = {{0}}, top_f = {0}, top_b = {0};
    double dot = y, at = y + p->look.tap, gap = 0;
    for (int r = 0; r < s->n; r++) {
        const MirrorRow *row = &s->row[r];
        double h = mirror_row_height(p, row), mid = at + (row->kind == ROW_MOVE ? h : p->look.row) / 2;
        f[1] = draw_side(p, row, false, at);
        b[1] = draw_side(p, row, true, at);
        if (row->kind != ROW_OPS) join_pair(p, row, mid);
        draw_saved(p, row, false, mid, b[1].top);
        if (mirror_has_rest(row)) draw_saved(p, row, true, at + p->look.row + p->look.sub / 2, b[1].bottom);
        draw_grads(p, row, mid);
        if (p->weight >= 0 && p->look.weights) draw_states(p, row, mid, p->look.line + 1);
        if (r) draw_edge(p, s, r - 1, f, b, at - gap, gap);
        if (r == 0) top_f = f[1], top_b = b[1];
        f[0] = f[1], b[0] = b[1];
        gap = r + 1 < s->n ? mirror_edge_height(p, s, r) : 0;
        at += h + gap;
    }
    double plus = at + p->look.plus;
    scene_begin(p->s, "edge", arena_printf(p->c->arena, "ends-%s", s->to), NULL);
    Pt in[3] = {{p->stream, dot}, {p->forward, dot}, {p->forward, top_f.y0}};
    scene_arrow(p->s, in, 3, ROLE_INK, 1.5, false, false, top_f.top);
    Pt out[3] = {{p->backward, top_b.y0}, {p->backward, dot}, {p->back_stream - 10, dot}};
    if (s->up) scene_arrow(p->s, out, 3, ROLE_INK, 1.5, false, false, -1);
    MirrorLabel l = mirror_label(p, s, s->n - 1, false);
    Pt back[3] = {{p->forward, f[0].y1}, {p->forward, plus}, {p->stream + 10, plus}};
    scene_arrow(p->s, back, 3, ROLE_INK, 1.5, false, l.pending != NULL, -1);
    Pt down[3] = {{p->back_stream, plus}, {p->backward, plus}, {p->backward, b[0].y1}};
    scene_arrow(p->s, down, 3, ROLE_INK, 1.5, false, false, b[0].bottom);
    for (int k = 0; k < 2; k++) draw_label(p, s, s->n - 1, k, at, p->look.plus - 9);
    scene_end(p->s);
    return plus;
}

/* ---- streams and lists ---- */

static void plus_mark(MirrorPen *p, double x, double y, const char *tip) {
    scene_begin(p->s, "compute", "plus", tip);
    scene_frame(p->s, x - 10, y - 10, 20, 20);
    scene_circle(p->s, x, y, 9, ROLE_PAPER, ROLE_INK, 1.5);
    scene_segment(p->s, x - 5.4, y, x + 5.4, y, ROLE_INK, 1.5);
    scene_segment(p->s, x, y - 5.4, x, y + 5.4, ROLE_INK, 1.5);
    scene_end(p->s);
}

static int circle_mark(MirrorPen *p, double x, double y, const char *name, const char *tip) {
    scene_begin(p->s, "state", arena_printf(p->c->arena, "state-%s", name), tip);
    scene_frame(p->s, x - 13, y - 13, 26, 26);
    scene_circle(p->s, x, y, 13, ROLE_PAPER, ROLE_INK, 1.75);
    Run run = {name, SEMIBOLD, ROLE_INK, false, true};
    scene_runs(p->s, x, y + 4.5, ALIGN_MIDDLE, 13, &run, 1);
    int group = p->s->open;
    scene_end(p->s);
    return group;
}

static const char *end_name(const MirrorPen *p, int strip, bool back, bool bottom) {
    bool first = strip == 0, last = strip + 1 == p->m->n, mlp = same_text(p->m->strip[strip].strip->part, "mlp");
    const char *name = bottom                            ? (last && (p->m->n > 1 || mlp) ? "y" : "h")
                       : first && !(p->m->n == 1 && mlp) ? "x"
                                                         : "h";
    return back ? arena_printf(p->c->arena, "d%s", name) : name;
}

void mirror_streams(MirrorPen *p, int first, int n, const double *dot, double top, double bottom) {
    const MirrorStrip *head = &p->m->strip[first], *tail = &p->m->strip[first + n - 1];
    double x = p->stream, bx = p->back_stream;
    double up = head->up ? top + 13 : dot[0] + mirror_height(p, head);
    int target;
    circle_mark(p, x, top, end_name(p, first, false, false), head->from);
    target = circle_mark(p, x, bottom, end_name(p, first + n - 1, false, true), tail->to);
    scene_begin(p->s, "stream", "stream-forward", "residual stream");
    Pt down[2] = {{x, top + 13}, {x, bottom - 13}};
    scene_arrow(p->s, down, 2, ROLE_INK, 3, true, false, target);
    scene_end(p->s);
    target = head->up ? circle_mark(p, bx, top, end_name(p, first, true, false), mirror_grad(p->m->g, head->from)) : -1;
    circle_mark(p, bx, bottom, end_name(p, first + n - 1, true, true), mirror_grad(p->m->g, tail->to));
    scene_begin(p->s, "stream", "stream-backward", "gradient of the residual stream");
    Pt rise[2] = {{bx, bottom - 13}, {bx, up}};
    Mark *casing = scene_segment(p->s, bx, bottom - 14, bx, up + 14, ROLE_PAPER, 9);
    casing->ground = true;
    if (head->up)
        scene_arrow(p->s, rise, 2, ROLE_INK, 3, true, false, target);
    else
        scene_line(p->s, rise, 2, ROLE_INK, 3);
    scene_end(p->s);
    for (int i = 0; i < n; i++) {
        double plus = dot[i] + mirror_height(p, &p->m->strip[first + i]);
        scene_circle(p->s, x, dot[i], 4, ROLE_INK, ROLE_NONE, 0);
        plus_mark(p, x, plus, p->m->strip[first + i].to);
        if (p->m->strip[first + i].up) plus_mark(p, bx, dot[i], "sum of the gradients of both uses");
        scene_circle(p->s, bx, plus, 4, ROLE_INK, ROLE_NONE, 0);
    }
}

void mirror_heads(MirrorPen *p, double y) {
    bool grads = p->look.beside;
    scene_text(p->s, p->forward, y, ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK,
               p->look.narrow ? "forward ↓" : "forward, downwards");
    scene_text(p->s, p->backward, y, ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK,
               p->look.narrow ? "backward ↑" : "backward, upwards");
    scene_text(p->s, (p->forward + p->backward) / 2, y, ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND,
               p->look.narrow ? "saved" : "saved / conjugate");
    if (grads) scene_text(p->s, p->grad, y, ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK, "weight gradients");
    if (p->weight < 0 || !p->look.weights) return;
    scene_text(p->s, p->col[0], y, ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK, "weights");
    scene_text(p->s, p->col[1], y, ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK, "at rest");
    scene_text(p->s, p->col[2], y, ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK, "gathered");
    scene_text(p->s, p->col[3], y, ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK, "after");
}

double mirror_lists(MirrorPen *p, const MirrorStrip *s, double x, double y) {
    Arena *a = p->c->arena;
    scene_text(p->s, x, y + 12, ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK,
               arena_printf(a, "%s: weight gradients", s->strip->title));
    y += 40;
    for (int r = 0; r < s->n; r++) {
        MirrorEntry e[MIRROR_MAX];
        int n = mirror_entries(p, &s->row[r], e);
        for (int i = 0; i < n; i++, y += 36) draw_entry(p, &e[i], x, y, 28, 0);
    }
    if (p->weight < 0) return y;
    y += 10;
    scene_text(p->s, x, y - 4, ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK,
               arena_printf(a, "%s: weights at rest → gathered → after use", s->strip->title));
    y += 16;
    for (int r = 0; r < s->n; r++) {
        const TraceParam *w[MIRROR_FLOW];
        const char *name[MIRROR_FLOW];
        int n = mirror_states(p, &s->row[r], w, name);
        if (n) draw_states(p, &s->row[r], y + 8.5 * (n - 1), 17);
        y += 17 * n;
    }
    return y + 16;
}
