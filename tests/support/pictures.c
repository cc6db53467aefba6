/* The words of an SVG. See pictures.h. */
#include "pictures.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

/* The character that is written at p as an entity or as itself; returns what is behind it. */
static const char *one_character(Str *out, const char *p) {
    static const char *const entity[] = {"&amp;", "&lt;", "&gt;"};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(entity[i]);
        if (strncmp(p, entity[i], n)) continue;
        str_addn(out, &"&<>"[i], 1);
        return p + n;
    }
    str_addn(out, p, 1);
    return p + 1;
}
const char *svg_words(Arena *a, const char *svg) {
    Str out = str_new(a);
    for (const char *t = strstr(svg, "<text"); t; t = strstr(t + 5, "<text")) {
        const char *end = strstr(t, "</text>");
        for (const char *p = t; p < end;)
            p = *p == '<' ? strchr(p, '>') + 1 : one_character(&out, p);
        str_add(&out, "\n");
    }
    return out.s;
}
void says(const char *words, const char *what) {
    if (!strstr(words, what)) print_message("missing: %s\nin: %s\n", what, words);
    assert_non_null(strstr(words, what));
}
void says_not(const char *words, const char *what) {
    if (strstr(words, what)) print_message("has: %s\nin: %s\n", what, words);
    assert_null(strstr(words, what));
}
