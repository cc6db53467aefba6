/* Which module a row of the error picture belongs to, so that a long run folds by modules. */
#ifndef SP_RENDER_ERRORS_MODULES_H
#define SP_RENDER_ERRORS_MODULES_H
#include "render/errors/errors.h"

/* Per row the part of the model whose step made it: "layers.0.attention", of a gradient
 * "grad.layers.0.attention"; NULL: none, or a whole layer's own (a residual sum). */
const char **errors_modules(Arena *a, const ErrMap *m);
/* From row `from` on: the longest run of at least three rows of one module that `alike` allows to
 * share a row; *length of them. -1: there is none. */
int errors_longest(const ErrMap *m, const char *const *module,
                   bool (*alike)(const ErrRow *a, const ErrRow *b), int *length);
#endif
