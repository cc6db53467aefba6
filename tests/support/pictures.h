/* What the tests of pictures share: the words of an SVG, and what they say or must not say. */
#ifndef SP_TESTS_PICTURES_H
#define SP_TESTS_PICTURES_H
#include "base/arena.h"

/* What stands between the tags of <text>, one text per line, with & < > as themselves. */
const char *svg_words(Arena *a, const char *svg);
/* The words have that part, or have it not; a failure prints them. */
void says(const char *words, const char *what);
void says_not(const char *words, const char *what);
#endif
