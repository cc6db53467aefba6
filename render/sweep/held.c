/* What the fullest rank of a trace holds. See sweep.h. */
#include "render/sweep/sweep.h"
#include <string.h>

int64_t sweep_held(const Trace *t, int64_t bytes[MEM_KINDS]) {
    Arena *a = arena_new();
    MemClass *m;
    int64_t total = -1;
    if (memory_classes(a, t, &m) > 0) {
        memcpy(bytes, m[0].bytes, sizeof m[0].bytes);
        total = m[0].total;
    }
    arena_free(a);
    return total;
}
