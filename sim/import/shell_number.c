/* A shell's arithmetic, as far as scripts use it to count ranks. */
#include "import/shell_number.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *p;
    const char *(*look_up)(void *of, const char *name);
    void *of;
    int depth;
} Number;

static bool sum(Number *x, int64_t *v);
static char next(Number *x) {
    while (isspace((unsigned char)*x->p)) x->p++;
    return *x->p;
}
/* A number at the start of a text, with its end; none with a 0 before others, which is octal. */
static bool digits(const char *text, int64_t *v, const char **end) {
    char *behind;
    errno = 0;
    *v = strtoll(text, &behind, 10);
    *end = behind;
    text += strspn(text, " \t\n+-");
    return behind > text && !errno && (*text != '0' || behind == text + 1);
}
static bool name(Number *x, int64_t *v) {
    char word[64];
    size_t n = 0;
    bool braces = *x->p == '{';
    x->p += braces;
    while (isalnum((unsigned char)x->p[n]) || x->p[n] == '_') n++;
    if (!n || n >= sizeof word || (braces && x->p[n] != '}')) return false;
    memcpy(word, x->p, n);
    word[n] = 0;
    x->p += n + braces;
    const char *text = x->look_up(x->of, word), *end;
    return text && digits(text, v, &end) && !*end;
}
static bool atom(Number *x, int64_t *v) {
    char c = next(x);
    if (x->depth++ > 60) return false;
    if (c == '-' || c == '+') {
        x->p++;
        return atom(x, v) && (c == '+' || !__builtin_sub_overflow((int64_t)0, *v, v));
    }
    if (c == '(') {
        x->p++;
        if (!sum(x, v) || next(x) != ')') return false;
        x->p++;
        return true;
    }
    if (isdigit((unsigned char)c)) {
        const char *end;
        bool whole = digits(x->p, v, &end) && !isalpha((unsigned char)*end);
        x->p = end;
        return whole;
    }
    x->p += c == '$';
    return name(x, v);
}
static bool product(Number *x, int64_t *v) {
    bool fits = atom(x, v);
    for (char c; fits && (c = next(x)) && strchr("*/%", c);) {
        int64_t by;
        x->p++;
        fits = atom(x, &by);
        if (fits && c == '*') fits = !__builtin_mul_overflow(*v, by, v);
        else if (fits && (by == 0 || (by == -1 && *v == INT64_MIN))) fits = false;
        else if (fits) *v = c == '/' ? *v / by : *v % by;
    }
    return fits;
}
static bool sum(Number *x, int64_t *v) {
    bool fits = product(x, v);
    for (char c; fits && ((c = next(x)) == '+' || c == '-');) {
        int64_t by;
        x->p++;
        fits = product(x, &by) &&
               !(c == '+' ? __builtin_add_overflow(*v, by, v) : __builtin_sub_overflow(*v, by, v));
    }
    return fits;
}
bool shell_number(const char *text, const char *(*look_up)(void *of, const char *name), void *of,
                  int64_t *value) {
    Number x = {.p = text, .look_up = look_up, .of = of};
    return sum(&x, value) && !next(&x);
}
