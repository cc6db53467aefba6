/* Title and subtitle of a picture of a plan that may be wrong. */
#ifndef SP_RENDER_HEADLINE_H
#define SP_RENDER_HEADLINE_H
#include "render/furniture/wrong.h"

/* figure_head of a picture that tells `title` of a plan: where the plan is wrong, that is the
 * title, and the sentence stands under it. */
double headline_draw(Scene *s, PresetKind preset, const WrongList *l, const char *title,
                     const char *const *sub);
#endif
