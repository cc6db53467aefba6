/* The band that stands for the hops of a ring but the first (mirror_fold.c): it says that they do
 * the same, and lines that lead into it, or out of it, end on it. */
#include "render/mirror/mirror_draw.h"
#include "base/text.h"

double mirror_rows_height(const MirrorPen *p, const MirrorStrip *s) {
    const MirrorFold f = mirror_fold(p->m->g, s);
    double h = 0;
    for (int r = 0; r < s->n; r++) {
        const bool in = r >= f.from && r < f.until;
        if (in && r + 1 < f.until) continue;
        h += in ? p->look.row : mirror_row_height(p, s, &s->row[r]);
        h += r + 1 < s->n ? mirror_edge_height(p, s, r) : 0;
    }
    return h;
}

/* All that the rows do, which the figure says no more. */
static const char *steps(const MirrorPen *p, const MirrorStrip *s, const MirrorFold *f) {
    Str t = str_new(p->c->arena);
    for (int r = f->from; r < f->until; r++) {
        const MirrorRow *row = &s->row[r];
        for (int i = 0; i < row->n_coll; i++)
            str_addf(&t, "step %d: %s of %s\n", row->coll[i]->step, row->coll[i]->op,
                     row->coll[i]->value);
        for (int i = 0; i < row->n_op; i++)
            str_addf(&t, "step %d: %s makes %s\n", row->op[i].f->step, row->op[i].f->op,
                     row->op[i].f->output);
        for (int i = 0; i < row->n_conj; i++)
            str_addf(&t, "step %d: %s of %s\n", row->conj[i]->step, row->conj[i]->op,
                     row->conj[i]->value);
        for (int i = 0; i < row->n_back; i++)
            str_addf(&t, "step %d: %s makes %s\n", row->back[i].f->step, row->back[i].f->op,
                     row->back[i].f->output);
        for (int i = 0; i < row->n_grad; i++)
            str_addf(&t, "step %d: makes %s\n", row->grad[i].made->step, row->grad[i].made->output);
    }
    return t.s;
}
MirrorPlace mirror_band(MirrorPen *p, const MirrorStrip *s, double y) {
    static const double dash[2] = {5, 3};
    const MirrorFold f = mirror_fold(p->m->g, s);
    const double x = p->forward - p->box / 2, w = p->backward + p->box / 2 - x, h = p->look.row;
    const char *text = arena_printf(p->c->arena, "hops %s%d: the same steps, with the next block",
                                    f.hops > 3 ? "2 to " : "2 and ", f.hops);
    scene_begin(p->s, "fold", "fold-hops", steps(p, s, &f));
    scene_frame(p->s, x, y, w, h);
    Mark *m = scene_rect(p->s, (Area){x, y, w, h}, 3, (Look){ROLE_PAPER, ROLE_COLL_LINE, 1.25});
    m->dash = dash, m->n_dash = 2;
    scene_text(p->s, x + w / 2, y + h / 2 + 4.4, (TextLook){ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK},
               text);
    const int group = p->s->open;
    scene_end(p->s);
    const MirrorSide side = {group, group, y, y + h};
    return (MirrorPlace){y, side, side, true};
}

bool mirror_into(const MirrorStrip *s, const MirrorFold *f) {
    for (int i = 0; i < s->n_past[0]; i++) {
        const MirrorRead *q = &s->past[0][i];
        if (q->from + 1 == f->from && q->to >= f->from && q->to < f->until) return true;
    }
    return false;
}
static bool inside(const MirrorFold *f, int r) { return r >= f->from && r < f->until; }
/* What passes from row to row, where those of the band are one: its upper end takes up and hands
 * on backward, its lower end forward, all in one lane. */
static void join_reads(Arena *a, MirrorStrip *s, const MirrorFold *f, int back) {
    MirrorRead *own = ARENA_ARRAY(a, MirrorRead, s->n_past[back] + 1);
    int n = 0, lane = 0;
    for (int i = 0; i < s->n_past[back]; i++) {
        const MirrorRead *q = &s->past[back][i];
        if (inside(f, q->from) && !inside(f, q->to) && q->lane > lane) lane = q->lane;
    }
    for (int i = 0; i < s->n_past[back]; i++) {
        MirrorRead q = s->past[back][i];
        const bool from = inside(f, q.from), to = inside(f, q.to);
        if ((from && to) || (!back && to && q.from + 1 == f->from)) continue; /* mirror_into */
        if (from) q.from = back ? f->from : f->until - 1, q.lane = lane;
        if (to) q.to = f->from, q.sum = false;
        own[n++] = q;
    }
    s->past[back] = own;
    s->n_past[back] = n;
}
MirrorStrip mirror_folded(const MirrorPen *p, const MirrorStrip *s) {
    const MirrorFold f = mirror_fold(p->m->g, s);
    MirrorStrip own = *s;
    for (int back = 0; f.hops && back < 2; back++) join_reads(p->c->arena, &own, &f, back);
    return own;
}
