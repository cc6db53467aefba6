/* What the streams and the environment say about a terminal. */
#ifndef SP_CLI_TERMINAL_H
#define SP_CLI_TERMINAL_H
#include <stdbool.h>
#include <stdio.h>

/* A variable of the environment; NULL if it is not set or empty. */
const char *terminal_env(const char *name);
/* Is the stream one? False for a stream without a file. */
bool terminal_is(FILE *f);
/* Is its text to be ASCII, as the locale is another than UTF-8? LC_ALL beats LC_CTYPE, that beats
 * LANG; where none of them is set, a terminal is in the C locale, and a pipe gets UTF-8. */
bool terminal_is_ascii(FILE *f);
/* --color (`when`, NULL: auto) beats everything, then NO_COLOR, then what forces it, then what the
 * stream is. */
bool terminal_wants_color(const char *when, FILE *f);
/* Columns of a terminal: what it says, else COLUMNS, else 80. */
int terminal_columns(int fd);
/* The same of a stream; 0 if it is none. */
int terminal_width(FILE *f);
#endif
