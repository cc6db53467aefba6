/* Text for a terminal that shows ASCII only. Refuses to keep what it has no likeness for: that is
 * '?', as often as it is wide. */
#ifndef SP_CLI_ASCII_H
#define SP_CLI_ASCII_H
#include "base/arena.h"

/* `s`, UTF-8, with a character of ASCII for every other one, as wide as it was: boxes of + - |, '+'
 * for a sum, 'x' for times. `s` itself where it is ASCII, else in `arena`. */
const char *ascii_text(const char *s, Arena *arena);
#endif
