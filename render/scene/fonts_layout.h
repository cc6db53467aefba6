/* The one Pango layout, of the Cairo painter and of who asks for the fonts of letters. */
#ifndef SP_RENDER_FONTS_LAYOUT_H
#define SP_RENDER_FONTS_LAYOUT_H
#include "render/scene/fonts.h"
#include <pango/pangocairo.h>

/* The layout holding the text; valid until the next call. `theme` < 0: no colours. */
PangoLayout *fonts_layout(Fonts *f, const Run *run, int n, double size, int theme);
#endif
