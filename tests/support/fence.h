/* Memory of a device that is another's: at its addresses nobody can read or write; the device's own
 * functions ask fence_at where the same bytes are in reach. What is given back is used again for
 * blocks of the same size; what is taken holds NaN, and behind each block stands a mark that must
 * be there when it is given back. From one thread at a time, but fence_at. */
#ifndef SP_TESTS_FENCE_H
#define SP_TESTS_FENCE_H
#include <stdbool.h>
#include <stddef.h>

typedef struct Fence Fence;
/* Room for `bytes` of address space; fence_free gives it back. */
Fence *fence_new(size_t bytes);
void fence_free(Fence *f);
/* Where the device itself reaches what lies at p; p itself where that is not the device's. */
void *fence_at(const Fence *f, const void *p);
/* n bytes at a multiple of 64. */
void *fence_take(Fence *f, size_t n);
/* Ends the process where somebody wrote beyond the block. NULL is allowed. */
void fence_give(Fence *f, void *p);
/* Does p lie inside? */
bool fence_has(const Fence *f, const void *p);
#endif
