/* Memory for large arrays that come and go: one range, the best free place, neighbours joined. What
 * it takes from the system follows from the sizes asked for and their order alone, so a heap of
 * sizes only (which has no memory) tells beforehand how large the range must be. Refuses small
 * arrays and more than one thread at a time: malloc is for those. */
#ifndef SP_BASE_HEAP_H
#define SP_BASE_HEAP_H
#include <stdbool.h>
#include <stddef.h>

typedef struct Heap Heap;

/* A heap over `reserve` bytes of address space, of which what is never taken is never touched. 0: a
 * heap of sizes only, whose addresses must not be followed. */
Heap *heap_new(size_t reserve);
/* Gives all of it back; NULL is allowed. */
void heap_free(Heap *h);
/* n bytes, aligned to 64, contents undefined. NULL if the range has no place for them. */
void *heap_take(Heap *h, size_t n);
/* Takes back what heap_take returned, once. */
void heap_give(Heap *h, void *p);
/* Did heap_take return p? */
bool heap_has(const Heap *h, const void *p);
/* How far the range was ever used, in bytes. */
size_t heap_top(const Heap *h);
#endif
