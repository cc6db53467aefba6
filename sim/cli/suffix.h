/* Names that people shorten, "attention.wo" for layers.0.attention.wo, or say in another scheme. */
#ifndef SP_CLI_SUFFIX_H
#define SP_CLI_SUFFIX_H
#include "trace/trace.h"

enum { SUFFIX_MODULES = 1, SUFFIX_VALUES = 2, SUFFIX_PARAMS = 4, SUFFIX_ALL = 7, SUFFIX_APART = 3 };
/* The one module, value or parameter (`kinds`) of the trace whose name ends so, behind a dot, in
 * the plan's names or else in those of any scheme; "grad." may stand before it, ".input" and
 * ".output" behind a module's. As the trace has it, in the arena. NULL: none or several; then *hint
 * has the candidates, or the name of any scheme that is nearest, or NULL. */
const char *suffix_find(Arena *a, const Trace *t, const char *name, unsigned kinds,
                        const char **hint);
/* The same of names of which each layer may have one: that of the first layer, and *several says
 * whether others have it too. */
const char *suffix_in_layers(Arena *a, const Trace *t, const char *name, unsigned kinds,
                             bool *several, const char **hint);
/* Of a name that stands for several modules of this plan in one ("mlp.linear_fc1" of its gate and
 * up), in any scheme, that of its weight too: these modules, to found[SUFFIX_APART], of the first
 * layer that has them; *several says whether others have too. 0: it is no such name. */
int suffix_apart(Arena *a, const Trace *t, const char *name, const char **found, bool *several);
#endif
