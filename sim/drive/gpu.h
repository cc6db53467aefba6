/* --cuda=virtual: all ranks on one GPU. Finds the plug-in that `make CUDA=1` builds, opens the GPU
 * and says why there is none. */
#ifndef SP_DRIVE_GPU_H
#define SP_DRIVE_GPU_H
#include "base/diag.h"

struct Device;
/* The device of GPU `at` (as CUDA counts them), for PipelineOptions.device, of whose memory this
 * process may take its part among `sharing`; gpu_close gives it back. NULL, and E0601 says what is
 * missing: the plug-in, the driver, a device. */
struct Device *gpu_open(Arena *arena, Diags *d, int at, int sharing);
/* Notes (N0017) which ops had no kernel and ran on the host since it was last asked. NULL is
 * allowed. */
void gpu_notes(struct Device *dev, Arena *arena, Diags *d);
/* Ends it; NULL is allowed. */
void gpu_close(struct Device *dev);
#endif
