/* Memory with a stated lifetime. An Arena hands out zeroed blocks that all die together; nothing in
 * it is freed alone. Running out of memory is the machine's failure, not the caller's: no function
 * here returns NULL. It prints what was asked for and ends the run with exit code 5 through
 * base_die(), after the registered clean-ups have removed half-written files. */
#ifndef SP_BASE_ARENA_H
#define SP_BASE_ARENA_H
#include "base/ends.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

typedef struct Arena Arena;

/* A new empty arena; the caller frees it with arena_free. */
Arena *arena_new(void);
/* Frees the arena and everything allocated from it; NULL is allowed. */
void arena_free(Arena *a);
/* n zeroed bytes aligned to 16; n = 0 gives a valid pointer. Lives as long as the arena. */
void *arena_alloc(Arena *a, size_t n);
#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_alloc((a), base_mul((size_t)(n), sizeof(T))))
/* Copies into the arena, which owns them: of a terminated text, of n bytes with a NUL behind them,
 * of n bytes as they are (aligned to 16; NULL where n is 0 is allowed), of what printf would print.
 */
char *arena_strdup(Arena *a, const char *s);
char *arena_strndup(Arena *a, const char *s, size_t n);
void *arena_memdup(Arena *a, const void *p, size_t n);
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *a, const char *fmt, va_list ap);

/* malloc/realloc of n bytes that never return NULL (see above), for 0 bytes neither; the caller
 * frees with free(). */
void *base_malloc(size_t n);
void *base_realloc(void *p, size_t n);
/* Ends the run (exit 5) if n bytes more could not be had now: before libraries that do not notice.
 * Takes nothing. */
void base_reserve(size_t n, const char *what_for);
/* The same for large arrays: from 2 MiB on they lie on huge pages where the system has them,
 * because first touch of memory is what costs. */
void *base_big(size_t n);
/* a*b, or the end of the run (exit 5) if it does not fit. */
size_t base_mul(size_t a, size_t b);

/* Growable array inside an arena: doubles `*items` (old block stays until the arena dies). */
#define ARENA_PUSH(a, items, n, cap)                                                               \
    ((void)((n) < (cap)                                                                            \
                ? 0                                                                                \
                : ((items) = arena_grow((a), (items), sizeof *(items), (size_t)(n), &(cap)), 0)),  \
     &(items)[(n)++])
void *arena_grow(Arena *a, void *items, size_t item_size, size_t n, int *cap);
/* The same for arrays that get large: a block of their own grows where it is, or the system moves
 * its pages. Nobody may keep a pointer to an item across a push, and what is pushed is not zeroed:
 * it is to be assigned as a whole. */
#define ARENA_PUSH_LARGE(a, items, n, cap)                                                         \
    ((void)((n) >= (cap) &&                                                                        \
            ((items) = arena_regrow((a), (items), sizeof *(items), (size_t)(n), &(cap)))),         \
     &(items)[(n)++])
void *arena_regrow(Arena *a, void *items, size_t item_size, size_t n, int *cap);

/* Text that grows, in an arena. What `s` points to may move with each addition; at the end it is an
 * ordinary text of the arena. */
typedef struct {
    Arena *a;
    char *s; /* always terminated */
    size_t n, cap;
} Str;
Str str_new(Arena *a); /* "" */
/* Adds a terminated text, n bytes, what printf would print. */
void str_add(Str *s, const char *t);
void str_addn(Str *s, const char *t, size_t n);
void str_addf(Str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
