/* Whose part is it? See whose.h. */
#include "drive/whose.h"
#include <math.h>
#include <stdlib.h>

static bool is_of(const ValueSet *s, const WhoseTensor *t, int64_t rank) {
    ValueKey key = t->key;
    ValueShape o;
    key.rank = rank;
    if (!value_shape(s, &key, &o) || value_count(&o) != t->n) return false;
    void *x = value_read(s, &key, &o);
    bool same = x != NULL;
    for (int64_t i = 0; same && i < t->n; i++) {
        double have = o.dtype == DT_F64   ? ((double *)x)[i]
                      : o.dtype == DT_F32 ? (double)((float *)x)[i]
                                          : (double)((int64_t *)x)[i];
        same = fabs(have - t->x[i]) <= t->allowed;
    }
    free(x);
    return same;
}
void whose_add(Whose *w, const ValueSet *s, const WhoseTensor *t) {
    int64_t ranks = s->ranks ? s->ranks->p->mesh->nranks : 0;
    if (!w->n++) *w = (Whose){.n = 1, .first = t->name, .ranks = ~0ull};
    for (int64_t r = 0; r < WHOSE_RANKS; r++)
        if (w->ranks >> r & 1 && (r >= ranks || r == t->key.rank || !is_of(s, t, r)))
            w->ranks &= ~(1ull << r);
    if (!s->ref) return;
    w->asked++;
    w->whole += is_of(s, t, -1);
}
bool whose_whole(const Whose *w) { return w->asked && w->whole == w->asked; }
const char *whose_text(Arena *a, const Whose *w) {
    if (whose_whole(w)) return "whole values";
    for (int r = 0; w->n && r < WHOSE_RANKS; r++)
        if (w->ranks >> r & 1) return arena_printf(a, "what rank %d holds", r);
    return NULL;
}
