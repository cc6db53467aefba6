/* JSON read through jansson and written as a stream. The only file that knows jansson.
 * Refuses what jansson lets pass and we could not stand: nesting deeper than 64, more than 2^20
 * values in one text. */
/* Both headers name the kinds of values alike; inside this file jansson's are called otherwise. */
#define JSON_NULL JANSSON_NULL
#define JSON_REAL JANSSON_REAL
#define JSON_STRING JANSSON_STRING
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_OBJECT JANSSON_OBJECT
#include <jansson.h>
#undef JSON_NULL
#undef JSON_REAL
#undef JSON_STRING
#undef JSON_ARRAY
#undef JSON_OBJECT
#include "formats/json.h"
#include "base/text.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_DEPTH = 64, JSON_VALUES = 1 << 20 };

/* ---- reading ---- */

static void place_of(const char *text, size_t n, size_t at, int *line, int *col) {
    int l = 1, c = 1;
    if (at > n) at = n;
    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') l++, c = 1;
        else if (((unsigned char)text[i] & 0xC0) != 0x80) c++;
    }
    *line = l;
    *col = c;
}

/* jansson refuses whole numbers beyond int64. They shall be reals: the text gets ".0" behind each
 * of them. */
typedef struct {
    Str out;
    int n, cap;
    size_t *at; /* where, in `out`, two bytes were put in */
} Patched;

static bool beyond_int64(const char *s, size_t n) {
    const char *limit = "9223372036854775807";
    if (s[0] == '-') s++, n--, limit = "9223372036854775808";
    return n > 19 || (n == 19 && memcmp(s, limit, 19) > 0);
}

static size_t skip_string(const char *t, size_t n, size_t i) {
    for (i++; i < n && t[i] != '"'; i++) i += t[i] == '\\';
    return i + 1;
}

/* One walk over the text, outside of strings: depth, values, and the numbers that need patching.
 * NULL, or what is too much, at *at. */
static const char *scan(const char *t, size_t n, Patched *p, size_t *at) {
    int depth = 0, values = 0;
    size_t done = 0;
    for (size_t i = 0; i < n;) {
        if (t[i] == '"') {
            i = skip_string(t, n, i);
        } else if (t[i] == '[' || t[i] == '{') {
            *at = i++;
            if (++depth > JSON_DEPTH) return "nested deeper than 64";
            if (++values > JSON_VALUES) return "more than 1048576 values";
        } else if (t[i] == ',') {
            *at = i++;
            if (++values > JSON_VALUES) return "more than 1048576 values";
        } else if (t[i] == ']' || t[i] == '}') {
            depth--, i++;
        } else if (t[i] == '-' || (t[i] >= '0' && t[i] <= '9')) {
            size_t from = i++;
            while (i < n && t[i] >= '0' && t[i] <= '9') i++;
            bool whole = i == n || !t[i] || !strchr(".eE", t[i]);
            if (!whole || !beyond_int64(t + from, i - from)) {
                while (i < n && t[i] && strchr("0123456789.eE+-", t[i])) i++;
                continue;
            }
            str_addn(&p->out, t + done, i - done);
            *ARENA_PUSH(p->out.a, p->at, p->n, p->cap) = p->out.n;
            str_add(&p->out, ".0");
            done = i;
        } else {
            i++;
        }
    }
    if (p->n) str_addn(&p->out, t + done, n - done);
    return NULL;
}

static Json *convert(Arena *a, const json_t *j) {
    Json *r = ARENA_NEW(a, Json);
    switch (json_typeof(j)) {
    case JANSSON_NULL: r->kind = JSON_NULL; break;
    case JSON_TRUE:
    case JSON_FALSE:
        r->kind = JSON_BOOL;
        r->b = json_typeof(j) == JSON_TRUE;
        break;
    case JSON_INTEGER:
        r->kind = JSON_INT;
        r->i = json_integer_value(j);
        r->r = (double)r->i;
        break;
    case JANSSON_REAL:
        r->kind = JSON_REAL;
        r->r = json_real_value(j);
        break;
    case JANSSON_STRING:
        r->kind = JSON_STRING;
        r->s = arena_strndup(a, json_string_value(j), json_string_length(j));
        break;
    case JANSSON_ARRAY:
        r->kind = JSON_ARRAY;
        r->n = (int)json_array_size(j);
        r->item = ARENA_ARRAY(a, Json *, r->n);
        for (int i = 0; i < r->n; i++) r->item[i] = convert(a, json_array_get(j, (size_t)i));
        break;
    case JANSSON_OBJECT:
        r->kind = JSON_OBJECT;
        r->key = ARENA_ARRAY(a, const char *, json_object_size(j));
        r->value = ARENA_ARRAY(a, Json *, json_object_size(j));
        /* jansson keeps the order of the text */
        for (void *it = json_object_iter((json_t *)j); it;
             it = json_object_iter_next((json_t *)j, it)) {
            r->key[r->n] = arena_strdup(a, json_object_iter_key(it));
            r->value[r->n++] = convert(a, json_object_iter_value(it));
        }
        break;
    }
    return r;
}

/* jansson reports the end of the offending token, and quotes it: where the token begins is the
 * better place. */
static size_t token_start(const json_error_t *e) {
    size_t at = e->position > 0 ? (size_t)e->position : 0;
    const char *near = strstr(e->text, "near '");
    size_t len = near ? strlen(near + 6) : 0;
    if (len) len--; /* the closing quote */
    return at > len ? at - len : 0;
}

/* jansson names a token of at most 20 bytes only. The key that comes twice, with its quotes, ends
 * at byte `end` of t: where it begins. */
static size_t key_start(const char *t, size_t end) {
    size_t i = end < 2 ? 0 : end - 2;
    for (; i > 0; i--) {
        size_t slashes = 0;
        while (slashes < i && t[i - 1 - slashes] == '\\') slashes++;
        if (t[i] == '"' && slashes % 2 == 0) break;
    }
    return i;
}
static const char *twice_text(Arena *a, const char *key, size_t n) {
    enum { SHOWN = 160 };
    size_t k = n < SHOWN ? n : SHOWN;
    while (k < n && k > 0 && ((unsigned char)key[k] & 0xC0) == 0x80) k--; /* whole characters */
    return arena_printf(a, "duplicate object key %.*s%s", (int)k, key, k < n ? "..." : "");
}

/* What is wrong, without Jansson's "near 'TOKEN'": the file may be of another kind, and its text is
 * nobody's business. The place is told. */
static const char *without_token(Arena *arena, const char *text) {
    const char *near = strstr(text, " near '");
    return *text ? arena_strndup(arena, text, near ? (size_t)(near - text) : strlen(text))
                 : "not JSON";
}
Json *json_parse(Arena *arena, const char *text, size_t n, const char **error, int *line,
                 int *col) {
    size_t skip = n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0, at = 0;
    text += skip, n -= skip;
    *line = *col = 0;
    Patched p = {.out = str_new(arena)};
    *error = scan(text, n, &p, &at);
    if (*error) {
        place_of(text, n, at, line, col);
        return NULL;
    }
    json_set_alloc_funcs(base_malloc, free); /* it would report a lack of memory as bad text */
    json_error_t e;
    json_t *j = p.n ? json_loadb(p.out.s, p.out.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e)
                    : json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (!j) {
        bool twice = json_error_code(&e) == json_error_duplicate_key && e.position > 0;
        const char *read = p.n ? p.out.s : text;
        at = twice ? key_start(read, (size_t)e.position) : token_start(&e);
        size_t added = 0;
        while ((int)(added / 2) < p.n && p.at[added / 2] < at) added += 2;
        *error = twice ? twice_text(arena, read + at, (size_t)e.position - at)
                       : without_token(arena, e.text);
        place_of(text, n, at - added, line, col);
        return NULL;
    }
    Json *r = convert(arena, j);
    json_decref(j);
    return r;
}

Json *json_get(const Json *object, const char *key) {
    if (!object || object->kind != JSON_OBJECT) return NULL;
    for (int i = 0; i < object->n; i++)
        if (strcmp(object->key[i], key) == 0) return object->value[i];
    return NULL;
}

/* ---- writing ---- */

JsonWriter json_writer(Arena *arena) {
    JsonWriter w = {.s = str_new(arena)};
    w.first[0] = true;
    return w;
}

static void before(JsonWriter *w, const char *key) {
    if (!w->first[w->depth]) str_addn(&w->s, ",", 1);
    w->first[w->depth] = false;
    if (!key) return;
    text_add_json(&w->s, key);
    str_addn(&w->s, ":", 1);
}

void json_open(JsonWriter *w, const char *key, char bracket) {
    before(w, key);
    str_addn(&w->s, &bracket, 1);
    assert(w->depth + 1 < JSON_DEPTH);
    w->first[++w->depth] = true;
}
void json_close(JsonWriter *w, char bracket) {
    assert(w->depth > 0);
    /* either bracket of the pair is understood */
    char c = bracket == '{' ? '}' : bracket == '[' ? ']' : bracket;
    str_addn(&w->s, &c, 1);
    w->depth--;
}
void json_str(JsonWriter *w, const char *key, const char *value) {
    before(w, key);
    if (value) text_add_json(&w->s, value);
    else str_add(&w->s, "null");
}
void json_int(JsonWriter *w, const char *key, int64_t value) {
    before(w, key);
    str_addf(&w->s, "%lld", (long long)value);
}

void json_real(JsonWriter *w, const char *key, double value) {
    if (isnan(value) || isinf(value)) {
        json_str(w, key, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    before(w, key);
    text_add_real(&w->s, value);
}
void json_bool(JsonWriter *w, const char *key, bool value) {
    before(w, key);
    str_add(&w->s, value ? "true" : "false");
}
void json_null(JsonWriter *w, const char *key) { json_str(w, key, NULL); }
void json_raw(JsonWriter *w, const char *key, const char *json) {
    before(w, key);
    str_add(&w->s, json);
}
void json_break(JsonWriter *w) {
    str_add(&w->s, w->first[w->depth] ? "\n  " : ",\n  ");
    w->first[w->depth] = true;
}
void json_newline(JsonWriter *w) {
    assert(w->depth == 0);
    str_addn(&w->s, "\n", 1);
    w->first[0] = true;
}
