/* Module boundaries: where styles are met. For sim/lower only. */
#ifndef SP_LOWER_BOUNDARY_H
#define SP_LOWER_BOUNDARY_H
#include "lower/moves.h"

/* What a style says of the result of its module; NULL: nothing. */
const RawSpec *boundary_result(const Style *s);
/* What the plan declares for the output of this node's module, over the axes on which an operand
 * like it is a pending sum: true and the layout if there is such an operand. An add that refuses
 * the sum (a row bias) then gets it reduced straight to where the output has to lie. */
bool boundary_goal(const Lower *l, const GNode *n, const int *in, Layout *want);
/* The tensor as a node inside `module` (-1: none) reads it: through the declared inputs of all
 * enclosing modules, outermost first. Returns the value. */
int boundary_read(Lower *l, int module, int tensor);
/* The module's first input as it enters, before the module's own style moves it; -1: none. */
int boundary_enters(Lower *l, int module);
/* The result of a module goes where its style says: p->env[tensor] is then what others get. Labels
 * that lie are remembered in l->mislabels. */
void boundary_leave(Lower *l, int module, int tensor);
#endif
