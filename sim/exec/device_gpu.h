/* A device that is a GPU (gpu/gpu.h): blocks lie in its memory, its kernels compute; what it has no
 * kernel for is done on the host, and counted. */
#ifndef SP_EXEC_DEVICE_GPU_H
#define SP_EXEC_DEVICE_GPU_H
#include "exec/device.h"
#include "gpu/gpu.h"

/* Takes the GPU over; device_free closes it. A GPU without room ends the run (exit 5). */
Device *device_gpu(Gpu *gpu);
/* The same without a GPU and without numbers: what is asked of it takes room as it would on a GPU,
 * and device_use says how much at most. */
Device *device_gpu_sizes(void);
/* The ops that were done on the host for want of a kernel since it was last asked, "select (12),
 * gate (12)", in `arena`; NULL: none. Integers of level 3 are the host's and do not count. */
const char *device_gpu_missing(Device *d, Arena *arena);
#endif
