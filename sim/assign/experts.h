/* What `moe:` says of the layouts of experts' weights. For sim/assign only. */
#ifndef SP_ASSIGN_EXPERTS_H
#define SP_ASSIGN_EXPERTS_H
#include "assign/assign.h"

/* Holds `moe: {axis:, etp:}` against the layouts that the plan's lines gave the experts' weights:
 * E0215 where a line cuts them otherwise. */
void experts_check(const Assign *a);
/* The stored dim of parameter t that FSDP cuts at rest: the first, or as `moe: {fsdp_dim:}` says of
 * experts' weights. */
int experts_rest_dim(const Assign *a, int t);
#endif
