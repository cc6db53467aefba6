/* What a GPU is asked for by any op. Refuses to know how one of them does it. */
#ifndef SP_LAUNCH_TABLE_H
#define SP_LAUNCH_TABLE_H
#include "launch/launch.h"

/* Asks for all that makes c->out from its operands, which are in the GPU's memory; index lists and
 * attributes are the host's. False: there is no kernel for this call, and nothing was asked. */
bool table_launch(const OpCall *c, bool adjoint, const LaunchTo *to);
#endif
