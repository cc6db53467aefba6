/* Strips of "backward beside forward" one under the other: pieces of the residual stream between
 * their circles, chains (embedding, head, loss, models without a stream) between pills or joined to
 * what lies above and below. */
#include "render/mirror/mirror_draw.h"
#include "base/text.h"
#include "render/graph/block_words.h"
#include <limits.h>
#include <math.h>
#include <string.h>

enum { RADIUS = 13, PILL = MIRROR_PILL, BEND = 18, APART = 30 };

/* From the upper circle to the first dot, from the last plus to the lower circle: shorter on a
 * slide. */
static double above_dot(const MirrorPen *p) { return p->look.inlined ? 24 : 30; }
static double below_plus(const MirrorPen *p) { return p->look.inlined ? 31 : 38; }

/* ---- how strips hang together ---- */

/* How the upper end of strip i, of those from `first` on, is joined. */
typedef enum { END_PILL, END_CHAIN, END_STREAM } EndKind;

static EndKind upper_end(const MirrorPen *p, int i, int first) {
    const MirrorStrip *s = &p->m->strip[i], *up = i > first ? &p->m->strip[i - 1] : NULL;
    if (!up || !s->from || !text_same(up->to, s->from)) return END_PILL;
    return up->plain ? END_CHAIN : END_STREAM;
}

/* The lower end of chain i: what follows it reads its output? */
static EndKind lower_end(const MirrorPen *p, int i, int end) {
    const MirrorStrip *s = &p->m->strip[i], *down = i + 1 < end ? &p->m->strip[i + 1] : NULL;
    if (!down || !down->from || !text_same(s->to, down->from)) return END_PILL;
    return down->plain ? END_CHAIN : END_STREAM;
}

static double tap_height(const MirrorPen *p, const MirrorStrip *s) {
    return fmax(p->look.tap, mirror_edge_height(p, s, -1) + 8);
}
static double plus_height(const MirrorPen *p, const MirrorStrip *s) {
    return fmax(p->look.plus, mirror_edge_height(p, s, s->n - 1) + 6);
}

double mirror_height(const MirrorPen *p, const MirrorStrip *s) {
    return tap_height(p, s) + mirror_rows_height(p, s) + plus_height(p, s);
}

/* ---- streams ---- */

static void plus_mark(MirrorPen *p, double x, double y, const char *tip) {
    scene_begin(p->s, "compute", "plus", tip);
    scene_frame(p->s, x - 10, y - 10, 20, 20);
    scene_circle(p->s, x, y, 9, (Look){ROLE_PAPER, ROLE_INK, 1.5});
    scene_segment(p->s, (Pt){x - 5.4, y}, (Pt){x + 5.4, y}, ROLE_INK, 1.5);
    scene_segment(p->s, (Pt){x, y - 5.4}, (Pt){x, y + 5.4}, ROLE_INK, 1.5);
    scene_end(p->s);
}

static void dot_mark(MirrorPen *p, double x, double y, const char *tip) {
    scene_begin(p->s, "edge", "dot", tip);
    scene_circle(p->s, x, y, 4, (Look){ROLE_INK, ROLE_NONE, 0});
    scene_end(p->s);
}

static int circle_mark(MirrorPen *p, double x, double y, const char *name, const char *tip) {
    return furniture_state(p->s, p->c->arena, (Pt){x, y}, 13, name, tip);
}

/* When a value appears in a figure that builds up: with the step that makes it. */
static void at_value(MirrorPen *p, const char *name) {
    const TraceValue *v = trace_value(p->m->g->t, name, INT_MAX);
    scene_at(p->s, v ? v->step + 1 : 0);
}

void mirror_streams(MirrorPen *p, int first, int n, const double *dot, double top, double bottom) {
    const MirrorStrip *head = &p->m->strip[first], *tail = &p->m->strip[first + n - 1];
    double x = p->stream, bx = p->back_stream;
    double up = head->up ? top + 13 : dot[0] + mirror_height(p, head);
    int target;
    at_value(p, head->from);
    circle_mark(p, x, top, mirror_end_name(p, first, false, false), head->from);
    target = circle_mark(p, x, bottom, mirror_end_name(p, first + n - 1, false, true), tail->to);
    scene_begin(p->s, "stream", "stream-forward", "residual stream");
    Pt down[2] = {{x, top + 13}, {x, bottom - 13}};
    scene_arrow(p->s, down, 2, (ArrowLook){ROLE_INK, 3, true, false}, target);
    scene_end(p->s);
    at_value(p, mirror_grad(p->m->g, tail->to));
    target = head->up ? circle_mark(p, bx, top, mirror_end_name(p, first, true, false),
                                    mirror_grad(p->m->g, head->from))
                      : -1;
    circle_mark(p, bx, bottom, mirror_end_name(p, first + n - 1, true, true),
                mirror_grad(p->m->g, tail->to));
    scene_begin(p->s, "stream", "stream-backward", "gradient of the residual stream");
    Pt rise[2] = {{bx, bottom - 13}, {bx, up}};
    Mark *casing = scene_segment(p->s, (Pt){bx, bottom - 14}, (Pt){bx, up + 14}, ROLE_PAPER, 9);
    casing->ground = true;
    if (head->up) scene_arrow(p->s, rise, 2, (ArrowLook){ROLE_INK, 3, true, false}, target);
    else scene_line(p->s, rise, 2, ROLE_INK, 3);
    scene_end(p->s);
    for (int i = 0; i < n; i++) {
        const MirrorStrip *s = &p->m->strip[first + i];
        double plus = dot[i] + mirror_height(p, s);
        at_value(p, s->from);
        dot_mark(p, x, dot[i], "read here, and carried on");
        at_value(p, s->to);
        plus_mark(p, x, plus, s->to);
        at_value(p, mirror_grad(p->m->g, s->to));
        dot_mark(p, bx, plus, "the gradient goes both ways");
        at_value(p, mirror_grad(p->m->g, s->from));
        if (s->up) plus_mark(p, bx, dot[i], "sum of the gradients of both uses");
    }
    scene_at(p->s, 0);
}

/* The name of a part, but where the page has no other and its title begins with it. */
static void title(MirrorPen *p, const MirrorStrip *s, double x, double y) {
    const size_t n = strlen(s->strip->title);
    if (p->s->title && !strncmp(p->s->title, s->strip->title, n) && p->s->title[n] == ':') return;
    scene_begin(p->s, "part", arena_printf(p->c->arena, "part-%s", s->to), NULL);
    scene_text(p->s, x, y, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, s->strip->title);
    scene_end(p->s);
}

/* What flows into or out of the rows of a strip. */
typedef struct {
    const MirrorStrip *s;
    int row; /* of mirror_label */
    bool back;
    const Pt *pt; /* its arrow; NULL: none */
    int n, to;
} Flow;
/* Its arrow, and its label in the gap [y, y + h]. */
static void flow_end(MirrorPen *p, Flow f, double y, double h) {
    MirrorLabel l = mirror_label(p, f.s, f.row, f.back);
    if (f.pt) mirror_flow_arrow(p, f.pt, f.n, &l, f.to);
    mirror_draw_label(p, f.s, f.row, f.back, y, h);
}

/* A piece of the stream whose dot is at y; returns the y of its plus. */
static double stream_strip(MirrorPen *p, const MirrorStrip *s, double y) {
    MirrorEnds e;
    double dot = y, at = mirror_rows(p, s, y + tap_height(p, s), &e), plus = at + plus_height(p, s);
    title(p, s, p->stream + 20, dot - 8);
    Pt in[3] = {{p->stream, dot}, {p->forward, dot}, {p->forward, e.f0.y0}};
    Pt out[3] = {{p->backward, e.b0.y0}, {p->backward, dot}, {p->back_stream - 10, dot}};
    Pt back[3] = {{p->forward, e.f1.y1}, {p->forward, plus}, {p->stream + 10, plus}};
    Pt down[3] = {{p->back_stream, plus}, {p->backward, plus}, {p->backward, e.b1.y1}};
    double gap = plus_height(p, s) - 4;
    at_value(p, s->from);
    flow_end(p, (Flow){s, -1, false, in, 3, e.f0.top}, dot, tap_height(p, s));
    scene_at(p->s, mirror_row_step(&s->row[s->n - 1], false));
    flow_end(p, (Flow){s, s->n - 1, false, back, 3, -1}, at, gap);
    at_value(p, mirror_grad(p->m->g, s->to));
    flow_end(p, (Flow){s, s->n - 1, true, e.back ? down : NULL, 3, e.b1.bottom}, at, gap);
    scene_at(p->s, mirror_row_step(&s->row[0], true));
    flow_end(p, (Flow){s, -1, true, s->up ? out : NULL, 3, -1}, dot, tap_height(p, s));
    scene_at(p->s, 0);
    return plus;
}

/* ---- chains ---- */

static double top_height(const MirrorPen *p, int i, EndKind end) {
    const MirrorStrip *s = &p->m->strip[i];
    if (end == END_CHAIN)
        return mirror_edge_height(p, &p->m->strip[i - 1], p->m->strip[i - 1].n - 1);
    return (end == END_PILL ? PILL : BEND) + (s->from ? mirror_edge_height(p, s, -1) : 0);
}
static double bottom_height(const MirrorPen *p, const MirrorStrip *s, EndKind end) {
    double gap = mirror_edge_height(p, s, s->n - 1);
    return end == END_CHAIN ? 0 : gap + (end == END_PILL ? PILL : BEND);
}

/* The upper end of a chain: how it ends, where, and where its rows begin. */
typedef struct {
    EndKind end;
    double y, rows;
} ChainTop;

/* What comes into a chain at its upper end. */
static void chain_top(MirrorPen *p, int i, ChainTop top, const MirrorEnds *e,
                      const MirrorEnds *above) {
    const EndKind end = top.end;
    const double y = top.y, rows = top.rows;
    const MirrorStrip *s = &p->m->strip[i], *up = i > 0 ? s - 1 : s;
    bool back = s->up && e->back;
    int again = mirror_row_step(&s->row[0], true);
    if (end == END_CHAIN) {
        Pt down[2] = {{p->forward, above->f1.y1}, {p->forward, e->f0.y0}};
        Pt rise[2] = {{p->backward, e->b0.y0}, {p->backward, above->b1.y1}};
        scene_at(p->s, mirror_row_step(&up->row[up->n - 1], false));
        flow_end(p, (Flow){up, up->n - 1, false, down, 2, e->f0.top}, y, rows - y);
        scene_at(p->s, again);
        flow_end(
            p, (Flow){up, up->n - 1, true, back && above->back ? rise : NULL, 2, above->b1.bottom},
            y, rows - y);
        return;
    }
    double bend = y + BEND;
    if (end == END_STREAM) {
        Pt down[4] = {
            {p->stream, y}, {p->stream, bend}, {p->forward, bend}, {p->forward, e->f0.y0}};
        Pt rise[4] = {{p->backward, e->b0.y0},
                      {p->backward, bend},
                      {p->back_stream, bend},
                      {p->back_stream, y}};
        at_value(p, s->from);
        flow_end(p, (Flow){s, -1, false, down, 4, e->f0.top}, bend, rows - bend);
        scene_at(p->s, again);
        if (back) flow_end(p, (Flow){s, -1, true, rise, 4, -1}, bend, rows - bend);
        return;
    }
    if (!s->from) return;
    at_value(p, s->from);
    mirror_pill_of(p, p->forward, y, (Subject){OF_ITSELF, s->from});
    Pt down[2] = {{p->forward, y + PILL}, {p->forward, e->f0.y0}},
       rise[2] = {{p->backward, e->b0.y0}, {p->backward, y + PILL}};
    flow_end(p, (Flow){s, -1, false, down, 2, e->f0.top}, y + PILL, rows - y - PILL);
    scene_at(p->s, again);
    if (!back) return;
    int to = mirror_pill_of(p, p->backward, y, (Subject){OF_GRADIENT, s->from});
    flow_end(p, (Flow){s, -1, true, rise, 2, to}, y + PILL, rows - y - PILL);
}

/* Where the last part of a divided strip ends: what becomes of it on the stream. */
static void stream_words(MirrorPen *p, const MirrorStrip *s, double y, bool passes) {
    if (!s->sum) return;
    for (int back = 0; back < 1 + passes; back++) {
        const char *sum = mirror_told(p, s->sum, back), *to = mirror_told(p, s->added, false),
                   *text = back ? arena_printf(p->c->arena, "the same as %s", sum)
                                : arena_printf(p->c->arena, "+ %s gives %s", to, sum);
        double x = back ? p->backward : p->forward,
               half = mirror_pill_width(p, s->branch, back) / 2 + 8;
        scene_at(p->s, mirror_row_step(&s->row[s->n - 1], back));
        scene_text(p->s, x + half, y + PILL / 2.0 + 4.3,
                   (TextLook){ALIGN_LEFT, MIRROR_SIZE, REGULAR, ROLE_SECOND}, text);
    }
}

static void chain_bottom(MirrorPen *p, const MirrorStrip *s, EndKind end, double y,
                         const MirrorEnds *e) {
    double gap = mirror_edge_height(p, s, s->n - 1), at = y + gap;
    int made = mirror_row_step(&s->row[s->n - 1], false),
        again = mirror_row_step(&s->row[s->n - 1], true);
    bool back = e->back && mirror_label(p, s, s->n - 1, true).n > 0;
    if (end == END_CHAIN) return;
    if (end == END_STREAM) {
        Pt down[4] = {
            {p->forward, e->f1.y1}, {p->forward, at}, {p->stream, at}, {p->stream, at + BEND}};
        Pt rise[4] = {{p->back_stream, at + BEND},
                      {p->back_stream, at},
                      {p->backward, at},
                      {p->backward, e->b1.y1}};
        scene_at(p->s, made);
        flow_end(p, (Flow){s, s->n - 1, false, down, 4, -1}, y, gap);
        scene_at(p->s, again);
        if (back) flow_end(p, (Flow){s, s->n - 1, true, rise, 4, e->b1.bottom}, y, gap);
    } else {
        scene_at(p->s, made);
        int to = mirror_pill_of(p, p->forward, at, (Subject){OF_ITSELF, s->branch});
        Pt down[2] = {{p->forward, e->f1.y1}, {p->forward, at}},
           rise[2] = {{p->backward, at}, {p->backward, e->b1.y1}};
        flow_end(p, (Flow){s, s->n - 1, false, down, 2, to}, y, gap);
        scene_at(p->s, again);
        if (back) mirror_pill_of(p, p->backward, at, (Subject){OF_GRADIENT, s->branch});
        if (back) flow_end(p, (Flow){s, s->n - 1, true, rise, 2, e->b1.bottom}, y, gap);
        stream_words(p, s, at, back);
    }
}

/* ---- all ---- */

static int run_length(const MirrorPen *p, int i, int end) {
    int n = 1;
    while (i + n < end && !p->m->strip[i + n].plain) n++;
    return n;
}

static double stream_height(const MirrorPen *p, int first, int n) {
    double h = 2 * RADIUS + above_dot(p) + below_plus(p);
    for (int i = first; i < first + n; i++)
        h += mirror_height(p, &p->m->strip[i]) + (i > first ? p->look.next : 0);
    return h;
}

double mirror_strips_height(const MirrorPen *p, int first, int n) {
    double h = 0;
    for (int i = first; i < first + n;) {
        const MirrorStrip *s = &p->m->strip[i];
        int k = s->plain ? 1 : run_length(p, i, first + n);
        if (i > first && upper_end(p, i, first) == END_PILL) h += APART;
        if (s->plain)
            h += top_height(p, i, upper_end(p, i, first)) + mirror_rows_height(p, s) +
                 bottom_height(p, s, lower_end(p, i, first + n));
        else h += stream_height(p, i, k);
        i += k;
    }
    return h;
}

/* Pieces of the stream [first, first + n), circle to circle, from y. */
static double draw_stream(MirrorPen *p, int first, int n, double y) {
    double dot[BLOCK_MAX_STRIPS], top = y + RADIUS, at = top + above_dot(p), plus = at;
    for (int i = 0; i < n; i++) {
        dot[i] = at;
        scene_row(p->s, block_row_name(p->m->strip[first + i].strip),
                  i ? at - p->look.next / 2 : y - 8); /* with the arrow that ends there */
        plus = stream_strip(p, &p->m->strip[first + i], at);
        at = plus + p->look.next;
    }
    mirror_streams(p, first, n, dot, top, plus + below_plus(p));
    return plus + below_plus(p) + RADIUS;
}

/* Above strip i, which does not go on where the one before it ends. */
static void between_words(MirrorPen *p, int i, double y) {
    if (p->m->g->n_layers < 2 || p->m->strip[i].plain == p->m->strip[i - 1].plain) return;
    scene_text(p->s, p->stream + 24, y - 10, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               "the other layers stand between these");
}

double mirror_strips(MirrorPen *p, int first, int n, double y) {
    MirrorEnds e = {{0}, {0}, {0}, {0}, false}, above = e;
    for (int i = first; i < first + n;) {
        const MirrorStrip *s = &p->m->strip[i];
        EndKind up = upper_end(p, i, first), low = lower_end(p, i, first + n);
        if (i > first && up == END_PILL) between_words(p, i, y += APART);
        if (!s->plain) {
            int k = run_length(p, i, first + n);
            y = draw_stream(p, i, k, y);
            i += k;
            continue;
        }
        scene_row(p->s, block_row_name(s->strip), y);
        double rows = y + top_height(p, i, up), end = mirror_rows(p, s, rows, &e);
        if (up == END_PILL) title(p, s, p->stream - 12, y + 16);
        if (up == END_STREAM) title(p, s, p->stream + 20, y + BEND - 6);
        if (up == END_CHAIN) title(p, s, p->stream - 12, rows + p->look.row / 2 + 5);
        chain_top(p, i, (ChainTop){up, y, rows}, &e, &above);
        chain_bottom(p, s, low, end, &e);
        scene_at(p->s, 0);
        y = end + bottom_height(p, s, low);
        above = e;
        i++;
    }
    return y;
}
