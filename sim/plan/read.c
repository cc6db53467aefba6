/* Key tables and the readers of single values: what a number, a word, a list of axes may look like
 * in a plan. Refuses to guess: whatever two YAML readers could understand differently (010, 1_000,
 * yes) is an error with the way to write it. */
#include "plan/read.h"
#include "trace/collectives.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MANY = 50 /* complaints of one kind about one mapping; more help nobody */ };

static void *field(void *base, size_t at) { return (char *)base + at; }
static void set_loc(const Key *k, void *base, Loc l) {
    if (k->loc_at != NO_LOC) *(Loc *)field(base, k->loc_at) = l;
}

bool plan_from_set(Loc l) { return l.file && strcmp(l.file, PLAN_SET_FILE) == 0; }

Loc plan_place(const Plan *p) {
    bool option = p->mesh_loc.file && strncmp(p->mesh_loc.file, "--", 2) == 0;
    return option && p->n_lines && !p->lines[0].from_recipe ? p->lines[0].loc : p->mesh_loc;
}

/* ---- messages ---- */

/* `dp:2` alone in its line is a text to YAML. */
static const char *blank_hint(PlanReader *r, const Yaml *y, const char *wanted) {
    const char *colon = y->kind == YAML_SCALAR && !y->quoted ? strchr(y->s, ':') : NULL;
    if (!colon || colon == y->s || !colon[1] || strncmp(wanted, "a mapping", 9)) return NULL;
    return arena_printf(r->a, "put a blank behind the colon: %.*s: %s", (int)(colon - y->s), y->s,
                        colon + 1);
}
/* A mapping whose keys have dashes before them is a list to YAML. */
static const char *dash_hint(const Yaml *y, const char *wanted) {
    bool maps = y->kind == YAML_LIST && y->n && !strncmp(wanted, "a mapping", 9);
    for (int i = 0; maps && i < y->n; i++) maps = y->item[i]->kind == YAML_MAP;
    return maps ? "leave out the `-` before each key" : NULL;
}
void read_wrong_type(PlanReader *r, const char *key, const Yaml *y, const char *wanted,
                     const char *hint) {
    if (!hint) hint = blank_hint(r, y, wanted);
    if (!hint) hint = dash_hint(y, wanted);
    if (y->kind == YAML_SCALAR && !yaml_is_null(y))
        diag_error(r->d, "E0301", y->loc, hint, "'%s' must be %s, not %s'%s'", key, wanted,
                   y->quoted ? "the text " : "", y->s);
    else
        diag_error(r->d, "E0301", y->loc, hint, "'%s' must be %s, not %s", key, wanted,
                   y->kind != YAML_LIST ? yaml_kind_text(y)
                   : y->n               ? arena_printf(r->a, "a list of %d", y->n)
                                        : "an empty list");
}

const char *read_scalar(PlanReader *r, const char *key, const Yaml *y, const char *wanted) {
    if (y->kind == YAML_SCALAR && !yaml_is_null(y)) return y->s;
    read_wrong_type(r, key, y, wanted, NULL);
    return NULL;
}

/* Words of other tools for keys of ours. */
static const struct {
    const char *theirs, *ours;
} synonyms[] = {
    {"type", "preset"}, /* of several that a table knows, the first */
    {"type", "name"},
    {"type", "mode"},
    {"type", "schedule"},
    {"type", "kind"},
    {"name", "preset"},
    {"name", "mode"},
    {"name", "schedule"},
    {"name", "kind"},
    {"strategy", "mode"},
    {"out", "output"},
    {"input_layouts", "input"},
    {"input_layout", "input"},
    {"desired_input_layouts", "desired_input"},
    {"output_layouts", "output"},
    {"output_layout", "output"},
    {"desired_output_layouts", "desired_output"},
    {"input_kwarg_layouts", "kwargs"},
    {"parallelize_plan", "plan"},
    {"tp_plan", "plan"},
    {"device_mesh", "mesh"},
    {"parallelism", "mesh"},
    {"batch_size", "batch"},
    {"micro_batch_size", "batch"},
    {"seq_len", "sequence"},
    {"seq_length", "sequence"},
    {"seqlen", "sequence"},
    {"seq", "sequence"},
    {"max_model_len", "sequence"},
    {"global_batch_size", "batch"},
    {"train_batch_size", "batch"},
    {"local_batch_size", "batch"},
    {"train_micro_batch_size_per_gpu", "batch"},
    {"torch_dtype", "dtype"},
    {"params_dtype", "dtype"},
    {"num_layers", "layers"},
    {"num_hidden_layers", "layers"},
    {"config", "hf_config"},
    {"checkpoint", "weights"},
    {"precision", "dtype"},
    {"lr_rate", "lr"},
    {"learning_rate", "lr"},
    {"mesh_dim", "axis"},
    {"expected", "expect"},
    {"bugs", "faults"},
};

/* The known key that was meant: nearly it, another tool's word for it, or one that the key begins
 * with ("batch_per_rank"). NULL: none. */
static const char *nearest_key(PlanReader *r, const char *key, const char *const *names) {
    enum { LEAST = 4 }; /* letters that say which key it begins with */
    const char *near = diag_nearest(key, names), *bare = read_bare_key(r->a, key);
    for (size_t i = 0; !near && i < sizeof synonyms / sizeof synonyms[0]; i++)
        for (int j = 0; !strcmp(read_bare_key(r->a, synonyms[i].theirs), bare) && names[j]; j++)
            if (strcmp(synonyms[i].ours, names[j]) == 0) near = names[j];
    for (int j = 0; !near && names[j]; j++) {
        const char *name = read_bare_key(r->a, names[j]);
        if (strlen(name) >= LEAST && !strncmp(name, bare, strlen(name))) near = names[j];
    }
    return near;
}

/* Table in which a key that stands in the wrong place would be known, through `arg`s of read_sub
 * rows. */
static const char *belongs_under(const Key *top, const char *key) {
    for (; top->name; top++) {
        if (top->read != read_sub) continue;
        for (const Key *k = ((const Sub *)top->arg)->keys; k->name; k++)
            if (strcmp(k->name, key) == 0) return top->name;
    }
    return NULL;
}

/* Is it a key of the table? */
static bool known_in(const Key *keys, const char *key) {
    for (; keys->name; keys++)
        if (!strcmp(keys->name, key)) return true;
    return false;
}
/* Where a key stands that a section does not know: with the plan's own, or in another section. */
static const char *elsewhere(PlanReader *r, const Key *keys, const YamlPair *pair) {
    const char *key = pair->key, *under = NULL;
    const bool set = plan_from_set(pair->loc);
    int sections = 0; /* many have a `kind` or a `mode` */
    if (known_in(keys, "gradients") && coll_word(arena_strndup(r->a, key, strcspn(key, "("))))
        return arena_printf(r->a, "collectives are counted by pass: `forward: {%s: 2}`", key);
    /* anything may have a name, and the fields of a style are words of their own */
    if (!strcmp(key, "name") || known_in(keys, "desired_input")) return NULL;
    if (known_in(r->keys, key))
        return arena_printf(r->a,
                            set ? "it stands with the plan's own keys: `--set %s=...`"
                                : "it stands with the plan's own keys, not indented: `%s: ...`",
                            key);
    for (const Key *k = r->keys; k->name; k++)
        if (k->read == read_sub && known_in(((const Sub *)k->arg)->keys, key))
            under = k->name, sections++;
    if (sections != 1) return NULL;
    return arena_printf(r->a,
                        set ? "it belongs to another key: `--set %s.%s=...`"
                            : "it belongs to another key: `%s: {%s: ...}`",
                        under, key);
}
static const char *unknown_key_hint(PlanReader *r, const Key *keys, const Yaml *map,
                                    const YamlPair *pair) {
    const char *names[64], *key = pair->key;
    int n = 0;
    const char *other = keys == r->keys ? NULL : elsewhere(r, keys, pair);
    if (other) return other;
    other = plan_foreign_key(r, map, pair, keys == r->keys);
    if (other) return other;
    for (const Key *k = keys; k->name && n < 63; k++) names[n++] = k->name;
    names[n] = NULL;
    const char *near = nearest_key(r, key, names), *colon = strchr(key, ':');
    for (int i = 0; colon && colon[1] && i < n; i++)
        if (strlen(names[i]) == (size_t)(colon - key) && !strncmp(names[i], key, strlen(names[i])))
            return arena_printf(r->a, "put a blank behind the colon: %s: %s", names[i], colon + 1);
    if (near) return near;
    const char *ours = key, *under = belongs_under(keys, key), *bare = read_bare_key(r->a, key);
    for (size_t i = 0; !under && i < sizeof synonyms / sizeof synonyms[0]; i++)
        if (!strcmp(read_bare_key(r->a, synonyms[i].theirs), bare))
            ours = synonyms[i].ours, under = belongs_under(keys, ours);
    if (under) return arena_printf(r->a, "it belongs one level deeper: %s: {%s: ...}", under, ours);
    Str s = str_new(r->a);
    str_add(&s, "known here:");
    for (int i = 0; i < n; i++) str_addf(&s, " %s", names[i]);
    return s.s;
}

void read_table(PlanReader *r, const Key *keys, const char *where, void *base, Yaml *map) {
    if (yaml_is_null(map)) return;
    if (map->kind != YAML_MAP) {
        read_wrong_type(r, where ? where : "the plan", map, "a mapping of keys to values", NULL);
        return;
    }
    for (const Key *k = keys; k->name; k++)
        for (int i = 0; i < map->n; i++) {
            YamlPair *pair = &map->pair[i];
            if (strcmp(pair->key, k->name) != 0) continue;
            pair->used = true;
            set_loc(k, base, k->read == read_sub ? pair->loc : pair->value->loc);
            k->read(r, k, base, pair);
        }
    int many = 0;
    for (int i = 0; i < map->n; i++) {
        const YamlPair *pair = &map->pair[i];
        if (pair->used) continue;
        if (many++ >= MANY) {
            r->d->hidden++;
            continue;
        }
        const char *hint = unknown_key_hint(r, keys, map, pair),
                   *code = plan_from_set(pair->loc) ? "E0212" : "E0201";
        if (!where && strpbrk(pair->key, ".*")) /* a line of `plan` that stands too far left */
            hint = "lines of `plan` stand below `plan:`, indented by two blanks";
        if (where)
            diag_error(r->d, code, pair->loc, hint, "unknown key '%s' in '%s'", pair->key, where);
        else diag_error(r->d, code, pair->loc, hint, "unknown key '%s'", pair->key);
    }
}

void read_sub(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    const Sub *sub = k->arg;
    if (!sub->shorthand || pair->value->kind != YAML_SCALAR || yaml_is_null(pair->value)) {
        const char *outer = r->section;
        r->section = k->name;
        read_table(r, sub->keys, k->name, base, pair->value);
        r->section = outer;
        return;
    }
    for (const Key *in = sub->keys; in->name; in++) {
        if (strcmp(in->name, sub->shorthand) != 0) continue;
        Key as = *in;
        as.name = k->name; /* as the user has written it */
        set_loc(&as, base, as.read == read_sub ? pair->loc : pair->value->loc);
        as.read(r, &as, base, pair);
    }
}

void read_later(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    (void)base;
    if (!yaml_is_null(pair->value))
        diag_error(r->d, "E0214", pair->loc, "remove the key",
                   "'%s' is not supported by this version", k->name);
}

/* ---- numbers ---- */

static bool all_in(const char *s, const char *set) { return *s && s[strspn(s, set)] == 0; }

/* Does the text look as if a number had been meant? */
static bool numeric_like(const char *s) {
    if (*s == '+' || *s == '-') s++;
    bool dot = *s == '.';
    if (dot) s++;
    return (*s >= '0' && *s <= '9') ||
           (dot && (strcasecmp(s, "inf") == 0 || strcasecmp(s, "nan") == 0));
}

/* How the author can write the number that he seems to mean, or NULL. */
static const char *plain_number(PlanReader *r, const char *s) {
    static const struct {
        const char *prefix, *digits;
        int base;
    } form[] = {{"0x", "0123456789abcdefABCDEF", 16},
                {"0X", "0123456789abcdefABCDEF", 16},
                {"0o", "01234567", 8},
                {"0b", "01", 2}};
    for (size_t i = 0; i < sizeof form / sizeof form[0]; i++)
        if (strncmp(s, form[i].prefix, 2) == 0 && all_in(s + 2, form[i].digits) && strlen(s) < 18)
            return arena_printf(r->a, "write %lld", strtoll(s + 2, NULL, form[i].base));
    if (all_in(s, "0123456789_,'") && s[0] != '0') {
        Str t = str_new(r->a);
        for (; *s; s++)
            if (*s >= '0' && *s <= '9') str_addn(&t, s, 1);
        return arena_printf(r->a, "write %s", t.s);
    }
    char *end;
    double v = all_in(s, "+0123456789.eE") ? strtod(s, &end) : 0;
    if (v >= 1 && v < 1e15 && *end == 0 && v == floor(v) &&
        !(s[0] == '0' && all_in(s, "0123456789")))
        return arena_printf(r->a, "write %.0f", v);
    return NULL;
}

static void not_whole(PlanReader *r, const char *key, const Yaml *y, int64_t min) {
    const char *s = y->s, *why = "is not a whole number in plain decimal digits",
               *hint = plain_number(r, s);
    if (s[0] == '-' && all_in(s + 1, "0123456789"))
        why = min ? "is negative; sizes are 1 or more" : "is negative";
    else if (s[0] == '0' && all_in(s, "0123456789"))
        why = "has a leading zero (octal to some readers)",
        hint = "write it without the leading zeros";
    else if (strncmp(s, "0x", 2) == 0 || strncmp(s, "0X", 2) == 0)
        why = "is hexadecimal; sizes are written in decimal digits";
    else if (strncmp(s, "0o", 2) == 0 || strncmp(s, "0b", 2) == 0)
        why = "is octal or binary; sizes are written in decimal digits";
    else if (strpbrk(s, "_,'") && all_in(s, "0123456789_,'"))
        why = "has separators between its digits";
    else if (strpbrk(s, "eE") && all_in(s, "+-.0123456789eE")) why = "has an exponent";
    else if (strchr(s, '.') && all_in(s, "+-.0123456789"))
        why = "is a fraction; sizes are whole numbers";
    else if (s[0] == '+') why = "has a sign";
    else if (s[strspn(s, "0123456789")] && strchr("kKmMgGtTbB ", s[strspn(s, "0123456789")]))
        why = "has a unit; sizes are plain numbers";
    diag_error(r->d, "E0302", y->loc, hint, "'%s': %s %s", key, s, why);
}

bool read_whole(PlanReader *r, const char *key, const Yaml *y, int64_t min, int64_t *out) {
    if (y->kind != YAML_SCALAR || y->quoted || !numeric_like(y->s)) {
        bool unquote = y->kind == YAML_SCALAR && y->quoted && numeric_like(y->s);
        read_wrong_type(r, key, y, "a whole number", unquote ? "remove the quotes" : NULL);
        return false;
    }
    const char *s = y->s;
    if (!all_in(s, "0123456789") || (s[0] == '0' && s[1])) {
        not_whole(r, key, y, min);
        return false;
    }
    errno = 0;
    long long v = strtoll(s, NULL, 10);
    if (errno == ERANGE) {
        diag_error(r->d, "E0302", y->loc, NULL,
                   "'%s': %.40s is larger than 2^63-1 (9223372036854775807)", key, s);
        return false;
    }
    if (v < min) {
        diag_error(r->d, "E0302", y->loc, NULL, "'%s': %s is too small; at least %lld", key, s,
                   (long long)min);
        return false;
    }
    *out = v;
    return true;
}

void read_size(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    read_whole(r, k->name, pair->value, 1, field(base, k->at));
}
void read_seed(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    int64_t v;
    if (read_whole(r, k->name, pair->value, 0, &v)) *(uint64_t *)field(base, k->at) = (uint64_t)v;
}
void read_signed(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Yaml y = *pair->value;
    bool minus = y.kind == YAML_SCALAR && y.s[0] == '-' && all_in(y.s + 1, "0123456789");
    int64_t v;
    if (minus) y.s++;
    if (read_whole(r, k->name, &y, 0, &v)) *(int64_t *)field(base, k->at) = minus ? -v : v;
}

/* [-+] digits [. digits] [e [-+] digits], and nothing else that strtod would take. */
static bool decimal_form(const char *s) {
    if (*s == '-' || *s == '+') s++;
    size_t n = strspn(s, "0123456789");
    s += n;
    if (*s == '.') {
        size_t m = strspn(++s, "0123456789");
        s += m, n += m;
    }
    if (!n) return false;
    if (*s != 'e' && *s != 'E') return *s == 0;
    s++;
    if (*s == '-' || *s == '+') s++;
    return all_in(s, "0123456789");
}

void read_real(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    const Yaml *y = pair->value;
    const Range *in = k->arg;
    if (y->kind != YAML_SCALAR || y->quoted || !decimal_form(y->s)) {
        read_wrong_type(r, pair->key, y, "a number", NULL);
        return;
    }
    double v = strtod(y->s, NULL);
    bool low = v < in->min || (in->open_min && v == in->min),
         high = v > in->max || (in->open_max && v == in->max);
    if (!low && !high && isfinite(v)) *(double *)field(base, k->at) = v;
    else if (low)
        diag_error(r->d, "E0309", y->loc, NULL, "'%s': %s is out of range, it must be %s%g%s",
                   pair->key, y->s, in->open_min ? "above " : "", in->min,
                   in->open_min ? "" : " or more");
    else
        diag_error(r->d, "E0309", y->loc, NULL, "'%s': %s is out of range, it must be %s%g%s",
                   pair->key, y->s, in->open_max ? "below " : "", in->max,
                   in->open_max ? "" : " or less");
}

/* ---- text, words ---- */

void read_text(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    const char *s = read_scalar(r, k->name, pair->value, "text");
    if (s && !*s) read_wrong_type(r, k->name, pair->value, "text", NULL);
    else if (s) *(const char **)field(base, k->at) = s;
}

void read_path(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    read_text(r, k, base, pair);
    const char **path = field(base, k->at);
    if (!*path || (*path)[0] == '/' || !plan_from_set(pair->value->loc)) return;
    char *cwd = getcwd(NULL, 0);
    if (cwd) *path = arena_printf(r->a, "%s/%s", cwd, *path);
    free(cwd);
}

static const Word truth[] = {{"false", 0}, {"true", 1}, {NULL, 0}};

/* Words that YAML readers disagree about. */
static const char *truth_hint(const char *word) {
    static const char *const yes[] = {"yes", "on", "y", "1"}, *const no[] = {"no", "off", "n", "0"};
    for (size_t i = 0; word && i < sizeof yes / sizeof *yes; i++) {
        if (!strcasecmp(word, yes[i]) || !strcasecmp(word, "true")) return "write true";
        if (!strcasecmp(word, no[i]) || !strcasecmp(word, "false")) return "write false";
    }
    return NULL;
}
static int read_truth(PlanReader *r, const Key *k, const Yaml *y) {
    for (const Word *w = truth; y->kind == YAML_SCALAR && !y->quoted && w->word; w++)
        if (strcmp(w->word, y->s) == 0) return w->value;
    read_wrong_type(r, k->name, y, "true or false",
                    truth_hint(y->kind == YAML_SCALAR ? y->s : NULL));
    return -1;
}
void read_bool(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    int v = read_truth(r, k, pair->value);
    if (v >= 0) *(bool *)field(base, k->at) = v;
}
void read_flag(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    int v = read_truth(r, k, pair->value);
    if (v >= 0) *(int *)field(base, k->at) = v;
}

/* Words of other tools for words of ours. */
static const struct {
    const char *theirs, *ours;
} words_of_others[] = {
    {"float", "f32"},          {"float32", "f32"},      {"fp32", "f32"},
    {"single", "f32"},         {"double", "f64"},       {"float64", "f64"},
    {"fp64", "f64"},           {"bfloat16", "bf16"},    {"fsdp2", "fsdp"},
    {"full_shard", "fsdp"},    {"zero3", "fsdp"},       {"hybrid_shard", "hsdp"},
    {"full", "block"},         {"huggingface", "hf"},   {"transformers", "hf"},
    {"pytorch", "torchtitan"}, {"torch", "torchtitan"}, {"megatron-lm", "megatron"},
    {"llama.cpp", "gguf"},     {"ggml", "gguf"},
};
static const char *word_of_other(const char *s, const char *const *names) {
    if (!strncmp(s, "torch.", 6)) s += 6;
    for (size_t i = 0; i < sizeof words_of_others / sizeof *words_of_others; i++)
        for (int k = 0; names[k] && !strcasecmp(s, words_of_others[i].theirs); k++)
            if (!strcmp(names[k], words_of_others[i].ours)) return names[k];
    return NULL;
}
int read_word(PlanReader *r, const char *key, const Yaml *y, const Word *words) {
    /* null can be a word of its own: `activation: none` is, `null` is not */
    const char *s = read_scalar(r, key, y, "one word"), *names[32];
    if (!s) return -1;
    int n = 0;
    for (const Word *w = words; w->word; w++) {
        if (strcmp(w->word, s) == 0) return w->value;
        if (n < 31) names[n++] = w->word;
    }
    names[n] = NULL;
    Str all = str_new(r->a);
    str_add(&all, "one of:");
    for (int i = 0; i < n; i++) str_addf(&all, " %s", names[i]);
    const char *near = word_of_other(s, names);
    if (!near) near = diag_nearest(s, names);
    diag_error(r->d, "E0206", y->loc, near ? near : all.s, "unknown value '%s' for '%s%s%s'", s,
               r->section ? r->section : "", r->section ? "." : "", key);
    return -1;
}
void read_word_text(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    int v = read_word(r, k->name, pair->value, k->arg);
    for (const Word *w = k->arg; v >= 0 && w->word; w++)
        if (w->value == v) *(const char **)field(base, k->at) = w->word;
}
void read_word_int(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    int v = read_word(r, k->name, pair->value, k->arg);
    if (v >= 0) *(int *)field(base, k->at) = v;
}
void read_word_bool(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    int v = read_word(r, k->name, pair->value, k->arg);
    if (v >= 0) *(bool *)field(base, k->at) = v;
}

bool read_items(PlanReader *r, const char *key, Yaml *y, Yaml ***item, int *n) {
    if (y->kind == YAML_LIST) {
        *item = y->item;
        *n = y->n;
        return true;
    }
    if (y->kind == YAML_MAP || yaml_is_null(y)) {
        read_wrong_type(r, key, y, "a list", NULL);
        return false;
    }
    *item = ARENA_ARRAY(r->a, Yaml *, 1);
    (*item)[0] = y;
    *n = 1;
    return true;
}

/* "8, 8" or "[8, 8]" as the list that it was meant to be, [8, 8]; NULL: it is no list of numbers.
 */
static const char *as_list(PlanReader *r, const char *s) {
    Str out = str_new(r->a);
    int n = 0;
    s += strspn(s, "[ ");
    while (*s) {
        size_t k = strspn(s, "0123456789");
        if (!k) return NULL;
        str_addf(&out, "%s%.*s", n++ ? ", " : "[", (int)k, s);
        s += k;
        size_t gap = strspn(s, ", ]");
        if (*s && !gap) return NULL;
        s += gap;
    }
    return n > 1 ? arena_printf(r->a, "write the list %s]", out.s) : NULL;
}
int read_wholes(PlanReader *r, const char *key, Yaml *y, int64_t **out) {
    Yaml **item;
    int n;
    const char *list = y->kind == YAML_SCALAR ? as_list(r, y->s) : NULL;
    if (list) {
        read_wrong_type(r, key, y, "a list of whole numbers", list);
        return -1;
    }
    if (!read_items(r, key, y, &item, &n)) return -1;
    bool ok = true;
    *out = ARENA_ARRAY(r->a, int64_t, n);
    for (int i = 0; i < n; i++) {
        bool inner = item[i]->kind == YAML_LIST;
        if (inner)
            read_wrong_type(r, key, item[i], "one list of whole numbers",
                            "one list: [5, 7, 12], none within it");
        ok = !inner && read_whole(r, key, item[i], 1, &(*out)[i]) && ok;
    }
    return ok ? n : -1;
}

/* ---- axes ---- */

static const PlanPair *find_group(const Plan *p, const char *name) {
    for (int i = 0; i < p->n_groups; i++)
        if (strcmp(p->groups[i].key, name) == 0) return &p->groups[i];
    return NULL;
}
static bool is_axis(const Plan *p, const char *name) {
    for (int i = 0; i < p->n_axes; i++)
        if (strcmp(p->axes[i].name, name) == 0) return true;
    return false;
}

const char *plan_axis_nearest(const char *name, const char *const *names) {
    const char *ours = plan_axis_of_others(name), *theirs = NULL;
    for (int i = 0; names[i]; i++) {
        const char *is = plan_axis_of_others(names[i]);
        if (ours && !strcmp(names[i], ours)) return names[i];
        if (!theirs && is && (!strcmp(is, name) || (ours && !strcmp(is, ours)))) theirs = names[i];
    }
    return theirs || plan_is_axis_word(name) ? theirs : diag_nearest(name, names);
}

bool read_check_axis(PlanReader *r, const char *name, Loc loc) {
    const Plan *p = r->p;
    if (!r->axes_known || is_axis(p, name) || find_group(p, name)) return true;
    /* tp.0 and tp.1: the parts of an axis that key/value heads split */
    const char *dot = strrchr(name, '.');
    if (dot && strlen(dot) == 2 && dot[1] >= '0' && dot[1] <= '9' &&
        is_axis(p, arena_strndup(r->a, name, (size_t)(dot - name))))
        return true;
    const char **names = ARENA_ARRAY(r->a, const char *, p->n_axes + p->n_groups + 1);
    int n = 0;
    for (int i = 0; i < p->n_axes; i++) names[n++] = p->axes[i].name;
    for (int i = 0; i < p->n_groups; i++) names[n++] = p->groups[i].key;
    const char *near = plan_axis_nearest(name, names);
    Str all = str_new(r->a);
    str_add(&all, n ? "known here:" : "the mesh has no axes");
    for (int i = 0; i < n; i++) str_addf(&all, " %s", names[i]);
    if (strpbrk(name, ", +/|&()[]"))
        str_add(&all, "; a product of axes is written with stars: `ep: dp*cp`");
    else if (name[strspn(name, "0123456789")] == 0)
        str_add(&all, "; a group is as large as its axes together: `ep: dp*cp`");
    else if (n)
        str_addf(&all,
                 "; another name for some of them: `groups: {%s: %s}`; an axis more: `mesh: {%s: "
                 "2, ...}`",
                 name, names[0], name);
    diag_error(r->d, "E0204", loc, near ? near : all.s, "unknown axis or group '%s'", name);
    return false;
}

/* The next name of a product, without blanks; *s moves behind it. NULL at the end, "" for a missing
 * name. */
static const char *next_factor(Arena *a, const char **s) {
    if (!*s) return NULL;
    const char *from = *s, *star = strchr(from, '*'), *to = star ? star : from + strlen(from);
    *s = star ? star + 1 : NULL;
    while (from < to && *from == ' ') from++;
    while (to > from && to[-1] == ' ') to--;
    return arena_strndup(a, from, (size_t)(to - from));
}

static bool has_factor(Arena *a, const char *product, const char *name) {
    for (const char *f; (f = next_factor(a, &product));)
        if (strcmp(f, name) == 0) return true;
    return false;
}

const char *read_expand_axes(const PlanReader *r, const char *text) {
    Str s = str_new(r->a);
    for (const char *f; (f = next_factor(r->a, &text));) {
        const PlanPair *g = is_axis(r->p, f) ? NULL : find_group(r->p, f);
        str_addf(&s, "%s%s", s.n ? "*" : "", g ? g->text : f);
    }
    return s.s;
}

void read_check_disjoint(PlanReader *r, const char *a, const char *b, Loc loc, const char *what) {
    if (!a || !b) return;
    const char *ea = read_expand_axes(r, a), *eb = read_expand_axes(r, b);
    for (const char *f; (f = next_factor(r->a, &ea));)
        if (has_factor(r->a, eb, f))
            diag_error(r->d, "E0405", loc, NULL, "axis '%s' cuts %s", f, what);
}

bool read_check_twice(PlanReader *r, const char *key, Str *seen, const char *name, Loc loc) {
    const char *axes = read_expand_axes(r, name),
               *old = seen->n && r->axes_known ? read_expand_axes(r, seen->s) : "";
    for (const char *g; (g = next_factor(r->a, &axes));)
        if (has_factor(r->a, old, g)) {
            diag_error(r->d, "E0407", loc, NULL, "axis '%s' is used twice in '%s'", g, key);
            return false;
        }
    str_addf(seen, "%s%s", seen->n ? "*" : "", name);
    return true;
}

/* One product, checked name by name and for an axis that comes twice, directly or through a group.
 */
static bool add_product(PlanReader *r, const char *key, const Yaml *y, Str *out) {
    const char *text = read_scalar(r, key, y, "an axis or a product of axes such as dp*cp");
    if (!text) return false;
    for (const char *f; (f = next_factor(r->a, &text));) {
        if (!*f) {
            diag_error(r->d, "E0204", y->loc, "a product is written dp*cp",
                       "a name is missing in '%s'", y->s);
            return false;
        }
        if (!read_check_axis(r, f, y->loc)) return false;
        if (!read_check_twice(r, key, out, f, y->loc)) return false;
    }
    return true;
}

const char *read_axes_text(PlanReader *r, const char *key, Yaml *y) {
    Str s = str_new(r->a);
    Yaml **item;
    int n;
    bool ok = read_items(r, key, y, &item, &n);
    if (ok && n == 0)
        read_wrong_type(r, key, y, "an axis or a product of axes such as dp*cp", NULL);
    for (int i = 0; ok && i < n; i++) ok = add_product(r, key, item[i], &s);
    return ok && n ? s.s : NULL;
}
void read_axes(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    const char *s = read_axes_text(r, k->name, pair->value);
    if (s) *(const char **)field(base, k->at) = s;
}
void read_axis(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    const char *s = read_scalar(r, k->name, pair->value, "one axis or group");
    if (s && strchr(s, '*'))
        read_wrong_type(r, k->name, pair->value, "one axis or group",
                        "give the product a name under `groups`");
    else if (s && read_check_axis(r, s, pair->value->loc)) *(const char **)field(base, k->at) = s;
}

const Word read_names_words[] = {
    {"torchtitan", NAMES_TORCHTITAN}, {"torchtune", NAMES_TORCHTUNE}, {"hf", NAMES_HF},
    {"megatron", NAMES_MEGATRON},     {"gguf", NAMES_GGUF},           {NULL, 0}};

const char *plan_names_text(Names n) {
    for (const Word *w = read_names_words; w->word; w++)
        if (w->value == (int)n) return w->word;
    return "?";
}
