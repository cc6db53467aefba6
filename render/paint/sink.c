/* Bytes that grow in an arena. See paint.h. */
#include "render/paint/paint.h"
#include <string.h>

void sink_add(Sink *s, const void *p, size_t n) {
    if (s->n + n + 1 > s->cap) {
        size_t cap = s->cap * 2 > s->n + n + 1 ? s->cap * 2 : s->n + n + 1;
        unsigned char *q = arena_alloc(s->arena, cap);
        if (s->n) memcpy(q, s->p, s->n);
        s->p = q;
        s->cap = cap;
    }
    memcpy(s->p + s->n, p, n);
    s->n += n;
    s->p[s->n] = 0;
}
