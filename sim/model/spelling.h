/* The names of a model's modules and parameters in a scheme, looked up once for all its layers. */
#ifndef SP_MODEL_SPELLING_H
#define SP_MODEL_SPELLING_H
#include "model/model.h"

typedef struct Spelling Spelling;
/* Nothing looked up yet. It and the names that it gives live in `a`. */
Spelling *spelling_new(Arena *a);
/* As names_of_own: the path in that scheme, or NULL. */
const char *spelling_of(Spelling *s, Names scheme, const char *own_path);
#endif
