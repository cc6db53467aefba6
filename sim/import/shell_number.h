/* Whole numbers of a shell's `$(( ))`: + - * / % and brackets over numbers and names. */
#ifndef SP_IMPORT_SHELL_NUMBER_H
#define SP_IMPORT_SHELL_NUMBER_H
#include <stdbool.h>
#include <stdint.h>

/* The value of `text`; false where it is no such expression, a name has no number (`look_up` gives
 * its text or NULL), something is divided by 0 or no 64 bits hold it. */
bool shell_number(const char *text, const char *(*look_up)(void *of, const char *name), void *of,
                  int64_t *value);
#endif
