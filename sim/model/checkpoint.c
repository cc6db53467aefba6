/* How checkpoints store what is one parameter here: expert by expert, and gate and up apart. Names
 * are Hugging Face's. Refuses to know files. */
#include "model/model.h"
#include <string.h>

/* What a layer's experts are called in published files, beside the library's own "mlp". */
static const char *const containers[] = {".mlp.", ".block_sparse_moe.", ".feed_forward."};
enum { N_CONTAINERS = sizeof containers / sizeof *containers };

const char *checkpoint_alias(Arena *arena, const char *name, int i) {
    const char *at = strstr(name, containers[0]);
    if (!at || i + 1 >= N_CONTAINERS) return NULL;
    return arena_printf(arena, "%.*s%s%s", (int)(at - name), name, containers[i + 1],
                        at + strlen(containers[0]));
}
const char *checkpoint_own(Arena *arena, const char *name) {
    for (int i = 1; i < N_CONTAINERS; i++) {
        const char *at = strstr(name, containers[i]);
        if (at)
            return arena_printf(arena, "%.*s%s%s", (int)(at - name), name, containers[0],
                                at + strlen(containers[i]));
    }
    return name;
}

/* The parts of each parameter, in the order in which they lie, as two families of files call them.
 */
static const struct {
    const char *param, *part[2][2];
} parts[] = {
    {"gate_up_proj", {{"gate_proj", "up_proj"}, {"w1", "w3"}}},
    {"gate_proj", {{"gate_proj"}, {"w1"}}},
    {"up_proj", {{"up_proj"}, {"w3"}}},
    {"down_proj", {{"down_proj"}, {"w2"}}},
};
int checkpoint_parts(Arena *arena, const GTensor *t, int way, const char ***names) {
    const char *dot = strrchr(t->name, '.'), *experts = strstr(t->name, ".experts.");
    if (!experts || dot != experts + 8 || t->kind != KIND_PARAM || way < 0 || way > 1) return 0;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        if (strcmp(parts[k].param, dot + 1)) continue;
        const char *const *part = parts[k].part[way];
        int each = part[1] ? 2 : 1, n = 0;
        *names = arena_alloc(arena, base_mul((size_t)(t->size[0] * each), sizeof **names));
        for (int64_t e = 0; e < t->size[0]; e++)
            for (int i = 0; i < each; i++)
                (*names)[n++] =
                    arena_printf(arena, "%.*s.experts.%lld.%s.weight", (int)(experts - t->name),
                                 t->name, (long long)e, part[i]);
        return n;
    }
    return 0;
}
