/* Which sentence is the title. See headline.h. */
#include "render/furniture/headline.h"

double headline_draw(Scene *s, PresetKind preset, const WrongList *l, const char *title,
                     const char *const *sub) {
    enum { MOST = 12 };
    const char *all[MOST + 2] = {title};
    int n = 1;
    if (!l || !l->n) return figure_head(s, preset, title, sub, 0);
    s->fact = title;
    for (int i = 0; sub[i] && n <= MOST; i++) all[n++] = sub[i];
    s->wrong = true;
    return figure_head(s, preset, wrong_title(l), all, 0);
}
