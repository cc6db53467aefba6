/* The division of the optimizer's work. */
#ifndef SP_ASSIGN_ZERO_H
#define SP_ASSIGN_ZERO_H
#include "assign/assign.h"

/* Lays out into a->state, per parameter, what is updated where: as it lies at rest, or with ZeRO-1
 * and 2 over the axes of data parallelism. After all layouts at rest. E0208 without such axes. */
void zero_lay(Assign *a);
#endif
