/* Looking into the tree of values. */
#include "import/value.h"
#include <string.h>

Value *value_get(Value *map, const char *key) {
    for (int i = 0; map && i < map->n_pairs; i++)
        if (strcmp(map->pair[i].key, key) == 0) {
            map->pair[i].used = true;
            return map->pair[i].value;
        }
    return NULL;
}
const char *value_kind_text(const Value *v) {
    static const char *const text[] = {
        [V_NONE] = "null",     [V_BOOL] = "true or false", [V_INT] = "a whole number",
        [V_REAL] = "a number", [V_STRING] = "text",        [V_LIST] = "a list",
        [V_TUPLE] = "a tuple", [V_DICT] = "a dict",        [V_NAME] = "a name",
        [V_ATTR] = "a name",   [V_INDEX] = "an index",     [V_CALL] = "a call",
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
        diag_error(d, "E0217", v->loc, "write the value that it has in your run", "%s", v->s);
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
