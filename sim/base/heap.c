/* Blocks in the order of their addresses, and a list of those that are free. See heap.h. */
#include "base/heap.h"
#include "base/arena.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, HEAD = 64, HUGE_PAGE = 1 << 21 };

typedef struct Block Block;
struct Block {
    size_t at, size; /* in the range; in a heap of sizes `this` is what stands for the address */
    bool taken;
    Block *before, *after;           /* neighbours in the range */
    Block *earlier_free, *next_free; /* of those that are free */
};
struct Heap {
    char *base; /* NULL: sizes only */
    void *map;
    size_t mapped, reserve, top;
    Block *last, *free;
};

Heap *heap_new(size_t reserve) {
    Heap *h = base_malloc(sizeof *h);
    *h = (Heap){.reserve = reserve ? reserve : SIZE_MAX / 2};
    if (!reserve) return h;
    h->mapped = reserve + HUGE_PAGE;
    h->map = mmap(NULL, h->mapped, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (h->map == MAP_FAILED)
        base_die(5,
                 "out of memory: %zu bytes could not be had; try a larger `shrink`, f32 or a "
                 "shape-only command [E0701]",
                 h->mapped);
    h->base = (char *)(((uintptr_t)h->map + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    /* first touch of memory is what costs; only a hint */
    if (reserve >= HUGE_PAGE) (void)madvise(h->base, reserve, MADV_HUGEPAGE);
    return h;
}
void heap_free(Heap *h) {
    if (!h) return;
    for (Block *b = h->last; b;) {
        Block *before = b->before;
        free(b);
        b = before;
    }
    if (h->map) munmap(h->map, h->mapped);
    free(h);
}
size_t heap_top(const Heap *h) { return h->top; }

/* ---- the list of free blocks ---- */
static void list_add(Heap *h, Block *b) {
    b->earlier_free = NULL;
    b->next_free = h->free;
    if (h->free) h->free->earlier_free = b;
    h->free = b;
}
static void list_drop(Heap *h, Block *b) {
    if (b->earlier_free) b->earlier_free->next_free = b->next_free;
    else h->free = b->next_free;
    if (b->next_free) b->next_free->earlier_free = b->earlier_free;
}
/* The smallest that is large enough; of equal ones the lowest, whatever the order of the list. */
static Block *best_fit(const Heap *h, size_t size) {
    Block *best = NULL;
    for (Block *b = h->free; b; b = b->next_free)
        if (b->size >= size &&
            (!best || b->size < best->size || (b->size == best->size && b->at < best->at)))
            best = b;
    return best;
}

/* ---- blocks ---- */
static Block *block_after(Heap *h, Block *b, size_t at, size_t size) {
    Block *n = base_malloc(sizeof *n);
    *n = (Block){.at = at, .size = size, .before = b, .after = b ? b->after : NULL};
    if (n->after) n->after->before = n;
    else h->last = n;
    if (b) b->after = n;
    return n;
}
/* At the end of the range, which a free last block is part of; NULL: no place. */
static Block *extend(Heap *h, size_t size) {
    Block *last = h->last;
    bool grows = last && !last->taken;
    size_t at = grows ? last->at : last ? last->at + last->size : 0;
    if (size > h->reserve || at > h->reserve - size) return NULL;
    if (at + size > h->top) h->top = at + size;
    if (!grows) return block_after(h, last, at, size);
    list_drop(h, last);
    last->size = size;
    return last;
}
void *heap_take(Heap *h, size_t n) {
    if (n > SIZE_MAX / 4) return NULL;
    size_t size = (n + HEAD + PAGE - 1) / PAGE * PAGE;
    Block *b = best_fit(h, size);
    if (b) {
        list_drop(h, b);
        if (b->size > size) {
            list_add(h, block_after(h, b, b->at + size, b->size - size));
            b->size = size;
        }
    } else b = extend(h, size);
    if (!b) return NULL;
    b->taken = true;
    if (!h->base) return b;
    memcpy(h->base + b->at, &b, sizeof b);
    return h->base + b->at + HEAD;
}
bool heap_has(const Heap *h, const void *p) {
    return !h->base || ((const char *)p >= h->base && (const char *)p < h->base + h->reserve);
}
/* b takes in the block behind it. */
static void join(Heap *h, Block *b) {
    Block *n = b->after;
    list_drop(h, n);
    b->size += n->size;
    b->after = n->after;
    if (b->after) b->after->before = b;
    else h->last = b;
    free(n);
}
void heap_give(Heap *h, void *p) {
    Block *b = p;
    if (h->base) memcpy(&b, (char *)p - HEAD, sizeof b);
    b->taken = false;
    list_add(h, b);
    if (b->after && !b->after->taken) join(h, b);
    if (b->before && !b->before->taken) join(h, b->before);
}
