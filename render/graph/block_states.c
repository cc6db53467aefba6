/* Names of the states of the residual stream: x goes in, h lies between attention and MLP, y comes
 * out. One name for a value in circles, pills and boxes, of both passes. */
#include "render/graph/block_graph.h"
#include "base/text.h"
#include <string.h>

/* State `index` of `total` + 1. */
static const char *nth_state(const BlockGraph *g, int index, int total) {
    static const char *const sub[] = {"₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈", "₉"};
    if (index == 0) return "x";
    if (index == total) return "y";
    if (total == 2) return "h";
    return arena_printf(g->arena, "h%s", index <= 9 ? sub[index - 1] : "");
}

static void add_state(BlockGraph *g, int *cap, int node, const char *name) {
    *ARENA_PUSH(g->arena, g->state, g->n_states, *cap) = (BlockState){g->node[node].name, name};
}

void block_name_states(BlockGraph *g) {
    int total = 0, cap = 0;
    for (int i = 0; i < g->n_strips; i++) total += g->strip[i].to >= 0;
    for (int i = 0, k = 0; i < g->n_strips; i++) {
        const BlockStrip *s = &g->strip[i];
        if (s->to < 0) continue;
        const PartTerm *part = part_term(s->part);
        const bool alone = total == 1; /* half a block begins or ends with the state between */
        add_state(g, &cap, s->from,
                  alone && part->feeds && !part->attends ? "h" : nth_state(g, k, total));
        add_state(g, &cap, s->to,
                  alone && part->attends && !part->feeds ? "h" : nth_state(g, k + 1, total));
        k++;
    }
}

/* The layer of the value that is called as that of the drawn layer but for its number, as the
 * output of the last layer, which the head reads; -1: it is not so called. */
static int elsewhere(const BlockGraph *g, const char *drawn, const char *value) {
    int of, is;
    const char *own = words_in_layer(drawn, &of), *other = words_in_layer(value, &is);
    return own && other && of == g->layer && !strcmp(own, other) ? is : -1;
}

const char *block_state(const BlockGraph *g, const char *value) {
    const Subject s = subject_of(value);
    for (int i = 0; i < g->n_states; i++) {
        if (!strcmp(g->state[i].value, value)) return g->state[i].name;
        if (s.role == OF_GRADIENT && !strcmp(g->state[i].value, s.of))
            return words_gradient(g->arena, g->state[i].name);
    }
    for (int i = 0; i < g->n_states; i++) {
        const bool grad = s.role == OF_GRADIENT;
        const char *name = g->state[i].name;
        const int layer = elsewhere(g, g->state[i].value, grad ? s.of : value);
        if (layer >= 0)
            return arena_printf(g->arena, "%s of layer %d",
                                grad ? words_gradient(g->arena, name) : name, layer);
    }
    return NULL;
}

const char *block_value(const BlockGraph *g, const char *value) {
    const char *state = block_state(g, value);
    if (state) return state;
    const Subject s = subject_of(value);
    const bool grad = s.role == OF_GRADIENT;
    /* of the model's own its name, of gradients of q, k and v the short one, as at their boxes */
    const char *of = grad ? s.of : value, *letter = words_short(g->arena, g->t, of);
    const bool own = !strchr(of, '.'), qkv = strchr("qkv", *letter) && strcspn(letter, "_") <= 1;
    if (grad && (own || qkv)) return words_gradient(g->arena, own ? of : letter);
    if (own) return of;
    return words_value(g->arena, g->t, value);
}

const char *block_kept(const BlockGraph *g, const char *value, bool brief) {
    const char *state = block_state(g, value);
    return state ? state : words_kept(g->arena, g->t, value, brief);
}
