/* The style sheet of an SVG. */
#ifndef SP_RENDER_SVG_STYLE_H
#define SP_RENDER_SVG_STYLE_H
#include "render/paint/paint.h"

/* Writes <style> with the fonts' parts that the scene's texts need and the rules of the figure
 * whose root has the id s->name. Returns the value of font-family for its texts, in o's arena. */
const char *svg_style(const Scene *s, Sink *o);
#endif
