/* Blocks of a GPU's memory by addresses of their own, which stay when what lies there moves: a
 * block of bf16 numbers takes two bytes for each from when it was rounded. Nobody can follow such
 * an address; p + offset (in bytes of the wide numbers) is one too. Refuses to touch the GPU. */
#ifndef SP_EXEC_GPU_BLOCKS_H
#define SP_EXEC_GPU_BLOCKS_H
#include "exec/gpu_lanes.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct GpuBlock {
    void *p;      /* in the GPU's memory; NULL: none is here */
    size_t bytes; /* of its numbers when they are wide */
    bool half;    /* they lie there in bf16, in half of the bytes */
    GpuUse use;   /* by which lanes */
    void *host;   /* what it holds, for the host to read; NULL: nobody asked since it was written */
} GpuBlock;
typedef struct GpuBlocks {
    GpuBlock *block;
    int n, cap, *spare, n_spare;
} GpuBlocks;
/* The address of a new block, whose memory stays the caller's. */
void *gpu_blocks_add(GpuBlocks *b, void *p, size_t bytes);
/* The block that an address is in, and how far in, in bytes of wide numbers; NULL: it is no such
 * address. Until the next is added. */
GpuBlock *gpu_blocks_find(const GpuBlocks *b, const void *at, size_t *offset);
/* It is there no more: its address may be given to another. */
void gpu_blocks_drop(GpuBlocks *b, GpuBlock *which);
void gpu_blocks_free(GpuBlocks *b);
#endif
