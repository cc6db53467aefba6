/* The ways to show what no output shows as it is. */
#include "base/text.h"
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool text_same(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }
size_t text_before(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end) ? n - k : 0;
}
bool text_names(const char *path, const char *name) {
    size_t n = path && *name ? text_before(path, name) : 0;
    return n ? path[n - 1] == '.' : *name && text_same(path, name);
}
bool text_has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    if (!n) return false; /* it would be found everywhere, without end */
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ' || p[-1] == ',') && strchr(" ,", p[n])) return true;
    return false;
}

void text_add_choice(Str *out, int64_t number, bool last) {
    str_addf(out, "%s%lld", !out->n ? "" : last ? " or " : ", ", (long long)number);
}
static size_t digits(const char *s) { return strspn(s, "0123456789"); }
int text_order(const char *a, const char *b) {
    const char *x = a, *y = b;
    while (*x && *y) {
        size_t n = digits(x), m = digits(y);
        if (n && m) {
            for (; n > 1 && *x == '0'; n--) x++;
            for (; m > 1 && *y == '0'; m--) y++;
            int k = n != m ? (n < m ? -1 : 1) : strncmp(x, y, n);
            if (k) return k;
            x += n, y += m;
        } else if (*x == *y) x++, y++;
        else break;
    }
    int k = (unsigned char)*x - (unsigned char)*y;
    return k ? k : strcmp(a, b);
}
void text_add_escape(Str *out, const char *s, size_t k, int32_t code) {
    if (code > 0xFF) str_addf(out, "\\u%04x", (unsigned)code);
    else if (code >= 0) str_addf(out, "\\x%02x", (unsigned)code);
    else
        for (size_t i = 0; i < k; i++) str_addf(out, "\\x%02x", (unsigned)(unsigned char)s[i]);
}

/* Bytes at s that are plain and can be copied. */
static size_t plain_bytes(const char *s, size_t n) {
    size_t i = 0;
    while (i < n) {
        int32_t code;
        if (s[i] >= 0x20 && s[i] < 0x7F) {
            i++;
            continue;
        }
        size_t k = utf8_char(s + i, n - i, &code);
        if (utf8_is_hostile(code)) break;
        i += k;
    }
    return i;
}
static const char *visible(Arena *a, const char *s, size_t n, bool lines) {
    size_t i = plain_bytes(s, n);
    Str out = {0};
    while (i < n) {
        int32_t code;
        size_t k = utf8_char(s + i, n - i, &code);
        bool stays = lines && (s[i] == '\n' || s[i] == '\t' ||
                               (s[i] == '\r' && i + 1 < n && s[i + 1] == '\n'));
        if (!stays && !out.a) {
            out = str_new(a);
            str_addn(&out, s, i);
        }
        if (out.a && stays) str_addn(&out, s + i, k);
        else if (out.a) text_add_escape(&out, s + i, k, code);
        i += k;
        size_t more = plain_bytes(s + i, n - i);
        if (out.a) str_addn(&out, s + i, more);
        i += more;
    }
    return out.a ? out.s : s;
}
const char *text_visible(Arena *a, const char *s) {
    return s ? visible(a, s, strlen(s), false) : NULL;
}
const char *text_visible_lines(Arena *a, const char *s, size_t n) { return visible(a, s, n, true); }

void text_add_json(Str *out, const char *s) {
    str_addn(out, "\"", 1);
    for (size_t n = strlen(s), i = 0; i < n;) {
        size_t plain = 0, k;
        int32_t code = 0;
        for (; i + plain < n; plain += k) {
            k = utf8_char(s + i + plain, n - i - plain, &code);
            if (utf8_is_hostile(code) || code == '"' || code == '\\') break;
        }
        str_addn(out, s + i, plain);
        i += plain;
        if (i >= n) break;
        k = utf8_char(s + i, n - i, &code);
        if (code == '"' || code == '\\') str_addf(out, "\\%c", (int)code);
        else if (code == '\n' || code == '\t') str_add(out, code == '\n' ? "\\n" : "\\t");
        else if (code >= 0) str_addf(out, "\\u%04x", (unsigned)code);
        else str_add(out, "\xEF\xBF\xBD");
        i += k;
    }
    str_addn(out, "\"", 1);
}
void text_add_xml(Str *out, const char *s) {
    static const struct {
        char c;
        const char *name;
    } references[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\n', "&#10;"}};
    for (size_t n = strlen(s), i = 0, k; i < n; i += k) {
        int32_t code;
        const char *name = NULL;
        k = utf8_char(s + i, n - i, &code);
        for (size_t r = 0; r < sizeof references / sizeof *references; r++)
            if (code == references[r].c) name = references[r].name;
        if (name) str_add(out, name);
        else if (utf8_is_hostile(code) && code != '\t') text_add_escape(out, s + i, k, code);
        else str_addn(out, s + i, k);
    }
}
/* The fewest digits that read back the same. Any decimal of at most 15 digits survives the way
 * through a normal double, so %.15g (which drops trailing zeros) is the shortest if it survives;
 * subnormals have fewer digits to tell them apart. */
void text_add_real(Str *s, double v) {
    char buf[40];
    for (int digits = fabs(v) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, v);
        if (strtod(buf, NULL) == v) break;
    }
    const char *point = localeconv()->decimal_point;
    char *at = strcmp(point, ".") != 0 ? strstr(buf, point) : NULL;
    if (at) {
        *at = '.';
        memmove(at + 1, at + strlen(point), strlen(at + strlen(point)) + 1);
    }
    str_add(s, buf);
    if (v == 0 && signbit(v)) str_add(s, ".0"); /* "-0" would read back as the integer 0 */
}
