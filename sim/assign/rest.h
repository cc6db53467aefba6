/* How FSDP cuts parameters at rest. For sim/assign only. */
#ifndef SP_ASSIGN_REST_H
#define SP_ASSIGN_REST_H
#include "assign/assign.h"

/* Cuts each a->rest by the axes of a->shard, in dim 0 or as `data_parallel: {dims:}` and `moe:
 * {fsdp_dim:}` say. After all layouts of compute. E0205, E0307 for `dims` that fit no parameter. */
void rest_lay(Assign *a);
#endif
