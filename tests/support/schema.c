#include "schema.h"
#include <string.h>

typedef struct {
    Arena *a;
    const Json *root;
} Schema;
static const char *wrong(const Schema *s, const Json *rule, const Json *v, const char *at);

static bool is_type(const char *name, const Json *v) {
    static const char *const kind[] = {
        [JSON_NULL] = "null",    [JSON_BOOL] = "boolean",  [JSON_INT] = "integer",
        [JSON_REAL] = "number",  [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object"};
    return !strcmp(name, kind[v->kind]) || (v->kind == JSON_INT && !strcmp(name, "number"));
}
/* Scalars; that is all that `enum` and `const` have here. */
static bool same(const Json *a, const Json *b) {
    if (a->kind != b->kind) return false;
    return a->kind == JSON_STRING ? !strcmp(a->s, b->s) : a->kind == JSON_NULL || a->r == b->r;
}
static const char *check_type(const Schema *s, const Json *rule, const Json *v, const char *at) {
    bool ok = rule->kind == JSON_STRING && is_type(rule->s, v);
    for (int i = 0; rule->kind == JSON_ARRAY && i < rule->n; i++)
        ok |= is_type(rule->item[i]->s, v);
    return ok ? NULL : arena_printf(s->a, "%s: another type (kind %d)", at, v->kind);
}
static const char *check_enum(const Schema *s, const Json *rule, const Json *v, const char *at) {
    for (int i = 0; i < rule->n; i++)
        if (same(rule->item[i], v)) return NULL;
    return arena_printf(s->a, "%s: '%s' is none of those", at, v->s ? v->s : "?");
}
static const char *check_const(const Schema *s, const Json *rule, const Json *v, const char *at) {
    return same(rule, v) ? NULL : arena_printf(s->a, "%s: not '%s'", at, rule->s);
}
static const char *check_any(const Schema *s, const Json *rule, const Json *v, const char *at) {
    const char *last = arena_printf(s->a, "%s: no choice", at);
    for (int i = 0; i < rule->n; i++)
        if (!(last = wrong(s, rule->item[i], v, at))) return NULL;
    return last;
}
static const char *check_ref(const Schema *s, const Json *rule, const Json *v, const char *at) {
    const Json *def = json_get(json_get(s->root, "$defs"), rule->s + strlen("#/$defs/"));
    return def ? wrong(s, def, v, at) : arena_printf(s->a, "%s: no definition", rule->s);
}
static const char *check_items(const Schema *s, const Json *rule, const Json *v, const char *at) {
    for (int i = 0; v->kind == JSON_ARRAY && i < v->n; i++) {
        const char *why = wrong(s, rule, v->item[i], arena_printf(s->a, "%s[%d]", at, i));
        if (why) return why;
    }
    return NULL;
}
static const char *check_required(const Schema *s, const Json *rule, const Json *v,
                                  const char *at) {
    for (int i = 0; v->kind == JSON_OBJECT && i < rule->n; i++)
        if (!json_get(v, rule->item[i]->s))
            return arena_printf(s->a, "%s: no '%s'", at, rule->item[i]->s);
    return NULL;
}
/* `properties` of a rule, and what it says of further keys. */
static const char *check_members(const Schema *s, const Json *rule, const Json *v, const char *at) {
    const Json *known = json_get(rule, "properties"),
               *more = json_get(rule, "additionalProperties");
    for (int i = 0; v->kind == JSON_OBJECT && i < v->n; i++) {
        const char *place = arena_printf(s->a, "%s.%s", at, v->key[i]), *why = NULL;
        const Json *own = json_get(known, v->key[i]);
        if (own) why = wrong(s, own, v->value[i], place);
        else if (more && more->kind == JSON_OBJECT) why = wrong(s, more, v->value[i], place);
        else if (more && !more->b) why = arena_printf(s->a, "%s: a key too many", place);
        if (why) return why;
    }
    return NULL;
}
static const struct {
    const char *word; /* NULL function: read elsewhere, or said to people only */
    const char *(*check)(const Schema *s, const Json *rule, const Json *v, const char *at);
} words[] = {{"type", check_type},          {"enum", check_enum}, {"const", check_const},
             {"anyOf", check_any},          {"$ref", check_ref},  {"items", check_items},
             {"required", check_required},  {"properties", NULL}, {"description", NULL},
             {"additionalProperties", NULL}};
enum { N_WORDS = sizeof words / sizeof *words };

static const char *wrong(const Schema *s, const Json *rule, const Json *v, const char *at) {
    for (int i = 0; i < rule->n; i++) {
        int k = 0;
        while (k < N_WORDS && strcmp(words[k].word, rule->key[i])) k++;
        if (k == N_WORDS) return arena_printf(s->a, "this test does not know '%s'", rule->key[i]);
        const char *why = words[k].check ? words[k].check(s, rule->value[i], v, at) : NULL;
        if (why) return why;
    }
    return check_members(s, rule, v, at);
}
const char *schema_wrong(Arena *arena, const Json *root, const char *name, const Json *value) {
    Schema s = {arena, root};
    const Json *def = json_get(json_get(root, "$defs"), name);
    if (!def) return arena_printf(arena, "the schema has no '%s'", name);
    return wrong(&s, def, value, name);
}
