/* What pictures of memory share: the names and colours of what lies there, and the words for how
 * much there is room for. */
#ifndef SP_RENDER_MEMORY_INKS_H
#define SP_RENDER_MEMORY_INKS_H
#include "render/memory/memory.h"

typedef struct {
    const char *name; /* "gradients of parameters" */
    Role fill, text;  /* text: on the fill */
} MemInk;
extern const MemInk memory_inks[MEM_KINDS];
/* "capacity of h100-sxm: 80 GB = 74.5 GiB" */
const char *memory_capacity_words(Arena *a, const Trace *t);
#endif
