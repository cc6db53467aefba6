/* Addresses of blocks: a bit that no address of this machine has, a number, an offset. */
#include "exec/gpu_blocks.h"
#include "base/arena.h"
#include <assert.h>
#include <stdlib.h>

static const uintptr_t OURS = (uintptr_t)1 << 62;
enum { OFFSET_BITS = 40, MOST = 1 << 21 };

void *gpu_blocks_add(GpuBlocks *b, void *p, size_t bytes) {
    if (b->n == b->cap && !b->n_spare) {
        b->cap = 2 * b->cap + 64;
        b->block = base_realloc(b->block, base_mul((size_t)b->cap, sizeof *b->block));
        b->spare = base_realloc(b->spare, base_mul((size_t)b->cap, sizeof *b->spare));
    }
    int at = b->n_spare ? b->spare[--b->n_spare] : b->n++;
    assert(at < MOST && bytes < (size_t)1 << OFFSET_BITS);
    b->block[at] = (GpuBlock){.p = p, .bytes = bytes};
    return (void *)(OURS | (uintptr_t)at << OFFSET_BITS);
}
GpuBlock *gpu_blocks_find(const GpuBlocks *b, const void *at, size_t *offset) {
    uintptr_t a = (uintptr_t)at;
    if (!(a & OURS)) return NULL;
    *offset = a & (((uintptr_t)1 << OFFSET_BITS) - 1);
    GpuBlock *x = &b->block[(a & ~OURS) >> OFFSET_BITS];
    assert(x < b->block + b->n && x->p && *offset <= x->bytes);
    return x;
}
void gpu_blocks_drop(GpuBlocks *b, GpuBlock *which) {
    free(which->host);
    *which = (GpuBlock){0};
    b->spare[b->n_spare++] = (int)(which - b->block);
}
void gpu_blocks_free(GpuBlocks *b) {
    for (int i = 0; i < b->n; i++) free(b->block[i].host);
    free(b->block);
    free(b->spare);
    *b = (GpuBlocks){0};
}
