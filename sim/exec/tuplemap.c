/* Open addressing, a power of two of slots, at most half of them taken. */
#include "exec/tuplemap.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

void tuplemap_open(TupleMap *m, int width) { *m = (TupleMap){.width = width}; }
void tuplemap_close(TupleMap *m) {
    free(m->keys);
    free(m->vals);
}
int *tuplemap_find(TupleMap *m, const int64_t *key, bool *fresh) {
    if (2 * (m->n + 1) > m->cap) {
        TupleMap old = *m;
        m->cap = old.cap ? 2 * old.cap : 64;
        m->keys = base_malloc(base_mul((size_t)m->cap * (size_t)m->width, sizeof *m->keys));
        m->vals = base_malloc(base_mul((size_t)m->cap, sizeof *m->vals));
        for (int i = 0; i < m->cap; i++) m->vals[i] = -1;
        m->n = 0;
        for (int i = 0; i < old.cap; i++)
            if (old.vals[i] >= 0) {
                bool f;
                *tuplemap_find(m, old.keys + (size_t)i * (size_t)m->width, &f) = old.vals[i];
            }
        tuplemap_close(&old);
    }
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < m->width; i++)
        h = (h ^ (uint64_t)key[i]) * 0xff51afd7ed558ccdu, h ^= h >> 32;
    for (;; h++) {
        size_t at = (size_t)(h & (uint64_t)(m->cap - 1));
        if (m->vals[at] < 0) {
            memcpy(m->keys + at * (size_t)m->width, key, (size_t)m->width * sizeof *key);
            m->n++;
            *fresh = true;
            return &m->vals[at];
        }
        if (!memcmp(m->keys + at * (size_t)m->width, key, (size_t)m->width * sizeof *key)) {
            *fresh = false;
            return &m->vals[at];
        }
    }
}
