/* See svg_same.h. */
#include "render/paint/svg_same.h"
#include <stdlib.h>
#include <string.h>

static void put(Sink *o, const char *t) { sink_add(o, t, strlen(t)); }

enum { MOST = 256 }; /* things; of more the rules would be longer than the figure */

typedef struct {
    const char *thing;
    int group;
} Place;
static int by_thing(const void *x, const void *y) {
    const Place *a = x, *b = y;
    const int d = strcmp(a->thing, b->thing);
    return d ? d : a->group - b->group;
}
const int *svg_same(const Scene *s, Arena *a, int *n) {
    int *number = ARENA_ARRAY(a, int, s->n_groups + 1), places = 0;
    Place *p = ARENA_ARRAY(a, Place, s->n_groups + 1);
    *n = 0;
    for (int i = 0; i < s->n_groups; i++)
        if (s->groups[i].same) p[places++] = (Place){s->groups[i].same, i};
    if (places) qsort(p, (size_t)places, sizeof *p, by_thing);
    for (int i = 0, k; i < places; i = k) {
        for (k = i + 1; k < places && !strcmp(p[k].thing, p[i].thing);) k++;
        if (k - i < 2 || *n == MOST) continue;
        ++*n;
        for (int j = i; j < k; j++) number[p[j].group] = *n;
    }
    return number;
}
void svg_same_mark(Sink *o, int number) {
    if (number) /* a click gives it the focus; the key Tab goes by, there are many */
        put(o, arena_printf(o->arena, " data-same=\"%d\" tabindex=\"-1\"", number));
}
void svg_same_rules(const Scene *s, Sink *o) {
    int n;
    svg_same(s, o->arena, &n);
    if (!n) return;
    for (int i = 1; i <= n; i++)
        put(o, arena_printf(o->arena,
                            "%s#%s:has([data-same=\"%d\"]:is(:hover,:focus)) [data-same=\"%d\"]",
                            i > 1 ? ",\n" : "", s->name, i, i));
    put(o, arena_printf(o->arena, "{outline:2px solid #%06X;outline-offset:1px}\n",
                        theme_color(s->theme, ROLE_TARGET)));
}
