/* The line under what another plan has otherwise, or not at all. See furniture.h. */
#include "render/furniture/furniture.h"

static void line(Scene *s, Pt at, double w, double h) {
    scene_rect(s, (Area){at.x, at.y, w, h}, 0, (Look){ROLE_INK, ROLE_NONE, 0});
}
Likeness figure_likeness(Likeness a, Likeness b) { return a == b ? a : NOT_SO; }
void figure_unlike(Scene *s, Pt at, double w, Likeness how, unsigned *legend) {
    if (how == NOT_SO) line(s, at, w, 2.5);
    if (how == ONLY_HERE)
        for (int i = 0; i < 2; i++) line(s, (Pt){at.x, at.y - 1 + 2.6 * i}, w, 1.1);
    if (how != ALIKE) *legend |= 1u << (how == NOT_SO ? LEGEND_UNLIKE : LEGEND_ALONE);
}
void figure_unlike_box(Scene *s, Area box, double in, Likeness how, unsigned *legend) {
    figure_unlike(s, (Pt){box.x + in, box.y + box.h - 4}, box.w - 2 * in, how, legend);
}
