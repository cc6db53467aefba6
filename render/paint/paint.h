/* Painters: a scene becomes bytes. Each writes into a sink, so that files, memory and tests take
 * the same way. They decide nothing about the picture. Cairo is named in paint_cairo.c only.
 */
#ifndef SP_RENDER_PAINT_H
#define SP_RENDER_PAINT_H
#include "render/scene/scene.h"

/* Bytes that grow in an arena. */
typedef struct {
    Arena *arena;
    unsigned char *p;
    size_t n, cap;
} Sink;
/* Adds n bytes. */
void sink_add(Sink *s, const void *p, size_t n);

/* SVG 1.1 with real text, ids, titles and tooltips. */
void paint_svg(const Scene *s, Sink *out);
/* PNG of `width_px` (0: the scene's own). NULL, or what went wrong (static text). */
const char *paint_png(const Scene *s, int width_px, Sink *out);
/* PDF, one page per scene, with fixed dates, title and text. NULL, or what went wrong. */
const char *paint_pdf(Scene *const *page, int n, Sink *out);
#endif
