/* Marks appear by SMIL's <set>, which hides what is there anyway: a program that plays nothing, and
 * a figure that has played, show the last picture; paper shows it at any moment. A figure of few
 * steps plays once when it is opened, for less than five seconds (WCAG 2.2.2); one of many waits
 * for a click. A click plays it again. */
#include "render/paint/svg_play.h"
#include "render/scene/build.h"
#include <math.h>
#include <string.h>

static const double longest = 4.8, slow = 1, quick = 0.4, unhurried = 0.8; /* seconds */

static void put(Sink *o, const char *t) { sink_add(o, t, strlen(t)); }

/* The name of the figure as an id in which SMIL sees no minus. */
static const char *player(const Scene *s) {
    char *id = arena_strdup(s->arena, s->name);
    for (char *c = id; *c; c++)
        if (*c == '-' || *c == '.') *c = '_';
    return id;
}
static bool plays_itself(const SvgPlay *p) { return p->n * quick <= longest; }

SvgPlay svg_play(const Scene *s) {
    SvgPlay p = {.s = s};
    p.n = s->builds ? build_steps(s, &p.step) : 0;
    p.pace = p.n && plays_itself(&p) ? fmin(slow, longest / p.n) : unhurried;
    return p;
}
void svg_play_begin(const Scene *s, Sink *o) {
    put(o, arena_printf(o->arena, "<g id=\"%s\">\n", player(s)));
}
void svg_play_open(const SvgPlay *p, Sink *o, int step) {
    int k = 0;
    while (p->step[k] != step) k++;
    put(o, arena_printf(o->arena,
                        "<g class=\"%s-step\"><set attributeName=\"visibility\" to=\"hidden\" "
                        "begin=\"%s%s.click\" dur=\"%.2fs\"/>\n",
                        p->s->name, plays_itself(p) ? "0s;" : "", player(p->s), p->pace * (k + 1)));
}
void svg_play_rules(const Scene *s, Sink *o) {
    put(o, arena_printf(o->arena,
                        "#%s{cursor:pointer}\n"
                        "@media print{.%s-step{visibility:visible!important}}\n"
                        "@media (prefers-reduced-motion:reduce){.%s-step"
                        "{visibility:visible!important}}\n",
                        player(s), s->name, s->name));
}
