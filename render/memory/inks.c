/* Names and colours of memory. See inks.h. */
#include "render/memory/inks.h"
#include <string.h>

const MemInk memory_inks[MEM_KINDS] = {
    [MEM_PARAMS] = {"parameters", ROLE_SHARD, ROLE_SHARD_TEXT},
    [MEM_OPTIMIZER] = {"optimizer state", ROLE_SHARD_1, ROLE_SHARD_TEXT_1},
    [MEM_GRADS] = {"gradients of parameters", ROLE_SHARD_2, ROLE_SHARD_TEXT_2},
    [MEM_ACTS] = {"activations", ROLE_LIVE, ROLE_LIVE_TEXT},
    [MEM_GATHERED] = {"parameters gathered for use", ROLE_SHARD_3, ROLE_SHARD_TEXT_3}};

const char *memory_capacity_words(Arena *a, const Trace *t) {
    const char *line = t->hardware;
    const int64_t capacity = memory_capacity(t);
    int name = line && strchr(line, ':') ? (int)strcspn(line, ":") : 0;
    const char *of = name ? arena_printf(a, " of %.*s", name, line) : "",
               *text = bytes_text(capacity, a);
    if (capacity % 1000000000) return arena_printf(a, "capacity%s: %s", of, text);
    return arena_printf(a, "capacity%s: %lld GB = %s", of, (long long)(capacity / 1000000000),
                        text);
}
