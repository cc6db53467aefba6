/* What the files of the Cairo painter share: one Pango layout, used for measuring and for painting.
 */
#ifndef SP_RENDER_PAINT_TEXT_H
#define SP_RENDER_PAINT_TEXT_H
#include "render/scene/scene.h"
#include <pango/pangocairo.h>

/* The layout holding the text; valid until the next call. `theme` < 0: no colours, for measuring
 * only. */
PangoLayout *fonts_layout(Fonts *f, const Run *run, int n, double size, int theme);
#endif
