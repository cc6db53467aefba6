/* An SVG that builds up. */
#ifndef SP_RENDER_SVG_PLAY_H
#define SP_RENDER_SVG_PLAY_H
#include "render/paint/paint.h"

/* How the steps of a scene follow each other. */
typedef struct {
    const Scene *s;
    const int *step;
    int n;
    double pace; /* seconds from step to step */
} SvgPlay;
SvgPlay svg_play(const Scene *s);
/* Opens the group that hears the click; the caller closes it. */
void svg_play_begin(const Scene *s, Sink *o);
/* Opens a group of marks that appear at `step`; the caller closes it. */
void svg_play_open(const SvgPlay *p, Sink *o, int step);
/* The rules of the style sheet for paper and for readers who want no motion. */
void svg_play_rules(const Scene *s, Sink *o);
#endif
