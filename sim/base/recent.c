/* A ring of rows. See recent.h. */
#include "base/recent.h"
#include <assert.h>
#include <string.h>

Recent recent_new(Arena *arena, int most, size_t size) {
    assert(most > 0 && size > 0);
    return (Recent){
        .row = arena_alloc(arena, base_mul((size_t)most, size)), .size = size, .most = most};
}
void *recent_find(Recent *r, RecentSame *same, const void *want) {
    const int n = r->n < r->most ? r->n : r->most;
    for (int i = 0, at = r->last; i < n; i++) {
        at = at + 1 < n ? at + 1 : 0;
        if (!same(r->row + (size_t)at * r->size, want)) continue;
        r->last = at;
        return r->row + (size_t)at * r->size;
    }
    return NULL;
}
void *recent_add(Recent *r, const void *row) {
    r->last = r->n++ % r->most;
    return memcpy(r->row + (size_t)r->last * r->size, row, r->size);
}
