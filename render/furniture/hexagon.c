/* The symbol of a collective. See hexagon.h. */
#include "render/furniture/hexagon.h"
#include "trace/counts.h"

Hexagon hexagon_of(const TraceCollective *c, double x, double y, double w, double h) {
    return (Hexagon){.x = x,
                     .y = y,
                     .w = w,
                     .h = h,
                     .inferred = c->inferred,
                     .skipped = wrong_skipped(c),
                     .message = collective_is_message(c),
                     .step = c->step};
}

/* Along the lower edge: inside, or under it where words reach down to it. */
static void unlike_line(Scene *s, const Hexagon *h, unsigned *legend) {
    enum { POINT = 14, CLEAR = 2, HEAVY = 4 }; /* to where the edge is level; under words; a line */
    double words = h->y;
    for (int i = 0; i < HEXAGON_LINES && h->line[i].text; i++) words = h->line[i].y;
    const double under = words + CLEAR + HEAVY > h->y + h->h ? HEAVY + 2 : 0;
    figure_unlike_box(s, (Area){h->x, h->y, h->w, h->h + under}, POINT, h->like, legend);
}
int hexagon_draw(Scene *s, const Hexagon *h, unsigned *legend) {
    static const double dash[2] = {5, 3};
    unsigned none = 0, *shown = legend ? legend : &none;
    int group = h->id ? scene_begin(s, "collective", h->id, h->tip) : s->open;
    if (h->id) scene_frame(s, h->x, h->y, h->w, h->h);
    Mark *m = scene_hexagon(s, (Area){h->x, h->y, h->w, h->h},
                            (Look){h->skipped ? ROLE_PAPER : ROLE_COLL, ROLE_COLL_LINE, 2});
    if (h->inferred) m->dash = dash, m->n_dash = 2;
    if (h->wrong) wrong_border(m, shown);
    for (int i = 0; i < HEXAGON_LINES && h->line[i].text; i++)
        scene_text(s, h->x + h->w / 2, h->line[i].y,
                   (TextLook){ALIGN_MIDDLE, h->line[i].size, h->line[i].weight, ROLE_INK},
                   h->line[i].text);
    if (h->like) unlike_line(s, h, shown);
    wrong_flag(s, h->list, h->step, h->flag_x, h->flag_y);
    if (h->id) scene_end(s);
    *shown |= 1u << (h->message ? LEGEND_MESSAGE : LEGEND_COLL) | (unsigned)h->inferred
                                                                      << LEGEND_INFERRED;
    return group;
}
