/* Text of others on its way out. Names come from plans, traces and file systems and may hold
 * anything: escape sequences that a terminal obeys, marks that turn the direction of reading, bytes
 * that are no UTF-8. Every place that shows such text shows these as visible escapes. Refuses to
 * alter what is stored: JSON escapes keep the text as it is. */
#ifndef SP_BASE_TEXT_H
#define SP_BASE_TEXT_H
#include "base/arena.h"
#include "base/utf8.h"

/* Do two texts say the same? NULL is like NULL only. */
bool text_same(const char *a, const char *b);
/* Does `word` stand as a whole in a list of words, between blanks or commas? The empty word does
 * not. */
bool text_has_word(const char *list, const char *word);
/* How many bytes stand before the ending; 0: the text does not end so, or is nothing else. */
size_t text_before(const char *s, const char *end);
/* Is `name` a path (NULL: none), or what it ends in behind a dot: "wo" and "attention.wo" of
 * "layers.0.attention.wo"? The empty name is not. */
bool text_names(const char *path, const char *name);
/* Which of two names comes first, below 0, 0 or above: by their letters, and by the values of the
 * numbers in them, so that layer 2 comes before layer 10. 0: they are equal. */
int text_order(const char *a, const char *b);
/* Adds the visible form of a hostile character of k bytes: "\x1b", "\u202e"; of a byte that is no
 * UTF-8 "\xff". */
void text_add_escape(Str *out, const char *s, size_t k, int32_t code);
/* The text with every hostile character escaped: `s` itself where there is none, else in `a`. NULL
 * stays NULL. */
const char *text_visible(Arena *a, const char *s);
/* The same for n bytes of several lines: line feeds, carriage returns before them and tabs stay. */
const char *text_visible_lines(Arena *a, const char *s, size_t n);
/* In JSON's quotes. What is hostile is written as \uXXXX, bytes that are no UTF-8 as U+FFFD. */
void text_add_json(Str *out, const char *s);
/* Text of XML 1.0, for elements and attributes: visible, and & < > " and line feeds as references.
 */
void text_add_xml(Str *out, const char *s);
/* Adds one more of several numbers to choose from: "1", "1, 2", and the last one: "1, 2 or 4". */
void text_add_choice(Str *out, int64_t number, bool last);
/* A number in the fewest digits that read back the same, in any locale: 0.1, 1.00000001. */
void text_add_real(Str *s, double v);
#endif
