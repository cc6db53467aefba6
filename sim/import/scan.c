/* One cursor for all foreign text. */
#include "import/scan.h"
#include "base/utf8.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4096 }; /* of one string, as plans have it */

bool scan_start(Scan *s, Arena *a, Diags *d, const char *file, const char *text, size_t n) {
    if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3, n -= 3;
    *s = (Scan){.a = a, .d = d, .file = file, .p = text, .end = text + n, .line = 1, .col = 1};
    diags_source(d, file, text, n);
    Scan at = *s;
    while (at.p < at.end) {
        int32_t code;
        size_t k = utf8_char(at.p, (size_t)(at.end - at.p), &code);
        if (code <= 0) {
            diag_error(d, "E0106", scan_loc(&at), "save the file as UTF-8",
                       code ? "byte 0x%02X is not UTF-8" : "the text contains a NUL byte (0x%02X)",
                       (unsigned char)*at.p);
            return false;
        }
        scan_take(&at, k);
    }
    return true;
}
Loc scan_loc(const Scan *s) { return (Loc){s->file, s->line, s->col}; }
char scan_peek(const Scan *s, size_t k) { return s->p + k < s->end ? s->p[k] : 0; }
void scan_take(Scan *s, size_t bytes) {
    for (; bytes && s->p < s->end; bytes--, s->p++) {
        if (*s->p == '\n') s->line++, s->col = 1;
        else if (((unsigned char)s->p[0] & 0xC0) != 0x80) s->col++;
    }
}
bool scan_starts(const Scan *s, const char *word) {
    size_t n = strlen(word);
    return (size_t)(s->end - s->p) >= n && memcmp(s->p, word, n) == 0;
}

void scan_error(Scan *s, const char *code, Loc at, const char *hint, const char *fmt, ...) {
    if (s->failed || s->spent) return;
    s->failed = true;
    va_list ap;
    va_start(ap, fmt);
    diag_error(s->d, code, at, hint, "%s", arena_vprintf(s->a, fmt, ap));
    va_end(ap);
}
static void spend(Scan *s, Loc at, const char *what, int most) {
    scan_error(s, "E0704", at,
               s->names ? "leave modules and parameters out that are like others" : NULL,
               "more than %d %s", most, what);
    s->spent = true;
}
Value *scan_value(Scan *s, DatumKind kind, Loc at) {
    int most = s->names ? VALUE_NAMES * VALUE_NAMED : VALUE_PAIRS * VALUE_EACH;
    if (s->values++ >= most) {
        spend(s, at, "values in one file", most);
        return NULL;
    }
    Value *v = ARENA_NEW(s->a, Value);
    v->kind = kind;
    v->loc = at;
    return v;
}
void scan_push(Scan *s, Value *list, Value *item) {
    if (item && s->names && list->n >= VALUE_ITEMS)
        spend(s, item->loc, "items in one list", VALUE_ITEMS);
    else if (item) *ARENA_PUSH(s->a, list->item, list->n, list->cap) = item;
}
bool scan_pair(Scan *s, Value *map, const char *key, Loc at, Value *value) {
    int most = s->names ? VALUE_NAMES : VALUE_PAIRS;
    if (map->n_pairs >= most) {
        spend(s, at, "keys in one place", most);
        return false;
    }
    const ValuePair *first = value_pair(map, key);
    if (first) {
        diag_error(s->d, "E0107", at,
                   arena_printf(s->a, "the first one is in line %d", first->loc.line),
                   "'%s' occurs twice", key);
        return false;
    }
    value_add(s->a, map, (ValuePair){.key = key, .loc = at, .value = value});
    return true;
}
bool scan_deeper(Scan *s) {
    if (s->depth < VALUE_DEPTH) return ++s->depth;
    spend(s, scan_loc(s), "levels of nesting", VALUE_DEPTH);
    return false;
}

const char *scan_word(Scan *s, const char *more) {
    size_t n = 0;
    for (char c; (c = scan_peek(s, n)) && (isalnum((unsigned char)c) || c == '_' ||
                                           (unsigned char)c >= 0x80 || strchr(more, c));)
        n++;
    if (!n) return NULL;
    const char *w = arena_strndup(s->a, s->p, n);
    scan_take(s, n);
    return w;
}

/* ---- strings ---- */
static void add_utf8(Str *out, uint32_t c) {
    char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; c >>= 6) b[i] = (char)(0x80 | (c & 0x3F));
    b[0] = (char)(lead[n] | c);
    str_addn(out, b, n);
}
static bool hex(Scan *s, size_t at, int digits, uint32_t *c) {
    *c = 0;
    for (int i = 0; i < digits; i++) {
        char x = scan_peek(s, at + (size_t)i);
        if (!isxdigit((unsigned char)x)) return false;
        *c = *c * 16 + (uint32_t)(isdigit((unsigned char)x) ? x - '0' : (x | 32) - 'a' + 10);
    }
    return true;
}
/* One escape, the cursor on its backslash. */
static void escape(Scan *s, Str *out) {
    static const char from[] = "ntrbf\"'\\/", to[] = "\n\t\r\b\f\"'\\/";
    char c = scan_peek(s, 1);
    const char *known = c ? strchr(from, c) : NULL;
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t code = 0, low = 0;
    size_t n = 2 + (size_t)digits;
    if (known) {
        str_addn(out, &to[known - from], 1);
    } else if (c == '\n') { /* a line that goes on */
    } else if (digits && hex(s, 2, digits, &code) && code) {
        if (code >= 0xD800 && code < 0xDC00 && scan_peek(s, 6) == '\\' && hex(s, 8, 4, &low) &&
            low >= 0xDC00 && low < 0xE000)
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00), n = 12;
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            scan_error(s, "E0110", scan_loc(s), NULL, "an escape that is no character");
        else add_utf8(out, code);
    } else {
        scan_error(s, "E0110", scan_loc(s), NULL, "the escape \\%c is not understood here",
                   c > ' ' ? c : '?');
    }
    scan_take(s, n);
}
const char *scan_string(Scan *s, bool raw, bool triple) {
    Loc at = scan_loc(s);
    char q = scan_peek(s, 0);
    size_t width = triple && scan_peek(s, 1) == q && scan_peek(s, 2) == q ? 3 : 1;
    Str out = str_new(s->a);
    scan_take(s, width);
    for (;;) {
        char c = scan_peek(s, 0);
        if (!c || (c == '\n' && width == 1)) {
            scan_error(s, "E0110", at, NULL, "this text is not closed: its quote is missing");
            return NULL;
        }
        if (c == q && (width == 1 || (scan_peek(s, 1) == q && scan_peek(s, 2) == q))) break;
        if (c == '\\' && !raw) escape(s, &out);
        else {
            str_addn(&out, s->p, 1);
            scan_take(s, 1);
        }
        if (out.n > LONGEST && width == 1) {
            scan_error(s, "E0704", at, NULL, "a text of more than %d bytes", LONGEST);
            s->spent = true;
            return NULL;
        }
    }
    scan_take(s, width);
    return s->failed ? NULL : out.s;
}

/* ---- numbers ---- */
Value *scan_number(Scan *s) {
    Loc at = scan_loc(s);
    char text[64];
    size_t n = 0, k = 0;
    bool real = false;
    for (char c; (c = scan_peek(s, n)); n++) {
        bool sign = (c == '+' || c == '-') && (!n || strchr("eE", scan_peek(s, n - 1)));
        if (!sign && !isalnum((unsigned char)c) && c != '.' && c != '_') break;
        real |= c == '.' || c == 'e' || c == 'E';
        if (c != '_' && k < sizeof text - 1) text[k++] = c;
    }
    text[k] = 0;
    char *end_i, *end_r;
    errno = 0;
    long long i = strtoll(text, &end_i, 10);
    bool fits = !errno;
    double r = strtod(text, &end_r);
    bool plain = k && k < sizeof text - 1 && !strpbrk(text, "xXpPnN"); /* no hex, nan, inf */
    if (!plain || (real ? *end_r : *end_i || !fits)) {
        scan_error(s, "E0110", at, NULL, "'%.*s' is not a number that can be read here",
                   n < 40 ? (int)n : 40, s->p);
        return NULL;
    }
    scan_take(s, n);
    Value *v = scan_value(s, real ? V_REAL : V_INT, at);
    if (v) v->i = real ? 0 : i, v->r = real ? r : (double)i;
    return v;
}
