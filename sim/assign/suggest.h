/* What to write where a line of the plan names no module and no parameter of the model. */
#ifndef SP_ASSIGN_SUGGEST_H
#define SP_ASSIGN_SUGGEST_H
#include "assign/assign.h"

/* A hint for a pattern that matches nothing: the name here of what has that name, or that last
 * component, or nearly that name, in any scheme; else what there is under the part that is right.
 * Never NULL; in a's arena. */
const char *suggest_for(const Assign *a, const char *pattern);
/* The module that this hint names, as a pattern of the plan's scheme; NULL: it names none. */
const char *suggest_module(const Assign *a, const char *pattern);
/* The other naming scheme of which the pattern is a name, letter by letter, and not of the plan's;
 * -1: none. */
int suggest_scheme(const Assign *a, const char *pattern);
/* Does the pattern match a module of the model as that scheme calls it? */
bool suggest_fits(const Assign *a, int scheme, const char *pattern);
/* The module or parameter whose name, or pattern over all layers if `pattern` has a wildcard, is
 * nearest to one that matches nothing; NULL: none is near. */
const char *suggest_nearest(Arena *arena, const Graph *g, const char *pattern);
/* What to write where a module that no line names has a line in other layers only: "let the line
 * `layers.0.attention.wo` be for all layers: `layers.*.attention.wo`". NULL: it has none there; in
 * a's arena. */
const char *suggest_all_layers(const Assign *a, int module);
/* The numbers of ranks that `heads` query heads can be cut over: divisors of them with which KV
 * heads are cut, or kept whole by equal numbers of ranks: "1, 2, 4 or 8". In `a`. */
const char *suggest_head_ranks(Arena *a, int64_t heads, int64_t kv_heads);
#endif
