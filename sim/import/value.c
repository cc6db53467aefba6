/* Looking into the tree of values. */
#include "import/value.h"
#include <string.h>

enum { FEW = 16 }; /* pairs that are looked through one by one */

/* The slot in which the key is, or the empty one where it would be; n_slots is a power of two. */
static int slot_of(const Value *map, const char *key) {
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (const char *p = key; *p; p++) h = (h ^ (unsigned char)*p) * 1099511628211u;
    int at = (int)(h & (uint64_t)(map->n_slots - 1));
    while (map->slot[at] && strcmp(map->pair[map->slot[at] - 1].key, key) != 0)
        at = (at + 1) & (map->n_slots - 1);
    return at;
}
static void index_pair(Value *map, int i) {
    int at = slot_of(map, map->pair[i].key);
    if (!map->slot[at]) map->slot[at] = i + 1;
    map->n_indexed = i + 1;
}
void value_add(Arena *a, Value *map, ValuePair pair) {
    *ARENA_PUSH(a, map->pair, map->n_pairs, map->cap_pairs) = pair;
    if (map->n_pairs <= FEW) return;
    if (map->n_indexed + 1 == map->n_pairs && 2 * map->n_pairs <= map->n_slots) {
        index_pair(map, map->n_pairs - 1);
        return;
    }
    map->n_slots = 4 * FEW;
    while (map->n_slots < 4 * map->n_pairs) map->n_slots *= 2;
    map->slot = ARENA_ARRAY(a, int, map->n_slots);
    for (int i = 0; i < map->n_pairs; i++) index_pair(map, i);
}
ValuePair *value_pair(const Value *map, const char *key) {
    if (map->n_slots && map->n_indexed == map->n_pairs) {
        int i = map->slot[slot_of(map, key)];
        return i ? &map->pair[i - 1] : NULL;
    }
    for (int i = 0; i < map->n_pairs; i++)
        if (strcmp(map->pair[i].key, key) == 0) return &map->pair[i];
    return NULL;
}
void value_set(Arena *a, Value *map, ValuePair pair) {
    ValuePair *there = value_pair(map, pair.key);
    if (there) *there = pair;
    else value_add(a, map, pair);
}
Value *value_get(Value *map, const char *key) {
    ValuePair *p = map ? value_pair(map, key) : NULL;
    if (p) p->used = true;
    return p ? p->value : NULL;
}
const char *value_kind_text(const Value *v) {
    static const char *const text[] = {[V_NONE] = "null",
                                       [V_BOOL] = "true or false",
                                       [V_INT] = "a whole number",
                                       [V_REAL] = "a number",
                                       [V_STRING] = "text",
                                       [V_LIST] = "a list",
                                       [V_TUPLE] = "a tuple",
                                       [V_DICT] = "a dict",
                                       [V_NAME] = "a name",
                                       [V_ATTR] = "a name",
                                       [V_INDEX] = "an index",
                                       [V_CALL] = "a call",
                                       [V_EACH] = "the number of a layer",
                                       [V_OP] = "code",
                                       [V_CODE] = "code"};
    return text[v->kind];
}
const char *value_dotted(Arena *a, const Value *v) {
    const char *text = NULL;
    for (int k = 0; k < 16 && (v->kind == V_NAME || v->kind == V_ATTR); k++, v = v->item[0]) {
        text = text ? arena_printf(a, "%s.%s", v->s, text) : v->s;
        if (v->kind == V_NAME) return text;
    }
    return NULL;
}
const char *value_last_name(const Value *v) {
    return v->kind == V_NAME || v->kind == V_ATTR ? v->s : NULL;
}
bool value_is_code(Diags *d, const Value *v) {
    if (v->kind == V_CODE)
        diag_error(d, "E0217", v->loc,
                   "write the value that it has in your run, here or as an assignment above", "%s",
                   v->s);
    return v->kind == V_CODE;
}
void value_unknown(Diags *d, const Value *map, const char *what, const char *const *known) {
    for (int i = 0; i < map->n_pairs; i++) {
        const ValuePair *p = &map->pair[i];
        if (p->used) continue;
        const char *near = diag_nearest(p->key, known);
        diag_error(d, "E0201", p->loc,
                   near ? arena_printf(d->arena, "did you mean '%s'?", near) : NULL,
                   "unknown %s '%s'", what, p->key);
    }
}
