/* The homes of layers. See homes.h. */
#include "cli/homes.h"
#include "base/text.h"
#include <string.h>

static const char *place_on(const TraceShape *s, const char *axis) {
    for (int i = 0; i < s->n_places; i++)
        if (text_same(s->place[i].axis, axis)) return s->place[i].place;
    return NULL;
}
Homes homes_of(const Trace *t, Arena *a) {
    Homes h = {.axis = t->schedule_axis};
    for (int i = 0; h.axis && i < t->n_params; i++)
        if (t->params[i].layer >= h.n) h.n = t->params[i].layer + 1;
    h.of = ARENA_ARRAY(a, const char *, h.n + 1);
    for (int i = 0; h.axis && i < t->n_params; i++) {
        int layer = t->params[i].layer;
        const char *place = place_on(&t->params[i].compute, h.axis);
        if (layer < 0 || !place) continue;
        const char *has = h.of[layer];
        if (!has) h.of[layer] = place;
        else if (!text_has_word(has, place)) h.of[layer] = arena_printf(a, "%s, %s", has, place);
    }
    return h;
}
const char *homes_at(const Homes *h, int layer) {
    return layer >= 0 && layer < h->n ? h->of[layer] : NULL;
}
int homes_which(const Homes *h, int layer, const TracePlace *p) {
    static const Home homes[] = {HOME_BEFORE, HOME_OWN, HOME_BEHIND};
    int which = 0;
    for (int i = 0; layer >= 0 && p->place && text_same(p->axis, h->axis) && i < 3; i++) {
        const char *home = homes_at(h, layer - 1 + i);
        if (home && text_has_word(home, p->place)) which |= homes[i];
    }
    return which;
}
