/* Drawing an overview: the stream, its units and what stands on their ways. See overview_pen.h. */
#include "render/furniture/hexagon.h"
#include "render/overview/overview_pen.h"
#include <math.h>

/* ---- drawing ---- */

static void draw_total(OverviewPen *p, const OverviewItem *t, SendKind k, double x, double y) {
    Arena *a = p->o.c->arena;
    scene_begin(p->s, "sent", "sent",
                arena_printf(a, "over %s: %s leave%s the rank%s%s", t->c->axis,
                             words_sent(a, &t->sum, NULL), t->sum.count ? "" : "s",
                             p->o.all ? ", " : "", p->o.all ? overview_kind(&p->o, k) : ""));
    double w = draw_pill(p->s, x, y, words_axis_list(a, p->o.c->t, t->c->axis),
                         words_color_axis(a, p->o.c->t, t->c->axis, t->c->axes));
    scene_text(p->s, x + w + overview_line_gap(p), y + 4.4,
               (TextLook){ALIGN_LEFT, overview_line_size(p), REGULAR, ROLE_INK},
               overview_total(p, t));
    scene_end(p->s);
}

/* In columns right of x: the lines of a kind one under the other, or behind one another. */
static void draw_totals(OverviewPen *p, const OverviewUnit *u, double x, double mid) {
    for (int k = 0; k < SEND_KINDS; k++) {
        double along = 0;
        if (k == (int)p->o.flow) continue;
        OverviewItem *line;
        int n = overview_lines(p, u, (SendKind)k, &line);
        for (int j = 0; j < n; j++) {
            double y = p->flat ? mid : mid + LINE * (j - (n - 1) / 2.0);
            draw_total(p, &line[j], (SendKind)k, x + p->col[k] + along, y);
            if (p->flat) along += SIDE + overview_line_width(p, &line[j]);
        }
    }
}
/* Under the unit, what they are for before the first of each. */
static void draw_below(OverviewPen *p, const OverviewUnit *u, double x, double y) {
    y += LINE / 2.0 + 4;
    for (int k = 0; k < SEND_KINDS; k++) {
        if (k == (int)p->o.flow || !u->n_total[k]) continue;
        double along =
            x + 8 +
            scene_textf(p->s, x, y + 4.4, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, "%s",
                        overview_kind(&p->o, (SendKind)k));
        OverviewItem *line;
        int n = overview_lines(p, u, (SendKind)k, &line);
        for (int j = 0; j < n; j++) {
            draw_total(p, &line[j], (SendKind)k, along, y);
            y += LINE;
        }
    }
}

static const char *item_tip(OverviewPen *p, const OverviewItem *i) {
    Str s = str_new(p->o.c->arena);
    str_addf(&s, "step %d: %s over %s", i->step, words_coll_done(p->o.c->arena, i->c), i->c->axis);
    tip_add(&s, "of", i->c->value);
    int64_t count = i->sum.count + i->sum.received;
    if (count > 1) tip_add(&s, "how often", arena_printf(p->o.c->arena, "%lld", (long long)count));
    tip_add(&s, "sends", bytes_text(i->sum.bytes, p->o.c->arena));
    tip_add(&s, "why", i->c->why);
    tip_inferred(&s, i->c);
    return s.s;
}
/* What stands on a way, its left border at x, centred on y; returns its group. */
static int draw_item(OverviewPen *p, const OverviewItem *i, double x, double y) {
    Arena *a = p->o.c->arena;
    Scene *s = p->s;
    double w = overview_item_width(p, i);
    if (!i->c) {
        const char *word = part_term_word(i->part);
        int norm = scene_begin(s, "compute", arena_printf(a, "%s-%d", word, i->step),
                               part_term(i->part)->whole);
        scene_frame(s, x, y - p->hex / 2, w, p->hex);
        scene_rect(s, (Area){x, y - p->hex / 2, w, p->hex}, 3,
                   (Look){ROLE_COMPUTE, ROLE_COMPUTE_LINE, 1.25});
        scene_text(s, x + w / 2, y + 4.2, (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_COMPUTE_NOTE},
                   word);
        scene_end(s);
        return norm;
    }
    int group = scene_begin(s, "collective", arena_printf(a, "step-%d", i->step), item_tip(p, i));
    scene_frame(s, x, y - p->hex / 2, w, p->hex);
    double pill = draw_pill(s, x, y, words_axis_list(a, p->o.c->t, i->c->axis),
                            words_color_axis(a, p->o.c->t, i->c->axis, i->c->axes)) +
                  4;
    Hexagon h = hexagon_of(i->c, x + pill, y - p->hex / 2, w - pill, p->hex);
    h.wrong = wrong_number(p->o.wrong, i->step) > 0;
    h.line[0] = (HexagonLine){overview_item(p, i), y + 4.2, 12, MEDIUM};
    hexagon_draw(s, &h, &p->legend);
    scene_end(s);
    return group;
}

/* Flags in the corner of a box, one for each mistake, and what one takes. */
enum { FLAGS = 3, FLAG = 17 };
static int flags_of(const OverviewUnit *u) { return u->n_wrong < FLAGS ? u->n_wrong : FLAGS; }
/* The text of a box: what it is, what it holds, and the collectives among its ops. */
static void draw_inside(OverviewPen *p, const OverviewUnit *u, double x, double y, double h) {
    Arena *a = p->o.c->arena;
    Scene *s = p->s;
    const OverviewWay *w = &u->way[WAY_INSIDE];
    const bool one = p->one_line; /* title and weights in one line */
    const double above = w->n ? fmax(0, (h - 26 - w->n * (p->hex + 4)) / 2) : 0; /* free there */
    double base = w->n ? y + above + 18 : one ? y + h / 2 + 4.5 : y + h / 2 - 3;
    double tw =
        scene_text(s, x + 12, base, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK}, u->title);
    TextLook note = {ALIGN_LEFT, 12, REGULAR, ROLE_COMPUTE_NOTE};
    double at = x + 12 + tw + 9,
           room = x + p->width - (one && u->n_wrong ? 12 + FLAG * flags_of(u) : 8);
    if (one)
        scene_text(s, at, base, note, scene_fit(s, overview_note(p, u), room - at, 12, REGULAR));
    else
        scene_text(s, x + 12, base + 17, note,
                   scene_fit(s, overview_weights(a, u), room - x - 12, 12, REGULAR));
    for (int i = 0; i < w->n; i++)
        draw_item(p, &w->item[i], x + 12, y + above + 26 + (p->hex + 4) * i + p->hex / 2);
}

static int draw_box(OverviewPen *p, const OverviewUnit *u, double x, double y) {
    Arena *a = p->o.c->arena;
    Scene *s = p->s;
    double h = overview_box(p, u);
    Str tip = str_new(a);
    str_addf(&tip, "%s: %s, %sFLOP", u->title, overview_ops(a, u), count_text(u->flops, a));
    if (u->weights > 0) tip_add(&tip, "weights of the rank", bytes_text(u->weights, a));
    if (u->out) tip_add(&tip, "makes", u->out->shape.name);
    int group = scene_begin(s, "compute", arena_printf(a, "part-%s-%d", u->title, u->layer), tip.s);
    scene_frame(s, x, y, p->width, h);
    Mark *m =
        scene_rect(s, (Area){x, y, p->width, h}, 3, (Look){ROLE_COMPUTE, ROLE_COMPUTE_LINE, 1.25});
    if (u->n_wrong) wrong_border(m, &p->legend);
    draw_inside(p, u, x, y, h);
    for (int i = 0; i < flags_of(u); i++)
        wrong_flag(s, p->o.wrong, u->wrong[i], x + p->width - FLAG * (flags_of(u) - i), y + 12);
    scene_end(s);
    return group;
}

static void edge_begin(OverviewPen *p, const char *id) {
    scene_begin(p->s, "edge", arena_printf(p->o.c->arena, "way-%s", id), id);
}
/* Arrows along a way from the stream at x to the box or back; the first of a way in may come down
 * the stream from y0. */
static void draw_way(OverviewPen *p, const OverviewUnit *u, WayPlace where, double y, int box_group,
                     double y0) {
    const OverviewWay *w = &u->way[where];
    const ArrowLook look = {ROLE_INK, 1.5, false, false};
    bool out = where == WAY_OUT;
    double stream = p->stream, at = p->box_x; /* from the box to the stream, against the way in */
    int right = box_group;
    for (int k = 0; k < w->n; k++) {
        const OverviewItem *i = &w->item[out ? k : w->n - 1 - k];
        if (!overview_shown(p, i)) continue;
        double width = overview_item_width(p, i), x = at - JOIN - width;
        int group = draw_item(p, i, x, y);
        Pt to[2] = {{x + width, y}, {at, y}}, back[2] = {{at, y}, {x + width, y}};
        edge_begin(p, u->title);
        scene_arrow(p->s, out ? back : to, 2, look, out ? group : right);
        scene_end(p->s);
        at = x, right = group;
    }
    edge_begin(p, u->title);
    if (out) {
        Pt pt[3] = {{at, y}, {stream + (u->residual ? 10 : 0), y}, {stream, y0}};
        if (u->residual) scene_arrow(p->s, pt, 2, look, p->plus);
        else scene_line(p->s, pt, 3, ROLE_INK, 1.5)->bend = 6;
    } else {
        Pt pt[3] = {{stream, y0}, {stream, y}, {at, y}};
        scene_arrow(p->s, u->residual ? pt + 1 : pt, u->residual ? 2 : 3, look, right);
        if (u->residual) scene_circle(p->s, stream, y, 3.5, (Look){ROLE_INK, ROLE_NONE, 0});
    }
    scene_end(p->s);
}

static int draw_plus(OverviewPen *p, double x, double y) {
    int group = scene_begin(p->s, "compute", "plus", "adds what the part makes to the stream");
    scene_frame(p->s, x - 10, y - 10, 20, 20);
    scene_circle(p->s, x, y, 9, (Look){ROLE_PAPER, ROLE_INK, 1.5});
    scene_segment(p->s, (Pt){x - 5.4, y}, (Pt){x + 5.4, y}, ROLE_INK, 1.5);
    scene_segment(p->s, (Pt){x, y - 5.4}, (Pt){x, y + 5.4}, ROLE_INK, 1.5);
    scene_end(p->s);
    return group;
}

/* The layout that the stream has between y0 and y1. */
static void draw_label(OverviewPen *p, const TraceValue *v, double x, double y0, double y1) {
    double size = fmax(11.5, p->s->min_size), base = (y0 + y1) / 2 + 4.4;
    scene_begin(p->s, "edge", arena_printf(p->o.c->arena, "value-%s", v->shape.name),
                v->shape.name);
    double w = scene_text(p->s, x + 14, base, (TextLook){ALIGN_LEFT, 12.5, MEDIUM, ROLE_INK},
                          overview_symbols(p, v));
    scene_text(p->s, x + 14 + w + 12, base, (TextLook){ALIGN_LEFT, size, REGULAR, ROLE_SECOND},
               overview_numbers(p, v));
    scene_end(p->s);
}
/* A bracket at the left of layers that are folded: how many, and which. */
static void draw_bracket(OverviewPen *p, const OverviewUnit *u, double x, double y0, double y1) {
    const Pt pt[4] = {{x + 8, y0}, {x, y0}, {x, y1}, {x + 8, y1}};
    const double mid = (y0 + y1) / 2;
    Arena *a = p->o.c->arena;
    const int last = u->layer + u->layers - 1;
    scene_at(p->s, 0);
    scene_begin(p->s, "layers", arena_printf(a, "layers-%d", u->layer),
                u->layers == 1 ? arena_printf(a, "layer %d", u->layer)
                               : arena_printf(a, "layers %d to %d do the same: one of %d is drawn",
                                              u->layer, last, u->layers));
    scene_line(p->s, pt, 4, ROLE_FAINT, 1.25);
    if (u->layers == 1)
        scene_textf(p->s, x - 8, mid + 5, (TextLook){ALIGN_RIGHT, 13, SEMIBOLD, ROLE_INK},
                    "layer %d", u->layer);
    else {
        scene_textf(p->s, x - 8, mid - 2, (TextLook){ALIGN_RIGHT, 15, BOLD, ROLE_INK}, "× %d",
                    u->layers);
        scene_text(p->s, x - 8, mid + 15, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND},
                   overview_bracket(p, u));
    }
    scene_end(p->s);
}

/* The edge of a box that stands apart: the optimizer reads gradients and makes weights, no value
 * of the pass flows through it. */
static void draw_apart(OverviewPen *p, const OverviewUnit *u, const char *words, Span y, double x,
                       int to) {
    Pt pt[2] = {{x, y.from}, {x, y.to}};
    if (u->pass != PHASE_OPTIMIZER) return;
    scene_begin(p->s, "edge", words, words);
    scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, to);
    scene_text(p->s, x + 14, (y.from + y.to) / 2 + 3,
               (TextLook){ALIGN_LEFT, 12.5, MEDIUM, ROLE_INK}, words);
    scene_end(p->s);
}

/* The hexagon of messages with other stages, in which a stream begins or ends. */
static void draw_message(OverviewPen *p, const OverviewUnit *u, double stream, double y,
                         double y0) {
    Arena *a = p->o.c->arena;
    const OverviewItem *i = u->way[WAY_INSIDE].n ? u->way[WAY_INSIDE].item : NULL;
    double x = stream + JOIN, h = overview_box(p, u), mid = y + h / 2, pill = 0;
    double w = overview_message_width(p, u);
    int group = scene_begin(p->s, "collective", arena_printf(a, "message-%d", u->beside),
                            i ? item_tip(p, i) : u->title);
    if (i)
        pill = draw_pill(p->s, x, mid, words_axis_list(a, p->o.c->t, i->c->axis),
                         words_color_axis(a, p->o.c->t, i->c->axis, i->c->axes)) +
               4;
    scene_frame(p->s, x, y, w, h);
    Hexagon hex = {.x = x + pill, .y = y, .w = w - pill, .h = h};
    hex.line[0] = (HexagonLine){overview_message(p, u), mid + 4.2, 12, MEDIUM};
    hex.wrong = u->n_wrong > 0;
    hex.message = true;
    hexagon_draw(p->s, &hex, &p->legend);
    if (u->n_wrong) wrong_flag(p->s, p->o.wrong, u->wrong[0], x + pill, y - 2);
    scene_end(p->s);
    edge_begin(p, u->title);
    if (u->message == MESSAGE_TO) {
        Pt pt[3] = {{stream, y0}, {stream, mid}, {x, mid}};
        scene_arrow(p->s, pt, 3, (ArrowLook){ROLE_INK, 1.5, false, false}, group);
    } else {
        Pt pt[3] = {{x, mid}, {stream, mid}, {stream, y + h}};
        scene_line(p->s, pt, 3, ROLE_INK, 1.5)->bend = 6;
    }
    scene_end(p->s);
}

/* A unit with its ways, its box's top at y; the stream is at y0. Returns where it leaves. */
static double draw_unit(OverviewPen *p, const OverviewUnit *u, double y, double y0) {
    double stream = p->stream, in = y + overview_lane(p, u, false),
           out = y + overview_lane(p, u, true);
    double right = p->box_x + p->width;
    if (u->message) {
        draw_message(p, u, stream, y, y0);
        out = y + overview_box(p, u);
    } else {
        int box = draw_box(p, u, p->box_x, y);
        if (u->apart)
            draw_apart(p, u, "gradients of the weights", (Span){y - p->gap, y}, p->box_x + 40, box);
        else {
            if (u->residual) {
                edge_begin(p, "stream");
                scene_segment(p->s, (Pt){stream, y0}, (Pt){stream, out - 9}, ROLE_INK, 3);
                scene_end(p->s);
                p->plus = draw_plus(p, stream, out);
            }
            draw_way(p, u, WAY_IN, in, box, y0);
            draw_way(p, u, WAY_OUT, out, box, y + overview_box(p, u));
            if (u->residual) out += 9;
            else out = y + overview_box(p, u);
        }
    }
    if (p->stacked) draw_below(p, u, stream + 18, y + overview_box(p, u));
    else draw_totals(p, u, right, y + overview_box(p, u) / 2);
    return out;
}

/* What the columns are: over the boxes what flows through them. */
static void draw_heads(OverviewPen *p, double y) {
    const TextLook look = {ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK};
    scene_text(p->s, p->box_x, y + 4, look, overview_head(p, p->o.flow));
    for (int k = 0; k < SEND_KINDS; k++)
        if (k != (int)p->o.flow && overview_sends(&p->o, (SendKind)k) &&
            !overview_apart_only(&p->o, (SendKind)k))
            scene_text(p->s, p->box_x + p->width + p->col[k], y + 4, look,
                       overview_head(p, (SendKind)k));
}

/* The stream's end at an open arrow, under unit i - 1; returns the y behind it. */
static double draw_end(OverviewPen *p, int i, double y, double y0) {
    const OverviewUnit *last = &p->o.unit[i - 1];
    Pt pt[2] = {{p->stream, y0}, {p->stream, y + p->gap}};
    edge_begin(p, "end");
    scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, -1);
    scene_end(p->s);
    if (last->out) draw_label(p, last->out, p->stream, y, y + p->gap);
    return y + p->gap;
}

double overview_draw(OverviewPen *p, double y) {
    double open_y = 0, at = y; /* where the stream is */
    if (p->heads) draw_heads(p, y), y += HEADS, at = y;
    for (int i = 0; i < p->o.n; i++) {
        const OverviewUnit *u = &p->o.unit[i];
        double gap = overview_gap(p, i);
        const TraceValue *v = overview_enters(&p->o, i);
        scene_at(p->s, i + 1);
        if (overview_end(p, i) > 0) y = draw_end(p, i, y, at);
        if (overview_breaks(&p->o, i)) at = y;
        if (u->open) open_y = y + gap - 4;
        if (!u->apart && overview_labelled(p, i, v, i ? overview_enters(&p->o, i - 1) : NULL, true))
            draw_label(p, v, p->stream, y, y + gap);
        at = draw_unit(p, u, y + gap, at);
        const TraceValue *next = i + 1 < p->o.n ? overview_enters(&p->o, i + 1) : NULL;
        if (p->bare && !p->heads && overview_labelled(p, i + 1, next, v, false))
            draw_label(p, next, p->box_x + p->width, y + gap, y + gap + overview_box(p, u));
        y += gap + overview_height(p, u);
        if (u->close && u->layers > 0) draw_bracket(p, u, p->stream - 18, open_y, y + 4);
    }
    const OverviewUnit *last = &p->o.unit[p->o.n - 1];
    if (last->apart) {
        draw_apart(p, last, "weights for the next step", (Span){y, y + p->gap}, p->box_x + 40, -1);
        y += overview_tail(p);
    } else if (overview_tail(p) > 0) y = draw_end(p, p->o.n, y, at);
    scene_at(p->s, 0);
    return y + 6;
}
