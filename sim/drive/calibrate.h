/* A hardware profile of the machine that processes run on, from what a few small plans take there.
 * Refuses to time anything that a plan does not do: the constants are those that make the model of
 * time (cost/cost.h) say what the executor takes, packing and calls included. */
#ifndef SP_DRIVE_CALIBRATE_H
#define SP_DRIVE_CALIBRATE_H
#include "base/diag.h"

struct Ranks;
/* All processes call it. On rank 0 the text of a profile in `arena`, in the form of plans/hardware;
 * on the others "". NULL and a diagnostic: E0603 with one process, or what hindered the plans. */
const char *calibrate(Arena *arena, Diags *d, struct Ranks *ranks);
#endif
