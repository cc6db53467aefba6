/* Characters of UTF-8 as bytes that may hold anything. Allocates nothing, so that a run that ends
 * for lack of memory can use it. */
#ifndef SP_BASE_UTF8_H
#define SP_BASE_UTF8_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at s (n > 0 bytes are left); 1 and *code = -1 where the bytes are
 * none. Overlong forms, surrogates and what lies beyond U+10FFFF are none. */
size_t utf8_char(const char *s, size_t n, int32_t *code);
/* Must a character be shown as an escape? Controls (C0, DEL, C1), line and paragraph separators,
 * the marks, embeddings, overrides and isolates of bidirectional text, U+FFFE and U+FFFF, and bytes
 * that are no UTF-8 (-1). */
bool utf8_is_hostile(int32_t code);
#endif
