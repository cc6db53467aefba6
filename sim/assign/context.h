/* What `context_parallel` says of the axes, for whoever cuts the sequence or lowers attention. */
#ifndef SP_ASSIGN_CONTEXT_H
#define SP_ASSIGN_CONTEXT_H
#include "assign/assign.h"

/* The axes over which `context_parallel` cuts the sequence, outermost first: its own, or the axis
 * or group that is called cp. Unknown names are told by whoever cuts the data. False: there are
 * none. */
bool context_axes(const Mesh *m, const Plan *p, AxisList *out);
/* Those of them that `order` speaks of: all, or of usp the ring's. */
bool context_ordered(const Mesh *m, const Plan *p, AxisList *out);
/* The axes that cut heads inside attention (ulysses, usp), outermost first. */
AxisList context_heads(const Mesh *m, const Plan *p);
/* The axis round which keys and values travel (ring, usp); -1: none. */
int context_ring(const Mesh *m, const Plan *p);
/* Splits the one axis that shall cut heads where there are fewer KV heads than ranks: one part cuts
 * KV heads, the other the query heads of each. `mesh` changes and true: axes are renumbered. False:
 * nothing to split, or a diagnostic in a->d. */
bool context_split(Assign *a, Mesh *mesh);
/* E0303 and E0215 for what cannot be cut or sent so. After the parameters are laid out. */
void context_check(Assign *a);
#endif
