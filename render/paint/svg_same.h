/* What stands in several places of an SVG: the pointer over one of them shows all, by rules of the
 * style sheet alone. Refuses scripts: files are opened where none may run. */
#ifndef SP_RENDER_SVG_SAME_H
#define SP_RENDER_SVG_SAME_H
#include "render/paint/paint.h"

/* Per group of the scene the number of the thing that it shows, from 1 to *n, in the arena; 0: it
 * shows none that has another place. */
const int *svg_same(const Scene *s, Arena *a, int *n);
/* The attributes of a group with that number. */
void svg_same_mark(Sink *o, int number);
/* The rules of the style sheet. */
void svg_same_rules(const Scene *s, Sink *o);
#endif
