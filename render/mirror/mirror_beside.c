/* Which nodes of a strip run beside the others in a module of their own, as a shared expert does
 * beside the routed ones. Knows modules by the names of values only, and no model. */
#include "render/mirror/mirror.h"
#include "base/text.h"
#include <string.h>

/* The value that a node makes, by the name it has with what is still added to it:
 * "a.moe.down.product" is a.moe.down without its bias, and no module is called so. */
static const char *whole_name(const BlockGraph *g, const char *value) {
    size_t n = text_before(value, ".product");
    return n ? arena_strndup(g->arena, value, n) : value;
}
/* Does the value belong to a module inside the one that value `other` belongs to? "a.moe.shared.up"
 * does, to that of "a.moe.list". */
static bool inside(const char *value, const char *other) {
    size_t n = (size_t)(words_leaf(other) - other), k = (size_t)(words_leaf(value) - value);
    return k > n && n > 0 && !strncmp(value, other, n);
}
/* above[i * n + k]: does node i of the strip read, at once or through others, what node k makes? */
static const bool *ancestors(const BlockGraph *g, const BlockStrip *b) {
    const int n = b->n;
    bool *above = ARENA_ARRAY(g->arena, bool, base_mul((size_t)n, (size_t)n) + 1);
    for (int i = 0; i < n; i++) /* in step order */
        for (int q = 0; q < g->node[b->node[i]].n_in; q++)
            for (int k = 0; k < n; k++) {
                if (block_real(g, g->node[b->node[i]].in[q]) != b->node[k]) continue;
                above[i * n + k] = true;
                for (int j = 0; j < n; j++) above[i * n + j] |= above[k * n + j];
            }
    return above;
}
/* Is node k of the strip one of a chain that runs beside others, in a module of its own: is there
 * an op of the module around it that neither reads of the chain nor is read by it? A move is none:
 * it bears the name of what it moves. */
static bool runs_beside(const BlockGraph *g, const BlockStrip *b, const bool *above, int k) {
    const char *path = whole_name(g, g->node[b->node[k]].name);
    size_t n = (size_t)(words_leaf(path) - path);
    for (int i = 0; i < b->n; i++) {
        const BlockNode *x = &g->node[b->node[i]];
        if (x->kind == NODE_INPUT || strncmp(x->name, path, n)) continue; /* of the chain */
        for (int j = 0; j < b->n; j++) {
            const BlockNode *y = &g->node[b->node[j]];
            bool apart = !above[i * b->n + j] && !above[j * b->n + i];
            if (y->kind == NODE_OP && apart && inside(path, y->name)) return true;
        }
    }
    return false;
}
void mirror_beside(const BlockGraph *g, const BlockStrip *b, int *level, bool *beside) {
    enum { APART = 256 };
    const bool *above = ancestors(g, b);
    int join = -1;
    for (int k = 0; k < b->n; k++)
        beside[k] = g->node[b->node[k]].kind != NODE_INPUT && runs_beside(g, b, above, k);
    for (int k = 0; k < b->n; k++)
        for (int q = 0; q < g->node[b->node[k]].n_in && !beside[k]; q++)
            for (int j = 0; j < b->n; j++)
                if (beside[j] && block_real(g, g->node[b->node[k]].in[q]) == b->node[j] &&
                    (join < 0 || level[k] < join))
                    join = level[k];
    for (int k = 0; k < b->n; k++) {
        if (join < 0) beside[k] = false;
        level[k] = beside[k] ? (join - 1) * APART + 1 + level[k] : level[k] * APART;
    }
}
