/* A hardware profile of the machine that processes run on, from what a few small plans take there.
 * Refuses to time anything that a plan does not do: the constants are those that make the model of
 * time (cost/cost.h) say what the executor takes, packing and calls included. */
#ifndef SP_DRIVE_CALIBRATE_H
#define SP_DRIVE_CALIBRATE_H
#include "base/diag.h"
#include "cost/cost.h"

struct Ranks;
struct Device;
/* All processes call it. On rank 0 the text of a profile in `arena`, in the form of plans/hardware;
 * on the others "". `device`: each process's GPU, NULL: the host. NULL and a diagnostic: E0603 with
 * one process, or what hindered the plans. */
const char *calibrate(Arena *arena, Diags *d, struct Ranks *ranks, struct Device *device);
/* Of one GPU: what kernels and products take on it by its own clock. Links are none of it: they are
 * those of another profile, and the text says so. */
const char *calibrate_gpu(Arena *arena, Diags *d, struct Device *device, const Hardware *links);
#endif
