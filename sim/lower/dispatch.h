/* How rows get to experts and back. For sim/lower only. */
#ifndef SP_LOWER_DISPATCH_H
#define SP_LOWER_DISPATCH_H
#include "lower/moves.h"

/* Does the spec say `home` anywhere? */
bool dispatch_goes_home(const RawSpec *spec);
/* What `output: home` asks of the result of a module on the axes for which the spec says so: to lie
 * as the module's first input, value `entered`, does when it enters; a sum that the module around
 * it labels as pending stays one. *want is changed for these axes only. */
void dispatch_home(const Lower *l, int module, int entered, const RawSpec *spec, Layout *want);
/* Holds `moe: {dispatch:}` against how the tokens lie that enter a layer's experts, and the rows as
 * they are made: E0215, once, where they get to their experts in another way over one of the axes
 * of `ep`. */
void dispatch_check(Lower *l, int tokens, int rows);
#endif
