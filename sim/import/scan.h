/* The cursor that all readers of foreign text share: where it stands (line, column in characters),
 * how deep, how much it has read, and strings of Python, JSON and TOML. */
#ifndef SP_IMPORT_SCAN_H
#define SP_IMPORT_SCAN_H
#include "import/value.h"

typedef struct {
    Arena *a;
    Diags *d;
    const char *file;
    const char *p, *end;
    int line, col;
    int depth, values;
    bool names; /* a file of names: it may have more of them than a plan has lines */
    bool
        failed; /* the statement that is being read is not understood: nothing more is said of it */
    bool spent; /* a limit was reached: nothing more is read */
} Scan;

/* At the first character. The text is remembered for diagnostics. False and E0106 if it is not
 * UTF-8 or holds a NUL byte. */
bool scan_start(Scan *s, Arena *a, Diags *d, const char *file, const char *text, size_t n);
Loc scan_loc(const Scan *s);
/* The byte k places on, or 0 at the end. */
char scan_peek(const Scan *s, size_t k);
void scan_take(Scan *s, size_t bytes); /* goes on; counts lines and columns */
bool scan_starts(const Scan *s, const char *word);
/* A new value here; NULL and E0704 beyond the most. */
Value *scan_value(Scan *s, DatumKind kind, Loc at);
void scan_push(Scan *s, Value *list, Value *item);
/* Adds a pair; a key that is there already is E0107 and keeps its first value. */
bool scan_pair(Scan *s, Value *map, const char *key, Loc at, Value *value);
/* Is there room for one level more? Else E0704. Leave with depth--. */
bool scan_deeper(Scan *s);
/* The first error of a statement; those that follow from it are not said. */
void scan_error(Scan *s, const char *code, Loc at, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* A name of letters, digits and _ (and `more`), or NULL. */
const char *scan_word(Scan *s, const char *more);
/* Text in quotes, from the opening quote on: escapes of JSON, TOML and Python unless `raw`; tripled
 * quotes if `triple`. NULL and an error if it is not closed or holds what cannot be kept. */
const char *scan_string(Scan *s, bool raw, bool triple);
/* A whole or decimal number with an optional sign, digits with `_` between; NULL and an error. */
Value *scan_number(Scan *s);
#endif
