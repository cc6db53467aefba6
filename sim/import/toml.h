/* TOML 1.0 as located values, without dates and numbers that no config of a framework has
 * (hexadecimal, inf, nan): those are errors. */
#ifndef SP_IMPORT_TOML_H
#define SP_IMPORT_TOML_H
#include "import/value.h"
/* The whole file as a dict of dicts; errors (E0110, E0107 a key twice, E0704 a limit) for every
 * line that is not understood. NULL if it is not UTF-8. */
Value *toml_read(Arena *a, Diags *d, const char *file, const char *text, size_t n);
#endif
