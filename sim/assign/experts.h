/* What `moe:` says of the layouts of experts' weights. For sim/assign only. */
#ifndef SP_ASSIGN_EXPERTS_H
#define SP_ASSIGN_EXPERTS_H
#include "assign/assign.h"

/* Holds `moe: {axis:, etp:}` against the layouts that the plan's lines gave the experts' weights:
 * E0215 where a line cuts them otherwise; E0214 where `fsdp_dim` speaks of a packed dim. */
void experts_check(const Assign *a);
/* The letter of parameter t that FSDP cuts at rest: the first, the pseudo-dim LIST (t's nd) where
 * its stored dim 0 has several, and as `moe: {fsdp_dim:}` says of experts' weights. */
int experts_rest_dim(const Assign *a, int t);
#endif
