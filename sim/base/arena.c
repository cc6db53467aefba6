/* Arenas and growable text. */
#include "base/arena.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct Block {
    struct Block *next;
    size_t used, size;
    bool own; /* of one large thing */
    max_align_t data[];
} Block;

struct Arena {
    Block *head;
};
#define BLOCK_MAX (((size_t)1 << 21) - sizeof(Block))

size_t base_mul(size_t a, size_t b) {
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        base_die(5, "a size of %zu x %zu bytes does not fit in memory [E0701]", a, b);
    return r;
}
/* p, which is to be n bytes; ends the run if it is NULL. */
static void *had(void *p, size_t n) {
    if (!p)
        base_die(5,
                 "out of memory: %zu bytes could not be had; try a larger `shrink`, f32 or a "
                 "shape-only command [E0701]",
                 n);
    return p;
}
void *base_malloc(size_t n) { return had(malloc(n ? n : 1), n); }
enum { HUGE_PAGE = 1 << 21 };
/* Asks for huge pages where whole ones lie in n bytes from p: first touch is what costs. */
static void *on_huge_pages(void *p, size_t n) {
    size_t before = -(uintptr_t)p % HUGE_PAGE;
    size_t whole = n > before ? (n - before) / HUGE_PAGE * HUGE_PAGE : 0;
    if (whole) (void)madvise((char *)p + before, whole, MADV_HUGEPAGE); /* only a hint */
    return p;
}
/* Plain malloc, whose holes a later array of the same size fits into: an aligned array needs a hole
 * larger by its alignment, and a process that makes and frees many grows by half. */
void *base_big(size_t n) { return on_huge_pages(base_malloc(n), n); }
void *base_realloc(void *old, size_t n) { return had(realloc(old, n ? n : 1), n); }
void base_reserve(size_t n, const char *what_for) {
    void *volatile p =
        malloc(n); /* large: taken from the system and given back at once, never touched */
    if (!p) base_die(5, "out of memory: %zu MiB are wanted %s [E0701]", n >> 20, what_for);
    free(p);
}

Arena *arena_new(void) {
    Arena *a = base_malloc(sizeof *a);
    a->head = NULL;
    return a;
}
void arena_free(Arena *a) {
    if (!a) return;
    for (Block *b = a->head; b;) {
        Block *next = b->next;
        free(b);
        b = next;
    }
    free(a);
}
static bool is_large(size_t n) { return n > BLOCK_MAX / 4; }
/* Most blocks are a huge page; aligned, or they would hold none. */
static Block *shared_block(size_t n) {
    void *p = NULL;
    if (n < HUGE_PAGE) return base_malloc(n);
    if (posix_memalign(&p, HUGE_PAGE, n)) p = NULL;
    return on_huge_pages(had(p, n), n);
}
/* A block of its own behind the head, whose room is not lost. The system's fresh pages are zeros
 * already: what an array that doubles does not use is never touched. */
static void *own_block(Arena *a, size_t n) {
    Block *b = had(calloc(1, sizeof *b + n), n);
    on_huge_pages(b, sizeof *b + n);
    b->size = b->used = n;
    b->own = true;
    b->next = a->head->next;
    a->head->next = b;
    return b->data;
}
/* n bytes, of which those from `kept` on are zeros. */
static void *alloc_behind(Arena *a, size_t n, size_t kept) {
    if (n > SIZE_MAX / 2) base_die(5, "a size of %zu bytes does not fit in memory [E0701]", n);
    n = (n + 15) & ~(size_t)15;
    if (is_large(n) && a->head) return own_block(a, n);
    Block *b = a->head;
    if (!b || b->size - b->used < n) {
        /* blocks double up to 2 MiB, a huge page; a large request gets a block of its own */
        size_t size = b ? b->size * 2 : 4096;
        if (size > BLOCK_MAX) size = BLOCK_MAX;
        if (size < n) size = n;
        b = shared_block(sizeof *b + size);
        b->size = size;
        b->used = 0;
        b->own = false;
        b->next = a->head;
        a->head = b;
    }
    char *p = (char *)b->data + b->used;
    b->used += n;
    memset(p + kept, 0, n - kept);
    return p;
}
void *arena_alloc(Arena *a, size_t n) { return alloc_behind(a, n, 0); }
void *arena_memdup(Arena *a, const void *p, size_t n) {
    void *q = arena_alloc(a, n);
    return n ? memcpy(q, p, n) : q;
}
char *arena_strndup(Arena *a, const char *s, size_t n) {
    char *p = arena_alloc(a, n + 1);
    memcpy(p, s, n);
    return p;
}
char *arena_strdup(Arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }
char *arena_vprintf(Arena *a, const char *fmt, va_list ap) {
    char most[256]; /* nearly all texts are shorter and are printed once */
    va_list aq;
    va_copy(aq, ap);
    int n = vsnprintf(most, sizeof most, fmt, aq);
    va_end(aq);
    char *s = arena_alloc(a, (size_t)n + 1);
    if ((size_t)n < sizeof most) memcpy(s, most, (size_t)n + 1);
    else vsnprintf(s, (size_t)n + 1, fmt, ap);
    return s;
}
char *arena_printf(Arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *s = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return s;
}
void *arena_grow(Arena *a, void *items, size_t item_size, size_t n, int *cap) {
    int c = *cap ? *cap * 2 : 8;
    void *p = alloc_behind(a, base_mul((size_t)c, item_size), n * item_size);
    if (n) memcpy(p, items, n * item_size);
    *cap = c;
    return p;
}
/* The link to the block that `items` is the only thing in; NULL: they share one. */
static Block **own_link(Arena *a, const void *items) {
    for (Block *b = a->head; b && b->next; b = b->next)
        if ((const void *)b->next->data == items && b->next->own) return &b->next;
    return NULL;
}
void *arena_regrow(Arena *a, void *items, size_t item_size, size_t n, int *cap) {
    size_t old = base_mul((size_t)*cap, item_size);
    Block **link = is_large(old) ? own_link(a, items) : NULL;
    if (!link) return arena_grow(a, items, item_size, n, cap);
    /* the system moves the pages that were touched: nothing is copied to fresh ones */
    size_t size = base_mul(old, 2);
    Block *b = base_realloc(*link, sizeof *b + size);
    on_huge_pages(b, sizeof *b + size);
    b->size = b->used = size;
    *link = b;
    *cap *= 2;
    return b->data;
}

Str str_new(Arena *a) {
    Str s = {a, arena_alloc(a, 64), 0, 64};
    return s;
}
void str_addn(Str *s, const char *t, size_t n) {
    if (s->n + n + 1 > s->cap) {
        size_t cap = s->cap * 2 > s->n + n + 1 ? s->cap * 2 : s->n + n + 1;
        char *p = arena_alloc(s->a, cap);
        memcpy(p, s->s, s->n);
        s->s = p;
        s->cap = cap;
    }
    memcpy(s->s + s->n, t, n);
    s->n += n;
    s->s[s->n] = 0;
}
void str_add(Str *s, const char *t) { str_addn(s, t, strlen(t)); }
void str_addf(Str *s, const char *fmt, ...) {
    va_list ap, aq;
    va_start(ap, fmt);
    va_copy(aq, ap);
    int n = vsnprintf(s->s + s->n, s->cap - s->n, fmt, aq); /* what does not fit is printed again */
    va_end(aq);
    if (s->n + (size_t)n + 1 > s->cap) {
        size_t cap = s->cap * 2 + (size_t)n + 1;
        char *p = arena_alloc(s->a, cap);
        memcpy(p, s->s, s->n);
        s->s = p;
        s->cap = cap;
        vsnprintf(s->s + s->n, (size_t)n + 1, fmt, ap);
    }
    s->n += (size_t)n;
    va_end(ap);
}
