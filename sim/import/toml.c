/* A strict small reader of TOML. No library of Debian's keeps the places of values, which errors in
 * the user's file need. */
#include "import/toml.h"
#include "import/scan.h"
#include <ctype.h>
#include <string.h>

/* Blanks; with `lines` also line ends and comments. */
static void skip(Scan *s, bool lines) {
    for (char c; (c = scan_peek(s, 0));) {
        if (c == '#' && lines)
            while ((c = scan_peek(s, 0)) && c != '\n') scan_take(s, 1);
        else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) scan_take(s, 1);
        else return;
    }
}
static bool take(Scan *s, char c, bool lines) {
    skip(s, lines);
    if (scan_peek(s, 0) != c) return false;
    scan_take(s, 1);
    return true;
}
static void expected(Scan *s, const char *what) {
    scan_error(s, "E0110", scan_loc(s), NULL, "%s is expected here", what);
}

/* ---- keys ---- */
static const char *one_key(Scan *s) {
    skip(s, false);
    char c = scan_peek(s, 0);
    const char *key = c == '"' || c == '\'' ? scan_string(s, c == '\'', false) : scan_word(s, "-");
    if (!key) expected(s, "a key");
    return key;
}
/* The table under `key` of a table, made if it is not there; of an array of tables the last one. */
static Value *subtable(Scan *s, Value *in, const char *key, Loc at) {
    Value *v = value_get(in, key);
    if (!v) {
        v = scan_value(s, V_DICT, at);
        if (v && !scan_pair(s, in, key, at, v)) return NULL;
        return v;
    }
    if (v->kind == V_LIST && v->n && v->item[v->n - 1]->kind == V_DICT) return v->item[v->n - 1];
    if (v->kind == V_DICT) return v;
    scan_error(s, "E0107", at, NULL, "'%s' has a value already, it is no table", key);
    return NULL;
}
/* a.b.c: the table that holds the last one, which is returned in *key, *at. */
static Value *walk_key(Scan *s, Value *in, const char **key, Loc *at) {
    for (int depth = 0; in && depth < VALUE_DEPTH; depth++) {
        skip(s, false);
        *at = scan_loc(s);
        *key = one_key(s);
        if (!*key) return NULL;
        if (!take(s, '.', false)) return in;
        in = subtable(s, in, *key, *at);
    }
    scan_error(s, "E0704", scan_loc(s), NULL, "more than %d levels of tables", VALUE_DEPTH);
    return NULL;
}

/* ---- values ---- */
static Value *value(Scan *s);
static void key_value(Scan *s, Value *in) {
    const char *key;
    Loc at;
    in = walk_key(s, in, &key, &at);
    if (!in) return;
    if (!take(s, '=', false)) {
        expected(s, "'='");
        return;
    }
    Value *v = value(s);
    if (v) scan_pair(s, in, key, at, v);
}
static Value *array(Scan *s, Loc at) {
    Value *v = scan_value(s, V_LIST, at);
    scan_take(s, 1);
    if (!v || !scan_deeper(s)) return NULL;
    while (!s->failed && !take(s, ']', true)) {
        scan_push(s, v, value(s));
        if (!s->failed && !take(s, ',', true) && (skip(s, true), scan_peek(s, 0) != ']'))
            expected(s, "',' or ']'");
    }
    s->depth--;
    return s->failed ? NULL : v;
}
static Value *inline_table(Scan *s, Loc at) {
    Value *v = scan_value(s, V_DICT, at);
    scan_take(s, 1);
    if (!v || !scan_deeper(s)) return NULL;
    for (bool more = !take(s, '}', false); more && !s->failed;) {
        key_value(s, v);
        more = take(s, ',', false);
        if (!more && !s->failed && !take(s, '}', false)) expected(s, "',' or '}'");
    }
    s->depth--;
    return s->failed ? NULL : v;
}
static Value *value(Scan *s) {
    skip(s, true);
    Loc at = scan_loc(s);
    char c = scan_peek(s, 0);
    if (c == '[') return array(s, at);
    if (c == '{') return inline_table(s, at);
    if (c == '"' || c == '\'') {
        const char *text = scan_string(s, c == '\'', true);
        Value *v = text ? scan_value(s, V_STRING, at) : NULL;
        if (v) v->s = text;
        return v;
    }
    if (c == '+' || c == '-' || isdigit((unsigned char)c)) return scan_number(s);
    const char *word = scan_word(s, "-");
    bool yes = word && strcmp(word, "true") == 0;
    if (!yes && !(word && strcmp(word, "false") == 0)) {
        scan_error(s, "E0110", at, "text needs quotes", "a value is expected here");
        return NULL;
    }
    Value *v = scan_value(s, V_BOOL, at);
    if (v) v->b = yes;
    return v;
}

/* ---- lines ---- */
/* [a.b] or [[a.b]]: the table that the following lines belong to. */
static Value *header(Scan *s, Value *root) {
    scan_take(s, 1);
    bool several = scan_peek(s, 0) == '[';
    if (several) scan_take(s, 1);
    const char *key;
    Loc at;
    Value *in = walk_key(s, root, &key, &at), *v = NULL;
    if (!in) return NULL;
    if (!take(s, ']', false) || (several && !take(s, ']', false))) {
        expected(s, "']'");
        return NULL;
    }
    Value *known = value_get(in, key);
    if (!several) {
        v = subtable(s, in, key, at);
        if (v && v->b) /* by a header before */
            diag_error(s->d, "E0107", at,
                       arena_printf(s->a, "the first one is in line %d", v->loc.line),
                       "table [%s] occurs twice", key);
        if (v) v->b = true;
        return v;
    }
    if (known && (known->kind != V_LIST || (known->n && known->item[0]->kind != V_DICT))) {
        scan_error(s, "E0107", at, NULL, "'%s' has a value already, it is no array of tables", key);
        return NULL;
    }
    Value *list = known ? known : scan_value(s, V_LIST, at);
    v = list ? scan_value(s, V_DICT, at) : NULL;
    if (!v || (!known && !scan_pair(s, in, key, at, list))) return NULL;
    scan_push(s, list, v);
    return v;
}
static void end_of_line(Scan *s) {
    skip(s, false);
    char c = scan_peek(s, 0);
    if (!s->failed && c && c != '\n' && c != '\r' && c != '#') expected(s, "the end of the line");
    while ((c = scan_peek(s, 0)) && c != '\n') scan_take(s, 1);
    s->failed = false;
    s->depth = 0;
}
Value *toml_read(Arena *a, Diags *d, const char *file, const char *text, size_t n) {
    Scan s;
    if (!scan_start(&s, a, d, file, text, n)) return NULL;
    Value *root = scan_value(&s, V_DICT, scan_loc(&s)), *in = root;
    for (;; end_of_line(&s)) {
        skip(&s, true);
        if (!scan_peek(&s, 0) || s.spent) break;
        if (scan_peek(&s, 0) != '[') {
            key_value(&s, in);
            continue;
        }
        Value *table = header(&s, root);
        /* what follows a header that is not understood is looked at, and kept nowhere */
        Value *lost = ARENA_NEW(a, Value);
        *lost = (Value){.kind = V_DICT, .loc = s.file ? scan_loc(&s) : diag_nowhere};
        in = table ? table : lost;
    }
    for (int i = 0; i < root->n_pairs; i++) root->pair[i].used = false;
    return root;
}
