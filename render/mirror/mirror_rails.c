/* Rails of "backward beside forward": a value that rows further on read runs round those between.
 * Where a chain stands in rows of its own beside others (a shared expert), lines lead past these
 * from the row that makes what it reads, and from the last of the others to the row that takes both
 * up; mirrored in backward. */
#include "render/mirror/mirror_draw.h"
#include "base/text.h"
#include <math.h>
#include <string.h>

enum { PLUS = 6, OUTER = 16, INNER = MIRROR_RAILS + 2, HEAD_AND_DOT = 12 };

/* The row that takes up what the chain from row `from` on makes; -1: it is on another page. */
static int join_of(const MirrorStrip *s, int from) {
    for (int r = from; r < s->n; r++)
        if (!s->row[r].beside) return r;
    return -1;
}

/* One of the two lines of one pass. */
typedef struct {
    Pt pt[5];
    int n, to;
    bool partial;
    int step;        /* of a figure that builds up */
    const char *tip; /* the value */
} Rail;

static void draw_rail(MirrorPen *p, const Rail *r) {
    scene_at(p->s, r->step);
    scene_begin(p->s, "edge", "rail", r->tip);
    for (int i = 1; i + 1 < r->n; i++) { /* it runs over what it crosses */
        const Pt a = r->pt[i], b = r->pt[i + 1];
        if (fabs(b.y - a.y) <= 2 * MIRROR_BREAK || i + 2 >= r->n) continue;
        const double way = b.y > a.y ? 4 : -4;
        Mark *m = scene_segment(p->s, (Pt){a.x, a.y + way}, (Pt){b.x, b.y - way}, ROLE_PAPER, 7);
        m->ground = true;
    }
    scene_arrow(p->s, r->pt, r->n, (ArrowLook){ROLE_INK, 1.5, false, r->partial}, r->to);
    scene_end(p->s);
    scene_at(p->s, 0);
}

static bool pending(const MirrorPen *p, const MirrorStrip *s, int r, bool back) {
    return mirror_label(p, s, r, back).pending != NULL;
}

/* The gradient of what the chain reads is added to those of other uses. */
static void plus(MirrorPen *p, double x, double y, const char *tip) {
    scene_begin(p->s, "compute", "plus", tip);
    scene_frame(p->s, x - PLUS - 1, y - PLUS - 1, 2 * PLUS + 2, 2 * PLUS + 2);
    scene_circle(p->s, x, y, PLUS, (Look){ROLE_PAPER, ROLE_INK, 1.5});
    scene_segment(p->s, (Pt){x - 3.6, y}, (Pt){x + 3.6, y}, ROLE_INK, 1.5);
    scene_segment(p->s, (Pt){x, y - 3.6}, (Pt){x, y + 3.6}, ROLE_INK, 1.5);
    scene_end(p->s);
}

/* What the chain reads, from the gap under the row that makes it to the pill; upwards its gradient,
 * to a sum there. */
static void draw_read(MirrorPen *p, const MirrorStrip *s, const MirrorPlace *at, int from) {
    const int maker = mirror_maker(p->m, s, from);
    const char *value = s->row[from].out[0], *grad = mirror_grad(p->m->g, value);
    if (maker < 0) return;
    const double y = at[maker + 1].f.y0 - p->look.fork / 2 - 3,
                 end = at[from].y + MIRROR_PILL / 2.0,
                 half = mirror_pill_width(p, value, false) / 2, x = p->stream + OUTER;
    scene_at(p->s, mirror_row_step(&s->row[maker], false));
    scene_begin(p->s, "edge", "dot", "read here, and carried on");
    scene_circle(p->s, p->forward, y, 2.6, (Look){ROLE_INK, ROLE_NONE, 0});
    scene_end(p->s);
    Rail down = {{{p->forward, y}, {x, y}, {x, end}, {p->forward - half, end}},
                 4,
                 at[from].f.top,
                 false,
                 mirror_row_step(&s->row[maker], false),
                 value};
    draw_rail(p, &down);
    if (at[from].b.top < 0 || at[maker].b.top < 0) return;
    const double out = mirror_pill_width(p, value, true) / 2, bx = p->back_stream - OUTER,
                 by = at[maker + 1].b.y0 - p->look.fork / 2 - 3;
    Rail up = {{{p->backward + out, end}, {bx, end}, {bx, by}, {p->backward + PLUS + 1, by}},
               4,
               -1,
               false,
               mirror_row_step(&s->row[from + 1], true),
               grad};
    plus(p, p->backward, by, grad);
    up.to = p->s->n_groups - 1;
    draw_rail(p, &up);
}

/* What the rows above the chain leave, to the row that takes it up; upwards its gradient. */
static void draw_past(MirrorPen *p, const MirrorStrip *s, const MirrorPlace *at, int from) {
    const int join = join_of(s, from), last = from - 1;
    const double y = at[from].y - MIRROR_BREAK / 2.0 - 2, x = p->stream + INNER,
                 bx = p->back_stream - INNER;
    const MirrorSide *f = &at[last].f, *b = &at[last].b;
    const char *value = s->row[last].n_out ? s->row[last].out[0] : "";
    const bool back = b->top >= 0;
    if (join < 0) { /* on another page */
        Rail down = {{{p->forward, f->y1}, {p->forward, y}}, 2,    -1, pending(p, s, last, false),
                     mirror_row_step(&s->row[last], false),  value};
        Rail up = {{{p->backward, y}, {p->backward, b->y1}},
                   2,
                   b->bottom,
                   pending(p, s, last, true),
                   mirror_row_step(&s->row[last], true),
                   mirror_grad(p->m->g, value)};
        draw_rail(p, &down);
        if (back) draw_rail(p, &up);
        return;
    }
    const double mid = at[join].y + p->look.row / 2;
    Rail down = {
        {{p->forward, f->y1}, {p->forward, y}, {x, y}, {x, mid}, {p->forward - p->box / 2, mid}},
        5,
        at[join].f.top,
        pending(p, s, last, false),
        mirror_row_step(&s->row[last], false),
        value};
    Rail up = {{{p->backward + p->box / 2, mid},
                {bx, mid},
                {bx, y},
                {p->backward, y},
                {p->backward, b->y1}},
               5,
               b->bottom,
               pending(p, s, last, true),
               mirror_row_step(&s->row[join], true),
               mirror_grad(p->m->g, value)};
    draw_rail(p, &down);
    if (back && at[join].b.top >= 0) draw_rail(p, &up);
}

/* ---- what passes rows (mirror_past.c) ---- */

static void arrow(MirrorPen *p, const Pt *pt, int n, bool partial, int to) {
    scene_arrow(p->s, pt, n, (ArrowLook){ROLE_INK, 1.5, false, partial}, to);
    if (partial) p->legend |= 1u << LEGEND_PARTIAL;
}

/* One pass of a strip. */
typedef struct {
    const MirrorStrip *s;
    const MirrorPlace *at;
    bool back;
} Side;

static double lane_x(const MirrorPen *p, const Side *d, int lane) {
    const double in = p->lane + MIRROR_LANE * (d->s->lanes[d->back] - 1 - lane);
    return d->back ? p->back_stream - in : p->stream + in;
}
static double centre(const MirrorPen *p, const Side *d) {
    return d->back ? p->backward : p->forward;
}

/* In the gap where the line leaves that of what row r makes: behind what the label tells, so
 * forward above the row below, backward under the row above; the head of an arrow stands clear of
 * its dot. */
static double fork_y(const MirrorPen *p, const Side *d, int r) {
    const double gap = fmax(p->look.fork / 2 + 3, HEAD_AND_DOT);
    if (!d->back) return d->at[r + 1].y - gap - (mirror_breaks(d->s, r) ? MIRROR_BREAK : 0);
    const MirrorPlace *above = &d->at[r - 1];
    return (above->b.top < 0 ? above->f.y1 : above->b.y1) + gap;
}
/* The end at the row that reads it: beside its box (of two backward the lower), and the box. */
typedef struct {
    double y, x;
    int to;
    bool named;
} Entry;
static Entry entry(const MirrorPen *p, const Side *d, int r) {
    const MirrorRow *row = &d->s->row[r];
    const double y = d->at[r].y, h = mirror_row_height(p, d->s, row);
    const TraceValue *v[MIRROR_FLOW];
    if (d->at[r].folded) /* the band, for whatever it is */
        return (Entry){y + p->look.row / 2, centre(p, d) + p->box / (d->back ? 2 : -2),
                       d->at[r].f.top, false};
    const bool low = d->back && mirror_has_rest(row) && *mirror_words(p, row, true, true),
               hex = row->kind == ROW_OPS || (d->back ? row->n_conj : row->n_coll) > 0;
    const double thin =
        fmax(80, mirror_text_width(p, mirror_words(p, row, d->back, false), REGULAR) + 20);
    const MirrorSide *side = d->back ? &d->at[r].b : &d->at[r].f;
    Entry e = {y + (row->kind == ROW_MOVE ? h : p->look.row) / 2,
               centre(p, d) + (hex ? p->box : thin) / (d->back ? 2 : -2),
               low ? side->bottom : side->top, true};
    int n = d->back ? 0 : mirror_sides(p->m, d->s, r, v, MIRROR_FLOW);
    if (n && mirror_sides_named(p, d->s, r)) n = 1; /* one arrow */
    if (low) e.y = y + p->look.row + p->look.sub / 2;
    if (n) e.y = y + h * (n + 0.5) / (n + 1); /* under what comes from outside */
    if (d->back && !low && row->kind == ROW_OPS && mirror_leaves(p, d->s, r)) e.y = y + h - 9;
    if (d->back && !low && row->n_grad && p->look.beside) /* the line of the gradients */
        e.y += mirror_leaves(p, d->s, r) ? 0 : p->look.row * 0.28, e.named = false;
    return e;
}
static double end_y(const MirrorPen *p, const Side *d, const MirrorRead *q) {
    return q->sum ? d->at[q->to].y - p->look.fork / 2 - 3 : entry(p, d, q->to).y;
}
static bool first_of(const Side *d, int i, bool to) {
    const MirrorRead *q = d->s->past[d->back];
    for (int k = 0; k < i; k++)
        if (to ? q[k].to == q[i].to && q[k].sum == q[i].sum : q[k].from == q[i].from) return false;
    return true;
}

/* The line away from what a row makes, into its lane. */
static void leave(MirrorPen *p, const Side *d, const MirrorRead *q) {
    const double y = fork_y(p, d, q->from), x = centre(p, d);
    int next = q->from + (d->back ? -1 : 1);
    while (d->back && next >= 0 && !d->s->row[next].acts) next--;
    const bool stub = q->from >= 0 && next >= 0 && d->s->row[next].fed[d->back] == FED_NOT;
    const double made = !stub ? y : d->back ? d->at[q->from].b.y0 : d->at[q->from].f.y1;
    Pt pt[3] = {{x, made}, {x, y}, {lane_x(p, d, q->lane), y}};
    if (stub) scene_line(p->s, pt, 3, ROLE_INK, 1.5);
    else scene_circle(p->s, x, y, 2.6, (Look){ROLE_INK, ROLE_NONE, 0});
    if (!stub) scene_line(p->s, pt + 1, 2, ROLE_INK, 1.5);
}
/* The line from its lane to the row that reads it, its names in it; or to the sum above that. */
static void arrive(MirrorPen *p, const Side *d, int i) {
    const MirrorRead *q = &d->s->past[d->back][i];
    const double way = d->back ? -1 : 1, y = end_y(p, d, q);
    bool partial = false, max;
    double x = lane_x(p, d, q->lane);
    for (int k = 0; k < d->s->n_past[d->back];
         k++) { /* from the outermost of those that end here */
        const MirrorRead *o = &d->s->past[d->back][k];
        if (o->to != q->to || o->sum != q->sum) continue;
        partial |= words_pending(&o->v->shape, &max) != NULL;
        if (way * (lane_x(p, d, o->lane) - x) < 0) x = lane_x(p, d, o->lane);
    }
    if (q->sum) {
        const double cx = centre(p, d);
        const bool there = mirror_forks(p->m, d->s, q->to - 1); /* that of a chain */
        if (!there) plus(p, cx, y, q->v->shape.name);
        const int to = there ? -1 : p->s->n_groups - 1;
        Pt pt[2] = {{x, y}, {cx + PLUS + 1, y}};
        arrow(p, pt, 2, partial, to);
        return;
    }
    const Entry e = entry(p, d, q->to);
    const char *names = mirror_past_words(p, d->s, q->to, d->back);
    const double w = mirror_text_width(p, names, REGULAR) / 2, mid = e.x - way * (w + 17);
    Pt pt[2] = {{x, y}, {e.x, y}};
    if (e.named) {
        const Pt cut[2] = {{x, y}, {mid - way * (w + 4), y}};
        scene_line(p->s, cut, 2, ROLE_INK, 1.5);
        scene_text(p->s, mid, y + 4.3, (TextLook){ALIGN_MIDDLE, MIRROR_SIZE, REGULAR, ROLE_INK},
                   names);
        pt[0].x = mid + way * (w + 4);
    }
    arrow(p, pt, 2, partial, e.to);
}
/* The line down or up a lane: over what crosses it, but for its own. */
static void run_lane(MirrorPen *p, const Side *d, const MirrorRead *q) {
    const double x = lane_x(p, d, q->lane), way = d->back ? -1 : 1;
    double y = fork_y(p, d, q->from), end = y;
    for (;;) {
        bool more = false;
        double next = 0;
        for (int k = 0; k < d->s->n_past[d->back]; k++) { /* the next end */
            const MirrorRead *o = &d->s->past[d->back][k];
            const double oy = end_y(p, d, o);
            if (o->from != q->from || way * (oy - y) <= 0 || (more && way * (oy - next) >= 0))
                continue;
            next = oy, more = true;
        }
        if (!more) break;
        if (fabs(next - y) > 10) {
            Mark *m =
                scene_segment(p->s, (Pt){x, y + 4 * way}, (Pt){x, next - 4 * way}, ROLE_PAPER, 6);
            m->ground = true;
        }
        end = y = next;
    }
    scene_segment(p->s, (Pt){x, fork_y(p, d, q->from)}, (Pt){x, end}, ROLE_INK, 1.5);
}

/* What is added above a row and has no line: a short arrow to the sum, at the left where a line
 * comes to it from the right. */
static void come_to_sum(MirrorPen *p, const Side *d, int r) {
    const char *names = d->back ? mirror_term_words(p, d->s, r) : "";
    const double x = p->backward, y = d->at[r].y - p->look.fork / 2 - 3;
    bool there = mirror_forks(p->m, d->s, r - 1);
    for (int i = 0; i < d->s->n_past[1]; i++)
        there |= d->s->past[1][i].to == r && d->s->past[1][i].sum;
    const double way = there ? -1 : 1;
    if (!*names || d->at[r].b.top < 0) return;
    scene_at(p->s, mirror_row_step(&d->s->row[r], true));
    scene_begin(p->s, "edge", "passing", names);
    if (!there) plus(p, x, y, names);
    Pt pt[2] = {{x + (PLUS + 23) * way, y}, {x + (PLUS + 1) * way, y}};
    arrow(p, pt, 2, false, there ? -1 : p->s->n_groups - 1);
    scene_text(p->s, x + (PLUS + 28) * way, y + 4.3,
               (TextLook){there ? ALIGN_RIGHT : ALIGN_LEFT, MIRROR_SIZE, SEMIBOLD, ROLE_INK},
               names);
    scene_end(p->s);
}
/* What comes to a row and has no line: a short arrow. */
static void come_in(MirrorPen *p, const Side *d, int r) {
    for (int i = 0; i < d->s->n_past[d->back]; i++) {
        const MirrorRead *q = &d->s->past[d->back][i];
        if (q->to == r && !q->sum) return; /* its line has the name */
    }
    const Entry e = entry(p, d, r);
    const double way = d->back ? 1 : -1;
    const char *names = mirror_past_words(p, d->s, r, d->back);
    Pt pt[2] = {{e.x + 22 * way, e.y}, {e.x, e.y}};
    scene_at(p->s, mirror_row_step(&d->s->row[r], d->back));
    scene_begin(p->s, "edge", "passing", names);
    arrow(p, pt, 2, false, e.to);
    scene_text(p->s, e.x + 27 * way, e.y + 4.3,
               (TextLook){d->back ? ALIGN_LEFT : ALIGN_RIGHT, MIRROR_SIZE, SEMIBOLD, ROLE_INK},
               names);
    scene_end(p->s);
}
/* To another page, where no line leads on. */
static void go_out(MirrorPen *p, const Side *d, int r) {
    const double y = fork_y(p, d, r), x = centre(p, d), way = d->back ? 1 : -1;
    const MirrorSide *side = d->back ? &d->at[r].b : &d->at[r].f;
    const char *names = mirror_out_words(p, d->s, r, d->back);
    Pt pt[3] = {{x, d->back ? side->y0 : side->y1}, {x, y}, {x + 40 * way, y}};
    scene_at(p->s, mirror_row_step(&d->s->row[r], d->back));
    scene_begin(p->s, "edge", "passing", names);
    arrow(p, pt, 3, false, -1);
    scene_text(p->s, x + 45 * way, y + 4.3,
               (TextLook){d->back ? ALIGN_LEFT : ALIGN_RIGHT, MIRROR_SIZE, SEMIBOLD, ROLE_INK},
               names);
    scene_end(p->s);
}

/* A line for each row that makes any, with a branch to each that reads of it. */
static void draw_passing(MirrorPen *p, const MirrorStrip *s, const MirrorPlace *at, bool back) {
    const Side d = {s, at, back};
    const MirrorRead *q = s->past[back];
    for (int part = 0; part < 3; part++)
        for (int i = 0; i < s->n_past[back]; i++) {
            if (!first_of(&d, i, part == 1)) continue;
            const int row = part == 1 ? q[i].to : q[i].from;
            scene_at(p->s, row < 0 ? 0 : mirror_row_step(&s->row[row], back));
            scene_begin(p->s, "edge", "passing",
                        arena_printf(p->c->arena, "%s, step %d", q[i].v->shape.name, q[i].v->step));
            if (part == 0) leave(p, &d, &q[i]);
            if (part == 1) arrive(p, &d, i);
            if (part == 2) run_lane(p, &d, &q[i]);
            scene_end(p->s);
        }
    for (int r = 0; r < s->n; r++) {
        if (at[r].folded) continue;
        come_to_sum(p, &d, r);
        if (mirror_comes(s, r, back) && (!back || at[r].b.top >= 0)) come_in(p, &d, r);
        if (mirror_leaves_alone(s, r, back)) go_out(p, &d, r);
    }
    scene_at(p->s, 0);
}

void mirror_rails(MirrorPen *p, const MirrorStrip *s, const MirrorPlace *at) {
    const MirrorStrip folded = mirror_folded(p, s);
    for (int back = 0; back < 2; back++) draw_passing(p, &folded, at, back);
    for (int r = 1; r < s->n; r++) {
        if (!mirror_breaks(s, r - 1)) continue;
        draw_read(p, s, at, r);
        draw_past(p, s, at, r);
    }
}
