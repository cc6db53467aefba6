/* The same pages twice: where nobody may touch them, and where the device does. See fence.h. */
#define _GNU_SOURCE
#include "fence.h"
#include "base/arena.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64, MARK = 0xA5, NOTHING = 0xFF }; /* all ones: a NaN of each type of real numbers */

typedef struct {
    size_t at, n, size; /* where it begins, what was asked for, what it takes with its mark */
    bool taken;
} Piece;
struct Fence {
    char *base, *reach; /* both [bytes] of the same pages */
    size_t bytes, used;
    Piece *piece;
    int n, cap;
};

Fence *fence_new(size_t bytes) {
    Fence *f = base_malloc(sizeof *f);
    int pages = memfd_create("fence", 0);
    *f = (Fence){.bytes = bytes};
    if (pages < 0 || ftruncate(pages, (off_t)bytes)) abort();
    f->base = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, pages, 0);
    f->reach = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, pages, 0);
    if (f->base == MAP_FAILED || f->reach == MAP_FAILED) abort();
    close(pages);
    return f;
}
void fence_free(Fence *f) {
    munmap(f->base, f->bytes);
    munmap(f->reach, f->bytes);
    free(f->piece);
    free(f);
}
bool fence_has(const Fence *f, const void *p) {
    return (const char *)p >= f->base && (const char *)p < f->base + f->bytes;
}
void *fence_at(const Fence *f, const void *p) {
    return fence_has(f, p) ? f->reach + ((const char *)p - f->base) : (void *)(uintptr_t)p;
}
static Piece *place(Fence *f, size_t size) {
    for (int i = 0; i < f->n; i++)
        if (!f->piece[i].taken && f->piece[i].size == size) return &f->piece[i];
    if (size > f->bytes - f->used) abort();
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 64;
        f->piece = base_realloc(f->piece, (size_t)f->cap * sizeof *f->piece);
    }
    f->piece[f->n] = (Piece){.at = f->used, .size = size};
    f->used += size;
    return &f->piece[f->n++];
}
void *fence_take(Fence *f, size_t n) {
    size_t size = n / LINE * LINE + 2 * LINE;
    Piece *p = place(f, size);
    p->n = n;
    p->taken = true;
    memset(f->reach + p->at, NOTHING, n);
    memset(f->reach + p->at + n, MARK, size - n);
    return f->base + p->at;
}
void fence_give(Fence *f, void *p) {
    for (int i = 0; p && i < f->n; i++) {
        Piece *x = &f->piece[i];
        if (f->base + x->at != p) continue;
        for (size_t k = x->n; k < x->size; k++)
            if ((unsigned char)f->reach[x->at + k] != MARK) {
                fprintf(stderr, "somebody wrote %zu bytes beyond a block of %zu\n", k - x->n, x->n);
                abort();
            }
        x->taken = false;
        return;
    }
    if (p) abort();
}
