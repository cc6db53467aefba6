/* Rails of "backward beside forward": where a chain stands in rows of its own beside others (a
 * shared expert), lines lead past these from the row that makes what it reads, and from the last of
 * the others to the row that takes both up; mirrored in backward. */
#include "render/mirror/mirror_draw.h"
#include "base/text.h"
#include <math.h>
#include <string.h>

enum { PLUS = 6, OUTER = 16, INNER = MIRROR_RAILS + 2 };

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
    const double y = at[maker + 1].f.y0 - MIRROR_FORK / 2.0 - 3,
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
                 by = at[maker + 1].b.y0 - MIRROR_FORK / 2.0 - 3;
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

void mirror_rails(MirrorPen *p, const MirrorStrip *s, const MirrorPlace *at) {
    for (int r = 1; r < s->n; r++) {
        if (!mirror_breaks(s, r - 1)) continue;
        draw_read(p, s, at, r);
        draw_past(p, s, at, r);
    }
}
