/* A plan that is wrong, made smaller: deletes pairs and items of its YAML one after the other, and
 * makes numbers smaller, as long as it stays wrong in the same way. Refuses to know what any key
 * means. */
#include "random_run.h"
#include "formats/yaml.h"
#include <stdlib.h>
#include <string.h>

static void emit(Str *s, const Yaml *y) {
    if (y->kind == YAML_SCALAR) {
        bool bare = !y->quoted && *y->s && !strpbrk(y->s, ":#,[]{}*\"'&!|>%@`");
        if (yaml_is_null(y)) str_add(s, "null");
        else if (bare) str_add(s, y->s);
        else str_addf(s, "\"%s\"", y->s);
        return;
    }
    str_add(s, y->kind == YAML_MAP ? "{" : "[");
    for (int i = 0; i < y->n; i++) {
        if (i) str_add(s, ", ");
        if (y->kind == YAML_MAP) str_addf(s, "\"%s\": ", y->pair[i].key);
        emit(s, y->kind == YAML_MAP ? y->pair[i].value : y->item[i]);
    }
    str_add(s, y->kind == YAML_MAP ? "}" : "]");
}
/* The plan as text: a line per key, and per line of `plan`. */
static const char *whole(Arena *a, const Yaml *root) {
    Str s = str_new(a);
    for (int i = 0; i < root->n; i++) {
        const Yaml *v = root->pair[i].value;
        bool block = v->kind == YAML_MAP && v->n &&
                     (!strcmp(root->pair[i].key, "plan") || !strcmp(root->pair[i].key, "styles"));
        str_addf(&s, "%s:", root->pair[i].key);
        if (!block) str_add(&s, " "), emit(&s, v), str_add(&s, "\n");
        else str_add(&s, "\n");
        for (int k = 0; block && k < v->n; k++) {
            str_addf(&s, "  %s: ", v->pair[k].key);
            emit(&s, v->pair[k].value);
            str_add(&s, "\n");
        }
    }
    return s.s;
}
typedef struct {
    Arena *a;
    Yaml *root;
    bool (*wrong)(void *, const char *);
    void *arg;
    bool smaller;
} Shrink;
static bool still(Shrink *s) { return s->wrong(s->arg, whole(s->a, s->root)); }
static void shrink_node(Shrink *s, Yaml *y);
static void shrink_map(Shrink *s, Yaml *y) {
    for (int i = y->n - 1; i >= 0; i--) {
        YamlPair cut = y->pair[i];
        memmove(y->pair + i, y->pair + i + 1, sizeof cut * (size_t)(--y->n - i));
        if (still(s)) {
            s->smaller = true;
            continue;
        }
        memmove(y->pair + i + 1, y->pair + i, sizeof cut * (size_t)(y->n++ - i));
        y->pair[i] = cut;
        shrink_node(s, cut.value);
    }
}
static void shrink_list(Shrink *s, Yaml *y) {
    for (int i = y->n - 1; i >= 0; i--) {
        Yaml *cut = y->item[i];
        memmove(y->item + i, y->item + i + 1, sizeof cut * (size_t)(--y->n - i));
        if (still(s)) {
            s->smaller = true;
            continue;
        }
        memmove(y->item + i + 1, y->item + i, sizeof cut * (size_t)(y->n++ - i));
        y->item[i] = cut;
        shrink_node(s, cut);
    }
}
static void shrink_node(Shrink *s, Yaml *y) {
    if (y->kind == YAML_MAP) shrink_map(s, y);
    else if (y->kind == YAML_LIST) shrink_list(s, y);
    else if (strspn(y->s, "0123456789") == strlen(y->s) && *y->s) {
        for (long n = 1; n < atol(y->s); n++) {
            const char *old = y->s;
            y->s = arena_printf(s->a, "%ld", n);
            if (still(s)) {
                s->smaller = true;
                return;
            }
            y->s = old;
            if (n == 8) break;
        }
    }
}
const char *shrink_plan(Arena *a, const char *text, bool (*wrong)(void *, const char *),
                        void *arg) {
    Shrink s = {.a = a, .wrong = wrong, .arg = arg};
    s.root = yaml_parse(a, diags_new(a), "plan.yaml", text, strlen(text));
    if (!s.root || s.root->kind != YAML_MAP || !still(&s)) return text;
    do {
        s.smaller = false;
        shrink_map(&s, s.root);
    } while (s.smaller);
    return whole(a, s.root);
}
