/* The heavy line under what the figure of another plan does not show. See furniture.h. */
#include "render/furniture/furniture.h"

void figure_unlike(Scene *s, Pt at, double w, unsigned *legend) {
    scene_rect(s, (Area){at.x, at.y, w, 2.5}, 0, (Look){ROLE_INK, ROLE_NONE, 0});
    *legend |= 1u << LEGEND_UNLIKE;
}
void figure_unlike_box(Scene *s, Area box, double in, unsigned *legend) {
    figure_unlike(s, (Pt){box.x + in, box.y + box.h - 4}, box.w - 2 * in, legend);
}
