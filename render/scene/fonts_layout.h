/* Pango's side of the fonts: the layout of the Cairo painter, and the fonts of letters. */
#ifndef SP_RENDER_FONTS_LAYOUT_H
#define SP_RENDER_FONTS_LAYOUT_H
#include "render/scene/fonts.h"
#include <pango/pangocairo.h>

/* The layout holding the text; valid until the next call. `theme` < 0: no colours. */
PangoLayout *fonts_layout(Fonts *f, const Run *run, int n, double size, int theme);
/* PangoItems, each of one font: the pieces of the text, of which a layout's lines are made. The
 * caller frees them, the list and the text that they point into. */
GList *fonts_pieces(Fonts *f, const Run *run, int n, double size, char **text);
#endif
