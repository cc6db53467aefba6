/* `--set key=value`: lays overrides of the command line over the YAML tree before it is read, so
 * that they are checked by the same tables as the plan. Refuses to know which keys exist: what it
 * adds bears the file name "--set", and the tables turn an unknown one into wrong usage (E0212). */
#include "plan/read.h"
#include <string.h>

/* A key whose plain value stands for a mapping: setting a key below it must not lose the value. */
static const struct {
    const char *parent, *key, *means;
} shorthand[] = {
    {"", "model", "preset"},          {"", "loss", "kind"},
    {"", "optimizer", "name"},        {"", "data_parallel", "mode"},
    {"", "context_parallel", "mode"}, {"model", "weights", "file"},
    {"plan", NULL, "style"},          {"styles", NULL, "style"},
};

typedef struct {
    Arena *a;
    Diags *d;
    Loc loc; /* of the key */
    const char *key;
} Setting;

/* The next component of "data.batch" or "plan[layers.*.w[qkv]].axis"; *s moves on. NULL at the end;
 * "" if malformed. */
static const char *next_part(Arena *a, const char **s) {
    const char *p = *s;
    if (!*p) return NULL;
    if (*p == '[') {
        int depth = 0;
        const char *q = p;
        do depth += (*q == '[') - (*q == ']');
        while (*q++ && depth);
        if (depth) return *s = "", "";
        *s = *q == '.' ? q + 1 : q;
        if ((*q == '.' && !q[1]) || (*q && *q != '.' && *q != '[')) return *s = "", "";
        return arena_strndup(a, p + 1, (size_t)(q - p - 2));
    }
    size_t n = strcspn(p, ".[");
    *s = p[n] == '.' ? p + n + 1 : p + n;
    if (p[n] == '.' && !p[n + 1]) return *s = "", "";
    return arena_strndup(a, p, n);
}

static Yaml *new_map(const Setting *s) {
    Yaml *y = ARENA_NEW(s->a, Yaml);
    y->kind = YAML_MAP;
    y->loc = s->loc;
    return y;
}

static YamlPair *add_pair(const Setting *s, Yaml *map, const char *key, Yaml *value) {
    YamlPair *all = ARENA_ARRAY(s->a, YamlPair, map->n + 1);
    if (map->n) memcpy(all, map->pair, (size_t)map->n * sizeof *all);
    map->pair = all;
    YamlPair *pair = &map->pair[map->n++];
    pair->key = key;
    pair->loc = s->loc;
    pair->value = value;
    return pair;
}

static YamlPair *find_pair(Yaml *map, const char *key) {
    for (int i = 0; i < map->n; i++)
        if (strcmp(map->pair[i].key, key) == 0) return &map->pair[i];
    return NULL;
}

/* Makes the value of a pair a mapping that a key can be set in; false if that would lose something.
 */
static bool open_pair(const Setting *s, const char *parent, YamlPair *pair) {
    Yaml *old = pair->value;
    if (old->kind == YAML_MAP) return true;
    if (yaml_is_null(old)) {
        pair->value = new_map(s);
        return true;
    }
    for (size_t i = 0; old->kind == YAML_SCALAR && i < sizeof shorthand / sizeof shorthand[0]; i++)
        if (strcmp(shorthand[i].parent, parent) == 0 &&
            (!shorthand[i].key || strcmp(shorthand[i].key, pair->key) == 0)) {
            pair->value = new_map(s);
            pair->value->loc = old->loc;
            add_pair(s, pair->value, shorthand[i].means, old)->loc = pair->loc;
            return true;
        }
    return false;
}

static bool well_formed(Arena *a, const char *key) {
    const char *part = next_part(a, &key);
    while (part && *part && *key) part = next_part(a, &key);
    return part && *part;
}

static void apply(const Setting *s, Yaml *root, Yaml *value) {
    const char *rest = s->key, *part = next_part(s->a, &rest), *parent = "";
    Yaml *map = root;
    while (rest[0]) {
        YamlPair *pair = find_pair(map, part);
        if (!pair) pair = add_pair(s, map, part, new_map(s));
        if (!open_pair(s, parent, pair)) {
            diag_error(s->d, "E0212", s->loc,
                       "set the whole of it, `--set KEY={...}`, or edit the plan",
                       "'%s' cannot be set: '%s' is %s, not a mapping", s->key, part,
                       yaml_kind_text(pair->value));
            return;
        }
        map = pair->value;
        parent = part;
        part = next_part(s->a, &rest);
    }
    YamlPair *pair = find_pair(map, part);
    if (!pair) pair = add_pair(s, map, part, value);
    pair->value = value;
    pair->loc = s->loc;
}

static void take_back(const Setting *s, Yaml *map) {
    for (const char *rest = s->key; map && map->kind == YAML_MAP;) {
        YamlPair *pair = find_pair(map, next_part(s->a, &rest));
        if (pair && !*rest) *pair = map->pair[--map->n];
        map = pair && *rest ? pair->value : NULL;
    }
}
void plan_apply_sets(Arena *a, Diags *d, Yaml *root, const PlanSet *sets, int n) {
    if (!n) return;
    /* what diagnostics show: one line for each option */
    Str text = str_new(a);
    for (int i = 0; i < n; i++) {
        const char *part[2] = {sets[i].key, sets[i].value ? sets[i].value : ""};
        for (int j = 0; j < 2; j++) {
            for (const char *c = part[j]; *c; c++) str_addn(&text, *c == '\n' ? " " : c, 1);
            str_add(&text, j ? "\n" : "=");
        }
    }
    diags_source(d, PLAN_SET_FILE, text.s, text.n);
    for (int i = 0; i < n; i++) {
        Setting s = {a, d, {PLAN_SET_FILE, i + 1, 1}, sets[i].key};
        int col = 2;
        for (const char *c = s.key; *c; c++) col += ((unsigned char)*c & 0xC0) != 0x80;
        Loc at = {PLAN_SET_FILE, i + 1, col};
        if (!well_formed(a, s.key)) {
            diag_error(d, "E0212", s.loc,
                       "--set data.batch=4, --set 'plan[layers.*.attention.wq]=colwise'",
                       "'%s' is not a key", s.key);
            continue;
        }
        if (!sets[i].value) {
            take_back(&s, root);
            continue;
        }
        Yaml *value = yaml_parse_value(a, d, at, sets[i].value, strlen(sets[i].value));
        if (value && root && root->kind == YAML_MAP) apply(&s, root, value);
    }
}
