/* Names of one scheme for another's: layers are alike but for their number, so the table of names
 * is asked once for all of them. Refuses to know the names: names.c has them. */
#include "model/spelling.h"
#include "base/recent.h"
#include <ctype.h>
#include <string.h>

/* A path around its layer's number. */
typedef struct {
    const char *head, *tail;
    size_t n_head, n_number;
} Around;
typedef struct {
    Names scheme;
    Around own, theirs;
} Known;
enum { MAX_KNOWN = 256 };
struct Spelling {
    Arena *a;
    Recent known;
};

Spelling *spelling_new(Arena *a) {
    Spelling *s = ARENA_NEW(a, Spelling);
    *s = (Spelling){a, recent_new(a, MAX_KNOWN, sizeof(Known))};
    return s;
}
/* Splits at the first component that is digits alone; false: there is none. */
static bool split(const char *path, Around *out) {
    for (const char *c = path;; c++) {
        const char *end = c;
        while (isdigit((unsigned char)*end)) end++;
        if (end > c && (*end == '.' || !*end)) {
            *out = (Around){path, end, (size_t)(c - path), (size_t)(end - c)};
            return true;
        }
        c = strchr(end, '.');
        if (!c) return false;
    }
}
static bool same(const void *row, const void *want) {
    const Known *k = row, *w = want;
    const Around *a = &k->own, *b = &w->own;
    return k->scheme == w->scheme && a->n_head == b->n_head &&
           !memcmp(a->head, b->head, a->n_head) && !strcmp(a->tail, b->tail);
}
/* The path with the number of another. */
static const char *with_number(Arena *a, const Around *path, const Around *other) {
    size_t tail = strlen(path->tail);
    char *p = arena_alloc(a, path->n_head + other->n_number + tail + 1);
    memcpy(p, path->head, path->n_head);
    memcpy(p + path->n_head, other->head + other->n_head, other->n_number);
    memcpy(p + path->n_head + other->n_number, path->tail, tail);
    return p;
}
const char *spelling_of(Spelling *s, Names scheme, const char *own_path) {
    Known x = {.scheme = scheme};
    if (!split(own_path, &x.own)) return names_of_own(s->a, scheme, own_path);
    const Known *k = recent_find(&s->known, same, &x);
    if (k) return with_number(s->a, &k->theirs, &x.own);
    const char *theirs = names_of_own(s->a, scheme, own_path);
    if (!theirs || !split(theirs, &x.theirs)) return theirs;
    x.own.head = arena_strdup(s->a, own_path); /* the caller's need not last */
    x.own.tail = x.own.head + x.own.n_head + x.own.n_number;
    recent_add(&s->known, &x);
    return theirs;
}
