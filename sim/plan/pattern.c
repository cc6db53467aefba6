/* Patterns of module paths: one component of the pattern for one of the path, as fnmatch. Linear
 * apart from `*`, which is retried from the last one only, so that no pattern takes exponential
 * time. Refuses braces and `**`. */
#include "plan/plan.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>

/* [:digit:] and its like inside brackets. */
static const struct {
    const char *name;
    int (*is)(int);
} classes[] = {
    {"alnum", isalnum}, {"alpha", isalpha}, {"digit", isdigit},   {"lower", islower},
    {"punct", ispunct}, {"upper", isupper}, {"xdigit", isxdigit},
};

/* p is behind '['. *hit: does the set contain c? Returns what stands behind the ']', or NULL if
 * there is none before end. */
static const char *bracket(const char *p, const char *end, unsigned char c, bool *hit) {
    bool negate = p < end && (*p == '!' || *p == '^');
    if (negate) p++;
    *hit = false;
    for (bool first = true;; first = false) {
        if (p >= end) return NULL;
        if (*p == ']' && !first) break;
        if (p[0] == '[' && p + 1 < end && p[1] == ':') {
            const char *name = p + 2, *stop = name;
            while (stop + 1 < end && !(stop[0] == ':' && stop[1] == ']')) stop++;
            if (stop + 1 < end) {
                for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
                    if (strlen(classes[i].name) == (size_t)(stop - name) &&
                        strncmp(classes[i].name, name, (size_t)(stop - name)) == 0 &&
                        classes[i].is(c))
                        *hit = true;
                p = stop + 2;
                continue;
            }
        }
        if (*p == '\\' && p + 1 < end) p++;
        unsigned char lo = (unsigned char)*p++, hi = lo;
        if (p + 1 < end && p[0] == '-' && p[1] != ']') {
            if (p[1] == '\\' && p + 2 < end) p++;
            hi = (unsigned char)p[1];
            p += 2;
        }
        if (lo <= c && c <= hi) *hit = true;
    }
    *hit ^= negate;
    return p + 1;
}

/* Does the element of the pattern at *p match character c? Moves *p behind the element. */
static bool element(const char **p, const char *end, unsigned char c) {
    const char *q = *p;
    bool hit;
    if (*q == '?') {
        (*p)++;
        return true;
    }
    if (*q == '[') {
        const char *behind = bracket(q + 1, end, c, &hit);
        if (behind) {
            *p = behind;
            return hit;
        }
    }
    if (*q == '\\' && q + 1 < end) q++;
    *p = q + 1;
    return (unsigned char)*q == c;
}

/* One component against one. */
static bool glob(const char *p, const char *pe, const char *s, const char *se) {
    const char *star = NULL, *retry = NULL;
    while (s < se) {
        if (p < pe && *p == '*') {
            star = ++p;
            retry = s;
            continue;
        }
        if (p < pe && element(&p, pe, (unsigned char)*s)) {
            s++;
            continue;
        }
        if (!star) return false;
        p = star;
        s = ++retry;
    }
    while (p < pe && *p == '*') p++;
    return p == pe;
}

static const char *component_end(const char *s) {
    while (*s && *s != '.') s++;
    return s;
}
static bool is_plain(char c) { return c && c != '*' && c != '?' && c != '[' && c != '\\'; }

bool plan_match(const char *pattern, const char *path) {
    assert(pattern && path);
    for (;;) {
        /* Most patterns differ in what stands for itself; a dot ends a component of both. */
        while (is_plain(*pattern) && *pattern == *path) pattern++, path++;
        if (is_plain(*pattern) || (!*pattern && !*path)) return !*pattern;
        const char *pe = component_end(pattern), *se = component_end(path);
        if (!glob(pattern, pe, path, se)) return false;
        if (!*pe || !*se) return *pe == *se;
        pattern = pe + 1;
        path = se + 1;
    }
}

/* Wildcards of a pattern: each *, ? and [...] counts. */
static int wildcards(const char *p) {
    int n = 0;
    while (*p) {
        if (*p == '\\' && p[1]) {
            p += 2;
            continue;
        }
        bool hit;
        const char *behind = *p == '[' ? bracket(p + 1, component_end(p), 0, &hit) : NULL;
        n += *p == '*' || *p == '?' || behind;
        p = behind ? behind : p + 1;
    }
    return n;
}

int plan_pattern_order(const char *a, const char *b) {
    assert(a && b);
    int na = wildcards(a), nb = wildcards(b);
    return (na < nb) - (na > nb);
}
const char *plan_pattern_of(Arena *a, const char *path) {
    Str s = str_new(a);
    for (const char *c = path; *c;) {
        size_t n = strcspn(c, "."), digits = 0;
        while (digits < n && isdigit((unsigned char)c[digits])) digits++;
        if (digits && digits == n) str_add(&s, "*");
        else str_addn(&s, c, n);
        c += n;
        if (*c) str_addn(&s, c++, 1);
    }
    return s.s ? s.s : "";
}
