/* Rows that would read alike: what tells them apart. Says which use of a value, which pass or which
 * hop a row is of, from the records of its step; refuses to compare numbers. */
#ifndef SP_RENDER_ERRORS_TWINS_H
#define SP_RENDER_ERRORS_TWINS_H
#include "render/errors/errors.h"

/* label: per row, as the picture calls it. Where rows of one micro-batch and training step have the
 * same label and are made the same way, sets `by` of each: "via w1" of the gradient that one use
 * gives, "sum of 2" of what adds them up, "again" of what is made again for backward, "over dp",
 * "for w3", else "2 of 3". Of rows before they are folded; texts in the arena. */
void errors_tell_apart(Arena *a, ErrMap *m, const char *const *label);
#endif
